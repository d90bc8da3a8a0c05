/* broker/answer/follow.h tells sessions about changes of the market, with one answer to each
 * request.
 *
 * An answer waits until there is something to tell. A follower that does not ask gets nothing, so a
 * slow one costs others nothing. At most one answer to a follower is under way. Its next answer
 * sums up later changes. All followers share the exchange's feed. Only a waiting follower has an
 * entry here. Only the core's thread calls these functions. */
#ifndef BOURSE_BROKER_ANSWER_FOLLOW_H
#define BOURSE_BROKER_ANSWER_FOLLOW_H

#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "exchange/exchange.h"

enum { FOLLOW_WAITING_MAX = 1024 };
/* A waiting follower gets its answer this long after the first change, so one answer carries many
 * changes of a busy market. */
#define FOLLOW_INTERVAL_NS (20 * INT64_C(1000000))

struct follow;

/* Creates the followers of an exchange that has a feed. `feed` is a random number that followers
 * give back. Another broker and another start have another number. Returns NULL when memory is
 * short. */
struct follow *follow_create(uint64_t feed);
void follow_destroy(struct follow **self);

/* Returns the answer to a MarketRequest, or NULL when follow_next makes it later. A session has one
 * waiting request: a second one replaces it, and *ret_former (else NULL) answers the first.
 * `now_ns` is the time of a monotonic clock. */
struct outgoing *follow_answer(struct follow *follow, const struct exchange *exchange,
                               const struct request *request, int64_t now_ns,
                               struct outgoing **ret_former);
void follow_forget(struct follow *follow, uint64_t session);

/* Notes that a command was applied. */
void follow_notice(struct follow *follow, const struct exchange *exchange, int64_t now_ns);
/* Returns the time of the next work for follow_next, or INT64_MAX when it has none. */
int64_t follow_due_ns(const struct follow *follow);
/* Returns the next answer that is due, or NULL when there is none. */
struct outgoing *follow_next(struct follow *follow, const struct exchange *exchange,
                             int64_t now_ns);

#endif
