/* consumer/command/completion.h writes shell completions from the table of commands. */
#ifndef BOURSE_CONSUMER_COMMAND_COMPLETION_H
#define BOURSE_CONSUMER_COMMAND_COMPLETION_H

#include "consumer/command/command.h"

/* Writes the script for bash, zsh or fish. Returns false for any other shell. */
bool completion_write(FILE *to, const char *shell);

#endif
