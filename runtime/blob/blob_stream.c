/* A put to a broker on this machine uses streams for large blobs, because pieces are sealed, copied
 * and answered one by one. The bytes go through a socket that the broker hands over for a ticket
 * (broker/blob/port/upload_stream.h). Several streams run at a time, so that several threads of the
 * broker store them. The kernel sends bytes of a file into the socket without a read of ours. A
 * stream is never required: when one fails, its blob goes in pieces. */
#include "runtime/blob/sending.h"
#include "runtime/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STREAMS = 2,                      /* at a time; others may be fully sent but not yet ended */
    LEAST_BYTES = FLIGHT_CHUNK_BYTES, /* smallest blob for a stream; one piece holds the rest */
    BUFFER_BYTES = 256 << 10,
    SENT_BYTES = 1 << 20,        /* sent from a file at a time */
    FILE_LEAST_BYTES = 64 << 10, /* shorter runs in a file are collected in the buffer */
    SLICE_MS = 100,              /* longest time that an interruption may go unnoticed */
};

struct stream {
    size_t index; /* index of its source */
    int fd;       /* -1: none */
    struct id128 ticket;
    uint64_t read;     /* read from the source up to here */
    size_t length, at; /* bytes in the buffer, and those of them that are sent */
    uint8_t *bytes;    /* BUFFER_BYTES */
    bool is_copied;    /* the kernel cannot send its file */
};

struct streams {
    struct put *put;
    bool *is_begun; /* for each source */
    bool is_over;   /* all are begun, or the broker offers no stream now */
    struct stream list[STREAMS];
};

/* ---- questions ---- */

/* A flight's offset tells which question it carries. */
enum asked { ASKED_FOR_STREAM, ASKED_WHETHER_STORED };

/* Asks for a stream, or with a ticket whether the streamed blob is stored. Returns false when the
 * request cannot go out now. */
static bool ask(struct put *put, size_t index, const struct id128 *ticket)
{
    const struct blob_source *source = &put->sources[index];
    static uint8_t nothing;
    Bourse__V1__BlobPut body = BOURSE__V1__BLOB_PUT__INIT;
    struct flight flight = {.source = index,
                            .offset = ticket == NULL ? ASKED_FOR_STREAM : ASKED_WHETHER_STORED};
    body.hash = (ProtobufCBinaryData){32, (uint8_t *)(uintptr_t)source->hash.bytes}; /* only read */
    body.size = source->size;
    body.data = (ProtobufCBinaryData){0, &nothing};
    sending_set_job(put, &body.has_job, &body.job);
    body.has_by_stream = ticket == NULL;
    body.by_stream = body.has_by_stream;
    body.has_ticket = ticket != NULL;
    if (ticket != NULL) {
        body.ticket = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)ticket->bytes};
    }
    return flight_send(put->client, &put->flights, &flight, MESSAGE_BLOB_PUT, &body.base);
}

/* Takes the next answer, and writes *ret_ticket (may be NULL) when it is a ticket. Every other
 * answer counts as a refusal. The pieces that follow report the reason. */
static enum flight_status take_answer(struct put *put, bool *ret_is_ticket,
                                      struct id128 *ret_ticket, struct problem *ret_problem)
{
    struct flight_answer answer;
    *ret_is_ticket = false;
    enum flight_status status =
        flight_await(put->client, &put->flights, MESSAGE_BLOB_STORED, &answer, ret_problem);
    if (status != FLIGHT_ANSWERED) {
        return status;
    }
    size_t index = answer.flight.source;
    if (answer.type == MESSAGE_BLOB_STORED) {
        const Bourse__V1__BlobStored *stored =
            (const Bourse__V1__BlobStored *)(const void *)answer.body;
        bool is_same = memcmp(stored->hash.data, put->sources[index].hash.bytes, 32) == 0;
        if (is_same && stored->complete) {
            sending_finish(put, index);
        } else if (is_same && stored->has_ticket && answer.flight.offset == ASKED_FOR_STREAM) {
            *ret_is_ticket = true;
            *ret_ticket = codec_id(stored->ticket);
        }
    }
    codec_free(&answer.body);
    return status;
}

static bool is_asked_for(const struct put *put)
{
    bool found = false;
    for (size_t i = 0; i < put->flights.count; i++) {
        found = found || put->flights.list[i].offset == ASKED_FOR_STREAM;
    }
    return found;
}

