#!/usr/bin/env bash
# bench/market.sh [BUILD] - the first job as a benchmark: files compressed through the market against the same
# program under xargs -P, unjailed, in the same run; and /bin/true per second. Prints one JSON value.
#
# Pairs of runs alternate, so that the machine's drift meets both; medians are quoted. Environment: ROUNDS [5],
# FILES [240], TRUES [2000], SLOTS [processors].
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=bench/figures.sh
. bench/figures.sh
build=${1:-build/release}
bin=$PWD/$build/bin
rounds=${ROUNDS:-5}
files=${FILES:-240}
trues=${TRUES:-2000}
slots=${SLOTS:-$(nproc)}
export PATH=$bin:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-bench.XXXXXX")
[ "$(id -u)" -eq 0 ] && chmod 711 "$work"
export BOURSE_MARKET=$work/market
trap 'bourse down --dir "$work/market" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

find /usr/include /usr/share/doc /usr/share/perl /usr/lib/gcc /usr/lib/python3 -type f -readable -size +24k -size -400k \
    2>/dev/null | grep -E '^[A-Za-z0-9/_.+-]+$' | LC_ALL=C sort >"$work/all" || true
awk -v want="$files" '{line[NR] = $0} END {step = NR > want ? NR / want : 1; for (i = 1; i <= NR; i += step) print line[int(i)]}' \
    "$work/all" | head -n "$files" >"$work/files"
count=$(wc -l <"$work/files")
job_file() { # NAME: jobs differ by name alone, so that nothing is answered from an earlier run
    echo "name: $1"
    echo "each:"
    sed 's/^/  - /' "$work/files"
    printf '%s\n' 'run: [xz, "-9", "-k", "{in}"]' 'outputs: ["{in}.xz"]' 'limit: 1m' 'expect: 100ms'
}
now() { date +%s%N; }

bourse up --dir "$work/market" --slots "$slots" --programs xz,true --detach >/dev/null 2>&1
market_s='' xargs_s='' ratios='' true_s=''
for round in $(seq 0 "$rounds"); do # round 0 warms up: inputs stored, profile measured, pages cached
    job_file "bench-$round" >"$work/job.yaml"
    a=$(now)
    bourse submit "$work/job.yaml" -y --wait --quiet >/dev/null
    b=$(now)
    mkdir -p "$work/direct"
    c=$(now)
    # shellcheck disable=SC2016 # for the inner shell
    WORK=$work/direct xargs -a "$work/files" -P "$slots" -n 1 sh -c 'exec xz -9 -k -c "$0" >"$WORK/$$.xz"'
    d=$(now)
    rm -rf "$work/direct"
    e=$(now)
    bourse run -y -q --array "1-$trues" -- true >/dev/null 2>&1
    f=$(now)
    [ "$round" -eq 0 ] && continue
    market=$(awk -v n="$count" -v t=$((b - a)) 'BEGIN {printf "%.2f", n / t * 1e9}')
    direct=$(awk -v n="$count" -v t=$((d - c)) 'BEGIN {printf "%.2f", n / t * 1e9}')
    market_s+=" $market"
    xargs_s+=" $direct"
    ratios+=" $(awk -v a="$market" -v b="$direct" 'BEGIN {printf "%.3f", a / b}')"
    true_s+=" $(awk -v n="$trues" -v t=$((f - e)) 'BEGIN {printf "%.0f", n / t * 1e9}')"
done
broker=$(ps -o rss=,args= -C bourse-broker | awk -v d="$work" 'index($0, d) {print $1}')
agent=$(ps -o rss=,args= -C bourse-provider | awk -v d="$work" 'index($0, d) {s += $1} END {print s}')
jail=$("$build/bench/jail" "$bin" 2 2>/dev/null || echo null)
printf '{"machine":"%s, %d processors","kernel":"%s","version":"%s","files":%d,"rounds":%d,"slots":%d,' \
    "$(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo)" "$(nproc)" "$(uname -r)" "$(bourse version | awk '{print $2; exit}')" \
    "$count" "$rounds" "$slots"
printf '"files_per_s":%s,"files_per_s_range":%s,"xargs_files_per_s":%s,"xargs_range":%s,"ratio":%s,"ratio_range":%s,' \
    "$(median <<<"$market_s")" "$(spread <<<"$market_s")" "$(median <<<"$xargs_s")" "$(spread <<<"$xargs_s")" \
    "$(median <<<"$ratios")" "$(spread <<<"$ratios")"
printf '"true_per_s":%s,"true_range":%s,"broker_rss_kib":%s,"agent_rss_kib":%s,"jail":%s}\n' \
    "$(median <<<"$true_s")" "$(spread <<<"$true_s")" "${broker:-null}" "${agent:-null}" "$jail"
