/* base/pattern.h matches the names of files with a pattern, as a shell does.
 *
 *     *         any number of characters of one name, or none
 *     ?         one character
 *     [a-f]     one of these characters; [!a-f] one of the others
 *     \         the next character stands for itself
 *
 * No part of a pattern matches a slash. Only a dot matches a dot at the beginning of a name. A name
 * with the same characters as the pattern matches, even where these are special: `a[1]` matches the
 * pattern `a[1]`. A pattern takes whole folders, so a path below a match is matched. A pattern that
 * ends with a slash matches folders only.
 *
 * Patterns come from strangers. So the time for any pattern is at most proportional to its length
 * times the length of the path. Pure. */
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

/* Returns true when a character of the first `length` bytes is special in a pattern. A character
 * after a backslash counts, too. */
bool pattern_is_special(const char *text, size_t length);

/* Returns what is wrong with the pattern and what to write instead, or NULL. */
const char *pattern_problem(const char *pattern);

enum pattern_reach {
    PATTERN_MISSES, /* the pattern matches neither the path nor anything below it */
    PATTERN_ABOVE,  /* the path is a folder, and the pattern may match paths below it */
    PATTERN_MATCHES /* the pattern matches the path, or a folder that the path lies in */
};
/* Says whether the pattern reaches `path`, a plain relative path without a slash at its end. */
enum pattern_reach pattern_reach(const char *pattern, const char *path, bool is_folder);

/* Splits a relative pattern before the first name with a special character, or else before the last
 * name. *ret_rest points to the second part. The first part names a folder. ret_folder gets the
 * folder without backslashes, with a slash at its end; it gets "./" when the first part is empty.
 * ret_folder has room for strlen(pattern) + 3 bytes. */
void pattern_split(const char *pattern, char *ret_folder, const char **ret_rest);

/* Writes a pattern that matches exactly `text`. Returns the number of bytes written, at most
 * 2 * strlen(text). No NUL is written. */
size_t pattern_quote(const char *text, char *ret_text);

#endif
