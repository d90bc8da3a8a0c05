/* Listings answer the reads of the market that every member may make.
 *
 * One answer holds as many rows as fit PAGE_BYTES (page.h). So a long listing takes little of the
 * core's time at once, and pushes few messages out of the session's resend buffer. The functions
 * only read. */
#ifndef BOURSE_BROKER_ANSWER_LISTINGS_H
#define BOURSE_BROKER_ANSWER_LISTINGS_H

#include "broker/answer/figures_board.h"
#include "broker/challenge/challenge_facts.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "exchange/view/feed.h"
#include "protocol/codec.h"

/* The sources of a listing of devices beside the exchange. */
struct listings_sources {
    const struct figures_board *figures;
    int64_t now_ns; /* of a monotonic clock: the age of figures */
    const struct challenge_facts *challenges;
    int64_t log_ns; /* log time: the age of challenges */
};

/* Each listing below returns the answer, or NULL when memory is short. */
struct outgoing *listings_devices(const struct exchange *exchange,
                                  const struct listings_sources *sources,
                                  const struct request *request);
struct outgoing *listings_providers(const struct exchange *exchange, const struct request *request);
struct outgoing *listings_book(const struct exchange *exchange, const struct request *request);
/* Lists the asker's own orders. */
struct outgoing *listings_orders(const struct exchange *exchange, const struct request *request);
/* Lists bars of the exchange's feed. */
struct outgoing *listings_prices(const struct exchange *exchange, const struct request *request);
/* Fills the wire form of a bar. `instrument` must live as long as `ret_wire`. */
void listings_bar(const struct exchange_bar *bar, char *instrument,
                  Bourse__V1__MarketBar *ret_wire);
/* Returns the word for an enum provider_state. */
const char *listings_provider_state(uint8_t state);

#endif
