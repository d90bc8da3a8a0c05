/* The suggestions of explain are true. In random books a waiting job is submitted anew with the
 * change and fills at the price that was said. No smaller number of changes would have done, and as
 * many bids come before it as were counted. An ask is replaced to ask what was said, and is filled
 * at that; at no higher price would it be. Bands that come and go hold the suggestion within them.
 * A forecast of a bid of any type comes true when the bid comes, where leases may be taken, too. */
#include "base/random.h"
#include "exchange/lifecycle.h"
#include "exchange/view/listings.h"
#include "exchange/view/why.h"
#include "formats/requirement.h"
#include "matching/book.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 8, BOOKS = 10, JOBS = 12, RIVAL = 7, TERMS = 4, DEVICES_MOST = 30, CLAUSES = 4 };
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

static uint32_t granted, suggested, alone, bounded; /* over all books: the test must have tested */

/* ---------------------------------------------------------------- a market */

static void open_market(void)
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

static void add_fact(struct known_device *device, const char *name, const char *text,
                     int64_t number)
{
    struct attribute *fact = &device->attributes[device->count++];
    (void)snprintf(fact->name, sizeof fact->name, "%s", name);
    fact->is_text = text != NULL;
    fact->number = number;
    (void)snprintf(fact->text, sizeof fact->text, "%s", text != NULL ? text : "");
}

static void any_device(struct random *random, struct known_device *device)
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
static void any_offers(struct random *random, uint32_t owner, uint32_t count)
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

/* ---------------------------------------------------------------- jobs */

struct wish { /* a job, its needs clause by clause */
    char clauses[CLAUSES][96];
    uint32_t clause_count;
    uint32_t slots, at_most;
    int64_t cap_micro, budget_micro, limit_ns, term_ns;
    enum rate rate; /* the cap is the value of a unit of that work; NONE: it is per slot-hour */
    enum exchange_order_type type;
    bool is_firm_only;
};

static void any_clause(struct random *random, char *ret_text, size_t size)
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

static void any_wish(struct random *random, struct wish *ret_wish)
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
static void read_needs(const struct wish *wish, uint32_t without, struct requirement *ret_needs)
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

