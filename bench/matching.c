/* bench/matching.c runs a recorded flow of orders through the order book. The program prints one
 * JSON object.
 *
 *     matching --flow FILE [--rounds R] [--json]
 *     matching --shapes [--json]
 *
 * FILE is what docs/bench.md calls an order flow: limit orders that may rest, immediate-or-cancel
 * orders and cancels in any number of books. The file also has the outcome that price-time priority
 * leads to, and the status is 1 when the outcome is another. Each book is a cell with a class of
 * its own, in one struct book. The flow's ids become handles. The book is used as the exchange uses
 * it. Bids have a term and asks a longest one. The caller looks at each order that would be filled,
 * and passes over its owner's. What waits is made known to the book. R [7] rounds are timed, and
 * one more takes the time of each message.
 *
 * --shapes measures books of unusual shapes instead, and memory (matching/shapes.c). */
#include "base/ahead.h"
#include "bench/give_up.h"
#include "bench/matching/shapes.h"
#include "matching/book.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { OP_LIMIT = 0, OP_CANCEL = 1, OP_IMMEDIATE = 2, SIDE_BUY = 0, SIDE_SELL = 1 };
enum { ROUNDS_MOST = 99, OWNER_SELLS = 1 }; /* the buyer is the next owner */
/* The replay looks at a waiting message so many messages before its turn: LAST for its id, MIDDLE
 * for its order, FIRST for the order that it will meet. Fewer orders than MANY lie in the
 * processor's own cache, and need no prefetch. */
enum { LAST = 12, MIDDLE = 6, FIRST = 3, MANY = 8192 };
static const int64_t term_ns[] = {INT64_C(86400000000000),
                                  INT64_C(3600000000000)}; /* most, bid's */

struct flow_head {
    char magic[8];
    uint32_t version, record, books, levels;
    uint64_t warm, count, seed, max_id, adds, cancels, late, crossing;
    uint64_t trades, quantity, resting, hash, zero;
};
struct flow_record {
    uint64_t id;
    uint32_t book, price, quantity;
    uint8_t op, side;
    uint16_t zero;
};
static_assert(sizeof(struct flow_head) == 128 && sizeof(struct flow_record) == 24,
              "as in the file");

struct outcome {
    uint64_t trades, quantity, resting, late, hash;
};

struct replay {
    struct book *book;

    uint32_t *handles; /* by id: its last handle, perhaps another order's by now */
    uint32_t *free;    /* free handles, a stack */
    uint32_t free_count, touched, capacity;
    uint32_t *kinds; /* the cell of each book, then its class */
    struct outcome outcome;
};

static uint64_t now_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

static struct replay replay_begin(const struct flow_head *head)
{
    struct replay replay = {.capacity = 1U << 20};
    replay.book = book_create((struct book_limits){replay.capacity, head->books, head->books});
    if (replay.book == NULL) {
        die("out of memory");
    }
    replay.handles = memory(head->max_id + 1, sizeof *replay.handles);
    memset(replay.handles, 0xff, (head->max_id + 1) * sizeof *replay.handles);
    replay.free = memory(replay.capacity, sizeof *replay.free);

    replay.kinds = memory(head->books, 2 * sizeof *replay.kinds);
    for (uint32_t i = 0; i < head->books; i++) {
        struct attribute attribute = {.name = "instrument", .is_text = true};
        (void)snprintf(attribute.text, sizeof attribute.text, "cpu.%" PRIu32, i);
        struct requirement needs = {.count = 1};
        needs.nodes[0] = (struct requirement_node){.op = REQUIREMENT_EQ, .attribute = attribute};
        if (book_cell(replay.book, &attribute, 1, &replay.kinds[(size_t)2 * i]) != BOOK_OK ||
            book_class(replay.book, &needs, RATE_NONE, &replay.kinds[(size_t)2 * i + 1]) !=
                BOOK_OK) {
            die("no cells");
        }
    }
    replay.outcome.hash = UINT64_C(0xcbf29ce484222325);
    return replay;
}

static void replay_end(struct replay *replay)
{
    book_destroy(&replay->book);
    free(replay->handles);

    free(replay->free);
    free(replay->kinds);
}

static uint32_t take_handle(struct replay *replay, uint64_t id)
{
    uint32_t handle =
        replay->free_count > 0 ? replay->free[--replay->free_count] : replay->touched++;
    if (handle >= replay->capacity) {
        die("more orders rest than there is room for");
    }
    replay->handles[id] = handle;

    replay->outcome.resting++;
    return handle;
}

static void free_handle(struct replay *replay, uint32_t handle)
{

    replay->free[replay->free_count++] = handle;
    replay->outcome.resting--;
}

static void count_trade(struct outcome *outcome, uint64_t maker, uint64_t taker, uint32_t price,
                        uint32_t quantity)
{
    const uint64_t prime = UINT64_C(0x100000001b3);
    outcome->hash = (outcome->hash ^ maker) * prime;
    outcome->hash = (outcome->hash ^ taker) * prime;
    outcome->hash = (outcome->hash ^ ((uint64_t)price << 32 | quantity)) * prime;
    outcome->trades++;
    outcome->quantity += quantity;
}

