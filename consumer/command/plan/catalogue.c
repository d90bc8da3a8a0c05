/* This file runs devices --catalogue, which shows known devices and the time of an operation on
 * them. The command works offline. */
#include "consumer/command/plan/catalogue.h"

#include "base/text.h"
#include "consumer/command/plan/samples.h"
#include "consumer/command/show.h"
#include "planner/cost/catalogue.h"
#include "planner/cost/cost.h"
#include "planner/cost/device_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_MAX = 256 };

struct figure_facts {
    const char *name; /* name for people */
    const char *key;  /* key for programs, with the unit */
    double scale;     /* scale of the unit for people */
    const char *unit;
};

static const struct figure_facts facts[PROFILE_FIGURES] = {
    [FIGURE_FP64] = {"fp64", "fp64_ops", 1e12, "Tflop/s"},
    [FIGURE_FP64_MATRIX] = {"fp64 matrix", "fp64_matrix_ops", 1e12, "Tflop/s"},
    [FIGURE_FP32] = {"fp32", "fp32_ops", 1e12, "Tflop/s"},
    [FIGURE_TF32] = {"tf32", "tf32_ops", 1e12, "Tflop/s"},
    [FIGURE_FP16] = {"fp16", "fp16_ops", 1e12, "Tflop/s"},
    [FIGURE_BF16] = {"bf16", "bf16_ops", 1e12, "Tflop/s"},
    [FIGURE_FP8] = {"fp8", "fp8_ops", 1e12, "Tflop/s"},
    [FIGURE_INT8] = {"int8", "int8_ops", 1e12, "Top/s"},
    [FIGURE_INT4] = {"int4", "int4_ops", 1e12, "Top/s"},
    [FIGURE_SPARSITY] = {"if 2:4 sparse", "sparsity_factor", 1, "times"},
    [FIGURE_MEMORY] = {"memory", "memory_bytes", 1e9, "GB"},
    [FIGURE_BANDWIDTH] = {"bandwidth", "bandwidth_bytes", 1e9, "GB/s"},
    [FIGURE_POWER] = {"power", "power_w", 1, "W"},
    [FIGURE_INTERCONNECT] = {"interconnect", "interconnect_bytes", 1e9, "GB/s"},
};

static const char *const source_names[] = {[FIGURE_UNKNOWN] = "unknown",
                                           [FIGURE_DECLARED] = "declared",
                                           [FIGURE_CALIBRATED] = "calibrated",
                                           [FIGURE_MEASURED] = "measured"};

static const char *source_text(const struct figure *figure)
{
    return figure->unverified ? "declared, unverified" : source_names[figure->source];
}

struct cell {
    char text[64];
};

/* Writes "989.4", or "989.4?" for an unverified figure, or "-" for an unknown one. */
static struct cell figure_cell(const struct figure *figure, double scale, const char *unit)
{
    struct cell cell = {"-"};
    if (figure->source != FIGURE_UNKNOWN) {
        (void)snprintf(cell.text, sizeof cell.text, "%.6g%s%s%s", figure->value / scale,
                       unit[0] != '\0' ? " " : "", unit, figure->unverified ? "?" : "");
    }
    return cell;
}

static json_t *json_figure(const struct figure *figure)
{
    json_t *value = figure->source == FIGURE_UNKNOWN ? json_null() : json_real(figure->value);
    json_t *all = json_pack("{s:o, s:s}", "value", value, "source", source_names[figure->source]);
    if (figure->source == FIGURE_DECLARED) {
        (void)json_object_set_new(all, "verified", json_boolean(!figure->unverified));
    }
    return all;
}

/* ---------------------------------------------------------------- the catalogue */

static json_t *json_device(const struct catalogue_device *device)
{
    json_t *figures = json_object();
    for (int i = 0; i < PROFILE_FIGURES; i++) {
        (void)json_object_set_new(figures, facts[i].key, json_figure(&device->profile.figures[i]));
    }
    json_t *value =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:s}", "id", device->id, "vendor",
                  device->vendor, "model", device->model, "kind", device->kind, "instrument",
                  device->instrument, "memory_type", device->memory_type, "figures", figures,
                  "sources", device->sources, "notes", device->notes);
    if (device->variant[0] != '\0') {
        (void)json_object_set_new(value, "variant", json_string(device->variant));
    }
    if (device->fabric[0] != '\0') {
        (void)json_object_set_new(value, "fabric", json_string(device->fabric));
    }
    return value;
}

