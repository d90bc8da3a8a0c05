#!/usr/bin/env bash
# Three machines from one command line, as docs/operator.md says: `cluster init`, three members of etcd and two brokers on
# loopback, with the files that it made. Clients of etcd with a wrong certificate are refused, and the broker says why.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/support/market.sh
. "$here/../support/market.sh"
fire_begin cluster-init "$1" bourse-audit
for program in etcd openssl; do command -v "$program" >/dev/null || skip "no $program"; done

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

kill "$pid" "$first_broker"
ended "$pid" 60 || fail "the second broker does not end"
ended "$first_broker" 60 || fail "the first broker does not end"
broker_of audit out/node1/broker >audit.log 2>&1 || fail "audit: $(cat audit.log)"
echo "three machines from one command line: ok in $SECONDS s"
