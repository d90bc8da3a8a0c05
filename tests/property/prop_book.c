/* The book against a slow, obvious matcher: a flat list of orders, sorted anew for every question.
 * Among the steps cells and classes come and go: what rests in the others keeps its place. After
 * every step the book is sound, and every question about the order that changed has the same
 * answer. Bids by value are compared as fractions, by whole parts and what remains (Euclid), where
 * the book multiplies crosswise. */
#include "base/random.h"
#include "matching/book.h"
#include "matching/book_walk.h"
#include "tests/support/book_sound.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { ORDERS = 240, CELLS = 48, CLASSES = 40, STEPS = 4000, SEEDS = 30, KINDS_CHANGE_EVERY = 24 };

/* Few of all, and so many that the book goes by the best of each cell or class. */
static const struct shape {
    uint32_t orders, cells, classes;
    int64_t prices;
} shapes[] = {{48, 5, 6, 6},
              {ORDERS, CELLS, CLASSES, 6},
              {ORDERS, CELLS, CLASSES, 100000},
              {ORDERS, CELLS, CLASSES, INT64_MAX}}; /* as large as they can be, rates too */
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
    enum rate rates[CLASSES]; /* NONE: not by value */
    bool has_cell[CELLS], has_class[CLASSES];
    struct attribute cells[CELLS][4];
    size_t counts[CELLS]; /* of their attributes */
};

/* The sign of a/b - c/d, all >= 0, b and d > 0. */
static int compare(int64_t a, int64_t b, int64_t c, int64_t d)
{
    if (a / b != c / d) {
        return a / b < c / d ? -1 : 1;
    }
    if (a % b == 0 || c % d == 0) {
        return (a % b > 0) - (c % d > 0);
    }
    return compare(d, c % d, b, a % b); /* the other way up */
}

static int64_t operations(const struct slow *slow, uint32_t cell, enum rate rate)
{
    return rate_of(rate, slow->cells[cell], slow->counts[cell]);
}

/* The sign of what one bid is worth in a cell less what the other is. A price is what it is
 * worth. */
static int compare_bids(const struct slow *slow, uint32_t cell, const struct book_bid *a,
                        const struct book_bid *b)
{
    enum rate x = slow->rates[a->class_id];
    enum rate y = slow->rates[b->class_id];
    int64_t in_x = x == RATE_NONE ? RATE_UNIT : operations(slow, cell, x);
    int64_t in_y = y == RATE_NONE ? RATE_UNIT : operations(slow, cell, y);
    return compare(a->limit_micro, in_y, b->limit_micro, in_x);
}

static bool covers(const struct slow *slow, const struct book_bid *bid, const struct book_ask *ask)
{
    enum rate rate = slow->rates[bid->class_id];
    return rate == RATE_NONE ? ask->price_micro <= bid->limit_micro
                             : compare(ask->price_micro, operations(slow, ask->cell, rate),
                                       bid->limit_micro, RATE_UNIT) <= 0;
}

static int compare_asks(const struct slow *slow, enum rate rate, const struct book_ask *a,
                        const struct book_ask *b)
{
    int64_t in_a = rate == RATE_NONE ? 1 : operations(slow, a->cell, rate);
    int64_t in_b = rate == RATE_NONE ? 1 : operations(slow, b->cell, rate);
    return compare(a->price_micro, in_a, b->price_micro, in_b);
}

static bool has_rate(const struct slow *slow, uint32_t cell, enum rate rate)
{
    return rate == RATE_NONE || operations(slow, cell, rate) > 0;
}

/* Returns what a resting bid pays: its worth, rounded down, in two steps that each fit. */
static int64_t pays(const struct slow *slow, const struct book_bid *bid, uint32_t cell)
{
    enum rate rate = slow->rates[bid->class_id];
    if (rate == RATE_NONE) {
        return bid->limit_micro;
    }
    int64_t low = 0; /* the greatest price that is covered, by halves */
    int64_t high = INT64_MAX;
    while (low < high) {
        int64_t middle = low + (high - low) / 2 + (high - low) % 2;
        bool is_covered =
            covers(slow, bid, &(struct book_ask){.cell = cell, .price_micro = middle});
        low = is_covered ? middle : low;
        high = is_covered ? high : middle - 1;
    }
    return low;
}