static void add_row(struct grid *table, const struct catalogue_device *device)
{
    static const enum profile_figure shown[] = {FIGURE_FP64,      FIGURE_FP32, FIGURE_FP16,
                                                FIGURE_BF16,      FIGURE_INT8, FIGURE_MEMORY,
                                                FIGURE_BANDWIDTH, FIGURE_POWER};
    enum { SHOWN = sizeof shown / sizeof shown[0] };
    struct cell texts[SHOWN];
    const char *cells[2 + SHOWN] = {device->id,
                                    device->variant[0] != '\0' ? device->variant : device->kind};
    for (size_t i = 0; i < SHOWN; i++) {
        const struct figure_facts *about = &facts[shown[i]];
        bool is_rate = shown[i] < FIGURE_SPARSITY; /* the title has the unit */
        texts[i] = figure_cell(&device->profile.figures[shown[i]], about->scale,
                               is_rate ? "" : about->unit);
        cells[2 + i] = texts[i].text;
    }
    grid_add(table, cells);
}

static int show_table(struct invocation *invocation)
{
    static const char *const titles[] = {"ID",        "KIND",     "FP64 T/s", "FP32 T/s",
                                         "FP16 T/s",  "BF16 T/s", "INT8 T/s", "MEMORY",
                                         "BANDWIDTH", "POWER"};
    struct grid table = grid_of(10, titles, "llrrrrrrrr");
    json_t *list = json_array();
    for (size_t i = 0; i < catalogue_count(); i++) {
        const struct catalogue_device *device = catalogue_at(i);
        if (invocation->json) {
            (void)json_array_append_new(list, json_device(device));
        } else if (invocation->quiet) {
            (void)puts(device->id);
        } else {
            add_row(&table, device);
        }
    }
    int status = BOURSE_OK;
    if (invocation->json) {
        status = json_print(json_pack("{s:O}", "catalogue", list), BOURSE_OK);
    } else if (!invocation->quiet) {
        grid_print(&table, stdout, invocation->color);
        (void)fputs("T/s: 10^12 operations a second, dense. \"-\": unknown. \"?\": unverified.\n",
                    stdout);
    }
    json_decref(list);
    grid_fini(&table);
    return status;
}

static int show_device(struct invocation *invocation, const struct catalogue_device *device)
{
    static const char *const titles[] = {"FIGURE", "VALUE", "SOURCE"};
    if (invocation->json) {
        return json_print(json_pack("{s:[o]}", "catalogue", json_device(device)), BOURSE_OK);
    }
    if (invocation->quiet) {
        (void)puts(device->id);
        return BOURSE_OK;
    }
    (void)printf("%s  %s %s\n", device->id, device->vendor, device->model);
    (void)printf("kind %s%s%s, instrument %s%s%s%s%s\n\n", device->kind,
                 device->variant[0] != '\0' ? " and " : "", device->variant, device->instrument,
                 device->memory_type[0] != '\0' ? ", memory " : "", device->memory_type,
                 device->fabric[0] != '\0' ? ", linked by " : "", device->fabric);
    struct grid table = grid_of(3, titles, "lrl");
    for (int i = 0; i < PROFILE_FIGURES; i++) {
        struct figure plain = device->profile.figures[i];
        plain.unverified = false; /* the source column says so in full */
        struct cell value = figure_cell(&plain, facts[i].scale, facts[i].unit);
        const char *cells[] = {facts[i].name, value.text, source_text(&device->profile.figures[i])};
        grid_add(&table, cells);
    }
    grid_print(&table, stdout, invocation->color);
    grid_fini(&table);
    (void)printf("\nsources: %s\n", device->sources);
    if (device->notes[0] != '\0') {
        (void)printf("notes: %s\n", device->notes);
    }
    return BOURSE_OK;
}

/* ---------------------------------------------------------------- estimates */

