#!/usr/bin/env bash
# Inputs that stay in a device's memory, through a whole market on pocl: a chain of products copies its fixed factor once, and no
# product that the next one takes; the next lease finds nothing there; a device whose owner allows no bytes copies every input;
# the products are the same.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
# shellcheck source=tests/support/products.sh
. "$(dirname "$(realpath "$0")")/../support/products.sh"
fire_begin residency "$1" bourse-kernel bourse-audit
[ -r /etc/OpenCL/vendors/pocl.icd ] || skip "no pocl (Debian package pocl-opencl-icd)"
links=6 side=64 factor=$((4 * 64 * 64))

market_up --credits 1000 --slots 1 --price 5.00
agent_join "$work/lab" --name lab </dev/null
config() { # LINE...: the rest of the device's keys
    cat >"$work/lab/provider.yaml" <<END
name: lab-cores
slots: 1
price: 5.00
memory: 256MiB
disk: 64MiB
devices:
  - {opencl: 0, name: lab, price: 0.05, memory: 512MiB, disk: 64MiB$1}
END
}
start() {
    "$bin/bourse-provider" run --dir "$work/lab" >agent-lab.log 2>&1 &
    lab=$!
    started+=("$lab")
    until_true 120 asked lab || fail "the device is not on offer: $(cat agent-lab.log)"
}
held() { # FIELD: of the device, in `status --json`
    "$bin/bourse-provider" status --dir "$work/lab" --json >status.json 2>status.log || fail "status: $(cat status.log)"
    grep -o '"held":\[[^]]*\]' status.json | grep -oE "\"$1\":[0-9]+" | cut -d: -f2
}
chain() { # FOLDER: a chain of products on the device, whose last product is FOLDER's only file
    "$bourse" submit chain.yaml -y --wait >submit.out 2>submit.log || fail "the chain: $(cat submit.log submit.out)"
    rm -rf "$1"
    "$bourse" fetch last -o "$1" >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
}

matrix x0.npy "$side" "$side" 1 whole
# The fixed factor moves columns around, so that every product stays exact.
zeros w.npy "$side" "$side"
perl -e 'open my $to, "+<:raw", $ARGV[0] or die; my $n = $ARGV[1];
    for my $i (0 .. $n - 1) { seek $to, 128 + 4 * ($i * $n + ($i + 1) % $n), 0; print $to pack("f<", 1); }' w.npy "$side"
{
    printf '%s\n' "name: chain" "executor: tensor" "expect: 100ms" "budget: 5.00" "needs: {api: opencl}" "files: [x0.npy, w.npy]" "tasks:"
    echo "  - {name: p1, run: [matmul, x0.npy, w.npy, y1.npy], outputs: y1.npy}"
    for i in $(seq 2 "$links"); do
        echo "  - {name: p$i, from: [p$((i - 1))/y$((i - 1)).npy], run: [matmul, y$((i - 1)).npy, w.npy, y$i.npy], outputs: y$i.npy}"
    done
} >chain.yaml

# ---------------------------------------------------------------- the device holds what it has
config ''
start
[ "$(held hits)" -eq 0 ] || fail "hits before any work: $(cat status.json)"
[ "$(held cap_bytes)" -eq $((128 << 20)) ] || fail "not a quarter of 512 MiB: $(cat status.json)"
chain first
[ "$(held hits)" -eq $((2 * (links - 1))) ] || fail "not two hits for each link but the first: $(cat status.json)"
[ "$(held saved_bytes)" -eq $((2 * (links - 1) * factor)) ] || fail "other bytes: $(cat status.json)"
[ "$(held copies)" -eq 2 ] || fail "not a copy of the first link's inputs: $(cat status.json)"
[ "$(held copied_bytes)" -eq $((2 * factor)) ] || fail "other bytes: $(cat status.json)"
"$bin/bourse-provider" status --dir "$work/lab" >status.txt 2>&1 || fail "status: $(cat status.txt)"
has "$(cat status.txt)" "of at most 128.0 MiB; $((2 * (links - 1))) of $((2 * links)) inputs were there already, 160.0 KiB not copied"
"$bourse" report last --json >report.json 2>report.log || fail "report: $(cat report.log)"
has "$(cat report.json)" "\"held_bytes\":$((2 * (links - 1) * factor)),\"copied_bytes\":$((2 * factor))"
"$bourse" report last >report.txt 2>&1 || fail "report: $(cat report.txt)"
has "$(cat report.txt)" "memory of lab/lab: it had 160.0 KiB of the inputs already, and 32.0 KiB were copied to it."
listed() { "$bourse" devices --json >devices.json 2>devices.log && grep -q "\"held_hits\":$((2 * (links - 1)))," devices.json; }
until_true 60 listed || fail "the market is not told what the device held: $(cat devices.json)"
has "$(cat devices.json)" "\"held_copies\":2,\"saved_bytes\":$((2 * (links - 1) * factor))"
"$bourse" devices lab/lab >devices.txt 2>&1 || fail "devices: $(cat devices.txt)"
has "$(cat devices.txt)" "; $((2 * (links - 1))) of $((2 * links)) inputs were there already, 160.0 KiB not copied"
nothing_held() { [ "$(held held_bytes)" -eq 0 ]; }
until_true 60 nothing_held || fail "the device holds inputs of a lease that is over: $(cat status.json)"
chain second # another job has another lease, and its first product copies both inputs again
[ "$(held copies)" -eq 4 ] || fail "another lease found inputs: $(cat status.json)"

# ---------------------------------------------------------------- the owner allows nothing
config ', device_cache: 0'
kill -HUP "$lab" # running lanes keep what the device may hold
told() { grep -q 'SIGHUP: the config changes the device "lab", and only a restart applies that' agent-lab.log; }
until_true 30 told || fail "the change of the cache is not told: $(cat agent-lab.log)"
kill "$lab"
ended "$lab" 60 || fail "the agent does not end"
start
[ "$(held cap_bytes)" -eq 0 ] || fail "another cap: $(cat status.json)"
chain third
[ "$(held hits)" -eq 0 ] || fail "a hit without a cache: $(cat status.json)"
[ "$(held copies)" -eq $((2 * links)) ] || fail "not a copy of each input: $(cat status.json)"
for other in second third; do
    [ "$(find first -name '*.npy' | wc -l)" -eq "$(find $other -name '*.npy' | wc -l)" ] || fail "other files in $other"
    cmp "$(find first -name "y$links.npy")" "$(find $other -name "y$links.npy")" || fail "another product: $other"
done
sed -i 's/opencl: 0, name: lab/name: lab/' "$work/lab/provider.yaml"
! "$bin/bourse-provider" run --check-config --dir "$work/lab" >check.log 2>&1 || fail "cores with a device_cache are taken"
has "$(cat check.log)" "only a device of opencl or cuda holds inputs in its own memory"
echo "residency: $((2 * (links - 1))) of $((2 * links)) inputs stayed on the device"
