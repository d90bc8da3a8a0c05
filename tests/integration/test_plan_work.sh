#!/usr/bin/env bash
# Work of a template on devices of the catalogue: what people and programs are shown, plan files, and every refusal by name.
set -euo pipefail
bourse=$(realpath "$1")/bourse
golden=$(realpath "$(dirname "$0")/../golden/plans")
work=$(mktemp -d "${TMPDIR:-/tmp}/bourse plan.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }

# shellcheck source=tests/support/expect.sh
. "$(dirname "$(realpath "$0")")/../support/expect.sh"
cd "$work"
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state LC_ALL=C
unset BOURSE_MARKET BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR NO_COLOR

# Devices of one unified memory are each counted as if they had it alone, and the plan says so where more than one is used.
expect 0 '^one memory   hexagon-8g3 1 and 1 more share one memory' "$bourse" plan matmul --set m=2097152 --set n=64 --set k=64 \
    --set dtype=int8 --devices hexagon-8g3:2
"$bourse" plan matmul --set dtype=int8 --devices hexagon-8g3 | grep -q '^one memory' && fail "one device shares its memory with nobody"

# What there is.
"$bourse" plan --templates --quiet >names || fail "templates"
grep -qx llm names || fail "$(cat names)"
while read -r name; do
    expect 0 '^PARAMETER +USUAL' "$bourse" plan --templates "$name"
    "$bourse" plan --templates "$name" --json | grep -q "\"templates\":\[{\"name\":\"$name\"" || fail "$name as JSON"
done <names
expect 2 'no template "lmm"' "$bourse" plan --templates lmm

# Byte for byte, as text and as a picture; the same each time.
for file in "$golden"/*.yaml; do
    name=$(basename "$file" .yaml)
    "$bourse" plan --file "$file" --width 100 --svg "$name.svg" >"$name.txt" || fail "$name"
    diff "$golden/$name.txt" "$name.txt" || fail "not what tests/golden/plans/$name.txt holds"
    diff "$golden/$name.svg" "$name.svg" || fail "not what tests/golden/plans/$name.svg holds"
    "$bourse" plan --file "$file" --json >"$name.json" || fail "$name as JSON"
    [ "$(wc -l <"$name.json")" -eq 1 ] || fail "$name: more than one value"
done

# A plan of two alike devices without a fabric divides the batch; the file and the command line say the same.
cat >two.yaml <<END
template: llm
set: {model: llama-2-7b, batch: 64}
devices: h200:2@3.80
fabric: none
END
"$bourse" plan --file two.yaml --json >a.json
"$bourse" plan llm --set batch=64 --set model=llama-2-7b --devices h200:2@3.80 --fabric none --json >b.json
cmp a.json b.json || fail "the file and the command line differ"
grep -q '"form":"split"' a.json || fail "$(cat a.json)"
[ "$(grep -o '"device":"h200-sxm [12]","steps"' a.json | wc -l)" -eq 2 ] || fail "$(cat a.json)"
"$bourse" plan --file two.yaml --set batch=1 --json | grep -q '"form":"single"' || fail "the command line does not come before the file"
"$bourse" plan --file two.yaml --devices b200@6.25 --json | grep -q '"hour_micro":6250000' || fail "devices of the command line"
"$bourse" plan --file two.yaml --quiet | grep -qE '^[0-9.e-]+$' || fail "--quiet"

# With one it divides the layers: both are rows, leased alike, and each names the other.
"$bourse" plan --file two.yaml --fabric 450GB/s,2us --json >c.json
grep -q '"found_by":"layers divided over 2 devices"' c.json || fail "$(cat c.json)"
[ "$(grep -o '"group":\["h200-sxm 1","h200-sxm 2"\]' c.json | wc -l)" -eq 2 ] || fail "$(cat c.json)"
[ "$(grep -oE '"rows":1,' c.json | wc -l)" -eq 2 ] || fail "$(cat c.json)"
grep -q '"group":null' a.json || fail "$(cat a.json)"
expect 0 'layers divided over devices .* no 2 alike devices are in one machine with a fabric' "$bourse" plan --file two.yaml
expect 0 'layers divided over devices .* heads, 25, is no multiple of 2 devices' "$bourse" plan llm --set model=gpt-2-xl --devices h100:2

# What goes between devices that share a batch counts.
train="train --set model=gpt-2-xl --set sequence=1024 --set tokenised=yes --set checkpoint=0 --set batch=64 --storage 7GB/s"
# shellcheck disable=SC2086
for network in 10Mbit/s 10Tbit/s; do "$bourse" plan $train --devices b200,b200 --network "$network" --json >"train-${network%%bit*}.json" || fail "$network"; done
grep -q '"split":{"status":"OK","makespan_s":2488\.' train-10M.json || fail "3.1 GB over 1.25 MB/s: $(cat train-10M.json)"
grep -q '"form":"pipeline"' train-10T.json || fail "stages of layers: $(cat train-10T.json)"
grep -q '"step":"embed, layers 1-2[0-9]"' train-10T.json || fail "stages by their layers: $(cat train-10T.json)"
# shellcheck disable=SC2086
"$bourse" plan $train --set layers=2 --set batch=512 --devices b200,b200 --network 10Tbit/s >split.txt || fail "split"
# shellcheck disable=SC2086
"$bourse" plan $train --set layers=2 --set batch=512 --devices b200,b200 --network 10Tbit/s --json >split.json || fail "split"
grep -q '"form":"split"' split.json || fail "$(cat split.json)"
grep -qE '"transfers":\[\{"from"' split.json || fail "no transfers: $(cat split.json)"
grep -q '^sums  *after all that is computed' split.txt || fail "$(cat split.txt)"
# shellcheck disable=SC2086
expect 0 '^split .* no link leads from b200-hgx 1 to b200-hgx 2' "$bourse" plan $train --set batch=16 --devices b200,b200 --network none
expect 0 '^split .*, with all transfers, does not end 5 % sooner' "$bourse" plan matmul --set m=5 --set n=5 --set k=5 --devices h100:2+l4
expect 0 '^all of 360 ' "$bourse" plan matmul --set m=1000 --set n=100000 --set k=100000 --devices h100:3

# Who waits is drawn as waiting: the timeline says what the table does.
# shellcheck disable=SC2086
"$bourse" plan $train --devices b200,b200 --network 100Gbit/s --svg waits.svg >waits.txt || fail "waits"
grep -q '^ *_ waits for others or for a link$' waits.txt || fail "$(cat waits.txt)"
[ "$(awk '$1 == "b200-hgx" && $3 == 1 {print $4}' waits.txt)" = "$(awk '$1 == "b200-hgx" && /[#_]%?/ && NF < 6 {print $NF}' waits.txt)" ] || fail "$(cat waits.txt)"
grep -q '<title>waits, ' waits.svg || fail "waits.svg"

# The gap is that of the plan that is shown, also where looking for slack made it shorter.
expect 0 '"found_by":"slack"' "$bourse" plan train --set model=llama-3-8b --set sequence=1024 --set stages=4 --set tokenised=yes --set checkpoint=100 --storage 7GB/s --devices b200-hgx@1.23,h200@4.95,h200@4.24 --json
figure() { grep -oE "\"$1\":[0-9.e-]+" out | head -n 1 | cut -d: -f2; }
awk -v t="$(figure makespan_s)" -v b="$(figure lower_bound)" -v g="$(figure gap)" 'BEGIN {d = t / b - 1 - g; exit !(d < 1e-6 && d > -1e-6)}' || fail "gap: $(cat out)"

# What is not known is never fast: it is not chosen, or refused by the figure that is missing, until somebody says it.
expect 0 '^multiply +h100-sxm5 ' "$bourse" plan matmul --set m=1 --set dtype=bf16 --devices h100,ascend-910b
expect 0 '^not known +the bandwidth of ascend-910b,' "$bourse" plan matmul --set m=1 --set dtype=bf16 --devices h100,ascend-910b
expect 0 '"lacks":"bandwidth"' "$bourse" plan matmul --set m=1 --set dtype=bf16 --devices h100,ascend-910b --json
expect 5 '^bourse: PLAN_UNKNOWN_FIGURE: .*ascend-910b: its bandwidth is not known; --figure ascend-910b=bandwidth=RATE says it' "$bourse" plan matmul --set m=1 --set dtype=bf16 --devices ascend-910b
expect 5 '^bourse: PLAN_UNKNOWN_FIGURE: .*m3max-ane: its memory is not known' "$bourse" plan matmul --set m=4096 --set n=1000000 --set k=1000000 --set dtype=int8 --devices m3max-ane,b200-hgx
expect 5 '^bourse: PLAN_UNKNOWN_FIGURE: ' "$bourse" plan llm --set dtype=fp32 --set model=llama-3-70b --devices graviton4
expect 0 '27.98 +- +- +- +declared[?]' "$bourse" plan matmul --set m=1 --set dtype=bf16 --devices ascend-910b --figure ascend-910b=bandwidth=1.2TB/s
expect 0 '^said +ascend-910b: bandwidth 1.2TB/s' "$bourse" plan matmul --set m=1 --set dtype=bf16 --devices ascend-910b --figure ascend-910b=bandwidth=1.2TB/s
expect 0 '"figures":\[\{"device":"h100","figure":"bf16","value":10000000000000000\}\]' "$bourse" plan matmul --set dtype=bf16 --devices h100 --figure h100=bf16=10PFLOPS --json
printf 'template: matmul\nset: {m: 1, dtype: bf16}\ndevices: ascend-910b\nfigures: {ascend-910b: {bandwidth: 1.2TB/s}}\n' >figure.yaml
expect 0 '27.98 +- +- +- +declared[?]' "$bourse" plan --file figure.yaml
expect 0 'declared, fp32 unknown' "$bourse" plan llm --devices tpu-v5p
expect 2 'a figure is DEVICE=NAME=VALUE' "$bourse" plan llm --devices l4 --figure l4=memory
expect 2 'no such device is among those of the plan' "$bourse" plan llm --devices l4 --figure h100=memory=80GB

expect 2 '^bourse: --figure: "1TB" is no bandwidth: write a rate by the second' "$bourse" plan llm --devices l4 --figure l4=bandwidth=1TB
expect 2 '^bourse: --peer: "30GB" is no link: .* by the second, 1B/s at least' "$bourse" plan llm --devices l4:2 --peer 30GB
# What a file says is blamed on its line.
for line in 'figures: {h100: {memory: 80GB}}' 'place: {decode: h100}' 'interruptible: {h100: 1/h}'; do
    printf 'template: llm\ndevices: l4\n%s\n' "$line" >blamed.yaml
    expect 2 "^bourse: blamed.yaml:3: ${line%%:*} .*h100" "$bourse" plan --file blamed.yaml
done

# Ways: a fabric only where there is one; PCIe from device to device where that is said; else through the machine's memory.
apart=(plan llm --set batch=2 --place "prefill 1=rtx4090 1" --place "decode=rtx4090 2" --devices rtx4090:2 --json)
expect 0 '"bytes":268[0-9.]*,"by":"host"' "$bourse" "${apart[@]}"
expect 0 '"bytes":268[0-9.]*,"by":"peer"' "$bourse" "${apart[@]}" --peer 31.5GB/s
expect 0 '"bytes":268[0-9.]*,"by":"fabric"' "$bourse" plan llm --set batch=2 --place "prefill 1=h100-sxm5 1" --place "decode=h100-sxm5 2" --devices h100:2 --json
expect 0 'NVLink' "$bourse" devices --catalogue nvidia-h100-sxm5
expect 0 '; peer 31.5 GB/s, 5 us; fabric' "$bourse" plan llm --devices rtx4090:2 --peer 31.5GB/s
expect 0 '; fabric none; network' "$bourse" plan llm --devices h100:2 --fabric none
# A form that is refused has no time, whatever it would have taken elsewhere.
expect 0 '"single":[{]"status":"NO_ROOM","makespan_s":null,"p90_s":null,"energy_j":null,"price_micro":null,' "$bourse" plan rag --set batch=32 --devices l4:2@1.61 --json
expect 0 '"peer":null,"fabric":null,' "$bourse" plan llm --devices h100:2 --fabric none --json
# Work without layers has no pipeline, and the reason is said.
expect 0 '^pipeline .* this work has no layers to make stages of' "$bourse" plan diffusion --set batch=16 --devices h100:2
expect 0 '"best_single":[{]"device":"h100-sxm5 1","makespan_s":1.17' "$bourse" plan llm --devices h100:2 --json

# Batches that do not fit at once: one part after the other, on one device or on several.
expect 0 '^all of 1000, in 2 parts +l4 ' "$bourse" plan video --set streams=1000 --devices l4
expect 0 '^makespan +4.708 s, single found by single' "$bourse" plan video --set streams=1000 --devices l4
expect 0 '^best single +14.12 s on l4 1: 2.00 times' "$bourse" plan video --set streams=3000 --devices l4:2
expect 0 '"form":"split"' "$bourse" plan video --set streams=3000 --devices l4:2 --json
expect 0 '"parts":[3-9]' "$bourse" plan video --set streams=3000 --devices l4:2 --json

# Prices, limits and links.
expect 0 '^price +[0-9.]+ credits$' "$bourse" plan --file two.yaml --objective price
expect 0 '^price +-: not known' "$bourse" plan llm --devices h200
expect 5 '^bourse: PLAN_NO_PRICE: ' "$bourse" plan llm --devices h200 --objective price
expect 5 '^bourse: PLAN_DEADLINE: .*0.001 s' "$bourse" plan llm --devices h200 --deadline 1ms
# A deadline is what it says, to the nanosecond, from wherever it comes; a shorter one than the plan's time is shown as it is.
segment="video --set model=resnet-152 --set streams=5 --set task=segment --devices l40s"
# shellcheck disable=SC2086
takes=$("$bourse" plan $segment --quiet) || fail "segment"
within=$(awk -v s="$takes" 'BEGIN {printf "%dns", s * 1e9 + 1}')
below=$(awk -v s="$takes" 'BEGIN {printf "%dns", s * 1e9 - 2000}')
# shellcheck disable=SC2086
expect 0 'on 1 device' "$bourse" plan $segment --deadline "$within"
# shellcheck disable=SC2086
expect 5 '^bourse: PLAN_DEADLINE: the deadline is ([0-9.]+) s; the fastest plan found takes [0-9.]+ s,' "$bourse" plan $segment --deadline "$below"
grep -qE 'the deadline is ([0-9.]+) s; the fastest plan found takes \1 s' out && fail "no difference: $(cat out)"
expect 5 '^bourse: PLAN_DEADLINE: the deadline is 5e-07 s' "$bourse" plan llm --devices h200 --deadline 500ns
expect 2 "'0' is less than 1ns" "$bourse" plan llm --devices h200 --deadline 0
# By price within the time that the plan by time takes, it is that plan or a cheaper one, whatever a search within the limit finds.
mixed="train --set model=gpt-2-xl --set batch=16 --set sequence=1024 --set stages=4 --set tokenised=yes --set checkpoint=1 --set optimiser=momentum"
mixed="$mixed --devices graviton4@2.85+l40s:3@5.28,gaudi3@5.38+groq-lpu-v1@5.94 --storage 7GB/s"
# shellcheck disable=SC2086
price_of() { "$bourse" plan $mixed "$@" --json | grep -oE '"energy_j":[0-9.]+,"price_micro":[0-9]+' | head -1 | grep -oE '[0-9]+$'; }
soonest=$(price_of)
within=$(price_of --objective price --deadline 451452333ns)
[ "$within" -le "$soonest" ] || fail "$within by price within the time of one that costs $soonest"
expect 5 '^bourse: PLAN_BUDGET: ' "$bourse" plan llm --devices h200@2.50 --budget 0.000001
expect 5 '"name":"PLAN_BUDGET"' "$bourse" plan llm --devices h200@2.50 --budget 0.000001 --json
expect 5 '^bourse: PLAN_NOWHERE: ' "$bourse" plan llm --devices groq-lpu-v1
expect 0 '^real time +anew every 33.33 ms: kept, ' "$bourse" plan video --devices h200
expect 0 '^real time +anew every 10 us: not kept, ' "$bourse" plan video --devices h200 --set frame-rate=100000
expect 0 'streamed' "$bourse" plan llm --set dtype=fp16 --set model=llama-2-70b --devices h100 --stream --network 10Gbit/s,50us
grep -q 'pcie 31.5 GB/s, 5 us (assumed)' out && grep -q 'network 1.25 GB/s, 50 us$' out || fail "$(cat out)"
expect 2 'needs --worth' "$bourse" plan llm --devices h200@2.50 --objective value
expect 2 'worth needs --objective value' "$bourse" plan llm --devices h200@2.50 --worth 1
expect 0 '^llm: .*; by value on 1 device' "$bourse" plan llm --devices h200@2.50 --objective value --worth 1

# What rows cost is what devices cost, to the micro-credit; a form that does not fit has no time.
"$bourse" plan train --set model=gpt-2-xl --set sequence=1024 --set batch=4 --set checkpoint=0 --devices h100@2.50,l4@0.50 --json >out || fail "plan with prices"
sum_of() { grep -o "\"$1\":\[[^]]*\]" out | grep -oE '"price_micro":[0-9]+' | awk -F: '{sum += $2} END {print sum + 0}'; }
[ "$(sum_of schedule)" -gt 0 ] && [ "$(sum_of schedule)" = "$(sum_of devices)" ] || fail "rows and devices: $(cat out)"

# So it is where a device only does what nobody knows the time of.
"$bourse" plan rag --set model=mistral-7b --set batch=8 --storage 7GB/s --devices b200-hgx@2.31,a100@5.55 --place prompt=a100-sxm4-80 --json >out || fail "a device that does what nobody knows"
grep -q '"device":"a100-sxm4-80","id":"[a-z0-9-]*","machine":1,"hour_micro":5550000,"rows":1,"busy_s":0.0,.*"price_micro":63,' out || fail "it costs nothing: $(cat out)"
[ "$(sum_of schedule)" = "$(sum_of devices)" ] || fail "rows and devices: $(cat out)"

# Devices that may be taken away take what is expected, and say so; of two alike ones the one that stays is better.
expect 0 '^taken away   l4: 2 an hour, 120 s to begin again, a checkpoint of 10 s every 189.7 s; ' "$bourse" plan llm --devices l4@0.80 --interruptible 2/h,2m,10s
"$bourse" plan llm --devices l4@0.80 --quiet >firm && "$bourse" plan llm --devices l4@0.80 --interruptible 100/h --quiet >taken || fail "interruptible"
awk 'NR == FNR {firm = $1; next} $1 > firm * 1.01 {longer = 1} END {exit !longer}' firm taken || fail "no longer: $(cat firm taken)"
expect 0 '"interruptible":\{"per_hour":0.5,"restart_s":0.0,"checkpoint_s":null,"interval_s":null\}' "$bourse" plan llm --devices l4,h100 --interruptible l4=0.5/h --json
expect 0 '^prefill 1 +l4 2 ' "$bourse" plan llm --devices l4:2 --interruptible 'l4 1=50/h'
expect 2 'no such device is among those' "$bourse" plan llm --devices l4 --interruptible h100=1/h
expect 2 'interruptions an hour' "$bourse" plan llm --devices l4 --interruptible soon
expect 2 'whose is it\?' "$bourse" plan llm --devices l4 --interruptible =1/h
expect 2 'l4: said twice' "$bourse" plan llm --devices l4 --interruptible l4=1/h --interruptible l4=2/h
expect 2 'l4=memory: said twice' "$bourse" plan llm --devices l4 --figure l4=memory=24GB --figure l4=memory=48GB

# A bound holds whatever a batch is made in, and what may be taken away is made in parts where that takes less.
"$bourse" plan video --set streams=2000 --devices a100 --interruptible 600/h --json >out || fail "in parts"
grep -q '"parts":500,' out || fail "$(cat out)"
awk -v t="$(figure makespan_s)" -v b="$(figure time_bound_s)" 'BEGIN {exit !(b <= t && t < 1.6)}' || fail "bound: $(cat out)"

# What is said twice, and a job's file where a template is meant.
printf 'template: llm\nset: {batch: 8}\nbatch: 4\ndevices: l4\n' >twice.yaml
expect 2 'batch is said twice' "$bourse" plan --file twice.yaml
sed -i '/^batch/d' twice.yaml
expect 0 'batch 4' "$bourse" plan --file twice.yaml --batch 4
expect 2 'TEMPLATE_UNKNOWN: "twice.yaml" is a file and no template\. .*--file' "$bourse" plan twice.yaml --devices l4
"$bourse" plan llm --devices l4@0.80 --interruptible 0/h --quiet | cmp - firm || fail "taken away never"

# The batch by whatever name a template has for it; what waits, for what and how long.
"$bourse" plan video --devices h200 --batch 3 --json >a.json && "$bourse" plan video --devices h200 --set streams=3 --json >b.json || fail "--batch"
cmp a.json b.json || fail "--batch is not the template's batch"
printf 'template: video\ndevices: h200\nbatch: 3\n' >video.yaml
"$bourse" plan --file video.yaml --json | cmp - a.json || fail "batch: is not --batch"
expect 2 'streams is a whole number' "$bourse" plan video --devices h200 --batch 999999999
# shellcheck disable=SC2086
expect 0 '"waits":\[\{"row":[01],"for":"others","from_s":' "$bourse" plan $train --devices b200,b200 --network 100Gbit/s --json
expect 0 '"waits":\[\]' "$bourse" plan llm --devices h200 --json
expect 2 'not both' "$bourse" plan llm --on-offer --devices h200

# Steps that have to be somewhere.
"$bourse" plan llm --devices h200:2 --place 'decode=h200-sxm 2' --json >out || fail "placed"
grep -q '"step":"decode","device":"h200-sxm 2"' out || fail "$(cat out)"
"$bourse" plan llm --devices h200,h100 --place decode=h100 --json >out || fail "placed as --devices calls it"
grep -q '"step":"decode","device":"h100-sxm5"' out || fail "$(cat out)"
expect 2 'several devices' "$bourse" plan llm --devices h200:2 --place decode=h200
expect 2 'no such step' "$bourse" plan llm --devices h200:2 --place 'decoding=h200-sxm 2'
expect 2 'no such device' "$bourse" plan llm --devices h200:2 --place 'decode=h200-sxm 3'
expect 5 '^bourse: PLAN_PLACEMENT: ' "$bourse" plan llm --devices h200,groq-lpu-v1 --place decode=lpu-v1
expect 0 '^fallen back +1 step' "$bourse" plan llm --devices h200,groq-lpu-v1 --place decode=lpu-v1 --fall-back

# Refusals.
expect 2 '^bourse: TEMPLATE_UNKNOWN: ' "$bourse" plan lmm --devices h200
expect 2 '^bourse: TEMPLATE_VALUE: llm has no parameter' "$bourse" plan llm --devices h200 --set promt=1
expect 2 '^bourse: TEMPLATE_BAD_VALUE: prompt is a whole number' "$bourse" plan llm --devices h200 --set prompt=0
expect 2 '^bourse: TEMPLATE_VALUE: prompt is a whole number' "$bourse" plan llm --devices h200 --set prompt=long
expect 2 '^bourse: TEMPLATE_BAD_VALUE: streams is a whole number' "$bourse" plan video --devices h200 --batch 999999999
expect 2 'dev/null: there is no sample in it' "$bourse" plan llm --devices h200 --samples h200=/dev/null
expect 2 '^bourse: TEMPLATE_CONFLICT: ' "$bourse" plan llm --devices h200 --set heads=7 --set kv=2
expect 2 '^bourse: --set: "batch" has no value; write NAME=VALUE' "$bourse" plan llm --devices h200 --set batch
expect 2 '^bourse: DEVICES_UNKNOWN: .*did you mean' "$bourse" plan llm --devices h20
expect 2 '^bourse: DEVICES_AMBIGUOUS: .*google-tpu-v5e' "$bourse" plan llm --devices tpu
expect 2 '^bourse: DEVICES_TOO_MANY: ' "$bourse" plan llm --devices h200:64
expect 2 'more than 64 devices' "$bourse" plan llm --devices h200:60,l4:5
expect 2 'no device: write' "$bourse" plan llm --devices 'h200;rm'
expect 2 'no link' "$bourse" plan llm --devices h200 --network fast
expect 2 'choose time, price, energy or value' "$bourse" plan llm --devices h200 --objective speed
expect 2 'on which devices' "$bourse" plan llm
expect 2 'not both' "$bourse" plan llm --file two.yaml
sed 's/template/tempalte/' two.yaml >bad.yaml
expect 2 'bad.yaml:1: .*did you mean "template"' "$bourse" plan --file bad.yaml
expect 2 'none.yaml' "$bourse" plan --file none.yaml
expect 2 'for a template' "$bourse" plan job.yaml --objective price
expect 2 'for --dag' "$bourse" plan llm --devices h200 --scheduler heft
expect 2 'is no picture' "$bourse" plan --file two.yaml --svg two.yaml
echo "plans of work: ok"
