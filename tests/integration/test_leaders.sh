#!/usr/bin/env bash
# Clients and agents of a market with several brokers. One real broker leads, and a small program with the market's key answers every
# message of its own two ports with NOT_LEADER. The real broker is then killed and started at another port: to its clients that is a
# new leader. A job that runs meanwhile ends right, at its first attempt.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
fire_begin leaders "$1" bourse-audit follower
command -v sqlite3 >/dev/null || skip "no sqlite3"

lead=$(free_port) follow=$lead next=$lead
while [ "$follow" -eq "$lead" ]; do follow=$(free_port); done
while [ "$next" -eq "$lead" ] || [ "$next" -eq "$follow" ]; do next=$(free_port); done
address() { echo "tcp://127.0.0.1:$1"; }
entry() { echo "  - {control: \"$(address "$1")\", blobs: \"$(address $(($1 + 1)))\"}"; }

# config PORT [OTHER...]: the broker listens at PORT, and names the others in invitations.
config() {
    printf '%s\n' "listen: $(address "$1")" "blob_listen: $(address $(($1 + 1)))" \
        "genesis: {accounts: [{key: \"$key\", name: owner, roles: [operator, consumer], credits: \"100\"}]}"
    if [ $# -gt 1 ]; then
        echo addresses:
        for port in "${@:2}"; do entry "$port"; done
    fi
}
# market_of FILE PORT...: market.yaml of a client that knows the brokers at these ports, in this order.
market_of() {
    {
        grep -E '^(server_key|cluster|origin|log_key):' "$market/market.yaml"
        echo "control: \"$(address "$2")\""
        echo "blobs: \"$(address $(($2 + 1)))\""
        if [ $# -gt 2 ]; then
            echo addresses:
            for port in "${@:3}"; do entry "$port"; done
        fi
    } >"$1"
    chmod 600 "$1"
}
quick() { # MS COMMAND...: succeeds within so many milliseconds
    local began
    began=$(now_ms)
    "${@:2}" >quick.log 2>&1 || fail "$*: $(cat quick.log)"
    took=$(($(now_ms) - began))
    [ "$took" -le $(($1 + $(stalled_ms))) ] || fail "$* took $took ms: $(cat quick.log)"
}

mkdir -m 700 "$market"
[ "$(id -u)" -ne 0 ] || { chgrp bourse "$market"; chmod 710 "$market"; }
key=$("$bourse" key --key "$market/owner.key" 2>key.log) || fail "key: $(cat key.log)"
export BOURSE_KEY=$market/owner.key BOURSE_MARKET=$market/market.yaml
config "$lead" "$lead" "$follow" >"$market/broker.yaml"
stalls_begin
broker_start
broker_await || fail "the broker"
touch follower.log
"$bin/follower" "$market/broker.key" "$(address "$follow")" "$(address $((follow + 1)))" "$work/leader" >follower.log 2>&1 &
started+=("$!")
until_true 60 grep -q ready follower.log || fail "the follower"

# Invitations name both brokers, and who joins knows both.
"$bourse" admin invite --role consumer --credits 5 --name ada >ada.invitation 2>invite.log || fail "invite: $(cat invite.log)"
has "$(cat ada.invitation)" bourse-invite-2.
mkdir -m 700 ada
expect 0 "" "$bourse" join "$(cat ada.invitation)" --name ada --key "$work/ada/key" --market "$work/ada/market.yaml"
has "$(cat ada/market.yaml)" "{control: \"$(address "$follow")\", blobs: \"$(address $((follow + 1)))\"}"
agent_join "$work/lab" <<END
slots: 2
programs: [sleep, sh, "true"]
END
has "$(cat lab/market.yaml)" "$(address "$follow")"

# A follower that names the leader costs no time that anybody sees, and a file stays as it is.
address "$lead" >leader
market_of both.yaml "$follow" "$lead"
quick 3000 "$bourse" status --market both.yaml
[ ! -s quick.log ] || ! grep -q '^bourse: ' quick.log || fail "a move to the leader is no news: $(cat quick.log)"
grep -q 'control hello' follower.log || fail "the follower was not asked"
market_of one.yaml "$follow"
cp one.yaml before.yaml
quick 3000 "$bourse" status --market one.yaml # a leader outside the client's list
cmp one.yaml before.yaml || fail "the market's file was changed"

# One that knows no leader is passed over, and so is an address without a broker.
: >leader
quick 3000 "$bourse" status --market both.yaml
market_of dead.yaml "$next" "$follow" "$lead"
quick 3000 "$bourse" status --market dead.yaml
has "$(cat quick.log)" "$(address "$next"): no connection"
has "$(cat quick.log)" "refuses connections"

# Nobody leads: the command says of each address what came back.
market_of none.yaml "$follow" "$next"
expect 6 "no broker of this market can be used: $(address "$follow") .it follows another broker., $(address "$next") .no connection" \
    "$bourse" status --market none.yaml --timeout 7s

# Files go where the session is: an output of 3 MB comes back through the leader's blob port.
address "$lead" >leader
agent_start "$work/lab"
until_true 60 offered 2 || fail "the agent does not offer: $(cat agent-lab.log)"
printf '%s\n' 'run: [sh, -c, "head -c 3000000 /dev/zero > big"]' 'outputs: [big]' 'cap: 0.10' 'budget: 5' >big.yaml
big=$("$bourse" submit big.yaml -y --wait --quiet --market both.yaml 2>run.log) || fail "the job: $(cat run.log)"
"$bourse" fetch "$big" -o fetched --market both.yaml >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
[ "$(find fetched -name big -size 3000000c | wc -l)" -eq 1 ] || fail "the output: $(ls -lR fetched)"

# The leader dies while a job runs, and another address leads. The agent and the waiting command find it.
printf '%s\n' 'run: [sh, -c, "sleep 8; echo done > out"]' 'outputs: [out]' 'limit: 5m' 'cap: 0.10' 'budget: 5' >long.yaml
"$bourse" submit long.yaml -y --wait --quiet --market both.yaml --timeout 60s >long.id 2>long.log &
waiting=$!
started+=("$waiting")
runs() { runs_below "$agent" sleep; }
until_true 60 runs || fail "the job does not run: $(cat long.log)"
broker_kill
: >leader
config "$next" >"$market/broker.yaml"
broker_start
broker_await || fail "the broker at the other port"
address "$next" >leader
wait "$waiting" || fail "the job: $(cat long.log)"
"$bourse" fetch "$(cat long.id)" -o long --market both.yaml >fetch.log 2>&1 || fail "fetch: $(cat fetch.log)"
[ "$(cat "$(find long -name out)")" = "done" ] || fail "its output"
grep -q "$(address "$lead"): " agent-lab.log || fail "the agent does not say what it tried: $(cat agent-lab.log)"
"$bin/bourse-provider" status --dir "$work/lab" --json >status.json || fail "status"
has "$(cat status.json)" "$(address "$next")"
[ "$(command sqlite3 -readonly "$market/ledger.db" 'SELECT max(attempt) FROM results')" = 1 ] || fail "a second attempt"
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
agent=
market_audit
echo "clients and an agent followed the leader: ok in $SECONDS s"
