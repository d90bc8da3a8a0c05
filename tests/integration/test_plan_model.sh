#!/usr/bin/env bash
# Models planned on devices of the catalogue: what people and programs are shown, and every refusal by name.
set -euo pipefail
bourse=$(realpath "$1")/bourse
golden=$(realpath "$(dirname "$0")/../golden/models")
work=$(mktemp -d "${TMPDIR:-/tmp}/bourse model.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }

# shellcheck source=tests/support/expect.sh
. "$(dirname "$(realpath "$0")")/../support/expect.sh"
cd "$work"
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state LC_ALL=C
unset BOURSE_MARKET BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR NO_COLOR
cp "$golden"/*.onnx .

plan() {
    local name=$1
    shift
    "$bourse" plan "$name.onnx" --devices h100:2,tpu-v5p:1,l4:4 --width 100 "$@"
}

# Byte for byte, and the same each time.
for name in resnet50 mobilenet; do
    plan "$name" --dim batch=16 >"$name.txt" || fail "$name"
    diff "$golden/$name.txt" "$name.txt" || fail "not what tests/golden/models/$name.txt holds"
done
for name in bert gpt2; do
    plan "$name" --dim batch=8 --dim sequence=128 >"$name.txt" || fail "$name"
    diff "$golden/$name.txt" "$name.txt" || fail "not what tests/golden/models/$name.txt holds"
    [ "$(head -1 "$name.txt")" = "plan only: \`bourse run MODEL\` runs the model on the market's devices" ] || fail "$name: $(head -1 "$name.txt")"
done

# For programs: one value, with each node, its step, and how it is counted.
plan resnet50 --dim batch=16 --json >a.json
[ "$(wc -l <a.json)" -eq 1 ] || fail "more than one value"
grep -q '"plan_only":true' a.json || fail "plan_only: $(head -c 400 a.json)"
[ "$(grep -o '"node":' a.json | wc -l)" -eq 175 ] || fail "nodes"
grep -q '"node":"stem.conv","operator":"Conv","step":"Conv 1","source":"exact","operation":"conv:16x224x224x3x64x7x7,stride=2,padding=3:fp32"' a.json ||
    fail "the first convolution: $(grep -o '"node":"stem.conv".\{200\}' a.json)"
grep -qE '"lower_bound":[0-9.e-]+,"gap":[0-9.e-]+' a.json || fail "bound and gap"
plan resnet50 --dim batch=16 --quiet | grep -qE '^[0-9.e-]+$' || fail "--quiet"
plan resnet50 --dim batch=16 --svg a.svg >/dev/null
grep -q '<svg' a.svg || fail "--svg"

# A plan for twice the batch takes longer, and a step runs where it is placed.
one=$(plan mobilenet --dim batch=16 --quiet)
two=$(plan mobilenet --dim batch=32 --quiet)
awk -v one="$one" -v two="$two" 'BEGIN { exit !(two > 1.8 * one && two < 2.2 * one) }' || fail "batch 16 takes $one, 32 takes $two"
plan mobilenet --dim batch=16 --place 'Gemm 28=l4 1' --json | grep -q '"step":"Gemm 28","device":"l4 1"' || fail "--place"

# Refusals.
expect 2 '^bourse: MODEL_DIM: resnet50.onnx: dim 0 of input "data" is "batch".*--dim batch=N' "$bourse" plan resnet50.onnx --devices h100
expect 2 '^bourse: MODEL_DIM: .*--dim bacth' "$bourse" plan resnet50.onnx --dim batch=1 --dim bacth=2 --devices h100
expect 2 'it is NAME=N' "$bourse" plan resnet50.onnx --dim batch --devices h100
expect 2 'it is NAME=N' "$bourse" plan resnet50.onnx --dim batch=-1 --devices h100
expect 2 '^bourse: MODEL_OVERFLOW: ' "$bourse" plan resnet50.onnx --dim batch=1000000000000 --devices h100
expect 2 'on which devices' "$bourse" plan resnet50.onnx --dim batch=1
expect 2 'dims are said with --dim' "$bourse" plan resnet50.onnx --set batch=1 --devices h100
expect 2 'dims are said with --dim' "$bourse" plan resnet50.onnx --batch 1 --devices h100
expect 2 '--dim is for a model' "$bourse" plan llm --dim batch=1 --devices h100
expect 2 '--dim is for a template or a model' "$bourse" plan job.yaml --dim batch=1
expect 2 'missing.onnx: cannot be opened' "$bourse" plan missing.onnx --devices h100
head -c 20000 resnet50.onnx >cut.onnx
expect 2 '^bourse: MODEL_MALFORMED: cut.onnx: ' "$bourse" plan cut.onnx --devices h100
: >empty.onnx
expect 2 '^bourse: MODEL_VERSION: empty.onnx: the file has IR version 0' "$bourse" plan empty.onnx --devices h100
sed 's/weights\.bin/..\/weight.b/' resnet50.onnx >away.onnx
expect 2 '^bourse: MODEL_PATH: away.onnx: weights "stem.w" lies in ' "$bourse" plan away.onnx --dim batch=1 --devices h100
sed 's/MaxPool/MaxPuul/' resnet50.onnx >other.onnx
expect 2 '^bourse: MODEL_OPERATOR: other.onnx: node "pool" \(MaxPuul\): the operator MaxPuul is not known' "$bourse" plan other.onnx --dim batch=1 --devices h100
expect 5 '^bourse: PLAN_NOWHERE: ' "$bourse" plan resnet50.onnx --dim batch=1 --devices tpu-v5p
