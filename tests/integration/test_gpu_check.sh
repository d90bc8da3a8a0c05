#!/usr/bin/env bash
# scripts/gpu-check on a stand-in for the GPU: its JSON says what it tried and that all was right; on a machine without a GPU it says so in one line
# and ends with 77; a product with one wrong element is found.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
root=$(realpath "$(dirname "$0")/../..")
fire_begin gpu_check "$1" bourse-kernel bourse-kernel-fake-lt
judge=$bin/../bench/gpu
[ -x "$judge" ] || fail "no $judge"

if [ ! -e /dev/nvidiactl ]; then
    status=0
    "$root/scripts/gpu-check" --bin "$bin" >none.txt 2>none.log || status=$?
    [ "$status" -eq 77 ] || fail "without a GPU it ends with $status"
    [ "$(wc -l <none.log)" -eq 1 ] && [ ! -s none.txt ] || fail "it says more than one line: $(cat none.txt none.log)"
    has "$(cat none.log)" 'no GPU that CUDA reaches: this machine has no /dev/nvidiactl'
fi
"$root/scripts/gpu-check" --help >help.txt 2>help.log || fail "--help ends with $?"
has "$(cat help.txt)" 'scripts/gpu-check --stand-in'
[ ! -s help.log ] || fail "--help on stderr: $(cat help.log)"
status=0
"$root/scripts/gpu-check" --size 100 --bin "$bin" >usage.log 2>&1 || status=$?
[ "$status" -eq 2 ] || fail "a size that is no multiple of 64 ends with $status"
has "$(cat usage.log)" '--size 4096'

# ---------------------------------------------------------------- the processor's word
"$judge" make 64 1 a.bin && "$judge" make 64 2 b.bin || fail "make"
head -c 16384 /dev/zero >zeros.bin
"$judge" product a.bin zeros.bin zeros.bin 64 || fail "a product with zeros is refused"
! "$judge" product a.bin b.bin zeros.bin 64 2>judge.log || fail "a wrong product is taken"
cp zeros.bin one.bin
printf '\0\0\x80\x3f' | dd of=one.bin bs=4 seek=327 conv=notrunc status=none # row 5, column 7
! "$judge" product a.bin zeros.bin one.bin 64 2>judge.log || fail "one wrong element is not found"
! "$judge" product a.bin b.bin a.bin 128 2>judge.log || fail "files of another size are taken"

# ---------------------------------------------------------------- all of it
TMPDIR=$work "$root/scripts/gpu-check" --stand-in --size 64 --bin "$bin" >check.json 2>check.log || fail "it is not right: $(cat check.json)"
[ "$(wc -l <check.json)" -eq 1 ] || fail "more than one line: $(cat check.json)"
for part in '"good":true,"wrong":[],"stand_in":true,"device":"NVIDIA Fake F100","target":"sm_90"' '"kernel":{"right":true}' \
    '"matmul":{"n":64,"tensor":{"right":true,"seconds":' '"library":"cuBLASLt 13.1.0","subtasks":{"fp32":{"right":true,"subtask_s":' \
    '"tf32":{"right":true,"subtask_s":' '"bf16":{"right":true,"subtask_s":' '"fp32":{"right":true,"subtask_s":' '"killed":{"told":true,"next_right":true}' '"lost":{"right":true}' '"celsius":44'; do
    has "$(cat check.json)" "$part"
done
! pgrep -f "$work/bourse-gpu-check" >/dev/null || fail "it leaves processes: $(pgrep -af "$work/bourse-gpu-check")"
[ -z "$(find . -maxdepth 1 -name 'bourse-gpu-check*')" ] || fail "it leaves its folder"
echo "gpu-check: right on a stand-in, and 77 without a GPU"
