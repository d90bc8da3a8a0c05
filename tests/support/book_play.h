/* tests/support/book_play.h fills a book by hand, and says what one of its orders would meet. */
#ifndef BOURSE_TESTS_SUPPORT_BOOK_PLAY_H
#define BOURSE_TESTS_SUPPORT_BOOK_PLAY_H

#include "matching/book.h"

#include <check.h>
#include <string.h>

static inline struct attribute text(const char *name, const char *value)
{
    struct attribute attribute = {.is_text = true};
    strcpy(attribute.name, name);
    strcpy(attribute.text, value);
    return attribute;
}

static inline struct attribute number(const char *name, int64_t value)
{
    struct attribute attribute = {.number = value};
    strcpy(attribute.name, name);
    return attribute;
}

static inline struct book *book_of(void)
{
    return book_create((struct book_limits){.orders = 16, .cells = 4, .classes = 4});
}

static inline uint32_t cell_of(struct book *book, const char *kind, int64_t memory)
{
    const struct attribute attributes[] = {text("kind", kind), number("memory", memory)};
    uint32_t cell = 99;
    ck_assert_int_eq(book_cell(book, attributes, 2, &cell), BOOK_OK);
    return cell;
}

static inline uint32_t class_any(struct book *book)
{
    const struct requirement anything = {0};
    uint32_t class_id = 99;
    ck_assert_int_eq(book_class(book, &anything, RATE_NONE, &class_id), BOOK_OK);
    return class_id;
}

static inline void rest_ask(struct book *book, uint32_t handle, uint32_t cell, int64_t price,
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

static inline void rest_bid(struct book *book, uint32_t handle, uint32_t class_id, int64_t limit,
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

/* Returns what an order would meet that came now and is like one that rests, which its own side
 * does not show it. */
static inline struct book_match meet(struct book *book, uint32_t handle, book_skip *skip)
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

static inline uint32_t met(struct book *book, uint32_t handle)
{
    return meet(book, handle, NULL).handle;
}

#endif
