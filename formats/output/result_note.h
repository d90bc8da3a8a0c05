/* formats/output/result_note.h writes and reads the notes in the detail of a result.
 *
 * A program may write more than its result keeps, or leave links in a folder that is an output. Its
 * result is good all the same, and the detail says what is missing. The detail is a provider's own
 * text, so a note informs people and decides nothing. */
#ifndef BOURSE_FORMATS_OUTPUT_RESULT_NOTE_H
#define BOURSE_FORMATS_OUTPUT_RESULT_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A folder's note begins with these words. */
#define RESULT_NOTE_LEFT_OUT "left out of "

/* Adds a note to the detail: a stream has more bytes than the result keeps. A `written` of at most
 * `kept` means that the number of bytes is unknown. The end of a long detail makes room. */
void result_note_add_cut(char *detail, size_t capacity, bool is_error, uint64_t written,
                         uint64_t kept);
/* Returns true when the detail says that the stream has more bytes than are kept. *ret_written is
 * their number, or 0 when the detail does not say it. */
bool result_note_cut(const char *detail, bool is_error, uint64_t *ret_written);
/* Copies the note on what was left out of folders. Returns false when the detail has none. */
bool result_note_left_out(const char *detail, char *ret_text, size_t capacity);

#endif
