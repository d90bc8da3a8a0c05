/* The cut divides a chain (stage_chain.h) into stages for any number of devices. stages.h finds the
 * columns of each device, for each number of micro-batches and several limits of a stage's time.
 * Fewer devices are slower and cheaper. The candidates get estimates,
 *
 *    forward            sum of the stages + (m - 1) x the slowest, for m micro-batches
 *    decode             sum + (m - 1) x slowest + (rounds - 1) x max(sum, m x slowest)
 *    forward, backward  sum of both + (m - 1) x the slowest of both, and what is done once. The
 *                       slowest is at least the path from a stage to the end and back over its
 *                       number of stages
 *
 * and those that no other beats in time, price and energy are run by micro-batch (chain_relay.c),
 * with memory and links as in plan.h. The best is taken. Rounds may have devices of their own:
 * their stages begin at the first layer, since the token's device can look up the next
 * embedding. */
#include "planner/layout/chain/stage_chain.h"

#include <stdlib.h>
#include <string.h>

enum {
    EFFORT = 300000, /* figures of stages.h for a number of micro-batches; with teams a quarter */
    DIVISIONS = 40,  /* divisions of the devices between forward and decode */
    BATCHES = 7,     /* numbers of micro-batches: 1, 2, 4 ... */
};

static const double levels[] = {1, 1.2, 1.5, 2, 3, 5, 10, INFINITY}; /* times the least limit */
enum { LEVELS = sizeof levels / sizeof levels[0] };

/* ---------------------------------------------------------------- estimates */

struct rough {
    double sum_s, slowest_s;
};

/* Estimates stages in the phases of a mask. `first` is the column of their first column. `routes`
 * is the time over cuts, paid `often` times. */
static struct rough rough_of(const struct chain_cuts *cuts, const struct stages *stages,
                             unsigned phases, uint32_t first, const struct chain_routes *routes,
                             double often)
{
    struct rough rough = {0, 0};
    for (uint32_t left = 1; left <= stages->stage_count; left++) { /* from the last one on */
        const uint32_t k = stages->stage_count - left;
        const struct stages_stage *stage = &stages->stages[k];
        double time_s = 0;
        for (uint32_t c = stage->first; c < stage->first + stage->count; c++) {
            for (int p = 0; p < STEP_PHASES; p++) {
                time_s +=
                    (phases >> p & 1) != 0 ? cuts->figures->takes_s[p][c + first][stage->group] : 0;
            }
        }
        if (left > 1 && routes != NULL) {
            rough.sum_s += often * routes->takes_s[stage->group][stages->stages[k + 1].group];
        }
        rough.sum_s += time_s;
        rough.slowest_s = fmax(rough.slowest_s, time_s);
        if ((phases >> STEP_BACKWARD & 1) != 0 && cuts->has_backward &&
            left < cuts->micro_batches) {
            /* No more than `left` are in flight from here to the end and backward. */
            rough.slowest_s = fmax(rough.slowest_s, rough.sum_s / left);
        }
    }
    return rough;
}

static double rough_forward(const struct chain_cuts *cuts, const struct rough *rough)
{
    return rough->sum_s + (double)(cuts->micro_batches - 1) * rough->slowest_s;
}

static double rough_decode(const struct chain_cuts *cuts, const struct rough *all)
{
    double rounds = (double)cuts->rounds;
    double count = (double)cuts->micro_batches;
    struct rough one = {all->sum_s / rounds, all->slowest_s / rounds};
    return rough_forward(cuts, &one) + (rounds - 1) * fmax(one.sum_s, count * one.slowest_s);
}

static void add_rough(const struct chain_cuts *cuts, const struct stages *stages, uint32_t first,
                      double *price, struct chain_candidate *candidate)
{
    for (uint32_t k = 0; k < stages->stage_count; k++) {
        const struct stages_stage *stage = &stages->stages[k];
        const struct chain_group *group = &cuts->groups[stage->group];
        *price += group->price;
        candidate->width = group->width > candidate->width ? group->width : candidate->width;
        for (uint32_t c = stage->first; c < stage->first + stage->count; c++) {
            candidate->energy_j +=
                cuts->figures->energy_j[c + first][stage->group] * (double)cuts->micro_batches;
        }
    }
}

