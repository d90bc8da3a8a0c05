/* consumer/command/plan/catalogue.h runs `bourse devices --catalogue [ID]`, `--estimate OPERATION`
 * and `--operations`. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_CATALOGUE_H
#define BOURSE_CONSUMER_COMMAND_PLAN_CATALOGUE_H

#include "consumer/command/command.h"

/* Shows the catalogue, or the one device that the command's word names. With --estimate, shows the
 * time of an operation on all devices or on the one. Asks no market. Returns an exit status. */
int catalogue_show(struct invocation *invocation);

/* Lists the operations that can be estimated, with their shapes and types. */
int catalogue_show_operations(struct invocation *invocation);

#endif
