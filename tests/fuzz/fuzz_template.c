/* Templates as text, "name" and then lines "parameter=value": what is set makes steps or is refused
 * by a reason, and a device takes some time for each of them, or says why not. */
#include "planner/cost/catalogue.h"
#include "planner/templates/template_list.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void set_lines(const struct template *template, char *line, int64_t *values)
{
    char *rest = NULL;
    for (line = strtok_r(line, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        struct problem problem = {""};
        char *equals = strchr(line, '=');
        if (equals == NULL) {
            continue;
        }
        *equals = '\0';
        bool is_set = template_set(template, line, equals + 1, values, &problem);
        assert(is_set == (problem.text[0] == '\0'));
    }
    for (size_t i = 0; i < template_parameters(template); i++) {
        char text[TEMPLATE_VALUE_SIZE];
        int64_t before = values[i];
        template_write(template, i, values[i], text);
        bool is_set = template_set(template, template->parameters[i].name, text, values, NULL);
        assert(is_set && values[i] == before);
    }
}

static void take(const struct steps *steps)
{
    const struct cost_device device = {
        .profile = &catalogue_find("nvidia-h100-sxm5")->profile,
        .storage = {.value = 1e9, .source = FIGURE_DECLARED},
        .stream = {.value = 25e9, .source = FIGURE_DECLARED},
    };
    for (size_t i = 0; i < steps->step_count; i++) {
        struct step_cost cost;
        if (steps_cost(&device, &steps->steps[i], &cost, NULL) == COST_OK) {
            assert(isfinite(cost.time_s.value) && cost.time_s.value >= 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t values[TEMPLATE_PARAMETERS];
    struct steps *steps = NULL;
    struct problem problem = {""};
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    size_t length = strcspn(text, "\n");
    bool has_more = text[length] == '\n';
    text[length] = '\0';
    const struct template *template = template_named(text);
    if (template != NULL) {
        template_begin(template, values);
        if (has_more) {
            set_lines(template, text + length + 1, values);
        }
        enum steps_status status = template_create(template, values, &steps, &problem);
        assert((status == STEPS_OK) == (steps != NULL));
        assert((status == STEPS_OK) == (problem.text[0] == '\0'));
        if (steps != NULL) {
            take(steps);
        }
        bool is_made = steps != NULL;
        steps_destroy(&steps);
        if (is_made && template->make_chain != NULL &&
            template_create_chain(template, values, &steps, &problem) == STEPS_OK) {
            take(steps);
            steps_destroy(&steps);
        }
        if (is_made && template->make_divided != NULL &&
            template_create_divided(template, values, 2, true, &steps, &problem) == STEPS_OK) {
            take(steps);
            steps_destroy(&steps);
        }
    }
    free(text);
    return 0;
}
