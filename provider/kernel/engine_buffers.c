/* This file makes the buffers of launches, and keeps those of inputs for the next launches. Each
 * function of the header takes the engine's lock, also while the device copies. */
#include "provider/kernel/engine.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct kernel_interface *interface_of(const struct engine *engine)
{
    return engine->device->interface;
}

static bool drop_oldest(struct engine *engine)
{
    struct kernel_buffer buffer;
    const bool has_one = held_inputs_take_oldest(&engine->held, &buffer);
    if (has_one) {
        interface_of(engine)->drop_buffer(engine, buffer);
    }
    return has_one;
}

/* The lock is held. */
static void clear(struct engine *engine)
{
    engine->result_count = 0; /* they go with the rest */
    engine_ahead_abandon(engine);
    while (drop_oldest(engine)) {
    }
    engine->figures.held_bytes = engine->held.held_bytes;
}

void engine_buffers_clear(struct engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    clear(engine);
    pthread_mutex_unlock(&engine->lock);
}

struct held_figures engine_buffers_figures(struct engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    struct held_figures figures = engine->figures;
    figures.held_bytes = engine->held.held_bytes;
    figures.aheads = engine->aheads;
    figures.ahead_bytes = engine->ahead_bytes;
    engine->aheads = engine->ahead_bytes = 0;
    pthread_mutex_unlock(&engine->lock);
    return figures;
}

/* Takes all memory that is free, as large pieces first, and writes zeros to it. */
static enum operation_status take_all(struct engine *engine,
                                      struct kernel_buffer buffers[ENGINE_WIPE_BUFFERS],
                                      size_t *ret_count, struct problem *ret_problem)
{
    const struct device_facts *device = engine->device;
    const bool is_bounded = device->buffer_bytes > 0 && device->buffer_bytes < device->memory_bytes;
    uint64_t size = is_bounded ? device->buffer_bytes : device->memory_bytes;
    uint64_t rest = device->memory_bytes;
    while (size >= ENGINE_WIPE_LEAST && rest >= ENGINE_WIPE_LEAST) {
        size = size < rest ? size : rest;
        if (*ret_count == ENGINE_WIPE_BUFFERS) {
            problem_set(ret_problem,
                        "the device's memory is in more than %d pieces, so it cannot "
                        "be cleared for the job",
                        ENGINE_WIPE_BUFFERS);
            return OPERATION_DEVICE;
        }
        const enum operation_status status =
            interface_of(engine)->make(engine, size, NULL, "the device's memory cannot be cleared",
                                       &buffers[*ret_count], ret_problem);
        if (status == OPERATION_OK) {
            rest -= size;
            ++*ret_count;
        } else if (status == OPERATION_MEMORY) {
            size /= 2;
        } else {
            return OPERATION_DEVICE;
        }
    }
    return OPERATION_OK;
}

enum operation_status engine_buffers_wipe(struct engine *engine, struct problem *ret_problem)
{
    struct kernel_buffer buffers[ENGINE_WIPE_BUFFERS];
    size_t count = 0;
    if (engine->device->has_host_memory) {
        return OPERATION_OK;
    }
    pthread_mutex_lock(&engine->lock);
    const enum operation_status status = take_all(engine, buffers, &count, ret_problem);
    while (count > 0) {
        interface_of(engine)->drop_buffer(engine, buffers[--count]);
    }
    pthread_mutex_unlock(&engine->lock);
    return status;
}

/* Gives the results of the last launch their hashes. A result without one goes, or one that is held
 * already as an input. */
static void name_results(struct engine *engine, const struct operation_contents *made)
{
    for (size_t i = 0; i < engine->result_count; i++) {
        const struct engine_result *result = &engine->results[i];
        const struct hash32 *hash = operation_contents_find(made, result->name);
        if (hash == NULL || !held_inputs_name(&engine->held, result->place, hash)) {
            interface_of(engine)->drop_buffer(engine,
                                              held_inputs_take(&engine->held, result->place));
        }
    }
    engine->result_count = 0;
}

