#include "protocol/requests.h"

#include "protocol/limits.h"

#include <assert.h>
#include <stdlib.h>

/* ---- one request ---- */

enum request_status requests_make(enum message_type type, const struct id128 *id,
                                  const ProtobufCMessage *body, struct request **ret_request)
{
    size_t length = protobuf_c_message_get_packed_size(body);
    if (length > message_body_cap(type)) {
        return REQUEST_TOO_LARGE;
    }
    struct request *request = calloc(1, sizeof *request);
    if (request == NULL) {
        return REQUEST_OUT_OF_MEMORY;
    }
    list_init(&request->link);
    request->body = codec_encode(body, &length);
    if (request->body == NULL) {
        requests_free(&request);
        return REQUEST_OUT_OF_MEMORY;
    }
    request->body_length = (uint32_t)length; /* at most the cap */
    request->id = *id;
    request->type = type;
    *ret_request = request;
    return REQUEST_OK;
}

void requests_free(struct request **self)
{
    struct request *request = *self;
    if (request != NULL) {
        free(request->body);
        free(request);
        *self = NULL;
    }
}

struct envelope request_envelope(const struct request *request)
{
    return (struct envelope){.version = ENVELOPE_VERSION,
                             .type = (uint16_t)request->type,
                             .id = request->id,
                             .created_ms = request->created_ms,
                             .is_signed = request->is_signed,
                             .signature = request->signature,
                             .body = request->body,
                             .body_length = request->body_length};
}

bool request_stamp(struct request *request, const struct identity *identity,
                   const struct id128 *cluster, int64_t created_ms)
{
    if (request->is_stamped) {
        return true;
    }
    request->created_ms = created_ms;
    if (message_must_be_signed(request->type)) {
        struct envelope envelope = request_envelope(request);
        if (!identity_sign_envelope(identity, cluster, &envelope)) {
            return false;
        }
        request->is_signed = true;
        request->signature = envelope.signature;
    }
    request->is_stamped = true;
    return true;
}

/* ---- all requests ---- */

static struct request *request_at(const struct list_link *link)
{
    return LIST_ELEMENT(link, struct request, link);
}

void requests_init(struct requests *requests)
{
    *requests = (struct requests){0};
    list_init(&requests->list);
}

void requests_fini(struct requests *requests)
{
    while (!list_empty(&requests->list)) {
        requests_drop(requests, request_at(requests->list.next));
    }
}

void requests_add(struct requests *requests, struct request *request)
{
    list_append(&requests->list, &request->link);
    requests->count++;
    requests->bytes += request->body_length;
}

void requests_drop(struct requests *requests, struct request *request)
{
    assert(requests->count > 0);
    list_remove(&request->link);
    requests->count--;
    requests->bytes -= request->body_length;
    requests_free(&request);
}

struct request *requests_find(const struct requests *requests, const struct id128 *id)
{
    const struct list_link *head = &requests->list;
    for (const struct list_link *link = head->next; link != head; link = link->next) {
        if (id128_equal(&request_at(link)->id, id)) {
            return request_at(link);
        }
    }
    return NULL;
}

struct request *requests_next_unsent(const struct requests *requests)
{
    const struct list_link *head = &requests->list;
    const struct list_link *unsent = head;
    for (const struct list_link *link = head->previous; link != head; link = link->previous) {
        if (request_at(link)->is_sent) {
            break;
        }
        unsent = link;
    }
    return unsent == head ? NULL : request_at(unsent);
}

void requests_unsend(struct requests *requests)
{
    struct list_link *head = &requests->list;
    for (struct list_link *link = head->next; link != head; link = link->next) {
        request_at(link)->is_sent = false;
        request_at(link)->is_waiting = false;
    }
}

void requests_unsend_waiting(struct requests *requests)
{
    struct list_link *head = &requests->list;
    for (struct list_link *link = head->next; link != head; link = link->next) {
        struct request *request = request_at(link);
        request->is_sent = request->is_sent && !request->is_waiting;
        request->is_waiting = false;
    }
}

bool requests_stamp(struct requests *requests, const struct identity *identity,
                    const struct id128 *cluster, int64_t created_ms)
{
    struct list_link *head = &requests->list;
    for (struct list_link *link = head->next; link != head; link = link->next) {
        struct request *request = request_at(link);
        if (request->created_ms > created_ms + LIMIT_ID_AHEAD_MS) {
            request->is_stamped = false;
        }
        if (!request_stamp(request, identity, cluster, created_ms)) {
            return false;
        }
    }
    return true;
}
