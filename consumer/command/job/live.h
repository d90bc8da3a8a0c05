/* consumer/command/job/live.h prints what subtasks print while they run, for run, logs and watch.
 *
 * The market passes live output on as it can; the results have it for certain. So a stream begins
 * live, and what is missing at its end comes out of the result. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_LIVE_H
#define BOURSE_CONSUMER_COMMAND_JOB_LIVE_H

#include "consumer/command/command.h"
#include "consumer/command/progress.h"

enum {
    LIVE_STREAMS_MAX = 4096,     /* streams of a job that are printed live at a time */
    LIVE_KEPT_BYTES = 1 << 20,   /* a result keeps so much of a stream */
    LIVE_LINE_BYTES = 16 << 10,  /* a longer line with a prefix comes in parts */
    LIVE_PREFIX_BYTES = 192,     /* of a line, with its end */
    LIVE_BATCH_BYTES = 64 << 10, /* lines of one piece are written together */
};

/* Gaps that follow each other are told together, after this time. */
#define LIVE_GAP_NS (5 * INT64_C(1000000000))

struct live_options {
    struct invocation *invocation;
    const char *id;                   /* borrowed, like all that follows */
    const struct bourse_tasks *tasks; /* NULL: subtasks have only numbers */
    uint32_t subtasks;                /* of the job */
    bool shows_output, shows_error;   /* the streams to print */
    bool splits; /* standard error goes to stderr; otherwise all goes to stdout */
    bool is_one; /* only the subtask `index` */
    uint32_t index;
    /* The whole stream is printed, in order. After a gap nothing is printed live any more. When the
     * subtask ends, its result gives the rest, as far as the result has the bytes of the gap. */
    bool is_whole;
    bool is_past;              /* nothing comes live: only results are printed, with --json */
    bool has_prefix;           /* lines come whole, each after the name of its subtask */
    struct progress *progress; /* NULL, or a line to clear before anything is printed */
    /* NULL, or a function that takes each line instead of the terminal; the line has no end. */
    void (*take_line)(void *context, const char *subtask, const char *line, size_t size);
    void *context;
};

struct live;

/* The struct says what was printed of one stream. */
struct live_printed {
    bool is_any;
    uint64_t bytes;
};

/* Begins to listen to the job. What comes is printed during bourse_wait, which is interrupted when
 * the output cannot be written: then live_could_write knows the reason. Returns NULL after filling
 * the error. */
struct live *live_begin(const struct live_options *options, struct bourse_error *ret_error);
void live_end(struct live **self);
/* Returns false, after filling the error, when something could not be written. `live` may be
 * NULL. */
bool live_could_write(const struct live *live, struct bourse_error *ret_error);
/* Sets the line to clear before anything is printed; NULL: none. `live` may be NULL. */
void live_set_progress(struct live *live, struct progress *progress);
/* Prints the rest of a stream that was printed live, out of its result. `output` is NULL when the
 * result keeps no such stream. ret_printed->is_any is false when nothing of that attempt came live:
 * then the caller prints the whole. With --json, the lines of the whole are printed here. `live`
 * may be NULL. */
bool live_finish(struct live *live, uint32_t index, uint32_t attempt, bool is_error,
                 const struct bourse_output *output, struct live_printed *ret_printed,
                 struct bourse_error *ret_error);
/* Prints the rest of every stream that was printed live and whose subtask has a result by now. */
bool live_catch_up(struct live *live, struct bourse_error *ret_error);
/* Lets nothing of the attempt, or of an earlier one, be printed any more. `live` may be NULL. */
void live_is_over(struct live *live, uint32_t index, uint32_t attempt);
/* Returns true when an earlier attempt of the subtask was finished. */
bool live_is_later(const struct live *live, uint32_t index, uint32_t attempt);

#endif
