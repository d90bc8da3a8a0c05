#include "runtime/blob_client.h"

#include "base/sha256.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "runtime/descriptor.h"
#include "runtime/process.h"
#include "runtime/router.h"
#include "runtime/zap.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

enum { BLOBS_MAX = 64, BLOB_BYTES_MAX = 24 << 20, WAIT_MS = 20 };

struct blob {
    struct hash32 hash;
    uint64_t size;
    uint64_t stored;
    uint8_t *bytes;
};

struct held { /* a request for a blob that waits for others */
    struct router_message message;
    struct envelope request;
    struct hash32 hash;
    uint32_t length;
};

enum { STREAMS_MAX = 8 };
enum stream_fault { /* of the port's */
                    STREAM_GOOD,
                    STREAM_NOT_HANDED,
                    STREAM_NO_SOCKET,
                    STREAM_CLOSED, /* before all has come */
                    STREAM_DENIED, /* all has come, and was for nothing */
                    STREAM_FAULTS,
};

struct stream { /* a blob on its way through a socket */
    struct blob *blob;
    enum stream_fault fault;
    int ends[2];
    pthread_t thread;
    uint64_t got;
};

/* A blob port with a store in memory, in a thread of its own, that errs as told. */
struct port {
    void *context;
    struct zap *zap;
    struct router *router;
    struct identity *server;
    struct identity *client_key;
    struct blob_client *client;
    char endpoint[64];
    pthread_t thread;
    atomic_bool stopping;
    atomic_int busy_answers; /* refuse so many requests with BUSY first */
    atomic_int forget_after; /* after so many puts: the half-stored blobs lose a chunk; 0: never */
    atomic_bool lies;        /* flips a bit of what it hands out */
    atomic_bool refuses_quota;
    atomic_int drop_answers; /* the how manieth answer to a get is dropped; 0: none */
    atomic_int puts;
    atomic_int gets;
    atomic_int hold; /* so many gets at the start, until all of them are there */
    struct held held[BLOBS_MAX];
    int held_count;            /* the thread's own */
    atomic_bool gives_tickets; /* instead of the first bytes */
    atomic_int file_port;      /* where these are taken to; -1: nowhere */
    atomic_int handed;         /* what is handed over for them; -1: nothing */
    atomic_int tickets;        /* that were given */
    atomic_bool gives_streams;
    atomic_int stream_fault; /* enum stream_fault */
    struct stream streams[STREAMS_MAX];
    size_t stream_count; /* the thread's own while it runs */
    atomic_int pieces;   /* puts with data */
    struct blob blobs[BLOBS_MAX];
    size_t blob_count;
};

static struct blob *find_blob(struct port *port, const uint8_t *hash)
{
    for (size_t i = 0; i < port->blob_count; i++) {
        if (memcmp(port->blobs[i].hash.bytes, hash, 32) == 0) {
            return &port->blobs[i];
        }
    }
    return NULL;
}

static struct blob *add_blob(struct port *port, const uint8_t *hash, uint64_t size)
{
    ck_assert_uint_lt(port->blob_count, BLOBS_MAX);
    struct blob *blob = &port->blobs[port->blob_count++];
    memcpy(blob->hash.bytes, hash, 32);
    blob->size = size;
    blob->stored = 0;
    blob->bytes = malloc(size + 1);
    return blob;
}

static void answer(struct port *port, const struct router_message *message,
                   const struct envelope *request, enum message_type type,
                   const ProtobufCMessage *body)
{
    size_t length;
    uint8_t *packed = codec_encode(body, &length);
    struct envelope envelope = {.version = ENVELOPE_VERSION,
                                .type = (uint16_t)type,
                                .id = request->id,
                                .body = packed,
                                .body_length = (uint32_t)length};
    size_t size = envelope_size(&envelope);
    uint8_t *bytes = malloc(size);
    envelope_write(&envelope, bytes, size);
    (void)router_send(port->router, &message->route, &message->client, bytes, size);
    free(bytes);
    free(packed);
}

static void refuse(struct port *port, const struct router_message *message,
                   const struct envelope *request, enum reject_code code, int64_t value)
{
    Bourse__V1__Reject reject = BOURSE__V1__REJECT__INIT;
    reject.code = (uint32_t)code;
    reject.text = "no";
    reject.has_value = 1;
    reject.value = value;
    answer(port, message, request, MESSAGE_REJECT, &reject.base);
}

static void on_have(struct port *port, const struct router_message *message,
                    const struct envelope *request, const Bourse__V1__BlobHave *have)
{
    ProtobufCBinaryData lacking[BLOBS_MAX];
    Bourse__V1__BlobMissing missing = BOURSE__V1__BLOB_MISSING__INIT;
    missing.hashes = lacking;
    for (size_t i = 0; i < have->n_hashes; i++) {
        struct blob *blob = find_blob(port, have->hashes[i].data);
        if (blob == NULL || blob->stored < blob->size) {
            lacking[missing.n_hashes++] = have->hashes[i];
        }
    }
    answer(port, message, request, MESSAGE_BLOB_MISSING, &missing.base);
}

static void *receive_stream(void *argument)
{
    struct stream *stream = argument;
    const uint64_t most = stream->fault == STREAM_CLOSED ? 1 << 20 : stream->blob->size;
    while (stream->got < most) {
        ssize_t got = read(stream->ends[0], stream->blob->bytes + stream->got, most - stream->got);
        if (got <= 0) {
            break;
        }
        stream->got += (uint64_t)got;
    }
    (void)close(stream->ends[0]);
    return NULL;
}

static void answer_stored(struct port *port, const struct router_message *message,
                          const struct envelope *request, const Bourse__V1__BlobPut *put,
                          const struct blob *blob, struct id128 *ticket)
{
    Bourse__V1__BlobStored stored = BOURSE__V1__BLOB_STORED__INIT;
    stored.hash = put->hash;
    stored.stored = blob->stored;
    stored.complete = blob->stored == blob->size;
    stored.has_ticket = ticket != NULL;
    if (ticket != NULL) {
        stored.ticket = (ProtobufCBinaryData){sizeof ticket->bytes, ticket->bytes};
    }
    answer(port, message, request, MESSAGE_BLOB_STORED, &stored.base);
}

