/* This part of the stand-in for wasmtime's library takes the steps of a module. */
#include "tests/programs/fake_wasmtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A step of a run leaves here how the run ended. */
struct course {
    const wasmtime_context_t *context;
    wasmtime_error_t *error;
    wasm_trap_t *trap;
};

static void exit_with(struct course *course, int status)
{
    course->error = fake_error("Exited with i32 exit status");
    course->error->has_status = true;
    course->error->status = status;
}

static void write_words(const wasi_config_t *wasi)
{
    for (size_t i = 0; i < wasi->word_count; i++) {
        (void)fwrite(wasi->words[i], 1, strlen(wasi->words[i]) + 1, stdout);
    }
    for (size_t i = 0; i < wasi->variable_count; i++) {
        (void)printf("%s=", wasi->names[i]);
        (void)fwrite(wasi->values[i], 1, strlen(wasi->values[i]) + 1, stdout);
    }
}

static bool copy_file(FILE *from)
{
    char part[4096];
    size_t length;
    if (from == NULL) {
        return false;
    }
    while ((length = fread(part, 1, sizeof part, from)) > 0) {
        (void)fwrite(part, 1, length, stdout);
    }
    return true;
}

static void read_path(struct course *course, const char *path)
{
    enum { NO_SUCH_FILE = 44, NOT_CAPABLE = 76 };
    char host[600];
    const wasi_config_t *wasi = course->context->wasi;
    if (path[0] == '/' || strstr(path, "..") != NULL) {
        exit_with(course, NOT_CAPABLE);
        return;
    }
    (void)snprintf(host, sizeof host, "%s/%s", wasi->hosts[0], path);
    FILE *file = fopen(host, "r");
    if (!copy_file(file)) {
        exit_with(course, NO_SUCH_FILE);
        return;
    }
    (void)fclose(file);
}

static void eat(long mib)
{
    for (long i = 0; i < mib; i++) {
        volatile char *taken = malloc(1 << 20); /* it is the test's to end this */
        for (long k = 0; taken != NULL && k < 1 << 20; k += 4096) {
            taken[k] = 1;
        }
    }
}

static void take_step(struct course *course, const char *step)
{
    const char *space = strchr(step, ' ');
    const char *rest = space != NULL ? space + 1 : "";
    const long number = strtol(rest, NULL, 10);
    const wasi_config_t *wasi = course->context->wasi;
#define IS(word) (strncmp(step, word, strcspn(step, " ")) == 0 && step[0] != '\0')
    if (IS("say")) {
        (void)printf("%s\n", rest);
    } else if (IS("words")) {
        write_words(wasi);
    } else if (IS("copy")) {
        (void)copy_file(stdin);
    } else if (IS("read")) {
        read_path(course, rest);
    } else if (IS("folders")) {
        for (size_t i = 0; i < wasi->folder_count; i++) {
            (void)printf("%s is %s\n", wasi->guests[i], wasi->hosts[i]);
        }
    } else if (IS("grow")) {
        if (number << 20 > course->context->memory_bytes || course->context->memories != 1) {
            exit_with(course, 9);
        }
    } else if (IS("exit")) {
        exit_with(course, (int)number);
    } else if (IS("trap")) {
        course->trap = fake_make(sizeof *course->trap);
        course->trap->code = (int)number;
    } else if (IS("raise")) {
        char text[200];
        (void)snprintf(text, sizeof text, "%s\n\nCaused by:\n    the fake", rest);
        course->error = fake_error(text);
    } else if (IS("eat")) {
        eat(number);
    } else if (IS("spin")) {
        for (;;) {
            (void)usleep(1000);
        }
    } else if (step[0] != '\0') {
        fake_misuse("a step that the fake does not know");
    }
#undef IS
}

/* Takes the steps that stand in the module, up to the first that ends it. */
static void take_steps(struct course *course, const wasmtime_module_t *module)
{
    const char *found = memmem(module->bytes, module->size, "fake:", 5);
    const char *end = module->bytes + module->size; /* a byte 0 stands there */
    if (found == NULL && memmem(module->bytes, module->size, "wasm\n", 5) != NULL) {
        (void)printf("wasm\n");
    }
    for (const char *at = found != NULL ? found + 5 : NULL;
         at != NULL && at < end && *at != '\0' && course->error == NULL && course->trap == NULL;) {
        char step[256];
        const size_t length = strcspn(at, "\n");
        (void)snprintf(step, sizeof step, "%.*s", (int)length, at);
        take_step(course, step);
        at += length + (at[length] == '\n' ? 1 : 0);
    }
    (void)fflush(stdout);
}

wasmtime_error_t *wasmtime_func_call(wasmtime_context_t *context, const wasmtime_func_t *function,
                                     const wasmtime_val_t *arguments, size_t argument_count,
                                     wasmtime_val_t *results, size_t result_count,
                                     wasm_trap_t **ret_trap)
{
    struct course course = {.context = context};
    FAIL_HERE()
    if (function->store_id != (uint64_t)(uintptr_t)context || arguments != NULL ||
        argument_count != 0 || results != NULL || result_count != 0 || *ret_trap != NULL) {
        fake_misuse("_start is called with what it has not");
    }
    if (context->wasi == NULL || context->wasi->streams != 7 || context->wasi->word_count == 0) {
        fake_misuse("a module without its surroundings");
    }
    take_steps(&course, fake_linked);
    *ret_trap = course.trap;
    return course.error;
}
