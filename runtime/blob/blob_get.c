/* A get learns the size from the first answer, then requests the rest in a window. The answers
 * for one blob come in the order asked (docs/protocol.md section 8), so the hash is computed as
 * they arrive. A gap means that a request met a full queue; everything after the gap is
 * requested again.
 *
 * A broker on this machine may answer the first request with a ticket for the blob's file. The file
 * is read and hashed like pieces. After any fault of the file but a wrong hash, the blob is
 * requested in pieces. */
#include "base/sha256.h"
#include "protocol/limits.h"
#include "runtime/blob/flight.h"
#include "runtime/descriptor.h"
#include "runtime/files.h"
#include "runtime/relay.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    REWINDS_MAX = 64, /* for one blob; with more, the broker answers at random */
    UNREAD_MAX = 50,  /* answers that the blob is unreadable now, FLIGHT_BUSY_MS apart */
};

struct sink {        /* the target of the bytes: a descriptor, memory, or a callback */
    int fd;          /* -1: memory or callback */
    int failed;      /* errno of the write that failed; 0: none */
    blob_take *take; /* NULL: memory */
    void *context;
    uint8_t *bytes;
};

struct get {
    struct blob_client *client;
    const struct hash32 *hash;
    const struct id128 *job;
    uint64_t cap;
    struct sink sink;
    struct flights flights;
    struct sha256 running;
    unsigned rewinds;
    unsigned unread;
    bool is_sized;
    /* The bytes had another hash, so the broker is asked to check its own. */
    bool checks;
    const char *files; /* socket for a ticket; NULL: no ticket is allowed */
    uint64_t size;
    uint64_t asked; /* requested up to here */
    uint64_t done;  /* hashed and stored up to here */
};

static void start_over(struct get *get)
{
    sha256_start(&get->running);
    get->flights.count = 0;
    get->asked = 0;
    get->done = 0;
}

static bool sink_open(struct get *get, struct problem *ret_problem)
{
    if (get->sink.fd >= 0 || get->sink.take != NULL || get->sink.bytes != NULL) {
        return true;
    }
    get->sink.bytes = malloc((size_t)get->size + 1);
    if (get->sink.bytes == NULL) {
        problem_set(ret_problem, "out of memory for a blob of %llu bytes",
                    (unsigned long long)get->size);
        return false;
    }
    get->sink.bytes[get->size] = '\0';
    return true;
}

static bool sink_put(struct sink *sink, uint64_t offset, const uint8_t *bytes, size_t length,
                     struct problem *ret_problem)
{
    if (sink->take != NULL) {
        return sink->take(sink->context, offset, bytes, length, ret_problem);
    }
    if (sink->fd < 0) {
        if (length > 0) {
            memcpy(sink->bytes + offset, bytes, length);
        }
        return true;
    }
    if (!file_write_at(sink->fd, bytes, length, offset)) {
        sink->failed = errno;
        problem_set(ret_problem, "a fetched file cannot be written: %s", strerror(sink->failed));
        return false;
    }
    return true;
}

/* Hashes the next bytes while the sink takes them. */
static bool take_bytes(struct get *get, const uint8_t *bytes, size_t length,
                       struct problem *ret_problem)
{
    struct hasher *hasher = length < HASHER_LEAST_BYTES ? NULL : flight_hasher(get->client);
    hasher_begin(hasher, &get->running, bytes, length);
    bool good = sink_put(&get->sink, get->done, bytes, length, ret_problem);
    hasher_finish(hasher);
    get->done += good ? length : 0;
    return good;
}

/* Requests as much as fits into the window. Until the size is known, it requests the first bytes
 * only. */
static void ask(struct get *get, uint32_t first)
{
    Bourse__V1__BlobGet body = BOURSE__V1__BLOB_GET__INIT;
    body.hash = (ProtobufCBinaryData){32, (uint8_t *)(uintptr_t)get->hash->bytes}; /* only read */
    if (get->job != NULL) {
        body.has_job = 1;
        body.job = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)get->job->bytes};
    }
    while (get->flights.count < FLIGHT_MAX) {
        bool is_first = !get->is_sized && get->asked == 0;
        if (!is_first && (!get->is_sized || get->asked >= get->size)) {
            return;
        }
        if (get->checks && get->asked > get->done) {
            return; /* the broker checks the blob first */
        }
        uint64_t left = is_first ? first : get->size - get->asked;
        struct flight flight = {
            .offset = get->asked,
            .length = (uint32_t)(left < FLIGHT_CHUNK_BYTES ? left : FLIGHT_CHUNK_BYTES)};
        body.offset = flight.offset;
        body.length = flight.length;
        get->files = is_first && !get->checks ? flight_files(get->client) : NULL;
        body.has_check = get->checks && flight.offset == 0;
        body.check = body.has_check;
        body.has_by_file = get->files != NULL;
        body.by_file = body.has_by_file;
        if (!flight_send(get->client, &get->flights, &flight, MESSAGE_BLOB_GET, &body.base)) {
            return;
        }
        get->asked += flight.length;
    }
}

