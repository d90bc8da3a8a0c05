/* consumer/command/plan/catalogue.h - `bourse devices --catalogue [ID]`, `--estimate OPERATION` and
 * `--operations`. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_CATALOGUE_H
#define BOURSE_CONSUMER_COMMAND_PLAN_CATALOGUE_H

#include "consumer/command/command.h"

/* Shows the catalogue, one device of it (the command's word), or with --estimate what an operation
 * takes on all or on that one. Asks no market. Returns an exit status. */
int show_catalogue(struct invocation *invocation);

/* Lists the operations that can be estimated: their shapes and types. */
int show_operations(struct invocation *invocation);

#endif
