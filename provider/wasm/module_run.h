/* provider/wasm/module_run.h runs one WASM module, a command of WASI preview 1, by wasmtime.
 *
 * The module has its arguments, the variables given, the standard streams, and one folder, which is
 * the current one, under the names "." and "/work". The words of failures are those of
 * provider/executors/wasm_host.cjs, which does the same on Node.js. */
#ifndef BOURSE_PROVIDER_WASM_MODULE_RUN_H
#define BOURSE_PROVIDER_WASM_MODULE_RUN_H

#include "provider/wasm/wasmtime_engine.h"

#include <stddef.h>
#include <stdint.h>

struct module_run {
    const uint8_t *bytes; /* the module */
    size_t size;
    uint64_t memory_bytes; /* the most that the module's memory may grow to */
    const char **words;    /* the module's name, then its arguments */
    size_t word_count;
    const char **variables; /* each is NAME=VALUE, and is cut into its two parts */
    size_t variable_count;
};

/* The end of a run. */
struct module_end {
    int code;       /* the module's own, or WASM_UNUSABLE or WASM_TRAPPED of wasm_engine.h */
    char text[800]; /* why the module did not run or trapped; "": it ended by itself */
};

/* Runs the module to its end. Whatever the run made is released. */
void module_run(const struct wasmtime_engine *engine, const struct module_run *run,
                struct module_end *ret_end);

/* Runs a module that writes "wasm" and a line's end to standard output. */
void module_run_trial(const struct wasmtime_engine *engine, struct module_end *ret_end);

#endif
