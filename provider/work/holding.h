/* A holding is what all lanes of one lease share, namely the manifest, decoded once, and the image.
 *
 * The first lane that needs the holding loads it on its own thread, while the others wait. */
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
void holding_destroy(struct holding **self); /* no lane may use it any more */
const struct agent_grant *holding_grant(const struct holding *holding);

/* Waits until the manifest and the image are there. Returns false when work cannot run;
 * *ret_outcome and the problem say why. The outcome is CANCELLED when `give_up` became true. */
bool holding_load(struct holding *holding, const atomic_bool *give_up,
                  enum result_outcome *ret_outcome, struct problem *ret_problem);
/* Returns the manifest. Call it after a successful load. */
const Bourse__V1__Manifest *holding_manifest(const struct holding *holding);
const char *holding_image(const struct holding *holding); /* folder, or NULL for host programs */

/* Asks for the inputs of a subtask, now or as soon as the manifest is there. Inputs in `given` are
 * asked for only if the manifest is there now. Does not block. */
void holding_prepare(struct holding *holding, uint32_t index, const Bourse__V1__Work *given);

#endif
