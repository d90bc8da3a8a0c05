/* provider/work/holding.h - what all lanes of one lease share: the manifest, decoded once, and the
 * image.
 *
 * Loaded by the first lane that needs it, on that lane's thread, while the others wait. */
#ifndef BOURSE_PROVIDER_WORK_HOLDING_H
#define BOURSE_PROVIDER_WORK_HOLDING_H

#include "protocol/codec.h"
#include "protocol/message.h"
#include "provider/session/session.h"
#include "provider/work/images.h"
#include "provider/work/store.h"

#include <stdatomic.h>
#include <stdbool.h>

struct holding;

struct holding *holding_create(const struct agent_grant *grant, struct store *store,
                               struct images *images);
void holding_destroy(struct holding **self); /* no lane uses it any more */
const struct agent_grant *holding_grant(const struct holding *holding);

/* Waits until the manifest and the image are there. False: *ret_outcome and the problem say why
 * work cannot run; CANCELLED when `give_up` became true. */
bool holding_load(struct holding *holding, const atomic_bool *give_up,
                  enum result_outcome *ret_outcome, struct problem *ret_problem);
/* After a successful load. */
const Bourse__V1__Manifest *holding_manifest(const struct holding *holding);
const char *holding_image(const struct holding *holding); /* folder, or NULL for host programs */

/* Asks for the inputs of a subtask, now or as soon as the manifest is there; for those that it was
 * given only now. Does not block. */
void holding_prepare(struct holding *holding, uint32_t index, const Bourse__V1__Work *given);

#endif
