/* Every way in which an order can be wrong, row by row: which code and field it is refused with,
 * and that nothing of the state changes but that the command was counted and its answer is
 * remembered. */
#include "base/cursor.h"
#include "exchange/state/records.h"
#include "formats/units.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_NS (24 * NS_PER_HOUR)
#define UNKNOWN UINT8_MAX /* of an id: nobody's */

static struct id128 ask_id, job_id, ended_job, other_ask, parts_job;
static struct exchange_part two_slots;

static void set_up_orders(void)
{
    set_up();
    struct exchange_command job = submit_of(2, 10); /* waits for a cheaper ask */
    job.submit.cap_micro = price;
    apply(&job);
    job_id = job.id;
    two_slots = (struct exchange_part){.subtasks = 1,
                                       .needs = &anything,
                                       .slots = 2,
                                       .cap_micro = price,
                                       .limit_ns = NS_PER_S,
                                       .term_ns = NS_PER_S};
    struct exchange_command parts = submit_of(2, 10);
    parts.submit.parts = &two_slots;
    parts.submit.part_count = 1;
    apply(&parts);
    parts_job = parts.id;
    ended_job = submit(1, 10);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = ended_job;
    apply(&cancel);
    offer(PROVIDER, 4, 5 * price);
    ask_id = record_of(LEDGER_ASK)->order;
    offer(OTHER_PROVIDER, 4, 5 * price);
    other_ask = record_of(LEDGER_ASK)->order;
    check_hash();
}

/* ---------------------------------------------------------------- what stays */

/* The snapshot without what counts commands and remembers their answers. */
struct kept {
    uint8_t *bytes;
    size_t length;
};

static struct kept keep(void)
{
    enum { HEAD = 8, RECORD_HEAD = 5, INDEX_AT = 46 };
    size_t length;
    uint8_t *bytes = exchange_save(market.exchange, &length);
    ck_assert_ptr_nonnull(bytes);
    struct kept kept = {.bytes = bytes};
    struct reader in = reader_over(bytes, length);
    (void)reader_view(&in, HEAD);
    while (reader_left(&in) > 0) {
        uint8_t type = reader_u8(&in);
        uint32_t size = reader_u32(&in);
        const uint8_t *fields = reader_view(&in, size);
        ck_assert_ptr_nonnull(fields);
        if (type != RECORD_ID) {
            memmove(bytes + kept.length, fields, size);
            if (type == RECORD_MARKET) {
                memset(bytes + kept.length + INDEX_AT, 0, 8);
            }
            kept.length += size;
        }
    }
    ck_assert(reader_finished(&in));
    return kept;
}

static void check_refused(const char *what, const struct exchange_command *made, uint32_t code,
                          const char *field)
{
    struct kept before = keep();
    apply(made);
    const struct exchange_effect *refusal = nth(EFFECT_REJECT, 0);
    ck_assert_msg(refusal != NULL, "%s: nothing was refused", what);
    ck_assert_msg(refusal->reject.code == code, "%s: %s instead of %s", what,
                  reject_name((enum reject_code)refusal->reject.code),
                  reject_name((enum reject_code)code));
    ck_assert_msg(strcmp(refusal->reject.field, field) == 0, "%s: field %s instead of %s", what,
                  refusal->reject.field, field);
    ck_assert_uint_eq(market.effects.count, 1);
    struct kept after = keep();
    ck_assert_msg(before.length == after.length &&
                      memcmp(before.bytes, after.bytes, before.length) == 0,
                  "%s: something has changed", what);
    check_hash();
    free(before.bytes);
    free(after.bytes);
}

/* ---------------------------------------------------------------- asks */

enum ask_field { ASK_SLOTS, ASK_PRICE, ASK_GOOD_TILL, ASK_TERM, ASK_DEVICE, ASK_SENDER };

