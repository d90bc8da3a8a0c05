/* The tests ask which snapshots a new one leaves in the folder. */
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

/* The auditor, which shares no code with this room, reads the cluster there. */
START_TEST(the_cluster_has_its_place_in_the_file)
{
    const struct exchange_genesis_account account = {.key = {{1}}, .roles = 32, .name = "op"};
    struct exchange_command genesis = {
        .type = EXCHANGE_GENESIS, .account = EXCHANGE_NO_ACCOUNT, .index = 1, .log_time_ns = 1};
    genesis.genesis = (struct exchange_genesis){
        .price_band_micro = 1000000, .accounts = &account, .account_count = 1};
    memset(genesis.genesis.cluster.bytes, 0x5a, sizeof genesis.genesis.cluster.bytes);
    struct exchange_effects effects = {.count = 0};
    ck_assert_int_eq(exchange_step(exchange, &genesis, &effects), EXCHANGE_OK);
    exchange_effects_fini(&effects);
    write_at(1);
    uint8_t bytes[SNAPSHOT_CLUSTER_AT + 16];
    FILE *file = fopen(path_of(1), "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
    (void)fclose(file);
    ck_assert_mem_eq(bytes + SNAPSHOT_CLUSTER_AT, genesis.genesis.cluster.bytes, 16);
}
END_TEST

SUITE("snapshot file", begin, end, TEST(the_newest_two_are_kept),
      TEST(those_of_a_later_time_make_way_for_the_new_one),
      TEST(the_cluster_has_its_place_in_the_file))
