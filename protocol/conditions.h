/* protocol/conditions.h converts the conditions of an ask between the client's form and the wire.
 * The conditions are the accounts it is for, its hours, and its time per day (0: any). */
#ifndef BOURSE_PROTOCOL_CONDITIONS_H
#define BOURSE_PROTOCOL_CONDITIONS_H

#include "base/hours.h"
#include "base/id.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "protocol/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ask_conditions { /* storage that an AskPlace points to; conditions_to_wire fills it */
    struct key32 keys[LIMIT_ASK_ACCOUNTS];
    Bourse__V1__AskAccount accounts[LIMIT_ASK_ACCOUNTS];
    Bourse__V1__AskAccount *account_list[LIMIT_ASK_ACCOUNTS];
    Bourse__V1__AskHours windows[HOURS_WINDOWS_MOST];
    Bourse__V1__AskHours *window_list[HOURS_WINDOWS_MOST];
};

/* Fills the body with the conditions. `to` holds names, or keys of 64 hex digits. `to` is borrowed,
 * like the conditions, as long as the body lives. Returns false and writes nothing when there are
 * more than fit a message. */
bool conditions_to_wire(const char *const *to, size_t to_count, const struct hours *hours,
                        int64_t daily_ms, struct ask_conditions *conditions,
                        Bourse__V1__AskPlace *body);

/* Converts hours from the wire. Returns false and writes nothing when they are not well formed. */
bool conditions_hours(Bourse__V1__AskHours *const *windows, size_t count, int32_t offset_min,
                      struct hours *ret_hours);

/* Returns the account in `to` that the refusal of an ask means by `value`, or NULL when it means
 * none. */
const char *conditions_unknown(enum reject_code reject, int64_t value, const char *const *to,
                               size_t to_count);

#endif
