/* consumer/market/depth.h - the book as people read it: pages of single orders summed up by level.
 * Not installed. Pure.
 *
 * The broker tells orders one by one and in no order, so that one page costs it little; sums,
 * counts of different providers and the sorting are made here. */
#ifndef BOURSE_CONSUMER_MARKET_DEPTH_H
#define BOURSE_CONSUMER_MARKET_DEPTH_H

#include "consumer/client/bourse.h"
#include "protocol/codec.h"

struct bourse_book *depth_create(void); /* NULL when out of memory; bourse_book_destroy frees it */
enum depth_status {
    DEPTH_OK,
    DEPTH_OUT_OF_MEMORY,
    DEPTH_CONTRADICTS, /* a bid whose needs the page does not tell, or needs that are none */
};
/* Takes one page. Any status but OK leaves a book that is good for bourse_book_destroy only. */
struct bourse_bands depth_bands(const Bourse__V1__BookReply *page);
enum depth_status depth_add(struct bourse_book *book, const Bourse__V1__BookReply *page);
/* Sums up; after it nothing more is added. False when out of memory. */
bool depth_settle(struct bourse_book *book);

#endif
