#!/bin/bash
# Damage to a market's files, one kind at a time: the start names file, table and row, changes nothing, and says what to do next;
# a disk that fails while it runs ends the broker at once, and nothing acknowledged is lost.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
store_begin storage-faults "$1"
make=$bin/../bench/restart
[ -x "$make" ] || skip "no $make"
command -v sqlite3 >/dev/null || skip "no sqlite3"
set +e # every status is looked at
start() { # on $dir; its log is of this start alone
    local market=$dir
    : >"$work/broker.log"
    broker_start
    broker_await || fail "the broker ended"
}
stop() {
    kill "-${1:-TERM}" "$broker"
    wait "$broker" 2>/dev/null
    local status=$?
    broker=
    return $status
}
state() { # every name, and every byte; an empty WAL and its index, which SQLite makes to read, are none
    (cd "$dir" && find . ! -name ledger.db-shm ! \( -name ledger.db-wal -size 0 \) | sort &&
        find . -type f ! -name ledger.db-shm -size +0 -exec sha256sum {} + | sort -k 2)
}
advice='nothing was changed. Restore the newest backup into a new folder: bourse-broker restore'
# The audit of $dir fails, as its start does. Status 3: there is no journal, or no reading it.
audit_refuses() {
    "$bin/bourse-audit" "$dir" >"$work/audit.out" 2>&1
    case $? in
    1 | 3) ;;
    *) fail "the audit takes what a start refuses ($*): $(cat "$work/audit.out")" ;;
    esac
}
# The start of $dir ends with status 1, says each of the texts given, and changes no name and no byte. The audit fails, too.
has_text() { case $1 in *"$2"*) ;; *) return 1 ;; esac; }
refusal= # what the last refused start said
refused() {
    local before out status
    audit_refuses "$@"
    before=$(state)
    out=$(timeout 60 "$bin/bourse-broker" --dir "$dir" 2>&1 </dev/null)
    status=$?
    [ $status -eq 1 ] || fail "expected status 1, got $status: $out"
    refusal=$out
    for text in "$@"; do
        has "$out" "$text"
    done
    [ "$(state)" = "$before" ] || fail "something was changed: was $before, is $(state); said: $out"
}
# A fresh copy of market `$1` to damage.
copy() {
    rm -rf "$work/copy"
    cp -a "$1" "$work/copy"
    rm -f "$work/copy/market.yaml" "$work/copy/LOCK"
    dir=$work/copy
}

whole=$work/whole
mkdir -m 700 "$whole"
echo 'snapshot_every: 40' >"$whole/broker.yaml"
"$make" --make "$whole" --subtasks 800 --results 8 || fail "the market could not be made"
printf '01%062d\n' 0 >"$work/owner" # the seed of the market's owner
(umask 077 && cp "$work/owner" "$whole/owner.key")
export BOURSE_KEY=$whole/owner.key
dir=$whole
start
key=$(BOURSE_MARKET=$whole "$bin/bourse" key) || fail "the owner's key"
mint() { BOURSE_MARKET=$dir "$bin/bourse" admin mint "$key" 0.01 --timeout "${1:-60s}" 2>&1; }
for _ in 1 2 3; do mint >/dev/null || fail "a mint"; done
cp -a "$whole" "$work/copy.killed" # with its WAL, as a kill leaves it: one reader's view of each file
stop || fail "a clean stop"

