/* The table of the inputs that a device holds. */
#include "provider/kernel/held_inputs.h"
#include "tests/support/suite.h"

#include <stdlib.h>

static struct held_inputs held;

static void begin(void)
{
    held = (struct held_inputs){.cap_bytes = 100};
}

static void end(void)
{
}

/* Makes a part of a file whose hash and size go by its number. */
static struct held_part part_of(uint8_t number, uint64_t bytes)
{
    return (struct held_part){.hash = {{number}}, .file_bytes = 1000U + number, .bytes = bytes};
}

/* Adds a part whose buffer has its number, and ends its use. */
static void add(uint8_t number, uint64_t bytes)
{
    const struct held_part part = part_of(number, bytes);
    held_inputs_unpin(&held,
                      held_inputs_add(&held, &part, (struct kernel_buffer){.address = number}));
}

static bool holds(uint8_t number, uint64_t bytes)
{
    const struct held_part part = part_of(number, bytes);
    size_t place = HELD_INPUTS_MAX;
    const bool is_found = held_inputs_find(&held, &part, &place) == HELD_FOUND;
    if (is_found) {
        ck_assert_uint_eq(held.items[place].buffer.address, number);
        held_inputs_unpin(&held, place);
    }
    return is_found;
}

static uint64_t take_oldest(void)
{
    struct kernel_buffer buffer = {.address = 0};
    return held_inputs_take_oldest(&held, &buffer) ? buffer.address : 0;
}

START_TEST(what_was_added_is_found)
{
    ck_assert(!holds(1, 40));
    add(1, 40);
    add(2, 60);
    ck_assert(holds(1, 40));
    ck_assert(holds(2, 60));
    ck_assert(!holds(3, 40));
    ck_assert_uint_eq(held.held_bytes, 100);
}
END_TEST

START_TEST(another_part_of_the_file_is_another_input)
{
    struct held_part part = part_of(1, 40);
    size_t place;
    add(1, 40);
    part.at = 4;
    ck_assert_int_eq(held_inputs_find(&held, &part, &place), HELD_ABSENT);
    part = part_of(1, 36);
    ck_assert_int_eq(held_inputs_find(&held, &part, &place), HELD_ABSENT);
}
END_TEST

START_TEST(the_same_hash_of_a_file_of_another_size_is_refused)
{
    struct held_part part = part_of(1, 40);
    size_t place;
    add(1, 40);
    part.file_bytes++;
    ck_assert_int_eq(held_inputs_find(&held, &part, &place), HELD_REFUSED);
    ck_assert(holds(1, 40));
}
END_TEST

START_TEST(the_oldest_use_goes_first)
{
    add(1, 30);
    add(2, 30);
    add(3, 30);
    ck_assert(holds(1, 30));
    ck_assert_uint_eq(take_oldest(), 2);
    ck_assert_uint_eq(take_oldest(), 3);
    ck_assert_uint_eq(take_oldest(), 1);
    ck_assert_uint_eq(take_oldest(), 0);
    ck_assert_uint_eq(held.held_bytes, 0);
}
END_TEST

START_TEST(a_pinned_part_never_goes)
{
    const struct held_part part = part_of(1, 60);
    size_t place;
    const size_t first =
        held_inputs_add(&held, &part, (struct kernel_buffer){.address = 1}); /* in use */
    add(2, 40);
    ck_assert_int_eq(held_inputs_find(&held, &part, &place), HELD_FOUND); /* used twice */
    ck_assert_uint_eq(place, first);
    ck_assert_uint_eq(held_inputs_idle_bytes(&held), 40);
    ck_assert_uint_eq(take_oldest(), 2);
    ck_assert_uint_eq(take_oldest(), 0);
    held_inputs_unpin(&held, place);
    ck_assert_uint_eq(take_oldest(), 0);
    held_inputs_unpin(&held, place);
    ck_assert_uint_eq(take_oldest(), 1);
}
END_TEST

START_TEST(the_cap_is_kept)
{
    const struct held_part part = part_of(1, 60);
    ck_assert(held_inputs_may_fit(&held, 100));
    ck_assert(!held_inputs_may_fit(&held, 101));
    const size_t place = held_inputs_add(&held, &part, (struct kernel_buffer){.address = 1});
    ck_assert(held_inputs_may_fit(&held, 40));
    ck_assert(!held_inputs_may_fit(&held, 41));
    ck_assert(held_inputs_has_room(&held, 40));
    ck_assert(!held_inputs_has_room(&held, 41));
    held_inputs_unpin(&held, place);
    ck_assert(held_inputs_may_fit(&held, 100)); /* once the other has gone */
    ck_assert(!held_inputs_has_room(&held, 41));
    held.cap_bytes = 0;
    ck_assert(!held_inputs_may_fit(&held, 1));
}
END_TEST

