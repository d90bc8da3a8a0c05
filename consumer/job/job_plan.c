#include "consumer/job/job_plan.h"

#include "consumer/client/client.h"

#include <stdlib.h>
#include <string.h>

void job_plan_destroy(struct job_plan **self)
{
    struct job_plan *plan = *self;
    if (plan != NULL) {
        supply_destroy(&plan->supply);
        list_schedule_destroy(&plan->schedule);
        client_manifest_free(&plan->manifest);
        free(plan);
        *self = NULL;
    }
}

const char *job_plan_name(const struct job_plan *plan, uint32_t index)
{
    const Bourse__V1__ManifestTask *task =
        index < plan->manifest->n_subtasks ? plan->manifest->subtasks[index]->task : NULL;
    return task == NULL ? NULL : task->name;
}

/* ---------------------------------------------------------------- leases */

/* Returns the parts that a lease's device fits, found by its name among the offers. A device that
 * is not on offer counts for all parts. */
static uint32_t parts_of(const struct supply *supply, const char *label, size_t part_count)
{
    for (size_t i = 0; i < supply->count; i++) {
        if (strcmp(supply->places[i].label, label) == 0) {
            return supply->places[i].slots.parts;
        }
    }
    return part_count >= 32 ? UINT32_MAX : (UINT32_C(1) << part_count) - 1;
}

static bool is_standing(const struct bourse_lease *lease)
{
    const bool stands = strcmp(lease->state, "active") == 0 || strcmp(lease->state, "suspect") == 0;
    return stands && !lease->taken && lease->slots > 0;
}

static int cheapest_first(const void *a, const void *b)
{
    const struct supply_place *left = a;
    const struct supply_place *right = b;
    return left->slots.price_micro < right->slots.price_micro
               ? -1
               : left->slots.price_micro > right->slots.price_micro;
}

/* An open job runs on its leases. An open job without a lease is planned on the offers. Returns
 * false when memory is short. */
static bool take_leases(struct job_plan *plan, const struct bourse_job *job,
                        const struct bourse_job_row *row)
{
    struct supply_place *places = calloc(row->lease_count + 1, sizeof *places);
    size_t count = 0;
    if (places == NULL) {
        return false;
    }
    for (size_t i = 0; i < row->lease_count; i++) {
        const struct bourse_lease *lease = &row->leases[i];
        struct supply_place *place = &places[count];
        if (is_standing(lease)) {
            count++;
            place->slots = (struct list_schedule_device){.slots = lease->slots,
                                                         .price_micro = lease->price_micro};
            place->providers = 1;
            place->is_simulated = lease->simulated;
            (void)snprintf(place->label, sizeof place->label, "%s/%s", lease->provider,
                           lease->device);
            place->slots.parts = parts_of(plan->supply, place->label, job->part_count);
        }
    }
    if (count == 0) {
        free(places);
        return true;
    }
    qsort(places, count, sizeof *places, cheapest_first);
    free(plan->supply->places);
    plan->supply->places = places;
    plan->supply->count = count;
    plan->supply->is_busy = false;
    plan->is_on_leases = true;
    return true;
}

/* ---------------------------------------------------------------- times */

static bool knows_p90(const struct bourse_job *job)
{
    return job->learned.p90_ns > 0 && !job->learned.has_no_p90 &&
           job->learned.subtasks == job->subtasks - job->checks;
}

/* Returns false when memory is short. A job that fits nowhere has no schedule. */
static bool find_times(struct job_plan *plan, const struct bourse_job *job)
{
    plan->single = plan->supply->count;
    plan->p90_ns = -1;
    enum list_schedule_status status =
        supply_schedule(job, plan->supply, 0, &plan->schedule, &plan->single, &plan->single_ns);
    plan->is_too_large = status == LIST_SCHEDULE_TOO_MANY;
    if (status == LIST_SCHEDULE_OK && knows_p90(job)) {
        struct list_schedule *slow = NULL;
        status = supply_schedule(job, plan->supply, job->learned.p90_ns, &slow, NULL, NULL);
        plan->p90_ns = status == LIST_SCHEDULE_OK ? slow->makespan_ns : -1;
        list_schedule_destroy(&slow);
    }
    return status != LIST_SCHEDULE_NO_MEMORY;
}

/* Fills everything but the places. */
static bool fill(struct bourse *bourse, const struct bourse_job *job,
                 const struct bourse_job_row *row, struct job_plan *plan,
                 struct bourse_error *error)
{
    const bool is_open = row != NULL && row->state == BOURSE_OPEN;
    if (!supply_name(bourse, job, plan->supply, error)) {
        return false;
    }
    if (is_open && !take_leases(plan, job, row)) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    if (plan->is_on_leases && !supply_find_instruments(bourse, job, plan->supply, error)) {
        return false;
    }
    if (!supply_learn(job, plan->supply, error)) {
        return false;
    }
    if (codec_decode_manifest(job->manifest, job->manifest_length, &plan->manifest, NULL) !=
        CODEC_OK) {
        return client_fail(error, BOURSE_LOCAL, "the job's manifest does not decode");
    }
    return find_times(plan, job) || client_fail(error, BOURSE_LOCAL, "out of memory");
}

bool job_plan_make(struct bourse *bourse, const struct bourse_job *job,
                   const struct bourse_quote *quotes, const struct bourse_job_row *row,
                   struct job_plan **ret_plan, struct bourse_error *error)
{
    struct job_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    plan->supply = supply_create(job, quotes);
    const bool good = plan->supply != NULL ? fill(bourse, job, row, plan, error)
                                           : client_fail(error, BOURSE_LOCAL, "out of memory");
    if (!good) {
        job_plan_destroy(&plan);
        return false;
    }
    *ret_plan = plan;
    return true;
}
