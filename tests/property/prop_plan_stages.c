/* Stages of layers on devices of unlike speeds, against every cut on every row of devices: up to
 * ten columns of unlike work, weights and activations, up to four devices of unlike speeds and
 * memories, links that take time. What a cut takes is worked out by the fixed order of one forward,
 * one backward in turn, or by rounds one after the other: not by the planner's own rules. */
#include "planner/layout/plan.h"

#include "base/cleanup.h"
#include "base/random.h"
#include "tests/support/sample_work.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CASES = 60, COLUMNS = 10, DEVICES = 4, BATCHES = 16, BATCH = 0, ROUNDS = 1 };

static const double far = 0.05;    /* no plan is further from the best cut */
static const double usual = 0.005; /* and most are as near */

struct drawn {
    uint32_t columns;
    int64_t units[COLUMNS]; /* of an item there; back twice as many */
    int64_t weights[COLUMNS], held[COLUMNS];
    int64_t edge_bytes;
    bool has_back;
    size_t device_count;
    double unit_s[DEVICES], memory[DEVICES];
    double latency_s;
    int64_t values[2];
};

static struct drawn drawn; /* what templates make is of values alone */

static const double bandwidth = 1e9;

static const struct template_parameter parameters[] = {
    {.name = "batch", .meaning = "items", .usual = 1, .least = 1, .most = 64, .is_batch = true},
    {.name = "rounds", .meaning = "rounds", .usual = 0, .least = 0, .most = 1000},
    {.name = NULL},
};

static void place(struct steps *steps, uint32_t step, uint32_t column, enum step_phase phase)
{
    steps->steps[step].column = (uint16_t)column;
    steps->steps[step].phase = (uint8_t)phase;
    sample_weights(steps, step, column, 1, drawn.weights[column]);
}

/* A step there and one back, or around, of each column; back is in the other order. */
static enum steps_status make(const int64_t *values, struct steps **ret_steps,
                              struct problem *ret_problem)
{
    const uint32_t count = drawn.columns;
    const int64_t batch = values[BATCH];
    struct steps *steps = sample_steps(2 * (size_t)count);
    (void)ret_problem;
    for (uint32_t c = 0; c < count; c++) {
        const uint32_t second = drawn.has_back ? 2 * count - 1 - c : count + c;
        const int64_t times = drawn.has_back ? 2 : values[ROUNDS];
        sample_units(steps, c, batch * drawn.units[c], 0);
        sample_units(steps, second, times * batch * drawn.units[c], 0);
        steps->steps[c].held_bytes = batch * drawn.held[c];
        place(steps, c, c, STEP_FORWARD);
        place(steps, second, c, drawn.has_back ? STEP_BACKWARD : STEP_DECODE);
        if (drawn.has_back || c + 1 < count) {
            sample_edge(steps, c, second, batch * drawn.held[c]);
        }
    }
    for (uint32_t s = 0; s + 1 < 2 * count; s++) {
        bool is_turn = s + 1 == count;
        int64_t rounds = s >= count && !drawn.has_back ? values[ROUNDS] : 1;
        if (!is_turn || !drawn.has_back) { /* there it is the last column's own */
            sample_edge(steps, s, s + 1, rounds * batch * drawn.edge_bytes);
        }
    }
    *ret_steps = steps;
    return STEPS_OK;
}

static enum steps_status make_chain(const int64_t *values, struct steps **ret_steps,
                                    struct problem *ret_problem)
{
    enum steps_status status = make(values, ret_steps, ret_problem);
    (*ret_steps)->column_count = drawn.columns;
    (*ret_steps)->rounds = drawn.has_back ? 0 : values[ROUNDS];
    (*ret_steps)->round_bytes = values[BATCH] * drawn.edge_bytes;
    return status;
}

static const struct template sample = {
    .name = "sample", .parameters = parameters, .make = make, .make_chain = make_chain};

static void draw(struct random *dice)
{
    static const double speeds[] = {0.5, 0.5, 0.7, 1, 1, 1.6, 2.3};
    static const int64_t edges[] = {1000, 1000, 1000000, 100000000};
    double all = 0;
    drawn = (struct drawn){.columns = 3 + (uint32_t)random_below(dice, COLUMNS - 2),
                           .edge_bytes = edges[random_below(dice, 4)],
                           .has_back = random_below(dice, 3) > 0,
                           .device_count = 2 + (size_t)random_below(dice, DEVICES - 1),
                           .latency_s = 0.02 * (double)random_below(dice, 4),
                           .values = {INT64_C(2) << random_below(dice, 4), 2}};
    drawn.values[ROUNDS] = drawn.has_back ? 0 : 2 + (int64_t)random_below(dice, 6);
    for (uint32_t c = 0; c < drawn.columns; c++) {
        drawn.units[c] = 1 + (int64_t)random_below(dice, c == 0 ? 8 : 3);
        drawn.weights[c] = INT64_C(10000000000) * (1 + (int64_t)random_below(dice, 2));
        drawn.held[c] = INT64_C(1000000000) * (int64_t)random_below(dice, 3);
        all += (double)drawn.weights[c];
    }
    for (size_t d = 0; d < drawn.device_count; d++) {
        drawn.unit_s[d] = speeds[random_below(dice, 7)];
        /* Half a unit of what is held is for what is worked on, comes and goes. */
        drawn.memory[d] = 1e9 * floor(all / 1e9 * (0.3 + 0.1 * (double)random_below(dice, 5))) +
                          1e9 * (double)random_below(dice, 40) + 0.5e9 +
                          (drawn.edge_bytes > 1000000 ? 16e9 : 0);
    }
}

