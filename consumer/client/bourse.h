/* consumer/client/bourse.h opens the market to programs. The `bourse` command is the first user of
 * this library, libbourse.
 *
 * A `struct bourse` is a connection; a `struct bourse_job` is a job that is ready to submit. Calls
 * block, at most for the connection's timeout unless a call says otherwise. Calls survive
 * reconnects: a request goes out again under the same id until an answer comes. Nothing happens
 * twice. A connection belongs to one thread; only bourse_interrupt may come from another thread or
 * from a signal handler.
 *
 * Ids, keys and hashes are lower-case hex text. Money is in micro-credits, a price is in
 * micro-credits per slot-hour. A name that ends in _ms is in milliseconds; a point in time is log
 * time of the market. Every function that returns bool returns false on failure and then fills
 * *ret_error, which may be NULL. Names and texts of other accounts arrive as sent: pass them
 * through bourse_printable before a terminal shows them.
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

enum bourse_status { /* bourse_exit_status gives the command's exit status */
                     BOURSE_OK = 0,
                     BOURSE_JOB_FAILED = 1,
                     BOURSE_USAGE = 2,
                     BOURSE_NOT_FOUND = 3,
                     BOURSE_REFUSED = 4,     /* rights, quota or funds */
                     BOURSE_NO_MATCH = 5,    /* nothing on the market fits, or the job expired */
                     BOURSE_UNREACHABLE = 6, /* no broker, or an unexpected one */
                     BOURSE_UNVERIFIED = 7,  /* a hash, a signature or a proof is wrong */
                     BOURSE_TIMED_OUT = 8,
                     BOURSE_CANCELLED = 9,
                     BOURSE_LOCAL = 10, /* a fault of this machine: a file, memory */
                     BOURSE_INTERRUPTED = 130,
};

struct bourse_error {
    enum bourse_status status;
    int reject;           /* number of the broker's refusal (docs/errors.md), or 0 */
    char name[40];        /* stable name of the refusal, else of `status` */
    char text[640];       /* one printable line: the fault, the limit, the next step */
    char field[64];       /* field that the broker refused, or "" */
    int64_t value, limit; /* the field's value and its limit; both 0 without one */
};

const char *bourse_status_name(enum bourse_status status);
int bourse_exit_status(enum bourse_status status);
const char *bourse_version(void);
/* Copies `text` for a terminal: every control character and bidirectional mark becomes '?'. */
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
    int timeout_ms;      /* for each call; 0: 30 s */
};

/* Opens a connection, which the caller closes with bourse_close. */
bool bourse_open(const struct bourse_options *options, struct bourse **ret_bourse,
                 struct bourse_error *ret_error);
void bourse_close(struct bourse **self);
/* Asks the running call to end with INTERRUPTED. A signal handler may call this function. */
void bourse_interrupt(struct bourse *bourse);

enum { BOURSE_ROLE_PROVIDER = 2 };
struct bourse_account {
    char key[BOURSE_HEX32_SIZE];
    char name[BOURSE_NAME_SIZE];
    /* 1 consumer, 2 provider, 4 auditor, 8 replica, 16 risk, 32 operator; 0: unknown here. */
    unsigned roles;
    char cluster[BOURSE_ID_SIZE];
    char origin[BOURSE_NAME_SIZE];
    char verifier[256]; /* the log's public key in C2SP form, for bourse_verify */
    int64_t log_time_ms;
    bool was_known; /* bourse_join found the account */
    int redeemed;   /* 1: by this key, now or before; 0: not by it; -1: unknown */
};
bool bourse_whoami(struct bourse *bourse, struct bourse_account *ret_account,
                   struct bourse_error *ret_error);

/* -------------------------------------------------------------- jobs before they are submitted */

/* A limit is per slot-hour or by value. A limit by value is in micro-credits per hour of 10^15
 * operations per second. The rate's name stands beside the limit, e.g. "bf16"; "" means per
 * slot-hour. Names of rates live as long as the program. */

struct bourse_job;

/* Reads a job file, expands its patterns relative to the file's folder, and hashes every input. */
bool bourse_job_load(const char *path, struct bourse_job **ret_job, struct bourse_error *ret_error);
/* Reads a job from text; names are relative to `folder`. */
bool bourse_job_parse(const char *text, size_t length, const char *folder,
                      struct bourse_job **ret_job, struct bourse_error *ret_error);
/* Makes a new job of the failed and cancelled subtasks of a job that has ended. The
 * outputs of accepted subtasks become inputs of the new job. `cap_micro` is a cap as in a job file,
 * or -1; `value` is a value as in a job file, or NULL. A job that had a cap or a value needs one
 * again. `good_for_ms` bounds the new job's life; 0 keeps the first job's end, if it named one.
 * Fails with NOT_FOUND when nothing is left, and with USAGE when that end has passed. */
bool bourse_job_resume(struct bourse *bourse, const char *id, int64_t cap_micro, const char *value,
                       int64_t good_for_ms, struct bourse_job **ret_job,
                       struct bourse_error *ret_error);
/* Finds the files of a resumed job that the broker does not hold. A file in `folder` with the job's
 * name and the same bytes is sent with the job. `image` is the path of the job's image, or NULL.
 * `visitor` hears of every file that cannot be sent. */
struct bourse_absent {
    bool is_image;
    const char *name;             /* in the job; "" for the image */
    char hash[BOURSE_HEX32_SIZE]; /* hash of the bytes that the job had */
    uint64_t size;
    const char *why; /* reason: "data.csv: No such file or directory" */
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
    uint64_t checks; /* subtasks that check, one for each result; 0: none */
    uint64_t inputs; /* files, each counted once */
    uint64_t input_bytes;
    uint64_t skipped;     /* matches of patterns that are not regular files */
    uint32_t slots;       /* width of one subtask */
    uint32_t at_most;     /* 0: as many as are ready */
    int64_t budget_micro; /* -1: not given */
    int64_t cap_micro;    /* -1: market price */
    int64_t value_micro;  /* -1: not by value */
    const char *value_rate;
    int64_t limit_ms;
    int64_t term_ms;
    int64_t expect_ns;    /* time of one subtask that the quote assumes */
    bool expect_is_guess; /* the job gave no time, and nobody measured one */
    /* The market measured such work for so many subtasks, so often. A quote fills both. A median of
     * n samples weighs n / (n + 4) against the job's own figure. */
    uint64_t measured_subtasks, measured_samples;
    /* 90 % of the samples took at most this, in every size and device class; -1: too few. */
    int64_t p90_ns;
    char manifest[BOURSE_HEX32_SIZE];
    uint32_t parts;                 /* kinds of devices or terms that the job buys for */
    int64_t way_ms;                 /* longest chain of dependent tasks; 0: no task waits */
    char continues[BOURSE_ID_SIZE]; /* job whose remaining work this one runs; "" */
};
void bourse_job_summary(const struct bourse_job *job, struct bourse_job_summary *ret_summary);

