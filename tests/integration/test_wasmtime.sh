#!/usr/bin/env bash
# WASM modules by wasmtime's library through a whole market: words, folder, exit codes and traps as by Node.js; the owner's log, probe and check
# say which library runs them. The library is a stand-in inside bourse-wasm, because a jail shows no library of the build's.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin wasmtime "$1" bourse-audit bourse-wasm bourse-wasm-fake
library=$(realpath /lib/*/libm.so.6 | head -n 1) # it stands in the config, and is no wasmtime
case $library in /usr/*) ;; *) library=/usr$library ;; esac
[ -f "$library" ] || skip "no libm.so.6 below /usr"

module() { # NAME STEPS: writes a module that takes these steps (tests/programs/fake_wasmtime.c)
    local steps
    steps=$(printf '%b' "$2")
    {
        printf '\0asm\1\0\0\0\5\3\1\0\1\7\023\2\6memory\2\0\6_start\0\0\0'
        # shellcheck disable=SC2059 # the length is a byte
        printf "\\$(printf %03o $((${#steps} + 6)))"
        printf 'fake:%s\0' "$steps"
    } >"$1.wasm"
}
module hello 'words\nsay hello by wasmtime'
module reads 'read own.txt'
module out 'read ../own.txt'
module seven 'exit 7'
module trap 'trap 9'
module spin 'spin'
module grow 'grow 449'
echo 'of its own' >own.txt

market_up --credits 100 --slots 1 --price 0.40
agent_join "$work/lab" --name lab </dev/null
config() { printf '%s\n' 'name: lab' 'slots: 1' 'price: 0.50' 'memory: 512MiB' 'disk: 64MiB' "$@" >"$work/lab/provider.yaml"; }
check() { "$1/bourse-provider" run --check-config --dir "$work/lab" >check.txt 2>&1; }
mkdir fake
cp "$bin/bourse-provider" "$bin/bourse-worker" fake/
cp "$bin/bourse-wasm-fake" fake/bourse-wasm

# ---------------------------------------------------------------- what the owner says
config 'wasm: {wasmtime: /usr/lib/no-such-libwasmtime.so}'
! check fake || fail "a library that is not there is taken"
has "$(cat check.txt)" '"/usr/lib/no-such-libwasmtime.so" is no file below /usr or /opt'
config "wasm: {wasmtime: $library}"
! check "$bin" || fail "a library that is not wasmtime's is taken"
has "$(cat check.txt)" 'the library has no function wasm_config_new, so it is no wasmtime of version 28 to 48'
check fake || fail "a library is refused: $(cat check.txt)"
has "$(cat check.txt)" "WASM modules are run by $library, which is wasmtime 47.0.3"
fake/bourse-provider probe --config "$work/lab/provider.yaml" >probe.txt 2>&1 || fail "probe: $(cat probe.txt)"
has "$(cat probe.txt)" "run by $library, wasmtime 47.0.3; in "

# ---------------------------------------------------------------- jobs
fake/bourse-provider run --dir "$work/lab" >agent-lab.log 2>&1 &
lab=$!
started+=("$lab")
until_true 60 asked lab || fail "lab is not on offer: $(cat agent-lab.log)"
has "$(cat agent-lab.log)" "WASM modules are run by $library, which is wasmtime 47.0.3"
on_lab=(--needs 'label = lab and executor = wasm')
run() { timeout 240 "$bourse" run -y --exit-code --retries 0 "${on_lab[@]}" "$@" >out 2>err </dev/null; }
ends() { # STATUS TEXT ARGUMENT...: the run ends with the status, and the job's log has the text
    local wanted=$1 text=$2 status=0
    shift 2
    run "$@" || status=$?
    [ "$status" -eq "$wanted" ] || fail "status $status and not $wanted of run $*: $(cat out err)"
    "$bourse" logs "$("$bourse" ps last --quiet)" --json >outcomes.json
    has "$(cat outcomes.json)" "$text"
}
run --env 'COLOR=blue red' ./hello.wasm one '' || fail "hello: $(cat out err)"
[ "$(tr '\0' '|' <out)" = './hello.wasm|one||COLOR=blue red|hello by wasmtime' ] || fail "hello: $(tr '\0' '|' <out)"
run --file own.txt ./reads.wasm || fail "reads: $(cat out err)"
[ "$(cat out)" = 'of its own' ] || fail "reads: $(cat out)"
ends 76 '"outcome":"program failed"' --file own.txt ./out.wasm
ends 7 '"exit_code":7' ./seven.wasm
ends 134 'the module trapped: unreachable' ./trap.wasm
ends 9 '"outcome":"program failed"' ./grow.wasm # the engine has 64 MiB of the 512
printf '%s\n' 'name: endless' 'budget: 1.00' 'executor: wasm' 'limit: 3s' 'retries: 0' 'needs: "label = lab"' 'run: [spin.wasm]' >endless.yaml
! timeout 240 "$bourse" submit endless.yaml -y --wait >submit.out 2>submit.log </dev/null || fail "an endless module is done"
"$bourse" logs "$("$bourse" ps last --quiet)" --json >outcomes.json
has "$(cat outcomes.json)" '"outcome":"time limit"'
kill -0 "$lab" || fail "the agent ended with a module"
run ./hello.wasm || fail "after all that was wrong: $(cat out err)"
echo "wasmtime: told, run and paid, by a stand-in for its library"
