/* exchange/state.h - the exchange's inside: its records and the small functions its files share.
 *
 * Every entity begins with a `struct tracked`: it belongs to the multiset hash and to the snapshot.
 * Whoever changes an entity calls touch() on it; the hash is brought up to date when it is asked for.
 * Order always comes from numbers and lists (accounts by number, jobs and leases by age), never from
 * addresses. Not for use outside exchange/. */
#ifndef BOURSE_EXCHANGE_STATE_H
#define BOURSE_EXCHANGE_STATE_H

#include "base/checked.h"
#include "base/list.h"
#include "exchange/effort.h"
#include "exchange/exchange.h"
#include "exchange/lifecycle.h"
#include "exchange/table.h"
#include "ledger/accounts.h"
#include "matching/book.h"

/* Numbers of the protocol that the exchange decides by. Cores do not include one another; a unit test
 * compares each with protocol/message.h and protocol/reject.h. */
enum {
    XROLE_CONSUMER = 1,
    XROLE_PROVIDER = 2,
    XROLE_RISK = 16,
    XROLE_OPERATOR = 32,
    XROLE_REFEREE = 64,
    XOUTCOME_OK = 0,
    XOUTCOME_OUTPUT_LIMIT = 8,
    XOUTCOME_OUTPUT_MISSING = 9,
    XOUTCOME_INPUT_MISSING = 10,
    XOUTCOME_PROGRAM_MISSING = 11,
    XOUTCOME_IMAGE_MISSING = 12,
    XOUTCOME_REFUSED = 13,
    XOUTCOME_CANCELLED = 14,
    XOUTCOME_JAIL_FAILED = 15,
    XOUTCOME_TERM_OVER = 16,
    XOUTCOME_PREEMPTED = 17,
    XVERDICT_ACCEPT = 1,
    XVERDICT_REJECT = 2,
    XVERDICT_UNSURE = 3,
    XATTEMPT_ACCEPTED = 0,
    XATTEMPT_FAILED_PAID = 1,
    XATTEMPT_FAILED_UNPAID = 2,
    XATTEMPT_LATE = 3,
    XATTEMPT_REFUTED = 4,
    XREASON_NONE = 0,
    XREASON_NO_DEVICE = 1,
    XREASON_NO_ASK = 2,
    XREASON_PRICE = 3,
    XREASON_BUSY = 4,
    XREASON_BUDGET = 5,
    XREASON_HALTED = 6,
    XREASON_SUBTASKS_FAILED = 7,
    XREASON_ERROR_LIMIT = 8,
    XREASON_CANCELLED = 9,
    XREASON_RUNNING = 10,
    XREASON_PROVIDERS_FAILED = 11,
    XREASON_AVOIDED = 12,
    XREASON_REFEREE = 13,
    XREASON_NO_VERDICT = 14,
    XREASON_EXPIRED = 15,
    XREASON_NOT_FILLED = 16,
    XREASON_LEASES_OVER = 17,
    XREASON_NOT_WHOLE = 18,
    XREASON_PROMISED = 19,
    XEND_RETURNED = 0,
    XEND_TERM = 1,
    XEND_CANCELLED = 2,
    XEND_UNKNOWN = 3,
    XEND_FAILED = 4,
    XEND_REVOKED = 5,
    XEND_PREEMPTED = 19,
    XREJECT_ROLE = 7,
    XREJECT_ID_EXPIRED = 8,
    XREJECT_ID_REUSED = 9,
    XREJECT_ID_TABLE_FULL = 10,
    XREJECT_NOT_FOUND = 20,
    XREJECT_EXISTS = 21,
    XREJECT_FROZEN = 22,
    XREJECT_HALTED = 23,
    XREJECT_FUNDS = 24,
    XREJECT_BUDGET = 25,
    XREJECT_PRICE = 26,
    XREJECT_QUANTITY = 27,
    XREJECT_LIMIT = 28,
    XREJECT_REQUIREMENT = 29,
    XREJECT_VERIFY = 30,
    XREJECT_INVITATION = 31,
    XREJECT_DEVICE = 32,
    XREJECT_STATE = 33,
    XREJECT_SELF_MATCH = 34,
    XREJECT_WOULD_TRADE = 35,
    XREJECT_HOURS = 38,
    XREJECT_ACCOUNT = 39,
};

/* Policy of the exchange, in one place. */
#define ID_AGE_NS (24 * NS_PER_HOUR)
#define ID_AHEAD_NS (600 * NS_PER_S)
#define LEASE_GRACE_NS (5 * NS_PER_S) /* after the term: results on their way still count */
#define LEASE_IDLE_NS (10 * NS_PER_S) /* a lease whose queue stayed empty that long is returned */
#define LEASE_AGE_MOST_NS                                                                          \
    EXCHANGE_RUN_MOST_NS /* then a new one: slot-time of a lease stays within int64 */
#define GOOD_TILL_MOST_NS (367 * 24 * NS_PER_HOUR) /* from when a job is submitted */
#define CLOSING_NS (20 * NS_PER_S)  /* a closing job waits that long for its withdrawn attempts */
#define AVOID_NS (10 * NS_PER_S)    /* a provider that failed a job gets no new lease of it */
#define REFUTED_NS (60 * NS_PER_S)  /* one whose result was refuted, likewise */
#define STRAGGLER_LEAST_NS NS_PER_S /* nothing that ran less is started once more elsewhere */
#define MOVE_LEAST_NS                                                                              \
    (50 * NS_PER_MS)              /* queued behind less, it is not worth the way back and forth */
#define SERVES_NS (60 * NS_PER_S) /* blobs stay readable after a lease ended */
#define WINDOW_TARGET_NS                                                                           \
    (20 * NS_PER_MS) /* work in flight per lane: this much time, at least 2 subtasks */
