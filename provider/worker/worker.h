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
#include "provider/session/device_fault.h"
#include "provider/tensor/held_figures.h"
#include "provider/worker/packet.h"
#include "provider/worker/wire.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { FOLDERS = 3, FOLDER_WORK = 0 }; /* /work, /tmp, /dev/shm */

/* The resident program computes a job's tensor, kernel or plug-in subtasks. The program is started
 * for the first subtask and stays for the next ones. */
struct resident {
    pid_t pid;       /* 0: none */
    pid_t companion; /* the resident's child that stays with it; 0: none */
    int socket;
    int pipes[2]; /* the program's standard output and error, read without waiting */
};

struct worker {
    int socket;
    int children; /* signalfd of SIGCHLD */
    int folders[FOLDERS];
    int null;              /* /dev/null */
    const char *directory; /* where programs start; NULL: /work */
    int ruleset;           /* Landlock; -1 without */
    int capture[2];        /* the agent's files for stdout and stderr */
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
    uint8_t kind;     /* enum wire_input_kind */
    const char *link; /* of a link, its target */
    bool has_look;    /* the permissions and the time of the owner's file are known */
    uint16_t mode;
    int64_t modified_ns; /* since 1970 */
    int file;            /* open until it is filled; mapped: from GO to the end of the run */
    /* The hash of its bytes, for the resident; NULL: not told. Points into the request's body. */
    const uint8_t *content;
};

struct run {
    uint32_t number;
    bool keep, wants_stdin, keeps_trees;
    int stdin_file; /* -1: /dev/null */
    bool has_ahead;
    int ahead_file; /* for the resident, to read inputs of the next run from; -1: none */
    uint64_t wall_ns, cpu_ns, memory_bytes, disk_bytes, output_bytes, capture_bytes;
    uint32_t processes;
    /* 0: `argv` is a program; else it is an operation for the resident. */
    uint32_t tensor_threads;
    char **argv, **env; /* NULL-terminated, into the request's body */
    struct input *inputs;
    size_t input_count;
    size_t mapped_count, content_count, held_count;
    /* Files that the resident left in the last run, and their hashes, in the request's body. */
    struct made {
        const char *name;
        const uint8_t *content;
    } made[WIRE_MADE_MAX];
    size_t made_count;
    uint64_t mapped_bytes; /* bytes that count as if they had been placed */
    const char *outputs[LIMIT_OUTPUTS];
    bool is_folder[LIMIT_OUTPUTS];       /* the output is a folder with all files below it */
    const char *patterns[LIMIT_OUTPUTS]; /* NULL, or the files of the folder that are meant */
    size_t output_count;
    uint8_t terminal; /* enum wire_terminal */
    uint16_t columns, rows;
    /* The program saves its state in this folder when it is told to end; NULL: it has none. */
    const char *checkpoint;
};

struct outcome {
    enum result_outcome outcome;
    int exit_code, signal;
    enum device_fault fault;     /* what a resident says of its device */
    enum result_verdict verdict; /* verdict of a tensor subtask that is a check */
    uint64_t cpu_ns, peak_memory_bytes;
    uint64_t captured[2];
    bool cut[2];
    int output_files[LIMIT_OUTPUTS]; /* -1: not there, or a folder, whose files have been sent */
    uint64_t output_sizes[LIMIT_OUTPUTS];
    bool output_executable[LIMIT_OUTPUTS]; /* the file's owner may execute it */
    size_t output_count;
    bool has_run;
    bool was_noticed;    /* the program was told to end */
    bool is_frozen;      /* the agent wants the program to stand still */
    bool has_checkpoint; /* the program left a checkpoint, whose files have been sent */
    char detail[256];
    struct held_figures held; /* of bourse-kernel */
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
    const char *path;      /* list of folders to search */
    const char *directory; /* where the program starts; NULL: the worker's folder */
    /* The standard streams are a terminal that controls the new session. */
    bool has_terminal;
};
/* The errno of a folder in which the program cannot start has this bit. */
enum { CHILD_DIRECTORY = 1 << 16 };
/* Confines the new process, in which it is called, and executes the program. Returns only on
 * failure, with errno. */
int confine_execute(const struct child *child);

/* stage.c brings files in and out. */

/* A batch of places is made, sent to the agent, filled by the agent and sealed. So a run of many
 * files has few open at a time. */
struct places {
    size_t from, next; /* the inputs of the batch are from `from` on, and before `next` */
    size_t total;      /* all inputs, and stdin if it has a place */
    int files[PACKET_FILES];
    size_t count;
};
/* Makes the places of the next batch. The batch is empty when no input has a place. */
bool stage_places(struct worker *worker, struct run *run, struct places *places,
                  struct outcome *ret_outcome);
