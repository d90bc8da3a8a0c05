/* This file puts stages of a chain (stage_chain.h) on devices, computes their work and memory, and
 * takes the best. */
#include "planner/layout/chain/stage_chain.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STARTS = 3,       /* number of best results that are improved */
    CLIMB = 16000000, /* effort of all improvements; a unit takes about a nanosecond */
};

/* ---------------------------------------------------------------- stages */

static bool is_of_stage(const struct stage_chain *chain, const struct chain_stage *stage,
                        const struct step *step)
{
    bool is_in_loop = stage - chain->stages >= (ptrdiff_t)chain->loop;
    bool is_forward = stage - chain->stages < (ptrdiff_t)chain->forward_count;
    bool is_decode = step->phase == STEP_DECODE;
    uint32_t end = stage->first + stage->count;
    bool is_last = chain->loop > 0 && is_in_loop && end == chain->one->steps->column_count;
    bool is_within = step->column >= stage->first && step->column < end;
    return (is_decode ? is_in_loop : is_forward) &&
           (is_within || (is_last && is_decode && step->column == 0));
}

static void add_step(const struct stage_chain *chain, struct chain_stage *stage, size_t s,
                     bool *has_slow)
{
    const struct plan_cost *cost = plan_cost_at(stage->one, s, stage->devices[0]);
    const struct step *step = &stage->one->steps->steps[s];
    double often = step->phase == STEP_DECODE ? (double)chain->rounds : 1;
    if (cost->is_left_out) {
        return;
    }
    stage->takes_s[step->phase] += cost->here.time_s.value / often;
    stage->slow_s[step->phase] += cost->here.p90_s / often;
    *has_slow = *has_slow && cost->here.p90_s > 0;
    plan_add(&stage->rests_on, &cost->here.time_s);
    plan_add(step->phase == STEP_ONCE ? &stage->once_j : &stage->energy_j, &cost->here.energy_j);
    stage->samples = cost->samples < stage->samples ? cost->samples : stage->samples;
    stage->is_widened = stage->is_widened || cost->is_widened;
    stage->told_bytes += stage->width > 1 ? plan_team_bytes(step, stage->width) : 0;
}

/* Adds the memory for weights, and for each micro-batch. */
static void add_held(const struct stage_chain *chain, struct chain_stage *stage, bool *has_set)
{
    const struct steps *steps = stage->one->steps;
    double held[2] = {0, 0};
    double working = 0;
    memset(has_set, 0, steps->set_count * sizeof *has_set);
    for (size_t s = 0; s < steps->step_count; s++) {
        const struct step *step = &steps->steps[s];
        if (!is_of_stage(chain, stage, step)) {
            continue;
        }
        bool is_held = step->phase == STEP_FORWARD || step->phase == STEP_DECODE;
        double own = (double)step->held_bytes - stage->one->own_bytes[s];
        for (uint32_t i = step->first_set; i < step->first_set + step->set_count; i++) {
            stage->fixed_bytes += has_set[i] ? 0 : (double)steps->sets[i];
            has_set[i] = true;
        }
        stage->fixed_bytes += stage->one->own_bytes[s];
        held[step->phase == STEP_DECODE] += is_held ? fmax(own, 0) : 0;
        working = fmax(working, (double)step->working_bytes + (is_held ? 0 : fmax(own, 0)));
    }
    double within = 0;
    for (size_t i = 0; i < steps->edge_count; i++) {
        const struct step *from = &steps->steps[steps->edges[i].from];
        const struct step *to = &steps->steps[steps->edges[i].to];
        bool is_flow = from->phase == to->phase && from->phase != STEP_ONCE;
        bool is_within = is_of_stage(chain, stage, from) && is_of_stage(chain, stage, to);
        double often = to->phase == STEP_DECODE ? (double)chain->rounds : 1;
        within =
            is_flow && is_within ? fmax(within, (double)steps->edges[i].bytes / often) : within;
    }
    stage->held_bytes = fmax(held[0], held[1]);
    stage->working_bytes = working + 2 * within;
}

