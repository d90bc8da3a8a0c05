#!/usr/bin/env bash
# bench/onnx.sh [--json] [--models resnet50,mobilenet,tiny] [--batches 1,16] [--few N] [--many N] [--rounds N] [--slots 1,2] [BUILD] - runs of ONNX
# models through a market against ONNX Runtime called directly: same model, same images, one thread. Prints one JSON value.
#
# Each round runs a job of --few subtasks and one of --many, and the direct program, in turn. `ms` is what one subtask more takes:
# the difference of both jobs' times by the difference of their subtasks. So what a job takes once is in `whole_ratio` alone. With
# two slots, two direct programs run at the same time. Medians are quoted. The first round warms up and does not count. The model
# `tiny` computes next to nothing, so that its `overhead_ms` is what a subtask of an open model costs.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=bench/figures.sh
. bench/figures.sh
models=resnet50,mobilenet,tiny batches=1,16 few=8 many=40 rounds=3 slot_counts=1,2 build=build/release
while [ $# -gt 0 ]; do
    case $1 in
    --json) shift ;; # there is no other form
    --models) models=$2; shift 2 ;;
    --batches) batches=$2; shift 2 ;;
    --few) few=$2; shift 2 ;;
    --many) many=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --slots) slot_counts=$2; shift 2 ;;
    -*) echo "usage: bench/onnx.sh [--json] [--models A,B] [--batches 1,16] [--few N] [--many N] [--rounds N] [--slots 1,2] [BUILD]" >&2; exit 2 ;;
    *) build=$1; shift ;;
    esac
done
library=${BOURSE_ONNXRUNTIME:-$PWD/build/onnxruntime/libonnxruntime.so.1}
[ -r "$library" ] || { echo "onnx.sh: no library of ONNX Runtime: scripts/setup fetches it" >&2; exit 1; }
bin=$PWD/$build/bin direct=$PWD/$build/bench/onnx_direct
export PATH=$bin:$PATH

work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-onnx.XXXXXX")
[ "$(id -u)" -ne 0 ] || chmod 711 "$work"
export XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state BOURSE_MARKET=$work/market
install -m 755 "$library" "$work/libonnxruntime.so.1"
export BOURSE_ONNXRUNTIME=$work/libonnxruntime.so.1
finish() {
    bourse down --dir "$work/market" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT

field() { grep -oE "\"$1\":[^],}]*" | head -n 1 | cut -d: -f2 | tr -d '["'; }
now() { date +%s%N; }
rss() { ps -o rss=,args= -C "$1" | awk -v d="$work" 'index($0, d) {s += $1} END {print s + 0}'; }
up() { # SLOTS
    bourse up --dir "$work/market" --slots "$1" --price 0.40 --detach >/dev/null 2>&1
    for _ in $(seq 600); do
        ! bourse devices --needs 'executor = onnx' --json 2>/dev/null </dev/null | grep -q '"price_micro"' || return 0
        sleep 0.1
    done
    echo "onnx.sh: no device computes models: $(tail -n 3 "$work/market/provider.log")" >&2
    exit 1
}
job() { # FOLDER PARTS BATCH: the job's time in ms. Each subtask takes BATCH images.
    local a b
    rm -rf "$1/out"
    head -c $((128 + $2 * $3 * 602112)) "$1/images.npy" >"$1/part.npy"
    perl -e 'my ($file, $rows) = @ARGV;
        my $text = "{\x27descr\x27: \x27<f4\x27, \x27fortran_order\x27: False, \x27shape\x27: ($rows, 3, 224, 224), }";
        $text .= " " x (117 - length $text) . "\n";
        open my $to, "+<:raw", $file or die "$file: $!\n";
        print $to "\x93NUMPY\1\0", pack("v", length $text), $text;
        close $to or die "$file: $!\n"' "$1/part.npy" $(($2 * $3))
    a=$(now)
    (cd "$1" && bourse run model.onnx -y -q --input data=part.npy --split data --parts "$2" --expect 100ms -o out </dev/null >run.log 2>&1) ||
        { echo "onnx.sh: $(tail -n 3 "$1/run.log")" >&2; exit 1; }
    b=$(now)
    awk -v t=$((b - a)) 'BEGIN {printf "%.1f", t / 1e6}'
}
direct() { # FOLDER BATCH RUNS SLOTS: fields of one program, and the time of all in `took`
    local a b i
    a=$(now)
    for i in $(seq "$4"); do "$direct" run "$BOURSE_ONNXRUNTIME" "$1" "$2" "$3" >"$1/direct-$i.json" & done
    wait
    b=$(now)
    took=$(awk -v t=$((b - a)) 'BEGIN {printf "%.1f", t / 1e6}')
}

printf '{"machine":"%s, %d processors","kernel":"%s","load":%s,"rounds":%d,"few":%d,"many":%d,"models":[' \
    "$(awk -F': ' '/model name/ {print $2; exit}' /proc/cpuinfo)" "$(nproc)" "$(uname -r)" "$(cut -d' ' -f1 /proc/loadavg)" \
    "$rounds" "$few" "$many"
comma=''
for slots in ${slot_counts//,/ }; do
    up "$slots"
    for model in ${models//,/ }; do
        for batch in ${batches//,/ }; do
            folder=$work/$model-$batch
            mkdir -p "$folder"
            "$direct" make "$model" "$folder" $((many * batch)) 1
            ratios='' wholes='' subtasks='' directs=''
            for round in $(seq 0 "$rounds"); do
                short=$(job "$folder" "$few" "$batch")
                long=$(job "$folder" "$many" "$batch")
                direct "$folder" "$batch" $((many / slots)) "$slots"
                [ "$round" -gt 0 ] || continue
                once=$(field ms <"$folder/direct-1.json")
                # With two slots, the direct programs compute two runs in the time of one.
                each=$(awk -v a="$short" -v b="$long" -v n=$((many - few)) 'BEGIN {printf "%.3f", (b - a) / n}')
                alone=$(awk -v m="$once" -v s="$slots" 'BEGIN {printf "%.3f", m / s}')
                subtasks+=" $each" directs+=" $alone"
                ratios+=" $(awk -v a="$alone" -v b="$each" 'BEGIN {printf "%.3f", a / b}')"
                wholes+=" $(awk -v a="$took" -v b="$long" 'BEGIN {printf "%.3f", a / b}')"
            done
            printf '%s{"name":"%s","images":%d,"slots":%d,"ratio":%s,"ratio_range":%s,"ms":%s,"direct_ms":%s,"overhead_ms":%s,' "$comma" \
                "$model" "$batch" "$slots" "$(median <<<"$ratios")" "$(spread <<<"$ratios")" "$(median <<<"$subtasks")" \
                "$(median <<<"$directs")" "$(awk -v a="$(median <<<"$subtasks")" -v b="$(median <<<"$directs")" 'BEGIN {printf "%.3f", a - b}')"
            printf '"whole_ratio":%s,"direct_open_ms":%s,"direct_rss_kib":%s,"broker_rss_kib":%s,"agent_rss_kib":%s}' \
                "$(median <<<"$wholes")" "$(field open_ms <"$folder/direct-1.json")" "$(field rss_kib <"$folder/direct-1.json")" \
                "$(rss bourse-broker)" "$(rss bourse-provider)"
            comma=,
            rm -rf "$folder"
        done
    done
    bourse down --dir "$work/market" >/dev/null 2>&1
    rm -rf "$work/market"
done
printf ']}\n'
