/* A prepared folder has what `cluster init` made for one broker, and no market yet.
 *
 * `cluster join` fills such a folder: the market comes from a backup, and broker.yaml and the
 * certificates are those of the node. */
#ifndef BOURSE_BROKER_CLUSTER_PREPARED_H
#define BOURSE_BROKER_CLUSTER_PREPARED_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns true when `folder` has a broker.yaml and no ledger. */
bool prepared_is(const char *folder);
/* Writes the path beside the folder where a market is restored first. Returns false with a problem,
 * also when the folder has files that init does not make: they would be lost. */
bool prepared_place(const char *folder, char *ret_place, size_t capacity,
                    struct problem *ret_problem);
/* Moves the files of init into `place`, and `place` to `folder`. Returns false with a problem. */
bool prepared_fill(const char *folder, const char *place, struct problem *ret_problem);

#endif
