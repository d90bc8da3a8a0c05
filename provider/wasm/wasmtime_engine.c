#include "provider/wasm/wasmtime_engine.h"

#include "base/text.h"

#include <string.h>

/* ---------------------------------------------------------------- messages */

void wasmtime_engine_one_line(const struct wasmtime_engine *engine, wasm_byte_vec_t *message,
                              char *ret_text, size_t capacity)
{
    size_t length = 0;
    for (size_t i = 0; i < message->size && message->data[i] != '\0' && length + 1 < capacity;
         i++) {
        const char byte = message->data[i];
        const bool is_space = byte == '\n' || byte == '\r' || byte == '\t' || byte == ' ';
        if (!is_space) {
            ret_text[length++] = byte;
        } else if (length > 0 && ret_text[length - 1] != ' ') {
            ret_text[length++] = ' ';
        }
    }
    ret_text[length] = '\0';
    engine->api.wasm_byte_vec_delete(message);
}

void wasmtime_engine_explain(const struct wasmtime_engine *engine, wasmtime_error_t *error,
                             char *ret_text, size_t capacity)
{
    wasm_byte_vec_t message = {0, NULL};
    engine->api.wasmtime_error_message(error, &message);
    wasmtime_engine_one_line(engine, &message, ret_text, capacity);
    engine->api.wasmtime_error_delete(error);
}

/* ---------------------------------------------------------------- the start */

/* A subtask has one core, and its jail bounds the processes: the compiler uses one thread. */
static wasm_config_t *make_config(const struct wasmtime_api *api, bool may_reserve)
{
    wasm_config_t *config = api->wasm_config_new();
    if (config == NULL) {
        return NULL;
    }
    if (api->wasmtime_config_parallel_compilation_set != NULL) {
        api->wasmtime_config_parallel_compilation_set(config, false);
    }
    if (!may_reserve) {
        api->wasmtime_config_memory_reservation_set(config, 0);
        api->wasmtime_config_memory_guard_size_set(config, 0);
        api->wasmtime_config_memory_reservation_for_growth_set(config, 0);
        api->wasmtime_config_memory_init_cow_set(config, false); /* it needs files in memory */
    }
    return config;
}

/* Lets the library compile an empty module. Its bytes say who compiled them. */
static bool read_version(struct wasmtime_engine *engine, struct problem *ret_problem)
{
    static const uint8_t empty[] = {0, 'a', 's', 'm', 1, 0, 0, 0};
    const struct wasmtime_api *api = &engine->api;
    wasmtime_module_t *module = NULL;
    wasm_byte_vec_t compiled = {0, NULL};
    char said[300];
    wasmtime_error_t *error =
        api->wasmtime_module_new(engine->engine, empty, sizeof empty, &module);
    if (error == NULL) {
        error = api->wasmtime_module_serialize(module, &compiled);
        api->wasmtime_module_delete(module);
    }
    if (error != NULL) {
        wasmtime_engine_explain(engine, error, said, sizeof said);
        problem_set(ret_problem, "wasmtime compiles no empty module: %s", said);
        return false;
    }
    engine->version =
        wasmtime_api_version(compiled.data, compiled.size, engine->text, sizeof engine->text);
    api->wasm_byte_vec_delete(&compiled);
    return true;
}

static bool check_version(const struct wasmtime_engine *engine, struct problem *ret_problem)
{
    if (engine->version == 0) {
        problem_set(ret_problem,
                    "the library does not say its version, and only wasmtime %d to %d is known "
                    "here; install one of these",
                    WASMTIME_OLDEST, WASMTIME_NEWEST);
    } else if (engine->version < WASMTIME_OLDEST || engine->version > WASMTIME_NEWEST) {
        problem_set(ret_problem,
                    "the library is wasmtime %s, and only %d to %d is known here; install one of "
                    "these",
                    engine->text, WASMTIME_OLDEST, WASMTIME_NEWEST);
    } else {
        return true;
    }
    return false;
}

bool wasmtime_engine_open(const char *library, bool may_reserve, struct wasmtime_engine *ret_engine,
                          struct problem *ret_problem)
{
    *ret_engine = (struct wasmtime_engine){.engine = NULL};
    if (!wasmtime_api_load(library, &ret_engine->api, ret_problem)) {
        return false;
    }
    wasm_config_t *config = make_config(&ret_engine->api, may_reserve);
    if (config != NULL) {
        ret_engine->engine = ret_engine->api.wasm_engine_new_with_config(config);
    }
    if (ret_engine->engine == NULL) {
        problem_set(ret_problem, "wasmtime makes no engine");
        return false;
    }
    if (!read_version(ret_engine, ret_problem) || !check_version(ret_engine, ret_problem)) {
        wasmtime_engine_close(ret_engine);
        return false;
    }
    return true;
}

void wasmtime_engine_close(struct wasmtime_engine *engine)
{
    if (engine->engine != NULL) {
        engine->api.wasm_engine_delete(engine->engine);
        engine->engine = NULL;
    }
}

bool wasmtime_engine_preopen(const struct wasmtime_engine *engine, wasi_config_t *config,
                             const char *host, const char *guest)
{
    /* C converts a pointer to one function into one to another, and the version says to which. */
    if (engine->version >= WASMTIME_PREOPEN_BY_FLAG) {
        wasmtime_preopen_by_flag *preopen =
            (wasmtime_preopen_by_flag *)engine->api.wasi_config_preopen_dir;
        return preopen(config, host, guest, true);
    }
    wasmtime_preopen_by_masks *preopen =
        (wasmtime_preopen_by_masks *)engine->api.wasi_config_preopen_dir;
    return preopen(config, host, guest, WASMTIME_READ_AND_WRITE, WASMTIME_READ_AND_WRITE);
}
