/* provider/kernel/cuda_api.h loads NVIDIA's driver library when the program runs.
 *
 * Nothing of bourse is linked with CUDA or built with its headers. This file has the names, numbers
 * and types of the driver's binary interface, written down by us. The test test_cuda_header.c
 * compares them with cuda.h where the toolkit is installed. The functions have the names of the
 * library's real symbols, such as cuMemAlloc_v2. */
#ifndef BOURSE_PROVIDER_KERNEL_CUDA_API_H
#define BOURSE_PROVIDER_KERNEL_CUDA_API_H

#include "base/problem.h"
#include "provider/session/device_fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUDA_LIBRARY "libcuda.so.1"

/* The test of the numbers gives the types of cuda.h instead. */
#ifndef CUDA_API_TYPES
typedef int cuda_result;
typedef int cuda_attribute;     /* what is asked of a device */
typedef int cuda_function_fact; /* what is asked of a function, or set */
typedef int cuda_jit_option;
typedef int cuda_device;       /* the number of a device, from 0 */
typedef uint64_t cuda_address; /* in the memory of the device */
typedef struct CUctx_st *cuda_context;
typedef struct CUmod_st *cuda_module;
typedef struct CUfunc_st *cuda_function;
typedef struct CUstream_st *cuda_stream;
typedef struct {
    char bytes[16];
} cuda_uuid;
#endif

/* Results of the calls. */
enum {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_DEINITIALIZED = 4,
    CUDA_STUB_LIBRARY = 34,
    CUDA_DEVICE_UNAVAILABLE = 46,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_IMAGE = 200,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_NO_BINARY_FOR_GPU = 209,
    CUDA_ECC_UNCORRECTABLE = 214,
    CUDA_INVALID_PTX = 218,
    CUDA_NVLINK_UNCORRECTABLE = 220,
    CUDA_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_JIT_COMPILATION_DISABLED = 223,
    CUDA_INVALID_SOURCE = 300,
    CUDA_OPERATING_SYSTEM = 304,
    CUDA_NOT_FOUND = 500,
    CUDA_ILLEGAL_ADDRESS = 700,
    CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_LAUNCH_TIMEOUT = 702,
    CUDA_CONTEXT_IS_DESTROYED = 709,
    CUDA_ASSERT = 710,
    CUDA_HARDWARE_STACK_ERROR = 714,
    CUDA_ILLEGAL_INSTRUCTION = 715,
    CUDA_MISALIGNED_ADDRESS = 716,
    CUDA_INVALID_ADDRESS_SPACE = 717,
    CUDA_INVALID_PC = 718,
    CUDA_LAUNCH_FAILED = 719,
    CUDA_SYSTEM_NOT_READY = 802,
    CUDA_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_UNKNOWN = 999,
};

/* Attributes of devices. The largest grid has the three numbers from MAX_GRID_X on, and the largest
 * block those from MAX_BLOCK_X on. */
enum {
    CUDA_MAX_THREADS_PER_BLOCK = 1,
    CUDA_MAX_BLOCK_X = 2,
    CUDA_MAX_GRID_X = 5,
    CUDA_MAX_SHARED_PER_BLOCK = 8,
    CUDA_MULTIPROCESSOR_COUNT = 16,
    CUDA_INTEGRATED = 18,
    CUDA_CAPABILITY_MAJOR = 75,
    CUDA_CAPABILITY_MINOR = 76,
};

enum {
    CUDA_FUNCTION_MAX_THREADS = 0, /* of a block */
    CUDA_FUNCTION_MAX_DYNAMIC_SHARED = 8,
};

/* A stream with this flag does not wait for launches, and no launch waits for the stream. */
enum { CUDA_STREAM_NON_BLOCKING = 1 };

/* Options of cuModuleLoadDataEx. */
enum {
    CUDA_JIT_ERROR_LOG = 5,
    CUDA_JIT_ERROR_LOG_BYTES = 6,
};

