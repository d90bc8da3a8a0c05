/* The tests ask how subtasks would run on what is on offer: small jobs by hand, and random ones
 * that keep to what there is. */
#include "planner/schedule/list_schedule.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, CLASSES = 3 };

struct job {
    struct list_schedule_part parts[LIST_SCHEDULE_PARTS];
    struct list_schedule_device devices[8];
    int64_t takes_ns[CLASSES * MOST];
    uint32_t rank[MOST], after_count[MOST], after[MOST * MOST];
    struct list_schedule_input input;
};

/* One part of `count` subtasks of a second each, on no device yet. */
static void begin(struct job *job, uint32_t count)
{
    memset(job, 0, sizeof *job);
    job->parts[0] = (struct list_schedule_part){.subtasks = count, .slots = 1};
    for (uint32_t i = 0; i < CLASSES * MOST; i++) {
        job->takes_ns[i] = NS_PER_S;
    }
    job->input = (struct list_schedule_input){
        .parts = job->parts, .part_count = 1, .takes_ns = job->takes_ns, .devices = job->devices};
}

static void add_device(struct job *job, uint32_t slots, int64_t price_micro, uint32_t parts)
{
    job->devices[job->input.device_count++] =
        (struct list_schedule_device){.slots = slots, .price_micro = price_micro, .parts = parts};
}

static struct list_schedule *made(const struct job *job)
{
    struct list_schedule *schedule = NULL;
    ck_assert_int_eq(list_schedule_make(&job->input, &schedule), LIST_SCHEDULE_OK);
    return schedule;
}

static void assert_run(const struct list_schedule *schedule, uint32_t task, uint32_t device,
                       uint32_t lane, int64_t start_ns)
{
    ck_assert_uint_eq(schedule->runs[task].device, device);
    ck_assert_uint_eq(schedule->runs[task].lane, lane);
    ck_assert_int_eq(schedule->runs[task].start_ns, start_ns);
}

START_TEST(alike_ones_go_round_by_round_to_the_cheapest)
{
    struct job job;
    begin(&job, 7);
    add_device(&job, 2, 3600, 1);
    add_device(&job, 1, 7200, 1);
    CLEANUP(list_schedule_destroy) struct list_schedule *schedule = made(&job);
    assert_run(schedule, 0, 0, 0, 0);
    assert_run(schedule, 1, 0, 1, 0);
    assert_run(schedule, 2, 1, 0, 0);
    assert_run(schedule, 6, 0, schedule->runs[6].lane, 2 * NS_PER_S);
    ck_assert_int_eq(schedule->makespan_ns, 3 * NS_PER_S);
    ck_assert_int_eq(schedule->bound_ns, 3 * NS_PER_S); /* three rounds of three: none is better */
    ck_assert_uint_eq(schedule->lanes[0], 2);
    ck_assert_uint_eq(schedule->lanes[1], 1);
    size_t device = 9;
    int64_t alone_ns = 0;
    ck_assert(list_schedule_best_single(&job.input, &device, &alone_ns));
    ck_assert_uint_eq(device, 0);
    ck_assert_int_eq(alone_ns, 4 * NS_PER_S);
}
END_TEST

/* Eight slots, and one lane of them for the job. */
START_TEST(all_work_on_the_lanes_that_it_may_have_is_a_bound)
{
    struct job job;
    begin(&job, 3);
    add_device(&job, 8, 0, 1);
    job.takes_ns[2] = 5 * NS_PER_S;
    job.parts[0].at_most = 1;
    job.input.rank = (uint32_t[]){1, 1, 5}; /* the longest first */
    CLEANUP(list_schedule_destroy) struct list_schedule *schedule = made(&job);
    assert_run(schedule, 2, 0, 0, 0);
    assert_run(schedule, 0, 0, 0, 5 * NS_PER_S);
    assert_run(schedule, 1, 0, 0, 6 * NS_PER_S);
    ck_assert_int_eq(schedule->makespan_ns, 7 * NS_PER_S);
    ck_assert_int_eq(schedule->bound_ns, 7 * NS_PER_S);
}
END_TEST

START_TEST(no_more_at_a_time_than_it_may_have)
{
    struct job job;
    begin(&job, 4);
    add_device(&job, 8, 0, 1);
    job.parts[0].slots = 2;
    job.parts[0].at_most = 5;
    CLEANUP(list_schedule_destroy) struct list_schedule *schedule = made(&job);
    ck_assert_int_eq(schedule->makespan_ns, 2 * NS_PER_S);
    ck_assert_uint_eq(schedule->lanes[0], 2);
    ck_assert_int_eq(schedule->bound_ns, 2 * NS_PER_S);
}
END_TEST

/* 0 is long and 1 short; 2 waits for 1, 3 for both, and is of a part for which there is one
 * device. */
