/* This file puts stages of a line (plan_line.h) on devices, and computes their work, memory and
 * outcome. */
#include "planner/layout/plan_line.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STARTS = 3,       /* number of best results that are improved */
    CLIMB = 16000000, /* effort of all improvements; a unit takes about a nanosecond */
};

/* ---------------------------------------------------------------- posts */

static bool is_of_post(const struct line *line, const struct line_post *post,
                       const struct step *step)
{
    bool is_ring = post - line->posts >= (ptrdiff_t)line->ring;
    bool is_there = post - line->posts < (ptrdiff_t)line->there_count;
    bool is_around = step->phase == STEP_AROUND;
    uint32_t end = post->first + post->count;
    bool is_last = line->ring > 0 && is_ring && end == line->one->steps->column_count;
    bool is_within = step->column >= post->first && step->column < end;
    return (is_around ? is_ring : is_there) &&
           (is_within || (is_last && is_around && step->column == 0));
}

static void add_step(const struct line *line, struct line_post *post, size_t s, bool *has_slow)
{
    const struct plan_cost *cost = plan_cost_at(post->one, s, post->devices[0]);
    const struct step *step = &post->one->steps->steps[s];
    double often = step->phase == STEP_AROUND ? (double)line->rounds : 1;
    if (cost->is_left_out) {
        return;
    }
    post->takes_s[step->phase] += cost->here.time_s.value / often;
    post->slow_s[step->phase] += cost->here.p90_s / often;
    *has_slow = *has_slow && cost->here.p90_s > 0;
    plan_add(&post->rests_on, &cost->here.time_s);
    plan_add(step->phase == STEP_ONCE ? &post->once_j : &post->energy_j, &cost->here.energy_j);
    post->samples = cost->samples < post->samples ? cost->samples : post->samples;
    post->is_widened = post->is_widened || cost->is_widened;
    post->told_bytes += post->width > 1 ? plan_team_bytes(step, post->width) : 0;
}

/* Adds the memory for weights, and for each micro-batch. */
static void add_held(const struct line *line, struct line_post *post, bool *has_set)
{
    const struct steps *steps = post->one->steps;
    double held[2] = {0, 0};
    double working = 0;
    memset(has_set, 0, steps->set_count * sizeof *has_set);
    for (size_t s = 0; s < steps->step_count; s++) {
        const struct step *step = &steps->steps[s];
        if (!is_of_post(line, post, step)) {
            continue;
        }
        bool is_held = step->phase == STEP_THERE || step->phase == STEP_AROUND;
        double own = (double)step->held_bytes - post->one->kept[s];
        for (uint32_t i = step->first_set; i < step->first_set + step->set_count; i++) {
            post->fixed_bytes += has_set[i] ? 0 : (double)steps->sets[i];
            has_set[i] = true;
        }
        post->fixed_bytes += post->one->kept[s];
        held[step->phase == STEP_AROUND] += is_held ? fmax(own, 0) : 0;
        working = fmax(working, (double)step->working_bytes + (is_held ? 0 : fmax(own, 0)));
    }
    double within = 0;
    for (size_t i = 0; i < steps->edge_count; i++) {
        const struct step *from = &steps->steps[steps->edges[i].from];
        const struct step *to = &steps->steps[steps->edges[i].to];
        bool is_flow = from->phase == to->phase && from->phase != STEP_ONCE;
        bool is_within = is_of_post(line, post, from) && is_of_post(line, post, to);
        double often = to->phase == STEP_AROUND ? (double)line->rounds : 1;
        within =
            is_flow && is_within ? fmax(within, (double)steps->edges[i].bytes / often) : within;
    }
    post->held_bytes = fmax(held[0], held[1]);
    post->working_bytes = working + 2 * within;
}

static uint32_t ring_count(const struct line *line)
{
    return line->post_count - line->ring;
}

