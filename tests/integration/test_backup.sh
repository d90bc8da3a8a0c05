#!/bin/bash
# Backup of a busy market and the way back: whole, of one moment, checked; never over something, never from the past unseen.
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
store_begin backup "$1" bourse-audit
make=$bin/../bench/restart
[ -x "$make" ] || skip "no $make"
command -v sqlite3 >/dev/null || skip "no sqlite3"
set +e # every status is looked at
start() { # DIR [OPTION ...]
    local market=$1
    shift
    broker_options=("$@")
    broker_start
    broker_options=()
    broker_await || fail "the broker ended"
}
stop() {
    kill -TERM "$broker"
    wait "$broker" || fail "a clean stop"
    broker=
}
under=() # what the program runs under
broker() { "${under[@]}" "$bin/bourse-broker" "$@" 2>&1; }
# Ends with status `$1` and says `$2`; the folder `$3` is not made.
refused() {
    local status=$1 text=$2 target=$3 out
    shift 3
    out=$(broker "$@")
    [ $? -eq "$status" ] || fail "expected status $status of $*: $out"
    has "$out" "$text"
    [ ! -e "$target" ] && [ ! -e "$target.partial" ] || fail "$target is there after: $*"
}

mkdir -m 700 "$market"
"$make" --make "$market" --subtasks 600 --results 8 || fail "the market could not be made"
printf '01%062d\n' 0 >"$work/owner" # the seed of the market's owner
(umask 077 && cp "$work/owner" "$market/owner.key")
export BOURSE_KEY=$market/owner.key
bourse() { "$bin/bourse" "$@" 2>&1; }
start "$market"
key=$(bourse key --quiet) || fail "the owner's key: $key"
job=$(bourse ps --json | sed -E 's/.*"job": *"([0-9a-f]+)".*/\1/' | head -n 1)
dd if=/dev/urandom of="$work/input" bs=1k count=200 status=none # larger than a row holds: a file of its own
printf 'name: blobs\neach: [%s]\nrun: ["true", "{in}"]\n' "$work/input" >"$work/job.yaml"
bourse submit "$work/job.yaml" -y --quiet --anyway --budget 1 >/dev/null || fail "a job with an input"

# ---- under load: cents are issued and counted while the backup is made
: >"$work/minted"
issue() {
    while [ ! -e "$work/enough" ]; do
        bourse admin mint "$key" 0.01 --timeout 60s >/dev/null && echo >>"$work/minted"
    done
}
issue &
load=$!
started+=("$load")
until [ "$(wc -l <"$work/minted")" -ge 3 ]; do sleep 0.02; done # the count is the event
cp "$market/HEAD" "$work/HEAD.before"
acknowledged=$(wc -l <"$work/minted")
out=$(broker backup "$market" "$work/backup" --json) || fail "backup: $out"
has "$out" '"backup":"ok"'
has "$out" '"blobs":true,"keys":false'
out=$(broker backup "$market" "$work/private/" --with-keys --without-blobs) || fail "backup with keys: $out"
has "$out" "without blobs, with keys"
entry=$(wc -l <"$work/minted") # two more from here on, so that everything above is old
until [ "$(wc -l <"$work/minted")" -ge $((entry + 2)) ]; do sleep 0.02; done
touch "$work/enough"
wait "$load"
bourse receipt "$job" 0 >"$work/receipt" || fail "a receipt: $(cat "$work/receipt")"
sed '1,/^$/d' "$work/receipt" >"$work/checkpoint.after"

[ "$(stat -c %a "$work/backup")" = 700 ] || fail "the backup is open to others"
for secret in HEAD broker.key log.key audit.key owner.key LOCK market.yaml; do
    [ -e "$work/backup/$secret" ] && fail "$secret is in the backup"
done
[ -e "$work/private/log.key" ] && [ -e "$work/private/audit.key" ] && [ ! -e "$work/private/HEAD" ] || fail "the keys were asked for, HEAD never is"

