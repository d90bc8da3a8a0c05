/* Checkpoints in the exchange: what is kept of an attempt that is preempted, who goes on from it,
 * and what is paid. */
#include "exchange/policy.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

enum { LOW = CONSUMER, HIGH = OPERATOR, NOTICE_S = 5 };
static const struct exchange_terms spot = {.is_interruptible = true,
                                           .notice_ns = NOTICE_S * NS_PER_S};

/* One provider, whose one slot may be taken; the job that has it saves its state. */
static struct id128 low, high;
static struct exchange_work work;
static bool is_missing; /* the broker does not find what results name */
static bool is_lie;     /* the broker has what results say is missing */

static struct exchange_command bid_of(uint32_t account, int64_t cap, bool has_checkpoints)
{
    struct exchange_command made = submit_of(1, 150);
    made.account = account;
    made.submit.cap_micro = cap;
    made.submit.has_checkpoints = has_checkpoints;
    return made;
}

static struct id128 bid(uint32_t account, int64_t cap, bool has_checkpoints)
{
    struct exchange_command made = bid_of(account, cap, has_checkpoints);
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

static void ask(struct exchange_terms terms)
{
    struct exchange_command made = command(EXCHANGE_ASK, PROVIDER);
    made.ask =
        (struct exchange_ask){.device = {{1}}, .slots = 1, .price_micro = price, .terms = terms};
    apply(&made);
}

static void open_market(void)
{
    static struct attribute kind = {.name = "kind", .is_text = true, .text = "cpu"};
    static const struct exchange_device device = {
        .device = {{1}}, .slots = 1, .attributes = &kind, .attribute_count = 1, .label = "a cpu"};
    memset(&market, 0, sizeof market);
    struct exchange_limits limits = exchange_limits_default();
    limits.asks = limits.jobs = limits.leases = 64;
    market.exchange = exchange_create(&limits);
    market.now_ns = start_ns;
    struct exchange_genesis_account accounts[4];
    memset(accounts, 0, sizeof accounts);
    for (uint32_t i = 0; i < 4; i++) {
        accounts[i].key.bytes[0] = (uint8_t)(i + 1);
        accounts[i].roles = LOW + i == PROVIDER ? ROLE_PROVIDER : ROLE_CONSUMER;
        accounts[i].credits_micro = 1000 * MICRO_PER_CREDIT;
    }
    struct exchange_command genesis = command(EXCHANGE_GENESIS, EXCHANGE_NO_ACCOUNT);
    genesis.genesis = (struct exchange_genesis){
        .cluster = {{7}}, .price_band_micro = 10 * price, .accounts = accounts, .account_count = 4};
    apply(&genesis);
    struct exchange_command made = command(EXCHANGE_ADVERTISE, PROVIDER);
    made.advertise = (struct exchange_advertise){&device, 1};
    apply(&made);
    ask(spot);
}

static void wait_s(int64_t seconds)
{
    market.now_ns += seconds * NS_PER_S;
    struct exchange_command tick = command(EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    apply(&tick);
}

/* `saved`: the checkpoint that it leaves; "" is none. */
static void answer(struct id128 job, uint8_t outcome, int64_t busy_s, const char *saved)
{
    struct exchange_result one = {.job = job,
                                  .index = work.index,
                                  .attempt = work.attempt,
                                  .lease = work.lease,
                                  .device = {{1}},
                                  .manifest = {{9}},
                                  .outcome = outcome,
                                  .busy_ns = busy_s * NS_PER_S,
                                  .saved = (const uint8_t *)saved,
                                  .saved_length = (uint32_t)strlen(saved),
                                  .is_missing =
                                      is_missing || (outcome == OUTCOME_INPUT_MISSING && !is_lie)};
    struct exchange_command made = command(EXCHANGE_RESULTS, PROVIDER);
    made.results = (struct exchange_results){.results = &one, .count = 1};
    apply(&made);
    check_hash();
}

static void begin(bool has_checkpoints)
{
    low = bid(LOW, 2 * price, has_checkpoints);
    work = nth(EFFECT_DISPATCH, 0)->work;
}

/* Another takes the lease; the attempt ends three seconds later. */
static void preempt(const char *saved)
{
    high = bid(HIGH, 3 * price, false);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_NOTICE), 1);
    market.now_ns += 3 * NS_PER_S;
    answer(low, OUTCOME_PREEMPTED, 3, saved);
}