static struct id128 submit_wish(uint32_t account, const struct wish *wish,
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

static void cancel_job(uint32_t account, struct id128 id)
{
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, account);
    cancel.cancel_job.job = id;
    apply(&cancel);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

static int64_t limit_of(const struct wish *wish)
{
    int64_t most = known.bands.most_micro;
    int64_t bought =
        (int64_t)((int128)wish->budget_micro * NS_PER_HOUR / ((int128)wish->term_ns * wish->slots));
    return wish->cap_micro >= 0 ? wish->cap_micro : bought < most ? bought : most;
}

static void remember(struct id128 id, const struct wish *wish, const struct requirement *needs)
{
    known.jobs[known.job_count++] = (struct known_job){.id = id,
                                                       .needs = *needs,
                                                       .slots = wish->slots,
                                                       .at_most = wish->at_most,
                                                       .limit_micro = limit_of(wish),
                                                       .rate = wish->rate};
}

static void any_jobs(struct random *random, uint32_t account, uint32_t count)
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

/* ---------------------------------------------------------------- what is checked */

/* The state before a try, and again after it. */
static uint8_t *saved;
static size_t saved_length;
static struct market saved_market;

static void keep(void)
{
    saved = exchange_save(market.exchange, &saved_length);
    ck_assert_ptr_nonnull(saved);
    saved_market = market;
}

static void bring_back(void)
{
    const struct exchange_limits limits = exchange_limits_now(market.exchange);
    struct exchange_effects effects = market.effects; /* may have grown */
    exchange_destroy(&market.exchange);
    market = saved_market;
    market.effects = effects;
    market.exchange = exchange_load(&limits, saved, saved_length);
    ck_assert_ptr_nonnull(market.exchange);
}

/* Submits that in place of the job, and says whether it fills. */
static bool would_fill(struct id128 instead, const struct wish *wish,
                       const struct requirement *needs)
{
    cancel_job(CONSUMER, instead);
    (void)submit_wish(CONSUMER, wish, needs);
    bool fills = count_of(EFFECT_LEASE_GRANT) > 0;
    bring_back();
    return fills;
}

/* Returns true when some change of one thing would have done, found by trying all of them. */
static bool one_change_fills(struct id128 job, const struct wish *wish)
{
    struct requirement needs;
    bool fills = false;
    read_needs(wish, UINT32_MAX, &needs);
    for (uint32_t i = 0; i < known.device_count && !fills && wish->cap_micro >= 0; i++) {
        struct wish other = *wish;
        const struct known_device *device = &known.devices[i];
        int64_t operations = rate_of(wish->rate, device->attributes, device->count);
        other.cap_micro = device->price_micro;
        if (wish->rate != RATE_NONE &&
            (device->price_micro < 0 || operations == 0 ||
             !rate_value_for(device->price_micro, operations, &other.cap_micro))) {
            continue;
        }
        fills = other.cap_micro > wish->cap_micro && would_fill(job, &other, &needs);
    }
    for (size_t i = 0; i < TERMS && !fills; i++) {
        struct wish other = *wish;
        other.term_ns = terms_ns[i];
        fills = other.term_ns < wish->term_ns && other.term_ns >= wish->limit_ns &&
                would_fill(job, &other, &needs);
    }
    for (uint32_t slots = 1; slots < wish->slots && !fills; slots++) {
        struct wish other = *wish;
        other.slots = slots;
        fills = wish->at_most % slots == 0 && would_fill(job, &other, &needs);
    }
    struct wish richer = *wish;
    richer.budget_micro = INT64_C(100000) * MICRO_PER_CREDIT;
    fills = fills || (wish->cap_micro >= 0 && would_fill(job, &richer, &needs));
    for (uint32_t i = 0; i < wish->clause_count && !fills; i++) {
        bool is_plain = strchr(wish->clauses[i], '(') == NULL; /* else it is several conditions */
        read_needs(wish, i, &needs);
        fills = is_plain && would_fill(job, wish, &needs);
    }
    return fills;
}

static bool device_fits(const struct known_device *device, const struct known_job *job)
{
    return requirement_satisfied(&job->needs, device->attributes, device->count) &&
           (job->rate == RATE_NONE || rate_of(job->rate, device->attributes, device->count) > 0);
}

/* Returns what the limit comes to on a device, in parts of RATE_UNIT of a micro-credit. */
static int128 worth_on(const struct known_device *device, const struct known_job *job)
{
    return job->rate == RATE_NONE
               ? rate_price(job->limit_micro)
               : rate_worth(job->limit_micro,
                            rate_of(job->rate, device->attributes, device->count));
}

/* Returns true when the job wants more lanes than it has. */
static bool wants_more(const struct known_job *job)
{
    struct exchange_job_row row = job_row(job->id);
    struct exchange_lease_row leases[64];
    size_t count = exchange_leases(market.exchange, &job->id, leases, 64);
    uint32_t slots = 0;
    for (size_t i = 0; i < count; i++) {
        slots += leases[i].state == LEASE_ACTIVE ? leases[i].slots : 0;
    }
    return row.state == JOB_OPEN && row.waiting > 0 &&
           (job->at_most == 0 || slots + job->slots <= job->at_most);
}

static int64_t donation_rank_of(uint32_t account)
{
    struct exchange_donated donated;
    ck_assert(exchange_donated(market.exchange, account, &donated));
    return donated.used_ns + donated.promised_ns;
}

/* Bids before it, for some device that it could have. All came earlier. What is all given away goes
 * by another rank than limits. */
static uint32_t slow_ahead(const struct wish *wish, const struct known_job *own, bool by_rank,
                           bool at_any_price)
{
    uint32_t ahead = 0;
    for (uint32_t k = 0; k < known.job_count; k++) {
        const struct known_job *rival = &known.jobs[k];
        bool meets = false;
        bool is_before = donation_rank_of(job_row(rival->id).owner) <= donation_rank_of(CONSUMER);
        for (uint32_t i = 0; i < known.device_count; i++) {
            const struct known_device *device = &known.devices[i];
            meets = meets ||
                    (device->price_micro >= 0 &&
                     (at_any_price || rate_price(device->price_micro) <= worth_on(device, own)) &&
                     (by_rank ? is_before : worth_on(device, rival) >= worth_on(device, own)) &&
                     device->asked >= wish->slots && device->owner != CONSUMER &&
                     (device->max_term_ns == 0 || device->max_term_ns >= wish->term_ns) &&
                     device_fits(device, own) && device_fits(device, rival));
        }
        ahead += meets && wants_more(rival);
    }
    return ahead;
}

static void check_waiting(struct id128 id, const struct wish *wish)
{
    static struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &id, EXCHANGE_ANY_PART, &why));
    ck_assert(!why.is_ahead_partial);
    if (why.has_ahead &&
        !known.bands.has_most) { /* else what bids by value are worth is bounded, too */
        struct known_job own = {.limit_micro = limit_of(wish), .rate = wish->rate};
        read_needs(wish, UINT32_MAX, &own.needs);
        ck_assert_uint_eq(why.ahead, slow_ahead(wish, &own,
                                                why.affordable > 0 && why.donated == why.affordable,
                                                why.affordable == 0));
    }
    const struct exchange_smallest_change *smallest_change = &why.smallest_change;
    keep();
    /* The limit of an order without a cap depends on more than is kept of the order, so the order
     * gets a cap. */
    bool one_fills = wish->cap_micro >= 0 && one_change_fills(id, wish);
    ck_assert_msg(!one_fills || smallest_change->count == 1 || known.has_own, "%u changes",
                  smallest_change->count);
    if (smallest_change->count > 0) {
        struct wish changed = *wish;
        changed.slots = smallest_change->slots;
        bool has_cap = wish->cap_micro >= 0 || smallest_change->changes[0].kind == BID_CHANGE_CAP;
        changed.cap_micro = has_cap ? smallest_change->cap_micro : -1;
        changed.term_ns = smallest_change->term_ns;
        changed.budget_micro = smallest_change->budget_micro;
        cancel_job(CONSUMER, id);
        (void)submit_wish(CONSUMER, &changed, &smallest_change->needs);
        char text[1024];
        ck_assert(requirement_text(&smallest_change->needs, text, sizeof text));
        const struct exchange_effect *fill = nth(EFFECT_LEASE_GRANT, 0);
        ck_assert_msg(fill != NULL, "%u changes of kind %d..., needs %s, slots %u",
                      smallest_change->count, (int)smallest_change->changes[0].kind, text,
                      smallest_change->slots);
        ck_assert_int_eq(fill->grant.price_micro, smallest_change->price_micro);
        bring_back();
        suggested++;
        alone += smallest_change->count == 1;
    }
    free(saved);
}

