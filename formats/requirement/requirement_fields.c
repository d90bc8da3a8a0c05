/* The fields of a requirement are listed here, with their types and units. */
#include "formats/requirement/requirement_internal.h"

#include "base/text.h"
#include "formats/units.h"

#include <stdio.h>
#include <string.h>

const struct requirement_field requirement_field_table[] = {
    {"kind", FIELD_TEXT, "cpu, gpu, tpu, lpu, npu, fpga, dsp, webgpu, wasm or custom"},
    {"instrument", FIELD_TEXT, "what the market trades, as in cpu.x86_64.avx512"},
    {"memory", FIELD_BYTES, "memory of one slot"},
    {"disk", FIELD_BYTES, "room of one slot for files"},
    {"image_files", FIELD_NUMBER, "files of an image, where it takes fewer than 131072"},
    {"image_config", FIELD_NUMBER,
     "1 where programs start in the folder, and as the user, of an image"},
    {"folders", FIELD_NUMBER,
     "1 where inputs and outputs may be folders with many files, 2 where outputs may be patterns, "
     "too, 3 where folders keep their links and empty folders"},
    {"terminal", FIELD_NUMBER, "1 where a program can have a terminal, as `bourse shell` needs it"},
    {"image_size", FIELD_BYTES, "bytes of an image's files, where its owner set them"},
    {"cores", FIELD_NUMBER, "processor cores of the device"},
    {"isolation", FIELD_NUMBER, "level of the jail, 0 to 3"},
    {"landlock", FIELD_FLAG, "whether Landlock closes the jail's files a second time"},
    {"cgroup", FIELD_NUMBER,
     "version of the control groups that bound the jail, 1 or 2; 0 where none bound all of it"},
    {"vendor", FIELD_TEXT, "maker of the device, as in intel"},
    {"model", FIELD_TEXT, "the maker's name for it"},
    {"arch", FIELD_TEXT, "machine code it runs, as in x86_64"},
    {"feature", FIELD_TEXT,
     "an instruction set of its cores: avx512, amx-tile, amx-bf16, amx-int8, sve, sve2, rvv"},
    {"region", FIELD_TEXT, "where it stands, as its owner says"},
    {"program", FIELD_TEXT, "a host program that the owner allows, as in xz"},
    {"label", FIELD_TEXT, "a word that the owner gave it"},
    {"gflops", FIELD_NUMBER, "speed of one slot, in 10^9 operations per second"},
    {"gemm_fp32", FIELD_NUMBER,
     "speed of one slot in float32 matrix products, in 10^6 operations per second"},
    {"gemm_fp32_held", FIELD_NUMBER,
     "the same where the factors are in the device's memory already and the result stays there"},
    {"executor", FIELD_TEXT,
     "what it can run: command, noop, tensor, kernel, plugin, wasm or onnx"},
    {"challenge", FIELD_TEXT, "what the broker challenges on it: gemm_fp32 or gemm_fp32_held"},
    {"engine", FIELD_TEXT, "what computes ONNX models there, as in onnxruntime-1.30.0"},
    {"backend", FIELD_TEXT,
     "the execution provider of ONNX Runtime that computes models there, as in webgpu"},
    {"api", FIELD_TEXT, "the interface by which kernels reach it, opencl or cuda, or onnxruntime"},
    {"extension", FIELD_TEXT, "what kernels may use beyond OpenCL C 1.2: fp64 or fp16"},
    {"operation", FIELD_TEXT, "an operation of its plug-in, as in vector-add"},
    {"bandwidth", FIELD_BANDWIDTH, "memory bandwidth of one slot"},
    {"fp64", FIELD_FLOPS, "peak rate of one slot in float64"},
    {"fp32", FIELD_FLOPS, "peak rate of one slot in float32"},
    {"tf32", FIELD_FLOPS, "peak rate of one slot in tf32"},
    {"bf16", FIELD_FLOPS, "peak rate of one slot in bfloat16"},
    {"tf32_held", FIELD_FLOPS, "the same where the factors are in the device's memory already"},
    {"bf16_held", FIELD_FLOPS, "as tf32_held, in bfloat16"},
    {"fp16", FIELD_FLOPS, "peak rate of one slot in float16"},
    {"fp8", FIELD_FLOPS, "peak rate of one slot in 8 bits with a point"},
    {"int8", FIELD_OPS, "peak rate of one slot in 8-bit integers"},
    {"int4", FIELD_OPS, "peak rate of one slot in 4-bit integers"},
    {"power_mw", FIELD_NUMBER, "power of one slot at full load, in milliwatts"},
    {"measured", FIELD_TEXT,
     "a field of which its owner says that the agent measured the figure, as in gemm_fp32"},
    {"simulated", FIELD_FLAG, "whether the device is a simulation"},
    {"referee", FIELD_FLAG, "whether its account may judge the results of others"},
    {"trust", FIELD_NUMBER,
     "what the operator trusts its account with: 1 to judge the results of others, 2 the market"},
    {"firm", FIELD_FLAG, "whether nobody may take its leases from their holders"},
    {"notice", FIELD_DURATION,
     "how long before its end the holder of a lease is told that it is taken"},
    {"minimum_run", FIELD_DURATION, "how long nobody may take a lease"},
};