# ---- back: with the HEAD of before the backup it may be served at once, and nothing acknowledged is missing
out=$(broker restore "$work/backup" "$work/restored" --head "$work/HEAD.before") || fail "restore: $out"
has "$out" "audit: ok"
has "$out" "seconds old"
has "$out" "put broker.key, log.key and audit.key into"
cmp -s "$work/input" "$work/restored/blobs/"??/"$(sha256sum <"$work/input" | cut -d' ' -f1)" || fail "the input is not in the restored blobs"
cp "$market"/*.key "$work/restored/"
stop
start "$work/restored"
BOURSE_MARKET=$work/restored bourse balance --json >"$work/balance" || fail "balance: $(cat "$work/balance")"
BOURSE_MARKET=$work/restored bourse ps --json >"$work/ps"
grep -q "$job" "$work/ps" || fail "the job is not in the restored market"
charged=$(sed -E 's/.*"charged_micro": *([0-9]+).*/\1/' <<<"$(tr -d '\n' <"$work/ps" | grep -oE '"charged_micro": *[0-9]+' | sort -u | tail -n 1)")
available=$(sed -E 's/.*"available_micro": *(-?[0-9]+).*/\1/' <<<"$(tr -d '\n' <"$work/balance")")
held=$(sed -E 's/.*"held_micro": *([0-9]+).*/\1/' <<<"$(tr -d '\n' <"$work/balance")")
cents=$(((available + held + charged - 1000000000000) / 10000))
[ "$cents" -ge "$acknowledged" ] || fail "$cents cents were restored, $acknowledged had been acknowledged"
stop
broker audit "$work/restored" >/dev/null || fail "audit of the restored market"
out=$(broker acts "$work/restored") || fail "the audit log of the restored market: $out"
has "$out" "  restore"

# ---- without anything shown: its start wants to hear that the operator knows
out=$(broker restore "$work/private" "$work/blind") || fail "restore: $out"
has "$out" "nothing shows that this backup is the newest state"
has "$out" "there are no blobs"
out=$(broker --dir "$work/blind") && fail "a restored market was served without a word"
has "$out" "HEAD is missing"
has "$out" "--adopt-journal"
start "$work/blind" --adopt-journal
stop
out=$(broker acts "$work/blind") || fail "the audit log of the adopted market: $out"
has "$out" "  adopt-journal"

# ---- a copy is whole as far as HEAD has seen, needs nothing written beside it, and has the config that a link names
plain() { [ "$(od -An -tu1 -j 18 -N 2 "$1" | tr -d ' ')" = 11 ]; } # file format: 1 for no WAL, 2 for one
for file in ledger.db blobs/blobs.db; do
    plain "$work/backup/$file" || fail "$file of a backup cannot be read from a read-only medium"
    [ ! -e "$work/backup/$file-wal" ] && [ ! -e "$work/backup/$file-shm" ] || fail "a WAL beside $file of a backup"
done
cp -r "$work/restored" "$work/killed"
echo 'snapshot_every: 4096' >"$work/killed.yaml"
rm -f "$work/killed/broker.yaml"
ln -s "$work/killed.yaml" "$work/killed/broker.yaml"
start "$work/killed"
for _ in 1 2 3; do BOURSE_MARKET=$work/killed bourse admin mint "$key" 0.01 >/dev/null || fail "a mint"; done
broker_kill
broker=
cp -r "$work/killed" "$work/torn"
out=$(broker backup "$work/killed" "$work/of-killed") || fail "backup of a killed market: $out"
[ ! -L "$work/of-killed/broker.yaml" ] && cmp -s "$work/of-killed/broker.yaml" "$work/killed.yaml" || fail "the config is not in the backup"
[ "$(stat -c %s "$work/torn/ledger.db-wal")" -gt 8192 ] || fail "the killed market has no WAL"
flip "$work/torn/ledger.db-wal" 5000
refused 1 "but HEAD has seen" "$work/of-torn" backup "$work/torn" "$work/of-torn"
head -c 8192 /dev/zero | tr '\0' x >"$work/torn/ledger.db" # the side that failed is named
refused 1 "$work/torn/ledger.db: file is not a database" "$work/of-torn" backup "$work/torn" "$work/of-torn"