/* Takes answers until at most `most` requests are in flight. */
static bool take_answers(struct put *put, size_t most, struct problem *ret_problem)
{
    while (put->flights.count > most) {
        bool is_ticket;
        struct id128 ticket;
        if (take_answer(put, &is_ticket, &ticket, ret_problem) == FLIGHT_ENDED) {
            return false;
        }
    }
    return true;
}

/* Asks for a ticket. Returns false when the client must give up. */
static bool get_ticket(struct put *put, size_t index, bool *ret_is_ticket, struct id128 *ret_ticket,
                       struct problem *ret_problem)
{
    *ret_is_ticket = false;
    if (!take_answers(put, FLIGHT_MAX - 1, ret_problem)) {
        return false;
    }
    if (!ask(put, index, NULL)) {
        return true;
    }
    while (is_asked_for(put)) {
        enum flight_status status = take_answer(put, ret_is_ticket, ret_ticket, ret_problem);
        if (status == FLIGHT_ENDED) {
            return false;
        }
    }
    return true;
}

/* ---- one stream ---- */

static bool is_socket(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

/* Picks the largest wanted blob without a stream, so that streams end at about the same time.
 * Returns false when there is none. */
static bool pick(const struct streams *streams, size_t *ret_index)
{
    const struct put *put = streams->put;
    bool found = false;
    for (size_t i = 0; i < put->count; i++) {
        const uint64_t size = put->sources[i].size;
        bool is_wanted = size > LEAST_BYTES && !put->items[i].is_done && !streams->is_begun[i];
        if (is_wanted && (!found || size > put->sources[*ret_index].size)) {
            *ret_index = i;
            found = true;
        }
    }
    return found;
}

/* Takes the stream's end for the ticket. The stream has no end when the descriptor is not a
 * socket. */
static void take_end(struct put *put, struct stream *stream)
{
    const char *files = flight_files(put->client);
    struct descriptor_answer answer = {.fd = -1};
    if (files != NULL && !descriptor_ask(files, &stream->ticket, DESCRIPTOR_WAIT_MS, &answer)) {
        flight_no_files(put->client);
    }
    stream->fd = answer.fd;
    if (stream->fd >= 0 &&
        (!is_socket(stream->fd) || fcntl(stream->fd, F_SETFL, O_NONBLOCK) != 0)) {
        (void)close(stream->fd);
        stream->fd = -1;
    }
}

/* Finds a blob for the stream, and the broker's end. There is none when all blobs are begun, or the
 * broker offers no more. */
static bool begin(struct streams *streams, struct stream *stream, struct problem *ret_problem)
{
    struct put *put = streams->put;
    while (stream->fd < 0 && !streams->is_over) {
        size_t index = 0;
        bool is_given = false;
        if (!pick(streams, &index)) {
            streams->is_over = true;
            return true;
        }
        if (!get_ticket(put, index, &is_given, &stream->ticket, ret_problem)) {
            return false;
        }
        if (!is_given && !put->items[index].is_done && put->flights.count > 0) {
            /* One of our streams is ending. The end makes room, so this blob is asked for again. */
            if (!take_answers(put, put->flights.count - 1, ret_problem)) {
                return false;
            }
            continue;
        }
        streams->is_begun[index] = true;
        streams->is_over = !is_given && !put->items[index].is_done;
        *stream = (struct stream){
            .index = index, .fd = -1, .ticket = stream->ticket, .bytes = stream->bytes};
        if (is_given) {
            take_end(put, stream);
        }
    }
    return true;
}

static void drop(struct stream *stream)
{
    if (stream->fd >= 0) {
        (void)close(stream->fd);
        stream->fd = -1;
    }
}

/* Reads on when all bytes of the buffer are sent. */
static bool fill(struct put *put, struct stream *stream, struct problem *ret_problem)
{
    const struct blob_source *source = &put->sources[stream->index];
    uint64_t left = source->size - stream->read;
    if (stream->at < stream->length || left == 0) {
        return true;
    }
    size_t length = left < BUFFER_BYTES ? (size_t)left : BUFFER_BYTES;
    if (!sending_read(source, stream->read, length, stream->bytes, ret_problem)) {
        put->is_unread = true;
        return false;
    }
    stream->read += length;
    stream->length = length;
    stream->at = 0;
    return true;
}

/* Sends like send() with MSG_NOSIGNAL, which sendfile lacks: the call blocks SIGPIPE. */
static ssize_t send_file(int socket, const struct blob_place *place)
{
    static const struct timespec at_once = {0};
    sigset_t pipe;
    sigset_t before;
    sigset_t pending;
    off_t at = (off_t)place->at;
    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe, &before);
    (void)sigpending(&pending);
    ssize_t sent = sendfile(socket, place->fd, &at,
                            place->length < SENT_BYTES ? (size_t)place->length : SENT_BYTES);
    int error = errno;
    if (sent < 0 && error == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
        (void)sigtimedwait(&pipe, NULL, &at_once); /* our own signal, unless it is ignored */
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return sent;
}

/* Finds the next bytes in a file, when the buffer is fully sent. */
static bool find_place(const struct put *put, const struct stream *stream,
                       struct blob_place *ret_place)
{
    const struct blob_source *source = &put->sources[stream->index];
    const uint64_t left = source->size - stream->read;
    *ret_place = (struct blob_place){.fd = source->fd, .at = stream->read, .length = left};
    if (stream->is_copied || stream->at < stream->length || left == 0 ||
        (source->fd < 0 &&
         (source->bytes != NULL || source->locate == NULL ||
          !source->locate(source->context, source->index, stream->read, ret_place)))) {
        return false;
    }
    ret_place->length = ret_place->length < left ? ret_place->length : left;
    return ret_place->length >= FILE_LEAST_BYTES || ret_place->length == left;
}

/* Sends from a file without a copy. After any fault of the file, reading it gives the reason. */
static ssize_t send_place(struct stream *stream, const struct blob_place *place)
{
    ssize_t sent = send_file(stream->fd, place);
    stream->read += sent > 0 ? (uint64_t)sent : 0;
    if (sent == 0 ||
        (sent < 0 && errno != EAGAIN && errno != EINTR && errno != EPIPE && errno != ECONNRESET)) {
        stream->is_copied = true;
        return 0;
    }
    return sent;
}

/* Sends as much as the socket takes now. */
static bool send_on(struct put *put, struct stream *stream, struct problem *ret_problem)
{
    while (stream->fd >= 0) {
        struct blob_place place;
        const bool is_placed = find_place(put, stream, &place);
        if (!is_placed && !fill(put, stream, ret_problem)) {
            return false;
        }
        if (!is_placed && stream->at == stream->length) {
            drop(stream); /* fully sent */
            /* If this fails, the blob goes in pieces, and is already stored. */
            (void)ask(put, stream->index, &stream->ticket);
            return true;
        }
        ssize_t sent = is_placed ? send_place(stream, &place)
                                 : send(stream->fd, stream->bytes + stream->at,
                                        stream->length - stream->at, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            return true;
        }
        if (sent < 0 && errno != EINTR) {
            drop(stream); /* the broker wants no more bytes */
        }
        stream->at += sent > 0 && !is_placed ? (size_t)sent : 0;
    }
    return true;
}

/* ---- all streams ---- */

static bool run(struct streams *streams, struct problem *ret_problem)
{
    for (;;) {
        struct pollfd items[STREAMS];
        nfds_t count = 0;
        for (size_t i = 0; i < STREAMS; i++) {
            struct stream *stream = &streams->list[i];
            do { /* a small blob may be done at once */
                if (!begin(streams, stream, ret_problem) ||
                    !send_on(streams->put, stream, ret_problem)) {
                    return false;
                }
            } while (stream->fd < 0 && !streams->is_over);
            if (stream->fd >= 0) {
                items[count++] = (struct pollfd){.fd = stream->fd, .events = POLLOUT};
            }
        }
        if (count == 0) {
            return take_answers(streams->put, 0, ret_problem);
        }
        (void)poll(items, count, SLICE_MS); /* an interrupted wait is harmless */
        if (flight_interrupted(streams->put->client, ret_problem)) {
            return false;
        }
    }
}

static void streams_fini(struct streams *streams)
{
    for (size_t i = 0; i < STREAMS; i++) {
        drop(&streams->list[i]);
        free(streams->list[i].bytes);
    }
    free(streams->is_begun);
}

bool sending_by_stream(struct put *put, struct problem *ret_problem)
{
    struct streams streams = {.put = put};
    size_t largest = 0;
    streams.is_begun = calloc(put->count + 1, sizeof *streams.is_begun);
    bool is_ready = streams.is_begun != NULL && flight_files(put->client) != NULL &&
                    pick(&streams, &largest); /* otherwise all goes in pieces */
    for (size_t i = 0; i < STREAMS; i++) {
        streams.list[i] =
            (struct stream){.fd = -1, .bytes = is_ready ? malloc(BUFFER_BYTES) : NULL};
        is_ready = is_ready && streams.list[i].bytes != NULL;
    }
    bool good = !is_ready || run(&streams, ret_problem);
    streams_fini(&streams);
    return good;
}
