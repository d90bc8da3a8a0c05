/* The graph of a job says which subtasks wait for which.
 *
 * An edge is looked at when its source is accepted and when its target is decided. It is looked at
 * once more when the target becomes ready or is cancelled. Each attempt that gets the source's
 * output adds one look. A job of n subtasks and e edges costs n log n + e over its life, in
 * whatever order results come (exchange_totals counts). */
#include "exchange/work/graph.h"
#include "exchange/lifecycle.h"
#include "exchange/state/job_records.h"
#include "exchange/state/memory.h"
#include "exchange/state/parts.h"
#include "exchange/state/tracking.h"
#include "exchange/work/choice/ready.h"
#include "exchange/work/choice/ready_order.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- what is a graph */

static bool wrong(struct exchange_reject *ret_why, const char *field, int64_t value, int64_t limit)
{
    *ret_why = (struct exchange_reject){.code = XREJECT_QUANTITY, .value = value, .limit = limit};
    assert(strlen(field) < sizeof ret_why->field);
    memcpy(ret_why->field, field, strlen(field));
    return false;
}

bool graph_well_formed(const struct exchange_graph *graph, uint32_t subtasks,
                       struct exchange_reject *ret_why)
{
    if (subtasks > GRAPH_SUBTASKS_MOST) {
        return wrong(ret_why, "subtasks", subtasks, GRAPH_SUBTASKS_MOST);
    }
    if (graph->rank_count != 0 && graph->rank_count != subtasks) {
        return wrong(ret_why, "graph.rank", (int64_t)graph->rank_count, subtasks);
    }
    if (graph->expect_count != 0 && graph->expect_count != subtasks) {
        return wrong(ret_why, "graph.expect_ms", (int64_t)graph->expect_count, subtasks);
    }
    if (graph->after_count_count != 0 && graph->after_count_count != subtasks) {
        return wrong(ret_why, "graph.after_count", (int64_t)graph->after_count_count, subtasks);
    }
    if (graph->after_length > GRAPH_EDGES_MOST) {
        return wrong(ret_why, "graph.after", (int64_t)graph->after_length, GRAPH_EDGES_MOST);
    }
    size_t at = 0;
    for (uint32_t i = 0; i < graph->after_count_count; i++) {
        if (graph->after_count[i] > graph->after_length - at) {
            return wrong(ret_why, "graph.after_count", graph->after_count[i],
                         (int64_t)(graph->after_length - at));
        }
        for (size_t end = at + graph->after_count[i]; at < end; at++) {
            if (graph->after[at] >= i) {
                return wrong(ret_why, "graph.after", graph->after[at], (int64_t)i - 1);
            }
        }
    }
    return at == graph->after_length ||
           wrong(ret_why, "graph.after", (int64_t)graph->after_length, (int64_t)at);
}

/* ---------------------------------------------------------------- life */

void graph_destroy(struct graph *graph)
{
    if (graph == NULL) {
        return;
    }
    for (uint32_t i = 0; graph->given != NULL && i < graph->job->subtasks; i++) {
        free(graph->given[i]);
    }
    free(graph->rank);
    free(graph->expect_ms);
    free(graph->first_after);
    free(graph->after);
    free(graph->first_next);
    free(graph->next);
    free(graph->blocked);
    free(graph->undecided);
    free(graph->given);
    free(graph);
}

/* Reverses the edges: counts the edges of each source, then puts each edge at its place. */
static void turn_edges(struct graph *graph, uint32_t subtasks)
{
    uint32_t edges = graph->first_after[subtasks];
    for (uint32_t edge = 0; edge < edges; edge++) {
        graph->first_next[graph->after[edge] + 1]++;
    }
    for (uint32_t i = 0; i < subtasks; i++) {
        graph->undecided[i] = graph->first_next[i + 1];
        graph->first_next[i + 1] += graph->first_next[i];
    }
    for (uint32_t i = subtasks; i-- > 0;) { /* backwards, so that each list ascends */
        for (uint32_t edge = graph->first_after[i + 1]; edge-- > graph->first_after[i];) {
            uint32_t from = graph->after[edge];
            graph->next[graph->first_next[from] + --graph->undecided[from]] = i;
        }
    }
    for (uint32_t i = 0; i < subtasks; i++) {
        graph->undecided[i] = graph->first_next[i + 1] - graph->first_next[i];
        graph->blocked[i] = graph->first_after[i + 1] - graph->first_after[i];
    }
}

