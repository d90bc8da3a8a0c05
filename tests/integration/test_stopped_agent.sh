#!/usr/bin/env bash
# An agent is stopped until the market holds it suspect, and goes on: it must come back with its asks by itself,
# and so must one that was killed and started again.
set -euo pipefail
bin=$(realpath "$1")
bourse=$bin/bourse
for program in bourse-broker bourse-provider bourse-worker; do
    [ -x "$bin/$program" ] || { echo "skipped: no $program"; exit 77; }
done
command -v bwrap >/dev/null || { echo "skipped: no bubblewrap"; exit 77; }
if [ "$(id -u)" -eq 0 ] && ! id bourse >/dev/null 2>&1; then
    echo "skipped: no user bourse for the agent"
    exit 77
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/bourse stop.XXXXXX")
[ "$(id -u)" -ne 0 ] || chmod 711 "$work"
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state BOURSE_MARKET=$work/market
unset BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR
agent=
finish() {
    [ -z "$agent" ] || kill -CONT "$agent" 2>/dev/null || true
    [ -z "$agent" ] || kill "$agent" 2>/dev/null || true
    "$bourse" down --dir "$work/market" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT
fail() {
    echo "FAILED: $*" >&2
    tail -n 20 "$work"/*.log "$work"/market/*.log >&2 || true
    exit 1
}
cd "$work"
printf 'run: ["true"]\n' >job.yaml
# Waits until the market offers something (or, with "nothing", nothing).
until_offered() {
    for _ in $(seq 300); do
        "$bourse" quote job.yaml >quote.log 2>&1 || true # no match has an exit status of its own
        if grep -q 'on offer now *nothing' quote.log; then
            [ "$1" = nothing ] && return
        elif grep -q 'on offer now' quote.log; then
            [ "$1" = something ] && return
        fi
        sleep 0.1 # between two looks at the market
    done
    fail "the market never offered $1"
}

if ! "$bourse" up --detach --dir "$work/market" --credits 50 --wait 2m >up.log 2>&1; then
    grep -q 'isolat' market/provider.log && { echo "skipped: this machine cannot isolate jobs"; exit 77; }
    fail "up"
fi
agent=$(sed -n 's/^provider \([0-9]*\).*/\1/p' market/up.pids)

until_offered something
kill -STOP "$agent"
until_offered nothing
kill -CONT "$agent"
until_offered something
timeout 60 "$bourse" run -y -q -- true >run.log 2>&1 || fail "a job after the pause: $(cat run.log)"

# In the middle of a job, which ends with every subtask done once.
"$bourse" run -y --array 1-40 -- sh -c 'sleep 0.2; echo {index}' >job.out 2>job.log &
job=$!
for _ in $(seq 300); do
    "$bourse" ps --json >ps.log
    grep -q '"state":"open".*"accepted":[1-9]' ps.log && break
    sleep 0.05 # between two looks at the job
done
kill -9 "$agent"
"$bin/bourse-provider" --config "$work/market/provider/provider.yaml" >agent.log 2>&1 &
agent=$!
wait "$job" || fail "the job of a killed agent ended with $?: $(cat job.log)"
[ "$(sort -n job.out | uniq | wc -l)" -eq 40 ] || fail "outputs: $(cat job.out)"
"$bin/bourse-broker" replay --verify "$work/market" >replay.log 2>&1 || fail "replay: $(cat replay.log)"
echo "stopped, continued, killed and restarted: ok"