START_TEST(asks_that_are_wrong)
{
    const struct {
        const char *what;
        enum ask_field field;
        int64_t value;
        enum reject_code code;
        const char *named;
    } rows[] = {
        {"no slots", ASK_SLOTS, 0, REJECT_QUANTITY, "slots"},
        {"more slots than the device has", ASK_SLOTS, 5, REJECT_QUANTITY, "slots"},
        {"2^32 - 1 slots", ASK_SLOTS, UINT32_MAX, REJECT_QUANTITY, "slots"},
        {"a negative price", ASK_PRICE, -1, REJECT_PRICE, "price_micro"},
        {"price -2^63", ASK_PRICE, INT64_MIN, REJECT_PRICE, "price_micro"},
        {"a price above the band", ASK_PRICE, 10 * price + 1, REJECT_PRICE, "price_micro"},
        {"price 2^63 - 1", ASK_PRICE, INT64_MAX, REJECT_PRICE, "price_micro"},
        {"good till now", ASK_GOOD_TILL, start_ns, REJECT_QUANTITY, "good_till_ms"},
        {"good till yesterday", ASK_GOOD_TILL, start_ns - DAY_NS, REJECT_QUANTITY, "good_till_ms"},
        {"good till before all time", ASK_GOOD_TILL, INT64_MIN, REJECT_QUANTITY, "good_till_ms"},
        {"a negative term", ASK_TERM, -1, REJECT_QUANTITY, "max_term_ms"},
        {"a device that is not there", ASK_DEVICE, UNKNOWN, REJECT_DEVICE, "device"},
        {"the device of another", ASK_DEVICE, OTHER_PROVIDER, REJECT_DEVICE, "device"},
        {"no provider", ASK_SENDER, CONSUMER, REJECT_ROLE, "account"},
        {"nobody", ASK_SENDER, 1000, REJECT_ROLE, "account"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct exchange_command made = command(EXCHANGE_ASK, PROVIDER);
        made.ask =
            (struct exchange_ask){.device = {{PROVIDER}}, .slots = 1, .price_micro = 5 * price};
        switch (rows[i].field) {
        case ASK_SLOTS:
            made.ask.slots = (uint32_t)rows[i].value;
            break;
        case ASK_PRICE:
            made.ask.price_micro = rows[i].value;
            break;
        case ASK_GOOD_TILL:
            made.ask.good_till_ns = rows[i].value;
            break;
        case ASK_TERM:
            made.ask.max_term_ns = rows[i].value;
            break;
        case ASK_DEVICE:
            made.ask.device = (struct id128){{(uint8_t)rows[i].value}};
            break;
        case ASK_SENDER:
            made.account = (uint32_t)rows[i].value;
            break;
        }
        check_refused(rows[i].what, &made, rows[i].code, rows[i].named);
    }
}
END_TEST

/* ---------------------------------------------------------------- jobs */

enum job_field {
    JOB_BUDGET,
    JOB_CAP,
    JOB_SUBTASKS,
    JOB_SLOTS,
    JOB_AT_MOST,
    JOB_LIMIT,
    JOB_TERM,
    JOB_EXPECT,
    JOB_RETRIES,
    JOB_CRASHES,
    JOB_GOOD_TILL,
    JOB_VERIFY,
    JOB_NEEDS,
    JOB_SENDER
};

START_TEST(jobs_that_are_wrong)
{
    static const struct requirement nonsense = {.count = 1, .nodes = {{.op = REQUIREMENT_AND}}};
    const struct {
        const char *what;
        enum job_field field;
        int64_t value;
        enum reject_code code;
        const char *named;
    } rows[] = {
        {"a negative budget", JOB_BUDGET, -1, REJECT_BUDGET, "budget_micro"},
        {"budget -2^63", JOB_BUDGET, INT64_MIN, REJECT_BUDGET, "budget_micro"},
        {"a budget of more than is there", JOB_BUDGET, 2000 * MICRO_PER_CREDIT, REJECT_FUNDS,
         "budget_micro"},
        {"budget 2^63 - 1", JOB_BUDGET, INT64_MAX, REJECT_FUNDS, "budget_micro"},
        {"a negative cap", JOB_CAP, -2, REJECT_PRICE, "cap_micro"},
        {"cap -2^63", JOB_CAP, INT64_MIN, REJECT_PRICE, "cap_micro"},
        {"a cap above the band", JOB_CAP, 10 * price + 1, REJECT_PRICE, "cap_micro"},
        {"cap 2^63 - 1", JOB_CAP, INT64_MAX, REJECT_PRICE, "cap_micro"},
        {"no subtask", JOB_SUBTASKS, 0, REJECT_QUANTITY, "subtasks"},
        {"too many subtasks", JOB_SUBTASKS, 10000001, REJECT_QUANTITY, "subtasks"},
        {"2^32 - 1 subtasks", JOB_SUBTASKS, UINT32_MAX, REJECT_QUANTITY, "subtasks"},
        {"no slots", JOB_SLOTS, 0, REJECT_QUANTITY, "slots"},
        {"too many slots", JOB_SLOTS, 4097, REJECT_QUANTITY, "slots"},
        {"2^32 - 1 slots", JOB_SLOTS, UINT32_MAX, REJECT_QUANTITY, "slots"},
        {"fewer slots at a time than one subtask has", JOB_AT_MOST, 1, REJECT_QUANTITY, "at_most"},
        {"no time", JOB_LIMIT, 0, REJECT_QUANTITY, "limit_ms"},
        {"negative time", JOB_LIMIT, -NS_PER_S, REJECT_QUANTITY, "limit_ms"},
        {"more time than there is", JOB_LIMIT, INT64_MAX, REJECT_QUANTITY, "limit_ms"},
        {"a term that is shorter than a subtask", JOB_TERM, NS_PER_S, REJECT_QUANTITY, "term_ms"},
        {"a negative term", JOB_TERM, -1, REJECT_QUANTITY, "term_ms"},
        {"a term of eight days", JOB_TERM, 8 * DAY_NS, REJECT_QUANTITY, "term_ms"},
        {"a term of 2^63 - 1", JOB_TERM, INT64_MAX, REJECT_QUANTITY, "term_ms"},
        {"negative expectations", JOB_EXPECT, -NS_PER_S, REJECT_QUANTITY, "expect_ns"},
        {"great expectations", JOB_EXPECT, INT64_MAX, REJECT_QUANTITY, "expect_ns"},
        {"too many retries", JOB_RETRIES, 101, REJECT_QUANTITY, "retries"},
        {"too many crashes", JOB_CRASHES, 101, REJECT_QUANTITY, "crash_limit"},
        {"good till now", JOB_GOOD_TILL, start_ns, REJECT_QUANTITY, "good_till_ms"},
        {"good till before all time", JOB_GOOD_TILL, INT64_MIN, REJECT_QUANTITY, "good_till_ms"},
        {"good for two years", JOB_GOOD_TILL, start_ns + 730 * DAY_NS, REJECT_QUANTITY,
         "good_till_ms"},
        {"good till the end of time", JOB_GOOD_TILL, INT64_MAX, REJECT_QUANTITY, "good_till_ms"},
        {"an unknown check", JOB_VERIFY, EXCHANGE_VERIFY_UNKNOWN, REJECT_VERIFY, "verify"},
        {"needs that are no tree", JOB_NEEDS, 0, REJECT_REQUIREMENT, "needs"},
        {"no consumer", JOB_SENDER, PROVIDER, REJECT_ROLE, "account"},
        {"nobody", JOB_SENDER, 1000, REJECT_ROLE, "account"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct exchange_command made = submit_of(1, 10);
        switch (rows[i].field) {
        case JOB_BUDGET:
            made.submit.budget_micro = rows[i].value;
            break;
        case JOB_CAP:
            made.submit.cap_micro = rows[i].value;
            break;
        case JOB_SUBTASKS:
            made.submit.subtasks = (uint32_t)rows[i].value;
            break;
        case JOB_SLOTS:
            made.submit.slots = (uint32_t)rows[i].value;
            break;
        case JOB_AT_MOST:
            made.submit.slots = 2;
            made.submit.at_most = (uint32_t)rows[i].value;
            break;
        case JOB_LIMIT:
            made.submit.limit_ns = rows[i].value;
            break;
        case JOB_TERM:
            made.submit.term_ns = rows[i].value;
            break;
        case JOB_EXPECT:
            made.submit.expect_ns = rows[i].value;
            break;
        case JOB_RETRIES:
            made.submit.retries = (uint32_t)rows[i].value;
            break;
        case JOB_CRASHES:
            made.submit.crash_limit = (uint32_t)rows[i].value;
            break;
        case JOB_GOOD_TILL:
            made.submit.good_till_ns = rows[i].value;
            break;
        case JOB_VERIFY:
            made.submit.verify = (enum exchange_verify)rows[i].value;
            break;
        case JOB_NEEDS:
            made.submit.needs = &nonsense;
            break;
        case JOB_SENDER:
            made.account = (uint32_t)rows[i].value;
            break;
        }
        check_refused(rows[i].what, &made, rows[i].code, rows[i].named);
    }
}
END_TEST

/* A market of rich people, where no price is too high by itself. */
static void set_up_rich(void)
{
    struct exchange_limits limits = exchange_limits_default();
    static const struct exchange_genesis_account accounts[] = {
        {.key = {{1}}, .roles = ROLE_CONSUMER, .credits_micro = INT64_MAX / 2, .name = "rich"},
        {.key = {{2}}, .roles = ROLE_PROVIDER, .name = "dear"},
    };
    tear_down();
    open_market_of(&limits, INT64_MAX, accounts, 2);
}

/* The same once more, as a command of its own. */
static struct exchange_command again(const struct exchange_command *made)
{
    struct exchange_command copy = *made;
    const struct exchange_command fresh = command(made->type, made->account);
    copy.index = fresh.index;
    copy.id = fresh.id;
    copy.body = fresh.body;
    return copy;
}

START_TEST(price_times_slots_times_term_is_more_than_there_is)
{
    set_up_rich();
    offer(PROVIDER, 4096, INT64_MAX / 4096);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    const struct id128 ask = record_of(LEDGER_ASK)->order;
    struct exchange_command dear = command(EXCHANGE_ASK, PROVIDER);
    dear.ask = (struct exchange_ask){.slots = 4096, .price_micro = INT64_MAX / 4096 + 1};
    dear.ask.device = record_of(LEDGER_ASK)->device;
    check_refused("an ask of 2^12 slots at 2^51", &dear, REJECT_PRICE, "price_micro");
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, INT64_MAX / 4096);
    dear = command(EXCHANGE_REPLACE, PROVIDER);
    dear.replace = (struct exchange_replace){
        .order = ask, .has_price = true, .price_micro = INT64_MAX / 4096 + 1};
    check_refused("the ask at 2^51", &dear, REJECT_PRICE, "price_micro");

    /* 2^12 slots for a week: at most (2^63 - 1) / 4096 / 168 a slot-hour. */
    const int64_t most = INT64_MAX / 4096 / 168;
    struct exchange_command job = submit_of(3, 0);
    job.submit.budget_micro = INT64_MAX / 4;
    job.submit.slots = 4096;
    job.submit.limit_ns = job.submit.term_ns = job.submit.expect_ns = 7 * DAY_NS;
    job.submit.cap_micro = most + 1;
    check_refused("a lease that no money pays", &job, REJECT_PRICE, "cap_micro");
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, most);
    job = again(&job);
    job.submit.cap_micro = most;
    job.submit.at_most = 3 * 4096;
    check_refused("three such leases", &job, REJECT_PRICE, "cap_micro");
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, INT64_MAX / (3 * 4096 * 168));
    struct exchange_part more = {.subtasks = 1,
                                 .needs = &anything,
                                 .slots = 4096,
                                 .cap_micro = INT64_MAX,
                                 .limit_ns = NS_PER_HOUR,
                                 .term_ns = NS_PER_HOUR};
    job = again(&job);
    job.submit.at_most = 0;
    job.submit.parts = &more;
    job.submit.part_count = 1;
    check_refused("a part of it", &job, REJECT_PRICE, "parts.cap_micro");
    job = again(&job);
    job.submit.part_count = 0;
    apply(&job);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    dear = command(EXCHANGE_REPLACE, CONSUMER);
    dear.replace =
        (struct exchange_replace){.order = job.id, .has_price = true, .price_micro = most + 1};
    check_refused("a higher cap", &dear, REJECT_PRICE, "price_micro");
    dear = again(&dear);
    dear.replace = (struct exchange_replace){.order = job.id, .has_slots = true, .slots = 2 * 4096};
    check_refused("more slots at that cap", &dear, REJECT_PRICE, "price_micro");
    /* The job now has one part, with fewer slots than the other's subtasks need. */
    job = again(&job);
    job.submit.parts = &more;
    job.submit.part_count = 1;
    more.slots = 1;
    more.cap_micro = 1;
    job.submit.budget_micro = 1;
    apply(&job);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    dear = again(&dear);
    dear.replace =
        (struct exchange_replace){.order = job.id, .part = 1, .has_slots = true, .slots = 1};
    apply(&dear);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    reload();
}
END_TEST

