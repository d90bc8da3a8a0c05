#!/usr/bin/env bash
# A diamond of four programs that pass files on, in a market of its own: in order, by name, and when one fails the others that
# do not need it go on, those that do are cancelled, and what is left is finished by another job.
set -euo pipefail
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$0")/../support/market.sh"
fire_begin tasks "$1"
market_up --credits 50

seq 1000 -1 1 >numbers.txt
# diamond SHELL: the four tasks, the last one first; `right` begins with SHELL, which may fail.
diamond() {
    cat <<END
name: sort
limit: 1m
expect: 1s
tasks:
- name: join
  from: {a.txt: left, b.txt: right/sorted}
  run: [sh, -c, 'sort -n -m a.txt b.txt >all.txt; wc -l <all.txt']
  outputs: all.txt
- name: left
  from: split/half-aa
  run: [sh, -c, 'sort -n half-aa >"{out}"']
  outputs: "{out}"
- name: right
  from: [split/half-ab]
  after: split
  run: [sh, -c, '$1 sort -n half-ab >sorted']
  outputs: sorted
- name: split
  files: numbers.txt
  run: [sh, -c, 'head -n 500 numbers.txt >half-aa; tail -n 500 numbers.txt >half-ab; echo split']
  outputs: [half-aa, half-ab]
END
}

diamond '' >good.yaml
expect 0 'longest path +3.0s' "$bourse" plan good.yaml
expect 0 '' "$bourse" submit good.yaml -y --wait -o good.d
sort -n numbers.txt | cmp - good.d/join/all.txt || fail "the diamond's result"
sort -n good.d/split/half-ab | cmp - good.d/right/sorted || fail "a file between"
[ -s good.d/left/left ] || fail "the free name of a task: $(find good.d)"
expect 0 '^1000$' "$bourse" logs last join
expect 0 '==> task split <==' "$bourse" logs last
expect 0 'join +done' "$bourse" ps last
expect 0 '"name":"right"' "$bourse" ps last --json
expect 3 "no task 'nobody'; there are [a-z]+, [a-z]+, [a-z]+, [a-z]+$" "$bourse" logs last nobody
expect 3 "'4' is no subtask of job [0-9a-f]*; its subtasks are 0 to 3" "$bourse" logs last 4
expect 4 'STATE: job [0-9a-f]* has ended: done at .*, 4 of 4 subtasks accepted' "$bourse" cancel last
expect 4 '"exit":4,"code":33' "$bourse" cancel last --json
expect 3 'job [0-9a-f]* has no bid in the book: it is done' "$bourse" order replace last --cap 1
# Parts that would be let the same devices have one line together, and no slots that are not everybody's.
sed 's/^- name: left/&\n  slots: 2/; s/^- name: right/&\n  limit: 2m/' good.yaml >parts.yaml
expect 0 'in 4 parts' "$bourse" plan parts.yaml
! grep -q 'slots\? each' out || fail "parts differ in slots: $(cat out)"
[ "$(grep -c 'slots\? of 1 provider' out)" -eq 1 ] || fail "an offer is there twice: $(cat out)"
expect 3 'nothing is left' "$bourse" resume last -y
# In order: nobody began before what he waits for had been settled (indexes are split, right, left, join or alike).
sqlite3 -readonly "$market/ledger.db" \
    "SELECT MAX(CASE WHEN idx = 0 THEN seq END) < MIN(CASE WHEN idx > 0 THEN seq END)
            AND MAX(CASE WHEN idx < 3 THEN seq END) < MIN(CASE WHEN idx = 3 THEN seq END)
     FROM (SELECT idx, row_number() OVER (ORDER BY rowid) AS seq FROM results WHERE status = 0)" >order.txt
[ "$(cat order.txt)" = 1 ] || fail "results came out of order"

