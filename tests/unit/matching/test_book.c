/* Orders in a book meet by price and time. Bids by value are in test_book_value.c. */
#include "base/cleanup.h"
#include "matching/book.h"
#include "tests/support/book_play.h"
#include "tests/support/suite.h"

#include <check.h>

static struct requirement predicate(enum requirement_op op, struct attribute attribute)
{
    struct requirement requirement = {.count = 1};
    requirement.nodes[0] = (struct requirement_node){.op = op, .attribute = attribute};
    return requirement;
}

static bool skip_own(void *context, uint32_t handle)
{
    const struct book *book = context;
    struct book_ask ask;
    return book_ask(book, handle, &ask) && ask.owner == 1;
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
      TEST(a_donation_fills_at_nothing_whoever_came_first), TEST(a_fill_is_a_multiple_of_the_width),
      TEST(a_term_longer_than_the_ask_allows_does_not_fill),
      TEST(one_owner_is_told_of_what_is_his_own),
      TEST(the_same_attributes_in_another_order_are_the_same_cell), TEST(caps_are_answers),
      TEST(what_nobody_refers_to_goes_and_its_number_is_used_again),
      TEST(a_book_made_again_has_the_same_numbers), TEST(requirements_mean_what_base_says),
      TEST(a_simulated_device_is_met_only_by_who_asks_for_one),
      TEST(a_tree_that_is_not_one_is_refused))