/* Reports a broker that breaks the rules. None of its bytes are kept. */
static bool odd(struct problem *ret_problem)
{
    problem_set(ret_problem, "the broker answered with other bytes than asked for");
    return false;
}

static bool take_size(struct get *get, uint64_t total, enum reject_code *ret_reject,
                      struct problem *ret_problem)
{
    if (get->is_sized) {
        return total == get->size || odd(ret_problem);
    }
    if (total > get->cap) {
        problem_set(ret_problem, "a blob has %llu bytes; the limit here is %llu",
                    (unsigned long long)total, (unsigned long long)get->cap);
        *ret_reject = REJECT_TOO_LARGE;
        return false;
    }
    get->is_sized = true;
    get->size = total;
    return sink_open(get, ret_problem);
}

/* Requests everything after `done` again; answers still in flight no longer matter. */
static bool rewind_to_done(struct get *get, struct problem *ret_problem)
{
    if (++get->rewinds > REWINDS_MAX) {
        return odd(ret_problem);
    }
    for (size_t i = 0; i < get->flights.count; i++) {
        get->flights.list[i].is_stale = true;
    }
    get->asked = get->done;
    return true;
}

/* A copy of a file into the sink, on two threads. */
struct copying {
    struct get *get;
    int fd;
    pthread_mutex_t mutex; /* guards the rest */
    bool is_fatal;         /* true, with the problem: not the file's fault */
    struct problem *problem;
};

static bool copy_failed(struct copying *copying, const struct problem *problem)
{
    pthread_mutex_lock(&copying->mutex);
    if (!copying->is_fatal) {
        *copying->problem = *problem;
    }
    copying->is_fatal = true;
    pthread_mutex_unlock(&copying->mutex);
    return false;
}

static bool read_file(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    struct copying *copying = context;
    struct problem problem;
    if (flight_interrupted(copying->get->client, &problem)) {
        return copy_failed(copying, &problem);
    }
    return file_read_at(copying->fd, ret_bytes, length, offset);
}

static bool write_sink(void *context, uint64_t offset, const uint8_t *bytes, size_t length)
{
    struct copying *copying = context;
    struct problem problem;
    return sink_put(&copying->get->sink, offset, bytes, length, &problem) ||
           copy_failed(copying, &problem);
}

/* Copies the bytes of the file. Returns false with `*ret_fatal` and the problem, or when the file
 * ends too soon or cannot be read. */
static bool take_file(struct get *get, int fd, bool *ret_fatal, struct problem *ret_problem)
{
    struct copying copying = {.get = get, .fd = fd, .problem = ret_problem};
    const struct relay relay = {.from = get->done,
                                .to = get->size,
                                .sum = &get->running,
                                .context = &copying,
                                .read = read_file,
                                .write = write_sink};
    pthread_mutex_init(&copying.mutex, NULL);
    bool good = relay_run(&relay);
    pthread_mutex_destroy(&copying.mutex);
    get->done = good ? get->size : get->done;
    *ret_fatal = copying.is_fatal;
    return good;
}

static bool is_file_of(int fd, uint64_t size)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_size == size;
}

bool flight_take_file(struct blob_client *client, const struct blob_want *want, uint64_t size,
                      int fd, blob_take *take, bool *ret_fatal, struct problem *ret_problem)
{
    struct get get = {.client = client,
                      .hash = &want->hash,
                      .sink = {.fd = -1, .take = take, .context = want->context},
                      .size = size};
    start_over(&get);
    if (!take_file(&get, fd, ret_fatal, ret_problem)) {
        return false;
    }
    struct hash32 hash = sha256_end(&get.running);
    return hash32_equal(&hash, get.hash);
}

/* Takes all of the blob, or nothing of it; pieces are requested then. Its size is known afterwards,
 * so no other ticket is requested. */
