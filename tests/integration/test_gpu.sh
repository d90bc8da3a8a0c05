#!/usr/bin/env bash
# The figures of GPUs and the owner's rule `gpu:`, with stand-ins for CUDA and NVML: status shows the figures; a device that others use, or that is
# hot, is withheld alone, with its work standing still, and comes back; a lost one is told its owner; a watcher that ends or hangs is started again.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin gpu "$1" bourse-kernel bourse-kernel-fake

market_up --credits 100 --slots 1 --price 0.40
agent_join "$work/lab" --name lab </dev/null
cat >"$work/lab/provider.yaml" <<'END'
name: lab
slots: 1
price: 0.50
memory: 128MiB
disk: 64MiB
gpu: {temperature: 85, power: 200, after: 1s, give_back: 10s}
devices:
  - {cuda: F100, name: card, price: 0.02, device_memory: 50%}
END
mkdir bare
echo 'gpu: {}' >bare/provider.yaml
"$bin/bourse-provider" run --check-config --dir bare >check.txt 2>&1 || fail "a rule without effect is refused: $(cat check.txt)"
has "$(cat check.txt)" '`gpu:` has no effect: it is about devices offered by `cuda`, and `devices:` has none'
! "$bin/bourse-provider" run --check-config --dir "$work/lab" 2>&1 | grep 'no effect' || fail "a rule with an effect is said to have none"
mkdir fake
cp "$bin/bourse-provider" "$bin/bourse-worker" fake/
cp "$bin/bourse-kernel-fake" fake/bourse-kernel
fake/bourse-provider run --dir "$work/lab" >agent-lab.log 2>&1 &
lab=$!
started+=("$lab")

