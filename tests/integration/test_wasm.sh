#!/usr/bin/env bash
# WASM modules through a whole market: words, variables, streams, files and exit codes as of programs; traps, files that
# are no modules, endless loops and memory bombs are told and harm nobody; a module sees its folder and nothing else; an
# agent without an engine says so and offers none.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin wasm "$1" bourse-audit
command -v wat2wasm >/dev/null || skip "no wat2wasm (Debian package wabt)"
[ -x /usr/bin/node ] || skip "no node in /usr/bin (Debian package nodejs)"
for source in "$support"/wasm/*.wat; do
    name=${source##*/}
    wat2wasm "$source" -o "${name%.wat}.wasm" || fail "wat2wasm: $name"
done
make() { # NAME TEXT: a module of its own
    printf '%s\n' "$2" >"$1.wat"
    wat2wasm "$1.wat" -o "$1.wasm" || fail "wat2wasm: $1"
}

market_up --credits 100 --slots 1 --price 0.40
shown() { # PATTERN: waits for a device that runs modules
    "$bourse" devices --needs 'executor = wasm' --json 2>/dev/null | grep -q "$1"
}
until_true 60 shown '"price_micro"' || fail "no device runs modules: $(cat "$market/provider.log")"
has "$(cat "$market/provider.log")" 'WASM modules are run by /usr/bin/node, which is node v'

# Each run ends with the module's own status, and what it printed is in `out`.
run() { timeout 240 "$bourse" run -y --exit-code "$@" >out 2>err </dev/null; }
job() { # NAME LINE...: submits it and waits; its id is in `id`, and its status is the function's
    local name=$1 status=0
    shift
    printf '%s\n' "name: $name" "expect: 100ms" "budget: 1.00" "executor: wasm" "$@" >"$name.yaml"
    timeout 240 "$bourse" submit "$name.yaml" -y --wait >submit.out 2>submit.log </dev/null || status=$?
    id=$("$bourse" ps last --quiet)
    return "$status"
}
jobs_here() { "$bourse" ps --quiet | wc -l; }

# ---------------------------------------------------------------- a module is a program
run ./hello.wasm || fail "hello: $(cat out err)"
[ "$(cat out)" = 'hello from WASM' ] || fail "hello: $(cat out)"
grep -q 'hello.wasm, .*a WASM module, which an engine of the provider runs' err || fail "what is sent is not said: $(cat err)"
run --env 'COLOR=blue red' --env EMPTY= ./words.wasm one 'two words' '' --trial || fail "words: $(cat out err)"
[ "$(tr '\0' '|' <out)" = './words.wasm|one|two words||--trial|COLOR=blue red|EMPTY=|' ] || fail "words: $(tr '\0' '|' <out)"
# A variable that the engine itself would read reaches the module alone.
printf 'process.exit(55);\n' >evil.js
run --env 'NODE_OPTIONS=--require=/work/evil.js' --file evil.js ./words.wasm || fail "NODE_OPTIONS: $(cat out err)"
[ "$(tr '\0' '|' <out)" = './words.wasm|NODE_OPTIONS=--require=/work/evil.js|' ] || fail "NODE_OPTIONS: $(tr '\0' '|' <out)"

