#!/usr/bin/env bash
# What the market tells a provider: `why` names what keeps work away, and when that is changed work comes; `earnings` adds
# up to what the ledger paid.
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin owner-market "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"

provider=$bin/bourse-provider
folder=$market/provider
own() { # STATUS PATTERN COMMAND OPTION...: of the agent of `bourse up`
    local want=$1 pattern=$2 command=$3
    shift 3
    expect "$want" "$pattern" "$provider" "$command" --market "$market" "$@"
}
says() { grep -qE -- "$1" out || fail "it does not say '$1': $(cat out err)"; }
submit() { # NAME LINES...: prints the id
    printf 'name: %s\nlimit: 20s\nbudget: 0.50\n' "$1" >"$1.yaml"
    printf '%s\n' "${@:2}" >>"$1.yaml"
    "$bourse" submit "$1.yaml" -y --anyway --quiet 2>submit.log || fail "submit: $(cat submit.log)"
}
job_is() { "$bourse" ps "$1" --json --timeout 5s >ps.json 2>/dev/null && grep -qE -- "$2" ps.json; }
must_end() { until_true 60 job_is "$1" '"state":"done"' || fail "job $1 is not done: $(cat ps.json)"; }
again() { # the agent, with one line of its config changed
    own 0 'drained' drain
    sed -i "/^${1%%:*}:/d" "$folder/provider.yaml"
    echo "$1" >>"$folder/provider.yaml"
    ended "$agent" 60 || fail "the agent is still there after drain"
    "$provider" run --market "$market" >>agent.log 2>&1 &
    agent=$!
}

mkdir -m 700 nobody
expect 2 'is of no market yet: .*join' "$provider" why --dir nobody
expect 2 'is of no market yet' "$provider" earnings --dir nobody
expect 2 '"7" has no unit' "$provider" earnings --since 7 --dir nobody
expect 2 'why has no --since' "$provider" why --since 7d

market_up --credits 100 --slots 1 --programs sh,true
until_true 60 offered 1 || fail "nothing on offer"
own 0 'market +no job waits for a device' why
says 'agent +the agent runs, and its asks stand'
says 'price +0.10 per slot-hour; nobody else asks'
says 'device .*, 1 slot, 0 leased'
printf 'run: [sh]\nat_most: 1\n' >one.yaml
expect 0 'on offer now +1 slot, ' "$bourse" plan one.yaml
says 'at most 1 slot at a time'
says 'x 1 slot of 1 provider$'
printf 'run: [sh]\nneeds: {memory: 900TiB}\n' >large.yaml
expect 5 '0 of 1 device fits; 1 fails on memory' "$bourse" explain large.yaml

# ---------------------------------------------------------------- an account that is frozen

"$bourse" admin accounts --json >accounts.json 2>/dev/null || fail "accounts"
key=$(grep -oE '\{[^{}]*"provider"[^{}]*\}' accounts.json | grep -oE '[0-9a-f]{64}' | head -n 1)
"$bourse" admin freeze "$key" --reason test >freeze.log 2>&1 || fail "freeze: $(cat freeze.log)"
# On a busy machine the agent may take the broker for silent, and is connected again a moment later.
frozen() { own 0 'the operator froze this account' why && grep -qE "$1" out; }
until_true 60 frozen 'agent +the agent runs; the operator froze its account, and no ask of it stands' ||
    fail "why does not say that the agent of a frozen account runs: $(cat out err)"
! grep -q 'its asks stand' out || fail "asks of a frozen account stand: $(cat out)"
own 4 'the operator froze this account; no ask of it stands.*the operator froze it: "test"' pause
own 0 '"state":"paused"' status --json
own 4 'the operator froze this account; no ask of it stands' resume
own 0 'state +the operator froze this account' status
says 'reason +account: the operator froze it: "test". Ask the operator to end the freeze.'
own 0 '"frozen_text":"account: the operator froze it' status --json
"$bourse" admin freeze "$key" --undo >freeze.log 2>&1 || fail "freeze --undo: $(cat freeze.log)"
until_true 60 offered 1 || fail "nothing on offer after the freeze"

