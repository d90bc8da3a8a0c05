/* consumer/job/order.h orders the tasks of a job for submission. A task comes after the tasks that
 * it waits for, next to others of its kind, and gets a rank. The header is not installed, and the
 * code is pure.
 *
 * Tasks have one *kind* when the same device, bid and limits do for them. The stages of a model are
 * kinds of their own, so that a device stays with its stage. A *part* is a run of one
 * kind, for which the market buys separately; a job may have few parts. Tasks of a kind that are
 * ready together go in the order of the file. The order therefore depends on the file alone. When
 * programs make too many parts, a kind takes only devices that have all its programs. */
#ifndef BOURSE_CONSUMER_JOB_ORDER_H
#define BOURSE_CONSUMER_JOB_ORDER_H

#include "base/problem.h"
#include "base/requirement.h"
#include "formats/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The quote assumes this time for a subtask when the job gives none: a small part of its limit. */
enum { ORDER_EXPECT_MS_DEFAULT = 5000, ORDER_PARTS_MAX = 17 };

struct order_part {
    uint32_t subtasks;
    struct requirement needs; /* the program's needs included */
    uint32_t slots, at_most;
    int64_t limit_ms, term_ms;
    int64_t expect_ns; /* of one subtask, on average */
};

/* The graph says which subtasks wait for which, by place in the order, and which go first. */
struct order_graph {
    uint32_t count; /* subtasks; 0: no subtask waits, and all are alike */
    uint32_t *rank;
    /* Known time of each subtask, or 0; NULL: the subtasks of a part are alike. */
    uint32_t *expect_ms;
    uint32_t *after_count; /* NULL: no subtask waits */
    uint32_t *after;       /* subtask by subtask, each lower than its own number */
    size_t edge_count;
};
void order_graph_fini(struct order_graph *graph);

struct order {
    uint32_t *task; /* index in the file, by place */
    struct order_part parts[ORDER_PARTS_MAX];
    size_t part_count;
    struct order_graph graph;
};

/* Orders a job with tasks. Returns NULL and the problem when there are too many parts or memory is
 * short. */
struct order *order_tasks(const struct job_file *job, struct problem *ret_problem);
void order_destroy(struct order **self);

/* Returns a known time in whole milliseconds, rounded up, as a graph holds it. */
uint32_t order_known_ms(int64_t expect_ns);
/* Sets the ranks from the `expect_ns` of each subtask. A rank is the longest way from the subtask's
 * start to the end of the job, in whole milliseconds, UINT32_MAX at most. The rank of a job without
 * dependencies is a subtask's own time. */
void order_rank(struct order_graph *graph, const int64_t *expect_ns);

/* Sorts the numbers, drops duplicates, and returns how many are left. */
uint32_t order_unique(uint32_t *numbers, size_t count);
/* Returns the longest way through the graph; 0 when no subtask waits. */
int64_t order_longest_ms(const struct order_graph *graph);

/* Adds "and NAME = text". Returns false when the requirement is full. */
bool order_add_need(struct requirement *needs, const char *name, const char *text);
/* Adds "and not NAME = text", which also holds for a device without NAME. Returns false when the
 * requirement is full. */
bool order_add_other(struct requirement *needs, const char *name, const char *text);
/* Adds "and NAME >= least". Returns false when the requirement is full. */
bool order_add_least(struct requirement *needs, const char *name, int64_t least);
/* Adds the room that an image of so many entries and bytes needs on a device; 0 entries: no image.
 * A device without a stated bound has the default one. */
bool order_add_image(struct requirement *needs, uint64_t entries, uint64_t bytes);
/* Returns the executor that a device must have; NULL: every agent runs programs. */
const char *order_executor(const struct job_file *job);
/* Returns the program that a device must offer. NULL: the image has it, or the subtask's own file
 * is the program. */
const char *order_program(const struct job_file *job, const struct job_strings *run);
/* Returns the cost of slots for a time at a price per slot-hour, in micro-credits, rounded up.
 * INT64_MAX: more than any account has. */
int64_t order_price_micro(int64_t price_micro, int64_t slots, int64_t each_ms);
/* Returns the assumed time of a subtask: `expect_ms`, or the default when absent, never above the
 * limit. */
int64_t order_expect_ns(int64_t expect_ms, int64_t limit_ms);

#endif
