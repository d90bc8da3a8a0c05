/* This file writes shell completions from the table of commands. */
#include "consumer/command/command.h"

#include "consumer/command/show.h"
#include "planner/cost/catalogue.h"
#include "planner/cost/operations.h"
#include "planner/templates/template_list.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

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

static unsigned place_of(const char *label, size_t length)
{
    static const struct {
        const char *label;
        unsigned place;
    } known[] = {
        {"FILE", PLACE_FILES},       {"PATH", PLACE_FILES},       {"TAR", PLACE_FILES},
        {"DIR", PLACE_FOLDERS},      {"JOB", PLACE_JOBS},         {"ORDER", PLACE_ORDERS},
        {"COMMAND", PLACE_COMMANDS}, {"PROGRAM", PLACE_PROGRAMS}, {"ARGUMENT", PLACE_FILES}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].label) == length && strncmp(known[i].label, label, length) == 0) {
            return known[i].place;
        }
    }
    if (length > 4 && strncmp(label + length - 4, ".npy", 4) == 0) {
        return PLACE_FILES;
    }
    return islower((unsigned char)label[0]) ? PLACE_WORDS : 0;
}

static void add_word(struct places *places, const char *word, size_t length)
{
    size_t used = strlen(places->words);
    (void)snprintf(places->words + used, sizeof places->words - used, "%s%.*s", used > 0 ? " " : "",
                   (int)length, word);
}

/* Adds the words of a label that this program knows. Returns false for any other label. */
static bool add_known(struct places *places, const char *label, size_t length)
{
    const bool is_template = strncmp(label, "TEMPLATE", length) == 0 && length == 8;
    const bool is_device = strncmp(label, "ID", length) == 0 && length == 2;
    for (size_t i = 0; is_template && i < template_count(); i++) {
        add_word(places, template_at(i)->name, strlen(template_at(i)->name));
    }
    for (size_t i = 0; is_device && i < catalogue_count(); i++) {
        add_word(places, catalogue_at(i)->id, strlen(catalogue_at(i)->id));
    }
    return is_template || is_device;
}

/* The arguments of a command look like "mint ACCOUNT | halt", "JOB [INDEX]", "FILE|DIR ...". Each
 * alternative has a first word and later words. */
static struct places places_of(const struct command *command)
{
    struct places places = {.first = 0};
    bool is_first = true;
    const char *end_of_options = strstr(command->arguments, "-- ");
    for (const char *at = end_of_options != NULL ? end_of_options + strlen("-- ")
                                                 : command->arguments;
         *at != '\0';) {
        size_t length = strcspn(at, " []|");
        if (length == 0) {
            is_first = is_first || *at == '|';
            at++;
            continue;
        }
        bool repeats = strncmp(at, "...", length) == 0;
        bool is_known = add_known(&places, at, length);
        unsigned place = is_known           ? PLACE_WORDS
                         : !repeats         ? place_of(at, length)
                         : places.rest == 0 ? places.first
                                            : 0;
        if (place == PLACE_WORDS && !is_known) {
            add_word(&places, at, length);
        }
        places.first |= is_first ? place : 0;
        places.rest |= is_first ? 0 : place;
        is_first = false;
        at += length;
    }
    return places;
}

/* Returns the places of an option's value; some options take one of a few words. */
static struct places places_of_value(const char *label)
{
    if (strcmp(label, "WHEN") == 0) {
        return (struct places){.first = PLACE_WORDS, .words = "auto always never"};
    }
    if (strcmp(label, "ROLE") == 0) {
        return (struct places){.first = PLACE_WORDS,
                               .words = "consumer provider referee auditor risk operator"};
    }
    if (strcmp(label, "LEVEL") == 0) {
        return (struct places){.first = PLACE_WORDS, .words = "none cheap"};
    }
    if (strcmp(label, "TYPE") == 0) {
        return (struct places){.first = PLACE_WORDS,
                               .words = "limit ioc fok post-only all-or-none"};
    }
    if (strcmp(label, "OBJECTIVE") == 0) {
        return (struct places){.first = PLACE_WORDS, .words = "time price energy value"};
    }
    if (strcmp(label, "SCHEDULER") == 0) {
        return (struct places){
            .first = PLACE_WORDS,
            .words =
                "auto exact heft peft cpop heft-best heft-few single all-best cluster improve"};
    }
    struct places places = {.first = place_of(label, strlen(label))};
    if (strcmp(label, "OPERATION") == 0) {
        places.first = PLACE_WORDS;
        for (int i = 0; i < OPERATION_KINDS; i++) {
            const char *name = operation_name((enum operation_kind)i);
            add_word(&places, name, strlen(name));
        }
    }
    return places;
}

