/* This file runs the micro-batches of a chain through its stages (stage_chain.h). */
#include "planner/layout/chain/stage_chain.h"

#include "base/array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLICES = 64, /* slices that show the rounds after the simulated ones */
};
enum { WAITING, RUNNING, TRAVELLING, DONE };

bool chain_run_init(struct chain_run *run, const struct plan_input *input)
{
    *run = (struct chain_run){.gap_room = 256};
    run->traffic.free_s = calloc(plan_ports(input), sizeof *run->traffic.free_s);
    run->gaps = calloc(run->gap_room, sizeof *run->gaps);
    return run->traffic.free_s != NULL && run->gaps != NULL;
}

void chain_run_fini(struct chain_run *run)
{
    free(run->traffic.free_s);
    free(run->gaps);
}

/* ---------------------------------------------------------------- path of a micro-batch */

static uint32_t loop_count(const struct stage_chain *chain)
{
    return chain->stage_count - chain->loop;
}

static uint32_t rounds_run(const struct stage_chain *chain)
{
    return chain->rounds < CHAIN_ROUNDS ? (uint32_t)chain->rounds : CHAIN_ROUNDS;
}

static uint32_t hop_count(const struct stage_chain *chain)
{
    uint32_t decode = chain->rounds > 0 ? rounds_run(chain) * loop_count(chain) : 0;
    return chain->forward_count + (chain->has_backward ? chain->forward_count : decode);
}

static uint32_t stage_of(const struct stage_chain *chain, uint32_t hop)
{
    if (hop < chain->forward_count) {
        return hop;
    }
    hop -= chain->forward_count;
    return chain->has_backward ? chain->forward_count - 1 - hop
                               : chain->loop + hop % loop_count(chain);
}

static enum step_phase phase_of(const struct stage_chain *chain, uint32_t hop)
{
    return hop < chain->forward_count ? STEP_FORWARD
           : chain->has_backward      ? STEP_BACKWARD
                                      : STEP_DECODE;
}

static double bytes_into(const struct stage_chain *chain, uint32_t hop)
{
    const struct chain_stage *stage = &chain->stages[stage_of(chain, hop)];
    switch (phase_of(chain, hop)) {
    case STEP_FORWARD:
        return stage->forward_bytes;
    case STEP_DECODE:
        return hop == chain->forward_count ? chain->start_bytes : stage->round_bytes;
    case STEP_BACKWARD:
        return stage->backward_bytes;
    case STEP_ONCE:
    case STEP_PHASES:
        break;
    }
    return 0;
}

static double takes_s(const struct chain_run *run, uint32_t hop)
{
    const struct chain_stage *stage = &run->chain->stages[stage_of(run->chain, hop)];
    enum step_phase phase = phase_of(run->chain, hop);
    return run->is_slow ? stage->slow_s[phase] : stage->takes_s[phase];
}

/* ---------------------------------------------------------------- transfers */

uint32_t chain_parts(const struct stage_chain *chain, uint32_t from, uint32_t to)
{
    uint32_t source = chain->stages[from].width;
    uint32_t target = chain->stages[to].width;
    return source > target ? source : target;
}

uint32_t chain_part(const struct stage_chain *chain, uint32_t stage, uint32_t part, uint32_t parts)
{
    const struct chain_stage *it = &chain->stages[stage];
    return it->devices[part * it->width / parts];
}

double chain_kv_bytes(const struct stage_chain *chain, uint32_t from, uint32_t to)
{
    const struct chain_stage *stage = &chain->stages[from];
    const struct chain_stage *other = &chain->stages[to];
    double bytes = 0;
    for (uint32_t c = stage->first; c < stage->first + stage->count; c++) {
        bytes += c >= other->first && c < other->first + other->count ? chain->kv_bytes[c] : 0;
    }
    return bytes;
}

/* One of `parts` parts of the data from stage to stage. */
struct load {
    uint32_t from, to;
    uint32_t part, parts;
    double bytes;
};

static uint32_t row_of(const struct stage_chain *chain, uint32_t stage, const struct load *load)
{
    return chain->stages[stage].first_row + load->part * chain->stages[stage].width / load->parts;
}

