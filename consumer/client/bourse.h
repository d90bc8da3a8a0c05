/* consumer/client/bourse.h - libbourse: the market for programs. The `bourse` command is its first
 * user.
 *
 * A `struct bourse` is a connection, a `struct bourse_job` a job made ready to submit. Calls block,
 * at most for the connection's timeout where nothing else is said, and survive reconnects: a
 * request is sent again until it is answered, under the same id, so nothing happens twice. A
 * connection belongs to one thread; only bourse_interrupt may come from another, or from a signal
 * handler.
 *
 * Ids, keys and hashes are lower-case hex text. Money is micro-credits, prices are micro-credits
 * per slot-hour, _ms is milliseconds (of the market's log time where it is a point in time). Every
 * function that returns bool fills *ret_error (which may be NULL) when it returns false. Names and
 * texts that come from others are as they were sent: run them through bourse_printable before they
 * reach a terminal.
 *
 * Structs grow only at their end, and numbers are never reused. */
#ifndef BOURSE_CONSUMER_CLIENT_BOURSE_H
#define BOURSE_CONSUMER_CLIENT_BOURSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- errors */

enum bourse_status { /* the first ones are the command's exit statuses too (bourse_exit_status) */
                     BOURSE_OK = 0,
                     BOURSE_JOB_FAILED = 1,
                     BOURSE_USAGE = 2,
                     BOURSE_NOT_FOUND = 3,
                     BOURSE_REFUSED = 4,     /* rights, quota, funds */
                     BOURSE_NO_MATCH = 5,    /* nothing on the market fits, or it expired */
                     BOURSE_UNREACHABLE = 6, /* no broker, or not the one expected */
                     BOURSE_UNVERIFIED = 7,  /* a hash, a signature or a proof is wrong */
                     BOURSE_TIMED_OUT = 8,
                     BOURSE_CANCELLED = 9,
                     BOURSE_LOCAL = 10, /* this machine: a file, memory */
                     BOURSE_INTERRUPTED = 130,
};

struct bourse_error {
    enum bourse_status status;
    int reject;           /* the number of a refusal of the broker's (docs/errors.md), or 0 */
    char name[40];        /* stable: of that refusal, else of `status` */
    char text[640];       /* one line: what is wrong, the limit, what to do next; printable */
    char field[64];       /* what the broker refused, or "" */
    int64_t value, limit; /* with a field: what was asked, and the limit; both 0 when it has none */
};

const char *bourse_status_name(enum bourse_status status);
int bourse_exit_status(enum bourse_status status);
const char *bourse_version(void);
/* Copies `text` for a terminal: control characters and bidirectional marks become '?'. */
void bourse_printable(const char *text, char *ret_text, size_t capacity);

/* ---------------------------------------------------------------- connection */

enum {
    BOURSE_ID_SIZE = 33,
    BOURSE_HEX32_SIZE = 65,
    BOURSE_NAME_SIZE = 129,
    BOURSE_TEXT_SIZE = 513
};

struct bourse;

struct bourse_options {
    const char *market;  /* path of a market.yaml */
    const char *key;     /* path of the account's key file */
    const char *program; /* "bourse 0.1.0", for the broker's log; NULL: the library's name */
    int timeout_ms;      /* of each call; 0: 30 s */
};

bool bourse_open(const struct bourse_options *options, struct bourse **ret_bourse,
                 struct bourse_error *ret_error);
void bourse_close(struct bourse **self);
/* Asks the running call to end with INTERRUPTED. Safe in a signal handler. */
void bourse_interrupt(struct bourse *bourse);

enum { BOURSE_ROLE_PROVIDER = 2 };
struct bourse_account {
    char key[BOURSE_HEX32_SIZE];
    char name[BOURSE_NAME_SIZE];
    unsigned roles; /* 1 consumer, 2 provider, 4 auditor, 8 replica, 16 risk, 32 operator; 0:
                       unknown here */
    char cluster[BOURSE_ID_SIZE];
    char origin[BOURSE_NAME_SIZE];
    char verifier[256]; /* the log's public key in the C2SP form, for bourse_verify */
    int64_t log_time_ms;
    bool was_known; /* of bourse_join: the account was there before, and nothing was redeemed */
};
bool bourse_whoami(struct bourse *bourse, struct bourse_account *ret_account,
                   struct bourse_error *ret_error);

/* ---------------------------------------------------------------- jobs before they are submitted
 */

/* Limits are per slot-hour or by value: then they are micro-credits for 10^15 operations per second
 * over an hour, of a rate of the device whose name goes with them: "bf16". "": it is per slot-hour.
 * These names outlive all. */

struct bourse_job;

/* Reads a job file, expands its patterns relative to the file's folder, and hashes every input. */
bool bourse_job_load(const char *path, struct bourse_job **ret_job, struct bourse_error *ret_error);
/* The same from text; names are relative to `folder`. */
bool bourse_job_parse(const char *text, size_t length, const char *folder,
                      struct bourse_job **ret_job, struct bourse_error *ret_error);
/* What is left of a job that has ended without having done it all: its subtasks that failed or were
 * cancelled, with what accepted ones left to them, as a new job. `cap_micro`: as in a job file, or
 * -1; `value`: likewise, or NULL; a job that had one of them wants one again. `good_for_ms`: the
 * new job is good for so long; 0: till the moment that the first was, if it named one. NOT_FOUND
 * when nothing is left, USAGE when that moment has passed. */
bool bourse_job_resume(struct bourse *bourse, const char *id, int64_t cap_micro, const char *value,
                       int64_t good_for_ms, struct bourse_job **ret_job,
                       struct bourse_error *ret_error);
/* Which files of such a job the broker has not, or has no more. Those that lie in `folder` under
 * the names that the job gives them, with the same bytes, are sent with the job; `image` (may be
 * NULL) is where its image lies. `visitor` is told of each other one. */
struct bourse_absent {
    bool is_image;
    const char *name;             /* in the job; "" for the image */
    char hash[BOURSE_HEX32_SIZE]; /* of the bytes that the job had */
    uint64_t size;
    const char *why; /* it cannot be sent: "data.csv: No such file or directory" */
};
typedef void bourse_absent_visitor(void *context, const struct bourse_absent *absent);
bool bourse_job_look_for_files(struct bourse *bourse, struct bourse_job *job, const char *folder,
                               const char *image, bourse_absent_visitor *visitor, void *context,
                               struct bourse_error *ret_error);
void bourse_job_destroy(struct bourse_job **self);

