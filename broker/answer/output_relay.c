#include "broker/answer/output_relay.h"

#include "base/checked.h"
#include "broker/fatal.h"
#include "protocol/limits.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct piece {
    struct piece *next;
    uint64_t number; /* 1, 2, ... within its job */
    uint32_t index, attempt, stream;
    uint64_t offset;
    size_t size;
    uint8_t bytes[];
};

/* A bucket holds the bytes that may come now. An empty bucket is full again after a second. */
struct bucket {
    int64_t bytes;
    int64_t filled_ns;
};

struct relayed {
    struct id128 job;
    uint32_t owner;
    struct piece *first, **last; /* oldest first; `last` is where the next one goes */
    size_t kept_bytes;
    uint64_t through; /* number of the newest piece; 0: none came */
    int64_t asked_ns; /* time of the last follower's request */
    struct bucket bucket;
};

struct follower {
    uint64_t session;
    uint32_t account;
    struct id128 id; /* of the request */
    struct id128 job;
    uint64_t after;
    int64_t until_ns;
};

struct agent_asking {
    uint64_t session;
    struct id128 id;
    uint32_t account;
    int64_t until_ns;
    bool is_due; /* somebody follows a job of the agent's leases */
};

struct output_relay {
    uint64_t feed;
    struct relayed *jobs[OUTPUT_RELAY_JOBS];
    size_t job_count;
    struct follower followers[OUTPUT_RELAY_WAITING];
    size_t follower_count;
    struct agent_asking agents[OUTPUT_RELAY_AGENTS];
    size_t agent_count;
    struct bucket bucket;
    int64_t due_ns;
    /* Scratch of one answer. */
    Bourse__V1__OutputPiece pieces[LIMIT_OUTPUT_PIECES];
    Bourse__V1__OutputPiece *pointers[LIMIT_OUTPUT_PIECES];
    Bourse__V1__OutputLease leases[LIMIT_LEASES];
    Bourse__V1__OutputLease *lease_pointers[LIMIT_LEASES];
    size_t lease_count;
};

struct output_relay *output_relay_create(uint64_t feed)
{
    struct output_relay *relay = calloc(1, sizeof *relay);
    if (relay != NULL) {
        relay->feed = feed;
        relay->bucket.bytes = OUTPUT_RELAY_RATE;
        relay->due_ns = INT64_MAX;
    }
    return relay;
}

static void drop_oldest(struct relayed *job)
{
    struct piece *piece = job->first;
    job->first = piece->next;
    job->last = job->first == NULL ? &job->first : job->last;
    job->kept_bytes -= piece->size + OUTPUT_RELAY_PIECE_BYTES;
    free(piece);
}

static void drop_job(struct output_relay *relay, size_t place)
{
    struct relayed *job = relay->jobs[place];
    while (job->first != NULL) {
        drop_oldest(job);
    }
    free(job);
    relay->jobs[place] = relay->jobs[--relay->job_count];
}

void output_relay_destroy(struct output_relay **self)
{
    struct output_relay *relay = *self;
    if (relay != NULL) {
        while (relay->job_count > 0) {
            drop_job(relay, 0);
        }
        free(relay);
        *self = NULL;
    }
}

static struct relayed *find(const struct output_relay *relay, const struct id128 *job)
{
    for (size_t i = 0; i < relay->job_count; i++) {
        if (id128_equal(&relay->jobs[i]->job, job)) {
            return relay->jobs[i];
        }
    }
    return NULL;
}

static void be_due(struct output_relay *relay, int64_t at_ns)
{
    relay->due_ns = at_ns < relay->due_ns ? at_ns : relay->due_ns;
}

/* ---------------------------------------------------------------- followers */

/* Makes the answer with the pieces after `after`; `job` is NULL when nothing is relayed. */
static struct outgoing *answer(struct output_relay *relay, const struct relayed *job,
                               uint64_t after, uint64_t session, const struct id128 *id)
{
    Bourse__V1__OutputReply reply = BOURSE__V1__OUTPUT_REPLY__INIT;
    size_t bytes = 0;
    reply.feed = relay->feed;
    reply.through = after;
    reply.pieces = relay->pointers;
    for (struct piece *piece = job == NULL ? NULL : job->first; piece != NULL;
         piece = piece->next) {
        if (piece->number <= after) {
            continue;
        }
        const size_t weight = piece->size + OUTPUT_RELAY_PIECE_BYTES;
        if (reply.n_pieces == LIMIT_OUTPUT_PIECES || bytes + weight > OUTPUT_RELAY_ANSWER_BYTES) {
            reply.has_more = reply.more = true;
            break;
        }
        Bourse__V1__OutputPiece *wire = &relay->pieces[reply.n_pieces];
        bourse__v1__output_piece__init(wire);
        wire->index = piece->index;
        wire->attempt = piece->attempt;
        wire->stream = piece->stream;
        wire->offset = piece->offset;
        wire->bytes = (ProtobufCBinaryData){.len = piece->size, .data = piece->bytes};
        relay->pointers[reply.n_pieces++] = wire;
        bytes += weight;
        reply.through = piece->number;
    }
    return outgoing_address(outgoing_message(OUTGOING_REPLY, MESSAGE_OUTPUT_REPLY, &reply.base),
                            session, id);
}

