#!/bin/bash
# bourse-broker from the outside: config checks, private folders, one broker per folder, a kill, a replay.
set -u
bin=$(realpath "${1:?usage: test_broker.sh BIN}")
work=$(mktemp -d)
pid=
cleanup() {
    [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
# shellcheck source=tests/support/parts.sh
. "$(dirname "$(realpath "$0")")/../support/parts.sh"

# Says what went wrong when `$1` does not hold the text `$2`.
has() {
    case $1 in
    *"$2"*) ;;
    *) fail "expected \"$2\" in: $1" ;;
    esac
}

wait_ready() {
    for _ in $(seq 1200); do
        [ -e "$dir/market.yaml" ] && return
        kill -0 "$pid" 2>/dev/null || fail "the broker ended: $(cat "$work/log")"
        sleep 0.05 # between two looks at a file; the file is the event
    done
    fail "the broker was not ready: $(cat "$work/log")"
}

start() {
    "$bin/bourse-broker" --dir "$dir" 2>"$work/log" &
    pid=$!
    wait_ready
}

dir="$work/a market"
mkdir -m 700 "$dir"

"$bin/bourse-broker" version | grep -q '^bourse-broker [0-9]' || fail "version"
out=$("$bin/bourse-broker" 2>&1) && fail "no folder was accepted"
has "$out" "--dir"
out=$(cd "$work" && "$bin/bourse-broker" strat 2>&1) && fail "a mistyped command was accepted"
has "$out" "no command"
out=$("$bin/bourse-broker" --chekc-config 2>&1) && fail "a mistyped option was accepted"
has "$out" "did you mean --check-config"
[ "$(printf '%s\n' "$out" | wc -l)" -eq 1 ] || fail "a mistyped option is answered with more than that: $out"
out=$("$bin/bourse-broker" --nothing-near 2>&1) && fail "an unknown option was accepted"
has "$out" "bourse-broker: there is no option '--nothing-near'; \`bourse-broker --help\` lists the options"
for program in bourse-broker bourse-provider; do # all programs have one form of errors
    out=$("$bin/$program" run --log 2>&1) && fail "an option without its value was accepted"
    has "$out" "$program: --log needs a value; \`$program --help\` says which"
    out=$("$bin/$program" run --log-json=yes 2>&1) && fail "a value of a switch was accepted"
    has "$out" "$program: --log-json takes no value; leave out '=yes'"
    "$bin/$program" run --log-json --help | grep -q -- '--log-json' || fail "help of $program lacks --log-json"
    "$bin/$program" run --json-logs --help >"$work/help" || fail "$program no longer takes --json-logs"
    grep -q 'json-logs' "$work/help" && fail "help of $program shows --json-logs"
done
out=$("$bin/bourse-broker" audit "$work" --verify 2>&1) && fail "an option of another command was passed over"
has "$out" "audit has no --verify"
out=$("$bin/bourse-broker" backup 2>&1) && fail "a backup of nothing was accepted"
has "$out" "two folders"
out=$("$bin/bourse-broker" replay --verify --json "$work/nowhere" 2>/dev/null) && fail "a folder that is not there was replayed"
has "$out" '{"error":{"name":"LOCAL","text":"'
has "$out" '"exit":1},"version":1}'
out=$("$bin/bourse-broker" replya --verify "$work" 2>&1) && fail "a mistyped command was accepted"
has "$out" "did you mean \`bourse-broker replay\`"
out=$("$bin/bourse-provider" probe --jsno 2>&1) && fail "a mistyped option was accepted"
has "$out" "did you mean --json"
[ -e "$work/strat" ] && fail "a mistyped command became a market's folder"

# A new market without an operator is refused with what to do; a mistyped key with its line and the right name.
mkdir -m 700 "$work/empty"
out=$("$bin/bourse-broker" --dir "$work/empty" 2>&1) && fail "a market without an operator started"
has "$out" "genesis.accounts"
out=$("$bin/bourse-broker" --dir "$work/misspelt" 2>&1)
[ $? -eq 2 ] && [ ! -e "$work/misspelt" ] || fail "a misspelt folder: $out"
has "$out" "broker.yaml"
out=$("$bin/bourse-broker" --dir "$work/empty" --check-config 2>&1) && fail "a config that is not there is fine: $out"
printf 'heartbeat: 1s\nlisen: tcp://127.0.0.1:1\n' >"$dir/broker.yaml"
out=$("$bin/bourse-broker" --dir "$dir" --check-config 2>&1) && fail "a wrong config was accepted"
has "$out" ":2"
"$bin/bourse-broker" --dir "$dir" >/dev/null 2>&1
[ $? -eq 2 ] || fail "a wrong config ends with another status than 2"
has "$out" '"listen"'

