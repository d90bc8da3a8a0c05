/* tests/sim/oracle_models.h - the books that the oracle's parts keep together; only
 * tests/sim/oracle*.c include it.
 *
 * oracle.c reads the log and hands each effect to the parts, and each part watches one thing:
 *
 *     oracle_log.c       who sent it, once, when; replay
 *     oracle_orders.c    jobs, devices, asks as they were given
 *     oracle_reasons.c   why jobs are open
 *     oracle_types.c     orders that are to be filled at once, wholly, or not at once
 *     oracle_fills.c     price-time priority, leases
 *     oracle_spot.c      leases that others take
 *     oracle_attempts.c  dispatches, results, settlements
 *     oracle_graphs.c    what waits for what, ranks, what is handed on
 *     oracle_checks.c    results that are held, who may judge them, what is found wrong
 *     oracle_money.c     balances and charges
 *     oracle_members.c   invitations and who joins
 *     oracle_acts.c      the audit log
 *     oracle_brokers.c   what brokers say, and their states
 *
 * All is plain data: tables that only grow; each seed has a process of its own, which takes them
 * with it. */
#ifndef BOURSE_TESTS_SIM_ORACLE_MODELS_H
#define BOURSE_TESTS_SIM_ORACLE_MODELS_H

#include "base/rate.h"
#include "broker/core/act_log.h"
#include "broker/storage/entry.h"
#include "ledger/accounts.h"
#include "tests/sim/map.h"
#include "tests/sim/oracle.h"
#include "tests/support/checks_model.h"

enum { ACCOUNTS_HERE = 64 };
#define HOUR_NS (INT64_C(3600) * SIM_S)

enum { PARTS_HERE = 17 };

struct seen_job {
    struct id128 id;
    uint32_t owner, subtasks, accepted;
    int64_t unspent, unspent_before; /* after this command, and the one before */
    int64_t budget, charged;
    int64_t good_till_ns;          /* 0: none */
    int64_t deadline_ns;           /* 0: none */
    bool is_stated;                /* its expectations hold on every device */
    enum exchange_order_type type; /* as it was submitted, by this command: */
    uint64_t submitted_at;
    uint64_t whole_at;      /* ALL_OR_NONE: the command that filled it; 0: it waits */
    bool is_filled;         /* at all */
    uint32_t interruptions; /* that it bears; UINT32_MAX: any number */
    uint32_t interrupted;   /* leases at work that were taken from it */
    bool is_settled;
    uint32_t looks_when_settled; /* at its rows, since it was settled; 2: no more are needed */
    uint32_t bids[PARTS_HERE];   /* places in the table, part by part */
    uint32_t bid_count;
    struct seen_graph *graph; /* NULL: none */
};

struct seen_bid { /* of one part of a job */
    struct id128 id;
    uint32_t job; /* place in the table */
    uint32_t first, end, width, at_most;
    uint32_t lanes; /* of leases that have not ended */
    /* Lanes that it was to have together, by the command that fills its job whole. */
    uint32_t lanes_at_once;
    uint32_t lanes_taken_at_once; /* lanes of these that others took in the same command */
    struct exchange_part_row row, row_before; /* after this command, and the one before */
    uint32_t lanes_seen, lanes_before;        /* likewise */
    int64_t limit, term_ns;
    enum rate rate; /* of its limit, where that is a value */
    int64_t cap;    /* LIMIT_NONE: the limit follows from the budget */
    uint64_t sequence;
    struct requirement needs;
    bool is_cancelled;
    bool is_unrested; /* cancelled because it does not rest */
    bool is_checks;   /* for referees */
    bool is_timed;    /* a result told what a subtask takes */
};

struct seen_subtask { /* of a job with a graph */
    uint32_t rank, first_after, after_count;
    bool is_started, is_accepted, is_held;
    uint8_t *left; /* the Given that it is to others; NULL until it is accepted */
    size_t left_length;
};
struct seen_graph {
    struct seen_subtask *subtasks;
    uint32_t *after;
};

struct seen_lease {
    uint64_t id;
    uint32_t bid, provider, device; /* places in the tables; provider: account */
    uint32_t slots, width;
    int64_t price, granted_ns, term_end_ns, paid_ns, charged;
    int64_t outage_ns;  /* of its term, with no broker: its agent may send results so much later */
    int64_t outages_ns; /* the same of all its terms: it may be paid for that */
    int64_t trouble_ns; /* its provider failed the job then: it may be avoided */
    bool has_ended;
    struct exchange_terms terms;
    bool is_promised; /* it has not begun: the slots are its former's */
    uint32_t former;  /* place + 1 of what it took; 0: nothing */
    bool is_taken;    /* it has, or had, a successor */
    bool is_noticed;
    int64_t quickest_ns; /* the least time that a good result may have taken; 0: none came */
    int64_t result_ns;   /* when its last result came */
};

struct seen_attempt {
    uint32_t lease, index, number, lane;
    int64_t dispatched_ns;
    bool is_held, is_decided, is_withdrawn;
};

