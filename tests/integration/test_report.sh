#!/usr/bin/env bash
# What became of a job, told by a real market: the table adds up to what `ps` says, the timeline fits its terminal, the
# picture is well-formed, what failed is named.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
leaks=yes
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
fire_begin report "$1"
market_up --slots 2

cat >job.yaml <<'YAML'
name: <uneven> & "odd"
array: 0-11
run: [sh, -c, 'sleep 0.$(($1 % 3 + 1)); echo did $1; test $1 != 7', sh, "{index}"]
expect: 200ms
YAML
"$bourse" quote job.yaml --json >quote.json || fail "quote"
"$bourse" submit job.yaml -y --wait --quiet >id || [ $? -eq 1 ] || fail "submit ended with $?"
job=$(cat id)

LC_ALL=C "$bourse" report "$job" >table || fail "report"
has "$(cat table)" 'failed, 11 of 12 subtasks accepted'
has "$(cat table)" 'attempts that do not count: program failed (1)'
has "$(cat table)" 'expected 200ms a subtask, measured '
# All of it as the quote had it, beside what it came to.
grep -qE '^makespan +1.2s +[0-9.]+m?s +-$' table || fail "no planned makespan: $(cat table)"
grep -qE '^cost +0[0-9.]* +0[0-9.]* +-$' table || fail "no planned cost: $(cat table)"
# In the same form: what was planned is drawn above what was, begins with it, and has its lanes and how well they are used beside.
grep -qE '^planned #0 .*100%$' table || fail "no planned timeline: $(cat table)"
grep -qE '^planned #1 .*100%$' table || fail "no second planned lane: $(cat table)"
[ "$(grep -nE '^planned #1 ' table | cut -d: -f1)" -lt "$(grep -nE '^provider/.* #0 ' table | cut -d: -f1)" ] || fail "the plan is not above: $(cat table)"
grep -qE '^work +2.4s +[0-9.]+m?s +-$' table || fail "no planned work: $(cat table)"
grep -qE '^lanes +2 +[12] *$' table || fail "no planned lanes: $(cat table)"
grep -qE '^lower bound +1.2s *$' table || fail "no bound: $(cat table)"
grep -qE '^energy +- +- +-$' table || fail "an energy that nobody knows: $(cat table)"
grep -qE '^gap +0.0% +- *$' table || fail "no gap of the plan: $(cat table)"
grep -qE '^best single +1.2s *$' table || fail "no best single device: $(cat table)"
# Of each subtask what was planned beside what it took; of what failed there is nothing to hold beside it.
grep -qE '^8 +provider/[^ ]+ +[0-9.]+m?s +[0-9.]+m?s +200ms +[0-9.]+m?s +[+-][0-9]+% +- +0\.[0-9]+$' table || fail "no subtask: $(cat table)"
grep -qE '^7 +- +[0-9.]+m?s +- +200ms +- +- +- +-$' table || fail "what failed has a time: $(cat table)"
grep -qE '^total +11 of 12 +0s +0s +2.2s +[0-9.]+s +[+-][0-9]+% +- +0\.[0-9]+$' table || fail "no total: $(cat table)"
awk 'length > 100 {exit 1}' table || fail "wider than 100 columns: $(cat table)"
grep -qE '^share +100% +[0-9]+% *$' table || fail "no planned share: $(cat table)"
grep -q 'unknown$' table || fail "an energy that no result says is not unknown: $(cat table)"
grep -qE '^provider/.*x.* [0-9]+%$' table || fail "no failure in the timeline: $(cat table)"
! LC_ALL=C grep -q '[^ -~]' table || fail "not plain text: $(cat table)"
awk '/busy$/ {f = 1} f && NF == 0 {exit} f && length > 80 {exit 1}' table || fail "wider than 80 columns: $(cat table)"
LC_ALL=C.UTF-8 "$bourse" report "$job" --width 60 >wide || fail "report --width"
has "$(cat wide)" '█'
[ "$(grep busy wide | awk '{print length}')" -eq 60 ] || fail "not 60 columns wide: $(cat wide)"
NO_COLOR=1 "$bourse" report "$job" >plain || fail "report with NO_COLOR"
"$bourse" report "$job" --color always >coloured || fail "report --color"
grep -q $'\033' coloured || fail "no color when asked for"
! grep -q $'\033' plain || fail "color with NO_COLOR"

