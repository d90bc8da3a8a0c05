/* Reports: where time and money went, and pictures of it. What the pictures look like is
 * golden_report's. */
#include "tests/support/sample_report.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "planner/picture/report.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(time_money_and_bytes_are_summed_per_device_and_in_all)
{
    struct report *report = sample_report(2, 2, 10000, 4);
    report->devices[0].shared_bytes = 1000;
    sample_attempt(report, 0, 1000, 2000)->bytes_in = 10;
    sample_attempt(report, 0, 1000, 4000)->bytes_out = 7;
    struct report_attempt *late = sample_attempt(report, 1, 2000, 3000);
    late->fate = REPORT_LATE;
    late->cause = "came too late";
    ck_assert_int_eq(report_make(report), REPORT_OK);

    const struct report_sum *first = &report->devices[0].sum;
    ck_assert_uint_eq(first->accepted, 2);
    ck_assert_uint_eq(first->lanes, 2);
    ck_assert_int_eq(first->busy_ns, 6 * NS_PER_S);
    ck_assert_int_eq(report->wait_ns, NS_PER_S);
    ck_assert_int_eq(report->span_ns, 4 * NS_PER_S);
    ck_assert_int_eq(first->share_ppm, 750000); /* 6 s of 2 lanes x 4 s */
    ck_assert_int_eq(first->bytes_in, 1010);
    ck_assert_int_eq(first->bytes_out, 7);
    ck_assert_uint_eq(report->devices[1].sum.late, 1);
    ck_assert_int_eq(report->devices[1].sum.share_ppm, 750000);
    ck_assert_uint_eq(report->total.lanes, 3);
    ck_assert_int_eq(report->total.charge_micro, 9000);
    ck_assert_int_eq(report->total.share_ppm, 750000);
    ck_assert_int_eq(report->median_ns, 2 * NS_PER_S);
    report_destroy(&report);
}
END_TEST

/* Three subtasks of 2 s each, one of 1 s, and one of which nobody said; checks, and what failed,
 * are not among them. */
START_TEST(what_was_predicted_stands_beside_what_was_measured)
{
    struct report *report = sample_report(2, 4, 60000, 7);
    report->groups[0] = (struct report_group){.first = 0, .count = 3, .expect_ns = 2 * NS_PER_S};
    report->groups[1] = (struct report_group){.first = 3, .count = 1, .expect_ns = NS_PER_S};
    report->groups[2] = (struct report_group){.first = 4, .count = 1};
    report->group_count = 3;
    for (uint32_t i = 0; i < 6; i++) {
        sample_attempt(report, i % 2, 1000, 1000 * (i + 1))->index = i;
    }
    struct report_attempt *failed = sample_attempt(report, 0, 1000, 500);
    failed->index = 0;
    failed->fate = REPORT_FAILED;
    failed->cause = "exit 1";
    report->subtasks = 6;
    report->checks = 1;
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_uint_eq(report->predicted.subtasks, 4);
    ck_assert_int_eq(report->predicted.predicted_ns, 7 * NS_PER_S);
    ck_assert_int_eq(report->predicted.measured_ns, 10 * NS_PER_S); /* 1 + 2 + 3 + 4 */
    ck_assert_int_eq(report->groups[0].predicted.measured_ns, 6 * NS_PER_S);
    ck_assert_int_eq(report->groups[0].median_ns, 2 * NS_PER_S);
    ck_assert_int_eq(report->groups[1].predicted.predicted_ns, NS_PER_S);
    ck_assert_uint_eq(report->groups[2].predicted.subtasks, 0);
    ck_assert_int_eq(report->groups[2].median_ns, 5 * NS_PER_S);
    ck_assert_uint_eq(report->devices[0].predicted.subtasks, 2); /* 0 and 2; 4 was not predicted */
    ck_assert_int_eq(report->devices[0].predicted.predicted_ns, 4 * NS_PER_S);
    ck_assert_int_eq(report->devices[0].predicted.measured_ns, 4 * NS_PER_S);
    ck_assert_int_eq(report->devices[1].predicted.predicted_ns, 3 * NS_PER_S);
    report->groups[1].expect_ns = -1;
    ck_assert_int_eq(report_make(report), REPORT_BAD_INPUT);
    report_destroy(&report);
}
END_TEST

