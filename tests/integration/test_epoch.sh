#!/usr/bin/env bash
# Epochs of the dice with a real broker: the first results after each start begin one and show the secret of the one before,
# also after a kill; a start alone begins none; a secret that was removed or damaged costs its dice and nothing else; the
# audit recomputes the others.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin epoch "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"

one_job() { "$bourse" submit one.yaml -y --anyway --wait >run.log 2>&1 || fail "a job: $(cat run.log)"; }
again() { # SIGNAL [COMMAND...]: the broker ends and, after the command, starts anew
    kill "-$1" "$broker"
    ended "$broker" 60 || fail "the broker does not end"
    shift
    "$@"
    broker_start
    broker_await || fail "the broker does not come back"
}
# epochs NUMBER SHOWN: so many began, and so many secrets were shown.
epochs() {
    local seen
    "$bin/bourse-audit" "$market" --json >audit.json 2>&1 || fail "audit: $(cat audit.json)"
    [ "$(number epochs audit.json)" = "$1" ] || fail "not $1 epochs: $(cat audit.json)"
    seen=$(sqlite3 -readonly "$market/ledger.db" "SELECT count(*) FROM epochs WHERE secret <> zeroblob(32)")
    [ "$seen" = "$2" ] || fail "$seen secrets were shown, not $2"
}

printf 'name: one\nexecutor: noop\narray: 1-20\nexpect: 1ms\nretries: 10\nbudget: 1.00\n' >one.yaml
market_up --credits 100 --slots 1
secret=$market/epoch.secret
epochs 0 0
one_job
[ "$(stat -c %a "$secret")" = 600 ] || fail "the secret's file is not private"
epochs 1 0
[ "$(number dice audit.json)" = 0 ] || fail "dice of an epoch that did not end were recomputed"
one_job
again KILL
epochs 1 0
one_job
epochs 2 1
[ "$(number dice audit.json)" -ge 2 ] || fail "no dice were recomputed"
again TERM rm "$secret"
one_job
epochs 3 1
grep -q 'the secret of epoch 2 is lost' "$work/broker.log" || fail "nobody is told of a lost secret"
again KILL cp one.yaml "$secret"
grep -q 'epoch.secret is not the file' "$work/broker.log" || fail "nobody is told of a damaged secret"
one_job
epochs 4 1
again TERM
one_job
epochs 5 2
market_audit
echo "5 epochs over kills, stops and lost secrets, audited: ok"
