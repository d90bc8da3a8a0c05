#!/usr/bin/env bash
# How jobs would run, told before anything is spent: subtasks, devices, timeline and bound agree with one another and with the quote, and
# what is left of a job is planned on what it has.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
leaks=yes
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
fire_begin plan_job "$1"
market_up --slots 2

# Twelve of 200 ms on two slots: six rounds, and none is better.
printf 'name: twelve\narray: 0-11\nrun: [sleep, "0.2"]\nexpect: 200ms\n' >array.yaml
LC_ALL=C "$bourse" plan array.yaml --svg array.svg >out || fail "plan: $?"
grep -qE '^0 +provider/[^ ]+ +0s +200ms +- +- +0\.[0-9]+ +declared$' out || fail "no first subtask: $(cat out)"
[ "$(grep -cE '^[0-9]+ +provider/' out)" -eq 12 ] || fail "not twelve subtasks: $(cat out)"
grep -qE '^provider/[^ ]+ +12 +2 +100% +0 B +- +0.10 +0\.[0-9]+$' out || fail "no device: $(cat out)"
grep -qE '^provider/[^ ]+ #1 +#+ +100%$' out || fail "no timeline: $(cat out)"
has "$(cat out)" 'makespan     1.2s, 12 subtasks on 2 lanes'
has "$(cat out)" 'lower bound  1.2s: proved, none is better'
grep -qE '^best single  1.2s on provider/.*: 1.00 times as long$' out || fail "no best single: $(cat out)"
has "$(cat out)" 'estimated    from what is declared'
has "$(cat out)" 'p90          unknown: not all work was measured 5 times'
has "$(cat out)" 'energy       unknown: '
has "$(cat out)" 'expected      '
[ "$(grep -c '<rect class="ok"' array.svg)" -eq 12 ] || fail "not twelve boxes: $(cat array.svg)"
if command -v xmllint >/dev/null; then
    xmllint --noout array.svg || fail "the picture is no XML"
fi
LC_ALL=C "$bourse" plan array.yaml --width 60 | awk '/busy$/ && length != 60 {exit 1}' || fail "not 60 columns wide"

"$bourse" plan array.yaml --json >json || fail "plan --json"
[ "$(wc -l <json)" -eq 1 ] || fail "more than one value: $(cat json)"
has "$(cat json)" '"makespan_s":1.2,"p90_s":null,"lower_bound":1.2,"gap":0.0,'
has "$(cat json)" "\"price_micro\":$(number expected_micro json),\"energy_j\":null,\"lanes\":2,\"source\":\"declared\""
[ "$(grep -o '"subtask":' json | wc -l)" -eq 12 ] || fail "not twelve in the schedule: $(cat json)"
# What subtasks cost comes to what the device costs.
rows=$(grep -oE '"schedule":\[[^]]*\]' json | grep -oE '"price_micro":[0-9]+' | awk -F: '{sum += $2} END {print sum}')
[ "$rows" = "$(number expected_micro json)" ] || fail "rows cost $rows: $(cat json)"
[ "$("$bourse" plan array.yaml --quiet)" = "$("$bourse" quote array.yaml --quiet)" ] || fail "--quiet"

# More than are listed one by one: what each device has of each part.
printf 'name: many\narray: 0-99\nrun: [sleep, "0.2"]\nexpect: 200ms\n' >many.yaml
"$bourse" plan many.yaml >out || fail "plan of many"
grep -qE '^100 of 100 +provider/' out || fail "no sum: $(cat out)"

# Unlike tasks that wait for nobody: what is quoted is what is planned, and not all work over all lanes.
cat >unlike.yaml <<'YAML'
tasks:
- {name: a, expect: 2s, run: [sleep, "2"]}
- {name: b, expect: 5s, run: [sleep, "5"]}
- {name: c, expect: 5500ms, run: [sleep, "5"]}
- {name: d, expect: 2100ms, run: [sleep, "2"]}
YAML
"$bourse" plan unlike.yaml --json >json || fail "plan of unlike tasks"
has "$(cat json)" '"makespan_s":7.5,'
[ "$(number makespan_ns json)" -eq 7500000000 ] || fail "the quote says something else: $(cat json)"
has "$(cat json)" "\"price_micro\":$(number expected_micro json),\"energy_j\":null,\"lanes\":2"
[ "$("$bourse" quote unlike.yaml --json | number makespan_ns /dev/stdin)" -eq 7500000000 ] || fail "another quote"

