#include "exchange/work/job_memory.h"

#include "exchange/state/memory.h"
#include "exchange/state/tracking.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/choice/ready_order.h"
#include "exchange/work/graph.h"
#include "exchange/work/work_checkpoint.h"

#include <stdlib.h>

static void pages_free(struct job *job)
{
    if (job->pages != &job->only_page) {
        free(job->pages);
    }
    job->pages = NULL;
}

void job_free(struct job *job)
{
    check_queue_destroy(job);
    graph_destroy(job->graph);
    work_checkpoint_free(job);
    for (uint32_t i = 0; job->parts != NULL && i < job->part_count; i++) {
        free(job->parts[i].ready);
        ready_order_destroy(&job->parts[i].order);
    }
    for (uint32_t i = 0; job->pages != NULL && i <= (job->subtasks - 1) / PAGE_SUBTASKS; i++) {
        free(job->pages[i]);
    }
    pages_free(job);
    if (job->parts != &job->only_part) {
        free(job->parts);
    }
    free(job);
}

bool job_has_parts(struct exchange *exchange, struct job *job, uint32_t count)
{
    job->parts =
        count == 1 ? &job->only_part : memory_allocate(exchange, count * sizeof *job->parts);
    return job->parts != NULL;
}

bool job_has_pages(struct exchange *exchange, struct job *job)
{
    const uint32_t pages = (job->subtasks + PAGE_SUBTASKS - 1) / PAGE_SUBTASKS;
    job->pages =
        pages == 1 ? &job->only_page : memory_allocate(exchange, pages * sizeof *job->pages);
    return job->pages != NULL;
}

void job_drop_pages(struct exchange *exchange, struct job *job)
{
    uint32_t pages = (job->subtasks + PAGE_SUBTASKS - 1) / PAGE_SUBTASKS;
    for (uint32_t i = 0; i < pages; i++) {
        if (job->pages[i] != NULL) {
            tracking_remove(exchange, &job->pages[i]->tracked);
            free(job->pages[i]);
        }
    }
    pages_free(job);
}
