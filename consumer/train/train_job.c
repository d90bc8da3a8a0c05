#include "consumer/train/train_job.h"

#include "base/sha256.h"
#include "consumer/job/input_list.h"
#include "consumer/train/train_model.h"
#include "consumer/train/train_tasks.h"
#include "formats/limits.h"
#include "formats/npy.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_SIZE = ONNX_NAME_BYTES + FORMAT_PATH_BYTES + 256 };

struct blob {
    uint8_t *bytes; /* NULL: the job needs none */
    size_t size;
    size_t number; /* in the job's made blobs */
};

struct train_job {
    struct blob blobs[TRAIN_MADE];
    const struct blob *made[TRAIN_MADE]; /* by number in the job's made blobs, each content once */
    struct train_takes *takes;           /* by task of the file */
    struct train_summary summary;
};

void train_job_destroy(struct train_job **self)
{
    struct train_job *training = *self;
    if (training != NULL) {
        for (size_t i = 0; i < TRAIN_MADE; i++) {
            free(training->blobs[i].bytes);
        }
        free(training->takes);
        free(training);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- what the job makes */

/* Writes a .npy file of float32 with one dim. */
static bool make_vector(const float *values, size_t count, struct blob *blob)
{
    uint8_t header[NPY_HEADER_MOST];
    const struct npy npy = {.kind = 'f',
                            .item_bytes = sizeof *values,
                            .dimension_count = 1,
                            .shape = {count},
                            .element_count = count};
    const size_t length = npy_write(&npy, header);
    blob->size = length + count * sizeof *values;
    blob->bytes = malloc(blob->size);
    if (blob->bytes != NULL) {
        memcpy(blob->bytes, header, length);
        if (count > 0) {
            memcpy(blob->bytes + length, values, count * sizeof *values);
        }
    }
    return blob->bytes != NULL;
}

/* The first weights are the model's own, or those of a checkpoint. */
static bool make_start(struct train_job *training, const struct train_model *model,
                       const struct train_words *words, const char *folder, struct problem *problem)
{
    static const char *const names[] = {TRAIN_WEIGHTS_FILE, TRAIN_STATE_FILE, TRAIN_LOSSES_FILE};
    const int64_t weights = model->gradient.elements;
    const int64_t state = update_state_elements(words->optimizer.method, weights);
    const int64_t elements[] = {weights, state, words->from != NULL ? -1 : 0};
    bool good = true;
    for (size_t i = 0; good && i < sizeof names / sizeof names[0]; i++) {
        size_t count = (size_t)(elements[i] > 0 ? elements[i] : 0);
        float *values = words->from != NULL ? train_model_vector(folder, words->from, names[i],
                                                                 elements[i], &count, problem)
                        : i == 0            ? train_model_weights(model, problem)
                                            : calloc(count + 1, sizeof *values);
        good =
            values != NULL && make_vector(values, count, &training->blobs[TRAIN_MADE_WEIGHTS + i]);
        if (i == 2 && count > UINT32_MAX / 2) {
            problem_set(problem, "the checkpoint has too many losses");
            good = false;
        }
        training->summary.first_step = i == 2 && good ? (uint32_t)count : 0;
        free(values);
    }
    return good;
}

static bool make_models(struct train_job *training, struct train_model *model,
                        const struct train_words *words)
{
    const int64_t weights = model->gradient.elements;
    struct blob *update = &training->blobs[TRAIN_MADE_UPDATE];
    training->blobs[TRAIN_MADE_GRADIENT] =
        (struct blob){.bytes = model->gradient.bytes, .size = model->gradient.size};
    model->gradient.bytes = NULL;
    bool good = update_make(&words->optimizer, weights, train_tasks_width(words->parts),
                            &update->bytes, &update->size);
    for (uint32_t i = 2; good && words->parts > UPDATE_GRADIENTS_MOST && i <= UPDATE_GRADIENTS_MOST;
         i++) {
        struct blob *sum = &training->blobs[TRAIN_MADE_SUMS + i];
        good = update_make_sum(weights, i, &sum->bytes, &sum->size);
    }
    return good;
}

static bool read_made(void *context, size_t index, uint64_t offset, size_t length,
                      uint8_t *ret_bytes, struct problem *ret_problem)
{
    const struct train_job *training = context;
    (void)ret_problem; /* the bytes are there */
    memcpy(ret_bytes, training->made[index]->bytes + offset, length);
    return true;
}

/* Marks the things that some task takes. */
static void mark_taken(const struct bourse_job *job, bool is_taken[TRAIN_MADE])
{
    for (size_t i = 0; i < job->file->task_count; i++) {
        const struct train_takes *takes = &job->training->takes[i];
        for (size_t k = 0; k < takes->count; k++) {
            is_taken[takes->items[k].made] = true;
        }
    }
}

/* Hashes what the tasks take. Equal bytes are one blob. */
static bool make_blobs(struct bourse_job *job, struct problem *problem)
{
    struct train_job *training = job->training;
    bool is_taken[TRAIN_MADE] = {false};
    mark_taken(job, is_taken);
    job->made = (struct made_blobs){.items = calloc(TRAIN_MADE, sizeof *job->made.items),
                                    .read = read_made,
                                    .context = training};
    if (job->made.items == NULL) {
        problem_set(problem, "out of memory");
        return false;
    }
    for (size_t i = 0; i < TRAIN_MADE; i++) {
        struct blob *blob = &training->blobs[i];
        if (!is_taken[i]) {
            continue;
        }
        const struct hash32 hash = sha256_of(blob->bytes, blob->size);
        size_t number = 0;
        while (number < job->made.count &&
               memcmp(&job->made.items[number].hash, &hash, sizeof hash) != 0) {
            number++;
        }
        if (number == job->made.count) {
            training->made[number] = blob;
            job->made.items[job->made.count++] =
                (struct made_blob){.hash = hash, .size = blob->size};
        }
        blob->number = number;
    }
    return true;
}

/* ---------------------------------------------------------------- the job's own words */

/* Writes a word again with the name that its file has in the work folder. Providers see it. */
static void name_word(const char *option, const char *word, char ret_word[WORD_SIZE])
{
    const char *equals = strchr(word, '=');
    const bool is_input = strcmp(option, "-i") == 0 && equals != NULL;
    const bool is_file = strcmp(option, "-y") == 0 || strcmp(option, "-f") == 0;
    if (is_input) {
        (void)snprintf(ret_word, WORD_SIZE, "%.*s=%s", (int)(equals - word), word,
                       input_list_name(equals + 1));
    } else {
        (void)snprintf(ret_word, WORD_SIZE, "%s", is_file ? input_list_name(word) : word);
    }
}

static bool settle_words(struct job_file *file, struct problem *problem)
{
    struct job_strings words = {.items = NULL};
    char word[WORD_SIZE];
    bool good = job_strings_add(&words, TRAIN_WORDS_MOST, input_list_name(file->run.items[0]));
    for (size_t i = 1; good && i + 1 < file->run.count; i += 2) {
        name_word(file->run.items[i], file->run.items[i + 1], word);
        good = job_strings_add(&words, TRAIN_WORDS_MOST, file->run.items[i]) &&
               job_strings_add(&words, TRAIN_WORDS_MOST, word);
    }
    if (!good) {
        job_strings_fini(&words);
        problem_set(problem, "out of memory");
        return false;
    }
    job_strings_fini(&file->run);
    file->run = words;
    return true;
}

/* ---------------------------------------------------------------- all of it */

static bool settle_with(struct bourse_job *job, struct train_model *model,
                        const struct train_words *words, const char *folder,
                        struct problem *problem)
{
    struct train_job *training = job->training;
    struct train_summary *summary = &training->summary;
    *summary = (struct train_summary){.steps = words->steps,
                                      .parts = words->parts,
                                      .batches = model->batches,
                                      .weights = model->gradient.elements,
                                      .rows = model->rows};
    if (!make_start(training, model, words, folder, problem) ||
        !make_models(training, model, words)) {
        if (problem->text[0] == '\0') {
            problem_set(problem, "out of memory");
        }
        return false;
    }
    const struct train_tasks_input input = {
        .file = job->file, .words = words, .model = model, .first_step = summary->first_step};
    job->file->source = TEMPLATE_ONE;
    return train_tasks_make(&input, &training->takes, problem) && make_blobs(job, problem) &&
           settle_words(job->file, problem);
}

bool train_job_settle(struct bourse_job *job, const char *folder, struct problem *ret_problem)
{
    struct job_file *file = job->file;
    struct train_words words;
    if (file == NULL || !file->is_onnx || file->task_count > 0 ||
        !train_words_are((const char *const *)file->run.items, file->run.count)) {
        return true;
    }
    assert(job->training == NULL);
    ret_problem->text[0] = '\0';
    if (!train_words_read((const char *const *)file->run.items, file->run.count, &words,
                          ret_problem)) {
        return false;
    }
    struct train_model *model = train_model_open(folder, &words, ret_problem);
    job->training = model != NULL ? calloc(1, sizeof *job->training) : NULL;
    if (model != NULL && job->training == NULL) {
        problem_set(ret_problem, "out of memory");
    }
    const bool good = job->training != NULL && settle_with(job, model, &words, folder, ret_problem);
    train_model_close(&model);
    return good;
}

bool train_job_add(struct bourse_job *job, size_t task, struct problem *ret_problem)
{
    const struct train_job *training = job->training;
    bool good = true;
    for (size_t i = 0; good && training != NULL && i < training->takes[task].count; i++) {
        const struct train_take *item = &training->takes[task].items[i];
        const struct made_blob *blob = &job->made.items[training->blobs[item->made].number];
        good = input_list_add_made(&job->own, item->name, item->name, &blob->hash, blob->size,
                                   ret_problem);
    }
    return good;
}

bool train_job_summary(const struct bourse_job *job, struct train_summary *ret_summary)
{
    if (job->training == NULL) {
        return false;
    }
    *ret_summary = job->training->summary;
    return true;
}