/* Writes "1.11 ms" or "12.4 us"; three digits suffice for a bound. */
static struct cell seconds_cell(const struct figure *figure)
{
    static const struct {
        double scale;
        const char *unit;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    size_t at = 0;
    while (at + 1 < sizeof units / sizeof units[0] && figure->value < units[at].scale) {
        at++;
    }
    struct cell cell = {"-"};
    if (figure->source != FIGURE_UNKNOWN) {
        (void)snprintf(cell.text, sizeof cell.text, "%.3g %s%s", figure->value / units[at].scale,
                       units[at].unit, figure->unverified ? "?" : "");
    }
    return cell;
}

/* Writes the term that bounds the time, and the figures that were unknown. */
static struct cell bound_of(const struct operation *operation, const struct cost *cost)
{
    static const char *const names[COST_TERMS] = {[COST_COMPUTE] = "compute",
                                                  [COST_BANDWIDTH] = "bandwidth",
                                                  [COST_LINKS] = "links",
                                                  [COST_STORAGE] = "storage",
                                                  [COST_STREAM] = "weights streamed"};
    bool no_rate = (cost->operations > 0 && cost->terms[COST_COMPUTE].source == FIGURE_UNKNOWN) ||
                   (cost->lacks & COST_LACKS_RATE) != 0;
    struct cell cell = {""};
    (void)snprintf(cell.text, sizeof cell.text, "%s%s%s%s", names[cost->bound],
                   no_rate && operation_has_dtype(operation->kind) ? ", rate unknown" : "",
                   (cost->lacks & COST_LACKS_BANDWIDTH) != 0 ? ", bandwidth unknown" : "",
                   (cost->lacks & COST_LACKS_MEMORY) != 0 ? ", memory unknown" : "");
    return cell;
}

/* Samples of one device give these figures. */
struct measured {
    struct cost_calibration calibrations[OPERATION_CLASSES]; /* filled for the operation's class */
    struct history history;
};

#define BELOW (1 - 1e-9) /* a time below this part of the bound is no rounding error */

struct estimates {
    struct invocation *invocation;
    const struct operation *operation;
    const struct measured *measured; /* NULL: no samples, so the bound is the estimate */
    json_t *list;
    struct grid table;
    size_t feasible;
    bool is_below; /* the measured time is below a bound */
};

static json_t *json_estimate(const struct estimates *estimates,
                             const struct catalogue_device *device, enum cost_status status,
                             const struct cost *cost, const char *why)
{
    static const char *const names[COST_TERMS] = {[COST_COMPUTE] = "compute_s",
                                                  [COST_BANDWIDTH] = "memory_s",
                                                  [COST_LINKS] = "links_s",
                                                  [COST_STORAGE] = "storage_s",
                                                  [COST_STREAM] = "stream_s"};
    json_t *value =
        json_pack("{s:s, s:b, s:f, s:f}", "id", device->id, "feasible", (int)(status == COST_OK),
                  "operations", cost->operations, "bytes", cost->bytes);
    if (status != COST_OK) {
        (void)json_object_set_new(value, "refused", json_string(cost_status_name(status)));
        (void)json_object_set_new(value, "reason", json_string(why));
        return value;
    }
    (void)json_object_set_new(value, "bound",
                              json_string(bound_of(estimates->operation, cost).text));
    for (int i = 0; i < COST_STREAM; i++) { /* nothing is streamed here */
        (void)json_object_set_new(value, names[i], json_figure(&cost->terms[i]));
    }
    (void)json_object_set_new(value, "bound_s", json_figure(&cost->bound_s));
    (void)json_object_set_new(value, "time_s", json_figure(&cost->time_s));
    (void)json_object_set_new(value, "p90_s",
                              cost->p90_s > 0 ? json_real(cost->p90_s) : json_null());
    (void)json_object_set_new(value, "samples", json_integer(cost->samples));
    (void)json_object_set_new(value, "energy_j", json_figure(&cost->energy_j));
    if (cost->is_as_dense) {
        (void)json_object_set_new(value, "as_dense", json_true());
    }
    return value;
}

static void estimate_one(struct estimates *estimates, const struct catalogue_device *device)
{
    struct cost cost;
    char why[200];
    const struct measured *measured = estimates->measured;
    const struct cost_device known = {.profile = &device->profile,
                                      .calibrations =
                                          measured != NULL ? measured->calibrations : NULL};
    enum cost_status status = cost_predict(&known, estimates->operation, &cost);
    if (status == COST_OK && measured != NULL) {
        const struct history_summary summary = history_summarise(&measured->history);
        cost_learn(&summary, &cost);
    }
    cost_explain(status, device->id, &device->profile, estimates->operation, &cost, why,
                 sizeof why);
    estimates->feasible += status == COST_OK;
    estimates->is_below = estimates->is_below ||
                          (status == COST_OK && cost.time_s.value < cost.bound_s.value * BELOW);
    if (estimates->invocation->json) {
        (void)json_array_append_new(estimates->list,
                                    json_estimate(estimates, device, status, &cost, why));
        return;
    }
    if (estimates->invocation->quiet) {
        if (status == COST_OK) {
            (void)puts(device->id);
        }
        return;
    }
    const struct figure p90_s = {.value = cost.p90_s,
                                 .source = cost.p90_s > 0 ? FIGURE_CALIBRATED : FIGURE_UNKNOWN};
    struct cell least = seconds_cell(&cost.bound_s);
    struct cell time = seconds_cell(&cost.time_s);
    struct cell p90 = seconds_cell(&p90_s);
    struct cell energy = figure_cell(&cost.energy_j, 1, "J");
    if (status == COST_OK) {
        (void)snprintf(why, sizeof why, "%s%s", bound_of(estimates->operation, &cost).text,
                       cost.is_as_dense ? ", as dense" : "");
    }
    const char *bound[] = {device->id, least.text, energy.text, why};
    const char *learnt[] = {device->id, least.text, time.text, p90.text, energy.text, why};
    grid_add(&estimates->table, measured != NULL ? learnt : bound);
}

static json_t *json_size(const struct operation *operation, const struct operation_size *size)
{
    char text[OPERATION_TEXT_SIZE];
    operation_write(operation, text);
    return json_pack("{s:s, s:s, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "text", text, "class",
                     operation_class_name(operation_class_of(operation->kind)), "operations",
                     (double)size->flops, "read_bytes", (json_int_t)size->read_bytes,
                     "written_bytes", (json_int_t)size->written_bytes, "working_bytes",
                     (json_int_t)size->working_bytes, "resident_bytes",
                     (json_int_t)size->resident_bytes, "weight_bytes",
                     (json_int_t)size->weight_bytes, "link_bytes", (json_int_t)size->link_bytes,
                     "storage_bytes", (json_int_t)size->storage_bytes);
}

static void print_size(const struct operation *operation, const struct operation_size *size)
{
    char text[OPERATION_TEXT_SIZE];
    operation_write(operation, text);
    (void)printf("%s: %.6g operations; reads %.4g MB, writes %.4g MB, takes %.4g MB", text,
                 (double)size->flops, (double)size->read_bytes / 1e6,
                 (double)size->written_bytes / 1e6, (double)size->resident_bytes / 1e6);
    if (size->link_bytes > 0) {
        (void)printf("; over links %.4g MB", (double)size->link_bytes / 1e6);
    }
    if (size->storage_bytes > 0) {
        (void)printf("; storage %.4g MB", (double)size->storage_bytes / 1e6);
    }
    (void)printf("\n\n");
}

static json_t *json_calibration(const struct cost_calibration *calibration)
{
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:[f,f,f], s:f}", "samples",
                     (json_int_t)calibration->samples, "outliers",
                     (json_int_t)calibration->outliers, "launch_s", calibration->launch_s,
                     "compute_efficiency", calibration->compute_efficiency, "bandwidth_efficiency",
                     calibration->bandwidth_efficiency, "half", calibration->half[0],
                     calibration->half[1], calibration->half[2], "p90", calibration->p90);
}