static bool take_ticket(struct get *get, const Bourse__V1__BlobData *data,
                        enum reject_code *ret_reject, struct problem *ret_problem)
{
    if (get->files == NULL || data->data.len != 0 || data->offset != 0 ||
        memcmp(data->hash.data, get->hash->bytes, 32) != 0) {
        return odd(ret_problem);
    }
    if (!take_size(get, data->total, ret_reject, ret_problem)) {
        return false;
    }
    struct id128 ticket = codec_id(data->ticket);
    bool is_fatal = false;
    struct descriptor_answer answer;
    if (!descriptor_ask(get->files, &ticket, DESCRIPTOR_WAIT_MS, &answer)) {
        flight_no_files(get->client);
    }
    const int fd = answer.fd;
    bool good = fd >= 0 && is_file_of(fd, get->size) && take_file(get, fd, &is_fatal, ret_problem);
    if (fd >= 0) {
        (void)close(fd); /* only read */
    }
    if (good) {
        get->asked = get->size;
    } else if (!is_fatal) {
        start_over(get);
    }
    return !is_fatal;
}

static bool take_data(struct get *get, const struct flight *flight,
                      const Bourse__V1__BlobData *data, enum reject_code *ret_reject,
                      struct problem *ret_problem)
{
    if (flight->offset != get->done) {
        return rewind_to_done(get, ret_problem);
    }
    if (data->has_ticket) {
        return take_ticket(get, data, ret_reject, ret_problem);
    }
    if (!take_size(get, data->total, ret_reject, ret_problem)) {
        return false;
    }
    uint64_t left = get->size - get->done;
    uint64_t expected = left < flight->length ? left : flight->length;
    if (data->offset != get->done || data->data.len != expected ||
        memcmp(data->hash.data, get->hash->bytes, 32) != 0) {
        return odd(ret_problem);
    }
    if (!take_bytes(get, data->data.data, data->data.len, ret_problem)) {
        return false;
    }
    if (get->asked > get->size) {
        get->asked = get->size; /* the first request may have asked for more than the size */
    }
    return true;
}

static bool take_answer(struct get *get, struct flight_answer *answer, enum reject_code *ret_reject,
                        struct problem *ret_problem)
{
    bool good = true;
    if (answer->flight.is_stale) {
        /* The range was requested again already. */
    } else if (answer->type == MESSAGE_REJECT) {
        const Bourse__V1__Reject *reject = (const Bourse__V1__Reject *)(const void *)answer->body;
        /* The count is for the whole blob, because a part of it may be readable each time. */
        get->unread += reject->code == REJECT_UNAVAILABLE;
        good = get->unread <= UNREAD_MAX && flight_is_passing(get->client, reject);
        if (good) {
            start_over(get);
        } else {
            (void)flight_refused(reject, ret_reject, ret_problem);
        }
    } else {
        const Bourse__V1__BlobData *data = (const Bourse__V1__BlobData *)(const void *)answer->body;
        good = take_data(get, &answer->flight, data, ret_reject, ret_problem);
    }
    codec_free(&answer->body);
    return good;
}

/* Fetches all of the blob, without a check of its hash. */
static bool get_bytes(struct get *get, enum reject_code *ret_reject, struct problem *ret_problem)
{
    /* The broker refuses a request when its full length has no room among what waits for the
     * account, even beyond the blob's end. */
    const bool is_small = get->cap > 0 && get->cap < FLIGHT_CHUNK_BYTES;
    const uint32_t first = is_small ? (uint32_t)get->cap : FLIGHT_CHUNK_BYTES;
    start_over(get);
    while (!get->is_sized || get->done < get->size) {
        ask(get, first);
        struct flight_answer answer;
        switch (flight_await(get->client, &get->flights, MESSAGE_BLOB_DATA, &answer, ret_problem)) {
        case FLIGHT_ANSWERED:
            if (!take_answer(get, &answer, ret_reject, ret_problem)) {
                return false;
            }
            break;
        case FLIGHT_ROOM:
            break;
        case FLIGHT_LOST:
            start_over(get);
            break;
        case FLIGHT_ENDED:
            return false;
        }
    }
    return true;
}

static bool has_hash(struct get *get)
{
    struct hash32 hash = sha256_end(&get->running);
    return hash32_equal(&hash, get->hash);
}

/* A wrong hash is a fault of the network, the disk or the broker. The broker is then asked once to
 * hash its own bytes. The broker then reports the blob lost, or sends it again. */
