#!/usr/bin/env bash
# Too few descriptors, too little memory: a clear word at the start, work put off while callers crowd the door and done
# when they are gone, a clean end, and no repair afterwards. What clients were told before holds.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin exhausted "$1" market-client market-proxy bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"
command -v prlimit >/dev/null || skip "no prlimit"

market_behind_proxy
check() { # now|final
    "$bin/market-client" check "$work/known.yaml" "$market/owner.key" "$1" record.0 >check.log 2>&1 || fail "$2: $(cat check.log)"
}
client_start() {
    "$bin/market-client" act "$work/known.yaml" "$market/owner.key" record.0 "$((seed % 1000 * 10 + ++lives))" enough mint >>client.log 2>&1 &
    client=$!
    started+=("$client")
}
lives=0

# ---------------------------------------------------------------- descriptors

broker_kill
broker_start prlimit --nofile=32:32
ended "$broker" 60 || fail "a broker with 32 descriptors runs"
wait "$broker" && fail "a broker with 32 descriptors ended well"
grep -q '32 open files are allowed here, and 128 are needed' broker.log || fail "with 32 descriptors it says: $(tail -n 3 broker.log)"

# A soft limit is the user's default, and is raised.
broker_start prlimit --nofile=32:4096
broker_await || fail "a broker with a soft limit of 32 descriptors ends"
broker_kill

# A larger one is lowered: connections count here, and the memory that they may take.
open_files() { awk '/^Max open files/ { print $4 }' "/proc/$1/limits"; }
broker_start prlimit --nofile="$(ulimit -Hn)"
broker_await || fail "a broker with as many descriptors as there are ends"
[ "$(open_files "$broker")" -le 16384 ] || fail "the broker takes up to $(open_files "$broker") connections"
broker_kill

broker_start prlimit --nofile=128:128
broker_await || fail "a broker with 128 descriptors ends: $(tail -n 3 broker.log)"
agent_join "$work/one" <<<'slots: 1
programs: [sh, sleep, echo]'
agent_start "$work/one"
until_true 60 offered 1 || fail "nothing on offer"
client_start
recorded() { [ -e record.0 ] && [ "$(wc -l <record.0)" -ge "$1" ]; }
until_true 60 recorded 20 || fail "the client does nothing"

# More callers than there are descriptors, who say nothing and stay.
callers=()
for _ in $(seq 120); do
    { exec {caller}<>"/dev/tcp/127.0.0.1/$broker_port"; } 2>/dev/null || break
    callers+=("$caller")
done
[ "${#callers[@]}" -ge 90 ] || fail "only ${#callers[@]} callers came through the door"
crowded=0
is_crowded() { # the kernel answers callers first; the broker takes them until none is left for one more
    local before=$crowded
    crowded=$(find "/proc/$broker/fd" -mindepth 1 | wc -l) && [ "$crowded" -ge 120 ] && [ "$crowded" = "$before" ]
}
until_true 60 is_crowded || fail "the broker has only $crowded descriptors open"
# Local callers come as well. The broker turns them away while no descriptor is free, and serves one who comes just when a
# file of its own is closed: either is right, as long as the broker lives.
served=0
for _ in 1 2 3; do
    ! offered 1 || served=$((served + 1))
    gone "$broker" && fail "a local caller ended the broker: $(tail -n 3 broker.log)"
done
gone "$broker" && fail "the broker ended: $(tail -n 3 broker.log)"
for caller in "${callers[@]}"; do
    exec {caller}>&-
done
fewer() { [ "$(find "/proc/$broker/fd" -mindepth 1 | wc -l)" -lt 90 ]; }
until_true 60 fewer || fail "descriptors of callers that are gone are kept"
lines=$(wc -l <record.0)
until_true 60 recorded $((lines + 20)) || fail "no work is done after the crowd is gone"
check now "after the crowd"

# ---------------------------------------------------------------- memory

# The address space is bounded, which sanitizers do not survive: they are left out.
if grep -q __asan_init "$bin/bourse-broker"; then
    starved="not tried: the build has a sanitizer"
else
    starved=0
    for mebibytes in 96 144 160 176 192 208 224 240 272 320; do
        broker_kill
        broker_start prlimit "--as=$((mebibytes << 20))"
        if broker_await && ! ended "$broker" 3; then
            continue # it lives within that
        fi
        status=0
        wait "$broker" || status=$?
        starved=$((starved + 1))
        # Its own last word, or libzmq's, which stops the process where it cannot make a thread.
        [ "$status" -eq 1 ] || [ "$status" -eq 134 ] || fail "with $mebibytes MiB it ended with $status: $(tail -n 3 broker.log)"
        tail -n 1 broker.log | grep -qE 'memory|no thread|Resource temporarily|Cannot allocate' ||
            fail "with $mebibytes MiB it says: $(tail -n 3 broker.log)"
    done
    [ "$starved" -ge 1 ] || fail "no bound was too low"
    broker_kill
    broker_start
    broker_await || fail "after the memory ran out the broker does not start: $(tail -n 3 broker.log)"
    starved="$starved times"
fi
touch enough
wait "$client" || fail "the client ended with $?: $(cat client.log)"
check final "at the end"
market_audit
echo "32 descriptors refused, 128 crowded by ${#callers[@]} callers, $served of 3 local ones served; starved of memory: $starved: ok in $SECONDS s"
