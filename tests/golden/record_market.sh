#!/usr/bin/env bash
# Records a market of real processes for tests/golden: record_market.sh BIN FILE. FILE becomes an archive (tar, xz) of what an audit
# reads: `ledger.db` and `HEAD`, and no key. A change of the rules calls for one, made by the last release under the rules before.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
maker=$(dirname "$(realpath "$0")")/../support/matrix.pl
archive=$(realpath -m "$2")
fire_begin record "$1" bourse-audit bourse-tensor lying-tensor

submit() { # NAME LINES...: its id is in `id`
    printf 'name: %s\nlimit: 20s\nbudget: 0.50\n' "$1" >"$1.yaml"
    printf '%s\n' "${@:2}" >>"$1.yaml"
    id=$("$bourse" submit "$1.yaml" -y --anyway --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
}
job_is() { "$bourse" ps "$id" --json --timeout 5s >ps.json 2>/dev/null && grep -qE -- "$1" ps.json; }
await() { until_true 60 job_is "\"state\":\"$1\"" || fail "not $1: $(cat ps.json; "$bourse" explain "$id" 2>&1)"; }
refereeing() {
    [ "$("$bourse" devices --needs 'executor = tensor and referee = true' --json 2>/dev/null |
        grep -o '"price_micro":[0-9]' | wc -l)" -eq "$1" ]
}
multiplying() {
    [ "$("$bourse" devices --needs 'executor = tensor' --json 2>/dev/null | grep -o '"price_micro":[0-9]' | wc -l)" -eq "$1" ]
}

market_up --credits 100 --slots 2 --programs sh,sleep,true,seq
until_true 60 refereeing 1 || fail "the household's agent is no referee"

# ---- work that leaves files, fails, leaves what it should not, waits for another, is given up
submit outputs 'array: 1-4' 'outputs: "{index}.txt"' 'run: [sh, -c, "seq {index} 9 >{index}.txt"]'
await "done"
submit fails 'crash_limit: 0' 'run: [sh, -c, "exit 3"]'
await failed
submit leaves-nothing 'crash_limit: 0' 'outputs: absent.txt' 'run: ["true"]'
await failed
submit chain 'tasks:' '- {name: one, run: [sh, -c, "seq 5 >five"], outputs: five}' \
    '- {name: two, from: one/five, run: [sh, -c, "sh -c : <five; seq 6 >six"], outputs: six}'
await "done"
submit given-up 'array: 1-3' 'run: [sleep, "15"]'
until_true 60 job_is '"running":[1-9]' || fail "it does not run"
"$bourse" order replace "$id" --cap 0.4 --budget 0.9 >log 2>&1 || fail "replace: $(cat log)"
"$bourse" cancel "$id" >log 2>&1 || fail "cancel: $(cat log)"

# ---- the operator, newcomers, orders of their own
"$bourse" admin invite --role consumer --role provider --credits 5 --name ada >invitation 2>log || fail "invite"
mkdir -m 700 ada
"$bourse" join "$(cat invitation)" --key "$work/ada/key" --market "$work/ada/market.yaml" >log 2>&1 || fail "join: $(cat log)"
"$bourse" admin mint ada 1.5 --note "for the golden market" >log 2>&1 || fail "mint: $(cat log)"
"$bourse" admin freeze ada --reason "a golden freeze" >log 2>&1 || fail "freeze: $(cat log)"
"$bourse" admin freeze ada --undo >log 2>&1 || fail "thaw: $(cat log)"
"$bourse" admin halt --reason "a golden halt" >log 2>&1 || fail "halt: $(cat log)"
"$bourse" admin halt --undo >log 2>&1 || fail "resume: $(cat log)"
"$bourse" admin bands --most 1000 --notional 5000 >log 2>&1 || fail "bands: $(cat log)"
agent_roles=(provider)
agent_join "$work/donor" --name donor <<<'slots: 1'
sed -i 's/^price:.*/price: 0/' donor/provider.yaml
agent_start "$work/donor"
donor=$agent
started+=("$donor")
until_true 60 multiplying 2 || fail "the donor offers nothing: $(cat agent-donor.log)"
submit donated 'cap: 0' 'outputs: gift' 'run: [sh, -c, "seq 3 >gift"]'
await "done"
kill -TERM "$donor"
ended "$donor" 60 || fail "the donor does not end"

# ---- what referees judge: right, wrong by a liar, given up while it waits
agent_roles=(provider referee)
agent_join "$work/second" --name second <<<'slots: 1'
agent_start "$work/second"
second=$agent
started+=("$second")
until_true 60 refereeing 2 || fail "no second referee"
"$maker" A.npy 96 64 1
"$maker" B.npy 64 48 3
"$bourse" run -y matmul A.npy B.npy -o C.npy --tiles 2x2 --verify cheap >log 2>&1 || fail "matmul: $(cat log)"
# Both referees judge what the liar makes, so a third provider has to make it again.
agent_roles=(provider)
agent_join "$work/third" --name third <<<'slots: 1'
agent_start "$work/third"
third=$agent
started+=("$third")
until_true 60 multiplying 3 || fail "no third provider"
agent_join "$work/liar" --name liar <<<'slots: 1'
sed -i 's/^price:.*/price: 0.01/' liar/provider.yaml
mkdir lair
cp "$bin/bourse-provider" "$bin/bourse-worker" lair/
{ cat "$bin/lying-tensor"; printf '\n%32s\n%s\n' '' zeros; } >lair/bourse-tensor
chmod 755 lair/bourse-tensor
[ "$(id -u)" -ne 0 ] || chmod 711 lair
lair/bourse-provider run --dir "$work/liar" >>agent-liar.log 2>&1 &
liar=$!
started+=("$liar")
until_true 60 multiplying 4 || fail "the liar offers nothing: $(cat agent-liar.log)"
product() {
    submit "$1" 'executor: tensor' 'expect: 10ms' 'files: [A.npy, B.npy]' 'outputs: C.npy' 'run: [matmul, A.npy, B.npy, C.npy]' \
        'verify: cheap' 'cap: 1' 'at_most: 1'
}
product lied
await "done"
kill -TERM "$second" "$third" "$liar"
ended "$third" 60 || fail "the third provider does not end"
ended "$second" 60 || fail "the second referee does not end"
ended "$liar" 60 || fail "the liar does not end"
until_true 60 multiplying 1 || fail "what they offered still stands"
product untried
until_true 60 job_is '"checking":1' || fail "its result is not held: $(cat ps.json)"
"$bourse" cancel "$id" >log 2>&1 || fail "cancel: $(cat log)"

# ---- another epoch, which shows the secret of the one before
kill -TERM "$broker"
ended "$broker" 60 || fail "the broker does not end"
broker_start
broker_await || fail "the broker does not start again"
until_true 60 offered 1 || fail "the agents do not come back"
submit again 'array: 1-4' 'outputs: "{index}.txt"' 'run: [sh, -c, "seq {index} 9 >{index}.txt; sleep 0.5"]'
await "done"
submit stays-open 'needs: memory >= 900GiB' 'run: ["true"]'

market_audit
mkdir kept
sqlite3 "$market/ledger.db" "PRAGMA wal_checkpoint(TRUNCATE)" >log || fail "the journal of the database"
cp "$market/ledger.db" "$market/HEAD" kept/
"$bin/bourse-broker" audit kept || fail "what is kept is not enough for an audit"
tar -C kept --owner=0 --group=0 --numeric-owner --mtime=@0 --sort=name -c HEAD ledger.db | xz -9e >"$archive"
ls -l "$archive"
