/* broker/core/acts.h - the audit log: one record per privileged act, and counted refusals,
 * hash-chained (P26).
 *
 * Its table lives in the ledger's file, so that the record of an act is durable in the same
 * transaction as the act itself. Number and chain hash of the newest record, signed by a key of its
 * own (audit.key), stand in HEAD, outside of the database. A start finds a cut end, another record
 * there and another key, no more; an edit, a removal or another order before the end is for
 * `bourse-broker acts` to find, which reads all this with code of its own. docs/ledger.md
 * section 11.
 *
 *   record n, little endian:
 *     "bourse/act/v1" NUL, u64 number, i64 log time (ns), i64 wall clock (ms, for people), u16 kind,
 *     u32 account (4294967295: nobody), u64 log index, 32 target, i64 amount, u32 state, u16 code,
 *     u16 type, u64 count, u8 length and text
 *   chain hash of n = SHA-256(chain hash of n - 1 || record n); zeros before record 1
 *   what is signed = "bourse/acts/v1" NUL, cluster id, u64 number, chain hash
 *
 * One thread at a time: the committer's while it runs. */
#ifndef BOURSE_BROKER_CORE_ACTS_H
#define BOURSE_BROKER_CORE_ACTS_H

#include "base/id.h"
#include "base/problem.h"
#include "broker/storage/head.h"
#include "protocol/identity.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum act_kind {                /* never renumbered: they are in records */
                ACT_START = 1, /* target: the audit key; text: the release */
                ACT_STOP = 2,
                ACT_ADOPT = 3, /* a journal without HEAD was believed; target: the audit key, maybe
                                  a new one */
                ACT_RESTORE = 5, /* the first start on a restored market; count: records of this log
                                    that were lost, which HEAD had seen and the backup had not */
                /* Accepted commands of members, by type of message. */
                ACT_JOIN = 16,   /* target: who joined */
                ACT_MINT = 17,   /* target: to whom; amount; text: note */
                ACT_INVITE = 18, /* amount: credits; state: roles; text: name */
                ACT_FREEZE = 19, /* target: whom; state: 1 frozen, 0 thawed; text: reason */
                ACT_HALT = 20,   /* state: 1 halted, 0 resumed; text: reason */
                ACT_LIMITS = 21, /* of the broker's operator: caps or rules changed; state: rules;
                                    text: caps */
                ACT_BANDS = 22,  /* text: what was set, and the reason */
                ACT_OWNER = 23,  /* target: the first account, state: how many, text: the name */
                ACT_REFUSAL =
                    64 /* account, code, type of the first, count since the record before */
};

enum { ACT_TEXT_SIZE = 256, ACT_BYTES_MAX = 512 };

struct act {
    enum act_kind kind;
    int64_t log_time_ns, wall_ms;
    uint32_t
        account; /* who did it; EXCHANGE_NO_ACCOUNT: the broker's own operator, at its machine */
    uint64_t log_index; /* of the command; of others the newest command before */
    struct key32 target;
    int64_t amount_micro;
    uint32_t state;
    uint16_t code, type;
    uint64_t count;
    char text[ACT_TEXT_SIZE]; /* cut, never overrun */
};

enum acts_status { ACTS_OK, ACTS_FULL, ACTS_FAILED };

struct acts;

/* Opens the log in `database`, or makes it. `mark` is what HEAD says of it, signed by `key` for
 * `cluster`. False with a problem when the log ends short of it, or differs there, or the key is
 * not the one that the log names. Without HEAD (`mark` NULL) nothing of this is checked: it was
 * adopted. `key` is borrowed while the log is open. */
bool acts_open(sqlite3 *database, const struct acts_mark *mark, const struct identity *key,
               const struct id128 *cluster, struct acts **ret_acts, struct problem *ret_problem);
enum acts_reach { ACTS_REACHED, ACTS_SHORT, ACTS_OTHER, ACTS_UNREADABLE };
/* Holds the log in `database`, of market `cluster`, against a mark of HEAD that was kept elsewhere,
 * by the key that the log itself names: audit.key need not be at hand. REACHED: the marked record
 * is there. SHORT: the log ends *ret_lost records before it. *ret_mark is then what a HEAD beside
 * this log may say: the mark, or none (number 0) where the log is short or an adoption brought
 * another key since. OTHER (another record there, or a mark by another key) and UNREADABLE come
 * with a problem. */
enum acts_reach acts_hold_against(sqlite3 *database, const struct acts_mark *mark,
                                  const struct id128 *cluster, struct acts_mark *ret_mark,
                                  uint64_t *ret_lost, struct problem *ret_problem);
/* Whether each record follows from the one before, from the first on, as its row has it. False with
 * a problem that names the first that does not, or what could not be read; *ret_reached counts
 * those that do. No table is an empty log. */
bool acts_check_chain(sqlite3 *database, uint64_t *ret_reached, struct problem *ret_problem);
/* Whether there is no record: no table, or nothing in it. */
bool acts_is_empty(sqlite3 *database);
void acts_close(struct acts **self);

/* Appends within the caller's transaction, never with an earlier log time than the record before.
 * It counts once acts_committed was called after the commit; after anything else acts_rolled_back
 * forgets it. */
enum acts_status acts_append(struct acts *acts, const struct act *act);
void acts_committed(struct acts *acts);
void acts_rolled_back(struct acts *acts);

/* Log time of the newest durable record, 0 when there is none: after a restart, log time goes on
 * from there. */
int64_t acts_log_time_ns(const struct acts *acts);
/* The signed end of the log, for HEAD. */
const struct acts_mark *acts_mark(const struct acts *acts);

#endif
