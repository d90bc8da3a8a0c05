/* The records are the exchange's memory of accounts, providers, asks, jobs, leases, and itself.
 * Only files of exchange/ include this header.
 *
 * Every entity begins with a `struct tracked`, so it belongs to the multiset hash and to the
 * snapshot. Every function that changes an entity calls tracking_touch() on it. Order always comes
 * from numbers and lists (accounts by number, jobs and leases by age), never from addresses. The
 * words "not recorded" mark fields that are in no hash and no snapshot. */
#ifndef BOURSE_EXCHANGE_STATE_RECORDS_H
#define BOURSE_EXCHANGE_STATE_RECORDS_H

#include "base/checked.h"
#include "base/list.h"
#include "exchange/exchange.h"
#include "exchange/policy.h"
#include "exchange/state/table.h"
#include "ledger/accounts.h"
#include "ledger/hold.h"
#include "matching/book.h"

/* Snapshots hold these numbers, so the numbers never change. */
enum record_type {
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
    RECORD_LIMITS = 13, /* exists once a command has set limits */
    RECORD_GRAPH = 14,
    RECORD_GIVEN = 15,
    RECORD_HELD = 16,
    RECORD_SAVED = 17,
    RECORD_STANDING = 18,
    RECORD_ACCUSATION = 19,
    RECORD_JURY = 20,
};

struct tracked {
    uint8_t type;
    bool is_dirty, is_counted;
    struct list_link dirty; /* member of exchange->dirty while is_dirty */
    struct hash32 hash;     /* value counted in exchange->total */
};

struct ended_job {
    uint64_t order; /* the job's, copied here because jobs lie far apart in memory */
    struct job *job;
};

/* This is a heap of one account's ended jobs, oldest first. Snapshots do not hold the heap. */
struct ended_jobs {
    struct ended_job *jobs;
    uint32_t count, capacity;
    uint32_t place; /* place of the account in exchange->enders while the heap is not empty */
};

/* This counts the parts of an account's open jobs that use a class. It is not recorded. */
struct class_use {
    uint32_t class_id, parts; /* no parts: the place is free */
};

/* A member is an account's rights. Its money is in exchange->accounts and part of this record. */
struct member {
    struct tracked tracked;
    struct key32 key;
    uint32_t number;
    uint32_t roles;
    bool is_frozen;
    char *frozen_why; /* the operator's reason, owned; NULL: none */
    uint32_t ids;     /* entries in the id window */
    uint32_t open_jobs;
    char name[EXCHANGE_NAME_SIZE];
    int64_t donated_ns;  /* faded slot-time that its jobs had at price 0 */
    int64_t donated_day; /* the day, since 1970, up to which donated_ns has faded */
    int64_t given_ns;    /* slot-time that its devices gave at price 0, ever */
    /* The fields below are not recorded. */
    struct standing *standing; /* a record of its own; NULL: none */
    int128 promised_ns;        /* slot-time that its leases at 0 may still use */
    bool shares_name;          /* true for the first account of a name that several have */
    struct provider *provider; /* NULL: none */
    struct class_use *uses;    /* hash table by class, searched upwards from the class's number */
    uint32_t use_capacity;     /* a power of two, or 0 */
    uint32_t classes;          /* classes that the open jobs use */
    struct list_link jobs;     /* sorted by age */
    uint32_t job_count;        /* includes ended jobs */
    struct ended_jobs ended;   /* ended jobs of the account */
    uint64_t open_subtasks;    /* sum over the open jobs */
    struct list_link refusals; /* struct refused_id, oldest first */
    uint32_t refusal_count;
};

/* Record of an account's conduct; most accounts have none (standing.c). */
struct standing {
    struct tracked tracked;
    const struct member *member;
    uint64_t group; /* accounts of one group share an owner; 0: the account is its own owner */
    char owner[EXCHANGE_NAME_SIZE]; /* name of the group */
    uint32_t refuted;               /* refuted results, less the faded ones */
    uint32_t refuted_ever;
    uint32_t overruled; /* results that the account refuted, and that were accepted in the end */
    int64_t proved_ns;  /* slot-time accepted by checks since the last refutation faded */
    int64_t withdrawn_until_ns; /* asks of the account are closed until then */
};