/* Returns the bytes into a post from another in a phase; around: in each round. */
static double bytes_into(const struct line *line, uint32_t k, enum step_phase phase)
{
    const struct line_post *post = &line->posts[k];
    bool is_ring = line->rounds > 0 && k >= line->ring && ring_count(line) > 1;
    switch (phase) {
    case STEP_THERE:
        return k > 0 && k < line->there_count ? post->there_bytes : 0;
    case STEP_AROUND:
        return is_ring ? post->round_bytes : 0;
    case STEP_BACK:
        return line->has_back && k + 1 < line->there_count ? post->back_bytes : 0;
    case STEP_ONCE:
    case STEP_PHASES:
        break;
    }
    return 0;
}

/* Data at one team member is handed on to all; the team does nothing else meanwhile. */
static void add_spread(struct line *line, uint32_t k, bool has_slow)
{
    struct line_post *post = &line->posts[k];
    double before_s = 0;
    double after_s = 0;
    for (enum step_phase phase = STEP_THERE; phase < STEP_ONCE; phase++) {
        double often = phase == STEP_AROUND ? (double)line->rounds : 1;
        double spread_s = plan_team_spread_s(line->one->input, post->devices, post->width,
                                             bytes_into(line, k, phase));
        before_s += often * post->takes_s[phase];
        post->takes_s[phase] += spread_s;
        post->slow_s[phase] += has_slow ? spread_s : 0;
        after_s += often * post->takes_s[phase];
    }
    post->energy_j.value *= before_s > 0 ? after_s / before_s : 1;
}

static bool fill_post(const struct line_cuts *cuts, struct line *line, uint32_t k, bool *has_set)
{
    const struct line_figures *figures = cuts->figures;
    struct line_post *post = &line->posts[k];
    bool is_ring = line->rounds > 0 && k >= line->ring;
    bool has_slow = true;
    uint32_t first = post->first;
    post->first_row = k == 0 ? 0 : line->posts[k - 1].first_row + line->posts[k - 1].width;
    post->rests_on = (struct figure){.source = FIGURE_MEASURED};
    post->energy_j = post->once_j = post->rests_on;
    post->samples = UINT32_MAX;
    for (size_t s = 0; s < line->one->steps->step_count; s++) {
        if (is_of_post(line, post, &line->one->steps->steps[s])) {
            if (!line_can_run(post->one, s, post->devices[0])) {
                return false;
            }
            add_step(line, post, s, &has_slow);
        }
    }
    post->samples = post->samples == UINT32_MAX ? 0 : post->samples;
    if (!has_slow) {
        memset(post->slow_s, 0, sizeof post->slow_s);
    }
    add_held(line, post, has_set);
    post->there_bytes = k > 0 && k < line->there_count ? figures->there_bytes[first] : 0;
    post->back_bytes = line->has_back ? figures->back_bytes[first + post->count - 1] : 0;
    if (is_ring) {
        bool is_first = k == line->ring;
        post->round_bytes = is_first && line->ring == 0 ? (double)line->one->steps->round_bytes
                                                        : figures->round_bytes[first];
    }
    add_spread(line, k, has_slow);
    return true;
}

static void add_posts(const struct line_cuts *cuts, const struct stages *stages, uint32_t first,
                      uint32_t *used, struct line *line)
{
    for (uint32_t k = 0; k < stages->stage_count; k++) {
        const struct stages_stage *stage = &stages->stages[k];
        const struct line_group *group = &cuts->groups[stage->group];
        struct line_post *post = &line->posts[line->post_count++];
        assert(used[stage->group] < group->count && line->post_count <= LINE_POSTS);
        *post = (struct line_post){.one = line_one(cuts, stage->group),
                                   .width = group->width,
                                   .first = stage->first + first,
                                   .count = stage->count};
        memcpy(post->devices, &group->devices[used[stage->group]++ * group->width],
               group->width * sizeof *post->devices);
        line->row_count += group->width;
    }
}

static uint32_t post_at(const struct line *line, const struct step *step)
{
    for (uint32_t k = 0; k < line->post_count; k++) {
        if (is_of_post(line, &line->posts[k], step)) {
            return k;
        }
    }
    return 0;
}

