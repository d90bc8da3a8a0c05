/* consumer/market/following.h keeps the book of a program that follows the market, from the
 * broker's news. The header is not installed, and the code is pure.
 *
 * Between two requests the book may mix two moments of the market, until the book is whole. */
#ifndef BOURSE_CONSUMER_MARKET_FOLLOWING_H
#define BOURSE_CONSUMER_MARKET_FOLLOWING_H

#include "consumer/client/bourse.h"
#include "protocol/codec.h"

enum { FOLLOWING_LEVELS_MAX = 1 << 21 };

struct following;

enum following_status {
    FOLLOWING_WHOLE,         /* following_news has the news */
    FOLLOWING_MORE,          /* ask again, without a wait */
    FOLLOWING_OUT_OF_MEMORY, /* call only following_destroy */
    FOLLOWING_CONTRADICTS,   /* the news does not fit the book: call only following_destroy */
};

struct following *following_create(void); /* NULL: memory is short */
void following_destroy(struct following **self);
/* Fills the next request; the caller sets how long to wait. */
void following_ask(const struct following *following, Bourse__V1__MarketRequest *ret_request);
enum following_status following_take(struct following *following,
                                     const Bourse__V1__MarketReply *reply);
/* Returns all news since the last call, valid until the next following_take. The book must be
 * whole. */
void following_news(struct following *following, struct bourse_news *ret_news);

#endif
