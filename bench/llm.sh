#!/usr/bin/env bash
# bench/llm.sh [--json] [--rounds N] [--tokens N] [--library FILE|none] [BUILD] - the small language model of tests/golden/decoder
# through a market, against the same loop in a process without one. Prints one JSON value.
#
# Both run in turns on one thread. The first job warms up: the model is stored, sent and opened. Each figure is a median, in
# tokens per second: of the prompt (prefill), of its text (decode), and of whole jobs by the wall clock, from the command to its end.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=bench/figures.sh
. bench/figures.sh
rounds=7 tokens=100 library=none build=build/release
[ ! -r build/onnxruntime/libonnxruntime.so.1 ] || library=$PWD/build/onnxruntime/libonnxruntime.so.1
while [ $# -gt 0 ]; do
    case $1 in
    --json) shift ;; # there is no other form
    --rounds) rounds=$2; shift 2 ;;
    --tokens) tokens=$2; shift 2 ;;
    --library) library=$2; shift 2 ;;
    -*) echo "usage: bench/llm.sh [--json] [--rounds N] [--tokens N] [--library FILE|none] [BUILD]" >&2; exit 2 ;;
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
field() { # PART FIELD: of the last job's speed.json
    grep -o "\"$1\": {[^}]*}" last/speed.json | grep -oE "\"$2\": [0-9.e+-]+" | cut -d' ' -f2
}
market_prefill='' market_decode='' direct_prefill='' direct_decode='' ratios='' walls=''
for round in $(seq 0 "$rounds"); do
    rm -rf last
    before=$(now)
    bourse run -y -q --name "llm-$round" decoder.onnx --prompt "$prompt" --max-tokens "$tokens" -o last </dev/null >out 2>err ||
        { cat out err >&2; exit 1; }
    wall=$(($(now) - before))
    read -r asked asked_s made made_s <<<"$("$direct" "$library" "$work" "$prompt" "$tokens" 1)"
    [ "$round" -gt 0 ] || continue
    market_prefill+=" $(field prefill tokens_per_s)" market_decode+=" $(field decode tokens_per_s)"
    direct_prefill+=" $(awk "BEGIN {print $asked / $asked_s}")" direct_decode+=" $(awk "BEGIN {print $made / $made_s}")"
    ratios+=" $(awk "BEGIN {print $(field decode tokens_per_s) / ($made / $made_s)}")"
    walls+=" $(awk "BEGIN {print $tokens * 1e9 / $wall}")"
done
engine=$(grep -o '"engine": "[^"]*"' last/speed.json | cut -d'"' -f4)
printf '{"engine": "%s", "rounds": %d, "tokens": %d, "market": {"prefill": %s, "decode": %s, "job": %s}, ' "$engine" "$rounds" "$tokens" \
    "$(median <<<"$market_prefill")" "$(median <<<"$market_decode")" "$(median <<<"$walls")"
printf '"direct": {"prefill": %s, "decode": %s}, "decode_ratio": %s}\n' "$(median <<<"$direct_prefill")" "$(median <<<"$direct_decode")" "$(median <<<"$ratios")"
