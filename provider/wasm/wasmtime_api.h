/* provider/wasm/wasmtime_api.h loads wasmtime's library when the program runs, and has the part of
 * its C interface that bourse-wasm uses.
 *
 * Nothing of bourse is linked with wasmtime or built with its headers. The names, numbers and types
 * are written down by us from the headers of the versions 28 to 48. The test
 * test_wasmtime_header.c compares them with wasmtime.h where that is found.
 *
 * The interface changes between versions, and no function tells the version. But a module that the
 * library has compiled says by which version (WASMTIME_VERSION_SECTION). So bourse-wasm lets the
 * library compile an empty module first, and uses no version outside of those below. */
#ifndef BOURSE_PROVIDER_WASM_WASMTIME_API_H
#define BOURSE_PROVIDER_WASM_WASMTIME_API_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WASMTIME_OLDEST = 28,
    WASMTIME_NEWEST = 48,
    WASMTIME_ITEM_BYTES = 64,
    /* wasi_config_preopen_dir takes one flag instead of two masks from this version on. */
    WASMTIME_PREOPEN_BY_FLAG = 48,
};

/* A compiled module is an ELF file. This section of it begins with a byte 0, the length of the
 * version in a byte, and the version, as in "47.0.3". */
#define WASMTIME_VERSION_SECTION ".wasmtime.engine"

/* The test of the types gives those of wasmtime.h instead. */
#ifndef WASMTIME_API_TYPES
typedef struct wasm_config_t wasm_config_t;
typedef struct wasm_engine_t wasm_engine_t;
typedef struct wasm_externtype_t wasm_externtype_t;
typedef struct wasm_memorytype_t wasm_memorytype_t;
typedef struct wasm_importtype_t wasm_importtype_t;
typedef struct wasm_exporttype_t wasm_exporttype_t;
typedef struct wasm_trap_t wasm_trap_t;
typedef struct wasi_config_t wasi_config_t;
typedef struct wasmtime_error wasmtime_error_t;
typedef struct wasmtime_module wasmtime_module_t;
typedef const wasmtime_module_t wasmtime_compiled_t; /* const in newer versions alone */
typedef struct wasmtime_store wasmtime_store_t;
typedef struct wasmtime_context wasmtime_context_t;
typedef struct wasmtime_linker wasmtime_linker_t;
typedef struct wasmtime_val wasmtime_val_t; /* only NULL is passed */

/* A list of bytes that the library made, or a name, which has no byte 0 at its end. */
typedef struct wasm_byte_vec_t {
    size_t size;
    char *data;
} wasm_byte_vec_t;

typedef struct wasm_importtype_vec_t {
    size_t size;
    wasm_importtype_t **data;
} wasm_importtype_vec_t;

typedef struct wasm_exporttype_vec_t {
    size_t size;
    wasm_exporttype_t **data;
} wasm_exporttype_vec_t;

typedef struct wasmtime_func {
    uint64_t store_id;
    void *private_place;
} wasmtime_func_t;

/* A linker knows an item by a name. Nobody here looks into it, and that of any version fits. */
struct wasmtime_item {
    uint64_t words[WASMTIME_ITEM_BYTES / sizeof(uint64_t)];
};
#endif

/* Kinds of what a module imports and exports. */
enum {
    WASMTIME_FUNCTION = 0,
    WASMTIME_GLOBAL = 1,
    WASMTIME_TABLE = 2,
    WASMTIME_MEMORY = 3,
};

/* Codes of traps. The numbers from 11 on differ between versions. */
enum {
    WASMTIME_STACK_OVERFLOW = 0,
    WASMTIME_MEMORY_OUT_OF_BOUNDS = 1,
    WASMTIME_HEAP_MISALIGNED = 2,
    WASMTIME_TABLE_OUT_OF_BOUNDS = 3,
    WASMTIME_INDIRECT_CALL_TO_NULL = 4,
    WASMTIME_BAD_SIGNATURE = 5,
    WASMTIME_INTEGER_OVERFLOW = 6,
    WASMTIME_DIVISION_BY_ZERO = 7,
    WASMTIME_BAD_CONVERSION = 8,
    WASMTIME_UNREACHABLE = 9,
    WASMTIME_CODES = 10,
};

