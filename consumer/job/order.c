#include "consumer/job/order.h"

#include "base/checked.h"
#include "protocol/limits.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAMS_MAX = REQUIREMENT_NODES_MAX };

struct kind {
    const struct job_task *like; /* first task of the kind */
    const char *programs[PROGRAMS_MAX];
    size_t program_count;
    uint32_t ready; /* last of its tasks that wait for its turn */
    uint32_t first; /* the first of these in the file */
    uint32_t parts; /* number of its turns so far */
};
#define NOBODY UINT32_MAX

struct ordering { /* state while the order is made */
    const struct job_file *job;
    bool joins; /* one kind may have several programs */
    struct kind *kinds;
    size_t kind_count;
    uint32_t *kind;       /* by task */
    uint32_t *next;       /* by task: the one that was ready before it */
    uint32_t *missing;    /* by task: number of tasks that it still waits for */
    uint32_t *successor;  /* tasks that wait for a task, task by task */
    uint32_t *successors; /* index of a task's first successor; one more than tasks */
    /* Ready tasks of the kind that has its turn, the first of the file on top. */
    uint32_t *heap;
    size_t heap_count;
    uint32_t turn[ORDER_PARTS_MAX]; /* kind of each turn */
    struct order *order;
    size_t placed;
};

/* ---------------------------------------------------------------- needs */

/* Adds "and NAME ...", or "and not NAME ...". */
static bool add_predicate(struct requirement *needs, bool is_negated, struct requirement_node node,
                          const char *name)
{
    assert(strlen(name) < ATTRIBUTE_NAME_SIZE);
    memcpy(node.attribute.name, name, strlen(name) + 1);
    const bool alone = needs->count == 0;
    const uint32_t more = 1U + (is_negated ? 1U : 0U) + (alone ? 0U : 1U);
    if (needs->count + more > REQUIREMENT_NODES_MAX) {
        return false;
    }
    needs->nodes[needs->count++] = node;
    if (is_negated) {
        needs->nodes[needs->count++] = (struct requirement_node){.op = REQUIREMENT_NOT};
    }
    if (!alone) {
        needs->nodes[needs->count++] = (struct requirement_node){.op = REQUIREMENT_AND, .arity = 2};
    }
    return true;
}

static bool add_text(struct requirement *needs, bool is_negated, const char *name, const char *text)
{
    struct requirement_node node = {.op = REQUIREMENT_EQ, .attribute = {.is_text = true}};
    assert(strlen(text) < ATTRIBUTE_TEXT_SIZE);
    memcpy(node.attribute.text, text, strlen(text) + 1);
    return add_predicate(needs, is_negated, node, name);
}

bool order_add_need(struct requirement *needs, const char *name, const char *text)
{
    return add_text(needs, false, name, text);
}

bool order_add_other(struct requirement *needs, const char *name, const char *text)
{
    return add_text(needs, true, name, text);
}

bool order_add_least(struct requirement *needs, const char *name, int64_t least)
{
    const struct requirement_node node = {.op = REQUIREMENT_GE, .attribute = {.number = least}};
    return add_predicate(needs, false, node, name);
}

/* Adds "and not NAME < least", which also holds for a device without NAME. Returns false when the
 * requirement is full. */
static bool add_not_less(struct requirement *needs, const char *name, int64_t least)
{
    const struct requirement_node node = {.op = REQUIREMENT_LT, .attribute = {.number = least}};
    return add_predicate(needs, true, node, name);
}

bool order_add_image(struct requirement *needs, uint64_t entries, uint64_t bytes)
{
    const uint64_t mib = 1 << 20; /* every owner accepts this much */
    const int64_t least = bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
    if (entries > 0 && !add_not_less(needs, "image_files", (int64_t)entries)) {
        return false;
    }
    if (entries == 0 || bytes <= mib) {
        return true;
    }
    return bytes > LIMIT_IMAGE_MIB * mib ? order_add_least(needs, "image_size", least)
                                         : add_not_less(needs, "image_size", least);
}

const char *order_program(const struct job_file *job, const struct job_strings *run)
{
    bool is_own = job->image != NULL || (order_executor(job) != NULL && !job->is_plugin);
    return is_own || run->count == 0 || run->items[0][0] == '{' ? NULL : run->items[0];
}

