#include "runtime/completion.h"

#include <string.h>

/* Returns the possible values of an option, by its name. Other options take free values. */
static const char *words_of_value(const struct option *option)
{
    static const struct {
        const char *option, *words;
    } known[] = {{"dir", COMPLETION_FOLDERS}, {"market", COMPLETION_FOLDERS},
                 {"config", "files"},         {"head", "files"},
                 {"checkpoint", "files"},     {"log", "error warning info debug"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].option, option->name) == 0) {
            return known[i].words;
        }
    }
    return "";
}

static bool is_folders(const char *words)
{
    return strcmp(words, COMPLETION_FOLDERS) == 0;
}

static bool is_files(const char *words)
{
    return strcmp(words, "files") == 0;
}

static bool has(const struct completion_command *command, const struct option *option)
{
    return (command->options >> option->val & 1) != 0;
}

/* Writes the shell name of the program's functions: "bourse_broker" for bourse-broker. */
static void put_name(FILE *to, const char *program)
{
    for (; *program != '\0'; program++) {
        (void)fputc(*program == '-' ? '_' : *program, to);
    }
}

static void put_commands(FILE *to, const struct completion_program *program)
{
    for (size_t i = 0; i < program->command_count; i++) {
        (void)fprintf(to, "%s%s", i > 0 ? " " : "", program->commands[i].name);
    }
}

/* ---------------------------------------------------------------- bash */

static void bash_offer(FILE *to, const char *words)
{
    if (is_folders(words) || is_files(words)) {
        (void)fprintf(to,
                      "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -%c -- "
                      "\"$cur\")",
                      is_files(words) ? 'f' : 'd');
    } else if (*words != '\0') {
        (void)fprintf(to, "mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\")", words);
    }
}

static void bash_values(FILE *to, const struct completion_program *program)
{
    (void)fputs("    case $before in\n", to);
    for (const struct option *option = program->options; option->name != NULL; option++) {
        if (option->has_arg == required_argument) {
            (void)fprintf(to, "    --%s) ", option->name);
            bash_offer(to, words_of_value(option));
            (void)fputs(*words_of_value(option) != '\0' ? "; return ;;\n" : "return ;;\n", to);
        }
    }
    (void)fputs("    esac\n", to);
}

static void write_bash(FILE *to, const struct completion_program *program)
{
    (void)fprintf(to, "# bash completion of %s, written by `%s completion bash`\n_", program->name,
                  program->name);
    put_name(to, program->name);
    (void)fputs("() {\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} "
                "command=${COMP_WORDS[1]}\n"
                "    if [ \"$cur\" = = ]; then cur=''; elif [ \"$before\" = = ]; then "
                "before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
                "    COMPREPLY=()\n",
                to);
    bash_values(to, program);
    (void)fputs("    if [ \"$COMP_CWORD\" -eq 1 ] && [[ $cur != -* ]]; then\n"
                "        mapfile -t COMPREPLY < <(compgen -W '",
                to);
    put_commands(to, program);
    (void)fprintf(to,
                  "' -- \"$cur\")\n"
                  "        return\n"
                  "    fi\n"
                  "    [[ $command != -* ]] || command=%s\n"
                  "    case $command in\n",
                  program->standard);
    for (size_t i = 0; i < program->command_count; i++) {
        const struct completion_command *command = &program->commands[i];
        (void)fprintf(to, "    %s) if [[ $cur == -* ]]; then mapfile -t COMPREPLY < <(compgen -W '",
                      command->name);
        for (const struct option *option = program->options; option->name != NULL; option++) {
            if (has(command, option)) {
                (void)fprintf(to, "--%s ", option->name);
            }
        }
        (void)fputs("' -- \"$cur\")", to);
        if (command->words != NULL) {
            (void)fputs("; else ", to);
            bash_offer(to, command->words);
        }
        (void)fputs("; fi ;;\n", to);
    }
    (void)fputs("    esac\n}\ncomplete -F _", to);
    put_name(to, program->name);
    (void)fprintf(to, " %s\n", program->name);
}

/* ---------------------------------------------------------------- zsh */

static void zsh_action(FILE *to, const char *words)
{
    if (is_folders(words) || is_files(words)) {
        (void)fprintf(to, "_files%s", is_files(words) ? "" : " -/");
    } else {
        (void)fprintf(to, *words != '\0' ? "(%s)" : " %s", words);
    }
}

