/* This file runs report, which shows where a job's time and money went. planner/picture/report.h
 * has the arithmetic and the pictures. */
#include "consumer/command/job/jobs.h"
#include "consumer/command/job/report_rows.h"
#include "consumer/command/plan/picture.h"
#include "consumer/command/show.h"
#include "consumer/command/state.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/job/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A smaller clock error gets no line: a result's start is in whole milliseconds, and its message
 * takes a moment to arrive. */
#define CLOCK_OFF_NS NS_PER_S

enum { CELL = 96 };

static const char *ns_text(int64_t ns)
{
    return ns < 0 ? "unknown" : cell_duration_ns(ns);
}

/* ---------------------------------------------------------------- table */

static const char *share_text(int64_t share_ppm, char text[CELL])
{
    (void)snprintf(text, CELL, "%" PRId64 "%%", share_ppm / 10000);
    return share_ppm < 0 ? "-" : text;
}

static const char *price_text(const struct report_device *device, char text[CELL])
{
    if (device->price_low_micro < 0) {
        return "unknown";
    }
    bool same = device->price_low_micro == device->price_high_micro;
    (void)snprintf(text, CELL, "%.32s%s%.32s", cell_money(device->price_low_micro), same ? "" : "-",
                   same ? "" : cell_money(device->price_high_micro));
    return text;
}

/* The sum covers the attempts whose results state an energy. A count follows when only some do. */
static const char *energy_text(const struct report_sum *sum, char text[CELL])
{
    if (sum->energy_known == 0) {
        return "unknown";
    }
    const uint64_t attempts = report_attempts(sum);
    char part[CELL / 2] = "";
    if (sum->energy_known < attempts) {
        (void)snprintf(part, sizeof part, " (%u of %" PRIu64 ")", sum->energy_known, attempts);
    }
    (void)snprintf(text, CELL, "%.40s%s", cell_energy(sum->energy_uj, sum->energy_estimated > 0),
                   part);
    return text;
}

/* Column CANCELLED comes last, so that it can be left out. */
static void add_line(struct grid *table, const char *provider, const char *device,
                     const struct report_sum *sum, const char *price)
{
    char share[CELL];
    char energy[CELL];
    const char *cells[] = {provider,
                           device,
                           cell_count(sum->lanes),
                           cell_count(sum->accepted),
                           cell_count((uint64_t)sum->failed + sum->late),
                           ns_text(sum->busy_ns),
                           share_text(sum->share_ppm, share),
                           sum->bytes_in < 0 ? "unknown" : cell_bytes((uint64_t)sum->bytes_in),
                           cell_bytes((uint64_t)sum->bytes_out),
                           price,
                           cell_money(sum->charge_micro),
                           energy_text(sum, energy),
                           cell_count(sum->cancelled)};
    grid_add(table, cells);
}

static void print_devices(const struct report *report, bool color)
{
    static const char *const titles[] = {"PROVIDER", "DEVICE", "LANES",    "DONE", "FAILED",
                                         "BUSY",     "SHARE",  "IN",       "OUT",  "PRICE",
                                         "COST",     "ENERGY", "CANCELLED"};
    const bool is_cancelled = report->total.cancelled > 0;
    CLEANUP(grid_fini)
    struct grid table =
        is_cancelled ? grid_of(13, titles, "llrrrrrrrrrrr") : grid_of(12, titles, "llrrrrrrrrrr");
    for (size_t i = 0; i < report->device_count; i++) {
        const struct report_device *device = &report->devices[i];
        char name[CELL_SIZE];
        char price[CELL];
        (void)snprintf(name, sizeof name, "%s%s", device->sum.simulated > 0 ? "SIM " : "",
                       device->name);
        add_line(&table, device->provider, name, &device->sum, price_text(device, price));
    }
    if (report->device_count > 1) {
        add_line(&table, "total", "", &report->total, "");
    }
    grid_print(&table, stdout, color);
}

/* ---------------------------------------------------------------- around it */

