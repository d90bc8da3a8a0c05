/* consumer/command/screen.h measures the terminal, draws on it, and asks the user a question. */
#ifndef BOURSE_CONSUMER_COMMAND_SCREEN_H
#define BOURSE_CONSUMER_COMMAND_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Returns the columns of the terminal behind `fd`, or 80. */
unsigned screen_width(int fd);
/* Returns true when the locale's characters are UTF-8. */
bool screen_is_utf8(void);

/* A screen draws lines on stdout's terminal over the previous ones. Lines that are too wide or too
 * many are cut, because a wrapped or scrolled line cannot be drawn over. */
struct screen {
    size_t lines;
};
void screen_draw(struct screen *screen, const char *text);

/* Asks on the terminal. Returns 1 for yes, 0 for no, and -1 without a terminal. */
int screen_ask_yes_no(const char *question);

#endif
