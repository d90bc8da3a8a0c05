/* The planner never takes an unknown figure of a device for large or fast. The device does what is
 * known, or measured, or said, and nothing else. */
#include "base/cleanup.h"
#include "planner/cost/calibrate.h"
#include "planner/cost/device_set.h"
#include "planner/layout/plan.h"
#include "planner/templates/template_list.h"
#include "tests/support/suite.h"
#include "tests/support/template_steps.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { DEVICES = 4, VALUES = 64 };

/* Work of a template on devices of the catalogue, all in one machine. */
struct room {
    const struct template *template;
    int64_t values[VALUES];
    struct steps *steps;
    struct device_set *set;
    struct cost_device costs[DEVICES];
    struct plan_device devices[DEVICES];
    struct cost_calibration calibrations[OPERATION_CLASSES];
    struct plan_input input;
    struct plan_fault fault;
};

static void room_fini(struct room *room)
{
    steps_destroy(&room->steps);
    device_set_destroy(&room->set);
}

static void furnish(struct room *room, const char *template, const char *const *settings,
                    const char *const *names)
{
    struct problem problem = {.text = ""};
    memset(room, 0, sizeof *room);
    room->template = template_named(template);
    template_begin(room->template, room->values);
    for (size_t i = 0; settings[i] != NULL; i++) {
        char name[40];
        const char *equals = strchr(settings[i], '=');
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - settings[i]), settings[i]);
        ck_assert(template_set(room->template, name, equals + 1, room->values, &problem));
    }
    ck_assert_int_eq(template_create(room->template, room->values, &room->steps, &problem),
                     STEPS_OK);
    room->set = device_set_create();
    for (size_t i = 0; names[i] != NULL; i++) {
        const struct catalogue_device *known = NULL;
        ck_assert_int_eq(device_set_find(names[i], &known, &problem), DEVICE_SET_OK);
        ck_assert_int_eq(device_set_add(room->set, 0, known, NULL, NULL, false, -1, &problem),
                         DEVICE_SET_OK);
    }
}

static enum plan_status plan(struct room *room, struct plan **ret_plan)
{
    struct device_set_links links = device_set_defaults();
    struct problem problem = {.text = ""};
    if (room->set->topology == NULL) {
        ck_assert_int_eq(device_set_link(room->set, &links, &problem), DEVICE_SET_OK);
    }
    for (size_t i = 0; i < room->set->count; i++) {
        const struct cost_calibration *calibrations = room->costs[i].calibrations;
        room->costs[i] = room->set->items[i].cost;
        room->costs[i].calibrations = calibrations;
        room->devices[i] = (struct plan_device){.name = room->set->items[i].name,
                                                .cost = &room->costs[i],
                                                .memory = room->set->items[i].memory,
                                                .price_micro = PLAN_UNPRICED};
    }
    const struct history_summary *histories = room->input.histories;
    room->input = (struct plan_input){.steps = room->steps,
                                      .template = room->template,
                                      .values = room->values,
                                      .devices = room->devices,
                                      .device_count = room->set->count,
                                      .topology = room->set->topology,
                                      .budget_micro = LIMIT_NONE,
                                      .histories = histories,
                                      .may_leave_out = true,
                                      .effort = PLAN_EFFORT};
    return plan_search(&room->input, ret_plan, &room->fault);
}

static const char *const vector[] = {"m=1", "dtype=bf16", NULL}; /* by 33.5 MB of weights */

START_TEST(who_has_no_bandwidth_is_not_taken_for_fast)
{
    CLEANUP(room_fini) struct room room;
    CLEANUP(plan_destroy) struct plan *found = NULL;
    furnish(&room, "matmul", vector, SETTINGS("h100", "ascend-910b"));
    ck_assert_int_eq(plan(&room, &found), PLAN_OK);
    ck_assert_uint_eq(found->uses[0].row_count, 1);
    ck_assert_uint_eq(found->uses[1].row_count, 0);
    ck_assert(found->total.makespan_s.value > 33.5e6 / 3350e9);
    ck_assert(found->gap < 1e-3); /* nor does a bound take it so */
}
END_TEST

