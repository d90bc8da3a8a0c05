#!/usr/bin/env bash
# The owner's commands of a running agent: status, pause, resume, drain. A pause has withdrawn the asks when it returns and
# outlives the agent; what runs is finished or given to others, and no work is lost, paid twice or called failed.
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin owner "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"

provider=$bin/bourse-provider
folder=$market/provider
own() { # STATUS PATTERN COMMAND OPTION...: of the agent in the market's folder
    local want=$1 pattern=$2 command=$3
    shift 3
    expect "$want" "$pattern" "$provider" "$command" --dir "$folder" "$@"
}
stands() { # PATTERN: so says status
    "$provider" status --json --dir "$folder" >status.json 2>status.err && grep -qE -- "$1" status.json
}
must_stand() { until_true 60 stands "$1" || fail "status never said '$1': $(cat status.json status.err)"; }
fills() { sqlite3 -readonly "$market/ledger.db" "SELECT COUNT(*) FROM fills WHERE lower(hex(job)) = '$1'"; }
results() { # JOB_ID WHERE: how many
    sqlite3 -readonly "$market/ledger.db" "SELECT COUNT(*) FROM results WHERE lower(hex(job)) = '$1' AND $2"
}
submit() { # NAME SUBTASKS PROGRAM: prints the id
    cat >"$1.yaml" <<END
name: $1
array: 0-$(($2 - 1))
run: [sh, -c, '$3']
at_most: 1
limit: 1m
budget: 1.00
END
    "$bourse" submit "$1.yaml" -y --anyway --quiet 2>submit.log || fail "submit: $(cat submit.log)"
}
job_is() { # JOB_ID PATTERN
    "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && grep -qE -- "$2" ps.json
}
must_end() { until_true 60 job_is "$1" '"state":"done"' || fail "job $1 is not done: $(cat ps.json)"; }

# ---------------------------------------------------------------- nobody there, and wrong words
# A folder that is no agent's: what to do is said, and nothing is made there.
expect 1 "$work/none: no such folder; .bourse-provider join INVITATION --dir $work/none. makes it" "$provider" run --dir "$work/none"
[ ! -e "$work/none" ] || fail "run made a folder: $(ls -la "$work/none")"
mkdir -m 700 "$work/none"
expect 1 "no key in $work/none; .bourse-provider join INVITATION --dir $work/none. makes one" "$provider" run --dir "$work/none"
[ -z "$(ls -A "$work/none")" ] || fail "run left files where no agent is: $(ls -la "$work/none")"

mkdir -m 700 nobody
expect 3 'no agent runs in .*bourse-provider run' "$provider" status --dir nobody
expect 3 'no agent runs in' "$provider" drain --dir nobody/further
! grep -q draining err || fail "nobody drains: $(cat err)"
expect 3 '"error":.*"name":"NOT_FOUND".*"exit":3' "$provider" status --json --dir nobody
[ ! -s err ] || fail "an error as JSON is on stderr too: $(cat err)"
expect 2 '"exit":2' "$provider" earnings --json --dir nobody
expect 0 '^bourse-provider [0-9]' "$provider" --version
expect 2 'dir nowhere: No such file' "$provider" run --check-config --dir nowhere
expect 2 'choose one' "$provider" pause --now --after-running --dir nobody
expect 2 'choose one' "$provider" pause --now --after-checkpoint --dir nobody
expect 2 '"2" has no unit' "$provider" pause --for 2 --dir nobody
expect 2 'from 1ms to 366d' "$provider" pause --for 400d --dir nobody
expect 2 'run has no --for' "$provider" run --for 2h --dir nobody
expect 2 'did you mean .bourse-provider pause.' "$provider" puase
expect 2 'one word too many' "$provider" resume now --dir nobody
for command in status pause resume drain; do
    expect 0 "^bourse-provider $command" "$provider" "$command" --help
done

# ---------------------------------------------------------------- what would be offered, and where each figure is from

mkdir -m 700 looking
cat >looking/provider.yaml <<'END'
name: attic
region: eu-west
programs: [sh]
END
if "$provider" probe --dir looking >out 2>err; then
    for line in 'label +attic +from the config' 'region +eu-west +from the config' 'gflops +[0-9]+ GFLOPS +measured here' \
        'bandwidth +[0-9.]+ [KMGT]iB/s +measured here' 'instrument +cpu\.[^ ]+ +read from the machine' \
        'isolation +[1-9] +found out by a trial jail' 'executor +command +what this agent runs' \
        'simulated +false +' 'found +[0-9]+ cores?, [0-9]+ threads?, [0-9]+ packages?, '; do
        grep -qE -- "$line" out || fail "probe does not say '$line': $(cat out)"
    done
    expect 0 '"name":"gflops","number":[0-9]+,"source":"measured"' "$provider" probe --json --dir looking
    sources=$(grep -o '"source":' out | wc -l)
    attributes=$(grep -oE '"(text|number)":[^,]*,"source":' out | wc -l)
    if [ "$sources" -ne "$attributes" ] || [ "$sources" -lt 8 ]; then
        fail "an attribute is without its source: $(cat out)"
    fi
