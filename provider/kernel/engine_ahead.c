/* This file copies inputs of the next subtask to the device while a launch computes. */
#include "base/cursor.h"
#include "formats/npy.h"
#include "provider/kernel/engine.h"
#include "provider/tensor/ahead.h"
#include "runtime/condition.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 1 << 20, /* of an input, on its way to the device */
    STALL_NS = 1000000000, /* a copy that makes no progress for so long is abandoned */
};

static_assert((int)PIECE_BYTES >= (int)NPY_PREFIX_BYTES, "a piece holds the header of a matrix");

struct engine_ahead {
    struct engine *engine;
    pthread_t thread;
    pthread_cond_t changed; /* with the engine's lock, which guards the next members */
    int next;               /* the connection to be served next; -1: none */
    int serving;            /* the connection of the thread; -1: none */
    bool stops;
    bool is_arriving; /* `part` is under way, at this place of the engine's table */
    struct held_part part;
    struct kernel_buffer buffer;
    size_t place;
    uint64_t arrived_bytes; /* of the part */

    uint8_t piece[PIECE_BYTES]; /* the thread's own */
};

static const struct kernel_interface *interface_of(const struct engine *engine)
{
    return engine->device->interface;
}

/* ---------------------------------------------------------------- the launching thread */

uint64_t engine_ahead_bytes(const struct engine *engine)
{
    const struct engine_ahead *ahead = engine->ahead;
    return ahead != NULL && ahead->is_arriving ? ahead->part.bytes : 0;
}

void engine_ahead_abandon(struct engine *engine)
{
    struct engine_ahead *ahead = engine->ahead;
    while (engine_ahead_bytes(engine) > 0) {
        (void)shutdown(ahead->serving, SHUT_RDWR); /* the thread may wait for bytes */
        pthread_cond_wait(&ahead->changed, &engine->lock);
    }
}

static bool is_same(const struct held_part *a, const struct held_part *b)
{
    return hash32_equal(&a->hash, &b->hash) && a->file_bytes == b->file_bytes && a->at == b->at &&
           a->bytes == b->bytes;
}

void engine_ahead_await(struct engine *engine, const struct held_part *part)
{
    struct engine_ahead *ahead = engine->ahead;
    while (engine_ahead_bytes(engine) > 0 && is_same(&ahead->part, part)) {
        const uint64_t before = ahead->arrived_bytes;
        const struct timespec end = condition_deadline(STALL_NS);
        int error = 0;
        while (error == 0 && engine_ahead_bytes(engine) > 0) {
            error = pthread_cond_timedwait(&ahead->changed, &engine->lock, &end);
        }
        if (ahead->arrived_bytes == before && is_same(&ahead->part, part)) {
            engine_ahead_abandon(engine);
        }
    }
}

void engine_ahead_allow(struct engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    engine->is_computing = true;
    if (engine->ahead != NULL) {
        pthread_cond_broadcast(&engine->ahead->changed);
    }
    pthread_mutex_unlock(&engine->lock);
}

/* ---------------------------------------------------------------- the copying thread */