static bool eligible(const struct slow *slow, const struct book_ask *ask,
                     const struct book_bid *bid, bool is_own_too)
{
    uint32_t slots = ask->slots < bid->slots ? ask->slots : bid->slots;
    return (is_own_too || ask->owner != bid->owner) &&
           has_rate(slow, ask->cell, slow->rates[bid->class_id]) && covers(slow, bid, ask) &&
           slots >= bid->width && (ask->max_term_ns == 0 || ask->max_term_ns >= bid->term_ns) &&
           requirement_satisfied(&slow->classes[bid->class_id], slow->cells[ask->cell],
                                 slow->counts[ask->cell]);
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
        enum rate rate = slow->rates[slow->orders[bid].bid.class_id];
        int sign = former == NULL ? -1 : compare_asks(slow, rate, &order->ask, former);
        if (sign < 0 || (sign == 0 && order->ask.sequence < former->sequence)) {
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
        uint32_t cell = slow->orders[ask].ask.cell;
        int sign = former == NULL ? 1 : compare_bids(slow, cell, &order->bid, former);
        if (sign > 0 || (sign == 0 && order->bid.sequence < former->sequence)) {
            best = i;
        }
    }
    return best;
}

static int64_t draw_rate(const struct slow *slow, struct random *random)
{
    int64_t few = (int64_t)random_below(random, 5) * (RATE_UNIT / 2);
    return slow->shape.prices == INT64_MAX ? (int64_t)random_below(random, INT64_MAX) : few;
}

static void set_number(struct attribute *attribute, const char *name, int64_t value)
{
    strcpy(attribute->name, name);
    attribute->number = value;
}

/* The lowest number that is free is the next one. */
static uint32_t lowest_free(const bool *is_used)
{
    uint32_t number = 0;
    while (is_used[number]) {
        number++;
    }
    return number;
}

/* Its memory makes it another than all others. */
static void add_cell(struct slow *slow, struct book *book, struct random *random)
{
    const uint32_t number = lowest_free(slow->has_cell);
    struct attribute *to = slow->cells[number];
    if (number % 4 != 0) {
        set_number(to++, "bf16", draw_rate(slow, random));
    }
    if (number % 3 != 0) {
        set_number(to++, "int8", draw_rate(slow, random));
    }
    set_number(to++, "memory", (int64_t)number);
    set_number(to++, "speed", (int64_t)random_below(random, 4));
    slow->counts[number] = (size_t)(to - slow->cells[number]);
    slow->has_cell[number] = true;
    uint32_t cell;
    ck_assert_int_eq(book_cell(book, slow->cells[number], slow->counts[number], &cell), BOOK_OK);
    ck_assert_uint_eq(cell, number);
}

/* Operator and number make it another than all others. */
static void add_class(struct slow *slow, struct book *book, struct random *random)
{
    static const enum rate rates[] = {RATE_NONE, RATE_NONE, RATE_BF16, RATE_INT8};
    const uint32_t number = lowest_free(slow->has_class);
    struct requirement_node *node = &slow->classes[number].nodes[0];
    slow->rates[number] = rates[random_below(random, 4)];
    slow->classes[number].count = number == 0 ? 0 : 1;
    node->op = number % 2 == 0 ? REQUIREMENT_GE : REQUIREMENT_NE;
    strcpy(node->attribute.name, random_below(random, 3) == 0 ? "memory" : "speed");
    node->attribute.number = (int64_t)number / 2;
    slow->has_class[number] = true;
    uint32_t class_id;
    ck_assert_int_eq(book_class(book, &slow->classes[number], slow->rates[number], &class_id),
                     BOOK_OK);
    ck_assert_uint_eq(class_id, number);
}

static void set_up(struct slow *slow, struct book *book, struct random *random)
{
    for (uint32_t i = 0; i < slow->shape.cells; i++) {
        add_cell(slow, book, random);
    }
    for (uint32_t i = 0; i < slow->shape.classes; i++) {
        add_class(slow, book, random);
    }
}

/* One that there is. */
static uint32_t draw_kind(const bool *is_used, uint32_t count, struct random *random)
{
    uint32_t number = (uint32_t)random_below(random, count);
    while (!is_used[number]) {
        number = (number + 1) % count;
    }
    return number;
}

static uint32_t used(const bool *is_used, uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += is_used[i];
    }
    return sum;
}

/* The orders that rest in the cell go first, then the last reference to the cell. */
static void remove_cell(struct slow *slow, struct book *book, uint32_t cell)
{
    for (uint32_t i = 0; i < slow->shape.orders; i++) {
        struct slow_order *order = &slow->orders[i];
        if (order->rests && order->is_ask && order->ask.cell == cell) {
            book_remove(book, i);
            order->rests = false;
        }
    }
    book_cell_hold(book, cell);
    book_cell_release(book, cell);
    ck_assert_uint_eq(book_cell_references(book, cell), 1);
    book_cell_release(book, cell);
    ck_assert_uint_eq(book_cell_references(book, cell), 0);
    slow->has_cell[cell] = false;
}

