#!/usr/bin/env bash
# The broker is killed at random instants while a job runs and money is issued; the agent and the client stay up.
# Afterwards whatever was accepted is there, the job is whole, and the audit and a replay agree. BOURSE_SEED repeats a run.
set -euo pipefail
bin=$(realpath "$1")
bourse=$bin/bourse
for program in bourse-broker bourse-provider bourse-worker bourse-audit; do
    [ -x "$bin/$program" ] || { echo "skipped: no $program"; exit 77; }
done
command -v bwrap >/dev/null || { echo "skipped: no bubblewrap"; exit 77; }
if [ "$(id -u)" -eq 0 ] && ! id bourse >/dev/null 2>&1; then
    echo "skipped: no user bourse for the agent"
    exit 77
fi
seed=${BOURSE_SEED:-$$}
RANDOM=$seed
subtasks=${BOURSE_SUBTASKS:-160} kills_most=${BOURSE_KILLS:-30} kills_least=5 seconds_most=40

work=$(mktemp -d "${TMPDIR:-/tmp}/bourse kill.XXXXXX")
[ "$(id -u)" -ne 0 ] || chmod 711 "$work"
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state BOURSE_MARKET=$work/market
unset BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR
broker='' agent='' job='' issuer=''
finish() {
    touch "$work/enough"
    for pid in $job $issuer $agent $broker; do
        kill "$pid" 2>/dev/null || true
    done
    [ -z "$broker" ] || wait "$broker" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
fail() {
    echo "FAILED (BOURSE_SEED=$seed): $*" >&2
    tail -n 20 "$work"/*.log "$work"/market/*.log >&2 || true
    exit 1
}
number() { sed -E "s/.*\"$1\":(-?[0-9]+).*/\1/" "$2"; }

cd "$work"
if ! "$bourse" up --detach --dir "$work/market" --credits 50 --wait 2m >up.log 2>&1; then
    grep -q 'isolat' market/provider.log && { echo "skipped: this machine cannot isolate jobs"; exit 77; }
    fail "up"
fi
broker=$(sed -n 's/^broker \([0-9]*\).*/\1/p' market/up.pids)
agent=$(sed -n 's/^provider \([0-9]*\).*/\1/p' market/up.pids)

# Another process that wants something acknowledged all the time: a cent, again and again.
me=$("$bourse" key)
issue() {
    local asked=0
    while [ ! -e enough ]; do
        asked=$((asked + 1))
        if "$bourse" admin mint "$me" 0.01 --timeout 20s >>mint.log 2>&1; then
            echo >>minted
        fi
        echo "$asked" >asked
    done
}
: >minted
issue &
issuer=$!

"$bourse" run -y --at-most 2 --array "1-$subtasks" -- sh -c 'sleep 0.2; echo subtask {index}' >job.out 2>job.log &
job=$!

kills=0
while [ "$kills" -lt "$kills_most" ] && [ "$SECONDS" -lt "$seconds_most" ] && kill -0 "$job" 2>/dev/null; do
    sleep "0.$((RANDOM % 900 + 100))" # the instant is the input of this test
    kill -9 "$broker"
    wait "$broker" 2>/dev/null || true
    kills=$((kills + 1))
    rm -f market/market.yaml
    "$bin/bourse-broker" --dir "$work/market" >>market/broker.log 2>&1 &
    broker=$!
    for _ in $(seq 400); do
        [ -e market/market.yaml ] && break
        kill -0 "$broker" 2>/dev/null || fail "the broker did not start after kill $kills"
        sleep 0.02 # between two looks at a file; the file is the event
    done
done
[ "$kills" -ge "$kills_least" ] || fail "the job ended after $kills kills: it is too short for this test"

for _ in $(seq 600); do
    kill -0 "$job" 2>/dev/null || break
    sleep 0.1 # between two looks at a process
done
kill -0 "$job" 2>/dev/null && fail "the job is not done: $("$bourse" ps --json)"
wait "$job" || fail "the job ended with $?"
job=
touch enough
wait "$issuer" || true
issuer=

# Each subtask once, its output whole.
[ "$(sort -u job.out | wc -l)" -eq "$subtasks" ] && [ "$(wc -l <job.out)" -eq "$subtasks" ] ||
    fail "$(wc -l <job.out) outputs of $subtasks subtasks"
"$bourse" ps --json >ps.json
[ "$(number accepted ps.json)" -eq "$subtasks" ] || fail "accepted: $(cat ps.json)"

# Each acknowledged cent is there once; one that was never acknowledged is there once or not at all.
"$bourse" balance --json >balance.json
charged=$(number charged_micro ps.json)
cents=$((($(number available_micro balance.json) + charged - 50000000) / 10000))
acknowledged=$(wc -l <minted)
[ "$(number held_micro balance.json)" -eq 0 ] || fail "money is still held: $(cat balance.json)"
[ "$cents" -ge "$acknowledged" ] && [ "$cents" -le "$(cat asked)" ] ||
    fail "$cents cents are there, $acknowledged were acknowledged, $(cat asked) asked for"
[ "$((50000000 + cents * 10000 - charged))" -eq "$(number available_micro balance.json)" ] ||
    fail "the balance does not add up: $(cat balance.json ps.json)"
# 0.10 credits an hour and slot, two slots: nothing was paid twice if it is less than for the whole time.
[ "$charged" -gt 0 ] && [ "$charged" -le $((SECONDS * 2 * 100000 / 3600)) ] || fail "charged $charged micro-credits"

"$bin/bourse-broker" replay --verify "$work/market" >replay.log 2>&1 || fail "replay: $(cat replay.log)"
kill -TERM "$broker"
wait "$broker" || fail "a clean stop ended with $?"
broker=
"$bin/bourse-broker" audit "$work/market" >audit.log 2>&1 || fail "audit: $(cat audit.log)"
echo "killed $kills times in $SECONDS s: $subtasks subtasks, $acknowledged of $(cat asked) cents: ok (seed $seed)"
