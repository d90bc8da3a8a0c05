/* Jobs have several parts, each with a requirement and an order of its own. */
#include "exchange/state/records.h"
#include "exchange/view/listings.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static void set_up_for_parts(void)
{
    set_up_with(64, 4096, 16);
}

static struct requirement wants(const char *kind)
{
    struct requirement needs = {.count = 1};
    needs.nodes[0].op = REQUIREMENT_EQ;
    (void)strcpy(needs.nodes[0].attribute.name, "kind");
    needs.nodes[0].attribute.is_text = true;
    (void)strcpy(needs.nodes[0].attribute.text, kind);
    return needs;
}

/* One device of `kind`, all of it asked for. */
static void offer_kind(uint32_t provider, const char *kind, uint32_t slots, int64_t at_price)
{
    struct attribute attribute = {.name = "kind", .is_text = true};
    (void)strcpy(attribute.text, kind);
    struct exchange_device device = {.device = {{(uint8_t)provider}},
                                     .slots = slots,
                                     .attributes = &attribute,
                                     .attribute_count = 1};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, provider);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct exchange_command ask = command(EXCHANGE_ASK, provider);
    ask.ask =
        (struct exchange_ask){.device = device.device, .slots = slots, .price_micro = at_price};
    apply(&ask);
}

static struct exchange_part part_like(const struct exchange_submit *submit, uint32_t subtasks,
                                      const struct requirement *needs)
{
    return (struct exchange_part){.subtasks = subtasks,
                                  .needs = needs,
                                  .slots = 1,
                                  .cap_micro = submit->cap_micro,
                                  .limit_ns = submit->limit_ns,
                                  .term_ns = submit->term_ns};
}

START_TEST(each_part_runs_where_its_own_requirement_holds)
{
    struct requirement cpu = wants("cpu");
    struct requirement gpu = wants("gpu");
    offer_kind(PROVIDER, "cpu", 2, price / 2);
    offer_kind(OTHER_PROVIDER, "gpu", 1, price);
    struct exchange_command made = submit_of(5, 900);
    struct exchange_part part = part_like(&made.submit, 2, &gpu);
    made.submit.needs = &cpu;
    made.submit.cap_micro = price / 2; /* which no gpu is to be had for */
    made.submit.parts = &part;
    made.submit.part_count = 1;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 2);
    ck_assert_uint_ge(count_of(EFFECT_DISPATCH), 3);
    for (size_t i = 0; i < count_of(EFFECT_DISPATCH); i++) {
        const struct exchange_effect *effect = nth(EFFECT_DISPATCH, i);
        ck_assert_uint_eq(effect->account, effect->work.index < 3 ? PROVIDER : OTHER_PROVIDER);
    }
    struct exchange_part_row rows[2];
    ck_assert_uint_eq(exchange_parts(market.exchange, &made.id, rows, 2), 2);
    ck_assert_uint_eq(rows[0].subtasks, 3);
    ck_assert_uint_eq(rows[0].lanes, 2);
    ck_assert_uint_eq(rows[1].subtasks, 2);
    ck_assert_uint_eq(rows[1].lanes, 1);
    check_hash();
    reload();
    ck_assert_uint_eq(exchange_parts(market.exchange, &made.id, rows, 2), 2);
    ck_assert_uint_eq(rows[1].lanes, 1);
}
END_TEST

START_TEST(the_tightest_part_explains_why_a_job_waits)
{
    struct requirement cpu = wants("cpu");
    struct requirement tpu = wants("tpu");
    offer_kind(PROVIDER, "cpu", 1, 2 * price); /* fits, but costs more than the cap */
    struct exchange_command made = submit_of(5, 900);
    struct exchange_part part = part_like(&made.submit, 2, &tpu);
    made.submit.needs = &cpu;
    made.submit.parts = &part;
    made.submit.part_count = 1;
    apply(&made);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_NO_DEVICE);
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &made.id, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.part, 1);
    ck_assert_uint_eq(why.fitting, 0);
    ck_assert_str_eq(why.predicates[0].text, "kind = \"tpu\"");

    /* Each of them when it is asked about. */
    ck_assert(exchange_explain_job(market.exchange, &made.id, 0, &why));
    ck_assert_uint_eq(why.part, 0);
    ck_assert_str_eq(why.predicates[0].text, "kind = \"cpu\"");
    ck_assert_uint_eq(why.fitting, 1);
    ck_assert_uint_eq(why.affordable, 0);
    ck_assert_int_eq(why.fills_at_micro, 2 * price);
    ck_assert(exchange_explain_job(market.exchange, &made.id, 1, &why));
    ck_assert_str_eq(why.predicates[0].text, "kind = \"tpu\"");
    ck_assert(!exchange_explain_job(market.exchange, &made.id, 2, &why));
    struct exchange_part_row rows[2];
    ck_assert_uint_eq(exchange_parts(market.exchange, &made.id, rows, 2), 2);
    ck_assert_uint_eq(rows[0].first, 0);
    ck_assert_uint_eq(rows[1].first, 3);
}
END_TEST