enum {
    WINDOW_LEAST = 2,
    WINDOW_MOST = 256,      /* reached below 80 us only: by no-ops, not by what starts a process */
    WINDOW_JOB_MOST = 2048, /* of all lanes of a job together, beyond WINDOW_ALWAYS in each */
    WINDOW_ALWAYS = 64,
    VANISHED_MOST = 16,      /* attempts of one subtask after which one that vanished is the last */
    ATTEMPTS_MOST = 1000,    /* of one subtask, whatever ended them: with one more it has failed */
    LEASE_FAILURES_MOST = 2, /* in a row, by the provider's fault */
    AVOIDED_PROVIDERS = 8,   /* per job */
    REFUSALS_KEPT = 256,     /* of one account: its oldest make room for its next */
    ENDED_JOBS_KEPT = 10000, /* of one account: its oldest make room for its next */
    ENDED_LEASES_FORGOTTEN = 1024, /* at a time, when leases or attempts reach their limit */
    STRAGGLER_TIMES = 2,           /* as long as the others took on average */
    STRAGGLER_SAMPLES = 4,         /* that were accepted */
    MOVES_MOST = 4, /* attempts of a subtask that is still taken back from a slow lane */
    PAGE_SUBTASKS = 256,
    PARTS_MOST = 17,                   /* of a job, the first among them */
    GRAPH_SUBTASKS_MOST = 65536,       /* of a job with a graph */
    GRAPH_EDGES_MOST = 131072,         /* of a graph */
    GIVEN_BYTES_MOST = 16384,          /* that one subtask leaves to those that wait for it */
    GIVEN_HEAD_BYTES = 4,              /* before each that a subtask is given, as it is sent */
    GIVEN_WORK_BYTES_MOST = 768 << 10, /* that one subtask is given, with these */
    TERMS_ATTRIBUTES = 3,
    CELL_ATTRIBUTES_MAX =
        ATTRIBUTE_COUNT_MAX + 2 + TERMS_ATTRIBUTES, /* the instrument, `referee`, its terms */
    CHECKS_UNSURE = 2,  /* checks of a result that came to no verdict: then nobody is accused */
    CHECKS_MISSING = 2, /* that did not find what it left: then it is not there */
};
#define NO_SUBTASK UINT32_MAX
#define NO_CLASS UINT32_MAX /* of a job without a bid */

enum record_type { /* in snapshots; numbers never change */
                   RECORD_MARKET = 1,
                   RECORD_MEMBER = 2,
                   RECORD_INVITATION = 3,
                   RECORD_ID = 4,
                   RECORD_PROVIDER = 5,
                   RECORD_DEVICE = 6,
                   RECORD_ASK = 7,
                   RECORD_JOB = 8,
                   RECORD_PAGE = 9,
                   RECORD_LEASE = 10,
                   RECORD_CELL = 11,
                   RECORD_CLASS = 12,
                   RECORD_LIMITS = 13, /* once a command has set them */
                   RECORD_GRAPH = 14,
                   RECORD_GIVEN = 15,
                   RECORD_HELD = 16,
};

struct tracked {
    uint8_t type;
    bool is_dirty, is_counted;
    struct list_link dirty; /* in exchange->dirty while is_dirty */
    struct hash32 hash;     /* as counted in exchange->total */
};

/* Jobs that have ended, the oldest on top. Not recorded. */
struct job_heap {
    struct ended_job {
        uint64_t order; /* the job's: jobs lie far apart */
        struct job *job;
    } * jobs;
    uint32_t count, capacity;
};
enum heap_kind { HEAP_OF_ALL, HEAP_OF_OWNER };

struct
    member { /* an account's rights; its money is in exchange->accounts, and is part of this record */
    struct tracked tracked;
    struct key32 key;
    uint32_t number;
    uint32_t roles;
    bool is_frozen;
    uint32_t ids; /* in the id window */
    uint32_t open_jobs;
    char name[EXCHANGE_NAME_SIZE];
    int64_t donated_ns;  /* slot-time that its jobs had for nothing, as it had faded */
    int64_t donated_day; /* on this day, since 1970 */
    /* not recorded */
    int128 promised_ns;        /* slot-time that its leases at 0 may use yet */
    bool shares_name;          /* it was the first of that name, and not the last */
    struct provider *provider; /* or NULL */
    uint32_t classes;          /* that its open jobs use */
    struct list_link jobs;     /* by age */
    uint32_t job_count;        /* ended ones too */
    struct job_heap ended;     /* of those */
    uint64_t open_subtasks;    /* of its open jobs */
    struct list_link refusals; /* struct refused_id, oldest first */
    uint32_t refusal_count;
};

/* A cell or class of the book as a record. */
struct kind {
    struct tracked tracked; /* type 0: the number is free */
    uint32_t number;
};

/* By how many parts of its open jobs an account uses a class. Not recorded. */
struct class_use_key {
    uint32_t account, class_id;
};
struct class_use {
    struct class_use_key key; /* compared as bytes: no padding (4 + 4) */
    uint32_t parts;
    struct list_link all;
};

struct invitation {
    struct tracked tracked;
    struct list_link all; /* by expiry, then age */
    struct hash32 token_hash;
    uint32_t roles;
    int64_t credits_micro, expires_ns;
    uint32_t issuer;
    char name[EXCHANGE_NAME_SIZE];
};

struct id_key {
    struct id128 id;
    uint32_t account;
};
struct id_entry {
    struct tracked tracked;
    struct list_link age; /* oldest first */
    struct id_key key;    /* compared as bytes: no padding (16 + 4) */
    struct hash32 body;
    uint64_t index;
    int64_t log_time_ns;
    bool is_refused; /* it is the beginning of a refused_id */
};
struct refused_id {
    struct id_entry entry;
    struct list_link of_member;
    struct exchange_reject why;
};

struct provider {
    struct tracked tracked;
    struct list_link all; /* by account number of first advertisement */
    uint32_t number;
    uint8_t state;  /* enum provider_state */
    uint64_t order; /* place in `all` */
    struct list_link devices;
    /* not recorded */
    struct list_link leases; /* that have not ended, by number */
    uint32_t lease_count;
};

struct device_key {
    struct id128 device;
    uint32_t provider;
};
struct device {
    struct tracked tracked;
    struct list_link of_provider;
    struct device_key key;
    uint64_t order;
    uint32_t slots, leased;
    uint32_t cell;
    bool is_advertised; /* false: gone from the list, kept while leases stand */
    char label[EXCHANGE_NAME_SIZE];
    struct ask *ask; /* the one standing, or NULL */
};

struct ask {
    struct tracked tracked;
    struct id128 order;
    struct device *device;
    uint32_t slots;
    int64_t price_micro, good_till_ns, max_term_ns;
    uint64_t sequence;
    uint8_t type;      /* enum exchange_order_type: an IOC is gone when its step ends */
    uint32_t to_count; /* 0: anybody's bid may fill it */
    uint32_t to[EXCHANGE_ASK_TO_MOST];
    struct hours hours;
    /* not recorded */
    struct exchange_terms terms; /* as its device's cell says them */
    bool is_open;                /* as of now; else its free slots are none */
    int64_t turns_ns;            /* when to look at that again; INT64_MAX: never */
    uint32_t handle;             /* between steps it rests; one that arrives fills first */
    struct list_link wanting;    /* in exchange->wanting_asks when its free slots grew */
    /* Scratch of whole.c: slots in the plan, and the last count that it was in. */
    uint32_t planned;
    uint64_t counted;
};