/* The index counts every command, then every template of `run`. */
static const struct command *command_at(size_t index)
{
    size_t count = 0;
    size_t template_count = 0;
    const struct command *all = command_list(&count);
    const struct command *more = command_templates(&template_count);
    return index < count                    ? &all[index]
           : index - count < template_count ? &more[index - count]
                                            : NULL;
}

/* These words follow `run` in place of a program. */
static void print_templates(FILE *to, const char *between)
{
    size_t count = 0;
    const struct command *all = command_templates(&count);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(to, "%s%s", i > 0 ? between : "", all[i].name + strlen("run "));
    }
}

static void print_names(FILE *to)
{
    size_t count = 0;
    const struct command *all = command_list(&count);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(to, "%s%s", i > 0 ? " " : "", all[i].name);
    }
}

/* ---------------------------------------------------------------- bash */

static const char bash_head[] =
    "# bash completion of bourse, written by `bourse completion bash`\n"
    "_bourse_ids() { \"$@\" --quiet --timeout 1s 2>/dev/null </dev/null; }\n"
    "_bourse_add() { mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(\"$@\"); }\n"
    "_bourse_programs() { compgen -c -- \"$1\" | sort -u; }\n"
    "_bourse_table() {\n"
    "    options='' takes='' first='' rest='' stops=''\n"
    "    case $command in\n";
static const char bash_middle[] =
    "    esac\n"
    "}\n"
    "_bourse() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} program=$1\n"
    "    local before=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local options takes first rest stops offer='' words='' ended='' place=0 skip=0 word name "
    "i given=()\n"
    "    if [ \"$cur\" = = ]; then cur=''; elif [ \"$before\" = = ]; then "
    "before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
    "    COMPREPLY=()\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ] && [[ $cur == -* ]]; then\n"
    "        _bourse_add compgen -W '--help --version' -- \"$cur\"\n"
    "        return\n"
    "    elif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        _bourse_add compgen -W '";
static const char bash_loop[] =
    "' -- \"$cur\"\n"
    "        return\n"
    "    fi\n"
    "    _bourse_table\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [ \"$skip\" = 1 ]; then\n"
    "            [ \"$word\" != = ] || continue\n"
    "            skip=0\n"
    "            case $name in -m | --market | -k | --key) given+=(\"$name\" \"$word\") ;; esac\n"
    "        elif [ -n \"$stops\" ] && [ \"$place\" -gt 0 ]; then\n"
    "            place=$((place + 1))\n"
    "        elif [ \"$word\" = -- ]; then\n"
    "            options='' takes='' ended=1\n"
    "        elif [[ \" $takes \" == *\" $word \"* ]]; then\n"
    "            skip=1 name=$word\n"
    "        elif [[ -z $options || $word != -* ]]; then\n"
    "            place=$((place + 1))\n"
    "            case \"$ended$command $word\" in\n"
    "            ";
/* The script tells options and their values from words by `takes`. `stops` says that options end at
 * the first word. */
static const char bash_tail[] =
    "        fi\n"
    "    done\n"
    "    if [ -n \"$stops\" ] && [ \"$place\" -gt 0 ]; then options=''; fi\n"
    "    if [ \"$skip\" = 1 ]; then\n"
    "        case \"$command $before\" in\n";
