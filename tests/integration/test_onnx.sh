#!/usr/bin/env bash
# ONNX models through a whole market: the same bytes as ONNX Runtime computes directly, on a sample of ONNX's own cases;
# weights in other files, parts of the rows that are joined, a run for each file, tasks that pass arrays on; models and
# inputs that do not fit are told before money is held; a market without such a device says so.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
# shellcheck source=tests/support/onnx_cases.sh
. "$support/onnx_cases.sh"
fire_begin onnx "$1" bourse-audit onnx-cases
command -v perl >/dev/null || skip "no perl"

# message FIELD FILE: a field of a protocol buffer whose bytes are those of the file.
varint() { perl -e '$n = $ARGV[0]; do { $b = $n & 127; $n >>= 7; print chr($b | ($n ? 128 : 0)) } while $n' "$1"; }
field() { varint $(($1 * 8 + 2)) && varint "$(stat -c %s "$2")" && cat "$2"; }
text() { printf %s "$2" >text.bin && field "$1" text.bin; }
number() { varint $(($1 * 8)) && varint "$2"; }
# port FILE NAME DIM...: an input or output of float32; a dim that is no number is a name.
port() {
    local file=$1 name=$2 dim
    shift 2
    : >dims.bin
    for dim in "$@"; do
        case $dim in
        [0-9]*) number 1 "$dim" >dim.bin ;;
        *) text 2 "$dim" >dim.bin ;;
        esac
        field 1 dim.bin >>dims.bin
    done
    { number 1 1 && field 2 dims.bin; } >tensor.bin
    field 1 tensor.bin >type.bin
    { text 1 "$name" && field 2 type.bin; } >"$file"
}
# model FILE: of node.bin (with fields of the graph), in.bin and out.bin.
model() {
    { cat nodes.bin && text 2 g && field 11 in.bin && field 12 out.bin; } >graph.bin
    number 2 13 >opset.bin
    { number 1 8 && field 7 graph.bin && field 8 opset.bin; } >"$1"
}
node() { # OPERATOR OUTPUT INPUT...
    local operator=$1 output=$2 input
    shift 2
    for input in "$@"; do text 1 "$input"; done >node.bin
    { text 2 "$output" && text 4 "$operator"; } >>node.bin
    field 1 node.bin
}
# npy FILE "SHAPE" NUMBER...: float32.
npy() {
    perl -e '($f, $s, @n) = @ARGV; $h = "{\x27descr\x27: \x27<f4\x27, \x27fortran_order\x27: False, \x27shape\x27: ($s), }";
        $h .= " " x (63 - (10 + length $h) % 64) . "\n"; open O, ">", $f; binmode O;
        print O "\x93NUMPY\x01\x00", pack("v", length $h), $h, pack("f<*", @n)' "$@"
}
floats() { od -An -v -tf4 -w4 -j 128 "$1" | tr -d ' ' | paste -sd' '; }

# Without a library, nobody computes models, and that is said before anything is held.
node Abs y x >nodes.bin
port in.bin x n 2
port out.bin y n 2
model abs.onnx
npy a.npy 7,2 0 -1 2 -3 4 -5 6 -7 8 -9 10 -11 12 -13
export BOURSE_ONNXRUNTIME=/nonexistent/libonnxruntime.so.1
market_up --credits 100 --slots 1 --price 0.40
grep -q 'no ONNX models are computed here: /nonexistent/libonnxruntime.so.1: No such file or directory' "$market/provider.log" || fail "no reason: $(cat "$market/provider.log")"
status=0
timeout 60 "$bourse" run -y abs.onnx --input x=a.npy -o none >out 2>err </dev/null || status=$?
[ "$status" -eq 5 ] || fail "status $status without a device: $(cat out err)"
has "$(cat err)" 'fails on executor = "onnx"'
timeout 60 "$bourse" down >down.log 2>&1 || fail "down: $(cat down.log)"

