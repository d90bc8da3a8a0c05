#!/usr/bin/env bash
# Products that are checked before they are paid. With one agent nobody may judge it: the job waits and says so. With two, each
# judges the other. A third that lies - in one entry, by a lower precision, with zeros, another product, a wrong shape, garbage,
# or nothing - is refuted each time by both, gets nothing, and its work is done again by an honest one that judged nothing; the books
# say all of it.
leaks=yes
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
maker=$(dirname "$(realpath "$0")")/../support/matrix.pl
fire_begin referee "$1" bourse-audit bourse-tensor lying-tensor
command -v sqlite3 >/dev/null || skip "no sqlite3"

multiplying() { # COUNT: so many devices on offer multiply
    [ "$("$bourse" devices --needs 'executor = tensor' --json 2>/dev/null | grep -o '"price_micro":[0-9]' | wc -l)" -eq "$1" ]
}
refereeing() { # COUNT: so many of them may check
    [ "$("$bourse" devices --needs 'executor = tensor and referee = true' --json 2>/dev/null |
        grep -o '"price_micro":[0-9]' | wc -l)" -eq "$1" ]
}
# Small enough for a lower precision to be beyond all doubt.
"$maker" A1.npy 96 64 1
"$maker" A2.npy 96 64 2
"$maker" B.npy 64 48 3
job() { # NAME LINE...: its file
    local name=$1
    shift
    printf '%s\n' "name: $name" 'executor: tensor' 'expect: 10ms' 'budget: 10' 'files: B.npy' 'outputs: "{in}.c"' \
        'run: [matmul, "{in}", B.npy, "{in}.c"]' 'verify: cheap' 'cap: 1' "$@" >"$name.yaml"
}
is_over() { # the job's own state comes first
    "$bourse" ps "$id" --json >ps.json 2>/dev/null || return 1
    case $(field state ps.json) in done | failed | cancelled) ;; *) return 1 ;; esac
}
await() { until_true 60 is_over || fail "$1: $(cat ps.json; "$bourse" explain "$id" 2>&1; "$bourse" ps "$id" 2>&1)"; }
submit() { id=$("$bourse" submit "$1.yaml" -y --quiet --anyway 2>submit.log) || fail "submit: $(cat submit.log)"; }
# Of the last job: how many results of an account ended with this status.
ended_as() { # ACCOUNT STATUS
    sqlite3 -readonly "$market/ledger.db" "
        SELECT COUNT(*) FROM results JOIN accounts ON accounts.key = results.provider
        WHERE accounts.name = '$1' AND results.status = $2 AND hex(results.job) LIKE '$(echo "$id" | tr a-f A-F)%';"
}
balance_of() { "$bourse" admin accounts --json | grep -oE "\"name\":\"$1\"[^}]*" | grep -oE '"available_micro":-?[0-9]+' | cut -d: -f2; }

# ---------------------------------------------------------------- alone

market_up --credits 1000 --slots 1
until_true 60 refereeing 1 || fail "the agent of the household is no referee: $(cat market/provider.log)"
job one 'each: A1.npy'
status=0
"$bourse" submit one.yaml -y >out 2>&1 || status=$?
[ "$status" -eq 5 ] || fail "who could check nothing but its own is no referee: $status $(cat out)"
has "$(cat out)" 'nobody checks results of its own, and a single provider is on offer'
[ -z "$("$bourse" ps --quiet)" ] || fail "a job that nobody could check was taken"
submit one
is_held() { "$bourse" ps "$id" --json >ps.json && [ "$(field checking ps.json)" = 1 ]; }
until_true 60 is_held || fail "the result is not held: $(cat ps.json)"
waits_for_referee() { "$bourse" explain "$id" >why.txt 2>&1 && grep -q 'another referee is needed' why.txt; }
until_true 60 waits_for_referee || fail "it does not say that it waits for another referee: $(cat why.txt)"
[ "$(field charged_micro ps.json)" = 0 ] || fail "what is held was paid: $(cat ps.json)"
"$bourse" ps "$id" >ps.txt 2>&1 || fail "ps: $(cat ps.txt)"
grep -qE '^subtask 0 +checking +1 .* its result waits for a referee' ps.txt || fail "what is held is not shown: $(cat ps.txt)"
grep -qE '^check of subtask 0 +ready +0 ' ps.txt || fail "its check is not ready: $(cat ps.txt)"
has "$("$bourse" ps "$id" --json)" '"index":0,"state":"checking","tries":1,'