START_TEST(what_was_cancelled_has_not_failed)
{
    struct report *report = sample_report(1, 1, 10000, 3);
    (void)sample_attempt(report, 0, 0, 1000);
    sample_attempt(report, 0, 1000, 1000)->fate = REPORT_FAILED;
    sample_attempt(report, 0, 2000, 1000)->fate = REPORT_CANCELLED;
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_uint_eq(report->total.accepted, 1);
    ck_assert_uint_eq(report->total.failed, 1);
    ck_assert_uint_eq(report->total.cancelled, 1);
    ck_assert_uint_eq(report_attempts(&report->total), 3);
    report->attempts[0].fate = REPORT_CANCELLED + 1;
    ck_assert_int_eq(report_make(report), REPORT_BAD_INPUT);
    report_destroy(&report);
}
END_TEST

START_TEST(what_is_unknown_is_not_nothing)
{
    struct report *report = sample_report(2, 1, 10000, 4);
    sample_attempt(report, 0, 0, 1000)->energy_uj = 5;
    (void)sample_attempt(report, 0, 1000, 1000);
    sample_attempt(report, 1, 0, 1000)->bytes_in = -1;
    (void)sample_attempt(report, 1, 1000, 1000);
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_uint_eq(report->devices[0].sum.energy_known, 1);
    ck_assert_int_eq(report->devices[0].sum.energy_uj, 5);
    ck_assert_int_ge(report->total.share_ppm, 0);
    report->attempts[0].simulated =
        true; /* what it took is a model's: no part of a time by the clock on the wall */
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_int_eq(report->devices[0].sum.share_ppm, -1);
    ck_assert_int_ge(report->devices[1].sum.share_ppm, 0);
    ck_assert_int_eq(report->total.share_ppm, -1);
    ck_assert_uint_eq(report->devices[1].sum.energy_known, 0);
    ck_assert_int_eq(report->devices[0].sum.bytes_in, 0);
    ck_assert_int_eq(report->devices[1].sum.bytes_in, -1);
    ck_assert_int_eq(report->total.bytes_in, -1);
    ck_assert_int_eq(report->expect_span_ns, -1);
    report_destroy(&report);
}
END_TEST

START_TEST(the_greatest_memory_and_power_of_an_attempt_are_told_and_zero_is_unknown)
{
    struct report *report = sample_report(2, 1, 10000, 4);
    sample_attempt(report, 0, 0, 1000)->peak_memory_bytes = 4096;
    sample_attempt(report, 0, 1000, 1000)->peak_memory_bytes = 8192;
    sample_attempt(report, 1, 0, 1000)->peak_power_mw = 210000;
    (void)sample_attempt(report, 1, 1000, 1000);
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_int_eq(report->devices[0].sum.peak_memory_bytes, 8192);
    ck_assert_int_eq(report->devices[0].sum.peak_power_mw, 0);
    ck_assert_int_eq(report->devices[1].sum.peak_memory_bytes, 0);
    ck_assert_int_eq(report->devices[1].sum.peak_power_mw, 210000);
    ck_assert_int_eq(report->total.peak_memory_bytes, 8192);
    ck_assert_int_eq(report->total.peak_power_mw, 210000);
    report->attempts[0].peak_power_mw = -1;
    ck_assert_int_eq(report_make(report), REPORT_BAD_INPUT);
    report_destroy(&report);
}
END_TEST

START_TEST(the_least_isolation_of_an_attempt_counts)
{
    struct report *report = sample_report(3, 1, 10000, 4);
    sample_attempt(report, 0, 0, 1000)->isolation = 1;
    sample_attempt(report, 0, 1000, 1000)->isolation = 0;
    sample_attempt(report, 1, 0, 1000)->isolation = 1;
    (void)sample_attempt(report, 1, 1000, 1000); /* it does not say */
    (void)sample_attempt(report, 2, 0, 1000);
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_int_eq(report->devices[0].sum.isolation, 0);
    ck_assert_int_eq(report->devices[1].sum.isolation, 1);
    ck_assert_int_eq(report->devices[2].sum.isolation, -1);
    ck_assert_int_eq(report->total.isolation, 0);
    report->attempts[0].isolation = -2;
    ck_assert_int_eq(report_make(report), REPORT_BAD_INPUT);
    report_destroy(&report);
}
END_TEST