# ---------------------------------------------------------------- a predicate, and the change that it names

job=$(submit stamp 'run: [date]')
own 0 'none of 1 waiting bid takes this device; 1 asks for program = "date"' why
says 'refusing +1 bid at up to .*: program = "date"'
own 0 '"predicate":"program = \\"date\\"","changes":1,"bids":1' why --json
again 'programs: [sh, "true", date]'
must_end "$job"

job=$(submit large 'run: [sh]' 'needs: "memory >= 900GiB"')
own 0 '1 asks for memory >= 900.0 GiB \(this device: [0-9.]+ [KMG]iB\)' why
"$bourse" cancel "$job" >/dev/null 2>&1 || fail "cancel"

# ---------------------------------------------------------------- a price, and the price that it names

job=$(submit cheap 'run: ["true"]' 'cap: 0.01')
own 0 'none pays 0.10; at 0.01 per slot-hour the ask is filled now' why
says 'bids +1 waits; 1 fits this device, 1 of those in its term, 0 of those at its price'
agent_join "$work/rival" </dev/null
sed -i 's/^price:.*/price: 0.05/' "$work/rival/provider.yaml"
mine=$agent
agent_start "$work/rival"
rival=$agent
agent=$mine
started+=("$rival")
rival_shows() { "$provider" why --market "$market" >out 2>err && grep -qE '1 of 1 other is cheaper, .*rival at 0.05' out; }
until_true 60 rival_shows || fail "why does not see who is cheaper: $(cat out err)"
# An order for all slots at once starts with a term of each, at the dearest price that it needs: 10 leases of 20 minutes at 0.10.
printf 'name: whole\narray: 1-10\norder: all-or-none\nrun: [sh, -c, "true"]\n' >whole.yaml
"$bourse" quote whole.yaml --json >whole.json 2>err || true
suggested=$(grep -oE '"suggested_micro": *[0-9]+' whole.json | grep -oE '[0-9]+')
[ "${suggested:-0}" -ge 333340 ] || fail "the budget for ten slots at once is $suggested micro: $(cat whole.json err)"
kill "$rival"
ended "$rival" 60 || fail "the rival does not end"
again 'price: 0.01'
must_end "$job"

# ---------------------------------------------------------------- what is its owner's or the operator's doing

own 0 'paused until' pause
own 0 'agent +the agent is paused: .*resume' why
says 'offers no device now: its agent is paused'
own 0 '' resume
"$bourse" admin halt --reason test >/dev/null 2>&1 || fail "halt"
own 0 'the operator halted the market' why
own 0 'the operator halted the market ..test..: nothing is matched' status
own 0 '"halted": *true' status --json
"$bourse" admin halt --undo >/dev/null 2>&1 || fail "the market does not open"
until_true 60 offered 1 || fail "nothing on offer after the halt"

# ---------------------------------------------------------------- an ask that is placed by hand

