#include "broker/core/request.h"

#include <stdlib.h>

struct request *request_create(void)
{
    return calloc(1, sizeof(struct request));
}

void request_destroy(struct request **self)
{
    struct request *request = *self;
    if (request != NULL) {
        translation_fini(&request->translation);
        free(request->message);
        if (request->budget != NULL) {
            (void)atomic_fetch_sub(request->budget, request->length);
        }
        free(request);
        *self = NULL;
    }
}

void request_drain(struct queue *queue)
{
    for (struct queue_link *link; (link = queue_pop(queue, 0)) != NULL;) {
        struct request *request = QUEUE_ELEMENT(link, struct request, link);
        request_destroy(&request);
    }
}
