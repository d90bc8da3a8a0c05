#include "broker/blob/blobs.h"

#include "base/text.h"
#include "broker/blob/blob_check.h"
#include "broker/blob/blob_slices.h"
#include "broker/blob/blob_ticket.h"
#include "broker/blob/needed.h"
#include "broker/blob/turns.h"
#include "broker/blob/upload_stream.h"
#include "broker/core/outgoing.h"
#include "broker/fatal.h"
#include "broker/gateway/allowance.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "runtime/blob/blob_client.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/log.h"
#include "runtime/process.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum {
    BATCH_MESSAGES = 128,
    RECEIVED_AT_ONCE = 256, /* messages, before those that wait are answered */
    BATCH_BYTES = 16 << 20,
    EXPIRE_MS = 1000,
    UNREAD_TOLD =
        BLOB_LOST_MAX, /* blobs that could not be read, of which the log was told lately */
};

static const int64_t UNREAD_QUIET_NS = 60 * NS_PER_S;

struct answer { /* to a put, held back until the commit */
    struct route route;
    struct key32 client;
    uint64_t session;
    struct outgoing *outgoing;
};

struct claim { /* a put whose bytes come through a stream: answered when they are here */
    bool is_made;
    struct route route;
    struct key32 client;
    uint64_t session;
    struct id128 id;
};

struct blobs {
    struct blobs_config config;
    pthread_t thread;
    bool in_batch;
    bool is_swept; /* no file without a row is looked for any more */
    struct answer answers[BATCH_MESSAGES];
    size_t answer_count;
    uint8_t *buffer;                         /* LIMIT_BLOB_MESSAGE_BYTES: what is sent */
    struct allowance_list allowances, reads; /* requests; KiB read */
    struct turns turns;                      /* of messages: struct asked */
    struct paused {
        int descriptor;
        uint32_t account;
        int64_t until_ns;
    } paused[BLOBS_PAUSED_MAX]; /* connections that nothing is read from */
    size_t paused_count;
    int64_t next_resume_ns;
    uint64_t steps; /* that the message being answered has cost so far */
    struct blob_tickets tickets;
    struct upload_streams *streams;
    struct blob_checks *checks;
    struct claim claims[UPLOAD_STREAMS_MAX]; /* by the stream's place */
    struct outgoing **names;                 /* notes of results; owned */
    size_t name_count, name_capacity, named_hashes;
    struct unread {
        struct hash32 hash;
        int64_t until_ns; /* the log has it until then */
    } unread[UNREAD_TOLD];
    struct keeper {
        uint32_t account;
        int64_t until_ns;
    } keepers[BLOBS_KEEPERS_MAX];
    struct lender { /* a provider that may have files of a job that it serves */
        uint32_t provider;
        struct id128 job;
        int64_t until_ns; /* 0: free */
    } lenders[BLOBS_KEEPERS_MAX];
};

struct asked { /* one message with its sender, from when it comes until it is answered */
    struct turn turn;
    struct router_kept *kept; /* owns the message's bytes; NULL while it is the router's */
    struct router_message message;
    bool is_local;
    struct envelope envelope;
    const struct directory_account *account; /* looked up anew when it is its turn */
    ProtobufCMessage *body;                  /* NULL until it is its turn; owned */
    ProtobufCBinaryData *missing;            /* of a BlobHave, so far; owned */
    size_t missing_count, looked_up;
    size_t stored_bytes; /* of a BlobPut's data, so far */
    int64_t behind_ns;   /* a BlobGet stays behind since then; 0: it does not */
};

static void asked_free(struct asked *asked)
{
    codec_free(&asked->body);
    router_kept_free(&asked->kept);
    free(asked->missing);
    free(asked);
}

/* ---------------------------------------------------------------- sending */

static struct envelope head_of(const struct blobs *blobs, enum message_type type, uint64_t session,
                               const struct id128 *id)
{
    return (struct envelope){.version = ENVELOPE_VERSION,
                             .type = (uint16_t)type,
                             .session = session,
                             .id = *id,
                             .created_ms = logtime_now(blobs->config.clock) / NS_PER_MS};
}

static void send(struct blobs *blobs, const struct route *route, const struct key32 *client,
                 uint64_t session, const struct outgoing *outgoing)
{
    struct envelope envelope = head_of(blobs, outgoing->type, session, &outgoing->id);
    envelope.body = outgoing->body;
    envelope.body_length = (uint32_t)outgoing->length;
    size_t size = envelope_size(&envelope);
    assert(size <= LIMIT_BLOB_MESSAGE_BYTES); /* a chunk and its head */
    envelope_write(&envelope, blobs->buffer, LIMIT_BLOB_MESSAGE_BYTES);
    /* Whoever is gone or does not read asks again. */
    (void)router_send(blobs->config.router, route, client, blobs->buffer, size);
}

static struct outgoing *checked(struct outgoing *outgoing)
{
    if (outgoing == NULL) {
        fatal("out of memory");
    }
    return outgoing;
}

static void reply(struct blobs *blobs, const struct asked *asked, struct outgoing *outgoing)
{
    outgoing = checked(outgoing);
    outgoing->id = asked->envelope.id;
    send(blobs, &asked->message.route, &asked->message.client, asked->envelope.session, outgoing);
    outgoing_destroy(&outgoing);
}

static void note_refused(struct blobs *blobs, const struct asked *asked, enum reject_code code)
{
    if (asked->account != NULL) {
        refusals_note(blobs->config.refusals, asked->account->number, code,
                      (enum message_type)asked->envelope.type);
    }
}

static void refuse(struct blobs *blobs, const struct asked *asked, enum reject_code code,
                   const char *field, int64_t value, int64_t limit)
{
    note_refused(blobs, asked, code);
    reply(blobs, asked, outgoing_reject(0, &asked->envelope.id, code, field, value, limit));
}

/* ---------------------------------------------------------------- the batch */

static void end_batch(struct blobs *blobs)
{
    if (!blobs->in_batch) {
        return;
    }
    enum blob_status status = blob_store_commit(blobs->config.store);
    if (status == BLOB_FAILED) {
        fatal("blobs could not be committed: %s; stopped", blob_store_error(blobs->config.store));
    }
    for (size_t i = 0; i < blobs->answer_count; i++) {
        struct answer *answer = &blobs->answers[i];
        if (status != BLOB_OK) {
            struct id128 id = answer->outgoing->id;
            outgoing_destroy(&answer->outgoing);
            answer->outgoing = checked(outgoing_reject(0, &id, REJECT_STORAGE_FULL, "", 0, 0));
        }
        send(blobs, &answer->route, &answer->client, answer->session, answer->outgoing);
        outgoing_destroy(&answer->outgoing);
    }
    blobs->answer_count = 0;
    blobs->in_batch = false;
}

static void begin_batch(struct blobs *blobs)
{
    if (!blobs->in_batch && blob_store_begin(blobs->config.store) != BLOB_OK) {
        fatal("blobs.db cannot be written: %s", blob_store_error(blobs->config.store));
    }
    blobs->in_batch = true;
}

static void hold_answer(struct blobs *blobs, const struct claim *to, struct outgoing *outgoing)
{
    assert(blobs->answer_count < BATCH_MESSAGES);
    outgoing = checked(outgoing);
    outgoing->id = to->id;
    blobs->answers[blobs->answer_count++] = (struct answer){
        .route = to->route, .client = to->client, .session = to->session, .outgoing = outgoing};
}

static struct claim claim_of(const struct asked *asked)
{
    return (struct claim){.is_made = true,
                          .route = asked->message.route,
                          .client = asked->message.client,
                          .session = asked->envelope.session,
                          .id = asked->envelope.id};
}

