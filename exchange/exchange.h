/* exchange/exchange.h - the exchange as one deterministic state machine: one command in, effects
 * out.
 *
 * exchange_step never sends, stores, reads a clock or draws a number: log time, the sender's
 * verified account and every id are arguments; what must happen outside comes back as effects,
 * which the caller releases once the command is durable (docs/decisions.md D2). The same commands
 * give the same effects, the same bytes of state hash and the same snapshot, everywhere (P8). Money
 * lives in ledger/accounts.h, who meets whom in matching/book.h; here live accounts' rights, ids,
 * providers, jobs, subtasks, leases and attempts.
 *
 * Lifecycles, each one enum and one table of moves (exchange/lifecycle.h):
 *   job      OPEN -> DONE | FAILED | CANCELLED
 *   subtask  WAITING -> RUNNING -> ACCEPTED | FAILED | WAITING (again), any -> CANCELLED; of a job with checks
 *            RUNNING -> CHECKING -> ACCEPTED | FAILED | WAITING (again)
 *   lease    PROMISED -> ACTIVE -> SUSPECT -> ACTIVE, ACTIVE | SUSPECT -> ENDING -> ENDED, PROMISED -> ENDED
 *   provider AWAY -> PRESENT -> SUSPECT -> PRESENT | AWAY */
#ifndef BOURSE_EXCHANGE_EXCHANGE_H
#define BOURSE_EXCHANGE_EXCHANGE_H

#include "base/checked.h"
#include "base/hours.h"
#include "base/id.h"
#include "base/rate.h"
#include "base/requirement.h"
#include "exchange/view/smallest_change.h"
#include "ledger/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange;

#define EXCHANGE_NO_ACCOUNT UINT32_MAX /* wider than an int, so not in the enum */
#define EXCHANGE_ANY_PART UINT32_MAX   /* of a job */
enum {
    EXCHANGE_NAME_SIZE = 64,
    EXCHANGE_FIELD_SIZE = 32,
    EXCHANGE_ASK_TO_MOST = 32, /* accounts that one ask names */
};

struct exchange_limits { /* every cap of the state; reject codes name them */
    uint32_t accounts, invitations;
    uint32_t ids_per_account; /* idempotency window, D7 */
    uint32_t devices_per_provider, asks;
    uint32_t jobs, jobs_per_account;
    uint32_t leases, attempts;
    uint64_t subtasks;                               /* of all open jobs */
    uint64_t subtasks_per_account;                   /* thereof; 0: as many as there is room for */
    uint32_t cells, classes;                         /* kinds of device and of requirement in use */
    uint32_t cells_per_account, classes_per_account; /* of those, used by one account */
    /* Not a cap: the key of the hash tables, drawn by whoever runs the exchange for strangers, so
     * that nobody can choose ids that collide. No effect, hash or snapshot depends on it. */
    uint64_t table_key[2];
};
/* With a key of zeros. */
struct exchange_limits exchange_limits_default(void);

/* Number of the rules by which commands become effects. Whoever changes them so that the same
 * commands would lead to another state raises it: commands written under other rules are then
 * refused, not replayed to something else. */
enum { EXCHANGE_RULES = 19 };

/* An empty exchange before its genesis command; NULL when out of memory. The caps are `limits`
 * until a command EXCHANGE_LIMITS sets others; key, `cells` and `classes` are for the life of the
 * object. */
struct exchange *exchange_create(const struct exchange_limits *limits);
void exchange_destroy(struct exchange **self);

/* ---------------------------------------------------------------- commands */

enum exchange_command_type {
    EXCHANGE_GENESIS = 1,
    EXCHANGE_TICK,
    EXCHANGE_JOIN,
    EXCHANGE_MINT,
    EXCHANGE_INVITE,
    EXCHANGE_FREEZE,
    EXCHANGE_HALT,
    EXCHANGE_ADVERTISE,
    EXCHANGE_ASK,
    EXCHANGE_CANCEL_ORDER,
    EXCHANGE_STATEMENT,
    EXCHANGE_RESULTS,
    EXCHANGE_SUSPECT,
    EXCHANGE_RETURNED,
    EXCHANGE_GOODBYE,
    EXCHANGE_SUBMIT,
    EXCHANGE_CANCEL_JOB,
    EXCHANGE_LIMITS, /* the broker's own: caps and rules from here on. Lower caps bind what comes,
                        not what stands */
    EXCHANGE_EPOCH,  /* the broker's own: dice of another secret from here on */
    EXCHANGE_REPLACE,
    EXCHANGE_BANDS,
    EXCHANGE_OWNER,
    EXCHANGE_JUDGE,
};

