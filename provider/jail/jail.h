/* provider/jail/jail.h - one jail per (job, lane): a bubblewrap sandbox whose PID 1, bourse-worker,
 * runs the job's subtasks one after another (docs/decisions.md D14).
 *
 * The agent never interprets a job's bytes. It speaks to the worker over a socket pair, trusts
 * nothing that comes back, and owns the jail's life: closing it, or dying, ends every process
 * inside. Between subtasks the worker kills whatever is left and empties the writable folders,
 * so a subtask sees nothing of the one before.
 *
 * Inside: the root is read-only (the host's /usr tree, or an image), /work (the current folder),
 * /tmp and /dev/shm are size-limited memory file systems, there is no network, one user (1000),
 * and the host's name is "jail". jail_open, jail_run and jail_close block and belong to one
 * thread per jail (the lane's); jail_cancel comes from any thread. Different jails are
 * independent. */
#ifndef BOURSE_PROVIDER_JAIL_JAIL_H
#define BOURSE_PROVIDER_JAIL_JAIL_H

#include "base/id.h"
#include "base/problem.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/launcher.h"
#include "runtime/stamp.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies the worker's program, or bourse-tensor, to `target` (mode 0500, owned by `owner` unless it
 * is (uid_t)-1), because the service user may not be able to read where it was built. Call it
 * before dropping privileges. */
bool jail_install_worker(const char *source, const char *target, uid_t owner,
                         struct problem *ret_problem);

/* What bounds a whole jail. 0 means the default in jail_open.c.
 *
 * `memory_bytes` is for all its processes together (and for each alone, where no cgroup counts).
 * `disk_bytes` is for the files in /work, /tmp and /dev/shm together; they live in memory, so the
 * jail's cgroup may hold memory_bytes + disk_bytes, and the worker ends what takes more than
 * memory_bytes beside them, at its next look: every 40 ms. */
struct jail_limits {
    uint64_t memory_bytes;
    uint64_t disk_bytes;
    uint32_t processes; /* and threads, at a time */
    uint32_t cpu_milli; /* thousandths of a CPU; 0: only the CPU set binds */
};

struct jail_spec {
    const char *worker_path; /* the installed worker, absolute */
    const char
        *image_path; /* an unpacked image (image.h), absolute; NULL: the host's system tree */
    const char
        *tensor_path; /* NULL; of a job of tensor subtasks: bourse-tensor as installed, absolute */
    /* NULL, or ends with NULL: folders of the host beside those of system_tree.h. */
    const char *const *visible;
    const char *bind_path; /* NULL; for image.c: a folder that is /work and is kept after runs */
    const char *name;      /* of its cgroup: [a-z0-9-], unique among open jails */
    struct jail_limits limits;
    const cpu_set_t *cpus;   /* NULL: any */
    struct cgroups *cgroups; /* NULL: none; rlimits alone then */
};

struct jail;

/* Starts the sandbox and waits until the worker has proved every layer that level 1 demands (PID
 * 1 of its own namespaces, no capabilities, no-new-privs, seccomp filter on). Refuses to run as
 * root. On failure nothing is left. */
bool jail_open(struct launcher *launcher, const struct jail_spec *spec, struct jail **ret_jail,
               struct problem *ret_problem);
/* Ends everything in the jail and waits for it (bounded, seconds at worst); clears the caller's
 * pointer. */
void jail_close(struct jail **self);

struct jail_input {
    const char *name; /* relative path below /work; no "..", no empty part */
    int fd;           /* borrowed; read with explicit offsets from 0 */
    uint64_t size;
    const struct hash32 *hash; /* what is placed must have it; NULL: that is known already */
    bool is_last;              /* with a hash: its memory may go to others when it is placed */
    /* With a hash, of a tensor operation, if jail_may_map: it is not placed. The file is hashed,
     * and then mapped there. */
    bool is_mapped;
    /* Of one that is mapped: how it looked when it had its hash. One that is not known, or looks
     * otherwise, is hashed again, and is known then if it has its hash. NULL: nobody wants to
     * know. */
    struct stamp *hashed;
    bool executable; /* else read-only data; either way the program may not be able to write it */
    bool is_state;   /* a file of a checkpoint: it may */
};

/* `argv` ends with NULL and has at least a program, which is looked up in the jail's PATH if its
 * name has no '/'. `env` is NULL or ends with NULL; PATH, HOME, TMPDIR and LANG have defaults.
 * stdin is `stdin_size` bytes from the start of `stdin_fd` (a regular file), or of `stdin_bytes`
 * if not NULL. */