struct bourse_job_summary {
    const char *name;    /* borrowed from the job */
    const char *program; /* its first argument */
    uint64_t subtasks;
    uint64_t checks; /* besides, one of each result; 0: none is checked */
    uint64_t inputs; /* files, each counted once */
    uint64_t input_bytes;
    uint64_t skipped;     /* matches of patterns that were no regular files */
    uint32_t slots;       /* width of one subtask */
    uint32_t at_most;     /* 0: as many as are ready */
    int64_t budget_micro; /* -1: not given */
    int64_t cap_micro;    /* -1: market price */
    int64_t value_micro;  /* -1: not by value */
    const char *value_rate;
    int64_t limit_ms;
    int64_t term_ms;
    int64_t expect_ns;    /* what the quote assumes one subtask takes */
    bool expect_is_guess; /* the job did not say, and nobody measured it */
    /* Once it was quoted: of so many subtasks this market has measured what such work takes, so
     * often; the median of n samples weighs n / (n + 4) against what the job says. */
    uint64_t measured_subtasks, measured_samples;
    int64_t p90_ns; /* of each size of these nine of ten took at most that, on each class of
                       devices; -1: too few of one were measured to say */
    char manifest[BOURSE_HEX32_SIZE];
    uint32_t parts; /* kinds of devices, or of terms, that it buys for */
    int64_t way_ms; /* the longest chain of tasks that wait for each other; 0: none waits */
    char continues[BOURSE_ID_SIZE]; /* the job of which this one runs what was left; "" */
};
void bourse_job_summary(const struct bourse_job *job, struct bourse_job_summary *ret_summary);

struct bourse_level {
    int64_t price_micro;
    uint32_t slots;
    uint32_t providers;
    /* Of a quote by value: like devices, those that cost more than they are worth among them. */
    int64_t worth_micro; /* the job's limit there, per slot-hour; -1: it is not by value */
    char instrument[BOURSE_NAME_SIZE];
};
struct bourse_predicate {
    char text[BOURSE_TEXT_SIZE];
    uint32_t failing;
    bool has_best;
    int64_t best;
};
enum { BOURSE_LEVELS_MAX = 64, BOURSE_PREDICATES_MAX = 64, BOURSE_CHANGES_MAX = 4 };
struct bourse_change {            /* to the job, as it would be submitted anew */
    char text[BOURSE_TEXT_SIZE];  /* "with a cap of 1.90 instead of 1.60" */
    char field[BOURSE_NAME_SIZE]; /* of a job file */
    bool has_figures;             /* not of needs */
    int64_t from, to;             /* micro-credits, nanoseconds or slots */
};
struct bourse_explanation {
    uint32_t devices, fitting, asking, affordable, free; /* each of the former */
    char text[BOURSE_TEXT_SIZE];
    bool has_fills_at;
    int64_t fills_at_micro;
    const char *rate; /* of fills_at_micro, and of the change of a `value` */
    uint32_t predicate_count;
    struct bourse_predicate predicates[BOURSE_PREDICATES_MAX];
    uint32_t
        change_count; /* the fewest with which it fills now; 0: none would do, or none is needed */
    struct bourse_change changes[BOURSE_CHANGES_MAX];
    int64_t changed_price_micro; /* at which it fills then */
    char changed_needs[2048];    /* what it needs then, whole; "": as it was, or too long */
    int64_t ahead; /* waiting bids that come before it; -1: it is not a queue that it waits for */
    bool ahead_partial;           /* as many at least */
    char state[BOURSE_NAME_SIZE]; /* of a job; "" for a quote, and zeros below */
    uint32_t parts;               /* of the job: its subtasks with needs and terms of their own */
    uint32_t part;                /* which of them this is about; and of its subtasks: */
    uint32_t first, subtasks, waiting, running; /* waiting: for a lease, not for other subtasks */
    uint32_t queued; /* of those `running`: behind another one on their device */
    int64_t
        takes_at_micro; /* least limit with which it takes a lease from its holder now; -1: none */
    /* Of a quote: how the bid would be refused as it is, by code ("": it would not); or at which
     * price it would start, -1: it would wait; and whether with a lease that it takes from its
     * holder. */
    char refusal[BOURSE_NAME_SIZE];
    int64_t starts_at_micro;
    bool starts_with_lease;
    uint32_t own_devices; /* that would fit, and are of this account */
    /* Of one subtask, where that was asked, and the job is open: */
    char subtask_state[BOURSE_NAME_SIZE]; /* "waiting", "running" ...; "": it was not */
    uint32_t subtask, tries, waits_on;    /* subtasks that it waits for, not accepted yet */
    char provider[BOURSE_NAME_SIZE], device[BOURSE_NAME_SIZE]; /* where it was sent; "": nowhere */
    uint32_t behind; /* so many sent there before it have not ended */
};
struct bourse_alone {
    char place[2 * BOURSE_NAME_SIZE + 2]; /* "provider/device"; "": none would be done sooner */
    char needs[512];                      /* what the job's file is to say to get it */
    int64_t makespan_ns, cost_micro;
    int64_t least_micro; /* its budget has to be no less */
};
struct bourse_quote {
    uint32_t
        slots_now; /* 0: all below is of slots_taken, or of what is leased, as if it were free */
    uint32_t slots_taken; /* beyond these: of leases that it would take from their holders, at such
                             prices */
    int64_t taken_low_micro, taken_high_micro;
    int64_t price_low_micro, price_high_micro;
    int64_t expected_micro;  /* cost */
    int64_t minimum_micro;   /* less cannot start */
    int64_t suggested_micro; /* the default budget; 0: nobody asks a price for what fits, or */
    bool is_all_there_is;    /* it is what the account has, none perhaps, for donations */
    int64_t
        elsewhere_micro; /* where something is given away: what as many slots would be had at, */
    uint32_t elsewhere_slots; /* free or leased, of what asks a price; 0: there is none */
    int64_t most_micro;  /* what one order may come to, where that bounds the suggestion; else 0 */
    int64_t limit_micro; /* the job's cap; without one, 1.5 times the dearest price it would pay
                                now, or a referee who is not the maker, as far as the band goes;
                            with checks one for all parts; -1: neither, and only the budget binds */
    int64_t rests_at_micro; /* then: what it pays at most, if it waits; -1: no budget is known */
    int64_t band_least_micro, band_most_micro; /* the market's price band */
    int64_t makespan_ns;
    uint32_t level_count;
    struct bourse_level
        levels[BOURSE_LEVELS_MAX]; /* cheapest first; what several parts could have is there once */
    bool has_explanation;
    struct bourse_explanation explanation;
    uint64_t index;
    char
        first_account[BOURSE_HEX32_SIZE]; /* who asks least of what fits; "": nobody; of one part */
    int64_t second_micro; /* the least that another asks, whatever the cap; -1: nobody */
    /* What three quarters of the slots that were traded lately, and fit, cost at most, and no less
     * than what is free now; of the dearest part. -1: nothing that fits was traded. */
    int64_t suggested_cap_micro;
    uint32_t suggested_cap_trades; /* from so many */
    int64_t suggested_cap_since_ms;
    char checks_problem[320]; /* `verify: cheap`: why nobody could check what is made; "": somebody
                                 can */
    struct bourse_alone
        alone;        /* a device that would be done sooner than those that the market gives it */
    bool is_of_gifts; /* the budget is 0, the job's or the account's: all above is of what is given
                         away */
    uint32_t without_gift; /* then, of several parts, from 1 on: the first that nothing given away
                              fits; 0: none */
};
/* With `verify: cheap`, the job remembers who is not to make what there is only one to check. */
bool bourse_quote(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *ret_quote,
                  struct bourse_error *ret_error);

