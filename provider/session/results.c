/* provider/session/results.c keeps encoded results until they are accepted, and sends them
 * in groups under one signature.
 *
 * A batch leaves when results_per_signature results wait, when nothing runs that could join them,
 * or BATCH_WAIT_NS after the first result. A signature, a message and the broker's commit cost as
 * much as many results. Yet a lone result should not wait long. The exchange keeps 20 ms of work in
 * each lane, so no lane runs dry meanwhile. */
#include "provider/session/agent_session_internal.h"

#include "base/checked.h"
#include "protocol/results.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_WAIT_NS (5 * NS_PER_MS)
#define RETRY_FIRST_NS (100 * NS_PER_MS)
#define RETRY_LONGEST_NS (5 * NS_PER_S)

static ProtobufCBinaryData view(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.len = length, .data = (uint8_t *)(uintptr_t)bytes};
}

static void become_ready(struct agent_session *session, int64_t now_ns, struct work *work)
{
    list_remove(&work->result_link);
    list_append(&session->ready, &work->result_link);
    if (session->work_in[WORK_READY] == 0) {
        session->ready_since_ns = now_ns;
    }
    work_move(session, work, WORK_READY);
}

static bool names_files(const Bourse__V1__Result *result)
{
    return result->n_outputs > 0 || result->standard_output != NULL ||
           result->standard_error != NULL || (result->saved != NULL && result->saved->n_files > 0);
}

enum agent_status results_owe(struct agent_session *session, int64_t now_ns, struct work *work,
                              const Bourse__V1__Result *facts)
{
    const struct agent_grant *grant = &work->lease->grant;
    const struct key32 *provider = identity_key(session->config.identity);
    Bourse__V1__Result result = *facts;
    result.cluster = view(session->config.cluster.bytes, sizeof session->config.cluster.bytes);
    result.job = view(grant->job.bytes, sizeof grant->job.bytes);
    result.index = work->index;
    result.attempt = work->attempt;
    result.lease = grant->lease;
    result.provider = view(provider->bytes, sizeof provider->bytes);
    result.device = view(grant->device.bytes, sizeof grant->device.bytes);
    result.manifest = view(grant->manifest.bytes, sizeof grant->manifest.bytes);
    result.has_simulated = work->lease->simulated;
    result.simulated = work->lease->simulated;

    size_t length = 0;
    uint8_t *bytes = codec_encode(&result.base, &length);
    if (bytes == NULL) {
        session->counts.out_of_memory = true;
        return AGENT_OUT_OF_MEMORY;
    }
    if (length > AGENT_RESULT_BYTES_MAX) {
        free(bytes);
        return AGENT_BAD;
    }
    free(work->result); /* result of an earlier try */
    work->result = bytes;
    work->result_length = length;
    work->names_files = names_files(facts);
    become_ready(session, now_ns, work);
    return AGENT_OK;
}

void results_owe_unstarted(struct agent_session *session, int64_t now_ns, struct work *work,
                           uint32_t outcome, const char *detail)
{
    Bourse__V1__Result facts = BOURSE__V1__RESULT__INIT;
    facts.outcome = outcome;
    facts.started_ms = dialogue_log_time_ms(session->dialogue, now_ns);
    facts.busy_ns = 0;
    facts.detail = (char *)(uintptr_t)detail;
    enum agent_status status = results_owe(session, now_ns, work, &facts);
    assert(status != AGENT_BAD); /* a short text fits */
    (void)status;                /* out of memory is in the counts */
}

/* Returns how many ready results go into the next batch. An `alone` result has a batch of its
 * own. */
static size_t batch_size(const struct agent_session *session)
{
    size_t count = 0;
    size_t bytes = 0;
    for (const struct list_link *link = session->ready.next; link != &session->ready;
         link = link->next) {
        const struct work *work = LIST_ELEMENT(link, struct work, result_link);
        bytes += work->result_length;
        if (count == session->config.results_per_signature ||
            (count > 0 && (work->alone || bytes > AGENT_BATCH_BYTES))) {
            break;
        }
        count++;
        if (work->alone) {
            break;
        }
    }
    return count;
}

