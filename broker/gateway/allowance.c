#include "broker/gateway/allowance.h"

#include "base/checked.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { ONE = 1000 };

bool allowance_take(struct allowance *allowance, uint32_t rate, int64_t now_ns)
{
    return allowance_take_many(allowance, rate, 1, now_ns);
}

bool allowance_take_many(struct allowance *allowance, uint32_t rate, uint32_t count, int64_t now_ns)
{
    int64_t most = (int64_t)rate * 2 * ONE;
    int64_t passed_us = (now_ns - allowance->filled_ns) / 1000;
    if (!allowance->is_begun || allowance->thousandths > most || passed_us > 2 * 1000 * 1000) {
        allowance->is_begun = true;
        allowance->thousandths = most;
        allowance->filled_ns = now_ns;
    } else {
        int64_t earned = passed_us * rate / 1000;
        if (earned > 0) { /* without this test, small waits would not add up */
            int64_t sum = allowance->thousandths + earned;
            allowance->thousandths = sum < most ? sum : most;
            allowance->filled_ns = now_ns;
        }
    }
    if (allowance->thousandths < (int64_t)count * ONE) {
        return false;
    }
    allowance->thousandths -= (int64_t)count * ONE;
    return true;
}

bool allowance_tell(struct allowance *allowance, int64_t now_ns)
{
    if (allowance->told_ns != 0 && now_ns - allowance->told_ns < NS_PER_S) {
        return false;
    }
    allowance->told_ns = now_ns;
    return true;
}

void allowance_list_fini(struct allowance_list *allowances)
{
    free(allowances->items);
    *allowances = (struct allowance_list){0};
}

struct allowance *allowance_list_of(struct allowance_list *allowances, uint32_t account)
{
    if (account >= allowances->count) {
        uint32_t count = allowances->count == 0 ? 64 : allowances->count;
        while (count <= account) {
            count *= 2;
        }
        struct allowance *items = realloc(allowances->items, count * sizeof *items);
        if (items == NULL) {
            return NULL;
        }
        memset(items + allowances->count, 0, (count - allowances->count) * sizeof *items);
        allowances->items = items;
        allowances->count = count;
    }
    return &allowances->items[account];
}