START_TEST(a_clock_that_is_wrong_moves_its_device_as_a_whole)
{
    struct report *report = sample_report(3, 1, 10000, 8);
    (void)sample_attempt(report, 0, -3600000, 1000); /* an hour behind */
    (void)sample_attempt(report, 0, -3598000, 2000);
    (void)sample_attempt(report, 1, 7200000, 1000); /* two hours ahead */
    (void)sample_attempt(report, 1, 7205000, 1000);
    (void)sample_attempt(report, 2, 500, 1000); /* right */
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_int_eq(report->devices[0].moved_ns, 3600 * NS_PER_S);
    ck_assert_int_eq(report->devices[1].moved_ns, -7196 * NS_PER_S);
    ck_assert_int_eq(report->devices[2].moved_ns, 0);
    for (size_t i = 0; i < report->attempt_count; i++) {
        ck_assert_int_ge(report->attempts[i].started_ns, report->submitted_ns);
        ck_assert_int_le(report->attempts[i].end_ns, report->until_ns);
        ck_assert_int_eq(report->attempts[i].end_ns - report->attempts[i].started_ns,
                         report->attempts[i].busy_ns);
    }
    ck_assert_int_eq(report->attempts[1].started_ns - report->attempts[0].started_ns,
                     2 * NS_PER_S); /* among themselves they are as they were */
    ck_assert_uint_eq(report->devices[0].cut + report->devices[1].cut, 0);
    ck_assert_int_eq(report->wait_ns, 0);
    report_destroy(&report);
}
END_TEST

START_TEST(a_market_clock_that_is_behind_moves_all_devices_by_as_much)
{
    struct report *report = sample_report(3, 1, 1000, 8);
    (void)sample_attempt(report, 0, 400, 200);
    (void)sample_attempt(report, 0, 900, 500); /* begins when the other device is done */
    (void)sample_attempt(report, 1, 600, 300);
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_int_eq(report->devices[0].moved_ns, -400 * NS_PER_MS);
    ck_assert_int_eq(report->devices[1].moved_ns, -400 * NS_PER_MS);
    ck_assert_int_eq(report->devices[2].moved_ns, 0); /* nothing ran there */
    ck_assert_int_eq(report->attempts[1].started_ns, report->attempts[2].end_ns);
    ck_assert_uint_eq(report->devices[0].cut, 0);
    report_destroy(&report);
}
END_TEST

START_TEST(more_than_the_market_saw_is_cut)
{
    struct report *report = sample_report(1, 2, 1000, 4);
    report->attempts[0] = (struct report_attempt){.busy_ns = 0};
    (void)sample_attempt(report, 0, -5000, 60000);
    struct report_attempt *absurd = sample_attempt(report, 0, 0, 1);
    absurd->started_ns = INT64_MAX;
    absurd->busy_ns = INT64_MAX;
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_uint_eq(report->devices[0].cut, 2);
    for (size_t i = 0; i < report->attempt_count; i++) {
        ck_assert_int_ge(report->attempts[i].started_ns, report->submitted_ns);
        ck_assert_int_le(report->attempts[i].end_ns, report->until_ns);
    }
    ck_assert_int_eq(report->total.share_ppm, 1000000); /* what is claimed is more than there was */

    report->attempts[0].started_ns = INT64_MIN;
    report->attempts[1].started_ns = INT64_MAX;
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_int_eq(report->devices[0].moved_ns, INT64_MAX);
    report_destroy(&report);
}
END_TEST

START_TEST(what_runs_one_after_another_is_one_lane)
{
    struct report *report = sample_report(1, 8, 100, 400);
    int64_t now_ns = report->submitted_ns;
    for (int i = 0; i < 300; i++) {
        struct report_attempt *attempt = sample_attempt(report, 0, 0, 0);
        attempt->started_ns = now_ns / NS_PER_MS * NS_PER_MS; /* as an agent tells it */
        attempt->busy_ns = 70000 + i % 7 * 50000;
        now_ns += attempt->busy_ns + i % 3 * 1000;
    }
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_uint_eq(report->total.lanes, 1);
    report_destroy(&report);
}
END_TEST

