/* Templates with any values: steps that hold together, or a refusal that says why; and more of
 * anything needs no less. */
#include "base/cleanup.h"
#include "base/random.h"
#include "planner/templates/template_list.h"
#include "tests/support/property_seed.h"
#include "tests/support/suite.h"
#include "tests/support/template_steps.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 500 };

static const struct template *template_of_round(int round)
{
    return template_at((size_t)round % template_count());
}

/* Draws any size as often as any other; the ends, too. */
static int64_t any_value(struct random *random, const struct template_parameter *parameter)
{
    uint64_t span = (uint64_t)parameter->most - (uint64_t)parameter->least;
    uint64_t sixty_four = random_below(random, 64);
    uint64_t offset = random_u64(random) >> sixty_four;
    switch (random_below(random, 8)) {
    case 0:
        return parameter->least;
    case 1:
        return parameter->most;
    default:
        return parameter->least + (int64_t)(span == UINT64_MAX ? offset : offset % (span + 1));
    }
}

static void check_steps(const struct steps *steps)
{
    ck_assert(steps->step_count > 0 && steps->step_count <= STEPS_MOST);
    ck_assert(steps->edge_count <= STEPS_EDGES && steps->parameters >= 0 && steps->period_s >= 0);
    for (size_t i = 0; i < steps->step_count; i++) {
        const struct step *step = &steps->steps[i];
        int64_t weights = 0;
        ck_assert_uint_eq(steps_find(steps, step->name), i);
        ck_assert(step->part_count > 0 && step->passes >= 1);
        ck_assert(step->weight_bytes >= 0 && step->held_bytes >= 0 && step->working_bytes >= 0);
        for (uint32_t k = 0; k < step->set_count; k++) {
            ck_assert_uint_lt(step->first_set + k, steps->set_count);
            weights += steps->sets[step->first_set + k];
        }
        ck_assert_int_eq(weights, step->weight_bytes);
        for (size_t k = 0; k < step->part_count; k++) {
            struct operation_size size;
            ck_assert_int_ge(step->parts[k].times, 1);
            ck_assert_int_eq(operation_measure(&step->parts[k].operation, &size, NULL),
                             OPERATION_OK);
        }
    }
    for (size_t i = 0; i < steps->edge_count; i++) {
        const struct step_edge *edge = &steps->edges[i];
        ck_assert(edge->from < edge->to && edge->to < steps->step_count && edge->bytes >= 0);
        ck_assert(edge->set_bytes >= 0 && edge->set_bytes <= edge->bytes);
        for (size_t k = 0; k < i; k++) {
            ck_assert(steps->edges[k].from != edge->from || steps->edges[k].to != edge->to);
        }
    }
}

/* A line does what the steps do, in columns and phases that there are. */
static void check_line(const struct template *template, const int64_t *values,
                       const struct steps *steps)
{
    struct steps *made = NULL;
    struct problem problem = {""};
    enum steps_status status = template_create_chain(template, values, &made, &problem);
    if (status != STEPS_OK) { /* parts that round up do not fit where the whole just did */
        ck_assert_int_eq(status, STEPS_OVERFLOW);
        return;
    }
    CLEANUP(steps_destroy) struct steps *line = made;
    check_steps(line);
    ck_assert_uint_gt(line->column_count, 2);
    ck_assert_int_eq(line->parameters, steps->parameters);
    for (size_t i = 0; i < line->step_count; i++) {
        ck_assert_uint_lt(line->steps[i].column, line->column_count);
        ck_assert_uint_lt(line->steps[i].phase, STEP_PHASES);
        ck_assert(line->steps[i].phase != STEP_DECODE || line->rounds >= 1);
    }
    ck_assert_double_eq_tol(template_flops(line, NULL, OPERATION_KINDS),
                            template_flops(steps, NULL, OPERATION_KINDS),
                            1e-9 * template_flops(steps, NULL, OPERATION_KINDS));
}

/* All parts together do no less than the whole, and hold no less of it; or it is refused, where
 * something is no multiple. */