static void judge(const struct chain_cuts *cuts, struct chain_candidate *candidate)
{
    const unsigned both = 1u << STEP_FORWARD | 1u << STEP_BACKWARD;
    double hourly = 0;
    struct rough forward =
        rough_of(cuts, &candidate->forward, both, 0, &cuts->routes[0], cuts->has_backward ? 2 : 1);
    struct rough once = rough_of(cuts, &candidate->forward, 1u << STEP_ONCE, 0, NULL, 0);
    candidate->time_s = rough_forward(cuts, &forward) + once.slowest_s;
    candidate->energy_j = 0;
    candidate->width = 1;
    add_rough(cuts, &candidate->forward, 0, &hourly, candidate);
    if (cuts->rounds > 0) {
        const struct stages *loop = candidate->is_apart ? &candidate->decode : &candidate->forward;
        struct rough decode = rough_of(cuts, loop, 1u << STEP_DECODE, candidate->is_apart,
                                       &cuts->routes[1], (double)cuts->rounds);
        candidate->time_s += rough_decode(cuts, &decode);
    }
    if (candidate->is_apart) {
        add_rough(cuts, &candidate->decode, 1, &hourly, candidate);
    }
    candidate->price = hourly * candidate->time_s;
}

static bool is_same_sort(const struct chain_candidate *a, const struct chain_candidate *b)
{
    return a->is_apart == b->is_apart && a->width == b->width;
}

/* A candidate competes with its own sort alone, so that each sort has a result. */
static bool is_beaten(const struct chain_candidate *a, const struct chain_candidate *by)
{
    return is_same_sort(a, by) && by->time_s <= a->time_s && by->price <= a->price &&
           by->energy_j <= a->energy_j;
}

/* Keeps the candidate if no other candidate beats it, and drops those that it beats. */
static void offer(struct chain_cuts *cuts)
{
    struct chain_candidate *candidate = cuts->next;
    size_t left = 0;
    size_t of_sort = 0;
    judge(cuts, candidate);
    if (candidate->width == 1 && cuts->variation > 0) {
        return; /* the candidate was found without teams before */
    }
    for (size_t i = 0; i < cuts->candidate_count; i++) {
        if (is_beaten(candidate, &cuts->candidates[i])) {
            return;
        }
    }
    for (size_t i = 0; i < cuts->candidate_count; i++) {
        if (!is_beaten(&cuts->candidates[i], candidate)) {
            of_sort += is_same_sort(&cuts->candidates[i], candidate);
            cuts->candidates[left++] = cuts->candidates[i];
        }
    }
    cuts->candidate_count = left;
    if (of_sort < (candidate->width == 1 ? CHAIN_CUTS : CHAIN_DIVIDED)) {
        cuts->candidates[cuts->candidate_count++] = *candidate;
    }
}

/* ---------------------------------------------------------------- cutting */

/* A search among some devices of each group, for some phases. */
struct cutting {
    struct stages_input input;
    uint32_t counts[STAGES_GROUPS];
    size_t groups[STAGES_GROUPS]; /* index of each group */
    double time_s[STAGES_COLUMNS * STAGES_GROUPS];
    double fixed_bytes[STAGES_COLUMNS * STAGES_GROUPS];
    double held_bytes[STAGES_COLUMNS * STAGES_GROUPS];
    double working_bytes[STAGES_COLUMNS * STAGES_GROUPS];
    double memory_bytes[STAGES_GROUPS];
    double link_s[STAGES_GROUPS * STAGES_GROUPS];
};

/* Fills in the links of the groups. */
static void fill_links(const struct chain_routes *routes, struct cutting *cutting)
{
    size_t count = cutting->input.group_count;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            size_t from = cutting->groups[i];
            size_t to = cutting->groups[j];
            cutting->link_s[i * count + j] = routes->takes_s[from][to];
        }
    }
}

enum part { ALL, FORWARD, DECODE };

