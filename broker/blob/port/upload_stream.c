#include "broker/blob/port/upload_stream.h"

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

struct upload_stream {
    struct queue_link link;
    struct upload_streams *streams;
    bool is_used;
    struct upload_stream_facts facts;
    int end;
    pthread_t thread;
    enum upload_stream_status status; /* the thread's until it has ended */
};

struct upload_streams {
    const struct disk_reserve *reserve;
    struct queue *ended;
    atomic_bool stopping;
    struct upload_stream list[UPLOAD_STREAMS_MAX];
};

/* ---------------------------------------------------------------- on the thread of a stream */

/* Waits for bytes. Returns false at the end of the stream, after a silence, and at a stop. */
static bool await_bytes(const struct upload_stream *stream)
{
    for (int waited_ms = 0; waited_ms < UPLOAD_STREAM_SILENCE_MS; waited_ms += SLICE_MS) {
        struct pollfd item = {.fd = stream->end, .events = POLLIN};
        int ready = poll(&item, 1, SLICE_MS);
        if (atomic_load(&stream->streams->stopping) || (ready < 0 && errno != EINTR)) {
            return false;
        }
        if (ready > 0) {
            return true;
        }
    }
    return false;
}

/* The relay calls the next functions. */
static bool receive(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    const struct upload_stream *stream = context;
    (void)offset; /* a stream has none */
    for (size_t done = 0; done < length;) {
        /* There is no room for descriptors: the kernel closes those that are sent to us. */
        ssize_t got = recv(stream->end, ret_bytes + done, length - done, MSG_DONTWAIT);
        if (got == 0) {
            return false;
        }
        if (got < 0 && errno != EINTR && (errno != EAGAIN || !await_bytes(stream))) {
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return disk_reserve_state(stream->streams->reserve) == DISK_RESERVE_UNUSED;
}

static bool write_piece(void *context, uint64_t offset, const uint8_t *bytes, size_t length)
{
    const struct upload_stream *stream = context;
    if (!file_write_at(stream->facts.fd, bytes, length, offset)) {
        return false;
    }
    if ((offset + length) % WRITEBACK_BYTES == 0) {
        /* This only hints that the disk may write; fsync reports failures. */
        (void)sync_file_range(stream->facts.fd, (off_t)(offset + length - WRITEBACK_BYTES),
                              WRITEBACK_BYTES, SYNC_FILE_RANGE_WRITE);
    }
    return true;
}

static void *run(void *argument)
{
    struct upload_stream *stream = argument;
    struct sha256 sum;
    const struct relay relay = {.to = stream->facts.size,
                                .sum = &sum,
                                .context = stream,
                                .read = receive,
                                .write = write_piece};
    sha256_start(&sum);
    bool has_all = relay_run(&relay);
    struct hash32 hash = sha256_end(&sum);
    stream->status = UPLOAD_STREAM_ENDED;
    if (has_all && hash32_equal(&hash, &stream->facts.hash)) {
        /* fsync runs here, where nobody else waits for it. */
        stream->status =
            fsync(stream->facts.fd) == 0 ? UPLOAD_STREAM_WHOLE : UPLOAD_STREAM_UNSYNCED;
    }
    (void)close(stream->end); /* a peer who goes on sending finds nobody */
    bool is_queued = queue_try_push(stream->streams->ended, &stream->link);
    assert(is_queued); /* there is room for all */
    (void)is_queued;
    return NULL;
}

/* ---------------------------------------------------------------- on the owner's thread */

struct upload_streams *upload_streams_create(const struct disk_reserve *reserve)
{
    struct upload_streams *streams = calloc(1, sizeof *streams);
    if (streams == NULL) {
        return NULL;
    }
    streams->reserve = reserve;
    atomic_init(&streams->stopping, false);
    streams->ended = queue_create(UPLOAD_STREAMS_MAX);
    if (streams->ended == NULL) {
        free(streams);
        return NULL;
    }
    return streams;
}

static bool is_same_account(const struct upload_stream *stream, uint32_t account)
{
    return stream->is_used && stream->facts.account == account;
}

bool upload_streams_have_room(const struct upload_streams *streams, uint32_t account)
{
    size_t free_count = 0;
    size_t own_count = 0;
    for (size_t i = 0; i < UPLOAD_STREAMS_MAX; i++) {
        free_count += !streams->list[i].is_used;
        own_count += is_same_account(&streams->list[i], account);
    }
    return free_count > 0 && own_count < UPLOAD_STREAMS_PER_ACCOUNT;
}

static bool open_stream(int ret_ends[2])
{
    const int buffered = BUFFERED_BYTES;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_ends) != 0) {
        return false;
    }
    /* Unread bytes count against the peer's end. Less is good enough. */
    (void)setsockopt(ret_ends[1], SOL_SOCKET, SO_SNDBUF, &buffered, sizeof buffered);
    (void)shutdown(ret_ends[0], SHUT_WR); /* nothing goes back to the peer */
    return true;
}