"$bourse" report "$job" --json --svg picture.svg >json || fail "report --json"
"$bourse" ps "$job" --json >ps.json || fail "ps"
[ "$(number charged_micro json)" = "$(number charged_micro ps.json)" ] || fail "charged: $(cat json ps.json)"
planned=$(grep -oE '"planned":\{.*\},"timeline":' json) || fail "no plan: $(cat json)"
[ "$(grep -o '"index"' <<<"$planned" | wc -l)" -eq 12 ] || fail "not 12 planned subtasks: $planned"
has "$planned" '"share_ppm":1000000,'
has "$planned" '"lower_bound_ns":1200000000,'
# In the shape of `plan --json`, the plan and what became of it.
has "$planned" '"makespan_s":1.2,"lower_bound":1.2,"gap":0.0,"price_micro":'
has "$planned" '"best_single":{"device":0,"makespan_s":1.2}'
[ "$(grep -o '"subtask":' <<<"$planned" | wc -l)" -eq 12 ] || fail "not 12 in the planned schedule: $planned"
[ "$(grep -o '"subtask":' json | wc -l)" -eq 24 ] || fail "not 12 in the schedule: $(cat json)"
grep -qE '"subtask":8,"planned_s":0.2[0-9]*,"guess":false,"device":0,' json || fail "no planned beside measured: $(cat json)"
grep -qE '"subtask":7,"planned_s":0.2[0-9]*,"guess":false,"device":null,' json || fail "what failed ran: $(cat json)"
has "$(cat json)" '"accepted":false'
has "$planned" "\"makespan_ns\":$(number makespan_ns quote.json),"
has "$planned" "\"cost_micro\":$(number expected_micro quote.json),"
has "$planned" "\"measured_cost_micro\":$(number charged_micro ps.json),"
has "$planned" "\"measured_makespan_ns\":$(number span_ns json),"
has "$planned" '"slots":2,"guess":false'
[ "$(number bytes_out json)" -gt 0 ] || fail "no bytes out: $(cat json)"
has "$(cat json)" '"energy_mj":null'
grep -qE '^isolation: level 1 on [0-9]+ devices?$' table || fail "no isolation: $(cat table)"
[ "$(grep -oE '"isolation":1' json | wc -l)" -ge 13 ] || fail "no isolation of attempts: $(cat json)"
# What every jail measures is told; nothing here reads a power.
grep -qE '^most memory: subtask [0-9]+, [0-9.]+ [KM]iB in one process$' table || fail "no greatest memory: $(cat table)"
[ "$(grep -oE '"peak_memory_bytes":[1-9][0-9]*' json | wc -l)" -ge 13 ] || fail "no greatest memory of attempts: $(cat json)"
has "$(cat json)" '"peak_power_mw":null'
has "$(cat picture.svg)" '&lt;uneven&gt; &amp; &quot;odd&quot;'
grep -q '<title>planned: subtask 0' picture.svg || fail "no plan in the picture: $(cat picture.svg)"
[ "$(grep -c '<title>' picture.svg)" -ge 24 ] || fail "fewer boxes than subtasks: $(cat picture.svg)"
if command -v xmllint >/dev/null; then
    xmllint --noout picture.svg || fail "the picture is no XML"
fi
cp picture.svg drawn.svg
"$bourse" report "$job" --svg drawn.svg >/dev/null || fail "a picture is not drawn anew"
cmp picture.svg drawn.svg || fail "drawn anew it is another"
cp json mine
got=0
"$bourse" report "$job" --svg mine >out 2>err || got=$?
[ "$got" -eq 2 ] || fail "a file that is no picture: $got, $(cat out err)"
has "$(cat err)" 'is no picture'
cmp json mine || fail "it was overwritten: $(cat mine)"
if [ "$(id -u)" -eq 0 ]; then
    left_out unreadable-picture "root may read what it will"
