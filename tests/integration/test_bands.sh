#!/usr/bin/env bash
# Bands by the command line, against a real market: who sets them, what is refused and how it is said, what the book and explain tell,
# that they hold after a restart, and that the audit and a replay follow.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
fire_begin bands "$1"
market_up --credits 50 # with an ask at 0.10
expect 0 '^price band 0.00 to 1000.00$' "$bourse" admin bands
expect 2 'negative|below zero' "$bourse" admin bands --least -1
expect 2 'none. lifts' "$bourse" admin bands --notional 0
expect 2 'undo.*--least, --most or --notional' "$bourse" admin bands --undo
expect 2 'reason: of what change' "$bourse" admin bands --reason 'calm down'
expect 2 'most: 0 would let in nothing' "$bourse" admin bands --most 0
expect 2 'no invitation gives the role operator' "$bourse" admin invite --role operator
expect 4 'PRICE: least: 5.00 credits, above the most of 2.00: give a least up to the most' "$bourse" admin bands --least 5 --most 2
! grep -q 'cap\|value' err || fail "the advice is about bids: $(cat err)"
# Nobody freezes an operator, and what is not frozen stays so.
expect 4 'STATE: account: an account with the role operator cannot be frozen' "$bourse" admin freeze owner
expect 0 '' "$bourse" admin freeze owner --undo
expect 0 '^price band 0.00 to 0.05$' "$bourse" admin bands --most 0.05 --reason 'calm down'
expect 0 '"least_micro":0,"most_micro":50000,"notional_micro":0' "$bourse" admin bands --json

# The ask stands, above what any order may pay now.
expect 0 ' 0.10 ' "$bourse" book
grep -qx 'price band 0.00 to 0.05' out || fail "the book does not say the band: $(cat out)"
expect 0 '"bands":\{"least_micro":0,"most_micro":50000,"notional_micro":0\}' "$bourse" book --json
printf 'budget: 5\ncap: 0.10\nrun: ["true"]\n' >job.yaml
expect 5 'would be refused with PRICE: .* the nearest within is 0.05' "$bourse" explain job.yaml
expect 4 'PRICE: cap: 0.10 credits, limit 0.05: .*bourse book' "$bourse" submit -y job.yaml
printf 'budget: 5\ncap: 0.05\nrun: ["true"]\n' >job.yaml
expect 5 "the one on offer asks more than the market's price band lets an order pay, 0.05" "$bourse" explain job.yaml
expect 0 '.' "$bourse" submit -y -q job.yaml
job=$(tail -n 1 out)
expect 0 "more than the market's price band lets an order pay, 0.05" "$bourse" explain "$job"
expect 4 'PRICE: price: 0.10 credits, limit 0.05' "$bourse" order replace "$job" --cap 0.10

# Without a cap the order pays no more than the band allows, and the quote says so; and what it pays where there is no price to go by.
expect 0 '^price band 0.00 to 0.12$' "$bourse" admin bands --most 0.12
printf 'run: ["true"]\n' >plain.yaml
expect 0 "price +the lowest that gets the slots, at most 0.12 credits per slot-hour .the market's price band" "$bourse" quote --verbose plain.yaml
expect 0 'done' "$bourse" run -y -- true
expect 0 '^price band 0.00 to 0.07$' "$bourse" admin bands --most 0.07
expect 5 'on offer now +nothing within the market.s price band, 0.00 to 0.07$' "$bourse" quote --verbose plain.yaml
expect 0 '^price band 0.20 to 2.00$' "$bourse" admin bands --least 0.20 --most 2
expect 0 'price +the lowest that gets the slots, at most [0-9.]+ credits per slot-hour' "$bourse" quote --verbose plain.yaml
printf 'budget: 1\nneeds: {region: xx}\nexpect: 10s\nterm: 1h\nslots: 2\nrun: ["true"]\n' >far.yaml
expect 5 'price +the lowest that gets the slots, at most 0.50 credits per slot-hour .what the budget allows' "$bourse" quote --verbose far.yaml
expect 0 '.' "$bourse" submit -y -q --anyway far.yaml
far=$(tail -n 1 out)
expect 0 '"price_micro":500000' "$bourse" order list --json
expect 0 '.' "$bourse" cancel "$far"
sed -i 's/budget: 1/budget: 10/' far.yaml
expect 5 '"rests_at_micro":2000000' "$bourse" quote far.yaml --json
expect 0 '^price band 0.00 to 0.05$' "$bourse" admin bands --least 0 --most 0.05