# Two of a lane: the one runs, the other is next, and nobody says of both that they run.
cat >line.yaml <<END
name: line
at_most: 1
limit: 2m
tasks:
$(for task in a b c d e f; do echo "  - {name: $task, run: [sleep, '60']}"; done)
END
line=$("$bourse" submit line.yaml -y --quiet) || fail "submit line.yaml"
runs() { "$bourse" ps "$line" >out 2>err && grep -qE '^[a-f] +running' out; }
until_true 60 runs || fail "no task of $line runs: $(cat out err)"
[ "$(grep -cE '^[a-f] +running' out)" -eq 1 ] || fail "one lane runs several: $(cat out)"
grep -qE '^[a-f] +queued +1 +next on its device' out || fail "none is queued: $(cat out)"
expect 0 ': [0-9] waits? for a device, 1 runs, [0-9] queued there' "$bourse" explain "$line"
expect 0 '"running":1,' "$bourse" explain "$line" --json
"$bourse" ps "$line" --json >ps.json || fail "ps --json"
[ "$(grep -o '"state":"queued"' ps.json | wc -l)" -eq "$(grep -oE '"queued":[0-9]+' ps.json | cut -d: -f2)" ] ||
    fail "queued tasks and their number differ: $(cat ps.json)"
expect 0 '.' "$bourse" cancel "$line"

# One task fails until a moment that is soon: its descendant is cancelled, its sibling is not.
at=$(($(date +%s) + 12))
diamond "[ \$(date +%s) -ge $at ] \\&\\&" | sed 's/\\&/\&/g' >bad.yaml
expect 1 'task right: program failed' "$bourse" submit bad.yaml -y --wait -o bad.d
bad=$("$bourse" ps last --quiet)
expect 0 'join +cancelled' "$bourse" ps last
grep -qE 'right +failed' out || fail "the task that failed: $(cat out)"
grep -qE 'left +done' out || fail "the other branch: $(cat out)"
expect 0 'task right: program failed' "$bourse" logs last right
[ ! -e bad.d/join ] || fail "a cancelled task left something"
while [ "$(date +%s)" -lt "$at" ]; do sleep 0.2; done # the moment
expect 0 '2 of 2 accepted' "$bourse" resume last -y --wait -o bad.d
expect 0 "continues job ${bad:0:8}" "$bourse" ps last
sort -n numbers.txt | cmp - bad.d/join/all.txt || fail "the result after all"

# Why a job waits is said task by task, by name: what runs nowhere, and what waits for it.
cat >odd.yaml <<END
name: odd
limit: 1m
expect: 1s
cap: 1
tasks:
- {name: early, run: [sh, -c, 'echo early']}
- {name: learn, run: ["true"], after: early, needs: {kind: tpu}}
- {name: infer, run: ["true"], after: early, needs: {kind: npu}}
- {name: tell, run: ["true"], after: [learn, infer]}
END
odd=$("$bourse" submit odd.yaml -y --anyway --budget 1 --quiet 2>err) || fail "odd.yaml: $(cat err)"
early_is_done() { "$bourse" ps "$odd" >ps.txt 2>/dev/null && grep -qE 'early +done' ps.txt; }
until_true 60 early_is_done || fail "the first task does not run: $(cat ps.txt)"
expect 0 '^learn: 1 waits for a device, 0 run$' "$bourse" explain "$odd"
for line in 'fails on kind = "tpu"' '^infer: 1 waits for a device' 'fails on kind = "npu"' '^tell: after learn'; do
    grep -qE -- "$line" out || fail "explain does not say '$line': $(cat out)"
