/* provider/kernel/engine.h builds and runs kernels on one device, launch after launch.
 *
 * The engine keeps the last programs that it built, so that a job's next subtask need not compile.
 * Inputs whose content is known stay on the device. All other buffers live for one launch. Every
 * file is in the current folder. One thread calls these functions. */
#ifndef BOURSE_PROVIDER_KERNEL_ENGINE_H
#define BOURSE_PROVIDER_KERNEL_ENGINE_H

#include "formats/kernel/kernel_op.h"
#include "provider/kernel/devices.h"
#include "provider/kernel/held_inputs.h"
#include "provider/session/device_fault.h"
#include "provider/tensor/held_figures.h"
#include "provider/tensor/operation.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ENGINE_PROGRAMS = 8,           /* built programs that are kept */
    ENGINE_SOURCE_BYTES = 4 << 20, /* a source file */
    ENGINE_LOG_BYTES = 64 << 10,   /* what is shown of a compiler's log */
    ENGINE_RESULTS = 8,            /* results of a launch that may stay */
    ENGINE_WIPE_BUFFERS = 1024,    /* a device's free memory in so many pieces, at most */
    ENGINE_WIPE_LEAST = 4096,      /* bytes of the smallest piece */
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
    enum device_fault fault; /* of the last call of the interface that failed and tells one */
    /* A library by the device's maker computes products, and takes so many bytes of its memory. */
    bool has_library;
    bool shuns_library; /* the library was wrong, so the kernel of bourse computes */
    uint64_t library_bytes;
    struct engine_program programs[ENGINE_PROGRAMS];
    size_t next; /* the place that the next program takes */

    pthread_mutex_t lock; /* guards what follows, which engine_ahead.c shares with the launches */
    struct engine_ahead *ahead; /* copies inputs of the next subtask; NULL: nothing does */
    bool is_computing;          /* a launch of this ASK has all its buffers */
    /* Idle inputs may keep so many bytes beside the buffers that the launch has by now. */
    uint64_t spare_bytes;
    /* Inputs that were copied ahead since the last engine_buffers_figures, and their bytes. */
    uint64_t aheads, ahead_bytes;
    struct held_inputs held;
    struct held_figures figures; /* since the last engine_buffers_begin */
    /* The results of the last launch that are held, and when that launch began. */
    struct engine_result {
        char name[OPERATION_NAME_SIZE];
        size_t place;
    } results[ENGINE_RESULTS];
    size_t result_count;
    uint64_t uses_before;
    bool keeps_results;
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

/* Runs one launch. All buffers together, and the inputs that the engine holds, have at most
 * `memory_bytes`. `contents` tells the hashes of inputs; an input without one is not held. OK means
 * that every result is in the folder. For any other status the problem is a line for the job's
 * owner. */
enum operation_status engine_launch(struct engine *engine, const struct kernel_op *op,
                                    const struct operation_contents *contents,
                                    uint64_t memory_bytes, struct problem *ret_problem);
/* Returns how much of `memory_bytes` inputs that no launch uses may take, when launches leave
 * `spare_bytes` of it. Buffers of a processor share its memory with the program itself. */
uint64_t engine_idle_most(const struct engine *engine, uint64_t memory_bytes, uint64_t spare_bytes);

/* engine_buffers.c makes the buffers of launches. An input whose content is known by its hash may
 * stay on the device (held_inputs.h). A launch never fails for the sake of an input that is held:
 * the inputs that nobody uses make room first. When the device is out of memory, they all go, and
 * the device is asked once more. */

/* A launch needs a buffer. */
struct engine_want {
    const void *bytes; /* the content; NULL: zeros */
    uint64_t size;
    /* The part of a file that the bytes are; NULL: not known by a hash, or no input. */
    const struct held_part *part;
    /* The kernel may write to the buffer, so that a held input is copied on the device first. */
    bool is_written;
    /* Idle inputs may keep so many bytes beside this buffer and those that the launch has. */
    uint64_t spare_bytes;
    const char *what; /* begins the problem */
};

