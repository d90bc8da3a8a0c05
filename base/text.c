#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void text_hex(const void *bytes, size_t length, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *in = bytes;
    for (size_t i = 0; i < length; i++) {
        ret_text[2 * i] = digits[in[i] >> 4];
        ret_text[2 * i + 1] = digits[in[i] & 15];
    }
    ret_text[2 * length] = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

bool text_unhex(const char *text, void *ret_bytes, size_t length)
{
    for (size_t i = 0; i < 2 * length; i++) {
        if (hex_value(text[i]) < 0) { /* the NUL fails here too */
            return false;
        }
    }
    if (text[2 * length] != '\0') {
        return false;
    }
    uint8_t *out = ret_bytes;
    for (size_t i = 0; i < length; i++) {
        const int high = hex_value(text[2 * i]);
        const int low = hex_value(text[2 * i + 1]);
        assert(high >= 0 && low >= 0); /* checked above */
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t text_base64_size(size_t length)
{
    return (length + 2) / 3 * 4;
}

void text_base64(const void *bytes, size_t length, char *ret_text)
{
    const uint8_t *in = bytes;
    char *out = ret_text;
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t group = (uint32_t)in[i] << 16;
        group |= left > 1 ? (uint32_t)in[i + 1] << 8 : 0;
        group |= left > 2 ? (uint32_t)in[i + 2] : 0;
        *out++ = base64_digits[group >> 18];
        *out++ = base64_digits[group >> 12 & 63];
        *out++ = left > 1 ? base64_digits[group >> 6 & 63] : '=';
        *out++ = left > 2 ? base64_digits[group & 63] : '=';
    }
    *out = '\0';
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool text_unbase64(const char *text, size_t text_length, void *ret_bytes, size_t capacity,
                   size_t *ret_length)
{
    if (text_length % 4 != 0) {
        return false;
    }
    size_t padding = 0;
    if (text_length > 0 && text[text_length - 1] == '=') {
        padding = text[text_length - 2] == '=' ? 2 : 1;
    }
    size_t length = text_length / 4 * 3 - padding;
    if (length > capacity) {
        return false;
    }
    uint8_t *out = ret_bytes;
    size_t written = 0;
    for (size_t i = 0; i < text_length; i += 4) {
        uint32_t group = 0;
        for (size_t k = 0; k < 4; k++) {
            bool pad = i + k >= text_length - padding;
            int value = pad ? 0 : base64_value(text[i + k]);
            if (value < 0) {
                return false;
            }
            group = group << 6 | (uint32_t)value;
        }
        for (size_t k = 0; k < 3; k++) {
            uint8_t byte = (uint8_t)(group >> (16 - 8 * k));
            if (written < length) {
                out[written++] = byte;
            } else if (byte != 0) {
                return false; /* spare bits must be zero: each value has one text */
            }
        }
    }
    *ret_length = length;
    return true;
}

/* Returns the length of the well-formed UTF-8 sequence at `text` (RFC 3629), or 0. */
static size_t utf8_length(const uint8_t *text, size_t left, uint32_t *ret_point)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0x80       ? 1
                    : text[0] >> 5 == 6  ? 2
                    : text[0] >> 4 == 14 ? 3
                    : text[0] >> 3 == 30 ? 4
                                         : 0;
    if (length == 0 || length > left) {
        return 0;
    }
    uint32_t point = length == 1 ? text[0] : text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (text[i] >> 6 != 2) {
            return 0;
        }
        point = point << 6 | (text[i] & 0x3fu);
    }
    if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) {
        return 0;
    }
    *ret_point = point;
    return length;
}

size_t text_utf8_length(const char *text, size_t length)
{
    const uint8_t *in = (const uint8_t *)text;
    size_t i = 0;
    while (i < length) {
        uint32_t point;
        size_t size = utf8_length(in + i, length - i, &point);
        if (size == 0) {
            break;
        }
        i += size;
    }
    return i;
}

bool text_is_utf8(const char *text, size_t length)
{
    return text_utf8_length(text, length) == length;
}