static void give_stream(struct port *port, const struct router_message *message,
                        const struct envelope *request, const Bourse__V1__BlobPut *put,
                        struct blob *blob)
{
    ck_assert_uint_lt(port->stream_count, STREAMS_MAX);
    struct stream *stream = &port->streams[port->stream_count++];
    struct id128 ticket = {{7, (uint8_t)port->stream_count}};
    *stream = (struct stream){.blob = blob, .fault = (enum stream_fault)port->stream_fault};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream->ends), 0);
    ck_assert_int_eq(pthread_create(&stream->thread, NULL, receive_stream, stream), 0);
    answer_stored(port, message, request, put, blob, &ticket);
}

static void end_stream(struct port *port, const struct router_message *message,
                       const struct envelope *request, const Bourse__V1__BlobPut *put,
                       struct blob *blob)
{
    struct stream *stream = &port->streams[put->ticket.data[1] - 1];
    ck_assert_int_eq(pthread_join(stream->thread, NULL), 0);
    stream->blob = NULL;
    if (stream->fault != STREAM_GOOD) {
        refuse(port, message, request, REJECT_BLOB_OFFSET, 0);
        return;
    }
    ck_assert_uint_eq(stream->got, blob->size);
    blob->stored = blob->size;
    answer_stored(port, message, request, put, blob, NULL);
}

/* For the ticket of a stream, its end, which goes away here. */
static void hand_end(struct port *port, int file_port, const struct descriptor_asker *asker,
                     uint8_t number)
{
    struct stream *stream = &port->streams[number - 1];
    int file = open("/dev/null", O_WRONLY | O_CLOEXEC);
    descriptor_port_answer(file_port, asker,
                           stream->fault == STREAM_NOT_HANDED  ? -1
                           : stream->fault == STREAM_NO_SOCKET ? file
                                                               : stream->ends[1]);
    (void)close(file);
    (void)close(stream->ends[1]);
}

static void on_put(struct port *port, const struct router_message *message,
                   const struct envelope *request, const Bourse__V1__BlobPut *put)
{
    int puts = atomic_fetch_add(&port->puts, 1) + 1;
    if (atomic_load(&port->refuses_quota)) {
        refuse(port, message, request, REJECT_BLOB_QUOTA, 0);
        return;
    }
    struct blob *blob = find_blob(port, put->hash.data);
    if (blob == NULL) {
        blob = add_blob(port, put->hash.data, put->size);
    }
    if (put->has_ticket) {
        end_stream(port, message, request, put, blob);
        return;
    }
    if (put->by_stream && atomic_load(&port->gives_streams)) {
        ck_assert_uint_eq(put->data.len, 0);
        give_stream(port, message, request, put, blob);
        return;
    }
    if (puts == atomic_load(&port->forget_after)) {
        blob->stored /= 2; /* a crash took the newest chunks */
    }
    if (put->offset != blob->stored) {
        refuse(port, message, request, REJECT_BLOB_OFFSET, (int64_t)blob->stored);
        return;
    }
    (void)atomic_fetch_add(&port->pieces, put->data.len > 0);
    if (put->data.len > 0) {
        memcpy(blob->bytes + put->offset, put->data.data, put->data.len);
    }
    blob->stored += put->data.len;
    answer_stored(port, message, request, put, blob, NULL);
}

static void answer_get(struct port *port, const struct router_message *message,
                       const struct envelope *request, const Bourse__V1__BlobGet *get);

static void answer_held(struct port *port)
{
    for (int i = 0; i < port->held_count; i++) {
        struct held *held = &port->held[i];
        Bourse__V1__BlobGet get = BOURSE__V1__BLOB_GET__INIT;
        get.hash = (ProtobufCBinaryData){sizeof held->hash.bytes, held->hash.bytes};
        get.length = held->length;
        answer_get(port, &held->message, &held->request, &get);
    }
    port->held_count = 0;
}

static void on_get(struct port *port, const struct router_message *message,
                   const struct envelope *request, const Bourse__V1__BlobGet *get)
{
    if (port->held_count == atomic_load(&port->hold)) {
        answer_get(port, message, request, get);
        return;
    }
    ck_assert_uint_eq(get->offset, 0);
    struct held *held = &port->held[port->held_count++];
    *held = (struct held){.message = *message, .request = *request, .length = get->length};
    memcpy(held->hash.bytes, get->hash.data, sizeof held->hash.bytes);
    if (port->held_count == atomic_load(&port->hold)) {
        atomic_store(&port->hold, 0);
        answer_held(port);
    }
}

static void answer_get(struct port *port, const struct router_message *message,
                       const struct envelope *request, const Bourse__V1__BlobGet *get)
{
    (void)atomic_fetch_add(&port->gets, 1);
    struct blob *blob = find_blob(port, get->hash.data);
    if (blob == NULL) {
        refuse(port, message, request, REJECT_NOT_FOUND, 0);
        return;
    }
    uint64_t left = get->offset < blob->size ? blob->size - get->offset : 0;
    Bourse__V1__BlobData data = BOURSE__V1__BLOB_DATA__INIT;
    data.hash = get->hash;
    data.offset = get->offset;
    data.total = blob->size;
    data.data.len = left < get->length ? left : get->length;
    data.data.data = blob->bytes + get->offset;
    struct id128 ticket = {{7}};
    if (atomic_load(&port->gives_tickets) && (get->by_file || get->offset == 0)) {
        (void)atomic_fetch_add(&port->tickets, 1);
        data.has_ticket = 1;
        data.ticket = (ProtobufCBinaryData){sizeof ticket.bytes, ticket.bytes};
        data.data.len = 0;
        atomic_store(&port->gives_tickets, false);
    }
    if (atomic_fetch_sub(&port->drop_answers, 1) == 1) {
        return; /* as a full queue would */
    }
    uint8_t lie = atomic_load(&port->lies) ? 1 : 0;
    blob->bytes[blob->size - 1] ^= lie;
    answer(port, message, request, MESSAGE_BLOB_DATA, &data.base);
    blob->bytes[blob->size - 1] ^= lie;
}

