/* broker/answer/follow.h - the market as it changes, for sessions that follow it: one answer for
 * each request, which waits until there is something to tell.
 *
 * A follower that does not ask is told nothing, so one that is slow, or never reads, costs others
 * nothing: at most one answer to it is under way, and what changed meanwhile is summed up for its
 * next request. What is kept for all of them is the exchange's feed, and for one that waits a place
 * here. The core's own; no thread but one. */
#ifndef BOURSE_BROKER_ANSWER_FOLLOW_H
#define BOURSE_BROKER_ANSWER_FOLLOW_H

#include "broker/core/messages.h"
#include "exchange/exchange.h"

enum { FOLLOW_WAITING_MAX = 1024 };
/* Who waits hears of changes this long after the first: of those of a busy market in one answer. */
#define FOLLOW_INTERVAL_NS (20 * INT64_C(1000000))

struct follow;

/* `feed`: a number that no follower of another broker, or of this one before it was started, gives
 * back. The exchange has a feed. NULL when out of memory. */
struct follow *follow_create(uint64_t feed);
void follow_destroy(struct follow **self);

/* The answer to a MarketRequest; NULL: it comes later, from follow_next. One session has one
 * request waiting: a second takes the place of the first, which is answered as it stands by
 * *ret_former (else NULL). `now_ns` is of a monotonic clock. */
struct outgoing *follow_answer(struct follow *follow, const struct exchange *exchange,
                               const struct request *request, int64_t now_ns,
                               struct outgoing **ret_former);
void follow_forget(struct follow *follow, uint64_t session);

/* A command was applied. */
void follow_notice(struct follow *follow, const struct exchange *exchange, int64_t now_ns);
/* When follow_next has something to do; INT64_MAX: not before something happens. */
int64_t follow_due_ns(const struct follow *follow);
/* The next answer that is due; NULL: there is none. */
struct outgoing *follow_next(struct follow *follow, const struct exchange *exchange,
                             int64_t now_ns);

#endif
