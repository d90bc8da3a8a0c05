/* Many small blobs are requested in one window, so that several share one round trip. Large ones of
 * a broker on this machine are read from their files, two at a time, because one processor alone
 * can hash each. A blob that does not arrive whole in one answer or from a file is fetched alone
 * afterwards (blob_get.c), which reports its faults. */
#include "base/sha256.h"
#include "runtime/blob/flight.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct many {
    struct blob_client *client;
    const struct blob_want *wants;
    size_t count;
    const struct id128 *job;
    blob_take *take;
    bool *is_here;
    size_t next; /* index of the next to request */
    struct flights flights;
};

static bool is_small(const struct blob_want *want)
{
    return want->size > 0 && want->size <= FLIGHT_CHUNK_BYTES;
}

static void ask(struct many *many)
{
    for (; many->next < many->count && many->flights.count < FLIGHT_MAX; many->next++) {
        const struct blob_want *want = &many->wants[many->next];
        if (!is_small(want)) {
            continue;
        }
        Bourse__V1__BlobGet body = BOURSE__V1__BLOB_GET__INIT;
        /* The bytes are only read. */
        body.hash = (ProtobufCBinaryData){32, (uint8_t *)(uintptr_t)want->hash.bytes};
        body.length = (uint32_t)want->size;
        if (many->job != NULL) {
            body.has_job = 1;
            body.job = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)many->job->bytes};
        }
        if (!flight_send(many->client, &many->flights, &(struct flight){.source = many->next},
                         MESSAGE_BLOB_GET, &body.base)) {
            return;
        }
    }
}

/* Takes a whole blob, or nothing of it. */
static bool take_data(struct many *many, size_t index, const Bourse__V1__BlobData *data,
                      struct problem *ret_problem)
{
    const struct blob_want *want = &many->wants[index];
    bool is_whole = data->offset == 0 && data->total == data->data.len && data->total <= want->size;
    if (!is_whole) {
        return true;
    }
    struct hash32 hash = sha256_of(data->data.data, data->data.len);
    if (!hash32_equal(&hash, &want->hash)) {
        return true;
    }
    many->is_here[index] = true;
    return many->take(want->context, 0, data->data.data, data->data.len, ret_problem);
}

/* Removes overtaken requests. The broker answers in the order asked, so an older request without an
 * answer met a full queue. */
static void forget_overtaken(struct flights *flights, size_t source)
{
    size_t overtaken = 0;
    while (overtaken < flights->count && flights->list[overtaken].source < source) {
        overtaken++;
    }
    flights->count -= overtaken;
    memmove(flights->list, flights->list + overtaken, flights->count * sizeof flights->list[0]);
}

static bool take_answer(struct many *many, struct flight_answer *answer, size_t *ret_failed,
                        enum reject_code *ret_reject, struct problem *ret_problem)
{
    bool good = true;
    *ret_failed = answer->flight.source;
    forget_overtaken(&many->flights, answer->flight.source);
    if (answer->type == MESSAGE_REJECT) {
        const Bourse__V1__Reject *reject = (const Bourse__V1__Reject *)(const void *)answer->body;
        good = flight_is_passing(many->client, reject) ||
               flight_refused(reject, ret_reject, ret_problem);
    } else {
        good = take_data(many, answer->flight.source,
                         (const Bourse__V1__BlobData *)(const void *)answer->body, ret_problem);
    }
    codec_free(&answer->body);
    return good;
}

static bool get_small(struct many *many, size_t *ret_failed, enum reject_code *ret_reject,
                      struct problem *ret_problem)
{
    for (;;) {
        ask(many);
        if (many->flights.count == 0 && many->next == many->count) {
            return true;
        }
        struct flight_answer answer;
        switch (
            flight_await(many->client, &many->flights, MESSAGE_BLOB_DATA, &answer, ret_problem)) {
        case FLIGHT_ANSWERED:
            if (!take_answer(many, &answer, ret_failed, ret_reject, ret_problem)) {
                return false;
            }
            break;
        case FLIGHT_ROOM:
        case FLIGHT_LOST: /* blobs in flight are fetched alone */
            break;
        case FLIGHT_ENDED:
            return false;
        }
    }
}

