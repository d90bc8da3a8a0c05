#!/usr/bin/env bash
# Two brokers of one market over three real members of etcd. One leads and the other follows; the leader is killed, stands
# still, and is stopped properly. Nothing acknowledged is lost, nobody is paid twice, and both folders hold the same market.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
# shellcheck source=tests/support/etcd.sh
. "$here/../support/etcd.sh"
fire_begin cluster "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"
etcd_begin
market_up --credits 50 --slots 2 --programs sleep,true,sh
port=$(free_port)
market_config "$etcd_lines" "cluster: {rank: 0, address: 'tcp://127.0.0.1:$port'}"
export BOURSE_MARKET=$work/known.yaml BOURSE_KEY=$market/owner.key
owner=$("$bourse" key 2>key.log) || fail "key: $(cat key.log)"

other=$work/other
declare -A folder=([a]=$market [b]=$other) pid=([a]=$broker [b]='')
run() { # BROKER: starts it in its folder
    "$bin/bourse-broker" --dir "${folder[$1]}" >>"$work/$1.log" 2>&1 </dev/null &
    pid[$1]=$!
    started+=("$!")
}
says() { tail -n +"$(($2 + 1))" "$work/$1.log" | grep -qE "$3"; } # BROKER LINES TEXT: after so many lines of its log
lines() { wc -l <"$work/$1.log"; }
leads() { says "$1" "$2" "open market"; }
# Blobs are on each broker's own disk. Where they are no shared file system, they have to be copied.
blobs_to() { # BROKER
    local from=a
    [ "$1" = b ] || from=b
    rm -rf "${folder[$1]}/blobs"
    cp -a "${folder[$from]}/blobs" "${folder[$1]}/blobs"
}
# The agent and the commands know one path. It leads to the broker that leads.
point_at() { # BROKER
    local name
    for name in broker.sock blobs.sock; do
        [ ! -S "$market/$name" ] || [ -L "$market/$name" ] || mv "$market/$name" "$market/$name.own"
        if [ "$1" = b ]; then ln -sfn "$other/$name" "$market/$name"; else mv "$market/$name.own" "$market/$name"; fi
    done
}
entries() { sqlite3 -readonly "${folder[$1]}/ledger.db" 'SELECT max(idx) FROM journal'; }
has_entry() { [ "$(entries "$1")" -ge "$2" ]; }
finished() { # JOB COUNT
    "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && [ "$(field accepted ps.json)" -ge "$2" ]
}
is_done() {
    "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && grep -q '"state":"done"' ps.json
}
mint() { "$bourse" admin mint "$owner" 1 --timeout 60s >mint.log 2>&1 || fail "mint: $(cat mint.log)"; }

# ---- a second broker joins, and follows
"$bin/bourse-broker" backup "$market" "$work/backup" --with-keys >backup.log 2>&1 || fail "backup: $(cat backup.log)"
mint
"$bin/bourse-broker" cluster join "$work/backup" "$other" >join.log 2>&1 || fail "cluster join: $(cat join.log)"
grep -q "cluster.rank" join.log || fail "the join does not say what comes next: $(cat join.log)"
[ "$(head -n 3 "$market/journal.etcd")" = "$(head -n 3 "$other/journal.etcd")" ] || fail "the new folder does not know its etcd"
"$bin/bourse-broker" cluster status "$other" --json >status.json 2>status.log || fail "cluster status: $(cat status.log)"
[ "$(field lag status.json)" -gt 0 ] || fail "the new folder lacks nothing: $(cat status.json)"
sed -i "s#^cluster:.*#cluster: {rank: 1, address: 'tcp://127.0.0.1:$((port + 1))'}#" "$other/broker.yaml"
[ "$(id -u)" -ne 0 ] || { chgrp bourse "$other" && chmod 710 "$other"; }
cp broker.log a.log
[ -d "$other/blobs" ] || mkdir -m 700 "$other/blobs"
mv "$other/blobs" "$other/blobs.kept"
ln -s blobs.kept "$other/blobs"
if timeout 60 "$bin/bourse-broker" --dir "$other" >link.log 2>&1 </dev/null; then fail "a link in the place of blobs/ was taken"; fi
grep -q 'blobs' link.log || fail "who cannot open blobs/ does not say so: $(cat link.log)"
rm "$other/blobs"
mv "$other/blobs.kept" "$other/blobs"
run b
until_true 60 says b 0 "follows " || fail "the second broker does not follow"
mint
until_true 60 has_entry b "$(entries a)" || fail "the second broker does not follow"
! says b 0 "open market" || fail "the second broker leads, beside the first"
kill -0 "${pid[a]}" || fail "the first broker was deposed by one that follows"
"$bin/bourse-broker" cluster status "$other" >status.log 2>&1 || fail "cluster status: $(cat status.log)"
for word in "epoch     2" "address   tcp://127.0.0.1:$port" " 0 ms stale" "etcd 3"; do
    grep -q "$word" status.log || fail "cluster status lacks '$word': $(cat status.log)"