done
! grep -q early out || fail "explain speaks of what is done: $(cat out)"
expect 0 '"names":\["learn"\]' "$bourse" explain "$odd" --json
expect 0 '"names":\["infer"\]' "$bourse" explain "$odd" --json
expect 0 '"state":"waiting".*"name":"tell"' "$bourse" explain "$odd" --json
expect 0 'task [a-z]+ waits for a lease: .*fails on kind = "tpu"' "$bourse" explain "$odd/1"
expect 0 '^task tell waits for 2 others, which have to be accepted first' "$bourse" explain "$odd/3"
expect 0 '^task [a-z]+ is accepted' "$bourse" explain "${odd:0:8}/0"
expect 0 '"subtask":\{"index":2,"state":"waiting","part":[12],"tries":0,"waits_on":0,' "$bourse" explain "$odd/2" --json
expect 3 '.' "$bourse" explain "$odd/4"
expect 0 '^task tell waits for 2 others' "$bourse" explain "$odd/tell"
expect 3 "no task 'nobody'; there are early, learn, infer, tell" "$bourse" explain "$odd/nobody"
expect 2 'nowhere/tell: cannot be opened' "$bourse" explain nowhere/tell
"$bourse" order list --quiet >bids.txt || fail "order list"
[ "$(wc -l <bids.txt)" -ge 2 ] || fail "one bid for each part: $(cat bids.txt)"
while read -r bid; do # each of them ends with the job, whose id it may not be
    expect 2 "bourse cancel ${odd:0:8}" "$bourse" order cancel "$bid"
    expect 0 'fails? on|learn: 1 waits|devices? fits?|nothing waits for a device|nothing is left to do' "$bourse" explain "$bid"
done <bids.txt
expect 0 '' "$bourse" cancel "$odd"
expect 0 'the job has ended' "$bourse" explain "$odd"
expect 0 'the job has ended' "$bourse" explain "$odd/1"

# Of a job without names, too, its subtasks that failed are listed with their causes: the first ones, and how many more.
printf 'name: ends\narray: 1-40\nrun: [sh, -c, "test {index} = 3 || exit {index}"]\nexpect: 1ms\nretries: 0\nerror_limit: 100\nbudget: 1.00\n' >ends.yaml
ends=$("$bourse" submit ends.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
has_ended() { "$bourse" ps "$1" --json 2>/dev/null | grep -qE '"state":"(done|failed)","reason"'; }
until_true 60 has_ended "$ends" || fail "it does not end: $("$bourse" ps "$ends")"
expect 0 'bourse ps .* shows why subtasks were not accepted' "$bourse" explain "$ends"
expect 0 '^ *2  *failed  *1 .* program failed: .*2' "$bourse" ps "$ends"
expect 0 '^7 more failed; .bourse logs' "$bourse" ps "$ends"
! grep -qE '^ *3  *failed' out || fail "what was accepted has failed: $(cat out)"
expect 0 '"failures":\[\{"index":0,"state":"failed","tries":1,"busy_ns":[0-9]+,"why":"program failed.*"failures_left_out":7' "$bourse" ps "$ends" --json
expect 0 'the job has ended: subtask 2 failed, at try 1: program failed: ' "$bourse" explain "$ends/2"
expect 0 'the job has ended: subtask 3 was accepted' "$bourse" explain "$ends/3"
expect 0 '"subtask":\{"index":1,"state":"failed","tries":1,"why":"program failed: ' "$bourse" explain "$ends/2" --json
expect 3 "'99' is no subtask of job .*; its subtasks are 1 to 40" "$bourse" explain "$ends/99"

# Mistakes cost nothing.
printf 'run: [x]\ntasks:\n- {name: a, after: b}\n- {name: b, after: a}\n' >circle.yaml
expect 2 'circle.yaml:3: name: the tasks wait in a circle: a after b after a' "$bourse" submit circle.yaml -y

# A file that was promised and is not there: its task says so, those after it never run.
cat >empty.yaml <<END
limit: 1m
run: ["true"]
tasks:
- {name: first, outputs: nothing}
- {name: second, from: first}
END
expect 1 'task first: output missing' "$bourse" submit empty.yaml -y --wait
expect 0 'second +cancelled' "$bourse" ps last

# Two hundred no-ops in ten layers.
{
    echo 'executor: noop'
    echo 'expect: 1ms'
    echo 'tasks:'
    for i in $(seq 0 199); do
        [ "$i" -lt 20 ] && echo "- {name: t$i}" || echo "- {name: t$i, after: [t$((i - 20)), t$(((i - 20) / 20 * 20))]}"
    done
} >layers.yaml
expect 0 '200 of 200 accepted' "$bourse" submit layers.yaml -y --wait
market_audit
echo "diamond done, failed, resumed; 200 tasks in layers"
