#!/usr/bin/env bash
# Makes what three etcd members on this machine and one client need, in FOLDER: ca.pem, and a certificate with its key
# for the members (server) and for the broker (client). They are for tests and are good for two days.
set -euo pipefail
cd "$1"
curve=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2)
openssl req -x509 "${curve[@]}" -keyout ca.key -out ca.pem -subj /CN=bourse-test-ca 2>/dev/null
certificate() { # NAME USAGE
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1" 2>/dev/null
    printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=%s\n' "$2" >"$1.ext"
    openssl x509 -req -days 2 -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -extfile "$1.ext" -out "$1.pem" 2>/dev/null
}
certificate server serverAuth,clientAuth
certificate client clientAuth