unset BOURSE_ONNXRUNTIME
market=$work/second
export BOURSE_MARKET=$market
onnx_begin
has "$(cat "$market/provider.log")" 'ONNX models are computed by onnxruntime-1.'

run() { timeout 240 "$bourse" run -y "$@" >out 2>err </dev/null; }
jobs_here() { "$bourse" ps --quiet | wc -l; }

# ---------------------------------------------------------------- ONNX's own cases
sample=(node/test_add_bcast node/test_conv_with_strides_padding node/test_gemm_all_attributes node/test_batchnorm_example
    node/test_softmax_axis_1 node/test_lstm_defaults node/test_maxpool_2d_default node/test_argmax_default_axis_example
    node/test_cast_FLOAT_to_DOUBLE node/test_reduce_mean_default_axes_keepdims_random node/test_where_example
    node/test_if node/test_top_k node/test_nonzero_example node/test_quantizelinear node/test_shape
    node/test_split_equal_parts_1d simple/test_expand_shape_model1 pytorch-converted/test_Conv2d)
for name in "${sample[@]}"; do
    onnx_case "$onnx_data/$name" || fail "$name: $case_reason"
done
[ "$case_same" -ge 17 ] || fail "only $case_same of ${#sample[@]} cases ran, $case_unfit unfit, $case_refused refused"
[ "$case_other" -eq 0 ] || fail "$case_other cases are not as stated: $case_reason"

# ---------------------------------------------------------------- one run
printf 'model: abs.onnx\ninputs: {x: a.npy}\n' >first.yaml
"$bourse" quote first.yaml --json >quote.json 2>err || fail "a quote: $(cat quote.json err)"
has "$(cat quote.json)" '"source":"declared"' # its operators are counted, where 5 s were guessed
[ "$(grep -oE '"expect_ns":[0-9]+' quote.json | head -n 1 | cut -d: -f2)" -lt 1000000000 ] || fail "a sum takes long: $(cat quote.json)"
run abs.onnx --input x=a.npy -o one || fail "abs: $(cat out err)"
[ "$(floats one/y.npy)" = '0 1 2 3 4 5 6 7 8 9 10 11 12 13' ] || fail "abs: $(floats one/y.npy)"
perl -MIO::Compress::Zip=:all -e 'zip ["a.npy"] => "both.npz", Name => "x.npy", Method => ZIP_CM_DEFLATE or die $ZipError'
for word in both.npz both.npz:x; do
    run abs.onnx --input "x=$word" -o "npz-${word##*:}" || fail "$word: $(cat out err)"
    cmp -s one/y.npy "npz-${word##*:}/y.npy" || fail "an array of an archive gives other results"
