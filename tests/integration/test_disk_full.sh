#!/bin/bash
# A full disk: commands are refused with a reason, cancels and reads are served from the reserve, then reads alone; the
# broker goes on by itself when there is room. Needs a small tmpfs.
set -u
bin=$(realpath "${1:?usage: test_disk_full.sh BIN}")
work=$(mktemp -d)
pid=
cleanup() {
    [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null
    wait 2>/dev/null
    umount "$work" 2>/dev/null || umount -l "$work" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
mount -t tmpfs -o size=6m,mode=700 tmpfs "$work" 2>/dev/null || exit 77

fail() {
    echo "FAILED: $*; log: $(cat "$work/log")" >&2
    exit 1
}
# Says what went wrong when `$1` does not hold the text `$2`.
has() {
    case $1 in
    *"$2"*) ;;
    *) fail "expected \"$2\" in: $1" ;;
    esac
}
logged() {
    for _ in $(seq 1200); do
        grep -q "$1" "$work/log" && return
        sleep 0.05 # between two looks at the log; the line is the event
    done
    fail "the log never said: $1"
}

dir=$work/m
mkdir -m 700 "$dir"
: >"$work/log"
# Seed and key of RFC 8032, section 7.1, test 1.
key=d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a
second_key=3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c # of test 2
(umask 077 && echo 9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60 >"$dir/owner.key")
cat >"$dir/broker.yaml" <<END
reserve: 1MiB
genesis: {accounts: [{key: "$key", name: o, roles: [operator, consumer], credits: "5"}, {key: "$second_key", name: n, roles: [consumer]}]}
END
start() {
    "$bin/bourse-broker" --dir "$dir" 2>>"$work/log" &
    pid=$!
    for _ in $(seq 1200); do
        [ -e "$dir/market.yaml" ] && return
        kill -0 "$pid" 2>/dev/null || fail "the broker ended"
        sleep 0.05 # between two looks at a file; the file is the event
    done
    fail "the broker was not ready"
}
export BOURSE_MARKET=$dir BOURSE_KEY=$dir/owner.key HOME=$work
bourse() { "$bin/bourse" "$@" 2>&1; }
mint() { bourse admin mint "$key" 1 --timeout "$1"; }

start
[ "$(stat -c %s "$dir/reserve")" = 1048576 ] || fail "the reserve is not there"
mint 60s >/dev/null || fail "the first mint"
job() { # in memory already when the disk is full
    printf 'name: %s\narray: 1-3\nrun: ["true"]\n' "$1" | bourse submit /dev/stdin -y --quiet --anyway --budget 1 --timeout 60s
}
first=$(job first) || fail "the first job: $first"
second=$(job second) || fail "the second job: $second"

# ---- full: the reserve is given up for the command that met it; what comes after is refused
dd if=/dev/zero of="$work/fill" bs=4k 2>/dev/null
for _ in $(seq 500); do # room inside SQLite's own files may last for some
    out=$(mint 60s) || break
done
has "$out" "free disk space"
[ -e "$dir/reserve" ] && fail "the reserve is still there"
logged "served from the reserve"
out=$(job third) && fail "a job was accepted on a full disk"
has "$out" "free disk space"
balance=$(bourse balance --json --timeout 60s) || fail "no balance: $balance"
has "$balance" '"held_micro"'
bourse ledger --timeout 60s >/dev/null || fail "no statement"
bourse ps --timeout 60s >/dev/null || fail "no jobs"
out=$(bourse cancel "$first" --timeout 60s) || fail "a cancel was not served from the reserve: $out"
has "$(bourse ps "$first" --json --timeout 60s)" cancelled

# ---- fuller: somebody else takes what the reserve gave back; now reads alone are served
dd if=/dev/zero of="$work/fill2" bs=4k 2>/dev/null
logged "reserve used up"
out=$(bourse cancel "$second" --timeout 60s) && fail "a cancel was accepted with nothing left: $out"
has "$out" "free disk space"
bourse balance --timeout 60s >/dev/null || fail "no balance with nothing left"
bourse ps --timeout 60s >/dev/null || fail "no jobs with nothing left"
bourse ledger --timeout 60s >/dev/null || fail "no statement with nothing left"
kill -0 "$pid" || fail "the broker ended"
# The operator who halts the market, or freezes an account, there can end it there: the last part of the reserve is his.
other=$(bourse admin accounts --json --timeout 60s | tr '{' '\n' | sed -n 's/.*"account":"\([0-9a-f]*\)".*"name":"n".*/\1/p')
[ -n "$other" ] || fail "no other account: $(bourse admin accounts --json --timeout 60s)"
for round in 1 2 3; do
    out=$(bourse admin halt --timeout 60s) || fail "no halt with nothing left, round $round: $out"
    out=$(bourse admin freeze "$other" --timeout 60s) || fail "no freeze with nothing left, round $round: $out"
    dd if=/dev/zero of="$work/fill3.$round" bs=4k 2>/dev/null
    out=$(bourse admin freeze "$other" --undo --timeout 60s) || fail "a freeze cannot be ended, round $round: $out"
    out=$(bourse admin halt --undo --timeout 60s) || fail "a halt cannot be ended, round $round: $out"
    dd if=/dev/zero of="$work/fill4.$round" bs=4k 2>/dev/null
done
has "$(mint 60s)" "free disk space"

