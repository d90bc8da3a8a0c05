#include "runtime/blob/blob_port.h"

#include <stdio.h>
#include <string.h>

void blob_port_init(struct blob_port *port, const char *endpoint)
{
    pthread_mutex_init(&port->mutex, NULL);
    (void)snprintf(port->endpoint, sizeof port->endpoint, "%s", endpoint);
}

void blob_port_fini(struct blob_port *port)
{
    pthread_mutex_destroy(&port->mutex);
}

void blob_port_set(struct blob_port *port, const char *endpoint)
{
    pthread_mutex_lock(&port->mutex);
    (void)snprintf(port->endpoint, sizeof port->endpoint, "%s", endpoint);
    pthread_mutex_unlock(&port->mutex);
}

void blob_port_where(void *context, char ret_endpoint[LIMIT_ENDPOINT_BYTES + 1])
{
    struct blob_port *port = context;
    pthread_mutex_lock(&port->mutex);
    memcpy(ret_endpoint, port->endpoint, sizeof port->endpoint);
    pthread_mutex_unlock(&port->mutex);
}

bool blob_port_has_moved(struct blob_port *port, const struct blob_client *client)
{
    char endpoint[LIMIT_ENDPOINT_BYTES + 1];
    blob_port_where(port, endpoint);
    return strcmp(endpoint, blob_client_endpoint(client)) != 0;
}
