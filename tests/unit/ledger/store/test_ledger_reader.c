/* Readers of the ledger find receipts, outcomes, trades and statements of the finished small
 * market. */
#include "ledger/store/sqlite.h"

#include "base/sha256.h"
#include "ledger/accounts.h"
#include "ledger/receipt.h"
#include "ledger/store/tree_cache.h"
#include "tests/support/checked_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* Stores a node as the ledger does. */
static void store_node(void *database, unsigned level, uint64_t index, const struct hash32 *hash)
{
    sqlite3_stmt *insert;
    if (level % TREE_LEVEL_STEP != 0) {
        return;
    }
    ck_assert_int_eq(
        sqlite3_prepare_v2(database, "INSERT INTO tree VALUES(?1, ?2, ?3)", -1, &insert, NULL),
        SQLITE_OK);
    (void)sqlite3_bind_int64(insert, 1, level);
    (void)sqlite3_bind_int64(insert, 2, (sqlite3_int64)index);
    (void)sqlite3_bind_blob(insert, 3, hash->bytes, sizeof hash->bytes, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(insert), SQLITE_DONE);
    (void)sqlite3_finalize(insert);
}

START_TEST(receipts_of_every_decided_subtask_verify)
{
    struct small_market market;
    struct ledger_reader *reader;
    static char text[RECEIPT_TEXT_MAX];
    static uint8_t scratch[RECEIPT_TEXT_MAX];
    static const size_t decided[] = {0, 2, 3}; /* subtask 1 by its second attempt */
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    for (uint32_t index = 0; index < 3; index++) {
        size_t length;
        struct receipt receipt;
        ck_assert_int_eq(ledger_reader_receipt(reader, &market.cluster, &market.job, index, text,
                                               sizeof text, &length),
                         LEDGER_STORE_OK);
        ck_assert_int_eq(receipt_verify(text, length, "bourse.test/small", identity_key(market.log),
                                        scratch, sizeof scratch, &receipt),
                         RECEIPT_OK);
        ck_assert_uint_eq(receipt.leaf.index, index);
        ck_assert_uint_eq(receipt.leaf.attempt, index == 1 ? 2 : 1);
        ck_assert(hash32_equal(&receipt.leaf.hash, &market.results[decided[index]]));
        ck_assert_int_eq(ledger_reader_receipt(reader, &market.cluster, &market.job, index, text,
                                               length, &length),
                         LEDGER_STORE_FULL);
    }
    size_t length;
    ck_assert_int_eq(
        ledger_reader_receipt(reader, &market.cluster, &market.job, 3, text, sizeof text, &length),
        LEDGER_STORE_NOT_FOUND);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

static void check_same_as_alone(struct ledger_reader *reader, const struct small_market *market,
                                const struct receipt *receipt)
{
    static char text[RECEIPT_TEXT_MAX];
    static char alone[RECEIPT_TEXT_MAX];
    size_t length;
    ck_assert_int_eq(ledger_reader_receipt(reader, &market->cluster, &market->job,
                                           receipt->leaf.index, alone, sizeof alone, &length),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(receipt_write(receipt, text, sizeof text), length);
    ck_assert_str_eq(text, alone);
}

START_TEST(receipts_of_a_page_are_those_that_come_alone)
{
    struct small_market market;
    struct ledger_reader *reader;
    struct ledger_receipts page;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(
        ledger_reader_receipts(reader, &market.cluster, &market.job, 0, 1 << 20, &page),
        LEDGER_STORE_OK);
    ck_assert_uint_eq(page.count, 3);
    ck_assert(!page.has_next);
    for (size_t i = 0; i < page.count; i++) {
        check_same_as_alone(reader, &market, &page.items[i]);
        ck_assert(i == 0 || page.items[i - 1].leaf_index < page.items[i].leaf_index);
    }
    ledger_receipts_fini(&page);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

START_TEST(pages_of_receipts_end_at_their_bytes_and_go_on)
{
    struct small_market market;
    struct ledger_reader *reader;
    struct ledger_receipts page;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    uint32_t from = 0;
    for (uint32_t i = 0; i < 3; i++) { /* one always fits */
        ck_assert_int_eq(
            ledger_reader_receipts(reader, &market.cluster, &market.job, from, 1, &page),
            LEDGER_STORE_OK);
        ck_assert_uint_eq(page.count, 1);
        ck_assert_uint_eq(page.items[0].leaf.index, i);
        ck_assert_int_eq(page.has_next, i < 2);
        from = page.next;
        ledger_receipts_fini(&page);
    }
    ck_assert_int_eq(ledger_reader_receipts(reader, &market.cluster, &market.job, 3, 1, &page),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(page.count, 0);
    ck_assert(!page.has_next);
    ledger_receipts_fini(&page);

    small_market_sql(&market, "UPDATE batches SET leaves = zeroblob(32)");
    ck_assert_int_eq(
        ledger_reader_receipts(reader, &market.cluster, &market.job, 0, 1 << 20, &page),
        LEDGER_STORE_CORRUPT);
    ck_assert_uint_eq(page.count, 0);
    small_market_sql(&market, "UPDATE checkpoint SET tree_size = 2");
    ck_assert_int_eq(
        ledger_reader_receipts(reader, &market.cluster, &market.job, 0, 1 << 20, &page),
        LEDGER_STORE_OK);
    ck_assert_uint_eq(page.count, 0); /* not covered yet */
    ledger_receipts_fini(&page);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

/* The blocks that the cache keeps give what the nodes give, across blocks and at the tree's end. */
START_TEST(the_cache_of_the_tree_gives_the_same_proofs)
{
    enum { LEAVES = 700 };
    sqlite3 *database = NULL;
    struct tree_reader reader;
    struct tree_cache *cache = calloc(1, sizeof *cache);
    ck_assert_int_eq(sqlite3_open(":memory:", &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database,
                                  "CREATE TABLE tree(level INTEGER, idx INTEGER, hash BLOB)", NULL,
                                  NULL, NULL),
                     SQLITE_OK);
    struct merkle tree = {0};
    for (uint32_t i = 0; i < LEAVES; i++) {
        const struct hash32 leaf = merkle_leaf_hash(&i, sizeof i);
        merkle_append(&tree, &leaf, store_node, database);
    }
    ck_assert_int_eq(tree_reader_init(&reader, database), SQLITE_OK);
    cache->reader = &reader;
    for (uint64_t leaf = 0; leaf < LEAVES; leaf += 13) {
        struct hash32 path[MERKLE_LEVELS_MAX];
        struct hash32 expected[MERKLE_LEVELS_MAX];
        size_t length;
        size_t expected_length;
        ck_assert(
            merkle_inclusion(LEAVES, leaf, tree_read_node, &reader, expected, &expected_length));
        ck_assert(merkle_inclusion(LEAVES, leaf, tree_cache_read, cache, path, &length));
        ck_assert_uint_eq(length, expected_length);
        ck_assert_mem_eq(path, expected, length * sizeof path[0]);
    }
    struct hash32 hash;
    ck_assert(!tree_cache_read(cache, 2, LEAVES >> 2, &hash)); /* not complete */
    ck_assert_int_eq(reader.error, SQLITE_CORRUPT);
    tree_reader_fini(&reader);
    ck_assert_int_eq(sqlite3_close(database), SQLITE_OK);
    free(cache);
}
END_TEST

/* Its batch came with a command before the one that logged it; what was refuted has no receipt. */
START_TEST(a_result_that_was_held_has_a_receipt_that_names_its_check)
{
    struct checked_market told = {.lie = LIE_NONE};
    struct ledger_reader *reader;
    static char text[RECEIPT_TEXT_MAX];
    static uint8_t scratch[RECEIPT_TEXT_MAX];
    char error[LEDGER_CHECK_TEXT];
    size_t length;
    struct receipt receipt;
    checked_market_create(&told);
    const struct small_market *market = &told.market;
    ck_assert_int_eq(ledger_reader_open(market->database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(
        ledger_reader_receipt(reader, &market->cluster, &told.job, 1, text, sizeof text, &length),
        LEDGER_STORE_OK);
    ck_assert_int_eq(receipt_verify(text, length, "bourse.test/small", identity_key(market->log),
                                    scratch, sizeof scratch, &receipt),
                     RECEIPT_OK);
    ck_assert_uint_eq(receipt.leaf.attempt, 2);
    ck_assert_uint_lt(receipt.leaf.batch_index, receipt.leaf.log_index);
    ck_assert_uint_eq(receipt.leaf.level, CHECK_CHEAP);
    ck_assert(hash32_equal(&receipt.leaf.check, &told.check));
    ck_assert_int_eq(ledger_check(ledger_reader_database(reader), identity_key(market->log), error),
                     LEDGER_STORE_OK);
    ledger_reader_close(&reader);
    small_market_sql(market, "UPDATE held SET idx = 7");
    ck_assert_int_eq(ledger_reader_open(market->database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_check(ledger_reader_database(reader), identity_key(market->log), error),
                     LEDGER_STORE_CORRUPT);
    ck_assert_msg(strstr(error, "table held, entry") != NULL, "%s", error);
    ledger_reader_close(&reader);
    checked_market_destroy(&told);
}
END_TEST

START_TEST(a_result_that_no_checkpoint_covers_has_no_receipt_yet)
{
    struct small_market market;
    struct ledger_reader *reader;
    static char text[RECEIPT_TEXT_MAX];
    size_t length;
    small_market_create(&market, NULL, NULL);
    small_market_sql(&market, "UPDATE checkpoint SET tree_size = 2");
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(
        ledger_reader_receipt(reader, &market.cluster, &market.job, 0, text, sizeof text, &length),
        LEDGER_STORE_NOT_FOUND);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

START_TEST(outcomes_are_the_accepted_attempt_else_the_last_failed)
{
    struct small_market market;
    struct ledger_reader *reader;
    struct ledger_outcome_row rows[8];
    size_t count;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_reader_outcomes(reader, &market.job, 0, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(rows[i].index, i);
        ck_assert_uint_eq(rows[i].attempt, i == 1 ? 2 : 1);
        ck_assert_uint_eq(rows[i].status, 0);
    }
    ck_assert_int_eq(rows[0].charge_micro, 333333);
    ck_assert_int_eq(rows[0].paid_ns, 333333333);
    struct hash32 hash = sha256_of(rows[1].result, rows[1].result_length);
    ck_assert(hash32_equal(&hash, &market.results[2]));
    size_t bytes = rows[0].result_length + rows[1].result_length;
    for (size_t i = 0; i < count; i++) {
        free(rows[i].result);
    }
    ck_assert_int_eq(ledger_reader_outcomes(reader, &market.job, 0, 8, bytes, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 2);
    free(rows[0].result);
    free(rows[1].result);
    ck_assert_int_eq(ledger_reader_outcomes(reader, &market.job, 2, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(rows[0].index, 2);
    free(rows[0].result);
    ck_assert_int_eq(ledger_reader_outcomes(reader, &market.cluster, 0, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 0);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

START_TEST(other_results_are_all_that_do_not_decide_their_subtask)
{
    struct small_market market;
    struct ledger_reader *reader;
    struct ledger_outcome_row rows[8];
    size_t count;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_reader_others(reader, &market.job, 0, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(rows[0].index, 1);
    ck_assert_uint_eq(rows[0].attempt, 1);
    ck_assert_uint_ne(rows[0].status, 0);
    struct hash32 hash = sha256_of(rows[0].result, rows[0].result_length);
    ck_assert(hash32_equal(&hash, &market.results[1]));
    free(rows[0].result);
    uint64_t entry = rows[0].entry;
    ck_assert_int_eq(ledger_reader_others(reader, &market.job, entry, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 1);
    free(rows[0].result);
    ck_assert_int_eq(ledger_reader_others(reader, &market.job, entry + 1, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(ledger_reader_others(reader, &market.cluster, 0, 8, 1 << 20, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 0);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

START_TEST(trades_come_newest_first_and_in_pages)
{
    struct small_market market;
    struct ledger_reader *reader;
    struct ledger_trade_row rows[4];
    size_t count = 9;
    small_market_create(&market, NULL, NULL);
    small_market_sql(&market,
                     "INSERT INTO fills SELECT entry + 1000, log_index, log_time_ns, leaf, "
                     "lease + 1, ask, bid, job, provider, consumer, device, slots + 5, "
                     "price, term_ns, '' FROM fills");
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_reader_trades(reader, 0, 4, rows, &count), LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(rows[0].entry, rows[1].entry + 1000);
    ck_assert_uint_eq(rows[0].slots, 7);
    ck_assert_uint_gt(rows[0].log_index, 0);
    ck_assert_str_eq(rows[0].instrument, "");
    ck_assert_uint_eq(rows[1].slots, 2);
    ck_assert_str_eq(rows[1].instrument, "cpu.x86_64.avx2");
    ck_assert_int_gt(rows[1].price_micro, 0);
    uint64_t newest = rows[0].entry;
    ck_assert_int_eq(ledger_reader_trades(reader, newest, 4, rows, &count), LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_lt(rows[0].entry, newest);
    ck_assert_int_eq(ledger_reader_trades(reader, UINT64_MAX, 1, rows, &count), LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(rows[0].entry, newest);
    ck_assert_int_eq(ledger_reader_trades(reader, 1, 4, rows, &count), LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 0);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

START_TEST(a_statement_adds_up_to_the_balance)
{
    struct small_market market;
    struct ledger_reader *reader;
    struct ledger_statement_row rows[32];
    size_t count;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_reader_statement(reader, SMALL_MARKET_OWNER, 0, 32, rows, &count),
                     LEDGER_STORE_OK);
    int64_t available = 0;
    int64_t held = 0;
    for (size_t i = 0; i < count; i++) {
        available += rows[i].amount_micro;
        held += rows[i].held_micro;
        ck_assert(i == 0 || rows[i].entry < rows[i - 1].entry);
    }
    /* two mints, a hold, four captures and fees, a release; 1 988 888 micro-credits were charged */
    ck_assert_uint_eq(count, 2 + 1 + 8 + 1);
    ck_assert_int_eq(available, 1005000000 - 1988888);
    ck_assert_int_eq(held, 0);
    int64_t fees = 0;
    for (size_t i = 0; i < count; i++) {
        fees -= rows[i].kind == LEDGER_FEE ? rows[i].held_micro : 0; /* out of escrow */
    }
    ck_assert_int_eq(rows[0].kind, LEDGER_RELEASE);
    ck_assert(!rows[0].has_index);
    ck_assert_uint_eq(rows[0].counterparty, UINT32_MAX);
    ck_assert_int_eq(rows[1].kind, LEDGER_FEE);
    ck_assert(rows[1].has_index);
    ck_assert_uint_eq(rows[1].index, 2);
    ck_assert_uint_eq(rows[1].counterparty, ACCOUNT_FEES);
    ck_assert(id128_equal(&rows[1].job, &market.job));

    uint64_t before = rows[3].entry;
    ck_assert_int_eq(ledger_reader_statement(reader, SMALL_MARKET_OWNER, before, 2, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_lt(rows[0].entry, before);
    ck_assert_int_eq(ledger_reader_statement(reader, SMALL_MARKET_PROVIDER, 0, 32, rows, &count),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 1 + 4);
    ck_assert_uint_eq(rows[0].counterparty, SMALL_MARKET_OWNER);
    ck_assert_int_gt(rows[0].amount_micro, 0);
    /* Each capture says what it left to the market, and which device earned it. */
    for (size_t i = 0; i < count; i++) {
        bool is_capture = rows[i].kind == LEDGER_CAPTURE;
        fees -= rows[i].fee_micro;
        ck_assert_int_eq(rows[i].fee_micro > 0, is_capture);
        ck_assert_int_eq(!id128_is_zero(&rows[i].device), is_capture);
    }
    ck_assert_int_eq(fees, 0);
    ck_assert_int_eq(ledger_reader_statement(reader, 77, 0, 32, rows, &count), LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 0);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

START_TEST(accepted_results_are_found_page_by_page)
{
    struct small_market market;
    struct ledger_reader *reader;
    struct ledger_statement_row rows[8];
    size_t count = 9;
    uint64_t next = 9;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_reader_results(reader, SMALL_MARKET_PROVIDER, 0, LEDGER_WALK, 8, rows,
                                           &count, &next),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 3); /* of the four that were paid one had failed */
    ck_assert_uint_eq(next, 0);
    uint64_t entries[3];
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(rows[i].kind, LEDGER_RESULT);
        ck_assert_int_eq(rows[i].amount_micro, 0);
        ck_assert(id128_equal(&rows[i].job, &market.job));
        ck_assert(!id128_is_zero(&rows[i].device));
        ck_assert(i == 0 || rows[i].entry < rows[i - 1].entry);
        entries[i] = rows[i].entry;
    }
    /* Steps of any length, empty ones among them, give the same. */
    for (uint64_t walk = 1; walk < 40; walk += 2) {
        size_t found = 0;
        next = 0;
        do {
            ck_assert_int_eq(ledger_reader_results(reader, SMALL_MARKET_PROVIDER, next, walk, 2,
                                                   rows, &count, &next),
                             LEDGER_STORE_OK);
            for (size_t i = 0; i < count; i++) {
                ck_assert_uint_lt(found, 3);
                ck_assert_uint_eq(rows[i].entry, entries[found++]);
            }
        } while (next > 1);
        ck_assert_uint_eq(found, 3);
    }
    ck_assert_int_eq(
        ledger_reader_results(reader, SMALL_MARKET_OWNER, 0, LEDGER_WALK, 8, rows, &count, &next),
        LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 0);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

/* A program that failed was given what it took before. */
START_TEST(results_at_price_0_say_what_was_given)
{
    struct small_market market;
    struct ledger_reader *reader;
    sqlite3 *database;
    struct ledger_statement_row rows[8];
    size_t count = 9;
    uint64_t next = 9;
    int64_t given_ns = 0;
    small_market_create(&market, NULL, NULL);
    ck_assert_int_eq(ledger_reader_open(market.database, &reader), LEDGER_STORE_OK);
    ck_assert_int_eq(ledger_reader_results(reader, SMALL_MARKET_PROVIDER, 0, LEDGER_WALK, 8, rows,
                                           &count, &next),
                     LEDGER_STORE_OK);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(rows[i].given_ns, 0); /* it was paid */
        ck_assert(!rows[i].is_failed);
    }
    ck_assert_int_eq(sqlite3_open(market.database, &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database, "UPDATE results SET price = 0", NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(ledger_reader_results(reader, SMALL_MARKET_PROVIDER, 0, LEDGER_WALK, 8, rows,
                                           &count, &next),
                     LEDGER_STORE_OK);
    ck_assert_uint_eq(count, 4);
    unsigned failed = 0;
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_gt(rows[i].given_ns, 0);
        given_ns += rows[i].given_ns;
        failed += rows[i].is_failed;
    }
    ck_assert_uint_eq(failed, 1);
    sqlite3_stmt *sum;
    ck_assert_int_eq(
        sqlite3_prepare_v2(database, "SELECT sum(paid_ns) FROM results", -1, &sum, NULL),
        SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(sum), SQLITE_ROW);
    ck_assert_int_eq(given_ns, sqlite3_column_int64(sum, 0));
    sqlite3_finalize(sum);
    sqlite3_close(database);
    ledger_reader_close(&reader);
    small_market_destroy(&market);
}
END_TEST

static enum ledger_store_status check(const struct small_market *market, char *ret_error)
{
    sqlite3 *database;
    ck_assert_int_eq(sqlite3_open(market->database, &database), SQLITE_OK);
    enum ledger_store_status status = ledger_check(database, identity_key(market->log), ret_error);
    sqlite3_close(database);
    return status;
}

START_TEST(a_start_holds_outcomes_and_results_against_each_other)
{
    static const char *const changes[] = {
        "DELETE FROM outcomes",
        "DELETE FROM outcomes WHERE idx = 2",
        "UPDATE outcomes SET rank = 1 WHERE idx = 0",
        "UPDATE outcomes SET idx = 7 WHERE idx = 0",
        /* of subtask 1 the second attempt was accepted, the first had failed */
        "UPDATE outcomes SET entry = (SELECT min(entry) FROM results WHERE idx = 1) WHERE idx = 1",
        ("UPDATE outcomes SET rank = 1, entry = (SELECT min(entry) FROM results WHERE idx = 1)"
         " WHERE idx = 1"),
        "INSERT INTO outcomes SELECT job, 9, entry, rank FROM outcomes WHERE idx = 0",
    };
    char error[LEDGER_CHECK_TEXT];
    struct small_market market;
    small_market_create(&market, NULL, NULL);
    ck_assert_msg(check(&market, error) == LEDGER_STORE_OK, "%s", error);
    small_market_destroy(&market);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        small_market_create(&market, NULL, NULL);
        small_market_sql(&market, changes[i]);
        ck_assert_msg(check(&market, error) == LEDGER_STORE_CORRUPT, "passed: %s", changes[i]);
        ck_assert_msg(strstr(error, "table outcomes") != NULL, "%s: %s", changes[i], error);
        small_market_destroy(&market);
    }
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    const struct suite_test tests[] = {
        TEST(receipts_of_every_decided_subtask_verify),
        TEST(receipts_of_a_page_are_those_that_come_alone),
        TEST(pages_of_receipts_end_at_their_bytes_and_go_on),
        TEST(the_cache_of_the_tree_gives_the_same_proofs),
        TEST(a_result_that_was_held_has_a_receipt_that_names_its_check),
        TEST(a_result_that_no_checkpoint_covers_has_no_receipt_yet),
        TEST(outcomes_are_the_accepted_attempt_else_the_last_failed),
        TEST(other_results_are_all_that_do_not_decide_their_subtask),
        TEST(trades_come_newest_first_and_in_pages),
        TEST(a_statement_adds_up_to_the_balance),
        TEST(accepted_results_are_found_page_by_page),
        TEST(results_at_price_0_say_what_was_given),
        TEST(a_start_holds_outcomes_and_results_against_each_other)};
    return suite_main("ledger reader", NULL, NULL, tests, sizeof tests / sizeof tests[0]);
}
