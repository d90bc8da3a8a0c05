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
#include "exchange/view/smallest_change.h"
#include "ledger/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange;

#define EXCHANGE_NO_ACCOUNT UINT32_MAX /* wider than an int, so it is no enum constant */
#define EXCHANGE_ANY_PART UINT32_MAX   /* every part of a job */
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
    uint64_t subtasks;                               /* sum over all open jobs */
    uint64_t subtasks_per_account;                   /* 0: bounded by `subtasks` alone */
    uint32_t cells, classes;                         /* kinds of device and of requirement in use */
    uint32_t cells_per_account, classes_per_account; /* the same, used by one account */
    /* The key of the hash tables is no cap. The operator of an exchange for strangers draws it, so
     * that nobody can choose ids that collide. No effect, hash or snapshot depends on it. */
    uint64_t table_key[2];
};
/* Returns the default caps; the table key is zero. */
struct exchange_limits exchange_limits_default(void);

/* Number of the rules by which commands become effects. Raise it with every change after which the
 * same commands lead to another state. Commands written under other rules are then refused at
 * replay. */
enum { EXCHANGE_RULES = 19 };

/* Returns an empty exchange that waits for its genesis command, or NULL when memory is short. The
 * caller owns it. The caps are `limits` until a command EXCHANGE_LIMITS sets others. The table key,
 * `cells` and `classes` stay for the life of the object. */
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
    /* The broker sets caps and rules; a lower cap does not touch existing state. */
    EXCHANGE_LIMITS,
    EXCHANGE_EPOCH, /* the broker starts an epoch: dice come from another secret */
    EXCHANGE_REPLACE,
    EXCHANGE_BANDS,
    EXCHANGE_OWNER,
    EXCHANGE_JUDGE,
};

