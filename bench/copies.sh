#!/usr/bin/env bash
# Measures what it costs to have files on two brokers before they are acknowledged: three members of etcd and three brokers on
# loopback. Each line is the JSON of bench/puts.c.
#
#   bench/copies.sh COPIES [BUILD]      `cluster.copies`, and the folder of a release build [build/release]
set -euo pipefail
copies=$1
build=$(realpath "${2:-build/release}")
root=$(realpath "$(dirname "$0")/..")
# shellcheck source=tests/support/market.sh
. "$root/tests/support/market.sh"
# shellcheck source=tests/support/etcd.sh
. "$root/tests/support/etcd.sh"
store_begin copies-bench "$build/bin" bourse-audit
etcd_begin
ports=()
for _ in a b c; do
    ports+=("$(free_port)")
done
[ "$(printf '%s\n' "${ports[@]}" | sort -u | wc -l)" -eq 3 ] || fail "two brokers have one port: try again"
at() { echo "tcp://127.0.0.1:$1"; }
config() { # RANK PORT
    local one
    printf '%s\n' "listen: $(at "$2")" "blob_listen: $(at $(($2 + 1)))" "cluster: {rank: $1, address: '$(at "$2")', copies: $copies}" \
        "$etcd_lines" "addresses:"
    for one in "${ports[@]}"; do echo "  - {control: $(at "$one"), blobs: $(at $((one + 1)))}"; done
    echo "genesis: {accounts: [{key: \"$owner\", name: owner, roles: [operator, consumer], credits: \"100\"}]}"
}
begin() { # FOLDER
    "$bin/bourse-broker" --dir "$1" >>"$1.log" 2>&1 </dev/null &
    started+=("$!")
}
said() { grep -q "$2" "$1.log"; } # FOLDER TEXT
mkdir -m 700 one keys
export BOURSE_KEY=$work/keys/key
owner=$("$bourse" key 2>key.log) || fail "key"
config 0 "${ports[0]}" >one/broker.yaml
begin one
until_true 60 test -s one/market.yaml || fail "the first broker"
"$bin/bourse-broker" backup one backup --with-keys >backup.log 2>&1 || fail "backup"
rank=1
for folder in two three; do
    "$bin/bourse-broker" cluster join backup "$folder" >join.log 2>&1 || fail "cluster join"
    config "$rank" "${ports[rank]}" >"$folder/broker.yaml"
    begin "$folder"
    until_true 60 said "$folder" "has all blobs" || fail "$folder does not copy"
    rank=$((rank + 1))
done
for what in "1 1000000 30" "1000 1000 15"; do
    # shellcheck disable=SC2086 # three words
    "$build/bench/puts" one/market.yaml keys/key $what || fail "puts"
done
