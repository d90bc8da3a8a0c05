#include "tests/support/template_steps.h"
#include "planner/templates/template_list.h"

#include <check.h>
#include <string.h>

static void set_all(const struct template *template, const char *const *settings, int64_t *values)
{
    template_begin(template, values);
    for (; *settings != NULL; settings++) {
        char name[64];
        struct problem problem = {""};
        size_t length = strcspn(*settings, "=");
        ck_assert_uint_lt(length, sizeof name);
        memcpy(name, *settings, length);
        name[length] = '\0';
        ck_assert_msg(template_set(template, name, *settings + length + 1, values, &problem),
                      "%s: %s", *settings, problem.text);
    }
}

struct steps *template_steps(const char *name, const char *const *settings)
{
    const struct template *template = template_named(name);
    int64_t values[TEMPLATE_PARAMETERS];
    struct steps *steps = NULL;
    struct problem problem = {""};
    ck_assert_ptr_nonnull(template);
    set_all(template, settings, values);
    ck_assert_msg(template_create(template, values, &steps, &problem) == STEPS_OK, "%s",
                  problem.text);
    return steps;
}

struct steps *template_chain(const char *name, const char *const *settings, int64_t ways)
{
    const struct template *template = template_named(name);
    int64_t values[TEMPLATE_PARAMETERS];
    struct steps *steps = NULL;
    struct problem problem = {""};
    ck_assert_ptr_nonnull(template);
    set_all(template, settings, values);
    enum steps_status status =
        ways > 1 ? template_create_divided(template, values, ways, true, &steps, &problem)
                 : template_create_chain(template, values, &steps, &problem);
    ck_assert_msg(status == STEPS_OK, "%s", problem.text);
    return steps;
}

enum steps_status template_refusal(const char *name, const char *const *settings,
                                   struct problem *ret_problem)
{
    const struct template *template = template_named(name);
    int64_t values[TEMPLATE_PARAMETERS];
    struct steps *steps = NULL;
    ck_assert_ptr_nonnull(template);
    set_all(template, settings, values);
    enum steps_status status = template_create(template, values, &steps, ret_problem);
    ck_assert_ptr_null(steps);
    return status;
}

const struct step *template_step(const struct steps *steps, const char *name)
{
    size_t at = steps_find(steps, name);
    ck_assert_msg(at < steps->step_count, "no step %s", name);
    return &steps->steps[at];
}

struct work {
    double flops, bytes;
};

static struct work work_of(const struct steps *steps, const struct step *only,
                           enum operation_kind kind)
{
    struct work work = {0, 0};
    for (size_t i = 0; i < steps->step_count; i++) {
        const struct step *step = &steps->steps[i];
        for (size_t k = 0; k < step->part_count && (only == NULL || only == step); k++) {
            const struct step_part *part = &step->parts[k];
            struct operation_size size;
            ck_assert_int_eq(operation_measure(&part->operation, &size, NULL), OPERATION_OK);
            if (kind == OPERATION_KINDS || kind == part->operation.kind) {
                double moved = (double)size.read_bytes + (double)size.written_bytes;
                work.flops += (double)part->times * (double)size.flops;
                work.bytes += (double)part->times * moved;
            }
        }
    }
    return work;
}

double template_flops(const struct steps *steps, const struct step *step, enum operation_kind kind)
{
    return work_of(steps, step, kind).flops;
}

double template_bytes(const struct steps *steps, const struct step *step, enum operation_kind kind)
{
    return work_of(steps, step, kind).bytes;
}

int64_t template_flow(const struct steps *steps, const char *from, const char *to)
{
    size_t first = steps_find(steps, from);
    size_t second = steps_find(steps, to);
    ck_assert_msg(first < steps->step_count, "no step %s", from);
    ck_assert_msg(second < steps->step_count, "no step %s", to);
    for (size_t i = 0; i < steps->edge_count; i++) {
        if (steps->edges[i].from == first && steps->edges[i].to == second) {
            return steps->edges[i].bytes;
        }
    }
    return -1;
}

size_t template_edges_to(const struct steps *steps, const char *name)
{
    size_t at = steps_find(steps, name);
    size_t count = 0;
    for (size_t i = 0; i < steps->edge_count; i++) {
        count += steps->edges[i].to == at;
    }
    return count;
}

size_t template_edges_from(const struct steps *steps, const char *name)
{
    size_t at = steps_find(steps, name);
    size_t count = 0;
    for (size_t i = 0; i < steps->edge_count; i++) {
        count += steps->edges[i].from == at;
    }
    return count;
}