/* The budget says how much is paid at market price, so the job fits. */
START_TEST(at_market_price_there_is_always_as_much)
{
    set_up_rich();
    offer(PROVIDER, 4096, INT64_MAX / 4096);
    struct exchange_command job = submit_of(10000000, 0);
    job.submit.budget_micro = INT64_MAX / 2;
    job.submit.slots = 4096;
    job.submit.cap_micro = -1;
    job.submit.type = EXCHANGE_MARKET;
    job.submit.at_most = UINT32_MAX;
    job.submit.limit_ns = job.submit.term_ns = job.submit.expect_ns = 7 * DAY_NS;
    apply(&job);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    reload();
}
END_TEST

/* ---------------------------------------------------------------- replace, cancel */

enum target { OWN_ASK, OWN_JOB, OWN_PARTS, ENDED_JOB, OTHERS_ASK, NOBODYS };

static struct id128 id_of(enum target target)
{
    const struct id128 ids[] = {ask_id,    job_id,    parts_job,
                                ended_job, other_ask, {{UNKNOWN, UNKNOWN}}};
    return ids[target];
}

START_TEST(replacements_that_are_wrong)
{
    enum { SLOTS = 1, PRICE = 2, BUDGET = 4 };
    const struct {
        const char *what;
        enum target target;
        unsigned said;
        int64_t value;
        uint32_t part;
        enum reject_code code;
        const char *named;
    } rows[] = {
        {"no order", NOBODYS, PRICE, 1, 0, REJECT_NOT_FOUND, "order"},
        {"the order of another", OTHERS_ASK, PRICE, 1, 0, REJECT_NOT_FOUND, "order"},
        {"an ask of no slots", OWN_ASK, SLOTS, 0, 0, REJECT_QUANTITY, "slots"},
        {"an ask of more than the device", OWN_ASK, SLOTS, 5, 0, REJECT_QUANTITY, "slots"},
        {"an ask of 2^32 - 1", OWN_ASK, SLOTS, UINT32_MAX, 0, REJECT_QUANTITY, "slots"},
        {"an ask's negative price", OWN_ASK, PRICE, -1, 0, REJECT_PRICE, "price_micro"},
        {"an ask's price -2^63", OWN_ASK, PRICE, INT64_MIN, 0, REJECT_PRICE, "price_micro"},
        {"an ask above the band", OWN_ASK, PRICE, 10 * price + 1, 0, REJECT_PRICE, "price_micro"},
        {"an ask's price 2^63 - 1", OWN_ASK, PRICE, INT64_MAX, 0, REJECT_PRICE, "price_micro"},
        {"an ask's budget", OWN_ASK, BUDGET, 1, 0, REJECT_BUDGET, "budget_micro"},
        {"a bid's negative price", OWN_JOB, PRICE, -1, 0, REJECT_PRICE, "price_micro"},
        {"a bid's price -2^63", OWN_JOB, PRICE, INT64_MIN, 0, REJECT_PRICE, "price_micro"},
        {"a bid above the band", OWN_JOB, PRICE, 10 * price + 1, 0, REJECT_PRICE, "price_micro"},
        {"a bid's price 2^63 - 1", OWN_JOB, PRICE, INT64_MAX, 0, REJECT_PRICE, "price_micro"},
        {"less budget", OWN_JOB, BUDGET, MICRO_PER_CREDIT, 0, REJECT_BUDGET, "budget_micro"},
        {"budget -2^63", OWN_JOB, BUDGET, INT64_MIN, 0, REJECT_BUDGET, "budget_micro"},
        {"budget 2^63 - 1", OWN_JOB, BUDGET, INT64_MAX, 0, REJECT_FUNDS, "budget_micro"},
        {"too few slots for a subtask", OWN_PARTS, SLOTS, 1, 1, REJECT_QUANTITY, "slots"},
        {"a part that is not there", OWN_PARTS, PRICE, 1, 2, REJECT_NOT_FOUND, "part"},
        {"part 2^32 - 2", OWN_JOB, PRICE, 1, UINT32_MAX - 1, REJECT_NOT_FOUND, "part"},
        {"a job that has ended", ENDED_JOB, PRICE, 1, 0, REJECT_STATE, "order"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool is_ask = rows[i].target == OWN_ASK || rows[i].target == OTHERS_ASK;
        struct exchange_command made = command(EXCHANGE_REPLACE, is_ask ? PROVIDER : CONSUMER);
        made.replace = (struct exchange_replace){.order = id_of(rows[i].target),
                                                 .part = rows[i].part,
                                                 .has_slots = (rows[i].said & SLOTS) != 0,
                                                 .has_price = (rows[i].said & PRICE) != 0,
                                                 .has_budget = (rows[i].said & BUDGET) != 0,
                                                 .slots = (uint32_t)rows[i].value,
                                                 .price_micro = rows[i].value,
                                                 .budget_micro = rows[i].value};
        check_refused(rows[i].what, &made, rows[i].code, rows[i].named);
    }
}
END_TEST

START_TEST(cancels_that_are_wrong)
{
    const struct {
        const char *what;
        uint32_t account;
        enum target target;
        enum reject_code code;
    } rows[] = {
        {"no order", PROVIDER, NOBODYS, REJECT_NOT_FOUND},
        {"the order of another", PROVIDER, OTHERS_ASK, REJECT_NOT_FOUND},
        {"the job of another", PROVIDER, OWN_JOB, REJECT_NOT_FOUND},
        {"an ask, by a consumer", CONSUMER, OWN_ASK, REJECT_NOT_FOUND},
        {"a job's own order", CONSUMER, OWN_JOB, REJECT_STATE},
        {"that of one that has ended", CONSUMER, ENDED_JOB, REJECT_STATE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct exchange_command made = command(EXCHANGE_CANCEL_ORDER, rows[i].account);
        made.cancel_order.order = id_of(rows[i].target);
        check_refused(rows[i].what, &made, rows[i].code, "order");
    }
}
END_TEST

/* ---------------------------------------------------------------- ids */

static struct exchange_command good_ask(void)
{
    struct exchange_command made = command(EXCHANGE_ASK, PROVIDER);
    made.ask = (struct exchange_ask){.device = {{PROVIDER}}, .slots = 1, .price_micro = 5 * price};
    return made;
}

START_TEST(ids_that_were_used)
{
    struct exchange_command made = good_ask();
    made.id = ask_id; /* that command's, with another body */
    made.body.bytes[0] ^= 1;
    check_refused("an id with another body", &made, REJECT_ID_REUSED, "id");
    made = good_ask();
    made.id = other_ask;
    check_refused("the id of another's order", &made, REJECT_EXISTS, "id");
    made = submit_of(1, 10);
    made.id = job_id;
    made.body.bytes[0] ^= 1;
    check_refused("a job's id with another body", &made, REJECT_ID_REUSED, "id");
    made = good_ask();
    made.created_ms = (start_ns - 2 * DAY_NS) / NS_PER_MS;
    check_refused("an id of two days ago", &made, REJECT_ID_EXPIRED, "created_ms");
    made = good_ask();
    made.created_ms = INT64_MAX;
    check_refused("an id made in 2^63 - 1 ms", &made, REJECT_ID_EXPIRED, "created_ms");
    made = good_ask();
    made.created_ms = INT64_MIN;
    check_refused("an id made before all time", &made, REJECT_ID_EXPIRED, "created_ms");
}
END_TEST

/* ---------------------------------------------------------------- as people write it */

START_TEST(texts_that_are_no_price)
{
    static const char *const texts[] = {
        "",
        " ",
        "NaN",
        "nan",
        "inf",
        "-inf",
        "infinity",
        "1e3",
        "0x10",
        "1,5",
        "1.",
        ".5",
        "1.5.5",
        "--1",
        "+1",
        "1 000",
        "0.0000001",
        "9223372036854775807",
        "9223372036854.775808",
        "1e400",
        "١",
        "1€",
        "one",
        "1\n",
        "18446744073709551616",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t micro = 77;
        ck_assert_msg(units_money(texts[i], &micro) != UNITS_OK, "\"%s\" was read", texts[i]);
        ck_assert_int_eq(micro, 77);
        char why[256] = "";
        units_explain(UNITS_MONEY, units_money(texts[i], &micro), texts[i], why, sizeof why);
        ck_assert_uint_gt(strlen(why), 0);
    }
    int64_t micro;
    ck_assert_int_eq(units_money("9223372036854.775807", &micro), UNITS_OK);
    ck_assert_int_eq(micro, INT64_MAX);
}
END_TEST

SUITE("exchange refusals", set_up_orders, tear_down, TEST(asks_that_are_wrong),
      TEST(jobs_that_are_wrong), TEST(price_times_slots_times_term_is_more_than_there_is),
      TEST(at_market_price_there_is_always_as_much), TEST(replacements_that_are_wrong),
      TEST(cancels_that_are_wrong), TEST(ids_that_were_used), TEST(texts_that_are_no_price))