struct subtask {
    uint8_t state;    /* enum subtask_state */
    uint8_t live;     /* attempts out that nobody doubts */
    uint8_t failures; /* of its program */
    uint8_t crashes;  /* of its providers */
    uint16_t attempts;
    uint16_t queued; /* 1 while in the job's retry queue */
    uint32_t next;   /* in the retry queue */
};
static_assert(sizeof(struct subtask) <= 24, "10 million waiting subtasks in 1 GiB");

struct page {
    struct tracked tracked;
    struct job *job;
    uint32_t number;
    uint32_t count; /* PAGE_SUBTASKS, or fewer in the last of the job */
    struct subtask subtasks[];
};

/* Subtasks of a job under one requirement, with a bid of their own. Most jobs have one part. */
struct part {
    struct job *job;
    uint32_t number;
    uint32_t first, end; /* its subtasks: first .. end - 1 */
    uint32_t width, at_most;
    int64_t cap_micro, bid_micro; /* cap as given; limit of its bid */
    uint8_t rate; /* of both, where they are values; RATE_NONE: they are per slot-hour */
    int64_t limit_ns, term_ns, expect_ns;
    uint32_t class_id; /* of its bid; NO_CLASS without one */
    uint64_t sequence; /* of its bid */
    uint32_t fresh;    /* subtasks from here on were never started; unless there is a graph */
    uint32_t retry_head, retry_tail;
    uint32_t waiting; /* for a lane; those that wait for other subtasks are not counted */
    uint32_t running, checking;
    int64_t straggler_ns; /* when to look whether something runs too long; INT64_MAX: not */
    /* not recorded */
    uint32_t *ready; /* with a graph: a heap of those that wait for a lane and were never started */
    uint32_t ready_count;
    uint32_t lanes; /* of leases that take work */
    /* Of its bid while it stands, else BOOK_NONE. Between steps the bid rests; one that arrives fills first. */
    uint32_t handle;
    uint32_t decided;           /* subtasks: accepted, failed or cancelled */
    struct list_link wanting;   /* in exchange->wanting_parts when it may buy more */
    struct list_link spread;    /* in exchange->spreads when subtasks came to its queue */
    struct list_link front;     /* in exchange->fronts when they may go before what is queued */
    struct list_link challenge; /* in exchange->challenges when it found nothing to fill from */
};

/* What an accepted subtask has left, kept until all that wait for it are decided. */
struct given {
    struct tracked tracked;
    const struct job *job;
    uint32_t index, length;
    uint8_t bytes[]; /* opaque */
};

/* Which subtasks wait for which. Those that one waits for have lower indexes, so there is no cycle. */
struct graph {
    struct tracked tracked;
    struct job *job;
    uint32_t *rank; /* of each subtask; NULL: all are equal */
    uint32_t *
        first_after; /* what subtask i waits for: after[first_after[i]] .. after[first_after[i + 1] - 1] */
    uint32_t *after;
    /* not recorded */
    uint32_t *first_next, *next; /* the same from the other end: what waits for it */
    uint32_t *blocked;           /* of those it waits for, not accepted yet */
    uint32_t *undecided;         /* of those that wait for it, not decided yet */
    struct given **given;        /* by subtask; NULL: nothing is kept */
};

/* A result that has come and is neither taken nor refuted before a referee has judged it. What it will be paid stays
 * in the reserve of its lease, which is kept as long. */
struct held {
    struct tracked tracked;
    struct lease *lease; /* of the job */
    uint32_t index, attempt;
    uint64_t batch_index; /* the command that it came in, and */
    uint32_t position;    /* its place there: those that came first are checked first */
    int64_t paid_ns;      /* slot-time that it is paid for, if it is */
    struct hash32 hash, dice;
    uint8_t unsure, missing; /* checks of it that came to that */
    uint32_t
        shy_of; /* who made the last of these: another goes first. EXCHANGE_NO_ACCOUNT: nobody */
    uint32_t length; /* of bytes: the encoded Result */
    /* not recorded */
    struct check_queue *queue; /* where its check waits for a lane, or NULL */
    struct list_link waiting;
    uint8_t bytes[];
};

/* Checks that wait for a lane, of results of one provider, those first that came first. */
struct check_queue {
    struct list_link all;
    uint32_t maker, shy_of;
    uint32_t count;
    struct list_link waiting; /* struct held */
};

/* Of a job whose results are checked: its subtasks are n others and then n checks, the last part. Not recorded. */
struct checks {
    struct list_link queues;
    struct held **held; /* by index of the subtask; NULL: nothing is held of it */
};

struct job {
    struct tracked tracked;
    struct list_link all; /* by age */
    struct id128 id;
    uint64_t order; /* age */
    uint32_t owner;
    char name[EXCHANGE_NAME_SIZE];
    struct hash32 manifest;
    uint32_t subtasks, retries, error_limit, crash_limit;
    struct part *parts;
    uint32_t part_count;
    uint8_t phase;   /* enum job_phase */
    uint8_t type;    /* enum exchange_order_type of its bids; LIMIT once all were filled at once */
    uint8_t reason;  /* why it ended, or what it closes for; open: computed when asked */
    bool is_closing; /* waits for withdrawn attempts, then settles as `ends_as` */
    uint8_t ends_as;
    int64_t closing_ns; /* when waiting ends; INT64_MAX: what runs may take its time */
    struct hold hold;
    int64_t reserved_micro; /* drawn by leases, not charged yet */
    uint32_t waiting, running, checking, accepted, failed, cancelled;
    bool is_checked;   /* its last part is the checks of all others */
    uint32_t unjudged; /* of those that failed: paid, because no check of them came to a verdict */
    int64_t submitted_ns, ended_ns;
    int64_t good_till_ns; /* what has not started by then is cancelled; 0: it waits for ever */
    struct {
        uint32_t provider;
        int64_t until_ns;
    } avoided[AVOIDED_PROVIDERS];
    uint32_t avoided_count;
    uint32_t interruptions_left; /* then its bids take firm leases only; UINT32_MAX: any number */
    /* not recorded */
    struct page **pages;
    struct graph *graph;   /* a record of its own; NULL: no subtask waits for another */
    struct checks *checks; /* NULL: none, or it has ended */
    struct list_link leases;
    struct list_link of_owner;
    uint32_t heap_at[2]; /* once ended: its place, by enum heap_kind */
    bool is_reported;    /* a JOB effect is due at the end of this step */
    struct list_link report;
    /* Of ALL_OR_NONE: to try again is in vain before `slots_freed` of the exchange has grown to this. */
    uint64_t try_again_at;
};