static void print_head(const struct report *report)
{
    (void)printf("job %.8s (%s): %s, %u of %u subtask%s accepted\n", report->id,
                 cell_plain(report->name), report->state, report->total.accepted, report->subtasks,
                 text_plural(report->subtasks));
    (void)printf("submitted %s", cell_time(report->submitted_ns / NS_PER_MS));
    if (report->first_ns < 0) {
        (void)printf(", nothing has a result yet\n");
        return;
    }
    (void)printf(", first start after %s, then %s to the last result\n", ns_text(report->wait_ns),
                 ns_text(report->span_ns));
}

/* Adds the planned and the real use of lanes. */
static void add_use(struct grid *table, const struct report *report, bool is_whole)
{
    const struct plan *plan = report->plan;
    const int64_t busy_ns = plan_busy_ns(plan);
    char off[OFF_SIZE];
    char share[CELL];
    char measured[CELL];
    const char *busy[] = {"work", ns_text(busy_ns), ns_text(report->total.busy_ns),
                          is_whole ? report_off(busy_ns, report->total.busy_ns, off) : "-"};
    grid_add(table, busy);
    const char *lanes[] = {"lanes", cell_count(plan->lanes), cell_count(report->total.lanes), ""};
    grid_add(table, lanes);
    const char *use[] = {"share", share_text(plan_share_ppm(plan), share),
                         share_text(report->total.share_ppm, measured), ""};
    grid_add(table, use);
}

/* The whole plan is shown, as the quote had it at submission. A running job has not yet used all of
 * it. */
static void print_plan(const struct report *report, bool color)
{
    const char *titles[] = {report->planned_is_guess ? "PLAN (A GUESS)" : "PLAN", "PLANNED",
                            "MEASURED", "OFF"};
    if (report->planned_ns == 0) {
        return;
    }
    char off[OFF_SIZE];
    const bool is_whole = strcmp(report->state, "done") == 0; /* else less was done than planned */
    (void)putchar('\n');
    CLEANUP(grid_fini) struct grid table = grid_of(4, titles, "lrrr");
    const char *makespan[] = {"makespan", ns_text(report->planned_ns),
                              report->first_ns < 0 ? "-" : ns_text(report->span_ns),
                              is_whole && report->total.simulated == 0
                                  ? report_off(report->planned_ns, report->span_ns, off)
                                  : "-"};
    grid_add(&table, makespan);
    const char *cost[] = {
        "cost", cell_money(report->planned_micro), cell_money(report->total.charge_micro),
        is_whole ? report_off(report->planned_micro, report->total.charge_micro, off) : "-"};
    grid_add(&table, cost);
    report_add_energy(&table, report, is_whole);
    report_add_bound(&table, report);
    if (report->plan != NULL) {
        add_use(&table, report, is_whole);
    }
    const char *slots[] = {
        "slots", report->planned_slots > 0 ? cell_count(report->planned_slots) : "-", "", ""};
    grid_add(&table, slots);
    grid_print(&table, stdout, color);
}

static void print_expected(FILE *to, const struct report *report)
{
    if (report->expect_ns == 0 || report->median_ns < 0) {
        return;
    }
    (void)fprintf(to, "\nexpected %s a subtask, measured %s (median)", ns_text(report->expect_ns),
                  ns_text(report->median_ns));
    if (report->expect_span_ns >= 0) {
        (void)fprintf(to, "; expected %s over %u lane%s, took %s", ns_text(report->expect_span_ns),
                      report->total.lanes, text_plural(report->total.lanes),
                      ns_text(report->span_ns));
    }
    (void)fputc('\n', to);
}

static void print_drift(FILE *to, const struct report *report)
{
    int64_t percent = 0;
    if (report_drifts(report, &percent)) {
        (void)fprintf(to,
                      "\nsubtasks took %" PRId64
                      "%% %s than planned: the plan no longer held. `submit --wait`, `run` and "
                      "`watch` plan what is left anew, and say so\n",
                      percent < 0 ? -percent : percent, percent < 0 ? "less" : "longer");
    }
}

