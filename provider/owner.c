#include "provider/owner.h"

#include "provider/owner_status.h"
#include "provider/pauses.h"
#include "runtime/log.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum wish { WISH_WITHDRAWN, WISH_OFFERED, WISH_DRAINED };

/* A client that waits for an answer. */
struct waiting {
    uint64_t client;
    enum wish wish;
    char device[ATTRIBUTE_TEXT_SIZE]; /* "": of the whole agent */
    int64_t until_ns;
};

struct owner {
    struct control *control;
    char folder[CONFIG_PATH_SIZE];
    bool is_draining;
    bool is_in_use, is_overridden; /* as owner_yield and owner_take_override say */
    struct pauses pauses;
    struct problem unkept; /* why the file does not have the pauses; "": it has them */
    /* Time at which programs have saved their state, and what still runs is cancelled; INT64_MAX:
     * nobody was told to. */
    int64_t saved_ns;
    struct waiting waiting[CONTROL_CLIENTS_MAX];
    size_t waiting_count;
};

/* ---------------------------------------------------------------- the kept pause */

static void path_of(const struct owner *owner, char ret_path[CONFIG_PATH_SIZE + 16])
{
    (void)snprintf(ret_path, CONFIG_PATH_SIZE + 16, "%s/%s", owner->folder, OWNER_PAUSED);
}

/* An unreadable file counts as a pause: offering against the owner's will is the worse mistake. */
static void load_pauses(struct owner *owner)
{
    char path[CONFIG_PATH_SIZE + 16];
    path_of(owner, path);
    struct stat status;
    if (lstat(path, &status) != 0 && errno == ENOENT) {
        return;
    }
    struct problem problem = {""};
    if (!pauses_read(path, &owner->pauses, &problem)) {
        owner->pauses.is_whole = true;
        log_warning("%s; the pause lasts until `bourse-provider resume`", problem.text);
    }
}

static bool keep_pauses(const struct owner *owner, const struct pauses *pauses,
                        struct problem *problem)
{
    char path[CONFIG_PATH_SIZE + 16];
    path_of(owner, path);
    return pauses_write(path, pauses, problem);
}

/* ---------------------------------------------------------------- life */

