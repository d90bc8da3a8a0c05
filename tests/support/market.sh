# shellcheck shell=bash
# A market of real processes, for tests that treat them badly. To be sourced; then `fire_begin NAME BIN PROGRAM...`.
# Whatever it started ends with the test, by its process id; the work folder goes too.

set -euo pipefail
# shellcheck disable=SC2034 # the tests read it
long=${BOURSE_LONG:-no}
broker='' agent='' # process ids
started=()         # of everything else

# A search for leaks is half of what a short command takes. So the programs have one at their end only
# in tests that set `leaks=yes` before: those that use most commands, brokers and agents.
if [ "${leaks:-no}" != yes ]; then
    export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
fi

support=$(realpath "$(dirname "${BASH_SOURCE[0]}")")

# shellcheck source=tests/support/expect.sh
. "$support/expect.sh"
# shellcheck source=tests/support/parts.sh
. "$support/parts.sh"

skip() { echo "skipped: $*"; exit 77; }

# The last lines of every log are printed, so that a failure can be understood from the test's
# output alone.
fail() {
    echo "FAILED (BOURSE_SEED=$seed): $*" >&2
    for log in "$work"/*.log "$work"/*/*.log; do
        [ ! -s "$log" ] || { echo "-- $log" >&2; tail -n 15 "$log" >&2; }
    done
    exit 1
}

fire_end() {
    trap - EXIT
    touch "$work/enough" 2>/dev/null || true
    for pid in "${started[@]}" $agent $broker; do
        # shellcheck disable=SC2046 # a list: a test that fails may leave a whole family standing still
        kill -CONT "$pid" $(descendants "$pid" | awk '{ print $1 }') 2>/dev/null || true
        kill "$pid" 2>/dev/null || true
    done
    for pid in "${started[@]}" $agent $broker; do
        ended "$pid" 10 || kill -9 "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    if [ -n "${BOURSE_KEEP:-}" ]; then
        echo "kept: $work" >&2
    else
        rm -rf "$work"
    fi
}

# store_begin NAME BIN PROGRAM... is for a test that needs a broker and its files, and no agent.
store_begin() {
    local name=$1
    bin=$(realpath "$2")
    shift 2
    bourse=$bin/bourse
    for program in bourse bourse-broker "$@"; do
        [ -x "$bin/$program" ] || skip "no $program"
    done
    seed=${BOURSE_SEED:-$$}
    RANDOM=$seed
    work=$(mktemp -d "${TMPDIR:-/tmp}/bourse-$name.XXXXXX")
    [ "$(id -u)" -ne 0 ] || chmod 711 "$work"
    market=$work/market
    export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state BOURSE_MARKET=$market
    unset BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR
    trap fire_end EXIT
    cd "$work"
}
fire_begin() {
    local name=$1 folder=$2
    shift 2
    command -v bwrap >/dev/null || skip "no bubblewrap"
    if [ "$(id -u)" -eq 0 ] && ! id bourse >/dev/null 2>&1; then
        skip "no user bourse for the agent"
    fi
    # A killed process has no time to look for leaks, and a traced process cannot.
    export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
    store_begin "$name" "$folder" bourse-provider bourse-worker "$@"
}