struct attempt_key {
    uint64_t job; /* its order: shorter than its id, and as unique */
    uint32_t index, attempt;
};
struct attempt {
    struct attempt_key key;    /* compared as bytes: no padding (8 + 4 + 4) */
    struct list_link of_lease; /* in order of dispatch */
    struct lease *lease;
    uint32_t lane;
    int64_t dispatched_ns;
    bool is_doubted; /* its provider is suspect and the subtask was queued again: both stay valid */
    bool is_fenced;  /* given up: a result that still comes is logged, not paid */
    bool is_withdrawn; /* the agent was told to stop it */
};

/* Paid time of a lane (docs/decisions.md D8): `seen` is the union of its attempts' intervals, dispatch to result,
 * as far as results came; a result is paid what it claims, as long as the sum stays within what was seen. */
struct lane {
    uint32_t in_flight;
    int64_t seen_until_ns;
    int64_t seen_ns, paid_ns;
    int64_t unbilled_from_ns; /* scratch of a renewal */
};

struct lease {
    struct tracked tracked;
    uint64_t id;
    struct list_link of_job; /* by age */
    struct job *job;
    struct part *part;
    struct device *device; /* NULL once ended */
    struct id128 device_id, ask;
    char label[EXCHANGE_NAME_SIZE];
    uint32_t provider;
    uint32_t slots, lane_count;
    int64_t price_micro;
    int64_t granted_ns, term_end_ns, ended_ns;
    uint8_t state; /* enum lease_state */
    uint8_t end_reason;
    bool is_simulated; /* its device was when it was granted: every result has to say so, or not */
    struct exchange_terms terms; /* as they were when it was granted */
    bool is_noticed;             /* another has taken it: it ends when the notice does */
    uint64_t former;             /* while it is promised: the lease that it will follow; else 0 */
    uint32_t accepted, failures_in_row;
    int64_t paid_ns; /* slot-time: lane time x width */
    int64_t charged_micro, reserved_micro;
    int64_t promised_ns;   /* slot-time that its owner may have of it for nothing yet, at price 0 */
    int64_t idle_since_ns; /* INT64_MAX while it has work */
    uint32_t live;         /* attempts in flight over all lanes */
    int64_t mean_ns;       /* moving average of a subtask's paid time */
    struct lane *lanes;
    /* not recorded: of its results that are held */
    uint32_t held_count;
    int64_t held_ns; /* slot-time that they may still be paid for */
    struct list_link attempts;
    struct list_link refill;      /* in exchange->refills when lanes may take more */
    struct list_link of_provider; /* until it ends */
    struct lease *successor;      /* promised, or NULL */
    uint32_t exposed;      /* handle in exchange->spot while another may take it, or BOOK_NONE */
    uint32_t exposed_cell; /* there, and */
    int64_t exposed_micro; /* what a challenger pays */
    struct list_link exposing; /* in exchange->exposures when that is new */
};

struct exchange_block { /* of the effects, what it holds behind it; freed with them */
    struct exchange_block *next;
};

enum timer_kind { TIMER_LEASE, TIMER_ASK, TIMER_JOB };
struct timer {
    int64_t at_ns;
    uint8_t kind;
    struct id128 key; /* LEASE: id in the first 8 bytes; ASK: order; JOB: id */
};

struct exchange {
    struct exchange_limits limits;
    struct tracked limits_tracked;
    uint32_t rules; /* 0: no command has set limits and rules */
    /* market record */
    struct tracked tracked;
    bool has_genesis, is_halted;
    struct id128 cluster;
    uint32_t fee_ppm;
    int64_t price_band_micro;
    uint64_t index, sequence, next_lease, next_order;
    int64_t now_ns;
    uint64_t epochs;          /* that began */
    struct hash32 commitment; /* SHA-256 of the secret of the last; zeros before the first */
    /* entities */
    struct accounts *accounts;
    struct member **members; /* by account number; the system's three too */
    uint32_t member_count, member_capacity;
    struct table members_by_key;
    struct table members_by_name; /* the first of each name; "" is none */
    struct table invitations, ids, devices, asks, jobs, leases, attempts, class_uses;
    struct list_link id_ages, invitation_list, provider_list, job_list, class_use_list;
    uint32_t invitation_count, ask_count, job_count, lease_count, attempt_count;
    uint64_t subtask_count;
    struct job_heap ended;
    struct book *book;
    struct kind *cells, *classes; /* by number, up to the limits */
    uint32_t *free_handles;
    uint32_t free_handle_count, handle_capacity;
    void **orders_by_handle; /* struct ask * or struct part *: the book knows which side */
    struct spot *spot;       /* NULL: there never was a lease that another may take */
    /* Of whole.c, not recorded. */
    uint32_t wholes;            /* jobs whose bids wait to be filled all at once */
    uint64_t slots_freed;       /* slots of asks that became free, or came, so far */
    const struct ask *matching; /* whose turn it is */
    uint64_t counts;
    struct planned_fill *plan;
    uint32_t plan_count, plan_capacity;
    /* work of this step */
    struct list_link wanting_asks, wanting_parts, refills, spreads, fronts, reports, challenges,
        exposures;
    struct exchange_effects *effects;
    const struct exchange_command *command;
    bool is_rejected;                 /* the present command */
    struct exchange_reject rejection; /* then: why */
    uint32_t accept_as;               /* account that its id is kept under */
    bool is_out_of_memory;
    struct exchange_effect spare; /* where effects go when memory is short */
    /* timers: a heap by (at, kind, key); entries may be early or stale */
    struct timer *timers;
    size_t timer_count, timer_capacity;
    size_t timer_rebuild_at; /* so many are weeded out first */
    /* hash */
    struct feed *feed; /* NULL: nobody follows the market */
    struct list_link dirty;
    uint64_t total[4]; /* sum of the records' hashes, four lanes of 64 bits */
};

/* ---- exchange.c */
struct exchange_effect *emit(struct exchange *exchange, enum exchange_effect_type type,
                             uint32_t account);
struct ledger_record *emit_ledger(struct exchange *exchange, enum ledger_kind kind);
struct exchange_effect *reject(struct exchange *exchange, uint32_t code, const char *field,
                               int64_t value, int64_t limit); /* `field` fits EXCHANGE_FIELD_SIZE */