struct bourse_level {
    int64_t price_micro;
    uint32_t slots;
    uint32_t providers;
    /* A level of a quote by value has alike devices. Levels above their worth are there too. */
    int64_t worth_micro; /* the job's limit there, per slot-hour; -1: not by value */
    char instrument[BOURSE_NAME_SIZE];
};
struct bourse_predicate {
    char text[BOURSE_TEXT_SIZE];
    uint32_t failing;
    bool has_best;
    int64_t best;
};
enum { BOURSE_LEVELS_MAX = 64, BOURSE_PREDICATES_MAX = 64, BOURSE_CHANGES_MAX = 4 };
struct bourse_change {            /* one change to the job for a new submission */
    char text[BOURSE_TEXT_SIZE];  /* "with a cap of 1.90 instead of 1.60" */
    char field[BOURSE_NAME_SIZE]; /* field of a job file */
    bool has_figures;             /* false for needs */
    int64_t from, to;             /* micro-credits, nanoseconds or slots */
};
struct bourse_explanation {
    uint32_t devices, fitting, asking, affordable, free; /* each counts a part of the one before */
    char text[BOURSE_TEXT_SIZE];
    bool has_fills_at;
    int64_t fills_at_micro;
    const char *rate; /* rate of fills_at_micro and of a changed `value` */
    uint32_t predicate_count;
    struct bourse_predicate predicates[BOURSE_PREDICATES_MAX];
    /* Smallest set of changes with which the order fills now; 0: none suffices or is needed. */
    uint32_t change_count;
    struct bourse_change changes[BOURSE_CHANGES_MAX];
    int64_t changed_price_micro;  /* price at which the changed order fills */
    char changed_needs[2048];     /* all needs after the change; "": unchanged, or too long */
    int64_t ahead;                /* waiting bids before this one; -1: no queue */
    bool ahead_partial;           /* `ahead` is a lower bound */
    char state[BOURSE_NAME_SIZE]; /* of a job; "" for a quote, and zeros below */
    uint32_t parts;               /* parts of the job, each with its needs and terms */
    uint32_t part;                /* the explained part; its subtasks: */
    uint32_t first, subtasks, waiting, running; /* `waiting` ones wait for a lease */
    uint32_t queued; /* running ones that stand behind another on their device */
    /* Least limit with which the order takes a lease from its holder now; -1: none. */
    int64_t takes_at_micro;
    /* A quote fills these. `refusal` is the code with which the market would refuse the bid, or "".
     * `starts_at_micro` is the price at which the bid would fill, or -1: the bid would wait.
     * `starts_with_lease` says that the fill takes a lease from its holder. */
    char refusal[BOURSE_NAME_SIZE];
    int64_t starts_at_micro;
    bool starts_with_lease;
    uint32_t own_devices; /* fitting devices of this account */
    /* The answer about one subtask of an open job fills these. */
    char subtask_state[BOURSE_NAME_SIZE]; /* "waiting", "running" ...; "": none was asked about */
    uint32_t subtask, tries, waits_on;    /* waits_on: subtasks before it, not accepted yet */
    char provider[BOURSE_NAME_SIZE], device[BOURSE_NAME_SIZE]; /* where the subtask was sent; "" */
    uint32_t behind; /* subtasks sent there earlier that have not ended */
};
struct bourse_alone {
    char place[2 * BOURSE_NAME_SIZE + 2]; /* "provider/device"; "": no device is faster */
    char needs[512];                      /* needs for the job's file that select the device */
    int64_t makespan_ns, cost_micro;
    int64_t least_micro; /* least budget */
};
struct bourse_quote {
    /* 0: the figures below are about slots_taken, or about leased slots as if they were free. */
    uint32_t slots_now;
    /* Further slots, in leases that the job would take from their holders at these prices. */
    uint32_t slots_taken;
    int64_t taken_low_micro, taken_high_micro;
    int64_t price_low_micro, price_high_micro;
    int64_t expected_micro;  /* cost */
    int64_t minimum_micro;   /* least budget that can start */
    int64_t suggested_micro; /* the default budget; 0: fitting slots have no price */
    bool is_all_there_is;    /* the suggestion is all that the account has, perhaps 0 */
    /* Price and number of slots beside the donated ones, free or leased; 0: none. */
    int64_t elsewhere_micro;
    uint32_t elsewhere_slots;
    int64_t most_micro; /* largest notional of one order, where it bounds the suggestion; else 0 */
    /* The job's cap. Without a cap: 1.5 times the dearest price that the job would pay now, or that
     * a second referee asks, within the band. With checks all parts have one limit. -1: only the
     * budget binds. */
    int64_t limit_micro;
    int64_t rests_at_micro; /* most that a waiting order pays then; -1: no budget is known */
    int64_t band_least_micro, band_most_micro; /* the market's price band */
    int64_t makespan_ns;
    uint32_t level_count;
    /* Cheapest first; an offer that suits several parts is there once. */
    struct bourse_level levels[BOURSE_LEVELS_MAX];
    bool has_explanation;
    struct bourse_explanation explanation;
    uint64_t index;
    /* Account with the cheapest fitting ask, for one part; "": nobody. */
    char first_account[BOURSE_HEX32_SIZE];
    int64_t second_micro; /* cheapest ask of another account, whatever the cap; -1: none */
    /* Three quarters of the fitting slots traded lately cost at most this; free slots now cost no
     * more either. The dearest part counts. -1: no fitting slot was traded. */
    int64_t suggested_cap_micro;
    uint32_t suggested_cap_trades; /* number of those trades */
    int64_t suggested_cap_since_ms;
    char checks_problem[320];  /* `verify: cheap`: reason why nobody can check; "" */
    struct bourse_alone alone; /* a single device that beats the plan */
    /* The budget of the job or the account is 0: all figures above are about donated slots. */
    bool is_of_gifts;
    /* First part, counted from 1, that no donated slot fits; 0: none. */
    uint32_t without_gift;
};
/* Asks the market what the job would cost and take. With `verify: cheap`, the job remembers to keep
 * a sole referee for the checks. */
