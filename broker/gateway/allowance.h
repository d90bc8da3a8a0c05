/* An allowance bounds how many messages a sender may send.
 *
 * The bound is a rate a second, with bursts of twice the rate, and one refusal a second for
 * messages above it. Time is an argument. Allowances by account bound an account over all its
 * connections. They are made at the first request. */
#ifndef BOURSE_BROKER_GATEWAY_ALLOWANCE_H
#define BOURSE_BROKER_GATEWAY_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

/* All zeros stand for a full allowance. */
struct allowance {
    bool is_begun;
    int64_t thousandths; /* thousandths of a message */
    int64_t filled_ns;
    int64_t told_ns; /* when the last refusal was due; 0: never */
};

/* Returns true when one message more, or `count` units of the rate, are allowed, and takes them. */
bool allowance_take(struct allowance *allowance, uint32_t rate, int64_t now_ns);
bool allowance_take_many(struct allowance *allowance, uint32_t rate, uint32_t count,
                         int64_t now_ns);
/* Returns true when the refusal of a message may be sent: once a second. */
bool allowance_tell(struct allowance *allowance, int64_t now_ns);

/* The items are indexed by account number; all zeros stand for an empty list. */
struct allowance_list {
    struct allowance *items;
    uint32_t count;
};

void allowance_list_fini(struct allowance_list *allowances);
/* Returns the account's allowance, valid until the next call, or NULL when memory is short. */
struct allowance *allowance_list_of(struct allowance_list *allowances, uint32_t account);

#endif
