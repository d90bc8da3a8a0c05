#!/usr/bin/env bash
# Commands on several jobs and on single subtasks: wait, cancel, fetch JOB/INDEX, the filters of ps, and the numbers of an
# array, which are those that the user wrote. What was cancelled is nowhere called failed.
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin commands "$1"
market_up --credits 100 --slots 2

submit() { "$bourse" submit "$@" -y --quiet 2>submit.log || fail "submit $*: $(cat submit.log)"; }
is_running() { "$bourse" ps "$1" --json 2>/dev/null | grep -qE '"running":[1-9]'; }
sleeper() { # NAME: two subtasks that run until they are cancelled
    printf 'name: %s\narray: 1-2\nrun: [sleep, "1000"]\nlimit: 30m\nexpect: 1ms\nbudget: 1\n' "$1" >"$1.yaml"
    submit "$1.yaml"
}

# An array is known by the numbers that the user wrote.
cat >numbers.yaml <<'END'
name: numbers
array: 5-11:2
run: [sh, -c, 'echo "number {index}"; echo {index} >square; test {index} != 9']
outputs: [square]
expect: 1ms
error_limit: 100
END
expect 0 '^5 +[a-z]' "$bourse" plan numbers.yaml
grep -qE '^11 +[a-z]' out || fail "the plan has no subtask 11: $(cat out)"
submit numbers.yaml >id
numbers=$(cat id)
expect 1 "^job ${numbers:0:8} failed: 3 of 4 accepted, 1 failed, [0-9.]+ credits; some subtasks failed$" "$bourse" wait numbers
expect 0 '^number 7$' "$bourse" logs last 7
expect 0 '^number 11$' "$bourse" logs last/11
expect 0 '^==> subtask 5 <==$' "$bourse" logs last
grep -qx '==> subtask 11 <==' out || fail "logs names no subtask 11: $(cat out)"
! grep -q 'subtask 0' out || fail "logs counts from 0: $(cat out)"
expect 0 '^subtask 9: program failed: ' "$bourse" logs last/9
for index in 0 6 13; do
    expect 3 "'$index' is no subtask of job ${numbers:0:8}; its subtasks are 5 to 11" "$bourse" logs "last/$index"
done
expect 0 '^ *9 +failed +1 ' "$bourse" ps last
expect 0 '"index":2,"state":"failed",.*"subtask":"9"' "$bourse" ps last --json
expect 0 'the job has ended: subtask 9 failed' "$bourse" explain last/9
expect 0 'the job has ended: subtask 11 was accepted' "$bourse" explain last/11
expect 0 '"subtask":"11"' "$bourse" logs last --json
expect 0 '^11 +[a-z]' "$bourse" report last
expect 0 '' "$bourse" receipt last/11 -o proofs

# Outputs of single subtasks; nothing else is fetched, and a repeated fetch brings the rest.
expect 0 '1 file of 1 subtask in some .1 fetched' "$bourse" fetch last/7 -o some
[ "$(grep -r . some)" = some/7/square:7 ] || fail "outputs: $(find some)"
expect 0 '2 files of 2 subtasks in some .1 fetched, 1 there already' "$bourse" fetch "$numbers/11" last/7 "$numbers/11" -o some
[ "$(find some -type f | sort | tr '\n' ' ')" = 'some/11/square some/7/square ' ] || fail "outputs: $(find some)"
expect 1 "1 of the 2 subtasks of job ${numbers:0:8} that you named left no outputs" "$bourse" fetch last 9 5 -o some
[ "$(cat some/5/square)" = 5 ] || fail "outputs: $(find some)"
expect 1 '"subtasks":1,.*"missing":1' "$bourse" fetch last/5 last/9 -o some --json
expect 1 "^nothing to fetch: subtask 9 of job ${numbers:0:8} is not accepted; .bourse explain ${numbers:0:8}/9. says why$" \
    "$bourse" fetch last/9 -o some