/* Stores what the broker lacks of the job's inputs, then submits it. `limit_micro` is the highest
 * price per slot-hour to buy at (a quote's, or -1: market price, only the budget binds). Repeating
 * it after a failure with the same job never submits twice. `progress` may be NULL. */
typedef void bourse_progress(void *context, uint64_t done_bytes, uint64_t total_bytes);
bool bourse_submit(struct bourse *bourse, struct bourse_job *job, int64_t budget_micro,
                   int64_t limit_micro, bourse_progress *progress, void *context,
                   char ret_id[BOURSE_ID_SIZE], struct bourse_error *ret_error);

/* ---------------------------------------------------------------- jobs on the market */

enum bourse_job_state {
    BOURSE_OPEN = 0,
    BOURSE_DONE = 1,
    BOURSE_FAILED = 2,
    BOURSE_WAS_CANCELLED = 3
};

struct bourse_lease {
    uint64_t lease;
    char provider[BOURSE_NAME_SIZE];
    char device[BOURSE_NAME_SIZE];
    char state[BOURSE_NAME_SIZE];
    uint32_t slots;
    int64_t price_micro;
    uint32_t accepted;
    int64_t paid_ns;
    int64_t charged_micro;
    bool simulated;     /* the device is: its times are those of a model */
    bool interruptible; /* a higher bid may take it */
    bool taken;         /* one has: it ends when the notice does, or has ended so */
};
struct bourse_job_row {
    char id[BOURSE_ID_SIZE];
    char name[BOURSE_NAME_SIZE];
    enum bourse_job_state state;
    const char *state_text; /* "open", "done", "failed", "cancelled" */
    int reason;
    bool is_expired;  /* it ended, or only waits for what runs: its time was up */
    bool is_unfilled; /* it ended: its order asked for all at once, and that was not there, or has
                         ended */
    const char *reason_text; /* why it waits or why it ended, "" when there is nothing to say */
    uint32_t subtasks, waiting, running, accepted, failed, cancelled;
    uint32_t checking; /* results that are held until a referee has checked them */
    uint32_t accused;  /* of those: one referee rejects them, and no other has judged */
    int64_t budget_micro, charged_micro, reserved_micro;
    int64_t submitted_ms, ended_ms; /* ended: 0 while open */
    char manifest[BOURSE_HEX32_SIZE];
    uint64_t index; /* of the journal, as of which this is true */
    size_t lease_count;
    const struct bourse_lease *leases; /* lives as long as the row's list, or the callback */
    uint32_t queued; /* of those `running`: with a device, behind another one in their lane */
    uint32_t
        saved; /* subtasks of which a checkpoint is kept, from which their next attempts go on */
    int64_t left_ms; /* until all is done, at the pace measured, on the lanes that it has; -1:
                        nobody can tell */
    /* Of so many results, but for checks: what they were expected to take when it was submitted,
     * which may have been a guess, and what they took. */
    uint32_t timed;
    int64_t foreseen_ms, took_ms;
};

/* `text`: a whole id, a unique prefix of one, or "last", the newest. */
bool bourse_find_job(struct bourse *bourse, const char *text, char ret_id[BOURSE_ID_SIZE],
                     struct bourse_error *ret_error);

struct bourse_jobs;
/* All jobs of this account, newest first, or one. */
bool bourse_jobs(struct bourse *bourse, const char *id, struct bourse_jobs **ret_jobs,
                 struct bourse_error *ret_error);
size_t bourse_jobs_count(const struct bourse_jobs *jobs);
const struct bourse_job_row *bourse_jobs_row(const struct bourse_jobs *jobs, size_t index);
void bourse_jobs_destroy(struct bourse_jobs **self);

enum bourse_subtask_state {
    BOURSE_SUBTASK_WAITING,
    BOURSE_SUBTASK_RUNNING,
    BOURSE_SUBTASK_CHECKING, /* its result waits for a referee's verdict */
    BOURSE_SUBTASK_ACCEPTED,
    BOURSE_SUBTASK_FAILED,
    BOURSE_SUBTASK_CANCELLED,
    BOURSE_SUBTASK_QUEUED /* with a device, behind another one in its lane */
};
struct bourse_subtask {
    enum bourse_subtask_state state;
    uint32_t tries; /* that were started */
};
/* How far each subtask of an open job is; bourse_free. None, with true, of a job that has ended or
 * has more than 65536. */
bool bourse_subtasks(struct bourse *bourse, const char *id, struct bourse_subtask **ret_subtasks,
                     uint32_t *ret_count, struct bourse_error *ret_error);

/* Waits until the job has ended, at most `timeout_ms` (0: for ever); `watcher` (may be NULL) is
 * told of each change, and with `row` NULL when the broker cannot be reached for now. Ends early,
 * with true, when it returns false. `ret_row` (its leases NULL) is the last row seen. */
struct bourse_judged { /* results of a job that are held, after its client computed their checks */
    uint32_t accepted, rejected, unsure;
    uint32_t left; /* to a referee of another owner */
};
/* Computes the checks of what a referee rejects and no referee of another owner is left to judge,
 * and tells the market. bourse_wait does it by itself. Takes memory for three matrices. */
bool bourse_judge(struct bourse *bourse, const char *id, struct bourse_judged *ret_judged,
                  struct bourse_error *ret_error);

typedef bool bourse_watcher(void *context, const struct bourse_job_row *row);
bool bourse_wait(struct bourse *bourse, const char *id, int64_t timeout_ms, bourse_watcher *watcher,
                 void *context, struct bourse_job_row *ret_row, struct bourse_error *ret_error);

bool bourse_cancel(struct bourse *bourse, const char *id, struct bourse_error *ret_error);
bool bourse_explain(struct bourse *bourse, const char *id,
                    struct bourse_explanation *ret_explanation, struct bourse_error *ret_error);
/* The same of one subtask, by its index, and the part that it is of; NOT_FOUND when the job has
 * fewer. */
bool bourse_explain_subtask(struct bourse *bourse, const char *id, uint32_t index,
                            struct bourse_explanation *ret_explanation,
                            struct bourse_error *ret_error);