const char *order_executor(const struct job_file *job)
{
    return job->is_noop     ? "noop"
           : job->is_tensor ? "tensor"
           : job->is_kernel ? "kernel"
           : job->is_plugin ? "plugin"
           : job->is_wasm   ? "wasm"
           : job->is_onnx   ? "onnx"
                            : NULL;
}

int64_t order_expect_ns(int64_t expect_ms, int64_t limit_ms)
{
    int64_t expect = expect_ms != JOB_ABSENT ? expect_ms : ORDER_EXPECT_MS_DEFAULT;
    return (expect < limit_ms ? expect : limit_ms) * NS_PER_MS;
}

static bool same_node(const struct requirement_node *a, const struct requirement_node *b)
{
    return a->op == b->op && a->arity == b->arity &&
           strcmp(a->attribute.name, b->attribute.name) == 0 &&
           a->attribute.is_text == b->attribute.is_text &&
           (a->attribute.is_text ? strcmp(a->attribute.text, b->attribute.text) == 0
                                 : a->attribute.number == b->attribute.number);
}

static bool same_needs(const struct requirement *a, const struct requirement *b)
{
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && a != b && i < a->count; i++) {
        same = same_node(&a->nodes[i], &b->nodes[i]);
    }
    return same;
}

/* ---------------------------------------------------------------- kinds */

static bool same_terms(const struct job_file *job, const struct job_task *a,
                       const struct job_task *b)
{
    return a->slots == b->slots && a->at_most == b->at_most && a->limit_ms == b->limit_ms &&
           a->term_ms == b->term_ms && same_needs(job_task_needs(job, a), job_task_needs(job, b));
}

static bool has_program(const struct kind *kind, const char *program)
{
    for (size_t i = 0; i < kind->program_count; i++) {
        if (strcmp(kind->programs[i], program) == 0) {
            return true;
        }
    }
    return program == NULL && kind->program_count == 0;
}

static bool takes(const struct ordering *ordering, const struct kind *kind,
                  const struct job_task *task, const char *program)
{
    bool fits = ordering->joins ||
                (program == NULL ? kind->program_count == 0 : has_program(kind, program));
    return fits && kind->like->stage == task->stage && same_terms(ordering->job, kind->like, task);
}

/* Returns false when there are too many kinds, or too many programs of one kind. */
static bool find_kind(struct ordering *ordering, uint32_t task)
{
    const struct job_task *like = &ordering->job->tasks[task];
    const char *program = order_program(ordering->job, job_task_run(ordering->job, like));
    size_t i = 0;
    while (i < ordering->kind_count && !takes(ordering, &ordering->kinds[i], like, program)) {
        i++;
    }
    if (i == ORDER_PARTS_MAX) {
        return false;
    }
    struct kind *kind = &ordering->kinds[i];
    if (i == ordering->kind_count) {
        ordering->kind_count++;
        *kind = (struct kind){.like = like, .ready = NOBODY, .first = NOBODY};
    }
    if (program != NULL && !has_program(kind, program)) {
        if (kind->program_count == PROGRAMS_MAX) {
            return false;
        }
        kind->programs[kind->program_count++] = program;
    }
    ordering->kind[task] = (uint32_t)i;
    return true;
}

/* ---------------------------------------------------------------- who is ready */

static void push(struct ordering *ordering, uint32_t task)
{
    uint32_t *heap = ordering->heap;
    size_t at = ordering->heap_count++;
    for (; at > 0 && heap[(at - 1) / 2] > task; at = (at - 1) / 2) {
        heap[at] = heap[(at - 1) / 2];
    }
    heap[at] = task;
}

static uint32_t pop(struct ordering *ordering)
{
    uint32_t *heap = ordering->heap;
    uint32_t first = heap[0];
    uint32_t last = heap[--ordering->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < ordering->heap_count; at = child) {
        if (child + 1 < ordering->heap_count && heap[child + 1] < heap[child]) {
            child++;
        }
        if (heap[child] >= last) {
            break;
        }
        heap[at] = heap[child];
    }
    heap[at] = last;
    return first;
}

static void set_aside(struct ordering *ordering, uint32_t task)
{
    struct kind *kind = &ordering->kinds[ordering->kind[task]];
    ordering->next[task] = kind->ready;
    kind->ready = task;
    kind->first = task < kind->first ? task : kind->first;
}

