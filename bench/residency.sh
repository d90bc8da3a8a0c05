#!/usr/bin/env bash
# bench/residency.sh [--json] [--links N] [--side N] [--rows N] [--rounds N] [BUILD] - a chain of products on pocl's device
# through a market: once where the fixed factor stays in the device's memory, and once where nothing stays. Prints one JSON value.
# bench/residency.sh --ahead [--json] [--links N] [--copy MS] [--compute MS] [--rounds N] [BUILD] - kernels with an input each, on
# the tests' stand-in for a CUDA driver: once where the next input is copied while a kernel computes, and once where it is not.
#
# A market has two agents with pocl's device: one holds inputs, and one has `device_cache: 0`. Each round runs the same chain on
# both, in turns, the other one first each time. A product of the chain is rows x side times the fixed factor of side x side.
# The copies are counted by bourse-kernel, as `status` shows them. The first round warms up and does not count.
#
# With --ahead, no input is used twice, so `device_cache: 0` only keeps inputs from being copied ahead. A copy to the stand-in
# sleeps for --copy ms, and a kernel for --compute ms in steps of 60. So the figures show the order of events, and no hardware.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=bench/figures.sh
. bench/figures.sh
links=50 side=2048 rows=16 rounds=5 build=build/release is_ahead=no copy_ms=180 compute_ms=240
while [ $# -gt 0 ]; do
    case $1 in
    --json) shift ;; # there is no other form
    --links) links=$2; shift 2 ;;
    --side) side=$2; shift 2 ;;
    --rows) rows=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --ahead) is_ahead=yes links=16; shift ;;
    --copy) copy_ms=$2; shift 2 ;;
    --compute) compute_ms=$2; shift 2 ;;
    -*)
        echo "usage: bench/residency.sh [--json] [--links N] [--side N] [--rows N] [--rounds N] [BUILD]" >&2
        echo "       bench/residency.sh --ahead [--json] [--links N] [--copy MS] [--compute MS] [--rounds N] [BUILD]" >&2
        exit 2
        ;;
    *) build=$1; shift ;;
    esac
done
bin=$PWD/$build/bin
if [ "$is_ahead" = no ]; then
    [ -r /etc/OpenCL/vendors/pocl.icd ] || { echo "residency.sh: no pocl (Debian package pocl-opencl-icd)" >&2; exit 1; }
else
    [ -x "$bin/bourse-kernel-fake" ] || { echo "residency.sh: $build has no bourse-kernel-fake; build its tests" >&2; exit 1; }
fi
export PATH=$bin:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-residency.XXXXXX")
[ "$(id -u)" -ne 0 ] || chmod 711 "$work"
export XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state BOURSE_MARKET=$work/market
agents=() agent=bourse-provider device='opencl: 0'
if [ "$is_ahead" = yes ]; then
    mkdir "$work/programs"
    cp "$bin/bourse-provider" "$bin/bourse-worker" "$work/programs/"
    cp "$bin/bourse-kernel-fake" "$work/programs/bourse-kernel"
    agent=$work/programs/bourse-provider device='cuda: F100'