else
    chmod 200 drawn.svg
    "$bourse" report "$job" --svg drawn.svg >out 2>err && fail "what cannot be read was replaced"
    has "$(cat err)" 'whether it is a picture cannot be read'
fi
"$bourse" report "$job" --svg /dev/stdout >out || fail "no picture to standard output"
has "$(cat out)" '</svg>'
got=0
"$bourse" report "$job" --svg /nowhere/picture.svg >out 2>err || got=$?
[ "$got" -eq 2 ] || fail "a picture nowhere ended with $got"
has "$(cat err)" '/nowhere/picture.svg'
got=0
"$bourse" report ffffffffffff >out 2>err || got=$?
[ "$got" -eq 3 ] || fail "no such job ended with $got"

# Before there is a result, it says what was planned.
printf 'name: long\nexpect: 30s\nrun: [sleep, "30"]\n' >long.yaml
"$bourse" submit long.yaml -y --quiet >id || fail "submit of long"
"$bourse" report "$(cat id)" >table || fail "report of what has no result"
grep -qE '^makespan +30.0s +- +-$' table || fail "no plan: $(cat table)"
grep -qE '^0 +- +0s +- +30.0s +- +- +- +-$' table || fail "no planned subtask: $(cat table)"
"$bourse" cancel "$(cat id)" >/dev/null || fail "cancel"

# While it runs, what its subtasks take is told beside what was expected, with how long the rest will take.
printf 'name: slow\narray: 0-239\nexpect: 100ms\nrun: [sleep, "0.4"]\n' >slow.yaml
"$bourse" submit slow.yaml -y --quiet >id || fail "submit of slow"
drifting() { "$bourse" ps "$(cat id)" >table && grep -qE '^about .* left, subtasks take [0-9]+% longer than expected$' table; }
until_true 60 drifting || fail "no drift: $(cat table)"
"$bourse" ps "$(cat id)" --json >ps.json || fail "ps of slow"
has "$(cat ps.json)" '"drifts":true'
"$bourse" report "$(cat id)" >table || fail "report of what runs"
grep -qE '^about .* left, at the pace measured' table || [ "$(field state ps.json)" != open ] || has "$(cat table)" '240 of 240'
"$bourse" cancel "$(cat id)" >/dev/null || true # it may be done

# Who follows a job whose subtasks take ten times what was planned is told what is planned of the rest, and what would make it sooner.
printf 'name: drift\narray: 0-15\nat_most: 1\nexpect: 50ms\nrun: [sleep, "0.5"]\n' >drift.yaml
"$bourse" submit drift.yaml -y --wait --json >json 2>err || fail "submit of drift: $(cat err)"
[ "$(grep -cE '^bourse: subtasks of job [0-9a-f]{8} take [0-9]+% longer than planned; planned anew, the rest takes about [0-9.]+s on 1 lane, and all costs about 0[0-9.]* credits, within its budget of ' err)" -ge 1 ] || fail "not told: $(cat err)"
has "$(cat err)" "bourse order replace $(field job json | head -c 8) --at-most 2"
has "$(cat json)" '"replans":[{"percent":'
grep -qE '"at_most":2[,}]' json || fail "no more slots: $(cat json)"
"$bourse" report "$(field job json)" >table || fail "report of drift"
grep -qE '^subtasks took [0-9]+% longer than planned' table || fail "no drift: $(cat table)"
has "$("$bourse" report "$(field job json)" --json)" '"drifts":true'
# So is who watches; where results are too few to say, nobody is told anything.
sed 's/0-15/0-23/; /at_most/d' drift.yaml >two.yaml
"$bourse" submit two.yaml -y -q >id || fail "submit of two"
"$bourse" watch "$(cat id)" >out 2>err || fail "watch of what drifts"
has "$(cat err)" ' longer than planned; planned anew, the rest takes about '
# Of unlike tasks each counts with what was expected of it, not with their mean.
{
    echo 'tasks:'
    for i in 1 2 3 4 5 6; do
        echo "- {name: a$i, expect: 30ms, run: [sleep, \"0.31\"]}"
    done
    echo '- {name: last, expect: 300ms, after: [a1, a6], run: [sleep, "3"]}'
} >unlike.yaml
"$bourse" submit unlike.yaml -y --wait --json >json 2>err || fail "submit of unlike tasks: $(cat err)"
[ "$(field left_ms <(grep -oE '"replans":.*' json))" -ge 2900 ] || fail "the last of unlike tasks takes three seconds: $(cat json)"
"$bourse" run --json -y -- true >json 2>err || fail "run: $(cat err)"
has "$(cat json)" '"replans":[]'