/* Returns the kind whose first ready task comes first in the file, or NULL when no task is
 * ready. */
static struct kind *next_turn(struct ordering *ordering)
{
    struct kind *best = NULL;
    for (size_t i = 0; i < ordering->kind_count; i++) {
        struct kind *kind = &ordering->kinds[i];
        if (kind->ready != NOBODY && (best == NULL || kind->first < best->first)) {
            best = kind;
        }
    }
    for (uint32_t task = best == NULL ? NOBODY : best->ready; task != NOBODY;
         task = ordering->next[task]) {
        push(ordering, task);
    }
    if (best != NULL) {
        best->ready = NOBODY;
        best->first = NOBODY;
    }
    return best;
}

static void place(struct ordering *ordering, uint32_t task, uint32_t turn)
{
    ordering->order->task[ordering->placed++] = task;
    for (uint32_t i = ordering->successors[task]; i < ordering->successors[task + 1]; i++) {
        uint32_t waiting = ordering->successor[i];
        if (--ordering->missing[waiting] > 0) {
            continue;
        }
        if (ordering->kind[waiting] == turn) {
            push(ordering, waiting);
        } else {
            set_aside(ordering, waiting);
        }
    }
}

/* Returns false when there would be too many parts. */
static bool place_all(struct ordering *ordering)
{
    struct order *order = ordering->order;
    size_t count = ordering->job->task_count;
    for (size_t i = 0; i < count; i++) {
        if (ordering->missing[i] == 0) {
            set_aside(ordering, (uint32_t)i);
        }
    }
    for (struct kind *kind; (kind = next_turn(ordering)) != NULL;) {
        if (order->part_count == ORDER_PARTS_MAX) {
            return false;
        }
        size_t before = ordering->placed;
        uint32_t turn = (uint32_t)(kind - ordering->kinds);
        while (ordering->heap_count > 0) {
            place(ordering, pop(ordering), turn);
        }
        kind->parts++;
        ordering->turn[order->part_count] = turn;
        order->parts[order->part_count++].subtasks = (uint32_t)(ordering->placed - before);
    }
    assert(ordering->placed == count); /* the graph has no cycle */
    return true;
}

/* Lists the successors of each task, and counts its predecessors. */
static void link_tasks(struct ordering *ordering)
{
    const struct job_file *job = ordering->job;
    memset(ordering->successors, 0, (job->task_count + 1) * sizeof *ordering->successors);
    for (size_t i = 0; i < job->task_count; i++) {
        ordering->missing[i] = (uint32_t)job->tasks[i].wait_count;
        for (size_t k = 0; k < job->tasks[i].wait_count; k++) {
            ordering->successors[job->tasks[i].waits[k].task + 1]++;
        }
    }
    for (size_t i = 0; i < job->task_count; i++) {
        ordering->successors[i + 1] += ordering->successors[i];
    }
    memset(ordering->next, 0, job->task_count * sizeof *ordering->next); /* successors written */
    for (size_t i = 0; i < job->task_count; i++) {
        for (size_t k = 0; k < job->tasks[i].wait_count; k++) {
            uint32_t before = job->tasks[i].waits[k].task;
            ordering->successor[ordering->successors[before] + ordering->next[before]++] =
                (uint32_t)i;
        }
    }
}

/* ---------------------------------------------------------------- parts and graph */

static bool fill_part(const struct ordering *ordering, size_t index, size_t first,
                      struct problem *ret_problem)
{
    struct order_part *part = &ordering->order->parts[index];
    const struct job_file *job = ordering->job;
    const struct kind *kind = &ordering->kinds[ordering->turn[index]];
    part->needs = *job_task_needs(job, kind->like);
    part->slots = kind->like->slots;
    part->at_most = kind->like->at_most;
    part->limit_ms = kind->like->limit_ms;
    part->term_ms = kind->like->term_ms;
    int128 sum_ns = 0;
    for (size_t i = 0; i < part->subtasks; i++) {
        const struct job_task *task = &job->tasks[ordering->order->task[first + i]];
        sum_ns += order_expect_ns(task->expect_ms, task->limit_ms);
    }
    assert(part->subtasks > 0); /* a kind has a turn only with a ready task */
    part->expect_ns = (int64_t)((sum_ns + part->subtasks - 1) / part->subtasks);
    if (part->at_most > 0 && kind->parts > 1) {
        problem_set(ret_problem,
                    "tasks: %s: at_most holds for tasks with the same needs, and others that need "
                    "something else must run between them; leave it out",
                    kind->like->name);
        return false;
    }
    const char *executor = order_executor(job);
    bool fits = executor == NULL || order_add_need(&part->needs, "executor", executor);
    for (size_t i = 0; fits && i < kind->program_count; i++) {
        if (strlen(kind->programs[i]) >= ATTRIBUTE_TEXT_SIZE) {
            problem_set(ret_problem, "run: a host program's name has at most %d bytes",
                        ATTRIBUTE_TEXT_SIZE - 1);
            return false;
        }
        fits = order_add_need(&part->needs, job->is_plugin ? "operation" : "program",
                              kind->programs[i]);
    }
    if (!fits) {
        problem_set(ret_problem, "needs: at most %d terms besides the programs",
                    REQUIREMENT_NODES_MAX);
    }
    return fits;
}

