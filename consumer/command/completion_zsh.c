/* This file writes the completion script of zsh. */
#include "consumer/command/command.h"
#include "consumer/command/completion.h"

#include <string.h>

static const char zsh_head[] =
    "#compdef bourse\n"
    "# zsh completion of bourse, written by `bourse completion zsh`\n"
    "_bourse_jobs() { compadd -- last ${(f)\"$(bourse ps --quiet --timeout 1s 2>/dev/null "
    "</dev/null)\"} }\n"
    "_bourse_orders() { compadd -- ${(f)\"$(bourse order list --quiet --timeout 1s 2>/dev/null "
    "</dev/null)\"} }\n"
    "_bourse() {\n"
    "    local -a names\n"
    "    names=(\n";

/* The text stands within single quotes; _arguments reads colons and brackets as grammar. */
static void zsh_text(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            (void)fputs("'\\''", to);
        } else if (strchr(":[]\\", *text) != NULL) {
            (void)fprintf(to, "\\%c", *text);
        } else {
            (void)fputc(*text, to);
        }
    }
}

/* Writes one action of zsh: the first list that applies, else words. */
static void zsh_action(FILE *to, const struct places *places, unsigned which)
{
    if ((which & PLACE_COMMANDS) != 0) {
        (void)fputc('(', to);
        completion_print_names(to);
        (void)fputc(')', to);
    } else if ((which & PLACE_WORDS) != 0 && (which & PLACE_FILES) != 0) {
        (void)fprintf(to, "{compadd -- %s; %s_files}", places->words,
                      (which & PLACE_JOBS) != 0 ? "_bourse_jobs; " : "");
    } else if ((which & PLACE_WORDS) != 0) {
        (void)fprintf(to, "(%s)", places->words);
    } else if ((which & PLACE_JOBS) != 0) {
        (void)fputs((which & PLACE_FILES) != 0 ? "{_bourse_jobs; _files}" : "_bourse_jobs", to);
    } else if ((which & PLACE_ORDERS) != 0) {
        (void)fputs("_bourse_orders", to);
    } else if ((which & PLACE_PROGRAMS) != 0) {
        (void)fputs("{compadd -- ", to);
        completion_print_templates(to, " ");
        (void)fputs("; _command_names -e}", to);
    } else if ((which & PLACE_FILES) != 0) {
        (void)fputs("_files", to);
    } else if ((which & PLACE_FOLDERS) != 0) {
        (void)fputs("_files -/", to);
    } else {
        (void)fputc(' ', to); /* some word, which the table does not describe */
    }
}

static void zsh_option(FILE *to, const struct option_spec *option)
{
    bool repeats = strstr(option->help, "may be repeated") != NULL;
    if (option->letter == 0) {
        (void)fprintf(to, " '%s--%s[", repeats ? "*" : "", option->name);
    } else if (repeats) {
        (void)fprintf(to, " '*'{-%c,--%s}'[", option->letter, option->name);
    } else {
        (void)fprintf(to, " '(-%c --%s)'{-%c,--%s}'[", option->letter, option->name, option->letter,
                      option->name);
    }
    zsh_text(to, option->help);
    (void)fputc(']', to);
    if (option->argument != NULL) {
        struct places places = completion_value_places(option->argument);
        (void)fprintf(to, ":%s:", option->argument);
        zsh_action(to, &places, places.first);
    }
    (void)fputs("' \\\n", to);
}

static void zsh_command(FILE *to, const struct command *command)
{
    struct option_set set = command_options(command);
    struct places places = completion_places(command);
    (void)fprintf(to, "    '%s') _arguments -s -S%s \\\n", command->name,
                  (command->flags & COMMAND_STOPS_EARLY) != 0 ? " -A '-*'" : "");
    for (size_t i = 0; i < set.count; i++) {
        zsh_option(to, set.items[i]);
    }
    if (places.first != 0) {
        (void)fputs(" '1:word:", to);
        zsh_action(to, &places, places.first);
        (void)fputc('\'', to);
    }
    if (places.rest != 0) {
        (void)fputs(" '*:word:", to);
        zsh_action(to, &places, places.rest & ~(unsigned)PLACE_WORDS);
        (void)fputc('\'', to);
    }
    (void)fputs(" ;;\n", to);
}

void completion_write_zsh(FILE *to)
{
    size_t count = 0;
    const struct command *all = command_list(&count);
    (void)fputs(zsh_head, to);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(to, "        '%s:", all[i].name);
        zsh_text(to, all[i].summary);
        (void)fputs("'\n", to);
    }
    (void)fputs("    )\n"
                "    if ((CURRENT == 2)) && [[ $words[2] == -* ]]; then\n"
                "        compadd -- --help --version\n"
                "        return\n"
                "    elif ((CURRENT == 2)); then\n"
                "        _describe command names\n"
                "        return\n"
                "    fi\n"
                "    shift words\n"
                "    ((CURRENT--))\n"
                "    local command=$words[1]\n"
                "    if [[ $command == run && CURRENT -gt 2 && $words[2] == (",
                to);
    completion_print_templates(to, "|");
    (void)fputs(") ]]; then\n"
                "        command+=\" $words[2]\"\n"
                "        shift words\n"
                "        ((CURRENT--))\n"
                "    fi\n"
                "    case $command in\n",
                to);
    for (size_t i = 0; completion_command(i) != NULL; i++) {
        zsh_command(to, completion_command(i));
    }
    (void)fputs("    esac\n"
                "}\n"
                "if [ \"$funcstack[1]\" = _bourse ]; then _bourse \"$@\"; else compdef _bourse "
                "bourse; fi\n",
                to);
}
