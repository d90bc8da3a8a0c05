#include "consumer/model/model_stage_tasks.h"

#include "base/checked.h"
#include "formats/limits.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORD_SIZE = ONNX_NAME_BYTES + FORMAT_PATH_BYTES + 16,
    MS_PER_S = 1000,
};

/* The tasks of a job while they are made. */
struct dealing {
    struct bourse_job *job;
    const struct onnx_words *words; /* with paths */
    const struct onnx_words *now;   /* with names of the work folder */
    const char *input_words[ONNX_WORDS_FILES];
    const struct onnx_cut *cut;
    struct problem *problem;
};

void model_stage_tasks_file_name(uint32_t stage, char ret_name[MODEL_STAGE_NAME_SIZE])
{
    (void)snprintf(ret_name, MODEL_STAGE_NAME_SIZE, "stage-%" PRIu32 ".onnx", stage);
}

bool model_stage_tasks_is_taken(const struct onnx_cut *cut, uint32_t value)
{
    for (uint32_t s = 0; s < cut->stage_count; s++) {
        const struct onnx_stage *stage = &cut->stages[s];
        for (uint32_t i = 0; i < stage->input_count; i++) {
            if (stage->inputs[i].value == value && stage->inputs[i].from != ONNX_NONE) {
                return true;
            }
        }
    }
    return false;
}

static bool no_room(const struct dealing *dealing)
{
    problem_set(dealing->problem, "out of memory, or too many words or files");
    return false;
}

/* ---------------------------------------------------------------- words */

static bool add_pair(const struct dealing *dealing, struct job_task *task, const char *option,
                     const char *word)
{
    return (job_strings_add(&task->run, FORMAT_ARGUMENTS, option) &&
            job_strings_add(&task->run, FORMAT_ARGUMENTS, word)) ||
           no_room(dealing);
}

static struct onnx_span name_of(const struct dealing *dealing, uint32_t value)
{
    return dealing->job->stages->model->values[value].name;
}

/* Returns the output of the job with this name, or NULL. */
static const struct onnx_words_file *wanted(const struct dealing *dealing, uint32_t value)
{
    for (size_t i = 0; i < dealing->now->output_count; i++) {
        if (onnx_span_equals(dealing->now->outputs[i].name, name_of(dealing, value))) {
            return &dealing->now->outputs[i];
        }
    }
    return NULL;
}

/* Writes the file of a value that stages leave: the one that the job wants, or one of its own. */
static void file_of(const struct dealing *dealing, uint32_t value, char ret_file[WORD_SIZE])
{
    const struct onnx_words_file *output = wanted(dealing, value);
    if (output != NULL) {
        (void)snprintf(ret_file, WORD_SIZE, "%.*s", (int)output->file.size,
                       (const char *)output->file.at);
    } else {
        (void)snprintf(ret_file, WORD_SIZE, "between-%" PRIu32 ".npy", value);
    }
}

/* Adds an input of the model: its word, its file, and whether its rows are cut. */
static bool add_given(const struct dealing *dealing, struct job_task *task, uint32_t value)
{
    char path[FORMAT_PATH_BYTES + 1];
    size_t i = 0;
    while (!onnx_span_equals(dealing->now->inputs[i].name, name_of(dealing, value))) {
        i++; /* model_check_job has found it */
    }
    const struct onnx_span file = dealing->words->inputs[i].file;
    (void)snprintf(path, sizeof path, "%.*s", (int)file.size, (const char *)file.at);
    for (size_t k = 0; k < task->files.count; k++) { /* two inputs may be one file */
        if (strcmp(task->files.items[k], path) == 0) {
            path[0] = '\0';
        }
    }
    if (path[0] != '\0' && !job_strings_add(&task->files, FORMAT_SHARED_FILES, path)) {
        return no_room(dealing);
    }
    return add_pair(dealing, task, "-i", dealing->input_words[i]);
}

static bool add_wait(const struct dealing *dealing, struct job_task *task, uint32_t from,
                     const char *file)
{
    struct job_wait *wait = &task->waits[task->wait_count++]; /* there is one for each input */
    *wait = (struct job_wait){.task = from, .output = strdup(file), .name = strdup(file)};
    return (wait->output != NULL && wait->name != NULL) || no_room(dealing);
}

