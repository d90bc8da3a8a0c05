/* runtime/terminal.h - standard output and standard error when they are terminals: text of others
 * cannot steer them.
 *
 * A terminal obeys control characters, and people misread bidirectional marks. Every program
 * calls terminal_guard once. From then on all that stdio prints to a terminal is made visible
 * (base/text.h), whoever named it. The colours of our own tables and pictures pass; other
 * sequences of our own go through terminal_control. A stream that is a file or a pipe stays as
 * it is. */
#ifndef BOURSE_RUNTIME_TERMINAL_H
#define BOURSE_RUNTIME_TERMINAL_H

#include <stdio.h>

/* Guards stdout and stderr where they are terminals. Call before anything is printed. Without
 * memory a stream stays unguarded. */
void terminal_guard(void);
/* Prints `sequence` as it is, after what `to` holds back. `to` is any stream. */
void terminal_control(FILE *to, const char *sequence);

#endif
