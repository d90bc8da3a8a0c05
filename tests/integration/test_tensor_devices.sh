#!/usr/bin/env bash
# Matrices on devices for kernels, through a whole market, on pocl's devices and on a stand-in for CUDA's: the products are
# those of the cores, bit for bit where every sum is exact; `run matmul` splits one product over cores and devices; two
# devices of unlike speed take work by their speed.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
# shellcheck source=tests/support/products.sh
. "$(dirname "$(realpath "$0")")/../support/products.sh"
fire_begin tensor_devices "$1" bourse-kernel bourse-kernel-fake bourse-tensor bourse-audit
[ -r /etc/OpenCL/vendors/pocl.icd ] || skip "no pocl (Debian package pocl-opencl-icd)"
[ "$(nproc)" -ge 2 ] || skip "one processor"

job() { # NAME LINE...: submits it and waits; its id is in `id`, and its status is the function's
    local name=$1 status=0
    shift
    printf '%s\n' "name: $name" "executor: tensor" "expect: 100ms" "budget: 1.00" "$@" >"$name.yaml"
    timeout 120 "$bourse" submit "$name.yaml" -y --wait >submit.out 2>submit.log || status=$?
    id=$("$bourse" ps last --quiet)
    return "$status"
}
fetched() { # FOLDER
    rm -rf "$1"
    "$bourse" fetch "$id" -o "$1" >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
}
speed_of() { # LABEL: the figure of its device
    "$bourse" devices --needs "label = $1" --json | grep -oE '"gemm_fp32","value":[0-9]+' | grep -oE '[0-9]+$' | head -n 1
}

# ---------------------------------------------------------------- the same products as on cores
market_up --credits 1000 --slots 1 --price 0.10
agent_join "$work/first" --name first </dev/null
device_config() { # LABEL PROGRAM-FOLDER DEVICE: an agent with a device that is cheap, and cores that are dear
    cat >"$work/$1/provider.yaml" <<END
name: $1-cores
slots: 1
price: 5.00
memory: 256MiB
disk: 64MiB
devices:
  - {$2, name: $1, price: 0.05, memory: 1GiB, disk: 256MiB}
END
}
device_config first 'opencl: 0'
"$bin/bourse-provider" run --dir "$work/first" >agent-first.log 2>&1 &
first=$!
started+=("$first")
until_true 120 asked first || fail "the device is not on offer: $(cat agent-first.log)"
"$bourse" devices --needs 'executor = tensor and api = opencl' --json >devices.json || fail "no device of OpenCL computes matrices"
has "$(cat devices.json)" '"label":"first"'
[ "$(speed_of first)" -gt 0 ] || fail "the device says no speed: $(cat devices.json)"

# One job for all shapes: the first product of a lane waits for the compiler.
tasks=() files=()
for shape in 1x1x1 7x63x1 64x65x33 63x1000x129 1000x7x130; do
    IFS=x read -r rows inner columns <<<"$shape"
    matrix "a$shape.npy" "$rows" "$inner" 1 whole
    matrix "b$shape.npy" "$inner" "$columns" 2 whole
    matrix "c$shape.npy" "$rows" "$columns" 3 whole
    files+=("a$shape.npy" "b$shape.npy" "c$shape.npy")
    tasks+=("  - {name: p$shape, run: [matmul, a$shape.npy, b$shape.npy, p$shape.npy], outputs: p$shape.npy}"
        "  - {name: g$shape, run: [gemm, --alpha, \"2\", --beta, \"-0.5\", a$shape.npy, b$shape.npy, c$shape.npy, g$shape.npy], outputs: g$shape.npy}")
done
listed="files: [$(IFS=,; echo "${files[*]}")]"
for where in 'api: opencl' 'terminal: 1'; do
    job shapes "needs: {$where}" "$listed" 'tasks:' "${tasks[@]}" || fail "on $where: $(cat submit.log submit.out; "$bourse" logs "$id" 2>&1)"
    fetched "${where%%:*}"
    "$bourse" ps "$id" >"${where%%:*}.ps"
done
has "$(cat api.ps)" ' first '
! grep -q ' first ' terminal.ps || fail "the cores' products ran on the device: $(cat terminal.ps)"
find api -name '*.npy' -printf '%f\n' | sort >files.txt
[ "$(wc -l <files.txt)" -eq 10 ] || fail "not ten products: $(cat files.txt)"
while read -r file; do
    cmp "$(find api -name "$file")" "$(find terminal -name "$file")" || fail "$file is another on the device"
done <files.txt
# A check runs where the products do; what is wrong with a file is said as by the cores.
job check 'needs: {api: opencl}' 'files: [a7x63x1.npy, b7x63x1.npy, c7x63x1.npy]' \
    "run: [freivalds, a7x63x1.npy, b7x63x1.npy, c7x63x1.npy, \"$(printf '%064d' 7)\", 20]" ||
    fail "a check: $(cat submit.log submit.out)"
"$bourse" logs "$id" >logs.txt 2>&1 || fail "logs: $(cat logs.txt)"
has "$(cat logs.txt)" '"verdict":"reject"'

