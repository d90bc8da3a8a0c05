#!/usr/bin/env bash
# Plug-ins through a whole market: the two examples of docs/plugins/ attach devices, their results are right and paid; an
# operation that no plug-in has is explained; what a plug-in refuses is told its consumer; one that never ends is ended at the
# limit; an agent whose plug-in is missing or broken says so and goes on without it. The broker challenges what plug-ins claim:
# one that claims ten times its speed is found, and its ask is refused; an honest one trades on.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin plugin "$1" bourse-plugin bourse-audit vector-add
examples=$(realpath "$(dirname "$(realpath "$0")")/../../docs/plugins")

# Four floats: 1 2 3 4 and 10 20 30 40.
printf '\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40' >a.bin
printf '\0\0\x20\x41\0\0\xa0\x41\0\0\xf0\x41\0\0\x20\x42' >b.bin
job() { # NAME LINE...: submits it and waits; its id is in `id`, and its status is the function's
    local name=$1 status=0
    shift
    printf '%s\n' "name: $name" "expect: 100ms" "budget: 1.00" "executor: plugin" "$@" >"$name.yaml"
    timeout 120 "$bourse" submit "$name.yaml" -y --wait >submit.out 2>submit.log </dev/null || status=$?
    id=$("$bourse" ps last --quiet)
    return "$status"
}
adding=('files: [a.bin, b.bin]' 'run: [vector-add, a.bin, b.bin, c.bin]' 'outputs: [c.bin]')

# ---------------------------------------------------------------- three plug-ins and what is said of them
market_up --credits 100 --slots 1 --price 0.40
for name in lab sums loop; do
    agent_join "$work/$name" --name "$name" </dev/null
done
mkdir -m 755 plugins
cp "$bin/vector-add" "$examples/checksum.py" "$work/plugins/"
# One more plug-in, with an operation that never ends, one that ends at once, and one that multiplies wrong.
cat >plugins/endless <<'END'
#!/bin/sh
while read -r line; do
    case $line in
    *describe*) echo '{"bourse":1,"name":"a loop","kind":"custom","vendor":"test","model":"loop","operations":["spin","quick"]}' ;;
    *spin*) while :; do :; done ;;
    *quick*) echo '{"status":0,"text":"quick"}' ;;
    *) echo '{}' ;;
    esac