static void add_late(struct line *line, const struct step *from, const struct step *to,
                     double bytes, bool is_after)
{
    uint32_t source = post_at(line, from);
    uint32_t target = post_at(line, to);
    if (source != target && line->late_count < LINE_LATE) {
        line->late[line->late_count++] = (struct line_late){source, target, bytes, is_after};
    }
}

/* Finds weights in two posts: their gradients are joined once, and sent back changed. */
static void find_late(struct line *line)
{
    const struct steps *steps = line->one->steps;
    for (size_t i = 0; i < steps->edge_count; i++) {
        const struct step *from = &steps->steps[steps->edges[i].from];
        const struct step *to = &steps->steps[steps->edges[i].to];
        if (to->phase == STEP_ONCE && from->phase != STEP_ONCE) {
            add_late(line, from, to, (double)steps->edges[i].bytes, false);
        }
    }
    for (size_t s = 0; s < steps->step_count; s++) {
        const struct step *step = &steps->steps[s];
        if (step->renewed_by > 0) {
            add_late(line, &steps->steps[step->renewed_by], step, (double)step->renewed_bytes,
                     true);
        }
    }
}

/* Returns false when memory is short. An impossible line has no posts. */
static bool lay_out(struct line_cuts *cuts, const struct line_candidate *candidate,
                    struct line *line)
{
    uint32_t used[STAGES_GROUPS] = {0};
    bool *has_set = calloc(cuts->ones[0]->steps->set_count + 1, sizeof *has_set);
    *line = (struct line){.one = cuts->ones[0],
                          .micro_batches = candidate->micro_batches,
                          .items = candidate->items,
                          .rounds = cuts->rounds,
                          .has_back = cuts->has_back,
                          .start_bytes = cuts->figures->start_bytes,
                          .kept_bytes = cuts->figures->kept_bytes};
    if (has_set == NULL) {
        return false;
    }
    add_posts(cuts, &candidate->there, 0, used, line);
    line->there_count = line->post_count;
    if (candidate->is_apart) {
        memcpy(used, candidate->first_of, sizeof used);
        line->ring = line->post_count;
        add_posts(cuts, &candidate->around, 1, used, line);
    }
    bool can = true;
    for (uint32_t k = 0; can && k < line->post_count; k++) {
        can = fill_post(cuts, line, k, has_set);
    }
    find_late(line);
    line->post_count = can ? line->post_count : 0;
    free(has_set);
    return true;
}

/* ---------------------------------------------------------------- outcome */

/* Counts data to the first device of a post, which hands it on. Data within one memory is not
 * sent. */
static void count_flow(const struct line *line, uint32_t from, uint32_t to, double bytes,
                       struct plan_use *uses)
{
    const struct plan_device *devices = line->one->input->devices;
    const struct line_post *target = &line->posts[to];
    uint32_t source = line->posts[from].devices[0];
    if (bytes > 0 && devices[source].memory != devices[target->devices[0]].memory) {
        uses[source].bytes_out += bytes;
        uses[target->devices[0]].bytes_in += bytes;
    }
    for (uint32_t i = 0; bytes > 0 && i < target->width; i++) {
        uses[target->devices[i]].bytes_in += i > 0 ? bytes : 0;
        uses[target->devices[i]].bytes_out += plan_team_receivers(i, target->width) * bytes;
    }
}

/* Counts data that is divided over the devices of both posts. */
static void count_parts(const struct line *line, uint32_t from, uint32_t to, double bytes,
                        struct plan_use *uses)
{
    uint32_t parts = line_parts(line, from, to);
    for (uint32_t i = 0; i < parts; i++) {
        uses[line_part(line, from, i, parts)].bytes_out += bytes / parts;
        uses[line_part(line, to, i, parts)].bytes_in += bytes / parts;
    }
}

