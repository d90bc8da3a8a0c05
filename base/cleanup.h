/* base/cleanup.h - ends a local value when its scope does.
 *
 * `CLEANUP(depth_destroy) struct depth *depth = ...;` calls depth_destroy(&depth) at the end of the
 * scope, so any destructor that takes a `T **` serves. One of the two compiler extensions we use;
 * the other, 128-bit integers, is wrapped in checked.h. */
#ifndef BOURSE_BASE_CLEANUP_H
#define BOURSE_BASE_CLEANUP_H

#define CLEANUP(destructor) __attribute__((cleanup(destructor)))

#endif
