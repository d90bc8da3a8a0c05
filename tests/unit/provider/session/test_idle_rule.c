/* The tests feed the rule of idle times with readings of a machine, and look at its orders and
 * reasons. */
#include "provider/session/idle_rule.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

#define NS INT64_C(1000000000)

static struct idle_rule rule;
static struct idle_terms terms;
static struct idle_reading quiet;

static void setup(void)
{
    terms = (struct idle_terms){.is_set = true,
                                .after_ns = 60 * NS,
                                .give_back_ns = 600 * NS,
                                .watches_input = true,
                                .watches_sessions = true,
                                .watches_battery = true,
                                .load_milli = 500,
                                .celsius = 85,
                                .programs = {"steam"},
                                .program_count = 1};
    quiet = (struct idle_reading){.sees_input = true,
                                  .sees_load = true,
                                  .sees_sessions = true,
                                  .sees_programs = true,
                                  .sees_battery = true,
                                  .sees_heat = true};
    idle_rule_init(&rule, &terms, 0);
}

static enum idle_order at(int64_t seconds, const struct idle_reading *reading)
{
    return idle_rule_see(&rule, seconds * NS, reading);
}

static const char *reason(int64_t seconds)
{
    static char text[IDLE_REASON_SIZE];
    idle_rule_reason(&rule, seconds * NS, text);
    return text;
}

START_TEST(a_machine_that_was_not_watched_long_enough_is_in_use)
{
    ck_assert_int_eq(at(0, &quiet), IDLE_HOLD);
    ck_assert_int_eq(at(59, &quiet), IDLE_HOLD);
    ck_assert_str_eq(reason(59), "the machine has been watched for 59 s so far");
    ck_assert_int_eq(at(60, &quiet), IDLE_WORK);
}
END_TEST

START_TEST(other_terms_hold_from_the_next_reading_on)
{
    struct idle_reading busy = quiet;
    busy.load_milli = 800;
    (void)at(60, &quiet);
    ck_assert_int_eq(at(61, &busy), IDLE_HOLD);
    terms.load_milli = 900;
    terms.after_ns = 10 * NS;
    idle_rule_change(&rule, &terms);
    ck_assert_int_eq(at(70, &busy), IDLE_HOLD);
    ck_assert_int_eq(at(71, &busy), IDLE_WORK);
}
END_TEST

START_TEST(a_key_holds_the_work_at_once_and_for_the_whole_time_after_it)
{
    struct idle_reading key = quiet;
    key.has_input = true;
    ck_assert_int_eq(at(60, &quiet), IDLE_WORK);
    ck_assert_int_eq(at(61, &key), IDLE_HOLD);
    ck_assert_int_eq(at(100, &key), IDLE_HOLD);
    ck_assert_int_eq(at(159, &quiet), IDLE_HOLD);
    ck_assert_str_eq(reason(103), "somebody used a key, the mouse or a terminal 3 s ago");
    ck_assert(idle_rule_idle_ns(&rule) == 160 * NS);
    ck_assert_int_eq(at(160, &quiet), IDLE_WORK);
}
END_TEST

/* Each round has one sign of use, the reason while it is seen, and the reason 20 s later. */
START_TEST(every_sign_of_use_is_one_and_is_named)
{
    static const char *const said[][2] = {
        {"the program steam runs", "the program steam ran 20 s ago"},
        {"somebody used a key, the mouse or a terminal 0 s ago",
         "somebody used a key, the mouse or a terminal 20 s ago"},
        {"alice is logged in at this machine", "alice was logged in at this machine 20 s ago"},
        {"other programs use 1.2 cores", "other programs used 1.2 cores 20 s ago"},
        {"the machine runs on its battery", "the machine ran on its battery 20 s ago"},
        {"the machine is at 91 degrees Celsius", "the machine was at 91 degrees Celsius 20 s ago"},
    };
    struct idle_reading sign = quiet;
    switch (_i) {
    case 0:
        strcpy(sign.program, "steam");
        break;
    case 1:
        sign.has_input = true;
        break;
    case 2:
        strcpy(sign.user, "alice");
        break;
    case 3:
        sign.load_milli = 1250;
        break;
    case 4:
        sign.is_on_battery = true;
        break;
    default:
        sign.celsius = 91;
        break;
    }
    ck_assert_int_eq(at(60, &quiet), IDLE_WORK);
    ck_assert_int_eq(at(61, &sign), IDLE_HOLD);
    ck_assert_str_eq(reason(61), said[_i][0]);
    ck_assert_int_eq(at(81, &quiet), IDLE_HOLD);
    ck_assert_str_eq(reason(81), said[_i][1]);
    ck_assert_int_eq(at(121, &quiet), IDLE_WORK);
}
END_TEST

