#!/usr/bin/env bash
# Bids by value in a real market with two simulated devices: the dearer one is three times as fast, and wins by worth what the
# cheaper one wins by the hour. What such a bid is said to be by quote, order list, book and explain; other terms; the audit.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin value "$1" bourse-tensor bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"

npy a.npy 64 64

market_up --credits 100 --slots 1 --price 0.40
agent_join "$work/lab" --name lab </dev/null
cat >"$work/lab/provider.yaml" <<'END'
name: lab
slots: 1
price: 0.50
memory: 128MiB
disk: 64MiB
devices:
  - {simulate: nvidia-h100-sxm5, price: 2.00}
  - {simulate: nvidia-a100-sxm4-80, price: 1.00}
END
"$bin/bourse-provider" run --dir "$work/lab" >agent-lab.log 2>&1 &
started+=($!)
for label in sim.nvidia-h100-sxm5 sim.nvidia-a100-sxm4-80; do
    until_true 60 asked "$label" || fail "$label is not on offer: $("$bourse" devices --needs 'simulated = true')"
done

job() { # LIMIT: a job file with that line
    printf '%s\n' "name: product" "executor: tensor" "expect: 10ms" "files: [a.npy]" \
        "run: [matmul, a.npy, a.npy, c.npy]" "outputs: c.npy" "needs: {simulated: true}" "$1" >job.yaml
}

# The quote names each kind of device, what it asks and what the value is worth there.
job 'value: 0.003 per bf16 TFLOP-hour'
"$bourse" quote --verbose job.yaml >quote.txt || fail "quote: $(cat quote.txt)"
has "$(cat quote.txt)" '2.00 x 1 slot of 1 provider, sim.gpu.nvidia.h100-sxm5: worth 2.9'
has "$(cat quote.txt)" '1.00 x 1 slot of 1 provider, sim.gpu.nvidia.a100-sxm4-80: worth 0.9'
has "$(cat quote.txt)" ', too dear'
has "$(cat quote.txt)" 'value         at most 0.003 per bf16 TFLOP-hour'
"$bourse" quote job.yaml --json >quote.json || fail "quote --json"
has "$(cat quote.json)" '"value_micro":3000000'
has "$(cat quote.json)" '"rate":"bf16"'

# By worth the dearer and faster one wins, by the hour the cheaper one.
job 'value: 0.004 per bf16 TFLOP-hour'
timeout 120 "$bourse" submit job.yaml -y --budget 1 --wait >out 2>err || fail "by value: $(cat err)"
"$bourse" ps last >ps.txt
has "$(cat ps.txt)" 'sim.nvidia-h100-sxm5'
job 'cap: 4.00'
timeout 120 "$bourse" submit job.yaml -y --budget 1 --wait >out 2>err || fail "by the hour: $(cat err)"
"$bourse" ps last >ps.txt
has "$(cat ps.txt)" 'sim.nvidia-a100-sxm4-80'

# One that waits: where it stands, what would start it, and other terms.
job 'value: 0.001 per bf16 TFLOP-hour'
"$bourse" submit job.yaml -y --budget 1 --anyway >id 2>err || fail "waiting: $(cat err)"
id=$(cat id)
"$bourse" order list >orders.txt
has "$(cat orders.txt)" '0.001 per bf16 TFLOP-hour'
"$bourse" order list --json >orders.json
has "$(cat orders.json)" '"rate":"bf16"'
"$bourse" book >book.txt
has "$(cat book.txt)" '0.001 per bf16 TFLOP-hour'
"$bourse" book --follow >follow.txt 2>err &
follow=$!
started+=("$follow")
until_true 60 grep -q '  bid  0.001 per bf16 TFLOP-hour  ' follow.txt || fail "the feed: $(cat follow.txt err)"
"$bourse" explain "$id" >explain.txt
has "$(cat explain.txt)" 'with a value of 0.0020'
has "$(cat explain.txt)" 'per bf16 TFLOP-hour instead of 0.001 per bf16 TFLOP-hour it fills now at 2.00'
value=$(sed -nE 's/.*with a value of ([0-9.]+ per bf16 TFLOP-hour) instead.*/\1/p' explain.txt | head -1)
status=0
"$bourse" order replace "$id" --cap 5.00 2>err || status=$?
[ "$status" -eq 4 ] || fail "a cap for a bid by value: $status $(cat err)"
has "$(cat err)" 'PRICE'
status=0
"$bourse" order replace "$id" --value '0.01 per int8 TOP-hour' 2>err || status=$?
[ "$status" -eq 4 ] || fail "another rate: $status $(cat err)"
status=0
"$bourse" order replace "$id" --value '0.01 per bf61 TFLOP-hour' 2>err || status=$?
[ "$status" -eq 2 ] || fail "no rate: $status $(cat err)"
has "$(cat err)" 'did you mean bf16?'
"$bourse" order replace "$id" --value "$value" >out 2>err || fail "replace by '$value': $(cat err)"
done_now() { "$bourse" ps "$id" --json | grep -q '"state":"done"'; }
until_true 120 done_now || fail "it does not start at the value that was said: $("$bourse" explain "$id")"
"$bourse" ps "$id" >ps.txt
has "$(cat ps.txt)" 'sim.nvidia-h100-sxm5'

# Its end is told in the unit of its beginning, as a refusal is.
until_true 60 grep -q '  bid  0.001 per bf16 TFLOP-hour  .*gone' follow.txt || fail "the end of the bid: $(cat follow.txt err)"
kill "$follow" 2>/dev/null || true
job 'value: 0.004 per bf16 TFLOP-hour
order: post-only'
status=0
"$bourse" submit job.yaml -y --budget 1 2>err || status=$?
[ "$status" -eq 5 ] || fail "post-only by value: $status $(cat err)"
has "$(cat err)" 'WOULD_TRADE: value: 0.004 per bf16 TFLOP-hour, limit 2.00 credits per slot-hour: '

job 'value: 0.01 per bf16 TFLOP-hour
cap: 1.00'
status=0
"$bourse" submit job.yaml -y --budget 1 2>err || status=$?
[ "$status" -eq 2 ] || fail "both: $status"
has "$(cat err)" 'a limit is one or the other'

market_audit
echo "the dearer and faster device wins by worth: ok"
