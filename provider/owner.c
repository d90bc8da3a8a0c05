#include "provider/owner.h"

#include "base/text.h"
#include "provider/report.h"
#include "runtime/files.h"
#include "runtime/log.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum wish { WISH_WITHDRAWN, WISH_OFFERED, WISH_DRAINED };

/* A client that waits for an answer. */
struct waiting {
    uint64_t client;
    enum wish wish;
    int64_t until_ns;
};

struct owner {
    struct control *control;
    char folder[CONFIG_PATH_SIZE];
    bool is_paused, is_draining;
    /* End of the pause, by the wall clock, which is what people mean; 0: until resumed. */
    int64_t until_ms;
    struct waiting waiting[CONTROL_CLIENTS_MAX];
    size_t waiting_count;
};

/* ---------------------------------------------------------------- the kept pause */

static void path_of(const struct owner *owner, char ret_path[CONFIG_PATH_SIZE + 16])
{
    (void)snprintf(ret_path, CONFIG_PATH_SIZE + 16, "%s/%s", owner->folder, OWNER_PAUSED);
}

bool owner_read_pause(const char *path, int64_t *ret_until_ms, struct problem *ret_problem)
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    if (!file_read(path, CONTROL_LINE_MAX, &bytes, &length, ret_problem)) {
        return false;
    }
    json_t *root = json_loadb((const char *)bytes, length, JSON_REJECT_DUPLICATES, NULL);
    const json_t *until = json_object_get(root, "until_ms");
    const bool is_read = json_is_integer(until) && json_integer_value(until) >= 0;
    if (is_read) {
        *ret_until_ms = json_integer_value(until);
    } else {
        problem_set(ret_problem, "%s cannot be read", path);
    }
    json_decref(root);
    free(bytes);
    return is_read;
}

/* An unreadable file counts as a pause: offering against the owner's will is the worse mistake. */
static void load_pause(struct owner *owner)
{
    char path[CONFIG_PATH_SIZE + 16];
    path_of(owner, path);
    if (access(path, F_OK) != 0) {
        return;
    }
    struct problem problem = {""};
    owner->is_paused = true;
    if (!owner_read_pause(path, &owner->until_ms, &problem)) {
        log_warning("%s; the pause lasts until `bourse-provider resume`", problem.text);
    }
}

static bool keep_pause(const struct owner *owner, int64_t until_ms, struct problem *problem)
{
    char path[CONFIG_PATH_SIZE + 16];
    char text[64];
    path_of(owner, path);
    int length = snprintf(text, sizeof text, "{\"until_ms\":%lld}\n", (long long)until_ms);
    return file_write(path, text, (size_t)length, 0600, problem);
}

static bool forget_pause(const struct owner *owner, struct problem *problem)
{
    char path[CONFIG_PATH_SIZE + 16];
    path_of(owner, path);
    if (unlink(path) != 0 && errno != ENOENT) {
        problem_set(problem, "cannot remove %s: %s", path, strerror(errno));
        return false;
    }
    return file_sync_folder(owner->folder, problem);
}

/* ---------------------------------------------------------------- life */