static void hold_back(struct blobs *blobs, const struct asked *asked, struct outgoing *outgoing)
{
    const struct claim to = claim_of(asked);
    hold_answer(blobs, &to, outgoing);
}

static bool others_ask(const struct blobs *blobs, uint32_t account, int64_t now_ns)
{
    return turns_are_contended(&blobs->turns, account, now_ns - BLOBS_OTHERS_MS * NS_PER_MS);
}

/* ---------------------------------------------------------------- rights */

/* Finds the owner of the blobs in question: the sender, or the owner of a job that the sender
 * serves. */
static bool owner_of(struct blobs *blobs, const struct asked *asked, bool has_job,
                     ProtobufCBinaryData job, uint32_t *ret_owner,
                     struct blob_access_job **ret_served)
{
    *ret_served = NULL;
    *ret_owner = asked->account->number;
    if (!has_job) {
        return true;
    }
    struct id128 id = codec_id(job);
    *ret_served =
        blob_access_find(blobs->config.access, asked->account->number, &id, clock_monotonic_ns());
    if (*ret_served != NULL) {
        *ret_owner = (*ret_served)->owner;
    }
    return *ret_served != NULL;
}

/* The bytes of a blob of at most LIMIT_MANIFEST_BYTES; a larger one has none. The caller frees. */
static enum blob_status read_whole(struct blobs *blobs, const struct hash32 *hash,
                                   uint8_t **ret_bytes, size_t *ret_length)
{
    struct blob_store *store = blobs->config.store;
    uint64_t size = 0;
    *ret_length = 0;
    enum blob_status status = blob_store_get(store, hash, 0, 0, NULL, ret_length, &size);
    if (status != BLOB_OK || size > LIMIT_MANIFEST_BYTES) {
        return status;
    }
    *ret_bytes = malloc((size_t)size + 1);
    if (*ret_bytes == NULL) {
        fatal("out of memory");
    }
    return blob_store_get(store, hash, 0, (size_t)size, *ret_bytes, ret_length, &size);
}

/* Returns how many bytes a subtask with these limits may leave. */
static uint64_t bytes_of(const struct blobs *blobs, const Bourse__V1__ManifestLimits *limits)
{
    int64_t bytes = blobs->config.size_bytes;
    if (limits != NULL && limits->has_output_bytes && limits->output_bytes > 0) {
        bytes = limits->output_bytes;
    } else if (limits != NULL && limits->has_disk_bytes && limits->disk_bytes > 0) {
        bytes = limits->disk_bytes;
    }
    return (uint64_t)(bytes < blobs->config.quota_bytes ? bytes : blobs->config.quota_bytes);
}

/* The largest of its subtasks counts for all. Without a manifest it has the outputs that any result
 * may have. */
static void set_bounds(const struct blobs *blobs, struct blob_access_job *job,
                       const Bourse__V1__Manifest *manifest)
{
    uint64_t bytes = bytes_of(blobs, manifest == NULL ? NULL : manifest->limits);
    uint64_t outputs = manifest == NULL ? LIMIT_OUTPUTS : manifest->n_outputs;
    uint64_t count = manifest == NULL ? 1 : manifest->subtask_count;
    bool has_checkpoints = manifest == NULL || manifest->checkpoint != NULL;
    for (size_t i = 0; manifest != NULL && i < manifest->n_subtasks; i++) {
        const Bourse__V1__ManifestTask *task = manifest->subtasks[i]->task;
        if (task != NULL) {
            const uint64_t task_bytes =
                task->limits == NULL ? bytes : bytes_of(blobs, task->limits);
            bytes = task_bytes > bytes ? task_bytes : bytes;
            outputs = task->n_outputs > outputs ? task->n_outputs : outputs;
            has_checkpoints = has_checkpoints || task->checkpoint != NULL;
        }
    }
    count = count < BLOBS_UNNAMED_SUBTASKS ? count : BLOBS_UNNAMED_SUBTASKS;
    count *= BLOBS_UNNAMED_TRIES;
    const uint64_t most = (uint64_t)blobs->config.quota_bytes;
    bytes += BLOBS_STREAMS_BYTES;
    job->bytes_most = bytes < most / count ? bytes * count : most;
    job->blobs_most = count * (outputs + 2 + (has_checkpoints ? LIMIT_CHECKPOINT_FILES : 0));
}

/* Reads the job's manifest once. One that does not parse names nothing; one that is not there yet,
 * or cannot be read now, is asked for again next time. */
static enum blob_status read_manifest(struct blobs *blobs, struct blob_access_job *job)
{
    size_t length = 0;
    struct hash32 *hashes = NULL;
    size_t count = 0;
    uint8_t *bytes = NULL;
    Bourse__V1__Manifest *manifest = NULL;
    enum blob_status status = blob_store_owns(blobs->config.store, job->owner, &job->manifest);
    if (status == BLOB_OK) {
        status = read_whole(blobs, &job->manifest, &bytes, &length);
    }
    if (status == BLOB_OK && bytes != NULL) {
        switch (codec_decode_manifest(bytes, length, &manifest, NULL)) {
        case CODEC_OK:
            hashes = needed_hashes(manifest, &count);
            if (hashes == NULL) {
                fatal("out of memory");
            }
            set_bounds(blobs, job, manifest);
            codec_manifest_free(&manifest);
            break;
        case CODEC_OUT_OF_MEMORY:
            fatal("out of memory");
        case CODEC_TOO_LARGE:
        case CODEC_UNKNOWN_TYPE:
        case CODEC_MALFORMED:
            break;
        }
    }
    free(bytes);
    if (status == BLOB_OK) {
        blob_access_job_set_hashes(job, hashes, count);
    }
    return status;
}

/* OK, NOT_FOUND, or that nobody knows now. */
static enum blob_status may_read(struct blobs *blobs, const struct asked *asked, uint32_t owner,
                                 struct blob_access_job *served, const struct hash32 *hash)
{
    enum blob_status status = BLOB_OK;
    if (served != NULL && !served->is_read) {
        status = read_manifest(blobs, served);
    }
    if (status == BLOB_OK && served != NULL && !blob_access_job_names(served, hash) &&
        !blob_access_gave(blobs->config.access, asked->account->number, served, hash)) {
        status = BLOB_NOT_FOUND;
    }
    /* A manifest may name anything; only what its author owns comes out. */
    return status == BLOB_OK ? blob_store_may_read(blobs->config.store, owner, hash) : status;
}

/* Returns the bounds of what the sender may store for the job, or NULL for the sender's own. */
static const struct blob_lease *lease_of(struct blobs *blobs, const struct asked *asked,
                                         struct blob_access_job *served, struct blob_lease *lease)
{
    if (served == NULL) {
        return NULL;
    }
    if (!served->is_read && served->bytes_most == 0) {
        set_bounds(blobs, served, NULL); /* for a manifest that cannot be read now */
        (void)read_manifest(blobs, served);
    }
    *lease = (struct blob_lease){.holder = {.provider = asked->account->number, .job = served->job},
                                 .bytes_most = served->bytes_most,
                                 .count_most = served->blobs_most};
    return lease;
}

/* Its own place, or that which is over first. */
static struct unread *unread_of(struct blobs *blobs, const struct hash32 *hash)
{
    struct unread *first = &blobs->unread[0];
    for (size_t i = 0; i < UNREAD_TOLD; i++) {
        struct unread *told = &blobs->unread[i];
        if (hash32_equal(&told->hash, hash)) {
            return told;
        }
        first = told->until_ns < first->until_ns ? told : first;
    }
    return first;
}