START_TEST(what_is_suggested_fills)
{
    printf("seed %d\n", _i);
    struct random random = random_seeded((uint64_t)_i);
    granted = suggested = alone = 0;
    for (int i = 0; i < BOOKS || (alone <= 20 && i < 4 * BOOKS); i++) {
        open_market();
        any_offers(&random, PROVIDER, 1 + (uint32_t)random_below(&random, 12));
        any_offers(&random, OTHER_PROVIDER, (uint32_t)random_below(&random, 12));
        known.has_own = random_below(&random, 2) == 0;
        if (known.has_own) {
            any_offers(&random, CONSUMER, 1 + (uint32_t)random_below(&random, 4));
        }
        any_jobs(&random, RIVAL, (uint32_t)random_below(&random, JOBS));
        for (int k = 0; k < JOBS; k++) {
            struct wish wish;
            struct requirement needs;
            any_wish(&random, &wish);
            read_needs(&wish, UINT32_MAX, &needs);
            struct id128 id = submit_wish(CONSUMER, &wish, &needs);
            if (count_of(EFFECT_ACCEPT) == 0) {
                continue; /* it would trade with itself */
            }
            if (count_of(EFFECT_LEASE_GRANT) > 0) {
                remember(id, &wish, &needs);
                granted++;
                continue;
            }
            check_waiting(id, &wish);
            cancel_job(CONSUMER, id);
        }
        exchange_destroy(&market.exchange);
        exchange_effects_fini(&market.effects);
    }
    ck_assert_uint_gt(granted, 5);
    ck_assert_uint_gt(suggested, 30);
    ck_assert_uint_gt(alone, 20);
    ck_assert_uint_gt(suggested, alone);
}
END_TEST

/* ---------------------------------------------------------------- bands */

static void any_bands(struct random *random)
{
    struct exchange_command made = command(EXCHANGE_BANDS, OPERATOR);
    made.bands = (struct exchange_bands){
        .has_least = true,
        .has_most = true,
        .has_notional = true,
        .least_micro = (int64_t)random_below(random, 2) * price / 4,
        .most_micro = (int64_t)(2 + random_below(random, 9)) * price / 4,
        .notional_micro = random_below(random, 2) == 0
                              ? 0
                              : (int64_t)(1 + random_below(random, 400)) * MICRO_PER_CREDIT};
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    known.bands = made.bands;
}

