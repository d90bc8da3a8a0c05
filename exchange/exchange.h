/* The exchange is one deterministic state machine that takes a command and returns its effects.
 *
 * exchange_step never sends, stores, reads a clock or draws a number. Log time, the verified sender
 * and every id are arguments. Everything that must happen outside comes back as an effect; the
 * caller releases the effects once the command is durable (docs/decisions.md D2). The same commands
 * give the same effects, state hash and snapshot on every machine (P8). Money lives in
 * ledger/accounts.h, matching in matching/book.h. The exchange holds rights of accounts, ids,
 * providers, jobs, subtasks, leases and attempts.
 *
 * Each lifecycle is one enum and one table of moves (exchange/lifecycle.h):
 *   job      OPEN -> DONE | FAILED | CANCELLED
 *   subtask  WAITING -> RUNNING -> ACCEPTED | FAILED | WAITING (again), any -> CANCELLED;
 *            a job with checks adds RUNNING -> CHECKING -> ACCEPTED | FAILED | WAITING (again)
 *   lease    PROMISED -> ACTIVE -> SUSPECT -> ACTIVE, ACTIVE | SUSPECT -> ENDING -> ENDED,
 *            PROMISED -> ENDED
 *   provider AWAY -> PRESENT -> SUSPECT -> PRESENT | AWAY */
#ifndef BOURSE_EXCHANGE_EXCHANGE_H
#define BOURSE_EXCHANGE_EXCHANGE_H

#include "base/checked.h"
#include "base/hours.h"
#include "base/id.h"
#include "base/rate.h"
#include "base/requirement.h"
#include "exchange/command_types.h"
#include "exchange/effect_types.h"
#include "exchange/view/smallest_change.h"
#include "ledger/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange;

/* Returns the default caps; the table key is zero. */
struct exchange_limits exchange_limits_default(void);

/* Numbers of the rules by which commands become effects. A market follows the rules that are in its
 * state (exchange_rules), and an EXCHANGE_LIMITS changes them. This code knows the newest rules and
 * those before, and no others. Raise both numbers with every change after which the same commands
 * lead to another state. Branches for rules that are no longer known then go. */
enum { EXCHANGE_RULES_FIRST = 22, EXCHANGE_RULES = 23 };

/* Returns an empty exchange that waits for its genesis command, or NULL when memory is short. The
 * caller owns it. The caps are `limits` until a command EXCHANGE_LIMITS sets others. The table key,
 * `cells` and `classes` stay for the life of the object. */
struct exchange *exchange_create(const struct exchange_limits *limits);
void exchange_destroy(struct exchange **self);

/* ---------------------------------------------------------------- steps */

void exchange_effects_clear(struct exchange_effects *effects);
void exchange_effects_fini(struct exchange_effects *effects);

enum exchange_status {
    EXCHANGE_OK, /* applied; also a refusal, which gives EFFECT_REJECT and is kept by its id */
    EXCHANGE_OUT_OF_ORDER,  /* index or log time does not follow; nothing was done */
    EXCHANGE_OUT_OF_MEMORY, /* no effect may be released; the caller stops */
};

/* Returns the seed of a check's random vectors. Nobody knows the seed before the checked result has
 * come; everybody can compute it afterwards. `index` and `attempt` are the check's own. */
struct hash32 exchange_check_seed(const struct hash32 *dice, const struct hash32 *result,
                                  uint32_t index, uint32_t attempt);

/* Applies one command and appends its effects. Names, texts and pointers of the command are
 * borrowed until the effects are dropped. */
enum exchange_status exchange_step(struct exchange *exchange,
                                   const struct exchange_command *command,
                                   struct exchange_effects *effects);
/* The three calls fetch memory into the processor's cache for a coming command. Call
 * exchange_expect three commands ahead, for the places of table entries. Call exchange_expect_found
 * two ahead, for the entries themselves. Call exchange_expect_orders one ahead, for the book's
 * orders. All calls are optional and change nothing. */
void exchange_expect(const struct exchange *exchange, uint32_t account,
                     const struct exchange_command *command);
void exchange_expect_found(const struct exchange *exchange, uint32_t account,
                           const struct exchange_command *command);