static bool send_batch(struct agent_session *session, int64_t now_ns, size_t count)
{
    ProtobufCBinaryData results[AGENT_BATCH_MAX];
    struct hash32 leaves[AGENT_BATCH_MAX];
    const struct list_link *link = session->ready.next;
    for (size_t i = 0; i < count; i++, link = link->next) {
        const struct work *work = LIST_ELEMENT(link, struct work, result_link);
        results[i] = view(work->result, work->result_length);
        leaves[i] = results_leaf(work->result, work->result_length);
    }
    struct hash32 root = results_root(leaves, count);
    struct signature64 signature =
        results_sign(session->config.identity, &session->config.cluster, &root);
    Bourse__V1__Results body = BOURSE__V1__RESULTS__INIT;
    body.signature = view(signature.bytes, sizeof signature.bytes);
    body.has_can_store_again = session->config.can_store_again;
    body.can_store_again = session->config.can_store_again;
    body.n_results = count;
    body.results = results;
    struct id128 id = session_draw_id(session);
    enum dialogue_status status =
        dialogue_request(session->dialogue, now_ns, MESSAGE_RESULTS, &id, &body.base);
    if (status != DIALOGUE_OK) {
        session->counts.out_of_memory |= status == DIALOGUE_OUT_OF_MEMORY;
        return false; /* full: the results wait where they are */
    }
    for (size_t i = 0; i < count; i++) {
        struct work *work = LIST_ELEMENT(session->ready.next, struct work, result_link);
        list_remove(&work->result_link);
        list_append(&session->sent, &work->result_link);
        work_move(session, work, WORK_SENT);
        work->batch = id;
    }
    session->batches++;
    session->ready_since_ns = now_ns;
    return true;
}

static bool may_send(const struct agent_session *session, int64_t now_ns)
{
    return session->work_in[WORK_READY] > 0 && session->batches < AGENT_BATCHES_IN_FLIGHT &&
           now_ns >= session->retry_ns;
}

/* Returns true when no work is left whose result could join the batch. */
static bool nothing_runs(const struct agent_session *session)
{
    return session->work_in[WORK_QUEUED] + session->work_in[WORK_RUNNING] +
               session->work_in[WORK_LEFT] ==
           0;
}

static bool due(const struct agent_session *session, int64_t now_ns)
{
    return session->work_in[WORK_READY] >= session->config.results_per_signature ||
           session->draining || nothing_runs(session) ||
           now_ns - session->ready_since_ns >= BATCH_WAIT_NS;
}

void results_flush(struct agent_session *session, int64_t now_ns)
{
    if (!session_ready(session) || !due(session, now_ns)) {
        return;
    }
    while (may_send(session, now_ns)) {
        if (!send_batch(session, now_ns, batch_size(session))) {
            session->retry_ns = now_ns + RETRY_FIRST_NS;
        }
    }
}

int64_t results_next_deadline_ns(const struct agent_session *session)
{
    if (session->work_in[WORK_READY] == 0 || session->batches >= AGENT_BATCHES_IN_FLIGHT ||
        !session_ready(session)) {
        return INT64_MAX;
    }
    int64_t due_ns = session->ready_since_ns + BATCH_WAIT_NS;
    return due_ns > session->retry_ns ? due_ns : session->retry_ns;
}

/* Returns the next result in `sent`, from `link` on, that `batch` carries, or NULL. */
static struct work *carried(struct agent_session *session, struct list_link *link,
                            const struct id128 *batch)
{
    for (; link != &session->sent; link = link->next) {
        struct work *work = LIST_ELEMENT(link, struct work, result_link);
        if (id128_equal(&work->batch, batch)) {
            return work;
        }
    }
    return NULL;
}

void results_accepted(struct agent_session *session, const struct id128 *batch)
{
    struct list_link *link = session->sent.next;
    struct work *work;
    session->retries = 0;
    if (carried(session, link, batch) != NULL) {
        session->batches--;
    }
    while ((work = carried(session, link, batch)) != NULL) {
        link = work->result_link.next;
        session->counts.accepted++;
        work_done(session, work);
    }
}

bool results_may_pass_later(enum reject_code code)
{
    switch ((int)code) {
    case REJECT_ID_EXPIRED: /* a fresh id solves it */
    case REJECT_ID_TABLE_FULL:
    case REJECT_SESSION:
    case REJECT_RATE:
    case REJECT_BUSY:
    case REJECT_UNAVAILABLE:
    case REJECT_STORAGE_FULL:
        return true;
    default:
        return false;
    }
}

static void wait_before_retry(struct agent_session *session, int64_t now_ns)
{
    int64_t wait_ns = RETRY_FIRST_NS;
    for (uint32_t i = 0; i < session->retries && wait_ns < RETRY_LONGEST_NS; i++) {
        wait_ns *= 2;
    }
    session->retries++;
    session->retry_ns = now_ns + (wait_ns < RETRY_LONGEST_NS ? wait_ns : RETRY_LONGEST_NS);
}

