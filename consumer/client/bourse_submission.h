/* consumer/client/bourse_submission.h makes jobs ready, asks what they would cost, and submits
 * them. Include consumer/client/bourse.h, which states the rules that all of its parts share. */
#ifndef BOURSE_CONSUMER_CLIENT_BOURSE_SUBMISSION_H
#define BOURSE_CONSUMER_CLIENT_BOURSE_SUBMISSION_H

#include "consumer/client/bourse_connection.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A limit is per slot-hour or by value. A limit by value is in micro-credits per hour of 10^15
 * operations per second. The rate's name stands beside the limit, e.g. "bf16"; "" means per
 * slot-hour. Names of rates live as long as the program. */

struct bourse_job;

/* Reads a job file, expands its patterns relative to the file's folder, and hashes every input. */
bool bourse_job_load(const char *path, struct bourse_job **ret_job, struct bourse_error *ret_error);
/* Reads a job from text; names are relative to `folder`. */
bool bourse_job_parse(const char *text, size_t length, const char *folder,
                      struct bourse_job **ret_job, struct bourse_error *ret_error);
/* Makes a new job of the failed and cancelled subtasks of a job that has ended. The outputs of
 * accepted subtasks become inputs of the new job. `cap_micro` is a cap as in a job file,
 * or -1; `value` is a value as in a job file, or NULL. A job that had a cap or a value needs one
 * again. `good_for_ms` bounds the new job's life; 0 keeps the first job's end, if it named one. A
 * deadline of the first job that lies ahead is the new job's, too; one that has passed is not.
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
    const char *program; /* the program, which is the first argument */
    uint64_t subtasks;
    uint64_t checks; /* subtasks that check, one for each result; 0: none */
    uint64_t inputs; /* files, each counted once */
    uint64_t input_bytes;
    uint64_t skipped;     /* matches of patterns that are not regular files */
    uint32_t slots;       /* width of one subtask */
    uint32_t at_most;     /* 0: as many as are ready */
    int64_t budget_micro; /* -1: not given */
    int64_t cap_micro;    /* -1: the limit follows from the budget */
    int64_t value_micro;  /* -1: not by value */
    const char *value_rate;
    int64_t limit_ms;
    int64_t term_ms;
    int64_t expect_ns;    /* time of one subtask that the quote assumes */
    bool expect_is_guess; /* the job gave no time, and nobody measured one */
    /* Subtasks whose kind of work the market has measured, and the samples that it has. A quote
     * fills both. A median of n samples weighs n / (n + 4) against the job's own figure. */
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
    /* A level of a quote by value has devices that do the work at one rate. Levels whose price is
     * above the worth are listed too. */
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
    int64_t from, to; /* micro-credits, nanoseconds or slots; from is -1 where the job named none */
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
    int64_t changed_price_micro; /* price at which the changed order fills */
    /* The changed order gets so many free slots now, of those that it wants; 0: unknown. */
    uint32_t changed_slots, changed_wanted;
    char changed_needs[2048];     /* all needs after the change; "": unchanged, or too long */
    int64_t ahead;                /* waiting bids before this one; -1: no queue */
    bool ahead_partial;           /* `ahead` is a lower bound */
    char state[BOURSE_NAME_SIZE]; /* of a job; "" for a quote, and zeros below */
    uint32_t parts;               /* parts of the job, each with its needs and terms */
    uint32_t part;                /* the explained part */
    /* Subtasks of that part: the first, all, those that wait for a lease, and the running ones. */
    uint32_t first, subtasks, waiting, running;
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
/* Devices by the broker's last challenge of the speed that they claim (`gemm_fp32`). Devices that
 * claim no such speed are in none of the figures. */
struct bourse_challenged {
    uint32_t ok;      /* as fast as claimed, or slow for once */
    uint32_t lowered; /* a higher claim than was shown gets no ask */
    uint32_t failed;  /* the last answer was wrong or missing */
    uint32_t claimed; /* never challenged */
};

enum { BOURSE_ISOLATION_LEVELS = 4 }; /* 0 to 3 */
/* Devices by the level of their jails (attribute `isolation`). */
struct bourse_isolation {
    uint32_t devices[BOURSE_ISOLATION_LEVELS];
    uint32_t unstated; /* devices that state no level that there is */
};

struct bourse_quote {
    /* 0: the figures below are about slots_taken, or about leased slots as if they were free. */
    uint32_t slots_now;
    /* Further slots, in leases that the job would take from their holders at these prices. */
    uint32_t slots_taken;
    int64_t taken_low_micro, taken_high_micro;
    int64_t price_low_micro, price_high_micro;
    int64_t expected_micro;  /* expected cost */
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
    int64_t rests_at_micro; /* most that a waiting order pays; -1: no budget is known */
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
    /* `objective: price` chose so many slots at a time out of those that were to be had; 0: nothing
     * was chosen. */
    uint32_t chosen_slots, chosen_of;
    /* `objective: energy` chose so many slots of devices out of those that were to be had; 0:
     * nothing was chosen. The power of `energy_unknown` slots is unknown. */
    uint32_t energy_slots, energy_of, energy_unknown;
    int64_t energy_uj; /* of the plan on the chosen slots; -1: unknown. Set with energy_slots. */
    /* Time from now until the job's deadline; 0: the job has none. */
    int64_t deadline_ns;
    /* The plan, on what is on offer now, ends so long after the deadline; 0: in time, or nothing
     * is on offer. */
    int64_t late_ns;
    /* The planned time is a guess, because the job gave no time (`expect`) and nobody measured
     * one. */
    bool deadline_is_guess;
    /* A change that was tried and keeps the deadline, as "without at_most it takes 12m"; "": none
     * was found, or none is needed. */
    char deadline_help[BOURSE_TEXT_SIZE];
    /* The devices that fit and are on offer. */
    struct bourse_challenged challenged;
    struct bourse_isolation isolation; /* the same devices */
};
/* Asks the market what the job would cost and take. With `verify: cheap`, the job remembers to keep
 * a sole referee for the checks. */
bool bourse_quote(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *ret_quote,
                  struct bourse_error *ret_error);

/* Stores the inputs that the broker lacks, then submits the job. `limit_micro` is the job's cap
 * per slot-hour, as a quote gives it; -1 means that only the budget binds. A call after a failure
 * with the same job never submits twice. `progress` may be NULL. */
typedef void bourse_progress(void *context, uint64_t done_bytes, uint64_t total_bytes);
bool bourse_submit(struct bourse *bourse, struct bourse_job *job, int64_t budget_micro,
                   int64_t limit_micro, bourse_progress *progress, void *context,
                   char ret_id[BOURSE_ID_SIZE], struct bourse_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
