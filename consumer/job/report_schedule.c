/* This file lays a submitted job out on the offers that its manifest lists, as its quote did. */
#include "consumer/job/report.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "consumer/job/order.h"
#include "consumer/job/tasks.h"

#include <math.h>
#include <stdlib.h>

/* A planning holds all memory of one plan. */
struct planning {
    struct list_schedule_part parts[ORDER_PARTS_MAX];
    int64_t *expect_ns; /* by subtask, as the job expects */
    int64_t *takes_ns;  /* by class and subtask */
    struct list_schedule_device *devices;
    uint32_t *single_slots; /* by device */
    struct order_graph graph;
};

static void planning_fini(struct planning *planning)
{
    free(planning->expect_ns);
    free(planning->takes_ns);
    free(planning->devices);
    free(planning->single_slots);
    order_graph_fini(&planning->graph);
}

static size_t count_from(const Bourse__V1__Manifest *manifest)
{
    size_t count = 0;
    for (size_t i = 0; i < manifest->n_subtasks; i++) {
        const Bourse__V1__ManifestTask *task = manifest->subtasks[i]->task;
        count += task != NULL ? task->n_from : 0;
    }
    return count;
}

static size_t classes_of(const Bourse__V1__ManifestTerms *terms)
{
    return terms->n_classes == 0 ? 1 : terms->n_classes;
}

static bool planning_alloc(struct planning *planning, const Bourse__V1__Manifest *manifest)
{
    const size_t count = manifest->subtask_count;
    struct order_graph *graph = &planning->graph;
    planning->expect_ns = calloc(count, sizeof *planning->expect_ns);
    planning->takes_ns = calloc(classes_of(manifest->terms) * count, sizeof *planning->takes_ns);
    planning->devices = calloc(manifest->terms->n_planned, sizeof *planning->devices);
    planning->single_slots = calloc(manifest->terms->n_planned, sizeof *planning->single_slots);
    graph->count = (uint32_t)count;
    graph->rank = calloc(count, sizeof *graph->rank);
    graph->after_count = calloc(count, sizeof *graph->after_count);
    graph->after = calloc(count_from(manifest) + 1, sizeof *graph->after);
    return planning->expect_ns != NULL && planning->takes_ns != NULL && planning->devices != NULL &&
           planning->single_slots != NULL && graph->rank != NULL && graph->after_count != NULL &&
           graph->after != NULL;
}

/* Adds one subtask of a part. */
static void plan_subtask(struct planning *planning, const Bourse__V1__Manifest *manifest,
                         const Bourse__V1__ManifestPart *part, uint32_t index)
{
    struct order_graph *graph = &planning->graph;
    const Bourse__V1__ManifestSubtask *subtask =
        index < manifest->n_subtasks ? manifest->subtasks[index] : NULL;
    const Bourse__V1__ManifestTask *task = subtask != NULL ? subtask->task : NULL;
    const bool has_own = subtask != NULL && subtask->has_expect_ns;
    planning->expect_ns[index] = has_own ? subtask->expect_ns : part->expect_ns;
    uint32_t *after = graph->after + graph->edge_count;
    for (size_t k = 0; task != NULL && k < task->n_from; k++) {
        after[k] = task->from[k]->task;
    }
    graph->after_count[index] = order_unique(after, task == NULL ? 0 : task->n_from);
    graph->edge_count += graph->after_count[index];
}

/* Returns false when the manifest contradicts itself. */
static bool plan_parts(struct planning *planning, const Bourse__V1__Manifest *manifest)
{
    const Bourse__V1__ManifestTerms *terms = manifest->terms;
    uint32_t index = 0;
    for (size_t i = 0; i < terms->n_parts; i++) {
        const Bourse__V1__ManifestPart *part = terms->parts[i];
        if (part->subtasks > manifest->subtask_count - index) {
            return false;
        }
        /* A choice is made for jobs of one part, and the order asks for no more slots. */
        const uint32_t at_most = terms->has_chosen_slots ? terms->chosen_slots : part->at_most;
        planning->parts[i] = (struct list_schedule_part){part->subtasks, part->slots, at_most};
        for (uint32_t k = 0; k < part->subtasks; k++) {
            plan_subtask(planning, manifest, part, index++);
        }
    }
    return index == manifest->subtask_count;
}

/* Sets the time of each subtask on each class, or the job's own time without classes. Returns false
 * when the manifest contradicts itself. */