/* Counts the bytes of all micro-batches, by device. */
static void count_bytes(const struct line *line, struct plan_use *uses)
{
    double count = (double)line->micro_batches;
    for (uint32_t k = 0; k < line->post_count; k++) {
        const struct line_post *post = &line->posts[k];
        uint32_t last = line->post_count - 1;
        uint32_t before = k == line->ring ? last : k - 1; /* in the loop */
        double around = bytes_into(line, k, STEP_AROUND);
        double back = bytes_into(line, k, STEP_BACK);
        double there = bytes_into(line, k, STEP_THERE);
        if (there > 0) {
            count_flow(line, k - 1, k, count * there, uses);
        }
        if (back > 0) {
            count_flow(line, k + 1, k, count * back, uses);
        }
        if (around > 0) {
            count_flow(line, before, k, count * (double)line->rounds * around, uses);
        }
        for (uint32_t to = line->ring; line->ring > 0 && k < line->ring && to < line->post_count;
             to++) {
            count_parts(line, k, to, count * line_kept(line, k, to), uses);
        }
        for (uint32_t i = 0; i < post->width; i++) {
            uses[post->devices[i]].bytes_in += count * post->told_bytes;
            uses[post->devices[i]].bytes_out += count * post->told_bytes;
        }
    }
}

/* Returns the memory for data in and out: one item in use, one on its way. */
static double room_of(const struct line *line, uint32_t k)
{
    const struct line_post *post = &line->posts[k];
    double there = k + 1 < line->there_count ? line->posts[k + 1].there_bytes : 0;
    double back = k > 0 && line->has_back ? line->posts[k - 1].back_bytes : 0;
    double next = k + 1 < line->post_count && k >= line->ring ? line->posts[k + 1].round_bytes : 0;
    return 2 * (post->there_bytes + there + back + post->back_bytes + post->round_bytes + next);
}

static bool fill_uses(const struct line_run *run, struct plan_use uses[PLAN_DEVICES],
                      struct figure *makespan_s)
{
    const struct line *line = run->line;
    const struct plan_input *input = line->one->input;
    double count = (double)line->micro_batches;
    bool fits = true;
    memset(uses, 0, PLAN_DEVICES * sizeof *uses);
    *makespan_s = (struct figure){.source = FIGURE_MEASURED};
    for (uint32_t k = 0; k < line->post_count; k++) {
        const struct line_post *post = &line->posts[k];
        const struct figure *memory =
            &input->devices[post->devices[0]].cost->profile->figures[FIGURE_MEMORY];
        struct plan_use *use = &uses[post->devices[0]];
        struct figure rests_on = post->rests_on;
        double held = line->has_back ? (double)run->most_held[k] : count;
        double energy_j = count * post->energy_j.value;
        rests_on.value = 0;
        use->row_count = 1;
        use->first_s = run->first_use_s[k];
        use->last_s = run->last_use_s[k];
        use->busy_s = count * (post->takes_s[STEP_THERE] + post->takes_s[STEP_BACK] +
                               (double)line->rounds * post->takes_s[STEP_AROUND]) +
                      post->takes_s[STEP_ONCE];
        use->memory_bytes =
            post->fixed_bytes + held * post->held_bytes + post->working_bytes + room_of(line, k);
        use->energy_j = post->energy_j;
        use->energy_j.value = energy_j;
        plan_add(&use->energy_j, &post->once_j);
        plan_add(makespan_s, &rests_on);
        fits = fits && (memory->source == FIGURE_UNKNOWN || use->memory_bytes <= memory->value);
        for (uint32_t i = 1; i < post->width; i++) {
            uses[post->devices[i]] = *use;
        }
    }
    count_bytes(line, uses);
    makespan_s->value = run->makespan_s;
    return fits;
}

