# shellcheck shell=bash disable=SC2154 # market.sh sets `work` and `support`
# Three real members of etcd on loopback, for tests that source market.sh before. They end with the test.

# Starts the members; $etcd_lines are the lines of broker.yaml that put the journal on them.
etcd_begin() {
    local i ports=()
    for program in etcd etcdctl openssl; do
        command -v "$program" >/dev/null || skip "no $program"
    done
    etcd_folder=$work/etcd
    mkdir -m 700 "$etcd_folder"
    bash "$support/etcd_certificates.sh" "$etcd_folder" || fail "certificates"
    for i in 0 1 2; do
        ports[i]=$(free_port)
        while printf '%s\n' "${ports[@]:0:i}" | grep -qx "${ports[i]}"; do ports[i]=$(free_port); done
    done
    etcd_ports=("${ports[@]}") # of a member's clients; the port after it is for the other members
    etcd_pids=('' '' '')
    for i in 0 1 2; do etcd_start "$i"; done
    # shellcheck disable=SC2034 # the tests read it
    etcd_lines="journal:
  etcd: [https://127.0.0.1:${ports[0]}, https://127.0.0.1:${ports[1]}, https://127.0.0.1:${ports[2]}]
  ca: $etcd_folder/ca.pem
  certificate: $etcd_folder/client.pem
  key: $etcd_folder/client.key"
    until_true 60 etcd_healthy || fail "etcd does not start"
}

etcd_start() { # MEMBER
    local i=$1 side cluster
    cluster="m0=https://127.0.0.1:$((etcd_ports[0] + 1)),m1=https://127.0.0.1:$((etcd_ports[1] + 1))"
    cluster+=",m2=https://127.0.0.1:$((etcd_ports[2] + 1))"
    local words=(--name "m$i" --data-dir "$etcd_folder/m$i" --initial-cluster "$cluster" --initial-cluster-token "$work")
    words+=(--listen-client-urls "https://127.0.0.1:${etcd_ports[i]}" --advertise-client-urls "https://127.0.0.1:${etcd_ports[i]}")
    words+=(--listen-peer-urls "https://127.0.0.1:$((etcd_ports[i] + 1))")
    words+=(--initial-advertise-peer-urls "https://127.0.0.1:$((etcd_ports[i] + 1))")
    for side in "" peer-; do
        words+=("--${side}cert-file=$etcd_folder/server.pem" "--${side}key-file=$etcd_folder/server.key")
        words+=("--${side}trusted-ca-file=$etcd_folder/ca.pem" "--${side}client-cert-auth")
    done
    words+=(--snapshot-count 1000 --heartbeat-interval 50 --election-timeout 500 --pre-vote --log-level warn --logger zap)
    etcd "${words[@]}" >>"$work/etcd-$i.log" 2>&1 &
    etcd_pids[i]=$!
    started+=("$!")
}
etcd_kill() { # MEMBER
    kill -9 "${etcd_pids[$1]}" 2>/dev/null || true
    wait "${etcd_pids[$1]}" 2>/dev/null || true
}
# etcdctl as the tests use it: WORDS...
etcd_control() {
    local all="https://127.0.0.1:${etcd_ports[0]},https://127.0.0.1:${etcd_ports[1]},https://127.0.0.1:${etcd_ports[2]}"
    ETCDCTL_API=3 etcdctl --endpoints "$all" --cacert "$etcd_folder/ca.pem" --cert "$etcd_folder/client.pem" \
        --key "$etcd_folder/client.key" --command-timeout 2s "$@"
}
etcd_healthy() { etcd_control endpoint health >health.log 2>&1; } # all three
