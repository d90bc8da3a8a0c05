/* consumer/command/shell/shell_escape.h finds what the user types for `bourse shell` itself, among
 * the bytes for the program.
 *
 * A tilde at the beginning of a line begins an escape, as with other remote shells. "~." leaves,
 * "~?" helps, a tilde and Ctrl-Z suspends, and "~~" is one tilde. Anything else after a tilde goes
 * to the program, with it.
 * Pure. */
#ifndef BOURSE_CONSUMER_COMMAND_SHELL_SHELL_ESCAPE_H
#define BOURSE_CONSUMER_COMMAND_SHELL_SHELL_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/* Zero is the state in which nothing was typed. */
struct shell_escape {
    bool is_in_line; /* the present line has a byte */
    bool has_tilde;  /* a tilde began the line, and what follows is not known */
};

enum shell_action { SHELL_NOTHING, SHELL_LEAVE, SHELL_HELP, SHELL_SUSPEND };

/* Splits typed bytes. Writes those for the program to `ret_bytes`, which has room for size + 1, and
 * their number to *ret_size. An action ends the call; *ret_used tells how many bytes were read. */
enum shell_action shell_escape_read(struct shell_escape *escape, const char *bytes, size_t size,
                                    char *ret_bytes, size_t *ret_size, size_t *ret_used);

#endif
