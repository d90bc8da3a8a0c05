/* ledger/record.h describes one entry of the ledger, a value that the exchange emits.
 *
 * exchange_step emits records, and ledger/store stores them. Records for which `record_is_logged`
 * returns true become leaves of the Merkle tree through their canonical bytes (record_leaf). The
 * store numbers entries in the order emitted.
 *
 * Canonical leaf bytes (little endian, written by the cursor):
 *   "bourse/leaf/v1" NUL, u8 kind, u64 log_index, i64 log_time_ns, then per kind:
 *     JOB     job id 16, owner key 32, manifest 32, u32 subtasks, i64 budget, i64 cap (-1:
 *             none), u32 width
 *     ASK     order id 16, owner key 32, device 16, u32 slots, i64 price
 *     BID     order id 16, owner key 32, job id 16, u32 slots, u32 width, i64 limit
 *     CANCEL  order id 16, u8 reason
 *     FILL    lease u64, ask id 16, bid id 16, job id 16, provider key 32, consumer key 32,
 *             device 16, u32 slots, i64 price, i64 term_ns
 *     RESULT  job id 16, u32 index, u32 attempt, u64 lease, provider key 32, consumer key 32,
 *             result hash 32 (SHA-256 of the encoded Result), u8 outcome, u8 status (enum
 *             attempt_status), i64 price, i64 paid_ns, i64 charge,
 *             u64 batch_index, u8 level (0: not checked, 1: cheap, 2: by the client),
 *             hash 32 of the check's Result, or of the type and body of the client's JudgeResult
 *     HELD    job id 16, u32 index, u32 attempt, u64 lease, provider key 32, consumer key 32,
 *             result hash 32
 *     EPOCH   commitment 32 (SHA-256 of the secret that begins), secret 32 of the epoch that
 *             ends (zeros: none, or lost)
 *     SETTLED job id 16, u8 state, u32 accepted, u32 failed, u32 cancelled, i64 charged,
 *             i64 released (amount)
 *     ACCOUNT account key 32, u32 number (credit), u32 roles
 *     TRANSFER (mints only: debit is ACCOUNT_MINT) account key 32, i64 amount
 *
 * An auditor relies on the order of related entries. A RESULT with a charge is followed by the
 * CAPTURE of the charge less its fee (to the provider) and the FEE (to ACCOUNT_FEES). Both come out
 * of the job's hold and carry the result's job, lease, index and attempt; an amount of 0 has no
 * entry. paid_ns is slot-time: lane time x width. A JOB is followed by its HOLD of the whole
 * budget, and a SETTLED comes with the RELEASE or EXPIRE of the hold's rest. The bid of a job
 * carries the job's id; `slots` UINT32_MAX means as many as it can use. */
#ifndef BOURSE_LEDGER_RECORD_H
#define BOURSE_LEDGER_RECORD_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ledger_kind {
    LEDGER_ACCOUNT = 1,  /* an account was opened */
    LEDGER_TRANSFER = 2, /* a mint, a withdrawal */
    LEDGER_HOLD = 3,     /* opened */
    LEDGER_CAPTURE = 4,
    LEDGER_RELEASE = 5,
    LEDGER_EXPIRE = 6,
    LEDGER_FEE = 7, /* the operator's part of a capture */
    LEDGER_JOB = 8,
    LEDGER_ASK = 9,
    LEDGER_BID = 10,
    LEDGER_CANCEL = 11,
    LEDGER_FILL = 12,
    LEDGER_RESULT = 13,
    LEDGER_SETTLED = 14,
    LEDGER_FLAG = 15, /* frozen, halted: for the audit log */
    /* A result arrived that is held until it is checked; its RESULT follows, once. */
    LEDGER_HELD = 16,
    LEDGER_EPOCH = 17, /* a new secret for the dice begins */
};

enum check_level {
    CHECK_NONE = 0,
    CHECK_CHEAP = 1,  /* by a referee */
    CHECK_CLIENT = 2, /* by the job's client */
};

struct ledger_record {
    enum ledger_kind kind;
    uint64_t log_index;
    int64_t log_time_ns;
    /* The postings of this entry. TRANSFER, CAPTURE, FEE: debit and credit (of the latter two,
     * the debit is held money). HOLD, RELEASE, EXPIRE: debit == credit, the hold's owner.
     * ACCOUNT: debit == credit, its number. JOB: amount is the budget. SETTLED: amount is the
     * released rest. */
    uint32_t debit;
    uint32_t credit;
    int64_t amount_micro;
    /* The subject of the entry; zero where the kind has none. */
    struct id128 job;   /* also the hold's name: one hold per job */
    struct id128 order; /* ASK, BID, CANCEL: the order. FILL: the ask */
    struct id128 bid;   /* FILL */
    uint64_t lease;
    uint32_t index; /* subtask */
    uint32_t attempt;
    /* The key is the owner's in ACCOUNT, JOB, ASK and BID, the consumer's in FILL, RESULT and HELD,
     * and the receiver's in a mint. */
    struct key32 owner;
    struct key32 provider; /* FILL, RESULT, HELD */
    struct id128 device;
    /* A JOB has the manifest's hash, RESULT and HELD the encoded Result's, EPOCH the commitment. */
    struct hash32 hash;
    uint32_t slots;
    uint32_t width;                       /* BID: slots_per_device. JOB: of one subtask */
    uint32_t subtasks;                    /* JOB */
    uint32_t accepted, failed, cancelled; /* SETTLED */
    uint32_t roles;                       /* ACCOUNT */
    int64_t price_micro;                  /* ASK, BID (limit), FILL, RESULT; JOB: the cap or -1 */
    int64_t term_ns;                      /* FILL */
    int64_t paid_ns;                      /* RESULT */
    int64_t charge_micro;                 /* RESULT; SETTLED: all charges */
    uint8_t outcome;                      /* RESULT */
    uint8_t status; /* RESULT: enum attempt_status. SETTLED: enum job_state. CANCEL: reason */
    char name[64];  /* ACCOUNT, JOB, FLAG; FILL: the instrument. For people, not in the leaf */
    /* RESULT, HELD: the encoded bytes, and the result's position in its batch. The bytes are
     * borrowed from the command until its effects are dropped. */
    const uint8_t *result;
    uint32_t result_length;
    uint32_t position;
    /* RESULT: the command that brought the result; before log_index when the result was held. HELD:
     * log_index. */
    uint64_t batch_index;
    uint8_t level; /* RESULT: the level of its check, enum check_level */
    /* RESULT: hash of the check's Result, where a referee decided. EPOCH: the secret of the epoch
     * that ends. */
    struct hash32 check;
};

enum { RECORD_LEAF_MAX = 320 };

bool record_is_logged(const struct ledger_record *record);
/* Writes the canonical bytes of a logged kind and returns their number. */
size_t record_leaf(const struct ledger_record *record, uint8_t ret_bytes[RECORD_LEAF_MAX]);

/* Reads the canonical bytes of a RESULT leaf. Returns false for any other bytes. */
bool record_read_result(const void *bytes, size_t length, struct ledger_record *ret_record);

#endif