/* The same of one part, from 0 on; NOT_FOUND when the job has fewer. */
bool bourse_explain_part(struct bourse *bourse, const char *id, uint32_t part,
                         struct bourse_explanation *ret_explanation,
                         struct bourse_error *ret_error);

/* ---------------------------------------------------------------- results */

struct bourse_output {
    char name[1025];
    char hash[BOURSE_HEX32_SIZE];
    uint64_t size;
};
enum { BOURSE_OUTPUTS_MAX = 64 };
struct bourse_outcome {
    uint32_t index, attempt;
    int status; /* 0 accepted, 1 failed and paid, 2 failed and not paid, 3 late, 4 refuted: found
                   wrong, not paid */
    const char *status_text;
    int outcome;
    const char *outcome_text; /* "ok", "program failed", "memory limit" ... */
    bool has_exit_code;
    int exit_code;
    int signal; /* 0: none */
    char detail[BOURSE_TEXT_SIZE];
    char provider[BOURSE_HEX32_SIZE];
    bool simulated;
    int64_t started_ms, busy_ns, paid_ns, charge_micro;
    uint64_t log_index;
    bool has_standard_output, has_standard_error;
    struct bourse_output standard_output, standard_error;
    size_t output_count;
    struct bourse_output outputs[BOURSE_OUTPUTS_MAX];
    uint64_t lease; /* started_ms above is the agent's own clock */
    char device[BOURSE_ID_SIZE];
    bool has_energy;
    int64_t energy_uj;
    const char *verdict_text; /* of a check: "accept", "reject", "unsure"; else NULL */
    bool checked;             /* a referee's check decided it */
    uint32_t restored;        /* it went on from the checkpoint of this attempt; 0: it began anew */
    uint32_t saved_files;     /* of the checkpoint that it has left; 0: none */
    uint64_t saved_bytes;
};
/* Of each subtask that has one the result that counts, or else the last; by index. The visitor
 * returns false to stop. */
typedef bool bourse_outcome_visitor(void *context, const struct bourse_outcome *outcome);
bool bourse_outcomes(struct bourse *bourse, const char *id, uint32_t from,
                     bourse_outcome_visitor *visitor, void *context,
                     struct bourse_error *ret_error);

/* Writes an output that an outcome names to a descriptor, once its hash was found right. */
bool bourse_copy_output(struct bourse *bourse, const struct bourse_output *output, int fd,
                        struct bourse_error *ret_error);

/* Writes the program's output, or its errors, to a descriptor. NOT_FOUND when the subtask has no
 * result: the text says whether it may still get one. */
bool bourse_log(struct bourse *bourse, const char *id, uint32_t index, bool standard_error, int fd,
                struct bourse_error *ret_error);

struct bourse_fetched {
    uint64_t subtasks;  /* accepted, and so with outputs */
    uint64_t simulated; /* of them: results of simulated devices */
    uint64_t files;     /* all that belong in the folder */
    uint64_t written;
    uint64_t present; /* were there already, with the right content */
    uint64_t bytes;   /* written */
};
/* Outputs of every accepted subtask into `folder` (made if absent, and there are any;
 * docs/consumer.md says where each lands). Nothing outside the folder is touched, no symbolic link
 * followed, no file overwritten; every byte is checked against the hash in the provider's signed
 * result. Repeating it fetches only what is missing. */
typedef void bourse_fetch_progress(void *context, const struct bourse_fetched *fetched);
bool bourse_fetch(struct bourse *bourse, const char *id, const char *folder,
                  bourse_fetch_progress *progress, void *context,
                  struct bourse_fetched *ret_fetched, struct bourse_error *ret_error);

/* ---------------------------------------------------------------- tasks */

/* What a job's manifest says of its subtasks: their names, and who waits for whom. */
struct bourse_tasks;
bool bourse_tasks(struct bourse *bourse, const char *id, struct bourse_tasks **ret_tasks,
                  struct bourse_error *ret_error);
void bourse_tasks_destroy(struct bourse_tasks **self);
uint32_t bourse_tasks_count(const struct bourse_tasks *tasks); /* of subtasks, named or not */
/* NULL when the subtask has no name; as it was sent. Borrowed, as all below. */
const char *bourse_task_name(const struct bourse_tasks *tasks, uint32_t index);
/* False: no task of that name. */
bool bourse_task_find(const struct bourse_tasks *tasks, const char *name, uint32_t *ret_index);
/* How many the subtask waits for, and the index of one of them; a pair of tasks may stand there
 * more than once. */
size_t bourse_task_waits(const struct bourse_tasks *tasks, uint32_t index);
uint32_t bourse_task_wait(const struct bourse_tasks *tasks, uint32_t index, size_t position);
/* How many of the subtasks, the last ones, are checks of the others: number N + k is the check of
 * k. */
uint32_t bourse_tasks_checks(const struct bourse_tasks *tasks);
/* The id of the job of which this one runs what was left; false when it is a job of its own. */
bool bourse_tasks_continues(const struct bourse_tasks *tasks, char ret_id[BOURSE_ID_SIZE]);

/* ---------------------------------------------------------------- money and proofs */

struct bourse_balance {
    char account[BOURSE_HEX32_SIZE];
    char name[BOURSE_NAME_SIZE];
    int64_t available_micro, held_micro;
    uint64_t index;
};
bool bourse_balance(struct bourse *bourse, struct bourse_balance *ret_balance,
                    struct bourse_error *ret_error);

struct bourse_donated {
    int64_t used_ns;     /* slot-time had for nothing, which fades to half in seven days */
    int64_t promised_ns; /* that leases for nothing may use yet */
    uint32_t waiting;    /* accounts whose bids wait for slots */
    uint32_t
        place; /* among these: 1 is first for what is given away; 0: none of the account's waits */
    int64_t given_ns; /* slot-time that its own devices gave for nothing, ever */
};
/* What the account has of what is given away, and what it gave. */
bool bourse_donated(struct bourse *bourse, struct bourse_donated *ret_donated,
                    struct bourse_error *ret_error);

struct bourse_entry {
    uint64_t entry, log_index;
    int64_t time_ms;
    int kind;
    const char *kind_text;
    int64_t amount_micro;     /* effect on what is available */
    int64_t held_micro;       /* effect on what is held */
    char job[BOURSE_ID_SIZE]; /* "" when about none */
    char counterparty[BOURSE_NAME_SIZE];
    bool has_subtask;
    uint32_t subtask;
    char device[BOURSE_ID_SIZE]; /* whose lease it is about; "" when about none */
    int64_t fee_micro;           /* of a capture: what the market took beside it */
    int64_t given_ns;            /* of a result: slot-time that it took for nothing */
    bool failed;                 /* of a result: it was not accepted */
};
/* The account's entries, newest first, at most `limit` (0: all). */
typedef bool bourse_entry_visitor(void *context, const struct bourse_entry *entry);
bool bourse_statement(struct bourse *bourse, uint64_t limit, bourse_entry_visitor *visitor,
                      void *context, struct bourse_error *ret_error);

