/* audit/audit_internal.h - what the parts of the audit share. Not for anyone else.
 *
 * Every check returns true to go on; false after audit_finding or audit_unreadable has written
 * the report. */
#ifndef BOURSE_AUDIT_AUDIT_INTERNAL_H
#define BOURSE_AUDIT_AUDIT_INTERNAL_H

#include "audit/audit.h"
#include "base/id.h"
#include "base/rate.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/genesis.h"
#include "protocol/message.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- a map from 32 bytes (ids and lease numbers are padded) to a struct that it owns */

struct audit_map {
    struct audit_slot {
        struct hash32 key;
        void *value; /* NULL: free */
    } * slots;
    size_t capacity, count;
};
void *audit_map_find(const struct audit_map *map, const struct hash32 *key);
/* A new zeroed value of `size` under a key that is not there; NULL when out of memory. */
void *audit_map_add(struct audit_map *map, const struct hash32 *key, size_t size);
void audit_map_fini(struct audit_map *map, void (*end)(void *value)); /* `end` may be NULL */
struct hash32 audit_id(const struct id128 *id);
struct hash32 audit_number(uint64_t number);

/* ---- rows of the ledger, in the order of their entries */

enum audit_table {
    AUDIT_ACCOUNTS,
    AUDIT_TRANSFERS,
    AUDIT_JOBS,
    AUDIT_ASKS,
    AUDIT_BIDS,
    AUDIT_CANCELS,
    AUDIT_FILLS,
    AUDIT_RESULTS,
    AUDIT_SETTLEMENTS,
    AUDIT_FLAGS,
    AUDIT_HELD,
    AUDIT_EPOCHS,
    AUDIT_TABLES,
};

enum audit_money { /* transfers.kind */
                   MONEY_MINT = 2,
                   MONEY_HOLD = 3,
                   MONEY_CAPTURE = 4,
                   MONEY_RELEASE = 5,
                   MONEY_EXPIRE = 6,
                   MONEY_FEE = 7,
};

enum { AUDIT_NAME_SIZE = 64 }; /* of the ledger's names, their end included */

struct audit_row {
    enum audit_table table;
    uint64_t entry, log_index;
    int64_t log_time_ns;
    bool has_leaf;
    uint64_t leaf;

    uint32_t number, roles; /* accounts */
    int64_t kind, amount;   /* transfers */
    uint32_t debit, credit;
    struct key32 owner, provider; /* accounts.key, fills, results and held.consumer too */
    char name[AUDIT_NAME_SIZE];   /* accounts, jobs, flags, fills.instrument */
    struct id128 job, order, bid,
        device;          /* order: asks.ask, bids.bid, cancels.order_id, fills.ask */
    struct hash32 hash;  /* jobs.manifest, results.hash, held.hash, epochs.commitment */
    struct hash32 check; /* results.checked_by, epochs.secret */
    uint64_t batch_index;
    uint8_t level;
    uint64_t lease;
    uint32_t index, attempt, position;
    uint32_t subtasks, width, slots;
    int64_t price, budget, cap, term_ns, paid_ns, charge;
    uint8_t outcome, status; /* settlements.state, cancels.reason, flags.state too */
    uint32_t accepted, failed, cancelled;
    int64_t charged, released;
    const uint8_t *bytes; /* results.bytes, until the next row */
    size_t length;
};

struct audit_rows {
    sqlite3_stmt *statements[AUDIT_TABLES];
    struct audit_row ahead[AUDIT_TABLES]; /* the next row of each */
    bool has_ahead[AUDIT_TABLES];
    uint64_t next_entry, next_leaf;
    bool is_at_end;
    struct audit_row row; /* the one to look at */
};
const char *audit_table_name(enum audit_table table);

/* ---- commands of the journal */

enum { AUDIT_RESULTS_MAX = 256 };