uint32_t text_code_point(const char *text, size_t length, size_t *ret_size)
{
    uint32_t point = 0;
    size_t size = utf8_length((const uint8_t *)text, length, &point);
    assert(size > 0);
    *ret_size = size;
    return point;
}

static bool is_unsafe_point(uint32_t point)
{
    bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
    bool bidirectional = point == 0x061c || point == 0x200e || point == 0x200f ||
                         (point >= 0x2028 && point <= 0x202e) ||
                         (point >= 0x2066 && point <= 0x2069);
    return control || bidirectional;
}

/* Returns how many bytes of the text were copied. */
static size_t copy_printable(const char *text, size_t length, char *ret_text, size_t capacity)
{
    assert(capacity > 0);
    const uint8_t *in = (const uint8_t *)text;
    size_t written = 0;
    size_t i = 0;
    while (i < length) {
        uint32_t point = 0;
        size_t size = utf8_length(in + i, length - i, &point);
        bool safe = size > 0 && !is_unsafe_point(point);
        size_t needed = safe ? size : 1;
        if (written + needed >= capacity) {
            break;
        }
        if (safe) {
            memcpy(ret_text + written, in + i, size);
        } else {
            ret_text[written] = '?';
        }
        written += needed;
        i += size > 0 ? size : 1;
    }
    ret_text[written] = '\0';
    return i;
}

void text_printable(const char *text, size_t length, char *ret_text, size_t capacity)
{
    (void)copy_printable(text, length, ret_text, capacity); /* a long text is cut */
}

void text_printable_words(const char *text, size_t length, char *ret_text, size_t capacity)
{
    static const char more[] = "...";
    assert(capacity >= sizeof more);
    if (copy_printable(text, length, ret_text, capacity) == length) {
        return;
    }
    const size_t copied = copy_printable(text, length, ret_text, capacity - strlen(more));
    const char *const blank = strrchr(ret_text, ' ');
    size_t end = strlen(ret_text);
    if (text[copied] != ' ' && blank != NULL) {
        end = (size_t)(blank - ret_text);
    }
    while (end > 0 && ret_text[end - 1] == ' ') {
        end--;
    }
    memcpy(ret_text + end, more, sizeof more);
}

bool text_is_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        uint32_t point = 0;
        size_t size = utf8_length((const uint8_t *)text + i, length - i, &point);
        if (size == 0 || is_unsafe_point(point)) {
            return false;
        }
        i += size;
    }
    return true;
}

static size_t write_escape(char kind, uint32_t value, unsigned digits, char *ret_text)
{
    static const char hex[] = "0123456789abcdef";
    ret_text[0] = '\\';
    ret_text[1] = kind;
    for (unsigned i = 0; i < digits; i++) {
        ret_text[2 + i] = hex[value >> 4 * (digits - 1 - i) & 15];
    }
    return 2 + digits;
}

/* Writes the character of `size` bytes. Size 0 means that the first byte belongs to no
 * character. */
static size_t write_visible(const uint8_t *bytes, size_t size, uint32_t point, char *ret_text)
{
    if (size == 0) {
        return write_escape('x', bytes[0], 2, ret_text);
    }
    if (!is_unsafe_point(point) || point == '\n' || point == '\t') {
        memcpy(ret_text, bytes, size);
        return size;
    }
    if (point == '\r') {
        return write_escape('r', 0, 0, ret_text);
    }
    return point < 0x20 ? write_escape('x', point, 2, ret_text)
                        : write_escape('u', point, 4, ret_text);
}

/* Returns true when more bytes may complete these to a character. */
static bool is_beginning(const uint8_t *bytes, size_t count)
{
    const size_t whole = bytes[0] >> 5 == 6    ? 2
                         : bytes[0] >> 4 == 14 ? 3
                         : bytes[0] >> 3 == 30 ? 4
                                               : 0;
    for (size_t i = 1; i < count; i++) {
        if (bytes[i] >> 6 != 2) {
            return false;
        }
    }
    return count < whole;
}