/* Data at one team member is handed on to all; the team does nothing else meanwhile. */
static void add_spread(struct stage_chain *chain, uint32_t k, bool has_slow)
{
    struct chain_stage *stage = &chain->stages[k];
    double before_s = 0;
    double after_s = 0;
    for (enum step_phase phase = STEP_FORWARD; phase < STEP_ONCE; phase++) {
        double often = phase == STEP_DECODE ? (double)chain->rounds : 1;
        double spread_s = plan_team_spread_s(chain->one->input, stage->devices, stage->width,
                                             chain_bytes_into(chain, k, phase));
        before_s += often * stage->takes_s[phase];
        stage->takes_s[phase] += spread_s;
        stage->slow_s[phase] += has_slow ? spread_s : 0;
        after_s += often * stage->takes_s[phase];
    }
    stage->energy_j.value *= before_s > 0 ? after_s / before_s : 1;
}

static bool fill_stage(const struct chain_cuts *cuts, struct stage_chain *chain, uint32_t k,
                       bool *has_set)
{
    const struct chain_figures *figures = cuts->figures;
    struct chain_stage *stage = &chain->stages[k];
    bool is_in_loop = chain->rounds > 0 && k >= chain->loop;
    bool has_slow = true;
    uint32_t first = stage->first;
    stage->first_row = k == 0 ? 0 : chain->stages[k - 1].first_row + chain->stages[k - 1].width;
    stage->rests_on = (struct figure){.source = FIGURE_MEASURED};
    stage->energy_j = stage->once_j = stage->rests_on;
    stage->samples = UINT32_MAX;
    for (size_t s = 0; s < chain->one->steps->step_count; s++) {
        if (is_of_stage(chain, stage, &chain->one->steps->steps[s])) {
            if (!chain_can_run(stage->one, s, stage->devices[0])) {
                return false;
            }
            add_step(chain, stage, s, &has_slow);
        }
    }
    stage->samples = stage->samples == UINT32_MAX ? 0 : stage->samples;
    if (!has_slow) {
        memset(stage->slow_s, 0, sizeof stage->slow_s);
    }
    add_held(chain, stage, has_set);
    stage->forward_bytes = k > 0 && k < chain->forward_count ? figures->forward_bytes[first] : 0;
    stage->backward_bytes =
        chain->has_backward ? figures->backward_bytes[first + stage->count - 1] : 0;
    if (is_in_loop) {
        bool is_first = k == chain->loop;
        stage->round_bytes = is_first && chain->loop == 0 ? (double)chain->one->steps->round_bytes
                                                          : figures->round_bytes[first];
    }
    add_spread(chain, k, has_slow);
    return true;
}

static void add_stages(const struct chain_cuts *cuts, const struct stages *stages, uint32_t first,
                       uint32_t *used, struct stage_chain *chain)
{
    for (uint32_t k = 0; k < stages->stage_count; k++) {
        const struct stages_stage *cut = &stages->stages[k];
        const struct chain_group *group = &cuts->groups[cut->group];
        struct chain_stage *stage = &chain->stages[chain->stage_count++];
        assert(used[cut->group] < group->count && chain->stage_count <= CHAIN_STAGES);
        *stage = (struct chain_stage){.one = chain_one(cuts, cut->group),
                                      .width = group->width,
                                      .first = cut->first + first,
                                      .count = cut->count};
        memcpy(stage->devices, &group->devices[used[cut->group]++ * group->width],
               group->width * sizeof *stage->devices);
        chain->row_count += group->width;
    }
}

static uint32_t stage_at(const struct stage_chain *chain, const struct step *step)
{
    for (uint32_t k = 0; k < chain->stage_count; k++) {
        if (is_of_stage(chain, &chain->stages[k], step)) {
            return k;
        }
    }
    return 0;
}

static void add_late(struct stage_chain *chain, const struct step *from, const struct step *to,
                     double bytes, bool is_after)
{
    uint32_t source = stage_at(chain, from);
    uint32_t target = stage_at(chain, to);
    if (source != target && chain->late_count < CHAIN_LATE) {
        chain->late[chain->late_count++] = (struct chain_late){source, target, bytes, is_after};
    }
}

/* Finds weights in two stages: their gradients are joined once, and sent back changed. */
static void find_late(struct stage_chain *chain)
{
    const struct steps *steps = chain->one->steps;
    for (size_t i = 0; i < steps->edge_count; i++) {
        const struct step *from = &steps->steps[steps->edges[i].from];
        const struct step *to = &steps->steps[steps->edges[i].to];
        if (to->phase == STEP_ONCE && from->phase != STEP_ONCE) {
            add_late(chain, from, to, (double)steps->edges[i].bytes, false);
        }
    }
    for (size_t s = 0; s < steps->step_count; s++) {
        const struct step *step = &steps->steps[s];
        if (step->renewed_by > 0) {
            add_late(chain, &steps->steps[step->renewed_by], step, (double)step->renewed_bytes,
                     true);
        }
    }
}

