/* broker/listings.h - answers to the reads of the market that every member may make: the exchange's listings as
 * messages.
 *
 * One answer holds as many rows as fit LISTING_BYTES, so that a reader of everything takes little of the core at a time
 * and drives nothing else out of what its session keeps. Changes nothing. */
#ifndef BOURSE_BROKER_LISTINGS_H
#define BOURSE_BROKER_LISTINGS_H

#include "broker/messages.h"
#include "exchange/exchange.h"

enum { LISTING_BYTES = 256 << 10 };

/* Each NULL when out of memory. */
struct outgoing *listings_devices(const struct exchange *exchange, const struct request *request);
struct outgoing *listings_providers(const struct exchange *exchange, const struct request *request);
struct outgoing *listings_book(const struct exchange *exchange, const struct request *request);
/* Of the asker's own orders. */
struct outgoing *listings_orders(const struct exchange *exchange, const struct request *request);

#endif
