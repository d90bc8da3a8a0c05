/* This file holds the calls of libbourse about what the account stores on the broker. */
#include "consumer/client/client.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <assert.h>
#include <string.h>
#include <time.h>

static struct bourse_stored_job job_from_wire(const Bourse__V1__StorageRow *row)
{
    struct bourse_stored_job job = {
        .blobs = row->blobs,
        .bytes = row->bytes,
        .ended_ms = row->has_ended_ms ? row->ended_ms : 0,
        .expires_ms = row->has_expires_ms ? row->expires_ms : 0,
        .forgotten_ms = row->has_forgotten_ms ? row->forgotten_ms : 0,
        .expired = row->has_expired && row->expired,
    };
    text_hex(row->job.data, row->job.len, job.id);
    client_copy(job.name, sizeof job.name, row->name);
    return job;
}

bool bourse_storage(struct bourse *bourse, bourse_stored_visitor *visitor, void *context,
                    struct bourse_storage *ret_storage, struct bourse_error *ret_error)
{
    uint64_t after = visitor == NULL ? INT64_MAX : 0; /* INT64_MAX: after all jobs, so none */
    for (bool more = true; more;) {
        Bourse__V1__StorageRequest body = BOURSE__V1__STORAGE_REQUEST__INIT;
        body.has_after = after > 0;
        body.after = after;
        CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
        if (!client_call(bourse, MESSAGE_STORAGE_REQUEST, &body.base, MESSAGE_STORAGE_REPLY,
                         &answer, ret_error)) {
            return false;
        }
        const Bourse__V1__StorageReply *reply = (const void *)answer;
        *ret_storage = (struct bourse_storage){.used_bytes = (uint64_t)reply->used_bytes,
                                               .quota_bytes = (uint64_t)reply->quota_bytes,
                                               .grace_ms = reply->grace_ms};
        more = reply->has_next && reply->next > after;
        for (size_t i = 0; i < reply->n_rows; i++) {
            const struct bourse_stored_job job = job_from_wire(reply->rows[i]);
            if (!visitor(context, &job)) {
                return true;
            }
        }
        after = reply->next;
    }
    return true;
}

bool bourse_stored(struct bourse *bourse, const char *id, struct bourse_stored_job *ret_job,
                   struct bourse_error *ret_error)
{
    struct id128 job;
    if (!client_id_read(id, &job, ret_error)) {
        return false;
    }
    Bourse__V1__StorageRequest body = BOURSE__V1__STORAGE_REQUEST__INIT;
    body.has_job = 1;
    body.job = client_bytes(job.bytes, sizeof job.bytes);
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    if (!client_call(bourse, MESSAGE_STORAGE_REQUEST, &body.base, MESSAGE_STORAGE_REPLY, &answer,
                     ret_error)) {
        return false;
    }
    const Bourse__V1__StorageReply *reply = (const void *)answer;
    if (reply->n_rows != 1 || memcmp(reply->rows[0]->job.data, job.bytes, sizeof job.bytes) != 0) {
        return client_fail(ret_error, BOURSE_UNREACHABLE,
                           "the broker's answer is not about job %.8s", id);
    }
    *ret_job = job_from_wire(reply->rows[0]);
    return true;
}

bool bourse_forget(struct bourse *bourse, const char *const *ids, size_t count, bool dry_run,
                   struct bourse_forgotten *ret_forgotten, struct bourse_storage *ret_storage,
                   struct bourse_error *ret_error)
{
    struct id128 jobs[BOURSE_FORGET_MAX];
    ProtobufCBinaryData views[BOURSE_FORGET_MAX];
    static_assert((int)BOURSE_FORGET_MAX == (int)LIMIT_FORGET_JOBS, "one request has as many");
    if (count > BOURSE_FORGET_MAX) {
        return client_fail(ret_error, BOURSE_USAGE, "%zu jobs; one call forgets at most %d", count,
                           BOURSE_FORGET_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (!client_id_read(ids[i], &jobs[i], ret_error)) {
            return false;
        }
        views[i] = client_bytes(jobs[i].bytes, sizeof jobs[i].bytes);
    }
    Bourse__V1__ForgetRequest body = BOURSE__V1__FORGET_REQUEST__INIT;
    body.n_jobs = count;
    body.jobs = views;
    body.has_dry_run = dry_run;
    body.dry_run = dry_run;
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    if (!client_call(bourse, MESSAGE_FORGET_REQUEST, &body.base, MESSAGE_FORGET_REPLY, &answer,
                     ret_error)) {
        if (ret_error != NULL && strcmp(ret_error->field, "forgotten_bytes") == 0) {
            client_copy(ret_error->text, sizeof ret_error->text,
                        "what was forgotten lately takes the room of a whole quota until the "
                        "market's grace is over; forget the rest then. `bourse storage` shows what "
                        "is stored");
        }
        return false;
    }
    const Bourse__V1__ForgetReply *reply = (const void *)answer;
    if (reply->n_rows != count) {
        return client_fail(ret_error, BOURSE_UNREACHABLE,
                           "the broker's answer is about %zu jobs, not %zu", reply->n_rows, count);
    }
    for (size_t i = 0; i < count; i++) {
        const Bourse__V1__ForgetRow *row = reply->rows[i];
        ret_forgotten[i] = (struct bourse_forgotten){
            .outcome = (int)row->state, .blobs = row->blobs, .bytes = row->bytes};
        text_hex(row->job.data, row->job.len, ret_forgotten[i].id);
    }
    *ret_storage = (struct bourse_storage){.used_bytes = (uint64_t)reply->used_bytes,
                                           .quota_bytes = (uint64_t)reply->quota_bytes,
                                           .grace_ms = reply->grace_ms};
    return true;
}

bool bourse_say_forgotten(struct bourse *bourse, const char *id, struct bourse_error *error)
{
    struct bourse_stored_job job;
    struct tm parts;
    char day[sizeof "2026-11-20"] = "";
    if (error == NULL || error->reject != (int)REJECT_NOT_FOUND ||
        !bourse_stored(bourse, id, &job, NULL) || job.forgotten_ms == 0) {
        return false;
    }
    const time_t seconds = (time_t)(job.forgotten_ms / 1000);
    if (localtime_r(&seconds, &parts) != NULL) {
        (void)strftime(day, sizeof day, "%Y-%m-%d", &parts);
    }
    (void)snprintf(
        error->text, sizeof error->text,
        job.expired ? "the files of job %.8s are gone: they expired on %s. Its receipts are "
                      "still there; submit the job again for new outputs, with a longer `retain:`"
                    : "the files of job %.8s are gone: `bourse forget` freed them on %s. Its "
                      "receipts are still there; submit the job again for new outputs",
        id, day);
    return false;
}
