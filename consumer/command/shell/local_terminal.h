/* consumer/command/shell/local_terminal.h sets the user's own terminal to pass on every key, and
 * back.
 *
 * A terminal that stays in that mode is of no use to its user. So it is set back by whoever ends
 * first: the caller, exit(), or a signal that the process would die of. */
#ifndef BOURSE_CONSUMER_COMMAND_SHELL_LOCAL_TERMINAL_H
#define BOURSE_CONSUMER_COMMAND_SHELL_LOCAL_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true when a person types: standard input is a terminal. */
bool local_terminal_is_there(void);
/* Returns the size of the window; 80 x 24 where nobody says. */
void local_terminal_size(uint32_t *ret_columns, uint32_t *ret_rows);
/* Passes on every key from now on. Returns false with errno on failure. A later call passes them on
 * again, whatever has changed the terminal meanwhile. The kernel stops a process that calls this in
 * the background, until its user brings it back to the front. */
bool local_terminal_raw(void);
/* Sets the terminal back; without local_terminal_raw nothing happens. */
void local_terminal_restore(void);

#endif
