#include "planner/templates/template.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- parameters */

size_t template_parameters(const struct template *template)
{
    size_t count = 0;
    while (template->parameters[count].name != NULL) {
        count++;
    }
    assert(count <= TEMPLATE_PARAMETERS);
    return count;
}

size_t template_parameter(const struct template *template, const char *name)
{
    for (size_t i = 0; template->parameters[i].name != NULL; i++) {
        if (strcmp(template->parameters[i].name, name) == 0) {
            return i;
        }
    }
    return TEMPLATE_NO_PARAMETER;
}

size_t template_batch(const struct template *template)
{
    for (size_t i = 0; template->parameters[i].name != NULL; i++) {
        if (template->parameters[i].is_batch) {
            return i;
        }
    }
    return TEMPLATE_NO_PARAMETER;
}

size_t template_replicas(const struct template *template)
{
    for (size_t i = 0; template->parameters[i].name != NULL; i++) {
        if (template->parameters[i].is_replicas) {
            return i;
        }
    }
    return TEMPLATE_NO_PARAMETER;
}

int64_t template_grain(const struct template *template)
{
    size_t batch = template_batch(template);
    int64_t grain = batch == TEMPLATE_NO_PARAMETER ? 1 : template->parameters[batch].grain;
    return grain > 1 ? grain : 1;
}

void template_begin(const struct template *template, int64_t *ret_values)
{
    for (size_t i = 0; template->parameters[i].name != NULL; i++) {
        ret_values[i] = template->parameters[i].usual;
    }
}

void template_write(const struct template *template, size_t index, int64_t value,
                    char ret_text[TEMPLATE_VALUE_SIZE])
{
    const struct template_parameter *parameter = &template->parameters[index];
    assert(value >= parameter->least && value <= parameter->most);
    if (parameter->choices != NULL) {
        (void)snprintf(ret_text, TEMPLATE_VALUE_SIZE, "%s", parameter->choices[value]);
    } else {
        (void)snprintf(ret_text, TEMPLATE_VALUE_SIZE, "%" PRId64, value);
    }
}

/* ---------------------------------------------------------------- values from text */

/* A list of names, one after the other, as far as there is room. */
struct listing {
    char text[320];
    size_t length;
};

static void list(struct listing *listing, const char *name)
{
    size_t room = sizeof listing->text - listing->length;
    int wrote = snprintf(listing->text + listing->length, room, "%s%s",
                         listing->length == 0 ? "" : ", ", name);
    if (wrote > 0 && (size_t)wrote < room) {
        listing->length += (size_t)wrote;
    } else {
        listing->text[listing->length] = '\0';
    }
}

/* Reads digits after an optional minus sign. A number beyond int64 is refused. */
static bool read_number(const char *text, int64_t *ret_value)
{
    bool is_negative = text[0] == '-';
    int64_t value = 0;
    const char *digit = text + is_negative;
    if (*digit == '\0') {
        return false;
    }
    for (; *digit != '\0'; digit++) {
        if (*digit < '0' || *digit > '9' || !checked_mul(value, 10, &value) ||
            !checked_add(value, *digit - '0', &value)) {
            return false;
        }
    }
    *ret_value = is_negative ? -value : value;
    return true;
}

static bool set_number(const struct template_parameter *parameter, const char *text,
                       int64_t *ret_value, struct problem *problem)
{
    int64_t value = 0;
    if (!read_number(text, &value) || value < parameter->least || value > parameter->most) {
        problem_set(problem, "%s is a whole number, %" PRId64 " to %" PRId64, parameter->name,
                    parameter->least, parameter->most);
        return false;
    }
    *ret_value = value;
    return true;
}

static bool set_choice(const struct template_parameter *parameter, const char *text,
                       int64_t *ret_value, struct problem *problem)
{
    struct listing listing = {.length = 0};
    for (int64_t i = 0; i <= parameter->most; i++) {
        if (strcmp(parameter->choices[i], text) == 0) {
            *ret_value = i;
            return true;
        }
        list(&listing, parameter->choices[i]);
    }
    problem_set(problem, "%s is one of: %s", parameter->name, listing.text);
    return false;
}

static bool set_preset(const struct template *template, const char *text, int64_t *values,
                       struct problem *problem)
{
    struct listing listing = {.length = 0};
    const struct template_preset *preset = template->presets;
    for (; preset->name != NULL; preset++) {
        if (strcmp(preset->name, text) == 0) {
            for (const struct template_setting *s = preset->settings; s->name != NULL; s++) {
                values[template_parameter(template, s->name)] = s->value;
            }
            return true;
        }
        list(&listing, preset->name);
    }
    problem_set(problem, TEMPLATE_PRESET " is one of: %s", listing.text);
    return false;
}

bool template_set(const struct template *template, const char *name, const char *text,
                  int64_t *values, struct problem *ret_problem)
{
    if (template->presets != NULL && strcmp(name, TEMPLATE_PRESET) == 0) {
        return set_preset(template, text, values, ret_problem);
    }
    size_t index = template_parameter(template, name);
    if (index == TEMPLATE_NO_PARAMETER) {
        struct listing listing = {.length = 0};
        for (size_t i = 0; template->parameters[i].name != NULL; i++) {
            list(&listing, template->parameters[i].name);
        }
        problem_set(ret_problem, "%s has no parameter of that name; it has %s%s", template->name,
                    template->presets != NULL ? TEMPLATE_PRESET ", " : "", listing.text);
        return false;
    }
    const struct template_parameter *parameter = &template->parameters[index];
    return parameter->choices != NULL ? set_choice(parameter, text, &values[index], ret_problem)
                                      : set_number(parameter, text, &values[index], ret_problem);
}

static enum steps_status check_values(const struct template *template, const int64_t *values,
                                      struct problem *ret_problem)
{
    for (size_t i = 0; template->parameters[i].name != NULL; i++) {
        const struct template_parameter *parameter = &template->parameters[i];
        if (values[i] < parameter->least || values[i] > parameter->most) {
            problem_set(ret_problem, "%s is %" PRId64 "; it may be %" PRId64 " to %" PRId64,
                        parameter->name, values[i], parameter->least, parameter->most);
            return STEPS_BAD_VALUE;
        }
    }
    return STEPS_OK;
}

enum steps_status template_create(const struct template *template, const int64_t *values,
                                  struct steps **ret_steps, struct problem *ret_problem)
{
    enum steps_status status = check_values(template, values, ret_problem);
    return status != STEPS_OK ? status : template->make(values, ret_steps, ret_problem);
}

enum steps_status template_create_chain(const struct template *template, const int64_t *values,
                                        struct steps **ret_steps, struct problem *ret_problem)
{
    enum steps_status status = check_values(template, values, ret_problem);
    return status != STEPS_OK ? status : template->make_chain(values, ret_steps, ret_problem);
}

enum steps_status template_create_divided(const struct template *template, const int64_t *values,
                                          int64_t ways, bool is_chain, struct steps **ret_steps,
                                          struct problem *ret_problem)
{
    enum steps_status status = check_values(template, values, ret_problem);
    return status != STEPS_OK
               ? status
               : template->make_divided(values, ways, is_chain, ret_steps, ret_problem);
}
