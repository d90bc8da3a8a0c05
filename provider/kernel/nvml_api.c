#include "provider/kernel/nvml_api.h"

#include "provider/kernel/library.h"

#include <stddef.h>

bool nvml_api_load(const char *library, struct nvml_api *ret_api, struct problem *ret_problem)
{
#define NVML_NEEDED(name, arguments) {#name, offsetof(struct nvml_api, name), false},
#define NVML_OPTIONAL(name, arguments) {#name, offsetof(struct nvml_api, name), true},
    static const struct library_function functions[] = {NVML_CALLS(NVML_NEEDED)
                                                            NVML_FIGURE_CALLS(NVML_OPTIONAL)};
#undef NVML_NEEDED
#undef NVML_OPTIONAL
    static const struct library_table table = {.absence = "no management library of NVIDIA",
                                               .title = "NVIDIA's management library",
                                               .verdict = "so it is too old",
                                               .functions = functions,
                                               .count = sizeof functions / sizeof functions[0]};
    void *handle = library_load(library, &table, ret_api, ret_problem);
    if (handle != NULL) {
        ret_api->library = handle;
    }
    return handle != NULL;
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
