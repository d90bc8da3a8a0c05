/* This library takes the place of an OpenCL library in tests. It has two devices and three kernels,
 * and fails wherever a test tells it to.
 *
 *     copy(global in, global out)            copies the smaller of the two
 *     fill(global out, uchar-like int byte)  sets every byte
 *     bourse_product(...)                    the product of provider/kernel/interface.h
 *
 * A source with the word `broken` does not compile. fake_opencl_fail("clCreateBuffer", -4) makes
 * every later call of that function fail, and fake_opencl_fail(NULL, 0) makes none fail.
 * fake_opencl_alive() counts the objects that nobody has released. fake_opencl_copies() counts the
 * writes to buffers. The first parameter of `copy` is const. After fake_opencl_err(), the
 * first number of each product is 1 too large. */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include "provider/tensor/gemm.h"

#include <CL/cl.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fake_opencl_fail(const char *function, int code);
int fake_opencl_alive(void);
void fake_opencl_err(void);
int fake_opencl_copies(void);
/* The GPU tells its place as NVIDIA's library does, by OpenCL's extension, or as AMD's does. */
enum fake_place { FAKE_PLACE_NVIDIA, FAKE_PLACE_KHRONOS, FAKE_PLACE_AMD, FAKE_PLACE_NONE };
void fake_opencl_place(enum fake_place place);

static bool is_wrong;
static char failing[64];
static int failure;
static atomic_int alive;
static atomic_int copies;

void fake_opencl_fail(const char *function, int code)
{
    (void)snprintf(failing, sizeof failing, "%s", function != NULL ? function : "");
    failure = code;
    is_wrong = false;
}

static enum fake_place place_told;

void fake_opencl_place(enum fake_place place)
{
    place_told = place;
}

void fake_opencl_err(void)
{
    is_wrong = true;
}

int fake_opencl_alive(void)
{
    return alive;
}

int fake_opencl_copies(void)
{
    return copies;
}

static cl_int status_of(const char *function)
{
    return strcmp(failing, function) == 0 ? failure : CL_SUCCESS;
}
#define STATUS status_of(__func__)

struct _cl_platform_id {
    int none;
};
struct _cl_device_id {
    const char *name, *vendor;
    cl_device_type type;
};
struct _cl_context {
    int none;
};
struct _cl_command_queue {
    int none;
};
struct _cl_program {
    bool is_broken;
};
struct _cl_mem {
    size_t size;
    unsigned char *bytes;
};
enum kernel_name { COPY, FILL, PRODUCT };
struct _cl_kernel {
    enum kernel_name name;
    cl_mem buffers[2];
    cl_int byte;
    struct { /* of a product */
        cl_uint sides[3];
        float factors[2];
        cl_mem buffers[3];
    } product;
};

static struct _cl_platform_id platform;
static struct _cl_device_id fakes[] = {
    {"Fake GPU 9000 (TM)", "NVIDIA Corporation", CL_DEVICE_TYPE_GPU},
    {"fake-cores", "FakeMaker", CL_DEVICE_TYPE_CPU}};

/* ---------------------------------------------------------------- facts */

static cl_int give(const void *from, size_t size, size_t capacity, void *to, size_t *ret_size)
{
    if (to != NULL && capacity < size) {
        return CL_INVALID_VALUE;
    }
    if (to != NULL) {
        memcpy(to, from, size);
    }
    if (ret_size != NULL) {
        *ret_size = size;
    }
    return CL_SUCCESS;
}

static cl_int give_text(const char *text, size_t capacity, void *to, size_t *ret_size)
{
    return give(text, strlen(text) + 1, capacity, to, ret_size);
}

cl_int clGetPlatformIDs(cl_uint most, cl_platform_id *platforms, cl_uint *count)
{
    if (most > 0) {
        platforms[0] = &platform;
    }
    *count = 1;
    return STATUS;
}