static void on_request(struct port *port, const struct router_message *message)
{
    struct envelope request;
    ProtobufCMessage *body;
    ck_assert_int_eq(
        envelope_read(message->bytes, message->length, LIMIT_BLOB_MESSAGE_BYTES, &request),
        ENVELOPE_OK);
    ck_assert_uint_eq(request.session, 0);
    ck_assert_int_eq(codec_decode((enum message_type)request.type, request.body,
                                  request.body_length, &body, NULL),
                     CODEC_OK);
    if (atomic_fetch_sub(&port->busy_answers, 1) > 0) {
        refuse(port, message, &request, REJECT_BUSY, 0);
    } else if (request.type == MESSAGE_BLOB_HAVE) {
        on_have(port, message, &request, (const Bourse__V1__BlobHave *)(const void *)body);
    } else if (request.type == MESSAGE_BLOB_PUT) {
        on_put(port, message, &request, (const Bourse__V1__BlobPut *)(const void *)body);
    } else if (request.type == MESSAGE_BLOB_GET) {
        on_get(port, message, &request, (const Bourse__V1__BlobGet *)(const void *)body);
    }
    codec_free(&body);
}

static void *serve(void *argument)
{
    struct port *port = argument;
    while (!atomic_load(&port->stopping)) {
        struct router_message message;
        if (router_receive(port->router, WAIT_MS, &message) == 1) {
            on_request(port, &message);
        }
        struct id128 ticket;
        struct descriptor_asker asker;
        int file_port = atomic_load(&port->file_port);
        if (file_port >= 0 && descriptor_port_receive(file_port, &ticket, &asker)) {
            ck_assert_uint_eq(ticket.bytes[0], 7);
            if (ticket.bytes[1] > 0) {
                hand_end(port, file_port, &asker, ticket.bytes[1]);
            } else {
                descriptor_port_answer(file_port, &asker, atomic_load(&port->handed));
            }
        }
    }
    return NULL;
}

static struct port *setup_at(const char *endpoint)
{
    static const uint8_t server_seed[32] = {1};
    static const uint8_t client_seed[32] = {2};
    struct problem problem = {""};
    struct port *port = calloc(1, sizeof *port);
    ck_assert(process_start(&problem));
    port->context = zmq_ctx_new();
    port->server = identity_create(server_seed);
    port->client_key = identity_create(client_seed);
    ck_assert(zap_start(port->context, &port->zap, &problem));
    struct router_config config = {.identity = port->server,
                                   .max_message_bytes = LIMIT_BLOB_MESSAGE_BYTES};
    ck_assert(router_open(port->context, &config, &port->router, &problem));
    atomic_store(&port->file_port, -1);
    atomic_store(&port->handed, -1);
    ck_assert(router_bind(port->router, endpoint, false, port->endpoint, sizeof port->endpoint,
                          &problem));
    ck_assert_int_eq(pthread_create(&port->thread, NULL, serve, port), 0);
    ck_assert(blob_client_open(port->context, port->endpoint, identity_transport(port->server),
                               port->client_key, &port->client, &problem));
    return port;
}

static struct port *setup(void)
{
    return setup_at("tcp://127.0.0.1:*");
}

static void teardown(struct port *port)
{
    blob_client_close(&port->client);
    atomic_store(&port->stopping, true);
    ck_assert_int_eq(pthread_join(port->thread, NULL), 0);
    for (size_t i = 0; i < port->stream_count; i++) {
        if (port->streams[i].blob != NULL) { /* nobody came back for it */
            ck_assert_int_eq(pthread_join(port->streams[i].thread, NULL), 0);
        }
    }
    router_close(&port->router);
    zap_stop(&port->zap);
    ck_assert_int_eq(zmq_ctx_term(port->context), 0);
    identity_destroy(&port->server);
    identity_destroy(&port->client_key);
    for (size_t i = 0; i < port->blob_count; i++) {
        free(port->blobs[i].bytes);
    }
    free(port);
}

static uint8_t *pattern(size_t size, uint8_t salt)
{
    uint8_t *bytes = malloc(size + 1);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(i * 31 + i / 4096 + salt);
    }
    return bytes;
}

static struct blob_source source_of(const uint8_t *bytes, size_t size)
{
    return (struct blob_source){
        .hash = sha256_of(bytes, size), .size = size, .fd = -1, .bytes = bytes};
}

static bool put(struct port *port, const struct blob_source *sources, size_t count,
                enum reject_code *ret_reject)
{
    struct problem problem = {""};
    return blob_client_put(port->client, sources, count, NULL, NULL, NULL, ret_reject, NULL,
                           &problem);
}

static void check_get(struct port *port, const struct blob_source *source)
{
    struct problem problem = {""};
    enum reject_code reject;
    uint8_t *bytes;
    size_t length;
    ck_assert_msg(blob_client_get_bytes(port->client, &source->hash, NULL, BLOB_BYTES_MAX, &bytes,
                                        &length, &reject, &problem),
                  "%s", problem.text);
    ck_assert_uint_eq(length, source->size);
    ck_assert_mem_eq(bytes, source->bytes, length);
    ck_assert_uint_eq(bytes[length], 0);
    free(bytes);
}

struct taker {
    const struct blob_source *source;
    atomic_ullong taken;
    uint64_t most;  /* after which it takes no more */
    bool any_order; /* after the first */
};

