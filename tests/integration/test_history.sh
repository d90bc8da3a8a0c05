#!/usr/bin/env bash
# What work was measured to take: by the broker, over a restart of it, and told to who plans the same work again.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
maker=$(dirname "$(realpath "$0")")/../support/matrix.pl
fire_begin history "$1" bourse-tensor
market_up --slots 2
broker_stop() {
    kill "$broker"
    ended "$broker" 60 || fail "the broker does not stop"
}

cat >job.yaml <<'YAML'
name: naps
array: 0-11
run: [sh, -c, 'sleep 0.3', sh, "{index}"]
YAML
has "$("$bourse" history job.yaml 2>&1)" 'nothing of its work was measured'
"$bourse" plan job.yaml --json >json || fail "plan"
has "$(cat json)" '"source":"guess"'
"$bourse" submit job.yaml -y --wait --quiet >id || fail "submit ended with $?"
"$bourse" history "$(cat id)" --json >json || fail "history of a job"
for name in last "$(cut -c 1-8 id)"; do
    "$bourse" history "$name" --json | cmp - json || fail "history $name"
done
# Of 12 outliers are left out, never half.
[ "$(number samples json)" -ge 6 ] || fail "not measured: $(cat json)"
[ "$(number median_ns json)" -ge 300000000 ] || fail "sooner than it can be: $(cat json)"
[ "$(number p90_ns json)" -ge "$(number median_ns json)" ] || fail "nine of ten below the median: $(cat json)"
has "$(cat json)" '"device_class":"cpu.'
"$bourse" history job.yaml >table || fail "history of a file"
has "$(cat table)" 'MEDIAN'
has "$(cat table)" 'cpu.'
[ "$("$bourse" history job.yaml --quiet)" = "$(number median_ns json)" ] || fail "history --quiet: $(cat json)"

# The job said nothing: it is expected to take what it took. Where it says something, both count.
"$bourse" plan job.yaml --json >json || fail "plan of what was measured"
has "$(cat json)" '"source":"measured"'
took=$(number expect_ns json)
[ "$took" -ge 300000000 ] && [ "$took" -lt 5000000000 ] || fail "expected to take $took ns: $(cat json)"
has "$("$bourse" plan job.yaml)" '90 % of the subtasks of each size took at most'
[ "$(number p90_ns json)" -ge "$took" ] || fail "nine of ten took less than is expected: $(cat json)"
sed 's/0-11/0-2/; s/0.3/0.25/' job.yaml >few.yaml
"$bourse" submit few.yaml -y --wait --quiet || fail "submit of three"
"$bourse" plan few.yaml --json >few || fail "plan of three"
has "$(cat few)" '"p90_ns":null'
has "$("$bourse" plan few.yaml)" 'a p90 needs more measurements'
sed 's/^array.*/&\nexpect: 60s/' job.yaml >said.yaml
"$bourse" plan said.yaml --json >json || fail "plan of what was said"
both=$(number expect_ns json)
[ "$both" -gt "$took" ] && [ "$both" -lt 60000000000 ] || fail "$both ns are not between $took and 60 s"
# What was predicted stands beside what it took.
"$bourse" submit job.yaml -y --wait --quiet >id || fail "submit ended with $?"
"$bourse" report "$(cat id)" --json >json || fail "report"
[ "$(field predicted_ns json)" -eq $((12 * took)) ] || fail "not what was planned, $took ns each: $(cat json)"
[ "$(field measured_ns json)" -ge 3600000000 ] || fail "twelve took less than twelve can: $(cat json)"
"$bourse" report "$(cat id)" >table || fail "report as a table"
grep -qE '^total +12 of 12 .*% ' table || fail "no predicted total: $(cat table)"
"$bourse" history job.yaml --json >json || fail "history of both"
[ "$(number samples json)" -ge 12 ] || fail "the second run was not measured: $(cat json)"
# Other work is not known by it.
sed 's/sleep 0.3/sleep 0.4/' job.yaml >other.yaml
"$bourse" plan other.yaml --json >json || fail "plan of other work"
has "$(cat json)" '"source":"guess"'

