#!/usr/bin/env bash
# Three brokers over three members of etcd. A broker that follows answers reads to whoever asks for that, and says of which state each
# answer is; nobody else gets an answer there. While the leader stands still and etcd has no quorum, its answers say how old they are.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
# shellcheck source=tests/support/etcd.sh
. "$here/../support/etcd.sh"
fire_begin follower-reads "$1" bourse-audit
etcd_begin

declare -A port pid folder
for name in a b c; do
    port[$name]=$(free_port)
    while [ "$(printf '%s\n' "${port[@]}" | sort | uniq -d)" != "" ]; do port[$name]=$(free_port); done
    folder[$name]=$work/$name
done
at() { echo "tcp://127.0.0.1:$1"; }
config() { # BROKER RANK
    local name
    printf '%s\n' "listen: $(at "${port[$1]}")" "blob_listen: $(at $((port[$1] + 1)))" \
        "cluster: {rank: $2, address: '$(at "${port[$1]}")'}" "$etcd_lines" "addresses:"
    for name in a b c; do
        echo "  - {control: $(at "${port[$name]}"), blobs: $(at $((port[$name] + 1)))}"
    done
    echo "genesis: {accounts: [{key: \"$owner\", name: owner, roles: [operator, consumer], credits: \"100\"}]}"
}
start() { # BROKER
    "$bin/bourse-broker" --dir "${folder[$1]}" >>"$work/$1.log" 2>&1 </dev/null &
    pid[$1]=$!
    started+=("$!")
}
says() { grep -q "$2" "$work/$1.log"; } # BROKER TEXT

# ---- three brokers: the first leads
mkdir -m 700 "${folder[a]}" owner stranger
export BOURSE_KEY=$work/owner/key
owner=$("$bourse" key 2>key.log) || fail "key: $(cat key.log)"
config a 0 >"${folder[a]}/broker.yaml"
start a
until_true 60 test -s "${folder[a]}/market.yaml" || fail "the first broker"
"$bin/bourse-broker" backup "${folder[a]}" "$work/backup" --with-keys >backup.log 2>&1 || fail "backup: $(cat backup.log)"
rank=1
for name in b c; do
    "$bin/bourse-broker" cluster join "$work/backup" "${folder[$name]}" >join.log 2>&1 || fail "cluster join: $(cat join.log)"
    config "$name" "$rank" >"${folder[$name]}/broker.yaml"
    start "$name"
    rank=$((rank + 1))
done
for name in b c; do until_true 60 says "$name" "follows .*127.0.0.1:${port[a]}" || fail "$name does not follow"; done
cp "${folder[a]}/market.yaml" known.yaml
chmod 600 known.yaml
BOURSE_MARKET=$work/known.yaml
printf '%s\n' 'slots: 1' 'programs: [sh, cat]' | agent_join "$work/lab"
agent_start "$work/lab"
until_true 60 offered 1 || fail "the agent does not offer"

# The second broker's file names that broker first.
export BOURSE_MARKET=${folder[b]}/market.yaml
asks() { "$bourse" "$@" --timeout 20s >asked.out 2>asked.log </dev/null; } # WORDS...
reads() { asks "$@" --read-from any; }
state() { grep -oE '"state":\{"[a-z][^}]*\}' asked.out | tail -n 1 >state.out; field "$1" state.out; }
from_follower() { # WORDS...: the answer is a follower's, and of now
    reads "$@" --json || return 1
    [ "$(state follows)" = true ] && [ "$(state stale_ms)" = 0 ] && [ "$(state index)" -gt 0 ]
}

# ---- nobody gets an answer of a follower unawares
asks balance --json || fail "balance by way of a follower: $(cat asked.log)"
! grep -q '"state"' asked.out || fail "an answer of the leader has a state: $(cat asked.out)"
until_true 60 from_follower balance || fail "a follower answers no read: $(cat asked.out asked.log)"
reads balance || fail "balance: $(cat asked.log)"
grep -qE "^the broker at tcp://127.0.0.1:${port[b]} follows; state of command [0-9]+$" asked.log || fail "nobody says who answers: $(cat asked.log)"
if BOURSE_READ_FROM=nobody asks balance; then fail "a wrong setting was taken"; fi