/* ---------------------------------------------------------------- every cut */

struct cut {
    size_t count;
    size_t on[DEVICES];
    uint32_t first[DEVICES + 1]; /* columns; the last stands for the end */
    int64_t micro_batches, items;
};

static double work_s(const struct cut *cut, size_t stage)
{
    int64_t units = 0;
    for (uint32_t c = cut->first[stage]; c < cut->first[stage + 1]; c++) {
        units += drawn.units[c];
    }
    return (double)(units * cut->items) * drawn.unit_s[cut->on[stage]];
}

static double link_s(const struct cut *cut)
{
    return drawn.latency_s + (double)(cut->items * drawn.edge_bytes) / bandwidth;
}

static bool fits(const struct cut *cut)
{
    for (size_t k = 0; k < cut->count; k++) {
        const int64_t ahead = (int64_t)(cut->count - k);
        const int64_t held =
            drawn.has_back && ahead < cut->micro_batches ? ahead : cut->micro_batches;
        double bytes = 0.4e9 + (drawn.edge_bytes > 1000000 ? 16e9 : 0);
        for (uint32_t c = cut->first[k]; c < cut->first[k + 1]; c++) {
            bytes += (double)(drawn.weights[c] + held * cut->items * drawn.held[c]);
        }
        if (bytes > drawn.memory[cut->on[k]]) {
            return false;
        }
    }
    return true;
}

/* Forward until as many are under way as there are stages to the end, then one backward, one
 * forward in turn. */
static double back_s(const struct cut *cut)
{
    const int64_t count = cut->micro_batches;
    double there[DEVICES][BATCHES];
    double back[DEVICES][BATCHES];
    double free_s[DEVICES] = {0};
    int64_t forwards[DEVICES] = {0};
    int64_t backwards[DEVICES] = {0};
    for (int64_t left = 2 * count * (int64_t)cut->count; left > 0;) {
        for (size_t k = 0; k < cut->count; k++) {
            const double takes_s = work_s(cut, k);
            const double way_s = link_s(cut);
            const int64_t f = forwards[k];
            const int64_t b = backwards[k];
            const bool is_back = f == count || f - b == (int64_t)(cut->count - k);
            const bool is_last = k + 1 == cut->count;
            if (b == count) {
                continue;
            }
            if (!is_back && (k == 0 || forwards[k - 1] > f)) {
                double at_s = k == 0 ? 0 : there[k - 1][f] + way_s;
                free_s[k] = there[k][f] = fmax(free_s[k], at_s) + takes_s;
                forwards[k]++;
                left--;
            } else if (is_back && (is_last || backwards[k + 1] > b)) {
                double at_s = is_last ? there[k][b] : back[k + 1][b] + way_s;
                free_s[k] = back[k][b] = fmax(free_s[k], at_s) + 2 * takes_s;
                backwards[k]++;
                left--;
            }
        }
    }
    double end_s = 0;
    for (size_t k = 0; k < cut->count; k++) {
        end_s = fmax(end_s, free_s[k]);
    }
    return end_s;
}

/* All there, then round by round. */
static double around_s(const struct cut *cut)
{
    double at_s[BATCHES] = {0}; /* when each is out of the last stage, there in the next */
    double free_s[DEVICES] = {0};
    for (int64_t round = 0; round <= drawn.values[ROUNDS]; round++) {
        for (size_t k = 0; k < cut->count; k++) {
            const double takes_s = work_s(cut, k);
            const bool is_begin = round == 0 && k == 0;
            for (int64_t i = 0; i < cut->micro_batches; i++) {
                double there_s = at_s[i] + (is_begin ? 0 : link_s(cut));
                free_s[k] = at_s[i] = fmax(free_s[k], there_s) + takes_s;
            }
        }
    }
    return at_s[cut->micro_batches - 1];
}

/* No cut of these stages takes less. */
static double least_s(const struct cut *cut)
{
    const double times = drawn.has_back ? 3 : 1 + (double)drawn.values[ROUNDS];
    double most = 0;
    for (size_t k = 0; k < cut->count; k++) {
        most = fmax(most, work_s(cut, k));
    }
    return times * most * (double)cut->micro_batches;
}

