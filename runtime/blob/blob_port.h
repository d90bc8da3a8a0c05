/* A blob port is the endpoint to which a client's files go. It changes when another broker leads.
 *
 * One thread sets the endpoint, and the threads that move files read it. */
#ifndef BOURSE_RUNTIME_BLOB_BLOB_PORT_H
#define BOURSE_RUNTIME_BLOB_BLOB_PORT_H

#include "runtime/blob/blob_client.h"

#include <pthread.h>

struct blob_port {
    pthread_mutex_t mutex;
    char endpoint[LIMIT_ENDPOINT_BYTES + 1];
};

void blob_port_init(struct blob_port *port, const char *endpoint);
void blob_port_fini(struct blob_port *port);
void blob_port_set(struct blob_port *port, const char *endpoint);
/* Writes the endpoint; for blob_client_follow, with the port as the context. */
blob_where blob_port_where;
/* Returns true when the client's connection leads to another endpoint than the port's. */
bool blob_port_has_moved(struct blob_port *port, const struct blob_client *client);

#endif
