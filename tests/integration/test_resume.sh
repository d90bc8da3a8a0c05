#!/usr/bin/env bash
# A job of which a part failed, and the job that does the rest: the same numbers, the same names of outputs, one folder.
set -euo pipefail
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$0")/../support/market.sh"
fire_begin resume "$1"
market_up --credits 50

# What fails now and succeeds later, in a jail that sees nothing of ours but the clock.
later() { echo $(($(date +%s) + 12)); }
wait_until() { while [ "$(date +%s)" -lt "$1" ]; do sleep 0.2; done; }

# Lines: two of five fail at first; what is left keeps its number, and so its place.
at=$(later)
printf '%s\n' 'a b' 'bad 1' c 'bad 3' e >lines.txt
cat >lines.yaml <<END
name: half
lines: lines.txt
cap: 0.50
run: [sh, -c, 'case "\$1" in bad*) [ \$(date +%s) -ge $at ] ;; esac && echo "did \$1" >result', sh, "{line}"]
outputs: result
expect: 1s
END
expect 1 '3 of 5 accepted' "$bourse" submit lines.yaml -y --wait
expect 0 '' "$bourse" ps last --json
first=$(sed -E 's/.*"job":"([0-9a-f]{32})".*/\1/' out)
expect 2 'has a cap|had a cap' "$bourse" resume last -y
expect 1 '2 of 5 subtasks of job .* left no outputs: 2 failed, 0 cancelled, 0 not done yet' "$bourse" fetch last -o out.d
has "$(cat err)" '3 files of 3'
wait_until "$at"
expect 0 "the rest of job ${first:0:8}" "$bourse" resume "$first" -y --cap 0.50 --wait
has "$(cat err)" '2 of 2 accepted'
expect 0 "continues job ${first:0:8}" "$bourse" ps last
expect 0 "\"continues\":\"$first\"" "$bourse" ps last --json
expect 0 '2 files of 2' "$bourse" fetch last -o out.d
[ "$(cat out.d/0/result out.d/1/result out.d/2/result out.d/3/result out.d/4/result)" = \
    "$(sed 's/^/did /' lines.txt)" ] || fail "the outputs differ: $(head out.d/*/result)"
expect 3 'nothing is left' "$bourse" resume last -y --cap 1

# An array that was cancelled: its numbers stay, although no manifest listed them.
at=$(later)
cat >array.yaml <<END
array: 0-3
run: [sh, -c, 'while [ {index} -gt 1 ] && [ \$(date +%s) -lt $at ]; do sleep 0.1; done; echo {index} >"{out}"']
outputs: "{out}"
at_most: 1
expect: 1s
END
expect 0 '' "$bourse" submit array.yaml -y --quiet
job=$(cat out)
two_done() { "$bourse" ps "$job" --json | grep -q '"accepted":2'; }
expect 2 'has not ended' "$bourse" resume "$job" -y
until_true 60 two_done || fail "two subtasks do not end"
expect 0 '' "$bourse" cancel "$job"
cancelled() { "$bourse" ps "$job" --json | grep -q '"state":"cancelled"'; }
until_true 60 cancelled || fail "the job does not end"
expect 1 '2 of 4 subtasks of job .* left no outputs: 0 failed, 2 cancelled' "$bourse" fetch "$job" -o array.d
expect 0 '2 of 2 accepted' "$bourse" resume "$job" -y --wait -o array.d
for i in 0 1 2 3; do
    [ "$(cat "array.d/$i/$i")" = "$i" ] || fail "output $i"
done

# One file of many: it lies where the pattern found it.
at=$(later)
mkdir in
echo one >in/one.txt
echo two >in/two.txt
cat >each.yaml <<END
each: in/*.txt
run: [sh, -c, '[ {in} = in/one.txt ] || [ \$(date +%s) -ge $at ] && cat {in} {in} >{out}']
outputs: "{out}"
expect: 1s
END
expect 1 '1 of 2 accepted' "$bourse" submit each.yaml -y --wait -o each.d
wait_until "$at"
expect 0 '1 of 1 accepted' "$bourse" resume last -y --wait -o each.d
[ "$(cat each.d/in/two.txt)" = "two
two" ] || fail "the file that was left"

# What is left of a job is good for as long as the job was.
printf '%s\n' 'name: brief' 'needs: memory >= 900TiB' 'good_till: 20s' 'budget: 1' 'run: ["true"]' >brief.yaml
expect 0 '' "$bourse" submit brief.yaml -y --anyway --quiet
brief=$(cat out)
expect 0 '' "$bourse" cancel "$brief"
until_true 60 eval '"$bourse" ps "$brief" --json | grep -q "\"state\":\"cancelled\""' || fail "it does not end"
expect 5 "the job's time was up" "$bourse" resume "$brief" -y --anyway --budget 1 --wait
expect 2 'has passed; say how long' "$bourse" resume "$brief" -y --anyway --budget 1
expect 2 'at most 366d' "$bourse" resume "$brief" --good-till 367d
expect 5 "the job's time was up" "$bourse" resume "$brief" -y --anyway --budget 1 --good-till 1s --wait
market_audit
echo "resumed: lines, an array, files"