fi

# What is no config, or none for this machine, is said before anything starts.
echo 'slots: 4096' >looking/provider.yaml
expect 2 'looking/provider.yaml:1: slots: 4096, but this process may use [0-9]+ core' "$provider" run --check-config --dir looking
expect 2 'slots: 4096, but this process may use [0-9]+ core' "$provider" run --dir looking
expect 4 'slots: 4096, but this process may use [0-9]+ core' "$provider" probe --dir looking
echo 'slots: 1' >looking/provider.yaml
expect 0 'the config is fine; no market in .*/looking/market.yaml' "$provider" run --check-config --dir looking
mkdir -m 755 open
for spool in /etc /etc/hostname "$work/open" /etc/bourse/spool /dev/null/spool; do
    echo "spool: $spool" >looking/provider.yaml
    expect 2 "spool: $spool.*the spool is a folder of the agent's own" "$provider" run --check-config --dir looking
done
echo 'spool: fresh/too' >looking/provider.yaml
expect 0 '' "$provider" run --check-config --dir looking
[ ! -e looking/fresh ] || fail "a check makes folders"
echo 'slost: 1' >looking/provider.yaml
for command in 'run --check-config' run probe why earnings; do
    # shellcheck disable=SC2086
    expect 2 'did you mean "slots"' "$provider" $command --dir looking
done
if is_root user-of-the-agent; then
    echo 'user: root' >looking/provider.yaml
    expect 2 'never run as root: name another user' "$provider" run --check-config --dir looking
    ! grep -q useradd err || fail "root is to be made: $(cat err)"
fi

# ---------------------------------------------------------------- how it stands

market_up --credits 100 --slots 1 --programs sh,sleep,true
[ "$(stat -c %a "$folder/control.sock")" = 600 ] || fail "the socket has mode $(stat -c %a "$folder/control.sock")"
must_stand '"state":"offering"'
own 0 'state +offering' status
grep -qE 'asks +1 slot of cpu\.' out || fail "status says: $(cat out)"
grep -qE 'market +connected for' out || fail "status says: $(cat out)"
[ "$(number pid status.json)" -eq "$agent" ] || fail "status names another process: $(cat status.json)"
# A look beside it shows the same and takes nothing away from it.
find "$folder" -maxdepth 1 | sort >before
own 0 'instrument +cpu' probe
! grep -q 'none: ' out || fail "a look beside an agent has fewer walls: $(cat out)"
find "$folder" -maxdepth 1 | sort >after
cmp before after || fail "a look leaves something: $(diff before after)"
exec 9>>"$folder/probe-LOCK"
chown --reference="$folder" "$folder/probe-LOCK"
flock 9
own 1 'another probe' probe
exec 9>&-
rm "$folder/probe-LOCK"
[ "$("$bourse" run -y -- sh -c "echo seen" 2>run.log)" = seen ] || fail "no work is done after a look: $(cat run.log)"

# ---------------------------------------------------------------- a pause has withdrawn the asks when it returns

own 0 'paused until .bourse-provider resume' pause
job=$(submit waits 1 'echo done')
[ "$(fills "$job")" -eq 0 ] || fail "a job submitted after the pause landed on the paused agent"
own 0 'state +paused until' status
grep -q 'not standing' out || fail "status of a paused agent says: $(cat out)"
printf 'run: [sh]\n' >idle.yaml
expect 5 'no device is offered now; provider .* withdrew its offer at' "$bourse" explain idle.yaml
job_is "$job" '"running":0,' || fail "the job runs: $(cat ps.json)"

# It outlives the agent, however that ends.
kill -9 "$agent"
ended "$agent" 60 || fail "the agent does not die"
agent_start "$folder"
must_stand '"connected":true'
stands '"state":"paused"' || fail "a restart forgot the pause: $(cat status.json)"
[ "$(fills "$job")" -eq 0 ] || fail "a restart made the paused agent offer"
own 0 'offering again' resume
must_end "$job"
[ "$(fills "$job")" -eq 1 ] || fail "$(fills "$job") fills"