struct exchange_genesis_account {
    struct key32 key;
    uint32_t roles;
    int64_t credits_micro; /* minted */
    char name[EXCHANGE_NAME_SIZE];
};
struct exchange_genesis {
    struct id128 cluster;
    uint32_t fee_ppm;         /* of each capture, rounded down, to ACCOUNT_FEES */
    int64_t price_band_micro; /* highest price per slot-hour of any order, until EXCHANGE_BANDS sets
                                 another */
    const struct exchange_genesis_account *accounts;
    size_t account_count;
};
struct exchange_join {
    struct key32 account;
    struct hash32 token_hash;
    char name[EXCHANGE_NAME_SIZE];
};
struct exchange_mint {
    struct key32 account;
    int64_t amount_micro;
};
struct exchange_invite {
    struct hash32 token_hash;
    uint32_t roles;
    int64_t credits_micro;
    int64_t expires_ns;
    char name[EXCHANGE_NAME_SIZE];
};
struct exchange_freeze {
    struct key32 account;
    bool frozen;
};
struct exchange_halt {
    bool halted;
};
/* What orders the market takes from here on. What is not said stays as it is, and so does what
 * rests, until it is replaced. */
struct exchange_bands {
    bool has_least, has_most, has_notional;
    int64_t least_micro, most_micro; /* price per slot-hour; 0 is always within */
    int64_t notional_micro; /* the most that one order may come to: price x slots x time. 0: any */
};

/* From here on these accounts are one owner's, with all others of that name; without a name each is
 * its own owner again. */
enum { EXCHANGE_OWNER_MOST = 32 };
struct exchange_owner {
    const struct key32 *accounts;
    size_t count;
    char name[EXCHANGE_NAME_SIZE];
};

struct exchange_set_limits {
    uint32_t rules;
    struct exchange_limits limits; /* but table_key, cells and classes, which stay as they are */
};

struct exchange_device {
    struct id128 device;
    uint32_t slots;
    const struct attribute *attributes; /* `instrument` among them, and `isolation` */
    size_t attribute_count;
    char label[EXCHANGE_NAME_SIZE];
};
struct exchange_advertise {
    const struct exchange_device *devices;
    size_t count;
};
struct exchange_ask_account { /* by its key, else its name */
    bool has_key;
    struct key32 key;
    char name[EXCHANGE_NAME_SIZE]; /* zeros behind it */
};
/* What becomes of an order when it arrives. */
enum exchange_order_type {
    EXCHANGE_LIMIT,       /* what is not filled at once rests */
    EXCHANGE_IOC,         /* what is not filled at once is cancelled */
    EXCHANGE_FOK,         /* BID: all at once, or the job is cancelled */
    EXCHANGE_POST_ONLY,   /* rests; refused when it would trade at once */
    EXCHANGE_ALL_OR_NONE, /* BID: waits, and blocks nobody, until all can be filled at once; then a
                             limit order */
};
enum { EXCHANGE_WHOLE_LANES_MOST = 1024 }; /* subtasks at a time of an ALL_OR_NONE job */
/* What leases of an ask are: firm, or such that another bid may take them. */
struct exchange_terms {
    bool is_interruptible;
    /* Of one that is: how long before its end its holder is told, and how long nobody may take
     * it. */
    int64_t notice_ns, minimum_run_ns;
};
/* A lease that may be taken ranks by its holder's limit. Who has nothing to fill from takes the one
 * that ranks lowest when his limit is at least this much higher, per slot-hour, and pays exactly
 * that. */
#define EXCHANGE_INCREMENT_MICRO 1000
/* The most that an ask may bound its days by, and how long its leases are at most where it does not
 * say. */
#define EXCHANGE_DAILY_MOST_NS (4096 * 24 * NS_PER_HOUR)
#define EXCHANGE_DAILY_TERM_NS NS_PER_HOUR
#define EXCHANGE_NOTICE_MOST_NS (24 * NS_PER_HOUR)
/* The longest that a lease lives. A firm one counts as one of this notice and this minimum run. */
#define EXCHANGE_RUN_MOST_NS (7 * 24 * NS_PER_HOUR)
struct exchange_ask {
    struct id128 device;
    uint32_t slots;
    int64_t price_micro;
    int64_t good_till_ns; /* 0: until cancelled */
    int64_t max_term_ns;  /* 0: no bound of the provider's */
    /* Whose bids may fill it; none: anybody's. They are found when it is placed. */
    const struct exchange_ask_account *to;
    size_t to_count;
    struct hours hours; /* when it is filled and its leases are renewed, by log time */
    /* Slot-time that its device gives on a day of the clock of these hours, by log time; 0: any.
     * What leases may yet use counts until it is settled, so that no day gives more. Then leases
     * have a longest term, no longer than that. */
    int64_t daily_ns;
    struct exchange_terms terms;
    enum exchange_order_type type; /* LIMIT, IOC or POST_ONLY */
};
struct exchange_cancel_order {
    struct id128 order;
};
/* What is not said stays as it is. Less slots at the same price keep the order's place in its
 * queue, anything else is a new order's. Leases that stand are not touched. */
