/* protocol/conditions.h - conditions of an ask, from a client's words to the wire's and back: for
 * whom it is, at which hours, and for how long a day (0: any). Pure. */
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

struct ask_conditions { /* what an AskPlace points to: filled by conditions_to_wire */
    struct key32 keys[LIMIT_ASK_ACCOUNTS];
    Bourse__V1__AskAccount accounts[LIMIT_ASK_ACCOUNTS];
    Bourse__V1__AskAccount *account_list[LIMIT_ASK_ACCOUNTS];
    Bourse__V1__AskHours windows[HOURS_WINDOWS_MOST];
    Bourse__V1__AskHours *window_list[HOURS_WINDOWS_MOST];
};

/* `to`: names, or keys of 64 hex digits; borrowed, like the conditions, as long as the body. False
 * when they are more than fit a message: nothing is written. */
bool conditions_to_wire(const char *const *to, size_t to_count, const struct hours *hours,
                        int64_t daily_ms, struct ask_conditions *conditions,
                        Bourse__V1__AskPlace *body);

/* Hours as they came over the wire. False when they are not well formed: nothing is written. */
bool conditions_hours(Bourse__V1__AskHours *const *windows, size_t count, int32_t offset_min,
                      struct hours *ret_hours);

/* Of the accounts `to` of an ask that was refused, the one that the refusal means by its `value`;
 * NULL: it means none. */
const char *conditions_unknown(enum reject_code reject, int64_t value, const char *const *to,
                               size_t to_count);

#endif
