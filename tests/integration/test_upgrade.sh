#!/usr/bin/env bash
# A rolling upgrade. `broker-before` is this broker with the numbers that the rules of the exchange had before. A broker alone takes
# the new rules at its start. Three brokers over real members of etcd are replaced one after the other while a job runs, and take
# them with the third. Nothing is lost or paid twice, all folders hold one market, and the old program is refused from then on.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
# shellcheck source=tests/support/etcd.sh
. "$here/../support/etcd.sh"
fire_begin upgrade "$1" bourse-audit broker-before
command -v sqlite3 >/dev/null || skip "no sqlite3"

declare -A port pid folder program
at() { echo "tcp://127.0.0.1:$1"; }
start() { # BROKER
    "$bin/${program[$1]}" --dir "${folder[$1]}" >>"$work/broker-$1.log" 2>&1 </dev/null &
    pid[$1]=$!
    started+=("$!")
}
stop() { # BROKER
    kill -TERM "${pid[$1]}"
    ended "${pid[$1]}" 60 || fail "broker $1 does not end"
}
ready() { grep -qsE "^pid: *${pid[$1]}\$" "${folder[$1]}/market.yaml"; } # BROKER
lines() { wc -l <"$work/broker-$1.log"; }
says() { tail -n +"$(($2 + 1))" "$work/broker-$1.log" 2>/dev/null | grep -qE "$3"; } # BROKER LINES TEXT: after so many lines of its log
says_end() { # BROKER TEXT: it has ended with 1, and its last line says so
    local status=0
    ended "${pid[$1]}" 60 || fail "broker $1 goes on with rules that it does not know"
    wait "${pid[$1]}" || status=$?
    [ "$status" -eq 1 ] || fail "broker $1 ended with $status"
    tail -n 1 "$work/broker-$1.log" | grep -qE "$2" || fail "broker $1 does not say '$2'"
}
rules_of() { # FOLDER: under which rules the audit finds its journal
    "$bin/bourse-broker" audit "$1" --json >audit.json 2>&1 || fail "audit of $1: $(cat audit.json)"
    field rules audit.json
}
genesis() { echo "genesis: {accounts: [{key: \"$owner\", name: owner, roles: [operator, consumer], credits: \"100\"}]}"; }
mint() { "$bourse" admin mint "$owner" 1 --timeout 60s >mint.log 2>&1 </dev/null || fail "mint: $(cat mint.log)"; }

export BOURSE_KEY=$work/owner/key
mkdir -m 700 owner
owner=$("$bourse" key 2>key.log) || fail "key: $(cat key.log)"

# ---- a broker alone: killed under the old rules, it goes on from there, and takes the new ones
folder[s]=$work/single program[s]='broker-before'
mkdir -m 700 "${folder[s]}"
genesis >"${folder[s]}/broker.yaml"
start s
until_true 60 ready s || fail "the single broker does not start"
export BOURSE_MARKET=${folder[s]}
mint
before=$(rules_of "${folder[s]}")
kill -9 "${pid[s]}"
ended "${pid[s]}" 60 || fail "the single broker does not end"
program[s]='bourse-broker'
from=$(lines s)
start s
until_true 60 ready s || fail "the new program does not go on from an old one's journal"
says s "$from" "under rules $((before + 1)) from command" || fail "the new program does not say that the rules changed"
mint
stop s
[ "$(rules_of "${folder[s]}")" -eq $((before + 1)) ] || fail "the audit finds rules $(field rules audit.json)"
"$bin/bourse-broker" replay --verify "${folder[s]}" >replay.log 2>&1 || fail "a replay over the change: $(cat replay.log)"
program[s]='broker-before'
start s
says_end s "RULES: the market is under rules $((before + 1)), and this bourse-broker, release .*knows rules $((before - 1)) to $before: start a newer"

# ---- three brokers of the old program, two agents, a job
etcd_begin
for name in a b c; do
    port[$name]=$(free_port)
    while [ "$(printf '%s\n' "${port[@]}" | sort | uniq -d)" != "" ]; do port[$name]=$(free_port); done
    folder[$name]=$work/$name program[$name]='broker-before'
done
config() { # BROKER RANK
    local name
    printf '%s\n' "listen: $(at "${port[$1]}")" "blob_listen: $(at $((port[$1] + 1)))" \
        "cluster: {rank: $2, address: '$(at "${port[$1]}")', copies: 2}" "$etcd_lines" "addresses:"
    for name in a b c; do
        echo "  - {control: $(at "${port[$name]}"), blobs: $(at $((port[$name] + 1)))}"
    done
    genesis
}
status() { "$bin/bourse-broker" cluster status "${folder[$1]}" >status.log 2>&1 || fail "cluster status: $(cat status.log)"; }
shows() { status "$1" && grep -qE "$2" status.log; } # BROKER TEXT
accepted() { # COUNT: so many subtasks of the job are accepted
    "$bourse" ps "$job" --json --timeout 5s >ps.json 2>/dev/null </dev/null && [ "$(field accepted ps.json)" -ge "$1" ]
}
goes_on() { # WHEN: three more subtasks are accepted
    until_true 60 accepted 1 || fail "the job cannot be seen $1"
    local now
    now=$(field accepted ps.json)
    until_true 60 accepted $((now + 3 < subtasks ? now + 3 : subtasks)) || fail "the job does not go on $1: $(cat ps.json)"
}
upgrade() { # BROKER: it follows, with the new program
    local from
    stop "$1"
    program[$1]='bourse-broker'
    from=$(lines "$1")
    start "$1"
    until_true 60 says "$1" "$from" "follows " || fail "broker $1 does not follow with the new program"
}

