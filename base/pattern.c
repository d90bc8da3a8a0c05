#include "base/pattern.h"

#include "base/text.h"

#include <stdint.h>
#include <string.h>

/* A name is the part of a path between two slashes. */
struct name {
    const char *bytes;
    size_t length;
};

static struct name name_at(const char *path)
{
    return (struct name){.bytes = path, .length = strcspn(path, "/")};
}

/* Returns where the next name begins, or the end of the path. */
static const char *behind(struct name name)
{
    const char *end = name.bytes + name.length;
    return *end == '/' ? end + 1 : end;
}

/* Takes one character from the front. A byte that is not UTF-8 counts as a character of its own,
 * and as none of the others. */
static uint32_t take_character(struct name *from)
{
    enum { STRAY_BYTES = 0x110000 }; /* above the last code point */
    size_t size = 1;
    uint32_t character = STRAY_BYTES + (uint8_t)from->bytes[0];
    const size_t most = from->length < 4 ? from->length : 4;
    if (text_utf8_length(from->bytes, most) > 0) {
        character = text_code_point(from->bytes, from->length, &size);
    }
    from->bytes += size;
    from->length -= size;
    return character;
}

/* Takes a character of the pattern, which a backslash may precede. */
static uint32_t take_literal(struct name *pattern)
{
    if (pattern->bytes[0] == '\\' && pattern->length > 1) {
        pattern->bytes++;
        pattern->length--;
    }
    return take_character(pattern);
}

/* A match in progress. */
struct match {
    struct name pattern, name; /* what is left of both */
    /* The first bracket without an end, or NULL while none is known. Each bracket behind it has no
     * end either, so that one search for an end, at most, is in vain. */
    const char *unclosed;
    size_t steps; /* characters read so far */
};

/* Reads a bracket at the front of the pattern. Returns false when the bracket has no end, and so
 * stands for itself; the pattern is untouched then. */
static bool take_bracket(struct match *match, uint32_t character, bool *ret_matches)
{
    struct name *pattern = &match->pattern;
    if (match->unclosed != NULL && pattern->bytes >= match->unclosed) {
        return false;
    }
    struct name rest = {.bytes = pattern->bytes + 1, .length = pattern->length - 1};
    const bool is_negated = rest.length > 0 && (rest.bytes[0] == '!' || rest.bytes[0] == '^');
    bool matches = false;
    rest.bytes += is_negated;
    rest.length -= is_negated;
    for (bool is_first = true; rest.length > 0 && (is_first || rest.bytes[0] != ']');
         is_first = false) {
        const uint32_t low = take_literal(&rest);
        uint32_t high = low;
        match->steps++;
        if (rest.length > 1 && rest.bytes[0] == '-' && rest.bytes[1] != ']') {
            rest.bytes++;
            rest.length--;
            high = take_literal(&rest);
            match->steps++;
        }
        matches = matches || (low <= character && character <= high);
    }
    if (rest.length == 0) {
        match->unclosed = pattern->bytes;
        return false;
    }
    pattern->bytes = rest.bytes + 1;
    pattern->length = rest.length - 1;
    *ret_matches = matches != is_negated;
    return true;
}

/* Takes one element of the pattern that is no star, and one character of the name. Returns whether
 * they match. */
static bool take_both(struct match *match)
{
    bool matches = true;
    const uint32_t character = take_character(&match->name);
    match->steps++;
    if (match->pattern.bytes[0] == '?') {
        match->pattern.bytes++;
        match->pattern.length--;
        return true;
    }
    if (match->pattern.bytes[0] == '[' && take_bracket(match, character, &matches)) {
        return matches;
    }
    match->steps++;
    return take_literal(&match->pattern) == character;
}

/* Tries the stars from left to right. A star that has taken too little takes one character more.
 * The last star alone needs another try, because an earlier one could not give the rest more. */
