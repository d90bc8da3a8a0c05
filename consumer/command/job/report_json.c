/* This file writes the report of a job as JSON. */
#include "consumer/command/job/report_rows.h"
#include "consumer/command/show.h"

#include "base/checked.h"

#include <stdlib.h>

static json_t *json_known(int64_t value)
{
    return value < 0 ? json_null() : json_integer((json_int_t)value);
}

/* Adds the greatest memory and power, and the least isolation; null where no result says. */
static json_t *with_peaks(json_t *value, int64_t memory_bytes, int64_t power_mw, int isolation)
{
    (void)json_object_set_new(value, "isolation", json_isolation_level(isolation));
    (void)json_object_set_new(value, "peak_memory_bytes",
                              json_known(memory_bytes > 0 ? memory_bytes : -1));
    (void)json_object_set_new(value, "peak_power_mw", json_known(power_mw > 0 ? power_mw : -1));
    return value;
}

static json_t *json_sum(const struct report_sum *sum)
{
    json_t *value = json_pack(
        "{s:i, s:i, s:i, s:i, s:b, s:i, s:I, s:o, s:I, s:o, s:I, s:I, s:I, s:o, s:i, s:i}",
        "accepted", (int)sum->accepted, "failed", (int)sum->failed, "late", (int)sum->late,
        "cancelled", (int)sum->cancelled, "simulated", (int)(sum->simulated > 0), "lanes",
        (int)sum->lanes, "busy_ns", (json_int_t)sum->busy_ns, "share_ppm",
        json_known(sum->share_ppm), "charged_micro", (json_int_t)sum->charge_micro, "bytes_in",
        json_known(sum->bytes_in), "bytes_out", (json_int_t)sum->bytes_out, "held_bytes",
        (json_int_t)sum->held_bytes, "copied_bytes", (json_int_t)sum->copied_bytes, "energy_mj",
        json_known(sum->energy_known > 0 ? sum->energy_uj / 1000 : -1), "energy_known",
        (int)sum->energy_known, "energy_estimated", (int)sum->energy_estimated);
    return with_peaks(value, sum->peak_memory_bytes, sum->peak_power_mw, sum->isolation);
}

static json_t *json_predicted(const struct report_predicted *predicted)
{
    return json_pack("{s:i, s:I, s:I}", "subtasks", (int)predicted->subtasks, "predicted_ns",
                     (json_int_t)predicted->predicted_ns, "measured_ns",
                     (json_int_t)predicted->measured_ns);
}

/* The value is null when nothing was predicted or the prediction is lost. */
static json_t *json_plan(const struct report *report)
{
    if (report->predicted.subtasks == 0) {
        return json_null();
    }
    json_t *groups = json_array();
    for (size_t i = 0; i < report->group_count; i++) {
        const struct report_group *group = &report->groups[i];
        json_t *value = json_predicted(&group->predicted);
        (void)json_object_set_new(value, "first", json_integer((json_int_t)group->first));
        (void)json_object_set_new(value, "count", json_integer((json_int_t)group->count));
        (void)json_object_set_new(value, "expect_ns", json_integer((json_int_t)group->expect_ns));
        (void)json_object_set_new(value, "median_ns", json_known(group->median_ns));
        (void)json_array_append_new(groups, value);
    }
    json_t *value = json_predicted(&report->predicted);
    (void)json_object_set_new(value, "groups", groups);
    return value;
}

/* --json lists no more subtasks than this. */
enum { TIMELINE_MOST = 10000 };

static json_t *json_bar(uint32_t index, size_t device, uint32_t lane, int64_t from_ns,
                        int64_t until_ns)
{
    return json_pack("{s:i, s:i, s:i, s:I, s:I}", "index", (int)index, "device", (int)device,
                     "lane", (int)lane, "from_ns", (json_int_t)from_ns, "until_ns",
                     (json_int_t)until_ns);
}

/* Times count from the submission, as in every timeline. Devices have their index in `devices`. */
static json_t *json_timeline(const struct report *report)
{
    json_t *list = json_array();
    for (size_t i = 0; i < report->attempt_count && i < TIMELINE_MOST; i++) {
        const struct report_attempt *attempt = &report->attempts[i];
        json_t *value = json_bar(attempt->index, attempt->device, attempt->lane,
                                 attempt->started_ns - report->submitted_ns,
                                 attempt->end_ns - report->submitted_ns);
        (void)json_object_set_new(value, "accepted",
                                  json_boolean(attempt->fate == REPORT_ACCEPTED));
        (void)json_array_append_new(list, with_peaks(value, attempt->peak_memory_bytes,
                                                     attempt->peak_power_mw, attempt->isolation));
    }
    return list;
}

/* The plan is shown as if it began with the first subtask. `device` is the index of an offered
 * place, the cheapest first. */
static json_t *json_plan_timeline(const struct report *report)
{
    const struct plan *plan = report->plan;
    const int64_t begin_ns = report->wait_ns > 0 ? report->wait_ns : 0;
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->row_count && i < TIMELINE_MOST; i++) {
        const struct plan_row *row = &plan->rows[i];
        (void)json_array_append_new(list, json_bar(i, row->device, row->lane,
                                                   begin_ns + plan_ns(row->start_s),
                                                   begin_ns + plan_ns(row->finish_s)));
    }
    return list;
}

