#!/usr/bin/env bash
# A hostile referee that rejects everything gets no honest maker refused. Alone, it is overruled by the job's client, which computes
# the check from its seed; with a referee of another owner, by that one. A maker that lies is refuted all the same, also by that
# referee and the client, and its asks close. Two accounts of one owner are one referee. The books say all of it.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
maker=$(dirname "$(realpath "$0")")/../support/matrix.pl
fire_begin dispute "$1" bourse-audit bourse-tensor lying-tensor
command -v sqlite3 >/dev/null || skip "no sqlite3"

multiplying() { # COUNT: so many devices on offer multiply
    [ "$("$bourse" devices --needs 'executor = tensor' --json 2>/dev/null | grep -o '"price_micro":[0-9]' | wc -l)" -eq "$1" ]
}
"$maker" A1.npy 96 64 1
"$maker" B.npy 64 48 3
job() { # NAME LINE...: its file
    local name=$1
    shift
    printf '%s\n' "name: $name" 'executor: tensor' 'expect: 10ms' 'budget: 10' 'files: B.npy' 'outputs: "{in}.c"' \
        'run: [matmul, "{in}", B.npy, "{in}.c"]' 'verify: cheap' 'cap: 1' 'each: A1.npy' "$@" >"$name.yaml"
}
is_over() {
    "$bourse" ps "$id" --json >ps.json 2>/dev/null || return 1
    case $(field state ps.json) in done | failed | cancelled) ;; *) return 1 ;; esac
}
await() {
    until_true 60 is_over || fail "$1: $(cat ps.json; "$bourse" explain "$id" 2>&1; "$bourse" ps "$id" 2>&1)"
    [ "$(field state ps.json)" = "done" ] || fail "$1: $(cat ps.json)"
}
submit() { id=$("$bourse" submit "$1.yaml" -y --quiet --anyway 2>submit.log) || fail "submit: $(cat submit.log)"; }
ended_as() { # ACCOUNT STATUS: how many results of the last job
    sqlite3 -readonly "$market/ledger.db" "
        SELECT COUNT(*) FROM results JOIN accounts ON accounts.key = results.provider
        WHERE accounts.name = '$1' AND results.status = $2 AND hex(results.job) LIKE '$(echo "$id" | tr a-f A-F)%';"
}
standing() { # ACCOUNT FIELD
    "$bourse" providers --json | grep -oE "\"name\":\"$1\"[^}]*" | grep -oE "\"$2\":[0-9]+" | cut -d: -f2
}
lair() { # FOLDER LIE: an agent's programs with that lie
    rm -rf "$1"
    mkdir "$1"
    cp "$bin/bourse-provider" "$bin/bourse-worker" "$1/"
    { cat "$bin/lying-tensor"; printf '\n%32s\n%s\n' '' "$2"; } >"$1/bourse-tensor"
    chmod 755 "$1/bourse-tensor"
    [ "$(id -u)" -ne 0 ] || chmod 711 "$1"
}
agent() { # PROGRAMS NAME PRICE: joins and runs
    agent_join "$work/$2" --name "$2" <<<'slots: 1'
    sed -i "s/^price:.*/price: $3/" "$work/$2/provider.yaml"
    "$1/bourse-provider" run --dir "$work/$2" >>"$work/agent-$2.log" 2>&1 &
    started+=("$!")
}

# ---------------------------------------------------------------- the only referee rejects all

market_up --credits 1000 --slots 1
until_true 60 multiplying 1 || fail "the household's agent offers nothing"
kill -TERM "$agent"
ended "$agent" 60 || fail "the household's agent does not end"
until_true 60 multiplying 0 || fail "what the household's agent offered still stands"
lair hostile.lair reject
agent_roles=(provider referee)
agent hostile.lair hostile 0.05
agent_roles=(provider)
agent "$bin" maker 0.02
until_true 60 multiplying 2 || fail "maker and referee offer nothing: $(cat agent-*.log)"

