#!/usr/bin/env bash
# The energy of attempts, and jobs whose objective is the energy. Three real providers: one says that its device takes little power,
# one that it takes much, and one says nothing. The order asks for the devices that the plan chose, whatever they cost.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
fire_begin energy "$1"

market_up --credits 100 --slots 1 --price 0.10 --programs true,sleep
provider() { # NAME PRICE WATTS
    agent_join "$work/$1" --name "$1" </dev/null
    printf '%s\n' "name: $1" 'slots: 1' "price: $2" 'memory: 128MiB' 'disk: 64MiB' 'programs: ["true", sleep]' "power_w: $3" >"$work/$1/provider.yaml"
    "$bin/bourse-provider" run --dir "$work/$1" >"agent-$1.log" 2>&1 &
    started+=($!)
}
provider lean 0.50 20
provider hungry 0.05 200
on_offer() { "$bourse" devices --json >devices.json 2>/dev/null && [ "$(grep -o '"free": *1' devices.json | wc -l)" -eq 3 ]; }
until_true 60 on_offer || fail "not three slots on offer: $(cat devices.json)"
expect 0 'power_mw +20000 mW +from the config' "$bin/bourse-provider" probe --dir "$work/lean"
grep -q '"name":"power_mw","value":20000' devices.json || fail "the market does not know the power: $(cat devices.json)"

job() { # LINES...: a job file of eight subtasks, a minute each
    printf '%s\n' "name: work" "array: 0-7" "expect: 1m" "budget: 5" "run: [sleep, '3600']" "$@" >job.yaml
}
leases() { "$bourse" ps "$1" --json >ps.json 2>/dev/null && [ "$(grep -o '"lease":' ps.json | wc -l)" -eq "$2" ]; }
ended_by_cancel() { "$bourse" ps "$1" --json | grep -q '"state":"cancelled"'; }

# Eight minutes on the device of 20 W, four with that of 200 W, three with that of unknown power.
job 'objective: energy'
expect 0 'credits in 8m' "$bourse" quote job.yaml
expect 0 'on the 1 of 3 slots that takes least energy, about 9600 J; the power of 1 slot is unknown, so it comes last' "$bourse" quote job.yaml
expect 0 '"name": ?"energy", ?"slots": ?1, ?"of": ?3, ?"unknown": ?1, ?"energy_uj": ?9600000000' "$bourse" quote job.yaml --json
job 'objective: energy' 'deadline: 5m'
expect 0 'on the 2 of 3 slots that take least energy, about 5.28e\+04 J' "$bourse" quote job.yaml
job 'objective: energy' 'deadline: 3m30s'
expect 0 'on the 3 of 3 slots that take least energy; the power of 1 slot is unknown' "$bourse" quote job.yaml
job 'objective: energy' 'deadline: 2m'
expect 5 'takes 3m and misses the deadline' "$bourse" submit job.yaml -y
job 'objective: energy' 'cap: 0.20'
expect 0 'on the 1 of 2 slots that takes least energy, about 9.6e\+04 J' "$bourse" quote job.yaml
job 'objective: energy' 'needs: power_mw >= 30000'
expect 0 'on the 1 of 1 slot that takes least energy' "$bourse" quote job.yaml
expect 0 'on the 1 of 3 slots that takes least energy' "$bourse" run -y --objective energy --budget 1 -- true
expect 2 "'speed' is none of time, price and energy" "$bourse" run -y --objective speed -- true

# What is planned is what is bought: the lean device, though it is the dearest.
job 'objective: energy'
expect 0 '' "$bourse" submit job.yaml -y --quiet
id=$(cat out)
until_true 60 leases "$id" 1 || fail "not one lease: $(cat ps.json)"
grep -q '"price_micro":500000' ps.json || fail "not the lean device: $(cat ps.json)"
expect 0 '' "$bourse" cancel "$id"
until_true 60 ended_by_cancel "$id" || fail "the job does not end"
until_true 60 on_offer || fail "the slot does not come back"
# A job that goes on has the same objective, and may have any device that the first one might have had.
expect 0 '' "$bourse" resume "$id" -y --quiet
id=$(cat out)
until_true 60 leases "$id" 1 || fail "not one lease of the rest: $(cat ps.json)"
grep -q '"price_micro":500000' ps.json || fail "the rest is not on the lean device: $(cat ps.json)"
expect 0 '' "$bourse" cancel "$id"
until_true 60 ended_by_cancel "$id" || fail "the rest does not end"
until_true 60 on_offer || fail "the slot does not come back"

# An attempt without counters has an estimate, which every view calls one. Where counters can be read, it is measured.
printf '%s\n' 'objective: energy' 'budget: 1' 'run: [sleep, "0.5"]' >one.yaml
expect 0 '' "$bourse" submit one.yaml -y --quiet --wait
id=$(cat out)
"$bourse" report "$id" --json >report.json || fail "report"
source=$(sed -n 's/.*"energy_source": *"\([^"]*\)".*/\1/p' report.json)
case $source in
"estimated by its owner's power")
    grep -q '"energy_estimated": *1' report.json || fail "the report counts no estimate: $(cat report.json)"
    took=$(sed -n 's/.*"measured_s": *\([0-9.]*\).*/\1/p' report.json)
    used=$(sed -n 's/.*"energy_j": *\([0-9.]*\), *"energy_source".*/\1/p' report.json)
    awk -v took="$took" -v used="$used" 'BEGIN { exit !(took >= 0.5 && used > 19.99 * took && used < 20.01 * took) }' ||
        fail "not 20 W for $took s: $used J: $(cat report.json)"
    expect 0 '~[1-9][0-9.]* J' "$bourse" report "$id"
    expect 0 'the energy of 1 of 1 attempts is an estimate' "$bourse" report "$id"
    expect 0 '"estimated_uj":[1-9][0-9]{7}[,}]' "$bin/bourse-provider" status --dir "$work/lean" --json
    expect 0 'energy .* 0 J measured, [1-9][0-9.]* J estimated' "$bin/bourse-provider" status --dir "$work/lean" ;;
measured)
    grep -q '"energy_estimated": *0' report.json || fail "the report counts an estimate: $(cat report.json)" ;;
*) fail "the result does not say where its energy comes from: $(cat report.json)" ;;
esac
receipt_there() { "$bourse" receipt "$id" --all -o proofs >receipt.log 2>&1; }
until_true 60 receipt_there || fail "no receipt: $(cat receipt.log)"
expect 0 "ok, isolation 1, [0-9.]+ J $source" "$bourse" verify proofs
expect 0 '"energy_uj": ?[0-9]+, ?"energy_source": ?"'"$source" "$bourse" verify proofs --json

# A device that says no power has no energy, and a job on such devices alone is planned for the time.
printf '%s\n' 'objective: energy' 'needs: not power_mw > 0' 'budget: 1' 'run: [sleep, "0.2"]' >blind.yaml
expect 0 'the power of all 1 slot is unknown, so the plan is for the time' "$bourse" quote blind.yaml
market_audit
echo "the energy of attempts is told, and decides which devices are bought"
