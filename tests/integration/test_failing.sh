#!/usr/bin/env bash
# A device that fails again and again, with a stand-in for CUDA's driver: its ask is withdrawn, and its owner is told by what; the job ends on
# another device, right and paid once; the device is offered again by itself once its trial passes. What a job does wrong withholds nothing.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin failing "$1" bourse-kernel bourse-kernel-fake bourse-audit

# The stand-in sees in its jails, and nowhere else, whether it fails.
seen=$(mktemp -d /opt/bourse-failing.XXXXXX 2>/dev/null) || skip "no folder can be made in /opt"
trap 'rm -rf "$seen"; fire_end' EXIT
chmod 755 "$seen"
touch "$seen/driver"
driver_fails() { touch -d "@$1" "$seen/driver"; } # RESULT of each call
driver_works() { touch "$seen/driver"; }

market_up --credits 100 --slots 1 --price 0.40
mkdir fake
cp "$bin/bourse-provider" "$bin/bourse-worker" fake/
cp "$bin/bourse-kernel-fake" fake/bourse-kernel
card() { # FOLDER CARD PRICE LINE...: an agent with a card
    agent_join "$work/$1" --name "$1" < <(printf '%s\n' "devices: [{cuda: F100, name: $2, price: $3}]" "${@:4}")
    sed -i -e 's/^slots:.*/slots: 1/' "$work/$1/provider.yaml"
    grep -q '^slots:' "$work/$1/provider.yaml" || echo 'slots: 1' >>"$work/$1/provider.yaml"
    fake/bourse-provider run --dir "$work/$1" >"agent-$1.log" 2>&1 &
    started+=($!)
    until_true 120 asked "$2" || fail "$2 is not on offer: $(cat "agent-$1.log")"
}
card lab card 0.02 "visible: [$seen]"
card other spare 0.03
status() { "$bin/bourse-provider" status --dir "$work/lab" >status.txt 2>status.log; }
says() { status && grep -qF -- "$1" status.txt; } # TEXT

printf '%s\n' '.version 6.0' '.target sm_50' '.address_size 64' '.visible .entry fill(.param .u64 out, .param .u32 byte) { ret; }' \
    '.visible .entry wild(.param .u64 a, .param .u64 b, .param .u64 c, .param .f32 f) { ret; }' \
    '.visible .entry matmul(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n, .param .u32 times) { ret; }' >k.ptx
printf '\0\0\0\100' >two.bin # the float 2
job() { # NAME LINE...: submits it; its id is in `id`
    local name=$1
    shift
    printf '%s\n' "name: $name" 'expect: 1s' 'limit: 60s' 'budget: 1.00' "$@" >"$name.yaml"
    "$bourse" submit "$name.yaml" -y >submit.out 2>submit.log || fail "$name: $(cat submit.log)"
    id=$("$bourse" ps last --quiet)
}
over() { timeout 120 "$bourse" wait "$id" >wait.out 2>&1; }

# ---------------------------------------------------------------- what jobs do wrong
# Buffers that do not fit, and kernels that read outside of theirs, are no failures of the device.
job greedy 'array: 1-4' 'retries: 0' 'needs: {label: card}' 'kernel:' '  source: k.ptx' '  entry: fill' '  global: 1' \
    '  arguments: [{output: e.bin, size: 64MiB}, {uint: 1}]'
! over || fail "buffers that do not fit are made"
job wild 'array: 1-4' 'retries: 0' 'needs: {label: card}' 'kernel:' '  source: k.ptx' '  entry: wild' '  global: 1' \
    '  arguments: [{input: two.bin}, {input: two.bin}, {output: e.bin, size: 4B}, {float: 1}]'
! over || fail "a wild kernel is done"
"$bin/bourse-provider" status --dir "$work/lab" --json >status.json || fail "status: $(cat status.json)"
has "$(cat status.json)" '"failing":[]'
asked card || fail "the card is withheld for what jobs did"

# ---------------------------------------------------------------- lost in the middle
job product 'array: 1-12' 'needs: api = cuda' 'kernel:' '  source: k.ptx' '  entry: matmul' '  global: 1' \
    '  arguments: [{input: two.bin}, {input: two.bin}, {output: "c{index}.bin", size: 4B}, {uint: 1}, {uint: 20}]'
some_done() { "$bourse" ps "$id" --json >ps.json 2>/dev/null && grep -q '"subtasks":12,.*"device":"card",[^}]*"accepted":[1-9]' ps.json; }
until_true 120 some_done || fail "nothing is done: $(cat ps.json)"
driver_fails 101
over || fail "the job does not end elsewhere: $(cat wait.out)"
"$bourse" fetch "$id" -o out >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
[ "$(find out -name 'c*.bin' -exec od -v -An -tf4 {} + | tr -s ' \n' '\n' | grep -cx 4)" -eq 12 ] || fail "not twelve times four: $(ls -R out)"
"$bourse" ps "$id" --json >ps.json
paid=$(grep -oE '"accepted":[0-9]+,"paid_ns"' ps.json | tr -dc '0-9\n' | paste -sd+)
[ $((paid)) -eq 12 ] || fail "$paid results are paid, and not twelve: $(cat ps.json)"
grep -q '"device":"spare",[^}]*"accepted":[1-9]' ps.json || fail "nothing ran on the other device: $(cat ps.json)"

# The market takes the lease away after a failure. What was queued there fails, too, so the first job
# has one failure or several.
one=('needs: api = cuda' 'kernel:' '  source: k.ptx' '  entry: matmul' '  global: 1'
    '  arguments: [{input: two.bin}, {input: two.bin}, {output: c.bin, size: 4B}, {uint: 1}, {uint: 1}]')
for name in second third; do
    job "$name" "${one[@]}"
    over || fail "the $name job does not end elsewhere: $(cat wait.out)"
done
until_true 60 says 'card: withheld after 3 failures in a row (lost): ' || fail "the card is not withheld: $(cat status.txt agent-lab.log)"
until_true 60 eval '! asked card' || fail "the card is still on offer"
has "$(cat status.txt)" 'reset the device or start the machine again'
has "$(cat agent-lab.log)" 'the device "card" is withheld: it failed 3 times in a row (lost), the last time: '
has "$(cat agent-lab.log)" 'the device is not there any more (error 101 of CUDA)'
"$bin/bourse-provider" why --dir "$work/lab" >why.txt 2>&1 || fail "why: $(cat why.txt)"
has "$(cat why.txt)" 'card: withheld after 3 failures in a row (lost): '
"$bin/bourse-provider" status --dir "$work/lab" --json >status.json || fail "status: $(cat status.json)"
has "$(cat status.json)" '"failing":[{"device":"card","fault":"lost",'
asked lab || fail "the cores of the same machine are withheld, too"

# ---------------------------------------------------------------- back by itself
! asked card || fail "the card came back while its driver fails"
driver_works
until_true 120 asked card || fail "the card does not come back: $(cat agent-lab.log)"
has "$(cat agent-lab.log)" 'the device "card" passed its trial, and may be offered again'
job again "${one[@]/api = cuda/label = card}"
over || fail "the card does not work again: $(cat wait.out)"
market_audit
echo "a failing device: withheld, told, tried and offered again"