/* Names look like "embed, layers 1-9" and "decode: layers 71-80, head (2 of 4)". */
static void name_post(const struct line *line, uint32_t k, uint32_t number,
                      char ret_what[PLAN_WHAT_SIZE])
{
    const struct line_post *post = &line->posts[k];
    uint32_t last = line->one->steps->column_count - 1;
    uint32_t end = post->first + post->count;
    uint32_t from = post->first > 0 ? post->first : 1;
    uint32_t until = end <= last ? end - 1 : last - 1;
    bool is_ring = line->ring > 0 && k >= line->ring;
    char layers[32] = "";
    char part_of[16] = "";
    const char *part = line->ring == 0 ? "" : is_ring ? "decode: " : "prefill: ";
    if (from == until) {
        (void)snprintf(layers, sizeof layers, "layer %u", from);
    } else if (from < until) {
        (void)snprintf(layers, sizeof layers, "layers %u-%u", from, until);
    }
    bool has_layers = layers[0] != '\0';
    bool is_last = end == last + 1 && (is_ring || line->ring == 0);
    const char *first_column = line->one->steps->first_column;
    const char *first_text = post->first > 0 ? "" : first_column != NULL ? first_column : "embed";
    const char *comma = post->first == 0 && (has_layers || is_last) ? ", " : "";
    const char *last_text = !is_last && (has_layers || post->first == 0) ? ""
                            : has_layers                                 ? ", head"
                                                                         : "head";
    if (post->width > 1) {
        (void)snprintf(part_of, sizeof part_of, " (%u of %u)", number + 1, post->width);
    }
    (void)snprintf(ret_what, PLAN_WHAT_SIZE, "%s%s%s%s%s%s", part, first_text, comma, layers,
                   last_text, part_of);
}

static const char apart[] = "prefill and decode apart";

/* Returns the width of the widest team. */
static uint32_t width_of(const struct line *line)
{
    uint32_t most = 1;
    for (uint32_t k = 0; k < line->post_count; k++) {
        most = line->posts[k].width > most ? line->posts[k].width : most;
    }
    return most;
}

static const char *way_of(const struct line *line)
{
    static const char *const divided[TEAM_MOST + 1] = {[2] = "layers divided over 2 devices",
                                                       [4] = "layers divided over 4 devices",
                                                       [8] = "layers divided over 8 devices"};
    uint32_t width = width_of(line);
    return width > 1          ? divided[width]
           : line->ring > 0   ? apart
           : line->has_back   ? "stages there and back"
           : line->rounds > 0 ? "stages around"
                              : "stages";
}

static void fill_rows(const struct line_run *run, uint32_t k, struct plan *plan)
{
    const struct line *line = run->line;
    const struct plan_input *input = line->one->input;
    const struct line_post *post = &line->posts[k];
    for (uint32_t i = 0; i < post->width; i++) {
        const struct plan_use *use = &plan->uses[post->devices[i]];
        struct plan_row *row = &plan->rows[post->first_row + i];
        *row = (struct plan_row){.device = post->devices[i],
                                 .step_count = (uint32_t)input->steps->step_count,
                                 .items = plan_items(input),
                                 .team_size = post->width,
                                 .team_number = i,
                                 .start_s = run->first_s[k],
                                 .finish_s = run->last_s[k],
                                 .busy_s = use->busy_s,
                                 .time_s = post->rests_on,
                                 .samples = post->samples,
                                 .bytes_in = use->bytes_in,
                                 .energy_j = use->energy_j,
                                 .is_widened = post->is_widened};
        row->time_s.value = use->busy_s;
        name_post(line, k, i, row->what);
    }
}

/* Returns the number of transfers within teams. */
static size_t told_of(const struct line *line)
{
    size_t count = 0;
    for (uint32_t k = 0; k < line->post_count; k++) {
        count += line->posts[k].told_bytes > 0 ? line->posts[k].width : 0;
    }
    return count;
}

static void fill_transfers(const struct line_run *run, struct plan *plan)
{
    const struct line *line = run->line;
    struct plan_transfer *next = plan->transfers + run->transfer_count;
    memcpy(plan->transfers, run->transfers, run->transfer_count * sizeof *plan->transfers);
    for (uint32_t k = 0; k < line->post_count; k++) {
        const struct line_post *post = &line->posts[k];
        if (post->told_bytes > 0) {
            plan_team_transfers(line->one->input, plan->rows, post->first_row,
                                (double)line->micro_batches * post->told_bytes, next);
            next += post->width;
        }
    }
}

