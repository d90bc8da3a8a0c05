/* tests/support/known_market.h makes random books that the test knows, too: offers, wishes of jobs,
 * and a state to come back to. One program includes it once. */
#ifndef BOURSE_TESTS_SUPPORT_KNOWN_MARKET_H
#define BOURSE_TESTS_SUPPORT_KNOWN_MARKET_H

#include "base/random.h"
#include "formats/requirement.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 100, BOOKS = 10, JOBS = 12, RIVAL = 7, TERMS = 4, DEVICES_MOST = 30, CLAUSES = 4 };
#define GIB (INT64_C(1) << 30)
#define TERA INT64_C(1000000000000)

static const int64_t terms_ns[TERMS] = {20 * NS_PER_S, 40 * NS_PER_S, 90 * NS_PER_S,
                                        600 * NS_PER_S};

/* The book as this test knows it. */
struct known_device {
    uint32_t owner, slots, asked;
    struct attribute attributes[6]; /* sorted by name */
    size_t count;
    int64_t price_micro, max_term_ns;
};
struct known_job {
    struct id128 id;
    struct requirement needs;
    uint32_t slots, at_most;
    int64_t limit_micro;
    enum rate rate; /* NONE: its limit is per slot-hour */
};
static struct {
    struct known_device devices[DEVICES_MOST];
    uint32_t device_count;
    struct known_job jobs[2 * JOBS]; /* of others, and those of its own that run */
    uint32_t job_count;
    bool has_own;  /* asks of the consumer's: what would trade with them is refused */
    bool has_spot; /* leases of some asks may be taken */
    struct exchange_bands bands;
} known;

static inline void open_market(void)
{
    memset(&market, 0, sizeof market);
    memset(&known, 0, sizeof known);
    struct exchange_limits limits = exchange_limits_default();
    limits.asks = limits.jobs = limits.leases = 256;
    limits.attempts = 4096;
    limits.cells = limits.classes = limits.cells_per_account = limits.classes_per_account = 64;
    market.exchange = exchange_create(&limits);
    market.now_ns = start_ns;
    struct exchange_genesis_account accounts[] = {
        {.key = {{1}},
         .roles = ROLE_CONSUMER | ROLE_PROVIDER,
         .credits_micro = INT64_C(1000000000) * MICRO_PER_CREDIT,
         .name = "consumer"},
        {.key = {{2}}, .roles = ROLE_PROVIDER, .name = "provider"},
        {.key = {{3}}, .roles = ROLE_PROVIDER, .name = "other"},
        {.key = {{4}}, .roles = ROLE_OPERATOR, .name = "operator"},
        {.key = {{5}},
         .roles = ROLE_CONSUMER,
         .credits_micro = INT64_C(1000000000) * MICRO_PER_CREDIT,
         .name = "rival"},
    };
    struct exchange_command genesis = command(EXCHANGE_GENESIS, EXCHANGE_NO_ACCOUNT);
    known.bands.most_micro = 100 * price;
    genesis.genesis = (struct exchange_genesis){.cluster = {{7}},
                                                .price_band_micro = known.bands.most_micro,
                                                .accounts = accounts,
                                                .account_count = 5};
    apply(&genesis);
}

static inline void add_fact(struct known_device *device, const char *name, const char *text,
                            int64_t number)
{
    struct attribute *fact = &device->attributes[device->count++];
    (void)snprintf(fact->name, sizeof fact->name, "%s", name);
    fact->is_text = text != NULL;
    fact->number = number;
    (void)snprintf(fact->text, sizeof fact->text, "%s", text != NULL ? text : "");
}

static inline void any_device(struct random *random, struct known_device *device)
{
    static const int64_t memories[] = {8 * GIB, 16 * GIB, 24 * GIB, 40 * GIB, 80 * GIB};
    bool is_gpu = random_below(random, 2) == 0;
    if (is_gpu && random_below(random, 3) > 0) {
        add_fact(device, "bf16", NULL, (int64_t)(1 + random_below(random, 4)) * 100 * TERA);
    }
    add_fact(device, "kind", is_gpu ? "gpu" : "cpu", 0);
    add_fact(device, "memory", NULL, memories[random_below(random, 5)]);
    if (random_below(random, 4) > 0) {
        add_fact(device, "region", random_below(random, 2) == 0 ? "eu" : "us", 0);
    }
    if (random_below(random, 10) == 0) {
        add_fact(device, "simulated", NULL, 1);
    }
    device->slots = 1 + (uint32_t)random_below(random, 4);
    device->price_micro = (int64_t)random_below(random, 12) * price / 4;
    device->max_term_ns = random_below(random, 2) == 0 ? 0 : terms_ns[random_below(random, TERMS)];
}