static bool receive(int connection, void *ret_bytes, size_t size)
{
    uint8_t *bytes = ret_bytes;
    while (size > 0) {
        const ssize_t got = recv(connection, bytes, size, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        bytes += got;
        size -= (size_t)got;
    }
    return true;
}

static bool answer(int connection, enum ahead_word word)
{
    const uint8_t byte = (uint8_t)word;
    return send(connection, &byte, 1, MSG_NOSIGNAL) == 1;
}

static bool read_list(int connection, struct ahead_input ret_items[AHEAD_INPUTS], size_t *ret_count)
{
    uint8_t bytes[AHEAD_LIST_BYTES];
    if (!receive(connection, bytes, 4)) {
        return false;
    }
    struct reader head = reader_over(bytes, 4);
    const uint32_t count = reader_u32(&head);
    const size_t size = count * (size_t)((AHEAD_LIST_BYTES - 4) / AHEAD_INPUTS);
    if (count == 0 || count > AHEAD_INPUTS || !receive(connection, bytes, size)) {
        return false;
    }
    struct reader in = reader_over(bytes, size);
    bool good = true;
    for (uint32_t i = 0; i < count; i++) {
        reader_bytes(&in, ret_items[i].hash.bytes, sizeof ret_items[i].hash.bytes);
        ret_items[i].size = reader_u64(&in);
        const uint8_t kind = reader_u8(&in);
        ret_items[i].kind = (enum ahead_kind)kind;
        good = good && kind < AHEAD_KINDS && ret_items[i].size > 0;
    }
    *ret_count = count;
    return good && reader_finished(&in);
}

/* Makes room for the part, and its buffer. What this launch or the next one uses stays. The lock is
 * held. */
static bool reserve(struct engine_ahead *ahead, const struct held_part *part)
{
    struct engine *engine = ahead->engine;
    struct held_inputs *held = &engine->held;
    const uint64_t most = engine->device->buffer_bytes;
    struct kernel_buffer buffer;
    if (part->bytes == 0 || part->bytes > engine->spare_bytes || (most > 0 && part->bytes > most)) {
        return false;
    }
    while (!held_inputs_has_room(held, part->bytes) ||
           held_inputs_idle_bytes(held) > engine->spare_bytes - part->bytes) {
        if (held_inputs_oldest_use(held) > engine->uses_before ||
            !held_inputs_take_oldest(held, &buffer)) {
            return false;
        }
        interface_of(engine)->drop_buffer(engine, buffer);
    }
    if (!interface_of(engine)->reserve(engine, part->bytes, &ahead->buffer)) {
        return false;
    }
    ahead->part = *part;
    ahead->place = held_inputs_add_arriving(held, part, ahead->buffer);
    ahead->arrived_bytes = 0;
    ahead->is_arriving = true;
    return true;
}

/* Waits until copies may begin, and begins the copy of the part. Returns false when the thread is
 * to stop, there is no room, or the subtask itself has made the copy by now. */
static bool begin(struct engine_ahead *ahead, const struct held_part *part)
{
    struct engine *engine = ahead->engine;
    pthread_mutex_lock(&engine->lock);
    while (!engine->is_computing && !ahead->stops) {
        pthread_cond_wait(&ahead->changed, &engine->lock);
    }
    const bool good = !ahead->stops &&
                      !held_inputs_touch(&engine->held, &part->hash, part->file_bytes) &&
                      reserve(ahead, part);
    pthread_mutex_unlock(&engine->lock);
    return good;
}

/* Ends the copy. A part that is there twice goes. */
static void end(struct engine_ahead *ahead, bool is_good)
{
    struct engine *engine = ahead->engine;
    pthread_mutex_lock(&engine->lock);
    const bool is_named =
        is_good && held_inputs_name(&engine->held, ahead->place, &ahead->part.hash);
    held_inputs_unpin(&engine->held, ahead->place);
    if (is_named) {
        engine->aheads++;
        engine->ahead_bytes += ahead->part.bytes;
    } else {
        interface_of(engine)->drop_buffer(engine, held_inputs_take(&engine->held, ahead->place));
    }
    ahead->is_arriving = false;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&engine->lock);
}

/* Writes a piece of the part to the device. */
static bool put(struct engine_ahead *ahead, void *copier, const uint8_t *bytes, size_t size)
{
    struct engine *engine = ahead->engine;
    const bool good = interface_of(engine)->write(engine, copier, ahead->buffer,
                                                  ahead->arrived_bytes, bytes, size);
    pthread_mutex_lock(&engine->lock);
    ahead->arrived_bytes += good ? size : 0;
    pthread_mutex_unlock(&engine->lock);
    return good;
}

static size_t piece_of(uint64_t rest)
{
    return rest < PIECE_BYTES ? (size_t)rest : PIECE_BYTES;
}

/* Copies the part, of which the first `had` bytes lie at `first`. */
static bool copy_part(struct engine_ahead *ahead, void *copier, const uint8_t *first, size_t had)
{
    bool good = had == 0 || put(ahead, copier, first, had);
    while (good && ahead->arrived_bytes < ahead->part.bytes) {
        const size_t size = piece_of(ahead->part.bytes - ahead->arrived_bytes);
        good =
            receive(ahead->serving, ahead->piece, size) && put(ahead, copier, ahead->piece, size);
    }
    uint8_t last = 0;
    return good && receive(ahead->serving, &last, 1) && last == AHEAD_GOOD;
}

/* Copies a file that is all of its part. There is room before the agent is asked for it. */
static bool copy_file(struct engine_ahead *ahead, void *copier, const struct ahead_input *input)
{
    const struct held_part part = {
        .hash = input->hash, .file_bytes = input->size, .bytes = input->size};
    if (!begin(ahead, &part)) {
        return false;
    }
    const bool good = answer(ahead->serving, AHEAD_SEND) && copy_part(ahead, copier, NULL, 0);
    end(ahead, good);
    return good;
}

