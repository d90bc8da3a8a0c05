#!/usr/bin/env bash
# Three machines of a cluster under faults: three members of etcd, three brokers, two agents and two clients, all real
# processes, the machines in network namespaces of their own. Each case does one harm, heals it, and looks whether all that
# the clients were told is there once and the market goes on. Prints one JSON value; what happens is on stderr.
#
#   tests/soak/cluster_faults.sh BIN [CASE...]     without a CASE: all of them
#   tests/soak/cluster_faults.sh --list
#
# BOURSE_TIMES is how often all processes are killed at once (5). BOURSE_KEEP=yes leaves the work folder. Where this machine
# allows no namespaces, the machines share the loopback, and cases that need a cut or a small disk are left out.
# shellcheck disable=SC2317 # the cases are called by name
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
cases=(calm kill-leader kill-follower stop-leader stop-follower kill-etcd-leader kill-etcd-follower stop-etcd-leader
    kill-machine kill-both-leaders no-quorum two-machines transfer cut-leader cut-follower deaf-leader mute-leader line flap
    all-killed clock-ahead clock-behind full-follower full-leader full-member quota forged replaced)
if [ "${1:-}" = --list ]; then
    printf '%s\n' "${cases[@]}"
    exit 0
fi
[ $# -ge 1 ] || { echo "usage: cluster_faults.sh BIN [CASE...] | --list" >&2; exit 2; }
has_namespaces=${FAULTS_NAMESPACES:-no}
if [ -z "${FAULTS_NAMESPACES:-}" ]; then
    export FAULTS_NAMESPACES=no
    if [ "$(id -u)" -eq 0 ] && unshare -m -n true 2>/dev/null; then
        FAULTS_NAMESPACES=yes exec unshare -m -n bash "$0" "$@"
    fi
fi
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
exec 3>&1 >&2 # the JSON alone is on stdout
bin_given=$1
shift
chosen=("$@")
[ $# -gt 0 ] || chosen=("${cases[@]}")
for name in "${chosen[@]}"; do
    printf '%s\n' "${cases[@]}" | grep -qx "$name" || { echo "no case $name; --list has them" >&2; exit 2; }
done
fire_begin cluster-faults "$bin_given" market-client bourse-audit
for program in etcd etcdctl openssl sqlite3; do command -v "$program" >/dev/null || skip "no $program"; done
began=$(now_ms)
say() { printf '%7.1f s  %s\n' "$(($(now_ms) - began))e-3" "$*"; }
stalls_begin

# ---------------------------------------------------------------- machines

declare -A ip port broker_pid member_pid member_name clock_words
switch=faults$$
on() { # MACHINE COMMAND...
    if [ "$has_namespaces" = yes ]; then nsenter --net="/run/netns/$switch-$1" -- "${@:2}"; else "${@:2}"; fi
}
machines_end() {
    for i in 1 2 3; do ip netns del "$switch-$i" 2>/dev/null || true; done
}
if [ "$has_namespaces" = yes ]; then
    ip link set lo up
    ip link add faults-bridge type bridge
    ip addr add 10.77.0.10/24 dev faults-bridge
    ip link set faults-bridge up
    for i in 1 2 3; do
        ip[$i]=10.77.0.$i port[$i]=4770
        ip netns add "$switch-$i"
        ip link add "machine$i" type veth peer name wire
        ip link set wire netns "$switch-$i"
        ip link set "machine$i" master faults-bridge
        ip link set "machine$i" up
        on "$i" bash -euc "ip link set lo up; ip addr add ${ip[$i]}/24 dev wire; ip link set wire up"
    done
    all_end() { fire_end; machines_end; }
    trap all_end EXIT
else
    for i in 1 2 3; do
        ip[$i]=127.0.0.1
        port[$i]=$((10000 + RANDOM % 1000 * 16 + i * 4))
    done
fi
address() { echo "tcp://${ip[$1]}:${port[$1]}"; }
node() { echo "$work/out/node$1"; }
member_url() { echo "https://${ip[$1]}:$((port[$1] + 2))"; }
# The process id of what starts in the background is its own: no shell stays before it.
enter() { # MACHINE COMMAND...: this subshell becomes the command
    local way=()
    [ "$has_namespaces" = no ] || way=(nsenter "--net=/run/netns/$switch-$1" --)
    exec "${way[@]}" "${@:2}"
}
member_start() { # MACHINE
    (cd "$(node "$1")/etcd" && enter "$1" etcd --config-file etcd.yaml) >>"$work/etcd-$1.log" 2>&1 </dev/null &
    member_pid[$1]=$!
    started+=("$!")
}
broker_run() { # MACHINE
    # shellcheck disable=SC2086 # words
    (enter "$1" env ${clock_words[$1]:-} "$bin/bourse-broker" run --dir "$(node "$1")/broker") >>"$work/broker-$1.log" 2>&1 </dev/null &
    broker_pid[$1]=$!
    started+=("$!")
}
kill_hard() { # PID
    kill -9 "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}
logged() { tail -n +"$(($2 + 1))" "$work/broker-$1.log" | grep -qE "$3"; } # MACHINE LINES TEXT
lines() { wc -l <"$work/broker-$1.log"; }
etcd_ask() { # MACHINES WORDS...: etcdctl, of these machines; 123 names all
    local list=() i
    for ((i = 0; i < ${#1}; i++)); do list+=("$(member_url "${1:i:1}")"); done
    ETCDCTL_API=3 etcdctl --endpoints "$(IFS=,; echo "${list[*]}")" --cacert "$work/out/ca/ca.pem" \
        --cert "$(node 1)/broker/etcd-client.pem" --key "$(node 1)/broker/etcd-client.key" --command-timeout 5s "${@:2}"
}
etcd_is_whole() { etcd_ask 123 endpoint health >"$work/health.log" 2>&1; }
status_of() { on "$1" timeout 20 "$bin/bourse-broker" cluster status "$(node "$1")/broker" --json >"$work/status.json" 2>"$work/status.log"; }
find_leader() { # sets `leader`, the machine whose broker leads
    local i found
    for i in 1 2 3; do
        status_of "$i" || continue
        found=$(field address "$work/status.json")
        found=$(grep -oE '"address":"[^"]*"' "$work/status.json" | head -n 1 | cut -d'"' -f4)
        for leader in 1 2 3; do [ "$(address "$leader")" != "$found" ] || return 0; done
    done
    return 1
}
other_than() { # MACHINE...: prints one that is none of them
    local i
    for i in 3 2 1; do [[ " $* " == *" $i "* ]] || { echo "$i"; return; }; done
}
find_member() { # sets `member`, the machine whose etcd leads
    local i
    etcd_ask 123 endpoint status --write-out json >"$work/endpoints.json" 2>/dev/null || true
    for i in 1 2 3; do
        tr '{' '\n' <"$work/endpoints.json" | tr -d '\n' | sed 's/"Endpoint"/\n&/g' | grep -F "$(member_url "$i")" >"$work/one" || continue
        member=$i
        [ "$(grep -oE '"leader":[0-9]+' "$work/one" | cut -d: -f2)" != "$(grep -oE '"member_id":[0-9]+' "$work/one" | cut -d: -f2)" ] || return 0
    done
    return 1
}
link() { ip link set "machine$1" "$2"; } # MACHINE up|down
# What one machine sends to another goes to nobody.
lose() { on "$1" ip neigh replace "${ip[$2]}" lladdr 02:00:00:00:00:99 dev wire nud permanent; }
lose_no_more() {
    local i k
    for i in 1 2 3; do for k in 1 2 3 10; do on "$i" ip neigh del "10.77.0.$k" dev wire 2>/dev/null || true; done; done
}

# ---------------------------------------------------------------- the market

export BOURSE_KEY=$work/owner/key
mkdir -m 700 owner
owner=$("$bourse" key 2>key.log) || fail "key: $(cat key.log)"
nodes=$(for i in 1 2 3; do echo "${ip[$i]}:${port[$i]}"; done | paste -sd,)
"$bin/bourse-broker" cluster init "$work/out" --nodes "$nodes" --operator "$owner" --origin faults.example/main >init.log 2>&1 ||
    fail "cluster init: $(cat init.log)"
small_disk=no
if [ "$has_namespaces" = yes ]; then # the third machine's disk is small
    mv out/node3 node3 && mkdir -m 700 out/node3
    ! mount -t tmpfs -o size=512m,mode=700 none out/node3 || small_disk=yes
    cp -a node3/. out/node3/
fi
for i in 1 2 3; do
    sed -i "s#^cluster:.*#cluster: {rank: $((i - 1)), address: '$(address "$i")', copies: 2}#" "$(node "$i")/broker/broker.yaml"
    sed -i 's/credits: "0"/credits: "100000"/' "$(node "$i")/broker/broker.yaml"
    member_name[$i]=bourse-$i
    : >"$work/broker-$i.log"
    member_start "$i"
done
until_true 120 etcd_is_whole || fail "etcd does not start: $(cat health.log)"
broker_run 1
until_true 120 test -s "$(node 1)/broker/market.yaml" || fail "the first broker"
cp "$(node 1)/broker/market.yaml" known.yaml
chmod 600 known.yaml
export BOURSE_MARKET=$work/known.yaml
"$bin/bourse-broker" backup "$(node 1)/broker" "$work/backup" --with-keys >backup.log 2>&1 || fail "backup: $(cat backup.log)"
for i in 2 3; do
    on "$i" "$bin/bourse-broker" cluster join "$work/backup" "$(node "$i")/broker" >join.log 2>&1 || fail "join: $(cat join.log)"
    broker_run "$i"
    until_true 120 logged "$i" 0 "follows " || fail "broker $i does not follow"
done
agents=()
for name in attic lab; do
    agent_join "$work/$name" <<<$'slots: 1\nprograms: [sh, sleep, echo]'
    agent_start "$work/$name"
    agents+=("$agent")
    started+=("$agent")
done
agent=''
until_true 120 offered 2 || fail "the agents do not offer"
"$bourse" admin invite --role consumer --credits 1000 --name mara >invitation 2>invite.log || fail "invite: $(cat invite.log)"
mkdir -m 700 mara
"$bourse" join "$(cat invitation)" --key "$work/mara/key" --market "$work/mara/market.yaml" >mara.log 2>&1 || fail "join: $(cat mara.log)"
clients=()
client_start() { # NUMBER KEY WORDS...
    "$bin/market-client" act "$work/known.yaml" "$2" "record.$1" "$((seed % 1000 * 1000 + $1))" enough "${@:3}" >>"client-$1.log" 2>&1 &
    clients[$1]=$!
    started+=("$!")
}
client_start 0 "$BOURSE_KEY" mint
client_start 1 "$work/mara/key"
say "three brokers, three members of etcd, two agents and two clients; namespaces: $has_namespaces"

# ---------------------------------------------------------------- what every case looks at

# A command that is sent now is acknowledged: `probe` sets `probe_ms`. Each has its own amount, so each is found in the ledger.
probes=0
: >probes.acked
probe() { # SECONDS
    local since text
    since=$(now_ms)
    probes=$((probes + 1))
    text=$(printf '0.9%05d' "$probes")
    if ! timeout $(($1 + 30)) "$bourse" admin mint "$owner" "$text" --timeout "$1s" >probe.log 2>&1 </dev/null; then return 1; fi
    probe_ms=$(($(now_ms) - since))
    echo "$((900000 + probes))" >>probes.acked
}
db() { command sqlite3 -readonly "$(node "$1")/broker/ledger.db" "$2"; }
entries() { db "$1" 'SELECT max(idx) FROM journal'; }
has_entry() { [ "$(entries "$1")" -ge "$2" ]; } # MACHINE ENTRY

# Holds what the clients and the probes were told against the ledger of each broker. Sets `lost` and `doubled`.
count_acks() {
    local i record
    lost=0 doubled=0
    for i in 0 1; do # the records first: what they say, the ledgers know
        record=record.$i
        awk '$1 == "accepted" && $2 == "mint" { acked[$3] } $1 == "asked" && $2 == "mint" { amount[$3] = $4 }
            END { for (id in acked) print amount[id] }' "$record"
    done >acked.amounts
    cat probes.acked >>acked.amounts
    awk '$1 == "asked" && $2 == "mint" { print $4 }' record.0 >asked.amounts
    awk '$1 == "accepted" && $2 == "job" { print $3 }' record.0 record.1 >acked.jobs
    find_leader || { wrong="nobody leads"; return; }
    local end
    end=$(entries "$leader")
    for i in 1 2 3; do
        until_true 60 has_entry "$i" "$end" || { wrong="broker $i does not follow to entry $end"; return; }
        db "$i" 'SELECT amount FROM transfers WHERE kind = 2' >there.amounts
        db "$i" 'SELECT lower(hex(job)) FROM jobs' >there.jobs
        lost=$((lost + $(sort acked.amounts | comm -23 - <(sort -u there.amounts) | wc -l)))
        lost=$((lost + $(sort -u acked.jobs | comm -23 - <(sort -u there.jobs) | wc -l)))
        doubled=$((doubled + $(sort there.amounts | uniq -d | grep -cxFf <(cat asked.amounts probes.acked) || true)))
        doubled=$((doubled + $(db "$i" "SELECT count(*) FROM
            (SELECT 1 FROM results WHERE status = 0 GROUP BY job, idx HAVING count(*) > 1
             UNION ALL SELECT 1 FROM results WHERE charge > 0 GROUP BY job, idx, attempt HAVING count(*) > 1
             UNION ALL SELECT 1 FROM transfers WHERE kind = 4 GROUP BY job, idx, attempt HAVING count(*) > 1)")))
    done
}

# What is left of a fault goes, and every process runs that should. A broker that was deposed ended by itself.
heal() {
    local i
    if [ "$has_namespaces" = yes ]; then
        for i in 1 2 3; do link "$i" up; done
        lose_no_more
    fi
    for i in 1 2 3; do
        kill -CONT "${member_pid[$i]}" "${broker_pid[$i]}" 2>/dev/null || true
        ! gone "${member_pid[$i]}" || member_start "$i"
    done
    until_true 120 etcd_is_whole || { wrong="etcd does not heal: $(tail -n 3 health.log)"; return; }
    until_true 120 brokers_are_whole || wrong="the brokers do not heal"
}
brokers_are_whole() { # each leads, or follows closely
    local i end
    for i in 1 2 3; do ! gone "${broker_pid[$i]}" || broker_run "$i"; done
    find_leader || return 1
    end=$(entries "$leader")
    for i in 1 2 3; do has_entry "$i" "$end" || return 1; done
}
load_lives() {
    local i
    for i in 0 1; do
        ! gone "${clients[$i]}" || { wrong="client $i ended: $(tail -n 2 "client-$i.log")"; return; }
    done
    for i in "${agents[@]}"; do ! gone "$i" || { wrong="an agent ended"; return; }; done
}
# The promise is 5 s (P9), of programs that run: what this machine kept them from running is added. Programs with sanitizers
# take about three times as long for everything.
slowness=1
! grep -qaF __asan_init "$bin/bourse-broker" || slowness=3
check_failover() { # SECONDS: a command that is sent now is acknowledged in time
    local stalls
    stalls=$(stalled_ms)
    probe 60 || { wrong="nothing is acknowledged: $(tail -n 2 probe.log)"; return; }
    failover_ms=$probe_ms
    [ "$failover_ms" -le $((slowness * $1 * 1000 + $(stalled_ms) - stalls)) ] || wrong="the next command took $failover_ms ms"
}

# ---------------------------------------------------------------- the cases

case_calm() { sleep 5; }
kill_broker() { kill_hard "${broker_pid[$1]}"; }
case_kill-leader() { find_leader && kill_broker "$leader" && check_failover 5; }
case_kill-follower() { find_leader && kill_broker "$(other_than "$leader")" && check_failover 5; }
case_stop-leader() {
    find_leader
    kill -STOP "${broker_pid[$leader]}"
    check_failover 10 # a connection that is silent is given up after three heartbeats
    kill -CONT "${broker_pid[$leader]}"
    ended "${broker_pid[$leader]}" 60 || { wrong="a leader that was deposed does not end"; return; }
    local status=0
    wait "${broker_pid[$leader]}" || status=$?
    [ "$status" -eq 4 ] || wrong="a leader that was deposed ended with $status"
}
case_stop-follower() {
    find_leader
    local follower
    follower=$(other_than "$leader")
    kill -STOP "${broker_pid[$follower]}"
    check_failover 5
    sleep 6
    kill -CONT "${broker_pid[$follower]}"
}
case_kill-etcd-leader() { find_member && kill_hard "${member_pid[$member]}" && check_failover 5; }
case_kill-etcd-follower() { find_member && kill_hard "${member_pid[$(other_than "$member")]}" && check_failover 5; }
case_stop-etcd-leader() {
    find_member
    kill -STOP "${member_pid[$member]}"
    check_failover 5
    sleep 5
    kill -CONT "${member_pid[$member]}"
}
case_kill-machine() {
    find_leader
    kill -9 "${broker_pid[$leader]}" "${member_pid[$leader]}"
    kill_broker "$leader" && kill_hard "${member_pid[$leader]}"
    check_failover 5
}
case_kill-both-leaders() {
    find_leader && find_member
    kill -9 "${broker_pid[$leader]}" "${member_pid[$member]}"
    kill_broker "$leader" && kill_hard "${member_pid[$member]}"
    check_failover 5
}
# A command is refused within 3 s, and a read is answered and says that it is old.
refuses() {
    local since stalls
    since=$(now_ms) stalls=$(stalled_ms)
    : >refused.log
    timeout 60 "$bourse" admin mint "$owner" 0.8 --timeout 8s >refused.log 2>&1 </dev/null &
    local asker=$!
    until grep -qE "taken nothing|has no quorum" refused.log; do
        [ $(($(now_ms) - since)) -lt 60000 ] || { wrong="no NO_QUORUM: $(cat refused.log)"; break; }
        sleep 0.05 # between two looks at a file
    done
    refused_ms=$(($(now_ms) - since))
    [ -n "$wrong" ] || [ "$refused_ms" -le $((slowness * 3000 + $(stalled_ms) - stalls)) ] || wrong="NO_QUORUM took $refused_ms ms"
    ! wait "$asker" || wrong="a command was acknowledged without a quorum"
    tail -n 1 refused.log | grep -q "taken nothing" || wrong=${wrong:-the end of a refused command says no reason: $(tail -n 1 refused.log)}
}
case_no-quorum() {
    find_leader
    local other
    other=$(other_than "$leader")
    kill -9 "${member_pid[$other]}" "${member_pid[$(other_than "$leader" "$other")]}"
    refuses
    say "NO_QUORUM after $refused_ms ms"
    until_true 60 says_stale || wrong="no read says that it is old: $(cat stale.log)"
    kill_hard "${member_pid[$other]}"
    member_start "$other"
    check_failover 20
}
says_stale() { timeout 20 "$bourse" status --json --timeout 8s >stale.log 2>&1 </dev/null && grep -qE '"stale_ms":[1-9]' stale.log; }
case_two-machines() {
    find_leader
    local i
    for i in 1 2 3; do
        [ "$i" = "$leader" ] || kill -9 "${broker_pid[$i]}" "${member_pid[$i]}"
    done
    refuses
}
case_transfer() {
    find_leader
    on "$leader" "$bin/bourse-broker" cluster transfer "$(node "$leader")/broker" >transfer.log 2>&1 || wrong="transfer: $(cat transfer.log)"
    check_failover 5
}
case_cut-leader() { find_leader && link "$leader" down && check_failover 10 && sleep 3; }
case_cut-follower() { find_leader && link "$(other_than "$leader")" down && check_failover 5 && sleep 5; }
one_way() { # out|in: the leader's machine cannot send to the others, or does not hear them
    find_leader
    local i
    for i in 1 2 3; do
        [ "$i" = "$leader" ] || if [ "$1" = out ]; then lose "$leader" "$i"; else lose "$i" "$leader"; fi
    done
    check_failover 10
    sleep 5
}
case_deaf-leader() { one_way in; }
case_mute-leader() { one_way out; }
case_line() { # the leader and another do not hear each other; the third hears both
    find_leader
    local other
    other=$(other_than "$leader")
    lose "$leader" "$other"
    lose "$other" "$leader"
    check_failover 10
    sleep 8
    check_failover 10
}
case_flap() {
    find_leader
    local i
    for i in $(seq 12); do
        link "$leader" down
        sleep "0.$((RANDOM % 8 + 1))"
        link "$leader" up
        sleep "0.$((RANDOM % 8 + 1))"
    done
    check_failover 20
}
case_all-killed() {
    local i
    for _ in $(seq "${BOURSE_TIMES:-5}"); do
        sleep "$((RANDOM % 3)).$((RANDOM % 10))" # the instant is an input
        kill -9 "${broker_pid[@]}" "${member_pid[@]}" 2>/dev/null || true
        for i in 1 2 3; do kill_hard "${broker_pid[$i]}" && kill_hard "${member_pid[$i]}"; done
        heal
        [ -z "$wrong" ] || return 0
        check_failover 20
    done
}
clock_jumps() { # FROM TO: the leader's wall clock, while it runs
    local library
    for library in /usr/lib/*/faketime/libfaketimeMT.so.1 none; do [ ! -e "$library" ] || break; done
    [ "$library" != none ] || { skipped="no libfaketime"; return 0; }
    find_leader
    local at=$leader
    echo +0 >clock
    clock_words[$at]="LD_PRELOAD=$library NO_FAKE_STAT=1 FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_TIMESTAMP_FILE=$work/clock"
    clock_words[$at]+=" FAKETIME_NO_CACHE=1 ASAN_OPTIONS=verify_asan_link_order=0:$ASAN_OPTIONS"
    kill_broker "$at"
    check_failover 5
    heal
    on "$leader" "$bin/bourse-broker" cluster transfer "$(node "$leader")/broker" --to "$(address "$at")" >transfer.log 2>&1 ||
        wrong="transfer: $(cat transfer.log)"
    check_failover 5
    echo "$1" >clock
    sleep 5
    [ -n "$wrong" ] || check_failover 5
    clock_words[$at]=''
    kill_broker "$at" # the next leader's clock is right: the jump back
    [ -n "$wrong" ] || check_failover 5
}
case_clock-ahead() { clock_jumps +3600; }
case_clock-behind() { clock_jumps -3600; }
lead_by() { # MACHINE: its broker gets the lead
    find_leader
    [ "$leader" = "$1" ] || on "$leader" "$bin/bourse-broker" cluster transfer "$(node "$leader")/broker" --to "$(address "$1")" \
        >transfer.log 2>&1 || { wrong="transfer: $(cat transfer.log)"; return 0; }
    find_leader && [ "$leader" = "$1" ] || wrong="broker $1 does not get the lead"
}
fill_disk() { # the disk of the third machine
    [ "$small_disk" = yes ] || { skipped="no small disk without namespaces"; return 1; }
    dd if=/dev/zero of="$(node 3)/filler" bs=64k >/dev/null 2>&1 || true
    sync
}
free_disk() { rm -f "$(node 3)/filler"; }
case_full-follower() {
    lead_by 1
    [ -n "$wrong" ] || fill_disk || return 0
    check_failover 10
    until_true 60 logged 3 0 "free space" || wrong=${wrong:-a follower whose disk is full does not say so}
    free_disk
}
case_full-leader() {
    lead_by 3
    [ -n "$wrong" ] || fill_disk || return 0
    sleep 10 # what is told of it meanwhile is in the records
    free_disk
    check_failover 40
}
case_full-member() { # a member of etcd ends over a full disk, and comes back
    fill_disk || return 0
    until_true 30 gone "${member_pid[3]}" || kill_hard "${member_pid[3]}"
    member_start 3
    check_failover 20
    free_disk
}
case_quota() {
    local i revision
    for i in 1 2 3; do # one after the other, so that two always run
        kill_hard "${member_pid[$i]}"
        sed -i 's/^quota-backend-bytes:.*/quota-backend-bytes: 33554432/' "$(node "$i")/etcd/etcd.yaml"
        member_start "$i"
        until_true 120 etcd_is_whole || { wrong="member $i does not come back"; return 0; }
    done
    head -c 1000000 /dev/zero | tr '\0' x >junk
    for i in $(seq 200); do etcd_ask 123 put "junk/$i" <junk >put.log 2>&1 || break; done
    grep -q "space exceeded" put.log || { wrong="the quota is not reached: $(tail -n 1 put.log)"; return 0; }
    refuses
    grep -q "quota" refused.log || wrong="${wrong:-the refusal does not name the quota: $(cat refused.log)}"
    for i in 1 2 3; do sed -i 's/^quota-backend-bytes:.*/quota-backend-bytes: 8589934592/' "$(node "$i")/etcd/etcd.yaml"; done
    etcd_ask 123 del junk/ --prefix >/dev/null 2>&1 || wrong=${wrong:-etcd does not delete at its quota}
    revision=$(etcd_ask 1 endpoint status --write-out json | grep -oE '"revision":[0-9]+' | head -n 1 | cut -d: -f2)
    etcd_ask 123 compact "$revision" >/dev/null 2>&1 || true
    for i in 1 2 3; do etcd_ask "$i" defrag >/dev/null 2>&1 || true; done
    etcd_ask 123 alarm disarm >/dev/null 2>&1 || true
    check_failover 30
    for i in 1 2 3; do
        kill_hard "${member_pid[$i]}"
        member_start "$i"
        until_true 120 etcd_is_whole || wrong="member $i does not come back"
    done
}
# Nobody becomes a broker of this market with a certificate of another authority, or with a key that is not the market's.
case_forged() {
    local forged=$work/forged key
    find_leader
    rm -rf "$forged" strange
    "$bin/bourse-broker" cluster init "$work/strange" --nodes "$nodes" --operator "$owner" >init.log 2>&1 || wrong="init: $(cat init.log)"
    cp -a "$(node 2)/broker" "$forged"
    rm -f "$forged"/*.sock "$forged/market.yaml"
    sed -i "s#tcp://${ip[2]}:${port[2]}#tcp://127.0.0.1:$((port[2] + 40))#; s#tcp://${ip[2]}:$((port[2] + 1))#tcp://127.0.0.1:$((port[2] + 41))#; s/rank: 1/rank: 7/" \
        "$forged/broker.yaml"
    cp strange/node2/broker/etcd-client.* "$forged/"
    if timeout 60 "$bin/bourse-broker" run --dir "$forged" >forged.log 2>&1 </dev/null; then wrong="a strange certificate was taken"; fi
    grep -q "certificate" forged.log || wrong="${wrong:-a strange certificate: $(tail -n 2 forged.log)}"
    cp "$(node 2)"/broker/etcd-client.* "$forged/"
    for key in "$work/mara/key" "$work/lab/provider.key"; do
        cp "$key" "$forged/broker.key"
        chmod 600 "$forged/broker.key"
        timeout 20 "$bin/bourse-broker" run --dir "$forged" >forged.log 2>&1 </dev/null || true
        ! grep -qE "open market|follows " forged.log || wrong="a broker with the key of a member: $(tail -n 3 forged.log)"
        say "with $key: $(tail -n 1 forged.log)"
    done
    rm -rf "$forged" strange
    [ -n "$wrong" ] || check_failover 5
}
case_replaced() { # the member of a machine whose disk is lost; then the same once more
    local id name=bourse-3-$SECONDS
    kill_hard "${member_pid[3]}"
    id=$(etcd_ask 12 member list 2>/dev/null | grep -F ", ${member_name[3]}," | cut -d, -f1)
    etcd_ask 12 member remove "$id" >member.log 2>&1 || { wrong="remove: $(cat member.log)"; return 0; }
    rm -rf "$(node 3)/etcd/data"
    etcd_ask 12 member add "$name" --peer-urls "https://${ip[3]}:$((port[3] + 3))" >member.log 2>&1 || wrong="add: $(cat member.log)"
    sed -i "s/^name:.*/name: $name/; s/^initial-cluster-state:.*/initial-cluster-state: existing/; s#${member_name[3]}=#$name=#" \
        "$(node 3)/etcd/etcd.yaml"
    member_name[3]=$name
    member_start 3
    [ -n "$wrong" ] || check_failover 5
}

# ---------------------------------------------------------------- the run

results=() failed=0
plain() { printf '%s' "$1" | tr -c '[:alnum:] .,:;/_()%=-' ' ' | cut -c1-300; } # TEXT: as it may stand in JSON
needs_links() { case $1 in cut-* | deaf-* | mute-* | line | flap | full-*) [ "$has_namespaces" = no ] ;; *) return 1 ;; esac; }
for name in "${chosen[@]}"; do
    wrong='' skipped='' failover_ms=null refused_ms=null lost=0 doubled=0
    if needs_links "$name"; then skipped="no network namespaces here"; fi
    since=$(now_ms)
    if [ -z "$skipped" ]; then
        set +e
        "case_$name"
        fault=$wrong
        wrong=''
        heal
        [ -n "$wrong" ] || probe 60 || wrong="the market does not go on: $(tail -n 2 probe.log)"
        [ -n "$wrong" ] || count_acks
        [ -n "$wrong" ] || load_lives
        healed=$wrong
        wrong=${fault:-$wrong}
        set -e
        [ "$lost" -eq 0 ] && [ "$doubled" -eq 0 ] || wrong=${wrong:-lost $lost, twice $doubled}
    fi
    ok=true
    [ -z "$wrong" ] || { ok=false && failed=1; }
    say "$name: ${skipped:+left out: $skipped}${wrong:-${skipped:-fine}} (failover $failover_ms ms, $(($(now_ms) - since)) ms in all)"
    text=$(plain "${wrong:-$skipped}")
    results+=("{\"name\":\"$name\",\"ok\":$ok,\"skipped\":$([ -n "$skipped" ] && echo true || echo false),\"failover_ms\":$failover_ms,\
\"refused_ms\":$refused_ms,\"lost\":$lost,\"duplicated\":$doubled,\"text\":\"$text\"}")
    [ -z "${healed:-}" ] || break # the others would be blamed for it
done

# ---- the end: all records, three folders, one history
wrong=''
set +e
touch enough
for i in 0 1; do wait "${clients[$i]}" || wrong="client $i: $(tail -n 2 "client-$i.log")"; done
said=$("$bin/market-client" check known.yaml "$BOURSE_KEY" final record.0 2>&1) || wrong=${wrong:-$said}
say "the owner's record: $said"
said=$("$bin/market-client" check known.yaml "$work/mara/key" final record.1 2>&1) || wrong=${wrong:-$said}
say "mara's record: $said"
find_leader
for i in 1 2 3; do [ "$i" = "$leader" ] || { kill "${broker_pid[$i]}"; ended "${broker_pid[$i]}" 60 || wrong="broker $i does not end"; }; done
kill "${broker_pid[$leader]}"
ended "${broker_pid[$leader]}" 60 || wrong="broker $leader does not end"
shortest=$(for i in 1 2 3; do entries "$i"; done | sort -n | head -n 1)
for i in 1 2 3; do
    "$bin/bourse-broker" replay --verify "$(node "$i")/broker" >replay.log 2>&1 || wrong=${wrong:-replay of $i: $(tail -n 2 replay.log)}
    "$bin/bourse-broker" audit "$(node "$i")/broker" >audit.log 2>&1 || wrong=${wrong:-audit of $i: $(tail -n 2 audit.log)}
    db "$i" "SELECT hex(chain) FROM journal WHERE idx = $shortest" | sha256sum
done >ends.log
[ "$(sort -u ends.log | wc -l)" -eq 1 ] || wrong=${wrong:-the three folders are not one history at entry $shortest}
hashes=$(etcd_ask 123 endpoint hashkv 2>/dev/null | cut -d, -f2 | sort -u | wc -l)
[ "$hashes" -eq 1 ] || wrong=${wrong:-the members of etcd differ}
set -e
[ -z "$wrong" ] || failed=1
say "the end: ${wrong:-fine}"
text=$(plain "$wrong")
printf '{"cases":[%s],"end":{"ok":%s,"text":"%s"},"seed":%s,"namespaces":%s}\n' "$(IFS=,; echo "${results[*]}")" \
    "$([ -z "$wrong" ] && echo true || echo false)" "$text" "$seed" "$([ "$has_namespaces" = yes ] && echo true || echo false)" >&3
exit "$failed"
