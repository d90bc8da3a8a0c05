#include "provider/kernel/opencl.h"

#include "provider/kernel/engine.h"
#include "provider/kernel/opencl_product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char measure_source[] =
    "kernel void bourse_rate(global float *out, float a, float b, int steps)\n"
    "{\n"
    "    float4 x0 = (float4)(get_global_id(0)), x1 = x0 + 1, x2 = x0 + 2, x3 = x0 + 3;\n"
    "    float4 x4 = x0 + 4, x5 = x0 + 5, x6 = x0 + 6, x7 = x0 + 7;\n"
    "    for (int i = 0; i < steps; i++) {\n"
    "        x0 = mad(x0, a, b); x1 = mad(x1, a, b); x2 = mad(x2, a, b); x3 = mad(x3, a, b);\n"
    "        x4 = mad(x4, a, b); x5 = mad(x5, a, b); x6 = mad(x6, a, b); x7 = mad(x7, a, b);\n"
    "    }\n"
    "    float4 sum = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7;\n"
    "    out[get_global_id(0)] = sum.x + sum.y + sum.z + sum.w;\n"
    "}\n"
    "kernel void bourse_copy(global const float4 *from, global float4 *to)\n"
    "{\n"
    "    to[get_global_id(0)] = from[get_global_id(0)];\n"
    "}\n"
    "kernel void bourse_fold(global float *values)\n" /* as challenge_chain_fold */
    "{\n"
    "    const int sum = (int)values[get_global_id(0)];\n"
    "    values[get_global_id(0)] = (float)(((sum >> 2) & 1023) - 512);\n"
    "}\n";

/* An open device. */
struct opencl_state {
    const struct opencl_api *api;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
};

static const struct opencl_state *state_of(const struct engine *engine)
{
    return engine->state;
}

static const struct opencl_api *api_of(const struct engine *engine)
{
    return state_of(engine)->api;
}

/* Returns the status for an error of OpenCL, and sets the problem "WHAT: the reason". */
static enum operation_status failed(cl_int code, const char *what, struct problem *ret_problem)
{
    const char *why = opencl_api_error(code);
    if (why != NULL) {
        problem_set(ret_problem, "%s: %s", what, why);
    } else {
        problem_set(ret_problem, "%s: error %d of OpenCL", what, (int)code);
    }
    return code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                   code == CL_OUT_OF_HOST_MEMORY
               ? OPERATION_MEMORY
               : OPERATION_FAILED;
}

static enum operation_status checked(cl_int code, const char *what, struct problem *ret_problem)
{
    return code == CL_SUCCESS ? OPERATION_OK : failed(code, what, ret_problem);
}

/* ---------------------------------------------------------------- the device */

static bool open_device(struct engine *engine, struct problem *ret_problem)
{
    const struct device_facts *device = engine->device;
    struct opencl_state *state = calloc(1, sizeof *state);
    cl_int status = state != NULL ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    if (state != NULL) {
        *state = (struct opencl_state){.api = device->library, .device = device->handle};
        state->context = state->api->clCreateContext(NULL, 1, &state->device, NULL, NULL, &status);
    }
    if (status == CL_SUCCESS) {
        state->queue = state->api->clCreateCommandQueue(state->context, state->device, 0, &status);
        if (status != CL_SUCCESS) {
            (void)state->api->clReleaseContext(state->context);
        }
    }
    if (status != CL_SUCCESS) {
        free(state);
        (void)failed(status, "the device cannot be opened", ret_problem);
        return false;
    }
    engine->state = state;
    return true;
}

static void close_device(struct engine *engine)
{
    const struct opencl_state *state = state_of(engine);
    (void)state->api->clReleaseCommandQueue(state->queue);
    (void)state->api->clReleaseContext(state->context);
    free(engine->state);
    engine->state = NULL;
}

/* ---------------------------------------------------------------- programs */