static void print_calibration(const struct operation *operation, const struct measured *measured,
                              const struct cost_calibration *calibration)
{
    struct history_summary summary = history_summarise(&measured->history);
    const struct figure launch_s = {.value = calibration->launch_s, .source = FIGURE_CALIBRATED};
    (void)printf("\nBy %u sample%s of class %s", calibration->samples,
                 text_plural(calibration->samples),
                 operation_class_name(operation_class_of(operation->kind)));
    if (calibration->outliers > 0) {
        (void)printf(", without %u outlier%s", calibration->outliers,
                     text_plural(calibration->outliers));
    }
    (void)printf(": %.3g %% of the peak", calibration->compute_efficiency * 100);
    if (calibration->half[0] + calibration->half[1] + calibration->half[2] > 0) {
        (void)printf(", half of that at %.4g x %.4g x %.4g", calibration->half[0],
                     calibration->half[1], calibration->half[2]);
    }
    (void)printf(", %.3g %% of the bandwidth, and %s before it begins.\n",
                 calibration->bandwidth_efficiency * 100, seconds_cell(&launch_s).text);
    if (summary.count > 0) {
        (void)printf("%u of %u sample%s of this very operation count, as much as %u to %d of the "
                     "model.\n",
                     summary.count, summary.count + summary.outliers,
                     text_plural(summary.count + summary.outliers), summary.count,
                     HISTORY_MODEL_WEIGHT);
    }
}

