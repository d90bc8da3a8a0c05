/* consumer/command/completion.h - what a shell should offer for this command line, written from the
 * table of commands. */
#ifndef BOURSE_CONSUMER_COMMAND_COMPLETION_H
#define BOURSE_CONSUMER_COMMAND_COMPLETION_H

#include "consumer/command/command.h"

/* Writes the script for `shell`: bash, zsh or fish; false for any other. */
bool completion_write(FILE *to, const char *shell);

#endif
