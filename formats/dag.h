/* formats/dag.h - a task graph as a JSON file, format bourse-dag-1: docs/planner.md, "Graph files".
 *
 *     {"format": "bourse-dag-1", "name": "example", "time_unit": "ms",
 *      "processors": [{"id": "p0"}, {"id": "p1"}],
 *      "links": [{"src": "p0", "dst": "p1", "latency": 1, "bandwidth": 2.5}],      one way
 *      "tasks": [{"id": "t0", "cost": [14, null]}, {"id": "t1", "cost": [9, 16]}], null: cannot run there
 *      "edges": [{"src": "t0", "dst": "t1", "bytes": 18}]}
 *
 * Read here: that it is such a file, and who is meant by each id. Whether the figures make sense
 * and the graph can be planned is for planner/schedule/workload.h to say. The order of everything
 * is the file's. Keys that are not named above are left alone. Pure. */
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
    char **processors, **tasks; /* their ids */
    double *costs; /* of task t on processor p: [t * processor_count + p]; INFINITY for null */
    struct dag_link *links;
    struct dag_edge *edges;
};

enum dag_status {
    DAG_OK,
    DAG_SYNTAX,    /* not JSON */
    DAG_FIELD,     /* a key is missing, or its value is of another kind */
    DAG_UNKNOWN,   /* an id that nothing has */
    DAG_DUPLICATE, /* an id twice */
    DAG_TOO_LARGE, /* more of something than the limits above */
    DAG_NO_MEMORY,
};

/* "DAG_SYNTAX": stable, docs/errors.md. */
const char *dag_status_name(enum dag_status status);

/* The caller owns the file. Any status but OK gives none, and says what is wrong, without the
 * file's name but with that of the task, processor, link or edge. */
enum dag_status dag_parse(const char *bytes, size_t length, struct dag_file **ret_file,
                          struct problem *ret_problem);
void dag_file_destroy(struct dag_file **self);

#endif
