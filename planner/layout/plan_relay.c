/* This file runs the micro-batches of a line through its posts (plan_line.h). */
#include "planner/layout/plan_line.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLICES = 64, /* slices that show the rounds after the simulated ones */
};
enum { WAITING, RUNNING, TRAVELLING, DONE };

bool line_run_init(struct line_run *run, const struct plan_input *input)
{
    *run = (struct line_run){.gap_room = 256};
    run->traffic.free_s = calloc(plan_ports(input), sizeof *run->traffic.free_s);
    run->gaps = calloc(run->gap_room, sizeof *run->gaps);
    return run->traffic.free_s != NULL && run->gaps != NULL;
}

void line_run_fini(struct line_run *run)
{
    free(run->traffic.free_s);
    free(run->gaps);
}

/* ---------------------------------------------------------------- path of a micro-batch */

static uint32_t ring_count(const struct line *line)
{
    return line->post_count - line->ring;
}

static uint32_t rounds_run(const struct line *line)
{
    return line->rounds < LINE_ROUNDS ? (uint32_t)line->rounds : LINE_ROUNDS;
}

static uint32_t hop_count(const struct line *line)
{
    uint32_t around = line->rounds > 0 ? rounds_run(line) * ring_count(line) : 0;
    return line->there_count + (line->has_back ? line->there_count : around);
}

static uint32_t post_of(const struct line *line, uint32_t hop)
{
    if (hop < line->there_count) {
        return hop;
    }
    hop -= line->there_count;
    return line->has_back ? line->there_count - 1 - hop : line->ring + hop % ring_count(line);
}

static enum step_phase phase_of(const struct line *line, uint32_t hop)
{
    return hop < line->there_count ? STEP_THERE : line->has_back ? STEP_BACK : STEP_AROUND;
}

static double bytes_into(const struct line *line, uint32_t hop)
{
    const struct line_post *post = &line->posts[post_of(line, hop)];
    switch (phase_of(line, hop)) {
    case STEP_THERE:
        return post->there_bytes;
    case STEP_AROUND:
        return hop == line->there_count ? line->start_bytes : post->round_bytes;
    case STEP_BACK:
        return post->back_bytes;
    case STEP_ONCE:
    case STEP_PHASES:
        break;
    }
    return 0;
}

static double takes_s(const struct line_run *run, uint32_t hop)
{
    const struct line_post *post = &run->line->posts[post_of(run->line, hop)];
    enum step_phase phase = phase_of(run->line, hop);
    return run->is_slow ? post->slow_s[phase] : post->takes_s[phase];
}

/* ---------------------------------------------------------------- transfers */

uint32_t line_parts(const struct line *line, uint32_t from, uint32_t to)
{
    uint32_t source = line->posts[from].width;
    uint32_t target = line->posts[to].width;
    return source > target ? source : target;
}

uint32_t line_part(const struct line *line, uint32_t post, uint32_t part, uint32_t parts)
{
    const struct line_post *it = &line->posts[post];
    return it->devices[part * it->width / parts];
}

double line_kept(const struct line *line, uint32_t from, uint32_t to)
{
    const struct line_post *post = &line->posts[from];
    const struct line_post *other = &line->posts[to];
    double bytes = 0;
    for (uint32_t c = post->first; c < post->first + post->count; c++) {
        bytes += c >= other->first && c < other->first + other->count ? line->kept_bytes[c] : 0;
    }
    return bytes;
}

/* One of `parts` parts of the data from post to post. */
struct load {
    uint32_t from, to;
    uint32_t part, parts;
    double bytes;
};

static uint32_t row_of(const struct line *line, uint32_t post, const struct load *load)
{
    return line->posts[post].first_row + load->part * line->posts[post].width / load->parts;
}

static void keep(struct line_run *run, const struct load *load, const struct topology_transfer *way)
{
    if (run->transfer_count == sizeof run->transfers / sizeof run->transfers[0]) {
        return;
    }
    struct plan_transfer *transfer = &run->transfers[run->transfer_count++];
    *transfer = (struct plan_transfer){.from = row_of(run->line, load->from, load),
                                       .to = row_of(run->line, load->to, load),
                                       .bytes = load->bytes,
                                       .kind = way->kind,
                                       .start_s = way->start_s,
                                       .finish_s = way->finish_s,
                                       .link_count = way->link_count};
    memcpy(transfer->links, way->links, sizeof way->links);
}

/* Returns the arrival time. */
static double bring(struct line_run *run, const struct load *load, double now, bool is_kept)
{
    const struct plan_input *input = run->line->one->input;
    uint32_t from = line_part(run->line, load->from, load->part, load->parts);
    uint32_t to = line_part(run->line, load->to, load->part, load->parts);
    uint32_t source = input->devices[from].memory;
    uint32_t target = input->devices[to].memory;
    struct topology_transfer way;
    if (source == target) {
        return now;
    }
    if (input->topology == NULL ||
        topology_find(input->topology, &run->traffic, UINT64_C(1) << source, target,
                      (int64_t)ceil(load->bytes), now, &way) != TOPOLOGY_OK) {
        run->is_stuck = true;
        return now;
    }
    topology_reserve(input->topology, &run->traffic, &way);
    run->last_use_s[load->from] = fmax(run->last_use_s[load->from], way.finish_s);
    run->first_use_s[load->to] = fmin(run->first_use_s[load->to], way.start_s);
    if (is_kept) {
        keep(run, load, &way);
    }
    return way.finish_s;
}

