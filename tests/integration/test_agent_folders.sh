#!/usr/bin/env bash
# Folders of a running agent that somebody removes, as who cleans /var/cache does. The agent makes them again, and no job
# fails. Where it cannot, it says so, offers nothing, and goes on by itself when it can.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin agent-folders "$1"
market_up --credits 10 --slots 1 --programs sh
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
agent_join "$work/agent" <<END
slots: 2
programs: [sh]
END
agent_start "$work/agent"
started+=("$agent")
log=$work/agent-agent.log
logged() { grep -q "$1" "$log"; }
state_is() { "$bin/bourse-provider" status --dir "$work/agent" --json 2>/dev/null | grep -q "\"state\":\"$1\""; }
until_true 60 offered 2 || fail "nothing on offer"

head -c 1500000 /dev/urandom >input
works() { # NAME: a job with a file that the agent keeps, and an output too large for its memory
    "$bourse" run -y -f input --out copy --out folder/ -o "$1" -- \
        sh -c 'cp input copy; cat input input input >folder/three; echo done' >out 2>err </dev/null &&
        cmp -s input "$1/copy" && [ "$(stat -c %s "$1/folder/three")" = 4500000 ]
}
works before || fail "a job: $(cat out err)"
rm -rf "$work/agent/cache" "$work/agent/images" "$work/agent/spool"
works gone || fail "a job after the folders went: $(cat out err)"
until_true 60 logged 'somebody removed .*cache; the agent has made it again' || fail "the log is silent: $(cat "$log")"
rm -rf "$work/agent/cache/"*
works emptied || fail "a job after the cache was emptied: $(cat out err)"
[ "$("$bourse" ps --json | grep -o '"state":"failed"' | wc -l)" = 0 ] || fail "a job failed: $("$bourse" ps)"

replaced() { rm -rf "$work/agent/spool" && : >"$work/agent/spool"; } # the agent may make the folder between the two
until_true 60 replaced 2>/dev/null || fail "no file takes the folder's place"
until_true 60 logged 'spool is not a folder: nothing is offered until the folder can be made again' ||
    fail "nothing is said: $(cat "$log")"
until_true 60 state_is folder-missing || fail "status: $("$bin/bourse-provider" status --dir "$work/agent" --json)"
"$bin/bourse-provider" status --dir "$work/agent" >status 2>&1 || true
grep -q 'nothing is offered until the folder' status || fail "status: $(cat status)"
nothing_offered() { ! offered 1; }
until_true 60 nothing_offered || fail "an agent without its folder offers"
rm "$work/agent/spool"
until_true 60 offered 2 || fail "the agent does not offer again: $(cat "$log")"
logged 'all folders are there again: offering' || fail "no word of the folders"
works after || fail "a job after all: $(cat out err)"
market_audit
echo "agent-folders: ok"
