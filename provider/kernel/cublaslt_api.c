#include "provider/kernel/cublaslt_api.h"

#include "provider/kernel/library.h"

#include <dlfcn.h>
#include <stddef.h>

static bool load(const char *library, struct cublaslt_api *ret_api, struct problem *ret_problem)
{
#define CUBLASLT_NEEDED(result, name, arguments)                                                   \
    {#name, offsetof(struct cublaslt_api, name), false},
    static const struct library_function functions[] = {CUBLASLT_CALLS(CUBLASLT_NEEDED)};
#undef CUBLASLT_NEEDED
    static const struct library_table table = {.absence = "no cuBLASLt",
                                               .title = "cuBLASLt",
                                               .verdict = "so it is too old",
                                               .functions = functions,
                                               .count = sizeof functions / sizeof functions[0]};
    ret_api->library = library_load(library, &table, ret_api, ret_problem);
    return ret_api->library != NULL;
}

bool cublaslt_api_load(const char *library, struct cublaslt_api *ret_api,
                       char ret_name[CUBLASLT_NAME_SIZE], struct problem *ret_problem)
{
    if (!load(library, ret_api, ret_problem)) {
        return false;
    }
    const size_t version = ret_api->cublasLtGetVersion();
    (void)snprintf(ret_name, CUBLASLT_NAME_SIZE, "cuBLASLt %zu.%zu.%zu", version / 10000 % 1000,
                   version / 100 % 100, version % 100);
    if (version < CUBLASLT_OLDEST || version >= CUBLASLT_TOO_NEW) {
        problem_set(ret_problem, "%s is not known here; versions 12 and 13 are", ret_name);
        (void)dlclose(ret_api->library);
        ret_api->library = NULL;
        return false;
    }
    return true;
}
