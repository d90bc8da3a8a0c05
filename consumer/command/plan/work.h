/* consumer/command/plan/work.h runs `bourse plan TEMPLATE`, `plan --file` and `plan MODEL`. Each
 * plans the work of a template or a model, on named devices or on those of the market.
 * work_request.h reads the request, work_steps.h and plan_model.h make the steps, and
 * work_devices.h the devices. plan_work.c has them planned (planner/plan/plan_make.h); work_show.c
 * and work_json.c show the plan. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_WORK_H
#define BOURSE_CONSUMER_COMMAND_PLAN_WORK_H

#include "consumer/command/command.h"
#include "formats/plan_file.h"
#include "planner/cost/device_set.h"
#include "planner/picture/picture.h"
#include "planner/plan/plan_make.h"

struct work {
    struct invocation *invocation;
    const char *path; /* path of the file; NULL: none */
    struct plan_file request;
    const struct template *template;
    int64_t values[TEMPLATE_PARAMETERS];
    struct steps *steps;
    struct device_set *set;
    struct plan_device devices[PLAN_DEVICES];
    struct cost_device costs[PLAN_DEVICES]; /* the devices with measured figures */
    /* Instruments of the devices on the market; NULL: no such device. */
    char (*classes)[BOURSE_NAME_SIZE];
    struct cost_calibration (*calibrations)[OPERATION_CLASSES]; /* by device; NULL: none */
    struct history_summary *histories; /* [step * device_count + device]; NULL: none */
    struct plan_model *model;          /* plan_model.h; NULL: the work is a template's */
    uint32_t *placed;                  /* device by step; NULL: every step is free */
    enum plan_objective objective;
    struct plan *plan;
};

/* Runs the command and returns the exit status. */
int plan_work(struct invocation *invocation);
/* Runs `--templates`: lists all templates, or the parameters of a named one. */
int plan_templates(struct invocation *invocation);
/* Adds the devices on offer for `--devices market`; each provider is a machine. Returns false after
 * a message. */
bool work_market(struct work *work, int *ret_status);
/* Adds the measured times of steps on devices: from `--samples`, and from the market for devices on
 * offer. Steps and devices exist before the call. Returns the exit status. */
int work_learn(struct work *work);

/* Returns true when a word names a template or a model, or the options are for one. */
bool work_is_requested(const struct invocation *invocation);

/* ---- what tables and JSON have in common */

enum { WORK_LABEL_SIZE = 2 * STEP_NAME_SIZE + 24 };
/* Writes the label of a row: a step, all steps of some items, or a stage. */
void work_label(const struct work *work, const struct plan_row *row,
                char ret_label[WORK_LABEL_SIZE]);
const char *work_source(const struct figure *figure); /* for example "measured" */
const char *work_device(const struct work *work, uint32_t device);
enum { WORK_FIGURE_SIZE = 48 };
struct work_cell {
    char text[WORK_FIGURE_SIZE];
};
struct work_cell work_time(double seconds);       /* "12.5 ms" */
struct work_cell work_price(int64_t price_micro); /* in credits; "-" below 0 */
/* Returns how many steps of a row were measured faster than the device's figures allow for the
 * whole work. */
uint32_t work_below_bound(const struct work *work, const struct plan_row *row);
/* Returns true when part of a row is element by element at an unknown rate. Work with such a row is
 * assumed no slower than its bytes and than products of its type. */
bool work_lacks_rate(const struct work *work, const struct plan_row *row);
/* Returns the unknown figure that keeps a device idle, e.g. "memory" or "bandwidth", or NULL when
 * all needed figures are known. */
const char *work_lacks(const struct work *work, uint32_t device);

void work_show(const struct work *work, unsigned width);
/* Prints what the plan assumes, and what it does not know or count. */
void work_show_notes(const struct work *work);
int work_show_json(const struct work *work);
/* Returns the timeline's text, or NULL when memory is short; the caller frees it. */
char *work_draw(const struct work *work, const struct picture_style *style); /* NULL: as SVG */

#endif