/* An open job alone has time left. */
static void print_left(FILE *to, const struct report *report)
{
    if (report->left_ns >= 0) {
        (void)fprintf(to, "\nabout %s left, at the pace measured on the lanes that it has\n",
                      ns_text(report->left_ns));
    }
}

static void print_checks(FILE *to, const struct report *report)
{
    if (report->checks > 0) {
        (void)fprintf(to, "\nchecks: %u of %u result%s accepted by referees, in %s\n",
                      report->checks_accepted, report->checks, text_plural(report->checks),
                      ns_text(report->checks_ns));
    }
}

static void print_saved(FILE *to, const struct report *report)
{
    if (report->saved + report->restored > 0) {
        (void)fprintf(to, "\ncheckpoints: %u saved, %s; %u attempt%s went on from one\n",
                      report->saved, cell_bytes(report->saved_bytes), report->restored,
                      text_plural(report->restored));
    }
}

static void print_slowest(FILE *to, const struct report *report, const struct bourse_tasks *tasks)
{
    if (report->slowest_count == 0) {
        return;
    }
    (void)fprintf(to, "\nslowest:");
    for (size_t i = 0; i < report->slowest_count; i++) {
        const struct report_attempt *attempt = &report->attempts[report->slowest[i]];
        (void)fprintf(to, "%s %s %s", i == 0 ? "" : ",", cell_subtask(tasks, attempt->index),
                      ns_text(attempt->busy_ns));
    }
    (void)fputc('\n', to);
}

/* Returns the attempt with the greatest figure. The sum has the figure, so there is one. */
static const struct report_attempt *peak_attempt(const struct report *report, bool is_power)
{
    size_t at = 0;
    while (at + 1 < report->attempt_count &&
           (is_power ? report->attempts[at].peak_power_mw != report->total.peak_power_mw
                     : report->attempts[at].peak_memory_bytes != report->total.peak_memory_bytes)) {
        at++;
    }
    return &report->attempts[at];
}

/* Prints the greatest memory and power of an attempt, where a result says one. */
static void print_peaks(FILE *to, const struct report *report, const struct bourse_tasks *tasks)
{
    const struct report_sum *total = &report->total;
    if (total->peak_memory_bytes > 0) {
        (void)fprintf(to, "\nmost memory: %s, %s in one process",
                      cell_subtask(tasks, peak_attempt(report, false)->index),
                      cell_bytes((uint64_t)total->peak_memory_bytes));
    }
    if (total->peak_power_mw > 0) {
        const struct report_attempt *attempt = peak_attempt(report, true);
        (void)fprintf(to, "%smost power: %s, %.1f W of the whole device %s/%s",
                      total->peak_memory_bytes > 0 ? "; " : "\n",
                      cell_subtask(tasks, attempt->index), (double)total->peak_power_mw / 1000,
                      cell_plain(report->devices[attempt->device].provider),
                      cell_plain(report->devices[attempt->device].name));
    }
    if (total->peak_memory_bytes > 0 || total->peak_power_mw > 0) {
        (void)fputc('\n', to);
    }
}

/* Prints at which levels the devices ran the attempts, by what their agents signed. */
static void print_isolation(FILE *to, const struct report *report)
{
    struct bourse_isolation counts = {.unstated = 0};
    for (size_t i = 0; i < report->device_count; i++) {
        const int level = report->devices[i].sum.isolation;
        *(level >= 0 && level < BOURSE_ISOLATION_LEVELS ? &counts.devices[level]
                                                        : &counts.unstated) += 1;
    }
    if (report->total.isolation >= 0) {
        (void)fprintf(to, "\nisolation: %s\n", cell_isolation(&counts));
    }
}

static void print_causes(FILE *to, const struct report *report)
{
    if (report->cause_count == 0) {
        return;
    }
    (void)fprintf(to, "\nattempts that do not count:");
    for (size_t i = 0; i < report->cause_count; i++) {
        (void)fprintf(to, "%s %s (%u)", i == 0 ? "" : ",", report->causes[i].text,
                      report->causes[i].attempts);
    }
    (void)fputc('\n', to);
}

