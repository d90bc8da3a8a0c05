#include "broker/gateway/verify.h"

#include "broker/core/outgoing.h"
#include "broker/core/translate.h"
#include "broker/fatal.h"
#include "protocol/codec.h"
#include "protocol/identity.h"
#include "protocol/reject.h"
#include "protocol/results.h"
#include "runtime/clock.h"
#include "runtime/process.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct verify_worker {
    struct verify_config config;
    pthread_t thread;
};

/* A new member is not in the accounts yet. The key in the body must be valid, own this connection,
 * and sign. */
static enum reject_code verify_join(const struct request *request, const struct id128 *cluster)
{
    struct key32 key = request->translation.command.join.account;
    struct key32 transport;
    if (!identity_key_valid(&key) || !identity_transport_of(&key, &transport) ||
        !key32_equal(&transport, &request->transport)) {
        return REJECT_BAD_SIGNATURE;
    }
    return identity_verify_envelope(&key, cluster, &request->envelope) ? REJECT_NONE
                                                                       : REJECT_BAD_SIGNATURE;
}

static enum reject_code verify_results(const struct request *request, const struct id128 *cluster)
{
    const struct translation *translation = &request->translation;
    bool good = key32_equal(&translation->results_provider, &request->key) &&
                results_verify(&request->key, cluster, &translation->results_root,
                               &translation->results_signature);
    return good ? REJECT_NONE : REJECT_BAD_SIGNATURE;
}

enum reject_code verify_request(struct request *request, const struct id128 *cluster,
                                struct codec_error *ret_error)
{
    enum reject_code code =
        translate_message(&request->envelope, cluster, &request->translation, ret_error);
    if (code != REJECT_NONE) {
        return code;
    }
    enum message_type type = (enum message_type)request->envelope.type;
    if (type == MESSAGE_JOIN) {
        return verify_join(request, cluster);
    }
    if (type == MESSAGE_RESULTS) {
        return verify_results(request, cluster);
    }
    if (message_must_be_signed(type) &&
        !identity_verify_envelope(&request->key, cluster, &request->envelope)) {
        return REJECT_BAD_SIGNATURE;
    }
    return REJECT_NONE;
}

static void charge(const struct verify_worker *worker, const struct request *request, int64_t steps)
{
    const struct budget_asker asker = {request->account, request->session, BUDGET_COMMANDS};
    if (worker->config.budget != NULL && steps != 0) {
        budget_charge(worker->config.budget, &asker, steps, clock_monotonic_ns());
    }
}

/* Looks for the outputs that each result names. The signature is checked before, so no other sender
 * causes look-ups. A sender that can store again is refused before anything is decided. */
static enum reject_code look_at_outputs(const struct verify_worker *worker, struct request *request,
                                        struct codec_error *ret_error)
{
    struct translation *translation = &request->translation;
    enum reject_code code = REJECT_NONE;
    uint32_t first = 0; /* subtask of the first such result */
    int64_t lost = 0;
    uint64_t looks = 0;
    for (uint32_t i = 0; i < translation->results_count && code == REJECT_NONE; i++) {
        switch (worker->config.look(worker->config.context, request->account,
                                    translation->results_wire[i], &looks)) {
        case OUTPUTS_STORED:
            break;
        case OUTPUTS_MISSING:
            translation->results[i].is_missing = true;
            break;
        case OUTPUTS_UNSTORED:
            translation->results[i].is_missing = true;
            first = lost == 0 ? translation->results[i].index : first;
            lost++;
            break;
        case OUTPUTS_UNREAD:
            code = REJECT_UNAVAILABLE;
            break;
        }
    }
    translation_drop_wire(translation);
    charge(worker, request, (int64_t)looks * BUDGET_LOOK_STEPS);
    if (code == REJECT_NONE && lost > 0 && translation->can_store_again) {
        *ret_error = (struct codec_error){.value = first, .limit = lost};
        (void)snprintf(ret_error->field, sizeof ret_error->field, "outputs");
        code = REJECT_OUTPUT_LOST;
    }
    return code;
}

static void handle(struct verify_worker *worker, struct request *request)
{
    struct codec_error error = {0};
    enum reject_code code = REJECT_NONE;
    if (request->kind == REQUEST_MESSAGE) {
        request->translation.keeps_wire = worker->config.look != NULL;
        code = verify_request(request, &worker->config.cluster, &error);
    }
    if (code == REJECT_NONE && request->translation.results_wire != NULL) {
        code = look_at_outputs(worker, request, &error);
    }
    if (code == REJECT_NONE) {
        if (!queue_push(worker->config.core, &request->link)) {
            request_destroy(&request); /* the broker stops; nothing was promised */
        }
        return;
    }
    if (request->envelope.type == MESSAGE_RESULTS) {
        charge(worker, request,
               budget_of_command(request->length) - budget_of_results(request->length));
    }
    struct outgoing *refusal =
        outgoing_refuse(request, code, error.field, error.value, error.limit);
    if (refusal == NULL) {
        fatal("out of memory");
    }
    if (!queue_push(worker->config.releases, &refusal->link)) {
        outgoing_destroy(&refusal);
    }
    request_destroy(&request);
}

static void *run(void *argument)
{
    struct verify_worker *worker = argument;
    process_name_thread("verify");
    while (!queue_finished(worker->config.inbound)) {
        struct queue_link *link = queue_pop(worker->config.inbound, QUEUE_FOREVER);
        if (link != NULL) {
            handle(worker, QUEUE_ELEMENT(link, struct request, link));
        }
    }
    return NULL;
}

struct verify_worker *verify_start(const struct verify_config *config)
{
    struct verify_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL) {
        fatal("a signature worker cannot start: out of memory");
    }
    worker->config = *config;
    if (pthread_create(&worker->thread, NULL, run, worker) != 0) {
        fatal("a signature worker cannot start: no thread");
    }
    return worker;
}

void verify_stop(struct verify_worker **self)
{
    struct verify_worker *worker = *self;
    if (worker != NULL) {
        queue_close(worker->config.inbound);
        pthread_join(worker->thread, NULL);
        free(worker);
        *self = NULL;
    }
}