/* Queues the result as it was, without any file. */
static enum agent_status owe_without_files(struct agent_session *session, int64_t now_ns,
                                           struct work *work, const char *detail)
{
    Bourse__V1__Result *was = NULL;
    switch (codec_decode_result(work->result, work->result_length, &was, NULL)) {
    case CODEC_OK:
        break;
    case CODEC_OUT_OF_MEMORY:
        session->counts.out_of_memory = true;
        return AGENT_OUT_OF_MEMORY;
    case CODEC_TOO_LARGE:
    case CODEC_UNKNOWN_TYPE:
    case CODEC_MALFORMED:
        return AGENT_BAD; /* cannot happen: the result was encoded here */
    }
    work_act(session, AGENT_SETTLED, work);
    Bourse__V1__Result facts = *was;
    facts.n_outputs = 0;
    facts.standard_output = NULL;
    facts.standard_error = NULL;
    facts.saved = NULL;
    facts.detail = (char *)(uintptr_t)detail;
    if (facts.outcome == OUTCOME_OK) {
        facts.outcome = OUTCOME_INPUT_MISSING;
        facts.has_lacks_factor = facts.lacks_factor =
            work->dispatch != NULL && work->dispatch->has_seed;
        facts.has_exit_code = false;
    }
    enum agent_status status = results_owe(session, now_ns, work, &facts);
    codec_result_free(&was);
    return status;
}

/* A result that was refused alone is not decided yet. */
static void store_again(struct agent_session *session, int64_t now_ns, struct work *work)
{
    list_remove(&work->result_link);
    work_move(session, work, WORK_LEFT);
    if (work->store_tries < AGENT_STORE_TRIES) {
        work->store_tries++;
        session_note(session, "the broker lost what the result of subtask %u names: stored again",
                     work->index);
        work_act(session, AGENT_STORE, work);
        return;
    }
    (void)owe_without_files(session, now_ns, work, "the broker lost what was left, each time");
}

/* Notes once what a refused message means. */
static void note_refusal(struct agent_session *session, const struct dialogue_event *event,
                         bool is_of_many)
{
    if (event->reject == REJECT_OUTPUT_NOT_STORED) {
        session_note(session, "%s: %s: %s",
                     event->limit > 1 ? "some results count for nothing"
                                      : "a result counts for nothing",
                     reject_name(event->reject), event->text);
    } else if (is_of_many) {
        session_note(session, "a group of results was refused, each is sent alone: %s",
                     event->text);
    } else if (event->reject != REJECT_OUTPUT_LOST) {
        session_note(session, "a result was refused: %s", event->text);
    }
}

/* Counts the results of a message in which all are decided. The broker says how many count for
 * nothing. */
static void count_decided(struct agent_session *session, uint64_t results, int64_t lacking)
{
    uint64_t refused = lacking > 1 ? (uint64_t)lacking : 1;
    refused = refused < results ? refused : results;
    session->counts.refused += refused;
    session->counts.accepted += results - refused;
}

void results_rejected(struct agent_session *session, int64_t now_ns,
                      const struct dialogue_event *event)
{
    const enum reject_code code = event->reject;
    struct list_link *link = session->sent.next;
    struct work *work = carried(session, link, &event->id);
    if (work == NULL) {
        return;
    }
    session->batches--;
    const bool is_decided = code == REJECT_OUTPUT_NOT_STORED;
    const bool passes = results_may_pass_later(code);
    const bool many = carried(session, work->result_link.next, &event->id) != NULL;
    uint64_t decided = 0;
    if (passes) {
        wait_before_retry(session, now_ns);
    } else {
        note_refusal(session, event, many);
    }
    while ((work = carried(session, link, &event->id)) != NULL) {
        link = work->result_link.next;
        if (passes) {
            become_ready(session, now_ns, work);
        } else if (is_decided) {
            decided++;
            work_done(session, work);
        } else if (many) {
            work->alone = true; /* one bad result does not take its neighbours along */
            become_ready(session, now_ns, work);
        } else if (code == REJECT_OUTPUT_LOST && work->names_files) {
            store_again(session, now_ns, work);
        } else {
            session->counts.refused++;
            work_done(session, work);
        }
    }
    if (is_decided) {
        count_decided(session, decided, event->limit);
    }
    results_flush(session, now_ns);
}

enum agent_status results_stored(struct agent_session *session, int64_t now_ns, struct work *work,
                                 bool is_stored, const char *detail)
{
    if (!is_stored) {
        return owe_without_files(session, now_ns, work, detail);
    }
    become_ready(session, now_ns, work);
    return AGENT_OK;
}