struct seen_device {
    struct id128 id;
    uint32_t provider, slots, leased;
    bool is_advertised;
    struct attribute attributes[12]; /* by name; with the terms of its last ask */
    size_t attribute_count;
    uint32_t ask;      /* place + 1; 0: none */
    uint64_t freed_at; /* command: slots of it became free then */
};

struct seen_ask {
    struct id128 order;
    uint32_t device, slots;
    int64_t price, max_term_ns;
    uint64_t sequence;
    bool stands;
    uint32_t to[2], to_count; /* accounts that may fill it; none: all */
    struct hours hours;
    struct exchange_terms terms;
    enum exchange_order_type type;
    uint64_t placed_at; /* command */
};

struct seen_invitation {
    struct hash32 token_hash;
    struct exchange_invite invite;
    bool is_spent;
};

struct seen_newcomer {
    struct key32 key, transport;
    uint32_t account; /* 0: none yet */
};

struct seen_offer { /* what a broker would record with an entry */
    struct act *acts;
    size_t count;
};

struct seen_privilege {
    enum act_kind kind;
    uint32_t account;
    uint64_t index;
};

#define TABLE(type)                                                                                \
    struct {                                                                                       \
        type *items;                                                                               \
        uint32_t count, capacity;                                                                  \
        struct map map;                                                                            \
    }

struct seen_dice {
    uint64_t command;
    struct hash32 dice;
};

struct oracle {
    struct oracle_log log;
    const struct exchange_limits *limits;
    struct exchange *exchange;
    struct exchange_effects effects;
    uint64_t entry, command;
    struct hash32 chain;
    struct id128 cluster;
    int64_t log_time_ns;
    int64_t began_ns, began_log_ns; /* the genesis: in the world's time, in log time */
    struct hash32 *states;          /* by command */
    size_t states_capacity;
    struct { /* every entry, for the replay at the end */
        uint8_t *bytes;
        size_t length;
    } * entries;
    size_t entries_capacity;
    uint8_t *snapshot; /* of some moment on the way */
    size_t snapshot_length;
    uint64_t snapshot_entry;
    struct key32 transports[ACCOUNTS_HERE];
    int64_t available[ACCOUNTS_HERE], held[ACCOUNTS_HERE];
    uint32_t sequence, leases_standing, first_new_lease, first_new_ask;
    int64_t stated_ns[ACCOUNTS_HERE]; /* a provider said what it holds, or went */
    TABLE(struct seen_job) jobs;
    TABLE(struct seen_bid) bids;
    TABLE(struct seen_lease) leases;
    TABLE(struct seen_attempt) attempts;
    TABLE(struct seen_device) devices;
    TABLE(struct seen_ask) asks;
    TABLE(struct seen_invitation) invitations;
    TABLE(struct seen_newcomer) newcomers;
    struct hash32 commitment;
    TABLE(struct seen_dice) thrown;          /* of the epoch that stands */
    TABLE(struct seen_offer) offers;         /* by the chain hash of the entry */
    TABLE(struct seen_privilege) privileged; /* of the present entry, not checked yet */
    struct map accepted;                     /* (id, account) -> command */
    struct map genuine;                      /* digests of what honest peers sent */
    struct map accepted_subtasks;            /* (job, index) */
    struct exchange_bands bands;             /* in force */
    struct checks_model checks;
    struct oracle_counts counts;
};
extern struct oracle oracle;

uint32_t oracle_put_item(void **items, uint32_t *count, uint32_t *capacity, size_t size);
/* A zeroed item at the end of a table; returns its place. */
#define PUT(table)                                                                                 \
    oracle_put_item((void **)&(table).items, &(table).count, &(table).capacity,                    \
                    sizeof *(table).items)

/* oracle_dice.c */
void oracle_check_dice(const struct exchange_command *command);

/* oracle_log.c */
void oracle_check_genuine(const struct entry_command *entry,
                          const struct exchange_command *command);
void oracle_check_log_time(const struct entry_command *entry);
void oracle_on_accept(const struct exchange_effect *effect, const struct exchange_command *command);
void oracle_keep_entry(const struct journal_entry *entry);

/* oracle_orders.c; the run fails when there is no such job, or no such device and `make` is
 * false */
struct seen_job *oracle_job_of(const struct id128 *id);
struct seen_device *oracle_device_of(uint32_t provider, const struct id128 *id, bool make);
struct seen_bid *oracle_bid_of(const struct id128 *id); /* NULL: it is not a bid */
void oracle_on_job(const struct exchange_command *command, const struct ledger_record *record);
void oracle_on_bid(const struct exchange_command *command, const struct ledger_record *record);
/* The hold of a job, or more of it. */
void oracle_on_bands(const struct exchange_bands *given);
void oracle_on_hold(const struct exchange_command *command, const struct ledger_record *record);
/* Placed, or under its id other terms. */
void oracle_on_ask(const struct exchange_command *command, const struct ledger_record *record);
void oracle_on_cancel(const struct ledger_record *record);
void oracle_on_advertise(const struct exchange_command *command);

/* Returns what the bid gives for a slot-hour of the device; 0 where the device has no such rate. */
int64_t oracle_limit_in(const struct seen_bid *bid, const struct seen_device *device);
bool oracle_is_for(const struct seen_ask *ask, uint32_t account);
bool oracle_is_open(const struct seen_ask *ask); /* at its hours */

