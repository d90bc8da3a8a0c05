#include "consumer/job/job_plan.h"

#include "consumer/client/client.h"

#include <stdlib.h>
#include <string.h>

void job_plan_destroy(struct job_plan **self)
{
    struct job_plan *plan = *self;
    if (plan != NULL) {
        offered_destroy(&plan->offered);
        deal_destroy(&plan->deal);
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
static uint32_t parts_of(const struct offered *offered, const char *label, size_t part_count)
{
    for (size_t i = 0; i < offered->count; i++) {
        if (strcmp(offered->places[i].label, label) == 0) {
            return offered->places[i].slots.parts;
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
    const struct offered_place *left = a;
    const struct offered_place *right = b;
    return left->slots.price_micro < right->slots.price_micro
               ? -1
               : left->slots.price_micro > right->slots.price_micro;
}

/* An open job runs on its leases. An open job without a lease is planned on the offers. Returns
 * false when memory is short. */
static bool take_leases(struct job_plan *plan, const struct bourse_job *job,
                        const struct bourse_job_row *row)
{
    struct offered_place *places = calloc(row->lease_count + 1, sizeof *places);
    size_t count = 0;
    if (places == NULL) {
        return false;
    }
    for (size_t i = 0; i < row->lease_count; i++) {
        const struct bourse_lease *lease = &row->leases[i];
        struct offered_place *place = &places[count];
        if (is_standing(lease)) {
            count++;
            place->slots =
                (struct deal_device){.slots = lease->slots, .price_micro = lease->price_micro};
            place->providers = 1;
            place->is_simulated = lease->simulated;
            (void)snprintf(place->label, sizeof place->label, "%s/%s", lease->provider,
                           lease->device);
            place->slots.parts = parts_of(plan->offered, place->label, job->part_count);
        }
    }
    if (count == 0) {
        free(places);
        return true;
    }
    qsort(places, count, sizeof *places, cheapest_first);
    free(plan->offered->places);
    plan->offered->places = places;
    plan->offered->count = count;
    plan->offered->is_busy = false;
    plan->is_on_leases = true;
    return true;
}

/* ---------------------------------------------------------------- times */

static bool knows_p90(const struct bourse_job *job)
{
    return job->learned.p90_ns > 0 && !job->learned.has_no_p90 &&
           job->learned.subtasks == job->subtasks - job->checks;
}

/* Returns false when memory is short. A job that fits nowhere has no deal. */
static bool find_times(struct job_plan *plan, const struct bourse_job *job)
{
    plan->single = plan->offered->count;
    plan->p90_ns = -1;
    enum deal_status status =
        offered_deal(job, plan->offered, 0, &plan->deal, &plan->single, &plan->single_ns);
    plan->is_too_large = status == DEAL_TOO_MANY;
    if (status == DEAL_OK && knows_p90(job)) {
        struct deal *slow = NULL;
        status = offered_deal(job, plan->offered, job->learned.p90_ns, &slow, NULL, NULL);
        plan->p90_ns = status == DEAL_OK ? slow->makespan_ns : -1;
        deal_destroy(&slow);
    }
    return status != DEAL_NO_MEMORY;
}

/* Fills everything but the places. */
static bool fill(struct bourse *bourse, const struct bourse_job *job,
                 const struct bourse_job_row *row, struct job_plan *plan,
                 struct bourse_error *error)
{
    const bool is_open = row != NULL && row->state == BOURSE_OPEN;
    if (!offered_name(bourse, job, plan->offered, error)) {
        return false;
    }
    if (is_open && !take_leases(plan, job, row)) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    if (plan->is_on_leases && !offered_find_instruments(bourse, job, plan->offered, error)) {
        return false;
    }
    if (!offered_learn(bourse, job, plan->offered, error)) {
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
    plan->offered = offered_create(job, quotes);
    const bool good = plan->offered != NULL ? fill(bourse, job, row, plan, error)
                                            : client_fail(error, BOURSE_LOCAL, "out of memory");
    if (!good) {
        job_plan_destroy(&plan);
        return false;
    }
    *ret_plan = plan;
    return true;
}