void report_job(struct exchange *exchange, struct job *job);
struct member *member_by_number(const struct exchange *exchange, uint32_t number);
struct member *sender(const struct exchange *exchange); /* of the present command, or NULL */
void *allocate(struct exchange *exchange, size_t size); /* zeroed; NULL sets is_out_of_memory */
uint32_t handle_take(struct exchange *exchange, void *order); /* BOOK_NONE: none left */
void handle_give(struct exchange *exchange, uint32_t handle);
void copy_name(char ret_name[EXCHANGE_NAME_SIZE], const char *name);

/* Of an id that stands in the table and in the list of all by age: its account's too. */
void refusal_link(struct exchange *exchange, struct refused_id *refused);

/* Makes these the caps and rules, and a record of the state. */
void limits_restore(struct exchange *exchange, const struct exchange_set_limits *set);

/* ---- timers.c */
void timer_arm(struct exchange *exchange, enum timer_kind kind, const struct id128 *key,
               int64_t at_ns);
void timers_fire(struct exchange *exchange); /* all that are due at now_ns, in order */
/* All deadlines of an open job and its leases. */
void timers_arm_job(struct exchange *exchange, const struct job *job);
void timers_weed(struct exchange *exchange); /* drops what is stale; at the end of a step */
struct id128 timer_key_of_lease(uint64_t lease);

/* ---- members.c */
void apply_genesis(struct exchange *exchange, const struct exchange_genesis *genesis);
void apply_join(struct exchange *exchange, const struct exchange_join *join);
void apply_mint(struct exchange *exchange, const struct exchange_mint *mint);
void apply_invite(struct exchange *exchange, const struct exchange_invite *invite);
void apply_freeze(struct exchange *exchange, const struct exchange_freeze *freeze);
void apply_halt(struct exchange *exchange, const struct exchange_halt *halt);
void invitations_expire(struct exchange *exchange);
bool member_link_name(struct exchange *exchange, struct member *member); /* false: no memory */
void invitation_link(struct exchange *exchange, struct invitation *invitation);

/* ---- kinds.c */
/* References to the cells of the devices, or to the class, for the sender of the present command: one more of each
 * than its devices and open jobs use. False with the refusal, and no trace. What others use does not count, nor what
 * the advertisement replaces. */
bool cells_take(struct exchange *exchange, const struct exchange_advertise *advertise,
                uint32_t *ret_cells);
bool class_take(struct exchange *exchange, const struct requirement *needs, enum rate rate,
                uint32_t *ret_class);
/* One part more of that account with that class, which it holds; false: out of memory. */
bool class_use_add(struct exchange *exchange, uint32_t account, uint32_t class_id);
void cell_give(struct exchange *exchange, uint32_t cell);
/* What the market calls a device of that cell; "" where it says none. */
void cell_instrument(const struct exchange *exchange, uint32_t cell,
                     char ret_text[ATTRIBUTE_TEXT_SIZE]);
/* Of a part of that account. */
void class_give(struct exchange *exchange, uint32_t account, uint32_t class_id);
/* As a snapshot says it: that number, and as yet nobody's. False when that cannot be. Whoever refers to it holds it
 * (book_cell_hold); kinds_settle gives back what restoring held, false when one is nobody's. */
bool cell_restore(struct exchange *exchange, uint32_t cell, const struct attribute *attributes,
                  size_t count);
bool class_restore(struct exchange *exchange, uint32_t class_id, const struct requirement *needs,
                   enum rate rate);
bool kinds_settle(struct exchange *exchange);

/* What leases of the cell's asks are. */
void cell_terms(const struct exchange *exchange, uint32_t cell, struct exchange_terms *ret_terms);
/* The attributes that say them, TERMS_ATTRIBUTES of them; and whether one is of these. */
void terms_attributes(const struct exchange_terms *terms, struct attribute *ret_attributes);
bool terms_is_attribute(const struct attribute *attribute);
/* A reference to the cell that is like the device's, but has these terms. False with the refusal, and no trace. */
bool cell_take_with_terms(struct exchange *exchange, const struct device *device,
                          const struct exchange_terms *terms, uint32_t *ret_cell);

/* ---- providers.c */
void apply_advertise(struct exchange *exchange, const struct exchange_advertise *advertise);
void apply_ask(struct exchange *exchange, const struct exchange_ask *ask);
void apply_cancel_order(struct exchange *exchange, const struct exchange_cancel_order *cancel);
void apply_statement(struct exchange *exchange, const struct exchange_statement *statement);
void apply_suspect(struct exchange *exchange, uint32_t provider);
void apply_returned(struct exchange *exchange, uint32_t provider);
void apply_goodbye(struct exchange *exchange, uint32_t provider);
enum {
    CANCEL_BY_OWNER = 0,
    CANCEL_DISCONNECT = 1,
    CANCEL_EXPIRED = 2,
    CANCEL_REPLACED = 3,
    CANCEL_FROZEN = 4,
    CANCEL_JOB_ENDED = 5,
    CANCEL_NOT_RESTING = 6 /* what was not filled at once of an order that does not rest */
};
void ask_cancel(struct exchange *exchange, struct ask *ask, uint8_t reason);
void provider_leases_revoke(struct exchange *exchange, struct provider *provider);
void device_slots_changed(struct exchange *exchange, struct device *device);
void device_drop_if_gone(struct exchange *exchange, struct device *device);
/* Its free slots are looked at again; they may have grown where the offer has. */
struct ask *ask_create(struct exchange *exchange,
                       const struct ask *fields); /* does not rest; NULL: no handle or memory */
/* As the book knows it: what is free of its slots, at its price and sequence. */
struct book_order ask_order(const struct ask *ask);
void ask_rest(struct exchange *exchange, const struct ask *ask);
uint32_t ask_refusal(const struct exchange *exchange, const struct ask *ask,
                     int64_t *ret_price_micro); /* likewise */
void ask_placed(struct exchange *exchange,
                struct ask *ask); /* is recorded, told and queued for matching */
void provider_asks_cancel(struct exchange *exchange, struct provider *provider, uint8_t reason);

/* ---- conditions.c */
/* Those that the command says, into an ask without any; else it is refused. */
bool conditions_read(struct exchange *exchange, const struct exchange_ask *given, struct ask *ask);
bool ask_is_for(const struct ask *ask, uint32_t account);
void ask_look_at_hours(const struct exchange *exchange,
                       struct ask *ask);                   /* is it open, and till when */