static bool ready_create(struct exchange *exchange, struct job *job)
{
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct part *part = &job->parts[i];
        part->ready = memory_allocate(exchange, (part->end - part->first) * sizeof *part->ready);
        if (part->ready == NULL) {
            return false;
        }
    }
    return true;
}

/* Copies `count` numbers into `ret_copy`, which is NULL for none. Returns false when memory is
 * short. */
static bool copy_numbers(struct exchange *exchange, const uint32_t *numbers, size_t count,
                         uint32_t **ret_copy)
{
    *ret_copy = count > 0 ? memory_allocate(exchange, count * sizeof **ret_copy) : NULL;
    if (*ret_copy != NULL) {
        memcpy(*ret_copy, numbers, count * sizeof **ret_copy);
    }
    return count == 0 || *ret_copy != NULL;
}

struct graph *graph_create(struct exchange *exchange, struct job *job,
                           const struct exchange_graph *given)
{
    struct graph *graph = memory_allocate(exchange, sizeof *graph);
    if (graph == NULL) {
        return NULL;
    }
    const size_t count = job->subtasks;
    const size_t edges = given->after_length;
    graph->job = job;
    const bool has_lists =
        copy_numbers(exchange, given->rank, given->rank_count, &graph->rank) &&
        copy_numbers(exchange, given->expect_ms, given->expect_count, &graph->expect_ms);
    graph->first_after = memory_allocate(exchange, (count + 1) * sizeof *graph->first_after);
    graph->after = memory_allocate(exchange, (edges + 1) * sizeof *graph->after);
    graph->first_next = memory_allocate(exchange, (count + 1) * sizeof *graph->first_next);
    graph->next = memory_allocate(exchange, (edges + 1) * sizeof *graph->next);
    graph->blocked = memory_allocate(exchange, count * sizeof *graph->blocked);
    graph->undecided = memory_allocate(exchange, count * sizeof *graph->undecided);
    graph->given = memory_allocate(exchange, count * sizeof(struct given *));
    if (!has_lists || graph->first_after == NULL || graph->after == NULL ||
        graph->first_next == NULL || graph->next == NULL || graph->blocked == NULL ||
        graph->undecided == NULL || graph->given == NULL || !ready_create(exchange, job)) {
        graph_destroy(graph);
        return NULL;
    }
    if (edges > 0) {
        memcpy(graph->after, given->after, edges * sizeof *graph->after);
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t waits_for = given->after_count_count > 0 ? given->after_count[i] : 0;
        graph->first_after[i + 1] = graph->first_after[i] + waits_for;
    }
    turn_edges(graph, job->subtasks);
    return graph;
}

void graph_drop(struct exchange *exchange, struct job *job)
{
    if (job->graph == NULL) {
        return;
    }
    for (uint32_t i = 0; i < job->subtasks; i++) {
        if (job->graph->given[i] != NULL) {
            tracking_remove(exchange, &job->graph->given[i]->tracked);
        }
    }
    tracking_remove(exchange, &job->graph->tracked);
    graph_destroy(job->graph);
    job->graph = NULL;
    for (uint32_t i = 0; i < job->part_count; i++) {
        free(job->parts[i].ready);
        ready_order_destroy(&job->parts[i].order);
        job->parts[i].ready = NULL;
        job->parts[i].ready_count = 0;
    }
}

static const struct subtask *look_at(const struct job *job, uint32_t index)
{
    const struct page *page = job->pages[index / PAGE_SUBTASKS];
    return page == NULL ? NULL : &page->subtasks[index % PAGE_SUBTASKS];
}

static uint8_t state_of(const struct job *job, uint32_t index)
{
    const struct subtask *subtask = look_at(job, index);
    return subtask == NULL ? SUBTASK_WAITING : subtask->state;
}

/* Returns whole milliseconds, the unit of a graph. */
static uint64_t expected_ms(const struct job *job, uint32_t index)
{
    return (uint64_t)(graph_expects_ns(job, index) + NS_PER_MS - 1) / NS_PER_MS;
}

void graph_start(struct job *job)
{
    for (uint32_t i = 0; i < job->subtasks; i++) {
        part_of(job, i)->undecided_ms += expected_ms(job, i);
        if (job->graph->blocked[i] == 0) {
            struct part *part = part_of(job, i);
            part->waiting++;
            ready_push(part, i);
        }
    }
}

