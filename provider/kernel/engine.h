/* provider/kernel/engine.h builds and runs kernels on one device, launch after launch.
 *
 * The engine keeps the last programs that it built, so that a job's next subtask need not compile.
 * Buffers live for one launch. Every file is in the current folder. */
#ifndef BOURSE_PROVIDER_KERNEL_ENGINE_H
#define BOURSE_PROVIDER_KERNEL_ENGINE_H

#include "formats/kernel/kernel_op.h"
#include "provider/kernel/devices.h"
#include "provider/tensor/operation.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ENGINE_PROGRAMS = 8,           /* built programs that are kept */
    ENGINE_SOURCE_BYTES = 4 << 20, /* a source file */
    ENGINE_LOG_BYTES = 64 << 10,   /* what is shown of a compiler's log */
};

struct engine_program {
    char *source, *options; /* NULL: the place is free */
    size_t source_bytes;
    void *program;
};

struct engine {
    const struct device_facts *device;
    void *state; /* the interface's own */
    /* The kernel or the device failed in a way after which every call of this process fails. */
    bool is_spent;
    struct engine_program programs[ENGINE_PROGRAMS];
    size_t next; /* the place that the next program takes */
};

/* Opens a device. Returns false with the problem; nothing is left then. */
bool engine_open(const struct device_facts *device, struct engine *ret_engine,
                 struct problem *ret_problem);
void engine_close(struct engine *engine);

/* Builds a source, or finds it among the programs that are kept. The program is the engine's. The
 * problem names the source. */
enum operation_status engine_build(struct engine *engine, const char *name, const char *source,
                                   size_t source_bytes, const char *options, void **ret_program,
                                   struct problem *ret_problem);

/* Runs one launch. All buffers together have at most `memory_bytes`. OK means that every result is
 * in the folder. For any other status the problem is a line for the job's owner. */
enum operation_status engine_launch(struct engine *engine, const struct kernel_op *op,
                                    uint64_t memory_bytes, struct problem *ret_problem);

/* Puts the first line of a compiler's log that speaks of an error into the problem, and the whole
 * log on standard error. Without a log, the problem has `otherwise`. Interfaces call it. */
void engine_tell_log(const char *name, const char *log, const char *otherwise,
                     struct problem *ret_problem);

#endif
