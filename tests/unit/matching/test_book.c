#include "base/cleanup.h"
#include "matching/book.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct attribute text(const char *name, const char *value)
{
    struct attribute attribute = {.is_text = true};
    strcpy(attribute.name, name);
    strcpy(attribute.text, value);
    return attribute;
}

static struct attribute number(const char *name, int64_t value)
{
    struct attribute attribute = {.number = value};
    strcpy(attribute.name, name);
    return attribute;
}

static struct requirement predicate(enum requirement_op op, struct attribute attribute)
{
    struct requirement requirement = {.count = 1};
    requirement.nodes[0] = (struct requirement_node){.op = op, .attribute = attribute};
    return requirement;
}

static struct book *book_of(void)
{
    return book_create((struct book_limits){.orders = 16, .cells = 4, .classes = 4});
}

static uint32_t cell_of(struct book *book, const char *kind, int64_t memory)
{
    const struct attribute attributes[] = {text("kind", kind), number("memory", memory)};
    uint32_t cell = 99;
    ck_assert_int_eq(book_cell(book, attributes, 2, &cell), BOOK_OK);
    return cell;
}

static uint32_t class_any(struct book *book)
{
    const struct requirement anything = {0};
    uint32_t class_id = 99;
    ck_assert_int_eq(book_class(book, &anything, RATE_NONE, &class_id), BOOK_OK);
    return class_id;
}

static void rest_ask(struct book *book, uint32_t handle, uint32_t cell, int64_t price,
                     uint64_t sequence)
{
    const struct book_order ask = {.owner = 100 + handle,
                                   .kind = cell,
                                   .slots = 4,
                                   .width = 1,
                                   .price_micro = price,
                                   .sequence = sequence};
    ck_assert_int_eq(book_rest(book, handle, &ask), BOOK_OK);
}

static void rest_bid(struct book *book, uint32_t handle, uint32_t class_id, int64_t limit,
                     uint64_t sequence)
{
    const struct book_order bid = {.is_bid = true,
                                   .owner = 1,
                                   .kind = class_id,
                                   .slots = 4,
                                   .width = 1,
                                   .price_micro = limit,
                                   .term_ns = 10,
                                   .sequence = sequence};
    ck_assert_int_eq(book_rest(book, handle, &bid), BOOK_OK);
}

static bool skip_own(void *context, uint32_t handle)
{
    const struct book *book = context;
    struct book_ask ask;
    return book_ask(book, handle, &ask) && ask.owner == 1;
}

/* Returns what an order would meet that came now and is like one that rests, which its own side
 * does not show it. */
static struct book_match meet(struct book *book, uint32_t handle, book_skip *skip)
{
    struct book_match match = {.handle = BOOK_NONE};
    struct book_ask ask;
    struct book_bid bid;
    struct book_order order;
    if (book_ask(book, handle, &ask)) {
        order = (struct book_order){.owner = ask.owner,
                                    .kind = ask.cell,
                                    .slots = ask.slots,
                                    .width = 1,
                                    .price_micro = ask.price_micro,
                                    .term_ns = ask.max_term_ns,
                                    .sequence = ask.sequence};
    } else {
        ck_assert(book_bid(book, handle, &bid));
        order = (struct book_order){.is_bid = true,
                                    .owner = bid.owner,
                                    .kind = bid.class_id,
                                    .slots = bid.slots,
                                    .width = bid.width,
                                    .price_micro = bid.limit_micro,
                                    .term_ns = bid.term_ns,
                                    .sequence = bid.sequence};
    }
    (void)book_match(book, &order, skip, book, &match);
    return match;
}

static uint32_t met(struct book *book, uint32_t handle)
{
    return meet(book, handle, NULL).handle;
}

START_TEST(the_lowest_ask_comes_first_and_the_older_of_two_equal)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    uint32_t small = cell_of(book, "cpu", 1);
    uint32_t large = cell_of(book, "cpu", 2);
    rest_ask(book, 0, small, 30, 1);
    rest_ask(book, 1, large, 20, 3);
    rest_ask(book, 2, small, 20, 2);
    rest_bid(book, 9, class_any(book), 25, 4);

    ck_assert_uint_eq(met(book, 9), 2); /* in another cell than 1, and older */
    book_remove(book, 2);
    ck_assert_uint_eq(met(book, 9), 1);
    book_remove(book, 1);
    ck_assert_uint_eq(met(book, 9), BOOK_NONE); /* 30 is above the limit */
}
END_TEST