# ---- rows edited by hand: each is found at the start, and named
sql() { sqlite3 "$dir/ledger.db" "$1" || fail "sqlite3: $1"; }
edited() { # SQL TEXT ...
    copy "$whole"
    sql "$1"
    shift
    refused "$@" "$advice"
}
edited "UPDATE journal SET bytes = CAST(substr(bytes, 1, length(bytes) - 1) || x'7f' AS BLOB) WHERE idx = 50" "table journal, entry 50"
edited "DELETE FROM journal WHERE idx = 20" "table journal, entry 20"
edited "UPDATE journal SET chain = zeroblob(32) WHERE idx = 7" "table journal, entry 7"
edited "UPDATE accounts SET roles = roles | 32 WHERE number = 4" "table accounts, entry"
edited "UPDATE accounts SET name = 'mallory' WHERE number = 3" "table accounts, account 3"
edited "UPDATE transfers SET amount = amount + 1 WHERE entry = (SELECT max(entry) FROM transfers WHERE kind = 2)" "table transfers, entry"
edited "UPDATE transfers SET amount = amount + 1 WHERE entry = (SELECT min(entry) FROM transfers WHERE kind = 4)" "table balances, account"
edited "UPDATE transfers SET credit = 77777 WHERE kind = 4" "table transfers, entry"
edited "UPDATE balances SET available = available + 1000000 WHERE account = 4" "table balances, account 4"
edited "DELETE FROM balances WHERE account = 4" "table balances, account 4"
edited "UPDATE results SET charge = 0 WHERE entry = (SELECT max(entry) FROM results)" "table results, entry"
edited "UPDATE results SET bytes = x'00' WHERE entry = (SELECT max(entry) FROM results)" "table results, entry"
edited "DELETE FROM results WHERE entry = (SELECT min(entry) FROM results)" "a row was removed"
edited "UPDATE fills SET price = 1" "table fills, entry"
edited "UPDATE jobs SET budget = budget + 1" "table jobs, entry"
edited "UPDATE asks SET price = price + 1" "table asks, entry"
edited "UPDATE outcomes SET entry = entry + 1 WHERE idx = 5" "table outcomes"
edited "UPDATE batches SET leaves = zeroblob(length(leaves)) WHERE log_index = (SELECT min(log_index) FROM batches)" "table results, entry"
edited "UPDATE tree SET hash = zeroblob(32) WHERE level = 0 AND idx = 300" "table tree"
edited "UPDATE tree SET hash = zeroblob(32) WHERE level = 8 AND idx = 0" "table tree: node 0 of level 8"
edited "DELETE FROM tree WHERE level = 0 AND idx = 10" "table tree: leaf 10 is missing"
edited "UPDATE checkpoint SET note = replace(note, 'b', 'c')" "table checkpoint: it is not signed by the log's key"

# ---- pages and files
copy "$whole"
root=$(sqlite3 "$dir/ledger.db" "SELECT rootpage FROM sqlite_schema WHERE name = 'results'")
page=$(sqlite3 "$dir/ledger.db" "PRAGMA page_size")
dd if=/dev/zero of="$dir/ledger.db" bs="$page" seek=$((root - 1)) count=1 conv=notrunc status=none
refused "damaged" "results" "$advice"

copy "$whole"
at=$(grep -abo BJE1 "$dir/ledger.db" | sed -n '5s/:.*//p') # inside an entry: pages and tables look whole
flip "$dir/ledger.db" $((at + 100))
refused "table journal, entry" "its hash does not follow" "$advice"

copy "$whole"
truncate -s $(($(stat -c %s "$dir/ledger.db") / 2)) "$dir/ledger.db"
refused "damaged" "$advice"

copy "$whole"
: >"$dir/ledger.db"
refused "ledger.db is missing or empty beside HEAD" "$advice" "bourse-broker new --i-know-the-log-ends --dir DIR"

copy "$whole"
rm "$dir/ledger.db"
refused "ledger.db is missing or empty beside HEAD" "$advice" "bourse-broker new --i-know-the-log-ends --dir DIR"
[ ! -e "$dir/ledger.db" ] || fail "an empty ledger was made"

# ---- the WAL of a broker that was killed: whole, it is used; damaged or gone, HEAD knows better
wal=$work/copy.killed
[ "$(stat -c %s "$wal/ledger.db-wal")" -gt 8192 ] || fail "the killed market has no WAL"
copy "$wal"
flip "$dir/ledger.db-wal" 5000 # in an early frame: SQLite drops it and all after it, without a word
refused "but HEAD has seen" "WAL is damaged or missing" "$advice"
copy "$wal"
rm "$dir/ledger.db-wal" "$dir/ledger.db-shm"
refused "but HEAD has seen" "WAL is damaged or missing" "$advice"
for slot in 0 1 2 3; do # with a damaged HEAD, too: the loss of the last frame alone is noticed
    copy "$wal"
    flip "$dir/HEAD" $((512 * slot + 30))
    truncate -s -4120 "$dir/ledger.db-wal"
    refused "but HEAD has seen" "1 of its copies of a mark is damaged" "$advice"
    ! has_text "$refusal" "written anew" || fail "HEAD is said to be written anew by a start that was refused: $refusal"