static enum operation_status tell_log(const struct opencl_state *state, cl_program program,
                                      const char *name, struct problem *ret_problem)
{
    static const char unsaid[] = "the compiler does not say why";
    size_t size = 0;
    char *log = NULL;
    if (state->api->clGetProgramBuildInfo(program, state->device, CL_PROGRAM_BUILD_LOG, 0, NULL,
                                          &size) == CL_SUCCESS) {
        log = calloc(1, size + 1);
    }
    if (log == NULL) {
        problem_set(ret_problem, "%s does not compile, and the compiler does not say why", name);
        return OPERATION_FAILED;
    }
    (void)state->api->clGetProgramBuildInfo(program, state->device, CL_PROGRAM_BUILD_LOG, size, log,
                                            NULL);
    log[size < ENGINE_LOG_BYTES ? size : ENGINE_LOG_BYTES] = '\0';
    engine_tell_log(name, log, unsaid, ret_problem);
    free(log);
    return OPERATION_FAILED;
}

static enum operation_status build(struct engine *engine, const char *name, const char *source,
                                   size_t source_bytes, const char *options, void **ret_program,
                                   struct problem *ret_problem)
{
    /* Some libraries tell of a parameter that it is const only when asked at the build. */
    static const char tells[] = " -cl-kernel-arg-info";
    const struct opencl_state *state = state_of(engine);
    char all_options[KERNEL_OPTIONS_BYTES + sizeof tells];
    cl_int status = CL_SUCCESS;
    (void)snprintf(all_options, sizeof all_options, "%s%s", options, tells);
    cl_program program =
        state->api->clCreateProgramWithSource(state->context, 1, &source, &source_bytes, &status);
    if (status != CL_SUCCESS) {
        return failed(status, name, ret_problem);
    }
    status = state->api->clBuildProgram(program, 1, &state->device, all_options, NULL, NULL);
    const enum operation_status result = status == CL_BUILD_PROGRAM_FAILURE
                                             ? tell_log(state, program, name, ret_problem)
                                             : checked(status, name, ret_problem);
    if (result != OPERATION_OK) {
        (void)state->api->clReleaseProgram(program);
        return result;
    }
    *ret_program = program;
    return OPERATION_OK;
}

static void drop_program(struct engine *engine, void *program)
{
    (void)api_of(engine)->clReleaseProgram(program);
}

static enum operation_status find(struct engine *engine, void *program, const char *name,
                                  const char *entry, void **ret_kernel, struct problem *ret_problem)
{
    char names[128] = "";
    cl_int status = CL_SUCCESS;
    *ret_kernel = api_of(engine)->clCreateKernel(program, entry, &status);
    if (status != CL_INVALID_KERNEL_NAME) {
        return checked(status, entry, ret_problem);
    }
    (void)api_of(engine)->clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof names - 1,
                                           names, NULL);
    problem_set(ret_problem, "%s has no kernel \"%s\"%s%s", name, entry,
                names[0] != '\0' ? "; its kernels are " : "", names);
    return OPERATION_FAILED;
}

static void drop_kernel(struct engine *engine, void *kernel)
{
    (void)api_of(engine)->clReleaseKernel(kernel);
}

/* Other devices than cores share local memory among the work-items of a group. */
static void product(const struct engine *engine, struct kernel_product *ret_product)
{
    cl_uint lanes = 0;
    const bool has_cores = strcmp(engine->device->kind, "cpu") == 0;
    (void)api_of(engine)->clGetDeviceInfo(
        state_of(engine)->device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof lanes, &lanes, NULL);
    *ret_product = has_cores ? opencl_product_of_cores(lanes) : opencl_product_of_groups();
}

/* ---------------------------------------------------------------- parameters */

static bool count(struct engine *engine, void *kernel, size_t *ret_count)
{
    cl_uint takes = 0;
    const cl_int status =
        api_of(engine)->clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof takes, &takes, NULL);
    *ret_count = takes;
    return status == CL_SUCCESS;
}

