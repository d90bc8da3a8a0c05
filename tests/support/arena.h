/* tests/support/arena.h has a real broker, its owner, and a member who attacks it, with messages
 * made by hand. */
#ifndef BOURSE_TESTS_ARENA_H
#define BOURSE_TESTS_ARENA_H

#include "protocol/envelope.h"
#include "protocol/reject.h"
#include "tests/support/broker_process.h"

enum { ARENA_WAIT_MS = 60000 };

/* A broker, its owner, and a consumer who attacks them. */
struct arena {
    struct broker_process broker;
    struct broker_client owner;
    /* The owner's second connection: rubbish is sent there, and answers are read raw. */
    struct broker_client loud;
    struct identity *enemy_key;
    struct broker_client enemy;
    /* The counts of the audit log, once arena_close has ended the broker. */
    uint64_t refused[REJECT_CODE_COUNT];
};

/* `extra` holds lines of broker.yaml. */
void arena_open(struct arena *arena, const char *extra);
/* Fails unless the broker is well, ends cleanly, its journal replays to the same state, and its
 * audit log is whole. */
void arena_close(struct arena *arena);
/* Adds a member with an open session and one credit, by an invitation of the owner's. */
void arena_join(struct arena *arena, struct broker_client *client, const struct identity *identity,
                const char *name, uint32_t roles);
long arena_resident_kib(const struct arena *arena);

/* The owner's money and the log's length: an attack must leave both as they were. */
struct arena_state {
    int64_t available_micro;
    uint64_t tree_size;
};
struct arena_state arena_state_of(struct arena *arena);
void arena_check_unchanged(struct arena *arena, struct arena_state before);
/* Returns the state's hash, by a replay of the journal as it stands. Even a refused command changes
 * the hash, because its number counts. */
struct hash32 arena_hash(const struct arena *arena);

ProtobufCBinaryData arena_bytes(const void *bytes, size_t length);
struct identity *arena_identity(void); /* a new identity */
struct link *arena_connect(void *context, const char *endpoint, const struct arena *arena,
                           const struct identity *identity, size_t max_bytes);
/* Returns a connected socket to a port of the broker, without ZMTP. */
int arena_connect_raw(const char *endpoint);
void arena_put(struct link *link, const void *bytes, size_t length);
/* Reads what has come. Returns true when one of the messages says Accepted. */
bool arena_drain(struct link *link, int wait_ms);
size_t arena_write(const struct envelope *envelope, uint8_t *ret_bytes, size_t capacity);

/* A message whose every field the sender chooses. */
struct said {
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
/* Makes an unsigned message of this version from the owner; the test changes it. Session and clock
 * are those of `client`. */
struct said arena_saying(const struct arena *arena, uint16_t type);
size_t arena_write_said(const struct said *said, const struct broker_client *client,
                        uint8_t *ret_bytes, size_t capacity);
enum reject_code arena_reject_code(const struct envelope *reject);

#endif
