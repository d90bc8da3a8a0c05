#!/usr/bin/env bash
# What is given away, through the real programs: two consumers, one donor. It goes to who had less of it, to those that it is
# for, at its hours, and for so long a day.
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin donations "$1"
command -v sqlite3 >/dev/null || skip "no sqlite3"

provider=$bin/bourse-provider
folder=$market/provider
again() { # LINES...: the agent, with these lines in its config
    "$provider" drain --market "$market" >drain.log 2>&1 || fail "drain: $(cat drain.log)"
    ended "$agent" 60 || fail "the agent is still there after drain"
    printf '%s\n' 'price: 0' 'slots: 1' 'programs: [sh, sleep, "true"]' "$@" >"$folder/provider.yaml"
    "$provider" run --market "$market" >>agent.log 2>&1 &
    agent=$!
}
as_ada=(--key "$work/ada/key" --market "$work/ada/market.yaml")
ada() { "$bourse" "$@" "${as_ada[@]}"; }
own() { "$bourse" "$@"; }
submit() { # WHO NAME SECONDS CAP: one subtask of so long; prints the id
    printf 'name: %s\nlimit: 45s\nterm: 50s\nbudget: 0.50\ncap: %s\nrun: [sleep, "%s"]\n' "$2" "$4" "$3" >"$2.yaml"
    "$1" submit "$2.yaml" -y --anyway --quiet 2>submit.log || fail "submit: $(cat submit.log)"
}
job_is() { "$1" ps "$2" --json --timeout 5s >ps.json 2>/dev/null && grep -qE -- "$3" ps.json; }
runs() { job_is "$1" "$2" '"state":"(open|running)".*"running":1|"running":1'; }
is_done() { job_is "$1" "$2" '"state":"done"'; }

market_up --credits 100 --slots 1 --programs sh,sleep,true
until_true 60 offered 1 || fail "nothing on offer"
own admin invite --role consumer --credits 5 --name ada >invitation 2>invite.log || fail "invite"
mkdir -m 700 "$work/ada"
expect 3 "no account 'ada'" "$bourse" admin mint ada 0.01 # nobody yet
own join "$(cat invitation)" --key "$work/ada/key" --market "$work/ada/market.yaml" >join.log 2>&1 ||
    fail "join: $(cat join.log)"
expect 0 '' "$bourse" admin mint ada 0.01
expect 0 ' ada +consumer +5.01 ' "$bourse" admin accounts
expect 2 ':4: hours: "22:00" is no window' env sh -c "printf 'price: 0\n\n\nhours: 22:00\n' >bad.yaml; '$provider' run --check-config --config bad.yaml"

# ---------------------------------------------------------------- who had less goes first

again
until_true 60 offered 1 || fail "nothing on offer"
expect 0 ' donated +1 +1 ' "$bourse" book
first=$(submit own first 25 0.01) # until the others are in the queue
until_true 60 runs own "$first" || fail "the first job does not run"
rich=$(submit own rich 2 9)
poor=$(submit ada poor 2 0)
expect 0 'place 1 of 2 in the queue' "$bourse" balance "${as_ada[@]}"
expect 0 'place 2 of 2 in the queue' "$bourse" balance
expect 0 'donated devices go first to who used least lately' "$bourse" explain "$rich"
until_true 60 is_done ada "$poor" || fail "the second account's job is not done: $(cat ps.json)"
until_true 60 is_done own "$rich" || fail "the third job is not done"
in_order=$(sqlite3 -readonly "$market/ledger.db" "SELECT lower(hex(job)) FROM results ORDER BY rowid")
[ "$in_order" = "$first"$'\n'"$poor"$'\n'"$rich" ] || fail "who had more, and pays more, went first: $in_order"
expect 0 '"used_ns":[1-9][0-9]{9}' "$bourse" balance --json "${as_ada[@]}"
expect 0 'earned +0.00 for 3 results' "$provider" earnings --market "$market"
given() { "$@" 2>/dev/null | grep -oE '"given_ns":[1-9][0-9]*' | head -n 1; }
expect 0 '"results":3,"given_ns":[1-9]' "$provider" earnings --json --market "$market"
mkdir -m 700 "$work/donor" # the agent's folder may be another user's
install -m 600 "$folder/provider.key" "$work/donor/key"
by_market=$(given "$bourse" balance --json --key "$work/donor/key")
for command in earnings status; do
    [ "$(given "$provider" "$command" --json --market "$market")" = "$by_market" ] ||
        fail "$command and balance do not agree on what was given: $by_market"
done
expect 0 '^donated +0.00 slot-hours to [0-9]+ jobs? of others: thank you$' "$provider" earnings --market "$market"
expect 0 '^donated +0.00 slot-hours, all in all' "$provider" status --market "$market"
expect 0 '^donated +0.00 slot-hours to others, all in all' "$bourse" balance --key "$work/donor/key"