/* Fills in a column on a device of a group. */
static void fill_column(const struct chain_cuts *cuts, struct cutting *cutting, enum part part,
                        size_t at, size_t g, size_t to)
{
    const struct chain_figures *figures = cuts->figures;
    int of = part == DECODE;
    bool is_all = part == ALL;
    double forward_s =
        figures->takes_s[STEP_FORWARD][at][g] + figures->takes_s[STEP_BACKWARD][at][g];
    double decode_s = figures->takes_s[STEP_DECODE][at][g];
    double once_s = figures->takes_s[STEP_ONCE][at][g] / (double)cuts->micro_batches;
    cutting->time_s[to] = part == DECODE    ? decode_s
                          : part == FORWARD ? forward_s
                                            : forward_s + decode_s + once_s;
    cutting->fixed_bytes[to] = is_all ? figures->all_bytes[at][g] : figures->fixed_bytes[of][at][g];
    cutting->held_bytes[to] =
        is_all ? fmax(figures->held_bytes[0][at][g], figures->held_bytes[1][at][g])
               : figures->held_bytes[of][at][g];
    cutting->working_bytes[to] =
        is_all ? fmax(figures->working_bytes[0][at][g], figures->working_bytes[1][at][g])
               : figures->working_bytes[of][at][g];
}

static void fill_columns(const struct chain_cuts *cuts, struct cutting *cutting, enum part part)
{
    const struct chain_figures *figures = cuts->figures;
    uint32_t first = part == DECODE; /* the columns of decode begin at the second one */
    size_t groups = cutting->input.group_count;
    size_t columns = cuts->columns - first;
    for (size_t c = 0; c < columns; c++) {
        for (size_t i = 0; i < groups; i++) {
            fill_column(cuts, cutting, part, c + first, cutting->groups[i], c * groups + i);
        }
    }
    /* The device of the last column also does the first one. */
    for (size_t i = 0; part == DECODE && i < groups; i++) {
        size_t g = cutting->groups[i];
        size_t last = (columns - 1) * groups + i;
        cutting->time_s[last] += figures->takes_s[STEP_DECODE][0][g];
        cutting->fixed_bytes[last] += figures->fixed_bytes[1][0][g];
        cutting->working_bytes[last] += figures->working_bytes[1][0][g];
    }
    cutting->input.column_count = columns;
    fill_links(&cuts->routes[part == DECODE], cutting);
}

/* Selects the groups that have devices. Returns false when there are none. */
static bool fill_cutting(const struct chain_cuts *cuts, const uint32_t counts[STAGES_GROUPS],
                         enum part part, struct cutting *cutting)
{
    memset(cutting, 0, sizeof *cutting);
    size_t count = 0;
    for (size_t g = 0; g < cuts->group_count; g++) {
        if (counts[g] > 0) {
            const struct figure *memory = &cuts->whole->input->devices[cuts->groups[g].devices[0]]
                                               .cost->profile->figures[FIGURE_MEMORY];
            cutting->memory_bytes[count] =
                memory->source == FIGURE_UNKNOWN ? INFINITY : memory->value;
            cutting->counts[count] = counts[g];
            cutting->groups[count++] = g;
        }
    }
    cutting->input = (struct stages_input){.group_count = count,
                                           .counts = cutting->counts,
                                           .time_s = cutting->time_s,
                                           .fixed_bytes = cutting->fixed_bytes,
                                           .held_bytes = cutting->held_bytes,
                                           .working_bytes = cutting->working_bytes,
                                           .memory_bytes = cutting->memory_bytes,
                                           .link_s = cutting->link_s,
                                           .micro_batches = cuts->micro_batches,
                                           .holds_all = !cuts->has_backward};
    fill_columns(cuts, cutting, part);
    return count > 0;
}

/* Replaces indexes in the search by the numbers of the groups. */
static void name_groups(const struct cutting *cutting, struct stages *stages)
{
    for (uint32_t k = 0; k < stages->stage_count; k++) {
        stages->stages[k].group = (uint32_t)cutting->groups[stages->stages[k].group];
    }
}

static void spend(struct chain_cuts *cuts, const struct stages_search *search)
{
    uint64_t effort = search != NULL ? stages_effort(search) : 0;
    cuts->effort -= effort < cuts->effort ? effort : cuts->effort;
}

