/* This file reads what running subtasks print, in the main thread. */
#include "provider/work/lanes.h"
#include "provider/work/lanes_internal.h"
#include "runtime/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static bool is_same(const struct agent_work *a, const struct agent_work *b)
{
    return a->index == b->index && a->attempt == b->attempt;
}

/* Reads the next piece of a stream while the work is in the lane's jail. The lane's mutex keeps
 * the jail open. Returns false when nothing is new. */
static bool read_piece(struct lane *lane, unsigned stream, struct jail_live *ret_live)
{
    bool has_read = false;
    pthread_mutex_lock(&lane->mutex);
    if (lane->running.attempt != 0 && !is_same(&lane->running, &lane->printing)) {
        lane->printing = lane->running;
        lane->printed[0] = lane->printed[1] = 0;
        lane->is_whole = clock_monotonic_ns() - lane->running_since_ns < LANES_YOUNG_NS;
    }
    uint64_t from = lane->printed[stream];
    if (lane->running.attempt != 0 && lane->jail != NULL) {
        struct jail_live now;
        uint8_t *bytes = lane->lanes->piece;
        /* The first reading only asks for the size. */
        if (jail_read_live(lane->jail, stream, false, from, bytes, 0, &now)) {
            const uint64_t behind = now.total > from ? now.total - from : 0;
            const bool is_there = lane->is_whole && from < jail_kept_bytes(lane->jail);
            from = behind > LANES_BEHIND_BYTES && !is_there ? now.total - LANES_BEHIND_BYTES : from;
            has_read = behind > 0 && jail_read_live(lane->jail, stream, false, from, bytes,
                                                    LANES_PIECE_BYTES, ret_live);
        }
    }
    pthread_mutex_unlock(&lane->mutex);
    return has_read && ret_live->length > 0;
}

void lane_drop_ends(struct lane *lane)
{
    for (size_t i = 0; i < 2; i++) {
        free(lane->ends[i].bytes);
        lane->ends[i] = (struct lane_end){.bytes = NULL};
    }
}

void lane_keep_ends(struct lane *lane, const struct agent_work *work)
{
    pthread_mutex_lock(&lane->mutex);
    lane_drop_ends(lane);
    lane->ended_work = *work;
    for (unsigned i = 0; i < 2 && lane->jail != NULL && atomic_load(&lane->is_followed); i++) {
        const uint64_t kept = jail_kept_bytes(lane->jail);
        struct jail_live live;
        if (!jail_read_live(lane->jail, i, true, kept, NULL, 0, &live) || live.total <= kept) {
            continue; /* the result has all of it */
        }
        uint8_t *bytes = malloc(LANES_BEHIND_BYTES);
        if (bytes != NULL &&
            jail_read_live(lane->jail, i, true, kept, bytes, LANES_BEHIND_BYTES, &live)) {
            lane->ends[i] =
                (struct lane_end){.bytes = bytes, .size = live.length, .offset = live.offset};
        } else {
            free(bytes);
        }
    }
    pthread_mutex_unlock(&lane->mutex);
}

/* Visits the end of one stream of a work that has ended, and frees it once all was visited. */
static bool visit_end(struct lane *lane, unsigned stream, lanes_output_visitor *visitor,
                      void *context)
{
    struct lane_end *end = &lane->ends[stream];
    const bool is_known = is_same(&lane->ended_work, &lane->printing);
    const uint64_t printed = is_known ? lane->printed[stream] : 0;
    while (end->bytes != NULL) {
        const uint64_t known = printed > end->offset ? printed - end->offset : 0;
        end->visited = known > end->visited ? known : end->visited;
        if (end->visited >= end->size) {
            free(end->bytes);
            *end = (struct lane_end){.bytes = NULL};
            break;
        }
        const size_t rest = end->size - end->visited;
        const struct lanes_output output = {.work = lane->ended_work,
                                            .is_error = stream == 1,
                                            .offset = end->offset + end->visited,
                                            .bytes = end->bytes + end->visited,
                                            .size = rest < LANES_PIECE_BYTES ? rest
                                                                             : LANES_PIECE_BYTES};
        if (!visitor(context, &output)) {
            return false;
        }
        end->visited += output.size;
    }
    return true;
}

/* Visits what is left of a work that has ended. */
static bool visit_ends(struct lane *lane, lanes_output_visitor *visitor, void *context)
{
    pthread_mutex_lock(&lane->mutex);
    const bool more = visit_end(lane, 0, visitor, context) && visit_end(lane, 1, visitor, context);
    pthread_mutex_unlock(&lane->mutex);
    return more;
}

static bool visit_lane(struct lane *lane, lanes_output_visitor *visitor, void *context)
{
    atomic_store(&lane->is_followed, true);
    if (!visit_ends(lane, visitor, context)) {
        return false;
    }
    for (unsigned stream = 0; stream < 2; stream++) {
        struct jail_live live;
        if (!read_piece(lane, stream, &live)) {
            continue;
        }
        const struct lanes_output output = {.work = lane->printing,
                                            .is_error = stream == 1,
                                            .offset = live.offset,
                                            .bytes = lane->lanes->piece,
                                            .size = live.length};
        if (!visitor(context, &output)) {
            return false;
        }
        lane->printed[stream] = live.offset + live.length;
    }
    return true;
}

void lanes_visit_output(struct lanes *lanes, uint64_t lease, lanes_output_visitor *visitor,
                        void *context)
{
    for (struct list_link *at = lanes->runs.next; at != &lanes->runs; at = at->next) {
        struct lease_run *run = LIST_ELEMENT(at, struct lease_run, link);
        if (lease_context_grant(run->context)->lease != lease || run->ending) {
            continue;
        }
        for (struct list_link *inner = run->lanes.next; inner != &run->lanes; inner = inner->next) {
            if (!visit_lane(LIST_ELEMENT(inner, struct lane, link), visitor, context)) {
                return;
            }
        }
    }
}

static bool has_ends(struct lane *lane, const struct agent_work *work)
{
    pthread_mutex_lock(&lane->mutex);
    const bool has = is_same(&lane->ended_work, work) &&
                     (lane->ends[0].bytes != NULL || lane->ends[1].bytes != NULL);
    pthread_mutex_unlock(&lane->mutex);
    return has;
}

bool lanes_has_ends(struct lanes *lanes, const struct agent_work *work)
{
    for (struct list_link *at = lanes->runs.next; at != &lanes->runs; at = at->next) {
        struct lease_run *run = LIST_ELEMENT(at, struct lease_run, link);
        if (lease_context_grant(run->context)->lease != work->lease || run->ending) {
            continue;
        }
        for (struct list_link *inner = run->lanes.next; inner != &run->lanes; inner = inner->next) {
            if (has_ends(LIST_ELEMENT(inner, struct lane, link), work)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_among(const uint64_t *leases, size_t count, uint64_t lease)
{
    for (size_t i = 0; i < count; i++) {
        if (leases[i] == lease) {
            return true;
        }
    }
    return false;
}

void lanes_forget_output(struct lanes *lanes, const uint64_t *leases, size_t count)
{
    for (struct list_link *at = lanes->runs.next; at != &lanes->runs; at = at->next) {
        struct lease_run *run = LIST_ELEMENT(at, struct lease_run, link);
        if (is_among(leases, count, lease_context_grant(run->context)->lease)) {
            continue;
        }
        for (struct list_link *inner = run->lanes.next; inner != &run->lanes; inner = inner->next) {
            struct lane *lane = LIST_ELEMENT(inner, struct lane, link);
            lane->printing.attempt = 0;
            atomic_store(&lane->is_followed, false);
        }
    }
}
