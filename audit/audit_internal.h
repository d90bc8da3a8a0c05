/* audit/audit_internal.h is shared by the files of the audit; no other room includes the header.
 *
 * Every check returns true when the audit may go on. A check returns false after audit_finding or
 * audit_unreadable has written the report. */
#ifndef BOURSE_AUDIT_AUDIT_INTERNAL_H
#define BOURSE_AUDIT_AUDIT_INTERNAL_H

#include "audit/audit.h"
#include "audit/worth.h"
#include "base/id.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/genesis.h"
#include "protocol/message.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- a map from keys of 32 bytes to structs that the map owns; shorter keys are padded */

struct audit_slot {
    struct hash32 key;
    void *value; /* NULL: the slot is free */
};
struct audit_map {
    struct audit_slot *slots;
    size_t capacity, count;
};
void *audit_map_find(const struct audit_map *map, const struct hash32 *key);
/* Adds a zeroed value of `size` under a new key. Returns NULL when memory is short. */
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

/* The kinds of postings: numbers of transfers.kind. */
enum audit_money {
    MONEY_MINT = 2,
    MONEY_HOLD = 3,
    MONEY_CAPTURE = 4,
    MONEY_RELEASE = 5,
    MONEY_EXPIRE = 6,
    MONEY_FEE = 7,
};

enum { AUDIT_NAME_SIZE = 64 }; /* the longest name of the ledger, with its NUL */

struct audit_row {
    enum audit_table table;
    uint64_t entry, log_index;
    int64_t log_time_ns;
    bool has_leaf;
    uint64_t leaf;

    uint32_t number, roles; /* accounts */
    int64_t kind, amount;   /* transfers */
    uint32_t debit, credit;
    /* The two fields also hold accounts.key, fills.consumer, results.consumer and held.consumer. */
    struct key32 owner, provider;
    char name[AUDIT_NAME_SIZE]; /* accounts, jobs, flags, fills.instrument */
    /* The order is asks.ask, bids.bid, cancels.order_id or fills.ask. */
    struct id128 job, order, bid, device;
    struct hash32 hash;  /* jobs.manifest, results.hash, held.hash, epochs.commitment */
    struct hash32 check; /* results.checked_by, epochs.secret */
    uint64_t batch_index;
    uint8_t level;
    uint64_t lease;
    uint32_t index, attempt, position;
    uint32_t subtasks, width, slots;
    int64_t price, budget, cap, term_ns, paid_ns, charge;
    uint8_t outcome, status; /* also settlements.state, cancels.reason and flags.state */
    uint32_t accepted, failed, cancelled;
    int64_t charged, released;
    const uint8_t *bytes; /* results.bytes, valid until the next row */
    size_t length;
};

struct audit_rows {
    sqlite3_stmt *statements[AUDIT_TABLES];
    struct audit_row ahead[AUDIT_TABLES]; /* the next row of each table */
    bool has_ahead[AUDIT_TABLES];
    uint64_t next_entry, next_leaf;
    bool is_at_end;
    struct audit_row row; /* the current row */
};
const char *audit_table_name(enum audit_table table);

/* ---- commands of the journal */

enum { AUDIT_RESULTS_MAX = 256 };

struct audit_sent { /* one result of the current batch */
    struct hash32 hash;
    Bourse__V1__Result *result;
    bool is_used;
    bool is_missing; /* the command says that an output of the result was not stored */
};

struct audit_command {
    uint64_t index;
    int64_t log_time_ns;
    uint32_t account;
    uint16_t kind, verdict;
    const uint8_t *payload; /* borrowed from the entry */
    uint32_t payload_length;
    struct hash32 dice; /* kind RESULTS: the dice stand before the envelope */
    /* A set bit says that an output of the result with this index was not stored. The bits stand
     * after the dice when the verdict says so. */
    uint8_t missing[AUDIT_RESULTS_MAX / 8];

    struct envelope envelope; /* kinds MESSAGE and RESULTS */
    enum message_type type;   /* 0 for other kinds */
    ProtobufCMessage *body;
    struct audit_sent sent[AUDIT_RESULTS_MAX];
    struct hash32 sent_leaves[AUDIT_RESULTS_MAX];
    size_t sent_count;

    uint32_t accounts_opened, mints_made, epochs_begun; /* rows of the command so far */
    bool batch_checked;
};

