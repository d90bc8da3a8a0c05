/* A settled result is paid for its slot-time, from the reserve of its lease. */
#ifndef BOURSE_EXCHANGE_WORK_PAYMENT_H
#define BOURSE_EXCHANGE_WORK_PAYMENT_H

#include "exchange/state/records.h"

/* A settlement says what a result is paid, and which check stands behind that. */
struct settlement {
    uint32_t index, attempt;
    uint8_t outcome, status;
    struct hash32 hash;
    const uint8_t *bytes; /* alive as long as the effects */
    uint32_t length;
    uint64_t batch_index;
    uint32_t position;
    int64_t paid_ns; /* slot-time */
    uint8_t level;
    struct hash32 check;
};

/* Returns the slot-time to pay: the claim, within the unpaid time seen of its lane. An attempt that
 * an outage of the broker met is paid within the lane's time of the outage, too. */
int64_t payment_time(const struct exchange *exchange, struct lease *lease,
                     const struct attempt *attempt, int64_t busy_ns);
void payment_settle(struct exchange *exchange, struct lease *lease,
                    const struct settlement *settlement);

#endif