struct exchange_replace {
    struct id128 order; /* of an ask; or a job */
    uint32_t part;      /* of the job; EXCHANGE_ANY_PART: each of them */
    bool has_slots, has_price, has_budget;
    uint32_t slots;      /* of an ask: offered; of a bid: at a time, 0: ready subtasks */
    int64_t price_micro; /* of an ask: least; of a bid: its cap */
    uint32_t
        rate; /* of a price: that of the bid, whose value it is; RATE_NONE: it is per slot-hour */
    int64_t budget_micro; /* of the job: not less than it was */
};
struct exchange_held {
    uint64_t lease;
    uint32_t index, attempt;
}; /* attempt 0: the lease alone */
struct exchange_statement {
    const struct exchange_held *held;
    size_t count;
    int64_t
        as_of_ns; /* log time up to which the agent has seen all that was sent to it; 0: not said */
};
struct exchange_result {
    struct id128 job;
    uint32_t index, attempt;
    uint64_t lease;
    struct id128 device;
    struct hash32 manifest;
    uint8_t outcome;   /* enum result_outcome of the protocol */
    bool is_simulated; /* by its own words */
    int64_t busy_ns;
    struct hash32 hash;   /* SHA-256 of the encoded Result */
    const uint8_t *bytes; /* the encoded Result, kept alive by the caller as long as the effects */
    uint32_t length;
    /* What it leaves to those that wait for it: opaque bytes, borrowed for the step, and how many
     * they are. NULL with a length above GIVEN_BYTES_MOST: too many to be handed on. */
    const uint8_t *given;
    uint32_t given_length;
    /* The checkpoint that it left: opaque bytes, borrowed for the step. None is as good as more
     * than SAVED_BYTES_MOST. */
    const uint8_t *saved;
    uint32_t saved_length;
    /* The broker found, before the command was sequenced, that the result's outputs are not all
     * stored as the job declares and the result says, or that its checkpoint is not. */
    bool is_missing;
    bool lacks_factor;  /* of a check of outcome input missing: its product was there */
    uint8_t verdict;    /* enum result_verdict: what a check found */
    struct hash32 seed; /* of a check: what it says it was given */
};
struct exchange_results {
    const struct exchange_result *results;
    size_t count;
    /* HMAC-SHA-256 of the epoch's secret over the index of this command, u64 little-endian: nobody
     * could foresee it when these results were signed. Seeds of the checks of these results are
     * drawn from it. */
    struct hash32 dice;
};
struct exchange_epoch {       /* does nothing where `secret` is not the one that was committed to */
    struct hash32 commitment; /* SHA-256 of the secret that dice are made of from here on */
    struct hash32 secret; /* of the epoch that ends here; zeros: there is none, or it was lost */
};
struct exchange_part { /* of a job that has several: as in exchange_submit */
    uint32_t subtasks;
    const struct requirement *needs;
    uint32_t slots, at_most;
    int64_t cap_micro, limit_ns, term_ns, expect_ns;
    uint32_t rate;
};
/* Which subtasks wait for which, and which goes first. Lists that are not empty are as long as
 * there are subtasks; `after` holds, subtask by subtask, the after_count of it that it waits for,
 * each lower than its own index. */
struct exchange_graph {
    const uint32_t *rank; /* higher first */
    size_t rank_count;
    /* What each takes by what was said or measured of it; 0: nothing was. None: those of a part are
     * alike. */
    const uint32_t *expect_ms;
    size_t expect_count;
    const uint32_t *after_count;
    size_t after_count_count;
    const uint32_t *after;
    size_t after_length;
};
enum exchange_verify {
    EXCHANGE_VERIFY_UNKNOWN, /* refused with REJECT_VERIFY */
    EXCHANGE_VERIFY_NONE,
    EXCHANGE_VERIFY_CHEAP, /* each result is held until a referee has checked it */
};
enum { EXCHANGE_CRASH_LIMIT = 2 }; /* where a job names none */
struct exchange_submit {
    char name[EXCHANGE_NAME_SIZE];
    struct hash32 manifest;
    uint32_t subtasks; /* of all parts; the first has those that the others leave */
    int64_t budget_micro;
    int64_t cap_micro; /* -1: market price */
    uint32_t rate; /* enum rate: the cap is the value of a unit of its work; RATE_NONE: it is per
                      slot-hour */
    const struct requirement *needs;
    uint32_t slots;   /* width of one subtask */
    uint32_t at_most; /* slots at a time; 0: ready subtasks */
    int64_t limit_ns, term_ns;
    int64_t expect_ns; /* expected time of one subtask; 0: not said. Sets a market order's limit */
    uint32_t retries;  /* of a subtask whose program failed */
    uint32_t
        error_limit; /* failed subtasks that are borne: with one more the rest is not started */
    uint32_t crash_limit; /* of a subtask: results by the provider's fault that it bears */
    const struct exchange_part *parts; /* further ones: what stands above is the first */
    size_t part_count;
    const struct exchange_graph *graph; /* NULL: no subtask waits for another, and all are equal */
    /* EXCHANGE_VERIFY_CHEAP: the last part is the checks. It has as many subtasks as the others
     * together, N, and its subtask N + k waits for subtask k alone and says whether k's result is
     * right. */
    enum exchange_verify verify;
    int64_t good_till_ns; /* what has not started by then is cancelled; 0: it waits for ever */
    /* How many of its leases at work may be taken from it: then it takes firm ones only. Not said:
     * any number. */
    bool has_interruptions;
    uint32_t interruptions;
    /* Its programs save their state when they are told to end: of an attempt that is preempted
     * nothing is paid unless it has left a new checkpoint, from which the next one goes on. Not for
     * jobs with checks. */
    bool has_checkpoints;
    /* Of its bids. All but LIMIT and POST_ONLY are for jobs no subtask of which waits for another,
     * and all but LIMIT for jobs without checks. */
    enum exchange_order_type type;
};
struct exchange_cancel_job {
    struct id128 job;
};

