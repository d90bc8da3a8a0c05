/* provider/session/work.c keeps leases and their lanes. One subtask runs in a lane at a
 * time. The next is announced early, so that the shell fetches its inputs meanwhile. */
#include "provider/session/agent_session_internal.h"

#include "base/checked.h"
#include "provider/session/work_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TERM_LONGEST_MS INT64_C(31622400000) /* a year: bound on a term in a wrong message */

static struct lease *find_lease(const struct agent_session *session, uint64_t number)
{
    for (struct list_link *link = session->leases.next; link != &session->leases;
         link = link->next) {
        struct lease *lease = LIST_ELEMENT(link, struct lease, link);
        if (lease->grant.lease == number) {
            return lease;
        }
    }
    return NULL;
}

static bool was_done(const struct lease *lease, uint32_t index, uint32_t attempt)
{
    const struct remembered *place = &lease->done[work_table_place(index, AGENT_REMEMBERED)];
    return place->index == index && place->attempt == attempt;
}

static struct agent_work named(const struct work *work)
{
    return (struct agent_work){.lease = work->lease->grant.lease,
                               .index = work->index,
                               .attempt = work->attempt,
                               .lane = work->lane};
}

void work_act(struct agent_session *session, enum agent_action_type type, const struct work *work)
{
    session_act(session, &(struct agent_action){.type = type, .work = named(work)});
}

/* ---------------------------------------------------------------- lanes */

static bool is_active(enum work_state state)
{
    return state == WORK_RUNNING || state == WORK_LEFT;
}

void work_move(struct agent_session *session, struct work *work, enum work_state to)
{
    struct lease *lease = work->lease;
    session->work_in[work->state]--;
    session->work_in[to]++;
    lease->active -= is_active(work->state);
    lease->active += is_active(to);
    if (work->state == WORK_QUEUED) {
        list_remove(&work->lane_link);
    } else if (work->state == WORK_RUNNING) {
        lease->lanes[work->lane].running--;
    }
    if (to == WORK_RUNNING) {
        lease->lanes[work->lane].running++;
    }
    work->state = to;
}

static struct work *first_queued(const struct session_lane *lane)
{
    return list_empty(&lane->queue) ? NULL : LIST_ELEMENT(lane->queue.next, struct work, lane_link);
}

/* Adds to the lane's queue: urgent work goes before other work, in its own order. */
static void enqueue(struct session_lane *lane, struct work *work)
{
    struct list_link *before = &lane->queue;
    if (work->urgent) {
        before = lane->queue.next;
        while (before != &lane->queue && LIST_ELEMENT(before, struct work, lane_link)->urgent) {
            before = before->next;
        }
    }
    list_insert_before(before, &work->lane_link);
}

/* Starts the works that may start in the lane, and announces the next one. */
static void advance_lane(struct agent_session *session, struct lease *lease, uint32_t number)
{
    if (lease->over || number >= lease->grant.lanes) {
        return;
    }
    const struct session_lane *lane = &lease->lanes[number];
    struct work *work;
    while ((work = first_queued(lane)) != NULL && lane->running < lease->depth) {
        work_move(session, work, WORK_RUNNING);
        work_act(session, AGENT_START, work);
    }
    if (work != NULL && !work->prepared) {
        work->prepared = true;
        work_act(session, AGENT_PREPARE, work);
    }
}

enum agent_status agent_session_pipeline(struct agent_session *session, uint64_t number,
                                         uint32_t depth)
{
    struct lease *lease = find_lease(session, number);
    if (lease == NULL || lease->lanes == NULL || depth <= lease->depth) {
        return lease == NULL ? AGENT_UNKNOWN : AGENT_OK;
    }
    lease->depth = depth;
    for (uint32_t lane = 0; lane < lease->grant.lanes; lane++) {
        advance_lane(session, lease, lane);
    }
    return AGENT_OK;
}

static void cancel_running(struct agent_session *session, struct work *work, uint32_t outcome)
{
    if (!work->cancelling) {
        work->cancelling = true;
        work->cancel_outcome = outcome;
        work_act(session, AGENT_CANCEL, work);
    }
}

/* ---------------------------------------------------------------- leases */