# ---- room again: it goes on by itself, and the reserve is back
rm "$work"/fill*
logged "room on the disk again"
mint 60s >/dev/null || fail "a mint after there was room again"
[ "$(stat -c %s "$dir/reserve")" = 1048576 ] || fail "the reserve was not taken back"
bourse cancel "$second" --timeout 60s >/dev/null || fail "a cancel after there was room again"
"$bin/bourse-broker" replay --verify "$dir" >/dev/null || fail "replay"
kill -TERM "$pid"
wait "$pid" || fail "a clean stop"
pid=

# ---- filled while the broker was stopped: it starts in the room of the reserve, and takes it back when there is room
kept() {
    for _ in $(seq 1200); do
        [ "$(stat -c %s "$dir/reserve" 2>/dev/null)" = 1048576 ] && return
        sleep 0.05 # between two looks at a file; the file is the event
    done
    fail "the reserve was not taken back"
}
start
fourth=$(job fourth) || fail "the fourth job: $fourth"
kill -TERM "$pid"
wait "$pid" || fail "a clean stop"
[ -e "$dir/reserve" ] || fail "the reserve went with a clean stop"
dd if=/dev/zero of="$work/fill" bs=4k 2>/dev/null
start
logged "given up to start"
[ -e "$dir/reserve" ] && fail "the reserve is still there"
has "$(mint 60s)" "free disk space"
bourse balance --timeout 60s >/dev/null || fail "no balance after a start on a full disk"
bourse cancel "$fourth" --timeout 60s >/dev/null || fail "no cancel after a start on a full disk"

# ---- killed there: the room that is left is for cancels still, and no command takes it
kill -9 "$pid"
wait "$pid" 2>/dev/null
rm -f "$dir/market.yaml"
start
has "$(mint 60s)" "free disk space"
bourse balance --timeout 60s >/dev/null || fail "no balance after a kill on the full disk"
rm "$work/fill"
kept
mint 60s >/dev/null || fail "a mint after a kill on the full disk"

# ---- killed with the reserve held, then filled: what is left of SQLite's own files is no room for the rest
kill -9 "$pid"
wait "$pid" 2>/dev/null
rm -f "$dir/market.yaml"
dd if=/dev/zero of="$work/fill" bs=4k 2>/dev/null
start
has "$(mint 60s)" "free disk space"
rm "$work/fill"
kept
mint 60s >/dev/null || fail "a mint after a kill and a full disk"
kill -TERM "$pid"
wait "$pid" || fail "a clean stop"
pid=

# ---- killed, and not one file more can be made: the start says where it is in the room of the market.yaml that was there
inodes() { mount -o "remount,size=6m,mode=700,nr_inodes=$1" "$work" || fail "remount"; }
used() { df --output=iused "$work" | tail -n 1 | tr -d ' '; }
announced() {
    for _ in $(seq 1200); do
        grep -q "^pid: $pid$" "$dir/market.yaml" 2>/dev/null && return
        kill -0 "$pid" 2>/dev/null || fail "the broker ended where no file can be made"
        sleep 0.05 # between two looks at a file; the file is the event
    done
    fail "market.yaml was not written"
}
start
kill -9 "$pid"
wait "$pid" 2>/dev/null
inodes "$(used)"
"$bin/bourse-broker" --dir "$dir" 2>>"$work/log" &
pid=$!
announced
bourse balance --timeout 60s >/dev/null || fail "no balance after a start in the room of market.yaml"

# ---- nor is that there: it serves whoever knows where it is, and says so once there is room
kill -9 "$pid"
wait "$pid" 2>/dev/null
mv "$dir/market.yaml" "$work/known.yaml"
rm "$dir/reserve"
inodes "$(used)"
"$bin/bourse-broker" --dir "$dir" 2>>"$work/log" &
pid=$!
logged "as soon as there is room"
BOURSE_MARKET=$work/known.yaml bourse balance --timeout 60s >/dev/null || fail "no balance without market.yaml"
[ -e "$dir/market.yaml" ] && fail "market.yaml is there"
inodes 10000
announced
kept
mint 60s >/dev/null || fail "a mint after a start without market.yaml"
kill -TERM "$pid"
wait "$pid" || fail "a clean stop"
[ -e "$dir/market.yaml" ] || [ -e "$dir/market.yaml.old" ] && fail "a market.yaml after a clean stop"
pid=

# ---- without a reserve: the group that met the full disk waits, and nobody is shown what is not durable
sed -i 's/^reserve:.*/reserve: 0/' "$dir/broker.yaml"
start
[ -e "$dir/reserve" ] && fail "a reserve that nobody wants"
dd if=/dev/zero of="$work/fill" bs=4k 2>/dev/null
for _ in $(seq 500); do # the one that waits is not answered
    mint 1s >/dev/null || ! grep -q "only committed data is served" "$work/log" || break
done
logged "only committed data is served"
has "$(mint 60s)" "free disk space"
has "$(bourse balance --timeout 60s)" "free disk space"
rm "$work/fill"
for _ in $(seq 1200); do
    mint 60s >/dev/null && break
    sleep 0.05 # between two tries; the broker looks once a second
done
bourse balance --timeout 60s >/dev/null || fail "no balance after there was room again"
kill -TERM "$pid"
wait "$pid" || fail "a clean stop"
pid=
"$bin/bourse-broker" audit "$dir" >/dev/null || fail "audit"
echo ok