/* What the client of a job found when it computed the check of a result that is held. */
struct exchange_judge {
    struct id128 job;
    uint32_t index, attempt;
    struct hash32 result; /* SHA-256 of the encoded Result that is held */
    struct hash32 seed;   /* that it was given: exchange_disputes */
    uint8_t verdict;      /* enum result_verdict */
};

struct exchange_command {
    enum exchange_command_type type;
    uint64_t index;      /* of the command in the log: 1, 2, 3 ... without a gap */
    int64_t log_time_ns; /* never less than the one before */
    uint32_t account;    /* verified sender; EXCHANGE_NO_ACCOUNT: the broker, or anonymous (JOIN) */
    struct id128 id;     /* client-made; zero for the broker's own */
    int64_t created_ms;
    struct hash32 body; /* SHA-256 of type and body, for "same id, other body" */
    uint64_t origin; /* opaque: which session asked. Comes back in ACCEPT and REJECT; not state */
    union {
        struct exchange_genesis genesis;
        struct exchange_join join;
        struct exchange_mint mint;
        struct exchange_invite invite;
        struct exchange_freeze freeze;
        struct exchange_halt halt;
        struct exchange_bands bands;
        struct exchange_owner owner;
        struct exchange_judge judge;
        struct exchange_set_limits set_limits;
        struct exchange_epoch epoch;
        struct exchange_advertise advertise;
        struct exchange_ask ask;
        struct exchange_cancel_order cancel_order;
        struct exchange_replace replace;
        struct exchange_statement statement;
        struct exchange_results results;
        struct exchange_submit submit;
        struct exchange_cancel_job cancel_job;
        uint32_t provider; /* SUSPECT, RETURNED, GOODBYE: its account number */
    };
};

/* ---------------------------------------------------------------- effects */

enum exchange_effect_type {
    EFFECT_ACCEPT = 1,  /* answer `id` to origin */
    EFFECT_REJECT,      /* answer `id` to origin; changes nothing but what is remembered of it */
    EFFECT_LEDGER,      /* append this record */
    EFFECT_ACCOUNT,     /* an account was opened or changed: key, number, roles, frozen */
    EFFECT_LEASE_GRANT, /* to the provider; it may now read the job's blobs */
    EFFECT_LEASE_RENEW,
    EFFECT_LEASE_END, /* to the provider */
    EFFECT_DISPATCH,  /* to the provider; neighbours of one lease travel in one message */
    EFFECT_WITHDRAW,  /* likewise */
    EFFECT_JOB,       /* the job changed: push its row to sessions that watch it */
    EFFECT_ASK, /* to the provider: one of its asks was placed, cancelled by itself, or its time is
                   up */
    EFFECT_LEASE_NOTICE, /* to the provider: another takes the lease, which ends after its term as
                            it is now */
};

struct exchange_reject {
    uint32_t code; /* protocol/reject.h */
    char field[EXCHANGE_FIELD_SIZE];
    int64_t value, limit;
};
struct exchange_account_effect {
    struct key32 key;
    uint32_t roles;
    bool frozen;
    char name[EXCHANGE_NAME_SIZE];
};
struct exchange_grant {
    uint64_t lease;
    struct id128 job, device, ask;
    struct key32 owner;
    uint32_t owner_number;
    uint32_t slots, width;
    int64_t price_micro, term_ns, limit_ns;
    struct hash32 manifest;
    bool has_checkpoints; /* its job says so */
};
struct exchange_given { /* what a subtask has left, as its result said it */
    const uint8_t *bytes;
    uint32_t length;
};
struct exchange_work {
    uint64_t lease;
    uint32_t index, attempt, lane;
    bool is_urgent; /* DISPATCH: before what its lane has queued */
    /* DISPATCH: of those that it waited for, in the order of the graph; memory of the effects */
    const struct exchange_given *given;
    uint32_t given_count;
    struct exchange_given
        saved;          /* DISPATCH: the checkpoint to go on from, likewise; no bytes: none, */
    uint32_t saved_by;  /* and the attempt that left it */
    struct hash32 seed; /* DISPATCH of a check; else zeros, */
    uint32_t checked;   /* and the subtask that it is about */
};
struct exchange_lease_note {
    uint64_t lease;
    int64_t term_ns;
    uint32_t reason;
    struct id128 job;
};

struct exchange_ask_note {
    struct id128 device, order;
    bool stands; /* else it has ended */
    uint32_t slots;
    int64_t price_micro;
    int64_t good_till_ns, max_term_ns; /* 0: none */
    struct exchange_terms terms;
};

