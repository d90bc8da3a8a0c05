#include "consumer/command/completion.h"

#include "consumer/command/show.h"
#include "planner/cost/catalogue.h"
#include "planner/cost/operations.h"
#include "planner/templates/template_list.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static unsigned place_of(const char *label, size_t length)
{
    static const struct {
        const char *label;
        unsigned place;
    } known[] = {
        {"FILE", PLACE_FILES},       {"PATH", PLACE_FILES},       {"IMAGE", PLACE_FILES},
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
struct places completion_places(const struct command *command)
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
struct places completion_value_places(const char *label)
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
    if (strcmp(label, "STATE") == 0) {
        return (struct places){.first = PLACE_WORDS,
                               .words = "open waiting running checking done failed cancelled"};
    }
    if (strcmp(label, "TYPE") == 0) {
        return (struct places){.first = PLACE_WORDS,
                               .words = "market limit ioc fok post-only all-or-none"};
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
const struct command *completion_command(size_t index)
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
void completion_print_templates(FILE *to, const char *between)
{
    size_t count = 0;
    const struct command *all = command_templates(&count);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(to, "%s%s", i > 0 ? between : "", all[i].name + strlen("run "));
    }
}

void completion_print_names(FILE *to)
{
    size_t count = 0;
    const struct command *all = command_list(&count);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(to, "%s%s", i > 0 ? " " : "", all[i].name);
    }
}

/* ---------------------------------------------------------------- the command */

static bool write_script(FILE *to, const char *shell)
{
    static const struct {
        const char *shell;
        void (*write)(FILE *to);
    } shells[] = {{"bash", completion_write_bash},
                  {"zsh", completion_write_zsh},
                  {"fish", completion_write_fish}};
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
