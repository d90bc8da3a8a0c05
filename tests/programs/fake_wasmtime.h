/* tests/programs/fake_wasmtime.h has what the files of wasmtime's stand-in share. */
#ifndef BOURSE_TESTS_PROGRAMS_FAKE_WASMTIME_H
#define BOURSE_TESTS_PROGRAMS_FAKE_WASMTIME_H

#include "provider/wasm/wasmtime_api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTOTYPE(result, name, arguments) result name arguments;
WASMTIME_CALLS(PROTOTYPE)
WASMTIME_OPTIONAL_CALLS(PROTOTYPE)
bool wasi_config_preopen_dir(wasi_config_t *config, const char *host, const char *guest,
                             size_t folders, size_t files);

enum { NAMES = 64, ITEMS = 16, FOLDERS = 4, PAGE_BYTES = 65536 };

struct wasm_config_t {
    uint64_t reservation, guard, growth;
    bool has_copies, is_parallel;
};
struct wasm_engine_t {
    struct wasm_config_t config;
};
struct wasm_memorytype_t {
    uint64_t pages;
};
struct wasm_externtype_t {
    uint8_t kind;
    struct wasm_memorytype_t memory;
};
struct wasm_importtype_t {
    wasm_byte_vec_t module, name;
    struct wasm_externtype_t type;
};
struct wasm_exporttype_t {
    wasm_byte_vec_t name;
    struct wasm_externtype_t type;
};
struct wasmtime_module {
    char *bytes;
    size_t size;
    struct wasm_importtype_t imports[ITEMS];
    struct wasm_exporttype_t exports[ITEMS];
    size_t import_count, export_count;
    uint64_t pages;
};
struct wasmtime_context {
    wasi_config_t *wasi;
    int64_t memory_bytes, memories;
};
struct wasmtime_store {
    struct wasmtime_context context;
};
struct wasmtime_linker {
    bool has_wasi;
    const wasmtime_module_t *module;
};
struct wasi_config_t {
    char *words[NAMES], *names[NAMES], *values[NAMES];
    size_t word_count, variable_count;
    char hosts[FOLDERS][256], guests[FOLDERS][256];
    size_t folder_count;
    int streams; /* of the three */
};
struct wasmtime_error {
    char text[256];
    bool has_status;
    int status;
};
struct wasm_trap_t {
    int code;
};

extern const wasmtime_module_t *fake_linked; /* by the linker of the process */

/* Ends the process with the line. */
__attribute__((noreturn)) void fake_misuse(const char *what);
/* Returns what stands behind the word in FAKE_WASMTIME, up to a comma; NULL: nothing. */
const char *fake_told(const char *word);
bool fake_fails(const char *function);
/* Returns zeroed memory, which counts as alive until fake_destroy. */
void *fake_make(size_t size);
void fake_destroy(void *made);
wasmtime_error_t *fake_error(const char *text);
void fake_fill(wasm_byte_vec_t *bytes, const void *from, size_t size);

#define FAIL_HERE()                                                                                \
    if (fake_fails(__func__)) {                                                                    \
        return fake_error("the fake fails\n\nCaused by:\n    it was told to");                     \
    }

#endif
