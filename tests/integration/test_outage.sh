#!/usr/bin/env bash
# A broker is killed while a subtask runs, and starts again when the subtask has ended. The work that was done meanwhile is paid
# by what its agent signed, no more than that, and the audit agrees.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin outage "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"
query() { sqlite3 -readonly "$market/ledger.db" "$1"; }

market_up --credits 100 --slots 1 --programs sh,sleep,touch
until_true 60 offered 1 || fail "nothing is on offer"

printf 'name: four\nlimit: 60s\nbudget: 1\nrun: [sleep, "4"]\n' >four.yaml
"$bourse" submit -y four.yaml --quiet >id 2>log || fail "submit: $(cat log)"
until_true 60 runs_below "$agent" sleep || fail "the subtask does not run"
broker_kill
killed=$(now_ms)
is_over() { ! runs_below "$agent" sleep; }
until_true 60 is_over || fail "the subtask does not end without its broker"
down=$(($(now_ms) - killed))
[ "$down" -ge 1000 ] || skip "the subtask ended before its broker could be killed for a second"
broker_start
broker_await || fail "the broker does not start again: $(cat broker.log)"
"$bourse" wait "$(cat id)" --wait-at-most 60s >log 2>&1 || fail "the job does not end: $(cat log)"

[ "$(query 'SELECT status FROM results')" = 0 ] || fail "the result was not accepted: $(query 'SELECT outcome, status FROM results')"
paid=$(query 'SELECT paid_ns / 1000000 FROM results')
seen=$(query 'SELECT ((SELECT log_time_ns FROM results) - (SELECT log_time_ns FROM fills)) / 1000000')
[ "$paid" -ge 4000 ] || fail "only $paid ms of 4 s were paid; the log saw $seen ms, the broker was down for $down ms"
[ "$paid" -lt 10000 ] || fail "$paid ms were paid for 4 s"
[ "$seen" -lt "$paid" ] || fail "log time did not stand still: the log saw $seen ms"
grep -q 'no broker ran for [0-9]* ms' broker.log || fail "the log does not tell of the outage: $(cat broker.log)"
market_audit
echo "paid $paid ms of 4 s; the log saw $seen ms, and the broker was down for $down ms"