fi
finish() {
    for process in "${agents[@]}"; do
        kill "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    bourse down --dir "$work/market" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT

figure() { # AGENT FIELD: of its device, since the agent's start
    bourse-provider status --dir "$work/$1" --json | grep -o '"held":\[[^]]*\]' | grep -oE "\"$2\":[0-9]+" | cut -d: -f2
}

bourse up --dir "$work/market" --slots 1 --price 5 --detach >/dev/null 2>&1
for name in holds copies; do
    mkdir -m 700 "$work/$name"
    bourse-provider join "$(bourse admin invite --role provider --name "$name" 2>/dev/null)" --dir "$work/$name" >/dev/null 2>&1
    cat >"$work/$name/provider.yaml" <<END
name: $name-cores
slots: 1
price: 5
memory: 64MiB
disk: 16MiB
devices:
  - {$device, name: $name, price: 0.05, memory: 1GiB, disk: 256MiB$([ "$name" = holds ] || echo ', device_cache: 0')}
END
    "$agent" run --dir "$work/$name" >"$work/$name.log" 2>&1 &
    agents+=($!)
    for _ in $(seq 1200); do
        ! bourse devices --needs "label = $name" --json 2>/dev/null | grep -q '"price_micro"' || break
        sleep 0.1 # between two looks
    done
    bourse devices --needs "label = $name" --json | grep -q '"price_micro"' || { cat "$work/$name.log" >&2; exit 1; }
done

cd "$work"
chain() { # DEVICE
    printf '%s\n' "name: chain" "executor: tensor" "expect: 50ms" "budget: 1" "needs: {label: $1}" "files: [x0.npy, w.npy]" "tasks:"
    echo "  - {name: p1, run: [matmul, x0.npy, w.npy, y1.npy], outputs: y1.npy}"
    for i in $(seq 2 "$links"); do
        echo "  - {name: p$i, from: [p$((i - 1))/y$((i - 1)).npy], run: [matmul, y$((i - 1)).npy, w.npy, y$i.npy], outputs: y$i.npy}"
    done
}
kernels() { # DEVICE ROUND: a kernel for each input, whose bytes no other kernel has
    local i
    for i in $(seq "$links"); do
        perl -e 'print pack("N", $ARGV[0]), "x" x ((512 << 10) - 4)' $(($2 * 1000 + i)) >"x$i.bin"
    done
    printf '%s\n' '.version 6.0' '.target sm_50' '.address_size 64' "// $((copy_ms * 1000 / 512)) us for each KiB" \
        '.visible .entry matmul(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n, .param .u32 times) { ret; }' >k.ptx
    printf '%s\n' "name: kernels" "expect: 500ms" "limit: 20s" "budget: 1" "needs: {label: $1}" 'kernel:' '  source: k.ptx' \
        '  entry: matmul' '  global: 1' '  arguments: [{input: "{in}"}, {input: b.bin}, {output: c.bin, size: 16}, {uint: 2},' \
        "    {uint: $((compute_ms / 60))}]" 'files: [b.bin]' "each: [$(seq -s ', ' -f 'x%g.bin' "$links")]"
}
job() { # DEVICE ROUND
    if [ "$is_ahead" = yes ]; then kernels "$1" "$2"; else chain "$1"; fi
}
head -c 16 /dev/zero >b.bin
declare -A seconds=() busy=() copied=() hits=() saved=() aheads=()
saved_s='' saved_busy=''
for round in $(seq 0 "$rounds"); do
    if [ "$is_ahead" = no ]; then
        matrix x0.npy "$rows" "$side" $((2 * round + 1))
        matrix w.npy "$side" "$side" $((2 * round + 2))
    fi
    order=(holds copies)
    [ $((round % 2)) -eq 0 ] || order=(copies holds)
    declare -A took=() paid=()
    for name in "${order[@]}"; do
        job "$name" "$round" >chain.yaml
        before_aheads=$(figure "$name" aheads)
        before=$(figure "$name" copied_bytes) before_hits=$(figure "$name" hits) before_saved=$(figure "$name" saved_bytes)
        began=$(date +%s%N)
        bourse submit chain.yaml -y --wait >out 2>&1 </dev/null || { cat out >&2; exit 1; }
        ended=$(date +%s%N)
        took[$name]=$(awk -v t=$((ended - began)) 'BEGIN {print t / 1e9}')
        # What is paid for: from the start of a product in the jail until its result is read. The longest one compiled.
        paid[$name]=$(bourse logs last --json | grep -oE '"busy_ns":[0-9]+' | cut -d: -f2 |
            awk '{s += $1; most = $1 > most ? $1 : most} END {print (s - most) / 1e9}')
        [ "$round" -eq 0 ] && continue
        seconds[$name]+=" ${took[$name]}"
        busy[$name]+=" ${paid[$name]}"
        copied[$name]+=" $(($(figure "$name" copied_bytes) - before))"
        hits[$name]+=" $(($(figure "$name" hits) - before_hits))"
        saved[$name]+=" $(($(figure "$name" saved_bytes) - before_saved))"
        aheads[$name]+=" $(($(figure "$name" aheads) - before_aheads))"
    done
    [ "$round" -eq 0 ] && continue
    saved_busy+=" $(awk -v a="${paid[copies]}" -v b="${paid[holds]}" 'BEGIN {print a - b}')"
    saved_s+=" $(awk -v a="${took[copies]}" -v b="${took[holds]}" 'BEGIN {print a - b}')"
done
printf '{"machine":"%s, %d processors","kernel":"%s","version":"%s","load":"%s","links":%d,"rounds":%d' \
    "$(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo)" "$(nproc)" "$(uname -r)" "$(bourse version | awk '{print $2; exit}')" \
    "$(cut -d' ' -f1 /proc/loadavg)" "$links" "$rounds"
[ "$is_ahead" = yes ] || printf ',"side":%d,"rows":%d' "$side" "$rows"
for name in holds copies; do
    printf ',"%s":{"seconds":%s,"seconds_range":%s,"busy_s":%s,"busy_range":%s,"hits":%s,"copied_bytes":%s,"saved_bytes":%s}' "$name" \
        "$(median <<<"${seconds[$name]}")" "$(spread <<<"${seconds[$name]}")" "$(median <<<"${busy[$name]}")" \
        "$(spread <<<"${busy[$name]}")" "$(median <<<"${hits[$name]}")" "$(median <<<"${copied[$name]}")" "$(median <<<"${saved[$name]}")"
done
if [ "$is_ahead" = yes ]; then
    printf ',"copy_ms":%d,"compute_ms":%d' "$copy_ms" "$compute_ms"
    for name in holds copies; do
        printf ',"%s_each":{"seconds":%s,"busy_s":%s,"aheads":%s}' "$name" \
            "$(median <<<"${seconds[$name]}" | awk -v n="$links" '{print $1 / n}')" \
            "$(median <<<"${busy[$name]}" | awk -v n="$links" '{print $1 / (n - 1)}')" "$(median <<<"${aheads[$name]}")"
    done
fi
printf ',"saved_s":%s,"saved_range":%s,"saved_busy_s":%s,"saved_busy_range":%s}\n' "$(median <<<"$saved_s")" "$(spread <<<"$saved_s")" \
    "$(median <<<"$saved_busy")" "$(spread <<<"$saved_busy")"