static bool has_leases(struct id128 job)
{
    struct exchange_lease_row row;
    return exchange_leases(market.exchange, &job, &row, 1) > 0;
}

/* Returns true when the bands in force would take the job as it is. Otherwise its change would be
 * refused for what did not change. */
static bool would_be_taken(struct id128 instead, const struct wish *wish,
                           const struct requirement *needs)
{
    keep();
    cancel_job(CONSUMER, instead);
    (void)submit_wish(CONSUMER, wish, needs);
    const bool is_taken = count_of(EFFECT_ACCEPT) == 1;
    bring_back();
    free(saved);
    return is_taken;
}

START_TEST(what_is_suggested_fills_within_bands_that_come_and_go)
{
    printf("seed %d\n", _i);
    struct random random = random_seeded((uint64_t)_i);
    suggested = alone = bounded = 0;
    for (int i = 0; i < BOOKS || (alone == 0 && i < 4 * BOOKS); i++) {
        open_market();
        any_offers(&random, PROVIDER, 1 + (uint32_t)random_below(&random, 12));
        any_offers(&random, OTHER_PROVIDER, (uint32_t)random_below(&random, 12));
        any_jobs(&random, RIVAL, (uint32_t)random_below(&random, JOBS));
        any_bands(&random);
        for (int k = 0; k < JOBS; k++) {
            struct wish wish;
            struct requirement needs;
            any_wish(&random, &wish);
            read_needs(&wish, UINT32_MAX, &needs);
            struct id128 id = submit_wish(CONSUMER, &wish, &needs);
            if (count_of(EFFECT_ACCEPT) == 0) {
                bounded++;
            } else if (count_of(EFFECT_LEASE_GRANT) > 0) {
                remember(id, &wish, &needs);
            } else {
                any_bands(&random);
                if (has_leases(id)) { /* by value, and the band is higher */
                    remember(id, &wish, &needs);
                    continue;
                }
                if (would_be_taken(id, &wish, &needs)) {
                    check_waiting(id, &wish);
                }
                cancel_job(CONSUMER, id);
            }
        }
        exchange_destroy(&market.exchange);
        exchange_effects_fini(&market.effects);
    }
    ck_assert_uint_gt(bounded, 10);
    ck_assert_uint_gt(suggested, 10);
    ck_assert_uint_gt(alone, 0);
}
END_TEST

/* ---------------------------------------------------------------- asks */

static struct exchange_why whys[DEVICES_MOST]; /* of the known devices */

struct finding {
    struct id128 device, order;
};

static bool find_order(void *context, const struct exchange_order_row *row)
{
    struct finding *finding = context;
    if (!row->is_bid && id128_equal(&row->device, &finding->device)) {
        finding->order = row->order;
    }
    return true;
}

static struct id128 order_of(uint32_t at)
{
    struct finding finding = {.device = whys[at].device};
    uint64_t next;
    ck_assert_int_eq(exchange_list_orders(market.exchange, known.devices[at].owner, 0, find_order,
                                          &finding, &next),
                     LISTING_END);
    return finding.order;
}

static void ask_all_why(void)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < known.device_count; i++) {
        number = i > 0 && known.devices[i].owner == known.devices[i - 1].owner ? number + 1 : 0;
        ck_assert_int_eq(
            exchange_explain_ask(market.exchange, known.devices[i].owner, number, &whys[i]),
            WHY_OK);
        ck_assert_int_eq(whys[i].price_micro, known.devices[i].price_micro);
    }
}

static bool is_same_kind(const struct known_device *a, const struct known_device *b)
{
    return a->count == b->count &&
           memcmp(a->attributes, b->attributes, a->count * sizeof a->attributes[0]) == 0;
}

/* Returns true when `a` comes first. The earlier of equals does: known devices stand in the order
 * of their asks. */
static bool is_first(const struct known_device *a, const struct known_device *b, enum rate rate)
{
    int128 here =
        rate_worth(a->price_micro, rate == RATE_NONE ? 1 : rate_of(rate, b->attributes, b->count));
    int128 there =
        rate_worth(b->price_micro, rate == RATE_NONE ? 1 : rate_of(rate, a->attributes, a->count));
    return here != there ? here < there : a < b;
}

