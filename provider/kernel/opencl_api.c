#include "provider/kernel/opencl_api.h"

#include <dlfcn.h>
#include <string.h>

/* A pointer to a function comes from dlsym as a pointer to data, which C converts only by bytes. */
static bool find(struct opencl_api *api, const char *name, void *ret_function, size_t size,
                 struct problem *problem)
{
    void *place = dlsym(api->library, name);
    if (place == NULL || size != sizeof place) {
        problem_set(problem, "the OpenCL library has no function %s, so it is older than 1.2",
                    name);
        return false;
    }
    memcpy(ret_function, &place, sizeof place);
    return true;
}

bool opencl_api_load(const char *library, struct opencl_api *ret_api, struct problem *ret_problem)
{
    struct opencl_api api = {.library = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    if (api.library == NULL) {
        const char *why = dlerror();
        problem_set(ret_problem, "no OpenCL library: %s", why != NULL ? why : library);
        return false;
    }
    bool good = true;
#define OPENCL_FIND(name)                                                                          \
    good = good && find(&api, #name, (void *)&api.name, sizeof api.name, ret_problem);
    OPENCL_CALLS(OPENCL_FIND)
#undef OPENCL_FIND
    if (!good) {
        (void)dlclose(api.library);
        return false;
    }
    *ret_api = api;
    return true;
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