done
copy "$wal"
start
stop || fail "a clean stop after a kill"
copy "$wal"
flip "$dir/HEAD" 1000
"$bin/bourse-audit" --json "$dir" >audit.json 2>audit.err || fail "a damaged copy is a finding: $(cat audit.json)"
has "$(cat audit.err)" "bourse-audit: warning: HEAD: 1 of its copies of a mark is damaged"
[ "$(field head_damaged audit.json)" = 1 ] || fail "the audit does not count the damaged copy: $(cat audit.json)"
out=$("$bin/bourse-broker" replay --verify "$dir" 2>&1) || fail "a replay beside a damaged copy: $out"
has "$out" "HEAD: 1 of its copies of a mark is damaged"
out=$("$bin/bourse-broker" backup "$dir" "$work/of-damaged" 2>&1) || fail "a backup beside a damaged copy: $out"
has "$out" "HEAD: 1 of its copies of a mark is damaged"
out=$("$bin/bourse-broker" restore "$work/of-damaged" "$work/of-damaged-back" --head "$dir/HEAD" 2>&1) || fail "a restore: $out"
has "$out" "HEAD: 1 of its copies of a mark is damaged"
start
has "$(cat "$work/broker.log")" "1 of its copies of a mark is damaged"
has "$(cat "$work/broker.log")" "its 1 damaged copy of a mark has been written anew"
"$bin/bourse-audit" --json "$dir" >audit.json 2>audit.err || fail "the audit of a mended HEAD: $(cat audit.json)"
[ "$(field head_damaged audit.json)" = 0 ] || fail "the damaged copy was not written anew when the start said so: $(cat audit.json)"
stop || fail "a clean stop with a damaged copy of a mark"
start
! grep -q "of a mark" "$work/broker.log" || fail "the damaged copy was not written anew"
stop || fail "a clean stop"
copy "$wal" # a HEAD of before, with two slots
truncate -s 1024 "$dir/HEAD"
start
! grep -q "of a mark" "$work/broker.log" || fail "a HEAD of two slots is called damaged"
stop || fail "a clean stop"
[ "$(stat -c %s "$dir/HEAD")" -eq 2048 ] || fail "the copies were not made"

copy "$wal"
rm "$dir/ledger.db" # SQLite would delete the WAL of an empty ledger
refused "ledger.db is missing or empty beside HEAD" "$advice" "bourse-broker new --i-know-the-log-ends --dir DIR"

# ---- a market younger than its first checkpoint: all but the first page is in the WAL
young=$work/young
mkdir -m 700 "$young"
printf 'genesis:\n  accounts:\n    - {key: "%s", name: operator, roles: [operator, consumer], credits: "10"}\n' "$key" >"$young/broker.yaml"
dir=$young
start
mint >/dev/null || fail "a mint"
stop KILL
copy "$young"
flip "$dir/ledger.db-wal" 156 # in the first frame
refused "the ledger has no tables: its WAL is damaged or missing" "$advice"
copy "$young"
start
stop || fail "a clean stop of a young market"

# ---- HEAD
copy "$whole"
rm "$dir/HEAD"
refused "HEAD is missing beside a journal" "--adopt-journal"
copy "$whole"
for slot in 0 1 2 3; do flip "$dir/HEAD" $((512 * slot + 30)); done
refused "HEAD is damaged: none of its marks is whole; nothing was changed" "restore B NEWDIR" "--adopt-journal"
rm "$dir/ledger.db"
refused "HEAD is damaged"
[ ! -e "$dir/ledger.db" ] || fail "an empty ledger was made beside a damaged HEAD"
# An adoption is in the audit log, whatever ends the start that made it.
adopted() {
    out=$("$bin/bourse-broker" acts "$dir") || fail "the audit log of an adopted market: $out"
    has "$out" "  adopt-journal"
}
copy "$whole"
rm "$dir/HEAD"
cp "$dir/broker.yaml" "$work/broker.yaml"
printf 'listen: tcp://192.0.2.1:4770\nblob_listen: tcp://192.0.2.1:4771\n' >>"$dir/broker.yaml" # nobody's address
out=$("$bin/bourse-broker" --dir "$dir" --adopt-journal 2>&1) && fail "a port of another machine was opened"
has "$out" "192.0.2.1"
cp "$work/broker.yaml" "$dir/broker.yaml"
start
stop || fail "a clean stop"
adopted
copy "$whole"
start
mint >/dev/null || fail "a mint"
stop || fail "a clean stop"
cp "$whole/ledger.db" "$dir/ledger.db" # an old backup, put back beside a newer HEAD
refused "an old backup was restored" "$advice"

