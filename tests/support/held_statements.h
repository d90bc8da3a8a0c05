/* tests/support/held_statements.h says to the market by hand what a provider holds, and lets it
 * fall silent. */
#ifndef BOURSE_TESTS_SUPPORT_HELD_STATEMENTS_H
#define BOURSE_TESTS_SUPPORT_HELD_STATEMENTS_H

#include "exchange/state/records.h"
#include "tests/support/hand_market.h"

static inline void suspect(uint32_t provider)
{
    presence(EXCHANGE_SUSPECT, provider);
}

/* `provider` says that it holds `count` of these, having seen all up to `as_of_ns`. */
static inline void state(uint32_t provider, const struct exchange_held *held, size_t count,
                         int64_t as_of_ns)
{
    struct exchange_command statement = command(EXCHANGE_STATEMENT, provider);
    statement.statement =
        (struct exchange_statement){.held = held, .count = count, .as_of_ns = as_of_ns};
    apply(&statement);
}

static inline struct exchange_held held_of(struct exchange_work work)
{
    return (struct exchange_held){work.lease, work.index, work.attempt};
}

#endif
