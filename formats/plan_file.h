/* formats/plan_file.h reads the input of a plan from a YAML file that can be kept. docs/planner.md,
 * "Plan files", describes the format.
 *
 *     template: llm
 *     set: {model: llama-3-8b, prompt: 2048}
 *     devices: [h100:2@2.50, tpu-v5p:4@4.20]       one text, or a list: one or more machines each
 *     network: 100Gbit/s,10us                      also pcie, peer, fabric; storage: 7GB/s
 *     objective: price
 *     deadline: 10m
 *     place: {decode: groq-lpu-v1}
 *     batch: 32                                    the template's parameter for the batch size
 *     samples: {h100: h100.txt}                    by device: a file of measurements
 *     interruptible: {l4: "0.5/h,2m"}              or one text for all devices
 *     figures: {ascend-910b: {bandwidth: 1.2TB/s}} figures of a device that the catalogue lacks
 *
 * The meaning of the names is not known here. */
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
    unsigned line; /* the line of the file; 0 here and below: from the command line */
};

struct plan_file_samples {
    char device[PLAN_FILE_WORD_SIZE], path[PLAN_FILE_PATH_SIZE];
    bool is_of_file; /* true: from the plan file, and the path is relative to its folder */
};

/* The text of a risk is RATE/h, RATE/h,RESTART or RATE/h,RESTART,CHECKPOINT. */
struct plan_file_risk {
    char device[PLAN_FILE_WORD_SIZE];  /* "": all devices */
    double per_hour;                   /* 0: never interrupted */
    int64_t restart_ns, checkpoint_ns; /* 0: restarts at once; has no checkpoints */
    unsigned line;
};

enum { PLAN_FILE_FIGURE_SIZE = 32 };
struct plan_file_figure {
    char device[PLAN_FILE_WORD_SIZE];
    const char *name; /* from plan_file_figure_name; never freed */
    /* The value is above 0: bytes, bytes per second for a rate, or operations per second. */
    int64_t value;
    char text[PLAN_FILE_FIGURE_SIZE]; /* as the user wrote it */
    unsigned line;
};

struct plan_file_link {
    bool is_given, has_latency;
    struct device_link link;
};

struct plan_file {
    char template[PLAN_FILE_WORD_SIZE]; /* "" here and below: not given */
    struct plan_file_pair settings[PLAN_FILE_SETTINGS];
    size_t setting_count;
    struct device_list devices;
    bool is_market; /* `devices: market`: those on offer */
    struct plan_file_link pcie, peer, fabric, network;
    int64_t storage; /* bytes per second; 0: not given */
    bool may_stream;
    char objective[PLAN_FILE_WORD_SIZE];
    int64_t deadline_ns;                            /* 0: not given */
    int64_t budget_micro;                           /* or LIMIT_NONE */
    int64_t worth_micro;                            /* of an hour sooner; 0: not given */
    struct plan_file_pair places[PLAN_FILE_PLACES]; /* step = device */
    size_t place_count;
    int64_t batch; /* 0: `set` gives it */
    struct plan_file_samples samples[PLAN_FILE_SAMPLES];
    size_t sample_count;
    struct plan_file_risk risks[PLAN_FILE_RISKS];
    size_t risk_count;
    struct plan_file_figure figures[PLAN_FILE_FIGURES];
    size_t figure_count;
};

/* Clears the file: no field is given. */
void plan_file_begin(struct plan_file *file);

/* Parses a plan file. Returns false with the file's name, the line and the fault; *ret_file is
 * then undefined. */
bool plan_file_parse(const char *bytes, size_t length, const char *file_name,
                     struct plan_file *ret_file, struct problem *ret_problem);

/* Each function reads one option of the command line. They return false with a problem. */
bool plan_file_devices(struct plan_file *file, const char *text, struct problem *ret_problem);
bool plan_file_link(struct plan_file_link *link, const char *text, struct problem *ret_problem);
/* Reads "NAME=VALUE": appends the pair, or replaces the name's value. */
bool plan_file_pair(struct plan_file_pair *pairs, size_t most, size_t *count, const char *text,
                    struct problem *ret_problem);
/* Reads "DEVICE=FILE": appends the file, or replaces the device's file. */
bool plan_file_samples(struct plan_file *file, const char *text, struct problem *ret_problem);
/* Reads "RISK", which is for all devices, or "DEVICE=RISK". */
bool plan_file_risk(struct plan_file *file, const char *text, struct problem *ret_problem);
/* Reads "DEVICE=NAME=VALUE": appends the figure, or replaces its value. */
bool plan_file_figure(struct plan_file *file, const char *text, struct problem *ret_problem);
/* Returns "memory", "bandwidth" and so on by number, or NULL after the last. */
const char *plan_file_figure_name(size_t number);

#endif
