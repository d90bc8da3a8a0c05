#!/usr/bin/env bash
# What the operator does to a market or an account is told with the reason to whoever is concerned. After an outage `bourse status`
# says how far log time is behind. A subtask without a limit outlives the term of its lease.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin told "$1" bourse-audit

market_up --credits 100 --slots 1 --programs sh,sleep
until_true 60 offered 1 || fail "nothing is on offer"
has "$("$bourse" status 2>&1)" ", open"

# ---- a long reason in the one line of an offer is told to its end
printf 'run: [sh]\nneeds: memory >= 900TiB and cores >= 4000\norder: post-only\ncap: 0.01\nbudget: 1\n' >wants.yaml
"$bourse" quote wants.yaml --json >wants.json 2>log || true
"$bourse" quote wants.yaml >wants.out 2>log || true
whole=$(grep -oE '"text":"([^"\\]|\\.)*"' wants.json | head -n 1 | sed -E 's/^.*"text":"(.*)"$/\1/; s/\\"/"/g')
cut=$(sed -nE 's/^  offer  none [a-z]*: (.*) \(--verbose says more\)$/\1/p' wants.out)
[ "${#whole}" -gt 160 ] && [ -n "$cut" ] || fail "the reason is not long: $(cat wants.json wants.out)"
[ "$whole" = "$cut" ] || fail "the offer is cut: $(cat wants.out): $whole"

# ---- a term of 4 s, and a subtask of 9 s without a limit
printf 'name: long\nterm: 4s\nbudget: 1\nrun: [sleep, "9"]\n' >long.yaml
"$bourse" submit -y long.yaml --quiet >id 2>log || fail "submit: $(cat log)"
"$bourse" wait "$(cat id)" --wait-at-most 2m >log 2>&1 || fail "work without a limit: $(cat log)"

# ---- a halt, with its reason
"$bourse" admin halt --reason "the disk is replaced" >log 2>&1 || fail "halt: $(cat log)"
has "$("$bourse" status)" 'the operator halted the market: "the disk is replaced"'
has "$("$bourse" status --json)" '"halted_why":"the disk is replaced"'
for command in book ps devices providers balance; do
    has "$("$bourse" "$command" 2>&1)" 'the operator halted the market: "the disk is replaced"'
done
"$bourse" submit -y long.yaml >log 2>&1 && fail "a halted market took a job"
has "$(cat log)" 'HALTED: market: the operator halted it: "the disk is replaced"'
"$bourse" admin halt --undo >log 2>&1 || fail "resume: $(cat log)"
has "$("$bourse" status)" ", open"

# ---- a consumer is frozen: it hears so before an offer, and its job says what to do
"$bourse" admin invite --role consumer --credits 5 --name mara >invitation 2>log || fail "invite: $(cat log)"
as_mara=(env BOURSE_KEY="$work/mara/key" BOURSE_MARKET="$work/mara/market.yaml" "$bourse")
mkdir -m 700 mara
BOURSE_MARKET='' BOURSE_KEY=$work/mara/key "$bourse" join "$(cat invitation)" --market "$work/mara/market.yaml" >log 2>&1 || fail "join: $(cat log)"
"${as_mara[@]}" submit -y long.yaml --quiet >id 2>log || fail "submit: $(cat log)"
"$bourse" admin freeze mara --reason "unpaid bills" >log 2>&1 || fail "freeze: $(cat log)"
expect 5 'the operator froze this account ."unpaid bills".: the market takes none of its jobs' "${as_mara[@]}" explain long.yaml
expect 4 'bourse: FROZEN: the operator froze this account ."unpaid bills".' "${as_mara[@]}" run -y --anyway -- sh -c true
! grep -qE '^ +(cost|held|offer) ' err || fail "a frozen account gets an offer: $(cat err)"
expect 4 '"name":"FROZEN".*unpaid bills.*"code":22' "${as_mara[@]}" submit -y long.yaml --json
expect_soon 0 'cancelled.* the operator froze the account; once that has ended' "${as_mara[@]}" ps "$(cat id)"
expect 0 'the operator froze this account: "unpaid bills"' "${as_mara[@]}" balance
"$bourse" admin freeze mara --undo >log 2>&1 || fail "freeze --undo: $(cat log)"
expect 0 'cancelled, the operator froze the account; .*`bourse resume` runs the rest' "${as_mara[@]}" explain "$(cat id)"
expect 0 '' "${as_mara[@]}" resume "$(cat id)" -y
expect 0 '' "${as_mara[@]}" cancel last