# ---- the past is not restored where somebody shows the present
refused 7 "HEAD has seen" "$work/past" restore "$work/backup" "$work/past" --head "$market/HEAD"
refused 7 "start once with --adopt-journal" "$work/past" restore "$work/backup" "$work/past" --head "$market/HEAD"
refused 7 "older than what people hold" "$work/past" restore "$work/backup" "$work/past" --checkpoint "$work/checkpoint.after"
refused 7 "older than what people hold" "$work/past" restore "$work/backup" "$work/past" --checkpoint "$work/receipt"
broker backup "$market" "$work/newest" >/dev/null || fail "backup of a market at rest"
broker restore "$work/newest" "$work/again" --head "$market/HEAD" --checkpoint "$work/checkpoint.after" >/dev/null ||
    fail "the newest backup was refused"
sed -i '3{s/^A/B/;t;s/^./A/}' "$work/checkpoint.after" # another root, whatever the root was
refused 7 "no checkpoint signed by" "$work/past" restore "$work/newest" "$work/past" --checkpoint "$work/checkpoint.after"

# ---- the audit log goes with HEAD as far as HEAD has seen it; what only HEAD has seen is counted, and said in the log
cp -a "$market" "$work/twin"
for dir in "$market" "$work/twin"; do # two records each, of different times
    start "$dir"
    stop
done
broker backup "$work/twin" "$work/of-twin" >/dev/null || fail "backup of the twin"
refused 7 "of the audit log is not the one that HEAD has seen" "$work/past" restore "$work/of-twin" "$work/past" --head "$market/HEAD"
out=$("$bin/bourse-broker" restore "$work/newest" "$work/short" --head "$market/HEAD" --json 2>"$work/said") ||
    fail "a backup whose audit log ends before HEAD was refused: $(cat "$work/said")"
