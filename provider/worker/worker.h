/* provider/worker/worker.h - the parts of bourse-worker, PID 1 of every jail.
 *
 * Static, small, single-threaded; it runs where the job runs, so it parses nothing that the job
 * writes: only the agent's requests and directory entries. Every process in the jail but itself is
 * dead before it opens an output or empties a folder, so no path changes under it. */
#ifndef BOURSE_PROVIDER_WORKER_WORKER_H
#define BOURSE_PROVIDER_WORKER_WORKER_H

#include "protocol/limits.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { FOLDERS = 3, FOLDER_WORK = 0 }; /* /work, /tmp, /dev/shm */

/* The program that computes a job's tensor subtasks: started for the first, it stays for the next
 * ones. */
struct resident {
    pid_t pid; /* 0: none */
    int socket;
    int pipes[2]; /* its standard output and error, read without waiting */
};

struct worker {
    int socket;
    int children; /* signalfd of SIGCHLD */
    int folders[FOLDERS];
    int null;             /* /dev/null */
    int ruleset;          /* Landlock; -1 without */
    int capture[2];       /* the agent's files for stdout and stderr */
    bool watch_memory;    /* there is no memory cgroup: RLIMIT_AS and a watch of /proc */
    int memory_file;      /* else memory.stat of the jail's, which is watched */
    uint64_t own_bytes;   /* of that, what the jail takes before anything runs in it */
    bool count_processes; /* there is no pids cgroup: RLIMIT_NPROC and a watch */
    struct resident resident;
};

struct input {
    const char *name;
    uint8_t kind; /* enum wire_input_kind */
    int file;     /* until it is filled; mapped: from GO to the end of the run */
};

struct run {
    uint32_t number;
    bool keep, wants_stdin;
    int stdin_file; /* -1: /dev/null */
    uint64_t wall_ns, cpu_ns, memory_bytes, disk_bytes, output_bytes, capture_bytes;
    uint32_t processes;
    uint32_t tensor_threads; /* 0: a program of its own; else `argv` is for the resident */
    char **argv, **env;      /* NULL-terminated, into the request's body */
    struct input *inputs;
    size_t input_count;
    size_t mapped_count;
    uint64_t mapped_bytes; /* they count as if they had been placed */
    const char *outputs[LIMIT_OUTPUTS];
    size_t output_count;
    const char
        *checkpoint; /* folder where it saves its state when it is told to end; NULL: it has none */
};

struct outcome {
    enum result_outcome outcome;
    int exit_code, signal;
    enum result_verdict verdict; /* of a tensor subtask that is a check */
    uint64_t cpu_ns, peak_memory_bytes;
    uint64_t captured[2];
    bool cut[2];
    int output_files[LIMIT_OUTPUTS]; /* -1: not there */
    uint64_t output_sizes[LIMIT_OUTPUTS];
    size_t output_count;
    bool was_noticed; /* its program was told to end */
    bool saved;       /* and left a checkpoint, whose files have been sent */
    char detail[256];
};

/* confine.c */
int confine_abi(void);     /* of Landlock; 0 without */
int confine_ruleset(void); /* read and execute anywhere, write in the folders; -1 without */
uint32_t confine_facts(void);
struct child { /* all that the new process needs, computed before it exists */
    int standard[3];
    int ruleset;
    uint64_t address_bytes, cpu_seconds, file_bytes, processes; /* 0: no limit */
    char *const *argv;
    char *const *env;
    const char *path; /* list of folders to search */
};
/* In the new process: confines it and executes the program. Returns only on failure, with errno. */
int confine_execute(const struct child *child);

/* stage.c */
bool stage_places(struct worker *worker, struct run *run, struct outcome *ret_outcome);
void stage_seal(struct run *run); /* inputs become read-only and are closed */
bool stage_map(struct run *run, const int *files, size_t file_count); /* takes them over */
void stage_unmap(struct run *run);
void stage_outputs(struct worker *worker, const struct run *run, struct outcome *outcome);
/* A file or folder below `folder`, whatever the job has made of it, to be looked at and read: -1
 * with errno. And why not. */
int stage_open(int folder, const char *name);
const char *stage_why_missing(int error);
bool stage_empty(struct worker *worker); /* false: something cannot be removed */
struct usage {
    uint64_t used_bytes, files;
    bool full;
};
struct usage stage_usage(const struct worker *worker, bool work_too);

/* saved.c: sends the files of the checkpoint, if they are as they should be; else the detail says
 * why not. */
void saved_send(const struct worker *worker, const struct run *run, struct outcome *outcome);

/* watch.c: what the processes of the jail use, from /proc or as their control group counts it. */
struct load {
    uint64_t cpu_ns, resident_bytes;
    uint32_t processes; /* with threads, without the worker */
};
struct load watch_load(void);
/* Memory of the jail's control group that is no file of its folders: anonymous, and shared without
 * a file there. */
uint64_t watch_group_memory(const struct worker *worker, bool work_too);
bool watch_alone(pid_t pid); /* only it and the worker are alive */

/* start.c: new processes. */
pid_t start_child(const struct child *child,
                  volatile int *ret_error); /* ret_error: of its execve */
void start_failed(struct outcome *outcome, const char *name, int error);
bool start_pipes(int ret_reads[2], int ret_writes[2]); /* the reading ends do not wait */

/* resident.c: bourse-tensor (provider/tensor/ask.h). */
bool resident_ready(struct worker *worker, const struct run *run, struct outcome *outcome);
bool resident_ask(const struct worker *worker, const struct run *run, struct outcome *outcome);
bool resident_answer(const struct worker *worker,
                     struct outcome *outcome); /* false: it is ending */
uint64_t resident_cpu_ns(const struct worker *worker);
void resident_forget(struct worker *worker); /* it is dead */

/* run.c: runs it and leaves nobody alive. */
void run_program(struct worker *worker, struct run *run, struct outcome *ret_outcome);

#endif
