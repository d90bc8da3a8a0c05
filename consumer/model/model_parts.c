#include "consumer/model/model_parts.h"

#include "base/cleanup.h"
#include "base/limit.h"
#include "consumer/client/client.h"
#include "consumer/job/order.h"
#include "consumer/model/model_cut.h"
#include "consumer/model/model_file.h"
#include "consumer/model/model_shapes.h"
#include "formats/limits.h"
#include "formats/requirement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NEEDS_SIZE = 1024, MS_PER_S = 1000 };
#define MFLOP 1e6

/* The devices that may take parts. */
struct offers {
    const struct job_file *file;
    struct split_device *devices; /* room for SPLIT_DEVICES */
    size_t count;
    uint32_t slots; /* of all devices so far */
};

static int64_t speed_of(const struct bourse_device *device)
{
    for (size_t i = 0; i < device->attribute_count; i++) {
        if (device->attributes[i].text == NULL &&
            strcmp(device->attributes[i].name, "gemm_fp32") == 0) {
            return device->attributes[i].number;
        }
    }
    return 0;
}

/* A subtask of several slots computes with all of them, and counts as one slot that is faster. */
static bool take_device(void *context, const struct bourse_device *device)
{
    struct offers *offers = context;
    const uint32_t width = offers->file->slots;
    const int64_t speed = speed_of(device);
    const bool sells =
        device->price_micro >= 0 && limit_allows(offers->file->cap_micro, device->price_micro);
    const uint32_t left = SPLIT_SLOTS - offers->slots;
    const uint32_t slots = device->slots / width < left ? device->slots / width : left;
    if (!device->simulated && sells && speed > 0 && slots > 0) {
        offers->devices[offers->count++] =
            (struct split_device){.flops = (double)speed * MFLOP * width,
                                  .fixed_s = MODEL_PARTS_START_S,
                                  .link = MODEL_PARTS_LINK,
                                  .slots = slots,
                                  .price_micro = device->price_micro};
        offers->slots += slots;
    }
    return offers->count < SPLIT_DEVICES;
}

static int fastest_first(const void *a, const void *b)
{
    const struct split_device *left = a;
    const struct split_device *right = b;
    return left->flops == right->flops ? 0 : left->flops > right->flops ? -1 : 1;
}

/* Keeps the fastest slots, no more than the job may have at a time. */
static void keep_fastest(struct offers *offers)
{
    uint32_t left = offers->file->at_most / offers->file->slots;
    size_t kept = 0;
    if (offers->count > 1) {
        qsort(offers->devices, offers->count, sizeof *offers->devices, fastest_first);
    }
    while (left > 0 && kept < offers->count) {
        struct split_device *device = &offers->devices[kept++];
        device->slots = device->slots < left ? device->slots : left;
        left -= device->slots;
    }
    offers->count = offers->file->at_most > 0 ? kept : offers->count;
}

/* ---------------------------------------------------------------- the work */

static bool read_arrays(const struct onnx_words *words, const char *folder,
                        struct model_array *ret_arrays, struct problem *problem)
{
    for (size_t i = 0; i < words->input_count; i++) {
        char name[MODEL_FILE_PATH_SIZE];
        char path[MODEL_FILE_PATH_SIZE];
        const struct onnx_span file = words->inputs[i].file;
        if (file.size >= sizeof name) {
            problem_set(problem, "the name of an input's file is too long");
            return false;
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)file.size, (const char *)file.at);
        if (!model_file_path(folder, name, path)) {
            problem_set(problem, "the path of an input's file is too long");
            return false;
        }
        const struct input_file input = {.path = path, .name = path};
        if (!model_check_array(&words->inputs[i], &input, &ret_arrays[i], problem)) {
            return false;
        }
    }
    return true;
}

static bool count_work(const struct onnx_words *words, const struct model_array *arrays,
                       const struct model_file *model_file, struct parts_work *ret_work,
                       struct problem *problem)
{
    struct onnx_model *model = NULL;
    struct onnx_shapes *shapes = NULL;
    const bool good = onnx_read(model_file->bytes, model_file->size, &model, problem) == ONNX_OK &&
                      model_shapes_find(model, words, arrays, 0, 0, &shapes, problem);
    *ret_work = (struct parts_work){.overhead_s = MODEL_PARTS_OVERHEAD_S};
    if (good) {
        const double flop = model_cut_time_s(model, shapes) * MODEL_CUT_OPERATIONS;
        ret_work->flop = flop > 1 ? flop : 1;
    }
    for (size_t i = 0; good && i < words->input_count; i++) {
        double bytes = (double)onnx_type_bytes(arrays[i].type);
        for (uint32_t k = 0; k < arrays[i].rank; k++) {
            bytes *= (double)arrays[i].dims[k];
        }
        if (words->inputs[i].is_split && arrays[i].rank > 0 && arrays[i].dims[0] > 0) {
            ret_work->rows = (uint64_t)arrays[i].dims[0];
            ret_work->bytes += bytes;
        }
    }
    onnx_shapes_destroy(&shapes);
    onnx_destroy(&model);
    return good;
}

