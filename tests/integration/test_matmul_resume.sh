#!/usr/bin/env bash
# Products that ended before they were whole: what was made of one is fetched, what is missing is submitted as a job that
# continues it, however often; a tile that no referee judged does not reach who asked for checks; and a command that is
# killed leaves no file of its own behind.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
maker=$(dirname "$(realpath "$0")")/../support/matrix.pl
fire_begin matmul-resume "$1" bourse-audit bourse-tensor

nothing_left() { [ -z "$(find . -maxdepth 1 -name '.bourse-*')" ] || fail "a part was left: $(ls -a)"; }
offering() { # COUNT NEEDS: so many devices on offer have it
    [ "$("$bourse" devices --needs "$2" --json 2>/dev/null | grep -o '"price_micro":[0-9]' | wc -l)" -ge "$1" ]
}
is_at_least() { # FIELD COUNT: of job $id
    "$bourse" ps "$id" --json >ps.json 2>/dev/null && [ "$(field "$1" ps.json)" -ge "$2" ]
}
jobs_are() { # COUNT
    "$bourse" ps --quiet >ids
    [ "$(wc -l <ids)" -eq "$1" ] || fail "$(wc -l <ids) jobs, not $1"
}
family() { echo "$1" && descendants "$1" | cut -d' ' -f1; } # PID: and all that descends from it
# The agent gets no further than a few tiles at a time.
# shellcheck disable=SC2046 # lists
halt() { kill -STOP $(family "$1"); } # PID
# shellcheck disable=SC2046
go_on() { kill -CONT $(family "$1"); } # PID
makes_two() { # a few more tiles, and whether there are two
    go_on "$agent"
    sleep 0.05 # of work
    halt "$agent"
    is_at_least accepted 2
}
has_ended() { "$bourse" ps "$id" --json >ps.json 2>/dev/null && [ "$(field state ps.json)" != open ]; }
cancel_it() { # job $id; a cancelled job ends when its agent has said what became of what it ran
    expect 0 '' "$bourse" cancel "$id"
    go_on "$agent"
    until_true 60 has_ended || fail "a cancelled job goes on: $(cat ps.json)"
}
tiles_made() { "$bourse" ps "$1" --json >ps.json || fail "ps"; field accepted ps.json; }

market_up --credits 1000 --slots 1
market_config 'heartbeat: 30s' # who stands still here is not to be missed
until_true 60 offering 1 'executor = tensor' || fail "nobody multiplies: $(cat market/provider.log)"
"$maker" A.npy 60 50 1 whole
"$maker" B.npy 50 40 2 whole
product=("$bourse" run -y matmul A.npy B.npy)
expect 0 'checked' "${product[@]}" -o right.npy --tiles 1x1

# ---------------------------------------------------------------- cancelled

# Detached from while nothing is done, cancelled once something is.
halt "$agent"
expect 8 '--resume' "${product[@]}" -o C.npy --tiles 20x20 --wait-at-most 1ms
nothing_left
id=$("$bourse" ps --quiet | head -n 1)
until_true 60 makes_two || fail "no tile is made: $(cat ps.json)"
cancel_it
made=$(tiles_made "$id")
[ "$made" -lt 400 ] || fail "it was done before it could be cancelled"
first=$id
# What was made has names of its own.
expect 1 "$made files of $made" "$bourse" fetch "$first" -o tiles # the others were cancelled
[ "$(find tiles -name c.npy | wc -l)" -eq "$made" ] || fail "tiles: $(find tiles)"
jobs_are 2

# The rest is one job of what is missing; detached from, cancelled, and gone on with again.
halt "$agent"
expect 8 '--resume' "${product[@]}" -o C.npy --resume "$first" --wait-at-most 1ms
jobs_are 3
id=$("$bourse" ps --quiet | head -n 1)
expect 0 "continues job ${first:0:8}" "$bourse" ps "$id"
until_true 60 makes_two || fail "no further tile is made: $(cat ps.json)"
cancel_it
more=$(tiles_made "$id")
"$bourse" ps "$id" --json >ps.json
[ "$(field subtasks ps.json)" -eq $((400 - made)) ] || fail "$made were made, and it did not leave them out: $(cat ps.json)"
# A report of it names the job before it, and what both cost.
expect 0 "continues job ${first:0:8}: cancelled, $made of 400 accepted" "$bourse" report "$id"
"$bourse" report "$id" --json >json || fail "report --json"
[ "$(number together_micro json)" -eq $(("$("$bourse" ps "$first" --json | grep -oE '"charged_micro":[0-9]+' | tail -n 1 | cut -d: -f2)" + $(grep -oE '"charged_micro":[0-9]+' ps.json | tail -n 1 | cut -d: -f2))) ] ||
    fail "together: $(cat json ps.json)"
# By the name of the first all the same: what has been made since is not made again.
expect 0 '' "${product[@]}" -o C.npy --resume "$first" --json
[ "$(field checked out) $(field tiles out)" = "true 400" ] || fail "not whole: $(cat out)"
[ "$(field subtasks out)" -eq $((400 - made - more)) ] || fail "$made and $more were made: $(cat out)"
cmp C.npy right.npy || fail "the product that was gone on with is another"
nothing_left
jobs_are 4
# Of one that is done only the tiles are fetched, by any of its jobs.
for id in $("$bourse" ps --quiet | head -n 3); do
    rm -f C.npy
    expect 0 'checked' "${product[@]}" -o C.npy --resume "$id"
    cmp C.npy right.npy || fail "fetched it is another"