/* Sends data that every device of a post has in full, to the first device of the next post. */
static double carry(struct line_run *run, uint32_t from, uint32_t to, double bytes, double now,
                    bool is_kept)
{
    return bring(run, &(struct load){from, to, 0, 1, bytes}, now, is_kept);
}

/* Sends data that is divided over the devices of both posts, each part alone. Returns the last
 * arrival. */
static double carry_parts(struct line_run *run, uint32_t from, uint32_t to, double bytes,
                          double now, bool is_kept)
{
    const uint32_t parts = line_parts(run->line, from, to);
    double there_s = now;
    for (uint32_t i = 0; i < parts; i++) {
        const struct load load = {from, to, i, parts, bytes / parts};
        there_s = fmax(there_s, bring(run, &load, now, is_kept));
    }
    return there_s;
}

/* Sends the data that a post leaves for the rounds. Returns the last arrival. */
static double hand_over(struct line_run *run, uint32_t from, double now, bool is_kept)
{
    const struct line *line = run->line;
    double there_s = now;
    for (uint32_t to = line->ring; to < line->post_count; to++) {
        double bytes = line_kept(line, from, to);
        there_s =
            bytes > 0 ? fmax(there_s, carry_parts(run, from, to, bytes, now, is_kept)) : there_s;
    }
    return there_s;
}

/* ---------------------------------------------------------------- all micro-batches */

static void add_gap(struct line_run *run, uint32_t post, double from_s, double until_s)
{
    if (run->gap_count == run->gap_room) {
        struct line_gap *gaps = realloc(run->gaps, 2 * run->gap_room * sizeof *gaps);
        if (gaps == NULL) {
            run->is_out_of_memory = true;
            return;
        }
        run->gaps = gaps;
        run->gap_room *= 2;
    }
    run->gaps[run->gap_count++] = (struct line_gap){post, from_s, until_s};
}

/* Returns true when `a` goes before `b` at a post where both wait. Back goes before there, and
 * there before around. Otherwise the first to arrive goes first. */
static bool goes_before(const struct line_run *run, int64_t a, int64_t b)
{
    const struct line *line = run->line;
    bool is_there_a = run->hop[a] < line->there_count;
    bool is_there_b = run->hop[b] < line->there_count;
    if (is_there_a != is_there_b) {
        return line->has_back ? is_there_b : is_there_a;
    }
    const bool came_together = run->at_s[a] == run->at_s[b];
    return came_together ? a < b : run->at_s[a] < run->at_s[b];
}

/* One forward, one backward in turn: at most as many are in flight as posts from here to the
 * end. */
static bool may_begin(const struct line_run *run, uint32_t post, int64_t which)
{
    const struct line *line = run->line;
    return !line->has_back || run->hop[which] >= line->there_count ||
           run->held[post] < (int64_t)(line->there_count - post);
}

static void begin_next(struct line_run *run, uint32_t post, double now)
{
    const struct line *line = run->line;
    int64_t next = -1;
    if (run->running[post] >= 0) {
        return;
    }
    for (int64_t i = 0; i < line->micro_batches; i++) {
        bool is_here = run->state[i] == WAITING && post_of(line, run->hop[i]) == post;
        if (is_here && may_begin(run, post, i) && (next < 0 || goes_before(run, i, next))) {
            next = i;
        }
    }
    if (next < 0) {
        return;
    }
    bool is_there = run->hop[next] < line->there_count;
    if (run->first_s[post] < 0) {
        run->first_s[post] = now;
    } else if (now > run->last_s[post]) {
        add_gap(run, post, run->last_s[post], now);
    }
    run->held[post] += line->has_back && is_there;
    run->most_held[post] =
        run->held[post] > run->most_held[post] ? run->held[post] : run->most_held[post];
    run->running[post] = next;
    run->state[next] = RUNNING;
    run->at_s[next] = now + takes_s(run, run->hop[next]);
}

static void go_on(struct line_run *run, int64_t which, double now)
{
    const struct line *line = run->line;
    uint32_t hop = run->hop[which];
    uint32_t post = post_of(line, hop);
    bool is_first = which == 0;
    run->running[post] = -1;
    run->last_s[post] = now;
    run->last_use_s[post] = fmax(run->last_use_s[post], now);
    run->held[post] -= line->has_back && hop >= line->there_count;
    run->hop[which] = ++hop;
    if (line->ring > 0 && hop <= line->there_count) {
        run->ready_s[which] = fmax(run->ready_s[which], hand_over(run, post, now, is_first));
    }
    if (hop > line->there_count && !line->has_back &&
        (hop - line->there_count) % ring_count(line) == 0) {
        uint32_t round = (hop - line->there_count) / ring_count(line) - 1;
        run->round_s[round] = fmax(run->round_s[round], now);
    }
    if (hop == hop_count(line)) {
        run->state[which] = DONE;
    } else {
        uint32_t next = post_of(line, hop);
        uint32_t shown =
            line->has_back ? 2 * line->there_count : line->there_count + ring_count(line);
        double there_s =
            carry(run, post, next, bytes_into(line, hop), now, is_first && hop <= shown);
        run->state[which] = TRAVELLING;
        run->at_s[which] = hop == line->there_count ? fmax(there_s, run->ready_s[which]) : there_s;
    }
    begin_next(run, post, now);
}

