#include "consumer/train/train_tasks.h"

#include "consumer/job/input_list.h"
#include "consumer/model/model_cut.h"
#include "consumer/model/model_stage_tasks.h"
#include "formats/limits.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_SIZE = ONNX_NAME_BYTES + FORMAT_PATH_BYTES + 256, NAME_SIZE = 48, MS_PER_S = 1000 };
#define GRADIENT_FILE "gradient.npy"
/* Bytes that an update moves for each weight, in float32 and float64. */
#define UPDATE_BYTES 200.0

/* The tasks of a job while they are made. */
struct dealing {
    const struct train_tasks_input *input;
    struct job_task *tasks;
    struct train_takes *takes;
    uint32_t each; /* tasks of a step; the last one is the update */
    struct problem *problem;
};

/* One task while it is filled. */
struct filling {
    const struct dealing *dealing;
    struct job_task *task;
    struct train_takes *takes;
};

static bool no_room(const struct dealing *dealing)
{
    problem_set(dealing->problem, "out of memory, or too many words or files");
    return false;
}

/* ---------------------------------------------------------------- the tree of sums */

static uint32_t groups_of(uint32_t count)
{
    return (count + UPDATE_GRADIENTS_MOST - 1) / UPDATE_GRADIENTS_MOST;
}

uint32_t train_tasks_width(uint32_t parts)
{
    while (parts > UPDATE_GRADIENTS_MOST) {
        parts = groups_of(parts);
    }
    return parts;
}

static uint32_t tasks_of_step(uint32_t parts)
{
    uint32_t count = parts + 1;
    while (parts > UPDATE_GRADIENTS_MOST) {
        parts = groups_of(parts);
        count += parts;
    }
    return count;
}

/* ---------------------------------------------------------------- words, files and waits */

static bool add_word(const struct filling *filling, const char *word)
{
    return job_strings_add(&filling->task->run, FORMAT_ARGUMENTS, word) ||
           no_room(filling->dealing);
}

static bool add_pair(const struct filling *filling, const char *option, const char *name,
                     const char *file)
{
    char word[NAME_SIZE];
    (void)snprintf(word, sizeof word, "%s=%s", name, file);
    return add_word(filling, option) && add_word(filling, word);
}

static bool add_output(const struct filling *filling, const char *name, const char *file)
{
    filling->task->has_outputs = true;
    return add_pair(filling, "-o", name, file) &&
           (job_strings_add(&filling->task->outputs, FORMAT_OUTPUTS, file) ||
            no_room(filling->dealing));
}

static void take(const struct filling *filling, enum train_made made, const char *name)
{
    struct train_take *item = &filling->takes->items[filling->takes->count++];
    item->made = made;
    (void)snprintf(item->name, sizeof item->name, "%s", name);
}

/* Lets the task wait for another one, and take a file from it. */
static bool add_wait(const struct filling *filling, uint32_t from, const char *output,
                     const char *name)
{
    struct job_wait *wait = &filling->task->waits[filling->task->wait_count++];
    *wait = (struct job_wait){.task = from, .output = strdup(output), .name = strdup(name)};
    return (wait->output != NULL && wait->name != NULL) || no_room(filling->dealing);
}

/* Takes a file of the step before, or of the job where there is none. */
static bool take_before(const struct filling *filling, uint32_t step, enum train_made made,
                        const char *file, const char *name)
{
    if (step == 0) {
        take(filling, made, name);
        return true;
    }
    return add_wait(filling, step * filling->dealing->each - 1, file, name);
}

static bool add_file(const struct filling *filling, const char *path)
{
    return job_strings_add_once(&filling->task->files, FORMAT_SHARED_FILES, path) ||
           no_room(filling->dealing);
}

/* ---------------------------------------------------------------- tasks */

static int64_t milliseconds(double seconds)
{
    const double ms = MODEL_STAGE_START_MS + MS_PER_S * seconds;
    return ms > (double)FORMAT_TIME_MS ? FORMAT_TIME_MS : (int64_t)ceil(ms);
}

static bool begin_task(const struct filling *filling, const char *name, size_t waits,
                       int64_t expect_ms)
{
    const struct job_file *file = filling->dealing->input->file;
    struct job_task *task = filling->task;
    task->line = file->run_line;
    task->slots = file->slots;
    task->at_most = file->at_most;
    task->limit_ms = file->limit_ms;
    task->term_ms = file->term_ms;
    task->expect_ms = expect_ms;
    task->limits = file->limits;
    task->waits = calloc(waits, sizeof *task->waits);
    return (task->waits != NULL && job_file_set(&task->name, name)) || no_room(filling->dealing);
}

