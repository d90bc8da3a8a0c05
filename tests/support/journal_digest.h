/* tests/support/journal_digest.h replays a recorded journal and says in hashes what came of it
 * (P8).
 *
 * A recorded journal is a file of entries (broker/storage/entry.h), each after its length as u32.
 * The replay is the broker's own: translate_entry, exchange_step. Every field must come out the
 * same, whatever the compiler, the locale, the time zone, and wherever a snapshot was saved and
 * loaded in between. Only the pure rooms and broker/{entry,translate,arena,replay}.c are needed. */
#ifndef BOURSE_TESTS_JOURNAL_DIGEST_H
#define BOURSE_TESTS_JOURNAL_DIGEST_H

#include "base/id.h"
#include "base/problem.h"
#include "broker/storage/entry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIGEST_TEXT_SIZE = 4096, DIGEST_TYPES = 128 };

struct journal_digest {
    uint64_t entries, commands;
    uint64_t messages[DIGEST_TYPES];   /* by type of message */
    uint64_t others[ENTRY_OUTAGE + 1]; /* by kind of command: genesis, tick ... */
    struct hash32 journal;             /* chain hash of the last entry */
    struct hash32 effects;             /* of all effects, in their order */
    struct hash32 state;
    uint64_t tree_size;
    struct hash32 tree; /* root */
    size_t snapshot_length;
    struct hash32 snapshot; /* of the whole state as canonical bytes */
};

/* Replays all entries. After entry `cut` (0: nowhere) the state is saved, dropped, and loaded
 * again. Returns false with a problem when the journal cannot be replayed. */
bool journal_digest(const uint8_t *journal, size_t length, uint64_t cut,
                    struct journal_digest *ret_digest, struct problem *ret_problem);

/* Writes lines "name value", for people and for tests/golden. */
void journal_digest_text(const struct journal_digest *digest, char ret_text[DIGEST_TEXT_SIZE]);

#endif