struct exchange_effect {
    enum exchange_effect_type type;
    uint32_t account;                   /* addressee (or subject, for ACCOUNT) */
    uint64_t origin;                    /* ACCEPT, REJECT */
    enum exchange_command_type refused; /* REJECT: what kind of command */
    enum rate rate;                     /* REJECT: of `value`, where that is a limit by value */
    struct id128 id;                    /* ACCEPT, REJECT: the command's. JOB: the job's */
    bool repeated;  /* ACCEPT, REJECT: the same id and body had that answer before */
    uint64_t index; /* ACCEPT: log index of the first acceptance */
    union {
        struct exchange_reject reject;
        struct ledger_record ledger;
        struct exchange_account_effect opened;
        struct exchange_grant grant;
        struct exchange_work work;
        struct exchange_lease_note lease;
        struct exchange_ask_note ask;
    };
};

/* A growing array that the caller owns and reuses; effects_clear keeps the memory. */
struct exchange_effects {
    struct exchange_effect *items;
    size_t count, capacity;
    struct exchange_block *blocks; /* what effects point to that would not outlive the next step */
};
void exchange_effects_clear(struct exchange_effects *effects);
void exchange_effects_fini(struct exchange_effects *effects);

enum exchange_status {
    EXCHANGE_OK, /* applied; a refusal is OK too, with an EFFECT_REJECT, and remembered by its id */
    EXCHANGE_OUT_OF_ORDER,  /* index or log time does not follow: nothing was done */
    EXCHANGE_OUT_OF_MEMORY, /* nothing was promised: the caller stops */
};

/* What the random vectors of a check are made of: known to nobody before the result that it checks
 * had come, and then to everybody. `index` and `attempt` are the check's own. */
struct hash32 exchange_check_seed(const struct hash32 *dice, const struct hash32 *result,
                                  uint32_t index, uint32_t attempt);

/* Applies one command and appends its effects. Names, texts and pointers of the command are
 * borrowed until the effects are dropped. */
enum exchange_status exchange_step(struct exchange *exchange,
                                   const struct exchange_command *command,
                                   struct exchange_effects *effects);
/* That command of that account comes soon, three commands ahead at best: where it will look for
 * things is brought closer to the processor meanwhile. It comes after the next, when that has been
 * said: what will be found there. And it comes next, when both have been: what these lead to, which
 * are the book's orders and whom an ask meets first. None changes anything, and nobody has to say
 * them. */
void exchange_expect(const struct exchange *exchange, uint32_t account,
                     const struct exchange_command *command);
void exchange_expect_found(const struct exchange *exchange, uint32_t account,
                           const struct exchange_command *command);
void exchange_expect_orders(const struct exchange *exchange, uint32_t account,
                            const struct exchange_command *command);

/* Log time at which a TICK has something to do, or INT64_MAX. */
int64_t exchange_next_deadline_ns(const struct exchange *exchange);
/* Deadlines kept, stale ones too: for metrics and tests. */
size_t exchange_timer_count(const struct exchange *exchange);
/* What was decided since this copy was made: for metrics and tests, in no hash and no snapshot. */
struct exchange_totals {
    uint64_t dispatches; /* decisions: a subtask was given to a lane */
    uint64_t edges;      /* of graphs, each time that one was looked at */
    uint64_t retries;    /* in the queues of what came back, each time that one was looked at */
};
struct exchange_totals exchange_totals(const struct exchange *exchange);

/* ---------------------------------------------------------------- reads: pure, no trace */

/* Steps of all reads so far: what one read took is the difference. A step is one thing looked at,
 * or one predicate of a requirement on one device, or what takes as long: 131,072 steps are about a
 * millisecond of a processor's time. The same read of the same state takes the same steps, on every
 * machine. In no hash and no snapshot. */
uint64_t exchange_steps(const struct exchange *exchange);
uint64_t exchange_index(const struct exchange *exchange);
int64_t exchange_log_time_ns(const struct exchange *exchange);
struct id128 exchange_cluster(const struct exchange *exchange);
bool exchange_halted(const struct exchange *exchange);
/* As they are now: all is said. */
struct exchange_bands exchange_bands_now(const struct exchange *exchange);
/* How many epochs began, and what the secret of the last hashes to. */
uint64_t exchange_epochs(const struct exchange *exchange, struct hash32 *ret_commitment);
uint32_t exchange_job_count(const struct exchange *exchange); /* ended ones too */
/* Of the last EXCHANGE_LIMITS, 0 before the first. */
uint32_t exchange_rules(const struct exchange *exchange);
/* The caps as they are now. */
struct exchange_limits exchange_limits_now(const struct exchange *exchange);
/* Whether an EXCHANGE_LIMITS with these caps and EXCHANGE_RULES would change nothing. */
bool exchange_holds_limits(const struct exchange *exchange, const struct exchange_limits *limits);
/* The caps until the first EXCHANGE_LIMITS, for the replay of commands older than it; nothing after
 * it. No state. */
void exchange_presume_limits(struct exchange *exchange, const struct exchange_limits *limits);

struct exchange_account_row {
    uint32_t number;
    struct key32 key;
    uint32_t roles;
    bool frozen;
    int64_t available_micro, held_micro;
    char name[EXCHANGE_NAME_SIZE];
};
uint32_t exchange_account_count(const struct exchange *exchange);
bool exchange_account(const struct exchange *exchange, uint32_t number,
                      struct exchange_account_row *ret_row);

