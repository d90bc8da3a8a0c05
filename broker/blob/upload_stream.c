#include "broker/blob/intake.h"

#include "base/sha256.h"
#include "broker/core/queue.h"
#include "runtime/files.h"
#include "runtime/relay.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BUFFERED_BYTES = 1 << 20,  /* in the socket, as far as the kernel lets us */
    SLICE_MS = 100,            /* how long a stop may go unnoticed */
    WRITEBACK_BYTES = 2 << 20, /* after which the disk is given what is there */
};

struct intake {
    struct queue_link link;
    struct intakes *intakes;
    bool is_used;
    struct intake_facts facts;
    int stream;
    pthread_t thread;
    enum intake_status status; /* the thread's until it has ended */
};

struct intakes {
    const struct room *room;
    struct queue *ended;
    atomic_bool stopping;
    struct intake list[INTAKES_MAX];
};

/* ---------------------------------------------------------------- on the intake's thread */

/* False: the end of the stream, or nobody wants more of it. */
static bool await_bytes(const struct intake *intake)
{
    for (int waited_ms = 0; waited_ms < INTAKE_SILENCE_MS; waited_ms += SLICE_MS) {
        struct pollfd item = {.fd = intake->stream, .events = POLLIN};
        int ready = poll(&item, 1, SLICE_MS);
        if (atomic_load(&intake->intakes->stopping) || (ready < 0 && errno != EINTR)) {
            return false;
        }
        if (ready > 0) {
            return true;
        }
    }
    return false;
}

/* The relay's calls. */
static bool receive(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    const struct intake *intake = context;
    (void)offset; /* a stream has none */
    for (size_t done = 0; done < length;) {
        /* There is no room for descriptors: the kernel closes those that are sent to us. */
        ssize_t got = recv(intake->stream, ret_bytes + done, length - done, MSG_DONTWAIT);
        if (got == 0) {
            return false;
        }
        if (got < 0 && errno != EINTR && (errno != EAGAIN || !await_bytes(intake))) {
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return room_state(intake->intakes->room) == ROOM_FREE;
}

static bool write_piece(void *context, uint64_t offset, const uint8_t *bytes, size_t length)
{
    const struct intake *intake = context;
    if (!file_write_at(intake->facts.fd, bytes, length, offset)) {
        return false;
    }
    if ((offset + length) % WRITEBACK_BYTES == 0) {
        /* While the rest is on its way: a hint, what fails is told by fsync. */
        (void)sync_file_range(intake->facts.fd, (off_t)(offset + length - WRITEBACK_BYTES),
                              WRITEBACK_BYTES, SYNC_FILE_RANGE_WRITE);
    }
    return true;
}

static void *run(void *argument)
{
    struct intake *intake = argument;
    struct sha256 sum;
    const struct relay relay = {.to = intake->facts.size,
                                .sum = &sum,
                                .context = intake,
                                .read = receive,
                                .write = write_piece};
    sha256_start(&sum);
    bool has_all = relay_run(&relay);
    struct hash32 hash = sha256_end(&sum);
    intake->status = INTAKE_ENDED;
    if (has_all && hash32_equal(&hash, &intake->facts.hash)) {
        /* Here, where nobody else waits for it. */
        intake->status = fsync(intake->facts.fd) == 0 ? INTAKE_WHOLE : INTAKE_UNSYNCED;
    }
    (void)close(intake->stream); /* a peer who goes on sending finds nobody */
    bool is_queued = queue_try_push(intake->intakes->ended, &intake->link);
    assert(is_queued); /* there is room for all */
    (void)is_queued;
    return NULL;
}

/* ---------------------------------------------------------------- on the owner's thread */

struct intakes *intakes_create(const struct room *room)
{
    struct intakes *intakes = calloc(1, sizeof *intakes);
    if (intakes == NULL) {
        return NULL;
    }
    intakes->room = room;
    atomic_init(&intakes->stopping, false);
    intakes->ended = queue_create(INTAKES_MAX);
    if (intakes->ended == NULL) {
        free(intakes);
        return NULL;
    }
    return intakes;
}

static bool is_same_account(const struct intake *intake, uint32_t account)
{
    return intake->is_used && intake->facts.account == account;
}

bool intakes_have_room(const struct intakes *intakes, uint32_t account)
{
    size_t free_count = 0;
    size_t own_count = 0;
    for (size_t i = 0; i < INTAKES_MAX; i++) {
        free_count += !intakes->list[i].is_used;
        own_count += is_same_account(&intakes->list[i], account);
    }
    return free_count > 0 && own_count < INTAKES_PER_ACCOUNT;
}

static bool open_stream(int ret_ends[2])
{
    const int buffered = BUFFERED_BYTES;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_ends) != 0) {
        return false;
    }
    /* Unread bytes count against the peer's end. Less is good enough. */
    (void)setsockopt(ret_ends[1], SOL_SOCKET, SO_SNDBUF, &buffered, sizeof buffered);
    (void)shutdown(ret_ends[0], SHUT_WR); /* nothing goes back to him */
    return true;
}

