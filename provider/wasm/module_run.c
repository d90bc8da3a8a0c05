#include "provider/wasm/module_run.h"

#include "provider/device/wasm_engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREVIEW "wasi_snapshot_preview1"
#define PAGE_BYTES 65536

/* A run makes these parts. Each may be NULL. */
struct parts {
    const struct wasmtime_engine *engine;
    const struct wasmtime_api *api;
    const struct module_run *run;
    struct module_end *end;
    wasmtime_module_t *module;
    wasmtime_store_t *store;
    wasmtime_context_t *context;
    wasmtime_linker_t *linker;
};

/* Ends the run with the code and a text. Returns false. */
__attribute__((format(printf, 3, 4))) static bool end_with(struct parts *parts, int code,
                                                           const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    parts->end->code = code;
    (void)vsnprintf(parts->end->text, sizeof parts->end->text, format, arguments);
    va_end(arguments);
    return false;
}

/* Ends the run with an error of the library, behind words of ours. Returns true for no error. */
static bool take_error(struct parts *parts, const char *words, wasmtime_error_t *error)
{
    char said[600];
    if (error == NULL) {
        return true;
    }
    wasmtime_engine_explain(parts->engine, error, said, sizeof said);
    return end_with(parts, WASM_UNUSABLE, "%s: %s", words, said);
}

/* ---------------------------------------------------------------- the module */

static bool check_head(struct parts *parts)
{
    static const char magic[] = {0, 'a', 's', 'm'};
    enum { HEAD_BYTES = 8, LAYER = 6 };
    const uint8_t *bytes = parts->run->bytes;
    if (parts->run->size < HEAD_BYTES || memcmp(bytes, magic, sizeof magic) != 0) {
        return end_with(parts, WASM_UNUSABLE,
                        "the file is no WASM module: it does not begin with \\0asm");
    }
    if (bytes[LAYER] != 0 || bytes[LAYER + 1] != 0) {
        return end_with(parts, WASM_UNUSABLE,
                        "the file is a component, and this engine runs core modules alone");
    }
    return true;
}

static bool compile(struct parts *parts)
{
    return check_head(parts) &&
           take_error(parts, "the engine does not take the module",
                      parts->api->wasmtime_module_new(parts->engine->engine, parts->run->bytes,
                                                      parts->run->size, &parts->module));
}

static bool is_name(const wasm_byte_vec_t *name, const char *text)
{
    return name->size == strlen(text) && memcmp(name->data, text, name->size) == 0;
}

static const char *kind_name(unsigned kind)
{
    static const char *const names[] = {
        [WASMTIME_FUNCTION] = "function",
        [WASMTIME_GLOBAL] = "global",
        [WASMTIME_TABLE] = "table",
        [WASMTIME_MEMORY] = "memory",
    };
    return kind < sizeof names / sizeof names[0] ? names[kind] : "item";
}

/* Returns true when the engine's WASI has the function of this name. */
static bool has_function(const struct parts *parts, const wasm_byte_vec_t *name)
{
    struct wasmtime_item item = {{0}};
    const bool has = parts->api->wasmtime_linker_get(
        parts->linker, parts->context, PREVIEW, strlen(PREVIEW), name->data, name->size, &item);
    if (has) {
        parts->api->wasmtime_extern_delete(&item);
    }
    return has;
}

static bool check_import(struct parts *parts, const wasm_importtype_t *import)
{
    const struct wasmtime_api *api = parts->api;
    const wasm_byte_vec_t *module = api->wasm_importtype_module(import);
    const wasm_byte_vec_t *name = api->wasm_importtype_name(import);
    const unsigned kind = api->wasm_externtype_kind(api->wasm_importtype_type(import));
    if (is_name(module, "wasi_unstable")) {
        return end_with(parts, WASM_UNUSABLE,
                        "the module is for WASI of before preview 1 (wasi_unstable); build it "
                        "again with a newer compiler");
    }
    if (is_name(module, PREVIEW) && kind == WASMTIME_FUNCTION && has_function(parts, name)) {
        return true;
    }
    return end_with(parts, WASM_UNUSABLE,
                    "the module imports the %s %.*s.%.*s, which WASI preview 1 does not have",
                    kind_name(kind), (int)module->size, module->data, (int)name->size, name->data);
}

static bool check_imports(struct parts *parts)
{
    wasm_importtype_vec_t imports = {0, NULL};
    parts->api->wasmtime_module_imports(parts->module, &imports);
    bool good = true;
    for (size_t i = 0; good && i < imports.size; i++) {
        good = check_import(parts, imports.data[i]);
    }
    parts->api->wasm_importtype_vec_delete(&imports);
    return good;
}

