/* A forget order asks the blob port's thread, which alone changes the store, to condemn, spare or
 * remove blobs.
 *
 * The sender keeps the order and what it points to, and waits for `done`. An order is one
 * transaction: on a full disk nothing of it is done. */
#ifndef BOURSE_BROKER_BLOB_PORT_FORGET_ORDER_H
#define BOURSE_BROKER_BLOB_PORT_FORGET_ORDER_H

#include "broker/blob/blob_forget.h"
#include "broker/core/watermark.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FORGET_ORDER_HASHES = 1024 };

enum forget_act { FORGET_CONDEMN, FORGET_SPARE, FORGET_REMOVE };

struct forget_order {
    enum forget_act act;
    uint32_t account;
    int64_t now_s; /* of blobs to condemn */
    const struct hash32 *hashes;
    size_t count;                     /* at most FORGET_ORDER_HASHES */
    const struct forgotten_job *jobs; /* noted in the same transaction */
    size_t job_count;
    struct watermark done; /* 1: the rest may be read */
    uint64_t bytes;        /* that the quota gained, or that were removed */
    bool is_full;          /* the disk is full, and nothing was done */
};

/* Does the order in one transaction of the store. Returns OK, DISK_FULL with nothing done, or
 * FAILED. The caller then raises `done`. */
enum blob_status forget_order_do(struct forget_order *order, struct blob_store *store);

#endif
