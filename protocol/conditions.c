#include "protocol/conditions.h"

#include "base/text.h"

#include <assert.h>

bool conditions_to_wire(const char *const *to, size_t to_count, const struct hours *hours,
                        int64_t daily_ms, struct ask_conditions *conditions,
                        Bourse__V1__AskPlace *body)
{
    assert(hours->count <= HOURS_WINDOWS_MOST);
    if (to_count > LIMIT_ASK_ACCOUNTS) {
        return false;
    }
    for (size_t i = 0; i < to_count; i++) {
        Bourse__V1__AskAccount *account = &conditions->accounts[i];
        struct key32 *key = &conditions->keys[i];
        bourse__v1__ask_account__init(account);
        account->has_account = text_unhex(to[i], key->bytes, sizeof key->bytes);
        account->account = (ProtobufCBinaryData){.data = key->bytes, .len = sizeof key->bytes};
        account->name = account->has_account ? NULL : (char *)(uintptr_t)to[i]; /* only read */
        conditions->account_list[i] = account;
    }
    for (uint32_t i = 0; i < hours->count; i++) {
        Bourse__V1__AskHours *window = &conditions->windows[i];
        bourse__v1__ask_hours__init(window);
        window->days = hours->windows[i].days;
        window->from_min = hours->windows[i].from_min;
        window->till_min = hours->windows[i].till_min;
        conditions->window_list[i] = window;
    }
    body->n_to = to_count;
    body->to = conditions->account_list;
    body->n_hours = hours->count;
    body->hours = conditions->window_list;
    body->has_offset_min = hours->count > 0 || hours->offset_min != 0;
    body->offset_min = hours->offset_min;
    body->has_daily_ms = daily_ms > 0;
    body->daily_ms = daily_ms;
    return true;
}

bool conditions_hours(Bourse__V1__AskHours *const *windows, size_t count, int32_t offset_min,
                      struct hours *ret_hours)
{
    struct hours hours = {.offset_min = offset_min};
    if (count > HOURS_WINDOWS_MOST) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const Bourse__V1__AskHours *from = windows[i];
        if (from->days > HOURS_ALL_DAYS || from->from_min > HOURS_DAY_MIN ||
            from->till_min > HOURS_DAY_MIN) {
            return false;
        }
        hours.windows[hours.count++] = (struct hours_window){.days = (uint8_t)from->days,
                                                             .from_min = (uint16_t)from->from_min,
                                                             .till_min = (uint16_t)from->till_min};
    }
    if (!hours_well_formed(&hours)) {
        return false;
    }
    *ret_hours = hours;
    return true;
}

const char *conditions_unknown(enum reject_code reject, int64_t value, const char *const *to,
                               size_t to_count)
{
    bool means_one = reject == REJECT_ACCOUNT && value >= 0 && (uint64_t)value < to_count;
    return means_one ? to[value] : NULL;
}