START_TEST(what_fills_at_once_need_not_rest)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    uint32_t cell = cell_of(book, "cpu", 1);
    rest_ask(book, 0, cell, 20, 1);
    rest_ask(book, 1, cell, 10, 2);
    struct book_order order = {.is_bid = true,
                               .owner = 101, /* as that of 1 */
                               .kind = class_any(book),
                               .slots = 3,
                               .width = 1,
                               .price_micro = 20,
                               .sequence = 3};
    struct book_match match;

    ck_assert(book_match(book, &order, NULL, NULL, &match));
    ck_assert_uint_eq(match.handle, 1);
    ck_assert(match.is_own);
    order.owner = 1;
    ck_assert(book_match(book, &order, NULL, NULL, &match));
    ck_assert_uint_eq(match.handle, 1);
    ck_assert(!match.is_own);
    ck_assert_uint_eq(match.slots, 3);
    ck_assert_int_eq(match.price_micro, 10);

    book_set_slots(book, 1, 1);
    ck_assert_uint_eq(book_slots(book, 1), 1);
    book_remove(book, 1);
    ck_assert(!book_rests(book, 1));
    ck_assert(book_match(book, &order, NULL, NULL, &match));
    ck_assert_uint_eq(match.handle, 0);
    order.price_micro = 19;
    ck_assert(!book_match(book, &order, NULL, NULL, &match));
}
END_TEST

START_TEST(the_highest_bid_comes_first_across_classes)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    uint32_t cell = cell_of(book, "cpu", 8);
    struct requirement needs = predicate(REQUIREMENT_GE, number("memory", 8));
    uint32_t picky;
    ck_assert_int_eq(book_class(book, &needs, RATE_NONE, &picky), BOOK_OK);
    rest_bid(book, 0, class_any(book), 20, 1);
    rest_bid(book, 1, picky, 21, 2);
    rest_bid(book, 2, picky, 21, 3);
    rest_ask(book, 9, cell, 15, 4);

    ck_assert_uint_eq(met(book, 9), 1);
    ck_assert_int_eq(meet(book, 9, NULL).price_micro, 21); /* the bid is the maker */
    book_remove(book, 1);
    ck_assert_uint_eq(met(book, 9), 2);
}
END_TEST

START_TEST(an_ask_that_does_not_fit_the_requirement_is_never_met)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    struct requirement needs = predicate(REQUIREMENT_EQ, text("kind", "gpu"));
    uint32_t gpus;
    ck_assert_int_eq(book_class(book, &needs, RATE_NONE, &gpus), BOOK_OK);
    rest_ask(book, 0, cell_of(book, "cpu", 1), 1, 1);
    rest_bid(book, 1, gpus, 100, 2);
    ck_assert_uint_eq(met(book, 1), BOOK_NONE);

    rest_ask(book, 2, cell_of(book, "gpu", 1), 90, 3); /* a cell made after the class */
    ck_assert_uint_eq(met(book, 1), 2);
    ck_assert_uint_eq(met(book, 2), 1);
}
END_TEST

/* ---- bids by value */

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

START_TEST(a_donation_fills_at_nothing_whoever_came_first)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    uint32_t cell = cell_of(book, "cpu", 1);
    rest_bid(book, 0, class_any(book), 50, 1);
    rest_ask(book, 1, cell, 0, 2);
    rest_ask(book, 2, cell, 40, 3);
    ck_assert_int_eq(meet(book, 1, NULL).price_micro, 0);
    ck_assert_int_eq(meet(book, 2, NULL).price_micro, 50);
}
END_TEST

START_TEST(a_fill_is_a_multiple_of_the_width)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    rest_ask(book, 0, cell_of(book, "cpu", 1), 1, 1);
    const struct book_order wide = {.is_bid = true,
                                    .owner = 1,
                                    .kind = class_any(book),
                                    .slots = 9,
                                    .width = 3,
                                    .price_micro = 5,
                                    .sequence = 2};
    ck_assert_int_eq(book_rest(book, 1, &wide), BOOK_OK);
    ck_assert_uint_eq(meet(book, 0, NULL).slots, 3);
    ck_assert_uint_eq(meet(book, 1, NULL).slots, 3);
    book_set_slots(book, 0, 2);
    ck_assert_uint_eq(met(book, 0), BOOK_NONE);
    ck_assert_uint_eq(met(book, 1), BOOK_NONE);
}
END_TEST