static bool add_inputs(const struct dealing *dealing, struct job_task *task, uint32_t first_task)
{
    const struct onnx_stage *stage = &dealing->cut->stages[task->stage - 1];
    char file[WORD_SIZE];
    char word[2 * WORD_SIZE];
    for (uint32_t i = 0; i < stage->input_count; i++) {
        const struct onnx_cut_port *input = &stage->inputs[i];
        const struct onnx_span name = name_of(dealing, input->value);
        file_of(dealing, input->value, file);
        (void)snprintf(word, sizeof word, "%.*s=%s", (int)name.size, (const char *)name.at, file);
        const bool good = input->from == ONNX_NONE
                              ? add_given(dealing, task, input->value)
                              : add_pair(dealing, task, "-i", word) &&
                                    add_wait(dealing, task, first_task + input->from, file);
        if (!good) {
            return false;
        }
    }
    return true;
}

/* The rows of a stage's own inputs of the model are cut as those of the whole model are. */
static bool add_part(const struct dealing *dealing, struct job_task *task, uint32_t part)
{
    const struct onnx_stage *stage = &dealing->cut->stages[task->stage - 1];
    char word[WORD_SIZE];
    bool has_split = false;
    for (size_t i = 0; i < dealing->now->input_count; i++) {
        const struct onnx_words_file *input = &dealing->now->inputs[i];
        bool is_taken = false;
        for (uint32_t k = 0; k < stage->input_count; k++) {
            is_taken = is_taken ||
                       (stage->inputs[k].from == ONNX_NONE &&
                        onnx_span_equals(name_of(dealing, stage->inputs[k].value), input->name));
        }
        if (!is_taken || !input->is_split) {
            continue;
        }
        (void)snprintf(word, sizeof word, "%.*s", (int)input->name.size,
                       (const char *)input->name.at);
        has_split = true;
        if (!add_pair(dealing, task, "-s", word)) {
            return false;
        }
    }
    (void)snprintf(word, sizeof word, "%" PRIu32 "/%" PRIu32, part, dealing->job->file->parts);
    return !has_split || add_pair(dealing, task, "-p", word);
}