void exchange_expect_orders(const struct exchange *exchange, uint32_t account,
                            const struct exchange_command *command);

/* Returns the log time at which a TICK has something to do, or INT64_MAX. */
int64_t exchange_next_deadline_ns(const struct exchange *exchange);
/* Counts of work since this object was made, for metrics and tests; no hash holds them. */
struct exchange_totals {
    uint64_t dispatches; /* subtasks given to a lane */
    uint64_t edges;      /* looks at an edge of a graph */
    uint64_t retries;    /* looks at an entry of a retry queue */
};
struct exchange_totals exchange_totals(const struct exchange *exchange);

/* ---------------------------------------------------------------- reads: pure, no trace */

/* Returns the steps of all reads so far; the cost of one read is the difference. One step is one
 * look at a thing, or at one predicate on one device. 131,072 steps take about a millisecond. The
 * same read of the same state takes the same steps everywhere. No hash or snapshot holds the
 * count. */
uint64_t exchange_steps(const struct exchange *exchange);
uint64_t exchange_index(const struct exchange *exchange);
int64_t exchange_log_time_ns(const struct exchange *exchange);
struct id128 exchange_cluster(const struct exchange *exchange);
bool exchange_halted(const struct exchange *exchange);
/* Returns the operator's reason, borrowed until the next step, or NULL. */
const char *exchange_halted_why(const struct exchange *exchange);
/* Returns the bands in force; every field is set. */
struct exchange_bands exchange_bands_now(const struct exchange *exchange);
/* Returns the number of epochs begun, and the hash of the last one's secret. */
uint64_t exchange_epochs(const struct exchange *exchange, struct hash32 *ret_commitment);
uint32_t exchange_job_count(const struct exchange *exchange); /* includes ended jobs */
/* Returns the rules of the last EXCHANGE_LIMITS, or 0 before the first. */
uint32_t exchange_rules(const struct exchange *exchange);
/* Returns true when an EXCHANGE_LIMITS with the rules `next` would be followed now. */
bool exchange_may_take_rules(const struct exchange *exchange, uint32_t next);
/* Returns the caps in force. */
struct exchange_limits exchange_limits_now(const struct exchange *exchange);
/* Returns true when a lease stands that an EXCHANGE_OUTAGE would meet. */
bool exchange_has_leases(const struct exchange *exchange);
/* Returns true when the market has these rules and caps already. */
bool exchange_holds_limits(const struct exchange *exchange, const struct exchange_set_limits *set);
/* Sets the caps for replay of commands older than the first EXCHANGE_LIMITS; does nothing after it.
 * The caps set here are no part of the state. */
void exchange_presume_limits(struct exchange *exchange, const struct exchange_limits *limits);

struct exchange_account_row {
    uint32_t number;
    struct key32 key;
    uint32_t roles;
    bool frozen;
    const char *frozen_why; /* borrowed until the next step; NULL: no reason */
    int64_t available_micro, held_micro;
    char name[EXCHANGE_NAME_SIZE];
};
uint32_t exchange_account_count(const struct exchange *exchange);
bool exchange_account(const struct exchange *exchange, uint32_t number,
                      struct exchange_account_row *ret_row);

/* Record of an account's conduct (exchange/account/standing.c); zeros where there is none. */
struct exchange_standing {
    char owner[EXCHANGE_NAME_SIZE]; /* "": the account is its own owner */
    uint32_t refuted;               /* refuted results of the account, less the faded ones */
    uint32_t refuted_ever;
    uint32_t overruled;   /* results that the account refuted and other referees accepted */
    int64_t withdrawn_ns; /* asks of the account stay closed for this long; 0: open */
};
struct exchange_standing exchange_standing(const struct exchange *exchange, uint32_t account);

struct exchange_donated {
    int64_t used_ns; /* faded slot-time that its jobs had at price 0 */
    /* Leases at 0 may still use this slot-time; the rank is the sum of both. */
    int64_t promised_ns;
    uint32_t waiting; /* accounts with a bid that waits for a lease */
    bool is_waiting;  /* the account is one of them */
    uint32_t before;  /* waiting accounts with a lower rank, or the same rank and an older bid */
    int64_t given_ns; /* slot-time that its own devices gave at price 0, ever */
};
/* Fills in the account's donated use, its place in the donation queue and its gifts. Returns false
 * when there is no such account. */
