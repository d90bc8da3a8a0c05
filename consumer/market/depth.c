#include "consumer/market/depth.h"

#include "base/array.h"
#include "consumer/client/names.h"
#include "formats/hours_text.h"
#include "formats/requirement.h"
#include "protocol/conditions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEEDS_TEXT_SIZE = 16384 }; /* longer than any requirement's text */

struct ask { /* one order, before the sums */
    struct bourse_ask_level level;
    uint32_t provider;
};

struct bourse_book {
    struct ask *asks;
    size_t ask_count, ask_capacity;
    struct bourse_bid_level *bids;
    size_t bid_count, bid_capacity;
    char **texts; /* owns the texts of the bids' needs and the asks' hours */
    size_t text_count, text_capacity;
    struct bourse_ask_level *levels; /* sums of the asks, once settled */
    size_t level_count;
    struct bourse_bands bands;
};

struct bourse_book *depth_create(void)
{
    return calloc(1, sizeof(struct bourse_book));
}

void bourse_book_destroy(struct bourse_book **self)
{
    struct bourse_book *book = *self;
    if (book != NULL) {
        for (size_t i = 0; i < book->text_count; i++) {
            free(book->texts[i]);
        }
        free(book->texts);
        free(book->asks);
        free(book->bids);
        free(book->levels);
        free(book);
        *self = NULL;
    }
}

const struct bourse_ask_level *bourse_book_asks(const struct bourse_book *book, size_t *ret_count)
{
    *ret_count = book->level_count;
    return book->levels;
}

const struct bourse_bid_level *bourse_book_bids(const struct bourse_book *book, size_t *ret_count)
{
    *ret_count = book->bid_count;
    return book->bids;
}

struct bourse_bands bourse_book_bands(const struct bourse_book *book)
{
    return book->bands;
}

struct bourse_bands depth_bands(const Bourse__V1__BookReply *page)
{
    return (struct bourse_bands){
        .least_micro = page->has_least_micro ? page->least_micro : 0,
        .most_micro = page->has_most_micro ? page->most_micro : 0,
        .notional_micro = page->has_notional_micro ? page->notional_micro : 0,
    };
}

/* ---------------------------------------------------------------- pages */

static bool add_text(struct bourse_book *book, const char *text)
{
    char **texts =
        array_with_room(book->texts, book->text_count, &book->text_capacity, sizeof *texts);
    if (texts == NULL) {
        return false;
    }
    book->texts = texts;
    texts[book->text_count] = strdup(text);
    return texts[book->text_count] != NULL && ++book->text_count > 0;
}

static enum depth_status conditions_of(struct bourse_book *book, const Bourse__V1__BookAsk *from,
                                       struct bourse_ask_level *level)
{
    struct hours hours;
    char text[HOURS_ALL_TEXT_SIZE];
    level->to = from->has_to ? from->to : 0;
    level->for_you = from->has_for_you && from->for_you;
    level->daily_ms = from->has_daily_ms ? from->daily_ms : 0;
    level->left_ms = from->has_left_ms ? from->left_ms : 0;
    level->hours = "";
    if (from->n_hours == 0) {
        return DEPTH_OK;
    }
    if (!conditions_hours(from->hours, from->n_hours, from->has_offset_min ? from->offset_min : 0,
                          &hours)) {
        return DEPTH_CONTRADICTS;
    }
    hours_text(&hours, text);
    if (!add_text(book, text)) {
        return DEPTH_OUT_OF_MEMORY;
    }
    level->hours = book->texts[book->text_count - 1];
    return DEPTH_OK;
}

static enum depth_status add_asks(struct bourse_book *book, const Bourse__V1__BookReply *page)
{
    enum depth_status status = DEPTH_OK;
    for (size_t i = 0; status == DEPTH_OK && i < page->n_asks; i++) {
        struct ask *asks =
            array_with_room(book->asks, book->ask_count, &book->ask_capacity, sizeof *asks);
        if (asks == NULL) {
            return DEPTH_OUT_OF_MEMORY;
        }
        book->asks = asks;
        const Bourse__V1__BookAsk *from = page->asks[i];
        struct ask *ask = &asks[book->ask_count++];
        *ask = (struct ask){
            .level = {.price_micro = from->price_micro, .slots = from->slots, .free = from->free},
            .provider = from->provider};
        (void)snprintf(ask->level.instrument, sizeof ask->level.instrument, "%s", from->instrument);
        status = conditions_of(book, from, &ask->level);
    }
    return status;
}

/* Appends the texts of a page's needs, in the page's order. */
static enum depth_status add_texts(struct bourse_book *book, const Bourse__V1__BookReply *page)
{
    for (size_t i = 0; i < page->n_needs; i++) {
        struct requirement needs;
        char text[NEEDS_TEXT_SIZE];
        if (!codec_requirement_from_wire(page->needs[i]->needs, &needs) ||
            !requirement_text(&needs, text, sizeof text)) {
            return DEPTH_CONTRADICTS;
        }
        if (!add_text(book, text)) {
            return DEPTH_OUT_OF_MEMORY;
        }
    }
    return DEPTH_OK;
}

