#include "consumer/job/job_plan.h"

#include "consumer/client/client.h"
#include "protocol/subtask.h"

#include <stdlib.h>
#include <string.h>

void job_plan_destroy(struct job_plan **self)
{
    struct job_plan *plan = *self;
    if (plan != NULL) {
        supply_destroy(&plan->supply);
        plan_destroy(&plan->plan);
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

uint64_t job_plan_number(const struct job_plan *plan, uint32_t index)
{
    return subtask_number(plan->manifest, plan->is_array, index);
}

/* ---------------------------------------------------------------- times */

/* A planning holds all memory that the input of one plan needs. */
struct planning {
    struct list_schedule_part parts[ORDER_PARTS_MAX];
    int64_t *takes_ns, *p90_ns; /* by class and subtask */
    struct list_schedule_device *devices;
    struct figure *slot_w;
    size_t device_count;
};

static void planning_fini(struct planning *planning)
{
    free(planning->takes_ns);
    free(planning->p90_ns);
    free(planning->devices);
    free(planning->slot_w);
}

/* `all_take_ns` is 0, or the time where a p90 is unknown. */
static int64_t *times_of(const struct bourse_job *job, const struct supply *supply,
                         int64_t all_take_ns)
{
    const uint32_t classes = supply->figures == NULL ? 1 : supply->class_count;
    int64_t *takes_ns = calloc(classes * job->subtasks, sizeof *takes_ns);
    size_t at = 0;
    for (uint32_t c = 0; takes_ns != NULL && c < classes; c++) {
        uint32_t index = 0;
        for (size_t i = 0; i < job->part_count; i++) {
            for (uint32_t k = 0; k < job->parts[i].subtasks; k++, index++) {
                const struct history_figure figure = supply_figure(job, supply, c, i, index);
                takes_ns[at++] = all_take_ns <= 0     ? figure.takes_ns
                                 : figure.p90_ns >= 0 ? figure.p90_ns
                                                      : all_take_ns;
            }
        }
    }
    return takes_ns;
}

static bool knows_p90(const struct bourse_job *job)
{
    return job->learned.p90_ns > 0 && !job->learned.has_no_p90 &&
           job->learned.subtasks == job->subtasks - job->checks;
}

/* Returns false when memory is short. */
static bool planning_fill(const struct bourse_job *job, const struct supply *supply, bool has_p90,
                          struct planning *planning)
{
    planning->takes_ns = times_of(job, supply, 0);
    planning->p90_ns = has_p90 ? times_of(job, supply, job->learned.p90_ns) : NULL;
    planning->devices = calloc(planning->device_count, sizeof *planning->devices);
    planning->slot_w = calloc(planning->device_count, sizeof *planning->slot_w);
    if (planning->takes_ns == NULL || (has_p90 && planning->p90_ns == NULL) ||
        planning->devices == NULL || planning->slot_w == NULL) {
        return false;
    }
    for (size_t i = 0; i < job->part_count; i++) {
        const struct order_part *part = &job->parts[i];
        planning->parts[i] =
            (struct list_schedule_part){part->subtasks, part->slots, part->at_most};
    }
    for (size_t i = 0; i < planning->device_count; i++) {
        planning->devices[i] = supply->places[i].slots;
        planning->slot_w[i] = supply_power(&supply->places[i]);
    }
    return true;
}

static enum plan_status make(const struct bourse_job *job, const struct supply *supply,
                             const struct planning *planning, bool finds_single,
                             struct plan **ret_plan)
{
    const bool has_graph = job->graph.count == job->subtasks;
    const struct plan_parts parts = {
        .schedule = {.parts = planning->parts,
                     .part_count = job->part_count,
                     .takes_ns = planning->takes_ns,
                     .class_count = supply->class_count,
                     .rank = has_graph ? job->graph.rank : NULL,
                     .after_count = has_graph ? job->graph.after_count : NULL,
                     .after = job->graph.after,
                     .devices = planning->devices,
                     .device_count = planning->device_count},
        .p90_ns = planning->p90_ns,
        .slot_w = planning->slot_w,
        .finds_single = finds_single};
    struct plan_fault fault;
    return plan_make(&(struct plan_work){.parts = &parts}, ret_plan, &fault);
}

enum plan_status job_plan_on(const struct bourse_job *job, const struct supply *supply,
                             unsigned figures, struct plan **ret_plan)
{
    const bool has_p90 = (figures & JOB_PLAN_P90) != 0 && knows_p90(job);
    struct planning planning = {.device_count = supply->count < LIST_SCHEDULE_DEVICES
                                                    ? supply->count
                                                    : LIST_SCHEDULE_DEVICES};
    if (job->subtasks > LIST_SCHEDULE_SUBTASKS) {
        return PLAN_TOO_MANY;
    }
    if (supply->count == 0) {
        return PLAN_NOWHERE;
    }
    const enum plan_status status =
        planning_fill(job, supply, has_p90, &planning)
            ? make(job, supply, &planning, (figures & JOB_PLAN_SINGLE) != 0, ret_plan)
            : PLAN_NO_MEMORY;
    planning_fini(&planning);
    return status;
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

/* ---------------------------------------------------------------- the whole */

/* Returns false when memory is short. A job that fits nowhere has no plan. */
static bool find_times(struct job_plan *plan, const struct bourse_job *job)
{
    const enum plan_status status =
        job_plan_on(job, plan->supply, JOB_PLAN_SINGLE | JOB_PLAN_P90, &plan->plan);
    plan->is_too_large = status == PLAN_TOO_MANY;
    return status != PLAN_NO_MEMORY;
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
    plan->is_array = subtask_is_array(plan->manifest);
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
