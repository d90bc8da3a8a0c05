#include "exchange/work/choice/lateness.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/policy.h"
#include "exchange/state/parts.h"
#include "exchange/state/steps.h"
#include "exchange/work/choice/ready_order.h"
#include "exchange/work/graph.h"
#include "exchange/work/runtime_stats.h"

#include <assert.h>

bool lateness_in_force(const struct exchange *exchange)
{
    return exchange->rules == 0 || exchange->rules >= RULES_OF_LATENESS;
}

/* A result that nobody has checked is accepted at the deadline, so checks are never late. The
 * queues of a checked job do not pass over single subtasks, so its subtasks are judged alike. */
static bool is_bound(const struct exchange *exchange, const struct part *part)
{
    const struct job *job = part->job;
    return lateness_in_force(exchange) && job->deadline_ns != 0 && !part_is_checks(part) &&
           !(job->is_checked && graph_tells_apart(job));
}

/* Returns the least time of a result; leases of old snapshots know only the mean. */
static int64_t quickest_of(const struct lease *lease)
{
    return lease->quickest_ns > 0 ? lease->quickest_ns : lease->mean_ns;
}

static bool was_on(const struct lease *lease, const struct device *device)
{
    return lease->provider == device->key.provider &&
           id128_equal(&lease->device_id, &device->key.device);
}

/* The device of an ended lease is looked up, because it may have new attributes or be gone. */
static bool was_on_like(const struct exchange *exchange, const struct lease *lease,
                        const struct device *device)
{
    const struct device_key key = {.device = lease->device_id, .provider = lease->provider};
    const struct device *there =
        lease->device != NULL ? lease->device : table_find(&exchange->devices, &key);
    return there != NULL && there->cell == device->cell;
}

static bool has_pace(struct online_pace pace)
{
    return pace.said_ns > 0 && pace.took_ns > 0;
}

static bool is_quicker(struct online_pace a, struct online_pace b)
{
    return !has_pace(b) || (int128)a.took_ns * b.said_ns < (int128)b.took_ns * a.said_ns;
}

static void add_results(const struct lease *lease, struct lateness *late)
{
    const int64_t quickest_ns = quickest_of(lease);
    const struct online_pace pace = runtime_stats_pace(lease);
    if (quickest_ns > 0 && (late->takes_ns == 0 || quickest_ns < late->takes_ns)) {
        late->takes_ns = quickest_ns;
    }
    if (has_pace(pace) && is_quicker(pace, late->pace)) {
        late->pace = pace;
    }
}

/* Adds what the job states, where no result on such a device tells. */
static void add_stated(const struct part *part, struct lateness *late)
{
    static const struct online_pace as_stated = {.said_ns = 1, .took_ns = 1};
    if (!part->job->is_expectation_stated) {
        return;
    }
    const struct runtime_stats usual = runtime_stats_of_part(part);
    if (!has_pace(late->pace)) {
        late->pace =
            has_pace(usual.pace) && is_quicker(usual.pace, as_stated) ? usual.pace : as_stated;
    }
    if (late->takes_ns == 0) {
        const bool is_quicker_elsewhere = usual.mean_ns > 0 && usual.mean_ns < part->expect_ns;
        late->takes_ns = is_quicker_elsewhere ? usual.mean_ns : part->expect_ns;
    }
}

static struct lateness lateness_from(const struct exchange *exchange, const struct part *part)
{
    const struct job *job = part->job;
    return (struct lateness){.exchange = exchange,
                             .is_bound = is_bound(exchange, part),
                             .is_apart = graph_tells_apart(job) && !job->is_checked,
                             .left_ns = job->deadline_ns - exchange->now_ns};
}

static bool tells(const struct lateness *late)
{
    return late->is_apart ? has_pace(late->pace) : late->takes_ns > 0;
}

/* Results of the device itself count before those of devices like it. */
struct lateness lateness_on(const struct exchange *exchange, const struct part *part,
                            const struct device *device)
{
    struct lateness here = lateness_from(exchange, part);
    struct lateness alike = here;
    const struct job *job = part->job;
    if (!here.is_bound) {
        return here;
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        steps_add(exchange, 1);
        if (lease->part != part || lease->mean_ns == 0) {
            continue;
        }
        if (was_on(lease, device)) {
            add_results(lease, &here);
        } else if (was_on_like(exchange, lease, device)) {
            add_results(lease, &alike);
        }
    }
    struct lateness late = tells(&here) ? here : alike;
    add_stated(part, &late);
    return late;
}

struct lateness lateness_of(const struct exchange *exchange, const struct lease *lease)
{
    struct lateness late = lateness_from(exchange, lease->part);
    if (!late.is_bound) {
        return late;
    }
    add_results(lease, &late);
    return tells(&late) || lease->device == NULL
               ? late
               : lateness_on(exchange, lease->part, lease->device);
}

struct lateness lateness_behind(struct lateness late, uint32_t in_flight)
{
    late.left_ns = in_flight == 0 ? late.left_ns : late.left_ns / (2 * ((int64_t)in_flight + 1));
    return late;
}

int64_t lateness_takes_ns(const struct lateness *late, const struct job *job, uint32_t index)
{
    return late->is_apart ? online_at_pace_ns(graph_said_ns(job, index), late->pace)
                          : late->takes_ns;
}

bool lateness_is_late(const struct lateness *late, const struct job *job, uint32_t index)
{
    return late->is_bound && lateness_takes_ns(late, job, index) > late->left_ns;
}

static const struct subtask *look_at(const struct job *job, uint32_t index)
{
    const struct page *page = job->pages[index / PAGE_SUBTASKS];
    return page == NULL ? NULL : &page->subtasks[index % PAGE_SUBTASKS];
}

/* Returns the least time of a waiting subtask of a part with expectations of their own. Of what
 * waits again, the search ends with the first that takes no more than `enough_ns`. */
static int64_t least_of_own(const struct lateness *late, const struct part *part, int64_t enough_ns)
{
    const struct job *job = part->job;
    assert(part->order != NULL);
    const uint32_t shortest = ready_order_shortest(part->order, late->exchange->steps);
    int64_t least_ns = shortest == NO_SUBTASK ? INT64_MAX : lateness_takes_ns(late, job, shortest);
    for (uint32_t index = part->retry_head; index != NO_SUBTASK && least_ns > enough_ns;) {
        const struct subtask *subtask = look_at(job, index);
        const int64_t takes_ns = lateness_takes_ns(late, job, index);
        steps_add(late->exchange, 1);
        least_ns = subtask->state == SUBTASK_WAITING && takes_ns < least_ns ? takes_ns : least_ns;
        index = subtask->next;
    }
    return least_ns;
}

int64_t lateness_least_ns(const struct lateness *late, const struct part *part)
{
    return late->is_apart ? least_of_own(late, part, 0) : late->takes_ns;
}

bool lateness_leaves_work(const struct lateness *late, const struct part *part)
{
    if (!late->is_bound) {
        return true;
    }
    const int64_t least_ns =
        late->is_apart ? least_of_own(late, part, late->left_ns) : late->takes_ns;
    return least_ns <= late->left_ns;
}

bool lateness_rules_out(const struct exchange *exchange, const struct part *part,
                        const struct device *device)
{
    const struct lateness late = lateness_on(exchange, part, device);
    return !lateness_leaves_work(&late, part);
}
