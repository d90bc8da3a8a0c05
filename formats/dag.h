/* formats/dag.h reads a task graph from a JSON file in the format bourse-dag-1. docs/planner.md,
 * "Graph files", describes the format.
 *
 *     {"format": "bourse-dag-1", "name": "example", "time_unit": "ms",
 *      "processors": [{"id": "p0"}, {"id": "p1"}],
 *      "links": [{"src": "p0", "dst": "p1", "latency": 1, "bandwidth": 2.5}],      one way
 *      "tasks": [{"id": "t0", "cost": [14, null]},                    null: cannot run there
 *                {"id": "t1", "cost": [9, 16]}],
 *      "edges": [{"src": "t0", "dst": "t1", "bytes": 18}]}
 *
 * The reader checks the form of the file and resolves every id. planner/schedule/workload.h checks
 * the figures and whether the graph can be planned. Everything keeps the order of the file. Keys
 * that are not named above are ignored. */
#ifndef BOURSE_FORMATS_DAG_H
#define BOURSE_FORMATS_DAG_H

#include "base/problem.h"

#include <stddef.h>
#include <stdint.h>

enum {
    DAG_FILE_BYTES = 64 << 20,
    DAG_ID_BYTES = 256,
    DAG_TASKS = 1 << 20,
    DAG_PROCESSORS = 1024,
    DAG_LINKS = DAG_PROCESSORS * (DAG_PROCESSORS - 1),
    DAG_EDGES = 1 << 22,
};

struct dag_link {
    uint32_t from, to; /* processors */
    double latency, bandwidth;
};

struct dag_edge {
    uint32_t from, to; /* tasks */
    double bytes;
};

struct dag_file {
    char *name, *time_unit; /* "" where the file has none */
    size_t processor_count, task_count, link_count, edge_count;
    char **processors, **tasks; /* ids */
    /* The cost of task t on processor p is at [t * processor_count + p]; null is INFINITY. */
    double *costs;
    struct dag_link *links;
    struct dag_edge *edges;
};

enum dag_status {
    DAG_OK,
    DAG_SYNTAX,    /* not JSON */
    DAG_FIELD,     /* a key is missing, or its value has the wrong type */
    DAG_UNKNOWN,   /* an id that does not exist */
    DAG_DUPLICATE, /* an id that stands twice */
    DAG_TOO_LARGE, /* above one of the limits */
    DAG_NO_MEMORY,
};

/* Returns the status's name, e.g. "DAG_SYNTAX". Names are stable, docs/errors.md. */
const char *dag_status_name(enum dag_status status);

/* Parses the file into *ret_file, which the caller owns. Any status but DAG_OK gives no file and
 * a problem. The problem names the task, processor, link or edge, but not the file. */
enum dag_status dag_parse(const char *bytes, size_t length, struct dag_file **ret_file,
                          struct problem *ret_problem);
void dag_file_destroy(struct dag_file **self);

#endif