/* oracle_types.c */
/* `ask`: what it fills from; NULL: it takes a lease. */
void oracle_check_fill_of_type(struct seen_job *job, struct seen_bid *bid,
                               const struct seen_ask *ask, uint32_t lanes);
/* Another takes that lease: what was filled whole in this very command need not have it at its
 * end. */
void oracle_take_of_type(const struct seen_lease *lease);
void oracle_check_types(void); /* after each command */

/* oracle_fills.c */
struct seen_lease *oracle_lease_of(uint64_t id); /* NULL: there is none */
/* Everything but room, and what the job thinks of the provider: those are the caller's. */
bool oracle_match(const struct seen_bid *bid, const struct seen_ask *ask);
bool oracle_could_fill(const struct seen_bid *bid, const struct seen_ask *ask);
bool oracle_may_pass_over(const struct seen_bid *bid, uint32_t provider);
/* Returns the highest price at which the two may trade now. */
int64_t oracle_price_most(const struct seen_bid *bid, const struct seen_ask *ask);
/* `next`: the effect after it, or NULL. */
void oracle_on_fill(const struct ledger_record *record, const struct exchange_effect *next);
void oracle_end_lease(struct seen_lease *lease);
void oracle_on_outage(int64_t time_ns);
void oracle_on_lease_effect(const struct exchange_effect *effect);
void oracle_on_goodbye(uint32_t provider);

/* oracle_spot.c */
/* The lease that this fill takes from its holder; `next` as above. NULL: none, it begins at
 * once. */
struct seen_lease *oracle_taken_by(const struct ledger_record *record,
                                   const struct exchange_effect *next);
void oracle_check_taken(const struct seen_bid *bid, const struct seen_ask *ask,
                        const struct ledger_record *record, const struct seen_lease *lease);
void oracle_on_grant(const struct exchange_effect *effect);
void oracle_on_notice(const struct exchange_effect *effect);
void oracle_check_notice(const struct seen_lease *lease, uint32_t reason); /* it ends */
void oracle_on_withdraw(const struct exchange_effect *effect);
void oracle_check_promises(void); /* after each command */
/* After each command, in this order. */
void oracle_look_at_jobs(void);
void oracle_check_all_bids(void);
void oracle_check_at_rest(void);

/* oracle_attempts.c */
struct map_key oracle_attempt_key(uint64_t lease, uint32_t index, uint32_t number);
/* Keeps what the command's results claim to have taken. */
void oracle_note_claims(const struct exchange_command *command);
void oracle_on_dispatch(const struct exchange_effect *effect);
struct seen_attempt *oracle_find_attempt(uint64_t lease, uint32_t index, uint32_t number);
void oracle_on_result(const struct exchange_command *command, const struct ledger_record *record);
void oracle_on_settled(const struct ledger_record *record);
/* Returns the attempt that the record decides, which nothing has decided before. */
struct seen_attempt *oracle_attempt_of(const struct ledger_record *record);
/* Work of a lease that still stands, or has ended so little ago that results count. */
void oracle_check_in_time(const struct seen_lease *lease);
void oracle_note_trouble(struct seen_lease *lease, int64_t for_ns);

/* oracle_checks.c */
void oracle_on_held(const struct exchange_command *command, const struct ledger_record *record);
void oracle_check_verdict(const struct ledger_record *record); /* of a result that was held */
/* Nothing counts whose output is not stored. */
void oracle_check_stored(const struct ledger_record *record);
/* Returns true when all that waits for a check in the job is, or may be, that provider's work. */
bool oracle_is_referee(uint32_t account);
bool oracle_made_all(const struct seen_bid *bid, uint32_t provider);
bool oracle_may_not_check(const struct seen_bid *bid, uint32_t provider);

/* oracle_graphs.c */
void oracle_keep_graph(struct seen_job *job, const struct exchange_graph *graph);
void oracle_check_start(const struct seen_lease *lease, const struct exchange_work *work);
void oracle_keep_left(struct seen_job *job, const struct ledger_record *record);
struct seen_subtask *oracle_subtask_of(const struct ledger_record *record); /* NULL: no graph */

/* oracle_money.c */
void oracle_move_money(const struct ledger_record *record);
void oracle_check_money(void);
void oracle_check_charge(struct seen_lease *lease, const struct ledger_record *record);

/* oracle_members.c */
/* Returns the key whose connection a command came by, or NULL when the oracle knows none. */
const struct key32 *oracle_sender(const struct exchange_command *command);
void oracle_on_invite(const struct exchange_command *command);
void oracle_on_account(const struct exchange_command *command, const struct ledger_record *record);
void oracle_on_refused_join(const struct exchange_command *command,
                            const struct exchange_effect *effect);

/* oracle_acts.c */
void oracle_on_privilege(const struct exchange_command *command); /* accepted for the first time */
void oracle_check_acts(const struct hash32 *chain); /* after the entry of that chain hash */

/* oracle_brokers.c */
void oracle_check_state(void); /* and keeps the reference's, by command */

#endif
