/* provider/device/wasm_engine.h says which engine of this machine runs WASM modules.
 *
 * The engine is a program of the host, or the library of wasmtime, which our program bourse-wasm
 * loads. Both run in the jail of each subtask. The agent tries the engine in a jail at a start
 * (provider/executors/wasm.h), and never reads a module or loads the library itself. */
#ifndef BOURSE_PROVIDER_DEVICE_WASM_ENGINE_H
#define BOURSE_PROVIDER_DEVICE_WASM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

enum { WASM_PATH_SIZE = 1100, WASM_NAME_SIZE = 64 };

/* Exit codes of bourse-wasm.cjs and bourse-wasm, with a line that begins with WASM_SAYS on standard
 * error. */
enum {
    WASM_UNUSABLE = 126, /* the file is no module that runs here */
    WASM_TRAPPED = 134,
};
#define WASM_SAYS "bourse-wasm: "

/* The engine's code and heap take this part of a subtask's memory; the module has the rest. Node 20
 * takes 44 MiB before it reads a module. */
#define WASM_ENGINE_BYTES (UINT64_C(64) << 20)

struct wasm_engine {
    char path[WASM_PATH_SIZE]; /* the engine's program, or wasmtime's library; "": none */
    bool is_library;
    char host
        [WASM_PATH_SIZE]; /* the agent's copy of bourse-wasm.cjs, or bourse-wasm for a library */
    char name[WASM_NAME_SIZE]; /* what the engine says of itself, as in "node v20.20.2" */
    /* True: a control group bounds the memory of a jail. False: limits of the address space do, so
     * the engine must not reserve addresses, and needs more memory. */
    bool has_group;
    bool is_known;      /* the engine was tried, or there is none to try */
    char unusable[512]; /* why no modules run here; "": they do */
};

/* Returns the least memory in bytes that a subtask of a module needs on this machine. */
uint64_t wasm_engine_least(const struct wasm_engine *engine);
/* Returns true when modules run here in jails of this memory. */
bool wasm_engine_suffices(const struct wasm_engine *engine, uint64_t memory_bytes);

#endif
