#!/usr/bin/env bash
# The tables of the ledger are held while a job is submitted, so the job is acknowledged by the journal's tail alone. Then the
# broker is killed. Audit, replay, backup and restore know of the tail; an older or torn one is refused; a start applies it.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin tail "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"
query() { sqlite3 -readonly "$1/ledger.db" "$2"; }

market_up --credits 100 --slots 1 --programs sh,sleep,touch
until_true 60 offered 1 || fail "nothing is on offer"
kill -9 "$agent"
ended "$agent" 60 || fail "the agent is still there"
printf 'name: waits\nlimit: 60s\nbudget: 1\nrun: [sleep, "0"]\n' >job.yaml
"$bourse" submit -y job.yaml --quiet >first 2>log || fail "submit: $(cat log)"
"$bin/bourse-broker" backup "$market" "$work/early" >log 2>&1 || fail "the early backup: $(cat log)"
"$bourse" submit -y job.yaml --quiet >second 2>log || fail "submit: $(cat log)"
kill "$broker" # the tail begins anew, behind that backup
ended "$broker" 60 || fail "the broker does not end"
broker_start
broker_await || fail "the broker does not start again: $(cat broker.log)"

# A transaction of ours keeps the broker from the tables, for less time than it waits for them.
try() {
    mkfifo lock.in
    sqlite3 "$market/ledger.db" <lock.in >lock.out 2>&1 &
    local locker=$! acknowledged=no
    exec 7>lock.in
    printf '.timeout 5000\nBEGIN IMMEDIATE;\nSELECT %s;\n' "'held'" >&7
    until_true 10 grep -q held lock.out || fail "the tables cannot be held: $(cat lock.out)"
    timeout 10 "$bourse" submit -y job.yaml --quiet >third 2>log && acknowledged=yes
    broker_kill
    exec 7>&-
    wait "$locker" || true
    rm -f lock.in lock.out
    [ "$acknowledged" = yes ]
}
is_behind() { [ "$(query "$market" "SELECT count(*) FROM jobs")" -eq "$jobs" ]; }
jobs=2
for attempt in 1 2 3 4 5; do # a machine that stands still lets the broker give up before
    try && break
    [ "$attempt" -lt 5 ] || fail "no submission came through beside held tables: $(cat log)"
    broker_start
    broker_await || fail "the broker does not start again: $(cat broker.log)"
    jobs=$(query "$market" "SELECT count(*) FROM jobs")
done
is_behind || fail "the tables have a job that they were kept from"
[ -s "$market/journal-tail.0" ] || [ -s "$market/journal-tail.1" ] || fail "there is no tail: $(ls "$market")"

# Whoever checks knows how far the tables are behind.
"$bin/bourse-audit" --json "$market" >audit.json || fail "audit: $(cat audit.json)"
behind=$(field tail_entries audit.json)
[ "$behind" -ge 1 ] || fail "the audit sees no tail: $(cat audit.json)"
has "$("$bin/bourse-audit" "$market")" "behind the tables"
"$bin/bourse-broker" replay --verify --json "$market" >replay.json 2>log || fail "replay: $(cat log)"
[ "$(field tail replay.json)" = "$behind" ] || fail "replay and audit differ: $(cat replay.json audit.json)"

# A backup of the killed market loses nothing, and can be restored under its HEAD.
"$bin/bourse-broker" backup "$market" "$work/late" >log 2>&1 || fail "the late backup: $(cat log)"
[ -s "$work/late/journal-tail.0" ] || fail "the backup has no tail: $(ls "$work/late")"
for key in broker log audit; do cp -p "$market/$key.key" "$work/late/"; done
"$bin/bourse-broker" restore "$work/late" "$work/again" --head "$market/HEAD" >log 2>&1 || fail "restore: $(cat log)"
"$bin/bourse-audit" --json "$work/again" >audit.json || fail "audit of the restored market: $(cat audit.json)"
[ "$(field tail_entries audit.json)" = "$behind" ] || fail "the restored market lacks the tail: $(cat audit.json)"
if "$bin/bourse-broker" restore "$work/early" "$work/never" --head "$market/HEAD" >log 2>&1; then
    fail "an early backup was restored under a late HEAD"
fi

refused() { # FOLDER TEXT: neither a start nor an audit takes it
    local out
    if out=$(timeout 60 "$bin/bourse-broker" --dir "$1" 2>&1 </dev/null); then fail "the broker started in $1"; fi
    has "$out" "$2"
    if "$bin/bourse-audit" "$1" >log 2>&1; then fail "the audit takes $1: $(cat log)"; fi
}
copy() {
    rm -rf "$work/copy"
    cp -a "$market" "$work/copy"
    rm -f "$work/copy/LOCK"
}
copy # the database is an old copy, the tail is of today
rm -f "$work/copy"/ledger.db-*
cp "$work/early/ledger.db" "$work/copy/ledger.db"
refused "$work/copy" "is an old copy"
copy # an acknowledged record is torn
for file in 0 1; do
    [ ! -s "$work/copy/journal-tail.$file" ] || : >"$work/copy/journal-tail.$file"
done
refused "$work/copy" "but HEAD has seen"

# The start applies what is missing: the job is there once, and a clean stop leaves no tail.
broker_start
broker_await || fail "the broker does not start: $(cat broker.log)"
grep -q 'applied [0-9]* entries of the journal.s tail' broker.log || fail "nothing was applied: $(cat broker.log)"
"$bourse" ps --json >ps.json 2>log || fail "ps: $(cat log)"
for id in first second third; do
    grep -q "$(cat "$id")" ps.json || fail "job $id is lost: $(cat ps.json)"
done
[ "$(query "$market" "SELECT count(*) FROM jobs")" -eq $((jobs + 1)) ] || fail "the tables lack the job"
market_audit
if [ -e "$market/journal-tail.0" ] || [ -e "$market/journal-tail.1" ]; then fail "a clean stop left a tail"; fi
echo "the tables were $behind entries behind when the broker was killed; nothing was lost"
