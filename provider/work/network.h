/* provider/work/network.h holds the transfers of jobs to the owner's limits of the network, and
 * keeps the count of the month.
 *
 * The count survives a restart in the file `network` of the agent's folder, which is JSON:
 *
 *     {"month":24322,"bytes":1048576}
 *
 * The month is that of network_rule.h. A crash loses the count of the last second. */
#ifndef BOURSE_PROVIDER_WORK_NETWORK_H
#define BOURSE_PROVIDER_WORK_NETWORK_H

#include "base/problem.h"
#include "provider/session/network_rule.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct network;

/* Reads the count in the folder. A file that cannot be read as a count is an error: the month might
 * be used up. Returns false with the problem. */
bool network_open(const char *folder, const struct network_terms *terms,
                  struct network **ret_network, struct problem *ret_problem);
/* Writes the count, and frees. No other thread uses the network any more. */
void network_close(struct network **self);
/* Lets every thread that waits go on, and no thread wait any more. */
void network_stop(struct network *network);

/* Obeys other limits from now on. The month's count stays. */
void network_change(struct network *network, const struct network_terms *terms);

/* Counts bytes that went, and waits until the next ones may go. `context` is the network. Any
 * thread may call it (runtime/blob/blob_client.h). */
void network_meter(void *context, uint64_t bytes);
/* Counts bytes that went, without a wait. Any thread may call it. */
void network_note(struct network *network, uint64_t bytes);
/* Writes the count when it has changed since the last second. Returns false with the problem when
 * it cannot be written; the next call tries again. */
bool network_turn(struct network *network, int64_t now_ns, struct problem *ret_problem);
/* Returns true when the month's bytes are used up. */
bool network_is_spent(struct network *network);
/* Returns the limits and the count for `status`, or NULL when memory is short. */
json_t *network_json(struct network *network);

#endif