bool owner_open(const char *folder, struct owner **ret_owner, struct problem *ret_problem)
{
    struct owner *owner = calloc(1, sizeof *owner);
    if (owner == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    (void)snprintf(owner->folder, sizeof owner->folder, "%s", folder);
    if (!control_open(folder, &owner->control, ret_problem)) {
        owner_close(&owner);
        return false;
    }
    load_pause(owner);
    *ret_owner = owner;
    return true;
}

void owner_close(struct owner **self)
{
    struct owner *owner = *self;
    if (owner != NULL) {
        control_close(&owner->control);
        free(owner);
        *self = NULL;
    }
}

void owner_begin(const struct owner *owner, struct agent_session *session, int64_t now_ns)
{
    if (owner->is_paused) {
        log_info("paused by its owner, nothing is offered: `bourse-provider resume` ends it");
        agent_session_rest(session, now_ns, true, false);
    }
}

int owner_fd(const struct owner *owner)
{
    return control_fd(owner->control);
}

int64_t owner_next_deadline_ns(const struct owner *owner)
{
    int64_t deadline_ns = control_next_deadline_ns(owner->control);
    for (size_t i = 0; i < owner->waiting_count; i++) {
        if (owner->waiting[i].until_ns < deadline_ns) {
            deadline_ns = owner->waiting[i].until_ns;
        }
    }
    return deadline_ns;
}

bool owner_wants_drain(const struct owner *owner)
{
    return owner->is_draining;
}

/* ---------------------------------------------------------------- status */

static json_t *asks_json(const struct agent_session *session)
{
    json_t *asks = json_array();
    struct agent_ask_row row;
    for (size_t i = 0; agent_session_ask(session, i, &row); i++) {
        char device[33];
        text_hex(row.terms.device.bytes, sizeof row.terms.device.bytes, device);
        json_t *ask =
            json_pack("{s:s, s:s, s:I, s:I, s:b, s:b, s:b, s:b}", "device", device, "instrument",
                      row.instrument, "slots", (json_int_t)row.terms.slots, "price_micro",
                      (json_int_t)row.terms.price_micro, "standing", (int)row.is_standing,
                      "by_hand", (int)row.is_by_hand, "cancelled", (int)row.is_taken_back,
                      "interruptible", (int)row.terms.is_interruptible);
        if (row.refusal[0] != '\0') {
            (void)json_object_set_new(ask, "refusal", json_string(row.refusal));
        }
        if (!row.is_by_hand) { /* the market shows the conditions of an ask placed by hand */
            (void)report_conditions(&row.terms.conditions, ask);
        }
        (void)json_array_append_new(asks, ask);
    }
    return asks;
}

static json_t *lease_json(const struct agent_lease_row *row, int64_t now_ns)
{
    char job[33];
    char device[33];
    text_hex(row->grant.job.bytes, sizeof row->grant.job.bytes, job);
    text_hex(row->grant.device.bytes, sizeof row->grant.device.bytes, device);
    int64_t left_ms = row->term_end_ns > now_ns ? (row->term_end_ns - now_ns) / NS_PER_MS : 0;
    return json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "lease",
                     (json_int_t)row->grant.lease, "job", job, "device", device, "slots",
                     (json_int_t)row->grant.slots, "price_micro",
                     (json_int_t)row->grant.price_micro, "running", (json_int_t)row->running,
                     "queued", (json_int_t)row->queued, "owed", (json_int_t)row->owed,
                     "term_left_ms", (json_int_t)left_ms);
}

static json_t *leases_json(const struct agent_session *session, int64_t now_ns)
{
    static struct agent_lease_row rows[OWNER_LEASES_MAX]; /* large; one thread asks */
    json_t *leases = json_array();
    size_t count = agent_session_leases(session, rows, OWNER_LEASES_MAX);
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(leases, lease_json(&rows[i], now_ns));
    }
    return leases;
}

/* An ask that was cancelled by hand is not waited for, because the owner wants it so. */
static bool waits_for_asks(const struct agent_session *session)
{
    struct agent_ask_row row;
    for (size_t i = 0; agent_session_ask(session, i, &row); i++) {
        if (!row.is_standing && !row.is_taken_back) {
            return true;
        }
    }
    return false;
}

static const char *state_of(const struct owner *owner, const struct agent_session *session,
                            const struct owner_facts *facts)
{
    struct agent_counts counts = agent_session_counts(session);
    return facts->is_leaving               ? "leaving"
           : owner->is_draining            ? "draining"
           : owner->is_paused              ? "paused"
           : !counts.ready                 ? "disconnected"
           : facts->is_crowded             ? "disk-full"
           : agent_session_frozen(session) ? "frozen"
           : waits_for_asks(session)       ? "asking"
                                           : "offering";
}