bool bourse_quote(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *ret_quote,
                  struct bourse_error *ret_error);

/* Stores the inputs that the broker lacks, then submits the job. `limit_micro` is the highest price
 * per slot-hour. A quote gives one; -1 means market price, and only the budget binds. A call after
 * a failure with the same job never submits twice. `progress` may be NULL. */
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
    bool simulated;     /* the device is simulated, and a model made its times */
    bool interruptible; /* a higher bid may take the lease */
    bool taken;         /* a higher bid took it: the lease ends with the notice */
};
struct bourse_job_row {
    char id[BOURSE_ID_SIZE];
    char name[BOURSE_NAME_SIZE];
    enum bourse_job_state state;
    const char *state_text; /* "open", "done", "failed", "cancelled" */
    int reason;
    bool is_expired; /* the time was up: the job ended, or waits for running subtasks */
    /* The job ended: its order asked for all slots at once and did not get or keep them. */
    bool is_unfilled;
    const char *reason_text; /* why the job waits or why it ended, or "" */
    uint32_t subtasks, waiting, running, accepted, failed, cancelled;
    uint32_t checking; /* results that are held for a referee's check */
    uint32_t accused;  /* held ones that one referee rejects and no other has judged */
    int64_t budget_micro, charged_micro, reserved_micro;
    int64_t submitted_ms, ended_ms; /* ended: 0 while open */
    char manifest[BOURSE_HEX32_SIZE];
    uint64_t index; /* journal index of this row */
    size_t lease_count;
    const struct bourse_lease *leases; /* lives as long as the row's list, or the callback */
    uint32_t queued;                   /* running ones that stand behind another in their lane */
    /* Subtasks with a checkpoint, from which their next attempt continues. */
    uint32_t saved;
    /* Time until the job is done, at the measured pace and on its lanes; -1: unknown. */
    int64_t left_ms;
    /* Sums over `timed` results, checks left out: the time expected at submission, perhaps a guess,
     * and the time taken. */
    uint32_t timed;
    int64_t foreseen_ms, took_ms;
};

/* Finds a job by `text`: a whole id, a unique prefix of one, or "last" for the newest. */
bool bourse_find_job(struct bourse *bourse, const char *text, char ret_id[BOURSE_ID_SIZE],
                     struct bourse_error *ret_error);

struct bourse_jobs;
/* Returns the jobs of this account, newest first, or one; the caller destroys the list. */
bool bourse_jobs(struct bourse *bourse, const char *id, struct bourse_jobs **ret_jobs,
                 struct bourse_error *ret_error);
size_t bourse_jobs_count(const struct bourse_jobs *jobs);
const struct bourse_job_row *bourse_jobs_row(const struct bourse_jobs *jobs, size_t index);
void bourse_jobs_destroy(struct bourse_jobs **self);

enum bourse_subtask_state {
    BOURSE_SUBTASK_WAITING,
    BOURSE_SUBTASK_RUNNING,
    BOURSE_SUBTASK_CHECKING, /* the result waits for a referee's verdict */
    BOURSE_SUBTASK_ACCEPTED,
    BOURSE_SUBTASK_FAILED,
    BOURSE_SUBTASK_CANCELLED,
    BOURSE_SUBTASK_QUEUED /* on a device, behind another subtask in its lane */
};
struct bourse_subtask {
    enum bourse_subtask_state state;
    uint32_t tries; /* attempts that were started */
};
/* Returns the state of each subtask of an open job; the caller frees the array with bourse_free.
 * The array is empty when the job has ended or has more than 65536 subtasks. */
bool bourse_subtasks(struct bourse *bourse, const char *id, struct bourse_subtask **ret_subtasks,
                     uint32_t *ret_count, struct bourse_error *ret_error);

struct bourse_judged { /* held results whose checks the client computed */
    uint32_t accepted, rejected, unsure;
    uint32_t left; /* left to a referee of another owner */
};
/* Computes the checks of results that a referee rejects and no referee of another owner can judge.
 * The market then gets the verdicts. bourse_wait does so by itself. The call takes memory for three
 * matrices. */
bool bourse_judge(struct bourse *bourse, const char *id, struct bourse_judged *ret_judged,
                  struct bourse_error *ret_error);

/* Waits until the job has ended, at most `timeout_ms` (0: for ever). `watcher`, which may be NULL,
 * hears of each change, and gets a NULL `row` while the broker is unreachable. The wait ends early,
 * with true, when `watcher` returns false. `ret_row` is the last row, with `leases` NULL. */
typedef bool bourse_watcher(void *context, const struct bourse_job_row *row);
bool bourse_wait(struct bourse *bourse, const char *id, int64_t timeout_ms, bourse_watcher *watcher,
                 void *context, struct bourse_job_row *ret_row, struct bourse_error *ret_error);

bool bourse_cancel(struct bourse *bourse, const char *id, struct bourse_error *ret_error);
bool bourse_explain(struct bourse *bourse, const char *id,
                    struct bourse_explanation *ret_explanation, struct bourse_error *ret_error);
/* Explains one subtask, by its index, and its part. Fails with NOT_FOUND when the job has fewer. */
bool bourse_explain_subtask(struct bourse *bourse, const char *id, uint32_t index,
                            struct bourse_explanation *ret_explanation,
                            struct bourse_error *ret_error);
/* Explains one part, from 0 on. Fails with NOT_FOUND when the job has fewer. */
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
    /* 0 accepted, 1 failed and paid, 2 failed and not paid, 3 late, 4 refuted and not paid. */
    int status;
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
    uint64_t lease; /* started_ms above is in the agent's own clock */
    char device[BOURSE_ID_SIZE];
    bool has_energy;
    int64_t energy_uj;
    const char *verdict_text; /* a check's: "accept", "reject" or "unsure"; else NULL */
    bool checked;             /* a referee's check decided the result */
    uint32_t restored;        /* attempt whose checkpoint it continued; 0: none */
    uint32_t saved_files;     /* files of the checkpoint that it left; 0: none */
    uint64_t saved_bytes;
};
/* Visits one result of each subtask that has any, by index: the result that counts, else the last
 * one. The visitor returns false to stop. */
