#include "planner/picture/report.h"

#include "base/checked.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Results give their start in whole milliseconds, rounded down. An attempt may so seem to start up
 * to one millisecond before the end of the attempt before. */
#define START_STEP_NS NS_PER_MS

static int64_t sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    return checked_add(a, b, &sum) ? sum : INT64_MAX;
}

static int64_t product_of(int64_t a, int64_t b)
{
    int64_t product;
    return checked_mul(a, b, &product) ? product : INT64_MAX;
}

static int64_t clamped(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static bool is_good(const struct report *report)
{
    if (report->submitted_ns < 0 || report->until_ns < report->submitted_ns ||
        report->expect_ns < 0 || report->planned_ns < 0 || report->left_ns < -1 ||
        report->planned_micro < 0 || report->group_count > REPORT_GROUPS) {
        return false;
    }
    for (size_t i = 0; i < report->group_count; i++) {
        if (report->groups[i].expect_ns < 0) {
            return false;
        }
    }
    for (size_t i = 0; i < report->attempt_count; i++) {
        const struct report_attempt *attempt = &report->attempts[i];
        if (attempt->device >= report->device_count || attempt->fate > REPORT_CANCELLED ||
            attempt->busy_ns < 0 || attempt->charge_micro < 0 || attempt->bytes_in < -1 ||
            attempt->bytes_out < 0 || attempt->held_bytes < 0 || attempt->copied_bytes < 0 ||
            attempt->energy_uj < -1 || attempt->peak_memory_bytes < 0 ||
            attempt->peak_power_mw < 0 || attempt->isolation < -1) {
            return false;
        }
    }
    return true;
}

/* Sorts by device, then by the order in which attempts ran. */
static int by_device_and_start(const void *a, const void *b)
{
    const struct report_attempt *left = a;
    const struct report_attempt *right = b;
    if (left->device != right->device) {
        return left->device < right->device ? -1 : 1;
    }
    if (left->started_ns != right->started_ns) {
        return left->started_ns < right->started_ns ? -1 : 1;
    }
    if (left->index != right->index) {
        return left->index < right->index ? -1 : 1;
    }
    return left->attempt < right->attempt ? -1 : left->attempt > right->attempt;
}

/* ---------------------------------------------------------------- clocks */

/* The range of shifts that move attempts into the market's time. There is none if the least exceeds
 * the most. */
struct room {
    int64_t least_ns, most_ns;
};

static int64_t difference_of(int64_t a, int64_t b)
{
    int64_t difference;
    return checked_sub(a, b, &difference) ? difference : a < b ? INT64_MIN : INT64_MAX;
}

static struct room room_of(const struct report *report, const struct report_attempt *attempts,
                           size_t count)
{
    struct room room = {INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < count; i++) {
        const int64_t end_ns = sum_of(attempts[i].started_ns, attempts[i].busy_ns);
        const int64_t least_ns = difference_of(report->submitted_ns, attempts[i].started_ns);
        const int64_t most_ns = difference_of(report->until_ns, end_ns);
        room.least_ns = least_ns > room.least_ns ? least_ns : room.least_ns;
        room.most_ns = most_ns < room.most_ns ? most_ns : room.most_ns;
    }
    return room;
}

/* Returns the smallest shift. No attempt may begin before the job was submitted, even if attempts
 * then stick out at the end. */
static int64_t move_within(struct room room)
{
    if (room.least_ns > 0 || room.most_ns >= 0) {
        return room.least_ns > 0 ? room.least_ns : 0;
    }
    return room.most_ns > room.least_ns ? room.most_ns : room.least_ns;
}

/* Looks for one shift that puts all attempts into the market's time. Such a shift keeps the order
 * of the attempts, so that no attempt begins before what it waited for. Without one, each device
 * gets its own shift. */
static bool find_move(const struct report *report, int64_t *ret_move_ns)
{
    const struct room room = room_of(report, report->attempts, report->attempt_count);
    *ret_move_ns = move_within(room);
    return room.least_ns <= room.most_ns;
}

/* Moves all attempts of one device by the same shift. */
static void set_clock(const struct report *report, struct report_device *device, int64_t move_ns,
                      struct report_attempt *attempts, size_t count)
{
    device->moved_ns = move_ns;
    for (size_t i = 0; i < count; i++) {
        struct report_attempt *attempt = &attempts[i];
        int64_t start_ns = sum_of(attempt->started_ns, move_ns);
        attempt->started_ns = clamped(start_ns, report->submitted_ns, report->until_ns);
        attempt->end_ns = sum_of(attempt->started_ns, attempt->busy_ns);
        if (attempt->end_ns > report->until_ns) {
            attempt->end_ns = report->until_ns;
            /* The last millisecond comes from rounding the start. */
            device->cut += sum_of(start_ns, attempt->busy_ns) - report->until_ns > START_STEP_NS;
        }
    }
}

/* ---------------------------------------------------------------- lanes */

/* Deals attempts, by start, to the free lane that became free last, or to a new lane. An attempt
 * without a free lane waits for the first one that ends. */
static bool assign_lanes(struct report_device *device, struct report_attempt *attempts,
                         size_t count)
{
    size_t most =
        device->slots == 0 || device->slots > REPORT_LANES_MAX ? REPORT_LANES_MAX : device->slots;
    int64_t *ends = calloc(most, sizeof *ends);
    if (ends == NULL) {
        return false;
    }
    size_t lanes = 0;
    for (size_t i = 0; i < count; i++) {
        struct report_attempt *attempt = &attempts[i];
        size_t best = most;
        size_t earliest = 0;
        for (size_t k = 0; k < lanes; k++) {
            bool is_free = ends[k] - START_STEP_NS < attempt->started_ns;
            best = is_free && (best == most || ends[k] > ends[best]) ? k : best;
            earliest = ends[k] < ends[earliest] ? k : earliest;
        }
        if (best == most) {
            best = lanes < most ? lanes++ : earliest;
        }
        attempt->lane = (uint32_t)best;
        int64_t from_ns = attempt->started_ns > ends[best] ? attempt->started_ns : ends[best];
        ends[best] = sum_of(from_ns, attempt->end_ns - attempt->started_ns);
    }
    device->sum.lanes = (uint32_t)lanes;
    free(ends);
    return true;
}

/* ---------------------------------------------------------------- sums */

static int64_t greater_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the lesser of two levels of isolation; -1: unknown. */
static int lesser_level(int a, int b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void add_attempt(struct report_sum *sum, const struct report_attempt *attempt)
{
    sum->accepted += attempt->fate == REPORT_ACCEPTED;
    sum->failed += attempt->fate == REPORT_FAILED;
    sum->late += attempt->fate == REPORT_LATE;
    sum->cancelled += attempt->fate == REPORT_CANCELLED;
    sum->simulated += attempt->simulated;
    sum->busy_ns = sum_of(sum->busy_ns, attempt->busy_ns);
    sum->charge_micro = sum_of(sum->charge_micro, attempt->charge_micro);
    sum->bytes_out = sum_of(sum->bytes_out, attempt->bytes_out);
    sum->held_bytes = sum_of(sum->held_bytes, attempt->held_bytes);
    sum->copied_bytes = sum_of(sum->copied_bytes, attempt->copied_bytes);
    sum->bytes_in =
        sum->bytes_in < 0 || attempt->bytes_in < 0 ? -1 : sum_of(sum->bytes_in, attempt->bytes_in);
    sum->peak_memory_bytes = greater_of(sum->peak_memory_bytes, attempt->peak_memory_bytes);
    sum->peak_power_mw = greater_of(sum->peak_power_mw, attempt->peak_power_mw);
    sum->isolation = lesser_level(sum->isolation, attempt->isolation);
    if (attempt->energy_uj >= 0) {
        sum->energy_uj = sum_of(sum->energy_uj, attempt->energy_uj);
        sum->energy_known++;
        sum->energy_estimated += attempt->energy_is_estimate;
    }
}

static void add_sum(struct report_sum *total, const struct report_sum *sum)
{
    total->accepted += sum->accepted;
    total->failed += sum->failed;
    total->late += sum->late;
    total->cancelled += sum->cancelled;
    total->simulated += sum->simulated;
    total->lanes += sum->lanes;
    total->busy_ns = sum_of(total->busy_ns, sum->busy_ns);
    total->charge_micro = sum_of(total->charge_micro, sum->charge_micro);
    total->bytes_in =
        total->bytes_in < 0 || sum->bytes_in < 0 ? -1 : sum_of(total->bytes_in, sum->bytes_in);
    total->bytes_out = sum_of(total->bytes_out, sum->bytes_out);
    total->held_bytes = sum_of(total->held_bytes, sum->held_bytes);
    total->copied_bytes = sum_of(total->copied_bytes, sum->copied_bytes);
    total->energy_uj = sum_of(total->energy_uj, sum->energy_uj);
    total->energy_known += sum->energy_known;
    total->energy_estimated += sum->energy_estimated;
    total->peak_memory_bytes = greater_of(total->peak_memory_bytes, sum->peak_memory_bytes);
    total->peak_power_mw = greater_of(total->peak_power_mw, sum->peak_power_mw);
    total->isolation = lesser_level(total->isolation, sum->isolation);
}

static void set_share(struct report_sum *sum, int64_t span_ns)
{
    int64_t possible_ns = product_of(span_ns, sum->lanes);
    int64_t share_ppm = -1;
    if (possible_ns > 0 && sum->simulated == 0 &&
        checked_muldiv_floor(sum->busy_ns, 1000000, possible_ns, &share_ppm)) {
        sum->share_ppm = share_ppm > 1000000 ? 1000000 : share_ppm;
    } else {
        sum->share_ppm = -1;
    }
}

/* `move_ns` is the shift of all devices, or NULL when each has its own. */
static bool sum_device(struct report *report, struct report_device *device, const int64_t *move_ns,
                       struct report_attempt *attempts, size_t count)
{
    device->sum =
        (struct report_sum){.bytes_in = count == 0 ? 0 : device->shared_bytes, .isolation = -1};
    device->moved_ns = 0;
    device->cut = 0;
    if (count == 0) {
        return true;
    }
    set_clock(report, device,
              move_ns != NULL ? *move_ns : move_within(room_of(report, attempts, count)), attempts,
              count);
    for (size_t i = 0; i < count; i++) {
        struct report_attempt *attempt = &attempts[i];
        add_attempt(&device->sum, attempt);
        bool is_first = report->first_ns < 0 || attempt->started_ns < report->first_ns;
        report->first_ns = is_first ? attempt->started_ns : report->first_ns;
        report->last_ns = attempt->end_ns > report->last_ns ? attempt->end_ns : report->last_ns;
    }
    return assign_lanes(device, attempts, count);
}

/* ---------------------------------------------------------------- medians, extremes and causes */

static int by_number(const void *a, const void *b)
{
    const int64_t *left = a;
    const int64_t *right = b;
    return *left < *right ? -1 : *left > *right;
}

static bool is_check(const struct report *report, const struct report_attempt *attempt)
{
    return report->checks > 0 && attempt->index >= report->subtasks - report->checks;
}

static bool is_accepted_work(const struct report *report, const struct report_attempt *attempt)
{
    return attempt->fate == REPORT_ACCEPTED && !is_check(report, attempt);
}

static void sum_checks(struct report *report)
{
    report->checks_accepted = 0;
    report->checks_ns = 0;
    for (size_t i = 0; i < report->attempt_count; i++) {
        const struct report_attempt *attempt = &report->attempts[i];
        if (is_check(report, attempt)) {
            report->checks_accepted += attempt->fate == REPORT_ACCEPTED;
            report->checks_ns = sum_of(report->checks_ns, attempt->busy_ns);
        }
    }
}

/* Returns the median of the accepted among `count` subtasks from `first` on, or -1 without any.
 * `times` has room for all attempts. */
static int64_t median_of(const struct report *report, uint32_t first, uint32_t count,
                         int64_t *times)
{
    size_t found = 0;
    for (size_t i = 0; i < report->attempt_count; i++) {
        const struct report_attempt *attempt = &report->attempts[i];
        if (is_accepted_work(report, attempt) && attempt->index >= first &&
            attempt->index - first < count) {
            times[found++] = attempt->busy_ns;
        }
    }
    qsort(times, found, sizeof *times, by_number);
    return found == 0 ? -1 : times[(found - 1) / 2];
}

static bool find_medians(struct report *report)
{
    int64_t *times = calloc(report->attempt_count + 1, sizeof *times);
    if (times == NULL) {
        return false;
    }
    report->median_ns = median_of(report, 0, UINT32_MAX, times);
    for (size_t i = 0; i < report->group_count; i++) {
        struct report_group *group = &report->groups[i];
        group->median_ns = median_of(report, group->first, group->count, times);
    }
    free(times);
    return true;
}

/* ---------------------------------------------------------------- predicted and measured */

static void add_predicted(struct report_predicted *sum, int64_t predicted_ns, int64_t measured_ns)
{
    sum->subtasks++;
    sum->predicted_ns = sum_of(sum->predicted_ns, predicted_ns);
    sum->measured_ns = sum_of(sum->measured_ns, measured_ns);
}

static void sum_predicted(struct report *report)
{
    const struct report_predicted none = {0, 0, 0};
    report->predicted = none;
    for (size_t d = 0; d < report->device_count; d++) {
        report->devices[d].predicted = none;
    }
    for (size_t g = 0; g < report->group_count; g++) {
        struct report_group *group = &report->groups[g];
        group->predicted = none;
        for (size_t i = 0; i < report->attempt_count && group->expect_ns > 0; i++) {
            const struct report_attempt *attempt = &report->attempts[i];
            if (!is_accepted_work(report, attempt) || attempt->index < group->first ||
                attempt->index - group->first >= group->count) {
                continue;
            }
            add_predicted(&group->predicted, group->expect_ns, attempt->busy_ns);
            add_predicted(&report->devices[attempt->device].predicted, group->expect_ns,
                          attempt->busy_ns);
            add_predicted(&report->predicted, group->expect_ns, attempt->busy_ns);
        }
    }
}

static void find_slowest(struct report *report)
{
    report->slowest_count = 0;
    for (size_t i = 0; i < report->attempt_count; i++) {
        if (!is_accepted_work(report, &report->attempts[i])) {
            continue;
        }
        size_t at = report->slowest_count;
        while (at > 0 &&
               report->attempts[report->slowest[at - 1]].busy_ns < report->attempts[i].busy_ns) {
            at--;
        }
        if (at == REPORT_SLOWEST) {
            continue;
        }
        size_t kept =
            report->slowest_count < REPORT_SLOWEST ? report->slowest_count++ : REPORT_SLOWEST - 1;
        memmove(&report->slowest[at + 1], &report->slowest[at],
                (kept - at) * sizeof *report->slowest);
        report->slowest[at] = i;
    }
}

static void count_cause(struct report *report, const char *text)
{
    for (size_t i = 0; i < report->cause_count; i++) {
        if (strcmp(report->causes[i].text, text) == 0) {
            report->causes[i].attempts++;
            return;
        }
    }
    if (report->cause_count == REPORT_CAUSES) {
        report->causes[REPORT_CAUSES - 1].text = "other causes";
        report->causes[REPORT_CAUSES - 1].attempts++;
        return;
    }
    report->causes[report->cause_count++] = (struct report_cause){.text = text, .attempts = 1};
}

static int by_frequency(const void *a, const void *b)
{
    const struct report_cause *left = a;
    const struct report_cause *right = b;
    if (left->attempts != right->attempts) {
        return left->attempts > right->attempts ? -1 : 1;
    }
    return strcmp(left->text, right->text);
}

static void count_causes(struct report *report)
{
    report->cause_count = 0;
    for (size_t i = 0; i < report->attempt_count; i++) {
        const struct report_attempt *attempt = &report->attempts[i];
        if (attempt->fate != REPORT_ACCEPTED) {
            count_cause(report, attempt->cause != NULL ? attempt->cause : "unknown");
        }
    }
    qsort(report->causes, report->cause_count, sizeof *report->causes, by_frequency);
}

static int64_t expected_span(const struct report *report)
{
    const struct report_sum *total = &report->total;
    uint32_t accepted = total->accepted - report->checks_accepted;
    if (report->expect_ns == 0 || total->lanes == 0 || accepted == 0) {
        return -1;
    }
    int64_t rounds = accepted / total->lanes + (accepted % total->lanes != 0);
    return product_of(rounds, report->expect_ns);
}

enum report_status report_make(struct report *report)
{
    if (!is_good(report)) {
        return REPORT_BAD_INPUT;
    }
    if (report->attempt_count > 0) {
        qsort(report->attempts, report->attempt_count, sizeof *report->attempts,
              by_device_and_start);
    }
    report->total = (struct report_sum){.isolation = -1};
    report->first_ns = -1;
    report->last_ns = -1;
    int64_t move_ns;
    const int64_t *common_ns = find_move(report, &move_ns) ? &move_ns : NULL;
    size_t at = 0;
    for (size_t d = 0; d < report->device_count; d++) {
        size_t end = at;
        while (end < report->attempt_count && report->attempts[end].device == d) {
            end++;
        }
        if (!sum_device(report, &report->devices[d], common_ns, report->attempts + at, end - at)) {
            return REPORT_NO_MEMORY;
        }
        add_sum(&report->total, &report->devices[d].sum);
        at = end;
    }
    assert(at == report->attempt_count);
    bool ran = report->first_ns >= 0;
    report->span_ns = ran ? report->last_ns - report->first_ns : 0;
    report->wait_ns = ran ? report->first_ns - report->submitted_ns : -1;
    for (size_t d = 0; d < report->device_count; d++) {
        set_share(&report->devices[d].sum, report->span_ns);
    }
    set_share(&report->total, report->span_ns);
    sum_checks(report);
    report->expect_span_ns = expected_span(report);
    find_slowest(report);
    count_causes(report);
    sum_predicted(report);
    return find_medians(report) ? REPORT_OK : REPORT_NO_MEMORY;
}

int64_t report_planned_uj(const struct report *report)
{
    int64_t sum_uj = report->planned_uj == NULL ? -1 : 0;
    for (uint32_t i = 0; sum_uj >= 0 && i < report->plan->row_count; i++) {
        const int64_t energy_uj = report->planned_uj[i];
        sum_uj = energy_uj < 0 || !checked_add(sum_uj, energy_uj, &sum_uj) ? -1 : sum_uj;
    }
    return sum_uj;
}

uint64_t report_attempts(const struct report_sum *sum)
{
    return (uint64_t)sum->accepted + sum->failed + sum->late + sum->cancelled;
}

int64_t report_measured_uj(const struct report *report)
{
    const struct report_sum *total = &report->total;
    const uint64_t attempts = report_attempts(total);
    return total->energy_known < attempts || attempts == 0 ? -1 : total->energy_uj;
}

void report_destroy(struct report **self)
{
    if (*self != NULL) {
        free((*self)->devices);
        free((*self)->attempts);
        free((*self)->planned_uj);
        plan_destroy(&(*self)->plan);
        free(*self);
        *self = NULL;
    }
}
