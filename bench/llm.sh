#!/usr/bin/env bash
# bench/llm.sh [--json] [--rounds N] [--prompts N] [--tokens N] [--batches 1,4,8] [--library FILE|none] [BUILD] - the small language model of tests/golden/decoder
# through a market, against the same loop in a process without one. Prints one JSON value.
#
# Both run in turns on one thread, each with one prompt after another. The first job and the first prompt of each warm up: the
# model is stored, sent and opened. Each figure is a median of rounds, in tokens per second: of the prompt (prefill), of its text
# (decode), and of whole jobs by the wall clock, from the command to its end;
# the ratio is that of one round. `together` is decode of 48 prompts in one subtask, so many of
# which share a step. `cpu_ratio` compares the processor time of decode, which other load on the machine changes less.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=bench/figures.sh
. bench/figures.sh
rounds=5 prompts=8 tokens=100 batches=1,4,8 library=none build=build/release
[ ! -r build/onnxruntime/libonnxruntime.so.1 ] || library=$PWD/build/onnxruntime/libonnxruntime.so.1
while [ $# -gt 0 ]; do
    case $1 in
    --json) shift ;; # there is no other form
    --rounds) rounds=$2; shift 2 ;;
    --prompts) prompts=$2; shift 2 ;;
    --tokens) tokens=$2; shift 2 ;;
    --batches) batches=$2; shift 2 ;;
    --library) library=$2; shift 2 ;;
    -*) echo "usage: bench/llm.sh [--json] [--rounds N] [--prompts N] [--tokens N] [--batches 1,4,8] [--library FILE|none] [BUILD]" >&2; exit 2 ;;
    *) build=$1; shift ;;
    esac
done
bin=$PWD/$build/bin
direct=$PWD/$build/bench/llm-direct
export PATH=$bin:$PATH
prompt='You may copy and distribute'

work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-llm.XXXXXX")
[ "$(id -u)" -ne 0 ] || chmod 711 "$work"
export XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state BOURSE_MARKET=$work/market
trap 'bourse down --dir "$work/market" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
cp tests/golden/decoder/* "$work"
export BOURSE_ONNXRUNTIME=$work/libonnxruntime.so.1
[ "$library" = none ] || install -m 755 "$library" "$BOURSE_ONNXRUNTIME"
cd "$work"

market=$work/market
bourse up --dir "$market" --slots 1 --price 0.40 --detach --wait 5m >/dev/null 2>&1
if [ "$library" = none ]; then
    echo 'onnx: {library: none}' >>"$market/provider/provider.yaml"
    bourse down --dir "$market" >/dev/null 2>&1
    bourse up --dir "$market" --slots 1 --price 0.40 --detach --wait 5m >/dev/null 2>&1
fi
for ((i = 0; i < 120; i++)); do
    ! bourse devices --needs 'executor = onnx' --json 2>/dev/null | grep -q '"price_micro"' || break
    sleep 0.5
done

now() { date +%s%N; }
field() { # PART FIELD: of the speed.json of the job's prompts, but of the first, which opens the model
    cat last/[1-9]*/speed.json | grep -o "\"$1\": {[^}]*}" | grep -oE "\"$2\": [0-9.e+-]+" | cut -d' ' -f2 | paste -sd' '
}
for ((i = 0; i <= prompts; i++)); do echo "$prompt"; done >prompts.txt
declare -A together
for ((i = 0; i < 48; i++)); do echo "$prompt"; done >together.txt
for batch in ${batches//,/ }; do together[$batch]=''; done
ratios_cpu='' market_prefill='' market_decode='' direct_prefill='' direct_decode='' ratios='' walls=''
for round in $(seq 0 "$rounds"); do
    rm -rf last
    before=$(now)
    bourse run -y -q --name "llm-$round" decoder.onnx --prompts prompts.txt --max-tokens "$tokens" -o last </dev/null >out 2>err ||
        { cat out err >&2; exit 1; }
    wall=$(($(now) - before))
    for batch in ${batches//,/ }; do
        rm -rf many
        bourse run -y -q decoder.onnx --prompts together.txt --batch "$batch" --max-tokens "$tokens" -o many </dev/null >out 2>err ||
            { cat out err >&2; exit 1; }
        [ "$round" -eq 0 ] || together[$batch]+=" $(grep -o '"decode": {[^}]*}' many/speed.json | grep -oE '"tokens_per_s": [0-9.e+-]+' | cut -d' ' -f2)"
    done
    "$direct" "$library" "$work" "$prompt" "$tokens" "$prompts" >direct.txt
    [ "$round" -gt 0 ] || continue
    here=$(field decode tokens_per_s | median)
    there=$(awk '{print $3 / $4}' direct.txt | paste -sd' ' | median)
    market_prefill+=" $(field prefill tokens_per_s | median)" market_decode+=" $here"
    direct_prefill+=" $(awk '{print $1 / $2}' direct.txt | paste -sd' ' | median)" direct_decode+=" $there"
    ratios+=" $(awk "BEGIN {print $here / $there}")"
    cpu_here=$(field decode cpu_seconds | median)
    cpu_there=$(awk '{print $5}' direct.txt | paste -sd' ' | median)
    ratios_cpu+=" $(awk "BEGIN {print $cpu_there / $cpu_here}")"
    walls+=" $(awk "BEGIN {print (1 + $prompts) * $tokens * 1e9 / $wall}")"
done
engine=$(grep -o '"engine": "[^"]*"' last/0/speed.json | cut -d'"' -f4)
printf '{"engine": "%s", "rounds": %d, "prompts": %d, "tokens": %d, "market": {"prefill": %s, "decode": %s, "job": %s}, ' "$engine" "$rounds" "$prompts" "$tokens" \
    "$(median <<<"$market_prefill")" "$(median <<<"$market_decode")" "$(median <<<"$walls")"
printf '"together": {'
comma=''
for batch in ${batches//,/ }; do
    printf '%s"%d": %s' "$comma" "$batch" "$(median <<<"${together[$batch]}")"
    comma=', '
done
printf '}, '
printf '"direct": {"prefill": %s, "decode": %s}, "decode_ratio": %s, "ratios": %s, "cpu_ratio": %s, "cpu_ratios": %s}\n' "$(median <<<"$direct_prefill")" "$(median <<<"$direct_decode")" "$(median <<<"$ratios")" "$(spread <<<"$ratios")" \
    "$(median <<<"$ratios_cpu")" "$(spread <<<"$ratios_cpu")"
