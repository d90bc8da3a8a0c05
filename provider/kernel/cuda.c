#include "provider/kernel/cuda.h"

#include "base/text.h"
#include "provider/kernel/cublaslt.h"
#include "provider/kernel/cuda_ahead.h"
#include "provider/kernel/cuda_measure.h"
#include "provider/kernel/cuda_product.h"
#include "provider/kernel/engine.h"
#include "provider/kernel/mig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Threads of a block when the launch has no `local`. */
    BLOCK_THREADS = 256,
    /* All parameters of a kernel together have at most this many bytes. */
    PARAMETER_BYTES = 32764,
};

struct cuda_state {
    const struct cuda_api *api;
    cuda_device device;
    cuda_context context;
    struct cublaslt lt; /* open when the engine has a library */
};

/* A kernel with the values of its next launch. The driver reads each value at the size of the
 * kernel's parameter, which can be larger than one value. Such a read never leaves this structure,
 * because `zeros` lies behind the values. An older driver does not tell how many parameters there
 * are. So there is an address for as many as a kernel can have: each has at least a byte. Those
 * that a launch does not set are zeros. */
struct cuda_kernel {
    cuda_function function;
    unsigned shared_bytes;
    void *parameters[PARAMETER_BYTES];
    uint64_t values[KERNEL_ARGUMENTS];
    unsigned char zeros[PARAMETER_BYTES];
};

static struct cuda_state *state_of(const struct engine *engine)
{
    return engine->state;
}

static const struct cuda_api *api_of(const struct engine *engine)
{
    return state_of(engine)->api;
}

static void say(int result, const char *what, struct problem *ret_problem)
{
    const char *why = cuda_api_error(result);
    if (why != NULL) {
        problem_set(ret_problem, "%s: %s (error %d of CUDA)", what, why, result);
    } else {
        problem_set(ret_problem, "%s: error %d of CUDA", what, result);
    }
}

/* Returns the status for a result of CUDA. Sets the problem "WHAT: the reason" for any but OK. */
static enum operation_status checked(struct engine *engine, int result, const char *what,
                                     struct problem *ret_problem)
{
    if (result == CUDA_OK) {
        return OPERATION_OK;
    }
    say(result, what, ret_problem);
    engine->is_spent = engine->is_spent || cuda_api_is_fault(result) || cuda_api_is_lost(result);
    engine->fault = cuda_api_fault(result);
    return result == CUDA_OUT_OF_MEMORY ? OPERATION_MEMORY
           : cuda_api_is_lost(result)   ? OPERATION_DEVICE
                                        : OPERATION_FAILED;
}

/* ---------------------------------------------------------------- devices */

/* Returns 0 for a figure that the driver does not tell. */
static uint32_t attribute(const struct cuda_api *api, cuda_device device, int what)
{
    int value = 0;
    return api->cuDeviceGetAttribute(&value, what, device) == CUDA_OK && value > 0 ? (uint32_t)value
                                                                                   : 0;
}

static void read_name(const char *raw, char *ret_text, size_t capacity)
{
    const char *text = raw + strspn(raw, " ");
    text_printable(text, strlen(text), ret_text, capacity);
}

