#include "consumer/command/plan/dag_refusal.h"

#include "consumer/command/show.h"

#include <stdio.h>

int dag_refuse(struct invocation *invocation, const char *path, enum bourse_status status,
               const char *name, const char *text)
{
    struct bourse_error error = {.status = status};
    char whole[sizeof error.text];
    (void)snprintf(error.name, sizeof error.name, "%s", name);
    (void)snprintf(whole, sizeof whole, "%s: %s", path, text);
    bourse_printable(whole, error.text, sizeof error.text);
    return complain_with(invocation, &error);
}

int dag_no_memory(struct invocation *invocation, const char *path)
{
    return complain(invocation, BOURSE_LOCAL, "%s: there is not enough memory for the schedule",
                    path);
}

static const char *graph_name(enum workload_status status)
{
    static const char *const names[] = {
        [WORKLOAD_OK] = "OK",
        [WORKLOAD_TOO_LARGE] = "DAG_TOO_LARGE",
        [WORKLOAD_BAD_COST] = "DAG_COST",
        [WORKLOAD_SPREAD] = "DAG_SPREAD",
        [WORKLOAD_BAD_BYTES] = "DAG_BYTES",
        [WORKLOAD_BAD_LINK] = "DAG_LINK",
        [WORKLOAD_DUPLICATE] = "DAG_DUPLICATE",
        [WORKLOAD_NOWHERE] = "DAG_NOWHERE",
        [WORKLOAD_NO_LINK] = "DAG_NO_LINK",
        [WORKLOAD_CYCLE] = "DAG_CYCLE",
        [WORKLOAD_NO_MEMORY] = "DAG_NO_MEMORY",
    };
    return names[status];
}

/* Writes a cycle such as "a -> b -> c -> a". */
static void write_cycle(const struct dag_file *file, const struct workload_fault *fault,
                        char *ret_text, size_t capacity)
{
    size_t used = 0;
    uint32_t shown =
        fault->cycle_count < WORKLOAD_CYCLE_SHOWN ? fault->cycle_count : WORKLOAD_CYCLE_SHOWN;
    ret_text[0] = '\0';
    for (uint32_t i = 0; i < shown && used < capacity; i++) {
        used += (size_t)snprintf(ret_text + used, capacity - used, "\"%.40s\" -> ",
                                 file->tasks[fault->cycle[i]]);
    }
    if (used < capacity) {
        (void)snprintf(ret_text + used, capacity - used, "%s\"%.40s\"",
                       shown < fault->cycle_count ? "... -> " : "", file->tasks[fault->cycle[0]]);
    }
}

static void explain_link(const struct dag_file *file, const struct workload_fault *fault,
                         bool twice, char *ret_text, size_t capacity)
{
    const struct dag_link *link = &file->links[fault->link];
    const char *from = file->processors[link->from];
    const char *to = file->processors[link->to];
    if (twice) {
        (void)snprintf(ret_text, capacity, "there are two links \"%.128s\" -> \"%.128s\"", from,
                       to);
    } else if (link->from == link->to) {
        (void)snprintf(ret_text, capacity,
                       "link \"%.128s\" -> \"%.128s\" leads to where it begins; what stays on a "
                       "processor needs none",
                       from, to);
    } else {
        (void)snprintf(
            ret_text, capacity,
            "link \"%.128s\" -> \"%.128s\": latency %g is 0 to %g, bandwidth %g is %g to "
            "%g",
            from, to, link->latency, WORKLOAD_TIME_MOST, link->bandwidth, WORKLOAD_BANDWIDTH_LEAST,
            WORKLOAD_BANDWIDTH_MOST);
    }
}

static void explain_edge(const struct dag_file *file, const struct workload_fault *fault,
                         enum workload_status status, char *ret_text, size_t capacity)
{
    const struct dag_edge *edge = &file->edges[fault->edge];
    const char *from = file->tasks[edge->from];
    const char *to = file->tasks[edge->to];
    if (status == WORKLOAD_DUPLICATE) {
        (void)snprintf(ret_text, capacity, "there are two edges \"%.128s\" -> \"%.128s\"", from,
                       to);
    } else if (status == WORKLOAD_NO_LINK) {
        (void)snprintf(
            ret_text, capacity,
            "edge \"%.128s\" -> \"%.128s\": no processor that can run the first task has a "
            "link to a processor that can run the second",
            from, to);
    } else {
        (void)snprintf(ret_text, capacity,
                       "edge \"%.128s\" -> \"%.128s\": %g bytes are 0 to %g, and no more than the "
                       "best link carries in %g",
                       from, to, edge->bytes, WORKLOAD_BYTES_MOST, WORKLOAD_TIME_MOST);
    }
}

int dag_refuse_graph(struct invocation *invocation, const char *path, const struct dag_file *file,
                     enum workload_status status, const struct workload_fault *fault)
{
    char text[sizeof((struct bourse_error *)0)->text];
    const char *task = fault->task != WORKLOAD_NONE ? file->tasks[fault->task] : "";
    text[0] = '\0';
    switch (status) {
    case WORKLOAD_OK:
    case WORKLOAD_NO_MEMORY:
        return dag_no_memory(invocation, path);
    case WORKLOAD_TOO_LARGE:
        (void)snprintf(text, sizeof text,
                       "%zu tasks on %zu processors are more costs than %d can be planned",
                       file->task_count, file->processor_count, WORKLOAD_COSTS);
        break;
    case WORKLOAD_BAD_COST:
        (void)snprintf(text, sizeof text,
                       "task \"%.128s\" on \"%.128s\": the cost is %g; a cost is %g to %g, or null "
                       "where the task cannot run",
                       task, file->processors[fault->processor],
                       file->costs[fault->task * file->processor_count + fault->processor],
                       WORKLOAD_TIME_LEAST, WORKLOAD_TIME_MOST);
        break;
    case WORKLOAD_SPREAD:
        (void)snprintf(text, sizeof text,
                       "task \"%.128s\": its cost is lost in rounding beside all costs and "
                       "transfers together, which may be %g times as much",
                       task, WORKLOAD_SPREAD_MOST);
        break;
    case WORKLOAD_NOWHERE:
        (void)snprintf(text, sizeof text, "task \"%.128s\": no processor can run it", task);
        break;
    case WORKLOAD_BAD_LINK:
        explain_link(file, fault, false, text, sizeof text);
        break;
    case WORKLOAD_BAD_BYTES:
    case WORKLOAD_NO_LINK:
        explain_edge(file, fault, status, text, sizeof text);
        break;
    case WORKLOAD_DUPLICATE:
        if (fault->link != WORKLOAD_NONE) {
            explain_link(file, fault, true, text, sizeof text);
        } else {
            explain_edge(file, fault, status, text, sizeof text);
        }
        break;
    case WORKLOAD_CYCLE: {
        char cycle[WORKLOAD_CYCLE_SHOWN * 48 + 64];
        write_cycle(file, fault, cycle, sizeof cycle);
        (void)snprintf(text, sizeof text, "tasks wait for one another: %s", cycle);
        break;
    }
    }
    return dag_refuse(invocation, path, BOURSE_USAGE, graph_name(status), text);
}