/* Adds the rows of one input: the whole file is sent, and the run takes its part of it. */
static bool add_rows(const struct filling *filling, const struct onnx_words_file *input)
{
    char path[FORMAT_PATH_BYTES + 1];
    char word[WORD_SIZE];
    (void)snprintf(path, sizeof path, "%.*s", (int)input->file.size, (const char *)input->file.at);
    const char *rest = (const char *)input->file.at + input->file.size; /* type and dims, or none */
    (void)snprintf(word, sizeof word, "%.*s=%s%s", (int)input->name.size,
                   (const char *)input->name.at, input_list_name(path), rest);
    if (!add_word(filling, "-i") || !add_word(filling, word) || !add_file(filling, path)) {
        return false;
    }
    (void)snprintf(word, sizeof word, "%.*s", (int)input->name.size, (const char *)input->name.at);
    return add_word(filling, "-s") && add_word(filling, word);
}

static bool fill_gradient(const struct filling *filling, uint32_t step, uint32_t part)
{
    const struct train_tasks_input *input = filling->dealing->input;
    const struct train_words *words = input->words;
    const uint32_t number = input->first_step + step;
    const uint32_t batch = number % input->model->batches;
    const int64_t expect_ms =
        input->file->expect_ms != JOB_ABSENT
            ? input->file->expect_ms
            : milliseconds(input->model->batch_flop / words->parts / MODEL_CUT_OPERATIONS);
    const size_t length = strlen(words->labels);
    const struct onnx_words_file labels = {
        .name = {(const uint8_t *)GRADIENT_LABELS, sizeof GRADIENT_LABELS - 1},
        .file = {(const uint8_t *)words->labels, length}};
    char text[NAME_SIZE];
    (void)snprintf(text, sizeof text, "gradient-%" PRIu32 ".%" PRIu32, number + 1, part);
    take(filling, TRAIN_MADE_GRADIENT, "gradient.onnx");
    bool good =
        begin_task(filling, text, 1, expect_ms) && add_word(filling, "gradient.onnx") &&
        take_before(filling, step, TRAIN_MADE_WEIGHTS, TRAIN_WEIGHTS_FILE, TRAIN_WEIGHTS_FILE) &&
        add_pair(filling, "-i", GRADIENT_WEIGHTS, TRAIN_WEIGHTS_FILE);
    for (size_t i = 0; good && i < words->arrays.input_count; i++) {
        good = add_rows(filling, &words->arrays.inputs[i]);
    }
    (void)snprintf(text, sizeof text, "%" PRIu32 "/%" PRIu32, batch * words->parts + part,
                   input->model->batches * words->parts);
    return good && add_rows(filling, &labels) && add_word(filling, "-p") &&
           add_word(filling, text) && add_output(filling, GRADIENT_OUTPUT, GRADIENT_FILE);
}

/* Takes the gradients of `count` tasks from `first` on as g0, g1 and so on. */
static bool add_gradients(const struct filling *filling, uint32_t first, uint32_t count)
{
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++) {
        char name[NAME_SIZE];
        char file[NAME_SIZE];
        (void)snprintf(name, sizeof name, "g%" PRIu32, i);
        (void)snprintf(file, sizeof file, "g%" PRIu32 ".npy", i);
        good = add_wait(filling, first + i, GRADIENT_FILE, file) &&
               add_pair(filling, "-i", name, file);
    }
    return good;
}

static int64_t update_ms(const struct filling *filling)
{
    const double weights = (double)filling->dealing->input->model->gradient.elements;
    return milliseconds(weights * UPDATE_BYTES / MODEL_CUT_MEMORY);
}

static bool fill_sum(const struct filling *filling, const char *name, uint32_t first,
                     uint32_t count)
{
    char model[NAME_SIZE / 2];
    (void)snprintf(model, sizeof model, "sum-%" PRIu32 ".onnx", count % 100);
    take(filling, (enum train_made)(TRAIN_MADE_SUMS + count), model);
    return begin_task(filling, name, count, update_ms(filling)) && add_word(filling, model) &&
           add_gradients(filling, first, count) && add_output(filling, "g", GRADIENT_FILE);
}