# The key of RFC 8032, section 7.1, test 1.
cat >"$dir/broker.yaml" <<END
genesis:
  accounts:
    - {key: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", name: ops, roles: [operator], credits: "5"}
END
"$bin/bourse-broker" --dir "$dir" --check-config >/dev/null || fail "a good config was refused"

chmod 755 "$dir"
out=$("$bin/bourse-broker" --dir "$dir" 2>&1) && fail "an open folder was accepted"
has "$out" "chmod 700"
chmod 700 "$dir"

start
out=$("$bin/bourse-broker" --dir "$dir" 2>&1) && fail "a second broker started"
has "$out" "LOCKED"
[ "$(stat -c %a "$dir/broker.key")" = 600 ] || fail "broker.key is open"

# Its genesis counts no more: what no new market may have there does not hold up this one.
sed -n '/key:/p' "$dir/broker.yaml" >>"$dir/broker.yaml.twice"
cat "$dir/broker.yaml.twice" >>"$dir/broker.yaml"
rm "$dir/broker.yaml.twice"
out=$("$bin/bourse-broker" --dir "$dir" --check-config 2>&1) || fail "a market that is made was refused for its genesis: $out"
cp "$dir/broker.yaml" "$work/empty/broker.yaml"
out=$("$bin/bourse-broker" --dir "$work/empty" 2>&1)
[ $? -eq 2 ] || fail "a new market with an account twice: $out"
has "$out" "same key"

# Killed, it starts again where it was, whatever it left behind.
kill -9 "$pid"
wait "$pid" 2>/dev/null
rm -f "$dir/market.yaml"
start
out=$("$bin/bourse-broker" replay --verify "$dir") || fail "replay beside a running broker"
has "$out" "replay ok"
kill -TERM "$pid"
wait "$pid" || fail "a clean stop ended with $?: $(cat "$work/log")"
pid=
[ -e "$dir/market.yaml" ] && fail "market.yaml is left behind"
[ -e "$dir/broker.sock" ] && fail "broker.sock is left behind"
[ -e "$dir/blobs.fd" ] && fail "blobs.fd is left behind"

if [ -x "$bin/bourse-audit" ]; then
    "$bin/bourse-broker" audit "$dir" >/dev/null || fail "audit"
fi

# Root's broker keeps no capability but the one for low ports, and this one only where its config has one.
if is_root capabilities; then
    rights() { sed -nE 's/^Cap(Prm|Eff|Bnd):[[:space:]]*//p' /proc/"$pid"/task/*/status | sort -u; }
    start
    [ "$(rights)" = 0000000000000000 ] || fail "the broker may do more than its user: $(rights)"
    has "$(cat "$work/log")" "running as root, with no capability"
    kill "$pid" && wait "$pid"
    lowest=$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start)
    cp "$dir/broker.yaml" "$work/broker.yaml"
    printf 'listen: tcp://127.0.0.1:1\nblob_listen: tcp://127.0.0.1:*\n' >>"$dir/broker.yaml"
    if [ "$lowest" -gt 1 ]; then # a machine may give such ports to everybody
        start
        [ "$(rights)" = 0000000000000400 ] || fail "with a low port the broker has: $(rights)"
        has "$(cat "$work/log")" "no capability but CAP_NET_BIND_SERVICE"
        kill "$pid" && wait "$pid"
    fi
    mv "$work/broker.yaml" "$dir/broker.yaml"
fi

# A key file that others may read is refused with the fix.
chmod 644 "$dir/log.key"
out=$("$bin/bourse-broker" --dir "$dir" 2>&1) && fail "an open key file was accepted"
has "$out" "chmod"
chmod 600 "$dir/log.key"

# A ledger that lost its end, beside a HEAD that knows better.
cp "$dir/HEAD" "$work/HEAD"
rm "$dir/ledger.db"
out=$("$bin/bourse-broker" --dir "$dir" 2>&1) && fail "an empty ledger was accepted beside HEAD"
has "$out" "HEAD"
echo ok
