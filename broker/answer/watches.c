#include "broker/answer/watches.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

struct watch {
    uint64_t session;
    uint32_t account;
    bool has_job;
    struct id128 job;
};

struct change {
    struct id128 job;
    uint32_t owner;
};

struct watches {
    struct watch items[WATCHES_MAX];
    uint32_t count;
    struct change *changes;
    uint32_t change_count;
    size_t change_capacity;
    uint32_t told; /* so many of the first items were told of the last change */
};

struct watches *watches_create(void)
{
    return calloc(1, sizeof(struct watches));
}

void watches_destroy(struct watches **self)
{
    if (*self != NULL) {
        free((*self)->changes);
        free(*self);
        *self = NULL;
    }
}

bool watches_add(struct watches *watches, uint64_t session, uint32_t account,
                 const struct id128 *job)
{
    uint32_t of_session = 0;
    for (uint32_t i = 0; i < watches->count; i++) {
        const struct watch *watch = &watches->items[i];
        if (watch->session == session) {
            if (watch->has_job == (job != NULL) && (job == NULL || id128_equal(&watch->job, job))) {
                return true;
            }
            of_session++;
        }
    }
    if (watches->count == WATCHES_MAX || of_session == WATCHES_PER_SESSION) {
        return false;
    }
    struct watch *watch = &watches->items[watches->count++];
    *watch = (struct watch){.session = session, .account = account, .has_job = job != NULL};
    if (job != NULL) {
        watch->job = *job;
    }
    return true;
}

void watches_forget(struct watches *watches, uint64_t session)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < watches->count; i++) {
        if (watches->items[i].session != session) {
            watches->items[kept++] = watches->items[i];
        }
    }
    if (kept != watches->count) {
        watches->count = kept;
        /* The watches have moved. An event that comes twice is harmless, a missing one is not. */
        watches->told = 0;
    }
}

void watches_drop(struct watches *watches, uint64_t session, const struct id128 *job)
{
    for (uint32_t i = 0; i < watches->count; i++) {
        struct watch *watch = &watches->items[i];
        if (watch->session == session && watch->has_job && id128_equal(&watch->job, job)) {
            watches->count--;
            memmove(watch, watch + 1, (watches->count - i) * sizeof *watch);
            watches->told -= watches->told > i ? 1 : 0; /* the next watcher is still told */
            return;
        }
    }
}

static bool follows(const struct watch *watch, const struct id128 *job, uint32_t owner)
{
    return watch->account == owner && (!watch->has_job || id128_equal(&watch->job, job));
}

static bool is_followed(const struct watches *watches, const struct id128 *job, uint32_t owner)
{
    for (uint32_t i = 0; i < watches->count; i++) {
        if (follows(&watches->items[i], job, owner)) {
            return true;
        }
    }
    return false;
}

bool watches_changed(struct watches *watches, const struct id128 *job, uint32_t owner)
{
    /* The walk begins with the newest change, because the results of a job come in runs. */
    for (uint32_t i = watches->change_count; i-- > 0;) {
        bool being_told = i + 1 == watches->change_count && watches->told > 0;
        if (!being_told && id128_equal(&watches->changes[i].job, job)) {
            return true;
        }
    }
    if (!is_followed(watches, job, owner)) {
        return false;
    }
    struct change *changes = array_with_room(watches->changes, watches->change_count,
                                             &watches->change_capacity, sizeof *changes);
    if (changes == NULL) {
        return false; /* the event may be lost, because watchers also poll */
    }
    watches->changes = changes;
    watches->changes[watches->change_count++] = (struct change){.job = *job, .owner = owner};
    watches->told = 0;
    return true;
}

bool watches_next_event(struct watches *watches, struct watch_event *ret_event)
{
    while (watches->change_count > 0) {
        const struct change *change = &watches->changes[watches->change_count - 1];
        while (watches->told < watches->count) {
            const struct watch *watch = &watches->items[watches->told++];
            if (follows(watch, &change->job, change->owner)) {
                *ret_event = (struct watch_event){
                    .session = watch->session, .account = watch->account, .job = change->job};
                return true;
            }
        }
        watches->change_count--;
        watches->told = 0;
    }
    return false;
}

bool watches_pending(const struct watches *watches)
{
    return watches->change_count > 0;
}
