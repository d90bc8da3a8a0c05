#include "exchange/state/handles.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/state/job_records.h"

#include <assert.h>
#include <stdlib.h>

/* Doubles the table of handles. Callers have checked the caps of asks and jobs. The table is too
 * small after a cap was raised, or for a snapshot from before a cap was lowered. */
static bool handles_grow(struct exchange *exchange)
{
    uint32_t old = exchange->handle_capacity;
    uint32_t capacity = old < BOOK_NONE / 4 ? 2 * old : old;
    uint32_t *handles = realloc(exchange->free_handles, capacity * sizeof *handles);
    exchange->free_handles = handles != NULL ? handles : exchange->free_handles;
    void **orders = realloc(exchange->orders_by_handle, capacity * sizeof *orders);
    exchange->orders_by_handle = orders != NULL ? orders : exchange->orders_by_handle;
    if (capacity == old || handles == NULL || orders == NULL ||
        !book_grow(exchange->book, capacity)) {
        exchange->is_out_of_memory = true;
        return false;
    }
    for (uint32_t i = old; i < capacity; i++) {
        orders[i] = NULL;
        handles[i - old] = capacity - 1 - (i - old);
    }
    exchange->free_handle_count = capacity - old;
    exchange->handle_capacity = capacity;
    return true;
}

uint32_t handle_take(struct exchange *exchange, void *order)
{
    if (exchange->free_handle_count == 0 && !handles_grow(exchange)) {
        return BOOK_NONE;
    }
    uint32_t handle = exchange->free_handles[--exchange->free_handle_count];
    exchange->orders_by_handle[handle] = order;
    return handle;
}

void handle_give(struct exchange *exchange, uint32_t handle)
{
    assert(exchange->orders_by_handle[handle] != NULL);
    exchange->orders_by_handle[handle] = NULL;
    exchange->free_handles[exchange->free_handle_count++] = handle;
}

bool handle_waits_for_all(const struct exchange *exchange, uint32_t handle)
{
    const struct part *part = exchange->orders_by_handle[handle];
    return job_waits_for_all(part->job);
}
