#include "provider/device/wasm_engine.h"

#include "formats/limits.h"

#define MIB (UINT64_C(1) << 20)

/* A program without a control group gets twice its memory and 256 MiB of addresses
 * (provider/worker/run.c). Node 20 takes 800 MiB of addresses besides the module's memory. */
uint64_t wasm_engine_least(const struct wasm_engine *engine)
{
    return engine->has_group ? FORMAT_WASM_MEMORY_BYTES : 512 * MIB;
}

bool wasm_engine_suffices(const struct wasm_engine *engine, uint64_t memory_bytes)
{
    return engine->is_known && engine->unusable[0] == '\0' &&
           memory_bytes >= wasm_engine_least(engine);
}
