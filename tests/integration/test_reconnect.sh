#!/usr/bin/env bash
# A broker that is killed and started anew: the ask of an agent that comes back stands where it stood, under its id, so that a bid that
# came after it pays the ask's price and not its own limit. The audit and a replay follow.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
fire_begin reconnect "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"
market_up --credits 50 --slots 2 --programs sleep,true # with an ask at 0.10
running() { # JOB COUNT
    "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && [ "$(number running ps.json)" -eq "$2" ]
}
is_done() {
    "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && grep -q '"state":"done"' ps.json
}
state_since() { # when the agent's connection became what it is
    "$bin/bourse-provider" status --market "$market" --json >status.json 2>/dev/null && field since_ms status.json
}
is_back() { # it was connected anew, and its ask stands
    [ "$(state_since)" != "$connected_ms" ] && grep -q '"state":"offering"' status.json
}
mkdir -m 700 "$work/key"
cp "$market/provider/provider.key" "$work/key/key" # the agent's user's
own_asks() { "$bourse" order list --quiet --key "$work/key/key" --timeout 5s 2>order.log; }

# Both slots are held; a bid above the ask waits behind.
ask=$(own_asks) || fail "order list: $(cat order.log)"
[ -n "$ask" ] || fail "the agent has no ask: $(cat order.log)"
connected_ms=$(state_since) || fail "no status"
printf '%s\n' 'run: [sleep, "300"]' 'array: 1-2' 'limit: 10m' 'cap: 0.10' 'budget: 5' >holds.yaml
printf '%s\n' 'run: ["true"]' 'cap: 0.15' 'budget: 5' >waits.yaml
holds=$("$bourse" submit holds.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
until_true 60 running "$holds" 2 || fail "the first job does not run: $(cat ps.json)"
waits=$("$bourse" submit waits.yaml -y --anyway --quiet 2>submit.log) || fail "submit: $(cat submit.log)"

broker_kill
broker_start
broker_await || fail "the broker does not start again"
until_true 60 is_back || fail "the agent does not come back: $(cat status.json)"
[ "$(own_asks)" = "$ask" ] || fail "the ask was $ask, and is $(own_asks)"

"$bourse" cancel "$holds" >cancel.log 2>&1 || fail "cancel: $(cat cancel.log)"
until_true 60 is_done "$waits" || fail "the second job is not done: $(cat ps.json)"
grep -q '"price_micro":100000[,}]' ps.json || fail "the bid does not pay the ask's 0.10: $(cat ps.json)"
market_audit
echo "the ask kept its place over a kill of the broker: ok in $SECONDS s"
