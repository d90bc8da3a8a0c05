#include "provider/kernel/engine.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool engine_open(const struct device_facts *device, struct engine *ret_engine,
                 struct problem *ret_problem)
{
    *ret_engine = (struct engine){.device = device};
    pthread_mutex_init(&ret_engine->lock, NULL);
    const bool is_open = device->interface->open(ret_engine, ret_problem);
    if (!is_open) {
        pthread_mutex_destroy(&ret_engine->lock);
    }
    return is_open;
}

static void forget_program(struct engine *engine, struct engine_program *place)
{
    if (place->source != NULL) {
        engine->device->interface->drop_program(engine, place->program);
    }
    free(place->source);
    free(place->options);
    *place = (struct engine_program){.source = NULL};
}

void engine_close(struct engine *engine)
{
    engine_ahead_close(engine);
    engine_buffers_clear(engine);
    for (size_t i = 0; i < ENGINE_PROGRAMS; i++) {
        forget_program(engine, &engine->programs[i]);
    }
    engine->device->interface->close(engine);
    pthread_mutex_destroy(&engine->lock);
}

uint64_t engine_idle_most(const struct engine *engine, uint64_t memory_bytes, uint64_t spare_bytes)
{
    const bool is_processor = strcmp(engine->device->kind, "cpu") == 0;
    const uint64_t kept_bytes = is_processor ? memory_bytes / 2 : 0;
    return spare_bytes > kept_bytes ? spare_bytes - kept_bytes : 0;
}

/* ---------------------------------------------------------------- programs */

static const struct engine_program *find_built(const struct engine *engine, const char *source,
                                               size_t source_bytes, const char *options)
{
    for (size_t i = 0; i < ENGINE_PROGRAMS; i++) {
        const struct engine_program *place = &engine->programs[i];
        if (place->source != NULL && place->source_bytes == source_bytes &&
            memcmp(place->source, source, source_bytes) == 0 &&
            strcmp(place->options, options) == 0) {
            return place;
        }
    }
    return NULL;
}

void engine_tell_log(const char *name, const char *log, const char *otherwise,
                     struct problem *ret_problem)
{
    char shown[160];
    const char *line = strstr(log, "error");
    while (line != NULL && line > log && line[-1] != '\n') {
        line--;
    }
    line = line == NULL ? log : line;
    if (log[0] != '\0') {
        (void)fprintf(stderr, "%s\n", log);
    }
    text_printable(line, strcspn(line, "\n"), shown, sizeof shown);
    problem_set(ret_problem, "%s does not compile: %s", name, shown[0] != '\0' ? shown : otherwise);
}

/* Keeps a built program in the place of the oldest one. */
static bool keep_program(struct engine *engine, const char *source, size_t source_bytes,
                         const char *options, void *program)
{
    struct engine_program made = {.source = malloc(source_bytes + 1),
                                  .options = strdup(options),
                                  .source_bytes = source_bytes,
                                  .program = program};
    if (made.source == NULL || made.options == NULL) {
        free(made.source);
        free(made.options);
        return false;
    }
    memcpy(made.source, source, source_bytes);
    forget_program(engine, &engine->programs[engine->next]);
    engine->programs[engine->next] = made;
    engine->next = (engine->next + 1) % ENGINE_PROGRAMS;
    return true;
}

enum operation_status engine_build(struct engine *engine, const char *name, const char *source,
                                   size_t source_bytes, const char *options, void **ret_program,
                                   struct problem *ret_problem)
{
    const struct kernel_interface *interface = engine->device->interface;
    const struct engine_program *built = find_built(engine, source, source_bytes, options);
    if (built != NULL) {
        *ret_program = built->program;
        return OPERATION_OK;
    }
    void *program = NULL;
    const enum operation_status status =
        interface->build(engine, name, source, source_bytes, options, &program, ret_problem);
    if (status != OPERATION_OK) {
        return status;
    }
    if (!keep_program(engine, source, source_bytes, options, program)) {
        interface->drop_program(engine, program);
        problem_set(ret_problem, "no memory for the program");
        return OPERATION_MEMORY;
    }
    *ret_program = program;
    return OPERATION_OK;
}
