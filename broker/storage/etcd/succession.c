#include "broker/storage/etcd/succession.h"

#include "base/checked.h"

struct succession succession_start(unsigned rank, uint64_t epoch, int64_t now_ns)
{
    return (struct succession){
        .rank = rank, .quiet_ns = now_ns, .heard_ns = now_ns, .epoch = epoch};
}

void succession_entry(struct succession *succession, bool is_starting, int64_t now_ns)
{
    succession->is_starting = is_starting;
    succession->quiet_ns = now_ns;
    succession->heard_ns = now_ns;
    succession->is_resigned = false;
}

/* A follower that heard nothing, or stood still, does not know how long the leader was silent. */
static bool was_deaf(const struct succession *succession, int64_t now_ns)
{
    return now_ns - succession->heard_ns >= SUCCESSION_DEAF_MS * NS_PER_MS;
}

void succession_quiet(struct succession *succession, uint64_t epoch, bool is_resigned,
                      int64_t now_ns)
{
    if (was_deaf(succession, now_ns) || epoch != succession->epoch ||
        (is_resigned && !succession->is_resigned)) {
        succession->quiet_ns = now_ns;
    }
    succession->heard_ns = now_ns;
    succession->epoch = epoch;
    succession->is_resigned = is_resigned;
}

void succession_wishes(struct succession *succession, enum succession_wish wish)
{
    succession->wish = wish;
}

void succession_refused(struct succession *succession, int64_t now_ns)
{
    succession->quiet_ns = now_ns;
    succession->is_resigned = false;
}

static int64_t resigned_silence_ms(const struct succession *succession)
{
    const int64_t share_ms = (int64_t)succession->rank * SUCCESSION_RANK_MS;
    switch (succession->wish) {
    case SUCCESSION_ANYBODY:
        return share_ms;
    case SUCCESSION_ME:
        return 0;
    case SUCCESSION_ANOTHER:
        break;
    }
    return share_ms + SUCCESSION_YIELD_MS;
}

int64_t succession_due_ns(const struct succession *succession)
{
    if (succession->is_resigned) {
        return succession->quiet_ns + resigned_silence_ms(succession) * NS_PER_MS;
    }
    const int64_t silence_ms =
        succession->is_starting ? SUCCESSION_START_MS : SUCCESSION_SILENCE_MS;
    return succession->quiet_ns +
           (silence_ms + (int64_t)succession->rank * SUCCESSION_RANK_MS) * NS_PER_MS;
}

bool succession_is_due(const struct succession *succession, int64_t now_ns)
{
    return !was_deaf(succession, now_ns) && now_ns >= succession_due_ns(succession);
}
