/* This file applies measured times to the steps of `plan TEMPLATE`. Files of samples calibrate
 * devices and give the history of steps that are one operation. The market knows the times of tiles
 * of products on devices on offer. Histories are of whole steps, in millionths of the bound
 * (planner/cost/history.h). */
#include "consumer/command/plan/work.h"

#include "consumer/command/complain.h"
#include "consumer/command/plan/samples.h"
#include "consumer/product/tile_times.h"

#include <stdlib.h>
#include <string.h>

static struct history_summary *history_at(const struct work *work, size_t step, size_t device)
{
    return &work->histories[step * work->set->count + device];
}

/* Returns the operation of a step that has one alone, or NULL. */
static const struct operation *sole_operation(const struct step *step)
{
    return step->part_count == 1 && step->parts[0].times == 1 ? &step->parts[0].operation : NULL;
}

/* ---------------------------------------------------------------- samples */

enum { PATH_MOST = 2 * PLAN_FILE_PATH_SIZE };

/* A relative path in a plan file is relative to the file's folder. */
static void write_path(const struct work *work, const struct plan_file_samples *given,
                       char ret_path[PATH_MOST])
{
    const char *slash = work->path == NULL ? NULL : strrchr(work->path, '/');
    const bool is_beside = given->is_of_file && given->path[0] != '/' && slash != NULL;
    (void)snprintf(ret_path, PATH_MOST, "%.*s%s", is_beside ? (int)(slash - work->path) + 1 : 0,
                   is_beside ? work->path : "", given->path);
}

static bool calibrate_device(struct work *work, size_t device, const struct samples *samples,
                             struct problem *ret_problem)
{
    const struct device_profile *profile = &work->set->items[device].profile;
    for (int class = 0; class < OPERATION_CLASSES; class ++) {
        struct cost_calibration *calibration = &work->calibrations[device][class];
        if (!samples_calibrate(samples, profile, (enum operation_class) class, calibration,
                               ret_problem)) {
            return false;
        }
    }
    work->costs[device].calibrations = work->calibrations[device];
    for (size_t s = 0; s < work->steps->step_count; s++) {
        const struct operation *operation = sole_operation(&work->steps->steps[s]);
        if (operation != NULL) {
            struct history history;
            samples_remember(samples, profile, operation, &history);
            *history_at(work, s, device) = history_summarise(&history);
        }
    }
    return true;
}

static int learn_file(struct work *work, const struct plan_file_samples *given,
                      struct samples *samples)
{
    char path[PATH_MOST];
    struct problem problem = {.text = ""};
    const struct catalogue_device *known = NULL;
    write_path(work, given, path);
    bool is_good = device_set_find(given->device, &known, &problem) == DEVICE_SET_OK &&
                   samples_read(path, samples, &problem);
    size_t found = 0;
    for (size_t i = 0; is_good && i < work->set->count; i++) {
        if (work->set->items[i].known == known) {
            found++;
            is_good = calibrate_device(work, i, samples, &problem);
        }
    }
    if (!is_good) {
        return complain(work->invocation, BOURSE_USAGE, "--samples: %s", problem.text);
    }
    return found > 0
               ? BOURSE_OK
               : complain(work->invocation, BOURSE_USAGE,
                          "--samples: no %s is among the devices; name it in --devices", known->id);
}

static int learn_files(struct work *work)
{
    struct samples *samples = calloc(1, sizeof *samples);
    int status = BOURSE_OK;
    work->calibrations = calloc(work->set->count, sizeof *work->calibrations);
    if (samples == NULL || work->calibrations == NULL) {
        free(samples);
        return complain(work->invocation, BOURSE_LOCAL, "out of memory");
    }
    for (size_t i = 0; status == BOURSE_OK && i < work->request.sample_count; i++) {
        status = learn_file(work, &work->request.samples[i], samples);
    }
    free(samples);
    return status;
}

/* ---------------------------------------------------------------- the market */

struct told { /* sums over the samples of one device */
    double samples, median, p90;
    bool has_no_p90;
};

struct asking {
    const struct work *work;
    const struct operation *product;
    struct told devices[PLAN_DEVICES];
};

static void take_tile(void *context, const struct tile_time *tile)
{
    struct asking *asking = context;
    const struct work *work = asking->work;
    struct operation part = *asking->product;
    part.shape.product.m = (int64_t)tile->rows;
    part.shape.product.n = (int64_t)tile->columns;
    for (size_t i = 0; i < work->set->count; i++) {
        struct cost cost;
        struct told *told = &asking->devices[i];
        if (strcmp(work->classes[i], tile->device_class) != 0 || work->classes[i][0] == '\0' ||
            cost_estimate(&work->set->items[i].profile, &part, &cost) != COST_OK ||
            !(cost.bound_s.value > 0)) {
            continue;
        }
        const double bounds = 1e-9 * (double)HISTORY_BOUND / cost.bound_s.value * tile->samples;
        told->samples += tile->samples;
        told->median += (double)tile->median_ns * bounds;
        told->p90 += (double)tile->p90_ns * bounds;
        told->has_no_p90 = told->has_no_p90 || tile->p90_ns < 0;
    }
}

/* A product is made in tiles here. The ratio of the tiles' times to their bounds gives the
 * product's time from its own bound. */
static bool learn_product(struct work *work, size_t step, const struct operation *product,
                          struct bourse_error *error)
{
    const struct product_shape *shape = &product->shape.product;
    struct asking *asking = calloc(1, sizeof *asking);
    if (asking == NULL) {
        return false;
    }
    asking->work = work;
    asking->product = product;
    bool is_good = tile_times_load(work->invocation->bourse, (uint64_t)shape->m, (uint64_t)shape->k,
                                   (uint64_t)shape->n, take_tile, asking, error);
    for (size_t i = 0; is_good && i < work->set->count; i++) {
        const struct told *told = &asking->devices[i];
        const double median = told->samples > 0 ? told->median / told->samples : 0;
        const double p90 = told->has_no_p90 || !(told->samples > 0) ? 0 : told->p90 / told->samples;
        if (median >= 1 && median < 9e18 && p90 < 9e18) { /* an absurd ratio is ignored */
            *history_at(work, step, i) = (struct history_summary){
                .count = told->samples < 1e9 ? (uint32_t)told->samples : 1000000000,
                .median = (int64_t)median,
                .p90 = (int64_t)p90};
        }
    }
    free(asking);
    return is_good;
}

static bool is_tiled(const struct operation *operation)
{
    return operation != NULL && operation->kind == OPERATION_MATMUL &&
           operation->dtype == DTYPE_FP32 && operation->shape.product.batch == 1 &&
           operation->shape.product.sparse == 0;
}

static int learn_market(struct work *work)
{
    for (size_t s = 0; s < work->steps->step_count; s++) {
        const struct operation *operation = sole_operation(&work->steps->steps[s]);
        struct bourse_error error = {.status = BOURSE_LOCAL, .text = "out of memory"};
        if (is_tiled(operation) && !learn_product(work, s, operation, &error)) {
            return complain_with(work->invocation, &error);
        }
    }
    return BOURSE_OK;
}

int work_learn(struct work *work)
{
    work->histories = calloc(work->steps->step_count * work->set->count, sizeof *work->histories);
    if (work->histories == NULL) {
        return complain(work->invocation, BOURSE_LOCAL, "out of memory");
    }
    int status = work->request.is_market ? learn_market(work) : BOURSE_OK;
    return status == BOURSE_OK && work->request.sample_count > 0 ? learn_files(work) : status;
}
