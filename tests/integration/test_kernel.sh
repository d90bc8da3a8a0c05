#!/usr/bin/env bash
# Kernels through a whole market, on pocl's devices and on a stand-in for CUDA's: the files are right, and paid; what is wrong with a kernel is told its
# owner; one that never ends is ended at its limit; an agent whose OpenCL is missing or broken goes on without it.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin kernel "$1" bourse-kernel bourse-kernel-fake bourse-audit
[ -r /etc/OpenCL/vendors/pocl.icd ] || skip "no pocl (Debian package pocl-opencl-icd)"

cat >add.cl <<'END'
kernel void add(global const float *a, global const float *b, global float *c, float f)
{
    size_t i = get_global_id(0);
    c[i] = a[i] + f * b[i];
}
kernel void number(global int *out, int n) { out[get_global_id(0)] = 10 * n + get_global_id(0); }
kernel void twice(global const int *a, global int *out) { out[0] = 2 * a[0]; }
kernel void endless(global volatile int *a) { while (a[0] == 0) { a[1] = 1; } }
END
# Four floats: 1 2 3 4 and 10 20 30 40.
printf '\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40' >a.bin
printf '\0\0\x20\x41\0\0\xa0\x41\0\0\xf0\x41\0\0\x20\x42' >b.bin
job() { # NAME LINE...: submits it and waits; its id is in `id`, and its status is the function's
    local name=$1 status=0
    shift
    printf '%s\n' "name: $name" "expect: 100ms" "budget: 1.00" "$@" >"$name.yaml"
    timeout 120 "$bourse" submit "$name.yaml" -y --wait >submit.out 2>submit.log || status=$?
    id=$("$bourse" ps last --quiet)
    return "$status"
}
adding=('kernel:' '  source: add.cl' '  entry: add' '  global: [4]' '  arguments:' '  - {input: a.bin}' '  - {input: b.bin}'
    '  - {output: c.bin, size: 16B}' '  - {float: 0.5}')

# ---------------------------------------------------------------- two devices of pocl
market_up --credits 100 --slots 1 --price 0.40
export POCL_DEVICES="basic pthread"
agent_join "$work/lab" --name lab </dev/null
cat >"$work/lab/provider.yaml" <<'END'
name: lab
slots: 1
price: 0.50
memory: 256MiB
disk: 64MiB
devices:
  - {opencl: 0, name: basic, price: 0.02, memory: 768MiB}
END
mkdir -m 700 looked
"$bin/bourse-provider" probe --dir "$work/looked" >probe.txt 2>probe.log || fail "probe: $(cat probe.log)"
grep -qE 'OpenCL +0: ' probe.txt || fail "no OpenCL device is listed: $(cat probe.txt)"
grep -qE '^ +1: ' probe.txt || fail "pocl's second device is not listed: $(cat probe.txt)"
[ ! -e looked/probe-kernel ] || fail "a look left its program"
"$bin/bourse-provider" run --dir "$work/lab" >agent-lab.log 2>&1 &
lab=$!
started+=("$lab")
until_true 120 asked basic || fail "the device is not on offer: $(cat agent-lab.log)"
"$bourse" devices --needs 'api = opencl' --json >devices.json
has "$(cat devices.json)" '"instrument":"cpu.opencl.pocl"'
grep -q '"kind":"cpu"' devices.json || fail "another kind: $(cat devices.json)"
! "$bourse" devices --needs 'kind = gpu' --json | grep -q opencl || fail "cores are taken for a GPU"