# Who may neither halt nor freeze sets none.
expect 0 '^bourse-invite-1' "$bourse" admin invite --name ada
invitation=$(cat out)
expect 0 '.' env -u BOURSE_MARKET XDG_CONFIG_HOME="$work/ada" "$bourse" join "$invitation" --name ada
expect 4 'ROLE' env -u BOURSE_MARKET XDG_CONFIG_HOME="$work/ada" "$bourse" admin bands --most 7
expect 0 '^price band 0.00 to 0.05$' env -u BOURSE_MARKET XDG_CONFIG_HOME="$work/ada" "$bourse" admin bands
expect 0 '^bourse-invite-1' "$bourse" admin invite --role risk --name rita
invitation=$(cat out)
expect 0 '.' env -u BOURSE_MARKET XDG_CONFIG_HOME="$work/rita" "$bourse" join "$invitation" --name rita
expect 0 '^price band 0.01 to 1.00, one order comes to 0.01 at most$' \
    env -u BOURSE_MARKET XDG_CONFIG_HOME="$work/rita" "$bourse" admin bands --least 0.01 --most 1 --notional 0.01

# A slot for twenty minutes, the term, at 0.10 is more than that; lifted, it runs.
expect 4 'NOTIONAL: notional: 0.033334 credits, limit 0.01' "$bourse" order replace "$job" --cap 0.10
expect 0 '^price band 0.01 to 1.00$' "$bourse" admin bands --notional none
expect 0 '.' "$bourse" order replace "$job" --cap 0.10
expect_soon 0 'done' "$bourse" ps "$job"

# Who follows the book hears of the bands in force, and when they change; nothing else does.
"$bourse" book --follow >follow.txt 2>err &
started+=("$!")
until_true 60 grep -q 'price band 0.01 to 1.00$' follow.txt || fail "who follows the book is not told the band: $(cat follow.txt err)"
"$bourse" book --follow --json >follow.json 2>err &
started+=("$!")
until_true 60 grep -q '"bands":{"least_micro":10000,"most_micro":1000000,"notional_micro":0}' follow.json || fail "likewise in JSON: $(cat follow.json err)"
expect 0 '.' "$bourse" admin bands --notional 3
until_true 60 grep -q 'price band 0.01 to 1.00, one order comes to 3.00 at most$' follow.txt || fail "nor of others: $(cat follow.txt)"
until_true 60 grep -q '"bands":{"least_micro":10000,"most_micro":1000000,"notional_micro":3000000}' follow.json || fail "likewise: $(cat follow.json)"
[ "$(grep -c 'price band' follow.txt)" = 2 ] || fail "bands are told again: $(cat follow.txt)"
expect 0 '^price band 0.01 to 1.00$' "$bourse" admin bands --notional none

# After a restart they are the same.
expect 0 '' "$bourse" down
market_up
expect 0 '^price band 0.01 to 1.00$' "$bourse" admin bands
expect 4 'PRICE: cap: 1.01 credits, limit 1.00' "$bourse" run -y --cap 1.01 --budget 5 -- true

# An agent whose price is above the band says so at the terminal, each way that an owner looks, and offers once the band is lifted.
expect 0 '^price band 0.01 to 0.05$' "$bourse" admin bands --most 0.05
expect 0 '' "$bourse" down
"$bourse" up --detach --dir "$market" --wait 5m >up.log 2>&1 &
up=$!
told() { grep -q 'no device is on offer yet: the broker refused the ask: PRICE: price: 0.10 credits, limit 0.05: ' up.log; }
until_true 120 told || fail "up does not say why nothing is on offer: $(cat up.log)"
expect 0 '^price band 0.01 to 0.05, one order comes to 0.01 at most$' "$bourse" admin bands --notional 0.01
expect_soon 0 'refused, and tried again: PRICE: price: 0.10 credits, limit 0.05: ' "$bin/bourse-provider" status --dir "$market/provider"
expect 0 'an ask is refused, and tried again: PRICE: price: 0.10 credits, limit 0.05: ' "$bin/bourse-provider" why --dir "$market/provider"
expect 0 '"refusal":"PRICE: price: ' "$bin/bourse-provider" status --json --dir "$market/provider"
expect 0 '"refused_asks":\[\{"device":"[0-9a-f]{32}","refusal":"PRICE: price: 0.10 credits, limit 0.05: ' "$bin/bourse-provider" why --json --dir "$market/provider"
expect 0 '^price band 0.01 to 1.00, one order comes to 0.01 at most$' "$bourse" admin bands --most 1
expect_soon 0 'refused, and tried again: NOTIONAL: notional: .* credits, limit 0.01: ' "$bin/bourse-provider" status --dir "$market/provider"
expect 0 '^price band 0.01 to 1.00$' "$bourse" admin bands --notional none
wait "$up" || fail "up does not go on: $(cat up.log)"
expect 0 'offering|asks stand' "$bin/bourse-provider" status --dir "$market/provider"
grep -q "refused, and tried" out && fail "status tells of a refusal that is over: $(cat out)"

expect 0 '' "$bourse" down
broker='' agent=''
expect 0 'bands +[0-9]+ rita  least 0.01, most 1.00, notional 0.01' "$bin/bourse-broker" acts market
grep -q 'bands .*most 0.05: calm down' out || fail "the audit log has no reason: $(cat out)"
expect 0 'audit: ok' "$bin/bourse-broker" audit market
expect 0 'replay ok' "$bin/bourse-broker" replay --verify market
echo ok