static void let_agent_go(void *context, uint32_t provider, uint64_t lease, const struct id128 *job)
{
    struct output_relay *relay = context;
    (void)lease;
    (void)job;
    for (size_t i = 0; i < relay->agent_count; i++) {
        if (relay->agents[i].account == provider) {
            relay->agents[i].is_due = true;
            relay->due_ns = 0;
        }
    }
}

/* Returns the job as it is relayed from now on, or NULL and the limit that is reached. */
static struct relayed *begin(struct output_relay *relay, const struct exchange *exchange,
                             const struct id128 *id, uint32_t owner, int64_t now_ns,
                             int64_t *ret_limit)
{
    size_t of_owner = 0;
    for (size_t i = 0; i < relay->job_count; i++) {
        of_owner += relay->jobs[i]->owner == owner;
    }
    const bool is_full = relay->job_count == OUTPUT_RELAY_JOBS;
    if (is_full || of_owner == OUTPUT_RELAY_JOBS_OF_ACCOUNT) {
        *ret_limit = is_full ? OUTPUT_RELAY_JOBS : OUTPUT_RELAY_JOBS_OF_ACCOUNT;
        return NULL;
    }
    struct relayed *job = calloc(1, sizeof *job);
    if (job == NULL) {
        fatal("out of memory");
    }
    *job = (struct relayed){
        .job = *id, .owner = owner, .asked_ns = now_ns, .bucket = {OUTPUT_RELAY_JOB_RATE, now_ns}};
    job->last = &job->first;
    relay->jobs[relay->job_count++] = job;
    be_due(relay, now_ns + OUTPUT_RELAY_TERM_NS);
    exchange_visit_holders(exchange, id, let_agent_go, relay);
    return job;
}

/* Answers the request that the session has waiting for the job; NULL: none waits. */
static struct outgoing *answer_former(struct output_relay *relay, uint64_t session,
                                      const struct id128 *job, const struct id128 *id)
{
    for (size_t i = 0; i < relay->follower_count; i++) {
        const struct follower former = relay->followers[i];
        if (former.session == session && id128_equal(&former.job, job)) {
            relay->followers[i] = relay->followers[--relay->follower_count];
            /* The same request may come again, over another connection. */
            return id128_equal(&former.id, id)
                       ? NULL
                       : answer(relay, NULL, former.after, former.session, &former.id);
        }
    }
    return NULL;
}

struct outgoing *output_relay_follow(struct output_relay *relay, const struct exchange *exchange,
                                     const struct request *request, int64_t now_ns,
                                     struct outgoing **ret_former)
{
    const Bourse__V1__OutputRequest *body = (const void *)request->translation.body;
    const struct id128 id = codec_id(body->job);
    const uint32_t owner = exchange_job_owner(exchange, &id);
    *ret_former = NULL;
    if (owner == EXCHANGE_NO_ACCOUNT || owner != request->account) {
        return outgoing_refuse(request, REJECT_NOT_FOUND, "job", 0, 0);
    }
    const struct id128 *request_id = &request->envelope.id;
    *ret_former = answer_former(relay, request->session, &id, request_id);
    int64_t limit = 0;
    struct relayed *job = find(relay, &id);
    if (job == NULL && exchange_job_is_open(exchange, &id)) {
        job = begin(relay, exchange, &id, owner, now_ns, &limit);
        if (job == NULL) {
            return outgoing_refuse(request, REJECT_BUSY, "jobs_followed", limit, limit);
        }
    }
    const bool goes_on = body->has_feed && body->feed == relay->feed && body->has_after &&
                         job != NULL && body->after <= job->through;
    const uint64_t after = goes_on ? body->after : 0;
    const int64_t wait_ms = body->has_wait_ms ? body->wait_ms : 0;
    if (job == NULL || job->through > after || wait_ms == 0 ||
        !exchange_job_is_open(exchange, &id)) {
        if (job != NULL) {
            job->asked_ns = now_ns;
        }
        return answer(relay, job, after, request->session, request_id);
    }
    if (relay->follower_count == OUTPUT_RELAY_WAITING) {
        return outgoing_refuse(request, REJECT_BUSY, "followers", OUTPUT_RELAY_WAITING,
                               OUTPUT_RELAY_WAITING);
    }
    job->asked_ns = now_ns;
    const struct follower follower = {.session = request->session,
                                      .account = request->account,
                                      .id = *request_id,
                                      .job = id,
                                      .after = after,
                                      .until_ns = now_ns + wait_ms * NS_PER_MS};
    relay->followers[relay->follower_count++] = follower;
    be_due(relay, follower.until_ns);
    return NULL;
}

