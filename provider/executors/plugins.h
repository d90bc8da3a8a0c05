/* provider/executors/plugins.h asks, at a start, the plug-ins of the config what devices they
 * attach. An agent goes on without a device whose plug-in cannot be used. */
#ifndef BOURSE_PROVIDER_EXECUTORS_PLUGINS_H
#define BOURSE_PROVIDER_EXECUTORS_PLUGINS_H

#include "provider/config.h"
#include "provider/device/discover.h"
#include "provider/executors/plugin.h"

#include <stdbool.h>

/* Fills machine->plugins. `why_not` is the reason why no plug-in can be used here; "" when they
 * can. */
void plugins_learn(const struct config *config, const struct plugin_trial *trial,
                   const char *why_not, struct machine *machine);

/* Returns true when the config has a device with a plug-in. */
bool plugins_wanted(const struct config *config);

/* Logs one line for each device of the config whose plug-in cannot be used. */
void plugins_warn(const struct machine *machine);

#endif
