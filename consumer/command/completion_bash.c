/* This file writes the completion script of bash. */
#include "consumer/command/command.h"
#include "consumer/command/completion.h"

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
        completion_print_names(to);
        (void)fputs("' ", to);
    }
}

static void bash_command(FILE *to, const struct command *command)
{
    struct option_set set = command_options(command);
    struct places places = completion_places(command);
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
    struct places places = completion_places(command);
    if ((places.first & (PLACE_WORDS | PLACE_COMMANDS)) != 0) {
        (void)fprintf(to, "        '%s 0') ", command->name);
        bash_words(to, &places);
        (void)fputs(";;\n", to);
    } else if ((command->flags & COMMAND_STOPS_EARLY) != 0) {
        (void)fprintf(to, "        '%s 0') words='", command->name);
        completion_print_templates(to, " ");
        (void)fputs("' ;;\n", to);
    }
}

static void bash_values(FILE *to, const struct command *command)
{
    struct option_set set = command_options(command);
    for (size_t i = 0; i < set.count; i++) {
        const struct option_spec *option = set.items[i];
        struct places places = option->argument != NULL ? completion_value_places(option->argument)
                                                        : (struct places){0};
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

void completion_write_bash(FILE *to)
{
    size_t template_count = 0;
    const struct command *template = command_templates(&template_count);
    (void)fputs(bash_head, to);
    for (size_t i = 0; completion_command(i) != NULL; i++) {
        bash_command(to, completion_command(i));
    }
    (void)fputs(bash_middle, to);
    completion_print_names(to);
    (void)fputs(bash_loop, to);
    for (size_t i = 0; i < template_count; i++) {
        (void)fprintf(to, "%s'%s'", i > 0 ? " | " : "", template[i].name);
    }
    (void)fputs(") command+=\" $word\" place=0; _bourse_table ;;\n            esac\n", to);
    (void)fputs(bash_tail, to);
    for (size_t i = 0; completion_command(i) != NULL; i++) {
        bash_values(to, completion_command(i));
    }
    (void)fputs(bash_places, to);
    for (size_t i = 0; completion_command(i) != NULL; i++) {
        bash_literals(to, completion_command(i));
    }
    (void)fputs(bash_end, to);
}
