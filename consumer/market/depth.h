/* consumer/market/depth.h sums up pages of single orders into the levels of the book. The header is
 * not installed, and the code is pure.
 *
 * The broker sends orders one by one and unsorted, so that a page costs it little. This code makes
 * the sums, counts the providers and sorts. */
#ifndef BOURSE_CONSUMER_MARKET_DEPTH_H
#define BOURSE_CONSUMER_MARKET_DEPTH_H

#include "consumer/client/bourse.h"
#include "protocol/codec.h"

struct bourse_book *depth_create(void); /* NULL: memory is short; bourse_book_destroy frees it */
enum depth_status {
    DEPTH_OK,
    DEPTH_OUT_OF_MEMORY,
    DEPTH_CONTRADICTS, /* the page lacks a bid's needs, or they are invalid */
};
/* Reads the bands from a page. */
struct bourse_bands depth_bands(const Bourse__V1__BookReply *page);
enum depth_status depth_add(struct bourse_book *book, const Bourse__V1__BookReply *page);
/* Sums up the levels; no page may follow. Returns false when memory is short. */
bool depth_settle(struct bourse_book *book);

#endif
