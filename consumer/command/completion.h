/* consumer/command/completion.h declares what the scripts of all shells take from the table of
 * commands, and the writers of the scripts, one file for each shell. */
#ifndef BOURSE_CONSUMER_COMMAND_COMPLETION_H
#define BOURSE_CONSUMER_COMMAND_COMPLETION_H

#include "consumer/command/command.h"

/* A place is a set of things that may stand at a position of the command line. The table gives the
 * place as a word of the help: FILE, JOB, or the word itself. */
enum place {
    PLACE_FILES = 1,
    PLACE_FOLDERS = 2,
    PLACE_JOBS = 4,
    PLACE_ORDERS = 8,
    PLACE_COMMANDS = 16,
    PLACE_PROGRAMS = 32,
    PLACE_WORDS = 64, /* the words in `words` */
};
struct places {
    unsigned first, rest; /* for a command's first word, and for the later ones */
    char words[2048];     /* literal words, with blanks between */
};
/* Returns what may follow the command. */
struct places completion_places(const struct command *command);
/* Returns what an option's value may be, by the value's word in the help. */
struct places completion_value_places(const char *label);
/* Returns a command, or a template of `run` behind the last command, or NULL behind the last
 * template. */
const struct command *completion_command(size_t index);
/* Prints the templates, which follow `run` in place of a program. */
void completion_print_templates(FILE *to, const char *between);
/* Prints the names of all commands, with blanks between. */
void completion_print_names(FILE *to);

void completion_write_bash(FILE *to);
void completion_write_zsh(FILE *to);
void completion_write_fish(FILE *to);

#endif
