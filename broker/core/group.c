#include "broker/core/group.h"

#include "broker/fatal.h"
#include "runtime/entropy.h"

#include <assert.h>
#include <stdlib.h>

struct group *group_create(void)
{
    return calloc(1, sizeof(struct group));
}

void group_clear(struct group *group)
{
    exchange_effects_clear(&group->effects);
    for (uint32_t i = 0; i < group->command_count; i++) {
        request_destroy(&group->commands[i].request);
    }
    for (uint32_t i = 0; i < group->reply_count; i++) {
        outgoing_destroy(&group->replies[i]);
    }
    group->command_count = 0;
    group->reply_count = 0;
    group->bytes = 0;
    group->entry.length = 0;
    group->has_mark = false;
    group->limits.kind = 0;
    group->is_direct = false;
}

void group_destroy(struct group **self)
{
    if (*self != NULL) {
        group_clear(*self);
        exchange_effects_fini(&(*self)->effects);
        free((*self)->entry.bytes);
        free(*self);
        *self = NULL;
    }
}

bool group_is_empty(const struct group *group)
{
    return group->command_count == 0 && group->reply_count == 0;
}

bool group_has_room(const struct group *group, const struct entry_command *command,
                    size_t most_bytes)
{
    if (group->reply_count == GROUP_REPLIES_MAX) {
        return false;
    }
    return group->command_count == 0 || (group->command_count < GROUP_COMMANDS_MAX &&
                                         group->bytes + entry_command_size(command) <= most_bytes);
}

size_t group_write_entry(const struct group *group, uint64_t index, uint64_t epoch,
                         const struct hash32 *previous, uint8_t *ret_bytes)
{
    const struct entry_head head = {.count = group->command_count,
                                    .index = index,
                                    .epoch = epoch,
                                    .batch = entropy_id(),
                                    .previous = *previous,
                                    .first_command = group->first_command};
    struct entry_command *commands = calloc(group->command_count, sizeof *commands);
    if (commands == NULL) {
        fatal("out of memory for a journal entry");
    }
    for (uint32_t i = 0; i < group->command_count; i++) {
        commands[i] = group->commands[i].entry;
    }
    const size_t length = entry_write(&head, commands, ret_bytes, ENTRY_MAX_BYTES);
    free(commands);
    assert(length > 0); /* a group is smaller than an entry may be */
    return length;
}
