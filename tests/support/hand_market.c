#include "tests/support/hand_market.h"

#include "protocol/message.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

struct market market;

struct exchange_command command(enum exchange_command_type type, uint32_t account)
{
    struct exchange_command made;
    memset(&made, 0, sizeof made);
    made.type = type;
    made.index = market.index + 1;
    made.log_time_ns = market.now_ns;
    made.account = account;
    market.next_id++;
    memcpy(made.id.bytes, &market.next_id, sizeof market.next_id);
    made.created_ms = market.now_ns / NS_PER_MS;
    return made;
}

void apply(const struct exchange_command *given)
{
    exchange_effects_clear(&market.effects);
    ck_assert_int_eq(exchange_step(market.exchange, given, &market.effects), EXCHANGE_OK);
    market.index = given->index;
}

void tick(void)
{
    struct exchange_command made = command(EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    apply(&made);
}

size_t count_of(enum exchange_effect_type type)
{
    size_t count = 0;
    for (size_t i = 0; i < market.effects.count; i++) {
        count += market.effects.items[i].type == type;
    }
    return count;
}

const struct exchange_effect *nth(enum exchange_effect_type type, size_t n)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        if (market.effects.items[i].type == type && n-- == 0) {
            return &market.effects.items[i];
        }
    }
    return NULL;
}

const struct ledger_record *record_of(enum ledger_kind kind)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        if (effect->type == EFFECT_LEDGER && effect->ledger.kind == kind) {
            return &effect->ledger;
        }
    }
    return NULL;
}

uint32_t granted_to(struct id128 job)
{
    uint32_t slots = 0;
    for (size_t i = 0; nth(EFFECT_LEASE_GRANT, i) != NULL; i++) {
        const struct exchange_grant *grant = &nth(EFFECT_LEASE_GRANT, i)->grant;
        slots += id128_equal(&grant->job, &job) ? grant->slots : 0;
    }
    return slots;
}

void check_rejected(enum reject_code code)
{
    const struct exchange_effect *effect = nth(EFFECT_REJECT, 0);
    ck_assert_msg(effect != NULL, "nothing was refused");
    ck_assert_str_eq(reject_name((enum reject_code)effect->reject.code), reject_name(code));
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 0);
    ck_assert_uint_eq(count_of(EFFECT_LEDGER), 0);
}

void check_hash(void)
{
    struct hash32 hash = exchange_state_hash(market.exchange);
    struct hash32 walked = exchange_state_hash_walk(market.exchange);
    ck_assert(hash32_equal(&hash, &walked));
}

void reload(void)
{
    const struct exchange_limits limits = exchange_limits_now(market.exchange);
    const struct hash32 before = exchange_state_hash(market.exchange);
    size_t length;
    uint8_t *bytes = exchange_save(market.exchange, &length);
    ck_assert_ptr_nonnull(bytes);
    exchange_destroy(&market.exchange);
    market.exchange = exchange_load(&limits, bytes, length);
    ck_assert_ptr_nonnull(market.exchange);
    free(bytes);
    const struct hash32 after = exchange_state_hash(market.exchange);
    ck_assert(hash32_equal(&before, &after));
    check_hash();
}

struct account_balance balance(uint32_t account)
{
    struct exchange_account_row row;
    ck_assert(exchange_account(market.exchange, account, &row));
    return (struct account_balance){row.available_micro, row.held_micro};
}

bool account_with(const struct key32 *key, uint32_t *ret_number)
{
    for (uint32_t number = 0; number < exchange_account_count(market.exchange); number++) {
        struct exchange_account_row row;
        if (exchange_account(market.exchange, number, &row) && key32_equal(&row.key, key)) {
            *ret_number = number;
            return true;
        }
    }
    return false;
}

struct exchange_job_row job_row(struct id128 job)
{
    struct exchange_job_row row;
    ck_assert(exchange_job(market.exchange, &job, &row));
    return row;
}

int64_t left_of(struct id128 job)
{
    return exchange_job_left_ns(market.exchange, &job, market.now_ns);
}

void open_market_of(const struct exchange_limits *limits, int64_t price_band_micro,
                    const struct exchange_genesis_account *accounts, size_t count)
{
    memset(&market, 0, sizeof market);
    market.exchange = exchange_create(limits);
    market.now_ns = start_ns;
    struct exchange_command genesis = command(EXCHANGE_GENESIS, EXCHANGE_NO_ACCOUNT);
    genesis.genesis = (struct exchange_genesis){.cluster = {{7}},
                                                .price_band_micro = price_band_micro,
                                                .accounts = accounts,
                                                .account_count = count};
    apply(&genesis);
}

