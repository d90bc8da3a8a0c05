/* A jail is a bubblewrap sandbox for one lane of one job. Its PID 1, bourse-worker, runs the job's
 * subtasks one after another (docs/decisions.md D14).
 *
 * The agent never interprets what is in a job's files. The agent speaks to the worker over a
 * socket pair, trusts nothing that comes back, and owns the jail's life. Every process inside ends
 * when the agent closes the jail or dies. Between subtasks the worker kills all remaining processes
 * and empties the writable folders. So a subtask sees nothing of the one before.
 *
 * Inside, the root is read-only: the host's /usr tree, or an image. /work (the current folder),
 * /tmp and /dev/shm are size-limited memory file systems. There is no network, and one user: 1000,
 * or the one of an image. The host's name is "jail". jail_open, jail_run and jail_close block and
 * belong to one thread per jail, the lane's. jail_cancel comes from any thread. Different jails are
 * independent. */
#ifndef BOURSE_PROVIDER_JAIL_JAIL_H
#define BOURSE_PROVIDER_JAIL_JAIL_H

#include "base/id.h"
#include "base/problem.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/launcher.h"
#include "provider/session/device_fault.h"
#include "provider/tensor/held_figures.h"
#include "runtime/stamp.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies the worker's program, or that of a resident, to `target` with mode 0500. The file
 * belongs to `owner`, unless that is (uid_t)-1. The copy exists because the service user may be
 * unable to read the place where the program was built. Call this function before dropping
 * privileges. */
bool jail_install_worker(const char *source, const char *target, uid_t owner,
                         struct problem *ret_problem);

/* These limits bound a whole jail. 0 means the default in jail_open.c.
 *
 * `memory_bytes` is for all processes together, and for each alone when no cgroup counts.
 * `disk_bytes` is for the files in /work, /tmp and /dev/shm together. Those files live in memory,
 * so the jail's cgroup may hold memory_bytes + disk_bytes. Every 40 ms the worker looks, and it
 * ends a program whose own memory exceeds memory_bytes. */
struct jail_limits {
    uint64_t memory_bytes;
    uint64_t disk_bytes;
    uint32_t processes; /* processes and threads, at a time */
    uint32_t cpu_milli; /* thousandths of a CPU; 0: only the CPU set binds */
};

/* These are the parts of a jail for kernels that a jail for tensor jobs lacks. The jail sees how
 * cores and caches are arranged (/sys/devices/system), which OpenCL libraries there are
 * (/etc/OpenCL), and what their compilers read (/usr/share/pocl, /usr/share/clc). */
struct jail_kernel {
    const char *path; /* absolute path of the installed bourse-kernel */
    /* Device files below /dev that the device's driver needs; NULL ends the list. A file that is
     * not there is left out. Each file opens a way into the kernel's driver, so a jail with one is
     * weaker. */
    const char *const *nodes;
    const char *pocl_devices; /* which devices pocl makes; NULL: its default */
};

/* These are the parts of a jail for the operations of an owner's plug-in (docs/plugins.md). */
struct jail_plugin {
    const char *path;    /* absolute path of the installed bourse-plugin */
    const char *program; /* absolute path of the owner's program, of which the jail has a copy */
    /* The device files that the program needs; NULL ends the list. The jail does not open without
     * one of them. Each is a way into the kernel's driver, as in struct jail_kernel. */
    const char *const *nodes;
};

/* These are the parts of a jail for models. The jail sees how cores and caches are arranged
 * (/sys/devices/system), which ONNX Runtime reads. */
struct jail_model {
    const char *path; /* absolute path of the installed bourse-onnx */
    /* Absolute path of ONNX Runtime's library, which only such jails see; NULL: there is none. */
    const char *library;
    /* The text is what bourse-onnx reads of an execution provider of ONNX Runtime (model_device.h);
     * NULL: processor cores compute. */
    const char *settings;
    /* The device files of the provider that there are, as in struct jail_kernel; used with
     * settings. */
    const char *const *nodes;
};

