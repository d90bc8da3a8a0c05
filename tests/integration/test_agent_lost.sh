#!/usr/bin/env bash
# Agents that die, or fall silent, in the middle of work: their subtasks start elsewhere within 5 s, nothing is paid twice,
# no process and no control group stays behind; and one that loses its launcher or a worker goes on, or says why not.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin agent-lost "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"
elsewhere_ms=5000 # promise P18: from the loss until a second attempt has started
orphans_s=2

programs='sh,date,sleep,setsid,echo,true'
market_up --credits 100 --slots 2 --programs "$programs"
first=$agent
agent_join "$work/second" --name second <<END
slots: 2
programs: [${programs//,/, }]
END

# The attempts that were accepted: "INDEX ATTEMPT AGENT".
accepted() { # JOB_ID
    sqlite3 -readonly -separator ' ' "$market/ledger.db" "
        SELECT idx, attempt, (SELECT name FROM accounts WHERE key = provider) FROM results
        WHERE status = 0 AND lower(hex(job)) = '$1' ORDER BY idx"
}
pause_second() { "$bin/bourse-provider" "$1" --dir "$work/second" >pause.log 2>&1 || fail "$1: $(cat pause.log)"; }
running() { # JOB_ID COUNT
    "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && [ "$(number running ps.json)" -eq "$2" ]
}
submit() { # NAME SUBTASKS SECONDS: prints the id. The program stamps its start and leaves children behind.
    cat >"$1.yaml" <<END
name: $1
array: 0-$(($2 - 1))
run: [sh, -c, 'date +%s%N; setsid sleep 297 & sleep 298 & sleep $3; echo done']
at_most: 2
limit: 2m
retries: 10
budget: ${4:-1.00}
END
    "$bourse" submit "$1.yaml" -y --quiet 2>submit.log || fail "submit: $(cat submit.log)"
}
is_done() {
    "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && grep -q '"state":"done"' ps.json
}
must_end() { # JOB_ID SECONDS
    until_true "$2" is_done "$1" || fail "job $1 is not done: $(cat ps.json)"
}
output() { "$bourse" logs "$1" "$2" 2>/dev/null; }

named() { # AGENT NAME: process ids below an agent
    descendants "$1" | while read -r pid _; do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != "$2" ] || echo "$pid"
    done
}
workers_of() { named "$1" .bourse-worker; }

# ---------------------------------------------------------------- killed in the middle

stalls_begin
agent_start "$work/second"
second=$agent
started+=("$first" "$second")
until_true 60 offered 4 || fail "not all is on offer"
pause_second pause # so that the first one gets the job, and the other is there when it is lost
job=$(submit lost 2 20) # longer than what follows, on a slow machine, too
until_true 60 running "$job" 2 || fail "the job does not run: $(cat ps.json)"
pause_second resume
until_true 60 offered 2 || fail "the second agent offers nothing"

descendants "$first" >had
[ "$(wc -l <had)" -ge 6 ] || fail "an agent with two jails has only $(wc -l <had) processes: $(cat had)"
stalled_before_ms=$(stalled_ms) killed_ms=$(now_ms)
kill -9 "$first"
nobody_left() { [ -z "$(survivors <had)" ]; }
until_true "$orphans_s" nobody_left || fail "$orphans_s s after the agent was killed these are alive: $(survivors <had)"
must_end "$job" 60
[ "$(accepted "$job" | cut -d' ' -f1,3)" = "$(printf '0 second\n1 second')" ] ||
    fail "the subtasks of the lost agent were done by: $(accepted "$job")"
slowest_ms=0 elsewhere_ms=$((elsewhere_ms + $(stalled_ms) - stalled_before_ms))
for index in 0 1; do
    began_ms=$(($(output "$job" "$index" | head -n 1) / 1000000 - killed_ms))
    if [ "$began_ms" -le 0 ] || [ "$began_ms" -gt "$elsewhere_ms" ]; then
        fail "subtask $index started elsewhere after $began_ms ms, limit $elsewhere_ms"
    fi
    [ "$began_ms" -le "$slowest_ms" ] || slowest_ms=$began_ms
done

# ---------------------------------------------------------------- killed, and started again at once

# The groups of the dead agent are taken away at its next start, if nobody did before.
groups() { find /sys/fs/cgroup -type d -path '*bourse*' 2>/dev/null | sort; }
groups_of() { # PID: the bourse groups of all its descendants
    descendants "$1" | while read -r pid _; do
        sed -E 's/^[^:]*:[^:]*://' "/proc/$pid/cgroup" 2>/dev/null | grep bourse || true
    done | sort -u
}
agent_start "$market/provider"
first=$agent
started+=("$first")
until_true 60 offered 4 || fail "the first agent did not come back with its slots"
job=$(submit again 4 2)
until_true 60 running "$job" 2 || fail "the job does not run: $(cat ps.json)"
groups_of "$first" >jailed_in
kill -9 "$first"
ended "$first" 60 || fail "the agent does not die"
agent_start "$market/provider"
first=$agent
started+=("$first")
must_end "$job" 60
[ "$(accepted "$job" | wc -l)" -eq 4 ] || fail "accepted: $(accepted "$job")"
left_behind() { while read -r group; do groups | grep -F -- "$group"; done <jailed_in; }
groups_gone() { [ -z "$(left_behind)" ]; }
until_true 60 groups_gone || fail "control groups of the killed agent are left: $(left_behind)"

# ---------------------------------------------------------------- started twice by mistake

job=$(submit twice 2 3)
until_true 60 running "$job" 2 || fail "the job does not run: $(cat ps.json)"
for folder in "$market/provider" "$work/second"; do
    "$bin/bourse-provider" run --dir "$folder" >twice.txt 2>&1 && fail "two agents run in $folder"
    grep -q 'another agent runs in' twice.txt || fail "a second agent in $folder says: $(cat twice.txt)"
done
# At once: it does not wait for the control groups of the first, as it would for those of one that has ended, 5 s.
# Two of three: other programs of this machine may come between.
at_once=0
for _ in 1 2 3; do
    if ! timeout 5 "$bin/bourse-provider" run --dir "$market/provider" >twice.txt 2>&1 && grep -q 'another agent runs in' twice.txt; then
        at_once=$((at_once + 1))
    fi
done
[ "$at_once" -ge 2 ] || fail "a second agent waits before it says that there is another: $(cat twice.txt)"
must_end "$job" 60
[ "$(accepted "$job" | cut -d' ' -f1,2)" = "$(printf '0 1\n1 1')" ] ||
    fail "an agent started twice disturbed the work of the first: $(accepted "$job")"

# ---------------------------------------------------------------- stopped for ten seconds, then continued

job=$(submit silent 2 15) # long enough for a look at the leases, each ten seconds
until_true 60 running "$job" 2 || fail "the job does not run: $(cat ps.json)"
silent=$second
[ -n "$(workers_of "$second")" ] || silent=$first
kill -STOP "$silent"
stopped_ms=$(now_ms)
"$bourse" wait "$job" >wait.out 2>wait.err &
waiter=$!
sleep 10 # the silence is the input of this test
until_true 60 grep -qE '^provider .* is silent.*its subtasks wait for other slots' wait.err ||
    fail "who waits for the job does not hear of the silence: $(cat wait.out wait.err)"
kill -CONT "$silent"
ended "$waiter" 60 || fail "the wait does not end: $(cat wait.err)"
[ "$(grep -c 'is silent' wait.err)" -eq 1 ] || fail "the silence is not said once: $(cat wait.err)"
must_end "$job" 60
[ "$(accepted "$job" | wc -l)" -eq 2 ] || fail "accepted: $(accepted "$job")"
for index in 0 1; do
    [ "$(output "$job" "$index" | tail -n 1)" = "done" ] || fail "output $index: $(output "$job" "$index")"
done
[ "$(($(now_ms) - stopped_ms))" -le 90000 ] || fail "the job of the silent agent took too long"
until_true 60 offered 4 || fail "the agent that was stopped did not come back with its asks"

# ---------------------------------------------------------------- a worker killed, a launcher killed

job=$(submit workers 4 2)
until_true 60 running "$job" 2 || fail "the job does not run: $(cat ps.json)"
find_workers() { victims=$(workers_of "$first"; workers_of "$second") && [ -n "$victims" ]; }
until_true 60 find_workers || fail "no worker runs: $(ps -eo pid,ppid,comm)"
for pid in $victims; do
    kill -9 "$pid" 2>/dev/null || true
done
must_end "$job" 60
kill -0 "$first" || fail "the first agent ended with its worker"
kill -0 "$second" || fail "the second agent ended with its worker"

# Such a crash is the provider's, and counted apart from the program's own failures.
apart() { # NAME RETRIES CRASH_LIMIT PROGRAM: prints the id
    printf '%s\n' "name: $1" "run: [sh, -c, '$4']" "retries: $2" "crash_limit: $3" 'limit: 1m' 'budget: 1.00' >"$1.yaml"
    "$bourse" submit "$1.yaml" -y --quiet 2>submit.log || fail "submit: $(cat submit.log)"
}
tries() { sqlite3 -readonly "$market/ledger.db" "SELECT group_concat(outcome) FROM results WHERE lower(hex(job)) = '$1'"; }
has_failed() { "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && grep -q '"state":"failed"' ps.json; }
kill_worker() { # that of the job that runs: its jail may still be on its way
    until_true 60 find_workers || fail "no worker runs: $(ps -eo pid,ppid,comm)"
    for pid in $victims; do
        kill -9 "$pid" 2>/dev/null || true
    done
}
own=$(apart own 1 5 'exit 3')
until_true 60 has_failed "$own" || fail "a program that fails is tried on: $(cat ps.json)"
[ "$(tries "$own")" = 1,1 ] || fail "one retry, whatever the crash limit, not: $(tries "$own")"
crash=$(apart crash 5 0 'sleep 20')
for job in "$crash" again; do # the job that continues it has its limit
    if [ "$job" = again ]; then
        job=$("$bourse" resume "$crash" -y --quiet 2>submit.log) || fail "resume: $(cat submit.log)"
    fi
    until_true 60 running "$job" 1 || fail "the job does not run: $(cat ps.json)"
    kill_worker
    until_true 60 has_failed "$job" || fail "no crash was to be borne: $(cat ps.json)"
    [ "$(tries "$job")" = 15 ] || fail "one try, whatever the retries, not: $(tries "$job")"
done
borne=$(apart borne 0 1 'sleep 3')
until_true 60 running "$borne" 1 || fail "the job does not run: $(cat ps.json)"
kill_worker
must_end "$borne" 60

job=$(submit launchers 4 2)
until_true 60 running "$job" 2 || fail "the job does not run: $(cat ps.json)"
for pid in $(named "$first" bourse-launcher; named "$second" bourse-launcher); do
    kill -9 "$pid" 2>/dev/null || true # of a fork that is not yet a jail, nothing may be left
done
# Without a launcher an agent cannot start jails. It ends with its reason, and its supervisor starts it again.
for name in first second; do
    pid=${!name}
    ended "$pid" 60 || fail "the agent without a launcher goes on; see its log"
done
grep -h launcher "$work"/agent-*.log | grep -q error || fail "the agents do not say what became of their launchers"
agent_start "$market/provider"
first=$agent
agent_start "$work/second"
second=$agent
started+=("$first" "$second")
must_end "$job" 60

"$bourse" balance --json >balance.json
[ "$(number held_micro balance.json)" -eq 0 ] || fail "money is still held: $(cat balance.json)"
market_audit
echo "started elsewhere after at most $slowest_ms ms; killed, stopped, without worker, without launcher: ok in $SECONDS s"
