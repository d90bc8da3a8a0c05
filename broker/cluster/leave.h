/* Leaving takes one broker out of those that share a market's journal on etcd.
 *
 * The broker's record goes, so that broker does not start again until its folder is made anew by
 * `cluster join`. A broker that leads hands over first. The last broker cannot leave. The member of
 * etcd on its machine stays: the command that removes it is printed. */
#ifndef BOURSE_BROKER_CLUSTER_LEAVE_H
#define BOURSE_BROKER_CLUSTER_LEAVE_H

#include "base/problem.h"
#include "broker/storage/etcd/etcd_roster.h"

#include <stdbool.h>

struct leave_options {
    const char *folder; /* of this broker */
    const char *name;   /* RANK, ADDRESS or id of another one, which is gone; NULL: this broker */
    bool is_json;
};
/* Runs `cluster leave`, and prints who left. A broker that runs on the folder has ended then.
 * Returns false with a problem; *ret_is_usage says that the command line is at fault. */
bool leave_run(const struct leave_options *options, bool *ret_is_usage,
               struct problem *ret_problem);

/* Finds the broker that `name` means: its rank, the address of its control port, or its id. Returns
 * its place, or -1 with a problem: none has the name, or several have. */
int leave_find(const struct etcd_roster_list *list, const char *name, struct problem *ret_problem);
/* Finds the broker that stays when number `leaves` goes: one that runs rather than another. Returns
 * -1 when there is none. */
int leave_stays(const struct etcd_roster_list *list, int leaves);

#endif
