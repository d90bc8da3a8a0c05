#include "formats/wasm/wasm_head.h"

#include <stdint.h>
#include <string.h>

static const uint8_t magic[] = {0x00, 'a', 's', 'm'};

bool wasm_head_is(const void *bytes, size_t length)
{
    return length >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

bool wasm_head_check(const void *bytes, size_t length, struct problem *ret_problem)
{
    const uint8_t *head = bytes;
    if (!wasm_head_is(bytes, length)) {
        problem_set(ret_problem, "no WASM module: the file does not begin with \\0asm");
        return false;
    }
    if (length < WASM_HEAD_BYTES) {
        problem_set(ret_problem, "a WASM file that ends after %zu bytes", length);
        return false;
    }
    const unsigned version = head[4] | (unsigned)head[5] << 8;
    const unsigned layer = head[6] | (unsigned)head[7] << 8;
    if (layer != 0) {
        problem_set(ret_problem, "a WASM component (WASI preview 2), and providers run modules of "
                                 "preview 1; build it for wasm32-wasip1");
        return false;
    }
    if (version != 1) {
        problem_set(ret_problem, "a WASM module of version %u, and providers run version 1",
                    version);
        return false;
    }
    return true;
}