/* The results that this account provided, newest first, without amounts: accepted ones, for a pay
 * of less than a micro-credit has no entry of its own in the statement, and failed ones that took
 * time for nothing. */
bool bourse_provided(struct bourse *bourse, bourse_entry_visitor *visitor, void *context,
                     struct bourse_error *ret_error);

/* The receipt of one accepted result, as text that the caller frees with bourse_free. It is
 * verified with the log key of the market first: BOURSE_UNVERIFIED where it proves nothing, and
 * no text. */
bool bourse_receipt(struct bourse *bourse, const char *id, uint32_t index, char **ret_text,
                    size_t *ret_length, struct bourse_error *ret_error);
/* The newest signed checkpoint of the log, the same way. */
bool bourse_checkpoint(struct bourse *bourse, char **ret_text, uint64_t *ret_tree_size,
                       struct bourse_error *ret_error);
void bourse_free(void *memory);

struct bourse_verified {
    char cluster[BOURSE_ID_SIZE];
    char job[BOURSE_ID_SIZE];
    uint32_t index, attempt;
    char provider[BOURSE_HEX32_SIZE];
    char consumer[BOURSE_HEX32_SIZE];
    char manifest[BOURSE_HEX32_SIZE];
    char result[BOURSE_HEX32_SIZE]; /* SHA-256 of what the provider signed */
    const char *outcome_text;
    int64_t price_micro, paid_ns, charge_micro;
    uint64_t leaf, tree_size;
    char origin[BOURSE_NAME_SIZE];
    bool simulated;
    int status; /* what the broker made of it, as of struct bourse_outcome */
    const char *status_text;
    const char *checked;           /* "none", "cheap": how a referee looked at it */
    char check[BOURSE_HEX32_SIZE]; /* SHA-256 of the referee's signed Result; "" where none did */
};
/* Offline: needs nothing but the log's verifier key (bourse_account.verifier). UNVERIFIED when any
 * byte of the receipt is not what was signed. */
bool bourse_verify(const char *text, size_t length, const char *verifier,
                   struct bourse_verified *ret_verified, struct bourse_error *ret_error);

/* ---------------------------------------------------------------- the market */

struct bourse_attribute {
    const char *name;
    const char *text; /* NULL: it is a number */
    int64_t number;
    /* Of a figure, such as memory or a rate: "declared" by the device's owner, whose agent may have
     * measured it, or of a simulated device "catalogue". NULL: it is none. */
    const char *source;
};
/* What an account is known for; zeros where nothing is. */
struct bourse_standing {
    uint32_t refuted;             /* results of its that were refuted, less those that faded */
    uint32_t refuted_ever;        /* all of them */
    uint32_t overruled;           /* results that it rejected as a referee, and that stood */
    int64_t withdrawn_ms;         /* its asks are closed for so long; 0: they are not */
    char owner[BOURSE_NAME_SIZE]; /* as the operator named it; "": the account is its own */
};

struct bourse_device {
    char provider[BOURSE_NAME_SIZE];
    char account[BOURSE_HEX32_SIZE]; /* the provider's key, as outcomes name it */
    char state[BOURSE_NAME_SIZE];    /* of the provider: "present", "suspect", "away" */
    char id[BOURSE_ID_SIZE];
    char label[BOURSE_NAME_SIZE];
    char instrument[BOURSE_NAME_SIZE];
    char kind[BOURSE_NAME_SIZE]; /* "cpu", "gpu" ...: the widest; "" when it says none */
    bool simulated;
    uint32_t slots, leased;
    uint32_t free;                             /* slots of its ask that are not leased */
    int64_t price_micro;                       /* of its ask; -1: none stands */
    int64_t max_term_ms;                       /* of its ask; 0: no bound */
    size_t attribute_count;                    /* all but the instrument */
    const struct bourse_attribute *attributes; /* lives as long as the callback */
    struct bourse_standing standing;           /* of the provider */
};
/* Every device on the market, by provider; the visitor returns false to stop. Read in pages,
 * between which the market moves on. */
typedef bool bourse_device_visitor(void *context, const struct bourse_device *device);
bool bourse_devices(struct bourse *bourse, bourse_device_visitor *visitor, void *context,
                    struct bourse_error *ret_error);
/* Only those that satisfy `needs`, a requirement as in a job file: "kind = gpu and memory >=
 * 40GiB". */
bool bourse_devices_fitting(struct bourse *bourse, const char *needs,
                            bourse_device_visitor *visitor, void *context,
                            struct bourse_error *ret_error);

struct bourse_provider {
    char account[BOURSE_HEX32_SIZE];
    char name[BOURSE_NAME_SIZE];
    char state[BOURSE_NAME_SIZE]; /* "present", "suspect", "away" */
    uint32_t devices;
    uint64_t slots, leased; /* of its devices */
    uint64_t free;          /* of its asks */
    struct bourse_standing standing;
};
/* Everybody who ever offered a device. */
typedef bool bourse_provider_visitor(void *context, const struct bourse_provider *provider);
bool bourse_providers(struct bourse *bourse, bourse_provider_visitor *visitor, void *context,
                      struct bourse_error *ret_error);

struct bourse_ask_level { /* all asks for one instrument at one price and the same conditions */
    char instrument[BOURSE_NAME_SIZE];
    int64_t price_micro;
    uint64_t slots, free; /* offered, and not leased */
    uint32_t providers;
    uint32_t to;       /* for so many accounts only; 0: anybody's bid may fill them */
    bool for_you;      /* this account is one of these */
    const char *hours; /* when they are filled, for people; "": always. Lives as long as the book */
    int64_t daily_ms;  /* slot-time that each gives a day; 0: any */
    int64_t left_ms;   /* what leases may still be granted of today's, by all of them */
};
struct bourse_bid_level { /* all bids with equal needs at one limit */
    const char *needs;    /* as text; lives as long as the book */
    int64_t limit_micro;
    const char *rate; /* of the limit */
    uint64_t slots;   /* wanted now */
    uint32_t bids;
};
struct bourse_book;
/* What rests: asks by instrument and price, cheapest first, and bids by needs and limit, dearest
 * first. `needs` (NULL: none) leaves out the asks of devices that do not satisfy it; bids are all
 * there. Whose the bids are nobody is told. */
bool bourse_book(struct bourse *bourse, const char *needs, struct bourse_book **ret_book,
                 struct bourse_error *ret_error);
