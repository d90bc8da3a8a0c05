/* formats/plugin/plugin_line.h has the lines between a plug-in and the helper bourse-plugin.
 *
 * A plug-in is the owner's program for a device (docs/plugins.md). Each request is one line of
 * JSON, and so is its answer. This module writes requests and reads answers. An answer is a
 * stranger's text: every part has a bound, and keys that are not known are passed over. */
#ifndef BOURSE_FORMATS_PLUGIN_PLUGIN_LINE_H
#define BOURSE_FORMATS_PLUGIN_PLUGIN_LINE_H

#include "base/problem.h"
#include "formats/plugin/plugin_word.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PLUGIN_VERSION = 1,
    PLUGIN_LINE_BYTES = 65536, /* a request or an answer, with its newline */
    PLUGIN_OPERATIONS = 32,
    PLUGIN_FEATURES = 32, /* words of `features` */
    PLUGIN_NAME_SIZE = 64,
    PLUGIN_TEXT_SIZE = 400, /* what a run says to the consumer */
};

/* The one claim that a plug-in lets the broker challenge (key `challenge` of its description). */
#define PLUGIN_CHALLENGED "gemm_fp32"
/* A word of the list `features` in a description: the plug-in takes `cancel`. */
#define PLUGIN_CANCEL "cancel"
/* The files of a product, in the folder of the plug-in. */
#define PLUGIN_LEFT "left.f32"
#define PLUGIN_RIGHT "right.f32"
#define PLUGIN_PRODUCT "product.f32"

/* The answer to `describe`. */
struct plugin_description {
    char name[PLUGIN_NAME_SIZE]; /* for people */
    char kind[PLUGIN_WORD_SIZE]; /* one of base/device_kind.h, without a variant */
    char vendor[PLUGIN_WORD_SIZE], model[PLUGIN_WORD_SIZE];
    uint64_t memory_bytes; /* 0: not told */
    char operations[PLUGIN_OPERATIONS][PLUGIN_WORD_SIZE];
    size_t operation_count; /* at least one */
    bool multiplies;        /* it answers `multiply`, so its gemm_fp32 can be challenged */
    bool cancels;           /* it ends a `run` early when a `cancel` comes */
};

/* The answer to `probe`: what the plug-in measured on the device. 0: not told. */
struct plugin_probe {
    int64_t fp32;      /* operations a second */
    int64_t bandwidth; /* bytes a second */
    int64_t gemm_fp32; /* operations a second of one process, in products of float32 matrices */
};

/* The answer to `figures`: the state of the device now. -1: not told. */
struct plugin_figures {
    double power_w, temperature_c; /* a temperature below 0 counts as not told */
    double utilization;            /* 0 to 1 */
    double memory_used;            /* bytes */
};

/* The answer to `run` or `multiply`. */
struct plugin_result {
    int status;                  /* 0: done; 1 to 255: it failed, and `text` says why */
    char text[PLUGIN_TEXT_SIZE]; /* printable */
};

/* Returns true when the description has the operation. */
bool plugin_takes(const struct plugin_description *description, const char *operation);

/* Writes the request `describe`, `probe`, `figures` or `cancel`, with its newline. Returns its
 * length. */
size_t plugin_write_request(const char *what, char ret_line[PLUGIN_LINE_BYTES]);
/* Writes the request to run an operation with `count` arguments. Returns its length, or 0 with the
 * problem. */
size_t plugin_write_run(const char *operation, const char *const *arguments, size_t count,
                        char ret_line[PLUGIN_LINE_BYTES], struct problem *ret_problem);
/* Writes the request to multiply the matrix in PLUGIN_LEFT by the one in PLUGIN_RIGHT, of `side`
 * rows and columns each, into PLUGIN_PRODUCT. Returns its length. */
size_t plugin_write_multiply(uint32_t side, char ret_line[PLUGIN_LINE_BYTES]);

/* These read one answer, with or without its newline. They return false with what is wrong with
 * it, or with the text of a plug-in whose device failed. */
bool plugin_read_description(const char *line, size_t length, struct plugin_description *ret_answer,
                             struct problem *ret_problem);
bool plugin_read_probe(const char *line, size_t length, struct plugin_probe *ret_answer,
                       struct problem *ret_problem);
bool plugin_read_figures(const char *line, size_t length, struct plugin_figures *ret_answer,
                         struct problem *ret_problem);
bool plugin_read_result(const char *line, size_t length, struct plugin_result *ret_answer,
                        struct problem *ret_problem);

#endif
