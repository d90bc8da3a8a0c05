/* exchange/records.h - what the exchange remembers: accounts, providers, asks, jobs, leases, and
 * the exchange itself.
 *
 * Every entity begins with a `struct tracked`: it belongs to the multiset hash and to the snapshot.
 * Whoever changes an entity calls touch() on it; the hash is brought up to date when it is asked
 * for. Order always comes from numbers and lists (accounts by number, jobs and leases by age),
 * never from addresses. Not for use outside exchange/. */
#ifndef BOURSE_EXCHANGE_RECORDS_H
#define BOURSE_EXCHANGE_RECORDS_H

#include "base/checked.h"
#include "base/list.h"
#include "exchange/exchange.h"
#include "exchange/policy.h"
#include "exchange/table.h"
#include "ledger/accounts.h"
#include "matching/book.h"

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
                   RECORD_SAVED = 17,
                   RECORD_STANDING = 18,
                   RECORD_ACCUSATION = 19,
                   RECORD_JURY = 20,
};

struct tracked {
    uint8_t type;
    bool is_dirty, is_counted;
    struct list_link dirty; /* in exchange->dirty while is_dirty */
    struct hash32 hash;     /* as counted in exchange->total */
};

/* Of one account, the oldest on top. Not recorded. */
struct ended_jobs {
    struct ended_job {
        uint64_t order; /* the job's: jobs lie far apart */
        struct job *job;
    } * jobs;
    uint32_t count, capacity;
    uint32_t place; /* of the account in exchange->enders, where it has any */
};

/* By how many parts of its open jobs an account uses a class. Not recorded. */
struct class_use {
    uint32_t class_id, parts; /* no parts: the place is free */
};

struct member { /* an account's rights; its money is in exchange->accounts, and is part of this
                   record */
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
    int64_t given_ns;    /* slot-time that its devices gave for nothing, ever */
    /* not recorded */
    struct standing *standing; /* a record of its own; NULL: none */
    int128 promised_ns;        /* slot-time that its leases at 0 may use yet */
    bool shares_name;          /* it was the first of that name, and not the last */
    struct provider *provider; /* or NULL */
    struct class_use *uses;    /* by class, found by its number from there on */
    uint32_t use_capacity;     /* a power of two, or 0 */
    uint32_t classes;          /* that its open jobs use */
    struct list_link jobs;     /* by age */
    uint32_t job_count;        /* ended ones too */
    struct ended_jobs ended;   /* of those */
    uint64_t open_subtasks;    /* of its open jobs */
    struct list_link refusals; /* struct refused_id, oldest first */
    uint32_t refusal_count;
};

/* What an account is known for; most accounts have none (standing.c). */
struct standing {
    struct tracked tracked;
    const struct member *member;
    uint64_t group; /* accounts with the same are one owner's; 0: the account is its own owner */
    char owner[EXCHANGE_NAME_SIZE]; /* name of that group */
    uint32_t refuted;               /* results, less those that faded */
    uint32_t refuted_ever;
    uint32_t overruled;         /* results that it refuted, and that stood */
    int64_t proved_ns;          /* slot-time that checks accepted since one faded */
    int64_t withdrawn_until_ns; /* its asks are closed until then */
};

/* A cell or class of the book as a record. */
struct kind {
    struct tracked tracked; /* type 0: the number is free */
    uint32_t number;
    struct exchange_terms terms; /* of a cell, as its attributes say them. Not recorded */
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
    struct list_link day_uses; /* struct day_use, oldest first */
    uint32_t day_use_count;
    /* not recorded */
    struct list_link leases; /* that have not ended, by number */
    uint32_t lease_count;
};

/* Slot-time that a device gave on a day, counted since an ask of it bounded that. Kept when the
 * device goes: one that is paused and comes back has not had another day. */