/* A peer that needs a blob asks again and again; the log names the blob once in a while. */
static void log_unread(struct blobs *blobs, const struct hash32 *hash)
{
    struct unread *told = unread_of(blobs, hash);
    int64_t now_ns = clock_monotonic_ns();
    if (now_ns >= told->until_ns || !hash32_equal(&told->hash, hash)) {
        *told = (struct unread){.hash = *hash, .until_ns = now_ns + UNREAD_QUIET_NS};
        log_error("a blob could not be read: %s", blob_store_error(blobs->config.store));
    }
}

/* Its own place, or that which is over first. */
static struct keeper *keeper_of(struct blobs *blobs, uint32_t account)
{
    struct keeper *first = &blobs->keepers[0];
    for (size_t i = 0; i < BLOBS_KEEPERS_MAX; i++) {
        struct keeper *keeper = &blobs->keepers[i];
        if (keeper->account == account && keeper->until_ns > 0) {
            return keeper;
        }
        first = keeper->until_ns < first->until_ns ? keeper : first;
    }
    return first;
}

/* Its own place, or that which is over first. */
static struct lender *lender_of(struct blobs *blobs, uint32_t provider, const struct id128 *job)
{
    struct lender *first = &blobs->lenders[0];
    for (size_t i = 0; i < BLOBS_KEEPERS_MAX; i++) {
        struct lender *lender = &blobs->lenders[i];
        if (lender->provider == provider && lender->until_ns > 0 &&
            id128_equal(&lender->job, job)) {
            return lender;
        }
        first = lender->until_ns < first->until_ns ? lender : first;
    }
    return first;
}

/* Returns true when the sender may read the blob of a job that it serves. */
static bool is_of_job(const struct blobs *blobs, uint32_t provider,
                      const struct blob_access_job *served, const struct hash32 *hash)
{
    return blob_access_job_names(served, hash) ||
           blob_access_gave(blobs->config.access, provider, served, hash);
}

/* Returns true when another provider serves a job with this blob, and asked lately. */
static bool has_lender(struct blobs *blobs, uint32_t sender, const struct hash32 *hash,
                       int64_t now_ns)
{
    for (size_t i = 0; i < BLOBS_KEEPERS_MAX; i++) {
        const struct lender *lender = &blobs->lenders[i];
        if (lender->until_ns <= now_ns || lender->provider == sender) {
            continue;
        }
        const struct blob_access_job *served =
            blob_access_find(blobs->config.access, lender->provider, &lender->job, now_ns);
        if (served != NULL && is_of_job(blobs, lender->provider, served, hash)) {
            return true;
        }
    }
    return false;
}

/* Returns true when somebody else has just heard of the loss and may send the blob again: a client
 * of the owner, or a provider. */
static bool may_come_back(struct blobs *blobs, uint32_t owner, uint32_t sender,
                          const struct hash32 *hash)
{
    const int64_t now_ns = clock_monotonic_ns();
    const struct keeper *keeper = keeper_of(blobs, owner);
    const int64_t since_ns = unread_of(blobs, hash)->until_ns - UNREAD_QUIET_NS;
    return now_ns - since_ns < BLOBS_KEEPER_TIME_S * NS_PER_S &&
           ((keeper->account == owner && keeper->until_ns > now_ns) ||
            has_lender(blobs, sender, hash, now_ns));
}

/* A blob that was not read may be there. A lost one is not found, unless its owner may send it. */
static void refuse_unread(struct blobs *blobs, const struct asked *asked, enum blob_status status,
                          uint32_t owner, const struct hash32 *hash)
{
    log_unread(blobs, hash);
    end_batch(blobs); /* the loss is durable before a result may speak of it (outputs.h) */
    outputs_ungiven(blobs->config.outputs, hash);
    const bool is_gone =
        status == BLOB_LOST && !may_come_back(blobs, owner, asked->account->number, hash);
    const enum reject_code code = is_gone ? REJECT_NOT_FOUND : REJECT_UNAVAILABLE;
    refuse(blobs, asked, code, is_gone ? "hash" : "", 0, 0);
}

/* ---------------------------------------------------------------- damage */

/* The blob's file is hashed by a thread. True: that is under way, or has to wait for others. */
static bool check_file(struct blobs *blobs, const struct hash32 *hash)
{
    int fd;
    bool is_hashed;
    if (!blob_checks_has_room(blobs->checks, hash)) {
        return true;
    }
    enum blob_status status = blob_store_file(blobs->config.store, hash, &fd, &is_hashed);
    if (status != BLOB_OK && status != BLOB_UNCHECKED) {
        return false; /* the get that comes next says why */
    }
    blob_checks_begin(blobs->checks, hash, fd);
    return true;
}

/* Somebody says that the bytes he got do not have the hash. The broker looks for itself. True: it
 * is not done. */
static bool recheck(struct blobs *blobs, const struct hash32 *hash)
{
    uint64_t size = 0;
    size_t length = 0;
    if (blob_checks_knows(blobs->checks, hash, clock_monotonic_ns()) ||
        blob_store_get(blobs->config.store, hash, 0, 0, NULL, &length, &size) != BLOB_OK ||
        size <= BLOB_ROW_BYTES) { /* which are hashed whenever they are read */
        return false;
    }
    blobs->steps += size / BLOBS_BYTES_PER_STEP;
    return check_file(blobs, hash);
}

static void end_checks(struct blobs *blobs)
{
    struct blob_store *store = blobs->config.store;
    struct hash32 hash;
    enum blob_check_result result;
    while (blob_checks_take_ended(blobs->checks, clock_monotonic_ns(), &hash, &result)) {
        if (result != BLOB_CHECK_UNREAD &&
            blob_store_checked(store, &hash, result == BLOB_CHECK_RIGHT) != BLOB_OK) {
            log_unread(blobs, &hash);
        }
    }
}

/* ---------------------------------------------------------------- messages */

/* The sender may have some files still, and asks which of them are wanted again: those that were
 * lost and asked for lately. Of a job that it serves, those that it may read. */
static void tell_lost(struct blobs *blobs, const struct asked *asked, uint32_t owner,
                      struct blob_access_job *served)
{
    const uint32_t sender = asked->account->number;
    const int64_t now_ns = clock_monotonic_ns();
    const int64_t until_ns = now_ns + BLOBS_KEEPER_S * NS_PER_S;
    struct blob_store *store = blobs->config.store;
    Bourse__V1__BlobMissing answer = BOURSE__V1__BLOB_MISSING__INIT;
    ProtobufCBinaryData lost[UNREAD_TOLD];
    if (served == NULL) {
        *keeper_of(blobs, owner) = (struct keeper){.account = owner, .until_ns = until_ns};
    } else {
        *lender_of(blobs, sender, &served->job) =
            (struct lender){.provider = sender, .job = served->job, .until_ns = until_ns};
    }
    for (size_t i = 0; i < UNREAD_TOLD; i++) {
        struct unread *told = &blobs->unread[i];
        if (told->until_ns > now_ns &&
            (served == NULL || is_of_job(blobs, sender, served, &told->hash)) &&
            blob_store_owns(store, owner, &told->hash) == BLOB_OK &&
            blob_store_has(store, owner, NULL, &told->hash) != BLOB_OK) {
            lost[answer.n_hashes++] =
                (ProtobufCBinaryData){sizeof told->hash.bytes, told->hash.bytes};
        }
    }
    answer.hashes = lost;
    reply(blobs, asked, outgoing_message(OUTGOING_REPLY, MESSAGE_BLOB_MISSING, &answer.base));
}

