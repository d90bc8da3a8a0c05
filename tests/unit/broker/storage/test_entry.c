#include "broker/storage/entry.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t genesis_payload[] = {1, 2, 3, 4, 5};

static size_t sample(uint8_t *bytes, size_t capacity)
{
    struct entry_head head = {.count = 4, .index = 7, .epoch = 2, .first_command = 40};
    memset(head.batch.bytes, 0xba, 16);
    memset(head.previous.bytes, 0xcc, 32);
    struct entry_command commands[4] = {
        {.log_time_ns = -5,
         .account = UINT32_MAX,
         .kind = ENTRY_GENESIS,
         .payload = genesis_payload,
         .payload_length = 5},
        {.log_time_ns = 6, .account = UINT32_MAX, .kind = ENTRY_TICK},
        {.log_time_ns = 7,
         .account = 4,
         .kind = ENTRY_MESSAGE,
         .verdict = 1,
         .payload = genesis_payload + 1,
         .payload_length = 2},
        {.log_time_ns = 8,
         .account = 4,
         .kind = ENTRY_RESULTS,
         .verdict = 1,
         .payload = genesis_payload + 3,
         .payload_length = 2,
         .dice = {{0xd1, 0xce}}},
    };
    return entry_write(&head, commands, bytes, capacity);
}

START_TEST(an_entry_is_read_as_it_was_written)
{
    uint8_t bytes[512];
    size_t length = sample(bytes, sizeof bytes);
    ck_assert_uint_eq(length,
                      ENTRY_HEAD_BYTES + 4 * (4 + ENTRY_COMMAND_HEAD_BYTES) + 5 + 2 + 32 + 2);
    struct entry_head head;
    ck_assert(entry_read_head(bytes, length, &head));
    ck_assert_uint_eq(head.count, 4);
    ck_assert_uint_eq(head.index, 7);
    ck_assert_uint_eq(head.epoch, 2);
    ck_assert_uint_eq(head.first_command, 40);
    ck_assert_uint_eq(head.previous.bytes[31], 0xcc);

    size_t position = 0;
    struct entry_command command;
    ck_assert(entry_next(bytes, length, &position, &command));
    ck_assert_int_eq(command.kind, ENTRY_GENESIS);
    ck_assert_int_eq(command.log_time_ns, -5);
    ck_assert_uint_eq(command.payload_length, 5);
    ck_assert_mem_eq(command.payload, genesis_payload, 5);
    ck_assert(entry_next(bytes, length, &position, &command));
    ck_assert_int_eq(command.kind, ENTRY_TICK);
    ck_assert_uint_eq(command.payload_length, 0);
    ck_assert(entry_next(bytes, length, &position, &command));
    ck_assert_uint_eq(command.account, 4);
    ck_assert_uint_eq(command.verdict, 1);
    ck_assert_uint_eq(entry_command_size(&command), 4 + ENTRY_COMMAND_HEAD_BYTES + 2);
    ck_assert(entry_next(bytes, length, &position, &command));
    ck_assert_int_eq(command.kind, ENTRY_RESULTS);
    ck_assert_uint_eq(command.dice.bytes[0], 0xd1);
    ck_assert_uint_eq(command.payload_length, 2);
    ck_assert_mem_eq(command.payload, genesis_payload + 3, 2);
    ck_assert_uint_eq(entry_command_size(&command), 4 + ENTRY_COMMAND_HEAD_BYTES + 32 + 2);
    ck_assert(!entry_next(bytes, length, &position, &command));
}
END_TEST

START_TEST(too_little_room_writes_nothing_whole)
{
    uint8_t bytes[512];
    size_t length = sample(bytes, sizeof bytes);
    for (size_t capacity = 1; capacity < length; capacity++) {
        ck_assert_uint_eq(sample(bytes, capacity), 0);
    }
    ck_assert_uint_eq(sample(bytes, length), length);
}
END_TEST

START_TEST(cut_and_lengthened_entries_are_refused)
{
    uint8_t bytes[512] = {0};
    struct entry_head head;
    size_t length = sample(bytes, sizeof bytes);
    for (size_t i = 0; i < length; i++) {
        ck_assert(!entry_read_head(bytes, i, &head));
    }
    ck_assert(!entry_read_head(bytes, length + 1, &head));
}
END_TEST

static void assert_refused_with(size_t offset, uint8_t value)
{
    uint8_t bytes[512];
    struct entry_head head;
    size_t length = sample(bytes, sizeof bytes);
    ck_assert_uint_ne(bytes[offset], value);
    bytes[offset] = value;
    ck_assert_msg(!entry_read_head(bytes, length, &head), "offset %zu", offset);
}

START_TEST(fields_out_of_range_are_refused)
{
    assert_refused_with(0, 'X');                     /* magic */
    assert_refused_with(4, 0);                       /* no command */
    assert_refused_with(4, 5);                       /* more than there are */
    assert_refused_with(8, 0);                       /* index 0 */
    assert_refused_with(72, 0);                      /* first command 0 */
    assert_refused_with(ENTRY_HEAD_BYTES, 15);       /* shorter than a command's head */
    assert_refused_with(ENTRY_HEAD_BYTES + 3, 0xff); /* longer than the entry */
    assert_refused_with(ENTRY_HEAD_BYTES + 4 + 12, 0);
    assert_refused_with(ENTRY_HEAD_BYTES + 4 + 12, 11);            /* kinds that are not known */
    assert_refused_with(ENTRY_HEAD_BYTES + 4 + 12, ENTRY_RESULTS); /* shorter than dice */
}
END_TEST

SUITE("entry", NULL, NULL, TEST(an_entry_is_read_as_it_was_written),
      TEST(too_little_room_writes_nothing_whole), TEST(cut_and_lengthened_entries_are_refused),
      TEST(fields_out_of_range_are_refused))
