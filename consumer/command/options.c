/* This file parses argv into an invocation, by the table of commands. */
#include "consumer/command/command.h"
#include "consumer/command/complain.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/moment.h"
#include "formats/units.h"

#include <assert.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_MAX = 64, FIRST_LONG = 256 };
static const char DIGITS[] = "0123456789";

static const struct option_spec *set_find(const struct option_set *set, const char *name)
{
    const size_t count = set->taken_count > 0 ? set->taken_count : set->count;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(set->items[i]->name, name) == 0) {
            return set->items[i];
        }
    }
    return NULL;
}

static bool is_online(const char *name)
{
    static const char *const names[] = {"market", "key", "timeout", "read-from"};
    bool is_one = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        is_one = is_one || strcmp(name, names[i]) == 0;
    }
    return is_one;
}

static void set_add(struct option_set *set, const struct option_spec *option)
{
    assert(set->count < OPTIONS_MAX);
    set->items[set->count++] = option;
}

struct option_set command_options(const struct command *command)
{
    static const struct option_list none = {.count = 0};
    const struct option_list *own = command->options != NULL ? command->options : &none;
    struct option_set set = {.count = 0};
    const size_t plain_count = own->count - own->expert_count;
    for (size_t i = 0; i < plain_count; i++) {
        if (own->items[i].help != NULL) {
            set_add(&set, &own->items[i]);
        }
    }
    size_t count = 0;
    const struct option_spec *common = command_common_options(&count);
    for (size_t i = 0; i < count; i++) {
        bool hidden = (command->flags & COMMAND_OFFLINE) != 0 && is_online(common[i].name);
        if (!hidden && set_find(&set, common[i].name) == NULL) {
            set_add(&set, &common[i]);
        }
    }
    for (size_t i = plain_count; i < own->count; i++) {
        set_add(&set, &own->items[i]);
    }
    set.expert_count = own->expert_count;
    set.taken_count = set.count;
    for (size_t i = 0; i < plain_count; i++) {
        if (own->items[i].help == NULL) {
            assert(set.taken_count < OPTIONS_MAX);
            set.items[set.taken_count++] = &own->items[i];
        }
    }
    return set;
}

bool command_takes(const struct command *command, const char *option)
{
    const struct option_set set = command_options(command);
    return set_find(&set, option) != NULL;
}

/* ---------------------------------------------------------------- parsing */

int command_unknown(struct invocation *invocation, const char *word)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    const struct command *all = command_list(&count);
    assert(count <= NAMES_MAX);
    if (word[0] == '-') {
        return complain(invocation, BOURSE_USAGE,
                        "'%s' stands before the command; options follow it: bourse COMMAND %s",
                        word, word);
    }
    for (size_t i = 0; i < count; i++) {
        names[i] = all[i].name;
    }
    const char *near = text_nearest(word, names, count);
    if (near != NULL) {
        return complain(invocation, BOURSE_USAGE, "no command '%s'; did you mean `bourse %s`?",
                        word, near);
    }
    return complain(invocation, BOURSE_USAGE, "no command '%s'; `bourse help` lists them", word);
}

static int unknown_option(struct invocation *invocation, const struct option_set *set,
                          const char *word)
{
    char bare[64];
    const char *names[OPTIONS_MAX];
    (void)snprintf(bare, sizeof bare, "%s", word + strspn(word, "-"));
    bare[strcspn(bare, "=")] = '\0';
    for (size_t i = 0; i < set->count; i++) {
        names[i] = set->items[i]->name;
    }
    if (strspn(word + 1, DIGITS) > 0) {
        return complain(invocation, BOURSE_USAGE, "'%s' is below zero; %s takes no such number",
                        word, invocation->command->name);
    }
    const char *near = strncmp(word, "--", 2) == 0 ? text_nearest(bare, names, set->count) : NULL;
    if (near != NULL && strcmp(near, bare) == 0) { /* getopt_long refused what follows "=" */
        return complain(invocation, BOURSE_USAGE, "%s --%s takes no value; leave out %s",
                        invocation->command->name, bare, word + strcspn(word, "="));
    }
    if (near != NULL) {
        return complain(invocation, BOURSE_USAGE, "%s has no option '--%s'; did you mean --%s?",
                        invocation->command->name, bare, near);
    }
    return complain(invocation, BOURSE_USAGE, "%s has no option '%s'; `bourse help %s` lists them",
                    invocation->command->name, word, invocation->command->name);
}

/* getopt_long reads these tables, which come from the table of commands. */
struct getopt_tables {
    char letters[3 * OPTIONS_MAX + 3];
    struct option longs[OPTIONS_MAX + 1];
};