/* What the account is known for (exchange/standing.c); zeros where nothing is. */
struct exchange_standing {
    char owner[EXCHANGE_NAME_SIZE]; /* "": the account is its own owner */
    uint32_t refuted;               /* results of its that were refuted, less those that faded */
    uint32_t refuted_ever;
    uint32_t overruled;   /* results that it refuted and others did not */
    int64_t withdrawn_ns; /* its asks are closed for so long; 0: they are not */
};
struct exchange_standing exchange_standing(const struct exchange *exchange, uint32_t account);

struct exchange_donated {
    int64_t used_ns;     /* slot-time that its jobs had at price 0, as it has faded by now */
    int64_t promised_ns; /* that its leases at 0 may use yet; both together are its rank */
    uint32_t waiting;    /* accounts that have a bid waiting for a lease */
    bool is_waiting;     /* it is one of them, */
    uint32_t
        before; /* and so many of them have a lower rank, or the same and a bid that came first */
    int64_t given_ns; /* slot-time that its own devices gave at price 0, ever */
};
/* How much the account has had of what is given away, its place in the queue for more, and what it
 * gave. False: no such account. */
bool exchange_donated(const struct exchange *exchange, uint32_t account,
                      struct exchange_donated *ret_donated);

struct exchange_job_row {
    struct id128 job;
    uint32_t owner;
    char name[EXCHANGE_NAME_SIZE];
    uint32_t state, reason; /* enum job_state, enum job_reason of the protocol */
    uint32_t subtasks, waiting, running, checking, accepted, failed, cancelled;
    uint32_t queued; /* of those that run: behind another one in their lane */
    int64_t budget_micro, charged_micro, reserved_micro;
    int64_t submitted_ns, ended_ns; /* ended 0: open */
    struct hash32 manifest;
    uint32_t lease_count;
    uint32_t accused; /* of those being checked: a referee rejects them, and no other has judged */
    uint32_t saved;   /* subtasks of which a checkpoint is kept */
    /* Of so many results, but for checks, as far as their leases are known: what they were expected
     * to take, and what they took. */
    uint64_t timed;
    int64_t foreseen_ns, took_ns;
};
bool exchange_job(const struct exchange *exchange, const struct id128 *job,
                  struct exchange_job_row *ret_row);
/* From `now_ns` of log time, which may be later than the last command, until all is done, at the
 * pace measured, on the lanes that it has; -1: it has none, or has ended or is about to. */
int64_t exchange_job_left_ns(const struct exchange *exchange, const struct id128 *job,
                             int64_t now_ns);
/* False too where there is none. */
bool exchange_job_is_open(const struct exchange *exchange, const struct id128 *job);
/* The newest `limit` jobs of an account, newest first; returns how many. */
size_t exchange_jobs(const struct exchange *exchange, uint32_t owner,
                     struct exchange_job_row *ret_rows, size_t limit);

/* How far each subtask of an open job is (enum subtask_state or SUBTASK_QUEUED, as on the wire),
 * and how often it was started. How many there are; 0: the job is not there, has ended, or has more
 * than `limit`. */
size_t exchange_subtasks(const struct exchange *exchange, const struct id128 *job,
                         uint8_t *ret_states, uint32_t *ret_tries, size_t limit);

/* A result that is held and that its client may have to judge: a referee has accused it; or one was
 * overruled, and no other is left to judge it. */
struct exchange_dispute {
    uint32_t index, attempt;
    uint32_t maker, accuser; /* EXCHANGE_NO_ACCOUNT: nobody has accused it */
    struct hash32 result, seed;
    const uint8_t *bytes; /* the encoded Result; until the next step */
    uint32_t length;
    bool has_referee; /* one who may judge it has a device for that */
};
/* Those of an open job from that index on, in order; returns how many, `limit` at most. */
size_t exchange_disputes(const struct exchange *exchange, const struct id128 *job, uint32_t from,
                         struct exchange_dispute *ret_rows, size_t limit);

struct exchange_part_row {
    uint32_t first, subtasks; /* from that index on, so many */
    uint32_t waiting;         /* for a lane: those that wait for other subtasks are not counted */
    uint32_t running, checking, lanes;
    uint32_t queued; /* of those that run */
};
/* The parts of a job, in order; returns how many it has. */
size_t exchange_parts(const struct exchange *exchange, const struct id128 *job,
                      struct exchange_part_row *ret_rows, size_t limit);

struct exchange_lease_row {
    uint64_t lease;
    struct id128 job;
    uint32_t provider;
    char device[EXCHANGE_NAME_SIZE]; /* label */
    uint32_t slots, accepted, state;
    int64_t price_micro, paid_ns, charged_micro;
    bool is_simulated; /* its device was when it was granted */
    bool is_interruptible;
    bool is_taken; /* another bid has taken it: it ends when the notice does, or has ended so */
    bool has_ended;
};
size_t exchange_leases(const struct exchange *exchange, const struct id128 *job,
                       struct exchange_lease_row *ret_rows, size_t limit);
