#!/usr/bin/env bash
# No-ops travel in groups all the way: to the lane, into the jail, under one signature, into one commit. Nothing of what
# holds for one subtask alone may be lost on that way: each is run, accepted and paid once, and provable, when the agent and
# the broker are killed in the middle, and a cancel ends the rest.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin noops "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"
subtasks=60000
[ "$long" = no ] || subtasks=1000000

submit() { # NAME SUBTASKS: prints the id
    printf 'name: %s\nexecutor: noop\narray: 1-%s\nexpect: 1ms\nretries: 10\nbudget: 1.00\n' "$1" "$2" >"$1.yaml"
    "$bourse" submit "$1.yaml" -y --quiet 2>submit.log || fail "submit: $(cat submit.log)"
}
of_job() { sqlite3 -readonly "$market/ledger.db" "SELECT $2 FROM results WHERE status = 0 AND lower(hex(job)) = '$1'"; }
accepted() { [ "$(of_job "$1" 'COUNT(*)')" -ge "$2" ]; } # JOB_ID COUNT: at least so many
must_accept() { until_true "$3" accepted "$1" "$2" || fail "job $1 stays behind $2: $("$bourse" ps "$1" --json)"; }

market_up --credits 100 --slots 2
agent_join "$work/second" --name second <<<'slots: 1'
"$bin/bourse-provider" run --dir "$work/second" >>second.log 2>&1 &
started+=($!)
until_true 60 offered 3 || fail "not all is offered"

job=$(submit killed "$subtasks")
must_accept "$job" $((subtasks / 20)) 60
kill -9 "$agent"
must_accept "$job" $((subtasks / 5)) 60
broker_kill
ended "$broker" 60 || fail "the broker does not end" # `up` started it: it is no child to wait for
broker_start
broker_await || fail "the broker does not come back"
ended "$agent" 60 || fail "the agent does not end"
agent_start "$market/provider"
must_accept "$job" "$subtasks" 300
[ "$(of_job "$job" 'COUNT(DISTINCT idx)')" -eq "$subtasks" ] || fail "not every subtask was accepted"
[ "$(of_job "$job" 'COUNT(*)')" -eq "$subtasks" ] || fail "a subtask was accepted twice"
# In groups: far fewer signatures than results.
groups=$(of_job "$job" 'COUNT(DISTINCT log_index)')
[ "$groups" -lt $((subtasks / 8)) ] || fail "$subtasks results came in $groups messages"

key=$("$bourse" key --log)
"$bourse" receipt "$job" "$((RANDOM % subtasks))" -o one.receipt >receipt.log 2>&1 || fail "receipt: $(cat receipt.log)"
"$bourse" verify one.receipt --key "$key" >verify.log 2>&1 || fail "verify: $(cat verify.log)"

job=$(submit cancelled $((50 * subtasks)))
must_accept "$job" 100 60
"$bourse" cancel "$job" >cancel.log 2>&1 || fail "cancel: $(cat cancel.log)"
is_cancelled() { "$bourse" ps "$job" --json >ps.json 2>/dev/null && grep -q '"state":"cancelled"' ps.json; }
until_true 60 is_cancelled || fail "the job goes on: $(cat ps.json)"

market_audit
echo "$subtasks no-ops in $groups messages, killed, cancelled and audited: ok"