/* Returns the device as offered now, or NULL when it is not ours or has fewer slots. */
static const struct agent_device *ours(const struct agent_session *session,
                                       const struct id128 *device, uint32_t slots)
{
    for (size_t i = 0; i < session->device_count; i++) {
        const struct agent_device *facts = &session->devices[i].facts;
        if (id128_equal(&facts->device, device) && slots <= facts->slots) {
            return facts;
        }
    }
    return NULL;
}

static int64_t term_end(int64_t now_ns, int64_t term_ms)
{
    int64_t bounded_ms = term_ms < 0 ? 0 : term_ms > TERM_LONGEST_MS ? TERM_LONGEST_MS : term_ms;
    return now_ns + bounded_ms * NS_PER_MS;
}

static struct agent_grant grant_from_wire(const Bourse__V1__LeaseGrant *wire)
{
    uint32_t width = wire->slots_per_subtask;
    return (struct agent_grant){
        .lease = wire->lease,
        .job = codec_id(wire->job),
        .device = codec_id(wire->device),
        .owner = codec_key(wire->owner),
        .slots = wire->slots,
        .slots_per_subtask = width,
        .lanes = width == 0 ? 0 : wire->slots / width,
        .price_micro = wire->price_micro,
        .limit_ms = wire->limit_ms,
        .manifest = codec_hash(wire->manifest),
        .has_checkpoints = wire->has_checkpoint && wire->checkpoint,
    };
}

static bool make_lanes(struct lease *lease, uint32_t count)
{
    lease->lanes = calloc(count, sizeof *lease->lanes);
    for (uint32_t i = 0; lease->lanes != NULL && i < count; i++) {
        list_init(&lease->lanes[i].queue);
    }
    return lease->lanes != NULL;
}

/* Decides as the broker does: a result that says otherwise is not accepted. */
static bool is_simulated(const struct agent_device *device)
{
    bool is_simulated = strncmp(device->instrument, "sim.", 4) == 0;
    for (size_t i = 0; i < device->attribute_count; i++) {
        const struct attribute *attribute = &device->attributes[i];
        is_simulated = is_simulated || (strcmp(attribute->name, "simulated") == 0 &&
                                        (attribute->is_text || attribute->number != 0));
    }
    return is_simulated;
}

void work_granted(struct agent_session *session, int64_t now_ns, const Bourse__V1__LeaseGrant *wire)
{
    if (find_lease(session, wire->lease) != NULL) {
        session->counts.duplicates++;
        return; /* the term runs from the first receipt; a renewal extends it */
    }
    struct agent_grant grant = grant_from_wire(wire);
    if (session->counts.leases >= AGENT_LEASES_MAX || grant.lanes == 0) {
        session->counts.ignored++;
        session_note(session, "lease %" PRIu64 " was ignored: %s", wire->lease,
                     grant.lanes == 0 ? "the grant has no lane"
                                      : "the agent holds as many leases as it can");
        return;
    }
    struct lease *lease = calloc(1, sizeof *lease);
    const struct agent_device *device = ours(session, &grant.device, grant.slots);
    bool refused = device == NULL;
    if (lease == NULL || (!refused && !make_lanes(lease, grant.lanes))) {
        session->counts.out_of_memory = true;
        free(lease);
        return;
    }
    lease->grant = grant;
    lease->depth = 1;
    lease->term_end_ns = term_end(now_ns, wire->term_ms);
    lease->refused = refused;
    lease->simulated = device != NULL && is_simulated(device);
    list_init(&lease->works);
    list_append(&session->leases, &lease->link);
    session->counts.leases++;
    if (lease->refused) {
        session_note(session, "a lease on a device that is not offered: its work is refused");
        return;
    }
    session_act(session, &(struct agent_action){.type = AGENT_LEASE_BEGIN, .grant = grant});
}

void work_renewed(struct agent_session *session, int64_t now_ns,
                  const Bourse__V1__LeaseRenew *renew)
{
    struct lease *lease = find_lease(session, renew->lease);
    if (lease == NULL || lease->over) {
        session->counts.ignored++;
        return; /* too late: its work has been answered */
    }
    int64_t end_ns = term_end(now_ns, renew->term_ms);
    if (end_ns > lease->term_end_ns) {
        lease->term_end_ns = end_ns;
    }
}

