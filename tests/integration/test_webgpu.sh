#!/usr/bin/env bash
# A device of kind webgpu through a whole market: ONNX Runtime's WebGPU provider over SwiftShader, a Vulkan driver that
# computes on processor cores. Results are near those of the cores' device; a node that the provider lacks is computed by
# the processor, and the log says so; providers that cannot be used are not offered, with the reason.
# shellcheck source=tests/support/market.sh
. "$(dirname "$(realpath "$0")")/../support/market.sh"
# shellcheck source=tests/support/onnx_cases.sh
. "$support/onnx_cases.sh"
fire_begin webgpu "$1" bourse-audit onnx-cases
onnx_webgpu
onnx_begin
onnx_lab
log=$(cat agent-lab.log)
has "$log" 'WebGpuExecutionProvider'
has "$log" 'the device "web" computes ONNX models by onnxruntime-1.'
"$bourse" devices --needs 'kind = webgpu' --json >devices.json
has "$(cat devices.json)" '"instrument":"webgpu.onnxruntime.webgpu"'
has "$(cat devices.json)" '{"name":"backend","value":"webgpu"}'
[ "$(grep -o '"instrument":"webgpu' devices.json | wc -l)" -eq 1 ] || fail "other devices are offered, too: $(cat devices.json)"

# A provider without a driver, and a library that is no plug-in, are told with the reason.
refused() { # WORD WHAT DEVICE: the machine does not offer it
    printf '%s\n' 'slots: 1' "onnx: {library: $BOURSE_ONNXRUNTIME}" 'devices:' "  - $3" >refused.yaml
    mkdir -p -m 700 looked
    "$bin/bourse-provider" probe --config refused.yaml --dir "$work/looked" >probe.txt 2>&1 || fail "probe: $(cat probe.txt)"
    has "$(cat probe.txt)" "$1: not offered: "
    grep -q "$1: not offered: .*$2" probe.txt || fail "no reason: $(cat probe.txt)"
}
refused driverless 'WebGPU adapter' '{onnx: WebGPU, name: driverless, memory: 256MiB, environment: {VK_DRIVER_FILES: /nonexistent.json}}'
refused absent 'libm' "{onnx: XNNPACK, name: absent, memory: 256MiB, library: /usr/lib/$(uname -m)-linux-gnu/libm.so.6}"

# ---------------------------------------------------------------- ONNX's own cases
sample=(node/test_add_bcast node/test_conv_with_strides_padding node/test_gemm_all_attributes node/test_softmax_axis_1
    node/test_maxpool_2d_default node/test_matmul_3d pytorch-converted/test_Conv2d node/test_nonzero_example)
for name in "${sample[@]}"; do
    onnx_case "$onnx_data/$name" || fail "$name: $case_reason"
done
[ "$case_same" -eq "${#sample[@]}" ] || fail "only $case_same of ${#sample[@]} cases ran, $case_refused refused"
[ "$case_other" -eq 0 ] || fail "$case_other cases are not as stated: $case_reason"

# The last case has a node that WebGPU lacks.
"$bourse" logs last --stderr >share.txt 2>/dev/null || true
has "$(cat share.txt)" 'WebGPU does not compute 1 node of the model: the processor does, for NonZero'

# ---------------------------------------------------------------- near the processor's result
mkdir conv
"$bin/onnx-cases" prepare "$onnx_data/pytorch-converted/test_Conv2d" "$work/conv" >prepare.log || fail "prepare: $(cat prepare.log)"
onnx_words "$work/conv"
run_on() { # KIND FOLDER
    (cd "$work/conv" && timeout 240 "$bourse" run -y -q model.onnx "${words[@]}" --needs "$1" -o "$2" </dev/null >out 2>err) || fail "run on $1: $(cat "$work/conv/err")"
}
run_on 'kind = webgpu' web
run_on 'kind = cpu' cpu
"$bin/onnx-cases" close "$work/conv/cpu/o0.npy" "$work/conv/web/o0.npy" >close.txt || fail "webgpu differs from cpu: $(cat close.txt)"

# A job that is no model does not go to the device.
printf 'run: [true]\nneeds: kind = webgpu\n' >plain.yaml
status=0
timeout 60 "$bourse" submit plain.yaml -y >out 2>err </dev/null || status=$?
[ "$status" -ne 0 ] || fail "a program was taken for a device that computes models alone"

kill "$lab"
ended "$lab" 60 || fail "the agent does not end"
market_audit
echo "webgpu: ok ($case_same cases)"
