/* broker/core/group.h - one group commit: what the core applied together and the committer makes
 * durable together.
 *
 * The core fills it, the committer writes one journal entry and the ledger records of its effects,
 * then releases them. Until then nothing of it has left the broker. It keeps the requests alive,
 * because effects borrow from them. Reused: the committer hands it back empty. */
#ifndef BOURSE_BROKER_CORE_GROUP_H
#define BOURSE_BROKER_CORE_GROUP_H

#include "broker/core/messages.h"
#include "broker/storage/entry.h"
#include "exchange/exchange.h"

enum { GROUP_COMMANDS_MAX = 1024, GROUP_REPLIES_MAX = 4096, GROUP_BYTES = 1 << 20 };

struct group_command {
    struct entry_command entry;
    struct request *request;            /* NULL: the broker's own */
    uint8_t own[TRANSLATE_EPOCH_BYTES]; /* its payload then: the longest that the core writes */
};

struct group {
    struct queue_link link;
    uint64_t first_command; /* index of commands[0] */
    uint32_t command_count;
    struct group_command commands[GROUP_COMMANDS_MAX];
    size_t bytes; /* of the commands in the entry */
    struct exchange_effects effects;
    uint32_t reply_count;
    struct outgoing
        *replies[GROUP_REPLIES_MAX]; /* answers to reads, and events; after the effects */
    bool has_mark;                   /* state hash after the last command */
    struct hash32 mark;
};

struct group *group_create(void); /* NULL when out of memory */
void group_destroy(struct group **self);
/* Drops all it holds and keeps its memory. */
void group_clear(struct group *group);
bool group_is_empty(const struct group *group);
/* Room for that command? An empty group has room for any. */
bool group_has_room(const struct group *group, const struct entry_command *command);

#endif
