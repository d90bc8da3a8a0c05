#!/usr/bin/env bash
# A market whose journal is on three real members of etcd. The broker is killed under a job, and a second process goes on.
# Members of etcd are killed meanwhile, and all of them. At the end a broker in another folder takes over, from a backup.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
# shellcheck source=tests/support/etcd.sh
. "$here/../support/etcd.sh"
fire_begin etcd "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"
etcd_begin
market_up --credits 50 --slots 2 --programs sleep,true,sh
market_config "$etcd_lines" # the market goes from its own disk to etcd
grep -q "leads the journal on etcd under epoch" broker.log || fail "the journal is not on etcd"
[ -s "$market/journal.etcd" ] || fail "the folder does not say that its journal is on etcd"

owner=$("$bourse" key --key "$market/owner.key" 2>key.log) || fail "key: $(cat key.log)"
finished() { # JOB COUNT
    "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && [ "$(field accepted ps.json)" -ge "$2" ]
}
is_done() {
    "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && grep -q '"state":"done"' ps.json
}
entries() { sqlite3 -readonly "$1/ledger.db" 'SELECT max(idx) FROM journal'; }
entries_on_etcd() { etcd_control get --prefix /bourse/ --keys-only | grep -c /log/; }

# ---- the broker is killed under a job, with a member of etcd
printf '%s\n' 'run: [sleep, "0.4"]' 'array: 1-20' 'limit: 5m' 'budget: 5' >job.yaml
job=$("$bourse" submit job.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
until_true 60 finished "$job" 3 || fail "the job does not run: $(cat ps.json)"
etcd_kill 0
broker_kill
broker_start
broker_await || fail "the second broker does not take over"
until_true 120 is_done "$job" || fail "the job does not end: $(cat ps.json)"
[ "$(grep -c "leads the journal on etcd" broker.log)" -eq 2 ] || fail "the second broker does not lead on etcd"
etcd_start 0
until_true 60 etcd_healthy || fail "the member of etcd does not come back: $(cat health.log)"

# ---- without a quorum commands are refused at once, reads show an earlier state, and all goes on when members come back
job=$("$bourse" submit job.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
until_true 60 finished "$job" 2 || fail "the second job does not run: $(cat ps.json)"
balance() { "$bourse" balance --json --timeout 5s 2>balance.log | tr ',' '\n' | grep '"available'; }
for i in 1 2; do etcd_kill "$i"; done
away_ns=$(now_ms)
"$bourse" admin mint "$owner" 3 --timeout 60s >mint.log 2>&1 </dev/null & # it is on its way, or refused, and waits
waits=$!
started+=("$waits")
refused() { # a first refusal may come before the broker knows which members are silent
    grep -q "the broker's journal has taken nothing for .* s: .* do not answer" mint.log &&
        grep -q "Sending it again for up to" mint.log
}
until_true 60 refused || fail "a command is not refused without a quorum: $(cat mint.log)"
echo "without a quorum a command was refused within $(($(now_ms) - away_ns)) ms"
status=0
"$bourse" admin mint "$owner" 5 --timeout 3s >late.log 2>&1 </dev/null || status=$?
[ "$status" -eq 6 ] || fail "a command without a quorum ended with $status: $(cat late.log)"
grep -q "NO_QUORUM" late.log || fail "the refusal is not typed: $(cat late.log)"
for i in 1 2; do
    grep -q "https://127.0.0.1:${etcd_ports[i]}[ ,].*do not answer" late.log || fail "who is silent is not said: $(cat late.log)"
done
stale() { "$bourse" ps "$job" --timeout 5s >ps.log 2>&1 </dev/null && grep -q "this is the state of .* ago" ps.log; }
until_true 60 stale || fail "without a quorum nothing is read: $(cat ps.log)"
before=$(balance) || fail "the balance is not read: $(cat balance.log)"
"$bourse" status --json --timeout 5s >status.json 2>status.log || fail "status: $(cat status.log)"
[ "$(field stale_ms status.json)" -gt 1000 ] || fail "status does not say how old it is: $(cat status.json)"
[ "$(balance)" = "$before" ] || fail "a read shows what the journal does not have"
status=0
"$bin/bourse-broker" cluster status "$market" >members.log 2>&1 || status=$?
[ "$status" -eq 1 ] || fail "cluster status without a quorum ended with $status: $(cat members.log)"
[ "$(grep -c "^member .* does not answer" members.log)" -eq 2 ] || fail "who does not answer is not said: $(cat members.log)"
grep -q "etcd has no quorum" members.log || fail "that etcd has no quorum is not said: $(cat members.log)"
kill -0 "$waits" || fail "a command that waits for a quorum ended: $(cat mint.log)"
etcd_start 1
wait "$waits" || fail "the command was not done when the quorum came back: $(cat mint.log)"
kill -0 "$broker" || fail "the broker ended without a quorum"
etcd_start 2
until_true 60 etcd_healthy || fail "the members of etcd do not come back: $(cat health.log)"
until_true 60 finished "$job" 3 || fail "the second job does not go on: $(cat ps.json)"

# ---- the status has the size of each member, and no alarm
"$bin/bourse-broker" cluster status "$market" >members.log 2>&1 || fail "cluster status: $(cat members.log)"
[ "$(grep -cE "^member .* KiB of which [1-9][0-9]* are live" members.log)" -eq 3 ] || fail "sizes: $(cat members.log)"
if grep -q "^alarm" members.log; then fail "an alarm that is none: $(cat members.log)"; fi

# ---- without etcd the broker can be stopped, and with etcd the market goes on
for i in 0 1 2; do etcd_kill "$i"; done
etcd_away() { grep -q "etcd does not answer, or has no quorum" <(tail -n +"$((lines + 1))" broker.log); }
lines=$(grep -n "etcd takes entries again" broker.log | tail -n 1 | cut -d: -f1)
until_true 60 etcd_away || fail "the log does not say that entries wait"
kill -0 "$broker" || fail "the broker ended without etcd"
kill "$broker"
ended "$broker" 60 || fail "the broker cannot be stopped without etcd"
grep -q "stopped, its commands were not acknowledged" broker.log || fail "the log does not say what was not acknowledged"
for i in 0 1 2; do etcd_start "$i"; done
until_true 60 etcd_healthy || fail "etcd does not come back: $(cat health.log)"
broker_start
broker_await || fail "the broker does not start again with etcd"
until_true 120 is_done "$job" || fail "the second job does not end: $(cat ps.json)"

# ---- a market that is on etcd does not go on without it
kill "$broker"
ended "$broker" 60 || fail "the broker does not end"
cp "$market/broker.yaml" with-etcd.yaml
sed '/^journal:/,/^  key:/d' with-etcd.yaml >"$market/broker.yaml"
"$bin/bourse-broker" --dir "$market" >alone.log 2>&1 </dev/null && fail "the market went on without etcd"
grep -q "this market's journal is on etcd cluster" alone.log || fail "the refusal does not say why: $(cat alone.log)"
cp with-etcd.yaml "$market/broker.yaml"
broker_start
broker_await || fail "the broker does not start again"

# ---- a broker in another folder takes over, and the first one ends by itself
cp "$market/HEAD" HEAD.before
"$bin/bourse-broker" backup "$market" "$work/backup" --with-keys >backup.log 2>&1 || fail "backup: $(cat backup.log)"
"$bin/bourse-broker" restore "$work/backup" "$work/other" --head HEAD.before >restore.log 2>&1 || fail "restore: $(cat restore.log)"
for _ in 1 2 3; do
    "$bourse" admin mint "$owner" 1 --timeout 60s >mint.log 2>&1 || fail "mint: $(cat mint.log)"
done
before=$(entries "$market")
[ "$(entries "$work/other")" -lt "$before" ] || fail "the backup lacks nothing"
kill -STOP "$broker"
first=$broker
"$bin/bourse-broker" --dir "$work/other" >>"$work/other.log" 2>&1 </dev/null &
second=$!
started+=("$second")
other_ready() { # it follows at first, and leads when the first one is silent
    grep -qs "leads the journal on etcd" "$work/other.log" && grep -qs "open market" "$work/other.log"
}
until_true 120 other_ready || fail "the broker of the other folder does not take over"
[ "$(entries "$work/other")" -ge "$before" ] || fail "entries are missing in the other folder"
kill -CONT "$first"
ended "$first" 60 || fail "the first broker does not notice that another one leads"
status=0
wait "$first" || status=$?
[ "$status" -eq 4 ] || fail "the first broker ended with $status"
grep -q "another broker leads this market" broker.log || fail "the first broker does not say why it ended"
BOURSE_MARKET=$work/other "$bourse" admin mint "$owner" 1 --key "$market/owner.key" --timeout 60s >mint.log 2>&1 ||
    fail "mint at the second broker: $(cat mint.log)"
kill "$second"
ended "$second" 60 || fail "the second broker does not end"
"$bin/bourse-broker" replay --verify "$work/other" >replay.log 2>&1 || fail "replay of the other folder: $(cat replay.log)"
"$bin/bourse-broker" audit "$work/other" >audit.log 2>&1 || fail "audit of the other folder: $(cat audit.log)"

# ---- the first folder gets what the second broker wrote, and goes on
broker_start
broker_await || fail "the first folder's broker does not take over again"
[ "$(entries "$market")" -ge "$(entries "$work/other")" ] || fail "the first folder lacks entries"
"$bin/bourse-broker" acts "$market" >acts.log 2>&1 || fail "acts: $(cat acts.log)"
grep -q "read from etcd" acts.log || fail "the audit log does not say who started meanwhile: $(cat acts.log)"
[ "$(grep -c " mint " acts.log)" -ge 4 ] || fail "a mint is not in the audit log: $(cat acts.log)"
job=$("$bourse" submit job.yaml -y --quiet --timeout 60s 2>submit.log) || fail "the third job: $(cat submit.log)"
until_true 120 is_done "$job" || fail "the third job does not end: $(cat ps.json)"
[ "$(entries_on_etcd)" -gt 10 ] || fail "etcd has no entries"
market_audit
echo "the journal on etcd kept a market over kills of brokers and members: ok in $SECONDS s"
