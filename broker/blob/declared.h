/* This file stores the outputs that a manifest declares for each subtask, in little memory.
 *
 * Names come from templates, and the agent expands the templates by the same functions
 * (formats/template.h). The functions are pure. */
#ifndef BOURSE_BROKER_BLOB_DECLARED_H
#define BOURSE_BROKER_BLOB_DECLARED_H

#include "protocol/bourse.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

struct declared;

/* Returns the outputs that a manifest declares, or NULL when memory is short. The
 * result borrows nothing from the manifest. */
struct declared *declared_of(const Bourse__V1__Manifest *manifest);
void declared_destroy(struct declared **self);

/* Returns the number of outputs that subtask `index` must leave. */
uint32_t declared_count(const struct declared *declared, uint32_t index);
/* Returns the name of output `number`, which the caller frees. Returns NULL when memory is short,
 * or when the output has no name, so that no agent can have run the subtask. */
char *declared_name(const struct declared *declared, uint32_t index, uint32_t number);

#endif
