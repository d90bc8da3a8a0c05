/* formats/device_list.h reads lists of devices as people write them, and the links between devices.
 *
 *     h100:8                        eight in one machine
 *     h100:2@2.50                   two, at 2.50 credits for an hour of each
 *     epyc-9654+h100:2@2.50         unlike ones in one machine
 *     h100:8,h100:8,tpu-v5p:4       three machines
 *
 *     link  63GB/s   63GB/s,5us   100Gbit/s,10us   none
 *
 * A name is letters, digits, dots, dashes and underscores; planner/cost/device_set.h resolves it.
 * Blanks may stand around commas and plus signs, and nowhere else. */
#ifndef BOURSE_FORMATS_DEVICE_LIST_H
#define BOURSE_FORMATS_DEVICE_LIST_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DEVICE_LIST_PARTS = 64,
    DEVICE_LIST_DEVICES = 64, /* in all parts together */
    DEVICE_LIST_NAME_SIZE = 64,
    DEVICE_LIST_TEXT_SIZE = 128, /* of one part */
};

struct device_list_part {
    char name[DEVICE_LIST_NAME_SIZE];
    uint32_t count;      /* >= 1 */
    uint32_t host;       /* from 0; the parts of one host stand next to each other */
    int64_t price_micro; /* for an hour of each; -1: not given */
};

struct device_list { /* begins as all zeros */
    struct device_list_part parts[DEVICE_LIST_PARTS];
    size_t part_count;
    size_t device_count;
    uint32_t host_count;
};

/* Adds the machines of `text` to the list. Returns false with a problem that says what is wrong
 * and what would be right; the list is then unchanged. */
bool device_list_add(struct device_list *list, const char *text, struct problem *ret_problem);

struct device_link {
    bool is_none;      /* true: there is no such link, and the figures are 0 */
    int64_t bandwidth; /* bytes per second, > 0 */
    int64_t latency_ns;
};

/* Reads a link. `ret_link->latency_ns` keeps its value when the text gives none. Returns false
 * with a problem; *ret_link is then unchanged. */
bool device_link_read(const char *text, struct device_link *ret_link, struct problem *ret_problem);

#endif