/* ---- facts known so far */

struct audit_account {
    struct key32 key;
    uint32_t roles;
    int64_t available, held;
    uint64_t group; /* the command that first named the account's owner; 0: nobody named one */
    char owner[AUDIT_NAME_SIZE];
};

struct audit_invitation {
    uint32_t roles;
    int64_t credits, expires_ms;
    bool is_used;
    char name[AUDIT_NAME_SIZE];
};

struct audit_device {
    struct hash32 cell;           /* hash of the attributes as last advertised */
    int64_t rates[AUDIT_RATES];   /* rates in the attributes; 0: none */
    bool was_filled;              /* some ask for the device was filled; leases outlive asks */
    uint32_t slots, owner_number; /* as last advertised, and by which account */
    struct audit_lease *last_lease;
};

struct audit_terms { /* the signed terms of the leases that an ask begins */
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
    bool has_conditions; /* accounts or hours are limited, so a match may skip the ask */
    struct audit_terms terms;
    bool is_cancelled;
    struct audit_ask *next; /* the list is in the order of entries, for check_priority() */
};

enum { RULES_OF_CLEARING = 20 }; /* since these rules a job that names no order type is `market` */

struct audit_bid { /* the bid of one part of a job */
    struct audit_job *job;
    uint64_t entry; /* the bid's place in time; a replaced bid may get a later one */
    uint32_t number, width, slots, subtasks;
    int64_t cap, limit, term_ms; /* the cap may be LIMIT_NONE */
    uint32_t rate; /* cap and limit are values at this rate; AUDIT_RATE_NONE: per slot-hour */
    uint32_t type; /* type of the order, as on the wire */
    bool is_cancelled;
    struct audit_bid *next; /* the bid that was placed before, or NULL */
};

struct audit_job {
    struct id128 id;
    uint64_t entry;
    uint32_t bid_count; /* bids of the job so far */
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
    /* Subtask `checked` + k is the check of subtask k, in a job with `verify: cheap`. 0: the job's
     * results are not checked. */
    uint32_t checked;
    uint32_t held;                /* results of the job that are held now */
    struct audit_held **held_now; /* by subtask, the newest first; borrowed from audit.held */
    uint32_t accepted_checks;     /* checks with the verdict accept */
    uint32_t accepted_by_check, accepted_unchecked;
    /* The hash, by subtask, of the checkpoint for which the last result that was not late was paid;
     * zeros: none. NULL: the job has no checkpoints. */
    struct hash32 *saved;
};

struct audit_held { /* a result that waits for its verdict, or has got its verdict */
    struct audit_job *job;
    uint64_t entry;
    struct hash32 hash, dice;
    uint32_t index, attempt;
    uint64_t lease;
    uint32_t maker_number;
    uint32_t missing; /* checks that did not find the result's outputs */
    /* Since rules 18: checks that found no outputs, or were unsure, by referees who may judge the
     * result. */
    uint32_t doubts;
    /* Since rules 18: the first referee that rejected the result (0: none), and the attempt of that
     * check. is_confirmed says that a referee of another owner has rejected the result, too. */
    uint32_t accuser, accused_by;
    bool is_confirmed;
    bool is_settled;
    /* An earlier result of the same subtask that is held as well. A correct market never holds two
     * results of a subtask. */
    struct audit_held *before;
};

struct audit_check { /* the outcome of a check */
    struct audit_job *job;
    uint32_t index, attempt, provider_number;
    uint8_t outcome, status;
    bool is_lost; /* the broker lacked an input that the check misses, by the rules of that time */
    bool lacks_factor;
    uint32_t verdict;
    struct hash32 seed;
};
/* Returns true when the check found no bytes of the product that it judges, and the broker lacked
 * bytes that the check needs. */
static inline bool audit_lacks_product(const struct audit_check *check)
{
    return check->outcome == OUTCOME_INPUT_MISSING && check->is_lost && !check->lacks_factor;
}

enum { AUDIT_JUDGES = 64 }; /* more than the rules allow for one subtask */
/* The jury of a subtask: the accounts that have judged it. */
struct audit_jury {
    uint32_t count;
    uint32_t accounts[AUDIT_JUDGES];
};