static bool find_work(const struct job_file *file, const char *folder, struct parts_work *ret_work,
                      struct problem *problem)
{
    CLEANUP(model_file_close) struct model_file *model = NULL;
    struct onnx_words words;
    struct model_array arrays[ONNX_WORDS_FILES];
    char path[MODEL_FILE_PATH_SIZE];
    struct problem why = {""};
    if (!onnx_words_read((const char *const *)file->run.items, file->run.count, true, &words,
                         problem)) {
        return false;
    }
    if (!model_file_path(folder, words.model, path)) {
        problem_set(problem, "the path of the model is too long");
        return false;
    }
    model = model_file_open(path, problem);
    if (model == NULL || !read_arrays(&words, folder, arrays, problem)) {
        return false;
    }
    if (!count_work(&words, arrays, model, ret_work, &why)) {
        problem_set(problem, "--parts auto needs the work of the model: %.300s; or give a number",
                    why.text);
        return false;
    }
    return true;
}

bool model_parts_count(const struct job_file *file, const char *folder, struct parts_work *ret_work)
{
    struct problem ignored = {""};
    return file->is_onnx && file->stages <= 1 && find_work(file, folder, ret_work, &ignored);
}

/* ---------------------------------------------------------------- the choice */

/* Sets the time of a subtask that has so much of the work, on slots of this speed. */
static void set_expectation(struct job_file *file, const struct parts_work *work, double flops)
{
    const uint32_t parts = file->parts > 0 ? file->parts : 1;
    const double part_s = work->flop / parts / flops + MODEL_PARTS_OVERHEAD_S + MODEL_PARTS_START_S;
    if (file->expect_ms == JOB_ABSENT) {
        file->expect_ms = part_s * MS_PER_S < (double)FORMAT_TIME_MS
                              ? (int64_t)ceil(part_s * MS_PER_S)
                              : FORMAT_TIME_MS;
    }
}

static bool choose(const struct offers *offers, const struct parts_work *work,
                   struct job_file *file, struct parts *ret_parts, struct bourse_error *error)
{
    *ret_parts = (struct parts){.parts = 1};
    file->parts = 1;
    if (offers->count == 0 || work->rows == 0 ||
        parts_choose(work, offers->devices, offers->count, ret_parts) != SPLIT_OK) {
        return true; /* the quote, or the check of the inputs, says what is wrong */
    }
    const int64_t least = (int64_t)(ret_parts->least_flops / MFLOP / file->slots);
    file->parts = ret_parts->parts;
    file->at_most = ret_parts->slots * file->slots;
    set_expectation(file, work, ret_parts->least_flops);
    return ret_parts->parts == 1 || order_add_least(&file->needs, "gemm_fp32", least) ||
           client_fail(error, BOURSE_USAGE, "needs: too many terms");
}

/* Asks for the devices that may compute the job's model. Returns false with the error. */
static bool find_devices(struct bourse *bourse, const char *needs, struct offers *offers,
                         struct bourse_error *error)
{
    char text[NEEDS_SIZE];
    const int length = needs != NULL
                           ? snprintf(text, sizeof text, "(%s) and executor = onnx", needs)
                           : snprintf(text, sizeof text, "executor = onnx");
    if (length < 0 || (size_t)length >= sizeof text) {
        return client_fail(error, BOURSE_USAGE, "--parts auto: the needs are longer than %d bytes",
                           NEEDS_SIZE);
    }
    offers->devices = calloc(SPLIT_DEVICES, sizeof *offers->devices);
    if (offers->devices == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    return bourse_devices_fitting(bourse, text, take_device, offers, error);
}

bool model_parts_expect(struct bourse *bourse, const struct parts_work *work, struct job_file *file,
                        struct bourse_error *error)
{
    char needs[NEEDS_SIZE];
    struct offers offers = {.file = file};
    const bool has_needs = file->needs.count > 0;
    if (file->expect_ms != JOB_ABSENT ||
        (has_needs && !requirement_text(&file->needs, needs, sizeof needs / 2))) {
        return true;
    }
    const bool good = find_devices(bourse, has_needs ? needs : NULL, &offers, error);
    double slowest = 0;
    for (size_t i = 0; good && i < offers.count; i++) {
        const double flops = offers.devices[i].flops;
        slowest = i == 0 || flops < slowest ? flops : slowest;
    }
    if (slowest > 0) {
        set_expectation(file, work, slowest);
    }
    free(offers.devices);
    return good;
}

bool model_parts_choose_for(struct bourse *bourse, const char *needs, const struct parts_work *work,
                            struct job_file *file, struct parts *ret_parts,
                            struct bourse_error *error)
{
    struct offers offers = {.file = file};
    bool good = find_devices(bourse, needs, &offers, error);
    if (good) {
        keep_fastest(&offers);
        good = choose(&offers, work, file, ret_parts, error);
    }
    free(offers.devices);
    return good;
}

bool model_parts_choose(struct bourse *bourse, const char *needs, const char *folder,
                        struct job_file *file, struct parts *ret_parts, struct bourse_error *error)
{
    struct problem problem = {""};
    struct parts_work work;
    if (!find_work(file, folder, &work, &problem)) {
        return client_fail(error, BOURSE_USAGE, "%s", problem.text);
    }
    return model_parts_choose_for(bourse, needs, &work, file, ret_parts, error);
}
