/* Results are held until a referee has judged them. */
#include "tests/support/held_market.h"

#include "base/sha256.h"
#include "exchange/view/disputes.h"
#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

START_TEST(a_job_without_its_checks_is_refused)
{
    struct exchange_command made;
#define REFUSED(field_name, change)                                                                \
    made = checked_of(3, 10);                                                                      \
    change;                                                                                        \
    apply(&made);                                                                                  \
    check_rejected(REJECT_VERIFY);                                                                 \
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, field_name)
    REFUSED("verify", made.submit.part_count = 0);
    REFUSED("verify", (shape.checks.subtasks = 2));
    REFUSED("verify", made.submit.verify = EXCHANGE_VERIFY_UNKNOWN);
    REFUSED("graph", made.submit.graph = NULL);
    REFUSED("graph", shape.graph = (struct exchange_graph){0});
    REFUSED("graph.after", shape.after[2] = 1);
    REFUSED("graph.after_count", (shape.counts[4] = 2, shape.counts[5] = 0, shape.after[2] = 0));
    static struct requirement simulation;
    simulation.count = 1;
    simulation.nodes[0].op = REQUIREMENT_EQ;
    simulation.nodes[0].attribute = (struct attribute){.name = "simulated", .number = 1};
    REFUSED("needs", made.submit.needs = &simulation);
    REFUSED("parts.needs", shape.checks.needs = &simulation);
    simulation.nodes[0].attribute =
        (struct attribute){.name = "instrument", .is_text = true, .text = "sim.lpu.groq.v1"};
    REFUSED("needs", made.submit.needs = &simulation);
#undef REFUSED
    simulation.nodes[0].attribute =
        (struct attribute){.name = "simulated"}; /* = false: a machine */
    made = checked_of(3, 10);
    made.submit.needs = &simulation;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    static struct requirement large;
    large.count = REQUIREMENT_NODES_MAX - 1;
    for (uint32_t i = 0; i < large.count; i++) { /* one predicate, and nots of it */
        large.nodes[i].op = i == 0 ? REQUIREMENT_GE : REQUIREMENT_NOT;
        (void)strcpy(large.nodes[i].attribute.name, i == 0 ? "memory" : "");
    }
    made = checked_of(3, 10);
    shape.checks.needs = &large;
    apply(&made);
    check_rejected(REJECT_REQUIREMENT);
}
END_TEST

