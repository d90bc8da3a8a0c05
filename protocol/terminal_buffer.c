#include "protocol/terminal_buffer.h"

#include <string.h>

void terminal_buffer_restart(struct terminal_buffer *buffer, uint64_t first)
{
    buffer->first = first;
    buffer->count = 0;
}

uint64_t terminal_buffer_end(const struct terminal_buffer *buffer)
{
    return buffer->first + buffer->count;
}

size_t terminal_buffer_room(const struct terminal_buffer *buffer)
{
    return sizeof buffer->bytes - buffer->count;
}

size_t terminal_buffer_add(struct terminal_buffer *buffer, const void *bytes, size_t size)
{
    const size_t room = terminal_buffer_room(buffer);
    const size_t added = size < room ? size : room;
    if (added > 0) {
        memcpy(buffer->bytes + buffer->count, bytes, added);
        buffer->count += added;
    }
    return added;
}

bool terminal_buffer_drop(struct terminal_buffer *buffer, uint64_t taken)
{
    if (taken < buffer->first || taken > terminal_buffer_end(buffer)) {
        return false;
    }
    const size_t dropped = (size_t)(taken - buffer->first);
    buffer->count -= dropped;
    buffer->first = taken;
    memmove(buffer->bytes, buffer->bytes + dropped, buffer->count);
    return true;
}

const uint8_t *terminal_buffer_piece(const struct terminal_buffer *buffer, uint64_t from,
                                     size_t *ret_size)
{
    if (from < buffer->first || from >= terminal_buffer_end(buffer)) {
        *ret_size = 0;
        return NULL;
    }
    const size_t rest = (size_t)(terminal_buffer_end(buffer) - from);
    *ret_size = rest < LIMIT_TERMINAL_BYTES ? rest : LIMIT_TERMINAL_BYTES;
    return buffer->bytes + (from - buffer->first);
}

void terminal_sender_answered(struct terminal_sender *sender, uint64_t through, uint64_t taken)
{
    (void)terminal_buffer_drop(&sender->buffer, taken); /* an old figure says nothing new */
    if (through >= sender->buffer.first && through <= terminal_buffer_end(&sender->buffer)) {
        sender->sent = through;
    } else if (sender->sent < sender->buffer.first) {
        sender->sent = sender->buffer.first;
    }
}

bool terminal_sender_wants(const struct terminal_sender *sender)
{
    return sender->sent < terminal_buffer_end(&sender->buffer) ||
           terminal_buffer_room(&sender->buffer) == 0;
}