const struct bourse_ask_level *bourse_book_asks(const struct bourse_book *book, size_t *ret_count);
const struct bourse_bid_level *bourse_book_bids(const struct bourse_book *book, size_t *ret_count);
/* Prices that orders may have now, 0 besides; and what one order may come to: price x slots x
 * time. */
struct bourse_bands {
    int64_t least_micro, most_micro; /* most 0: the broker does not say */
    int64_t notional_micro;          /* 0: any */
};
struct bourse_bands bourse_book_bands(const struct bourse_book *book);
/* The same alone. */
bool bourse_bands(struct bourse *bourse, struct bourse_bands *ret_bands,
                  struct bourse_error *ret_error);
void bourse_book_destroy(struct bourse_book **self);

struct bourse_trade { /* a fill, and not whose */
    uint64_t entry;   /* of the ledger */
    uint64_t index;   /* log index */
    int64_t time_ms;
    char instrument[BOURSE_NAME_SIZE]; /* "" where the device said none */
    uint32_t slots;
    int64_t price_micro;
};
/* The market's last fills, newest first, at most `limit` (0: all). */
typedef bool bourse_trade_visitor(void *context, const struct bourse_trade *trade);
bool bourse_trades(struct bourse *bourse, uint64_t limit, bourse_trade_visitor *visitor,
                   void *context, struct bourse_error *ret_error);

struct bourse_bar { /* trades of one instrument in a minute, or in a longer time */
    char instrument[BOURSE_NAME_SIZE];                      /* "" where the device said none */
    int64_t start_ms;                                       /* log time */
    int64_t open_micro, high_micro, low_micro, close_micro; /* of the first ... of the last */
    uint64_t slots;
    uint32_t trades;
};
typedef bool bourse_bar_visitor(void *context, const struct bourse_bar *bar);
/* The minutes in which that instrument was traded, oldest first; or with NULL for each instrument
 * one bar over all of them, what was traded last first. `since_ms`: log time; 0: as far back as the
 * broker knows, at most 7 days. */
bool bourse_prices(struct bourse *bourse, const char *instrument, int64_t since_ms,
                   bourse_bar_visitor *visitor, void *context, struct bourse_error *ret_error);

/* What one piece of work took, with inputs of one size, on devices of one class, each time as on
 * its fastest device, or on one that is unlike that. Or, with `pace`, how many times as long as on
 * its fastest one device of a class takes at all work: of such a row only its class and device
 * count. Devices without such a row are as fast, as far as is known. */
struct bourse_measured {
    uint32_t index;                      /* the first subtask of the job that does it */
    char task[BOURSE_NAME_SIZE];         /* its name, or "" */
    uint64_t bytes;                      /* of its inputs: so many, and less than a quarter more */
    char device_class[BOURSE_NAME_SIZE]; /* instrument, "" where the device said none */
    uint32_t samples, outliers;          /* those that are counted, and those left out */
    int64_t median_ns, p90_ns;           /* nine of ten took at most p90; -1: too few to say */
    int64_t at_ms;                       /* log time of the newest */
    char account[BOURSE_HEX32_SIZE]; /* of one device: its provider's key; "", as device: all of the
                                        class */
    char device[BOURSE_ID_SIZE];
    uint32_t pace; /* in thousandths; 0: this is what work took */
};
typedef bool bourse_measured_visitor(void *context, const struct bourse_measured *measured);
/* What the work of a job was measured to take on this market, by whomever; of one that was
 * submitted, or of `job`. */
bool bourse_history(struct bourse *bourse, const char *id, bourse_measured_visitor *visitor,
                    void *context, struct bourse_error *ret_error);
bool bourse_history_of(struct bourse *bourse, const struct bourse_job *job,
                       bourse_measured_visitor *visitor, void *context,
                       struct bourse_error *ret_error);

struct bourse_depth { /* all asks for one instrument at one price, or all bids with equal needs at
                         one limit */
    bool is_bid;
    const char *of; /* the instrument, or the needs as text; lives as long as the news */
    int64_t price_micro;
    const char *rate;     /* of the limit of bids */
    uint32_t orders;      /* 0: there are none any more */
    uint64_t slots, free; /* offered, and of those not leased; or wanted now, and 0 */
    uint32_t limited, timed,
        daily; /* of asks: for some accounts, at some hours, for so much slot-time a day only */
};
struct bourse_news {
    bool is_lost; /* the broker does not answer: it is tried again, and nothing else is filled in */
    bool is_anew; /* the first news, or so much was missed that the trades before cannot be told:
                     bourse_trades has them */
    uint64_t index; /* of the log: the book is as of then */
    int64_t log_time_ms;
    const struct bourse_depth *levels; /* the book: asks by instrument, cheapest first, then bids by
                                          needs, dearest first */
    size_t level_count;
    const struct bourse_depth *changes; /* since the last news */
    size_t change_count;
    const struct bourse_trade *trades; /* likewise, oldest first */
    size_t trade_count;
    struct bourse_bands
        bands;          /* in force now; a highest price of 0: the broker does not say them */
    bool has_new_bands; /* others than at the last news */
};
typedef bool bourse_news_visitor(void *context, const struct bourse_news *news);
/* The market as it changes, as long as the visitor returns true. What a lost connection missed is
 * caught up with. */
bool bourse_follow(struct bourse *bourse, bourse_news_visitor *visitor, void *context,
                   struct bourse_error *ret_error);

struct bourse_order {
    char id[BOURSE_ID_SIZE];
    char job[BOURSE_ID_SIZE]; /* whose bid it is; "" for an ask */
    uint32_t part;            /* of that job, from 0 on */
    bool is_bid;
    char name[BOURSE_NAME_SIZE]; /* of the job, or label of the device */
    char device[BOURSE_ID_SIZE]; /* "" for a bid */
    int64_t price_micro;         /* least, or the bid's limit */
    const char *rate;            /* of the limit */
    uint32_t slots;              /* offered, or wanted now */
    uint32_t free;               /* of an ask: not leased */
    uint32_t place; /* among the orders for that kind of device, or with those needs; 1: first */
    int64_t good_till_ms, max_term_ms; /* of an ask; 0: none */
    const char *to;    /* of an ask: "alice, bob", borrowed for the call; "" for anybody */
    const char *hours; /* of an ask: "mon-fri 22:00-07:00 (UTC+01:00)", likewise; "" for always */
    /* Of an ask: whether higher bids may take its leases; then how long before its end a holder is
     * told, and how long nobody may take one. */
    bool interruptible;
    int64_t notice_ms, minimum_run_ms;
    int64_t daily_ms, left_ms; /* of an ask: slot-time a day, 0: any; and what is left of today's */
    const char *type;          /* "limit", "post-only", "all-or-none": those that can rest */
};
/* This account's own asks and its jobs' bids, oldest first. */
typedef bool bourse_order_visitor(void *context, const struct bourse_order *order);
bool bourse_orders(struct bourse *bourse, bourse_order_visitor *visitor, void *context,
                   struct bourse_error *ret_error);