static bool take(void *context, uint64_t offset, const uint8_t *bytes, size_t length,
                 struct problem *ret_problem)
{
    struct taker *taker = context;
    ck_assert(offset == 0 || atomic_load(&taker->taken) >= 1 << 20);
    ck_assert(offset == 0 || taker->any_order || offset == atomic_load(&taker->taken));
    ck_assert(offset > 0 || length == 1 << 20 || length == taker->source->size);
    ck_assert_mem_eq(bytes, taker->source->bytes + offset, length);
    if (offset == 0) {
        atomic_store(&taker->taken, 0);
    }
    problem_set(ret_problem, "it is enough");
    return atomic_fetch_add(&taker->taken, length) + length <= taker->most;
}

static bool take_all(struct port *port, struct taker *taker, struct problem *problem)
{
    enum reject_code reject;
    bool good = blob_client_get_pieces(port->client, &taker->source->hash, NULL, BLOB_BYTES_MAX,
                                       take, taker, &reject, problem);
    ck_assert_int_eq(reject, REJECT_NONE);
    return good;
}

static const size_t sizes[] = {1, 1000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5000000, 20 << 20};
enum { SIZE_COUNT = sizeof sizes / sizeof sizes[0] };

START_TEST(what_is_put_can_be_got)
{
    struct port *port = setup();
    uint8_t *bytes = pattern(sizes[_i], 1);
    struct blob_source source = source_of(bytes, sizes[_i]);
    enum reject_code reject;
    ck_assert(put(port, &source, 1, &reject));
    check_get(port, &source);
    struct problem problem = {""};
    struct taker taker = {.source = &source, .most = UINT64_MAX};
    ck_assert_msg(take_all(port, &taker, &problem), "%s", problem.text);
    ck_assert_uint_eq(taker.taken, source.size);
    taker.most = source.size - 1;
    ck_assert(!take_all(port, &taker, &problem));
    ck_assert_str_eq(problem.text, "it is enough");
    free(bytes);
    teardown(port);
}
END_TEST

/* What is made as it is sent: the first `ends` bytes of it. */
struct maker {
    const uint8_t *bytes[2];
    uint64_t ends;
};

static bool make(void *context, size_t index, uint64_t offset, size_t length, uint8_t *ret_bytes,
                 struct problem *ret_problem)
{
    const struct maker *maker = context;
    if (offset + length > maker->ends) {
        problem_set(ret_problem, "it ends");
        return false;
    }
    memcpy(ret_bytes, maker->bytes[index] + offset, length);
    return true;
}

START_TEST(what_is_made_as_it_is_sent_arrives)
{
    enum { SIZE = 3 << 20 };
    struct port *port = setup();
    struct maker maker = {.bytes = {pattern(SIZE, 1), pattern(SIZE, 2)}, .ends = SIZE};
    struct blob_source sources[2];
    enum reject_code reject;
    for (size_t i = 0; i < 2; i++) {
        sources[i] = source_of(maker.bytes[i], SIZE);
        sources[i].bytes = NULL;
        sources[i].read = make;
        sources[i].context = &maker;
        sources[i].index = i;
    }
    ck_assert(put(port, sources, 1, &reject));
    sources[0].bytes = maker.bytes[0];
    check_get(port, &sources[0]);
    /* What cannot be made is said, and the connection can be used again. */
    struct problem problem = {""};
    maker.ends = SIZE - 1;
    ck_assert(
        !blob_client_put(port->client, sources, 2, NULL, NULL, NULL, &reject, NULL, &problem));
    ck_assert_str_eq(problem.text, "it ends");
    ck_assert_int_eq(reject, REJECT_NONE);
    maker.ends = SIZE;
    ck_assert(put(port, sources, 2, &reject));
    sources[1].bytes = maker.bytes[1];
    check_get(port, &sources[1]);
    free((void *)(uintptr_t)maker.bytes[0]);
    free((void *)(uintptr_t)maker.bytes[1]);
    teardown(port);
}
END_TEST

struct told {
    uint64_t done;
    uint64_t total;
    unsigned calls;
};

static void tell(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct told *told = context;
    ck_assert_uint_ge(done_bytes, told->done);
    told->done = done_bytes;
    told->total = total_bytes;
    told->calls++;
}

START_TEST(many_go_at_once_and_what_is_there_is_not_sent)
{
    enum { COUNT = 40 };
    struct port *port = setup();
    struct blob_source sources[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        sources[i] = source_of(pattern(100 * i, (uint8_t)i), 100 * i);
    }
    free((void *)(uintptr_t)sources[7].bytes);
    sources[7] = sources[6]; /* the same bytes twice */
    enum reject_code reject;
    ck_assert(put(port, sources, 20, &reject));
    ck_assert_int_eq(atomic_load(&port->puts), 18); /* not the empty one, not the repeated one */

    struct told told = {0};
    struct problem problem = {""};
    ck_assert(
        blob_client_put(port->client, sources, COUNT, NULL, tell, &told, &reject, NULL, &problem));
    ck_assert_int_eq(atomic_load(&port->puts), 18 + 20);
    ck_assert_uint_eq(told.calls, COUNT);
    ck_assert_uint_eq(told.done, told.total);
    for (size_t i = 0; i < COUNT; i++) {
        check_get(port, &sources[i]);
    }
    ck_assert(put(port, sources, 0, &reject));
    for (size_t i = 0; i < COUNT; i++) {
        if (i != 7) {
            free((void *)(uintptr_t)sources[i].bytes);
        }
    }
    teardown(port);
}
END_TEST