# Attempts that failed are among the attempts, and what they cost is in the cost.
printf 'name: thrice\nretries: 2\nrun: [sh, -c, "sleep 0.2; exit 1"]\n' >thrice.yaml
"$bourse" submit thrice.yaml -y --wait --quiet >id || [ $? -eq 1 ] || fail "submit of thrice ended with $?"
"$bourse" report "$(cat id)" --json >json || fail "report --json of retries"
"$bourse" ps "$(cat id)" --json >ps.json || fail "ps"
[ "$(number charged_micro ps.json)" -gt 0 ] || fail "nothing was charged: $(cat ps.json)"
[ "$(number charged_micro json)" = "$(number charged_micro ps.json)" ] || fail "retries charged: $(cat json ps.json)"
"$bourse" report "$(cat id)" >table || fail "report of retries"
has "$(cat table)" 'attempts that do not count: program failed (3)'

# What tasks hand on is among what went in, once for each that takes it.
cat >tasks.yaml <<'YAML'
limit: 1m
tasks:
- {name: make, files: thousand.txt, run: [sh, -c, 'head -c 5000 /dev/zero >big; head -c 70 /dev/zero >small'], outputs: [big, small]}
- {name: one, from: make/big, run: [sh, -c, 'wc -c <big >n'], outputs: n}
- {name: two, from: [make/big, make/small, one/n], run: [sh, -c, 'rm n small']}
- {name: after, after: two, run: ["true"]}
YAML
head -c 1000 /dev/zero >thousand.txt
"$bourse" submit tasks.yaml -y --wait --quiet >id || fail "tasks: $?"
"$bourse" report "$(cat id)" --json >json || fail "report --json of tasks"
[ "$(field bytes_in json)" -eq $((1000 + 5000 + 5000 + 70 + 5)) ] || fail "what was handed on: $(cat json)"
"$bourse" report "$(cat id)" >table || fail "report of tasks"
grep -qE '^two +provider/[^ ]+ +[^ ]+ +[^ ]+ +5.0s\? +[^ ]+ +-[0-9]+% +5.0 KiB +0' table || fail "a guess that is not called one: $(cat table)"

# Names that are long, and many of them, leave the table within its columns; of many without names each device has a line for each part.
{
    echo 'tasks:'
    for i in $(seq 120); do
        echo "- {name: name-that-is-longer-than-its-column-$i, expect: 10ms, run: [\"true\"]}"
    done
} >long.yaml
"$bourse" submit long.yaml -y --wait --quiet >id || fail "submit of long names"
LC_ALL=C "$bourse" report "$(cat id)" >table || fail "report of long names"
[ "$(grep -cE '^name-that-is-l\.\. +provider/' table)" -eq 100 ] || fail "not 100 lines: $(cat table)"
has "$(cat table)" 'and 20 more subtasks: --json has them'
awk 'length > 100 {exit 1}' table || fail "wider than 100 columns: $(cat table)"
printf 'name: many\narray: 0-99\nexpect: 10ms\nrun: [sh, -c, ":"]\n' >many.yaml
"$bourse" submit many.yaml -y --wait --quiet >id || fail "submit of many"
"$bourse" report "$(cat id)" >table || fail "report of many"
grep -qE '^100 of 100 +provider/[^ ]+ +0s +0s +1.0s +[0-9.]+m?s +[+-][0-9]+% +- +0' table || fail "no share: $(cat table)"