typedef bool bourse_outcome_visitor(void *context, const struct bourse_outcome *outcome);
bool bourse_outcomes(struct bourse *bourse, const char *id, uint32_t from,
                     bourse_outcome_visitor *visitor, void *context,
                     struct bourse_error *ret_error);

/* Writes an output to a descriptor after its hash was found right. `what` names it in errors. */
bool bourse_copy_output(struct bourse *bourse, const struct bourse_output *output, const char *what,
                        int fd, struct bourse_error *ret_error);

/* Writes the program's standard output or standard error to a descriptor. Fails with NOT_FOUND when
 * the subtask has no result; the error's text says whether one may still come. */
bool bourse_log(struct bourse *bourse, const char *id, uint32_t index, bool standard_error, int fd,
                struct bourse_error *ret_error);

struct bourse_fetched {
    uint64_t subtasks;  /* accepted ones, which have outputs */
    uint64_t simulated; /* results of simulated devices among them */
    uint64_t files;     /* all that belong in the folder */
    uint64_t written;
    uint64_t present;      /* found there with the right content */
    uint64_t bytes;        /* bytes written */
    bool declares_outputs; /* the job says which outputs its subtasks leave */
};
/* Fetches the outputs of every accepted subtask into `folder`, and makes the folder when there are
 * any. docs/consumer.md says where each lands. The call touches nothing outside the folder, follows
 * no symbolic link and overwrites no file. Every byte is checked against the hash in the provider's
 * signed result. Another call fetches only missing files. */
typedef void bourse_fetch_progress(void *context, const struct bourse_fetched *fetched);
bool bourse_fetch(struct bourse *bourse, const char *id, const char *folder,
                  bourse_fetch_progress *progress, void *context,
                  struct bourse_fetched *ret_fetched, struct bourse_error *ret_error);

/* ---------------------------------------------------------------- tasks */

/* A job's manifest gives the names of its subtasks and their dependencies. */
struct bourse_tasks;
bool bourse_tasks(struct bourse *bourse, const char *id, struct bourse_tasks **ret_tasks,
                  struct bourse_error *ret_error);
void bourse_tasks_destroy(struct bourse_tasks **self);
uint32_t bourse_tasks_count(const struct bourse_tasks *tasks); /* all subtasks, named or not */
/* Returns the name as sent, or NULL when the subtask has none. `tasks` owns the text. */
const char *bourse_task_name(const struct bourse_tasks *tasks, uint32_t index);
/* Returns false when no task has the name. */
bool bourse_task_find(const struct bourse_tasks *tasks, const char *name, uint32_t *ret_index);
/* Return the number of tasks that a subtask waits for, and the index of one of them. A pair of
 * tasks may be there more than once. */
size_t bourse_task_waits(const struct bourse_tasks *tasks, uint32_t index);
uint32_t bourse_task_wait(const struct bourse_tasks *tasks, uint32_t index, size_t position);
/* Returns the number of checks N, which are the last subtasks. With M other subtasks, number M + k
 * checks number k. */
uint32_t bourse_tasks_checks(const struct bourse_tasks *tasks);
/* Returns true and the id of the job whose remaining work this one runs, or false. */
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
    int64_t used_ns;     /* donated slot-time received; halves in seven days */
    int64_t promised_ns; /* what its leases at price 0 may still use */
    uint32_t waiting;    /* accounts whose bids wait for slots */
    /* Rank for donated slots among these accounts, from 1; 0: no bid of this account waits. */
    uint32_t place;
    int64_t given_ns; /* slot-time that its own devices donated so far */
};
/* Returns the donated slot-time that the account received and gave. */
bool bourse_donated(struct bourse *bourse, struct bourse_donated *ret_donated,
                    struct bourse_error *ret_error);

struct bourse_entry {
    uint64_t entry, log_index;
    int64_t time_ms;
    int kind;
    const char *kind_text;
    int64_t amount_micro;     /* effect on the available amount */
    int64_t held_micro;       /* effect on the held amount */
    char job[BOURSE_ID_SIZE]; /* "" when the entry names none */
    char counterparty[BOURSE_NAME_SIZE];
    bool has_subtask;
    uint32_t subtask;
    char device[BOURSE_ID_SIZE]; /* the lease's device; "" when the entry names none */
    int64_t fee_micro;           /* of a capture: the market's fee */
    int64_t given_ns;            /* of a result: slot-time taken at price 0 */
    bool failed;                 /* of a result: not accepted */
};
/* Visits the account's ledger entries, newest first, at most `limit` (0: all). */
typedef bool bourse_entry_visitor(void *context, const struct bourse_entry *entry);
bool bourse_statement(struct bourse *bourse, uint64_t limit, bourse_entry_visitor *visitor,
                      void *context, struct bourse_error *ret_error);

/* Visits the results that this account provided, newest first, without amounts. Accepted results
 * are there because pay below a micro-credit has no statement entry. Failed results are there when
 * they took time at price 0. */
bool bourse_provided(struct bourse *bourse, bourse_entry_visitor *visitor, void *context,
                     struct bourse_error *ret_error);

/* Returns the receipt of one accepted result as text; the caller frees the text with bourse_free.
 * The log key of the market verifies the receipt first. Fails with BOURSE_UNVERIFIED, and without
 * text, when the receipt proves nothing. */
bool bourse_receipt(struct bourse *bourse, const char *id, uint32_t index, char **ret_text,
                    size_t *ret_length, struct bourse_error *ret_error);
/* Returns the newest signed checkpoint of the log in the same way. */
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
    char result[BOURSE_HEX32_SIZE]; /* SHA-256 of the signed result */
    const char *outcome_text;
    int64_t price_micro, paid_ns, charge_micro;
    uint64_t leaf, tree_size;
    char origin[BOURSE_NAME_SIZE];
    bool simulated;
    int status; /* the broker's verdict, as in struct bourse_outcome */
    const char *status_text;
    const char *checked;           /* how a referee checked the result: "none", "cheap" */
    char check[BOURSE_HEX32_SIZE]; /* SHA-256 of the referee's signed Result, or "" */
};
/* Verifies a receipt offline, with nothing but the log's verifier key (bourse_account.verifier).
 * Fails with UNVERIFIED when any byte differs from the signed text. */