void ask_turn(struct exchange *exchange, struct ask *ask); /* a window of it begins or ends */
void ask_arm(struct exchange *exchange, const struct ask *ask);
/* Two orders of which the ask is not for the bid's account never trade: for book_match. */
struct reserving {
    const struct exchange *exchange;
    const struct ask *ask; /* whose bid is looked for; NULL: an ask is, for that account */
    uint32_t account;
};
bool is_reserved(void *context, uint32_t handle);

/* ---- donations.c */
/* What is left of donated use after so many days. */
int64_t donated_after(int64_t donated_ns, int64_t days);
int64_t member_donated_ns(const struct exchange *exchange, const struct member *member); /* now */
/* Whose rank is least is first in the donation queue. */
int64_t donation_rank(const struct exchange *exchange, uint32_t account);
/* Of its owner, if it ended now. */
int64_t donation_rank_without(const struct exchange *exchange, struct lease *lease);
/* Each does nothing to a lease at a price: it has begun a term; it was settled for so long; it has ended. */
void donation_promise(struct exchange *exchange, struct lease *lease);
void donation_settle(struct exchange *exchange, struct lease *lease, int64_t paid_ns);
void donation_ended(struct exchange *exchange, struct lease *lease);

/* ---- jobs.c */
void apply_submit(struct exchange *exchange, const struct exchange_submit *submit);
void apply_cancel_job(struct exchange *exchange, const struct exchange_cancel_job *cancel);
struct subtask *job_subtask(struct exchange *exchange, struct job *job,
                            uint32_t index); /* NULL: out of memory */
void subtask_changed(struct exchange *exchange, struct job *job, uint32_t index);
/* Ends a waiting or running subtask and withdraws what else is out for it. */
void subtask_decide(struct exchange *exchange, struct job *job, uint32_t index,
                    enum subtask_state to);
void job_requeue(struct exchange *exchange, struct job *job, uint32_t index);
/* The one place where a counted subtask changes its state. */
void subtask_becomes(struct part *part, struct subtask *subtask, enum subtask_state to);
/* Nothing of it waits or runs, or will unless a result of it is refuted. */
bool part_is_over(const struct part *part);
void part_look_if_over(struct exchange *exchange,
                       struct part *part); /* then its idle leases are ended in this step */
/* Retries go first, then subtasks never started, by rank, then index. Taken off what waits; NO_SUBTASK: none. */
uint32_t part_next_retry(struct exchange *exchange, struct part *part);
uint32_t part_next_fresh(struct exchange *exchange, struct part *part);
struct part *part_of(const struct job *job, uint32_t index);
void job_close(struct exchange *exchange, struct job *job, enum job_phase ends_as, uint8_t reason);
void job_expire(struct exchange *exchange, struct job *job); /* its time is up: what runs goes on */
void job_check(struct exchange *exchange, struct job *job);  /* ended? budget gone? wants more? */
void job_settle(struct exchange *exchange, struct job *job);
int64_t job_free_micro(const struct job *job);
void job_forget(struct exchange *exchange, struct job *job);
void job_free(struct job *job); /* its own memory: no leases, in no table */

/* ---- ended.c */
void ended_add(struct exchange *exchange, struct job *job); /* its phase is no longer open */
void ended_remove(struct exchange *exchange, const struct job *job);
struct job *ended_oldest(const struct job_heap *heap); /* NULL: none */

/* ---- bids.c */
void part_init(struct part *part, struct job *job, uint32_t number);
/* The parts of a new job, as the command says them; it is checked. False: out of memory. */
bool parts_create(struct exchange *exchange, struct job *job, const struct exchange_submit *submit);
/* Gives each part a class and a handle. False with the refusal, and no trace, when it has none or would trade with its
 * own owner. The bids do not rest: they arrive. */
bool parts_bid(struct exchange *exchange, struct job *job, const struct exchange_submit *submit);
/* Limit of the bid of a part of that cap, under that budget of its job: the cap; or what lets the budget buy the time that
 * is planned, within the price band. Of a bid by value, its value. Bids that wait to be filled all at once bid no more than
 * their budget covers for all. */
int64_t part_limit(const struct exchange *exchange, const struct part *part, int64_t cap_micro,
                   int64_t budget_micro);
/* What it gives for a slot-hour in that cell. */
int64_t part_limit_in(const struct exchange *exchange, const struct part *part, uint32_t cell);
/* Lanes that so many subtasks use at a time. */
uint32_t lanes_most(uint32_t subtasks, uint32_t at_most, uint32_t width);
/* The order id of its bid: the job's for the first part. */
struct id128 part_bid_id(const struct part *part);
void part_bid_record(struct exchange *exchange, const struct part *part);
/* Its bid as the book knows it: the slots it wants now, at its limit and sequence. */
struct book_order part_order(const struct part *part);
void part_rest(struct exchange *exchange, const struct part *part);
/* The code with which such a bid is refused when it arrives, or 0, and the price of the ask that it would meet first. */
uint32_t part_refusal(const struct exchange *exchange, const struct part *part,
                      int64_t *ret_price_micro);
/* What it wants may be another number now: its bid is queued for matching when it wants some. */
void part_wants(struct exchange *exchange, struct part *part);
void job_wants(struct exchange *exchange, struct job *job); /* all its parts */
/* The same, the best bid first: those of one command that do not rest yet arrive in that order. */
void job_bids_arrive(struct exchange *exchange, struct job *job);
void job_take_bids_away(struct exchange *exchange, struct job *job);
/* Its bid does not rest: what was filled is all that it gets. */
void part_stand_down(struct exchange *exchange, struct part *part);
/* It has no bids that stand: when its leases have ended, so has it. */
bool job_lives_off_leases(const struct job *job);
/* Its bids rest, and wait to be filled all at once. */
bool job_waits_for_all(const struct job *job);
bool bid_waits_for_all(const struct exchange *exchange, uint32_t handle);

/* ---- replace.c */
void apply_replace(struct exchange *exchange, const struct exchange_replace *replace);

/* ---- stragglers.c */
/* Nothing of its part waits, and the lease has an idle lane: it may help what holds the part up. */
void part_help(struct exchange *exchange, struct lease *idle);
void part_stragglers_due(struct exchange *exchange, struct part *part,
                         int64_t at_ns); /* its timer of that time */

/* ---- graph.c */
/* Whether it is one, of so many subtasks; else what is wrong, as a refusal says it. */
bool graph_well_formed(const struct exchange_graph *graph, uint32_t subtasks,
                       struct exchange_reject *ret_why);
