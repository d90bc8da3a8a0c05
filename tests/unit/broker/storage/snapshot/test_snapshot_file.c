/* The tests ask which snapshots a new one leaves in the folder, and which ones are evidence. */
#include "broker/storage/snapshot/snapshot_file.h"
#include "tests/support/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static struct exchange_limits limits;
static struct exchange *exchange;

static const char *path_of(uint64_t command)
{
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/state-%020" PRIu64 ".snapshot", folder, command);
    return path;
}

static void begin(void)
{
    strcpy(folder, "/tmp/bourse-snapshots-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    limits = exchange_limits_default();
    exchange = exchange_create(&limits);
    ck_assert_ptr_nonnull(exchange);
}

static void end(void)
{
    exchange_destroy(&exchange);
    for (uint64_t command = 0; command < 100; command++) {
        (void)unlink(path_of(command)); /* most were never there */
    }
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else was left */
}

static void write_at(uint64_t command)
{
    struct problem problem;
    struct snapshot_mark mark = {.command = command, .entry = command};
    ck_assert_msg(snapshot_write(folder, exchange, &mark, &problem), "%s", problem.text);
    ck_assert_msg(access(path_of(command), F_OK) == 0, "the one just written is gone");
}

static bool is_there(uint64_t command)
{
    return access(path_of(command), F_OK) == 0;
}

START_TEST(the_newest_two_are_kept)
{
    write_at(10);
    write_at(20);
    write_at(30);
    ck_assert(!is_there(10));
    ck_assert(is_there(20));
    ck_assert(is_there(30));
}
END_TEST

/* Snapshots beside an older journal that was put back are of a time that did not come to pass. */
START_TEST(those_of_a_later_time_make_way_for_the_new_one)
{
    write_at(80);
    write_at(90);
    write_at(10);
    ck_assert(!is_there(80));
    ck_assert(!is_there(90));
    write_at(20);
    ck_assert(is_there(10));
}
END_TEST

static const struct id128 cluster = {{0x5a, 0x5a, 0x5a, 0x5a}};

static void found_market(void)
{
    const struct exchange_genesis_account account = {.key = {{1}}, .roles = 32, .name = "op"};
    struct exchange_command genesis = {
        .type = EXCHANGE_GENESIS, .account = EXCHANGE_NO_ACCOUNT, .index = 1, .log_time_ns = 1};
    genesis.genesis = (struct exchange_genesis){
        .price_band_micro = 1000000, .accounts = &account, .account_count = 1};
    genesis.genesis.cluster = cluster;
    struct exchange_effects effects = {.count = 0};
    ck_assert_int_eq(exchange_step(exchange, &genesis, &effects), EXCHANGE_OK);
    exchange_effects_fini(&effects);
}

/* The auditor, which shares no code with this room, reads the cluster there. */
START_TEST(the_cluster_has_its_place_in_the_file)
{
    found_market();
    write_at(1);
    uint8_t bytes[SNAPSHOT_CLUSTER_AT + 16];
    FILE *file = fopen(path_of(1), "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
    (void)fclose(file);
    ck_assert_mem_eq(bytes + SNAPSHOT_CLUSTER_AT, cluster.bytes, 16);
}
END_TEST

/* Makes a journal of one entry with this chain hash. */
static sqlite3 *journal_with(uint8_t chain)
{
    char text[256];
    sqlite3 *journal = NULL;
    (void)snprintf(text, sizeof text,
                   "CREATE TABLE journal (idx INTEGER PRIMARY KEY, chain BLOB);"
                   "CREATE TABLE journal_base (idx INTEGER PRIMARY KEY, chain BLOB);"
                   "INSERT INTO journal VALUES (1, x'%02x%062d')",
                   chain, 0);
    ck_assert_int_eq(sqlite3_open(":memory:", &journal), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(journal, text, NULL, NULL, NULL), SQLITE_OK);
    return journal;
}

/* Looks for the newest snapshot beside a journal whose entry 1 has the chain hash. */
static enum snapshot_found find(uint8_t chain, bool adopts, struct problem *problem)
{
    struct snapshot_mark mark;
    struct exchange *loaded = NULL;
    sqlite3 *journal = journal_with(chain);
    const struct snapshot_search search = {.folder = folder,
                                           .limits = &limits,
                                           .journal = journal,
                                           .last_entry = 5,
                                           .last_command = 5,
                                           .cluster = &cluster,
                                           .adopts = adopts};
    const enum snapshot_found found = snapshot_newest(&search, &loaded, &mark, problem);
    exchange_destroy(&loaded);
    ck_assert_int_eq(sqlite3_close(journal), SQLITE_OK);
    return found;
}

static void write_after(uint8_t chain)
{
    struct problem problem;
    struct snapshot_mark mark = {.command = 1, .entry = 1, .chain = {{chain}}};
    mark.state = exchange_state_hash(exchange);
    ck_assert_msg(snapshot_write(folder, exchange, &mark, &problem), "%s", problem.text);
}

START_TEST(a_whole_snapshot_after_another_entry_is_a_fork)
{
    struct problem problem = {""};
    found_market();
    write_after(7);
    ck_assert_int_eq(find(7, false, &problem), SNAPSHOT_FOUND);
    ck_assert_int_eq(find(8, false, &problem), SNAPSHOT_FORKED);
    ck_assert_ptr_nonnull(strstr(problem.text, "two histories were signed"));
    ck_assert(is_there(1)); /* nothing was changed */
}
END_TEST

START_TEST(a_fork_below_a_newer_snapshot_is_found)
{
    struct problem problem = {""};
    found_market();
    write_after(7);
    struct snapshot_mark mark = {.command = 4, .entry = 4};
    ck_assert(snapshot_write(folder, exchange, &mark, &problem));
    ck_assert_int_eq(find(8, false, &problem), SNAPSHOT_FORKED);
}
END_TEST

START_TEST(an_adoption_sets_a_fork_aside)
{
    struct problem problem = {""};
    char aside[160];
    found_market();
    write_after(7);
    ck_assert_int_eq(find(8, true, &problem), SNAPSHOT_NONE);
    ck_assert(!is_there(1));
    (void)snprintf(aside, sizeof aside, "%s.before-adoption", path_of(1));
    ck_assert_int_eq(unlink(aside), 0);
}
END_TEST

/* The damage may be what makes the difference. */
START_TEST(a_damaged_snapshot_is_no_fork)
{
    struct problem problem = {""};
    found_market();
    write_after(7);
    FILE *file = fopen(path_of(1), "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 24, SEEK_SET), 0); /* its chain hash */
    ck_assert_int_eq(fputc(9, file), 9);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(find(7, false, &problem), SNAPSHOT_NONE);
}
END_TEST

START_TEST(a_journal_that_cannot_be_read_is_no_fork)
{
    struct problem problem = {""};
    struct snapshot_mark mark;
    struct exchange *loaded = NULL;
    sqlite3 *journal = NULL;
    found_market();
    write_after(7);
    ck_assert_int_eq(sqlite3_open(":memory:", &journal), SQLITE_OK); /* without the table */
    const struct snapshot_search search = {.folder = folder,
                                           .limits = &limits,
                                           .journal = journal,
                                           .last_entry = 5,
                                           .last_command = 5,
                                           .cluster = &cluster};
    ck_assert_int_eq(snapshot_newest(&search, &loaded, &mark, &problem), SNAPSHOT_UNREAD);
    ck_assert_int_eq(sqlite3_close(journal), SQLITE_OK);
}
END_TEST

SUITE("snapshot file", begin, end, TEST(the_newest_two_are_kept),
      TEST(those_of_a_later_time_make_way_for_the_new_one),
      TEST(the_cluster_has_its_place_in_the_file),
      TEST(a_whole_snapshot_after_another_entry_is_a_fork),
      TEST(a_fork_below_a_newer_snapshot_is_found), TEST(an_adoption_sets_a_fork_aside),
      TEST(a_damaged_snapshot_is_no_fork), TEST(a_journal_that_cannot_be_read_is_no_fork))
