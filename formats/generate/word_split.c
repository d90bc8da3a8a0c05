#include "formats/generate/word_split.h"

#include "formats/generate/unicode_class.h"

#include <stdbool.h>
#include <string.h>

size_t word_split_character(const uint8_t *text, size_t size, uint32_t *ret_character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t first = text[0];
    const size_t length = first < 0x80             ? 1
                          : (first & 0xE0) == 0xC0 ? 2
                          : (first & 0xF0) == 0xE0 ? 3
                          : (first & 0xF8) == 0xF0 ? 4
                                                   : 0;
    uint32_t character = length == 1 ? first : (uint32_t)(first & (0x7F >> length));
    *ret_character = UINT32_MAX;
    if (length == 0 || length > size) {
        return 1;
    }
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80) {
            return 1;
        }
        character = character << 6 | (text[i] & 0x3F);
    }
    if (character < least[length] || character > 0x10FFFF || (character & ~0x7FFU) == 0xD800) {
        return 1;
    }
    *ret_character = character;
    return length;
}

/* Returns the bytes of a contraction such as 're at the start, or 0. */
static size_t contraction(const uint8_t *text, size_t size)
{
    static const char *const endings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const size_t length = strlen(endings[i]);
        if (size >= length && memcmp(text, endings[i], length) == 0) {
            return length;
        }
    }
    return 0;
}

static enum unicode_class class_at(const uint8_t *text, size_t size, size_t *ret_length)
{
    uint32_t character = 0;
    *ret_length = word_split_character(text, size, &character);
    return unicode_class(character);
}

/* Returns the bytes of all characters of one class. *ret_last is where the last of them begins. */
static size_t run_of(enum unicode_class class, const uint8_t *text, size_t size, size_t *ret_last)
{
    size_t end = 0;
    size_t length = 0;
    *ret_last = 0;
    while (end < size && class_at(text + end, size - end, &length) == class) {
        *ret_last = end;
        end += length;
    }
    return end;
}

size_t word_split_next(const uint8_t *text, size_t size)
{
    size_t length = 0;
    size_t last = 0;
    if (size == 0) {
        return 0;
    }
    const size_t short_form = contraction(text, size);
    if (short_form > 0) {
        return short_form;
    }
    /* A word takes one blank before it along. */
    const size_t blank = text[0] == ' ' && size > 1 ? 1 : 0;
    const enum unicode_class class = class_at(text + blank, size - blank, &length);
    if (class != UNICODE_SPACE) {
        return blank + run_of(class, text + blank, size - blank, &last);
    }
    /* White space leaves its last character to the word behind it. */
    const size_t spaces = run_of(UNICODE_SPACE, text, size, &last);
    return spaces < size && last > 0 ? last : spaces;
}
