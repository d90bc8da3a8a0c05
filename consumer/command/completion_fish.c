/* This file writes the completion script of fish. */
#include "consumer/command/command.h"
#include "consumer/command/completion.h"

static const char fish_head[] =
    "# fish completion of bourse, written by `bourse completion fish`\n"
    "function __bourse_at --description 'this is the command'\n"
    "    set -l words (commandline -opc)\n"
    "    set -l command $words[2]\n"
    "    if test (count $words) -ge 3; and contains -- \"$words[2] $words[3]\" "
    "$__bourse_templates\n"
    "        set command \"$words[2] $words[3]\"\n"
    "    end\n"
    "    test \"$command\" = \"$argv\"\n"
    "end\n"
    "function __bourse_first --description 'the command itself is due'\n"
    "    test (count (commandline -opc)) -eq 1\n"
    "end\n"
    "function __bourse_jobs\n"
    "    echo last\n"
    "    bourse ps --quiet --timeout 1s 2>/dev/null </dev/null\n"
    "end\n"
    "function __bourse_orders\n"
    "    bourse order list --quiet --timeout 1s 2>/dev/null </dev/null\n"
    "end\n"
    "complete -c bourse -f\n"
    "complete -c bourse -n __bourse_first -l help -s h -d 'what there is'\n"
    "complete -c bourse -n __bourse_first -l version -s V -d 'print the version'\n";

static void fish_text(FILE *to, const char *text)
{
    (void)fputc('\'', to);
    for (; *text != '\0'; text++) {
        (void)fprintf(to, *text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    }
    (void)fputc('\'', to);
}

static void fish_offer(FILE *to, const struct places *places, unsigned which)
{
    (void)fputs((which & PLACE_FILES) != 0 ? " -F" : " -f", to); /* without -f, fish offers files */
    if ((which & ~(unsigned)PLACE_FILES) != 0) {
        (void)fputs(" -a '", to);
        if ((which & PLACE_COMMANDS) != 0) {
            completion_print_names(to);
        }
        if ((which & PLACE_PROGRAMS) != 0) {
            completion_print_templates(to, " ");
        }
        (void)fprintf(to, "%s%s%s%s%s'", (which & PLACE_WORDS) != 0 ? places->words : "",
                      (which & PLACE_PROGRAMS) != 0 ? " (__fish_complete_command)" : "",
                      (which & PLACE_FOLDERS) != 0 ? " (__fish_complete_directories)" : "",
                      (which & PLACE_JOBS) != 0 ? " (__bourse_jobs)" : "",
                      (which & PLACE_ORDERS) != 0 ? " (__bourse_orders)" : "");
    }
}

static void fish_command(FILE *to, const struct command *command)
{
    struct option_set set = command_options(command);
    struct places places = completion_places(command);
    if (command_find(command->name) != NULL) {
        (void)fprintf(to, "complete -c bourse -n __bourse_first -a %s -d ", command->name);
        fish_text(to, command->summary);
        (void)fputc('\n', to);
    }
    for (size_t i = 0; i < set.count; i++) {
        const struct option_spec *option = set.items[i];
        (void)fprintf(to, "complete -c bourse -n '__bourse_at %s' -l %s", command->name,
                      option->name);
        if (option->letter != 0) {
            (void)fprintf(to, " -s %c", option->letter);
        }
        if (option->argument != NULL) {
            struct places value = completion_value_places(option->argument);
            (void)fputs(" -r", to);
            fish_offer(to, &value, value.first);
        }
        (void)fputs(" -d ", to);
        fish_text(to, option->help);
        (void)fputc('\n', to);
    }
    unsigned which = places.first | places.rest;
    if (which != 0) {
        (void)fprintf(to, "complete -c bourse -n '__bourse_at %s'", command->name);
        fish_offer(to, &places, which);
        (void)fputc('\n', to);
    }
}

void completion_write_fish(FILE *to)
{
    size_t count = 0;
    const struct command *all = command_templates(&count);
    (void)fputs("set -g __bourse_templates", to);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(to, " '%s'", all[i].name);
    }
    (void)fputc('\n', to);
    (void)fputs(fish_head, to);
    for (size_t i = 0; completion_command(i) != NULL; i++) {
        fish_command(to, completion_command(i));
    }
}
