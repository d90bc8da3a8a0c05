/* consumer/market/depth.h sums up single orders, which the broker sends in pages, into the levels
 * of the book. The header is not installed, and the code is pure.
 *
 * The broker sends orders one by one and unsorted, so that a page costs the broker little. This
 * code makes the sums, counts the providers and sorts. */
#ifndef BOURSE_CONSUMER_MARKET_DEPTH_H
#define BOURSE_CONSUMER_MARKET_DEPTH_H

#include "consumer/client/bourse.h"
#include "protocol/codec.h"

/* Returns an empty book, or NULL when memory is short. bourse_book_destroy() frees the book. */
struct bourse_book *depth_create(void);

enum depth_status {
    DEPTH_OK,
    DEPTH_OUT_OF_MEMORY,
    DEPTH_CONTRADICTS, /* the page lacks the needs of a bid, or its needs or hours are invalid */
};

/* Reads the bands from a page. */
struct bourse_bands depth_bands(const Bourse__V1__BookReply *page);
/* Adds the orders and the bands of a page. After any other status than OK the book holds a part of
 * the page, and must be destroyed. */
enum depth_status depth_add(struct bourse_book *book, const Bourse__V1__BookReply *page);
/* Sums up the levels. No page may be added afterwards. Returns false when memory is short. */
bool depth_settle(struct bourse_book *book);

#endif