/* Tries each choice of groups at each limit. */
static bool cut_together(struct chain_cuts *cuts, struct cutting *cutting)
{
    uint32_t counts[STAGES_GROUPS] = {0};
    struct stages_search *search = NULL;
    double least_s = 0;
    for (size_t g = 0; g < cuts->group_count; g++) {
        counts[g] = cuts->groups[g].count;
    }
    if (!fill_cutting(cuts, counts, ALL, cutting)) {
        return true;
    }
    enum stages_status status = stages_create(&cutting->input, &search);
    bool can = status == STAGES_OK && stages_least(search, &least_s) == STAGES_OK;
    for (size_t i = 0; can && i < LEVELS; i++) {
        (void)stages_find(search, least_s * levels[i]);
        for (uint32_t groups = 1; groups < 1u << cutting->input.group_count; groups++) {
            cuts->next->is_apart = false;
            if (stages_take(search, groups, &cuts->next->forward)) {
                const struct stages_stage *first = &cuts->next->forward.stages[0];
                name_groups(cutting, &cuts->next->forward);
                if (cuts->next->forward.stage_count > 1 || cuts->groups[first->group].width > 1) {
                    offer(cuts);
                }
            }
        }
    }
    spend(cuts, search);
    stages_destroy(&search);
    return status != STAGES_NO_MEMORY;
}

enum { WIDER = 2 };
static const double wider[WIDER] = {1, 2}; /* times the least limit */

/* Finds the best stages on these devices at each of two limits; no stages means none. */
static bool cut_part(struct chain_cuts *cuts, struct cutting *cutting,
                     const uint32_t counts[STAGES_GROUPS], enum part part,
                     struct stages ret_stages[WIDER])
{
    struct stages_search *search = NULL;
    double least_s = 0;
    memset(ret_stages, 0, WIDER * sizeof *ret_stages);
    if (!fill_cutting(cuts, counts, part, cutting)) {
        return true;
    }
    enum stages_status status = stages_create(&cutting->input, &search);
    bool can = status == STAGES_OK && stages_least(search, &least_s) == STAGES_OK;
    for (int i = 0; can && i < WIDER; i++) {
        (void)stages_find(search, least_s * wider[i]);
        for (uint32_t groups = 1; groups < 1u << cutting->input.group_count; groups++) {
            struct stages found;
            if (stages_take(search, groups, &found) &&
                (ret_stages[i].stage_count == 0 || found.slowest_s < ret_stages[i].slowest_s)) {
                ret_stages[i] = found;
            }
        }
        name_groups(cutting, &ret_stages[i]);
    }
    spend(cuts, search);
    stages_destroy(&search);
    return status != STAGES_NO_MEMORY;
}

/* Gives `forward` devices of each group to forward, and the others to decode. */
static bool cut_apart(struct chain_cuts *cuts, struct cutting *cutting,
                      const uint32_t forward[STAGES_GROUPS])
{
    uint32_t decode[STAGES_GROUPS] = {0};
    struct stages first[WIDER];
    struct stages second[WIDER] = {{.stage_count = 0}};
    for (size_t g = 0; g < cuts->group_count; g++) {
        decode[g] = cuts->groups[g].count - forward[g];
        cuts->next->first_of[g] = forward[g];
    }
    if (!cut_part(cuts, cutting, forward, FORWARD, first)) {
        return false;
    }
    if (first[0].stage_count > 0 && !cut_part(cuts, cutting, decode, DECODE, second)) {
        return false;
    }
    for (int i = 0; first[0].stage_count > 0 && second[0].stage_count > 0 && i < WIDER * WIDER;
         i++) {
        cuts->next->is_apart = true;
        cuts->next->forward = first[i / WIDER];
        cuts->next->decode = second[i % WIDER];
        offer(cuts);
    }
    return true;
}

/* Returns all, none, one, all but one, or half of a group. */
static uint32_t devices_of_choice(uint32_t count, uint32_t choice)
{
    const uint32_t choices[] = {0, count, 1, count - 1, count / 2};
    return choices[choice];
}

static bool divide_devices(struct chain_cuts *cuts, struct cutting *cutting)
{
    enum { CHOICES = 5 };
    uint32_t tried[DIVISIONS][STAGES_GROUPS];
    size_t tried_count = 0;
    uint32_t choices = 1;
    for (size_t g = 0; g < cuts->group_count; g++) {
        choices *= CHOICES;
    }
    for (uint32_t choice = 0; choice < choices && tried_count < DIVISIONS && cuts->effort > 0;
         choice++) {
        uint32_t forward[STAGES_GROUPS] = {0};
        uint32_t left = choice;
        uint32_t sum = 0;
        uint32_t others = 0;
        for (size_t g = 0; g < cuts->group_count; g++, left /= CHOICES) {
            forward[g] = devices_of_choice(cuts->groups[g].count, left % CHOICES);
            sum += forward[g];
            others += cuts->groups[g].count - forward[g];
        }
        bool is_new = sum > 0 && others > 0;
        for (size_t i = 0; i < tried_count; i++) {
            is_new = is_new && memcmp(tried[i], forward, sizeof forward) != 0;
        }
        if (is_new) {
            memcpy(tried[tried_count++], forward, sizeof forward);
            if (!cut_apart(cuts, cutting, forward)) {
                return false;
            }
        }
    }
    return true;
}