void graph_restore(struct job *job)
{
    struct graph *graph = job->graph;
    for (uint32_t i = 0; i < job->subtasks; i++) {
        uint8_t state = state_of(job, i);
        part_of(job, i)->undecided_ms += state >= SUBTASK_ACCEPTED ? 0 : expected_ms(job, i);
        for (uint32_t k = graph->first_next[i];
             state == SUBTASK_ACCEPTED && k < graph->first_next[i + 1]; k++) {
            graph->blocked[graph->next[k]]--;
        }
        for (uint32_t k = graph->first_after[i];
             state >= SUBTASK_ACCEPTED && k < graph->first_after[i + 1]; k++) {
            graph->undecided[graph->after[k]]--;
        }
    }
    for (uint32_t i = 0; i < job->subtasks && !job->is_closing; i++) {
        const struct subtask *subtask = look_at(job, i);
        bool is_fresh =
            subtask == NULL || (subtask->state == SUBTASK_WAITING && subtask->attempts == 0);
        if (is_fresh && graph->blocked[i] == 0) {
            ready_push(part_of(job, i), i);
        }
    }
}

bool graph_tells_apart(const struct job *job)
{
    return job->graph != NULL && job->graph->expect_ms != NULL;
}

int64_t graph_said_ns(const struct job *job, uint32_t index)
{
    return graph_tells_apart(job) ? job->graph->expect_ms[index] * NS_PER_MS : 0;
}

int64_t graph_expects_ns(const struct job *job, uint32_t index)
{
    const int64_t said_ns = graph_said_ns(job, index);
    return said_ns > 0 ? said_ns : part_of(job, index)->expect_ns;
}

int64_t graph_way_ns(const struct job *job, uint32_t index)
{
    return job->graph == NULL ? 0 : ready_rank(job->graph, index) * NS_PER_MS;
}

/* ---------------------------------------------------------------- what is handed on */

bool graph_hands_on(const struct job *job, uint32_t index)
{
    return job->graph != NULL && job->graph->undecided[index] > 0;
}

void graph_keep(struct exchange *exchange, const struct job *job, uint32_t index,
                const uint8_t *bytes, uint32_t length, uint64_t file_bytes)
{
    assert(length <= GIVEN_BYTES_MOST);
    assert(job->graph->given[index] == NULL);
    struct given *given = memory_allocate(exchange, sizeof *given + length);
    if (given == NULL) {
        return;
    }
    given->job = job;
    given->index = index;
    given->length = length;
    given->file_bytes = file_bytes;
    if (length > 0) {
        memcpy(given->bytes, bytes, length);
    }
    job->graph->given[index] = given;
    tracking_add(exchange, &given->tracked, RECORD_GIVEN);
}

void graph_forget_given(struct exchange *exchange, const struct job *job, uint32_t index)
{
    struct given *given = job->graph->given[index];
    if (given != NULL) {
        tracking_remove(exchange, &given->tracked);
        free(given);
        job->graph->given[index] = NULL;
    }
}

void graph_give(struct exchange *exchange, const struct job *job, uint32_t index,
                struct exchange_work *work)
{
    const struct graph *graph = job->graph;
    if (graph == NULL || graph->first_after[index] == graph->first_after[index + 1]) {
        return;
    }
    const uint32_t *after = &graph->after[graph->first_after[index]];
    uint32_t count = graph->first_after[index + 1] - graph->first_after[index];
    size_t length = 0;
    exchange->totals.edges += count;
    for (uint32_t i = 0; i < count; i++) {
        length += graph->given[after[i]] == NULL ? 0 : graph->given[after[i]]->length;
    }
    struct exchange_given *given;
    struct exchange_block *block =
        memory_allocate(exchange, sizeof *block + count * sizeof *given + length);
    if (block == NULL) {
        return;
    }
    block->next = exchange->effects->blocks;
    exchange->effects->blocks = block;
    given = (struct exchange_given *)(void *)(block + 1);
    uint8_t *bytes = (uint8_t *)(given + count);
    work->given = given;
    work->given_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct given *kept = graph->given[after[i]];
        given[i].bytes = bytes;
        given[i].length = kept == NULL ? 0 : kept->length;
        if (given[i].length > 0) {
            memcpy(bytes, kept->bytes, given[i].length);
            bytes += given[i].length;
        }
    }
}

/* ---------------------------------------------------------------- decided */

/* A decided subtask needs no inputs any more and has no expected time left. */
static void let_go(struct exchange *exchange, struct graph *graph, uint32_t index)
{
    part_of(graph->job, index)->undecided_ms -= expected_ms(graph->job, index);
    exchange->totals.edges += graph->first_after[index + 1] - graph->first_after[index];
    for (uint32_t k = graph->first_after[index]; k < graph->first_after[index + 1]; k++) {
        uint32_t from = graph->after[k];
        if (--graph->undecided[from] == 0) {
            graph_forget_given(exchange, graph->job, from);
        }
    }
}

