/* consumer/command/shell/shell_escape.h splits what the user types into bytes for the program and
 * escapes for `bourse shell` itself.
 *
 * As in other remote shells, a tilde at the beginning of a line begins an escape. "~." leaves, "~?"
 * prints help, a tilde and Ctrl-Z suspend the command, and "~~" types one tilde. Before any other
 * byte, the tilde goes to the program with that byte. Pure. */
#ifndef BOURSE_CONSUMER_COMMAND_SHELL_SHELL_ESCAPE_H
#define BOURSE_CONSUMER_COMMAND_SHELL_SHELL_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/* All zero is the state before anything was typed. */
struct shell_escape {
    bool is_in_line; /* the present line has a byte already */
    bool has_tilde;  /* a tilde began the line, and the next byte has not come yet */
};

enum shell_action { SHELL_NOTHING, SHELL_LEAVE, SHELL_HELP, SHELL_SUSPEND };

/* Splits typed bytes. The bytes for the program go to `ret_bytes`, which has room for size + 1, and
 * their number to *ret_size. The call stops after an escape that needs an action. *ret_used tells
 * how many bytes were read. */
enum shell_action shell_escape_read(struct shell_escape *escape, const char *bytes, size_t size,
                                    char *ret_bytes, size_t *ret_size, size_t *ret_used);

#endif