START_TEST(a_term_longer_than_the_ask_allows_does_not_fill)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    const struct book_order brief = {.owner = 5,
                                     .kind = cell_of(book, "cpu", 1),
                                     .slots = 1,
                                     .width = 1,
                                     .price_micro = 1,
                                     .term_ns = 9,
                                     .sequence = 1};
    ck_assert_int_eq(book_rest(book, 0, &brief), BOOK_OK);
    rest_bid(book, 1, class_any(book), 5, 2); /* term 10 */
    ck_assert_uint_eq(met(book, 1), BOOK_NONE);
}
END_TEST

START_TEST(one_owner_is_told_of_what_is_his_own)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    uint32_t cell = cell_of(book, "cpu", 1);
    const struct book_order own = {
        .owner = 1, .kind = cell, .slots = 1, .width = 1, .price_micro = 1, .sequence = 1};
    ck_assert_int_eq(book_rest(book, 0, &own), BOOK_OK);
    rest_ask(book, 1, cell, 2, 2);
    rest_bid(book, 2, class_any(book), 5, 3);

    ck_assert_uint_eq(met(book, 2), 0);
    ck_assert(meet(book, 2, NULL).is_own);
    ck_assert_uint_eq(meet(book, 2, skip_own).handle, 1); /* who passes over it comes to the next */
    ck_assert(!meet(book, 2, skip_own).is_own);
    book_remove(book, 0);
    ck_assert_uint_eq(met(book, 2), 1);
    ck_assert(!meet(book, 2, NULL).is_own);
}
END_TEST

START_TEST(the_same_attributes_in_another_order_are_the_same_cell)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    const struct attribute forward[] = {text("kind", "cpu"), text("program", "xz"),
                                        text("program", "sh")};
    const struct attribute backward[] = {text("program", "sh"), text("program", "xz"),
                                         text("kind", "cpu")};
    uint32_t a, b;
    ck_assert_int_eq(book_cell(book, forward, 3, &a), BOOK_OK);
    ck_assert_int_eq(book_cell(book, backward, 3, &b), BOOK_OK);
    ck_assert_uint_eq(a, b);
    ck_assert_uint_eq(book_cell_bound(book), 1);
}
END_TEST

START_TEST(caps_are_answers)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    for (int64_t i = 0; i < 4; i++) {
        (void)cell_of(book, "cpu", i);
        struct requirement needs = predicate(REQUIREMENT_GE, number("memory", i));
        uint32_t class_id;
        ck_assert_int_eq(book_class(book, &needs, RATE_NONE, &class_id), BOOK_OK);
    }
    const struct attribute another = text("kind", "dsp");
    struct requirement needs = predicate(REQUIREMENT_EQ, another);
    uint32_t ignored;
    ck_assert_int_eq(book_cell(book, &another, 1, &ignored), BOOK_FULL_CELLS);
    ck_assert_int_eq(book_class(book, &needs, RATE_NONE, &ignored), BOOK_FULL_CLASSES);
    const struct book_order ask = {.slots = 1, .width = 1, .sequence = 1};
    ck_assert_int_eq(book_rest(book, 16, &ask), BOOK_FULL_ORDERS);
}
END_TEST

START_TEST(what_nobody_refers_to_goes_and_its_number_is_used_again)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    struct requirement small = predicate(REQUIREMENT_LT, number("memory", 10));
    uint32_t class_id;
    ck_assert_int_eq(book_class(book, &small, RATE_NONE, &class_id), BOOK_OK);
    uint32_t first = cell_of(book, "cpu", 1);
    uint32_t second = cell_of(book, "cpu", 2);
    ck_assert_uint_eq(cell_of(book, "cpu", 1), first);
    ck_assert_uint_eq(book_cell_references(book, first), 2);
    ck_assert(book_class_accepts(book, class_id, first));

    book_cell_release(book, first);
    ck_assert_uint_eq(book_cell_references(book, first), 1);
    book_cell_release(book, first);
    ck_assert_uint_eq(book_cell_references(book, first), 0);
    ck_assert_uint_eq(cell_of(book, "cpu", 2), second);
    ck_assert_uint_eq(cell_of(book, "cpu", 99), first);    /* the lowest free number */
    ck_assert(!book_class_accepts(book, class_id, first)); /* nothing is left of the one before */

    book_class_release(book, class_id);
    ck_assert_uint_eq(book_class_references(book, class_id), 0);
    ck_assert_uint_eq(class_any(book), class_id);
    ck_assert(book_class_accepts(book, class_id, first));
}
END_TEST