done
if BOURSE_MARKET=$other "$bourse" balance --timeout 5s >refused.log 2>&1; then fail "a follower answered a read"; fi

# ---- the leader is killed under a job
printf '%s\n' 'run: [sleep, "0.4"]' 'array: 1-30' 'limit: 5m' 'budget: 5' >job.yaml
job=$("$bourse" submit job.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
until_true 60 finished "$job" 3 || fail "the job does not run: $(cat ps.json)"
at=$(now_ms)
kill -9 "${pid[a]}"
blobs_to b
until_true 60 leads b 0 || fail "the second broker does not take over"
echo "after a kill the second broker led within $(($(now_ms) - at)) ms"
point_at b
until_true 120 is_done "$job" || fail "the job does not end: $(cat ps.json)"
mint

# ---- the killed one is started again, and follows; both hold the same market
before=$(lines a)
run a
until_true 60 says a "$before" "follows " || fail "the first broker does not follow"
point_at b
mint
until_true 60 has_entry a "$(entries b)" || fail "the first broker does not follow"
! says a "$before" "open market" || fail "the first broker leads, beside the second"

# ---- the leader stands still: the other leads, and the old one neither acknowledges nor pays
job=$("$bourse" submit job.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
until_true 60 finished "$job" 3 || fail "the second job does not run: $(cat ps.json)"
kill -STOP "${pid[b]}"
blobs_to a
before=$(lines a)
BOURSE_MARKET=$other "$bourse" admin mint "$owner" 7 --timeout 20s >late.log 2>&1 </dev/null &
late=$!
started+=("$late")
until_true 60 leads a "$before" || fail "the first broker does not take over"
point_at a
last=$(entries a)
kill -CONT "${pid[b]}"
ended "${pid[b]}" 60 || fail "a deposed broker does not end"
status=0
wait "${pid[b]}" || status=$?
[ "$status" -eq 4 ] || fail "a deposed broker ended with $status"
if wait "$late"; then fail "a deposed broker acknowledged a command: $(cat late.log)"; fi
[ "$(entries b)" -le "$last" ] || fail "a deposed broker wrote entries"
until_true 120 is_done "$job" || fail "the second job does not end: $(cat ps.json)"

# ---- the leader and the member of etcd that leads there are lost together
before=$(lines b)
run b
until_true 60 says b "$before" "follows " || fail "the second broker does not follow again"
"$bin/bourse-broker" cluster status "$other" --json >status.json 2>status.log || fail "cluster status: $(cat status.log)"
member=$(tr '{' '\n' <status.json | grep '"url"' | grep -n '"leads":true' | cut -d: -f1)
[ -n "$member" ] || fail "no member of etcd leads: $(cat status.json)"
before=$(lines b)
at=$(now_ms)
etcd_kill $((member - 1))
kill -9 "${pid[a]}"
blobs_to b
until_true 60 leads b "$before" || fail "the second broker does not take over when a whole machine is lost"
echo "after the loss of a machine the second broker led within $(($(now_ms) - at)) ms"
point_at b
mint
etcd_start $((member - 1))
until_true 60 etcd_healthy || fail "the member of etcd does not come back: $(cat health.log)"
before=$(lines a)
run a
until_true 60 says a "$before" "follows " || fail "the first broker does not follow"
at=$(lines a)
kill "${pid[b]}"
until_true 60 leads a "$at" || fail "the first broker does not get the lead"
ended "${pid[b]}" 60 || fail "the second broker does not end"
blobs_to a
point_at a

# ---- a proper stop hands the lead over
before=$(lines b)
run b
until_true 60 says b "$before" "follows " || fail "the second broker does not follow again"
before=$(lines b)
at=$(now_ms)
kill "${pid[a]}"
until_true 60 leads b "$before" || fail "nobody takes the lead from a broker that stops"
echo "after SIGTERM the second broker led within $(($(now_ms) - at)) ms"
point_at b
says b "$before" "gave the lead up" || fail "the second broker waited for silence"
ended "${pid[a]}" 60 || fail "the first broker does not end"

# ---- the lead is handed over on command, there and back; nobody ends
before=$(lines a)
run a
until_true 60 says a "$before" "follows " || fail "the first broker does not follow again"
transfer() { "$bin/bourse-broker" cluster transfer "$@" >transfer.log 2>&1; }
status=0
transfer "$market" || status=$?
[ "$status" -eq 1 ] || fail "a follower's folder handed the lead over, or ended with $status"
grep -q "does not lead: .*tcp://127.0.0.1:$((port + 1)) does" transfer.log || fail "who leads is not said: $(cat transfer.log)"
status=0
transfer "$other" --to nobody || status=$?
[ "$status" -eq 2 ] || fail "a wrong --to ended with $status: $(cat transfer.log)"
before=$(lines a)
from=$(lines b)
transfer "$other" --to "tcp://127.0.0.1:$port" --json || fail "cluster transfer: $(cat transfer.log)"
grep -q "\"address\":\"tcp://127.0.0.1:$port\"" transfer.log || fail "another broker leads: $(cat transfer.log)"
echo "on command the lead went over within $(field took_ms transfer.log) ms"
until_true 60 leads a "$before" || fail "the first broker does not lead"
until_true 60 says b "$from" "follows " || fail "the second broker does not follow after it handed over"
blobs_to a
point_at a
mint
before=$(lines b)
from=$(lines a)
transfer "$market" --to 1 || fail "cluster transfer back: $(cat transfer.log)"
until_true 60 leads b "$before" || fail "the second broker does not lead again"
until_true 60 says a "$from" "follows " || fail "the first broker does not follow after it handed over"
kill "${pid[a]}"
ended "${pid[a]}" 60 || fail "the first broker does not end"
point_at b
mint

# ---- a broker that a truncation left behind says what to do
before=$(lines a)
market_id=$(etcd_control get --prefix /bourse/ --keys-only | sed -n 's#^/bourse/\([0-9a-f]*\)/base$#\1#p')
etcd_control get "/bourse/$market_id/base" --print-value-only >base.bin 2>/dev/null || fail "the base cannot be read"
cp base.bin base.before
until_true 60 has_entry b $(($(entries a) + 8)) || fail "the leader writes no ticks"
last=$(($(entries b) - 2))
# The value is a magic of four bytes, the index, and two hashes; etcdctl adds a newline.
perl -0777 -pe 'chop; substr($_, 4, 8) = pack("Q<", '"$last"')' base.before >base.bin
etcd_control put "/bourse/$market_id/base" <base.bin >/dev/null || fail "the base cannot be written"
etcd_control del "/bourse/$market_id/log/" "/bourse/$market_id/log/$(printf %016x "$last")" >/dev/null ||
    fail "entries cannot be deleted"
mint
if timeout 120 "$bin/bourse-broker" --dir "$market" >behind.log 2>&1 </dev/null; then fail "a broker that was left behind follows"; fi
grep -q "etcd no longer has entry" behind.log || fail "who was left behind does not say so: $(cat behind.log)"
grep -q "cluster join" behind.log || fail "who was left behind does not say what to do: $(cat behind.log)"
rm -rf "$work/backup"
"$bin/bourse-broker" backup "$other" "$work/backup" --with-keys >backup.log 2>&1 || fail "backup: $(cat backup.log)"
cp "$market/broker.yaml" first.yaml
mv "$market" "$work/left-behind"
"$bin/bourse-broker" cluster join "$work/backup" "$market" >join.log 2>&1 || fail "cluster join again: $(cat join.log)"
cp first.yaml "$market/broker.yaml"
cp "$work/left-behind/owner.key" "$market/owner.key"

# ---- one state, in both folders; paid once
before=$(lines a)
run a
until_true 60 says a "$before" "follows " || fail "the first broker does not follow"
point_at b
mint
kill "${pid[a]}"
ended "${pid[a]}" 60 || fail "a follower does not end"
kill "${pid[b]}" || fail "the leader ended by itself: $(tail -n 5 "$work/b.log")"
ended "${pid[b]}" 60 || fail "the leader does not end"
run a # the end of the log; nobody else is there
until_true 60 has_entry a "$(entries b)" || fail "the first folder lacks entries"
before=$(lines a)
kill "${pid[a]}"
ended "${pid[a]}" 60 || fail "the first broker does not end"
for one in a b; do
    "$bin/bourse-broker" replay --verify "${folder[$one]}" >replay.log 2>&1 || fail "replay of $one: $(cat replay.log)"
    "$bin/bourse-broker" audit "${folder[$one]}" >audit.log 2>&1 || fail "audit of $one: $(cat audit.log)"
done
[ "$(sqlite3 -readonly "$market/ledger.db" "SELECT count(*) FROM (SELECT idx FROM journal WHERE idx <= $(entries b))")" -eq \
    "$(entries b)" ] || fail "the first folder lacks entries"
same() { sqlite3 -readonly "${folder[$1]}/ledger.db" "SELECT idx, hex(chain) FROM journal WHERE idx <= $2 ORDER BY idx"; }
[ "$(same a "$(entries b)")" = "$(same b "$(entries b)")" ] || fail "the two folders have two histories"
echo "two brokers over one journal: kills, standstills and stops: ok in $SECONDS s"
