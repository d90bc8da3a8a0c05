#include "broker/storage/journal_memory.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/sha256.h"
#include "broker/storage/entry.h"
#include "tests/support/suite.h"

struct last {
    uint64_t index;
    struct hash32 chain;
    uint64_t next_command;
};

static struct journal_entry entry_after(const struct last *last, uint64_t epoch, uint8_t mark,
                                        uint8_t bytes[256])
{
    struct entry_head head = {.count = 1,
                              .index = last->index + 1,
                              .epoch = epoch,
                              .previous = last->chain,
                              .first_command = last->next_command};
    struct entry_command command = {
        .account = UINT32_MAX, .kind = ENTRY_TICK, .payload = &mark, .payload_length = 1};
    size_t length = entry_write(&head, &command, bytes, 256);
    return (struct journal_entry){.index = head.index, .bytes = bytes, .length = length};
}

static void move_on(struct last *last, const struct journal_entry *entry)
{
    last->index++;
    last->next_command++;
    last->chain = sha256_of(entry->bytes, entry->length);
}

static const struct journal_leader me = {.broker = "me"};

START_TEST(without_faults_it_is_a_plain_log)
{
    struct journal_log *log = journal_log_create(1, 3);
    struct journal *journal = journal_memory_open(log);
    struct last last = {.next_command = 1};
    struct journal_entry entry;
    struct journal_entry read;
    uint8_t bytes[256];
    uint64_t epoch;
    entry = entry_after(&last, 1, 1, bytes);
    ck_assert_int_eq(journal_append(journal, 1, &entry, 1), JOURNAL_DEPOSED);
    ck_assert_int_eq(journal_lead(journal, 1, &me, &epoch), JOURNAL_CORRUPT);
    ck_assert_int_eq(journal_lead(journal, 0, &me, &epoch), JOURNAL_OK);
    for (uint8_t i = 1; i <= 3; i++) {
        entry = entry_after(&last, epoch, i, bytes);
        ck_assert_int_eq(journal_append(journal, epoch, &entry, 1), JOURNAL_OK);
        ck_assert_int_eq(journal_append(journal, epoch, &entry, 1), JOURNAL_OK); /* a resend */
        move_on(&last, &entry);
    }
    ck_assert_uint_eq(journal_log_last(log), 3);
    entry = entry_after(&last, epoch, 4, bytes);
    ck_assert_int_eq(journal_append(journal, epoch, &entry, 1), JOURNAL_FULL);
    ck_assert_int_eq(journal_next(journal, 2, &read, 0), JOURNAL_OK);
    ck_assert_uint_eq(read.bytes[read.length - 1], 2);
    ck_assert_int_eq(journal_next(journal, 4, &read, 0), JOURNAL_UNAVAILABLE);
    ck_assert_int_eq(journal_lead(journal, 2, &me, &epoch), JOURNAL_BEHIND);
    journal_destroy(&journal);
    journal_log_destroy(&log);
}
END_TEST

START_TEST(a_deposed_leader_appends_nothing)
{
    struct journal_log *log = journal_log_create(1, 100);
    struct journal *journal = journal_memory_open(log);
    struct last last = {.next_command = 1};
    uint8_t bytes[256];
    uint64_t epoch;
    ck_assert_int_eq(journal_lead(journal, 0, &me, &epoch), JOURNAL_OK);
    journal_log_depose(log);
    struct journal_entry entry = entry_after(&last, epoch, 1, bytes);
    ck_assert_int_eq(journal_append(journal, epoch, &entry, 1), JOURNAL_DEPOSED);
    ck_assert_uint_eq(journal_log_last(log), 0);
    struct journal_leader leader;
    ck_assert_int_eq(journal_leader(journal, &leader), JOURNAL_OK);
    ck_assert_str_eq(leader.broker, "rival");
    journal_destroy(&journal);
    journal_log_destroy(&log);
}
END_TEST

/* A broker that follows the rules (resolve UNKNOWN by resending the same bytes; lead again when
 * deposed) ends with exactly the entries that it was told are in, in order, whatever the log
 * throws at it. */
static uint64_t run(uint64_t seed, struct hash32 *ret_chain)
{
    struct journal_log *log = journal_log_create(seed, 10000);
    struct journal *journal = journal_memory_open(log);
    struct journal_faults faults = {.unknown_applied = 80,
                                    .unknown_late = 80,
                                    .unknown_lost = 80,
                                    .duplicated = 80,
                                    .deposed = 40,
                                    .full = 40,
                                    .lagging = 100};
    struct last last = {.next_command = 1};
    uint8_t bytes[256];
    uint64_t epoch;
    uint64_t faults_met = 0;
    journal_log_set_faults(log, &faults);
    ck_assert_int_eq(journal_lead(journal, 0, &me, &epoch), JOURNAL_OK);
    for (unsigned i = 0; i < 300; i++) {
        struct journal_entry entry = entry_after(&last, epoch, (uint8_t)i, bytes);
        enum journal_status status;
        while ((status = journal_append(journal, epoch, &entry, 1)) != JOURNAL_OK) {
            faults_met++;
            if (status != JOURNAL_DEPOSED) {
                ck_assert(status == JOURNAL_UNKNOWN || status == JOURNAL_FULL);
                continue;
            }
            uint64_t known = journal_log_last(log) > last.index ? last.index + 1 : last.index;
            ck_assert_int_eq(journal_lead(journal, known, &me, &epoch), JOURNAL_OK);
        }
        move_on(&last, &entry);
        ck_assert_uint_eq(journal_log_last(log), last.index);
    }
    struct hash32 chain = {{0}};
    for (uint64_t index = 1; index <= last.index; index++) {
        struct journal_entry entry;
        enum journal_status status;
        while ((status = journal_next(journal, index, &entry, 0)) != JOURNAL_OK) {
            ck_assert_int_eq(status, JOURNAL_UNAVAILABLE);
        }
        struct entry_head head;
        ck_assert(entry_read_head(entry.bytes, entry.length, &head));
        ck_assert(hash32_equal(&head.previous, &chain));
        chain = sha256_of(entry.bytes, entry.length);
    }
    ck_assert(hash32_equal(&chain, &last.chain));
    *ret_chain = chain;
    journal_destroy(&journal);
    journal_log_destroy(&log);
    return faults_met;
}

START_TEST(a_careful_broker_loses_nothing)
{
    uint64_t seed = 100 + (uint64_t)_i;
    struct hash32 first;
    struct hash32 second;
    printf("seed %llu\n", (unsigned long long)seed);
    uint64_t faults = run(seed, &first);
    ck_assert_uint_gt(faults, 30);
    ck_assert_uint_eq(run(seed, &second), faults); /* the same seed, the same run */
    ck_assert(hash32_equal(&first, &second));
}
END_TEST

SUITE("memory journal", NULL, NULL, TEST(without_faults_it_is_a_plain_log),
      TEST(a_deposed_leader_appends_nothing), LOOP(a_careful_broker_loses_nothing, 0, 20))
