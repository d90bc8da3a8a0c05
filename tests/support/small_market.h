/* tests/support/small_market.h makes a small, true market on disk: journal, ledger and HEAD as a
 * broker leaves them.
 *
 * An owner (account 3, consumer and operator) founds it, mints, and invites a provider (account 4),
 * who joins and asks. The owner's job of three subtasks fills one lease, and two signed batches of
 * results finish it. Every command is signed, every record consistent. A test may bend one record
 * before it is stored; everything derived from it, leaf and tree, stays consistent with the bend. A
 * test may also change the finished database. */
#ifndef BOURSE_TESTS_SMALL_MARKET_H
#define BOURSE_TESTS_SMALL_MARKET_H

#include "base/id.h"
#include "broker/storage/entry.h"
#include "broker/storage/head.h"
#include "broker/storage/journal.h"
#include "ledger/store/sqlite.h"
#include "protocol/identity.h"

enum { SMALL_MARKET_OWNER = 3, SMALL_MARKET_PROVIDER = 4, SMALL_MARKET_ENTRIES = 7 };

/* Called with each record before it is stored; `number` counts from 1. When the callback returns
 * false, the record is left out. */
typedef bool small_market_bend(void *context, uint64_t number, struct ledger_record *record);

struct small_market {
    char folder[64];
    char database[96];
    char head[96];
    struct identity *log, *owner, *provider;
    struct id128 cluster, job;
    struct id128 other_device, other_ask; /* the same terms as the one filled, but later */
    struct hash32 results[4]; /* SHA-256 of the encoded results: 0, 1 (failed), 1 again, 2 */
};

/* Runs the market to its end and closes all files. sodium_init must have been called; any
 * failure stops the test. */
void small_market_create(struct small_market *self, small_market_bend *bend, void *context);
/* The same on devices of another instrument. Their results say that they are simulated, or do
 * not. */
void small_market_create_on(struct small_market *self, const char *instrument,
                            bool is_said_simulated);
/* Returns the hash of the job's manifest. *ret_bytes, unless NULL, gets its bytes, malloc'ed. */
struct hash32 small_market_manifest(uint8_t **ret_bytes, size_t *ret_length);
/* Removes the folder. */
void small_market_destroy(struct small_market *self);
/* Goes on as a broker that started anew: writes one entry of the next epoch, with `count` commands.
 * Returns the number of the last command. */
uint64_t small_market_go_on(const struct small_market *self, const struct entry_command *commands,
                            uint32_t count);
/* Runs SQL on the finished database. */
void small_market_sql(const struct small_market *self, const char *sql);

#endif