bool bourse_verify(const char *text, size_t length, const char *verifier,
                   struct bourse_verified *ret_verified, struct bourse_error *ret_error);

/* ---------------------------------------------------------------- the market */

struct bourse_attribute {
    const char *name;
    const char *text; /* NULL: a number */
    int64_t number;
    /* Source of a figure such as memory or a rate. "declared": by the device's owner, perhaps
     * measured by the agent. "catalogue": of a simulated device. NULL: not a figure. */
    const char *source;
};
/* The standing of an account is its record on the market; zeros mean none. */
struct bourse_standing {
    uint32_t refuted;             /* refuted results, less the faded ones */
    uint32_t refuted_ever;        /* all refuted results */
    uint32_t overruled;           /* results that it rejected as a referee and that stood */
    int64_t withdrawn_ms;         /* time for which its asks are closed; 0: open */
    char owner[BOURSE_NAME_SIZE]; /* as the operator named it; "": the account itself */
};

struct bourse_device {
    char provider[BOURSE_NAME_SIZE];
    char account[BOURSE_HEX32_SIZE]; /* the provider's key, as outcomes name it */
    char state[BOURSE_NAME_SIZE];    /* the provider's: "present", "suspect", "away" */
    char id[BOURSE_ID_SIZE];
    char label[BOURSE_NAME_SIZE];
    char instrument[BOURSE_NAME_SIZE];
    char kind[BOURSE_NAME_SIZE]; /* widest kind: "cpu", "gpu" ...; "" without one */
    bool simulated;
    uint32_t slots, leased;
    uint32_t free;                             /* slots of its ask that are not leased */
    int64_t price_micro;                       /* price of its ask; -1: no ask stands */
    int64_t max_term_ms;                       /* longest lease of its ask; 0: no bound */
    size_t attribute_count;                    /* all but the instrument */
    const struct bourse_attribute *attributes; /* lives as long as the callback */
    struct bourse_standing standing;           /* the provider's */
};
/* Visits every device on the market, by provider. The visitor returns false to stop. The market may
 * change between two pages of the answer. */
typedef bool bourse_device_visitor(void *context, const struct bourse_device *device);
bool bourse_devices(struct bourse *bourse, bourse_device_visitor *visitor, void *context,
                    struct bourse_error *ret_error);
/* Visits the devices that satisfy `needs`, a requirement as in a job file: "kind = gpu and memory
 * >= 40GiB". */
bool bourse_devices_fitting(struct bourse *bourse, const char *needs,
                            bourse_device_visitor *visitor, void *context,
                            struct bourse_error *ret_error);

struct bourse_provider {
    char account[BOURSE_HEX32_SIZE];
    char name[BOURSE_NAME_SIZE];
    char state[BOURSE_NAME_SIZE]; /* "present", "suspect", "away" */
    uint32_t devices;
    uint64_t slots, leased; /* slots of its devices */
    uint64_t free;          /* free slots of its asks */
    struct bourse_standing standing;
};
/* Visits every account that ever offered a device. */
typedef bool bourse_provider_visitor(void *context, const struct bourse_provider *provider);
bool bourse_providers(struct bourse *bourse, bourse_provider_visitor *visitor, void *context,
                      struct bourse_error *ret_error);

struct bourse_ask_level { /* sum of the asks of one instrument, price and conditions */
    char instrument[BOURSE_NAME_SIZE];
    int64_t price_micro;
    uint64_t slots, free; /* `free` ones are not leased */
    uint32_t providers;
    uint32_t to;       /* number of accounts that it is for; 0: everybody */
    bool for_you;      /* this account is among them */
    const char *hours; /* opening hours as text; "": always. Lives as long as the book */
    int64_t daily_ms;  /* slot-time that each ask gives a day; 0: no bound */
    int64_t left_ms;   /* today's slot-time that leases may still get, from all */
};
struct bourse_bid_level { /* sum of the bids with equal needs at one limit */
    const char *needs;    /* text; lives as long as the book */
    int64_t limit_micro;
    const char *rate; /* rate of the limit */
    uint64_t slots;   /* slots wanted now */
    uint32_t bids;
};
struct bourse_book;
/* Returns the resting orders: asks by instrument and price, cheapest first, and bids by needs and
 * limit, dearest first. `needs` leaves out the asks of devices that do not satisfy it; NULL leaves
 * out none. All bids are there. Nobody learns the owners of bids. */
bool bourse_book(struct bourse *bourse, const char *needs, struct bourse_book **ret_book,
                 struct bourse_error *ret_error);
const struct bourse_ask_level *bourse_book_asks(const struct bourse_book *book, size_t *ret_count);
const struct bourse_bid_level *bourse_book_bids(const struct bourse_book *book, size_t *ret_count);
/* The price band bounds the price of an order; 0 is allowed besides. The notional bounds price x
 * slots x time of one order. */
struct bourse_bands {
    int64_t least_micro, most_micro; /* most 0: the broker does not tell */
    int64_t notional_micro;          /* 0: no bound */
};
struct bourse_bands bourse_book_bands(const struct bourse_book *book);
/* Returns the bands without the book. */
bool bourse_bands(struct bourse *bourse, struct bourse_bands *ret_bands,
                  struct bourse_error *ret_error);
void bourse_book_destroy(struct bourse_book **self);

struct bourse_trade { /* a fill, without its accounts */
    uint64_t entry;   /* ledger entry */
    uint64_t index;   /* log index */
    int64_t time_ms;
    char instrument[BOURSE_NAME_SIZE]; /* "" when the device names none */
    uint32_t slots;
    int64_t price_micro;
};
/* Visits the market's last fills, newest first, at most `limit` (0: all). */
typedef bool bourse_trade_visitor(void *context, const struct bourse_trade *trade);
bool bourse_trades(struct bourse *bourse, uint64_t limit, bourse_trade_visitor *visitor,
                   void *context, struct bourse_error *ret_error);