struct jail_spec {
    const char *worker_path; /* the installed worker, absolute */
    /* Absolute path of an unpacked image (image.h); NULL: the host's system tree. */
    const char *image_path;
    /* Absolute path in the image where programs start; NULL: /work. */
    const char *directory;
    uint32_t user, group; /* whom programs see as themselves; user 0: both are 1000 */
    /* Absolute path of the installed bourse-tensor for a job of tensor subtasks; else NULL. */
    const char *tensor_path;
    /* The parts for a job of kernels, or of tensor subtasks on a device for kernels. Such a job has
     * no tensor_path. Else NULL. */
    const struct jail_kernel *kernel;
    /* The parts for a job of a plug-in's operations, which has neither; else NULL. */
    const struct jail_plugin *plugin;
    /* The parts for a job of ONNX models, which has none of the above; else NULL. */
    const struct jail_model *model;
    /* Absolute path of the installed bourse-wasm.cjs for a job of WASM modules; else NULL. Such a
     * jail has no resident: the engine is a program of the host. */
    const char *wasm_host;
    /* Absolute path of the installed bourse-wasm for a job of WASM modules by wasmtime's library;
     * else NULL. Such a jail has no resident: bourse-wasm is a program of the jail. */
    const char *wasm_runner;
    /* NULL, or a list of host folders beside those of system_tree.h; NULL ends the list. */
    const char *const *visible;
    const char *bind_path; /* NULL; for image.c: folder used as /work and kept after runs */
    const char *name;      /* name of its cgroup: [a-z0-9-], unique among open jails */
    struct jail_limits limits;
    const cpu_set_t *cpus;   /* NULL: any */
    struct cgroups *cgroups; /* NULL: none; rlimits alone then */
};

struct jail;

/* Returns true when a program stays in such a jail for all its runs (struct jail_request). */
bool jail_has_resident(const struct jail_spec *spec);

/* Starts the sandbox and waits until the worker has proved every layer that level 1 demands. Those
 * layers are PID 1 of its own namespaces, no capabilities, no-new-privs, and a seccomp filter.
 * Refuses to run as root. On failure nothing is left. */
bool jail_open(struct launcher *launcher, const struct jail_spec *spec, struct jail **ret_jail,
               struct problem *ret_problem);
/* Ends everything in the jail and waits for the end, seconds at worst. Clears the caller's
 * pointer. */
void jail_close(struct jail **self);

/* A jail_look says how an input looked on the machine of the job's owner. */
struct jail_look {
    unsigned mode;       /* nine bits of permissions; unused for a link */
    int64_t modified_ns; /* since 1970 */
};

struct jail_input {
    const char *name; /* relative path below /work; no "..", no empty part */
    int fd;           /* borrowed; read with explicit offsets */
    uint64_t offset;  /* where the input begins in the file; 0 for an input that has a hash */
    uint64_t size;
    const struct hash32 *hash; /* hash that the placed bytes must have; NULL: already verified */
    bool is_last;              /* true: its memory may be freed when it is placed; needs a hash */
    /* The hash of the bytes, for a resident that may hold them for its next runs; NULL: the
     * resident is not told. It may be the hash above, which is verified first. */
    const struct hash32 *content;
    /* The file of a tensor operation or of a model's input is mapped, not placed. This needs
     * jail_may_map. A file with a hash above is hashed first. */
    bool is_mapped;
    /* The resident still has what it made of the input in an earlier run of this jail, so that the
     * input is only told. This needs `content`. */
    bool is_held;
    /* The stamp of a mapped input says how the file looked when its hash was verified. A file with
     * an unknown or different stamp is hashed again, and a match updates the stamp. NULL: nobody
     * wants the stamp. */
    struct stamp *hashed;
    /* False: read-only data. The program may be unable to write to the file in either case. */
    bool executable;
    bool is_state; /* a file of a checkpoint; the program may write to it */
    /* A folder or a link has no bytes, and no descriptor. Links are made when every other input has
     * its place. */
    bool is_folder;
    const char *link; /* the target of a link, as staged_link_problem allows; NULL: none */
    /* The place gets these permissions and this time, which replace the flags above. */
    struct jail_look look;
    bool has_look;
};

/* A jail_entry is a file of a folder that is an output, or an empty folder or a link there. A file
 * is a regular file in memory. */
struct jail_entry {
    size_t output;               /* index of the folder in the request's outputs */
    char name[LIMIT_PATH_BYTES]; /* plain path below the folder */
    int fd;                      /* borrowed; -1 for what is no file */
    uint64_t size;
    bool is_executable;
    bool is_folder;
    char link[LIMIT_PATH_BYTES]; /* the target of a link; "" for others */
};
/* Copies one entry. Returns OUTCOME_OK, or the outcome that ends the run, with the problem. The
 * files of a folder come first, then the empty folders, then the links, each in ascending order of
 * their names' bytes. */
typedef enum result_outcome jail_take_entry(void *context, const struct jail_entry *entry,
                                            struct problem *ret_problem);

