/* provider/executors/wasm.h runs subtasks that are WASM modules, commands of WASI preview 1.
 *
 * The functions of executors/program.h run these subtasks, because a module is a program that an
 * engine of the host starts. The words of the engine come before the words of the job. A program
 * runs our script bourse-wasm.cjs in the jail of the subtask, and the script runs the module. Our
 * program bourse-wasm does the same with wasmtime's library. */
#ifndef BOURSE_PROVIDER_EXECUTORS_WASM_H
#define BOURSE_PROVIDER_EXECUTORS_WASM_H

#include "base/problem.h"
#include "protocol/codec.h"
#include "provider/device/wasm_engine.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/jail.h"
#include "provider/jail/launcher.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true when the manifest's subtasks are modules. */
bool wasm_names(const Bourse__V1__Manifest *manifest);
/* Checks the parts of such a manifest that a manifest of programs does not have. Returns false with
 * the reason when the manifest is refused. */
bool wasm_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem);

/* The words before the variables and the module's name. The words point into the struct and into
 * the engine's. */
struct wasm_words {
    const char *items[8];
    size_t count;
    char memory[48];
};
/* Fills the words for a jail of that memory, which suffices. */
void wasm_fill(const struct wasm_engine *engine, uint64_t memory_bytes, struct wasm_words *ret);

/* Puts the script or the program that runs modules by this engine into a jail. */
void wasm_show(const struct wasm_engine *engine, struct jail_spec *spec);

/* Writes why a module did not run or trapped, in the words of the script or the program. Any module
 * can write such a line: the text is only for its own consumer. Returns false when the last line of
 * standard error is no such line. */
bool wasm_explain(const struct jail_reply *reply, char *ret_text, size_t capacity);

/* A trial jail is made of these. */
struct wasm_trial {
    struct launcher *launcher;
    struct cgroups *cgroups; /* NULL: none */
    const char *worker_path;
    const char *const *visible; /* as in struct jail_spec */
};
/* Lets the engine run a module in a trial jail, and notes its name, or why no modules run. Path and
 * host are set, unless there is no engine. */
void wasm_look(const struct wasm_trial *trial, struct wasm_engine *engine);
/* Says in the log what runs modules here, or why none are run. The latter is a warning when the
 * config names the engine. */
void wasm_say(const struct wasm_engine *engine, bool is_named);

#endif
