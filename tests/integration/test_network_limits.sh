#!/usr/bin/env bash
# The owner's limits of the network: bytes go no faster than the rate, the month's count outlives the agent, and an agent
# whose month is used up offers nothing and still delivers what runs.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin network-limits "$1" market-proxy

# Over TCP: from a broker on the same machine the agent would get files, and nothing goes over a network.
market_behind_proxy
agent_join "$work/lab" <<<'slots: 1
programs: [cp, sh]
network: {rate: 2MB/s, month: 12MB}'
sed -i "s#^control:.*#control: \"tcp://127.0.0.1:$broker_port\"#; s#^blobs:.*#blobs: \"tcp://127.0.0.1:$blob_port\"#" "$work/lab/market.yaml"
agent_start "$work/lab"
until_true 60 offered 1 || fail "nothing is offered: $(cat agent-lab.log)"

status() { "$bin/bourse-provider" status --dir "$work/lab" >status.txt 2>status.log; }
says() { status && grep -qE -- "$1" status.txt; } # PATTERN
head -c 4000000 /dev/urandom >in.bin
copy() { # NAME: copies 4 MB through the agent, in and out
    printf '%s\n' "name: $1" 'files: [in.bin]' 'run: [cp, in.bin, out.bin]' 'outputs: [out.bin]' 'budget: 1.00' >"$1.yaml"
    timeout 120 "$bourse" submit "$1.yaml" -y --wait >submit.out 2>submit.log || fail "$1: $(cat submit.log submit.out agent-lab.log)"
}

# ---------------------------------------------------------------- the rate
before=$(now_ms)
copy first
took=$(($(now_ms) - before))
# The output is the input, which the broker has: 4 MB go, of which the first second's 2 MB go at once.
[ "$took" -ge 1000 ] || fail "4 MB went in $took ms at 2 MB a second"
says '^network +3\.[0-9] MiB this month of 11\.4 MiB, at most 1\.9 MiB a second$' || fail "status: $(cat status.txt)"

# ---------------------------------------------------------------- the month
head -c 9000000 /dev/urandom >in.bin
copy second
until_true 60 says '^state .*nothing is offered before the next month' || fail "an agent whose month is used up: $(cat status.txt)"
! offered 1 || fail "it offers all the same"
grep -q "the month's bytes of the network are used up" agent-lab.log || fail "the log does not say so: $(cat agent-lab.log)"
"$bin/bourse-provider" status --dir "$work/lab" --json >status.json
has "$(cat status.json)" '"state":"network-spent"'
has "$(cat status.json)" '"spent":true'
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
agent_start "$work/lab"
until_true 60 says '^state .*nothing is offered before the next month' || fail "a restart begins the month anew: $(cat status.txt)"
! offered 1 || fail "a restarted agent offers"

# ---------------------------------------------------------------- the next month
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
sed -i 's/"month":[0-9]*/"month":24300/' "$work/lab/network"
agent_start "$work/lab"
until_true 60 offered 1 || fail "a new month does not begin: $(cat agent-lab.log)"

# ---------------------------------------------------------------- what is followed live
used() { "$bin/bourse-provider" status --dir "$work/lab" --json | grep -o '"used_bytes":[0-9]*' | cut -d: -f2; }
before=$(used)
"$bourse" run -y --budget 1 --limit 1m -- sh -c 'for i in 1 2 3 4 5 6 7 8; do head -c 100000 /dev/zero; sleep 0.5; done' \
    2>followed.err </dev/null | wc -c >followed.size
[ "$(cat followed.size)" -eq 800000 ] || fail "run: $(cat followed.size followed.err)"
counts_both() { [ $(($(used) - before)) -ge 1500000 ]; } # the stream itself, and the result's copy
until_true 60 counts_both || fail "800 kB were seen live and kept, and $(($(used) - before)) bytes were counted"
echo "network: a rate, and a month that outlives the agent"