/* Ends a subtask that waits for other subtasks, not for a lane. */
static struct subtask *end_blocked(struct exchange *exchange, struct job *job, uint32_t index,
                                   enum subtask_state to)
{
    struct subtask *subtask = job_subtask(exchange, job, index);
    if (subtask == NULL) {
        return NULL;
    }
    subtask_move(&subtask->state, to);
    job->waiting--;
    *(to == SUBTASK_FAILED ? &job->failed : &job->cancelled) += 1;
    part_of(job, index)->decided++;
    job_subtask_changed(exchange, job, index);
    part_look_if_over(exchange, part_of(job, index));
    let_go(exchange, job->graph, index);
    return subtask;
}

/* The chain links the subtasks to look at next by `next`, which otherwise only the retry queue
 * uses. */
struct chain {
    uint32_t head, tail;
};

static void cancel_next_of(struct exchange *exchange, struct job *job, uint32_t index,
                           struct chain *chain)
{
    const struct graph *graph = job->graph;
    exchange->totals.edges += graph->first_next[index + 1] - graph->first_next[index];
    for (uint32_t k = graph->first_next[index]; k < graph->first_next[index + 1]; k++) {
        uint32_t next = graph->next[k];
        if (state_of(job, next) != SUBTASK_WAITING) {
            continue; /* cancelled through another edge */
        }
        struct subtask *subtask = end_blocked(exchange, job, next, SUBTASK_CANCELLED);
        if (subtask == NULL) {
            return;
        }
        subtask->next = NO_SUBTASK;
        if (chain->head == NO_SUBTASK) {
            chain->head = next;
        } else {
            job_subtask(exchange, job, chain->tail)->next = next;
        }
        chain->tail = next;
    }
}

/* Cancels all subtasks that wait for this one, directly or not. */
static void cancel_after(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct chain chain = {NO_SUBTASK, NO_SUBTASK};
    cancel_next_of(exchange, job, index, &chain);
    while (chain.head != NO_SUBTASK && !exchange->is_out_of_memory) {
        uint32_t next = chain.head;
        cancel_next_of(exchange, job, next, &chain);
        struct subtask *subtask = job_subtask(exchange, job, next);
        chain.head = subtask->next;
        subtask->next = 0;
    }
}

static size_t bytes_for(const struct graph *graph, uint32_t index)
{
    size_t bytes = 0;
    for (uint32_t k = graph->first_after[index]; k < graph->first_after[index + 1]; k++) {
        const struct given *given = graph->given[graph->after[k]];
        bytes += given == NULL ? 0 : given->length + GIVEN_HEAD_BYTES;
    }
    return bytes;
}

/* All inputs were accepted. Inputs that exceed a message cannot be sent; the subtask fails then,
 * and another try would not help. */
static void become_ready(struct exchange *exchange, struct job *job, uint32_t index)
{
    const struct graph *graph = job->graph;
    exchange->totals.edges += graph->first_after[index + 1] - graph->first_after[index];
    if (bytes_for(graph, index) > GIVEN_WORK_BYTES_MOST) {
        struct subtask *subtask = end_blocked(exchange, job, index, SUBTASK_FAILED);
        if (subtask != NULL) {
            subtask->failures = (uint8_t)(job->retries + 1); /* no provider's fault */
            cancel_after(exchange, job, index);
        }
        return;
    }
    struct part *part = part_of(job, index);
    part->waiting++;
    ready_push(part, index);
    if (list_empty(&part->spread)) {
        list_append(&exchange->spreads, &part->spread);
    }
}

void graph_decided(struct exchange *exchange, struct job *job, uint32_t index,
                   enum subtask_state as)
{
    struct graph *graph = job->graph;
    let_go(exchange, graph, index);
    if (as == SUBTASK_FAILED && !job->is_closing) {
        cancel_after(exchange, job, index);
    }
    if (as == SUBTASK_ACCEPTED) {
        exchange->totals.edges += graph->first_next[index + 1] - graph->first_next[index];
    }
    for (uint32_t k = graph->first_next[index];
         as == SUBTASK_ACCEPTED && k < graph->first_next[index + 1]; k++) {
        uint32_t next = graph->next[k];
        graph->blocked[next]--;
        if (graph->blocked[next] == 0 && !job->is_closing &&
            state_of(job, next) == SUBTASK_WAITING) {
            become_ready(exchange, job, next);
        }
    }
}
