/* provider/work/outcome.h - what became of one subtask, with the bytes it left, until the broker
 * has both.
 *
 * Outputs live in the jail's memory and must be out of it before its next run: each is copied once,
 * hashed on the way, into memory when small, else into an unnamed file of the spool folder. Or it
 * stays where it is until the broker has it, or until the jail's next run needs the room, whichever
 * is first. */
#ifndef BOURSE_PROVIDER_WORK_OUTCOME_H
#define BOURSE_PROVIDER_WORK_OUTCOME_H

#include "base/id.h"
#include "base/list.h"
#include "base/problem.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "provider/session/session.h"
#include "provider/work/given.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTCOME_MEMORY_BYTES = 256 << 10 }; /* larger outputs go to the spool folder */

/* What still lies in a jail: the outputs that were left there, and the lane whose jail it is.
 * Thread-safe. */
struct jail_rest;
struct jail_rest *jail_rest_create(void); /* NULL: out of memory */
void jail_rest_leave(struct jail_rest **self);
bool jail_rest_is_empty(struct jail_rest *rest); /* no output is left there */
/* Copies what is left there to unnamed files of `spool`, which take its place under the same
 * descriptors, whoever reads them meanwhile. False: some is left all the same. For the lane's
 * thread. */
bool jail_rest_move_out(struct jail_rest *rest, const char *spool);

struct kept { /* one output; all zero when there is none */
    char *name;
    struct hash32 hash;
    uint64_t size;
    int fd;                 /* -1: `bytes` */
    uint8_t *bytes;         /* NULL when the size is 0 */
    struct jail_rest *rest; /* of the jail that `fd` was left in; NULL: it is our own */
    struct list_link link;  /* there, while it is in that jail; guarded by it */
};

struct outcome {
    struct list_link link; /* in a queue */
    struct agent_work work;
    struct id128 job;
    struct given_files given; /* outcome_destroy frees it */
    enum result_outcome result;
    int64_t started_ms; /* wall clock */
    int64_t busy_ns;
    int64_t energy_uj; /* when has_energy */
    bool has_energy;
    int64_t cpu_ns;
    int64_t peak_memory_bytes;
    bool is_cancelled; /* before it began */
    uint32_t pipeline; /* its executor takes so many of one lane at once; 0: one */
    bool ran;          /* exit_code and signal mean something */
    int exit_code;
    int signal;
    bool lacks_factor;           /* of a check: an input is missing that it does not judge */
    enum result_verdict verdict; /* of a check that came to one; its seed is among what was given */
    char detail[LIMIT_TEXT_BYTES];
    struct kept standard_output, standard_error;
    struct kept *outputs; /* outcome_reserve makes room */
    size_t output_count;
    struct kept *saved; /* the checkpoint; outcome_reserve_saved makes room */
    size_t saved_count;
    bool is_again;    /* stored once before: its result was sent, and the broker had lost a file */
    bool is_unstored; /* its files could not be stored: the detail says why */
};

struct outcome *outcome_create(const struct agent_work *work, const struct id128 *job);
void outcome_destroy(struct outcome **self);

/* Room for `count` outputs, all empty. False: out of memory. */
bool outcome_reserve(struct outcome *outcome, size_t count);
bool outcome_reserve_saved(struct outcome *outcome,
                           size_t count); /* likewise, for the checkpoint */

/* What the files take that an outcome keeps; those in memory are no files. */
struct outcome_size {
    size_t files;
    uint64_t file_bytes, memory_bytes;
};
struct outcome_size outcome_measure(const struct outcome *outcome);
/* No run of its jail waits any more for what it left there. */
void outcome_let_go(struct outcome *outcome);

/* Ends as `result` with a line for people; what was kept is dropped. */
__attribute__((format(printf, 3, 4))) void
outcome_fail(struct outcome *outcome, enum result_outcome result, const char *format, ...);

/* Copies `size` bytes of `fd` from offset 0 to `ret_kept`, which outcome_destroy frees. `name` is
 * copied; `spool` is a folder of ours. OK, or with the problem CANCELLED when its disk is crowded
 * (the work is given back, another provider may have room) and JAIL_FAILED for all else: also an
 * output that is larger than the room of a disk that is not crowded. */
enum result_outcome outcome_keep(const char *spool, const char *name, int fd, uint64_t size,
                                 struct kept *ret_kept, struct problem *ret_problem);
/* The same without a copy: `fd` is hashed, and left in its jail. Whatever writes to it later, its
 * hash stays: the broker takes nothing else for it. */
enum result_outcome outcome_leave(struct jail_rest *rest, const char *name, int fd, uint64_t size,
                                  struct kept *ret_kept, struct problem *ret_problem);

#endif