cl_int clGetPlatformInfo(cl_platform_id id, cl_platform_info what, size_t capacity, void *to,
                         size_t *size)
{
    (void)id;
    return what == CL_PLATFORM_NAME ? give_text("Fake Platform", capacity, to, size)
                                    : CL_INVALID_VALUE;
}

cl_int clGetDeviceIDs(cl_platform_id id, cl_device_type type, cl_uint most, cl_device_id *ids,
                      cl_uint *count)
{
    (void)id;
    (void)type;
    for (cl_uint i = 0; i < 2 && i < most; i++) {
        ids[i] = &fakes[i];
    }
    *count = 2;
    return STATUS;
}

cl_int clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t capacity, void *to,
                       size_t *size)
{
    const cl_ulong memory = 1 << 24;
    const cl_ulong buffer = 1 << 20;
    const cl_uint units = 3;
    const cl_uint bus = 0x3b;
    const cl_uint none = 0;
    const size_t group = 64;
    static const cl_uint khronos[4] = {1, 0xC1, 2, 3};
    static const unsigned char amd[24] = {1, [21] = 0xC1, [22] = 2, [23] = 1};
    if (STATUS != CL_SUCCESS) {
        return STATUS;
    }
    switch (what) {
    case CL_DEVICE_NAME:
        return give_text(id->name, capacity, to, size);
    case CL_DEVICE_VENDOR:
        return give_text(place_told != FAKE_PLACE_NVIDIA && id == &fakes[0]
                             ? "Advanced Micro Devices, Inc."
                             : id->vendor,
                         capacity, to, size);
    case CL_DRIVER_VERSION:
        return give_text("1.0", capacity, to, size);
    case CL_DEVICE_EXTENSIONS:
        return give_text(place_told == FAKE_PLACE_KHRONOS ? "cl_khr_fp64 cl_khr_pci_bus_info"
                         : place_told == FAKE_PLACE_AMD
                             ? "cl_khr_fp64 cl_amd_device_attribute_query"
                             : "cl_khr_fp64",
                         capacity, to, size);
    case 0x410F: /* of cl_khr_pci_bus_info */
        return place_told == FAKE_PLACE_KHRONOS ? give(khronos, sizeof khronos, capacity, to, size)
                                                : CL_INVALID_VALUE;
    case 0x4037: /* AMD's */
        return place_told == FAKE_PLACE_AMD ? give(amd, sizeof amd, capacity, to, size)
                                            : CL_INVALID_VALUE;
    case 0x4008: /* NVIDIA's: the bus, the slot and the domain */
        return give(&bus, sizeof bus, capacity, to, size);
    case 0x4009:
    case 0x400A:
        return give(&none, sizeof none, capacity, to, size);
    case CL_DEVICE_TYPE:
        return give(&id->type, sizeof id->type, capacity, to, size);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
        return give(&memory, sizeof memory, capacity, to, size);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
    case CL_DEVICE_LOCAL_MEM_SIZE:
        return give(&buffer, sizeof buffer, capacity, to, size);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return give(&units, sizeof units, capacity, to, size);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return give(&group, sizeof group, capacity, to, size);
    default:
        return CL_INVALID_VALUE;
    }
}

/* ---------------------------------------------------------------- objects */

/* Makes an object, unless the function is to fail. */
static void *make(const char *function, size_t size, cl_int *status)
{
    *status = status_of(function);
    void *made = *status == CL_SUCCESS ? calloc(1, size) : NULL;
    alive += made != NULL;
    return made;
}

static cl_int drop(void *object)
{
    free(object);
    alive--;
    return CL_SUCCESS;
}

cl_context clCreateContext(const cl_context_properties *properties, cl_uint count,
                           const cl_device_id *ids,
                           void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                           void *data, cl_int *status)
{
    (void)properties;
    (void)count;
    (void)ids;
    (void)notify;
    (void)data;
    return make(__func__, sizeof(struct _cl_context), status);
}

