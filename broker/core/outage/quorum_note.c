#include "broker/core/outage/quorum_note.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdio.h>

void quorum_note_init(struct quorum_note *note)
{
    (void)pthread_mutex_init(&note->mutex, NULL); /* cannot fail with these attributes */
    note->why[0] = '\0';
    atomic_store(&note->is_away, false);
    atomic_store(&note->taken_ns, 0);
}

void quorum_note_fini(struct quorum_note *note)
{
    (void)pthread_mutex_destroy(&note->mutex); /* nobody holds it any more */
}

void quorum_note_say(struct quorum_note *note, const char *why)
{
    (void)pthread_mutex_lock(&note->mutex); /* cannot fail: private, not recursive */
    (void)snprintf(note->why, sizeof note->why, "%s", why);
    (void)pthread_mutex_unlock(&note->mutex);
}

int64_t quorum_note_age_ms(const struct quorum_note *note, int64_t now_ns)
{
    const int64_t taken_ns = (int64_t)atomic_load(&note->taken_ns);
    return taken_ns == 0 || now_ns < taken_ns ? 0 : (now_ns - taken_ns) / NS_PER_MS;
}

int64_t quorum_note_text(struct quorum_note *note, int64_t now_ns, char *ret_text, size_t capacity)
{
    const int64_t age_ms = quorum_note_age_ms(note, now_ns);
    (void)pthread_mutex_lock(&note->mutex);
    (void)snprintf(ret_text, capacity,
                   "the broker's journal has taken nothing for %" PRId64 ".%" PRId64
                   " s: %s. Try again in a while, or ask the operator to mend it.",
                   age_ms / 1000, age_ms / 100 % 10,
                   note->why[0] != '\0' ? note->why : "the members of etcd do not answer");
    (void)pthread_mutex_unlock(&note->mutex);
    return age_ms;
}