START_TEST(the_bounds_are_the_owners)
{
    struct idle_reading edge = quiet;
    edge.load_milli = 500;
    edge.celsius = 84;
    ck_assert_int_eq(at(60, &edge), IDLE_WORK);
    edge.load_milli = 501;
    ck_assert_int_eq(at(61, &edge), IDLE_HOLD);
    edge.load_milli = 0;
    edge.celsius = 85;
    ck_assert_int_eq(at(200, &edge), IDLE_HOLD);
    ck_assert_str_eq(reason(200), "the machine is at 85 degrees Celsius");
}
END_TEST

START_TEST(a_battery_that_is_full_enough_is_no_sign)
{
    struct idle_reading drawn = quiet;
    terms.battery_percent = 60;
    idle_rule_init(&rule, &terms, 0);
    drawn.is_on_battery = true;
    drawn.battery_percent = 60;
    ck_assert_int_eq(at(60, &drawn), IDLE_WORK);
    drawn.battery_percent = 59;
    ck_assert_int_eq(at(61, &drawn), IDLE_HOLD);
    ck_assert_str_eq(reason(61), "the machine runs on its battery, which has 59 %, and the owner's "
                                 "limit is 60 %");
    ck_assert_int_eq(at(81, &quiet), IDLE_HOLD);
    ck_assert_str_eq(reason(81), "the machine ran on its battery, which had 59 %, and the owner's "
                                 "limit is 60 % 20 s ago");
    drawn.battery_percent = -1; /* a charge that nobody tells may be low */
    ck_assert_int_eq(at(200, &drawn), IDLE_HOLD);
    ck_assert_str_eq(reason(200), "the machine runs on its battery");
}
END_TEST

START_TEST(power_is_a_sign_only_when_it_lasts)
{
    struct idle_reading high = quiet;
    terms.milliwatts = 65000;
    terms.power_for_ns = 10 * NS;
    quiet.sees_power = high.sees_power = true;
    idle_rule_init(&rule, &terms, 0);
    high.milliwatts = 65001;
    ck_assert_int_eq(at(60, &quiet), IDLE_WORK);
    ck_assert_int_eq(at(61, &high), IDLE_WORK);
    ck_assert_int_eq(at(70, &high), IDLE_WORK);
    ck_assert_int_eq(at(71, &high), IDLE_HOLD);
    ck_assert_str_eq(reason(71), "the processors take 65.0 W, and the owner's limit is 65 W");
    ck_assert_int_eq(at(131, &quiet), IDLE_WORK);
    ck_assert_int_eq(at(132, &high), IDLE_WORK);
    high.milliwatts = 65000;
    ck_assert_int_eq(at(141, &high), IDLE_WORK); /* it is not above the limit, so it begins anew */
    high.milliwatts = 80000;
    ck_assert_int_eq(at(142, &high), IDLE_WORK);
    ck_assert_int_eq(at(151, &high), IDLE_WORK);
    ck_assert_int_eq(at(152, &high), IDLE_HOLD);
    high.sees_power = false;
    ck_assert_int_eq(at(153, &high), IDLE_HOLD);
    ck_assert_str_eq(reason(153), "nothing here tells of the power");
}
END_TEST

/* The owner says which sensors count. */
START_TEST(signs_that_the_owner_does_not_ask_for_are_none)
{
    const struct idle_terms none = {.is_set = true, .after_ns = NS, .load_milli = -1};
    struct idle_reading busy = quiet;
    busy.has_input = busy.is_on_battery = true;
    busy.load_milli = 64000;
    busy.celsius = 110;
    strcpy(busy.user, "alice");
    strcpy(busy.program, "steam");
    idle_rule_init(&rule, &none, 0);
    ck_assert_int_eq(at(1, &busy), IDLE_WORK);
    busy = (struct idle_reading){.sees_input = false};
    ck_assert_int_eq(at(2, &busy), IDLE_WORK);
}
END_TEST

