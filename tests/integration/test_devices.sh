#!/usr/bin/env bash
# Several devices of one agent, in a real market: each job runs on the device that it asks for, at that device's price.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin devices "$1"
[ "$(nproc)" -ge 2 ] || skip "one core only"
market_up --slots 1 --credits 50
agent_join "$work/attic" --name attic </dev/null
cat >"$work/attic/provider.yaml" <<'END'
name: attic
price: 0.30
slots: 1
memory: 128MiB
disk: 64MiB
devices:
  - {name: quiet, price: 0.20, term: 2h}
END
agent_folder=$work/attic
"$bin/bourse-provider" run --check-config --dir "$agent_folder" 2>check.log || fail "check-config: $(cat check.log)"
"$bin/bourse-provider" run --dir "$agent_folder" >agent-attic.log 2>&1 &
started+=($!)
asked() { # LABEL PRICE: a device of that label asks that much
    "$bourse" devices --json 2>/dev/null | tr '{' '\n' | grep "\"label\":\"$1\"" | grep -q "\"price_micro\":$2,"
}
until_true 60 asked attic 300000 || fail "the first device is not on offer: $("$bourse" devices)"
until_true 60 asked quiet 200000 || fail "the second device is not on offer: $("$bourse" devices)"

# run_on LABEL: a job that asks for that device runs there, and on no other.
run_on() {
    timeout 120 "$bourse" run -y --needs "label = $1" -- echo "on $1" >out 2>err || fail "a job for $1: $(cat out err)"
    grep -q "^on $1\$" out || fail "no output: $(cat out err)"
    "$bourse" ps last --json >job.json
    grep -q "\"device\":\"$1\"" job.json || fail "a job for $1 ran elsewhere: $(cat job.json)"
}
run_on quiet
grep -q '"price_micro":200000' job.json || fail "not at its own price: $(cat job.json)"
run_on attic
grep -q '"price_micro":300000' job.json || fail "not at its own price: $(cat job.json)"

# Both at once: two leases of one agent, on two devices.
timeout 120 "$bourse" run -y --array 1-2 --needs 'label in (quiet, attic)' -- sh -c 'sleep 1; echo {index}' >out 2>err ||
    fail "two devices together: $(cat out err)"
"$bourse" ps last --json >job.json
grep -q '"accepted":2' job.json || fail "not both: $(cat job.json)"

# ---------------------------------------------------------------- one device is paused

own() { # STATUS PATTERN ARGUMENT...
    expect "$1" "$2" "$bin/bourse-provider" "${@:3}" --dir "$agent_folder"
}
withdrawn() { ! asked "$1" "$2"; }
own 4 'no device "loft"; its devices are attic, quiet' pause --device loft
own 0 'paused until .bourse-provider resume --device quiet' pause --device quiet
until_true 60 withdrawn quiet 200000 || fail "a paused device is on offer: $("$bourse" devices)"
run_on attic
own 0 'quiet: 1 slot of .*, paused$' status
own 0 'paused +the device quiet, until .bourse-provider resume --device quiet' status
kill "${started[-1]}"
ended "${started[-1]}" 60 || fail "the agent does not end"
"$bin/bourse-provider" run --dir "$agent_folder" >>agent-attic.log 2>&1 &
started+=($!)
until_true 60 asked attic 300000 || fail "the first device is not on offer: $("$bourse" devices)"
withdrawn quiet 200000 || fail "the pause did not survive a restart: $("$bourse" devices)"
own 0 'agent +the agent runs' why
own 0 'the device quiet is paused' why
own 0 'paused' pause --device attic
own 0 'state +every device is paused' status
own 2 'one device; call the command once for each' pause --device attic --device quiet
own 0 'offering again' resume --device attic
own 0 'offering again' resume --device quiet
own 0 'offering again' resume --device quiet
run_on quiet
[ ! -e "$agent_folder/paused" ] || fail "the pause is over and still kept"
own 0 'paused until 20[-0-9]+ [0-9]+:[0-9]+:[0-9]+' pause --device quiet --for 300ms --now
until_true 60 asked quiet 200000 || fail "a pause does not end: $("$bourse" devices)"
own 0 'paused' pause --device attic
own 0 'paused' pause
own 0 'the device is resumed; the agent is still paused' resume --device attic
own 0 'paused' pause --device attic
own 0 'offering again' resume
run_on attic

# A pause that cannot be kept holds, and says that a restart ends it.
mkdir -p "$agent_folder/paused/in-the-way"
own 1 'not over a restart of the agent' pause --device quiet
rm -r "$agent_folder/paused"
own 0 'offering again' resume

# A market whose agent is paused starts, and says so.
"$bin/bourse-provider" pause --market "$market" >/dev/null || fail "the market's own agent does not pause"
"$bourse" down --dir "$market" >/dev/null 2>&1 || fail "the market does not stop"
expect 0 'the agent is paused by its owner' "$bourse" up --dir "$market" --detach
"$bourse" down --dir "$market" >/dev/null 2>&1 || fail "the market does not stop"
echo "several devices of one agent: ok"
