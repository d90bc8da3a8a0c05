#!/usr/bin/env bash
# A model of twelve blocks in stages over three agents: the same numbers as the whole model in one run, with parts of
# the rows and without; only the model's outputs are fetched; an agent that is killed in the middle of a stage has it
# computed by another one, and paid once; what cannot be cut is told before money is held.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin stages "$1" bourse-audit onnx-cases onnx-blocks bourse-onnx
command -v sqlite3 >/dev/null || skip "no sqlite3"
command -v perl >/dev/null || skip "no perl"

mkdir whole
(cd whole && "$bin/onnx-blocks" 12 32 12 && "$bin/onnx-cases" direct /nonexistent .) >whole.log 2>&1 ||
    fail "the whole model: $(cat whole.log)"
output=$(sed -n 's/^o \(.*\)=o0.npy$/\1/p' whole/words)

own_engines_up

run() { timeout 240 "$bourse" run -y "$@" >out 2>err </dev/null; }
close_to() { # FILE
    "$bin/onnx-cases" close whole/o0.npy "$1" >close.log 2>&1 || fail "$1: $(cat close.log out err)"
}

# ---------------------------------------------------------------- the same numbers
run whole/model.onnx --input x=whole/i0.npy --stages 3 -o one || fail "three stages: $(cat out err)"
close_to "one/$output.npy"
[ "$(find one -type f | wc -l)" -eq 1 ] || fail "more than the output is fetched: $(find one -type f)"
has "$(cat err)" 'stages        1: '
"$bourse" report last >report.txt 2>&1 || fail "report: $(cat report.txt)"
grep -q '^stage-3 ' report.txt || fail "the report has no stages: $(cat report.txt)"

# Parts of the rows follow one another. What goes from stage to stage stays in the market.
run whole/model.onnx --input x=whole/i0.npy --split x --parts 3 --stages 3 -o parts || fail "parts: $(cat out err)"
close_to "parts/$output.npy"
[ "$(find parts -type f | wc -l)" -eq 4 ] || fail "more than the output is fetched: $(find parts -type f)"
run whole/model.onnx --input x=whole/i0.npy --split x --parts 3 -o plain || fail "without stages: $(cat out err)"
cmp -s "plain/$output.npy" "parts/$output.npy" || fail "with stages the bytes are others"

# As many parts as the devices' speeds ask for: of so little work, one.
run whole/model.onnx --input x=whole/i0.npy --split x --parts auto -o auto || fail "auto: $(cat out err)"
close_to "auto/$output.npy"
if "$bourse" devices --needs 'gemm_fp32 >= 1' --json 2>/dev/null | grep -q '"price_micro"'; then
    has "$(cat err)" 'parts: 1 on 1 device, about '
fi

# ---------------------------------------------------------------- an agent is killed in a stage
cat >staged.yaml <<END
name: staged
budget: 2.00
model: whole/model.onnx
inputs: {x: whole/i0.npy}
split: x
parts: 12
stages: 3
END
# The first engine that shows stands still. A job that was done before is submitted again.
perl "$support/hold.pl" .bourse-onnx "${agents[@]}" >lost &
holder=$!
started+=("$holder")
for _ in 1 2 3 4 5; do
    job=$("$bourse" submit staged.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
    held_or_done() { gone "$holder" || timeout 20 "$bourse" ps "$job" --json | grep -q '"accepted":36'; }
    until_true 60 held_or_done || fail "neither an engine nor an end: $("$bourse" ps "$job")"
    ! gone "$holder" || break
done
lost=$(cat lost)
[ -n "$lost" ] || fail "no engine was seen"
counts() { timeout 20 "$bourse" ps "$job" --json >ps.json 2>/dev/null && number accepted ps.json; }
# The others go on until they wait for what stands still.
stands() { local before; before=$(counts) && sleep 1 && [ "$(counts)" = "$before" ] && [ "$before" -lt 36 ]; }
until_true 60 stands || fail "the job goes on without its engine: $(cat ps.json)"
kill -9 "$lost"
timeout 120 "$bourse" wait "$job" >wait.log 2>&1 </dev/null || fail "the job of the lost agent is not done: $(cat wait.log)"
timeout 60 "$bourse" fetch "$job" -o after >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
close_to "after/$output.npy"
# Each subtask was accepted and paid once, and what stood still was begun again elsewhere.
tries=$(sqlite3 -readonly "$market/ledger.db" "SELECT COUNT(*), COUNT(DISTINCT idx), MAX(attempt) > MIN(attempt)
    FROM results WHERE status = 0 AND lower(hex(job)) LIKE '$job%'")
[ "$tries" = '36|36|1' ] || fail "accepted, subtasks, begun again: $tries"

# ---------------------------------------------------------------- what does not go is said before money is held
refused() { # TEXT COMMAND...
    local text=$1 status=0
    shift
    timeout 60 "$@" >out 2>err </dev/null || status=$?
    [ "$status" -eq 2 ] || fail "status $status and not 2 of $*: $(cat out err)"
    has "$(cat err)" "$text"
}
refused '17 is outside 1 to 16' "$bourse" run -y whole/model.onnx --input x=whole/i0.npy --stages 17
refused 'do not go together' "$bourse" run -y whole/model.onnx --each 'whole/*.npy' --input 'x={in}' --stages 2
refused 'auto is for models without stages' "$bourse" run -y whole/model.onnx --input x=whole/i0.npy --split x --parts auto --stages 2
rm whole/weights.bin
refused 'weights.bin: No such file' "$bourse" run -y whole/model.onnx --input x=whole/i0.npy --stages 2
market_audit
echo "stages: ok"
