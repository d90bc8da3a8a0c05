#!/usr/bin/env bash
# Products of matrices through a whole market: the files are those that a slow hand would write, byte for byte; only devices
# that have the executor get the job; one worker computes what one lane gets; what is wrong with a file is told where its owner looks.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin tensor "$1" bourse-tensor bourse-audit market-client
command -v sqlite3 >/dev/null || skip "no sqlite3"

# npy FILE TYPE SHAPE HEX...: a file as NumPy writes it, its data given in hexadecimal.
npy() {
    local file=$1 type=$2 shape=$3
    shift 3
    {
        printf '\x93NUMPY\x01\x00\x76\x00'
        printf '%-117s\n' "{'descr': '$type', 'fortran_order': False, 'shape': ($shape), }"
        printf '%b' "$(printf '%s' "$@" | sed 's/../\\x&/g')"
    } >"$file"
}
one=0000803f two=00000040 three=00004040 four=00008040 five=0000a040 six=0000c040 zero=00000000 nan=0000c07f
ten=00002041 eleven=00003041
npy a.npy '<f4' '2, 3' $one $two $three $four $five $six
npy b.npy '<f4' '3, 2' $one $zero $zero $one $one $one
npy product.npy '<f4' '2, 2' $four $five $ten $eleven
npy odd.npy '<f4' '2, 3' $one $two $three $four $nan $six
npy counts.npy '<i8' '2, 3' "$(printf '%096d' 0)"
job() { # NAME LINE...: submits it and waits; its id is in `id`
    local name=$1
    shift
    printf '%s\n' "name: $name" "executor: tensor" "expect: 10ms" "budget: 1.00" "$@" >"$name.yaml"
    id=$("$bourse" submit "$name.yaml" -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
}
is_over() { "$bourse" ps "$id" --json >ps.json 2>/dev/null && grep -qE '"state":"(done|failed)","reason"' ps.json; }
await() { until_true 60 is_over || fail "$1: $(cat ps.json; "$bourse" explain "$id" 2>&1)"; }

market_up --credits 100 --slots 1
mkdir -m 700 looked
"$bin/bourse-provider" probe --dir "$work/looked" --json >probe.json 2>probe.log || fail "probe: $(cat probe.log)"
grep -q '"name":"executor","text":"tensor"' probe.json || fail "no tensor executor: $(cat probe.log probe.json)"

job product 'files: [a.npy, b.npy]' 'run: [matmul, a.npy, b.npy, c.npy]' 'outputs: c.npy'
await product
"$bourse" fetch "$id" -o out >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
cmp product.npy out/c.npy || fail "the product is another"

# One subtask per file, with NaN on the way; then the check of one of them.
job rows 'each: [a.npy, odd.npy]' 'files: b.npy' 'run: [matmul, "{in}", b.npy, "{out}"]' 'outputs: ["{out}"]'
await rows
"$bourse" fetch "$id" -o rows >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
cmp product.npy rows/a.npy || fail "the first product is another"
tail -c 16 rows/odd.npy | od -An -tf4 | tr -s ' ' | grep -qx ' 4 5 -*nan -*nan' || fail "NaN got lost"
dice=$(printf '%064d' 7)
job check 'files: [a.npy, b.npy, product.npy]' "run: [freivalds, a.npy, b.npy, product.npy, \"$dice\", 20]"
await check
"$bourse" logs "$id" >logs.txt 2>&1 || fail "logs: $(cat logs.txt)"
has "$(cat logs.txt)" '"verdict":"accept","rounds":20'

# What is wrong is said in words: of files before anything is sent, of what a task leaves by its agent. Nothing is left.
refused() { # PATTERN LINE...
    local pattern=$1 status=0
    shift
    printf '%s\n' "name: wrong" "executor: tensor" "budget: 1.00" "$@" >wrong.yaml
    "$bourse" submit wrong.yaml -y >submit.log 2>&1 || status=$?
    [ "$status" -eq 2 ] || fail "a wrong file is taken: $status $(cat submit.log)"
    has "$(cat submit.log)" "$pattern"
}
jobs=$("$bourse" ps --quiet | wc -l)
refused "wrong.yaml:5: run: counts.npy: the elements are int64, and float32 is computed with; convert them" \
    'files: [counts.npy, b.npy]' 'run: [matmul, counts.npy, b.npy, c.npy]' 'outputs: c.npy'
sed "s/'fortran_order': False/'fortran_order': True /" a.npy >fortran.npy
refused "wrong.yaml:5: run: fortran.npy: the file is in Fortran order" \
    'files: [fortran.npy, b.npy]' 'run: [matmul, fortran.npy, b.npy, c.npy]' 'outputs: c.npy'
refused "wrong.yaml:5: run: a.npy is 2 x 3 and a.npy 2 x 3; the first must have as many columns" \
    'files: [a.npy, b.npy]' 'run: [matmul, a.npy, a.npy, c.npy]' 'outputs: c.npy'
[ "$("$bourse" ps --quiet | wc -l)" -eq "$jobs" ] || fail "a job with wrong files was taken: $("$bourse" ps)"
job shapes 'files: [a.npy, b.npy]' 'tasks:' '  - {name: first, run: [matmul, a.npy, b.npy, c.npy], outputs: c.npy}' \
    '  - {name: second, run: [matmul, c.npy, b.npy, d.npy], outputs: d.npy, from: first}'
await shapes
grep -q '"state":"failed"' ps.json || fail "wrong shapes are taken: $(cat ps.json)"
"$bourse" logs "$id" >logs.txt 2>&1 || true
has "$(cat logs.txt)" "c.npy is 2 x 2 and b.npy 3 x 2; the first must have as many columns"

# Tiles that are too large to be kept in memory, one after the other in one lane: one jail computes them all.
matrix=$(dirname "$(realpath "$0")")/../support/matrix.pl
"$matrix" tall.npy 1200 16 1 whole
"$matrix" flat.npy 16 1200 2 whole
kill -TERM "$agent"
ended "$agent" 60 || fail "the agent does not end"
"$bin/bourse-provider" run --dir "$market/provider" --log debug >>"$work/agent-debug.log" 2>&1 &
agent=$!
until_true 60 offered 1 || fail "the agent offers nothing"
"$bourse" run -y matmul tall.npy flat.npy -o square.npy --tiles 4x4 --json >run.json 2>run.log || fail "run matmul: $(cat run.log)"
[ "$(field tiles run.json)" = 16 ] || fail "tiles: $(cat run.json)"
[ "$(grep -c 'a jail was opened' agent-debug.log)" = 1 ] || fail "16 tiles in one lane took more jails than one: $(grep jail agent-debug.log)"

# An agent that lacks the program offers no such executor, and gets no such job.
kill -TERM "$agent"
ended "$agent" 60 || fail "the agent does not end"
mkdir bare
cp "$bin/bourse-provider" "$bin/bourse-worker" bare/
[ "$(id -u)" -ne 0 ] || chmod 711 bare
bare/bourse-provider run --dir "$market/provider" >>"$work/agent-bare.log" 2>&1 &
agent=$!
until_true 60 offered 1 || fail "the bare agent offers nothing"
grep -q "no matrices are computed here" agent-bare.log || fail "it does not say so"
status=0
"$bourse" submit product.yaml -y --quiet >submit.out 2>submit.log || status=$?
[ "$status" -eq 5 ] || fail "a submit that no device fits ends with $status: $(cat submit.out submit.log)"
has "$(cat submit.log)" 'fails on executor = "tensor"'
# What reaches it all the same it refuses, and does not try to run.
id=$("$bin/market-client" anywhere "$market/market.yaml" "$market/owner.key" product.yaml 2>client.log) || fail "client: $(cat client.log)"
await refused
"$bourse" logs "$id" >logs.txt 2>&1 || true
has "$(cat logs.txt)" "this agent has no tensor executor"

market_audit
echo "products, checks and refusals through the market: ok"
