/* The tests cover how an outage of the broker stands in the journal. */
#include "broker/core/translate.h"

#include "tests/support/suite.h"

#include <check.h>

START_TEST(an_outage_in_a_journal_has_a_time_above_zero)
{
    static const struct id128 cluster = {{7}};
    uint8_t payload[TRANSLATE_OUTAGE_BYTES];
    struct translation translation = {0};
    struct entry_command entry = {.kind = ENTRY_OUTAGE,
                                  .payload = payload,
                                  .payload_length = sizeof payload,
                                  .account = UINT32_MAX};
    translate_outage(77, payload);
    ck_assert(translate_entry(&entry, 1, &cluster, &translation));
    ck_assert_uint_eq(translation.command.type, EXCHANGE_OUTAGE);
    ck_assert_int_eq(translation.command.outage_ns, 77);
    translate_outage(0, payload);
    ck_assert(!translate_entry(&entry, 1, &cluster, &translation));
    translate_outage(77, payload);
    entry.payload_length--;
    ck_assert(!translate_entry(&entry, 1, &cluster, &translation));
    translation_fini(&translation);
}
END_TEST

SUITE("an outage in the journal", NULL, NULL, TEST(an_outage_in_a_journal_has_a_time_above_zero))
