/* tests/support/replace_orders.h replaces orders of the market by hand, and checks that a refused
 * command leaves no trace. */
#ifndef BOURSE_TESTS_SUPPORT_REPLACE_ORDERS_H
#define BOURSE_TESTS_SUPPORT_REPLACE_ORDERS_H

#include "base/cursor.h"
#include "tests/support/hand_market.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static inline struct exchange_command replace_of(uint32_t account, struct id128 order)
{
    struct exchange_command made = command(EXCHANGE_REPLACE, account);
    made.replace = (struct exchange_replace){.order = order, .part = EXCHANGE_ANY_PART};
    return made;
}

/* The state as it was, but for how often the market was spoken to and what it remembers of ids. */
static inline uint8_t *state_without_ids(size_t *ret_length)
{
    enum { HEAD = 8, MARKET = 1, ID = 4, INDEX_AT = 46, INDEX_BYTES = 8 };
    size_t length;
    size_t kept = 0;
    uint8_t *bytes = exchange_save(market.exchange, &length);
    ck_assert_ptr_nonnull(bytes);
    struct reader in = reader_over(bytes + HEAD, length - HEAD);
    while (!reader_finished(&in)) {
        const uint8_t type = reader_u8(&in);
        const uint32_t size = reader_u32(&in);
        const uint8_t *fields = reader_view(&in, size);
        ck_assert_ptr_nonnull(fields);
        if (type != ID) {
            memmove(bytes + kept, fields, size);
            if (type == MARKET) {
                memset(bytes + kept + INDEX_AT, 0, INDEX_BYTES);
            }
            kept += size;
        }
    }
    *ret_length = kept;
    return bytes;
}

static inline void check_refused(const struct exchange_command *given, enum reject_code code,
                                 const char *field, int64_t value, int64_t limit)
{
    size_t length_before;
    size_t length;
    uint8_t *before = state_without_ids(&length_before);
    apply(given);
    check_rejected(code);
    const struct exchange_reject *why = &nth(EFFECT_REJECT, 0)->reject;
    ck_assert_str_eq(why->field, field);
    ck_assert_int_eq(why->value, value);
    ck_assert_int_eq(why->limit, limit);
    uint8_t *after = state_without_ids(&length);
    ck_assert_uint_eq(length, length_before);
    ck_assert_mem_eq(after, before, length);
    check_hash();
    free(before);
    free(after);
}

#endif
