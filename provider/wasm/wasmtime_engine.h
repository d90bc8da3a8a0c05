/* provider/wasm/wasmtime_engine.h opens wasmtime's library, makes an engine, and reads the version.
 *
 * The process has one engine, and ends with it. So wasmtime_engine_close is for tests, which count
 * what is left. */
#ifndef BOURSE_PROVIDER_WASM_WASMTIME_ENGINE_H
#define BOURSE_PROVIDER_WASM_WASMTIME_ENGINE_H

#include "base/problem.h"
#include "provider/wasm/wasmtime_api.h"

#include <stdbool.h>

struct wasmtime_engine {
    struct wasmtime_api api;
    wasm_engine_t *engine;
    unsigned version; /* WASMTIME_OLDEST to WASMTIME_NEWEST */
    char text[32];    /* the version, as in "47.0.3" */
};

/* Opens the engine of the library of this path; NULL: of the program itself. With `may_reserve`
 * the engine reserves addresses for memories, which makes modules faster. Without it the engine
 * takes no more addresses than a memory has. Returns false with the problem when the library is
 * missing, too old, too new, or does not work. Then nothing is open. */
bool wasmtime_engine_open(const char *library, bool may_reserve, struct wasmtime_engine *ret_engine,
                          struct problem *ret_problem);
void wasmtime_engine_close(struct wasmtime_engine *engine);

/* Gives the module the folder `host` under the name `guest`, to read and to write. Returns false
 * when the folder cannot be opened. */
bool wasmtime_engine_preopen(const struct wasmtime_engine *engine, wasi_config_t *config,
                             const char *host, const char *guest);

/* Writes the error's message as one line, and deletes the error. */
void wasmtime_engine_explain(const struct wasmtime_engine *engine, wasmtime_error_t *error,
                             char *ret_text, size_t capacity);
/* Writes the bytes of a message as one line, and deletes them. */
void wasmtime_engine_one_line(const struct wasmtime_engine *engine, wasm_byte_vec_t *message,
                              char *ret_text, size_t capacity);

#endif
