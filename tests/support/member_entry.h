/* tests/support/member_entry.h tells commands of members from those of the broker. */
#ifndef BOURSE_TESTS_SUPPORT_MEMBER_ENTRY_H
#define BOURSE_TESTS_SUPPORT_MEMBER_ENTRY_H

#include "broker/storage/entry.h"

#include <stdbool.h>

/* Returns true when a member sent the command: the payload is an envelope. */
static inline bool member_entry(const struct entry_command *command)
{
    return command->kind == ENTRY_MESSAGE || command->kind == ENTRY_RESULTS;
}

#endif