/* The job's own, of a well-formed one; no subtask is ready yet. NULL: out of memory. */
struct graph *graph_create(struct exchange *exchange, struct job *job,
                           const struct exchange_graph *given);
void graph_destroy(struct graph *graph);
void graph_start(struct job *job); /* none was started */
/* After a snapshot: what follows from the states of the subtasks. */
void graph_restore(struct job *job);
void graph_keep(struct exchange *exchange, const struct job *job, uint32_t index,
                const uint8_t *bytes, uint32_t length); /* what it left; it was not kept before */
bool graph_hands_on(const struct job *job, uint32_t index); /* something undecided waits for it */
/* It was decided: what waits for it becomes ready, or is cancelled with all that waits for that. */
void graph_decided(struct exchange *exchange, struct job *job, uint32_t index,
                   enum subtask_state as);
uint32_t part_pop_ready(struct part *part); /* NO_SUBTASK: none */
/* What a subtask is given, in memory of the effects. */
void graph_give(struct exchange *exchange, const struct job *job, uint32_t index,
                struct exchange_work *work);
void graph_drop(struct exchange *exchange, struct job *job); /* with its records */

/* What it left is not what was accepted after all. */
void graph_forget_given(struct exchange *exchange, const struct job *job, uint32_t index);

/* ---- checks.c */
/* Whether the last part is the checks of all others; else it is refused. */
bool checks_well_formed(struct exchange *exchange, const struct exchange_submit *submit);
/* What a referee has that no provider may say of itself. */
void checks_attribute(struct attribute *ret_attribute);
bool checks_is_attribute(const struct attribute *attribute);
/* `needs`, and that attribute, unless they end with it. False: it has no room for more. */
bool checks_require(const struct requirement *needs, struct requirement *ret_needs);
bool checks_create(struct exchange *exchange, struct job *job); /* false: out of memory */
void checks_destroy(struct job *job);
void checks_restore(struct exchange *exchange, struct job *job); /* after a snapshot */
bool held_link(struct job *job,
               struct held *held); /* false: there is no such subtask, or one held */
bool part_is_checks(const struct part *part);
bool job_checks(const struct job *job,
                uint32_t index); /* whether that subtask's results are held */
/* Of what waits in the part for a lane, how much that provider may run: nobody judges its own results. */
uint32_t part_choice(const struct part *part, uint32_t provider);
uint32_t checks_next(struct exchange *exchange, struct lease *lease); /* NO_SUBTASK: none for it */
void check_requeue(struct exchange *exchange, struct job *job, uint32_t index);
void check_unqueue(const struct job *job, uint32_t index); /* it runs after all, or is no check */
/* The seed of that attempt; zeros when it is no check, or there is nothing to check. */
struct hash32 check_seed(const struct job *job, uint32_t index, uint32_t attempt);
/* The subtask that it is about; 0 when it is no check, or there is nothing to check. */
uint32_t check_subject(const struct job *job, uint32_t index);
/* What its result counts as: a verdict on what is no longer held is nobody's fault, one without the right seed the
 * referee's. */
uint8_t check_outcome(const struct job *job, const struct attempt *attempt,
                      const struct exchange_result *result);
void result_hold(struct exchange *exchange, struct lease *lease, const struct attempt *attempt,
                 const struct exchange_result *result, uint32_t position);
void check_begin(struct exchange *exchange, struct job *job, uint32_t index); /* of what is held */
/* After its result was settled. False: it was neither a verdict nor about inputs that are not there, and ends as any
 * subtask's. */
bool check_decide(struct exchange *exchange, struct lease *lease, const struct attempt *attempt,
                  uint8_t outcome, const struct exchange_result *result);
void check_failed(struct exchange *exchange, struct job *job, uint32_t index); /* for good */
/* All that is held is taken unchecked: its job does not wait for the checks. */
void checks_give_up(struct exchange *exchange, struct job *job);

/* ---- spot.c: leases that another bid may take, and those that are promised */
void spot_destroy(struct spot **self);
void spot_class_gone(struct exchange *exchange, uint32_t class_id);
/* The lease as it stands now may be taken, at another price perhaps, or may not. */
void lease_expose(struct exchange *exchange, struct lease *lease);
void device_expose_leases(struct exchange *exchange, const struct device *device);
void job_expose_leases(struct exchange *exchange, const struct job *job);
int64_t lease_exposed_ns(const struct lease *lease); /* from when on; INT64_MAX: never */
/* Its bid has found nothing to fill from: it may take a lease from another, in this step. */
void part_challenges(struct exchange *exchange, struct part *part);
bool spot_turn(struct exchange *exchange); /* false: nobody challenges anybody */
/* Its former is over: it begins, if its device is there still. */
void lease_begin(struct exchange *exchange, struct lease *lease, struct device *device);
/* ---- whole.c */
/* Fills all that the bids of the job want, or nothing: false. What stands between steps can not be filled so. */
bool job_fill_whole(struct exchange *exchange, struct job *job);
/* Whether that would come to anything now. */
bool job_can_fill_whole(struct exchange *exchange, struct job *job);

/* ---- fills.c */
/* The highest price with which it would be filled at once if it were replaced; -1: none. A read. */
int64_t ask_fills_at(const struct exchange *exchange, const struct ask *ask);
/* Whether somebody else's bid, who has had less for nothing, would get its slots if this lease at 0 ended. */
bool donation_is_due(struct exchange *exchange, struct lease *lease);
/* Whom an ask meets first: the best by price; at 0, who is first in the donation queue. As book_match says. */
bool ask_match(const struct exchange *exchange, const struct book_order *order, book_skip *skip,
               void *context, struct book_match *ret_match);
/* A lease of that ask: at once, or promised in the place of `former`. NULL: memory is short, and nothing was granted. */
struct lease *lease_grant(struct exchange *exchange, struct part *part, struct ask *ask,
                          uint32_t slots, int64_t price_micro, struct lease *former);
/* Lanes of `part` that what is left of its job's budget can cover for a term at this price. */
uint32_t part_affordable_lanes(const struct part *part, int64_t price_micro);
/* For its account, not avoided, of terms that the job takes, and there is something for it to do: nobody gets a lease for checks of its own
 * results. */
bool part_may_take(const struct exchange *exchange, const struct part *part, const struct ask *ask);
int64_t price_between(const struct exchange *exchange, const struct part *part,
                      const struct ask *ask);
/* Whether a bid that is better than the part's, and not one that waits to be filled all at once, takes the ask. */
bool ask_is_spoken_for(struct exchange *exchange, struct ask *ask, const struct part *part);
void market_run(struct exchange *exchange); /* matches all that wants, refills all that can take */

