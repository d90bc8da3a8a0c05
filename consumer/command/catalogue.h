/* consumer/command/catalogue.h - `bourse devices --catalogue [ID]` and `--estimate OPERATION`. */
#ifndef BOURSE_CONSUMER_COMMAND_CATALOGUE_H
#define BOURSE_CONSUMER_COMMAND_CATALOGUE_H

#include "consumer/command/command.h"

/* Shows the catalogue, one device of it (the command's word), or with --estimate what an operation takes on
 * all or on that one. Asks no market. Returns an exit status. */
int show_catalogue(struct invocation *invocation);

#endif
