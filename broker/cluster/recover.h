/* A recovery makes a whole market go on in a new journal on etcd.
 *
 * The market comes from a backup, or from the folder of a broker that has survived. Its journal on
 * etcd gets a fresh id. The journal before is ended for good, so that no broker that comes back
 * from it can serve the market beside the new one: etcd refuses each of its entries, and its start.
 * Members keep their keys, accounts and receipts. What the backup lacks is lost. */
#ifndef BOURSE_BROKER_CLUSTER_RECOVER_H
#define BOURSE_BROKER_CLUSTER_RECOVER_H

#include "base/problem.h"

#include <stdbool.h>

struct recover_options {
    const char *backup; /* NULL: `folder` itself is the source, and no broker runs on it */
    const char *folder; /* with a backup: new, or a broker's folder that `cluster init` made */
    const char *audit;  /* path of bourse-audit */
    const char *head, *checkpoint; /* of a later time than the backup, as for a restore, or NULL */
    bool gives_up;                 /* etcd may have entries that the source lacks: they are lost */
    bool is_json;
};
/* Runs `cluster recover`, and prints what comes next. Returns false with a problem; *ret_is_wrong
 * is then true when the backup, or what was shown, is the reason. */
bool recover_run(const struct recover_options *options, bool *ret_is_wrong,
                 struct problem *ret_problem);

#endif
