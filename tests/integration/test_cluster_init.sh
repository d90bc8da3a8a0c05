#!/usr/bin/env bash
# Three machines from one command line, as docs/operator.md says: `cluster init`, three members of etcd and three brokers on
# loopback, with the files that it made. Clients of etcd with a wrong certificate are refused, and the broker says why. Brokers
# leave and join again; the market is recovered in a new journal, and brokers of the old one do not start.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
fire_begin cluster-init "$1" bourse-audit
for program in etcd etcdctl openssl; do command -v "$program" >/dev/null || skip "no $program"; done

broker_of() { "$bin/bourse-broker" "$@"; }
init() { broker_of cluster init "$@" >init.log 2>&1 </dev/null; }
mkdir -m 700 owner
export BOURSE_KEY=$work/owner/key
operator=$("$bourse" key 2>key.log) || fail "key: $(cat key.log)"
ports=()
for i in 0 1 2; do
    ports[i]=$(free_port)
    for other in "${ports[@]:0:i}"; do # a node has four ports
        [ $((ports[i] - other)) -ge 4 ] || [ $((other - ports[i])) -ge 4 ] || ports[i]=$((other + 8))
    done
done
nodes=127.0.0.1:${ports[0]},127.0.0.1:${ports[1]},127.0.0.1:${ports[2]}

# ---- what init makes, and what it refuses
status=0
init "$work/out" --nodes 127.0.0.1,127.0.0.2 --operator "$operator" || status=$?
[ "$status" -eq 2 ] || fail "two nodes: status $status: $(cat init.log)"
grep -q "an odd number" init.log || fail "two nodes are refused without the reason: $(cat init.log)"
[ ! -e "$work/out" ] || fail "a refused init left a folder"
init "$work/out" --nodes "$nodes" --operator "$operator" --origin exchange.example/main || fail "init: $(cat init.log)"
first=$(find out -type f -exec sha256sum {} + | sort)
status=0
init "$work/out" --nodes "$nodes" --operator "$operator" || status=$?
[ "$status" -eq 1 ] || fail "init over a folder: status $status: $(cat init.log)"
grep -q "nothing is overwritten" init.log || fail "init over a folder does not say so: $(cat init.log)"
[ "$(find out -type f -exec sha256sum {} + | sort)" = "$first" ] || fail "init changed a folder that was there"
[ -z "$(find out -type f ! -perm 600)$(find out -type d ! -perm 700)" ] || fail "rights: $(find out -ls)"
[ "$(find out -name '*.key' | wc -l)" -eq 7 ] || fail "keys: $(find out -name '*.key')"
for key in out/ca/ca.key out/node?/etcd/etcd.key out/node?/broker/etcd-client.key; do
    [ "$(grep -c "BEGIN PRIVATE KEY" "$key")" -eq 1 ] || fail "$key is no key"
done
for certificate in out/node?/etcd/etcd.pem out/node?/broker/etcd-client.pem; do
    openssl verify -CAfile out/ca/ca.pem "$certificate" >verify.log 2>&1 || fail "$certificate: $(cat verify.log)"
done
openssl x509 -in out/node1/broker/etcd-client.pem -noout -text | grep -A1 "Extended Key Usage" | grep -q "Server" &&
    fail "a broker's certificate is good for a server"

# ---- etcd of three nodes, and the first broker
for i in 1 2 3; do
    (cd "out/node$i/etcd" && exec etcd --config-file etcd.yaml) >"etcd-$i.log" 2>&1 </dev/null &
    started+=("$!")
done
run() { # NODE: starts its broker
    "$bin/bourse-broker" run --dir "$work/out/node$1/broker" >>"broker-$1.log" 2>&1 </dev/null &
    pid=$!
    started+=("$pid")
}
says() { grep -qE "$2" "broker-$1.log"; }
first_runs() { # etcd may need some seconds until it has a leader
    says 1 "new market|open market" && return 0
    kill -0 "$pid" 2>/dev/null || run 1
    return 1
}
run 1
until_true 90 first_runs || fail "the first broker does not start: $(tail -n 3 broker-1.log)"
first_broker=$pid
until_true 60 test -s out/node1/broker/market.yaml || fail "the first broker is not ready"
grep -q "exchange.example/main" out/node1/broker/market.yaml || fail "the market has another origin"

