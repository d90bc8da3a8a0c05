#!/usr/bin/env bash
# bench/array.sh [--json] [--subtasks N] [--tasks N] [--rounds N] [BUILD] - one large array of no-ops: what its subtasks cost the
# broker while they wait, how long submitting takes, and how fast they go out, run and come back. Prints one JSON value.
#
# Each round is a new market whose only agent is paused until the array has been weighed; then the array runs to its end. Medians
# are quoted. A graph of --tasks no-ops, where each waits for two others, is weighed in a market of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=bench/figures.sh
. bench/figures.sh
subtasks=1000000 tasks=30000 rounds=3 build=build/release
while [ $# -gt 0 ]; do
    case $1 in
    --json) shift ;; # there is no other form
    --subtasks) subtasks=$2; shift 2 ;;
    --tasks) tasks=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    -*) echo "usage: bench/array.sh [--json] [--subtasks N] [--tasks N] [--rounds N] [BUILD]" >&2; exit 2 ;;
    *) build=$1; shift ;;
    esac
done
export PATH=$PWD/$build/bin:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-array.XXXXXX")
[ "$(id -u)" -ne 0 ] || chmod 711 "$work"
export XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state
market=''
finish() {
    [ -z "$market" ] || bourse down --dir "$market" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT

printf '%s\n' 'executor: noop' "array: 1-$subtasks" 'expect: 1ms' 'budget: 10' >"$work/array.yaml"
{
    printf '%s\n' 'executor: noop' 'expect: 1ms' 'budget: 10' 'tasks:'
    awk -v n="$tasks" 'BEGIN {for (i = 0; i < n; i++)
        if (i < 2) print "- {name: t" i "}"; else print "- {name: t" i ", after: [t" i - 2 ", t" i - 1 "]}"}'
} >"$work/graph.yaml"

now_ms() { echo $(($(date +%s%N) / 1000000)); }
memory_kib() { awk -v what="Vm$1:" '$1 == what {print $2}' "/proc/$broker/status"; } # RSS, HWM
bytes_each() { awk -v kib="$1" -v n="$2" 'BEGIN {printf "%.2f", kib * 1024 / n}'; }
per_s() { awk -v n="$1" -v ms="$2" 'BEGIN {printf "%.0f", n * 1000 / ms}'; }

market_new() { # NAME: with an agent that offers nothing yet
    market=$work/$1
    export BOURSE_MARKET=$market
    bourse up --dir "$market" --slots "$(nproc)" --detach >/dev/null 2>&1
    broker=$(sed -n 's/^broker \([0-9]*\).*/\1/p' "$market/up.pids")
    bourse-provider pause --dir "$market/provider" >/dev/null
    bourse submit "$work/one.yaml" -y --anyway --quiet >/dev/null # what the first job of a market allocates is not the array's
}
market_end() {
    bourse down --dir "$market" >/dev/null 2>&1
    rm -rf "$market"
    market=''
}
submit() { # FILE: sets job, submit_ms, grown_kib
    local before began
    before=$(memory_kib RSS)
    began=$(now_ms)
    job=$(bourse submit "$work/$1" -y --anyway --quiet)
    submit_ms=$(($(now_ms) - began))
    bourse ps "$job" --json >/dev/null # the broker has done what the submission led to
    grown_kib=$(($(memory_kib RSS) - before))
}
printf '%s\n' 'executor: noop' 'array: 1-1' 'expect: 1ms' 'budget: 1' >"$work/one.yaml"

waiting='' most='' submits='' rates=''
for round in $(seq "$rounds"); do
    market_new "round-$round"
    before=$(memory_kib RSS)
    submit array.yaml
    submits+=" $(awk -v ms="$submit_ms" 'BEGIN {printf "%.3f", ms / 1000}')"
    waiting+=" $(bytes_each "$grown_kib" "$subtasks")"
    began=$(now_ms)
    bourse-provider resume --dir "$market/provider" >/dev/null
    bourse watch "$job" --quiet >/dev/null 2>&1
    rates+=" $(per_s "$subtasks" $(($(now_ms) - began)))"
    most+=" $(bytes_each $(($(memory_kib HWM) - before)) "$subtasks")"
    market_end
done
market_new graph
submit graph.yaml
graph_submit_s=$(awk -v ms="$submit_ms" 'BEGIN {printf "%.3f", ms / 1000}')
graph=$(bytes_each "$grown_kib" "$tasks")
market_end

printf '{"machine":"%s, %d processors","kernel":"%s","version":"%s","rounds":%d,"subtasks":%d,' \
    "$(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo)" "$(nproc)" "$(uname -r)" "$(bourse version | awk '{print $2; exit}')" \
    "$rounds" "$subtasks"
printf '"submit_s":%s,"submit_s_range":%s,"broker_bytes_per_waiting_subtask":%s,"broker_bytes_per_waiting_subtask_range":%s,' \
    "$(median <<<"$submits")" "$(spread <<<"$submits")" "$(median <<<"$waiting")" "$(spread <<<"$waiting")"
printf '"broker_bytes_per_subtask_at_most":%s,"broker_bytes_per_subtask_at_most_range":%s,"dispatch_per_s":%s,"dispatch_per_s_range":%s,' \
    "$(median <<<"$most")" "$(spread <<<"$most")" "$(median <<<"$rates")" "$(spread <<<"$rates")"
printf '"tasks":%d,"tasks_submit_s":%s,"broker_bytes_per_waiting_task":%s}\n' "$tasks" "$graph_submit_s" "$graph"
