/* provider/work/last_outputs.h keeps the names and hashes of the outputs of a jail's last run. A
 * resident that still has their bytes on a device learns from them what it holds. */
#ifndef BOURSE_PROVIDER_WORK_LAST_OUTPUTS_H
#define BOURSE_PROVIDER_WORK_LAST_OUTPUTS_H

#include "provider/jail/jail.h"
#include "provider/work/outcome.h"

#include <stddef.h>

struct last_outputs {
    struct jail_made items[JAIL_MADE_MAX]; /* the names are the list's */
    size_t count;
};

/* Takes the outputs of a run, at most JAIL_MADE_MAX of them, in the place of the earlier ones. A
 * run that failed has none. */
void last_outputs_note(struct last_outputs *last, const struct outcome *outcome);
/* Forgets the outputs. */
void last_outputs_clear(struct last_outputs *last);

#endif
