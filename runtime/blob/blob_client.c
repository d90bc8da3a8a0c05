#include "runtime/blob/blob_client.h"

#include "protocol/limits.h"
#include "runtime/blob/blob_client_internal.h"
#include "runtime/descriptor.h"
#include "runtime/link.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

void blob_client_use(struct blob_client *client, const char *endpoint)
{
    (void)snprintf(client->endpoint, sizeof client->endpoint, "%s", endpoint);
    if (!descriptor_path(endpoint, client->files, sizeof client->files)) {
        client->files[0] = '\0';
    }
}

bool blob_client_open(void *context, const char *endpoint, const struct key32 *server,
                      const struct identity *identity, struct blob_client **ret_client,
                      struct problem *ret_problem)
{
    struct blob_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        problem_set(ret_problem, "out of memory for a connection");
        return false;
    }
    atomic_init(&client->interrupted, false);
    blob_client_use(client, endpoint);
    if (!link_open(context, endpoint, server, identity, LIMIT_BLOB_MESSAGE_BYTES, &client->link,
                   ret_problem)) {
        free(client);
        return false;
    }
    *ret_client = client;
    return true;
}

void blob_client_follow(struct blob_client *client, blob_where *where, void *context)
{
    client->where = where;
    client->where_context = context;
}

const char *blob_client_endpoint(const struct blob_client *client)
{
    return client->endpoint;
}

void blob_client_measure(struct blob_client *client, blob_meter *meter, void *context)
{
    client->meter = meter;
    client->meter_context = context;
}

void blob_client_close(struct blob_client **self)
{
    struct blob_client *client = *self;
    if (client != NULL) {
        link_close(&client->link);
        hasher_destroy(&client->hasher);
        free(client);
        *self = NULL;
    }
}

void blob_client_interrupt(struct blob_client *client)
{
    atomic_store(&client->interrupted, true);
}