static bool a_bid_takes_it_first(const struct known_device *a, const struct known_device *b)
{
    for (uint32_t k = 0; k < known.job_count; k++) {
        const struct known_job *job = &known.jobs[k];
        if (job_row(job->id).state == JOB_OPEN && device_fits(a, job) && device_fits(b, job) &&
            is_first(a, b, job->rate)) {
            return true;
        }
    }
    return false;
}

static uint32_t slow_asks_ahead(uint32_t at)
{
    const struct known_device *own = &known.devices[at];
    uint32_t ahead = 0;
    for (uint32_t i = 0; i < known.device_count; i++) {
        const struct known_device *other = &known.devices[i];
        bool is_before = (is_same_kind(own, other) && is_first(other, own, RATE_NONE)) ||
                         a_bid_takes_it_first(other, own);
        ahead += other->price_micro >= 0 && whys[i].free > 0 && is_before;
    }
    return ahead;
}

/* Returns the price at which the ask is filled when it is replaced to ask that, or -1. */
static int64_t fill_at(uint32_t at, struct id128 order, int64_t price_micro)
{
    int64_t filled_at = -1;
    struct exchange_command made = command(EXCHANGE_REPLACE, known.devices[at].owner);
    made.replace = (struct exchange_replace){
        .order = order, .part = EXCHANGE_ANY_PART, .has_price = true, .price_micro = price_micro};
    apply(&made);
    for (size_t i = 0; nth(EFFECT_LEASE_GRANT, i) != NULL && filled_at < 0; i++) {
        const struct exchange_grant *grant = &nth(EFFECT_LEASE_GRANT, i)->grant;
        filled_at = id128_equal(&grant->ask, &order) ? grant->price_micro : -1;
    }
    bring_back();
    return filled_at;
}

static void check_ask(uint32_t at)
{
    const struct exchange_why *ask = &whys[at];
    if (ask->price_micro <= 0 || ask->free == 0) {
        return;
    }
    ck_assert(ask->has_ahead);
    ck_assert_uint_eq(ask->ahead, slow_asks_ahead(at));
    const struct id128 order = order_of(at);
    if (ask->fills_at_micro >= 0) {
        ck_assert_int_lt(ask->fills_at_micro, ask->price_micro);
        ck_assert_int_eq(fill_at(at, order, ask->fills_at_micro), ask->fills_at_micro);
        suggested++;
    } else {
        alone++; /* with a price that nobody pays */
    }
    for (uint32_t k = 0; k < known.job_count; k++) {
        int64_t other = known.jobs[k].limit_micro;
        if (other > ask->fills_at_micro && other > 0 && other < ask->price_micro) {
            ck_assert_int_eq(fill_at(at, order, other), -1);
        }
    }
}

START_TEST(an_ask_is_filled_at_the_price_that_is_said_and_no_higher)
{
    printf("seed %d\n", _i);
    struct random random = random_seeded((uint64_t)_i);
    suggested = alone = 0;
    for (int i = 0; i < BOOKS; i++) {
        open_market();
        any_offers(&random, PROVIDER, 1 + (uint32_t)random_below(&random, 12));
        any_offers(&random, OTHER_PROVIDER, (uint32_t)random_below(&random, 12));
        any_offers(&random, CONSUMER, (uint32_t)random_below(&random, 5));
        any_jobs(&random, RIVAL, (uint32_t)random_below(&random, JOBS));
        any_jobs(&random, CONSUMER, (uint32_t)random_below(&random, JOBS));
        ask_all_why();
        keep();
        for (uint32_t k = 0; k < known.device_count; k++) {
            check_ask(k);
        }
        free(saved);
        exchange_destroy(&market.exchange);
        exchange_effects_fini(&market.effects);
    }
    ck_assert_uint_gt(suggested, 0);
    ck_assert_uint_gt(alone, 0);
}
END_TEST

/* ---------------------------------------------------------------- what is not there yet */

static uint32_t started, taken, refused_own, refused_trade, whole_started, left_waiting,
    changed_type;

struct filled { /* of one job, by the last command */
    uint32_t slots;
    int64_t first_micro, dearest_micro; /* -1: nothing */
};

static struct filled filled_of(struct id128 job)
{
    struct filled filled = {.first_micro = -1, .dearest_micro = -1};
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        const struct ledger_record *record = &effect->ledger;
        if (effect->type != EFFECT_LEDGER || record->kind != LEDGER_FILL ||
            !id128_equal(&record->job, &job)) {
            continue;
        }
        filled.first_micro = filled.slots == 0 ? record->price_micro : filled.first_micro;
        filled.dearest_micro =
            record->price_micro > filled.dearest_micro ? record->price_micro : filled.dearest_micro;
        filled.slots += record->slots;
    }
    return filled;
}