/* A cell or class of the book is stored as this record. */
struct kind {
    struct tracked tracked; /* type 0: the number is free */
    uint32_t number;
    struct exchange_terms terms; /* cell: as its attributes say; not recorded */
};

struct invitation {
    struct tracked tracked;
    struct list_link all; /* sorted by expiry, then age */
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
    bool is_refused; /* the entry is the first member of a refused_id */
};
struct refused_id {
    struct id_entry entry;
    struct list_link of_member;
    struct exchange_reject why;
};

struct provider {
    struct tracked tracked;
    struct list_link all; /* sorted by time of first advertisement */
    uint32_t number;
    uint8_t state;  /* enum provider_state */
    uint64_t order; /* place in `all` */
    struct list_link devices;
    struct list_link day_uses; /* struct day_use, oldest first */
    uint32_t day_use_count;
    /* The fields below are not recorded. */
    struct list_link leases; /* leases that have not ended, by number */
    uint32_t lease_count;
    int64_t suspect_ns; /* since then it is suspect; 0: unknown */
};

/* Slot-time that a device gave on one day, counted since an ask of the device had a daily bound.
 * The record outlives the device, so a device that pauses and returns gets no second day. */
struct day_use {
    struct list_link of_provider;
    struct id128 device;
    int32_t offset_min; /* offset of the clock that bounds the day */
    int64_t day, used_ns;
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
    bool is_advertised; /* false: withdrawn, kept while leases stand */
    char label[EXCHANGE_NAME_SIZE];
    struct ask *ask; /* the standing one, or NULL */
    /* The fields below are not recorded. */
    struct day_use *day_use; /* NULL: no ask has bounded its days */
    int128 promised_ns;      /* slot-time that its leases may still use, if day_use is set */
};

/* The clearing names the best bids that an ask leaves unfilled and whose limits a person named: the
 * best one, and the best one of another owner. */
enum { CLEARING_OWNERS = 2, CLEARING_BIDS_MOST = 1 << 14 }; /* bids looked at for one ask */
struct clearing {
    uint32_t count;
    uint32_t widest; /* width of the widest bid that the ask could serve */
    uint32_t owners[CLEARING_OWNERS];
    int64_t limits_micro[CLEARING_OWNERS];
};

struct ask {
    struct tracked tracked;
    struct id128 order;
    struct device *device;
    uint32_t slots;
    int64_t price_micro, good_till_ns, max_term_ns;
    uint64_t sequence;
    uint8_t type;      /* enum exchange_order_type; an IOC ends with its step */
    uint32_t to_count; /* 0: every account's bid may fill it */
    uint32_t to[EXCHANGE_ASK_TO_MOST];
    struct hours hours;
    int64_t daily_ns; /* 0: no daily bound */
    /* The fields below are not recorded. */
    struct exchange_terms terms; /* terms of its device's cell */
    bool is_open;                /* now is within `hours`; a closed ask has no free slots */
    int64_t turns_ns;            /* time of the next look at is_open; INT64_MAX: never */
    uint32_t handle;             /* handle in the book, where the ask rests between steps */
    struct list_link wanting;    /* member of exchange->wanting_asks when its free slots grew */
    /* Scratch of exchange/market/all_or_none.c: the slots that the plan uses, and the number of the
     * last count that included the ask. */
    uint32_t planned;
    uint64_t counted;
    /* Scratch of exchange/market/fill_prices.c: what was found when the exchange's `market_changes`
     * had the value `cleared_at`. */
    uint64_t cleared_at;
    struct clearing clearing;
};

struct subtask {
    uint8_t state;    /* enum subtask_state */
    uint8_t live;     /* attempts out that are not doubted */
    uint8_t failures; /* failures of its program */
    uint8_t crashes;  /* failures by its providers */
    uint16_t attempts;
    uint16_t queued; /* 1 while in the job's retry queue */
    uint32_t next;   /* next subtask of the retry queue */
};
static_assert(sizeof(struct subtask) <= 24, "10 million waiting subtasks in 1 GiB");

struct page {
    struct tracked tracked;
    struct job *job;
    uint32_t number;
    uint32_t count; /* PAGE_SUBTASKS, or fewer in the last page of the job */
    struct subtask subtasks[];
};