void engine_buffers_begin(struct engine *engine, const struct engine_terms *terms)
{
    pthread_mutex_lock(&engine->lock);
    engine->is_computing = false;
    engine->spare_bytes = 0;
    name_results(engine, &terms->made);
    engine->keeps_results = terms->keeps_results;
    engine->uses_before = engine->held.uses;
    engine->held.cap_bytes = terms->cap_bytes;
    while (engine->held.held_bytes > terms->cap_bytes && drop_oldest(engine)) {
    }
    engine->figures = (struct held_figures){.held_bytes = engine->held.held_bytes};
    pthread_mutex_unlock(&engine->lock);
}

/* Lets idle inputs, and the one that is under way, have at most so many bytes. */
static void make_room(struct engine *engine, uint64_t idle_bytes)
{
    while (held_inputs_idle_bytes(&engine->held) + engine_ahead_bytes(engine) > idle_bytes) {
        if (!drop_oldest(engine)) {
            engine_ahead_abandon(engine);
        }
    }
}

/* Makes a buffer with bytes of this process, or with the bytes of another buffer. When the device
 * has no memory left and holds idle inputs, they go, and the device is asked once more. */
static enum operation_status make(struct engine *engine, const struct engine_want *want,
                                  const struct kernel_buffer *from,
                                  struct kernel_buffer *ret_buffer, struct problem *ret_problem)
{
    const struct kernel_interface *interface = interface_of(engine);
    enum operation_status status = OPERATION_MEMORY;
    for (int round = 0; round < 2; round++) {
        status = from != NULL ? interface->copy(engine, *from, want->size, want->what, ret_buffer,
                                                ret_problem)
                              : interface->make(engine, want->size, want->bytes, want->what,
                                                ret_buffer, ret_problem);
        if (status != OPERATION_MEMORY ||
            held_inputs_idle_bytes(&engine->held) + engine_ahead_bytes(engine) == 0) {
            break;
        }
        clear(engine);
    }
    return status;
}

static enum operation_status make_from_bytes(struct engine *engine, const struct engine_want *want,
                                             struct kernel_buffer *ret_buffer,
                                             struct problem *ret_problem)
{
    const enum operation_status status = make(engine, want, NULL, ret_buffer, ret_problem);
    if (status == OPERATION_OK && want->bytes != NULL) {
        engine->figures.copies++;
        engine->figures.copied_bytes += want->size;
    }
    return status;
}

/* Makes room below the cap for a part. Returns false when no room can be made. */
static bool may_hold(struct engine *engine, uint64_t bytes)
{
    if (!held_inputs_may_fit(&engine->held, bytes)) {
        return false;
    }
    while (!held_inputs_has_room(&engine->held, bytes)) {
        if (!drop_oldest(engine)) {
            return false;
        }
    }
    return true;
}

/* Gives a copy of a held input to a kernel that may write to it. The input stays as it is. */
static enum operation_status copy_held(struct engine *engine, const struct engine_want *want,
                                       size_t place, struct kernel_buffer *ret_buffer,
                                       struct problem *ret_problem)
{
    enum operation_status status = OPERATION_MEMORY;
    if (want->size <= want->spare_bytes) {
        make_room(engine, want->spare_bytes - want->size);
        status = make(engine, want, &engine->held.items[place].buffer, ret_buffer, ret_problem);
    }
    held_inputs_unpin(&engine->held, place);
    if (status == OPERATION_MEMORY) { /* the input itself takes the memory for its copy */
        clear(engine);
        return make_from_bytes(engine, want, ret_buffer, ret_problem);
    }
    if (status == OPERATION_OK) {
        engine->figures.hits++;
        engine->figures.saved_bytes += want->size;
    }
    return status;
}

/* Holds a copy of a new buffer that its kernel may write to, if that needs no other's memory. */
static void hold_copy(struct engine *engine, const struct engine_want *want,
                      struct kernel_buffer buffer)
{
    struct kernel_buffer copy;
    struct problem problem = {""};
    if (want->size > want->spare_bytes || !may_hold(engine, want->size)) {
        return;
    }
    make_room(engine, want->spare_bytes - want->size);
    if (interface_of(engine)->copy(engine, buffer, want->size, want->what, &copy, &problem) ==
        OPERATION_OK) {
        held_inputs_unpin(&engine->held, held_inputs_add(&engine->held, want->part, copy));
    }
}