static struct exchange_order_row listed[4];
static size_t listed_count;

/* One a page. */
static bool see_one(void *context, const struct exchange_order_row *row)
{
    size_t *left = context;
    if (*left == 0) {
        return false;
    }
    *left -= 1;
    listed[listed_count++] = *row;
    return true;
}

START_TEST(each_part_has_an_order_of_its_own_and_a_page_may_end_between_them)
{
    struct exchange_command made = submit_of(5, 900);
    struct exchange_part part = part_like(&made.submit, 2, &anything);
    part.cap_micro = price / 4;
    made.submit.parts = &part;
    made.submit.part_count = 1;
    apply(&made);
    uint64_t next = 0;
    listed_count = 0;
    enum exchange_listing listing;
    do {
        size_t left = 1;
        listing = exchange_list_orders(market.exchange, CONSUMER, next, see_one, &left, &next);
        ck_assert_uint_lt(listed_count, 4);
    } while (listing == LISTING_MORE);
    ck_assert_uint_eq(listed_count, 2);
    ck_assert(id128_equal(&listed[0].order, &made.id));
    ck_assert(!id128_equal(&listed[1].order, &made.id));
    ck_assert(id128_equal(&listed[0].job, &made.id)); /* what both end with */
    ck_assert(id128_equal(&listed[1].job, &made.id));
    ck_assert_int_eq(listed[0].price_micro, price);
    ck_assert_int_eq(listed[1].price_micro, price / 4);
}
END_TEST

START_TEST(parts_leave_the_first_a_subtask_and_are_checked_like_it)
{
    struct requirement broken = {.count = 1};
    broken.nodes[0].op = REQUIREMENT_AND;
    broken.nodes[0].arity = 2;
    struct exchange_command made = submit_of(3, 100);
    const struct exchange_part good = part_like(&made.submit, 1, &anything);
    struct exchange_part all = part_like(&made.submit, 3, &anything);
    struct exchange_part no_slots = good;
    struct exchange_part too_dear = good;
    struct exchange_part bad_needs = good;
    no_slots.slots = 0;
    too_dear.cap_micro = 11 * price;
    bad_needs.needs = &broken;
    const struct {
        const struct exchange_part *part;
        const char *field;
        enum reject_code code;
    } cases[] = {{&all, "parts.subtasks", REJECT_QUANTITY},
                 {&no_slots, "parts.slots", REJECT_QUANTITY},
                 {&too_dear, "parts.cap_micro", REJECT_PRICE},
                 {&bad_needs, "parts.needs", REJECT_REQUIREMENT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made = submit_of(3, 100);
        made.submit.parts = cases[i].part;
        made.submit.part_count = 1;
        apply(&made);
        check_rejected(cases[i].code);
        ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, cases[i].field);
    }
    static struct exchange_part many[PARTS_MOST];
    for (size_t i = 0; i < PARTS_MOST; i++) {
        many[i] = good;
    }
    made = submit_of(30, 100);
    made.submit.parts = many;
    made.submit.part_count = PARTS_MOST;
    apply(&made);
    check_rejected(REJECT_QUANTITY);
}
END_TEST

/* A refusal of a later part takes back what the earlier ones took: classes, handles, their places
 * in the queue. */
START_TEST(a_part_that_is_refused_leaves_nothing_of_the_others)
{
    struct requirement cpu = wants("cpu");
    struct requirement gpu = wants("gpu");
    struct exchange_limits limits = exchange_limits_now(market.exchange);
    limits.classes_per_account = 1;
    struct exchange_command set = command(EXCHANGE_LIMITS, EXCHANGE_NO_ACCOUNT);
    set.set_limits = (struct exchange_set_limits){.rules = EXCHANGE_RULES, .limits = limits};
    apply(&set);
    struct exchange_command made = submit_of(2, 100);
    struct exchange_part part = part_like(&made.submit, 1, &gpu);
    made.submit.needs = &cpu;
    made.submit.parts = &part;
    made.submit.part_count = 1;
    apply(&made);
    check_rejected(REJECT_LIMIT);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "classes_per_account");
    part.needs = &cpu; /* the same class for both */
    made.id.bytes[15] ^= 0x80;
    made.index++;
    market.index++;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    check_hash();
}
END_TEST

SUITE("exchange_parts", set_up_for_parts, tear_down,
      TEST(each_part_runs_where_its_own_requirement_holds),
      TEST(the_tightest_part_explains_why_a_job_waits),
      TEST(each_part_has_an_order_of_its_own_and_a_page_may_end_between_them),
      TEST(parts_leave_the_first_a_subtask_and_are_checked_like_it),
      TEST(a_part_that_is_refused_leaves_nothing_of_the_others))