# ---------------------------------------------------------------- for one alone

again 'to: [ada]'
only_ada() { "$provider" status --market "$market" >out 2>&1 && grep -q 'at 0.00 credits per slot-hour to ada$' out; }
until_true 60 only_ada || fail "status does not say whom it is for: $(cat out)"
expect 0 'CONDITIONS' "$bourse" book
expect 0 ' donated +1 +1 +1 +to 1 account, not you$' "$bourse" book
expect 0 ' donated +1 +1 +1 +to 1 account: you$' "$bourse" book "${as_ada[@]}"
expect 0 '"to":1,"for_you":true' "$bourse" book --json "${as_ada[@]}"
"$bourse" book --follow --json >follow.json 2>&1 &
follow=$!
until_true 60 grep -q '"limited":1,"timed":0,"daily":0' follow.json || fail "the feed has no conditions: $(cat follow.json)"
kill "$follow"
mine=$(submit own mine 0 0.01)
hers=$(submit ada hers 0 0.01)
until_true 60 is_done ada "$hers" || fail "the job that it is for is not done"
expect 0 '1 is offered to other accounts only' "$bourse" explain "$mine"
own cancel "$mine" >cancel.log 2>&1 || fail "cancel"
again 'to: [ada, nobody-here]'
refused() { grep -q "the broker refused the ask: ACCOUNT: to: 'nobody-here': Name an account of this market" agent.log; }
until_true 60 refused || fail "an account that is none was taken: $(tail -n 3 agent.log)"

# ---------------------------------------------------------------- for short terms