static void check_divided(const struct template *template, const int64_t *values, bool is_chain)
{
    struct problem problem = {""};
    struct steps *made = NULL;
    enum steps_status whole_status = is_chain
                                         ? template_create_chain(template, values, &made, &problem)
                                         : template_create(template, values, &made, &problem);
    if (whole_status != STEPS_OK) {
        return;
    }
    CLEANUP(steps_destroy) struct steps *line = made;
    for (int64_t ways = 2; ways <= 8; ways *= 2) {
        struct steps *part = NULL;
        enum steps_status status =
            template_create_divided(template, values, ways, is_chain, &part, &problem);
        if (status != STEPS_OK) {
            ck_assert(status == STEPS_CONFLICT || status == STEPS_OVERFLOW);
            continue;
        }
        check_steps(part);
        ck_assert_uint_eq(part->step_count, line->step_count);
        ck_assert_uint_eq(part->edge_count, line->edge_count);
        ck_assert_uint_eq(part->set_count, line->set_count);
        for (size_t s = 0; s < line->step_count; s++) {
            const struct step *one = &line->steps[s];
            const struct step *of = &part->steps[s];
            double whole = template_flops(line, one, OPERATION_KINDS);
            ck_assert_str_eq(of->name, one->name);
            ck_assert(of->column == one->column && of->phase == one->phase);
            ck_assert((double)ways * template_flops(part, of, OPERATION_KINDS) >=
                      whole * (1 - 1e-9));
            ck_assert((double)ways * template_bytes(part, of, OPERATION_KINDS) >=
                      template_bytes(line, one, OPERATION_KINDS) * (1 - 1e-9));
            ck_assert((double)ways * (double)of->weight_bytes >= (double)one->weight_bytes);
            ck_assert((double)ways * (double)of->held_bytes >= (double)one->held_bytes);
            ck_assert(of->weight_bytes <= one->weight_bytes && of->held_bytes <= one->held_bytes);
        }
        steps_destroy(&part);
    }
}

START_TEST(any_values_give_steps_or_a_refusal)
{
    struct random random = random_seeded(property_seed(20261122));
    unsigned made = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const struct template *template = template_of_round(round);
        int64_t values[TEMPLATE_PARAMETERS];
        struct steps *steps = NULL;
        struct problem problem = {""};
        template_begin(template, values);
        for (size_t i = 0; i < template_parameters(template); i++) {
            if (random_below(&random, 3) == 0) {
                values[i] = any_value(&random, &template->parameters[i]);
            }
        }
        enum steps_status status = template_create(template, values, &steps, &problem);
        if (status != STEPS_OK) {
            ck_assert(status != STEPS_NO_MEMORY && steps == NULL);
            ck_assert_str_ne(problem.text, "");
            ck_assert_str_ne(steps_status_name(status), "");
            continue;
        }
        made++;
        check_steps(steps);
        if (template->make_chain != NULL) {
            check_line(template, values, steps);
        }
        if (template->make_divided != NULL) {
            check_divided(template, values, true);
            check_divided(template, values, false);
        }
        steps_destroy(&steps);
    }
    ck_assert_uint_gt(made, ROUNDS / 20);
}
END_TEST

/* Returns false for a parameter that is no size of the work: how it is cut, how seldom something is
 * done, into how many frames bits go. More heads of an encoder whose heads share its width are
 * smaller heads, and cosines and sines are read for each element of one. */
static bool is_size(const struct template_parameter *parameter)
{
    static const char *const others[] = {"stages",     "checkpoint",  "patch",
                                         "frame-rate", "embed-heads", "rerank-heads"};
    bool is_other = parameter->choices != NULL;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        is_other |= strcmp(parameter->name, others[i]) == 0;
    }
    return !is_other;
}

START_TEST(more_of_anything_needs_no_less)
{
    struct random random = random_seeded(property_seed(20261122) + 1);
    unsigned compared = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const struct template *template = template_of_round(round);
        int64_t values[TEMPLATE_PARAMETERS];
        struct steps *steps = NULL;
        struct steps *more = NULL;
        size_t grown = random_below(&random, template_parameters(template));
        const struct template_parameter *parameter = &template->parameters[grown];
        template_begin(template, values);
        for (size_t i = 0; i < template_parameters(template); i++) {
            int64_t usual = template->parameters[i].usual;
            bool is_number = template->parameters[i].choices == NULL;
            if (!is_number) {
                values[i] = any_value(&random, &template->parameters[i]);
            } else if (usual > 1 && random_below(&random, 2) == 0) {
                values[i] = 1 + (int64_t)random_below(&random, (uint64_t)usual);
            }
            values[i] = values[i] < template->parameters[i].least ? usual : values[i];
        }
        if (!is_size(parameter) || template_create(template, values, &steps, NULL) != STEPS_OK) {
            continue;
        }
        CLEANUP(steps_destroy) struct steps *small = steps;
        values[grown] += 1 + (int64_t)random_below(&random, (uint64_t)values[grown] + 1);
        if (template_create(template, values, &more, NULL) != STEPS_OK) {
            continue;
        }
        CLEANUP(steps_destroy) struct steps *large = more;
        compared++;
        ck_assert_msg(template_flops(large, NULL, OPERATION_KINDS) >=
                          template_flops(small, NULL, OPERATION_KINDS),
                      "%s: operations by %s", template->name, parameter->name);
        ck_assert_msg(template_bytes(large, NULL, OPERATION_KINDS) >=
                          template_bytes(small, NULL, OPERATION_KINDS),
                      "%s: bytes by %s", template->name, parameter->name);
    }
    ck_assert_uint_gt(compared, ROUNDS / 20);
}
END_TEST

SUITE("templates", NULL, NULL, TEST(any_values_give_steps_or_a_refusal),
      TEST(more_of_anything_needs_no_less))