# ---- the second node joins, with its own config and certificate
broker_of backup out/node1/broker "$work/backup" --with-keys >backup.log 2>&1 || fail "backup: $(cat backup.log)"
before=$(sha256sum <out/node2/broker/broker.yaml)
touch out/node2/broker/notes
if broker_of cluster join "$work/backup" "$work/out/node2/broker" >join.log 2>&1; then fail "join took a folder with notes"; fi
grep -q "has notes" join.log || fail "join does not name the file in its way: $(cat join.log)"
rm out/node2/broker/notes
broker_of cluster join "$work/backup" "$work/out/node2/broker" >join.log 2>&1 || fail "join: $(cat join.log)"
[ "$(sha256sum <out/node2/broker/broker.yaml)" = "$before" ] || fail "join changed the node's config"
run 2
until_true 60 says 2 "follows .*127.0.0.1:${ports[0]}" || fail "the second broker does not follow: $(tail -n 3 broker-2.log)"
broker_of cluster status out/node2/broker >status.log 2>&1 || fail "status: $(cat status.log)"
[ "$(grep -c "^member .* etcd 3" status.log)" -eq 3 ] || fail "status: $(cat status.log)"

# ---- certificates that do not fit: of another authority, with another key, for other members, and one that has ended
init "$work/strange" --nodes "$nodes" --operator "$operator" || fail "a second init: $(cat init.log)"
asks_with() { # CERTIFICATE KEY CA: asks etcd with these files, from the second broker's folder
    cp "$1" out/node2/broker/etcd-client.pem
    cp "$2" out/node2/broker/etcd-client.key
    cp "$3" out/node2/broker/etcd-ca.pem
    ! broker_of cluster status out/node2/broker >asked.log 2>&1 </dev/null
}
good=$work/good
mkdir "$good"
cp out/node2/broker/etcd-*.* "$good/"
asks_with strange/node2/broker/etcd-client.pem strange/node2/broker/etcd-client.key "$good/etcd-ca.pem" ||
    fail "a certificate of another authority was taken: $(cat asked.log)"
grep -q "unable to get local issuer certificate" asked.log || fail "another authority: no reason: $(cat asked.log)"
asks_with "$good/etcd-client.pem" out/node3/broker/etcd-client.key "$good/etcd-ca.pem" || fail "another's key was taken: $(cat asked.log)"
grep -qi "private key" asked.log || fail "another's key: no reason: $(cat asked.log)"
asks_with "$good/etcd-client.pem" "$good/etcd-client.key" strange/ca/ca.pem || fail "members of another authority were believed"
grep -qiE "certificate" asked.log || fail "members of another authority: no reason: $(cat asked.log)"
openssl req -new -key "$good/etcd-client.key" -subj /CN=old -out old.csr 2>/dev/null
printf 'extendedKeyUsage=clientAuth\n' >old.ext
mkdir ca-of-old
touch ca-of-old/index
printf '%s\n' '[ca]' default_ca=a '[a]' "database=$work/ca-of-old/index" "new_certs_dir=$work/ca-of-old" default_md=sha256 \
    policy=p rand_serial=yes '[p]' commonName=supplied >old.cnf
openssl ca -batch -config old.cnf -cert out/ca/ca.pem -keyfile out/ca/ca.key \
    -in old.csr -out old.pem -extfile old.ext -startdate 20200101000000Z -enddate 20200102000000Z >old.log 2>&1 ||
    fail "the certificate that has ended: $(cat old.log)"