cl_int clReleaseContext(cl_context context)
{
    return drop(context);
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id id,
                                      cl_command_queue_properties properties, cl_int *status)
{
    (void)context;
    (void)id;
    (void)properties;
    return make(__func__, sizeof(struct _cl_command_queue), status);
}

cl_int clReleaseCommandQueue(cl_command_queue queue)
{
    return drop(queue);
}

cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **texts,
                                     const size_t *lengths, cl_int *status)
{
    (void)context;
    (void)count;
    cl_program program = make(__func__, sizeof *program, status);
    if (program != NULL) {
        program->is_broken = memmem(texts[0], lengths[0], "broken", 6) != NULL;
    }
    return program;
}

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *ids,
                      const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                      void *data)
{
    (void)count;
    (void)ids;
    (void)options;
    (void)notify;
    (void)data;
    return program->is_broken ? CL_BUILD_PROGRAM_FAILURE : STATUS;
}

cl_int clGetProgramBuildInfo(cl_program program, cl_device_id id, cl_program_build_info what,
                             size_t capacity, void *to, size_t *size)
{
    (void)program;
    (void)id;
    (void)what;
    return STATUS != CL_SUCCESS
               ? STATUS
               : give_text("a note\nx.cl:1:1: error: broken\n", capacity, to, size);
}

cl_int clGetProgramInfo(cl_program program, cl_program_info what, size_t capacity, void *to,
                        size_t *size)
{
    (void)program;
    (void)what;
    return give_text("copy;fill", capacity, to, size);
}

cl_int clReleaseProgram(cl_program program)
{
    return drop(program);
}

cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *status)
{
    (void)program;
    const bool is_copy = strcmp(name, "copy") == 0;
    const bool is_product = strcmp(name, "bourse_product") == 0;
    if (!is_copy && !is_product && strcmp(name, "fill") != 0) {
        *status = CL_INVALID_KERNEL_NAME;
        return NULL;
    }
    cl_kernel kernel = make(__func__, sizeof *kernel, status);
    if (kernel != NULL) {
        kernel->name = is_copy ? COPY : is_product ? PRODUCT : FILL;
    }
    return kernel;
}

cl_int clGetKernelInfo(cl_kernel kernel, cl_kernel_info what, size_t capacity, void *to,
                       size_t *size)
{
    const cl_uint count = 2;
    (void)kernel;
    (void)what;
    return STATUS != CL_SUCCESS ? STATUS : give(&count, sizeof count, capacity, to, size);
}

cl_int clGetKernelArgInfo(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what, size_t capacity,
                          void *to, size_t *size)
{
    const cl_kernel_arg_type_qualifier type =
        kernel->name == COPY && index == 0 ? CL_KERNEL_ARG_TYPE_CONST : CL_KERNEL_ARG_TYPE_NONE;
    const cl_kernel_arg_address_qualifier where = kernel->name == COPY || index == 0
                                                      ? CL_KERNEL_ARG_ADDRESS_GLOBAL
                                                      : CL_KERNEL_ARG_ADDRESS_PRIVATE;
    return STATUS != CL_SUCCESS                   ? STATUS
           : what == CL_KERNEL_ARG_TYPE_QUALIFIER ? give(&type, sizeof type, capacity, to, size)
                                                  : give(&where, sizeof where, capacity, to, size);
}

cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id id, cl_kernel_work_group_info what,
                                size_t capacity, void *to, size_t *size)
{
    const size_t most = 64;
    (void)kernel;
    (void)id;
    (void)what;
    return STATUS != CL_SUCCESS ? STATUS : give(&most, sizeof most, capacity, to, size);
}

cl_int clReleaseKernel(cl_kernel kernel)
{
    return drop(kernel);
}

static cl_int set_product(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    if (size != (index < 5 ? sizeof(cl_uint) : sizeof(cl_mem))) {
        return CL_INVALID_ARG_SIZE;
    }
    void *place = index < 3   ? (void *)&kernel->product.sides[index]
                  : index < 5 ? (void *)&kernel->product.factors[index - 3]
                              : (void *)&kernel->product.buffers[index - 5];
    memcpy(place, value, size);
    return CL_SUCCESS;
}

