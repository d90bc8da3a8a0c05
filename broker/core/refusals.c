#include "broker/core/refusals.h"

#include "base/checked.h"
#include "exchange/exchange.h"

#include <pthread.h>
#include <stdlib.h>

struct tally {
    struct refusal_count counted;
    int64_t due_ns; /* 0: at once */
};

struct refusals {
    pthread_mutex_t mutex;
    struct tally tallies[REFUSALS_TAKE_MAX];
    size_t count;
};

struct refusals *refusals_create(void)
{
    struct refusals *refusals = calloc(1, sizeof *refusals);
    if (refusals != NULL) {
        (void)pthread_mutex_init(&refusals->mutex, NULL); /* cannot fail with these attributes */
    }
    return refusals;
}

void refusals_destroy(struct refusals **self)
{
    if (*self != NULL) {
        (void)pthread_mutex_destroy(&(*self)->mutex); /* nobody holds it any more */
        free(*self);
        *self = NULL;
    }
}

/* Returns true when a refusal with this code says something about its sender. BUSY, SESSION and the
 * like are about the broker, and BLOB_OFFSET is how uploads resume: for them it returns false. */
static bool concerns_sender(enum reject_code code)
{
    return code != REJECT_NONE && code != REJECT_SESSION && code != REJECT_BUSY &&
           code != REJECT_UNAVAILABLE && code != REJECT_NOT_LEADER && code != REJECT_NO_QUORUM &&
           code != REJECT_STORAGE_FULL && code != REJECT_BLOB_OFFSET;
}

static struct tally *find(struct refusals *refusals, uint32_t account, enum reject_code code)
{
    for (size_t i = 0; i < refusals->count; i++) {
        struct tally *tally = &refusals->tallies[i];
        if (tally->counted.account == account && tally->counted.code == code) {
            return tally;
        }
    }
    return NULL;
}

static struct tally *find_or_add(struct refusals *refusals, uint32_t account, enum reject_code code,
                                 enum message_type type)
{
    struct tally *tally = find(refusals, account, code);
    bool has_room = refusals->count < REFUSALS_MAX ||
                    (account == EXCHANGE_NO_ACCOUNT && refusals->count < REFUSALS_TAKE_MAX);
    if (tally == NULL && has_room) {
        tally = &refusals->tallies[refusals->count++];
        *tally = (struct tally){.counted = {.account = account, .code = code, .type = type}};
    }
    return tally;
}

void refusals_note(struct refusals *refusals, uint32_t account, enum reject_code code,
                   enum message_type type)
{
    if (!concerns_sender(code)) {
        return;
    }
    (void)pthread_mutex_lock(&refusals->mutex); /* cannot fail: private, not recursive */
    struct tally *tally = find_or_add(refusals, account, code, type);
    if (tally == NULL) {
        tally = find_or_add(refusals, EXCHANGE_NO_ACCOUNT, code, type);
    }
    if (tally != NULL) { /* there are fewer codes than places kept for them */
        tally->counted.type = tally->counted.count == 0 ? type : tally->counted.type;
        tally->counted.count++;
    }
    (void)pthread_mutex_unlock(&refusals->mutex);
}

size_t refusals_take(struct refusals *refusals, int64_t now_ns, bool all,
                     struct refusal_count ret_counts[REFUSALS_TAKE_MAX])
{
    size_t taken = 0;
    size_t kept = 0;
    (void)pthread_mutex_lock(&refusals->mutex);
    for (size_t i = 0; i < refusals->count; i++) {
        struct tally *tally = &refusals->tallies[i];
        bool is_due = all || now_ns >= tally->due_ns;
        if (is_due && tally->counted.count == 0) {
            continue; /* a quiet minute: the place is free */
        }
        if (is_due) {
            ret_counts[taken++] = tally->counted;
            tally->counted.count = 0;
            tally->due_ns = now_ns + REFUSALS_INTERVAL_S * NS_PER_S;
        }
        refusals->tallies[kept++] = *tally;
    }
    refusals->count = kept;
    (void)pthread_mutex_unlock(&refusals->mutex);
    return taken;
}