START_TEST(there_are_no_more_lanes_than_slots_and_none_overlap_on_one)
{
    struct report *report = sample_large();
    ck_assert_int_eq(report_make(report), REPORT_OK);
    int64_t ends[3][2] = {{0}};
    for (size_t i = 0; i < report->attempt_count; i++) {
        const struct report_attempt *attempt = &report->attempts[i];
        ck_assert_uint_lt(attempt->lane, 2);
        ck_assert_int_gt(attempt->started_ns, ends[attempt->device][attempt->lane] - 2 * NS_PER_MS);
        ends[attempt->device][attempt->lane] = attempt->end_ns;
    }
    ck_assert_uint_eq(report->total.lanes, 6);
    ck_assert_uint_eq(report->total.failed, 4);
    ck_assert_uint_eq(report->cause_count, 1);
    ck_assert_str_eq(report->causes[0].text, "memory limit");
    report_destroy(&report);
}
END_TEST

START_TEST(the_slowest_come_first_and_causes_are_counted)
{
    struct report *report = sample_report(1, 1, 100000, 200);
    for (int i = 0; i < 100; i++) {
        (void)sample_attempt(report, 0, i * 100, i * 37 % 100);
    }
    static char causes[REPORT_CAUSES + 8][16];
    for (int i = 0; i < REPORT_CAUSES + 8; i++) {
        (void)snprintf(causes[i], sizeof causes[i], "cause %d", i);
        struct report_attempt *attempt = sample_attempt(report, 0, 10000 + i, 1000);
        attempt->fate = REPORT_FAILED;
        attempt->cause = causes[i];
    }
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_uint_eq(report->slowest_count, REPORT_SLOWEST);
    for (int i = 0; i < REPORT_SLOWEST; i++) {
        ck_assert_int_eq(report->attempts[report->slowest[i]].busy_ns, (99 - i) * NS_PER_MS);
    }
    uint32_t counted = 0;
    for (size_t i = 0; i < report->cause_count; i++) {
        counted += report->causes[i].attempts;
    }
    ck_assert_uint_eq(counted, REPORT_CAUSES + 8);
    ck_assert_str_eq(report->causes[0].text, "other causes");
    report_destroy(&report);
}
END_TEST

START_TEST(what_was_expected_stands_beside_what_was_measured)
{
    struct report *report = sample_small();
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_int_eq(report->expect_span_ns, 3000 * NS_PER_MS); /* 4 subtasks, 2 lanes: 2 rounds */
    ck_assert_int_eq(report->span_ns, 3700 * NS_PER_MS);
    ck_assert_int_eq(report->median_ns, 1000 * NS_PER_MS);
    report_destroy(&report);
}
END_TEST

START_TEST(checks_are_counted_apart_and_are_no_measure_of_the_work)
{
    struct report *report = sample_report(1, 1, 10000, 8);
    report->expect_ns = NS_PER_S;
    (void)sample_attempt(report, 0, 0, 900);
    (void)sample_attempt(report, 0, 1000, 1000);
    (void)sample_attempt(report, 0, 2000, 100);
    (void)sample_attempt(report, 0, 3000, 200);
    (void)sample_attempt(report, 0, 4000, 50);
    for (uint32_t i = 0; i < 4; i++) {
        report->attempts[i].index = i;
    }
    report->attempts[4].index = 3; /* one that came to no verdict took time as well */
    report->attempts[4].fate = REPORT_FAILED;
    report->subtasks = 4;
    report->checks = 2;
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_uint_eq(report->total.accepted, 4);
    ck_assert_uint_eq(report->checks_accepted, 2);
    ck_assert_int_eq(report->checks_ns, 350 * NS_PER_MS);
    ck_assert_int_eq(report->median_ns, 900 * NS_PER_MS);
    ck_assert_int_eq(report->expect_span_ns, 2 * NS_PER_S);
    ck_assert_uint_eq(report->slowest_count, 2);
    report_destroy(&report);
}
END_TEST

