/* bourse-provider: the agent of someone who offers a machine. */
#include "provider/agent.h"
#include "provider/join.h"
#include "provider/report.h"
#include "provider/setup.h"
#include "runtime/log.h"
#include "runtime/process.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum exit_status {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_REFUSED = 4,
    EXIT_UNREACHABLE = 6
};

static const char HELP[] =
    "bourse-provider - offers this machine on a bourse market\n"
    "\n"
    "  bourse-provider [run] [--config FILE] [--market DIR]   offer, and run what comes\n"
    "  bourse-provider probe [--json]                         show what would be offered\n"
    "  bourse-provider join INVITE [--name N] [--dir DIR]     join a market\n"
    "  bourse-provider version\n"
    "\n"
    "`bourse-provider COMMAND --help` says more.\n"
    "Exit status: 0 ok, 1 failed, 2 usage, 4 refused, 6 broker unreachable.\n";

static const char HELP_RUN[] =
    "bourse-provider run [--config FILE] [--market DIR] [--dir DIR] [--check-config]\n"
    "\n"
    "Offers this machine's cores and runs the jobs that lease them, each in a jail, until "
    "SIGTERM.\n"
    "Started as root, it becomes the user of the config first; jobs never run as root.\n"
    "\n"
    "  --config FILE    config; default provider.yaml in the agent's folder\n"
    "  --market DIR     folder of a market on this machine; the agent's folder is DIR/provider\n"
    "  --dir DIR        the agent's folder\n"
    "  --check-config   read the config, say what is wrong, and end\n"
    "  --log LEVEL      error, warning, info or debug\n"
    "  --log-json       log one JSON object a line\n"
    "\n"
    "Exit status: 0 ended when asked to, 1 failed, 2 usage or config, 4 this host cannot isolate "
    "jobs,\n"
    "or the key is no provider of this market.\n";

static const char HELP_PROBE[] =
    "bourse-provider probe [--json] [--config FILE] [--market DIR] [--dir DIR]\n"
    "\n"
    "Shows what would be offered, what the machine has, and which walls its kernel can put around "
    "a job,\n"
    "found out by a trial jail; with each gap what to do about it. Connects nowhere.\n"
    "\n"
    "Exit status: 0 something would be offered, 1 failed, 2 usage or config, 4 nothing would be "
    "offered.\n";

static const char HELP_JOIN[] =
    "bourse-provider join INVITE [--name NAME] [--dir DIR]\n"
    "\n"
    "Redeems an invitation: makes this agent's key, has it accepted by the broker, and writes "
    "market.yaml\n"
    "and provider.yaml, which `bourse-provider run` reads. Repeating it is harmless.\n"
    "\n"
    "  --name NAME   how lists call this machine; default the host's name\n"
    "  --dir DIR     the agent's folder; default /var/lib/bourse-provider for root, else\n"
    "                ~/.local/share/bourse-provider\n"
    "\n"
    "Exit status: 0 joined, 1 failed, 2 usage or a bad invitation, 4 refused, 6 broker "
    "unreachable.\n";

struct options {
    struct setup_options setup;
    const char *name;
    bool json, check_config, help;
    enum log_level log_level;
    bool log_json;
    const char *operand;
    int operand_count;
};

static int complain(const char *what)
{
    fprintf(stderr, "bourse-provider: %s\n", what);
    return EXIT_USAGE;
}

/* True when the command line is understood. */
static bool read_options(int argc, char **argv, struct options *options)
{
    enum { CONFIG = 1, MARKET, FOLDER, NAME, JSON, CHECK, LOG, LOG_JSON, HELP_FLAG };
    static const struct option table[] = {
        {"config", required_argument, NULL, CONFIG}, {"market", required_argument, NULL, MARKET},
        {"dir", required_argument, NULL, FOLDER},    {"name", required_argument, NULL, NAME},
        {"json", no_argument, NULL, JSON},           {"check-config", no_argument, NULL, CHECK},
        {"log", required_argument, NULL, LOG},       {"log-json", no_argument, NULL, LOG_JSON},
        {"help", no_argument, NULL, HELP_FLAG},      {NULL, 0, NULL, 0},
    };
    *options = (struct options){.log_level = LOG_LEVEL_INFO};
    optind = 1;
    for (int found; (found = getopt_long(argc, argv, "h", table, NULL)) != -1;) {
        switch (found) {
        case CONFIG:
            options->setup.config_file = optarg;
            break;
        case MARKET:
            options->setup.market = optarg;
            break;
        case FOLDER:
            options->setup.folder = optarg;
            break;
        case NAME:
            options->name = optarg;
            break;
        case JSON:
            options->json = true;
            break;
        case CHECK:
            options->check_config = true;
            break;
        case LOG:
            if (!log_level_from(optarg, &options->log_level)) {
                (void)complain("--log is error, warning, info or debug");
                return false;
            }
            break;
        case LOG_JSON:
            options->log_json = true;
            break;
        case HELP_FLAG:
        case 'h':
            options->help = true;
            break;
        default:
            process_say_nearest_option(argv[optind - 1], table);
            return false; /* getopt has said what is wrong */
        }
    }
    options->operand = optind < argc ? argv[optind] : NULL;
    options->operand_count = argc - optind;
    return true;
}

static int say(const char *text)
{
    fputs(text, stdout);
    return EXIT_OK;
}

/* A service's failure belongs in its log, a command's on the terminal. */
static int fail_run(int status, const struct problem *problem)
{
    log_error("%s", problem->text);
    return status;
}

static int fail(int status, const struct problem *problem)
{
    fprintf(stderr, "bourse-provider: %s\n", problem->text);
    return status;
}