static const char bash_places[] = "        esac\n"
                                  "    elif [[ $cur == -* && -n $options ]]; then\n"
                                  "        words=$options\n"
                                  "    else\n"
                                  "        offer=$rest\n"
                                  "        [ \"$place\" -gt 0 ] || offer=$first\n"
                                  "        case \"$command $place\" in\n";
static const char bash_end[] =
    "        esac\n"
    "    fi\n"
    "    for word in $offer; do\n"
    "        case $word in\n"
    "        files) compopt -o filenames 2>/dev/null; _bourse_add compgen -f -- \"$cur\" ;;\n"
    "        folders) compopt -o filenames 2>/dev/null; _bourse_add compgen -d -- \"$cur\" ;;\n"
    "        programs) _bourse_add _bourse_programs \"$cur\" ;;\n"
    "        jobs) words+=\" last $(_bourse_ids \"$program\" ps \"${given[@]}\")\" ;;\n"
    "        orders) words+=\" $(_bourse_ids \"$program\" order list \"${given[@]}\")\" ;;\n"
    "        esac\n"
    "    done\n"
    "    _bourse_add compgen -W \"$words\" -- \"$cur\"\n"
    "}\n"
    "complete -F _bourse bourse\n";

/* Writes the names of lists, and literal words. */
static void bash_offer(FILE *to, const char *variable, unsigned places)
{
    (void)fprintf(to, "%s='%s%s%s%s%s' ", variable, (places & PLACE_FILES) != 0 ? "files " : "",
                  (places & PLACE_PROGRAMS) != 0 ? "programs " : "",
                  (places & PLACE_FOLDERS) != 0 ? "folders " : "",
                  (places & PLACE_JOBS) != 0 ? "jobs " : "",
                  (places & PLACE_ORDERS) != 0 ? "orders " : "");
}

static void bash_words(FILE *to, const struct places *places)
{
    if ((places->first & PLACE_WORDS) != 0) {
        (void)fprintf(to, "words='%s' ", places->words);
    } else if ((places->first & PLACE_COMMANDS) != 0) {
        (void)fputs("words='", to);
        print_names(to);
        (void)fputs("' ", to);
    }
}

static void bash_command(FILE *to, const struct command *command)
{
    struct option_set set = command_options(command);
    struct places places = places_of(command);
    (void)fprintf(to, "    '%s')\n        options='", command->name);
    for (size_t i = 0; i < set.count; i++) {
        (void)fprintf(to, "--%s ", set.items[i]->name);
    }
    (void)fputs("'\n        takes='", to);
    for (size_t i = 0; i < set.count; i++) {
        const struct option_spec *option = set.items[i];
        if (option->argument != NULL && option->letter != 0) {
            (void)fprintf(to, "-%c ", option->letter);
        }
        if (option->argument != NULL) {
            (void)fprintf(to, "--%s ", option->name);
        }
    }
    (void)fputs("'\n        ", to);
    bash_offer(to, "first", places.first);
    bash_offer(to, "rest", places.rest);
    (void)fprintf(to, "%s;;\n", (command->flags & COMMAND_STOPS_EARLY) != 0 ? "stops=1 " : "");
}

/* Writes the literal words of a command. They are offered for the first word only. */
static void bash_literals(FILE *to, const struct command *command)
{
    struct places places = places_of(command);
    if ((places.first & (PLACE_WORDS | PLACE_COMMANDS)) != 0) {
        (void)fprintf(to, "        '%s 0') ", command->name);
        bash_words(to, &places);
        (void)fputs(";;\n", to);
    } else if ((command->flags & COMMAND_STOPS_EARLY) != 0) {
        (void)fprintf(to, "        '%s 0') words='", command->name);
        print_templates(to, " ");
        (void)fputs("' ;;\n", to);
    }
}

static void bash_values(FILE *to, const struct command *command)
{
    struct option_set set = command_options(command);
    for (size_t i = 0; i < set.count; i++) {
        const struct option_spec *option = set.items[i];
        struct places places =
            option->argument != NULL ? places_of_value(option->argument) : (struct places){0};
        if (places.first == 0) {
            continue;
        }
        (void)fprintf(to, "        '%s --%s'", command->name, option->name);
        if (option->letter != 0) {
            (void)fprintf(to, " | '%s -%c'", command->name, option->letter);
        }
        (void)fputs(") ", to);
        bash_offer(to, "offer", places.first);
        bash_words(to, &places);
        (void)fputs(";;\n", to);
    }
}

