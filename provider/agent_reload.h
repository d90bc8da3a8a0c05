/* provider/agent_reload.h says what a change of each key of the config does while the agent runs.
 * Every key is obeyed at once, or the log names it as one that waits for a restart. */
#ifndef BOURSE_PROVIDER_AGENT_RELOAD_H
#define BOURSE_PROVIDER_AGENT_RELOAD_H

#include "provider/config.h"

#include <stdbool.h>
#include <stddef.h>

enum agent_reload_effect {
    AGENT_RELOAD_OFFERED, /* a term of the asks, which are placed again */
    AGENT_RELOAD_APPLIED, /* a limit that the agent obeys from now on */
    AGENT_RELOAD_DEVICE,  /* part of a device: a restart applies the change */
    AGENT_RELOAD_RESTART, /* another thing that only a start reads */
};

/* Returns what a change of the key does, which is one of config_keys(CONFIG_MAP_FILE). */
enum agent_reload_effect agent_reload_effect(const char *key);

/* Returns the first key whose change waits for a restart, or NULL. A limit waits for one when there
 * was none at the start, and `idle` when its end is wanted. `skips_devices` leaves out keys
 * that are part of a device. */
const char *agent_reload_waiting(const struct config *old, const struct config *now,
                                 bool skips_devices);

#endif