struct newcomer {
    const struct book *book;
    uint32_t owner;
};

static bool skip_own(void *context, uint32_t handle)
{
    const struct newcomer *newcomer = context;
    return book_owner(newcomer->book, handle) == newcomer->owner;
}

/* The filled size is no longer offered. */
static void fill(struct replay *replay, const struct book_match *match)
{
    const uint32_t left = book_slots(replay->book, match->handle) - match->slots;
    if (left > 0) {
        book_set_slots(replay->book, match->handle, left);
    } else {
        book_remove(replay->book, match->handle);
        free_handle(replay, match->handle);
    }
}

/* An order's number is its sequence: numbers count up as orders arrive. */
static void arrive(struct replay *replay, const struct flow_record *record)
{
    bool is_bid = record->side == SIDE_BUY; /* no processor can predict it, so no branch asks */
    struct book_order order = {.is_bid = is_bid,
                               .owner = OWNER_SELLS + (uint32_t)is_bid,
                               .kind = replay->kinds[(size_t)2 * record->book + is_bid],
                               .slots = record->quantity,
                               .width = 1,
                               .price_micro = record->price,
                               .term_ns = term_ns[is_bid],
                               .sequence = record->id};
    struct newcomer newcomer = {.book = replay->book, .owner = order.owner};
    struct book_match match;
    while (book_match(replay->book, &order, skip_own, &newcomer, &match)) {
        count_trade(&replay->outcome, match.sequence, record->id, (uint32_t)match.price_micro,
                    match.slots);
        fill(replay, &match);
        order.slots -= match.slots;
        if (order.slots == 0) {
            return;
        }
    }
    if (record->op != OP_IMMEDIATE) {
        (void)book_rest(replay->book, take_handle(replay, record->id), &order);
    }
}

static void cancel(struct replay *replay, uint64_t id)
{
    uint32_t handle = replay->handles[id];
    if (book_rests(replay->book, handle) && book_sequence(replay->book, handle) == id) {
        book_remove(replay->book, handle);
        free_handle(replay, handle);
    } else {
        replay->outcome.late++;
    }
}

/* The broker's core does the same with ids and what they lead to; here the book's orders stand for
 * them. The function does not look whether a message cancels: no branch could be predicted. */
static inline void expect(const struct replay *replay, const struct flow_record *next)
{
    const struct flow_record *first = next + FIRST;
    const bool is_bid = first->side == SIDE_BUY;
    line_ahead(&replay->handles[next[LAST].id]);
    book_expect(replay->book, replay->handles[next[MIDDLE].id]);
    book_expect_match(replay->book, is_bid, replay->kinds[(size_t)2 * first->book + is_bid]);
}

static void handle_record(struct replay *replay, const struct flow_record *record)
{
    if (replay->outcome.resting >= MANY) {
        expect(replay, record);
    }
    if (record->op == OP_CANCEL) {
        cancel(replay, record->id);
    } else {
        arrive(replay, record);
    }
}

static bool agrees(const struct flow_head *head, const struct outcome *outcome)
{
    return outcome->trades == head->trades && outcome->quantity == head->quantity &&
           outcome->resting == head->resting && outcome->late == head->late &&
           outcome->hash == head->hash;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static int compare_ticks(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

struct flow {
    struct flow_head head;
    struct flow_record *records;
};

static const char cut_short[] = "the flow is cut short: its head counts more records";
static const char too_long[] = "the flow has bytes behind the last record that its head counts";

/* Returns what is wrong with the numbers of the head, or NULL. `file_bytes` is 0 for a pipe, which
 * has no length. */
static const char *head_wrong(const struct flow_head *head, uint64_t file_bytes)
{
    const uint64_t record_bytes = file_bytes - sizeof *head;
    if (file_bytes > 0 && head->count > record_bytes / sizeof(struct flow_record)) {
        return cut_short;
    }
    if (file_bytes > 0 && head->count * sizeof(struct flow_record) != record_bytes) {
        return too_long;
    }
    if (head->books == 0 || head->books > BOOK_KINDS_MAX) {
        return "the flow's head names no books, or more than there can be";
    }
    if (head->warm >= head->count) {
        return "the flow's head has no record after those that come before the clock";
    }
    if (head->max_id > head->count) {
        return "the flow's head names a highest order above the number of its records";
    }
    return NULL;
}

/* Returns what is wrong with a record, or NULL. The order `last_id` arrived before it. */
static const char *record_wrong(const struct flow_head *head, const struct flow_record *record,
                                uint64_t last_id)
{
    if (record->id > head->max_id || record->book >= head->books) {
        return "names an order or a book that the flow has not";
    }
    if (record->op > OP_IMMEDIATE || record->side > SIDE_SELL) {
        return "has an operation or a side that there is not";
    }
    if (record->op == OP_CANCEL) {
        return NULL;
    }
    if (record->id <= last_id) {
        return "is an order that does not count up from the one before";
    }
    if (record->price == 0 || record->price > head->levels || record->quantity == 0) {
        return "has no quantity, or a price that is not 1 to the highest";
    }
    return NULL;
}

static void check_records(const struct flow *flow)
{
    uint64_t last_id = 0;
    for (uint64_t i = 0; i < flow->head.count; i++) {
        const struct flow_record *record = &flow->records[i];
        const char *wrong = record_wrong(&flow->head, record, last_id);
        if (wrong != NULL) {
            char text[160];
            (void)snprintf(text, sizeof text, "record %" PRIu64 " %s", i + 1, wrong);
            die(text);
        }
        last_id = record->op == OP_CANCEL ? last_id : record->id;
    }
}

static struct flow flow_read(const char *path)
{
    struct flow flow;
    struct stat facts;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &facts) != 0 ||
        fread(&flow.head, sizeof flow.head, 1, file) != 1 ||
        memcmp(flow.head.magic, "BOFLOW1\n", 8) != 0 || flow.head.version != 1 ||
        flow.head.record != sizeof(struct flow_record)) {
        die("not an order flow");
    }
    const char *wrong =
        head_wrong(&flow.head, S_ISREG(facts.st_mode) ? (uint64_t)facts.st_size : 0);
    if (wrong != NULL) {
        die(wrong);
    }
    flow.records =
        memory(flow.head.count + LAST, sizeof *flow.records); /* none is behind the last */
    if (fread(flow.records, sizeof *flow.records, flow.head.count, file) != flow.head.count) {
        die(ferror(file) != 0 ? "the flow cannot be read" : cut_short);
    }
    if (fgetc(file) != EOF) {
        die(too_long);
    }
    (void)fclose(file);
    check_records(&flow);
    return flow;
}