static void fill_tables(const struct command *command, const struct option_set *set,
                        struct getopt_tables *tables)
{
    size_t length = 0;
    if ((command->flags & COMMAND_STOPS_EARLY) != 0) {
        tables->letters[length++] = '+';
    }
    tables->letters[length++] = ':'; /* ':' tells a missing argument from an unknown option */
    for (size_t i = 0; i < set->taken_count; i++) {
        const struct option_spec *option = set->items[i];
        tables->longs[i] =
            (struct option){.name = option->name,
                            .has_arg = option->argument != NULL ? required_argument : no_argument,
                            .val = FIRST_LONG + (int)i};
        if (option->letter != 0) {
            tables->letters[length++] = option->letter;
            if (option->argument != NULL) {
                tables->letters[length++] = ':';
            }
        }
    }
    tables->letters[length] = '\0';
    tables->longs[set->taken_count] = (struct option){.name = NULL};
}

static const struct option_spec *option_of(const struct option_set *set, int value)
{
    if (value >= FIRST_LONG) {
        return set->items[value - FIRST_LONG];
    }
    for (size_t i = 0; i < set->count; i++) {
        if (set->items[i]->letter == value && value != 0) {
            return set->items[i];
        }
    }
    return NULL;
}

/* Returns true when the value is an empty file name, most often from a shell variable that is not
 * set. */
static bool is_empty_name(const struct option_spec *option, const char *value)
{
    static const char *const files[] = {"DIR", "FILE", "IMAGE"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (option->argument != NULL && strcmp(option->argument, files[i]) == 0) {
            return value[0] == '\0';
        }
    }
    return false;
}

/* Returns the word that begins with a dash and a digit, which getopt_long takes for an option. */
static const char *number_of(int argc, char **argv, const char *begin)
{
    const char *found = begin;
    for (int i = argc - 1; i > 0; i--) {
        found = strncmp(argv[i], begin, 2) == 0 ? argv[i] : found;
    }
    return found;
}

