#include "provider/kernel/cuda_api.h"

#include "provider/kernel/library.h"

#include <stddef.h>

bool cuda_api_load(const char *library, struct cuda_api *ret_api, struct problem *ret_problem)
{
#define CUDA_NEEDED(name, arguments) {#name, offsetof(struct cuda_api, name), false},
#define CUDA_OPTIONAL(name, arguments) {#name, offsetof(struct cuda_api, name), true},
    static const struct library_function functions[] = {CUDA_CALLS(CUDA_NEEDED)
                                                            CUDA_NEWER_CALLS(CUDA_OPTIONAL)};
#undef CUDA_NEEDED
#undef CUDA_OPTIONAL
    static const struct library_table table = {.absence = "no CUDA driver",
                                               .title = "the CUDA driver",
                                               .verdict = "so it is too old",
                                               .functions = functions,
                                               .count = sizeof functions / sizeof functions[0]};
    void *handle = library_load(library, &table, ret_api, ret_problem);
    if (handle != NULL) {
        ret_api->library = handle;
    }
    return handle != NULL;
}

/* One result: its phrase, and who is to blame. */
enum blame { BLAME_NONE, BLAME_KERNEL, BLAME_DEVICE };
static const struct {
    int result;
    enum blame blame;
    const char *phrase;
} results[] = {
    {CUDA_INVALID_VALUE, BLAME_NONE, "the driver takes no such value"},
    {CUDA_OUT_OF_MEMORY, BLAME_NONE, "the device has no memory left"},
    {CUDA_NOT_INITIALIZED, BLAME_DEVICE, "the driver is not started"},
    {CUDA_DEINITIALIZED, BLAME_DEVICE, "the driver is shutting down"},
    {CUDA_STUB_LIBRARY, BLAME_DEVICE, "the library is the toolkit's stub, which is no driver"},
    {CUDA_DEVICE_UNAVAILABLE, BLAME_DEVICE, "the device is in use by another program alone"},
    {CUDA_NO_DEVICE, BLAME_DEVICE, "no device"},
    {CUDA_INVALID_DEVICE, BLAME_DEVICE, "the device is not there any more"},
    {CUDA_INVALID_IMAGE, BLAME_NONE, "it is neither PTX nor a cubin"},
    {CUDA_INVALID_CONTEXT, BLAME_DEVICE, "the device is not open any more"},
    {CUDA_NO_BINARY_FOR_GPU, BLAME_NONE, "it has no code for this device's architecture"},
    {CUDA_ECC_UNCORRECTABLE, BLAME_DEVICE, "the device's memory failed"},
    {CUDA_INVALID_PTX, BLAME_NONE, "the PTX is wrong"},
    {CUDA_NVLINK_UNCORRECTABLE, BLAME_DEVICE, "the device's link failed"},
    {CUDA_JIT_COMPILER_NOT_FOUND, BLAME_DEVICE, "the driver has no compiler for PTX"},
    {CUDA_UNSUPPORTED_PTX_VERSION, BLAME_NONE,
     "its .version of PTX is newer than the driver knows"},
    {CUDA_JIT_COMPILATION_DISABLED, BLAME_DEVICE, "the driver's compiler for PTX is switched off"},
    {CUDA_INVALID_SOURCE, BLAME_NONE, "the source is wrong"},
    {CUDA_OPERATING_SYSTEM, BLAME_DEVICE, "the operating system refused a call of the driver"},
    {CUDA_NOT_FOUND, BLAME_NONE, "it is not there"},
    {CUDA_ILLEGAL_ADDRESS, BLAME_KERNEL, "the kernel read or wrote outside its buffers"},
    {CUDA_LAUNCH_OUT_OF_RESOURCES, BLAME_NONE,
     "a block of this size has too few registers or too little shared memory"},
    {CUDA_LAUNCH_TIMEOUT, BLAME_KERNEL, "the device's own time limit for a kernel is over"},
    {CUDA_CONTEXT_IS_DESTROYED, BLAME_DEVICE, "the device was taken away"},
    {CUDA_ASSERT, BLAME_KERNEL, "an assertion of the kernel failed"},
    {CUDA_HARDWARE_STACK_ERROR, BLAME_KERNEL, "the kernel's stack is broken"},
    {CUDA_ILLEGAL_INSTRUCTION, BLAME_KERNEL, "the kernel has an illegal instruction"},
    {CUDA_MISALIGNED_ADDRESS, BLAME_KERNEL, "the kernel used an address that is not aligned"},
    {CUDA_INVALID_ADDRESS_SPACE, BLAME_KERNEL, "the kernel used an address of another space"},
    {CUDA_INVALID_PC, BLAME_KERNEL, "the kernel jumped to no instruction"},
    {CUDA_LAUNCH_FAILED, BLAME_KERNEL, "the kernel failed"},
    {CUDA_SYSTEM_NOT_READY, BLAME_DEVICE, "the machine's GPUs are not ready"},
    {CUDA_SYSTEM_DRIVER_MISMATCH, BLAME_DEVICE, "the library and the driver differ in version"},
    {CUDA_UNKNOWN, BLAME_DEVICE, "the driver does not know what failed"},
};
enum { RESULTS = sizeof results / sizeof results[0] };

static size_t place_of(int result)
{
    size_t place = 0;
    while (place < RESULTS && results[place].result != result) {
        place++;
    }
    return place;
}

const char *cuda_api_error(int result)
{
    const size_t place = place_of(result);
    return place < RESULTS ? results[place].phrase : NULL;
}

bool cuda_api_is_fault(int result)
{
    const size_t place = place_of(result);
    return place < RESULTS && results[place].blame == BLAME_KERNEL;
}

enum device_fault cuda_api_fault(int result)
{
    switch (result) {
    case CUDA_OK:
        return DEVICE_FAULT_NONE;
    case CUDA_OUT_OF_MEMORY:
        return DEVICE_FAULT_MEMORY;
    case CUDA_NO_DEVICE:
    case CUDA_INVALID_DEVICE:
    case CUDA_ECC_UNCORRECTABLE:
    case CUDA_NVLINK_UNCORRECTABLE:
    case CUDA_CONTEXT_IS_DESTROYED:
        return DEVICE_FAULT_LOST;
    case CUDA_NOT_INITIALIZED:
    case CUDA_DEINITIALIZED:
    case CUDA_STUB_LIBRARY:
    case CUDA_JIT_COMPILER_NOT_FOUND:
    case CUDA_JIT_COMPILATION_DISABLED:
    case CUDA_SYSTEM_NOT_READY:
    case CUDA_SYSTEM_DRIVER_MISMATCH:
        return DEVICE_FAULT_DRIVER;
    default:
        return DEVICE_FAULT_OTHER;
    }
}

bool cuda_api_is_lost(int result)
{
    const size_t place = place_of(result);
    return place < RESULTS && results[place].blame == BLAME_DEVICE;
}
