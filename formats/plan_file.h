/* formats/plan_file.h - what is to be planned, as a YAML file that can be kept: docs/planner.md,
 * "Plan files".
 *
 *     template: llm
 *     set: {model: llama-3-8b, prompt: 2048}
 *     devices: [h100:2@2.50, tpu-v5p:4@4.20]       one text, or a list: a machine or several each
 *     network: 100Gbit/s,10us                      also pcie, peer, fabric; storage: 7GB/s
 *     objective: price
 *     deadline: 10m
 *     place: {decode: groq-lpu-v1}
 *     batch: 32                                    the parameter of the template that is its batch
 *     samples: {h100: h100.txt}                    by device: a file of what was measured there
 *     interruptible: {l4: "0.5/h,2m"}              or one text for all devices
 *     figures: {ascend-910b: {bandwidth: 1.2TB/s}} what is known of a device, and the catalogue does not say
 *
 * What the names mean is not known here. Pure. */
#ifndef BOURSE_FORMATS_PLAN_FILE_H
#define BOURSE_FORMATS_PLAN_FILE_H

#include "formats/device_list.h"

enum {
    PLAN_FILE_BYTES = 1 << 20,
    PLAN_FILE_WORD_SIZE = 64,
    PLAN_FILE_SETTINGS = 64,
    PLAN_FILE_PLACES = 64,
    PLAN_FILE_SAMPLES = 16,
    PLAN_FILE_PATH_SIZE = 1024,
    PLAN_FILE_RISKS = 16,
    PLAN_FILE_FIGURES = 64,
};
#define PLAN_FILE_BATCH_MOST (INT64_C(1) << 40)

struct plan_file_pair { /* name = value */
    char name[PLAN_FILE_WORD_SIZE], value[PLAN_FILE_WORD_SIZE];
    unsigned line; /* of the file that says it; 0: the command line does, as below */
};

struct plan_file_samples {
    char device[PLAN_FILE_WORD_SIZE], path[PLAN_FILE_PATH_SIZE];
    bool is_of_file; /* the plan file says it: the path is relative to its folder */
};

struct plan_file_risk {                /* that a device is taken away: RATE/h, RATE/h,RESTART or
                                          RATE/h,RESTART,CHECKPOINT */
    char device[PLAN_FILE_WORD_SIZE];  /* "": all */
    double per_hour;                   /* 0: it is not */
    int64_t restart_ns, checkpoint_ns; /* 0: at once; there are none */
    unsigned line;
};

enum { PLAN_FILE_FIGURE_SIZE = 32 };
struct plan_file_figure {
    char device[PLAN_FILE_WORD_SIZE];
    const char *name; /* of plan_file_figure_name; lives for ever */
    int64_t value;    /* bytes, per second where it is a rate, or operations per second; above 0 */
    char text[PLAN_FILE_FIGURE_SIZE]; /* as it was written */
    unsigned line;
};

struct plan_file_link {
    bool is_given, has_latency;
    struct device_link link;
};

struct plan_file {
    char template[PLAN_FILE_WORD_SIZE]; /* "": not said, as below */
    struct plan_file_pair settings[PLAN_FILE_SETTINGS];
    size_t setting_count;
    struct device_list devices;
    bool is_market; /* `devices: market`: those on offer */
    struct plan_file_link pcie, peer, fabric, network;
    int64_t storage; /* bytes per second; 0 */
    bool may_stream;
    char objective[PLAN_FILE_WORD_SIZE];
    int64_t deadline_ns;                            /* 0 */
    int64_t budget_micro;                           /* -1 */
    int64_t worth_micro;                            /* of an hour sooner; 0 */
    struct plan_file_pair places[PLAN_FILE_PLACES]; /* step = device */
    size_t place_count;
    int64_t batch; /* 0: as `set` says */
    struct plan_file_samples samples[PLAN_FILE_SAMPLES];
    size_t sample_count;
    struct plan_file_risk risks[PLAN_FILE_RISKS];
    size_t risk_count;
    struct plan_file_figure figures[PLAN_FILE_FIGURES];
    size_t figure_count;
};

/* Nothing said. */
void plan_file_begin(struct plan_file *file);

/* False with the file's name, line, and what is wrong; *ret_file is then without meaning. */
bool plan_file_parse(const char *bytes, size_t length, const char *file_name,
                     struct plan_file *ret_file, struct problem *ret_problem);

/* The same of one thing each, as the command line has them. False with what is wrong. */
bool plan_file_devices(struct plan_file *file, const char *text, struct problem *ret_problem);
bool plan_file_link(struct plan_file_link *link, const char *text, struct problem *ret_problem);
/* "NAME=VALUE": appended, or in place of the value that the name has. */
bool plan_file_pair(struct plan_file_pair *pairs, size_t most, size_t *count, const char *text,
                    struct problem *ret_problem);
/* "DEVICE=FILE": appended, or in place of the file that the device has. */
bool plan_file_samples(struct plan_file *file, const char *text, struct problem *ret_problem);
/* "RISK" of all devices, or "DEVICE=RISK". */
bool plan_file_risk(struct plan_file *file, const char *text, struct problem *ret_problem);
/* "DEVICE=NAME=VALUE": appended, or in place of the value that it has. */
bool plan_file_figure(struct plan_file *file, const char *text, struct problem *ret_problem);
/* "memory", "bandwidth" ... by number; NULL: there are no more. */
const char *plan_file_figure_name(size_t number);

#endif
