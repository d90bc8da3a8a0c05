#!/usr/bin/env bash
# What must hold whatever people and programs try: jobs end at their limits with the right cause and leave a calm
# host, money keeps to its bounds, others stay out, and a changed ledger, receipt, key or backup is noticed. Started
# as root, the jobs are run once more by a market of an ordinary user.
set -euo pipefail
bin=$(realpath "$1")
script=$(realpath "$0")
bourse=$bin/bourse
probe=$bin/jail-probe
for program in bourse-broker bourse-provider bourse-worker bourse-audit jail-probe; do
    [ -x "$bin/$program" ] || { echo "skipped: no $program"; exit 77; }
done
for tool in bwrap sqlite3 setpriv ps; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
root=no
if [ "$(id -u)" -eq 0 ]; then
    root=yes
    id bourse >/dev/null 2>&1 || { echo "skipped: no user bourse for the agent"; exit 77; }
fi

# The agent's user passes through the folder; nobody else gets further than that.
base=${TMPDIR:-/tmp}
work=$(mktemp -d "$base/must hold.XXXXXX")
[ "$root" = no ] || chmod 711 "$work"
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state BOURSE_MARKET=$work/market
unset BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR
market=$work/market
second=
finish() {
    [ -z "$second" ] || kill -9 "$second" 2>/dev/null || true
    "$bourse" down --dir "$market" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT
cd "$work"

fail() { # with what the two programs of the market said last
    echo "FAILED: $*" >&2
    tail -n 15 "$market"/*.log >&2 || true
    exit 1
}
# shellcheck source=tests/support/expect.sh
. "$(dirname "$(realpath "$0")")/../support/expect.sh"

mkdir -m 700 home
echo 'a secret of the owner' >home/secret
programs='sh,cat,dd,ls,ln,yes,sleep,tail,setsid,true'
if ! "$bourse" up --dir "$market" --detach --json --credits 50 --programs "$programs" --wait 1m >up 2>err; then
    cat up err "$market"/*.log >&2
    grep -qs 'isolat' "$market/provider.log" && { echo "skipped: this machine cannot isolate jobs"; exit 77; }
    fail "up"
fi
agent=$(sed -n 's/.*"provider_pid": *\([0-9]*\).*/\1/p' up)
[ -n "$agent" ] || fail "no provider_pid in $(cat up)"

# ---------------------------------------------------------------- jobs end at their limits

# What runs below the agent beside its launcher: jails and whatever they hold.
jailed() {
    ps -eo pid=,ppid=,comm= | awk -v agent="$agent" '
        { parent[$1] = $2; name[$1] = $3 }
        END {
            for (pid in parent) {
                up = pid
                while (up in parent && up != agent && up > 1) up = parent[up]
                if (up == agent && pid != agent && name[pid] !~ /^bourse-(launch|cgroup)/) print pid, name[pid]
            }
        }'
}
calm() {
    for _ in $(seq 200); do
        [ -n "$(jailed)" ] || return 0
        sleep 0.1 # between two looks
    done
    fail "after $1 this is left on the host: $(jailed)"
}
# job NAME RUN LINES: a job file with tight limits.
job() {
    cat >job.yaml <<YAML
name: $1
run: $2
limit: ${limit:-1}s
limits: {memory: 48MiB, disk: 8MiB, processes: 16, output: 1MB, cpu: ${cpu:-10s}}
${3:-}
YAML
}
# ends CAUSE NAME RUN LINES: the job fails for that cause, `logs` and `ps` say so, and the host is calm.
ends() {
    local cause=$1
    shift
    job "$@"
    local started=$SECONDS
    expect 1 '' "$bourse" submit job.yaml -y --wait --quiet
    [ $((SECONDS - started)) -le $((${limit:-1} + 20)) ] || fail "$1 went on for $((SECONDS - started)) s"
    expect 0 'failed +0/1' "$bourse" ps last
    expect 0 '' "$bourse" logs last
    grep -qaE "^subtask 0: $cause" err || fail "$1 was to end with '$cause': $(cat err)"
    calm "$1"
}
bad_jobs() {
    cp "$probe" ./probe
    local probing='files: probe'
    # Forks go on until the limit of time; the others meet their own first, also on a slow machine.
    limit=3 ends 'process limit' fork-bomb '[sh, -c, "chmod 700 probe; exec ./probe fork-bomb"]' "$probing"
    limit=3 ends 'process limit' forks '[sh, -c, "bomb() {{ bomb | bomb & }}; bomb; wait; sleep 9"]'
    limit=30 ends 'memory limit' hog '[tail, /dev/zero]'
    limit=30 ends 'memory limit' hogs '[sh, -c, "chmod 700 probe; exec ./probe memory-together"]' "$probing"
    limit=30 ends 'memory limit' at-once '[sh, -c, "chmod 700 probe; exec ./probe memory-at-once"]' "$probing"
    ends 'time limit' loop '[sh, -c, "while :; do :; done"]'
    ends 'time limit: the program ran for 1\.[0-9]+ s; its limit is 1\.000 s' sleeper '[sleep, "1000"]'
    ends 'time limit' deaf '[sh, -c, "chmod 700 probe; exec ./probe ignore"]' "$probing"
    ends 'time limit' deaf-shell '[sh, -c, "trap : TERM INT HUP; while :; do sleep 1; done"]'
    # On a machine that is busy otherwise, a second of wall time may hold less processor time than that.
    limit=30 cpu=300ms ends 'cpu limit: the program used 0\.[3-9][0-9]+ s of CPU time; its limit is 0\.300 s' spin '[sh, -c, "chmod 700 probe; exec ./probe spin"]' "$probing"
    limit=30 ends 'disk limit' disk '[dd, if=/dev/zero, of=big, bs=1M]'
    limit=30 ends 'disk limit' disk-tmp '[dd, if=/dev/zero, of=/tmp/big, bs=1M]'
    limit=30 ends 'disk limit' disk-shm '[dd, if=/dev/zero, of=/dev/shm/big, bs=1M]'
    limit=30 ends 'disk limit' many-files '[sh, -c, "chmod 700 probe; exec ./probe many-files"]' "$probing"
    ends 'time limit' flood '[sh, -c, "yes & yes >&2 & yes"]'
    limit=30 ends 'output limit: the outputs take 4194304 bytes; their limit is 1000000' outputs '[dd, if=/dev/zero, of=out, bs=1M, count=4]' 'outputs: [out]'
    limit=30 ends 'output missing' link '[ln, -s, /etc/passwd, out]' 'outputs: [out]'
    limit=30 ends 'output missing' folder-link '[ln, -s, /etc, d]' 'outputs: [d/passwd]'

    job dotdot '[true]' 'outputs: [../../etc/passwd]'
    expect 2 'job.yaml:5: .*\.\.' "$bourse" submit job.yaml -y

    # Who forks twice and ends well has done its work; what it left behind ends with it.
    limit=30 job daemon '[sh, -c, "chmod 700 probe; exec ./probe detach"]' "$probing"
    expect 0 '' "$bourse" submit job.yaml -y --wait --quiet
    calm daemon
    limit=30 job leftover '[sh, -c, "setsid sleep 500 & setsid setsid sleep 600 & exit 0"]'
    expect 0 '' "$bourse" submit job.yaml -y --wait --quiet
    calm leftover

    # What it sees: nothing of ours. The probe prints a line for each gap it finds.
    for mode in files network processes namespaces surface self; do
        limit=30 job "see-$mode" "[sh, -c, 'chmod 700 probe; exec ./probe $mode']" "$probing"
        [ "$mode" != files ] || limit=30 job see-files "[sh, -c, 'chmod 700 probe; exec ./probe files \"\$@\"', sh, '$work',
            '$market', '$market/broker.sock', '$market/provider/provider.key', '$work/home/secret', '${bin%/*}']" "$probing"
        got=0
        "$bourse" submit job.yaml -y --wait --quiet >id 2>err || got=$?
        "$bourse" logs last >gaps 2>&1 || fail "logs"
        [ "$got" -eq 0 ] || fail "a job could see or do too much ($mode): $(cat gaps)"
    done
    calm "the probes"
}
bad_jobs

# The agent never ended, and takes work as before.
expect 0 '' "$bourse" run -y --quiet -- true
kill -0 "$agent" || fail "the agent has ended"
if [ -n "${MUST_HOLD_JOBS_ONLY:-}" ]; then
    expect 0 '' "$bourse" down --dir "$market"
    echo "bad jobs in the market of an ordinary user: ok"
    exit 0
fi

# ---------------------------------------------------------------- money

expect 4 'budget: 60\.00 credits are needed, and 49\.[0-9]+ are available' "$bourse" run -y --budget 60 -- true
expect 8 'asks more' "$bourse" run -y --cap 0.05 --wait-at-most 300ms -- true
expect 0 '.' "$bourse" cancel last
expect 0 '"charged_micro":0' "$bourse" ps last --json

# More work than its budget buys: it ends for that reason, with what it bought, and pays no more.
limit=5 job poor '[sleep, "0.4"]' "$(printf '%s\n' 'array: 1-60' 'budget: 0.0003' 'cap: 0.10' 'term: 5s' 'expect: 400ms')"
expect 1 '' timeout 120 "$bourse" submit job.yaml -y --wait --quiet
expect 0 'budget' "$bourse" ps last
expect 0 '"accepted":[1-9]' "$bourse" ps last --json
expect 0 '"jobs"' "$bourse" ps --json
tr '{' '\n' <out | awk -F'[:,]' '
    /"budget_micro"/ {
        for (i = 1; i < NF; i++) {
            if ($i ~ /"budget_micro"/) budget = $(i + 1)
            if ($i ~ /"charged_micro"/) charged = $(i + 1)
        }
        jobs++
        if (charged > budget) { print "charged", charged, "of", budget; wrong = 1 }
    }
    END { exit wrong || jobs < 20 }' >wrong || fail "a job paid more than its budget: $(cat wrong)"
expect 0 'held +0\.00' "$bourse" balance

# ---------------------------------------------------------------- receipts

mkdir proofs
"$bourse" run -y --quiet --array 1-3 -- true >id 2>err || fail "run: $(cat err)"
expect 0 '3 receipts' "$bourse" receipt last --all -o proofs
log_key=$("$bourse" key --log)
expect 0 '3 verified, 0 failed' "$bourse" verify proofs --key "$log_key"
receipt=$(find proofs -name '*-1.receipt')
size=$(stat -c %s "$receipt")
for at in $(seq 0 $((size / 24)) $((size - 1))) $((size - 1)); do
    cp "$receipt" changed
    byte=$(dd if=changed bs=1 skip="$at" count=1 status=none | od -An -tu1 | tr -d ' ')
    printf "\\$(printf %o $((${byte:-0} ^ 1)))" | dd of=changed bs=1 seek="$at" conv=notrunc status=none
    expect 7 '^failed ' "$bourse" verify changed --key "$log_key"
done
head -c $((size - 1)) "$receipt" >changed
expect 7 '^failed ' "$bourse" verify changed --key "$log_key"
(cat "$receipt"; echo) >changed
expect 7 '^failed ' "$bourse" verify changed --key "$log_key"

# ---------------------------------------------------------------- others on this machine

second_out=$("$bin/bourse-broker" --dir "$market" 2>&1) && fail "a second broker runs on the same folder"
case $second_out in *LOCKED*) ;; *) fail "a second broker: $second_out" ;; esac

