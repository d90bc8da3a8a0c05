/* A lease context is what all lanes of one lease share, namely the manifest, decoded once, and the
 * image.
 *
 * The first lane that needs the lease context loads it on its own thread, while the others wait. */
#ifndef BOURSE_PROVIDER_WORK_LEASE_CONTEXT_H
#define BOURSE_PROVIDER_WORK_LEASE_CONTEXT_H

#include "protocol/codec.h"
#include "protocol/message.h"
#include "provider/session/agent_session.h"
#include "provider/work/images.h"
#include "provider/work/store.h"

#include <stdatomic.h>
#include <stdbool.h>

struct lease_context;

struct lease_context *lease_context_create(const struct agent_grant *grant, struct store *store,
                                           struct images *images);
void lease_context_destroy(struct lease_context **self); /* no lane may use it any more */
const struct agent_grant *lease_context_grant(const struct lease_context *context);

/* Waits until the manifest and the image are there. Returns false when work cannot run;
 * *ret_outcome and the problem say why. The outcome is CANCELLED when `give_up` became true. */
bool lease_context_load(struct lease_context *context, const atomic_bool *give_up,
                        enum result_outcome *ret_outcome, struct problem *ret_problem);
/* Returns the manifest. Call it after a successful load. */
const Bourse__V1__Manifest *lease_context_manifest(const struct lease_context *context);
/* Returns the folder of the image, or NULL for host programs. */
const char *lease_context_image(const struct lease_context *context);

/* Asks for the inputs of a subtask, now or as soon as the manifest is there. Files in `inputs` are
 * asked for only if the manifest is there now. Does not block. */
void lease_context_prepare(struct lease_context *context, uint32_t index,
                           const Bourse__V1__Work *inputs);

#endif
