/* The tests follow who hears of which job, and when a watch ends. */
#include "broker/answer/watches.h"

#include "tests/support/suite.h"

#include <check.h>

START_TEST(watchers_hear_of_their_own_jobs_once_per_change)
{
    struct watches *watches = watches_create();
    const struct id128 one = {{1}};
    const struct id128 two = {{2}};
    struct watch_event event;

    ck_assert(watches_add(watches, 10, 3, NULL));
    ck_assert(watches_add(watches, 10, 3, NULL));
    ck_assert(watches_add(watches, 11, 3, &two));
    ck_assert(!watches_changed(watches, &one, 4)); /* another's */
    ck_assert(watches_changed(watches, &one, 3));
    ck_assert(watches_changed(watches, &one, 3));
    ck_assert(watches_next_event(watches, &event));
    ck_assert_uint_eq(event.session, 10);
    ck_assert(id128_equal(&event.job, &one));
    ck_assert(!watches_next_event(watches, &event));
    ck_assert(watches_changed(watches, &two, 3));
    ck_assert(watches_next_event(watches, &event));
    ck_assert(watches_next_event(watches, &event));
    ck_assert_uint_eq(event.session, 11);
    ck_assert(!watches_next_event(watches, &event));
    watches_forget(watches, 10);
    ck_assert(!watches_changed(watches, &one, 3));
    watches_destroy(&watches);
}
END_TEST

START_TEST(a_watch_ends_with_its_job_and_makes_room)
{
    struct watches *watches = watches_create();
    struct watch_event event;
    struct id128 job = {{1}};
    ck_assert_ptr_nonnull(watches);
    for (int i = 0; i < WATCHES_PER_SESSION; i++) {
        job.bytes[1] = (uint8_t)i;
        ck_assert(watches_add(watches, 10, 3, &job));
    }
    ck_assert(watches_add(watches, 11, 3, &job));
    struct id128 one_more = {{2}};
    ck_assert(!watches_add(watches, 10, 3, &one_more));

    /* The first of its two watchers is told and dropped; the second is still told. */
    ck_assert(watches_changed(watches, &job, 3));
    ck_assert(watches_next_event(watches, &event));
    ck_assert_uint_eq(event.session, 10);
    watches_drop(watches, 10, &job);
    ck_assert(watches_next_event(watches, &event));
    ck_assert_uint_eq(event.session, 11);
    ck_assert(!watches_next_event(watches, &event));

    ck_assert(watches_add(watches, 10, 3, &one_more));
    watches_destroy(&watches);
}
END_TEST

SUITE("watches", NULL, NULL, TEST(watchers_hear_of_their_own_jobs_once_per_change),
      TEST(a_watch_ends_with_its_job_and_makes_room))
