#include "exchange/state/limits.h"

#include "exchange/policy.h"
#include "exchange/state/tracking.h"

#include <string.h>

struct exchange_limits exchange_limits_default(void)
{
    return (struct exchange_limits){
        .accounts = 100000,
        .invitations = 10000,
        .ids_per_account = 65536,
        .devices_per_provider = 1024,
        .asks = 65536,
        .jobs = 65536,
        .jobs_per_account = 1024,
        .leases = 262144,
        .attempts = 1 << 20,
        .subtasks = 20000000,
        .subtasks_per_account = 10000000, /* the largest job; half of all subtasks */
        .cells = 4096,
        .classes = 4096,
        .cells_per_account = 512,
        .classes_per_account = 256,
    };
}

static void take_limits(struct exchange *exchange, const struct exchange_limits *limits)
{
    const struct exchange_limits old = exchange->limits;
    exchange->limits = *limits;
    exchange->limits.cells = old.cells;
    exchange->limits.classes = old.classes;
    memcpy(exchange->limits.table_key, old.table_key, sizeof old.table_key);
}

bool exchange_may_take_rules(const struct exchange *exchange, uint32_t next)
{
    const uint32_t rules = exchange->rules;
    return next != 0 && (rules < RULES_OF_STEPS || next == rules || next == rules + 1);
}

void limits_restore(struct exchange *exchange, const struct exchange_set_limits *set)
{
    if (exchange->rules == 0) {
        tracking_add(exchange, &exchange->limits_tracked, RECORD_LIMITS);
    } else {
        tracking_touch(exchange, &exchange->limits_tracked);
    }
    exchange->rules = set->rules;
    take_limits(exchange, &set->limits);
}

void exchange_presume_limits(struct exchange *exchange, const struct exchange_limits *limits)
{
    if (exchange->rules == 0) {
        take_limits(exchange, limits);
    }
}