/* Nobody here knows which of the two clocks is right. */
static void print_clock(FILE *to, const struct report_device *device)
{
    int64_t off_ns = device->moved_ns < 0 ? -device->moved_ns : device->moved_ns;
    if (off_ns >= CLOCK_OFF_NS) {
        (void)fprintf(to,
                      "\nthe clock of %s/%s and the market's log time differ by at least %s. Log "
                      "time stands still while the broker is down, and any clock can be wrong. The "
                      "device's times were moved to what the market saw.\n",
                      cell_plain(device->provider), cell_plain(device->name), ns_text(off_ns));
    }
    if (device->cut > 0) {
        (void)fprintf(to,
                      "\n%u attempt%s of %s/%s ran longer than the market saw, and %s cut in the "
                      "timeline.\n",
                      device->cut, text_plural(device->cut), cell_plain(device->provider),
                      cell_plain(device->name), device->cut == 1 ? "is" : "are");
    }
}

/* A device without a memory of its own has no such line. */
static void print_held(FILE *to, const struct report_device *device)
{
    const struct report_sum *sum = &device->sum;
    if (sum->held_bytes > 0 || sum->copied_bytes > 0) {
        (void)fprintf(
            to, "\nmemory of %s/%s: it had %s of the inputs already, and %s were copied to it.\n",
            cell_plain(device->provider), cell_plain(device->name),
            cell_bytes((uint64_t)sum->held_bytes), cell_bytes((uint64_t)sum->copied_bytes));
    }
}

static void print_notes(FILE *to, const struct report *report)
{
    for (size_t i = 0; i < report->device_count; i++) {
        print_held(to, &report->devices[i]);
    }
    if (report->total.simulated > 0) {
        (void)fprintf(
            to, "\nSIM: simulated; its busy time and energy are those of a model, nothing was "
                "measured.\n");
    }
    if (report->total.energy_estimated > report->total.simulated) {
        (void)fprintf(
            to,
            "\n~: the energy of %u of %u attempts is an estimate: the power of their slots "
            "at full load, for as long as they were busy.\n",
            report->total.energy_estimated, report->total.energy_known);
    }
    for (size_t i = 0; i < report->device_count; i++) {
        if (report->devices[i].sum.simulated == 0) { /* the times of a model may exceed the log's */
            print_clock(to, &report->devices[i]);
        }
    }
}

/* ---------------------------------------------------------------- what was done before */

/* The jobs whose rest this one runs come nearest first. The bound ends an endless chain of jobs. */
enum { BEFORE_MAX = 32 };
struct before {
    struct bourse_job_row rows[BEFORE_MAX]; /* the rows have no leases */
    size_t count;
    int64_t charged_micro; /* charges of all of them and of the job itself */
};

/* Finds the job that `id` continues. Returns false when there is none or it is no longer known. */
static bool job_before(struct invocation *invocation, char id[BOURSE_ID_SIZE],
                       struct bourse_job_row *ret_row)
{
    struct bourse_error error; /* an unknown job is not shown */
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, id);
    if (tasks == NULL || !bourse_tasks_continues(tasks, id) ||
        !bourse_jobs(invocation->bourse, id, &jobs, &error)) {
        return false;
    }
    *ret_row = *bourse_jobs_row(jobs, 0);
    ret_row->leases = NULL;
    ret_row->lease_count = 0;
    return true;
}

/* `id` begins as the report's job, and is overwritten. */
static void find_before(struct invocation *invocation, const struct report *report,
                        char id[BOURSE_ID_SIZE], struct before *ret_before)
{
    ret_before->count = 0;
    ret_before->charged_micro = report->total.charge_micro;
    while (ret_before->count < BEFORE_MAX &&
           job_before(invocation, id, &ret_before->rows[ret_before->count])) {
        const struct bourse_job_row *row = &ret_before->rows[ret_before->count++];
        if (!checked_add(ret_before->charged_micro, row->charged_micro,
                         &ret_before->charged_micro)) {
            ret_before->charged_micro = INT64_MAX;
        }
    }
}

