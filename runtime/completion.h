/* runtime/completion.h writes shell completions for a program that is a command with getopt_long's
 * options. The completions come from the program's own tables. `bourse` knows more of its words and
 * writes its own. */
#ifndef BOURSE_RUNTIME_COMPLETION_H
#define BOURSE_RUNTIME_COMPLETION_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct completion_command {
    const char *name;
    uint32_t options; /* options it accepts: bit `val` of an option's row, all below 32 */
    /* Words that may follow it, separated by blanks; COMPLETION_FOLDERS; NULL: none. */
    const char *words;
};
#define COMPLETION_FOLDERS "/"

struct completion_program {
    const char *name;
    const struct option *options; /* ends with a row without a name */
    const struct completion_command *commands;
    size_t command_count;
    const char *standard; /* the default command */
};

/* Writes the script for `shell`: bash, zsh or fish. Returns false, and writes nothing, for any
 * other shell. */
bool completion_for(FILE *to, const char *shell, const struct completion_program *program);

#endif