done
rm C.npy
expect 0 'not checked' "$bourse" run matmul -o C.npy --resume "$first"
cmp C.npy right.npy || fail "without its factors it is another"
jobs_are 4

# ---------------------------------------------------------------- cancelled while the command waits, and killed

halt "$agent"
"${product[@]}" -o late.npy --tiles 20x20 >late.out 2>late.err </dev/null &
command=$!
started+=("$command")
five_jobs() { "$bourse" ps --quiet >ids && [ "$(wc -l <ids)" -eq 5 ]; }
until_true 60 five_jobs || fail "it is not submitted: $(cat late.err)"
id=$(head -n 1 ids)
expect 0 '' "$bourse" cancel "$id"
status=0
wait "$command" || status=$?
[ "$status" -eq 9 ] || fail "a cancelled product ends with $status: $(cat late.err)"
has "$(cat late.err)" "-o late.npy --resume ${id:0:8}"
nothing_left
# The agent stays halted until the kill: a product that is done by then cannot be killed.
"${product[@]}" -o late.npy --resume "$id" >late.out 2>late.err </dev/null &
command=$!
started+=("$command")
six_jobs() { "$bourse" ps --quiet >ids && [ "$(wc -l <ids)" -eq 6 ]; }
until_true 60 six_jobs || fail "it is not submitted again: $(cat late.err)"
kill -KILL "$command"
wait "$command" 2>/dev/null || true
go_on "$agent"
nothing_left
expect 0 'checked' "${product[@]}" -o late.npy --resume "$id"
cmp late.npy right.npy || fail "after a kill it is another"

# ---------------------------------------------------------------- a factor that shrinks while its product is computed

halt "$agent"
cp A.npy shrinking.npy
id=$("$bourse" ps --quiet | head -n 1)
"$bourse" run -y matmul shrinking.npy B.npy -o shrunk.npy --tiles 2x2 >late.out 2>late.err </dev/null &
command=$!
started+=("$command")
has_job() { "$bourse" ps --quiet >ids && [ "$(head -n 1 ids)" != "$id" ]; }
until_true 60 has_job || fail "it is not submitted: $(cat late.err)"
id=$(head -n 1 ids)
truncate -s 1000 shrinking.npy
go_on "$agent"
status=0
wait "$command" || status=$?
[ "$status" -eq 2 ] || fail "without a whole factor it ends with $status: $(cat late.err)"
has "$(cat late.err)" 'shrinking.npy'
has "$(cat late.err)" "-o shrunk.npy --resume ${id:0:8}"
nothing_left
[ ! -e shrunk.npy ] || fail "C has its name"
cp A.npy shrinking.npy
expect 0 'checked' "$bourse" run matmul shrinking.npy B.npy -o shrunk.npy --resume "$id"
cmp shrunk.npy right.npy || fail "after a factor shrank it is another"

# ---------------------------------------------------------------- taken unchecked

agent_roles=(provider referee)
agent_join "$work/second" --name second <<<'slots: 1'
sed -i 's/^price:.*/price: 0.20/' "$work/second/provider.yaml"
"$bin/bourse-provider" run --dir "$work/second" >>"$work/agent-second.log" 2>&1 &
second=$!
started+=("$second")
until_true 60 offering 2 'executor = tensor and referee = true' || fail "no second referee: $(cat agent-second.log)"
# Who would judge stands still: what the other made is held until the job is cancelled, and then paid as it is.
halt "$second"
expect 8 '--resume' "${product[@]}" -o judged.npy --tiles 2x1 --at-most 1 --verify cheap --wait-at-most 1ms
id=$("$bourse" ps --quiet | head -n 1)
until_true 60 is_at_least checking 1 || fail "nothing is held: $(cat ps.json)"
expect 0 '' "$bourse" cancel "$id"
go_on "$second"
until_true 60 is_at_least accepted 1 || fail "what was held is not taken: $(cat ps.json)"
until_true 60 offering 2 'executor = tensor and referee = true' || fail "the second one is away: $(cat agent-second.log)"
expect 7 'without a referee.s check' "$bourse" run -y matmul -o judged.npy --resume "$id"
[ ! -e judged.npy ] || fail "an unjudged product has its name"
expect 7 'name A and B' "${product[@]}" -o judged.npy --resume "$id" --no-check
nothing_left
expect 0 'checked:' "${product[@]}" -o judged.npy --resume "$id"
cmp judged.npy right.npy || fail "the judged one is another"
# Who asks for checks now gets them, also of a job that had none.
rm judged.npy
expect 7 'name A and B' "$bourse" run -y matmul -o judged.npy --resume "$first" --verify cheap
[ ! -e judged.npy ] || fail "an unjudged product has its name"

market_audit
echo "products that ended early: gone on with, fetched, judged: ok"
