/* This unit makes certificates for the etcd of a cluster, and the authority that signs them.
 *
 * The program `openssl` makes them; docs/architecture.md weighs that. All files get mode 0600. */
#ifndef BOURSE_BROKER_CLUSTER_CERTIFICATES_H
#define BOURSE_BROKER_CLUSTER_CERTIFICATES_H

#include "base/problem.h"
#include "broker/cluster/cluster_nodes.h"

#include <stdbool.h>
#include <stddef.h>

enum { CERTIFICATES_DAYS = 3650, CERTIFICATES_DAYS_MAX = 7300 };

/* Makes ca.key and ca.pem in `folder`. Returns false with a problem. */
bool certificates_authority(const char *folder, unsigned days, struct problem *ret_problem);
/* The certificate of a member of etcd is shown to clients and to other members; a client's only
 * says who it is. */
enum certificates_use { CERTIFICATES_MEMBER, CERTIFICATES_CLIENT };
/* Makes NAME.key and NAME.pem in the folder `to`, for `node`, signed by the authority in `folder`.
 */
bool certificates_sign(const char *folder, const char *to, const char *name,
                       const struct cluster_node *node, enum certificates_use use, unsigned days,
                       struct problem *ret_problem);

/* Writes why the certificate is not good for a client of servers that trust the authority: it has
 * ended, for example, or another authority signed it. Both are paths of PEM files. Returns false
 * when it is good, or openssl does not say. */
bool certificates_explain(const char *authority, const char *certificate, char *ret_reason,
                          size_t capacity);

#endif