/* Looks up the next hashes. False: some are left, and it goes on in its account's next turn. */
static bool have(struct blobs *blobs, struct asked *asked, const Bourse__V1__BlobHave *body)
{
    uint32_t owner;
    struct blob_access_job *served;
    if (!owner_of(blobs, asked, body->has_job, body->job, &owner, &served)) {
        refuse(blobs, asked, REJECT_NOT_FOUND, "job", 0, 0);
        return true;
    }
    struct blob_lease bounds;
    const struct blob_lease *lease =
        lease_of(blobs, asked, served, &bounds); /* reads what it names */
    if (body->has_lost && body->lost) {
        blobs->steps += 2 * UNREAD_TOLD * BLOBS_LOOK_STEPS;
        tell_lost(blobs, asked, owner, served);
        return true;
    }
    end_batch(blobs); /* "have" is a promise too: of what is durable */
    if (asked->missing == NULL) {
        asked->missing = calloc(body->n_hashes + 1, sizeof *asked->missing);
        if (asked->missing == NULL) {
            fatal("out of memory");
        }
    }
    for (size_t i = 0; i < BLOBS_SLICE_HASHES && asked->looked_up < body->n_hashes; i++) {
        const ProtobufCBinaryData asked_for = body->hashes[asked->looked_up++];
        struct hash32 hash = codec_hash(asked_for);
        enum blob_status status = blob_store_has(blobs->config.store, owner, lease, &hash);
        blobs->steps += BLOBS_LOOK_STEPS;
        if (status == BLOB_LOST) {
            log_unread(blobs, &hash); /* found only now */
        }
        if (status == BLOB_NOT_FOUND || status == BLOB_LOST) {
            asked->missing[asked->missing_count++] = asked_for;
        } else if (status != BLOB_OK) {
            refuse_unread(blobs, asked, status, owner, &hash);
            return true;
        }
    }
    if (asked->looked_up < body->n_hashes) {
        return false;
    }
    Bourse__V1__BlobMissing answer = BOURSE__V1__BLOB_MISSING__INIT;
    answer.n_hashes = asked->missing_count;
    answer.hashes = asked->missing;
    reply(blobs, asked, outgoing_message(OUTGOING_REPLY, MESSAGE_BLOB_MISSING, &answer.base));
    return true;
}

static struct outgoing *put_refusal(const struct blobs *blobs, const struct asked *asked,
                                    const struct blob_lease *lease, enum blob_status status,
                                    uint64_t stored, const Bourse__V1__BlobPut *body)
{
    const struct id128 *id = &asked->envelope.id;
    switch (status) {
    case BLOB_WRONG_HASH:
        return outgoing_reject(0, id, REJECT_BLOB_HASH, "hash", 0, 0);
    case BLOB_TOO_LARGE:
        return outgoing_reject(0, id, REJECT_TOO_LARGE, "size", (int64_t)body->size,
                               blobs->config.size_bytes);
    case BLOB_OVER_QUOTA:
        return outgoing_reject(0, id, REJECT_BLOB_QUOTA, "size", (int64_t)body->size,
                               blobs->config.quota_bytes);
    case BLOB_OVER_LEASE:
        return outgoing_reject(0, id, REJECT_BLOB_QUOTA, "lease", (int64_t)body->size,
                               lease == NULL ? 0 : (int64_t)lease->bytes_most);
    case BLOB_WRONG_OFFSET:
        return outgoing_reject(0, id, REJECT_BLOB_OFFSET, "offset", (int64_t)stored,
                               (int64_t)body->size);
    case BLOB_TOO_MANY:
        return outgoing_reject(0, id, REJECT_BUSY, "uploads", BLOB_PARTIALS_PER_ACCOUNT,
                               BLOB_PARTIALS_PER_ACCOUNT);
    case BLOB_DISK_FULL:
        return outgoing_reject(0, id, REJECT_STORAGE_FULL, "", 0, 0);
    case BLOB_OK:
    case BLOB_NOT_FOUND:
    case BLOB_MALFORMED:
    case BLOB_LOST:
    case BLOB_UNCHECKED:
    case BLOB_FAILED:
        break;
    }
    return outgoing_reject(0, id, REJECT_MALFORMED, "offset", 0, 0);
}

/* ---------------------------------------------------------------- streams */

static struct outgoing *stored_answer(const struct hash32 *hash, uint64_t stored, bool is_complete,
                                      struct id128 *ticket)
{
    Bourse__V1__BlobStored answer = BOURSE__V1__BLOB_STORED__INIT;
    answer.hash = (ProtobufCBinaryData){sizeof hash->bytes,
                                        (uint8_t *)(uintptr_t)hash->bytes}; /* only read */
    answer.stored = stored;
    answer.complete = is_complete;
    answer.has_ticket = ticket != NULL;
    if (ticket != NULL) {
        answer.ticket = (ProtobufCBinaryData){sizeof ticket->bytes, ticket->bytes};
    }
    return outgoing_message(OUTGOING_REPLY, MESSAGE_BLOB_STORED, &answer.base);
}

/* False: there is none to be had, and the blob comes in pieces. */
static bool open_stream(struct blobs *blobs, const struct asked *asked, uint32_t owner,
                        const struct blob_lease *lease, const struct hash32 *hash, uint64_t size,
                        struct id128 *ret_token)
{
    struct blob_store *store = blobs->config.store;
    struct upload_stream_facts facts = {
        .token = entropy_id(), .account = asked->account->number, .hash = *hash, .size = size};
    int end;
    if (!asked->is_local || size <= BLOB_ROW_BYTES ||
        !upload_streams_have_room(blobs->streams, facts.account) ||
        blob_store_lend(store, owner, lease, hash, size, &facts.upload, &facts.fd) != BLOB_OK) {
        return false;
    }
    if (!upload_streams_begin(blobs->streams, &facts, &end)) {
        (void)blob_store_take_back(store, facts.upload, false); /* nothing is kept */
        return false;
    }
    blobs->claims[upload_streams_find(blobs->streams, facts.account, &facts.token)] =
        (struct claim){.is_made = false};
    *ret_token = facts.token;
    return blob_ticket_promise_end(&blobs->tickets, &facts.token, facts.account, end,
                                   clock_monotonic_ns()); /* without, its stream ends at once */
}

/* Puts without data, of whoever asks for a stream or has sent all through one. False: it is none,
 * or its blob is here. */
static bool put_by_stream(struct blobs *blobs, const struct asked *asked,
                          const Bourse__V1__BlobPut *body, uint32_t owner,
                          const struct blob_lease *lease)
{
    struct hash32 hash = codec_hash(body->hash);
    bool asks = body->has_by_stream && body->by_stream;
    if ((!asks && !body->has_ticket) || body->data.len > 0) {
        return false;
    }
    const enum blob_status status = blob_store_has(blobs->config.store, owner, lease, &hash);
    if (status != BLOB_NOT_FOUND && status != BLOB_LOST) {
        return false; /* what cannot be looked at now is told like for any put */
    }
    if (body->has_ticket) {
        struct id128 token = codec_id(body->ticket);
        int place = upload_streams_find(blobs->streams, asked->account->number, &token);
        if (place >= 0) {
            blobs->claims[place] = claim_of(asked);
        } else { /* it came to nothing: pieces, whose answers say why */
            hold_back(blobs, asked, put_refusal(blobs, asked, lease, BLOB_WRONG_OFFSET, 0, body));
        }
        return true;
    }
    struct id128 token;
    bool is_open = open_stream(blobs, asked, owner, lease, &hash, body->size, &token);
    blobs->steps += is_open ? BLOB_UPLOAD_STEPS + BLOB_FILE_STEPS : 0;
    hold_back(blobs, asked, stored_answer(&hash, 0, false, is_open ? &token : NULL));
    return true;
}

