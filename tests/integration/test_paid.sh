#!/usr/bin/env bash
# What is paid is there: a provider that leaves an output out, names one that it never stored, or says another size, is told why,
# gets nothing, and its work is done again by another; where nobody else is there the job fails, and says so. A result counts
# also when the broker is killed between what it stored and what it says.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin paid "$1" bourse-audit lying-provider
command -v sqlite3 >/dev/null || skip "no sqlite3"

asking() { # COUNT: so many devices ask
    [ "$("$bourse" devices --json 2>/dev/null | grep -o '"price_micro":[0-9]' | wc -l)" -eq "$1" ]
}
job() { # NAME LINE...: its file
    printf 'name: %s\nlimit: 20s\nbudget: 1\ncap: 1\nat_most: 1\n' "$1" >"$1.yaml"
    printf '%s\n' "${@:2}" >>"$1.yaml"
}
leaves() { # NAME LINE...: a job with two outputs and something to say
    job "$1" 'outputs: [left, "{out}"]' 'run: [sh, -c, "echo said; echo left >left; echo right >{out}"]' "${@:2}"
}
job_is() { "$bourse" ps last --json --timeout 5s >ps.json 2>/dev/null && grep -qE -- "$1" ps.json; }
# Of the last job: how many results of an account ended with this outcome and status.
ended_as() { # ACCOUNT OUTCOME STATUS
    sqlite3 -readonly "$market/ledger.db" "
        SELECT COUNT(*) FROM results JOIN accounts ON accounts.key = results.provider
        WHERE accounts.name = '$1' AND results.outcome = $2 AND results.status = $3
            AND results.job = (SELECT job FROM jobs ORDER BY entry DESC LIMIT 1);"
}
balance_of() { "$bourse" admin accounts --json | grep -oE "\"name\":\"$1\"[^}]*" | grep -oE '"available_micro":-?[0-9]+' | cut -d: -f2; }

mkdir lair # of the one program that lies, beside the worker that it needs
cp "$bin/bourse-worker" lair/
cp "$bin/lying-provider" lair/bourse-provider
[ ! -e "$bin/bourse-tensor" ] || cp "$bin/bourse-tensor" lair/
[ "$(id -u)" -ne 0 ] || chmod 711 lair
liar=''
liar_ends() {
    [ -z "$liar" ] || kill -TERM "$liar"
    [ -z "$liar" ] || ended "$liar" 60 || fail "the liar does not end"
    liar=''
}
lie() { # LIE COUNT: the liar begins to tell it; so many ask then
    liar_ends
    until_true 60 asking $(($2 - 1)) || fail "what the liar offered still stands"
    BOURSE_TEST_LIE=$1 BOURSE_TEST_HOLD=$work/hold/on lair/bourse-provider run --dir "$work/liar" >>"$work/agent-liar.log" 2>&1 &
    liar=$!
    started+=("$liar")
    until_true 60 asking "$2" || fail "the liar offers nothing: $(cat agent-liar.log)"
}

market_up --credits 100 --slots 1 --programs sh,sleep
until_true 60 asking 1 || fail "nothing on offer"
agent_join "$work/liar" --name liar <<<'programs: [sh, sleep]'
sed -i '/^slots:/d; s/^price:.*/price: 0.05/' liar/provider.yaml
echo 'slots: 1' >>liar/provider.yaml
"$bourse" admin invite --role consumer --credits 1 --name ada >invitation 2>log || fail "invite"
mkdir -m 700 ada
"$bourse" join "$(cat invitation)" --key "$work/ada/key" --market "$work/ada/market.yaml" >log 2>&1 || fail "join: $(cat log)"
mkdir hold
chmod 777 hold

# ---------------------------------------------------------------- a lie is refused, and another does the work

# What ada has stored is not the owner's.
job theirs 'outputs: kept' 'run: [sh, -c, "echo of ada >kept"]'
"$bourse" submit theirs.yaml -y --wait -o ada.d --key "$work/ada/key" --market "$work/ada/market.yaml" >log 2>&1 || fail "ada: $(cat log)"
BOURSE_TEST_HASH=$(sha256sum ada.d/kept | cut -c 1-64)
export BOURSE_TEST_HASH

for kind in left-out renamed never-sent of-another huge no-log; do
    lie "$kind" 2
    leaves "$kind"
    "$bourse" submit "$kind.yaml" -y --wait -o "$kind.d" >log 2>&1 || fail "$kind: submit: $(cat log; "$bourse" ps last)"
    [ "$(cat "$kind.d/left" "$kind.d/0")" = left$'\n'right ] || fail "$kind: what was fetched: $(find "$kind.d")"
    [ "$(ended_as liar 0 0)$(ended_as liar 0 1)" = 00 ] || fail "$kind: the lie was paid: $("$bourse" ps last)"
    [ "$(ended_as liar 0 2)" = 1 ] || fail "$kind: the liar did not get the work first: $("$bourse" ps last)"
    [ "$(balance_of liar)" = 0 ] || fail "$kind: the liar was paid: $("$bourse" admin accounts)"
done
[ "$(grep -c 'a result counts for nothing: OUTPUT_NOT_STORED' agent-liar.log)" -eq 6 ] ||
    fail "the liar was not told why: $(cat agent-liar.log)"
