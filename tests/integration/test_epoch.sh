#!/usr/bin/env bash
# Epochs of the dice with a real broker: each start begins one and shows the secret of the one before, also after a kill; a
# secret that was removed or damaged costs its dice and nothing else; the audit recomputes the others.
set -uo pipefail
bin=$(realpath "${1:?usage: test_epoch.sh BIN}")
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
export ASAN_OPTIONS=detect_leaks=0 # who is killed has no time to look
unset BOURSE_MARKET

fail() {
    echo "FAILED: $*" >&2
    cat "$work/broker.log" "$work/out" >&2
    exit 1
}

start() {
    rm -f "$market/market.yaml"
    "$bin/bourse-broker" --dir "$market" 2>>"$work/broker.log" &
    broker=$!
    for _ in $(seq 600); do
        [ ! -e "$market/market.yaml" ] || return 0
        kill -0 "$broker" 2>/dev/null || return 1
        sleep 0.05 # between two looks at a file; the file is the event
    done
    fail "the broker was not ready"
}

ended() { # SIGNAL
    kill "-$1" "$broker"
    wait "$broker" 2>/dev/null
    broker=
}

# epochs NUMBER SHOWN: so many began, and so many secrets were shown.
epochs() {
    "$bin/bourse-audit" "$market" --json >"$work/out" 2>&1 || fail "the audit finds something"
    grep -q "\"epochs\":$1[,}]" "$work/out" || fail "not $1 epochs"
    local shown
    shown=$(sqlite3 "$market/ledger.db" "SELECT count(*) FROM epochs WHERE secret <> zeroblob(32)")
    [ "$shown" = "$2" ] || fail "$shown secrets were shown, not $2"
}

key=$("$bin/bourse" key | grep -oE '[0-9a-f]{64}' | head -n 1)
mkdir -m 700 "$market"
cat >"$market/broker.yaml" <<END
genesis:
  accounts:
    - {key: "$key", name: ops, roles: [operator, consumer], credits: "100"}
END
start || fail "the broker did not start"
[ "$(stat -c %a "$market/epoch.secret")" = 600 ] || fail "the secret's file is not private"
epochs 1 0
ended KILL
start || fail "the broker did not start after a kill"
epochs 2 1
ended TERM
start || fail "the broker did not start after a stop"
epochs 3 2
ended TERM
rm "$market/epoch.secret"
start || fail "the broker did not start without its secret"
epochs 4 2
grep -q 'epoch.secret does not hold the secret of epoch 3' "$work/broker.log" || fail "no warning"
ended KILL
echo rubbish >"$market/epoch.secret"
start || fail "the broker did not start with a damaged secret"
epochs 5 2
ended TERM
start || fail "the broker did not start after a damaged secret"
epochs 6 3
ended TERM
"$bin/bourse-broker" replay --verify "$market" >"$work/out" 2>&1 || fail "its replay differs"
echo ok
