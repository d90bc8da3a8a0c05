/* The init of a cluster makes a folder for each machine of a new market.
 *
 * It has certificates, etcd's config and unit, and broker.yaml. Everything is written into one new
 * folder on the operator's machine, with a folder for each node to be carried there. Nothing is
 * started, and nothing is overwritten. */
#ifndef BOURSE_BROKER_CLUSTER_CLUSTER_INIT_H
#define BOURSE_BROKER_CLUSTER_CLUSTER_INIT_H

#include "base/problem.h"

#include <stdbool.h>

struct cluster_init_options {
    const char *folder;   /* new */
    const char *nodes;    /* as cluster_nodes_read takes it */
    const char *operator; /* 64 hex digits: the public key of the market's operator */
    const char *origin;   /* name of the market's log; NULL: the broker chooses one */
    const char *days;     /* for how long the certificates are good; NULL: CERTIFICATES_DAYS */
};

/* The names in a broker's folder of what init puts there beside broker.yaml. */
#define CLUSTER_INIT_CA "etcd-ca.pem"
#define CLUSTER_INIT_CLIENT "etcd-client" /* with .pem and .key */

/* Makes the folder. Returns false with a problem; *ret_is_usage says that the command line is at
 * fault. A failure leaves what was made so far in FOLDER.part. */
bool cluster_init_run(const struct cluster_init_options *options, bool *ret_is_usage,
                      struct problem *ret_problem);

#endif
