#include "provider/kernel/opencl_api.h"

#include "provider/kernel/library.h"

#include <stddef.h>

bool opencl_api_load(const char *library, struct opencl_api *ret_api, struct problem *ret_problem)
{
#define OPENCL_NEEDED(name) {#name, offsetof(struct opencl_api, name), false},
    static const struct library_function functions[] = {OPENCL_CALLS(OPENCL_NEEDED)};
#undef OPENCL_NEEDED
    static const struct library_table table = {.absence = "no OpenCL library",
                                               .title = "the OpenCL library",
                                               .verdict = "so it is older than 1.2",
                                               .functions = functions,
                                               .count = sizeof functions / sizeof functions[0]};
    void *handle = library_load(library, &table, ret_api, ret_problem);
    if (handle != NULL) {
        ret_api->library = handle;
    }
    return handle != NULL;
}

const char *opencl_api_error(cl_int code)
{
    switch (code) {
    case CL_DEVICE_NOT_FOUND:
        return "no device";
    case CL_DEVICE_NOT_AVAILABLE:
        return "the device is not available";
    case CL_COMPILER_NOT_AVAILABLE:
        return "the device has no compiler";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
        return "the device has no memory left";
    case CL_OUT_OF_RESOURCES:
        return "the device has no resources left";
    case CL_OUT_OF_HOST_MEMORY:
        return "the machine has no memory left";
    case CL_INVALID_BUFFER_SIZE:
        return "a buffer is larger than the device allows";
    case CL_INVALID_WORK_GROUP_SIZE:
        return "the work-groups do not fit the device or the kernel";
    case CL_INVALID_WORK_ITEM_SIZE:
        return "a work-group has more work-items in one dimension than the device allows";
    case CL_INVALID_ARG_SIZE:
        return "the argument has another size than the kernel's parameter";
    case CL_INVALID_ARG_VALUE:
    case CL_INVALID_MEM_OBJECT:
        return "the argument is of another kind than the kernel's parameter";
    case CL_INVALID_BUILD_OPTIONS:
        return "the compiler does not know these options";
    case -1001: /* of the ICD extension */
        return "no OpenCL platform is installed";
    default:
        return NULL;
    }
}