# Says what went wrong when `$1` does not hold the text `$2`.
has() {
    case $1 in
    *"$2"*) ;;
    *) fail "expected \"$2\" in: $1" ;;
    esac
}
# Inverts the byte at `$2` of file `$1`.
flip() {
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\x$(printf %02x $((byte ^ 255)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# field prints the first value of a name in a one-line JSON; number prints the last number of the
# name.
field() { grep -oE "\"$1\":[^,}]*" "$2" | head -n 1 | cut -d: -f2 | tr -d '"'; }
number() { sed -E "s/.*\"$1\":(-?[0-9]+).*/\1/" "$2"; }
now_ms() { local us=${EPOCHREALTIME/[.,]/}; echo "${us%???}"; }

# until_true SECONDS COMMAND... looks ten times a second, at most for so long. What takes more than
# two seconds is looked at three times a second, because each look starts a program with sanitizers.
# The last look begins after that time. So a machine that stood still meanwhile makes looks
# rare, and does not make true ones false.
until_true() {
    local begun=${EPOCHREALTIME/[.,]/} pause=0.1 is_last=no
    local deadline=$((begun + $1 * 1000000))
    local -x ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" # what is asked many times is searched for none
    shift
    until "$@"; do
        [ "$is_last" = no ] || return 1
        sleep "$pause" # between two looks
        [ "${EPOCHREALTIME/[.,]/}" -lt $((begun + 2000000)) ] || pause=0.3
        [ "${EPOCHREALTIME/[.,]/}" -lt "$deadline" ] || is_last=yes
    done
}
# What is promised within seconds is promised of programs that run. `stalled_ms` says for how long,
# since `stalls_begin`, this machine kept a program that only waits from running.
stalls_begin() {
    mkfifo stalls.tick
    (
        exec 3<>stalls.tick # nobody writes there, so a read waits without a program
        total=0
        while [ ! -e enough ]; do
            before=${EPOCHREALTIME/[.,]/}
            read -rt 0.05 -u 3 || true
            late=$(((${EPOCHREALTIME/[.,]/} - before) / 1000 - 50))
            [ "$late" -le 20 ] || { total=$((total + late)) && echo "$total" >stalled.new && mv stalled.new stalled; }
        done
    ) &
    started+=("$!")
}
stalled_ms() { cat stalled 2>/dev/null || echo 0; }
# Succeeds when there is no such process, or only its exit status is left. A process whose first
# thread has ended shows as Zl while others end, and its locks and files are still held.
gone() { # PID
    local state
    state=$(ps -o stat= -p "$1") || return 0
    case $state in *l*) return 1 ;; Z*) return 0 ;; *) return 1 ;; esac
}
ended() { until_true "$2" gone "$1"; } # PID SECONDS

# Starts `bourse up`; the test then knows its broker and agent by process id. `options` are its options.
market_up() {
    local is_up=yes
    "$bourse" up --detach --dir "$market" --wait 5m "$@" >up.log 2>&1 || is_up=no
    if [ -e "$market/up.pids" ]; then # what the function started ends with the test, also when the test fails
        broker=$(sed -n 's/^broker \([0-9]*\).*/\1/p' "$market/up.pids")
        agent=$(sed -n 's/^provider \([0-9]*\).*/\1/p' "$market/up.pids")
    fi
    if [ "$is_up" = no ]; then
        grep -qs 'isolat' "$market/provider.log" && skip "this machine cannot isolate jobs"
        fail "up"
    fi
    cp "$market/market.yaml" "$work/known.yaml" # the broker's own copy goes and comes with it
    chmod 600 "$work/known.yaml"
}

# Three missed heartbeats of a second are silence, and what a silent agent offers is gone. So a test
# that makes its agent stand still starts the broker anew with other lines in its config.
market_config() { # LINES...
    kill "$broker"
    ended "$broker" 60 || fail "the broker does not end"
    printf '%s\n' "$@" >>"$market/broker.yaml"
    broker_start
    broker_await || fail "the broker does not start with: $*"
    cp "$market/market.yaml" "$work/known.yaml"
    until_true 60 offered 1 || fail "the agent does not come back"
}

# Succeeds when a program of that name runs below a process, as below an agent what its jails run.
# The function looks at what `ps` and the agent only report.
runs_below() { [ -n "$(perl "$support/descendants.pl" "$1" "$2")" ]; } # PID NAME

# Starts the broker on $market, in the background. Words given come before it (a tracer), and its
# own options are in $broker_options. Its log is appended to.
broker_options=()
# shellcheck disable=SC2120 # most give none
broker_start() {
    "$@" "$bin/bourse-broker" --dir "$market" "${broker_options[@]}" >>"$work/broker.log" 2>&1 &
    broker=$!
}
broker_ready() { grep -qsE "^pid: *$broker\$" "$market/market.yaml"; }
# Fails when the broker ended before it was ready.
broker_await() {
    for _ in $(seq 6000); do
        ! broker_ready || return 0
        ! gone "$broker" || return 1
        sleep 0.02 # between two looks at a file; the file is the event
    done
    fail "the broker neither starts nor ends"
}
broker_kill() {
    kill -9 "$broker" 2>/dev/null || true
    wait "$broker" 2>/dev/null || true
    ended "$broker" 60 || fail "a broker that was killed is still there" # the broker of `up` is no child to wait for
}

# Prints a port that nobody uses, nor the one after it. The ports are below those that the kernel
# gives to callers.
free_port() {
    local port
    for _ in $(seq 50); do
        port=$((RANDOM % 11000 * 2 + 10000))
        grep -qisE ":($(printf '%04X|%04X' "$port" "$((port + 1))")) " /proc/net/tcp /proc/net/tcp6 || { echo "$port"; return; }
    done
    fail "no free port"
}

