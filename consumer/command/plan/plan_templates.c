/* This file runs `plan --templates`, which lists the templates, or the parameters of the
 * named template. */
#include "consumer/command/plan/work.h"

#include "consumer/command/show.h"
#include "planner/templates/template_list.h"

#include <inttypes.h>
#include <string.h>

/* Writes "1 to 64", or the allowed words. */
static void write_range(const struct template_parameter *parameter, char *ret_text, size_t capacity)
{
    if (parameter->choices == NULL) {
        (void)snprintf(ret_text, capacity, "%" PRId64 " to %" PRId64, parameter->least,
                       parameter->most);
        return;
    }
    ret_text[0] = '\0';
    for (int64_t i = 0; i <= parameter->most; i++) {
        size_t used = strlen(ret_text);
        (void)snprintf(ret_text + used, capacity - used, "%s%s", i > 0 ? ", " : "",
                       parameter->choices[i]);
    }
}

static json_t *json_parameter(const struct template *template, size_t index)
{
    const struct template_parameter *parameter = &template->parameters[index];
    char usual[TEMPLATE_VALUE_SIZE];
    template_write(template, index, parameter->usual, usual);
    json_t *value =
        json_pack("{s:s, s:s, s:s, s:b}", "name", parameter->name, "meaning", parameter->meaning,
                  "usual", usual, "batch", (int)parameter->is_batch);
    if (parameter->choices == NULL) {
        (void)json_object_set_new(value, "least", json_integer((json_int_t)parameter->least));
        (void)json_object_set_new(value, "most", json_integer((json_int_t)parameter->most));
        return value;
    }
    json_t *choices = json_array();
    for (int64_t i = 0; i <= parameter->most; i++) {
        (void)json_array_append_new(choices, json_string(parameter->choices[i]));
    }
    (void)json_object_set_new(value, "choices", choices);
    return value;
}

static json_t *json_template(const struct template *template)
{
    json_t *parameters = json_array();
    json_t *presets = json_array();
    for (size_t i = 0; i < template_parameters(template); i++) {
        (void)json_array_append_new(parameters, json_parameter(template, i));
    }
    for (const struct template_preset *preset = template->presets;
         preset != NULL && preset->name != NULL; preset++) {
        (void)json_array_append_new(presets, json_string(preset->name));
    }
    return json_pack("{s:s, s:s, s:o, s:o}", "name", template->name, "meaning", template->meaning,
                     "parameters", parameters, "presets", presets);
}

static void show_parameters(const struct invocation *invocation, const struct template *template)
{
    static const char *const titles[] = {"PARAMETER", "USUAL", "RANGE", "MEANING"};
    struct grid table = grid_of(4, titles, "lrll");
    for (size_t i = 0; i < template_parameters(template); i++) {
        const struct template_parameter *parameter = &template->parameters[i];
        char usual[TEMPLATE_VALUE_SIZE];
        char range[CELL_SIZE];
        char meaning[CELL_SIZE];
        template_write(template, i, parameter->usual, usual);
        write_range(parameter, range, sizeof range);
        (void)snprintf(meaning, sizeof meaning, "%s%s", parameter->meaning,
                       parameter->is_batch ? " (the batch)" : "");
        const char *cells[] = {parameter->name, usual, range, meaning};
        grid_add(&table, cells);
    }
    (void)printf("%s: %s\n\n", template->name, template->meaning);
    grid_print(&table, stdout, invocation->color);
    grid_fini(&table);
    for (const struct template_preset *preset = template->presets;
         preset != NULL && preset->name != NULL; preset++) {
        (void)printf("%s%s", preset == template->presets ? "\n" TEMPLATE_PRESET ": " : ", ",
                     preset->name);
    }
    (void)printf("%s\n--set NAME=VALUE sets a parameter; docs/templates.md has the arithmetic.\n",
                 template->presets != NULL ? "\n" : "");
}

static void show_templates(const struct invocation *invocation)
{
    static const char *const titles[] = {"TEMPLATE", "WHAT"};
    struct grid table = grid_of(2, titles, "ll");
    for (size_t i = 0; i < template_count(); i++) {
        const char *cells[] = {template_at(i)->name, template_at(i)->meaning};
        if (invocation->quiet) {
            (void)puts(template_at(i)->name);
        }
        grid_add(&table, cells);
    }
    if (!invocation->quiet) {
        grid_print(&table, stdout, invocation->color);
        (void)printf("`bourse plan --templates NAME` shows the parameters of a template.\n");
    }
    grid_fini(&table);
}

int plan_templates(struct invocation *invocation)
{
    const char *name = invocation->word_count > 0 ? invocation->words[0] : NULL;
    const struct template *template = name != NULL ? template_named(name) : NULL;
    if (name != NULL && template == NULL) {
        return complain(invocation, BOURSE_USAGE,
                        "there is no template \"%s\"; `bourse plan --templates` lists them",
                        cell_plain(name));
    }
    if (invocation->json) {
        json_t *list = json_array();
        for (size_t i = 0; i < template_count(); i++) {
            if (template == NULL || template == template_at(i)) {
                (void)json_array_append_new(list, json_template(template_at(i)));
            }
        }
        return json_print(json_pack("{s:o}", "templates", list), BOURSE_OK);
    }
    if (template != NULL) {
        show_parameters(invocation, template);
    } else {
        show_templates(invocation);
    }
    return BOURSE_OK;
}