static bool add_outputs(const struct dealing *dealing, struct job_task *task)
{
    const struct onnx_stage *stage = &dealing->cut->stages[task->stage - 1];
    char file[WORD_SIZE];
    char word[2 * WORD_SIZE];
    task->has_outputs = true;
    for (uint32_t i = 0; i < stage->output_count; i++) {
        const uint32_t value = stage->outputs[i].value;
        const struct onnx_span name = name_of(dealing, value);
        if (wanted(dealing, value) == NULL && !model_stage_tasks_is_taken(dealing->cut, value)) {
            continue; /* an output that nobody asks for */
        }
        file_of(dealing, value, file);
        (void)snprintf(word, sizeof word, "%.*s=%s", (int)name.size, (const char *)name.at, file);
        if (!add_pair(dealing, task, "-o", word)) {
            return false;
        }
        if (!job_strings_add(&task->outputs, FORMAT_OUTPUTS, file)) {
            return no_room(dealing);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- tasks */

/* Returns the share of the time that a run of the whole model is said to take, or an estimate. */
static int64_t expect_ms(const struct bourse_job *job, uint32_t stage)
{
    const struct model_cut *choice = &job->stages->choice;
    double all_s = 0;
    for (uint32_t i = 0; i < job->stages->cut->stage_count; i++) {
        all_s += choice->time_s[i];
    }
    const double share = all_s > 0 ? choice->time_s[stage] / all_s : 1;
    const double ms = job->file->expect_ms != JOB_ABSENT
                          ? share * (double)job->file->expect_ms
                          : MODEL_STAGE_START_MS + MS_PER_S * choice->time_s[stage];
    return ms < 1 ? 1 : ms > (double)FORMAT_TIME_MS ? FORMAT_TIME_MS : (int64_t)ceil(ms);
}

/* A stage has its share of the slots that the job may have at a time, else the slots of one
 * task: so the parts follow one another from stage to stage, and no stage takes all slots. */
static uint32_t at_most(const struct job_file *file)
{
    const uint32_t share = file->at_most / file->stages / file->slots * file->slots;
    return share > file->slots ? share : file->slots;
}

static bool fill_task(const struct dealing *dealing, struct job_task *task, uint32_t part)
{
    const struct job_file *file = dealing->job->file;
    const struct onnx_stage *stage = &dealing->cut->stages[task->stage - 1];
    char name[FORMAT_NAME_BYTES];
    char model[MODEL_STAGE_NAME_SIZE];
    if (file->parts > 1) {
        (void)snprintf(name, sizeof name, "stage-%" PRIu32 ".%" PRIu32, task->stage, part);
    } else {
        (void)snprintf(name, sizeof name, "stage-%" PRIu32, task->stage);
    }
    model_stage_tasks_file_name(task->stage, model);
    task->line = file->run_line;
    task->slots = file->slots;
    task->at_most = at_most(file);
    task->limit_ms = file->limit_ms;
    task->term_ms = file->term_ms;
    task->expect_ms = expect_ms(dealing->job, task->stage - 1);
    task->limits = file->limits;
    task->waits = calloc((size_t)stage->input_count + 1, sizeof *task->waits);
    if (task->waits == NULL || !job_file_set(&task->name, name) ||
        !job_strings_add(&task->run, FORMAT_ARGUMENTS, model)) {
        return no_room(dealing);
    }
    return add_inputs(dealing, task, part * dealing->cut->stage_count) &&
           add_part(dealing, task, part) && add_outputs(dealing, task);
}

static bool make_tasks(const struct dealing *dealing)
{
    struct job_file *file = dealing->job->file;
    const uint32_t stages = dealing->cut->stage_count;
    const uint32_t parts = file->parts > 0 ? file->parts : 1;
    if ((uint64_t)parts * stages > FORMAT_TASKS) {
        problem_set(dealing->problem, "%u parts of %u stages are more than %d tasks", parts, stages,
                    FORMAT_TASKS);
        return false;
    }
    file->tasks = calloc((size_t)parts * stages, sizeof *file->tasks);
    if (file->tasks == NULL) {
        return no_room(dealing);
    }
    for (uint32_t i = 0; i < parts * stages; i++) {
        file->task_count = i + 1; /* its destructor frees what there is */
        file->tasks[i].stage = 1 + i % stages;
        if (!fill_task(dealing, &file->tasks[i], i / stages)) {
            return false;
        }
    }
    return true;
}

/* The job's own words only say now which outputs there are, and how many parts. */
static bool settle_job(const struct dealing *dealing)
{
    struct job_file *file = dealing->job->file;
    char text[32];
    file->source = TEMPLATE_ONE;
    file->array = (struct range){.first = 0};
    job_strings_fini(&file->files); /* each task names its own */
    if (file->parts == 0) {
        return true;
    }
    (void)snprintf(text, sizeof text, "0/%" PRIu32, file->parts);
    return job_file_set(&file->run.items[file->run.count - 1], text) || no_room(dealing);
}

bool model_stage_tasks_make(struct bourse_job *job, const struct onnx_words *words,
                            const struct onnx_words *now, struct problem *ret_problem)
{
    struct dealing dealing = {
        .job = job, .words = words, .now = now, .cut = job->stages->cut, .problem = ret_problem};
    size_t inputs = 0;
    for (size_t i = 1; i + 1 < job->file->run.count; i += 2) {
        if (strcmp(job->file->run.items[i], "-i") == 0) {
            dealing.input_words[inputs++] = job->file->run.items[i + 1];
        }
    }
    for (size_t i = 0; i < words->input_count + words->output_count; i++) {
        const struct onnx_span file = i < words->input_count
                                          ? words->inputs[i].file
                                          : words->outputs[i - words->input_count].file;
        if (memchr(file.at, '{', file.size) != NULL || memchr(file.at, '}', file.size) != NULL) {
            problem_set(ret_problem, "a model in stages has no placeholders in its files: \"%s\"",
                        onnx_label(file).text);
            return false;
        }
    }
    return make_tasks(&dealing) && settle_job(&dealing);
}