/* A sensor that sees nothing never makes a machine idle. */
START_TEST(what_no_sensor_sees_holds_the_work)
{
    static const char *const said[] = {
        "nothing here tells of keys, the mouse and terminals",
        "nothing here tells of the load of other programs",
        "nothing here tells of who is logged in",
        "nothing here tells of which programs run",
        "nothing here tells of the battery",
        "nothing here tells of the temperature",
    };
    struct idle_reading blind = quiet;
    bool *const sees[] = {&blind.sees_input,    &blind.sees_load,    &blind.sees_sessions,
                          &blind.sees_programs, &blind.sees_battery, &blind.sees_heat};
    *sees[_i] = false;
    ck_assert_int_eq(at(60, &quiet), IDLE_WORK);
    ck_assert_int_eq(at(61, &blind), IDLE_HOLD);
    ck_assert_int_eq(at(1000, &blind), IDLE_RETURN);
    ck_assert_str_eq(reason(1000), said[_i]);
}
END_TEST

START_TEST(work_goes_back_when_the_owner_stays)
{
    struct idle_reading key = quiet;
    key.has_input = true;
    ck_assert_int_eq(at(60, &quiet), IDLE_WORK);
    ck_assert_int_eq(at(100, &key), IDLE_HOLD);
    ck_assert_int_eq(at(699, &key), IDLE_HOLD);
    ck_assert_int_eq(at(700, &key), IDLE_SAVE);
    ck_assert_int_eq(at(704, &key), IDLE_SAVE);
    ck_assert_int_eq(at(705, &key), IDLE_RETURN);
    ck_assert_int_eq(at(5000, &key), IDLE_RETURN);
    ck_assert_int_eq(at(5060, &quiet), IDLE_WORK);
    ck_assert_int_eq(at(5061, &key), IDLE_HOLD); /* the time counts anew for the next use */
}
END_TEST

START_TEST(who_resumes_by_hand_is_obeyed_until_the_machine_was_idle)
{
    struct idle_reading key = quiet;
    key.has_input = true;
    ck_assert_int_eq(at(10, &key), IDLE_HOLD);
    idle_rule_override(&rule);
    ck_assert_int_eq(idle_rule_order(&rule), IDLE_WORK);
    ck_assert_int_eq(at(20, &key), IDLE_WORK);
    ck_assert_int_eq(at(80, &quiet), IDLE_WORK); /* idle: the rule holds again */
    ck_assert_int_eq(at(81, &key), IDLE_HOLD);
}
END_TEST

START_TEST(resuming_a_machine_that_works_changes_nothing)
{
    struct idle_reading key = quiet;
    key.has_input = true;
    ck_assert_int_eq(at(60, &quiet), IDLE_WORK);
    idle_rule_override(&rule);
    ck_assert_int_eq(at(61, &key), IDLE_HOLD);
}
END_TEST

START_TEST(long_times_are_said_in_minutes_and_hours)
{
    struct idle_reading key = quiet;
    key.has_input = true;
    terms.after_ns = 86400 * NS;
    idle_rule_init(&rule, &terms, 0);
    (void)at(0, &key);
    (void)at(1, &quiet);
    ck_assert_str_eq(reason(119), "somebody used a key, the mouse or a terminal 119 s ago");
    ck_assert_str_eq(reason(120), "somebody used a key, the mouse or a terminal 2 min ago");
    ck_assert_str_eq(reason(7200), "somebody used a key, the mouse or a terminal 2 h ago");
}
END_TEST

SUITE("idle rule", setup, NULL, TEST(a_machine_that_was_not_watched_long_enough_is_in_use),
      TEST(a_key_holds_the_work_at_once_and_for_the_whole_time_after_it),
      LOOP(every_sign_of_use_is_one_and_is_named, 0, 6),
      TEST(a_battery_that_is_full_enough_is_no_sign), TEST(power_is_a_sign_only_when_it_lasts),
      TEST(the_bounds_are_the_owners), TEST(signs_that_the_owner_does_not_ask_for_are_none),
      LOOP(what_no_sensor_sees_holds_the_work, 0, 6), TEST(work_goes_back_when_the_owner_stays),
      TEST(who_resumes_by_hand_is_obeyed_until_the_machine_was_idle),
      TEST(resuming_a_machine_that_works_changes_nothing),
      TEST(long_times_are_said_in_minutes_and_hours),
      TEST(other_terms_hold_from_the_next_reading_on))
