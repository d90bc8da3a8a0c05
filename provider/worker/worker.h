/* provider/worker/worker.h declares the parts of bourse-worker, PID 1 of every jail.
 *
 * The worker is static, small and single-threaded. The worker runs beside the job, so it parses
 * nothing that the job writes except directory entries. The agent's requests are parsed, too. Every
 * other process in the jail is dead before the worker opens an output or empties a folder. So no
 * path changes under it. */
#ifndef BOURSE_PROVIDER_WORKER_WORKER_H
#define BOURSE_PROVIDER_WORKER_WORKER_H

#include "protocol/limits.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { FOLDERS = 3, FOLDER_WORK = 0 }; /* /work, /tmp, /dev/shm */

/* The resident program computes a job's tensor subtasks. The program is started for the first
 * subtask and stays for the next ones. */
struct resident {
    pid_t pid; /* 0: none */
    int socket;
    int pipes[2]; /* the program's standard output and error, read without waiting */
};

struct worker {
    int socket;
    int children; /* signalfd of SIGCHLD */
    int folders[FOLDERS];
    int null;       /* /dev/null */
    int ruleset;    /* Landlock; -1 without */
    int capture[2]; /* the agent's files for stdout and stderr */
    /* There is no memory cgroup: RLIMIT_AS and a watch of /proc bound memory. */
    bool watch_memory;
    /* The worker watches this memory.stat of the jail's control group, if there is one. */
    int memory_file;
    /* The control group counts so much for the jail before anything runs in it. */
    uint64_t own_bytes;
    /* There is no pids cgroup: RLIMIT_NPROC and a watch bound processes. */
    bool count_processes;
    struct resident resident;
};

struct input {
    const char *name;
    uint8_t kind; /* enum wire_input_kind */
    int file;     /* open until it is filled; mapped: from GO to the end of the run */
};

struct run {
    uint32_t number;
    bool keep, wants_stdin;
    int stdin_file; /* -1: /dev/null */
    uint64_t wall_ns, cpu_ns, memory_bytes, disk_bytes, output_bytes, capture_bytes;
    uint32_t processes;
    /* 0: `argv` is a program; else it is an operation for the resident. */
    uint32_t tensor_threads;
    char **argv, **env; /* NULL-terminated, into the request's body */
    struct input *inputs;
    size_t input_count;
    size_t mapped_count;
    uint64_t mapped_bytes; /* bytes that count as if they had been placed */
    const char *outputs[LIMIT_OUTPUTS];
    size_t output_count;
    /* The program saves its state in this folder when it is told to end; NULL: it has none. */
    const char *checkpoint;
};

struct outcome {
    enum result_outcome outcome;
    int exit_code, signal;
    enum result_verdict verdict; /* verdict of a tensor subtask that is a check */
    uint64_t cpu_ns, peak_memory_bytes;
    uint64_t captured[2];
    bool cut[2];
    int output_files[LIMIT_OUTPUTS]; /* -1: not there */
    uint64_t output_sizes[LIMIT_OUTPUTS];
    size_t output_count;
    bool was_noticed;    /* the program was told to end */
    bool has_checkpoint; /* the program left a checkpoint, whose files have been sent */
    char detail[256];
};

/* confine.c confines a new process. */
int confine_abi(void); /* Landlock version; 0: none */
/* Returns a ruleset: read and execute anywhere, write in the folders; -1 without Landlock. */
int confine_ruleset(void);
uint32_t confine_facts(void);
/* A child holds all that the new process needs, computed before it exists. */
struct child {
    int standard[3];
    int ruleset;
    uint64_t address_bytes, cpu_seconds, file_bytes, processes; /* 0: no limit */
    char *const *argv;
    char *const *env;
    const char *path; /* list of folders to search */
};
/* Confines the new process, in which it is called, and executes the program. Returns only on
 * failure, with errno. */
int confine_execute(const struct child *child);

/* stage.c brings files in and out. */
bool stage_places(struct worker *worker, struct run *run, struct outcome *ret_outcome);
void stage_seal(struct run *run); /* makes inputs read-only and closes them */
bool stage_map(struct run *run, const int *files, size_t file_count); /* takes the files over */
void stage_unmap(struct run *run);
void stage_outputs(struct worker *worker, const struct run *run, struct outcome *outcome);
/* Opens a file or folder below `folder` for reading. The job may have made anything of it. Returns
 * -1 with errno on failure. stage_why_missing turns the errno into text. */
int stage_open(int folder, const char *name);
const char *stage_why_missing(int error);
bool stage_empty(struct worker *worker); /* false: something cannot be removed */
struct usage {
    uint64_t used_bytes, files;
    bool full;
};
struct usage stage_usage(const struct worker *worker, bool work_too);

/* work_checkpoint.c sends the files of the checkpoint, if they are as they should be. Otherwise the
 * detail says why not. */
void work_checkpoint_send(const struct worker *worker, const struct run *run,
                          struct outcome *outcome);

/* watch.c measures what the processes of the jail use, from /proc or as their control group counts
 * it. */
struct load {
    uint64_t cpu_ns, resident_bytes;
    uint32_t processes; /* threads included, the worker excluded */
};
struct load watch_load(void);
/* Returns memory of the jail's control group outside the files of its folders. This is anonymous
 * memory, and shared memory without a file there. */
uint64_t watch_group_memory(const struct worker *worker, bool work_too);
bool watch_alone(pid_t pid); /* true when only `pid` and the worker are alive */

/* start.c starts new processes. */

/* Starts a process. *ret_error is the errno of its execve. */
pid_t start_child(const struct child *child, volatile int *ret_error);
void start_failed(struct outcome *outcome, const char *name, int error);
bool start_pipes(int ret_reads[2], int ret_writes[2]); /* the reading ends do not wait */

/* resident.c talks to bourse-tensor (provider/tensor/ask.h). */
bool resident_ready(struct worker *worker, const struct run *run, struct outcome *outcome);
bool resident_ask(const struct worker *worker, const struct run *run, struct outcome *outcome);
/* Returns false when the resident is ending. */
bool resident_answer(const struct worker *worker, struct outcome *outcome);
uint64_t resident_cpu_ns(const struct worker *worker);
void resident_forget(struct worker *worker); /* the resident is dead */

/* run.c runs the program and leaves no process alive. */
void run_program(struct worker *worker, struct run *run, struct outcome *ret_outcome);

#endif
