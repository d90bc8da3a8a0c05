#include "consumer/job/report.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/energy.h"
#include "consumer/client/client.h"
#include "consumer/job/manifest.h"
#include "consumer/job/order.h"
#include "consumer/job/result_checks.h"

#include <stdlib.h>
#include <string.h>

enum { NAMED_BY_KEY = 12, NO_DEVICE = -1 };

/* The struct identifies a device while results come in. */
struct known {
    char provider[BOURSE_HEX32_SIZE];
    char device[BOURSE_ID_SIZE];
};

/* A file that an accepted task left for others. */
struct task_output {
    uint32_t task;
    char *name;
    uint64_t size;
};

struct reading {
    const struct bourse_job_row *row;
    const Bourse__V1__Manifest *manifest; /* NULL: the manifest is gone */
    struct report *report;
    struct known *known; /* as many as report->devices */
    size_t known_capacity, device_capacity, attempt_capacity;
    struct task_output *left; /* by task; empty when no task takes files of others */
    size_t left_count, left_capacity;
    bool takes_files;
    bool *is_seen;  /* by lease of the row: one of its results came */
    size_t decided; /* number of deciding attempts, which come first, by subtask */
    bool no_memory;
};

static int64_t bounded(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int64_t added(int64_t sum, uint64_t more)
{
    int64_t result;
    return checked_add(sum, bounded(more), &result) ? result : INT64_MAX;
}

static int64_t ns_of(int64_t ms)
{
    int64_t ns;
    return checked_mul(ms, NS_PER_MS, &ns) ? ns : ms < 0 ? INT64_MIN : INT64_MAX;
}

/* ---------------------------------------------------------------- bytes */

static bool takes_files(const Bourse__V1__Manifest *manifest)
{
    bool takes = false;
    for (uint32_t i = 0; manifest != NULL && i < manifest->n_subtasks && !takes; i++) {
        takes = manifest_takes_files(manifest, i);
    }
    return takes;
}

/* Results come by index, and a task waits only for lower ones. The outputs that it takes are
 * therefore known before its own result. */
static bool keep_left(struct reading *reading, const struct bourse_outcome *outcome)
{
    if (!reading->takes_files || outcome->status != ATTEMPT_ACCEPTED) {
        return true;
    }
    for (size_t i = 0; i < outcome->output_count; i++) {
        struct task_output *all = array_with_room(reading->left, reading->left_count,
                                                  &reading->left_capacity, sizeof *all);
        if (all == NULL) {
            return false;
        }
        reading->left = all;
        struct task_output left = {outcome->index, strdup(outcome->outputs[i].name),
                                   outcome->outputs[i].size};
        if (left.name == NULL) {
            return false;
        }
        reading->left[reading->left_count++] = left;
    }
    return true;
}

/* Returns -1 when no result of the task came, or a result without this file. */
static int64_t left_bytes(const struct reading *reading, const Bourse__V1__ManifestFrom *from)
{
    size_t low = 0;
    size_t high = reading->left_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (reading->left[middle].task < from->task) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (size_t i = low; i < reading->left_count && reading->left[i].task == from->task; i++) {
        if (strcmp(reading->left[i].name, from->output) == 0) {
            return bounded(reading->left[i].size);
        }
    }
    return -1;
}

static int64_t bytes_in(const struct reading *reading, uint32_t index)
{
    if (reading->manifest == NULL) {
        return -1;
    }
    if (index >= reading->manifest->n_subtasks) {
        return 0;
    }
    const Bourse__V1__ManifestSubtask *subtask = reading->manifest->subtasks[index];
    int64_t bytes = manifest_own_bytes(reading->manifest, index);
    for (size_t i = 0; subtask->task != NULL && i < subtask->task->n_from; i++) {
        const Bourse__V1__ManifestFrom *from = subtask->task->from[i];
        int64_t taken = from->output == NULL ? 0 : left_bytes(reading, from);
        if (taken < 0) {
            return -1;
        }
        bytes = added(bytes, (uint64_t)taken);
    }
    return bytes;
}

static int64_t bytes_out(const struct bourse_outcome *outcome)
{
    int64_t bytes = outcome->has_standard_output ? bounded(outcome->standard_output.size) : 0;
    bytes = outcome->has_standard_error ? added(bytes, outcome->standard_error.size) : bytes;
    for (size_t i = 0; i < outcome->output_count; i++) {
        bytes = added(bytes, outcome->outputs[i].size);
    }
    return bytes;
}

/* ---------------------------------------------------------------- devices */

/* Leases give names to the keys in results; the broker forgets old leases. */
static void add_lease(struct reading *reading, uint64_t number, struct report_device *device)
{
    for (size_t i = 0; i < reading->row->lease_count; i++) {
        const struct bourse_lease *lease = &reading->row->leases[i];
        if (lease->lease != number || reading->is_seen[i]) {
            continue;
        }
        reading->is_seen[i] = true;
        client_copy(device->provider, sizeof device->provider, lease->provider);
        client_copy(device->name, sizeof device->name, lease->device);
        device->slots += lease->slots;
        bool first = device->price_low_micro < 0;
        if (first || lease->price_micro < device->price_low_micro) {
            device->price_low_micro = lease->price_micro;
        }
        if (first || lease->price_micro > device->price_high_micro) {
            device->price_high_micro = lease->price_micro;
        }
    }
}

static bool has_room_for_device(struct reading *reading)
{
    struct report *report = reading->report;
    struct known *known = array_with_room(reading->known, report->device_count,
                                          &reading->known_capacity, sizeof *known);
    reading->known = known != NULL ? known : reading->known;
    struct report_device *devices = array_with_room(report->devices, report->device_count,
                                                    &reading->device_capacity, sizeof *devices);
    report->devices = devices != NULL ? devices : report->devices;
    return known != NULL && devices != NULL;
}

static bool has_room_for_attempt(struct reading *reading)
{
    struct report *report = reading->report;
    struct report_attempt *attempts = array_with_room(report->attempts, report->attempt_count,
                                                      &reading->attempt_capacity, sizeof *attempts);
    report->attempts = attempts != NULL ? attempts : report->attempts;
    return attempts != NULL;
}

static int64_t device_of(struct reading *reading, const struct bourse_outcome *outcome)
{
    struct report *report = reading->report;
    for (size_t i = 0; i < report->device_count; i++) {
        if (strcmp(reading->known[i].device, outcome->device) == 0 &&
            strcmp(reading->known[i].provider, outcome->provider) == 0) {
            return (int64_t)i;
        }
    }
    if (!has_room_for_device(reading)) {
        return NO_DEVICE;
    }
    size_t at = report->device_count++;
    client_copy(reading->known[at].provider, sizeof reading->known[at].provider, outcome->provider);
    client_copy(reading->known[at].device, sizeof reading->known[at].device, outcome->device);
    report->devices[at] = (struct report_device){
        .price_low_micro = -1,
        .price_high_micro = -1,
        .shared_bytes = reading->manifest == NULL ? -1 : manifest_shared_bytes(reading->manifest)};
    (void)snprintf(report->devices[at].provider, sizeof report->devices[at].provider, "%.*s",
                   NAMED_BY_KEY, outcome->provider);
    (void)snprintf(report->devices[at].name, sizeof report->devices[at].name, "%.*s", NAMED_BY_KEY,
                   outcome->device);
    return (int64_t)at;
}

/* ---------------------------------------------------------------- results */

/* Returns why an attempt does not count. A check that rejects has not failed as a program. */
static const char *cause_of(const struct bourse_outcome *outcome)
{
    if (outcome->status == ATTEMPT_LATE) {
        return "came too late";
    }
    if (outcome->status == ATTEMPT_REFUTED) {
        return "refuted by a referee";
    }
    if (outcome->status == ATTEMPT_FAILED_UNPAID && outcome->outcome == OUTCOME_OK) {
        return "output not stored by its provider";
    }
    if (outcome->status != ATTEMPT_FAILED_PAID || outcome->outcome != OUTCOME_OK) {
        return outcome->outcome_text;
    }
    if (outcome->verdict_text == NULL) {
        return "no check of it came to a verdict";
    }
    return strcmp(outcome->verdict_text, "reject") == 0 ? "check that refuted a result"
                                                        : "check without a verdict";
}

/* An attempt was called back before it began, and nobody pays for it, so nothing failed. */
static bool is_withdrawn(const struct bourse_outcome *outcome)
{
    return outcome->status != ATTEMPT_ACCEPTED && outcome->outcome == OUTCOME_CANCELLED &&
           outcome->busy_ns == 0 && outcome->charge_micro == 0;
}

static bool add_outcome(void *context, const struct bourse_outcome *outcome)
{
    struct reading *reading = context;
    struct report *report = reading->report;
    if (is_withdrawn(outcome)) {
        return true;
    }
    int64_t device = device_of(reading, outcome);
    if (device == NO_DEVICE || !has_room_for_attempt(reading) || !keep_left(reading, outcome)) {
        reading->no_memory = true;
        return false;
    }
    add_lease(reading, outcome->lease, &report->devices[device]);
    report->saved += outcome->saved_files > 0;
    report->restored += outcome->restored != 0;
    report->saved_bytes += outcome->saved_bytes;
    report->attempts[report->attempt_count++] = (struct report_attempt){
        .device = (uint32_t)device,
        .index = outcome->index,
        .attempt = outcome->attempt,
        .fate = outcome->status == ATTEMPT_ACCEPTED     ? REPORT_ACCEPTED
                : outcome->status == ATTEMPT_LATE       ? REPORT_LATE
                : outcome->outcome == OUTCOME_CANCELLED ? REPORT_CANCELLED
                                                        : REPORT_FAILED,
        .simulated = outcome->simulated,
        .cause = cause_of(outcome),
        .started_ns = ns_of(outcome->started_ms),
        .busy_ns = outcome->busy_ns,
        .charge_micro = outcome->charge_micro,
        .bytes_in = bytes_in(reading, outcome->index),
        .bytes_out = bytes_out(outcome),
        .held_bytes = (int64_t)outcome->held_bytes,
        .copied_bytes = (int64_t)outcome->copied_bytes,
        .energy_uj = outcome->has_energy && outcome->energy_uj >= 0 ? outcome->energy_uj : -1,
        .energy_source = outcome->energy_source_text,
        .energy_is_estimate = outcome->energy_source == ENERGY_BY_OWNER ||
                              outcome->energy_source == ENERGY_BY_CATALOGUE,
        .peak_memory_bytes = outcome->peak_memory_bytes,
        .peak_power_mw = outcome->peak_power_mw,
        .isolation = outcome->isolation,
    };
    return true;
}

/* Adds all other attempts. An open job may have changed, so the deciding attempt of a moment ago
 * may be among them. */
static bool add_other(void *context, const struct bourse_outcome *outcome)
{
    struct reading *reading = context;
    const struct report_attempt *attempts = reading->report->attempts;
    size_t low = 0;
    size_t high = reading->decided;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (attempts[middle].index < outcome->index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_known = low < reading->decided && attempts[low].index == outcome->index &&
                    attempts[low].attempt == outcome->attempt;
    return is_known || add_outcome(context, outcome);
}

static bool read_results(struct bourse *bourse, struct reading *reading, struct bourse_error *error)
{
    reading->is_seen = calloc(reading->row->lease_count + 1, sizeof *reading->is_seen);
    if (reading->is_seen == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    /* Deciding attempts come first, because a task's inputs are sized by the results before it. */
    if (!bourse_outcomes(bourse, reading->row->id, 0, add_outcome, reading, error)) {
        return false;
    }
    reading->decided = reading->report->attempt_count;
    if (!reading->no_memory &&
        !client_other_outcomes(bourse, reading->row->id, add_other, reading, error)) {
        return false;
    }
    enum report_status status =
        reading->no_memory ? REPORT_NO_MEMORY : report_make(reading->report);
    switch (status) {
    case REPORT_OK:
        return true;
    case REPORT_BAD_INPUT:
        return client_fail(error, BOURSE_UNVERIFIED,
                           "the broker sent a result with a time, an amount or a size below zero");
    case REPORT_NO_MEMORY:
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    return false;
}

/* The report ends at the job's end, or at the market's present time for an open job. */
static bool read_end(struct bourse *bourse, const struct bourse_job_row *row, struct report *report,
                     struct bourse_error *error)
{
    struct bourse_account account;
    report->submitted_ns = ns_of(row->submitted_ms);
    if (row->ended_ms > 0) {
        report->until_ns = ns_of(row->ended_ms);
    } else if (bourse_whoami(bourse, &account, error)) {
        report->until_ns = ns_of(account.log_time_ms);
    } else {
        return false;
    }
    /* The two times are in whole milliseconds. */
    report->until_ns =
        report->until_ns < report->submitted_ns ? report->submitted_ns : report->until_ns;
    return true;
}

/* Reads the parts' expected times at submission from the manifest, while the manifest exists. The
 * default time is no prediction. */
static void read_groups(const Bourse__V1__Manifest *manifest, struct report *report)
{
    const Bourse__V1__ManifestTerms *terms = manifest == NULL ? NULL : manifest->terms;
    uint32_t first = 0;
    for (size_t i = 0; terms != NULL && i < terms->n_parts && i < REPORT_GROUPS &&
                       first < report->subtasks - report->checks;
         i++) {
        const Bourse__V1__ManifestPart *part = terms->parts[i];
        const bool is_guess = !manifest->has_expect_ns &&
                              part->expect_ns == order_expect_ns(JOB_ABSENT, part->limit_ms);
        report->groups[report->group_count++] = (struct report_group){
            .first = first, .count = part->subtasks, .expect_ns = is_guess ? 0 : part->expect_ns};
        first += part->subtasks;
    }
}

/* Returns the expected time of one subtask, when the job stated one. With a single part the plan's
 * time counts, because it includes earlier measurements. */
static int64_t expected_of(const Bourse__V1__Manifest *manifest, const struct report *report)
{
    const bool is_planned = report->group_count == 1 && report->groups[0].expect_ns > 0;
    if (manifest == NULL || !manifest->has_expect_ns) {
        return 0;
    }
    return is_planned ? report->groups[0].expect_ns : manifest->expect_ns;
}

/* Reads the quote's figures; the groups tell whether they were guesses. */
static void read_plan(const Bourse__V1__Manifest *manifest, struct report *report)
{
    const Bourse__V1__ManifestTerms *terms = manifest == NULL ? NULL : manifest->terms;
    if (terms == NULL || !terms->has_planned_ns || !terms->has_planned_micro) {
        return;
    }
    report->planned_ns = terms->planned_ns;
    report->planned_micro = terms->planned_micro;
    report->planned_slots = terms->has_planned_slots ? terms->planned_slots : 0;
    report->planned_is_guess = true;
    for (size_t i = 0; i < report->group_count; i++) {
        report->planned_is_guess = report->planned_is_guess && report->groups[i].expect_ns == 0;
    }
}

/* ---------------------------------------------------------------- whole */

bool consumer_report(struct bourse *bourse, const char *id, struct report **ret_report,
                     struct bourse_error *ret_error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    CLEANUP(report_destroy) struct report *report = calloc(1, sizeof *report);
    if (report == NULL) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    if (!bourse_jobs(bourse, id, &jobs, ret_error)) {
        return false;
    }
    const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
    struct bourse_error absent;
    if (!client_manifest(bourse, id, &manifest, &absent)) {
        if (absent.status != BOURSE_NOT_FOUND) {
            *ret_error = absent;
            return false;
        }
        manifest = NULL; /* an expired blob: the inputs are unknown */
    }
    client_copy(report->id, sizeof report->id, row->id);
    client_copy(report->name, sizeof report->name, row->name);
    client_copy(report->state, sizeof report->state, row->state_text);
    report->subtasks = row->subtasks;
    report->left_ns = row->left_ms < 0 ? -1 : ns_of(row->left_ms);
    report->checks = manifest != NULL ? result_checks_count(manifest) : 0;
    read_groups(manifest, report);
    report->expect_ns = expected_of(manifest, report);
    read_plan(manifest, report);
    if (!report_read_schedule(manifest, report)) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    struct reading reading = {
        .row = row, .manifest = manifest, .report = report, .takes_files = takes_files(manifest)};
    bool ok = read_end(bourse, row, report, ret_error) && read_results(bourse, &reading, ret_error);
    for (size_t i = 0; i < reading.left_count; i++) {
        free(reading.left[i].name);
    }
    free(reading.left);
    free(reading.known);
    free(reading.is_seen);
    if (!ok) {
        return false;
    }
    *ret_report = report;
    report = NULL;
    return true;
}
