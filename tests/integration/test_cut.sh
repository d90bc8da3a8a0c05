#!/usr/bin/env bash
# The line between agent, client and broker is cut both ways and one way, stalled, slowed, reset and garbled: through a
# proxy of our own, and, as root, between network namespaces. Agent and client come back by themselves, the job completes,
# and no subtask runs twice: an agent that was only cut off loses no work. BOURSE_LONG=yes cuts for 65 s at the default heartbeat.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin cut "$1" market-proxy bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"

# Three missed heartbeats are silence: the cuts are many times that.
heartbeat=200ms cut_s=3 namespaces_cut_s=8
if [ "$long" = yes ]; then
    heartbeat=1s cut_s=12 namespaces_cut_s=65
fi

market_behind_proxy "heartbeat: $heartbeat"

agent_join "$work/cutoff" --name cutoff <<END
slots: 2
programs: [sh, sleep, date, cat, wc]
END
agent_start "$work/cutoff"
until_true 60 offered 2 || fail "nothing on offer"

# ---------------------------------------------------------------- jobs that notice

number_of_jobs=0
# The client goes through the bad line too, waits for the end, and brings the outputs.
job_start() { # SUBTASKS SECONDS
    number_of_jobs=$((number_of_jobs + 1))
    name=job$number_of_jobs
    head -c 100000 /dev/urandom >"$name.in"
    cat >"$name.yaml" <<END
name: $name
array: 0-$(($1 - 1))
files: $name.in
run: [sh, -c, 'sleep $2; wc -c <$name.in; echo {index}']
at_most: 2
limit: 5m
retries: 5
budget: 1.00
END
    "$bourse" submit "$name.yaml" -y --anyway --wait --quiet --timeout 2m --market "$work/through.yaml" >"$name.id" 2>"$name.log" &
    client=$!
    started+=("$client")
    until_true 60 runs "$name" || fail "$name does not run: $(cat "$name.log")"
}
row_of() { "$bourse" ps --json --timeout 10s >ps.json 2>/dev/null && tr '{' '\n' <ps.json | grep "\"name\":\"$1\"" >row.json; }
# A look that comes too late to see it run does not make it a job that does not.
runs() { row_of "$1" && [ $(($(number running row.json) + $(number accepted row.json))) -ge 1 ]; }
# Every subtask ran to its end once, and the client knows. Outcome 14: what waited in a lane was taken back for one that would be done with it sooner, and had
# just begun when the agent heard of it.
job_must_end() { # SUBTASKS HOW
    local subtasks=$1
    ended "$client" 180 || fail "$2: the client still waits; $(row_of "$name"; cat row.json)"
    wait "$client" || fail "$2: the client ended with $?: $(cat "$name.log")"
    sqlite3 -readonly -separator ' ' "$market/ledger.db" "
        SELECT idx, status FROM results WHERE lower(hex(job)) = '$(cat "$name.id")' AND outcome <> 14
        ORDER BY idx, attempt" >attempts
    seq 0 $((subtasks - 1)) | sed 's/$/ 0/' | cmp -s - attempts ||
        fail "$2: subtasks did not run once (index, status): $(cat attempts)"
    for index in $(seq 0 $((subtasks - 1))); do
        [ "$("$bourse" logs "$(cat "$name.id")" "$index")" = "$(printf '100000\n%s' "$index")" ] ||
            fail "$2: the output of $index"
    done
    until_true 60 offered 2 || fail "$2: the agent's offer did not come back"
}
suspected() { ! offered 1; } # the asks of a silent agent are taken away

# through HOW SECONDS WORD...: what the line does for so long, in the middle of a job.
through() {
    local how=$1 seconds=$2
    shift 2
    job_start 4 2
    say "$@"
    [ "$how" = 'a slow line' ] || until_true 60 suspected || fail "$how: the agent was never missed"
    sleep "$seconds" # the length of the cut is the input of this test
    say pass
    job_must_end 4 "$how"
}

