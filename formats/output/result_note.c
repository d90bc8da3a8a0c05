#include "formats/output/result_note.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NOTE_SIZE = 128 };

static const char *const streams[] = {"standard output", "standard error"};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the length of the longest part of at most `most` bytes that cuts no character in two. */
static size_t whole_characters(const char *text, size_t most)
{
    size_t length = most;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
        length--;
    }
    return length;
}

void result_note_add_cut(char *detail, size_t capacity, bool is_error, uint64_t written,
                         uint64_t kept)
{
    char note[NOTE_SIZE];
    if (written > kept) {
        (void)snprintf(note, sizeof note,
                       "%" PRIu64 " bytes were written to %s, and %" PRIu64 " are kept", written,
                       streams[is_error], kept);
    } else {
        (void)snprintf(note, sizeof note, "more was written to %s than is kept", streams[is_error]);
    }
    const size_t needs = strlen("; ") + strlen(note);
    size_t used = strlen(detail);
    assert(needs < capacity);
    if (used > capacity - 1 - needs) {
        used = whole_characters(detail, capacity - 1 - needs);
    }
    (void)snprintf(detail + used, capacity - used, "%s%s", used > 0 ? "; " : "", note);
}

/* Returns the beginning of the note on a stream that was cut, or NULL. */
static const char *find_cut(const char *detail, bool is_error, uint64_t *ret_written)
{
    char words[NOTE_SIZE];
    *ret_written = 0;
    (void)snprintf(words, sizeof words, " bytes were written to %s, and ", streams[is_error]);
    const char *end = strstr(detail, words);
    const char *from = end;
    while (from != NULL && from > detail && is_digit(from[-1])) {
        from--;
    }
    if (from != end) {
        for (const char *c = from; c < end && *ret_written < UINT64_MAX / 10 - 1; c++) {
            *ret_written = 10 * *ret_written + (uint64_t)(*c - '0');
        }
        return from;
    }
    (void)snprintf(words, sizeof words, "more was written to %s than is kept", streams[is_error]);
    return strstr(detail, words);
}

bool result_note_cut(const char *detail, bool is_error, uint64_t *ret_written)
{
    return find_cut(detail, is_error, ret_written) != NULL;
}

bool result_note_left_out(const char *detail, char *ret_text, size_t capacity)
{
    uint64_t written;
    size_t length = strlen(detail);
    if (strncmp(detail, RESULT_NOTE_LEFT_OUT, strlen(RESULT_NOTE_LEFT_OUT)) != 0) {
        return false;
    }
    for (unsigned i = 0; i < 2; i++) {
        const char *cut = find_cut(detail, i == 1, &written);
        const size_t before = cut != NULL ? (size_t)(cut - detail) : length;
        length = before < length ? before : length;
    }
    while (length > 0 && (detail[length - 1] == ' ' || detail[length - 1] == ';')) {
        length--;
    }
    (void)snprintf(ret_text, capacity, "%.*s", (int)length, detail);
    return true;
}
