/* A page holds the wire forms of rows, and everything that the forms point to. The encoded rows
 * have at most PAGE_BYTES bytes together. */
#ifndef BOURSE_BROKER_ANSWER_PAGE_H
#define BOURSE_BROKER_ANSWER_PAGE_H

#include "broker/challenge/challenge_facts.h"
#include "broker/core/arena.h"
#include "exchange/exchange.h"
#include "protocol/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAGE_BYTES = 256 << 10 };

struct page {
    const struct exchange *exchange;
    const struct challenge_facts *facts; /* of a page of devices */
    int64_t log_ns;
    struct arena arena;
    void **rows; /* the reply's repeated field; at most `limit` rows */
    size_t count, limit;
    size_t bytes;
    bool is_out_of_memory;
};

/* Starts a page of at most `limit` rows. Returns false when memory is short.
 * arena_fini(&page->arena) frees the page. */
bool page_of(struct page *page, const struct exchange *exchange, size_t limit);
/* Starts a page for a request, which may have a limit of its own below LIMIT_ROWS. */
bool page_open(struct page *page, const struct exchange *exchange, bool has_limit, uint32_t limit);
/* Adds a row, whose memory comes from page_take. Returns false when the page is full or memory is
 * short; then the walk ends too. */
bool page_add(struct page *page, ProtobufCMessage *row);
/* Returns zeroed memory that lives as long as the page, or NULL when memory is short. */
void *page_take(struct page *page, size_t count, size_t size);

#endif
