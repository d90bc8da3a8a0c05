/* The book against a slow, obvious matcher: a flat list of orders, sorted anew for every question. */
#include "base/random.h"
#include "matching/book.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { ORDERS = 240, CELLS = 48, CLASSES = 40, STEPS = 4000, SEEDS = 30 };

/* Few of all, and so many that the book goes by the best of each cell or class. */
static const struct shape {
    uint32_t orders, cells, classes;
    int64_t prices;
} shapes[] = {{48, 5, 6, 6}, {ORDERS, CELLS, CLASSES, 6}, {ORDERS, CELLS, CLASSES, 100000}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

struct slow_order {
    bool rests, is_ask;
    struct book_ask ask;
    struct book_bid bid;
};

struct slow {
    struct shape shape;
    struct slow_order orders[ORDERS];
    struct requirement classes[CLASSES];
    struct attribute cells[CELLS][2];
};

static bool eligible(const struct slow *slow, const struct book_ask *ask,
                     const struct book_bid *bid, bool is_own_too)
{
    uint32_t slots = ask->slots < bid->slots ? ask->slots : bid->slots;
    return (is_own_too || ask->owner != bid->owner) && ask->price_micro <= bid->limit_micro &&
           slots >= bid->width && (ask->max_term_ns == 0 || ask->max_term_ns >= bid->term_ns) &&
           requirement_satisfied(&slow->classes[bid->class_id], slow->cells[ask->cell], 2);
}

static uint32_t slow_best_ask(const struct slow *slow, uint32_t bid, bool is_own_too)
{
    uint32_t best = BOOK_NONE;
    for (uint32_t i = 0; i < slow->shape.orders; i++) {
        const struct slow_order *order = &slow->orders[i];
        if (!order->rests || !order->is_ask ||
            !eligible(slow, &order->ask, &slow->orders[bid].bid, is_own_too)) {
            continue;
        }
        const struct book_ask *former = best == BOOK_NONE ? NULL : &slow->orders[best].ask;
        if (former == NULL || order->ask.price_micro < former->price_micro ||
            (order->ask.price_micro == former->price_micro &&
             order->ask.sequence < former->sequence)) {
            best = i;
        }
    }
    return best;
}

static uint32_t slow_best_bid(const struct slow *slow, uint32_t ask, bool is_own_too)
{
    uint32_t best = BOOK_NONE;
    for (uint32_t i = 0; i < slow->shape.orders; i++) {
        const struct slow_order *order = &slow->orders[i];
        if (!order->rests || order->is_ask ||
            !eligible(slow, &slow->orders[ask].ask, &order->bid, is_own_too)) {
            continue;
        }
        const struct book_bid *former = best == BOOK_NONE ? NULL : &slow->orders[best].bid;
        if (former == NULL || order->bid.limit_micro > former->limit_micro ||
            (order->bid.limit_micro == former->limit_micro &&
             order->bid.sequence < former->sequence)) {
            best = i;
        }
    }
    return best;
}

static void set_up(struct slow *slow, struct book *book, struct random *random)
{
    for (uint32_t i = 0; i < slow->shape.cells; i++) {
        strcpy(slow->cells[i][0].name, "memory");
        slow->cells[i][0].number = (int64_t)i;
        strcpy(slow->cells[i][1].name, "speed");
        slow->cells[i][1].number = (int64_t)random_below(random, 4);
        uint32_t cell;
        ck_assert_int_eq(book_cell(book, slow->cells[i], 2, &cell), BOOK_OK);
        ck_assert_uint_eq(cell, i);
    }
    for (uint32_t i = 0; i < slow->shape.classes; i++) {
        slow->classes[i].count = i == 0 ? 0 : 1;
        struct requirement_node *node = &slow->classes[i].nodes[0];
        node->op = i % 2 == 0 ? REQUIREMENT_GE : REQUIREMENT_NE;
        strcpy(node->attribute.name, i % 3 == 0 ? "memory" : "speed");
        node->attribute.number = (int64_t)i / 2;
        uint32_t class_id;
        ck_assert_int_eq(book_class(book, &slow->classes[i], &class_id), BOOK_OK);
        ck_assert_uint_eq(class_id, i);
    }
}

static int64_t draw_price(const struct slow *slow, struct random *random)
{
    return (int64_t)random_below(random, (uint64_t)slow->shape.prices);
}

/* What an order meets before it rests is what it would meet after, orders of its own owner too. */
static void compare_match(const struct slow *slow, const struct book *book, uint32_t handle)
{
    const struct slow_order *order = &slow->orders[handle];
    const struct book_ask *ask = &order->ask;
    const struct book_bid *bid = &order->bid;
    const struct book_order asking = {.owner = ask->owner,
                                      .kind = ask->cell,
                                      .slots = ask->slots,
                                      .width = 1,
                                      .price_micro = ask->price_micro,
                                      .term_ns = ask->max_term_ns,
                                      .sequence = ask->sequence};
    const struct book_order bidding = {.is_bid = true,
                                       .owner = bid->owner,
                                       .kind = bid->class_id,
                                       .slots = bid->slots,
                                       .width = bid->width,
                                       .price_micro = bid->limit_micro,
                                       .term_ns = bid->term_ns,
                                       .sequence = bid->sequence};
    uint32_t expected =
        order->is_ask ? slow_best_bid(slow, handle, true) : slow_best_ask(slow, handle, true);
    struct book_match match;
    bool is_met = book_match(book, order->is_ask ? &asking : &bidding, NULL, NULL, &match);
    ck_assert(is_met == (expected != BOOK_NONE));
    if (!is_met) {
        return;
    }
    ask = order->is_ask ? ask : &slow->orders[expected].ask;
    bid = order->is_ask ? &slow->orders[expected].bid : bid;
    uint32_t slots = ask->slots < bid->slots ? ask->slots : bid->slots;
    int64_t price = order->is_ask ? bid->limit_micro : ask->price_micro;
    ck_assert_uint_eq(match.handle, expected);
    ck_assert_uint_eq(match.slots, slots / bid->width * bid->width);
    ck_assert(match.is_own == (ask->owner == bid->owner));
    ck_assert_int_eq(match.price_micro, ask->price_micro == 0 ? 0 : price);
    ck_assert_uint_eq(match.sequence, order->is_ask ? bid->sequence : ask->sequence);
}

static void place(struct slow *slow, struct book *book, struct random *random, uint32_t handle,
                  uint64_t sequence)
{
    struct slow_order *order = &slow->orders[handle];
    memset(order, 0, sizeof *order);
    order->rests = true;
    order->is_ask = random_below(random, 2) == 0;
    if (order->is_ask) {
        order->ask = (struct book_ask){
            .owner = (uint32_t)random_below(random, 5),
            .cell = (uint32_t)random_below(random, slow->shape.cells),
            .slots = (uint32_t)random_below(random, 5),
            .price_micro = draw_price(slow, random),
            .max_term_ns = (int64_t)random_below(random, 3) * 10,
            .sequence = sequence,
        };
        compare_match(slow, book, handle);
        ck_assert_int_eq(book_rest_ask(book, handle, &order->ask), BOOK_OK);
    } else {
        order->bid = (struct book_bid){
            .owner = (uint32_t)random_below(random, 5),
            .class_id = (uint32_t)random_below(random, slow->shape.classes),
            .slots = (uint32_t)random_below(random, 5),
            .width = 1 + (uint32_t)random_below(random, 3),
            .limit_micro = draw_price(slow, random),
            .term_ns = (int64_t)random_below(random, 3) * 10,
            .sequence = sequence,
        };
        compare_match(slow, book, handle);
        ck_assert_int_eq(book_rest_bid(book, handle, &order->bid), BOOK_OK);
    }
}

START_TEST(the_book_and_the_slow_matcher_agree)
{
    printf("seed %d\n", _i);
    struct random random = random_seeded((uint64_t)_i);
    const struct shape shape = shapes[_i % SHAPES];
    struct book *book = book_create((struct book_limits){shape.orders, shape.cells, shape.classes});
    static struct slow slow;
    memset(&slow, 0, sizeof slow);
    slow.shape = shape;
    set_up(&slow, book, &random);
    size_t crossings = 0;
    for (uint64_t step = 1; step <= STEPS; step++) {
        uint32_t handle = (uint32_t)random_below(&random, slow.shape.orders);
        struct slow_order *order = &slow.orders[handle];
        ck_assert(book_rests(book, handle) == order->rests);
        if (!order->rests) {
            place(&slow, book, &random, handle, step);
        } else if (random_below(&random, 3) == 0) {
            book_remove(book, handle);
            order->rests = false;
        } else {
            uint32_t slots = (uint32_t)random_below(&random, 5);
            book_set_slots(book, handle, slots);
            *(order->is_ask ? &order->ask.slots : &order->bid.slots) = slots;
        }
        if (order->rests) {
            uint32_t expected = order->is_ask ? slow_best_bid(&slow, handle, false)
                                              : slow_best_ask(&slow, handle, false);
            uint32_t found = order->is_ask ? book_best_bid(book, handle, NULL, NULL)
                                           : book_best_ask(book, handle, NULL, NULL);
            ck_assert_uint_eq(found, expected);
            crossings += found != BOOK_NONE;
        }
    }
    ck_assert_uint_gt(crossings, STEPS / 10);
    book_destroy(&book);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("book properties");
    TCase *tests = tcase_create("book");
    tcase_add_loop_test(tests, the_book_and_the_slow_matcher_agree, 1, SEEDS + 1);
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
