#!/usr/bin/env bash
# Clocks that lie: the wall clock of broker, agent and client jumps an hour forward and back, stands still and is
# beyond 2038 while leases and jobs run; a client is hours off; another time zone; a broker that was quiet for long.
# Leases, ids, invitations and charges follow log time: nothing expires or lives on because of a jump (docs/decisions.md D4).
# libfaketime gives each process a wall clock from a file, and leaves the monotonic one alone.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin time "$1" bourse-audit
command -v sqlite3 >/dev/null || skip "no sqlite3"
for library in /usr/lib/*/faketime/libfaketimeMT.so.1 none; do
    [ ! -e "$library" ] || break
done
[ "$library" != none ] || skip "no libfaketime"

# libfaketime keeps something under the number of each process, which one that is killed leaves behind, and which ends another
# that gets its number.
forget_the_dead() {
    local left
    for left in /dev/shm/faketime_shm_*; do
        [ ! -e "$left" ] || [ -e "/proc/${left##*_}" ] || rm -f "$left" "/dev/shm/sem.faketime_sem_${left##*_}"
    done
}
forget_the_dead
forget_and_end() { fire_end && forget_the_dead; }
trap forget_and_end EXIT

clock=$work/clock # what broker and agent believe; changed while they run
set_clock() { echo "$1" >"$clock.new" && chmod 644 "$clock.new" && mv "$clock.new" "$clock"; }
set_clock +0
# The wall clock alone is false. env, so that a broker in the background has the process id of its parent's $!.
faked=(env "LD_PRELOAD=$library" NO_FAKE_STAT=1 "ASAN_OPTIONS=verify_asan_link_order=0:$ASAN_OPTIONS")
in_time=("${faked[@]}" FAKETIME_DONT_FAKE_MONOTONIC=1 "FAKETIME_TIMESTAMP_FILE=$clock" FAKETIME_NO_CACHE=1)
# at OFFSET COMMAND...: a process with a wall clock of its own.
at() {
    local offset=$1
    shift
    "${faked[@]}" FAKETIME_DONT_FAKE_MONOTONIC=1 "FAKETIME=$offset" "$@"
}
query() { sqlite3 -readonly "$market/ledger.db" "$1"; }
last_ns() { query 'SELECT max(log_time_ns) FROM results'; }

# A clock that was never set, or that is of another century, founds no market, and says so; set right, the same folder does.
mkdir -m 700 wrong
(umask 077 && echo 9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60 >wrong/owner.key)
echo 'genesis: {accounts: [{key: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", name: o, roles: [operator]}]}' >wrong/broker.yaml
for year in 1969 2263; do
    at "@$year-06-01 12:00:00" "$bin/bourse-broker" --dir wrong 2>wrong.log && fail "a market was founded in $year"
    has "$(cat wrong.log)" "the clock of this machine is wrong: it says $year-06-01T"
    has "$(cat wrong.log)" "from 2020-01-01 to 2199-12-31"
done
"$bin/bourse-broker" --dir wrong 2>wrong.log &
started+=("$!")
until_true 60 test -e wrong/market.yaml || fail "no market is founded after the clock was set: $(cat wrong.log)"
kill "$!" && wait "$!" || fail "a clean stop: $(cat wrong.log)"

bourse_in_time() { "${in_time[@]}" "$bin/bourse" "$@"; }
bourse=bourse_in_time # `up` hands its own clock down to broker and agent
market_up --credits 100
bourse=$bin/bourse
until_true 60 offered 1 || fail "nothing is on offer"

# job NAME COUNT: so many subtasks of a tenth of a second, in the background. Sets `job`.
job() {
    printf 'name: %s\nbudget: 5\nlimit: 30s\narray: 1-%s\nrun: [sleep, "0.1"]\n' "$1" "$2" >"$1.yaml"
    "$bourse" submit -y "$1.yaml" --quiet >"$1.id" 2>"$1.log" || fail "$1: $(cat "$1.log")"
    job=$(cat "$1.id")
}
accepted() { query "SELECT count(*) FROM results WHERE status = 0 AND hex(job) = upper('$job')"; }
has_accepted() { [ "$(accepted)" -ge "$1" ]; }
# whole COUNT [KILLS]: the job ends, no attempt failed or came late, and no lease ended early. Each subtask was accepted at
# its first attempt; or at its second after one kill of the broker: what it journaled and could not tell is queued again.
whole() {
    local first=$((1 + ${2:-0})) others
    until_true 60 has_accepted "$1" || fail "$job: $(accepted) of $1 accepted: $("$bourse" ps 2>&1)"
    others=$(query "SELECT idx, attempt, status FROM results
        WHERE hex(job) = upper('$job') AND (status <> 0 OR attempt > $first)")
    [ -z "$others" ] || fail "$job: some attempts failed, came late or were repeated (index|attempt|status): $others"
}

# goes_on COUNT WHEN: four more of so many are accepted, or all.
goes_on() {
    local wanted=$(($(accepted) + 4))
    [ "$wanted" -le "$1" ] || wanted=$1
    until_true 60 has_accepted "$wanted" || fail "$2 nothing goes on"
}

# ---- jumps while a job runs
begun=$(now_ms)
job jumps 120
until_true 60 has_accepted 5 || fail "the job does not start"
for offset in +1h -1h +0 -25h +25h; do
    set_clock "$offset"
    goes_on 120 "with the clock at $offset"
done
set_clock "$(date -u '+%Y-%m-%d %H:%M:%S')" # stands still
goes_on 120 "with a clock that stands still"
whole 120
elapsed=$(($(now_ms) - begun))
set_clock +0
"$bourse" report "$job" >report.log || fail "report: $(cat report.log)"
has "$(cat report.log)" "and the market's log time differ by at least " # and nobody knows whose is right

# Log time went by what passed, and at most a hundredth more or less; so did what was paid.
span=$(($(query "SELECT (max(log_time_ns) - min(log_time_ns)) / 1000000 FROM results")))
[ "$span" -le $((elapsed * 102 / 100)) ] || fail "log time went $span ms in $elapsed ms"
slots=$(query 'SELECT max(slots) FROM fills')
paid=$(query "SELECT sum(paid_ns) / 1000000 FROM results")
[ "$paid" -le $((elapsed * slots * 102 / 100)) ] || fail "$paid ms were paid for $elapsed ms of $slots slots"
[ "$paid" -ge 12000 ] || fail "only $paid ms were paid for 120 times 100 ms"

# ---- an invitation: a jump does not end it, and setting the clock back does not prolong it
newcomer() { # NAME: joins with the invitation of that name
    mkdir -m 700 "$work/$1"
    at "$2" "$bourse" join "$(cat "$1.invitation")" --key "$work/$1/key" --market "$work/$1/market.yaml" >"$1.log" 2>&1
}
"$bourse" admin invite --role consumer --credits 5 --expires 30m >late.invitation 2>/dev/null || fail "invite"
set_clock +2h
newcomer late +2h || fail "the jump ended an invitation: $(cat late.log)"
"$bin/bourse-broker" acts "$market" --json >acts.json || fail "acts"
# The record of her joining shows both clocks: the false one was in force.
[ $(($(number wall_ms acts.json) - $(number log_time_ns acts.json) / 1000000)) -gt 7000000 ] ||
    fail "the broker's wall clock was not two hours ahead"
grep -q "\"time\":\"$(date -u -d "@$(($(number wall_ms acts.json) / 1000))" +%FT%TZ)\"" acts.json || fail "acts shows another time"
"$bourse" admin invite --role consumer --expires 2s >gone.invitation 2>/dev/null || fail "invite"
invited=$(now_ms)
set_clock -2h
expired() { [ $(($(now_ms) - invited)) -gt 2100 ]; } # log time has passed by two seconds, give or take a hundredth
until_true 60 expired
newcomer gone -2h && fail "an invitation lived on because the clock was set back"
grep -q INVITATION gone.log || fail "the refusal does not speak of the invitation: $(cat gone.log)"
set_clock +0

# ---- a client whose clock is off
for offset in -5h +5h +400d '@2039-01-01 00:00:00'; do
    at "$offset" "$bourse" run -y --name off --wait-at-most 1m -- true >off.log 2>&1 || fail "a client at $offset: $(cat off.log)"
done

# ---- started again beyond 2038, in another time zone, with a job under way
job beyond 120
until_true 60 has_accepted 3 || fail "the job does not start"
kill -9 "$broker"
until_true 60 flock -n "$market/LOCK" true || fail "the broker does not die"
before_ns=$(last_ns)
set_clock "+$((2147483647 - $(date +%s) + 1))" # 2^31 seconds are over while it runs
export TZ=Pacific/Kiritimati
broker_start "${in_time[@]}"
unset TZ
broker_await || fail "no start in 2038: $(tail -n 3 broker.log)"
cp "$market/market.yaml" "$work/known.yaml"
whole 120 1
after_ns=$(last_ns)
[ "$after_ns" -gt "$before_ns" ] || fail "log time went back"
[ $(((after_ns - before_ns) / 1000000000)) -lt 120 ] || fail "log time jumped to 2038"
market_audit

# ---- a market that begins beyond 2038: times above 2^31 seconds all the way
future=$work/future
mkdir -m 700 "$future"
owner=$market/owner.key
key=$("$bourse" key --key "$owner" --json | grep -oE '[0-9a-f]{64}' | head -n 1)
printf 'genesis:\n  accounts:\n    - {key: "%s", name: ops, roles: [operator, consumer], credits: "100"}\n' "$key" \
    >"$future/broker.yaml"
market=$future
broker_start "${faked[@]}" FAKETIME_DONT_FAKE_MONOTONIC=1 'FAKETIME=@2041-07-01 12:00:00'
broker_await || fail "no start in 2041"
at '@2041-07-01 12:00:01' "$bourse" admin mint "$key" 1 --key "$owner" --market "$future/market.yaml" \
    >mint.log 2>&1 || fail "a mint in 2041: $(cat mint.log)"
"$bourse" admin invite --role consumer --key "$owner" --market "$future/market.yaml" >"future.invitation" 2>mint.log ||
    fail "a client of today in a market of 2041: $(cat mint.log)"
broker_kill
"$bin/bourse-broker" acts "$future" >acts.log || fail "acts: $(cat acts.log)"
grep -q '2041-07-01T12:00:.* mint' acts.log || fail "the mint is not of 2041: $(cat acts.log)"
"$bin/bourse-broker" audit "$future" >audit.log 2>&1 || fail "audit: $(cat audit.log)"

# ---- a quiet broker, an hour in some seconds: log time is journaled, so that a restart does not lose it
entries() { sqlite3 -readonly "$future/ledger.db" 'SELECT max(idx) FROM journal'; }
before=$(entries)
broker_start "${faked[@]}" 'FAKETIME=+0 x300' # the monotonic clock too
ticked() { [ "$(entries)" -ge $((before + 3)) ]; }
until_true 60 ticked || fail "a quiet broker does not journal log time"
broker_kill
broker=
echo "120 + 120 subtasks through jumps of 1 h and 25 h and a restart in 2038; log time $span ms in $elapsed ms"
