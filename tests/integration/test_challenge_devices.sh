#!/usr/bin/env bash
# The broker challenges what devices for kernels claim: an OpenCL device of pocl and a CUDA device, whose driver is a stand-in, compute the products of
# challenges and are found right, on a loaded machine perhaps with a lower claim. A CUDA device whose products are wrong loses its ask for a time.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin challenge_devices "$1" bourse-kernel bourse-kernel-fake bourse-kernel-fake-lies bourse-kernel-fake-boasts bourse-tensor bourse-audit
[ -r /etc/OpenCL/vendors/pocl.icd ] || skip "no pocl (Debian package pocl-opencl-icd)"
export POCL_DEVICES=basic

market_up --credits 10 --slots 1
market_config 'heartbeat: 1s' 'challenge: 2s'
agent() { # NAME DEVICE [KERNEL]: an agent with one device of this name, whose program for kernels may be another
    agent_join "$work/of-$1" --name "of-$1" </dev/null
    printf '%s\n' "name: of-$1" 'slots: 1' 'price: 0.50' 'memory: 128MiB' 'disk: 64MiB' 'devices:' \
        "  - {$2, name: $1, price: 0.02${4:-}}" >"$work/of-$1/provider.yaml"
    mkdir "programs-$1"
    cp "$bin/bourse-provider" "$bin/bourse-worker" "programs-$1/"
    cp "$bin/${3:-bourse-kernel}" "programs-$1/bourse-kernel"
    "programs-$1/bourse-provider" run --dir "$work/of-$1" >"agent-$1.log" 2>&1 </dev/null &
    agent_of=$!
    started+=("$agent_of")
    until_true 120 asked "$1" || fail "$1 is not on offer: $(cat "agent-$1.log")"
}
is() { [ "$(challenge_of "$1" "$2")" = "$3" ]; } # LABEL KEY VALUE
again() { # LABEL: a second challenge was right, too
    is "$1" outcome ok && [ "$(challenge_of "$1" at_ms)" -gt "$first" ]
}
right() { # LABEL
    until_true 120 is "$1" outcome ok || fail "$1 is not found right: $("$bourse" devices --json; cat "agent-$1.log")"
    first=$(challenge_of "$1" at_ms)
    until_true 120 again "$1" || fail "$1 is not found right a second time: $("$bourse" devices --json; cat "agent-$1.log")"
    ! grep 'a challenge of the broker' "agent-$1.log" || fail "a challenge was not computed"
}

# ---------------------------------------------------------------- OpenCL
agent pocl 'opencl: 0' bourse-kernel ', memory: 768MiB'
"$bourse" devices of-pocl/pocl --json >pocl.json
has "$(cat pocl.json)" '{"name":"challenge","value":"gemm_fp32"}'
right pocl
"$bourse" devices >devices.txt
grep -q 'pocl.*challenged 2' devices.txt || fail "the listing does not say so: $(cat devices.txt)"
kill "$agent_of"
ended "$agent_of" 60 || fail "the agent does not end"

# ---------------------------------------------------------------- CUDA
agent card 'cuda: F100' bourse-kernel-fake
right card
kill "$agent_of"
ended "$agent_of" 60 || fail "the agent does not end"

# ---------------------------------------------------------------- one that computes right in its trial alone
agent liar 'cuda: F100' bourse-kernel-fake-lies
closed() { is liar outcome wrong && is liar price none; }
until_true 120 closed || fail "wrong products are taken: $("$bourse" devices --json; cat agent-liar.log)"
told() { grep -q 'the broker refused the ask: CHALLENGE' agent-liar.log; }
until_true 60 told || fail "its owner is not told: $(cat agent-liar.log)"
kill "$agent_of"
ended "$agent_of" 60 || fail "the agent does not end"

# ---------------------------------------------------------------- one that is fast because it computes nothing large
agent boaster 'cuda: F100' bourse-kernel-fake-boasts
claim=$("$bourse" devices of-boaster/boaster --json | grep -oE '"name":"gemm_fp32_held","value":[0-9]+' | grep -oE '[0-9]+$')
[ "$claim" -ge 1000000 ] || fail "the device claims $claim Mflop/s, too few for a chain"
found() { is boaster outcome wrong && is boaster price none; }
until_true 120 found || fail "a fast result that was not computed is taken: $("$bourse" devices --json; cat agent-boaster.log)"
echo "challenges: devices for kernels are right in time, and wrong products are found"