const struct requirement_field *requirement_fields(size_t *ret_count)
{
    *ret_count = REQUIREMENT_FIELDS;
    return requirement_field_table;
}

const struct requirement_field *requirement_field(const char *name)
{
    for (size_t i = 0; i < REQUIREMENT_FIELDS; i++) {
        if (strcmp(requirement_field_table[i].name, name) == 0) {
            return &requirement_field_table[i];
        }
    }
    return NULL;
}

bool requirement_field_is_ordered(const struct requirement_field *field)
{
    return field->type != FIELD_TEXT && field->type != FIELD_FLAG;
}

enum units_kind requirement_field_units(const struct requirement_field *field)
{
    switch (field->type) {
    case FIELD_BYTES:
        return UNITS_BYTES;
    case FIELD_BANDWIDTH:
        return UNITS_BANDWIDTH;
    case FIELD_FLOPS:
        return UNITS_FLOPS;
    case FIELD_OPS:
        return UNITS_OPS;
    case FIELD_DURATION:
        return UNITS_DURATION;
    case FIELD_TEXT:
    case FIELD_FLAG:
    case FIELD_NUMBER:
        break;
    }
    return UNITS_COUNT;
}

const char *const *requirement_executors(size_t *ret_count)
{
    static const char *const names[] = {"command", "noop", "tensor", "kernel",
                                        "plugin",  "wasm", "onnx"};
    *ret_count = sizeof names / sizeof names[0];
    return names;
}

bool requirement_is_figure(const char *name)
{
    const struct requirement_field *field = requirement_field(name);
    return field != NULL &&
           (field->type == FIELD_BYTES || field->type == FIELD_BANDWIDTH ||
            field->type == FIELD_FLOPS || field->type == FIELD_OPS || strcmp(name, "gflops") == 0 ||
            strcmp(name, "gemm_fp32") == 0 || strcmp(name, "gemm_fp32_held") == 0);
}

void requirement_figure(const char *name, int64_t value, char ret_text[UNITS_TEXT_SIZE])
{
    const struct requirement_field *field = requirement_field(name);
    if (field != NULL && field->type == FIELD_FLAG && (value == 0 || value == 1)) {
        (void)snprintf(ret_text, UNITS_TEXT_SIZE, "%s", value == 1 ? "true" : "false");
        return;
    }
    units_short(field != NULL ? requirement_field_units(field) : UNITS_COUNT, value, ret_text);
}

void requirement_fold(const char *text, char ret_text[ATTRIBUTE_TEXT_SIZE])
{
    size_t length = 0;
    for (; text[length] != '\0' && length + 1 < ATTRIBUTE_TEXT_SIZE; length++) {
        char c = text[length];
        ret_text[length] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    ret_text[length] = '\0';
}

void requirement_explain_field(const char *name, struct problem *ret_problem)
{
    const char *names[REQUIREMENT_FIELDS];
    char folded[ATTRIBUTE_TEXT_SIZE];
    for (size_t i = 0; i < REQUIREMENT_FIELDS; i++) {
        names[i] = requirement_field_table[i].name;
    }
    requirement_fold(name, folded);
    const char *nearest = text_nearest(folded, names, REQUIREMENT_FIELDS);
    if (nearest != NULL) {
        problem_set(ret_problem, "unknown field \"%s\"; did you mean \"%s\"?", name, nearest);
    } else {
        problem_set(ret_problem,
                    "unknown field \"%s\"; `man bourse-job` lists those that are known", name);
    }
}