START_TEST(a_book_made_again_has_the_same_numbers)
{
    CLEANUP(book_destroy) struct book *book = book_of();
    const struct attribute cpu = text("kind", "cpu");
    const struct attribute gpu = text("kind", "gpu");
    const struct requirement anything = {0};
    ck_assert_int_eq(book_cell_at(book, 2, &cpu, 1), BOOK_OK);
    ck_assert_int_eq(book_cell_at(book, 2, &gpu, 1), BOOK_FULL_CELLS);
    ck_assert_int_eq(book_cell_at(book, 3, &cpu, 1), BOOK_FULL_CELLS); /* one like it is there */
    ck_assert_int_eq(book_cell_at(book, 4, &gpu, 1), BOOK_FULL_CELLS);
    ck_assert_int_eq(book_class_at(book, 3, &anything, RATE_NONE), BOOK_OK);
    ck_assert_int_eq(book_class_at(book, 1, &anything, RATE_NONE), BOOK_FULL_CLASSES);
    ck_assert_uint_eq(class_any(book), 3);
    uint32_t cell;
    ck_assert_int_eq(book_cell(book, &gpu, 1, &cell), BOOK_OK);
    ck_assert_uint_eq(cell, 0);
    ck_assert(book_class_accepts(book, 3, 2));
    rest_ask(book, 1, 2, 5, 1);
    ck_assert(book_rests(book, 1));
}
END_TEST