static bool fill_update(const struct filling *filling, uint32_t step, uint32_t first,
                        uint32_t count)
{
    static const struct {
        enum train_made made;
        const char *file, *old, *input, *output;
    } kept[] = {
        {TRAIN_MADE_WEIGHTS, TRAIN_WEIGHTS_FILE, "old-weights.npy", "weights", "new-weights"},
        {TRAIN_MADE_STATE, TRAIN_STATE_FILE, "old-state.npy", "state", "new-state"},
        {TRAIN_MADE_LOSSES, TRAIN_LOSSES_FILE, "old-losses.npy", "losses", "new-losses"},
    };
    enum { KEPT = sizeof kept / sizeof kept[0] };
    char name[NAME_SIZE];
    (void)snprintf(name, sizeof name, "step-%" PRIu32,
                   filling->dealing->input->first_step + step + 1);
    take(filling, TRAIN_MADE_UPDATE, "update.onnx");
    bool good = begin_task(filling, name, (size_t)count + KEPT, update_ms(filling)) &&
                add_word(filling, "update.onnx");
    for (size_t i = 0; good && i < KEPT; i++) {
        good = take_before(filling, step, kept[i].made, kept[i].file, kept[i].old) &&
               add_pair(filling, "-i", kept[i].input, kept[i].old);
    }
    good = good && add_gradients(filling, first, count);
    for (size_t i = 0; good && i < KEPT; i++) {
        good = add_output(filling, kept[i].output, kept[i].file);
    }
    return good;
}

/* ---------------------------------------------------------------- steps */

static struct filling filling_of(const struct dealing *dealing, uint32_t task)
{
    /* The file's destructor frees what there is. */
    dealing->input->file->task_count = (size_t)task + 1;
    return (struct filling){dealing, &dealing->tasks[task], &dealing->takes[task]};
}

static bool fill_step(const struct dealing *dealing, uint32_t step)
{
    const uint32_t number = dealing->input->first_step + step + 1;
    uint32_t next = step * dealing->each;
    uint32_t first = next; /* the tasks whose gradients are added */
    uint32_t count = dealing->input->words->parts;
    for (uint32_t part = 0; part < count; part++) {
        const struct filling filling = filling_of(dealing, next++);
        if (!fill_gradient(&filling, step, part)) {
            return false;
        }
    }
    for (uint32_t sum = 0; count > UPDATE_GRADIENTS_MOST;) {
        const uint32_t groups = groups_of(count);
        const uint32_t begin = next;
        for (uint32_t i = 0; i < groups; i++, sum++) {
            const struct filling filling = filling_of(dealing, next++);
            const uint32_t from = count * i / groups;
            const uint32_t to = count * (i + 1) / groups;
            char name[NAME_SIZE];
            (void)snprintf(name, sizeof name, "sum-%" PRIu32 ".%" PRIu32, number, sum);
            if (!fill_sum(&filling, name, first + from, to - from)) {
                return false;
            }
        }
        first = begin;
        count = groups;
    }
    const struct filling filling = filling_of(dealing, next);
    return fill_update(&filling, step, first, count);
}

/* Words of tasks are templates, in which a brace begins a placeholder. */
static bool has_hole(struct onnx_span text)
{
    return memchr(text.at, '{', text.size) != NULL || memchr(text.at, '}', text.size) != NULL;
}

static bool check_names(const struct train_tasks_input *input, struct problem *problem)
{
    const struct onnx_words *arrays = &input->words->arrays;
    const char *labels = input->words->labels;
    for (size_t i = 0; i <= arrays->input_count; i++) {
        const struct onnx_span text =
            i < arrays->input_count ? arrays->inputs[i].file
                                    : (struct onnx_span){(const uint8_t *)labels, strlen(labels)};
        if (has_hole(text) || (i < arrays->input_count && has_hole(arrays->inputs[i].name))) {
            problem_set(problem, "training has no placeholders in its files: \"%s\"",
                        onnx_label(text).text);
            return false;
        }
    }
    return true;
}

bool train_tasks_make(const struct train_tasks_input *input, struct train_takes **ret_takes,
                      struct problem *ret_problem)
{
    struct job_file *file = input->file;
    const uint32_t steps = input->words->steps;
    const uint32_t each = tasks_of_step(input->words->parts);
    const uint64_t count = (uint64_t)each * steps;
    struct dealing dealing = {.input = input, .each = each, .problem = ret_problem};
    if (count > FORMAT_TASKS) {
        problem_set(ret_problem,
                    "%" PRIu32 " steps of %" PRIu32 " tasks are more than %d tasks: take %" PRIu32
                    " steps, and go on with --from",
                    steps, each, FORMAT_TASKS, FORMAT_TASKS / each);
        return false;
    }
    if (!check_names(input, ret_problem)) {
        return false;
    }
    dealing.tasks = calloc(count, sizeof *dealing.tasks);
    dealing.takes = calloc(count, sizeof *dealing.takes);
    file->tasks = dealing.tasks;
    bool good = dealing.tasks != NULL && dealing.takes != NULL;
    if (!good) {
        problem_set(ret_problem, "out of memory");
    }
    for (uint32_t step = 0; good && step < steps; step++) {
        good = fill_step(&dealing, step);
    }
    if (!good) {
        free(dealing.takes);
        return false;
    }
    *ret_takes = dealing.takes;
    return true;
}
