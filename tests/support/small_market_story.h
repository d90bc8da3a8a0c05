/* tests/support/small_market_story.h tells what happens after the end of the small market, for
 * tests of the audit. Jobs wait, get leases of the device that has none yet, and have results.
 * Records are only as true as the caller makes them. */
#ifndef BOURSE_TESTS_SMALL_MARKET_STORY_H
#define BOURSE_TESTS_SMALL_MARKET_STORY_H

#include "base/rate.h"
#include "tests/support/small_market_writer.h"

enum { STORY_SUBTASKS = 3, STORY_TERM_MS = 1000 };
#define STORY_BUDGET INT64_C(10000000)
/* The busy time of a result; the price is a micro-credit per microsecond, or half of it. */
#define STORY_BUSY_NS INT64_C(1000000)

/* A job of one slot a subtask, for any device. */
struct story_job {
    const char *name;
    const struct identity *owner;
    uint32_t account;
    int64_t cap_micro;
    enum rate rate; /* the cap is the value of a unit of this work */
    bool has_checkpoints;
    struct id128 id; /* story_submit fills it in */
};
/* Adds the command, and the records of job, hold and bid. Nothing is committed. */
void story_submit(struct writer_state *state, struct story_job *job);
void story_hold(struct writer_state *state, const struct story_job *job, int64_t amount_micro);
struct ledger_record *story_bid(struct writer_state *state, const struct story_job *job,
                                uint32_t slots, int64_t limit_micro);
void story_fill(struct writer_state *state, const struct story_job *job, uint64_t lease,
                uint32_t slots, int64_t price_micro);

/* A result of subtask 0. */
struct story_result {
    const struct story_job *job;
    uint64_t lease;
    uint32_t attempt;
    uint8_t outcome, status;
    int64_t price_micro; /* the lease's price */
    Bourse__V1__Saved *saved;
    bool is_missing; /* the broker found an output missing before it sequenced the batch */
};
/* Puts these rules in force from here on. */
void story_rules(struct writer_state *state, uint32_t rules);
/* Writes a batch of one result, and what is paid for it, and commits. */
void story_settle(struct writer_state *state, const struct story_result *result);

#endif
