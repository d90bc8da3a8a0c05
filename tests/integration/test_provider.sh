#!/usr/bin/env bash
# bourse-provider without a market: its help, its exit statuses, its config, and what it would offer.
set -euo pipefail
bin=$1
umask 077
work=$(mktemp -d /tmp/bourse-provider-XXXXXX)
trap 'rm -rf "$work"' EXIT
provider=$bin/bourse-provider

fail() { echo "FAILED: $*"; exit 1; }

# expect STATUS PATTERN ARGUMENTS...: the status, and a pattern in what it prints
expect() {
    local want=$1 pattern=$2 got=0
    shift 2
    "$provider" "$@" >"$work/said" 2>&1 || got=$?
    [ "$got" = "$want" ] || { cat "$work/said"; fail "$* ended with $got, not $want"; }
    grep -qe "$pattern" "$work/said" || { cat "$work/said"; fail "$*: nothing like '$pattern'"; }
}

expect 0 'join INVITE' --help
for command in run probe join; do
    expect 0 'Exit status' "$command" --help
done
expect 0 '^bourse-provider [0-9]' version
expect 2 'no command' sell
expect 2 'one word too many' run now
expect 2 'unrecognized option' run --fast
expect 2 'exactly one invitation' join
expect 2 'bourse-invite-1' join bourse-invitation --dir "$work/none"

mkdir -m 700 "$work/attic"
cat >"$work/attic/provider.yaml" <<END
name: attic
price: 0.05
slots: 1
programs: [sh, cat]
user: nobody
END
expect 0 'well formed' run --check-config --dir "$work/attic"
echo 'colour: blue' >>"$work/attic/provider.yaml"
expect 2 'provider.yaml:6: unknown key "colour"' run --check-config --dir "$work/attic"
sed -i '$d' "$work/attic/provider.yaml"

# The service user must be able to pass through the folder above.
chmod 711 "$work"
status=0
"$provider" probe --json --dir "$work/attic" >"$work/probe.json" 2>"$work/said" || status=$?
[ "$status" = 0 ] || [ "$status" = 4 ] || { cat "$work/said"; fail "probe ended with $status"; }
python3 - "$work/probe.json" "$status" <<'END'
import json, sys
probe = json.load(open(sys.argv[1]))
assert probe["version"] == 1 and probe["name"] == "attic"
assert probe["machine"]["cores"] >= 1
if sys.argv[2] == "4":
    assert probe["offer"] is None and probe["refusal"]
    sys.exit(0)
offer = probe["offer"]
assert offer["slots"] == 1 and offer["price_micro"] == 50000
programs = {a["text"] for a in offer["attributes"] if a["name"] == "program"}
assert programs == {"sh", "cat"}, programs
assert probe["isolation"]["level"] >= 1
END
expect 1 'no key in' run --dir "$work/attic"
[ -z "$(find "$work/attic" -perm /077 ! -type l)" ] || fail "files of the agent are open to others"
echo "ok"
