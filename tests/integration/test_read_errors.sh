#!/bin/bash
# A read that fails once, at any place of a start, an audit, a replay, a backup or a restore: it is told as a read error, nobody is
# advised to restore or to remove anything because of it, nothing is changed, and the same command without the fault succeeds.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
store_begin read-errors "$1"
command -v sqlite3 >/dev/null || skip "no sqlite3"
command -v strace >/dev/null && strace -f -o /dev/null true 2>/dev/null || skip "strace cannot trace here"
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS} # one that is traced cannot look for leaks
set +e # every status is looked at
start() {
    : >"$work/broker.log"
    broker_start "$@"
    broker_await
}
stop() {
    kill -TERM "$broker"
    wait "$broker" || fail "a clean stop ended with $?"
    broker=
}
mkdir -m 700 "$work/mine"
export BOURSE_KEY=$work/mine/owner.key
key=$("$bourse" key --key "$BOURSE_KEY" 2>"$work/key.log") || fail "the owner's key"
mkdir -m 700 "$market"
cat >"$market/broker.yaml" <<END
workers: 1
genesis: {accounts: [{key: "$key", name: owner, roles: [operator, consumer], credits: "10"}]}
END
start || fail "the market could not be made"
for _ in 1 2 3; do "$bourse" admin mint "$key" 0.01 >/dev/null || fail "a mint"; done
cp -a "$market" "$work/killed" # with its WAL
cp -a "$market" "$work/killed2"
stop
rm -f "$work"/killed*/market.yaml "$work"/killed*/*.sock
"$bin/bourse-broker" backup "$market" "$work/backup" --with-keys >/dev/null 2>&1 || fail "a backup"

watch_files() { # FOLDER: sets `watched`
    watched=()
    while read -r name; do watched+=(-P "$name"); done < <(find "$1" -type f ! -name '*.lock' ! -name LOCK ! -name reserve)
    watched+=(-P "$1/ledger.db-wal" -P "$1/snapshots" -P "$1/blobs")
}
calls=read,pread64
under=() # the tracer
fault() { # NUMBER OF READ
    under=(strace -D -f -qqq -o "$work/traced" "${watched[@]}" -e "trace=$calls" -e "inject=$calls:error=EIO:when=$1")
}
met() { grep -q INJECTED "$work/traced"; } # the fault
# What was said is of a read error and gives no advice that loses anything.
honest() { # WHAT TEXT
    if grep -qiE 'damaged|restore the newest|restore it|move the folder|--adopt-journal|another history|is not a key|not what was written|differs|wal is' <<<"$2"; then
        fail "$1: $2"
    fi
    # A read failed: nothing was written, and no file is read-only.
    if grep -qE 'readonly|cannot be written|the database\.' <<<"$2"; then
        fail "$1: $2"
    fi
    grep -qE 'disk|Input/output error' <<<"$2" || fail "$1: no word of a read error: $2"
    ! grep -qE 'cannot be made durable|could not be written' <<<"$2" || return 0 # to fsync a folder, it is opened
    grep -qE '(ledger|blobs|history)\.db|journal-tail|HEAD|\.key|broker\.yaml|/blobs|/snapshots|state-[0-9]|epoch\.secret|ledger[:/ ]' <<<"$2" || fail "$1: no name of what was not read: $2"
    grep -q 'try again before you' <<<"$2" || fail "$1: no word of trying again: $2"
}
faults=0

step=7
[ "$long" = no ] || step=1

# A command over a folder that no broker serves. Its status is neither success nor a finding about the data.
sweep() { # STATUS OF A FINDING, FOLDER READ, COMMAND...
    local finding=$1 status out when
    watch_files "$2"
    shift 2
    for ((when = 1 + RANDOM % step; when < 5000; when += step)); do
        rm -rf "$work/new" "$work/new.partial"
        fault "$when"
        out=$("${under[@]}" timeout 120 "$@" 2>&1 </dev/null)
        status=$?
        met || break
        faults=$((faults + 1))
        [ $status -ne "$finding" ] || fail "read $when of $*: a finding: $out"
        [ $status -eq 0 ] || honest "read $when of $*" "$out"
    done
}
sweep 1 "$market" "$bin/bourse-audit" "$market"
sweep 7 "$market" "$bin/bourse-broker" replay --verify "$market"
step=$((step * 3))
sweep 7 "$market" "$bin/bourse-broker" backup "$market" "$work/new"
sweep 7 "$work/backup" "$bin/bourse-broker" restore "$work/backup" "$work/new" --head "$market/HEAD"
step=$((step / 3))

starts() { # FOLDER
    local market=$1 when status
    watch_files "$market"
    for ((when = 1 + RANDOM % step; when < 5000; when += step)); do
        fault "$when"
        if start "${under[@]}"; then # a fault that did not keep it from serving
            kill -TERM "$broker"
            wait "$broker"
            status=$?
            broker=
            # The fault may also come while the broker stops, as when the folder of HEAD is opened.
            [ $status -eq 0 ] || { [ $status -eq 1 ] && met; } || fail "$calls, $when: a stop ended with $status"
            [ $status -eq 0 ] || honest "$calls, $when of a stop" "$(cat "$work/broker.log")"
            met || break
            ! grep -qiE 'damaged|readonly' "$work/broker.log" || fail "$calls, $when of a start: $(cat "$work/broker.log")"
        else
            wait "$broker"
            status=$?
            [ $status -eq 1 ] || fail "$calls, $when of a start: status $status, $(cat "$work/broker.log")"
            honest "$calls, $when of a start" "$(cat "$work/broker.log")"
        fi
        faults=$((faults + 1))
    done
    start || fail "a start after the faults: $(cat "$work/broker.log")"
    stop
    "$bin/bourse-audit" "$market" >/dev/null || fail "an audit after the faults"
}
starts "$market"
starts "$work/killed"
# A history.db ahead of the ledger proves that entries are lost. No failed read of it lets the old ledger pass for whole.
cp -a "$market" "$work/old"
rm -f "$work/old/history.db"
sqlite3 "$work/old/history.db" 'CREATE TABLE mark (id INTEGER PRIMARY KEY, entry INTEGER NOT NULL); INSERT INTO mark VALUES (1, 99999)'
chmod 600 "$work/old/history.db"
looks=0
never_passes() { # COMMAND...
    local when out
    watched=(-P "$work/old/history.db")
    "$@" >"$work/never.log" 2>&1 && fail "$* passes without a fault: $(cat "$work/never.log")"
    for ((when = 1; when < 100; when++)); do
        fault "$when"
        out=$("${under[@]}" timeout 120 "$@" 2>&1 </dev/null) && fail "$* with read $when of history.db: $out"
        met || break
        looks=$((looks + 1))
        grep -q 'has seen record 99999' <<<"$out" || honest "read $when of history.db, $*" "$out"
        sqlite3 -readonly "$work/old/history.db" 'SELECT entry FROM mark' | grep -qx 99999 || fail "$* changed history.db"
    done
}
no_look_passes() {
    never_passes "$bin/bourse-broker" --dir "$work/old"
    never_passes "$bin/bourse-audit" "$work/old"
    never_passes "$bin/bourse-broker" replay --verify "$work/old"
}
no_look_passes
[ $looks -ge 6 ] || fail "only $looks reads of history.db failed"

# A file that cannot be opened or looked at is a failed read, too.
calls='openat,?open,?newfstatat,?stat,?lstat,?fstat,getdents64'
no_look_passes
starts "$work/killed2"
sweep 1 "$market" "$bin/bourse-audit" "$market"
sweep 7 "$market" "$bin/bourse-broker" replay --verify "$market"
step=$((step * 3))
sweep 7 "$market" "$bin/bourse-broker" backup "$market" "$work/new"
sweep 7 "$work/backup" "$bin/bourse-broker" restore "$work/backup" "$work/new" --head "$market/HEAD"
faults=$((faults + looks))

# A history.db that is damaged proves nothing: the audit says so, and does not fail.
printf 'xxxx' | dd of="$work/old/history.db" conv=notrunc status=none
"$bin/bourse-audit" "$work/old" --json >damaged.json 2>damaged.log || fail "an audit with a damaged history.db: $(cat damaged.log)"
has "$(cat damaged.log)" "warning: history.db is damaged"
has "$(cat damaged.json)" '"history_damaged":true'
"$bin/bourse-audit" "$market" --json >whole.json 2>whole.log || fail "an audit of the whole folder: $(cat whole.log)"
has "$(cat whole.json)" '"history_damaged":false'
[ $faults -ge 40 ] || fail "only $faults reads failed"
echo "$faults reads failed"
echo ok
