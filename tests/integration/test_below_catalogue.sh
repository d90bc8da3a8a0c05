#!/usr/bin/env bash
# A CUDA device that says it is an H100 and is far slower is offered with what was measured, and its owner is told: by the log, `probe` and `status`.
# The driver is a stand-in.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin below_catalogue "$1" bourse-kernel-fake-h100

market_up --credits 10 --slots 1
agent_join "$work/of-card" --name of-card </dev/null
printf '%s\n' 'name: of-card' 'slots: 1' 'price: 0.50' 'memory: 128MiB' 'disk: 64MiB' 'devices:' \
    '  - {cuda: 0, name: card, price: 0.02}' >"$work/of-card/provider.yaml"
mkdir programs
cp "$bin/bourse-provider" "$bin/bourse-worker" programs/
cp "$bin/bourse-kernel-fake-h100" programs/bourse-kernel
programs/bourse-provider run --dir "$work/of-card" >agent.log 2>&1 </dev/null &
started+=("$!")
until_true 120 asked card || fail "the card is not on offer: $(cat agent.log)"

below='far below nvidia-h100-sxm5 of the catalogue: fp32 .* instead of 66.9 TFLOPS \([0-9]+ %\).*; it is offered with what was measured; likely causes: a power cap'
grep -qE "warning the device \"card\" is $below" agent.log || fail "the log does not say so: $(cat agent.log)"
programs/bourse-provider status --dir "$work/of-card" >status.txt
grep -qE "^slow +card: $below" status.txt || fail "status does not say so: $(cat status.txt)"
programs/bourse-provider status --dir "$work/of-card" --json >status.json
has "$(cat status.json)" '"below_catalogue":[{"device":"card","text":"far below nvidia-h100-sxm5'
programs/bourse-provider probe --dir "$work/of-card" >probe.txt 2>&1 </dev/null
grep -qE "$below" probe.txt || fail "probe does not say so: $(cat probe.txt)"

# The market trades by what was measured.
"$bourse" devices of-card/card --json >card.json
rate=$(grep -oE '"name":"fp32","value":[0-9]+' card.json | grep -oE '[0-9]+$')
[ "$rate" -gt 0 ] && [ "$rate" -lt 33000000000000 ] || fail "the device offers $rate operations per second"
"$bourse" devices --needs 'fp32 >= 30TFLOPS' --json >fast.json 2>&1 || true
! grep -q of-card fast.json || fail "a job that needs an H100's rate gets the card"
echo "below the catalogue: a slow card is named in the log, by status and by probe, and trades by what was measured"