# Tasks that wait for one another and differ in what they take: the plan knows both.
cat >chain.yaml <<'YAML'
tasks:
- {name: long, expect: 300ms, run: [sleep, "0.3"]}
- {name: short, expect: 100ms, run: [sleep, "0.1"]}
- {name: last, expect: 200ms, after: [long, short], run: [sleep, "0.2"]}
YAML
"$bourse" submit chain.yaml -y --wait --quiet >id || fail "chain: $?"
"$bourse" report "$(cat id)" --json >json || fail "report --json of a chain"
has "$(cat json)" '"planned":{"makespan_ns":500000000,'
grep -qE '"best_single":\{"device":0,"makespan_s":0.5' json || fail "no best single device: $(cat json)"
"$bourse" report "$(cat id)" >table || fail "report of a chain"
grep -qE '^last +provider/[^ ]+ +300ms +[0-9.]+m?s +200ms +[0-9.]+m?s +[+-][0-9]+% ' table || fail "no last task: $(cat table)"
grep -qE '^gap +0.0% +-?[0-9.]+% *$' table || fail "no gap of what was measured: $(cat table)"
grep -qE '"timeline":\[\{"index":0,"device":0,"lane":0,"from_ns":[0-9]+,"until_ns":[0-9]+\},\{"index":1,"device":0,"lane":1,' json || fail "a chain's plan: $(cat json)"

# A live view: lines where there is no terminal, the end and its exit status, one value as JSON, ids with --quiet.
got=0
"$bourse" watch "$job" >out || got=$?
[ "$got" -eq 1 ] || fail "watching a job that failed ended with $got"
has "$(cat out)" '11/12 done, 1 failed'
has "$(cat out)" ': failed'
"$bourse" watch >out 2>err || fail "watching nothing"
has "$(cat err)" 'no job of this account is open'
printf 'name: slow\narray: 0-3\nrun: [sleep, "3"]\n' >slow.yaml
"$bourse" submit slow.yaml -y -q >id 2>err || fail "submit: $(cat err)"
"$bourse" watch >out || fail "watch"
has "$(cat out)" "$(head -c 8 id)  4/4 done"
has "$(cat out)" ': done'
"$bourse" watch "$(cat id)" --json >out || fail "watch --json"
has "$(cat out)" '"accepted":4'
[ "$("$bourse" watch "$(cat id)" -q)" = "$(cat id)" ] || fail "watch --quiet"
"$bourse" submit slow.yaml -y -q >id 2>err || fail "submit: $(cat err)"
if command -v script >/dev/null; then # a terminal, which it draws over
    script -qec "'$bourse' watch $(cat id)" /dev/null >out </dev/null || fail "watch on a terminal: $(cat out)"
    has "$(cat out)" 'RUNNING'
    has "$(cat out)" 'PROVIDER'
    grep -q $'\033\\[[0-9]*A' out || fail "nothing was drawn over: $(cat out)"
fi
# Ctrl-C leaves the view, and the job alone.
printf 'name: long\nrun: [sleep, "60"]\n' >long.yaml
"$bourse" submit long.yaml -y -q >id 2>err || fail "submit: $(cat err)"
rm -f out # what it shows is its own
set -m # so that it may be interrupted: what runs in the background of a script ignores it
"$bourse" watch "$(cat id)" >out 2>err &
watch=$!
set +m
until_true 60 grep -q running out || fail "watch shows nothing"
kill -INT "$watch"
got=0
wait "$watch" || got=$?
[ "$got" -eq 130 ] || fail "interrupted, the watch ended with $got"
has "$(cat err)" 'goes on without'
has "$("$bourse" ps "$(cat id)" --json)" '"state":"open"'
"$bourse" cancel "$(cat id)" >out
# The attempt that ran when its job was cancelled has not failed.
cancelled() { "$bourse" report "$(cat id)" --json >json && grep -qE '"failed":0,"late":0,"cancelled":1,' json; }
until_true 60 cancelled || fail "not told as cancelled: $(cat json)"
"$bourse" report "$(cat id)" >table || fail "report of a cancelled job"
grep -qE '^PROVIDER .* ENERGY +CANCELLED$' table || fail "no column of what was cancelled: $(cat table)"
grep -qE '^provider +[^ ]+ +1 +0 +0 .* 1$' table || fail "a cancelled attempt is told as another: $(cat table)"