struct audit_sent { /* one result of the batch at hand */
    struct hash32 hash;
    Bourse__V1__Result *result;
    bool is_used;
    bool is_missing; /* the command says that something of it was not stored */
};

struct audit_command {
    uint64_t index;
    int64_t log_time_ns;
    uint32_t account;
    uint16_t kind, verdict;
    const uint8_t *payload; /* borrowed from the entry */
    uint32_t payload_length;
    struct hash32 dice; /* kind RESULTS: before the envelope */
    /* Likewise, where the verdict says so: of which results something was not stored. */
    uint8_t missing[AUDIT_RESULTS_MAX / 8];

    struct envelope envelope; /* kinds MESSAGE and RESULTS */
    enum message_type type;   /* 0 otherwise */
    ProtobufCMessage *body;
    struct audit_sent sent[AUDIT_RESULTS_MAX];
    struct hash32 sent_leaves[AUDIT_RESULTS_MAX];
    size_t sent_count;

    uint32_t accounts_opened, mints_made, epochs_begun; /* by its rows so far */
    bool batch_checked;
};

/* ---- what is known so far */

struct audit_account {
    struct key32 key;
    uint32_t roles;
    int64_t available, held;
    uint64_t group; /* the command that named its owner first; 0: it is its own */
    char owner[AUDIT_NAME_SIZE];
};

struct audit_invitation {
    uint32_t roles;
    int64_t credits, expires_ms;
    bool is_used;
    char name[AUDIT_NAME_SIZE];
};

struct audit_device {
    struct hash32 cell;           /* attributes as last advertised */
    int64_t rates[RATES];         /* what they say of each; 0: nothing */
    bool was_filled;              /* under any ask: leases outlive the ask that they came from */
    uint32_t slots, owner_number; /* as last advertised, and by whom */
    struct audit_lease *last_lease;
};

struct audit_terms { /* of the leases of an ask, as it was signed */
    bool is_interruptible;
    int64_t notice_ms, minimum_run_ms;
};

struct audit_ask {
    uint64_t entry;
    struct key32 owner;
    uint32_t owner_number;
    struct id128 device;
    struct hash32 cell; /* zeros: unknown */
    uint32_t slots;
    int64_t price, max_term_ms;
    bool has_conditions; /* whose bids, or which hours: it may be passed over */
    struct audit_terms terms;
    bool is_cancelled;
    struct audit_ask *next; /* in order of entry, for the check of priority */
};

struct audit_bid { /* of one part of a job */
    struct audit_job *job;
    uint64_t entry; /* its place in time: a bid that was replaced may have a later one */
    uint32_t number, width, slots, subtasks;
    int64_t cap, limit, term_ms; /* cap -1: none */
    uint32_t rate; /* cap and limit are values of that work; RATE_NONE: per slot-hour */
    bool is_cancelled;
};

struct audit_job {
    struct id128 id;
    uint64_t entry;
    uint32_t bid_count; /* so far */
    struct key32 owner;
    uint32_t owner_number;
    struct hash32 manifest;
    uint32_t subtasks;
    int64_t budget;
    bool is_settled;
    uint8_t *accepted_bits;
    uint32_t accepted;
    bool has_hold, hold_is_open;
    int64_t captured, released;
    /* verify: cheap. Subtask n + k checks subtask k, n is `checked`; 0: nothing is checked. */
    uint32_t checked;
    uint32_t held;                /* results of it that are held now */
    struct audit_held **held_now; /* by subtask, the newest first; borrowed from audit.held */
    uint32_t accepted_checks;     /* that said yes */
    uint32_t accepted_by_check, accepted_unchecked;
    /* By subtask, the checkpoint for which its last result but late ones was paid; zeros: for none.
     * NULL: the job has no checkpoints. */
    struct hash32 *saved;
};