/* A part is the subtasks of a job under one requirement, with a bid of their own. Most jobs have
 * one part. */
struct part {
    struct job *job;
    uint32_t number, first, end; /* the subtasks of the part are first .. end - 1 */
    uint32_t width, at_most;
    int64_t cap_micro, bid_micro; /* cap as given; limit of its bid */
    uint8_t rate;                 /* enum rate of both; RATE_NONE: per slot-hour */
    int64_t limit_ns, term_ns, expect_ns;
    uint32_t class_id; /* class of its bid; NO_CLASS without one */
    uint64_t sequence; /* sequence of its bid */
    uint32_t fresh;    /* first subtask never started, unless there is a graph */
    uint32_t retry_head, retry_tail, running, checking;
    uint32_t waiting;     /* subtasks that wait for a lane, not for other subtasks */
    int64_t straggler_ns; /* time of the next look for stragglers; INT64_MAX: never */
    /* The fields below are not recorded. */
    uint32_t *ready; /* graph: heap of subtasks that wait for a lane and were never started */
    uint32_t ready_count;
    struct ready_order *order; /* of `ready` by expected time; NULL: no deadline, or alike */
    uint64_t undecided_ms;     /* graph: expected time of its subtasks that are not decided */
    uint32_t lanes;            /* lanes of leases that take work */
    /* Sums over its leases of accepted results, and of means times them (work/runtime_stats.h). */
    uint64_t samples;
    int128 mean_sum, said_sum, took_sum;
    uint32_t handle;          /* of the bid while it rests, between steps; else BOOK_NONE */
    uint32_t decided;         /* subtasks accepted, failed or cancelled */
    struct list_link wanting; /* member of exchange->wanting_parts when it may buy more */
    struct list_link spread;  /* member of exchange->spreads when subtasks came to its queue */
    struct list_link back;  /* member of exchange->backs when returned subtasks have no lane yet */
    struct list_link front; /* member of exchange->fronts when they may go before queued work */
    struct list_link challenge; /* member of exchange->challenges when its bid found no ask */
    struct list_link deep;      /* leases that have work queued in a lane, by their `deep` */
};

/* Output that an accepted subtask hands on, kept until all subtasks that wait for it are
 * decided. */
struct given {
    struct tracked tracked;
    const struct job *job;
    uint64_t file_bytes; /* size of the files, by residency_size; 0: unknown, or small */
    uint32_t index, length;
    uint8_t bytes[]; /* opaque */
};

/* The graph says which subtasks wait for which. A subtask waits only for lower indexes, so there is
 * no cycle. */
struct graph {
    struct tracked tracked;
    struct job *job;
    uint32_t *rank;      /* rank of each subtask; NULL: expect_ms ranks, or all rank the same */
    uint32_t *expect_ms; /* time of each subtask, 0: unknown; NULL: subtasks of a part are alike */
    /* Subtask i waits for after[first_after[i]] .. after[first_after[i + 1] - 1]. */
    uint32_t *first_after, *after;
    /* The fields below are not recorded. */
    uint32_t *first_next, *next; /* the edges reversed: subtasks that wait for i */
    uint32_t *blocked;           /* number that i waits for and that are not accepted */
    uint32_t *undecided;         /* number that wait for i and are not decided */
    struct given **given;        /* indexed by subtask; NULL: nothing is kept */
};

/* A referee says that a held result is wrong, or that its files are missing. The accusation counts
 * once a referee of another owner, or the job's client, agrees. */
struct accusation {
    struct tracked tracked; /* type 0: there is none */
    const struct held *held;
    uint32_t referee;
    uint32_t attempt;    /* attempt of the check that the seed was drawn for */
    struct hash32 check; /* Result of the accusing check */
};

/* A jury lists the accounts that judged a subtask. The jury of index NO_SUBTASK lists the referees
 * that the job no longer asks. */
struct jury {
    struct tracked tracked;
    struct list_link all; /* sorted by age, per job */
    const struct job *job;
    uint32_t index;
    int64_t look_ns; /* time to look whether anybody can still make a waiting subtask */
    uint32_t unmade; /* jury of the job: subtasks failed because nobody could make them */
    uint32_t count;
    uint32_t accounts[JUDGES_MOST];
    struct list_link looks; /* member of checks->looks while look_ns is not 0; not recorded */
};