! grep -q 'no files' out err || fail "fetch says it twice: $(cat out err)"
expect 3 "'6' is no subtask" "$bourse" fetch last/5 last/6 -o none
[ ! -e none ] || fail "a wrong index left a folder"
expect 1 '3 files of 3 subtasks in some .0 fetched, 3 there already' "$bourse" fetch last -o some

# The rest of an array keeps its numbers, one that counts from 0, too.
expect 1 '' "$bourse" resume last -y --wait
expect 0 '^subtask 9: program failed' "$bourse" logs last/9
expect 3 "its only subtask is 9" "$bourse" logs last/0
sed 's/^name:.*/name: plain/; s/^array:.*/array: 0-3/; s/!= 9/!= 2/' numbers.yaml >plain.yaml
submit plain.yaml >/dev/null
expect 1 '' "$bourse" wait last --quiet
expect 1 '' "$bourse" resume last -y --wait
expect 0 '^subtask 2: program failed' "$bourse" logs last/2
printf '3\n4\n5\n' >lines.txt
printf 'name: lines\nlines: lines.txt\nrun: [echo, "line {line}"]\nexpect: 1ms\n' >lines.yaml
submit lines.yaml >/dev/null
expect 0 '' "$bourse" wait last
expect 0 '^line 3$' "$bourse" logs last/0 # lines are no array
expect 3 'its subtasks are 0 to 2' "$bourse" logs last/4
expect 2 'is another job than' "$bourse" fetch last/0 "$numbers/5"

# Several jobs at once: the worst end counts, and each has a line as it ends.
printf 'name: good\nrun: ["true"]\nexpect: 1ms\n' >good.yaml
submit good.yaml >good
expect 1 "^job $(head -c 8 good) done: 1 of 1 accepted, 0 failed" "$bourse" wait "$numbers" good "$(cat good)"
[ "$(wc -l <out)" -eq 2 ] || fail "a line for each job: $(cat out)"
expect 0 "^$(cat good)$" "$bourse" wait good --quiet
expect 1 '"jobs":\[\{"job":"[0-9a-f]{32}","name":"good","state":"done".*"name":"numbers","state":"failed"' \
    "$bourse" wait good "$numbers" --json
expect 3 "no job has the id or name 'nobody'" "$bourse" wait good nobody
# Each command that takes a job takes its name.
expect 0 "^$(cat good)$" "$bourse" ps good --quiet
expect 0 '' "$bourse" logs good
expect 3 "no job has the id or name 'nobody'" "$bourse" ps nobody
expect 3 "no job has the id or name 'ffffffff'" "$bourse" logs ffffffff
expect 3 "no job has the id or name 'nobody'" "$bourse" receipt nobody
expect 0 'tlog-proof' "$bourse" receipt good
expect 2 'subtasks: give one.s INDEX or name, or --all' "$bourse" receipt "$numbers"
expect 2 'wait needs JOB' "$bourse" wait
first=$(sleeper first)
until_true 60 is_running "$first" || fail "the job does not run"
second=$(sleeper twin)
expect 0 "^$second$" "$bourse" ps twin --quiet
third=$(sleeper twin)
expect 2 "2 open jobs have the name 'twin'" "$bourse" explain twin
expect 0 "^$(cat good)$" "$bourse" wait twin good --any --quiet
expect 8 '3 of 4 jobs have not ended' "$bourse" wait first twin good --wait-at-most 1500ms
grep -q 'the jobs go on without this command' err || fail "it does not say that jobs go on: $(cat err)"

