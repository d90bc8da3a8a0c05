/* formats/device_list.h - devices as people name them, and how they are linked.
 *
 *     h100:8                        eight in one machine
 *     h100:2@2.50                   two, at 2.50 credits for an hour of each
 *     epyc-9654+h100:2@2.50         unlike ones in one machine
 *     h100:8,h100:8,tpu-v5p:4       three machines
 *
 *     link  63GB/s   63GB/s,5us   100Gbit/s,10us   none
 *
 * A name is letters, digits, dots, dashes and underscores; what it means is for
 * planner/cost/device_set.h to say. No blanks but around commas and plus signs. Pure. */
#ifndef BOURSE_FORMATS_DEVICE_LIST_H
#define BOURSE_FORMATS_DEVICE_LIST_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DEVICE_LIST_PARTS = 64,
    DEVICE_LIST_DEVICES = 64, /* of all parts together */
    DEVICE_LIST_NAME_SIZE = 64,
    DEVICE_LIST_TEXT_SIZE = 128, /* of a part */
};

struct device_list_part {
    char name[DEVICE_LIST_NAME_SIZE];
    uint32_t count;      /* >= 1 */
    uint32_t host;       /* from 0; parts of one host follow one another */
    int64_t price_micro; /* for an hour of each; -1: not said */
};

struct device_list { /* begins as all zeros */
    struct device_list_part parts[DEVICE_LIST_PARTS];
    size_t part_count;
    size_t device_count;
    uint32_t host_count;
};

/* Adds the machines of `text` to the list. False with what is wrong and what would be right; the
 * list is then as it was. */
bool device_list_add(struct device_list *list, const char *text, struct problem *ret_problem);

struct device_link {
    bool is_none;      /* there is no such link; then the figures are 0 */
    int64_t bandwidth; /* bytes per second, > 0 */
    int64_t latency_ns;
};

/* `ret_link->latency_ns` stays as it was where the text says none. False with what is wrong;
 * *ret_link is untouched. */
bool device_link_read(const char *text, struct device_link *ret_link, struct problem *ret_problem);

#endif