/* Writes the held characters that are complete; at the end of the text also the others. */
static size_t write_held(struct text_visible *state, bool is_end, char *ret_text)
{
    size_t written = 0;
    while (state->held_count > 0) {
        uint32_t point = 0;
        size_t size = utf8_length(state->held, state->held_count, &point);
        if (size == 0 && !is_end && is_beginning(state->held, state->held_count)) {
            break;
        }
        written += write_visible(state->held, size, point, ret_text + written);
        size = size > 0 ? size : 1;
        state->held_count -= size;
        memmove(state->held, state->held + size, state->held_count);
    }
    return written;
}

size_t text_visible(struct text_visible *state, const void *bytes, size_t length, char *ret_text)
{
    const uint8_t *in = bytes;
    size_t written = 0;
    for (size_t i = 0; i < length; i++) {
        assert(state->held_count < sizeof state->held);
        state->held[state->held_count++] = in[i];
        written += write_held(state, false, ret_text + written);
    }
    return written;
}

size_t text_visible_end(struct text_visible *state, char ret_text[TEXT_VISIBLE_END_SIZE])
{
    return write_held(state, true, ret_text);
}

enum { NEAREST_MAX = 40 };

/* Returns the edit distance with transpositions of neighbours (optimal string alignment). */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t row[3][NEAREST_MAX + 1];
    for (size_t j = 0; j <= b_length; j++) {
        row[1][j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        size_t *now = row[(i + 1) % 3];
        const size_t *before = row[i % 3];
        const size_t *two_before = row[(i + 2) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t best = before[j - 1] + (a[i - 1] != b[j - 1]);
            best = before[j] + 1 < best ? before[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                two_before[j - 2] + 1 < best) {
                best = two_before[j - 2] + 1;
            }
            now[j] = best;
        }
    }
    return row[(a_length + 1) % 3][b_length];
}

const char *text_nearest(const char *text, const char *const *names, size_t count)
{
    size_t length = strlen(text);
    if (length == 0 || length > NEAREST_MAX) {
        return NULL;
    }
    size_t limit = length / 3 < 1 ? 1 : length / 3 > 3 ? 3 : length / 3;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t name_length = strlen(names[i]);
        if (name_length > NEAREST_MAX) {
            continue;
        }
        size_t distance = edit_distance(text, length, names[i], name_length);
        if (distance <= limit) {
            nearest = names[i];
            limit = distance == 0 ? 0 : distance - 1;
            if (distance == 0) {
                break;
            }
        }
    }
    return nearest;
}

/* Returns the last blank before which the text of the line at `from` fits. Returns `end` when
 * there is none. */
static char *break_in(char *from, char *end)
{
    char *at = end;
    for (char *c = from; c < end && c <= from + TEXT_COLUMNS; c++) {
        at = *c == ' ' ? c : at;
    }
    return at;
}

struct text_size text_size(uint64_t bytes)
{
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct text_size size;
    unsigned unit = 0;
    if (bytes < 1024) {
        (void)snprintf(size.text, sizeof size.text, "%u B", (unsigned)bytes);
        return size;
    }
    while (bytes >> (10 * (unit + 1)) >= 1024) {
        unit++;
    }
    const uint64_t one = UINT64_C(1) << (10 * (unit + 1));
    const uint64_t tenths = bytes % one / (one / 1024) * 10 / 1024;
    (void)snprintf(size.text, sizeof size.text, "%u.%u %s", (unsigned)(bytes / one),
                   (unsigned)tenths, names[unit]);
    return size;
}

void text_wrap(char *text)
{
    for (char *line = text; *line != '\0';) {
        char *end = line + strcspn(line, "\n");
        char *at = end - line > TEXT_COLUMNS && *line != ' ' ? break_in(line, end) : end;
        if (at == end) {
            line = *end == '\0' ? end : end + 1;
            continue;
        }
        *at = '\n';
        if (end[0] == '\n' && end[1] != '\n' && end[1] != ' ' && end[1] != '\0') {
            *end = ' ';
        }
        line = at + 1;
    }
}