done
tail -c 56 a.npy >a.bin
run abs.onnx --input 'x=a.bin:float32[7,2]' --save y=b.npy -o raw || fail "raw: $(cat out err)"
cmp -s one/y.npy raw/b.npy || fail "raw elements give other results"
id=$("$bourse" ps last --quiet)
"$bourse" receipt "$id" 0 -o proofs >receipt.log 2>&1 || fail "receipt: $(cat receipt.log)"
"$bourse" verify proofs/* >verify.txt 2>&1 || fail "verify: $(cat verify.txt)"

# The rows of an input, in parts, on one slot: the model is opened once.
run abs.onnx --input x=a.npy --split x --parts 3 -o parts || fail "parts: $(cat out err)"
cmp -s one/y.npy parts/y.npy || fail "the joined parts differ: $(floats parts/y.npy)"
[ "$(floats parts/0/y.npy)" = '0 1 2 3' ] || fail "part 0: $(floats parts/0/y.npy)"
timeout 60 "$bourse" fetch last -o parts >fetch.log 2>&1 || fail "fetch again: $(cat fetch.log)"
echo other >parts/y.npy
! timeout 60 "$bourse" fetch last -o parts >fetch.log 2>&1 || fail "another file was replaced"
has "$(cat fetch.log)" 'is there with other content'

# One run for each file.
npy b.npy 1,2 -20 -21
run abs.onnx --each '[ab].npy' --input 'x={in}' -o each || fail "each: $(cat out err)"
[ "$(floats each/b.npy.y.npy)" = '20 21' ] || fail "each: $(find each)"

# Weights in another file, below the model's folder; tasks that pass an array on.
mkdir -p big/data
perl -e 'print pack("f<*", 100, 200)' >big/data/w.bin
{ text 1 location && text 2 data/w.bin; } >entry.bin
{ number 1 2 && number 2 1 && text 8 w && field 13 entry.bin && number 14 1; } >weights.bin
{ node Add y x w && field 5 weights.bin; } >nodes.bin
model big/add.onnx
run big/add.onnx --input x=b.npy -o big/out || fail "weights: $(cat out err)"
[ "$(floats big/out/y.npy)" = '80 179' ] || fail "weights: $(floats big/out/y.npy)"
cat >tasks.yaml <<'END'
name: two-models
budget: 1.00
executor: onnx
tasks:
- name: first
  files: [abs.onnx, b.npy]
  run: [abs.onnx, -i, x=b.npy, -o, y=mid.npy]
  outputs: mid.npy
- name: second
  files: [big/add.onnx, big/data/w.bin]
  from: first/mid.npy
  run: [big/add.onnx, -i, x=mid.npy, -o, y=sum.npy]
  outputs: sum.npy
END
timeout 240 "$bourse" submit -y tasks.yaml -o tasks >out 2>err </dev/null || fail "tasks: $(cat out err)"
[ "$(floats tasks/second/sum.npy)" = '120 221' ] || fail "tasks: $(find tasks)"

# Another spelling of the files, in more subtasks than there are slots; and an array out of a task's folder.
{
    printf 'name: spelled\nbudget: 1.00\nexecutor: onnx\ntasks:\n'
    for i in 1 2 3 4; do
        printf -- '- name: abs%s\n  files: [abs.onnx, b.npy]\n  run: [./abs.onnx, -i, x=./b.npy, -o, y=left/mid.npy]\n' "$i"
        printf '  outputs: left/\n'
    done
    printf -- '- name: end\n  files: [abs.onnx]\n  from: {parts/: abs1/left/}\n'
    printf '  run: [abs.onnx, -i, x=parts/mid.npy, -o, y=end.npy]\n  outputs: end.npy\n'
} >spelled.yaml
timeout 240 "$bourse" submit -y spelled.yaml -o spelled >out 2>err </dev/null || fail "other spellings: $(cat out err)"
for i in 1 2 3 4; do
    [ "$(floats "spelled/abs$i/left/mid.npy")" = '20 21' ] || fail "other spellings: $(find spelled)"
done
[ "$(floats spelled/end/end.npy)" = '20 21' ] || fail "an array out of a folder: $(find spelled)"

# ---------------------------------------------------------------- what does not fit is said before money is held
refused() { # TEXT COMMAND...
    local text=$1 status=0 jobs
    shift
    jobs=$(jobs_here)
    timeout 60 "$@" >out 2>err </dev/null || status=$?
    [ "$status" -eq 2 ] || fail "status $status and not 2 of $*: $(cat out err)"
    has "$(cat err)" "$text"
    [ "$(jobs_here)" = "$jobs" ] || fail "$* left a job"
}
npy wide.npy 1,3 1 2 3
{ head -c 128 b.npy && printf 1234; } >short.npy
head -c 40 abs.onnx >cut.onnx
node Abs y z >nodes.bin
model unmade.onnx
refused 'the model has no input "z"; it has "x"' "$bourse" run -y abs.onnx --input z=b.npy
refused "the model's input \"x\" is not given" "$bourse" run -y abs.onnx
refused 'float32[1,3], and the model' "$bourse" run -y abs.onnx --input x=wide.npy
refused 'short.npy: ' "$bourse" run -y abs.onnx --input x=short.npy
refused 'it has 56 bytes, and its type and dims are 64' "$bourse" run -y abs.onnx --input 'x=a.bin:float32[8,2]'
refused 'int64[7,1], and the model' "$bourse" run -y abs.onnx --input 'x=a.bin:int64[7,1]'
refused 'the model has no output "q"' "$bourse" run -y abs.onnx --input x=b.npy --save q=q.npy
refused '"y=/tmp/y.npy" must name a file inside the work folder' "$bourse" run -y abs.onnx --input x=b.npy --save y=/tmp/y.npy
refused '"y=../y.npy" must name a file inside the work folder' "$bourse" run -y abs.onnx --input x=b.npy --save y=../y.npy
refused 'the output "y" would replace a file that the run reads' "$bourse" run -y abs.onnx --input x=b.npy --save y=abs.onnx
refused 'cut.onnx: ' "$bourse" run -y cut.onnx --input x=b.npy
refused 'unmade.onnx: ' "$bourse" run -y unmade.onnx --input x=b.npy
refused 'fewer rows than there are parts, 9' "$bourse" run -y abs.onnx --input x=a.npy --split x --parts 9
refused 'stand together' "$bourse" run -y abs.onnx --input x=a.npy --split x
truncate -s 6 big/data/w.bin
refused 'has 6 bytes, and the model has weights in it up to byte 8' "$bourse" run -y big/add.onnx --input x=b.npy
rm big/data/w.bin
refused 'w.bin: No such file' "$bourse" run -y big/add.onnx --input x=b.npy

# What only the engine finds is the job's own fault, with the engine's words, and harms nobody.
node NoSuchOperator y x >nodes.bin
model strange.onnx
! run --retries 0 strange.onnx --input x=b.npy || fail "an unknown operator ran"
"$bourse" logs last --json >outcomes.json
has "$(cat outcomes.json)" 'NoSuchOperator'
run abs.onnx --input x=b.npy -o after || fail "after all that was wrong: $(cat out err)"
[ "$(floats after/y.npy)" = '20 21' ] || fail "after: $(floats after/y.npy)"
timeout 60 "$bourse" down >down.log 2>&1 || fail "down: $(cat down.log)"
"$bin/bourse-broker" audit "$market" >audit.txt 2>&1 || fail "audit: $(cat audit.txt)"

# ---------------------------------------------------------------- operators of our own
market=$work/third
export BOURSE_MARKET=$market
market_up --credits 100 --slots 1 --price 0.40
echo 'onnx: {library: none}' >>"$market/provider/provider.yaml"
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
"$bin/bourse-provider" run --market "$market" >own.log 2>&1 &
agent=$!
started+=("$agent")
until_true 60 onnx_shown || fail "no device computes models by our own operators: $(cat own.log)"
"$bourse" devices --needs 'engine = "bourse-1"' --json >devices.json 2>&1 || fail "devices: $(cat devices.json)"
has "$(cat devices.json)" '"price_micro"'
run abs.onnx --input x=a.npy -o own || fail "abs: $(cat out err)"
cmp -s one/y.npy own/y.npy || fail "our own operators give another result"
for name in node/test_conv_with_strides_padding node/test_gemm_all_attributes node/test_softmax_axis_1 node/test_lstm_defaults; do
    folder=$work/own-case
    rm -rf "$folder"
    mkdir "$folder"
    "$bin/onnx-cases" prepare "$onnx_data/$name" "$folder" >prepare.log 2>&1 || fail "$name: $(cat prepare.log)"
    onnx_words "$folder"
    onnx_market "$folder" || fail "$name: $(cat "$folder/err")"
    for file in "$folder"/e*.npy; do
        "$bin/onnx-cases" close "$file" "$folder/market/o${file##*/e}" >close.log 2>&1 || fail "$name: $(cat close.log)"
    done
done
! run --retries 0 strange.onnx --input x=b.npy || fail "our own operators ran an unknown one"
"$bourse" logs last --json >outcomes.json
has "$(cat outcomes.json)" 'NoSuchOperator'
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
market_audit
echo "models: ok ($case_same cases)"
