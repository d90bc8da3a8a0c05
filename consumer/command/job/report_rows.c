#include "consumer/command/job/report_rows.h"
#include "consumer/command/show.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "planner/cost/profile.h"
#include "planner/schedule/online.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* These numbers are those of `plan`, so that the two tables can be compared. `SCHEDULE_MOST` is for
 * --json. */
enum { ROWS_SHOWN = 100, UNNAMED_SHOWN = 32, SCHEDULE_MOST = 10000, CELL = 96 };
/* These columns of names are narrow enough for a row of TEXT_COLUMNS with all other columns at
 * their widest, without energy. */
enum { SUBTASK_COLUMNS = 16, DEVICE_COLUMNS = 18 };

struct rows {
    const struct report *report;
    const struct bourse_tasks *tasks;
    uint32_t count;                       /* number of subtasks, without checks */
    const struct report_attempt **counts; /* accepted attempt by subtask, or NULL */
};

/* Returns false when memory is short. */
static bool rows_init(const struct report *report, const struct bourse_tasks *tasks,
                      struct rows *ret_rows)
{
    const uint32_t count = report->subtasks - report->checks;
    const struct report_attempt **counts = calloc((size_t)count + 1, sizeof(void *));
    for (size_t i = 0; counts != NULL && i < report->attempt_count; i++) {
        const struct report_attempt *attempt = &report->attempts[i];
        if (attempt->fate == REPORT_ACCEPTED && attempt->index < count) {
            counts[attempt->index] = attempt;
        }
    }
    *ret_rows = (struct rows){report, tasks, count, counts};
    return counts != NULL;
}

static void rows_fini(struct rows *rows)
{
    free(rows->counts);
}

/* ---------------------------------------------------------------- what was planned of a subtask */

static bool is_planned(const struct report *report, uint32_t index)
{
    return report->plan != NULL && index < report->plan->row_count;
}

static size_t group_of(const struct report *report, uint32_t index)
{
    size_t at = 0;
    while (at < report->group_count &&
           index - report->groups[at].first >= report->groups[at].count) {
        at++;
    }
    return at;
}

/* Returns -1 when the planned time is no longer known. A guess counts only with a plan, when nobody
 * stated or measured the part's time. */
static int64_t planned_ns(const struct report *report, uint32_t index)
{
    const size_t group = group_of(report, index);
    if (is_planned(report, index)) {
        return plan_row_ns(&report->plan->rows[index]);
    }
    return group < report->group_count && report->groups[group].expect_ns > 0
               ? report->groups[group].expect_ns
               : -1;
}

/* Returns -1 when no plan is known. */
static int64_t planned_start_ns(const struct report *report, uint32_t index)
{
    return is_planned(report, index) ? plan_ns(report->plan->rows[index].start_s) : -1;
}

/* The energy is in microjoules, like all energies here; -1: unknown. */
static int64_t planned_energy(const struct report *report, uint32_t index)
{
    return is_planned(report, index) && report->planned_uj != NULL ? report->planned_uj[index] : -1;
}

static bool is_guess(const struct report *report, uint32_t index)
{
    const size_t group = group_of(report, index);
    return group == report->group_count || report->groups[group].expect_ns == 0;
}

/* ---------------------------------------------------------------- texts */

const char *report_off(int64_t predicted, int64_t measured, char ret_text[OFF_SIZE])
{
    if (predicted <= 0 || measured < 0) {
        return "-";
    }
    const double percent = ((double)measured / (double)predicted - 1) * 100;
    (void)snprintf(ret_text, OFF_SIZE, "%+.0f%%", percent);
    return ret_text;
}

static const char *known_text(int64_t ns)
{
    return ns < 0 ? "-" : cell_duration_ns(ns);
}