START_TEST(where_nothing_else_can_it_is_refused_by_the_figure_that_is_missing)
{
    static const struct {
        const char *device, *dtype, *hint;
    } wanted[] = {
        {"ascend-910b", "dtype=bf16",
         "ascend-910b: its bandwidth is not known; --figure ascend-910b=bandwidth=RATE says it"},
        {"m3max-ane", "dtype=int8",
         "m3max-ane: its memory is not known; --figure m3max-ane=memory=SIZE says it"},
        {"graviton4", "dtype=fp32",
         "graviton4: its memory is not known; --figure graviton4=memory=SIZE says it"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        CLEANUP(room_fini) struct room room;
        struct plan *found = NULL;
        furnish(&room, "matmul", SETTINGS("m=1", wanted[i].dtype), SETTINGS(wanted[i].device));
        ck_assert_int_eq(plan(&room, &found), PLAN_UNKNOWN);
        ck_assert_msg(strstr(room.fault.problem.text, wanted[i].hint) != NULL, "%s",
                      room.fault.problem.text);
    }
    ck_assert_str_eq(plan_status_name(PLAN_UNKNOWN), "UNKNOWN_FIGURE");
}
END_TEST

START_TEST(all_of_a_model_is_not_left_out_for_want_of_a_bandwidth)
{
    CLEANUP(room_fini) struct room room;
    struct plan *found = NULL;
    furnish(&room, "llm", SETTINGS("model=llama-3-8b"), SETTINGS("ascend-910b"));
    ck_assert_int_eq(plan(&room, &found), PLAN_UNKNOWN);
}
END_TEST

/* 950 GB: no laptop's. */
START_TEST(who_has_no_memory_is_given_no_weights)
{
    CLEANUP(room_fini) struct room room;
    CLEANUP(plan_destroy) struct plan *found = NULL;
    furnish(&room, "matmul", SETTINGS("m=4096", "n=1000000", "k=1000000", "dtype=int8"),
            SETTINGS("m3max-ane", "b200-hgx"));
    ck_assert_int_eq(plan(&room, &found), PLAN_UNKNOWN);
    room_fini(&room);
    furnish(&room, "matmul", SETTINGS("m=4096", "dtype=int8"), SETTINGS("m3max-ane", "b200-hgx"));
    ck_assert_int_eq(plan(&room, &found), PLAN_OK);
    ck_assert_uint_eq(found->uses[0].row_count, 0);
}
END_TEST

START_TEST(what_is_declared_is_known)
{
    CLEANUP(room_fini) struct room room;
    CLEANUP(plan_destroy) struct plan *found = NULL;
    furnish(&room, "matmul", vector, SETTINGS("ascend-910b"));
    ck_assert(device_set_declare(room.set, "ascend-910b", FIGURE_BANDWIDTH, 1e12));
    ck_assert(!device_set_declare(room.set, "h100", FIGURE_BANDWIDTH, 1e12));
    ck_assert_int_eq(plan(&room, &found), PLAN_OK);
    ck_assert(found->total.makespan_s.value > 33.5e6 / 1e12);
    ck_assert_int_eq(found->total.makespan_s.source, FIGURE_DECLARED);
}
END_TEST

static struct operation operation(const char *text)
{
    struct operation read;
    struct problem problem = {.text = ""};
    ck_assert_msg(operation_parse(text, &read, &problem) == OPERATION_OK, "%s", problem.text);
    return read;
}

/* No sample moved more than 34 MB in 10 us: a vector by as much takes no less. */
START_TEST(samples_say_what_a_device_moves_at_least)
{
    CLEANUP(room_fini) struct room room;
    CLEANUP(plan_destroy) struct plan *found = NULL;
    const struct calibrate_sample samples[] = {
        {operation("matmul:4096x4096x4096:bf16"), 600e-6},
        {operation("matmul:2048x4096x4096:bf16"), 310e-6},
        {operation("matmul:4096x4096x2048:bf16"), 320e-6},
    };
    furnish(&room, "matmul", vector, SETTINGS("ascend-910b"));
    ck_assert_int_eq(calibrate(&room.set->items[0].profile, OPERATION_MATRIX, samples, 3,
                               &room.calibrations[OPERATION_MATRIX], NULL),
                     CALIBRATE_OK);
    room.costs[0].calibrations = room.calibrations;
    ck_assert_int_eq(plan(&room, &found), PLAN_OK);
    ck_assert_int_eq(found->total.makespan_s.source, FIGURE_CALIBRATED);
    double most = 2.0 * (4096.0 * 4096 + 2 * 4096.0 * 2048) / 310e-6; /* bytes per second */
    ck_assert(found->total.makespan_s.value >= 33.5e6 / most);
}
END_TEST

/* A model that knows no bandwidth has no say. */
START_TEST(a_history_alone_says_what_a_step_takes)
{
    CLEANUP(room_fini) struct room room;
    CLEANUP(plan_destroy) struct plan *found = NULL;
    const struct history_summary history = {.count = 1, .median = 100 * HISTORY_BOUND};
    struct cost cost;
    furnish(&room, "matmul", vector, SETTINGS("ascend-910b"));
    room.input.histories = &history;
    ck_assert_int_eq(plan(&room, &found), PLAN_OK);
    ck_assert_int_eq(
        cost_estimate(&room.set->items[0].profile, &room.steps->steps[0].parts[0].operation, &cost),
        COST_OK);
    ck_assert_double_eq_tol(found->total.makespan_s.value, 100 * cost.bound_s.value, 1e-12);
    ck_assert_int_eq(found->total.makespan_s.source, FIGURE_MEASURED);
}
END_TEST

/* A figure that an agent measured of its device stands where the catalogue says nothing. */
START_TEST(what_is_measured_on_the_market_is_known)
{
    const struct catalogue_device *known = catalogue_find("huawei-ascend-910b");
    CLEANUP(device_set_destroy) struct device_set *set = device_set_create();
    struct device_profile measured = {
        .figures = {[FIGURE_BANDWIDTH] = {.value = 4e11, .source = FIGURE_MEASURED},
                    [FIGURE_BF16] = {.value = 1, .source = FIGURE_MEASURED}}};
    ck_assert_int_eq(device_set_add(set, 0, known, NULL, &measured, false, -1, NULL),
                     DEVICE_SET_OK);
    ck_assert(set->items[0].profile.figures[FIGURE_BANDWIDTH].value == 4e11);
    ck_assert_int_eq(set->items[0].profile.figures[FIGURE_BANDWIDTH].source, FIGURE_MEASURED);
    ck_assert(set->items[0].profile.figures[FIGURE_BF16].value == 280e12);
}
END_TEST

SUITE("plan_unknown", NULL, NULL, TEST(who_has_no_bandwidth_is_not_taken_for_fast),
      TEST(where_nothing_else_can_it_is_refused_by_the_figure_that_is_missing),
      TEST(all_of_a_model_is_not_left_out_for_want_of_a_bandwidth),
      TEST(who_has_no_memory_is_given_no_weights), TEST(what_is_declared_is_known),
      TEST(samples_say_what_a_device_moves_at_least), TEST(a_history_alone_says_what_a_step_takes),
      TEST(what_is_measured_on_the_market_is_known))
