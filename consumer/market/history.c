#include "consumer/market/history.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/requirement.h"
#include "consumer/client/client.h"
#include "consumer/market/measured_load.h"
#include "protocol/codec.h"
#include "protocol/work.h"

#include <assert.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- what a job is expected to take
 */

/* Checks do not count as work of the job. */
static size_t parts_of_work(const struct bourse_job *job)
{
    return job->part_count - (job->checks > 0);
}

/* Returns the step from one subtask of a part to the next that is looked at. One subtask stands for
 * all when they are alike. */
static uint32_t step_of(const Bourse__V1__Manifest *manifest, uint32_t subtasks)
{
    return manifest->n_subtasks == 0 ? subtasks
                                     : 1 + (uint32_t)(manifest->n_subtasks / HISTORY_LOOKED_AT);
}

static bool is_sampled(const Bourse__V1__Manifest *manifest)
{
    return manifest->n_subtasks >= HISTORY_LOOKED_AT;
}

struct learning {
    const struct bourse_job *job;
    struct bourse_job *learner; /* the same job when its times are to change, else NULL */
    const Bourse__V1__Manifest *manifest;
    const struct measured_works *works; /* the number of a work in `times` is that in here */
    const struct measured_times *times;
    int64_t *expect_ns; /* by subtask, for the ranks of tasks; else NULL */
    const struct measured_kind *kinds;
    size_t kind_count;
    struct history_figure *figures; /* by kind and unit */
};

/* Returns the time that the job states, or 0. */
static int64_t said_ns(const struct bourse_job *job, size_t part, uint32_t index)
{
    const struct job_file *file = job->file;
    if (job->order != NULL && index < file->task_count) {
        const int64_t expect_ms = file->tasks[job->order[index]].expect_ms;
        return expect_ms == JOB_ABSENT ? 0 : expect_ms * NS_PER_MS;
    }
    return job->learned.said_ns[part];
}

/* Returns the expected time before the market's answer: of the subtask in a continued job, or of
 * its part. */
static int64_t foreseen_ns(const struct bourse_job *job, size_t part, uint32_t index)
{
    return job->expect_ns != NULL && index < job->subtasks - job->checks
               ? job->expect_ns[index]
               : job->parts[part].expect_ns;
}

static int64_t within_limit(int64_t takes_ns, int64_t limit_ms)
{
    const int64_t limit_ns = limit_ms * NS_PER_MS;
    return takes_ns < 1 ? 1 : takes_ns < limit_ns ? takes_ns : limit_ns;
}

/* Finds the time of a subtask on all devices on which its part may run: real or simulated. */
static bool find_on_all(const struct learning *learning, size_t part, uint32_t index,
                        struct measured_time *ret_time)
{
    const struct work work = work_of(learning->manifest, index);
    const size_t number = measured_works_find(learning->works, &work.name);
    return number < learning->works->count &&
           measured_times_of_all(learning->times, (uint32_t)number, work.size,
                                 requirement_asks_simulated(&learning->job->parts[part].needs),
                                 ret_time);
}

/* Learns one subtask, which stands for `weight` subtasks of its part. */
static void learn_one(struct learning *learning, size_t part, uint32_t index, uint64_t weight,
                      int128 *sum_ns)
{
    const struct bourse_job *job = learning->job;
    struct job_learned *learned = &learning->learner->learned;
    struct measured_time time;
    const bool is_known = find_on_all(learning, part, index, &time);
    const int64_t said = said_ns(job, part, index);
    int64_t expect_ns = said > 0 ? said : foreseen_ns(job, part, index);
    if (is_known) {
        expect_ns = within_limit(measured_time_blend(&time, said), job->parts[part].limit_ms);
        learned->subtasks += weight;
        learned->samples = time.samples > learned->samples ? time.samples : learned->samples;
        learned->has_no_p90 = learned->has_no_p90 || time.p90_ns < 0;
        learned->p90_ns = time.p90_ns > learned->p90_ns ? time.p90_ns : learned->p90_ns;
    }
    if (learning->expect_ns != NULL) {
        learning->expect_ns[index] = expect_ns;
    }
    if ((is_known || said > 0) && !is_sampled(learning->manifest) && job->graph.expect_ms != NULL) {
        job->graph.expect_ms[index] = order_known_ms(expect_ns);
    }
    *sum_ns += (int128)expect_ns * weight;
}