static void keep(struct chain_run *run, const struct load *load,
                 const struct topology_transfer *route)
{
    if (run->transfer_count == sizeof run->transfers / sizeof run->transfers[0]) {
        return;
    }
    struct plan_transfer *transfer = &run->transfers[run->transfer_count++];
    *transfer = (struct plan_transfer){.from = row_of(run->chain, load->from, load),
                                       .to = row_of(run->chain, load->to, load),
                                       .bytes = load->bytes,
                                       .kind = route->kind,
                                       .start_s = route->start_s,
                                       .finish_s = route->finish_s,
                                       .link_count = route->link_count};
    memcpy(transfer->links, route->links, sizeof route->links);
}

/* Returns the arrival time. */
static double bring(struct chain_run *run, const struct load *load, double now, bool is_recorded)
{
    const struct plan_input *input = run->chain->one->input;
    uint32_t from = chain_part(run->chain, load->from, load->part, load->parts);
    uint32_t to = chain_part(run->chain, load->to, load->part, load->parts);
    uint32_t source = input->devices[from].memory;
    uint32_t target = input->devices[to].memory;
    struct topology_transfer route;
    if (source == target) {
        return now;
    }
    if (input->topology == NULL ||
        topology_find(input->topology, &run->traffic, UINT64_C(1) << source, target,
                      (int64_t)ceil(load->bytes), now, &route) != TOPOLOGY_OK) {
        run->is_stuck = true;
        return now;
    }
    topology_reserve(input->topology, &run->traffic, &route);
    run->last_use_s[load->from] = fmax(run->last_use_s[load->from], route.finish_s);
    run->first_use_s[load->to] = fmin(run->first_use_s[load->to], route.start_s);
    if (is_recorded) {
        keep(run, load, &route);
    }
    return route.finish_s;
}

/* Sends data that every device of a stage has in full, to the first device of the next stage. */
static double carry(struct chain_run *run, uint32_t from, uint32_t to, double bytes, double now,
                    bool is_recorded)
{
    return bring(run, &(struct load){from, to, 0, 1, bytes}, now, is_recorded);
}

/* Sends data that is divided over the devices of both stages, each part on its own. Returns the
 * last arrival. */
static double carry_parts(struct chain_run *run, uint32_t from, uint32_t to, double bytes,
                          double now, bool is_recorded)
{
    const uint32_t parts = chain_parts(run->chain, from, to);
    double arrival_s = now;
    for (uint32_t i = 0; i < parts; i++) {
        const struct load load = {from, to, i, parts, bytes / parts};
        arrival_s = fmax(arrival_s, bring(run, &load, now, is_recorded));
    }
    return arrival_s;
}

/* Sends the data that a stage leaves for the rounds. Returns the last arrival. */
static double hand_over(struct chain_run *run, uint32_t from, double now, bool is_recorded)
{
    const struct stage_chain *chain = run->chain;
    double arrival_s = now;
    for (uint32_t to = chain->loop; to < chain->stage_count; to++) {
        double bytes = chain_kv_bytes(chain, from, to);
        arrival_s = bytes > 0 ? fmax(arrival_s, carry_parts(run, from, to, bytes, now, is_recorded))
                              : arrival_s;
    }
    return arrival_s;
}

/* ---------------------------------------------------------------- all micro-batches */

static void add_gap(struct chain_run *run, uint32_t stage, double from_s, double until_s)
{
    struct chain_gap *gaps =
        array_with_room(run->gaps, run->gap_count, &run->gap_room, sizeof *gaps);
    if (gaps == NULL) {
        run->is_out_of_memory = true;
        return;
    }
    run->gaps = gaps;
    gaps[run->gap_count++] = (struct chain_gap){stage, from_s, until_s};
}

/* Returns true when `a` goes before `b` at a stage where both wait. Backward goes before forward,
 * and forward before decode. Otherwise the first to arrive goes first. */
static bool goes_before(const struct chain_run *run, int64_t a, int64_t b)
{
    const struct stage_chain *chain = run->chain;
    bool is_forward_a = run->hop[a] < chain->forward_count;
    bool is_forward_b = run->hop[b] < chain->forward_count;
    if (is_forward_a != is_forward_b) {
        return chain->has_backward ? is_forward_b : is_forward_a;
    }
    const bool came_together = run->at_s[a] == run->at_s[b];
    return came_together ? a < b : run->at_s[a] < run->at_s[b];
}

