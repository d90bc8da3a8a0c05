#include "provider/executors/wasm.h"

#include "base/text.h"
#include "provider/executors/trial.h"
#include "provider/tensor/ask.h"
#include "runtime/log.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define PAGE_BYTES 65536
#define TRIAL_WALL_NS UINT64_C(60000000000)
#define TRIAL_SAYS "wasm\n" /* what the trial's module writes */

bool wasm_names(const Bourse__V1__Manifest *manifest)
{
    return strcmp(manifest->executor, "wasm") == 0;
}

bool wasm_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem)
{
    if (manifest->has_image || manifest->directory != NULL) {
        problem_set(ret_problem, "a WASM module has no image and starts in the work folder");
        return false;
    }
    if (manifest->checkpoint != NULL) {
        problem_set(ret_problem, "a WASM module saves no state: no signal can reach it");
        return false;
    }
    return true;
}

/* The words of bourse-wasm, which loads wasmtime's library (provider/wasm/main.c). */
static void fill_library(const struct wasm_engine *engine, uint64_t pages, struct wasm_words *ret)
{
    (void)snprintf(ret->memory, sizeof ret->memory, "%llu",
                   (unsigned long long)(pages * PAGE_BYTES));
    ret->items[ret->count++] = WASM_RUNNER;
    ret->items[ret->count++] = engine->path;
    ret->items[ret->count++] = ret->memory;
    if (engine->has_group) {
        ret->items[ret->count++] = "-r";
    }
}

static void fill_program(const struct wasm_engine *engine, uint64_t pages, struct wasm_words *ret)
{
    (void)snprintf(ret->memory, sizeof ret->memory, "--wasm-max-mem-pages=%llu",
                   (unsigned long long)pages);
    ret->items[ret->count++] = engine->path;
    ret->items[ret->count++] = "--no-warnings";
    ret->items[ret->count++] = "--experimental-wasi-unstable-preview1"; /* Node 18 asks for it */
    if (!engine->has_group) {
        ret->items[ret->count++] = "--disable-wasm-trap-handler"; /* from Node 20.15 on */
    }
    ret->items[ret->count++] = ret->memory;
    ret->items[ret->count++] = WASM_HOST;
}

void wasm_fill(const struct wasm_engine *engine, uint64_t memory_bytes, struct wasm_words *ret)
{
    assert(memory_bytes >= wasm_engine_least(engine));
    const uint64_t left = (memory_bytes - WASM_ENGINE_BYTES) / PAGE_BYTES;
    const uint64_t pages = left < PAGE_BYTES ? left : PAGE_BYTES; /* 32 bits reach no more */
    *ret = (struct wasm_words){.count = 0};
    if (engine->is_library) {
        fill_library(engine, pages, ret);
    } else {
        fill_program(engine, pages, ret);
    }
}

void wasm_show(const struct wasm_engine *engine, struct jail_spec *spec)
{
    spec->wasm_host = engine->is_library ? NULL : engine->host;
    spec->wasm_runner = engine->is_library ? engine->host : NULL;
}

/* ---------------------------------------------------------------- what went wrong */

bool wasm_explain(const struct jail_reply *reply, char *ret_text, size_t capacity)
{
    char line[LIMIT_TEXT_BYTES];
    const size_t prefix = strlen(WASM_SAYS);
    trial_last_line(reply, line, sizeof line);
    if (strncmp(line, WASM_SAYS, prefix) != 0 || line[prefix] == '\0') {
        return false;
    }
    (void)snprintf(ret_text, capacity, "%s", line + prefix);
    return true;
}

/* ---------------------------------------------------------------- the trial */

/* Reads the name of the engine behind the module's own output. */
static bool read_name(const char *said, size_t length, struct wasm_engine *engine)
{
    const size_t before = strlen(TRIAL_SAYS);
    if (length <= before || memcmp(said, TRIAL_SAYS, before) != 0) {
        return false;
    }
    const char *name = said + before;
    const char *newline = memchr(name, '\n', length - before);
    if (newline == NULL || newline == name) {
        return false;
    }
    text_printable(name, (size_t)(newline - name), engine->name, sizeof engine->name);
    return true;
}

void wasm_look(const struct wasm_trial *trial, struct wasm_engine *engine)
{
    static char said[TRIAL_SAID_BYTES];
    struct problem problem = {""};
    struct wasm_words words;
    engine->is_known = true;
    engine->has_group = trial->cgroups != NULL && cgroups_memory(trial->cgroups);
    wasm_fill(engine, TRIAL_MEMORY_BYTES, &words);
    words.items[words.count++] = "--trial";
    words.items[words.count] = NULL;
    struct jail_spec spec = {.worker_path = trial->worker_path,
                             .visible = trial->visible,
                             .name = "probe-wasm",
                             .cgroups = trial->cgroups};
    wasm_show(engine, &spec);
    const ssize_t length = trial_ask(trial->launcher, &spec, engine->path, words.items,
                                     TRIAL_WALL_NS, said, NULL, &problem);
    if (length < 0) {
        (void)snprintf(engine->unusable, sizeof engine->unusable, "%s: %.300s%s", engine->path,
                       problem.text,
                       engine->has_group || engine->is_library
                           ? ""
                           : "; without a control group for memory, Node 20.15 or newer is needed");
    } else if (!read_name(said, (size_t)length, engine)) {
        (void)snprintf(engine->unusable, sizeof engine->unusable,
                       "%s ran the trial's module, and what it printed is not what the module says",
                       engine->path);
    }
}

void wasm_say(const struct wasm_engine *engine, bool is_named)
{
    if (engine->unusable[0] == '\0') {
        log_info("WASM modules are run by %s, which is %s", engine->path, engine->name);
    } else if (is_named) {
        log_warning("no WASM modules are run here: %s", engine->unusable);
    } else {
        log_info("no WASM modules are run here: %s", engine->unusable);
    }
}
