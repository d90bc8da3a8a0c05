/* broker/cluster.h has the operator's commands for brokers that share one journal on etcd.
 *
 * `join` makes the folder of one more broker from a backup, and checks that etcd has what comes
 * after it. `status` shows the brokers and their etcd. Both only read what others have. `transfer`
 * hands the lead over, and `leave` takes a broker out. `init` makes the folders of a new market's
 * machines. `recover` lets a market go on in a new journal. */
#ifndef BOURSE_BROKER_CLUSTER_H
#define BOURSE_BROKER_CLUSTER_H

#include "base/problem.h"

#include <stdbool.h>

enum cluster_result { CLUSTER_OK, CLUSTER_FAILED, CLUSTER_USAGE, CLUSTER_WRONG };

struct cluster_command {
    const char *verb;     /* such as "status"; NULL: none was given */
    const char *words[2]; /* BACKUP and DIR, or DIR; NULL where one is missing */
    const char *audit;    /* path of bourse-audit */
    const char *to;       /* RANK or ADDRESS of a transfer; NULL: anybody */
    const char *nodes, *operator, * origin, *days; /* of init; NULL where one is missing */
    const char *name;              /* of a broker that leaves; NULL: the folder's own */
    const char *head, *checkpoint; /* of a recovery; NULL where one is missing */
    bool is_json, is_metrics, gives_up;
};

/* Runs the command and prints what it found. Every result but OK comes with a problem; WRONG means
 * that the backup is damaged, or of no use. */
enum cluster_result cluster_run(const struct cluster_command *command, struct problem *ret_problem);

#endif