/* Gives the inputs of the batch their permissions and times, or makes them read-only, and closes
 * them. */
void stage_seal(struct run *run, const struct places *places);
/* Makes the links, and gives folders and links their permissions and times. All other inputs are
 * there. */
bool stage_links(struct worker *worker, const struct run *run, struct outcome *ret_outcome);
bool stage_map(struct run *run, const int *files, size_t file_count); /* takes the files over */
void stage_unmap(struct run *run);
void stage_outputs(struct worker *worker, const struct run *run, struct outcome *outcome);
/* Fails the run because of the output, and returns false. */
bool stage_output_failed(struct outcome *outcome, const char *name, const char *why);
/* Opens a file or folder below `folder` for reading. The job may have made anything of it. Returns
 * -1 with errno on failure. stage_why_missing turns the errno into text. */
int stage_open(int folder, const char *name);
const char *stage_why_missing(int error);
/* Opens a folder below `root` to list it. Returns NULL with errno on failure; the caller closes the
 * stream. */
DIR *stage_list(int root, const char *folder);
/* Sets the name below `root` of the next entry, but "." and "..", and its last part, which lives
 * until the next call. The name is "" when it has no `room` bytes left in LIMIT_PATH_BYTES. Returns
 * false behind the last entry. */
bool stage_next(DIR *stream, const char *folder, size_t room, char ret_name[LIMIT_PATH_BYTES],
                const char **ret_last);
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

/* output_folder.c sends the files of a folder that is an output, and adds what the folder takes to
 * *total. Returns false when the output is refused, or the run cancelled; the outcome says why. */
bool output_folder_send(const struct worker *worker, const struct run *run, size_t output,
                        uint64_t *total, struct outcome *outcome);

/* main.c waits for a message of this kind about the run. Returns the message's files, at most
 * WIRE_MAPPED_MAX. Returns false when the agent cancels the run, or has it told to end before it
 * ran; the outcome says so. */
bool worker_wait(const struct worker *worker, const struct run *run, uint8_t kind, int *ret_files,
                 size_t *ret_file_count, struct outcome *outcome);

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
/* Returns true when only the resident, its companion and the worker are alive. */
bool watch_alone(const struct resident *resident);
bool watch_stopped(void); /* true when no process but the worker runs or may run */

/* pseudo_terminal.c makes terminals. The call sends the master to the agent and returns the slave.
 * It returns -1 after filling the outcome. */
int pseudo_terminal_open(const struct worker *worker, const struct run *run,
                         struct outcome *outcome);

/* freeze.c lets all processes of the jail stand still while the owner uses the machine. Its times
 * are of CLOCK_MONOTONIC. */
struct freeze {
    uint64_t since_ns; /* 0: the processes may run */
    uint64_t total_ns; /* of the freezes that are over */
    uint64_t stood_ns; /* the last time at which every process stood still */
};
/* Freezes or thaws the processes as wanted. With `looks` the frozen processes are looked at, and
 * those that run are stopped again. Returns false when some do not stop. */
bool freeze_obey(struct freeze *freeze, bool is_wanted, bool looks, uint64_t now_ns);
/* Returns how long the processes have been frozen, all freezes together. */
uint64_t freeze_total_ns(const struct freeze *freeze, uint64_t now_ns);

/* start.c starts new processes. */

/* Starts a process. *ret_error is the errno of its execve. */
pid_t start_child(const struct child *child, volatile int *ret_error);
void start_failed(struct outcome *outcome, const char *name, int error);
bool start_pipes(int ret_reads[2], int ret_writes[2]); /* the reading ends do not wait */

/* resident.c talks to the resident (provider/tensor/ask.h). */
bool resident_ready(struct worker *worker, const struct run *run, struct outcome *outcome);
bool resident_ask(const struct worker *worker, const struct run *run, struct outcome *outcome);
/* Returns false when the resident is ending. */
bool resident_answer(struct worker *worker, struct outcome *outcome);
/* Cancels what the resident computes, after the run was cancelled. Returns true when the resident
 * answered in time, and serves the next run. Only bourse-plugin can; all others are killed. */
bool resident_gives_up(struct worker *worker, const struct outcome *outcome);
uint64_t resident_cpu_ns(const struct worker *worker);
void resident_forget(struct worker *worker); /* the resident is dead */

/* run.c runs the program and leaves no process alive. */
void run_program(struct worker *worker, struct run *run, struct outcome *ret_outcome);

#endif