struct jail_request {
    /* 0: `argv` is a program. Else it is an operation (formats/tensor_op.h) for the jail's
     * bourse-tensor, which computes on so many threads at most and stays for the jail's next
     * subtasks. `env` and stdin are not its. */
    uint32_t tensor_threads;
    const char *const *argv;
    const char *const *env; /* "NAME=value" */
    const struct jail_input *inputs;
    size_t input_count;
    int stdin_fd;
    uint64_t stdin_size; /* 0: empty */
    const void *stdin_bytes;
    const char *const *outputs; /* names of files below /work to hand back */
    size_t output_count;
    /* NULL, or the folder below /work where it saves its state: there at its start, and handed back
     * when it ended because of jail_notice. */
    const char *checkpoint;
    uint64_t wall_ns;       /* 0: the default in jail.c */
    uint64_t cpu_ns;        /* of all its processes together; 0: no limit but wall time */
    uint64_t output_bytes;  /* all output files together, or all of a checkpoint; 0: the jail's
                               disk_bytes */
    uint64_t capture_bytes; /* kept of stdout and of stderr, each; 0: 1 MiB; at most 64 MiB */
};

/* A regular file in memory. Read exactly `size` bytes at explicit offsets (pread), and hash what
 * was read. The captured streams are overwritten by the next run. */
struct jail_output {
    int fd; /* -1: not there */
    uint64_t size;
};

struct jail_saved { /* a file of a checkpoint */
    char *name;     /* below its folder */
    int fd;
    uint64_t size;
};

/* `outputs` are as in the request, after OUTCOME_OK only. With `jail_ended` the jail is of no
 * further use: close it, and open another if there is more work. */
struct jail_reply {
    enum result_outcome outcome;
    int exit_code;               /* when it exited */
    int signal;                  /* when it was ended by a signal, else 0 */
    enum result_verdict verdict; /* of a tensor subtask that is a check */
    int64_t busy_ns;             /* our clock: from the request to the reply */
    int64_t cpu_ns;              /* the worker's word */
    int64_t peak_memory_bytes;   /* of the largest process */
    struct jail_output standard_output, standard_error; /* fd -1 when empty */
    bool stdout_cut, stderr_cut;                        /* more was written than is kept */
    struct jail_output outputs[LIMIT_OUTPUTS];
    size_t output_count;
    bool was_noticed; /* its program was sent SIGTERM by jail_notice */
    /* What it then saved, by name, in ascending order of their bytes; none: nothing, and the detail
     * says why. */
    struct jail_saved saved[LIMIT_CHECKPOINT_FILES];
    size_t saved_count;
    char detail[LIMIT_TEXT_BYTES]; /* one printable line, e.g. which output is missing */
    bool jail_ended;
};

/* Whether a file may be mapped by the jail's bourse-tensor: nobody could change it but root and our
 * own user, who may change ourselves as well, and nothing in the jail could, neither through the
 * mapping nor by opening the descriptor again. */
enum { JAIL_MAPPED_MAX = 3 }; /* inputs of a request */
bool jail_may_map(const struct jail *jail, int fd);

/* Runs one subtask and fills the reply, whatever happens: wrong input, a limit, a broken jail
 * are all outcomes. jail_reply_fini closes the descriptors; do it before the next run, for open
 * files count against the disk limit. */
void jail_run(struct jail *jail, const struct jail_request *request, struct jail_reply *ret_reply);
void jail_reply_fini(struct jail_reply *reply);

/* The worker answers without running anything (liveness). False: the jail has ended. */
bool jail_noop(struct jail *jail);

/* The worker answers each of these subtasks (1 to JAIL_NOOPS_MAX, by index) without executing
 * anything for it. False: the jail has ended, and none counts as answered. */
enum { JAIL_NOOPS_MAX = 1024 };
bool jail_noops(struct jail *jail, const uint32_t *subtasks, size_t count);

/* Ends the run in progress, if any: jail_run soon returns with `outcome` (OUTCOME_CANCELLED or
 * OUTCOME_TERM_OVER). Without a run in progress nothing happens. The caller makes sure that the
 * jail is not closed meanwhile. */
void jail_cancel(struct jail *jail, enum result_outcome outcome);
/* Every process of the program that runs is sent SIGTERM; what it makes of it is its own affair.
 * False: none runs yet, or any more. A subtask that the jail's own process computes goes on. */
bool jail_notice(struct jail *jail);

#endif
