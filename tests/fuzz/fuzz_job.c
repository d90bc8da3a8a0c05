/* Job files: whatever is taken obeys its own rules, and every template of it expands. */
#include "formats/job.h"
#include "formats/requirement.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_template(const char *text, const struct template_values *values)
{
    size_t needed = template_size(text, values);
    assert(needed > 0);
    char small[64];
    enum template_status status = template_expand(text, values, small, sizeof small, NULL);
    assert(status == (needed <= sizeof small ? TEMPLATE_OK : TEMPLATE_TOO_LONG));
}

static void check_task(const struct job_file *job, const struct job_task *task)
{
    const struct template_values values = {.value = task->name, .index = 3};
    const struct job_strings *run = job_task_run(job, task);
    assert(run->count > 0 || job->is_noop);
    assert(task->limit_ms > 0 && task->term_ms > 0 && task->slots > 0);
    assert(task->limit_ms == JOB_LIMIT_MS_NONE || task->term_ms >= task->limit_ms);
    for (size_t i = 0; i < run->count; i++) {
        check_template(run->items[i], &values);
    }
    for (size_t i = 0; i < task->wait_count; i++) {
        const struct job_wait *wait = &task->waits[i];
        assert(wait->task < job->task_count && &job->tasks[wait->task] != task);
        assert((wait->output == NULL) == (wait->name == NULL));
        assert(wait->name == NULL || template_path_safe(wait->name));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct problem problem = {{0}};
    struct job_file *job = job_file_parse((const char *)data, size, "job.yaml", &problem);
    if (job == NULL) {
        assert(strncmp(problem.text, "job.yaml:", 9) == 0);
        return 0;
    }
    assert(job_file_check(job, &problem));
    assert(job->name != NULL || (job->image != NULL && job->run.count == 0));
    assert(job->run.count > 0 || job->is_noop || job->image != NULL || job->task_count > 0);
    assert(job->limit_ms > 0 && job->term_ms > 0);
    assert(job->limit_ms == JOB_LIMIT_MS_NONE || job->term_ms >= job->limit_ms);
    const struct template_values values = {
        .in = job->source == TEMPLATE_EACH ? "in" : NULL, .value = "value", .index = 3};
    for (size_t i = 0; i < job->run.count; i++) {
        check_template(job->run.items[i], &values);
    }
    for (size_t i = 0; i < job->outputs.count; i++) {
        check_template(job->outputs.items[i], &values);
    }
    for (size_t i = 0; i < job->task_count; i++) {
        check_task(job, &job->tasks[i]);
    }
    static char text[1 << 16];
    assert(requirement_text(&job->needs, text, sizeof text));
    job_file_destroy(&job);
    return 0;
}
