/* This library takes the place of wasmtime's in tests. It reads the imports, exports and memory of
 * a module, and runs no code of it. What the module does stands in its bytes behind the word
 * "fake:", one step a line, up to a byte 0:
 *
 *     say TEXT      writes a line          words         writes arguments and variables, with NULs
 *     copy          input to output        read PATH     writes a file of the folder "."
 *     folders       writes their names     grow MIB      ends with status 9 beyond the limit
 *     exit STATUS   as proc_exit           trap CODE     a trap of this code
 *     raise TEXT    an error of two lines  spin          never ends
 *     eat MIB       takes this much memory of the process
 *
 * A module without the word, but with "wasm" in its data, is the trial's: it says that.
 *
 * The variable FAKE_WASMTIME is a list of words: `fail:NAME` makes the function fail,
 * `version:TEXT` is the version, `mute` leaves it out of compiled modules. A call that wasmtime
 * would not survive ends the process with a line and status 70. So does an engine that is deleted
 * before all that was made of it. */
#include "tests/programs/fake_wasmtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int alive;

void fake_misuse(const char *what)
{
    (void)fprintf(stderr, "fake wasmtime: %s\n", what);
    _exit(70);
}

const char *fake_told(const char *word)
{
    static char said[64];
    const char *list = getenv("FAKE_WASMTIME");
    const char *found = list != NULL ? strstr(list, word) : NULL;
    if (found == NULL) {
        return NULL;
    }
    found += strlen(word);
    (void)snprintf(said, sizeof said, "%.*s", (int)strcspn(found, ","), found);
    return said;
}

bool fake_fails(const char *function)
{
    const char *name = fake_told("fail:");
    return name != NULL && strcmp(name, function) == 0;
}

static unsigned version(void)
{
    const char *text = fake_told("version:");
    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 47;
}

void *fake_make(size_t size)
{
    void *made = calloc(1, size);
    if (made == NULL) {
        fake_misuse("out of memory");
    }
    alive++;
    return made;
}

void fake_destroy(void *made)
{
    if (made == NULL) {
        fake_misuse("nothing is deleted");
    }
    alive--;
    free(made);
}

wasmtime_error_t *fake_error(const char *text)
{
    wasmtime_error_t *error = fake_make(sizeof *error);
    (void)snprintf(error->text, sizeof error->text, "%s", text);
    return error;
}

void fake_fill(wasm_byte_vec_t *bytes, const void *from, size_t size)
{
    bytes->data = fake_make(size + 1);
    bytes->size = size;
    memcpy(bytes->data, from, size);
}

/* ---------------------------------------------------------------- the engine */

wasm_config_t *wasm_config_new(void)
{
    wasm_config_t *config = fake_fails(__func__) ? NULL : fake_make(sizeof *config);
    if (config != NULL) {
        *config = (wasm_config_t){.reservation = UINT64_C(1) << 32, .guard = 1, .growth = 1};
        config->has_copies = config->is_parallel = true;
    }
    return config;
}

void wasmtime_config_memory_reservation_set(wasm_config_t *config, uint64_t bytes)
{
    config->reservation = bytes;
}

void wasmtime_config_memory_guard_size_set(wasm_config_t *config, uint64_t bytes)
{
    config->guard = bytes;
}

void wasmtime_config_memory_reservation_for_growth_set(wasm_config_t *config, uint64_t bytes)
{
    config->growth = bytes;
}

void wasmtime_config_memory_init_cow_set(wasm_config_t *config, bool has)
{
    config->has_copies = has;
}

void wasmtime_config_parallel_compilation_set(wasm_config_t *config, bool is)
{
    config->is_parallel = is;
}

wasm_engine_t *wasm_engine_new_with_config(wasm_config_t *config)
{
    wasm_engine_t *engine = fake_fails(__func__) ? NULL : fake_make(sizeof *engine);
    const bool is_bare = config->reservation == 0;
    if (config->is_parallel) {
        fake_misuse("a subtask has one core");
    }
    if ((config->guard == 0) != is_bare || (config->growth == 0) != is_bare ||
        config->has_copies == is_bare) {
        fake_misuse("addresses are reserved for one thing and not for another");
    }
    if (engine != NULL) {
        engine->config = *config;
    }
    fake_destroy(config);
    return engine;
}

