/* provider/session/network_rule.h counts the bytes that jobs bring and take over the network, and
 * says when the next ones may go (`network:` of the config).
 *
 * The rate is a bucket of tokens that holds what one second gives. Bytes may go while the bucket is
 * not empty; a piece larger than the rest leaves a debt, for which the next piece waits. The count
 * of a month is that of UTC, and begins anew with the next month. Time comes in as an argument. */
#ifndef BOURSE_PROVIDER_SESSION_NETWORK_RULE_H
#define BOURSE_PROVIDER_SESSION_NETWORK_RULE_H

#include <stdbool.h>
#include <stdint.h>

/* The owner says here how much of the network jobs may use; 0: any. */
struct network_terms {
    int64_t rate_bytes;  /* a second, of both directions together */
    int64_t month_bytes; /* a month, likewise */
};

struct network_rule {
    struct network_terms terms;
    int64_t free_ns;    /* time at which the bucket is empty no more; 0: it is full */
    int32_t month;      /* as network_rule_month has it */
    int64_t used_bytes; /* in that month */
};

/* Returns the number of a month, 12 for each year, of a moment of the wall clock. */
int32_t network_rule_month(int64_t wall_ms);
/* `month` and `used_bytes` are what was counted before. */
void network_rule_init(struct network_rule *rule, const struct network_terms *terms, int32_t month,
                       int64_t used_bytes);
/* The owner changed the terms. The month's count stays. */
void network_rule_change(struct network_rule *rule, const struct network_terms *terms);
/* Counts bytes that went, and returns for how long the next ones wait. A wall clock that goes back
 * begins no month anew. */
int64_t network_rule_count(struct network_rule *rule, int64_t now_ns, int64_t wall_ms,
                           int64_t bytes);
/* Returns true when the month's bytes are used up. */
bool network_rule_is_spent(const struct network_rule *rule, int64_t wall_ms);

#endif
