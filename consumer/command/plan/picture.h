/* consumer/command/plan/picture.h - the timeline of a report or a plan: in the terminal, and as a
 * picture in a file. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_PICTURE_H
#define BOURSE_CONSUMER_COMMAND_PLAN_PICTURE_H

#include "consumer/command/command.h"
#include "planner/picture/picture.h"

/* --width, or the terminal's. False after having said what is wrong with it. */
bool picture_width(struct invocation *invocation, unsigned *ret_width);
/* How timelines are drawn for who reads standard output. */
struct picture_style picture_style_of(const struct invocation *invocation, unsigned width);
/* After an empty line; without memory nothing. Takes the text over. */
void print_picture(char *text);
/* Whether --svg names a file that may be written, or is not given; *ret_path is then the file, or
 * NULL. False after having said why not. */
bool picture_path(struct invocation *invocation, const char **ret_path, int *ret_status);
/* A picture of that name is drawn anew; a pipe, or what a link such as /dev/stdout leads to, is
 * written to. Takes `text` over; NULL is without memory. False after having said why not. */
bool write_picture(struct invocation *invocation, const char *path, char *text, int *ret_status);

#endif
