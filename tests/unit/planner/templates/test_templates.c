/* The table of templates: what is in it holds together, and values come from text or are refused by
 * what may stand there. */
#include "planner/templates/template_list.h"

#include "base/cleanup.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct steps *made(const struct template *template, const int64_t *values)
{
    struct steps *steps = NULL;
    struct problem problem = {""};
    ck_assert_msg(template_create(template, values, &steps, &problem) == STEPS_OK, "%s: %s",
                  template->name, problem.text);
    return steps;
}

START_TEST(templates_are_found_by_name)
{
    for (size_t i = 0; i < template_count(); i++) {
        ck_assert_ptr_eq(template_named(template_at(i)->name), template_at(i));
        ck_assert_str_ne(template_at(i)->meaning, "");
    }
    ck_assert_ptr_null(template_named("nothing"));
    ck_assert_ptr_null(template_named(""));
}
END_TEST

START_TEST(what_is_usual_lies_in_its_range_and_makes_steps)
{
    for (size_t i = 0; i < template_count(); i++) {
        const struct template *template = template_at(i);
        int64_t values[TEMPLATE_PARAMETERS];
        size_t batches = 0;
        size_t count = template_parameters(template);
        for (size_t k = 0; k < count; k++) {
            const struct template_parameter *parameter = &template->parameters[k];
            ck_assert_uint_eq(template_parameter(template, parameter->name), k);
            ck_assert_str_ne(parameter->name, TEMPLATE_PRESET);
            ck_assert_str_ne(parameter->meaning, "");
            ck_assert(parameter->least <= parameter->usual && parameter->usual <= parameter->most);
            ck_assert(parameter->choices == NULL || parameter->least == 0);
            batches += parameter->is_batch ? 1 : 0;
        }
        ck_assert_uint_le(batches, 1);
        ck_assert((template_batch(template) == TEMPLATE_NO_PARAMETER) == (batches == 0));
        template_begin(template, values);
        CLEANUP(steps_destroy) struct steps *steps = made(template, values);
        ck_assert_uint_gt(steps->step_count, 0);
        for (size_t k = 0; k < steps->step_count; k++) {
            ck_assert_uint_gt(steps->steps[k].part_count, 0);
            ck_assert_uint_eq(steps_find(steps, steps->steps[k].name), k); /* no two alike */
        }
        ck_assert_uint_eq(steps_find(steps, "nothing"), steps->step_count);
    }
}
END_TEST

START_TEST(presets_give_values_that_there_are)
{
    for (size_t i = 0; i < template_count(); i++) {
        const struct template *template = template_at(i);
        const struct template_preset *preset = template->presets;
        for (; preset != NULL && preset->name != NULL; preset++) {
            int64_t values[TEMPLATE_PARAMETERS];
            for (const struct template_setting *s = preset->settings; s->name != NULL; s++) {
                size_t at = template_parameter(template, s->name);
                ck_assert_msg(at != TEMPLATE_NO_PARAMETER, "%s: %s", preset->name, s->name);
                ck_assert(template->parameters[at].least <= s->value);
                ck_assert(s->value <= template->parameters[at].most);
            }
            template_begin(template, values);
            ck_assert(template_set(template, TEMPLATE_PRESET, preset->name, values, NULL));
            CLEANUP(steps_destroy) struct steps *steps = made(template, values);
            ck_assert_uint_gt(steps->step_count, 0);
        }
    }
}
END_TEST

/* Meta's model cards and parameter counts of the published weights; GPT-3's table D.1 says 174,600
 * million, GPT-2's authors 1,542 million and others, by the weights, 1,558: both count tables of
 * positions and biases, which are not in here. */
START_TEST(models_have_as_many_parameters_as_is_published)
{
    static const struct {
        const char *model;
        double parameters, tolerance;
    } published[] = {
        {"llama-3-8b", 8030261248, 0},       {"llama-3-70b", 70553706496, 0},
        {"llama-3.1-405b", 405853388800, 0}, {"llama-2-7b", 6738415616, 0},
        {"llama-2-70b", 68976648192, 0},     {"mistral-7b", 7241732096, 0},
        {"gpt-3-175b", 174600e6, 0.001},     {"gpt-2-xl", 1557.6e6, 0.003},
    };
    const struct template *llm = template_named("llm");
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        int64_t values[TEMPLATE_PARAMETERS];
        template_begin(llm, values);
        ck_assert(template_set(llm, TEMPLATE_PRESET, published[i].model, values, NULL));
        CLEANUP(steps_destroy) struct steps *steps = made(llm, values);
        double difference = (double)steps->parameters - published[i].parameters;
        double most = published[i].tolerance * published[i].parameters;
        ck_assert_msg(difference <= most && -difference <= most, "%s has %lld", published[i].model,
                      (long long)steps->parameters);
    }
}
END_TEST

