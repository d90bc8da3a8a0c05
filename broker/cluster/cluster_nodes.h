/* Cluster nodes are the machines of a market with several brokers, as the operator names them.
 *
 * A node is HOST or HOST:PORT. Four ports from PORT on are its broker's control port, its broker's
 * blob port, and those of its etcd for clients and for the other members. The code is pure. */
#ifndef BOURSE_BROKER_CLUSTER_CLUSTER_NODES_H
#define BOURSE_BROKER_CLUSTER_CLUSTER_NODES_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    CLUSTER_NODES_MAX = 7,
    CLUSTER_NODES_PORT = 4770, /* of a node without PORT */
    CLUSTER_NODES_HOST_SIZE = 128
};

enum cluster_nodes_port { NODE_CONTROL, NODE_BLOBS, NODE_CLIENTS, NODE_PEERS, NODE_PORTS };

struct cluster_node {
    char host[CLUSTER_NODES_HOST_SIZE];
    bool is_ip; /* the host is an IPv4 address; else it is a name */
    unsigned port;
};

struct cluster_nodes {
    size_t count;
    struct cluster_node nodes[CLUSTER_NODES_MAX];
};

/* Reads "HOST[:PORT],HOST[:PORT],HOST[:PORT]": an odd number of nodes from 3 on, which share no
 * port of a host. Returns false with a problem. */
bool cluster_nodes_read(const char *text, struct cluster_nodes *ret_nodes,
                        struct problem *ret_problem);
/* Returns the host that a server of the node listens on: an address of its own, or every one where
 * the host is a name. */
const char *cluster_node_listens(const struct cluster_node *node);

#endif