/* Reads what the driver tells of a device. Returns the driver's result. */
static int read_facts(const struct cuda_api *api, int number, struct device_facts *ret_facts)
{
    char name[DEVICES_TEXT_SIZE] = "";
    char id[DEVICES_ID_SIZE] = "";
    size_t memory_bytes = 0;
    int version = 0;
    cuda_device device = 0;
    int result = api->cuDeviceGet(&device, number);
    result = result == CUDA_OK ? api->cuDeviceGetName(name, sizeof name - 1, device) : result;
    result = result == CUDA_OK ? api->cuDeviceGetPCIBusId(id, sizeof id - 1, device) : result;
    result = result == CUDA_OK ? api->cuDeviceTotalMem_v2(&memory_bytes, device) : result;
    if (result != CUDA_OK) {
        return result;
    }
    (void)api->cuDriverGetVersion(&version);
    const uint32_t major = attribute(api, device, CUDA_CAPABILITY_MAJOR);
    const uint32_t minor = attribute(api, device, CUDA_CAPABILITY_MINOR);
    *ret_facts = (struct device_facts){
        .interface = &cuda_interface,
        .library = api,
        .number = device,
        .platform_name = "NVIDIA CUDA",
        .vendor = "NVIDIA Corporation",
        .kind = "gpu",
        .memory_bytes = memory_bytes,
        .has_host_memory = attribute(api, device, CUDA_INTEGRATED) != 0,
        .local_bytes = attribute(api, device, CUDA_MAX_SHARED_PER_BLOCK),
        .compute_units = attribute(api, device, CUDA_MULTIPROCESSOR_COUNT),
        .work_group = attribute(api, device, CUDA_MAX_THREADS_PER_BLOCK),
        .has_fp64 = true,
        .has_fp16 = 10 * major + minor >= 53,
    };
    read_name(name, ret_facts->name, sizeof ret_facts->name);
    for (size_t i = 0; id[i] != '\0'; i++) { /* the system's folders have small letters */
        ret_facts->id[i] = (char)(id[i] >= 'A' && id[i] <= 'F' ? id[i] - 'A' + 'a' : id[i]);
    }
    mig_name(api, device, ret_facts);
    (void)snprintf(ret_facts->driver, sizeof ret_facts->driver, "CUDA %d.%d", version / 1000,
                   version % 1000 / 10);
    (void)snprintf(ret_facts->target, sizeof ret_facts->target, "sm_%u%u", major, minor);
    return CUDA_OK;
}

bool cuda_find_devices(const struct cuda_api *api, struct devices *ret_devices,
                       struct problem *ret_problem)
{
    int count = 0;
    ret_devices->count = 0;
    ret_devices->fault = DEVICE_FAULT_LOST;
    int result = api->cuInit(0);
    result = result == CUDA_OK ? api->cuDeviceGetCount(&count) : result;
    if (result != CUDA_OK) {
        say(result, "the CUDA driver does not start", ret_problem);
        ret_devices->fault = cuda_api_fault(result);
        return false;
    }
    for (int i = 0; i < count && ret_devices->count < DEVICES_MAX; i++) {
        result = read_facts(api, i, &ret_devices->items[ret_devices->count]);
        if (result == CUDA_OK) {
            ret_devices->count++;
        } else {
            char what[48];
            (void)snprintf(what, sizeof what, "CUDA device %d", i);
            say(result, what, ret_problem);
        }
    }
    if (count <= 0) {
        problem_set(ret_problem, "the CUDA driver knows no device");
    }
    return ret_devices->count > 0;
}

/* The primary context is the one that the driver keeps for a process and device. */
static bool open_device(struct engine *engine, struct problem *ret_problem)
{
    struct cuda_state *state = calloc(1, sizeof *state);
    if (state == NULL) {
        problem_set(ret_problem, "the device cannot be opened: no memory");
        return false;
    }
    *state = (struct cuda_state){.api = engine->device->library, .device = engine->device->number};
    engine->state = state;
    int result = state->api->cuDevicePrimaryCtxRetain(&state->context, state->device);
    if (result == CUDA_OK) {
        result = state->api->cuCtxSetCurrent(state->context);
        if (result != CUDA_OK && state->api->cuDevicePrimaryCtxRelease_v2 != NULL) {
            (void)state->api->cuDevicePrimaryCtxRelease_v2(state->device);
        }
    }
    if (checked(engine, result, "the device cannot be opened", ret_problem) != OPERATION_OK) {
        engine->state = NULL;
        free(state);
        return false;
    }
    return true;
}

static void close_library(struct engine *engine)
{
    struct cuda_state *state = state_of(engine);
    if (engine->has_library) {
        cublaslt_close(&state->lt);
        if (state->lt.workspace != 0) {
            (void)state->api->cuMemFree_v2(state->lt.workspace);
        }
        engine->has_library = false;
        engine->library_bytes = 0;
    }
}