mkdir -m 700 "$work/hand" # a key is used by the user whose folder it is in
install -m 600 "$folder/provider.key" "$work/hand/key"
by_hand() { # STATUS PATTERN OPTION...: `bourse order place` with the provider's key
    local want=$1 pattern=$2
    shift 2
    expect "$want" "$pattern" "$bourse" order place "$@" --key "$work/hand/key"
}
device=$("$bourse" devices --quiet) || fail "devices"
status_says() { "$provider" status --market "$market" >out 2>err && grep -qE -- "$1" out; }
priced() { "$bourse" devices --json 2>/dev/null | grep -q "\"price_micro\":$1,"; }
until_true 60 priced 10000 || fail "the agent's own ask does not stand"
expect 2 'order list has no --price' "$bourse" order list --price 1
expect 2 '.--price says' "$bourse" order place "$device"
expect 4 'this key is no provider' "$bourse" order place "$device" --price 1
by_hand 3 'no device .ffffffffffff. of this account is on offer' ffffffffffff --price 1
by_hand 2 'the device has 1' "$device" --price 1 --slots 2
by_hand 4 'PRICE: price: .* limit 1000' "$device" --price 999999999
by_hand 2 '--for: at most 366d; without --for the ask stands until' "$device" --price 0.03 --for 100000d
by_hand 2 '--max-term: at least 1m' "$device" --price 0.03 --max-term 1ms
by_hand 2 '--max-term: at most 366d' "$device" --price 0.03 --max-term 367d
if is_root key-of-another; then # the key of another user, which stays that user's
    expect 2 "belongs to user bourse, not to us .root.; as that user: runuser -u bourse -- " \
        "$bourse" order place "$device" --price 0.03 --key "$folder/provider.key"
fi
by_hand 3 "ACCOUNT: to: 'nosuch': Name an account of this market" "$device" --price 0.03 --to nosuch
by_hand 2 'daily: 30s is not between 1m and ' "$device" --price 0.03 --daily 30s
by_hand 2 'an ask is limit, ioc or post-only' "$device" --price 0.03 --order fok
by_hand 0 '^[0-9a-f]{32}$' "$device" --price 0.03 --order ioc # nobody buys: the agent's own is back
until_true 60 priced 10000 || fail "the agent's own ask is not back: $("$bourse" devices)"
by_hand 0 '^[0-9a-f]{32}$' "${device:0:6}" --price 0.03 --order post-only
order=$(cat out)
priced 30000 || fail "the ask by hand is not there: $("$bourse" devices)"
until_true 60 status_says '1 slot of cpu.* at 0.03 .*placed by hand' || fail "status: $(cat out err)"
job=$(submit byhand 'run: ["true"]' 'cap: 0.05')
must_end "$job"
expect 0 '"price_micro":30000' "$bourse" trades --json --limit 1
expect 0 "${order:0:8} +ask +post-only" "$bourse" order list --key "$work/hand/key"
expect 0 'asks? comes? before this ask' "$bourse" explain "${order:0:8}" --key "$work/hand/key"
expect 0 "\"order\":\"$order\"" "$bourse" explain "$order" --json --key "$work/hand/key"
expect 3 'NOT_FOUND' "$bourse" explain 00000000000000000000000000000001 --key "$work/hand/key"
expect 3 'no standing order of this account begins with 0001. The order has ended' "$bourse" explain 0001 --key "$work/hand/key"
expect 3 'no job that begins with 0001, as it is no consumer' "$bourse" explain 0001/3 --key "$work/hand/key"
expect 2 'an ask, which has no --cap' "$bourse" order replace "$order" --cap 0.02 --key "$work/hand/key"
expect 0 "$order" "$bourse" order replace "$order" --price 0.02 --key "$work/hand/key"
priced 20000 || fail "the ask has not another price: $("$bourse" devices)"
until_true 60 status_says '1 slot of cpu.* at 0.02 .*placed by hand' || fail "status: $(cat out err)"
expect 0 "$order" "$bourse" order cancel "$order" --key "$work/hand/key"
until_true 60 priced 10000 || fail "the agent's own ask is not back: $("$bourse" devices)"
by_hand 0 '"price_micro":40000' "$device" --price 0.04 --for 1s --json
until_true 60 priced 10000 || fail "an ask that is over is not followed by the agent's own: $("$bourse" devices)"

# A pause takes it back too, and none can be placed while it lasts.
by_hand 0 '' "$device" --price 0.03 --max-term 1h
own 0 'paused until' pause
by_hand 3 'its agent must run, and not be paused' "$device" --price 0.03
[ -z "$("$bourse" order list --quiet --key "$work/hand/key")" ] || fail "an ask stands though the agent is paused"
own 0 '' resume
until_true 60 priced 10000 || fail "after a pause the agent's own ask does not stand: $("$bourse" devices)"

