#!/bin/bash
# A full disk refuses commands with a reason, and the broker goes on by itself when there is room. Needs a small tmpfs.
set -u
bin=${1:?usage: test_disk_full.sh BIN}
work=$(mktemp -d)
pid=
cleanup() {
    [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null
    umount "$work" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
mount -t tmpfs -o size=3m,mode=700 tmpfs "$work" 2>/dev/null || exit 77

fail() {
    echo "FAILED: $*; log: $(cat "$work/log")" >&2
    exit 1
}

dir=$work/m
mkdir -m 700 "$dir"
# Seed and key of RFC 8032, section 7.1, test 1.
key=d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a
(umask 077 && echo 9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60 >"$dir/owner.key")
cat >"$dir/broker.yaml" <<END
genesis: {accounts: [{key: "$key", name: o, roles: [operator, consumer], credits: "5"}]}
END
"$bin/bourse-broker" --dir "$dir" 2>"$work/log" &
pid=$!
for _ in $(seq 400); do
    [ -e "$dir/market.yaml" ] && break
    sleep 0.05 # between two looks at a file; the file is the event
done
mint() {
    "$bin/bourse" admin mint "$key" 1 -m "$dir" -k "$dir/owner.key" --timeout "$1" 2>&1
}
mint 10s >/dev/null || fail "the first mint"
dd if=/dev/zero of="$work/fill" bs=4k 2>/dev/null
mint 1s >/dev/null && fail "a mint on a full disk was accepted"
for _ in $(seq 100); do
    grep -q "disk is full" "$work/log" && break
    sleep 0.05
done
out=$(mint 2s)
case $out in
*"free disk space"*) ;;
*) fail "expected a refusal that says why, got: $out" ;;
esac
kill -0 "$pid" || fail "the broker ended"
rm "$work/fill"
for _ in $(seq 100); do
    grep -q "room on the disk again" "$work/log" && break
    sleep 0.1
done
mint 10s >/dev/null || fail "a mint after there was room again"
"$bin/bourse-broker" replay --verify "$dir" >/dev/null || fail "replay"
kill -TERM "$pid"
wait "$pid" || fail "a clean stop"
pid=
echo ok
