#!/usr/bin/env bash
# Simulated devices in a real market: a product on an H100, a TPU v5p and an LPU that are not there, computed for real and
# marked everywhere; what such a device cannot do is refused by name; a job that asks for none never lands on one, though
# they cost nothing.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin simulated "$1" bourse-tensor bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"

npy a.npy 512 512
npy b.npy 512 1024
npy product.npy 512 1024 # a one in the first place times a one in the first place

market_up --credits 100 --slots 1 --price 0.40
agent_join "$work/lab" --name lab </dev/null
cat >"$work/lab/provider.yaml" <<'END'
name: lab
slots: 1
price: 0.50
memory: 128MiB
disk: 64MiB
devices:
  - {simulate: nvidia-h100-sxm5, price: 0}
  - {simulate: google-tpu-v5p, price: 0}
  - {simulate: groq-lpu-v1, price: 0}
  - {simulate: google-edge-tpu, price: 0}
END
"$bin/bourse-provider" run --check-config --dir "$work/lab" 2>check.log || fail "check-config: $(cat check.log)"
"$bin/bourse-provider" run --dir "$work/lab" >agent-lab.log 2>&1 &
started+=($!)
for label in lab sim.nvidia-h100-sxm5 sim.google-tpu-v5p sim.groq-lpu-v1 sim.google-edge-tpu; do
    until_true 60 asked "$label" || fail "$label is not on offer: $("$bourse" devices --needs 'simulated = true')"
done
"$bourse" devices --needs 'simulated = true' >devices.txt
grep -q 'catalogue$' devices.txt && ! grep -qE '(measured|declared|owner)$' devices.txt || fail "figures that are not the catalogue's: $(cat devices.txt)"
grep -qE 'sim\.gpu\.nvidia\.h100-sxm5 +gpu SIMULATED' devices.txt || fail "not marked: $(cat devices.txt)"

product() { # INSTRUMENT: the job's id is in `id`; its status is the function's
    printf '%s\n' "name: product" "executor: tensor" "expect: 10ms" "files: [a.npy, b.npy]" \
        "run: [matmul, a.npy, b.npy, c.npy]" "outputs: c.npy" "needs: {instrument: $1}" >product.yaml
    local status=0
    timeout 120 "$bourse" submit product.yaml -y --budget 1 --wait >id 2>submit.log || status=$?
    id=$("$bourse" ps last --quiet)
    return "$status"
}
# NAME INSTRUMENT BUSY-NS DETAIL: computed for real, with the time of the device that it is not.
simulate() {
    product "$2" || fail "a product on $1: $(cat submit.log)"
    "$bourse" fetch "$id" -o "out-$1" 2>fetch.log || fail "fetch: $(cat fetch.log)"
    cmp product.npy "out-$1/c.npy" || fail "the product on $1 is another"
    has "$(cat fetch.log)" 'SIMULATED: 1 of 1 results'
    "$bourse" ps "$id" >ps.txt
    grep -q " SIM sim\.$1 " ps.txt || fail "ps does not name it: $(cat ps.txt)"
    "$bourse" ps "$id" --json >ps.json
    has "$(cat ps.json)" "\"device\":\"sim.$1\",\"simulated\":true"
    "$bourse" logs "$id" --json >outcomes.json
    grep -q '"simulated":true' outcomes.json || fail "the result is not marked: $(cat outcomes.json)"
    [ "$(number busy_ns outcomes.json)" -eq "$3" ] || fail "$1 claims another time: $(cat outcomes.json)"
    has "$(cat outcomes.json)" "simulated $1: "
    has "$(cat outcomes.json)" "$4"
    "$bourse" receipt "$id" 0 >"$1.receipt" 2>receipt.log
    has "$(cat receipt.log)" 'SIMULATED: 1 of 1'
    "$bourse" verify "$1.receipt" >verify.txt || fail "verify: $(cat verify.txt)"
    grep -q ', simulated' verify.txt || fail "the receipt does not say it: $(cat verify.txt)"
}
# 2 x 512 x 1024 x 512 operations, once at 66.9e12, six times at 459e12, three times at 188e12 a second.
simulate nvidia-h100-sxm5 sim.gpu.nvidia.h100-sxm5 8024 'by the roofline'
# What it was to take of energy, as `plan` has it, beside what it took.
"$bourse" report "$id" >report.txt || fail "report"
grep -qE ' COST +ENERGY +USED *$' report.txt || fail "no energy: $(cat report.txt)"
grep -qE '^0 +SIM .* 7 J +~0\.00[0-9]* J$' report.txt || fail "no energy of 10 ms at 700 W: $(cat report.txt)"
grep -qE '^energy +7 J +~0\.00[0-9]* J +-100%$' report.txt || fail "no energy of the plan: $(cat report.txt)"
"$bourse" report "$id" --json --svg report.svg >report.json || fail "report --json"
has "$(cat report.json)" '"planned_energy_j":7.0,"energy_j":0.00'
has "$(cat report.json)" "\"energy_source\":\"estimated by the catalogue's power\""
grep -qE '"planned":\{.*"energy_j":7.0,"best_single":' report.json || fail "no energy of the plan: $(cat report.json)"
grep -qE 'energy: 7 J planned, 0\.00[0-9]* J estimated' report.svg || fail "no energy in the picture: $(cat report.svg)"
simulate google-tpu-v5p sim.tpu.google.v5p 7017 'in 6 passes of bf16'

