#include "tests/support/blob_port.h"

#include "base/sha256.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "runtime/descriptor.h"
#include "runtime/process.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

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
    atomic_store(&stream->is_over, true);
    return NULL;
}

/* Joins the streams of `blob` that were given up, before pieces go where their bytes went. */
static void join_streams(struct port *port, const struct blob *blob)
{
    for (size_t i = 0; i < port->stream_count; i++) {
        struct stream *stream = &port->streams[i];
        if (stream->blob == blob && atomic_load(&stream->is_over)) {
            ck_assert_int_eq(pthread_join(stream->thread, NULL), 0);
            stream->blob = NULL;
        }
    }
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
    stream->blob = blob;
    stream->fault = (enum stream_fault)port->stream_fault;
    stream->got = 0;
    atomic_store(&stream->is_over, false);
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

/* Ends a stream for its ticket. The port's end is closed here. */
static void hand_end(struct port *port, int file_port, const struct descriptor_asker *asker,
                     uint8_t number)
{
    struct stream *stream = &port->streams[number - 1];
    int file = open("/dev/null", O_WRONLY | O_CLOEXEC);
    descriptor_port_answer(file_port, asker,
                           stream->fault == STREAM_NOT_HANDED  ? -1
                           : stream->fault == STREAM_NO_SOCKET ? file
                                                               : stream->ends[1],
                           NULL);
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
        blob->stored /= 2; /* the crash lost the newest chunks */
    }
    if (put->offset != blob->stored) {
        refuse(port, message, request, REJECT_BLOB_OFFSET, (int64_t)blob->stored);
        return;
    }
    (void)atomic_fetch_add(&port->pieces, put->data.len > 0);
    if (put->data.len > 0) {
        join_streams(port, blob);
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
    if (get->length > atomic_load(&port->largest_get)) {
        atomic_store(&port->largest_get, get->length);
    }
    struct blob *blob = find_blob(port, get->hash.data);
    if (blob == NULL) {
        refuse(port, message, request, REJECT_NOT_FOUND, 0);
        return;
    }
    if (atomic_load(&port->unread_from) > 0 && get->offset >= atomic_load(&port->unread_from)) {
        refuse(port, message, request, REJECT_UNAVAILABLE, 0);
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
    if (atomic_load(&port->gives_tickets) && (get->by_file || get->offset == 0) && !get->check) {
        (void)atomic_fetch_add(&port->tickets, 1);
        data.has_ticket = 1;
        data.ticket = (ProtobufCBinaryData){sizeof ticket.bytes, ticket.bytes};
        data.data.len = 0;
        atomic_store(&port->gives_tickets, atomic_load(&port->keeps_giving));
    }
    if (atomic_fetch_sub(&port->drop_answers, 1) == 1) {
        return; /* answers like a full queue */
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
    if (atomic_load(&port->follows)) {
        refuse(port, message, &request, REJECT_NOT_LEADER, 0);
    } else if (atomic_fetch_sub(&port->busy_answers, 1) > 0) {
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
                descriptor_port_answer(file_port, &asker, atomic_load(&port->handed),
                                       atomic_load(&port->said));
            }
        }
    }
    return NULL;
}

struct port *port_open_at(const char *endpoint)
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
    atomic_store(&port->said, NULL);
    ck_assert(router_bind(port->router, endpoint, false, port->endpoint, sizeof port->endpoint,
                          &problem));
    ck_assert_int_eq(pthread_create(&port->thread, NULL, serve, port), 0);
    ck_assert(blob_client_open(port->context, port->endpoint, identity_transport(port->server),
                               port->client_key, &port->client, &problem));
    return port;
}

struct port *port_open(void)
{
    return port_open_at("tcp://127.0.0.1:*");
}

void port_close(struct port *port)
{
    blob_client_close(&port->client);
    atomic_store(&port->stopping, true);
    ck_assert_int_eq(pthread_join(port->thread, NULL), 0);
    for (size_t i = 0; i < port->stream_count; i++) {
        if (port->streams[i].blob != NULL) { /* nobody asked for the rest of it */
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

uint8_t *pattern_of(size_t size, uint8_t salt)
{
    uint8_t *bytes = malloc(size + 1);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(i * 31 + i / 4096 + salt);
    }
    return bytes;
}

struct blob_source source_of(const uint8_t *bytes, size_t size)
{
    return (struct blob_source){
        .hash = sha256_of(bytes, size), .size = size, .fd = -1, .bytes = bytes};
}

bool put_blobs(struct port *port, const struct blob_source *sources, size_t count,
               enum reject_code *ret_reject)
{
    struct problem problem = {""};
    return blob_client_put(port->client, sources, count, NULL, NULL, NULL, ret_reject, NULL,
                           &problem);
}

void check_get(struct port *port, const struct blob_source *source)
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

bool take_piece(void *context, uint64_t offset, const uint8_t *bytes, size_t length,
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

bool take_all(struct port *port, struct taker *taker, struct problem *problem)
{
    enum reject_code reject;
    bool good = blob_client_get_pieces(port->client, &taker->source->hash, NULL, BLOB_BYTES_MAX,
                                       take_piece, taker, &reject, problem);
    ck_assert_int_eq(reject, REJECT_NONE);
    return good;
}

struct local open_local(void)
{
    enum { SIZE = 3000000 };
    struct local local = {.folder = "/tmp/bourse-blobs-XXXXXX"};
    char endpoint[64];
    struct problem problem = {""};
    enum reject_code reject;
    ck_assert_ptr_nonnull(mkdtemp(local.folder));
    (void)snprintf(endpoint, sizeof endpoint, "ipc://%s/b.sock", local.folder);
    local.port = port_open_at(endpoint);
    ck_assert(descriptor_path(endpoint, local.path, sizeof local.path));
    ck_assert(descriptor_port_open(local.path, false, &local.file_port, &problem));
    atomic_store(&local.port->file_port, local.file_port);
    local.bytes = pattern_of(SIZE, 5);
    local.source = source_of(local.bytes, SIZE);
    ck_assert(put_blobs(local.port, &local.source, 1, &reject));
    local.file = memfd_create("blob", MFD_CLOEXEC);
    ck_assert_int_eq(write(local.file, local.bytes, SIZE), SIZE);
    atomic_store(&local.port->handed, local.file);
    atomic_store(&local.port->gives_tickets, true);
    return local;
}

void close_local(struct local *local)
{
    char path[64];
    port_close(local->port);
    (void)close(local->file_port);
    (void)close(local->file);
    (void)unlink(local->path);
    (void)snprintf(path, sizeof path, "%s/b.sock", local->folder);
    (void)unlink(path);
    (void)rmdir(local->folder);
    free(local->bytes);
}
