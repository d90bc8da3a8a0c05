/* This file lists the measured times of the work of a job. */
#include "base/cleanup.h"
#include "consumer/client/client.h"
#include "consumer/market/history.h"
#include "consumer/market/measured_load.h"
#include "protocol/codec.h"
#include "protocol/work.h"

#include <stdlib.h>
#include <string.h>

static void set_place(const struct measured_place *place, struct bourse_measured *measured)
{
    client_copy(measured->device_class, sizeof measured->device_class, place->device_class);
    client_copy(measured->account, sizeof measured->account, place->account);
    client_copy(measured->device, sizeof measured->device, place->device);
}

/* Lists the works of a manifest. A part without a list of subtasks has alike ones. */
static void list_works(const Bourse__V1__Manifest *manifest, struct measured_works *works)
{
    const uint32_t stride = 1 + (uint32_t)(manifest->n_subtasks / HISTORY_LOOKED_AT);
    uint32_t first = 0;
    for (size_t i = 0;
         manifest->n_subtasks == 0 && manifest->terms != NULL && i < manifest->terms->n_parts;
         i++) {
        const struct work work = work_of(manifest, first);
        measured_works_add(works, &work.name, first);
        first += manifest->terms->parts[i]->subtasks;
    }
    for (uint32_t i = 0; i < manifest->n_subtasks || works->count == 0; i += stride) {
        const struct work work = work_of(manifest, i);
        measured_works_add(works, &work.name, i);
    }
}

static bool tell_paces(const struct measured_times *times, bourse_measured_visitor *visitor,
                       void *context)
{
    bool goes_on = true;
    for (size_t i = 0; goes_on && i < measured_times_pace_count(times); i++) {
        const struct measured_pace *pace = measured_times_pace(times, i);
        struct bourse_measured measured = {.pace = pace->pace};
        set_place(&pace->place, &measured);
        goes_on = visitor(context, &measured);
    }
    return goes_on;
}

static bool tell_row(const Bourse__V1__Manifest *manifest, const struct measured_works *works,
                     const struct measured_row *row, bourse_measured_visitor *visitor,
                     void *context)
{
    const uint32_t index = works->first[row->work];
    const Bourse__V1__ManifestTask *task = subtask_task(manifest, index);
    struct bourse_measured measured = {
        .index = index,
        .bytes = work_bytes(row->size),
        .samples = row->samples,
        .outliers = row->outliers,
        .median_ns = row->median_ns,
        .p90_ns = row->p90_ns,
        .at_ms = row->at_ms,
    };
    client_copy(measured.task, sizeof measured.task,
                task != NULL && task->name != NULL ? task->name : "");
    set_place(&row->place, &measured);
    return visitor(context, &measured);
}

static bool tell_all(struct bourse *bourse, const Bourse__V1__Manifest *manifest,
                     bourse_measured_visitor *visitor, void *context, struct bourse_error *error)
{
    struct measured_works *works = calloc(1, sizeof *works);
    if (works == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    CLEANUP(measured_times_destroy) struct measured_times *times = NULL;
    list_works(manifest, works);
    const bool good = measured_load(bourse, works, &times, error);
    bool goes_on = good && tell_paces(times, visitor, context);
    for (size_t i = 0; goes_on && i < measured_times_count(times); i++) {
        goes_on = tell_row(manifest, works, measured_times_row(times, i), visitor, context);
    }
    free(works);
    return good;
}

bool bourse_history(struct bourse *bourse, const char *id, bourse_measured_visitor *visitor,
                    void *context, struct bourse_error *ret_error)
{
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    return client_manifest(bourse, id, &manifest, ret_error) &&
           tell_all(bourse, manifest, visitor, context, ret_error);
}

bool bourse_history_of(struct bourse *bourse, const struct bourse_job *job,
                       bourse_measured_visitor *visitor, void *context,
                       struct bourse_error *ret_error)
{
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    if (codec_decode_manifest(job->manifest, job->manifest_length, &manifest, NULL) != CODEC_OK) {
        return client_fail(ret_error, BOURSE_LOCAL, "the job's manifest does not decode");
    }
    return tell_all(bourse, manifest, visitor, context, ret_error);
}