static struct grid grid_of_estimates(const struct measured *measured)
{
    static const char *const bound[] = {"ID", "TIME", "ENERGY", "BOUND BY"};
    static const char *const learnt[] = {"ID", "LEAST", "TIME", "P90", "ENERGY", "BOUND BY"};
    return measured != NULL ? grid_of(6, learnt, "lrrrrl") : grid_of(4, bound, "lrrl");
}

static int print_estimates(struct estimates *estimates, const struct operation_size *size,
                           int status)
{
    struct invocation *invocation = estimates->invocation;
    const struct operation *operation = estimates->operation;
    const struct measured *measured = estimates->measured;
    const struct cost_calibration *calibration =
        measured != NULL ? &measured->calibrations[operation_class_of(operation->kind)] : NULL;
    if (invocation->json) {
        json_t *value = json_pack("{s:o, s:O}", "operation", json_size(operation, size),
                                  "estimates", estimates->list);
        if (calibration != NULL) {
            (void)json_object_set_new(value, "calibration", json_calibration(calibration));
        }
        return json_print(value, status);
    }
    if (invocation->quiet) {
        return status;
    }
    print_size(operation, size);
    grid_print(&estimates->table, stdout, invocation->color);
    if (calibration != NULL) {
        print_calibration(operation, measured, calibration);
        if (estimates->is_below) {
            (void)fputs("The samples took less than the device needs by its figures: either they "
                        "are of something else, or a figure is too low.\n",
                        stdout);
        }
    } else {
        (void)fputs("The least that each can need: dense peaks, everything moved once. \"?\": "
                    "rests on unverified figures.\n",
                    stdout);
    }
    return status;
}

static int show_estimates(struct invocation *invocation, const struct operation *operation,
                          const struct catalogue_device *only, const struct measured *measured)
{
    struct operation_size size;
    struct estimates estimates = {.invocation = invocation,
                                  .operation = operation,
                                  .measured = measured,
                                  .list = json_array(),
                                  .table = grid_of_estimates(measured)};
    enum operation_status status = operation_measure(operation, &size, NULL);
    assert(status == OPERATION_OK); /* the parser accepted the operation */
    (void)status;
    for (size_t i = 0; i < catalogue_count(); i++) {
        if (only == NULL || only == catalogue_at(i)) {
            estimate_one(&estimates, catalogue_at(i));
        }
    }
    /* The command fails when no device can run the operation: the one that is named, or all. When
     * all devices are listed, some of them never can. */
    int ending =
        print_estimates(&estimates, &size,
                        estimates.feasible == 0 ? bourse_exit_status(BOURSE_NO_MATCH) : BOURSE_OK);
    json_decref(estimates.list);
    grid_fini(&estimates.table);
    return ending;
}

/* `--samples FILE` gives the measured times of `device`, which must be named. */
static int show_measured(struct invocation *invocation, const struct operation *operation,
                         const struct catalogue_device *device, const char *path)
{
    struct problem problem = {""};
    struct measured measured = {.calibrations = {{.samples = 0}}};
    const enum operation_class class = operation_class_of(operation->kind);
    struct cost_calibration *calibration = &measured.calibrations[class];
    if (device == NULL) {
        return complain(invocation, BOURSE_USAGE,
                        "--samples are of one device: name it, as in `bourse devices --estimate "
                        "OPERATION --samples FILE nvidia-h100-sxm5`");
    }
    struct samples *samples = calloc(1, sizeof *samples);
    if (samples == NULL) {
        return complain(invocation, BOURSE_LOCAL, "out of memory");
    }
    bool is_good = samples_read(path, samples, &problem) &&
                   samples_calibrate(samples, &device->profile, class, calibration, &problem);
    if (is_good && calibration->samples == 0) {
        (void)snprintf(problem.text, sizeof problem.text,
                       "%.100s: 0 samples of class %s; %d are needed", cell_plain(path),
                       operation_class_name(class), CALIBRATE_LEAST);
        is_good = false;
    }
    samples_remember(samples, &device->profile, operation, &measured.history);
    free(samples);
    return is_good ? show_estimates(invocation, operation, device, &measured)
                   : complain(invocation, BOURSE_USAGE, "--samples: %s", problem.text);
}

/* ---------------------------------------------------------------- operations */