/* A module must export these. */
struct exported {
    bool has_start, has_memory;
    uint64_t pages; /* of the memory at the start */
};

static struct exported look_at_exports(const struct parts *parts)
{
    const struct wasmtime_api *api = parts->api;
    wasm_exporttype_vec_t exports = {0, NULL};
    struct exported found = {.has_start = false};
    api->wasmtime_module_exports(parts->module, &exports);
    for (size_t i = 0; i < exports.size; i++) {
        const wasm_byte_vec_t *name = api->wasm_exporttype_name(exports.data[i]);
        const wasm_externtype_t *type = api->wasm_exporttype_type(exports.data[i]);
        const wasm_memorytype_t *memory = api->wasm_externtype_as_memorytype_const(type);
        if (is_name(name, "_start")) {
            found.has_start = api->wasm_externtype_kind(type) == WASMTIME_FUNCTION;
        } else if (is_name(name, "memory") && memory != NULL) {
            found.has_memory = true;
            found.pages = api->wasmtime_memorytype_minimum(memory);
        }
    }
    api->wasm_exporttype_vec_delete(&exports);
    return found;
}

static uint64_t mib(uint64_t bytes)
{
    return (bytes + (1 << 20) - 1) >> 20;
}

static bool check_exports(struct parts *parts)
{
    const struct exported found = look_at_exports(parts);
    if (!found.has_start) {
        return end_with(parts, WASM_UNUSABLE,
                        "the module has no function _start, so it is a library and no program");
    }
    if (!found.has_memory) {
        return end_with(parts, WASM_UNUSABLE,
                        "the module does not export its memory, as WASI demands");
    }
    if (found.pages > parts->run->memory_bytes / PAGE_BYTES) {
        return end_with(parts, WASM_UNUSABLE,
                        "out of memory: the module wants %llu MiB at its start, and the subtask "
                        "has %llu MiB for it (limits: memory)",
                        (unsigned long long)mib(found.pages * PAGE_BYTES),
                        (unsigned long long)mib(parts->run->memory_bytes));
    }
    return true;
}

/* ---------------------------------------------------------------- its surroundings */

/* A module of WASI has one memory, so the limit of one is the limit of all. */
static bool make_store(struct parts *parts)
{
    const struct wasmtime_api *api = parts->api;
    parts->store = api->wasmtime_store_new(parts->engine->engine, NULL, NULL);
    if (parts->store == NULL) {
        return end_with(parts, WASM_UNUSABLE, "the engine failed: it makes no store");
    }
    parts->context = api->wasmtime_store_context(parts->store);
    api->wasmtime_store_limiter(parts->store, (int64_t)parts->run->memory_bytes, -1, -1, -1, 1);
    parts->linker = api->wasmtime_linker_new(parts->engine->engine);
    if (parts->linker == NULL) {
        return end_with(parts, WASM_UNUSABLE, "the engine failed: it makes no linker");
    }
    return take_error(parts, "the engine failed", api->wasmtime_linker_define_wasi(parts->linker));
}

/* Cuts each variable into its name and its value. Returns false when one is no UTF-8. */
static bool set_variables(const struct parts *parts, wasi_config_t *config, const char **values)
{
    const struct module_run *run = parts->run;
    for (size_t i = 0; i < run->variable_count; i++) {
        char *equals = strchr(run->variables[i], '=');
        values[i] = equals != NULL ? equals + 1 : "";
        if (equals != NULL) {
            *equals = '\0';
        }
    }
    return parts->api->wasi_config_set_env(config, run->variable_count, run->variables, values);
}

static bool fill_config(struct parts *parts, wasi_config_t *config)
{
    const struct wasmtime_api *api = parts->api;
    const struct module_run *run = parts->run;
    api->wasi_config_inherit_stdin(config);
    api->wasi_config_inherit_stdout(config);
    api->wasi_config_inherit_stderr(config);
    const char **values = calloc(run->variable_count + 1, sizeof *values);
    if (values == NULL) {
        return end_with(parts, WASM_UNUSABLE, "the engine failed: out of memory");
    }
    const bool good = api->wasi_config_set_argv(config, run->word_count, run->words) &&
                      set_variables(parts, config, values);
    free(values);
    if (!good) {
        return end_with(parts, WASM_UNUSABLE,
                        "an argument or a variable is no UTF-8, which wasmtime demands");
    }
    if (!wasmtime_engine_preopen(parts->engine, config, ".", ".") ||
        !wasmtime_engine_preopen(parts->engine, config, ".", "/work")) {
        return end_with(parts, WASM_UNUSABLE,
                        "the engine failed: it does not open the work folder");
    }
    return true;
}