# ---- listings, the book, explanations, the ledger
printf '%s\n' 'run: [sh, -c, "echo said"]' 'limit: 5m' 'budget: 5' >job.yaml
job=$("$bourse" submit job.yaml -y --quiet 2>submit.log </dev/null) || fail "submit: $(cat submit.log)"
is_done() { asks ps "$job" --json && grep -q '"state":"done"' asked.out; }
until_true 120 is_done || fail "the job does not end: $(cat asked.out asked.log)"
asks admin mint "$owner" 1 --read-from any --json || fail "a command by way of a follower: $(cat asked.log)"
[ "$(state follows)" = false ] || fail "a follower accepted a command: $(cat asked.out)"
written=$(state newest)
for words in balance status ps devices providers book trades prices ledger "order list" "admin accounts" "ps $job" "explain $job"; do
    # shellcheck disable=SC2086 # words of one command
    asks $words --json || fail "$words: the leader: $(cat asked.log)"
    # shellcheck disable=SC2086
    asks $words --read-from "$written" --json || fail "$words: $(cat asked.log)"
    { [ "$(state follows)" = true ] || [ "$(state follows)" = false ]; } && [ "$(state index)" -ge "$written" ] ||
        fail "$words: older than asked for: $(cat asked.out)"
    # shellcheck disable=SC2086
    until_true 20 from_follower $words || fail "$words: no answer of a follower: $(cat asked.out asked.log)"
done
asks balance --json || fail "balance: $(cat asked.log)"
available=$(field available_micro asked.out)
from_follower balance || fail "balance: $(cat asked.out)"
[ "$(field available_micro asked.out)" = "$available" ] || fail "another balance: $(cat asked.out), the leader: $available"
reads receipt "$job" --all -o proofs || fail "receipts of a follower: $(cat asked.log)"
"$bourse" verify proofs --key "$("$bourse" key --log)" >verify.log 2>&1 </dev/null || fail "they do not hold: $(cat verify.log)"
reads report "$job" || fail "the report needs a file of the leader: $(cat asked.log)"
reads fetch "$job" -o fetched || fail "fetch: $(cat asked.log)"
timeout 20 "$bourse" trades --follow --read-from any >follow.out 2>follow.log </dev/null || [ $? -eq 124 ] || fail "follow: $(cat follow.log)" &
followed=$!

# ---- whoever knows of more than a follower has is sent on; who is no member learns nothing
asks balance --read-from 999999999 --json || fail "sent on: $(cat asked.log)"
[ "$(state follows)" = false ] || fail "an answer lacks what was asked for: $(cat asked.out)"
if BOURSE_KEY=$work/stranger/key "$bourse" key >/dev/null 2>&1 && BOURSE_KEY=$work/stranger/key reads balance; then
    fail "a follower told a stranger of accounts: $(cat asked.out)"
fi
wait "$followed" || fail "follow: $(cat follow.log)"
grep -q . follow.out || fail "the market by way of a follower: nothing was told: $(cat follow.log)"

# ---- no quorum, and the leader stands still: marked answers, and no command is taken
etcd_kill 1
etcd_kill 2
kill -STOP "${pid[a]}"
is_stale() { reads balance --json && [ "$(state follows)" = true ] && [ "$(state stale_ms)" -gt 1500 ]; }
until_true 30 is_stale || fail "an old answer is not marked: $(cat asked.out asked.log)"
[ "$(field available_micro asked.out)" = "$available" ] || fail "an old answer: $(cat asked.out)"
reads balance --quiet || fail "a stale balance: $(cat asked.log)"
grep -q " follows; state of command .* old" asked.log || fail "an old answer is not told: $(cat asked.log)"
reads book || fail "the book without a quorum: $(cat asked.log)"
if "$bourse" admin mint "$owner" 1 --timeout 6s --read-from any >asked.out 2>asked.log </dev/null; then fail "acknowledged without a quorum"; fi
kill -CONT "${pid[a]}"
if "$bourse" admin mint "$owner" 1 --timeout 6s >asked.out 2>asked.log </dev/null; then fail "acknowledged without a quorum"; fi
tail -n 1 asked.log | grep -q "journal has taken nothing" || fail "no reason: $(cat asked.log)"

# ---- etcd comes back, and so do answers of now; somebody leads
etcd_start 1
etcd_start 2
until_true 60 asks balance --json || fail "nobody leads: $(cat asked.log)"
answers_now() { BOURSE_MARKET=$work/c/market.yaml from_follower balance || from_follower balance; }
until_true 60 answers_now || fail "no follower is up to date again: $(cat asked.out asked.log)"
echo "reads of brokers that follow: ok in $SECONDS s"