static void print(json_t *value)
{
    (void)json_dumpf(value, stdout, JSON_COMPACT);
    (void)fputc('\n', stdout);
    json_decref(value);
}

int main(int argc, char **argv)
{
    const char *path = NULL;
    int rounds = 7;
    long books = 0; /* that the flow is said to have; 0: as many as it says */
    bool is_shapes = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--flow") == 0 && i + 1 < argc) {
            path = argv[++i];
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            rounds = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--books") == 0 && i + 1 < argc) {
            books = strtol(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--shapes") == 0) {
            is_shapes = true;
        } else if (strcmp(argv[i], "--json") != 0) {
            path = NULL;
            break;
        }
    }
    if (is_shapes) {
        print(shapes_measure());
        return 0;
    }
    if (path == NULL || rounds < 1 || rounds > ROUNDS_MOST || books < 0) {
        (void)fputs("usage: matching --flow FILE [--books N] [--rounds R] [--json] | --shapes "
                    "[--json]\n",
                    stderr);
        return 2;
    }
    struct flow flow = flow_read(path);
    const struct flow_head *head = &flow.head;
    if (books > 0 && books != (long)head->books) {
        (void)fprintf(stderr, "matching: %s has %" PRIu32 " books, not %ld\n", path, head->books,
                      books);
        return 2;
    }
    double ns[ROUNDS_MOST];
    bool good = true;
    struct outcome outcome = {0};
    for (int round = 0; round < rounds; round++) {
        struct replay replay = replay_begin(head);
        for (uint64_t i = 0; i < head->warm; i++) {
            handle_record(&replay, &flow.records[i]);
        }
        uint64_t from = now_ns();
        for (uint64_t i = head->warm; i < head->count; i++) {
            handle_record(&replay, &flow.records[i]);
        }
        ns[round] = (double)(now_ns() - from) / (double)(head->count - head->warm);
        outcome = replay.outcome;
        good = good && agrees(head, &outcome);
        replay_end(&replay);
    }
    uint64_t timed = head->count - head->warm;
    uint32_t *each = memory(timed, sizeof *each);
    struct replay replay = replay_begin(head);
    for (uint64_t i = 0; i < head->warm; i++) {
        handle_record(&replay, &flow.records[i]);
    }
    for (uint64_t i = head->warm; i < head->count; i++) {
        uint64_t from = now_ns();
        handle_record(&replay, &flow.records[i]);
        each[i - head->warm] = (uint32_t)(now_ns() - from);
    }
    good = good && agrees(head, &replay.outcome);
    replay_end(&replay);
    qsort(each, timed, sizeof *each, compare_ticks);
    qsort(ns, (size_t)rounds, sizeof *ns, compare_doubles);
    char hash[17];
    (void)snprintf(hash, sizeof hash, "%016" PRIx64, outcome.hash);
    json_t *value =
        json_pack("{s:f,s:f,s:f,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:i,s:b}", "ns_per_message",
                  ns[rounds / 2], "fastest", ns[0], "slowest", ns[rounds - 1], "p50_ns",
                  (json_int_t)each[timed / 2], "p99_ns", (json_int_t)each[timed / 100 * 99],
                  "p999_ns", (json_int_t)each[timed / 1000 * 999], "trades",
                  (json_int_t)outcome.trades, "quantity", (json_int_t)outcome.quantity, "resting",
                  (json_int_t)outcome.resting, "hash", hash, "rounds", rounds, "agrees", good);
    print(value);
    free(each);
    free(flow.records);
    return good ? 0 : 1;
}
