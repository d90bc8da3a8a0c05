/* The test plays a GPU's day on a virtual clock. Programs of others come and go. The GPU gets hot,
 * takes power, tells no figures for a while, and falls off the bus. A slow model keeps all
 * readings, and decides anew from all of them. The rule must agree with the model at every look. */
#include "base/random.h"
#include "provider/session/gpu_rule.h"
#include "tests/support/property_seed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKS = 3000, DAYS = 40 };
#define NS INT64_C(1000000000)

struct look {
    int64_t at_ns;
    struct gpu_reading reading;
    bool is_sign, is_lost;
};

struct day {
    struct random random;
    struct gpu_terms terms;
    struct look looks[LOOKS];
};

/* Returns true when the figures up to look `at` are a sign of use: some figure was at or above the
 * limit, and none since then was at or below `less`. */
static bool is_above(const struct day *day, int at, bool is_power, int64_t limit, int64_t less)
{
    for (int i = at; limit > 0 && i >= 0; i--) {
        const struct look *look = &day->looks[i];
        const bool is_told = is_power ? look->reading.sees_power : look->reading.sees_heat;
        const int64_t figure = is_power ? look->reading.milliwatts : look->reading.celsius;
        if (is_told && !look->is_lost && figure >= limit) {
            return true;
        }
        if (is_told && !look->is_lost && figure <= less) {
            return false;
        }
    }
    return false;
}

static bool is_sign(const struct day *day, int at)
{
    const struct gpu_terms *terms = &day->terms;
    const struct gpu_reading *reading = &day->looks[at].reading;
    const bool counts = terms->programs != GPU_PROGRAMS_RUN;
    const bool draws = terms->programs == GPU_PROGRAMS_ANY;
    return (counts && (!reading->sees_compute || reading->compute[0] != '\0')) ||
           (draws && (!reading->sees_graphics || reading->graphics[0] != '\0')) ||
           (terms->celsius > 0 && !reading->sees_heat) ||
           (terms->milliwatts > 0 && !reading->sees_power) ||
           is_above(day, at, false, terms->celsius, terms->celsius - GPU_COOLER_CELSIUS) ||
           is_above(day, at, true, terms->milliwatts,
                    terms->milliwatts - terms->milliwatts / GPU_POWER_PART);
}

/* Returns true when the GPU counts as in use at the look: the start, or some sign, is more recent
 * than `after_ns`. */
static bool is_used(const struct day *day, int at)
{
    const int64_t now_ns = day->looks[at].at_ns;
    const int64_t after_ns = day->terms.after_ns;
    if (day->looks[at].is_lost) {
        return true;
    }
    bool used = now_ns < after_ns;
    for (int i = at; i >= 0 && (i == at || now_ns - day->looks[i].at_ns < after_ns); i--) {
        const bool counts = day->looks[i].is_sign || day->looks[i].is_lost;
        used = used || (counts && now_ns - day->looks[i].at_ns < after_ns);
    }
    return used;
}

/* Goes back to the look at which this use began, and then through all looks since. SAVE begins at
 * the first look `give_back_ns` after the beginning. RETURN begins IDLE_SAVE_NS after SAVE, or when
 * a look finds the GPU lost. */
static enum idle_order expected(const struct day *day, int at)
{
    int first = at;
    int64_t saved_ns = -1;
    if (!is_used(day, at)) {
        return IDLE_WORK;
    }
    while (first > 0 && is_used(day, first - 1)) {
        first--;
    }
    const int64_t since_ns = first == 0 ? 0 : day->looks[first].at_ns;
    for (int i = first; i <= at; i++) {
        const int64_t now_ns = day->looks[i].at_ns;
        if (day->looks[i].is_lost || (saved_ns >= 0 && now_ns - saved_ns >= IDLE_SAVE_NS)) {
            return IDLE_RETURN;
        }
        if (saved_ns < 0 && now_ns - since_ns >= day->terms.give_back_ns) {
            saved_ns = now_ns;
        }
    }
    return saved_ns < 0 ? IDLE_HOLD : IDLE_SAVE;
}

/* Makes a look. A state lasts for some looks, so that the GPU is idle at times. */
static void make_look(struct day *day, int at)
{
    struct random *random = &day->random;
    struct look *look = &day->looks[at];
    *look = at > 0 ? day->looks[at - 1] : (struct look){.at_ns = 0};
    look->at_ns += NS * (int64_t)(1 + random_below(random, 9));
    struct gpu_reading *reading = &look->reading;
    if (at > 0 && random_below(random, 12) > 0) {
        return;
    }
    *reading = (struct gpu_reading){.is_lost = random_below(random, 30) == 0,
                                    .sees_compute = random_below(random, 20) > 0,
                                    .sees_graphics = random_below(random, 20) > 0,
                                    .sees_heat = random_below(random, 20) > 0,
                                    .sees_power = random_below(random, 20) > 0,
                                    .celsius = 30 + (int32_t)random_below(random, 60),
                                    .milliwatts = 1000 * (int64_t)random_below(random, 300)};
    (void)strcpy(reading->compute, random_below(random, 5) == 0 ? "python3 (process 7)" : "");
    (void)strcpy(reading->graphics, random_below(random, 5) == 0 ? "Xorg (process 8)" : "");
    look->is_lost = reading->is_lost;
}

START_TEST(a_gpus_day)
{
    struct day *day = calloc(1, sizeof *day);
    struct gpu_rule rule;
    int worked = 0;
    int held = 0;
    ck_assert_ptr_nonnull(day);
    day->random = random_seeded(property_seed(20261130) + (uint64_t)_i);
    day->terms = (struct gpu_terms){
        .is_set = true,
        .after_ns = NS * (int64_t)random_below(&day->random, 60),
        .give_back_ns = NS * (int64_t)random_below(&day->random, 120),
        .programs = (enum gpu_programs)random_below(&day->random, 3),
        .celsius = random_below(&day->random, 3) == 0 ? 0 : 60 + (int32_t)(_i % 25),
        .milliwatts = random_below(&day->random, 3) == 0 ? 0 : 200000 + 1000 * (int64_t)_i};
    gpu_rule_init(&rule, &day->terms, 0);
    for (int at = 0; at < LOOKS; at++) {
        make_look(day, at);
        day->looks[at].is_sign = !day->looks[at].is_lost && is_sign(day, at);
        const enum idle_order order =
            gpu_rule_see(&rule, day->looks[at].at_ns, &day->looks[at].reading);
        const enum idle_order wanted = expected(day, at);
        ck_assert_msg(order == wanted, "look %d: order %d, and the model says %d", at, (int)order,
                      (int)wanted);
        worked += order == IDLE_WORK;
        held += order != IDLE_WORK;
    }
    ck_assert_msg(worked > 0 && held > 0, "worked %d and held %d looks", worked, held);
    free(day);
}
END_TEST

SUITE("idle GPUs", NULL, NULL, LOOP(a_gpus_day, 0, DAYS))