START_TEST(who_waits_begins_when_the_last_of_them_has_ended)
{
    struct job job;
    begin(&job, 3);
    job.parts[1] = (struct list_schedule_part){.subtasks = 1, .slots = 1};
    job.input.part_count = 2;
    job.takes_ns[0] = 3 * NS_PER_S;
    static const uint32_t counts[] = {0, 0, 1, 2};
    static const uint32_t after[] = {1, 0, 1};
    job.input.after_count = counts;
    job.input.after = after;
    add_device(&job, 2, 3600, 1);
    add_device(&job, 1, 3600, 2);
    CLEANUP(list_schedule_destroy) struct list_schedule *schedule = made(&job);
    assert_run(schedule, 2, 0, 1, NS_PER_S);
    assert_run(schedule, 3, 1, 0, 3 * NS_PER_S);
    ck_assert_int_eq(schedule->makespan_ns, 4 * NS_PER_S);
    ck_assert_int_eq(schedule->bound_ns, 4 * NS_PER_S); /* the longest way */
    size_t device = 0;
    int64_t alone_ns = 0;
    ck_assert(!list_schedule_best_single(&job.input, &device, &alone_ns));
}
END_TEST

START_TEST(the_highest_rank_goes_first)
{
    struct job job;
    begin(&job, 3);
    static const uint32_t rank[] = {5, 9, 7};
    job.input.rank = rank;
    add_device(&job, 1, 0, 1);
    CLEANUP(list_schedule_destroy) struct list_schedule *schedule = made(&job);
    ck_assert_int_eq(schedule->runs[1].start_ns, 0);
    ck_assert_int_eq(schedule->runs[2].start_ns, NS_PER_S);
    ck_assert_int_eq(schedule->runs[0].start_ns, 2 * NS_PER_S);
}
END_TEST

/* A slot that one part cannot have is left to the others that can. */
START_TEST(parts_share_devices)
{
    struct job job;
    begin(&job, 2);
    job.parts[0].slots = 2;
    job.parts[1] = (struct list_schedule_part){.subtasks = 3, .slots = 1};
    job.input.part_count = 2;
    add_device(&job, 3, 0, 3);
    CLEANUP(list_schedule_destroy) struct list_schedule *schedule = made(&job);
    ck_assert_int_eq(schedule->runs[0].start_ns, 0);
    ck_assert_int_eq(schedule->runs[2].start_ns, 0); /* in the third slot */
    ck_assert_int_eq(schedule->runs[1].start_ns, NS_PER_S);
    ck_assert_int_eq(schedule->makespan_ns, 3 * NS_PER_S);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    struct job job;
    struct list_schedule *schedule = NULL;
    begin(&job, 2);
    ck_assert_int_eq(list_schedule_make(&job.input, &schedule),
                     LIST_SCHEDULE_BAD_INPUT); /* no device */
    add_device(&job, 1, 0, 2);
    ck_assert_int_eq(list_schedule_make(&job.input, &schedule),
                     LIST_SCHEDULE_NOWHERE); /* for another part */
    job.devices[0].parts = 1;
    job.parts[0].slots = 2;
    ck_assert_int_eq(list_schedule_make(&job.input, &schedule), LIST_SCHEDULE_NOWHERE);
    job.parts[0] = (struct list_schedule_part){.subtasks = 2, .slots = 1};
    job.takes_ns[1] = 0;
    ck_assert_int_eq(list_schedule_make(&job.input, &schedule), LIST_SCHEDULE_BAD_INPUT);
    job.takes_ns[0] = job.takes_ns[1] = INT64_MAX;
    ck_assert_int_eq(list_schedule_make(&job.input, &schedule), LIST_SCHEDULE_OVERFLOW);
    job.takes_ns[0] = job.takes_ns[1] = 1;
    static const uint32_t counts[] = {0, 1};
    static const uint32_t after[] = {1};
    job.input.after_count = counts;
    job.input.after = after;
    ck_assert_int_eq(list_schedule_make(&job.input, &schedule),
                     LIST_SCHEDULE_BAD_INPUT); /* waits for itself */
    job.input.after_count = NULL;
    job.devices[0].price_micro = -1;
    ck_assert_int_eq(list_schedule_make(&job.input, &schedule), LIST_SCHEDULE_BAD_INPUT);
    job.devices[0].price_micro = 0;
    job.parts[0].slots = 0;
    ck_assert_int_eq(list_schedule_make(&job.input, &schedule), LIST_SCHEDULE_BAD_INPUT);
    job.parts[0] = (struct list_schedule_part){.subtasks = LIST_SCHEDULE_SUBTASKS + 1, .slots = 1};
    ck_assert_int_eq(list_schedule_make(&job.input, &schedule), LIST_SCHEDULE_TOO_MANY);
    ck_assert_ptr_null(schedule);
}
END_TEST

