#!/usr/bin/env bash
# The tiles of a product go to the agents by their speed. With one agent that stands still, the product is made all the
# same. With one agent at a quarter of its speed, that one gets as many tiles as its speed is worth, and the two together
# are no slower than the faster alone. Planned for the slow one alone, the product is planned anew.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
# shellcheck source=tests/support/products.sh
. "$(dirname "$(realpath "$0")")/../support/products.sh"
fire_begin matmul_speeds "$1" bourse-audit bourse-tensor
[ "$(nproc)" -ge 2 ] || skip "one processor"

market_up --credits 1000 --slots 1
until_true 60 multiplying 1 || fail "nobody multiplies: $(cat market/provider.log)"

product=("$bourse" run -y matmul A.npy B.npy -o C.npy)
agent_join "$work/second" --name second <<<'slots: 1'
sed -i 's/^price:.*/price: 0.20/' "$work/second/provider.yaml"
last_core=$(taskset -pc $$ | grep -oE '[0-9]+$') # of those that this test may use
taskset -c "$last_core" "$bin/bourse-provider" run --dir "$work/second" >>"$work/agent-second.log" 2>&1 &
second=$!
started+=("$second")
until_true 60 multiplying 2 || fail "the second agent does not multiply: $(cat agent-second.log)"

# ---------------------------------------------------------------- one agent that stands still

# Zeros: as much work as any numbers, and every block of a matrix has the same bytes to send.
zeros A.npy 4096 4096
zeros B.npy 4096 4096
share() { # PROVIDER FIELD: of out
    grep -o "\"provider\":\"$1\",[^}]*" out | sed -E "s/.*\"$2\":([0-9]+).*/\1/" | awk '{s += $1} END {print s + 0}'
}
# Its jails never run: whoever has a tile there waits for ever. The product is there all the same,
# because the tile that stands still is started once more on the agent that has done its own.
# How many tiles there are follows from the measured times, so the test does not count on a number.
freeze() {
    local family='' stand
    # shellcheck disable=SC2086 # a list
    trap 'kill -CONT $family 2>/dev/null; exit 0' TERM
    while :; do
        family=$(descendants "$second" | cut -d' ' -f1 | tr '\n' ' ')
        # shellcheck disable=SC2086
        kill -STOP $family 2>/dev/null || true
        sleep 0.01 # a tile takes longer
    done
}
freeze &
freezer=$!
started+=("$freezer")
second_is_free() { # a slot whose jail stands still may take a moment to be on offer again
    "$bourse" devices --json 2>/dev/null | grep -qE '"provider":"second",[^{}]*"free":[1-9]'
}
# Two of three: where other programs of this machine come between, what a tile takes is not what was expected.
copied=0
not_copied=0
while [ "$copied" -lt 2 ] && [ "$not_copied" -lt 2 ]; do
    until_true 60 second_is_free || fail "the second agent is not on offer: $(cat agent-second.log)"
    if "${product[@]}" --no-check --wait-at-most 30s --json >out 2>err; then
        echo "an agent that stands still: $(share provider tiles) tiles by the other, $(share second tiles) by it; $(field seconds out) s"
    else
        "$bourse" cancel last >/dev/null
        echo '{}' >out
    fi
    # The lease says that a tile went to the agent; an unfinished product has no shares at all.
    if grep -q '"provider":"second","device":"second","simulated":false,"state":"ended"' out &&
        [ "$(share provider tiles) $(share second tiles)" = "$(field tiles out) 0" ]; then
        copied=$((copied + 1))
    else
        not_copied=$((not_copied + 1))
    fi
done
kill "$freezer"
wait "$freezer" || true
[ "$copied" -eq 2 ] || fail "the tile was not started once more: $(cat out err)"

# ---------------------------------------------------------------- one agent at a quarter of its speed