/* ---------------------------------------------------------------- agents */

static bool pour(struct bucket *bucket, int64_t rate, int64_t now_ns, int64_t bytes)
{
    const int64_t passed_ns = now_ns - bucket->filled_ns;
    if (passed_ns >= NS_PER_S) {
        bucket->bytes = rate;
        bucket->filled_ns = now_ns;
    } else if (passed_ns >= NS_PER_MS) {
        bucket->bytes += rate / 1000 * (passed_ns / NS_PER_MS);
        bucket->bytes = bucket->bytes < rate ? bucket->bytes : rate;
        bucket->filled_ns = now_ns;
    }
    if (bucket->bytes < bytes) {
        return false;
    }
    bucket->bytes -= bytes;
    return true;
}

static void add_piece(struct output_relay *relay, struct relayed *job,
                      const Bourse__V1__OutputPiece *wire, int64_t now_ns)
{
    const size_t weight = wire->bytes.len + OUTPUT_RELAY_PIECE_BYTES;
    if (!pour(&job->bucket, OUTPUT_RELAY_JOB_RATE, now_ns, (int64_t)weight) ||
        !pour(&relay->bucket, OUTPUT_RELAY_RATE, now_ns, (int64_t)weight)) {
        return; /* its followers see the gap */
    }
    struct piece *piece = malloc(sizeof *piece + wire->bytes.len);
    if (piece == NULL) {
        return;
    }
    *piece = (struct piece){.number = ++job->through,
                            .index = wire->index,
                            .attempt = wire->attempt,
                            .stream = wire->stream,
                            .offset = wire->offset,
                            .size = wire->bytes.len};
    memcpy(piece->bytes, wire->bytes.data, wire->bytes.len);
    *job->last = piece;
    job->last = &piece->next;
    job->kept_bytes += weight;
    while (job->kept_bytes > OUTPUT_RELAY_KEPT_BYTES) {
        drop_oldest(job);
    }
}

static void take_pieces(struct output_relay *relay, const struct exchange *exchange,
                        const struct request *request, int64_t now_ns)
{
    const Bourse__V1__OutputPost *body = (const void *)request->translation.body;
    for (size_t i = 0; i < body->n_pieces; i++) {
        const Bourse__V1__OutputPiece *wire = body->pieces[i];
        struct id128 id;
        if (!exchange_runs(exchange, request->account, wire->lease, wire->index, wire->attempt,
                           &id)) {
            continue; /* a result may have been faster */
        }
        struct relayed *job = find(relay, &id);
        if (job != NULL) {
            add_piece(relay, job, wire, now_ns);
            be_due(relay, now_ns + OUTPUT_RELAY_INTERVAL_NS);
        }
    }
}

static void note_followed(void *context, uint32_t provider, uint64_t lease, const struct id128 *job)
{
    struct output_relay *relay = context;
    (void)provider;
    if (relay->lease_count < LIMIT_LEASES && find(relay, job) != NULL) {
        Bourse__V1__OutputLease *wire = &relay->leases[relay->lease_count];
        bourse__v1__output_lease__init(wire);
        wire->lease = lease;
        relay->lease_pointers[relay->lease_count++] = wire;
    }
}

static void find_followed(struct output_relay *relay, const struct exchange *exchange,
                          uint32_t account)
{
    relay->lease_count = 0;
    if (relay->job_count > 0) {
        exchange_visit_held(exchange, account, note_followed, relay);
    }
}

/* Makes the answer to an agent, of the leases that find_followed has found. */
static struct outgoing *wanted(struct output_relay *relay, uint64_t session, const struct id128 *id)
{
    Bourse__V1__OutputWanted reply = BOURSE__V1__OUTPUT_WANTED__INIT;
    reply.n_leases = relay->lease_count;
    reply.leases = relay->lease_pointers;
    return outgoing_address(outgoing_message(OUTGOING_REPLY, MESSAGE_OUTPUT_WANTED, &reply.base),
                            session, id);
}

