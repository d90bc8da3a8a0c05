#!/usr/bin/env bash
# The audit log with a real broker (P26): an accepted mint, freeze, halt or invitation is in it although the broker is
# killed right after the answer; refusals of members are, counted; an edit, a removal, another order and a cut end are
# named by `bourse-broker acts`, and a cut end by the broker's start.
set -uo pipefail
bin=$(realpath "${1:?usage: test_acts.sh BIN}")
command -v sqlite3 >/dev/null || { echo "skipped: no sqlite3"; exit 77; }
work=$(mktemp -d)
broker=
cleanup() {
    [ -z "$broker" ] || kill -9 "$broker" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
market=$work/market
export HOME=$work XDG_CONFIG_HOME=$work/config BOURSE_KEY=$work/operator.key
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS} # who is killed has no time to look
unset BOURSE_MARKET

fail() {
    echo "FAILED: $*" >&2
    cat "$work/broker.log" "$work/out" >&2
    exit 1
}

start() {
    rm -f "$market/market.yaml"
    "$bin/bourse-broker" --dir "$market" "$@" 2>>"$work/broker.log" &
    broker=$!
    for _ in $(seq 1200); do
        [ ! -e "$market/market.yaml" ] || return 0
        kill -0 "$broker" 2>/dev/null || return 1
        sleep 0.05 # between two looks at a file; the file is the event
    done
    fail "the broker was not ready"
}

killed() {
    kill -9 "$broker"
    wait "$broker" 2>/dev/null
    broker=
}

# acts FOLDER [OPTION...]: what it prints is in $work/out.
acts() { "$bin/bourse-broker" acts "$@" >"$work/out" 2>&1; }
# shows WORDS: the log is whole, and one of its lines has them.
shows() {
    acts "$market" || fail "the audit log is wrong"
    grep -qE "$1" "$work/out" || fail "no record like \"$1\""
}

key=$("$bin/bourse" key | grep -oE '[0-9a-f]{64}' | head -n 1)
mkdir -m 700 "$market"
cat >"$market/broker.yaml" <<END
genesis:
  accounts:
    - {key: "$key", name: ops, roles: [operator, consumer], credits: "100"}
END
start || fail "the broker did not start"
export BOURSE_MARKET=$work/known.yaml
cp "$market/market.yaml" "$BOURSE_MARKET"
"$bin/bourse" admin invite --role consumer --name mara >"$work/invitation" 2>/dev/null || fail "invite"
BOURSE_MARKET='' BOURSE_KEY=$work/mara.key "$bin/bourse" join "$(cat "$work/invitation")" \
    --market "$work/mara.yaml" >"$work/out" 2>&1 || fail "join"
mara=$(BOURSE_KEY=$work/mara.key "$bin/bourse" key | grep -oE '[0-9a-f]{64}' | head -n 1)

# Killed as soon as the answer is here, eight times.
done_then_killed() { # WORDS COMMAND...
    local words=$1
    shift
    "$bin/bourse" admin "$@" >/dev/null 2>"$work/out" || fail "admin $*"
    killed
    shows "$words"
    start || fail "the broker did not start again"
}
done_then_killed "mint .* 3 ops  1.500000 credits  key ${mara:0:16}  for the course" mint "$mara" 1.5 --reason "for the course"
done_then_killed "mint .* 3 ops  0.500000 credits  key ${mara:0:16}  an older word" mint "$mara" 0.5 --note "an older word"
# An option that the act would drop without a word is refused.
refused_option() { # WORDS COMMAND...
    local words=$1
    shift
    "$bin/bourse" admin "$@" >"$work/out" 2>&1
    [ $? -eq 2 ] || fail "admin $* is not refused"
    grep -q -- "$words" "$work/out" || fail "admin $* does not say \"$words\""
}
refused_option "admin invite has no --reason" invite --reason "she asked"
refused_option "admin mint has no --undo" mint "$mara" 1 --undo
refused_option "admin accounts has no --name" accounts --name mara
refused_option "give one" mint "$mara" 1 --reason a --note b
done_then_killed "freeze .* 3 ops  key ${mara:0:16}  she floods" freeze "$mara" --reason "she floods"
done_then_killed "halt .* 3 ops  maintenance" halt --reason maintenance
done_then_killed "freeze .* key ${mara:0:16}  undone" freeze "$mara" --undo
done_then_killed "halt .* undone" halt --undo
done_then_killed "bands .* 3 ops  least 0.50, most 3.00, notional 9.00: calm" bands --least 0.50 --most 3 --notional 9 --reason calm
done_then_killed "bands .* 3 ops  notional 0.00" bands --notional none
"$bin/bourse" admin bands >"$work/out" 2>&1 || fail "bands"
grep -qx 'price band 0.50 to 3.00' "$work/out" || fail "the bands did not survive"
done_then_killed "invite .* 3 ops .* eve" invite --role provider --name eve
[ "$(grep -c ' start ' "$work/out")" -ge 6 ] || fail "not every start is in the log"