bool exchange_donated(const struct exchange *exchange, uint32_t account,
                      struct exchange_donated *ret_donated);

struct exchange_job_row {
    struct id128 job;
    uint32_t owner;
    char name[EXCHANGE_NAME_SIZE];
    uint32_t state, reason; /* enum job_state, enum job_reason of the protocol */
    uint32_t subtasks, waiting, running, checking, accepted, failed, cancelled;
    uint32_t queued; /* running subtasks that are behind another one in their lane */
    int64_t budget_micro, charged_micro, reserved_micro;
    int64_t submitted_ns, ended_ns; /* ended 0: open */
    int64_t deadline_ns;            /* 0: none */
    struct hash32 manifest;
    uint32_t lease_count;
    uint32_t accused; /* held results that a referee rejects and no other has judged */
    uint32_t saved;   /* subtasks with a checkpoint kept */
    /* Number, expected time and measured time of the results whose leases are still known; checks
     * are left out. */
    uint64_t timed;
    int64_t foreseen_ns, took_ns;
};
bool exchange_job(const struct exchange *exchange, const struct id128 *job,
                  struct exchange_job_row *ret_row);
/* Returns the account whose job it is, or EXCHANGE_NO_ACCOUNT. Unlike exchange_job the call costs
 * nothing worth counting. */
uint32_t exchange_job_owner(const struct exchange *exchange, const struct id128 *job);
/* Returns the time from `now_ns` of log time until the job is done, at the measured pace on its
 * present lanes. `now_ns` may be later than the last command. Returns -1 without lanes, and when
 * the job has ended or is closing. */
int64_t exchange_job_left_ns(const struct exchange *exchange, const struct id128 *job,
                             int64_t now_ns);
/* Returns true when there is such a job and it has not ended. */
bool exchange_job_is_open(const struct exchange *exchange, const struct id128 *job);
/* Returns true when `account` runs this attempt of the subtask on its lease, and the lease's job.
 */
bool exchange_runs(const struct exchange *exchange, uint32_t account, uint64_t lease,
                   uint32_t index, uint32_t attempt, struct id128 *ret_job);
/* The two functions visit leases that have not ended: those that an account holds, and those of a
 * job. `provider` is the account that runs the lease. */
typedef void exchange_lease_visitor(void *context, uint32_t provider, uint64_t lease,
                                    const struct id128 *job);
void exchange_visit_held(const struct exchange *exchange, uint32_t account,
                         exchange_lease_visitor *visitor, void *context);
void exchange_visit_holders(const struct exchange *exchange, const struct id128 *job,
                            exchange_lease_visitor *visitor, void *context);
/* Fills in the newest `limit` jobs of an account, newest first, and returns how many. */
size_t exchange_jobs(const struct exchange *exchange, uint32_t owner,
                     struct exchange_job_row *ret_rows, size_t limit);
/* Does the same from the place `from` on, 0 for the newest job. Sets the place of the next page, or
 * 0 when there is none. */
size_t exchange_jobs_from(const struct exchange *exchange, uint32_t owner, uint64_t from,
                          struct exchange_job_row *ret_rows, size_t limit, uint64_t *ret_next);

/* Fills in the state of each subtask of an open job (enum subtask_state or SUBTASK_QUEUED, as on
 * the wire) and its number of starts. Returns the number of subtasks. Returns 0 when there is no
 * such job, it has ended, or it has more than `limit` subtasks. */
size_t exchange_subtasks(const struct exchange *exchange, const struct id128 *job,
                         uint8_t *ret_states, uint32_t *ret_tries, size_t limit);

struct exchange_part_row {
    uint32_t first, subtasks; /* index of the first subtask, and their number */
    uint32_t waiting;         /* subtasks that wait for a lane, not for other subtasks */
    uint32_t running, checking, lanes;
    uint32_t queued; /* running subtasks behind another in their lane */
};
/* Fills in at most `limit` parts of a job, in order, and returns how many the job has. */
size_t exchange_parts(const struct exchange *exchange, const struct id128 *job,
                      struct exchange_part_row *ret_rows, size_t limit);