static bool run(struct get *get, enum reject_code *ret_reject, struct problem *ret_problem)
{
    if (!get_bytes(get, ret_reject, ret_problem)) {
        return false;
    }
    if (has_hash(get)) {
        return true;
    }
    get->checks = true;
    if (!get_bytes(get, ret_reject, ret_problem)) {
        return false;
    }
    if (!has_hash(get)) {
        problem_set(ret_problem, "the broker sent bytes that do not have the blob's hash");
        *ret_reject = REJECT_BLOB_HASH;
        return false;
    }
    return true;
}

/* The blob of no bytes exists everywhere, so no request is needed. */
static bool is_empty_blob(const struct hash32 *hash)
{
    struct hash32 nothing = sha256_of("", 0);
    return hash32_equal(hash, &nothing);
}

static bool get_blob(struct get *get, enum reject_code *ret_reject, struct problem *ret_problem)
{
    *ret_reject = REJECT_NONE;
    if (is_empty_blob(get->hash)) {
        get->size = 0;
        return sink_open(get, ret_problem);
    }
    return run(get, ret_reject, ret_problem);
}

bool blob_client_get(struct blob_client *client, const struct hash32 *hash, const struct id128 *job,
                     uint64_t cap, int fd, uint64_t *ret_size, enum reject_code *ret_reject,
                     int *ret_errno, struct problem *ret_problem)
{
    assert(fd >= 0);
    struct get get = {.client = client, .hash = hash, .job = job, .cap = cap, .sink = {.fd = fd}};
    bool good = get_blob(&get, ret_reject, ret_problem);
    *ret_errno = get.sink.failed;
    *ret_size = get.size;
    return good;
}

/* Returns the file for a ticket, if its size fits; else -1. */
static int take_borrowed(struct blob_client *client, const char *files, const struct hash32 *hash,
                         uint64_t cap, const Bourse__V1__BlobData *data, bool *ret_is_hashed)
{
    struct descriptor_answer answer;
    if (!data->has_ticket || data->total > cap ||
        memcmp(data->hash.data, hash->bytes, sizeof hash->bytes) != 0) {
        return -1;
    }
    struct id128 ticket = codec_id(data->ticket);
    if (!descriptor_ask(files, &ticket, DESCRIPTOR_WAIT_MS, &answer)) {
        flight_no_files(client);
    }
    if (answer.fd >= 0 && !is_file_of(answer.fd, data->total)) {
        (void)close(answer.fd); /* not the promised file */
        answer.fd = -1;
    }
    if (ret_is_hashed != NULL) { /* the hash counts only from a trusted sender */
        *ret_is_hashed = answer.has_hash && hash32_equal(&answer.hash, hash);
    }
    return answer.fd;
}

int blob_client_borrow(struct blob_client *client, const struct hash32 *hash,
                       const struct id128 *job, uint64_t cap, uint64_t *ret_size,
                       bool *ret_is_hashed)
{
    struct get get = {.client = client, .hash = hash, .job = job};
    struct flight_answer answer;
    struct problem problem;
    const char *files = flight_files(client);
    int fd = -1;
    if (files == NULL) {
        return -1;
    }
    ask(&get, 1); /* one byte, if no ticket comes */
    if (flight_await(client, &get.flights, MESSAGE_BLOB_DATA, &answer, &problem) !=
        FLIGHT_ANSWERED) {
        return -1;
    }
    if (answer.type == MESSAGE_BLOB_DATA) {
        const Bourse__V1__BlobData *data = (const Bourse__V1__BlobData *)(const void *)answer.body;
        fd = take_borrowed(client, files, hash, cap, data, ret_is_hashed);
        *ret_size = data->total;
    }
    codec_free(&answer.body);
    return fd;
}

bool blob_client_get_bytes(struct blob_client *client, const struct hash32 *hash,
                           const struct id128 *job, uint64_t cap, uint8_t **ret_bytes,
                           size_t *ret_length, enum reject_code *ret_reject,
                           struct problem *ret_problem)
{
    struct get get = {.client = client, .hash = hash, .job = job, .cap = cap, .sink = {.fd = -1}};
    if (!get_blob(&get, ret_reject, ret_problem)) {
        free(get.sink.bytes);
        return false;
    }
    *ret_bytes = get.sink.bytes;
    *ret_length = (size_t)get.size;
    return true;
}

bool blob_client_get_pieces(struct blob_client *client, const struct hash32 *hash,
                            const struct id128 *job, uint64_t cap, blob_take *take, void *context,
                            enum reject_code *ret_reject, struct problem *ret_problem)
{
    struct get get = {.client = client,
                      .hash = hash,
                      .job = job,
                      .cap = cap,
                      .sink = {.fd = -1, .take = take, .context = context}};
    return get_blob(&get, ret_reject, ret_problem);
}
