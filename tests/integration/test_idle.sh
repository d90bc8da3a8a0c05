#!/usr/bin/env bash
# The owner in charge: devices that work only while nobody else uses the machine, through the real market. The sensors look
# at a folder that stands for the machine, so that this test presses the keys. What stands still is not paid, nothing is
# lost or called failed, and the audit agrees.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin idle "$1" bourse-audit
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
job_is() { "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && grep -qE -- "$2" ps.json; }
must_be() { until_true 60 job_is "$1" "$2" || fail "job $1 never was '$2': $(cat ps.json)"; }
submit() { # NAME LINES...: prints the id
    printf 'name: %s\nbudget: 1.00\nat_most: 1\n' "$1" >"$1.yaml"
    printf '%s\n' "${@:2}" >>"$1.yaml"
    "$bourse" submit "$1.yaml" -y --anyway --quiet 2>submit.log || fail "submit: $(cat submit.log)"
}
jobs_of() { perl "$support/descendants.pl" "$agent" "$1" | awk '{ print $1 }'; } # PROGRAM: their processes
all_are() { # STATE PROGRAM: every process of the program below the agent is in this state, and there is one
    local pid states=
    for pid in $(jobs_of "$2"); do states+=$(ps -o stat= -p "$pid" | cut -c1); done
    [ -n "$states" ] && [ -z "${states//$1/}" ]
}

# ---------------------------------------------------------------- the machine

machine=$work/machine
mkdir -p "$machine/dev/pts" "$machine/proc/1" "$machine/sys/class/power_supply"
touch "$machine/dev/tty1"
press_key() { touch -a "$machine/dev/tty1"; }
owner_comes() { # and types until owner_goes
    rm -f enough_keys
    while [ ! -e enough_keys ]; do
        press_key
        sleep 0.3 # between two keys
    done &
    typist=$!
    started+=("$typist")
}
owner_goes() { touch enough_keys && wait "$typist"; }
spin() { # TICKS: others use so much of the processors
    ticks=$((ticks + $1))
    echo "cpu  $ticks 0 0 1000 0 0 0 0 0 0" >"$machine/proc/stat.new"
    mv "$machine/proc/stat.new" "$machine/proc/stat"
}
ticks=0
spin 0
echo '1 (init) S 0 1 1 0 -1 4194560 1 2 3 4 0 0 0 0 20 0 1 0 1 1 1' >"$machine/proc/1/stat"

mkdir -m 700 looking
echo 'idle: {after: 10s, inptu: true}' >looking/provider.yaml
expect 2 'provider.yaml:1: unknown key "inptu"; did you mean "input"' "$provider" run --check-config --dir looking
echo "idle: {root: $work/none}" >looking/provider.yaml
expect 2 'idle: no terminal, USB keyboard.*always counts as in use; .input: false. below .idle:. lifts this' \
    "$provider" run --check-config --dir looking

market_up --credits 100 --slots 1 --programs sh,sleep
own 0 'drained' drain
ended "$agent" 60 || fail "the agent is still there after drain"
cat >>"$folder/provider.yaml" <<END
idle: {after: 10s, load: 0.5, programs: [steam], give_back: 1h, root: $machine}
END
own 0 'the config is fine' run --check-config
agent_start "$folder"

# ---------------------------------------------------------------- nothing is offered before the machine was idle

must_stand '"connected":true'
must_stand '"state":"offering"'
grep -q '"order":"work"' status.json || fail "it offers without an order: $(cat status.json)"
own 0 'idle +works after 10s without a sign of use; watched: input at 1 terminal, 0 USB' status

# ---------------------------------------------------------------- a key stops everything within a second

cat >count.sh <<'END'
n=0
while [ "$n" -lt 30 ]; do
    n=$((n + 1))
    sleep 0.1
done
echo "$n" >result
END
counts() { all_are S sh; } # it waits for a sleep
began_ms=$(now_ms)
job=$(submit counts 'limit: 14s' 'term: 10m' 'files: [count.sh]' 'run: [sh, count.sh]' 'outputs: [result]')
must_be "$job" '"running":1'
# The majority of three: other programs of this machine may come between.
in_time=0 late=0
stalls_begin
while [ "$in_time" -lt 2 ] && [ "$late" -lt 2 ]; do
    until_true 60 counts || fail "it does not count"
    read -r first _ < <(jobs_of sh)
    [ "$(ps -o cls= -p "$first" | tr -d ' ')" = IDL ] || fail "a program of a job has policy $(ps -o cls= -p "$first")"
    stalled=$(stalled_ms)
    pressed_ms=$(now_ms)
    press_key
    until_true 60 all_are T sh || fail "a key does not stop the job: $(ps -ef --forest | tail -n 40)"
    took_ms=$(($(now_ms) - pressed_ms - ($(stalled_ms) - stalled)))
    echo "a key stopped the job after $took_ms ms"
    owner_comes
    if [ "$took_ms" -le 1000 ]; then in_time=$((in_time + 1)); else late=$((late + 1)); fi
    must_stand '"state":"in-use"'
    own 0 'state +paused: the machine is in use: somebody used a key, the mouse or a terminal [0-9]+ s ago; offers again after 10s of idle' status
    must_stand '"standing":false'
    own 0 'agent +somebody uses the machine' why
    # The owner stays longer than the job's limit. The job stands still, is not ended, and goes on.
    while [ $(($(now_ms) - pressed_ms)) -lt 15000 ]; do
        sleep 0.5 # the owner types
        all_are T sh || fail "the job runs while the owner types"
    done
    owner_goes
done
[ "$in_time" -eq 2 ] || fail "a key stopped the job only after a second or more"
must_be "$job" '"state":"done"'
ended_ms=$(now_ms)
"$bourse" fetch "$job" -o counted >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
[ "$(cat "$(find counted -name result)")" = 30 ] || fail "the job lost its place: $(find counted -name result -exec cat {} +)"

# Frozen time is not paid: the job ran for 3 to 14 s, and the market had it for longer than 38 s.
[ $((ended_ms - began_ms)) -gt 38000 ] || fail "the owner stayed for too short a time: $((ended_ms - began_ms)) ms"
charged=$(sed -E 's/.*"charged_micro":([0-9]+),.*/\1/' ps.json)
# 0.10 credits per slot-hour are 27.8 millionths a second.
echo "the market had it for $((ended_ms - began_ms)) ms, and $charged millionths of a credit were paid"
[ "$charged" -ge 60 ] && [ "$charged" -le 420 ] || fail "2 to 15 s of work cost $charged millionths of a credit"

# ---------------------------------------------------------------- other signs

must_stand '"state":"offering"'
mkdir "$machine/proc/77"
echo '77 (steam) S 1 1 1 0 -1 4194560 1 2 3 4 0 0 0 0 20 0 1 0 1 1 1' >"$machine/proc/77/stat"
must_stand '"state":"in-use"'
own 0 'in use: the program steam runs;' status
printf 'run: [sh]\n' >idle.yaml
expect_soon 5 'no device is offered now: the one agent that is connected is paused' "$bourse" explain idle.yaml
rm -r "$machine/proc/77"
must_stand '"state":"offering"'
load() { # others use 2.5 cores
    spin 25
    stands '"state":"in-use"'
}
until_true 60 load || fail "load of others is not seen: $(cat status.json)"
own 0 'in use: other programs use(d)? [0-9]\.[0-9] cores' status
must_stand '"state":"offering"'

# ---------------------------------------------------------------- the owner's word is stronger

owner_comes
must_stand '"state":"in-use"'
own 0 'offering again' resume
own 0 'idle +works after 10s.*and now by .resume. until the machine has been idle' status
grep -q 'state *offering' out || fail "status after resume: $(cat out)"
owner_goes
must_stand '"resumed":false'
press_key
must_stand '"state":"in-use"'
must_stand '"state":"offering"'
own 0 'paused until .bourse-provider resume' pause
must_stand '"order":"work"'
own 0 'state +paused until' status
press_key
must_stand '"order":"hold"'
own 0 'state +paused until' status
must_stand '"order":"work"'
stands '"state":"paused"' || fail "an idle machine ends the owner's pause: $(cat status.json)"
own 0 'offering again' resume

# ---------------------------------------------------------------- programs that continue one another do not go on

job=$(submit evades 'limit: 2m' 'run: [sh, -c, "while :; do kill -CONT -1; done & while :; do kill -CONT -1; done"]')
until_true 60 runs_below "$agent" sh || fail "it does not run: $(cat ps.json)"
owner_comes
stopped() { ! runs_below "$agent" sh || all_are T sh; }
until_true 20 stopped || fail "the program still runs"
"$bourse" cancel "$job" >/dev/null 2>&1 || fail "cancel"
owner_goes

# ---------------------------------------------------------------- an owner who stays: the work goes elsewhere

kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
sed -i 's/give_back: 1h/give_back: 1s/' "$folder/provider.yaml"
agent_start "$folder"
first=$agent
must_stand '"state":"offering"'
agent_join "$work/second" --name second <<END
slots: 1
programs: [sh, sleep]
END
cat >save.sh <<'END'
[ ! -e state/n ] || { echo "went on" >result; exit 0; }
trap 'echo here >state/n; exit 85' TERM
while :; do sleep 0.1; done
END
job=$(submit saves 'limit: 2m' 'checkpoint: state' 'files: [save.sh]' 'run: [sh, save.sh]' 'outputs: [result]')
must_be "$job" '"running":1'
until_true 60 runs_below "$first" sleep || fail "the trap is never set"
owner_comes
must_be "$job" '"saved":1'
must_stand '"order":"return"'
own 0 'work went back to the market' status
! runs_below "$first" sleep || fail "the program is still there"
agent_start "$work/second"
must_be "$job" '"state":"done"'
"$bourse" fetch "$job" -o saved >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
grep -q 'went on' "$(find saved -name result)" || fail "the state was lost"
owner_goes

failed=$(sqlite3 -readonly "$market/ledger.db" "SELECT COUNT(*) FROM settlements WHERE failed > 0")
[ "$failed" -eq 0 ] || fail "subtasks are called failed because an owner used the machine"
kill "$first" "$agent"
ended "$first" 60 || fail "the first agent does not end"
ended "$agent" 60 || fail "the second agent does not end"
agent=
market_audit
echo "the owner in charge: ok"