/* Copies the values of a matrix. The file's first piece says which bytes they are. */
static bool copy_matrix(struct engine_ahead *ahead, void *copier, const struct ahead_input *input)
{
    const size_t size = piece_of(input->size);
    struct problem problem;
    struct npy npy;
    if (!answer(ahead->serving, AHEAD_SEND) || !receive(ahead->serving, ahead->piece, size) ||
        !npy_read(ahead->piece, size, input->size, &npy, &problem) ||
        !npy_is_matrix(&npy, &problem)) {
        return false;
    }
    const struct held_part part = {.hash = input->hash,
                                   .file_bytes = input->size,
                                   .at = npy.data_offset,
                                   .bytes = npy.data_bytes};
    if (!begin(ahead, &part)) {
        return false;
    }
    const size_t header = (size_t)npy.data_offset;
    const bool good = copy_part(ahead, copier, ahead->piece + header, size - header);
    end(ahead, good);
    return good;
}

/* Chooses the inputs that are not copied: those that are there already, and those above the cap.
 * The former count as used now, so that no other input of their subtask drives them out. */
static void choose(struct engine *engine, const struct ahead_input *items, size_t count,
                   bool ret_is_skipped[AHEAD_INPUTS])
{
    pthread_mutex_lock(&engine->lock);
    for (size_t i = 0; i < count; i++) {
        ret_is_skipped[i] = held_inputs_touch(&engine->held, &items[i].hash, items[i].size) ||
                            items[i].size > engine->held.cap_bytes;
    }
    pthread_mutex_unlock(&engine->lock);
}

/* Serves one connection, input after input. The first one that does not arrive is the last. */
static void serve(struct engine_ahead *ahead, void *copier)
{
    struct ahead_input items[AHEAD_INPUTS];
    bool is_skipped[AHEAD_INPUTS];
    size_t count = 0;
    if (copier == NULL || !read_list(ahead->serving, items, &count)) {
        return;
    }
    choose(ahead->engine, items, count, is_skipped);
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        good = is_skipped[i]                   ? answer(ahead->serving, AHEAD_SKIP)
               : items[i].kind == AHEAD_MATRIX ? copy_matrix(ahead, copier, &items[i])
                                               : copy_file(ahead, copier, &items[i]);
    }
}

static void *serve_all(void *argument)
{
    struct engine_ahead *ahead = argument;
    struct engine *engine = ahead->engine;
    void *copier = interface_of(engine)->open_copier(engine);
    pthread_mutex_lock(&engine->lock);
    while (!ahead->stops) {
        if (ahead->next < 0) {
            pthread_cond_wait(&ahead->changed, &engine->lock);
            continue;
        }
        ahead->serving = ahead->next;
        ahead->next = -1;
        pthread_mutex_unlock(&engine->lock);
        serve(ahead, copier);
        pthread_mutex_lock(&engine->lock);
        (void)close(ahead->serving);
        ahead->serving = -1;
    }
    pthread_mutex_unlock(&engine->lock);
    if (copier != NULL) {
        interface_of(engine)->close_copier(engine, copier);
    }
    return NULL;
}

/* ---------------------------------------------------------------- begin and end */

/* Starts the thread. Returns false without memory, or without a thread. */
static bool start(struct engine *engine)
{
    struct engine_ahead *ahead = calloc(1, sizeof *ahead);
    if (ahead == NULL) {
        return false;
    }
    ahead->engine = engine;
    ahead->next = ahead->serving = -1;
    condition_init(&ahead->changed);
    if (pthread_create(&ahead->thread, NULL, serve_all, ahead) != 0) {
        pthread_cond_destroy(&ahead->changed);
        free(ahead);
        return false;
    }
    engine->ahead = ahead;
    return true;
}

void engine_ahead_take(struct engine *engine, int connection)
{
    if (interface_of(engine)->open_copier == NULL || (engine->ahead == NULL && !start(engine))) {
        (void)close(connection);
        return;
    }
    pthread_mutex_lock(&engine->lock);
    if (engine->ahead->next >= 0) {
        (void)close(engine->ahead->next); /* nothing came over it */
    }
    engine->ahead->next = connection;
    pthread_cond_broadcast(&engine->ahead->changed);
    pthread_mutex_unlock(&engine->lock);
}

void engine_ahead_close(struct engine *engine)
{
    struct engine_ahead *ahead = engine->ahead;
    if (ahead == NULL) {
        return;
    }
    pthread_mutex_lock(&engine->lock);
    ahead->stops = true;
    if (ahead->serving >= 0) {
        (void)shutdown(ahead->serving, SHUT_RDWR);
    }
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&engine->lock);
    pthread_join(ahead->thread, NULL);
    if (ahead->next >= 0) {
        (void)close(ahead->next);
    }
    pthread_cond_destroy(&ahead->changed);
    free(ahead);
    engine->ahead = NULL;
}
