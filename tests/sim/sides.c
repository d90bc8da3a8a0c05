#include "tests/sim/sides.h"

#include "broker/core/group.h"
#include "broker/core/outgoing.h"
#include "broker/fatal.h"
#include "broker/storage/storage.h"
#include "tests/sim/fibre.h"
#include "tests/sim/world.h"

#include <assert.h>

enum { TABLES_LEAST_NS = 100000, TABLES_MOST_NS = 20000000 };

struct queue *sides_queue(size_t capacity)
{
    struct queue *queue = queue_create(capacity);
    if (queue == NULL) {
        fatal("out of memory or descriptors");
    }
    return queue;
}

void *sides_run_notes(void *queue)
{
    for (;;) {
        struct queue_link *link = queue_pop(queue, QUEUE_FOREVER);
        if (link != NULL) {
            struct outgoing *outgoing = QUEUE_ELEMENT(link, struct outgoing, link);
            outgoing_destroy(&outgoing);
        }
    }
    return NULL;
}

enum storage_status storage_append(struct storage *store, struct group *group)
{
    const enum storage_status status = storage_commit(store, group);
    if (status == STORAGE_OK) {
        group->entry.index = store->last.index;
        group->entry.chain = store->last.chain;
    }
    return status;
}

/* The log in memory has no tables; but the follower is behind, as on a disk. */
enum storage_status storage_apply(struct storage *store, struct group *const *groups, size_t count)
{
    (void)store;
    assert(count > 0 && groups[0]->entry.index > 0);
    fibre_wait(draw_time(DICE_ORDER, TABLES_LEAST_NS, TABLES_MOST_NS));
    return STORAGE_OK;
}

void storage_sync_tables(struct storage *store)
{
    (void)store; /* likewise */
}