struct audit_held { /* a result that waits for its verdict, or had it */
    struct audit_job *job;
    uint64_t entry;
    struct hash32 hash, dice;
    uint32_t index, attempt;
    uint64_t lease;
    uint32_t maker_number;
    uint32_t missing; /* checks that did not find what it left */
    uint32_t doubts;  /* since rules 18: those, or unsure, of referees who may judge it */
    /* Since rules 18: the referee that rejected it first, 0: none, and by which check of it; and
     * whether one of another owner has, too. */
    uint32_t accuser, accused_by;
    bool is_confirmed;
    bool is_settled;
    struct audit_held
        *before; /* of the same subtask, if it is held as well: no true market has that */
};

struct audit_check { /* what a check said */
    struct audit_job *job;
    uint32_t index, attempt, provider_number;
    uint8_t outcome, status;
    bool lacks_factor;
    uint32_t verdict;
    struct hash32 seed;
};
/* Whether the check found no bytes of the product that it judges. */
static inline bool audit_lacks_product(const struct audit_check *check)
{
    return check->outcome == OUTCOME_INPUT_MISSING && !check->lacks_factor;
}

enum { AUDIT_JUDGES = 64 }; /* more than the rules let judge one subtask */
struct audit_jury {         /* of a subtask */
    uint32_t count;
    uint32_t accounts[AUDIT_JUDGES];
};

struct audit_lease {
    struct audit_job *job;
    struct key32 provider;
    uint32_t provider_number;
    struct id128 device;
    bool is_simulated; /* by the instrument that its fill names */
    uint32_t width;
    int64_t price, paid_ns, charged;
    const struct audit_bid *bid;
    struct audit_terms terms;
    int64_t filled_ns;
    bool was_taken;             /* another bid has taken it */
    struct audit_lease *before; /* on the same device, the newest first */
    uint32_t slots;
    uint32_t device_slots;       /* when it was filled; 0: not known */
    bool is_plain;               /* it took nobody's place, so that its slots were free */
    uint64_t beside;             /* slots of others that were let for certain when it was filled */
    bool has_begun;              /* for certain */
    struct audit_lease *counted; /* it is counted beside those up to this one */
};

struct audit_due { /* what the last result row must be followed by */
    struct audit_job *job;
    uint64_t lease;
    uint32_t index, attempt, provider_number;
    int64_t capture, fee;
};

struct audit_mark { /* what HEAD says */
    uint64_t counter, index, tree_size;
    struct hash32 chain;
    uint64_t acts; /* newest record of the audit log */
    struct hash32 acts_chain;
    struct signature64 acts_signature;
};

enum { AUDIT_LEVELS = 64, AUDIT_NODE_STEP = 8 };

struct audit_tree {
    uint64_t size;
    struct hash32 complete[AUDIT_LEVELS];
    bool has_root;
    struct hash32 root_at_checkpoint;
    sqlite3_stmt *nodes[2]; /* stored hashes of level 0 and 8, read along */
    char note[512];
    uint64_t note_size;
    bool has_note;
};

/* A record that the audit log owes the journal: a start for each epoch that wrote entries, limits
 * for each entry that changes them. Both stand beside the command before. */
struct audit_owed {
    uint16_t kind;
    uint64_t log_index;
};
enum { AUDIT_ACT_START = 1, AUDIT_ACT_LIMITS = 21 };

/* What orders may be; set by signed commands. */
struct audit_bands {
    int64_t least_micro, most_micro;
    int64_t notional_micro; /* 0: any */
};

struct audit {
    struct audit_report *report;
    sqlite3 *database;
    struct audit_rows rows;
    struct audit_tree tree;
    struct genesis genesis;
    bool has_genesis;
    struct audit_bands bands;
    struct audit_mark mark;
    bool has_mark;

