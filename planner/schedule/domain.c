#include "planner/schedule/domain.h"

#include "base/array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64 };

struct change { /* a word of a set before a change */
    uint32_t task, word;
    uint64_t bits;
};

struct domain {
    const struct workload *graph;
    uint32_t words; /* words in a set of processors */
    uint64_t *sets; /* set of each task */
    /* Sets of processors that each one can send to, and receive from; both contain itself. */
    uint64_t *from, *to;
    uint64_t *reach; /* scratch: one set */
    uint32_t *queue; /* tasks whose sets have shrunk, each at most once */
    bool *is_queued;
    size_t queue_first, queue_count;
    struct change *changes;
    size_t change_count, change_capacity;
};

static uint64_t *set_of(uint64_t *sets, const struct domain *domain, uint32_t index)
{
    return &sets[(size_t)index * domain->words];
}

static void set_add(uint64_t *set, uint32_t index)
{
    set[index / WORD_BITS] |= UINT64_C(1) << index % WORD_BITS;
}

struct domain *domain_create(const struct workload *graph)
{
    struct domain *domain = calloc(1, sizeof *domain);
    if (domain == NULL) {
        return NULL;
    }
    uint32_t count = graph->processor_count;
    domain->graph = graph;
    domain->words = (count + WORD_BITS - 1) / WORD_BITS;
    domain->sets = calloc((size_t)graph->task_count * domain->words, sizeof *domain->sets);
    domain->from = calloc((size_t)count * domain->words, sizeof *domain->from);
    domain->to = calloc((size_t)count * domain->words, sizeof *domain->to);
    domain->reach = calloc(domain->words, sizeof *domain->reach);
    domain->queue = calloc(graph->task_count, sizeof *domain->queue);
    domain->is_queued = calloc(graph->task_count, sizeof *domain->is_queued);
    if (domain->sets == NULL || domain->from == NULL || domain->to == NULL ||
        domain->reach == NULL || domain->queue == NULL || domain->is_queued == NULL) {
        domain_destroy(&domain);
        return NULL;
    }
    for (uint32_t p = 0; p < count; p++) {
        for (uint32_t q = 0; q < count; q++) {
            if (graph->latency[(size_t)p * count + q] < INFINITY) {
                set_add(set_of(domain->from, domain, p), q);
                set_add(set_of(domain->to, domain, q), p);
            }
        }
    }
    return domain;
}

void domain_destroy(struct domain **self)
{
    struct domain *domain = *self;
    if (domain != NULL) {
        free(domain->sets);
        free(domain->from);
        free(domain->to);
        free(domain->reach);
        free(domain->queue);
        free(domain->is_queued);
        free(domain->changes);
        free(domain);
        *self = NULL;
    }
}

bool domain_has(const struct domain *domain, uint32_t task, uint32_t processor)
{
    assert(task < domain->graph->task_count);
    assert(processor < domain->graph->processor_count);
    return (domain->sets[(size_t)task * domain->words + processor / WORD_BITS] >>
                processor % WORD_BITS &
            1) != 0;
}

static void enqueue(struct domain *domain, uint32_t task)
{
    if (!domain->is_queued[task]) {
        uint32_t capacity = domain->graph->task_count;
        domain->queue[(domain->queue_first + domain->queue_count++) % capacity] = task;
        domain->is_queued[task] = true;
    }
}

static bool remember(struct domain *domain, uint32_t task, uint32_t word, uint64_t bits)
{
    struct change *changes = array_with_room(domain->changes, domain->change_count,
                                             &domain->change_capacity, sizeof *changes);
    if (changes == NULL) {
        return false;
    }
    domain->changes = changes;
    changes[domain->change_count++] = (struct change){task, word, bits};
    return true;
}

/* Returns false when the set becomes empty, or memory to undo the change is short. */
static bool keep_only(struct domain *domain, uint32_t task, const uint64_t *allowed)
{
    uint64_t *set = set_of(domain->sets, domain, task);
    uint64_t left = 0;
    for (uint32_t i = 0; i < domain->words; i++) {
        if ((set[i] & ~allowed[i]) != 0) {
            if (!remember(domain, task, i, set[i])) {
                return false;
            }
            set[i] &= allowed[i];
            enqueue(domain, task);
        }
        left |= set[i];
    }
    return left != 0;
}

/* Computes the processors that some processor of `set` reaches. */
static void reach_from(struct domain *domain, const uint64_t *set, uint64_t *reaches)
{
    memset(domain->reach, 0, domain->words * sizeof *domain->reach);
    for (uint32_t p = 0; p < domain->graph->processor_count; p++) {
        if ((set[p / WORD_BITS] >> p % WORD_BITS & 1) != 0) {
            const uint64_t *more = set_of(reaches, domain, p);
            for (uint32_t i = 0; i < domain->words; i++) {
                domain->reach[i] |= more[i];
            }
        }
    }
}

static bool narrow_neighbours(struct domain *domain, uint32_t task)
{
    const struct workload *graph = domain->graph;
    const uint64_t *set = set_of(domain->sets, domain, task);
    reach_from(domain, set, domain->from);
    for (uint32_t i = graph->out_first[task]; i < graph->out_first[task + 1]; i++) {
        if (!keep_only(domain, graph->out[i].task, domain->reach)) {
            return false;
        }
    }
    reach_from(domain, set, domain->to);
    for (uint32_t i = graph->in_first[task]; i < graph->in_first[task + 1]; i++) {
        if (!keep_only(domain, graph->in[i].task, domain->reach)) {
            return false;
        }
    }
    return true;
}

/* Narrows sets until nothing changes. Returns false when a task has no processor left. The queue is
 * empty either way. */
static bool settle(struct domain *domain)
{
    bool ok = true;
    while (domain->queue_count > 0) {
        uint32_t task = domain->queue[domain->queue_first];
        domain->queue_first = (domain->queue_first + 1) % domain->graph->task_count;
        domain->queue_count--;
        domain->is_queued[task] = false;
        ok = ok && narrow_neighbours(domain, task);
    }
    return ok;
}

bool domain_reset(struct domain *domain)
{
    const struct workload *graph = domain->graph;
    memset(domain->sets, 0, (size_t)graph->task_count * domain->words * sizeof *domain->sets);
    for (uint32_t t = 0; t < graph->task_count; t++) {
        for (uint32_t p = 0; p < graph->processor_count; p++) {
            if (workload_can_run(graph, t, p)) {
                set_add(set_of(domain->sets, domain, t), p);
            }
        }
        enqueue(domain, t);
    }
    bool ok = settle(domain);
    domain->change_count = 0;
    return ok;
}

bool domain_choose(struct domain *domain, uint32_t task, uint32_t processor)
{
    assert(domain_has(domain, task, processor));
    uint64_t *set = set_of(domain->sets, domain, task);
    bool ok = true;
    for (uint32_t i = 0; ok && i < domain->words; i++) {
        uint64_t only =
            i == processor / WORD_BITS ? UINT64_C(1) << processor % WORD_BITS : UINT64_C(0);
        if (set[i] != only) {
            ok = remember(domain, task, i, set[i]);
            set[i] = ok ? only : set[i];
        }
    }
    if (domain->change_count > 0) {
        enqueue(domain, task);
    }
    ok = settle(domain) && ok;
    while (!ok && domain->change_count > 0) {
        const struct change *last = &domain->changes[--domain->change_count];
        set_of(domain->sets, domain, last->task)[last->word] = last->bits;
    }
    domain->change_count = 0;
    if (!ok) {
        set[processor / WORD_BITS] &= ~(UINT64_C(1) << processor % WORD_BITS);
    }
    return ok;
}