static void fill_waits(const struct line_run *run, uint32_t k, struct plan *plan)
{
    const struct line_post *post = &run->line->posts[k];
    for (uint32_t row = post->first_row; row < post->first_row + post->width; row++) {
        for (size_t i = 0; i < run->gap_count; i++) {
            const struct line_gap *gap = &run->gaps[i];
            if (gap->post == k) {
                plan->waits[plan->wait_count++] =
                    (struct plan_wait){row, gap->from_s, gap->until_s};
            }
        }
    }
}

static struct plan *plan_of_run(const struct line_run *run, const struct plan_use *uses,
                                const struct plan_outcome *outcome)
{
    const struct line *line = run->line;
    const struct plan_case *one = line->one;
    struct plan *plan =
        plan_alloc(one->input, line->row_count, run->transfer_count + told_of(line));
    if (plan == NULL) {
        return NULL;
    }
    plan->waits = calloc(run->gap_count * width_of(line) + 1, sizeof *plan->waits);
    if (plan->waits == NULL) {
        plan_destroy(&plan);
        return NULL;
    }
    plan->form = PLAN_PIPELINE;
    plan->found_by = way_of(line);
    plan->total = *outcome;
    plan->left_out = one->left_out;
    plan->micro_batches = line->micro_batches;
    plan->micro_batch_items = line->items;
    memcpy(plan->uses, uses, one->input->device_count * sizeof *uses);
    for (uint32_t k = 0; k < line->post_count; k++) {
        fill_rows(run, k, plan);
        fill_waits(run, k, plan);
    }
    fill_transfers(run, plan);
    plan_sort_transfers(plan);
    return plan;
}

static bool has_slow(const struct line *line)
{
    bool has = true;
    for (uint32_t k = 0; k < line->post_count; k++) {
        double sum = 0;
        for (int p = 0; p < STEP_PHASES; p++) {
            sum += line->posts[k].slow_s[p];
        }
        has = has && sum > 0;
    }
    return has;
}

/* Runs the line. Returns false when it does not fit, or has a missing link or no memory. */
static bool time_line(const struct line *line, struct line_run *run,
                      struct plan_use uses[PLAN_DEVICES], struct plan_outcome *ret_outcome)
{
    struct figure makespan_s;
    if (!line_run(run, line, false) || !fill_uses(run, uses, &makespan_s)) {
        return false;
    }
    plan_sum_up(line->one->input, uses, &makespan_s, ret_outcome);
    return true;
}

/* Runs the line, and keeps it in `found` if it is better. `ret_outcome` is unknown if the line is
 * impossible. */
