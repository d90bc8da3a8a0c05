/* broker/gateway/allowance.h - how many messages somebody may send: so many a second, bursts of
 * twice that, and one refusal a second for what is above. Time is an argument.
 *
 * Allowances by account bound an account over all its connections; they are made when first asked
 * for. */
#ifndef BOURSE_BROKER_GATEWAY_ALLOWANCE_H
#define BOURSE_BROKER_GATEWAY_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

struct allowance { /* all zeros: full */
    bool is_begun;
    int64_t thousandths; /* of a message */
    int64_t filled_ns;
    int64_t told_ns; /* when the last refusal was due; 0: never */
};

/* True when one message more is allowed; or `count` of whatever the rate counts, where that is not
 * messages. */
bool allowance_take(struct allowance *allowance, uint32_t rate, int64_t now_ns);
bool allowance_take_many(struct allowance *allowance, uint32_t rate, uint32_t count,
                         int64_t now_ns);
/* True when the refusal of a message may be sent: once a second. */
bool allowance_tell(struct allowance *allowance, int64_t now_ns);

struct allowances { /* by account number; all zeros: none yet */
    struct allowance *items;
    uint32_t count;
};

void allowances_fini(struct allowances *allowances);
/* The account's; NULL when out of memory. Valid until the next call. */
struct allowance *allowances_of(struct allowances *allowances, uint32_t account);

#endif