if [ "$root" = yes ]; then
    # With all that market.yaml says, only the folder stands between a stranger and the sockets.
    mkdir -m 777 "$work/stranger"
    cp "$market/market.yaml" "$work/stranger/market.yaml"
    chmod 644 "$work/stranger/market.yaml"
    # as USER: what stands before a command to run it as that user, with settings of its own.
    as() {
        disguise=(setpriv --reuid="$1" --regid="$(id -gn "$1")" --clear-groups env HOME="$work/stranger"
            XDG_CONFIG_HOME="$work/stranger/$1" XDG_STATE_HOME="$work/stranger/$1"
            BOURSE_MARKET="$work/stranger/market.yaml" BOURSE_KEY="$work/stranger/$1/own.key")
        "${disguise[@]}" mkdir -p -m 700 "$work/stranger/$1"
        "${disguise[@]}" sh -c 'umask 077; od -An -tx1 -N32 /dev/urandom | tr -d " \n" >"$BOURSE_KEY"; echo >>"$BOURSE_KEY"'
    }
    as nobody
    if "${disguise[@]}" test -x "$bourse"; then
        expect 6 '' "${disguise[@]}" "$bourse" balance --timeout 1s
    fi
    for file in broker.sock blobs.sock blobs.fd market.yaml owner.key ledger.db provider/provider.key; do
        "${disguise[@]}" test -r "$market/$file" && fail "nobody reads $file"
        "${disguise[@]}" test -w "$market/$file" && fail "nobody writes $file"
    done
    as bourse
    # The agent's user reaches the sockets, which is its task, and nothing else that is the owner's.
    for file in owner.key broker.key log.key ledger.db HEAD broker.yaml blobs snapshots; do
        "${disguise[@]}" test -r "$market/$file" && fail "the agent's user reads $file"
        "${disguise[@]}" test -w "$market/$file" && fail "the agent's user writes $file"
    done
    "${disguise[@]}" test -w "$market" && fail "the agent's user writes the market's folder"
    if "${disguise[@]}" test -x "$bourse"; then
        # Another process of that user has no account: it may knock, and is told nothing.
        expect 4 '' "${disguise[@]}" "$bourse" balance --timeout 60s
        expect 4 '' "${disguise[@]}" "$bourse" admin accounts --timeout 60s
    fi