struct bourse_bar {                    /* trades of one instrument in a minute, or longer */
    char instrument[BOURSE_NAME_SIZE]; /* "" when the device names none */
    int64_t start_ms;                  /* log time */
    int64_t open_micro, high_micro, low_micro, close_micro; /* prices */
    uint64_t slots;
    uint32_t trades;
};
typedef bool bourse_bar_visitor(void *context, const struct bourse_bar *bar);
/* Visits the minutes in which the instrument was traded, oldest first. With NULL, visits one bar
 * for each instrument, the last traded first. `since_ms` is log time; 0: as far back as the broker
 * knows, at most 7 days. */
bool bourse_prices(struct bourse *bourse, const char *instrument, int64_t since_ms,
                   bourse_bar_visitor *visitor, void *context, struct bourse_error *ret_error);

/* A row says how long one kind of work took, for one size of inputs, on one class of devices. Times
 * are scaled to the class's fastest device; a device unlike the class has a row of its own. A row
 * with `pace` gives the slowness of one device against its class's fastest, for all work. Only
 * class and device count in such a row. A device without such a row counts as fast as the
 * fastest. */
struct bourse_measured {
    uint32_t index;              /* first subtask of the job with this work */
    char task[BOURSE_NAME_SIZE]; /* name of the task, or "" */
    uint64_t bytes;              /* least input size of the row; others are less than 25 % larger */
    char device_class[BOURSE_NAME_SIZE]; /* instrument; "" when the device names none */
    uint32_t samples, outliers;          /* counted samples, and samples left out */
    int64_t median_ns, p90_ns;           /* p90 -1: too few samples */
    int64_t at_ms;                       /* log time of the newest */
    /* Provider's key of a single device; "", as `device`, for the whole class. */
    char account[BOURSE_HEX32_SIZE];
    char device[BOURSE_ID_SIZE];
    uint32_t pace; /* in thousandths; 0: a row of times */
};
typedef bool bourse_measured_visitor(void *context, const struct bourse_measured *measured);
/* Visits the times that the market measured for the work of a job: a submitted one by `id`, or
 * `job`. */
bool bourse_history(struct bourse *bourse, const char *id, bourse_measured_visitor *visitor,
                    void *context, struct bourse_error *ret_error);
bool bourse_history_of(struct bourse *bourse, const struct bourse_job *job,
                       bourse_measured_visitor *visitor, void *context,
                       struct bourse_error *ret_error);

struct bourse_depth { /* one price of an instrument's asks, or one limit of equal bids */
    bool is_bid;
    const char *of; /* instrument, or needs as text; lives as long as the news */
    int64_t price_micro;
    const char *rate;     /* rate of the bids' limit */
    uint32_t orders;      /* 0: the level is gone */
    uint64_t slots, free; /* asks: offered, and not leased; bids: wanted, and 0 */
    /* Asks for some accounts only, at some hours only, and with a daily slot-time. */
    uint32_t limited, timed, daily;
};
struct bourse_news {
    bool is_lost;   /* the broker does not answer; all else is empty */
    bool is_anew;   /* first news, or some trades were missed: bourse_trades has them */
    uint64_t index; /* log index of the book */
    int64_t log_time_ms;
    /* The book: asks by instrument, cheapest first, then bids by needs, dearest first. */
    const struct bourse_depth *levels;
    size_t level_count;
    const struct bourse_depth *changes; /* levels that changed since the last news */
    size_t change_count;
    const struct bourse_trade *trades; /* trades since the last news, oldest first */
    size_t trade_count;
    struct bourse_bands bands; /* in force now; a highest price of 0: unknown */
    bool has_new_bands;        /* the bands changed since the last news */
};
typedef bool bourse_news_visitor(void *context, const struct bourse_news *news);
/* Follows the market as long as the visitor returns true. News after a lost connection includes
 * missed changes. */
bool bourse_follow(struct bourse *bourse, bourse_news_visitor *visitor, void *context,
                   struct bourse_error *ret_error);

struct bourse_order {
    char id[BOURSE_ID_SIZE];
    char job[BOURSE_ID_SIZE]; /* job of a bid; "" for an ask */
    uint32_t part;            /* part of the job, from 0 on */
    bool is_bid;
    char name[BOURSE_NAME_SIZE];       /* name of the job, or label of the device */
    char device[BOURSE_ID_SIZE];       /* "" for a bid */
    int64_t price_micro;               /* an ask's least price, or a bid's limit */
    const char *rate;                  /* rate of the limit */
    uint32_t slots;                    /* offered, or wanted now */
    uint32_t free;                     /* slots of an ask that are not leased */
    uint32_t place;                    /* 1: first among orders of the instrument or needs */
    int64_t good_till_ms, max_term_ms; /* of an ask; 0: none */
    const char *to;    /* accounts of an ask: "alice, bob", for the call; "": everybody */
    const char *hours; /* of an ask: "mon-fri 22:00-07:00 (UTC+01:00)", for the call; "" */
    /* Higher bids may take the leases of an interruptible ask. A holder is told `notice_ms` before
     * the end, and no bid takes a lease younger than `minimum_run_ms`. */
    bool interruptible;
    int64_t notice_ms, minimum_run_ms;
    int64_t daily_ms, left_ms; /* of an ask: slot-time a day, 0: no bound; today's rest */
    const char *type;          /* "limit", "post-only" or "all-or-none", which can rest */
};
/* Visits this account's own asks and the bids of its jobs, oldest first. */
typedef bool bourse_order_visitor(void *context, const struct bourse_order *order);
bool bourse_orders(struct bourse *bourse, bourse_order_visitor *visitor, void *context,
                   struct bourse_error *ret_error);
