/* This file plans shares of a batch for groups of devices (plan_team.h). plan_split sees a group as
 * one device. The group has the memory and links of its first member, and the price and idle power
 * of all members. The group's steps take the time of one member's part, sums included. The result
 * becomes a plan of all devices: each has a row of its own, with the same lease.
 *
 * Shares that exchange data would need as many rings at once as a group has devices. Such work is
 * not planned in groups. */
#include "planner/layout/plan_team.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- steps */

enum steps_status plan_team_steps(const struct plan_input *input, const int64_t *values,
                                  const struct plan_teams *teams, struct steps **ret_steps)
{
    struct steps *steps = NULL;
    enum steps_status status =
        template_create_divided(input->template, values, teams->width, false, &steps, NULL);
    for (size_t s = 0; status == STEPS_OK && s < steps->step_count; s++) {
        if (!checked_mul(steps->steps[s].brought_bytes, teams->width,
                         &steps->steps[s].brought_bytes)) {
            status = STEPS_OVERFLOW;
        }
    }
    if (status != STEPS_OK) {
        steps_destroy(&steps);
    }
    *ret_steps = steps;
    return status;
}

/* ---------------------------------------------------------------- groups as devices */

struct groups {
    struct plan_teams teams;
    struct plan_part part;
    struct steps *steps;
    struct plan_case *whole;
};

static void groups_fini(struct groups *groups)
{
    plan_case_destroy(&groups->whole);
    plan_part_fini(&groups->part);
    steps_destroy(&groups->steps);
}

/* Checks that there are at least two groups, with the same left-out steps as on single devices.
 * Returns false when memory is short. */
static bool groups_init(struct groups *groups, const struct plan_case *of, uint32_t width,
                        bool *ret_can)
{
    const struct plan_input *input = of->input;
    struct plan_teams *teams = &groups->teams;
    struct plan_set set = {.count = 0};
    struct plan_fault fault;
    *groups = (struct groups){.whole = NULL};
    *ret_can = false;
    plan_teams_find(of, width, teams);
    if (teams->count < 2) {
        return true;
    }
    for (uint32_t t = 0; t < teams->count; t++) {
        set.devices[set.count++] = teams->members[t * width];
        teams->device[t] = t;
    }
    teams->is_whole = true;
    enum steps_status made = plan_team_steps(input, input->values, teams, &groups->steps);
    if (made != STEPS_OK) {
        return made != STEPS_NO_MEMORY;
    }
    if (!plan_part_init(&groups->part, input, &set)) {
        return false;
    }
    for (uint32_t t = 0; t < teams->count; t++) {
        struct plan_device *device = &groups->part.devices[t];
        device->idle_w.value *= width;
        if (device->price_micro > 0 &&
            !checked_mul(device->price_micro, width, &device->price_micro)) {
            device->price_micro = PLAN_UNPRICED;
        }
    }
    groups->part.input.steps = groups->steps;
    enum plan_status status =
        plan_case_of_teams(&groups->part.input, teams, &groups->whole, &fault);
    *ret_can = status == PLAN_OK && groups->whole->left_out == of->left_out;
    return status != PLAN_NO_MEMORY;
}

/* ---------------------------------------------------------------- from groups to devices */

/* Returns the bytes that each device of a group gets from the others for an item. */
static double told_of_item(const struct groups *groups)
{
    double sum = 0;
    for (size_t s = 0; s < groups->steps->step_count; s++) {
        sum += plan_team_bytes(&groups->steps->steps[s], groups->teams.width);
    }
    return sum / (double)groups->whole->items;
}

/* Returns the row of the batch's home, from which the first transfer starts. Returns PLAN_ANYWHERE
 * when there is no transfer. */
static uint32_t home_of(const struct plan *plan)
{
    return plan->transfer_count > 0 ? plan->transfers[0].from : PLAN_ANYWHERE;
}

/* Results come to the first device; input comes to each device. */
static double part_in(const struct plan_row *from, bool is_home, uint32_t number, uint32_t width)
{
    return !is_home ? from->bytes_in / width : number == 0 ? from->bytes_in : 0;
}

static void fill_row(const struct groups *groups, const struct plan_row *from, uint32_t number,
                     char ret_what[PLAN_WHAT_SIZE], struct plan_row *row)
{
    const uint32_t width = groups->teams.width;
    char parts[32] = "";
    *row = *from;
    row->device = groups->teams.members[from->device * width + number];
    row->team_size = width;
    row->team_number = number;
    row->energy_j.value /= width;
    if (from->rounds > 1) {
        (void)snprintf(parts, sizeof parts, ", in %" PRId64 " parts", from->rounds);
    }
    (void)snprintf(ret_what, PLAN_WHAT_SIZE, "all of %" PRId64 "%s (%" PRIu32 " of %" PRIu32 ")",
                   from->items, parts, number + 1, width);
}