static void run_product(cl_kernel kernel)
{
    float *c = (float *)(void *)kernel->product.buffers[2]->bytes;
    gemm_reference(
        &(struct gemm){.rows = kernel->product.sides[0],
                       .inner = kernel->product.sides[1],
                       .columns = kernel->product.sides[2],
                       .alpha = kernel->product.factors[0],
                       .beta = kernel->product.factors[1],
                       .a = (const float *)(const void *)kernel->product.buffers[0]->bytes,
                       .b = (const float *)(const void *)kernel->product.buffers[1]->bytes,
                       .c = c});
    c[0] += is_wrong ? 1.0F : 0.0F;
}

cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    if (STATUS != CL_SUCCESS) {
        return STATUS;
    }
    if (kernel->name == PRODUCT) {
        return set_product(kernel, index, size, value);
    }
    if (index == 1 && kernel->name == FILL) {
        if (size != sizeof kernel->byte) {
            return CL_INVALID_ARG_SIZE;
        }
        memcpy(&kernel->byte, value, size);
    } else {
        memcpy(&kernel->buffers[index], value, sizeof kernel->buffers[index]);
    }
    return CL_SUCCESS;
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *bytes,
                      cl_int *status)
{
    (void)context;
    (void)flags;
    (void)bytes;
    cl_mem made = make(__func__, sizeof *made, status);
    if (made != NULL) {
        made->size = size;
        made->bytes = malloc(size);
    }
    return made;
}

cl_int clReleaseMemObject(cl_mem buffer)
{
    free(buffer->bytes);
    return drop(buffer);
}

/* ---------------------------------------------------------------- commands */

cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void *pattern,
                           size_t pattern_size, size_t offset, size_t size, cl_uint count,
                           const cl_event *events, cl_event *event)
{
    (void)queue;
    (void)pattern_size;
    (void)count;
    (void)events;
    (void)event;
    memset(buffer->bytes + offset, *(const unsigned char *)pattern, size);
    return STATUS;
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool waits, size_t offset,
                            size_t size, const void *bytes, cl_uint count, const cl_event *events,
                            cl_event *event)
{
    (void)queue;
    (void)waits;
    (void)count;
    (void)events;
    (void)event;
    memcpy(buffer->bytes + offset, bytes, size);
    copies++;
    return STATUS;
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                           size_t to_offset, size_t size, cl_uint count, const cl_event *events,
                           cl_event *event)
{
    (void)queue;
    (void)count;
    (void)events;
    (void)event;
    memcpy(to->bytes + to_offset, from->bytes + from_offset, size);
    return STATUS;
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool waits, size_t offset,
                           size_t size, void *bytes, cl_uint count, const cl_event *events,
                           cl_event *event)
{
    (void)queue;
    (void)waits;
    (void)count;
    (void)events;
    (void)event;
    memcpy(bytes, buffer->bytes + offset, size);
    return STATUS;
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint count, const cl_event *events, cl_event *event)
{
    (void)queue;
    (void)dimensions;
    (void)offset;
    (void)global;
    (void)local;
    (void)count;
    (void)events;
    (void)event;
    if (STATUS != CL_SUCCESS) {
        return STATUS;
    }
    if (kernel->name == PRODUCT) {
        run_product(kernel);
        return CL_SUCCESS;
    }
    cl_mem from = kernel->buffers[0];
    cl_mem to = kernel->buffers[1];
    if (kernel->name == COPY) {
        memcpy(to->bytes, from->bytes, from->size < to->size ? from->size : to->size);
    } else {
        memset(from->bytes, kernel->byte, from->size);
    }
    return CL_SUCCESS;
}

cl_int clFinish(cl_command_queue queue)
{
    (void)queue;
    return STATUS;
}