/* Jobs without a `term` ask for leases of this length or longer. */
#define BOURSE_ASK_TERM_MS_LEAST INT64_C(60000)
#define BOURSE_ASK_NOTICE_MS_MOST INT64_C(86400000)  /* a day */
#define BOURSE_ASK_RUN_MS_MOST INT64_C(604800000)    /* a week */
#define BOURSE_ASK_TIME_MS_MOST INT64_C(31622400000) /* 366 days */
enum bourse_ask_type {
    BOURSE_ASK_LIMIT,         /* an unsold part rests */
    BOURSE_ASK_IOC = 1,       /* an unsold part is cancelled */
    BOURSE_ASK_POST_ONLY = 3, /* rests; refused (WOULD_TRADE) if it would sell at once */
};
struct bourse_ask {
    const char *device; /* id, 32 digits, of a device that the agent offers now */
    uint32_t slots;
    int64_t price_micro; /* least price per slot-hour; 0: a donation */
    /* Life from now, at most TIME_MS_MOST; 0: until a cancel or a new offer of the agent. */
    int64_t good_for_ms;
    int64_t max_term_ms; /* longest lease, TERM_MS_LEAST to TIME_MS_MOST; 0: no bound */
    enum bourse_ask_type type;
    /* Names or 64-digit keys of the accounts that may buy; none: everybody. */
    const char *const *to;
    size_t to_count;
    const char *const *hours; /* "22:00-07:00", "mon-fri 18:00-24:00"; none: always */
    size_t hours_count;
    /* Slot-time a day of all leases together, at least TERM_MS_LEAST; 0: no bound. A daily ask
     * without max_term_ms gives leases of an hour at most. */
    int64_t daily_ms;
    const char *utc_offset; /* offset of hours and days: "+01:00"; NULL: "+00:00" */
    /* Higher bids may take its leases after `minimum_run_ms` (0 to a week), with `notice_ms` (0 to
     * a day). */
    bool interruptible;
    int64_t notice_ms, minimum_run_ms;
};
/* Places an ask and replaces the standing ask of the device. Leased slots stay leased. */
bool bourse_place_ask(struct bourse *bourse, const struct bourse_ask *ask,
                      char ret_id[BOURSE_ID_SIZE], struct bourse_error *ret_error);
/* A replacement changes a standing order; NULL or a negative number keeps a field. Fewer slots at
 * the same price keep the order's place; any other change moves it behind all others. Leases stay
 * at their price; above a lowered cap a lease ends with its term. */
struct bourse_replacement {
    const char *order;    /* id of an ask, or of a job */
    int64_t part;         /* part of the job; negative: all parts */
    int64_t price_micro;  /* an ask's least price, or a job's cap */
    const char *value;    /* in place of a cap: "0.02 per bf16 TFLOP-hour" */
    int64_t slots;        /* offered; or wanted at a time, 0: no bound */
    int64_t budget_micro; /* the job's; only larger */
};
bool bourse_replace(struct bourse *bourse, const struct bourse_replacement *replacement,
                    struct bourse_error *ret_error);
/* Cancels an ask of this account; its leases continue. A bid ends with its job: bourse_cancel. */
bool bourse_cancel_ask(struct bourse *bourse, const char *id, struct bourse_error *ret_error);

/* ---------------------------------------------------------------- products of matrices */

/* A product C = A B is one job: C is cut into tiles. Each tile is a subtask with a block of A's
 * rows and a block of B's columns. The matrices are .npy files of float32 in row order; no matrix
 * is ever whole in memory. */
struct bourse_product;

struct bourse_product_options {
    const char *a, *b;  /* files */
    const char *output; /* file of C; it gets this name when complete and checked */
    /* Blocks of A's rows and B's columns; 0: chosen from the devices on offer. */
    uint32_t tile_rows, tile_columns;
    uint32_t at_most;                /* slots at a time; 0: as many as help */
    int64_t budget_micro, cap_micro; /* -1: not given */
    bool checks;                     /* a referee checks each tile before it is paid */
};
/* Reads both headers, asks the market for its devices, chooses the tiles, makes room for C on the
 * disk, and hashes every block. The call sends nothing. */
bool bourse_product_plan(struct bourse *bourse, const struct bourse_product_options *options,
                         struct bourse_product **ret_product, struct bourse_error *ret_error);
/* Continues a submitted product. `id` is any job in the chain of jobs that made it. `ret_newest` is
 * the newest job of the chain, for the caller to collect. A newest job that ended without all tiles
 * leaves the rest as a job to submit and collect. `options` must name `output`. Nothing can be
 * checked without `a` and `b`. `budget_micro` and `cap_micro` are for the new job; `checks` keeps
 * unchecked tiles out of C. Other options are ignored. */
bool bourse_product_resume(struct bourse *bourse, const char *id,
                           const struct bourse_product_options *options,
                           struct bourse_product **ret_product, char ret_newest[BOURSE_ID_SIZE],
                           struct bourse_error *ret_error);
void bourse_product_destroy(struct bourse_product **self);
/* Returns the job to quote and submit, or NULL when there is none. The product owns the job. */
struct bourse_job *bourse_product_job(struct bourse_product *product);
struct bourse_product_summary {
    uint64_t rows, inner, columns;    /* inner: 0 when unknown */
    uint32_t tile_rows, tile_columns; /* blocks along each side of C */
    uint64_t tiles, collected;        /* all tiles, and those written into C */
    uint64_t checks;                  /* one for each tile; 0: tiles are paid unchecked */
    uint64_t collected_bytes;
    uint64_t unjudged; /* collected tiles that no referee has checked */
    /* A plan fills these. */
    uint32_t devices, devices_used; /* devices that can multiply, and those of the plan */
    uint32_t slots;                 /* slots in use at a time */
    int64_t least_mflops;           /* least speed of a slot; 0: no bound */
    bool is_split;                  /* over several devices */
    /* Time by the devices' measured speeds: of the plan, and on the best single device. */
    int64_t predicted_ms, single_ms;
};
void bourse_product_summary(const struct bourse_product *product,
                            struct bourse_product_summary *ret_summary);

/* Writes accepted tiles of the job, and of the jobs that it continues, into C. Each new tile is
 * checked for its shape and against the hash in its provider's signed result. */
bool bourse_product_collect(struct bourse *bourse, struct bourse_product *product, const char *id,
                            struct bourse_error *ret_error);

struct bourse_replan {
    bool is_made;   /* the times of tiles led to a new plan */
    uint32_t slots; /* slots that the job may have at a time now; 0: no bound */
};
/* Plans the remaining tiles of a running product anew when tiles take over a fifth more or less
 * than planned. The new plan uses the present offers and the measured speed, and gives the job more
 * slots where they help. `row` is a row as the watcher of bourse_wait gets it. The product was
 * planned by this process. */
bool bourse_product_replan(struct bourse *bourse, struct bourse_product *product,
                           const struct bourse_job_row *row, struct bourse_replan *ret_replan,
                           struct bourse_error *ret_error);

