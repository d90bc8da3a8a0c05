#!/bin/bash
# A log key that has signed never begins a second history: a folder whose ledger is lost is refused, whatever of the market is left
# in it. The ways on are a restore, or a log that ends on purpose. A first start that is killed anywhere goes on at the next start.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
store_begin log-ends "$1"
command -v sqlite3 >/dev/null || skip "no sqlite3"
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS} # one that is traced cannot look for leaks
set +e # every status is looked at
start() {
    : >"$work/broker.log"
    broker_start
    broker_await || fail "the broker ended: $(cat "$work/broker.log")"
}
stop() {
    kill -TERM "$broker"
    wait "$broker" || fail "a clean stop ended with $?"
    broker=
}
state() { (cd "$market" && find . -type f ! -name LOCK ! -name '*-lock' ! -name '*-shm' -size +0 -exec sha256sum {} + | sort -k 2); }
# The start ends with status 1, says each of the texts and both ways on, and leaves every byte as it was.
refused() {
    local before out status
    before=$(state)
    out=$(timeout 60 "$bin/bourse-broker" --dir "$market" 2>&1 </dev/null)
    status=$?
    [ $status -eq 1 ] || fail "expected status 1, got $status: $out"
    for text in "$@" "bourse-broker restore" "bourse-broker new --i-know-the-log-ends"; do
        has "$out" "$text"
    done
    [ "$(state)" = "$before" ] || fail "something was changed: was $before, is $(state); said: $out"
}
copy() {
    rm -rf "$market"
    cp -a "$work/whole" "$market"
}
origin() { sed -n 's/^origin: *"\(.*\)"/\1/p' "$market/market.yaml"; }
log_key() { sed -n 's/^log_key: *"\(.*\)"/\1/p' "$market/market.yaml"; }

mkdir -m 700 "$work/mine"
export BOURSE_KEY=$work/mine/owner.key
key=$("$bourse" key --key "$BOURSE_KEY" 2>"$work/key.log") || fail "the owner's key: $(cat "$work/key.log")"
first_folder() { # of a market that was never started
    rm -rf "$market"
    mkdir -m 700 "$market"
    cat >"$market/broker.yaml" <<END
workers: 1
genesis: {accounts: [{key: "$key", name: owner, roles: [operator, consumer], credits: "10"}]}
END
}
first_folder
start
old_origin=$(origin) old_key=$(log_key)
"$bourse" admin mint "$key" 0.01 >/dev/null || fail "a mint"
stop
grep -qx signed "$market/log.key" || fail "the log key does not say that it has signed: $(wc -c <"$market/log.key") bytes"
printf 'of an epoch that has begun\n' >"$market/epoch.secret" # it is there after the first results
[ -n "$(ls "$market/snapshots")" ] && [ -e "$market/history.db" ] && [ -e "$market/blobs/blobs.db" ] || fail "the market is not as it is expected"
mv "$market" "$work/whole"

# ---- the ledger and HEAD are gone
copy
rm "$market"/ledger.db* "$market/HEAD"
refused "there is no ledger in" "log.key" "snapshots" "epoch.secret" "blobs"
[ ! -e "$market/ledger.db" ] && [ ! -e "$market/HEAD" ] || fail "a new ledger was begun"
copy
(cd "$market" && find . -mindepth 1 ! -name '*.key' ! -name broker.yaml -delete)
refused "there is no ledger in" "log.key has signed"
[ ! -e "$market/ledger.db" ] || fail "a new ledger was begun"
copy
rm "$market"/ledger.db* "$market/HEAD"
: >"$market/ledger.db"
refused "there is no ledger in" "log.key has signed"
copy # a ledger whose first tables were in its WAL only, and one whose tables are empty
rm "$market"/ledger.db* "$market/HEAD"
sqlite3 "$market/ledger.db" "PRAGMA journal_mode = WAL; PRAGMA user_version = 0" >/dev/null
refused "log.key has signed"
copy
rm -f "$market"/ledger.db-* "$market/HEAD"
for table in $(sqlite3 "$market/ledger.db" "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"); do
    sqlite3 "$market/ledger.db" "DELETE FROM $table" || fail "sqlite3"
done
sqlite3 "$market/ledger.db" "INSERT INTO journal_base SELECT * FROM journal_base WHERE 0" || fail "sqlite3"
out=$("$bin/bourse-broker" --dir "$market" 2>&1 </dev/null) && fail "an emptied ledger was begun anew"

# ---- a key of before the mark: whatever else is left of the market speaks for it
for left in snapshots epoch.secret blobs history.db; do
    copy
    sed -i 1q "$market/log.key"
    [ -e "$market/$left" ] || fail "no $left in the market"
    (cd "$market" && find . -mindepth 1 ! -name '*.key' ! -name broker.yaml ! -path "./$left*" -delete)
    refused "there is no ledger in" "$left"
    [ ! -e "$market/ledger.db" ] || fail "a new ledger was begun"
done
copy
sed -i 1q "$market/log.key"
start
grep -qx signed "$market/log.key" || fail "an old key was not marked by its next start"
[ "$(log_key)" = "$old_key" ] || fail "another key"
stop