/* Places offers of one account, all at once; most of them are then asked for. */
static inline void any_offers(struct random *random, uint32_t owner, uint32_t count)
{
    struct exchange_device devices[DEVICES_MOST];
    uint32_t first = known.device_count;
    for (uint32_t i = 0; i < count; i++) {
        struct known_device *device = &known.devices[known.device_count++];
        device->owner = owner;
        any_device(random, device);
        devices[i] = (struct exchange_device){.device = {{(uint8_t)owner, (uint8_t)i}},
                                              .slots = device->slots,
                                              .attributes = device->attributes,
                                              .attribute_count = device->count,
                                              .label = "some"};
    }
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, owner);
    advertise.advertise = (struct exchange_advertise){devices, count};
    apply(&advertise);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    for (uint32_t i = 0; i < count; i++) {
        struct known_device *device = &known.devices[first + i];
        device->asked = 1 + (uint32_t)random_below(random, device->slots);
        struct exchange_command ask = command(EXCHANGE_ASK, owner);
        ask.ask = (struct exchange_ask){
            .device = devices[i].device,
            .slots = device->asked,
            .price_micro = device->price_micro,
            .max_term_ns = device->max_term_ns,
        };
        ask.ask.terms.is_interruptible = known.has_spot && random_below(random, 3) > 0;
        apply(&ask); /* refused where it would trade with its own account's job */
        bool stands = count_of(EFFECT_ACCEPT) == 1;
        if (stands && random_below(random, 6) == 0) {
            struct exchange_command cancel = command(EXCHANGE_CANCEL_ORDER, owner);
            cancel.cancel_order.order = ask.id;
            apply(&cancel);
            stands = false;
        }
        device->price_micro = stands ? device->price_micro : -1;
    }
}

struct wish { /* a job, its needs clause by clause */
    char clauses[CLAUSES][96];
    uint32_t clause_count;
    uint32_t slots, at_most;
    int64_t cap_micro, budget_micro, limit_ns, term_ns;
    enum rate rate; /* the cap is the value of a unit of that work; NONE: it is per slot-hour */
    enum exchange_order_type type;
    bool is_firm_only;
};

static inline void any_clause(struct random *random, char *ret_text, size_t size)
{
    static const char *const clauses[] = {
        "kind = gpu",
        "kind != cpu",
        "memory >= 40GiB",
        "memory > 16GiB",
        "memory < 32GiB",
        "bf16 >= 300TFLOPS",
        "region in (eu, asia)",
        "region not in (us)",
        "not memory < 24GiB",
        "(region = us or bf16 > 200TFLOPS and memory >= 80GiB)",
        "not (kind = gpu and region = eu)",
        "(memory = 8GiB or memory >= 64GiB)",
    };
    (void)snprintf(ret_text, size, "%s",
                   clauses[random_below(random, sizeof clauses / sizeof clauses[0])]);
}

static inline void any_wish(struct random *random, struct wish *ret_wish)
{
    memset(ret_wish, 0, sizeof *ret_wish);
    ret_wish->clause_count = (uint32_t)random_below(random, CLAUSES + 1);
    for (uint32_t i = 0; i < ret_wish->clause_count; i++) {
        any_clause(random, ret_wish->clauses[i], sizeof ret_wish->clauses[i]);
    }
    ret_wish->slots = 1 + (uint32_t)random_below(random, 4);
    ret_wish->at_most = ret_wish->slots * (uint32_t)random_below(random, 3);
    ret_wish->cap_micro =
        random_below(random, 6) == 0 ? -1 : (int64_t)random_below(random, 10) * price / 4;
    if (random_below(random, 3) == 0) { /* of 200 TFLOPS, as much an hour */
        ret_wish->rate = RATE_BF16;
        ret_wish->cap_micro =
            (int64_t)random_below(random, 10) * price / 4 * (RATE_UNIT / (200 * TERA));
    }
    ret_wish->budget_micro = (int64_t)random_below(random, 2000) * MICRO_PER_CREDIT;
    ret_wish->budget_micro = random_below(random, 8) == 0 ? 0 : ret_wish->budget_micro;
    size_t term = (size_t)random_below(random, TERMS);
    ret_wish->term_ns = terms_ns[term];
    ret_wish->limit_ns = terms_ns[random_below(random, term + 1)];
}