static void remove_class(struct slow *slow, struct book *book, uint32_t class_id)
{
    for (uint32_t i = 0; i < slow->shape.orders; i++) {
        struct slow_order *order = &slow->orders[i];
        if (order->rests && !order->is_ask && order->bid.class_id == class_id) {
            book_remove(book, i);
            order->rests = false;
        }
    }
    book_class_hold(book, class_id);
    book_class_release(book, class_id);
    ck_assert_uint_eq(book_class_references(book, class_id), 1);
    book_class_release(book, class_id);
    ck_assert_uint_eq(book_class_references(book, class_id), 0);
    slow->has_class[class_id] = false;
}

/* One comes or goes; half of them are there at least. */
static void change_kinds(struct slow *slow, struct book *book, struct random *random)
{
    const bool of_cells = random_below(random, 2) == 0;
    const uint32_t most = of_cells ? slow->shape.cells : slow->shape.classes;
    const bool *is_used = of_cells ? slow->has_cell : slow->has_class;
    const uint32_t count = used(is_used, most);
    const bool goes = count == most || (count > most / 2 && random_below(random, 2) == 0);
    const uint32_t number = draw_kind(is_used, most, random);
    if (of_cells && goes) {
        remove_cell(slow, book, number);
    } else if (of_cells) {
        add_cell(slow, book, random);
    } else if (goes) {
        remove_class(slow, book, number);
    } else {
        add_class(slow, book, random);
    }
}

static int64_t draw_price(const struct slow *slow, struct random *random)
{
    return (int64_t)random_below(random, (uint64_t)slow->shape.prices);
}

struct own {
    const struct slow *slow;
    uint32_t owner;
};

static bool skip_own(void *context, uint32_t handle)
{
    const struct own *own = context;
    const struct slow_order *order = &own->slow->orders[handle];
    return own->owner == (order->is_ask ? order->ask.owner : order->bid.owner);
}

static struct book_order order_of(const struct slow_order *order)
{
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
    return order->is_ask ? asking : bidding;
}

/* Compares what an order would meet that came now, whether or not it rests meanwhile, with orders
 * of its own owner and without. Returns true when it meets something. */
static bool compare_match(const struct slow *slow, const struct book *book, uint32_t handle,
                          bool is_own_too)
{
    const struct slow_order *order = &slow->orders[handle];
    const struct book_ask *ask = &order->ask;
    const struct book_bid *bid = &order->bid;
    const struct book_order arriving = order_of(order);
    uint32_t expected = order->is_ask ? slow_best_bid(slow, handle, is_own_too)
                                      : slow_best_ask(slow, handle, is_own_too);
    struct own own = {slow, order->is_ask ? ask->owner : bid->owner};
    struct book_match match;
    bool is_met = book_match(book, &arriving, is_own_too ? NULL : skip_own, &own, &match);
    ck_assert(is_met == (expected != BOOK_NONE));
    if (!is_met) {
        return false;
    }
    ask = order->is_ask ? ask : &slow->orders[expected].ask;
    bid = order->is_ask ? &slow->orders[expected].bid : bid;
    uint32_t slots = ask->slots < bid->slots ? ask->slots : bid->slots;
    int64_t price = order->is_ask ? pays(slow, bid, ask->cell) : ask->price_micro;
    ck_assert_uint_eq(match.handle, expected);
    ck_assert_uint_eq(match.slots, slots / bid->width * bid->width);
    ck_assert(match.is_own == (ask->owner == bid->owner));
    ck_assert_int_eq(match.price_micro, ask->price_micro == 0 ? 0 : price);
    return true;
}

enum { OWNERS = 5 };

static int64_t rank_in(const void *context, uint32_t owner)
{
    return ((const int64_t *)context)[owner];
}

static bool skip_every_seventh(void *context, uint32_t handle)
{
    (void)context;
    return handle % 7 == 0;
}

