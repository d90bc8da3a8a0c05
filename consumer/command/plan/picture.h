/* consumer/command/plan/picture.h draws the timeline of a report or a plan, in the terminal or as a
 * picture in a file. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_PICTURE_H
#define BOURSE_CONSUMER_COMMAND_PLAN_PICTURE_H

#include "consumer/command/command.h"
#include "planner/picture/picture.h"

/* Returns the value of --width, or the terminal's width. Returns false after a message about a
 * wrong value. */
bool picture_width(struct invocation *invocation, unsigned *ret_width);
/* Returns the style of timelines for the reader of standard output. */
struct picture_style picture_style_of(const struct invocation *invocation, unsigned width);
/* Prints the text after an empty line, and frees it. Prints nothing when `text` is NULL because
 * memory is short. */
void picture_print(char *text);
/* Returns true when --svg is absent or names a file that may be written; *ret_path is the file, or
 * NULL. Returns false after a message. */
bool picture_path(struct invocation *invocation, const char **ret_path, int *ret_status);
/* Replaces a picture of that name, or writes to a pipe or to the target of a link such as
 * /dev/stdout. Takes `text` over; NULL means that memory is short. Returns false after a
 * message. */
bool picture_write(struct invocation *invocation, const char *path, char *text, int *ret_status);

#endif
