#!/usr/bin/env bash
# bourse-pjrt through a whole market: a library with a device is attached by it, programs of StableHLO compute on .npy files,
# and results are right and paid. A program that is wrong, one that never ends and one by which the device is lost are told apart.
# The library is a stand-in that computes on the processor; it is inside the plug-in, because a jail shows no library of the build's.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin pjrt "$1" bourse-plugin bourse-audit bourse-pjrt bourse-pjrt-fake

program() { # FILE OPERATION: writes a program of two matrices
    printf '%s\n' 'module @job {' \
        '  func.func public @main(%a: tensor<2x2xf32>, %b: tensor<2x2xf32>) -> tensor<2x2xf32> {' \
        "    %c = stablehlo.$2 : tensor<2x2xf32>" '    return %c : tensor<2x2xf32>' '  }' '}' >"$1"
}
program add.mlir 'add %a, %b'
program product.mlir 'dot_general %a, %b, contracting_dims = [1] x [0]'
program wrong.mlir 'toast %a, %b'
program endless.mlir 'custom_call @fake_hang(%a)'
program lost.mlir 'custom_call @fake_lost(%a)'
npy a.npy 2 2
npy b.npy 2 2
printf '\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40' | dd of=a.npy bs=1 seek=128 conv=notrunc status=none     # 1 2 3 4
printf '\0\0\x20\x41\0\0\xa0\x41\0\0\xf0\x41\0\0\x20\x42' | dd of=b.npy bs=1 seek=128 conv=notrunc status=none   # 10 20 30 40
job() { # NAME LINE...: submits it and waits; its id is in `id`, and its status is the function's
    local name=$1 status=0
    shift
    printf '%s\n' "name: $name" "expect: 100ms" "budget: 1.00" "executor: plugin" "$@" >"$name.yaml"
    timeout 120 "$bourse" submit "$name.yaml" -y --wait >submit.out 2>submit.log </dev/null || status=$?
    id=$("$bourse" ps last --quiet)
    return "$status"
}
on_device() { # PROGRAM LINE...: a job of this program
    local program=$1
    shift
    job "${program%.mlir}" "files: [$program, a.npy, b.npy]" "run: [mlir, $program, a.npy, b.npy, to, c.npy]" 'outputs: [c.npy]' "$@"
}
numbers() { # FILE: the numbers of the array
    tail -c 16 "$1" | od -An -tf4 | tr -s ' '
}

# ---------------------------------------------------------------- the device
market_up --credits 100 --slots 1 --price 0.40
agent_join "$work/lab" --name lab </dev/null
cp "$bin/bourse-pjrt-fake" plugin
config() { # PLUGIN
    printf '%s\n' 'name: lab' 'slots: 1' 'price: 0.50' 'memory: 128MiB' 'disk: 64MiB' 'devices:' \
        "  - {plugin: $work/$1, name: chip, price: 0.02}" >"$work/lab/provider.yaml"
}
checked() { "$bin/bourse-provider" run --check-config --dir "$work/lab" >check.txt 2>&1; }
cp "$bin/bourse-pjrt" pjrt
./pjrt /no/such/libtpu.so </dev/null >pjrt.out 2>pjrt.log && fail "a library that is not there is taken"
has "$(cat pjrt.log)" 'bourse-pjrt: no PJRT library: /no/such/libtpu.so: cannot open shared object file'
# What the plug-in writes to standard error before it ends is the reason that its owner reads.
config pjrt
! checked || fail "a plug-in without its library is taken"
has "$(cat check.txt)" 'the plug-in has ended with status 2 (asked to describe): usage: bourse-pjrt'
config plugin
checked || fail "a plug-in that is right is refused: $(cat check.txt)"
has "$(cat check.txt)" 'the plug-in of "chip" is Fake v1 (lite), device 0 of 1 by PJRT, a device of kind cpu'
"$bin/bourse-provider" run --dir "$work/lab" >agent.log 2>&1 &
lab=$!
started+=("$lab")
until_true 60 asked chip || fail "the device is not on offer: $(cat agent.log)"
"$bourse" devices --needs 'operation = mlir' --json >devices.json
has "$(cat devices.json)" '"instrument":"cpu.unknown.fake-v1-lite"'

# ---------------------------------------------------------------- right and paid
on_device add.mlir || fail "add: $(cat submit.log submit.out)"
"$bourse" fetch "$id" -o sum >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
[ "$(numbers sum/c.npy)" = ' 11 22 33 44' ] || fail "the sum is another: $(numbers sum/c.npy)"
"$bourse" logs "$id" >logs.txt 2>&1 || true
has "$(cat logs.txt)" 'ran on Fake v1 (lite) in '
"$bourse" receipt "$id" 0 -o proofs >receipt.log 2>&1 || fail "receipt: $(cat receipt.log)"
"$bourse" verify proofs/* >verify.txt 2>&1 || fail "verify: $(cat verify.txt)"
on_device product.mlir || fail "product: $(cat submit.log submit.out)"
"$bourse" fetch "$id" -o product >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
[ "$(numbers product/c.npy)" = ' 70 100 150 220' ] || fail "the product is another: $(numbers product/c.npy)"

# ---------------------------------------------------------------- wrong, endless, lost
if on_device wrong.mlir; then fail "a wrong program is done"; fi
"$bourse" logs "$id" --json >outcomes.json
grep -q '"outcome":"program failed"' outcomes.json || fail "another outcome: $(cat outcomes.json)"
"$bourse" logs "$id" >logs.txt 2>&1 || true
has "$(cat logs.txt)" 'mlir: PJRT_Client_Compile: INVALID_ARGUMENT (3): program:3: error'

if on_device endless.mlir 'limit: 2s'; then fail "an endless program is done"; fi
"$bourse" logs "$id" --json >outcomes.json
grep -q '"outcome":"time limit"' outcomes.json || fail "another outcome: $(cat outcomes.json)"

if on_device lost.mlir 'good_till: 20s'; then fail "a program without a device is done"; fi
"$bourse" logs "$id" --json >outcomes.json
grep -q '"outcome":"the provider.s jail failed"' outcomes.json || fail "another outcome: $(cat outcomes.json)"
! grep -qE '"charge_micro":[1-9]' outcomes.json || fail "a lost device is paid: $(cat outcomes.json)"
has "$(cat outcomes.json)" 'the device fails: PJRT_LoadedExecutable_Execute: UNAVAILABLE (14): the device is gone'
kill -0 "$lab" || fail "the agent ended with the device"
on_device add.mlir || fail "after a lost device: $(cat submit.log submit.out)"
market_audit
echo "pjrt: right and paid, wrong and told, endless and ended, lost and not paid"