struct audit_lease {
    struct audit_job *job;
    struct key32 provider;
    uint32_t provider_number;
    struct id128 device;
    bool is_simulated; /* the fill's instrument is a simulated one */
    uint32_t width;
    int64_t price, paid_ns, charged;
    const struct audit_bid *bid;
    struct audit_terms terms;
    int64_t filled_ns;
    bool was_taken;             /* another bid has taken the lease */
    struct audit_lease *before; /* the earlier lease on the same device, or NULL */
    uint32_t slots;
    uint32_t device_slots;       /* the device's slots when the lease was filled; 0: unknown */
    bool is_plain;               /* the lease took no other lease's place: its slots were free */
    uint64_t beside;             /* slots that other leases certainly had at the time of the fill */
    bool has_begun;              /* the lease has certainly begun */
    struct audit_lease *counted; /* newest lease whose `beside` already counts this lease */
};

struct audit_due { /* the payments that must follow the last row of a result */
    struct audit_job *job;
    uint64_t lease;
    uint32_t index, attempt, provider_number;
    int64_t capture, fee;
};

struct audit_mark { /* content of HEAD */
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
    sqlite3_stmt *nodes[2]; /* statements: a stored node, and the stored checkpoint */
    char note[512];
    uint64_t note_size;
    bool has_note;
};

/* A record that the journal requires in the audit log: a start for each epoch that wrote entries,
 * and limits for each entry that changes limits. `log_index` is that of the command before. */
struct audit_owed {
    uint16_t kind;
    uint64_t log_index;
};

/* The bounds on orders, which signed commands set. */
struct audit_bands {
    int64_t least_micro, most_micro;
    int64_t notional_micro; /* 0: no bound */
};

enum { AUDIT_SNAPSHOT_NAME = 36 }; /* with its NUL */
/* The struct holds what a snapshot's name and first bytes say. Fields of a damaged head are
 * zeros. */
struct audit_snapshot {
    char name[AUDIT_SNAPSHOT_NAME];
    uint64_t name_command;
    uint64_t command, entry;
    struct hash32 chain; /* of the entry */
    struct id128 cluster;
};

struct audit_tail_entry { /* an entry of the journal's tail */
    uint64_t index, epoch;
    struct hash32 previous, chain;
};

struct audit_tail { /* by index */
    struct audit_tail_entry *entries;
    size_t count, capacity;
};

struct audit {
    struct audit_report *report;
    const char *folder;                   /* borrowed from the caller */
    char snapshots_folder[PATH_MAX - 64]; /* leaves room for a name */
    struct audit_snapshot *snapshots;
    size_t snapshot_count;
    uint64_t history_mark; /* record of the last result that history.db has seen, or 0 */
    bool was_served;       /* the folder has files that only a running broker makes */
    bool has_acts_key;     /* the audit log has a record */
    struct key32 acts_key;
    sqlite3 *database;
    struct audit_rows rows;
    struct audit_tree tree;
    struct genesis genesis;
    bool has_genesis;
    struct audit_bands bands;
    struct audit_mark mark;
    bool has_mark;
    struct audit_tail tail;

    struct audit_account *accounts; /* by number */
    uint32_t account_count;
    size_t account_capacity;
    struct audit_map numbers;     /* account key -> uint32_t */
    struct audit_map invitations; /* token hash */
    struct audit_map devices;     /* device id */
    struct audit_map instruments; /* audit_instrument of every advertised device */
    struct audit_map asks, bids, jobs, leases;
    struct audit_map tainted; /* numbers of accounts that were once suspect or away */
    struct audit_map held;    /* number of the command and position in its batch */
    struct audit_map checks;  /* hash of the check's Result */
    struct audit_map juries;  /* job id and index of a subtask */
    bool has_epoch;           /* an epoch has begun */
    bool has_secret;          /* a later epoch shows the secret of the current epoch */
    struct hash32 commitment, secret;
    struct audit_ask *first_ask, *last_ask;
    struct audit_bid *first_bid; /* bids that stand, and perhaps some that are cancelled */
    struct audit_due due;
    uint64_t last_lease;
    struct audit_owed *owed; /* in the order of the journal */
    size_t owed_count, owed_capacity;
    bool has_limits; /* limits were read: later limits are acts, the first limits are not */
    /* Number of the rules that the last limits before the current command named; 0 before the first
     * limits. A check that newer rules added tests `rules >= N`. */
    uint32_t rules;
};