head -c 300000 /dev/urandom >large.bin
cp "$support"/wasm/*.wat .
job copy 'run: [copy.wasm, "{out}.copy"]' 'each: [large.bin, words.wat]' 'stdin: "{in}"' 'outputs: ["{out}.copy"]' ||
    fail "copy: $(cat submit.log submit.out)"
"$bourse" fetch "$id" -o copied >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
find copied -type f -name '*.copy' -exec sha256sum {} + | cut -d' ' -f1 | sort >sums.found
sha256sum large.bin words.wat | cut -d' ' -f1 | sort >sums.wanted
cmp -s sums.found sums.wanted || fail "the copies differ: $(find copied)"
"$bourse" receipt "$id" 0 -o proofs >receipt.log 2>&1 || fail "receipt: $(cat receipt.log)"
"$bourse" verify proofs/* >verify.txt 2>&1 || fail "verify: $(cat verify.txt)"

# The module may be the input of the subtask, one for each.
mkdir modules
cp hello.wasm modules/a.wasm
cp words.wasm modules/b.wasm
job each 'run: ["{in}", x]' 'each: ["modules/*.wasm"]' || fail "each: $(cat submit.log submit.out)"
"$bourse" logs "$id" >logs.txt 2>&1 || fail "logs: $(cat logs.txt)"
has "$(tr '\0' '|' <logs.txt)" 'hello from WASM'
has "$(tr '\0' '|' <logs.txt)" 'modules/b.wasm|x|'
printf 'hello.wasm\nnone.wasm\n' >names.txt
! job lines 'run: ["{line}"]' 'lines: names.txt' 'files: [hello.wasm]' || fail "a module that is not there ran"
"$bourse" logs "$id" --json >outcomes.json
has "$(cat outcomes.json)" 'names none of the subtask'
[ "$(grep -o '"outcome":"ok"' outcomes.json | wc -l)" -eq 1 ] || fail "the other module failed, too: $(cat outcomes.json)"
job array 'run: [words.wasm, "number {index}"]' 'array: 0-2' || fail "array: $(cat submit.log submit.out)"
"$bourse" logs "$id" >logs.txt 2>&1 || fail "logs: $(cat logs.txt)"
has "$(tr '\0' '|' <logs.txt)" './words.wasm|number 2|'

# ---------------------------------------------------------------- what is wrong is told in words
ends() { # STATUS TEXT ARGUMENT...: the run ends with the status, and the job's log has the text
    local wanted=$1 text=$2 status=0
    shift 2
    run --retries 0 "$@" || status=$?
    [ "$status" -eq "$wanted" ] || fail "status $status and not $wanted of run $*: $(cat out err)"
    "$bourse" logs "$("$bourse" ps last --quiet)" --json >outcomes.json
    has "$(cat outcomes.json)" "$text"
}
make trap '(module (memory (export "memory") 1) (func (export "_start") unreachable))'
ends 134 'the module trapped: unreachable' ./trap.wasm
make divide '(module (memory (export "memory") 1) (func (export "_start") (drop (i32.div_u (i32.const 1) (i32.load (i32.const 0))))))'
ends 134 'the module trapped: divide by zero' ./divide.wasm
make outside '(module (memory (export "memory") 1) (func (export "_start") (drop (i32.load (i32.const 65536)))))'
ends 134 'the module trapped: memory access out of bounds' ./outside.wasm
make deep '(module (memory (export "memory") 1) (func $f (export "_start") call $f))'
ends 134 'the module trapped: its calls are nested too deeply' ./deep.wasm
make import '(module (import "env" "gpu_run" (func)) (memory (export "memory") 1) (func (export "_start")))'
ends 126 'the module imports the function env.gpu_run, which WASI preview 1 does not have' ./import.wasm
make socket '(module (import "wasi_snapshot_preview1" "sock_open" (func)) (memory (export "memory") 1) (func (export "_start")))'
ends 126 'the function wasi_snapshot_preview1.sock_open, which WASI preview 1 does not have' ./socket.wasm
make library '(module (memory (export "memory") 1) (func (export "add")))'
ends 126 'the module has no function _start, so it is a library and no program' ./library.wasm
{ head -c 60 hello.wasm; head -c 200 /dev/zero; } >bad.wasm
ends 126 'the engine does not take the module: ' ./bad.wasm

refused() { # TEXT COMMAND...: is refused here, before anything is sent
    local text=$1 status=0 jobs
    shift
    jobs=$(jobs_here)
    "$@" >out 2>err </dev/null || status=$?
    [ "$status" -eq 2 ] || fail "status $status and not 2 of $*: $(cat out err)"
    has "$(cat err)" "$text"
    [ "$(jobs_here)" = "$jobs" ] || fail "$* left a job"
}
printf '\0asm\x0d\0\1\0' >component.wasm
refused 'component.wasm is a WASM component (WASI preview 2)' "$bourse" run -y ./component.wasm
printf '\0asm\2\0\0\0' >newer.wasm
refused 'newer.wasm is a WASM module of version 2' "$bourse" run -y ./newer.wasm
printf 'name: text\nbudget: 1.00\nexecutor: wasm\nrun: [hello.wat]\n' >text.yaml
refused 'hello.wat is no WASM module' "$bourse" submit -y text.yaml
printf 'name: none\nbudget: 1.00\nexecutor: wasm\nrun: [missing.wasm]\n' >none.yaml
refused 'missing.wasm: No such file or directory' "$bourse" submit -y none.yaml
printf 'name: saved\nbudget: 1.00\nexecutor: wasm\nrun: [hello.wasm]\ncheckpoint: state\n' >saved.yaml
refused 'only programs save their state' "$bourse" submit -y saved.yaml

# ---------------------------------------------------------------- limits
fails() { # TEXT NAME LINE...: the job fails, and its log has the text
    local text=$1
    shift
    ! job "$@" 'retries: 0' || fail "$1 is done"
    "$bourse" logs "$id" --json >outcomes.json 2>&1 || true
    has "$(cat outcomes.json)" "$text"
}
fails 'exit code 9' bomb 'limits: {memory: 256MiB}' 'run: [bomb.wasm]'
make huge '(module (memory (export "memory") 4112) (func (export "_start")))'
fails 'out of memory: the module wants 257 MiB at its start, and the subtask has 192 MiB for it' huge 'limits: {memory: 256MiB}' 'run: [huge.wasm]'
fails '"outcome":"time limit"' endless 'limit: 3s' 'run: [spin.wasm, "0"]'
printf 'name: small\nbudget: 1.00\nexecutor: wasm\nrun: [hello.wasm]\nlimits: {memory: 64MiB}\n' >small.yaml
refused 'limits: memory: 64MiB is too small for a WASM module with its engine; the least is 128MiB' "$bourse" submit -y small.yaml
kill -0 "$agent" || fail "the agent ended with a module"
run ./hello.wasm || fail "after all that was wrong: $(cat out err)"

# ---------------------------------------------------------------- a module sees its folder and nothing else
ends 0 '"outcome":"ok"' --file hello.wat ./open.wasm hello.wat
cmp -s out hello.wat || fail "a file of the job is another: $(cat out)"
ends 0 '"outcome":"ok"' --file hello.wat ./open.wasm hello.wat link
for path in ../../etc/passwd ../etc/passwd; do
    ends 76 '"outcome":"program failed"' ./open.wasm "$path"
done
for path in /etc/passwd /proc/self/environ /.bourse-wasm.cjs "$market/provider/provider.key"; do
    ends 76 '"outcome":"program failed"' ./open.wasm "$path"
    ends 63 '"outcome":"program failed"' ./open.wasm "$path" link
done
ends 76 '"outcome":"program failed"' ./open.wasm ../../etc/passwd link

# ---------------------------------------------------------------- what the owner says
agent_join "$work/lab" --name lab </dev/null
config() { printf '%s\n' 'name: lab' 'slots: 1' 'price: 0.50' 'memory: 512MiB' 'disk: 64MiB' "$@" >"$work/lab/provider.yaml"; }
check() { "$bin/bourse-provider" run --check-config --dir "$work/lab" >check.txt 2>&1; }
config 'wasm: {engine: /usr/bin/node}'
check || fail "an engine that is there is refused: $(cat check.txt)"
has "$(cat check.txt)" 'WASM modules are run by /usr/bin/node, which is node v'
config 'wasm: {engine: /usr/bin/none}'
! check || fail "an engine that is not there is taken"
has "$(cat check.txt)" '"/usr/bin/none" is no program below /usr, the only place for engines'
config 'wasm: {engine: /usr/bin/true}'
! check || fail "a program that is no engine is taken"
has "$(cat check.txt)" 'wasm: /usr/bin/true'
config 'wasm: true'
! check || fail "no engine is named, and the config is taken"
has "$(cat check.txt)" 'is false, or names an engine, as in {engine: /usr/bin/node}'
start() { # LOG: starts the agent, and waits until it offers its device
    "$bin/bourse-provider" run --dir "$work/lab" >"$1" 2>&1 &
    started+=($!)
    until_true 60 asked lab || fail "lab is not on offer: $(cat "$1")"
}
stop() {
    kill "${started[-1]}"
    ended "${started[-1]}" 60 || fail "the agent does not end"
}
config 'wasm: {engine: /usr/bin/true}'
start agent-true.log
has "$(cat agent-true.log)" 'no WASM modules are run here: /usr/bin/true'
! shown '"label":"lab"' || fail "an agent without an engine offers one"
stop
config 'wasm: false'
start agent-off.log
has "$(cat agent-off.log)" 'no WASM modules are run here: the config says `wasm: false`'
! shown '"label":"lab"' || fail "an agent that says no runs modules"
stop
config 'wasm: {engine: /usr/bin/node}'
start agent-node.log
until_true 60 shown '"label":"lab"' || fail "an agent with an engine offers none: $(cat agent-node.log)"
echo "WASM: run and paid, wrong and told, bounded and walled in"
