/* provider/device/wasm_engine.h says which engine of this machine runs WASM modules.
 *
 * The engine is a program of the host that runs in the jail of each subtask. The agent tries the
 * engine in a jail at a start (provider/executors/wasm.h), and never reads a module itself. */
#ifndef BOURSE_PROVIDER_DEVICE_WASM_ENGINE_H
#define BOURSE_PROVIDER_DEVICE_WASM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

enum { WASM_PATH_SIZE = 1100, WASM_NAME_SIZE = 64 };

/* The engine's code and heap take this part of a subtask's memory; the module has the rest. Node 20
 * takes 44 MiB before it reads a module. */
#define WASM_ENGINE_BYTES (UINT64_C(64) << 20)

struct wasm_engine {
    char path[WASM_PATH_SIZE]; /* the engine's program; "": none */
    char host[WASM_PATH_SIZE]; /* the agent's copy of the installed bourse-wasm.cjs */
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