static void fill_rows(const struct groups *groups, const struct plan *from, struct plan *all)
{
    const uint32_t width = groups->teams.width;
    const double told = told_of_item(groups);
    for (uint32_t r = 0; r < from->row_count; r++) {
        const struct plan_row *whole = &from->rows[r];
        const struct plan_use *lease = &from->uses[whole->device];
        for (uint32_t i = 0; i < width; i++) {
            struct plan_row *row = &all->rows[r * width + i];
            fill_row(groups, whole, i, all->names[r * width + i], row);
            row->bytes_in =
                part_in(whole, r == home_of(from), i, width) + told * (double)row->items;
            struct plan_use *use = &all->uses[row->device];
            *use = *lease;
            use->energy_j = row->energy_j;
            use->bytes_in = row->bytes_in;
            use->bytes_out = (i == 0 ? lease->bytes_out : 0) + told * (double)row->items;
        }
    }
}

static void fill_transfers(const struct groups *groups, const struct plan_input *input,
                           const struct plan *from, struct plan *all)
{
    const uint32_t width = groups->teams.width;
    const double told = told_of_item(groups);
    struct plan_transfer *next = all->transfers;
    for (size_t i = 0; i < from->transfer_count; i++) {
        const struct plan_transfer *whole = &from->transfers[i];
        const uint32_t parts = whole->from == home_of(from) ? width : 1;
        for (uint32_t k = 0; k < parts; k++) {
            *next = *whole;
            next->bytes /= parts;
            next->from *= width;
            next->to = whole->to * width + k;
            next++;
        }
    }
    for (uint32_t r = 0; r < from->row_count; r++) {
        plan_team_transfers(input, all->rows, r * width, told * (double)from->rows[r].items, next);
        next += width;
    }
    all->transfer_count = (size_t)(next - all->transfers);
    plan_sort_transfers(all);
}

static void fill_waits(const struct plan *from, uint32_t width, struct plan *all)
{
    for (size_t i = 0; i < from->wait_count * width; i++) {
        all->waits[i] = from->waits[i / width];
        all->waits[i].row = from->waits[i / width].row * width + (uint32_t)(i % width);
    }
    all->wait_count = from->wait_count * width;
}

/* Turns a plan of groups into one of all devices. Returns false when memory is short; then the plan
 * is unchanged. */
static bool expand(const struct groups *groups, const struct plan_input *input, struct plan **plan)
{
    const struct plan *from = *plan;
    const uint32_t width = groups->teams.width;
    const struct figure makespan_s = from->total.makespan_s;
    struct plan *all = plan_alloc(input, from->row_count * width,
                                  (from->transfer_count + from->row_count) * width);
    if (all == NULL) {
        return false;
    }
    all->waits = calloc(from->wait_count * width + 1, sizeof *all->waits);
    all->names = calloc(all->row_count, sizeof *all->names);
    if (all->waits == NULL || all->names == NULL) {
        plan_destroy(&all);
        return false;
    }
    all->form = from->form;
    all->found_by = from->found_by;
    all->left_out = from->left_out;
    fill_rows(groups, from, all);
    fill_transfers(groups, input, from, all);
    fill_waits(from, width, all);
    plan_sum_up(input, all->uses, &makespan_s, &all->total);
    all->total.p90_s = from->total.p90_s;
    plan_destroy(plan);
    *plan = all;
    return true;
}

bool plan_team_split(const struct plan_case *of, uint32_t width, plan_share_search *search,
                     struct layout_found *ret_found)
{
    const struct plan_input *input = of->input;
    struct groups *groups = calloc(1, sizeof *groups);
    bool can = groups != NULL && plan_items(input) > 1 && input->template->make_divided != NULL &&
               !plan_has_replicas(input);
    bool ok = groups != NULL;
    *ret_found = (struct layout_found){.outcome = {.status = PLAN_NO_GAIN, .merit = INFINITY}};
    if (can) {
        ok = groups_init(groups, of, width, &can);
    }
    if (ok && can) {
        ok = search(groups->whole, &groups->part.input, ret_found);
    }
    if (ok && ret_found->plan != NULL) {
        ok = expand(groups, input, &ret_found->plan);
        ret_found->outcome = ret_found->plan->total;
        if (ok && ret_found->outcome.status != PLAN_OK) { /* each device's price is rounded up */
            plan_destroy(&ret_found->plan);
        }
    } else if (ok) {
        ret_found->outcome.device_count *= width;
    }
    if (groups != NULL) {
        groups_fini(groups);
    }
    free(groups);
    return ok;
}