/* The one that took it goes, and the job has the slot again. */
static void go_on(void)
{
    struct exchange_command made = command(EXCHANGE_CANCEL_JOB, HIGH);
    made.cancel_job.job = high;
    work = nth(EFFECT_DISPATCH, 0)->work;
    apply(&made);
    answer(high, OUTCOME_CANCELLED, 0, "");
    ck_assert_ptr_nonnull(nth(EFFECT_DISPATCH, 0));
    work = nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(work.index, 0);
}

static void check_paid(uint8_t status, int64_t seconds)
{
    const struct ledger_record *record = record_of(LEDGER_RESULT);
    ck_assert_uint_eq(record->status, status);
    ck_assert_int_eq(record->paid_ns, seconds * NS_PER_S);
    ck_assert_int_eq(record->charge_micro, seconds * MICRO_PER_CREDIT);
}

static void check_given(const char *saved, uint32_t by)
{
    ck_assert_uint_eq(work.saved.length, strlen(saved));
    ck_assert(memcmp(work.saved.bytes, saved, work.saved.length) == 0);
    ck_assert_uint_eq(work.saved_by, by);
}

START_TEST(what_was_saved_is_paid_and_the_next_attempt_goes_on_from_it)
{
    begin(true);
    ck_assert_uint_eq(work.saved.length, 0);
    preempt("at 3");
    check_paid(ATTEMPT_FAILED_PAID, 3);
    ck_assert_uint_eq(job_row(low).saved, 1);
    const int64_t before = balance(PROVIDER).available_micro;
    go_on();
    check_given("at 3", 1);
    reload();
    answer(low, OUTCOME_OK, 0, "");
    ck_assert_uint_eq(job_row(low).state, JOB_DONE);
    ck_assert_uint_eq(job_row(low).saved, 0);
    ck_assert_int_eq(balance(PROVIDER).available_micro, before);
    reload();
}
END_TEST

START_TEST(where_nothing_was_saved_the_attempt_is_free)
{
    begin(true);
    preempt("");
    check_paid(ATTEMPT_FAILED_UNPAID, 0);
    ck_assert_int_eq(balance(PROVIDER).available_micro, 1000 * MICRO_PER_CREDIT);
    ck_assert_int_eq(job_row(low).reserved_micro, 0);
    go_on();
    ck_assert_uint_eq(work.saved.length, 0); /* from the beginning */
}
END_TEST

START_TEST(what_was_saved_and_never_stored_is_free)
{
    begin(true);
    is_missing = true;
    preempt("at 3");
    is_missing = false;
    check_paid(ATTEMPT_FAILED_UNPAID, 0);
    ck_assert_uint_eq(nth(EFFECT_REJECT, 0)->reject.code, REJECT_OUTPUT_NOT_STORED);
    ck_assert_uint_eq(job_row(low).saved, 0); /* nobody is given what is not there */
    ck_assert_uint_eq(job_row(low).failed, 0);
    reload();
}
END_TEST

START_TEST(without_the_declaration_it_is_paid_as_ever_and_nothing_is_kept)
{
    begin(false);
    preempt("at 3");
    check_paid(ATTEMPT_FAILED_PAID, 3);
    ck_assert_uint_eq(job_row(low).saved, 0);
    go_on();
    ck_assert_uint_eq(work.saved.length, 0);
}
END_TEST

START_TEST(twice_preempted_it_goes_on_from_the_newest)
{
    begin(true);
    preempt("at 3");
    go_on();
    preempt("at 6");
    check_paid(ATTEMPT_FAILED_PAID, 3);
    go_on();
    check_given("at 6", 2);
    ck_assert_uint_eq(job_row(low).saved, 1);
    reload();
    market.now_ns += NS_PER_S;
    answer(low, OUTCOME_OK, 1, "");
    ck_assert_uint_eq(job_row(low).state, JOB_DONE);
    ck_assert_int_eq(job_row(low).charged_micro, 7 * MICRO_PER_CREDIT);
}
END_TEST