static int by_number(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

uint32_t order_unique(uint32_t *numbers, size_t count)
{
    uint32_t kept = 0;
    if (count > 0) {
        qsort(numbers, count, sizeof *numbers, by_number);
    }
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || numbers[kept - 1] != numbers[i]) {
            numbers[kept++] = numbers[i];
        }
    }
    return kept;
}

/* `place_of` gives the place of each task in the order. */
static void fill_graph(const struct job_file *job, struct order *order, const uint32_t *place_of)
{
    struct order_graph *graph = &order->graph;
    for (size_t i = 0; i < job->task_count; i++) {
        const struct job_task *task = &job->tasks[order->task[i]];
        uint32_t *after = graph->after + graph->edge_count;
        for (size_t k = 0; k < task->wait_count; k++) {
            after[k] = place_of[task->waits[k].task];
        }
        graph->after_count[i] = order_unique(after, task->wait_count);
        graph->edge_count += graph->after_count[i];
    }
    graph->count = (uint32_t)job->task_count;
}

static int64_t whole_ms(int64_t ns)
{
    return ns / NS_PER_MS + (ns % NS_PER_MS > 0);
}

uint32_t order_known_ms(int64_t expect_ns)
{
    const int64_t expect_ms = whole_ms(expect_ns);
    return expect_ms < UINT32_MAX ? (uint32_t)expect_ms : UINT32_MAX;
}

void order_rank(struct order_graph *graph, const int64_t *expect_ns)
{
    size_t edge = graph->edge_count;
    memset(graph->rank, 0, graph->count * sizeof *graph->rank);
    for (uint32_t i = graph->count; i-- > 0;) { /* the successors have set the rank by now */
        int64_t way_ms = graph->rank[i] + whole_ms(expect_ns[i]);
        graph->rank[i] = way_ms < UINT32_MAX ? (uint32_t)way_ms : UINT32_MAX;
        const uint32_t count = graph->after_count == NULL ? 0 : graph->after_count[i];
        edge -= count;
        for (uint32_t k = 0; k < count; k++) {
            uint32_t *before = &graph->rank[graph->after[edge + k]];
            *before = graph->rank[i] > *before ? graph->rank[i] : *before;
        }
    }
}

int64_t order_longest_ms(const struct order_graph *graph)
{
    uint32_t longest_ms = 0;
    for (uint32_t i = 0; graph->edge_count > 0 && i < graph->count; i++) {
        longest_ms = graph->rank[i] > longest_ms ? graph->rank[i] : longest_ms;
    }
    return longest_ms;
}

void order_graph_fini(struct order_graph *graph)
{
    free(graph->rank);
    free(graph->expect_ms);
    free(graph->after_count);
    free(graph->after);
    *graph = (struct order_graph){.rank = NULL};
}

