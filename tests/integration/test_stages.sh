#!/usr/bin/env bash
# A model of twelve blocks in stages over three agents: the same numbers as the whole model in one run, with parts of
# the rows and without; only the model's outputs are fetched; an agent that is killed in the middle of a stage has it
# computed by another one, and paid once; what cannot be cut is told before money is held.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin stages "$1" bourse-audit onnx-cases onnx-blocks bourse-onnx
command -v sqlite3 >/dev/null || skip "no sqlite3"

mkdir whole
(cd whole && "$bin/onnx-blocks" 12 32 6 && "$bin/onnx-cases" direct /nonexistent .) >whole.log 2>&1 ||
    fail "the whole model: $(cat whole.log)"
output=$(sed -n 's/^o \(.*\)=o0.npy$/\1/p' whole/words)

# Our own operators compute on each of the agents, so that the numbers are the same.
market_up --credits 100 --slots 1 --price 0.40
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
echo 'onnx: {library: none}' >>"$market/provider/provider.yaml"
agents=()
for folder in "$work/second" "$work/third"; do
    agent_join "$folder" --name "${folder##*/}" <<<$'slots: 1\nonnx: {library: none}'
done
for folder in "$market/provider" "$work/second" "$work/third"; do
    agent_start "$folder"
    agents+=("$agent")
    started+=("$agent")
done
# Succeeds when so many devices compute models.
computing() {
    "$bourse" devices --needs 'executor = onnx' --json >devices.json 2>/dev/null &&
        [ "$(grep -o '"price_micro"' devices.json | wc -l)" -ge "$1" ]
}
until_true 60 computing 3 || fail "not all compute models: $(cat devices.json)"

run() { timeout 240 "$bourse" run -y "$@" >out 2>err </dev/null; }
close_to() { # FILE
    "$bin/onnx-cases" close whole/o0.npy "$1" >close.log 2>&1 || fail "$1: $(cat close.log out err)"
}

# ---------------------------------------------------------------- the same numbers
run whole/model.onnx --input x=whole/i0.npy --stages 3 -o one || fail "three stages: $(cat out err)"
close_to "one/$output.npy"
[ "$(find one -type f | wc -l)" -eq 1 ] || fail "more than the output is fetched: $(find one -type f)"
cat out err >&2; "$bourse" report last >&2; "$bourse" explain last >&2; "$bourse" ps last >&2
