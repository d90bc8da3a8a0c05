#include "protocol/genesis.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct genesis sample(void)
{
    struct genesis genesis = {
        .origin = "bourse.example/log", .fee_ppm = 10000, .price_band_micro = 1000000000};
    memset(genesis.cluster.bytes, 1, 16);
    memset(genesis.log_key.bytes, 2, 32);
    memset(genesis.transport_key.bytes, 3, 32);
    genesis.account_count = 2;
    genesis.accounts[0] =
        (struct genesis_account){.roles = 33, .credits_micro = 5000000, .name = "owner"};
    genesis.accounts[1] = (struct genesis_account){.roles = 2, .name = ""};
    genesis.accounts[1].key.bytes[0] = 9;
    return genesis;
}

START_TEST(what_is_written_is_read)
{
    struct genesis genesis = sample();
    uint8_t bytes[GENESIS_BYTES_MAX];
    size_t length = genesis_write(&genesis, bytes, sizeof bytes);
    ck_assert_uint_eq(length, 4 + 16 + 1 + 18 + 32 + 32 + 4 + 8 + 2 + (44 + 1 + 5) + (44 + 1));
    struct genesis again;
    ck_assert(genesis_read(bytes, length, &again));
    ck_assert_str_eq(again.origin, genesis.origin);
    ck_assert_uint_eq(again.fee_ppm, 10000);
    ck_assert_int_eq(again.price_band_micro, 1000000000);
    ck_assert_uint_eq(again.account_count, 2);
    ck_assert_str_eq(again.accounts[0].name, "owner");
    ck_assert_int_eq(again.accounts[0].credits_micro, 5000000);
    ck_assert_uint_eq(again.accounts[1].roles, 2);
    ck_assert(key32_equal(&again.accounts[1].key, &genesis.accounts[1].key));
    uint8_t rewritten[GENESIS_BYTES_MAX];
    ck_assert_uint_eq(genesis_write(&again, rewritten, sizeof rewritten), length);
    ck_assert_mem_eq(rewritten, bytes, length);
}
END_TEST

START_TEST(short_long_and_strange_bytes_are_refused)
{
    struct genesis genesis = sample();
    struct genesis again;
    uint8_t bytes[GENESIS_BYTES_MAX + 1] = {0};
    size_t length = genesis_write(&genesis, bytes, GENESIS_BYTES_MAX);
    for (size_t i = 0; i < length; i++) {
        ck_assert(!genesis_read(bytes, i, &again));
    }
    ck_assert(!genesis_read(bytes, length + 1, &again));
    bytes[0] ^= 1;
    ck_assert(!genesis_read(bytes, length, &again));
    bytes[0] ^= 1;
    bytes[21] = '\0'; /* in the origin */
    ck_assert(!genesis_read(bytes, length, &again));
}
END_TEST

START_TEST(values_out_of_range_are_not_written)
{
    uint8_t bytes[GENESIS_BYTES_MAX];
    struct genesis genesis = sample();
    genesis.fee_ppm = 1000001;
    ck_assert_uint_eq(genesis_write(&genesis, bytes, sizeof bytes), 0);
    genesis = sample();
    genesis.price_band_micro = 0;
    ck_assert_uint_eq(genesis_write(&genesis, bytes, sizeof bytes), 0);
    genesis = sample();
    genesis.accounts[0].credits_micro = -1;
    ck_assert_uint_eq(genesis_write(&genesis, bytes, sizeof bytes), 0);
    genesis = sample();
    genesis.accounts[1].key = genesis.accounts[0].key;
    ck_assert_uint_eq(genesis_write(&genesis, bytes, sizeof bytes), 0);
    genesis = sample();
    strcpy(genesis.origin, "with space");
    ck_assert_uint_eq(genesis_write(&genesis, bytes, sizeof bytes), 0);
    genesis = sample();
    genesis.account_count = GENESIS_ACCOUNTS_MAX + 1;
    ck_assert_uint_eq(genesis_write(&genesis, bytes, sizeof bytes), 0);
    genesis = sample();
    ck_assert_uint_eq(genesis_write(&genesis, bytes, 50), 0);
}
END_TEST

SUITE("genesis", NULL, NULL, TEST(what_is_written_is_read),
      TEST(short_long_and_strange_bytes_are_refused), TEST(values_out_of_range_are_not_written))