struct exchange_lease_row {
    uint64_t lease;
    struct id128 job;
    uint32_t provider;
    char device[EXCHANGE_NAME_SIZE]; /* label */
    uint32_t slots, accepted, state;
    int64_t price_micro, paid_ns, charged_micro;
    bool is_simulated; /* the device was simulated at the grant */
    bool is_interruptible;
    bool is_taken; /* another bid has taken it: it ends, or has ended, with the notice */
    bool has_ended;
    int64_t silent_ns;      /* SUSPECT: its provider is silent for so long; 0: unknown; else -1 */
    bool is_frozen;         /* it ended when the operator froze its provider, which still is so */
    const char *frozen_why; /* borrowed until the next step; NULL: no reason */
};
size_t exchange_leases(const struct exchange *exchange, const struct id128 *job,
                       struct exchange_lease_row *ret_rows, size_t limit);
/* Returns true when `provider` has a lease of `job` that stands or ended within the last minute.
 * The provider may then read the job's blobs and store outputs for its owner. */
bool exchange_provider_serves(const struct exchange *exchange, uint32_t provider,
                              const struct id128 *job);

/* Visits every lease that has not ended. Returns false when `visit` stopped it. */
struct exchange_standing_lease {
    uint64_t lease;
    uint32_t provider;
    struct id128 job;
    uint32_t owner; /* the job's */
    struct hash32 manifest;
};
typedef bool exchange_on_lease(void *context, const struct exchange_standing_lease *lease);
bool exchange_each_lease(const struct exchange *exchange, exchange_on_lease *visit, void *context);

/* Visits the outputs handed to work in flight on standing leases, to decide who may read them.
 * `index` is the subtask that was given them. Returns false when `visit` stopped it. */
typedef bool exchange_on_given(void *context, uint64_t lease, uint32_t index,
                               const struct exchange_given *given);
bool exchange_each_given(const struct exchange *exchange, exchange_on_given *visit, void *context);
/* Visits the checkpoints that work in flight goes on from, in the same way. */
bool exchange_each_saved(const struct exchange *exchange, exchange_on_given *visit, void *context);
/* Visits every encoded result of an open job that is held for its check. */
typedef bool exchange_on_held(void *context, uint32_t provider, const struct id128 *job,
                              const uint8_t *result, uint32_t length);
bool exchange_each_held(const struct exchange *exchange, exchange_on_held *visit, void *context);

struct exchange_need {
    const struct requirement *needs;
    uint32_t account, subtasks, slots, at_most;
    int64_t cap_micro, limit_ns, term_ns, expect_ns;
    enum rate rate; /* the cap is the value of one unit of work; NONE: per slot-hour */
    /* The cheapest account may not take the job, so no price counts below the next account's. */
    bool apart;
    int64_t budget_micro; /* 0: unknown, or none (holds_nothing) */
    bool holds_nothing;   /* the budget is 0: only donated slots count */
    uint8_t type;         /* enum exchange_order_type */
    bool is_firm_only;    /* the job takes no interruptible leases */
};
enum { EXCHANGE_QUOTE_LEVELS = 16 };
struct exchange_quote {
    uint32_t slots_now;
    /* Slots, and their prices, of leases that the bid would take beyond the free slots. */
    uint32_t slots_taken;
    int64_t taken_low_micro, taken_high_micro;
    /* Price range of free slots; else of leases that the bid would take; else of all leased slots
     * as if idle; else the cap. The levels show free slots, or else leased ones. */
    int64_t price_low_micro, price_high_micro;
    int64_t expected_micro, minimum_micro, suggested_micro; /* suggested 0: there is no price */
    int64_t makespan_ns;
    /* A quote that includes donated slots also gives the highest price among the cheapest priced
     * slots it needs, free or leased. 0 slots: there are none. */
    int64_t elsewhere_micro;
    uint32_t elsewhere_slots;
    uint32_t level_count;
    struct {
        int64_t price_micro;
        uint32_t slots, providers;
        /* A level of a bid by value holds like devices, and may be above the bid's limit. */
        int64_t limit_micro;
        uint32_t cell;
        char instrument[ATTRIBUTE_TEXT_SIZE];
    } levels[EXCHANGE_QUOTE_LEVELS];
    /* The rest ignores the cap, and counts leased slots too. */
    bool is_asked;        /* some ask with a price fits */
    struct key32 first;   /* account of the lowest ask */
    int64_t second_micro; /* lowest price of another account; -1: none */
};
/* Returns false when memory is short. */
bool exchange_quote(const struct exchange *exchange, const struct exchange_need *need,
                    struct exchange_quote *ret_quote);

