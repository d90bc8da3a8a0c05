/* A startable market has a ledger that can be read, and a HEAD that agrees with its journal or is
 * missing, as after a restore. The look is short and changes nothing; a start checks every row. */
#ifndef BOURSE_BROKER_STORAGE_STARTABLE_H
#define BOURSE_BROKER_STORAGE_STARTABLE_H

#include "base/problem.h"
#include "protocol/genesis.h"

#include <stdbool.h>
#include <stdint.h>

struct startable {
    bool starts; /* false: the fields below say nothing */
    bool has_head;
    char origin[GENESIS_ORIGIN_SIZE]; /* of the log; it is the market's name */
    uint64_t entries, accounts;
};

/* Looks into `folder`, whose lock the caller holds. A ledger that is missing, empty or damaged does
 * not start. Returns false with a problem when the machine could not read the files, or another
 * release wrote the ledger: then nothing is known. */
bool startable_find(const char *folder, struct startable *ret_found, struct problem *ret_problem);

#endif