START_TEST(what_it_was_given_itself_is_nothing_new)
{
    begin(true);
    preempt("at 3");
    go_on();
    preempt("at 3");
    check_paid(ATTEMPT_FAILED_UNPAID, 0);
    go_on();
    check_given("at 3", 1); /* it is kept all the same */
}
END_TEST

START_TEST(one_that_is_not_there_twice_is_given_up)
{
    struct exchange_command made = bid_of(LOW, 2 * price, true);
    made.submit.crash_limit = 0;
    apply(&made);
    low = made.id;
    work = nth(EFFECT_DISPATCH, 0)->work;
    preempt("at 3");
    go_on();
    answer(low, OUTCOME_INPUT_MISSING, 0, "");
    check_paid(ATTEMPT_FAILED_UNPAID, 0);
    reload();
    work = nth(EFFECT_DISPATCH, 0)->work;
    check_given("at 3", 1);
    answer(low, OUTCOME_INPUT_MISSING, 0, "");
    ck_assert_uint_eq(job_row(low).saved, 0);
    work = nth(EFFECT_DISPATCH, 0)->work; /* at once: its provider has not failed it */
    ck_assert_uint_eq(work.saved.length, 0);
    answer(low, OUTCOME_INPUT_MISSING, 0, ""); /* of other files */
    ck_assert_uint_eq(job_row(low).state, JOB_FAILED);
}
END_TEST

START_TEST(one_that_the_broker_has_is_kept_whatever_a_provider_says)
{
    begin(true);
    preempt("at 3");
    go_on();
    is_lie = true;
    for (int i = 0; i < 2; i++) { /* so often a checkpoint that is not there is given up */
        answer(low, OUTCOME_INPUT_MISSING, 0, "");
        check_paid(ATTEMPT_FAILED_UNPAID, 0);
        ck_assert_uint_eq(job_row(low).saved, 1);
        wait_s(AVOID_NS / NS_PER_S);
        ck_assert_ptr_nonnull(nth(EFFECT_DISPATCH, 0));
        work = nth(EFFECT_DISPATCH, 0)->work;
        check_given("at 3", 1);
        reload();
    }
    is_lie = false;
}
END_TEST

START_TEST(a_program_that_fails_from_it_begins_anew_and_that_counts)
{
    begin(true);
    preempt("lies");
    go_on();
    market.now_ns += NS_PER_S;
    answer(low, OUTCOME_PROGRAM_FAILED, 1, "");
    check_paid(ATTEMPT_FAILED_PAID, 1); /* it ran */
    ck_assert_uint_eq(job_row(low).state, JOB_OPEN);
    ck_assert_uint_eq(job_row(low).saved, 0);
    work = nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(work.saved.length, 0);
    answer(low, OUTCOME_PROGRAM_FAILED, 0, "");
    ck_assert_uint_eq(job_row(low).state, JOB_FAILED);
}
END_TEST

START_TEST(one_that_leaves_by_itself_is_not_paid_but_what_it_saved_counts)
{
    begin(true);
    market.now_ns += 3 * NS_PER_S;
    answer(low, OUTCOME_CANCELLED, 3, "at 3");
    check_paid(ATTEMPT_FAILED_UNPAID, 0);
    ck_assert_uint_eq(job_row(low).saved, 1);
    reload();
    wait_s(10); /* it is avoided for a while */
    work = nth(EFFECT_DISPATCH, 0)->work;
    check_given("at 3", 1);
}
END_TEST

START_TEST(nobody_is_preempted_who_was_not_told_to_end)
{
    begin(true);
    market.now_ns += 3 * NS_PER_S;
    answer(low, OUTCOME_PREEMPTED, 3, "at 3");
    check_paid(ATTEMPT_FAILED_UNPAID, 0);
}
END_TEST

START_TEST(saving_may_take_its_time)
{
    begin(true);
    high = bid(HIGH, 3 * price, false);
    wait_s(NOTICE_S + 59);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 0);
    reload();
    answer(low, OUTCOME_PREEMPTED, 1000, "at 5");
    check_paid(ATTEMPT_FAILED_PAID, NOTICE_S); /* no more than the lease had */
    ck_assert_uint_eq(job_row(low).saved, 1);
}
END_TEST

