/* The watch asks all sensors as often as each needs, and says what they see. The tests write the
 * files of the machine. */
#include "provider/idle/idle_watch.h"
#include "tests/support/machine_files.h"
#include "tests/support/suite.h"

#include <check.h>

#define NS INT64_C(1000000000)

START_TEST(a_watch_says_what_it_sees_and_what_is_missing)
{
    char sees[IDLE_SEES_SIZE];
    const struct idle_terms wanted = {.is_set = true,
                                      .after_ns = NS,
                                      .give_back_ns = NS,
                                      .watches_input = true,
                                      .load_milli = 500,
                                      .watches_battery = true};
    ck_assert(!idle_watch_check(&wanted, folder, &problem));
    ck_assert(says("no terminal, USB keyboard"));
    put("dev/tty1", "%s", "");
    ck_assert(!idle_watch_check(&wanted, folder, &problem));
    ck_assert(says("no /proc/stat"));
    put_busy(0);
    ck_assert(!idle_watch_check(&wanted, folder, &problem));
    ck_assert(says("`battery: run` below `idle:` lifts this"));
    put("sys/class/power_supply/.keep", "%s", "");
    ck_assert(idle_watch_check(&wanted, folder, &problem));

    struct idle_watch *watch = idle_watch_create(&wanted, folder, 1, 0);
    ck_assert_ptr_nonnull(watch);
    ck_assert_int_eq(idle_watch_look(watch, 0), IDLE_HOLD);
    ck_assert_int_eq(idle_watch_look(watch, NS), IDLE_WORK);
    idle_watch_sees(watch, sees);
    ck_assert_str_eq(sees,
                     "input at 1 terminal, 0 USB keyboards or mice and 0 built-in ones; load; "
                     "battery");
    type_at("dev/tty1", 77);
    ck_assert_int_eq(idle_watch_look(watch, NS + 1), IDLE_WORK); /* no look is due */
    ck_assert_int_eq(idle_watch_look(watch, idle_watch_due_ns(watch)), IDLE_HOLD);
    json_t *status = idle_watch_json(watch, 2 * NS);
    ck_assert_str_eq(json_string_value(json_object_get(status, "order")), "hold");
    json_decref(status);
    idle_watch_override(watch);
    ck_assert_int_eq(idle_watch_look(watch, 2 * NS), IDLE_WORK);
    idle_watch_destroy(&watch);
    ck_assert_ptr_null(watch);
}
END_TEST

START_TEST(a_watch_rests_without_work_and_looks_when_work_comes)
{
    const struct idle_terms wanted = {
        .after_ns = NS, .give_back_ns = 60 * NS, .watches_input = true, .load_milli = -1};
    put("dev/tty1", "%s", "");
    struct idle_watch *watch = idle_watch_create(&wanted, folder, 1, 0);
    ck_assert_ptr_nonnull(watch);
    ck_assert_int_eq(idle_watch_look(watch, 0), IDLE_HOLD);
    ck_assert_int_eq(idle_watch_due_ns(watch), 2 * IDLE_LOOK_NS);
    ck_assert_int_eq(idle_watch_look(watch, 2 * IDLE_LOOK_NS), IDLE_HOLD);
    ck_assert_int_eq(idle_watch_due_ns(watch), NS); /* the machine counts as idle then */
    ck_assert_int_eq(idle_watch_look(watch, NS), IDLE_WORK);
    ck_assert_int_eq(idle_watch_due_ns(watch), NS + IDLE_LOOK_NS);
    idle_watch_has_work(watch, NS, false);
    ck_assert_int_eq(idle_watch_look(watch, 2 * NS), IDLE_WORK);
    ck_assert_int_eq(idle_watch_due_ns(watch), 2 * NS + IDLE_REST_NS);
    type_at("dev/tty1", 77); /* nothing stands still for it, and nothing has to */
    ck_assert_int_eq(idle_watch_look(watch, 3 * NS), IDLE_WORK);
    idle_watch_has_work(watch, 3 * NS, true);
    ck_assert_int_eq(idle_watch_due_ns(watch), 3 * NS);
    ck_assert_int_eq(idle_watch_look(watch, 3 * NS), IDLE_HOLD);
    ck_assert_int_eq(idle_watch_due_ns(watch), 3 * NS + 2 * IDLE_LOOK_NS);
    idle_watch_has_work(watch, 3 * NS + 1, true); /* the work is no longer the first */
    ck_assert_int_eq(idle_watch_due_ns(watch), 3 * NS + 2 * IDLE_LOOK_NS);
    idle_watch_destroy(&watch);
}
END_TEST

START_TEST(the_processes_are_looked_at_twice_as_often_while_the_devices_work)
{
    struct idle_terms wanted = {
        .after_ns = NS, .give_back_ns = 60 * NS, .load_milli = -1, .program_count = 1};
    (void)snprintf(wanted.programs[0], sizeof wanted.programs[0], "steam");
    put_busy(0);
    put_process(1, "init", 0, 0);
    struct idle_watch *watch = idle_watch_create(&wanted, folder, 100, 0);
    ck_assert_ptr_nonnull(watch);
    ck_assert_int_eq(idle_watch_look(watch, 0), IDLE_HOLD);
    ck_assert_int_eq(idle_watch_look(watch, 2 * NS), IDLE_WORK);
    ck_assert_int_eq(idle_watch_due_ns(watch), 2 * NS + IDLE_PROCESSES_NS);
    ck_assert_int_eq(idle_watch_look(watch, 4 * NS), IDLE_WORK);
    put_process(7, "steam", 1, 0);
    ck_assert_int_eq(idle_watch_look(watch, 4 * NS + IDLE_PROCESSES_NS), IDLE_HOLD);
    const int64_t seen_ns = 4 * NS + IDLE_PROCESSES_NS;
    ck_assert_int_eq(idle_watch_due_ns(watch), seen_ns + NS);
    /* Between two walks the program counts as still there. */
    drop("proc/7/stat");
    ck_assert_int_eq(idle_watch_look(watch, seen_ns + IDLE_PROCESSES_NS - 1), IDLE_HOLD);
    idle_watch_has_work(watch, seen_ns + IDLE_PROCESSES_NS - 1, false);
    ck_assert_int_eq(idle_watch_look(watch, 7 * NS), IDLE_WORK);
    ck_assert_int_eq(idle_watch_due_ns(watch), 7 * NS + IDLE_REST_NS);
    idle_watch_destroy(&watch);
}
END_TEST

SUITE("idle watch", setup, teardown, TEST(a_watch_says_what_it_sees_and_what_is_missing),
      TEST(a_watch_rests_without_work_and_looks_when_work_comes),
      TEST(the_processes_are_looked_at_twice_as_often_while_the_devices_work))