/* One forward, one backward in turn: at most as many are in flight as stages from here to the
 * end. */
static bool may_begin(const struct chain_run *run, uint32_t stage, int64_t which)
{
    const struct stage_chain *chain = run->chain;
    return !chain->has_backward || run->hop[which] >= chain->forward_count ||
           run->held[stage] < (int64_t)(chain->forward_count - stage);
}

static void begin_next(struct chain_run *run, uint32_t stage, double now)
{
    const struct stage_chain *chain = run->chain;
    int64_t next = -1;
    if (run->running[stage] >= 0) {
        return;
    }
    for (int64_t i = 0; i < chain->micro_batches; i++) {
        bool is_here = run->state[i] == WAITING && stage_of(chain, run->hop[i]) == stage;
        if (is_here && may_begin(run, stage, i) && (next < 0 || goes_before(run, i, next))) {
            next = i;
        }
    }
    if (next < 0) {
        return;
    }
    bool is_forward = run->hop[next] < chain->forward_count;
    if (run->first_s[stage] < 0) {
        run->first_s[stage] = now;
    } else if (now > run->last_s[stage]) {
        add_gap(run, stage, run->last_s[stage], now);
    }
    run->held[stage] += chain->has_backward && is_forward;
    run->most_held[stage] =
        run->held[stage] > run->most_held[stage] ? run->held[stage] : run->most_held[stage];
    run->running[stage] = next;
    run->state[next] = RUNNING;
    run->at_s[next] = now + takes_s(run, run->hop[next]);
}

static void go_on(struct chain_run *run, int64_t which, double now)
{
    const struct stage_chain *chain = run->chain;
    uint32_t hop = run->hop[which];
    uint32_t stage = stage_of(chain, hop);
    bool is_first = which == 0;
    run->running[stage] = -1;
    run->last_s[stage] = now;
    run->last_use_s[stage] = fmax(run->last_use_s[stage], now);
    run->held[stage] -= chain->has_backward && hop >= chain->forward_count;
    run->hop[which] = ++hop;
    if (chain->loop > 0 && hop <= chain->forward_count) {
        run->ready_s[which] = fmax(run->ready_s[which], hand_over(run, stage, now, is_first));
    }
    if (hop > chain->forward_count && !chain->has_backward &&
        (hop - chain->forward_count) % loop_count(chain) == 0) {
        uint32_t round = (hop - chain->forward_count) / loop_count(chain) - 1;
        run->round_s[round] = fmax(run->round_s[round], now);
    }
    if (hop == hop_count(chain)) {
        run->state[which] = DONE;
    } else {
        uint32_t next = stage_of(chain, hop);
        uint32_t shown = chain->has_backward ? 2 * chain->forward_count
                                             : chain->forward_count + loop_count(chain);
        double arrival_s =
            carry(run, stage, next, bytes_into(chain, hop), now, is_first && hop <= shown);
        run->state[which] = TRAVELLING;
        run->at_s[which] =
            hop == chain->forward_count ? fmax(arrival_s, run->ready_s[which]) : arrival_s;
    }
    begin_next(run, stage, now);
}

/* The next event is always the earliest end or arrival, among equals that of the lowest number. */
static void run_batches(struct chain_run *run)
{
    int64_t count = run->chain->micro_batches;
    begin_next(run, 0, 0);
    for (;;) {
        int64_t first = -1;
        for (int64_t i = 0; i < count; i++) {
            bool moves = run->state[i] == RUNNING || run->state[i] == TRAVELLING;
            first = moves && (first < 0 || run->at_s[i] < run->at_s[first]) ? i : first;
        }
        if (first < 0) {
            return;
        }
        if (run->state[first] == RUNNING) {
            go_on(run, first, run->at_s[first]);
        } else {
            run->state[first] = WAITING;
            begin_next(run, stage_of(run->chain, run->hop[first]), run->at_s[first]);
        }
    }
}

/* ---------------------------------------------------------------- rounds like the last */

static double slowest_of(const struct chain_run *run)
{
    const struct stage_chain *chain = run->chain;
    double most = 0;
    for (uint32_t k = chain->loop; k < chain->stage_count; k++) {
        const struct chain_stage *stage = &chain->stages[k];
        most = fmax(most, run->is_slow ? stage->slow_s[STEP_DECODE] : stage->takes_s[STEP_DECODE]);
    }
    return most;
}

