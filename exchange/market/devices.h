/* A device has slots, of which its ask offers those that are free. */
#ifndef BOURSE_EXCHANGE_MARKET_DEVICES_H
#define BOURSE_EXCHANGE_MARKET_DEVICES_H

#include "exchange/state/records.h"

/* Returns the free slots: none outside the ask's hours, and no more than the day has left. */
uint32_t device_free_slots(const struct exchange *exchange, const struct ask *ask);
/* Counts the free slots of the device's ask again, and queues the ask when they grew. */
void device_slots_changed(struct exchange *exchange, struct device *device);
void device_drop_if_gone(struct exchange *exchange, struct device *device);

#endif