zeros A.npy 4096 8192
zeros B.npy 8192 4096
# The jails of the second agent stand still three quarters of the time, and nine tenths once the file much_slower is there.
throttle() {
    local family='' stand
    # shellcheck disable=SC2086 # a list
    trap 'kill -CONT $family 2>/dev/null; exit 0' TERM # nobody is left standing still
    while [ ! -e enough ]; do
        family=$(descendants "$second" | cut -d' ' -f1 | tr '\n' ' ')
        [ -e much_slower ] && stand=0.18 || stand=0.06
        for _ in 1 2 3 4 5; do
            # shellcheck disable=SC2086 # a list
            kill -STOP $family 2>/dev/null || true
            sleep "$stand"
            # shellcheck disable=SC2086
            kill -CONT $family 2>/dev/null || true
            sleep 0.02
        done
    done
}
throttle &
started+=($!)
# The median of five, which is known as soon as three agree: other programs of this machine may come between.
worth=0 not_worth=0
gains=0 no_gains=0
while [ "$worth" -lt 3 ] && [ "$not_worth" -lt 3 ] || [ "$gains" -lt 3 ] && [ "$no_gains" -lt 3 ]; do
    expect 0 '' "${product[@]}" --no-check --tiles 10x10 --cap 0.15 --json # the faster one is the cheaper one
    [ "$(share second tiles)" -eq 0 ] || fail "the dearer agent works above the cap: $(cat out)"
    alone_s=$(field seconds out)
    expect 0 '' "${product[@]}" --no-check --tiles 10x10 --json
    fast=$(share provider tiles) slow=$(share second tiles)
    [ $((fast + slow)) -eq 100 ] || fail "$fast + $slow tiles: $(cat out)"
    verdict=$(awk -v f="$fast" -v s="$slow" -v fn="$(share provider paid_ns)" -v sn="$(share second paid_ns)" 'BEGIN {
        if (s == 0) { print "no 0 0"; exit }
        right = (s / sn) / (s / sn + f / fn); off = s / (s + f) / right - 1; off = off < 0 ? -off : off
        printf "%s %.3f %.1f", off <= 0.10 ? "yes" : "no", right, sn / s / (fn / f) }')
    both_s=$(field seconds out)
    echo "slow agent: $slow of 100 tiles, within 10 %, right share, times slower: $verdict; $both_s s, alone $alone_s s"
    if [ "${verdict%% *}" = yes ]; then worth=$((worth + 1)); else not_worth=$((not_worth + 1)); fi
    if awk -v a="$both_s" -v b="$alone_s" 'BEGIN {exit a <= b ? 0 : 1}'; then gains=$((gains + 1)); else no_gains=$((no_gains + 1)); fi
done
[ "$worth" -ge 3 ] || fail "the slow agent's share is not what its speed is worth: $(cat out)"
[ "$gains" -ge 3 ] || fail "two agents are slower than the faster one alone"

# ---------------------------------------------------------------- tiles take longer than planned

# Planned for the slow agent alone, which is slower than its past tiles say; the fast one comes once the job runs. It was planned for
# one slot at a time: that the other helps is because it is planned anew.
touch much_slower
"$bin/bourse-provider" pause --dir "$market/provider" >/dev/null || fail "the first agent does not pause"
"${product[@]}" --no-check --tiles 10x10 --json >out 2>err &
late=$!
started+=("$late")
begun() { "$bourse" ps last --json >row 2>/dev/null && [ "$(field state row)" = open ] && [ "$(number running row)" -gt 0 ]; }
until_true 60 begun || fail "it does not begin: $(cat err)"
"$bin/bourse-provider" resume --dir "$market/provider" >/dev/null || fail "the first agent does not go on"
wait "$late" || fail "planned anew it ended with $?: $(cat err)"
grep -qE '"replans":[1-9][0-9]*,"slots":2,' out || fail "it was not planned anew for two slots: $(cat out)"
fast=$(share provider tiles) slow=$(share second tiles)
[ "$slow" -gt 0 ] && [ "$fast" -gt 0 ] && [ $((fast + slow)) -eq 100 ] || fail "$fast and $slow tiles: $(cat out)"

touch enough
market_audit
echo "products: dealt out by speed: ok"