static bool is_whole(const struct wish *wish)
{
    return wish->type == EXCHANGE_FOK || wish->type == EXCHANGE_ALL_OR_NONE;
}

static void any_order(struct random *random, struct wish *ret_wish)
{
    any_wish(random, ret_wish);
    ret_wish->clause_count /= 2;
    ret_wish->slots = 1 + ret_wish->slots / 3;
    ret_wish->at_most = ret_wish->slots * (uint32_t)random_below(random, 3);
    ret_wish->cap_micro *= ret_wish->cap_micro < 0 ? 1 : 1 + (int64_t)random_below(random, 2);
    ret_wish->type = random_below(random, 2) == 0
                         ? EXCHANGE_LIMIT
                         : (enum exchange_order_type)random_below(random, EXCHANGE_ALL_OR_NONE + 1);
    ret_wish->is_firm_only = random_below(random, 6) == 0;
    if (ret_wish->type == EXCHANGE_ALL_OR_NONE && ret_wish->rate != RATE_NONE) {
        ret_wish->rate = RATE_NONE; /* it is not by value */
        ret_wish->cap_micro = 2 * price;
    }
}

static void check_changed(const struct wish *wish,
                          const struct exchange_smallest_change *smallest_change,
                          struct id128 instead, bool is_filed)
{
    struct wish changed = *wish;
    bool has_cap = wish->cap_micro >= 0;
    for (uint32_t i = 0; i < smallest_change->count; i++) {
        has_cap = has_cap || smallest_change->changes[i].kind == BID_CHANGE_CAP;
        changed_type += smallest_change->changes[i].kind == BID_CHANGE_ORDER;
    }
    changed.slots = smallest_change->slots;
    changed.cap_micro = has_cap ? smallest_change->cap_micro : -1;
    changed.term_ns = smallest_change->term_ns;
    changed.budget_micro = smallest_change->budget_micro;
    changed.type = (enum exchange_order_type)smallest_change->type;
    if (is_filed) {
        cancel_job(CONSUMER, instead);
    }
    const struct id128 id = submit_wish(CONSUMER, &changed, &smallest_change->needs);
    const struct filled filled = filled_of(id);
    char text[1024];
    ck_assert(requirement_text(&smallest_change->needs, text, sizeof text));
    ck_assert_msg(filled.slots > 0, "type %d, %u changes of kind %d..., needs %s, slots %u of %u",
                  (int)wish->type, smallest_change->count, (int)smallest_change->changes[0].kind,
                  text, smallest_change->slots, wish->slots);
    ck_assert_int_eq(is_whole(&changed) ? filled.dearest_micro : filled.first_micro,
                     smallest_change->price_micro);
    suggested++;
    alone += smallest_change->takes;
    bring_back();
}

/* It comes as it was asked about, and what was said of it is so; then all is as it was. */
static void check_foretold(const struct wish *wish, const struct requirement *needs)
{
    static struct exchange_explanation why;
    const struct exchange_need need = {.needs = needs,
                                       .account = CONSUMER,
                                       .subtasks = 4,
                                       .slots = wish->slots,
                                       .at_most = wish->at_most,
                                       .cap_micro = wish->cap_micro,
                                       .limit_ns = wish->limit_ns,
                                       .term_ns = wish->term_ns,
                                       .rate = wish->rate,
                                       .budget_micro = wish->budget_micro,
                                       .holds_nothing = wish->budget_micro == 0,
                                       .type = (uint8_t)wish->type,
                                       .is_firm_only = wish->is_firm_only};
    exchange_explain(market.exchange, &need, &why);
    keep();
    const struct id128 id = submit_wish(CONSUMER, wish, needs);
    const struct exchange_effect *refusal = nth(EFFECT_REJECT, 0);
    const struct filled filled = filled_of(id);
    ck_assert_uint_eq(why.refusal, refusal == NULL ? 0 : refusal->reject.code);
    const int64_t is_at = is_whole(wish) ? filled.dearest_micro : filled.first_micro;
    ck_assert_msg(why.starts_at_micro == is_at, "type %d: it was to start at %lld, and %lld is so",
                  (int)wish->type, (long long)why.starts_at_micro, (long long)is_at);
    bring_back();
    started += filled.slots > 0;
    whole_started += filled.slots > 0 && is_whole(wish);
    taken += why.starts_with_lease;
    refused_own += why.refusal == REJECT_SELF_MATCH;
    refused_trade += why.refusal == REJECT_WOULD_TRADE;
    left_waiting += refusal == NULL && filled.slots == 0;
    if (why.smallest_change.count > 0) {
        check_changed(wish, &why.smallest_change, id, false);
    }
    free(saved);
}

