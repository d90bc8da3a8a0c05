/* The summary of a job tells people its work, its files and its terms. */
#include "base/text.h"
#include "consumer/job/bourse_job.h"
#include "consumer/job/order.h"

/* Returns true when the time of any subtask is a guess. */
static bool is_guess(const struct bourse_job *job)
{
    const struct job_file *file = job->file;
    bool guess = file->task_count == 0 && file->expect_ms == JOB_ABSENT && !job->continues;
    for (size_t i = 0; job->continues && file->expect_ms == JOB_ABSENT && i < job->part_count;
         i++) {
        const struct order_part *part = &job->parts[i];
        guess = guess || part->expect_ns == order_expect_ns(JOB_ABSENT, part->limit_ms);
    }
    for (size_t i = 0; i < file->task_count; i++) {
        guess = guess || file->tasks[i].expect_ms == JOB_ABSENT;
    }
    return guess;
}

static int64_t mean_expect_ns(const struct bourse_job *job)
{
    int128 sum_ns = 0;
    size_t parts = job->part_count - (job->checks > 0);
    int64_t subtasks = (int64_t)job->subtasks - job->checks;
    for (size_t i = 0; i < parts; i++) {
        sum_ns += (int128)job->parts[i].subtasks * job->parts[i].expect_ns;
    }
    return (int64_t)((sum_ns + subtasks - 1) / subtasks);
}

static const char *program_of(const struct job_file *file)
{
    return file->is_noop ? "noop" : file->run.count > 0 ? file->run.items[0] : "tasks";
}

/* Counts the files that the job does not make. A made one counts once for all tasks that take
 * it. */
static uint64_t count_files(const struct input_list *list)
{
    uint64_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        count += !list->items[i].is_made;
    }
    return count;
}

void bourse_job_summary(const struct bourse_job *job, struct bourse_job_summary *ret_summary)
{
    *ret_summary = (struct bourse_job_summary){
        .name = job->file->name,
        .program = program_of(job->file),
        .subtasks = job->subtasks - job->checks,
        .checks = job->checks,
        .inputs = count_files(&job->own) + job->shared.count + job->image.count +
                  job->packed.files - job->packed.archives - job->listings,
        .skipped = job->own.skipped,
        .slots = job->file->slots,
        .at_most = job->part_count == 1 ? job->parts[0].at_most : job->file->at_most,
        .budget_micro = job->file->budget_micro,
        .cap_micro = job->file->cap_micro,
        .value_micro = job->file->value.rate != RATE_NONE ? job->file->value.micro : -1,
        .value_rate = rate_name(job->file->value.rate),
        .limit_ms = job->file->limit_ms,
        .term_ms = job->file->term_ms,
        .expect_ns = mean_expect_ns(job),
        .expect_is_guess = is_guess(job) && job->learned.subtasks == 0,
        .measured_subtasks = job->learned.subtasks,
        .measured_samples = job->learned.samples,
        .p90_ns = job->learned.subtasks == 0 || job->learned.has_no_p90 ? -1 : job->learned.p90_ns,
        .parts = (uint32_t)job->part_count - (job->checks > 0),
        .way_ms = order_longest_ms(&job->graph),
    };
    if (job->continues) {
        text_hex(job->continued.bytes, sizeof job->continued.bytes, ret_summary->continues);
    }
    const struct input_list *lists[] = {&job->own, &job->shared, &job->image};
    for (size_t l = 0; l < 3; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            const struct input_file *file = &lists[l]->items[i];
            ret_summary->input_bytes += file->is_made ? 0 : file->size; /* made: once, below */
        }
    }
    ret_summary->inputs += job->made.count;
    for (size_t i = 0; i < job->made.count; i++) {
        ret_summary->input_bytes += job->made.items[i].size;
    }
    text_hex(job->manifest_hash.bytes, sizeof job->manifest_hash.bytes, ret_summary->manifest);
}