/* A bar is an owner that has judged subtasks waiting in a part, and may not make those. */
struct bar {
    struct list_link of_part;
    uint32_t account; /* one account of the owner */
    uint32_t waiting; /* waiting subtasks of the part that the owner has judged */
    /* The owner may make no entry of the retry queue up to this one; NO_SUBTASK: not looked yet. */
    uint32_t passed;
};

/* A held result waits for a referee's verdict before it is accepted or refuted. Its possible pay
 * stays in the reserve of its lease, which is kept as long. */
struct held {
    struct tracked tracked;
    struct lease *lease; /* a lease of the job */
    uint32_t index, attempt;
    uint64_t batch_index; /* index of the command that brought the result */
    uint32_t position;    /* place in that command; earlier results are checked first */
    int64_t paid_ns;      /* slot-time to pay when it is accepted */
    struct hash32 hash, dice;
    uint8_t unsure;  /* checks that came to no verdict, or did not find its bytes */
    uint8_t missing; /* written under older rules, which counted checks without its files */
    /* Referee that came to no verdict last; another goes first. EXCHANGE_NO_ACCOUNT: none. */
    uint32_t shy_of;
    uint32_t length; /* size of `bytes`, the encoded Result */
    /* The fields below are not recorded. */
    struct accusation accusation; /* a record of its own */
    struct list_link of_accused;  /* among the accused results of its job */
    struct check_queue *queue;    /* queue in which its check waits for a lane, or NULL */
    struct list_link waiting;
    uint8_t bytes[];
};

/* The newest checkpoint that an attempt of the subtask saved; its next attempts go on from it. */
struct saved {
    struct tracked tracked;
    const struct job *job;
    uint32_t index, attempt;
    uint8_t missing; /* attempts that were given it and did not find its files */
    uint32_t length;
    uint8_t bytes[]; /* opaque */
};

/* Checks of results of one provider that wait for a lane, oldest result first. */
struct check_queue {
    struct list_link all;
    uint32_t maker, shy_of;
    uint32_t accuser; /* account that has judged them already; EXCHANGE_NO_ACCOUNT: none */
    uint32_t count;
    struct list_link waiting; /* struct held */
};

/* State of a job with checks: n subtasks, then n checks as its last part. Not recorded. */
struct checks {
    struct list_link queues;
    struct held **held;          /* indexed by subtask; NULL: no result is held */
    struct jury **juries;        /* indexed by subtask; NULL: nobody has judged it */
    struct jury *overruled;      /* jury of the whole job; NULL: none */
    uint32_t accused;            /* held results with an accusation */
    struct list_link all_juries; /* sorted by age */
    /* The fields below are not recorded. */
    struct list_link looks;       /* juries with a look_ns, by that time, then by index */
    struct list_link accusations; /* held results with an accusation, oldest accusation first */
    struct list_link *bars;       /* struct bar list of each part except the checks */
};

