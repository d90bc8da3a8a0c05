#!/usr/bin/env bash
# A cheap device with little room for files, beside one with enough: what would not fit there is not sent there, or, where
# nobody could know how much a task hands on, comes back unpaid and is done by the other. Nothing of it fails.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin room "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"

market_up --credits 100 --slots 1 --price 0.40
agent_join "$work/small" --name small <<<$'slots: 1\nmemory: 64MiB\ndisk: 24MiB'
sed -i 's/^price:.*/price: 0.01/' "$work/small/provider.yaml"
"$bin/bourse-provider" run --dir "$work/small" >agent-small.log 2>&1 &
started+=($!)
until_true 60 asked small || fail "small is not on offer: $(cat agent-small.log)"

head -c 30000000 /dev/zero >big.bin
cat >big.yaml <<'END'
files: big.bin
array: 1-8
budget: 1
run: [sh, -c, 'wc -c <big.bin']
END
"$bourse" quote --verbose big.yaml >quote.txt || fail "quote: $(cat quote.txt)"
has "$(cat quote.txt)" '0.40 x 1 slot'
! grep -q '0.01 x' quote.txt || fail "a device without room: $(cat quote.txt)"
timeout 120 "$bourse" submit big.yaml -y --wait >out 2>err || fail "large files: $(cat err)"
"$bourse" report last --json >report.json || fail "report"
! grep -q '"device":"small"' report.json || fail "a device without room: $(cat report.json)"
has "$("$bourse" logs last)" 30000000
"$bourse" explain big.yaml --json >explain.json || true
has "$(cat explain.json)" 'disk >= '

# It can be asked for, and little is sent there.
"$bourse" devices --needs 'disk >= 24MiB and disk < 25MiB' >devices.txt || fail "devices"
has "$(cat devices.txt)" small
timeout 120 "$bourse" run -y -- true 2>err || fail "little: $(cat err)"
"$bourse" ps last >ps.txt
has "$(cat ps.txt)" small

# What a task will hand on is known when it has: the small device gives that back, and is not paid for it.
cat >hand.yaml <<'END'
budget: 1
cap: 0.50
crash_limit: 4
tasks:
  - name: make
    needs: {disk: 40MB}
    run: [sh, -c, 'head -c 30000000 /dev/zero >made.bin']
    outputs: made.bin
  - name: take
    from: make/made.bin
    run: [sh, -c, 'wc -c <made.bin']
END
timeout 180 "$bourse" submit hand.yaml -y --wait >out 2>err || fail "handed on: $(cat err)"
"$bourse" report last --json >report.json || fail "report of tasks"
[ "$(field failed report.json)" -le 4 ] || fail "tries on the small device: $(cat report.json)"
has "$("$bourse" logs last/take)" 30000000

market_audit
echo "a device with little room is sent what fits: ok"