START_TEST(but_not_for_ever)
{
    begin(true);
    high = bid(HIGH, 3 * price, false);
    wait_s(NOTICE_S + 60);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    answer(low, OUTCOME_PREEMPTED, 3, "at 3");
    check_paid(ATTEMPT_LATE, 0);
    ck_assert_uint_eq(job_row(low).saved, 0);
}
END_TEST

START_TEST(more_than_is_kept_of_one_is_nothing_saved)
{
    static char large[16386];
    memset(large, 'x', sizeof large - 1);
    begin(true);
    preempt(large);
    check_paid(ATTEMPT_FAILED_UNPAID, 0);
    ck_assert_uint_eq(job_row(low).saved, 0);
}
END_TEST

START_TEST(an_agent_that_lost_its_work_is_given_it_again)
{
    begin(true);
    preempt("at 3");
    go_on();
    const struct exchange_held held = {.lease = work.lease};
    struct exchange_command made = command(EXCHANGE_STATEMENT, PROVIDER);
    made.statement = (struct exchange_statement){.held = &held, .count = 1};
    apply(&made);
    ck_assert_ptr_nonnull(nth(EFFECT_DISPATCH, 0));
    work = nth(EFFECT_DISPATCH, 0)->work;
    check_given("at 3", 1);
    check_hash();
    reload();
}
END_TEST

START_TEST(a_job_that_is_cancelled_keeps_none)
{
    begin(true);
    preempt("at 3");
    struct exchange_command made = command(EXCHANGE_CANCEL_JOB, LOW);
    made.cancel_job.job = low;
    apply(&made);
    ck_assert_uint_eq(job_row(low).saved, 0);
    reload();
}
END_TEST

static bool visit_saved(void *context, uint64_t lease, uint32_t index,
                        const struct exchange_given *given)
{
    ck_assert_uint_eq(index, work.index);
    ck_assert_uint_eq(lease, work.lease);
    ck_assert_uint_eq(given->length, strlen("at 3"));
    ++*(int *)context;
    return true;
}

START_TEST(who_goes_on_from_one_may_read_it)
{
    int seen = 0;
    begin(true);
    preempt("at 3");
    ck_assert(exchange_each_saved(market.exchange, visit_saved, &seen));
    ck_assert_int_eq(seen, 0); /* nobody runs it */
    go_on();
    ck_assert(exchange_each_saved(market.exchange, visit_saved, &seen));
    ck_assert_int_eq(seen, 1);
}
END_TEST

START_TEST(some_jobs_cannot_save)
{
    struct exchange_command made = bid_of(LOW, price, true);
    made.submit.subtasks = 65537;
    apply(&made);
    check_rejected(REJECT_QUANTITY);
    made = bid_of(LOW, price, true);
    made.submit.verify = EXCHANGE_VERIFY_CHEAP;
    apply(&made);
    check_rejected(REJECT_VERIFY);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "checkpoint");
}
END_TEST

SUITE("saved", open_market, tear_down,
      TEST(what_was_saved_is_paid_and_the_next_attempt_goes_on_from_it),
      TEST(where_nothing_was_saved_the_attempt_is_free),
      TEST(what_was_saved_and_never_stored_is_free),
      TEST(without_the_declaration_it_is_paid_as_ever_and_nothing_is_kept),
      TEST(twice_preempted_it_goes_on_from_the_newest),
      TEST(what_it_was_given_itself_is_nothing_new), TEST(one_that_is_not_there_twice_is_given_up),
      TEST(one_that_the_broker_has_is_kept_whatever_a_provider_says),
      TEST(a_program_that_fails_from_it_begins_anew_and_that_counts),
      TEST(one_that_leaves_by_itself_is_not_paid_but_what_it_saved_counts),
      TEST(nobody_is_preempted_who_was_not_told_to_end), TEST(saving_may_take_its_time),
      TEST(but_not_for_ever), TEST(more_than_is_kept_of_one_is_nothing_saved),
      TEST(an_agent_that_lost_its_work_is_given_it_again), TEST(a_job_that_is_cancelled_keeps_none),
      TEST(who_goes_on_from_one_may_read_it), TEST(some_jobs_cannot_save))