START_TEST(a_matrix_product_is_one_step)
{
    const struct template *matmul = template_named("matmul");
    int64_t values[TEMPLATE_PARAMETERS];
    char text[OPERATION_TEXT_SIZE];
    template_begin(matmul, values);
    ck_assert(template_set(matmul, "m", "3", values, NULL));
    ck_assert(template_set(matmul, "n", "5", values, NULL));
    ck_assert(template_set(matmul, "k", "8", values, NULL));
    ck_assert(template_set(matmul, "dtype", "int8", values, NULL));
    CLEANUP(steps_destroy) struct steps *steps = made(matmul, values);
    ck_assert_uint_eq(steps->step_count, 1);
    operation_write(&steps->steps[0].parts[0].operation, text);
    ck_assert_str_eq(text, "matmul:3x5x8:int8");
    ck_assert_int_eq(steps->sets[0], 8 * 5); /* B */
    ck_assert_int_eq(steps->steps[0].working_bytes, 3 * 8 + 3 * 5 * 4);
    ck_assert_str_eq(matmul->parameters[template_batch(matmul)].name, "m");
    ck_assert(template_set(matmul, "sparse", "yes", values, NULL));
    ck_assert(template_set(matmul, "k", "7", values, NULL));
    struct steps *none = NULL;
    ck_assert_int_eq(template_create(matmul, values, &none, NULL), STEPS_CONFLICT);
    ck_assert_ptr_null(none);
}
END_TEST

START_TEST(values_come_from_text)
{
    const struct template *llm = template_named("llm");
    int64_t values[TEMPLATE_PARAMETERS];
    char text[TEMPLATE_VALUE_SIZE];
    template_begin(llm, values);
    ck_assert(template_set(llm, "prompt", "2048", values, NULL));
    ck_assert_int_eq(values[template_parameter(llm, "prompt")], 2048);
    ck_assert(template_set(llm, "dtype", "fp16", values, NULL));
    size_t dtype = template_parameter(llm, "dtype");
    template_write(llm, dtype, values[dtype], text);
    ck_assert_str_eq(text, "fp16");
    ck_assert(template_set(llm, TEMPLATE_PRESET, "llama-2-70b", values, NULL));
    size_t layers = template_parameter(llm, "layers");
    template_write(llm, layers, values[layers], text);
    ck_assert_str_eq(text, "80");
    ck_assert_int_eq(values[template_parameter(llm, "prompt")], 2048); /* no preset's */
    ck_assert_str_eq(llm->parameters[template_batch(llm)].name, "batch");
}
END_TEST

START_TEST(what_is_no_value_is_refused_by_what_may_stand_there)
{
    static const struct {
        const char *name, *text, *says;
    } wrong[] = {
        {"prompt", "0", "prompt is a whole number, 1 to 16777216"},
        {"prompt", "16777217", "1 to 16777216"},
        {"prompt", "-1", "1 to 16777216"},
        {"prompt", "", "1 to 16777216"},
        {"prompt", "-", "1 to 16777216"},
        {"prompt", "1e3", "1 to 16777216"},
        {"prompt", " 1", "1 to 16777216"},
        {"prompt", "99999999999999999999", "1 to 16777216"},
        {"dtype", "bf17", "dtype is one of: fp64, fp32, fp16, bf16"},
        {"dtype", "", "dtype is one of"},
        {"model", "llama", "model is one of: llama-3-8b, "},
        {"prompts", "1", "llm has no parameter of that name; it has model, layers, width"},
    };
    const struct template *llm = template_named("llm");
    int64_t values[TEMPLATE_PARAMETERS];
    int64_t before[TEMPLATE_PARAMETERS];
    template_begin(llm, values);
    template_begin(llm, before);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problem problem = {""};
        ck_assert(!template_set(llm, wrong[i].name, wrong[i].text, values, &problem));
        ck_assert_msg(strstr(problem.text, wrong[i].says) != NULL, "%s", problem.text);
        ck_assert_mem_eq(values, before, template_parameters(llm) * sizeof values[0]);
    }
    struct steps *steps = NULL;
    struct problem problem = {""};
    values[template_parameter(llm, "kv")] = 0;
    ck_assert_int_eq(template_create(llm, values, &steps, &problem), STEPS_BAD_VALUE);
    ck_assert_str_eq(problem.text, "kv is 0; it may be 1 to 16777216");
    ck_assert_ptr_null(steps);
}
END_TEST

SUITE("templates", NULL, NULL, TEST(templates_are_found_by_name),
      TEST(what_is_usual_lies_in_its_range_and_makes_steps),
      TEST(presets_give_values_that_there_are),
      TEST(models_have_as_many_parameters_as_is_published), TEST(a_matrix_product_is_one_step),
      TEST(values_come_from_text), TEST(what_is_no_value_is_refused_by_what_may_stand_there))
