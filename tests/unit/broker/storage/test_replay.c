/* The tests ask what a verification says of a journal that it cannot replay. */
#include "broker/storage/replay.h"

#include "broker/core/translate.h"
#include "broker/storage/entry.h"
#include "broker/storage/snapshot/snapshots.h"
#include "tests/support/small_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct small_market market;
static struct problem problem;

static void begin(void)
{
    small_market_create(&market, NULL, NULL);
    problem.text[0] = '\0';
}

static void end(void)
{
    small_market_destroy(&market);
}

/* Goes on as a broker of another release: limits under its rules, then a command of its own. */
static void go_on_under(uint32_t rules)
{
    uint8_t payload[TRANSLATE_LIMITS_BYTES];
    const struct exchange_set_limits set = {.rules = rules, .limits = exchange_limits_default()};
    const int64_t late = INT64_MAX / 2;
    translate_limits(&set, payload);
    const struct entry_command commands[] = {
        {.log_time_ns = late,
         .account = UINT32_MAX,
         .kind = ENTRY_LIMITS,
         .payload = payload,
         .payload_length = sizeof payload},
        {.log_time_ns = late, .account = UINT32_MAX, .kind = ENTRY_TICK},
    };
    (void)small_market_go_on(&market, commands, 2);
}

/* A replay over a change to the next rules needs no snapshot. Other rules need a program. */
START_TEST(a_start_goes_over_a_change_of_rules_that_it_knows)
{
    static const struct {
        uint32_t rules;
        const char *says;
    } cases[] = {
        {EXCHANGE_RULES - 1, NULL},
        {EXCHANGE_RULES, NULL},
        {EXCHANGE_RULES + 1, "start a newer release"},
        {EXCHANGE_RULES - 2, "start and cleanly stop the release before this one"},
    };
    sqlite3 *database;
    const struct exchange_limits limits = exchange_limits_default();
    struct exchange *exchange = exchange_create(&limits);
    go_on_under(cases[_i].rules);
    ck_assert_int_eq(sqlite3_open(market.database, &database), SQLITE_OK);
    const bool good = snapshots_apply(database, exchange, 1, SMALL_MARKET_ENTRIES + 1, &problem);
    ck_assert_int_eq(good, cases[_i].says == NULL);
    ck_assert_msg(good || strstr(problem.text, cases[_i].says) != NULL, "%s", problem.text);
    ck_assert(!good || exchange_rules(exchange) == cases[_i].rules);
    ck_assert_int_eq(sqlite3_close(database), SQLITE_OK);
    exchange_destroy(&exchange);
}
END_TEST

/* Rebuilds the market up to entry `last` with a fresh exchange. */
static struct exchange *replayed(uint64_t last, bool *ret_good)
{
    sqlite3 *database;
    const struct exchange_limits limits = exchange_limits_default();
    struct exchange *exchange = exchange_create(&limits);
    ck_assert_int_eq(sqlite3_open(market.database, &database), SQLITE_OK);
    *ret_good = snapshots_apply(database, exchange, 1, last, &problem);
    ck_assert_int_eq(sqlite3_close(database), SQLITE_OK);
    return exchange;
}

/* A tick may say what state the broker had that wrote it. */
START_TEST(a_state_in_a_tick_is_compared)
{
    bool good = false;
    struct exchange *exchange = replayed(SMALL_MARKET_ENTRIES, &good);
    ck_assert(good);
    struct hash32 state = exchange_state_hash(exchange);
    exchange_destroy(&exchange);
    state.bytes[31] ^= (uint8_t)_i;
    const struct entry_command tick = {.log_time_ns = INT64_MAX / 2,
                                       .account = UINT32_MAX,
                                       .kind = ENTRY_TICK,
                                       .payload = state.bytes,
                                       .payload_length = sizeof state.bytes};
    (void)small_market_go_on(&market, &tick, 1);
    exchange = replayed(SMALL_MARKET_ENTRIES + 1, &good);
    ck_assert_int_eq(good, _i == 0);
    ck_assert(good || strstr(problem.text, "another state") != NULL);
    exchange_destroy(&exchange);
}
END_TEST

START_TEST(what_cannot_be_read_is_no_difference)
{
    struct replay_summary summary;
    ck_assert_int_eq(unlink(market.database), 0);
    ck_assert_int_eq(replay_check(market.folder, &summary, &problem), REPLAY_FAILED);
    ck_assert_str_ne(problem.text, "");
}
END_TEST

START_TEST(a_journal_without_an_entry_is_a_difference)
{
    struct replay_summary summary;
    small_market_sql(&market, "DELETE FROM journal WHERE idx = 2");
    ck_assert_int_eq(replay_check(market.folder, &summary, &problem), REPLAY_WRONG);
    ck_assert_ptr_nonnull(
        strstr(problem.text, "table journal: the chain at entry 2 differs from its"));
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("replay");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, a_start_goes_over_a_change_of_rules_that_it_knows, 0, 4);
    tcase_add_loop_test(tests, a_state_in_a_tick_is_compared, 0, 2);
    tcase_add_test(tests, what_cannot_be_read_is_no_difference);
    tcase_add_test(tests, a_journal_without_an_entry_is_a_difference);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
