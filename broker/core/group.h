/* A group holds what the core applied together and the committer makes durable in one append.
 *
 * The core fills the group. The committer writes one journal entry, then releases the effects.
 * Until then none of them has left the broker. The follower writes the ledger records of the
 * effects to the tables. A group keeps its requests alive, because effects borrow from them. The
 * follower returns it empty, to be used again. */
#ifndef BOURSE_BROKER_CORE_GROUP_H
#define BOURSE_BROKER_CORE_GROUP_H

#include "broker/core/act_log.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "broker/core/translate.h"
#include "broker/storage/entry.h"
#include "exchange/exchange.h"

#include <assert.h>

enum {
    GROUP_COMMANDS_MAX = 1024,
    GROUP_REPLIES_MAX = 4096,
    GROUP_BYTES = 1 << 20,
    /* A member of etcd holds thousands of the newest entries in memory. */
    GROUP_BYTES_ON_ETCD = 256 << 10
};

struct group_command {
    struct entry_command entry;
    struct request *request; /* NULL: a command of the broker itself */
    /* Holds the payload of a command of the broker itself; the size is the longest that the core
     * writes, of an epoch or of limits. */
    uint8_t own[TRANSLATE_EPOCH_BYTES];
};
static_assert((int)TRANSLATE_LIMITS_BYTES <= (int)TRANSLATE_EPOCH_BYTES, "limits fit, too");

struct group {
    struct queue_link link;
    uint64_t first_command; /* index of commands[0] */
    uint32_t command_count;
    struct group_command commands[GROUP_COMMANDS_MAX];
    size_t bytes; /* size of the commands in the entry */
    /* The entry as it stands in the journal, once storage_append has written it. */
    struct {
        uint8_t *bytes; /* owned, and kept when the group is cleared */
        size_t length, capacity;
        uint64_t index;
        struct hash32 chain;
    } entry;
    struct exchange_effects effects;
    uint32_t reply_count;
    /* Answers to reads, and events; they leave after the effects. */
    struct outgoing *replies[GROUP_REPLIES_MAX];
    /* `mark` is the state hash after the last command. */
    bool has_mark;
    struct hash32 mark;
    /* The act of a group that begins with a change of limits; kind 0: it does not. The audit wants
     * the index of the command before. */
    struct act limits;
    bool is_direct; /* goes to the tables without the tail, and the committer waits for it */
};

/* Returns NULL when memory is short. */
struct group *group_create(void);
void group_destroy(struct group **self);
/* Drops the content of the group and keeps its memory. */
void group_clear(struct group *group);
bool group_is_empty(const struct group *group);
/* Returns true when the group has room for `command` and stays within `most_bytes`. An empty group
 * has room for any command. */
bool group_has_room(const struct group *group, const struct entry_command *command,
                    size_t most_bytes);
/* Writes the group as entry `index`, with a batch id of its own, into ENTRY_MAX_BYTES of room. Two
 * entries of one group differ. Returns the length; short memory ends the process. */
size_t group_write_entry(const struct group *group, uint64_t index, uint64_t epoch,
                         const struct hash32 *previous, uint8_t *ret_bytes);

#endif
