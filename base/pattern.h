/* base/pattern.h matches the names of files with a pattern, as a shell does.
 *
 *     *         any characters of one name, also none
 *     ?         one character
 *     [a-f]     one of these characters; [!a-f] one of the others
 *     \         takes the meaning from the next character
 *
 * No part of a pattern matches a slash. A dot at the beginning of a name is matched by a dot alone.
 * A name of a path that is written like the pattern's name is matched, too, whatever its characters
 * mean. A path that lies below a match is matched: a pattern takes whole folders. A pattern that
 * ends with a slash matches folders only.
 *
 * Matching takes time in proportion to the length of the pattern times that of the path, for every
 * pattern: patterns come from strangers. Pure. */
#ifndef BOURSE_BASE_PATTERN_H
#define BOURSE_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* Matches one name, in which a dot is a character like any other. Neither text has a slash. */
bool pattern_matches_name(const char *pattern, size_t pattern_length, const char *name,
                          size_t length);

/* Does the same, and says how many characters were read of both, most of them more than once. The
 * count is at most 3 * (pattern_length + 1) * (length + 1). */
bool pattern_match_counted(const char *pattern, size_t pattern_length, const char *name,
                           size_t length, size_t *ret_steps);

/* Returns true when the first `length` bytes have a character that is special in a pattern, also
 * behind a backslash. */
bool pattern_is_special(const char *text, size_t length);

/* Returns what is wrong with the pattern and what to write instead, or NULL. */
const char *pattern_problem(const char *pattern);

enum pattern_reach {
    PATTERN_MISSES, /* neither the path nor anything below it */
    PATTERN_ABOVE,  /* only paths below this one, which must be a folder */
    PATTERN_MATCHES /* the path, or a folder that it lies in */
};
/* Says whether the pattern reaches `path`, a plain relative path without a slash at its end. */
enum pattern_reach pattern_reach(const char *pattern, const char *path, bool is_folder);

/* Splits a relative pattern in two. *ret_rest gets the part from the first name with a special
 * character on, or the last name. The part before it names a folder: ret_folder gets it without
 * backslashes, with a slash at its end, or "./" where there is none. ret_folder has room for
 * strlen(pattern) + 3 bytes. */
void pattern_split(const char *pattern, char *ret_folder, const char **ret_rest);

/* Writes `text` so that a pattern takes it as it is, and returns the bytes written, at most
 * 2 * strlen(text), without a NUL. */
size_t pattern_quote(const char *text, char *ret_text);

#endif
