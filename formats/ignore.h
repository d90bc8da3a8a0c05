/* formats/ignore.h reads an ignore file, which lists what is left out of a folder.
 *
 * The lines are a part of gitignore(5):
 *
 *     # comment        a line that counts for nothing, as an empty line
 *     *.o              a name, at any depth: * is any text, ? one character, [a-z] and [!a-z] a set
 *     build/           folders alone, because of the slash at the end
 *     /notes.txt       at the top alone, because of the slash at the beginning
 *     data/raw         a path from the top, because of the slash in between
 *     **, as a part    between slashes any number of folders, at the end everything below
 *     !keep.o          takes what an earlier line left out
 *     \#x, \!x, \*     a backslash takes the next character as it is
 *
 * The last line that matches decides. What lies below a folder that is left out is left out, too.
 * Spaces at the end of a line do not count. The reader is pure and takes any bytes. */
#ifndef BOURSE_FORMATS_IGNORE_H
#define BOURSE_FORMATS_IGNORE_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    IGNORE_FILE_BYTES = 64 << 10,
    IGNORE_PATTERNS = 1024,
    IGNORE_PATTERN_BYTES = 1024, /* one line */
};

struct ignore;

/* Reads the lines. The caller owns the result. Returns NULL with a problem when memory is short,
 * when there are too many lines, or when a line is too long, has a NUL, or has a set without an
 * end. The problem begins with "line N: ". */
struct ignore *ignore_parse(const char *text, size_t length, struct problem *ret_problem);
void ignore_destroy(struct ignore **self);

/* Returns true when the lines leave out this path, which is relative to the folder and has no "./".
 * The caller has asked before about each folder that the path leads through. For each pattern, the
 * time is at most proportional to the pattern's length times the path's length. */
bool ignore_leaves_out(const struct ignore *ignore, const char *path, bool is_folder);

#endif
