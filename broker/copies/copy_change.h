/* A copy change is one fact about blobs that brokers of one market tell each other.
 *
 * A fact has a key and a value. A new value of a key takes the place of the former one, whole. A
 * value of no bytes says that the fact is gone. So changes may be lost, repeated and reordered, as
 * long as the newest value of each key arrives.
 *
 *   kind       key                                  value
 *   owner      u32 account, 32 hash                 u64 size, u64 condemned since (s; 0: it is not)
 *   pending    u32 provider, 16 job, 32 hash        u32 account, u64 size
 *   forgotten  16 job                               u32 account, u64 at_ms, u8 reason, u8 state
 *   reign      u64 epoch                            u64 version that its leader began with
 *
 * Each value has two numbers of the same form. Its *stamp* says when a leader first wrote it. Of
 * two values of a key the one with the higher stamp is newer. Its *version* is its place in the
 * order in which the present leader tells its changes. They differ for what a new leader was told
 * of a former one's changes.
 *
 * A number is the epoch of the leader that wrote the change (upper 24 bits), and a count (lower 40
 * bits). Numbers are little endian (base/cursor.h). The code is pure. */
#ifndef BOURSE_BROKER_COPIES_COPY_CHANGE_H
#define BOURSE_BROKER_COPIES_COPY_CHANGE_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COPY_KEY_BYTES = 52, COPY_VALUE_BYTES = 16, COPY_COUNT_BITS = 40 };

enum copy_kind { COPY_OWNER = 1, COPY_PENDING = 2, COPY_FORGOTTEN = 3, COPY_REIGN = 4 };

struct copy_change {
    uint64_t version, stamp;
    enum copy_kind kind;
    uint8_t key[COPY_KEY_BYTES];
    size_t key_length;
    uint8_t value[COPY_VALUE_BYTES];
    size_t value_length; /* 0: the fact is gone */
    int64_t gone_s;      /* since when it is gone, by the clock of its leader */
};

/* The facts that a change says. Each kind has some of the fields; the others are 0. */
struct copy_facts {
    uint32_t account, provider;
    struct id128 job;
    struct hash32 hash;
    uint64_t size;
    int64_t since_s, at_ms;
    uint8_t reason, state;
    uint64_t epoch, founded;
    bool is_gone;
};

/* Returns the change that says the facts, without a version. */
struct copy_change copy_change_of(enum copy_kind kind, const struct copy_facts *facts);
/* Reads what a change says. Returns false when key or value are none of its kind. */
bool copy_change_read(const struct copy_change *change, struct copy_facts *ret_facts);

static inline uint64_t copy_version_first(uint64_t epoch)
{
    return epoch << COPY_COUNT_BITS;
}

static inline uint64_t copy_version_epoch(uint64_t version)
{
    return version >> COPY_COUNT_BITS;
}

#endif
