#!/usr/bin/env bash
# An account with more jobs than one answer of the broker lists: ps counts those that it leaves out and shows all on demand,
# a name and the first digits of an id find the oldest job, and cancel --all cancels every open one.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
store_begin many-jobs "$1" market-client
jobs=1007 page=1000 # of an answer

mkdir -m 700 "$market"
mkdir -m 700 mine
export BOURSE_KEY=$work/mine/owner.key
key=$("$bourse" key) || fail "key"
cat >"$market/broker.yaml" <<END
workers: 1
genesis: {accounts: [{key: "$key", name: owner, roles: [operator, consumer], credits: "10"}]}
END
broker_start
broker_await || fail "the broker does not start"

job() { # NAME: a job that waits, because nobody offers anything
    printf 'name: %s\nrun: [sleep, "1"]\nlimit: 10s\n' "$1" >"$1.yaml"
}
job eldest
job rest
"$bin/market-client" many "$market/market.yaml" "$BOURSE_KEY" eldest.yaml 1 >ids 2>client.log || fail "submit: $(cat client.log)"
"$bin/market-client" many "$market/market.yaml" "$BOURSE_KEY" rest.yaml $((jobs - 1)) >>ids 2>client.log ||
    fail "submit: $(cat client.log)"
eldest=$(head -n 1 ids)

# Nothing is hidden without a word, and a number shows all.
expect 0 '' "$bourse" ps -q
[ "$(wc -l <out)" -eq "$page" ] || fail "ps lists $(wc -l <out)"
grep -qx "bourse: $((jobs - page)) older jobs are not shown; \`--limit $jobs\` shows all" err || fail "ps says: $(cat err)"
! grep -q "$eldest" out || fail "the eldest is among the newest"
expect 0 "\"left_out\":$((jobs - page))[,}]" "$bourse" ps --json
expect 0 '' "$bourse" ps -q --limit "$jobs"
sort out >listed
sort ids | cmp - listed || fail "not each job once: $(wc -l <listed)"
[ ! -s err ] || fail "ps says: $(cat err)"
expect 0 "\"left_out\":$((jobs - 5))[,}]" "$bourse" ps --json --limit 5
# The filters look at all of them, and so do names.
expect 0 "$eldest" "$bourse" ps --name eldest -q
expect 0 "\"job\":\"$eldest\"" "$bourse" ps eldest --json
expect 0 "\"job\":\"$eldest\"" "$bourse" ps "${eldest:0:12}" --json
expect 0 "\"job\":\"$(tail -n 1 ids)\"" "$bourse" ps last --json

expect 0 '' "$bourse" cancel --all -y -q
[ "$(sort -u out | wc -l)" -eq "$jobs" ] || fail "cancelled: $(wc -l <out): $(cat err)"
expect 0 '"jobs":\[\],"left_out":0' "$bourse" ps --state open --json
echo "$jobs jobs were listed and cancelled: ok"
