#!/usr/bin/env bash
# Promise P16 with real processes: who leaves or falls silent has nothing on offer any more, a frozen account neither
# offers nor works, and a halted market matches nothing, each within a second, as the command line sees it.
#
# A machine that is busy makes looks slow, not late ones right: what counts is that no look that *began* more than
# the second after the event still sees what should be gone. So the bound is the promise's also under sanitizers.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin switches "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"
within_ms=1000
heartbeat_ms=1000 # the default, which `up` takes

market_up --credits 100 --slots 2 --programs sh,sleep,true
until_true 60 offered 2 || fail "nothing on offer"
first=$agent

printf 'run: [sh]\n' >look.yaml
on_offer() { # how many slots are; that none is left makes `quote` fail, but it says so
    "$bourse" quote look.yaml --json --timeout 60s >look.json 2>look.log || true
    grep -q '"slots_now":' look.json || fail "quote: $(cat look.json look.log)"
    number slots_now look.json
}
at_work() { # JOB: how many of its subtasks
    "$bourse" ps "$1" --json --timeout 60s >ps.json 2>look.log || fail "ps: $(cat look.log)"
    number running ps.json
}
is_open() { # 0 when the market is halted
    "$bourse" admin accounts --json --timeout 60s >accounts.json 2>look.log || fail "accounts: $(cat look.log)"
    grep -c '"halted":false' accounts.json || true
}
note_time() { since_stalled_ms=$(stalled_ms) since=$(now_ms); }
# none_after SINCE_MS LIMIT_MS WHAT LOOK...: LOOK prints a number, which is 0 at every look that begins after the limit.
# Sets `seen_ms`: when it was first seen.
none_after() {
    local since=$1 limit=$2 what=$3 begun allowed
    shift 3
    while :; do
        begun=$(now_ms)
        left=$("$@") || exit 1
        seen_ms=$(($(now_ms) - since))
        [ "$left" -ne 0 ] || break
        allowed=$((limit + $(stalled_ms) - since_stalled_ms))
        [ $((begun - since)) -le "$allowed" ] || fail "$what: $left still there $((begun - since)) ms later, limit $allowed"
    done
    echo "$what: none left after at most $seen_ms ms (limit $limit)"
}
submit() { # NAME SUBTASKS SECONDS: prints the id
    printf 'name: %s\narray: 1-%s\nrun: [sleep, "%s"]\nlimit: 2m\nretries: 10\nbudget: "1.00"\n' "$@" >"$1.yaml"
    "$bourse" submit "$1.yaml" -y --quiet 2>submit.log || fail "submit: $(cat submit.log)"
}
works() { [ "$(at_work "$1")" -eq "$2" ]; } # JOB COUNT
is_done() { "$bourse" ps "$1" --json --timeout 60s 2>look.log | grep -q '"state":"done"'; }

stalls_begin

# ---------------------------------------------------------------- a goodbye

note_time
kill -TERM "$first"
none_after "$since" "$within_ms" "asks of an agent that was ended" on_offer
ended "$first" 60 || fail "the agent does not end"
# Whoever waits hears who left, and with what.
expect 5 'no device is offered now; provider "provider" left at [0-9:]{8} UTC, [0-9.]+m?s ago; its 2 slots would fit' \
    "$bourse" explain look.yaml
expect 0 '' "$bourse" submit look.yaml -y --quiet --anyway --budget 1
missing=$(cat out)
expect 0 'provider "provider" left at .*; its 2 slots would fit' "$bourse" explain "$missing"
expect 0 'provider \\"provider\\" left at ' "$bourse" explain "$missing" --json
expect 0 '' "$bourse" cancel "$missing"
agent_start "$market/provider"
started+=("$agent")
until_true 60 offered 2 || fail "the agent did not come back"

# ---------------------------------------------------------------- three missed heartbeats

note_time # what it said last, it said before
kill -STOP "$agent"
none_after "$since" $((3 * heartbeat_ms + within_ms)) "asks of an agent that stands still" on_offer
kill -CONT "$agent"
until_true 60 offered 2 || fail "the agent that stood still did not come back with its asks"

# ---------------------------------------------------------------- an account is frozen

"$bourse" admin accounts --json >accounts.json
provider=$(grep -oE '\{[^{}]*"provider"[^{}]*\}' accounts.json | grep -oE '[0-9a-f]{64}' | head -n 1)
[ -n "$provider" ] || fail "no account of a provider: $(cat accounts.json)"
job=$(submit frozen 2 60)
until_true 60 works "$job" 2 || fail "the job does not run: $(cat ps.json)"
"$bourse" admin freeze "$provider" --reason test >freeze.log 2>&1 || fail "freeze: $(cat freeze.log)"
note_time # accepted; how long the command took to begin is not the market's doing
none_after "$since" "$within_ms" "work of a frozen account" at_work "$job"
none_after "$since" "$within_ms" "asks of a frozen account" on_offer
has "$("$bourse" ps "$job")" 'is frozen by the operator: "test". Its leases have ended'
has "$("$bourse" ps "$job" --json)" '"frozen":true,"frozen_why":"test"'
has "$("$bourse" explain "$job")" 'frozen by the operator ("test")'
has "$("$bourse" providers)" ', frozen by the operator'
"$bourse" cancel "$job" >cancel.log 2>&1 || fail "cancel: $(cat cancel.log)"
"$bourse" admin freeze "$provider" --undo >freeze.log 2>&1 || fail "freeze --undo: $(cat freeze.log)"
until_true 60 offered 2 || fail "the agent that was frozen did not come back with its asks"

# ---------------------------------------------------------------- the market is halted

busy=$(submit busy 2 6)
until_true 60 works "$busy" 2 || fail "the job does not run: $(cat ps.json)"
waiting=$(submit waiting 2 0)
"$bourse" admin halt --reason test >halt.log 2>&1 || fail "halt: $(cat halt.log)"
note_time
none_after "$since" "$within_ms" "a market that is open" is_open
"$bourse" submit look.yaml -y --json >refused.json 2>&1 && fail "a job was accepted after the halt"
grep -q HALTED refused.json || fail "a job after the halt is refused for something else: $(cat refused.json)"
until_true 60 is_done "$busy" || fail "what ran before the halt does not end: $(cat ps.json)"
[ "$(at_work "$waiting")" -eq 0 ] || fail "a halted market has given work to a job that waited"
sqlite3 -readonly "$market/ledger.db" "SELECT count(*) FROM results WHERE lower(hex(job)) = '$waiting'" >results
[ "$(cat results)" -eq 0 ] || fail "a halted market has run a job that waited"
"$bourse" admin halt --undo >halt.log 2>&1 || fail "halt --undo: $(cat halt.log)"
until_true 60 is_done "$waiting" || fail "after the halt the job that waited is not done: $(cat ps.json)"

market_audit
echo "goodbye, silence, freeze, halt: ok in $SECONDS s"
