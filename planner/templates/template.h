/* planner/templates/template.h - kinds of work by name, and the figures that each is made of.
 *
 * A template is a table of parameters and a function that makes steps (steps.h) of their values.
 * Whoever asks people for them needs to know no template: names, meanings, ranges and what is usual
 * stand in the table. All values are whole numbers; of a choice, which one. A preset gives several
 * of them at once, as published of a model:
 *
 *     int64_t values[TEMPLATE_PARAMETERS];
 *     const struct template *llm = template_named("llm");
 *     template_begin(llm, values);
 *     template_set(llm, "model", "llama-3-8b", values, &problem);
 *     template_set(llm, "prompt", "2048", values, &problem);
 *     template_create(llm, values, &steps, &problem);
 *
 * docs/templates.md has the arithmetic and the sources. Pure. */
#ifndef BOURSE_PLANNER_TEMPLATES_TEMPLATE_H
#define BOURSE_PLANNER_TEMPLATES_TEMPLATE_H

#include "planner/templates/steps.h"

enum { TEMPLATE_PARAMETERS = 40, TEMPLATE_VALUE_SIZE = 32 };
#define TEMPLATE_NO_PARAMETER SIZE_MAX
/* The name under which presets are set. */
#define TEMPLATE_PRESET "model"

struct template_parameter {
    const char *name;           /* "prompt"; NULL: the list ends */
    const char *meaning;        /* "tokens of each prompt" */
    int64_t usual, least, most; /* of a choice: 0 to one less than there are */
    const char *const *choices; /* by value; NULL: a number */
    bool is_batch; /* so many alike and apart: the same template for a part of them is a part of the
                      work, for a device of its own */
    bool is_replicas; /* into how many parts the batch was divided, for whoever divides it to set:
                         they have to hear of one another */
    int64_t
        grain; /* of a batch: parts of it are multiples of so many, but for one; 0: of any size */
};

struct template_setting {
    const char *name; /* of a parameter; NULL: the list ends */
    int64_t value;
};

struct template_preset {
    const char *name; /* "llama-3-8b"; NULL: the list ends */
    const struct template_setting *settings;
};

struct template
{
    const char *name;    /* "llm" */
    const char *meaning; /* "a language model's answer" */
    const struct template_parameter *parameters;
    const struct template_preset *presets; /* NULL: there are none */
    /* Of values in their ranges. */
    enum steps_status (*make)(const int64_t *values, struct steps **ret_steps,
                              struct problem *ret_problem);
    /* The same work as a line (steps.h), or, where the batch is a part of it, as what a micro-batch
     * is of it. NULL: there is none. */
    enum steps_status (*make_line)(const int64_t *values, struct steps **ret_steps,
                                   struct problem *ret_problem);
    /* Of all of it, or of its line, what one of `ways` devices (2 or more) does that hold each
     * layer together. CONFLICT: it cannot be divided so. NULL: it is not divided. */
    enum steps_status (*make_divided)(const int64_t *values, int64_t ways, bool is_line,
                                      struct steps **ret_steps, struct problem *ret_problem);
};

size_t
template_parameters(const struct template *template); /* how many: at most TEMPLATE_PARAMETERS */
/* Which parameter is called so; TEMPLATE_NO_PARAMETER: none. */
size_t template_parameter(const struct template *template, const char *name);
/* The one that may be divided over devices; TEMPLATE_NO_PARAMETER: none. */
size_t template_batch(const struct template *template);
/* Of what its parts are multiples; 1: there is none to divide, or they are of any size. */
int64_t template_grain(const struct template *template);
/* The one that is to be set to the number of parts; TEMPLATE_NO_PARAMETER: parts need nothing of
 * each other. */
size_t template_replicas(const struct template *template);

/* All at what is usual. `ret_values`, as all values below, has room for each parameter. */
void template_begin(const struct template *template, int64_t *ret_values);

/* Sets a parameter, or under TEMPLATE_PRESET all that a preset gives, from text. False: there is
 * none called so, or that is no value of it; then nothing is set, and the problem says what may
 * stand there. */
bool template_set(const struct template *template, const char *name, const char *text,
                  int64_t *values, struct problem *ret_problem);

/* A value of parameter `index`, which is in its range, as people write it. */
void template_write(const struct template *template, size_t index, int64_t value,
                    char ret_text[TEMPLATE_VALUE_SIZE]);

/* The caller owns the steps. Any status but OK gives none, and says in `ret_problem` (may be NULL)
 * what is wrong. */
enum steps_status template_create(const struct template *template, const int64_t *values,
                                  struct steps **ret_steps, struct problem *ret_problem);
/* The same of its line, of a template that has one. */
enum steps_status template_create_line(const struct template *template, const int64_t *values,
                                       struct steps **ret_steps, struct problem *ret_problem);
/* And divided, of a template that has that. */
enum steps_status template_create_divided(const struct template *template, const int64_t *values,
                                          int64_t ways, bool is_line, struct steps **ret_steps,
                                          struct problem *ret_problem);

#endif
