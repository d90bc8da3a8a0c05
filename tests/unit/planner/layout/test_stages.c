/* Columns cut into stages, against figures worked out by hand and against looking at every cut. */
#include "planner/layout/stages.h"

#include "base/cleanup.h"
#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

enum { COLUMNS = 5, GROUPS = 2, CASES = 400 };

/* Figures of up to COLUMNS columns on up to GROUPS groups; all links take no time. */
struct figures {
    uint32_t counts[GROUPS];
    double time_s[COLUMNS * GROUPS];
    double fixed_bytes[COLUMNS * GROUPS], held_bytes[COLUMNS * GROUPS];
    double working_bytes[COLUMNS * GROUPS];
    double memory_bytes[GROUPS];
    double link_s[GROUPS * GROUPS];
    struct stages_input input;
};

static void begin(struct figures *figures, size_t columns, size_t groups)
{
    *figures = (struct figures){.input = {.column_count = columns,
                                          .group_count = groups,
                                          .counts = figures->counts,
                                          .time_s = figures->time_s,
                                          .fixed_bytes = figures->fixed_bytes,
                                          .held_bytes = figures->held_bytes,
                                          .working_bytes = figures->working_bytes,
                                          .memory_bytes = figures->memory_bytes,
                                          .link_s = figures->link_s,
                                          .micro_batches = 4}};
    for (size_t g = 0; g < groups; g++) {
        figures->counts[g] = 2;
        figures->memory_bytes[g] = INFINITY;
    }
}

static struct stages_search *search_of(const struct figures *figures)
{
    struct stages_search *search = NULL;
    ck_assert_int_eq(stages_create(&figures->input, &search), STAGES_OK);
    return search;
}

START_TEST(columns_are_cut_where_the_longest_stage_is_shortest)
{
    struct figures figures;
    begin(&figures, 4, 1);
    const double times[] = {3, 1, 2, 2}; /* 3 + 1 | 2 + 2 */
    for (size_t c = 0; c < 4; c++) {
        figures.time_s[c] = times[c];
    }
    CLEANUP(stages_destroy) struct stages_search *search = search_of(&figures);
    struct stages stages;
    double least_s = 0;
    ck_assert_int_eq(stages_least(search, &least_s), STAGES_OK);
    ck_assert(least_s >= 4 && least_s <= 4.05);
    ck_assert_int_eq(stages_find(search, 4), STAGES_OK);
    ck_assert(stages_take(search, 1, &stages));
    ck_assert_uint_eq(stages.stage_count, 2);
    ck_assert_uint_eq(stages.stages[0].count, 2);
    ck_assert_double_eq(stages.slowest_s, 4);
    ck_assert_double_eq(stages.sum_s, 8);
    ck_assert_int_eq(stages_find(search, 3.9), STAGES_NOWHERE);
    ck_assert(!stages_take(search, 1, &stages));
    ck_assert_int_eq(stages_find(search, 8), STAGES_OK); /* one is enough */
    ck_assert(stages_take(search, 1, &stages));
    ck_assert_uint_eq(stages.stage_count, 1);
}
END_TEST

/* The first of two stages holds two micro-batches and the last holds one, with one forward, one
 * backward in turn. */
START_TEST(a_stage_holds_what_is_under_way)
{
    struct figures figures;
    begin(&figures, 2, 1);
    figures.time_s[0] = figures.time_s[1] = 1;
    figures.fixed_bytes[0] = figures.fixed_bytes[1] = 10;
    figures.held_bytes[0] = figures.held_bytes[1] = 5;
    figures.memory_bytes[0] = 20;
    CLEANUP(stages_destroy) struct stages_search *search = search_of(&figures);
    ck_assert_int_eq(stages_find(search, 1), STAGES_OK);
    figures.memory_bytes[0] = 19;
    ck_assert_int_eq(stages_find(search, 1), STAGES_NOWHERE);
    figures.memory_bytes[0] = 29; /* four micro-batches, each around again and again */
    figures.input.holds_all = true;
    ck_assert_int_eq(stages_find(search, 1), STAGES_NOWHERE);
    figures.memory_bytes[0] = 30;
    ck_assert_int_eq(stages_find(search, 1), STAGES_OK);
    figures.working_bytes[1] = 1;
    ck_assert_int_eq(stages_find(search, 1), STAGES_NOWHERE);
}
END_TEST

START_TEST(links_are_within_the_limit_or_missing)
{
    struct figures figures;
    begin(&figures, 2, 2);
    figures.counts[0] = figures.counts[1] = 1;
    figures.time_s[0] = figures.time_s[3] =
        1; /* the first column on one, the second on the other */
    figures.time_s[1] = figures.time_s[2] = INFINITY;
    figures.link_s[1] = 3;
    CLEANUP(stages_destroy) struct stages_search *search = search_of(&figures);
    struct stages stages;
    double least_s = 0;
    ck_assert_int_eq(stages_find(search, 2.9), STAGES_NOWHERE);
    ck_assert_int_eq(stages_find(search, 3), STAGES_OK);
    ck_assert(stages_take(search, 3, &stages));
    ck_assert_uint_eq(stages.stages[0].group, 0);
    ck_assert_uint_eq(stages.stages[1].group, 1);
    ck_assert_int_eq(stages_least(search, &least_s), STAGES_OK);
    ck_assert(least_s >= 3 && least_s < 3.1);
    figures.link_s[1] = INFINITY;
    ck_assert_int_eq(stages_least(search, &least_s), STAGES_NOWHERE);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    struct figures figures;
    struct stages_search *search = NULL;
    begin(&figures, 2, 1);
    figures.input.column_count = STAGES_COLUMNS + 1;
    ck_assert_int_eq(stages_create(&figures.input, &search), STAGES_BAD_INPUT);
    begin(&figures, 2, 1);
    figures.input.micro_batches = 0;
    ck_assert_int_eq(stages_create(&figures.input, &search), STAGES_BAD_INPUT);
    begin(&figures, 2, 2);
    figures.counts[0] = STAGES_DEVICES; /* 65 x 65 */
    figures.counts[1] = STAGES_DEVICES;
    ck_assert_int_eq(stages_create(&figures.input, &search), STAGES_BAD_INPUT);
    ck_assert_ptr_null(search);
}
END_TEST