/* Returns false when memory is short. An impossible chain has no stages. */
static bool lay_out(struct chain_cuts *cuts, const struct chain_candidate *candidate,
                    struct stage_chain *chain)
{
    uint32_t used[STAGES_GROUPS] = {0};
    bool *has_set = calloc(cuts->ones[0]->steps->set_count + 1, sizeof *has_set);
    *chain = (struct stage_chain){.one = cuts->ones[0],
                                  .micro_batches = candidate->micro_batches,
                                  .items = candidate->items,
                                  .rounds = cuts->rounds,
                                  .has_backward = cuts->has_backward,
                                  .start_bytes = cuts->figures->start_bytes,
                                  .kv_bytes = cuts->figures->kv_bytes};
    if (has_set == NULL) {
        return false;
    }
    add_stages(cuts, &candidate->forward, 0, used, chain);
    chain->forward_count = chain->stage_count;
    if (candidate->is_apart) {
        memcpy(used, candidate->first_of, sizeof used);
        chain->loop = chain->stage_count;
        add_stages(cuts, &candidate->decode, 1, used, chain);
    }
    bool can = true;
    for (uint32_t k = 0; can && k < chain->stage_count; k++) {
        can = fill_stage(cuts, chain, k, has_set);
    }
    find_late(chain);
    chain->stage_count = can ? chain->stage_count : 0;
    free(has_set);
    return true;
}

/* ---------------------------------------------------------------- whole */

/* Estimates the effort of one run. */
static uint64_t effort_of(const struct stage_chain *chain)
{
    const uint64_t count = (uint64_t)chain->micro_batches;
    const uint64_t rounds = chain->rounds < CHAIN_ROUNDS ? (uint64_t)chain->rounds : CHAIN_ROUNDS;
    const uint64_t hops = chain->forward_count * (chain->has_backward ? 2u : 1u) +
                          rounds * (chain->stage_count - chain->loop);
    return 3 * count * count * hops + chain->stage_count * chain->one->steps->step_count;
}

/* Counts the unused devices of each group for a part of the chain. */
static void count_spare(const struct chain_cuts *cuts, const struct chain_candidate *candidate,
                        bool is_decode, uint32_t spare[STAGES_GROUPS])
{
    const struct stages *stages = is_decode ? &candidate->decode : &candidate->forward;
    for (size_t g = 0; g < STAGES_GROUPS; g++) {
        const uint32_t all = g < cuts->group_count ? cuts->groups[g].count : 0;
        spare[g] = !candidate->is_apart ? all
                   : is_decode          ? all - candidate->first_of[g]
                                        : candidate->first_of[g];
    }
    for (uint32_t k = 0; k < stages->stage_count; k++) {
        spare[stages->stages[k].group]--;
    }
}

/* Makes moves while they help: of the forward stages, or of separate stages of decode. Returns
 * false when memory is short. */
static bool climb(struct chain_cuts *cuts, bool is_decode, struct chain_candidate *candidate,
                  struct plan_outcome *best, struct stage_chain *chain, struct chain_run *run)
{
    struct chain_candidate *next = cuts->next;
    struct stages *now = is_decode ? &candidate->decode : &candidate->forward;
    struct plan_use uses[PLAN_DEVICES];
    struct plan_outcome outcome;
    uint32_t spare[STAGES_GROUPS];
    uint32_t since = 0; /* moves since the last that helped */
    count_spare(cuts, candidate, is_decode, spare);
    for (uint32_t move = 0; since < chain_moves(now) && cuts->effort > 0; move++) {
        since++;
        *next = *candidate;
        if (!chain_move(now, move % chain_moves(now), spare,
                        is_decode ? &next->decode : &next->forward)) {
            continue;
        }
        if (!lay_out(cuts, next, chain)) {
            return false;
        }
        const uint64_t effort = effort_of(chain);
        cuts->effort -= effort < cuts->effort ? effort : cuts->effort;
        bool can = chain->row_count > 1 && chain->stage_count > 0 &&
                   chain_time(chain, run, uses, &outcome);
        if (!can && run->is_out_of_memory) {
            return false;
        }
        if (can && plan_outcome_is_better(cuts->whole->input, &outcome, best)) {
            *candidate = *next;
            *best = outcome;
            since = 0;
            count_spare(cuts, candidate, is_decode, spare);
        }
    }
    return true;
}

