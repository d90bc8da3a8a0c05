#include "provider/session/work_table.h"

#include "provider/session/agent_session_internal.h"

#include <assert.h>
#include <stdlib.h>

enum { BUCKETS_FIRST = 16 };
static_assert((AGENT_REMEMBERED & (AGENT_REMEMBERED - 1)) == 0, "places are found by low bits");

/* Indices of one lease mostly follow each other, so their low bits spread them well. */
uint32_t work_table_place(uint32_t index, uint32_t places)
{
    return index & (places - 1);
}

struct work *work_table_find(const struct lease *lease, uint32_t index, uint32_t attempt)
{
    if (lease->bucket_count == 0) {
        return NULL;
    }
    struct work *work = lease->buckets[work_table_place(index, lease->bucket_count)];
    while (work != NULL && (work->index != index || work->attempt != attempt)) {
        work = work->same;
    }
    return work;
}

void work_table_put(struct lease *lease, struct work *work)
{
    struct work **bucket = &lease->buckets[work_table_place(work->index, lease->bucket_count)];
    work->same = *bucket;
    *bucket = work;
}

void work_table_take(struct lease *lease, const struct work *work)
{
    struct work **at = &lease->buckets[work_table_place(work->index, lease->bucket_count)];
    while (*at != work) {
        at = &(*at)->same;
    }
    *at = work->same;
}

bool work_table_make_room(struct lease *lease)
{
    if (lease->work_count < lease->bucket_count) {
        return true;
    }
    uint32_t count = lease->bucket_count == 0 ? BUCKETS_FIRST : 2 * lease->bucket_count;
    struct work **buckets = calloc(count, sizeof(struct work *));
    if (buckets == NULL) {
        return false;
    }
    free(lease->buckets);
    lease->buckets = buckets;
    lease->bucket_count = count;
    for (struct list_link *link = lease->works.next; link != &lease->works; link = link->next) {
        work_table_put(lease, LIST_ELEMENT(link, struct work, link));
    }
    return true;
}