void wasm_engine_delete(wasm_engine_t *engine)
{
    fake_destroy(engine);
    if (alive != 0) {
        fake_misuse("something is left");
    }
}

/* ---------------------------------------------------------------- surroundings */

wasmtime_store_t *wasmtime_store_new(wasm_engine_t *engine, void *data, void (*finalizer)(void *))
{
    if (engine == NULL || data != NULL || finalizer != NULL) {
        fake_misuse("a store has data of ours");
    }
    wasmtime_store_t *store = fake_fails(__func__) ? NULL : fake_make(sizeof *store);
    if (store != NULL) {
        store->context.memory_bytes = store->context.memories = -1;
    }
    return store;
}

wasmtime_context_t *wasmtime_store_context(wasmtime_store_t *store)
{
    return &store->context;
}

void wasmtime_store_limiter(wasmtime_store_t *store, int64_t memory_bytes, int64_t table_elements,
                            int64_t instances, int64_t tables, int64_t memories)
{
    if (table_elements >= 0 || instances >= 0 || tables >= 0) {
        fake_misuse("a limit that nobody has");
    }
    store->context.memory_bytes = memory_bytes;
    store->context.memories = memories;
}

void wasmtime_store_delete(wasmtime_store_t *store)
{
    if (store->context.wasi != NULL) {
        wasi_config_delete(store->context.wasi);
    }
    fake_destroy(store);
}

wasi_config_t *wasi_config_new(void)
{
    return fake_fails(__func__) ? NULL : fake_make(sizeof(wasi_config_t));
}

static char *copy_of(const char *text)
{
    char *copy = fake_make(strlen(text) + 1);
    strcpy(copy, text);
    return copy;
}

/* Bytes from 0x80 on are no UTF-8 for the fake. */
static bool is_utf8(const char *text)
{
    while (*text != '\0' && (unsigned char)*text < 0x80) {
        text++;
    }
    return *text == '\0';
}

bool wasi_config_set_argv(wasi_config_t *config, size_t count, const char *words[])
{
    bool good = !fake_fails(__func__);
    for (size_t i = 0; i < count && good; i++) {
        good = is_utf8(words[i]);
        config->words[config->word_count++] = copy_of(words[i]);
    }
    return good;
}

bool wasi_config_set_env(wasi_config_t *config, size_t count, const char *names[],
                         const char *values[])
{
    bool good = !fake_fails(__func__);
    for (size_t i = 0; i < count && good; i++) {
        good = is_utf8(names[i]) && is_utf8(values[i]);
        config->names[config->variable_count] = copy_of(names[i]);
        config->values[config->variable_count++] = copy_of(values[i]);
    }
    return good;
}

void wasi_config_inherit_stdin(wasi_config_t *config)
{
    config->streams |= 1;
}

void wasi_config_inherit_stdout(wasi_config_t *config)
{
    config->streams |= 2;
}

void wasi_config_inherit_stderr(wasi_config_t *config)
{
    config->streams |= 4;
}

bool wasi_config_preopen_dir(wasi_config_t *config, const char *host, const char *guest,
                             size_t folders, size_t files)
{
    const bool is_right = version() >= WASMTIME_PREOPEN_BY_FLAG
                              ? (folders & 0xff) == 1
                              : folders == WASMTIME_READ_AND_WRITE && files == folders;
    if (!is_right || config->folder_count == FOLDERS) {
        fake_misuse("a folder has rights that this version does not know");
    }
    (void)snprintf(config->hosts[config->folder_count], sizeof config->hosts[0], "%s", host);
    (void)snprintf(config->guests[config->folder_count++], sizeof config->guests[0], "%s", guest);
    return !fake_fails(__func__);
}

void wasi_config_delete(wasi_config_t *config)
{
    for (size_t i = 0; i < config->word_count; i++) {
        fake_destroy(config->words[i]);
    }
    for (size_t i = 0; i < config->variable_count; i++) {
        fake_destroy(config->names[i]);
        fake_destroy(config->values[i]);
    }
    fake_destroy(config);
}