/* The next event is always the earliest end or arrival, among equals that of the lowest number. */
static void run_batches(struct line_run *run)
{
    int64_t count = run->line->micro_batches;
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
            begin_next(run, post_of(run->line, run->hop[first]), run->at_s[first]);
        }
    }
}

/* ---------------------------------------------------------------- rounds like the last */

static double slowest_of(const struct line_run *run)
{
    const struct line *line = run->line;
    double most = 0;
    for (uint32_t k = line->ring; k < line->post_count; k++) {
        const struct line_post *post = &line->posts[k];
        most = fmax(most, run->is_slow ? post->slow_s[STEP_AROUND] : post->takes_s[STEP_AROUND]);
    }
    return most;
}

static void add_rounds(struct line_run *run)
{
    const struct line *line = run->line;
    uint32_t done = rounds_run(line);
    if (line->rounds <= (int64_t)done) {
        return;
    }
    double left = (double)(line->rounds - done);
    double count = (double)line->micro_batches;
    double round_s = fmax(run->round_s[done - 1] - run->round_s[done - 2], count * slowest_of(run));
    double slices = fmin(left, SLICES);
    for (uint32_t k = line->ring; k < line->post_count; k++) {
        double takes =
            run->is_slow ? line->posts[k].slow_s[STEP_AROUND] : line->posts[k].takes_s[STEP_AROUND];
        double slice_s = left * round_s / slices;
        double idle_s = slice_s - left * count * takes / slices;
        for (double i = 0; i < slices && idle_s > slice_s * PLAN_ROUNDING; i++) {
            add_gap(run, k, run->last_s[k] + i * slice_s, run->last_s[k] + i * slice_s + idle_s);
        }
        run->last_s[k] += left * round_s;
        run->last_use_s[k] += left * round_s;
    }
}

/* ---------------------------------------------------------------- steps that run once */

static double carry_late(struct line_run *run, const struct line_late *late)
{
    return carry_parts(run, late->from, late->to, late->bytes, run->last_s[late->from], true);
}

static void finish(struct line_run *run)
{
    const struct line *line = run->line;
    double there_s[LINE_POSTS] = {0};
    for (size_t i = 0; i < line->late_count; i++) {
        const struct line_late *late = &line->late[i];
        if (!late->is_after) {
            there_s[late->to] = fmax(there_s[late->to], carry_late(run, late));
        }
    }
    for (uint32_t k = 0; k < line->post_count; k++) {
        const struct line_post *post = &line->posts[k];
        double takes = run->is_slow ? post->slow_s[STEP_ONCE] : post->takes_s[STEP_ONCE];
        if (takes > 0 && there_s[k] > run->last_s[k]) {
            add_gap(run, k, run->last_s[k], there_s[k]);
        }
        run->last_s[k] = takes > 0 ? fmax(run->last_s[k], there_s[k]) + takes : run->last_s[k];
        run->last_use_s[k] = fmax(run->last_use_s[k], run->last_s[k]);
        run->makespan_s = fmax(run->makespan_s, run->last_s[k]);
    }
    for (size_t i = 0; i < line->late_count; i++) {
        if (line->late[i].is_after) {
            run->makespan_s = fmax(run->makespan_s, carry_late(run, &line->late[i]));
        }
    }
}

bool line_run(struct line_run *run, const struct line *line, bool is_slow)
{
    assert(line->micro_batches <= LINE_BATCHES && line->post_count <= LINE_POSTS);
    run->line = line;
    run->is_slow = is_slow;
    run->is_stuck = run->is_out_of_memory = false;
    run->makespan_s = 0;
    run->transfer_count = run->gap_count = 0;
    memset(run->traffic.free_s, 0, plan_ports(line->one->input) * sizeof *run->traffic.free_s);
    memset(run->round_s, 0, sizeof run->round_s);
    for (uint32_t k = 0; k < line->post_count; k++) {
        run->first_s[k] = -1;
        run->first_use_s[k] = INFINITY;
        run->last_s[k] = run->last_use_s[k] = 0;
        run->running[k] = -1;
        run->held[k] = run->most_held[k] = 0;
    }
    for (int64_t i = 0; i < line->micro_batches; i++) {
        run->at_s[i] = run->ready_s[i] = 0;
        run->hop[i] = 0;
        run->state[i] = WAITING;
    }
    run_batches(run);
    for (uint32_t k = 0; k < line->post_count; k++) {
        run->first_use_s[k] = fmin(run->first_use_s[k], run->first_s[k]);
    }
    add_rounds(run);
    finish(run);
    return !run->is_stuck && !run->is_out_of_memory;
}