# Starts a broker of which others know a proxy only: through.yaml leads to the proxy, known.yaml
# straight to the broker. The lines given are added to its config. `say COMMAND...` tells the proxy
# how bad the line is (tests/programs/market_proxy.c).
market_behind_proxy() {
    local key bad_port
    broker_port=$(free_port) bad_port=$broker_port
    while [ "$bad_port" -eq "$broker_port" ]; do bad_port=$(free_port); done
    blob_port=$((broker_port + 1))
    mkdir -m 700 "$market"
    [ "$(id -u)" -ne 0 ] || { chgrp bourse "$market"; chmod 710 "$market"; }
    key=$("$bourse" key --key "$market/owner.key" 2>key.log) || fail "key: $(cat key.log)"
    cat >"$market/broker.yaml" <<END
listen: tcp://0.0.0.0:$broker_port
blob_listen: tcp://0.0.0.0:$blob_port
advertise: tcp://127.0.0.1:$bad_port
blob_advertise: tcp://127.0.0.1:$((bad_port + 1))
genesis: {accounts: [{key: "$key", name: owner, roles: [operator, consumer], credits: "100"}]}
$(printf '%s\n' "$@")
END
    broker_start
    broker_await || fail "the broker"
    cp "$market/market.yaml" through.yaml
    sed -E "s#^control:.*#control: \"ipc://$market/broker.sock\"#; s#^blobs:.*#blobs: \"ipc://$market/blobs.sock\"#" \
        through.yaml >known.yaml
    chmod 600 through.yaml known.yaml
    export BOURSE_MARKET=$work/known.yaml BOURSE_KEY=$market/owner.key
    mkfifo line
    "$bin/market-proxy" line "$bad_port:$broker_port" "$((bad_port + 1)):$blob_port" >proxy.log 2>&1 &
    proxy=$!
    started+=("$proxy")
}
said=0 # commands
say() { # COMMAND...: the commands hold when the function returns
    kill -0 "$proxy" || fail "the proxy has ended"
    printf '%s\n' "$@" >line
    said=$((said + $#))
    until_true 60 proxy_obeyed || fail "the proxy does not obey: $*"
}
proxy_obeyed() { [ "$(wc -l <proxy.log)" -ge "$said" ]; }

agent_start() { # FOLDER: sets `agent`
    "$bin/bourse-provider" run --dir "$1" >>"$work/agent-${1##*/}.log" 2>&1 &
    agent=$!
}
# agent_join FOLDER OPTION... makes a further agent with its own account, not yet running. Lines on
# stdin go to its config.
agent_roles=(provider) # roles of its account
agent_join() {
    local folder=$1
    shift
    mkdir -m 700 "$folder"
    "$bourse" admin invite "${agent_roles[@]/#/--role=}" --name "${folder##*/}" >invitation 2>invite.log || fail "invite"
    "$bin/bourse-provider" join "$(cat invitation)" --dir "$folder" "$@" >>join.log 2>&1 || fail "join"
    cat >>"$folder/provider.yaml"
}

# own_engines_up starts a market of three agents with a slot each. Our own operators compute models on each of them, so
# that the numbers are the same. Sets `agents`.
own_engines_up() {
    local folder
    market_up --credits 100 --slots 1 --price 0.40
    kill "$agent"
    ended "$agent" 60 || fail "the agent does not end"
    echo 'onnx: {library: none}' >>"$market/provider/provider.yaml"
    agents=()
    for folder in "$work/second" "$work/third"; do
        agent_join "$folder" --name "${folder##*/}" <<<$'slots: 1\nonnx: {library: none}'
    done
    for folder in "$market/provider" "$work/second" "$work/third"; do
        agent_start "$folder"
        agents+=("$agent")
        started+=("$agent")
    done
    until_true 60 computing 3 || fail "not all compute models: $(cat devices.json)"
}
computing() { # COUNT: succeeds when so many devices compute models
    "$bourse" devices --needs 'executor = onnx' --json >devices.json 2>/dev/null &&
        [ "$(grep -o '"price_micro"' devices.json | wc -l)" -ge "$1" ]
}
# Of the device of this label: one figure of its last challenge, or its price.
challenge_of() { # LABEL KEY
    "$bourse" devices --json --timeout 5s 2>/dev/null | perl -MJSON::PP -e '
        my ($label, $key) = @ARGV;
        my $all = eval { decode_json(join "", <STDIN>) } or exit;
        for my $device (@{ $all->{devices} }) {
            next if $device->{label} ne $label;
            print $key eq "price" ? $device->{price_micro} // "none" : $device->{challenge}{$key};
        }' "$@"
}

offered() { # SLOTS: succeeds when at least so many are on offer
    printf 'run: [sh]\n' >offered.yaml
    "$bourse" quote offered.yaml --json --timeout 5s >offered.json 2>/dev/null || return 1
    [ "$(number slots_now offered.json)" -ge "$1" ] 2>/dev/null
}

# Prints all that descends from a process, without the process: "pid start" each, so that a reused
# pid is not taken for it.
descendants() { perl "$support/descendants.pl" "$1"; }
# Prints those of a list on stdin that are still alive.
survivors() {
    local state start_now
    while read -r pid start; do
        read -r state start_now < <(awk '{ sub(/.*\) /, ""); print $1, $20 }' "/proc/$pid/stat" 2>/dev/null) || continue
        [ "$start_now" != "$start" ] || [ "$state" = Z ] || echo "$pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
    done
}

# Stops the market. Then the program that shares no code with the broker checks its books.
# The tables follow the journal, so what was acknowledged may not be in them yet. A query of the
# ledger of a running broker waits until the tables have the entry that HEAD has seen.
head_entry() {
    local place counter index newest=0 entry=0
    for place in 8 520; do # counter and entry of the two marks
        read -r counter index < <(od -An -tu8 -j "$place" -N 16 "$market/HEAD" 2>/dev/null) || true
        [ "${counter:-0}" -le "$newest" ] || newest=$counter entry=$index
    done
    echo "$entry"
}
tables_reach() { # ENTRY
    [ "$(command sqlite3 -readonly "$market/ledger.db" 'SELECT ifnull(max(idx), 0) FROM journal' 2>/dev/null)" -ge "$1" ] 2>/dev/null ||
        gone "$broker"
}
if command -v sqlite3 >/dev/null; then
    sqlite3() {
        case " $* " in
        *" $market/ledger.db "*)
            if [ -n "${broker:-}" ] && ! gone "$broker"; then
                until_true 60 tables_reach "$(head_entry)" || fail "the tables do not follow the journal"
            fi
            ;;
        esac
        command sqlite3 "$@"
    }
fi

market_audit() {
    "$bin/bourse-broker" replay --verify "$market" >replay.log 2>&1 || fail "replay: $(cat replay.log)"
    kill -TERM "$broker"
    if jobs -p | grep -qx "$broker"; then
        wait "$broker" || fail "a clean stop ended with $?"
    else
        ended "$broker" 20 || fail "the broker does not end"
    fi
    broker=
    "$bin/bourse-broker" audit "$market" >audit.log 2>&1 || fail "audit: $(cat audit.log)"
    # Fails when an attempt was paid twice, or a subtask accepted twice.
    sqlite3 -readonly "$market/ledger.db" "
        SELECT 'accepted twice', hex(job), idx FROM results WHERE status = 0 GROUP BY job, idx HAVING COUNT(*) > 1;
        SELECT 'paid twice', hex(job), idx, attempt FROM results WHERE charge > 0
            GROUP BY job, idx, attempt HAVING COUNT(*) > 1;
        SELECT 'captured twice', hex(job), idx, attempt FROM transfers WHERE kind = 4
            GROUP BY job, idx, attempt HAVING COUNT(*) > 1;" >twice.log
    [ ! -s twice.log ] || fail "$(cat twice.log)"
}

# ---------------------------------------------------------------- matrices and devices

# FILE ROWS COLUMNS: writes a matrix as NumPy does, zeros but for a one in the first place.
npy() {
    {
        printf '\x93NUMPY\x01\x00\x76\x00'
        printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($2, $3), }"
        printf '\x00\x00\x80\x3f'
    } >"$1"
    truncate -s $((128 + 4 * $2 * $3)) "$1"
}
asked() { # LABEL: succeeds when a device of this label asks
    "$bourse" devices --json 2>/dev/null | sed 's/{"device":/\n&/g' | grep "\"label\":\"$1\"" | grep -q '"price_micro":[0-9]'
}
