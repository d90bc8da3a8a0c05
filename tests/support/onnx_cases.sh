# shellcheck shell=bash disable=SC2034,SC2154 # market.sh sets `bin`, `work`, `support` and `bourse`
# ONNX's own test cases, of Debian's package libonnx-testdata, through a market. To be sourced after market.sh.

onnx_data=/usr/share/libonnx-testdata/data
onnx_library=${BOURSE_ONNXRUNTIME:-$(realpath "$support/../../build/onnxruntime/libonnxruntime.so.1" 2>/dev/null || true)}

# The execution provider by which cases are computed: the file of its settings, and what its device needs.
onnx_settings='' onnx_needs=''
onnx_vulkan=/usr/lib/chromium/vk_swiftshader_icd.json

# onnx_webgpu: cases go to ONNX Runtime's WebGPU provider, over SwiftShader's Vulkan driver, here as on the device of
# $onnx_webgpu_device, a line for provider.yaml.
onnx_webgpu() {
    [ -r "$onnx_vulkan" ] || skip "no Vulkan driver that computes on cores (Debian package chromium-common)"
    [ "$(nproc)" -ge 2 ] || skip "one processor: an agent with such a device needs two"
    [ -n "$(ldconfig -p | grep 'libvulkan\.so\.1')" ] || skip "no loader of Vulkan drivers (Debian package libvulkan1)"
    onnx_webgpu_device="{onnx: WebGPU, name: web, price: 0.02, memory: 768MiB, disk: 256MiB, nodes: [], options: {dawnBackendType: Vulkan}, environment: {VK_DRIVER_FILES: $onnx_vulkan}}"
    onnx_settings=$work/webgpu.settings onnx_needs='backend = webgpu'
    printf '%s\n' 'provider WebGPU' 'option dawnBackendType=Vulkan' "environment VK_DRIVER_FILES=$onnx_vulkan" >"$onnx_settings"
}
# onnx_lab: an agent with that device; its log is agent-lab.log.
onnx_lab() {
    agent_join "$work/lab" --name lab </dev/null
    printf '%s\n' 'name: lab' 'slots: 1' 'price: 0.50' 'memory: 256MiB' 'disk: 64MiB' \
        "onnx: {library: $BOURSE_ONNXRUNTIME}" 'devices:' "  - $onnx_webgpu_device" >"$work/lab/provider.yaml"
    "$bin/bourse-provider" run --dir "$work/lab" >agent-lab.log 2>&1 &
    lab=$!
    started+=("$lab")
    until_true 90 onnx_webgpu_shown || fail "no device of kind webgpu is on offer: $(cat agent-lab.log)"
}
onnx_webgpu_shown() { "$bourse" devices --needs "$onnx_needs" --json 2>/dev/null | grep -q '"price_micro"'; }

# onnx_begin: a market with a device that computes models.
onnx_begin() {
    [ -r "$onnx_library" ] || skip "no library of ONNX Runtime: scripts/setup fetches it"
    [ -d "$onnx_data" ] || skip "no cases (Debian package libonnx-testdata)"
    # The agent becomes a user of its own, who may be unable to read the place of the build.
    install -m 755 "$onnx_library" "$work/libonnxruntime.so.1"
    export BOURSE_ONNXRUNTIME=$work/libonnxruntime.so.1
    market_up --credits 100000 --slots 1 --price 0.40
    until_true 60 onnx_shown || fail "no device computes models: $(cat "$market/provider.log")"
}
onnx_shown() { "$bourse" devices --needs 'executor = onnx' --json 2>/dev/null | grep -q '"price_micro"'; }

# onnx_words FOLDER: the options of `bourse run` for the case, in `words`.
onnx_words() {
    local kind word
    words=()
    while read -r kind word; do
        case $kind in
        i) words+=(--input "$word") ;;
        o) words+=(--save "$word") ;;
        esac
    done <"$1/words"
}

# onnx_market FOLDER: runs the case through the market, and once more when the device was away meanwhile.
onnx_market() {
    local try
    for try in 1 2; do
        if (cd "$1" && timeout 120 "$bourse" run -y -q --retries 0 ${onnx_needs:+--needs "$onnx_needs"} model.onnx "${words[@]}" -o market </dev/null >out 2>err); then
            return 0
        fi
        grep -qE 'nobody asks a price|no device is offered|has been silent' "$1/err" && [ "$try" -eq 1 ] && until_true 60 onnx_shown || return 1
    done
}

# onnx_is_random FOLDER: ONNX Runtime gives other bytes when it computes the case again.
onnx_is_random() {
    local file
    mkdir "$1/first"
    mv "$1"/o*.npy "$1/first"
    "$bin/onnx-cases" direct "$BOURSE_ONNXRUNTIME" "$1" ${onnx_settings:+"$onnx_settings"} >/dev/null 2>&1 || return 1
    for file in "$1"/o*.npy; do
        onnx_agrees "$file" "$1/first/${file##*/}" || return 0
    done
    return 1
}

# onnx_agrees A B: the market's file is the direct one. A provider's results are near, for two runs may add in another order.
onnx_agrees() {
    if [ -n "$onnx_settings" ]; then
        "$bin/onnx-cases" close "$1" "$2" >/dev/null 2>&1
    else
        cmp -s "$1" "$2"
    fi
}

# onnx_case CASE: computes it directly and through the market, and compares. Counts in `case_*`; the reason of
# what is not right is in `case_reason`.
case_count=0 case_unfit=0 case_refused=0 case_ran=0 case_same=0 case_stated=0 case_other=0 case_random=0
onnx_case() {
    local folder=$work/case file status=0
    case_reason='' case_count=$((case_count + 1))
    rm -rf "$folder"
    mkdir "$folder"
    if ! case_reason=$("$bin/onnx-cases" prepare "$1" "$folder" 2>&1); then
        case_unfit=$((case_unfit + 1))
        return 0
    fi
    onnx_words "$folder"
    case_reason=$("$bin/onnx-cases" direct "$BOURSE_ONNXRUNTIME" "$folder" ${onnx_settings:+"$onnx_settings"} 2>&1) || status=$?
    if [ "$status" -ne 0 ]; then
        case_refused=$((case_refused + 1))
        if onnx_market "$folder"; then
            case_reason="the market runs what ONNX Runtime refuses: $case_reason"
            return 1
        fi
        return 0
    fi
    case_ran=$((case_ran + 1))
    onnx_market "$folder" || {
        case_reason="the market does not run it: $(tail -n 2 "$folder/err")"
        return 1
    }
    for file in "$folder"/o*.npy; do
        onnx_agrees "$file" "$folder/market/${file##*/}" || {
            case_reason="${file##*/} of the market differs"
            onnx_is_random "$folder" || return 1
            case_reason="random numbers without a seed" case_random=$((case_random + 1))
            return 0
        }
    done
    case_same=$((case_same + 1))
    for file in "$folder"/e*.npy; do
        case_reason=$("$bin/onnx-cases" close "$file" "$folder/o${file##*/e}" 2>&1) || {
            case_other=$((case_other + 1))
            return 0
        }
    done
    case_stated=$((case_stated + 1))
}