job one
submit one
is_accused() { "$bourse" ps "$id" --json >ps.json && [ "$(field accused ps.json)" = 1 ]; }
until_true 60 is_accused || fail "the result is not held after the reject: $(cat ps.json)"
"$bourse" explain "$id" >why.txt 2>&1 || fail "explain: $(cat why.txt)"
has "$(cat why.txt)" 'rejected by one referee, and no referee of another owner is left'
! grep -qE 'another referee is needed|all within the limit|[0-9] devices? fit;' why.txt || fail "two reasons for one shortfall: $(cat why.txt)"
[ "$(ended_as maker 4)" = 0 ] || fail "one referee refutes a result"
has "$("$bourse" judge "$id")" '1 accepted, 0 rejected, 0 unsure'
await "the client does not overrule"
[ "$(ended_as maker 0)" = 1 ] || fail "the maker was not paid: $("$bourse" ps "$id")"
[ "$(ended_as hostile 0)" = 0 ] || fail "who judged it made it"
[ "$(standing hostile overruled)" = 1 ] || fail "nothing is known of the referee: $("$bourse" providers --json)"
"$bourse" receipt "$id" 0 -o one.receipt >receipt.log 2>&1 || fail "receipt: $(cat receipt.log)"
"$bourse" verify one.receipt --key "$("$bourse" key --log)" >verified.txt 2>&1 || fail "verify: $(cat verified.txt)"

# Whoever waits for the job needs no command of its own.
"$maker" A.npy 60 50 4
"$maker" M.npy 50 40 5
timeout 120 "$bourse" run -y matmul A.npy M.npy -o all.npy --tiles 2x1 --verify cheap >run.log 2>&1 ||
    fail "run: $(cat run.log; "$bourse" explain last 2>&1)"

# ---------------------------------------------------------------- a maker that lies

lair liar.lair entry
agent liar.lair liar 0.01
until_true 60 multiplying 3 || fail "the liar offers nothing: $(cat agent-liar.log)"
for round in 1 2; do
    job "lie$round" 'at_most: 1'
    sed -i 's/^cap:.*/cap: 0.3/' "lie$round.yaml"
    submit "lie$round"
    timeout 120 "$bourse" watch "$id" --quiet >watch.log 2>&1 || true
    await "lie $round"
    [ "$(ended_as liar 4)" = 1 ] || fail "lie $round: it was not refuted: $("$bourse" ps "$id")"
    [ "$(ended_as maker 0)" = 1 ] || fail "lie $round: who made it again: $("$bourse" ps "$id")"
done
[ "$(standing liar refuted)" = 2 ] || fail "refutations do not count: $("$bourse" providers --json)"
[ "$(standing liar withdrawn_ms)" -gt 0 ] || fail "its asks are open: $("$bourse" providers --json)"
has "$("$bourse" providers)" '2 refuted, asks closed for'
"$bin/bourse-provider" why --dir "$work/liar" >why.txt 2>&1 || fail "why: $(cat why.txt)"
has "$(cat why.txt)" '2 results of this account were refuted, so its asks are closed for'
"$bin/bourse-provider" status --dir "$work/liar" >status.txt 2>&1 || fail "status: $(cat status.txt)"
has "$(cat status.txt)" 'refuted      2 results of this account; its asks are closed until 20'
"$bin/bourse-provider" status --json --dir "$work/liar" >status.json 2>&1 || fail "status: $(cat status.json)"
has "$(cat status.json)" '"refuted":2,"asks_closed_until_ms":1'

# ---------------------------------------------------------------- a second referee, of another owner or not

agent_start "$market/provider"
started+=("$agent")
until_true 60 multiplying 4 || fail "the household's agent does not come back"
job second
submit second
await "the second referee does not overrule"
[ "$(ended_as maker 0)" = 1 ] && [ "$(ended_as provider 0)" = 1 ] || fail "second: who did what: $("$bourse" ps "$id")"
[ "$(sqlite3 -readonly "$market/ledger.db" "SELECT COUNT(*) FROM results JOIN accounts ON accounts.key = results.provider
    WHERE accounts.name <> 'liar' AND results.status = 4")" = 0 ] || fail "an honest result was refuted"
"$bourse" admin owner provider hostile --name lab --reason "one group" >owner.log 2>&1 || fail "owner: $(cat owner.log)"
has "$("$bourse" admin accounts)" 'lab'
job owned
submit owned
settled() { is_accused || is_over; } # whoever of the two was asked first
until_true 60 settled || fail "owned: $(cat ps.json)"
if is_accused; then
    has "$("$bourse" explain "$id")" 'no referee of another owner is left'
    "$bourse" admin owner provider hostile --undo >owner.log 2>&1 || fail "owner --undo: $(cat owner.log)"
fi
await "owned"

market_audit
echo "a referee that rejects everything refuted nothing, a liar was refuted: ok"
