#!/usr/bin/env bash
# Live output: what running subtasks print reaches whoever follows their job, in order and whole below the cap. Above
# the cap bytes are left out and counted. A killed follower and a broker that starts anew change nothing for the
# subtasks. BOURSE_LONG=yes compares the pace of the broker's other work with and without a follower.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
fire_begin live "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"
market_up --credits 100 --slots 2 --programs sh,sleep
for name in second third fourth; do
    agent_join "$work/$name" --name "$name" <<<$'slots: 2\nprograms: [sh, sleep]'
    "$bin/bourse-provider" run --dir "$work/$name" >>"$name.log" 2>&1 &
    started+=($!)
done
until_true 60 offered 8 || fail "not all is offered"

submit() { # FILE: prints the id
    "$bourse" submit "$1" -y --anyway --quiet 2>submit.log || fail "submit: $(cat submit.log)"
}
has_lines() { [ "$(grep -c "$2" "$1" || true)" -ge "$3" ]; } # FILE PATTERN COUNT
# Says which lines of `talk` subtasks are missing, twice there, or out of order: each counts from 0.
gaps() { # FILE LINES
    sed -nE 's/^subtask ([0-9]+) \| line ([0-9]+) .*/\1 \2/p' "$1" |
        awk -v lines="$2" '{ if ($2 != next_line[$1] + 0) { print "subtask", $1, "line", $2; exit }
            next_line[$1] = $2 + 1 }
            END { for (i in next_line) { n++; if (next_line[i] != lines) print "subtask", i, "ends at", next_line[i] }
                  if (n != 8) print n + 0, "subtasks" }'
}