static void stop_work(struct agent_session *session, int64_t now_ns, const struct lease *lease,
                      uint32_t outcome, bool cancel)
{
    for (struct list_link *link = lease->works.next; link != &lease->works;) {
        struct work *work = LIST_ELEMENT(link, struct work, link);
        link = link->next;
        if (work->state == WORK_QUEUED) {
            results_owe_unstarted(session, now_ns, work, outcome, "not started");
        } else if (work->state == WORK_RUNNING && cancel) {
            cancel_running(session, work, outcome);
        }
    }
}

void work_give_back(struct agent_session *session, int64_t now_ns, struct lease *lease, bool cancel)
{
    stop_work(session, now_ns, lease, OUTCOME_CANCELLED, cancel);
}

static void destroy_work(struct agent_session *session, struct work *work)
{
    if (session->config.can_store_again && work->names_files) {
        work_act(session, AGENT_SETTLED, work);
    }
    session->work_in[work->state]--;
    work->lease->active -= is_active(work->state);
    work_table_take(work->lease, work);
    list_remove(&work->link);
    list_remove(&work->lane_link);
    list_remove(&work->result_link);
    work->lease->work_count--;
    session->work_total--;
    if (work->dispatch != NULL) {
        bourse__v1__work__free_unpacked(work->dispatch, NULL);
    }
    free(work->result);
    free(work);
}

void work_lease_destroy(struct agent_session *session, struct lease *lease)
{
    while (!list_empty(&lease->works)) {
        destroy_work(session, LIST_ELEMENT(lease->works.next, struct work, link));
    }
    list_remove(&lease->link);
    session->counts.leases--;
    free(lease->buckets);
    free(lease->lanes);
    free(lease);
}

/* Sends AGENT_LEASE_END when nothing runs, and frees the lease when every result is accepted. */
static void settle_lease(struct agent_session *session, struct lease *lease)
{
    if (!lease->over) {
        return;
    }
    if (lease->active == 0 && !lease->ended) {
        lease->ended = true;
        if (!lease->refused) {
            struct agent_action action = {.type = AGENT_LEASE_END,
                                          .work = {.lease = lease->grant.lease}};
            session_act(session, &action);
        }
    }
    if (list_empty(&lease->works)) {
        work_lease_destroy(session, lease);
    }
}

void work_lease_over(struct agent_session *session, int64_t now_ns, struct lease *lease,
                     uint32_t outcome, bool cancel)
{
    lease->over = true;
    lease->over_outcome = outcome;
    stop_work(session, now_ns, lease, outcome, cancel);
    settle_lease(session, lease);
}

static void tell_programs(struct agent_session *session, const struct lease *lease)
{
    for (const struct list_link *link = lease->works.next; link != &lease->works;
         link = link->next) {
        const struct work *work = LIST_ELEMENT(link, struct work, link);
        if (work->state == WORK_RUNNING) {
            work_act(session, AGENT_NOTICE, work);
        }
    }
}

void work_leave(struct agent_session *session, struct lease *lease)
{
    if (lease->grant.has_checkpoints && !lease->leaving && !lease->noticed) {
        lease->leaving = true;
        tell_programs(session, lease);
    }
}

/* Tells the programs, which have until the end of the notice; queued work goes back at once. A
 * notice that comes again, after a new connection, ends no later than the first. */
void work_noticed(struct agent_session *session, int64_t now_ns,
                  const Bourse__V1__LeaseNotice *notice)
{
    struct lease *lease = find_lease(session, notice->lease);
    if (lease == NULL || lease->over || lease->noticed) {
        session->counts.ignored++;
        return;
    }
    const int64_t end_ns = term_end(now_ns, notice->notice_ms);
    lease->noticed = true;
    lease->term_end_ns = end_ns < lease->term_end_ns ? end_ns : lease->term_end_ns;
    stop_work(session, now_ns, lease, OUTCOME_PREEMPTED, false);
    tell_programs(session, lease);
    results_flush(session, now_ns);
}

void work_lease_ended(struct agent_session *session, int64_t now_ns,
                      const Bourse__V1__LeaseEnd *end)
{
    struct lease *lease = find_lease(session, end->lease);
    if (lease == NULL) {
        session->counts.ignored++;
        return;
    }
    lease->released = true;
    uint32_t outcome = end->reason == LEASE_END_TERM        ? OUTCOME_TERM_OVER
                       : end->reason == LEASE_END_PREEMPTED ? OUTCOME_PREEMPTED
                                                            : OUTCOME_CANCELLED;
    work_lease_over(session, now_ns, lease, outcome, true);
}

