/* An outcome is the end of one subtask, with its output bytes, until the broker has both.
 *
 * Outputs live in the jail's memory and must leave it before the jail's next run. Each is copied
 * once and hashed on the way: into memory when small, else into an unnamed file of the spool
 * folder. Alternatively an output stays in the jail. The output then stays until the broker has it
 * or the jail's next run needs the memory. */
#ifndef BOURSE_PROVIDER_WORK_OUTCOME_H
#define BOURSE_PROVIDER_WORK_OUTCOME_H

#include "base/energy.h"
#include "base/id.h"
#include "base/list.h"
#include "base/problem.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "provider/session/agent_session.h"
#include "provider/session/device_fault.h"
#include "provider/work/dispatch_inputs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTCOME_MEMORY_BYTES = 256 << 10 }; /* larger outputs go to the spool folder */

/* A struct left_outputs lists the outputs that were left in a jail, and knows the lane of that
 * jail. Thread-safe. */
struct left_outputs;
/* Returns NULL when memory is short. */
struct left_outputs *outcome_left_create(void);
void outcome_left_release(struct left_outputs **self);
bool outcome_left_is_empty(struct left_outputs *left); /* true when no output is left there */
/* Copies the left outputs to unnamed files of `spool`. The files replace them under the same
 * descriptors, even while others read them. Returns false when some output is still left in the
 * jail. Only the lane's thread calls this. */
bool outcome_left_move_out(struct left_outputs *left, const char *spool);

/* A kept output; all fields are zero when there is none. */
struct kept {
    char *name;
    struct hash32 hash;
    uint64_t size;
    bool is_executable; /* an output that the program's user could execute */
    int fd;             /* -1: the data is in `bytes` */
    uint8_t *bytes;     /* NULL when the size is 0 */
    /* The outputs left in the jail, `fd` among them; NULL: the file is our own. */
    struct left_outputs *left_in;
    struct list_link link; /* entry of `left_in`, while left in the jail; guarded by it */
};

struct outcome {
    struct list_link link; /* entry of a queue */
    struct agent_work work;
    struct id128 job;
    struct dispatch_inputs dispatch; /* outcome_destroy frees it */
    enum result_outcome result;
    int64_t started_ms; /* wall clock */
    int64_t busy_ns;
    int64_t energy_uj; /* set when has_energy; LIMIT_ENERGY_UJ at most */
    bool has_energy;
    enum energy_source energy_source; /* of energy_uj */
    /* Inputs that the memory of a device for kernels had, and those copied to it. */
    uint64_t held_bytes, copied_bytes;
    int64_t cpu_ns;
    int64_t peak_memory_bytes;
    int64_t peak_power_mw; /* greatest power read of the whole device; 0: none was read */
    bool is_cancelled;     /* before it began */
    uint32_t pipeline;     /* works that its executor takes at once from one lane; 0: one */
    bool has_terminal;     /* somebody sat at the program's terminal */
    size_t offer;          /* the number of the lane's device among the offers */
    /* The device or its jail failed in this way, and the job is not to blame; else NONE. */
    enum device_fault fault;
    bool ran;           /* exit_code and signal are set */
    bool has_isolation; /* it ran in a jail, whose level is `isolation` */
    int isolation;      /* 0 to 3 */
    int exit_code;
    int signal;
    /* An input of a check is missing, and the missing input is not the one under judgement. */
    bool lacks_factor;
    enum result_verdict verdict; /* a check's verdict; its seed is in `dispatch` */
    char detail[LIMIT_TEXT_BYTES];
    struct kept standard_output, standard_error;
    struct kept *outputs; /* outcome_reserve allocates it */
    size_t output_count;
    struct kept *checkpoint; /* the checkpoint; outcome_reserve_checkpoint allocates it */
    size_t checkpoint_count;
    /* The files were stored once before: the result was sent, and the broker had lost a file. */
    bool is_again;
    /* The files could not be stored; the detail says why. */
    bool is_unstored;
    /* The main thread only: since when, and until when, the result waits for live output; 0: it
     * does not. */
    int64_t held_ns, held_until_ns;
};

struct outcome *outcome_create(const struct agent_work *work, const struct id128 *job);
void outcome_destroy(struct outcome **self);

/* Allocates `count` outputs, all empty. Returns false when memory is short. */
bool outcome_reserve(struct outcome *outcome, size_t count);
/* Allocates `count` empty files of a checkpoint. Returns false when memory is short. */
bool outcome_reserve_checkpoint(struct outcome *outcome, size_t count);

/* Sizes of the files and the memory that an outcome keeps; outputs in memory are not counted as
 * files. */
struct outcome_size {
    size_t files;
    uint64_t file_bytes, memory_bytes;
};
struct outcome_size outcome_measure(const struct outcome *outcome);
/* Makes no run of the jail wait any more for the outputs that were left in it. */
void outcome_let_go(struct outcome *outcome);

/* Ends the outcome as `result` with a line for people; kept outputs are dropped. */
__attribute__((format(printf, 3, 4))) void
outcome_fail(struct outcome *outcome, enum result_outcome result, const char *format, ...);

/* Copies `size` bytes of `fd` from offset 0 to `ret_kept`, which outcome_destroy frees. `name` is
 * copied; `spool` is a folder of ours. Returns OK, or another outcome with the problem. CANCELLED
 * means that the disk is crowded: the work is given back, because another provider may have room.
 * JAIL_FAILED is for all else, also for an output larger than the room of a disk that is not
 * crowded. */
enum result_outcome outcome_keep(const char *spool, const char *name, int fd, uint64_t size,
                                 struct kept *ret_kept, struct problem *ret_problem);
/* Returns the outcome of an output that could not be kept because of `error` (errno), and the
 * problem, as outcome_keep does. */
enum result_outcome outcome_unkept(const char *spool, uint64_t size, int error,
                                   struct problem *ret_problem);
/* Keeps an output without a copy: `fd` is hashed, and left in its jail. The hash stays even if the
 * file is written later, and the broker takes no other bytes for it. */
enum result_outcome outcome_leave(struct left_outputs *left, const char *name, int fd,
                                  uint64_t size, struct kept *ret_kept,
                                  struct problem *ret_problem);

#endif