/* It waits: the same for what is there. */
static void check_filed(const struct wish *wish, const struct requirement *needs)
{
    static struct exchange_explanation why;
    const struct id128 id = submit_wish(CONSUMER, wish, needs);
    if (count_of(EFFECT_ACCEPT) == 0 || filled_of(id).slots > 0 || job_row(id).state != JOB_OPEN) {
        return;
    }
    ck_assert(exchange_explain_job(market.exchange, &id, EXCHANGE_ANY_PART, &why));
    ck_assert_int_eq(why.starts_at_micro, -1);
    if (why.smallest_change.count > 0) {
        keep();
        check_changed(wish, &why.smallest_change, id, true);
        free(saved);
    }
    cancel_job(CONSUMER, id);
}

START_TEST(what_is_foretold_comes_true)
{
    printf("seed %d\n", _i);
    struct random random = random_seeded(1000 + (uint64_t)_i);
    suggested = alone = 0;
    started = taken = refused_own = refused_trade = whole_started = left_waiting = changed_type = 0;
    /* Some seeds need more books until something is taken. */
    for (int i = 0; i < 2 * BOOKS || (taken == 0 && i < 6 * BOOKS); i++) {
        open_market();
        known.has_spot = true;
        any_offers(&random, PROVIDER, 1 + (uint32_t)random_below(&random, 10));
        any_offers(&random, OTHER_PROVIDER, (uint32_t)random_below(&random, 10));
        any_jobs(&random, RIVAL, (uint32_t)random_below(&random, JOBS));
        any_jobs(&random, RIVAL, (uint32_t)random_below(&random, JOBS / 2));
        if (random_below(&random, 2) == 0) {
            any_offers(&random, CONSUMER, 1 + (uint32_t)random_below(&random, 3));
        }
        for (int k = 0; k < JOBS; k++) {
            struct wish wish;
            struct requirement needs;
            any_order(&random, &wish);
            read_needs(&wish, UINT32_MAX, &needs);
            check_foretold(&wish, &needs);
            check_filed(&wish, &needs);
        }
        exchange_destroy(&market.exchange);
        exchange_effects_fini(&market.effects);
    }
    printf("%u start, %u with a lease, %u whole; %u and %u refused, %u wait; %u changes, %u take, "
           "%u of type\n",
           started, taken, whole_started, refused_own, refused_trade, left_waiting, suggested,
           alone, changed_type);
    ck_assert_uint_gt(started, 10);
    ck_assert_uint_gt(taken, 0);
    ck_assert_uint_gt(whole_started, 0);
    ck_assert_uint_gt(refused_own, 0);
    ck_assert_uint_gt(refused_trade, 0);
    ck_assert_uint_gt(left_waiting, 10);
    ck_assert_uint_gt(suggested, 30);
    ck_assert_uint_gt(alone, 0);
    ck_assert_uint_gt(changed_type, 0);
}
END_TEST

/* BOURSE_SEED names one seed to run alone, BOURSE_SEEDS how many there are. */
int main(void)
{
    Suite *suite = suite_create("explain");
    TCase *tests = tcase_create("explain");
    const char *only = getenv("BOURSE_SEED");
    const char *many = getenv("BOURSE_SEEDS");
    const int first = only != NULL ? atoi(only) : 1;
    const int end = only != NULL ? first + 1 : many != NULL ? atoi(many) + 1 : SEEDS + 1;
    tcase_add_loop_test(tests, what_is_suggested_fills, first, end);
    tcase_add_loop_test(tests, what_is_suggested_fills_within_bands_that_come_and_go, first, end);
    tcase_add_loop_test(tests, an_ask_is_filled_at_the_price_that_is_said_and_no_higher, first,
                        end);
    tcase_add_loop_test(tests, what_is_foretold_comes_true, first, end);
    tcase_set_timeout(tests, 120);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
