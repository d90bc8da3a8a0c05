/* bench/matching_classes.c measures the order book with many cells and many requirement classes.
 * The program prints one JSON object.
 *
 *     matching_classes [--messages N] [--checked N] [--json]
 *
 * There are two markets: 64 cells with 1,000 classes, and 1,024 cells with 10,000. Seven of ten
 * messages are orders, as many asks as bids. An order meets others before it rests under the next
 * of DEPTH handles, and replaces what still rests there. The other messages cancel what rests under
 * a random handle, if anything does. The first `checked` messages go to a flat list as well, which
 * is searched from end to end for every match. A different trade ends the program with status 1. N
 * [1000000] messages are timed after twice as many as there are handles, and the faster of two
 * rounds counts. With all orders at rest, one more cell and one more class come and go, each
 * CHANGES times; the figures are medians. */
#include "base/random.h"
#include "matching/book.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEPTH = 10000, ROUNDS = 3, FAIR = 1000, CHANGES = 99 };

struct message {
    uint32_t handle;
    bool is_cancel;
    struct book_order order;
};

struct market {
    uint32_t cells, classes;
    struct book *book;
    uint8_t *meets; /* by class, then cell */
    struct book_order *list;
    bool *rests; /* in the list, by handle */
};

struct outcome {
    uint64_t trades, hash;
};

static void check(bool holds, const char *text)
{
    if (!holds) {
        (void)fprintf(stderr, "matching_classes: %s\n", text);
        exit(1);
    }
}

static double now_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *memory(size_t count, size_t size)
{
    void *bytes = calloc(count, size);
    check(bytes != NULL, "out of memory");
    return bytes;
}

static struct requirement_node at_least(const char *name, int64_t value, bool is_most)
{
    struct requirement_node node = {.op = is_most ? REQUIREMENT_LE : REQUIREMENT_GE};
    (void)snprintf(node.attribute.name, sizeof node.attribute.name, "%s", name);
    node.attribute.number = value;
    return node;
}

static struct requirement class_needs(uint32_t number)
{
    int64_t least = number % 50;
    struct requirement needs = {.count = 4};
    needs.nodes[0] = at_least("memory", least, false);
    needs.nodes[1] = at_least("memory", least + number / 50 % 20, true);
    needs.nodes[2] = at_least("speed", number / 1000, false);
    needs.nodes[3] = (struct requirement_node){.op = REQUIREMENT_AND, .arity = 3};
    return needs;
}

static uint32_t add_cell(struct book *book, uint32_t number)
{
    const struct attribute attributes[] = {{.name = "memory", .number = number % 64},
                                           {.name = "speed", .number = number / 64}};
    uint32_t cell;
    check(book_cell(book, attributes, 2, &cell) == BOOK_OK && cell == number, "no cell");
    return cell;
}

static uint32_t add_class(struct book *book, const struct requirement *needs, uint32_t number)
{
    uint32_t class_id;
    check(book_class(book, needs, RATE_NONE, &class_id) == BOOK_OK && class_id == number,
          "no class");
    return class_id;
}

static void market_open(struct market *market)
{
    market->book = book_create((struct book_limits){DEPTH, market->cells + 1, market->classes + 1});
    check(market->book != NULL, "out of memory");
    for (uint32_t i = 0; i < market->cells; i++) {
        (void)add_cell(market->book, i);
    }
    for (uint32_t i = 0; i < market->classes; i++) {
        const struct requirement needs = class_needs(i);
        (void)add_class(market->book, &needs, i);
        for (uint32_t cell = 0; cell < market->cells; cell++) {
            size_t count;
            const struct attribute *attributes = book_cell_attributes(market->book, cell, &count);
            market->meets[(size_t)i * market->cells + cell] =
                requirement_satisfied(&needs, attributes, count);
        }
    }
}

static struct message *draw(const struct market *market, uint32_t count)
{
    struct random random = random_seeded(1);
    struct message *messages = memory(count, sizeof *messages);
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct message *message = &messages[i];
        if (random_below(&random, 10) >= 7) {
            *message = (struct message){.handle = (uint32_t)random_below(&random, DEPTH),
                                        .is_cancel = true};
            continue;
        }
        bool is_bid = random_below(&random, 2) == 0;
        int64_t away = (int64_t)random_below(&random, 60) - 6; /* a few cross */
        message->handle = next++ % DEPTH;
        message->order = (struct book_order){
            .is_bid = is_bid,
            .owner = is_bid ? 2 : 1,
            .kind = (uint32_t)random_below(&random, is_bid ? market->classes : market->cells),
            .slots = 1 + (uint32_t)random_below(&random, 64),
            .width = 1,
            .price_micro = is_bid ? FAIR - away : FAIR + away,
            .sequence = i + 1};
    }
    return messages;
}

static void count_trade(struct outcome *outcome, uint32_t handle, uint64_t sequence, int64_t price,
                        uint32_t slots)
{
    const uint64_t words[] = {handle, sequence, (uint64_t)price, slots};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        outcome->hash = (outcome->hash ^ words[i]) * UINT64_C(0x100000001b3);
    }
    outcome->trades++;
}

static void apply(struct book *book, const struct message *message, struct outcome *outcome)
{
    if (book_rests(book, message->handle)) {
        book_remove(book, message->handle);
    }
    if (message->is_cancel) {
        return;
    }
    struct book_order order = message->order;
    struct book_match match;
    while (book_match(book, &order, NULL, NULL, &match)) {
        count_trade(outcome, match.handle, order.sequence, match.price_micro, match.slots);
        const uint32_t left = book_slots(book, match.handle) - match.slots;
        if (left > 0) {
            book_set_slots(book, match.handle, left);
        } else {
            book_remove(book, match.handle);
        }
        order.slots -= match.slots;
        if (order.slots == 0) {
            return;
        }
    }
    (void)book_rest(book, message->handle, &order);
}