/* Learns the subtasks of a part; one stands for all when they are alike. */
static void learn_part(struct learning *learning, size_t number, uint32_t first)
{
    struct order_part *part = &learning->learner->parts[number];
    const uint32_t step = step_of(learning->manifest, part->subtasks);
    int128 sum_ns = 0;
    for (uint32_t i = 0; i < part->subtasks; i += step) {
        const uint32_t left = part->subtasks - i;
        learn_one(learning, number, first + i, left < step ? left : step, &sum_ns);
    }
    assert(part->subtasks > 0);
    part->expect_ns = (int64_t)((sum_ns + part->subtasks - 1) / part->subtasks);
}

/* Lists the works of a job's parts. Returns NULL when memory is short. */
static struct measured_works *list_works(const struct bourse_job *job,
                                         const Bourse__V1__Manifest *manifest)
{
    struct measured_works *works = calloc(1, sizeof *works);
    uint32_t first = 0;
    for (size_t p = 0; works != NULL && p < parts_of_work(job); p++) {
        const uint32_t count = job->parts[p].subtasks;
        const uint32_t step = step_of(manifest, count);
        for (uint32_t i = 0; i < count; i += step) {
            const struct work work = work_of(manifest, first + i);
            measured_works_add(works, &work.name, first + i);
        }
        first += count;
    }
    return works;
}

static void each_part(struct learning *learning,
                      void visit(struct learning *learning, size_t number, uint32_t first))
{
    uint32_t first = 0;
    for (size_t i = 0; i < parts_of_work(learning->job); i++) {
        visit(learning, i, first);
        first += learning->job->parts[i].subtasks;
    }
}

/* Returns true when subtasks of a part have unlike expected times. */
static bool are_unlike(const struct bourse_job *job, const int64_t *expect_ns)
{
    uint32_t index = 0;
    for (size_t i = 0; i < parts_of_work(job); i++) {
        for (uint32_t k = 0; k < job->parts[i].subtasks; k++, index++) {
            if (expect_ns[index] != job->parts[i].expect_ns) {
                return true;
            }
        }
    }
    return false;
}

/* Independent work on inputs of unlike size goes to the market as tasks do. */
static bool make_list(struct bourse_job *job)
{
    struct order_graph *graph = &job->graph;
    graph->count = (uint32_t)job->subtasks;
    graph->rank = calloc(job->subtasks, sizeof *graph->rank);
    graph->expect_ms = calloc(job->subtasks, sizeof *graph->expect_ms);
    return graph->rank != NULL && graph->expect_ms != NULL;
}

static void learn(struct learning *learning)
{
    struct bourse_job *job = learning->learner;
    const bool is_tasks = job->graph.count > 0;
    const bool is_listed =
        learning->manifest->n_subtasks > 0 && job->checks == 0 && !is_sampled(learning->manifest);
    const bool has_list = is_listed && (is_tasks || make_list(job));
    learning->expect_ns = has_list ? calloc(job->subtasks, sizeof *learning->expect_ns) : NULL;
    each_part(learning, learn_part);
    if (learning->expect_ns != NULL && (is_tasks || are_unlike(job, learning->expect_ns))) {
        order_rank(&job->graph, learning->expect_ns);
        free(job->expect_ns);
        job->expect_ns = learning->expect_ns;
        return;
    }
    if (learning->expect_ns != NULL) { /* alike: the times of single subtasks add nothing */
        free(learning->expect_ns);
        free(job->expect_ns);
        job->expect_ns = NULL;
    }
    if (!is_tasks) {
        order_graph_fini(&job->graph);
    }
}

/* A continued job of tasks cannot tell the stated times of tasks from measured ones. */
static bool says_of_all(const struct bourse_job *job)
{
    return job->file->expect_ms != JOB_ABSENT && (job->graph.count == 0 || job->order != NULL);
}