has "$out" '"acts_lost":2}'
has "$(cat "$work/said")" "the audit log of this backup ends 2 records before HEAD"
out=$(broker acts "$work/short") || fail "the audit log that was kept: $out"
cp "$market"/*.key "$work/short/"
start "$work/short"
stop
out=$(broker acts "$work/short") || fail "the audit log after the restore: $out"
has "$out" "restore        2 records before this are lost"
broker audit "$work/short" >/dev/null || fail "audit of a market with a shorter audit log"
out=$(broker restore "$work/of-twin" "$work/whole" --head "$work/twin/HEAD" --json 2>/dev/null) || fail "restore with its own HEAD: $out"
has "$out" '"acts_lost":0}'
sqlite3 "$work/whole/ledger.db" 'DELETE FROM acts WHERE number = (SELECT max(number) FROM acts)' || fail "sqlite3"
cp "$market"/*.key "$work/whole/"
out=$(broker --dir "$work/whole") && fail "a restored market without the end of its audit log was served"
has "$out" "ends short of HEAD"

# ---- nothing is overwritten, nothing damaged is restored
mkdir "$work/full"
touch "$work/full/mine"
out=$(broker restore "$work/newest" "$work/full") && fail "a folder with something in it was restored into"
has "$out" "not empty"
out=$(broker backup "$market" "$work/full") && fail "a backup went into a folder with something in it"
has "$out" "not empty"
[ "$(ls "$work/full")" = mine ] || fail "the folder was touched"
mkdir "$work/empty"
broker backup "$market" "$work/empty" >/dev/null || fail "an empty folder was refused"
refused 1 "is it the folder of a market" "$work/past" backup "$work/full" "$work/past"
blob=$(ls "$work/empty/blobs/"??/* | head -n 1)
flip "$blob" 1000
refused 7 "blob $(basename "$blob") is missing or damaged" "$work/past" restore "$work/empty" "$work/past"
cp -r "$work/newest" "$work/damaged"
at=$(grep -abo BJE1 "$work/damaged/ledger.db" | sed -n '3s/:.*//p') # an entry of the journal
flip "$work/damaged/ledger.db" $((at + 100))
refused 7 "journal" "$work/past" restore "$work/damaged" "$work/past"
out=$(broker replay --verify "$work/damaged")
[ $? -eq 7 ] && grep -Eq "entry [0-9]+ differs from its replay" <<<"$out" || fail "replay of a damaged journal: $out"
head -c 40960 /dev/zero | tr '\0' x | dd of="$work/damaged/ledger.db" bs=4096 seek=3 conv=notrunc status=none
refused 7 "damaged" "$work/past" restore "$work/damaged" "$work/past"
head -c 8192 /dev/zero | tr '\0' x >"$work/damaged/ledger.db"
refused 7 "not a database" "$work/past" restore "$work/damaged" "$work/past"
cp -r "$work/newest" "$work/lacking"
rm "$(ls "$work/lacking/blobs/"??/* | head -n 1)"
refused 7 "missing or damaged" "$work/past" restore "$work/lacking" "$work/past"
out=$(broker restore "$work/lacking" "$work/no-blobs" --without-blobs) || fail "restore without blobs: $out"
[ ! -e "$work/no-blobs/blobs" ] || fail "blobs that were to be left out"
out=$(broker restore "$work/empty" "$work/fewer" --skip-damaged-blobs --json) || fail "restore without one blob: $out"
has "$out" '"blobs_damaged":1}'
[ ! -e "$work/fewer/${blob#"$work/empty/"}" ] || fail "a damaged blob was restored"
counts() { sqlite3 "$1/blobs/blobs.db" 'SELECT (SELECT count(*) FROM blob), (SELECT count(*) FROM owner), (SELECT sum(bytes) FROM usage)'; }
IFS='|' read -r rows owners bytes <<<"$(counts "$work/empty")"
[ "$(counts "$work/fewer")" = "$((rows - 1))|$((owners - 1))|$((bytes - $(stat -c %s "$blob")))" ] || fail "left out, but counted: $(counts "$work/fewer")"
cp -r "$work/empty" "$work/nameless"
sqlite3 "$work/nameless/blobs/blobs.db" "UPDATE blob SET hash = x'' WHERE hash = x'$(basename "$blob")'" || fail "sqlite3"
refused 7 "it names no blob" "$work/past" restore "$work/nameless" "$work/past"
out=$(broker restore "$work/nameless" "$work/named" --skip-damaged-blobs --json) || fail "restore without a row that names no blob: $out"
has "$out" '"blobs_damaged":1}'
[ "$(counts "$work/named")" = "$(counts "$work/fewer")" ] || fail "left out, but counted: $(counts "$work/named")"

# ---- not into the market itself, not from one; blobs that are lost do not hold up the ledger
refused 1 "would lie inside" "$market/inside" backup "$market" "$market/inside"
refused 1 "not a backup" "$work/past" restore "$market" "$work/past"
cp -r "$market" "$work/blobless"
rm -f "$work/blobless/blobs/"blobs.db-*
head -c 8192 /dev/zero | tr '\0' x >"$work/blobless/blobs/blobs.db"
out=$(broker --dir "$work/blobless") && fail "a damaged blobs.db was served"
has "$out" "The ledger is whole: move blobs.db and blobs.db-wal away"
mv "$work/blobless/blobs" "$work/blobs.lost"
start "$work/blobless"
stop