struct exchange_explanation {
    bool has_ended; /* the job has ended; no other field is set */
    uint32_t part;  /* number of the part of the job */
    /* Numbers of devices; each group is part of the one before. */
    uint32_t devices, fitting, asking, affordable, free;
    uint32_t beyond; /* asking, above its limit and above the market's highest price: */
    int64_t band_most_micro;
    uint32_t uncovered;  /* free, but a term of one subtask there costs more than the budget */
    int64_t cover_micro; /* the least such cost */
    uint32_t donated;    /* affordable at 0; the donation queue decides */
    bool holds_nothing;  /* the budget is 0: only donated slots count */
    /* Fitting, with an ask that is for other accounts, or is closed by its hours or day. */
    uint32_t for_others, closed;
    /* Fitting, of providers that the operator froze. The reason is of one from which the job had a
     * lease then; it is borrowed until the next step. NULL: none. */
    uint32_t frozen;
    const char *frozen_why;
    /* Fitting, of providers that are silent. The time is that of the first to fall silent; 0: it is
     * unknown. The name is borrowed until the next step; NULL: of several providers. */
    uint32_t silent;
    int64_t silent_ns;
    const char *silent_name;
    uint32_t brief;        /* fitting, with an open ask whose longest term is too short */
    int64_t brief_term_ns; /* longest of those terms */
    uint32_t spent;        /* closed: the day's slot-time is used up */
    uint32_t withdrawn;    /* closed: results of the provider were refuted */
    int64_t opens_ns;      /* the first closed ask opens after this long, at the latest */
    /* Simulated devices that were not asked for are passed over and fail no predicate; the second
     * number would fit. */
    uint32_t simulated, simulated_fitting;
    uint32_t avoided;   /* affordable, not free to it: the provider just failed this job */
    int64_t avoided_ns; /* time until the first of them is tried again */
    /* Affordable, and known to end all that waits after the deadline. The times are the least of a
     * subtask on these, and the one until the deadline. */
    uint32_t late;
    int64_t late_takes_ns, late_left_ns;
    uint32_t own;       /* affordable: the provider made everything that waits to be checked here */
    uint32_t judges;    /* affordable: the provider judged everything that waits to be made here */
    bool is_own_leases; /* all leased affordable slots serve this account, which takes none */
    /* Fitting devices of this account do not count; no order trades with its own owner. */
    uint32_t own_devices;
    /* Forecast for an order that is not placed yet. `refusal` is its reject code, or 0.
     * `refused_at` names the device of the ask that it would meet first, with its price or, for a
     * price outside the bands, the bound. `starts_at_micro` is the price of its first fill, -1 for
     * none; `starts_with_lease` says that it takes a lease from its holder. `refused_why` is the
     * operator's reason for a frozen account, borrowed until the next step; NULL: none. */
    bool is_asked;
    uint32_t refusal;
    const char *refused_why;
    char refused_at[EXCHANGE_NAME_SIZE];
    int64_t refused_at_micro;
    int64_t starts_at_micro;
    bool starts_with_lease;
    uint8_t type;       /* enum exchange_order_type */
    struct {            /* job whose bids are filled all at once or not at all */
        uint32_t slots; /* slots that the part asks for; 0: no such job */
        uint32_t free;  /* free slots among them, at its limit */
        int64_t limit_micro;
        bool is_of_budget; /* the budget sets the limit, not the cap */
    } whole;
    /* Affordable interruptible leases are out: the job has no interruptions left. */
    uint32_t interruptible;
    uint32_t quiet_agents; /* connected agents that offer no device */
    struct {               /* part of a job that is open */
        bool is_filed;
        bool is_all;     /* the job has no other part */
        bool is_closing; /* the job buys nothing more and waits for running work */
        bool has_order;  /* the part's bid stands and may buy more */
        uint32_t running, queued, waiting, checking;
        uint32_t blocked; /* wait for other subtasks of the job */
        uint32_t lanes;
        bool is_sated; /* no subtask waits for a further lane */
    } work;
    /* A bid that waits would be filled at another limit, but an ask of its own account comes first.
     * These are that limit (-1: none), and the ask's device and price. */
    int64_t past_own_micro;
    char own_device[EXCHANGE_NAME_SIZE];
    int64_t own_device_micro;
    /* Number of devices that match the requested instrument, kind, label and nature (simulated or
     * not). The failing predicates of these devices matter most. */
    uint32_t named;
    uint32_t predicate_count;
    struct {
        char text[160];
        uint32_t failing, named_failing; /* devices, and those among the named */
        bool is_name;                    /* this predicate names devices */
        bool has_best;
        int64_t best;
    } predicates[REQUIREMENT_NODES_MAX];
    int64_t fills_at_micro; /* lowest limit that fills now; -1: none */
    /* A waiting part that no limit up to this one fills would take a lease from its holder at this
     * limit; -1: none. */
    int64_t takes_at_micro;
    int64_t takes_budget_micro; /* least budget that does so at its present limit */
    enum rate rate;             /* the bid's */
    bool is_halted;             /* the market is halted: no change fills it now */
    const char *halted_why;     /* borrowed until the next step; NULL: no reason */
    struct exchange_smallest_change smallest_change;
    /* Bids that come first for a fitting device, when none is free at its price. */
    bool has_ahead, is_ahead_partial; /* partial: `ahead` is a lower bound */
    uint32_t ahead;
};
void exchange_explain(const struct exchange *exchange, const struct exchange_need *need,
                      struct exchange_explanation *ret_explanation);