/* Improves a candidate by moves. A cut for a limit has a small first stage, and its order of
 * devices serves the limit alone. */
static bool improve(struct chain_cuts *cuts, struct chain_candidate *candidate,
                    struct plan_outcome *outcome, struct stage_chain *chain, struct chain_run *run,
                    struct layout_found *found)
{
    struct plan_outcome again;
    run->is_out_of_memory = false;
    return chain_cut_at(cuts, candidate->micro_batches, candidate->variation) &&
           climb(cuts, false, candidate, outcome, chain, run) &&
           (!candidate->is_apart || climb(cuts, true, candidate, outcome, chain, run)) &&
           (!plan_outcome_is_better(cuts->whole->input, outcome, &found->outcome) ||
            (lay_out(cuts, candidate, chain) && chain->stage_count > 0 &&
             chain_weigh(chain, run, found, &again)));
}

/* Returns the best known outcome, or candidate_count. */
static size_t best_of(const struct chain_cuts *cuts, const struct plan_outcome *outcomes)
{
    size_t best = cuts->candidate_count;
    for (size_t i = 0; i < cuts->candidate_count; i++) {
        bool is_known = outcomes[i].makespan_s.source != FIGURE_UNKNOWN;
        if (is_known &&
            (best == cuts->candidate_count ||
             plan_outcome_is_better(cuts->whole->input, &outcomes[i], &outcomes[best]))) {
            best = i;
        }
    }
    return best;
}

static bool run_candidates(struct chain_cuts *cuts, struct layout_found *found)
{
    struct stage_chain *chain = calloc(1, sizeof *chain);
    struct chain_run *run = calloc(1, sizeof *run);
    struct plan_outcome *outcomes = calloc(cuts->candidate_count + 1, sizeof *outcomes);
    bool ok =
        chain != NULL && run != NULL && outcomes != NULL && chain_run_init(run, cuts->whole->input);
    for (size_t i = 0; ok && i < cuts->candidate_count; i++) {
        struct chain_candidate *candidate = &cuts->candidates[i];
        outcomes[i].makespan_s.source = FIGURE_UNKNOWN;
        ok = chain_cut_at(cuts, candidate->micro_batches, candidate->variation) &&
             lay_out(cuts, candidate, chain);
        if (ok && chain->row_count > 1 && chain->stage_count > 0) {
            ok = chain_weigh(chain, run, found, &outcomes[i]);
        }
    }
    cuts->effort = CLIMB;
    for (int i = 0; ok && i < STARTS && cuts->effort > 0; i++) {
        size_t best = best_of(cuts, outcomes);
        if (best == cuts->candidate_count) {
            break;
        }
        ok = improve(cuts, &cuts->candidates[best], &outcomes[best], chain, run, found);
        outcomes[best].makespan_s.source = FIGURE_UNKNOWN;
    }
    if (run != NULL) {
        chain_run_fini(run);
    }
    free(outcomes);
    free(run);
    free(chain);
    return ok;
}

/* Notes why a variant has no result, unless one with the same beginning has one. */
static void note_none(const struct chain_cuts *cuts, const char *found_by, size_t alike,
                      enum plan_status status, const char *why, struct layout_found *found)
{
    struct plan_variant none = {PLAN_PIPELINE,
                                found_by,
                                {.status = status,
                                 .makespan_s = {.source = FIGURE_UNKNOWN},
                                 .energy_j = {.source = FIGURE_UNKNOWN},
                                 .price_micro = PLAN_UNPRICED,
                                 .merit = INFINITY}};
    bool is_found = false;
    for (size_t i = 0; i < found->variants.count; i++) {
        const char *name = found->variants.list[i].found_by;
        is_found = is_found || strncmp(name, found_by, alike) == 0;
    }
    if (!is_found) {
        problem_set(&none.outcome.problem, "%s", why);
        plan_note(&found->variants, cuts->whole->input, &none);
    }
}