wasmtime_error_t *wasmtime_context_set_wasi(wasmtime_context_t *context, wasi_config_t *config)
{
    context->wasi = config;
    FAIL_HERE()
    return NULL;
}

/* ---------------------------------------------------------------- the linker */

wasmtime_linker_t *wasmtime_linker_new(wasm_engine_t *engine)
{
    (void)engine;
    return fake_fails(__func__) ? NULL : fake_make(sizeof(wasmtime_linker_t));
}

wasmtime_error_t *wasmtime_linker_define_wasi(wasmtime_linker_t *linker)
{
    FAIL_HERE()
    linker->has_wasi = true;
    return NULL;
}

bool wasmtime_linker_get(const wasmtime_linker_t *linker, wasmtime_context_t *context,
                         const char *module, size_t module_length, const char *name, size_t length,
                         struct wasmtime_item *ret_item)
{
    static const char *const functions[] = {"fd_write",    "fd_read",          "proc_exit",
                                            "args_get",    "args_sizes_get",   "path_open",
                                            "environ_get", "environ_sizes_get"};
    bool has = false;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        has = has || (length == strlen(functions[i]) && memcmp(name, functions[i], length) == 0);
    }
    has = has && context != NULL && linker->has_wasi &&
          module_length == strlen("wasi_snapshot_preview1") &&
          memcmp(module, "wasi_snapshot_preview1", module_length) == 0;
    if (has) {
        ret_item->words[7] = 1;
        alive++;
    }
    return has;
}

void wasmtime_extern_delete(struct wasmtime_item *item)
{
    alive -= (int)item->words[7];
}

wasmtime_error_t *wasmtime_linker_module(wasmtime_linker_t *linker, wasmtime_context_t *context,
                                         const char *name, size_t length,
                                         const wasmtime_module_t *module)
{
    FAIL_HERE()
    if (context == NULL || name == NULL || length != 0) {
        fake_misuse("the module of a program has no name");
    }
    linker->module = module;
    return NULL;
}

const wasmtime_module_t *fake_linked;

wasmtime_error_t *wasmtime_linker_get_default(const wasmtime_linker_t *linker,
                                              wasmtime_context_t *context, const char *name,
                                              size_t length, wasmtime_func_t *ret_function)
{
    FAIL_HERE()
    if (name == NULL || length != 0 || linker->module == NULL) {
        fake_misuse("the function of no module is asked for");
    }
    fake_linked = linker->module;
    *ret_function = (wasmtime_func_t){(uint64_t)(uintptr_t)context, ret_function};
    return NULL;
}

void wasmtime_linker_delete(wasmtime_linker_t *linker)
{
    fake_destroy(linker);
}

/* ---------------------------------------------------------------- messages */

bool wasmtime_error_exit_status(const wasmtime_error_t *error, int *ret_status)
{
    if (error->has_status) {
        *ret_status = error->status;
    }
    return error->has_status;
}

void wasmtime_error_message(const wasmtime_error_t *error, wasm_byte_vec_t *ret_message)
{
    fake_fill(ret_message, error->text, strlen(error->text));
}

void wasmtime_error_delete(wasmtime_error_t *error)
{
    fake_destroy(error);
}

bool wasmtime_trap_code(const wasm_trap_t *trap, uint8_t *ret_code)
{
    if (trap->code >= 0) {
        *ret_code = (uint8_t)trap->code;
    }
    return trap->code >= 0;
}

void wasm_trap_message(const wasm_trap_t *trap, wasm_byte_vec_t *ret_message)
{
    char text[64];
    fake_fill(ret_message, text,
              (size_t)snprintf(text, sizeof text, "wasm trap:\n    number %d", trap->code));
}

void wasm_trap_delete(wasm_trap_t *trap)
{
    fake_destroy(trap);
}

void wasm_byte_vec_delete(wasm_byte_vec_t *bytes)
{
    fake_destroy(bytes->data);
}