#define BOURSE_ASK_TERM_MS_LEAST                                                                   \
    INT64_C(60000) /* jobs that say no `term` ask for that, or longer leases */
#define BOURSE_ASK_NOTICE_MS_MOST INT64_C(86400000)  /* a day */
#define BOURSE_ASK_RUN_MS_MOST INT64_C(604800000)    /* a week */
#define BOURSE_ASK_TIME_MS_MOST INT64_C(31622400000) /* 366 days */
enum bourse_ask_type {
    BOURSE_ASK_LIMIT,         /* what is not sold at once rests */
    BOURSE_ASK_IOC = 1,       /* what is not sold at once is cancelled */
    BOURSE_ASK_POST_ONLY = 3, /* rests; refused (WOULD_TRADE) when it would sell at once */
};
struct bourse_ask {
    const char *device; /* id, 32 digits, of a device that this account's agent offers now */
    uint32_t slots;
    int64_t price_micro; /* least, per slot-hour; 0 is a donation */
    int64_t good_for_ms; /* from now; TIME_MS_MOST at most; 0: until it is cancelled, or the agent
                            offers anew */
    int64_t max_term_ms; /* longest lease, from TERM_MS_LEAST to TIME_MS_MOST; 0: any */
    enum bourse_ask_type type;
    const char *const
        *to; /* for whom: names of accounts, or keys of 64 digits; none: for anybody */
    size_t to_count;
    const char *const *hours; /* when: "22:00-07:00", "mon-fri 18:00-24:00"; none: always */
    size_t hours_count;
    int64_t daily_ms; /* slot-time a day, of all leases together, from TERM_MS_LEAST on; 0: any.
                         Without a max_term_ms leases are an hour at most */
    const char *utc_offset; /* of these hours and days: "+01:00"; NULL: "+00:00" */
    /* Higher bids may take its leases, after `minimum_run_ms` (0 to a week), with `notice_ms` (0 to
     * a day). */
    bool interruptible;
    int64_t notice_ms, minimum_run_ms;
};
/* Places an ask, in the place of the one that stands for that device; what is leased stays
 * leased. */
bool bourse_place_ask(struct bourse *bourse, const struct bourse_ask *ask,
                      char ret_id[BOURSE_ID_SIZE], struct bourse_error *ret_error);
/* What is NULL or negative stays as it was. Fewer slots at the same price keep the order's place,
 * anything else is behind all that waits. What is leased stays leased at its price; above a lowered
 * cap it ends with its term. */
struct bourse_replacement {
    const char *order;    /* id of an ask, or of a job */
    int64_t part;         /* of the job; negative: every one */
    int64_t price_micro;  /* least of an ask; cap of a job */
    const char *value;    /* instead of a cap: "0.02 per bf16 TFLOP-hour" */
    int64_t slots;        /* offered; wanted at a time, 0: as many as can be used */
    int64_t budget_micro; /* of the job: only more */
};
bool bourse_replace(struct bourse *bourse, const struct bourse_replacement *replacement,
                    struct bourse_error *ret_error);
/* Cancels an ask of this account's; its leases run on. A bid ends with its job: bourse_cancel. */
bool bourse_cancel_ask(struct bourse *bourse, const char *id, struct bourse_error *ret_error);

/* ---------------------------------------------------------------- products of matrices */

/* C = A B as one job: C is cut into tiles, each a subtask that gets a block of A's rows and a block
 * of B's columns. The matrices are .npy files of float32, rows one after the other; none is ever in
 * memory whole. */
struct bourse_product;

struct bourse_product_options {
    const char *a, *b;  /* files */
    const char *output; /* C's; has its name only once it is complete and checked */
    uint32_t tile_rows,
        tile_columns; /* blocks of A's rows and B's columns; 0: as the devices on offer suggest */
    uint32_t at_most; /* slots at a time; 0: as many as help */
    int64_t budget_micro, cap_micro; /* -1: not given */
    bool checks;                     /* each tile is checked by a referee before it is paid */
};
/* Reads both headers, asks the market for its devices, chooses the tiles, makes room for C on the
 * disk, and hashes every block. Nothing is sent. */
bool bourse_product_plan(struct bourse *bourse, const struct bourse_product_options *options,
                         struct bourse_product **ret_product, struct bourse_error *ret_error);
/* A product that was submitted before, as `id` or as a job that `id` continues or that continues
 * it; `ret_newest` is the newest of these, to be collected. When that has ended without all tiles,
 * those that are missing are a job to submit, which is to be collected then. Of `options` `output`
 * is needed; without `a` and `b` it cannot be checked; `budget_micro` and `cap_micro` are those of
 * the job to submit, and `checks` lets no tile into C that nobody has checked; the rest is not
 * looked at. */
bool bourse_product_resume(struct bourse *bourse, const char *id,
                           const struct bourse_product_options *options,
                           struct bourse_product **ret_product, char ret_newest[BOURSE_ID_SIZE],
                           struct bourse_error *ret_error);
void bourse_product_destroy(struct bourse_product **self);
/* The job to quote and submit; it lives as long as the product. NULL: nothing is to be
 * submitted. */
struct bourse_job *bourse_product_job(struct bourse_product *product);
struct bourse_product_summary {
    uint64_t rows, inner, columns;    /* inner: 0 when it is not known */
    uint32_t tile_rows, tile_columns; /* blocks along each side of C */
    uint64_t tiles, collected;        /* of these, written into C */
    uint64_t checks;                  /* one of each tile; 0: none is checked before it is paid */
    uint64_t collected_bytes;
    uint64_t unjudged; /* of those collected, the ones that no referee has checked */
    /* Of a plan: */
    uint32_t devices, devices_used; /* that can multiply, and that are to */
    uint32_t slots;                 /* in use at a time */
    int64_t least_mflops;           /* that a slot must have, to keep slower devices out; 0: any */
    bool is_split;                  /* over several devices */
    int64_t predicted_ms,
        single_ms; /* by the devices' measured speeds; on the best single device */
};
void bourse_product_summary(const struct bourse_product *product,
                            struct bourse_product_summary *ret_summary);

/* Writes the tiles of the job, and of those that it continues, that are accepted and not yet in C
 * into it. Each is checked against the hash in its provider's signed result, and for its shape. */
bool bourse_product_collect(struct bourse *bourse, struct bourse_product *product, const char *id,
                            struct bourse_error *ret_error);

