#!/usr/bin/env bash
# bench/matmul_device.sh [--json] [--size N] [--rounds N] [--tiles RxC] [BUILD] - the product of two matrices on pocl's device
# through a market, against the same kernel called directly. Prints one JSON value.
#
# The agent with its jails is held to one core, and the direct calls to the same one; client and broker have the others. Each
# round makes new matrices, multiplies them by `bourse run matmul --no-check` on the device alone, and then calls the kernel
# directly: once with the device's start and its compiler, as each lane of a job begins, and once without. Medians are quoted,
# with the least and the most. The first round warms up and does not count.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=bench/figures.sh
. bench/figures.sh
size=4096 rounds=3 tiles='' build=build/release
while [ $# -gt 0 ]; do
    case $1 in
    --json) shift ;; # there is no other form
    --size) size=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --tiles) tiles=$2; shift 2 ;;
    -*) echo "usage: bench/matmul_device.sh [--json] [--size N] [--rounds N] [--tiles RxC] [BUILD]" >&2; exit 2 ;;
    *) build=$1; shift ;;
    esac
done
[ -r /etc/OpenCL/vendors/pocl.icd ] || { echo "matmul_device.sh: no pocl (Debian package pocl-opencl-icd)" >&2; exit 1; }
bin=$PWD/$build/bin direct=$PWD/$build/bench/device_product
export PATH=$bin:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-device.XXXXXX")
[ "$(id -u)" -ne 0 ] || chmod 711 "$work"
export XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state BOURSE_MARKET=$work/market
agent=''
finish() {
    [ -z "$agent" ] || kill "$agent" 2>/dev/null || true
    [ -z "$agent" ] || wait "$agent" 2>/dev/null || true
    bourse down --dir "$work/market" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT

field() { grep -oE "\"$1\":[^],}]*" | head -n 1 | cut -d: -f2 | tr -d '["'; }
matrix() { # FILE SEED: each row is a part of one long row of random numbers
    perl -e 'my ($file, $side, $seed) = @ARGV;
        srand($seed);
        my $long = pack("f<*", map { rand(2) - 1 } 1 .. $side + 65536);
        my $text = "{\x27descr\x27: \x27<f4\x27, \x27fortran_order\x27: False, \x27shape\x27: ($side, $side), }";
        $text .= " " x (117 - length $text) . "\n";
        open my $to, ">:raw", $file or die "$file: $!\n";
        print $to "\x93NUMPY\1\0", pack("v", length $text), $text;
        print $to substr($long, 4 * int(rand(65536)), 4 * $side) for 1 .. $side;
        close $to or die "$file: $!\n"' "$1" "$size" "$2"
}

core=$(taskset -pc $$ | grep -oE '[0-9]+$') # the last one of those that this script may use
bourse up --dir "$work/market" --slots 1 --price 5 --detach >/dev/null 2>&1
mkdir -m 700 "$work/agent"
bourse-provider join "$(bourse admin invite --role provider 2>/dev/null)" --dir "$work/agent" >/dev/null 2>&1
cat >"$work/agent/provider.yaml" <<END
name: bench
slots: 1
price: 5
memory: 64MiB
disk: 16MiB
devices:
  - {opencl: 0, name: pocl, price: 0.05, memory: 2GiB, disk: 1GiB}
END
bourse-provider run --dir "$work/agent" >"$work/agent.log" 2>&1 &
agent=$!
for _ in $(seq 1200); do
    ! bourse devices --needs 'api = opencl and executor = tensor' --json 2>/dev/null | grep -q '"label":"pocl"' || break
    sleep 0.1 # between two looks
done
bourse devices --needs 'api = opencl and executor = tensor' --json | grep -q '"label":"pocl"' || { cat "$work/agent.log" >&2; exit 1; }

market='' waited='' busy='' warm='' cold='' ratios='' cold_ratios=''
cd "$work"
for round in $(seq 0 "$rounds"); do
    matrix A.npy $((2 * round + 1))
    matrix B.npy $((2 * round + 2))
    rm -f C.npy
    began=$(date +%s%N)
    bourse run -y matmul A.npy B.npy -o C.npy --no-check --cap 0.05 ${tiles:+--tiles "$tiles"} --json >out </dev/null
    ended=$(date +%s%N)
    # A lane has one thread, and a jail no compiled kernels of an earlier job.
    rm -rf cache && mkdir cache
    POCL_CACHE_DIR=$work/cache POCL_MAX_PTHREAD_COUNT=1 taskset -c "$core" "$direct" --size "$size" --rounds 1 >direct
    [ "$round" -eq 0 ] && continue
    market_s=$(field seconds <out) warm_s=$(field seconds <direct) cold_s=$(field cold_s <direct)
    market+=" $market_s"
    warm+=" $warm_s"
    cold+=" $cold_s"
    waited+=" $(awk -v t=$((ended - began)) 'BEGIN {print t / 1e9}')"
    busy+=" $(grep -o '"shares":.*' out | field paid_ns | awk '{print $1 / 1e9}')"
    ratios+=" $(awk -v d="$warm_s" -v m="$market_s" 'BEGIN {printf "%.3f", d / m}')"
    cold_ratios+=" $(awk -v d="$cold_s" -v m="$market_s" 'BEGIN {printf "%.3f", d / m}')"
done
printf '{"machine":"%s, %d processors","kernel":"%s","version":"%s","platform":"%s","driver":"%s","device":"%s",' \
    "$(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo)" "$(nproc)" "$(uname -r)" "$(bourse version | awk '{print $2; exit}')" \
    "$(field platform <direct)" "$(field driver <direct)" "$(field device <direct)"
printf '"size":%d,"rounds":%d,"tiles":%s,"seconds":%s,"seconds_range":%s,"waited_s":%s,"waited_range":%s,"busy_s":%s,"busy_range":%s,' \
    "$size" "$rounds" "$(field tiles <out)" "$(median <<<"$market")" "$(spread <<<"$market")" "$(median <<<"$waited")" \
    "$(spread <<<"$waited")" "$(median <<<"$busy")" "$(spread <<<"$busy")"
printf '"direct_s":%s,"direct_range":%s,"direct_cold_s":%s,"direct_cold_range":%s,"ratio":%s,"ratio_range":%s,"cold_ratio":%s,"cold_ratio_range":%s}\n' \
    "$(median <<<"$warm")" "$(spread <<<"$warm")" "$(median <<<"$cold")" "$(spread <<<"$cold")" "$(median <<<"$ratios")" \
    "$(spread <<<"$ratios")" "$(median <<<"$cold_ratios")" "$(spread <<<"$cold_ratios")"
