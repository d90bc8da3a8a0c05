/* base/text.h converts bytes to text and back. The forms are hex, base64 (RFC 4648 section 4), safe
 * printing, near names and plurals.
 *
 * Decoders are strict: each value has one text, so that no byte of a signed text can change
 * unseen. */
#ifndef BOURSE_BASE_TEXT_H
#define BOURSE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the ending of a counted word: "%u tile%s". */
static inline const char *text_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}
/* Returns the ending of a verb for so many: 1 device fits, 2 devices fit. */
static inline const char *text_verb_ending(uint64_t count)
{
    return count == 1 ? "s" : "";
}

/* Writes 2 * length lower-case digits and a NUL. */
void text_hex(const void *bytes, size_t length, char *ret_text);
/* Reads exactly 2 * length digits (either case) and the end of the text. Returns false for any
 * other text; ret_bytes is untouched then. */
bool text_unhex(const char *text, void *ret_bytes, size_t length);

/* Returns the size of the base64 text of `length` bytes, padding included, NUL excluded. */
size_t text_base64_size(size_t length);
/* Writes text_base64_size(length) characters and a NUL. */
void text_base64(const void *bytes, size_t length, char *ret_text);
/* Decodes `text_length` characters into at most `capacity` bytes. Returns false for wrong
 * characters, wrong padding, spare bits that are not zero, or too small a capacity. */
bool text_unbase64(const char *text, size_t text_length, void *ret_bytes, size_t capacity,
                   size_t *ret_length);

/* Returns true when all of the text is well-formed UTF-8 (RFC 3629): no overlong form, no
 * surrogate. */
bool text_is_utf8(const char *text, size_t length);
/* Returns how many bytes at the front of the text are well-formed UTF-8; `length` for all. */
size_t text_utf8_length(const char *text, size_t length);
/* Returns the code point at the front of well-formed text (length > 0) and the bytes that it
 * takes. */
uint32_t text_code_point(const char *text, size_t length, size_t *ret_size);

/* Copies at most capacity - 1 bytes of `text` for a terminal or a log. Control characters, bytes
 * outside ASCII that are not well-formed UTF-8, and bidirectional marks become '?'. The copy
 * always ends with a NUL. */
void text_printable(const char *text, size_t length, char *ret_text, size_t capacity);
/* Copies like text_printable. A text that does not fit is cut after a whole word, and ends with
 * "...". The capacity is above 3. */
void text_printable_words(const char *text, size_t length, char *ret_text, size_t capacity);

/* Returns true when all of the text is well-formed UTF-8 without control characters, line and
 * paragraph separators and bidirectional marks. The name of a file must be such a text, because
 * other texts can disguise the file in a listing. */
bool text_is_plain(const char *text, size_t length);

/* The struct holds the state of showing foreign bytes on a terminal, piece by piece. Readable
 * UTF-8, newlines and tabs stay as they are. A carriage return becomes \r. Other controls below a
 * blank become \x1b. The rest of the controls and the bidirectional marks become \u202e. A byte
 * that is not UTF-8 becomes \xff. */
struct text_visible {
    uint8_t held[4]; /* beginning of a character whose end has not come yet */
    size_t held_count;
};
enum {
    TEXT_VISIBLE_PER_BYTE = 6,                         /* characters that one byte may become */
    TEXT_VISIBLE_END_SIZE = 4 * TEXT_VISIBLE_PER_BYTE, /* for the held bytes */
};
/* Writes at most TEXT_VISIBLE_PER_BYTE * length + TEXT_VISIBLE_END_SIZE characters, no NUL, and
 * returns their number. `state` begins as zeros. A character that is split over two pieces comes
 * out complete. */
size_t text_visible(struct text_visible *state, const void *bytes, size_t length, char *ret_text);
/* Writes the held bytes at the end of the text; `state` is as at the start then. */
size_t text_visible_end(struct text_visible *state, char ret_text[TEXT_VISIBLE_END_SIZE]);

/* Holds an amount of bytes for people: "512.0 MiB". */
struct text_size {
    char text[24];
};
struct text_size text_size(uint64_t bytes);

enum { TEXT_COLUMNS = 100 }; /* columns of a line of help */
/* Breaks lines that are longer than TEXT_COLUMNS bytes at their blanks, in place. The rest of a
 * broken line goes before the next line of the same paragraph, one that is neither empty nor
 * indented. Indented lines stay as they are. */
void text_wrap(char *text);

/* Returns the entry of `names` (count of them) nearest to `text` by edit distance, for "did you
 * mean". Returns NULL when none is within a third of its length (at least 1, at most 3 edits). */
const char *text_nearest(const char *text, const char *const *names, size_t count);

#endif
