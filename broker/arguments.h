/* broker/arguments.h has the options and words of bourse-broker's command line.
 *
 * Which command takes which option is in main.c. */
#ifndef BOURSE_BROKER_ARGUMENTS_H
#define BOURSE_BROKER_ARGUMENTS_H

#include "runtime/log.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

struct arguments {
    const char *command;
    const char *page; /* what `help` prints; NULL: the page of the whole program */
    /* `second` is TARGET of backup, or DIR of restore. For completion `folder` is the shell. */
    const char *folder, *second, *third;
    const char *head, *checkpoint;
    const char *since;                             /* NULL: from the first record */
    const char *to;                                /* the successor of `cluster transfer` */
    const char *nodes, *operator, * origin, *days; /* of `cluster init` */
    const char *name;                              /* of a broker, for `cluster leave` */
    const char *end_market; /* NULL: only a market that does not start may end */
    bool check_config, adopt, verify, json, log_json, without_blobs, with_keys, skip_damaged,
        unchecked, log_ends, metrics, gives_up;
    enum log_level level;
    uint32_t given; /* the options of the command line, as bits by enum option_number */
};

enum option_number {
    OPTION_DIR = 1,
    OPTION_CHECK,
    OPTION_ADOPT,
    OPTION_VERIFY,
    OPTION_WITHOUT_BLOBS,
    OPTION_WITH_KEYS,
    OPTION_SKIP_DAMAGED,
    OPTION_UNCHECKED,
    OPTION_HEAD,
    OPTION_CHECKPOINT,
    OPTION_SINCE,
    OPTION_JSON,
    OPTION_LOG_JSON,
    OPTION_LOG,
    OPTION_LOG_ENDS,
    OPTION_END_MARKET,
    OPTION_HELP,
    OPTION_VERSION,
    OPTION_TO,
    OPTION_NODES,
    OPTION_OPERATOR,
    OPTION_ORIGIN,
    OPTION_DAYS,
    OPTION_NAME,
    OPTION_METRICS,
    OPTION_GIVE_UP,
    OPTION_JSON_LOGS, /* the earlier name of --log-json, which no help shows */
};

extern const struct option arguments_options[];

/* Takes one option, whose value is in `optarg`. Returns false after a message. */
bool arguments_take(int number, struct arguments *ret);

#endif