void order_destroy(struct order **self)
{
    struct order *order = *self;
    if (order != NULL) {
        order_graph_fini(&order->graph);
        free(order->task);
        free(order);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- all */

static size_t count_waits(const struct job_file *job)
{
    size_t waits = 0;
    for (size_t i = 0; i < job->task_count; i++) {
        waits += job->tasks[i].wait_count;
    }
    return waits;
}

static struct order *order_create(size_t tasks, size_t waits)
{
    struct order *order = calloc(1, sizeof *order);
    if (order == NULL) {
        return NULL;
    }
    order->task = calloc(tasks, sizeof *order->task);
    order->graph.rank = calloc(tasks, sizeof *order->graph.rank);
    order->graph.expect_ms = calloc(tasks, sizeof *order->graph.expect_ms);
    order->graph.after_count = calloc(tasks, sizeof *order->graph.after_count);
    order->graph.after = calloc(waits + 1, sizeof *order->graph.after);
    if (order->task == NULL || order->graph.rank == NULL || order->graph.expect_ms == NULL ||
        order->graph.after_count == NULL || order->graph.after == NULL) {
        order_destroy(&order);
    }
    return order;
}

static bool try_order(struct ordering *ordering)
{
    size_t count = ordering->job->task_count;
    ordering->kind_count = 0;
    ordering->heap_count = 0;
    ordering->placed = 0;
    ordering->order->part_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!find_kind(ordering, (uint32_t)i)) {
            return false;
        }
    }
    link_tasks(ordering);
    return place_all(ordering);
}

static bool make_order(struct ordering *ordering, struct problem *ret_problem)
{
    bool made = try_order(ordering);
    if (!made) {
        ordering->joins = true;
        made = try_order(ordering);
    }
    if (!made) {
        problem_set(ret_problem,
                    "tasks: those that need unlike devices take turns more than %d times; let more "
                    "of them have the same needs, slots and limits",
                    ORDER_PARTS_MAX - 1);
        return false;
    }
    size_t first = 0;
    for (size_t i = 0; i < ordering->order->part_count; i++) {
        if (!fill_part(ordering, i, first, ret_problem)) {
            return false;
        }
        first += ordering->order->parts[i].subtasks;
    }
    return true;
}

static bool make_graph(const struct ordering *ordering)
{
    const struct job_file *job = ordering->job;
    struct order *order = ordering->order;
    int64_t *expect_ns = calloc(job->task_count, sizeof *expect_ns);
    if (expect_ns == NULL) {
        return false;
    }
    for (size_t i = 0; i < job->task_count; i++) {
        const struct job_task *task = &job->tasks[order->task[i]];
        expect_ns[i] = order_expect_ns(task->expect_ms, task->limit_ms);
        order->graph.expect_ms[i] =
            task->expect_ms == JOB_ABSENT ? 0 : order_known_ms(task->expect_ms * NS_PER_MS);
        ordering->next[order->task[i]] = (uint32_t)i;
    }
    fill_graph(job, order, ordering->next);
    order_rank(&order->graph, expect_ns);
    free(expect_ns);
    return true;
}

struct order *order_tasks(const struct job_file *job, struct problem *ret_problem)
{
    size_t count = job->task_count;
    size_t waits = count_waits(job);
    struct ordering ordering = {.job = job,
                                .kinds = calloc(ORDER_PARTS_MAX, sizeof *ordering.kinds),
                                .kind = calloc(count, sizeof *ordering.kind),
                                .next = calloc(count, sizeof *ordering.next),
                                .missing = calloc(count, sizeof *ordering.missing),
                                .successor = calloc(waits + 1, sizeof *ordering.successor),
                                .successors = calloc(count + 1, sizeof *ordering.successors),
                                .heap = calloc(count, sizeof *ordering.heap),
                                .order = order_create(count, waits)};
    assert(count > 0);
    problem_set(ret_problem, "out of memory");
    bool made = ordering.kinds != NULL && ordering.kind != NULL && ordering.next != NULL &&
                ordering.missing != NULL && ordering.successor != NULL &&
                ordering.successors != NULL && ordering.heap != NULL && ordering.order != NULL &&
                make_order(&ordering, ret_problem) && make_graph(&ordering);
    free(ordering.kinds);
    free(ordering.kind);
    free(ordering.next);
    free(ordering.missing);
    free(ordering.successor);
    free(ordering.successors);
    free(ordering.heap);
    if (!made) {
        order_destroy(&ordering.order);
    }
    return ordering.order;
}

int64_t order_price_micro(int64_t price_micro, int64_t slots, int64_t each_ms)
{
    int64_t slot_ms;
    int64_t micro;
    return checked_mul(slots, each_ms, &slot_ms) &&
                   checked_muldiv_ceil(price_micro, slot_ms, NS_PER_HOUR / NS_PER_MS, &micro)
               ? micro
               : INT64_MAX;
}