static bool parse_options(struct invocation *invocation, int argc, char **argv, int *ret_status)
{
    struct option_set set = command_options(invocation->command);
    struct getopt_tables tables = {.letters = ""};
    fill_tables(invocation->command, &set, &tables);
    opterr = 0;
    optind = 0; /* with 0, glibc forgets the call before */
    int value;
    while ((value = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
        const struct option_spec *option = option_of(&set, value == ':' ? optopt : value);
        if (value == ':') {
            *ret_status = complain(invocation, BOURSE_USAGE, "--%s needs a value: %s",
                                   option != NULL ? option->name : "?",
                                   option != NULL ? option->argument : "");
            return false;
        }
        if (option == NULL) {
            char letter[] = {'-', (char)optopt, '\0'};
            const bool is_letter = optopt != 0 && optopt < FIRST_LONG;
            const char *word = !is_letter                       ? argv[optind - 1]
                               : strchr(DIGITS, optopt) != NULL ? number_of(argc, argv, letter)
                                                                : letter;
            *ret_status = unknown_option(invocation, &set, word);
            return false;
        }
        if (is_empty_name(option, optarg)) {
            *ret_status = complain(invocation, BOURSE_USAGE, "--%s is empty; it needs %s",
                                   option->name, option->argument);
            return false;
        }
        if (invocation->given_count == GIVEN_MAX) {
            *ret_status = complain(invocation, BOURSE_USAGE,
                                   "the command line has more than %d options", GIVEN_MAX);
            return false;
        }
        invocation->given[invocation->given_count++] =
            (struct given){.name = option->name,
                           .value = option->argument != NULL ? optarg : "",
                           .letter = value < FIRST_LONG ? option->letter : (char)0};
    }
    invocation->words = argv + optind;
    invocation->word_count = argc - optind;
    return true;
}

/* Handles `run NAME`, where NAME is a template and no `--` stands before it. Options may follow
 * NAME. */
static bool parse_template(struct invocation *invocation, int *ret_status)
{
    bool may_be = strcmp(invocation->command->name, "run") == 0 && invocation->word_count > 0 &&
                  strcmp(invocation->words[-1], "--") != 0;
    const struct command *template = may_be ? command_template_find(invocation->words[0]) : NULL;
    if (template == NULL) {
        return true;
    }
    invocation->command = template;
    struct option_set set = command_options(template);
    for (size_t i = 0; i < invocation->given_count; i++) {
        if (set_find(&set, invocation->given[i].name) == NULL) {
            *ret_status = unknown_option(invocation, &set, invocation->given[i].name);
            return false;
        }
    }
    /* The first word is the template's name, or already the model that it runs. */
    const int skipped = command_is_model(invocation->words[0]) ? 1 : 0;
    return parse_options(invocation, invocation->word_count + skipped, invocation->words - skipped,
                         ret_status);
}

static bool check_words(struct invocation *invocation, int *ret_status)
{
    const struct command *command = invocation->command;
    if (invocation->word_count < command->words_min) {
        *ret_status = complain(invocation, BOURSE_USAGE, "%s needs %s; see `bourse help %s`",
                               command->name, command->arguments, command->name);
        return false;
    }
    if (command->words_max >= 0 && invocation->word_count > command->words_max) {
        *ret_status = complain(invocation, BOURSE_USAGE, "'%s' is one word too many for %s%s%s",
                               invocation->words[command->words_max], command->name,
                               command->arguments[0] != '\0' ? " " : "", command->arguments);
        return false;
    }
    return true;
}

static const char *environment(const char *name)
{
    return getenv(name);
}

static bool load_settings(struct invocation *invocation, int *ret_status)
{
    struct problem problem = {.text = ""};
    char user[SETTING_VALUE_SIZE + 16];
    if (!settings_folders(environment, geteuid() == 0, invocation->config_folder,
                          invocation->state_folder, &problem)) {
        *ret_status = complain(invocation, BOURSE_LOCAL, "%s", problem.text);
        return false;
    }
    (void)snprintf(user, sizeof user, "%s/config.yaml", invocation->config_folder);
    struct settings_sources sources = {.environment = environment,
                                       .project = "./.bourse.yaml",
                                       .user = user,
                                       .system = "/etc/bourse/config.yaml",
                                       .state = invocation->state_folder,
                                       .config = invocation->config_folder};
    bool own_key = false; /* verify has a --key of its own */
    const struct option_list *own = invocation->command->options;
    for (size_t i = 0; own != NULL && i < own->count; i++) {
        own_key = own_key || strcmp(own->items[i].name, "key") == 0;
    }
    for (int i = 0; i < SETTING_COUNT; i++) {
        bool skip = i == SETTING_KEY && own_key;
        sources.flags[i] =
            skip ? NULL : option_text(invocation, settings_name((enum setting)i), NULL);
    }
    if (!settings_load(&sources, &invocation->settings, &problem)) {
        *ret_status = complain(invocation, BOURSE_USAGE, "%s", problem.text);
        return false;
    }
    const char *color = invocation->settings.items[SETTING_COLOR].value;
    const char *none = getenv("NO_COLOR");
    bool automatic = isatty(STDOUT_FILENO) && (none == NULL || none[0] == '\0');
    invocation->color = strcmp(color, "always") == 0 || (strcmp(color, "auto") == 0 && automatic);
    return true;
}

/* Returns true when an argument before `--` is --json. Errors of the parser must know this before
 * the options are parsed. */
static bool asks_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            return true;
        }
    }
    return false;
}

bool command_parse(struct invocation *invocation, int argc, char **argv, int *ret_status)
{
    invocation->json = asks_json(argc, argv);
    if (argc < 2) {
        command_print_help(stderr, NULL);
        *ret_status = BOURSE_USAGE;
        return false;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        word = "help";
    } else if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        word = "version";
    }
    invocation->command = command_find(word);
    if (invocation->command == NULL) {
        *ret_status = command_unknown(invocation, word);
        return false;
    }
    if (!parse_options(invocation, argc - 1, argv + 1, ret_status) ||
        !parse_template(invocation, ret_status)) {
        return false;
    }
    if (option_given(invocation, "help")) {
        command_print_help(stdout, invocation->command);
        *ret_status = BOURSE_OK;
        return false;
    }
    invocation->json = option_given(invocation, "json");
    invocation->quiet = option_given(invocation, "quiet");
    return check_words(invocation, ret_status) && load_settings(invocation, ret_status);
}

/* ---------------------------------------------------------------- values */

bool option_given(const struct invocation *invocation, const char *name)
{
    return option_text(invocation, name, NULL) != NULL;
}

static const struct given *last_given(const struct invocation *invocation, const char *name)
{
    for (size_t i = invocation->given_count; i-- > 0;) {
        if (strcmp(invocation->given[i].name, name) == 0) {
            return &invocation->given[i];
        }
    }
    return NULL;
}

const char *option_text(const struct invocation *invocation, const char *name, const char *fallback)
{
    const struct given *given = last_given(invocation, name);
    return given != NULL ? given->value : fallback;
}

/* A message names an option as its user wrote it: -n or --limit. */
struct written {
    char text[64];
};

