/* This file lists the devices that stages may use (stage_chain.h), by kinds of equal devices. A
 * variation says how many of each kind hold a stage together (plan_team.h). */
#include "planner/layout/chain/stage_chain.h"

#include <string.h>

enum { FEW_KINDS = 3 }; /* more kinds all have the same width */

/* ---------------------------------------------------------------- kinds */

static size_t numbers_of(const struct chain_cuts *cuts, const struct chain_group *groups)
{
    size_t numbers = 1;
    for (size_t g = 0; g < cuts->group_count; g++) {
        numbers *= groups[g].count + 1;
    }
    return numbers;
}

/* Takes the first kinds of devices that fit, and as many devices as can be searched. */
void chain_find_kinds(struct chain_cuts *cuts)
{
    const struct plan_case *of = cuts->whole;
    for (uint32_t d = 0; d < of->input->device_count; d++) {
        size_t g = 0;
        while (g < cuts->group_count && !plan_are_alike(of, cuts->kinds[g].devices[0], d)) {
            g++;
        }
        struct chain_group *group = &cuts->kinds[g];
        if (g == STAGES_GROUPS) {
            cuts->lacks_some = true;
            continue;
        }
        if (g == cuts->group_count) {
            double price = (double)of->input->devices[d].price_micro;
            *group = (struct chain_group){.width = 1, .price = price < 0 ? 0 : price};
            cuts->group_count++;
        }
        group->devices[group->count++] = d;
        if (numbers_of(cuts, cuts->kinds) > STAGES_NUMBERS) {
            cuts->lacks_some = true;
            group->count--;
            cuts->group_count -= group->count == 0;
        }
    }
}

bool plan_stage_chain_sees_all(const struct plan_case *of)
{
    struct chain_cuts cuts = {.whole = of};
    chain_find_kinds(&cuts);
    return !cuts.lacks_some;
}

/* ---------------------------------------------------------------- teams */

/* Checks whether work and devices can be divided to this width, or says why not. Returns false when
 * memory is short. */
static bool find_teams(struct chain_cuts *cuts, size_t width)
{
    struct plan_teams *teams = &cuts->teams[width];
    struct plan_case *one = NULL;
    struct problem why = {""};
    plan_teams_find(cuts->whole, 1u << width, teams);
    if (teams->count > 0) {
        if (!plan_case_chain(cuts->whole, 1, teams, PLAN_AT_LEAST, &one, &why)) {
            return false;
        }
        teams->count = one == NULL ? 0 : teams->count;
        plan_case_destroy(&one);
    } else {
        why = teams->why;
    }
    if (width == 1) {
        cuts->undivided = why;
    }
    return true;
}

static bool has_team(const struct chain_cuts *cuts, size_t kind, size_t width)
{
    const struct plan_teams *teams = &cuts->teams[width];
    bool has = width == 0;
    for (uint32_t t = 0; !has && t < teams->count; t++) {
        has = plan_are_alike(cuts->whole, cuts->kinds[kind].devices[0],
                             teams->members[t * teams->width]);
    }
    return has;
}

/* Adds a variation with each kind as wide as possible, up to `wanted`. A known variation, or one
 * too many, is not added. */
static void add_variation(struct chain_cuts *cuts, const uint8_t *wanted)
{
    struct chain_variation variation = {{0}};
    for (size_t k = 0; k < cuts->group_count; k++) {
        size_t width = wanted[k];
        while (!has_team(cuts, k, width)) {
            width--;
        }
        variation.of[k] = (uint8_t)width;
    }
    for (size_t i = 0; i < cuts->variation_count; i++) {
        if (memcmp(&cuts->variations[i], &variation, sizeof variation) == 0) {
            return;
        }
    }
    if (cuts->variation_count < CHAIN_VARIATIONS) {
        cuts->variations[cuts->variation_count++] = variation;
    }
}

/* Variations are no teams, then all kinds of one width. With few kinds, each kind alone is added;
 * with two kinds, all combinations. */
bool chain_find_variations(struct chain_cuts *cuts)
{
    const bool is_divided = cuts->whole->input->template->make_divided != NULL;
    uint8_t wanted[STAGES_GROUPS] = {0};
    for (size_t width = 1; is_divided && width < TEAM_WIDTHS; width++) {
        if (!find_teams(cuts, width)) {
            return false;
        }
    }
    if (!is_divided) {
        problem_set(&cuts->undivided, "the layers of this work are not divided");
    }
    add_variation(cuts, wanted);
    for (int width = 1; width < TEAM_WIDTHS; width++) {
        memset(wanted, width, sizeof wanted);
        add_variation(cuts, wanted);
    }
    for (size_t k = 0; k < cuts->group_count && cuts->group_count <= FEW_KINDS; k++) {
        for (int other = 0; other < TEAM_WIDTHS; other++) {
            for (int width = 0; width < TEAM_WIDTHS; width++) {
                memset(wanted, other, sizeof wanted);
                wanted[k] = (uint8_t)width;
                if (cuts->group_count == 2 || other == 0) {
                    add_variation(cuts, wanted);
                }
            }
        }
    }
    return true;
}

/* Trims the last groups to the number that can be searched. */
static void trim(struct chain_cuts *cuts)
{
    for (size_t g = cuts->group_count; g-- > 0;) {
        while (numbers_of(cuts, cuts->groups) > STAGES_NUMBERS && cuts->groups[g].count > 1) {
            cuts->groups[g].count--;
        }
    }
}

void chain_set_groups(struct chain_cuts *cuts)
{
    const struct chain_variation *variation = &cuts->variations[cuts->variation];
    for (size_t g = 0; g < cuts->group_count; g++) {
        const struct chain_group *kind = &cuts->kinds[g];
        const struct plan_teams *teams = &cuts->teams[variation->of[g]];
        struct chain_group *group = &cuts->groups[g];
        *group = *kind;
        if (variation->of[g] == 0) {
            continue;
        }
        group->count = 0;
        group->width = teams->width;
        group->price = kind->price * teams->width;
        for (uint32_t t = 0; t < teams->count; t++) {
            const uint32_t *members = &teams->members[t * teams->width];
            if (plan_are_alike(cuts->whole, kind->devices[0], members[0])) {
                memcpy(&group->devices[group->count++ * teams->width], members,
                       teams->width * sizeof *members);
            }
        }
    }
    trim(cuts);
}

const struct plan_case *chain_one(const struct chain_cuts *cuts, size_t group)
{
    return cuts->ones[cuts->variations[cuts->variation].of[group]];
}
