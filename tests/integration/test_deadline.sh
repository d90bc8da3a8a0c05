#!/usr/bin/env bash
# Deadlines with real processes. A job whose plan is late is refused before money is held, with the change that would help.
# A job that misses its deadline ends then, keeps what was accepted, and gives the rest of its budget back.
set -euo pipefail
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$0")/../support/market.sh"
fire_begin deadline "$1"
market_up --credits 50 --slots 2 --programs sh,true,sleep

held_is() { "$bourse" balance --json >balance.json && grep -qE "\"held_micro\": ?$1[,}]" balance.json; }
job_is() { "$bourse" ps "$1" --json >ps.json 2>/dev/null && grep -qE -- "$2" ps.json; }

# Four minutes of work on one slot are late, and on two slots in time.
cat >late.yaml <<'END'
name: late
array: 0-3
at_most: 1
deadline: 3m
budget: 1.00
run: ["true"]
expect: 1m
END
expect 5 'misses the deadline, in [0-9ms.]+, by .*; without at_most it takes 2m.*--anyway' "$bourse" submit late.yaml -y
held_is 0 || fail "the refused job holds money: $(cat balance.json)"
expect 5 'takes 4m.* and misses the deadline' "$bourse" quote late.yaml
expect 5 '"late_ns": ?[1-9][0-9]*' "$bourse" quote late.yaml --json
expect 5 'misses the deadline' "$bourse" explain ./late.yaml
sed 's/^at_most.*/at_most: 2/' late.yaml >even.yaml
expect 0 'takes 2m.* and keeps the deadline' "$bourse" quote even.yaml
expect 0 '"late_ns": ?0' "$bourse" quote even.yaml --json
sed 's/^deadline:.*/deadline: 1m/' late.yaml >hopeless.yaml
expect 5 'misses the deadline.*no other cap or number of slots within the budget helps' "$bourse" submit hopeless.yaml -y
expect 5 'misses the deadline' "$bourse" run -y --expect 2m --deadline 1m -- true
printf '%s\n' 'deadline: 2020-01-01T00:00:00Z' 'run: ["true"]' >past.yaml
expect 2 'deadline: the moment has passed' "$bourse" quote past.yaml
expect 2 'at most 366d' "$bourse" run -y --deadline 367d -- true
printf '%s\n' "deadline: $(($(date +%Y) + 3))-01-01T00:00:00Z" 'run: ["true"]' >distant.yaml
expect 2 'deadline: the moment is more than 366d from now' "$bourse" quote distant.yaml
expect 2 'deadline: the moment is more than 366d from now' "$bourse" submit distant.yaml -y

# The option takes what the key takes.
expect 2 'deadline: the moment has passed' "$bourse" run -y --deadline 2020-01-01T00:00:00Z -- true
expect 2 "--deadline: 'tomorrow' is neither a time from now, as in 2h, nor a moment" "$bourse" run -y --deadline tomorrow -- true
expect 2 "--deadline: '9999-01-01T00:00:00Z' is no moment; .*years 1970 to 2199" "$bourse" run -y --deadline 9999-01-01T00:00:00Z -- true
expect 0 'keeps the deadline, in (1h|2h)' "$bourse" run -y --deadline "$(date -u -d '2 hours' +%FT%TZ)" --expect 1s -- sh -c 'exit 0'
expect 0 '4 of 4 accepted' "$bourse" submit late.yaml -y --anyway --wait # the last: the market measures the work

# A job that misses its deadline, although its plan keeps it.
cat >missed.yaml <<'END'
name: missed
array: 0-2
deadline: 60s
budget: 1.00
run: [sh, -c, '[ {index} -eq 0 ] || exec sleep 3600; echo kept >"{out}"']
outputs: "{out}"
expect: 1s
END
expect 0 '' "$bourse" submit missed.yaml -y --quiet
missed=$(cat out)
job_is "$missed" '"deadline_ms":[1-9]' || fail "its row has no deadline: $(cat ps.json)"
until_true 60 job_is "$missed" '"accepted":1' || fail "nothing was accepted: $(cat ps.json)"

# At the deadline the job ends. What was accepted is there, and nothing is held any more.
expect 5 'the deadline passed' "$bourse" wait "$missed" --timeout 5m
job_is "$missed" '"state":"cancelled"' || fail "the job is not cancelled: $(cat ps.json)"
job_is "$missed" '"accepted":1' || fail "the accepted result is gone: $(cat ps.json)"
job_is "$missed" '"cancelled":2' || fail "the others are not cancelled: $(cat ps.json)"
job_is "$missed" 'the deadline passed' || fail "the row does not say why: $(cat ps.json)"
held_is 0 || fail "money stays held: $(cat balance.json)"
expect 0 'the deadline passed' "$bourse" ps
expect 0 'the deadline passed' "$bourse" explain "$missed"
expect 1 '2 of 3 subtasks of job' "$bourse" fetch "$missed" -o kept
[ "$(cat kept/0/0)" = kept ] || fail "the accepted output is not there"

