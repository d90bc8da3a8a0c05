/* base/text.h - bytes as text and back: hex, base64 (RFC 4648 section 4), safe printing, near names, plurals.
 *
 * Decoders are strict: one text for one value, so that no byte of a signed text can change unseen.
 * Pure. */
#ifndef BOURSE_BASE_TEXT_H
#define BOURSE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The end of a word that is counted: "%u tile%s". */
static inline const char *text_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Writes 2 * length lower-case digits and a NUL. */
void text_hex(const void *bytes, size_t length, char *ret_text);
/* Exactly 2 * length digits (either case), then the end; else false, and ret_bytes is untouched. */
bool text_unhex(const char *text, void *ret_bytes, size_t length);

/* Size of the base64 text of `length` bytes, padding included, NUL excluded. */
size_t text_base64_size(size_t length);
/* Writes text_base64_size(length) characters and a NUL. */
void text_base64(const void *bytes, size_t length, char *ret_text);
/* Decodes `text_length` characters into at most `capacity` bytes. False for wrong characters,
 * wrong padding, spare bits that are not zero, or too little room. */
bool text_unbase64(const char *text, size_t text_length, void *ret_bytes, size_t capacity,
                   size_t *ret_length);

/* Whether all of it is well-formed UTF-8 (RFC 3629): no overlong form, no surrogate. */
bool text_is_utf8(const char *text, size_t length);
/* The code point at the front of well-formed text (length > 0), and how many bytes it takes. */
uint32_t text_code_point(const char *text, size_t length, size_t *ret_size);

/* Copies at most capacity - 1 bytes of `text` for a terminal or a log: control characters, bytes
 * outside ASCII that are not well-formed UTF-8, and bidirectional marks become '?'. Always ends
 * with a NUL. */
void text_printable(const char *text, size_t length, char *ret_text, size_t capacity);

enum { TEXT_COLUMNS = 100 }; /* of help */
/* Breaks lines that are longer than TEXT_COLUMNS bytes at their blanks, in place. What does not fit
 * goes before the next line, where that is of the same paragraph: neither empty nor indented.
 * Indented lines stay as they are. */
void text_wrap(char *text);

/* The entry of `names` (count of them) nearest to `text` by edit distance, or NULL when none is
 * within a third of its length (at least 1, at most 3 edits). For "did you mean". */
const char *text_nearest(const char *text, const char *const *names, size_t count);

#endif
