#include "exchange/market/withdrawal.h"

#include "exchange/account/standing.h"
#include "exchange/market/ask_conditions.h"

static void close_asks(struct exchange *exchange, const struct provider *provider)
{
    for (struct list_link *at = provider->devices.next; at != &provider->devices; at = at->next) {
        const struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        if (device->ask != NULL) {
            ask_turn(exchange, device->ask);
        }
    }
}

void withdrawal_count_refuted(struct exchange *exchange, uint32_t account)
{
    struct standing *standing = standing_of(exchange, account);
    if (standing == NULL) {
        return;
    }
    standing->refuted_ever++;
    standing->refuted++;
    if (standing->refuted <= REFUTED_TOLERATED) {
        return;
    }
    int64_t closed_ns = WITHDRAWN_LEAST_NS;
    for (uint32_t i = REFUTED_TOLERATED + 1; i < standing->refuted && closed_ns < WITHDRAWN_MOST_NS;
         i++) {
        closed_ns *= 2;
    }
    closed_ns = closed_ns < WITHDRAWN_MOST_NS ? closed_ns : WITHDRAWN_MOST_NS;
    standing->withdrawn_until_ns = exchange->now_ns + closed_ns;
    if (standing->member->provider != NULL) {
        close_asks(exchange, standing->member->provider);
    }
}