/* Answers for the streams that have ended. */
static void end_intakes(struct blobs *blobs)
{
    struct blob_store *store = blobs->config.store;
    struct upload_stream_end end;
    while (upload_streams_take_ended(blobs->streams, &end)) {
        begin_batch(blobs);
        enum blob_status status =
            blob_store_take_back(store, end.upload, end.status == UPLOAD_STREAM_WHOLE);
        if (status == BLOB_FAILED || end.status == UPLOAD_STREAM_UNSYNCED) {
            fatal("a blob could not be stored: %s; stopped",
                  status == BLOB_FAILED ? blob_store_error(store) : "the disk failed");
        }
        struct claim *claim = &blobs->claims[end.place];
        if (claim->is_made) {
            bool is_stored = status == BLOB_OK;
            hold_answer(blobs, claim,
                        is_stored ? stored_answer(&end.hash, end.size, true, NULL)
                                  : outgoing_reject(0, &claim->id, REJECT_BLOB_OFFSET, "offset", 0,
                                                    (int64_t)end.size));
        }
        claim->is_made = false;
    }
    end_batch(blobs);
}

/* Stores the next slice. False: some are left, and are stored in the account's next turns. */
static bool put(struct blobs *blobs, struct asked *asked, const Bourse__V1__BlobPut *body)
{
    uint32_t owner;
    struct blob_access_job *served;
    if (!owner_of(blobs, asked, body->has_job, body->job, &owner, &served)) {
        refuse(blobs, asked, REJECT_NOT_FOUND, "job", 0, 0);
        return true;
    }
    if (disk_reserve_state(blobs->config.reserve) != DISK_RESERVE_UNUSED) {
        refuse(blobs, asked, REJECT_STORAGE_FULL, "", 0, 0); /* the reserve is not for blobs */
        return true;
    }
    struct blob_lease bounds;
    const struct blob_lease *lease = lease_of(blobs, asked, served, &bounds);
    begin_batch(blobs);
    blobs->steps += 3 * BLOBS_LOOK_STEPS;
    if (put_by_stream(blobs, asked, body, owner, lease)) {
        return true;
    }
    const struct blob_chunk chunk = blob_slice_chunk(body, owner, lease);
    const int64_t now_ns = clock_monotonic_ns();
    const bool is_shared = others_ask(blobs, asked->account->number, now_ns);
    const struct blob_chunk slice = blob_slice(&chunk, asked->stored_bytes, is_shared);
    uint64_t stored = 0;
    bool is_complete = false;
    enum blob_status status =
        blob_store_put(blobs->config.store, &slice, now_ns, &stored, &is_complete);
    if (status == BLOB_FAILED) {
        fatal("a blob could not be stored: %s; stopped", blob_store_error(blobs->config.store));
    }
    if (status != BLOB_OK) {
        struct outgoing *refusal = checked(put_refusal(blobs, asked, lease, status, stored, body));
        note_refused(blobs, asked, refusal->refused);
        hold_back(blobs, asked, refusal);
        return true;
    }
    blobs->steps += blob_slice_steps(&slice, is_complete);
    asked->stored_bytes += slice.length;
    if (!is_complete && asked->stored_bytes < chunk.length) {
        return false;
    }
    hold_back(blobs, asked, stored_answer(&chunk.hash, stored, is_complete, NULL));
    return true;
}

/* Reads at most `most` bytes of a blob to where they leave from. Nothing is sent with another
 * status than OK, nor to whoever does not read. */
static enum blob_status send_data(struct blobs *blobs, const struct asked *asked,
                                  const struct hash32 *hash, uint64_t offset, size_t most,
                                  uint64_t *ret_size)
{
    struct blob_store *store = blobs->config.store;
    static const uint8_t hole;
    size_t length = 0;
    enum blob_status status = blob_store_get(store, hash, offset, 0, NULL, &length, ret_size);
    if (status != BLOB_OK) {
        return status;
    }
    uint64_t left = *ret_size - offset;
    Bourse__V1__BlobData answer = BOURSE__V1__BLOB_DATA__INIT;
    answer.hash = (ProtobufCBinaryData){sizeof hash->bytes,
                                        (uint8_t *)(uintptr_t)hash->bytes}; /* only read */
    answer.offset = offset;
    answer.total = *ret_size;
    answer.data =
        (ProtobufCBinaryData){left < most ? (size_t)left : most, (uint8_t *)(uintptr_t)&hole};
    size_t body_length = protobuf_c_message_get_packed_size(&answer.base);
    struct envelope envelope =
        head_of(blobs, MESSAGE_BLOB_DATA, asked->envelope.session, &asked->envelope.id);
    envelope.body_length = (uint32_t)body_length;
    uint8_t *message =
        router_draft(blobs->config.router, &asked->message.client, envelope_size(&envelope));
    if (message == NULL) {
        return BLOB_OK; /* too much waits for him: he asks again */
    }
    envelope_write_head(&envelope, message);
    uint8_t *place = codec_encode_around(&answer.base, &hole, message + ENVELOPE_HEAD_BYTES);
    assert(place != NULL);
    status = blob_store_get(store, hash, offset, answer.data.len, place, &length, ret_size);
    if (status == BLOB_OK && length == answer.data.len) {
        (void)router_send_draft(blobs->config.router, &asked->message.route); /* or he is gone */
    } else {
        router_drop_draft(blobs->config.router);
        status = status == BLOB_OK ? BLOB_FAILED : status;
    }
    return status;
}

/* A ticket for the file instead of its first bytes, to a peer on this machine that can take one.
 * False: it gets bytes, because they all fit this answer, or too many tickets are open. */
static bool send_ticket(struct blobs *blobs, const struct asked *asked,
                        const Bourse__V1__BlobGet *body, const struct hash32 *hash)
{
    size_t length = 0;
    uint64_t size = 0;
    if (!body->by_file || body->offset != 0 || !asked->is_local ||
        blob_store_get(blobs->config.store, hash, 0, 0, NULL, &length, &size) != BLOB_OK ||
        size <= BLOB_ROW_BYTES || size <= body->length) {
        return false;
    }
    struct id128 token = entropy_id();
    if (!blob_ticket_promise(&blobs->tickets, &token, asked->account->number, hash,
                             clock_monotonic_ns())) {
        return false;
    }
    Bourse__V1__BlobData answer = BOURSE__V1__BLOB_DATA__INIT;
    answer.hash = body->hash;
    answer.total = size;
    answer.has_ticket = 1;
    answer.ticket = (ProtobufCBinaryData){sizeof token.bytes, token.bytes};
    reply(blobs, asked, outgoing_message(OUTGOING_REPLY, MESSAGE_BLOB_DATA, &answer.base));
    return true;
}

/* Returns true when so much waits to leave for the sender that others would wait behind it. */
static bool stays_behind(const struct blobs *blobs, struct asked *asked, size_t waiting)
{
    const int64_t now_ns = clock_monotonic_ns();
    if (waiting <= BLOBS_SEND_SHARED_BYTES || !others_ask(blobs, asked->account->number, now_ns)) {
        return false;
    }
    asked->behind_ns = asked->behind_ns == 0 ? now_ns : asked->behind_ns;
    return now_ns - asked->behind_ns < BLOBS_BEHIND_MS * NS_PER_MS;
}