START_TEST(descriptors_serve_on_both_ends)
{
    struct port *port = setup();
    size_t size = 3000000;
    uint8_t *bytes = pattern(size, 3);
    int from = memfd_create("from", MFD_CLOEXEC);
    int to = memfd_create("to", MFD_CLOEXEC);
    ck_assert_int_eq(write(from, bytes, size), (ssize_t)size);
    struct blob_source source = {.hash = sha256_of(bytes, size), .size = size, .fd = from};
    struct problem problem = {""};
    enum reject_code reject;
    ck_assert(put(port, &source, 1, &reject));
    uint64_t got;
    int unwritten = 0;
    ck_assert(blob_client_get(port->client, &source.hash, NULL, size, to, &got, &reject, &unwritten,
                              &problem));
    ck_assert_uint_eq(got, size);
    uint8_t *again = malloc(size);
    ck_assert_int_eq(pread(to, again, size, 0), (ssize_t)size);
    ck_assert_mem_eq(again, bytes, size);

    int full = open("/dev/full",
                    O_RDWR | O_CLOEXEC); /* our side's fault, and told apart from the broker's */
    ck_assert(!blob_client_get(port->client, &source.hash, NULL, size, full, &got, &reject,
                               &unwritten, &problem));
    ck_assert_int_eq(reject, REJECT_NONE);
    ck_assert_int_eq(unwritten, ENOSPC);
    (void)close(full);

    uint8_t *other = pattern(size + 1, 9); /* of which the file has one byte less */
    struct blob_source cut = {.hash = sha256_of(other, size + 1), .size = size + 1, .fd = from};
    bool unread = false;
    ck_assert(
        !blob_client_put(port->client, &cut, 1, NULL, NULL, NULL, &reject, &unread, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "shorter"));
    ck_assert(unread);
    free(other);
    free(again);
    free(bytes);
    (void)close(from);
    (void)close(to);
    teardown(port);
}
END_TEST

/* A port on this machine with a blob of 3 MB, and a place where tickets are taken to. */
struct local {
    char folder[32], path[48];
    struct port *port;
    struct blob_source source;
    uint8_t *bytes;
    int file_port, file; /* the blob itself is in `file` */
};

static struct local open_local(void)
{
    enum { SIZE = 3000000 };
    struct local local = {.folder = "/tmp/bourse-blobs-XXXXXX"};
    char endpoint[64];
    struct problem problem = {""};
    enum reject_code reject;
    ck_assert_ptr_nonnull(mkdtemp(local.folder));
    (void)snprintf(endpoint, sizeof endpoint, "ipc://%s/b.sock", local.folder);
    local.port = setup_at(endpoint);
    ck_assert(descriptor_path(endpoint, local.path, sizeof local.path));
    ck_assert(descriptor_port_open(local.path, false, &local.file_port, &problem));
    atomic_store(&local.port->file_port, local.file_port);
    local.bytes = pattern(SIZE, 5);
    local.source = source_of(local.bytes, SIZE);
    ck_assert(put(local.port, &local.source, 1, &reject));
    local.file = memfd_create("blob", MFD_CLOEXEC);
    ck_assert_int_eq(write(local.file, local.bytes, SIZE), SIZE);
    atomic_store(&local.port->handed, local.file);
    atomic_store(&local.port->gives_tickets, true);
    return local;
}

static void close_local(struct local *local)
{
    char path[64];
    teardown(local->port);
    (void)close(local->file_port);
    (void)close(local->file);
    (void)unlink(local->path);
    (void)snprintf(path, sizeof path, "%s/b.sock", local->folder);
    (void)unlink(path);
    (void)rmdir(local->folder);
    free(local->bytes);
}

START_TEST(a_ticket_brings_the_whole_file)
{
    struct local local = open_local();
    struct problem problem = {""};
    check_get(local.port, &local.source);
    ck_assert_int_eq(atomic_load(&local.port->gets), 1);

    struct taker taker = {.source = &local.source, .most = UINT64_MAX, .any_order = true};
    atomic_store(&local.port->gives_tickets, true);
    ck_assert_msg(take_all(local.port, &taker, &problem), "%s", problem.text);
    ck_assert_uint_eq(taker.taken, local.source.size);
    ck_assert_int_eq(atomic_load(&local.port->gets), 2);

    taker.most = local.source.size - 1; /* our side ends it: nothing is asked for again */
    atomic_store(&local.port->gives_tickets, true);
    ck_assert(!take_all(local.port, &taker, &problem));
    ck_assert_str_eq(problem.text, "it is enough");
    ck_assert_int_eq(atomic_load(&local.port->gets), 3);

    enum reject_code reject;
    uint8_t *bytes;
    size_t length;
    atomic_store(&local.port->gives_tickets, true);
    ck_assert(!blob_client_get_bytes(local.port->client, &local.source.hash, NULL, 1000, &bytes,
                                     &length, &reject, &problem));
    ck_assert_int_eq(reject, REJECT_TOO_LARGE);
    ck_assert_int_eq(atomic_load(&local.port->tickets), 4);
    close_local(&local);
}
END_TEST

START_TEST(a_file_is_borrowed_as_it_is)
{
    struct local local = open_local();
    struct blob_client *client = local.port->client;
    const struct hash32 *hash = &local.source.hash;
    const struct hash32 absent = {{1}};
    uint64_t size = 0;
    char byte;
    int fd = blob_client_borrow(client, hash, NULL, BLOB_BYTES_MAX, &size);
    ck_assert_int_ge(fd, 0);
    ck_assert_uint_eq(size, local.source.size);
    ck_assert_int_eq(pread(fd, &byte, 1, 0), 1);
    (void)close(fd);

    atomic_store(&local.port->gives_tickets, true);
    ck_assert_int_eq(blob_client_borrow(client, hash, NULL, 1000, &size), -1); /* too large */
    ck_assert_int_eq(blob_client_borrow(client, &absent, NULL, BLOB_BYTES_MAX, &size), -1);
    atomic_store(&local.port->gives_tickets, false); /* bytes instead of a ticket */
    ck_assert_int_eq(blob_client_borrow(client, hash, NULL, BLOB_BYTES_MAX, &size), -1);
    ck_assert_int_eq(ftruncate(local.file, 2 << 20), 0);
    atomic_store(&local.port->gives_tickets, true); /* of a file that is shorter than was said */
    ck_assert_int_eq(blob_client_borrow(client, hash, NULL, BLOB_BYTES_MAX, &size), -1);
    check_get(local.port, &local.source); /* and the connection goes on */
    close_local(&local);
}
END_TEST

enum wrong { ABSENT, DENIED, SHORT, LONG, FIFO, UNREADABLE, WRONG_COUNT };