struct day_use {
    struct list_link of_provider;
    struct id128 device;
    int32_t offset_min; /* of the clock whose days these are */
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
    bool is_advertised; /* false: gone from the list, kept while leases stand */
    char label[EXCHANGE_NAME_SIZE];
    struct ask *ask; /* the one standing, or NULL */
    /* not recorded */
    struct day_use *day_use; /* NULL: nobody counts */
    int128 promised_ns;      /* then: slot-time that its leases may use yet */
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
    int64_t daily_ns; /* 0: no bound of a day's */
    /* not recorded */
    struct exchange_terms terms; /* as its device's cell says them */
    bool is_open;                /* by its hours, as of now; else its free slots are none */
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
    uint64_t undecided_ms; /* likewise: what is expected of its subtasks that are not decided */
    uint32_t lanes;        /* of leases that take work */
    /* Of its bid while it stands, else BOOK_NONE. Between steps the bid rests; one that arrives
     * fills first. */
    uint32_t handle;
    uint32_t decided;           /* subtasks: accepted, failed or cancelled */
    struct list_link wanting;   /* in exchange->wanting_parts when it may buy more */
    struct list_link spread;    /* in exchange->spreads when subtasks came to its queue */
    struct list_link back;      /* in exchange->backs when what came back has no lane yet */
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

/* Which subtasks wait for which. Those that one waits for have lower indexes, so there is no
 * cycle. */
struct graph {
    struct tracked tracked;
    struct job *job;
    uint32_t *rank;      /* of each subtask; NULL: by expect_ms, and without that all are equal */
    uint32_t *expect_ms; /* likewise; 0: nothing is known of it. NULL: those of a part are alike */
    uint32_t *first_after; /* what subtask i waits for: after[first_after[i]] .. after[first_after[i
                              + 1] - 1] */
    uint32_t *after;
    /* not recorded */
    uint32_t *first_next, *next; /* the same from the other end: what waits for it */
    uint32_t *blocked;           /* of those it waits for, not accepted yet */
    uint32_t *undecided;         /* of those that wait for it, not decided yet */
    struct given **given;        /* by subtask; NULL: nothing is kept */
};

/* A referee says that what is held is wrong, or that its files are not there. A referee of another
 * owner has to say so too, or its client. */
struct accusation {
    struct tracked tracked; /* type 0: there is none */
    const struct held *held;
    uint32_t referee;
    uint32_t attempt;    /* of the check, which its seed was drawn for */
    struct hash32 check; /* the Result that says so */
};

/* The accounts that judged a subtask; or, of index NO_SUBTASK, those that the job asks no more. */
struct jury {
    struct tracked tracked;
    struct list_link all; /* of the job, by age */
    const struct job *job;
    uint32_t index;
    int64_t look_ns; /* of a subtask that waits: when to look whether anybody is left to make it */
    uint32_t unmade; /* of the job: subtasks that failed because nobody was */
    uint32_t count;
    uint32_t accounts[JUDGES_MOST];
    struct list_link looks; /* not recorded: in checks->looks while look_ns is not 0 */
};

/* One owner that has judged something of what waits in a part, and so may not make all of that. */
struct bar {
    struct list_link of_part;
    uint32_t account; /* one of that owner's */
    uint32_t waiting; /* subtasks that wait in the part and that the owner has judged */
    /* All that waits in the queue of retries up to this one is among these; NO_SUBTASK: nobody has
     * looked yet. */
    uint32_t passed;
};

/* A result that has come and is neither taken nor refuted before a referee has judged it. What it
 * will be paid stays in the reserve of its lease, which is kept as long. */
struct held {
    struct tracked tracked;
    struct lease *lease; /* of the job */
    uint32_t index, attempt;
    uint64_t batch_index; /* the command that it came in, and */
    uint32_t position;    /* its place there: those that came first are checked first */
    int64_t paid_ns;      /* slot-time that it is paid for, if it is */
    struct hash32 hash, dice;
    uint8_t unsure;  /* checks of it that came to that, or did not find its bytes */
    uint8_t missing; /* written by older rules, which counted checks without its files */
    uint32_t shy_of; /* who was unsure last: another goes first. EXCHANGE_NO_ACCOUNT: nobody */
    uint32_t length; /* of bytes: the encoded Result */
    /* not recorded */
    struct accusation accusation; /* a record of its own */
    struct check_queue *queue;    /* where its check waits for a lane, or NULL */
    struct list_link waiting;
    uint8_t bytes[];
};

/* The checkpoint that an attempt of the subtask has saved, the newest: its next attempts go on from
 * it. */
struct saved {
    struct tracked tracked;
    const struct job *job;
    uint32_t index, attempt;
    uint8_t missing; /* attempts that were given it and did not find its files */
    uint32_t length;
    uint8_t bytes[]; /* opaque */
};

/* Checks that wait for a lane, of results of one provider, those first that came first. */
struct check_queue {
    struct list_link all;
    uint32_t maker, shy_of;
    uint32_t accuser; /* has judged them already; EXCHANGE_NO_ACCOUNT: nobody has */
    uint32_t count;
    struct list_link waiting; /* struct held */
};

/* Of a job whose results are checked: its subtasks are n others and then n checks, the last part.
 * Not recorded. */
struct checks {
    struct list_link queues;
    struct held **held;          /* by index of the subtask; NULL: nothing is held of it */
    struct jury **juries;        /* likewise; NULL: nobody has judged it */
    struct jury *overruled;      /* of the whole job; NULL: none */
    uint32_t accused;            /* of what is held */
    struct list_link all_juries; /* by age */
    /* not recorded */
    struct list_link looks; /* juries with a look_ns: the first is due first, then by index */
    struct list_link *bars; /* of each part but the checks: its struct bars */
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
    struct part *parts; /* part_count of them */
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
    bool has_checkpoints;        /* it says so: a preempted attempt that saved nothing is free */
    /* not recorded */
    struct page **pages;   /* NULL: it has ended */
    struct part only_part; /* where `parts` and `pages` point when there is one of either */
    struct page *only_page;
    struct graph *graph;   /* a record of its own; NULL: no subtask waits for another */
    struct checks *checks; /* NULL: none, or it has ended */
    struct saved **saved;  /* by subtask; NULL: none was ever kept */
    uint32_t saved_count;
    struct list_link leases;
    struct list_link of_owner;
    bool is_reported; /* a JOB effect is due at the end of this step */
    struct list_link report;
    /* Of ALL_OR_NONE: to try again is in vain before `slots_freed` of the exchange has grown to
     * this. */
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
    uint32_t restored; /* it was given the checkpoint of that attempt; 0: none */
};

/* Paid time of a lane (docs/decisions.md D8): `seen` is the union of its attempts' intervals,
 * dispatch to result, as far as results came; a result is paid what it claims, as long as the sum
 * stays within what was seen. */
struct lane {
    uint32_t in_flight;
    int64_t seen_until_ns;
    int64_t seen_ns, paid_ns;
    int64_t unbilled_from_ns; /* scratch of a renewal */
    uint32_t runs, last;      /* likewise: what it was given first, and last, */
    bool is_ending;           /* and that it was withdrawn */
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
    int64_t promised_ns; /* slot-time that it may use yet, at price 0 or of a device whose days are
                            counted */
    int64_t idle_since_ns; /* INT64_MAX while it has work */
    uint32_t live;         /* attempts in flight over all lanes */
    int64_t mean_ns;       /* moving average of a subtask's paid time */
    /* Likewise, of those with an expectation of their own: that, and what they took of their
     * lane. */
    int64_t said_ns, took_ns;
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
    int64_t price_band_micro;    /* the highest price of an order, and */
    int64_t price_least_micro;   /* the lowest above 0 */
    int64_t notional_most_micro; /* that one order may come to; 0: any */
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
    struct table invitations, ids, devices, asks, jobs, leases, attempts;
    struct list_link id_ages, invitation_list, provider_list, job_list;
    uint32_t invitation_count, ask_count, job_count, lease_count, attempt_count;
    uint64_t subtask_count;
    /* Accounts that have ended jobs, a heap: whose oldest is oldest is on top. */
    struct member **enders;
    uint32_t ender_count, ender_capacity;
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
    struct exchange_totals totals; /* not recorded */
    uint64_t *steps;               /* of its own memory, since reads count them; not recorded */
    /* work of this step */
    struct list_link wanting_asks, wanting_parts, refills, spreads, backs, fronts, reports,
        challenges, exposures;
    struct exchange_effects *effects;
    const struct exchange_command *command;
    uint64_t id_hash; /* of its id under that account, where it was looked for */
    uint32_t id_account;
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

#endif