static const char *types_of(enum operation_kind kind, char *ret_text, size_t capacity)
{
    size_t length = 0;
    ret_text[0] = '\0';
    for (int i = 0; i < DTYPES; i++) {
        if (operation_takes(kind, (enum dtype)i) && length < capacity) {
            length += (size_t)snprintf(ret_text + length, capacity - length, "%s%s",
                                       length > 0 ? " " : "", dtype_name((enum dtype)i));
        }
    }
    return ret_text[0] == '\0' ? "-" : ret_text;
}

static json_t *json_operation(enum operation_kind kind, const char *form)
{
    json_t *types = json_array();
    for (int i = 0; i < DTYPES; i++) {
        if (operation_takes(kind, (enum dtype)i)) {
            (void)json_array_append_new(types, json_string(dtype_name((enum dtype)i)));
        }
    }
    return json_pack("{s:s, s:s, s:s, s:o}", "name", operation_name(kind), "class",
                     operation_class_name(operation_class_of(kind)), "shape", form, "types", types);
}

int catalogue_show_operations(struct invocation *invocation)
{
    static const char *const titles[] = {"OPERATION", "CLASS", "SHAPE", "TYPES"};
    struct grid table = grid_of(4, titles, "llll");
    json_t *list = json_array();
    for (int i = 0; i < OPERATION_KINDS; i++) {
        enum operation_kind kind = (enum operation_kind)i;
        char form[OPERATION_TEXT_SIZE];
        char types[64];
        operation_form(kind, form);
        if (invocation->json) {
            (void)json_array_append_new(list, json_operation(kind, form));
        } else if (invocation->quiet) {
            (void)puts(operation_name(kind));
        } else {
            const char *cells[] = {operation_name(kind),
                                   operation_class_name(operation_class_of(kind)), form,
                                   types_of(kind, types, sizeof types)};
            grid_add(&table, cells);
        }
    }
    int status = BOURSE_OK;
    if (invocation->json) {
        status = json_print(json_pack("{s:O}", "operations", list), BOURSE_OK);
    } else if (!invocation->quiet) {
        grid_print(&table, stdout, invocation->color);
    }
    json_decref(list);
    grid_fini(&table);
    return status;
}

/* ---------------------------------------------------------------- the command */

static int no_such_device(struct invocation *invocation, const char *id)
{
    const char *ids[IDS_MAX];
    size_t count = catalogue_count() < IDS_MAX ? catalogue_count() : IDS_MAX;
    for (size_t i = 0; i < count; i++) {
        ids[i] = catalogue_at(i)->id;
    }
    const char *nearest = text_nearest(id, ids, count);
    for (size_t i = count; i-- > 0;) { /* a beginning is nearer than a misspelling */
        nearest = strncmp(ids[i], id, strlen(id)) == 0 ? ids[i] : nearest;
    }
    return complain(invocation, BOURSE_NOT_FOUND,
                    nearest != NULL
                        ? "no device \"%s\" in the catalogue; did you mean \"%s\"?"
                        : "no device \"%s\" in the catalogue; `bourse devices --catalogue` lists "
                          "them%s, and `bourse plan TEMPLATE --devices market` estimates by "
                          "devices of the market",
                    cell_plain(id), nearest != NULL ? nearest : "");
}

int catalogue_show(struct invocation *invocation)
{
    const char *text = option_text(invocation, "estimate", NULL);
    const char *samples = option_text(invocation, "samples", NULL);
    const struct catalogue_device *device = NULL;
    struct operation operation;
    struct problem problem;
    if (invocation->word_count == 1) {
        struct problem several = {""};
        switch (device_set_find(invocation->words[0], &device, &several)) {
        case DEVICE_SET_OK:
            break;
        case DEVICE_SET_AMBIGUOUS:
            return complain(invocation, BOURSE_NOT_FOUND, "%s", several.text);
        case DEVICE_SET_UNKNOWN:
        case DEVICE_SET_TOO_MANY:
        case DEVICE_SET_NO_MEMORY:
            return no_such_device(invocation, invocation->words[0]);
        }
    }
    if (text != NULL) {
        enum operation_status read = operation_parse(text, &operation, &problem);
        if (read != OPERATION_OK) {
            return complain(invocation, BOURSE_USAGE, "--estimate: %s: %s",
                            operation_status_name(read), problem.text);
        }
        return samples != NULL ? show_measured(invocation, &operation, device, samples)
                               : show_estimates(invocation, &operation, device, NULL);
    }
    if (samples != NULL) {
        return complain(invocation, BOURSE_USAGE, "--samples goes with --estimate OPERATION");
    }
    return device == NULL ? show_table(invocation) : show_device(invocation, device);
}