/* True when `provider` has a lease of `job` that has not ended (or ended within the last minute):
 * it may read the job's blobs and store outputs for its owner. */
bool exchange_provider_serves(const struct exchange *exchange, uint32_t provider,
                              const struct id128 *job);

/* Every lease that has not ended. False: stopped by `visit`. */
struct exchange_standing_lease {
    uint64_t lease;
    uint32_t provider;
    struct id128 job;
    uint32_t owner; /* of the job */
    struct hash32 manifest;
};
typedef bool exchange_on_lease(void *context, const struct exchange_standing_lease *lease);
bool exchange_each_lease(const struct exchange *exchange, exchange_on_lease *visit, void *context);

/* What the work in flight on standing leases was given: for who may read it. False: stopped by
 * `visit`. */
typedef bool exchange_on_given(void *context, uint64_t lease, const struct exchange_given *given);
bool exchange_each_given(const struct exchange *exchange, exchange_on_given *visit, void *context);
/* Likewise the checkpoints that it goes on from. */
bool exchange_each_saved(const struct exchange *exchange, exchange_on_given *visit, void *context);
/* Every encoded result that is held until it is checked, of open jobs. */
typedef bool exchange_on_held(void *context, uint32_t provider, const struct id128 *job,
                              const uint8_t *result, uint32_t length);
bool exchange_each_held(const struct exchange *exchange, exchange_on_held *visit, void *context);

struct exchange_need {
    const struct requirement *needs;
    uint32_t account, subtasks, slots, at_most;
    int64_t cap_micro, limit_ns, term_ns, expect_ns;
    enum rate rate; /* the cap is the value of a unit of its work; NONE: it is per slot-hour */
    bool apart;     /* the cheapest account is not the one to take it: nothing counts below the next
                       one's price */
    int64_t budget_micro; /* 0: not said, or */
    bool holds_nothing;   /* it is 0: only what is given away is for it */
    uint8_t type;         /* enum exchange_order_type */
    bool is_firm_only;    /* it takes no interruptible leases */
};
enum { EXCHANGE_QUOTE_LEVELS = 16 };
struct exchange_quote {
    uint32_t slots_now;
    /* Of leases that it would take from their holders, for what it does not get of these, at such
     * prices. */
    uint32_t slots_taken;
    int64_t taken_low_micro, taken_high_micro;
    /* Of what is free; when nothing is, of what it takes; and then of what is leased, as if it were
     * idle, and of the cap alone. The levels are of what is free, or of what is leased. */
    int64_t price_low_micro, price_high_micro;
    int64_t expected_micro, minimum_micro, suggested_micro; /* suggested 0: there is no price */
    int64_t makespan_ns;
    /* Where something is given away: the dearest of as many slots as it wants of what asks a price,
     * free or leased, and how many of these there are; 0: none. */
    int64_t elsewhere_micro;
    uint32_t elsewhere_slots;
    uint32_t level_count;
    struct {
        int64_t price_micro;
        uint32_t slots, providers;
        /* By value, where levels are of like devices and above their limit too. */
        int64_t limit_micro;
        uint32_t cell;
        char instrument[ATTRIBUTE_TEXT_SIZE];
    } levels[EXCHANGE_QUOTE_LEVELS];
    /* Whatever the cap, and whether it is free or not: */
    bool is_asked;        /* somebody asks a price for what fits */
    struct key32 first;   /* who asks least */
    int64_t second_micro; /* the least that another asks; -1: nobody */
};
/* False: memory is short. */
bool exchange_quote(const struct exchange *exchange, const struct exchange_need *need,
                    struct exchange_quote *ret_quote);

