#include "provider/kernel/nvml_api.h"

#include <dlfcn.h>
#include <string.h>

/* A pointer to a function comes from dlsym as a pointer to data, which C converts only by bytes. */
static bool find(const struct nvml_api *api, const char *name, void *ret_function)
{
    void *place = dlsym(api->library, name);
    memcpy(ret_function, &place, sizeof place);
    return place != NULL;
}

static bool find_needed(const struct nvml_api *api, const char *name, void *ret_function,
                        struct problem *problem)
{
    if (find(api, name, ret_function)) {
        return true;
    }
    problem_set(problem, "NVIDIA's management library has no function %s, so it is too old", name);
    return false;
}

bool nvml_api_load(const char *library, struct nvml_api *ret_api, struct problem *ret_problem)
{
    struct nvml_api api = {.library = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    if (api.library == NULL) {
        const char *why = dlerror();
        problem_set(ret_problem, "no management library of NVIDIA: %s",
                    why != NULL ? why : library);
        return false;
    }
    bool good = true;
#define NVML_FIND(name, arguments)                                                                 \
    good = good && find_needed(&api, #name, (void *)&api.name, ret_problem);
    NVML_CALLS(NVML_FIND)
#undef NVML_FIND
    if (!good) {
        (void)dlclose(api.library);
        return false;
    }
#define NVML_FIND(name, arguments) (void)find(&api, #name, (void *)&api.name);
    NVML_FIGURE_CALLS(NVML_FIND)
#undef NVML_FIND
    *ret_api = api;
    return true;
}

static const struct {
    nvml_result result;
    const char *phrase;
} results[] = {
    {NVML_UNINITIALIZED, "the library is not started"},
    {NVML_INVALID_ARGUMENT, "the library takes no such value"},
    {NVML_NOT_SUPPORTED, "the device does not tell"},
    {NVML_NO_PERMISSION, "this user may not ask"},
    {NVML_NOT_FOUND, "the library does not find it"},
    {NVML_INSUFFICIENT_SIZE, "there are too many of them"},
    {NVML_INSUFFICIENT_POWER, "the device has no power cable"},
    {NVML_DRIVER_NOT_LOADED, "the driver is not loaded"},
    {NVML_TIMEOUT, "the device did not answer in time"},
    {NVML_IRQ_ISSUE, "the kernel does not get the device's interrupts"},
    {NVML_LIBRARY_NOT_FOUND, "a library of the driver is missing"},
    {NVML_FUNCTION_NOT_FOUND, "the driver's library has no such function"},
    {NVML_CORRUPTED_INFOROM, "the device's own records are damaged"},
    {NVML_GPU_IS_LOST, "the device fell off the bus"},
    {NVML_RESET_REQUIRED, "the device needs a reset"},
    {NVML_OPERATING_SYSTEM, "the operating system refused a call of the library"},
    {NVML_LIB_RM_VERSION_MISMATCH, "the library and the driver differ in version"},
    {NVML_IN_USE, "the device is busy with a call of another program"},
    {NVML_MEMORY, "the library has no memory left"},
    {NVML_NO_DATA, "the device has no such figure yet"},
    {NVML_GPU_NOT_FOUND, "the driver knows no device"},
    {NVML_UNKNOWN, "the driver does not know what failed"},
};

const char *nvml_api_error(nvml_result result)
{
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        if (results[i].result == result) {
            return results[i].phrase;
        }
    }
    return "an error of NVML without a name";
}