# ---- the log ends on purpose: another key, another origin, and nothing is deleted
ends() { "$bin/bourse-broker" new "$@" --dir "$market" 2>&1 </dev/null; }
copy
rm "$market"/ledger.db* "$market/HEAD"
before=$(state)
out=$(ends)
[ $? -eq 2 ] || fail "a log was ended without the option: $out"
has "$out" "--i-know-the-log-ends"
[ "$(state)" = "$before" ] || fail "something was changed without the option"
out=$(ends --i-know-the-log-ends) || fail "the log could not be ended: $out"
has "$out" "ended-1"
for name in log.key snapshots epoch.secret blobs history.db audit.key; do
    diff -r "$work/whole/$name" "$market/ended-1/$name" >/dev/null || fail "$name was not set aside"
done
! grep -q signed "$market/log.key" || fail "a new key that says that it has signed"
start
[ "$(log_key)" != "$old_key" ] && [ "$(origin)" != "$old_origin" ] || fail "the same key or origin: $(log_key) $(origin)"
grep -q signed "$market/log.key" || fail "the new key has no mark"
name=$(origin)
"$bourse" balance >/dev/null || fail "the new market serves nobody"
stop
"$bin/bourse-broker" audit "$market" >/dev/null || fail "audit of the new market"
# A market that starts is ended only by who gives its name.
[ -n "$name" ] || fail "the market has no name"
before=$(state)
out=$(ends --i-know-the-log-ends) && fail "a market that starts was ended without its name"
entries=$(sqlite3 -readonly "$market/ledger.db" "SELECT max(idx) FROM journal")
accounts=$(sqlite3 -readonly "$market/ledger.db" "SELECT count(*) FROM accounts")
for text in "holds a market that starts" "$name" "$entries entries" "$accounts account" "--end-market $name"; do
    has "$out" "$text"
done
out=$(ends --i-know-the-log-ends --end-market bourse.example/other) && fail "a market was ended by another name"
has "$out" "--end-market $name"
out=$(ends --end-market "$name")
[ $? -eq 2 ] || fail "a market was ended by its name alone: $out"
mv "$market/HEAD" "$work/head" # a restored market, which starts with --adopt-journal
out=$(ends --i-know-the-log-ends) && fail "a restored market was ended without its name"
has "$out" "--adopt-journal"
has "$out" "--end-market $name"
mv "$work/head" "$market/HEAD"
[ "$(state)" = "$before" ] || fail "a refusal changed something: was $before, is $(state)"
start
[ "$(origin)" = "$name" ] || fail "another market: $(origin)"
stop
out=$(ends --i-know-the-log-ends --end-market "$name") || fail "a market at rest could not be ended: $out"
[ -e "$market/ended-2/ledger.db" ] && [ -e "$market/ended-2/HEAD" ] || fail "the ledger was not set aside"
# An origin that the config names is not used again.
printf 'origin: bourse.example/main\n' >>"$market/broker.yaml"
start
[ "$(origin)" != bourse.example/main ] && has "$(origin)" bourse.example/main/
out=$(ends --i-know-the-log-ends) && fail "the log of a running broker was ended"
has "$out" LOCKED
stop
# A ledger that ends before HEAD starts no more: its market is lost, and needs no name.
cp "$market/HEAD" "$work/head"
sqlite3 "$market/ledger.db" "DELETE FROM journal WHERE idx = (SELECT max(idx) FROM journal)" || fail "sqlite3"
out=$(ends --i-know-the-log-ends) || fail "a lost market could not be ended: $out"
first_folder
out=$(ends --i-know-the-log-ends) && fail "a log that never was could be ended"
[ ! -e "$market/ended-1" ] && [ ! -e "$market/log.key" ] || fail "something was made"

# ---- a restored folder has its ledger, and a key that has signed
copy
"$bin/bourse-broker" backup "$market" "$work/backup" --with-keys >/dev/null 2>&1 || fail "backup"
"$bin/bourse-broker" restore "$work/backup" "$work/with" --head "$market/HEAD" >/dev/null 2>&1 || fail "restore with HEAD"
"$bin/bourse-broker" restore "$work/backup" "$work/without" >/dev/null 2>&1 || fail "restore without HEAD"
market=$work/with
start
stop
market=$work/without
out=$("$bin/bourse-broker" --dir "$market" 2>&1 </dev/null) && fail "a restored market without HEAD was served without a word"
has "$out" "--adopt-journal"
broker_options=(--adopt-journal)
start
broker_options=()
stop
[ "$(sed -n 1p "$market/log.key")" = "$(sed -n 1p "$work/whole/log.key")" ] || fail "another key"
market=$work/market

# ---- a first start that is killed at any write
if can_trace kills; then
    calls=write,pwrite64,fsync,fdatasync,ftruncate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir
    step=9
    [ "$long" = no ] || step=1
    killed=0
    for ((when = 1 + RANDOM % step; when < 2000; when += step)); do
        first_folder
        broker_start strace -D -f -qqq -o /dev/null -e "trace=$calls" -e "inject=$calls:signal=KILL:when=$when"
        if broker_await; then # later writes are not of the start
            broker_kill
            break
        fi
        wait "$broker" 2>/dev/null
        killed=$((killed + 1))
        start
        stop
    done
    [ $killed -ge 5 ] || fail "only $killed starts were killed"
    echo "$killed first starts were killed"
fi
echo ok