/* Its needs, but for one clause. */
static inline void read_needs(const struct wish *wish, uint32_t without,
                              struct requirement *ret_needs)
{
    char text[512] = "any";
    size_t length = 0;
    struct problem problem = {""};
    for (uint32_t i = 0; i < wish->clause_count; i++) {
        if (i != without) {
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%s",
                                       length > 0 ? " and " : "", wish->clauses[i]);
        }
    }
    ck_assert_msg(requirement_parse(text, ret_needs, &problem), "%s: %s", text, problem.text);
}

static inline struct id128 submit_wish(uint32_t account, const struct wish *wish,
                                       const struct requirement *needs)
{
    struct exchange_command job = submit_of(4, 0);
    job.account = account;
    job.submit.budget_micro = wish->budget_micro;
    job.submit.cap_micro = wish->cap_micro;
    job.submit.rate = wish->rate;
    job.submit.needs = needs;
    job.submit.slots = wish->slots;
    job.submit.at_most = wish->at_most;
    job.submit.limit_ns = wish->limit_ns;
    job.submit.term_ns = wish->term_ns;
    job.submit.type = wish->type;
    job.submit.has_interruptions = wish->is_firm_only;
    apply(&job);
    return job.id;
}

static inline void cancel_job(uint32_t account, struct id128 id)
{
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, account);
    cancel.cancel_job.job = id;
    apply(&cancel);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

static inline int64_t limit_of(const struct wish *wish)
{
    int64_t most = known.bands.most_micro;
    int64_t bought =
        (int64_t)((int128)wish->budget_micro * NS_PER_HOUR / ((int128)wish->term_ns * wish->slots));
    return wish->cap_micro >= 0 ? wish->cap_micro : bought < most ? bought : most;
}

static inline void remember(struct id128 id, const struct wish *wish,
                            const struct requirement *needs)
{
    known.jobs[known.job_count++] = (struct known_job){.id = id,
                                                       .needs = *needs,
                                                       .slots = wish->slots,
                                                       .at_most = wish->at_most,
                                                       .limit_micro = limit_of(wish),
                                                       .rate = wish->rate};
}

static inline void any_jobs(struct random *random, uint32_t account, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct wish wish;
        struct requirement needs;
        any_wish(random, &wish);
        wish.clause_count /= known.has_spot ? 2 : 1; /* more of them have what is to be taken */
        read_needs(&wish, UINT32_MAX, &needs);
        struct id128 id = submit_wish(account, &wish, &needs);
        if (count_of(EFFECT_ACCEPT) == 1) {
            remember(id, &wish, &needs);
        }
    }
}

/* The state before a try, and again after it. */
static uint8_t *saved;
static size_t saved_length;
static struct market saved_market;

static inline void keep(void)
{
    saved = exchange_save(market.exchange, &saved_length);
    ck_assert_ptr_nonnull(saved);
    saved_market = market;
}

static inline void bring_back(void)
{
    const struct exchange_limits limits = exchange_limits_now(market.exchange);
    struct exchange_effects effects = market.effects; /* may have grown */
    exchange_destroy(&market.exchange);
    market = saved_market;
    market.effects = effects;
    market.exchange = exchange_load(&limits, saved, saved_length);
    ck_assert_ptr_nonnull(market.exchange);
}

static inline bool device_fits(const struct known_device *device, const struct known_job *job)
{
    return requirement_satisfied(&job->needs, device->attributes, device->count) &&
           (job->rate == RATE_NONE || rate_of(job->rate, device->attributes, device->count) > 0);
}

/* Runs the tests once for each seed, as `_i`. BOURSE_SEED names one seed to run alone, BOURSE_SEEDS
 * how many there are. Returns the exit status of the program. */
static inline int known_market_run(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *all = tcase_create(name);
    const char *only = getenv("BOURSE_SEED");
    const char *many = getenv("BOURSE_SEEDS");
    const int first = only != NULL ? atoi(only) : 1;
    const int end = only != NULL ? first + 1 : many != NULL ? atoi(many) + 1 : SEEDS + 1;
    for (size_t i = 0; i < count; i++) {
        tcase_add_loop_test(all, tests[i], first, end);
    }
    tcase_set_timeout(all, SUITE_TIMEOUT_S);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}

#endif
