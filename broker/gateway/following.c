#include "broker/gateway/following.h"

#include "base/checked.h"

#include <stdio.h>

void following_note_init(struct following_note *note)
{
    *note = (struct following_note){.leader = ""};
    pthread_mutex_init(&note->mutex, NULL);
}

void following_note_fini(struct following_note *note)
{
    pthread_mutex_destroy(&note->mutex);
}

void following_note_leader(struct following_note *note, const char *leader)
{
    pthread_mutex_lock(&note->mutex);
    (void)snprintf(note->leader, sizeof note->leader, "%s", leader);
    pthread_mutex_unlock(&note->mutex);
}

void following_note_state(struct following_note *note, uint64_t index, int64_t log_ns)
{
    pthread_mutex_lock(&note->mutex);
    note->index = index;
    note->log_ns = log_ns;
    pthread_mutex_unlock(&note->mutex);
}

void following_note_fresh(struct following_note *note, int64_t fresh_ns)
{
    pthread_mutex_lock(&note->mutex);
    note->fresh_ns = fresh_ns > note->fresh_ns ? fresh_ns : note->fresh_ns;
    pthread_mutex_unlock(&note->mutex);
}

struct following following_now(struct following_note *note, int64_t now_ns)
{
    struct following now;
    pthread_mutex_lock(&note->mutex);
    (void)snprintf(now.leader, sizeof now.leader, "%s", note->leader);
    now.index = note->index;
    now.log_ns = note->log_ns;
    now.age_ms = note->fresh_ns == 0 ? -1 : (now_ns - note->fresh_ns) / NS_PER_MS;
    pthread_mutex_unlock(&note->mutex);
    now.stale_ms = now.age_ms > FOLLOWING_FRESH_MS ? now.age_ms : 0;
    return now;
}