asks_with old.pem "$good/etcd-client.key" "$good/etcd-ca.pem" || fail "a certificate that has ended was taken: $(cat asked.log)"
grep -q "certificate has expired" asked.log || fail "a certificate that has ended: no reason: $(cat asked.log)"
echo "refused: $(tail -n 1 asked.log)"
asks_with "$good/etcd-client.pem" "$good/etcd-client.key" "$good/etcd-ca.pem" && fail "the right files are refused: $(cat asked.log)"

# ---- the records of the brokers
declare -A pids=([1]=$first_broker [2]=$pid)
start() { # NODE
    run "$1"
    pids[$1]=$pid
}
follows() { says "$1" "follows .*127.0.0.1:${ports[$2]}"; } # NODE, number of the leader's port
shows() { # RANK ROLE: what the status of node 2 says
    broker_of cluster status out/node2/broker --json >status.json 2>status.log || return 1
    tr '{' '\n' <status.json | grep "\"rank\":$1,\"role\":\"$2\"" >record.json
}
etcd_control() {
    ETCDCTL_API=3 etcdctl --endpoints "https://127.0.0.1:$((ports[0] + 2))" --cacert out/ca/ca.pem \
        --cert out/node1/broker/etcd-client.pem --key out/node1/broker/etcd-client.key --command-timeout 5s "$@"
}
refused() { # TEXT WORDS...: the command fails and says that
    local text=$1
    shift
    if broker_of "$@" >refused.log 2>&1 </dev/null; then fail "taken: $*"; fi
    grep -q "$text" refused.log || fail "$* does not say '$text': $(cat refused.log)"
}
agrees() { shows 1 follows && grep -q '"behind":0,' record.json && grep -q '"state_agrees":true' record.json; }
until_true 60 agrees || fail "the follower's record: $(cat status.json status.log)"
grep -q '"is_own":true' record.json || fail "the folder's own record is not marked: $(cat record.json)"
broker_of cluster status out/node1/broker >status.log 2>&1 || fail "status: $(cat status.log)"
grep -q "^broker    1 follows, tcp://127.0.0.1:${ports[1]}, entry" status.log || fail "status: $(cat status.log)"
broker_of cluster status out/node1/broker --metrics >metrics.log 2>&1 || fail "metrics: $(cat metrics.log)"
grep -qE "^bourse_broker_leads\{id=\"[0-9a-f]{16}\",rank=\"0\",address=\"tcp://127.0.0.1:${ports[0]}\"} 1" metrics.log || fail "metrics: $(cat metrics.log)"

# ---- a node that has lost its folder, or never joined, founds no second market
refused "has no market, and this etcd has market" run --dir out/node3/broker
[ ! -e out/node3/broker/ledger.db ] || fail "a refused start left files: $(ls out/node3/broker)"

# ---- a leader that leaves hands over first, and does not start again; the last one stays
broker_of backup out/node2/broker "$work/of-follower" --with-keys >backup.log 2>&1 || fail "backup of a follower: $(cat backup.log)"
refused "runs, or did so" cluster leave out/node1/broker --name 1
broker_of cluster leave out/node1/broker >leave.log 2>&1 || fail "the leader does not leave: $(cat leave.log)"
grep -qE "member (remove|list)" leave.log || fail "the member of etcd is not told: $(cat leave.log)"
ended "${pids[1]}" 60 || fail "a broker that left still runs: $(tail -n 3 broker-1.log)"
refused "LEFT: broker" run --dir out/node1/broker
refused "the market's last broker" cluster leave out/node2/broker

# ---- another one joins by the backup of a follower
broker_of cluster join "$work/of-follower" "$work/out/node3/broker" >join.log 2>&1 || fail "join: $(cat join.log)"
start 3
until_true 60 follows 3 1 || fail "the third broker does not follow: $(tail -n 3 broker-3.log)"
shows 2 follows || fail "the third broker's record: $(cat status.json status.log)"
refused "runs, or did so" cluster recover out/node1/broker

