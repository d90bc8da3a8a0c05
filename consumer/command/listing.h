/* consumer/command/listing.h shows rows as JSON, as ids, or as a table. */
#ifndef BOURSE_CONSUMER_COMMAND_LISTING_H
#define BOURSE_CONSUMER_COMMAND_LISTING_H

#include "consumer/command/command.h"
#include "consumer/command/grid.h"

/* A listing collects rows and shows them as JSON, as ids, or as a table. */
struct listing {
    json_t *list; /* NULL: rows go to the table */
    bool quiet;
    struct grid table;
};
/* Shows the rows as JSON under `name`, or as the table. With --quiet, the ids were printed as the
 * rows came. */
int listing_show(struct invocation *invocation, struct listing *listing, const char *name);
/* Prints the price band, and the most that one order may be worth. */
void listing_print_bands(FILE *to, struct bourse_bands bands);

#endif