START_TEST(what_a_ticket_does_not_bring_comes_in_pieces)
{
    struct local local = open_local();
    int ends[2] = {-1, -1};
    switch ((enum wrong)_i) {
    case ABSENT:
        (void)unlink(local.path);
        break;
    case DENIED:
        atomic_store(&local.port->handed, -1);
        break;
    case SHORT:
        ck_assert_int_eq(ftruncate(local.file, 2 << 20), 0);
        break;
    case LONG:
        ck_assert_int_eq(ftruncate(local.file, 4 << 20), 0);
        break;
    case FIFO:
        ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
        atomic_store(&local.port->handed, ends[0]);
        break;
    case UNREADABLE: {
        char path[64];
        (void)snprintf(path, sizeof path, "%s/w", local.folder);
        ends[0] = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ck_assert_int_eq(ftruncate(ends[0], (off_t)local.source.size), 0);
        (void)unlink(path);
        atomic_store(&local.port->handed, ends[0]);
        break;
    }
    case WRONG_COUNT:
        break;
    }
    check_get(local.port, &local.source);
    ck_assert_int_eq(atomic_load(&local.port->tickets), 1);
    ck_assert_int_gt(atomic_load(&local.port->gets), 3);
    (void)close(ends[0]);
    (void)close(ends[1]);
    close_local(&local);
}
END_TEST

START_TEST(a_file_with_other_bytes_is_refused)
{
    struct local local = open_local();
    struct problem problem = {""};
    enum reject_code reject;
    uint8_t *bytes;
    size_t length;
    ck_assert_int_eq(pwrite(local.file, "?", 1, (off_t)local.source.size - 1), 1);
    ck_assert(!blob_client_get_bytes(local.port->client, &local.source.hash, NULL, BLOB_BYTES_MAX,
                                     &bytes, &length, &reject, &problem));
    ck_assert_int_eq(reject, REJECT_BLOB_HASH);
    check_get(local.port, &local.source);
    close_local(&local);
}
END_TEST

START_TEST(a_ticket_that_was_not_asked_for_is_told)
{
    struct port *port = setup(); /* not on this machine, as far as the client knows */
    uint8_t *bytes = pattern(2 << 20, 6);
    struct blob_source source = source_of(bytes, 2 << 20);
    struct problem problem = {""};
    enum reject_code reject;
    uint8_t *got;
    size_t length;
    ck_assert(put(port, &source, 1, &reject));
    atomic_store(&port->gives_tickets, true);
    ck_assert(!blob_client_get_bytes(port->client, &source.hash, NULL, BLOB_BYTES_MAX, &got,
                                     &length, &reject, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "other bytes than asked for"));
    free(bytes);
    teardown(port);
}
END_TEST

enum { SENT_COUNT = 4, SENT_BYTES = 2 << 20 };

/* The i-th has SENT_BYTES + i bytes; the last is small. */
static void make_sources(struct blob_source sources[SENT_COUNT], uint8_t *ret_bytes[SENT_COUNT])
{
    for (size_t i = 0; i < SENT_COUNT; i++) {
        size_t size = i + 1 < SENT_COUNT ? SENT_BYTES + i : 1000;
        ret_bytes[i] = pattern(size, (uint8_t)(40 + i));
        sources[i] = source_of(ret_bytes[i], size);
    }
}

START_TEST(large_blobs_go_through_streams)
{
    struct local local = open_local();
    struct blob_source sources[SENT_COUNT];
    uint8_t *bytes[SENT_COUNT];
    enum reject_code reject;
    make_sources(sources, bytes);
    atomic_store(&local.port->gives_tickets, false);
    atomic_store(&local.port->pieces, 0);
    atomic_store(&local.port->gives_streams, true);
    ck_assert(put(local.port, sources, SENT_COUNT, &reject));
    ck_assert_uint_eq(local.port->stream_count, SENT_COUNT - 1);
    ck_assert_int_eq(atomic_load(&local.port->pieces), 1); /* the small one */
    for (size_t i = 0; i < SENT_COUNT; i++) {
        check_get(local.port, &sources[i]);
        free(bytes[i]);
    }
    close_local(&local);
}
END_TEST

START_TEST(what_does_not_go_through_a_stream_goes_in_pieces)
{
    struct local local = open_local();
    struct blob_source sources[SENT_COUNT];
    uint8_t *bytes[SENT_COUNT];
    enum reject_code reject;
    make_sources(sources, bytes);
    atomic_store(&local.port->gives_tickets, false);
    atomic_store(&local.port->pieces, 0);
    atomic_store(&local.port->gives_streams, true);
    atomic_store(&local.port->stream_fault, _i);
    ck_assert(put(local.port, sources, SENT_COUNT, &reject));
    ck_assert_uint_ge(local.port->stream_count, 1);
    ck_assert_int_ge(atomic_load(&local.port->pieces), SENT_COUNT);
    for (size_t i = 0; i < SENT_COUNT; i++) {
        check_get(local.port, &sources[i]);
        free(bytes[i]);
    }
    close_local(&local);
}
END_TEST

START_TEST(a_source_that_ends_early_ends_a_stream)
{
    struct local local = open_local();
    struct problem problem = {""};
    enum reject_code reject;
    bool is_unread = false;
    uint8_t *bytes = pattern(SENT_BYTES, 50);
    struct blob_source cut = source_of(bytes, SENT_BYTES);
    cut.bytes = NULL;
    cut.fd = memfd_create("cut", MFD_CLOEXEC);
    ck_assert_int_eq(write(cut.fd, bytes, SENT_BYTES - 1), SENT_BYTES - 1);
    atomic_store(&local.port->gives_streams, true);
    ck_assert(!blob_client_put(local.port->client, &cut, 1, NULL, NULL, NULL, &reject, &is_unread,
                               &problem));
    ck_assert(is_unread);
    ck_assert_ptr_nonnull(strstr(problem.text, "shorter"));
    ck_assert_uint_eq(local.port->stream_count, 1);
    (void)close(cut.fd);
    free(bytes);
    close_local(&local);
}
END_TEST