# ---- a broker that is gone is removed by its name, once its lease has ended
kill -9 "${pids[3]}"
ended "${pids[3]}" 60 || fail "broker 3 does not end"
id=$(sed -n 's/^"id":"\([0-9a-f]*\)".*/\1/p' record.json)
key=$(etcd_control get --prefix /bourse/ --keys-only | grep "/alive/$id")
lease=$(etcd_control get "$key" -w fields | sed -n 's/^"Lease" : //p')
[ "${lease:-0}" -gt 0 ] || fail "the sign of life has no lease: $(etcd_control get "$key" -w fields)"
etcd_control lease revoke "$(printf %x "$lease")" >lease.log 2>&1 || fail "the lease: $(cat lease.log)"
shows 2 silent || fail "a broker without a lease is not silent: $(cat status.json)"
broker_of cluster leave out/node2/broker --name 2 --json >leave.log 2>&1 || fail "leave: $(cat leave.log)"
grep -q "\"left\":\"$id\"" leave.log || fail "another one left: $(cat leave.log)"

# ---- the market is recovered in a new journal: from a folder, then from a backup on an etcd without it
kill "${pids[2]}"
ended "${pids[2]}" 60 || fail "the second broker does not end"
shows 1 stopped || fail "who stopped is not shown: $(cat status.json)"
mkdir -m 700 new
cp out/node2/broker/broker.yaml out/node2/broker/etcd-* new/
refused "nothing need be lost" cluster recover "$work/of-follower" "$work/new"
[ ! -e new/ledger.db ] && [ ! -e new.joining ] || fail "a refused recovery left files: $(ls . new)"
# The answer of etcd gets lost: the journal has ended, and the folder does not know that. An older source would lose entries now.
cp out/node2/broker/journal.etcd mark
broker_of cluster recover out/node2/broker >recover.log 2>&1 || fail "recover: $(cat recover.log)"
cp mark out/node2/broker/journal.etcd
refused "has ended: the market was recovered" run --dir out/node2/broker
refused "recovered once already, from a source that ends at entry" cluster recover "$work/of-follower" "$work/new"
[ ! -e new/ledger.db ] && [ ! -e new.joining ] || fail "a refused recovery left files: $(ls . new)"
broker_of cluster recover out/node2/broker >recover.log 2>&1 || fail "the same source once more: $(cat recover.log)"
refused "has ended: the market was recovered" run --dir out/node1/broker --adopt-journal
: >broker-2.log
start 2
until_true 60 says 2 "open market" || fail "the recovered market is not served: $(tail -n 3 broker-2.log)"
shows 1 leads || fail "the recovered market's record: $(cat status.json status.log)"
[ "$(tr '{' '\n' <status.json | grep -c '"rank"')" -eq 1 ] || fail "an old broker has a record: $(cat status.json)"
broker_of cluster status out/node1/broker >status.log 2>&1 || fail "status: $(cat status.log)"
grep -q "is of a journal that has ended" status.log || fail "an old folder is not told: $(cat status.log)"
kill "${pids[2]}"
ended "${pids[2]}" 60 || fail "the second broker does not end"
etcd_control del --prefix /bourse/ >del.log 2>&1 || fail "etcd: $(cat del.log)"
broker_of cluster recover "$work/of-follower" "$work/new" >recover.log 2>&1 || fail "recover from a backup: $(cat recover.log)"
refused "has ended: the market was recovered" run --dir out/node2/broker --adopt-journal
"$bin/bourse-broker" run --dir "$work/new" >>new.log 2>&1 </dev/null &
pid=$!
started+=("$pid")
serves() { grep -q "open market" new.log; }
until_true 60 serves || fail "the market of the backup is not served: $(tail -n 3 new.log)"
kill "$pid"
ended "$pid" 60 || fail "the broker of the backup does not end"
refused "another history" cluster recover out/node2/broker
broker_of audit new >audit.log 2>&1 || fail "audit: $(cat audit.log)"
echo "three machines from one command line: ok in $SECONDS s"