static struct outgoing *answer_former_post(struct output_relay *relay, uint64_t session,
                                           const struct id128 *id)
{
    for (size_t i = 0; i < relay->agent_count; i++) {
        const struct agent_asking former = relay->agents[i];
        if (former.session == session) {
            relay->agents[i] = relay->agents[--relay->agent_count];
            relay->lease_count = 0;
            return id128_equal(&former.id, id) ? NULL : wanted(relay, former.session, &former.id);
        }
    }
    return NULL;
}

struct outgoing *output_relay_post(struct output_relay *relay, const struct exchange *exchange,
                                   const struct request *request, int64_t now_ns,
                                   struct outgoing **ret_former)
{
    const struct id128 *id = &request->envelope.id;
    *ret_former = answer_former_post(relay, request->session, id);
    take_pieces(relay, exchange, request, now_ns);
    find_followed(relay, exchange, request->account);
    if (relay->lease_count > 0) {
        return wanted(relay, request->session, id);
    }
    if (relay->agent_count == OUTPUT_RELAY_AGENTS) {
        return outgoing_refuse(request, REJECT_BUSY, "agents", OUTPUT_RELAY_AGENTS,
                               OUTPUT_RELAY_AGENTS);
    }
    const struct agent_asking agent = {.session = request->session,
                                       .id = *id,
                                       .account = request->account,
                                       .until_ns = now_ns + LIMIT_WAIT_MS * NS_PER_MS};
    relay->agents[relay->agent_count++] = agent;
    be_due(relay, agent.until_ns);
    return NULL;
}

void output_relay_granted(struct output_relay *relay, uint32_t account, const struct id128 *job)
{
    if (relay->job_count > 0 && find(relay, job) != NULL) {
        let_agent_go(relay, account, 0, job);
    }
}

void output_relay_forget(struct output_relay *relay, uint64_t session)
{
    for (size_t i = relay->follower_count; i-- > 0;) {
        if (relay->followers[i].session == session) {
            relay->followers[i] = relay->followers[--relay->follower_count];
        }
    }
    for (size_t i = relay->agent_count; i-- > 0;) {
        if (relay->agents[i].session == session) {
            relay->agents[i] = relay->agents[--relay->agent_count];
        }
    }
}

/* ---------------------------------------------------------------- what is due */

int64_t output_relay_due_ns(const struct output_relay *relay)
{
    return relay->due_ns;
}

static bool has_follower(const struct output_relay *relay, const struct id128 *job)
{
    for (size_t i = 0; i < relay->follower_count; i++) {
        if (id128_equal(&relay->followers[i].job, job)) {
            return true;
        }
    }
    return false;
}

/* Drops the jobs that nobody follows any more, and looks when something is due again. */
static void make_round(struct output_relay *relay, int64_t now_ns)
{
    relay->due_ns = INT64_MAX;
    for (size_t i = relay->job_count; i-- > 0;) {
        const struct relayed *job = relay->jobs[i];
        const int64_t end_ns = job->asked_ns + OUTPUT_RELAY_TERM_NS;
        if (has_follower(relay, &job->job)) {
            continue; /* its answer comes first */
        }
        if (end_ns <= now_ns) {
            drop_job(relay, i);
        } else {
            be_due(relay, end_ns);
        }
    }
    for (size_t i = 0; i < relay->follower_count; i++) {
        be_due(relay, relay->followers[i].until_ns);
    }
    for (size_t i = 0; i < relay->agent_count; i++) {
        be_due(relay, relay->agents[i].until_ns);
    }
}

/* Names the account whose budget pays for the answer. */
static struct outgoing *paid_by(struct outgoing *outgoing, uint32_t account)
{
    if (outgoing != NULL) {
        outgoing->account = account;
    }
    return outgoing;
}

struct outgoing *output_relay_next(struct output_relay *relay, const struct exchange *exchange,
                                   int64_t now_ns)
{
    if (now_ns < relay->due_ns) {
        return NULL;
    }
    for (size_t i = relay->agent_count; i-- > 0;) {
        const struct agent_asking agent = relay->agents[i];
        if (agent.is_due || agent.until_ns <= now_ns) {
            relay->agents[i] = relay->agents[--relay->agent_count];
            find_followed(relay, exchange, agent.account);
            return paid_by(wanted(relay, agent.session, &agent.id), agent.account);
        }
    }
    for (size_t i = relay->follower_count; i-- > 0;) {
        const struct follower follower = relay->followers[i];
        struct relayed *job = find(relay, &follower.job);
        if (job == NULL || job->through > follower.after || follower.until_ns <= now_ns) {
            relay->followers[i] = relay->followers[--relay->follower_count];
            if (job != NULL) {
                job->asked_ns = now_ns;
            }
            return paid_by(answer(relay, job, follower.after, follower.session, &follower.id),
                           follower.account);
        }
    }
    make_round(relay, now_ns);
    return NULL;
}