# A broker that starts anew knows it still, and one whose file is damaged reads it out of its ledger again.
"$bourse" history job.yaml --json >before || fail "history"
broker_stop
[ -s "$market/history.db" ] || fail "no history.db: $(ls "$market")"
broker_start
broker_await || fail "the broker does not start again"
"$bourse" history job.yaml --json >after || fail "history after a restart"
cmp before after || fail "another history after a restart: $(cat before after)"
broker_stop
echo 'no database' >"$market/history.db"
broker_start
broker_await || fail "the broker does not start again"
"$bourse" history job.yaml --json >after || fail "history after damage"
cmp before after || fail "another history out of the ledger: $(cat before after)"

# What tiles of products took is told to who plans one like them, and to nobody else.
planned=("$bourse" plan matmul --set m=128 --set n=128 --set k=64 --set dtype=fp32 --devices market)
multiplies() { "${planned[@]}" --json >json 2>/dev/null; }
until_true 60 multiplies || fail "nobody multiplies: $(cat json)"
has "$(cat json)" '"samples":0'
"$maker" A.npy 128 64 1 whole
"$maker" B.npy 64 128 2 whole
"$bourse" run -y --quiet matmul A.npy B.npy -o C.npy --tiles 4x4 || fail "matmul ended with $?"
"${planned[@]}" --json >json || fail "plan of the product"
[ "$(number samples json)" -ge 8 ] || fail "the plan knows less than half of 16 tiles: $(cat json)"
has "$("${planned[@]}")" "measured ($(number samples json))"
"${planned[@]}" --set k=6400 --json >json || fail "plan of another product"
has "$(cat json)" '"samples":0'
# Files of unlike size: each is expected to take what files of its size took, in the plan and in the report.
mkdir sizes && head -c 1000 /dev/zero >sizes/a.bin && head -c 1001 /dev/zero >sizes/b.bin && head -c 1000000 /dev/zero >sizes/c.bin
cat >sizes.yaml <<'YAML'
each: "sizes/*.bin"
run: [sh, -c, 'sleep "$(($(wc -c <"$1") / 1000000)).1"', sh, "{in}"]
YAML
"$bourse" submit sizes.yaml --wait -y >sizes.log 2>&1 || fail "sizes: $(cat sizes.log)"
LC_ALL=C "$bourse" plan sizes.yaml >sizes.txt || fail "plan of sizes"
takes() { awk -v row="$1" '$1 == row && /measured/ { print $4 }' sizes.txt; }
grep -qE '^2 .* [0-9.]+s .*measured \(1\)' sizes.txt || fail "not what the large file took: $(cat sizes.txt)"
[ -n "$(takes 0)" ] || fail "the small files were not measured: $(cat sizes.txt)"
[ "$(takes 0)" != "$(takes 2)" ] || fail "a small file is to take what the large one took: $(cat sizes.txt)"
# On one lane the large one, the last by name, goes first: in the plan as in the market.
{ cat sizes.yaml && echo 'at_most: 1'; } >alone.yaml
"$bourse" plan alone.yaml --json >alone.json || fail "plan of sizes on one lane"
"$bourse" submit alone.yaml --wait -y >alone.log 2>&1 || fail "sizes on one lane: $(cat alone.log)"
"$bourse" report last --json >alone.report || fail "report of sizes on one lane"
starts() { grep -oE "\"subtask\":[0-9]+,$1" "$2" | sed -E 's/.*subtask":([0-9]+).*start_s":([0-9.e-]+).*/\2 \1/' | sort -g | cut -d' ' -f2 | tr '\n' ' '; }
order=$(starts '"device":[0-9]+,"lane":[0-9]+,"ready_s":[0-9.e-]+,"start_s":[0-9.e-]+' alone.json)
[ "${order%% *}" = 2 ] || fail "the plan begins with another than the large file ($order): $(cat alone.json)"
began=$(starts '"planned_s":[0-9.e-]+,"guess":[a-z]+,"device":[0-9]+,"lane":[0-9]+,"start_s":[0-9.e-]+' alone.report)
[ "$began" = "$order" ] || fail "the market's order is $began, the plan's $order: $(cat alone.report)"
shown=$(starts '"device":[0-9]+,"lane":[0-9]+,"start_s":[0-9.e-]+,"finish_s":[0-9.e-]+,"guess"' alone.report)
[ "$shown" = "$order" ] || fail "the plan in the report goes by $shown, the plan by $order: $(cat alone.report)"