job add "${adding[@]}" || fail "add: $(cat submit.log submit.out)"
"$bourse" fetch "$id" -o out >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
[ "$(od -An -tf4 out/c.bin | tr -s ' ')" = ' 6 12 18 24' ] || fail "the sum is another: $(od -An -tf4 out/c.bin)"
"$bourse" ps "$id" >ps.txt
grep -q ' basic ' ps.txt || fail "it ran elsewhere: $(cat ps.txt)"
"$bourse" receipt "$id" 0 -o proofs >receipt.log 2>&1 || fail "receipt: $(cat receipt.log)"
"$bourse" verify proofs/* >verify.txt 2>&1 || fail "verify: $(cat verify.txt)"
has "$(cat verify.txt)" 'ok, isolation 1'
"$bourse" quote add.yaml --verbose >quote.txt 2>&1 || fail "quote: $(cat quote.txt)"
has "$(cat quote.txt)" 'isolation of devices on offer: level 1 on 1 device'

# An array: each subtask has a number of its own, and the program is compiled once.
job numbers 'array: 1-20' 'kernel:' '  source: add.cl' '  entry: number' '  global: 2' '  arguments:' \
    '  - {output: "n{index}.bin", size: 8B}' '  - {int: "{index}"}' || fail "numbers: $(cat submit.log submit.out)"
"$bourse" fetch "$id" -o numbers >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
[ "$(find numbers -name 'n*.bin' | wc -l)" -eq 20 ] || fail "not 20 files: $(ls -R numbers)"
[ "$(find numbers -name 'n17.bin' -exec od -An -td4 {} + | tr -s ' ')" = ' 170 171' ] || fail "the number is another"
# Inputs out of archives: of so many files none goes alone, and the device's agent takes each out of the archive that has it.
mkdir many
for i in {1..300}; do printf "$(printf '\\%03o\\%03o\\0\\0' $((i % 256)) $((i / 256)))" >"many/n$i.bin"; done
job packed 'array: 1-300:100' 'files: many/' 'kernel:' '  source: add.cl' '  entry: twice' '  global: 1' \
    '  arguments: [{input: "many/n{index}.bin"}, {output: "t{index}.bin", size: 4B}]' || fail "packed: $(cat submit.log submit.out)"
"$bourse" fetch "$id" -o packed >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
[ "$(find packed -name 't201.bin' -exec od -An -td4 {} + | tr -d ' ')" = 402 ] || fail "another number out of an archive: $(ls -R packed)"
[ "$(find packed -name 't*.bin' | wc -l)" -eq 3 ] || fail "not 3 files: $(ls -R packed)"
# Other work-groups are compiled anew, although the folders were emptied since.
job groups 'array: 1-3' 'kernel:' '  source: add.cl' '  entry: number' '  global: 6' '  local: "{index}"' \
    '  arguments: [{output: g.bin, size: 24B}, {int: 1}]' || fail "groups: $(cat submit.log submit.out)"

# ---------------------------------------------------------------- what is wrong
sed 's/f \* b/g * b/' add.cl >wrong.cl
wrong=("${adding[@]/add.cl/wrong.cl}")
if job wrong "${wrong[@]}"; then fail "a kernel that does not compile is done"; fi
"$bourse" logs "$id" >logs.txt 2>&1 || true
has "$(cat logs.txt)" "wrong.cl does not compile"
has "$(cat logs.txt)" "undeclared identifier 'g'"
"$bourse" logs "$id" --json >outcomes.json
grep -q '"outcome":"program failed"' outcomes.json || fail "another outcome: $(cat outcomes.json)"

if job entry "${adding[@]/entry: add/entry: sum}"; then fail "a kernel that is not there is done"; fi
"$bourse" logs "$id" >logs.txt 2>&1 || true
has "$(cat logs.txt)" 'add.cl has no kernel "sum"'

before=$(now_ms)
if job endless 'limit: 3s' 'kernel:' '  source: add.cl' '  entry: endless' '  global: 1' '  arguments:' \
    '  - {output: e.bin, size: 8B}'; then fail "an endless kernel is done"; fi
[ $(($(now_ms) - before)) -lt 60000 ] || fail "an endless kernel ran for $(($(now_ms) - before)) ms"
"$bourse" logs "$id" --json >outcomes.json
grep -q '"outcome":"time limit"' outcomes.json || fail "another outcome: $(cat outcomes.json)"
kill -0 "$lab" || fail "the agent ended with the kernel"
job again "${adding[@]}" || fail "after an endless kernel: $(cat submit.log submit.out)"

printf '%s\n' "name: typo" "budget: 1.00" "${adding[@]/input: b.bin/inptu: b.bin}" >typo.yaml
! "$bourse" submit typo.yaml -y >submit.log 2>&1 || fail "a wrong key is taken"
has "$(cat submit.log)" 'unknown key "inptu"; did you mean "input"?'
# What is no kernel never goes to the device.
timeout 120 "$bourse" run --needs 'label = basic' --budget 0.1 --good-till 2s -y -- true </dev/null >run.log 2>&1 &&
    fail "a program ran on a device for kernels"

# ---------------------------------------------------------------- the second device, by a part of its name
kill "$lab"
ended "$lab" 60 || fail "the agent does not end"
sed -i 's/opencl: 0, name: basic/opencl: Pthread, name: second/' "$work/lab/provider.yaml"
"$bin/bourse-provider" run --dir "$work/lab" >agent-second.log 2>&1 &
lab=$!
started+=("$lab")
until_true 120 asked second || fail "the second device is not on offer: $(cat agent-second.log)"
job second "${adding[@]}" || fail "add on the second device: $(cat submit.log submit.out)"
"$bourse" ps "$id" >ps.txt
grep -q ' second ' ps.txt || fail "it ran elsewhere: $(cat ps.txt)"

# ---------------------------------------------------------------- CUDA, with a driver that is a stand-in
# The agent finds bourse-kernel beside itself. This one has the fake driver inside, because a jail shows no library of the
# build's; everything else is as with a real driver. The PTX is the docs' own.
kill "$lab"
ended "$lab" 60 || fail "the agent does not end"
mkdir fake
cp "$bin/bourse-provider" "$bin/bourse-worker" fake/
cp "$bin/bourse-kernel-fake" fake/bourse-kernel
sed -i 's/opencl: Pthread, name: second, price: 0.02, memory: 768MiB/cuda: F100, name: card, price: 0.02/' "$work/lab/provider.yaml"
fake/bourse-provider probe --dir "$work/looked" >probe.txt 2>probe.log || fail "probe: $(cat probe.log)"
grep -qE 'CUDA +0: NVIDIA Fake F100' probe.txt || fail "no CUDA device is listed: $(cat probe.txt)"
has "$(cat probe.txt)" "gpu of NVIDIA CUDA, driver CUDA 12.4; 16.0 MiB, 3 compute units, sm_90, fp64, fp16"
fake/bourse-provider run --dir "$work/lab" >agent-card.log 2>&1 &
lab=$!
started+=("$lab")
until_true 120 asked card || fail "the card is not on offer: $(cat agent-card.log)"
"$bourse" devices --needs 'api = cuda' --json >devices.json
has "$(cat devices.json)" '"instrument":"gpu.nvidia.fake-f100"'
grep -q '"kind":"gpu"' devices.json || fail "another kind: $(cat devices.json)"

sed -n '/^```ptx$/,/^```$/{/^```/!p}' "$(dirname "$(realpath "$0")")/../../docs/jobfile.md" >add.ptx
cuda=("${adding[@]/add.cl/add.ptx}")
job cuda "${cuda[@]}" || fail "add by CUDA: $(cat submit.log submit.out)"
rm -rf out
"$bourse" fetch "$id" -o out >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
[ "$(od -An -tf4 out/c.bin | tr -s ' ')" = ' 6 12 18 24' ] || fail "the sum is another: $(od -An -tf4 out/c.bin)"
"$bourse" ps "$id" >ps.txt
grep -q ' card ' ps.txt || fail "it ran elsewhere: $(cat ps.txt)"
# The driver's files are in the jail of a GPU's job. The quote, the report and the receipt say so, and a job that asks for more does not come.
"$bourse" quote cuda.yaml >quote.txt 2>&1 || fail "quote: $(cat quote.txt)"
has "$(cat quote.txt)" 'isolation: level 0 on 1 device, where files of /dev are in the jail'
"$bourse" quote cuda.yaml --json >quote.json 2>quote.log || fail "quote: $(cat quote.log)"
has "$(tr -d ' \n' <quote.json)" '"isolation":{"devices":[1,0,0,0],"unstated":0}'
"$bourse" report "$id" >report.txt || fail "no report"
has "$(cat report.txt)" 'isolation: level 0 on 1 device, where files of /dev are in the jail'
"$bourse" receipt "$id" 0 -o open >receipt.log 2>&1 || fail "receipt: $(cat receipt.log)"
"$bourse" verify open/* --json >verify.json 2>verify.log || fail "verify: $(cat verify.log)"
has "$(tr -d ' \n' <verify.json)" '"isolation":0'
printf '%s\n' "name: closed" "budget: 1.00" "good_till: 2s" "needs: {isolation: 1}" "${cuda[@]}" >closed.yaml
timeout 120 "$bourse" submit closed.yaml -y --wait >submit.log 2>&1 && fail "a job that asks for isolation ran on an open device"
# The stand-in's memory is full of what others left when a process starts. The job finds it cleared.
sed 's/\.entry add(.*/.entry spotless(.param .u64 out)/; /^ *\.param/d; s/^)$//' add.ptx >spotless.ptx
spotless=('kernel:' '  source: spotless.ptx' '  entry: spotless' '  global: 1' '  arguments: [{output: s.bin, size: 16B}]')
job spotless "${spotless[@]}" || fail "a job finds what others left: $(cat submit.log submit.out; "$bourse" logs "$id")"
# OpenCL C never goes to it.
printf '%s\n' "name: none" "budget: 1.00" "good_till: 2s" "${adding[@]}" >none.yaml
timeout 120 "$bourse" submit none.yaml -y --wait >submit.log 2>&1 && fail "OpenCL C ran on a CUDA device"

