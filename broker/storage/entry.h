/* An entry of the journal holds a group of commands; entries form a hash chain.
 *
 *   offset size field                                    all little endian
 *        0    4 magic "BJE1"
 *        4    4 command count (>= 1)
 *        8    8 index                                    1, 2, 3 ...: of the ENTRY
 *       16    8 epoch
 *       24   16 batch id
 *       40   32 chain hash of the entry before (zeros before entry 1)
 *       72    8 index of the first command: commands are numbered 1, 2, 3 ... over all entries
 *       80    n commands, each: u32 length, then
 *               0   8 log time, ns
 *               8   4 account number of the verified sender (UINT32_MAX: the broker itself)
 *              12   2 kind (enum entry_command_kind)
 *              14   2 verdict: bits of enum entry_verdict
 *              16   m kind MESSAGE: the whole envelope as received; kind RESULTS: 32 bytes of
 *                   dice, with the verdict MISSING 32 bytes that mark the results, then the
 *                   envelope; others: their own few bytes
 *
 * The chain hash of an entry is the SHA-256 of its bytes; the field at 40 links it to the one
 * before. The code is pure. */
#ifndef BOURSE_BROKER_STORAGE_ENTRY_H
#define BOURSE_BROKER_STORAGE_ENTRY_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ENTRY_HEAD_BYTES = 80,
    ENTRY_COMMAND_HEAD_BYTES = 16,
    ENTRY_MAX_BYTES = 4 << 20,
    ENTRY_FROM_BROKER = -1
};

enum entry_command_kind {
    ENTRY_MESSAGE = 1,  /* command of a client or agent, other than results: its envelope */
    ENTRY_GENESIS = 2,  /* first command of a journal: protocol/genesis.h */
    ENTRY_TICK = 3,     /* log time; on etcd now and then 32 bytes: state hash before it */
    ENTRY_SUSPECT = 4,  /* u32 account: three heartbeats missed */
    ENTRY_RETURNED = 5, /* u32 account: the provider speaks again */
    ENTRY_GOODBYE = 6,  /* u32 account: the provider said goodbye, or is gone for good */
    ENTRY_LIMITS = 7,   /* rules and caps from here on: translate_limits */
    ENTRY_EPOCH = 8,    /* dice of another secret from here on: translate_epoch */
    ENTRY_RESULTS = 9,  /* results of an agent: the dice that the broker added, then the envelope */
    ENTRY_OUTAGE = 10,  /* i64 time in ns for which no broker ran: translate_outage */
};

/* These bits say what the broker found before it gave the command its place. */
enum entry_verdict {
    ENTRY_SIGNED = 1,  /* the signature is the sender's */
    ENTRY_MISSING = 2, /* kind RESULTS: outputs of some results are not stored */
};

/* One bit stands for each result of a batch, from the lowest bit of the first byte on. */
enum { ENTRY_RESULTS_MAX = 256 };
struct entry_results {
    uint8_t bits[ENTRY_RESULTS_MAX / 8];
};
void entry_results_set(struct entry_results *results, size_t position);
bool entry_results_has(const struct entry_results *results, size_t position);

struct entry_command {
    int64_t log_time_ns;
    uint32_t account; /* UINT32_MAX: the broker */
    enum entry_command_kind kind;
    uint16_t verdict;
    const uint8_t *payload; /* borrowed; without the dice */
    uint32_t payload_length;
    /* The dice of kind RESULTS; no sender can choose the dice (broker/storage/epoch.h). */
    struct hash32 dice;
    struct entry_results missing; /* with the verdict MISSING */
};

struct entry_head {
    uint32_t count;
    uint64_t index;
    uint64_t epoch;
    struct id128 batch;
    struct hash32 previous;
    uint64_t first_command;
};

/* Returns the size of one command in an entry, with its length field. */
size_t entry_command_size(const struct entry_command *command);
/* Writes head and commands; returns the size, or 0 when capacity is too small. */
size_t entry_write(const struct entry_head *head, const struct entry_command *commands,
                   uint8_t *ret_bytes, size_t capacity);
/* Returns true when magic, sizes and count are right and no bytes are left over. */
bool entry_read_head(const void *bytes, size_t length, struct entry_head *ret_head);
/* Walks the commands; `position` starts at 0 and moves on. Returns false at the end. The caller
 * calls entry_read_head before. */
bool entry_next(const void *bytes, size_t length, size_t *position,
                struct entry_command *ret_command);

#endif