static void weigh(struct cut *cut, double *best_s)
{
    for (int64_t count = 1; count <= drawn.values[BATCH]; count *= 2) {
        cut->micro_batches = count;
        cut->items = drawn.values[BATCH] / count;
        if (least_s(cut) < *best_s && fits(cut)) {
            *best_s = fmin(*best_s, drawn.has_back ? back_s(cut) : around_s(cut));
        }
    }
}

/* Stages from `first` on, on devices that are not `used`. */
static void try_all(struct cut *cut, uint32_t first, unsigned used, double *best_s)
{
    for (size_t d = 0; d < drawn.device_count; d++) {
        if ((used >> d & 1) != 0) {
            continue;
        }
        for (uint32_t end = first + 1; end <= drawn.columns; end++) {
            cut->on[cut->count] = d;
            cut->first[cut->count++] = first;
            cut->first[cut->count] = end;
            if (end < drawn.columns) {
                try_all(cut, end, used | 1u << d, best_s);
            } else if (cut->count > 1) {
                weigh(cut, best_s);
            }
            cut->count--;
        }
    }
}

/* ---------------------------------------------------------------- the planner's */

static double planned_s(uint64_t seed, const struct spot_risk *risk)
{
    struct sample_device devices[DEVICES];
    struct plan_device list[DEVICES];
    struct plan_fault fault;
    CLEANUP(plan_destroy) struct plan *plan = NULL;
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy)
    struct topology *topology =
        sample_links((uint32_t)drawn.device_count, drawn.latency_s, bandwidth);
    ck_assert_int_eq(template_create(&sample, drawn.values, &steps, NULL), STEPS_OK);
    for (uint32_t d = 0; d < drawn.device_count; d++) {
        sample_device(&devices[d], drawn.unit_s[d], 0);
        sample_memory(&devices[d], drawn.memory[d]);
        list[d] = (struct plan_device){.name = "device",
                                       .cost = &devices[d].cost,
                                       .memory = d,
                                       .price_micro = MICRO_PER_CREDIT,
                                       .risk = *risk};
    }
    const struct plan_input input = {.steps = steps,
                                     .template = &sample,
                                     .values = drawn.values,
                                     .devices = list,
                                     .device_count = drawn.device_count,
                                     .topology = topology,
                                     .budget_micro = LIMIT_NONE,
                                     .effort = PLAN_EFFORT};
    if (plan_search(&input, &plan, &fault) != PLAN_OK) {
        return INFINITY;
    }
    for (size_t d = 0; d < drawn.device_count; d++) {
        ck_assert_msg(plan->uses[d].memory_bytes <= drawn.memory[d], "seed %d", (int)seed);
    }
    return plan->total.makespan_s.value;
}

START_TEST(no_cut_is_much_better)
{
    unsigned cuts = 0;
    unsigned nearly = 0;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct random dice = random_seeded(seed);
        struct cut cut = {.count = 0};
        double best_s = INFINITY;
        draw(&dice);
        try_all(&cut, 0, 0, &best_s);
        if (!(best_s < INFINITY)) {
            continue;
        }
        const double made_s = planned_s(seed, &(struct spot_risk){0});
        ck_assert_msg(made_s <= best_s * (1 + far), "seed %d: %g s, best cut %g s", (int)seed,
                      made_s, best_s);
        cuts++;
        nearly += made_s <= best_s * (1 + usual);
    }
    ck_assert_msg(cuts > CASES / 2 && nearly > cuts * 8 / 10, "%u of %u", nearly, cuts);
}
END_TEST

/* Interruptions only add: what is found in spite of them is found without them, too, but for what a
 * search among neighbours misses. */
START_TEST(few_plans_are_sooner_where_devices_may_be_taken_away)
{
    static const double rates[] = {1e-6, 0.01, 1, 6};
    unsigned sooner = 0;
    unsigned plans = 0;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct random dice = random_seeded(seed + CASES);
        draw(&dice);
        struct spot_risk risk = {.per_hour = rates[random_below(&dice, 4)],
                                 .restart_s = (double)random_below(&dice, 3),
                                 .checkpoint_s = 0.1 * (double)random_below(&dice, 2)};
        risk.interval_s = spot_interval(&risk);
        const double without_s = planned_s(seed, &(struct spot_risk){0});
        const double with_s = planned_s(seed, &risk);
        ck_assert_msg(without_s <= with_s * (1 + far) || with_s == INFINITY,
                      "seed %d: %g s, and %g s with interruptions", (int)seed, without_s, with_s);
        sooner += without_s > with_s * (1 + 1e-9);
        plans += without_s < INFINITY;
    }
    ck_assert_msg(plans > CASES / 2 && sooner <= plans / 20, "%u sooner of %u", sooner, plans);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_stages");
    TCase *tcase = tcase_create("stages");
    tcase_set_timeout(tcase, 600);
    tcase_add_test(tcase, no_cut_is_much_better);
    tcase_add_test(tcase, few_plans_are_sooner_where_devices_may_be_taken_away);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