static const char *wanted(struct engine *engine, void *kernel, size_t parameter,
                          enum kernel_argument_kind kind, char ret_text[KERNEL_WANTED_SIZE])
{
    cl_kernel_arg_address_qualifier where = 0;
    if (api_of(engine)->clGetKernelArgInfo(kernel, (cl_uint)parameter,
                                           CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof where, &where,
                                           NULL) != CL_SUCCESS) {
        return NULL;
    }
    const bool is_local = where == CL_KERNEL_ARG_ADDRESS_LOCAL;
    const bool is_number = where == CL_KERNEL_ARG_ADDRESS_PRIVATE;
    const bool fits = is_local    ? kind == KERNEL_LOCAL
                      : is_number ? kind > KERNEL_LOCAL
                                  : kind < KERNEL_LOCAL;
    (void)snprintf(ret_text, KERNEL_WANTED_SIZE, "%s",
                   is_local    ? "local memory"
                   : is_number ? "a number"
                               : "a buffer");
    return fits ? NULL : ret_text;
}

/* A parameter in constant memory has the word `const`, too. */
static bool only_reads(struct engine *engine, void *kernel, size_t parameter)
{
    cl_kernel_arg_type_qualifier type = CL_KERNEL_ARG_TYPE_NONE;
    return api_of(engine)->clGetKernelArgInfo(kernel, (cl_uint)parameter,
                                              CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof type, &type,
                                              NULL) == CL_SUCCESS &&
           (type & CL_KERNEL_ARG_TYPE_CONST) != 0;
}