# ---- HEAD that is removed under a running broker: a backup says so, and the broker writes it anew
cp -r "$market" "$work/headless"
start "$work/headless"
rm "$work/headless/HEAD"
out=$(broker backup "$work/headless" "$work/of-headless") || fail "backup without HEAD: $out"
has "$out" "nothing shows that this copy is the newest state"
BOURSE_MARKET=$work/headless bourse admin mint "$key" 0.01 >/dev/null || fail "a mint without HEAD"
[ -e "$work/headless/HEAD" ] || fail "HEAD was not written anew"
grep -q "HEAD was removed while" "$work/broker.log" || fail "that HEAD was removed is not said"
mv "$work/headless/HEAD" "$work/headless/moved"
stop
# Another market's HEAD in its place is not overwritten: the broker ends, and keeps what it committed.
start "$work/headless"
mv "$work/headless/HEAD" "$work/headless/own"
cp "$work/headless/moved" "$work/headless/HEAD"
until gone "$broker"; do
    BOURSE_MARKET=$work/headless bourse admin mint "$key" 0.01 --timeout 5s >/dev/null && fail "a mint beside a HEAD that is another's"
done
wait "$broker" && fail "the broker goes on beside a HEAD that is another's"
broker=
grep -q "HEAD was replaced by another file" "$work/broker.log" || fail "that HEAD was replaced is not said"
cmp -s "$work/headless/moved" "$work/headless/HEAD" || fail "a HEAD that is another's was written over"
mv "$work/headless/own" "$work/headless/HEAD"
start "$work/headless"
stop

# ---- a backup says what no restore would take; damaged blobs are named, and what is whole is kept
cp -r "$market" "$work/tampered"
rm "$work/tampered/blobs/"??/"$(basename "$blob")"
out=$(broker backup "$work/tampered" "$work/of-lossy")
[ $? -eq 7 ] || fail "a lost blob was not said: $out"
has "$out" "blob $(basename "$blob") is missing or damaged"
has "$out" "--skip-damaged-blobs"
broker restore "$work/of-lossy" "$work/of-lossy.back" --skip-damaged-blobs >/dev/null || fail "what was whole is not restored"
sqlite3 "$work/tampered/ledger.db" 'UPDATE balances SET available = available + 1 WHERE account = 0' || fail "sqlite3"
refused 1 "this market cannot be restored" "$work/past" backup "$work/tampered" "$work/past"
broker backup "$work/tampered" "$work/hurry" --unchecked >/dev/null || fail "a backup in a hurry"
refused 7 "balance" "$work/past" restore "$work/hurry" "$work/past"
for slot in 0 1 2 3; do flip "$work/HEAD.before" $((512 * slot + 30)); done
refused 7 "none of its marks is whole" "$work/past" restore "$work/newest" "$work/past" --head "$work/HEAD.before"

# ---- what could not be done is no finding: the backup may be as good as ever
refused 1 "is not there, or empty" "$work/past" restore "$work/newest" "$work/past" --head "$work/no-such-file"
refused 1 "cannot be read" "$work/past" restore "$work/newest" "$work/past" --head "$work"
refused 1 "no-such-file" "$work/past" restore "$work/newest" "$work/past" --checkpoint "$work/no-such-file"
mkdir "$work/alone"
cp "$bin/bourse-broker" "$work/alone/"
whole=$bin bin=$work/alone
refused 1 "bourse-audit could not be run" "$work/past" restore "$work/newest" "$work/past"
bin=$whole
if can_trace failing-disk; then
    cannot() { # PATH INJECTION TEXT: of a file of the folder that is being made
        under=(env LSAN_OPTIONS=detect_leaks=0 strace -f -qq -o /dev/null -P "$work/past.partial/$1" -e "inject=$2")
        refused 1 "$3" "$work/past" restore "$work/newest" "$work/past" --head "$market/HEAD"
        under=()
    }
    cannot ledger.db pwrite64:error=ENOSPC "full"
    cannot ledger.db pwrite64:error=EIO "disk I/O error"
    cannot HEAD pwrite64:error=ENOSPC "No space left"
    cannot ledger.db pread64:error=EIO:when=40+ "disk"
    cannot "${blob#"$work/empty/"}" openat:error=EIO:when=2+ "cannot be read"
    broker restore "$work/newest" "$work/past" --head "$market/HEAD" >/dev/null || fail "the backup was as good as ever"
fi
echo ok
