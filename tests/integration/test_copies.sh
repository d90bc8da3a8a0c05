#!/usr/bin/env bash
# Three brokers over three members of etcd, with `copies: 2`. The leader dies and its blobs are gone; a job's files are fetched from
# the next leader, and its receipt holds. A broker that lost all blobs gets them back, and so does a leader that lost one file. A file
# is not acknowledged while no other broker has it.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
# shellcheck source=tests/support/etcd.sh
. "$here/../support/etcd.sh"
fire_begin copies "$1" bourse-audit junk-storer
etcd_begin

declare -A port pid folder
for name in a b c; do
    port[$name]=$(free_port)
    while [ "$(printf '%s\n' "${port[@]}" | sort | uniq -d)" != "" ]; do port[$name]=$(free_port); done
    folder[$name]=$work/$name
done
at() { echo "tcp://127.0.0.1:$1"; }
config() { # BROKER RANK
    local name
    printf '%s\n' "listen: $(at "${port[$1]}")" "blob_listen: $(at $((port[$1] + 1)))" \
        "cluster: {rank: $2, address: '$(at "${port[$1]}")', copies: 2}" "$etcd_lines" "addresses:"
    for name in a b c; do
        echo "  - {control: $(at "${port[$name]}"), blobs: $(at $((port[$name] + 1)))}"
    done
    echo "genesis: {accounts: [{key: \"$owner\", name: owner, roles: [operator, consumer], credits: \"100\"}]}"
}
lines() { wc -l <"$work/$1.log" 2>/dev/null || echo 0; }
start() { # BROKER: `since` is the line of its log before
    since[$1]=$(lines "$1")
    "$bin/bourse-broker" --dir "${folder[$1]}" >>"$work/$1.log" 2>&1 </dev/null &
    pid[$1]=$!
    started+=("$!")
}
declare -A since
says() { tail -n +"$((since[$1] + 1))" "$work/$1.log" | grep -q "$2"; } # BROKER TEXT
kill_broker() {
    kill -9 "${pid[$1]}"
    wait "${pid[$1]}" 2>/dev/null || true
}
leader() { # BROKER...: sets `leads`
    local name
    for name; do ! says "$name" "open market" || { leads=$name; return 0; }; done
    return 1
}
is_done() { "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null </dev/null && grep -q '"state":"done"' ps.json; }
large_file() { find "${folder[$1]}/blobs" -type f -size "${2}c" 2>/dev/null | grep -q .; } # BROKER BYTES

# ---- three brokers
mkdir -m 700 "${folder[a]}" owner
export BOURSE_KEY=$work/owner/key
owner=$("$bourse" key 2>key.log) || fail "key: $(cat key.log)"
config a 0 >"${folder[a]}/broker.yaml"
start a
until_true 60 test -s "${folder[a]}/market.yaml" || fail "the first broker"
cp "${folder[a]}/market.yaml" known.yaml
chmod 600 known.yaml
export BOURSE_MARKET=$work/known.yaml
"$bin/bourse-broker" backup "${folder[a]}" "$work/backup" --with-keys >backup.log 2>&1 || fail "backup: $(cat backup.log)"
rank=1
for name in b c; do
    "$bin/bourse-broker" cluster join "$work/backup" "${folder[$name]}" >join.log 2>&1 || fail "cluster join: $(cat join.log)"
    config "$name" "$rank" >"${folder[$name]}/broker.yaml"
    start "$name"
    rank=$((rank + 1))
done
for name in b c; do until_true 60 says "$name" "has all blobs of the leader" || fail "$name does not copy"; done
printf '%s\n' 'slots: 1' 'programs: [sh, cat]' | agent_join "$work/lab"
agent_start "$work/lab"
until_true 60 offered 1 || fail "the agent does not offer"

# ---- nobody is a copy with the key of a member, not even the operator's
mkdir -m 700 taken
(umask 077 && cat lab/provider.key >taken/key) # the agent's folder is of another user
for key in "$BOURSE_KEY" "$work/taken/key"; do
    "$bin/junk-storer" known.yaml "$key" - feed >feed.out 2>feed.log || fail "junk-storer: $(cat feed.log)"
    grep -q "^TYPE" feed.out || fail "a member was told what blobs there are: $(cat feed.out)"
done

# ---- a job with an input of 3 MB and an output of 6 MB; then its broker and all blobs there are gone
head -c 3000000 /dev/urandom >data.bin
printf '%s\n' 'run: [sh, -c, "cat data.bin data.bin >twice.bin; echo said"]' 'files: [data.bin]' 'outputs: [twice.bin]' \
    'limit: 5m' 'budget: 5' >job.yaml
job=$("$bourse" submit job.yaml -y --quiet 2>submit.log </dev/null) || fail "submit: $(cat submit.log)"
until_true 120 is_done "$job" || fail "the job does not end: $(cat ps.json)"
kill_broker a
mv "${folder[a]}/blobs" "$work/gone"
until_true 60 leader b c || fail "nobody takes over"
first=$leads other=b
[ "$first" = c ] || other=c
"$bourse" fetch "$job" -o fetched >fetch.log 2>&1 </dev/null || fail "fetch from the next leader: $(cat fetch.log)"
cat data.bin data.bin >wanted.bin
cmp wanted.bin "$(find fetched -name twice.bin)" || fail "other bytes came"
[ "$("$bourse" logs "$job" 0 2>logs.log </dev/null)" = said ] || fail "what the job printed is not there: $(cat logs.log)"
"$bourse" receipt "$job" --all -o proofs >receipt.log 2>&1 </dev/null || fail "receipt: $(cat receipt.log)"
"$bourse" verify proofs --key "$("$bourse" key --log)" >verify.log 2>&1 </dev/null || fail "the receipt does not hold: $(cat verify.log)"

# ---- the broker that lost everything follows, and gets all of it
start a
until_true 60 says a "has all blobs of the leader" || fail "the first broker does not copy"
large_file a 3000000 && large_file a 6000000 || fail "the first broker has no copy of the files"

# ---- the leader loses a file, and another broker brings it
rm "$(find "${folder[$first]}/blobs" -type f -size 6000000c)"
rm -rf fetched
"$bourse" fetch "$job" -o fetched >fetch.log 2>&1 </dev/null || fail "fetch of what the leader lost: $(cat fetch.log)"
cmp wanted.bin "$(find fetched -name twice.bin)" || fail "other bytes came"
large_file "$first" 6000000 || fail "the leader did not get the file back"

# ---- nothing is acknowledged that only the leader has
kill_broker a
kill_broker "$other"
head -c 500000 /dev/urandom >data.bin
"$bourse" submit job.yaml -y --quiet >second.job 2>second.log </dev/null &
second=$!
started+=("$second")
until_true 60 says "$first" "a blob is not acknowledged" || fail "the leader does not say that others have to copy"
[ ! -s second.job ] || fail "a job was submitted whose input one broker has"
start "$other"
wait "$second" || fail "the second job: $(cat second.log)"
kill_broker "$first"
until_true 60 leader "$other" || fail "the last broker does not lead"
large_file "$other" 500000 || fail "the input was acknowledged, and is not there"

# ---- the last broker has no quorum: whoever tries the other two as well is told that, and not that nobody answers
etcd_kill 0
etcd_kill 1
for patience in 5s 4s; do # the second one meets a broker that sends it on to the others
    if "$bourse" admin mint "$owner" 1 --timeout "$patience" >quorum.log 2>&1 </dev/null; then fail "acknowledged without a quorum"; fi
    tail -n 1 quorum.log | grep -q "the broker's journal has taken nothing" || fail "no reason: $(cat quorum.log)"
done
etcd_start 0
etcd_start 1
start a
until_true 60 is_done "$(cat second.job)" || fail "the second job does not end: $(cat ps.json)"
echo "files on two brokers before they are acknowledged: ok in $SECONDS s"
