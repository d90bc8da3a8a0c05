/* broker/answer/listings.h - answers to the reads of the market that every member may make: the
 * exchange's listings as messages.
 *
 * One answer holds as many rows as fit LISTING_BYTES, so that a reader of everything takes little
 * of the core at a time and drives nothing else out of what its session keeps. Changes nothing. */
#ifndef BOURSE_BROKER_ANSWER_LISTINGS_H
#define BOURSE_BROKER_ANSWER_LISTINGS_H

#include "broker/core/messages.h"
#include "exchange/view/feed.h"
#include "protocol/codec.h"

enum { LISTING_BYTES = 256 << 10 };

/* Each NULL when out of memory. */
struct outgoing *listings_devices(const struct exchange *exchange, const struct request *request);
struct outgoing *listings_providers(const struct exchange *exchange, const struct request *request);
struct outgoing *listings_book(const struct exchange *exchange, const struct request *request);
/* Of the asker's own orders. */
struct outgoing *listings_orders(const struct exchange *exchange, const struct request *request);
/* Bars of the exchange's feed. */
struct outgoing *listings_prices(const struct exchange *exchange, const struct request *request);
/* `instrument` is kept as long as the wire form. */
void listings_bar(const struct exchange_bar *bar, char *instrument,
                  Bourse__V1__MarketBar *ret_wire);
/* enum provider_state in a word. */
const char *listings_provider_state(uint8_t state);

#endif
