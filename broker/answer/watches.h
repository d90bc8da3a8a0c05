/* broker/answer/watches.h - which sessions follow which jobs, and which jobs changed since they
 * were told.
 *
 * A change is only noted; what a watcher gets is the job as it stands when the event is made, so a
 * busy job costs one event per interval, not one per result. The core's own; no thread but one. */
#ifndef BOURSE_BROKER_ANSWER_WATCHES_H
#define BOURSE_BROKER_ANSWER_WATCHES_H

#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

enum { WATCHES_MAX = 8192, WATCHES_PER_SESSION = 64 };

struct watches;

struct watch_event {
    uint64_t session;
    uint32_t account;
    struct id128 job;
};

struct watches *watches_create(void); /* NULL when out of memory */
void watches_destroy(struct watches **self);

/* `session` follows one job, or with NULL all jobs of `account`. Twice is once. False when full. */
bool watches_add(struct watches *watches, uint64_t session, uint32_t account,
                 const struct id128 *job);
void watches_forget(struct watches *watches, uint64_t session);
/* `session` was told the end of a job: nothing more will come of it, and the place is free. */
void watches_drop(struct watches *watches, uint64_t session, const struct id128 *job);

/* A job of `owner` changed. True when somebody follows it. */
bool watches_changed(struct watches *watches, const struct id128 *job, uint32_t owner);
/* The next event to send, or false when all have been told. */
bool watches_next_event(struct watches *watches, struct watch_event *ret_event);
bool watches_pending(const struct watches *watches);

#endif
