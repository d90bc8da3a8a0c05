/* bourse-broker: runs an exchange over one folder, checks its config, audits and replays its journal. */
#include "broker/broker.h"
#include "broker/replay.h"
#include "runtime/log.h"
#include "runtime/market.h"
#include "runtime/process.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum exit_status { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_WRONG = 7 };

static const char usage[] =
    "usage: bourse-broker [run] --dir DIR [--check-config] [--adopt-journal] [--log LEVEL] "
    "[--json-logs]\n"
    "       bourse-broker audit DIR [--json]\n"
    "       bourse-broker replay --verify DIR [--json]\n"
    "       bourse-broker version | --help\n"
    "\n"
    "run      opens or makes the market in DIR and serves it until SIGTERM\n"
    "audit    re-derives every balance and hash of DIR without the exchange's code\n"
    "replay   rebuilds DIR from its first command and compares; a broker may be running\n"
    "\n"
    "--check-config   reads DIR/broker.yaml, says what is wrong with it, and ends\n"
    "--adopt-journal  believes a journal whose HEAD file is missing: after restoring a backup, "
    "once\n"
    "--log LEVEL      error, warning, info or debug\n"
    "--json-logs      one JSON object a line\n";

struct arguments {
    const char *command;
    const char *folder;
    bool check_config, adopt, verify, json, json_logs;
    enum log_level level;
};

static int fail_usage(const char *what)
{
    (void)fprintf(stderr, "bourse-broker: %s\n%s", what, usage);
    return EXIT_USAGE;
}

static int fail(const struct problem *problem, int status)
{
    log_error("%s", problem->text);
    return status;
}

static bool is_command(const char *word)
{
    return strcmp(word, "run") == 0 || strcmp(word, "audit") == 0 || strcmp(word, "replay") == 0 ||
           strcmp(word, "version") == 0 || strcmp(word, "help") == 0;
}

/* Options stand anywhere; words are the command, then the folder. */
static int parse(int argc, char **argv, struct arguments *ret)
{
    enum { DIR_OPTION = 256, CHECK, ADOPT, VERIFY, JSON, JSON_LOGS, LOG, HELP, VERSION };
    static const struct option options[] = {{"dir", required_argument, NULL, DIR_OPTION},
                                            {"check-config", no_argument, NULL, CHECK},
                                            {"adopt-journal", no_argument, NULL, ADOPT},
                                            {"verify", no_argument, NULL, VERIFY},
                                            {"json", no_argument, NULL, JSON},
                                            {"json-logs", no_argument, NULL, JSON_LOGS},
                                            {"log", required_argument, NULL, LOG},
                                            {"help", no_argument, NULL, HELP},
                                            {"version", no_argument, NULL, VERSION},
                                            {NULL, 0, NULL, 0}};
    *ret = (struct arguments){.level = LOG_LEVEL_INFO};
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (option) {
        case DIR_OPTION:
            ret->folder = optarg;
            break;
        case CHECK:
            ret->check_config = true;
            break;
        case ADOPT:
            ret->adopt = true;
            break;
        case VERIFY:
            ret->verify = true;
            break;
        case JSON:
            ret->json = true;
            break;
        case JSON_LOGS:
            ret->json_logs = true;
            break;
        case LOG:
            if (!log_level_from(optarg, &ret->level)) {
                return fail_usage("--log is one of error, warning, info, debug");
            }
            break;
        case VERSION:
            ret->command = "version";
            break;
        case 'h':
        case HELP:
            ret->command = "help";
            return EXIT_OK;
        default:
            return fail_usage("unknown option");
        }
    }
    for (; optind < argc; optind++) {
        if (ret->command == NULL && is_command(argv[optind])) {
            ret->command = argv[optind];
        } else if (ret->command == NULL) {
            return fail_usage("unknown command; a folder to serve is named with --dir");
        } else if (ret->folder == NULL) {
            ret->folder = argv[optind];
        } else {
            return fail_usage("too many words");
        }
    }
    ret->command = ret->command == NULL ? "run" : ret->command;
    return EXIT_OK;
}

static int run(const struct arguments *arguments)
{
    struct problem problem = {.text = ""};
    if (arguments->check_config) {
        struct broker_config config;
        if (!config_load(arguments->folder, &config, &problem)) {
            return fail(&problem, EXIT_USAGE);
        }
        (void)printf("%s/%s is fine\n", arguments->folder, MARKET_BROKER_CONFIG);
        return EXIT_OK;
    }
    int signals = process_signals();
    if (signals < 0) {
        problem_set(&problem, "signals cannot be received: %s", strerror(errno));
        return fail(&problem, EXIT_FAILED);
    }
    struct broker_options options = {
        .folder = arguments->folder, .adopt = arguments->adopt, .signals = signals};
    return broker_run(&options, &problem) ? EXIT_OK : fail(&problem, EXIT_FAILED);
}

/* The auditor is a program of its own, so that nothing of ours can be in it. */
static int audit(const struct arguments *arguments)
{
    char path[PATH_MAX];
    if (!process_folder(path, sizeof path - sizeof "/bourse-audit")) {
        return fail_usage("the folder of this program cannot be known");
    }
    (void)strcat(path, "/bourse-audit");
    const char *words[] = {"bourse-audit", arguments->folder, arguments->json ? "--json" : NULL,
                           NULL};
    (void)execv(path, (char *const *)(uintptr_t)words);
    (void)fprintf(stderr, "bourse-broker: %s: %s\n", path, strerror(errno));
    return EXIT_FAILED;
}

static int replay(const struct arguments *arguments)
{
    struct problem problem = {.text = ""};
    if (!arguments->verify) {
        return fail_usage("replay needs --verify");
    }
    return replay_verify(arguments->folder, arguments->json, &problem) ? EXIT_OK
                                                                       : fail(&problem, EXIT_WRONG);
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    struct problem problem;
    int status = parse(argc, argv, &arguments);
    if (status != EXIT_OK) {
        return status;
    }
    if (strcmp(arguments.command, "help") == 0) {
        (void)fputs(usage, stdout);
        return EXIT_OK;
    }
    if (strcmp(arguments.command, "version") == 0) {
        (void)puts("bourse-broker " BOURSE_VERSION);
        return EXIT_OK;
    }
    if (arguments.folder == NULL) {
        return fail_usage("which folder? --dir DIR");
    }
    log_setup(arguments.level, arguments.json_logs);
    if (!process_start(&problem)) {
        return fail(&problem, EXIT_FAILED);
    }
    if (strcmp(arguments.command, "audit") == 0) {
        return audit(&arguments);
    }
    return strcmp(arguments.command, "replay") == 0 ? replay(&arguments) : run(&arguments);
}
