#!/usr/bin/env bash
# An agent whose disk is full: it says so once, offers nothing, gives back what it holds, and goes on by itself when there is
# room again; a cache that may grow over the disk makes room from what nobody uses. Needs a small tmpfs.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin agent-disk-full "$1"
small=$work/small
mkdir -m 711 "$small"
mount -t tmpfs -o size=8m,mode=711 tmpfs "$small" 2>/dev/null || skip "no tmpfs"
unmount_and_end() { umount -l "$small" 2>/dev/null || true; fire_end; }
trap unmount_and_end EXIT

market_up --credits 10 --slots 1 --programs sh,gzip
kill "$agent"
ended "$agent" 60 || fail "the agent does not end"
agent_join "$small/agent" <<END
slots: 2
programs: [sh, gzip]
END
agent_start "$small/agent"
started+=("$agent")
log=$work/agent-agent.log
logged() { grep -q "$1" "$log"; }
until_true 60 offered 2 || fail "nothing on offer"

for i in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 1000000 /dev/urandom >"input$i"; done
cat >job.yaml <<END
each: 'input*'
run: [gzip, -k, '{in}']
outputs: ['{in}.gz']
limit: 1m
END
is_done() {
    "$bourse" ps "$job" --json --timeout 5s >ps.json 2>/dev/null && grep -q '"state":"done"' ps.json
}

# Twelve megabytes through a disk of eight.
job=$("$bourse" submit job.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
until_true 60 is_done || fail "the inputs did not make room for one another: $(cat ps.json)"

# Others fill the disk while subtasks run; what the cache can give up is not enough, and the lanes find no room for what
# comes next.
until_true 60 offered 2 || fail "nothing on offer after the first job"
mkdir held
for i in 1 2; do
    echo "$i" >"held/a$i"
    head -c 2500000 /dev/urandom >"held/b$i"
done
cat >held.yaml <<END
each: 'held/*'
run: [sh, -c, 'case \$0 in *a?) sleep 15 ;; esac', '{in}']
limit: 1m
END
held=$("$bourse" submit held.yaml -y --quiet 2>submit.log) || fail "submit: $(cat submit.log)"
held_runs() { "$bourse" ps "$held" --json --timeout 5s >ps.json 2>/dev/null && grep -q '"running":[1-9]' ps.json; }
until_true 60 held_runs || fail "the subtasks do not run: $(cat ps.json)"
dd if=/dev/zero of="$small/fill" bs=64k 2>/dev/null || true
fill_again() { # the cache goes as the agent looks at the disk
    dd if=/dev/zero of="$small/fill" bs=64k 2>/dev/null || true
    logged 'is full: nothing is offered until there is room' && ! offered 1
}
until_true 60 fill_again || fail "a full disk is not noticed"
head -c 1000000 /dev/urandom >last
cat >later.yaml <<END
each: 'last'
run: [gzip, -k, '{in}']
outputs: ['{in}.gz']
limit: 1m
budget: 0.10
END
job=$("$bourse" submit later.yaml -y --quiet --anyway 2>submit.log) || fail "submit: $(cat submit.log)"
[ "$(grep -c 'is full' "$log")" -le 2 ] || fail "the log says it again and again: $(grep 'is full' "$log")"
until_true 60 logged 'work is given back: no room for ' || fail "nothing is given back: $(cat "$log")"
rm "$small/fill"
until_true 60 is_done || fail "the agent did not go on: $(cat ps.json)"
logged 'has room again' || fail "no word of the room"
"$bourse" ps "$job" --json | grep -q '"failed":0' || fail "a subtask failed: $("$bourse" ps "$job" --json)"
job=$held
until_true 60 is_done || fail "what was given back did not run: $(cat ps.json)"
grep -q '"failed":0' ps.json || fail "what was given back failed: $(cat ps.json)"
echo "agent-disk-full: ok"
