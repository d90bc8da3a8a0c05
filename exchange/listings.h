/* exchange/listings.h - what the market looks like to its members, page by page: pure reads, no trace.
 *
 * The market may be larger than a message, and a read runs where orders wait. So one call looks at no more than
 * EXCHANGE_LISTING_STEPS allows, then says where to go on; between two pages the market moves on. What stays is
 * listed once: providers come in the order of their first advertisement, the devices of one in that of theirs. */
#ifndef BOURSE_EXCHANGE_LISTINGS_H
#define BOURSE_EXCHANGE_LISTINGS_H

#include "exchange/exchange.h"

/* Steps of one call. Each thing looked at is a step, and each predicate of a requirement on each of its attributes is
 * one more: a millisecond of a processor's time. */
enum { EXCHANGE_LISTING_STEPS = 1 << 16 };

enum exchange_listing {
    LISTING_END,      /* that was all */
    LISTING_MORE,     /* go on from *ret_next */
    LISTING_NO_PLACE, /* `from` is none that a listing gave */
    LISTING_BAD_NEEDS /* not a well-formed requirement */
};

struct exchange_place { /* where a listing of devices goes on */
    uint32_t provider;
    uint64_t device; /* by age */
};

struct exchange_device_row {
    uint32_t provider;
    uint8_t state; /* of the provider: enum provider_state */
    struct id128 device;
    char label[EXCHANGE_NAME_SIZE];
    uint32_t slots, leased;
    uint32_t free;                      /* slots of its ask that are not leased */
    int64_t price_micro;                /* of its ask; -1: none stands */
    int64_t max_term_ns;                /* of its ask; 0: no bound */
    const struct attribute *attributes; /* sorted by name; borrowed until the next step */
    size_t attribute_count;
};
/* False: there is no room for this row; the next page begins with it. */
typedef bool exchange_device_visit(void *context, const struct exchange_device_row *row);

/* Every device that is advertised, or with `needs` (NULL: none) those that satisfy it. `from`: NULL, or where the page
 * before ended; *ret_next is written with LISTING_MORE only. */
enum exchange_listing exchange_list_devices(const struct exchange *exchange,
                                            const struct requirement *needs,
                                            const struct exchange_place *from,
                                            exchange_device_visit *visit, void *context,
                                            struct exchange_place *ret_next);

#endif