# Eight subtasks print 10,000 lines a second together: 125 of each, ten times a second.
seconds=4
cat >talk.yaml <<END
name: talk
array: 1-8
limit: 5m
expect: 10s
budget: 5
run: [sh, -c, 'k=0; while [ \$k -lt $((seconds * 10)) ]; do i=0; while [ \$i -lt 125 ]; do
  echo "line \$((k * 125 + i)) of a subtask that has much to say, and says so"; i=\$((i + 1)); done;
  k=\$((k + 1)); sleep 0.1; done; sleep 2']
END
talk=$(submit talk.yaml)
"$bourse" logs "$talk" --follow >talk.out 2>talk.err || fail "logs: $(cat talk.err)"
[ -z "$(gaps talk.out $((seconds * 1250)))" ] || fail "talk: $(gaps talk.out $((seconds * 1250))): $(cat talk.err)"
! grep -q 'left out' talk.err || fail "something was left out below the cap: $(cat talk.err)"

# A line comes within a second of its printing, stamped by the subtask with its own clock.
cat >stamps.yaml <<'END'
name: stamps
limit: 2m
expect: 10s
budget: 5
run: [sh, -c, 'for i in 1 2 3 4 5; do date +%s%N; sleep 0.7; done']
END
"$bourse" run -y --limit 2m -- sh -c 'for i in 1 2 3 4 5; do date +%s%N; sleep 0.7; done' 2>stamps.err |
    while IFS= read -r stamp; do echo $((($(date +%s%N) - stamp) / 1000000)); done >delays.out
[ "$(wc -l <delays.out)" -eq 5 ] || fail "stamps: $(cat delays.out stamps.err)"
# What comes faster than the agent passes it on is whole all the same, in a pipe and in a file.
much=(sh -c 'head -c 1000000 /dev/zero; sleep 2')
piped=$("$bourse" run -y --budget 1 --limit 1m -- "${much[@]}" 2>much.err | wc -c)
[ "$piped" -eq 1000000 ] || fail "a pipe gets $piped of 1000000 bytes: $(cat much.err)"
"$bourse" run -y --budget 1 --limit 1m -- "${much[@]}" >much.out 2>much.err || fail "into a file: $(cat much.err)"
[ "$(wc -c <much.out)" -eq 1000000 ] || fail "a file gets $(wc -c <much.out) of 1000000 bytes: $(cat much.err)"
! "$bourse" run -y --budget 1 --limit 1m -- "${much[@]}" >/dev/full 2>much.err || fail "a full disk is no failure of run"

delay=$(sort -n delays.out | sed -n 3p)
[ "$delay" -lt 1000 ] || fail "a line takes $delay ms: $(cat delays.out)"

# Above the cap: the program is never held up, the follower hears how much is missing, and the end comes.
cat >flood.yaml <<'END'
name: flood
limit: 2m
expect: 10s
budget: 5
run: [sh, -c, 'i=0; while [ $i -lt 14 ]; do i=$((i + 1)); echo "$0$0$0$0"; done >/tmp/a; k=0; while [ $k -lt 12 ]; do
  cat /tmp/a /tmp/a >/tmp/b; cat /tmp/b >/tmp/a; k=$((k + 1)); done; sleep 1; cat /tmp/a; cat /tmp/a; cat /tmp/a;
  sleep 1; echo the end', "a line of a flood that nobody can read, as fast as it goes, for as long as it goes"]
END
flood=$(submit flood.yaml)
"$bourse" logs "$flood" 0 --follow >flood.out 2>flood.err || fail "logs of the flood: $(cat flood.err)"
grep -qE '^bourse: .*: [0-9]+ bytes left out$' flood.err || fail "nobody says what was left out: $(cat flood.err)"
[ "$(tail -n 1 flood.out)" = 'the end' ] || fail "the flood ends with $(tail -n 1 flood.out | cut -c1-80)"

# JSON has a value a line, and the outcomes at the end.
json=$(submit stamps.yaml)
"$bourse" logs "$json" --follow --json >json.out || fail "logs --json: $(cat json.out)"
has_lines json.out '"stream":"stdout","offset":[0-9]*,"line":"[0-9]*"' 5 || fail "lines in JSON: $(cat json.out)"
tail -n 1 json.out | grep -q '"outcomes":\[{' || fail "the last value has the outcomes: $(tail -n 1 json.out)"

# A follower that is killed and a broker that starts anew: the next follower goes on, and the result has it all.
sed -e 's/^name: .*/name: long/' -e "s/-lt $((seconds * 10)) /-lt 150 /" talk.yaml >long.yaml
long_job=$(submit long.yaml)
"$bourse" logs "$long_job" --follow >killed.out 2>killed.err &
follower=$!
until_true 60 has_lines killed.out '^subtask' 100 || fail "nothing comes: $(cat killed.err)"
kill -9 "$follower"
wait "$follower" 2>/dev/null || true
"$bourse" logs "$long_job" --follow >long.out 2>long.err &
follower=$!
until_true 60 has_lines long.out '^subtask' 100 || fail "nothing comes to the second follower: $(cat long.err)"
broker_kill
ended "$broker" 60 || fail "the broker does not end"
lines=$(wc -l <long.out)
broker_start
broker_await || fail "the broker does not come back"
until_true 60 has_lines long.out '^subtask' $((lines + 1000)) || fail "nothing comes after the restart: $(cat long.err)"
wait "$follower" || fail "the second follower: $(cat long.err)"
sed -nE 's/^subtask ([0-9]+) \| line ([0-9]+) .*/\1 \2/p' long.out |
    awk '{ if ($1 in last && $2 <= last[$1]) { print "subtask", $1, "line", $2, "after", last[$1]; exit } last[$1] = $2 }
        END { for (i in last) if (last[i] != 18749) print "subtask", i, "ends at", last[i] }' >order.out
[ ! -s order.out ] || fail "after the restart: $(cat order.out): $(cat long.err)"
for index in 1 8; do
    "$bourse" logs "$long_job" "$index" >whole.out 2>whole.err || fail "the result: $(cat whole.err)"
    [ "$(head -c 1048576 whole.out | wc -c)" -eq "$(wc -c <whole.out)" ] || fail "the result is larger than is kept"
    [ "$(head -n 1 whole.out | cut -d' ' -f1,2)" = 'line 0' ] || fail "the result begins with $(head -n 1 whole.out)"
done

# A program that ends while the broker is away: whoever follows sees its last lines, which the result does not keep.
# The ends of both streams are more than one message takes.
cat >parting.yaml <<'END'
name: parting
limit: 5m
expect: 10s
budget: 5
run: [sh, -c, 'echo begun; sleep 8; i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); echo "line $i of a subtask that has much to say, and says so"; echo "line $i of its complaints, which are as many, and as long, as what it says" >&2; done; echo parting words; echo last complaint >&2']
END
parting=$(submit parting.yaml)
"$bourse" logs "$parting" 0 --follow >parting.out 2>parting.err &
follower=$!
"$bourse" logs "$parting" 0 --follow --stderr >complaints.out 2>complaints.err &
other=$!
"$bourse" wait "$parting" >wait.out 2>wait.err &
waiting=$!
"$bourse" book --follow >book.out 2>book.err &
started+=("$!")
until_true 60 has_lines parting.out '^begun' 1 || fail "nothing comes of it: $(cat parting.err)"
until_true 60 test -s book.out || fail "the book is not followed: $(cat book.err)"
broker_kill
ended "$broker" 60 || fail "the broker does not end"
sleep 20 # the program ends meanwhile
# Whoever waits or follows hears of the outage, each in its way, and with the address.
grep -q "the broker at .*broker.sock cannot be reached; the job goes on" wait.err || fail "wait says nothing: $(cat wait.err)"
grep -q "broker.sock has not answered for 3 s" book.err || fail "book --follow says nothing: $(cat book.err)"
broker_start
broker_await || fail "the broker does not come back"
wait "$follower" || fail "the follower of what ended: $(cat parting.err)"
wait "$waiting" || fail "wait after the outage: $(cat wait.err)"
wait "$other" || fail "the follower of its complaints: $(cat complaints.err)"
[ "$(tail -n 1 parting.out)" = 'parting words' ] || fail "it ends with $(tail -n 1 parting.out): $(cat parting.err)"
[ "$(tail -n 1 complaints.out)" = 'last complaint' ] ||
    fail "its complaints end with $(tail -n 1 complaints.out): $(cat complaints.err)"

# A program that prints faster than anybody reads is heard from its first line, also through a pipe that ends soon.
# shellcheck disable=SC2016 # $n and $line are the program's
fast='n=0; line=$(printf "%04000d" 7); while :; do n=$((n + 1)); echo "$n $line"; done'
{ timeout 120 "$bourse" run -y --budget 1 -- sh -c "$fast" </dev/null 2>fast.err || true; } | head -n 3 >fast.out
[ "$(cut -d' ' -f1 fast.out | tr '\n' ' ')" = '1 2 3 ' ] || fail "the first lines are $(cut -c1-40 fast.out): $(cat fast.err)"
grep -q 'the output cannot be written: Broken pipe' fast.err || fail "nobody says that the pipe ended: $(cat fast.err)"
"$bourse" cancel last >cancelled.out 2>&1 || fail "the fast program is not cancelled: $(cat cancelled.out fast.err)"

# BOURSE_LONG=yes measures the broker's other work: as many no-ops with and without a follower, in turns, while the
# eight talk. The medians are compared, which asks for a quiet machine.
others="not measured"
if [ "$long" = yes ]; then
    sed -e 's/^name: .*/name: talks/' -e "s/-lt $((seconds * 10)) /-lt 1500 /" -e 's/1-8/1-6/' talk.yaml >talks.yaml
    talks=$(submit talks.yaml)
    running() { "$bourse" ps "$1" --json >ps.json 2>&1 && [ "$(number running ps.json)" -eq "$2" ]; }
    until_true 60 running "$talks" 6 || fail "the talkers do not run: $(cat ps.json)"
    noops() { # prints the milliseconds of a job of no-ops
        local begin
        begin=$(now_ms)
        printf 'name: noops\nexecutor: noop\narray: 1-20000\nexpect: 1ms\nretries: 10\nbudget: 1.00\n' >noops.yaml
        "$bourse" submit noops.yaml -y --wait --quiet >noops.out 2>noops.err || fail "no-ops: $(cat noops.err)"
        echo $(($(now_ms) - begin))
    }
    for _ in 1 2 3 4 5; do
        noops >>alone.ms
        "$bourse" logs "$talks" --follow >talks.out 2>talks.err &
        follower=$!
        until_true 60 has_lines talks.out '^subtask' 100 || fail "the talkers are not heard: $(cat talks.err)"
        noops >>followed.ms
        kill "$follower"
        wait "$follower" 2>/dev/null || true
    done
    "$bourse" cancel "$talks" >/dev/null 2>&1 || fail "the talkers cannot be cancelled"
    alone=$(sort -n alone.ms | sed -n 3p)
    followed=$(sort -n followed.ms | sed -n 3p)
    percent=$((followed * 100 / alone))
    [ "$percent" -le 110 ] || fail "no-ops take $percent % of their time while output is followed: $(paste alone.ms followed.ms)"
    others="$percent % of their time"
fi
market_audit
echo "live output: 8 x 1250 lines a second whole, a line within $delay ms, no-ops beside a follower: $others: ok in $SECONDS s"