# The filters of ps, alone and together.
expect 0 "^$third$" "$bourse" ps --state open --quiet -n 1
expect 0 '' "$bourse" ps --state running --state waiting --quiet
[ "$(sort out)" = "$(printf '%s\n' "$first" "$second" "$third" | sort)" ] || fail "open jobs: $(cat out)"
expect 0 '' "$bourse" ps --name 'tw?n' --quiet
[ "$(sort out)" = "$(printf '%s\n' "$second" "$third" | sort)" ] || fail "jobs by name: $(cat out)"
expect 0 '"jobs":\[\]' "$bourse" ps --state 'done' --name 'num*' --json
expect 0 "^$numbers$" "$bourse" ps --state failed --name numbers --since 1d --quiet
expect 0 '"jobs":\[\]' "$bourse" ps --since 1ms --json
expect 2 "'finished' is none of open" "$bourse" ps --state finished
expect 2 'leave out .last. or the options' "$bourse" ps last --state 'done'
expect 2 '^bourse: -n: 0 is outside 1 to 1000' "$bourse" ps -n 0
expect 2 '^bourse: --limit: 0 is outside 1 to 1000' "$bourse" ps --limit 0

# Cancelled is not failed: not the job, and none of its subtasks.
expect 0 '' "$bourse" cancel first
expect 9 "^job ${first:0:8} cancelled: 0 of 2 accepted, 0 failed, 2 cancelled, " "$bourse" wait "$first"
expect 0 '^ *1 +cancelled +1 ' "$bourse" ps "$first"
! grep -q '[0-9] *failed' out || fail "what was cancelled has failed: $(cat out)"
expect 0 '"failed":0,"cancelled":2,.*"index":0,"state":"cancelled"' "$bourse" ps "$first" --json
expect 0 'the job has ended: subtask 1 was cancelled, at try 1' "$bourse" explain "$first/1"
printf 'name: graph\nlimit: 30m\nexpect: 1ms\nbudget: 1\ntasks:\n- {name: one, run: [sleep, "1000"]}\n- {name: two, run: ["true"], after: one}\n' >graph.yaml
expect 0 '' "$bourse" cancel twin # both of that name
[ "$(wc -l <out)" -eq 2 ] || fail "both twins: $(cat out)"
expect 9 '' "$bourse" wait "$second" "$third"
submit graph.yaml >graph
until_true 60 is_running "$(cat graph)" || fail "the graph does not run"

# cancel --all asks; what has ended is refused, and the others are cancelled.
expect 2 '1 open job would be cancelled, and there is no terminal to ask on; say -y' "$bourse" cancel --all
expect 0 '"state":"open"' "$bourse" ps "$(cat graph)" --json
expect 2 'one JOB or more, or --all' "$bourse" cancel
expect 2 'one JOB or more, or --all' "$bourse" cancel --all last
fourth=$(sleeper fourth)
expect 4 "job ${first:0:8} has ended: cancelled" "$bourse" cancel "$first" fourth
expect 9 '' "$bourse" wait "$fourth"
expect 4 '"jobs":\[\{"job":"[0-9a-f]*","cancelled":false,"text":"job [0-9a-f]* has ended' "$bourse" cancel "$first" "$fourth" --json
expect 0 "^$(cat graph)$" "$bourse" cancel --all -y --quiet
expect 9 '' "$bourse" wait graph
expect 0 '^one +cancelled +1 ' "$bourse" ps "$(cat graph)"
expect 0 'no job of this account is open' "$bourse" cancel --all -y

# A wait outlives the broker: it goes on when the broker is back.
first=$(sleeper stays)
second=$(sleeper too)
"$bourse" wait stays too --progress --timeout 3s >wait.out 2>wait.err &
waits=$!
started+=("$waits")
until_true 60 grep -q '0 of 2 jobs ended' wait.err || fail "no progress: $(cat wait.err)"
broker_kill
until_true 60 grep -q 'cannot be reached; the jobs go on' wait.err || fail "the broker is not missed: $(cat wait.err)"
broker_start
broker_await || fail "the broker does not come back"
expect 0 '' "$bourse" cancel stays too
got=0
wait "$waits" || got=$?
[ "$got" -eq 9 ] || fail "the wait ended with $got: $(cat wait.out wait.err)"
[ "$(cut -d' ' -f2 wait.out | sort)" = "$(printf '%s\n' "${first:0:8}" "${second:0:8}" | sort)" ] || fail "the ends: $(cat wait.out)"
until_true 60 offered 1 || fail "the agent does not come back"