sed 's/ret;/broken;/' add.ptx >wrong.ptx
if job wrong "${cuda[@]/add.ptx/wrong.ptx}"; then fail "PTX that does not compile is done"; fi
"$bourse" logs "$id" >logs.txt 2>&1 || true
has "$(cat logs.txt)" "wrong.ptx does not compile: ptxas application ptx input, line 4; error"

# A kernel that reads outside its buffers fails, and the next launch of the lane has a new process.
sed 's/\.entry add/.entry wild/' add.ptx >wild.part
{ cat add.ptx && sed 1,3d wild.part; } >wild.ptx
printf '%s\n' add wild add >entries.txt
wild=("${cuda[@]/add.ptx/wild.ptx}")
entry='entry: "{line}"'
if job wild 'lines: entries.txt' 'retries: 0' "${wild[@]/entry: add/$entry}"; then fail "a wild kernel is done"; fi
"$bourse" logs "$id" --json >outcomes.json
has "$(cat outcomes.json)" "the kernel read or wrote outside its buffers"
[ "$(grep -o '"outcome":"ok"' outcomes.json | wc -l)" -eq 2 ] || fail "the others failed, too: $(cat outcomes.json)"

sed 's/\.entry add/.entry endless/' add.ptx >endless.ptx
if job hangs 'limit: 3s' "kernel: {source: endless.ptx, entry: endless, global: 1}"; then fail "a launch that hangs is done"; fi
"$bourse" logs "$id" --json >outcomes.json
grep -q '"outcome":"time limit"' outcomes.json || fail "another outcome: $(cat outcomes.json)"
job cuda-again "${cuda[@]}" || fail "after a launch that hangs: $(cat submit.log submit.out)"

# ---------------------------------------------------------------- an agent without such a device
kill "$lab"
ended "$lab" 60 || fail "the agent does not end"
sed -i 's/cuda: F100, name: card/opencl: 0, name: basic/' "$work/lab/provider.yaml"
export POCL_DEVICES=nonsense
"$bin/bourse-provider" run --dir "$work/lab" >agent-none.log 2>&1 &
started+=($!)
until_true 60 asked lab || fail "the agent offers nothing: $(cat agent-none.log)"
has "$(cat agent-none.log)" 'the device "basic" is not offered: '
! asked basic || fail "a device that is not there is on offer"
unset POCL_DEVICES
sed -i 's/opencl: 0/opencl: "H100"/' "$work/lab/provider.yaml"
kill "${started[-1]}"
ended "${started[-1]}" 60 || fail "the agent does not end"
! timeout 60 "$bin/bourse-provider" run --dir "$work/lab" >agent-unknown.log 2>&1 || fail "an unknown device is offered"
has "$(cat agent-unknown.log)" 'no OpenCL device "H100"; there is 0 "'
echo "kernels: right and paid, wrong and told, endless and ended"