static void add_rounds(struct chain_run *run)
{
    const struct stage_chain *chain = run->chain;
    uint32_t done = rounds_run(chain);
    if (chain->rounds <= (int64_t)done) {
        return;
    }
    double left = (double)(chain->rounds - done);
    double count = (double)chain->micro_batches;
    double round_s = fmax(run->round_s[done - 1] - run->round_s[done - 2], count * slowest_of(run));
    const int slices = (int)fmin(left, SLICES);
    for (uint32_t k = chain->loop; k < chain->stage_count; k++) {
        double takes = run->is_slow ? chain->stages[k].slow_s[STEP_DECODE]
                                    : chain->stages[k].takes_s[STEP_DECODE];
        double slice_s = left * round_s / slices;
        double idle_s = slice_s - left * count * takes / slices;
        for (int i = 0; i < slices && idle_s > slice_s * PLAN_ROUNDING; i++) {
            add_gap(run, k, run->last_s[k] + i * slice_s, run->last_s[k] + i * slice_s + idle_s);
        }
        run->last_s[k] += left * round_s;
        run->last_use_s[k] += left * round_s;
    }
}

/* ---------------------------------------------------------------- steps that run once */

static double carry_late(struct chain_run *run, const struct chain_late *late)
{
    return carry_parts(run, late->from, late->to, late->bytes, run->last_s[late->from], true);
}

static void finish(struct chain_run *run)
{
    const struct stage_chain *chain = run->chain;
    double arrival_s[CHAIN_STAGES] = {0};
    for (size_t i = 0; i < chain->late_count; i++) {
        const struct chain_late *late = &chain->late[i];
        if (!late->is_after) {
            arrival_s[late->to] = fmax(arrival_s[late->to], carry_late(run, late));
        }
    }
    for (uint32_t k = 0; k < chain->stage_count; k++) {
        const struct chain_stage *stage = &chain->stages[k];
        double takes = run->is_slow ? stage->slow_s[STEP_ONCE] : stage->takes_s[STEP_ONCE];
        if (takes > 0 && arrival_s[k] > run->last_s[k]) {
            add_gap(run, k, run->last_s[k], arrival_s[k]);
        }
        run->last_s[k] = takes > 0 ? fmax(run->last_s[k], arrival_s[k]) + takes : run->last_s[k];
        run->last_use_s[k] = fmax(run->last_use_s[k], run->last_s[k]);
        run->makespan_s = fmax(run->makespan_s, run->last_s[k]);
    }
    for (size_t i = 0; i < chain->late_count; i++) {
        if (chain->late[i].is_after) {
            run->makespan_s = fmax(run->makespan_s, carry_late(run, &chain->late[i]));
        }
    }
}

bool chain_run(struct chain_run *run, const struct stage_chain *chain, bool is_slow)
{
    assert(chain->micro_batches <= CHAIN_BATCHES && chain->stage_count <= CHAIN_STAGES);
    run->chain = chain;
    run->is_slow = is_slow;
    run->is_stuck = run->is_out_of_memory = false;
    run->makespan_s = 0;
    run->transfer_count = run->gap_count = 0;
    memset(run->traffic.free_s, 0, plan_ports(chain->one->input) * sizeof *run->traffic.free_s);
    memset(run->round_s, 0, sizeof run->round_s);
    for (uint32_t k = 0; k < chain->stage_count; k++) {
        run->first_s[k] = -1;
        run->first_use_s[k] = INFINITY;
        run->last_s[k] = run->last_use_s[k] = 0;
        run->running[k] = -1;
        run->held[k] = run->most_held[k] = 0;
    }
    for (int64_t i = 0; i < chain->micro_batches; i++) {
        run->at_s[i] = run->ready_s[i] = 0;
        run->hop[i] = 0;
        run->state[i] = WAITING;
    }
    run_batches(run);
    for (uint32_t k = 0; k < chain->stage_count; k++) {
        run->first_use_s[k] = fmin(run->first_use_s[k], run->first_s[k]);
    }
    add_rounds(run);
    finish(run);
    return !run->is_stuck && !run->is_out_of_memory;
}
