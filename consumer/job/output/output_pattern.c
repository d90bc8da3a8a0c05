#include "consumer/job/output/output_pattern.h"

#include "base/pattern.h"
#include "formats/template.h"
#include "protocol/limits.h"
#include "protocol/subtask.h"

#include <stdlib.h>
#include <string.h>

static bool is_of(const char *template, const struct template_values *values, const char *name)
{
    char *filled = template_filled(template, values, LIMIT_PATH_BYTES, NULL);
    const bool is = filled != NULL && strcmp(filled, name) == 0;
    free(filled);
    return is;
}

static bool make(const char *template, const struct template_values *values,
                 struct output_pattern *ret_pattern)
{
    struct output_pattern pattern = {.text = template_pattern(template, values, LIMIT_PATH_BYTES)};
    pattern.folder = pattern.text == NULL ? NULL : malloc(strlen(pattern.text) + 3);
    if (pattern.folder == NULL) {
        free(pattern.text);
        return false;
    }
    pattern_split(pattern.text, pattern.folder, &pattern.rest);
    if (strcmp(pattern.folder, "./") == 0) {
        pattern.folder[0] = '\0';
    }
    *ret_pattern = pattern;
    return true;
}

bool output_pattern_find(const Bourse__V1__Manifest *manifest, uint32_t index, const char *name,
                         struct output_pattern *ret_pattern)
{
    const struct subtask_terms terms = subtask_terms(manifest, index);
    const struct template_values values = {
        .in = terms.input, .value = terms.value, .index = terms.number};
    *ret_pattern = (struct output_pattern){.text = NULL};
    if (!manifest->has_patterns || !manifest->patterns) {
        return true;
    }
    for (size_t i = 0; i < terms.output_count; i++) {
        if (template_is_pattern(terms.outputs[i]) && is_of(terms.outputs[i], &values, name)) {
            return make(terms.outputs[i], &values, ret_pattern);
        }
    }
    return true;
}

void output_pattern_fini(struct output_pattern *pattern)
{
    free(pattern->text);
    free(pattern->folder);
    *pattern = (struct output_pattern){.text = NULL};
}
