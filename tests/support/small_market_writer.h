/* tests/support/small_market_writer.h has what small_market.c and checked_market.c write a
 * market with. Commands are journal entries, and records follow from them. No other file uses
 * this header. */
#ifndef BOURSE_TESTS_SMALL_MARKET_WRITER_H
#define BOURSE_TESTS_SMALL_MARKET_WRITER_H

#include "broker/storage/entry.h"
#include "broker/storage/journal_sqlite.h"
#include "protocol/codec.h"
#include "protocol/results.h"
#include "tests/support/small_market.h"

#define SMALL_MARKET_ORIGIN "bourse.test/small"
#define SMALL_MARKET_PRICE INT64_C(3600000000) /* a micro-credit per microsecond */

enum { COMMANDS_MAX = 4, RECORDS_MAX = 16, BATCH_MAX = 4, FEE_PPM = 10000 };

/* A group is written together: one journal entry and the records of its commands. */
struct group {
    uint32_t command_count;
    struct entry_command commands[COMMANDS_MAX];
    uint8_t *owned[COMMANDS_MAX];
    uint32_t record_count;
    struct ledger_record records[RECORDS_MAX];
};

struct batch {
    size_t count;
    uint8_t *bytes[BATCH_MAX];
    size_t lengths[BATCH_MAX];
    struct hash32 leaves[BATCH_MAX];
    struct signature64 signature;
    bool misses_input; /* the first result says that an input is missing */
};

struct writer_state {
    struct small_market *market;
    struct ledger_store *store;
    struct journal *journal;
    struct head_file *head;
    uint64_t epoch;
    struct journal_last last;
    struct group group;
    struct batch batch;
    int64_t now_ns;
    uint64_t ids;
    uint64_t record_number;
    int64_t lease_paid_ns, lease_charged_micro;
    struct id128 ask, device;
    struct hash32 manifest;
    const char *instrument; /* the instrument of both devices */
    bool is_said_simulated; /* their results say that they are simulated */
    small_market_bend *bend;
    void *context;
};

/* Adds a command. The payload then belongs to the group. */
void writer_add_command(struct writer_state *state, enum entry_command_kind kind, uint32_t account,
                        uint8_t *payload, size_t length);
/* Returns the command's id. `signer` is NULL for a type that bears no signature of its own. */
struct id128 writer_add_message(struct writer_state *state, enum message_type type,
                                const struct identity *signer, uint32_t account,
                                const ProtobufCMessage *body);
ProtobufCBinaryData writer_data(const void *bytes, size_t length);
/* Adds a record of the newest command. */
struct ledger_record *writer_add_record(struct writer_state *state, enum ledger_kind kind);
void writer_add_account(struct writer_state *state, uint32_t number,
                        const struct identity *identity, uint32_t roles, const char *name);
/* Writes what was added since the last commit: one entry and its records, in one transaction. */
void writer_commit(struct writer_state *state);
struct identity *writer_identity(uint8_t seed_byte);

/* Goes on after the end of the small market. */
typedef void small_market_more(struct writer_state *state, void *context);
void small_market_create_more(struct small_market *self, small_market_bend *bend,
                              small_market_more *more, void *context);

#endif
