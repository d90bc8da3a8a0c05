#include "broker/blob/port/forget_order.h"

/* Does one part of the order. Returns OK, DISK_FULL or FAILED. */
static enum blob_status do_part(struct blob_store *store, struct forget_order *order, size_t part)
{
    uint64_t bytes = 0;
    enum blob_status status = BLOB_OK;
    switch (order->act) {
    case FORGET_CONDEMN:
        status =
            blob_forget_condemn(store, order->account, &order->hashes[part], order->now_s, &bytes);
        break;
    case FORGET_SPARE:
        status = blob_forget_spare(store, order->account, &order->hashes[part]);
        break;
    case FORGET_REMOVE:
        status = blob_forget_remove(store, order->account, &order->hashes[part], &bytes);
        break;
    }
    order->bytes += bytes;
    return status;
}

enum blob_status forget_order_do(struct forget_order *order, struct blob_store *store)
{
    enum blob_status status = blob_store_begin(store);
    order->bytes = 0;
    for (size_t i = 0; i < order->job_count && status == BLOB_OK; i++) {
        status = blob_forget_note(store, &order->jobs[i]);
    }
    for (size_t i = 0; i < order->count && status == BLOB_OK; i++) {
        status = do_part(store, order, i);
    }
    if (status == BLOB_DISK_FULL) {
        blob_store_undo(store);
    } else if (status == BLOB_OK) {
        status = blob_store_commit(store);
    }
    order->is_full = status != BLOB_OK;
    return status;
}