    struct audit_account *accounts; /* by number */
    uint32_t account_count, account_capacity;
    struct audit_map numbers;     /* account key -> uint32_t */
    struct audit_map invitations; /* token hash */
    struct audit_map devices;     /* device id */
    struct audit_map instruments; /* audit_instrument of what was ever advertised */
    struct audit_map asks, bids, jobs, leases;
    struct audit_map tainted; /* account number: was suspect or away once */
    struct audit_map held;    /* number of the command and position in its batch */
    struct audit_map checks;  /* hash of the check's Result */
    struct audit_map juries;  /* job id and index of a subtask */
    bool has_epoch;           /* one began */
    bool has_secret;          /* a later one shows it */
    struct hash32 commitment, secret;
    struct audit_ask *first_ask, *last_ask;
    struct audit_due due;
    uint64_t last_lease;
    struct audit_owed *owed; /* in the order of the journal */
    size_t owed_count, owed_capacity;
    bool has_limits; /* the first limits of a journal change none, and are no act */
    /* Number of the rules in force at the command at hand, by the limits before it; 0 before the
     * first limits. A check that a change of the rules added asks `rules >= N`. */
    uint32_t rules;
};

/* ---- reporting (audit.c) */
__attribute__((format(printf, 4, 5))) bool audit_finding(struct audit *audit, const char *table,
                                                         uint64_t entry, const char *format, ...);
/* From here on a read that the disk refuses is remembered. */
void audit_watch_reads(void);
bool audit_reads_failed(void);
__attribute__((format(printf, 2, 3))) bool audit_unreadable(struct audit *audit, const char *format,
                                                            ...);
/* The finding is of the row at hand. Always false. */
bool audit_row_finding(struct audit *audit, const char *what);
/* Each true when found equals expected; else there is a finding. The first is here whole, so that
 * analyzers see what holds after it. */
static inline bool audit_expect(struct audit *audit, bool holds, const char *what)
{
    if (!holds) {
        (void)audit_row_finding(audit, what); /* always false */
    }
    return holds;
}
bool audit_expect_i64(struct audit *audit, const char *what, int64_t expected, int64_t found);
bool audit_expect_bytes(struct audit *audit, const char *what, const void *expected,
                        const void *found, size_t length);
/* A name of the ledger is the signed one (NULL: none), cut between characters to what the ledger
 * keeps. */
bool audit_expect_name(struct audit *audit, const char *what, const char *sent);
void audit_cut_name(char ret_name[AUDIT_NAME_SIZE], const char *sent);
bool audit_out_of_memory(struct audit *audit);

/* Key of "this account advertised the device under that instrument". */
struct hash32 audit_instrument(uint32_t account, const struct id128 *device, const char *name);

/* ---- audit_rows.c */
bool audit_rows_open(struct audit *audit);
void audit_rows_close(struct audit *audit);
/* Moves to the next row, whose entry and leaf numbers must follow without a gap. */
bool audit_rows_next(struct audit *audit);

/* ---- audit.c */
/* Paths of ledger.db and HEAD in `folder`, each of PATH_MAX bytes. */
bool audit_paths(struct audit *audit, const char *folder, char *ret_database, char *ret_head);
bool audit_open_database(struct audit *audit, const char *path);

/* ---- audit_journal.c */
/* Reads HEAD into the audit's mark. A missing one is no finding: a backup has none. */
bool audit_read_head(struct audit *audit, const char *path);
/* Walks the chain; calls audit_command_check for each command. Compares HEAD, which was read
 * before. */
bool audit_journal(struct audit *audit);

/* ---- audit_acts.c */
/* Takes note of a record that must be in the audit log. */
bool audit_owe(struct audit *audit, uint16_t kind, uint64_t log_index);
/* The audit log against HEAD, and whether every mint and every freeze is in it, and whatever was
 * owed. `on_act` may be NULL. */
bool audit_acts(struct audit *audit, uint64_t since, audit_on_act *on_act, void *context);

/* ---- audit_commands.c */
/* Decodes, verifies the signature, takes note of what later rows rely on; then looks at all rows
 * that bear its index. */
bool audit_command_check(struct audit *audit, struct audit_command *command);
void audit_command_fini(struct audit_command *command);
/* Accounts by key: false when unknown. */
bool audit_account_number(const struct audit *audit, const struct key32 *key, uint32_t *ret_number);