# Somebody else who computes and may not check: the only referee makes nothing then, though it is the cheaper one.
agent_join "$work/maker" --name maker <<<'slots: 1'
sed -i 's/^price:.*/price: 0.30/' "$work/maker/provider.yaml"
"$bin/bourse-provider" run --dir "$work/maker" >>"$work/agent-maker.log" 2>&1 &
maker_agent=$!
started+=("$maker_agent")
until_true 60 multiplying 2 || fail "the maker offers nothing: $(cat agent-maker.log)"
held=$id
job spared 'each: A1.npy'
sed -i '/^cap:/d; /^budget:/d' spared.yaml
id=$("$bourse" submit spared.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
await spared
[ "$(field state ps.json)" = "done" ] || fail "the only referee is not kept for the check: $(cat ps.json)"
[ "$(ended_as maker 0)" = 1 ] && [ "$(ended_as provider 0)" = 1 ] || fail "spared: who did what: $("$bourse" ps "$id")"
kill -TERM "$maker_agent"
ended "$maker_agent" 60 || fail "the maker does not end"
until_true 60 multiplying 1 || fail "what the maker offered still stands"
id=$held

# ---------------------------------------------------------------- honest ones

agent_roles=(provider referee)
agent_join "$work/second" --name second <<<'slots: 1'
sed -i 's/^price:.*/price: 0.30/' "$work/second/provider.yaml" # three times the other's
"$bin/bourse-provider" run --dir "$work/second" >>"$work/agent-second.log" 2>&1 &
started+=("$!")
second=$!
await "the second agent does not judge the first"
[ "$(field state ps.json)" = "done" ] || fail "an honest result is not accepted: $(cat ps.json)"
[ "$(ended_as provider 0)" = 1 ] && [ "$(ended_as second 0)" = 1 ] || fail "who did what: $("$bourse" ps "$id")"
"$bourse" fetch "$id" -o one >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
has "$(cat fetch.log)" "1 file of 1 subtask in"
[ -s one/A1.npy.c ] || fail "the product is not where its subtask's name says: $(find one)"
"$bourse" ps "$id" >ps.txt 2>&1 || fail "ps"
"$bourse" logs "$id" >logs.txt 2>&1 || fail "logs: $(cat logs.txt)"
has "$(cat logs.txt)" '"verdict":"accept","rounds":20'
"$bourse" receipt "$id" --all -o receipts >receipts.log 2>&1 || fail "receipts: $(cat receipts.log)"
"$bourse" verify receipts/* --key "$("$bourse" key --log)" >verified.txt 2>&1 || fail "verify: $(cat verified.txt)"
has "$(cat verified.txt)" "cheap (Freivalds"
"$bourse" report "$id" >report.txt 2>&1 || fail "report: $(cat report.txt)"
has "$(cat report.txt)" "checks: 1 of 1 result accepted by referees, in "

# Without a cap the checks get one that the other referee is within, and the budget goes that far too.
job dear 'each: A1.npy'
sed -i '/^cap:/d; /^budget:/d' dear.yaml
id=$("$bourse" submit dear.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
await dear
[ "$(field state ps.json)" = "done" ] || fail "the dearer referee is not within the cap: $(cat ps.json)"
[ "$(ended_as provider 0)" = 1 ] && [ "$(ended_as second 0)" = 1 ] || fail "dear: who did what: $("$bourse" ps "$id")"
sed '$acap: 0.2' dear.yaml >capped.yaml
status=0
"$bourse" submit capped.yaml -y >out 2>&1 || status=$?
[ "$status" -eq 5 ] || fail "a cap below the other referee's price: $status $(cat out)"
has "$(cat out)" 'a second referee asks 0.30 credits per slot-hour, which is above the cap'
submit capped
until_true 60 is_held || fail "capped: the result is not held: $(cat ps.json)"
names_price() { "$bourse" explain "$id" >why.txt 2>&1 && grep -q 'another referee asks 0.30 per slot-hour, above the cap' why.txt; }
until_true 60 names_price || fail "it does not say that the price excludes the referee: $(cat why.txt)"
"$bourse" cancel "$id" -q >/dev/null 2>cancel.log || fail "cancel: $(cat cancel.log)"

# What the honest ones make of both, for comparison.
job both 'each: [A1.npy, A2.npy]'
submit both
await "both"
[ "$(field state ps.json)" = "done" ] || fail "honest results are not accepted: $(cat ps.json)"
"$bourse" fetch "$id" -o honest >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
# The command, over both agents: tiles and checks, and the same product as without.
"$maker" A.npy 120 100 4
"$maker" M.npy 100 90 5
"$bourse" run -y matmul A.npy M.npy -o plain.npy --tiles 3x2 --json >plain.json 2>err || fail "matmul: $(cat err plain.json)"
"$bourse" run -y matmul A.npy M.npy -o checked.npy --tiles 3x2 --verify cheap --json >checked.json 2>err ||
    fail "matmul --verify cheap: $(cat err checked.json)"
cmp plain.npy checked.npy || fail "checked, it is another product"
[ "$(field tiles checked.json)" = 6 ] && [ "$(field checks checked.json)" = 6 ] || fail "checks: $(cat checked.json)"
status=0
"$bourse" run -y matmul A.npy M.npy -o other.npy --verify quorum >out 2>&1 || status=$?
[ "$status" -eq 2 ] || fail "an unknown level ends with $status"

# Of what is paid there are receipts, also of what does not count. What is left of a job gets new checks; what was accepted is
# not computed again.
"$maker" A3.npy 960 64 6
job left 'each: [A1.npy, A3.npy]' 'limits: {output: 64KiB}' # too little for the second product
submit left
await left
[ "$(field state ps.json)" = failed ] && [ "$(field accepted ps.json)" = 2 ] || fail "left: $(cat ps.json)"
"$bourse" receipt "$id" --all -o paid >receipts.log 2>&1 || fail "receipts: $(cat receipts.log)"
has "$(cat receipts.log)" '3 receipts in paid'
has "$(cat receipts.log)" '1 of 3 results are not accepted'
"$bourse" verify paid --key "$("$bourse" key --log)" >verified.txt 2>&1 || fail "verify: $(cat verified.txt)"
# A late one is started once more; of the two the last to end has the receipt, and may have been cancelled.
grep -Eq '(output limit|cancelled), paid, not accepted' verified.txt || fail "verify: $(cat verified.txt)"
"$bourse" explain "$id" >why.txt 2>&1 || fail "explain: $(cat why.txt)"
has "$(cat why.txt)" 'the job has ended: failed, some subtasks failed; 2 of 4 subtasks accepted'
"$bourse" resume "$id" -y --quiet --cap 1 >resumed 2>err || fail "resume: $(cat err)"
id=$(cat resumed)
await resumed
[ "$(field subtasks ps.json)" = 2 ] && [ "$(field failed ps.json)" -ge 1 ] || fail "resumed: $(cat ps.json)"
"$bourse" ps "$id" >ps.txt 2>&1 || fail "ps: $(cat ps.txt)"
has "$(cat ps.txt)" 'check of subtask 1'

# ---------------------------------------------------------------- a liar, and the cheapest of all

agent_roles=(provider)
agent_join "$work/third" --name third <<<'slots: 1' # who judged a product does not make it: somebody else has to
sed -i 's/^price:.*/price: 0.05/' "$work/third/provider.yaml"
"$bin/bourse-provider" run --dir "$work/third" >>"$work/agent-third.log" 2>&1 &
started+=("$!")
until_true 60 multiplying 3 || fail "the third offers nothing: $(cat agent-third.log)"

liar=''
liars=0
profile=''
name=''
lie() { # LIE: a liar of its own begins to tell it, for the asks of one that was refuted twice are closed
    if [ -n "$liar" ]; then
        kill -TERM "$liar"
        ended "$liar" 60 || fail "the liar does not end"
        until_true 60 multiplying 3 || fail "what the liar offered still stands"
    fi
    liars=$((liars + 1))
    name=liar$liars
    agent_join "$work/$name" --name "$name" <<<'slots: 1'
    sed -i 's/^price:.*/price: 0.01/' "$work/$name/provider.yaml"
    [ -z "$profile" ] || cp "$profile" "$work/$name/profile.json"
    rm -rf lair
    mkdir lair
    cp "$bin/bourse-provider" "$bin/bourse-worker" lair/
    { cat "$bin/lying-tensor"; printf '\n%32s\n%s\n' '' "$1"; } >lair/bourse-tensor
    chmod 755 lair/bourse-tensor
    [ "$(id -u)" -ne 0 ] || chmod 711 lair
    lair/bourse-provider run --dir "$work/$name" >>"$work/agent-$name.log" 2>&1 &
    liar=$!
    started+=("$liar")
    until_true 60 multiplying 4 || fail "the liar offers nothing: $(cat "agent-$name.log")"
}

for kind in entry precision zeros old shape garbage; do
    lie "$kind"
    until_true 60 refereeing 2 || fail "the liar is a referee, or an honest one is none"
    job "$kind" 'each: [A1.npy, A2.npy]' 'at_most: 1' # one at a time: the cheapest first
    submit "$kind"
    await "$kind"
    [ "$(field state ps.json)" = "done" ] || fail "$kind: its work was not done again: $(cat ps.json)"
    [ "$(ended_as "$name" 4)" -ge 1 ] || fail "$kind: the liar got away: $("$bourse" ps "$id" 2>&1)"
    [ "$(ended_as "$name" 0)" = 0 ] && [ "$(ended_as "$name" 1)" = 0 ] || fail "$kind: a lie was accepted"
    [ "$(balance_of "$name")" = 0 ] || fail "$kind: the liar was paid: $("$bourse" admin accounts)"
    "$bourse" fetch "$id" -o "fetched.$kind" >fetch.log 2>&1 || fail "$kind: fetch: $(cat fetch.log)"
    cmp honest/A1.npy.c "fetched.$kind/A1.npy.c" && cmp honest/A2.npy.c "fetched.$kind/A2.npy.c" ||
        fail "$kind: the products are others"
done

# The fastest of all, so that a small product is planned for it alone: refuted, its tile is computed by another, who asks
# more. The limit that the bid gets without a cap has room for that.
sed -E 's/("gemm_mflops": )[0-9]+/\1990000000/' "$name/profile.json" >fast.json
profile=$work/fast.json
lie zeros
"$bourse" devices --json 2>/dev/null | grep -q 990000000 || fail "the liar is not the fastest: $(cat fast.json)"
timeout 300 "$bourse" run -y matmul A.npy M.npy -o redone.npy --verify cheap --json >redone.json 2>err ||
    fail "the product planned for the liar alone is not redone: $(cat err redone.json; "$bourse" explain last 2>&1)"
cmp plain.npy redone.npy || fail "redone, it is another product"
id=$(field job redone.json)
[ "$(ended_as "$name" 4)" -ge 1 ] || fail "it was not planned for the liar: $(cat redone.json)"

# Two of them, the cheapest both: an honest one is within what the quote says, which is what the bid pays, and within the budget.
lie zeros
cp -r lair den
[ "$(id -u)" -ne 0 ] || chmod 711 den
agent_join "$work/fibber" --name fibber <<<'slots: 1'
sed -i 's/^price:.*/price: 0.02/' "$work/fibber/provider.yaml"
den/bourse-provider run --dir "$work/fibber" >>"$work/agent-fibber.log" 2>&1 &
fibber=$!
started+=("$fibber")
until_true 60 multiplying 5 || fail "the second liar offers nothing: $(cat agent-fibber.log)"
job twice 'each: A1.npy' 'at_most: 1'
sed -i '/^cap:/d; /^budget:/d' twice.yaml
"$bourse" quote --verbose twice.yaml >quote.txt 2>&1 || fail "quote: $(cat quote.txt)"
has "$(cat quote.txt)" 'price         the lowest that gets the slots, at most '
submit twice
await twice
[ "$(field state ps.json)" = "done" ] || fail "twice: its work was not done again: $(cat ps.json)"
[ "$(ended_as "$name" 4)" -ge 1 ] && [ "$(ended_as fibber 4)" -ge 1 ] || fail "twice: who did what: $("$bourse" ps "$id")"
[ "$(balance_of "$name")" = 0 ] && [ "$(balance_of fibber)" = 0 ] || fail "twice: a liar was paid: $("$bourse" admin accounts)"
# Both the fastest, too, as they say: the speed that keeps slower devices out lets in one of a provider that is trusted.
kill -TERM "$fibber"
ended "$fibber" 60 || fail "the second liar does not end"
until_true 60 multiplying 4 || fail "what the second liar offered still stands"
lie zeros
cp fast.json fibber/profile.json
den/bourse-provider run --dir "$work/fibber" >>"$work/agent-fibber.log" 2>&1 &
fibber=$!
started+=("$fibber")
until_true 60 multiplying 5 || fail "the second liar offers nothing again: $(cat agent-fibber.log)"
[ "$("$bourse" devices --json 2>/dev/null | grep -o 990000000 | wc -l)" -ge 2 ] || fail "the second liar is not as fast: $(cat fibber/profile.json)"
timeout 300 "$bourse" run -y matmul A.npy M.npy -o twofold.npy --verify cheap --json >twofold.json 2>err ||
    fail "the product that two liars shut the honest out of is not redone: $(cat err twofold.json; "$bourse" explain last 2>&1)"
cmp plain.npy twofold.npy || fail "redone after two liars, it is another product"
id=$(field job twofold.json)
[ "$(ended_as "$name" 4)" -ge 1 ] && [ "$(ended_as fibber 4)" -ge 1 ] || fail "twofold: who did what: $("$bourse" ps "$id")"
[ "$(balance_of "$name")" = 0 ] && [ "$(balance_of fibber)" = 0 ] || fail "twofold: a liar was paid: $("$bourse" admin accounts)"
kill -TERM "$fibber"
ended "$fibber" 60 || fail "the second liar does not end"
until_true 60 multiplying 4 || fail "what the second liar offered still stands"

# Without another try it fails, and says what became of it.
lie entry
job caught 'each: A1.npy' 'at_most: 1' 'crash_limit: 0'
submit caught
await caught
[ "$(field state ps.json)" = failed ] && [ "$(ended_as "$name" 4)" = 1 ] || fail "caught: $(cat ps.json)"
"$bourse" ps "$id" >ps.txt 2>&1 || fail "ps: $(cat ps.txt)"
grep -qE '^subtask 0 +failed +1 .* not paid: found wrong by a referee' ps.txt || fail "caught: $(cat ps.txt)"
"$bourse" report "$id" >report.txt 2>&1 || fail "report: $(cat report.txt)"
has "$(cat report.txt)" 'checks: 0 of 1 result accepted by referees, in '
has "$(cat report.txt)" 'refuted by a referee (1)'

# The broker's disk changes what an honest one left before it is checked: the work is paid, nobody is blamed, and it is done again.
kill -TERM "$second" "$agent" "$liar"
ended "$second" 60 && ended "$agent" 60 && ended "$liar" 60 || fail "the other agents do not end"
until_true 60 multiplying 1 || fail "what the other ones offered still stands"
"$maker" A5.npy 96 64 9 # of which no agent has the product
products() { sqlite3 -readonly "$market/blobs/blobs.db" "SELECT lower(hex(hash)) FROM blob WHERE size = $((128 + 4 * 96 * 48)) ORDER BY hash;"; }
products >before
job missing 'each: A5.npy'
submit missing
until_true 60 is_held || fail "missing: the result is not held: $(cat ps.json)"
hash=$(products | comm -13 before -)
[ "${#hash}" -eq 64 ] || fail "missing: the product is not stored: $hash"
sqlite3 "$market/blobs/blobs.db" "PRAGMA busy_timeout = 10000; UPDATE blob SET bytes = zeroblob(size) WHERE hash = x'$hash';" >sqlite.log ||
    fail "blobs.db: $(cat sqlite.log)"
agent_start "$market/provider"
started+=("$agent")
first=$agent
agent_start "$work/second"
second=$agent
await missing
[ "$(field state ps.json)" = "done" ] || fail "missing: its work was not done again: $(cat ps.json)"
[ "$(ended_as third 1)" = 1 ] && [ "$(ended_as third 0)" -ge 1 ] || fail "missing: who was paid: $("$bourse" ps "$id" 2>&1)"
"$bourse" fetch "$id" -o mended >fetch.log 2>&1 || fail "missing: fetch: $(cat fetch.log)"
sha256sum <mended/A5.npy.c | grep -q "^$hash" || fail "missing: the product is not mended"
grep -q "a blob could not be read: .*$hash" "$market/broker.log" || fail "missing: the log does not say so"
"$bourse" ps "$id" >ps.txt 2>&1 || fail "ps: $(cat ps.txt)"

# The broker loses a factor before the check: the referees lack it, are neither paid nor blamed, and the maker is paid.
kill -TERM "$first" "$second"
ended "$first" 60 && ended "$second" 60 || fail "the other agents do not end"
until_true 60 multiplying 1 || fail "what the other ones offered still stands"
"$maker" A6.npy 96 64 10
job factor 'each: A6.npy'
submit factor
until_true 60 is_held || fail "factor: the result is not held: $(cat ps.json)"
hash=$(sha256sum <A6.npy | cut -d' ' -f1)
sqlite3 "$market/blobs/blobs.db" "PRAGMA busy_timeout = 10000; UPDATE blob SET bytes = zeroblob(size) WHERE hash = x'$hash';" >sqlite.log ||
    fail "blobs.db: $(cat sqlite.log)"
agent_start "$market/provider"
started+=("$agent")
agent_start "$work/second"
started+=("$agent")
await factor
"$bourse" ps "$id" >ps.txt 2>&1 || fail "ps: $(cat ps.txt)"
grep -qE '^check of subtask 0 +failed +3 .* input missing: input A6.npy: the broker does not have blob' ps.txt || fail "factor: $(cat ps.txt)"
[ "$(ended_as third 1)" = 1 ] || fail "factor: the maker was not paid: $(cat ps.txt)"
[ "$(ended_as third 2)$(ended_as third 4)" = 00 ] || fail "factor: the maker is blamed: $(cat ps.txt)"
paid=$(sqlite3 -readonly "$market/ledger.db" "SELECT COUNT(*) FROM results WHERE hex(job) LIKE '$(echo "$id" | tr a-f A-F)%' AND idx = 1 AND status <> 2;")
[ "$paid" = 0 ] || fail "factor: a referee that found nothing was paid: $(cat ps.txt)"

# The honest ones were never accused.
refuted=$(sqlite3 -readonly "$market/ledger.db" "
    SELECT COUNT(*) FROM results JOIN accounts ON accounts.key = results.provider
    WHERE accounts.name NOT LIKE 'liar%' AND accounts.name <> 'fibber' AND results.status = 4;")
[ "$refuted" = 0 ] || fail "an honest result was refuted"

market_audit
echo "$(sqlite3 -readonly "$market/ledger.db" "SELECT COUNT(*) FROM results WHERE status = 4") lies of six kinds refuted, none paid: ok"