START_TEST(nothing_has_run_is_a_report_too)
{
    struct report *report = sample_report(0, 0, 0, 0);
    ck_assert_int_eq(report_make(report), REPORT_OK);
    ck_assert_int_eq(report->first_ns, -1);
    ck_assert_int_eq(report->wait_ns, -1);
    ck_assert_int_eq(report->total.share_ppm, -1);
    char *text = report_timeline(report, &(struct picture_style){.width = 80});
    char *svg = report_svg(report);
    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(svg);
    free(text);
    free(svg);
    report_destroy(&report);
}
END_TEST

START_TEST(wrong_input_is_an_answer)
{
    struct report *report = sample_report(1, 1, 1000, 1);
    struct report_attempt *attempt = sample_attempt(report, 0, 0, 1);
    const struct report_attempt good = *attempt;
    attempt->device = 1;
    ck_assert_int_eq(report_make(report), REPORT_BAD_INPUT);
    *attempt = good;
    attempt->busy_ns = -1;
    ck_assert_int_eq(report_make(report), REPORT_BAD_INPUT);
    *attempt = good;
    attempt->charge_micro = -1;
    ck_assert_int_eq(report_make(report), REPORT_BAD_INPUT);
    *attempt = good;
    attempt->bytes_out = -1;
    ck_assert_int_eq(report_make(report), REPORT_BAD_INPUT);
    *attempt = good;
    attempt->energy_uj = -2;
    ck_assert_int_eq(report_make(report), REPORT_BAD_INPUT);
    *attempt = good;
    report->until_ns = report->submitted_ns - 1;
    ck_assert_int_eq(report_make(report), REPORT_BAD_INPUT);
    report->until_ns = report->submitted_ns;
    report->planned_ns = -1;
    ck_assert_int_eq(report_make(report), REPORT_BAD_INPUT);
    report->planned_ns = 0;
    report->planned_micro = -1;
    ck_assert_int_eq(report_make(report), REPORT_BAD_INPUT);
    report->planned_micro = 0;
    report->left_ns = -2;
    ck_assert_int_eq(report_make(report), REPORT_BAD_INPUT);
    report->left_ns = -1;
    ck_assert_int_eq(report_make(report), REPORT_OK);
    report_destroy(&report);
}
END_TEST

/* ---------------------------------------------------------------- pictures */

static size_t columns_of(const char *line, size_t length)
{
    size_t columns = 0;
    for (size_t i = 0; i < length; i++) {
        columns += ((unsigned char)line[i] & 0xc0) != 0x80;
    }
    return columns;
}

/* Every line of it is so wide; returns how many there are. */
static size_t check_lines(const char *text, size_t columns)
{
    size_t lines = 0;
    for (const char *at = text; *at != '\0'; lines++) {
        const char *end = strchr(at, '\n');
        ck_assert_ptr_nonnull(end);
        ck_assert_uint_eq(columns_of(at, (size_t)(end - at)), columns);
        at = end + 1;
    }
    return lines;
}

START_TEST(a_timeline_keeps_to_its_width)
{
    struct report *reports[] = {sample_small(), sample_large(), sample_wide()};
    static const size_t lines[] = {3, 7, 33};
    (void)snprintf(reports[0]->devices[0].provider, REPORT_NAME_SIZE,
                   "a provider with a name that is far too long for a line of 80 columns");
    (void)snprintf(reports[0]->devices[1].name, REPORT_NAME_SIZE, "caf\xc3\xa9\x1b[31m");
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(report_make(reports[i]), REPORT_OK);
        for (unsigned width = 40; width <= 400; width += 120) {
            struct picture_style style = {.width = width};
            char *text = report_timeline(reports[i], &style);
            ck_assert_uint_eq(check_lines(text, width), lines[i]);
            ck_assert_ptr_null(strchr(text, '\033'));
            free(text);
            style.ascii = true;
            text = report_timeline(reports[i], &style);
            ck_assert_uint_eq(check_lines(text, width), lines[i]);
            ck_assert_uint_eq(
                strspn(text, "\n !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"),
                strlen(text));
            free(text);
        }
        report_destroy(&reports[i]);
    }
}
END_TEST