# Before anything has a result, and while it runs.
"$bourse" submit --anyway --budget 1 -y -q <(printf 'name: never\nneeds: {kind: gpu}\nrun: [sh]\n') >id 2>err || fail "submit: $(cat err)"
has "$("$bourse" report "$(cat id)")" 'nothing has a result yet'
"$bourse" cancel "$(cat id)" >out
# Tasks without edges: the plan has the longest first, as it was shown, and so does the report of it.
{
    echo 'tasks:'
    for name in a b c d; do
        echo "- {name: $name, expect: 100ms, run: [sleep, \"0.1\"]}"
    done
    echo '- {name: long, expect: 600ms, run: [sleep, "0.6"]}'
} >loose.yaml
"$bourse" submit loose.yaml -y --wait --quiet >id || fail "tasks without edges: $?"
"$bourse" report "$(cat id)" --json >json || fail "report of tasks without edges"
has "$(cat json)" '"planned":{"makespan_ns":600000000,'
grep -qE '"gap":0\.0,' json || fail "another plan than the one that was shown: $(cat json)"
"$bourse" report "$(cat id)" >table || fail "report of tasks without edges"
grep -qE '^gap +0.0% ' table || fail "the gap is of another plan: $(cat table)"

# Alone is one device, and not all that ask as much.
agent_join "$work/second" --name second <<<'slots: 2'
price=$(sed -n 's/^price: *//p' "$market/provider/provider.yaml")
sed -i "s/^price:.*/price: $price/" "$work/second/provider.yaml"
"$bin/bourse-provider" run --dir "$work/second" >>"$work/agent-second.log" 2>&1 &
started+=("$!")
until_true 60 offered 4 || fail "the second agent is not there: $(cat agent-second.log)"
printf 'name: two\narray: 0-7\nexpect: 300ms\nrun: [sleep, "0.3"]\n' >two.yaml
"$bourse" plan two.yaml >out || fail "plan over two devices"
grep -qE '^best single +1.2s on ' out || fail "plan: no best single of one device: $(cat out)"
"$bourse" submit two.yaml -y --wait --quiet >id || fail "submit over two devices: $?"
"$bourse" report "$(cat id)" >table || fail "report over two devices"
grep -qE '^makespan +6[0-9]{2}ms ' table || fail "not planned on two devices: $(cat table)"
grep -qE '^best single +1.2s *$' table || fail "two devices are taken for one: $(cat table)"

# Told to have more slots at a time, it is told the budget that these take, too; with both it has them.
printf 'name: narrow\narray: 0-23\nat_most: 1\nexpect: 50ms\nrun: [sleep, "0.45"]\n' >narrow.yaml
advised() { grep -oE 'order replace [0-9a-f]{8} --at-most 4 --budget [0-9.]+' err >advice; }
"$bourse" submit narrow.yaml -y -q >id || fail "submit of narrow"
"$bourse" watch "$(cat id)" >out 2>err &
started+=("$!")
until_true 60 advised || fail "no budget for four slots: $(cat err)"
read -ra advice <advice
"$bourse" "${advice[@]}" >out 2>err.replace || fail "as advised: $(cat err.replace)"
wait "${started[-1]}" || fail "watch of narrow: $(cat out)"
"$bourse" report "$(cat id)" --json >json || fail "report of narrow"
[ "$(grep -oE '"timeline":.*' json | grep -oE '"device":[0-9]+,"lane":[0-9]+' | sort -u | wc -l)" -ge 4 ] || fail "not on four lanes: $(cat json)"
echo "reports of a market: ok"
