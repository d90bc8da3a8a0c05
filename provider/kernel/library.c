#include "provider/kernel/library.h"

#include <assert.h>
#include <dlfcn.h>
#include <string.h>

static_assert(sizeof(void *) == sizeof(void (*)(void)), "dlsym returns pointers to functions");

/* Returns the first function that the library lacks and the caller needs, or NULL. */
static const char *first_missing(void *handle, const struct library_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct library_function *function = &table->functions[i];
        if (!function->is_optional && dlsym(handle, function->name) == NULL) {
            return function->name;
        }
    }
    return NULL;
}

void *library_load(const char *library, const struct library_table *table, void *ret_functions,
                   struct problem *ret_problem)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *why = dlerror();
        problem_set(ret_problem, "%s: %s", table->absence, why != NULL ? why : library);
        return NULL;
    }
    const char *missing = first_missing(handle, table);
    if (missing != NULL) {
        problem_set(ret_problem, "%s has no function %s, %s", table->title, missing,
                    table->verdict);
        (void)dlclose(handle);
        return NULL;
    }
    for (size_t i = 0; i < table->count; i++) {
        /* C converts a pointer to data into one to a function only by its bytes. */
        void *place = dlsym(handle, table->functions[i].name);
        memcpy((char *)ret_functions + table->functions[i].offset, &place, sizeof place);
    }
    return handle;
}