static void add_plan(json_t *value, const struct report *report)
{
    const struct plan *plan = report->plan;
    const struct report_sum *total = &report->total;
    (void)json_object_update_new(
        value, json_pack("{s:i, s:i, s:I, s:I, s:I, s:o, s:I, s:o}", "lanes", (int)plan->lanes,
                         "measured_lanes", (int)total->lanes, "busy_ns",
                         (json_int_t)plan_busy_ns(plan), "measured_busy_ns",
                         (json_int_t)total->busy_ns, "share_ppm", (json_int_t)plan_share_ppm(plan),
                         "measured_share_ppm", json_known(total->share_ppm), "lower_bound_ns",
                         (json_int_t)plan_ns(plan->bound), "timeline", json_plan_timeline(report)));
}

/* The value is null when there was no quote or its manifest is gone. */
static json_t *json_planned(const struct report *report)
{
    json_t *value =
        report->planned_ns == 0
            ? json_null()
            : json_pack("{s:I, s:I, s:I, s:I, s:i, s:b}", "makespan_ns",
                        (json_int_t)report->planned_ns, "measured_makespan_ns",
                        (json_int_t)report->span_ns, "cost_micro",
                        (json_int_t)report->planned_micro, "measured_cost_micro",
                        (json_int_t)report->total.charge_micro, "slots", (int)report->planned_slots,
                        "guess", (int)report->planned_is_guess);
    if (report->planned_ns > 0 && report->plan != NULL) {
        add_plan(value, report);
    }
    return value;
}

static json_t *json_device(const struct report_device *device)
{
    json_t *value = json_sum(&device->sum);
    char text[REPORT_NAME_SIZE];
    bourse_printable(device->provider, text, sizeof text);
    (void)json_object_set_new(value, "provider", json_string(text));
    bourse_printable(device->name, text, sizeof text);
    (void)json_object_set_new(value, "device", json_string(text));
    (void)json_object_set_new(value, "price_low_micro", json_known(device->price_low_micro));
    (void)json_object_set_new(value, "price_high_micro", json_known(device->price_high_micro));
    (void)json_object_set_new(value, "moved_ns", json_integer((json_int_t)device->moved_ns));
    (void)json_object_set_new(value, "cut", json_integer((json_int_t)device->cut));
    if (device->predicted.subtasks > 0) {
        (void)json_object_set_new(value, "plan", json_predicted(&device->predicted));
    }
    return value;
}

json_t *report_json(const struct report *report, const struct bourse_tasks *tasks)
{
    json_t *devices = json_array();
    for (size_t i = 0; i < report->device_count; i++) {
        (void)json_array_append_new(devices, json_device(&report->devices[i]));
    }
    json_t *slowest = json_array();
    for (size_t i = 0; i < report->slowest_count; i++) {
        const struct report_attempt *attempt = &report->attempts[report->slowest[i]];
        json_t *item = json_pack("{s:i, s:I}", "index", (int)attempt->index, "busy_ns",
                                 (json_int_t)attempt->busy_ns);
        const char *name = tasks == NULL ? NULL : bourse_task_name(tasks, attempt->index);
        if (name != NULL) {
            (void)json_object_set_new(item, "name", json_string(cell_plain(name)));
        }
        (void)json_array_append_new(slowest, item);
    }
    json_t *causes = json_array();
    for (size_t i = 0; i < report->cause_count; i++) {
        (void)json_array_append_new(causes, json_pack("{s:s, s:i}", "cause", report->causes[i].text,
                                                      "attempts", (int)report->causes[i].attempts));
    }
    char name[REPORT_NAME_SIZE];
    bourse_printable(report->name, name, sizeof name);
    json_t *value = json_pack(
        "{s:s, s:s, s:s, s:i, s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "job", report->id,
        "name", name, "state", report->state, "subtasks", (int)report->subtasks, "submitted_ms",
        (json_int_t)(report->submitted_ns / NS_PER_MS), "wait_ns", json_known(report->wait_ns),
        "span_ns", (json_int_t)report->span_ns, "median_ns", json_known(report->median_ns),
        "expect_ns", json_known(report->expect_ns > 0 ? report->expect_ns : -1), "expect_span_ns",
        json_known(report->expect_span_ns), "total", json_sum(&report->total), "devices", devices,
        "slowest", slowest, "failures", causes);
    (void)json_object_set_new(value, "plan", json_plan(report));
    json_t *planned = json_planned(report);
    report_add_json(value, planned, report, tasks);
    (void)json_object_set_new(value, "planned", planned);
    (void)json_object_set_new(value, "timeline", json_timeline(report));
    int64_t percent = 0;
    (void)json_object_set_new(value, "left_ns", json_known(report->left_ns));
    (void)json_object_set_new(value, "drifts", json_boolean(report_drifts(report, &percent)));
    if (report->saved + report->restored > 0) {
        (void)json_object_set_new(value, "checkpoints",
                                  json_pack("{s:i, s:I, s:i}", "saved", (int)report->saved, "bytes",
                                            (json_int_t)report->saved_bytes, "restored",
                                            (int)report->restored));
    }
    if (report->checks > 0) {
        (void)json_object_set_new(value, "checks",
                                  json_pack("{s:i, s:i, s:I}", "subtasks", (int)report->checks,
                                            "accepted", (int)report->checks_accepted, "busy_ns",
                                            (json_int_t)report->checks_ns));
    }
    return value;
}