static uint64_t group_most(struct engine *engine, void *kernel)
{
    size_t most = 0;
    const cl_int status = api_of(engine)->clGetKernelWorkGroupInfo(
        kernel, state_of(engine)->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    return status == CL_SUCCESS ? most : 0;
}

static enum operation_status set(struct engine *engine, void *kernel, size_t parameter,
                                 const void *value, size_t size, const char *what,
                                 struct problem *ret_problem)
{
    return checked(api_of(engine)->clSetKernelArg(kernel, (cl_uint)parameter, size, value), what,
                   ret_problem);
}

static enum operation_status set_buffer(struct engine *engine, void *kernel, size_t parameter,
                                        struct kernel_buffer buffer, const char *what,
                                        struct problem *ret_problem)
{
    cl_mem memory = buffer.handle;
    return set(engine, kernel, parameter, &memory, sizeof memory, what, ret_problem);
}

/* ---------------------------------------------------------------- buffers */

static enum operation_status make(struct engine *engine, uint64_t size, const void *bytes,
                                  const char *what, struct kernel_buffer *ret_buffer,
                                  struct problem *ret_problem)
{
    const struct opencl_state *state = state_of(engine);
    const cl_uchar zero = 0;
    cl_int status = CL_SUCCESS;
    cl_mem memory =
        state->api->clCreateBuffer(state->context, CL_MEM_READ_WRITE, (size_t)size, NULL, &status);
    if (status != CL_SUCCESS) {
        return failed(status, what, ret_problem);
    }
    status = bytes != NULL
                 ? state->api->clEnqueueWriteBuffer(state->queue, memory, CL_TRUE, 0, (size_t)size,
                                                    bytes, 0, NULL, NULL)
                 : state->api->clEnqueueFillBuffer(state->queue, memory, &zero, sizeof zero, 0,
                                                   (size_t)size, 0, NULL, NULL);
    if (status != CL_SUCCESS) {
        (void)state->api->clReleaseMemObject(memory);
        return failed(status, what, ret_problem);
    }
    *ret_buffer = (struct kernel_buffer){.handle = memory};
    return OPERATION_OK;
}

static enum operation_status copy(struct engine *engine, struct kernel_buffer from, uint64_t size,
                                  const char *what, struct kernel_buffer *ret_buffer,
                                  struct problem *ret_problem)
{
    const struct opencl_state *state = state_of(engine);
    cl_int status = CL_SUCCESS;
    cl_mem memory =
        state->api->clCreateBuffer(state->context, CL_MEM_READ_WRITE, (size_t)size, NULL, &status);
    if (status != CL_SUCCESS) {
        return failed(status, what, ret_problem);
    }
    status = state->api->clEnqueueCopyBuffer(state->queue, from.handle, memory, 0, 0, (size_t)size,
                                             0, NULL, NULL);
    status = status == CL_SUCCESS ? state->api->clFinish(state->queue) : status;
    if (status != CL_SUCCESS) {
        (void)state->api->clReleaseMemObject(memory);
        return failed(status, what, ret_problem);
    }
    *ret_buffer = (struct kernel_buffer){.handle = memory};
    return OPERATION_OK;
}

static void drop_buffer(struct engine *engine, struct kernel_buffer buffer)
{
    (void)api_of(engine)->clReleaseMemObject(buffer.handle);
}

static enum operation_status read_back(struct engine *engine, struct kernel_buffer buffer,
                                       uint64_t at, size_t size, void *ret_bytes, const char *what,
                                       struct problem *ret_problem)
{
    const struct opencl_state *state = state_of(engine);
    return checked(state->api->clEnqueueReadBuffer(state->queue, buffer.handle, CL_TRUE, (size_t)at,
                                                   size, ret_bytes, 0, NULL, NULL),
                   what, ret_problem);
}

/* ---------------------------------------------------------------- copies beside a launch */

static void *open_copier(const struct engine *engine)
{
    const struct opencl_state *state = state_of(engine);
    cl_int status = CL_SUCCESS;
    cl_command_queue queue =
        state->api->clCreateCommandQueue(state->context, state->device, 0, &status);
    return status == CL_SUCCESS ? queue : NULL;
}

static void close_copier(const struct engine *engine, void *copier)
{
    (void)api_of(engine)->clReleaseCommandQueue(copier);
}

static bool reserve(const struct engine *engine, uint64_t size, struct kernel_buffer *ret_buffer)
{
    const struct opencl_state *state = state_of(engine);
    cl_int status = CL_SUCCESS;
    cl_mem memory =
        state->api->clCreateBuffer(state->context, CL_MEM_READ_WRITE, (size_t)size, NULL, &status);
    *ret_buffer = (struct kernel_buffer){.handle = memory};
    return status == CL_SUCCESS;
}

static bool write_ahead(const struct engine *engine, void *copier, struct kernel_buffer buffer,
                        uint64_t at, const void *bytes, size_t size)
{
    return api_of(engine)->clEnqueueWriteBuffer(copier, buffer.handle, CL_TRUE, (size_t)at, size,
                                                bytes, 0, NULL, NULL) == CL_SUCCESS;
}

/* ---------------------------------------------------------------- the run */

static enum operation_status run(struct engine *engine, void *kernel, const struct kernel_op *op,
                                 struct problem *ret_problem)
{
    const struct opencl_state *state = state_of(engine);
    size_t global[KERNEL_DIMENSIONS];
    size_t group[KERNEL_DIMENSIONS];
    for (uint32_t i = 0; i < op->dimensions; i++) {
        global[i] = (size_t)op->global[i];
        group[i] = (size_t)op->group[i];
    }
    cl_int status =
        state->api->clEnqueueNDRangeKernel(state->queue, kernel, op->dimensions, NULL, global,
                                           op->has_group ? group : NULL, 0, NULL, NULL);
    if (status == CL_SUCCESS) {
        status = state->api->clFinish(state->queue);
    }
    return checked(status, "the kernel did not run", ret_problem);
}

const struct kernel_interface opencl_interface = {
    .api = KERNEL_OPENCL,
    .local_is_parameter = true,
    .measure_source = measure_source,
    .product = product,
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
    .open_copier = open_copier,
    .close_copier = close_copier,
    .reserve = reserve,
    .write = write_ahead,
    .set = set,
    .set_buffer = set_buffer,
    .run = run,
};