/* Notes the missing variants: rounds on devices of their own, and divided layers. */
static void note_others(const struct chain_cuts *cuts, struct layout_found *found)
{
    const bool is_divided = cuts->undivided.text[0] == '\0';
    if (cuts->whole->input->device_count < 2) {
        return;
    }
    if (cuts->rounds > 0) {
        note_none(cuts, CHAIN_APART, sizeof CHAIN_APART, PLAN_NO_ROOM,
                  "no two parts of the devices run, hold and link all of the stages", found);
    }
    note_none(cuts, "layers divided over devices", strlen("layers divided"),
              is_divided ? PLAN_NO_ROOM : PLAN_INDIVISIBLE,
              is_divided ? "no devices run, hold and link all of the stages" : cuts->undivided.text,
              found);
}

bool plan_stage_chain(const struct plan_case *of, struct layout_found *ret_found)
{
    struct chain_cuts *cuts = calloc(1, sizeof *cuts);
    *ret_found = (struct layout_found){
        .outcome = {.status = PLAN_NO_ROOM, .price_micro = PLAN_UNPRICED, .merit = INFINITY}};
    if (cuts == NULL) {
        return false;
    }
    cuts->whole = of;
    bool ok = chain_cut(cuts) && run_candidates(cuts, ret_found);
    if (ok && ret_found->outcome.makespan_s.source == FIGURE_UNKNOWN) {
        problem_set(&ret_found->outcome.problem,
                    "no stages were found that run, fit and are linked");
    }
    note_others(cuts, ret_found);
    chain_cuts_fini(cuts);
    free(cuts);
    return ok;
}

/* ---------------------------------------------------------------- explanation */

static double memory_of(const struct plan_input *input, uint32_t device)
{
    const struct figure *memory = &input->devices[device].cost->profile->figures[FIGURE_MEMORY];
    return memory->source == FIGURE_UNKNOWN ? INFINITY : memory->value;
}

/* Returns the most weights of a step; a column is the least that a stage may be. */
static double largest_part(const struct steps *steps)
{
    double most = 0;
    for (size_t s = 0; s < steps->step_count; s++) {
        most = fmax(most, (double)steps->steps[s].weight_bytes);
    }
    return most;
}

/* Lowers it to a team's share, over all team widths. Returns false when memory is short. */
static bool least_part(const struct plan_case *of, double *ret_bytes)
{
    struct plan_teams *teams = calloc(1, sizeof *teams);
    bool ok = teams != NULL;
    for (uint32_t width = 2; ok && width <= TEAM_MOST; width *= 2) {
        struct plan_case *one = NULL;
        plan_teams_find(of, width, teams);
        ok = teams->count == 0 || plan_case_chain(of, 1, teams, PLAN_AT_LEAST, &one, NULL);
        *ret_bytes = one != NULL ? fmin(*ret_bytes, largest_part(one->steps)) : *ret_bytes;
        plan_case_destroy(&one);
    }
    free(teams);
    return ok;
}

bool plan_stage_chain_explain(const struct plan_case *of, struct problem *ret_why)
{
    const struct plan_input *input = of->input;
    struct plan_case *one = NULL;
    uint32_t largest = 0;
    double weights = 0;
    if (!plan_case_chain(of, 1, NULL, PLAN_AT_LEAST, &one, NULL)) {
        return false;
    }
    const double whole = one != NULL ? largest_part(one->steps) : 0;
    double part = whole;
    if (!least_part(of, &part)) {
        plan_case_destroy(&one);
        return false;
    }
    for (uint32_t d = 1; d < input->device_count; d++) {
        largest = memory_of(input, d) > memory_of(input, largest) ? d : largest;
    }
    for (size_t i = 0; one != NULL && i < one->steps->set_count; i++) {
        weights += (double)one->steps->sets[i];
    }
    double memory = memory_of(input, largest);
    double count = ceil(weights / memory);
    if (one != NULL && count > 1 && memory < INFINITY) {
        char text[sizeof ret_why->text];
        char too_large[80] = "";
        if (part > memory) {
            (void)snprintf(too_large, sizeof too_large,
                           "; a part of %.3g GB, which is not divided%s, fits none", part / 1e9,
                           part < whole ? " further" : "");
        }
        (void)snprintf(text, sizeof text, "%s", ret_why->text);
        problem_set(ret_why,
                    "%.230s; in stages, its weights of %.3g GB take %.0f of %.40s at least, of "
                    "%.3g GB each%s%s",
                    text, weights / 1e9, count, input->devices[largest].name, memory / 1e9,
                    count > PLAN_DEVICES ? ", and 64 are planned for at most" : "", too_large);
    }
    plan_case_destroy(&one);
    return true;
}