struct bourse_replan {
    bool is_made;   /* tiles took so much more or less than planned that it was planned anew */
    uint32_t slots; /* that the job may have at a time by now; 0: any */
};
/* Of a product that was planned here and is being made: where its tiles take more than a fifth more
 * or less than it was planned with last, plans those that are left anew, for what is on offer now
 * at the speed that was measured, and lets the job have more slots at a time where they help.
 * `row`: as the watcher of bourse_wait is told. */
bool bourse_product_replan(struct bourse *bourse, struct bourse_product *product,
                           const struct bourse_job_row *row, struct bourse_replan *ret_replan,
                           struct bourse_error *ret_error);

/* How many of the tiles in C came by a lease. */
uint32_t bourse_product_tiles_by(const struct bourse_product *product, uint64_t lease);

enum { BOURSE_WRONG_TILES_MAX = 8 };
struct bourse_wrong_tile {
    uint32_t index, row, column; /* of the subtask; of the tile in C */
    char provider[BOURSE_HEX32_SIZE];
    uint64_t at_row, at_column; /* its first wrong entry, in C */
    double found, expected;
};
struct bourse_product_check {
    bool is_right;
    uint32_t rounds;
    uint64_t wrong_rows;
    uint64_t doubtful_rows; /* further off than usual, and no further than rounding can be */
    uint64_t unchecked_rows,
        unchecked_columns; /* with NaN or infinity: only a sample of them was looked at */
    double max_rel_error;  /* of a sample of rows: error / root mean square of the row */
    uint64_t wrong_tiles;
    struct bourse_wrong_tile tiles[BOURSE_WRONG_TILES_MAX]; /* the first of them */
    uint64_t reduced_tiles; /* of those wrong: made of factors that had been rounded to fewer bits;
                               8 tiles at most are looked at */
};
/* Whether C is the product, by Freivalds' method in double (docs/consumer.md). UNVERIFIED when it
 * is not: *ret_check is filled then too. All tiles have been collected. */
bool bourse_product_check(struct bourse *bourse, struct bourse_product *product,
                          struct bourse_product_check *ret_check, struct bourse_error *ret_error);
/* Makes C durable and gives it its name; a file of that name is replaced. Once, when all tiles have
 * been collected. UNVERIFIED where checks were asked for, a tile was accepted without one, and C
 * was not found right either. */
bool bourse_product_keep(struct bourse_product *product, struct bourse_error *ret_error);

/* ---------------------------------------------------------------- for providers */

struct bourse_why_refusal { /* a requirement that waits, and that the device does not satisfy */
    char predicate[BOURSE_TEXT_SIZE]; /* to be changed first */
    uint32_t changes;                 /* predicates to change, at least */
    uint32_t bids;                    /* that have this requirement */
    int64_t limit_micro;              /* the most that one of them pays */
    bool has_have;                    /* the device's own figure, where it is a number */
    int64_t have;
};
struct bourse_why {
    char text[BOURSE_TEXT_SIZE];  /* what keeps work away, and what to do */
    char state[BOURSE_NAME_SIZE]; /* of this provider: "present", "suspect", "away" */
    bool frozen, halted;
    uint32_t devices; /* that this account advertises; 0: nothing else below is filled in */
    char device[BOURSE_ID_SIZE]; /* the one asked about */
    char label[BOURSE_NAME_SIZE];
    uint32_t slots, leased;
    uint32_t free;                           /* slots of its ask that are not leased */
    int64_t price_micro;                     /* of its ask; -1: none stands */
    uint32_t bids, fitting, lasting, paying; /* waiting bids of others; each of the former */
    int64_t best_limit_micro;                /* of those that fit and last; -1: none */
    int64_t fills_at_micro; /* replaced to ask that, it is filled now; -1: no price would do */
    int64_t paid_micro;    /* half of what was let of its instrument lately was let at this or less;
                              -1: nothing was */
    uint32_t paid_trades;  /* from so many */
    int64_t paid_since_ms; /* log time of the oldest of them */
    int64_t ahead;    /* asks that a bid which may take it would take before it; -1: not said */
    int64_t daily_ms; /* slot-time a day, of its ask; 0: any. Else, of today: */
    int64_t used_ms, promised_ms; /* what was settled, and what its leases may use yet */
    bool partial;                 /* there were too many bids to look at all */
    uint32_t refusal_count;
    struct bourse_why_refusal refusals[BOURSE_PREDICATES_MAX]; /* nearest first */
    struct bourse_standing standing;                           /* of this account */
    uint64_t index;
};
/* Why no work comes to this account's device number `device` (0, 1, 2 ...). NOT_FOUND: it has not
 * so many. */
bool bourse_why(struct bourse *bourse, uint32_t device, struct bourse_why *ret_why,
                struct bourse_error *ret_error);

/* ---------------------------------------------------------------- joining, and the operator */

/* Redeems an invitation with the key at `key_path` (made when absent) and writes `market_path`. All
 * that this machine has to write is written before the broker is asked. After any failure the same
 * invitation and key may ask again: an account that is there is an answer (`was_known`). */
bool bourse_join(const char *invitation, const char *key_path, const char *market_path,
                 const char *name, int timeout_ms, struct bourse_account *ret_account,
                 struct bourse_error *ret_error);

bool bourse_mint(struct bourse *bourse, const char *account, int64_t amount_micro, const char *note,
                 struct bourse_error *ret_error);
/* An invitation that mints `credits_micro` for who redeems it within `valid_ms`. */
bool bourse_invite(struct bourse *bourse, unsigned roles, int64_t credits_micro, int64_t valid_ms,
                   const char *name, char *ret_text, size_t capacity,
                   struct bourse_error *ret_error);
bool bourse_freeze(struct bourse *bourse, const char *account, bool frozen, const char *reason,
                   struct bourse_error *ret_error);
bool bourse_halt(struct bourse *bourse, bool halted, const char *reason,
                 struct bourse_error *ret_error);
/* From now on; -1: it stays as it is. At least one is another. */
bool bourse_set_bands(struct bourse *bourse, const struct bourse_bands *bands, const char *reason,
                      struct bourse_error *ret_error);

/* Whose accounts these are, by their keys; `owner` NULL or "": each is its own. */
bool bourse_set_owner(struct bourse *bourse, const char *const *accounts, size_t count,
                      const char *owner, const char *reason, struct bourse_error *ret_error);

struct bourse_account_row {
    uint32_t number;
    char account[BOURSE_HEX32_SIZE];
    char name[BOURSE_NAME_SIZE];
    unsigned roles;
    int64_t available_micro, held_micro;
    bool frozen;
    char owner[BOURSE_NAME_SIZE]; /* as the operator named it; "": the account is its own */
};
typedef bool bourse_account_visitor(void *context, const struct bourse_account_row *row);
bool bourse_accounts(struct bourse *bourse, bourse_account_visitor *visitor, void *context,
                     bool *ret_halted, struct bourse_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
