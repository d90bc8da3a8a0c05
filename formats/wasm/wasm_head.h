/* formats/wasm/wasm_head.h reads the first eight bytes of a WASM file. They are "\0asm", then a
 * version and a layer of two bytes each, with the low byte first. A module has version 1 and
 * layer 0; a file of the component model has layer 1. Pure. */
#ifndef BOURSE_FORMATS_WASM_WASM_HEAD_H
#define BOURSE_FORMATS_WASM_WASM_HEAD_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>

enum { WASM_HEAD_BYTES = 8 };

/* Returns true when the bytes begin as every WASM file does. */
bool wasm_head_is(const void *bytes, size_t length);
/* Returns true when they are the begin of a module that an engine may run. Otherwise the problem
 * says what the file is instead. */
bool wasm_head_check(const void *bytes, size_t length, struct problem *ret_problem);

#endif