# The agent's own ask, cancelled by hand, stays away until its owner says so.
order=$("$bourse" order list --quiet --key "$work/hand/key") || fail "order list"
expect 0 "$order" "$bourse" order cancel "$order" --key "$work/hand/key"
until_true 60 status_says 'cancelled by hand' || fail "status: $(cat out err)"
own 0 'the ask was cancelled by hand' why
says 'agent +the agent runs; an ask was cancelled by hand: .*resume'
own 0 '' resume
until_true 60 priced 10000 || fail "resume does not place the ask again: $("$bourse" devices)"

# ---------------------------------------------------------------- earnings are what the ledger paid

again 'price: 1' # so that the shortest of them is worth more than the micro-credit that it is rounded down to
until_true 60 offered 1 || fail "nothing on offer at another price"
day=$(date -u +%Y-%m-%d) # by which the last of it is earned, or midnight is past
job=$(submit paid 'array: 0-4' "run: [sh, -c, 'i=0; while [ \$i -lt 200000 ]; do i=\$((i+1)); done']")
must_end "$job"
tiny=$(submit tiny 'executor: noop' 'array: 1-300')
must_end "$tiny"
own 0 '"results":[1-9]' earnings --json
own 0 '"devices":\[[^]]*"label":"' earnings --json
ledger=$(sqlite3 -readonly "$market/ledger.db" "
    SELECT (SELECT COALESCE(SUM(amount), 0) FROM transfers
            WHERE kind = 4 AND credit = (SELECT number FROM accounts WHERE roles & 2 ORDER BY number LIMIT 1)) || ' ' ||
           (SELECT COUNT(*) FROM results WHERE status = 0)")
payments=$(sqlite3 -readonly "$market/ledger.db" "SELECT COUNT(*) FROM transfers WHERE kind = 4 AND lower(hex(job)) = '$tiny'")
[ "$payments" -lt 300 ] || fail "every no-op was worth a micro-credit: $payments payments"
grep -q "\"job\":\"$tiny\",\"earned_micro\":[0-9]*,\"fee_micro\":[0-9]*,\"results\":300,\"given_ns\":0}" out || fail "no-ops are missing: $(cat out)"
sed -E 's/^(.*),"days".*/\1/' out >head.json
[ "$(number earned_micro head.json) $(number results head.json)" = "$ledger" ] ||
    fail "earnings says $(cat head.json), the ledger: $ledger"
[ "$(number earned_micro head.json)" -gt 0 ] || fail "nothing was earned: $(cat out)"
[ "$(number balance_micro head.json)" -eq "$(number earned_micro head.json)" ] || fail "the balance differs: $(cat out)"
grep -q "\"job\":\"$job\",\"earned_micro\":[1-9][0-9]*,\"fee_micro\":[0-9]*,\"results\":5" out || fail "not by job: $(cat out)"
own 0 '^DAY' earnings --since 7d
says "^($day|$(date -u +%Y-%m-%d))"
says "^${job:0:8} "
own 0 'earned +0.00 for 0 results since' earnings --since 1ms
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
own 0 'DEVICE' earnings # beside an agent or without one
own 0 'agent +no agent runs here' why
says 'offers no device now'

# ---------------------------------------------------------------- beside a cheaper neighbour

agent_start "$work/rival"
rival=$agent
agent=
started+=("$rival")
until_true 60 priced 50000 || fail "the rival does not offer: $("$bourse" devices)"
expect 0 '' "$bourse" down
gone "$broker" || fail "the broker is still there after down"
market_up
has "$(cat up.log)" '1 slot at 1.00 credits per slot-hour'
kill "$rival"
ended "$rival" 60 || fail "the rival does not end"
market_audit
echo "what the market tells a provider: ok"
