/* The tests read from a job's row when the job is done at its present speed. */
#include "consumer/command/forecast.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static const int64_t now_ms = INT64_C(1764500000000);
static const struct bourse_lease leases[2] = {{.slots = 2, .state = "active"},
                                              {.slots = 5, .state = "ended"}};

/* Four of ten are done on two slots, the rest takes a minute, and the deadline is in 40 s. */
static struct bourse_job_row row_of(void)
{
    return (struct bourse_job_row){.id = "0123456789abcdef",
                                   .state = BOURSE_OPEN,
                                   .subtasks = 10,
                                   .accepted = 4,
                                   .running = 3,
                                   .queued = 1,
                                   .left_ms = 60000,
                                   .timed = 4,
                                   .foreseen_ms = 4000,
                                   .took_ms = 40000,
                                   .deadline_ms = now_ms + 40000,
                                   .seen_ms = now_ms,
                                   .leases = leases,
                                   .lease_count = 2};
}

START_TEST(a_late_job_is_foretold_with_its_figures)
{
    char text[FORECAST_TEXT_SIZE];
    const struct bourse_job_row row = row_of();
    const struct forecast forecast = forecast_of(&row);
    ck_assert(forecast.is_known);
    ck_assert_int_eq(forecast.ends_ms, now_ms + 60000);
    ck_assert_int_eq(forecast.late_ms, 20000);
    ck_assert_uint_eq(forecast.slots, 2);
    ck_assert(forecast_is_news(&row, &forecast));
    forecast_text(&row, &forecast, text);
    ck_assert_ptr_nonnull(
        strstr(text, "(4 of 10 done, 2 running on 2 slots) the job would be done"));
    ck_assert_ptr_nonnull(strstr(text, ", 20.0s after the deadline"));
    forecast_remedy(&row, &forecast, text);
    ck_assert_str_eq(text, "`bourse order replace 01234567 --deadline 67s` gives it time enough");
}
END_TEST

START_TEST(a_job_in_time_is_no_news)
{
    char text[FORECAST_TEXT_SIZE];
    struct bourse_job_row row = row_of();
    row.deadline_ms = now_ms + 90000;
    const struct forecast forecast = forecast_of(&row);
    ck_assert(forecast.is_known);
    ck_assert_int_eq(forecast.late_ms, 0);
    ck_assert(!forecast_is_news(&row, &forecast));
    forecast_end_text(&row, &forecast, text);
    ck_assert_ptr_nonnull(strstr(text, ", 30.0s before the deadline"));
    row.deadline_ms = now_ms + 59000; /* later, but by less than a twentieth */
    const struct forecast near = forecast_of(&row);
    ck_assert_int_eq(near.late_ms, 1000);
    ck_assert(!forecast_is_news(&row, &near));
}
END_TEST

START_TEST(more_slots_end_the_job_sooner)
{
    const struct bourse_job_row row = row_of();
    const struct forecast sooner = forecast_with(&row, 2);
    ck_assert(sooner.is_known);
    ck_assert_int_eq(sooner.ends_ms, now_ms + 30000);
    ck_assert_int_eq(sooner.late_ms, 0);
    ck_assert_uint_eq(sooner.slots, 4);
}
END_TEST

START_TEST(few_results_scale_what_was_expected)
{
    struct bourse_job_row row = row_of();
    row.timed = 1; /* 40 s instead of 4 s: the minute was by the expectation */
    ck_assert_int_eq(forecast_of(&row).ends_ms, now_ms + 600000);
}
END_TEST

START_TEST(nothing_is_foretold_without_figures)
{
    struct bourse_job_row rows[6];
    for (size_t i = 0; i < 6; i++) {
        rows[i] = row_of();
    }
    rows[0].timed = 0;
    rows[0].took_ms = rows[0].foreseen_ms = 0;
    rows[1].left_ms = -1; /* no lane */
    rows[2].deadline_ms = 0;
    rows[3].state = BOURSE_WAS_CANCELLED;
    rows[4].foreseen_ms = 0;
    rows[5].seen_ms = 0;
    for (size_t i = 0; i < 6; i++) {
        const struct forecast forecast = forecast_of(&rows[i]);
        ck_assert_msg(!forecast.is_known, "row %zu", i);
        ck_assert(!forecast_is_news(&rows[i], &forecast));
        ck_assert_ptr_null(forecast_json(&rows[i]));
    }
    rows[0] = row_of();
    rows[0].lease_count = 0;
    ck_assert(!forecast_with(&rows[0], 2).is_known);
}
END_TEST

START_TEST(the_figures_are_there_for_programs)
{
    const struct bourse_job_row row = row_of();
    json_t *json = forecast_json(&row);
    ck_assert_ptr_nonnull(json);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "ends_ms")), now_ms + 60000);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "late_ms")), 20000);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "done")), 4);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "subtasks")), 10);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "running")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "slots")), 2);
    json_decref(json);
}
END_TEST

SUITE("consumer: forecast", NULL, NULL, TEST(a_late_job_is_foretold_with_its_figures),
      TEST(a_job_in_time_is_no_news), TEST(more_slots_end_the_job_sooner),
      TEST(few_results_scale_what_was_expected), TEST(nothing_is_foretold_without_figures),
      TEST(the_figures_are_there_for_programs))