fi

# ---------------------------------------------------------------- keys, ledger, backups

chmod 644 "$market/owner.key"
expect 2 "chmod 600" "$bourse" balance
chmod 600 "$market/owner.key"
cp -p "$market/HEAD" old-head
mkdir -m 700 backup
sqlite3 "$market/ledger.db" ".backup 'backup/ledger.db'" || fail "backup"
expect 0 '' "$bourse" run -y --quiet -- true
expect 0 '' "$bourse" down --dir "$market"
[ -z "$(jailed)" ] || fail "down left this: $(jailed)"
case $(ps -o stat= -p "$agent") in '' | Z*) ;; *) fail "down left the agent" ;; esac # init may be slow to reap it

refused() { # refused WHAT PATTERN COMMAND...
    local what=$1 pattern=$2 said
    shift 2
    said=$(timeout 120 "$@" 2>&1) && fail "$what was accepted: $said"
    grep -qE -- "$pattern" <<<"$said" || fail "$what: $said"
}
for key in broker.key log.key; do
    for mode in 0644 0640 0604 0700; do
        chmod "$mode" "$market/$key"
        refused "$key with mode $mode" 'chmod 600' "$bin/bourse-broker" --dir "$market"
    done
    chmod 600 "$market/$key"
    mv "$market/$key" "$market/$key.moved"
    ln -s "$key.moved" "$market/$key"
    refused "$key as a symbolic link" 'symbolic link' "$bin/bourse-broker" --dir "$market"
    mv -f "$market/$key.moved" "$market/$key"
