/* Bids by value pay for work, not for time, so that what they pay differs between devices. */
#include "base/cleanup.h"
#include "matching/book.h"
#include "tests/support/book_play.h"
#include "tests/support/suite.h"

#include <check.h>

static uint32_t rated_cell(struct book *book, int64_t bf16)
{
    const struct attribute attributes[] = {number("bf16", bf16), text("kind", "gpu")};
    uint32_t cell = 99;
    ck_assert_int_eq(book_cell(book, attributes, 2, &cell), BOOK_OK);
    return cell;
}

static uint32_t class_by_value(struct book *book, enum rate rate)
{
    const struct requirement anything = {0};
    uint32_t class_id = 99;
    ck_assert_int_eq(book_class(book, &anything, rate, &class_id), BOOK_OK);
    return class_id;
}

START_TEST(a_bid_by_value_takes_the_most_work_for_its_price)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    rest_ask(book, 0, rated_cell(book, RATE_UNIT), 10, 1);
    rest_ask(book, 1, rated_cell(book, 3 * RATE_UNIT), 29, 2); /* dearer, and cheaper by work */
    rest_ask(book, 2, cell_of(book, "gpu", 8), 0, 3);          /* says nothing of its speed */
    rest_bid(book, 9, class_by_value(book, RATE_BF16), 10, 4);

    ck_assert_uint_eq(met(book, 9), 1);
    ck_assert_int_eq(meet(book, 9, NULL).price_micro, 29);
    book_remove(book, 1);
    ck_assert_uint_eq(met(book, 9), 0);
    book_remove(book, 0);
    ck_assert_uint_eq(met(book, 9), BOOK_NONE);
    rest_ask(book, 1, rated_cell(book, 3 * RATE_UNIT), 31, 5); /* above 3 x 10 */
    ck_assert_uint_eq(met(book, 9), BOOK_NONE);
}
END_TEST

START_TEST(asks_of_the_same_price_for_work_are_taken_in_the_order_they_came)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    rest_bid(book, 9, class_by_value(book, RATE_BF16), INT64_MAX, 4);
    rest_ask(book, 0, rated_cell(book, 3 * RATE_UNIT), 21, 2);
    rest_ask(book, 1, rated_cell(book, RATE_UNIT), 7, 1);
    ck_assert_uint_eq(met(book, 9), 1);
}
END_TEST

START_TEST(an_ask_takes_what_is_worth_most_in_its_cell)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    uint32_t slow = rated_cell(book, RATE_UNIT);
    uint32_t fast = rated_cell(book, 2 * RATE_UNIT + 1);
    rest_bid(book, 0, class_any(book), 20, 1);
    rest_bid(book, 1, class_by_value(book, RATE_BF16), 10, 2);
    rest_ask(book, 8, slow, 5, 3);
    rest_ask(book, 9, fast, 5, 4);

    ck_assert_uint_eq(met(book, 8), 0); /* 20 against 10 */
    ck_assert_uint_eq(met(book, 9), 1); /* against 20 and 10 parts of 10^15 */
    ck_assert_int_eq(meet(book, 9, NULL).price_micro, 20);
    book_remove(book, 9);
    rest_ask(book, 9, rated_cell(book, 2 * RATE_UNIT), 5, 4);
    ck_assert_uint_eq(met(book, 9), 0); /* equal: the older one */
}
END_TEST

START_TEST(a_bid_by_value_that_waits_pays_its_limit_rounded_down)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    uint32_t cell = rated_cell(book, RATE_UNIT / 2);
    uint32_t by_value = class_by_value(book, RATE_BF16);
    rest_bid(book, 0, by_value, 41, 1);
    const struct book_order ask = {
        .owner = 7, .kind = cell, .slots = 4, .width = 1, .price_micro = 20, .sequence = 2};
    struct book_match match;

    ck_assert_int_eq(book_limit(book, RATE_BF16, 41, cell), 20);
    ck_assert(book_match(book, &ask, NULL, NULL, &match));
    ck_assert_uint_eq(match.handle, 0);
    ck_assert_int_eq(match.price_micro, 20);
    rest_ask(book, 9, cell, 20, 2);
    ck_assert_int_eq(meet(book, 9, NULL).price_micro, 20);
    ck_assert_uint_eq(meet(book, 9, NULL).slots, 4);
    book_remove(book, 9);
    rest_ask(book, 9, cell, 21, 2); /* above 20.5 */
    ck_assert_uint_eq(met(book, 9), BOOK_NONE);
}
END_TEST

