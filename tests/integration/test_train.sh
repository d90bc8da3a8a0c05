#!/usr/bin/env bash
# A small network is trained by three agents: the same losses and weights as training by hand in one process, with an
# agent that is killed in the middle; each subtask is paid once; a step in between goes on to the same bytes; what cannot
# be trained is told before money is held.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin train "$1" bourse-audit bourse-onnx train-net
command -v sqlite3 >/dev/null || skip "no sqlite3"
command -v perl >/dev/null || skip "no perl"

"$bin/train-net" make 25 || fail "no network"

own_engines_up

# ---------------------------------------------------------------- an agent is killed in a step
cat >net.yaml <<END
name: net
budget: 2.00
model: net.onnx
inputs: {x: x.npy}
train: {labels: y.npy, steps: 4, batch: 12, parts: 3, every: 2, optimizer: sgd, rate: 0.1}
END
# The first engine that shows stands still.
perl "$support/hold.pl" .bourse-onnx "${agents[@]}" >lost &
holder=$!
started+=("$holder")
job=$("$bourse" submit net.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
until_true 60 gone "$holder" || fail "no engine: $("$bourse" ps "$job")"
lost=$(cat lost)
[ -n "$lost" ] || fail "no engine was seen"
kill -9 "$lost"
timeout 120 "$bourse" wait "$job" >wait.log 2>&1 </dev/null || fail "the job of the lost agent is not done: $(cat wait.log)"
timeout 60 "$bourse" fetch "$job" -o out >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
[ "$(cd out && find . -type f | sort | tr '\n' ' ')" = './step-2/losses.npy ./step-2/state.npy ./step-2/weights.npy ./step-4/losses.npy ./step-4/state.npy ./step-4/weights.npy ' ] ||
    fail "other files came back: $(find out -type f)"
"$bin/train-net" check out/step-4/losses.npy out/step-4/weights.npy 25 2 4 sgd >close.log ||
    fail "the market trains otherwise: $(cat close.log)"
# Each of the four steps' four subtasks was accepted and paid once, and what stood still was begun again elsewhere.
tries=$(sqlite3 -readonly "$market/ledger.db" "SELECT COUNT(*), COUNT(DISTINCT idx), MAX(attempt) > MIN(attempt)
    FROM results WHERE status = 0 AND lower(hex(job)) LIKE '$job%'")
[ "$tries" = '16|16|1' ] || fail "accepted, subtasks, begun again: $tries"

# ---------------------------------------------------------------- from a step on, in other parts and with another method
timeout 240 "$bourse" train net.onnx --input x=x.npy --labels y.npy --steps 2 --batch 12 --parts 3 --optimizer sgd \
    --rate 0.1 --from out/step-2 -y -o again >out.txt 2>err </dev/null || fail "from a step on: $(cat out.txt err)"
has "$(cat err)" '2 steps from step 3 on, 12 rows each in 3 parts, 51 weights'
for file in weights state losses; do
    cmp "out/step-4/$file.npy" "again/step-4/$file.npy" || fail "$file has other bytes"
done
timeout 240 "$bourse" train net.onnx --input x=x.npy --labels y.npy --steps 1 --parts 9 --rate 0.01 -y -o tree \
    >out.txt 2>err </dev/null || fail "a tree of sums: $(cat out.txt err)"
"$bin/train-net" check tree/step-1/losses.npy tree/step-1/weights.npy 25 1 1 adamw >close.log ||
    fail "a tree of sums trains otherwise: $(cat close.log)"

# The model with these weights starts where they are.
"$bourse" train net.onnx --from out/step-4 --save trained.onnx || fail "save"
"$bourse" train net.onnx --from out/step-4 --save net.onnx 2>err && fail "the model itself is overwritten"
[ "$(stat -c %a trained.onnx)" = "$(printf '%o' $((0666 & ~$(umask))))" ] || fail "mode of the model: $(stat -c %a trained.onnx)"
grep -q 'net.onnx is there already, and nothing is overwritten' err || fail "what --save says: $(cat err)"
timeout 240 "$bourse" train trained.onnx --input x=x.npy --labels y.npy --steps 1 --batch 12 --optimizer sgd --parts auto \
    -y -o saved >out.txt 2>err </dev/null || fail "the saved model: $(cat out.txt err)"
timeout 240 "$bourse" train net.onnx --input x=x.npy --labels y.npy --steps 1 --batch 12 --optimizer sgd --from out/step-4 \
    -y -o same >out.txt 2>err </dev/null || fail "its checkpoint: $(cat out.txt err)"
[ "$(tail -c 4 saved/step-1/losses.npy | od -An -tx1)" = "$(tail -c 4 same/step-5/losses.npy | od -An -tx1)" ] ||
    fail "the saved model has another loss"

# ---------------------------------------------------------------- what does not go is said before money is held
refused() { # TEXT OPTION...
    local text=$1 status=0
    shift
    timeout 60 "$bourse" train net.onnx -y "$@" >out.txt 2>err </dev/null || status=$?
    [ "$status" -eq 2 ] || fail "status $status and not 2 of $*: $(cat out.txt err)"
    has "$(cat err)" "$text"
}
refused 'needs --input' --labels y.npy
refused 'the labels are int64[25], and the loss asks for float32[25,3]' --input x=x.npy --labels y.npy --steps 1 --loss mse
refused 'a batch has 26 rows, and the data has 25' --input x=x.npy --labels y.npy --steps 1 --batch 26
refused 'no input "z"' --input x=x.npy --input z=x.npy --labels y.npy --steps 1
refused 'take 3855 steps, and go on with --from' --input x=x.npy --labels y.npy --steps 9999 --parts 14
refused 'ask for float32[103]' --input x=x.npy --labels y.npy --steps 1 --from same/step-5
market_audit
echo "train: ok"