enum { MANY = 30, MANY_BYTES = 70000, WINDOW = 12 };

/* Blob i has MANY_BYTES + i bytes, and its taker is the i-th. */
struct many {
    struct blob_source sources[MANY];
    struct taker takers[MANY];
    struct blob_want wants[MANY];
    uint8_t *bytes[MANY];
};

static void many_setup(struct port *port, struct many *many)
{
    enum reject_code reject;
    for (size_t i = 0; i < MANY; i++) {
        many->bytes[i] = pattern(MANY_BYTES + i, (uint8_t)i);
        many->sources[i] = source_of(many->bytes[i], MANY_BYTES + i);
        many->takers[i] = (struct taker){.source = &many->sources[i], .most = UINT64_MAX};
        many->wants[i] = (struct blob_want){.hash = many->sources[i].hash,
                                            .size = many->sources[i].size,
                                            .context = &many->takers[i]};
    }
    ck_assert(put(port, many->sources, MANY, &reject));
}

static void many_fini(struct many *many)
{
    for (size_t i = 0; i < MANY; i++) {
        free(many->bytes[i]);
    }
}

static bool get_many(struct port *port, const struct many *many, size_t *ret_failed,
                     enum reject_code *ret_reject)
{
    struct problem problem = {""};
    return blob_client_get_many(port->client, many->wants, MANY, NULL, take, ret_failed, ret_reject,
                                &problem);
}

static void check_all_taken(const struct many *many)
{
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(many->takers[i].taken, many->sources[i].size);
    }
}

START_TEST(small_ones_are_asked_for_ahead)
{
    struct port *port = setup();
    struct many many;
    size_t failed;
    enum reject_code reject;
    many_setup(port, &many);
    atomic_store(&port->hold, WINDOW); /* nothing is answered before so many are asked for */
    ck_assert(get_many(port, &many, &failed, &reject));
    check_all_taken(&many);
    ck_assert_int_eq(atomic_load(&port->gets), MANY);
    many_fini(&many);
    teardown(port);
}
END_TEST

START_TEST(among_many_an_answer_that_was_dropped_is_asked_for_again)
{
    struct port *port = setup();
    struct many many;
    size_t failed;
    enum reject_code reject;
    many_setup(port, &many);
    atomic_store(&port->drop_answers, 5);
    ck_assert(get_many(port, &many, &failed, &reject));
    check_all_taken(&many);
    ck_assert_int_eq(atomic_load(&port->gets), MANY + 1);
    many_fini(&many);
    teardown(port);
}
END_TEST

START_TEST(among_many_a_large_one_comes_in_pieces_and_an_empty_one_from_nobody)
{
    struct port *port = setup();
    struct many many;
    size_t failed;
    enum reject_code reject;
    uint8_t *large = pattern(3 << 20, 99);
    struct blob_source source = source_of(large, 3 << 20);
    struct blob_source nothing = source_of(large, 0);
    many_setup(port, &many);
    ck_assert(put(port, &source, 1, &reject));
    many.takers[3] = (struct taker){.source = &source, .most = UINT64_MAX};
    many.wants[3].hash = source.hash;
    many.wants[3].size = source.size;
    many.takers[4] = (struct taker){.source = &nothing, .most = UINT64_MAX};
    many.wants[4].hash = nothing.hash;
    many.wants[4].size = 0;
    ck_assert(get_many(port, &many, &failed, &reject));
    ck_assert_uint_eq(many.takers[3].taken, source.size);
    ck_assert_uint_eq(many.takers[4].taken, 0);
    ck_assert_uint_eq(many.takers[MANY - 1].taken, many.sources[MANY - 1].size);
    free(large);
    many_fini(&many);
    teardown(port);
}
END_TEST

START_TEST(among_many_the_one_that_fails_is_named)
{
    struct port *port = setup();
    struct many many;
    size_t failed;
    enum reject_code reject;
    many_setup(port, &many);
    many.wants[7].hash.bytes[0] ^= 1; /* nobody has that */
    ck_assert(!get_many(port, &many, &failed, &reject));
    ck_assert_uint_eq(failed, 7);
    ck_assert_int_eq(reject, REJECT_NOT_FOUND);
    many.wants[7].hash.bytes[0] ^= 1;
    many.wants[8].size -= 1; /* it is larger than was said */
    ck_assert(!get_many(port, &many, &failed, &reject));
    ck_assert_uint_eq(failed, 8);
    ck_assert_int_eq(reject, REJECT_TOO_LARGE);
    many.wants[8].size += 1;
    many.takers[9].most = 10;
    ck_assert(!get_many(port, &many, &failed, &reject));
    ck_assert_uint_eq(failed, 9);
    ck_assert_int_eq(reject, REJECT_NONE);
    many_fini(&many);
    teardown(port);
}
END_TEST

static bool take_any(void *context, uint64_t offset, const uint8_t *bytes, size_t length,
                     struct problem *ret_problem)
{
    uint64_t *taken = context;
    (void)bytes;
    (void)ret_problem;
    *taken = offset + length;
    return true;
}

START_TEST(among_many_other_bytes_are_refused)
{
    struct port *port = setup();
    struct many many;
    struct problem problem = {""};
    size_t failed;
    enum reject_code reject;
    uint64_t taken = 0;
    many_setup(port, &many);
    for (size_t i = 0; i < MANY; i++) {
        many.wants[i].context = &taken;
    }
    atomic_store(&port->lies, true);
    ck_assert(!blob_client_get_many(port->client, many.wants, MANY, NULL, take_any, &failed,
                                    &reject, &problem));
    ck_assert_uint_eq(failed, 0);
    ck_assert_int_eq(reject, REJECT_BLOB_HASH);
    many_fini(&many);
    teardown(port);
}
END_TEST