# ---- keys, rights, a second broker
copy "$whole"
rm "$dir/audit.key"
refused "audit.key is missing beside ledger.db"
[ ! -e "$dir/audit.key" ] || fail "another audit.key was made"
copy "$whole"
rm "$dir/broker.key"
refused "broker.key is missing beside ledger.db"
copy "$whole"
cp "$dir/log.key" "$dir/broker.key"
refused "not the key that this market's members know"
copy "$whole"
start
out=$("$bin/bourse-broker" --dir "$dir" 2>&1) && fail "a second broker started"
has "$out" "LOCKED: another broker is running on $dir; stop it first"
stop || fail "a clean stop"
if [ "$(id -u)" -ne 0 ] || ! id nobody >/dev/null 2>&1 || ! command -v setpriv >/dev/null; then
    left_out unwritable-folder "needs root, the user nobody and setpriv"
else
    copy "$whole"
    chown -R nobody "$dir"
    chmod 755 "$work"
    chmod 500 "$dir"
    out=$(setpriv --reuid nobody --clear-groups "$bin/bourse-broker" --dir "$dir" 2>&1) && fail "an unwritable folder was served"
    has "$out" "$dir: Permission denied: the broker's user must be able to write here"
    chmod 700 "$dir"
fi

copy "$whole"
cp "$dir/broker.key" "$dir/log.key"
refused "log.key is not the key of this market's log"
copy "$whole"
rm "$dir/log.key"
refused "log.key is missing beside ledger.db"
copy "$whole"
cp "$dir/log.key" "$dir/audit.key"
refused "audit.key is not the key"
copy "$whole"
echo nothing >"$dir/audit.key"
refused "audit.key is not a key file"
copy "$whole"
head -c 8192 /dev/urandom >"$dir/blobs/blobs.db"
rm -f "$dir"/blobs/blobs.db-*
audit_refuses "blobs.db"
has "$(cat "$work/audit.out")" "blobs.db"

# ---- a refused start leaves the folder as it was: no LOCK, no snapshots/, the market.yaml of a killed broker under its name
copy "$whole"
rm -r "$dir/HEAD" "$dir/snapshots"
echo 'of a killed broker' >"$dir/market.yaml"
refused "HEAD is missing beside a journal"
copy "$whole"
sql "UPDATE balances SET available = available + 1000000 WHERE account = 4"
echo 'of a killed broker' >"$dir/market.yaml"
refused "table balances, account 4"
mkdir -m 700 "$work/fresh"
dir=$work/fresh
touch "$dir/broker.yaml"
refused "a new market needs an operator"
out=$("$bin/bourse-broker" new --dir "$dir" --i-know-the-log-ends 2>&1) && fail "a log ended where there is none"
has "$out" "holds no market whose log could end"
[ "$(ls -A "$dir")" = broker.yaml ] || fail "left by refused starts: $(ls -A "$dir")"

# ---- files of blobs that are gone while blobs.db names them: the start counts them
copy "$whole"
for byte in 0a ff; do
    hash=$byte$(printf '%062d' 0)
    sqlite3 "$dir/blobs/blobs.db" "INSERT INTO blob (hash, size, bytes) VALUES (x'$hash', 9, NULL)" || fail "sqlite3: blobs.db"
    mkdir -m 700 "$dir/blobs/$byte"
    echo 12345678 >"$dir/blobs/$byte/$hash"
done
start
! grep -q "blobs/blobs.db names" "$work/broker.log" || fail "files that are there are said to be gone"
stop || fail "a clean stop"
rm -r "$dir/blobs/ff"
start
has "$(cat "$work/broker.log")" "blobs/blobs.db names 2 files, and 1 of them is gone (1 of the folders in blobs/ are not there)"
stop || fail "a clean stop"