done
chmod 640 "$market/provider/provider.key"
refused "provider.key with mode 0640" 'chmod 600' "$bin/bourse-provider" run --dir "$market/provider"
chmod 600 "$market/provider/provider.key"
before=$(stat -c %a "$market")
chmod 755 "$market"
refused "an open folder" 'chmod 700' "$bin/bourse-broker" --dir "$market"
chmod "$before" "$market"

expect 0 'ok' "$bin/bourse-broker" audit "$market"
plant() { # plant SQL PATTERN: in a copy, so that nothing else sees it
    rm -rf planted
    mkdir -m 700 planted
    cp "$market"/ledger.db* "$market/HEAD" planted/
    sqlite3 planted/ledger.db "$1" || fail "$1"
    expect 1 "$2" "$bin/bourse-broker" audit planted
}
plant 'UPDATE transfers SET amount = amount + 1 WHERE entry = (SELECT MAX(entry) FROM transfers WHERE kind = 4)' transfers
plant 'UPDATE balances SET available = available + 1 WHERE account = (SELECT MAX(account) FROM balances)' balances
plant "UPDATE journal SET bytes = CAST(substr(bytes, 1, length(bytes) - 1) || x'7f' AS BLOB) WHERE idx = 3" journal

mv "$market/HEAD" HEAD
refused "a market without HEAD" 'HEAD' "$bin/bourse-broker" --dir "$market"
mv HEAD "$market/HEAD"
mkdir -m 700 now
mv "$market"/ledger.db* now/
cp backup/ledger.db "$market/ledger.db"
refused "an old backup" 'HEAD' "$bin/bourse-broker" --dir "$market"
rm "$market"/ledger.db*
mv now/ledger.db* "$market/"

# After all that, the market goes on as if nothing had been.
expect 0 'process' "$bourse" up --dir "$market" --detach
expect 0 '' "$bourse" run -y --quiet -- true
expect 0 '' "$bourse" down --dir "$market"
expect 0 'ok' "$bin/bourse-broker" audit "$market"

if [ "$root" = yes ]; then
    as nobody
    if "${disguise[@]}" test -x "$bin/bourse-worker"; then
        "${disguise[@]}" TMPDIR="$work/stranger" MUST_HOLD_JOBS_ONLY=yes bash "$script" "$bin"
    fi
fi
echo "what must hold: ok"