struct job {
    struct tracked tracked;
    struct list_link all; /* sorted by age */
    struct id128 id;
    uint64_t order; /* age */
    uint32_t owner;
    char name[EXCHANGE_NAME_SIZE];
    struct hash32 manifest;
    uint32_t subtasks, retries, error_limit, crash_limit;
    struct part *parts; /* part_count of them */
    uint32_t part_count;
    uint8_t phase;   /* enum job_phase */
    uint8_t type;    /* enum exchange_order_type of its bids; LIMIT once all were filled at once */
    uint8_t reason;  /* reason of its end or closing; while open, reads compute it */
    bool is_closing; /* waits for withdrawn attempts, then settles as `ends_as` */
    uint8_t ends_as;
    int64_t closing_ns; /* end of that wait; INT64_MAX: running attempts may finish */
    struct hold hold;
    int64_t reserved_micro; /* drawn by leases, not charged yet */
    uint32_t waiting, running, checking, accepted, failed, cancelled;
    bool is_checked;   /* the last part is the checks of all others */
    uint32_t unjudged; /* failed, but paid, since no check came to a verdict */
    int64_t submitted_ns, ended_ns;
    int64_t good_till_ns;       /* subtasks not started by then are cancelled; 0: never */
    int64_t deadline_ns;        /* the job ends then; 0: no deadline */
    bool is_expectation_stated; /* its expectations hold on every device */
    struct {
        uint32_t provider;
        int64_t until_ns;
    } avoided[AVOIDED_PROVIDERS];
    uint32_t avoided_count;
    uint32_t interruptions_left; /* 0: its bids take firm leases only; UINT32_MAX: any number */
    bool has_checkpoints;        /* a preempted attempt that saved nothing is not paid */
    /* The fields below are not recorded. */
    struct page **pages;   /* NULL: the job has ended */
    struct part only_part; /* storage of `parts` and `pages` of a job with one of either */
    struct page *only_page;
    struct graph *graph;   /* a record of its own; NULL: no subtask waits for another */
    struct checks *checks; /* NULL: none, or the job has ended */
    struct saved **saved;  /* indexed by subtask; NULL: nothing was ever kept */
    uint32_t saved_count;
    struct list_link leases;
    struct list_link of_owner;
    bool is_reported; /* a JOB effect is due at the end of this step */
    struct list_link report;
    /* An ALL_OR_NONE job is tried again only when the exchange's `slots_freed` has reached this. */
    uint64_t try_again_at;
};

struct attempt_key {
    uint64_t job; /* `order` of the job: shorter than the id, and as unique */
    uint32_t index, attempt;
};
struct attempt {
    struct attempt_key key;    /* compared as bytes: no padding (8 + 4 + 4) */
    struct list_link of_lease; /* sorted by dispatch */
    struct lease *lease;
    uint32_t lane;
    int64_t dispatched_ns;
    /* The provider is suspect and the subtask was queued again; both attempts count. */
    bool is_doubted;
    bool is_fenced;    /* given up: a late result is logged, not paid */
    bool is_withdrawn; /* the agent was told to stop it */
    uint32_t restored; /* attempt whose checkpoint it was given; 0: none */
};

/* Paid time of a lane (docs/decisions.md D8). `seen` is the union of its attempts' intervals,
 * dispatch to result, for results that came. A result is paid its claim, as long as the sum stays
 * within the time seen. Attempts that an outage of the broker met may be paid its time as well. */
struct lane {
    uint32_t in_flight;
    int64_t seen_until_ns, seen_ns, paid_ns;
    int64_t outage_ns; /* unpaid time of outages, for attempts dispatched before the last outage */
    struct residents *residents; /* owned; residency.h; NULL: none */
    int64_t unbilled_from_ns;    /* scratch of a renewal */
    uint32_t runs, last;         /* scratch: first and last subtask that it was given */
    bool is_ending;              /* scratch: the attempt that it runs was withdrawn */
};

struct lease {
    struct tracked tracked;
    uint64_t id;
    struct list_link of_job; /* sorted by age */
    struct job *job;
    struct part *part;
    struct device *device; /* NULL once ended */
    struct id128 device_id, ask;
    char label[EXCHANGE_NAME_SIZE];
    uint32_t provider, slots, lane_count;
    int64_t price_micro;
    int64_t granted_ns, term_end_ns, ended_ns;
    int64_t outage_ns;    /* of the present term, the time that passed while the broker was down */
    int64_t outage_at_ns; /* log time of the last outage; 0: none */
    uint8_t state;        /* enum lease_state */
    uint8_t end_reason;
    bool is_simulated; /* device simulated at the grant; every result has to say the same */
    struct exchange_terms terms; /* terms at the grant */
    bool is_noticed;             /* another bid has taken it: it ends with the notice */
    uint64_t former;             /* promised: the lease that it follows; else 0 */
    uint32_t accepted, failures_in_row;
    int64_t paid_ns; /* slot-time: lane time x width */
    int64_t charged_micro, reserved_micro;
    int64_t promised_ns;   /* slot-time it may still use at 0, or of a device with counted days */
    int64_t idle_since_ns; /* INT64_MAX while it has work */
    uint32_t live;         /* attempts in flight over all lanes */
    int64_t mean_ns;       /* moving average of a subtask's paid time */
    /* Moving averages for subtasks with expectations: the expectation, and the time in the lane. */
    int64_t said_ns, took_ns;
    int64_t quickest_ns; /* job with a deadline: the least time of a result; 0: none */
    struct lane *lanes;
    /* The fields below are not recorded; the first two count held results. */
    uint32_t held_count;
    int64_t held_ns; /* slot-time that they may still be paid for */
    struct list_link attempts;
    struct list_link refill;      /* member of exchange->refills when lanes may take more */
    struct list_link of_provider; /* linked until it ends */
    struct lease *successor;      /* promised, or NULL */
    /* Handle in exchange->spot while it may be taken, or BOOK_NONE; and its cell there. */
    uint32_t exposed, exposed_cell;
    int64_t exposed_micro;     /* price that a challenger pays */
    struct list_link exposing; /* member of exchange->exposures when it is newly exposed */
    uint32_t deep_lanes;       /* lanes with more than one attempt in flight */
    struct list_link deep;     /* member of part->deep while there are any */
};