/* Masks of wasi_config_preopen_dir before WASMTIME_PREOPEN_BY_FLAG. */
enum { WASMTIME_READ_AND_WRITE = 3 };

/* CALL(RESULT, NAME, ARGUMENTS) for each function. A function that returns an error returns NULL
 * when it succeeds. wasi_config_preopen_dir stands apart, because its type has changed. */
#define WASMTIME_CALLS(CALL)                                                                       \
    CALL(wasm_config_t *, wasm_config_new, (void))                                                 \
    CALL(void, wasmtime_config_memory_reservation_set, (wasm_config_t *, uint64_t))                \
    CALL(void, wasmtime_config_memory_guard_size_set, (wasm_config_t *, uint64_t))                 \
    CALL(void, wasmtime_config_memory_reservation_for_growth_set, (wasm_config_t *, uint64_t))     \
    CALL(void, wasmtime_config_memory_init_cow_set, (wasm_config_t *, bool))                       \
    CALL(wasm_engine_t *, wasm_engine_new_with_config, (wasm_config_t * config)) /* takes it */    \
    CALL(void, wasm_engine_delete, (wasm_engine_t *))                                              \
    CALL(wasmtime_error_t *, wasmtime_module_new,                                                  \
         (wasm_engine_t *, const uint8_t *bytes, size_t size, wasmtime_module_t **ret_module))     \
    CALL(void, wasmtime_module_delete, (wasmtime_module_t *))                                      \
    CALL(wasmtime_error_t *, wasmtime_module_serialize,                                            \
         (wasmtime_compiled_t *, wasm_byte_vec_t * ret_bytes))                                     \
    CALL(void, wasmtime_module_imports,                                                            \
         (const wasmtime_module_t *, wasm_importtype_vec_t *ret_imports))                          \
    CALL(void, wasmtime_module_exports,                                                            \
         (const wasmtime_module_t *, wasm_exporttype_vec_t *ret_exports))                          \
    CALL(const wasm_byte_vec_t *, wasm_importtype_module, (const wasm_importtype_t *))             \
    CALL(const wasm_byte_vec_t *, wasm_importtype_name, (const wasm_importtype_t *))               \
    CALL(const wasm_externtype_t *, wasm_importtype_type, (const wasm_importtype_t *))             \
    CALL(const wasm_byte_vec_t *, wasm_exporttype_name, (const wasm_exporttype_t *))               \
    CALL(const wasm_externtype_t *, wasm_exporttype_type, (const wasm_exporttype_t *))             \
    CALL(uint8_t, wasm_externtype_kind, (const wasm_externtype_t *))                               \
    CALL(const wasm_memorytype_t *, wasm_externtype_as_memorytype_const,                           \
         (const wasm_externtype_t *)) /* NULL: it is no memory */                                  \
    CALL(uint64_t, wasmtime_memorytype_minimum, (const wasm_memorytype_t *)) /* pages */           \
    CALL(void, wasm_importtype_vec_delete, (wasm_importtype_vec_t *))                              \
    CALL(void, wasm_exporttype_vec_delete, (wasm_exporttype_vec_t *))                              \
    CALL(wasmtime_store_t *, wasmtime_store_new,                                                   \
         (wasm_engine_t *, void *data, void (*finalizer)(void *)))                                 \
    CALL(wasmtime_context_t *, wasmtime_store_context, (wasmtime_store_t *))                       \
    CALL(void, wasmtime_store_limiter,                                                             \
         (wasmtime_store_t *, int64_t memory_bytes, int64_t table_elements, int64_t instances,     \
          int64_t tables, int64_t memories)) /* a negative number leaves the default */            \
    CALL(void, wasmtime_store_delete, (wasmtime_store_t *))                                        \
    CALL(wasi_config_t *, wasi_config_new, (void))                                                 \
    CALL(bool, wasi_config_set_argv, (wasi_config_t *, size_t count, const char *words[]))         \
    CALL(bool, wasi_config_set_env,                                                                \
         (wasi_config_t *, size_t count, const char *names[], const char *values[]))               \
    CALL(void, wasi_config_inherit_stdin, (wasi_config_t *))                                       \
    CALL(void, wasi_config_inherit_stdout, (wasi_config_t *))                                      \
    CALL(void, wasi_config_inherit_stderr, (wasi_config_t *))                                      \
    CALL(void, wasi_config_delete, (wasi_config_t *))                                              \
    CALL(wasmtime_error_t *, wasmtime_context_set_wasi,                                            \
         (wasmtime_context_t *, wasi_config_t * config)) /* takes it */                            \
    CALL(wasmtime_linker_t *, wasmtime_linker_new, (wasm_engine_t *))                              \
    CALL(wasmtime_error_t *, wasmtime_linker_define_wasi, (wasmtime_linker_t *))                   \
    CALL(bool, wasmtime_linker_get,                                                                \
         (const wasmtime_linker_t *, wasmtime_context_t *, const char *module,                     \
          size_t module_length, const char *name, size_t length, struct wasmtime_item *ret_item))  \
    CALL(void, wasmtime_extern_delete, (struct wasmtime_item *))                                   \
    CALL(wasmtime_error_t *, wasmtime_linker_module,                                               \
         (wasmtime_linker_t *, wasmtime_context_t *, const char *name, size_t length,              \
          const wasmtime_module_t *))                                                              \
    CALL(wasmtime_error_t *, wasmtime_linker_get_default,                                          \
         (const wasmtime_linker_t *, wasmtime_context_t *, const char *name, size_t length,        \
          wasmtime_func_t *ret_function))                                                          \
    CALL(void, wasmtime_linker_delete, (wasmtime_linker_t *))                                      \
    CALL(wasmtime_error_t *, wasmtime_func_call,                                                   \
         (wasmtime_context_t *, const wasmtime_func_t *, const wasmtime_val_t *arguments,          \
          size_t argument_count, wasmtime_val_t *results, size_t result_count,                     \
          wasm_trap_t **ret_trap))                                                                 \
    CALL(bool, wasmtime_error_exit_status, (const wasmtime_error_t *, int *ret_status))            \
    CALL(void, wasmtime_error_message, (const wasmtime_error_t *, wasm_byte_vec_t *ret_message))   \
    CALL(void, wasmtime_error_delete, (wasmtime_error_t *))                                        \
    CALL(bool, wasmtime_trap_code, (const wasm_trap_t *, uint8_t *ret_code))                       \
    CALL(void, wasm_trap_message, (const wasm_trap_t *, wasm_byte_vec_t *ret_message))             \
    CALL(void, wasm_trap_delete, (wasm_trap_t *))                                                  \
    CALL(void, wasm_byte_vec_delete, (wasm_byte_vec_t *))