struct engine_buffer {
    struct kernel_buffer buffer;
    bool is_held; /* at this place of the engine's table */
    size_t place;
};

/* Makes a buffer, or finds the input held. For any status but OK the problem says why. */
enum operation_status engine_buffers_take(struct engine *engine, const struct engine_want *want,
                                          struct engine_buffer *ret_buffer,
                                          struct problem *ret_problem);
/* Ends the use of a buffer by its launch. An input that is held stays. */
void engine_buffers_give(struct engine *engine, const struct engine_buffer *buffer);

/* Ends the use of a result, as engine_buffers_give does. When later launches are to have the
 * results, the result stays unless it would drive out a part that this launch used. The part, which
 * has no hash yet, says which bytes of the file `name` the buffer has. */
void engine_buffers_leave(struct engine *engine, const struct engine_buffer *buffer,
                          const char *name, const struct held_part *part);

struct engine_terms {
    uint64_t cap_bytes; /* the device holds at most so many bytes from now on */
    bool keeps_results; /* results of this ASK stay, too */
    /* The hashes of the results that the last ASK left, by name. Results without one go. */
    struct operation_contents made;
};
/* Overwrites all memory of the device that nobody uses with zeros, so that a job finds nothing that
 * the jobs before it have left there, however they ended. The memory is taken for a moment, buffer
 * by buffer, and given back. A device whose memory is this machine's needs none: the kernel of the
 * operating system clears pages. Returns OPERATION_DEVICE with the problem when the memory cannot
 * be cleared. */
enum operation_status engine_buffers_wipe(struct engine *engine, struct problem *ret_problem);
/* Begins an ASK, and counts anew. No buffer is in use. */
void engine_buffers_begin(struct engine *engine, const struct engine_terms *terms);
/* Drops every input that no launch uses. */
void engine_buffers_clear(struct engine *engine);
/* Returns the figures of the ASK, with the inputs that were copied ahead since the last call. */
struct held_figures engine_buffers_figures(struct engine *engine);

/* engine_ahead.c copies inputs of the next subtask into the device's memory, while the launch of
 * the subtask before computes.
 *
 * A thread of its own reads the inputs from the agent (provider/tensor/ahead.h). It writes them to
 * the device by what the interface opens for that, such as a second queue. An input that arrives in
 * time is held like any other one. A copy begins only while a launch computes, when that launch has
 * all its buffers. It drives out nothing that this launch uses, and stays within the cap and within
 * the memory that the launch leaves.
 *
 * Nothing that goes wrong there reaches a launch. The input is forgotten, and its subtask copies it
 * in the ordinary way. */

/* Takes the connection over, over which the agent sends the inputs of the next subtask. An earlier
 * connection is served to its end first, if its serving has begun. */
void engine_ahead_take(struct engine *engine, int connection);
/* Says that a launch has all its buffers, so that copies may begin until the next ASK. */
void engine_ahead_allow(struct engine *engine);
/* Ends the thread, if there is one. */
void engine_ahead_close(struct engine *engine);

/* The caller of the next functions holds engine->lock. */

/* Returns the memory that an input under way takes; 0: none is. */
uint64_t engine_ahead_bytes(const struct engine *engine);
/* Forgets the input under way, and returns when its memory is free. */
void engine_ahead_abandon(struct engine *engine);
/* Waits for the end of the copy when this part is under way. A copy that stands still is
 * abandoned. */
void engine_ahead_await(struct engine *engine, const struct held_part *part);

/* Puts the first line of a compiler's log that speaks of an error into the problem, and the whole
 * log on standard error. Without a log, the problem has `otherwise`. Interfaces call it. */
void engine_tell_log(const char *name, const char *log, const char *otherwise,
                     struct problem *ret_problem);

#endif
