/* base/cleanup.h ends a local value when its scope ends.
 *
 * `CLEANUP(depth_destroy) struct depth *depth = ...;` calls depth_destroy(&depth) at the end of
 * the scope. Any destructor that takes a `T **` can be used. CLEANUP is one of the compiler
 * extensions that the code uses. Another one, 128-bit integers, is wrapped in checked.h. */
#ifndef BOURSE_BASE_CLEANUP_H
#define BOURSE_BASE_CLEANUP_H

#define CLEANUP(destructor) __attribute__((cleanup(destructor)))

#endif