# Refused, mara is named with a count: one record at once, and whatever she does in a minute is one more.
for _ in $(seq 12); do
    BOURSE_KEY=$work/mara.key "$bin/bourse" admin halt >/dev/null 2>&1 && fail "mara may halt the market"
done
counted() {
    acts "$market" && awk '/ refusal .* 4 mara .* ROLE halt/ { for (i = 1; i <= NF; i++) if ($i == "x") sum += $(i - 1) }
        END { exit sum < 1 }' "$work/out"
}
for _ in $(seq 1200); do ! counted || break; sleep 0.05; done # the committer writes within a second
counted || fail "the refusals are not in the log"
killed
counted || fail "the refusals did not survive"
[ "$(grep -c ' refusal .* 4 mara .* ROLE' "$work/out")" -le 2 ] || fail "a flood of refusals is a flood of records"

# A clean stop writes what is left to count, and itself.
start || fail "the broker did not start again"
BOURSE_KEY=$work/mara.key "$bin/bourse" admin mint "$mara" 1 >/dev/null 2>&1
kill -TERM "$broker"
wait "$broker" || fail "a clean stop"
broker=
shows ' stop '
grep -B1 ' stop ' "$work/out" | grep -q 'mara .* ROLE mint' || fail "the last refusal is not before the stop"
"$bin/bourse-broker" audit "$market" >"$work/out" 2>&1 || fail "audit"

# The file in the folder is as good a name as the folder.
for what in acts audit "replay --verify"; do
    # shellcheck disable=SC2086 # one word or two
    "$bin/bourse-broker" $what "$market" >"$work/of-folder" 2>&1 || fail "$what of the folder"
    # shellcheck disable=SC2086
    "$bin/bourse-broker" $what "$market/ledger.db" >"$work/out" 2>&1 || fail "$what of the file"
    cmp -s "$work/of-folder" "$work/out" || fail "$what says other things of DIR/ledger.db than of DIR"
done
"$bin/bourse-broker" acts "$market/broker.yaml" >"$work/out" 2>&1 && fail "acts of a file that is no ledger"

# What a freeze or halt was is held against what was signed.
for edit in "name = 'halted'" "state = 1" "owner = zeroblob(32)"; do
    rm -rf "$work/copy"
    cp -a "$market" "$work/copy"
    sqlite3 "$work/copy/ledger.db" "UPDATE flags SET $edit WHERE name = 'resumed'" || fail "sqlite3: $edit"
    "$bin/bourse-broker" audit "$work/copy" >"$work/out" 2>&1 && fail "not found by the audit: flags SET $edit"
    grep -q 'flags' "$work/out" || fail "the audit does not name the table: $(cat "$work/out")"
done

# Bands, too: a market in which one was changed has other orders.
rm -rf "$work/copy"
cp -a "$market" "$work/copy"
sqlite3 "$work/copy/ledger.db" "DELETE FROM flags WHERE name = 'bands' AND entry = (SELECT min(entry) FROM flags WHERE name = 'bands')"
"$bin/bourse-broker" audit "$work/copy" >"$work/out" 2>&1 && fail "not found by the audit: bands that no row tells of"

# Tampered with, in copies.
last=$(sqlite3 "$market/ledger.db" 'SELECT max(number) FROM acts')
tampered() { # SQL NUMBER WORDS
    rm -rf "$work/copy"
    cp -a "$market" "$work/copy"
    sqlite3 "$work/copy/ledger.db" "$1" || fail "sqlite3: $1"
    acts "$work/copy" && fail "not found: $1"
    grep -qE "table acts, entry $2: .*$3" "$work/out" || fail "expected record $2, \"$3\", of: $1"
    acts "$work/copy" --json && fail "not found with --json: $1"
    grep -q '"audit":"finding"' "$work/out" || fail "no finding in JSON of: $1"
    "$bin/bourse-broker" audit "$work/copy" >"$work/out" 2>&1 && fail "not found by the audit: $1"
}
tampered 'DELETE FROM acts WHERE number = 4' 4 missing
tampered "UPDATE acts SET bytes = CAST(substr(bytes, 1, length(bytes) - 1) || '?' AS BLOB) WHERE number = 5" 5 changed
tampered 'UPDATE acts SET number = -4 WHERE number = 4; UPDATE acts SET number = 4 WHERE number = 5;
    UPDATE acts SET number = 5 WHERE number = -4' 4 changed
tampered "DELETE FROM acts WHERE number >= $((last - 1))" $((last - 1)) "HEAD has seen record $last"
"$bin/bourse-broker" --dir "$work/copy" 2>"$work/out" && fail "a broker started on a cut audit log"
grep -q "audit log .* ends short of HEAD: record $last" "$work/out" || fail "the start does not say what is cut"

# Without HEAD it needs to be told, and that is an act of its own.
rm "$market/HEAD"
start && fail "a start without HEAD"
start --adopt-journal || fail "adopt"
killed
shows ' adopt-journal'

# Who reads it shares no code with who wrote it.
for symbol in act_log_append exchange_step ledger_store_append; do
    nm "$bin/bourse-audit" | grep -q " $symbol\$" && fail "bourse-audit links $symbol"
done
echo ok