bool pattern_match_counted(const char *text, size_t text_length, const char *bytes, size_t length,
                           size_t *ret_steps)
{
    struct match match = {.pattern = {.bytes = text, .length = text_length},
                          .name = {.bytes = bytes, .length = length}};
    struct name after_star = {.bytes = NULL};
    struct name retry = match.name;
    bool matches = false;
    for (;;) {
        if (match.pattern.length > 0 && match.pattern.bytes[0] == '*') {
            match.pattern.bytes++;
            match.pattern.length--;
            match.steps++;
            after_star = match.pattern;
            retry = match.name;
        } else if (match.name.length == 0) {
            matches = match.pattern.length == 0; /* a longer try leaves less of the name */
            break;
        } else if (match.pattern.length == 0 || !take_both(&match)) {
            if (after_star.bytes == NULL || retry.length == 0) {
                break;
            }
            (void)take_character(&retry);
            match.steps++;
            match.pattern = after_star;
            match.name = retry;
        }
    }
    *ret_steps = match.steps;
    return matches;
}

bool pattern_matches_name(const char *text, size_t text_length, const char *bytes, size_t length)
{
    size_t steps;
    return pattern_match_counted(text, text_length, bytes, length, &steps);
}

static bool begins_with_dot(struct name pattern)
{
    const size_t at = pattern.length > 1 && pattern.bytes[0] == '\\';
    return pattern.length > at && pattern.bytes[at] == '.';
}

/* Adds to pattern_matches_name that a name of the same bytes matches, and the rule of a dot. */
static bool name_matches(struct name pattern, struct name name)
{
    if (pattern.length == name.length && memcmp(pattern.bytes, name.bytes, name.length) == 0) {
        return true;
    }
    const bool is_hidden = name.length > 0 && name.bytes[0] == '.';
    return (!is_hidden || begins_with_dot(pattern)) &&
           pattern_matches_name(pattern.bytes, pattern.length, name.bytes, name.length);
}

bool pattern_is_special(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '*' || text[i] == '?' || text[i] == '[') {
            return true;
        }
    }
    return false;
}

const char *pattern_problem(const char *pattern)
{
    for (const char *c = pattern; *c != '\0'; c++) {
        if (*c == '\\' && (c[1] == '\0' || c[1] == '/')) {
            return "has a backslash with nothing behind it; leave it out";
        }
        if (*c == '*' && c[1] == '*') {
            return "has \"**\"; a folder, as in results/, stands for everything below it";
        }
        if (*c == '[' &&
            (c[1] == ':' || (c[1] == '[' && (c[2] == '.' || c[2] == '=' || c[2] == ':')))) {
            return "has a class of characters; write the characters, as in [a-z]";
        }
        c += *c == '\\';
    }
    return NULL;
}

enum pattern_reach pattern_reach(const char *pattern, const char *path, bool is_folder)
{
    while (*pattern != '\0' && *path != '\0') {
        const struct name wanted = name_at(pattern);
        const struct name found = name_at(path);
        if (!name_matches(wanted, found)) {
            return PATTERN_MISSES;
        }
        const bool wants_folder = wanted.bytes[wanted.length] == '/';
        pattern = behind(wanted);
        path = behind(found);
        if (wants_folder && *path == '\0' && !is_folder) {
            return PATTERN_MISSES;
        }
    }
    return *pattern == '\0' ? PATTERN_MATCHES : PATTERN_ABOVE;
}

/* Returns true when a pattern's name stands for more than one name of a file. */
static bool is_open(struct name name)
{
    for (size_t i = 0; i < name.length; i++) {
        if (name.bytes[i] == '\\') {
            i++;
        } else if (pattern_is_special(name.bytes + i, 1)) {
            return true;
        }
    }
    return false;
}

void pattern_split(const char *pattern, char *ret_folder, const char **ret_rest)
{
    size_t length = 0;
    for (struct name name = name_at(pattern);
         !is_open(name) && *behind(name) != '\0'; /* the last name is part of the rest */
         name = name_at(pattern)) {
        for (size_t i = 0; i < name.length; i++) {
            i += name.bytes[i] == '\\' && i + 1 < name.length;
            ret_folder[length++] = name.bytes[i];
        }
        ret_folder[length++] = '/';
        pattern = behind(name);
    }
    if (length == 0) {
        ret_folder[length++] = '.';
        ret_folder[length++] = '/';
    }
    ret_folder[length] = '\0';
    *ret_rest = pattern;
}

size_t pattern_quote(const char *text, char *ret_text)
{
    size_t length = 0;
    for (; *text != '\0'; text++) {
        if (*text == '\\' || pattern_is_special(text, 1)) {
            ret_text[length++] = '\\';
        }
        ret_text[length++] = *text;
    }
    return length;
}
