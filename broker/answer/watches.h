/* A watch is a session that follows a job; this table also notes which jobs have changed since.
 *
 * Only the fact of a change is noted. The event shows the job as it is when the event is made. So a
 * busy job costs one event for each interval, not one for each result. Only the core's thread uses
 * the table. */
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

/* Returns NULL when memory is short. */
struct watches *watches_create(void);
void watches_destroy(struct watches **self);

/* Lets `session` follow `job`, or all jobs of `account` when `job` is NULL. A second call changes
 * nothing. Returns false when the table is full or the session has WATCHES_PER_SESSION watches. */
bool watches_add(struct watches *watches, uint64_t session, uint32_t account,
                 const struct id128 *job);
void watches_forget(struct watches *watches, uint64_t session);
/* Ends the watch of `session` on `job`, after the session was told that the job ended. */
void watches_drop(struct watches *watches, uint64_t session, const struct id128 *job);

/* Notes that a job of `owner` has changed. Returns true when a session follows it. */
bool watches_changed(struct watches *watches, const struct id128 *job, uint32_t owner);
/* Gets the next event to send. Returns false when there is none. */
bool watches_next_event(struct watches *watches, struct watch_event *ret_event);
bool watches_pending(const struct watches *watches);

#endif