# Tasks: who waits for whom, which is urgent, what is handed on, and a guess that is called one.
cat >tasks.yaml <<'YAML'
tasks:
- {name: make, files: thousand.txt, expect: 300ms, run: [sh, -c, 'head -c 50 /dev/zero >big'], outputs: big}
- {name: one, from: make/big, expect: 200ms, run: [sh, -c, 'wc -c <big']}
- {name: aside, expect: 1s, run: [sleep, "0"]}
- {name: last, after: [one, aside], run: [sleep, "100"]}
YAML
head -c 1000 /dev/zero >thousand.txt
"$bourse" plan tasks.yaml --json >json || fail "plan of tasks"
has "$(cat json)" '"makespan_s":6.0,' # a second, and a guess of five
has "$(cat json)" '"hands_on":true'
grep -qE '"ready_s":0.29[0-9]*,"start_s":0.29[0-9]*|"ready_s":0.3[0-9]*,"start_s":0.3' json || fail "one does not begin after make: $(cat json)"
"$bourse" plan tasks.yaml >out || fail "plan of tasks"
grep -qE '^one +provider/[^ ]+ +300ms +200ms +unknown ' out || fail "what is handed on is not unknown: $(cat out)"
grep -qE '^make +provider/[^ ]+ +0s +300ms +1000 B ' out || fail "no bytes: $(cat out)"
has "$(cat out)" 'and what subtasks hand on to others, not known yet'

# Parts share the slots there are: two of a second each, twice, take two seconds on two slots, and the quote says so, too.
cat >parts.yaml <<'YAML'
tasks:
- {name: a, expect: 1s, run: [sleep, "1"]}
- {name: b, expect: 1s, run: [sleep, "1"]}
- {name: c, expect: 1s, limit: 2m, run: [sleep, "1"]}
- {name: d, expect: 1s, limit: 2m, run: [sleep, "1"]}
YAML
"$bourse" plan parts.yaml --json >json || fail "plan of parts"
has "$(cat json)" '"parts":2'
has "$(cat json)" '"makespan_s":2.0,'
[ "$(number makespan_ns json)" -eq 2000000000 ] || fail "the quote says otherwise: $(cat json)"

# Once it runs, what is left is planned on the lease that it has; once it has ended, on what is on offer.
"$bourse" submit tasks.yaml -y -q >id || fail "submit"
last_runs() { "$bourse" ps "$(cat id)" --json >ps.json && grep -q '"accepted":3' ps.json && grep -q '"running":1' ps.json; }
until_true 60 last_runs || fail "the last task does not run: $(cat ps.json)"
"$bourse" plan last >out || fail "plan of an open job: $?"
has "$(cat out)" 'open, 3 of 4 accepted; planned is what is left'
has "$(cat out)" 'on the leases that it has, 1 subtask on 1 lane'
grep -qE '^last +provider/' out || fail "no task: $(cat out)"
! grep -q '^Quote' out || fail "a quote of what runs: $(cat out)"
"$bourse" plan "$(head -c 8 id)" --json --svg left.svg >json || fail "plan of an open job as JSON"
has "$(cat json)" "\"job\":\"$(cat id)\",\"on_leases\":true"
has "$(cat left.svg)" 'subtask last'
"$bourse" cancel "$(cat id)" >/dev/null || fail "cancel"
gone() { "$bourse" ps "$(cat id)" --json | grep -q '"state":"cancelled"' && "$bourse" plan "$(cat id)" --json >json; }
until_true 60 gone || fail "plan of a job that has ended: $(cat json)"
has "$(cat json)" '"on_leases":false'
"$bourse" submit array.yaml -y --wait --quiet >id || fail "submit --wait"
got=0
"$bourse" plan "$(cat id)" >out 2>err || got=$?
[ "$got" -eq 3 ] || fail "a job of which nothing is left: $got, $(cat out err)"
has "$(cat err)" 'nothing is left'

# What was measured is what it rests on, and then so is the ninth of ten.
"$bourse" plan array.yaml --json >json || fail "plan of what was measured"
measured() { "$bourse" plan array.yaml --json >json && grep -q '"source":"measured"' json && ! grep -q '"p90_s":null' json; }
until_true 60 measured || fail "not measured: $(cat json)"
"$bourse" plan array.yaml >out || fail "plan of what was measured"
grep -qE '^0 .* measured \([0-9]+\)$' out || fail "no source: $(cat out)"
grep -qE '^p90          [0-9.]+m?s, if every' out || fail "no 90th percentile: $(cat out)"

# What fits nowhere has no timeline, and says so; a name may be a file's.
printf 'name: never\nneeds: {kind: gpu}\nrun: [sh]\n' >never.yaml
got=0
"$bourse" plan never.yaml >out 2>err || got=$?
[ "$got" -eq 5 ] || fail "what fits nowhere: $got, $(cat out err)"
has "$(cat out)" 'nothing that fits'
! grep -q makespan out || fail "a makespan of nothing: $(cat out)"
got=0
"$bourse" plan never.yaml --svg never.svg >out 2>err || got=$?
[ "$got" -eq 5 ] || fail "a picture of nothing ended with $got"
[ ! -e never.svg ] || fail "a picture of nothing: $(cat never.svg)"
"$bourse" plan never.yaml --json >json && fail "never.yaml starts"
has "$(cat json)" '"makespan_s":null'
cp array.yaml last
has "$("$bourse" plan last)" 'Plan for twelve'
rm last
got=0
"$bourse" plan nosuch >out 2>err || got=$?
[ "$got" -eq 3 ] || fail "neither a file nor a job: $got, $(cat err)"
"$bourse" plan array.yaml --batch 2 >out 2>err && fail "--batch of a job"
has "$(cat err)" 'is for a template'
echo "plans of jobs: ok"