static bool start_thread(struct upload_stream *stream)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread has the mask of its maker */
    int failed = pthread_create(&stream->thread, NULL, run, stream);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

bool upload_streams_begin(struct upload_streams *streams, const struct upload_stream_facts *facts,
                          int *ret_end)
{
    struct upload_stream *stream = NULL;
    int ends[2];
    for (size_t i = 0; i < UPLOAD_STREAMS_MAX && stream == NULL; i++) {
        stream = streams->list[i].is_used ? NULL : &streams->list[i];
    }
    assert(stream != NULL); /* there is room */
    if (!open_stream(ends)) {
        return false;
    }
    *stream = (struct upload_stream){
        .streams = streams, .is_used = true, .facts = *facts, .end = ends[0]};
    if (!start_thread(stream)) {
        stream->is_used = false;
        (void)close(ends[0]);
        (void)close(ends[1]);
        return false;
    }
    *ret_end = ends[1];
    return true;
}

int upload_streams_find(const struct upload_streams *streams, uint32_t account,
                        const struct id128 *token)
{
    for (int i = 0; i < UPLOAD_STREAMS_MAX; i++) {
        const struct upload_stream *stream = &streams->list[i];
        if (is_same_account(stream, account) && id128_equal(&stream->facts.token, token)) {
            return i;
        }
    }
    return -1;
}

int upload_streams_descriptor(const struct upload_streams *streams)
{
    return queue_descriptor(streams->ended);
}

bool upload_streams_take_ended(struct upload_streams *streams, struct upload_stream_end *ret_end)
{
    struct queue_link *link = queue_pop(streams->ended, 0);
    if (link == NULL) {
        return false;
    }
    struct upload_stream *stream = QUEUE_ELEMENT(link, struct upload_stream, link);
    (void)pthread_join(stream->thread, NULL); /* ours, and joined once */
    *ret_end = (struct upload_stream_end){.place = (int)(stream - streams->list),
                                          .upload = stream->facts.upload,
                                          .hash = stream->facts.hash,
                                          .size = stream->facts.size,
                                          .status = stream->status};
    stream->is_used = false;
    return true;
}

void upload_streams_destroy(struct upload_streams **self)
{
    struct upload_streams *streams = *self;
    if (streams == NULL) {
        return;
    }
    atomic_store(&streams->stopping, true);
    for (size_t i = 0; i < UPLOAD_STREAMS_MAX; i++) {
        if (streams->list[i].is_used) {
            (void)pthread_join(streams->list[i].thread, NULL); /* it ends within a slice */
            streams->list[i].is_used = false;
        }
    }
    while (queue_pop(streams->ended, 0) != NULL) {
        continue; /* these streams have ended */
    }
    queue_close(streams->ended);
    queue_destroy(&streams->ended);
    free(streams);
    *self = NULL;
}
