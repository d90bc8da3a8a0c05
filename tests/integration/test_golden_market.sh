#!/usr/bin/env bash
# Markets that earlier releases left, under the rules of their time: this release's audit finds them right, counts what is in
# them, and finds a changed byte. tests/golden/record_market.sh made them.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
golden=$(dirname "$(realpath "$0")")/../golden
store_begin golden-market "$1" bourse-audit
for tool in xz tar sqlite3; do
    command -v "$tool" >/dev/null || skip "no $tool"
done

unpack() { # RULES
    rm -rf "$market"
    mkdir -m 700 "$market"
    tar -C "$market" --no-same-owner -xJf "$golden/market-$1.tar.xz" || fail "market-$1.tar.xz"
}
counts() { # NAME=NUMBER...: what the audit says of the market
    "$bin/bourse-broker" audit "$market" --json >audit.json 2>&1 || fail "audit: $(cat audit.json)"
    for one in "$@"; do
        [ "$(field "${one%=*}" audit.json)" = "${one#*=}" ] || fail "expected $one in: $(cat audit.json)"
    done
}
is_finding() { # WHAT was changed
    local status=0
    "$bin/bourse-broker" audit "$market" >audit.log 2>&1 || status=$?
    [ "$status" -eq 1 ] || fail "$1: the audit ends with $status: $(cat audit.log)"
}

is_sound_and_guarded() { # RULES NAME=NUMBER...
    unpack "$1"
    counts audit=ok head=ok rules="$1" "${@:2}"

    # One byte of every seventh entry of the journal, where the file has it.
    local entries=0
    while IFS=: read -r at _; do
        entries=$((entries + 1))
        [ $((entries % 7)) -eq 0 ] || continue
        flip "$market/ledger.db" $((at + 50))
        is_finding "byte $((at + 50)) of ledger.db"
        flip "$market/ledger.db" $((at + 50))
    done < <(grep -abo BJE1 "$market/ledger.db")
    [ "$entries" -ge 60 ] || fail "only $entries entries in ledger.db"
    counts audit=ok

    for change in "UPDATE results SET status = 1 WHERE entry = (SELECT MAX(entry) FROM results)" \
        "UPDATE results SET checked_by = hash WHERE status = 4" \
        "UPDATE balances SET available = available + 1 WHERE account = 3" \
        "UPDATE batches SET signature = zeroblob(64) WHERE log_index = (SELECT MAX(log_index) FROM batches)"; do
        sqlite3 "$market/ledger.db" "$change" || fail "$change"
        is_finding "$change"
        unpack "$1"
    done
    echo "a market of rules $1: $(field results audit.json) results, $(field checked audit.json) checked: ok"
}

is_sound_and_guarded 17 commands=79 signatures=71 accounts=6 jobs=11 fills=14 results=28 accepted=22 checked=6 \
    epochs=2 dice=19 charged_micro=74 held_micro=500000 acts=18
is_sound_and_guarded 18 commands=89 signatures=79 accounts=7 jobs=11 fills=14 results=29 accepted=22 checked=6 \
    epochs=2 dice=20 charged_micro=80 held_micro=500000 acts=20
is_sound_and_guarded 19 commands=91 signatures=81 accounts=7 jobs=11 fills=14 results=29 accepted=22 checked=6 \
    epochs=2 dice=22 charged_micro=87 held_micro=500000 acts=20
is_sound_and_guarded 20 commands=94 signatures=84 accounts=7 jobs=11 fills=14 results=29 accepted=22 checked=6 \
    epochs=2 dice=24 charged_micro=134 held_micro=500000 acts=20
is_sound_and_guarded 21 commands=101 signatures=85 accounts=7 jobs=11 fills=14 results=29 accepted=22 checked=6 \
    epochs=2 dice=24 charged_micro=115 held_micro=500000 acts=20
is_sound_and_guarded 22 commands=93 signatures=83 accounts=7 jobs=11 fills=14 results=29 accepted=22 checked=6 \
    epochs=2 dice=23 charged_micro=73 held_micro=500000 acts=20