mkdir -m 700 "${folder[a]}"
config a 0 >"${folder[a]}/broker.yaml"
start a
until_true 60 ready a || fail "broker a does not start"
cp "${folder[a]}/market.yaml" known.yaml
chmod 600 known.yaml
export BOURSE_MARKET=$work/known.yaml
"$bin/bourse-broker" backup "${folder[a]}" "$work/backup" --with-keys >backup.log 2>&1 || fail "backup: $(cat backup.log)"
rank=1
for name in b c; do
    "$bin/bourse-broker" cluster join "$work/backup" "${folder[$name]}" >join.log 2>&1 || fail "cluster join: $(cat join.log)"
    config "$name" "$rank" >"${folder[$name]}/broker.yaml"
    start "$name"
    until_true 60 says "$name" 0 "follows " || fail "broker $name does not follow"
    rank=$((rank + 1))
done
for name in attic lab; do
    printf '%s\n' 'slots: 1' 'programs: [sleep, sh]' >agent.lines
    agent_join "$work/$name" <agent.lines
    agent_start "$work/$name"
    started+=("$agent")
done
agent=''
until_true 60 offered 2 || fail "the agents do not offer"
subtasks=120
printf '%s\n' 'run: [sleep, "0.5"]' "array: 1-$subtasks" 'limit: 5m' 'budget: 20' >job.yaml
job=$("$bourse" submit job.yaml -y --quiet 2>submit.log </dev/null) || fail "submit: $(cat submit.log)"
goes_on "at first"

# ---- the followers first, then the lead goes to a new program; the rules stay
upgrade c
upgrade b
until_true 60 shows a "^rules +$before in force, $((before + 1)) when these brokers know them: 0\$" || fail "status: $(cat status.log)"
goes_on "with two new brokers that follow"
from=$(lines b)
"$bin/bourse-broker" cluster transfer "${folder[a]}" --to 1 >transfer.log 2>&1 || fail "cluster transfer: $(cat transfer.log)"
until_true 60 says b "$from" "open market" || fail "broker b does not lead"
goes_on "under a new leader"
mint
until_true 60 shows b "broker +1 leads, .*knows rules $before to $((before + 1)), " || fail "status: $(cat status.log)"
grep -qE "^rules +$before in force" status.log || fail "the rules changed before the third broker knew them: $(cat status.log)"
! says b 0 "under rules" || fail "broker b raised the rules before the third broker knew them"

# ---- the third one: now all know the new rules
upgrade a
until_true 60 says b "$from" "under rules $((before + 1)) from command" || fail "the rules do not change"
until_true 60 shows c "^rules +$((before + 1)) in force\$" || fail "status: $(cat status.log)"
until_true 120 accepted "$subtasks" || fail "the job does not end: $(cat ps.json)"
agree() { status c && [ "$(grep -c 'state agrees' status.log)" -eq 3 ]; }
until_true 60 agree || fail "the states differ: $(cat status.log)"

# ---- the old program comes back, and is refused by name; the new one follows again
stop c
program[c]='broker-before'
mint
start c
says_end c "RULES: .*under rules $((before + 1)), .*start a newer release"
program[c]='bourse-broker'
from=$(lines c)
start c
until_true 60 says c "$from" "follows " || fail "broker c does not follow after it was refused"

# ---- one market in three folders
for name in c a b; do stop "$name"; done
last=$(for name in a b c; do sqlite3 -readonly "${folder[$name]}/ledger.db" 'SELECT max(idx) FROM journal'; done | sort -n | head -n 1)
for name in a b c; do
    sqlite3 -readonly "${folder[$name]}/ledger.db" "SELECT idx, hex(bytes) FROM journal WHERE idx <= $last" | sha256sum
    [ "$(rules_of "${folder[$name]}")" -eq $((before + 1)) ] || fail "the audit of $name finds rules $(field rules audit.json)"
    "$bin/bourse-broker" replay --verify "${folder[$name]}" >replay.log 2>&1 || fail "replay of $name: $(cat replay.log)"
    twice=$(sqlite3 -readonly "${folder[$name]}/ledger.db" "SELECT count(*) FROM
        (SELECT 1 FROM results WHERE status = 0 GROUP BY job, idx HAVING count(*) > 1
         UNION ALL SELECT 1 FROM results WHERE charge > 0 GROUP BY job, idx, attempt HAVING count(*) > 1)")
    [ "$twice" -eq 0 ] || fail "$twice subtasks were accepted or paid twice in $name"
done >journals
[ "$(sort -u journals | wc -l)" -eq 1 ] || fail "the folders have other journals: $(cat journals)"
echo "a market alone and one of three brokers went from rules $before to $((before + 1)): ok"