# What it is expected to take on a device is what it took on such devices; else what it took elsewhere, and that is said. Energy is
# known of those whose power the catalogue knows.
known() { # INSTRUMENT PATTERN: a row of the plan of the product there, once the market knows of both that ran
    sed -i "s/^needs:.*/needs: {instrument: $1}/" product.yaml
    "$bourse" plan product.yaml >plan.txt || fail "plan: $(cat plan.txt)"
    grep -qE "$2" plan.txt
}
until_true 60 known sim.lpu.groq.v1 '^0 +SIM lab/sim.groq-lpu-v1 .* measured \(2\) elsewhere$' ||
    fail "not what was measured elsewhere: $(cat plan.txt)"
has "$(cat plan.txt)" 'estimated    from what was measured on other devices; the same time on all devices'
known sim.tpu.google.v5p '^0 .* - +0\.00 +measured \(1\)$' || fail "not what was measured there: $(cat plan.txt)"
has "$(cat plan.txt)" 'energy       unknown: a device of the plan does not state its power'
known sim.gpu.nvidia.h100-sxm5 '^0 .* 5\.601 J +0\.00 +measured \(1\)$' || fail "no energy of 8 ms at 700 W: $(cat plan.txt)"
has "$(cat plan.txt)" 'energy       5.601 J, of slots that are busy'
has "$("$bourse" plan product.yaml --json)" '"source":"measured","samples":1,"bytes_in":'
sed -i 's/^needs:.*/needs: {simulated: true, kind: [gpu, tpu]}/; s/^name:.*/&\narray: 0-3/' product.yaml
"$bourse" plan product.yaml --json >plan.json || fail "plan on two makes: $(cat plan.json)"
[ "$(grep -o '"source":"measured","samples":1,' plan.json | wc -l)" -eq 4 ] || fail "not by make: $(cat plan.json)"
# Where the job says nothing it is what it took, to the nanosecond: in whole milliseconds a hundred would take a tenth of a second.
sed '/^expect/d; s/^array:.*/array: 0-99/; s/^needs:.*/needs: {instrument: sim.gpu.nvidia.h100-sxm5}/' product.yaml >hundred.yaml
"$bourse" plan hundred.yaml --json >plan.json || fail "plan of a hundred"
grep -qE '"makespan_s":0\.00080(24|239)' plan.json || fail "a hundred of 8024 ns: $(cut -c 1-2000 plan.json)"
"$bourse" submit hundred.yaml -y --budget 1 --wait --quiet >hundred.id 2>submit.log || fail "a hundred products: $(cat submit.log)"
"$bourse" report "$(cat hundred.id)" --json >report.json || fail "report of a hundred"
has "$(cat report.json)" '"planned":{"makespan_ns":802400,'
# So is their energy, to the microjoule; and a time by the clock on the wall is not held beside a model's.
LC_ALL=C "$bourse" report "$(cat hundred.id)" >report.txt || fail "report of a hundred"
grep -qE '^energy +0\.56[0-9]* J +~0\.56[0-9]* J +[+-]0%$' report.txt || fail "the energy of a hundred: $(cat report.txt)"
grep -qE '^makespan +802us +[^ ]+ +-$' report.txt || fail "a makespan that is off: $(cat report.txt)"
grep -qE '^gap +[0-9.]+% +- *$' report.txt || fail "a gap: $(cat report.txt)"
grep -qE '^share +[0-9]+% +- *$' report.txt || fail "a share: $(cat report.txt)"
simulate groq-lpu-v1 sim.lpu.groq.v1 8567 'in 3 passes of fp16'

