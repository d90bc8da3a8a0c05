/* provider/kernel/library.h loads a shared library when the program runs, and fills a table of
 * pointers to its functions. No program of bourse is linked with the library of a device, so that
 * each runs on machines without the device. */
#ifndef BOURSE_PROVIDER_KERNEL_LIBRARY_H
#define BOURSE_PROVIDER_KERNEL_LIBRARY_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>

/* One function, and the place of its pointer in the caller's struct. */
struct library_function {
    const char *name;
    size_t offset;
    bool is_optional; /* the pointer is NULL where the library lacks the function */
};

struct library_table {
    const char *absence; /* begins the problem of a library that does not load: "no CUDA driver" */
    const char *title;   /* begins the problem of a missing function: "the CUDA driver" */
    const char *verdict; /* ends that problem: "so it is too old" */
    const struct library_function *functions;
    size_t count;
};

/* Loads the library of this name, or path; NULL looks for the functions in the program itself.
 * Fills the pointers in *ret_functions, which is a struct of pointers to functions at the table's
 * offsets. Returns the handle for dlclose. Returns NULL with the problem when the library or a
 * function that is not optional is missing. Then nothing is loaded and *ret_functions is as
 * before. */
void *library_load(const char *library, const struct library_table *table, void *ret_functions,
                   struct problem *ret_problem);

#endif