static void close_device(struct engine *engine)
{
    close_library(engine);
    if (api_of(engine)->cuDevicePrimaryCtxRelease_v2 != NULL) {
        (void)api_of(engine)->cuDevicePrimaryCtxRelease_v2(state_of(engine)->device);
    }
    free(engine->state);
    engine->state = NULL;
}

/* ---------------------------------------------------------------- programs */

/* Returns the status of a source that the driver refused, and sets the problem. The driver's
 * compiler writes the reason into the log. */
static enum operation_status not_built(struct engine *engine, int result, const char *name,
                                       const char *log, struct problem *ret_problem)
{
    const char *why = cuda_api_error(result);
    const enum operation_status status = checked(engine, result, name, ret_problem);
    if (status == OPERATION_FAILED && (log[0] != '\0' || why != NULL)) {
        engine_tell_log(name, log, why != NULL ? why : "the driver does not say why", ret_problem);
    }
    return status;
}

static enum operation_status build(struct engine *engine, const char *name, const char *source,
                                   size_t source_bytes, const char *options, void **ret_program,
                                   struct problem *ret_problem)
{
    char *image = malloc(source_bytes + 1); /* PTX ends with a NUL */
    char *log = calloc(1, ENGINE_LOG_BYTES + 1);
    cuda_module module = NULL;
    int result = CUDA_OUT_OF_MEMORY;
    (void)options; /* formats/kernel/kernel_op.h takes none */
    if (image != NULL && log != NULL) {
        cuda_jit_option jit[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
        void *values[] = {log, (void *)(uintptr_t)ENGINE_LOG_BYTES}; /* the size, not a pointer */
        memcpy(image, source, source_bytes);
        image[source_bytes] = '\0';
        result = api_of(engine)->cuModuleLoadDataEx(&module, image, 2, jit, values);
    }
    const enum operation_status status =
        result == CUDA_OK ? OPERATION_OK
                          : not_built(engine, result, name, log != NULL ? log : "", ret_problem);
    free(image);
    free(log);
    *ret_program = module;
    return status;
}

static void drop_program(struct engine *engine, void *program)
{
    (void)api_of(engine)->cuModuleUnload(program);
}

static enum operation_status find(struct engine *engine, void *program, const char *name,
                                  const char *entry, void **ret_kernel, struct problem *ret_problem)
{
    cuda_function function = NULL;
    const int result = api_of(engine)->cuModuleGetFunction(&function, program, entry);
    if (result == CUDA_NOT_FOUND) {
        problem_set(ret_problem,
                    "%s has no kernel \"%s\"; a kernel in C++ keeps its name by extern \"C\"", name,
                    entry);
        return OPERATION_FAILED;
    }
    struct cuda_kernel *kernel = result == CUDA_OK ? calloc(1, sizeof *kernel) : NULL;
    if (kernel == NULL) {
        return checked(engine, result == CUDA_OK ? CUDA_OUT_OF_MEMORY : result, entry, ret_problem);
    }
    kernel->function = function;
    for (size_t i = 0; i < PARAMETER_BYTES; i++) {
        kernel->parameters[i] = kernel->zeros;
    }
    *ret_kernel = kernel;
    return OPERATION_OK;
}

static void drop_kernel(struct engine *engine, void *kernel)
{
    (void)engine;
    free(kernel);
}

static void product(const struct engine *engine, struct kernel_product *ret_product)
{
    *ret_product = cuda_product();
    ret_product->row_blocks_most =
        attribute(api_of(engine), state_of(engine)->device, CUDA_MAX_GRID_X + 1);
}

/* ---------------------------------------------------------------- products by cuBLASLt */

/* Takes memory for the library, unless that were much of what there is. */
static void take_workspace(struct engine *engine, uint64_t memory_bytes)
{
    struct cuda_state *state = state_of(engine);
    cuda_address address = 0;
    if (memory_bytes / 16 >= CUBLASLT_WORKSPACE_BYTES &&
        state->api->cuMemAlloc_v2(&address, CUBLASLT_WORKSPACE_BYTES) == CUDA_OK) {
        state->lt.workspace = address;
        state->lt.workspace_bytes = CUBLASLT_WORKSPACE_BYTES;
        engine->library_bytes = CUBLASLT_WORKSPACE_BYTES;
    }
}

static bool open_library(struct engine *engine, const char *library, uint64_t memory_bytes,
                         char ret_name[KERNEL_LIBRARY_NAME_SIZE], struct problem *ret_problem)
{
    struct cuda_state *state = state_of(engine);
    if (!engine->has_library && cublaslt_open(library, &state->lt, ret_problem)) {
        engine->has_library = true;
        take_workspace(engine, memory_bytes);
    }
    (void)snprintf(ret_name, KERNEL_LIBRARY_NAME_SIZE, "%s",
                   engine->has_library ? state->lt.name : "");
    return engine->has_library;
}

static enum operation_status multiply(struct engine *engine,
                                      const struct kernel_multiplication *product,
                                      bool *ret_is_refused, struct problem *ret_problem)
{
    const enum cublaslt_outcome outcome =
        cublaslt_multiply(&state_of(engine)->lt, product, ret_problem);
    *ret_is_refused = outcome == CUBLASLT_REFUSED;
    if (outcome == CUBLASLT_DONE) {
        return checked(engine, api_of(engine)->cuCtxSynchronize(), "a product by cuBLASLt",
                       ret_problem);
    }
    engine->is_spent = engine->is_spent || outcome == CUBLASLT_FAILED;
    return outcome == CUBLASLT_REFUSED ? OPERATION_OK : OPERATION_DEVICE;
}

/* ---------------------------------------------------------------- parameters */

/* Returns the bytes of a parameter; 0: there is none, or the driver does not tell. */
static size_t parameter_bytes(struct engine *engine, const struct cuda_kernel *kernel,
                              size_t parameter, int *ret_result)
{
    const struct cuda_api *api = api_of(engine);
    size_t offset = 0;
    size_t size = 0;
    *ret_result = api->cuFuncGetParamInfo != NULL
                      ? api->cuFuncGetParamInfo(kernel->function, parameter, &offset, &size)
                      : CUDA_NOT_FOUND;
    return *ret_result == CUDA_OK ? size : 0;
}

static bool count(struct engine *engine, void *kernel, size_t *ret_count)
{
    int result = CUDA_OK;
    *ret_count = 0;
    while (*ret_count < PARAMETER_BYTES &&
           parameter_bytes(engine, kernel, *ret_count, &result) > 0) {
        (*ret_count)++;
    }
    return result == CUDA_INVALID_VALUE; /* no parameter has this number */
}

static size_t argument_bytes(enum kernel_argument_kind kind)
{
    return kind == KERNEL_INT || kind == KERNEL_UINT || kind == KERNEL_FLOAT ? 4 : 8;
}

/* The driver tells only the sizes of the parameters. */
static const char *wanted(struct engine *engine, void *kernel, size_t parameter,
                          enum kernel_argument_kind kind, char ret_text[KERNEL_WANTED_SIZE])
{
    int result = CUDA_OK;
    const size_t takes = parameter_bytes(engine, kernel, parameter, &result);
    (void)snprintf(ret_text, KERNEL_WANTED_SIZE, "%zu byte%s", takes, text_plural(takes));
    return takes == 0 || takes == argument_bytes(kind) ? NULL : ret_text;
}

/* The driver does not tell what a kernel does with its parameters. */
static bool only_reads(struct engine *engine, void *kernel, size_t parameter)
{
    (void)engine;
    (void)kernel;
    (void)parameter;
    return false;
}

static uint64_t group_most(struct engine *engine, void *kernel)
{
    const struct cuda_kernel *its = kernel;
    int most = 0;
    return api_of(engine)->cuFuncGetAttribute(&most, CUDA_FUNCTION_MAX_THREADS, its->function) ==
                       CUDA_OK &&
                   most > 0
               ? (uint64_t)most
               : 0;
}

/* Sets the size of the dynamic shared memory. Without the attribute, the driver takes at most 48
 * KiB less the kernel's static shared memory. */
static enum operation_status set_shared(struct engine *engine, struct cuda_kernel *kernel,
                                        size_t size, const char *what, struct problem *ret_problem)
{
    const struct cuda_api *api = api_of(engine);
    if (size > INT32_MAX) {
        problem_set(ret_problem, "%s: no device has so much shared memory", what);
        return OPERATION_FAILED;
    }
    kernel->shared_bytes = (unsigned)size;
    return size == 0 || api->cuFuncSetAttribute == NULL
               ? OPERATION_OK
               : checked(engine,
                         api->cuFuncSetAttribute(kernel->function, CUDA_FUNCTION_MAX_DYNAMIC_SHARED,
                                                 (int)size),
                         what, ret_problem);
}

static enum operation_status set(struct engine *engine, void *kernel, size_t parameter,
                                 const void *value, size_t size, const char *what,
                                 struct problem *ret_problem)
{
    struct cuda_kernel *its = kernel;
    if (value == NULL) {
        return set_shared(engine, its, size, what, ret_problem);
    }
    memcpy(&its->values[parameter], value, size);
    its->parameters[parameter] = &its->values[parameter];
    return OPERATION_OK;
}

static enum operation_status set_buffer(struct engine *engine, void *kernel, size_t parameter,
                                        struct kernel_buffer buffer, const char *what,
                                        struct problem *ret_problem)
{
    return set(engine, kernel, parameter, &buffer.address, sizeof buffer.address, what,
               ret_problem);
}

/* ---------------------------------------------------------------- buffers */

static enum operation_status make(struct engine *engine, uint64_t size, const void *bytes,
                                  const char *what, struct kernel_buffer *ret_buffer,
                                  struct problem *ret_problem)
{
    const struct cuda_api *api = api_of(engine);
    cuda_address address = 0;
    int result = api->cuMemAlloc_v2(&address, (size_t)size);
    if (result != CUDA_OK) {
        return checked(engine, result, what, ret_problem);
    }
    result = bytes != NULL ? api->cuMemcpyHtoD_v2(address, bytes, (size_t)size)
                           : api->cuMemsetD8_v2(address, 0, (size_t)size);
    if (result != CUDA_OK) {
        (void)api->cuMemFree_v2(address);
        return checked(engine, result, what, ret_problem);
    }
    *ret_buffer = (struct kernel_buffer){.address = address};
    return OPERATION_OK;
}

static enum operation_status copy(struct engine *engine, struct kernel_buffer from, uint64_t size,
                                  const char *what, struct kernel_buffer *ret_buffer,
                                  struct problem *ret_problem)
{
    const struct cuda_api *api = api_of(engine);
    cuda_address address = 0;
    int result = api->cuMemAlloc_v2(&address, (size_t)size);
    if (result != CUDA_OK) {
        return checked(engine, result, what, ret_problem);
    }
    result = api->cuMemcpyDtoD_v2(address, from.address, (size_t)size);
    if (result != CUDA_OK) {
        (void)api->cuMemFree_v2(address);
        return checked(engine, result, what, ret_problem);
    }
    *ret_buffer = (struct kernel_buffer){.address = address};
    return OPERATION_OK;
}

static void drop_buffer(struct engine *engine, struct kernel_buffer buffer)
{
    (void)api_of(engine)->cuMemFree_v2(buffer.address);
}

static enum operation_status read_back(struct engine *engine, struct kernel_buffer buffer,
                                       uint64_t at, size_t size, void *ret_bytes, const char *what,
                                       struct problem *ret_problem)
{
    return checked(engine, api_of(engine)->cuMemcpyDtoH_v2(ret_bytes, buffer.address + at, size),
                   what, ret_problem);
}

/* ---------------------------------------------------------------- the run */

/* Returns the block of a launch without one: the largest divisor of the first dimension that has at
 * most BLOCK_THREADS threads. */
static uint64_t choose_block(uint64_t global, uint64_t most)
{
    uint64_t block = most > 0 && most < BLOCK_THREADS ? most : BLOCK_THREADS;
    while (global % block != 0) {
        block--;
    }
    return block;
}

/* Splits the range of each dimension into blocks. */
static enum operation_status split(struct engine *engine, const struct kernel_op *op, uint64_t most,
                                   unsigned ret_grid[KERNEL_DIMENSIONS],
                                   unsigned ret_block[KERNEL_DIMENSIONS],
                                   struct problem *ret_problem)
{
    for (uint32_t i = 0; i < KERNEL_DIMENSIONS; i++) {
        const uint64_t global = i < op->dimensions ? op->global[i] : 1;
        const uint64_t block = i >= op->dimensions ? 1
                               : op->has_group     ? op->group[i]
                               : i == 0            ? choose_block(global, most)
                                                   : 1;
        const int number = state_of(engine)->device;
        const uint32_t block_most = attribute(api_of(engine), number, CUDA_MAX_BLOCK_X + (int)i);
        const uint32_t grid_most = attribute(api_of(engine), number, CUDA_MAX_GRID_X + (int)i);
        if (block > (block_most > 0 ? block_most : UINT32_MAX)) {
            problem_set(ret_problem,
                        "local: %llu work-items in dimension %u; this device has at "
                        "most %u there",
                        (unsigned long long)block, i + 1, block_most);
            return OPERATION_FAILED;
        }
        if (global / block > (grid_most > 0 ? grid_most : UINT32_MAX)) {
            problem_set(ret_problem,
                        "global: %llu work-groups in dimension %u; this device has at "
                        "most %u there",
                        (unsigned long long)(global / block), i + 1, grid_most);
            return OPERATION_FAILED;
        }
        ret_block[i] = (unsigned)block;
        ret_grid[i] = (unsigned)(global / block);
    }
    return OPERATION_OK;
}

static enum operation_status run(struct engine *engine, void *kernel, const struct kernel_op *op,
                                 struct problem *ret_problem)
{
    const struct cuda_api *api = api_of(engine);
    struct cuda_kernel *its = kernel;
    unsigned grid[KERNEL_DIMENSIONS];
    unsigned block[KERNEL_DIMENSIONS];
    const enum operation_status status =
        split(engine, op, group_most(engine, kernel), grid, block, ret_problem);
    if (status != OPERATION_OK) {
        return status;
    }
    int result = api->cuLaunchKernel(its->function, grid[0], grid[1], grid[2], block[0], block[1],
                                     block[2], its->shared_bytes, NULL, its->parameters, NULL);
    result = result == CUDA_OK ? api->cuCtxSynchronize() : result;
    return checked(engine, result, "the kernel did not run", ret_problem);
}

const struct kernel_interface cuda_interface = {
    .api = KERNEL_CUDA,
    .local_is_parameter = false,
    .measure_source = cuda_measure_source,
    .product = product,
    .open_library = open_library,
    .multiply = multiply,
    .open = open_device,
    .close = close_device,
    .build = build,
    .drop_program = drop_program,
    .find = find,
    .drop_kernel = drop_kernel,
    .count = count,
    .wanted = wanted,
    .only_reads = only_reads,
    .group_most = group_most,
    .make = make,
    .copy = copy,
    .drop_buffer = drop_buffer,
    .read = read_back,
    .open_copier = cuda_ahead_open,
    .close_copier = cuda_ahead_close,
    .reserve = cuda_ahead_reserve,
    .write = cuda_ahead_write,
    .set = set,
    .set_buffer = set_buffer,
    .run = run,
};