/* CALL(NAME, ARGUMENTS) for each function that every driver since CUDA 7 has. */
#define CUDA_CALLS(CALL)                                                                           \
    CALL(cuInit, (unsigned flags))                                                                 \
    CALL(cuDriverGetVersion, (int *ret_version))                                                   \
    CALL(cuDeviceGetCount, (int *ret_count))                                                       \
    CALL(cuDeviceGet, (cuda_device * ret_device, int number))                                      \
    CALL(cuDeviceGetName, (char *ret_name, int size, cuda_device device))                          \
    CALL(cuDeviceGetPCIBusId, (char *ret_id, int size, cuda_device device))                        \
    CALL(cuDeviceGetAttribute, (int *ret_value, cuda_attribute what, cuda_device device))          \
    CALL(cuDeviceTotalMem_v2, (size_t * ret_bytes, cuda_device device))                            \
    CALL(cuDevicePrimaryCtxRetain, (cuda_context * ret_context, cuda_device device))               \
    CALL(cuCtxSetCurrent, (cuda_context context))                                                  \
    CALL(cuCtxSynchronize, (void))                                                                 \
    CALL(cuModuleLoadDataEx, (cuda_module * ret_module, const void *image, unsigned count,         \
                              cuda_jit_option *options, void **values))                            \
    CALL(cuModuleUnload, (cuda_module module))                                                     \
    CALL(cuModuleGetFunction,                                                                      \
         (cuda_function * ret_function, cuda_module module, const char *name))                     \
    CALL(cuFuncGetAttribute, (int *ret_value, cuda_function_fact what, cuda_function function))    \
    CALL(cuMemAlloc_v2, (cuda_address * ret_address, size_t size))                                 \
    CALL(cuMemFree_v2, (cuda_address address))                                                     \
    CALL(cuMemcpyHtoD_v2, (cuda_address to, const void *from, size_t size))                        \
    CALL(cuMemcpyDtoH_v2, (void *to, cuda_address from, size_t size))                              \
    CALL(cuMemcpyDtoD_v2, (cuda_address to, cuda_address from, size_t size))                       \
    CALL(cuMemsetD8_v2, (cuda_address to, unsigned char byte, size_t size))                        \
    CALL(cuLaunchKernel,                                                                           \
         (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,               \
          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,             \
          cuda_stream stream, void **parameters, void **extra))

/* Functions without which the program goes on: newer drivers have them. */
#define CUDA_NEWER_CALLS(CALL)                                                                     \
    CALL(cuDeviceGetUuid_v2, (cuda_uuid * ret_uuid, cuda_device device)) /* CUDA 11.4 */           \
    CALL(cuDevicePrimaryCtxRelease_v2, (cuda_device device))             /* CUDA 11 */             \
    CALL(cuFuncSetAttribute,                                                                       \
         (cuda_function function, cuda_function_fact what, int value)) /* CUDA 9 */                \
    CALL(cuFuncGetParamInfo, (cuda_function function, size_t index, size_t * ret_offset,           \
                              size_t * ret_size)) /* CUDA 12.4 */                                  \
    CALL(cuStreamCreate, (cuda_stream * ret_stream, unsigned flags))                               \
    CALL(cuStreamDestroy_v2, (cuda_stream stream))                                                 \
    CALL(cuStreamSynchronize, (cuda_stream stream))                                                \
    CALL(cuMemcpyHtoDAsync_v2, (cuda_address to, const void *from, size_t size, cuda_stream stream))

/* The members have the names of the functions, which are CUDA's. */
struct cuda_api {
    void *library;
#define CUDA_MEMBER(name, arguments) cuda_result(*name) arguments;
    CUDA_CALLS(CUDA_MEMBER)
    CUDA_NEWER_CALLS(CUDA_MEMBER) /* each may be NULL */
#undef CUDA_MEMBER
};

/* Loads the library of this name, or path; NULL looks for the functions in the program itself.
 * Returns false with a line that says what is missing; then nothing is loaded. */
bool cuda_api_load(const char *library, struct cuda_api *ret_api, struct problem *ret_problem);

/* Returns a phrase for a result of CUDA, or NULL for a result without one. */
const char *cuda_api_error(int result);

/* Returns true when the kernel did something wrong, such as a read outside its buffers. After this
 * result, every later CUDA call of the process fails. */
bool cuda_api_is_fault(int result);
/* Returns true when the device or the driver failed, and the job is not the cause. */
bool cuda_api_is_lost(int result);
/* Returns what a device has that gives this result before a job is to blame. */
enum device_fault cuda_api_fault(int result);

#endif
