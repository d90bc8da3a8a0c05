#!/usr/bin/env bash
# bench/owner.sh [--json] [--rounds N] [--load CORES] [BUILD] - what the owner of a machine notices of an agent: how much longer a compile takes
# while jobs keep every core busy. Prints one JSON value. bench/agent.sh measures an agent without work.
#
# The agent has `idle:`, so that its jobs have the lowest priority. Without --load no sign of use counts: they run beside the
# compile, which is the worst case. With --load the load of others is a sign of use, as it is by default (0.5): the jobs stand
# still some seconds after the compile began. Compiles with jobs and without alternate, and the order changes from pair to pair. Medians are quoted.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=bench/figures.sh
. bench/figures.sh
rounds=10 build=build/release load=any
while [ $# -gt 0 ]; do
    case $1 in
    --json) shift ;; # there is no other form
    --rounds) rounds=$2; shift 2 ;;
    --load) load=$2; shift 2 ;;
    -*) echo "usage: bench/owner.sh [--json] [--rounds N] [--load CORES] [BUILD]" >&2; exit 2 ;;
    *) build=$1; shift ;;
    esac
done
export PATH=$PWD/$build/bin:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-owner.XXXXXX")
[ "$(id -u)" -ne 0 ] || chmod 711 "$work"
export XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state BOURSE_MARKET=$work/market
finish() {
    bourse down --dir "$work/market" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT

now_ms() { echo $(($(date +%s%N) / 1000000)); }
field() { grep -oE "\"$1\":-?[0-9]+" <<<"$2" | head -n 1 | cut -d: -f2; }
running() { field running "$(bourse-provider status --dir "$work/market/provider" --json)"; }
until_runs() { # COUNT: until so many subtasks run
    for _ in $(seq 600); do
        [ "$(running)" != "$1" ] || return 0
        sleep 0.1
    done
    echo "owner.sh: $(running) subtasks run, and $1 should" >&2
    exit 1
}

# The owner's work: files of C, each long enough that the compiler counts and not its start.
mkdir "$work/source"
for n in $(seq $((4 * $(nproc)))); do
    awk -v n="$n" 'BEGIN {
        for (i = 0; i < 220; i++)
            printf "int f%d_%d(int *a, int c) { int s = 0; for (int i = 0; i < c; i++) { s += a[i] * %d; if (s & 1) s ^= a[c - i - 1]; } return s; }\n", n, i, i
    }' >"$work/source/$n.c"
done
compile_ms() {
    local began
    began=$(now_ms)
    find "$work/source" -name '*.c' -print0 | xargs -0 -P "$(nproc)" -n 1 sh -c 'exec gcc -O2 -c "$0" -o "$0.o"'
    echo $(($(now_ms) - began))
}

bourse up --dir "$work/market" --slots "$(nproc)" --programs sh --detach >/dev/null 2>&1
bourse down --dir "$work/market" >/dev/null 2>&1
echo "idle: {after: 10s, sessions: false, battery: run, input: false, load: $load}" >>"$work/market/provider/provider.yaml"
bourse up --dir "$work/market" --detach >/dev/null 2>&1

printf 'name: burns\nlimit: 1h\nterm: 1h\nbudget: 10\narray: 1-1000\nrun: [sh, -c, "while :; do :; done"]\n' >"$work/burns.yaml"
bourse submit "$work/burns.yaml" -y --anyway --quiet >/dev/null
until_runs "$(nproc)"
compile_ms >/dev/null # warms up
ratios='' alone_s='' beside_s=''
with_jobs() {
    bourse-provider resume --dir "$work/market/provider" >/dev/null 2>&1
    until_runs "$(nproc)"
    beside=$(compile_ms)
}
without_jobs() {
    bourse-provider pause --now --dir "$work/market/provider" >/dev/null
    until_runs 0
    alone=$(compile_ms)
}
for round in $(seq "$rounds"); do
    if [ $((round % 2)) -eq 0 ]; then with_jobs; without_jobs; else without_jobs; with_jobs; fi
    beside_s+=" $(awk -v ms="$beside" 'BEGIN {printf "%.3f", ms / 1000}')"
    alone_s+=" $(awk -v ms="$alone" 'BEGIN {printf "%.3f", ms / 1000}')"
    ratios+=" $(awk -v a="$beside" -v b="$alone" 'BEGIN {printf "%.3f", a / b}')"
done
printf '{"machine":"%s, %d processors","kernel":"%s","version":"%s","rounds":%d,"load":"%s",' \
    "$(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo)" "$(nproc)" "$(uname -r)" "$(bourse version | awk '{print $2; exit}')" "$rounds" "$load"
printf '"compile_s":%s,"compile_s_range":%s,"compile_beside_jobs_s":%s,"compile_beside_jobs_s_range":%s,' \
    "$(median <<<"$alone_s")" "$(spread <<<"$alone_s")" "$(median <<<"$beside_s")" "$(spread <<<"$beside_s")"
printf '"ratio":%s,"ratio_range":%s}\n' \
    "$(median <<<"$ratios")" "$(spread <<<"$ratios")"