/* ---------------------------------------------------------------- dispatch and withdraw */

/* Copies the dispatch deeply, because the message is freed. */
static bool keep_given(struct work *work, const Bourse__V1__Work *wire)
{
    if (wire->n_given == 0 && !wire->has_seed && wire->saved == NULL) {
        return true;
    }
    size_t length;
    uint8_t *bytes = codec_encode(&wire->base, &length);
    work->dispatch = bytes == NULL ? NULL : bourse__v1__work__unpack(NULL, length, bytes);
    free(bytes);
    return work->dispatch != NULL;
}

static void queue_work(struct agent_session *session, int64_t now_ns, struct lease *lease,
                       const Bourse__V1__Work *wire)
{
    struct work *work = work_table_make_room(lease) ? calloc(1, sizeof *work) : NULL;
    if (work == NULL || !keep_given(work, wire)) {
        session->counts.out_of_memory = true;
        free(work);
        return;
    }
    Bourse__V1__Work *dispatch = work->dispatch;
    bool has_lane = !lease->refused && wire->lane < lease->grant.lanes;
    *work = (struct work){.lease = lease,
                          .index = wire->index,
                          .attempt = wire->attempt,
                          .lane = wire->lane,
                          .urgent = wire->has_urgent && wire->urgent,
                          .dispatch = dispatch,
                          .state = WORK_QUEUED};
    list_init(&work->result_link);
    list_init(&work->lane_link);
    list_append(&lease->works, &work->link);
    work_table_put(lease, work);
    lease->work_count++;
    session->work_total++;
    session->work_in[WORK_QUEUED]++;
    if (has_lane) {
        enqueue(&lease->lanes[work->lane], work);
    }
    if (!has_lane) {
        results_owe_unstarted(session, now_ns, work, OUTCOME_REFUSED,
                              lease->refused ? "the device is not offered here"
                                             : "the lease has no such lane");
    } else if (lease->over) {
        results_owe_unstarted(session, now_ns, work, lease->over_outcome, "the lease is over");
    } else if (lease->noticed) {
        results_owe_unstarted(session, now_ns, work, OUTCOME_PREEMPTED, "the lease has been taken");
    } else if (session->draining) {
        results_owe_unstarted(session, now_ns, work, OUTCOME_CANCELLED, "the provider is leaving");
    } else if (session->resting || withheld_device(session, &lease->grant.device)) {
        results_owe_unstarted(session, now_ns, work, OUTCOME_CANCELLED, "the provider has paused");
    } else {
        advance_lane(session, lease, work->lane);
    }
}

void work_dispatched(struct agent_session *session, int64_t now_ns,
                     const Bourse__V1__Dispatch *dispatch)
{
    struct lease *lease = find_lease(session, dispatch->lease);
    if (lease == NULL || lease->released) {
        session->counts.ignored++;
        return;
    }
    for (size_t i = 0; i < dispatch->n_work; i++) {
        const Bourse__V1__Work *wire = dispatch->work[i];
        if (work_table_find(lease, wire->index, wire->attempt) != NULL ||
            was_done(lease, wire->index, wire->attempt)) {
            session->counts.duplicates++; /* the work is known: it runs, or its result is queued */
        } else if (session->work_total >= AGENT_WORK_MAX) {
            session->counts.ignored++;
        } else {
            queue_work(session, now_ns, lease, wire);
        }
    }
    results_flush(session, now_ns);
}

void work_withdrawn(struct agent_session *session, int64_t now_ns,
                    const Bourse__V1__Withdraw *withdraw)
{
    struct lease *lease = find_lease(session, withdraw->lease);
    if (lease == NULL) {
        session->counts.ignored++;
        return;
    }
    for (size_t i = 0; i < withdraw->n_work; i++) {
        struct work *work =
            work_table_find(lease, withdraw->work[i]->index, withdraw->work[i]->attempt);
        if (work == NULL) {
            session->counts.ignored++;
        } else if (work->state == WORK_QUEUED) {
            results_owe_unstarted(session, now_ns, work, OUTCOME_CANCELLED, "not started");
        } else if (work->state == WORK_RUNNING) {
            cancel_running(session, work, OUTCOME_CANCELLED);
        } /* LEFT and later: its result is on the way and is the answer */
    }
    results_flush(session, now_ns);
}

/* ---------------------------------------------------------------- the shell reports */