/* ---- large ones, out of their files ---- */

enum { TOGETHER = 2 };

struct borrowed {
    struct many *many;
    size_t index; /* index of its blob_want */
    int fd;
    uint64_t size;
    bool is_fatal;
    struct problem problem; /* valid when fatal */
};

static void *take_borrowed(void *argument)
{
    struct borrowed *borrowed = argument;
    struct many *many = borrowed->many;
    many->is_here[borrowed->index] =
        flight_take_file(many->client, &many->wants[borrowed->index], borrowed->size, borrowed->fd,
                         many->take, &borrowed->is_fatal, &borrowed->problem);
    if (many->is_here
            [borrowed->index]) { /* reusing the file's pages is cheaper than getting new memory */
        (void)posix_fadvise(borrowed->fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    (void)close(borrowed->fd); /* only read */
    return NULL;
}

static bool is_large(const struct blob_want *want)
{
    return want->size > FLIGHT_CHUNK_BYTES;
}

/* Borrows the next blobs, from *next on, whose files can be had. */
static size_t borrow(struct many *many, size_t *next, struct borrowed list[TOGETHER])
{
    size_t count = 0;
    for (; *next < many->count && count < TOGETHER; (*next)++) {
        const struct blob_want *want = &many->wants[*next];
        struct borrowed borrowed = {.many = many, .index = *next, .fd = -1};
        if (is_large(want)) {
            borrowed.fd = blob_client_borrow(many->client, &want->hash, many->job, want->size,
                                             &borrowed.size, NULL);
        }
        if (borrowed.fd >= 0) {
            list[count++] = borrowed;
        }
    }
    return count;
}

/* Reads the files; the last one on a thread of its own, if one can be made. */
static void take_together(struct borrowed *list, size_t count)
{
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread inherits the mask */
    bool is_apart =
        count > 1 && pthread_create(&thread, NULL, take_borrowed, &list[count - 1]) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < count - (is_apart ? 1 : 0); i++) {
        (void)take_borrowed(&list[i]);
    }
    if (is_apart) {
        (void)pthread_join(thread, NULL); /* our own thread, joined once */
    }
}

static bool get_large(struct many *many, size_t *ret_failed, struct problem *ret_problem)
{
    struct borrowed list[TOGETHER];
    size_t large = 0;
    size_t next = 0;
    size_t count;
    for (size_t i = 0; i < many->count; i++) {
        large += is_large(&many->wants[i]);
    }
    while (large > 1 && (count = borrow(many, &next, list)) > 0) {
        take_together(list, count);
        for (size_t i = 0; i < count; i++) {
            if (list[i].is_fatal) {
                *ret_failed = list[i].index;
                *ret_problem = list[i].problem;
                return false;
            }
        }
    }
    return true;
}

static bool get_rest(struct many *many, size_t *ret_failed, enum reject_code *ret_reject,
                     struct problem *ret_problem)
{
    for (size_t i = 0; i < many->count; i++) {
        const struct blob_want *want = &many->wants[i];
        *ret_failed = i;
        if (!many->is_here[i] &&
            !blob_client_get_pieces(many->client, &want->hash, many->job, want->size, many->take,
                                    want->context, ret_reject, ret_problem)) {
            return false;
        }
    }
    return true;
}

bool blob_client_get_many(struct blob_client *client, const struct blob_want *wants, size_t count,
                          const struct id128 *job, blob_take *take, size_t *ret_failed,
                          enum reject_code *ret_reject, struct problem *ret_problem)
{
    struct many many = {.client = client, .wants = wants, .count = count, .job = job, .take = take};
    *ret_reject = REJECT_NONE;
    *ret_failed = 0;
    many.is_here = calloc(count + 1, sizeof *many.is_here);
    if (many.is_here == NULL) {
        problem_set(ret_problem, "out of memory for fetching files");
        return false;
    }
    bool good = get_small(&many, ret_failed, ret_reject, ret_problem) &&
                get_large(&many, ret_failed, ret_problem) &&
                get_rest(&many, ret_failed, ret_reject, ret_problem);
    free(many.is_here);
    return good;
}