# ---- results that cannot be placed keep the job's id, in the message and before its end
touch taken
expect 2 'its results are kept: .bourse fetch [0-9a-f]{8} -o FOLDER. and .bourse logs [0-9a-f]{8}. bring them' \
    "$bourse" run -y --out made.txt -o taken/results -- sh -c 'echo made >made.txt'
"$bourse" fetch "$(grep -oE 'bourse fetch [0-9a-f]{8}' err | cut -d' ' -f3)" -o made >log 2>&1 || fail "fetch: $(cat log)"
[ "$(find made -name made.txt -exec cat {} +)" = made ] || fail "the results are not kept: $(find made)"

expect 2 '^.*"error":.*"exit":2' "$bourse" run -y --json --quiet --out made.txt -o taken/results -- sh -c 'echo again >made.txt'
id=$(field job out)
[ "${#id}" = 32 ] || fail "the error of a result that cannot be placed names no job: $(cat out)"
"$bourse" fetch "$id" -o made-again >log 2>&1 || fail "fetch: $(cat log)"
[ "$(find made-again -name made.txt -exec cat {} +)" = again ] || fail "the error names another job: $(find made-again)"
expect 2 "\"job\":\"$id\"" "$bourse" fetch "$id" --json -o taken/results

# ---- the lines of a program are in --json, one value a line, and the result is the last
"$bourse" run -y --json --array 1-2 -- sh -c 'echo "it {index}"; echo "but {index}" >&2' >run.json 2>log || fail "run --json: $(cat log)"
"$bourse" logs last --json >logs.json 2>log || fail "logs --json: $(cat log)"
for index in 0 1; do
    line="\"index\":$index,\"attempt\":1,\"stream\":\"stdout\",\"offset\":0,\"line\":\"it $((index + 1))\""
    has "$(cat run.json)" "$line"
    has "$(cat logs.json)" "$line"
    has "$(cat run.json)" "\"stream\":\"stderr\",\"offset\":0,\"line\":\"but $((index + 1))\""
done
[ "$(wc -l <run.json)" -eq 5 ] || fail "run --json has other lines: $(cat run.json)"
[ "$(wc -l <logs.json)" -eq 3 ] || fail "logs --json has other lines: $(cat logs.json)"
has "$(tail -n 1 run.json)" '"outcomes":[{"index":0,'
has "$(tail -n 1 logs.json)" '"outcomes":[{"index":0,'
[ "$("$bourse" logs last --json --quiet | wc -l)" -eq 1 ] || fail "logs --json --quiet has lines"

# ---- log time that stood still, and a broker that is lost
"$bourse" run -y --budget 1 -- sh -c 'sleep 5; echo over' >run.out 2>run.err </dev/null &
runner=$!
started+=("$runner")
expect_soon 0 '"running":1,' "$bourse" ps last --json
broker_kill
killed=$(now_ms)
until_true 60 grep -q 'cannot be reached; the job goes on, and this command waits for the broker' run.err ||
    fail "run does not say that the broker is lost: $(cat run.err)"
expect 6 'no broker answers at ' "$bourse" explain abc --timeout 4s
[ "$(grep -c 'has not answered for 3 s' err)" -eq 1 ] || fail "explain waits more than once: $(cat err)"
is_late() { [ $(($(now_ms) - killed)) -gt 3000 ]; }
until_true 60 is_late
broker_start
broker_await || fail "the broker does not start again: $(cat broker.log)"
ended "$runner" 60 || fail "run does not end after the broker came back: $(cat run.out run.err)"
[ "$(cat run.out)" = over ] || fail "run printed: $(cat run.out run.err)"
has "$("$bourse" status)" "behind the broker's clock"
has "$("$bourse" ps 2>&1)" "behind the broker's clock, and catches up in about "
market_audit