static void print_before(const struct before *before)
{
    for (size_t i = 0; i < before->count; i++) {
        const struct bourse_job_row *row = &before->rows[i];
        (void)printf("continues job %.8s: %s, %u of %u accepted, %s credits\n", row->id,
                     row->state_text, row->accepted, row->subtasks, cell_money(row->charged_micro));
    }
    if (before->count > 0) {
        (void)printf("together %s credits; what follows is of this job alone\n",
                     cell_money(before->charged_micro));
    }
}

static json_t *json_before(const struct before *before)
{
    json_t *list = json_array();
    for (size_t i = 0; i < before->count; i++) {
        const struct bourse_job_row *row = &before->rows[i];
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:i, s:i, s:I}", "job", row->id, "state", row->state_text,
                            "subtasks", (int)row->subtasks, "accepted", (int)row->accepted,
                            "charged_micro", (json_int_t)row->charged_micro));
    }
    return list;
}

/* ---------------------------------------------------------------- the command */

/* Long lines of words below the figures are wrapped, because names may be long. */
static void print_words(const struct report *report, const struct bourse_tasks *tasks)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (to == NULL) {
        return;
    }
    print_left(to, report);
    print_expected(to, report);
    print_drift(to, report);
    print_checks(to, report);
    print_saved(to, report);
    print_slowest(to, report, tasks);
    print_peaks(to, report, tasks);
    print_isolation(to, report);
    print_causes(to, report);
    print_notes(to, report);
    (void)fclose(to); /* a memory stream has nothing to lose */
    if (text != NULL) {
        text_wrap(text);
        (void)fputs(text, stdout);
    }
    free(text);
}

static void print_report(const struct invocation *invocation, const struct report *report,
                         const struct bourse_tasks *tasks, const struct before *before,
                         unsigned width)
{
    if (invocation->quiet) {
        print_devices(report, false);
        return;
    }
    print_head(report);
    print_before(before);
    if (report->first_ns < 0 && report->planned_ns == 0) {
        return;
    }
    (void)putchar('\n');
    report_print_rows(report, tasks, invocation->color);
    if (report->first_ns < 0) {
        print_plan(report, invocation->color);
        return;
    }
    (void)putchar('\n');
    print_devices(report, invocation->color);
    const struct picture_style style = picture_style_of(invocation, width);
    picture_print(report_timeline(report, &style));
    print_plan(report, invocation->color);
    print_words(report, tasks);
}

int command_report(struct invocation *invocation)
{
    int status = 0;
    unsigned width = 0;
    char id[BOURSE_ID_SIZE];
    if (!picture_width(invocation, &width)) {
        return BOURSE_USAGE;
    }
    if (!command_connect(invocation, &status) ||
        !command_resolve_job(invocation, invocation->words[0], id, &status)) {
        return status;
    }
    CLEANUP(report_destroy) struct report *report = NULL;
    struct bourse_error error;
    if (!consumer_report(invocation->bourse, id, &report, &error)) {
        return complain_with(invocation, &error);
    }
    const char *path = NULL;
    if (!picture_path(invocation, &path, &status) ||
        (path != NULL && !picture_write(invocation, path, report_svg(report), &status))) {
        return status;
    }
    CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, id);
    struct before before;
    find_before(invocation, report, id, &before);
    if (invocation->json) {
        json_t *value = report_json(report, tasks);
        (void)json_object_set_new(value, "continues", json_before(&before));
        (void)json_object_set_new(value, "together_micro",
                                  json_integer((json_int_t)before.charged_micro));
        return json_print(value, BOURSE_OK);
    }
    print_report(invocation, report, tasks, &before, width);
    state_say_behind(invocation);
    return BOURSE_OK;
}
