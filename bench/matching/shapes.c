#include "bench/matching/shapes.h"

#include "base/random.h"
#include "matching/book.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    SMALL = 1000,
    LARGE = 1000000,
    ROUNDS = 5,
    STEPS = 1000000,
    RESTING = 100000, /* a quarter in the last row, of orders and prices */
    BOOKS = 1000,
    FAR = 64,
    LINE = 64 /* bytes */
};

/* All figures are nanoseconds per order. */
struct costs {
    double place, fill, cancel;
};

static void check(bool holds)
{
    if (!holds) {
        (void)fputs("matching: the book is not as it should be\n", stderr);
        exit(1);
    }
}

static double now_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static size_t resident_bytes(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    check(file != NULL && fscanf(file, "%*s %zu", &pages) == 1);
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Opens a market of a cell and the class that accepts it alone. */
static struct book_order open_market(struct book *book, uint32_t number)
{
    struct attribute attribute = {.name = "instrument", .is_text = true};
    (void)snprintf(attribute.text, sizeof attribute.text, "cpu.%" PRIu32, number);
    struct requirement needs = {.count = 1};
    needs.nodes[0] = (struct requirement_node){.op = REQUIREMENT_EQ, .attribute = attribute};
    uint32_t cell;
    uint32_t class_id;
    check(book_cell(book, &attribute, 1, &cell) == BOOK_OK &&
          book_class(book, &needs, RATE_NONE, &class_id) == BOOK_OK && cell == class_id);
    return (struct book_order){.owner = 1, .kind = cell, .slots = 1, .width = 1};
}

static struct book *create(struct book_limits limits)
{
    struct book *book = book_create(limits);
    check(book != NULL);
    return book;
}

static void place_levels(struct book *book, struct book_order *ask, uint32_t orders,
                         uint32_t levels)
{
    uint32_t handle = 0;
    for (uint32_t level = 1; level <= levels; level++) {
        ask->price_micro = level;
        for (uint32_t i = 0; i < orders / levels; i++) {
            ask->sequence++;
            check(book_rest(book, handle++, ask) == BOOK_OK);
        }
    }
}

/* Places asks, equally many at each price, and fills them from the front. Then it places them again
 * and cancels them from the middle outwards. Orders come and go by handle in the same way, however
 * many prices there are. */
static struct costs fill_levels(uint32_t orders, uint32_t levels)
{
    struct book *book = create((struct book_limits){orders, 1, 1});
    struct book_order ask = open_market(book, 0);
    struct book_order bid = ask;
    bid.price_micro = levels;
    bid.is_bid = true;
    bid.owner = 2;
    struct costs costs;
    for (int pass = 0; pass < 2; pass++) { /* the first one touches the memory */
        double from = now_ns();
        place_levels(book, &ask, orders, levels);
        costs.place = (now_ns() - from) / orders;
        from = now_ns();
        for (uint32_t i = 0; i < orders; i++) {
            struct book_match match;
            check(book_match(book, &bid, NULL, NULL, &match) && match.handle == i &&
                  match.slots == book_slots(book, i));
            book_remove(book, i);
        }
        costs.fill = (now_ns() - from) / orders;
    }
    place_levels(book, &ask, orders, levels);
    double from = now_ns();
    for (uint32_t i = 0; i < orders / 2; i++) {
        book_remove(book, orders / 2 + i);
        book_remove(book, orders / 2 - 1 - i);
    }
    costs.cancel = (now_ns() - from) / orders;
    book_destroy(&book);
    return costs;
}

/* Returns the nanoseconds from one line to the next in a random cycle through so many bytes. Each
 * line says which is the next. */
static double chase(size_t bytes)
{
    const uint32_t lines = (uint32_t)(bytes / LINE);
    uint32_t *memory = malloc((size_t)lines * LINE);
    uint32_t *cycle = malloc(lines * sizeof *cycle);
    struct random random = random_seeded(1);
    check(memory != NULL && cycle != NULL);
    for (uint32_t i = 0; i < lines; i++) {
        cycle[i] = i;
    }
    for (uint32_t i = lines - 1; i > 0; i--) { /* Sattolo's algorithm: one cycle of all */
        const uint32_t other = (uint32_t)random_below(&random, i);
        const uint32_t kept = cycle[i];
        cycle[i] = cycle[other];
        cycle[other] = kept;
    }
    for (uint32_t i = 0; i < lines; i++) {
        memory[(size_t)i * (LINE / sizeof *memory)] = cycle[i];
    }
    uint32_t at = 0;
    double from = now_ns();
    for (uint32_t i = 0; i < STEPS; i++) {
        at = memory[(size_t)at * (LINE / sizeof *memory)];
    }
    double ns = (now_ns() - from) / STEPS;
    check(at < lines);
    free(memory);
    free(cycle);
    return ns;
}

struct spread {
    double replace, chase;
    size_t bytes;
};

/* Draws a number below the bound without a division, which would take longer than some of what is
 * timed. */
static uint32_t below(struct random *random, uint32_t bound)
{
    return (uint32_t)((random_u64(random) >> 32) * bound >> 32);
}

/* Measures a book where the same number of orders rests all the time, at prices that are spread
 * evenly. Each step removes an order and adds one. The figures are nanoseconds of both together,
 * and of one step through as much memory as the orders made resident. */
static struct spread wide(uint32_t ticks, uint32_t prices, uint32_t orders)
{
    int64_t apart = ticks / prices;
    const size_t before = resident_bytes();
    struct book *book = create((struct book_limits){orders, 1, 1});
    struct book_order ask = open_market(book, 0);
    struct random random = random_seeded(1);
    uint64_t sequence = 0;
    for (uint32_t i = 0; i < orders; i++) {
        ask.price_micro = (int64_t)below(&random, prices) * apart + 1;
        ask.sequence = ++sequence;
        check(book_rest(book, i, &ask) == BOOK_OK);
    }
    struct spread spread = {.bytes = resident_bytes() - before};
    double from = now_ns();
    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t handle = below(&random, orders);
        book_remove(book, handle);
        ask.price_micro = (int64_t)below(&random, prices) * apart + 1;
        ask.sequence = ++sequence;
        check(book_rest(book, handle, &ask) == BOOK_OK);
    }
    spread.replace = (now_ns() - from) / STEPS;
    book_destroy(&book);
    spread.chase = chase(spread.bytes);
    return spread;
}

