#!/usr/bin/env bash
# Graph files by the command line: what two papers say of their examples, the form of the answer, and every refusal by name.
set -euo pipefail
bourse=$(realpath "$1")/bourse
golden=$(realpath "$(dirname "$0")/../golden/dag")
work=$(mktemp -d "${TMPDIR:-/tmp}/bourse plan.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }

# shellcheck source=tests/support/expect.sh
. "$(dirname "$(realpath "$0")")/../support/expect.sh"
cd "$work"
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state
unset BOURSE_MARKET BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR NO_COLOR

makespan() { # SCHEDULER FILE TIME
    got=$("$bourse" plan --dag "$2" --scheduler "$1" --quiet) || fail "$1 of $2"
    [ "$got" = "$3" ] || fail "$1 of $2: $got, not $3"
}
makespan heft "$golden/heft.json" 80
makespan cpop "$golden/heft.json" 86
makespan exact "$golden/heft.json" 73
makespan auto "$golden/heft.json" 73
makespan peft "$golden/peft.json" 122
makespan heft "$golden/peft.json" 133
makespan exact "$golden/peft.json" 113
for scheduler in heft-best heft-few single all-best cluster improve; do
    "$bourse" plan --dag "$golden/heft.json" --scheduler $scheduler --json >out || fail "$scheduler"
    grep -q "\"scheduler\":\"$scheduler\"" out || fail "$scheduler: $(cat out)"
done

# The answer: one JSON value, or tables; the same each time; no market is needed.
expect 0 '"makespan":80.0,"lower_bound":54.0' "$bourse" plan --dag "$golden/heft.json" --scheduler heft --json
[ "$(wc -l <out)" -eq 1 ] || fail "more than one value: $(cat out)"
grep -q '"schedule":\[{"task":"t1","processor":"p3","start":0.0,"finish":9.0,"ready":0.0},' out || fail "$(cat out)"
grep -q '"best_single":{"processor":"p1","makespan":127.0}' out || fail "$(cat out)"
[ "$(grep -o '"task":' out | wc -l)" -eq 10 ] || fail "not ten tasks: $(cat out)"
mv out first
"$bourse" plan --dag "$golden/heft.json" --scheduler heft --json >out
cmp first out || fail "the same graph, another plan"
expect 0 '"lower_bound":73.0,"gap":0.0,"proved":true,"scheduler":"auto"' "$bourse" plan --dag "$golden/heft.json" --json
expect 0 '^lower bound  73 units: proved' "$bourse" plan --dag "$golden/heft.json"
grep -qE '^t10 +p[123] +[0-9]+ +73$' out || fail "$(cat out)"

# Links that carry one transfer at a time: never earlier, and nothing is proved that was only for links without end.
"$bourse" plan --dag "$golden/heft.json" --scheduler heft --contended --json >out || fail "contended"
grep -q '"contended":true' out || fail "$(cat out)"
slower=$(grep -o '"makespan":[0-9.]*' out | head -n 1 | cut -d: -f2 | cut -d. -f1)
[ "$slower" -ge 80 ] || fail "contended HEFT: $slower"
best=$("$bourse" plan --dag "$golden/heft.json" --contended --quiet)
[ "$best" -ge 73 ] && [ "$best" -le "$slower" ] || fail "contended: $best"
expect 2 'knows no --contended' "$bourse" plan --dag "$golden/heft.json" --scheduler exact --contended

# What people see, byte for byte; the same as a picture, which replaces pictures alone.
LC_ALL=C "$bourse" plan --dag "$golden/heft.json" --contended --width 70 --svg 'p "1".svg' >out
diff "$golden/heft.txt" out || fail "not what tests/golden/dag/heft.txt holds"
diff "$golden/heft.svg" 'p "1".svg' || fail "not what tests/golden/dag/heft.svg holds"
"$bourse" plan --dag "$golden/peft.json" --svg 'p "1".svg' --quiet >out || fail "a picture is not drawn anew"
cmp -s "$golden/heft.svg" 'p "1".svg' && fail "the picture is the old one"
echo precious >notes
expect 2 'is no picture' "$bourse" plan --dag "$golden/heft.json" --svg notes
[ "$(cat notes)" = precious ] || fail "a file was written over"
"$bourse" plan --dag "$golden/heft.json" --svg /dev/stdout --quiet | grep -q '^<svg' || fail "a picture through a pipe"
expect 2 '40 to 400' "$bourse" plan --dag "$golden/heft.json" --width 20

# 20,000 tasks on 100 processors: no more lines than a person reads, all of it in JSON.
{
    printf '{"format":"bourse-dag-1","name":"<b>&\\u001b[31m","processors":['
    seq 100 | sed 's/.*/{"id":"p&"}/' | paste -sd,
    printf '],"links":[],"tasks":['
    costs=$(seq 100 | sed 's/.*/1/' | paste -sd,)
    seq 20000 | sed "s/.*/{\"id\":\"t&\",\"cost\":[$costs]}/" | paste -sd,
    printf '],"edges":[]}\n'
} >many.json
"$bourse" plan --dag many.json --scheduler heft --svg many.svg >out || fail "20,000 tasks"
[ "$(wc -l <out)" -lt 200 ] || fail "$(wc -l <out) lines"
grep -q '^and 19900 more tasks: --json has them$' out || fail "$(cat out)"
grep -q '^69 more processors ' out || fail "$(cat out)"
[ "$(grep -c '<rect' many.svg)" -lt 4100 ] || fail "$(grep -c '<rect' many.svg) boxes"
grep -q '&lt;b&gt;&amp;?\[31m' many.svg || fail "$(head -n 4 many.svg)"
"$bourse" plan --dag many.json --scheduler heft --json >out
[ "$(grep -o '"task":' out | wc -l)" -eq 20000 ] && [ "$(grep -o '"share":1.0' out | wc -l)" -eq 100 ] || fail "not all"

# Refusals: the exit status, the stable name in text and JSON, and who it is about.
write() { # PROCESSORS LINKS TASKS EDGES
    printf '{"format":"bourse-dag-1","processors":[%s],"links":[%s],"tasks":[%s],"edges":[%s]}\n' "$@" >g.json
}
refused() { # NAME PATTERN
    expect 2 "^bourse: $1: g.json: .*$2" "$bourse" plan --dag g.json
    [ ! -s out ] || [ ! -s err ] || fail "both outputs"
    expect 2 "\"name\":\"$1\"" "$bourse" plan --dag g.json --json
    [ ! -s err ] || fail "--json wrote to stderr: $(cat err)"
}
two='{"id":"p"},{"id":"q"}'
both='{"src":"p","dst":"q","latency":0,"bandwidth":1},{"src":"q","dst":"p","latency":0,"bandwidth":1}'
ab='{"id":"a","cost":[1,2]},{"id":"b","cost":[2,1]}'
write "$two" "$both" "$ab" '{"src":"a","dst":"b","bytes":1},{"src":"b","dst":"a","bytes":1}'
refused DAG_CYCLE 'wait for one another: "[ab]" -> "[ab]" -> "[ab]"'
write "$two" "$both" '{"id":"a","cost":[1,2]},{"id":"stuck","cost":[null,null]}' ''
refused DAG_NOWHERE '"stuck": no processor can run it'
for cost in 0 -3 1e16 1e-13; do
    write "$two" "$both" '{"id":"a","cost":[1,2]},{"id":"b","cost":['$cost',1]}' ''
    refused DAG_COST '"b" on "p": the cost is'
done
write "$two" "$both" '{"id":"a","cost":[1,NaN]}' ''
refused DAG_FIELD '"a" on "q": "cost" is NaN'
write "$two" "" '{"id":"a","cost":[1,null]},{"id":"b","cost":[null,1]}' '{"src":"a","dst":"b","bytes":1}'
refused DAG_NO_LINK '"a" -> "b"'
write "$two" '{"src":"p","dst":"q","latency":0,"bandwidth":0}' "$ab" ''
refused DAG_LINK '"p" -> "q"'
write "$two" "$both,"'{"src":"p","dst":"q","latency":0,"bandwidth":1}' "$ab" ''
refused DAG_DUPLICATE 'two links "p" -> "q"'
write "$two" "$both" "$ab" '{"src":"a","dst":"b","bytes":-1}'
refused DAG_BYTES '"a" -> "b"'
write "$two" "$both" "$ab" '{"src":"a","dst":"b","bytes":1},{"src":"a","dst":"b","bytes":2}'
refused DAG_DUPLICATE 'two edges "a" -> "b"'
write "$two" "$both" "$ab"',{"id":"a","cost":[1,1]}' ''
refused DAG_DUPLICATE 'same id, "a"'
write "$two" "$both" "$ab" '{"src":"a","dst":"c","bytes":1}'
refused DAG_UNKNOWN '"c", which no task'
write "$two" "$both" '{"id":"a","cost":[1e-11,1]},{"id":"b","cost":[1e9,1e9]}' ''
refused DAG_SPREAD '"a"'
write "$two" "$both" '{"id":"a","cost":[1]}' ''
refused DAG_FIELD '"a": "cost" is a list'
echo '{"format":' >g.json
refused DAG_SYNTAX 'line'
printf '\377\376{}' >g.json
expect 2 'g.json' "$bourse" plan --dag g.json
write "$two" "" '{"id":"a","cost":[1,null]},{"id":"b","cost":[null,1]},{"id":"c","cost":[1,1]}' \
    '{"src":"a","dst":"c","bytes":1},{"src":"b","dst":"c","bytes":1}'
expect 5 'DAG_NO_PLAN: .*no scheduler' "$bourse" plan --dag g.json
write "$two" "$both" "$(seq 13 | sed 's/.*/{"id":"&","cost":[1,1]}/' | paste -sd,)" ''
expect 2 'DAG_TOO_LARGE: .*exact takes at most 12' "$bourse" plan --dag g.json --scheduler exact

# Usage.
expect 2 'none.json' "$bourse" plan --dag none.json
expect 2 'did you mean heft' "$bourse" plan --dag g.json --scheduler heff
expect 2 'not both' "$bourse" plan job.yaml --dag g.json
expect 2 'plan needs FILE' "$bourse" plan
expect 2 'are for --dag' "$bourse" plan job.yaml --scheduler heft
expect 2 'are for --dag' "$bourse" plan job.yaml --contended
echo "graph files: ok"