/* The program of a run gets a terminal instead of standard streams. `take` gets the master, which
 * does not wait, before the program starts, in the thread of jail_run. The master is then the
 * taker's. It gives EIO once no process of the run is left. */
struct jail_terminal {
    uint16_t columns, rows;
    bool is_plain; /* no person types: no echo, and output as it is */
    void (*take)(void *context, int master);
    void *context;
};

enum { JAIL_MADE_MAX = 8 };
struct jail_made {
    const char *name;
    struct hash32 hash;
};

/* `argv` ends with NULL and has at least a program. A program name without '/' is looked up in the
 * jail's PATH. `env` is NULL or ends with NULL; PATH, HOME, TMPDIR and LANG have defaults. Standard
 * input is the first `stdin_size` bytes of `stdin_fd` (a regular file), or of `stdin_bytes` unless
 * that is NULL. */
struct jail_request {
    /* 0: `argv` is a program. Above 0: `argv` is for the jail's resident, which uses at most so
     * many threads. It is an operation (formats/tensor_op.h) for bourse-tensor, a launch
     * (formats/kernel/kernel_op.h) for bourse-kernel, and an operation with its arguments for
     * bourse-plugin. The resident stays for the jail's next subtasks, and does not get `env` or
     * standard input. */
    uint32_t tensor_threads;
    const char *const *argv;
    const char *const *env; /* "NAME=value" */
    const struct jail_input *inputs;
    size_t input_count;
    /* The outputs that the resident left in the jail's last run, for a resident that still has
     * their bytes elsewhere. At most JAIL_MADE_MAX. */
    const struct jail_made *made;
    size_t made_count;
    /* The resident is bourse-kernel, and gets this end of a connection over which inputs of the
     * jail's next run come (provider/tensor/ahead.h). Borrowed. */
    bool has_ahead;
    int ahead;
    int stdin_fd;
    uint64_t stdin_size; /* 0: empty */
    const void *stdin_bytes;
    /* Names of files below /work to hand back. A name that ends with a slash is a folder, whose
     * files go to `take_entry` when the program has ended well. */
    const char *const *outputs;
    size_t output_count;
    /* NULL, or by output: NULL, or a pattern (base/pattern.h). The output is a folder then, or "./"
     * for the work folder, and only its files that the pattern matches are handed back. */
    const char *const *patterns;
    /* Outputs that are folders keep their links and empty folders. Else these are left out. */
    bool keeps_trees;
    jail_take_entry *take_entry; /* NULL: no output is a folder */
    void *take_context;
    /* NULL, or the folder below /work where the program saves its state. The folder exists at the
     * start. The folder is handed back if the program ended because of jail_notice. */
    const char *checkpoint;
    uint64_t wall_ns; /* 0: the default in jail.c */
    uint64_t cpu_ns;  /* CPU time of all processes; 0: only wall time limits */
    /* NULL, or a flag. Soon after the flag is set, the run ends with OUTCOME_CANCELLED. */
    const atomic_bool *give_up;
    /* All output files together, or a whole checkpoint, have at most these bytes; 0: the jail's
     * disk_bytes. */
    uint64_t output_bytes;
    const struct jail_terminal *terminal; /* NULL: standard streams */
    /* Stdout and stderr are each kept up to these bytes; 0: 1 MiB; at most 64 MiB. */
    uint64_t capture_bytes;
};

/* An output is a regular file in memory. Read exactly `size` bytes at explicit offsets (pread), and
 * hash the bytes that were read. The next run overwrites the captured streams. */
struct jail_output {
    int fd; /* -1: not there, or a folder */
    uint64_t size;
    bool is_executable; /* the file's owner may execute it */
};

/* One file of a checkpoint. */
struct jail_saved {
    char *name; /* path below the checkpoint's folder */
    int fd;
    uint64_t size;
};

/* `outputs` are as in the request, and only set after OUTCOME_OK. A jail with `jail_ended` set is
 * of no further use: close it, and open another if there is more work. */