told_operator() { "$bin/bourse-broker" acts "$market" >acts.txt 2>&1 && grep -qE 'liar +[0-9]+ x OUTPUT_NOT_STORED results' acts.txt; }
until_true 90 told_operator || fail "the operator is not told: $(cat acts.txt)"

# An input that the broker has is not missing because a provider says so.
echo needed >needed.txt
for kind in no-input no-image; do
    case $kind in no-input) outcome=10 ;; *) outcome=12 ;; esac
    lie "$kind" 2
    job "$kind" 'files: needed.txt' 'outputs: left' 'run: [sh, -c, "while read -r line; do echo $line; done <needed.txt >left"]'
    "$bourse" submit "$kind.yaml" -y --wait -o "$kind.d" >log 2>&1 || fail "$kind: submit: $(cat log; "$bourse" ps last)"
    [ "$(cat "$kind.d/left")" = needed ] || fail "$kind: what was fetched: $(find "$kind.d")"
    [ "$(ended_as liar "$outcome" 2)" = 1 ] || fail "$kind: the liar got the work again, or never: $("$bourse" ps last)"
    [ "$(balance_of liar)" = 0 ] || fail "$kind: the liar was paid: $("$bourse" admin accounts)"
done

# ---------------------------------------------------------------- what was stored counts, though the broker is killed then

kill -TERM "$agent"
ended "$agent" 60 || fail "the honest agent does not end"
lie held-back 1
leaves stored
"$bourse" submit stored.yaml -y --quiet >log 2>&1 || fail "submit: $(cat log)"
until_true 60 test -e hold/on || fail "nothing was stored: $(cat agent-liar.log)"
broker_kill
broker_start
broker_await || fail "the broker does not start again"
rm hold/on
until_true 60 job_is '"state":"done"' || fail "what was stored does not count: $(cat ps.json)"
"$bourse" fetch last -o stored.d >log 2>&1 || fail "fetch: $(cat log)"
[ "$(cat stored.d/left)" = left ] || fail "what was fetched: $(find stored.d)"
[ "$(ended_as liar 0 0)" = 1 ] || fail "what was stored was not paid: $("$bourse" ps last)"

# ---------------------------------------------------------------- what the store lost before the result came is stored again

# The honest result waits; meanwhile the broker loses the file that the result names.
lie held-back 1
job lost 'outputs: large' 'run: [sh, -c, "head -c 300000 /dev/zero >large"]'
"$bourse" submit lost.yaml -y --quiet >log 2>&1 || fail "submit: $(cat log)"
until_true 60 test -e hold/on || fail "nothing was stored: $(cat agent-liar.log)"
hash=$(head -c 300000 /dev/zero | sha256sum | cut -d' ' -f1)
rm "$market/blobs/${hash:0:2}/$hash" || fail "the broker has no file of the output"
rm hold/on
until_true 60 job_is '"state":"done"' || fail "what the broker lost makes the result count for nothing: $(cat ps.json; tail agent-liar.log)"
[ "$(ended_as liar 0 0)" = 1 ] || fail "what the broker lost was not paid: $("$bourse" ps last)"
grep -q 'the broker lost what the result of subtask 0 names: stored again' agent-liar.log || fail "nothing was stored again: $(cat agent-liar.log)"
"$bourse" fetch last -o lost.d >log 2>&1 || fail "fetch: $(cat log)"
[ "$(sha256sum <lost.d/large | cut -d' ' -f1)" = "$hash" ] || fail "other bytes were fetched"

# Who says that he can store again, and never does, is not paid either. Nor is who says that an input is missing. Where nobody else is
# there each try is the liar's fault, and so the job says.
alone() { # OUTCOME
    status=0
    "$bourse" submit alone.yaml -y --wait -o alone.d >log 2>&1 || status=$?
    [ "$status" -eq 1 ] || fail "$1: a lie alone: submit --wait ends with $status: $(cat log)"
    if ! job_is '"state":"failed"' || [ "$(ended_as liar "$1" 2)" != "$tries" ]; then fail "$1: a lie alone: $(cat ps.json)"; fi
    has "$(cat log)" "every try failed by its provider's fault"
    "$bourse" ps last >ps.txt 2>&1 || fail "ps: $(cat ps.txt)"
    [ "$(balance_of liar)" = "$before" ] || fail "$1: a lie alone was paid"
}
tries=3 # the default of crash_limit is 2
before=$(balance_of liar)
lie stalling 1
leaves alone
alone 10
lie no-input 1
alone 10

# ---------------------------------------------------------------- where nobody else is there

lie never-sent 1
alone 0
has "$(cat ps.txt)" 'not paid: its provider did not store all that the subtask has to leave'
"$bourse" report last >report.txt 2>&1 || fail "report: $(cat report.txt)"
has "$(cat report.txt)" 'output not stored by its provider (3)'
job plain 'run: [sh, -c, "true"]'
"$bourse" submit plain.yaml -y --wait >log 2>&1 || fail "what declares nothing and says nothing has nothing to store: $(cat log)"

market_audit
"$bin/bourse-broker" audit "$market" --json >audit.json || fail "audit"
[ "$(field rules audit.json)" -ge 18 ] || fail "the rules: $(cat audit.json)"
echo "nine lies and three alone, none paid; what the store lost is stored again and paid: ok"
