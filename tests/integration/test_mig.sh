#!/usr/bin/env bash
# Two instances of a GPU that is split by MIG through a whole market: each is a device, a job runs on each at the same time, and each jail has the files
# of its own instance alone. An instance whose files are not known is not offered. The libraries are stand-ins; the files of the driver are made in a
# mount namespace of the test's own.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
if [ "${MIG_INSIDE:-}" = '' ] && [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
    MIG_INSIDE=yes exec unshare --mount -- bash "$(realpath "$0")" "$@"
fi
fire_begin mig "$1" bourse-kernel bourse-kernel-fake-mig bourse-audit ../tests/libfake-driver_files.so
[ "${MIG_INSIDE:-}" = yes ] || skip "no root, or no mount namespace"

# ---------------------------------------------------------------- the driver's files
# A jail gets no /proc of its own where something is mounted on the machine's. So the agent finds the files of /proc/driver elsewhere, by a
# library that comes before the C library's.
driver=$work/driver
export DRIVER_FOLDER=$driver
mkdir dev driver
mount -t tmpfs -o mode=755 none dev
for name in null zero full random urandom tty; do
    touch "dev/$name"
    mount --bind "/dev/$name" "dev/$name" || fail "/dev/$name"
done
mkdir dev/shm dev/pts dev/nvidia-caps
mount --rbind /dev/shm dev/shm
mount --rbind /dev/pts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
for name in nvidiactl nvidia-uvm nvidia0 nvidia1 nvidia-caps/nvidia-cap{12,13,66,67}; do
    mknod -m 666 "dev/$name" c 1 3 || skip "no device files can be made"
done
mount --rbind dev /dev || skip "nothing can be mounted on /dev"
umount -l dev # it stays where it is now
number() { # FILE LINE
    mkdir -p "${1%/*}"
    printf '%s\n' "$2" >"$1"
}
number "$driver/gpus/0000:3b:00.0/information" 'Device Minor: 	 0'
number "$driver/gpus/0000:4b:00.0/information" 'Device Minor: 	 1'
number "$driver/capabilities/gpu0/mig/gi1/access" 'DeviceFileMinor: 12'
number "$driver/capabilities/gpu0/mig/gi1/ci0/access" 'DeviceFileMinor: 13'
number "$driver/capabilities/gpu0/mig/gi5/access" 'DeviceFileMinor: 66'
number "$driver/capabilities/gpu0/mig/gi5/ci0/access" 'DeviceFileMinor: 67'

# ---------------------------------------------------------------- two devices
# Each device needs a core, and this machine may have two. So each instance has an agent of its own.
market_up --credits 100 --slots 1 --price 0.40
config() { # LABEL INSTANCE
    agent_join "$work/of-$1" --name "of-$1" </dev/null
    printf '%s\n' "name: of-$1" 'slots: 1' 'price: 0.50' 'memory: 128MiB' 'disk: 64MiB' 'devices:' \
        "  - {cuda: $2, name: $1, price: 0.02}" >"$work/of-$1/provider.yaml"
}
config small MIG-00112233-4455-6677-8899-aabbccddee01
config large 'MIG 5g'
mkdir fake
cp "$bin/bourse-provider" "$bin/bourse-worker" fake/
cp "$bin/bourse-kernel-fake-mig" fake/bourse-kernel
mkdir -m 700 looked
with_driver=(env "LD_PRELOAD=$bin/../tests/libfake-driver_files.so" "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0")
"${with_driver[@]}" fake/bourse-provider probe --dir "$work/looked" >probe.txt 2>probe.log || fail "probe: $(cat probe.log)"
has "$(cat probe.txt)" '0: NVIDIA Fake F100 MIG 1g.4mb'
has "$(cat probe.txt)" '1: NVIDIA Fake F100 MIG 5g.4mb'
has "$(cat probe.txt)" '2: NVIDIA Fake F200'
! grep -q 'Fake F100$' probe.txt || fail "the whole GPU is listed: $(cat probe.txt)"
agents=()
begin_agent() { # LABEL
    "${with_driver[@]}" fake/bourse-provider run --dir "$work/of-$1" >>"agent-$1.log" 2>&1 &
    agents+=("$!")
    started+=("$!")
}
for label in small large; do
    begin_agent "$label"
    until_true 120 asked "$label" || fail "the instance \"$label\" is not on offer: $(cat "agent-$label.log")"
done
"$bourse" devices of-small/small --json >small.json
has "$(cat small.json)" '"instrument":"gpu.nvidia.fake-f100-mig-1g-4mb"'
has "$(cat small.json)" '"name":"memory","value":4194304'

# ---------------------------------------------------------------- a job on each
printf '%s\n' '.version 6.0' '.target sm_50' '.address_size 64' '.visible .entry endless() { ret; }' \
    '.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .f32 f) { ret; }' >k.ptx
printf '\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40' >a.bin
printf '\0\0\x20\x41\0\0\xa0\x41\0\0\xf0\x41\0\0\x20\x42' >b.bin
kernel() { # NAME LABEL ENTRY LINE...: writes a job
    local name=$1 label=$2 entry=$3
    shift 3
    printf '%s\n' "name: $name" 'expect: 100ms' 'budget: 1.00' 'limit: 5m' 'retries: 0' "needs: \"label = $label\"" 'kernel:' \
        '  source: k.ptx' "  entry: $entry" '  global: [4]' "$@" >"$name.yaml"
}
for label in small large; do
    kernel "add-$label" "$label" add '  arguments:' '  - {input: a.bin}' '  - {input: b.bin}' '  - {output: c.bin, size: 16B}' '  - {float: 0.5}'
    timeout 120 "$bourse" submit "add-$label.yaml" -y --wait >submit.out 2>submit.log </dev/null || fail "$label: $(cat submit.log submit.out)"
    id=$("$bourse" ps last --quiet)
    rm -rf out
    "$bourse" fetch "$id" -o out >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
    [ "$(od -An -tf4 out/c.bin | tr -s ' ')" = ' 6 12 18 24' ] || fail "the sum is another: $(od -An -tf4 out/c.bin)"
    "$bourse" ps "$id" >ps.txt
    has "$(cat ps.txt)" " $label "
done

# ---------------------------------------------------------------- the files of each jail
for label in small large; do
    kernel "endless-$label" "$label" endless
    "$bourse" submit "endless-$label.yaml" -y >submit.out 2>submit.log </dev/null || fail "$label: $(cat submit.log)"
done
is_ours() { # PID: succeeds for a descendant of the agents
    local pid=$1 rest
    while [ "$pid" -gt 1 ] && [[ " ${agents[*]} " != *" $pid "* ]]; do
        rest=$(cat "/proc/$pid/stat" 2>/dev/null) || return 1
        read -r _ pid _ <<<"${rest##*) }"
    done
    [ "$pid" -gt 1 ]
}
seen() { # prints a line for each process of a job: the files of NVIDIA in its jail
    local pid
    while read -r pid; do
        ! is_ours "$pid" || (cd "/proc/$pid/root/dev" 2>/dev/null && find . -name 'nvidia*' ! -type d | sort | tr '\n' ' ' && echo)
    done < <(pgrep -x -f '/\.bourse-kernel') | sort
}
small='./nvidia-caps/nvidia-cap12 ./nvidia-caps/nvidia-cap13 ./nvidia-uvm ./nvidia0 ./nvidiactl '
large='./nvidia-caps/nvidia-cap66 ./nvidia-caps/nvidia-cap67 ./nvidia-uvm ./nvidia0 ./nvidiactl '
both_run() { seen >seen.txt && [ "$(cat seen.txt)" = "$small"$'\n'"$large" ]; }
until_true 60 both_run || fail "not each jail has the files of its own instance alone: $(cat seen.txt)"
for label in small large; do
    "$bourse" cancel "endless-$label" >cancel.log 2>&1 || fail "cancel: $(cat cancel.log)"
done

# ---------------------------------------------------------------- an instance without its files
kill "${agents[1]}"
ended "${agents[1]}" 60 || fail "the agent does not end"
rm -r "$driver/capabilities/gpu0/mig/gi5"
begin_agent large
warned() { grep -q 'the device "large" is not offered: the driver does not tell the files of this instance' agent-large.log; }
until_true 120 warned || fail "nothing is said of the instance: $(cat agent-large.log)"
until_true 60 asked of-large || fail "the agent offers nothing: $(cat agent-large.log)"
! asked large || fail "an instance is on offer whose files are not known"
asked small || fail "the other instance is gone"
echo "MIG: two instances, a job on each, and no file of another"
