#include "broker/arguments.h"

#include <stddef.h>
#include <stdio.h>

const struct option arguments_options[] = {
    {"dir", required_argument, NULL, OPTION_DIR},
    {"check-config", no_argument, NULL, OPTION_CHECK},
    {"adopt-journal", no_argument, NULL, OPTION_ADOPT},
    {"verify", no_argument, NULL, OPTION_VERIFY},
    {"without-blobs", no_argument, NULL, OPTION_WITHOUT_BLOBS},
    {"with-keys", no_argument, NULL, OPTION_WITH_KEYS},
    {"skip-damaged-blobs", no_argument, NULL, OPTION_SKIP_DAMAGED},
    {"unchecked", no_argument, NULL, OPTION_UNCHECKED},
    {"head", required_argument, NULL, OPTION_HEAD},
    {"checkpoint", required_argument, NULL, OPTION_CHECKPOINT},
    {"since", required_argument, NULL, OPTION_SINCE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"log-json", no_argument, NULL, OPTION_LOG_JSON},
    {"json-logs", no_argument, NULL, OPTION_JSON_LOGS},
    {"log", required_argument, NULL, OPTION_LOG},
    {"i-know-the-log-ends", no_argument, NULL, OPTION_LOG_ENDS},
    {"end-market", required_argument, NULL, OPTION_END_MARKET},
    {"to", required_argument, NULL, OPTION_TO},
    {"nodes", required_argument, NULL, OPTION_NODES},
    {"operator", required_argument, NULL, OPTION_OPERATOR},
    {"origin", required_argument, NULL, OPTION_ORIGIN},
    {"days", required_argument, NULL, OPTION_DAYS},
    {"name", required_argument, NULL, OPTION_NAME},
    {"metrics", no_argument, NULL, OPTION_METRICS},
    {"give-up-entries", no_argument, NULL, OPTION_GIVE_UP},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

bool arguments_take(int number, struct arguments *ret)
{
    switch ((enum option_number)number) {
    case OPTION_DIR:
        ret->folder = optarg;
        return true;
    case OPTION_CHECK:
        ret->check_config = true;
        return true;
    case OPTION_ADOPT:
        ret->adopt = true;
        return true;
    case OPTION_VERIFY:
        ret->verify = true;
        return true;
    case OPTION_WITHOUT_BLOBS:
        ret->without_blobs = true;
        return true;
    case OPTION_WITH_KEYS:
        ret->with_keys = true;
        return true;
    case OPTION_SKIP_DAMAGED:
        ret->skip_damaged = true;
        return true;
    case OPTION_UNCHECKED:
        ret->unchecked = true;
        return true;
    case OPTION_HEAD:
        ret->head = optarg;
        return true;
    case OPTION_CHECKPOINT:
        ret->checkpoint = optarg;
        return true;
    case OPTION_TO:
        ret->to = optarg;
        return true;
    case OPTION_NODES:
        ret->nodes = optarg;
        return true;
    case OPTION_OPERATOR:
        ret->operator= optarg;
        return true;
    case OPTION_ORIGIN:
        ret->origin = optarg;
        return true;
    case OPTION_DAYS:
        ret->days = optarg;
        return true;
    case OPTION_NAME:
        ret->name = optarg;
        return true;
    case OPTION_METRICS:
        ret->metrics = true;
        return true;
    case OPTION_GIVE_UP:
        ret->gives_up = true;
        return true;
    case OPTION_SINCE:
        ret->since = optarg;
        return true;
    case OPTION_JSON:
        ret->json = true;
        return true;
    case OPTION_LOG_JSON:
    case OPTION_JSON_LOGS:
        ret->log_json = true;
        return true;
    case OPTION_LOG:
        if (!log_level_from(optarg, &ret->level)) {
            (void)fprintf(stderr,
                          "bourse-broker: --log %s: the levels are error, warning, info and "
                          "debug; `bourse-broker --help` says more\n",
                          optarg);
            return false;
        }
        return true;
    case OPTION_LOG_ENDS:
        ret->log_ends = true;
        return true;
    case OPTION_END_MARKET:
        ret->end_market = optarg;
        return true;
    case OPTION_HELP:
    case OPTION_VERSION:
        return true;
    }
    return false;
}