done
END
printf '#!/bin/sh\nexit 3\n' >plugins/broken
sed 's/sum(map(operator.mul, row, column))/1/' "$examples/checksum.py" >plugins/wrong
chmod 755 plugins/*
# The machine may have two cores only, and a device has one of its own: so each plug-in has an agent.
config() { # AGENT PLUGIN NAME: the config of the agent, with one device beside its first
    printf '%s\n' "name: $1" 'slots: 1' 'price: 0.50' 'memory: 128MiB' 'disk: 64MiB' 'devices:' \
        "  - {plugin: $work/plugins/$2, name: $3, price: 0.02}" >"$work/$1/provider.yaml"
}
start() { # AGENT DEVICE: starts it, and waits until it offers the device
    "$bin/bourse-provider" run --dir "$work/$1" >"agent-$1.log" 2>&1 &
    started+=($!)
    until_true 60 asked "$2" || fail "$2 is not on offer: $(cat "agent-$1.log")"
}
checked() { "$bin/bourse-provider" run --check-config --dir "$work/lab" >check.txt 2>&1; }
config lab vector-add adder
checked || fail "a plug-in that is right is refused: $(cat check.txt)"
has "$(cat check.txt)" 'the plug-in of "adder" is example: vectors added on the processor, a device of kind cpu'
[ "$(tail -n 1 check.txt)" = 'the config is fine' ] || fail "a check says more: $(cat check.txt)"
config lab missing adder
! checked || fail "a plug-in that is not there is taken"
has "$(cat check.txt)" "plugins/missing: No such file or directory"
config lab wrong adder
! checked || fail "a plug-in that multiplies wrong is taken"
has "$(cat check.txt)" "the plug-in's product is wrong: row 0, column 0 is 1, and should be"
config lab broken adder
! checked || fail "a plug-in that ends is taken"
has "$(cat check.txt)" 'the device "adder": the plug-in has ended with status 3 (asked to describe)'

start lab lab
! asked adder || fail "a device whose plug-in is broken is on offer"
has "$(cat agent-lab.log)" 'the device "adder" is not offered: the plug-in has ended with status 3'
printf '%s\n' 'name: none' 'budget: 1.00' 'executor: plugin' "${adding[@]}" 'good_till: 1s' >none.yaml
! "$bourse" submit none.yaml -y --wait >submit.out 2>submit.log </dev/null || fail "no device has the operation, and the job is done"
has "$(cat submit.log submit.out)" 'executor = "plugin"'
kill "${started[-1]}"
ended "${started[-1]}" 60 || fail "the agent does not end"

config lab vector-add adder
config sums checksum.py hasher
config loop endless spinner
start lab adder
start sums hasher
start loop spinner
loop=${started[-1]}
"$bourse" devices --needs 'operation = sha256' --json >devices.json
has "$(cat devices.json)" '"instrument":"cpu.example.checksum"'

# ---------------------------------------------------------------- right and paid
job add "${adding[@]}" || fail "add: $(cat submit.log submit.out)"
"$bourse" fetch "$id" -o out >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
[ "$(od -An -tf4 out/c.bin | tr -s ' ')" = ' 11 22 33 44' ] || fail "the sum is another: $(od -An -tf4 out/c.bin)"
"$bourse" ps "$id" >ps.txt
grep -q ' adder ' ps.txt || fail "it ran elsewhere: $(cat ps.txt)"
"$bourse" receipt "$id" 0 -o proofs >receipt.log 2>&1 || fail "receipt: $(cat receipt.log)"
"$bourse" verify proofs/* >verify.txt 2>&1 || fail "verify: $(cat verify.txt)"
"$bourse" logs "$id" >logs.txt 2>&1 || true
has "$(cat logs.txt)" '4 numbers added'

# Each subtask has a file of its own, and one process serves them all.
job sums 'each: ["*.bin"]' 'run: [sha256, "{in}", "{out}.sha"]' 'outputs: ["{out}.sha"]' || fail "sums: $(cat submit.log submit.out)"
"$bourse" fetch "$id" -o sums >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
sum=$(find sums -name 'a.bin.sha' -exec cat {} +)
[ "$sum" = "$(sha256sum <a.bin | cut -d' ' -f1)" ] || fail "the checksum is another: $sum"

# ---------------------------------------------------------------- what is wrong
if job few 'files: [a.bin]' 'run: [vector-add, a.bin, none.bin, c.bin]' 'outputs: [c.bin]'; then fail "a missing file is added"; fi
"$bourse" logs "$id" >logs.txt 2>&1 || true
has "$(cat logs.txt)" 'vector-add: none.bin: No such file or directory'
"$bourse" logs "$id" --json >outcomes.json
grep -q '"outcome":"program failed"' outcomes.json || fail "another outcome: $(cat outcomes.json)"

before=$(now_ms)
if job endless 'limit: 2s' 'run: [spin]'; then fail "an endless operation is done"; fi
[ $(($(now_ms) - before)) -lt 60000 ] || fail "an endless operation ran for $(($(now_ms) - before)) ms"
"$bourse" logs "$id" --json >outcomes.json
grep -q '"outcome":"time limit"' outcomes.json || fail "another outcome: $(cat outcomes.json)"
kill -0 "$loop" || fail "the agent ended with the plug-in"
job again 'run: [quick]' || fail "after an endless operation: $(cat submit.log submit.out)"

if job divide 'run: [divide]'; then fail "an operation that no plug-in has is done"; fi
has "$(cat submit.log)" 'operation = "divide"'
printf '%s\n' 'name: typo' 'budget: 1.00' 'executor: plugin' 'run: [Vector/Add]' >typo.yaml
! "$bourse" submit typo.yaml -y >submit.log 2>&1 </dev/null || fail "a wrong name is taken"
has "$(cat submit.log)" '"Vector/Add" is no operation of a plug-in'
# What is no operation of a plug-in never goes to the device.
timeout 120 "$bourse" run --needs 'label = adder' --budget 0.1 --good-till 1s -y -- true </dev/null >run.log 2>&1 &&
    fail "a program ran on a device with a plug-in"
# ---------------------------------------------------------------- cancelled
# Both examples take a cancel. A job that would go on for hours is cancelled, and its device works for the next one.
runs_now() { "$bourse" ps "$id" --json >ps.json 2>/dev/null && grep -q '"running":1' ps.json; }
cancelled() { "$bourse" ps "$id" --json >ps.json 2>/dev/null && grep -q '"state":"cancelled"' ps.json; }
given_back() { "$bin/bourse-provider" status --dir "$work/$1" >status.txt 2>&1 && grep -q '0 leases, 0 running, 0 queued' status.txt; } # AGENT
cancel_one() { # AGENT LINE...
    local agent_name=$1
    shift
    printf '%s\n' 'name: long' 'limit: 5h' 'budget: 5.00' 'executor: plugin' "$@" >long.yaml
    "$bourse" submit long.yaml -y >submit.out 2>submit.log || fail "long: $(cat submit.log)"
    id=$("$bourse" ps last --quiet)
    until_true 60 runs_now || fail "the long job does not run: $(cat ps.json)"
    "$bourse" cancel "$id" >cancel.log 2>&1 || fail "cancel: $(cat cancel.log)"
    until_true 60 cancelled || fail "the job is not cancelled: $(cat ps.json)"
    until_true 60 given_back "$agent_name" || fail "the device does not stop: $(cat status.txt)"
}
cancel_one lab 'files: [a.bin, b.bin]' 'run: [vector-add, a.bin, b.bin, c.bin, "1000000000"]' 'outputs: [c.bin]'
job added "${adding[@]}" || fail "after a cancel: $(cat submit.log submit.out)"
cancel_one sums 'files: [a.bin]' 'run: [crc32, a.bin, c.txt, "1000000000"]' 'outputs: [c.txt]'
# ---------------------------------------------------------------- claims
for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
for pid in "${started[@]}"; do ended "$pid" 60 || fail "an agent does not end"; done
market_config 'heartbeat: 200ms' 'challenge: 2s'
kill "$agent"
ended "$agent" 60 || fail "the market's own agent does not end"
# Without bourse-tensor, no core claims a speed: the plug-ins alone are challenged.
mkdir programs
cp "$bin/bourse-provider" "$bin/bourse-worker" "$bin/bourse-plugin" programs/
start_challenged() { # AGENT DEVICE
    programs/bourse-provider run --dir "$work/$1" >"agent-$1.log" 2>&1 &
    agent_of=$!
    started+=("$agent_of")
    until_true 60 asked "$2" || fail "$2 is not on offer: $(cat "agent-$1.log")"
}
# This one answers when 2 Mflop/s would have brought the product. Its functions are those of checksum.py.
{
    printf '#!/usr/bin/python3\nimport array, json, operator, sys, time\n'
    sed -n '/^def product_of/,/^    )$/p; /^def load/,/^    return numbers$/p; /^def multiply/,/^    return {"status": 0}$/p' "$examples/checksum.py"
    cat <<'END'
for line in sys.stdin:
    request = json.loads(line)
    answer = {}
    if request["do"] == "describe":
        answer = {"bourse": 1, "name": "boasts", "kind": "dsp", "vendor": "test", "model": "boaster",
                  "operations": ["none"], "challenge": "gemm_fp32"}
    elif request["do"] == "probe":
        answer = {"gemm_fp32": 20e6}
    elif request["do"] == "multiply":
        until = time.monotonic() + 2 * request["side"] ** 3 / 2e6
        answer = multiply(request)
        time.sleep(max(0, until - time.monotonic()))
    print(json.dumps(answer), flush=True)
END
} >plugins/boaster
chmod 755 plugins/boaster
config loop boaster boaster
start_challenged loop boaster
"$bourse" devices loop/boaster --json >boaster.json
has "$(cat boaster.json)" '{"name":"challenge","value":"gemm_fp32"}'
has "$(cat boaster.json)" '{"name":"gemm_fp32","value":20,"source":"declared"}'
lowered() {
    grep -qE 'the broker refused the ask: CHALLENGE: gemm_fp32: 20, limit [1-7]:' agent-loop.log &&
        grep -qE '"boaster" showed [1-7] Mflop/s when the broker challenged its speed' agent-loop.log
}
until_true 120 lowered || fail "ten times the speed is believed: $("$bourse" devices --json; cat agent-loop.log)"
kill "$agent_of"
ended "$agent_of" 60 || fail "the agent does not end"
# On a machine where others compute, an honest claim may be lowered first.
config lab vector-add adder
start_challenged lab adder
found_right() { [ "$(challenge_of adder outcome)" = ok ]; }
until_true 120 found_right || fail "an honest claim is not found right: $("$bourse" devices --json; cat agent-lab.log)"
job paid "${adding[@]}" || fail "an honest plug-in does not trade on: $(cat submit.log submit.out)"
"$bourse" ps "$id" >ps.txt
grep -q ' adder ' ps.txt || fail "it ran elsewhere: $(cat ps.txt)"
market_audit
echo "plug-ins: right and paid, wrong and told, endless and ended; what they claim is challenged"