/* False: it stays behind, for now. */
static bool get(struct blobs *blobs, struct asked *asked, const Bourse__V1__BlobGet *body)
{
    uint32_t owner;
    struct blob_access_job *served;
    struct hash32 hash = codec_hash(body->hash);
    size_t wanted = body->length < LIMIT_BLOB_CHUNK_BYTES ? body->length : LIMIT_BLOB_CHUNK_BYTES;
    size_t waiting = router_waiting_key(blobs->config.router, &asked->message.client);
    if (waiting > 0 && waiting + wanted > BLOBS_SEND_KEY_BYTES - LIMIT_BLOB_CHUNK_BYTES) {
        /* Before anything is looked up for it. What is left of the room is for refusals. */
        refuse(blobs, asked, REJECT_BUSY, "waiting_bytes", (int64_t)waiting,
               BLOBS_SEND_KEY_BYTES - LIMIT_BLOB_CHUNK_BYTES);
        return true;
    }
    if (stays_behind(blobs, asked, waiting + wanted)) {
        turns_put_off(&blobs->turns, asked->account->number, clock_monotonic_ns() + NS_PER_MS);
        return false;
    }
    blobs->steps += 3 * BLOBS_LOOK_STEPS;
    enum blob_status readable = BLOB_NOT_FOUND;
    if (owner_of(blobs, asked, body->has_job, body->job, &owner, &served)) {
        readable = may_read(blobs, asked, owner, served, &hash);
    }
    if (readable == BLOB_NOT_FOUND) {
        refuse(blobs, asked, REJECT_NOT_FOUND, "hash", 0, 0);
        return true;
    }
    if (readable != BLOB_OK) {
        refuse_unread(blobs, asked, readable, owner, &hash);
        return true;
    }
    if (body->has_check && body->check && recheck(blobs, &hash)) {
        refuse(blobs, asked, REJECT_BUSY, "checks", BLOB_CHECKS_MAX, BLOB_CHECKS_MAX);
        return true;
    }
    struct allowance *reads = allowance_list_of(&blobs->reads, asked->account->number);
    if (reads != NULL && !allowance_take_many(reads, BLOBS_READ_KIB, (uint32_t)(wanted >> 10) + 1,
                                              clock_monotonic_ns())) {
        refuse(blobs, asked, REJECT_BUSY, "bytes_per_second", (int64_t)wanted,
               (int64_t)BLOBS_READ_KIB << 10);
        return true;
    }
    if (send_ticket(blobs, asked, body, &hash)) {
        return true;
    }
    uint64_t size = 0;
    enum blob_status status = send_data(blobs, asked, &hash, body->offset, wanted, &size);
    blobs->steps += (size < wanted ? size : wanted) / BLOBS_BYTES_PER_STEP;
    if (status == BLOB_WRONG_OFFSET) {
        refuse(blobs, asked, REJECT_BLOB_OFFSET, "offset", 0, (int64_t)size);
    } else if (status == BLOB_UNCHECKED && check_file(blobs, &hash)) {
        refuse(blobs, asked, REJECT_BUSY, "checks", BLOB_CHECKS_MAX, BLOB_CHECKS_MAX);
    } else if (status != BLOB_OK) {
        refuse_unread(blobs, asked, status, owner, &hash);
    }
    return true;
}

/* False: it was refused. */
static bool decode(struct blobs *blobs, struct asked *asked)
{
    enum message_type type = (enum message_type)asked->envelope.type;
    unsigned roles = message_roles(type);
    if (roles == 0 || !message_is_of_blobs(type)) {
        refuse(blobs, asked, REJECT_TYPE, "type", asked->envelope.type, 0);
        return false;
    }
    if ((asked->account->roles & roles) == 0) {
        refuse(blobs, asked, REJECT_ROLE, "type", 0, 0);
        return false;
    }
    if (asked->account->frozen && type == MESSAGE_BLOB_PUT) {
        refuse(blobs, asked, REJECT_FROZEN, "account", 0, 0);
        return false;
    }
    struct codec_error error = {0};
    switch (codec_decode(type, asked->envelope.body, asked->envelope.body_length, &asked->body,
                         &error)) {
    case CODEC_OK:
        return true;
    case CODEC_TOO_LARGE:
        refuse(blobs, asked, REJECT_TOO_LARGE, "body", error.value, error.limit);
        return false;
    case CODEC_OUT_OF_MEMORY:
        refuse(blobs, asked, REJECT_BUSY, "", 0, 0);
        return false;
    case CODEC_UNKNOWN_TYPE:
    case CODEC_MALFORMED:
        refuse(blobs, asked, REJECT_MALFORMED, error.field, error.value, error.limit);
        return false;
    }
    return false;
}

/* Answers the message, or a slice of it. False: it is not answered yet, and stays the first of its
 * account. */
static bool dispatch(struct blobs *blobs, struct asked *asked)
{
    if (asked->body == NULL) {
        blobs->steps += BLOBS_MESSAGE_STEPS + asked->message.length / BLOBS_BYTES_PER_STEP;
        if (!decode(blobs, asked)) {
            return true;
        }
    }
    switch ((int)asked->envelope.type) {
    case MESSAGE_BLOB_HAVE:
        return have(blobs, asked, (const void *)asked->body);
    case MESSAGE_BLOB_PUT:
        return put(blobs, asked, (const void *)asked->body);
    case MESSAGE_BLOB_GET:
        return get(blobs, asked, (const void *)asked->body);
    default:
        refuse(blobs, asked, REJECT_TYPE, "type", asked->envelope.type, 0);
        return true;
    }
}

/* ---------------------------------------------------------------- the loop */

static void learn(struct blobs *blobs, const struct outgoing *note)
{
    const struct directory_account *owner;
    switch (note->kind) {
    case OUTGOING_ACCOUNT:
        if (!directory_put(blobs->config.directory, &note->opened)) {
            fatal("out of memory");
        }
        return;
    case OUTGOING_SERVE:
        owner = directory_key(blobs->config.directory, &note->owner);
        if (owner != NULL && !blob_access_add(blobs->config.access, note->lease, note->account,
                                              &note->job, owner->number, &note->manifest)) {
            fatal("out of memory");
        }
        return;
    case OUTGOING_GIVEN:
        if (!blob_access_give(blobs->config.access, note->lease, (const struct hash32 *)note->body,
                              note->length / sizeof(struct hash32))) {
            fatal("out of memory");
        }
        return;
    case OUTGOING_NAMED:
        return; /* kept by learn_all */
    case OUTGOING_UNSERVE:
        blob_access_end(blobs->config.access, note->lease, clock_monotonic_ns());
        return;
    case OUTGOING_REPLY:
    case OUTGOING_PUSH:
    case OUTGOING_EVENT:
    case OUTGOING_INDEX:
        return;
    }
}

static void keep_names(struct blobs *blobs, struct outgoing *note)
{
    if (blobs->name_count == blobs->name_capacity) {
        const size_t capacity = blobs->name_capacity == 0 ? 64 : 2 * blobs->name_capacity;
        struct outgoing **larger = reallocarray(blobs->names, capacity, sizeof(struct outgoing *));
        if (larger == NULL) {
            fatal("out of memory");
        }
        blobs->names = larger;
        blobs->name_capacity = capacity;
    }
    blobs->names[blobs->name_count++] = note;
    blobs->named_hashes += note->length / sizeof(struct hash32);
}

static void name_all(struct blobs *blobs, const struct outgoing *note)
{
    const struct blob_holder holder = {.provider = note->account, .job = note->job};
    const struct hash32 *hashes = (const struct hash32 *)note->body;
    for (size_t i = 0; i < note->length / sizeof *hashes; i++) {
        if (blob_store_name(blobs->config.store, &holder, &hashes[i]) == BLOB_FAILED) {
            fatal("blobs.db cannot be written: %s", blob_store_error(blobs->config.store));
        }
    }
}

/* Blobs that results have named since the last call become their owners'. A call once in a while
 * is enough, since the owner may read them before. False: the disk is full; try again later. */
