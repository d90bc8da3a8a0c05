#!/usr/bin/env bash
# Programs that save their state when a higher bid takes their lease, with real processes: what was saved goes on elsewhere and
# is paid, what was not begins anew and was free, and the audit agrees.
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin checkpoint "$1" bourse-audit

provider=$bin/bourse-provider
submit() { # NAME LINES...: prints the id
    printf 'name: %s\nlimit: 2m\nbudget: 0.50\ncap: 0.20\ncheckpoint: state\n' "$1" >"$1.yaml"
    printf '%s\n' "${@:2}" >>"$1.yaml"
    "$bourse" submit "$1.yaml" -y --anyway --quiet 2>submit.log || fail "submit: $(cat submit.log)"
}
job_is() { "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && grep -qE -- "$2" ps.json; }
rich() { BOURSE_MARKET=$work/rich/market.yaml BOURSE_KEY=$work/rich/key timeout 300 "$bourse" "$@"; }
rich_takes() { # NAME: the slot, until he cancels
    printf 'name: %s\nlimit: 10m\nbudget: 1\ncap: 0.30\nat_most: 1\nrun: [sleep, "500"]\n' "$1" >rich.yaml
    rich submit rich.yaml -y --anyway >rich.log 2>&1 || fail "$1: $(cat rich.log)"
}
rich_cancels() { rich cancel last >rich.log 2>&1 || fail "cancel: $(cat rich.log)"; }
reported() { "$bourse" report "$1" --json >report.json 2>/dev/null && grep -qE -- "$2" report.json; }
paid() { sed -E 's/.*"charged_micro":([0-9]+),"reserved.*/\1/' ps.json; } # of the job that was looked at last

market_up --credits 100 --slots 1 --programs sh,sleep
"$provider" drain --market "$market" >drain.log 2>&1 || fail "drain: $(cat drain.log)"
sed -i '/^interruptible:/d' "$market/provider/provider.yaml"
echo 'interruptible: {notice: 5s, minimum_run: 0s}' >>"$market/provider/provider.yaml"
ended "$agent" 60 || fail "the agent is still there after drain"
first_start() { "$provider" run --market "$market" >>agent.log 2>&1 & first=$!; started+=("$first"); }
second_start() { agent_start "$work/second"; second=$agent; }
first_start
until_true 60 offered 1 || fail "nothing on offer"
"$bourse" admin invite --role consumer --credits 20 >rich.invitation 2>/dev/null || fail "invite"
mkdir -m 700 rich
"$bourse" join "$(cat rich.invitation)" --key "$work/rich/key" --market "$work/rich/market.yaml" >join.log 2>&1 || fail "join: $(cat join.log)"
agent_join "$work/second" --name second <<END
slots: 1
programs: [sh, sleep]
END

# ---------------------------------------------------------------- what was saved goes on elsewhere

cat >count.sh <<'END'
n=0
[ ! -f "$BOURSE_CHECKPOINT/deep/n" ] || read -r n <"$BOURSE_CHECKPOINT/deep/n"
from=$n last=$((n + 20))
[ "$n" -gt 0 ] || last=1000000 # nothing was saved: it goes on until it is told to end
save() {
    mkdir -p "$BOURSE_CHECKPOINT/deep"
    echo "$n" >"$BOURSE_CHECKPOINT/deep/n"
    : >"$BOURSE_CHECKPOINT/empty"
    exit 85
}
trap save TERM
while [ "$n" -lt "$last" ]; do
    n=$((n + 1))
    echo "$n" >progress
    sleep 0.1
done
echo "$from $n ${BOURSE_RESTORED:-none}" >result
END
job=$(submit counts 'files: [count.sh]' 'run: [sh, count.sh]' 'outputs: [result]')
until_true 60 job_is "$job" '"running":1' || fail "it does not run: $(cat ps.json)"
until_true 60 runs_below "$first" sleep || fail "it does not count"
rich_takes long
until_true 60 job_is "$job" '"saved":1' || fail "no checkpoint is kept: $(cat ps.json)"
"$bourse" ps "$job" >ps.log || fail "ps"
grep -q '1 subtask has a checkpoint' ps.log || fail "ps does not say it: $(cat ps.log)"
[ "$(paid)" -gt 0 ] || fail "what was saved is not paid: $(cat ps.json)"
second_start
until_true 60 job_is "$job" '"state":"done"' || fail "it is not done: $(cat ps.json)"
! grep -q '"saved"' ps.json || fail "a checkpoint is kept of what is done: $(cat ps.json)"
"$bourse" fetch "$job" -o out >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
read -r from last by <"$(find out -name result)" || fail "no result"
[ "$from" -gt 0 ] && [ "$last" -eq $((from + 20)) ] && [ "$by" = 1 ] || fail "it went on from $from of $by, to $last"
until_true 60 reported "$job" '"checkpoints":\{"saved":1,"bytes":[1-9][0-9]*,"restored":1\}' || fail "report: $(cat report.json)"
[ "$(grep -o '"provider":"[^"]*"' report.json | sort -u | wc -l)" -eq 2 ] || fail "it ran on one machine: $(cat report.json)"
rich_cancels

# ---------------------------------------------------------------- what was not begins anew, and was free

kill "$second"
ended "$second" 60 || fail "the second agent does not end"
until_true 60 offered 1 || fail "the first agent's slot is not free"
job=$(submit heedless 'run: [sh, -c, "trap \"\" TERM; echo heard; while :; do sleep 0.1; done"]')
until_true 60 job_is "$job" '"running":1' || fail "it does not run: $(cat ps.json)"
until_true 60 runs_below "$first" sleep || fail "the trap is never set"
rich_takes longer
until_true 60 job_is "$job" '"running":0' || fail "its lease was not taken: $(cat ps.json)"
[ "$(paid)" -eq 0 ] || fail "it saved nothing, and is paid: $(cat ps.json)"
! grep -q '"saved"' ps.json || fail "a checkpoint of nothing: $(cat ps.json)"
until_true 60 reported "$job" 'preempted' || fail "the report does not say preempted: $(cat report.json)"
"$bourse" cancel "$job" >/dev/null 2>&1 || fail "cancel"
rich_cancels

# ---------------------------------------------------------------- an agent that is told to end takes its programs' state along

job=$(submit leaves 'run: [sh, -c, "trap \"echo here >state/n; exit 1\" TERM; [ ! -e state/n ] || exit 0; while :; do sleep 0.1; done"]')
until_true 60 job_is "$job" '"running":1' || fail "it does not run: $(cat ps.json)"
until_true 60 runs_below "$first" sleep || fail "the trap is never set"
kill "$first"
until_true 60 job_is "$job" '"saved":1' || fail "no checkpoint is kept: $(cat ps.json)"
[ "$(paid)" -eq 0 ] || fail "who left is paid: $(cat ps.json)"
ended "$first" 60 || fail "the agent does not end"
first_start
until_true 60 job_is "$job" '"state":"done"' || fail "it does not go on: $(cat ps.json)"

# ---------------------------------------------------------------- nor is it paid when the agent dies before it has saved

job=$(submit killed 'run: [sh, -c, "trap \"sleep 60\" TERM; sleep 0.1; while :; do sleep 0.1; done"]')
until_true 60 job_is "$job" '"running":1' || fail "it does not run: $(cat ps.json)"
until_true 60 runs_below "$first" sleep || fail "the trap is never set"
rich_takes longest
until_true 60 job_is "$job" '"taken":true' || fail "its lease was not taken: $(cat ps.json)"
kill -9 "$first"
wait "$first" 2>/dev/null || true
rich_cancels # he would have the second one's slot, too
second_start
until_true 60 job_is "$job" '"running":1' || fail "it does not go on: $(cat ps.json)"
[ "$(paid)" -eq 0 ] || fail "it is paid: $(cat ps.json)"
! grep -q '"saved"' ps.json || fail "a checkpoint from nowhere: $(cat ps.json)"
"$bourse" cancel "$job" >/dev/null 2>&1 || fail "cancel"

"$bourse" down --dir "$market" >down.log 2>&1 || fail "down: $(cat down.log)"
"$bin/bourse-broker" audit "$market" >audit.log 2>&1 || fail "audit: $(cat audit.log)"
echo ok