/* Libraries that were built without threads lack this function, and compile in one thread. */
#define WASMTIME_OPTIONAL_CALLS(CALL)                                                              \
    CALL(void, wasmtime_config_parallel_compilation_set, (wasm_config_t *, bool))

/* The two types of wasi_config_preopen_dir. The folder `host` has the name `guest` in the module.
 * Returns false when the folder cannot be opened. */
typedef bool wasmtime_preopen_by_masks(wasi_config_t *config, const char *host, const char *guest,
                                       size_t folders, size_t files);
typedef bool wasmtime_preopen_by_flag(wasi_config_t *config, const char *host, const char *guest,
                                      bool is_writable);

/* The members have the names of the functions, which are wasmtime's. */
struct wasmtime_api {
    void *library;
#define WASMTIME_MEMBER(result, name, arguments) result(*name) arguments;
    WASMTIME_CALLS(WASMTIME_MEMBER)
    WASMTIME_OPTIONAL_CALLS(WASMTIME_MEMBER) /* may be NULL */
#undef WASMTIME_MEMBER
    void (*wasi_config_preopen_dir)(void); /* called by one of the types above */
};

/* Loads the library of this path; NULL looks for the functions in the program itself. Returns false
 * with a line that says what is missing; then nothing is loaded. The library is never unloaded,
 * because its threads would go on. */
bool wasmtime_api_load(const char *library, struct wasmtime_api *ret_api,
                       struct problem *ret_problem);

/* Returns a phrase for a code of a trap, or NULL for a code without one. */
const char *wasmtime_api_trap(unsigned code);

/* Reads the version of wasmtime from a module that it has compiled. Writes it as text, and returns
 * its first number. Returns 0 when the bytes say no version. */
unsigned wasmtime_api_version(const char *compiled, size_t size, char *ret_text, size_t capacity);

#endif
