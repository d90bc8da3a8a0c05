/* tests/support/small_market_story.h - what tests of the audit tell after the end of the small
 * market. Jobs wait, get leases of the device that has none yet, and have results. Nothing is true
 * but what the caller makes so. */
#ifndef BOURSE_TESTS_SMALL_MARKET_STORY_H
#define BOURSE_TESTS_SMALL_MARKET_STORY_H

#include "base/rate.h"
#include "tests/support/small_market_writer.h"

enum { STORY_SUBTASKS = 3, STORY_TERM_MS = 1000 };
#define STORY_BUDGET INT64_C(10000000)
#define STORY_BUSY_NS                                                                              \
    INT64_C(1000000) /* of a result; the price is a micro-credit per microsecond, or half of it */

struct story_job { /* of one slot a subtask, for any device */
    const char *name;
    const struct identity *owner;
    uint32_t account;
    int64_t cap_micro;
    enum rate rate; /* the cap is the value of a unit of that work */
    bool has_checkpoints;
    struct id128 id; /* story_submit fills it in */
};
/* The command, and the records of job, hold and bid; not committed. */
void story_submit(struct writer_state *state, struct story_job *job);
void story_hold(struct writer_state *state, const struct story_job *job, int64_t amount_micro);
struct ledger_record *story_bid(struct writer_state *state, const struct story_job *job,
                                uint32_t slots, int64_t limit_micro);
void story_fill(struct writer_state *state, const struct story_job *job, uint64_t lease,
                uint32_t slots, int64_t price_micro);

struct story_result { /* of subtask 0 */
    const struct story_job *job;
    uint64_t lease;
    uint32_t attempt;
    uint8_t outcome, status;
    int64_t price_micro; /* of the lease */
    Bourse__V1__Saved *saved;
    bool is_missing; /* so the broker found before it sequenced the batch */
};
/* These rules are in force from here on. */
void story_rules(struct writer_state *state, uint32_t rules);
/* A batch of one, and what it is paid; committed. */
void story_settle(struct writer_state *state, const struct story_result *result);

#endif