static bool precedes(const struct book_order *a, const struct book_order *b)
{
    int64_t better = a->is_bid ? a->price_micro - b->price_micro : b->price_micro - a->price_micro;
    return better != 0 ? better > 0 : a->sequence < b->sequence;
}

/* Returns the list's best order for this one, or DEPTH. */
static uint32_t slow_best(const struct market *market, const struct book_order *order)
{
    uint32_t best = DEPTH;
    for (uint32_t i = 0; i < DEPTH; i++) {
        const struct book_order *other = &market->list[i];
        if (!market->rests[i] || other->is_bid == order->is_bid) {
            continue;
        }
        const struct book_order *ask = order->is_bid ? other : order;
        const struct book_order *bid = order->is_bid ? order : other;
        if (ask->price_micro <= bid->price_micro &&
            market->meets[(size_t)bid->kind * market->cells + ask->kind] != 0 &&
            (best == DEPTH || precedes(other, &market->list[best]))) {
            best = i;
        }
    }
    return best;
}

static void slow_apply(struct market *market, const struct message *message,
                       struct outcome *outcome)
{
    market->rests[message->handle] = false;
    if (message->is_cancel) {
        return;
    }
    struct book_order order = message->order;
    for (uint32_t best; order.slots > 0 && (best = slow_best(market, &order)) != DEPTH;) {
        struct book_order *maker = &market->list[best];
        uint32_t slots = order.slots < maker->slots ? order.slots : maker->slots;
        count_trade(outcome, best, order.sequence, maker->price_micro, slots);
        order.slots -= slots;
        maker->slots -= slots;
        market->rests[best] = maker->slots > 0;
    }
    if (order.slots > 0) {
        market->list[message->handle] = order;
        market->rests[message->handle] = true;
    }
}

/* One more cell, or class, takes these microseconds to come and to go. */
struct changes {
    double cell_comes, cell_goes, class_comes, class_goes;
};

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median_us(double *ns)
{
    qsort(ns, CHANGES, sizeof *ns, compare_doubles);
    return ns[CHANGES / 2] / 1000;
}

static struct changes change(const struct market *market)
{
    static double ns[4][CHANGES];
    const struct requirement needs = class_needs(market->classes);
    for (int i = 0; i < CHANGES; i++) {
        double at[5] = {now_ns()};
        uint32_t cell = add_cell(market->book, market->cells);
        at[1] = now_ns();
        book_cell_release(market->book, cell);
        at[2] = now_ns();
        uint32_t class_id = add_class(market->book, &needs, market->classes);
        at[3] = now_ns();
        book_class_release(market->book, class_id);
        at[4] = now_ns();
        for (int step = 0; step < 4; step++) {
            ns[step][i] = at[step + 1] - at[step];
        }
    }
    return (struct changes){median_us(ns[0]), median_us(ns[1]), median_us(ns[2]), median_us(ns[3])};
}

static json_t *measure(uint32_t cells, uint32_t classes, uint32_t timed, uint32_t checked)
{
    struct market market = {.cells = cells,
                            .classes = classes,
                            .meets = memory((size_t)cells * classes, 1),
                            .list = memory(DEPTH, sizeof *market.list),
                            .rests = memory(DEPTH, sizeof *market.rests)};
    uint32_t warm = 2 * DEPTH;
    struct message *messages = draw(&market, warm + timed);
    double best_ns = 0;
    struct outcome outcome = {0};
    struct changes changes = {0};
    for (int round = 0; round < ROUNDS; round++) {
        market_open(&market);
        memset(market.rests, 0, DEPTH * sizeof *market.rests);
        outcome = (struct outcome){0};
        struct outcome slow = {0};
        double from = 0;
        for (uint32_t i = 0; i < warm + timed; i++) {
            from = i == warm ? now_ns() : from;
            apply(market.book, &messages[i], &outcome);
            if (round == 0 && i < checked) { /* a round that does not count */
                slow_apply(&market, &messages[i], &slow);
                check(slow.hash == outcome.hash, "the slow matcher trades otherwise");
            }
        }
        double ns = (now_ns() - from) / timed;
        changes = change(&market);
        best_ns = round == 0 || (round > 1 && best_ns < ns) ? best_ns : ns;
        book_destroy(&market.book);
    }
    free(messages);
    free(market.meets);
    free(market.list);
    free(market.rests);
    return json_pack("{s:i,s:i,s:f,s:f,s:I,s:i,s:f,s:f,s:f,s:f}", "cells", (int)cells, "classes",
                     (int)classes, "messages_per_s", 1e9 / best_ns, "ns_per_message", best_ns,
                     "trades", (json_int_t)outcome.trades, "checked", (int)checked, "cell_comes_us",
                     changes.cell_comes, "cell_goes_us", changes.cell_goes, "class_comes_us",
                     changes.class_comes, "class_goes_us", changes.class_goes);
}

int main(int argc, char **argv)
{
    uint32_t timed = 1000000;
    uint32_t checked = 50000;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--messages") == 0 && i + 1 < argc) {
            timed = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--checked") == 0 && i + 1 < argc) {
            checked = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--json") != 0) {
            timed = 0;
        }
    }
    if (timed == 0) {
        (void)fputs("usage: matching_classes [--messages N] [--checked N] [--json]\n", stderr);
        return 2;
    }
    json_t *value = json_pack("{s:[o,o]}", "markets", measure(64, 1000, timed, checked),
                              measure(1024, 10000, timed, checked));
    (void)json_dumpf(value, stdout, JSON_COMPACT);
    (void)fputc('\n', stdout);
    json_decref(value);
    return 0;
}