"$bourse" report "$id" >report.txt || fail "report"
has "$(cat report.txt)" 'SIM sim.groq-lpu-v1'
has "$(cat report.txt)" 'those of a model'
time=$(awk '/^0 +SIM/ {print $6}' report.txt) # as it was planned: what was measured before counts
has "$(cat report.txt)" "expected $time a subtask"
"$bourse" report "$id" --json --svg report.svg >report.json || fail "report --json"
has "$(cat report.json)" '"simulated":true'
has "$(cat report.svg)" 'SIM lab/sim.groq-lpu-v1'

# What cannot multiply such matrices does not say that it does, and nothing is sent to it.
if product sim.tpu.google.edge; then fail "a stick that knows int8 alone multiplies float32"; fi
has "$(cat submit.log)" 'the one device that the needs name fails on executor = "tensor"'
status=0
"$bourse" run -y --budget 1 --needs 'simulated = true' -- echo hi >out 2>err || status=$?
[ "$status" -eq 5 ] || fail "a program of the host finds a simulated device: $(cat out err)"
mkdir -p root/bin
cp "$bin/bourse-worker" root/bin/tool
tar -cf root.tar -C root .
if timeout 120 "$bourse" run -y --budget 1 --image root.tar --needs 'simulated = true' -- /bin/tool >out 2>err; then
    fail "a program ran: $(cat out)"
fi
has "$(cat err)" 'a simulated device runs no programs'

# Who does not ask never lands there, whatever it costs, also when nothing else is free.
timeout 120 "$bourse" run -y --array 1-12 --limit 1m --expect 200ms -- sh -c 'sleep 0.2; echo {index}' >out 2>err ||
    fail "a plain job: $(cat err)"
"$bourse" ps last >ps.txt
! grep -q 'sim\.' ps.txt || fail "a plain job is on a simulated device: $(cat ps.txt)"
"$bourse" logs last --json >outcomes.json
! grep -q '"simulated"' outcomes.json || fail "a plain job has simulated results: $(cat outcomes.json)"
# What simulations took is a model's time: it is expected of simulations again, and of nothing else.
said() { "$bourse" plan product.yaml >plan.txt 2>&1; grep -q 'measured (' plan.txt; }
sed -i 's/^needs:.*/needs: {simulated: true}/' product.yaml
until_true 60 said || fail "the products on simulated devices are not remembered: $(cat plan.txt)"
sed -i 's/^needs:.*/needs: {memory: 1MiB}/' product.yaml
said && fail "a real device is expected to take what simulated ones took: $(cat plan.txt)"
timeout 120 "$bourse" submit product.yaml -y --budget 1 --wait >out 2>err || fail "a product: $(cat err)"
"$bourse" logs last --json >outcomes.json
! grep -q '"simulated"' outcomes.json || fail "a plain product has a simulated result: $(cat outcomes.json)"
status=0
"$bourse" run -y --needs 'kind = gpu' -- true >out 2>err || status=$?
[ "$status" -eq 5 ] || fail "kind = gpu meets a simulated one: $(cat out err)"
has "$(cat err)" '4 are simulated and not asked for'

# Who could have one is told how.
sed -i 's/^needs:.*/needs: {kind: lpu}/' product.yaml
status=0
"$bourse" explain product.yaml >out 2>err || status=$?
[ "$status" -eq 5 ] || fail "kind: lpu meets a simulated one: $(cat out err)"
# shellcheck disable=SC2016 # the backticks are of the message
has "$(cat out)" 'simulated and not asked for: add `simulated = true` (in a map `simulated: true`)'

market_audit
echo "simulated devices, marked and asked for: ok"
