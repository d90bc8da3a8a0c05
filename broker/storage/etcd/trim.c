#include "broker/storage/etcd/trim.h"

struct replicated_trim trim_start(uint64_t base, uint64_t last)
{
    return (struct replicated_trim){.middle = last, .target = base, .base = base};
}

bool trim_step(struct replicated_trim *trim, uint64_t last, uint64_t length, uint64_t *ret_index)
{
    trim->bytes += length;
    if (trim->bytes >= TRIM_KEEP_BYTES) {
        trim->target = trim->middle;
        trim->middle = last;
        trim->bytes = 0;
    }
    if (trim->target <= trim->base) {
        return false;
    }
    const uint64_t left = trim->target - trim->base;
    *ret_index = trim->base + (left < TRIM_STEP ? left : TRIM_STEP);
    return true;
}

void trim_done(struct replicated_trim *trim, uint64_t index)
{
    trim->base = index;
}