static enum operation_status take_known(struct engine *engine, const struct engine_want *want,
                                        struct engine_buffer *ret_buffer,
                                        struct problem *ret_problem)
{
    size_t place = 0;
    engine_ahead_await(engine, want->part);
    const enum held_answer answer = held_inputs_find(&engine->held, want->part, &place);
    const bool is_found = answer == HELD_FOUND;
    make_room(engine, want->spare_bytes);
    if (is_found && want->is_written) {
        return copy_held(engine, want, place, &ret_buffer->buffer, ret_problem);
    }
    if (is_found) {
        engine->figures.hits++;
        engine->figures.saved_bytes += want->size;
        *ret_buffer = (struct engine_buffer){
            .buffer = engine->held.items[place].buffer, .is_held = true, .place = place};
        return OPERATION_OK;
    }
    const enum operation_status status =
        make_from_bytes(engine, want, &ret_buffer->buffer, ret_problem);
    if (status != OPERATION_OK || answer == HELD_REFUSED) {
        return status;
    }
    if (want->is_written) {
        hold_copy(engine, want, ret_buffer->buffer);
    } else if (may_hold(engine, want->size)) {
        ret_buffer->is_held = true;
        ret_buffer->place = held_inputs_add(&engine->held, want->part, ret_buffer->buffer);
    }
    return status;
}

enum operation_status engine_buffers_take(struct engine *engine, const struct engine_want *want,
                                          struct engine_buffer *ret_buffer,
                                          struct problem *ret_problem)
{
    enum operation_status status;
    assert(want->part == NULL || (want->bytes != NULL && want->part->bytes == want->size));
    *ret_buffer = (struct engine_buffer){.is_held = false};
    pthread_mutex_lock(&engine->lock);
    if (want->part != NULL && engine->held.cap_bytes > 0) {
        status = take_known(engine, want, ret_buffer, ret_problem);
    } else {
        make_room(engine, want->spare_bytes);
        status = make_from_bytes(engine, want, &ret_buffer->buffer, ret_problem);
    }
    engine->figures.held_bytes = engine->held.held_bytes;
    engine->spare_bytes = want->spare_bytes;
    pthread_mutex_unlock(&engine->lock);
    return status;
}

/* The lock is held. */
static void give(struct engine *engine, const struct engine_buffer *buffer)
{
    if (buffer->is_held) {
        held_inputs_unpin(&engine->held, buffer->place);
    } else {
        interface_of(engine)->drop_buffer(engine, buffer->buffer);
    }
}

void engine_buffers_give(struct engine *engine, const struct engine_buffer *buffer)
{
    pthread_mutex_lock(&engine->lock);
    give(engine, buffer);
    pthread_mutex_unlock(&engine->lock);
}

/* Returns true when the result may stay without driving out a part that this launch used. */
static bool may_stay(struct engine *engine, uint64_t bytes)
{
    const uint64_t used_bytes = held_inputs_bytes_since(&engine->held, engine->uses_before);
    if (!engine->keeps_results || engine->result_count == ENGINE_RESULTS || bytes == 0 ||
        bytes > engine->held.cap_bytes || used_bytes > engine->held.cap_bytes - bytes) {
        return false;
    }
    while (!held_inputs_has_room(&engine->held, bytes)) {
        if (held_inputs_oldest_use(&engine->held) > engine->uses_before) {
            return false;
        }
        (void)drop_oldest(engine); /* there is one */
    }
    return true;
}

void engine_buffers_leave(struct engine *engine, const struct engine_buffer *buffer,
                          const char *name, const struct held_part *part)
{
    pthread_mutex_lock(&engine->lock);
    if (buffer->is_held || strlen(name) >= OPERATION_NAME_SIZE || !may_stay(engine, part->bytes)) {
        give(engine, buffer);
    } else {
        struct engine_result *result = &engine->results[engine->result_count++];
        (void)snprintf(result->name, sizeof result->name, "%s", name);
        result->place = held_inputs_add_result(&engine->held, part, buffer->buffer);
    }
    engine->figures.held_bytes = engine->held.held_bytes;
    pthread_mutex_unlock(&engine->lock);
}
