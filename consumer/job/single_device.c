#include "consumer/job/single_device.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "consumer/client/client.h"
#include "consumer/job/job_plan.h"
#include "consumer/job/order.h"
#include "consumer/job/submit.h"
#include "formats/requirement.h"

#include <string.h>

enum { SOONER_PERCENT = 5 };

/* Returns true when the job comes from its file, which can state further needs. */
static bool may_need_more(const struct bourse_job *job)
{
    bool may = !job->continues && job->checks == 0;
    for (size_t i = 0; i < job->file->task_count; i++) {
        may = may && job->file->tasks[i].needs == NULL; /* a task's needs replace the job's */
    }
    return may;
}

/* Returns the least to hold at the start: a lease for one subtask of the widest part. */
static int64_t lease_micro(const struct bourse_job *job, int64_t price_micro)
{
    int64_t most_micro = 0;
    for (size_t i = 0; i < job->part_count; i++) {
        const int64_t micro =
            order_price_micro(price_micro, job->parts[i].slots, job->parts[i].term_ms);
        most_micro = micro > most_micro ? micro : most_micro;
    }
    return most_micro;
}

/* Fills cost and least budget of the place; `ret_fits` says that cap and budget allow it. Returns
 * false when memory is short. */
static bool find_cost(const struct bourse_job *job, const struct supply *supply, size_t single,
                      struct bourse_alone *alone, bool *ret_fits)
{
    const struct supply_place *place = &supply->places[single];
    struct supply one = *supply;
    CLEANUP(plan_destroy) struct plan *plan = NULL;
    one.places = &supply->places[single];
    one.count = 1;
    const enum plan_status status = job_plan_on(job, &one, 0, &plan);
    const int64_t cap_micro = job->file->cap_micro;
    if (status != PLAN_OK) {
        *ret_fits = false;
        return status != PLAN_NO_MEMORY;
    }
    const int64_t held_micro = lease_micro(job, place->slots.price_micro);
    alone->makespan_ns = plan_makespan_ns(plan);
    alone->cost_micro = plan->total.price_micro;
    alone->least_micro = held_micro > alone->cost_micro ? held_micro : alone->cost_micro;
    *ret_fits = limit_allows(cap_micro, place->slots.price_micro) &&
                (job->file->budget_micro <= 0 || alone->least_micro <= job->file->budget_micro);
    return true;
}

static bool count_device(void *context, const struct bourse_device *device)
{
    (void)device;
    return ++*(size_t *)context < 2;
}

/* Finds out whether one fitting device alone has the label. */
static bool is_only(struct bourse *bourse, const struct bourse_job *job, const char *label,
                    bool *ret_only, struct bourse_error *error)
{
    struct requirement needs = job->parts[0].needs;
    size_t count = 0;
    *ret_only = false;
    if (!order_add_need(&needs, "label", label)) {
        return true;
    }
    CLEANUP(codec_requirement_free)
    Bourse__V1__Requirement *wire = codec_requirement_to_wire(&needs);
    if (wire == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    const bool told = client_devices(bourse, wire, count_device, &count, error);
    *ret_only = count == 1;
    return told;
}

/* Writes the needs for the job's file. Returns false when they have no room. */
static bool write_needs(const struct job_file *file, const char *label, struct bourse_alone *alone)
{
    struct requirement needs = file->needs;
    return order_add_need(&needs, "label", label) &&
           requirement_text(&needs, alone->needs, sizeof alone->needs);
}

bool single_device_find(struct bourse *bourse, const struct bourse_job *job,
                        const struct supply *supply, const struct plan *plan,
                        struct bourse_alone *ret_alone, struct bourse_error *error)
{
    const size_t single = plan->single;
    const struct figure *single_s = &plan->forms[PLAN_SINGLE].makespan_s;
    struct bourse_alone alone = {.place = ""};
    bool fits = false;
    bool is_told = false;
    if (single >= supply->count || supply->is_busy || !may_need_more(job) ||
        plan_ns(single_s->value) > plan_makespan_ns(plan) / 100 * (100 - SOONER_PERCENT)) {
        return true;
    }
    const char *label = strchr(supply->places[single].label, '/');
    if (label == NULL) {
        return true; /* the device is unknown */
    }
    if (!find_cost(job, supply, single, &alone, &fits)) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    label++;
    if (!fits || !write_needs(job->file, label, &alone)) {
        return true;
    }
    if (!is_only(bourse, job, label, &is_told, error)) {
        return false;
    }
    client_copy(alone.place, sizeof alone.place, supply->places[single].label);
    *ret_alone = is_told ? alone : *ret_alone;
    return true;
}