struct exchange_explanation {
    bool has_ended; /* the job has: nothing else is filled in */
    uint32_t part;  /* of a job: which one it is about */
    uint32_t devices, fitting, asking, affordable, free;
    uint32_t beyond; /* of the asking: above its limit, and above any that an order may have now,
                        which is: */
    int64_t band_most_micro;
    uint32_t uncovered;  /* of the free: a term of one subtask there is more than its budget */
    int64_t cover_micro; /* the least that such a term takes */
    uint32_t donated;    /* of the affordable: at 0, where the donation queue decides */
    bool holds_nothing;  /* a budget of 0: only what is given away is for it */
    uint32_t for_others,
        closed;     /* of the fitting: with an ask, for others, or at other hours or days */
    uint32_t brief; /* of the fitting: with an ask that stands open to it, for shorter terms only */
    int64_t brief_term_ns; /* the longest of those terms */
    uint32_t spent;        /* of the closed: what they give a day is used up */
    uint32_t withdrawn;    /* of the closed: results of their provider were refuted */
    int64_t opens_ns;      /* the first of the closed is open after so long, at the latest */
    /* Of the devices, and not asked for: they are passed over, and fail at no predicate; and of
     * these that would fit. */
    uint32_t simulated, simulated_fitting;
    uint32_t avoided; /* of the affordable, of providers that failed this job a moment ago: not free
                         to it */
    int64_t avoided_ns; /* the first of these is tried again after so long */
    uint32_t own; /* of the affordable, of providers that made all that waits to be checked here */
    bool is_own_leases; /* all that is leased of the affordable is leased to jobs of this account:
                           it takes none of these */
    uint32_t
        own_devices; /* would fit, and are of this account: no order trades with one of its owner */
    /* Of what is not there yet: the code with which it would be refused (0: it would not), of whose
     * device the ask is that it would meet first, and at which price (or, where the market does not
     * take it, the limit that it is beyond); or the price at which it is filled then, first at
     * least (-1: it is not), and whether with a lease that it takes from its holder. */
    bool is_asked;
    uint32_t refusal;
    char refused_at[EXCHANGE_NAME_SIZE];
    int64_t refused_at_micro;
    int64_t starts_at_micro;
    bool starts_with_lease;
    uint8_t type;       /* enum exchange_order_type */
    struct {            /* of a job that is to have all that it asks for at once */
        uint32_t slots; /* that the part asks for; 0: it is no such job */
        uint32_t free;  /* to it at its limit, of these */
        int64_t limit_micro;
        bool is_of_budget; /* the limit is what the budget covers for all of it, not the cap */
    } whole;
    uint32_t interruptible; /* of the affordable, where leases may be taken: this job has borne all
                               that it may */
    uint32_t quiet_agents;  /* that are connected, and offer no device */
    struct {                /* of a job's part, while the job is open */
        bool is_filed;
        bool is_all;     /* the job has no other part */
        bool is_closing; /* the job buys nothing more, and waits for what runs */
        bool has_order;  /* its bid stands, and may buy more */
        uint32_t running, queued, waiting, checking;
        uint32_t blocked; /* wait for other subtasks of the job */
        uint32_t lanes;
        bool is_sated; /* what waits, if anything does, waits for no further lane */
    } work;
    /* Of a bid that waits and would be filled with another limit, were it not for an ask of its own
     * account that comes first then: that limit (-1: it is not so), of which device the ask is, and
     * its price. */
    int64_t past_own_micro;
    char own_device[EXCHANGE_NAME_SIZE];
    int64_t own_device_micro;
    /* Devices of the instrument, kind, label and nature (simulated or not) that are asked for:
     * where others are on offer, what these lack is what matters. */
    uint32_t named;
    uint32_t predicate_count;
    struct {
        char text[160];
        uint32_t failing, named_failing; /* devices, and those among the named */
        bool is_name;                    /* says which devices are named */
        bool has_best;
        int64_t best;
    } predicates[REQUIREMENT_NODES_MAX];
    int64_t fills_at_micro; /* -1: no price would fill now. By value: the least that would */
    /* Of a job's part that waits, and only where no limit up to it would fill: the least with which
     * it would take a lease from its holder now; -1: none. By value likewise. */
    int64_t takes_at_micro;
    int64_t takes_budget_micro; /* likewise: the least budget, at the limit that it has */
    enum rate rate;             /* of the bid */
    bool is_halted;             /* the market: nothing fills now, whatever is changed */
    struct exchange_smallest_change smallest_change;
    /* Where devices fit and none is free at its price: bids that one of these (of those at its
     * price, where there are any) would be leased to before it. */
    bool has_ahead, is_ahead_partial; /* partial: as many at least */
    uint32_t ahead;
};
void exchange_explain(const struct exchange *exchange, const struct exchange_need *need,
                      struct exchange_explanation *ret_explanation);
/* The same for one part of a job as it stands; ANY: of those that wait for a lane the one that is
 * furthest from having one. False when there is no such job, or part. */
bool exchange_explain_job(const struct exchange *exchange, const struct id128 *job, uint32_t part,
                          struct exchange_explanation *ret_explanation);

struct exchange_subtask_row {
    uint8_t state; /* enum subtask_state; of an open job */
    uint32_t part;
    uint32_t tries;    /* attempts so far */
    uint32_t waits_on; /* subtasks that it waits for and that are not accepted yet */
    /* While an attempt is out: whose, on which device, and how many are before it in its lane. */
    uint32_t provider; /* EXCHANGE_NO_ACCOUNT: none is */
    uint32_t behind;
    char device[EXCHANGE_NAME_SIZE]; /* label */
};
/* One subtask of an open job. False: there is none such. */
bool exchange_subtask(const struct exchange *exchange, const struct id128 *job, uint32_t index,
                      struct exchange_subtask_row *ret_row);

/* ---------------------------------------------------------------- hash and snapshot (P8) */

/* Multiset hash of all records: incremental, and by a full walk (tests compare the two). */
struct hash32 exchange_state_hash(struct exchange *exchange);
struct hash32 exchange_state_hash_walk(const struct exchange *exchange);

/* The whole state as canonical bytes, malloc'ed; NULL when out of memory. */
uint8_t *exchange_save(const struct exchange *exchange, size_t *ret_length);
/* A new exchange from such bytes; NULL when they are not well formed, over the limits, or memory is
 * short. */
struct exchange *exchange_load(const struct exchange_limits *limits, const uint8_t *bytes,
                               size_t length);

#endif
