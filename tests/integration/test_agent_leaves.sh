#!/usr/bin/env bash
# An agent that is killed in the middle of work leaves nothing in /tmp. The agent has a /tmp of its own here, because other
# programs of this machine write to the common one.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin agent-leaves "$1"
[ "$(id -u)" -eq 0 ] || skip "only root gives an agent a /tmp of its own"
[ "${work%/*}" = /tmp ] || skip "the folder of this test is not in /tmp"
unshare -m true 2>/dev/null || skip "this machine gives no mount namespace"

market_up --credits 10 --slots 1 --programs sh,sleep
kill -9 "$agent"
ended "$agent" 60 || fail "the agent does not die"

# The namespace's /tmp has the folder of this test, and the programs when they are in the common one.
mkdir alone
unshare -m sh -ec '
    mount -t tmpfs -o mode=1777 none "$1/alone"
    for folder in "$1" "$2"; do
        case $folder in /tmp/*)
            mkdir -p "$1/alone/${folder#/tmp/}"
            mount --rbind "$folder" "$1/alone/${folder#/tmp/}" ;;
        esac
    done
    mount --move "$1/alone" /tmp
    : >"$1/is-alone"
    exec sleep 600' sh "$work" "$bin" >alone.log 2>&1 &
holder=$!
started+=("$holder")
until_true 60 test -e is-alone || fail "no /tmp for the agent: $(cat alone.log)"
there() { find "/proc/$holder/root/tmp" -mindepth 1 -maxdepth 1 | sort; }
there >before
[ "$(wc -l <before)" -le 2 ] || fail "the agent's /tmp has $(cat before)"

nsenter -t "$holder" -m "$bin/bourse-provider" run --dir "$market/provider" >>agent-alone.log 2>&1 &
agent=$!
started+=("$agent")
until_true 60 grep -q 'connected; offering' agent-alone.log || fail "the agent offers nothing: $(cat agent-alone.log)"
printf 'name: long\nrun: [sh, -c, "echo a >/tmp/left; echo b >left; sleep 60"]\nlimit: 2m\n' >long.yaml
job=$("$bourse" submit long.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
names() { descendants "$agent" | while read -r pid _; do cat "/proc/$pid/comm" 2>/dev/null || true; done; }
works() { names >names && grep -qx sleep names; }
until_true 60 works || fail "the job does not run: $("$bourse" ps "$job"; cat names)"
descendants "$agent" >had
kill -9 "$agent"
ended "$agent" 60 || fail "the agent does not die"
nobody_left() { [ -z "$(survivors <had)" ]; }
until_true 60 nobody_left || fail "alive after the agent was killed: $(survivors <had)"
there | cmp -s - before || fail "the killed agent left in /tmp: $(there | comm -13 before -)"
find "$market/provider" -name left | grep -q . && fail "a file of the job is in the agent's folder"
echo "a killed agent left nothing in /tmp: ok in $SECONDS s"
