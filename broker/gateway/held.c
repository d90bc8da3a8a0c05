#include "broker/gateway/held.h"

#include <assert.h>

static const struct held_queue *queue_of(const struct held *held, uint32_t account)
{
    for (size_t i = 0; i < held->count; i++) {
        if (held->queues[i].account == account) {
            return &held->queues[i];
        }
    }
    return NULL;
}

static struct held_queue *queue_for(struct held *held, uint32_t account)
{
    const struct held_queue *queue = queue_of(held, account);
    if (queue != NULL) {
        return &held->queues[queue - held->queues];
    }
    if (held->count == HELD_ACCOUNTS) {
        return NULL;
    }
    struct held_queue *made = &held->queues[held->count++];
    *made = (struct held_queue){.account = account};
    return made;
}

void held_fini(struct held *held)
{
    while (held->count > 0) {
        struct request *request = held_first(held, 0);
        held_take(held, request->account);
        request_destroy(&request);
    }
}

bool held_put(struct held *held, struct request *request)
{
    struct held_queue *queue = queue_for(held, request->account);
    if (queue == NULL || queue->count == HELD_EACH ||
        (queue->count > 0 && queue->bytes + request->length > HELD_EACH_BYTES)) {
        return false;
    }
    request->link.next = NULL;
    if (queue->count == 0) {
        queue->first = &request->link;
    } else {
        queue->last->next = &request->link;
    }
    queue->last = &request->link;
    queue->count++;
    queue->bytes += request->length;
    return true;
}

struct request *held_first(const struct held *held, size_t at)
{
    assert(at < held->count);
    return QUEUE_ELEMENT(held->queues[at].first, struct request, link);
}

struct request *held_of(const struct held *held, uint32_t account)
{
    const struct held_queue *queue = queue_of(held, account);
    return queue == NULL ? NULL : QUEUE_ELEMENT(queue->first, struct request, link);
}

void held_take(struct held *held, uint32_t account)
{
    struct held_queue *queue = queue_for(held, account);
    assert(queue != NULL && queue->count > 0);
    const struct request *request = held_of(held, account);
    queue->first = request->link.next;
    queue->bytes -= request->length;
    if (--queue->count == 0) {
        *queue = held->queues[--held->count];
    }
}

void held_put_back(struct held *held, struct request *request)
{
    struct held_queue *queue = queue_for(held, request->account);
    assert(queue != NULL); /* held_take freed a place before */
    request->link.next = queue->count == 0 ? NULL : queue->first;
    queue->last = queue->count == 0 ? &request->link : queue->last;
    queue->first = &request->link;
    queue->count++;
    queue->bytes += request->length;
}