/* Compares who gets an ask at 0 that goes by ranks; the ranks differ each time. */
static void compare_ranks(const struct slow *slow, const struct book *book, struct random *random,
                          const struct book_ask *ask)
{
    int64_t ranks[OWNERS];
    for (size_t i = 0; i < OWNERS; i++) {
        ranks[i] = (int64_t)random_below(random, 3);
    }
    uint32_t expected = BOOK_NONE;
    for (uint32_t i = 0; i < slow->shape.orders; i++) {
        const struct slow_order *order = &slow->orders[i];
        if (!order->rests || order->is_ask || skip_every_seventh(NULL, i) ||
            !eligible(slow, ask, &order->bid, true)) {
            continue;
        }
        const struct book_bid *former = expected == BOOK_NONE ? NULL : &slow->orders[expected].bid;
        int64_t rank = ranks[order->bid.owner];
        if (former == NULL || rank < ranks[former->owner] ||
            (rank == ranks[former->owner] && order->bid.sequence < former->sequence)) {
            expected = i;
        }
    }
    const struct book_order asking = {.owner = ask->owner,
                                      .kind = ask->cell,
                                      .slots = ask->slots,
                                      .width = 1,
                                      .term_ns = ask->max_term_ns,
                                      .sequence = ask->sequence};
    const struct book_ranking ranking = {.rank = rank_in, .context = ranks};
    struct book_match match = {.handle = BOOK_NONE};
    bool is_met = book_match_by_rank(book, &asking, &ranking, skip_every_seventh, NULL, &match);
    ck_assert(is_met == (expected != BOOK_NONE));
    ck_assert_uint_eq(match.handle, expected);
    if (is_met) {
        const struct book_bid *bid = &slow->orders[expected].bid;
        uint32_t slots = ask->slots < bid->slots ? ask->slots : bid->slots;
        ck_assert_uint_eq(match.slots, slots / bid->width * bid->width);
        ck_assert(match.is_own == (ask->owner == bid->owner));
        ck_assert_int_eq(match.price_micro, 0);
    }
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
            .cell = draw_kind(slow->has_cell, slow->shape.cells, random),
            .slots = (uint32_t)random_below(random, 5),
            .price_micro = draw_price(slow, random),
            .max_term_ns = (int64_t)random_below(random, 3) * 10,
            .sequence = sequence,
        };
        (void)compare_match(slow, book, handle, true);
        if (order->ask.price_micro == 0) {
            compare_ranks(slow, book, random, &order->ask);
        }
        const struct book_order asking = order_of(order);
        ck_assert_int_eq(book_rest(book, handle, &asking), BOOK_OK);
    } else {
        order->bid = (struct book_bid){
            .owner = (uint32_t)random_below(random, 5),
            .class_id = draw_kind(slow->has_class, slow->shape.classes, random),
            .slots = (uint32_t)random_below(random, 5),
            .width = 1 + (uint32_t)random_below(random, 3),
            .limit_micro = draw_price(slow, random),
            .term_ns = (int64_t)random_below(random, 3) * 10,
            .sequence = sequence,
        };
        (void)compare_match(slow, book, handle, true);
        const struct book_order bidding = order_of(order);
        ck_assert_int_eq(book_rest(book, handle, &bidding), BOOK_OK);
    }
}

struct walk {
    const struct slow *slow;
    enum rate rate;
    uint32_t last, count;
};

static bool take_step(void *context, uint32_t handle, const struct book_ask *ask)
{
    struct walk *walk = context;
    if (walk->last != BOOK_NONE) {
        const struct book_ask *before = &walk->slow->orders[walk->last].ask;
        int sign = compare_asks(walk->slow, walk->rate, before, ask);
        ck_assert(sign < 0 || (sign == 0 && before->sequence < ask->sequence));
    }
    walk->last = handle;
    walk->count++;
    return true;
}

/* A walk meets all asks that a class accepts, best first. */
static void compare_walk(const struct slow *slow, const struct book *book, uint32_t class_id)
{
    const struct requirement *needs = &slow->classes[class_id];
    struct walk walk = {.slow = slow, .rate = slow->rates[class_id], .last = BOOK_NONE};
    uint32_t expected = 0;
    for (uint32_t i = 0; i < slow->shape.orders; i++) {
        const struct slow_order *order = &slow->orders[i];
        uint32_t cell = order->ask.cell;
        expected += order->rests && order->is_ask && has_rate(slow, cell, walk.rate) &&
                    requirement_satisfied(needs, slow->cells[cell], slow->counts[cell]);
    }
    book_walk_asks(book, needs, walk.rate, take_step, &walk);
    ck_assert_uint_eq(walk.count, expected);
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
        if (random_below(&random, KINDS_CHANGE_EVERY) == 0) {
            change_kinds(&slow, book, &random);
        } else if (!order->rests) {
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
            compare_match(&slow, book, handle, true);
            crossings += compare_match(&slow, book, handle, false);
        }
        ck_assert(book_is_sound(book));
        if (step % 64 == 0) {
            compare_walk(&slow, book, draw_kind(slow.has_class, slow.shape.classes, &random));
        }
    }
    ck_assert_uint_gt(crossings, STEPS / 10);
    book_destroy(&book);
}
END_TEST

SUITE("book properties", NULL, NULL, LOOP(the_book_and_the_slow_matcher_agree, 1, SEEDS + 1))