static bool write_names(struct blobs *blobs)
{
    if (blobs->name_count == 0) {
        return true;
    }
    end_batch(blobs);
    begin_batch(blobs);
    for (size_t i = 0; i < blobs->name_count; i++) {
        name_all(blobs, blobs->names[i]);
    }
    blobs->in_batch = false;
    switch (blob_store_commit(blobs->config.store)) {
    case BLOB_OK:
        break;
    case BLOB_FAILED:
        fatal("blobs could not be committed: %s; stopped", blob_store_error(blobs->config.store));
    default:
        return false;
    }
    for (size_t i = 0; i < blobs->name_count; i++) {
        outgoing_destroy(&blobs->names[i]);
    }
    blobs->name_count = 0;
    blobs->named_hashes = 0;
    return true;
}

/* A blob that a provider stored for a job goes when the provider serves the job no more and no
 * result has named the blob. A restart changes nothing about that. */
static void drop_unnamed(struct blobs *blobs, int64_t now_ns)
{
    struct blob_store *store = blobs->config.store;
    for (size_t i = blob_store_holdings(store); i-- > 0;) {
        const struct blob_holding held = blob_store_holding(store, i);
        if (blob_access_find(blobs->config.access, held.holder.provider, &held.holder.job,
                             now_ns) != NULL) {
            continue;
        }
        end_batch(blobs);
        begin_batch(blobs);
        const enum blob_status status = blob_store_drop(store, &held.holder, BLOBS_DROPPED_AT_ONCE);
        blobs->in_batch = false;
        if (status == BLOB_FAILED || blob_store_commit(store) == BLOB_FAILED) {
            fatal("blobs.db cannot be written: %s", blob_store_error(store));
        }
        log_debug("provider %" PRIu32 " had stored %" PRIu64 " blobs, %" PRIu64
                  " bytes, that no result named: they go",
                  held.holder.provider, held.count, held.bytes);
        return; /* one at a time: others wait for their answers */
    }
}

/* One folder a call, so that others wait little for their answers. */
static void sweep(struct blobs *blobs)
{
    size_t removed = 0;
    if (blobs->is_swept) {
        return;
    }
    end_batch(blobs);
    switch (blob_store_sweep(blobs->config.store, &removed)) {
    case BLOB_SWEEP_GOES_ON:
        return;
    case BLOB_SWEEP_ENDED:
        if (removed > 0) {
            log_info("%zu blob%s that a broker had left without a row %s removed", removed,
                     text_plural(removed), removed == 1 ? "is" : "are");
        }
        break;
    case BLOB_SWEEP_GAVE_UP:
        log_warning("the folder of the blobs holds files that blobs.db does not name; %zu were "
                    "removed, the rest stays. If blobs.db is of an old backup, stop the broker and "
                    "put back the one that belongs to these files",
                    removed);
        break;
    }
    blobs->is_swept = true;
}

static void learn_all(struct blobs *blobs)
{
    for (struct queue_link *link; (link = queue_pop(blobs->config.notes, 0)) != NULL;) {
        struct outgoing *note = QUEUE_ELEMENT(link, struct outgoing, link);
        if (note->kind == OUTGOING_NAMED) {
            keep_names(blobs, note);
            continue;
        }
        learn(blobs, note);
        outgoing_destroy(&note);
    }
}

static bool is_ahead(const struct blobs *blobs, uint32_t account, size_t most, int64_t now_ns)
{
    return turns_bytes(&blobs->turns, account) > most && others_ask(blobs, account, now_ns);
}

/* An account whose messages come faster than its turns has to wait with them. */
static void pause_sender(struct blobs *blobs, uint32_t account, int descriptor, int64_t now_ns)
{
    bool is_paused = false; /* by a message that came before */
    for (size_t i = 0; i < blobs->paused_count && !is_paused; i++) {
        is_paused = blobs->paused[i].descriptor == descriptor;
    }
    if (descriptor < 0 || is_paused || blobs->paused_count == BLOBS_PAUSED_MAX ||
        !is_ahead(blobs, account, BLOBS_WAITING_SHARED_BYTES, now_ns)) {
        return;
    }
    router_pause(descriptor, true);
    blobs->paused[blobs->paused_count++] =
        (struct paused){.descriptor = descriptor,
                        .account = account,
                        .until_ns = now_ns + BLOBS_PAUSED_MS * NS_PER_MS};
}

/* The account's connections go on one after the other, the one that waits longest first: all at
 * once would bring more than the account has turns for. */
static void resume_senders(struct blobs *blobs, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < blobs->paused_count; i++) {
        const struct paused paused = blobs->paused[i];
        const bool goes_on =
            now_ns >= paused.until_ns ||
            (now_ns >= blobs->next_resume_ns &&
             !is_ahead(blobs, paused.account, BLOBS_WAITING_SHARED_BYTES / 2, now_ns));
        if (goes_on) {
            router_pause(paused.descriptor, false);
            blobs->next_resume_ns = now_ns + BLOBS_RESUME_MS * NS_PER_MS;
        } else {
            blobs->paused[kept++] = paused;
        }
    }
    blobs->paused_count = kept;
}

/* The message waits for its account's turn. */
static void queue_up(struct blobs *blobs, const struct asked *received, int64_t now_ns)
{
    struct asked *asked = malloc(sizeof *asked);
    if (asked == NULL) {
        refuse(blobs, received, REJECT_BUSY, "", 0, 0);
        return;
    }
    *asked = *received;
    if (!turns_put(&blobs->turns, &asked->turn, asked->account->number, asked->message.length,
                   now_ns)) {
        free(asked);
        refuse(blobs, received, REJECT_BUSY, "waiting_requests", TURNS_EACH + 1, TURNS_EACH);
        return;
    }
    pause_sender(blobs, asked->account->number, router_descriptor(blobs->config.router), now_ns);
    asked->kept = router_keep(blobs->config.router, &asked->message);
    if (asked->kept == NULL) {
        fatal("out of memory");
    }
    /* The same once more: its body is where the bytes are now. */
    (void)envelope_read(asked->message.bytes, asked->message.length, LIMIT_BLOB_MESSAGE_BYTES,
                        &asked->envelope);
}

static void receive(struct blobs *blobs, const struct router_message *message)
{
    /* After the message came: a right that its sender may know of is among the notes by now. */
    learn_all(blobs);
    struct asked asked = {.message = *message,
                          .is_local = router_is_local(blobs->config.router),
                          .account =
                              directory_transport(blobs->config.directory, &message->client)};
    if (asked.account == NULL) {
        return; /* unknown keys get no answer here */
    }
    int64_t now_ns = clock_monotonic_ns();
    struct allowance *allowance = allowance_list_of(&blobs->allowances, asked.account->number);
    if (allowance != NULL && !allowance_take(allowance, BLOBS_RATE, now_ns)) {
        if (allowance_tell(allowance, now_ns) &&
            envelope_read(message->bytes, message->length, LIMIT_BLOB_MESSAGE_BYTES,
                          &asked.envelope) == ENVELOPE_OK) {
            refuse(blobs, &asked, REJECT_RATE, "requests_per_second", BLOBS_RATE + 1, BLOBS_RATE);
        } else {
            note_refused(blobs, &asked, REJECT_RATE);
        }
        return;
    }
    switch (
        envelope_read(message->bytes, message->length, LIMIT_BLOB_MESSAGE_BYTES, &asked.envelope)) {
    case ENVELOPE_OK:
        queue_up(blobs, &asked, now_ns);
        return;
    case ENVELOPE_BAD_VERSION:
        refuse(blobs, &asked, REJECT_VERSION, "version", 0, ENVELOPE_VERSION);
        return;
    case ENVELOPE_SHORT:
    case ENVELOPE_LONG:
    case ENVELOPE_BAD_MAGIC:
    case ENVELOPE_BAD_FLAGS:
    case ENVELOPE_TOO_LARGE:
        refuse(blobs, &asked, REJECT_MALFORMED, "envelope", 0, 0);
        return;
    }
}