# A word that may mean two jobs is refused: the beginning of one's id is another's name.
printf 'name: "%s"\nrun: ["true"]\nexpect: 1ms\n' "${first:0:6}" >name.yaml
submit name.yaml >/dev/null
expect 2 "begins the id of job ${first:0:8} and is the name of job" "$bourse" wait "${first:0:6}"
expect 0 '' "$bourse" wait last

# A cap or a value of the command line stands in place of the file's.
printf 'name: capped\ncap: 0.000001\nrun: ["true"]\nexpect: 1ms\n' >capped.yaml
expect 0 'price +at most 0.50 credits per slot-hour$' "$bourse" submit capped.yaml -y --verbose --wait --cap 0.50 --wait-at-most 1m
grep -q ' done: 1 of 1' err || fail "the cap of the file holds: $(cat err)"
expect 5 'bf16' "$bourse" submit capped.yaml -y --value '0.02 per bf16 TFLOP-hour'
expect 2 'give --cap or --value, not both' "$bourse" submit capped.yaml -y --cap 1 --value '0.02 per bf16 TFLOP-hour'
expect 2 'cap: "x" is not an amount' "$bourse" submit capped.yaml -y --cap x

# A job after others is submitted when they have succeeded, and never when one has not.
first=$(sleeper before)
"$bourse" submit good.yaml -y --quiet --after before --wait >after.id 2>after.log &
waits=$!
started+=("$waits")
expect 8 '1 of 1 job has not ended' "$bourse" run -y --after before --wait-at-most 1s -- true
grep -q 'nothing was submitted' err || fail "it does not say that nothing was submitted: $(cat err)"
[ ! -s after.id ] || fail "the job did not wait: $(cat after.id)"
expect 0 '' "$bourse" cancel before
got=0
wait "$waits" || got=$?
[ "$got:$(cat after.id)" = 9: ] || fail "after a cancel the status is $got: $(cat after.id after.log)"
grep -q "job ${first:0:8} ended as cancelled, so the job after it does not begin; nothing was submitted" after.log ||
    fail "it does not say why: $(cat after.log)"
expect 9 "job ${numbers:0:8} ended as failed: some subtasks failed" "$bourse" submit good.yaml -y --after "$numbers"
expect 0 ' done: 1 of 1' "$bourse" submit good.yaml -y --wait --after good --after lines
expect 0 '^next$' "$bourse" run -y --after last -- echo next
expect 2 'after needs -y' "$bourse" submit good.yaml --after last
{ cat good.yaml; echo 'after: [good, lines]'; } >following.yaml
expect 0 ' done: 1 of 1' "$bourse" submit following.yaml -y --wait
expect 2 'after: needs -y' "$bourse" submit following.yaml
{ cat good.yaml; echo "after: $numbers"; } >following.yaml
expect 9 "job ${numbers:0:8} ended as failed: some subtasks failed" "$bourse" submit following.yaml -y
expect 9 "job ${numbers:0:8} ended as failed" "$bourse" submit following.yaml -y --after last
{ cat good.yaml; echo 'after: nobody'; } >following.yaml
expect 3 "no job has the id or name 'nobody'" "$bourse" submit following.yaml -y
{ cat good.yaml; echo 'after: {a: b}'; } >following.yaml
expect 2 'following.yaml:[0-9]*: ' "$bourse" submit following.yaml -y
expect 3 "no job has the id or name 'nobody'" "$bourse" submit good.yaml -y --after nobody
expect 2 'missing.yaml' "$bourse" submit missing.yaml -y --after last

market_audit
echo "several jobs waited for and cancelled, single subtasks fetched, arrays by their numbers: ok"
