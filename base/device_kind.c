#include "base/device_kind.h"

static const struct device_kind kinds[] = {
    {"cpu", "processor cores", "cpu.ARCH.LEVEL", {"cpu-x86", "cpu-arm", "cpu-riscv"}},
    {"gpu", "graphics processor", "gpu.VENDOR.MODEL", {"gpu-integrated"}},
    {"tpu", "tensor processor", "tpu.VENDOR.MODEL", {"tpu-edge"}},
    {"lpu", "language processor: all memory on the chip", "lpu.VENDOR.MODEL", {NULL}},
    {"npu", "neural processor", "npu.VENDOR.MODEL", {"npu-dc"}},
    {"fpga", "programmable logic", "fpga.VENDOR.MODEL", {"fpga-soc"}},
    {"dsp", "signal processor", "dsp.VENDOR.MODEL", {"dsp-soc"}},
    {"webgpu", "a browser's or runtime's WebGPU", "webgpu.VENDOR.MODEL", {"webgpu-browser"}},
    {"wasm", "a WebAssembly runtime", "wasm.RUNTIME", {"wasm-wasi", "wasm-browser"}},
    {"custom", "anything else", "custom.VENDOR.MODEL", {"custom-asic"}},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

const struct device_kind *device_kinds(size_t *ret_count)
{
    *ret_count = KINDS;
    return kinds;
}