/* Explains one part of a job as it stands. EXCHANGE_ANY_PART picks the waiting part that is
 * furthest from a lane. Returns false when there is no such job or part. */
bool exchange_explain_job(const struct exchange *exchange, const struct id128 *job, uint32_t part,
                          struct exchange_explanation *ret_explanation);
/* Returns what the part of an open job needs, borrowed until the next step, and the slots of one
 * subtask. Returns NULL when there is no such job or part, or the part bids no more. */
const struct requirement *exchange_part_needs(const struct exchange *exchange,
                                              const struct id128 *job, uint32_t part,
                                              uint32_t *ret_slots);

struct exchange_subtask_row {
    uint8_t state; /* enum subtask_state, open job */
    uint32_t part;
    uint32_t tries;    /* attempts so far */
    uint32_t waits_on; /* subtasks that it waits for and that are not accepted yet */
    /* Provider and device of an attempt that is out, and the number of attempts before it in its
     * lane. */
    uint32_t provider; /* EXCHANGE_NO_ACCOUNT: no attempt is out */
    uint32_t behind;
    char device[EXCHANGE_NAME_SIZE]; /* label */
};
/* Fills in one subtask of an open job. Returns false when there is none. */
bool exchange_subtask(const struct exchange *exchange, const struct id128 *job, uint32_t index,
                      struct exchange_subtask_row *ret_row);

/* ---------------------------------------------------------------- hash and snapshot (P8) */

/* Returns the multiset hash of all records: incremental, and by a full walk. Tests compare both. */
struct hash32 exchange_state_hash(struct exchange *exchange);
struct hash32 exchange_state_hash_walk(const struct exchange *exchange);

/* Returns the state as canonical bytes that the caller frees, or NULL when memory is short. */
uint8_t *exchange_save(const struct exchange *exchange, size_t *ret_length);
/* Returns a new exchange from the bytes of exchange_save. Returns NULL when the bytes are not well
 * formed or above the limits, or memory is short. */
struct exchange *exchange_load(const struct exchange_limits *limits, const uint8_t *bytes,
                               size_t length);

#endif