static int check_config(const struct options *options)
{
    struct problem problem = {""};
    if (!setup_check(&options->setup, &problem)) {
        fprintf(stderr, "bourse-provider: %s\n", problem.text);
        return EXIT_USAGE;
    }
    fprintf(stderr, "the config is fine\n");
    return EXIT_OK;
}

static int run(const struct options *options)
{
    static struct setup setup;
    static struct offer offer;
    struct problem problem = {""};
    struct setup_options wanted = options->setup;
    wanted.needs_market = true;
    if (!setup_begin(&wanted, &setup, &problem)) {
        return fail_run(EXIT_FAILED, &problem);
    }
    for (size_t i = 0; i < setup.isolation.warning_count; i++) {
        log_warning("%s", setup.isolation.warnings[i]);
    }
    int status = EXIT_OK;
    if (!policy_offer(&setup.config, &setup.machine, &setup.profile, &setup.isolation,
                      identity_key(setup.identity), &offer, &problem)) {
        status = fail_run(EXIT_REFUSED, &problem);
    } else {
        struct agent_setup agent = {
            .config = &setup.config,
            .market = &setup.market,
            .identity = setup.identity,
            .machine = &setup.machine,
            .isolation = &setup.isolation,
            .offer = &offer,
            .launcher = setup.launcher,
            .cgroups = setup.cgroups,
            .worker_path = setup.worker_path,
            .signals = setup.signals,
        };
        bool is_refused = false;
        if (!agent_run(&agent, &is_refused, &problem)) {
            status = fail_run(is_refused ? EXIT_REFUSED : EXIT_FAILED, &problem);
        }
    }
    setup_end(&setup);
    return status;
}

static int probe(const struct options *options)
{
    static struct setup setup;
    static struct offer offer;
    static const struct key32 nobody;
    struct problem problem = {""};
    if (!setup_begin(&options->setup, &setup, &problem)) {
        return fail(EXIT_FAILED, &problem);
    }
    const struct key32 *account = setup.identity == NULL ? &nobody : identity_key(setup.identity);
    bool offered = policy_offer(&setup.config, &setup.machine, &setup.profile, &setup.isolation,
                                account, &offer, &problem);
    int status = offered ? EXIT_OK : EXIT_REFUSED;
    if (!options->json) {
        report_text(stdout, &setup, offered ? &offer : NULL, problem.text);
    } else if (!report_json(stdout, &setup, offered ? &offer : NULL, problem.text)) {
        status = EXIT_FAILED;
    }
    setup_end(&setup);
    return status;
}

static int join(const struct options *options)
{
    struct problem problem = {""};
    char folder[PATH_MAX];
    char here[PATH_MAX];
    if (options->operand_count != 1) {
        return complain(
            "join needs exactly one invitation, the text that starts with bourse-invite-1.");
    }
    const char *wanted = options->setup.folder;
    if (wanted == NULL && !setup_default_folder(folder, sizeof folder)) {
        return complain("no home folder; say where with --dir");
    }
    if (wanted != NULL) {
        const char *prefix = wanted[0] == '/' ? "" : getcwd(here, sizeof here);
        (void)snprintf(folder, sizeof folder, "%s%s%s", prefix == NULL ? "" : prefix,
                       wanted[0] == '/' ? "" : "/", wanted); /* cut: no such folder */
    }
    switch (join_market(options->operand, folder, options->name, &problem)) {
    case JOIN_ALREADY:
        fprintf(stderr,
                "the key in %s is a provider of this market already: the invitation was not used\n",
                folder);
        return EXIT_OK;
    case JOIN_OK:
        fprintf(stderr, "joined; the key and the config are in %s\nnext: bourse-provider run%s%s\n",
                folder, wanted == NULL ? "" : " --dir ", wanted == NULL ? "" : folder);
        return EXIT_OK;
    case JOIN_BAD_INVITATION:
        return fail(EXIT_USAGE, &problem);
    case JOIN_FILES:
        return fail(EXIT_FAILED, &problem);
    case JOIN_UNREACHABLE:
        return fail(EXIT_UNREACHABLE, &problem);
    case JOIN_REFUSED:
        return fail(EXIT_REFUSED, &problem);
    }
    return EXIT_FAILED;
}

static int without_operand(const struct options *options, int (*act)(const struct options *))
{
    if (options->operand_count != 0) {
        return complain("one word too many; see --help");
    }
    return act(options);
}

int main(int argc, char **argv)
{
    struct problem problem = {""};
    struct options options;
    bool named = argc > 1 && argv[1][0] != '-';
    const char *command = named ? argv[1] : "run";
    int skip = named ? 1 : 0;
    if (!process_start(&problem)) {
        fprintf(stderr, "bourse-provider: %s\n", problem.text);
        return EXIT_FAILED;
    }
    if (!named && argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        return say(HELP);
    }
    argv[skip] = argv[0];
    if (!read_options(argc - skip, argv + skip, &options)) {
        return EXIT_USAGE;
    }
    log_setup(options.log_level, options.log_json);
    if (strcmp(command, "run") == 0) {
        return options.help ? say(HELP_RUN)
                            : without_operand(&options, options.check_config ? check_config : run);
    }
    if (strcmp(command, "probe") == 0) {
        return options.help ? say(HELP_PROBE) : without_operand(&options, probe);
    }
    if (strcmp(command, "join") == 0) {
        return options.help ? say(HELP_JOIN) : join(&options);
    }
    if (strcmp(command, "version") == 0) {
        return say("bourse-provider " BOURSE_VERSION "\n");
    }
    if (strcmp(command, "help") == 0) {
        return say(HELP);
    }
    fprintf(stderr,
            "bourse-provider: no command \"%.32s\"; there are run, probe, join and version\n",
            command);
    return EXIT_USAGE;
}