START_TEST(a_result_is_found_once_it_has_its_hash)
{
    const struct hash32 hash = {{7}};
    const struct held_part wanted = part_of(7, 40);
    struct held_part result = wanted;
    size_t place;
    result.hash = (struct hash32){{0}};
    const size_t first =
        held_inputs_add_result(&held, &result, (struct kernel_buffer){.address = 7});
    ck_assert_int_eq(held_inputs_find(&held, &result, &place), HELD_ABSENT);
    ck_assert(held_inputs_name(&held, first, &hash));
    ck_assert(holds(7, 40));
    const size_t second =
        held_inputs_add_result(&held, &result, (struct kernel_buffer){.address = 8});
    ck_assert(!held_inputs_name(&held, second, &hash)); /* the same bytes are there already */
    ck_assert_uint_eq(held_inputs_take(&held, second).address, 8);
    ck_assert_uint_eq(held.held_bytes, 40);
    ck_assert(holds(7, 40));
}
END_TEST

START_TEST(the_table_tells_what_was_used_since)
{
    ck_assert_uint_eq(held_inputs_oldest_use(&held), UINT64_MAX);
    add(1, 30);
    const uint64_t uses = held.uses;
    add(2, 20);
    ck_assert_uint_le(held_inputs_oldest_use(&held), uses);
    ck_assert_uint_eq(held_inputs_bytes_since(&held, uses), 20);
    ck_assert(holds(1, 30));
    ck_assert_uint_gt(held_inputs_oldest_use(&held), uses);
    ck_assert_uint_eq(held_inputs_bytes_since(&held, uses), 50);
}
END_TEST

START_TEST(a_part_is_found_once_its_bytes_are_there)
{
    const struct held_part part = part_of(1, 40);
    const size_t place =
        held_inputs_add_arriving(&held, &part, (struct kernel_buffer){.address = 1});
    ck_assert(!holds(1, 40));
    ck_assert(!held_inputs_touch(&held, &part.hash, part.file_bytes));
    ck_assert_uint_eq(take_oldest(), 0); /* it is pinned */
    ck_assert_uint_eq(held_inputs_idle_bytes(&held), 0);
    ck_assert(held_inputs_name(&held, place, &part.hash));
    held_inputs_unpin(&held, place);
    ck_assert(holds(1, 40));
}
END_TEST

START_TEST(a_touch_is_a_use_of_every_part_of_the_file)
{
    struct held_part part = part_of(1, 20);
    add(1, 20);
    part.at = 20;
    held_inputs_unpin(&held, held_inputs_add(&held, &part, (struct kernel_buffer){.address = 3}));
    add(2, 30);
    ck_assert(!held_inputs_touch(&held, &part.hash, part.file_bytes + 1));
    ck_assert(held_inputs_touch(&held, &part.hash, part.file_bytes));
    ck_assert_uint_eq(take_oldest(), 2);
    ck_assert_uint_eq(take_oldest(), 1);
    ck_assert_uint_eq(take_oldest(), 3);
}
END_TEST

START_TEST(the_table_has_an_end)
{
    held.cap_bytes = UINT64_MAX;
    for (size_t i = 0; i < HELD_INPUTS_MAX; i++) {
        ck_assert(held_inputs_has_room(&held, 1));
        add((uint8_t)(i + 1), 1);
    }
    ck_assert(!held_inputs_has_room(&held, 1));
    ck_assert(held_inputs_may_fit(&held, 1));
    ck_assert_uint_eq(take_oldest(), 1);
    ck_assert(held_inputs_has_room(&held, 1));
}
END_TEST

/* The model is a list of parts in the order of their last use. */
START_TEST(random_uses_agree_with_a_list)
{
    enum { NUMBERS = 12, STEPS = 20000 };
    uint8_t order[NUMBERS]; /* oldest first */
    size_t count = 0;
    uint64_t sum = 0;
    unsigned seed = 20261130;
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 1103515245U + 12345U;
        const uint8_t number = (uint8_t)(1 + (seed >> 16) % NUMBERS);
        const uint64_t bytes = 5U + 5U * number;
        size_t at = 0;
        while (at < count && order[at] != number) {
            at++;
        }
        ck_assert_int_eq(holds(number, bytes), at < count);
        if (at < count) {
            memmove(order + at, order + at + 1, count - at - 1);
            order[count - 1] = number;
            continue;
        }
        while (!held_inputs_has_room(&held, bytes)) {
            ck_assert_uint_gt(count, 0);
            ck_assert_uint_eq(take_oldest(), order[0]);
            sum -= 5U + 5U * order[0];
            memmove(order, order + 1, --count);
        }
        add(number, bytes);
        sum += bytes;
        order[count++] = number;
        ck_assert_uint_eq(held.held_bytes, sum);
        ck_assert_uint_le(sum, 100);
    }
}
END_TEST

SUITE("held_inputs", begin, end, TEST(what_was_added_is_found),
      TEST(another_part_of_the_file_is_another_input),
      TEST(the_same_hash_of_a_file_of_another_size_is_refused), TEST(the_oldest_use_goes_first),
      TEST(a_pinned_part_never_goes), TEST(the_cap_is_kept),
      TEST(a_result_is_found_once_it_has_its_hash), TEST(the_table_tells_what_was_used_since),
      TEST(a_part_is_found_once_its_bytes_are_there),
      TEST(a_touch_is_a_use_of_every_part_of_the_file), TEST(the_table_has_an_end),
      TEST(random_uses_agree_with_a_list))