static void drop_ones(struct chain_cuts *cuts)
{
    for (size_t i = 0; i < TEAM_WIDTHS; i++) {
        plan_case_destroy(&cuts->ones[i]);
    }
}

/* Returns false when memory is short. The case stays NULL when it is impossible. */
static bool make_one(struct chain_cuts *cuts, size_t width)
{
    struct plan_case **one = &cuts->ones[width];
    if (*one != NULL) {
        return true;
    }
    bool ok = plan_case_chain(cuts->whole, cuts->items, width == 0 ? NULL : &cuts->teams[width],
                              PLAN_AS_IT_IS, one, NULL);
    if (ok && *one != NULL) {
        chain_fold(cuts, (*one)->owned);
    }
    return ok;
}

bool chain_cut_at(struct chain_cuts *cuts, int64_t count, size_t variation)
{
    const int64_t items = cuts->whole->items;
    const int64_t each = items / count + (items % count != 0);
    if (each == cuts->items && variation == cuts->variation) {
        return true;
    }
    if (each != cuts->items) {
        cuts->items = each;
        cuts->micro_batches = items / each + (items % each != 0);
        drop_ones(cuts);
    }
    cuts->variation = variation;
    chain_set_groups(cuts);
    bool ok = make_one(cuts, 0);
    bool can = ok && cuts->ones[0] != NULL;
    for (size_t g = 0; can && g < cuts->group_count; g++) {
        size_t width = cuts->variations[variation].of[g];
        ok = make_one(cuts, width);
        can = ok && cuts->ones[width] != NULL;
    }
    if (ok && !can) {
        drop_ones(cuts);
        cuts->items = 0;
    }
    return ok && (!can || chain_fill_figures(cuts));
}

static bool find_candidates(struct chain_cuts *cuts, struct cutting *cutting)
{
    bool ok = true;
    for (int i = 0; ok && i < BATCHES && INT64_C(1) << i <= cuts->whole->items; i++) {
        for (size_t v = 0; ok && v < cuts->variation_count; v++) {
            ok = chain_cut_at(cuts, INT64_C(1) << i, v);
            if (!ok || cuts->ones[0] == NULL) {
                continue;
            }
            cuts->next->micro_batches = cuts->micro_batches;
            cuts->next->items = cuts->items;
            cuts->next->variation = v;
            cuts->effort = v == 0 ? EFFORT : EFFORT / 4;
            ok =
                cut_together(cuts, cutting) && (cuts->rounds == 0 || divide_devices(cuts, cutting));
        }
    }
    return ok;
}

bool chain_cut(struct chain_cuts *cuts)
{
    enum { SORTS = 2, MOST = SORTS * (CHAIN_CUTS + (TEAM_WIDTHS - 1) * CHAIN_DIVIDED) };
    struct cutting *cutting = calloc(1, sizeof *cutting);
    cuts->teams = calloc(TEAM_WIDTHS, sizeof *cuts->teams);
    cuts->figures = calloc(1, sizeof *cuts->figures);
    cuts->candidates = calloc(MOST, sizeof *cuts->candidates);
    cuts->next = calloc(1, sizeof *cuts->next);
    chain_find_kinds(cuts);
    bool ok = cutting != NULL && cuts->teams != NULL && cuts->figures != NULL &&
              cuts->candidates != NULL && cuts->next != NULL && chain_find_variations(cuts) &&
              find_candidates(cuts, cutting);
    free(cutting);
    return ok;
}

void chain_cuts_fini(struct chain_cuts *cuts)
{
    drop_ones(cuts);
    free(cuts->teams);
    free(cuts->figures);
    free(cuts->candidates);
    free(cuts->next);
}