START_TEST(what_a_referee_takes_is_paid_and_names_the_check)
{
    struct held_case held;
    offer(MAKER, 1, price);
    held.job = submit_checked(1);
    held.work = sent_to(MAKER);
    offer(REFEREE, 1, price);
    const struct hash32 hash = answer(MAKER, held.job, held.work, OUTCOME_OK, VERDICT_NONE);
    const struct ledger_record *record = record_of(LEDGER_HELD);
    ck_assert(hash32_equal(&record->hash, &hash));
    ck_assert_uint_eq(record->batch_index, market.index);
    const uint64_t held_at = market.index;
    ck_assert_ptr_null(record_of(LEDGER_RESULT));
    ck_assert_ptr_null(record_of(LEDGER_CAPTURE));
    ck_assert_uint_eq(job_row(held.job).checking, 1);
    ck_assert_int_eq(balance(MAKER).available_micro, 0);

    struct exchange_work check = sent_to(REFEREE);
    ck_assert_uint_eq(check.index, 1);
    ck_assert_uint_eq(check.given_count, 1); /* what it is about */
    const struct hash32 seed = exchange_check_seed(&dice, &hash, check.index, check.attempt);
    ck_assert(hash32_equal(&check.seed, &seed));
    reload();

    const struct hash32 verdict = answer(REFEREE, held.job, check, OUTCOME_OK, VERDICT_ACCEPT);
    record = result_of(0);
    ck_assert_uint_eq(record->status, ATTEMPT_ACCEPTED);
    ck_assert_uint_eq(record->level, CHECK_CHEAP);
    ck_assert(hash32_equal(&record->check, &verdict));
    ck_assert(hash32_equal(&record->hash, &hash));
    ck_assert_uint_eq(record->batch_index, held_at);
    ck_assert_uint_eq(record->result_length, 6);
    ck_assert_mem_eq(record->result, "signed", 6);
    ck_assert_int_eq(record->charge_micro, MICRO_PER_CREDIT);
    ck_assert_uint_eq(result_of(1)->level, CHECK_NONE);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
    ck_assert_int_eq(balance(REFEREE).available_micro, MICRO_PER_CREDIT);
    ck_assert_uint_eq(job_row(held.job).state, JOB_DONE);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

START_TEST(a_seed_is_of_dice_result_check_and_attempt)
{
    /* SHA-256 of "bourse/check/v1\0", dice, hash, u32le 9, u32le 2. */
    const struct hash32 hash = {{3}};
    uint8_t bytes[16 + 32 + 32 + 8] = "bourse/check/v1";
    memcpy(bytes + 16, dice.bytes, 32);
    memcpy(bytes + 48, hash.bytes, 32);
    bytes[80] = 9;
    bytes[84] = 2;
    const struct hash32 expected = sha256_of(bytes, sizeof bytes);
    const struct hash32 seed = exchange_check_seed(&dice, &hash, 9, 2);
    ck_assert(hash32_equal(&seed, &expected));
}
END_TEST

START_TEST(one_reject_holds_a_result_and_a_second_owners_refutes_it)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_REJECT);
    ck_assert_uint_eq(result_of(1)->status, ATTEMPT_FAILED_PAID); /* work, too */
    ck_assert_uint_eq(job_row(held.job).checking, 1);
    ck_assert_uint_eq(job_row(held.job).accused, 1);
    ck_assert(!is_sent_to(REFEREE));
    const struct exchange_work second = sent_to(SECOND);
    ck_assert_uint_eq(second.index, 1);
    ck_assert(!hash32_equal(&second.seed, &held.check.seed));
    reload();
    offer(THIRD, 1, price);
    (void)answer(SECOND, held.job, second, OUTCOME_OK, VERDICT_REJECT);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_REFUTED);
    ck_assert_uint_eq(result_of(0)->level, CHECK_CHEAP);
    ck_assert_int_eq(result_of(0)->charge_micro, 0);
    ck_assert_uint_eq(result_of(1)->status, ATTEMPT_FAILED_PAID);
    ck_assert_int_eq(balance(MAKER).available_micro, 0);
    ck_assert_uint_eq(job_row(held.job).checking, 0);
    ck_assert_uint_eq(job_row(held.job).accused, 0);
    ck_assert_uint_eq(exchange_standing(market.exchange, MAKER).refuted, 1);

    const struct exchange_work again = sent_to(THIRD); /* who judged it does not make it */
    ck_assert_uint_eq(again.index, 0);
    ck_assert_uint_eq(again.attempt, 2);
    reload();
    done(THIRD, held.job, again);
    const uint32_t by = is_sent_to(SECOND) ? SECOND : REFEREE;
    (void)answer(by, held.job, sent_to(by), OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(held.job).state, JOB_DONE);
    ck_assert_int_eq(balance(MAKER).available_micro, 0);
    ck_assert_int_eq(balance(CONSUMER).available_micro, 996 * MICRO_PER_CREDIT);
}
END_TEST