/* Returns the place of the needs in the page, or n_needs when they are missing. */
static size_t place_numbered(const Bourse__V1__BookReply *page, uint32_t number)
{
    size_t place = 0;
    while (place < page->n_needs && page->needs[place]->number != number) {
        place++;
    }
    return place;
}

static enum depth_status add_bids(struct bourse_book *book, const Bourse__V1__BookReply *page)
{
    size_t first_text = book->text_count;
    enum depth_status status = add_texts(book, page);
    for (size_t i = 0; status == DEPTH_OK && i < page->n_bids; i++) {
        const Bourse__V1__BookBid *from = page->bids[i];
        size_t place = place_numbered(page, from->needs);
        if (place == page->n_needs) {
            return DEPTH_CONTRADICTS;
        }
        struct bourse_bid_level *bids =
            array_with_room(book->bids, book->bid_count, &book->bid_capacity, sizeof *bids);
        if (bids == NULL) {
            return DEPTH_OUT_OF_MEMORY;
        }
        book->bids = bids;
        bids[book->bid_count++] =
            (struct bourse_bid_level){.needs = book->texts[first_text + place],
                                      .rate = names_rate(page->needs[place]->rate),
                                      .limit_micro = from->limit_micro,
                                      .slots = from->slots,
                                      .bids = 1};
    }
    return status;
}

enum depth_status depth_add(struct bourse_book *book, const Bourse__V1__BookReply *page)
{
    const enum depth_status status = add_asks(book, page);
    book->bands = depth_bands(page);
    return status == DEPTH_OK ? add_bids(book, page) : status;
}

/* ---------------------------------------------------------------- levels */

static int compare_numbers(int64_t left, int64_t right)
{
    return (left > right) - (left < right);
}

/* Levels without conditions come before those with conditions. */
static int compare_levels(const struct bourse_ask_level *left, const struct bourse_ask_level *right)
{
    const int orders[] = {strcmp(left->instrument, right->instrument),
                          compare_numbers(left->price_micro, right->price_micro),
                          compare_numbers(left->to, right->to),
                          compare_numbers(right->for_you, left->for_you),
                          strcmp(left->hours, right->hours),
                          compare_numbers(left->daily_ms, right->daily_ms)};
    size_t i = 0;
    while (i + 1 < sizeof orders / sizeof orders[0] && orders[i] == 0) {
        i++;
    }
    return orders[i];
}

static int compare_asks(const void *left, const void *right)
{
    const struct ask *a = left;
    const struct ask *b = right;
    int levels = compare_levels(&a->level, &b->level);
    return levels != 0 ? levels : (a->provider > b->provider) - (a->provider < b->provider);
}

static int compare_bids(const void *left, const void *right)
{
    const struct bourse_bid_level *a = left;
    const struct bourse_bid_level *b = right;
    int needs = strcmp(a->needs, b->needs);
    needs = needs != 0 ? needs : strcmp(a->rate, b->rate);
    return needs != 0 ? needs
                      : (a->limit_micro < b->limit_micro) - (a->limit_micro > b->limit_micro);
}

/* The sorted asks of a level stand together, and those of a provider within the level. */
static void settle_asks(struct bourse_book *book)
{
    for (size_t i = 0; i < book->ask_count; i++) {
        const struct ask *ask = &book->asks[i];
        const struct ask *before = i > 0 ? &book->asks[i - 1] : NULL;
        bool is_new = before == NULL || compare_levels(&before->level, &ask->level) != 0;
        if (is_new) {
            book->levels[book->level_count++] = ask->level;
        } else {
            book->levels[book->level_count - 1].slots += ask->level.slots;
            book->levels[book->level_count - 1].free += ask->level.free;
            book->levels[book->level_count - 1].left_ms += ask->level.left_ms;
        }
        book->levels[book->level_count - 1].providers +=
            is_new || before->provider != ask->provider;
    }
}

static void settle_bids(struct bourse_book *book)
{
    size_t kept = 0;
    for (size_t i = 0; i < book->bid_count; i++) {
        if (kept > 0 && compare_bids(&book->bids[kept - 1], &book->bids[i]) == 0) {
            book->bids[kept - 1].slots += book->bids[i].slots;
            book->bids[kept - 1].bids += book->bids[i].bids;
        } else {
            book->bids[kept++] = book->bids[i];
        }
    }
    book->bid_count = kept;
}

bool depth_settle(struct bourse_book *book)
{
    book->levels = calloc(book->ask_count + 1, sizeof *book->levels);
    if (book->levels == NULL) {
        return false;
    }
    if (book->ask_count > 0) {
        qsort(book->asks, book->ask_count, sizeof *book->asks, compare_asks);
    }
    if (book->bid_count > 0) {
        qsort(book->bids, book->bid_count, sizeof *book->bids, compare_bids);
    }
    settle_asks(book);
    settle_bids(book);
    return true;
}
