/* A command changes the market. A command is a message of a member, or an event that the broker
 * tells. */
#ifndef BOURSE_EXCHANGE_COMMAND_TYPES_H
#define BOURSE_EXCHANGE_COMMAND_TYPES_H

#include "base/checked.h"
#include "base/hours.h"
#include "base/id.h"
#include "base/rate.h"
#include "base/requirement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXCHANGE_NO_ACCOUNT UINT32_MAX /* wider than an int, so it is no enum constant */
#define EXCHANGE_ANY_PART UINT32_MAX   /* every part of a job */
enum {
    EXCHANGE_NAME_SIZE = 64,
    EXCHANGE_FIELD_SIZE = 32,
    EXCHANGE_REASON_SIZE = 201, /* of a freeze or a halt; a longer reason is cut */
    EXCHANGE_ASK_TO_MOST = 32,  /* accounts that one ask names */
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
    uint32_t cells_per_account, classes_per_account; /* cells and classes used by one account */
    /* The key of the hash tables is no cap. The operator of an exchange for strangers draws it, so
     * that nobody can choose ids that collide. No effect, hash or snapshot depends on it. */
    uint64_t table_key[2];
};

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
    /* The broker sets caps and rules; a lower cap does not touch existing state. A number of rules
     * that may not follow the one in force makes the command change nothing. */
    EXCHANGE_LIMITS,
    EXCHANGE_EPOCH, /* the broker starts an epoch: dice come from another secret */
    EXCHANGE_REPLACE,
    EXCHANGE_BANDS,
    EXCHANGE_OWNER,
    EXCHANGE_JUDGE,
    EXCHANGE_OUTAGE, /* the broker was down for a time that log time lacks */
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
    const char *reason; /* for everybody concerned; NULL: none */
};
struct exchange_halt {
    bool halted;
    const char *reason; /* likewise */
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
    EXCHANGE_LIMIT,     /* the unfilled remainder rests; a bid needs a cap and pays it as maker */
    EXCHANGE_IOC,       /* the unfilled remainder is cancelled */
    EXCHANGE_FOK,       /* a bid that is filled at once and in full, or its job is cancelled */
    EXCHANGE_POST_ONLY, /* an order that only rests; it is refused when it would trade at once */
    /* A bid waits until all can be filled at once; then it is a MARKET order. */
    EXCHANGE_ALL_OR_NONE,
    EXCHANGE_MARKET, /* a bid that rests at its limit and pays the clearing price (fill_prices.h) */
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
/* A lease lives at most this long. A firm lease counts as one with this notice and this minimum
 * run. */
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
    bool has_slots, has_price, has_budget, has_deadline;
    /* An ask offers these slots; a bid uses so many at a time, 0: as many as are ready. */
    uint32_t slots;
    int64_t price_micro; /* ask: least price; bid: its cap */
    uint32_t rate; /* The bid's rate when the price is a value; RATE_NONE means per slot-hour. */
    int64_t budget_micro; /* the job's; never less than before */
    int64_t deadline_ns;  /* the job's; it may have had none */
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
    uint64_t output_bytes; /* size of the files that `given` names */
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
    int64_t cap_micro; /* LIMIT_NONE: the limit follows from the budget */
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
    int64_t good_till_ns; /* subtasks not started by then are cancelled; 0: never */
    /* The job ends at this moment, and keeps the results accepted before; 0: no deadline. */
    int64_t deadline_ns;
    /* The expectations hold on every device, and are no guess. Nothing without a deadline. */
    bool is_expectation_stated;
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
        int64_t outage_ns; /* OUTAGE: how long, by the broker; 0 or less changes nothing */
    };
};

#endif
