#!/usr/bin/env bash
# The owner in charge: devices that work only while nobody else uses the machine, through the real market. The sensors look
# at a folder that stands for the machine, so that this test presses the keys. What stands still is not paid, nothing is
# lost or called failed, and the audit agrees.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin idle "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"

# shellcheck source=tests/support/owner_machine.sh
. "$support/owner_machine.sh"

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

# ---------------------------------------------------------------- other signs

must_stand '"state":"offering"'
mkdir "$machine/proc/77"
echo '77 (steam) S 1 1 1 0 -1 4194560 1 2 3 4 0 0 0 0 20 0 1 0 1 1 1' >"$machine/proc/77/stat"
must_stand '"state":"in-use"'
own 0 'in use: the program steam runs;' status
printf 'run: [sh]\n' >idle.yaml
expect_soon 5 'no device is offered now; provider .* withdrew its offer at' "$bourse" explain idle.yaml
rm -r "$machine/proc/77"
must_stand '"state":"offering"'
spun_us=${EPOCHREALTIME/[.,]/}
load() { # others use 2.5 cores, however long a look takes
    local now_us=${EPOCHREALTIME/[.,]/}
    spin $(((now_us - spun_us) / 4000)) # 100 ticks are a second of one core
    spun_us=$now_us
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
