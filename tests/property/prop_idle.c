/* The test plays 24 hours of a donor's machine on a virtual clock. The owner comes and goes, and
 * programs use the processors. A slow model knows every sign of use. A second after a sign no work
 * runs any more, until the machine has been idle for the owner's time. Of the idle time after that,
 * all but two seconds is used. */
#include "base/random.h"
#include "provider/idle/idle_watch.h"
#include "provider/session/idle_rule.h"
#include "tests/support/property_seed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEP_MS = 100,
    STEPS = 24 * 3600 * 1000 / STEP_MS,
    SECOND = 1000 / STEP_MS,
    DAYS = 12,
};
#define STEP_NS (INT64_C(1000000) * STEP_MS)

enum visit { AWAY, TYPES, COMPILES, PLAYS, SITS, TRAVELS, VISITS };

/* The owner does one thing at a time, for seconds or hours. */
struct day {
    struct random random;
    struct idle_terms terms;
    enum visit visit;
    int until, next_key; /* steps */
};

static void begin_visit(struct day *day, int step)
{
    static const uint64_t longest_s[VISITS] = {7200, 1800, 600, 3600, 900, 600};
    day->visit =
        day->visit == AWAY ? (enum visit)(1 + random_below(&day->random, VISITS - 1)) : AWAY;
    day->until = step + SECOND * (1 + (int)random_below(&day->random, longest_s[day->visit]));
    day->next_key = step;
}

/* Returns true in a step that has a sign of use. */
static bool pass_step(struct day *day, int step, struct idle_reading *reading)
{
    if (step >= day->until) {
        begin_visit(day, step);
    }
    reading->load_milli = day->visit == COMPILES ? 501 + (int64_t)random_below(&day->random, 7000)
                                                 : (int64_t)random_below(&day->random, 501);
    (void)snprintf(reading->program, sizeof reading->program, "%s",
                   day->visit == PLAYS ? "steam" : "");
    (void)snprintf(reading->user, sizeof reading->user, "%s", day->visit == SITS ? "alice" : "");
    reading->is_on_battery = day->visit == TRAVELS;
    const bool has_key = day->visit == TYPES && step >= day->next_key;
    if (has_key) {
        day->next_key = step + 1 + (int)random_below(&day->random, 30 * SECOND);
    }
    reading->has_input = reading->has_input || has_key; /* until the next look */
    return has_key || (day->visit != AWAY && day->visit != TYPES);
}

START_TEST(a_donors_day)
{
    struct day day = {.random = random_seeded(property_seed(20261129) + (uint64_t)_i)};
    day.terms = (struct idle_terms){
        .is_set = true,
        .after_ns = INT64_C(1000000000) * (int64_t)(5 + random_below(&day.random, 600)),
        .give_back_ns = INT64_C(1000000000) * (int64_t)random_below(&day.random, 1200),
        .watches_input = true,
        .watches_sessions = true,
        .watches_battery = true,
        .load_milli = 500,
        .programs = {"steam"},
        .program_count = 1};
    struct idle_reading reading = {.sees_input = true,
                                   .sees_load = true,
                                   .sees_sessions = true,
                                   .sees_programs = true,
                                   .sees_battery = true};
    struct idle_rule rule;
    idle_rule_init(&rule, &day.terms, 0);
    const int after = (int)(day.terms.after_ns / STEP_NS);
    int last_sign = 0; /* the agent's start */
    int last_idle = -STEPS;
    int due = 0;
    int64_t worked = 0;
    int64_t saving = 0;
    enum idle_order order = IDLE_HOLD;
    for (int step = 0; step < STEPS; step++) {
        last_sign = pass_step(&day, step, &reading) ? step : last_sign;
        if (step >= due) {
            order = idle_rule_see(&rule, step * STEP_NS, &reading);
            due = step + (int)((order == IDLE_WORK ? IDLE_LOOK_NS : 2 * IDLE_LOOK_NS) / STEP_NS);
            reading.has_input = false;
        }
        /* The end of a sign is known as exactly as the looks are close. */
        const int quiet = step - last_sign;
        last_idle = quiet >= after - SECOND ? step : last_idle;
        if (order == IDLE_WORK) {
            ck_assert_msg(step - last_idle <= SECOND, "work %d steps after a sign of use", quiet);
            worked++;
        } else {
            /* A look finds the sign, and another one that its time is over. */
            ck_assert_msg(quiet < after + 2 * SECOND, "no work after %d idle steps", quiet);
        }
        saving += order == IDLE_SAVE;
    }
    ck_assert_msg(worked > STEPS / 100, "a day without work proves nothing: %" PRId64, worked);
    ck_assert_msg(saving < STEPS / 20, "programs save their state for %" PRId64 " steps", saving);
}
END_TEST

SUITE("idle times", NULL, NULL, LOOP(a_donors_day, 0, DAYS))
