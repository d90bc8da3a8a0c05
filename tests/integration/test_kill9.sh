#!/usr/bin/env bash
# The broker is killed at random instants and at the doors of system calls, under load of clients that keep a record of
# every acknowledgement, of which some are killed themselves, and so are agents. After each restart the records must hold: what
# was acknowledged is there once, the rest wholly or not at all. At the end every job is whole, the audit and a replay agree.
# BOURSE_SEED repeats the choices of a run, BOURSE_KILLS sets how many; BOURSE_LONG=yes does 220.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin kill9 "$1" market-client bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"

kills_wanted=25 seconds_most=300
if [ "$long" = yes ]; then
    kills_wanted=220 seconds_most=1500
fi
kills_wanted=${BOURSE_KILLS:-$kills_wanted}

market_up --credits 100
# While a broker starts there is no market.yaml: the agent, which is started at any time, has a copy of its own.
sed -i 's#^market:.*#market: market.yaml#' "$market/provider/provider.yaml"
cp "$work/known.yaml" "$market/provider/market.yaml"
chown --reference="$market/provider" "$market/provider/market.yaml"
"$bourse" admin invite --role consumer --credits 50 --name mara >invitation 2>invite.log || fail "invite"
mkdir -m 700 "$work/mara"
"$bourse" join "$(cat invitation)" --key "$work/mara/key" --market "$work/mara/market.yaml" >join.log 2>&1 ||
    fail "join: $(cat join.log)"

# Three clients of two accounts; the operator's two mint.
clients=() lives=0
client_start() { # NUMBER
    local key=$market/owner.key mint=mint
    [ "$1" -lt 2 ] || { key=$work/mara/key mint=''; }
    lives=$((lives + 1))
    "$bin/market-client" act "$work/known.yaml" "$key" "record.$1" "$((seed % 1000 * 1000 + lives))" enough $mint \
        >>"client$1.log" 2>&1 &
    clients[$1]=$!
    started+=("$!")
}
for number in 0 1 2; do
    client_start "$number"
done

check() { # now|final
    local said
    for account in owner mara; do
        local records=(record.0 record.1) key=$market/owner.key
        [ "$account" = owner ] || { records=(record.2) key=$work/mara/key; }
        said=$("$bin/market-client" check "$work/known.yaml" "$key" "$1" "${records[@]}" 2>&1) ||
            fail "after kill $kills ($how): $said"
        echo "$said" >"$account.json"
    done
}

# The doors at which the broker may be killed: a call, and how often at most its thread passes before.
doors=('fdatasync 12' 'fsync 4' 'pwrite64 60' 'sendto 40' 'write 80' 'unlink 3' 'rename 1')
have_strace=yes
can_trace doors || have_strace=no

kills=0 at_doors=0 client_kills=0 agent_kills=0 how='at an instant'
traced_start() {
    local call most
    read -r call most <<<"${doors[RANDOM % ${#doors[@]}]}"
    how="at $call"
    broker_start strace -D -f -qqq -o /dev/null -e "trace=$call" \
        -e "inject=$call:signal=SIGKILL:when=$((RANDOM % most + 1))"
}
random_pause() { sleep "0.$((RANDOM % 400 + 100))"; } # the instant is the input of this test

while [ "$kills" -lt "$kills_wanted" ] && [ "$SECONDS" -lt "$seconds_most" ]; do
    random_pause
    if [ "$((RANDOM % 3))" -eq 0 ]; then # a client, in the middle of whatever it does
        victim=$((RANDOM % 3))
        kill -9 "${clients[$victim]}" 2>/dev/null || fail "client $victim had ended: $(cat "client$victim.log")"
        wait "${clients[$victim]}" 2>/dev/null || true
        client_kills=$((client_kills + 1))
        client_start "$victim"
    fi
    if [ "$((RANDOM % 8))" -eq 0 ]; then
        kill -9 "$agent" 2>/dev/null || fail "the agent had ended"
        ended "$agent" 60 || fail "an agent that was killed is still there"
        agent_kills=$((agent_kills + 1))
        agent_start "$market/provider"
        started+=("$agent")
    fi
    if [ "${how#at an}" = "$how" ] && ended "$broker" 2; then # it met its door
        at_doors=$((at_doors + 1))
    fi
    broker_kill
    kills=$((kills + 1))
    how='at an instant'
    if [ "$have_strace" = yes ] && [ "$((RANDOM % 2))" -eq 0 ]; then
        traced_start
    else
        broker_start
    fi
    until broker_await; do # killed at a door before it was ready
        wait "$broker" 2>/dev/null && fail "the broker ended by itself after kill $kills"
        [ "$how" != 'at an instant' ] || fail "the broker did not start after kill $kills"
        kills=$((kills + 1)) at_doors=$((at_doors + 1))
        how='at an instant'
        broker_start
    done
    # A traced broker may go at any moment: the records are held against one that stays.
    [ "$how" != 'at an instant' ] || check now
done
[ "$kills" -ge "$kills_wanted" ] || [ "$long" = no ] || fail "$kills kills in $SECONDS s"
[ "$kills" -ge 10 ] || fail "$kills kills in $SECONDS s"

broker_kill
broker_start
broker_await || fail "the last start"
touch enough
for number in 0 1 2; do
    wait "${clients[$number]}" || fail "client $number ended with $?"
done
check final
for what in jobs results mints; do
    [ "$(($(number $what owner.json) + $(number $what mara.json)))" -ge 3 ] ||
        fail "too little happened: $(cat owner.json mara.json)"
done
"$bourse" balance --json >balance.json
[ "$(number held_micro balance.json)" -eq 0 ] || fail "money is still held: $(cat balance.json)"
market_audit
echo "the broker killed $kills times ($at_doors at the door of a call), clients $client_kills, agents $agent_kills times" \
    "in $SECONDS s: owner $(cat owner.json), mara $(cat mara.json): ok (seed $seed)"