START_TEST(the_largest_values_and_rates_neither_wrap_nor_pay_above_the_most)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    uint32_t cell = rated_cell(book, INT64_MAX);
    uint32_t other = rated_cell(book, INT64_MAX - 1);
    uint32_t by_value = class_by_value(book, RATE_BF16);
    rest_bid(book, 0, by_value, INT64_MAX, 1);
    rest_bid(book, 1, by_value, INT64_MAX - 1, 2);
    rest_ask(book, 8, cell, INT64_MAX, 3);
    rest_ask(book, 9, other, INT64_MAX, 4);

    ck_assert_uint_eq(met(book, 8), 0);
    ck_assert_uint_eq(met(book, 1), 8); /* by one operation of 2^63 */
    ck_assert_int_eq(book_limit(book, RATE_BF16, INT64_MAX, cell), INT64_MAX);
    ck_assert_int_eq(book_limit(book, RATE_INT8, INT64_MAX, cell), 0); /* it has none */
    ck_assert_int_eq(book_limit(book, RATE_NONE, 7, cell), 7);
    book_set_price_most(book, 1000);
    ck_assert_int_eq(book_limit(book, RATE_BF16, INT64_MAX, cell), 1000);
    rest_bid(book, 2, by_value, 0, 5);
    ck_assert_uint_eq(met(book, 2), BOOK_NONE);
    rest_ask(book, 7, cell, 0, 6); /* nothing for nothing */
    ck_assert_uint_eq(met(book, 2), 7);
}
END_TEST

START_TEST(classes_by_value_are_told_apart_and_go_like_others)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    uint32_t cell = rated_cell(book, RATE_UNIT);
    uint32_t plain = class_any(book);
    uint32_t by_value = class_by_value(book, RATE_BF16);
    ck_assert_uint_ne(plain, by_value);
    ck_assert_uint_ne(by_value, class_by_value(book, RATE_INT8));
    ck_assert_uint_eq(by_value, class_by_value(book, RATE_BF16));
    ck_assert_int_eq(book_class_rate(book, by_value), RATE_BF16);
    ck_assert_int_eq(book_class_rate(book, plain), RATE_NONE);
    ck_assert(book_class_accepts(book, by_value, cell));
    ck_assert(!book_class_accepts(book, 2, cell)); /* no figure in int8 */
    ck_assert_int_eq(book_cell_rate(book, cell, RATE_BF16), RATE_UNIT);
    ck_assert_int_eq(book_cell_rate(book, cell, RATE_INT8), 0);

    book_class_release(book, by_value);
    book_class_release(book, by_value);
    ck_assert_uint_eq(book_class_references(book, by_value), 0);
    book_class_release(book, 2);
    rest_bid(book, 0, plain, 20, 1); /* the only class again */
    rest_ask(book, 9, cell, 10, 2);
    ck_assert_uint_eq(met(book, 9), 0);
}
END_TEST

SUITE("book: by value", NULL, NULL, TEST(a_bid_by_value_takes_the_most_work_for_its_price),
      TEST(asks_of_the_same_price_for_work_are_taken_in_the_order_they_came),
      TEST(an_ask_takes_what_is_worth_most_in_its_cell),
      TEST(a_bid_by_value_that_waits_pays_its_limit_rounded_down),
      TEST(the_largest_values_and_rates_neither_wrap_nor_pay_above_the_most),
      TEST(classes_by_value_are_told_apart_and_go_like_others))