/* The text fits in `columns`; a longer text ends in two dots. */
static void write_short(const char *text, size_t columns, char ret_text[CELL])
{
    const char *printable = cell_plain(text);
    size_t kept = 0; /* bytes of all but the last two columns */
    size_t width = 0;
    for (size_t i = 0; printable[i] != '\0'; i++) {
        const bool begins = ((unsigned char)printable[i] & 0xc0) != 0x80;
        width += begins;
        kept = begins && width == columns - 1 ? i : kept;
    }
    const bool is_long = width > columns;
    (void)snprintf(ret_text, CELL, "%.*s%s", is_long ? (int)kept : CELL - 1, printable,
                   is_long ? ".." : "");
}

static void write_device(const struct report *report, size_t number, char ret_text[CELL])
{
    const struct report_device *device = &report->devices[number];
    char name[2 * REPORT_NAME_SIZE + 8];
    (void)snprintf(name, sizeof name, "%s%s/%s", device->sum.simulated > 0 ? "SIM " : "",
                   device->provider, device->name);
    write_short(name, DEVICE_COLUMNS, ret_text);
}

static void write_planned(int64_t ns, bool guess, char ret_text[CELL])
{
    (void)snprintf(ret_text, CELL, "%.40s%s", known_text(ns), ns >= 0 && guess ? "?" : "");
}

/* ---------------------------------------------------------------- tables */

/* A line of the table is one subtask, or several together. */
struct line {
    const char *what, *device;
    int64_t planned_start_ns, start_ns; /* -1: unknown */
    int64_t planned_ns, measured_ns;    /* -1: unknown */
    bool is_guess;
    int64_t bytes_in;                /* -1: unknown */
    int64_t cost_micro;              /* -1: no cost yet */
    int64_t planned_uj, measured_uj; /* -1: unknown */
    bool is_estimate;                /* some of measured_uj */
};

static void add_line(struct grid *table, const struct line *line)
{
    char planned[CELL];
    char off[OFF_SIZE];
    write_planned(line->planned_ns, line->is_guess, planned);
    const char *cells[] = {line->what,
                           line->device,
                           known_text(line->planned_start_ns),
                           known_text(line->start_ns),
                           planned,
                           known_text(line->measured_ns),
                           report_off(line->planned_ns, line->measured_ns, off),
                           line->bytes_in < 0    ? "unknown"
                           : line->bytes_in == 0 ? "-"
                                                 : cell_bytes((uint64_t)line->bytes_in),
                           line->cost_micro < 0 ? "-" : cell_money(line->cost_micro),
                           cell_energy(line->planned_uj, false),
                           cell_energy(line->measured_uj, line->is_estimate)};
    grid_add(table, cells);
}

/* The energy of most devices is unknown; the table then has no columns for it. */
static bool knows_energy(const struct report *report)
{
    return report->planned_uj != NULL || report->total.energy_known > 0;
}

static struct grid rows_grid(const struct report *report, const char *first, const char *time)
{
    const char *titles[] = {first, "DEVICE", "START", "BEGAN",  time,  "TOOK",
                            "OFF", "IN",     "COST",  "ENERGY", "USED"};
    return knows_energy(report) ? grid_of(11, titles, "llrrrrrrrrr")
                                : grid_of(9, titles, "llrrrrrrr");
}

static void add_subtask(const struct rows *rows, struct grid *table, uint32_t index)
{
    const struct report *report = rows->report;
    const struct report_attempt *attempt = rows->counts[index];
    const char *name = rows->tasks == NULL ? NULL : bourse_task_name(rows->tasks, index);
    char what[CELL];
    char device[CELL] = "-";
    write_short(name != NULL ? name : cell_number(rows->tasks, index), SUBTASK_COLUMNS, what);
    struct line line = {.what = what,
                        .device = device,
                        .planned_start_ns = planned_start_ns(report, index),
                        .start_ns = -1,
                        .planned_ns = planned_ns(report, index),
                        .measured_ns = -1,
                        .is_guess = is_guess(report, index),
                        .cost_micro = -1,
                        .planned_uj = planned_energy(report, index),
                        .measured_uj = -1};
    if (attempt != NULL) {
        write_device(report, attempt->device, device);
        line.start_ns = attempt->started_ns - report->first_ns;
        line.measured_ns = attempt->busy_ns;
        line.bytes_in = attempt->bytes_in;
        line.cost_micro = attempt->charge_micro;
        line.measured_uj = attempt->energy_uj;
        line.is_estimate = attempt->energy_is_estimate;
    }
    add_line(table, &line);
}