/* ---- reporting (audit.c) */
__attribute__((format(printf, 4, 5))) bool audit_finding(struct audit *audit, const char *table,
                                                         uint64_t entry, const char *format, ...);
/* Starts to record reads that the disk refuses, and forgets earlier ones. audit_reads_failed() then
 * tells whether a read failed. */
void audit_watch_reads(void);
bool audit_reads_failed(void);
/* Names the file that the disk failed first, and what the operator does. */
void audit_explain_unread(char *ret_text, size_t capacity);
__attribute__((format(printf, 2, 3))) bool audit_unreadable(struct audit *audit, const char *format,
                                                            ...);
/* Reports that the current row breaks a rule. `rule` says what must hold. Always returns false. */
bool audit_row_finding(struct audit *audit, const char *rule);
/* Each function returns true when the rule holds, else reports that the current row breaks the
 * rule. audit_expect() is defined here, so that analyzers know what holds after the call. */
static inline bool audit_expect(struct audit *audit, bool holds, const char *rule)
{
    if (!holds) {
        (void)audit_row_finding(audit, rule); /* always false */
    }
    return holds;
}
bool audit_expect_i64(struct audit *audit, const char *rule, int64_t expected, int64_t found);
bool audit_expect_bytes(struct audit *audit, const char *rule, const void *expected,
                        const void *found, size_t length);
/* audit_expect_name() checks that a name of the ledger is the signed one (NULL: none).
 * audit_cut_name() cuts the signed name between characters to the ledger's length. */
bool audit_expect_name(struct audit *audit, const char *rule, const char *sent);
void audit_cut_name(char ret_name[AUDIT_NAME_SIZE], const char *sent);
bool audit_out_of_memory(struct audit *audit);

/* Returns the key for "this account advertised the device under this instrument". */
struct hash32 audit_instrument(uint32_t account, const struct id128 *device, const char *name);

/* ---- rows.c */
bool audit_rows_open(struct audit *audit);
void audit_rows_close(struct audit *audit);
/* Moves to the next row. The row's entry and leaf numbers must follow without a gap. */
bool audit_rows_next(struct audit *audit);

/* ---- audit.c */
/* Writes the paths of ledger.db and HEAD in `folder`, each of PATH_MAX bytes. */
bool audit_paths(struct audit *audit, const char *folder, char *ret_database, char *ret_head);
bool audit_open_database(struct audit *audit, const char *path);

/* ---- journal.c */
/* Reads HEAD into the audit's mark. A missing HEAD is no finding: a backup has none. */
bool audit_read_head(struct audit *audit, const char *path);
/* Walks the chain and calls audit_command_check for each command. Compares HEAD, which was read
 * before. */
bool audit_journal(struct audit *audit);

/* ---- tail.c */
/* Reads the files of the journal's tail, which may be missing: after HEAD, before the database. */
bool audit_tail_read(struct audit *audit, const char *folder);
void audit_tail_end(struct audit *audit);
typedef void audit_on_tail(void *context, uint64_t entry, const struct hash32 *chain);
/* Checks that the tail follows the journal, which ends at `entry` with `chain` and was last written
 * under `epoch`. Calls `on_entry` for every entry that the tables do not have yet. */
bool audit_tail_check(struct audit *audit, uint64_t entry, uint64_t epoch,
                      const struct hash32 *chain, audit_on_tail *on_entry, void *context);

/* ---- folder.c */
/* Looks at the folder before the database is opened. A running broker may write a snapshot
 * meanwhile; the snapshot is then never newer than the journal, which is read later. */
bool audit_folder_look(struct audit *audit, const char *folder);
/* Checks, at the end of the audit, what a start checks besides the ledger: snapshots, keys, HEAD's
 * presence and blobs.db. */
bool audit_folder_check(struct audit *audit);
void audit_folder_end(struct audit *audit);

/* ---- acts.c */
/* Records an act that must be in the audit log. */
bool audit_owe(struct audit *audit, uint16_t kind, uint64_t log_index);
/* Checks the audit log against HEAD. Every mint, every freeze and all owed records must be in it.
 * `on_act` may be NULL. */
bool audit_acts(struct audit *audit, uint64_t since, audit_on_act *on_act, void *context);

/* ---- commands.c */
/* Decodes a command, verifies its signature, and records facts for later rows. Then checks all rows
 * with its index. */