/* Two classes: a second on the cheap one, a quarter on the dear one. */
START_TEST(an_idle_lane_that_is_done_first_goes_first)
{
    struct job job;
    begin(&job, 6);
    add_device(&job, 1, 3600, 1);
    add_device(&job, 1, 7200, 1);
    job.devices[1].of_class = 1;
    job.input.class_count = 2;
    for (uint32_t i = 0; i < 6; i++) {
        job.takes_ns[6 + i] = NS_PER_S / 4;
    }
    CLEANUP(list_schedule_destroy) struct list_schedule *schedule = made(&job);
    /* The fast one does four while the slow one does its first; at one second both are idle, and
     * the fast one has the last. */
    assert_run(schedule, 0, 0, 0, 0);
    for (uint32_t i = 1; i < 5; i++) {
        assert_run(schedule, i, 1, 0, (i - 1) * NS_PER_S / 4);
    }
    assert_run(schedule, 5, 1, 0, NS_PER_S);
    ck_assert_int_eq(schedule->makespan_ns, 5 * NS_PER_S / 4);
    ck_assert_int_eq(schedule->bound_ns, 3 * NS_PER_S / 4); /* all work as fast as can be, on two */
    size_t device = 9;
    int64_t single_ns = 0;
    ck_assert(list_schedule_best_single(&job.input, &device, &single_ns));
    ck_assert_uint_eq(device, 1); /* as wide, and dearer */
    ck_assert_int_eq(single_ns, 6 * NS_PER_S / 4);
    job.devices[1].of_class = 2;
    ck_assert_int_eq(list_schedule_make(&job.input, &schedule), LIST_SCHEDULE_BAD_INPUT);
    job.input.class_count = LIST_SCHEDULE_CLASSES + 1;
    ck_assert_int_eq(list_schedule_make(&job.input, &schedule), LIST_SCHEDULE_BAD_INPUT);
}
END_TEST

/* A class that is too narrow for a part, or not for it, is no bound for the part. */
START_TEST(classes_that_do_not_fit_bound_nothing)
{
    struct job job;
    begin(&job, 2);
    job.parts[0].slots = 2;
    add_device(&job, 2, 3600, 1);
    add_device(&job, 1, 3600, 1);
    add_device(&job, 2, 3600, 2);
    job.devices[1].of_class = 1;
    job.devices[2].of_class = 2;
    job.input.class_count = 3;
    for (uint32_t i = 0; i < 2; i++) {
        job.takes_ns[2 + i] = job.takes_ns[4 + i] = 1;
    }
    CLEANUP(list_schedule_destroy) struct list_schedule *schedule = made(&job);
    ck_assert_int_eq(schedule->makespan_ns, 2 * NS_PER_S);
    ck_assert_int_eq(schedule->bound_ns, 2 * NS_PER_S);
}
END_TEST

/* ---------------------------------------------------------------- random jobs */

static uint32_t below(struct random *random, uint32_t most)
{
    return (uint32_t)(random_u64(random) % most);
}

static void make_random(struct random *random, struct job *job)
{
    begin(job, 1 + below(random, 20));
    job->parts[1] = (struct list_schedule_part){.subtasks = below(random, 20),
                                                .slots = 1 + below(random, 3),
                                                .at_most = below(random, 2) * 3};
    job->parts[2] = (struct list_schedule_part){.subtasks = below(random, 20), .slots = 1};
    job->input.part_count = 3;
    const uint32_t devices = 1 + below(random, 5);
    job->input.class_count = below(random, CLASSES + 1);
    for (uint32_t d = 0; d < devices; d++) {
        add_device(job, 1 + below(random, 4), d * 100, 1 + below(random, 7));
        job->devices[d].of_class =
            job->input.class_count > 0 ? below(random, job->input.class_count) : 0;
    }
    add_device(job, 3, 1000, 7);
    uint32_t edges = 0;
    for (uint32_t i = 0; i < CLASSES * MOST; i++) {
        job->takes_ns[i] = 1 + below(random, 1000);
    }
    for (uint32_t i = 0; i < MOST; i++) {
        job->rank[i] = below(random, 5);
        for (uint32_t k = 0; k < i; k++) {
            if (below(random, 10) == 0) {
                job->after[edges++] = k;
                job->after_count[i]++;
            }
        }
    }
    job->input.rank = job->rank;
    job->input.after_count = job->after_count;
    job->input.after = job->after;
}

static uint32_t part_of(const struct job *job, uint32_t task)
{
    return task < job->parts[0].subtasks                            ? 0
           : task < job->parts[0].subtasks + job->parts[1].subtasks ? 1
                                                                    : 2;
}