START_TEST(requirements_mean_what_base_says)
{
    const struct attribute device[] = {number("memory", 4), text("program", "sh"),
                                       text("program", "xz")}; /* sorted by name */
    const struct {
        struct requirement requirement;
        bool holds;
    } cases[] = {
        {predicate(REQUIREMENT_EQ, text("program", "sh")), true},
        {predicate(REQUIREMENT_NE, text("program", "sh")), false},
        {predicate(REQUIREMENT_NE, text("program", "vi")), true},
        {predicate(REQUIREMENT_NE, text("region", "eu")), false}, /* unknown is not "different" */
        {predicate(REQUIREMENT_GE, number("memory", 4)), true},
        {predicate(REQUIREMENT_GT, number("memory", 4)), false},
        {predicate(REQUIREMENT_LT, number("memory", 5)), true},
        {predicate(REQUIREMENT_LE, number("memory", 3)), false},
        {predicate(REQUIREMENT_EQ, number("program", 4)), false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert(requirement_well_formed(&cases[i].requirement));
        ck_assert_msg(requirement_satisfied(&cases[i].requirement, device, 3) == cases[i].holds,
                      "case %zu", i);
    }
    struct requirement both = predicate(REQUIREMENT_EQ, text("program", "vi"));
    both.nodes[1] = (struct requirement_node){.op = REQUIREMENT_NOT};
    both.nodes[2] =
        (struct requirement_node){.op = REQUIREMENT_GE, .attribute = number("memory", 1)};
    both.nodes[3] = (struct requirement_node){.op = REQUIREMENT_AND, .arity = 2};
    both.count = 4;
    ck_assert(requirement_well_formed(&both));
    ck_assert(requirement_satisfied(&both, device, 3));
}
END_TEST

static struct requirement need(struct requirement first, enum requirement_op op,
                               struct requirement second)
{
    struct requirement both = first;
    both.nodes[1] = second.nodes[0];
    both.nodes[2] = (struct requirement_node){.op = op, .arity = 2};
    both.count = 3;
    return both;
}

START_TEST(a_simulated_device_is_met_only_by_who_asks_for_one)
{
    const struct attribute device[] = {text("instrument", "sim.gpu.nvidia.h100-sxm5"),
                                       text("kind", "gpu"), number("simulated", 1)};
    const struct attribute honest[] = {text("instrument", "gpu.nvidia.h100-sxm5"),
                                       text("kind", "gpu"), number("simulated", 0)};
    struct requirement gpu = predicate(REQUIREMENT_EQ, text("kind", "gpu"));
    struct requirement simulated = predicate(REQUIREMENT_EQ, number("simulated", 1));
    struct requirement not_real = predicate(REQUIREMENT_NE, number("simulated", 0));
    struct requirement anything = {.count = 0};
    struct requirement real_only = predicate(REQUIREMENT_EQ, number("simulated", 0));
    struct requirement named =
        predicate(REQUIREMENT_EQ, text("instrument", "sim.gpu.nvidia.h100-sxm5"));
    struct requirement other = predicate(REQUIREMENT_EQ, text("instrument", "sim.lpu.groq.v1"));
    struct requirement lax = need(gpu, REQUIREMENT_OR, other);
    struct requirement asked = need(gpu, REQUIREMENT_AND, simulated);
    struct requirement backwards = real_only;
    backwards.nodes[backwards.count++] = (struct requirement_node){.op = REQUIREMENT_NOT};

    ck_assert(!requirement_satisfied(&anything, device, 3));
    ck_assert(!requirement_satisfied(&gpu, device, 3));
    ck_assert(!requirement_satisfied(&real_only, device, 3));
    ck_assert(!requirement_satisfied(&backwards, device, 3)); /* asks for nothing by name */
    ck_assert(!requirement_satisfied(&other, device, 3));
    ck_assert(!requirement_satisfied(&lax, device, 3)); /* asks, but for another one */
    ck_assert(requirement_satisfied(&simulated, device, 3));
    ck_assert(requirement_satisfied(&not_real, device, 3));
    ck_assert(requirement_satisfied(&named, device, 3));
    ck_assert(requirement_satisfied(&asked, device, 3));
    ck_assert(requirement_satisfied(&gpu, honest, 3));
    ck_assert(requirement_satisfied(&anything, honest, 3));
    ck_assert(!requirement_satisfied(&asked, honest, 3));
    ck_assert(!requirement_satisfied(&gpu, device, 2)); /* its instrument alone says what it is */
    ck_assert(!requirement_satisfied(&gpu, device + 1, 2)); /* and so does its attribute */
}
END_TEST

START_TEST(a_tree_that_is_not_one_is_refused)
{
    struct requirement broken = {.count = 1};
    broken.nodes[0] = (struct requirement_node){.op = REQUIREMENT_AND, .arity = 2};
    ck_assert(!requirement_well_formed(&broken));
    broken.nodes[0] = (struct requirement_node){.op = REQUIREMENT_NOT};
    ck_assert(!requirement_well_formed(&broken));
    broken = predicate(REQUIREMENT_LT, text("kind", "cpu")); /* text has no order */
    ck_assert(!requirement_well_formed(&broken));
    broken = predicate(REQUIREMENT_EQ, text("kind", "cpu"));
    broken.nodes[1] = broken.nodes[0];
    broken.count = 2; /* two roots */
    ck_assert(!requirement_well_formed(&broken));
    broken.count = REQUIREMENT_NODES_MAX + 1;
    ck_assert(!requirement_well_formed(&broken));
    broken = predicate((enum requirement_op)77, text("kind", "cpu"));
    ck_assert(!requirement_well_formed(&broken));
}
END_TEST

SUITE("book", NULL, NULL, TEST(the_lowest_ask_comes_first_and_the_older_of_two_equal),
      TEST(what_fills_at_once_need_not_rest), TEST(the_highest_bid_comes_first_across_classes),
      TEST(an_ask_that_does_not_fit_the_requirement_is_never_met),
      TEST(a_bid_by_value_takes_the_most_work_for_its_price),
      TEST(asks_of_the_same_price_for_work_are_taken_in_the_order_they_came),
      TEST(an_ask_takes_what_is_worth_most_in_its_cell),
      TEST(a_bid_by_value_that_waits_pays_its_limit_rounded_down),
      TEST(the_largest_values_and_rates_neither_wrap_nor_pay_above_the_most),
      TEST(classes_by_value_are_told_apart_and_go_like_others),
      TEST(a_donation_fills_at_nothing_whoever_came_first), TEST(a_fill_is_a_multiple_of_the_width),
      TEST(a_term_longer_than_the_ask_allows_does_not_fill),
      TEST(one_owner_is_told_of_what_is_his_own),
      TEST(the_same_attributes_in_another_order_are_the_same_cell), TEST(caps_are_answers),
      TEST(what_nobody_refers_to_goes_and_its_number_is_used_again),
      TEST(a_book_made_again_has_the_same_numbers), TEST(requirements_mean_what_base_says),
      TEST(a_simulated_device_is_met_only_by_who_asks_for_one),
      TEST(a_tree_that_is_not_one_is_refused))