/* ---- feed.c: each does nothing where no feed is open */
void feed_destroy(struct feed **self);
/* The order under that handle rests, is gone, or has other slots. */
void feed_note(struct exchange *exchange, uint32_t handle);
void feed_cell_gone(struct exchange *exchange, uint32_t cell);
void feed_class_gone(struct exchange *exchange, uint32_t class_id);
void feed_trade(struct exchange *exchange, const struct ledger_record *fill);
void feed_settle(struct exchange *exchange); /* at the end of a step */

/* ---- results.c */
void apply_results(struct exchange *exchange, const struct exchange_results *results);
/* What is settled of a result, and by which check. */
struct settlement {
    uint32_t index, attempt;
    uint8_t outcome, status;
    struct hash32 hash;
    const uint8_t *bytes; /* alive as long as the effects */
    uint32_t length;
    uint64_t batch_index;
    uint32_t position;
    int64_t paid_ns; /* slot-time */
    uint8_t level;
    struct hash32 check;
};
void result_settle(struct exchange *exchange, struct lease *lease,
                   const struct settlement *settlement);
/* Slot-time that a result is paid for: its claim, within what was seen of its lane and not paid yet. */
int64_t result_paid_time(const struct exchange *exchange, struct lease *lease,
                         const struct attempt *attempt, int64_t busy_ns);
/* To the queue again, unless it has had all the tries that any subtask gets. */
void subtask_try_again(struct exchange *exchange, struct job *job, uint32_t index);

/* ---- leases.c */
void lease_end(struct exchange *exchange, struct lease *lease, uint8_t reason, bool tell);
/* A lease whose provider failed it too often in a row ends, and the job avoids that provider for a while;
 * one that is ending ends when nothing is in flight. */
void lease_end_if_failing(struct exchange *exchange, struct lease *lease);
void lease_due(struct exchange *exchange, struct lease *lease,
               int64_t at_ns);                     /* its timer of that time */
int64_t lease_deadline(const struct lease *lease); /* of one that has not ended */
void lease_arm(struct exchange *exchange, const struct lease *lease);
void lease_suspect(struct exchange *exchange, struct lease *lease);
void lease_returned(struct exchange *exchange, struct lease *lease);
void lease_wind_down(struct exchange *exchange, struct lease *lease);
/* One more attempt of a subtask, running or not, in that lane. */
void lease_start(struct exchange *exchange, struct lease *lease, uint32_t lane, uint32_t index);
/* Sets from when on each lane's use is not settled yet: since its first attempt in flight, or now. */
void lease_find_unbilled(const struct exchange *exchange, struct lease *lease);
void attempt_withdraw(struct exchange *exchange, struct attempt *attempt); /* the agent is told */
/* All attempts of a subtask: whatever still comes of them is logged, not paid. */
void attempts_give_up(struct exchange *exchange, struct job *job, uint32_t index);
/* One that has ended keeps the escrow of its results that are held, and nothing else. */
void lease_release_reserve(struct exchange *exchange, struct lease *lease);
void lease_withdraw_all(struct exchange *exchange, struct lease *lease);
void lease_refill(struct exchange *exchange, struct lease *lease);
void lease_refill_later(struct exchange *exchange, struct lease *lease); /* in this step */
/* What came back to the job's queue and found no free lane, before what its lanes have queued (P18). */
void part_retries_to_front(struct exchange *exchange, struct part *part);
struct lease *lease_by_id(const struct exchange *exchange, uint64_t id);
void lease_effect(struct exchange *exchange, const struct lease *lease,
                  enum exchange_effect_type type);
void work_effect(struct exchange *exchange, const struct lease *lease,
                 const struct attempt *attempt, enum exchange_effect_type type);
void job_link_owner(struct exchange *exchange, struct job *job);
void job_avoid(struct exchange *exchange, struct job *job, uint32_t provider, int64_t for_ns);
bool job_avoids(const struct exchange *exchange, const struct job *job, uint32_t provider);
int64_t job_avoids_for_ns(const struct exchange *exchange, const struct job *job,
                          uint32_t provider); /* from now; 0: it does not */
void withdraw_others(struct exchange *exchange, struct job *job, uint32_t index);
struct attempt *attempt_find(const struct exchange *exchange, const struct lease *lease,
                             uint32_t index, uint32_t number); /* NULL: none */
bool attempt_put(struct exchange *exchange, struct lease *lease, struct attempt *attempt);
void attempt_drop(struct exchange *exchange, struct attempt *attempt); /* and frees it */
/* Forgets what its agent says it has not: a result cannot come any more. */
void attempt_missing(struct exchange *exchange, struct lease *lease, struct attempt *attempt);
/* The provider's, from its grant on. */
void lease_link_provider(struct exchange *exchange, struct lease *lease);
void lease_forget(struct exchange *exchange, struct lease *lease);
void leases_make_room(struct exchange *exchange);
int64_t escrow_micro(int64_t price_micro, uint32_t slots,
                     int64_t term_ns); /* rounded up; INT64_MAX: too much */

/* ---- reads.c */
/* A predicate as reports write it: memory >= 1024, kind = "gpu". */
void predicate_text(const struct requirement_node *node, char *ret_text, size_t size);

/* ---- remedy.c */
struct explained { /* a device that is advertised, seen from a requirement */
    const struct device *device;
    uint64_t truth; /* the predicates that hold of it */
    struct effort effort;
    bool is_passed_over; /* simulated, and not asked for; or without the rate of a bid by value */
};
/* Of a need that is asked about (`part` is NULL), or of a job's part as it stands. The need is well formed; `seen` are all
 * devices there are. */
void remedy_find(const struct exchange *exchange, const struct exchange_need *need,
                 const struct part *part, const struct explained *seen, size_t count,
                 struct exchange_remedy *ret_remedy);
/* What comes before it, where all that it could have is leased; nothing when memory is short. */
void queue_find(const struct exchange *exchange, const struct exchange_need *need,
                const struct part *part, const struct explained *seen, size_t count,
                struct exchange_explanation *why);

/* ---- snapshot.c */
void track(struct exchange *exchange, struct tracked *tracked,
           enum record_type type); /* a new entity */
void touch(struct exchange *exchange, struct tracked *tracked);
void untrack(struct exchange *exchange, struct tracked *tracked); /* before it is freed */
/* Whether exchange_save would write these bytes. False, too, when memory is short. */
bool exchange_saves_as(const struct exchange *exchange, const uint8_t *bytes, size_t length);

#endif