bool audit_command_check(struct audit *audit, struct audit_command *command);
void audit_command_fini(struct audit_command *command);
/* Returns the number of the account with a key; false when unknown. */
bool audit_account_number(const struct audit *audit, const struct key32 *key, uint32_t *ret_number);

/* ---- tree.c */
bool audit_tree_open(struct audit *audit);
void audit_tree_close(struct audit *audit);
bool audit_tree_add(struct audit *audit, const struct audit_row *row);
bool audit_tree_end(struct audit *audit);

/* ---- money.c */
bool audit_account_row(struct audit *audit, struct audit_command *command);
bool audit_transfer_row(struct audit *audit, struct audit_command *command);
/* Checks, before any row that is not a payment, that the last result was fully paid. */
bool audit_nothing_due(struct audit *audit);
bool audit_balances(struct audit *audit);

/* ---- market.c */
bool audit_job_row(struct audit *audit, struct audit_command *command);
bool audit_ask_row(struct audit *audit, struct audit_command *command);
bool audit_bid_row(struct audit *audit, struct audit_command *command);
bool audit_cancel_row(struct audit *audit, struct audit_command *command);
bool audit_flag_row(struct audit *audit, struct audit_command *command);

/* ---- fills.c */
bool audit_fill_row(struct audit *audit, struct audit_command *command);
/* Records that the lease has its slots, since the current row is a result of the lease that came in
 * time. */
bool audit_lease_worked(struct audit *audit, struct audit_lease *lease);

/* ---- checks.c */
bool audit_epoch_row(struct audit *audit, struct audit_command *command);
/* Checks, after the rows of a command that should begin an epoch, that an epoch began. */
bool audit_epoch_command(struct audit *audit, const struct audit_command *command);
/* Returns true when a batch of results came with the dice of its epoch, or when the audit does not
 * know these dice. */
bool audit_dice(struct audit *audit, const struct audit_command *command);
/* Handles a HELD row: a held result of the current batch. */
bool audit_hold(struct audit *audit, const struct audit_lease *lease, const struct hash32 *dice);
/* Returns the held result of the current row, or NULL when it was not held. */
struct audit_held *audit_held_of(const struct audit *audit);
/* Checks that the row's level is true, and that the check which the row names supports the row's
 * status. `held` is from audit_held_of(); the row is the one RESULT of the held result. */
bool audit_level(struct audit *audit, const struct audit_command *command,
                 const struct audit_lease *lease, struct audit_held *held,
                 const Bourse__V1__Result *result);
/* Returns the seed of a check, which was drawn after the held result arrived. The seed is made from
 * the dice of the result's command, the result's hash, and the attempt of the check. */
struct hash32 audit_seed(const struct audit_held *held, uint32_t index, uint32_t attempt);
/* Checks, at a settlement, that no result of the job is held any more, and that every check decided
 * one. */
bool audit_checks_of(struct audit *audit, const struct audit_job *job);

/* ---- juries.c */
/* Returns true when the rules in force need two referees of different owners to refute a result. */
bool audit_two_refute(const struct audit *audit);
/* Records an accepted SetOwner. */
bool audit_set_owner(struct audit *audit, const struct audit_command *command);
/* Returns true when the referee may judge the held result. The referee's owner is then not the
 * maker's, and, if the row accepts the result, not the accuser's either. */
bool audit_may_judge(const struct audit *audit, const struct audit_held *held, uint32_t referee);
/* Records the check of a held result in the current row. Returns false when memory is short. */
bool audit_note_verdict(struct audit *audit, const struct audit_lease *lease,
                        struct audit_held *held, const struct audit_check *check,
                        const Bourse__V1__Result *result);
/* Checks that the lease's provider has not judged the subtask of the current row. */
bool audit_may_make(struct audit *audit, const struct audit_lease *lease);
/* Checks that the signed command of the client decided the row's result. */
bool audit_client_word(struct audit *audit, const struct audit_command *command,
                       const struct audit_held *held);

/* ---- results.c */
bool audit_held_row(struct audit *audit, struct audit_command *command);
bool audit_result_row(struct audit *audit, struct audit_command *command);
bool audit_settlement_row(struct audit *audit, struct audit_command *command);
bool audit_outcomes(struct audit *audit);
void audit_job_end(void *job); /* for audit_map_fini */

#endif
