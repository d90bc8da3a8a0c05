#!/usr/bin/env bash
# A language model through a whole market: prompts become text, live and as files; several prompts in one job; a job
# file; receipts; the same tokens by ONNX Runtime and by our own operators; what does not fit is told before money is held.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
# shellcheck source=tests/support/onnx_cases.sh
. "$support/onnx_cases.sh"
fire_begin generate "$1" bourse-audit
command -v perl >/dev/null || skip "no perl"

cp "$support"/../golden/decoder/* .
engine="bourse-1"
if [ -r "$onnx_library" ]; then # the agent becomes a user of its own, who may be unable to read the place of the build
    install -m 755 "$onnx_library" "$work/libonnxruntime.so.1"
    export BOURSE_ONNXRUNTIME=$work/libonnxruntime.so.1
    engine=onnxruntime-
fi
market_up --credits 1000 --slots 1 --price 0.40
if [ "$engine" = bourse-1 ]; then echo 'no library of ONNX Runtime: only our own operators'; fi
own_agent() { # the agent anew, with our own operators
    echo 'onnx: {library: none}' >>"$market/provider/provider.yaml"
    kill "$agent"
    ended "$agent" 60 || fail "the agent does not end"
    "$bin/bourse-provider" run --market "$market" >own.log 2>&1 &
    agent=$!
    started+=("$agent")
    until_true 60 own_shown || fail "no device computes models by our own operators: $(cat own.log)"
}
own_shown() { "$bourse" devices --needs 'engine = "bourse-1"' --json 2>/dev/null | grep -q '"price_micro"'; }
[ "$engine" != bourse-1 ] || own_agent
until_true 60 onnx_shown || fail "no device computes models: $(cat "$market/provider.log")"

run() { timeout 240 "$bourse" run -y "$@" >out 2>err </dev/null; }
jobs_here() { "$bourse" ps --quiet | wc -l; }
# field FILE NAME: a field of the line of JSON.
field() { perl -MJSON::PP -0777 -ne 'BEGIN { $n = shift } print JSON::PP->new->canonical->encode([decode_json($_)->{$n}])' "$2" "$1"; }

# ---------------------------------------------------------------- one prompt
prompt='You may copy and distribute'
run decoder.onnx --prompt "$prompt" --max-tokens 16 -o one || fail "a prompt: $(cat out err)"
cmp -s out one/answer.txt || fail "what was printed is not the text: $(cat out one/answer.txt)"
[ -s out ] || fail "no text"
[ "$(field one/answer.json count)" = '[16]' ] || fail "not 16 tokens: $(cat one/answer.json)"
[ "$(field one/answer.json prompt)" = "[\"$prompt\"]" ] || fail "another prompt: $(cat one/answer.json)"
has "$(cat one/speed.json)" "\"engine\": \"$engine"
has "$(cat one/speed.json)" '"tokens_per_s"'
has "$(cat err)" 'tokens of the prompt in'
"$bourse" receipt last 0 -o proofs >receipt.log 2>&1 || fail "receipt: $(cat receipt.log)"
"$bourse" verify proofs/* >verify.txt 2>&1 || fail "verify: $(cat verify.txt)"

# Without a folder, the text is for the terminal alone, and no file stops the next prompt.
run decoder.onnx --prompt "$prompt" --max-tokens 16 || fail "a prompt without a folder: $(cat out err)"
cmp -s out one/answer.txt || fail "without a folder, another text: $(cat out)"
[ ! -e answer.txt ] && [ ! -e speed.json ] || fail "a prompt without a folder leaves files: $(ls)"

# A challenge by hand: the same job once more gives the same bytes.
run decoder.onnx --prompt "$prompt" --max-tokens 16 -o again || fail "again: $(cat out err)"
cmp -s one/answer.json again/answer.json || fail "another answer: $(cat again/answer.json)"

# The lines that come while the text is made are the text.
timeout 240 "$bourse" run -y --json decoder.onnx --prompt "$prompt" --max-tokens 100 -o live >live.json 2>err </dev/null ||
    fail "live: $(cat err live.json)"
perl -MJSON::PP -ne '$j = eval { decode_json($_) } or next; push @l, $j->{line} if ($j->{stream} // "") eq "stdout";
    END { binmode STDOUT, ":utf8"; print join "\n", @l }' live.json >live.txt
[ -s live.txt ] || fail "no line came: $(cat live.json)"
[ "$(cat live.txt)" = "$(cat live/answer.txt)" ] || fail "the lines are not the text: $(cat live.txt live/answer.txt)"

# ---------------------------------------------------------------- several prompts, and a job file
printf '%s\n' "$prompt" '' 'If {this} is' >prompts.txt
run decoder.onnx --prompts prompts.txt --max-tokens 16 -o many || fail "prompts: $(cat out err)"
cmp -s one/answer.json many/0/answer.json || fail "the first of two prompts has another answer"
[ "$(field many/1/answer.json prompt)" = '["If {this} is"]' ] || fail "braces: $(cat many/1/answer.json)"
cat >job.yaml <<'END'
model: decoder.onnx
lines: prompts.txt
generate: {prompt: "{line} ", max_tokens: 5, temperature: 0.9, top_k: 20, seed: 7}
END
timeout 240 "$bourse" submit -y job.yaml -o drawn >out 2>err </dev/null || fail "job file: $(cat out err)"
[ "$(field drawn/1/answer.json count)" = '[5]' ] || fail "drawn: $(cat drawn/1/answer.json)"

# ---------------------------------------------------------------- prompts that share steps: the texts of the prompts alone
# line FILE NUMBER: the answer of one prompt in a file of several, as that of a prompt alone.
line() { perl -MJSON::PP -ne 'BEGIN { $n = shift } $j = decode_json($_); next unless delete($j->{index}) == $n; print JSON::PP->new->canonical->encode($j)' "$2" "$1"; }
alone() { perl -MJSON::PP -ne 'print JSON::PP->new->canonical->encode(decode_json($_))' "$1"; }
run decoder.onnx --prompt "$prompt" --prompt 'If {this} is' --max-tokens 16 -o together || fail "two prompts: $(cat out err)"
for i in 0 1; do
    [ "$(line together/answers.jsonl $i)" = "$(alone many/$i/answer.json)" ] || fail "prompt $i: $(cat together/answers.jsonl many/$i/answer.json)"
    grep -q "^\[$i\] " out || fail "nothing is labelled $i: $(cat out)"
done
has "$(cat together/speed.json)" '"prompts": 2, "at_a_time": 2'
printf '%s\n' "$prompt" '' 'If {this} is' "$prompt" >prompts.txt
cat >batch.yaml <<'END'
model: decoder.onnx
lines: prompts.txt
generate: {prompt: "{line} ", max_tokens: 5, temperature: 0.9, top_k: 20, seed: 7, batch: 2}
END
timeout 240 "$bourse" submit -y batch.yaml -o batch >out 2>err </dev/null || fail "batch: $(cat out err)"
for i in 0 1; do
    [ "$(line batch/answers.jsonl $i)" = "$(alone drawn/$i/answer.json)" ] || fail "drawn $i: $(cat batch/answers.jsonl drawn/$i/answer.json)"
done
[ "$(line batch/answers.jsonl 2)" = "$(line batch/answers.jsonl 0)" ] || fail "the third of three: $(cat batch/answers.jsonl)"

# ---------------------------------------------------------------- what does not fit is said before money is held
refused() { # TEXT OPTIONS...
    local text=$1 status=0 jobs
    shift
    jobs=$(jobs_here)
    timeout 60 "$bourse" run -y "$@" >out 2>err </dev/null || status=$?
    [ "$status" -eq 2 ] || fail "status $status and not 2 of $*: $(cat out err)"
    has "$(cat err)" "$text"
    [ "$(jobs_here)" = "$jobs" ] || fail "$* left a job"
}
perl -e 'print "word " x 200' >long.txt
sed 's/"eos_token_id": 511/"eos_token_id": 100000/' config.json >other.json
sed 's/"normalizer": null/"normalizer": {"type": "NFC"}/' tokenizer.json >nfc.json
perl -pe 's/"<\|endoftext\|>": 511/"<|endoftext|>": 511, "<|more|>": 512/' tokenizer.json >more.json
refused 'the prompt has' decoder.onnx --prompt "$(cat long.txt)"
refused 'the model takes 1 to 128' decoder.onnx --prompt "$(cat long.txt)"
printf 'fine\n\n%s\n' "$(cat long.txt)" >long-lines.txt
refused 'in line 3' decoder.onnx --prompts long-lines.txt
refused 'the model takes 1 to 3' decoder.onnx --prompt "$prompt" --context 3
refused 'context: 500 places, but the model has 128' decoder.onnx --prompt "$prompt" --context 500
refused 'top_k and seed go with a temperature above 0' decoder.onnx --prompt "$prompt" --top-k 5
refused 'max_tokens (-n) "0" is no number' decoder.onnx --prompt "$prompt" --max-tokens 0
refused 'its normalizer "NFC" is not known here' decoder.onnx --prompt x --tokenizer nfc.json
refused 'the two do not belong together' decoder.onnx --prompt x --tokenizer more.json
refused 'cannot be opened' decoder.onnx --prompt x --tokenizer none.json
refused 'needs a prompt' decoder.onnx --max-tokens 3
refused 'in line 3' decoder.onnx --prompts long-lines.txt --batch 4
refused '"65" is no number from 1 to 64' decoder.onnx --prompt x --batch 65
printf '\n\n' >no-lines.txt
refused 'no-lines.txt has 0 prompts' decoder.onnx --prompts no-lines.txt --batch 4
refused 'does not go with a prompt' decoder.onnx --prompt x --input input_ids=a.npy
refused 'give one of --prompt and --prompts' decoder.onnx --prompt x --prompts prompts.txt
refused 'the temperature is a number from 0 to 10' decoder.onnx --prompt x --temperature 99
cp config.json good.json && cp other.json config.json
refused 'is above the vocabulary' decoder.onnx --prompt x
echo '{' >config.json
refused 'config.json: it is no JSON' decoder.onnx --prompt x
cp good.json config.json
sed 's/past_key_values.1.key/qast_key_values.1.key/' decoder.onnx >odd.onnx # as long as the name before
refused 'is none that a prompt fills' odd.onnx --prompt x
sed 's/present.1.value/qresent.1.value/' decoder.onnx >odd.onnx
refused 'no output "present."' odd.onnx --prompt x
perl -0pe 's/logits/lagits/g' decoder.onnx >odd.onnx
refused 'no output "logits"' odd.onnx --prompt x

# ---------------------------------------------------------------- the other engine gives the same tokens
if [ "$engine" != bourse-1 ]; then
    own_agent
    run decoder.onnx --prompt "$prompt" --max-tokens 16 -o own || fail "our own operators: $(cat out err)"
    has "$(cat own/speed.json)" '"engine": "bourse-1"'
    cmp -s one/answer.json own/answer.json || fail "the engines differ: $(cat one/answer.json own/answer.json)"
fi
# What lies about itself is found where it runs, and is the job's own fault.
mkdir bare
cp decoder.onnx tokenizer.json bare/ # without config.json, which says how many places there are
run --retries 0 bare/decoder.onnx --prompt "$prompt" --context 100000 --max-tokens 200 -o wrong && fail "a place that the model lacks"
"$bourse" logs last --json >outcomes.json
has "$(cat outcomes.json)" 'Gather'
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
market_audit
echo "a language model: ok ($engine)"
