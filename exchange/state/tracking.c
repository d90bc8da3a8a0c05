#include "exchange/state/tracking.h"

#include "base/cursor.h"

void tracking_add(struct exchange *exchange, struct tracked *tracked, enum record_type type)
{
    tracked->type = (uint8_t)type;
    tracked->is_counted = false;
    tracked->is_dirty = true;
    list_append(&exchange->dirty, &tracked->dirty);
}

void tracking_touch(struct exchange *exchange, struct tracked *tracked)
{
    if (!tracked->is_dirty) {
        tracked->is_dirty = true;
        list_append(&exchange->dirty, &tracked->dirty);
    }
}

void tracking_total_change(uint64_t total[4], const struct hash32 *hash, bool add)
{
    struct reader in = reader_over(hash->bytes, sizeof hash->bytes);
    for (size_t i = 0; i < 4; i++) {
        uint64_t lane = reader_u64(&in);
        total[i] += add ? lane : 0 - lane;
    }
}

void tracking_remove(struct exchange *exchange, struct tracked *tracked)
{
    if (tracked->is_counted) {
        tracking_total_change(exchange->total, &tracked->hash, false);
    }
    if (tracked->is_dirty) {
        list_remove(&tracked->dirty);
    }
}
