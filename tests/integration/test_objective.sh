#!/usr/bin/env bash
# Jobs whose objective is the price, with two real providers: one is cheap and the other dear. The order asks for the slots that
# the plan chose, and the deadline decides whether the dear slot is among them.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin objective "$1"

market_up --credits 100 --slots 1 --price 0.10 --programs true,sleep
agent_join "$work/lab" --name lab </dev/null
cat >"$work/lab/provider.yaml" <<'END'
name: lab
slots: 1
price: 0.50
memory: 128MiB
disk: 64MiB
programs: ["true", sleep]
END
"$bin/bourse-provider" run --dir "$work/lab" >agent-lab.log 2>&1 &
started+=($!)
on_offer() { "$bourse" devices --json >devices.json 2>/dev/null && grep -q '"lab"' devices.json && [ "$(grep -o '"free": *1' devices.json | wc -l)" -eq 2 ]; }
until_true 60 on_offer || fail "not two slots on offer: $(cat devices.json)"

job() { # LINES...: a job file of eight subtasks, a minute each
    printf '%s\n' "name: work" "array: 0-7" "expect: 1m" "budget: 5" "run: [sleep, '3600']" "$@" >job.yaml
}
leases() { "$bourse" ps "$1" --json >ps.json 2>/dev/null && [ "$(grep -o '"lease":' ps.json | wc -l)" -eq "$2" ]; }
ended_by_cancel() { "$bourse" ps "$1" --json | grep -q '"state":"cancelled"'; }

# Eight minutes on the cheap slot alone, four on both.
job 'objective: price'
expect 0 'about 0.013.* credits in 8m' "$bourse" quote job.yaml
expect 0 'at most 1 of 2 slots at a time, for the price' "$bourse" quote job.yaml
expect 0 '"at_most": ?1, ?"of": ?2' "$bourse" quote job.yaml --json
job 'objective: time'
expect 0 'credits in 4m' "$bourse" quote job.yaml
job 'objective: price' 'deadline: 5m'
expect 0 'at most 2 of 2 slots at a time, for the price' "$bourse" quote job.yaml
expect 0 'takes 4m and keeps the deadline' "$bourse" quote job.yaml
job 'objective: price' 'deadline: 10m'
expect 0 'at most 1 of 2 slots at a time' "$bourse" quote job.yaml
job 'objective: price' 'deadline: 2m'
expect 5 'takes 4m and misses the deadline' "$bourse" submit job.yaml -y
expect 0 'at most 1 of 2 slots' "$bourse" run -y --objective price --array 1-8 --budget 1 -- true
# The choice is no at_most of the file. A higher cap gets a choice of its own.
job 'objective: price' 'cap: 0.20' 'deadline: 5m'
expect 5 'takes 8m and misses the deadline.*; with a cap of 0[.]50* credits it takes 4m' "$bourse" submit job.yaml -y
grep -q at_most err && fail "an at_most that the file does not have: $(cat err)"
job 'objective: price' 'at_most: 1' 'deadline: 5m'
expect 5 'takes 8m and misses the deadline.*; without at_most it takes 4m' "$bourse" submit job.yaml -y
expect 0 'the power of all 2 slots is unknown, so the plan is for the time' "$bourse" run -y --objective energy --array 1-2 --budget 1 -- true
expect 2 "'speed' is none of time, price and energy" "$bourse" run -y --objective speed -- true

printf '%s\n' 'objective: price' 'array: 1-1100000' 'budget: 5' 'run: ["true"]' >large.yaml
expect 2 'at most 1048576 subtasks, and this job has 1100000' "$bourse" quote large.yaml

# What is planned is what is bought: one lease at the cheap price, whatever else is free.
for way in 'price 9' 'price 5' 'time 9'; do
    read -r objective minutes <<<"$way"
    chosen=$([ "$way" = 'price 9' ] && echo 1 || echo 2)
    job "objective: $objective" "deadline: ${minutes}m"
    expect 0 '' "$bourse" submit job.yaml -y --quiet
    id=$(cat out)
    until_true 60 leases "$id" "$chosen" || fail "not $chosen leases: $(cat ps.json)"
    "$bourse" order list --json >orders.json || fail "order list"
    grep -q '"price_micro":100000' ps.json || fail "the cheap slot is not leased: $(cat ps.json)"
    [ "$chosen" -eq 2 ] || ! grep -q '"price_micro":500000' ps.json || fail "the dear slot is leased: $(cat ps.json)"
    expect 0 '' "$bourse" cancel "$id"
    until_true 60 ended_by_cancel "$id" || fail "the job does not end"
    until_true 60 on_offer || fail "the slots do not come back"
done

# The report has the plan of the choice, not the plan on all slots.
printf '%s\n' 'objective: price' 'array: 0-3' 'expect: 2s' 'budget: 5' "run: [sleep, '0.01']" >done.yaml
expect 0 '' "$bourse" submit done.yaml -y --quiet --wait
"$bourse" report "$(cat out)" --json >report.json || fail "report"
grep -q '"lanes": *1, *"measured_lanes"' report.json || fail "not one planned lane: $(cat report.json)"
grep -q '"makespan_ns": *8000000000, *"measured_makespan_ns"' report.json || fail "not eight planned seconds: $(cat report.json)"
grep -q '"lower_bound_ns": *8000000000' report.json || fail "a bound below the chosen slots: $(cat report.json)"
market_audit
echo "the price decides how many slots are bought"
