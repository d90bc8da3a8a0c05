#!/usr/bin/env bash
# Who follows the market: a line that is cut, one that stops reading, and a broker that is killed. All have every trade once, and
# the book as it is, in the end.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin follow "$1" market-proxy
market_behind_proxy "heartbeat: 200ms"
agent_join "$work/maker" --name maker <<END
slots: 2
programs: [sh]
END
agent_start "$work/maker"
until_true 60 offered 2 || fail "nothing on offer"

# follower NAME OPTION...: its lines are in NAME.out; sets `follower`
follower() {
    local name=$1
    shift
    "$bourse" "$@" >"$name.out" 2>"$name.err" &
    follower=$!
    started+=("$follower")
}
trades_of() { [ "$(wc -l <"$1.out")" -ge "$2" ]; }
follower cutoff trades --follow --json --timeout 5s --market "$work/through.yaml"
cutoff=$follower
follower sleeper trades --follow --json
sleeper=$follower
follower awake trades --follow --json --timeout 5s
awake=$follower
follower book book --follow --json --timeout 5s
book=$follower

trades=0
trade() { # one, and who is awake hears of it
    "$bourse" run -y --anyway --budget 1 --timeout 1m -- sh -c true >run.log 2>&1 || fail "run: $(cat run.log)"
    trades=$((trades + 1))
    until_true 60 trades_of awake "$trades" || fail "who is awake heard of $(wc -l <awake.out) trades of $trades"
}
trade
until_true 60 trades_of cutoff 1 || fail "nothing was told through the line"
until_true 60 trades_of sleeper 1 || fail "nothing was told"

# Nobody waits for who is not there.
kill -STOP "$sleeper"
say refuse reset
for _ in 1 2 3; do trade; done
[ "$(wc -l <cutoff.out)" = 1 ] || fail "the line is not cut"
say pass
kill -CONT "$sleeper"
until_true 60 trades_of cutoff "$trades" || fail "cut off: $(wc -l <cutoff.out) trades of $trades; $(cat cutoff.err)"
until_true 60 trades_of sleeper "$trades" || fail "asleep: $(wc -l <sleeper.out) trades of $trades; $(cat sleeper.err)"

# Another broker has another feed: what was traded between is told all the same.
kill -STOP "$sleeper"
broker_kill
until_true 60 grep -q 'cannot be reached' awake.err || fail "the loss was not told"
broker_start
broker_await || fail "the broker does not come back"
until_true 60 offered 2 || fail "the agent does not come back"
for _ in 1 2; do trade; done
kill -CONT "$sleeper"
for name in cutoff sleeper; do
    until_true 60 trades_of "$name" "$trades" || fail "$name: $(wc -l <$name.out) trades of $trades; $(cat $name.err)"
done
"$bourse" trades --json --limit 100 >trades.json
tr '{' '\n' <trades.json | sed -nE 's/.*"entry":([0-9]+).*/\1/p' | sort -n >listed
[ "$(wc -l <listed)" = "$trades" ] || fail "$(wc -l <listed) trades are listed, not $trades"
for name in cutoff sleeper awake; do
    sed -E 's/.*"entry":([0-9]+).*/\1/' "$name.out" | cmp -s - listed || fail "$name was told other trades: $(cat $name.out)"
done

# Prices outlived the broker too, and all slots are free again for who follows the book.
[ "$("$bourse" prices --json | sed -E 's/.*"trades":([0-9]+).*/\1/')" = "$trades" ] || fail "$("$bourse" prices)"
is_free() { tail -n 1 book.out | grep -q '"slots":2,"free":2,"orders":1'; }
until_true 60 is_free || fail "the book that was followed: $(tail -n 1 book.out)"
# "free" of both is the same level; one counts orders, the other providers.
"$bourse" book --json | grep -q '"slots":2,"free":2,"providers":1' || fail "the book: $("$bourse" book --json)"

for pid in "$cutoff" "$sleeper" "$awake" "$book"; do
    kill -INT "$pid"
    wait "$pid" && fail "a follower ended with 0" || [ $? = 130 ] || fail "a follower did not end with 130"
done
! "$bourse" book --follow --needs 'kind = cpu' >out 2>&1 || fail "--needs was taken with --follow"
