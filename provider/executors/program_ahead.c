/* This file finds the inputs of a subtask that its device can get before the subtask runs. */
#include "formats/kernel/kernel_op.h"
#include "formats/tensor_op.h"
#include "provider/executors/program.h"
#include "provider/executors/program_internal.h"
#include "provider/executors/tensor.h"
#include "provider/tensor/ask.h"

#include <string.h>

/* The names of the files that the device holds, of which no other word of the subtask counts. */
struct wanted {
    const char *names[KERNEL_ARGUMENTS];
    size_t count;
    enum ahead_kind kind;
};

/* Finds the factors of a product. The cores compute a check. */
static void want_factors(const char *const *words, size_t count, struct wanted *ret_wanted)
{
    struct tensor_op op;
    struct problem problem;
    if (tensor_op_read(words, count, false, &op, &problem) && op.verb != TENSOR_FREIVALDS) {
        *ret_wanted = (struct wanted){.names = {op.a, op.b}, .count = 2, .kind = AHEAD_MATRIX};
    }
}

static void want_buffers(const char *const *words, size_t count, struct wanted *ret_wanted)
{
    struct kernel_op op;
    struct problem problem;
    if (!kernel_op_read(words, count, false, &op, &problem)) {
        return;
    }
    ret_wanted->kind = AHEAD_FILE;
    for (size_t i = 0; i < op.argument_count; i++) {
        if (op.arguments[i].kind == KERNEL_INPUT) {
            ret_wanted->names[ret_wanted->count++] = op.arguments[i].file;
        }
    }
}

static bool is_wanted(const struct wanted *wanted, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < wanted->count && !found; i++) {
        found = strcmp(wanted->names[i], name) == 0;
    }
    return found;
}

/* Lists the inputs that are wanted. An input that is lent reports its stamp to the store, also when
 * the device does not want it. */
static size_t list(const struct run *run, const struct wanted *wanted,
                   struct program_ahead *ret_items)
{
    size_t count = 0;
    for (size_t i = 0; i < run->input_count; i++) {
        const struct jail_input *input = &run->inputs[i];
        struct stamp stamp = {.is_known = false};
        const bool has_hash = input->hash == NULL || jail_input_verify(input, &stamp);
        if (has_hash && input->content != NULL && input->size > 0 && count < AHEAD_INPUTS &&
            is_wanted(wanted, input->name)) {
            ret_items[count++] = (struct program_ahead){
                .fd = input->fd,
                .input = {.hash = *input->content, .size = input->size, .kind = wanted->kind},
                .stamp = stamp};
        }
    }
    return count;
}

size_t program_list_ahead(const struct program *program,
                          struct program_ahead ret_items[AHEAD_INPUTS])
{
    struct outcome outcome = {.result = OUTCOME_OK};
    struct run run = {.program = program};
    struct wanted wanted = {.count = 0};
    size_t count = 0;
    if (program_prepare(&run, &outcome)) {
        const bool is_tensor = tensor_names(program->manifest);
        const size_t first = KERNEL_DEVICE_WORDS + (is_tensor ? 1 : 0);
        (is_tensor ? want_factors : want_buffers)((const char *const *)run.arguments.items + first,
                                                  run.arguments.count - first, &wanted);
        count = list(&run, &wanted, ret_items);
    }
    program_run_clear(&run);
    return count;
}
