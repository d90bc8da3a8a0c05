#include "broker/gateway/resend_buffer.h"

#include <assert.h>
#include <stdlib.h>

size_t resend_buffer_weight(const struct resend_message *message)
{
    return message->length + sizeof *message;
}

static uint64_t oldest(const struct resend_buffer *buffer)
{
    return buffer->last - buffer->count + 1;
}

static struct resend_message *at(const struct resend_buffer *buffer, uint32_t position)
{
    return &buffer->items[(buffer->start + position) % buffer->capacity];
}

static void drop_oldest(struct resend_buffer *buffer, size_t *total_bytes)
{
    struct resend_message *message = at(buffer, 0);
    buffer->bytes -= resend_buffer_weight(message);
    *total_bytes -= resend_buffer_weight(message);
    free(message->body);
    *message = (struct resend_message){.body = NULL};
    buffer->start = (buffer->start + 1) % buffer->capacity;
    buffer->count--;
}

static bool grow(struct resend_buffer *buffer)
{
    uint32_t capacity = buffer->capacity == 0 ? 16 : 2 * buffer->capacity;
    struct resend_message *items = calloc(capacity, sizeof *items);
    if (items == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < buffer->count; i++) {
        items[i] = *at(buffer, i);
    }
    free(buffer->items);
    buffer->items = items;
    buffer->capacity = capacity;
    buffer->start = 0;
    return true;
}

static bool fits(const struct resend_buffer *buffer, size_t total_bytes, size_t bytes)
{
    return buffer->count < RESEND_BUFFER_MESSAGES && buffer->bytes + bytes <= RESEND_BUFFER_BYTES &&
           total_bytes + bytes <= RESEND_BUFFER_TOTAL_BYTES;
}

void resend_buffer_add(struct resend_buffer *buffer, size_t *total_bytes,
                       const struct resend_message *message)
{
    while (buffer->count > 0 && !fits(buffer, *total_bytes, resend_buffer_weight(message))) {
        drop_oldest(buffer, total_bytes);
    }
    bool has_room = fits(buffer, *total_bytes, resend_buffer_weight(message)) &&
                    (buffer->count < buffer->capacity || grow(buffer));
    if (!has_room) { /* older messages are useless without it */
        while (buffer->count > 0) {
            drop_oldest(buffer, total_bytes);
        }
        buffer->last++;
        free(message->body);
        return;
    }
    buffer->last++;
    buffer->count++;
    *at(buffer, buffer->count - 1) = *message;
    buffer->bytes += resend_buffer_weight(message);
    *total_bytes += resend_buffer_weight(message);
}

void resend_buffer_trim(struct resend_buffer *buffer, size_t *total_bytes, size_t bytes)
{
    size_t most = buffer->bytes > bytes ? buffer->bytes - bytes : 0;
    while (buffer->bytes > most) {
        drop_oldest(buffer, total_bytes);
    }
}

void resend_buffer_seen(struct resend_buffer *buffer, size_t *total_bytes, uint64_t sequence)
{
    while (buffer->count > 0 && oldest(buffer) <= sequence) {
        drop_oldest(buffer, total_bytes);
    }
}

const struct resend_message *resend_buffer_find(const struct resend_buffer *buffer,
                                                uint64_t sequence)
{
    if (buffer->count == 0 || sequence < oldest(buffer) || sequence > buffer->last) {
        return NULL;
    }
    return at(buffer, (uint32_t)(sequence - oldest(buffer)));
}

bool resend_buffer_reaches(const struct resend_buffer *buffer, uint64_t sequence)
{
    return sequence <= buffer->last && sequence + 1 >= oldest(buffer);
}

void resend_buffer_fini(struct resend_buffer *buffer, size_t *total_bytes)
{
    while (buffer->count > 0) {
        drop_oldest(buffer, total_bytes);
    }
    free(buffer->items);
    *buffer = (struct resend_buffer){.items = NULL};
}