static void say_others(size_t count, const char *what)
{
    if (count > 0) {
        (void)printf("and %zu more %s%s: --json has them\n", count, what, text_plural(count));
    }
}

static int64_t sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    return checked_add(a, b, &sum) ? sum : INT64_MAX;
}

struct share { /* the work of one device in a part */
    uint32_t subtasks;
    bool is_guess, is_estimate;
    int64_t planned_start_ns, start_ns;
    int64_t planned_ns, measured_ns, bytes_in, cost_micro, planned_uj, measured_uj;
};

static int64_t both(int64_t a, int64_t b)
{
    return a < 0 || b < 0 ? -1 : sum_of(a, b);
}

static int64_t first_of(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void add_to_share(const struct rows *rows, const struct report_attempt *attempt,
                         struct share *share)
{
    const struct report *report = rows->report;
    const uint32_t index = attempt->index;
    if (share->subtasks++ == 0) {
        share->planned_start_ns = share->start_ns = -1;
    }
    share->is_estimate = share->is_estimate || attempt->energy_is_estimate;
    share->is_guess = share->is_guess || is_guess(report, index);
    share->planned_start_ns = first_of(share->planned_start_ns, planned_start_ns(report, index));
    share->start_ns = first_of(share->start_ns, attempt->started_ns - report->first_ns);
    share->planned_ns = both(share->planned_ns, planned_ns(report, index));
    share->measured_ns = both(share->measured_ns, attempt->busy_ns);
    share->bytes_in = both(share->bytes_in, attempt->bytes_in);
    share->cost_micro = sum_of(share->cost_micro, attempt->charge_micro);
    share->planned_uj = both(share->planned_uj, planned_energy(report, index));
    share->measured_uj = both(share->measured_uj, attempt->energy_uj);
}

static void add_share(const struct rows *rows, struct grid *table, size_t part, size_t number,
                      const struct share *share)
{
    char what[CELL];
    char device[CELL];
    if (rows->report->group_count > 1) {
        (void)snprintf(what, sizeof what, "%" PRIu32 " of part %zu", share->subtasks, part + 1);
    } else {
        (void)snprintf(what, sizeof what, "%" PRIu32 " of %" PRIu32, share->subtasks, rows->count);
    }
    write_device(rows->report, number, device);
    const struct line line = {.what = what,
                              .device = device,
                              .planned_start_ns = share->planned_start_ns,
                              .start_ns = share->start_ns,
                              .planned_ns = share->planned_ns,
                              .measured_ns = share->measured_ns,
                              .is_guess = share->is_guess,
                              .bytes_in = share->bytes_in,
                              .cost_micro = share->cost_micro,
                              .planned_uj = share->planned_uj,
                              .measured_uj = share->measured_uj,
                              .is_estimate = share->is_estimate};
    add_line(table, &line);
}

/* A job with many alike subtasks gets one row for each device and part. */
static void add_shares(const struct rows *rows, struct grid *table, size_t *ret_hidden)
{
    const struct report *report = rows->report;
    const size_t devices = report->device_count;
    struct share *shares = calloc((report->group_count + 1) * (devices + 1), sizeof *shares);
    size_t used = 0;
    for (uint32_t i = 0; shares != NULL && i < rows->count; i++) {
        const struct report_attempt *attempt = rows->counts[i];
        if (attempt != NULL) {
            add_to_share(rows, attempt, &shares[group_of(report, i) * devices + attempt->device]);
        }
    }
    for (size_t i = 0; shares != NULL && i < (report->group_count + 1) * devices; i++) {
        if (shares[i].subtasks > 0 && used++ < ROWS_SHOWN) {
            add_share(rows, table, i / devices, i % devices, &shares[i]);
        }
    }
    *ret_hidden = used > ROWS_SHOWN ? used - ROWS_SHOWN : 0;
    free(shares);
}

/* The total covers the accepted subtasks. */
static void add_total(const struct rows *rows, struct grid *table)
{
    struct share all = {.subtasks = 0};
    char what[CELL];
    for (uint32_t i = 0; i < rows->count; i++) {
        if (rows->counts[i] != NULL) {
            add_to_share(rows, rows->counts[i], &all);
        }
    }
    (void)snprintf(what, sizeof what, "%" PRIu32 " of %" PRIu32, all.subtasks, rows->count);
    const struct line line = {.what = "total",
                              .device = what,
                              .planned_start_ns = all.planned_start_ns,
                              .start_ns = all.start_ns,
                              .planned_ns = all.planned_ns,
                              .measured_ns = all.measured_ns,
                              .is_guess = all.is_guess,
                              .bytes_in = all.bytes_in,
                              .cost_micro = all.cost_micro,
                              .planned_uj = all.planned_uj,
                              .measured_uj = all.measured_uj,
                              .is_estimate = all.is_estimate};
    if (all.subtasks > 1) {
        add_line(table, &line);
    }
}

void report_print_rows(const struct report *report, const struct bourse_tasks *tasks, bool color)
{
    struct rows rows;
    if (!rows_init(report, tasks, &rows)) {
        return;
    }
    const bool is_named = tasks != NULL && bourse_task_name(tasks, 0) != NULL;
    const bool is_listed = rows.count <= UNNAMED_SHOWN || is_named;
    const uint32_t listed = rows.count < ROWS_SHOWN ? rows.count : ROWS_SHOWN;
    CLEANUP(grid_fini)
    struct grid table =
        is_listed ? rows_grid(report, "SUBTASK", "TIME") : rows_grid(report, "SUBTASKS", "WORK");
    size_t hidden = rows.count - listed;
    for (uint32_t i = 0; is_listed && i < listed; i++) {
        add_subtask(&rows, &table, i);
    }
    if (!is_listed) {
        add_shares(&rows, &table, &hidden);
    }
    add_total(&rows, &table);
    grid_print(&table, stdout, color);
    say_others(hidden, is_listed ? "subtask" : "share");
    rows_fini(&rows);
}

void report_add_energy(struct grid *table, const struct report *report, bool is_whole)
{
    char off[OFF_SIZE];
    const int64_t planned = report_planned_uj(report);
    const int64_t measured = report_measured_uj(report);
    const char *energy[] = {"energy", cell_energy(planned, false),
                            cell_energy(measured, report->total.energy_estimated > 0),
                            is_whole ? report_off(planned, measured, off) : "-"};
    grid_add(table, energy);
}

bool report_drifts(const struct report *report, int64_t *ret_percent)
{
    int64_t planned = 0;
    int64_t measured = 0;
    uint64_t samples = 0;
    for (size_t i = 0; i < report->attempt_count; i++) {
        const struct report_attempt *attempt = &report->attempts[i];
        if (attempt->fate == REPORT_ACCEPTED &&
            attempt->index < report->subtasks - report->checks &&
            !is_guess(report, attempt->index)) {
            planned = sum_of(planned, planned_ns(report, attempt->index));
            measured = sum_of(measured, attempt->busy_ns);
            samples++;
        }
    }
    int64_t share = 0;
    if (!online_drifts(planned, measured, samples) ||
        !checked_muldiv_floor(measured, 100, planned, &share)) {
        return false;
    }
    *ret_percent = share - 100;
    return true;
}

/* ---------------------------------------------------------------- the bound */

/* The job's time compares with a plan only when all was done on real devices. Subtasks of a
 * simulated device begin by the wall clock and take a model's time. */
static bool is_complete(const struct report *report)
{
    return report->total.simulated == 0 &&
           report->total.accepted - report->checks_accepted == report->subtasks - report->checks;
}

/* The gap compares a makespan with the least that the plan's times allow on the plan's places. The
 * gap is negative when the job was faster than planned or had more slots. */
static double gap_of(const struct report *report, int64_t makespan_ns)
{
    return (double)makespan_ns / (double)plan_ns(report->plan->bound) - 1;
}

static const char *gap_text(double gap, char ret_text[CELL])
{
    (void)snprintf(ret_text, CELL, "%.1f%%", 100 * gap);
    return ret_text;
}

void report_add_bound(struct grid *table, const struct report *report)
{
    const struct plan *plan = report->plan;
    if (plan == NULL) {
        return;
    }
    char planned[CELL];
    char measured[CELL];
    const char *bound[] = {"lower bound", cell_duration_ns(plan_ns(plan->bound)), "", ""};
    grid_add(table, bound);
    const char *gap[] = {
        "gap", gap_text(plan->gap, planned),
        is_complete(report) ? gap_text(gap_of(report, report->span_ns), measured) : "-", ""};
    grid_add(table, gap);
    const int64_t single_ns = plan_ns(plan->forms[PLAN_SINGLE].makespan_s.value);
    const char *single[] = {"best single",
                            plan->single != PLAN_ANYWHERE ? cell_duration_ns(single_ns)
                            : report->single_is_unknown   ? "unknown"
                                                          : "none",
                            "", ""};
    grid_add(table, single);
}

/* ---------------------------------------------------------------- JSON */

static double seconds_of(int64_t ns)
{
    return (double)ns / NS_PER_S;
}

static json_t *json_seconds(int64_t ns)
{
    return ns < 0 ? json_null() : json_real(seconds_of(ns));
}

static void add_name(json_t *value, const struct rows *rows, uint32_t index)
{
    const char *name = rows->tasks == NULL ? NULL : bourse_task_name(rows->tasks, index);
    if (name != NULL) {
        (void)json_object_set_new(value, "name", json_string(cell_plain(name)));
    }
}

static json_t *json_energy(int64_t energy_uj)
{
    return energy_uj < 0 ? json_null() : json_real((double)energy_uj / 1e6);
}

/* A subtask that did not run has null. Seconds count from the first start. */
static json_t *json_measured(const struct rows *rows, uint32_t index)
{
    const struct report *report = rows->report;
    const struct report_attempt *attempt = rows->counts[index];
    const int64_t expected_ns = planned_ns(report, index);
    json_t *value =
        json_pack("{s:i, s:o, s:b}", "subtask", (int)index, "planned_s", json_seconds(expected_ns),
                  "guess", (int)(expected_ns >= 0 && is_guess(report, index)));
    const int64_t start_ns = attempt == NULL ? -1 : attempt->started_ns - report->first_ns;
    (void)json_object_update_new(
        value,
        json_pack(
            "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "device",
            attempt == NULL ? json_null() : json_integer(attempt->device), "lane",
            attempt == NULL ? json_null() : json_integer(attempt->lane), "start_s",
            json_seconds(start_ns), "finish_s",
            attempt == NULL ? json_null() : json_seconds(attempt->end_ns - report->first_ns),
            "measured_s", attempt == NULL ? json_null() : json_seconds(attempt->busy_ns), "off",
            attempt == NULL || expected_ns <= 0
                ? json_null()
                : json_real((double)attempt->busy_ns / (double)expected_ns - 1),
            "bytes_in",
            attempt == NULL || attempt->bytes_in < 0 ? json_null()
                                                     : json_integer((json_int_t)attempt->bytes_in),
            "planned_energy_j", json_energy(planned_energy(report, index)), "energy_j",
            json_energy(attempt == NULL ? -1 : attempt->energy_uj), "energy_source",
            attempt == NULL || attempt->energy_source == NULL ? json_null()
                                                              : json_string(attempt->energy_source),
            "price_micro",
            attempt == NULL ? json_null() : json_integer((json_int_t)attempt->charge_micro)));
    add_name(value, rows, index);
    return value;
}

static json_t *json_planned_row(const struct rows *rows, uint32_t index)
{
    const struct plan_row *row = &rows->report->plan->rows[index];
    json_t *value =
        json_pack("{s:i, s:i, s:i, s:f, s:f, s:b, s:o}", "subtask", (int)index, "device",
                  (int)row->device, "lane", (int)row->lane, "start_s", row->start_s, "finish_s",
                  row->finish_s, "guess", (int)is_guess(rows->report, index), "energy_j",
                  json_energy(planned_energy(rows->report, index)));
    add_name(value, rows, index);
    return value;
}

/* The offered places have no names, because the manifest does not name them. */
static json_t *json_places(const struct plan *plan)
{
    json_t *list = json_array();
    for (size_t i = 0; i < plan->device_count; i++) {
        const struct plan_use *use = &plan->uses[i];
        (void)json_array_append_new(list, json_pack("{s:i, s:i, s:f, s:f}", "subtasks",
                                                    (int)use->row_count, "lanes", (int)use->lanes,
                                                    "busy_s", use->busy_s, "share", use->share));
    }
    return list;
}

static void add_planned(json_t *planned, const struct rows *rows)
{
    const struct report *report = rows->report;
    const struct plan *plan = report->plan;
    json_t *schedule = json_array();
    for (uint32_t i = 0; i < rows->count && i < plan->row_count && i < SCHEDULE_MOST; i++) {
        (void)json_array_append_new(schedule, json_planned_row(rows, i));
    }
    json_t *single = plan->single == PLAN_ANYWHERE
                         ? json_null()
                         : json_pack("{s:i, s:f}", "device", (int)plan->single, "makespan_s",
                                     plan->forms[PLAN_SINGLE].makespan_s.value);
    (void)json_object_update_new(
        planned, json_pack("{s:f, s:f, s:f, s:I, s:o, s:o, s:o, s:o}", "makespan_s",
                           plan->total.makespan_s.value, "lower_bound", plan->bound, "gap",
                           plan->gap, "price_micro", (json_int_t)report->planned_micro, "energy_j",
                           json_energy(report_planned_uj(report)), "best_single", single, "devices",
                           json_places(plan), "schedule", schedule));
}

void report_add_json(json_t *value, json_t *planned, const struct report *report,
                     const struct bourse_tasks *tasks)
{
    struct rows rows;
    if (!rows_init(report, tasks, &rows)) {
        return;
    }
    const struct plan *plan = report->plan;
    json_t *schedule = json_array();
    for (uint32_t i = 0; i < rows.count && i < SCHEDULE_MOST; i++) {
        (void)json_array_append_new(schedule, json_measured(&rows, i));
    }
    (void)json_object_update_new(
        value,
        json_pack("{s:o, s:o, s:o, s:I, s:o, s:i, s:o}", "makespan_s",
                  json_seconds(report->first_ns < 0 ? -1 : report->span_ns), "lower_bound",
                  plan == NULL ? json_null() : json_real(plan->bound), "gap",
                  plan == NULL || !is_complete(report) ? json_null()
                                                       : json_real(gap_of(report, report->span_ns)),
                  "price_micro", (json_int_t)report->total.charge_micro, "energy_j",
                  json_energy(report_measured_uj(report)), "lanes", (int)report->total.lanes,
                  "schedule", schedule));
    if (plan != NULL && json_is_object(planned)) {
        add_planned(planned, &rows);
    }
    rows_fini(&rows);
}