/* ---------------------------------------------------------------- every cut */

struct model {
    const struct figures *figures;
    uint32_t left[GROUPS];
    double limit_s;
    uint32_t fewest; /* devices that do it within the limit */
    double least_s;  /* of the longest stage of any cut */
};

/* Columns from `column` on; `after`: how many stages come after those that are cut here, from the
 * end on. */
static void cut(struct model *model, size_t end, uint32_t after, double slowest_s)
{
    const struct stages_input *input = &model->figures->input;
    if (end == 0) {
        model->least_s = fmin(model->least_s, slowest_s);
        model->fewest =
            slowest_s <= model->limit_s && after < model->fewest ? after : model->fewest;
        return;
    }
    for (size_t g = 0; g < input->group_count; g++) {
        int64_t in_flight = (int64_t)after + 1;
        double time_s = 0;
        double bytes = 0;
        double working = 0;
        if (model->left[g] == 0) {
            continue;
        }
        in_flight =
            input->holds_all || input->micro_batches < in_flight ? input->micro_batches : in_flight;
        model->left[g]--;
        for (size_t first = end; first-- > 0;) {
            time_s += input->time_s[first * input->group_count + g];
            size_t at = first * input->group_count + g;
            bytes += input->fixed_bytes[at] + (double)in_flight * input->held_bytes[at];
            working = fmax(working, input->working_bytes[at]);
            if (time_s < INFINITY && bytes + working <= input->memory_bytes[g]) {
                cut(model, first, after + 1, fmax(slowest_s, time_s));
            }
        }
        model->left[g]++;
    }
}

START_TEST(no_cut_is_better)
{
    struct random dice = random_seeded(17);
    unsigned found = 0;
    unsigned none = 0;
    for (int i = 0; i < CASES; i++) {
        struct figures figures;
        size_t columns = 1 + (size_t)random_below(&dice, COLUMNS);
        size_t groups = 1 + (size_t)random_below(&dice, GROUPS);
        begin(&figures, columns, groups);
        figures.input.micro_batches = 1 + (int64_t)random_below(&dice, 4);
        figures.input.holds_all = random_below(&dice, 2) == 0;
        for (size_t c = 0; c < columns; c++) {
            for (size_t g = 0; g < groups; g++) {
                bool can = random_below(&dice, 8) > 0;
                size_t at = c * groups + g;
                figures.time_s[at] = can ? 1 + (double)random_below(&dice, 9) : INFINITY;
                figures.fixed_bytes[at] = (double)random_below(&dice, 5);
                figures.held_bytes[at] = (double)random_below(&dice, 3);
                figures.working_bytes[at] = (double)random_below(&dice, 3);
            }
        }
        for (size_t g = 0; g < groups; g++) {
            figures.counts[g] = 1 + (uint32_t)random_below(&dice, 2);
            figures.memory_bytes[g] = 8 + (double)random_below(&dice, 30);
        }
        struct model model = {.figures = &figures, .fewest = 99, .least_s = INFINITY};
        model.left[0] = figures.counts[0];
        model.left[1] = figures.counts[1];
        model.limit_s = 3 + (double)random_below(&dice, 20);
        cut(&model, columns, 0, 0);
        CLEANUP(stages_destroy) struct stages_search *search = search_of(&figures);
        double least_s = 0;
        bool is_any = stages_least(search, &least_s) == STAGES_OK;
        ck_assert_int_eq(is_any, model.least_s < INFINITY);
        ck_assert(!is_any || (least_s >= model.least_s * 0.999 && least_s <= model.least_s * 1.02));
        (void)stages_find(search, model.limit_s);
        uint32_t fewest = 99;
        for (uint32_t some = 1; some < 1u << groups; some++) {
            struct stages stages;
            if (stages_take(search, some, &stages)) {
                fewest = stages.stage_count < fewest ? stages.stage_count : fewest;
                ck_assert(stages.slowest_s <= model.limit_s);
            }
        }
        ck_assert_uint_eq(fewest, model.fewest);
        found += is_any;
        none += !is_any;
    }
    ck_assert(found > CASES / 3 && none > CASES / 20);
}
END_TEST

SUITE("stages", NULL, NULL, TEST(columns_are_cut_where_the_longest_stage_is_shortest),
      TEST(a_stage_holds_what_is_under_way), TEST(links_are_within_the_limit_or_missing),
      TEST(what_makes_no_sense_is_refused), TEST(no_cut_is_better))
