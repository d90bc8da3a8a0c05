/* formats/job.h - a job file: what people write (docs/jobfile.md), as a plain struct.
 *
 * Only text is read here. Patterns are not expanded, files not opened, and prices not asked for:
 * those touch the world and are the consumer's. Nothing is ignored: a key, unit, type or
 * placeholder that this reader does not know is a problem that names the file, the line, and the
 * nearest known name. Pure. */
#ifndef BOURSE_FORMATS_JOB_H
#define BOURSE_FORMATS_JOB_H

#include "base/problem.h"
#include "base/requirement.h"
#include "formats/range.h"
#include "formats/template.h"
#include "formats/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JOB_LIMIT_MS_DEFAULT = 10 * 60 * 1000, /* wall time of one subtask */
    JOB_TERM_MS_LEAST = 60 * 1000,         /* of a default term */
    JOB_RETRIES_DEFAULT = 0,
    JOB_ABSENT = -1, /* an amount or count that the file does not give */
};

struct job_strings {
    char **items;
    size_t count;
};

struct job_variable {
    char *name;
    char *value; /* template */
};

struct job_limits { /* 0: absent, the provider's own limit holds */
    int64_t cpu_ms;
    int64_t memory_bytes;
    int64_t disk_bytes;
    int64_t output_bytes;
    uint32_t processes;
};

/* That a task waits for another, and which file it takes from that one. */
struct job_wait {
    uint32_t task; /* index in the job's tasks */
    char *output;  /* as that task names it, placeholders filled in; NULL: it only waits */
    char *name;    /* of the file in the own work folder; NULL without `output` */
};

/* One program of a job that is a graph of programs. Numbers are settled: what the task does not say
 * is the job's. */
struct job_task {
    char *name; /* unique in the job; a letter, then letters, digits and . _ - */
    unsigned line;
    struct job_strings run;   /* empty: the job's (job_task_run) */
    struct job_variable *env; /* besides the job's, or instead of its variable of the same name */
    size_t env_count;
    char *standard_input; /* NULL: the job's */
    bool has_outputs;     /* else the job's (job_task_outputs) */
    struct job_strings outputs;
    struct job_strings files; /* besides the job's */
    char *checkpoint;         /* NULL: the job's (job_task_checkpoint) */
    struct job_wait *waits;
    size_t wait_count;
    struct requirement *needs; /* NULL: the job's (job_task_needs) */
    uint32_t slots;
    uint32_t at_most;
    int64_t limit_ms, term_ms, expect_ms;
    struct job_limits limits;
};

/* What becomes of the job's bids when they arrive: numbered as on the wire. */
enum job_order {
    JOB_ORDER_LIMIT, /* what is not filled at once rests */
    JOB_ORDER_IOC,
    JOB_ORDER_FOK,
    JOB_ORDER_POST_ONLY,
    JOB_ORDER_ALL_OR_NONE,
    JOB_ORDERS
};
/* "limit", "ioc", "fok", "post-only", "all-or-none". */
extern const char *const job_order_names[JOB_ORDERS];

struct job_file {
    char *name;           /* never NULL; without `name:` the program's, its folders cut off */
    int64_t budget_micro; /* JOB_ABSENT: as the quote suggests */
    int64_t cap_micro;    /* per slot-hour; JOB_ABSENT: market price */
    struct value value;   /* instead of a cap; of no rate: not given */
    struct requirement needs;
    uint32_t slots;   /* width of one subtask, >= 1 */
    uint32_t at_most; /* slots at a time, 0 or a multiple of `slots`; 0: as many as are ready */
    enum template_source source;
    struct job_strings each; /* EACH: glob patterns as written */
    unsigned source_line; /* of `each:` or `lines:` in the file, for messages; 0: not from a file */
    struct range array;   /* ARRAY */
    char *lines;          /* LINES: name of the file with one subtask per line; else NULL */
    struct job_strings files; /* extra inputs of every subtask, names as written */
    unsigned files_line;
    char *image; /* root file system tar, or NULL: a host program */
    unsigned image_line;
    bool is_noop;   /* `executor: noop`: every subtask is answered inside the jail at once */
    bool is_tensor; /* `executor: tensor`: `run` is an operation (formats/tensor_op.h) */
    struct job_strings run; /* templates; the program first; at least one, or none of a no-op */
    unsigned run_line;      /* 0: not from a file */
    struct job_variable *env;
    size_t env_count;
    char *standard_input;       /* template; exactly "{in}" is the file's content; NULL: empty */
    struct job_strings outputs; /* templates */
    char *checkpoint;  /* folder where a program saves its state when it is told to end; NULL:
                          nowhere */
    int64_t limit_ms;  /* wall time of one subtask */
    int64_t term_ms;   /* of a lease, >= limit_ms; without `term:` twice that, 1m at least */
    int64_t expect_ms; /* estimate of one subtask's time; JOB_ABSENT */
    struct job_limits limits;
    char *verify;         /* "none"; "cheap": each result is checked (docs/verification.md) */
    uint32_t retries;     /* of a subtask whose program failed */
    int64_t error_limit;  /* failed subtasks that stop the rest; JOB_ABSENT: no limit */
    int64_t good_till_ms; /* from when it is submitted: what has not started by then is cancelled;
                             0: never */
    int64_t good_till_at_ms; /* the same as a moment; 0: none. Not both */
    enum job_order order;
    int64_t crash_limit;   /* crashes that a subtask bears; JOB_ABSENT: the market's */
    int64_t interruptions; /* leases at work that may be taken from it, then it takes firm ones
                              only; JOB_ABSENT: any number */
    /* With tasks, the source is ONE, `run` may be empty, and what waits for what has no circle. */
    struct job_task *tasks;
    size_t task_count;
};

/* Reads and checks a job; `file_name` is for messages. NULL with "FILE:LINE: what" in the problem
 * when anything is wrong, or when out of memory. The caller owns the job. */
struct job_file *job_file_parse(const char *text, size_t length, const char *file_name,
                                struct problem *ret_problem);

/* An empty job with the defaults above, for `bourse run -- PROGRAM ...`; fill it with the functions
 * below, then job_file_check it. NULL when out of memory. */
struct job_file *job_file_create(void);
void job_file_destroy(struct job_file **self);

/* What holds for a task of the job. */
const struct job_strings *job_task_run(const struct job_file *job, const struct job_task *task);
const struct job_strings *job_task_outputs(const struct job_file *job, const struct job_task *task);
const struct requirement *job_task_needs(const struct job_file *job, const struct job_task *task);
const char *job_task_checkpoint(const struct job_file *job, const struct job_task *task);
/* Whether its programs save their state: all of them, or none. */
bool job_file_has_checkpoints(const struct job_file *job);

/* Each copies its text. False when out of memory or the list is full; the job is then as before. */
bool job_strings_add(struct job_strings *strings, size_t most, const char *text);
bool job_file_set(char **field, const char *text); /* e.g. job_file_set(&job->image, "tools.tar") */
bool job_file_add_variable(struct job_file *job, const char *name, const char *value);

/* The rules across fields, which a job from the command line obeys too: `run` present, templates
 * well formed and of the right source, outputs relative and inside, at most one source, term at
 * least limit, at_most a multiple of slots, names and counts within formats/limits.h. Sets name,
 * term_ms where absent. The problem says "FIELD: what". */
bool job_file_check(struct job_file *job, struct problem *ret_problem);

#endif
