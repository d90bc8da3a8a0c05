/* A daily bound limits the slot-time that the leases of a device use on one day.
 *
 * The calls do nothing unless an ask has bounded the device. */
#ifndef BOURSE_EXCHANGE_MARKET_DAILY_H
#define BOURSE_EXCHANGE_MARKET_DAILY_H

#include "exchange/state/records.h"

/* Returns the provider of an account that has one. */
struct provider *daily_provider(const struct exchange *exchange, uint32_t number);
/* Returns the provider's record of the device's days; NULL: none. */
struct day_use *daily_find(const struct provider *provider, const struct id128 *device);
/* Returns the device of the record; NULL: it is gone. */
struct device *daily_device(const struct exchange *exchange, const struct provider *provider,
                            const struct day_use *use);
/* Drops the oldest record whose day is over and whose device is gone. Returns false when there is
 * none. */
bool daily_forget_one(struct exchange *exchange, struct provider *provider);
void daily_put(struct provider *provider, struct day_use *use); /* after a snapshot */
void daily_destroy(struct provider *provider);
/* Finds again the use of a device that came or returned. */
void daily_recall(struct exchange *exchange, struct device *device);
int64_t daily_used_ns(const struct exchange *exchange, const struct device *device); /* today */
/* Returns slot-time that the device may still promise today; INT64_MAX: any. */
int64_t daily_left_ns(const struct exchange *exchange, const struct ask *ask);
/* Returns the slots that today's rest allows for the ask's longest term. */
uint32_t daily_slots(const struct exchange *exchange, const struct ask *ask);
bool daily_is_spent(const struct exchange *exchange, const struct ask *ask); /* no slot is left */

#endif
