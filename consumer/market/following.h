/* consumer/market/following.h - the book of who follows the market, put together from what the
 * broker tells. Not installed. Pure.
 *
 * Between two requests it stands between two moments of the market, until it is whole. */
#ifndef BOURSE_CONSUMER_MARKET_FOLLOWING_H
#define BOURSE_CONSUMER_MARKET_FOLLOWING_H

#include "consumer/client/bourse.h"
#include "protocol/codec.h"

enum { FOLLOWING_LEVELS_MAX = 1 << 20 };

struct following;

enum following_status {
    FOLLOWING_WHOLE,         /* following_news tells what is new */
    FOLLOWING_MORE,          /* ask on, without a wait */
    FOLLOWING_OUT_OF_MEMORY, /* it is good for following_destroy only */
    FOLLOWING_CONTRADICTS,   /* what came does not follow on what was there: likewise */
};

struct following *following_create(void); /* NULL when out of memory */
void following_destroy(struct following **self);
/* The next request, but for how long it waits. */
void following_ask(const struct following *following, Bourse__V1__MarketRequest *ret_request);
enum following_status following_take(struct following *following,
                                     const Bourse__V1__MarketReply *reply);
/* All since the last time; good until the next following_take. Only when it is whole. */
void following_news(struct following *following, struct bourse_news *ret_news);

#endif