static void receive_all(struct blobs *blobs)
{
    struct router_message message;
    for (int i = 0; i < RECEIVED_AT_ONCE && router_receive(blobs->config.router, 0, &message) == 1;
         i++) {
        receive(blobs, &message);
    }
}

/* A request of the others waits for what is under way, and most need several, one after the other:
 * after a long batch of whoever costs most there is time for them. */
static void leave_time(struct blobs *blobs, uint32_t account, int64_t since_ns)
{
    const int64_t now_ns = clock_monotonic_ns();
    const int64_t took_ns = now_ns - since_ns;
    const int64_t most_ns = BLOBS_DEAR_MOST_MS * NS_PER_MS;
    if (took_ns >= BLOBS_DEAR_MS * NS_PER_MS && turns_has_cost_most(&blobs->turns, account) &&
        turns_are_contended(&blobs->turns, account, now_ns - BLOBS_NEAR_MS * NS_PER_MS)) {
        turns_put_off(&blobs->turns, account, now_ns + (took_ns < most_ns ? took_ns : most_ns));
    }
}

/* Answers those whose turn it is, and makes durable what they stored. */
static void answer_batch(struct blobs *blobs)
{
    size_t bytes = 0;
    uint64_t steps = 0;
    uint64_t most_steps = 0;
    uint32_t dearest = 0; /* the account of the message that took most */
    bool is_answered = true;
    const int64_t since_ns = clock_monotonic_ns();
    for (int i = 0; i < BATCH_MESSAGES && bytes < BATCH_BYTES; i++) {
        if (blobs->turns.count == 0 || !is_answered) {
            receive_all(blobs); /* what came meanwhile shares the commit */
        }
        const int64_t now_ns = clock_monotonic_ns();
        struct turn *turn = turns_first(&blobs->turns, now_ns);
        if (turn == NULL ||
            (steps >= BLOBS_BATCH_STEPS && others_ask(blobs, turn->account, now_ns))) {
            break;
        }
        struct asked *asked = (struct asked *)(void *)turn; /* its first member */
        asked->account = directory_transport(blobs->config.directory, &asked->message.client);
        blobs->steps = 0;
        is_answered = asked->account == NULL || dispatch(blobs, asked);
        turns_charge(&blobs->turns, turn->account, blobs->steps, now_ns);
        steps += blobs->steps;
        dearest = blobs->steps > most_steps ? turn->account : dearest;
        most_steps = blobs->steps > most_steps ? blobs->steps : most_steps;
        if (is_answered) {
            bytes += asked->message.length;
            turns_take(&blobs->turns, turn);
            asked_free(asked);
        }
    }
    end_batch(blobs);
    if (most_steps > 0) {
        leave_time(blobs, dearest, since_ns);
    }
}

/* Returns how long the thread may wait for the next message. */
static long waits_ms(struct blobs *blobs)
{
    if (blobs->turns.count == 0) {
        return blobs->paused_count > 0 ? BLOBS_RESUME_MS : EXPIRE_MS;
    }
    return turns_first(&blobs->turns, clock_monotonic_ns()) == NULL ? 1 : 0;
}

/* Bytes wait for orders: reading and sealing large blobs is all that a member can make the broker
 * work at length, and it leaves the processors to the threads that orders pass through. False: they
 * do not all run yet. */
static bool yield_to_orders(void)
{
    return process_yield_threads(BLOBS_THREAD) > 0 && process_yield_threads(BLOBS_IO_THREAD) > 0;
}

static void *run(void *argument)
{
    struct blobs *blobs = argument;
    process_name_thread(BLOBS_THREAD);
    zmq_pollitem_t items[] = {
        {.socket = router_socket(blobs->config.router), .events = ZMQ_POLLIN},
        {.fd = queue_descriptor(blobs->config.notes), .events = ZMQ_POLLIN},
        {.fd = upload_streams_descriptor(blobs->streams), .events = ZMQ_POLLIN},
        {.fd = blob_checks_descriptor(blobs->checks), .events = ZMQ_POLLIN},
        {.fd = blobs->config.file_port, .events = ZMQ_POLLIN},
    };
    const int item_count = blobs->config.file_port < 0 ? 4 : 5;
    int64_t next_expiry_ns = 0;
    bool yields = false;
    while (!queue_finished(blobs->config.notes)) {
        if (zmq_poll(items, item_count, waits_ms(blobs)) < 0 && errno != EINTR) {
            fatal("the blob port cannot be polled: %s", zmq_strerror(errno));
        }
        learn_all(blobs);
        receive_all(blobs);
        answer_batch(blobs);
        resume_senders(blobs, clock_monotonic_ns());
        end_intakes(blobs);
        end_checks(blobs);
        int64_t now_ns = clock_monotonic_ns();
        if (blobs->named_hashes >= BLOBS_NAMES_MAX) {
            (void)write_names(blobs);
        }
        blob_tickets_serve(&blobs->tickets, blobs->config.store, now_ns);
        if (now_ns >= next_expiry_ns) {
            blob_access_expire(blobs->config.access, now_ns);
            blob_store_expire(blobs->config.store, now_ns);
            if (write_names(blobs)) {
                drop_unnamed(blobs, now_ns);
            }
            sweep(blobs);
            next_expiry_ns = now_ns + EXPIRE_MS * NS_PER_MS;
            yields = yields || yield_to_orders();
        }
    }
    (void)write_names(blobs); /* else the next start finds them in the ledger */
    return NULL;
}

struct blobs *blobs_start(const struct blobs_config *config)
{
    struct blobs *blobs = calloc(1, sizeof *blobs);
    if (blobs == NULL) {
        fatal("the blob port cannot start: out of memory");
    }
    blobs->config = *config;
    blobs->is_swept = blob_store_is_empty(config->store); /* a new blobs.db knows no file */
    blobs->tickets.port = config->file_port;
    blobs->buffer = malloc(LIMIT_BLOB_MESSAGE_BYTES);
    blobs->streams = upload_streams_create(config->reserve);
    blobs->checks = blob_checks_create();
    if (blobs->buffer == NULL || blobs->streams == NULL || blobs->checks == NULL ||
        pthread_create(&blobs->thread, NULL, run, blobs) != 0) {
        fatal("the blob port cannot start: out of memory or threads");
    }
    return blobs;
}

void blobs_stop(struct blobs **self)
{
    struct blobs *blobs = *self;
    if (blobs != NULL) {
        queue_close(blobs->config.notes);
        pthread_join(blobs->thread, NULL);
        for (struct turn *turn; (turn = turns_take_any(&blobs->turns)) != NULL;) {
            asked_free((struct asked *)(void *)turn);
        }
        blob_tickets_fini(&blobs->tickets);
        upload_streams_destroy(&blobs->streams); /* they write to files of the store */
        blob_checks_destroy(&blobs->checks);
        blob_store_close(&blobs->config.store);
        directory_destroy(&blobs->config.directory);
        blob_access_destroy(&blobs->config.access);
        allowance_list_fini(&blobs->allowances);
        allowance_list_fini(&blobs->reads);
        for (size_t i = 0; i < blobs->name_count; i++) {
            outgoing_destroy(&blobs->names[i]);
        }
        free(blobs->names);
        free(blobs->buffer);
        free(blobs);
        *self = NULL;
    }
}
