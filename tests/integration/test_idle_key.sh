#!/usr/bin/env bash
# A key that the owner presses stops every job within a second, which is measured; the job stands still for longer than its
# limit, goes on, and that time is not paid. What else the owner decides is in test_idle.sh.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin idle_key "$1" bourse-audit
# shellcheck source=tests/support/owner_machine.sh
. "$support/owner_machine.sh"

market_up --credits 100 --slots 1 --programs sh,sleep
own 0 'drained' drain
ended "$agent" 60 || fail "the agent is still there after drain"
cat >>"$folder/provider.yaml" <<END
idle: {after: 10s, root: $machine}
END
agent_start "$folder"
must_stand '"state":"offering"'

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
job=$(submit counts 'limit: 10s' 'term: 10m' 'files: [count.sh]' 'run: [sh, count.sh]' 'outputs: [result]')
must_be "$job" '"running":1'
# The majority of three: other programs of this machine may come between.
in_time=0 late=0 stays_ms=11000
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
    # The first time, the owner stays longer than the job's limit. The job stands still, is not ended, and goes on.
    while [ $(($(now_ms) - pressed_ms)) -lt "$stays_ms" ]; do
        sleep 0.5 # the owner types
        all_are T sh || fail "the job runs while the owner types"
    done
    owner_goes
    stays_ms=2000
done
[ "$in_time" -eq 2 ] || fail "a key stopped the job only after a second or more"
must_be "$job" '"state":"done"'
ended_ms=$(now_ms)
"$bourse" fetch "$job" -o counted >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
[ "$(cat "$(find counted -name result)")" = 30 ] || fail "the job lost its place: $(find counted -name result -exec cat {} +)"

# Frozen time is not paid: the job ran for 3 to 10 s, and the market had it for longer than 29 s.
[ $((ended_ms - began_ms)) -gt 29000 ] || fail "the owner stayed for too short a time: $((ended_ms - began_ms)) ms"
charged=$(sed -E 's/.*"charged_micro":([0-9]+),.*/\1/' ps.json)
# 0.10 credits per slot-hour are 27.8 millionths a second.
echo "the market had it for $((ended_ms - began_ms)) ms, and $charged millionths of a credit were paid"
[ "$charged" -ge 60 ] && [ "$charged" -le 310 ] || fail "2 to 11 s of work cost $charged millionths of a credit"
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
agent=
market_audit
echo "a key of the owner: ok"
