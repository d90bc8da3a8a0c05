/* tests/support/hand_market.h drives an exchange by hand: a consumer, two providers, an operator.
 *
 * One market per test, in `market`; set_up and tear_down are its fixture. Each helper makes a
 * command at market.now_ns and applies it. market.effects has the effects of the last command. */
#ifndef BOURSE_TESTS_HAND_MARKET_H
#define BOURSE_TESTS_HAND_MARKET_H

#include "base/checked.h"
#include "exchange/exchange.h"
#include "ledger/accounts.h"
#include "protocol/reject.h"

enum { CONSUMER = 3, PROVIDER = 4, OTHER_PROVIDER = 5, OPERATOR = 6 };

static const int64_t start_ns = INT64_C(1700000000) * NS_PER_S;
static const int64_t price = 3600 * MICRO_PER_CREDIT; /* one credit a second makes sums easy */

struct market {
    struct exchange *exchange;
    struct exchange_effects effects;
    int64_t now_ns;
    uint64_t index;
    uint32_t next_id;
};
extern struct market market;
extern struct requirement anything; /* a requirement without a predicate */

/* Makes a market with these limits, and accounts from number 3 on. */
void open_market_of(const struct exchange_limits *limits, int64_t price_band_micro,
                    const struct exchange_genesis_account *accounts, size_t count);
void set_up(void);
void set_up_now(void); /* with the rules of now, which set_up leaves unset */
void set_rules(uint32_t rules);
void set_up_with(uint32_t leases, uint32_t attempts, uint32_t classes); /* with these limits */
void tear_down(void);

/* Returns a command of the next index, now, under a fresh id. */
struct exchange_command command(enum exchange_command_type type, uint32_t account);
void apply(const struct exchange_command *given);
void tick(void); /* applies what is due by now */

size_t count_of(enum exchange_effect_type type);
/* NULL: there are fewer */
const struct exchange_effect *nth(enum exchange_effect_type type, size_t n);
/* the first such record */
const struct ledger_record *record_of(enum ledger_kind kind);
uint32_t granted_to(struct id128 job); /* slots granted by the last command */
/* Fails unless the last command was refused with `code`, and changed nothing. */
void check_rejected(enum reject_code code);

/* Fails unless the state hash kept up to date is what a full walk finds. */
void check_hash(void);
/* Goes on from the market's own snapshot, which must have the same hash. */
void reload(void);

struct account_balance balance(uint32_t account);
/* false: no account has the key */
bool account_with(const struct key32 *key, uint32_t *ret_number);
struct exchange_job_row job_row(struct id128 job);
int64_t left_of(struct id128 job); /* the time left, as of now */

/* Offers one device of `slots`, with an ask for all of them. */
void offer(uint32_t provider, uint32_t slots, int64_t at_price);
void offer_on(uint32_t provider, uint32_t slots, int64_t at_price,
              const struct exchange_terms *terms);
struct exchange_command submit_of(uint32_t subtasks, int64_t budget_credits);
struct id128 submit(uint32_t subtasks, int64_t budget_credits);
void result_on(uint32_t provider, struct id128 device, struct id128 job, struct exchange_work work,
               uint8_t outcome, int64_t busy_ns);
/* Sends a result from the device of `offer`. */
void result(uint32_t provider, struct id128 job, struct exchange_work work, uint8_t outcome,
            int64_t busy_ns);
/* Applies SUSPECT, RETURNED or GOODBYE. */
void presence(enum exchange_command_type type, uint32_t provider);

#endif
