/* A state and the file around it: what is loaded has the hash that a full walk finds, and is saved
 * as the same bytes. */
#include "broker/storage/snapshot/snapshot_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct exchange_limits small_limits(void)
{
    struct exchange_limits limits = exchange_limits_default();
    limits.asks = 64;
    limits.jobs = 64;
    limits.leases = 64;
    limits.cells = 64;
    limits.classes = 64;
    limits.subtasks = 10000;
    return limits;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct exchange_limits limits = small_limits();
    struct snapshot_mark mark;
    struct exchange *exchange = snapshot_decode(&limits, data, size, &mark);
    exchange_destroy(&exchange);
    exchange = exchange_load(&limits, data, size);
    if (exchange == NULL) {
        return 0;
    }
    struct hash32 hash = exchange_state_hash(exchange);
    struct hash32 walked = exchange_state_hash_walk(exchange);
    assert(hash32_equal(&hash, &walked));
    size_t length;
    uint8_t *again = exchange_save(exchange, &length);
    assert(again != NULL && length == size && memcmp(again, data, size) == 0);
    free(again);
    exchange_destroy(&exchange);
    return 0;
}
