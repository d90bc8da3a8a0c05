#include "formats/ignore.h"

#include "base/array.h"
#include "base/pattern.h"

#include <stdlib.h>
#include <string.h>

struct pattern {
    char *text; /* from the top, without the marks; "**" stands in front of a bare name */
    bool takes; /* the line begins with "!" */
    bool folders_only;
};

struct ignore {
    struct pattern *patterns;
    size_t count, capacity;
};

void ignore_destroy(struct ignore **self)
{
    struct ignore *ignore = *self;
    if (ignore != NULL) {
        for (size_t i = 0; i < ignore->count; i++) {
            free(ignore->patterns[i].text);
        }
        free(ignore->patterns);
        free(ignore);
        *self = NULL;
    }
}

/* Returns the length of the set at `pattern`, which begins with "[", or 0 without an end. A "]"
 * right after the beginning is a member. */
static size_t set_length(const char *pattern, size_t length)
{
    size_t i = 1;
    i += i < length && (pattern[i] == '!' || pattern[i] == '^');
    i += i < length && pattern[i] == ']';
    while (i < length && pattern[i] != ']') {
        i += pattern[i] == '\\' && i + 1 < length ? 2 : 1;
    }
    return i < length ? i + 1 : 0;
}

/* ---------------------------------------------------------------- paths */

static const char *next_part(const char *part)
{
    const char *slash = strchr(part, '/');
    return slash == NULL ? NULL : slash + 1;
}

/* Matches part by part; NULL is the end of a path. "**" takes any number of parts, and after a
 * mismatch the last "**" takes one more. */
static bool match_path(const char *pattern, const char *path)
{
    const char *many = NULL; /* behind the last "**" */
    const char *taken = NULL;
    while (path != NULL) {
        const size_t length = pattern == NULL ? 0 : strcspn(pattern, "/");
        if (pattern != NULL && length == 2 && strncmp(pattern, "**", 2) == 0) {
            many = pattern = next_part(pattern);
            taken = path;
        } else if (pattern != NULL &&
                   pattern_matches_name(pattern, length, path, strcspn(path, "/"))) {
            pattern = next_part(pattern);
            path = next_part(path);
        } else if (many != NULL) {
            taken = next_part(taken);
            pattern = many;
            path = taken;
        } else {
            return false;
        }
    }
    return pattern == NULL;
}

bool ignore_leaves_out(const struct ignore *ignore, const char *path, bool is_folder)
{
    for (size_t i = ignore->count; i-- > 0;) {
        const struct pattern *pattern = &ignore->patterns[i];
        if ((is_folder || !pattern->folders_only) && match_path(pattern->text, path)) {
            return !pattern->takes;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- lines */

static bool has_whole_sets(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (line[i] == '[') {
            const size_t set = set_length(line + i, length - i);
            if (set == 0 || memchr(line + i, '/', set) != NULL) {
                return false;
            }
            i += set - 1;
        } else if (line[i] == '\\') {
            i++;
        }
    }
    return true;
}

/* Adds one pattern without the marks "!" and "/" at its ends. */
static bool add(struct ignore *ignore, const char *line, size_t length, struct pattern pattern)
{
    static const char any[] = "**/";
    static const char below[] = "/*";
    const bool is_bare = memchr(line, '/', length) == NULL;
    if (length > 0 && line[0] == '/') {
        line++;
        length--;
    }
    /* Two stars at the end are everything below a folder, and not the folder itself. */
    const bool is_below = length >= 2 && strncmp(line + length - 2, "**", 2) == 0 &&
                          (length == 2 || line[length - 3] == '/');
    pattern.text = calloc(1, length + sizeof any + sizeof below);
    struct pattern *patterns =
        array_with_room(ignore->patterns, ignore->count, &ignore->capacity, sizeof *patterns);
    if (patterns == NULL || pattern.text == NULL) {
        free(pattern.text);
        ignore->patterns = patterns != NULL ? patterns : ignore->patterns;
        return false;
    }
    if (is_bare) {
        memcpy(pattern.text, any, sizeof any - 1);
    }
    memcpy(pattern.text + strlen(pattern.text), line, length);
    if (is_below) {
        memcpy(pattern.text + strlen(pattern.text), below, sizeof below - 1);
    }
    ignore->patterns = patterns;
    patterns[ignore->count++] = pattern;
    return true;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

static bool read_line(struct ignore *ignore, const char *line, size_t length,
                      const char **ret_problem)
{
    struct pattern pattern = {.text = NULL};
    while (length > 0 && is_blank(line[length - 1]) && (length == 1 || line[length - 2] != '\\')) {
        length--;
    }
    if (length == 0 || line[0] == '#') {
        return true;
    }
    pattern.takes = line[0] == '!';
    line += pattern.takes;
    length -= pattern.takes;
    while (length > 0 && line[length - 1] == '/') {
        pattern.folders_only = true;
        length--;
    }
    *ret_problem = length == 0                        ? "no name is left without ! and /"
                   : length > IGNORE_PATTERN_BYTES    ? "the line has more than 1024 bytes"
                   : memchr(line, '\0', length)       ? "a NUL is no part of a name"
                   : !has_whole_sets(line, length)    ? "a set [...] has no end, or holds a slash"
                   : ignore->count == IGNORE_PATTERNS ? "there are more than 1024 patterns"
                   : !add(ignore, line, length, pattern) ? "out of memory"
                                                         : NULL;
    return *ret_problem == NULL;
}

struct ignore *ignore_parse(const char *text, size_t length, struct problem *ret_problem)
{
    struct ignore *ignore = calloc(1, sizeof *ignore);
    const char *why = ignore == NULL               ? "out of memory"
                      : length > IGNORE_FILE_BYTES ? "the file has more than 65536 bytes"
                                                   : NULL;
    unsigned number = 1;
    for (size_t at = 0; why == NULL && at < length; number++) {
        const char *end = memchr(text + at, '\n', length - at);
        const size_t line = end == NULL ? length - at : (size_t)(end - (text + at));
        if (!read_line(ignore, text + at, line, &why)) {
            break;
        }
        at += line + 1;
    }
    if (why != NULL) {
        problem_set(ret_problem, "line %u: %s", number, why);
        ignore_destroy(&ignore);
    }
    return ignore;
}
