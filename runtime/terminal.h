/* runtime/terminal.h protects terminals at standard output and standard error from control
 * characters in foreign text.
 *
 * A terminal obeys control characters, and people misread bidirectional marks. Every program calls
 * terminal_guard once. From then on everything that stdio prints to a terminal is made visible
 * (base/text.h), whatever its origin. The colours of our own tables and pictures pass; other
 * sequences of our own go through terminal_control. A stream that is a file or a pipe stays
 * unchanged. */
#ifndef BOURSE_RUNTIME_TERMINAL_H
#define BOURSE_RUNTIME_TERMINAL_H

#include <stdio.h>

/* Guards stdout and stderr where they are terminals. Call it before anything is printed. A stream
 * stays unguarded when memory is short. */
void terminal_guard(void);
/* Prints `sequence` unchanged, after everything that `to` holds back. `to` is any stream. */
void terminal_control(FILE *to, const char *sequence);

#endif