static struct written as_written(const struct invocation *invocation, const char *name)
{
    const struct given *given = last_given(invocation, name);
    struct written written;
    if (given != NULL && given->letter != 0) {
        (void)snprintf(written.text, sizeof written.text, "-%c", given->letter);
    } else {
        (void)snprintf(written.text, sizeof written.text, "--%s", name);
    }
    return written;
}

static bool wrong_value(struct invocation *invocation, const char *name, enum units_kind kind,
                        enum units_status status, const char *text)
{
    char why[256];
    units_explain(kind, status, text, why, sizeof why);
    (void)complain(invocation, BOURSE_USAGE, "%s: %s", as_written(invocation, name).text, why);
    return false;
}

bool option_money(struct invocation *invocation, const char *name, int64_t *ret_micro)
{
    const char *text = option_text(invocation, name, NULL);
    if (text == NULL) {
        return true;
    }
    int64_t micro = 0;
    enum units_status status = units_money(text, &micro);
    if (status != UNITS_OK) {
        return wrong_value(invocation, name, UNITS_MONEY, status, text);
    }
    if (micro < 0) {
        (void)complain(invocation, BOURSE_USAGE, "%s: '%s' is below zero",
                       as_written(invocation, name).text, text);
        return false;
    }
    *ret_micro = micro;
    return true;
}

/* Reads a duration that is at least `least_ns` and a multiple of it. `step` is `least_ns` as a text
 * for messages. */
static bool read_duration(struct invocation *invocation, const char *name, int64_t least_ns,
                          const char *step, int64_t *ret_ns)
{
    const char *text = option_text(invocation, name, NULL);
    if (text == NULL) {
        return true;
    }
    int64_t ns = 0;
    enum units_status status = units_duration(text, &ns);
    if (status != UNITS_OK) {
        return wrong_value(invocation, name, UNITS_DURATION, status, text);
    }
    if (ns < least_ns) {
        (void)complain(invocation, BOURSE_USAGE, "%s: '%s' is less than %s",
                       as_written(invocation, name).text, text, step);
        return false;
    }
    if (ns % least_ns != 0) {
        (void)complain(invocation, BOURSE_USAGE,
                       "%s: '%s' is finer than the smallest step here, %s",
                       as_written(invocation, name).text, text, step);
        return false;
    }
    *ret_ns = ns;
    return true;
}

bool option_duration_ns(struct invocation *invocation, const char *name, int64_t *ret_ns)
{
    return read_duration(invocation, name, 1, "1ns", ret_ns);
}

bool option_duration_ms(struct invocation *invocation, const char *name, int64_t *ret_ms)
{
    int64_t ns = 0;
    if (!read_duration(invocation, name, NS_PER_MS, "1ms", &ns)) {
        return false;
    }
    *ret_ms = option_given(invocation, name) ? ns / NS_PER_MS : *ret_ms;
    return true;
}

bool option_end(struct invocation *invocation, const char *name, int64_t *ret_for_ms,
                int64_t *ret_at_ms)
{
    const char *text = option_text(invocation, name, NULL);
    int64_t number = 0;
    if (text == NULL) {
        return true;
    }
    if (moment_is_meant(text)) {
        if (!moment_read(text, &number)) {
            (void)complain(invocation, BOURSE_USAGE, "%s: '%s' is no moment; " MOMENT_HELP,
                           as_written(invocation, name).text, text);
            return false;
        }
        *ret_for_ms = 0;
        *ret_at_ms = number;
        return true;
    }
    if (units_duration(text, &number) == UNITS_MALFORMED) {
        (void)complain(invocation, BOURSE_USAGE,
                       "%s: '%s' is neither a time from now, as in 2h, nor a moment; " MOMENT_HELP,
                       as_written(invocation, name).text, text);
        return false;
    }
    if (!option_duration_ms(invocation, name, ret_for_ms)) {
        return false;
    }
    *ret_at_ms = 0;
    return true;
}

bool option_count(struct invocation *invocation, const char *name, int64_t least, int64_t most,
                  int64_t *ret)
{
    const char *text = option_text(invocation, name, NULL);
    if (text == NULL) {
        return true;
    }
    int64_t count = 0;
    enum units_status status = units_count(text, &count);
    const bool is_negative =
        text[0] == '-' && text[1] != '\0' && strspn(text + 1, DIGITS) == strlen(text + 1);
    if (status != UNITS_OK && !is_negative) {
        return wrong_value(invocation, name, UNITS_COUNT, status, text);
    }
    if (is_negative || count < least || count > most) {
        (void)complain(invocation, BOURSE_USAGE, "%s: %s is outside %lld to %lld",
                       as_written(invocation, name).text, text, (long long)least, (long long)most);
        return false;
    }
    *ret = count;
    return true;
}