START_TEST(a_lone_reject_is_overruled_and_its_referee_is_asked_no_more)
{
    offer(MAKER, 1, price);
    struct id128 job = submit_checked(2);
    make_all(job, 2);
    offer(REFEREE, 1, price);
    (void)answer(REFEREE, job, sent_to(REFEREE), OUTCOME_OK, VERDICT_REJECT);
    struct exchange_work next = sent_to(REFEREE); /* of the other result */
    offer(SECOND, 1, price);
    (void)answer(SECOND, job, sent_to(SECOND), OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_ACCEPTED);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
    ck_assert_uint_eq(exchange_standing(market.exchange, REFEREE).overruled, 1);
    ck_assert_uint_eq(exchange_standing(market.exchange, MAKER).refuted, 0);
    reload();
    (void)answer(REFEREE, job, next, OUTCOME_OK, VERDICT_UNSURE); /* which it had already */
    ck_assert(!is_sent_to(REFEREE));
    (void)answer(SECOND, job, sent_to(SECOND), OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

START_TEST(a_hostile_referee_gets_neither_the_maker_refused_nor_the_work)
{
    struct held_case held = hold_one();
    for (int i = 0; i < 20; i++) { /* nobody else comes: it is held */
        if (is_sent_to(REFEREE)) {
            (void)answer(REFEREE, held.job, sent_to(REFEREE), OUTCOME_OK, VERDICT_REJECT);
        }
        market.now_ns += 30 * NS_PER_S;
        tick();
        ck_assert_uint_eq(job_row(held.job).checking, 1);
    }
    ck_assert_uint_eq(exchange_standing(market.exchange, MAKER).refuted, 0);
    ck_assert_uint_eq(job_row(held.job).reason, JOB_REASON_REFEREE);
    struct exchange_dispute dispute;
    ck_assert_uint_eq(exchange_disputes(market.exchange, &held.job, 0, &dispute, 1, NULL), 1);
    ck_assert_uint_eq(dispute.accuser, REFEREE);
    ck_assert(hash32_equal(&dispute.seed, &held.check.seed));
    ck_assert(!dispute.has_referee);
    offer(NO_REFEREE, 1, price);
    ck_assert_uint_eq(exchange_disputes(market.exchange, &held.job, 0, &dispute, 1, NULL), 1);
    ck_assert(!dispute.has_referee);
    offer(SECOND, 1, price);
    (void)answer(SECOND, held.job, sent_to(SECOND), OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(held.job).state, JOB_DONE);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
}
END_TEST

START_TEST(two_accounts_of_one_owner_are_one_referee)
{
    struct held_case held = hold_one();
    group("lab", 2, (const uint8_t[]){3, 5}); /* REFEREE and SECOND */
    ck_assert_str_eq(record_of(LEDGER_FLAG)->name, "owner");
    ck_assert_str_eq(exchange_standing(market.exchange, SECOND).owner, "lab");
    reload();
    offer(SECOND, 1, price);
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_REJECT);
    ck_assert(!is_sent_to(SECOND));
    ck_assert_uint_eq(job_row(held.job).checking, 1);
    group("", 1, (const uint8_t[]){5});
    ck_assert_str_eq(exchange_standing(market.exchange, SECOND).owner, "");
    (void)answer(SECOND, held.job, sent_to(SECOND), OUTCOME_OK, VERDICT_REJECT);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_REFUTED);
}
END_TEST

START_TEST(no_account_judges_or_makes_for_another_of_its_owner)
{
    group("lab", 2, (const uint8_t[]){2, 3}); /* MAKER and REFEREE */
    offer(MAKER, 1, price);
    struct id128 job = submit_checked(1);
    struct exchange_work work = sent_to(MAKER);
    offer(REFEREE, 1, price);
    done(MAKER, job, work);
    ck_assert(!is_sent_to(REFEREE));
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_REFEREE);
    offer(SECOND, 1, price);
    struct exchange_work check = sent_to(SECOND);
    offer(THIRD, 1, price);
    (void)answer(SECOND, job, check, OUTCOME_OK, VERDICT_REJECT);
    check = sent_to(THIRD);
    group("lab", 1, (const uint8_t[]){6});      /* NO_REFEREE, which changes nothing here */
    group("other", 2, (const uint8_t[]){5, 6}); /* SECOND judged: nor may NO_REFEREE make it now */
    presence(EXCHANGE_GOODBYE, REFEREE);
    offer(NO_REFEREE, 1, price);
    (void)answer(THIRD, job, check, OUTCOME_OK, VERDICT_REJECT);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_REFUTED);
    ck_assert(!is_sent_to(NO_REFEREE));
    reload();
    group("", 1, (const uint8_t[]){6});
    ck_assert_uint_eq(sent_to(NO_REFEREE).index, 0);
}
END_TEST

START_TEST(a_grouping_is_the_operators_and_of_accounts_that_exist)
{
    struct key32 accounts[] = {{{2}}, {{99}}};
    struct exchange_command owner = command(EXCHANGE_OWNER, CONSUMER);
    owner.owner = (struct exchange_owner){.accounts = accounts, .count = 1, .name = "lab"};
    apply(&owner);
    check_rejected(REJECT_ROLE);
    owner = command(EXCHANGE_OWNER, OPERATOR);
    owner.owner = (struct exchange_owner){.accounts = accounts, .count = 2, .name = "lab"};
    apply(&owner);
    check_rejected(REJECT_NOT_FOUND);
    ck_assert_str_eq(exchange_standing(market.exchange, MAKER).owner, "");
    owner = command(EXCHANGE_OWNER, OPERATOR);
    owner.owner = (struct exchange_owner){.accounts = accounts, .name = "lab"};
    apply(&owner);
    check_rejected(REJECT_QUANTITY);
}
END_TEST

