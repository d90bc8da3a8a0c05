/* protocol/terminal_buffer.h keeps the bytes of one direction of a terminal that the other end has
 * not taken yet (docs/protocol.md, section 7).
 *
 * The bytes of a direction are numbered from 0. Both ends and the broker use this buffer. A sender
 * keeps each byte until the other end has taken it, so that a broker that was started anew can get
 * the byte again. Pure. */
#ifndef BOURSE_PROTOCOL_TERMINAL_BUFFER_H
#define BOURSE_PROTOCOL_TERMINAL_BUFFER_H

#include "protocol/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct terminal_buffer {
    uint64_t first; /* number of the first byte */
    size_t count;
    uint8_t bytes[LIMIT_TERMINAL_WINDOW];
};

/* Empties the buffer; the next byte has the number `first`. */
void terminal_buffer_restart(struct terminal_buffer *buffer, uint64_t first);
/* Returns the number of the byte that comes next. */
uint64_t terminal_buffer_end(const struct terminal_buffer *buffer);
size_t terminal_buffer_room(const struct terminal_buffer *buffer);
/* Adds bytes as far as there is room, and returns how many were added. */
size_t terminal_buffer_add(struct terminal_buffer *buffer, const void *bytes, size_t size);
/* Drops the bytes before `taken`. Returns false, and changes nothing, when the buffer neither has
 * nor had the byte before `taken`, or has dropped the byte at `taken`. */
bool terminal_buffer_drop(struct terminal_buffer *buffer, uint64_t taken);
/* Returns the bytes from number `from` on, which fit one message, and their count; 0: none. */
const uint8_t *terminal_buffer_piece(const struct terminal_buffer *buffer, uint64_t from,
                                     size_t *ret_size);

/* The sending end has a buffer, and knows how much of it the broker has. */
struct terminal_sender {
    struct terminal_buffer buffer;
    uint64_t sent; /* the broker has the bytes before this one */
};

/* Takes the broker's answer. Figures that are not of this buffer change nothing. */
void terminal_sender_answered(struct terminal_sender *sender, uint64_t through, uint64_t taken);
/* Returns true when a message would bring bytes, or would learn that there is room again. */
bool terminal_sender_wants(const struct terminal_sender *sender);

#endif
