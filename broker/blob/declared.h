/* broker/blob/declared.h - the outputs that a manifest declares for each of its subtasks, in a
 * small part of the manifest's memory.
 *
 * Names come from templates. The agent expands them by the same functions (formats/template.h).
 * Pure. */
#ifndef BOURSE_BROKER_BLOB_DECLARED_H
#define BOURSE_BROKER_BLOB_DECLARED_H

#include "protocol/bourse.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

struct declared;

/* NULL: out of memory. Borrows nothing of the manifest. */
struct declared *declared_of(const Bourse__V1__Manifest *manifest);
void declared_destroy(struct declared **self);

/* How many outputs subtask `index` has to leave. */
uint32_t declared_count(const struct declared *declared, uint32_t index);
/* The name of its output `number`, for the caller to free. NULL: it has none, so that no agent can
 * have run it, or out of memory. */
char *declared_name(const struct declared *declared, uint32_t index, uint32_t number);

#endif
