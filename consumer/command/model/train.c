/* This file runs `train`, which trains an ONNX model as a job of tasks, and writes the model with
 * the weights of a checkpoint. */
#include "consumer/command/job/jobs.h"
#include "consumer/command/model/model_command.h"
#include "consumer/command/show.h"
#include "consumer/model/model_parts.h"
#include "consumer/train/train_model.h"

#include "base/checked.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char part_option[] = "-k";

/* ---------------------------------------------------------------- words */

struct train_line {
    char *items[TRAIN_WORDS_MOST];
    int count;
};

static bool add_pair(struct train_line *line, const char *option, const char *value)
{
    if (line->count + 2 > TRAIN_WORDS_MOST) {
        return false;
    }
    line->items[line->count++] = (char *)option;
    line->items[line->count++] = (char *)value;
    return true;
}

/* Makes the words of training from the options. With --parts auto there is one part for now. */
static bool make_line(const struct invocation *invocation, struct train_line *line)
{
    static const struct {
        const char *name, *option;
    } options[] = {{"labels", "-y"}, {"steps", "-n"},    {"batch", "-b"},     {"every", "-c"},
                   {"from", "-f"},   {"loss", "-l"},     {"optimizer", "-a"}, {"rate", "-r"},
                   {"decay", "-d"},  {"momentum", "-m"}, {"beta1", "-1"},     {"beta2", "-2"},
                   {"epsilon", "-x"}};
    bool good = true;
    line->items[line->count++] = invocation->words[0];
    for (size_t i = 0; good && i < sizeof options / sizeof options[0]; i++) {
        const char *value = option_text(invocation, options[i].name, NULL);
        good = value == NULL || add_pair(line, options[i].option, value);
    }
    const char *parts =
        model_parts_are_auto(invocation) ? "1" : option_text(invocation, "parts", "1");
    good = good && add_pair(line, part_option, parts);
    for (size_t i = 0; good && i < invocation->given_count; i++) {
        if (strcmp(invocation->given[i].name, "input") == 0) {
            good = add_pair(line, "-i", invocation->given[i].value);
        }
    }
    return good;
}

/* ---------------------------------------------------------------- parts by the devices' speeds */

/* Puts the number of parts into the job's words. */
static bool set_parts(struct job_file *file, uint32_t parts)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%" PRIu32, parts);
    for (size_t i = 1; i + 1 < file->run.count; i += 2) {
        if (strcmp(file->run.items[i], part_option) == 0) {
            return job_file_set(&file->run.items[i + 1], text);
        }
    }
    return false;
}

/* A part brings the weights to its device, and its gradient back. */
static bool count_work(const struct job_file *file, struct parts_work *ret_work,
                       struct problem *problem)
{
    struct train_words words;
    if (!train_words_read((const char *const *)file->run.items, file->run.count, &words, problem)) {
        return false;
    }
    struct train_model *model = train_model_open(".", &words, problem);
    if (model == NULL) {
        return false;
    }
    const double moved = 2.0 * sizeof(float) * (double)model->gradient.elements;
    *ret_work =
        (struct parts_work){.rows = (uint64_t)(model->rows / model->batches),
                            .flop = model->batch_flop > 1 ? model->batch_flop : 1,
                            .bytes = (double)model->data_bytes / model->batches,
                            .overhead_s = MODEL_PARTS_OVERHEAD_S + moved / MODEL_PARTS_LINK};
    const uint64_t most = ONNX_WORDS_PARTS / model->batches;
    ret_work->rows = ret_work->rows < most ? ret_work->rows : most;
    ret_work->rows = ret_work->rows < TRAIN_PARTS_MOST ? ret_work->rows : TRAIN_PARTS_MOST;
    train_model_close(&model);
    return true;
}

/* Chooses the parts by the devices on the market, and says what was chosen. */
static bool choose_parts(struct invocation *invocation, struct job_file *file, int *ret_status)
{
    struct parts parts;
    struct parts_work work;
    struct bourse_error error;
    struct problem problem = {""};
    if (!count_work(file, &work, &problem)) {
        *ret_status = complain(invocation, BOURSE_USAGE, "%s", problem.text);
        return false;
    }
    if (!command_connect(invocation, ret_status)) {
        return false;
    }
    if (!model_parts_choose_for(invocation->bourse, option_text(invocation, "needs", NULL), &work,
                                file, &parts, &error)) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    if (!invocation->quiet && parts.device_count > 0) {
        (void)fprintf(stderr, "parts: %" PRIu32 " on %zu device%s, about %s a step\n", parts.parts,
                      parts.device_count, text_plural((uint32_t)parts.device_count),
                      cell_duration_ns((int64_t)(parts.finish_s * (double)NS_PER_S)));
    }
    file->parts = 0; /* they are those of a batch */
    if (!set_parts(file, parts.parts)) {
        *ret_status = complain(invocation, BOURSE_LOCAL, "out of memory");
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- the model with other weights */

static int save_model(struct invocation *invocation)
{
    struct problem problem = {""};
    const char *from = option_text(invocation, "from", NULL);
    const char *path = option_text(invocation, "save", "");
    size_t count = 0;
    if (from == NULL || option_given(invocation, "steps")) {
        return complain(invocation, BOURSE_USAGE,
                        "--save needs --from DIR, the folder of a step, and no --steps");
    }
    if (access(path, F_OK) == 0) {
        return complain(
            invocation, BOURSE_USAGE,
            "--save: %s is there already, and nothing is overwritten; give another name",
            cell_plain(path));
    }
    struct train_model *model = train_model_open_alone(".", invocation->words[0], &problem);
    float *weights = model != NULL ? train_model_vector(".", from, TRAIN_WEIGHTS_FILE,
                                                        model->gradient.elements, &count, &problem)
                                   : NULL;
    const bool good = weights != NULL &&
                      train_model_save(model, weights, path, 0666 & ~invocation->umask, &problem);
    free(weights);
    train_model_close(&model);
    return good ? BOURSE_OK : complain(invocation, BOURSE_USAGE, "%s", problem.text);
}

/* ---------------------------------------------------------------- the job */

/* Makes the job's file. Returns NULL after a message. */
static struct job_file *make_file(struct invocation *invocation)
{
    struct train_line line = {.count = 0};
    static const char *const needed[] = {"input", "labels", "steps"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (!option_given(invocation, needed[i])) {
            (void)complain(invocation, BOURSE_USAGE,
                           "train needs --input NAME=FILE, --labels FILE and --steps N; see "
                           "`bourse help train`");
            return NULL;
        }
    }
    if (!make_line(invocation, &line)) {
        (void)complain(invocation, BOURSE_USAGE, "--input: at most %d", ONNX_WORDS_FILES);
        return NULL;
    }
    for (size_t i = 0; i < invocation->given_count; i++) {
        if (strcmp(invocation->given[i].name, "parts") == 0) {
            invocation->given[i].value = "1"; /* the words have the parts */
        }
    }
    invocation->words = line.items;
    invocation->word_count = line.count;
    struct job_file *file = job_from_arguments(invocation);
    invocation->word_count = 0; /* the words end with this function */
    if (file != NULL) {
        file->parts = 0;
    }
    return file;
}

int command_train(struct invocation *invocation)
{
    return option_given(invocation, "save") ? save_model(invocation)
                                            : model_command(invocation, make_file, choose_parts);
}
