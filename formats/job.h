/* formats/job.h holds a job file, which people write (docs/jobfile.md), as a plain struct.
 *
 * The reader handles text alone. The consumer expands patterns, opens files and asks for prices.
 * The reader ignores nothing. An unknown key, unit, type or placeholder is a problem that names
 * the file, the line, and the nearest known name. */
#ifndef BOURSE_FORMATS_JOB_H
#define BOURSE_FORMATS_JOB_H

#include "base/limit.h"
#include "base/problem.h"
#include "base/requirement.h"
#include "formats/range.h"
#include "formats/template.h"
#include "formats/tensor_op.h"
#include "formats/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JOB_LIMIT_MS_NONE = 7 * 24 * 3600 * 1000, /* no limit: the budget, or a week, ends a subtask */
    JOB_TERM_MS_UNLIMITED = 20 * 60 * 1000,   /* term of work without a limit, which is renewed */
    JOB_TERM_MS_LEAST = 60 * 1000,            /* the shortest default term */
    JOB_RETRIES_DEFAULT = 0,
    JOB_ABSENT = -1, /* a time or count that the file does not give */
};

struct job_strings {
    char **items;
    size_t count;
};

struct job_variable {
    char *name;
    char *value; /* a template */
};

/* A limit of 0 is absent: the provider's own limit holds. */
struct job_limits {
    int64_t cpu_ms;
    int64_t memory_bytes;
    int64_t disk_bytes;
    int64_t output_bytes;
    uint32_t processes;
};

struct job_terminal {
    uint32_t columns, rows;
    bool is_plain; /* no person types */
};

/* A task waits for another task, and may take a file from it. */
struct job_wait {
    uint32_t task; /* index in the job's tasks */
    /* The output is named as the other task names it, with placeholders filled in. NULL: the
     * task only waits. */
    char *output;
    char *name; /* the file's name in the task's own work folder; NULL without `output` */
};

/* A task is one program of a job that is a graph of programs. The numbers are final: a task without
 * a number has the job's. */
struct job_task {
    char *name; /* unique in the job; a letter, then letters, digits and . _ - */
    unsigned line;
    struct job_strings run; /* empty: the job's (job_task_run) */
    /* These variables are added to the job's, and replace those of the same name. */
    struct job_variable *env;
    size_t env_count;
    char *standard_input; /* NULL: the job's */
    bool has_outputs;     /* false: the job's (job_task_outputs) */
    struct job_strings outputs;
    struct job_strings files; /* in addition to the job's */
    char *checkpoint;         /* NULL: the job's */
    struct job_wait *waits;
    size_t wait_count;
    struct requirement *needs; /* NULL: the job's (job_task_needs) */
    uint32_t stage;            /* of a model in stages, from 1; 0: none. Each has its own slots */
    uint32_t slots;
    uint32_t at_most;
    int64_t limit_ms, term_ms, expect_ms;
    struct job_limits limits;
};

/* The order type decides how the job's bids act on arrival. The numbers are the wire's. */
enum job_order {
    JOB_ORDER_LIMIT, /* the unfilled rest of a bid rests at its cap, and pays it to later asks */
    JOB_ORDER_IOC,
    JOB_ORDER_FOK,
    JOB_ORDER_POST_ONLY,
    JOB_ORDER_ALL_OR_NONE,
    JOB_ORDER_MARKET, /* the unfilled rest of a bid rests, and pays no more than it takes */
    JOB_ORDERS
};
/* The names are "limit", "ioc", "fok", "post-only", "all-or-none" and "market". */
extern const char *const job_order_names[JOB_ORDERS];

/* The objective is what the plan of a job is to be best in. It decides which slots the job buys,
 * and how many at a time. The numbers are those of the manifest's terms. */
enum job_objective {
    JOB_OBJECTIVE_TIME,  /* as many slots as the job may have */
    JOB_OBJECTIVE_PRICE, /* those that make the work cheapest, and keep the deadline */
    /* The slots of the devices that need least energy, and keep the deadline. */
    JOB_OBJECTIVE_ENERGY,
    JOB_OBJECTIVES
};
/* The names are "time", "price" and "energy". */
extern const char *const job_objective_names[JOB_OBJECTIVES];