/* ---- audit_tree.c */
bool audit_tree_open(struct audit *audit);
void audit_tree_close(struct audit *audit);
bool audit_tree_add(struct audit *audit, const struct audit_row *row);
bool audit_tree_end(struct audit *audit);

/* ---- audit_money.c */
bool audit_account_row(struct audit *audit, struct audit_command *command);
bool audit_transfer_row(struct audit *audit, struct audit_command *command);
/* Before any row that is not a payment: all that the last result was due has been paid. */
bool audit_nothing_due(struct audit *audit);
bool audit_balances(struct audit *audit);

/* ---- audit_market.c */
bool audit_job_row(struct audit *audit, struct audit_command *command);
bool audit_ask_row(struct audit *audit, struct audit_command *command);
bool audit_bid_row(struct audit *audit, struct audit_command *command);
bool audit_cancel_row(struct audit *audit, struct audit_command *command);
bool audit_fill_row(struct audit *audit, struct audit_command *command);
/* By the row at hand, of a result that came in time, that lease has its slots. */
bool audit_lease_worked(struct audit *audit, struct audit_lease *lease);
bool audit_flag_row(struct audit *audit, struct audit_command *command);

/* ---- audit_checks.c */
bool audit_epoch_row(struct audit *audit, struct audit_command *command);
/* After its rows: a command that begins an epoch as it should has begun one. */
bool audit_epoch_command(struct audit *audit, const struct audit_command *command);
/* Whether a batch of results came with the dice of its epoch, where those are known. */
bool audit_dice(struct audit *audit, const struct audit_command *command);
/* A HELD: what was held of the batch at hand. */
bool audit_hold(struct audit *audit, const struct audit_lease *lease, const struct hash32 *dice);
/* The result of the row at hand, where it was held; NULL where not. */
struct audit_held *audit_held_of(const struct audit *audit);
/* Whether the row's level is true, and what the check that it names says bears out the row's
 * status. `held` as above; its one RESULT is this then. */
bool audit_level(struct audit *audit, const struct audit_command *command,
                 const struct audit_lease *lease, struct audit_held *held,
                 const Bourse__V1__Result *result);
/* Drawn when the result had come: from the dice of its command, its hash, and which attempt of the
 * check it is for. */
struct hash32 audit_seed(const struct audit_held *held, uint32_t index, uint32_t attempt);
/* A settlement: nothing of the job is held any more, and every check decided something. */
bool audit_checks_of(struct audit *audit, const struct audit_job *job);

/* ---- juries.c */
/* Whether the rules in force need two of different owners to refute a result. */
bool audit_two_refute(const struct audit *audit);
/* A SetOwner that was accepted. */
bool audit_set_owner(struct audit *audit, const struct audit_command *command);
/* Whether the referee's owner did not make what was held; nor, if the row accepts it, accused it.
 */
bool audit_may_judge(const struct audit *audit, const struct audit_held *held, uint32_t referee);
/* The row at hand is a check of what is held. False: out of memory. */
bool audit_note_verdict(struct audit *audit, const struct audit_lease *lease,
                        struct audit_held *held, const struct audit_check *check,
                        const Bourse__V1__Result *result);
/* Whether the lease's provider has not judged the subtask of the row at hand. */
bool audit_may_make(struct audit *audit, const struct audit_lease *lease);
/* Whether the row's result was decided by what its client signed with this command. */
bool audit_client_word(struct audit *audit, const struct audit_command *command,
                       const struct audit_held *held);

/* ---- audit_results.c */
bool audit_held_row(struct audit *audit, struct audit_command *command);
bool audit_result_row(struct audit *audit, struct audit_command *command);
bool audit_settlement_row(struct audit *audit, struct audit_command *command);
bool audit_outcomes(struct audit *audit);
void audit_job_end(void *job); /* for audit_map_fini */

#endif
