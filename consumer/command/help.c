/* This file prints the help of `bourse` and of each command, from the table of commands. */
#include "consumer/command/command.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { HELP_COLUMN = 26 };

/* Prints the rest of a line whose text begins at `column`. Further lines begin at the same
 * column. */
static void print_beside(FILE *to, const char *text, int column)
{
    const size_t room = (size_t)(TEXT_COLUMNS - column);
    while (strlen(text) > room) {
        size_t length = room;
        while (length > 0 && text[length] != ' ') {
            length--;
        }
        if (length == 0) {
            break; /* the word is longer than a line */
        }
        (void)fprintf(to, "%.*s\n%*s", (int)length, text, column, "");
        text += length + 1;
    }
    (void)fprintf(to, "%s\n", text);
}

static void print_paragraphs(FILE *to, const char *text)
{
    char *copy = strdup(text);
    if (copy != NULL) {
        text_wrap(copy);
    }
    (void)fprintf(to, "\n%s\n", copy != NULL ? copy : text);
    free(copy);
}

static void print_option(FILE *to, const struct option_spec *option)
{
    char left[64];
    char letter[5] = "    ";
    if (option->letter != 0) {
        (void)snprintf(letter, sizeof letter, "-%c, ", option->letter);
    }
    (void)snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name,
                   option->argument != NULL ? " " : "",
                   option->argument != NULL ? option->argument : "");
    const int length = fprintf(to, "  %-*s  ", HELP_COLUMN, left);
    print_beside(to, option->help, length > 0 ? length : 0);
}

static void print_command_help(FILE *to, const struct command *command)
{
    struct option_set set = command_options(command);
    (void)fprintf(to, "usage: bourse %s [OPTIONS]%s%s\n\n%s\n", command->name,
                  command->arguments[0] != '\0' ? " " : "",
                  (command->flags & COMMAND_STOPS_EARLY) != 0
                      ? command->arguments + strlen("[OPTIONS] ")
                      : command->arguments,
                  command->summary);
    if (command->details != NULL) {
        print_paragraphs(to, command->details);
    }
    (void)fputs("\noptions, with defaults in parentheses:\n", to);
    for (size_t i = 0; i < set.count; i++) {
        if (i == set.count - set.expert_count) {
            (void)fputs("\noptions that few need:\n", to);
        }
        print_option(to, set.items[i]);
    }
    (void)fprintf(to, "\nexamples:\n  %s\n  %s\n", command->examples[0], command->examples[1]);
}

enum { GROUP_MAX = 16 };
struct group {
    const char *title;
    const char *commands[GROUP_MAX]; /* ends with NULL */
};

/* The groups list the commands in the order in which a newcomer needs them. */
static const struct group groups[] = {
    {"to begin", {"up", "join", "down", "key", NULL}},
    {"jobs",
     {"run", "shell", "train", "submit", "ps", "watch", "logs", "wait", "fetch", "cancel", "resume",
      "explain", "report", "judge", NULL}},
    {"before money is spent", {"plan", "quote", "history", NULL}},
    {"what is on the market", {"devices", "providers", "book", "trades", "prices", "order", NULL}},
    {"your account",
     {"status", "balance", "ledger", "storage", "forget", "receipt", "verify", NULL}},
    {"for operators", {"admin", NULL}},
    {"this program", {"config", "completion", "version", "help", NULL}},
};

static void print_groups(FILE *to)
{
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        (void)fprintf(to, "\n%s:\n", groups[i].title);
        for (const char *const *name = groups[i].commands; *name != NULL; name++) {
            const struct command *command = command_find(*name);
            (void)fprintf(to, "  %-10s %s\n", *name, command != NULL ? command->summary : "");
        }
    }
}

void command_print_help(FILE *to, const struct command *command)
{
    if (command != NULL) {
        print_command_help(to, command);
        return;
    }
    (void)fputs("usage: bourse COMMAND [OPTIONS] [ARGUMENTS]\n\n"
                "Runs programs on whatever is cheapest and fast enough on a market for "
                "compute.\n",
                to);
    print_groups(to);
    (void)fputs("\n`bourse help COMMAND` says more. Every command takes --json.\n"
                "\nfirst steps, on a market of your own:\n"
                "  bourse up --detach\n"
                "  bourse run -- echo hello\n",
                to);
}