struct exchange_block { /* Header of memory that the effects own; it is freed with them. */
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
    char *halted_why; /* the operator's reason, owned; NULL: none */
    struct id128 cluster;
    uint32_t fee_ppm;
    int64_t price_band_micro;    /* highest price of an order */
    int64_t price_least_micro;   /* lowest price of an order above 0 */
    int64_t notional_most_micro; /* most that one order may be worth; 0: any */
    uint64_t index, sequence, next_lease, next_order;
    int64_t now_ns;
    uint64_t epochs;          /* epochs that began */
    struct hash32 commitment; /* SHA-256 of the last epoch's secret; zeros before the first */
    /* entities */
    struct accounts *accounts;
    struct member **members; /* indexed by account number, including the system's three */
    uint32_t member_count, member_capacity;
    struct table members_by_key;
    struct table members_by_name; /* first account of each name; "" is no name */
    struct table invitations, ids, devices, asks, jobs, leases, attempts;
    struct list_link id_ages, invitation_list, provider_list, job_list;
    uint32_t invitation_count, ask_count, job_count, lease_count, attempt_count;
    uint64_t subtask_count;
    /* Heap of the accounts with ended jobs; the account with the oldest one is on top. */
    struct member **enders;
    uint32_t ender_count, ender_capacity;
    struct book *book;
    struct kind *cells, *classes; /* indexed by number, up to the limits */
    uint32_t *free_handles;
    uint32_t free_handle_count, handle_capacity;
    void **orders_by_handle; /* struct ask * or struct part *; the book knows the side */
    struct spot *spot;       /* NULL: no lease was ever exposed */
    /* Fields of all_or_none.c, not recorded. */
    uint32_t wholes;            /* jobs whose bids wait to be filled all at once */
    uint64_t slots_freed;       /* slots of asks that became free or arrived so far */
    const struct ask *matching; /* ask that is being matched */
    uint64_t market_changes;    /* counts leases granted and turns of the market */
    uint64_t counts;
    struct planned_fill *plan;
    uint32_t plan_count, plan_capacity;
    struct exchange_totals totals; /* counts of work, not recorded */
    uint64_t *steps;               /* own memory, because reads count in it; not recorded */
    /* The fields below are work of this step. */
    struct list_link wanting_asks, wanting_parts, refills, spreads, backs, fronts, reports,
        challenges, exposures;
    struct exchange_effects *effects;
    const struct exchange_command *command;
    uint64_t id_hash; /* hash of the command's id under its account, from the last look-up */
    uint32_t id_account;
    bool is_rejected;                 /* the present command is */
    struct exchange_reject rejection; /* reason, if is_rejected */
    uint32_t accept_as;               /* account that its id is kept under */
    bool is_out_of_memory;
    struct exchange_effect spare; /* takes the effects when memory is short */
    /* The timers are a heap by (at, kind, key); entries may be early or stale. */
    struct timer *timers;
    size_t timer_count, timer_capacity;
    size_t timer_rebuild_at; /* stale timers are dropped when there are this many */
    /* hash */
    struct feed *feed; /* NULL: nobody follows the market */
    struct list_link dirty;
    uint64_t total[4]; /* sum of the records' hashes, four lanes of 64 bits */
};

#endif