/* Opened and closed in order, nothing that XML forbids. Returns how many elements `name` it has. */
static size_t check_xml(const char *text, const char *name)
{
    char stack[16][16];
    size_t depth = 0;
    size_t found = 0;
    for (const char *at = text; *at != '\0';) {
        if (*at != '<') {
            bool is_good = *at != '>' && (*at == '\n' || (unsigned char)*at >= 0x20) &&
                           (*at != '&' || strchr(at, ';') - at <= 5);
            if (!is_good) { /* an assertion for each character would take long */
                ck_abort_msg("%.20s", at);
            }
            at++;
            continue;
        }
        const char *end = strchr(at, '>');
        ck_assert_ptr_nonnull(end);
        size_t length = strcspn(at + 1 + (at[1] == '/'), " >/");
        char tag[16];
        ck_assert_uint_lt(length, sizeof tag);
        (void)snprintf(tag, sizeof tag, "%.*s", (int)length, at + 1 + (at[1] == '/'));
        if (at[1] == '/') {
            ck_assert_uint_gt(depth, 0);
            ck_assert_str_eq(stack[--depth], tag);
        } else {
            found += strcmp(tag, name) == 0;
            if (end[-1] != '/') {
                ck_assert_uint_lt(depth, 16);
                memcpy(stack[depth++], tag, sizeof tag);
            }
        }
        at = end + 1;
    }
    ck_assert_uint_eq(depth, 0);
    return found;
}

START_TEST(a_picture_is_whole_and_its_names_are_escaped)
{
    struct report *report = sample_small();
    (void)snprintf(report->name, sizeof report->name, "<script>alert('&\"')</script>");
    (void)snprintf(report->devices[0].provider, REPORT_NAME_SIZE,
                   "]]><!--\x01\xef\xbf\xbf&amp;%%s%%s%%s");
    for (size_t i = 0; i + 1 < REPORT_NAME_SIZE; i++) {
        report->devices[1].provider[i] = '"';
        report->devices[1].name[i] = '"';
    }
    ck_assert_int_eq(report_make(report), REPORT_OK);
    char *svg = report_svg(report);
    ck_assert_ptr_nonnull(svg);
    ck_assert_uint_eq(check_xml(svg, "script"), 0);
    ck_assert_uint_eq(check_xml(svg, "title"), 6); /* 5 attempts, and the end that was expected */
    ck_assert_ptr_nonnull(strstr(svg, "&lt;script&gt;"));
    ck_assert_ptr_null(strstr(svg, "\xef\xbf\xbf"));
    ck_assert_ptr_null(strstr(svg, "href"));
    free(svg);
    report_destroy(&report);
}
END_TEST

START_TEST(a_picture_of_many_subtasks_is_small)
{
    struct report *reports[] = {sample_large(), sample_wide()};
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(report_make(reports[i]), REPORT_OK);
        char *svg = report_svg(reports[i]);
        ck_assert_ptr_nonnull(svg);
        size_t boxes = check_xml(svg, "title");
        ck_assert_uint_gt(boxes, 100);
        ck_assert_uint_le(boxes, 4000);
        ck_assert_uint_lt(strlen(svg), 1 << 20);
        free(svg);
        report_destroy(&reports[i]);
    }
}
END_TEST

START_TEST(no_attempt_is_lost_in_a_picture)
{
    struct report *report = sample_large();
    ck_assert_int_eq(report_make(report), REPORT_OK);
    char *svg = report_svg(report);
    ck_assert_ptr_nonnull(svg);
    unsigned long drawn = 0;
    for (const char *at = strstr(svg, "<title>"); at != NULL; at = strstr(at + 1, "<title>")) {
        const char *inside = at + strlen("<title>");
        drawn += strncmp(inside, "subtask ", 8) == 0 ? 1 : strtoul(inside, NULL, 10);
    }
    ck_assert_uint_eq(drawn, 10000);
    free(svg);
    report_destroy(&report);
}
END_TEST

static void text_free(char **self)
{
    free(*self);
}

/* The lines of the plan are the first ones, begin with the first attempt, and are as busy as the
 * plan says. */
