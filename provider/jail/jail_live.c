/* provider/jail/jail_live.c reads the output of a run that still goes on, out of the files that the
 * worker writes (provider/worker/wire.h). The worker is never asked and never waits. */
#include "provider/jail/jail.h"
#include "provider/jail/jail_internal.h"
#include "provider/worker/wire.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#define RING ((uint64_t)WIRE_RING_BYTES)

/* Returns the bytes that the run's mark names; 0 before its first mark. */
static bool read_mark(int file, uint64_t number, uint64_t *ret_total)
{
    uint64_t mark[WIRE_MARK_WORDS];
    if (pread(file, mark, sizeof mark, WIRE_MARK_AT) != (ssize_t)sizeof mark ||
        mark[2] != wire_mark_check(mark[0], mark[1]) || mark[1] > (uint64_t)INT64_MAX) {
        return false;
    }
    *ret_total = mark[0] == number ? mark[1] : 0;
    return true;
}

static size_t least(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

/* Reads up to the end of the part that holds byte `from`. */
static size_t read_part(int file, uint64_t kept, uint64_t from, void *bytes, size_t capacity)
{
    uint64_t at = from;
    uint64_t end = kept;
    if (from >= kept) {
        const uint64_t place = (from - kept) % RING;
        at = (uint64_t)WIRE_CAPTURE_BYTES + place;
        end = from + (RING - place);
    }
    const ssize_t got = pread(file, bytes, least(end - from, capacity), (off_t)at);
    return got > 0 ? (size_t)got : 0;
}

bool jail_read_live(struct jail *jail, unsigned stream, bool has_ended, uint64_t from, void *bytes,
                    size_t capacity, struct jail_live *ret_live)
{
    assert(stream < 2);
    (void)pthread_mutex_lock(&jail->lock);
    const uint64_t number = jail->number;
    const uint64_t kept = jail->kept_bytes;
    const bool running = jail->running;
    (void)pthread_mutex_unlock(&jail->lock);
    const int file = jail->capture[stream];
    uint64_t total = 0;
    if (running == has_ended || !read_mark(file, number, &total)) {
        return false;
    }
    /* The worker may be about to write over the oldest bytes of the ring. */
    const uint64_t safe = RING - (uint64_t)WIRE_DRAIN_BYTES;
    if (from >= kept && total > safe && from < total - safe) {
        from = total - safe > kept ? total - safe : kept;
    }
    *ret_live = (struct jail_live){.offset = from, .total = total};
    while (ret_live->length < capacity && from < total) {
        const size_t room = least(total - from, capacity - ret_live->length);
        const size_t got = read_part(file, kept, from, (char *)bytes + ret_live->length, room);
        if (got == 0) {
            break;
        }
        ret_live->length += got;
        from += got;
        if (ret_live->offset < kept && from >= kept && total - from > safe) {
            break; /* the ring has lost the bytes that come next */
        }
    }
    uint64_t now = 0;
    const uint64_t first = ret_live->offset > kept ? ret_live->offset : kept;
    if (!read_mark(file, number, &now) || (from > kept && now > first && now - first > safe)) {
        ret_live->length = 0; /* the bytes read may be newer ones; the next look goes on */
    }
    return true;
}

uint64_t jail_kept_bytes(struct jail *jail)
{
    (void)pthread_mutex_lock(&jail->lock);
    const uint64_t kept = jail->kept_bytes;
    (void)pthread_mutex_unlock(&jail->lock);
    return kept;
}