# Two agents of one class, of which one takes twice as long, for the program is another there: its own times are told beside those of the
# class, and the plan expects them of it.
for name in fast:dash slow:bash; do
    started+=("$agent")
    agent_join "$work/${name%:*}" --name "${name%:*}" <<END
slots: 1
programs: {pace: /usr/bin/${name#*:}}
END
    [ "${name%:*}" = fast ] || sed -i 's/^price:.*/price: 0.08/' "$work/slow/provider.yaml"
    agent_start "$work/${name%:*}"
done
pace_offered() { "$bourse" quote unlike.yaml --json --timeout 5s >offered.json 2>/dev/null && [ "$(number slots_now offered.json)" -eq 2 ]; }
cat >unlike.yaml <<'YAML'
array: 0-17
run: [pace, -c, 'if [ -n "$BASH_VERSION" ]; then sleep 1; else sleep 0.5; fi']
YAML
until_true 60 pace_offered || fail "the agents do not come: $(cat offered.json "$work"/agent-*.log)"
told() { "$bourse" history unlike.yaml --json >unlike.json && grep -qE '"device":"[0-9a-f]+"' unlike.json; }
for _ in 1 2 3 4 5; do
    told || "$bourse" submit unlike.yaml --wait -y >unlike.log 2>&1 || fail "unlike: $(cat unlike.log)"
done
told || fail "nothing is told of the slow agent: $(cat unlike.json)"
grep -oE '"device":"[0-9a-f]+","samples":[0-9]+,"outliers":[0-9]+,"median_ns":[0-9]+' unlike.json >slow.json || fail "$(cat unlike.json)"
[ "$(number median_ns slow.json)" -ge 1000000000 ] || fail "sooner than it can be: $(cat unlike.json)"
LC_ALL=C "$bourse" plan unlike.yaml >unlike.txt || fail "plan of unlike speeds"
awk '$2 ~ /^slow\// && $1 ~ /^[0-9]+$/ { n++; if ($4 + 0 < 1 || $4 !~ /[0-9]s$/) bad = 1 } END { exit bad || !n }' unlike.txt || fail "the slow agent is to be faster than it is: $(cat unlike.txt)"

# What ran once, on the slow one, is known on the fast one, too: the market knows how fast both are at what both did.
cat >slow.yaml <<'YAML'
array: 0-0
needs: cores >= 1 and label = slow
run: [pace, -c, 'if [ -n "$BASH_VERSION" ]; then sleep 2; else sleep 1; fi']
YAML
sed 's/label = slow/label = fast/' slow.yaml >fast.yaml
"$bourse" submit slow.yaml --wait -y >once.log 2>&1 || fail "once, on the slow one: $(cat once.log)"
for device in slow fast; do
    "$bourse" plan $device.yaml --json >$device.plan || fail "plan of what ran once, on the $device one"
    "$bourse" plan $device.yaml >$device.txt || fail "plan of what ran once, on the $device one, as a table"
    grep -q 'measured (1)' $device.txt || fail "it was not measured: $(cat $device.txt)"
done
awk -v slow="$(field makespan_s slow.plan)" -v fast="$(field makespan_s fast.plan)" 'BEGIN { exit !(fast < 0.75 * slow) }' ||
    fail "as long on the fast one: $(cat fast.plan slow.plan)"
grep -q 'measured (1), at its pace' slow.txt fast.txt || fail "nothing says that it is by the pace of the device: $(cat slow.txt fast.txt)"
grep -q '"at_pace":true' slow.plan fast.plan || fail "nothing says so in JSON: $(cat slow.plan fast.plan)"

# So it says which rows are of the fastest, and how much slower the other is; and the longest that nine of ten took is that of the slow one.
"$bourse" history slow.yaml --json >paces.json || fail "history of what ran once"
grep -qE '"paces":\[[{]"device_class":"[^"]+","provider":"[0-9a-f]+","device":"[0-9a-f]+","pace":(1[.][5-9]|2)' paces.json || fail "no pace: $(cat paces.json)"
[ "$(number median_ns paces.json)" -lt 1500000000 ] || fail "the class takes what the slow one takes: $(cat paces.json)"
"$bourse" history slow.yaml >paces.txt || fail "history of what ran once, as a table"
grep -qE '^DEVICE +TIMES AS LONG$' paces.txt || fail "no paces in the table: $(cat paces.txt)"
"$bourse" plan unlike.yaml --json >unlike.plan || fail "plan of unlike speeds, as JSON"
[ "$(number p90_ns unlike.plan)" -ge 1000000000 ] || fail "nine of ten as on the fast one: $(cat unlike.plan)"

# What a job says is said of both, also where a pace is known: nobody knows which of them was meant.
cat >said.yaml <<'YAML'
needs: cores >= 1
tasks:
- name: known
  run: [pace, -c, 'if [ -n "$BASH_VERSION" ]; then sleep 2; else sleep 1; fi']
YAML
for name in 1 2 3 4 5; do
    printf -- "- name: said%s\n  run: [pace, -c, 'sleep 0.7%s']\n  expect: 1000ms\n" $name $name >>said.yaml
done
LC_ALL=C "$bourse" plan said.yaml >said.txt || fail "plan of what was said"
awk '$1 ~ /^said/ { n[substr($2, 1, 4)]++; if ($4 != "1.0s" || $0 !~ /declared *$/) bad = 1 } END { exit bad || !n["slow"] }' said.txt || fail "not what was said: $(cat said.txt)"

# A job of them is held against what the plan has its subtasks take, on average: more than the class takes.
"$bourse" plan unlike.yaml --json >unlike.plan || fail "plan of unlike speeds, as JSON"
"$bourse" submit unlike.yaml --wait -y >unlike.log 2>&1 || fail "unlike, as planned: $(cat unlike.log)"
"$bourse" report last --json >unlike.report || fail "report of unlike speeds"
# The plan that it shows is the one that was shown, on devices of both speeds.
for figure in '"lower_bound":[0-9.e-]+' '"best_single":[{]"device":[0-9]+,"makespan_s":[0-9.e-]+' '"start_s":[0-9.e-]+,"finish_s":[0-9.e-]+,"(source|guess)'; do
    for file in unlike.plan unlike.report; do
        grep -oE "$figure" $file | sed -E 's/,"(source|guess)//; s/"device":[0-9]+,//' | sort -u >$file.lines
    done
    [ -s unlike.plan.lines ] || fail "no $figure: $(cat unlike.plan)"
    cmp unlike.plan.lines unlike.report.lines || fail "another plan: $(cat unlike.plan unlike.report)"
done
class_ns=$(grep -oE '"median_ns":[0-9]+' unlike.json | cut -d: -f2 | sort -n | head -n 1)
[ "$(number expect_ns unlike.report)" -gt $((class_ns * 11 / 10)) ] || fail "held against $(number expect_ns unlike.report) ns: $(cat unlike.json unlike.report)"

# A chain goes to the slow one, which asks less: who plans it, or asks for a quote, is told what the fast one alone would take, and by which
# needs the job gets it; within its cap and its budget.
cat >chain.yaml <<'YAML'
needs: cores >= 1
tasks:
YAML
after=
for name in a b c; do
    cat >>chain.yaml <<YAML
- name: $name
  run: [pace, -c, 'if [ -n "\$BASH_VERSION" ]; then sleep 1; else sleep 0.5; fi']
$after
YAML
    after="  after: [$name]"
done
"$bourse" plan chain.yaml >chain.txt 2>&1 || fail "plan of a chain: $(cat chain.txt)"
grep -qE '^makespan +3[.]' chain.txt || fail "the chain is not on the slow one: $(cat chain.txt)"
grep -qE '^  sooner +on fast/fast alone it takes 1[.][0-9]s and costs 0[.]000[0-9]*: .needs: cores >= 1 and label = fast.$' chain.txt || fail "no advice: $(cat chain.txt)"
"$bourse" quote chain.yaml --json >json || fail "quote of a chain"
grep -qE '"alone":[{]"device":"fast/fast","needs":"cores >= 1 and label = fast","makespan_ns":1[0-9]{9},' json || fail "no advice: $(cat json)"
for limit in 'cap: 0.09' 'budget: 0.03'; do
    { cat chain.yaml && echo "$limit"; } >limited.yaml
    "$bourse" quote --verbose limited.yaml >chain.txt || true
    ! grep -q sooner chain.txt || fail "advice beyond $limit: $(cat chain.txt)"
done
sed 's/^needs:.*/needs: cores >= 1 and label = fast/' chain.yaml >fast.yaml
"$bourse" devices --needs 'cores >= 1 and label = fast' | grep -q fast || fail "no such device"
"$bourse" plan fast.yaml >chain.txt || fail "plan of the chain on the fast one: $(cat chain.txt)"
grep -qE '^makespan +1[.]' chain.txt || fail "not as it was told: $(cat chain.txt)"
! grep -q sooner chain.txt || fail "sooner than on the fast one: $(cat chain.txt)"

# So is what follows a job of them: small files that take twice what was planned change next to nothing, and what is left of it is the large
# file, not a mean one.
mkdir unlike
for name in a b c d e; do echo "quick $name" >unlike/$name.bin; done
head -c 3000000 /dev/zero >unlike/z.bin
cat >unlike.yaml <<'YAML'
each: "unlike/*.bin"
run: [sh, -c, 'case $(head -c 4 "$1" | tr -d "\0") in slow) sleep 0.2 ;; quic) sleep 0.1 ;; *) sleep 20 ;; esac', sh, "{in}"]
YAML
"$bourse" submit unlike.yaml -y --wait -q || fail "unlike files: $?"
for name in a b c d e; do echo "slowly $name" >unlike/$name.bin; done
submitted_ms=$(now_ms)
"$bourse" submit unlike.yaml -y -q >id || fail "unlike files again: $?"
"$bourse" watch "$(cat id)" >watch.log 2>&1 &
started+=($!)
small_done() { "$bourse" ps "$(cat id)" --json >json && [ "$(field accepted json)" -eq 5 ]; }
until_true 60 small_done || fail "small files: $(cat json)"
"$bourse" plan "$(cat id)" --json >json || fail "plan of a large file that is left"
grep -qE '"makespan_s":20[.]' json || fail "what is left takes twenty seconds: $(cat json)"
"$bourse" ps "$(cat id)" >ps.log || fail "ps while a large file is left"
! grep -q 'than expected' ps.log || fail "ps has it drift: $(cat ps.log)"
"$bourse" ps "$(cat id)" --json >json || fail "ps while a large file is left, as JSON"
grep -q '"drifts":false' json || fail "ps has it drift: $(cat json)"
# The time left is that of the large one, and not of a mean one; it counts down.
left_ms=$(field left_ms json)
[ "$left_ms" -ge $((19800 - $(now_ms) + submitted_ms)) ] || fail "less than what is left of twenty seconds: $(cat json)"
counts_down() {
    "$bourse" ps "$(cat id)" --json >json
    [ "$(field state json)" = "done" ] || [ "$(field left_ms json)" -lt "$left_ms" ]
}
until_true 60 counts_down || fail "$left_ms ms are left all the time: $(cat json)"
wait "${started[-1]}" || fail "watch: $(cat watch.log)"
! grep -qE 'planned anew|than expected' watch.log || fail "it goes as planned: $(cat watch.log)"
"$bourse" history unlike.yaml --json >json || fail "history of unlike files"

echo "history of a market: ok"