printf 'name: lasting\nlimit: 2m\nbudget: 0.50\nrun: ["true"]\n' >lasting.yaml
lasting=$(own submit lasting.yaml -y --anyway --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
again 'term: 1m'
too_brief() { own explain "$lasting" >out 2>&1 && grep -q "$let_for" out; }
let_for='the one on offer is let for a term of 1m at most: ask for a .limit. and .term. no longer than that'
until_true 60 too_brief || fail "explain does not say that terms are too short: $(cat out)"
own cancel "$lasting" >cancel.log 2>&1 || fail "cancel"

# ---------------------------------------------------------------- at its hours, by the log

hour() { printf '%02d' $(((10#$(date -u +%H) + $1) % 24)); } # so many from now
again "hours: $(hour 6):00-$(hour 7):30"
closed() { "$provider" why --market "$market" >out 2>&1 && grep -q "outside the ask's hours, which begin in" out; }
until_true 60 closed || fail "why does not say that it is outside the hours: $(cat out)"
expect 0 " [0-9:]+-[0-9:]+ \\(UTC\\+00:00\\)$" "$bourse" book
late=$(submit own late 0 0.01)
expect 0 '1 is offered at other hours, which begin in' "$bourse" explain "$late"
again 'hours: 00:00-24:00'
until_true 60 is_done own "$late" || fail "it does not run at its hours"

# ---------------------------------------------------------------- for so long a day

expect 2 ':2: daily: less than `term`' env sh -c "printf 'term: 2m\ndaily: 1m\n' >bad.yaml; '$provider' run --check-config --config bad.yaml"
# A day that began at midnight somewhere else: it is noon, so that none begins meanwhile.
offset=$(printf '%+03d:00' $((12 - 10#$(date -u +%H))))
again 'daily: 1m' 'term: 1m' "utc_offset: \"$offset\""
bounded() { "$provider" status --market "$market" >out 2>&1 && grep -q '; 1m of slots a day (UTC'"$offset)" out; }
until_true 60 bounded || fail "status does not say how much a day: $(cat out)"
expect 0 ' 1m a day, 1m left$' "$bourse" book
once=$(submit own once 1 0.01)
until_true 60 is_done own "$once" || fail "nothing runs although the day has begun: $(cat ps.json)"
used_up() { "$provider" why --market "$market" >out 2>&1 && grep -q 'gives 1m of slots a day, and what today has left is less' out; }
until_true 60 used_up || fail "why does not say that the day is used up: $(cat out)"
expect 0 '"daily_ms":60000,"used_ms":[1-9]' "$provider" why --json --market "$market"
more=$(submit own more 0 0.01)
expect 0 '1 is used up for today: the next day begins in' "$bourse" explain "$more"
again 'daily: 3m' 'term: 1m' "utc_offset: \"$offset\"" # a restart is not another day, but there is more of it
until_true 60 is_done own "$more" || fail "it does not run with more of the day: $(cat ps.json)"

# ---------------------------------------------------------------- who has no credits

again
until_true 60 offered 1 || fail "nothing on offer"
own admin invite --role consumer --name zoe >invitation 2>invite.log || fail "invite"
mkdir -m 700 "$work/zoe"
own join "$(cat invitation)" --key "$work/zoe/key" --market "$work/zoe/market.yaml" >join.log 2>&1 ||
    fail "join: $(cat join.log)"
zoe() { "$bourse" "$@" --key "$work/zoe/key" --market "$work/zoe/market.yaml"; }
as_zoe=(--key "$work/zoe/key" --market "$work/zoe/market.yaml")
printf 'name: gift\nlimit: 20s\nrun: ["true"]\n' >gift.yaml
for order in market ioc fok all-or-none; do
    expect 0 'budget +none held: the job takes only donated slots' "$bourse" submit gift.yaml -y --order "$order" "${as_zoe[@]}"
    gift=$(grep -oE '^[0-9a-f]{8}' out)
    until_true 60 is_done zoe "$gift" || fail "a donation takes credits: $(cat ps.json)"
    until_true 60 offered 1 || fail "the slot does not come back"
done
printf 'name: gift\nlimit: 20s\nbudget: 0\ncap: 1\nrun: ["true"]\n' >nothing.yaml
expect 0 'would start now at 0.00' "$bourse" explain nothing.yaml "${as_zoe[@]}"
expect 0 '' "$bourse" submit nothing.yaml -y --wait "${as_zoe[@]}"
expect 0 'available +0.00' "$bourse" balance "${as_zoe[@]}"

# ---------------------------------------------------------------- what is given away goes, and there is another at a price

agent_join "$work/second" --name second <<END
slots: 1
programs: [sh, sleep, "true"]
END
"$provider" run --dir "$work/second" >>agent-second.log 2>&1 &
second=$!
started+=("$second")
until_true 60 offered 2 || fail "the second is not on offer"
printf 'name: movable\nlimit: 60s\nrun: [sleep, "4"]\n' >movable.yaml
expect 0 'price +the lowest that gets the slots, at most [0-9.]+ credits per slot-hour' "$bourse" quote --verbose movable.yaml
expect 0 'for other devices, if the donated ones go' "$bourse" quote --verbose movable.yaml
moved=$(own submit movable.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
until_true 60 runs own "$moved" || fail "it does not run"
"$provider" pause --now --market "$market" >pause.log 2>&1 || fail "pause: $(cat pause.log)"
until_true 60 is_done own "$moved" || fail "it does not go elsewhere: $(cat ps.json)"
expect 0 '"charged_micro":[1-9]' "$bourse" ps "$moved" --json
expect 4 'nothing that fits is donated now: it takes 0\.[0-9]+ credits to start; with --anyway' "$bourse" submit nothing.yaml -y "${as_zoe[@]}"
expect 5 'with a budget of 0[.][0-9]+ instead of 0.00' "$bourse" explain nothing.yaml "${as_zoe[@]}"
late=$(zoe submit nothing.yaml -y --anyway --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
"$provider" resume --market "$market" >resume.log 2>&1 || fail "resume: $(cat resume.log)"
until_true 60 is_done zoe "$late" || fail "a budget of 0 takes no donation that comes: $(cat ps.json)"

# ---------------------------------------------------------------- a budget of 0 goes by what is given away, and nothing else

until_true 60 offered 2 || fail "the slots do not come back"
said() { # WORDS...: each of them, by what ran last
    for word in "$@"; do grep -qE -- "$word" out err || fail "not said, '$word': $(cat out err)"; done
}
unsaid() { ! grep -qE -- "$1" out err || fail "said, '$1': $(cat out err)"; }

# That the others are leased at the moment is no reason to have none of them later.
printf 'name: hold\nlimit: 60s\ncap: 0.2\nneeds: {label: second}\nrun: [sleep, "40"]\n' >hold.yaml
hold=$(own submit hold.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
until_true 60 runs own "$hold" || fail "it does not run"
expect 0 'price +the lowest that gets the slots, at most [0-9.]+ credits per slot-hour' "$bourse" quote --verbose movable.yaml
unsaid '0.10 x'
said 'budget +0[.]00[1-9]'
printf 'cap: 0.05\n' | cat movable.yaml - >capped.yaml
expect 0 'budget +0[.]00[1-9]' "$bourse" quote --verbose capped.yaml
own cancel "$hold" >cancel.log 2>&1 || fail "cancel: $(cat cancel.log)"
until_true 60 offered 2 || fail "the slots do not come back"

printf 'name: six\nlimit: 20s\nexpect: 500ms\narray: 1-6\nrun: [sleep, "0.1"]\n' >poor.yaml
printf 'budget: 0\n' | cat poor.yaml - >six.yaml
on_gifts() { # QUOTE-COMMAND... of six subtasks, on the one slot
    expect 0 'on offer now +1 slot, 0.00 to 0.00' "$@"
    said '0.00 x 1 slot of 1' 'expected +0.00 credits, 3.0s' 'none held: the job takes only donated slots$'
    unsaid 'price +the least'
    unsaid '0.10 x'
}
on_gifts "$bourse" quote --verbose six.yaml
on_gifts "$bourse" quote --verbose poor.yaml "${as_zoe[@]}"
for file in six.yaml poor.yaml; do
    expect 0 'makespan +3.0s, 6 subtasks on 1 lane' "$bourse" plan "$file" "${as_zoe[@]}"
    said '^cost +0.00 credits$'
    unsaid 'second'
done
on_gifts "$bourse" submit poor.yaml -y --budget 0
six=$(grep -oE '^[0-9a-f]{8}' out)
until_true 60 is_done own "$six" || fail "it is not done: $(cat ps.json)"
expect 0 '"planned":\{"makespan_ns":3000000000,.*"cost_micro":0,.*"slots":1,' "$bourse" report "$six" --json

# Of parts that differ it is told for which there is nothing.
cat >parts.yaml <<'END'
name: parts
limit: 20s
budget: 0
tasks:
- {name: a, run: ["true"]}
- {name: b, run: ["true"], needs: {label: second}}
END
expect 5 'on offer now +nothing that is donated for all parts; for the others:$' "$bourse" quote --verbose parts.yaml
said 'takes only donated slots, and none fits task b now$'
expect 4 'nothing that fits task b is donated now: it takes 0.[0-9]+ credits to start' "$bourse" submit parts.yaml -y
sed '/budget/d' parts.yaml >paid.yaml
expect 0 'on offer now +2 slots, 0.00 to 0.10' "$bourse" quote --verbose paid.yaml
said '0.00 x 1 slot of 1' '0.10 x 1 slot of 1'

# Nothing is given away: before it is placed, and as it waits, it hears the same, and of no cap.
"$provider" pause --now --market "$market" >pause.log 2>&1 || fail "pause: $(cat pause.log)"
until_true 60 offered 1 || fail "it is still on offer"
told='the one on offer asks a price, and a budget of 0 takes only donated slots; provider "provider" withdrew its offer at .*; its 1 slot would fit; with a budget of 0[.][0-9]+ instead of 0.00 it fills now at 0.10'
expect 5 "$told" "$bourse" quote --verbose six.yaml "${as_zoe[@]}"
said 'on offer now +nothing that is donated$' 'none held: the job takes only donated slots$'
unsaid 'price +the least'
unsaid 'cap'
six=$(zoe submit six.yaml -y --anyway --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
expect 0 "$told" "$bourse" explain "$six" "${as_zoe[@]}"
said '0 within the limit, 0 free' "order replace ${six:0:8} --budget 0.[0-9]+. fills 1 of the 6 slots that it wants, once the account has 0.[0-9]+ credits more: it has 0.00$"
unsaid 'cap'
expect 5 'on offer now +nothing that is donated' "$bourse" plan "$six" "${as_zoe[@]}"
own admin mint zoe 1 >mint.log 2>&1 || fail "mint: $(cat mint.log)"
expect 0 "order replace ${six:0:8} --budget 0.[0-9]+. fills 1 of the 6 slots that it wants$" "$bourse" explain "$six" "${as_zoe[@]}"
zoe order replace "$six" --budget "$(grep -oE -- '--budget [0-9.]+' out | cut -d ' ' -f 2)" >replace.log 2>&1 ||
    fail "replace: $(cat replace.log)"
until_true 60 is_done zoe "$six" || fail "the budget that is told does not start it: $(cat ps.json)"
"$provider" resume --market "$market" >resume.log 2>&1 || fail "resume: $(cat resume.log)"
until_true 60 offered 2 || fail "the slots do not come back"

# ---------------------------------------------------------------- within what one order may come to

until_true 60 offered 2 || fail "the slots do not come back"
own admin invite --role risk --name rita >invitation 2>invite.log || fail "invite"
mkdir -m 700 "$work/rita"
own join "$(cat invitation)" --key "$work/rita/key" --market "$work/rita/market.yaml" >join.log 2>&1 || fail "join: $(cat join.log)"
expect 0 'one order comes to 0.01 at most' "$bourse" admin bands --notional 0.01 --key "$work/rita/key" --market "$work/rita/market.yaml"
for order in all-or-none fok market; do
    printf 'name: bounded\nlimit: 60s\nterm: 3h\ncap: 0.03\norder: %s\nrun: ["true"]\n' "$order" >bounded.yaml
    expect 0 'would start now at 0.00' "$bourse" explain bounded.yaml
    expect 0 '' "$bourse" submit bounded.yaml -y --wait
    until_true 60 offered 2 || fail "the slot does not come back"
done
market_audit
echo passed