through 'a stall' "$cut_s" 'hold both'
through 'a cut one way, to the broker' "$cut_s" 'hold up'
through 'a cut one way, from the broker' "$cut_s" 'hold down'
through 'bytes lost' 1 'swallow both'
through 'no connection' "$cut_s" refuse reset

# Reset again and again: there may be no time to be missed in.
job_start 6 1
for _ in $(seq 15); do
    say reset
    sleep 0.2 # between two resets
done
job_must_end 6 'resets'

# Slow: a tenth of a second there and back, 30 kB/s; nobody may be taken for dead for that.
say 'delay 50' 'rate 30000'
job_start 2 2
job_must_end 2 'a slow line'
say pass

# ---------------------------------------------------------------- a real cut

finish_books() {
    "$bourse" balance --json >balance.json
    [ "$(number held_micro balance.json)" -eq 0 ] || fail "money is still held: $(cat balance.json)"
    market_audit
}
namespace=bourse-$$ inner=bourse${$}i outer=bourse${$}o
if ! { [ "$(id -u)" -eq 0 ] && command -v ip >/dev/null && command -v nsenter >/dev/null &&
    ip netns add "$namespace" 2>netns.log; }; then
    finish_books
    left_out real-cut "no network namespaces here: $(cat netns.log 2>/dev/null)"
    echo "ok through the proxy in $SECONDS s"
    exit 0
fi
namespace_end() {
    ip link del "$outer" 2>/dev/null || true
    ip netns del "$namespace" 2>/dev/null || true
    fire_end
}
trap namespace_end EXIT
net=198.$((RANDOM % 2 + 18)).$((RANDOM % 250)) # set apart for tests between networks
ip link add "$outer" type veth peer name "$inner"
ip link set "$inner" netns "$namespace"
ip addr add "$net.1/24" dev "$outer"
ip link set "$outer" up
inside() { nsenter --net="/run/netns/$namespace" -- "$@"; }
inside ip addr add "$net.2/24" dev "$inner"
inside ip link set "$inner" up
inside ip link set lo up

# The same agent and the client, now inside: their packets cross the veth pair.
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
straight() { sed -E "s#^control:.*#control: \"tcp://$net.1:$broker_port\"#; s#^blobs:.*#blobs: \"tcp://$net.1:$blob_port\"#"; }
straight <through.yaml >inside.yaml
cp inside.yaml through.yaml
cat inside.yaml >"$work/cutoff/market.yaml"
# Not through inside(): the process in the background is to be the agent, not a shell around it.
nsenter --net="/run/netns/$namespace" -- "$bin/bourse-provider" run --dir "$work/cutoff" >>agent-inside.log 2>&1 &
agent=$!
until_true 60 offered 2 || fail "nothing on offer from inside"
plain_bourse=$bourse
client_inside() {
    if [ "$1" = submit ]; then inside "$plain_bourse" "$@"; else "$plain_bourse" "$@"; fi
}
bourse=client_inside

# cut HOW UNDO -- DO: for as long as the input of this test says.
cut() {
    local how=$1 undo=$2
    shift 2
    job_start 4 2
    "$@"
    until_true 60 suspected || fail "$how: the agent was never missed"
    sleep "$namespaces_cut_s"
    $undo
    job_must_end 4 "$how"
}
unblocked_out() { inside ip route del blackhole "$net.1/32"; }
unblocked_in() { ip route del blackhole "$net.2/32"; }
plugged() { ip link set "$outer" up; }
cut 'the cable pulled' plugged ip link set "$outer" down
cut 'packets to the broker lost' unblocked_out inside ip route add blackhole "$net.1/32"
cut 'packets from the broker lost' unblocked_in ip route add blackhole "$net.2/32"

bourse=$plain_bourse
finish_books
echo "cut, stalled, slowed, reset and garbled, $cut_s s and $namespaces_cut_s s at a heartbeat of $heartbeat: ok in $SECONDS s"
