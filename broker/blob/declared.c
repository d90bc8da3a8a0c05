#include "broker/blob/declared.h"

#include "formats/template.h"
#include "protocol/limits.h"
#include "protocol/subtask.h"

#include <stdlib.h>
#include <string.h>

/* A listed subtask is one that the manifest lists. `value` and `input` say where their texts begin
 * in `texts`; 0: there is no text. */
struct listed {
    uint32_t number;
    uint32_t value, input;
    uint32_t first, count; /* templates of the subtask */
};

struct declared {
    struct listed *listed;
    uint32_t listed_count;
    uint32_t first, count; /* the templates of subtasks that are not listed */
    uint32_t *templates;   /* where the text of each begins in `texts` */
    uint32_t template_count;
    char *texts;
    size_t length;
};

/* Returns where the text begins in `texts`; 0: there is no text. While `texts` is NULL, the
 * function only counts the bytes. */
static uint32_t put_text(struct declared *declared, const char *text)
{
    if (text == NULL) {
        return 0;
    }
    const size_t size = strlen(text) + 1;
    const size_t at = declared->length;
    if (declared->texts != NULL) {
        memcpy(declared->texts + at, text, size);
    }
    declared->length += size;
    return (uint32_t)at; /* a manifest is smaller than 4 GiB */
}

static uint32_t put_templates(struct declared *declared, char *const *templates, size_t count)
{
    const uint32_t first = declared->template_count;
    for (size_t i = 0; i < count; i++) {
        const uint32_t text = put_text(declared, templates[i]);
        if (declared->templates != NULL) {
            declared->templates[declared->template_count] = text;
        }
        declared->template_count++;
    }
    return first;
}

static void put_listed(struct declared *declared, const Bourse__V1__Manifest *manifest,
                       uint32_t index)
{
    const struct subtask_terms terms = subtask_terms(manifest, index);
    const bool is_own = terms.outputs != manifest->outputs;
    struct listed listed = {
        .number = terms.number, .first = declared->first, .count = (uint32_t)terms.output_count};
    if (terms.output_count > 0) { /* nobody asks for names of a subtask without outputs */
        listed.value = put_text(declared, terms.value);
        listed.input = put_text(declared, terms.input);
    }
    if (is_own) {
        listed.first = put_templates(declared, terms.outputs, terms.output_count);
    }
    if (declared->listed != NULL) {
        declared->listed[index] = listed;
    }
}

static void put_all(struct declared *declared, const Bourse__V1__Manifest *manifest)
{
    declared->length = 1; /* no text begins at 0, which stands for none */
    declared->template_count = 0;
    declared->first = put_templates(declared, manifest->outputs, manifest->n_outputs);
    declared->count = (uint32_t)manifest->n_outputs;
    for (uint32_t i = 0; i < (uint32_t)manifest->n_subtasks; i++) {
        put_listed(declared, manifest, i);
    }
}

/* A job whose subtasks leave no files needs no list of them. */
static bool leaves_nothing(const struct declared *declared)
{
    return declared->template_count == 0;
}

struct declared *declared_of(const Bourse__V1__Manifest *manifest)
{
    struct declared *declared = calloc(1, sizeof *declared);
    if (declared == NULL) {
        return NULL;
    }
    put_all(declared, manifest);
    if (leaves_nothing(declared)) {
        return declared;
    }
    declared->listed_count = (uint32_t)manifest->n_subtasks;
    declared->listed = calloc(manifest->n_subtasks + 1, sizeof *declared->listed);
    declared->templates = calloc(declared->template_count, sizeof *declared->templates);
    declared->texts = calloc(1, declared->length);
    if (declared->listed == NULL || declared->templates == NULL || declared->texts == NULL) {
        declared_destroy(&declared);
        return NULL;
    }
    put_all(declared, manifest);
    return declared;
}

void declared_destroy(struct declared **self)
{
    if (*self != NULL) {
        free((*self)->listed);
        free((*self)->templates);
        free((*self)->texts);
        free(*self);
        *self = NULL;
    }
}

static struct listed listed_at(const struct declared *declared, uint32_t index)
{
    const struct listed bare = {
        .number = index, .first = declared->first, .count = declared->count};
    return index < declared->listed_count ? declared->listed[index] : bare;
}

uint32_t declared_count(const struct declared *declared, uint32_t index)
{
    return leaves_nothing(declared) ? 0 : listed_at(declared, index).count;
}

static const char *text_at(const struct declared *declared, uint32_t at)
{
    return at == 0 ? NULL : declared->texts + at;
}

char *declared_name(const struct declared *declared, uint32_t index, uint32_t number)
{
    if (number >= declared_count(declared, index)) {
        return NULL;
    }
    const struct listed listed = listed_at(declared, index);
    const struct template_values values = {.in = text_at(declared, listed.input),
                                           .value = text_at(declared, listed.value),
                                           .index = listed.number};
    return template_filled(text_at(declared, declared->templates[listed.first + number]), &values,
                           LIMIT_PATH_BYTES, NULL);
}
