#!/bin/bash
# A broker with much behind it starts soon, knows all of it, and replays under the limits it was run with. --long adds the
# promise: 100,000 finished subtasks, release build, under 5 s.
set -u
bin=$(realpath "${1:?usage: test_restart.sh BIN}")
make=$bin/../bench/restart
subtasks=1500 start_most_s=120
work=$(mktemp -d)
pid=
cleanup() {
    [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
fail() {
    echo "FAILED: $*; log: $(cat "$work/log" 2>/dev/null)" >&2
    exit 1
}
[ -x "$make" ] || { echo "skipped: no $make"; exit 77; }

start() {
    "$bin/bourse-broker" --dir "$dir" 2>"$work/log" &
    pid=$!
    for _ in $(seq $((start_most_s * 20))); do
        [ -e "$dir/market.yaml" ] && return
        kill -0 "$pid" 2>/dev/null || fail "the broker ended"
        sleep 0.05 # between two looks at a file; the file is the event
    done
    fail "not ready in $start_most_s s"
}
stop() {
    kill "-$1" "$pid"
    wait "$pid" 2>/dev/null
    local status=$?
    pid=
    return $status
}

# Finished subtasks, a message each: snapshots, and entries after the last.
dir=$work/many
mkdir -m 700 "$dir"
echo 'snapshot_every: 400' >"$dir/broker.yaml"
"$make" --make "$dir" --subtasks "$subtasks" --results 1 || fail "the market could not be made"
before=$("$bin/bourse-broker" replay --verify "$dir") || fail "replay of the new market"
[ -n "$(ls "$dir/snapshots")" ] || fail "no snapshot was made"
start
stop KILL
rm -f "$dir/market.yaml"
start
stop TERM || fail "a clean stop"
audit=$("$bin/bourse-broker" audit "$dir" --json) || fail "audit: $audit"
after=$("$bin/bourse-broker" replay --verify "$dir") || fail "replay after two starts"
records() { sed -E 's/.* ([0-9]+) records, tree of ([0-9]+).*/\1 \2/' <<<"$1"; }
[ "$(records "$before")" = "$(records "$after")" ] || fail "was: $before, is: $after"

# Limits of broker.yaml decide what is refused, so a replay needs them too: the third id of a day is one too many here.
dir=$work/limited
mkdir -m 700 "$dir"
# Seed and key of RFC 8032, section 7.1, test 1.
key=d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a
(umask 077 && echo 9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60 >"$dir/owner.key")
cat >"$dir/broker.yaml" <<END
limits: {ids_per_account: 2}
genesis: {accounts: [{key: "$key", name: o, roles: [operator, consumer], credits: "5"}]}
END
start
mint() { "$bin/bourse" admin mint "$key" 1 -m "$dir" -k "$dir/owner.key" --timeout 60s 2>&1; }
for _ in 1 2; do
    out=$(mint) || fail "two mints within the limit: $out"
done
out=$(mint) && fail "a third id was accepted"
case $out in
*"limit 2"*) ;;
*) fail "expected the limit of ids, got: $out" ;;
esac
stop TERM || fail "a clean stop"
"$bin/bourse-broker" replay --verify "$dir" >"$work/replay" 2>&1 || fail "replay under the limits of broker.yaml: $(cat "$work/replay")"

# Other limits bind from the start that brings them: what was refused before stays refused, and what was accepted stays,
# in a start with and without a snapshot, in a replay, and in a restore. A clean stop leaves a snapshot at the end.
state() { sed -E 's/.*, state ([0-9a-f]{64}).*/\1/' "$work/replay"; }
verify() { "$bin/bourse-broker" replay --verify "$dir" >"$work/replay" 2>&1 || fail "replay with $1: $(cat "$work/replay")"; }
[ -n "$(ls "$dir/snapshots")" ] || fail "a clean stop left no snapshot"
cp -r "$dir/snapshots" "$work/snapshots"
was=$(state)
sed -i 's/ids_per_account: 2/ids_per_account: 4/' "$dir/broker.yaml"
verify "limits raised"
[ "$(state)" = "$was" ] || fail "the limits of broker.yaml changed what the journal leads to"
rm "$dir/snapshots"/* # as after a crash: everything is replayed
start
for _ in 1 2; do
    out=$(mint) || fail "two mints more under the raised limit: $out"
done
mint >/dev/null && fail "a fifth id was accepted"
stop TERM || fail "a clean stop"
acts=$("$bin/bourse-broker" acts "$dir") || fail "the audit log: $acts"
case $acts in
*"ids_per_account 2 -> 4"*) ;;
*) fail "the raised limit is not in the audit log: $acts" ;;
esac
sed -i 's/ids_per_account: 4/ids_per_account: 1/' "$dir/broker.yaml"
rm "$dir/snapshots"/*
cp "$work/snapshots"/* "$dir/snapshots/" # an older snapshot, and the rest of the journal
start
mint >/dev/null && fail "an id above the lowered limit was accepted"
stop KILL
rm -f "$dir/market.yaml"
start
stop TERM || fail "a clean stop"
case $(cat "$work/log") in
*"replayed 0 entries"*) fail "nothing was replayed after a kill" ;;
esac
start
case $(cat "$work/log") in
*"replayed 0 entries"*) ;;
*) fail "something was replayed after a clean stop" ;;
esac
stop TERM || fail "a clean stop"
verify "limits lowered"
"$bin/bourse-broker" audit "$dir" >"$work/audit" 2>&1 || fail "audit: $(cat "$work/audit")"
"$bin/bourse-broker" backup "$dir" "$work/copy" >"$work/log" 2>&1 || fail "backup"
for limit in 1 2 9; do
    sed -i -E "s/ids_per_account: [0-9]+/ids_per_account: $limit/" "$work/copy/broker.yaml"
    "$bin/bourse-broker" restore "$work/copy" "$work/back.$limit" --head "$dir/HEAD" >"$work/log" 2>&1 ||
        fail "restore under a limit of $limit"
done

if [ "${BOURSE_LONG:-no}" = yes ]; then
    release=$bin/../../release
    [ -x "$release/bench/restart" ] || fail "the release build has no bench/restart"
    for results in 1 16 256; do
        row=$("$release/bench/restart" --subtasks 100000 --results "$results") || fail "bench/restart: $row"
        echo "$row"
        for form in first after_stop after_kill cold; do
            awk -v row="$row" -v form="\"${form}_s\":" \
                'BEGIN {at = index(row, form); exit !(at > 0 && substr(row, at + length(form)) + 0 < 5)}' ||
                fail "$form took 5 s or more: $row"
        done
    done
fi
echo ok