static bool start_thread(struct intake *intake)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread has the mask of its maker */
    int failed = pthread_create(&intake->thread, NULL, run, intake);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

bool intakes_begin(struct intakes *intakes, const struct intake_facts *facts, int *ret_end)
{
    struct intake *intake = NULL;
    int ends[2];
    for (size_t i = 0; i < INTAKES_MAX && intake == NULL; i++) {
        intake = intakes->list[i].is_used ? NULL : &intakes->list[i];
    }
    assert(intake != NULL); /* there is room */
    if (!open_stream(ends)) {
        return false;
    }
    *intake =
        (struct intake){.intakes = intakes, .is_used = true, .facts = *facts, .stream = ends[0]};
    if (!start_thread(intake)) {
        intake->is_used = false;
        (void)close(ends[0]);
        (void)close(ends[1]);
        return false;
    }
    *ret_end = ends[1];
    return true;
}

int intakes_find(const struct intakes *intakes, uint32_t account, const struct id128 *token)
{
    for (int i = 0; i < INTAKES_MAX; i++) {
        const struct intake *intake = &intakes->list[i];
        if (is_same_account(intake, account) && id128_equal(&intake->facts.token, token)) {
            return i;
        }
    }
    return -1;
}

int intakes_descriptor(const struct intakes *intakes)
{
    return queue_descriptor(intakes->ended);
}

bool intakes_take_ended(struct intakes *intakes, struct intake_end *ret_end)
{
    struct queue_link *link = queue_pop(intakes->ended, 0);
    if (link == NULL) {
        return false;
    }
    struct intake *intake = QUEUE_ELEMENT(link, struct intake, link);
    (void)pthread_join(intake->thread, NULL); /* ours, and joined once */
    *ret_end = (struct intake_end){.place = (int)(intake - intakes->list),
                                   .upload = intake->facts.upload,
                                   .hash = intake->facts.hash,
                                   .size = intake->facts.size,
                                   .status = intake->status};
    intake->is_used = false;
    return true;
}

void intakes_destroy(struct intakes **self)
{
    struct intakes *intakes = *self;
    if (intakes == NULL) {
        return;
    }
    atomic_store(&intakes->stopping, true);
    for (size_t i = 0; i < INTAKES_MAX; i++) {
        if (intakes->list[i].is_used) {
            (void)pthread_join(intakes->list[i].thread, NULL); /* it ends within a slice */
            intakes->list[i].is_used = false;
        }
    }
    while (queue_pop(intakes->ended, 0) != NULL) {
        continue; /* of those that are no more */
    }
    queue_close(intakes->ended);
    queue_destroy(&intakes->ended);
    free(intakes);
    *self = NULL;
}
