/* A template is a kind of work with a name, and the figures that each such work is made of.
 *
 * It has a table of parameters, and a function that makes steps (steps.h) from their values. The
 * table holds names, meanings, ranges and usual values. So a program that asks people for values
 * needs to know no template. All values are whole numbers; the value of a choice is its index. A
 * preset gives several values at once, as published for a model:
 *
 *     int64_t values[TEMPLATE_PARAMETERS];
 *     const struct template *llm = template_named("llm");
 *     template_begin(llm, values);
 *     template_set(llm, "model", "llama-3-8b", values, &problem);
 *     template_set(llm, "prompt", "2048", values, &problem);
 *     template_create(llm, values, &steps, &problem);
 *
 * docs/templates.md has the arithmetic and the sources. */
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
    int64_t usual, least, most; /* choice: 0 to the number of choices less one */
    const char *const *choices; /* indexed by value; NULL: a number */
    /* A number of equal, independent items. The template with a share of them is a part of the
     * work, for a device of its own. */
    bool is_batch;
    /* The number of parts that the batch was divided into. Code that divides the batch sets it,
     * since the parts have to exchange data. */
    bool is_replicas;
    /* Grain of a batch: all parts but one are multiples of it. 0 means parts of any size. */
    int64_t grain;
};

struct template_setting {
    const char *name; /* name of a parameter; NULL: the list ends */
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
    /* Makes the steps from values in their ranges. */
    enum steps_status (*make)(const int64_t *values, struct steps **ret_steps,
                              struct problem *ret_problem);
    /* Makes the same work as a chain (steps.h). If the batch is a part of the work, the chain is
     * one micro-batch. NULL means that there is none. */
    enum steps_status (*make_chain)(const int64_t *values, struct steps **ret_steps,
                                    struct problem *ret_problem);
    /* Makes the share of one of `ways` devices (2 or more) that hold each layer together, for all
     * of the work or for its chain. CONFLICT means that the values do not allow this division. NULL
     * means that the template is not divided. */
    enum steps_status (*make_divided)(const int64_t *values, int64_t ways, bool is_chain,
                                      struct steps **ret_steps, struct problem *ret_problem);
};

/* Returns the number of parameters, at most TEMPLATE_PARAMETERS. */
size_t template_parameters(const struct template *template);
/* Returns the index of the parameter with this name, or TEMPLATE_NO_PARAMETER. */
size_t template_parameter(const struct template *template, const char *name);
/* Returns the parameter that may be divided over devices, or TEMPLATE_NO_PARAMETER. */
size_t template_batch(const struct template *template);
/* Returns the grain of the batch. Returns 1 when there is no batch, or its parts may have any
 * size. */
int64_t template_grain(const struct template *template);
/* Returns the parameter to set to the number of parts. Returns TEMPLATE_NO_PARAMETER when the parts
 * are independent. */
size_t template_replicas(const struct template *template);

/* Sets every parameter to its usual value. `ret_values`, as all values below, has room for each
 * parameter. */
void template_begin(const struct template *template, int64_t *ret_values);

/* Sets a parameter from text, or under TEMPLATE_PRESET all values of a preset. Returns false for an
 * unknown name or a wrong value; then nothing is set, and the problem lists what is allowed. */
bool template_set(const struct template *template, const char *name, const char *text,
                  int64_t *values, struct problem *ret_problem);

/* Writes a value of parameter `index`, in its range, as people write it. */
void template_write(const struct template *template, size_t index, int64_t value,
                    char ret_text[TEMPLATE_VALUE_SIZE]);

/* Creates the steps, which the caller owns. Any status but OK gives none, and says in `ret_problem`
 * (may be NULL) what is wrong. */
enum steps_status template_create(const struct template *template, const int64_t *values,
                                  struct steps **ret_steps, struct problem *ret_problem);
/* Creates the steps of its chain; the template must have one. */
enum steps_status template_create_chain(const struct template *template, const int64_t *values,
                                        struct steps **ret_steps, struct problem *ret_problem);
/* Creates the steps of one of `ways` devices; the template must allow division. */
enum steps_status template_create_divided(const struct template *template, const int64_t *values,
                                          int64_t ways, bool is_chain, struct steps **ret_steps,
                                          struct problem *ret_problem);

#endif