static bool learn_from(struct bourse *bourse, struct bourse_job *job,
                       const Bourse__V1__Manifest *manifest, struct bourse_error *error)
{
    for (size_t i = 0; i < job->part_count; i++) {
        job->learned.said_ns[i] =
            says_of_all(job) ? order_expect_ns(job->file->expect_ms, job->parts[i].limit_ms) : 0;
    }
    free(job->learned.works); /* of a call that the broker did not answer */
    job->learned.works = list_works(job, manifest);
    if (job->learned.works == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    struct bourse_error refused = {.status = BOURSE_OK};
    const bool told = measured_load(bourse, job->learned.works, &job->learned.times, &refused);
    if (!told && refused.status == BOURSE_UNREACHABLE) {
        *error = refused;
        return false;
    }
    if (told && measured_times_count(job->learned.times) > 0) {
        struct learning learning = {.job = job,
                                    .learner = job,
                                    .manifest = manifest,
                                    .works = job->learned.works,
                                    .times = job->learned.times};
        learn(&learning);
    }
    return true;
}

bool history_learn(struct bourse *bourse, struct bourse_job *job, struct bourse_error *error)
{
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    if (job->learned.is_done || job->manifest == NULL) {
        return true;
    }
    if (codec_decode_manifest(job->manifest, job->manifest_length, &manifest, NULL) != CODEC_OK) {
        return client_fail(error, BOURSE_LOCAL, "the job's manifest does not decode");
    }
    const bool good = learn_from(bourse, job, manifest, error);
    job->learned.is_done = good;
    return good;
}

/* ---------------------------------------------------------------- by class of device */

bool history_is_by_subtask(const struct bourse_job *job)
{
    return job->expect_ns != NULL || job->order != NULL;
}

size_t history_units(const struct bourse_job *job)
{
    return history_is_by_subtask(job) ? job->subtasks : job->part_count;
}

/* Sets the time of one subtask on a kind of devices. A figure without a measurement stays as
 * stated, guessed, or measured elsewhere. The job's stated time holds for all devices. */
static void figure_one(const struct learning *learning, size_t part, uint32_t index, size_t of_kind,
                       struct history_figure *figure)
{
    const struct work work = work_of(learning->manifest, index);
    const size_t number = measured_works_find(learning->works, &work.name);
    struct measured_time time;
    const bool is_known =
        of_kind == 0 ? find_on_all(learning, part, index, &time)
                     : number < learning->works->count &&
                           measured_times_of_kind(learning->times, (uint32_t)number, work.size,
                                                  &learning->kinds[of_kind], &time);
    if (!is_known) {
        return;
    }
    figure->takes_ns = within_limit(measured_time_blend(&time, said_ns(learning->job, part, index)),
                                    learning->job->parts[part].limit_ms);
    const bool has_p90 = time.p90_ns >= 0 && (figure->samples == 0 || figure->p90_ns >= 0);
    figure->p90_ns = !has_p90 ? -1 : time.p90_ns > figure->p90_ns ? time.p90_ns : figure->p90_ns;
    figure->samples = time.samples > figure->samples ? time.samples : figure->samples;
    figure->is_at_pace = figure->is_at_pace || time.is_at_pace;
}

static void figure_class(struct learning *learning, size_t number, uint32_t first, size_t of_class)
{
    const struct bourse_job *job = learning->job;
    const struct order_part *part = &job->parts[number];
    const bool by_subtask = history_is_by_subtask(job);
    const uint32_t step = step_of(learning->manifest, part->subtasks);
    struct history_figure *row = &learning->figures[of_class * history_units(job)];
    int128 sum_ns = 0;
    for (uint32_t i = 0; i < part->subtasks; i += step) {
        const uint32_t left = part->subtasks - i;
        struct history_figure *figure = &row[by_subtask ? first + i : number];
        const int64_t expect_ns = figure->takes_ns;
        figure_one(learning, number, first + i, of_class, figure);
        sum_ns += (int128)figure->takes_ns * (left < step ? left : step);
        figure->takes_ns = by_subtask ? figure->takes_ns : expect_ns;
    }
    if (!by_subtask) {
        row[number].takes_ns = (int64_t)((sum_ns + part->subtasks - 1) / part->subtasks);
    }
}

static void figure_part(struct learning *learning, size_t number, uint32_t first)
{
    for (size_t c = 0; c < learning->kind_count; c++) {
        figure_class(learning, number, first, c);
    }
}

bool history_by_kind(const struct bourse_job *job, const struct measured_kind *kinds,
                     size_t kind_count, struct history_figure *figures, struct bourse_error *error)
{
    CLEANUP(client_manifest_free) Bourse__V1__Manifest *manifest = NULL;
    if (job->manifest == NULL || job->learned.times == NULL || job->learned.subtasks == 0) {
        return true;
    }
    if (codec_decode_manifest(job->manifest, job->manifest_length, &manifest, NULL) != CODEC_OK) {
        return client_fail(error, BOURSE_LOCAL, "the job's manifest does not decode");
    }
    struct learning learning = {.job = job,
                                .manifest = manifest,
                                .works = job->learned.works,
                                .times = job->learned.times,
                                .kinds = kinds,
                                .kind_count = kind_count,
                                .figures = figures};
    each_part(&learning, figure_part);
    return true;
}
