/* consumer/job/order.h - the tasks of a job as they are submitted: each after those that it waits
 * for, those of one kind together, and how urgent each is. Not installed. Pure.
 *
 * Tasks are of one *kind* when the same device, bid and limits do for them. A *part* is a run of
 * one kind: what the market buys for separately, and of which a job may have few. Tasks of a kind
 * that are ready together go in the order of the file; so the order depends on the file alone. When
 * programs make too many parts, a kind takes only devices that have all its programs. */
#ifndef BOURSE_CONSUMER_JOB_ORDER_H
#define BOURSE_CONSUMER_JOB_ORDER_H

#include "base/problem.h"
#include "base/requirement.h"
#include "formats/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the quote assumes of a subtask when the job does not say: a small part of its limit. */
enum { ORDER_EXPECT_MS_DEFAULT = 5000, ORDER_PARTS_MAX = 17 };

struct order_part {
    uint32_t subtasks;
    struct requirement needs; /* its program on offer included */
    uint32_t slots, at_most;
    int64_t limit_ms, term_ms;
    int64_t expect_ns; /* of one subtask, on average */
};

/* Who waits for whom, by place in the order, and who goes first. */
struct order_graph {
    uint32_t count; /* of subtasks; 0: none waits, and all are alike */
    uint32_t *rank;
    uint32_t *
        expect_ms; /* as far as something is known of it, else 0; NULL: those of a part are alike */
    uint32_t *after_count; /* NULL: nobody waits */
    uint32_t *after;       /* these, subtask by subtask, each lower than its own */
    size_t edge_count;
};
void order_graph_fini(struct order_graph *graph);

struct order {
    uint32_t *task; /* of each place: index in the file */
    struct order_part parts[ORDER_PARTS_MAX];
    size_t part_count;
    struct order_graph graph;
};

/* Of a job with tasks. NULL with the problem: too many parts, or out of memory. */
struct order *order_tasks(const struct job_file *job, struct problem *ret_problem);
void order_destroy(struct order **self);

/* As a graph says what is known of a subtask: in whole milliseconds, rounded up. */
uint32_t order_known_ms(int64_t expect_ns);
/* Sets the ranks from `expect_ns` of each subtask: the longest way from its start to the end of the
 * job, each in whole milliseconds, UINT32_MAX at most. Where nobody waits, that is what it takes
 * itself. */
void order_rank(struct order_graph *graph, const int64_t *expect_ns);

/* Sorts the numbers, and drops those that stand there twice; how many are left. */
uint32_t order_unique(uint32_t *numbers, size_t count);
/* The longest way of all; 0 when none waits. */
int64_t order_longest_ms(const struct order_graph *graph);

/* Adds "and NAME = text". False when the requirement is full. */
bool order_add_need(struct requirement *needs, const char *name, const char *text);
/* Likewise "and NAME >= least". */
bool order_add_least(struct requirement *needs, const char *name, int64_t least);
/* Likewise "and not NAME < least": it holds where the device does not say NAME, too. */
bool order_add_not_less(struct requirement *needs, const char *name, int64_t least);
/* What a device must unpack for an image of so many entries (0: there is none), with so many bytes.
 * A device that says no bound has the default one. */
bool order_add_image(struct requirement *needs, uint64_t entries, uint64_t bytes);
/* The executor that a device must have, as not every agent does; NULL: all run programs. */
const char *order_executor(const struct job_file *job);
/* The program that a device must offer, or NULL: an image brings it, or the subtask's own file is
 * it. */
const char *order_program(const struct job_file *job, const struct job_strings *run);
/* Micro-credits of so many slots for so long at a price per slot-hour, rounded up; INT64_MAX: more
 * than anybody has. */
int64_t order_price_micro(int64_t price_micro, int64_t slots, int64_t each_ms);
/* What is assumed of a subtask: `expect_ms`, or without one the default, never above the limit. */
int64_t order_expect_ns(int64_t expect_ms, int64_t limit_ms);

#endif