/* Slots in use just after `at_ns`: of a device (part 3), or by a part (device 99). */
static uint32_t in_use(const struct job *job, const struct list_schedule *schedule, int64_t at_ns,
                       uint32_t device, uint32_t part)
{
    uint32_t slots = 0;
    for (uint32_t i = 0; i < schedule->subtasks; i++) {
        const struct list_schedule_run *run = &schedule->runs[i];
        if (run->start_ns <= at_ns && at_ns < run->end_ns &&
            (run->device == device || part_of(job, i) == part)) {
            slots += job->parts[part_of(job, i)].slots;
        }
    }
    return slots;
}

static void check_task(const struct job *job, const struct list_schedule *schedule, uint32_t task,
                       size_t first_edge)
{
    const struct list_schedule_run *run = &schedule->runs[task];
    const uint32_t part = part_of(job, task);
    const size_t first = (size_t)job->devices[run->device].of_class * schedule->subtasks;
    ck_assert_int_eq(run->end_ns - run->start_ns, job->takes_ns[first + task]);
    ck_assert((job->devices[run->device].parts >> part & 1) != 0);
    ck_assert_uint_le(in_use(job, schedule, run->start_ns, run->device, 3),
                      job->devices[run->device].slots);
    ck_assert(job->parts[part].at_most == 0 ||
              in_use(job, schedule, run->start_ns, 99, part) <= job->parts[part].at_most);
    for (uint32_t k = 0; k < job->after_count[task]; k++) {
        ck_assert_int_le(schedule->runs[job->after[first_edge + k]].end_ns, run->start_ns);
    }
    for (uint32_t i = 0; i < task; i++) { /* a lane has one at a time */
        const struct list_schedule_run *other = &schedule->runs[i];
        ck_assert(other->device != run->device || other->lane != run->lane ||
                  other->end_ns <= run->start_ns || run->end_ns <= other->start_ns);
    }
}

/* Nobody who is ready waits while there is room for it. */
static void check_idle(const struct job *job, const struct list_schedule *schedule, uint32_t task,
                       size_t first_edge)
{
    const struct list_schedule_run *run = &schedule->runs[task];
    const struct list_schedule_part *part = &job->parts[part_of(job, task)];
    int64_t ready_ns = 0;
    for (uint32_t k = 0; k < job->after_count[task]; k++) {
        const int64_t end_ns = schedule->runs[job->after[first_edge + k]].end_ns;
        ready_ns = end_ns > ready_ns ? end_ns : ready_ns;
    }
    for (size_t d = 0; d < job->input.device_count && ready_ns < run->start_ns; d++) {
        const bool fits = (job->devices[d].parts >> part_of(job, task) & 1) != 0;
        const bool may =
            part->at_most == 0 ||
            in_use(job, schedule, ready_ns, 99, part_of(job, task)) + part->slots <= part->at_most;
        ck_assert(!fits || !may ||
                  in_use(job, schedule, ready_ns, (uint32_t)d, 3) + part->slots >
                      job->devices[d].slots);
    }
}

START_TEST(random_jobs_keep_to_what_there_is)
{
    struct random random = random_seeded((uint64_t)_i + 1);
    struct job *job = calloc(1, sizeof *job);
    ck_assert_ptr_nonnull(job);
    make_random(&random, job);
    CLEANUP(list_schedule_destroy) struct list_schedule *schedule = made(job);
    int64_t last_ns = 0;
    size_t edge = 0;
    for (uint32_t i = 0; i < schedule->subtasks; i++) {
        check_task(job, schedule, i, edge);
        check_idle(job, schedule, i, edge);
        edge += job->after_count[i];
        last_ns = schedule->runs[i].end_ns > last_ns ? schedule->runs[i].end_ns : last_ns;
    }
    ck_assert_int_eq(schedule->makespan_ns, last_ns);
    ck_assert_int_le(schedule->bound_ns, schedule->makespan_ns);
    size_t device = 0;
    int64_t alone_ns = 0;
    ck_assert(!list_schedule_best_single(&job->input, &device, &alone_ns) ||
              alone_ns >= schedule->bound_ns);
    free(job);
}
END_TEST

SUITE("list_schedule", NULL, NULL, TEST(an_idle_lane_that_is_done_first_goes_first),
      TEST(classes_that_do_not_fit_bound_nothing),
      TEST(alike_ones_go_round_by_round_to_the_cheapest), TEST(no_more_at_a_time_than_it_may_have),
      TEST(all_work_on_the_lanes_that_it_may_have_is_a_bound),
      TEST(who_waits_begins_when_the_last_of_them_has_ended), TEST(the_highest_rank_goes_first),
      TEST(parts_share_devices), TEST(what_cannot_be_is_refused),
      LOOP(random_jobs_keep_to_what_there_is, 0, 300))