struct exchange_genesis_account {
    struct key32 key;
    uint32_t roles;
    int64_t credits_micro; /* minted at genesis */
    char name[EXCHANGE_NAME_SIZE];
};
struct exchange_genesis {
    struct id128 cluster;
    uint32_t fee_ppm;         /* share of each capture that goes to ACCOUNT_FEES, rounded down */
    int64_t price_band_micro; /* highest price per slot-hour, until EXCHANGE_BANDS */
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
/* The bands bound the orders that the market accepts from now on. A field that is not given keeps
 * its value. A resting order stays until it is replaced. */
struct exchange_bands {
    bool has_least, has_most, has_notional;
    int64_t least_micro, most_micro; /* price per slot-hour; 0 is always allowed */
    int64_t notional_micro; /* most that price x slots x time of one order may be; 0: any */
};

/* The accounts named share one owner from now on, with every account whose owner has this name.
 * Each account becomes its own owner again when the name is empty. */
enum { EXCHANGE_OWNER_MOST = 32 };
struct exchange_owner {
    const struct key32 *accounts;
    size_t count;
    char name[EXCHANGE_NAME_SIZE];
};

struct exchange_set_limits {
    uint32_t rules;
    struct exchange_limits limits; /* table_key, cells and classes are ignored */
};

struct exchange_device {
    struct id128 device;
    uint32_t slots;
    const struct attribute *attributes; /* includes `instrument` and `isolation` */
    size_t attribute_count;
    char label[EXCHANGE_NAME_SIZE];
};
struct exchange_advertise {
    const struct exchange_device *devices;
    size_t count;
};
struct exchange_ask_account { /* named by key, or by name where there is no key */
    bool has_key;
    struct key32 key;
    char name[EXCHANGE_NAME_SIZE]; /* padded with zeros */
};
/* The type says how an arriving order is filled. */
enum exchange_order_type {
    EXCHANGE_LIMIT,     /* the unfilled remainder rests */
    EXCHANGE_IOC,       /* the unfilled remainder is cancelled */
    EXCHANGE_FOK,       /* a bid that is filled at once and in full, or its job is cancelled */
    EXCHANGE_POST_ONLY, /* an order that only rests; it is refused when it would trade at once */
    /* A bid waits until all can be filled at once; then it is a LIMIT order. */
    EXCHANGE_ALL_OR_NONE,
};
enum { EXCHANGE_WHOLE_LANES_MOST = 1024 }; /* lanes of an ALL_OR_NONE job */
/* Leases of an ask are firm, or interruptible: another bid may take them. */
struct exchange_terms {
    bool is_interruptible;
    /* An interruptible lease ends this long after its holder is told, and nobody may take it during
     * its minimum run. */
    int64_t notice_ns, minimum_run_ns;
};
/* Interruptible leases rank by their holders' limits. A bid that finds no free slot takes the
 * lowest ranked lease when its limit per slot-hour is higher by at least this amount. It pays the
 * holder's limit plus this amount. */
#define EXCHANGE_INCREMENT_MICRO 1000
/* The first is the largest daily bound of an ask. The second is the longest term of leases of an
 * ask with a daily bound and no term of its own. */
#define EXCHANGE_DAILY_MOST_NS (4096 * 24 * NS_PER_HOUR)
#define EXCHANGE_DAILY_TERM_NS NS_PER_HOUR
#define EXCHANGE_NOTICE_MOST_NS (24 * NS_PER_HOUR)
/* Longest life of a lease. A firm lease counts as one with this notice and this minimum run. */
#define EXCHANGE_RUN_MOST_NS (7 * 24 * NS_PER_HOUR)
struct exchange_ask {
    struct id128 device;
    uint32_t slots;
    int64_t price_micro;
    int64_t good_till_ns; /* 0: until cancelled */
    int64_t max_term_ns;  /* 0: the provider sets no bound */
    /* Accounts whose bids may fill the ask; an empty list means every account. The accounts are
     * looked up when the ask is placed. */
    const struct exchange_ask_account *to;
    size_t to_count;
    /* The ask is filled, and its leases are renewed, in these hours of log time. */
    struct hours hours;
    /* Slot-time that the device gives on one day of the clock of `hours`, by log time; 0 means any.
     * Time that leases may still use counts until it is settled, so no day gives more. The bound
     * also limits the longest term of a lease. */
    int64_t daily_ns;
    struct exchange_terms terms;
    enum exchange_order_type type; /* LIMIT, IOC or POST_ONLY */
};
struct exchange_cancel_order {
    struct id128 order;
};
/* A field that is not given keeps its value. Fewer slots at the same price keep the order's place
 * in its queue; every other change makes a new order. Standing leases are not touched. */
struct exchange_replace {
    struct id128 order; /* id of an ask, or of a job */
    uint32_t part;      /* part of the job, or EXCHANGE_ANY_PART */
    bool has_slots, has_price, has_budget;
    /* An ask offers these slots; a bid uses so many at a time, 0: as many as are ready. */
    uint32_t slots;
    int64_t price_micro; /* ask: least price; bid: its cap */
    uint32_t rate; /* The bid's rate when the price is a value; RATE_NONE means per slot-hour. */
    int64_t budget_micro; /* the job's; never less than before */
};
struct exchange_held {
    uint64_t lease;
    uint32_t index, attempt;
}; /* attempt 0 names the lease alone */
struct exchange_statement {
    const struct exchange_held *held;
    size_t count;
    /* Log time up to which the agent has seen every message sent to it; 0 means unknown. */
    int64_t as_of_ns;
};
struct exchange_result {
    struct id128 job;
    uint32_t index, attempt;
    uint64_t lease;
    struct id128 device;
    struct hash32 manifest;
    uint8_t outcome;   /* enum result_outcome of the protocol */
    bool is_simulated; /* the provider says so */
    int64_t busy_ns;
    struct hash32 hash;   /* SHA-256 of the encoded Result */
    const uint8_t *bytes; /* encoded Result; the caller keeps it as long as the effects */
    uint32_t length;
    /* Opaque bytes that the result hands to the subtasks that wait for it, borrowed for the step.
     * NULL with a length above GIVEN_BYTES_MOST means: too many bytes to hand on. */
    const uint8_t *given;
    uint32_t given_length;
    /* Opaque bytes of the checkpoint that the attempt left, borrowed for the step. A checkpoint
     * above SAVED_BYTES_MOST counts as none. */
    const uint8_t *saved;
    uint32_t saved_length;
    /* The broker sets this before sequencing: an output or checkpoint is not stored as it has to
     * be, or (INPUT_MISSING, IMAGE_MISSING) the broker lacks what the subtask needs. */
    bool is_missing;
    bool lacks_factor;  /* a check with outcome INPUT_MISSING found the product, but no factor */
    uint8_t verdict;    /* enum result_verdict that a check found */
    struct hash32 seed; /* seed that a check says it was given */
};
struct exchange_results {
    const struct exchange_result *results;
    size_t count;
    /* HMAC-SHA-256 of the epoch's secret over the index of this command (u64, little-endian).
     * Nobody could foresee these dice when the results were signed. The seeds of the checks of
     * these results are drawn from them. */
    struct hash32 dice;
};
struct exchange_epoch { /* The command does nothing unless `secret` matches the last commitment. */
    struct hash32 commitment; /* SHA-256 of the secret of the new epoch's dice */
    struct hash32 secret;     /* secret of the epoch that ends; zeros: none, or lost */
};
struct exchange_part { /* one part of a job with several; fields as in exchange_submit */
    uint32_t subtasks;
    const struct requirement *needs;
    uint32_t slots, at_most;
    int64_t cap_micro, limit_ns, term_ns, expect_ns;
    uint32_t rate;
};
/* The graph says which subtasks wait for which, and which go first. A list that is not empty has
 * one entry per subtask. `after` holds, for one subtask after the other, the after_count subtasks
 * that it waits for; each has a lower index. */
struct exchange_graph {
    const uint32_t *rank; /* higher goes first */
    size_t rank_count;
    /* Expected time of each subtask, as declared or measured; 0 means unknown. An empty list means
     * that all subtasks of a part are alike. */
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
enum { EXCHANGE_CRASH_LIMIT = 2 }; /* default of a job that names none */
struct exchange_submit {
    char name[EXCHANGE_NAME_SIZE];
    struct hash32 manifest;
    uint32_t subtasks; /* sum over all parts; the first part has the rest of them */
    int64_t budget_micro;
    int64_t cap_micro; /* -1: market price */
    /* enum rate says which unit of work the cap is for; RATE_NONE: per slot-hour. */
    uint32_t rate;
    const struct requirement *needs;
    uint32_t slots;   /* width of one subtask */
    uint32_t at_most; /* slots at a time; 0: as many as ready subtasks need */
    int64_t limit_ns, term_ns;
    int64_t expect_ns; /* expected time of one subtask, 0: unknown; sets a market order's limit */
    uint32_t retries;  /* retries of a subtask whose program failed */
    uint32_t error_limit; /* failed subtasks allowed; one more and no other subtask starts */
    uint32_t crash_limit; /* results by a provider's fault that a subtask may have */
    /* The first part is described above; these are the further ones. */
    const struct exchange_part *parts;
    size_t part_count;
    /* NULL means that no subtask waits for another, and all rank the same. */
    const struct exchange_graph *graph;
    /* EXCHANGE_VERIFY_CHEAP makes the last part the checks. The part has N subtasks, as many as all
     * others together. Its subtask N + k waits for subtask k alone and judges k's result. */
    enum exchange_verify verify;
    int64_t good_till_ns; /* subtasks not started by then are cancelled; 0: no deadline */
    /* Number of the job's working leases that may be taken; after that many the job accepts firm
     * leases only. Absent means any number. */
    bool has_interruptions;
    uint32_t interruptions;
    /* The job's programs save their state when they are told to end. A preempted attempt is paid
     * only when it left a new checkpoint, from which the next attempt goes on. A job with checks
     * cannot have checkpoints. */
    bool has_checkpoints;
    /* Type of the job's bids. A job whose subtasks wait for one another takes LIMIT or POST_ONLY; a
     * job with checks takes LIMIT. */
    enum exchange_order_type type;
};
struct exchange_cancel_job {
    struct id128 job;
};

/* The client of a job computed the check of a held result and reports its verdict. */
struct exchange_judge {
    struct id128 job;
    uint32_t index, attempt;
    struct hash32 result; /* SHA-256 of the encoded Result that is held */
    struct hash32 seed;   /* seed given to the client by exchange_disputes */
    uint8_t verdict;      /* enum result_verdict */
};

struct exchange_command {
    enum exchange_command_type type;
    uint64_t index;      /* place in the log: 1, 2, 3 ... without a gap */
    int64_t log_time_ns; /* never less than the last command's */
    uint32_t account;    /* verified sender; EXCHANGE_NO_ACCOUNT: the broker, or anonymous (JOIN) */
    struct id128 id;     /* made by the client; zero for commands of the broker */
    int64_t created_ms;
    struct hash32 body; /* SHA-256 of type and body; tells a reused id from a repeated command */
    uint64_t origin;    /* opaque session that asked, returned in ACCEPT and REJECT; no state */
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
        uint32_t provider; /* SUSPECT, RETURNED, GOODBYE: account number of the provider */
    };
};

/* ---------------------------------------------------------------- effects */

enum exchange_effect_type {
    EFFECT_ACCEPT = 1,  /* answer `id` to origin */
    EFFECT_REJECT,      /* answer `id` to origin; the state only remembers the refusal */
    EFFECT_LEDGER,      /* append this record */
    EFFECT_ACCOUNT,     /* an account was opened or changed: key, number, roles, frozen */
    EFFECT_LEASE_GRANT, /* sent to the provider, which may now read the job's blobs */
    EFFECT_LEASE_RENEW,
    EFFECT_LEASE_END,    /* sent to the provider */
    EFFECT_DISPATCH,     /* sent to the provider; neighbours of one lease travel in one message */
    EFFECT_WITHDRAW,     /* sent to the provider, likewise in one message */
    EFFECT_JOB,          /* the job changed: push its row to sessions that watch it */
    EFFECT_ASK,          /* tells the provider that its ask was placed, expired or was cancelled */
    EFFECT_LEASE_NOTICE, /* tells the provider that another bid takes the lease after its term */
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
    bool has_checkpoints; /* the job's programs save checkpoints */
};
struct exchange_given { /* output that a subtask hands on, as its result said */
    const uint8_t *bytes;
    uint32_t length;
};
struct exchange_work {
    uint64_t lease;
    uint32_t index, attempt, lane;
    bool is_urgent; /* DISPATCH: goes before everything queued in its lane */
    /* DISPATCH has the outputs of the subtasks it waited for, in graph order, owned by the
     * effects. */
    const struct exchange_given *given;
    uint32_t given_count;
    /* DISPATCH has the checkpoint to go on from, owned by the effects; no bytes: none. */
    struct exchange_given saved;
    uint32_t saved_by;  /* the attempt that left `saved` */
    struct hash32 seed; /* DISPATCH of a check: its seed; else zeros */
    uint32_t checked;   /* DISPATCH of a check: the subtask that it judges */
};
struct exchange_lease_note {
    uint64_t lease;
    int64_t term_ns;
    uint32_t reason;
    struct id128 job;
};

struct exchange_ask_note {
    struct id128 device, order;
    bool stands; /* false: the ask has ended */
    uint32_t slots;
    int64_t price_micro;
    int64_t good_till_ns, max_term_ns; /* 0: none */
    struct exchange_terms terms;
};

struct exchange_effect {
    enum exchange_effect_type type;
    uint32_t account;                   /* addressee; for ACCOUNT the subject */
    uint64_t origin;                    /* ACCEPT, REJECT */
    enum exchange_command_type refused; /* REJECT: type of the command */
    enum rate rate;                     /* REJECT: rate of `value` when that is a limit by value */
    struct id128 id;                    /* ACCEPT, REJECT: the command's; JOB: the job's */
    bool repeated;  /* ACCEPT, REJECT: the same id and body had this answer before */
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

/* The caller owns and reuses this growing array; exchange_effects_clear keeps the memory. */
struct exchange_effects {
    struct exchange_effect *items;
    size_t count, capacity;
    struct exchange_block *blocks; /* memory of the effects that must outlive the next step */
};
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
/* Returns the bands in force; every field is set. */
struct exchange_bands exchange_bands_now(const struct exchange *exchange);
/* Returns the number of epochs begun, and the hash of the last one's secret. */
uint64_t exchange_epochs(const struct exchange *exchange, struct hash32 *ret_commitment);
uint32_t exchange_job_count(const struct exchange *exchange); /* includes ended jobs */
/* Returns the rules of the last EXCHANGE_LIMITS, or 0 before the first. */
uint32_t exchange_rules(const struct exchange *exchange);
/* Returns the caps in force. */
struct exchange_limits exchange_limits_now(const struct exchange *exchange);
/* Returns true when an EXCHANGE_LIMITS with these caps and EXCHANGE_RULES would change nothing. */
bool exchange_holds_limits(const struct exchange *exchange, const struct exchange_limits *limits);
/* Sets the caps for replay of commands older than the first EXCHANGE_LIMITS; does nothing after it.
 * The caps set here are no part of the state. */
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

/* Record of an account's conduct (exchange/account/standing.c); zeros where there is none. */
struct exchange_standing {
    char owner[EXCHANGE_NAME_SIZE]; /* "": the account is its own owner */
    uint32_t refuted;               /* refuted results of the account, less the faded ones */
    uint32_t refuted_ever;
    uint32_t overruled;   /* results that the account refuted and other referees accepted */
    int64_t withdrawn_ns; /* its asks stay closed for this long; 0: they are open */
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
/* Returns the time from `now_ns` of log time until the job is done, at the measured pace on its
 * present lanes. `now_ns` may be later than the last command. Returns -1 without lanes, and when
 * the job has ended or is closing. */
int64_t exchange_job_left_ns(const struct exchange *exchange, const struct id128 *job,
                             int64_t now_ns);
/* Returns true when there is such a job and it has not ended. */
bool exchange_job_is_open(const struct exchange *exchange, const struct id128 *job);
/* Fills in the newest `limit` jobs of an account, newest first, and returns how many. */
size_t exchange_jobs(const struct exchange *exchange, uint32_t owner,
                     struct exchange_job_row *ret_rows, size_t limit);

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
    bool is_firm_only;    /* it takes no interruptible leases */
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
    uint32_t own;       /* affordable: the provider made everything that waits to be checked here */
    uint32_t judges;    /* affordable: the provider judged everything that waits to be made here */
    bool is_own_leases; /* all leased affordable slots serve this account, which takes none */
    /* Fitting devices of this account do not count; no order trades with its own owner. */
    uint32_t own_devices;
    /* Forecast for an order that is not placed yet. `refusal` is its reject code, or 0.
     * `refused_at` names the device of the ask that it would meet first, with its price or, for a
     * price outside the bands, the bound. `starts_at_micro` is the price of its first fill, -1 for
     * none; `starts_with_lease` says that it takes a lease from its holder. */
    bool is_asked;
    uint32_t refusal;
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
        bool has_order;  /* its bid stands and may buy more */
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
        bool is_name;                    /* it is one of the predicates that name devices */
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