# ---- snapshots: a bad one costs time, never truth
copy "$whole"
newest=$(ls "$dir"/snapshots/* | tail -n 1)
oldest=$(ls "$dir"/snapshots/* | head -n 1)
[ "$newest" != "$oldest" ] || fail "two snapshots are needed"
flip "$newest" 2000
start
has "$(cat "$work/broker.log")" "passed over a damaged snapshot: $newest"
has "$(cat "$work/broker.log")" "where a snapshot was"
stop || fail "a clean stop"
copy "$whole"
for snapshot in "$dir"/snapshots/*; do flip "$snapshot" 2000; done
start
has "$(cat "$work/broker.log")" "entries of the journal after entry 0"
stop || fail "a clean stop"
"$bin/bourse-broker" replay --verify "$dir" >/dev/null 2>&1 || fail "replay after all snapshots were damaged"
other=$work/other # another history, with a snapshot at an entry that the first has too
mkdir -m 700 "$other"
echo 'snapshot_every: 40' >"$other/broker.yaml"
"$make" --make "$other" --subtasks 800 --results 8 || fail "the other market could not be made"
copy "$whole"
rm "$dir"/snapshots/*
cp "$other"/snapshots/* "$dir/snapshots/"
start
has "$(cat "$work/broker.log")" "passed over a snapshot of another history"
stop || fail "a clean stop"
"$bin/bourse-broker" replay --verify "$dir" >/dev/null 2>&1 || fail "replay beside snapshots of another history"

# A snapshot of the same market that is newer than an old ledger and its old HEAD proves that entries are lost.
copy "$whole"
start
for _ in 1 2 3; do mint >/dev/null || fail "a mint"; done
stop || fail "a clean stop"
newest=$(ls "$dir"/snapshots/* | tail -n 1)
cp "$whole/ledger.db" "$whole/HEAD" "$dir/"
rm -f "$dir"/ledger.db-*
refused "$newest is of entry " " the journal ends at entry " "entries are lost" "nothing was changed" "--adopt-journal"
[ -e "$newest" ] || fail "the proof was removed"
has "$(cat "$work/audit.out")" "table snapshots"
has "$(cat "$work/audit.out")" "$(basename "$newest") is of entry "
out=$("$bin/bourse-broker" replay --verify "$dir" 2>&1) && fail "a replay beside a snapshot that is newer: $out"
has "$out" "$(basename "$newest") is of entry "
! grep -q "passed over" <<<"$out" || fail "a replay says two things about one snapshot: $out"
# A damaged one proves the same, as long as its name, its head and its market agree.
copy_of_old=$dir
rm -rf "$work/old"
cp -a "$copy_of_old" "$work/old"
dir=$work/old
rm -f "$dir/LOCK"
newest_old=$dir/snapshots/$(basename "$newest")
flip "$newest_old" 2000
refused "$newest_old is damaged, and of entry " "entries are lost" "nothing was changed"
has "$(cat "$work/audit.out")" "$(basename "$newest") is damaged, and of entry "
# Of one whose head is damaged, too, only the name is left: start and audit warn, and name it.
truncate -s 50 "$newest_old"
"$bin/bourse-audit" --json "$dir" >audit.json 2>audit.err || fail "a name alone is a finding: $(cat audit.json)"
has "$(cat audit.err)" "bourse-audit: warning: $(basename "$newest") is damaged. Its name says command "
[ "$(field snapshots_doubtful audit.json)" = 1 ] || fail "the audit does not count the snapshot: $(cat audit.json)"
start
has "$(cat "$work/broker.log")" "$newest_old is damaged, and its name is of command "
has "$(cat "$work/broker.log")" "later entries are lost"
stop || fail "a clean stop beside a damaged newer snapshot"
dir=$copy_of_old
rm "$dir/HEAD" # believed on purpose, as after a restore: the snapshots are no more in the way, whatever ends that start
refused "--adopt-journal"
broker_options=(--adopt-journal)
start
broker_options=()
stop KILL
[ ! -e "$newest" ] && [ -e "$newest.before-adoption" ] || fail "the snapshot of what was given up is still there, or gone"
start
mint >/dev/null || fail "a mint"
stop || fail "a clean stop after an adoption"
# A snapshots folder that is copied beside a restored ledger, which ends where the snapshot does: it is used.
"$bin/bourse-broker" backup "$dir" "$work/of-adopted" --with-keys >/dev/null 2>&1 || fail "a backup"
rm -rf "$work/back"
"$bin/bourse-broker" restore "$work/of-adopted" "$work/back" --head "$dir/HEAD" >/dev/null 2>&1 || fail "a restore"
cp -a "$dir/snapshots" "$work/back/"
dir=$work/back
start
has "$(cat "$work/broker.log")" "where a snapshot was"
stop || fail "a clean stop of a restored market"
# That of another market says nothing, however new it is.
copy "$whole"
dir=$other
start
for _ in 1 2 3 4; do mint >/dev/null || fail "a mint"; done
stop || fail "a clean stop"
rm "$work/copy"/snapshots/*
cp "$other"/snapshots/* "$work/copy/snapshots/"
dir=$work/copy
start
has "$(cat "$work/broker.log")" "passed over a snapshot of another history"
stop || fail "a clean stop"

# ---- a snapshot of this market that follows another history: both histories were signed, and neither may go on unseen
dir=$work/fork
cp -a "$whole" "$dir"
rm -f "$dir/LOCK"
start
mint >/dev/null || fail "a mint"
stop || fail "a clean stop of the fork"
fork=$(ls "$dir"/snapshots/* | tail -n 1)
copy "$whole"
start
for _ in 1 2 3 4 5 6; do mint >/dev/null || fail "a mint"; done
stop || fail "a clean stop"
rm -rf "$work/longer"
cp -a "$dir" "$work/longer"
[ "$(ls "$dir"/snapshots/* | tail -n 1 | xargs basename)" != "$(basename "$fork")" ] || fail "the histories are of one length"
forked() { # the start refuses the fork beside the ledger of $dir; audit and replay fail likewise
    refused "snapshots/$(basename "$fork") is of this market and of entry " "the journal has another entry " \
        "two histories were signed" "nothing was changed" "--checkpoint" "move the snapshot out of"
    has "$(cat "$work/audit.out")" "table snapshots"
    has "$(cat "$work/audit.out")" "$(basename "$fork") follows another entry "
    out=$("$bin/bourse-broker" replay --verify "$dir" 2>&1) && fail "a replay beside a fork: $out"
    has "$out" "two histories were signed"
}
cp "$fork" "$dir/snapshots/" # below a newer snapshot, with which the start would go on
forked
find "$dir/snapshots" -type f ! -name "$(basename "$fork")" -delete
forked
mkdir "$work/aside" # the operator knows which history counts
mv "$dir/snapshots/$(basename "$fork")" "$work/aside/"
start
stop || fail "a clean stop after the fork was moved away"
copy "$work/longer"
cp "$fork" "$dir/snapshots/"
flip "$dir/snapshots/$(basename "$fork")" 30 # its chain hash may be what is damaged: no evidence
start
stop || fail "a clean stop beside a damaged fork"
copy "$work/longer"
cp "$fork" "$dir/snapshots/"
rm "$dir/HEAD"
broker_options=(--adopt-journal)
start
broker_options=()
stop || fail "a clean stop after an adoption beside a fork"
[ -e "$dir/snapshots/$(basename "$fork").before-adoption" ] || fail "the fork was not set aside: $(ls "$dir/snapshots")"

# ---- history.db counts results that the ledger lacks: entries are lost, although ledger.db, HEAD and snapshots/ agree
later() { # $dir has a history.db that goes 27 records beyond the last result of its ledger
    last=$(sqlite3 "$dir/ledger.db" "SELECT max(entry) FROM results")
    sqlite3 "$dir/history.db" "INSERT OR REPLACE INTO mark VALUES (1, $last + 27)" || fail "sqlite3: history.db"
}
copy "$whole"
later
refused "history.db has seen record $((last + 27)), and the last result of the ledger is record $last" "entries are lost" \
    "nothing was changed" "restore the newest backup" "--adopt-journal" "move it away"
has "$(cat "$work/audit.out")" "history.db"
has "$(cat "$work/audit.out")" "entries are lost"
out=$("$bin/bourse-broker" replay --verify "$dir" 2>&1) && fail "a replay beside a later history.db: $out"
has "$out" "history.db has seen record $((last + 27))"
mv "$dir/history.db" "$work/aside/"
start
stop || fail "a clean stop after history.db was moved away"
copy "$whole"
later
rm "$dir/HEAD"
broker_options=(--adopt-journal)
start
broker_options=()
stop || fail "a clean stop after an adoption"
[ "$(sqlite3 "$dir/history.db.before-adoption" "SELECT entry FROM mark")" = $((last + 27)) ] || fail "history.db was not set aside"
[ "$(sqlite3 "$dir/history.db" "SELECT count(*) FROM mark WHERE entry > $last")" = 0 ] || fail "history.db was not made anew"

# ---- a disk that fails while the broker runs
if can_trace failing-disk; then
    acknowledged() { sqlite3 "$dir/ledger.db" "SELECT count(*) FROM transfers WHERE kind = 2"; }
    for when in 1 2 3; do # an adoption with a new key, killed at each of the syncs of its first writes
        copy "$whole"
        rm "$dir/HEAD" "$dir/audit.key"
        { strace -f -o /dev/null -e trace=fdatasync -e "inject=fdatasync:signal=KILL:when=$when" \
            "$bin/bourse-broker" --dir "$dir" --adopt-journal; } >/dev/null 2>&1
        [ $? -eq 137 ] || fail "sync $when did not kill the start"
        [ -s "$dir/HEAD" ] || broker_options=(--adopt-journal)
        start
        broker_options=()
        stop || fail "a clean stop after a killed adoption"
        adopted
    done
    broken() { # TEXT INJECTION: the disk fails under a running broker
        copy "$whole"
        start
        local before out
        before=$(acknowledged)
        strace -f -o /dev/null -p "$broker" -e "inject=$2" 2>"$work/strace" &
        local tracer=$!
        for _ in $(seq 1200); do
            grep -q attached "$work/strace" && break
            sleep 0.05 # between two looks at what strace says
        done
        until gone "$broker"; do # a mint that comes late meets no disk
            out=$(mint 3s) && fail "a mint was acknowledged although the disk failed ($2)"
        done
        wait "$broker"
        [ $? -ne 0 ] || fail "the broker ended as if all were well ($2)"
        broker=
        wait "$tracer" 2>/dev/null
        has "$(cat "$work/broker.log")" "$1"
        has "$(cat "$work/broker.log")" "stopped"
        start # without the injection: no repair by hand
        [ "$(acknowledged)" -ge "$before" ] || fail "an acknowledged mint was lost ($2)"
        mint >/dev/null || fail "a mint after the disk came back"
        stop || fail "a clean stop"
    }
    broken "could not be committed: the disk failed" "fsync,fdatasync:error=EIO"
    broken "could not be committed: the disk failed" "pwrite64:error=EIO"
    # A quota that is used up is a full disk: nothing ends, and room is all it takes.
    copy "$whole"
    start
    strace -f -o /dev/null -p "$broker" -e trace=pwrite64 -e inject=pwrite64:error=EDQUOT 2>"$work/strace" &
    tracer=$!
    for _ in $(seq 1200); do
        grep -q attached "$work/strace" && break
        sleep 0.05 # between two looks at what strace says
    done
    until grep -q "the disk is full" "$work/broker.log"; do
        out=$(mint 2s) && fail "a mint was acknowledged beyond the quota"
    done
    has "$(cat "$work/broker.log")" "the disk is full"
    kill "$tracer"
    wait "$tracer" 2>/dev/null
    for _ in $(seq 600); do
        out=$(mint) && break
        has "$out" "free disk space"
        sleep 0.1 # the broker looks at the disk once a second
    done
    has "$(cat "$work/broker.log")" "there is room on the disk again"
    stop || fail "a clean stop after a quota was met"
    copy "$whole"
    out=$(LSAN_OPTIONS=detect_leaks=0 strace -f -o /dev/null -e inject=pread64:error=EIO:when=20+ \
        "$bin/bourse-broker" --dir "$dir" 2>&1) && fail "a start on a disk that cannot be read"
    has "$out" "disk"
fi
echo ok