/* Returns the number of tiles in C that came by the lease. */
uint32_t bourse_product_tiles_by(const struct bourse_product *product, uint64_t lease);

enum { BOURSE_WRONG_TILES_MAX = 8 };
struct bourse_wrong_tile {
    uint32_t index, row, column; /* index of the subtask; row and column of the tile */
    char provider[BOURSE_HEX32_SIZE];
    uint64_t at_row, at_column; /* the tile's first wrong entry, in C */
    double found, expected;
};
struct bourse_product_check {
    bool is_right;
    uint32_t rounds;
    uint64_t wrong_rows;
    uint64_t doubtful_rows; /* error above the usual, within what rounding can do */
    /* Rows and columns with NaN or infinity, of which only a sample was checked. */
    uint64_t unchecked_rows, unchecked_columns;
    double max_rel_error; /* over sampled rows: error / root mean square of the row */
    uint64_t wrong_tiles;
    struct bourse_wrong_tile tiles[BOURSE_WRONG_TILES_MAX]; /* the first wrong tiles */
    /* Wrong tiles that come from factors rounded to fewer bits; at most 8 tiles are examined. */
    uint64_t reduced_tiles;
};
/* Checks C by Freivalds' method in double (docs/consumer.md), once all tiles are collected. Fails
 * with UNVERIFIED when C is wrong; *ret_check is filled then too. */
bool bourse_product_check(struct bourse *bourse, struct bourse_product *product,
                          struct bourse_product_check *ret_check, struct bourse_error *ret_error);
/* Makes C durable and gives it its name; a file of that name is replaced. Call it once, after all
 * tiles are collected. Fails with UNVERIFIED when checks were asked for, a tile lacks one, and C
 * was not found right. */
bool bourse_product_keep(struct bourse_product *product, struct bourse_error *ret_error);

/* ---------------------------------------------------------------- for providers */

struct bourse_why_refusal {           /* a waiting requirement that the device does not satisfy */
    char predicate[BOURSE_TEXT_SIZE]; /* the predicate to change first */
    uint32_t changes;                 /* least number of predicates to change */
    uint32_t bids;                    /* bids with this requirement */
    int64_t limit_micro;              /* the highest limit of these bids */
    bool has_have;                    /* the device has a number for the predicate */
    int64_t have;
};
struct bourse_why {
    char text[BOURSE_TEXT_SIZE];  /* the obstacle, and the next step */
    char state[BOURSE_NAME_SIZE]; /* this provider's: "present", "suspect", "away" */
    bool frozen, halted;
    uint32_t devices;            /* advertised by this account; 0: all below is empty */
    char device[BOURSE_ID_SIZE]; /* the device of the question */
    char label[BOURSE_NAME_SIZE];
    uint32_t slots, leased;
    uint32_t free;       /* slots of its ask that are not leased */
    int64_t price_micro; /* price of its ask; -1: no ask stands */
    /* Waiting bids of others; each number counts a part of the one before. */
    uint32_t bids, fitting, lasting, paying;
    int64_t best_limit_micro; /* best limit of lasting bids; -1: none */
    int64_t fills_at_micro;   /* asked price at which it fills now; -1: none */
    /* Half of the slots of its instrument let lately cost at most this; -1: none was let. */
    int64_t paid_micro;
    uint32_t paid_trades;         /* number of those trades */
    int64_t paid_since_ms;        /* log time of the oldest of them */
    int64_t ahead;                /* asks that a suitable bid would take first; -1: unknown */
    int64_t daily_ms;             /* slot-time a day of its ask; 0: no bound. Today's: */
    int64_t used_ms, promised_ms; /* settled time, and time that its leases may still use */
    bool partial;                 /* too many bids waited to examine all */
    uint32_t refusal_count;
    struct bourse_why_refusal refusals[BOURSE_PREDICATES_MAX]; /* nearest first */
    struct bourse_standing standing;                           /* this account's */
    uint64_t index;
};
/* Explains why no work comes to this account's device number `device`, counted from 0. Fails with
 * NOT_FOUND when the account has fewer devices. */
bool bourse_why(struct bourse *bourse, uint32_t device, struct bourse_why *ret_why,
                struct bourse_error *ret_error);

/* ---------------------------------------------------------------- joining, and the operator */

/* Redeems an invitation with the key at `key_path`, which is made when absent, and writes
 * `market_path`. All local files are written before the broker is asked. After any failure the same
 * invitation and key may ask again. An existing account is a success (`was_known`). */
bool bourse_join(const char *invitation, const char *key_path, const char *market_path,
                 const char *name, int timeout_ms, struct bourse_account *ret_account,
                 struct bourse_error *ret_error);

bool bourse_mint(struct bourse *bourse, const char *account, int64_t amount_micro, const char *note,
                 struct bourse_error *ret_error);
/* Makes an invitation that mints `credits_micro` for the account that redeems it within
 * `valid_ms`. */
bool bourse_invite(struct bourse *bourse, unsigned roles, int64_t credits_micro, int64_t valid_ms,
                   const char *name, char *ret_text, size_t capacity,
                   struct bourse_error *ret_error);
bool bourse_freeze(struct bourse *bourse, const char *account, bool frozen, const char *reason,
                   struct bourse_error *ret_error);
bool bourse_halt(struct bourse *bourse, bool halted, const char *reason,
                 struct bourse_error *ret_error);
/* Sets new bands from now on; -1 keeps one. At least one must change. */
bool bourse_set_bands(struct bourse *bourse, const struct bourse_bands *bands, const char *reason,
                      struct bourse_error *ret_error);

/* Names the owner of accounts, given by key; with `owner` NULL or "" each owns itself. */
bool bourse_set_owner(struct bourse *bourse, const char *const *accounts, size_t count,
                      const char *owner, const char *reason, struct bourse_error *ret_error);

struct bourse_account_row {
    uint32_t number;
    char account[BOURSE_HEX32_SIZE];
    char name[BOURSE_NAME_SIZE];
    unsigned roles;
    int64_t available_micro, held_micro;
    bool frozen;
    char owner[BOURSE_NAME_SIZE]; /* as the operator named it; "": the account itself */
};
typedef bool bourse_account_visitor(void *context, const struct bourse_account_row *row);
bool bourse_accounts(struct bourse *bourse, bourse_account_visitor *visitor, void *context,
                     bool *ret_halted, struct bourse_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