START_TEST(a_busy_broker_is_asked_again)
{
    struct port *port = setup();
    uint8_t *bytes = pattern(3 << 20, 4);
    struct blob_source source = source_of(bytes, 3 << 20);
    enum reject_code reject;
    atomic_store(&port->busy_answers, 3);
    ck_assert(put(port, &source, 1, &reject));
    atomic_store(&port->busy_answers, 2);
    check_get(port, &source);
    free(bytes);
    teardown(port);
}
END_TEST

START_TEST(a_blob_goes_on_where_the_broker_says)
{
    struct port *port = setup();
    uint8_t *bytes = pattern(12 << 20, 5);
    struct blob_source source = source_of(bytes, 12 << 20);
    enum reject_code reject;
    atomic_store(&port->forget_after, 6);
    ck_assert(put(port, &source, 1, &reject));
    check_get(port, &source);
    free(bytes);
    teardown(port);
}
END_TEST

START_TEST(a_dropped_answer_is_asked_for_again)
{
    struct port *port = setup();
    uint8_t *bytes = pattern(8 << 20, 7);
    struct blob_source source = source_of(bytes, 8 << 20);
    enum reject_code reject;
    ck_assert(put(port, &source, 1, &reject));
    atomic_store(&port->drop_answers, 4);
    check_get(port, &source);
    ck_assert_int_gt(atomic_load(&port->gets), 8);
    free(bytes);
    teardown(port);
}
END_TEST

START_TEST(refusals_and_lies_are_told)
{
    struct port *port = setup();
    uint8_t *bytes = pattern(2 << 20, 6);
    struct blob_source source = source_of(bytes, 2 << 20);
    struct problem problem = {""};
    enum reject_code reject;
    uint8_t *got;
    size_t length;

    ck_assert(!blob_client_get_bytes(port->client, &source.hash, NULL, 1 << 22, &got, &length,
                                     &reject, &problem));
    ck_assert_int_eq(reject, REJECT_NOT_FOUND);
    atomic_store(&port->refuses_quota, true);
    ck_assert(!put(port, &source, 1, &reject));
    ck_assert_int_eq(reject, REJECT_BLOB_QUOTA);
    atomic_store(&port->refuses_quota, false);
    ck_assert(put(port, &source, 1, &reject));
    ck_assert_int_eq(reject, REJECT_NONE);

    ck_assert(!blob_client_get_bytes(port->client, &source.hash, NULL, (2 << 20) - 1, &got, &length,
                                     &reject, &problem));
    ck_assert_int_eq(reject, REJECT_TOO_LARGE);
    atomic_store(&port->lies, true);
    ck_assert(!blob_client_get_bytes(port->client, &source.hash, NULL, 2 << 20, &got, &length,
                                     &reject, &problem));
    ck_assert_int_eq(reject, REJECT_BLOB_HASH);
    atomic_store(&port->lies, false);
    check_get(port, &source);
    free(bytes);
    teardown(port);
}
END_TEST

START_TEST(the_empty_blob_needs_nobody)
{
    struct port *port = setup();
    struct blob_source source = source_of((const uint8_t *)"", 0);
    enum reject_code reject;
    ck_assert(put(port, &source, 1, &reject));
    check_get(port, &source);
    ck_assert_int_eq(atomic_load(&port->puts) + atomic_load(&port->gets), 0);
    teardown(port);
}
END_TEST

static void *interrupt(void *argument)
{
    blob_client_interrupt(argument);
    return NULL;
}

START_TEST(an_interrupted_call_gives_up)
{
    struct port *port = setup();
    struct blob_client *client; /* of a port where nobody listens */
    struct problem problem = {""};
    ck_assert(blob_client_open(port->context, "tcp://127.0.0.1:1", identity_transport(port->server),
                               port->client_key, &client, &problem));
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, interrupt, client), 0);
    struct blob_source source = source_of((const uint8_t *)"x", 1);
    enum reject_code reject;
    ck_assert(!blob_client_put(client, &source, 1, NULL, NULL, NULL, &reject, NULL, &problem));
    ck_assert_str_eq(problem.text, "interrupted");
    ck_assert_int_eq(reject, REJECT_NONE);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    blob_client_close(&client);
    teardown(port);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("blob_client");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, what_is_put_can_be_got, 0, SIZE_COUNT);
    tcase_add_test(tests, what_is_made_as_it_is_sent_arrives);
    tcase_add_test(tests, many_go_at_once_and_what_is_there_is_not_sent);
    tcase_add_test(tests, descriptors_serve_on_both_ends);
    tcase_add_test(tests, a_ticket_brings_the_whole_file);
    tcase_add_test(tests, a_file_is_borrowed_as_it_is);
    tcase_add_loop_test(tests, what_a_ticket_does_not_bring_comes_in_pieces, 0, WRONG_COUNT);
    tcase_add_test(tests, a_file_with_other_bytes_is_refused);
    tcase_add_test(tests, a_ticket_that_was_not_asked_for_is_told);
    tcase_add_test(tests, large_blobs_go_through_streams);
    tcase_add_loop_test(tests, what_does_not_go_through_a_stream_goes_in_pieces, STREAM_NOT_HANDED,
                        STREAM_FAULTS);
    tcase_add_test(tests, a_source_that_ends_early_ends_a_stream);
    tcase_add_test(tests, small_ones_are_asked_for_ahead);
    tcase_add_test(tests, among_many_an_answer_that_was_dropped_is_asked_for_again);
    tcase_add_test(tests, among_many_a_large_one_comes_in_pieces_and_an_empty_one_from_nobody);
    tcase_add_test(tests, among_many_the_one_that_fails_is_named);
    tcase_add_test(tests, among_many_other_bytes_are_refused);
    tcase_add_test(tests, a_busy_broker_is_asked_again);
    tcase_add_test(tests, a_blob_goes_on_where_the_broker_says);
    tcase_add_test(tests, a_dropped_answer_is_asked_for_again);
    tcase_add_test(tests, refusals_and_lies_are_told);
    tcase_add_test(tests, the_empty_blob_needs_nobody);
    tcase_add_test(tests, an_interrupted_call_gives_up);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
