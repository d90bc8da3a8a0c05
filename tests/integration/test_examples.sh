#!/usr/bin/env bash
# The examples of README.md and docs/ hold: the C programs run on a market, commands and options that are shown exist,
# and plans that need no market are made. Job files are test_jobfile's.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
source_folder=$(dirname "$(realpath "$0")")/../..
fire_begin examples "$1" docs-examples

# Each `bourse ...` line of a block ```sh, and of the README's indented ones, without what stands after two spaces and #.
shown() {
    awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$source_folder"/docs/*.md
    sed -n 's/^    //p' "$source_folder/README.md"
}
shown | sed -E 's/ +#.*$//; s/  +.*$//; s/"?\$\(([^)]*)\)"?/\n\1/' | tr ';' '\n' | sed 's/^ *//' | grep -E '^(bourse|bourse-broker|bourse-provider) [a-z]' |
    grep -v '[<─]' >lines.txt || true
lines=0
while read -r program command words; do
    [[ $words =~ ^matmul ]] && command="run matmul"
    # shellcheck disable=SC2086 # one word, or two
    "$bin/$program" $command --help >help.txt 2>/dev/null || fail "no such command: $program $command"
    grep -qE "(^|usage: |^ +)$program (\[OPTIONS\] )?\[?$command\]?( |\$)" help.txt || fail "no help of: $program $command"
    before=${words%% -- *} # what follows -- is the job's program
    for word in $before; do
        if [[ $word =~ ^--[a-z] ]]; then
            grep -qE -- "(^|[^a-z-])${word%%=*}([^a-z-]|\$)" help.txt || fail "$program $command has no $word: $words"
        fi
    done
    lines=$((lines + 1))
done <lines.txt
[ "$lines" -ge 40 ] || fail "only $lines lines with a command were found"

# Plans on the catalogue need no market.
plans=0
while read -r line; do
    # shellcheck disable=SC2086 # words of a page without quotes
    (cd "$source_folder" && "$bin"/$line) >plan.out 2>plan.err || fail "$line: $(cat plan.err)"
    plans=$((plans + 1))
done < <(sed -nE 's/^    (bourse plan .*)$/\1/p' "$source_folder"/docs/*.md | sed -E 's/  +.*$//' |
    grep -E '^bourse plan (--templates|--file docs/|[a-z]+ .*--devices)' | grep -vE -- '--samples|--svg|\.json|job\.yaml')
[ "$plans" -ge 5 ] || fail "only $plans plans were found"

market_up --credits 100 --slots 1 --programs sh,true
until_true 60 offered 1 || fail "nothing on offer"
mkdir -m 700 here
cp "$market/market.yaml" "$market/owner.key" here/
chmod 600 here/*
printf 'run: ["true"]\narray: 1-3\n' >here/job.yaml
(cd here && "$bin/docs-examples" >said.txt 2>&1) || fail "docs-examples: $(cat here/said.txt)"
has "$(cat here/said.txt)" "3 of 3"
"$bourse" down --dir "$market" >down.log 2>&1 || fail "down: $(cat down.log)"
echo "examples: $lines lines with a command, $plans plans, and the C programs"
