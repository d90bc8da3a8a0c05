/* The program bourse-wasm runs one WASM module by wasmtime's library, inside the jail of a subtask.
 *
 *     bourse-wasm WASMTIME MEMORY [-r] [-e NAME=VALUE]... -- MODULE [ARGUMENT]...
 *     bourse-wasm WASMTIME MEMORY [-r] --trial
 *
 * WASMTIME is the path of the library. MEMORY is the most bytes that the module's memory may have.
 * With -r the engine may reserve addresses. The exit code is the module's. A module that cannot
 * run, and a trap, print one line that begins with WASM_SAYS to standard error
 * (provider/device/wasm_engine.h). */
#include "provider/device/wasm_engine.h"
#include "provider/wasm/module_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Tests build the program with the library inside. */
#ifdef WASM_LIBRARY_INSIDE
#define LIBRARY(path) ((void)(path), NULL)
#else
#define LIBRARY(path) (path)
#endif

static const char usage[] =
    "usage: bourse-wasm is started by bourse-provider alone, in a jail:\n"
    "       bourse-wasm WASMTIME MEMORY [-r] [-e NAME=VALUE]... -- MODULE [ARGUMENT]...\n"
    "       bourse-wasm WASMTIME MEMORY [-r] --trial\n";

/* The program's words, taken apart. */
struct call {
    const char *library;
    struct module_run run;
    bool may_reserve, is_trial;
};

static bool read_memory(const char *text, uint64_t *ret_bytes)
{
    char *end;
    errno = 0;
    *ret_bytes = strtoull(text, &end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' &&
           *ret_bytes <= INT64_MAX;
}

/* The variables take the first places of the words, which are behind the program. */
static bool read_words(int count, char **words, struct call *ret_call)
{
    int at = 3;
    *ret_call = (struct call){.run = {.variables = (const char **)words}};
    if (count < 4 || !read_memory(words[2], &ret_call->run.memory_bytes)) {
        return false;
    }
    ret_call->library = words[1];
    if (strcmp(words[at], "-r") == 0) {
        ret_call->may_reserve = true;
        at++;
    }
    if (at + 1 == count && strcmp(words[at], "--trial") == 0) {
        ret_call->is_trial = true;
        return true;
    }
    for (; at + 1 < count && strcmp(words[at], "-e") == 0; at += 2) {
        words[ret_call->run.variable_count++] = words[at + 1];
    }
    ret_call->run.words = (const char **)words + at + 1;
    ret_call->run.word_count = at + 1 < count ? (size_t)(count - at - 1) : 0;
    return at + 1 < count && strcmp(words[at], "--") == 0;
}

static int end_with(int code, const char *before, const char *text)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, WASM_SAYS "%s%s\n", before, text);
    return code;
}

/* Reads the whole file into memory of malloc. Returns false with errno. */
static bool read_file(const char *name, struct module_run *ret_run)
{
    struct stat status;
    FILE *file = fopen(name, "r");
    if (file == NULL) {
        return false;
    }
    uint8_t *bytes = fstat(fileno(file), &status) == 0 ? malloc((size_t)status.st_size + 1) : NULL;
    const bool good =
        bytes != NULL && fread(bytes, 1, (size_t)status.st_size, file) == (size_t)status.st_size;
    const int error = errno;
    (void)fclose(file);
    if (!good) {
        free(bytes);
        errno = error != 0 ? error : EIO;
        return false;
    }
    ret_run->bytes = bytes;
    ret_run->size = (size_t)status.st_size;
    return true;
}

static int finish(const struct module_end *end)
{
    return end->text[0] == '\0' ? end->code : end_with(end->code, "", end->text);
}

static int run_trial(const struct wasmtime_engine *engine)
{
    struct module_end end;
    module_run_trial(engine, &end);
    if (end.code == 0 && end.text[0] == '\0') {
        (void)printf("wasmtime %s\n", engine->text);
    }
    return finish(&end);
}

static int run_module(const struct wasmtime_engine *engine, struct module_run *run)
{
    struct module_end end;
    errno = 0;
    if (!read_file(run->words[0], run)) {
        return end_with(WASM_UNUSABLE, "the module cannot be read: ", strerror(errno));
    }
    module_run(engine, run, &end);
    free((void *)(uintptr_t)run->bytes);
    return finish(&end);
}

int main(int count, char **words)
{
    static struct wasmtime_engine engine;
    struct call call;
    struct problem problem = {""};
    if (!read_words(count, words, &call)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    if (!wasmtime_engine_open(LIBRARY(call.library), call.may_reserve, &engine, &problem)) {
        return end_with(WASM_UNUSABLE, "the engine failed: ", problem.text);
    }
    const int code = call.is_trial ? run_trial(&engine) : run_module(&engine, &call.run);
    wasmtime_engine_close(&engine);
    return code;
}
