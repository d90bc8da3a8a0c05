#!/usr/bin/env bash
# Leases that may be taken, with real processes: a higher bid gets the slot, the program that had it is told by SIGTERM and, if
# it does not heed that, ended with the notice; its job goes on, and the audit finds every price right.
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin spot "$1" bourse-audit

provider=$bin/bourse-provider
again() { # the agent, with one line of its config changed
    "$provider" drain --market "$market" >drain.log 2>&1 || fail "drain: $(cat drain.log)"
    sed -i "/^${1%%:*}:/d" "$market/provider/provider.yaml"
    echo "$1" >>"$market/provider/provider.yaml"
    ended "$agent" 60 || fail "the agent is still there after drain"
    "$provider" run --market "$market" >>agent.log 2>&1 &
    agent=$!
    until_true 60 offered 1 || fail "nothing on offer"
}
submit() { # NAME LINES...: prints the id
    printf 'name: %s\nlimit: 2m\nbudget: 0.50\n' "$1" >"$1.yaml"
    printf '%s\n' "${@:2}" >>"$1.yaml"
    "$bourse" submit "$1.yaml" -y --anyway --quiet 2>submit.log || fail "submit: $(cat submit.log)"
}
job_is() { "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && grep -qE -- "$2" ps.json; }
rich() { BOURSE_MARKET=$work/rich/market.yaml BOURSE_KEY=$work/rich/key timeout 300 "$bourse" "$@"; }
rich_buys() { # what costs him 0.201, and takes no longer than it may
    rich run -y --cap 0.30 --budget 1 --at-most 1 --limit 20s --name "$1" -- true >rich.log 2>&1 || fail "$1: $(cat rich.log)"
    rich ps "$1" --json >rich.json 2>/dev/null || rich ps last --json >rich.json || fail "rich's ps"
    grep -q '"price_micro":201000' rich.json || fail "$1 does not pay 0.201: $(cat rich.json)"
}
reported() { "$bourse" report "$1" --json >report.json 2>/dev/null && grep -q 'preempted' report.json; }

market_up --credits 100 --slots 1 --programs sh,true,sleep
again 'interruptible: {notice: 4s, minimum_run: 0s}'
"$provider" status --market "$market" >status.log || fail "status"
grep -q 'per slot-hour, interruptible' status.log || fail "status does not say it: $(cat status.log)"
"$bourse" devices --needs 'firm = true' --quiet >devices.log || fail "devices"
[ ! -s devices.log ] || fail "a firm device: $(cat devices.log)"
"$bourse" devices --needs 'firm = false and notice = 4s and minimum_run = 0s' --quiet >devices.log || fail "devices"
[ "$(wc -l <devices.log)" -eq 1 ] || fail "no device has these terms"
"$bourse" admin invite --role consumer --credits 20 >rich.invitation 2>/dev/null || fail "invite"
mkdir -m 700 rich
"$bourse" join "$(cat rich.invitation)" --key "$work/rich/key" --market "$work/rich/market.yaml" >join.log 2>&1 || fail "join: $(cat join.log)"

# ---------------------------------------------------------------- who heeds the signal

poor=$(submit heeds 'cap: 0.20' 'run: [sh, -c, "trap \"exit 7\" TERM; while :; do sleep 0.1; done"]')
until_true 60 job_is "$poor" '"running":1' || fail "it does not run: $(cat ps.json)"
until_true 60 runs_below "$agent" sleep || fail "the trap is never set"
began=$(now_ms)
rich_buys first
[ $(($(now_ms) - began)) -lt 60000 ] || fail "the slot was long in coming"
until_true 60 job_is "$poor" '"taken":true' || fail "no lease of it was taken: $(cat ps.json)"
until_true 60 job_is "$poor" '"running":1' || fail "it does not go on: $(cat ps.json)"
job_is "$poor" '"failed":0' || fail "it counts as failed: $(cat ps.json)"
until_true 60 reported "$poor" || fail "the report does not say preempted: $(cat report.json)"
"$bourse" cancel "$poor" >/dev/null 2>&1 || fail "cancel"

# ---------------------------------------------------------------- who does not; and who comes to his end in time

poor=$(submit ignores 'cap: 0.20' 'run: [sh, -c, "trap \"\" TERM; while :; do sleep 0.1; done"]')
until_true 60 job_is "$poor" '"running":1' || fail "it does not run: $(cat ps.json)"
until_true 60 runs_below "$agent" sleep || fail "the trap is never set"
rich_buys second
until_true 60 job_is "$poor" '"taken":true' || fail "no lease of it was taken: $(cat ps.json)"
"$bourse" cancel "$poor" >/dev/null 2>&1 || fail "cancel"

poor=$(submit ends 'cap: 0.20' 'outputs: [saved]' \
    'run: [sh, -c, "trap \"echo saved >saved; exit 0\" TERM; while :; do sleep 0.1; done"]')
until_true 60 job_is "$poor" '"running":1' || fail "it does not run: $(cat ps.json)"
until_true 60 runs_below "$agent" sleep || fail "the trap is never set"
rich_buys third
until_true 60 job_is "$poor" '"state":"done"' || fail "it came to its end, and is not done: $(cat ps.json)"
"$bourse" fetch "$poor" -o out >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
grep -rqx saved out || fail "its output is not there"

# ---------------------------------------------------------------- who will not be interrupted

job=$(submit firm 'needs: firm = true' 'run: ["true"]')
"$bourse" explain "$job" >explain.log 2>&1 || true
grep -q 'firm' explain.log || fail "explain does not name it: $(cat explain.log)"
again 'interruptible: false'
until_true 60 job_is "$job" '"state":"done"' || fail "it does not run on a firm lease: $(cat ps.json)"

"$bourse" down --dir "$market" >down.log 2>&1 || fail "down: $(cat down.log)"
"$bin/bourse-broker" audit "$market" >audit.log 2>&1 || fail "audit: $(cat audit.log)"
echo ok