bool owner_open(const char *folder, struct owner **ret_owner, struct problem *ret_problem)
{
    struct owner *owner = calloc(1, sizeof *owner);
    if (owner == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    owner->saved_ns = INT64_MAX;
    (void)snprintf(owner->folder, sizeof owner->folder, "%s", folder);
    if (!control_open(folder, &owner->control, ret_problem)) {
        owner_close(&owner);
        return false;
    }
    load_pauses(owner);
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

/* The device may have another label than at the time of its pause. */
static void begin_device_pause(struct agent_session *session, int64_t now_ns,
                               struct paused_device *device)
{
    struct agent_device_row row;
    size_t index;
    if (agent_session_find_id(session, &device->id, &index, &row)) {
        (void)snprintf(device->label, sizeof device->label, "%s", row.label);
        log_info("the device \"%s\" is paused by its owner", device->label);
        agent_session_withhold(session, now_ns, index, AGENT_WITHHOLD);
    } else {
        log_info(
            "the device \"%s\" is paused by its owner, and not among the devices of this start",
            device->label);
    }
}

void owner_begin(struct owner *owner, struct agent_session *session, int64_t now_ns)
{
    for (size_t i = 0; i < owner->pauses.count; i++) {
        begin_device_pause(session, now_ns, &owner->pauses.devices[i]);
    }
    if (owner->pauses.is_whole) {
        agent_session_rest(session, now_ns, true, false);
    }
}

bool owner_offers_nothing(const struct owner *owner, const struct agent_session *session)
{
    return owner->pauses.is_whole ||
           (agent_session_all_withheld(session) && !agent_session_holds(session, ""));
}

int owner_fd(const struct owner *owner)
{
    return control_fd(owner->control);
}

int64_t owner_next_deadline_ns(const struct owner *owner)
{
    int64_t deadline_ns = control_next_deadline_ns(owner->control);
    deadline_ns = owner->saved_ns < deadline_ns ? owner->saved_ns : deadline_ns;
    for (size_t i = 0; i < owner->pauses.count; i++) {
        const int64_t saved_ns = owner->pauses.devices[i].saved_ns;
        deadline_ns = saved_ns != 0 && saved_ns < deadline_ns ? saved_ns : deadline_ns;
    }
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

static bool is_spent(const struct owner_facts *facts)
{
    return facts->network != NULL && network_is_spent(facts->network);
}

static const char *state_of(const struct owner *owner, const struct agent_session *session,
                            const struct owner_facts *facts)
{
    struct agent_counts counts = agent_session_counts(session);
    return facts->is_leaving        ? "leaving"
           : owner->is_draining     ? "draining"
           : owner->pauses.is_whole ? "paused"
           : owner->is_in_use       ? "in-use"
           : agent_session_all_withheld(session)
               ? (agent_session_holds(session, "") ? "withheld" : "paused")
           : !counts.ready                 ? "disconnected"
           : facts->is_crowded             ? "disk-full"
           : facts->lacks_folder           ? "folder-missing"
           : is_spent(facts)               ? "network-spent"
           : agent_session_frozen(session) ? "frozen"
           : owner_waits_for_asks(session) ? "asking"
                                           : "offering";
}

/* ---------------------------------------------------------------- requests that take a while */

static json_t *progress(const struct owner *owner, const struct agent_session *session,
                        const struct owner_facts *facts, const char *device)
{
    return owner_progress(&owner->pauses, facts == NULL ? "ended" : state_of(owner, session, facts),
                          session, device, owner->unkept.text);
}

static bool is_withdrawn(const struct agent_session *session, const char *device)
{
    struct agent_device_row row;
    size_t index;
    return device[0] == '\0'
               ? agent_session_withdrawn(session)
               : !agent_session_find_label(session, device, &index, &row) || row.is_withdrawn;
}

/* Returns true when the device's ask stands, or all asks that should. */
static bool is_offered(const struct agent_session *session, const char *device)
{
    struct agent_device_row row;
    size_t index;
    return device[0] == '\0'
               ? !owner_waits_for_asks(session)
               : !agent_session_find_label(session, device, &index, &row) || row.is_standing;
}

static bool has_come_true(const struct agent_session *session, const struct waiting *waiting)
{
    switch (waiting->wish) {
    case WISH_WITHDRAWN:
        return is_withdrawn(session, waiting->device) || agent_session_frozen(session);
    case WISH_OFFERED:
        return is_offered(session, waiting->device) || agent_session_frozen(session);
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
        if (has_come_true(session, &one) || now_ns >= one.until_ns) {
            control_answer(owner->control, now_ns, one.client,
                           progress(owner, session, facts, one.device));
        } else {
            owner->waiting[kept++] = one;
        }
    }
    owner->waiting_count = kept;
}

static void wait_for(struct owner *owner, uint64_t client, enum wish wish, const char *device,
                     int64_t until_ns)
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
    (void)snprintf(owner->waiting[place].device, ATTRIBUTE_TEXT_SIZE, "%s", device);
    owner->waiting_count += place == owner->waiting_count;
}

void owner_ends(struct owner *owner, const struct agent_session *session, int64_t now_ns)
{
    for (size_t i = 0; i < owner->waiting_count; i++) {
        control_answer(owner->control, now_ns, owner->waiting[i].client,
                       progress(owner, session, NULL, ""));
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

static enum agent_withhold way_of(const struct control_request *request)
{
    return request->now    ? AGENT_WITHHOLD_CANCEL
           : request->save ? AGENT_WITHHOLD_SAVE
                           : AGENT_WITHHOLD;
}

/* Refuses a request of a device that is not offered, and lists those that are. */
static bool takes_device(const struct call *call, const char *device, size_t *ret_index)
{
    struct agent_device_row row;
    struct problem problem;
    char names[256] = "";
    size_t length = 0;
    if (agent_session_find_label(call->session, device, ret_index, &row)) {
        return true;
    }
    for (size_t i = 0; agent_session_device(call->session, i, &row) && length < sizeof names; i++) {
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s",
                                   i == 0 ? "" : ", ", row.label);
    }
    problem_set(&problem, "this agent has no device \"%s\"; its devices are %s", device, names);
    refuse(call, "NOT_FOUND", problem.text);
    return false;
}

static void pause_device(const struct call *call, const struct control_request *request,
                         size_t index)
{
    log_info("the device \"%s\" is paused by its owner", request->device);
    agent_session_withhold(call->session, call->now_ns, index, way_of(request));
}

static void pause_whole(const struct call *call, const struct control_request *request)
{
    log_info("paused by its owner");
    agent_session_rest(call->session, call->now_ns, true, request->now);
    call->owner->saved_ns = INT64_MAX;
    if (request->save) {
        agent_session_hand_back(call->session, call->now_ns);
        call->owner->saved_ns = call->now_ns + IDLE_SAVE_NS;
    }
}

static bool add_device_pause(const struct call *call, const struct control_request *request,
                             size_t index, int64_t until_ms)
{
    struct paused_device device = {.until_ms = until_ms,
                                   .saved_ns = request->save ? call->now_ns + IDLE_SAVE_NS : 0};
    struct agent_device_row row;
    (void)agent_session_device(call->session, index, &row);
    device.id = row.device;
    (void)snprintf(device.label, sizeof device.label, "%s", row.label);
    return pauses_add(&call->owner->pauses, &device);
}

static void pause_agent(const struct call *call, const struct control_request *request)
{
    struct owner *owner = call->owner;
    const bool is_whole = request->device[0] == '\0';
    const int64_t until_ms = request->for_ms == 0 ? 0 : call->wall_ms + request->for_ms;
    size_t index = 0;
    if (!is_whole && !takes_device(call, request->device, &index)) {
        return;
    }
    if (is_whole) {
        owner->pauses.is_whole = true;
        owner->pauses.until_ms = until_ms;
    } else if (!add_device_pause(call, request, index, until_ms)) {
        refuse(call, "LIMIT", "too many devices are paused; resume one, or pause the agent");
        return;
    }
    /* The pause is written first, so that it survives a crash. On a full disk it holds in
     * memory. */
    if (!keep_pauses(owner, &owner->pauses, &owner->unkept)) {
        log_warning("the pause will not survive a restart: %s", owner->unkept.text);
    }
    if (is_whole) {
        pause_whole(call, request);
    } else {
        pause_device(call, request, index);
    }
    wait_for(owner, call->client, WISH_WITHDRAWN, request->device, call->now_ns + OWNER_WAIT_NS);
}

/* The pause of a device that is no longer offered just goes. */
static bool end_device_pause(struct owner *owner, struct agent_session *session, int64_t now_ns,
                             struct id128 id, struct problem *problem)
{
    struct pauses left = owner->pauses;
    struct agent_device_row row;
    size_t index;
    pauses_remove(&left, &id);
    if (!keep_pauses(owner, &left, problem)) {
        return false;
    }
    owner->pauses = left;
    owner->unkept.text[0] = '\0';
    if (agent_session_find_id(session, &id, &index, &row) && row.is_withheld) {
        agent_session_withhold(session, now_ns, index, AGENT_WITHHOLD_NOT);
    }
    return true;
}

static bool end_pause(struct owner *owner, struct agent_session *session, int64_t now_ns,
                      struct problem *problem)
{
    struct pauses left = owner->pauses;
    left.is_whole = false;
    left.until_ms = 0;
    if (!keep_pauses(owner, &left, problem)) {
        return false;
    }
    owner->pauses = left;
    owner->unkept.text[0] = '\0';
    owner->saved_ns = INT64_MAX;
    if (!owner->is_draining && !owner->is_in_use) {
        agent_session_rest(session, now_ns, false, false);
    }
    return true;
}

void owner_yield(struct owner *owner, struct agent_session *session, int64_t now_ns, bool is_in_use)
{
    if (owner->is_in_use != is_in_use) {
        owner->is_in_use = is_in_use;
        if (!owner->pauses.is_whole && !owner->is_draining) {
            agent_session_rest(session, now_ns, is_in_use, false);
        }
    }
}

bool owner_take_override(struct owner *owner)
{
    const bool is_overridden = owner->is_overridden;
    owner->is_overridden = false;
    return is_overridden;
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

static void resume_device(const struct call *call, const char *device)
{
    struct owner *owner = call->owner;
    struct problem problem = {""};
    const struct paused_device *paused = pauses_device(&owner->pauses, device);
    size_t index;
    if (paused == NULL && !takes_device(call, device, &index)) {
        return;
    }
    if (paused != NULL &&
        !end_device_pause(owner, call->session, call->now_ns, paused->id, &problem)) {
        refuse(call, "LOCAL", problem.text);
        return;
    }
    log_info("the device \"%s\" is resumed by its owner", device);
    if (owner->pauses.is_whole || owner->is_in_use ||
        agent_session_holds(call->session, device)) { /* the device is not offered yet */
        control_answer(owner->control, call->now_ns, call->client,
                       progress(owner, call->session, call->facts, device));
        return;
    }
    wait_for(owner, call->client, WISH_OFFERED, device, call->now_ns + OWNER_WAIT_NS);
}

/* Ends the pauses of all devices, then that of the agent. */
static bool end_pauses(const struct call *call, struct problem *problem)
{
    struct owner *owner = call->owner;
    bool good = true;
    while (good && owner->pauses.count > 0) {
        good = end_device_pause(owner, call->session, call->now_ns, owner->pauses.devices[0].id,
                                problem);
    }
    return good &&
           (!owner->pauses.is_whole || end_pause(owner, call->session, call->now_ns, problem));
}

static void resume_agent(const struct call *call, const struct control_request *request)
{
    struct owner *owner = call->owner;
    struct problem problem = {""};
    if (owner->is_draining || call->facts->is_leaving) {
        refuse(call, "STATE", "the agent ends; start it again with `bourse-provider run`");
        return;
    }
    if (request->device[0] != '\0') {
        resume_device(call, request->device);
        return;
    }
    const bool was_in_use = owner->is_in_use;
    const bool only_in_use = was_in_use && !owner->pauses.is_whole;
    owner->is_in_use = false;
    owner->is_overridden = was_in_use;
    if (!end_pauses(call, &problem)) {
        owner->is_in_use = was_in_use;
        owner->is_overridden = false;
        refuse(call, "LOCAL", problem.text);
        return;
    }
    if (only_in_use || has_cancelled_ask(call->session)) {
        agent_session_rest(call->session, call->now_ns, false, false);
    }
    log_info("resumed by its owner");
    wait_for(owner, call->client, WISH_OFFERED, "", call->now_ns + OWNER_WAIT_NS);
}

static void drain_agent(const struct call *call)
{
    log_info("draining: no new work; the process ends when all results are delivered");
    call->owner->is_draining = true;
    agent_session_rest(call->session, call->now_ns, true, false);
    wait_for(call->owner, call->client, WISH_DRAINED, "", INT64_MAX);
}

static void obey(const struct call *call, const struct control_request *request)
{
    switch (request->command) {
    case CONTROL_STATUS:
        control_answer(call->owner->control, call->now_ns, call->client,
                       owner_status(&call->owner->pauses,
                                    state_of(call->owner, call->session, call->facts),
                                    call->session, call->now_ns, call->wall_ms, call->facts));
        break;
    case CONTROL_PAUSE:
        pause_agent(call, request);
        break;
    case CONTROL_RESUME:
        resume_agent(call, request);
        break;
    case CONTROL_DRAIN:
        drain_agent(call);
        break;
    }
}

/* Cancels what still runs on a device whose programs had their time, and ends its pause when that
 * is over. Returns true when the pause ended, and its entry is gone. */
static bool turn_device(struct owner *owner, struct agent_session *session, int64_t now_ns,
                        int64_t wall_ms, struct paused_device *device)
{
    struct agent_device_row row;
    struct problem problem = {""};
    size_t index;
    if (device->saved_ns != 0 && now_ns >= device->saved_ns) {
        device->saved_ns = 0;
        if (agent_session_find_id(session, &device->id, &index, &row)) {
            agent_session_withhold(session, now_ns, index, AGENT_WITHHOLD_CANCEL);
        }
    }
    if (device->until_ms == 0 || wall_ms < device->until_ms) {
        return false;
    }
    log_info("the pause of the device \"%s\" is over", device->label);
    if (!end_device_pause(owner, session, now_ns, device->id, &problem)) {
        log_error("%s: the pause stays", problem.text);
        device->until_ms = 0;
        return false;
    }
    return true;
}

static void turn_pauses(struct owner *owner, struct agent_session *session, int64_t now_ns,
                        int64_t wall_ms)
{
    struct problem problem = {""};
    if (now_ns >= owner->saved_ns) {
        owner->saved_ns = INT64_MAX;
        agent_session_rest(session, now_ns, true, true);
    }
    for (size_t i = 0; i < owner->pauses.count;) {
        if (!turn_device(owner, session, now_ns, wall_ms, &owner->pauses.devices[i])) {
            i++;
        }
    }
    if (owner->pauses.is_whole && owner->pauses.until_ms != 0 &&
        wall_ms >= owner->pauses.until_ms) {
        log_info("the pause is over");
        if (!end_pause(owner, session, now_ns, &problem)) {
            log_error("%s: the pause stays", problem.text);
            owner->pauses.until_ms = 0;
        }
    }
}

void owner_hear(struct owner *owner, struct agent_session *session, int64_t now_ns, int64_t wall_ms,
                const struct owner_facts *facts)
{
    struct call call = {
        .owner = owner, .session = session, .facts = facts, .now_ns = now_ns, .wall_ms = wall_ms};
    struct control_request request;
    while (control_next(owner->control, now_ns, &call.client, &request)) {
        obey(&call, &request);
    }
    turn_pauses(owner, session, now_ns, wall_ms);
    answer_waiting(owner, session, now_ns, facts);
}