status() { "$bin/bourse-provider" status --dir "$work/lab" >status.txt 2>status.log; }
says() { status && grep -qF -- "$1" status.txt; } # TEXT
withheld() { status && ! asked "$1" && grep -q "$1: 1 slot .*, withheld\$" status.txt; } # LABEL
is_ours() { # PID: succeeds for a descendant of the agent
    local pid=$1 rest
    while [ "$pid" -gt 1 ] && [ "$pid" -ne "$lab" ]; do
        rest=$(cat "/proc/$pid/stat" 2>/dev/null) || return 1
        rest=${rest##*) }
        read -r _ pid _ <<<"$rest"
    done
    [ "$pid" -eq "$lab" ]
}
find_watcher() { # sets watcher to the process of bourse-kernel that reads the figures
    local pid
    while read -r pid; do
        if is_ours "$pid"; then
            watcher=$pid
            return 0
        fi
    done < <(pgrep -f '^/\.bourse-kernel watch ')
    return 1
}
tell() { kill -s "RTMIN+$1" "$watcher"; } # NUMBER, as in tests/programs/fake_nvml.c

# ---------------------------------------------------------------- the figures
until_true 120 asked card || fail "the card is not on offer: $(cat agent-lab.log)"
until_true 60 says 'card: memory 1.0 MiB of 16.0 MiB, busy 12 %, power 61 W of 350 W, temperature 44 C; read ' || fail "no figures: $(cat status.txt status.log)"
"$bin/bourse-provider" status --dir "$work/lab" --json >status.json
has "$(cat status.json)" '"device":"card","order":"work","reason":"","lost":false,"memory_used":1048576,"memory_total":16777216,"busy_percent":12'
has "$(cat status.json)" '"power_mw":61000,"power_limit_mw":350000,"celsius":44'
# The market shows them, too, as the word of the owner's machine.
market_says() { "$bourse" devices lab/card >devices.txt 2>&1 && grep -qF -- "$1" devices.txt; } # TEXT
until_true 60 market_says "s machine " || fail "the market does not show the figures: $(cat devices.txt)"
grep -qE "^now \(said by its owner's machine .* ago\): memory 1\.0 MiB of 16\.0 MiB, busy 12 %, power 61 W of 350 W, temperature 44 C\$" devices.txt || fail "the market shows other figures: $(cat devices.txt)"
"$bourse" devices lab/card --json >devices.json
has "$(cat devices.json)" '"memory_used":1048576,"memory_total":16777216,"busy_percent":12,"power_mw":61000,"power_limit_mw":350000,"celsius":44'
has "$(cat devices.json)" '"now":{"source":"owner","age_ms":'
silent_of_card() { "$bourse" devices lab/card >devices.txt 2>&1 && ! grep -q '^now' devices.txt; }
find_watcher || fail "no process reads the figures"
# The watcher is in a jail: no network but its own, and no way to be root.
[ "$(readlink "/proc/$watcher/ns/net")" != "$(readlink /proc/self/ns/net)" ] || fail "the watcher has the machine's network"
grep -q '^Seccomp:.2' "/proc/$watcher/status" || fail "the watcher has no filter of system calls"
grep -q '^CapEff:.0*$' "/proc/$watcher/status" || fail "the watcher has capabilities"

# ---------------------------------------------------------------- memory
# Half of the 16 MiB is for jobs. bourse-kernel refuses larger buffers, and the watcher ends a job whose code holds more.
has "$(cat devices.json)" '"name":"memory","value":8388608'
printf '%s\n' '.version 6.0' '.target sm_50' '.address_size 64' '.visible .entry endless() { ret; }' '.visible .entry fill(.param .u64 out, .param .u32 byte) { ret; }' >k.ptx
kernel() { # NAME ENTRY LINE...: writes a job of a kernel for the card
    printf '%s\n' "name: $1" 'expect: 1s' 'limit: 100s' 'budget: 1.00' 'retries: 0' 'kernel:' '  source: k.ptx' "  entry: $2" '  global: 1' "${@:3}" >"$1.yaml"
}
kernel large fill '  arguments: [{output: e.bin, size: 9MiB}, {uint: 1}]'
! timeout 120 "$bourse" submit large.yaml -y --wait >submit.out 2>&1 || fail "a buffer above the limit is made"
"$bourse" logs "$("$bourse" ps last --quiet)" >logs.txt 2>&1 || true
has "$(cat logs.txt)" 'has 9437184 bytes, and 8388608 are left of the memory for all buffers'
kernel held endless '  arguments: []'
timeout 120 "$bourse" submit held.yaml -y --wait >submit.out 2>&1 &
held=$!
started+=("$held")
until_true 60 says ', 1 running' || fail "the kernel does not run: $(cat status.txt submit.out)"
tell 8
! wait "$held" || fail "a job that takes too much memory is done"
"$bourse" logs "$("$bourse" ps last --quiet)" --json >outcomes.json
has "$(cat outcomes.json)" '"outcome":"memory limit"'
has "$(cat outcomes.json)" "4.0 GiB of the device's memory are used, and the owner allows 8.0 MiB"
has "$(cat agent-lab.log)" 'work on the device "card" is ended: 4.0 GiB'
tell 9

# ---------------------------------------------------------------- copied ahead
# A kernel ends only when as many copies were made beside kernels as its input's first byte says. So the first one computes
# until the second one's input is there, and the second one until the third one's is. The market queues nothing behind the third.
sed -i '$a .visible .entry until_copied(.param .u64 count) { ret; }' k.ptx
printf '\1first' >c1.bin
printf '\2second' >c2.bin
printf '\2third' >c3.bin
printf '\2last' >c4.bin
kernel ahead until_copied '  arguments: [{input: "{in}"}]'
sed -i 's/^limit: .*/limit: 20s/' ahead.yaml # a second subtask is queued only when the term has time for it
printf '%s\n' 'each: [c1.bin, c2.bin, c3.bin, c4.bin]' 'needs: {label: card}' >>ahead.yaml
timeout 120 "$bourse" submit ahead.yaml -y --wait >submit.out 2>&1 || fail "nothing is copied ahead: $(cat submit.out agent-lab.log)"
"$bin/bourse-provider" status --dir "$work/lab" --json >status.json
has "$(cat status.json)" '"hits":2,"saved_bytes":13,"copies":2,"copied_bytes":11,"aheads":2,"ahead_bytes":13'
status
has "$(cat status.txt)" '; 2 of 4 inputs were there already, 13 B not copied; 13 B copied ahead'

# ---------------------------------------------------------------- others use the first device
kernels() { perl "$support/descendants.pl" "$lab" .bourse-kernel | awk -v watcher="$watcher" '$1 != watcher { print $1 }'; }
stands() { # succeeds when the job's kernel has a process, and every one stands still
    local pid states=
    for pid in $(kernels); do states+=$(ps -o stat= -p "$pid" | cut -c1); done
    [ -n "$states" ] && [ -z "${states//T/}" ]
}
kernel used endless '  arguments: []'
sed -i '/^retries/d' used.yaml
"$bourse" submit used.yaml -y </dev/null >submit.out 2>&1 || fail "submit: $(cat submit.out)"
used=$("$bourse" ps last --quiet)
until_true 60 says ', 1 running' || fail "the kernel does not run: $(cat status.txt submit.out)"
tell 1
until_true 60 stands || fail "the kernel goes on: $(cat agent-lab.log)"
withheld card || fail "a card that others use is on offer: $(cat status.txt)"
grep -qE 'withheld: .*\(process 1\) uses it; its work stands still' status.txt || fail "status does not say why: $(cat status.txt)"
# They are gone before the card's work goes back: it went on where it stood.
tell 2
until_true 60 asked card || fail "the card does not come back: $(cat agent-lab.log)"
! stands || fail "the kernel does not go on"
says ', 1 running' || fail "work that stood still did not stay: $(cat status.txt)"
# They stay: the work goes back to the market, and the other device earns on.
tell 1
until_true 60 withheld card || fail "a card that others use is on offer: $(cat status.txt)"
asked lab || fail "the other device went, too"
timeout 120 "$bourse" run -y --needs 'label = lab' --budget 1 -- true </dev/null >run.log 2>&1 || fail "the other device does not work: $(cat run.log)"
until_true 60 says '(process 1) uses it; its work went back to the market' || fail "the steps are not made: $(cat status.txt)"
asked lab || fail "the other device went, too"
paid=$("$bourse" ps last --json)
has "$paid" '"state":"done"'
idle_card() { [ -z "$(kernels)" ]; }
until_true 60 idle_card || fail "the kernel is still there"
"$bourse" cancel "$used" >cancel.log 2>&1 || fail "cancel: $(cat cancel.log)"
has "$(cat agent-lab.log)" 'the device "card" is withheld: '
# The owner's pause and resume change nothing about that, and the answer names the device.
"$bin/bourse-provider" pause --dir "$work/lab" --device card --json >pause.json
has "$(cat pause.json)" '"device":"card"'
"$bin/bourse-provider" resume --dir "$work/lab" --device card >resume.txt || fail "resume: $(cat resume.txt)"
has "$(cat resume.txt)" 'the device is resumed; what it may offer is withheld for now'
! asked card || fail "resume offers a card that others use"
until_true 60 silent_of_card || fail "the market is told of a card that its owner uses: $(cat devices.txt)"
tell 2
until_true 60 asked card || fail "the card does not come back: $(cat agent-lab.log)"

# ---------------------------------------------------------------- heat
tell 3
until_true 60 withheld card || fail "a hot card is on offer: $(cat status.txt)"
grep -qF "withheld: it is at 91 C, and the owner's limit is 85 C" status.txt || fail "status does not say why: $(cat status.txt)"
tell 4
until_true 60 asked card || fail "the card does not come back: $(cat agent-lab.log)"

# ---------------------------------------------------------------- a lost device
tell 5
until_true 60 withheld card || fail "a lost card is on offer: $(cat status.txt)"
grep -qF 'the driver says that it fell off the bus' status.txt || fail "status does not say why: $(cat status.txt)"
grep -qE 'last error .*the device "card" is withheld: .*reset the device or start the machine again' status.txt || fail "the owner is not told: $(cat status.txt)"
asked lab || fail "the other device went, too"
tell 6
until_true 60 asked card || fail "the card does not come back: $(cat agent-lab.log)"

# ---------------------------------------------------------------- the watcher ends
kill -KILL "$watcher"
until_true 60 withheld card || fail "a card of which nothing is known is on offer: $(cat status.txt)"
grep -qF 'memory -, busy -, power -, temperature -' status.txt || fail "old figures are shown: $(cat status.txt)"
grep -qF 'not known: bourse-kernel, which reads the figures, has ended' status.txt || fail "status does not say why: $(cat status.txt)"
until_true 90 asked card || fail "the watcher is not started again: $(cat agent-lab.log)"
old=$watcher
find_watcher && [ "$watcher" != "$old" ] || fail "no new watcher"

# ---------------------------------------------------------------- the library hangs
tell 7
until_true 120 says "not known: NVIDIA's management library does not answer" || fail "a library that hangs: $(cat status.txt)"
until_true 60 gone "$watcher" || fail "a watcher that hangs is not killed"
until_true 90 asked card || fail "the watcher is not started again: $(cat agent-lab.log)"

kill "$lab"
ended "$lab" 60 || fail "the agent does not end"
! find_watcher || fail "the watcher outlives its agent"
echo "GPUs: figures shown, withheld while used, hot, lost or unknown, and back"
