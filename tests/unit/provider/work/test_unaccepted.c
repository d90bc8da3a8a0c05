/* The tests follow what an agent holds until its results are accepted, and what goes when there is
 * too much. */
#include "base/cleanup.h"
#include "provider/work/unaccepted.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The outcome of subtask `index` with one output that says to have `size` bytes: in memory, or in
 * a file. */
static struct outcome *made(uint32_t index, uint64_t size, bool is_file)
{
    const struct agent_work work = {.lease = 1, .index = index, .attempt = 1};
    static const struct id128 job;
    struct outcome *outcome = outcome_create(&work, &job);
    ck_assert_ptr_nonnull(outcome);
    ck_assert(outcome_reserve(outcome, 1));
    outcome->outputs[0].name = strdup("out");
    outcome->outputs[0].size = size;
    outcome->outputs[0].fd = is_file ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    outcome->output_count = 1;
    return outcome;
}

static bool is_held(struct unaccepted *unaccepted, uint32_t index)
{
    const struct agent_work work = {.lease = 1, .index = index, .attempt = 1};
    struct outcome *outcome = unaccepted_take(unaccepted, &work);
    const bool is_there = outcome != NULL;
    outcome_destroy(&outcome);
    return is_there;
}

START_TEST(what_is_held_is_taken_once)
{
    const struct agent_work other = {.lease = 1, .index = 7, .attempt = 2};
    CLEANUP(unaccepted_fini) struct unaccepted unaccepted;
    unaccepted_init(&unaccepted);
    unaccepted_add(&unaccepted, made(7, 100, false));
    unaccepted_add(&unaccepted, made(8, 100, true));
    ck_assert_ptr_null(unaccepted_take(&unaccepted, &other));
    ck_assert(is_held(&unaccepted, 8));
    ck_assert(!is_held(&unaccepted, 8));
    ck_assert(is_held(&unaccepted, 7));
    ck_assert_uint_eq(unaccepted.size.files + unaccepted.size.memory_bytes, 0);
}
END_TEST

START_TEST(the_oldest_goes_when_memory_is_full)
{
    CLEANUP(unaccepted_fini) struct unaccepted unaccepted;
    unaccepted_init(&unaccepted);
    for (uint32_t i = 0; i < 3; i++) {
        unaccepted_add(&unaccepted, made(i, UNACCEPTED_MEMORY_BYTES / 2, false));
    }
    ck_assert(!is_held(&unaccepted, 0));
    ck_assert(is_held(&unaccepted, 1));
    ck_assert(is_held(&unaccepted, 2));
}
END_TEST

START_TEST(the_oldest_goes_when_there_are_too_many_files)
{
    CLEANUP(unaccepted_fini) struct unaccepted unaccepted;
    unaccepted_init(&unaccepted);
    for (uint32_t i = 0; i <= UNACCEPTED_FILES; i++) {
        unaccepted_add(&unaccepted, made(i, 1, true));
    }
    ck_assert_uint_eq(unaccepted.count, UNACCEPTED_FILES);
    ck_assert(!is_held(&unaccepted, 0));
    ck_assert(is_held(&unaccepted, 1));
}
END_TEST

START_TEST(one_is_held_however_large)
{
    CLEANUP(unaccepted_fini) struct unaccepted unaccepted;
    unaccepted_init(&unaccepted);
    unaccepted_add(&unaccepted, made(0, 1, true));
    unaccepted_add(&unaccepted, made(1, 2 * UNACCEPTED_FILE_BYTES, true));
    ck_assert(!is_held(&unaccepted, 0));
    ck_assert(is_held(&unaccepted, 1));
}
END_TEST

SUITE("unaccepted", NULL, NULL, TEST(what_is_held_is_taken_once),
      TEST(the_oldest_goes_when_memory_is_full),
      TEST(the_oldest_goes_when_there_are_too_many_files), TEST(one_is_held_however_large))