/* Returns the memory of an order among a million. Prices are `ticks_apart` from each other (0: all
 * orders have one price). */
static double bytes_per_order(uint32_t ticks_apart)
{
    size_t before = resident_bytes();
    struct book *book = create((struct book_limits){LARGE, 1, 1});
    struct book_order ask = open_market(book, 0);
    for (uint32_t i = 0; i < LARGE; i++) {
        ask.price_micro = (int64_t)i * ticks_apart + 1;
        ask.sequence = i + 1;
        check(book_rest(book, i, &ask) == BOOK_OK);
    }
    double bytes = (double)(resident_bytes() - before) / LARGE;
    book_destroy(&book);
    return bytes;
}

static double bytes_per_book(void)
{
    struct book *book = create((struct book_limits){1, BOOKS, BOOKS});
    size_t before = resident_bytes();
    for (uint32_t i = 0; i < BOOKS; i++) {
        (void)open_market(book, i);
    }
    double bytes = (double)(resident_bytes() - before) / BOOKS;
    book_destroy(&book);
    return bytes;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare_doubles);
    return values[ROUNDS / 2];
}

static json_t *level_row(uint32_t orders, uint32_t levels)
{
    double place[ROUNDS];
    double fill[ROUNDS];
    double cancel[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        struct costs costs = fill_levels(orders, levels);
        place[i] = costs.place;
        fill[i] = costs.fill;
        cancel[i] = costs.cancel;
    }
    return json_pack("{s:i,s:i,s:f,s:f,s:f}", "orders", (int)orders, "levels", (int)levels,
                     "place_ns", median(place), "fill_ns", median(fill), "cancel_ns",
                     median(cancel));
}

static json_t *wide_row(uint32_t ticks, uint32_t prices, uint32_t orders)
{
    double replace[ROUNDS];
    double step[ROUNDS];
    size_t bytes = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const struct spread spread = wide(ticks, prices, orders);
        replace[i] = spread.replace;
        step[i] = spread.chase;
        bytes = spread.bytes;
    }
    return json_pack("{s:i,s:i,s:i,s:f,s:f,s:I}", "ticks", (int)ticks, "prices", (int)prices,
                     "orders", (int)orders, "replace_ns", median(replace), "chase_ns", median(step),
                     "bytes", (json_int_t)bytes);
}

json_t *shapes_measure(void)
{
    (void)mallopt(M_MMAP_THRESHOLD,
                  1 << 20); /* what is freed goes back, so that it is not counted */
    double one = bytes_per_order(0);
    double next = bytes_per_order(1);
    double far = bytes_per_order(FAR);
    double book = bytes_per_book();
    return json_pack("{s:[o,o,o],s:[o,o,o,o],s:f,s:f,s:f,s:f}", "level", level_row(SMALL, 1),
                     level_row(LARGE, SMALL), level_row(LARGE, 1), "span",
                     wide_row(SMALL, SMALL, RESTING), wide_row(LARGE, SMALL, RESTING),
                     wide_row(LARGE, LARGE, RESTING), wide_row(LARGE / 4, LARGE / 4, RESTING / 4),
                     "bytes_per_order", one, "bytes_per_order_next", next, "bytes_per_order_far",
                     far, "bytes_per_empty_book", book);
}
