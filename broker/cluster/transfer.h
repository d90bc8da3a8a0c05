/* A transfer hands the lead of a market from one broker to another, at the operator's word.
 *
 * The word is a file in the leader's folder, and a SIGHUP. So the broker's own user and root may
 * give it, who may write into the folder and signal the broker. A broker without this feature only
 * reads its config again. The leader commits and answers what it has, gives the lead up with a wish
 * for its successor, and follows. */
#ifndef BOURSE_BROKER_CLUSTER_TRANSFER_H
#define BOURSE_BROKER_CLUSTER_TRANSFER_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>

/* A wish is "" (anybody), "rank N", or the address of a control port. It travels in the place of a
 * leader's address. */
enum { TRANSFER_WISH_SIZE = 128 };

/* Reads RANK or ADDRESS of a command line; NULL: anybody. Returns false with a problem. */
bool transfer_wish_read(const char *text, char ret_wish[TRANSFER_WISH_SIZE],
                        struct problem *ret_problem);
/* Writes the wish for the broker of this rank. */
void transfer_wish_rank(unsigned rank, char ret_wish[TRANSFER_WISH_SIZE]);
/* Leaves the request in the folder. Returns false with a problem. */
bool transfer_put(const char *folder, const char *wish, struct problem *ret_problem);
/* Takes the request out of the folder. Returns false when there is none. */
bool transfer_take(const char *folder, char ret_wish[TRANSFER_WISH_SIZE]);

struct transfer_options {
    const char *folder;     /* of the broker that leads */
    const char *to;         /* RANK or ADDRESS; NULL: anybody */
    bool is_json, is_quiet; /* quiet: prints nothing */
};
/* Runs `cluster transfer`: gives the word, waits for the successor, and prints who leads. Returns
 * false with a problem; *ret_is_usage says that the command line is at fault. */
bool transfer_run(const struct transfer_options *options, bool *ret_is_usage,
                  struct problem *ret_problem);

#endif