static json_t *status(const struct owner *owner, const struct agent_session *session,
                      int64_t now_ns, int64_t wall_ms, const struct owner_facts *facts)
{
    struct agent_counts counts = agent_session_counts(session);
    char cluster[33];
    text_hex(facts->market->cluster.bytes, sizeof facts->market->cluster.bytes, cluster);
    json_t *answer = json_pack("{s:b, s:i, s:s, s:I, s:s, s:s, s:I, s:I}", "ok", 1, "version",
                               OWNER_STATUS_VERSION, "program", "bourse-provider " BOURSE_VERSION,
                               "pid", (json_int_t)getpid(), "name", facts->config->name, "state",
                               state_of(owner, session, facts), "now_ms", (json_int_t)wall_ms,
                               "started_ms", (json_int_t)facts->started_ms);
    json_t *market = json_pack("{s:b, s:I, s:s, s:s}", "connected", (int)counts.ready, "since_ms",
                               (json_int_t)facts->since_ms, "control", facts->market->control,
                               "cluster", cluster);
    json_t *paused = owner->is_paused ? json_pack("{s:I}", "until_ms", (json_int_t)owner->until_ms)
                                      : json_null();
    json_t *results = json_pack("{s:I, s:I}", "accepted", (json_int_t)counts.accepted, "refused",
                                (json_int_t)counts.refused);
    json_t *error = facts->last_error[0] == '\0'
                        ? json_null()
                        : json_pack("{s:s, s:I}", "text", facts->last_error, "at_ms",
                                    (json_int_t)facts->last_error_ms);
    (void)json_object_set_new(answer, "market", market); /* without memory the member is left out */
    (void)json_object_set_new(answer, "paused", paused);
    (void)json_object_set_new(answer, "isolation", json_integer(facts->isolation));
    (void)json_object_set_new(answer, "asks", asks_json(session));
    (void)json_object_set_new(answer, "lease_count", json_integer(counts.leases));
    (void)json_object_set_new(answer, "leases", leases_json(session, now_ns));
    (void)json_object_set_new(answer, "running", json_integer(counts.running));
    (void)json_object_set_new(answer, "queued", json_integer(counts.queued));
    (void)json_object_set_new(answer, "owed", json_integer(counts.owed));
    (void)json_object_set_new(answer, "jails", json_integer(lanes_jails(facts->lanes)));
    (void)json_object_set_new(answer, "results", results);
    (void)json_object_set_new(answer, "last_error", error);
    return answer;
}

/* ---------------------------------------------------------------- requests that take a while */

/* Makes the progress of a pause, a resume or a drain. */
static json_t *progress(const struct owner *owner, const struct agent_session *session,
                        const struct owner_facts *facts)
{
    struct agent_counts counts = agent_session_counts(session);
    return json_pack("{s:b, s:s, s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:I}", "ok", 1, "state",
                     facts == NULL ? "ended" : state_of(owner, session, facts), "connected",
                     (int)counts.ready, "frozen", (int)agent_session_frozen(session), "withdrawn",
                     (int)agent_session_withdrawn(session), "asks_standing",
                     (json_int_t)counts.asks_standing, "running", (json_int_t)counts.running,
                     "owed", (json_int_t)counts.owed, "accepted", (json_int_t)counts.accepted,
                     "until_ms", (json_int_t)(owner->is_paused ? owner->until_ms : 0));
}

static bool has_come_true(const struct agent_session *session, enum wish wish)
{
    switch (wish) {
    case WISH_WITHDRAWN:
        return agent_session_withdrawn(session) || agent_session_frozen(session);
    case WISH_OFFERED:
        return !waits_for_asks(session) || agent_session_frozen(session);
    case WISH_DRAINED:
        return false; /* owner_ends */
    }
    return false;
}

static void answer_waiting(struct owner *owner, const struct agent_session *session, int64_t now_ns,
                           const struct owner_facts *facts)
{
    size_t kept = 0;
    for (size_t i = 0; i < owner->waiting_count; i++) {
        const struct waiting one = owner->waiting[i];
        if (!control_waits(owner->control, one.client)) {
            continue; /* the client hung up */
        }
        if (has_come_true(session, one.wish) || now_ns >= one.until_ns) {
            control_answer(owner->control, now_ns, one.client, progress(owner, session, facts));
        } else {
            owner->waiting[kept++] = one;
        }
    }
    owner->waiting_count = kept;
}

static void wait_for(struct owner *owner, uint64_t client, enum wish wish, int64_t until_ns)
{
    /* The place is that of a client that hung up, or the next one. No more clients wait than there
     * are places. */
    size_t place = 0;
    while (place < owner->waiting_count &&
           control_waits(owner->control, owner->waiting[place].client)) {
        place++;
    }
    assert(place < CONTROL_CLIENTS_MAX);
    owner->waiting[place] = (struct waiting){.client = client, .wish = wish, .until_ns = until_ns};
    owner->waiting_count += place == owner->waiting_count;
}

