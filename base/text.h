/* base/text.h - bytes as text and back: hex, base64 (RFC 4648 section 4), safe printing, near
 * names, plurals.
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

/* Whether all of it is well-formed UTF-8 without control characters, line and paragraph
 * separators and bidirectional marks. A name that becomes a file's must be such a text: others
 * misname the file to whoever lists the folder. */
bool text_is_plain(const char *text, size_t length);

/* Shows bytes of others on a terminal, piece by piece. Readable UTF-8, newlines and tabs stay as
 * they are. A carriage return becomes \r; other controls below a blank become \x1b, the rest of
 * the controls and the bidirectional marks become \u202e, and a byte that is no UTF-8 becomes
 * \xff. */
struct text_visible {
    uint8_t held[4]; /* the beginning of a character whose end has not come yet */
    size_t held_count;
};
enum {
    TEXT_VISIBLE_PER_BYTE = 6,                         /* characters that one byte may become */
    TEXT_VISIBLE_END_SIZE = 4 * TEXT_VISIBLE_PER_BYTE, /* of what is held */
};
/* Writes at most TEXT_VISIBLE_PER_BYTE * length + TEXT_VISIBLE_END_SIZE characters, no NUL, and
 * returns how many. `state` begins as zeros. A character split over two pieces comes out whole. */
size_t text_visible(struct text_visible *state, const void *bytes, size_t length, char *ret_text);
/* Writes what is held when nothing more will come; `state` is as it began. */
size_t text_visible_end(struct text_visible *state, char ret_text[TEXT_VISIBLE_END_SIZE]);

enum { TEXT_COLUMNS = 100 }; /* of help */
/* Breaks lines that are longer than TEXT_COLUMNS bytes at their blanks, in place. What does not fit
 * goes before the next line, where that is of the same paragraph: neither empty nor indented.
 * Indented lines stay as they are. */
void text_wrap(char *text);

/* The entry of `names` (count of them) nearest to `text` by edit distance, or NULL when none is
 * within a third of its length (at least 1, at most 3 edits). For "did you mean". */
const char *text_nearest(const char *text, const char *const *names, size_t count);

#endif