static void write_zsh(FILE *to, const struct completion_program *program)
{
    (void)fprintf(to,
                  "#compdef %s\n"
                  "# zsh completion of %s, written by `%s completion zsh`\n_",
                  program->name, program->name, program->name);
    put_name(to, program->name);
    (void)fprintf(to,
                  "() {\n"
                  "    local command=%s\n"
                  "    if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
                  "        compadd -- ",
                  program->standard);
    put_commands(to, program);
    (void)fputs("\n"
                "        return\n"
                "    fi\n"
                "    if [[ $words[2] != -* ]]; then\n"
                "        command=$words[2]\n"
                "        shift words\n"
                "        ((CURRENT--))\n"
                "    fi\n"
                "    case $command in\n",
                to);
    for (size_t i = 0; i < program->command_count; i++) {
        const struct completion_command *command = &program->commands[i];
        (void)fprintf(to, "    %s) _arguments -S", command->name);
        for (const struct option *option = program->options; option->name != NULL; option++) {
            if (!has(command, option)) {
                continue;
            }
            (void)fprintf(to, " \\\n        '--%s", option->name);
            if (option->has_arg == required_argument) {
                (void)fputs(":value:", to);
                zsh_action(to, words_of_value(option));
            }
            (void)fputc('\'', to);
        }
        if (command->words != NULL) {
            (void)fputs(" \\\n        '*:word:", to);
            zsh_action(to, command->words);
            (void)fputc('\'', to);
        }
        (void)fputs(" ;;\n", to);
    }
    (void)fputs("    esac\n}\nif [ \"$funcstack[1]\" = _", to);
    put_name(to, program->name);
    (void)fputs(" ]; then _", to);
    put_name(to, program->name);
    (void)fputs(" \"$@\"; else compdef _", to);
    put_name(to, program->name);
    (void)fprintf(to, " %s; fi\n", program->name);
}

/* ---------------------------------------------------------------- fish */

static void fish_offer(FILE *to, const char *words)
{
    (void)fputs(is_files(words) ? " -F" : " -f", to); /* otherwise the shell mixes in files */
    if (!is_files(words) && *words != '\0') {
        (void)fprintf(to, " -a '%s'", is_folders(words) ? "(__fish_complete_directories)" : words);
    }
}

/* Writes the beginning of a rule. The caller ends its condition with names of commands and a
 * quote. */
static void fish_at(FILE *to, const struct completion_program *program)
{
    (void)fprintf(to, "complete -c %s -n '__", program->name);
    put_name(to, program->name);
    (void)fputs("_at", to);
}

static void write_fish(FILE *to, const struct completion_program *program)
{
    (void)fprintf(to, "# fish completion of %s, written by `%s completion fish`\nfunction __",
                  program->name, program->name);
    put_name(to, program->name);
    (void)fprintf(to,
                  "_at --description 'this is one of these commands'\n"
                  "    set -l words (commandline -opc)\n"
                  "    set -l command %s\n"
                  "    if test (count $words) -ge 2; and not string match -q -- '-*' $words[2]\n"
                  "        set command $words[2]\n"
                  "    end\n"
                  "    contains -- $command $argv\n"
                  "end\n"
                  "complete -c %s -f\n"
                  "complete -c %s -n 'test (count (commandline -opc)) -eq 1' -a '",
                  program->standard, program->name, program->name);
    put_commands(to, program);
    (void)fputs("'\n", to);
    for (const struct option *option = program->options; option->name != NULL; option++) {
        fish_at(to, program);
        for (size_t i = 0; i < program->command_count; i++) {
            if (has(&program->commands[i], option)) {
                (void)fprintf(to, " %s", program->commands[i].name);
            }
        }
        (void)fprintf(to, "' -l %s", option->name);
        if (option->has_arg == required_argument) {
            (void)fputs(" -r", to);
            fish_offer(to, words_of_value(option));
        }
        (void)fputc('\n', to);
    }
    for (size_t i = 0; i < program->command_count; i++) {
        if (program->commands[i].words != NULL) {
            fish_at(to, program);
            (void)fprintf(to, " %s'", program->commands[i].name);
            fish_offer(to, program->commands[i].words);
            (void)fputc('\n', to);
        }
    }
}

bool completion_for(FILE *to, const char *shell, const struct completion_program *program)
{
    static const struct {
        const char *shell;
        void (*write)(FILE *to, const struct completion_program *program);
    } shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shells[i].shell, shell) == 0) {
            shells[i].write(to, program);
            return true;
        }
    }
    return false;
}