static void write_bash(FILE *to)
{
    size_t template_count = 0;
    const struct command *template = command_templates(&template_count);
    (void)fputs(bash_head, to);
    for (size_t i = 0; command_at(i) != NULL; i++) {
        bash_command(to, command_at(i));
    }
    (void)fputs(bash_middle, to);
    print_names(to);
    (void)fputs(bash_loop, to);
    for (size_t i = 0; i < template_count; i++) {
        (void)fprintf(to, "%s'%s'", i > 0 ? " | " : "", template[i].name);
    }
    (void)fputs(") command+=\" $word\" place=0; _bourse_table ;;\n            esac\n", to);
    (void)fputs(bash_tail, to);
    for (size_t i = 0; command_at(i) != NULL; i++) {
        bash_values(to, command_at(i));
    }
    (void)fputs(bash_places, to);
    for (size_t i = 0; command_at(i) != NULL; i++) {
        bash_literals(to, command_at(i));
    }
    (void)fputs(bash_end, to);
}

/* ---------------------------------------------------------------- zsh */

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
        print_names(to);
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
        print_templates(to, " ");
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
        struct places places = places_of_value(option->argument);
        (void)fprintf(to, ":%s:", option->argument);
        zsh_action(to, &places, places.first);
    }
    (void)fputs("' \\\n", to);
}

static void zsh_command(FILE *to, const struct command *command)
{
    struct option_set set = command_options(command);
    struct places places = places_of(command);
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

static void write_zsh(FILE *to)
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
    print_templates(to, "|");
    (void)fputs(") ]]; then\n"
                "        command+=\" $words[2]\"\n"
                "        shift words\n"
                "        ((CURRENT--))\n"
                "    fi\n"
                "    case $command in\n",
                to);
    for (size_t i = 0; command_at(i) != NULL; i++) {
        zsh_command(to, command_at(i));
    }
    (void)fputs("    esac\n"
                "}\n"
                "if [ \"$funcstack[1]\" = _bourse ]; then _bourse \"$@\"; else compdef _bourse "
                "bourse; fi\n",
                to);
}

/* ---------------------------------------------------------------- fish */

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
            print_names(to);
        }
        if ((which & PLACE_PROGRAMS) != 0) {
            print_templates(to, " ");
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
    struct places places = places_of(command);
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
            struct places value = places_of_value(option->argument);
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

static void write_fish(FILE *to)
{
    size_t count = 0;
    const struct command *all = command_templates(&count);
    (void)fputs("set -g __bourse_templates", to);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(to, " '%s'", all[i].name);
    }
    (void)fputc('\n', to);
    (void)fputs(fish_head, to);
    for (size_t i = 0; command_at(i) != NULL; i++) {
        fish_command(to, command_at(i));
    }
}

/* ---------------------------------------------------------------- the command */

static bool write_script(FILE *to, const char *shell)
{
    static const struct {
        const char *shell;
        void (*write)(FILE *to);
    } shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shells[i].shell, shell) == 0) {
            shells[i].write(to);
            return true;
        }
    }
    return false;
}

int command_completion(struct invocation *invocation)
{
    const char *shell = invocation->words[0];
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    bool known = to != NULL && write_script(to, shell);
    if (to == NULL || fclose(to) != 0) {
        free(text);
        return complain(invocation, BOURSE_LOCAL, "out of memory");
    }
    int status = BOURSE_OK;
    if (!known) {
        status = complain(invocation, BOURSE_USAGE,
                          "no completion for '%s'; there is one for bash, zsh and fish", shell);
    } else if (invocation->json) {
        status = json_print(json_pack("{s:s, s:s}", "shell", shell, "script", text), BOURSE_OK);
    } else {
        (void)fputs(text, stdout);
    }
    free(text);
    return status;
}