START_TEST(what_was_begun_before_two_became_one_owners_does_not_count)
{
    struct held_case held = hold_one();
    group("lab", 2, (const uint8_t[]){2, 3}); /* MAKER, and REFEREE, who is at it */
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(result_of(1)->status, ATTEMPT_FAILED_PAID);
    ck_assert_uint_eq(job_row(held.job).checking, 1);
    ck_assert_uint_eq(job_row(held.job).accused, 0);
    offer(SECOND, 1, price);
    (void)answer(SECOND, held.job, sent_to(SECOND), OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(held.job).state, JOB_DONE);
}
END_TEST

START_TEST(who_left_is_paid_for_what_is_taken_later)
{
    struct held_case held = hold_one();
    presence(EXCHANGE_GOODBYE, MAKER);
    check_hash();
    reload();
    ck_assert_int_eq(job_row(held.job).reserved_micro,
                     MICRO_PER_CREDIT + 20 * MICRO_PER_CREDIT); /* what is due, and the referee's */
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

START_TEST(small_sums_neither_vanish_nor_double)
{
    offer(MAKER, 1, 1500); /* a second costs less than half a micro-credit */
    struct id128 job = submit_checked(6);
    make_all(job, 6);
    int64_t charged_micro = 0;
    offer(REFEREE, 1, 0);
    struct exchange_work sent[6];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 6; i++) {
        for (size_t k = 0; k < market.effects.count; k++) {
            if (market.effects.items[k].type == EFFECT_DISPATCH) {
                sent[count++] = market.effects.items[k].work;
            }
        }
        ck_assert_uint_lt(i, count);
        (void)answer(REFEREE, job, sent[i], OUTCOME_OK, VERDICT_ACCEPT);
        charged_micro += result_of(sent[i].index - 6)->charge_micro;
    }
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_int_eq(charged_micro, 6 * 1500 / 3600);
    ck_assert_int_eq(charged_micro, balance(MAKER).available_micro);
}
END_TEST

START_TEST(an_epoch_shows_the_secret_that_it_promised)
{
    const struct hash32 secret = {{1, 2, 3}};
    struct exchange_command epoch = command(EXCHANGE_EPOCH, EXCHANGE_NO_ACCOUNT);
    epoch.epoch = (struct exchange_epoch){.commitment = sha256_of(secret.bytes, 32)};
    apply(&epoch);
    const struct ledger_record *record = record_of(LEDGER_EPOCH);
    ck_assert(hash32_equal(&record->hash, &epoch.epoch.commitment));
    check_hash();
    reload();

    epoch = command(EXCHANGE_EPOCH, EXCHANGE_NO_ACCOUNT);
    epoch.epoch = (struct exchange_epoch){.commitment = {{8}}, .secret = {{1, 2, 4}}};
    apply(&epoch); /* not what was promised */
    ck_assert_ptr_null(record_of(LEDGER_EPOCH));
    struct hash32 commitment;
    ck_assert_uint_eq(exchange_epochs(market.exchange, &commitment), 1);

    epoch = command(EXCHANGE_EPOCH, EXCHANGE_NO_ACCOUNT);
    epoch.epoch = (struct exchange_epoch){.commitment = {{8}}, .secret = secret};
    apply(&epoch);
    ck_assert(hash32_equal(&record_of(LEDGER_EPOCH)->check, &secret));
    ck_assert_uint_eq(exchange_epochs(market.exchange, &commitment), 2);
    ck_assert_uint_eq(commitment.bytes[0], 8);
}
END_TEST

SUITE("checks", set_up_referees, tear_down, TEST(a_job_without_its_checks_is_refused),
      TEST(what_a_referee_takes_is_paid_and_names_the_check),
      TEST(a_seed_is_of_dice_result_check_and_attempt),
      TEST(one_reject_holds_a_result_and_a_second_owners_refutes_it),
      TEST(a_lone_reject_is_overruled_and_its_referee_is_asked_no_more),
      TEST(a_hostile_referee_gets_neither_the_maker_refused_nor_the_work),
      TEST(two_accounts_of_one_owner_are_one_referee),
      TEST(no_account_judges_or_makes_for_another_of_its_owner),
      TEST(a_grouping_is_the_operators_and_of_accounts_that_exist),
      TEST(what_was_begun_before_two_became_one_owners_does_not_count),
      TEST(who_left_is_paid_for_what_is_taken_later), TEST(small_sums_neither_vanish_nor_double),
      TEST(an_epoch_shows_the_secret_that_it_promised))