void set_up_with(uint32_t leases, uint32_t attempts, uint32_t classes)
{
    struct exchange_limits limits = exchange_limits_default();
    limits.asks = limits.jobs = 64;
    limits.leases = leases;
    limits.attempts = attempts;
    limits.classes = limits.classes_per_account = classes;
    limits.cells_per_account = 2;
    limits.cells = 64;
    const struct exchange_genesis_account accounts[] = {
        {.key = {{1}},
         .roles = ROLE_CONSUMER,
         .credits_micro = 1000 * MICRO_PER_CREDIT,
         .name = "consumer"},
        {.key = {{2}}, .roles = ROLE_PROVIDER, .name = "provider"},
        {.key = {{3}}, .roles = ROLE_PROVIDER, .name = "other"},
        {.key = {{4}}, .roles = ROLE_OPERATOR, .name = "operator"},
    };
    open_market_of(&limits, 10 * price, accounts, sizeof accounts / sizeof *accounts);
}

void set_up(void)
{
    set_up_with(64, 4096, 1);
}

void set_rules(uint32_t rules)
{
    struct exchange_command set = command(EXCHANGE_LIMITS, EXCHANGE_NO_ACCOUNT);
    set.set_limits = (struct exchange_set_limits){.rules = rules,
                                                  .limits = exchange_limits_now(market.exchange)};
    apply(&set);
}

void set_up_now(void)
{
    set_up();
    set_rules(EXCHANGE_RULES);
}

void tear_down(void)
{
    exchange_destroy(&market.exchange);
    exchange_effects_fini(&market.effects);
}

void offer(uint32_t provider, uint32_t slots, int64_t at_price)
{
    offer_on(provider, slots, at_price, &(struct exchange_terms){0});
}

void offer_on(uint32_t provider, uint32_t slots, int64_t at_price,
              const struct exchange_terms *terms)
{
    static struct attribute kind = {.name = "kind", .is_text = true, .text = "cpu"};
    struct exchange_device device = {.device = {{(uint8_t)provider}},
                                     .slots = slots,
                                     .attributes = &kind,
                                     .attribute_count = 1,
                                     .label = "a cpu"};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, provider);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct exchange_command ask = command(EXCHANGE_ASK, provider);
    ask.ask = (struct exchange_ask){
        .device = device.device, .slots = slots, .price_micro = at_price, .terms = *terms};
    apply(&ask);
}

struct requirement anything;

struct exchange_command submit_of(uint32_t subtasks, int64_t budget_credits)
{
    struct exchange_command made = command(EXCHANGE_SUBMIT, CONSUMER);
    made.submit = (struct exchange_submit){
        .name = "job",
        .manifest = {{9}},
        .subtasks = subtasks,
        .budget_micro = budget_credits * MICRO_PER_CREDIT,
        .cap_micro = price,
        .needs = &anything,
        .slots = 1,
        .limit_ns = 10 * NS_PER_S,
        .term_ns = 20 * NS_PER_S,
        .error_limit = 10,
        .crash_limit = EXCHANGE_CRASH_LIMIT,
        .verify = EXCHANGE_VERIFY_NONE,
    };
    return made;
}

struct id128 submit(uint32_t subtasks, int64_t budget_credits)
{
    struct exchange_command made = submit_of(subtasks, budget_credits);
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

void result_on(uint32_t provider, struct id128 device, struct id128 job, struct exchange_work work,
               uint8_t outcome, int64_t busy_ns)
{
    struct exchange_result one = {
        .job = job,
        .index = work.index,
        .attempt = work.attempt,
        .lease = work.lease,
        .device = device,
        .manifest = {{9}},
        .outcome = outcome,
        .busy_ns = busy_ns,
    };
    struct exchange_command results = command(EXCHANGE_RESULTS, provider);
    results.results = (struct exchange_results){.results = &one, .count = 1};
    apply(&results);
}

void result(uint32_t provider, struct id128 job, struct exchange_work work, uint8_t outcome,
            int64_t busy_ns)
{
    result_on(provider, (struct id128){{(uint8_t)provider}}, job, work, outcome, busy_ns);
}

void presence(enum exchange_command_type type, uint32_t provider)
{
    struct exchange_command made = command(type, EXCHANGE_NO_ACCOUNT);
    made.provider = provider;
    apply(&made);
}