# For a while: it ends by itself, and its end is not forgotten by a restart either.
own 0 'paused until 20' pause --for 2h
kill -TERM "$agent"
wait "$agent" || fail "the agent ended with $?"
agent_start "$folder"
must_stand '"until_ms":[1-9]'
own 0 'paused until 20[-0-9]+ [0-9]+:[0-9]+:[0-9]+' pause --for 300ms
must_stand '"state":"offering"'
[ ! -e "$folder/paused" ] || fail "the pause is over and still kept"

# ---------------------------------------------------------------- what runs is finished, what waits goes back

gate() { until_true 60 job_is "$1" '"running":[1-9]' || fail "job $1 does not run: $(cat ps.json)"; }
has_ended_work() { stands '"running":0,"queued":0,"owed":0'; }
job=$(submit finished 4 'sleep 2')
gate "$job"
own 0 '1 subtask still runs' pause
until_true 60 has_ended_work || fail "a paused agent goes on: $(cat status.json)"
[ "$(results "$job" 'status = 0')" -ge 1 ] || fail "what ran was not finished"
[ "$(results "$job" 'status = 0')" -lt 4 ] || fail "a paused agent did all of it"
own 0 '' resume
must_end "$job"

# --now: what runs is cancelled and runs again.
job=$(submit cancelled 2 'sleep 4')
gate "$job"
must_stand '"jails":1'
own 0 'paused' pause --now
until_true 60 has_ended_work || fail "pause --now does not end what runs: $(cat status.json)"
[ "$(results "$job" 'outcome = 14 AND status = 2')" -ge 1 ] || fail "nothing was cancelled"
own 0 '' resume
must_end "$job"

# --after-checkpoint: what can be saved is saved, and goes on from there.
cat >save.sh <<'END'
[ ! -e state/n ] || { echo "went on" >result; exit 0; }
trap 'echo here >state/n; exit 85' TERM
while :; do sleep 0.1; done
END
printf 'name: saves\nlimit: 2m\nbudget: 1\ncheckpoint: state\nfiles: [save.sh]\nrun: [sh, save.sh]\noutputs: [result]\n' >saves.yaml
job=$("$bourse" submit saves.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
gate "$job"
until_true 60 runs_below "$agent" sleep || fail "the trap is never set"
own 0 'paused' pause --after-checkpoint
until_true 60 has_ended_work || fail "pause --after-checkpoint does not end what runs: $(cat status.json)"
until_true 60 job_is "$job" '"saved":1' || fail "nothing was saved: $(cat ps.json)"
own 0 '' resume
must_end "$job"
"$bourse" fetch "$job" -o saved >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
grep -q 'went on' "$(find saved -name result)" || fail "the state was lost"

# ---------------------------------------------------------------- drain loses no work

job=$(submit drained 3 'sleep 2')
gate "$job"
own 0 'drained: [1-9][0-9]* results? accepted' drain
ended "$agent" 60 || fail "the agent is still there after drain"
wait "$agent" || fail "a drained agent ended with $?"
[ ! -e "$folder/control.sock" ] || fail "a socket is left behind"
[ "$(results "$job" 'status = 0')" -ge 1 ] || fail "what ran was not finished"
own 3 'no agent runs in' status
agent_start "$folder"
must_stand '"state":"(offering|asking)"' # a drain is not kept
must_end "$job"
[ "$(results "$job" 'status = 0')" -eq 3 ] || fail "$(results "$job" 'status = 0') results"
failed=$(sqlite3 -readonly "$market/ledger.db" "SELECT COUNT(*) FROM settlements WHERE failed > 0 OR cancelled > 0")
[ "$failed" -eq 0 ] || fail "subtasks are called failed because an owner paused"

# The watched status comes again, and ends with the agent.
[ "$("$provider" status --watch --json --dir "$folder" | head -n 3 | grep -c '"state":"')" -eq 3 ] || fail "status is not watched"

# ---------------------------------------------------------------- the broker away

kill -STOP "$broker"
own 6 'the broker has not confirmed that the asks are gone' pause
grep -q '^paused' out || fail "pause says: $(cat out)"
kill -CONT "$broker"
must_stand '"connected":true'
job=$(submit alone 1 'echo done')
[ "$(fills "$job")" -eq 0 ] || fail "the asks outlived a pause that the broker heard late"
own 0 '' resume
must_end "$job"

kill -TERM "$agent"
wait "$agent" || fail "the agent ended with $?"
agent=
market_audit
echo "the owner's word: ok"
