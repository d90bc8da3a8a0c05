#include "provider/executors/check.h"

#include "formats/tensor_op.h"
#include "protocol/subtask.h"
#include "provider/executors/program.h"

#include <stdlib.h>
#include <string.h>

/* The operation of one subtask: its arguments with the templates filled in, and their meaning. */
struct operation {
    uint32_t index;
    struct subtask_terms terms;
    struct template_values values;
    char *words[LIMIT_ARGUMENTS + 1];
    size_t count;
    struct tensor_op op;
};

static void operation_fini(struct operation *operation)
{
    for (size_t i = 0; i < operation->count; i++) {
        free(operation->words[i]);
    }
}

static bool operation_read(const Bourse__V1__Manifest *manifest, uint32_t index,
                           struct operation *operation, struct problem *problem)
{
    const struct subtask_terms terms = subtask_terms(manifest, index);
    *operation = (struct operation){
        .index = index,
        .terms = terms,
        .values = {.in = terms.input, .value = terms.value, .index = terms.number}};
    for (size_t i = 0; i < terms.argument_count && i < LIMIT_ARGUMENTS; i++) {
        operation->words[i] =
            template_filled(terms.arguments[i], &operation->values, LIMIT_ARGUMENT_BYTES, NULL);
        if (operation->words[i] == NULL) {
            problem_set(problem, "an argument cannot be filled in");
            return false;
        }
        operation->count++;
    }
    return tensor_op_read((const char *const *)operation->words, operation->count, false,
                          &operation->op, problem);
}

static size_t inputs_named(const Bourse__V1__Manifest *manifest, uint32_t index, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < program_input_count(manifest, index); i++) {
        count += strcmp(program_input(manifest, index, i)->name, name) == 0;
    }
    return count;
}

/* Returns the job's file of that name in the subtask's work folder. Returns NULL when there is
 * none, when there are two, or when another subtask leaves the file. */
static const Bourse__V1__ManifestInput *factor(const Bourse__V1__Manifest *manifest, uint32_t index,
                                               const char *name)
{
    for (size_t i = 0; i < program_taken_count(manifest, index); i++) {
        if (strcmp(program_taken(manifest, index, i)->name, name) == 0) {
            return NULL;
        }
    }
    size_t count =
        inputs_named(manifest, index, name) == 1 ? program_input_count(manifest, index) : 0;
    for (size_t i = 0; i < count; i++) {
        const Bourse__V1__ManifestInput *input = program_input(manifest, index, i);
        if (strcmp(input->name, name) == 0) {
            return input;
        }
    }
    return NULL;
}

static bool same_factor(const Bourse__V1__Manifest *manifest, const struct operation *check,
                        const char *check_name, const struct operation *product,
                        const char *product_name)
{
    const Bourse__V1__ManifestInput *a = factor(manifest, check->index, check_name);
    const Bourse__V1__ManifestInput *b = factor(manifest, product->index, product_name);
    return a != NULL && b != NULL && a->hash.len == b->hash.len &&
           memcmp(a->hash.data, b->hash.data, a->hash.len) == 0;
}

/* The product must be the only file that the subtask had to leave. The check must take exactly that
 * file, and nothing else from any subtask. */
static bool same_product(const Bourse__V1__Manifest *manifest, const struct operation *check,
                         const struct operation *product)
{
    if (product->terms.output_count != 1 || program_taken_count(manifest, check->index) != 1) {
        return false;
    }
    char *output =
        template_filled(product->terms.outputs[0], &product->values, LIMIT_ARGUMENT_BYTES, NULL);
    const Bourse__V1__ManifestFrom *from = program_taken(manifest, check->index, 0);
    bool same = output != NULL && strcmp(output, product->op.result) == 0 &&
                from->task == product->index && strcmp(from->output, output) == 0 &&
                strcmp(from->name, check->op.c) == 0;
    free(output);
    return same && inputs_named(manifest, check->index, check->op.c) == 0;
}

static bool fits(const Bourse__V1__Manifest *manifest, const struct operation *check,
                 const struct operation *product, struct problem *problem)
{
    if (check->op.verb != TENSOR_FREIVALDS || !check->op.is_drawn ||
        check->op.rounds < TENSOR_CHECK_ROUNDS) {
        problem_set(problem, "a check is freivalds with the seed %s and %d rounds at least",
                    TENSOR_DRAWN, TENSOR_CHECK_ROUNDS);
    } else if (!tensor_op_is_product(&product->op)) {
        problem_set(problem, "subtask %u computes no product that a check knows", product->index);
    } else if (!same_factor(manifest, check, check->op.a, product, product->op.a) ||
               !same_factor(manifest, check, check->op.b, product, product->op.b)) {
        problem_set(problem,
                    "the factors of the check are not the files that subtask %u multiplies",
                    product->index);
    } else if (!same_product(manifest, check, product)) {
        problem_set(problem, "the check does not read the one file that subtask %u is to leave",
                    product->index);
    } else {
        return true;
    }
    return false;
}

bool check_is_about(const Bourse__V1__Manifest *manifest, uint32_t index, uint32_t checked,
                    struct problem *ret_problem)
{
    struct operation check = {0};
    struct operation product = {0};
    if (index >= manifest->subtask_count || checked >= manifest->subtask_count) {
        problem_set(ret_problem, "the manifest has no subtask %u", checked);
        return false;
    }
    if (strcmp(manifest->executor, "tensor") != 0) {
        problem_set(ret_problem, "checks are operations of the executor tensor");
        return false;
    }
    bool good = operation_read(manifest, index, &check, ret_problem) &&
                operation_read(manifest, checked, &product, ret_problem) &&
                fits(manifest, &check, &product, ret_problem);
    operation_fini(&check);
    operation_fini(&product);
    return good;
}
