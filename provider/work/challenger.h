/* provider/work/challenger.h computes the answer to a challenge of the broker on its own thread.
 *
 * bourse-tensor computes in a jail like those of jobs, on one thread: what is shown is what a slot
 * does. For a device for kernels, bourse-kernel computes on the device, and for one with a plug-in
 * the plug-in does. Their jail stays for some seconds, since a tiny challenge comes first and lets
 * the device's compiler or the plug-in start. One challenge is computed at a time. */
#ifndef BOURSE_PROVIDER_WORK_CHALLENGER_H
#define BOURSE_PROVIDER_WORK_CHALLENGER_H

#include "base/challenge_product.h"
#include "provider/config.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/launcher.h"
#include "provider/policy.h"
#include "provider/session/agent_session.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct challenger;

struct challenger_config {
    struct launcher *launcher;
    struct cgroups *cgroups; /* NULL: none */
    const char *worker_path;
    const char *tensor_path;     /* NULL: cores compute no matrices */
    const char *kernel_path;     /* NULL: no device for kernels does */
    const char *plugin_path;     /* the installed bourse-plugin; NULL: no plug-in does */
    const struct config *config; /* what jails see */
    void (*done)(void *context); /* from the other thread: challenger_take has an answer */
    void *context;
};

struct challenger *challenger_create(const struct challenger_config *config);
/* Waits for the end of what is computed, which is cancelled. */
void challenger_destroy(struct challenger **self);

/* Begins to compute on the device of the offer, which lives as long as the challenger. Returns
 * false when the challenge is out of its bounds, another is computed, there is no thread, or no
 * program for it. */
bool challenger_begin(struct challenger *challenger, const struct agent_challenge *challenge,
                      const struct offer *offer);
/* Returns true with the challenge that is done. The digests are borrowed until the next
 * challenger_begin; there are none when the answer could not be computed, for the reason that the
 * log has. */
bool challenger_take(struct challenger *challenger, struct agent_challenge *ret_challenge,
                     const uint8_t **ret_digests, size_t *ret_length);

#endif
