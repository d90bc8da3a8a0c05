/* This file writes the plan of a job into its manifest, where `report` reads the plan. */
#include "consumer/job/manifest.h"

#include "base/cleanup.h"
#include "consumer/client/client.h"
#include "consumer/job/supply.h"
#include "protocol/limits.h"

#include <assert.h>
#include <stdlib.h>

/* A job that fits nowhere has no plan. */
static void write_plan(Bourse__V1__ManifestTerms *terms, const struct bourse_quote *quote)
{
    const bool is_planned = quote->makespan_ns > 0 && quote->expected_micro >= 0;
    terms->has_planned_ns = terms->has_planned_micro = is_planned;
    terms->planned_ns = is_planned ? quote->makespan_ns : 0;
    terms->planned_micro = is_planned ? quote->expected_micro : 0;
    terms->has_planned_slots = is_planned && quote->slots_now > 0;
    terms->planned_slots = terms->has_planned_slots ? quote->slots_now : 0;
    terms->has_chosen_slots = is_planned && quote->chosen_slots > 0;
    terms->chosen_slots = terms->has_chosen_slots ? quote->chosen_slots : 0;
}

/* The terms point to these values while they are encoded. */
struct planned {
    Bourse__V1__ManifestPlace *items;
    Bourse__V1__ManifestPlace **pointers;
    Bourse__V1__ManifestClass classes[LIST_SCHEDULE_CLASSES];
    Bourse__V1__ManifestClass *class_pointers[LIST_SCHEDULE_CLASSES];
    Bourse__V1__ManifestTime *times; /* times of all classes */
    Bourse__V1__ManifestTime **time_pointers;
};
static_assert((int)LIST_SCHEDULE_CLASSES <= (int)LIMIT_CLASSES, "a manifest keeps all of them");

static void planned_fini(struct planned *planned)
{
    free(planned->items);
    free(planned->pointers);
    free(planned->times);
    free(planned->time_pointers);
}

/* Writes the time of each unit of the job on each class, when places have unlike speeds. */
static bool write_classes(const struct bourse_job *job, const struct supply *supply,
                          Bourse__V1__ManifestTerms *terms, struct planned *planned)
{
    const size_t units = history_units(job);
    const size_t count = supply->class_count * units;
    if (terms->n_planned == 0 || supply->figures == NULL) {
        return true;
    }
    planned->times = calloc(count, sizeof *planned->times);
    planned->time_pointers = calloc(count, sizeof(void *));
    if (planned->times == NULL || planned->time_pointers == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        bourse__v1__manifest_time__init(&planned->times[i]);
        planned->times[i].takes_ns = supply->figures[i].takes_ns;
        planned->time_pointers[i] = &planned->times[i];
    }
    for (size_t i = 0; i < supply->class_count; i++) {
        bourse__v1__manifest_class__init(&planned->classes[i]);
        planned->classes[i].n_times = units;
        planned->classes[i].times = &planned->time_pointers[i * units];
        planned->class_pointers[i] = &planned->classes[i];
    }
    terms->n_classes = supply->class_count;
    terms->classes = planned->class_pointers;
    return true;
}

static bool write_places(Bourse__V1__ManifestTerms *terms, const struct supply *supply,
                         struct planned *planned)
{
    planned->items = calloc(supply->count + 1, sizeof *planned->items);
    planned->pointers = calloc(supply->count + 1, sizeof(void *));
    if (planned->items == NULL || planned->pointers == NULL) {
        return false;
    }
    for (size_t i = 0; i < supply->count; i++) {
        bourse__v1__manifest_place__init(&planned->items[i]);
        planned->items[i].slots = supply->places[i].slots.slots;
        planned->items[i].parts = supply->places[i].slots.parts;
        planned->items[i].has_slot_uw = supply->places[i].slot_uw > 0;
        planned->items[i].slot_uw = (uint64_t)supply->places[i].slot_uw;
        planned->items[i].has_device_slots = supply->places[i].widest > 0;
        planned->items[i].device_slots = supply->places[i].widest;
        planned->items[i].has_of_class = supply->places[i].slots.of_class > 0;
        planned->items[i].of_class = supply->places[i].slots.of_class;
        planned->pointers[i] = &planned->items[i];
    }
    terms->n_planned = terms->has_planned_ns ? supply->count : 0;
    terms->planned = planned->pointers;
    return true;
}

/* Writes the time of each subtask that differs from its part's: tasks with their own times, and
 * work on inputs of unlike size. */
static void write_subtasks(const struct bourse_job *job, Bourse__V1__Manifest *manifest)
{
    uint32_t index = 0;
    for (size_t i = 0; i < job->part_count; i++) {
        for (uint32_t k = 0; k < job->parts[i].subtasks; k++, index++) {
            const int64_t takes_ns = supply_takes_ns(job, i, index);
            const bool is_own = takes_ns != job->parts[i].expect_ns;
            if (index >= manifest->n_subtasks) {
                return; /* all are alike */
            }
            manifest->subtasks[index]->has_expect_ns = is_own;
            manifest->subtasks[index]->expect_ns = is_own ? takes_ns : 0;
        }
    }
}

bool manifest_expect(struct bourse_job *job, const struct bourse_quote *quote,
                     const struct supply *supply, struct bourse_error *error)
{
    struct planned planned = {.items = NULL};
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    if (job->learned.is_written) {
        return true;
    }
    if (codec_decode_manifest(job->manifest, job->manifest_length, &manifest, NULL) != CODEC_OK) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    Bourse__V1__ManifestTerms *terms = manifest->terms;
    for (size_t i = 0; terms != NULL && i < terms->n_parts && i < job->part_count; i++) {
        terms->parts[i]->expect_ns = job->parts[i].expect_ns;
    }
    write_subtasks(job, manifest);
    if (terms != NULL) {
        write_plan(terms, quote);
    }
    uint8_t *before = job->manifest;
    const size_t length = job->manifest_length;
    const bool has_room = terms == NULL || (write_places(terms, supply, &planned) &&
                                            write_classes(job, supply, terms, &planned));
    const bool good = has_room ? manifest_encode(job, manifest, error)
                               : client_fail(error, BOURSE_LOCAL, "out of memory");
    if (terms != NULL) { /* the manifest does not own these */
        terms->n_planned = 0;
        terms->planned = NULL;
        terms->n_classes = 0;
        terms->classes = NULL;
    }
    planned_fini(&planned);
    if (good) {
        free(before);
        job->learned.is_written = true;
    } else {
        job->manifest = before;
        job->manifest_length = length;
    }
    return good;
}