struct job_file {
    /* The name is never NULL. A job without `name:` has the program's name without its folders. */
    char *name;
    int64_t budget_micro; /* LIMIT_NONE: as the quote suggests */
    int64_t cap_micro;    /* per slot-hour; LIMIT_NONE: the limit follows from the budget */
    struct value value;   /* replaces a cap; RATE_NONE: not given */
    struct requirement needs;
    /* `needs:` as a list, the best one first, and which of them `needs` is: the first until
     * job_file_choose. A job without a list has a count of 0. */
    struct requirement *choices;
    size_t choice_count, choice;
    uint32_t slots;   /* width of one subtask, >= 1 */
    uint32_t at_most; /* most slots at a time, a multiple of `slots`; 0: as many as are ready */
    enum template_source source;
    struct job_strings each; /* EACH: glob patterns as written */
    /* The line of `each:` or `lines:` in the file, for messages; 0: not from a file. */
    unsigned source_line;
    struct range array;       /* ARRAY */
    char *lines;              /* LINES: name of the file with one subtask per line; else NULL */
    struct job_strings files; /* extra inputs of every subtask, names as written */
    unsigned files_line;
    /* Every file below this folder is an input, under its name below the folder. NULL: none. */
    char *workdir;
    /* A root file system: a tar of one, a container image, or a name of skopeo's. NULL: a host
     * program. With an image, `run` may be empty: a container image says a command itself. */
    char *image;
    unsigned image_line;
    /* These words, no templates, replace the entrypoint of a container image. */
    bool has_entrypoint;
    struct job_strings entrypoint;
    char *directory; /* the folder in which programs start; NULL: the image's, or the work folder */
    /* `executor: noop`: every subtask is answered inside the jail at once. */
    bool is_noop;
    /* `executor: tensor`: `run` is an operation (formats/tensor_op.h). */
    bool is_tensor;
    /* `executor: plugin`: `run` is an operation of a device's plug-in, and its arguments. */
    bool is_plugin;
    /* `executor: wasm`: `run` is a WASM module, a file of the job, and its arguments. */
    bool is_wasm;
    /* `executor: onnx`, or `model:`: `run` is the run of a model (formats/onnx/onnx_words.h). */
    bool is_onnx;
    /* `split:` and `parts:`: the rows of inputs of the model are cut into so many subtasks; 0: the
     * rows are not cut. */
    uint32_t parts;
    /* `stages:`: the model is cut into so many models that run one after the other; 0: it is not
     * cut. */
    uint32_t stages;
    /* `kernel:`: `run` is the launch of a kernel (formats/kernel/kernel_op.h). */
    bool is_kernel;
    /* The templates hold the program first. There is at least one, but none for a no-op. */
    struct job_strings run;
    unsigned run_line; /* 0: not from a file */
    /* A program of the consumer's machine is sent without its libraries. */
    bool host_libraries;
    struct job_variable *env;
    size_t env_count;
    char *standard_input;       /* a template; exactly "{in}" is the file's content; NULL: empty */
    struct job_strings outputs; /* templates */
    /* The folder where a program saves its state when it is told to end. NULL: the program saves
     * none. */
    char *checkpoint;
    /* The one program gets a terminal of this size; columns 0: standard streams. Only
     * `bourse shell` sets it: a job file has no key for it. */
    struct job_terminal terminal;
    int64_t limit_ms;  /* wall time of one subtask */
    int64_t term_ms;   /* of a lease; default: twice the limit, 1m or more; 20m without a limit */
    int64_t expect_ms; /* estimate of one subtask's time; JOB_ABSENT */
    /* The broker keeps the job's blobs for so long after the job ended; JOB_ABSENT: as it likes. */
    int64_t retain_ms;
    /* The job is submitted when these jobs have succeeded. Each is an id, the beginning of an id, a
     * name, or "last". */
    struct job_strings after;
    struct job_limits limits;
    /* The value is "none", or "cheap": each result is checked (docs/verification.md). */
    char *verify;
    uint32_t retries;    /* further tries of a subtask whose program failed */
    int64_t error_limit; /* so many failed subtasks stop the rest; JOB_ABSENT: no limit */
    /* Time from submission; subtasks that have not started by then are cancelled. 0: never. */
    int64_t good_till_ms;
    int64_t good_till_at_ms; /* the end as a moment; 0: none. At most one of the two is set */
    /* The market ends the job so long after its submission, or at this moment; 0: not given. At
     * most one of the two is set. */
    int64_t deadline_ms, deadline_at_ms;
    enum job_order order;
    enum job_objective objective;
    int64_t crash_limit; /* crashes that a subtask may have; JOB_ABSENT: the market's limit */
    /* The number of leases at work that may be interrupted; then the job takes firm leases only.
     * JOB_ABSENT: any number. */
    int64_t interruptions;
    /* A job with tasks has the source TEMPLATE_ONE, and `run` may be empty. No task waits for
     * itself through others. */
    struct job_task *tasks;
    size_t task_count;
};

/* Reads and checks a job; `file_name` is for messages. Returns NULL with "FILE:LINE: what" in
 * the problem when anything is wrong or memory is short. The caller owns the job. */
struct job_file *job_file_parse(const char *text, size_t length, const char *file_name,
                                struct problem *ret_problem);

/* Returns an empty job with the defaults above, for `bourse run -- PROGRAM ...`. The caller
 * fills it with the functions below, then calls job_file_check. Returns NULL when memory is
 * short. */
struct job_file *job_file_create(void);
void job_file_destroy(struct job_file **self);

/* Makes one of the job's choices its needs. */
void job_file_choose(struct job_file *job, size_t choice);

/* Each function returns the task's own value, or the job's where the task has none. */
const struct job_strings *job_task_run(const struct job_file *job, const struct job_task *task);
const struct job_strings *job_task_outputs(const struct job_file *job, const struct job_task *task);
const struct requirement *job_task_needs(const struct job_file *job, const struct job_task *task);
/* Returns true when a product of the job may round its factors to this type (--compute). */
bool job_rounds_to(const struct job_file *job, enum tensor_compute compute);
/* Returns true when the job's programs save their state: all of them do, or none. */
bool job_file_has_checkpoints(const struct job_file *job);

/* Each function copies its text. Returns false when memory is short or the list is full; the job
 * is then unchanged. */
bool job_strings_add(struct job_strings *strings, size_t most, const char *text);
/* The same, unless the list has the text already. */
bool job_strings_add_once(struct job_strings *strings, size_t most, const char *text);
void job_strings_fini(struct job_strings *strings); /* frees the texts; the list is empty then */
bool job_file_set(char **field, const char *text); /* e.g. job_file_set(&job->image, "tools.tar") */
bool job_file_add_variable(struct job_file *job, const char *name, const char *value);

/* Checks the rules across fields, which a job from the command line obeys too. `run` is present.
 * Templates are well formed and of the right source. Outputs are relative and stay inside. There
 * is at most one source. The term is at least the limit, if there is one. at_most is a multiple of
 * slots.
 * Names and counts keep within formats/limits.h.
 *
 * The call sets name and term_ms where absent. Returns false with "FIELD: what" in the problem. */
bool job_file_check(struct job_file *job, struct problem *ret_problem);

#endif
