/* consumer/command/plan/plan_work.h - `bourse plan TEMPLATE` and `plan --file`: work of a template
 * on devices that are named, or on those of the market. plan_work.c reads what is asked and has it
 * planned (planner/layout/plan.h), plan_work_show.c and plan_work_json.c show it. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_PLAN_WORK_H
#define BOURSE_CONSUMER_COMMAND_PLAN_PLAN_WORK_H

#include "consumer/command/command.h"
#include "formats/plan_file.h"
#include "planner/cost/device_set.h"
#include "planner/layout/plan.h"
#include "planner/picture/picture.h"

struct work {
    struct invocation *invocation;
    const char *path; /* of the file; NULL: there is none */
    struct plan_file request;
    const struct template *template;
    int64_t values[TEMPLATE_PARAMETERS];
    struct steps *steps;
    struct device_set *set;
    struct plan_device devices[PLAN_DEVICES];
    struct cost_device costs[PLAN_DEVICES]; /* of these, with what was measured */
    char (
        *classes)[BOURSE_NAME_SIZE]; /* of these on the market: their instruments; NULL: of none */
    struct cost_calibration (*calibrations)[OPERATION_CLASSES]; /* by device; NULL: none */
    struct history_summary *histories; /* [step * device_count + device]; NULL: none */
    uint32_t *placed;                  /* by step; NULL: none has to be anywhere */
    enum plan_objective objective;
    struct plan *plan;
};

/* Returns the exit status. */
int plan_work(struct invocation *invocation);
/* `--templates`: what there is, and of one that is named its parameters. */
int plan_templates(struct invocation *invocation);
/* `--devices market`: the devices on offer now, each provider a machine. False after having said
 * why not. */
bool add_market(struct work *work, int *ret_status);
/* What was measured of the steps on the devices: by `--samples`, and of devices on offer what the
 * market knows. After both are there. Returns the exit status. */
int learn_work(struct work *work);

/* Whether a word is a template, or the options are for one. */
bool is_work(const struct invocation *invocation);

/* ---- what tables and JSON have in common */

enum { WORK_LABEL_SIZE = 2 * STEP_NAME_SIZE + 24 };
/* What a row does: a step, all of some items, or a stage. */
void work_label(const struct work *work, const struct plan_row *row,
                char ret_label[WORK_LABEL_SIZE]);
/* By row, its part of its device's lease: together they are what the device costs. -1: unknown. The
 * caller frees it; NULL without memory. */
int64_t *work_prices(const struct plan *plan);
const char *work_source(const struct figure *figure); /* "measured" */
const char *work_device(const struct work *work, uint32_t device);
/* How many steps of a row were measured to take less than its device needs by its figures, of the
 * whole work. */
uint32_t work_below_bound(const struct work *work, const struct plan_row *row);
/* Whether some of a row goes element by element at a rate that nobody knows: it is taken to be no
 * slower than its bytes, and products of its type, would be. */
bool work_lacks_rate(const struct work *work, const struct plan_row *row);
/* Why a device does nothing: "memory", "bandwidth", that is not known of it and that some step
 * needs; NULL: it is all known. */
const char *work_lacks(const struct work *work, uint32_t device);

void show_work(const struct work *work, unsigned width);
int show_work_json(const struct work *work);
/* The timeline's text, or NULL without memory; the caller frees it. */
char *draw_work(const struct work *work, const struct picture_style *style); /* NULL: as SVG */

#endif