static bool weigh(const struct line *line, struct line_run *run, struct plan_found *found,
                  struct plan_outcome *ret_outcome)
{
    const struct plan_input *input = line->one->input;
    struct plan_use uses[PLAN_DEVICES];
    struct plan_outcome outcome;
    double p90_s = has_slow(line) && line_run(run, line, true) ? run->makespan_s : 0;
    ret_outcome->makespan_s.source = FIGURE_UNKNOWN;
    if (!time_line(line, run, uses, &outcome)) {
        return !run->is_out_of_memory;
    }
    outcome.p90_s = p90_s;
    *ret_outcome = outcome;
    plan_note(&found->variants, input,
              &(struct plan_variant){PLAN_PIPELINE, way_of(line), outcome});
    if (found->outcome.makespan_s.source == FIGURE_UNKNOWN ||
        plan_outcome_is_better(input, &outcome, &found->outcome)) {
        plan_destroy(&found->plan);
        found->outcome = outcome;
        if (outcome.status == PLAN_OK) {
            found->plan = plan_of_run(run, uses, &outcome);
            return found->plan != NULL;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- whole */

/* Estimates the effort of one run. */
static uint64_t effort_of(const struct line *line)
{
    const uint64_t count = (uint64_t)line->micro_batches;
    const uint64_t rounds = line->rounds < LINE_ROUNDS ? (uint64_t)line->rounds : LINE_ROUNDS;
    const uint64_t hops =
        line->there_count * (line->has_back ? 2u : 1u) + rounds * (line->post_count - line->ring);
    return 3 * count * count * hops + line->post_count * line->one->steps->step_count;
}

/* Counts the unused devices of each group for a part of the line. */
static void count_spare(const struct line_cuts *cuts, const struct line_candidate *candidate,
                        bool is_around, uint32_t spare[STAGES_GROUPS])
{
    const struct stages *stages = is_around ? &candidate->around : &candidate->there;
    for (size_t g = 0; g < STAGES_GROUPS; g++) {
        const uint32_t all = g < cuts->group_count ? cuts->groups[g].count : 0;
        spare[g] = !candidate->is_apart ? all
                   : is_around          ? all - candidate->first_of[g]
                                        : candidate->first_of[g];
    }
    for (uint32_t k = 0; k < stages->stage_count; k++) {
        spare[stages->stages[k].group]--;
    }
}

/* Makes moves while they help: of the stages there, or of separate stages around. Returns false
 * when memory is short. */
static bool climb(struct line_cuts *cuts, bool is_around, struct line_candidate *candidate,
                  struct plan_outcome *best, struct line *line, struct line_run *run)
{
    struct line_candidate *next = cuts->next;
    struct stages *now = is_around ? &candidate->around : &candidate->there;
    struct plan_use uses[PLAN_DEVICES];
    struct plan_outcome outcome;
    uint32_t spare[STAGES_GROUPS];
    uint32_t since = 0; /* moves since the last that helped */
    count_spare(cuts, candidate, is_around, spare);
    for (uint32_t move = 0; since < line_moves(now) && cuts->effort > 0; move++) {
        since++;
        *next = *candidate;
        if (!line_move(now, move % line_moves(now), spare,
                       is_around ? &next->around : &next->there)) {
            continue;
        }
        if (!lay_out(cuts, next, line)) {
            return false;
        }
        const uint64_t effort = effort_of(line);
        cuts->effort -= effort < cuts->effort ? effort : cuts->effort;
        bool can =
            line->row_count > 1 && line->post_count > 0 && time_line(line, run, uses, &outcome);
        if (!can && run->is_out_of_memory) {
            return false;
        }
        if (can && plan_outcome_is_better(cuts->whole->input, &outcome, best)) {
            *candidate = *next;
            *best = outcome;
            since = 0;
            count_spare(cuts, candidate, is_around, spare);
        }
    }
    return true;
}

/* Improves a candidate by moves. A cut for a limit has a small first stage, and its order of
 * devices serves the limit alone. */
static bool improve(struct line_cuts *cuts, struct line_candidate *candidate,
                    struct plan_outcome *outcome, struct line *line, struct line_run *run,
                    struct plan_found *found)
{
    struct plan_outcome again;
    run->is_out_of_memory = false;
    return line_cut_at(cuts, candidate->micro_batches, candidate->variation) &&
           climb(cuts, false, candidate, outcome, line, run) &&
           (!candidate->is_apart || climb(cuts, true, candidate, outcome, line, run)) &&
           (!plan_outcome_is_better(cuts->whole->input, outcome, &found->outcome) ||
            (lay_out(cuts, candidate, line) && line->post_count > 0 &&
             weigh(line, run, found, &again)));
}

/* Returns the best known outcome, or kept_count. */
static size_t best_of(const struct line_cuts *cuts, const struct plan_outcome *outcomes)
{
    size_t best = cuts->kept_count;
    for (size_t i = 0; i < cuts->kept_count; i++) {
        bool is_known = outcomes[i].makespan_s.source != FIGURE_UNKNOWN;
        if (is_known &&
            (best == cuts->kept_count ||
             plan_outcome_is_better(cuts->whole->input, &outcomes[i], &outcomes[best]))) {
            best = i;
        }
    }
    return best;
}

static bool run_candidates(struct line_cuts *cuts, struct plan_found *found)
{
    struct line *line = calloc(1, sizeof *line);
    struct line_run *run = calloc(1, sizeof *run);
    struct plan_outcome *outcomes = calloc(cuts->kept_count + 1, sizeof *outcomes);
    bool ok =
        line != NULL && run != NULL && outcomes != NULL && line_run_init(run, cuts->whole->input);
    for (size_t i = 0; ok && i < cuts->kept_count; i++) {
        struct line_candidate *candidate = &cuts->kept[i];
        outcomes[i].makespan_s.source = FIGURE_UNKNOWN;
        ok = line_cut_at(cuts, candidate->micro_batches, candidate->variation) &&
             lay_out(cuts, candidate, line);
        if (ok && line->row_count > 1 && line->post_count > 0) {
            ok = weigh(line, run, found, &outcomes[i]);
        }
    }
    cuts->effort = CLIMB;
    for (int i = 0; ok && i < STARTS && cuts->effort > 0; i++) {
        size_t best = best_of(cuts, outcomes);
        if (best == cuts->kept_count) {
            break;
        }
        ok = improve(cuts, &cuts->kept[best], &outcomes[best], line, run, found);
        outcomes[best].makespan_s.source = FIGURE_UNKNOWN;
    }
    if (run != NULL) {
        line_run_fini(run);
    }
    free(outcomes);
    free(run);
    free(line);
    return ok;
}

/* Notes why a variant has no result, unless one with the same beginning has one. */
static void note_none(const struct line_cuts *cuts, const char *found_by, size_t alike,
                      enum plan_status status, const char *why, struct plan_found *found)
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
static void note_others(const struct line_cuts *cuts, struct plan_found *found)
{
    const bool is_divided = cuts->undivided.text[0] == '\0';
    if (cuts->whole->input->device_count < 2) {
        return;
    }
    if (cuts->rounds > 0) {
        note_none(cuts, apart, sizeof apart, PLAN_NO_ROOM,
                  "no two parts of the devices were found on which it runs, fits and is linked",
                  found);
    }
    note_none(cuts, "layers divided over devices", strlen("layers divided"),
              is_divided ? PLAN_NO_ROOM : PLAN_INDIVISIBLE,
              is_divided ? "no devices were found on which it runs, fits and is linked"
                         : cuts->undivided.text,
              found);
}

bool plan_line(const struct plan_case *of, struct plan_found *ret_found)
{
    struct line_cuts *cuts = calloc(1, sizeof *cuts);
    *ret_found = (struct plan_found){
        .outcome = {.status = PLAN_NO_ROOM, .price_micro = PLAN_UNPRICED, .merit = INFINITY}};
    if (cuts == NULL) {
        return false;
    }
    cuts->whole = of;
    bool ok = line_cut(cuts) && run_candidates(cuts, ret_found);
    if (ok && ret_found->outcome.makespan_s.source == FIGURE_UNKNOWN) {
        problem_set(&ret_found->outcome.problem,
                    "no stages were found that run, fit and are linked");
    }
    note_others(cuts, ret_found);
    line_cuts_fini(cuts);
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
    for (uint32_t ways = 2; ok && ways <= TEAM_MOST; ways *= 2) {
        struct plan_case *one = NULL;
        plan_teams_find(of, ways, teams);
        ok = teams->count == 0 || plan_case_line(of, 1, teams, PLAN_AT_LEAST, &one, NULL);
        *ret_bytes = one != NULL ? fmin(*ret_bytes, largest_part(one->steps)) : *ret_bytes;
        plan_case_destroy(&one);
    }
    free(teams);
    return ok;
}

bool plan_line_explain(const struct plan_case *of, struct problem *ret_why)
{
    const struct plan_input *input = of->input;
    struct plan_case *one = NULL;
    uint32_t largest = 0;
    double weights = 0;
    if (!plan_case_line(of, 1, NULL, PLAN_AT_LEAST, &one, NULL)) {
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