# ---------------------------------------------------------------- CUDA, with a driver that is a stand-in
# The agent finds bourse-kernel beside itself. This one has the fake driver inside, which carries out the kernel's own PTX.
agent_join "$work/card" --name card </dev/null
device_config card 'cuda: F100'
mkdir fake
cp "$bin/bourse-provider" "$bin/bourse-worker" fake/
cp "$bin/bourse-kernel-fake" fake/bourse-kernel
fake/bourse-provider run --dir "$work/card" >agent-card.log 2>&1 &
card=$!
started+=("$card")
until_true 120 asked card || fail "the card is not on offer: $(cat agent-card.log)"
[ "$(speed_of card)" -gt 0 ] || fail "the card says no speed: $(cat agent-card.log)"
job cuda 'needs: {api: cuda}' 'files: [a64x65x33.npy, b64x65x33.npy, c64x65x33.npy]' 'outputs: g64x65x33.npy' \
    'run: [gemm, --alpha, "2", --beta, "-0.5", a64x65x33.npy, b64x65x33.npy, c64x65x33.npy, g64x65x33.npy]' ||
    fail "on CUDA: $(cat submit.log submit.out; "$bourse" logs "$id" 2>&1)"
fetched cuda
cmp "$(find cuda -name g64x65x33.npy)" "$(find terminal -name g64x65x33.npy)" || fail "the card's product is another"
"$bourse" ps "$id" >ps.txt
has "$(cat ps.txt)" ' card '
kill "$card"
ended "$card" 60 || fail "the agent does not end"

# ---------------------------------------------------------------- one product over cores and a device
wide A.npy 4096 8192 4
wide B.npy 8192 4096 5
product=("$bourse" run -y matmul A.npy B.npy -o C.npy)
share() { # PROVIDER FIELD: of out
    grep -o "\"provider\":\"$1\",[^}]*" out | sed -E "s/.*\"$2\":([0-9]+).*/\1/" | awk '{s += $1} END {print s + 0}'
}
# The first tile of the device waits for its compiler, and other programs of this machine come between: two of three.
shared=0 not_shared=0
while [ "$shared" -lt 2 ] && [ "$not_shared" -lt 2 ]; do
    rm -f C.npy
    expect 0 '' "${product[@]}" --cap 0.10 --tiles 10x10 --json # checked by Freivalds
    has "$(cat out)" '"freivalds":{"right":true'
    cores=$(share provider tiles) device=$(share first tiles)
    echo "cores and a device: $cores and $device tiles; $(field seconds out) s"
    [ $((cores + device)) -eq 100 ] || fail "$cores + $device tiles: $(cat out)"
    if [ "$cores" -gt 0 ] && [ "$device" -gt 0 ]; then shared=$((shared + 1)); else not_shared=$((not_shared + 1)); fi
done
[ "$shared" -eq 2 ] || fail "not both worked: $(cat out)"
"$bourse" report last >report.txt 2>&1 || fail "report: $(cat report.txt)"
has "$(cat report.txt)" first
has "$(cat report.txt)" provider

# ---------------------------------------------------------------- two devices, one at a quarter of its speed
agent_join "$work/second" --name second </dev/null
device_config second 'opencl: 0'
"$bin/bourse-provider" run --dir "$work/second" >agent-second.log 2>&1 &
second=$!
started+=("$second")
# The jails of the second agent stand still three quarters of the time, that of its measurement included.
throttle() {
    local family=''
    # shellcheck disable=SC2086 # a list
    trap 'kill -CONT $family 2>/dev/null; exit 0' TERM # nobody is left standing still
    while [ ! -e enough ]; do
        family=$(descendants "$second" | cut -d' ' -f1 | tr '\n' ' ')
        for _ in 1 2 3 4 5; do
            # shellcheck disable=SC2086
            kill -STOP $family 2>/dev/null || true
            sleep 0.06
            # shellcheck disable=SC2086
            kill -CONT $family 2>/dev/null || true
            sleep 0.02
        done
    done
}
throttle &
started+=($!)
until_true 300 asked second || fail "the second device is not on offer: $(cat agent-second.log)"
echo "declared: $(speed_of first) and $(speed_of second) Mflop/s"
worth=0 not_worth=0
while [ "$worth" -lt 2 ] && [ "$not_worth" -lt 2 ]; do
    expect 0 '' "${product[@]}" --cap 0.05 --tiles 10x10 --no-check --json
    fast=$(share first tiles) slow=$(share second tiles)
    [ $((fast + slow)) -eq 100 ] || fail "$fast + $slow tiles: $(cat out)"
    verdict=$(awk -v f="$fast" -v s="$slow" -v fn="$(share first paid_ns)" -v sn="$(share second paid_ns)" 'BEGIN {
        if (s == 0 || f == 0) { print "no 0 0"; exit }
        right = (s / sn) / (s / sn + f / fn); off = s / (s + f) / right - 1; off = off < 0 ? -off : off
        printf "%s %.3f %.1f", off <= 0.10 ? "yes" : "no", right, sn / s / (fn / f) }')
    echo "slow device: $slow of 100 tiles, within 10 %, right share, times slower: $verdict; $(field seconds out) s"
    if [ "${verdict%% *}" = yes ]; then worth=$((worth + 1)); else not_worth=$((not_worth + 1)); fi
done
[ "$worth" -eq 2 ] || fail "the slow device's share is not what its speed is worth: $(cat out)"
touch enough
market_audit
echo "matrices on devices: the cores' products, split, and by speed"