void owner_ends(struct owner *owner, const struct agent_session *session, int64_t now_ns)
{
    for (size_t i = 0; i < owner->waiting_count; i++) {
        control_answer(owner->control, now_ns, owner->waiting[i].client,
                       progress(owner, session, NULL));
    }
    owner->waiting_count = 0;
}

/* ---------------------------------------------------------------- commands */

/* A call is one request with the data to answer it. */
struct call {
    struct owner *owner;
    struct agent_session *session;
    const struct owner_facts *facts;
    int64_t now_ns, wall_ms;
    uint64_t client;
};

static void refuse(const struct call *call, const char *error, const char *text)
{
    control_answer(call->owner->control, call->now_ns, call->client, control_refusal(error, text));
}

static void pause_agent(const struct call *call, const struct control_request *request)
{
    struct owner *owner = call->owner;
    struct problem problem = {""};
    int64_t until_ms = request->for_ms == 0 ? 0 : call->wall_ms + request->for_ms;
    /* The pause is written first, so that it survives a crash. On a full disk it holds in
     * memory. */
    bool is_kept = keep_pause(owner, until_ms, &problem);
    if (!is_kept) {
        log_warning("the pause will not survive a restart: %s", problem.text);
    }
    log_info("paused by its owner");
    owner->is_paused = true;
    owner->until_ms = until_ms;
    agent_session_rest(call->session, call->now_ns, true, request->now);
    wait_for(owner, call->client, WISH_WITHDRAWN, call->now_ns + OWNER_WAIT_NS);
}

static bool end_pause(struct owner *owner, struct agent_session *session, int64_t now_ns,
                      struct problem *problem)
{
    if (!forget_pause(owner, problem)) {
        return false;
    }
    owner->is_paused = false;
    owner->until_ms = 0;
    if (!owner->is_draining) {
        agent_session_rest(session, now_ns, false, false);
    }
    return true;
}

static bool has_cancelled_ask(const struct agent_session *session)
{
    struct agent_ask_row row;
    for (size_t i = 0; agent_session_ask(session, i, &row); i++) {
        if (row.is_taken_back) {
            return true;
        }
    }
    return false;
}

static void resume_agent(const struct call *call)
{
    struct owner *owner = call->owner;
    struct problem problem = {""};
    if (owner->is_draining || call->facts->is_leaving) {
        refuse(call, "STATE", "the agent ends; start it again with `bourse-provider run`");
        return;
    }
    if (owner->is_paused && !end_pause(owner, call->session, call->now_ns, &problem)) {
        refuse(call, "LOCAL", problem.text);
        return;
    }
    if (has_cancelled_ask(call->session)) {
        agent_session_rest(call->session, call->now_ns, false, false);
    }
    log_info("resumed by its owner");
    wait_for(owner, call->client, WISH_OFFERED, call->now_ns + OWNER_WAIT_NS);
}

static void drain_agent(const struct call *call)
{
    log_info("draining: no new work; the process ends when all results are delivered");
    call->owner->is_draining = true;
    agent_session_rest(call->session, call->now_ns, true, false);
    wait_for(call->owner, call->client, WISH_DRAINED, INT64_MAX);
}

static void obey(const struct call *call, const struct control_request *request)
{
    switch (request->command) {
    case CONTROL_STATUS:
        control_answer(
            call->owner->control, call->now_ns, call->client,
            status(call->owner, call->session, call->now_ns, call->wall_ms, call->facts));
        break;
    case CONTROL_PAUSE:
        pause_agent(call, request);
        break;
    case CONTROL_RESUME:
        resume_agent(call);
        break;
    case CONTROL_DRAIN:
        drain_agent(call);
        break;
    }
}

void owner_hear(struct owner *owner, struct agent_session *session, int64_t now_ns, int64_t wall_ms,
                const struct owner_facts *facts)
{
    struct call call = {
        .owner = owner, .session = session, .facts = facts, .now_ns = now_ns, .wall_ms = wall_ms};
    struct control_request request;
    struct problem problem = {""};
    while (control_next(owner->control, now_ns, &call.client, &request)) {
        obey(&call, &request);
    }
    if (owner->is_paused && owner->until_ms != 0 && wall_ms >= owner->until_ms) {
        log_info("the pause is over");
        if (!end_pause(owner, session, now_ns, &problem)) {
            log_error("%s: the pause stays", problem.text);
            owner->until_ms = 0;
        }
    }
    answer_waiting(owner, session, now_ns, facts);
}
