/* tests/support/arena.h - a real broker, its owner, and a member who wishes it ill; and messages
 * made by hand. */
#ifndef BOURSE_TESTS_ARENA_H
#define BOURSE_TESTS_ARENA_H

#include "protocol/envelope.h"
#include "protocol/reject.h"
#include "tests/support/broker_process.h"

enum { ARENA_WAIT_MS = 60000 };

struct arena { /* a broker, its owner, and a consumer who wishes it ill */
    struct broker_process broker;
    struct broker_client owner;
    struct broker_client
        loud; /* the owner's too: what is sent there is rubbish, its answers are read raw */
    struct identity *enemy_key;
    struct broker_client enemy;
    uint64_t
        refused[REJECT_CODE_COUNT]; /* by the audit log, once arena_close has ended the broker */
};

/* `extra`: lines of broker.yaml. */
void arena_open(struct arena *arena, const char *extra);
/* The broker is well, ends cleanly, its journal replays to the same state, and its audit log is
 * whole. */
void arena_close(struct arena *arena);
/* Another member, with an open session: by an invitation of the owner's, with one credit. */
void arena_join(struct arena *arena, struct broker_client *client, const struct identity *identity,
                const char *name, uint32_t roles);
long arena_resident_kib(const struct arena *arena);

/* The state holds the owner's money and the log's length: both stay as they were. */
struct arena_state {
    int64_t available_micro;
    uint64_t tree_size;
};
struct arena_state arena_state_of(struct arena *arena);
void arena_check_unchanged(struct arena *arena, struct arena_state before);
/* The state's hash, by replaying the journal as it stands now. Even a command that was refused
 * changes it: its number counts. */
struct hash32 arena_hash(const struct arena *arena);

ProtobufCBinaryData arena_bytes(const void *bytes, size_t length);
struct identity *arena_identity(void); /* a new one */
struct link *arena_connect(void *context, const char *endpoint, const struct arena *arena,
                           const struct identity *identity, size_t max_bytes);
void arena_put(struct link *link, const void *bytes, size_t length);
/* Reads what has come; true when one of the messages says Accepted. */
bool arena_drain(struct link *link, int wait_ms);
size_t arena_write(const struct envelope *envelope, uint8_t *ret_bytes, size_t capacity);

struct said { /* a message as its sender wishes it to be */
    uint16_t type;
    uint16_t version;
    bool is_signed;
    struct id128 id;
    int64_t made_ms; /* relative to log time */
    const void *body;
    size_t length;
    const struct identity *signer;
    const struct id128 *cluster;
};
/* Unsigned, by the owner and of this version, until it is changed; `client` is whose session and
 * clock it is written for. */
struct said arena_saying(const struct arena *arena, uint16_t type);
size_t arena_write_said(const struct said *said, const struct broker_client *client,
                        uint8_t *ret_bytes, size_t capacity);
enum reject_code arena_reject_code(const struct envelope *reject);

#endif
