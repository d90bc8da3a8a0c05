/* This file lists subsets of the devices to plan for alone. Searches find good plans, not the
 * optimum, and one device more may make the result worse. So plans on subsets count, too. If there
 * are many devices, those of one kind stay together. */
#include "planner/layout/plan_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    APART = 4,       /* up to this many devices are taken one by one, whatever their kind */
    KINDS_MOST = 62, /* no sets for more kinds, which are bits of a mask */
};

struct kinds {
    uint32_t count;
    uint32_t of[PLAN_DEVICES]; /* kind of each device */
};

static bool is_alike(const struct plan_input *input, uint32_t a, uint32_t b)
{
    return plan_is_same_kind(input, a, b) &&
           input->devices[a].price_micro == input->devices[b].price_micro &&
           plan_is_same_figure(&input->devices[a].idle_w, &input->devices[b].idle_w);
}

static void find_kinds(const struct plan_input *input, struct kinds *kinds)
{
    kinds->count = 0;
    for (uint32_t d = 0; d < input->device_count; d++) {
        uint32_t like = input->device_count > APART ? 0 : d;
        while (like < d && !is_alike(input, like, d)) {
            like++;
        }
        kinds->of[d] = like < d ? kinds->of[like] : kinds->count++;
    }
}

/* Fills in the devices of the kinds in `mask`. */
static void fill(const struct plan_input *input, const struct kinds *kinds, uint64_t mask,
                 struct plan_set *set)
{
    set->count = 0;
    for (uint32_t d = 0; d < input->device_count; d++) {
        if ((mask >> kinds->of[d] & 1) != 0) {
            set->devices[set->count++] = d;
        }
    }
}

/* A set must contain the required device of every step. */
static bool has_placed(const struct plan_input *input, const struct plan_set *set)
{
    for (size_t s = 0; input->placed != NULL && s < input->steps->step_count; s++) {
        bool has = input->placed[s] == PLAN_ANYWHERE;
        for (uint32_t i = 0; i < set->count && !has; i++) {
            has = set->devices[i] == input->placed[s];
        }
        if (!has) {
            return false;
        }
    }
    return true;
}

/* Returns the next mask with as many bits (Gosper). */
static uint64_t next_of_as_many(uint64_t mask)
{
    uint64_t low = mask & (~mask + 1);
    uint64_t ripple = mask + low;
    return ripple | (((mask ^ ripple) / low) >> 2);
}

size_t plan_sets(const struct plan_input *input, struct plan_set sets[PLAN_SETS])
{
    struct kinds kinds;
    size_t count = 0;
    find_kinds(input, &kinds);
    if (kinds.count > KINDS_MOST) {
        return 0;
    }
    for (uint32_t many = kinds.count; many-- > 1;) {
        uint64_t end = UINT64_C(1) << kinds.count;
        for (uint64_t mask = (UINT64_C(1) << many) - 1; mask < end && count < PLAN_SETS;
             mask = next_of_as_many(mask)) {
            struct plan_set *set = &sets[count];
            fill(input, &kinds, mask, set);
            count += set->count > 1 && has_placed(input, set);
        }
    }
    return count;
}

/* ---------------------------------------------------------------- input of a set */

static bool take_placed(struct plan_part *part, const struct plan_input *input,
                        const struct plan_set *set, size_t steps)
{
    if (input->placed == NULL) {
        return true;
    }
    uint32_t *placed = calloc(steps + 1, sizeof *placed);
    for (size_t s = 0; placed != NULL && s < steps; s++) {
        placed[s] = PLAN_ANYWHERE;
        for (uint32_t i = 0; i < set->count; i++) {
            placed[s] = set->devices[i] == input->placed[s] ? i : placed[s];
        }
    }
    part->input.placed = part->placed = placed;
    return placed != NULL;
}

static bool take_histories(struct plan_part *part, const struct plan_input *input,
                           const struct plan_set *set, size_t steps)
{
    if (input->histories == NULL) {
        return true;
    }
    struct history_summary *histories = calloc(steps * set->count + 1, sizeof *histories);
    for (size_t s = 0; histories != NULL && s < steps; s++) {
        for (uint32_t i = 0; i < set->count; i++) {
            histories[s * set->count + i] =
                input->histories[s * input->device_count + set->devices[i]];
        }
    }
    part->input.histories = part->histories = histories;
    return histories != NULL;
}

bool plan_part_init(struct plan_part *part, const struct plan_input *input,
                    const struct plan_set *set)
{
    size_t steps = input->steps->step_count;
    *part = (struct plan_part){.input = *input};
    part->input.devices = part->devices;
    part->input.device_count = set->count;
    for (uint32_t i = 0; i < set->count; i++) {
        part->devices[i] = input->devices[set->devices[i]];
    }
    return take_placed(part, input, set, steps) && take_histories(part, input, set, steps);
}

void plan_part_fini(struct plan_part *part)
{
    free(part->placed);
    free(part->histories);
}

bool plan_of_part(struct plan *plan, const struct plan_input *input, const struct plan_set *set)
{
    struct plan_use *uses = calloc(input->device_count, sizeof *uses);
    if (uses == NULL) {
        return false;
    }
    for (size_t i = 0; i < plan->row_count; i++) {
        plan->rows[i].device = set->devices[plan->rows[i].device];
    }
    for (uint32_t i = 0; i < set->count; i++) {
        uses[set->devices[i]] = plan->uses[i];
    }
    free(plan->uses);
    plan->uses = uses;
    plan->device_count = input->device_count;
    return true;
}