static bool plan_classes(struct planning *planning, const Bourse__V1__Manifest *manifest)
{
    const Bourse__V1__ManifestTerms *terms = manifest->terms;
    const uint32_t count = manifest->subtask_count;
    for (size_t c = 0; c < classes_of(terms); c++) {
        const Bourse__V1__ManifestClass *of = c < terms->n_classes ? terms->classes[c] : NULL;
        if (of != NULL && of->n_times != terms->n_parts && of->n_times != count) {
            return false;
        }
        uint32_t index = 0;
        for (size_t part = 0; part < terms->n_parts; part++) {
            for (uint32_t k = 0; k < terms->parts[part]->subtasks; k++, index++) {
                planning->takes_ns[c * count + index] = of == NULL ? planning->expect_ns[index]
                                                        : of->n_times == count
                                                            ? of->times[index]->takes_ns
                                                            : of->times[part]->takes_ns;
            }
        }
    }
    return true;
}

static int64_t energy_uj(const Bourse__V1__ManifestPlace *place, int64_t slot_ns)
{
    const double energy_j = (double)place->slot_uw * (double)slot_ns / NS_PER_S / 1e6;
    return place->has_slot_uw && energy_j < 1e12 ? llround(energy_j * 1e6) : -1;
}

/* Computes the energy of the planned subtasks at full load. Returns false when memory is short. */
static bool read_energy(const struct planning *planning, const Bourse__V1__ManifestTerms *terms,
                        struct report *report)
{
    const struct plan *plan = report->plan;
    bool is_any = false;
    for (size_t i = 0; i < terms->n_planned; i++) {
        is_any = is_any || terms->planned[i]->has_slot_uw;
    }
    if (!is_any) {
        return true;
    }
    report->planned_uj = calloc(plan->row_count, sizeof *report->planned_uj);
    if (report->planned_uj == NULL) {
        return false;
    }
    uint32_t index = 0;
    for (size_t part = 0; part < terms->n_parts; part++) {
        for (uint32_t k = 0; k < planning->parts[part].subtasks; k++, index++) {
            const struct plan_row *row = &plan->rows[index];
            report->planned_uj[index] = energy_uj(terms->planned[row->device],
                                                  plan_row_ns(row) * planning->parts[part].slots);
        }
    }
    return true;
}

/* The best single device is one device of a place, not all devices at the price. */
static void plan_places(const Bourse__V1__ManifestTerms *terms, struct planning *planning,
                        struct report *report)
{
    for (size_t i = 0; i < terms->n_planned; i++) {
        const Bourse__V1__ManifestPlace *place = terms->planned[i];
        planning->devices[i] = (struct list_schedule_device){
            .slots = place->slots, .parts = place->parts, .of_class = place->of_class};
        planning->single_slots[i] = place->has_device_slots ? place->device_slots : 0;
        report->single_is_unknown = report->single_is_unknown || !place->has_device_slots;
    }
}

bool report_read_schedule(const Bourse__V1__Manifest *manifest, struct report *report)
{
    const Bourse__V1__ManifestTerms *terms = manifest == NULL ? NULL : manifest->terms;
    CLEANUP(planning_fini) struct planning planning = {.takes_ns = NULL};
    if (report->planned_ns == 0 || terms == NULL || terms->n_planned == 0 ||
        terms->n_parts > ORDER_PARTS_MAX || manifest->subtask_count > LIST_SCHEDULE_SUBTASKS ||
        !tasks_well_formed(manifest)) {
        return true;
    }
    if (!planning_alloc(&planning, manifest)) {
        return false;
    }
    if (!plan_parts(&planning, manifest) || !plan_classes(&planning, manifest)) {
        return true;
    }
    plan_places(terms, &planning, report);
    order_rank(&planning.graph, planning.expect_ns);
    const struct plan_parts parts = {.schedule = {.parts = planning.parts,
                                                  .part_count = terms->n_parts,
                                                  .takes_ns = planning.takes_ns,
                                                  .class_count = (uint32_t)terms->n_classes,
                                                  .rank = planning.graph.rank,
                                                  .after_count = planning.graph.after_count,
                                                  .after = planning.graph.after,
                                                  .devices = planning.devices,
                                                  .device_count = terms->n_planned},
                                     .single_slots = planning.single_slots,
                                     .finds_single = true};
    struct plan_fault fault;
    const enum plan_status status =
        plan_make(&(struct plan_work){.parts = &parts}, &report->plan, &fault);
    return status == PLAN_OK ? read_energy(&planning, terms, report) : status != PLAN_NO_MEMORY;
}