# The rest of the job gets a deadline only from the option.
expect 2 'at most 366d' "$bourse" resume "$missed" -y --deadline 367d
expect 0 '' "$bourse" resume "$missed" -y --quiet
rest=$(cat out)
! job_is "$rest" '"deadline_ms"' || fail "the rest has a deadline that has passed: $(cat ps.json)"
expect 0 '' "$bourse" cancel "$rest"

cat >tight.yaml <<'END'
name: tight
array: 0-5
at_most: 1
deadline: 10s
budget: 1.00
run: [sleep, '3']
expect: 3s
END

# A job of which nothing can end in time costs nothing, and says why it waits.
sed 's/^name:.*/name: hopeless/; s/^run:.*/run: [sh, -c, exit]/; s/^expect:.*/expect: 1h/; s/^deadline:.*/deadline: 30s/' tight.yaml >hopeless.yaml
expect 0 '' "$bourse" submit hopeless.yaml -y --quiet --anyway
hopeless=$(cat out)
job_is "$hopeless" '"reason":"what waits takes too long' || fail "the job does not say why it waits: $(cat ps.json)"
expect 0 'a subtask takes at least 1h on the one within the limit, and the deadline is in .*what cannot end in time is not started' "$bourse" explain "$hopeless"
expect 5 'the deadline passed' "$bourse" wait "$hopeless" --timeout 5m
job_is "$hopeless" '"accepted":0,' || fail "something was accepted: $(cat ps.json)"
job_is "$hopeless" '"charged_micro":0,' || fail "something was paid: $(cat ps.json)"

# Nothing is started that cannot end in time. Of six subtasks of 3 s, one slot ends three at most, and no attempt is lost to the
# deadline.
expect 0 '' "$bourse" submit tight.yaml -y --quiet --anyway
tight=$(cat out)
expect 5 'the deadline passed' "$bourse" wait "$tight" --timeout 5m
job_is "$tight" '"accepted":[1-3],' || fail "not one to three subtasks: $(cat ps.json)"
"$bourse" report "$tight" --json >report.json || fail "report"
grep -qE '"cancelled": ?0[,}]' report.json || fail "an attempt was lost to the deadline: $(cat report.json)"

# What is foretold of a job that will be late, and a later deadline.
sed 's/^name:.*/name: slow/; s/^deadline:.*/deadline: 40s/; s/^array:.*/array: 0-19/' tight.yaml >slow.yaml
expect 0 '' "$bourse" submit slow.yaml -y --quiet --anyway
slow=$(cat out)
until_true 60 job_is "$slow" '"accepted":[1-9]' || fail "nothing was accepted: $(cat ps.json)"
expect 0 'at the present speed \([1-9] of 20 done, 1 running on 1 slot\) the job would be done about [0-9: -]+, [0-9ms. ]+ after the deadline' "$bourse" explain "$slow"
expect 0 "order replace ${slow:0:8} --deadline [0-9]+[sm]. gives it time enough" "$bourse" explain "$slow"
expect 0 '"forecast": ?\{"ends_ms": ?[1-9][0-9]*, ?"late_ms": ?[1-9][0-9]*, ?"done": ?[1-9]' "$bourse" explain "$slow" --json
timeout -s INT 4 "$bourse" watch "$slow" </dev/null >watch.log 2>&1 || true
grep -q 'at the present speed .* after the deadline; .bourse explain' watch.log || fail "watch foretells nothing: $(cat watch.log)"
expect 2 'order replace: ' "$bourse" order replace "$slow" --deadline 367d
expect 0 '' "$bourse" order replace "$slow" --deadline 5m
expect 0 'would be done about .* before the deadline' "$bourse" explain "$slow"
job_is "$slow" '"late_ms":0' || fail "the job is late all the same: $(cat ps.json)"
expect 0 '' "$bourse" cancel "$slow"

# A guess refuses nothing, and the offer says that it is one.
printf '%s\n' 'deadline: 4s' "run: [sleep, '0']" >guess.yaml
expect 0 'takes 5[.0]*s \(a guess; say the time with `expect`\) and misses the deadline' "$bourse" quote guess.yaml
expect 0 '"guess": ?true' "$bourse" quote guess.yaml --json
expect 5 'takes 5[.0]*s and misses the deadline' "$bourse" run -y --expect 5s --deadline 4s -- sleep 0
expect 0 '' "$bourse" submit guess.yaml -y --quiet
"$bourse" wait "$(cat out)" --quiet >wait.txt || [ $? -eq 5 ] || fail "the guessed job ends with neither 0 nor 5"
market_audit
echo "deadlines kept, missed and refused"
