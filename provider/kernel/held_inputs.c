#include "provider/kernel/held_inputs.h"

#include <assert.h>

static bool is_free(const struct held_input *item)
{
    return item->part.bytes == 0;
}

enum held_answer held_inputs_find(struct held_inputs *held, const struct held_part *part,
                                  size_t *ret_place)
{
    size_t found = HELD_INPUTS_MAX;
    assert(part->bytes > 0);
    for (size_t i = 0; i < HELD_INPUTS_MAX; i++) {
        const struct held_input *item = &held->items[i];
        if (is_free(item) || item->is_unnamed || !hash32_equal(&item->part.hash, &part->hash)) {
            continue;
        }
        if (item->part.file_bytes != part->file_bytes) {
            return HELD_REFUSED;
        }
        if (item->part.at == part->at && item->part.bytes == part->bytes) {
            found = i;
        }
    }
    if (found == HELD_INPUTS_MAX) {
        return HELD_ABSENT;
    }
    held->items[found].pins++;
    held->items[found].used = ++held->uses;
    *ret_place = found;
    return HELD_FOUND;
}

bool held_inputs_touch(struct held_inputs *held, const struct hash32 *hash, uint64_t file_bytes)
{
    bool is_there = false;
    for (size_t i = 0; i < HELD_INPUTS_MAX; i++) {
        struct held_input *item = &held->items[i];
        if (!is_free(item) && !item->is_unnamed && item->part.file_bytes == file_bytes &&
            hash32_equal(&item->part.hash, hash)) {
            item->used = ++held->uses;
            is_there = true;
        }
    }
    return is_there;
}

void held_inputs_unpin(struct held_inputs *held, size_t place)
{
    assert(place < HELD_INPUTS_MAX);
    assert(held->items[place].pins > 0);
    held->items[place].pins--;
}

uint64_t held_inputs_idle_bytes(const struct held_inputs *held)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < HELD_INPUTS_MAX; i++) {
        bytes += held->items[i].pins == 0 ? held->items[i].part.bytes : 0;
    }
    return bytes;
}

static size_t find_free(const struct held_inputs *held)
{
    size_t place = 0;
    while (place < HELD_INPUTS_MAX && !is_free(&held->items[place])) {
        place++;
    }
    return place;
}

bool held_inputs_may_fit(const struct held_inputs *held, uint64_t bytes)
{
    const uint64_t idle_bytes = held_inputs_idle_bytes(held);
    const uint64_t pinned_bytes = held->held_bytes - idle_bytes;
    return bytes <= held->cap_bytes && pinned_bytes <= held->cap_bytes - bytes &&
           (idle_bytes > 0 || find_free(held) < HELD_INPUTS_MAX);
}

bool held_inputs_has_room(const struct held_inputs *held, uint64_t bytes)
{
    return bytes <= held->cap_bytes && held->held_bytes <= held->cap_bytes - bytes &&
           find_free(held) < HELD_INPUTS_MAX;
}

size_t held_inputs_add(struct held_inputs *held, const struct held_part *part,
                       struct kernel_buffer buffer)
{
    const size_t place = find_free(held);
    assert(part->bytes > 0);
    assert(held_inputs_has_room(held, part->bytes));
    held->items[place] =
        (struct held_input){.part = *part, .buffer = buffer, .pins = 1, .used = ++held->uses};
    held->held_bytes += part->bytes;
    return place;
}

size_t held_inputs_add_arriving(struct held_inputs *held, const struct held_part *part,
                                struct kernel_buffer buffer)
{
    const size_t place = held_inputs_add(held, part, buffer);
    held->items[place].is_unnamed = true;
    return place;
}

size_t held_inputs_add_result(struct held_inputs *held, const struct held_part *part,
                              struct kernel_buffer buffer)
{
    const size_t place = held_inputs_add_arriving(held, part, buffer);
    held_inputs_unpin(held, place);
    return place;
}

bool held_inputs_name(struct held_inputs *held, size_t place, const struct hash32 *hash)
{
    assert(place < HELD_INPUTS_MAX);
    struct held_input *item = &held->items[place];
    struct held_part part = item->part;
    size_t found;
    part.hash = *hash;
    assert(item->is_unnamed);
    const enum held_answer answer = held_inputs_find(held, &part, &found);
    if (answer == HELD_FOUND) {
        held_inputs_unpin(held, found);
    }
    if (answer == HELD_ABSENT) {
        item->part = part;
        item->is_unnamed = false;
    }
    return answer == HELD_ABSENT;
}

struct kernel_buffer held_inputs_take(struct held_inputs *held, size_t place)
{
    assert(place < HELD_INPUTS_MAX);
    struct held_input *item = &held->items[place];
    const struct kernel_buffer buffer = item->buffer;
    assert(!is_free(item));
    assert(item->pins == 0);
    held->held_bytes -= item->part.bytes;
    *item = (struct held_input){.pins = 0};
    return buffer;
}

uint64_t held_inputs_bytes_since(const struct held_inputs *held, uint64_t uses)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < HELD_INPUTS_MAX; i++) {
        bytes += held->items[i].used > uses ? held->items[i].part.bytes : 0;
    }
    return bytes;
}

static size_t find_oldest(const struct held_inputs *held)
{
    size_t oldest = HELD_INPUTS_MAX;
    for (size_t i = 0; i < HELD_INPUTS_MAX; i++) {
        const struct held_input *item = &held->items[i];
        if (!is_free(item) && item->pins == 0 &&
            (oldest == HELD_INPUTS_MAX || item->used < held->items[oldest].used)) {
            oldest = i;
        }
    }
    return oldest;
}

uint64_t held_inputs_oldest_use(const struct held_inputs *held)
{
    const size_t oldest = find_oldest(held);
    return oldest < HELD_INPUTS_MAX ? held->items[oldest].used : UINT64_MAX;
}

bool held_inputs_take_oldest(struct held_inputs *held, struct kernel_buffer *ret_buffer)
{
    const size_t oldest = find_oldest(held);
    if (oldest == HELD_INPUTS_MAX) {
        return false;
    }
    *ret_buffer = held_inputs_take(held, oldest);
    return true;
}