static bool set_wasi(struct parts *parts)
{
    wasi_config_t *config = parts->api->wasi_config_new();
    if (config == NULL) {
        return end_with(parts, WASM_UNUSABLE, "the engine failed: it makes no surroundings");
    }
    if (!fill_config(parts, config)) {
        parts->api->wasi_config_delete(config);
        return false;
    }
    return take_error(parts, "the engine failed",
                      parts->api->wasmtime_context_set_wasi(parts->context, config));
}

/* ---------------------------------------------------------------- the run */

/* Ends the run with what the trap says, and deletes the trap. */
static void take_trap(struct parts *parts, wasm_trap_t *trap)
{
    char said[600];
    uint8_t code = 0;
    wasm_byte_vec_t message = {0, NULL};
    const char *phrase =
        parts->api->wasmtime_trap_code(trap, &code) ? wasmtime_api_trap(code) : NULL;
    if (phrase == NULL) {
        parts->api->wasm_trap_message(trap, &message);
        wasmtime_engine_one_line(parts->engine, &message, said, sizeof said);
        phrase = said;
    }
    (void)end_with(parts, WASM_TRAPPED, "the module trapped: %s", phrase);
    parts->api->wasm_trap_delete(trap);
}

/* Calls the function. A module that ends itself by proc_exit comes back as an error. */
static void call(struct parts *parts, const wasmtime_func_t *function)
{
    int status = 0;
    wasm_trap_t *trap = NULL;
    wasmtime_error_t *error =
        parts->api->wasmtime_func_call(parts->context, function, NULL, 0, NULL, 0, &trap);
    if (trap != NULL) {
        take_trap(parts, trap);
    } else if (error != NULL && parts->api->wasmtime_error_exit_status(error, &status)) {
        parts->end->code = status;
        parts->api->wasmtime_error_delete(error);
    } else {
        (void)take_error(parts, "the module does not start", error);
    }
}

static void start(struct parts *parts)
{
    const struct wasmtime_api *api = parts->api;
    wasmtime_func_t function = {0, NULL};
    if (take_error(
            parts, "the module does not link",
            api->wasmtime_linker_module(parts->linker, parts->context, "", 0, parts->module)) &&
        take_error(
            parts, "the engine failed",
            api->wasmtime_linker_get_default(parts->linker, parts->context, "", 0, &function))) {
        call(parts, &function);
    }
}

static void release(struct parts *parts)
{
    if (parts->linker != NULL) {
        parts->api->wasmtime_linker_delete(parts->linker);
    }
    if (parts->store != NULL) {
        parts->api->wasmtime_store_delete(parts->store);
    }
    if (parts->module != NULL) {
        parts->api->wasmtime_module_delete(parts->module);
    }
}

void module_run(const struct wasmtime_engine *engine, const struct module_run *run,
                struct module_end *ret_end)
{
    struct parts parts = {.engine = engine, .api = &engine->api, .run = run, .end = ret_end};
    *ret_end = (struct module_end){.code = 0};
    if (compile(&parts) && make_store(&parts) && check_imports(&parts) && check_exports(&parts) &&
        set_wasi(&parts)) {
        start(&parts);
    }
    release(&parts);
}

void module_run_trial(const struct wasmtime_engine *engine, struct module_end *ret_end)
{
    /* Writes "wasm" and a line's end by fd_write. wat2wasm made the bytes. */
    static const uint8_t bytes[] = {
        0,   97,  115, 109, 1,   0,   0,   0,   1,   12,  2,   96,  4,   127, 127, 127, 127,
        1,   127, 96,  0,   0,   2,   35,  1,   22,  119, 97,  115, 105, 95,  115, 110, 97,
        112, 115, 104, 111, 116, 95,  112, 114, 101, 118, 105, 101, 119, 49,  8,   102, 100,
        95,  119, 114, 105, 116, 101, 0,   0,   3,   2,   1,   1,   5,   3,   1,   0,   1,
        7,   19,  2,   6,   109, 101, 109, 111, 114, 121, 2,   0,   6,   95,  115, 116, 97,
        114, 116, 0,   1,   10,  29,  1,   27,  0,   65,  0,   65,  16,  54,  2,   0,   65,
        4,   65,  5,   54,  2,   0,   65,  1,   65,  0,   65,  1,   65,  8,   16,  0,   26,
        11,  11,  11,  1,   0,   65,  16,  11,  5,   119, 97,  115, 109, 10};
    const char *words[] = {"trial"};
    const struct module_run run = {.bytes = bytes,
                                   .size = sizeof bytes,
                                   .memory_bytes = PAGE_BYTES,
                                   .words = words,
                                   .word_count = 1};
    module_run(engine, &run, ret_end);
}
