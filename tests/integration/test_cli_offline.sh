#!/usr/bin/env bash
# The command line without a broker: usage, exit statuses, JSON errors, settings, and receipts that are refused.
set -euo pipefail
bourse=$(realpath "$1")/bourse
work=$(mktemp -d "${TMPDIR:-/tmp}/bourse cli.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state
unset BOURSE_MARKET BOURSE_KEY BOURSE_TIMEOUT BOURSE_COLOR NO_COLOR

fail() { echo "FAILED: $*" >&2; exit 1; }

# shellcheck source=tests/support/expect.sh
. "$(dirname "$(realpath "$0")")/../support/expect.sh"
# shellcheck source=tests/support/parts.sh
. "$(dirname "$(realpath "$0")")/../support/parts.sh"

# Usage.
expect 2 'usage: bourse COMMAND' "$bourse"
expect 0 '^jobs:' "$bourse" help
expect 0 'usage: bourse submit' "$bourse" submit --help
expect 0 '^bourse [0-9]' "$bourse" --version
expect 2 'did you mean `bourse submit`' "$bourse" sumbit
expect 2 'did you mean `bourse submit`' "$bourse" help sumbit
expect 2 'did you mean --json' "$bourse" ps --jsno
expect 2 "has no option '-z'" "$bourse" ps -z
for option in output lines file image; do
    expect 2 "--$option is empty; it needs [A-Z]+" "$bourse" run -y "--$option" '' -- true
done
expect 2 'output is empty; it needs DIR' "$bourse" fetch last -o ''
expect 2 'run --yes takes no value' "$bourse" run --yes=no -- true
expect 2 'at-most: 0 is outside 1 to' "$bourse" run -y --at-most 0 -- true
expect 2 'needs FILE' "$bourse" submit
expect 2 'one word too many' "$bourse" ps a b
expect 2 'needs a value' "$bourse" run --budget
expect 2 'budget' "$bourse" run -y --budget 1e5 -- true
expect 2 'has no unit' "$bourse" run -y --limit 10 -- true
expect 2 'argument 2 of the command has the control character 0x1b as byte 3; .*printf .\\033' \
    "$bourse" run -y -- echo fine $'ab\e[1m'
expect 2 'argument 1 has byte 2, 0xff, which is not UTF-8' "$bourse" run -y -- echo $'a\xff'
expect 2 '^bourse: --out: "../x"' "$bourse" run -y --out ../x -- true # the option that was written, not a key of job files
expect 2 '^bourse: --limit: ' "$bourse" run -y --limit 1000d -- true
expect 2 '^bourse: --image: nothere.tar: No such file' "$bourse" run -y --image nothere.tar -- true
expect 2 'one of --each' "$bourse" run -y --array 1-2 --lines x -- true
expect 2 'one word too many for balance$' "$bourse" balance now
expect 2 'goes to a file and not' "$bourse" run matmul A.npy B.npy -o -
expect 2 'admin has no' "$bourse" admin mnit
expect 2 "'-12.5' is below zero; admin takes no such number" "$bourse" admin mint ann -12.5

# Every command has help, and says so on stdout.
names=$("$bourse" help --json | grep -oE '"name":"[a-z]+","arguments"' | cut -d'"' -f4)
[ "$(echo "$names" | wc -l)" -ge 20 ] || fail "help --json lists only: $names"
for name in $names; do
    expect 0 "usage: bourse $name" "$bourse" "$name" --help
    [ ! -s err ] || fail "$name --help wrote to stderr"
done

# No line of help is too long for a terminal, of all four programs.
bin=$(dirname "$bourse")
narrow() { # PROGRAM WORD...
    expect 0 '' "$@"
    ! grep -nE '^.{101}' out err || fail "${*##*/} has such a line"
}
narrow "$bourse" help
for name in $names; do
    narrow "$bourse" "$name" --help
done
# The help of a command is its own, and ends with two examples.
page() { # PROGRAM COMMAND
    narrow "$1" "$2" --help
    head -1 out | grep -qE "^${1##*/} \[?$2\]?( |\$)" || fail "${1##*/} $2 --help has another page: $(head -1 out)"
    [ "$(tail -3 out | sed -n 1p)" = examples: ] || fail "${1##*/} $2 --help has no two examples"
}
if [ -x "$bin/bourse-broker" ]; then
    narrow "$bin/bourse-broker" --help
    for name in run audit acts replay backup restore new completion version; do
        page "$bin/bourse-broker" "$name"
    done
    expect 2 "no completion for 'tcsh'; there is one for bash, zsh and fish\$" "$bin/bourse-broker" completion tcsh
fi
if [ -x "$bin/bourse-audit" ]; then
    narrow "$bin/bourse-audit" help
    expect 0 '^bourse-audit [0-9]' "$bin/bourse-audit" version
    expect 3 '^bourse-audit: .*nowhere' "$bin/bourse-audit" nowhere
fi
if [ -x "$bin/bourse-provider" ]; then
    narrow "$bin/bourse-provider" help
    for name in $("$bin/bourse-provider" help | grep -oE '^  bourse-provider [a-z]+' | cut -d' ' -f4 | sort -u); do
        page "$bin/bourse-provider" "$name"
    done
fi

# No broker, and errors as JSON: one value on stdout, nothing on stderr.
expect 6 'market.yaml.*bourse join' "$bourse" ps
# A market that somebody names and whose folder is not there is a mistake, wherever it is named; one whose broker took its file away
# cannot be reached.
for command in 'ps' 'key --log' 'balance'; do
    # shellcheck disable=SC2086
    expect 2 'nowhere/market.yaml .option --market.: No such file or directory; name the folder' "$bourse" $command -m "$PWD/nowhere"
    expect 2 'nowhere/m.yaml .environment BOURSE_MARKET' env BOURSE_MARKET="$PWD/nowhere/m.yaml" "$bourse" $command
    expect 6 'market.yaml' "$bourse" $command -m "$PWD"
done
printf 'control: 3\n' >other.yaml
chmod 600 other.yaml
expect 2 'other.yaml' "$bourse" ps --market "$PWD/other.yaml"
expect 2 'other.yaml' "$bourse" key --log --market "$PWD/other.yaml"
expect 2 'stands before the command' "$bourse" -m "$PWD" ps
if is_root private-folder && id bourse >/dev/null 2>&1; then
    mkdir -m 700 private
    expect 2 'may not pass' env XDG_STATE_HOME="$PWD/private" "$bourse" up
    [ -z "$(ls private)" ] || fail "a folder that is refused holds $(ls private)"
fi
expect 6 '"version":1' "$bourse" ps --json
grep -q '"name":"UNREACHABLE"' out || fail "no name in $(cat out)"
! grep -q '"code"' out || fail "a number of the broker's for what it never said: $(cat out)"
[ ! -s err ] || fail "--json wrote to stderr: $(cat err)"
expect 2 '"name":"USAGE"' "$bourse" ps --jsno --json
expect 3 'no market' bash -c "mkdir -m 700 -p '$work/empty' && '$bourse' down --dir '$work/empty'"

# The catalogue, and estimates over it: no market is asked.
expect 0 '^nvidia-h100-sxm5 +gpu +33.5 +66.9 ' "$bourse" devices --catalogue
expect 0 '^power +275 W +declared, unverified$' "$bourse" devices --catalogue groq-lpu-v1
grep -qE '^fp32 +- +unknown$' out || fail "a blank is no unknown figure: $(cat out)"
grep -q '^sources: ' out || fail "no sources: $(cat out)"
expect 0 '"bf16_ops":\{"value":459000000000000.0,"source":"declared","verified":true\}' \
    "$bourse" devices --catalogue google-tpu-v5p --json
grep -q '"power_w":{"value":null,"source":"unknown"}' out || fail "an unknown figure in JSON: $(cat out)"
[ "$("$bourse" devices --catalogue --quiet | sort -u | wc -l)" -eq 43 ] || fail "not 43 devices"
expect 3 'is several: nvidia-h100-sxm5, nvidia-h100-pcie' "$bourse" devices --catalogue nvidia-h100
expect 3 'did you mean "nvidia-h100-sxm5"' "$bourse" devices --catalogue nvidia-h100-sxm
expect 0 '^nvidia-h100-sxm5 +139 us +0.09[0-9]* J +compute$' "$bourse" devices --estimate matmul:4096x4096x4096:bf16
grep -qE '^google-edge-tpu +- +- +no bf16 rate of google-edge-tpu' out || fail "what cannot be is not said: $(cat out)"
expect 5 '"feasible":false.*0.23 GB of memory' \
    "$bourse" devices --estimate matmul:8192x8192x8192:fp16 groq-lpu-v1 --json
expect 3 'no device "vm" in the catalogue.*plan TEMPLATE --devices market' "$bourse" devices --estimate matmul:8x8x8:fp32 vm
expect 2 'DIMENSION: matmul: m is 0; it may be 1 to 1099511627776' "$bourse" devices --estimate matmul:0x1x1:fp32
expect 2 'SHAPE: the shape is MxNxK' "$bourse" devices --estimate matmul:1x1:fp32
expect 2 'the type is one of' "$bourse" devices --estimate matmul:1x1x1:fp31
expect 2 'UNKNOWN: there is no such operation; did you mean "matmul"' "$bourse" devices --estimate matml:1x1x1:fp32
expect 0 '^attention:1x32x1x4096x128,kv=8:bf16: 6.71089e\+07 operations; reads 16.79 MB, writes 0.008192 MB, takes 16.79 MB$' \
    "$bourse" devices --estimate attention:1x32x1x4096x128,kv=8:bf16
grep -qE '^nvidia-h100-sxm5 +5.01 us +0.0035[0-9]* J +bandwidth$' out || fail "decoding is not bound by bandwidth: $(cat out)"
expect 0 '"operation":\{"text":"all-reduce:1000x4:fp32".*"link_bytes":12000,' "$bourse" devices --estimate all-reduce:1000x4:fp32 nvidia-h100-sxm5 --json
expect 5 '"refused":"NO_RATE","reason":"how fast amd-epyc-9654 looks up' "$bourse" devices --estimate tokenise:1000 amd-epyc-9654 --json
expect 5 'how fast amd-epyc-9654 reaches storage is not known' "$bourse" devices --estimate load:10x1000 amd-epyc-9654
expect 0 '^nvidia-h100-sxm5 .*compute$' "$bourse" devices --estimate matmul:8192x8192x8192,sparse:bf16
grep -qE '^google-tpu-v5p .*compute, as dense$' out || fail "no word of a missing sparse mode: $(cat out)"
expect 0 '^matmul +matrix +MxNxK\[,batch=1\]\[,sparse\] +fp64 fp32 tf32 fp16 bf16 fp8 int8 int4$' "$bourse" devices --operations
expect 0 '"name":"tokenise","class":"look-up","shape":"BYTES\[,piece=6\]\[,per-token=4\]","types":\[\]' "$bourse" devices --operations --json
[ "$("$bourse" devices --operations --quiet | sort -u | wc -l)" -eq 37 ] || fail "not 37 operations"
expect 2 'it stands alone' "$bourse" devices --operations --catalogue

# Measured times: launch 5 us and 80 % of the peak of 989.4 T; 137,438,953,472 operations are 173.6 us, and 5.
printf '%s\n' '# operation time' 'matmul:2048x4096x4096:bf16 91819ns' '  matmul:4096x4096x8192:bf16 352279ns ' '' \
    'matmul:8192x8192x8192:bf16 1394116ns' >samples
expect 0 '^nvidia-h100-sxm5 +139 us +179 us +179 us +0.125[0-9]* J +compute$' \
    "$bourse" devices --estimate matmul:4096x4096x4096:bf16 --samples samples nvidia-h100-sxm5
grep -qE '^By 3 samples of class matrix: 80 % of the peak, 100 % of the bandwidth, and (4.9[0-9]|5|5.0[0-9]) us before it begins.$' out || fail "the calibration: $(cat out)"
expect 0 '"time_s":\{"value":0.000178[0-9]*,"source":"calibrated"\},"p90_s":0.00017[0-9]*,"samples":3,' \
    "$bourse" devices --estimate matmul:4096x4096x4096:bf16 --samples samples nvidia-h100-sxm5 --json
# Four of the same weigh as much as the model; and they calibrate it, too.
printf '%s\n' matmul:4096x4096x4096:bf16\ 27{8,9,7,6}us >>samples
expect 0 '"source":"measured"\},"p90_s":[0-9.e-]*,"samples":4,' \
    "$bourse" devices --estimate matmul:4096x4096x4096:bf16 --samples samples nvidia-h100-sxm5 --json
expect 2 'samples: 0 samples of class move; 3 are needed' "$bourse" devices --estimate copy:9:fp32 --samples samples nvidia-h100-sxm5
# What a plan rests on: the very operation was measured, or its class was, or neither.
on_h100=("$bourse" plan matmul --set dtype=bf16 --devices h100)
expect 0 '^multiply +h100-sxm5 .* measured \(4\)$' "${on_h100[@]}" --samples h100=samples
expect 0 '^multiply +h100-sxm5 .* calibrated$' "${on_h100[@]}" --set n=3000 --samples h100=samples
expect 0 '"source":"calibrated","verified":true,"samples":0' "${on_h100[@]}" --set n=3000 --samples h100=samples --json
expect 0 '^multiply +h100-sxm5 .* declared$' "${on_h100[@]}"
# The same in a plan file, beside which the samples lie; what the command line says comes before it.
mkdir -p kept
cp samples kept/measured.txt
printf '%s\n' 'template: matmul' 'set: {dtype: bf16}' 'devices: h100' 'samples: {h100: measured.txt}' >kept/plan.yaml
expect 0 '^multiply +h100-sxm5 .* measured \(4\)$' "$bourse" plan --file kept/plan.yaml
cd kept && expect 0 '^multiply +h100-sxm5 .* measured \(4\)$' "$bourse" plan --file plan.yaml && cd ..
expect 2 'none.txt' "$bourse" plan --file kept/plan.yaml --samples h100=none.txt
! grep -q '^below bound' out || fail "below the bound: $(cat out)"
# A step that took less than the device needs by its figures is said to; nothing is below the bound that follows.
printf '%s\n' matmul:4096x4096x4096:bf16\ 7{8,9,7,6}us >fast
expect 0 '^below bound  multiply on h100-sxm5 was measured to take less than' "${on_h100[@]}" --samples h100=fast
expect 0 '"below_bound":true' "${on_h100[@]}" --samples h100=fast --json
grep -qE '"gap":[0-9]' out || fail "below its bound: $(cat out)"
expect 0 '"below_bound":false' "${on_h100[@]}" --samples h100=samples --json
expect 2 'h200. is not DEVICE=FILE' "${on_h100[@]}" --samples h200
expect 2 'no nvidia-h200-sxm is among the devices' "${on_h100[@]}" --samples h200=samples
expect 2 'none.txt' "${on_h100[@]}" --samples h100=none.txt
expect 2 'h9000' "${on_h100[@]}" --samples h9000=samples
echo 'matmul:4x4x4:int4 1us' >>samples
expect 2 'samples:10: by its figures the device cannot' "${on_h100[@]}" --samples h100=samples
expect 2 'samples:10: by its figures the device cannot' "$bourse" devices --estimate matmul:9x9x9:bf16 --samples samples nvidia-h100-sxm5
echo 'matmul:4x4x4:bf16 0us' >>samples
expect 2 'samples:11: "0us" is no time above 0' "$bourse" devices --estimate matmul:9x9x9:bf16 --samples samples nvidia-h100-sxm5
echo 'matmul:4x4:bf16 1us' >samples
expect 2 'samples:1: the shape is MxNxK' "$bourse" devices --estimate matmul:9x9x9:bf16 --samples samples nvidia-h100-sxm5
echo 'matmul:4x4x4:bf16' >samples
expect 2 'samples:1: a sample is an operation and its time' "$bourse" devices --estimate matmul:9x9x9:bf16 --samples samples nvidia-h100-sxm5
# The names that plans know.
expect 0 '^nvidia-h100-sxm5 ' "$bourse" devices --estimate matmul:9x9x9:bf16 h100
expect 3 'is several: google-tpu-v' "$bourse" devices --catalogue tpu
# A time finer than what is kept of it is refused, not rounded.
expect 2 "'1.0005s' is finer than the smallest step here, 1ms" "$bourse" down --wait 1.0005s
expect 2 'name it' "$bourse" devices --estimate matmul:9x9x9:bf16 --samples samples
expect 2 'goes with --estimate' "$bourse" devices --samples samples
expect 2 'say --catalogue' "$bourse" devices groq-lpu-v1
expect 2 'does not go with --catalogue' "$bourse" devices --catalogue --needs 'kind = gpu'

# Job files: the line, the name, the nearest key; patterns without a match.
printf 'run: [xz]\nbugdet: 2\n' >job.yaml
expect 2 'job.yaml:2:.*budget' "$bourse" plan job.yaml
printf 'each: "*.none"\nrun: [xz, "{in}"]\n' >job.yaml
expect 2 "'\*.none'" "$bourse" quote --verbose job.yaml
expect 2 'none.yaml' "$bourse" submit none.yaml
printf 'run: [xz]\nverify: adaptive\n' >job.yaml
expect 2 'verify' "$bourse" submit job.yaml

# Settings: each layer covers the one below, and is named.
expect 0 'color +auto +default' "$bourse" config show --origin
mkdir -p config/bourse
echo 'color: never' >config/bourse/config.yaml
expect 0 'color +never +.*/config/bourse/config.yaml' "$bourse" config show --origin
echo 'color: always' >.bourse.yaml
expect 0 'color +always +./.bourse.yaml' "$bourse" config show --origin
expect 0 'color +never +environment BOURSE_COLOR' env BOURSE_COLOR=never "$bourse" config show --origin
expect 0 'option --color' "$bourse" config show --origin --color never
echo 'colour: never' >.bourse.yaml
expect 2 '.bourse.yaml:1:.*color' "$bourse" config show
echo 'color: never' >.bourse.yaml
chmod 666 .bourse.yaml
expect 2 'changed by others' "$bourse" config show
rm .bourse.yaml config/bourse/config.yaml

# Receipts that are none.
key='example/log+8bad0d2f+Aa+ABEiM0RVZneImaq7zN3u/wARIjNEVWZ3iJmqu8zd7v8='
expect 2 'not a verifier key' "$bourse" verify /etc/hostname --key nonsense
expect 2 'not a verifier key' "$bourse" verify /etc/hostname --key "$key"
expect 2 'give --key' "$bourse" verify /etc/hostname
key='example/log+8dd2b483+AddamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea'
expect 7 '0 verified, 1 failed' "$bourse" verify /etc/hostname --key "$key"
expect 3 '1 missing' "$bourse" verify none.receipt --key "$key"
expect 3 '"missing":1' "$bourse" verify none.receipt --key "$key" --json

# A private folder that is not private.
mkdir open && chmod 755 open
expect 2 'chmod 700' "$bourse" down --dir "$work/open"

# An invitation that is none.
expect 2 'invit' "$bourse" join not-an-invitation
echo "the command line without a broker: ok"