struct jail_reply {
    enum result_outcome outcome;
    int exit_code;               /* exit code of a program that exited */
    int signal;                  /* signal that ended the program, else 0 */
    enum result_verdict verdict; /* verdict of a tensor subtask that is a check */
    /* The resident says what is wrong with its device. An OUTCOME_TIME_LIMIT has DEVICE_FAULT_HANG
     * when the jail did not answer. */
    enum device_fault fault;
    int64_t busy_ns;           /* our clock: from the request to the reply, without frozen_ns */
    int64_t frozen_ns;         /* our clock: the program stood still by jail_freeze */
    int64_t cpu_ns;            /* the worker reports it */
    int64_t peak_memory_bytes; /* peak of the largest process */
    struct jail_output standard_output, standard_error; /* fd -1 when empty */
    bool stdout_cut, stderr_cut;                        /* more was written than is kept */
    struct jail_output outputs[LIMIT_OUTPUTS];
    size_t output_count;
    uint64_t folder_bytes;    /* what the files of folders take in archives, all together */
    struct held_figures held; /* of a device for kernels; else zeros */
    bool was_noticed;         /* jail_notice sent its program SIGTERM */
    /* The files that the program saved after the notice, by name, in ascending order of their
     * bytes. If there is none, nothing was saved, and the detail says why. */
    struct jail_saved saved[LIMIT_CHECKPOINT_FILES];
    size_t saved_count;
    char detail[LIMIT_TEXT_BYTES]; /* one printable line, e.g. which output is missing */
    bool jail_ended;
};

/* Returns true when the jail's bourse-tensor or bourse-onnx may map the file. Only root and our own
 * user may be able to change the file, and both could change the agent as well. Nothing in the jail
 * may be able to change it, neither through the mapping nor by opening the descriptor again. */
enum { JAIL_MAPPED_MAX = 3 };    /* mapped inputs of a request */
enum { JAIL_CONTENTS_MAX = 64 }; /* inputs of a request whose content the resident is told */
bool jail_may_map(const struct jail *jail, int fd);
/* Returns true when a file of another owner has the hash of its input. *ret_stamp says how the file
 * looked then. While a known stamp of the input stays, nothing is hashed again; else the stamp
 * becomes known or unknown. Any thread may call this. */
bool jail_input_verify(const struct jail_input *input, struct stamp *ret_stamp);

/* Runs one subtask and always fills the reply. Wrong input, a limit and a broken jail are all
 * outcomes. jail_reply_fini closes the descriptors. Call it before the next run, for open files
 * count against the disk limit. */
void jail_run(struct jail *jail, const struct jail_request *request, struct jail_reply *ret_reply);
void jail_reply_fini(struct jail_reply *reply);

/* A part of what the present run has written to a stream. */
struct jail_live {
    uint64_t offset; /* place of the first byte in the stream */
    size_t length;
    uint64_t total; /* bytes that the program has written so far */
};

/* Reads what the run under way has written to standard output (stream 0) or standard error (1),
 * from byte `from` on, at most `capacity` bytes. The offset of *ret_live is above `from` when the
 * bytes before it are no longer there. With `has_ended` the last run is read, which has ended.
 * Returns false when there is no such run. Any thread may read a run under way. */
bool jail_read_live(struct jail *jail, unsigned stream, bool has_ended, uint64_t from, void *bytes,
                    size_t capacity, struct jail_live *ret_live);
/* Returns the bytes of each stream that the reply of the last run keeps. */
uint64_t jail_kept_bytes(struct jail *jail);

/* Asks the worker for an answer without running anything (liveness). Returns false when the jail
 * has ended. */
bool jail_noop(struct jail *jail);

/* Lets the worker answer each of these subtasks (1 to JAIL_NOOPS_MAX, by index) without executing
 * anything. Returns false when the jail has ended; then none counts as answered. */
enum { JAIL_NOOPS_MAX = 1024 };
bool jail_noops(struct jail *jail, const uint32_t *subtasks, size_t count);

/* Ends the run in progress, if any; jail_run soon returns with `outcome` (OUTCOME_CANCELLED or
 * OUTCOME_TERM_OVER). Without a run in progress nothing happens. The caller makes sure that the
 * jail is not closed meanwhile. */
void jail_cancel(struct jail *jail, enum result_outcome outcome);
/* Sends SIGHUP to every process of the running program, and SIGKILL to those that are left 3 s
 * later. Returns false when no program runs. */
bool jail_hang_up(struct jail *jail);
/* Lets the programs of the jail stand still, or go on: every process of the run under way, and of
 * later runs as soon as they begin. Time limits do not count the time between. Any thread may
 * call it. */
void jail_freeze(struct jail *jail, bool is_frozen);
/* Sends SIGTERM to every process of the running program, which may react as it likes. A subtask
 * that the jail's own process computes goes on. A frozen run goes on, too. Returns false when no
 * program runs yet, or none runs any more. */
bool jail_notice(struct jail *jail);

#endif
