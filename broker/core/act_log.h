/* The audit log has one record for each privileged act, and counted refusals, in a hash chain
 * (P26).
 *
 * Its table lives in the ledger's file: one transaction makes an act and its record durable. HEAD,
 * outside of the database, holds the number and chain hash of the newest record. A key of its own
 * (audit.key) signs both. A start finds a log cut at its end, another record at the mark, and
 * another key. A start does not find a record that was edited, removed or moved before the end.
 * `bourse-broker acts` finds such a change: the command reads all records with code of its own.
 * docs/ledger.md section 11.
 *
 *   record n, little endian:
 *     "bourse/act/v1" NUL, u64 number, i64 log time (ns), i64 wall clock (ms, for people),
 *     u16 kind, u32 account (4294967295: nobody), u64 log index, 32 target, i64 amount,
 *     u32 state, u16 code, u16 type, u64 count, u8 length and text
 *   chain hash of n = SHA-256(chain hash of n - 1 || record n); zeros before record 1
 *   what is signed = "bourse/acts/v1" NUL, cluster id, u64 number, chain hash
 *
 * One thread at a time uses the log: the committer while the committer runs. */
#ifndef BOURSE_BROKER_CORE_ACT_LOG_H
#define BOURSE_BROKER_CORE_ACT_LOG_H

#include "base/id.h"
#include "base/problem.h"
#include "broker/storage/head.h"
#include "protocol/identity.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* Records hold these numbers, so a number never changes its meaning. */
enum act_kind {
    ACT_START = 1, /* target: the audit key; text: the release */
    ACT_STOP = 2,
    /* The operator accepted a journal without HEAD; target: the audit key, maybe a new
     * one. */
    ACT_ADOPT = 3,
    /* A restored market starts for the first time; count: lost records that HEAD had
     * seen and the backup had not. */
    ACT_RESTORE = 5,
    /* Accepted commands of members follow, by type of message. */
    ACT_JOIN = 16,   /* target: the new account */
    ACT_MINT = 17,   /* target: the account that receives; amount; text: note */
    ACT_INVITE = 18, /* amount: credits; state: roles; text: name */
    ACT_FREEZE = 19, /* target: the account; state: 1 frozen, 0 thawed; text: reason */
    ACT_HALT = 20,   /* state: 1 halted, 0 resumed; text: reason */
    /* The broker's operator changed caps or rules; state: rules; text: caps. */
    ACT_LIMITS = 21,
    ACT_BANDS = 22, /* text: the new bands and the reason */
    ACT_OWNER = 23, /* target: the first account; state: how many; text: the name */
    /* A count of refusals: account, code, type of the first one, count since the record
     * before. */
    ACT_REFUSAL = 64
};

enum { ACT_TEXT_SIZE = 256, ACT_BYTES_MAX = 512 };

struct act {
    enum act_kind kind;
    int64_t log_time_ns, wall_ms;
    /* The account that acted. EXCHANGE_NO_ACCOUNT: the broker's own operator, at its machine. */
    uint32_t account;
    /* Index of the command; for other acts, of the newest command before the act. */
    uint64_t log_index;
    struct key32 target;
    int64_t amount_micro;
    uint32_t state;
    uint16_t code, type;
    uint64_t count;
    char text[ACT_TEXT_SIZE]; /* a longer text is cut */
};

enum act_log_status { ACT_LOG_OK, ACT_LOG_FULL, ACT_LOG_FAILED };

struct act_log;

/* Opens the log in `database`, or creates it. `mark` is the end of the log as HEAD knows it, signed
 * by `key` for `cluster`. Returns false with a problem when the log ends before the mark, or
 * differs there. Also returns false when `key` is not the key that the log names. A NULL `mark`
 * stands for an adopted journal without HEAD: then nothing is checked. The caller keeps `key` alive
 * while the log is open. */
bool act_log_open(sqlite3 *database, const struct act_log_mark *mark, const struct identity *key,
                  const struct id128 *cluster, struct act_log **ret_log,
                  struct problem *ret_problem);
enum act_log_reach { ACT_LOG_REACHED, ACT_LOG_SHORT, ACT_LOG_OTHER, ACT_LOG_UNREADABLE };
/* Compares the log in `database`, of market `cluster`, with a mark from a HEAD that was kept
 * elsewhere. The key comes from the log itself, so audit.key need not be at hand.
 *
 * REACHED: the marked record is there. SHORT: the log ends *ret_lost records before the mark.
 * *ret_mark is then the mark that a HEAD beside this log may hold. *ret_mark has number 0 where the
 * log is short, or where an adoption brought another key since. OTHER (another record there, or a
 * mark by another key) and UNREADABLE come with a problem. */
enum act_log_reach act_log_hold_against(sqlite3 *database, const struct act_log_mark *mark,
                                        const struct id128 *cluster, struct act_log_mark *ret_mark,
                                        uint64_t *ret_lost, struct problem *ret_problem);
/* Returns true when each record follows from the one before, from the first on, as its row says.
 * Otherwise sets a problem that names the first wrong record, or the failure to read. *ret_reached
 * counts the records that follow. A database without the table holds an empty log. */
bool act_log_check_chain(sqlite3 *database, uint64_t *ret_reached, struct problem *ret_problem);
/* Returns true when the log has no record: the table is missing or empty. */
bool act_log_is_empty(sqlite3 *database);
void act_log_close(struct act_log **self);

/* Appends a record within the caller's transaction. Its log time is never earlier than that of the
 * record before. The record counts once act_log_committed is called after the commit;
 * act_log_rolled_back forgets the record. */
enum act_log_status act_log_append(struct act_log *acts, const struct act *act);
void act_log_committed(struct act_log *acts);
void act_log_rolled_back(struct act_log *acts);

/* Returns the log time of the newest durable record, or 0 when there is none. Log time goes on from
 * there after a restart. */
int64_t act_log_time_ns(const struct act_log *acts);
/* Returns the signed end of the log, for HEAD. */
const struct act_log_mark *act_log_mark(const struct act_log *acts);

#endif
