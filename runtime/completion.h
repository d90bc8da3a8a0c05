/* runtime/completion.h - what a shell should offer for a program that is a command with
 * getopt_long's options, written from the program's own tables. `bourse`, which knows more of its
 * words, writes its own. */
#ifndef BOURSE_RUNTIME_COMPLETION_H
#define BOURSE_RUNTIME_COMPLETION_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct completion_command {
    const char *name;
    uint32_t options;  /* that it has: bit `val` of a row of the table of options, all below 32 */
    const char *words; /* that may follow it, with blanks between; COMPLETION_FOLDERS; NULL: none */
};
#define COMPLETION_FOLDERS "/"

struct completion_program {
    const char *name;
    const struct option *options; /* ends with a row without a name */
    const struct completion_command *commands;
    size_t command_count;
    const char *standard; /* the command where none is given */
};

/* Writes the script for `shell`: bash, zsh or fish; false, and nothing is written, for any
 * other. */
bool completion_for(FILE *to, const char *shell, const struct completion_program *program);

#endif