static struct work *known(const struct agent_session *session, const struct agent_work *name)
{
    const struct lease *lease = find_lease(session, name->lease);
    return lease == NULL ? NULL : work_table_find(lease, name->index, name->attempt);
}

const Bourse__V1__Work *agent_session_inputs(const struct agent_session *session,
                                             const struct agent_work *name)
{
    const struct work *work = known(session, name);
    return work == NULL ? NULL : work->dispatch;
}

enum agent_status agent_session_left(struct agent_session *session, int64_t now_ns,
                                     const struct agent_work *name)
{
    (void)now_ns; /* every entry takes the time, so callers need not know which ones use it */
    struct work *work = known(session, name);
    if (work == NULL || work->state != WORK_RUNNING) {
        return AGENT_UNKNOWN;
    }
    work_move(session, work, WORK_LEFT);
    advance_lane(session, work->lease, work->lane);
    return AGENT_OK;
}

/* Returns true for the outcome of a program that was told to end early, or before it ran. */
static bool fails_early(uint32_t outcome)
{
    return outcome == OUTCOME_PROGRAM_FAILED || outcome == OUTCOME_SIGNALLED ||
           outcome == OUTCOME_OUTPUT_MISSING || outcome == OUTCOME_CANCELLED;
}

enum agent_status agent_session_finished(struct agent_session *session, int64_t now_ns,
                                         const struct agent_work *name,
                                         const Bourse__V1__Result *facts)
{
    struct work *work = known(session, name);
    if (work == NULL || (work->state != WORK_RUNNING && work->state != WORK_LEFT) ||
        work->result != NULL) {
        return AGENT_UNKNOWN;
    }
    struct lease *lease = work->lease;
    uint32_t lane = work->lane;
    Bourse__V1__Result result = *facts;
    if (result.outcome == OUTCOME_CANCELLED && work->cancelling) {
        result.outcome = work->cancel_outcome;
    }
    if (lease->noticed && !work->cancelling && fails_early(result.outcome)) {
        result.outcome = OUTCOME_PREEMPTED;
    }
    if ((lease->leaving || work->told) && !work->cancelling && fails_early(result.outcome)) {
        result.outcome = OUTCOME_CANCELLED;
    }
    enum agent_status status = results_owe(session, now_ns, work, &result);
    if (status == AGENT_OK) {
        advance_lane(session, lease, lane);
        settle_lease(session, lease);
        results_flush(session, now_ns);
    }
    return status;
}

enum agent_status agent_session_stored(struct agent_session *session, int64_t now_ns,
                                       const struct agent_work *name, bool is_stored,
                                       const char *detail)
{
    struct work *work = known(session, name);
    if (work == NULL || work->state != WORK_LEFT || work->result == NULL) {
        return AGENT_UNKNOWN;
    }
    struct lease *lease = work->lease;
    enum agent_status status = results_stored(session, now_ns, work, is_stored, detail);
    if (status == AGENT_OK) {
        settle_lease(session, lease);
        results_flush(session, now_ns);
    }
    return status;
}

void work_done(struct agent_session *session, struct work *work)
{
    struct lease *lease = work->lease;
    lease->done[work_table_place(work->index, AGENT_REMEMBERED)] =
        (struct remembered){.index = work->index, .attempt = work->attempt};
    destroy_work(session, work);
    settle_lease(session, lease);
}

void work_tick(struct agent_session *session, int64_t now_ns)
{
    for (struct list_link *link = session->leases.next; link != &session->leases;) {
        struct lease *lease = LIST_ELEMENT(link, struct lease, link);
        link = link->next; /* the lease may be freed */
        if (now_ns >= lease->term_end_ns && (!lease->over || !lease->ended)) {
            work_lease_over(session, now_ns, lease,
                            lease->noticed ? OUTCOME_PREEMPTED : OUTCOME_TERM_OVER, true);
        }
    }
}

int64_t work_next_deadline_ns(const struct agent_session *session)
{
    int64_t deadline_ns = INT64_MAX;
    for (const struct list_link *link = session->leases.next; link != &session->leases;
         link = link->next) {
        const struct lease *lease = LIST_ELEMENT(link, struct lease, link);
        if (!lease->over && lease->term_end_ns < deadline_ns) {
            deadline_ns = lease->term_end_ns;
        }
    }
    return deadline_ns;
}