START_TEST(what_was_planned_stands_above_what_was)
{
    CLEANUP(report_destroy) struct report *report = sample_planned();
    ck_assert_int_eq(report_make(report), REPORT_OK);
    const struct picture_style style = {.width = 80, .ascii = true};
    CLEANUP(text_free) char *text = report_timeline(report, &style);
    ck_assert_ptr_nonnull(text);
    const char *first = strstr(text, "planned 1 ");
    const char *second = strstr(text, "planned 2 #0");
    const char *farm = strstr(text, "farm0/cpu");
    ck_assert(first != NULL && second != NULL && farm != NULL);
    ck_assert(first < second && second < farm);
    /* Four of 1.5 s on three lanes: one has two, the others half as much. */
    ck_assert_int_eq(strncmp(strchr(first, '\n') - 4, "100%", 4), 0);
    ck_assert_int_eq(strncmp(strchr(second, '\n') - 4, " 50%", 4), 0);
    CLEANUP(text_free) char *svg = report_svg(report);
    ck_assert_ptr_nonnull(strstr(svg, "<title>planned: subtask 0, 200ms to 1.7s</title>"));
    ck_assert_ptr_nonnull(strstr(svg, ".plan{"));
    CLEANUP(report_destroy) struct report *alone = sample_small();
    ck_assert_int_eq(report_make(alone), REPORT_OK);
    CLEANUP(text_free) char *plain = report_svg(alone);
    ck_assert_ptr_null(strstr(plain, "plan"));
}
END_TEST

/* The course of the job would be a speck beside the plan. */
START_TEST(a_plan_of_many_times_what_it_took_is_not_drawn)
{
    CLEANUP(report_destroy) struct report *report = sample_planned();
    ck_assert_int_eq(report_make(report), REPORT_OK);
    const struct picture_style style = {.width = 80, .ascii = true};
    const int64_t took_ns = report->until_ns - report->submitted_ns;
    report->plan->total.makespan_s.value = (double)(3 * took_ns) / NS_PER_S;
    CLEANUP(text_free) char *both = report_timeline(report, &style);
    ck_assert_ptr_nonnull(strstr(both, "planned 1 "));
    report->plan->total.makespan_s.value = (double)(3 * took_ns + 3) / NS_PER_S;
    CLEANUP(text_free) char *text = report_timeline(report, &style);
    CLEANUP(text_free) char *svg = report_svg(report);
    ck_assert_ptr_null(strstr(text, "planned 1 "));
    ck_assert_ptr_nonnull(strstr(text, "farm0/cpu"));
    ck_assert_ptr_null(strstr(svg, "planned: subtask"));
}
END_TEST

SUITE("report", NULL, NULL, TEST(time_money_and_bytes_are_summed_per_device_and_in_all),
      TEST(what_was_predicted_stands_beside_what_was_measured),
      TEST(what_was_cancelled_has_not_failed), TEST(what_is_unknown_is_not_nothing),
      TEST(the_greatest_memory_and_power_of_an_attempt_are_told_and_zero_is_unknown),
      TEST(the_least_isolation_of_an_attempt_counts),
      TEST(a_clock_that_is_wrong_moves_its_device_as_a_whole),
      TEST(a_market_clock_that_is_behind_moves_all_devices_by_as_much),
      TEST(more_than_the_market_saw_is_cut), TEST(what_runs_one_after_another_is_one_lane),
      TEST(there_are_no_more_lanes_than_slots_and_none_overlap_on_one),
      TEST(the_slowest_come_first_and_causes_are_counted),
      TEST(what_was_expected_stands_beside_what_was_measured),
      TEST(checks_are_counted_apart_and_are_no_measure_of_the_work),
      TEST(nothing_has_run_is_a_report_too), TEST(wrong_input_is_an_answer),
      TEST(what_was_planned_stands_above_what_was),
      TEST(a_plan_of_many_times_what_it_took_is_not_drawn), TEST(a_timeline_keeps_to_its_width),
      TEST(a_picture_is_whole_and_its_names_are_escaped), TEST(a_picture_of_many_subtasks_is_small),
      TEST(no_attempt_is_lost_in_a_picture))
