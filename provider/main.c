/* The program bourse-provider is the agent of an owner who offers a machine. */
#include "base/checked.h"
#include "base/text.h"
#include "formats/units.h"
#include "provider/agent.h"
#include "provider/command/command.h"
#include "provider/command/help.h"
#include "provider/control_request.h"
#include "provider/executors/kernels.h"
#include "provider/executors/model_devices.h"
#include "provider/executors/onnx.h"
#include "provider/executors/plugins.h"
#include "provider/executors/wasm.h"
#include "provider/join.h"
#include "provider/report.h"
#include "provider/setup.h"
#include "runtime/completion.h"
#include "runtime/link.h"
#include "runtime/log.h"
#include "runtime/process.h"
#include "runtime/terminal.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    struct command command;
    const char *name;
    bool check_config, help;
    enum log_level log_level;
    bool log_json;
    const char *operand;
    char *const *operands;
    int operand_count;
    uint32_t given; /* bits of enum option_number */
};

enum option_number {
    OPTION_CONFIG = 1,
    OPTION_MARKET,
    OPTION_DIR,
    OPTION_NAME,
    OPTION_JSON,
    OPTION_CHECK,
    OPTION_LOG,
    OPTION_LOG_JSON,
    OPTION_HELP,
    OPTION_WATCH,
    OPTION_NOW,
    OPTION_AFTER_RUNNING,
    OPTION_AFTER_CHECKPOINT,
    OPTION_FOR,
    OPTION_DEVICE,
    OPTION_SINCE,
    OPTION_JSON_LOGS, /* another name of --log-json, which no help shows */
};

static int complain(const char *what)
{
    return command_fail(EXIT_USAGE, what);
}

static bool read_term(const char *option, const char *text, int64_t *ret_ms)
{
    int64_t ns;
    enum units_status status = units_duration(text, &ns);
    if (status != UNITS_OK) {
        char why[256];
        units_explain(UNITS_DURATION, status, text, why, sizeof why);
        fprintf(stderr, "bourse-provider: --%s: %s\n", option, why);
        return false;
    }
    *ret_ms = ns / NS_PER_MS;
    if (*ret_ms < 1 || *ret_ms > CONTROL_PAUSE_LONGEST_MS) {
        fprintf(stderr, "bourse-provider: --%s takes from 1ms to 366d\n", option);
        return false;
    }
    return true;
}

static bool take_option(int number, struct options *options)
{
    switch ((enum option_number)number) {
    case OPTION_CONFIG:
        options->command.setup.config_file = optarg;
        return true;
    case OPTION_MARKET:
        options->command.setup.market = optarg;
        return true;
    case OPTION_DIR:
        options->command.setup.folder = optarg;
        return true;
    case OPTION_NAME:
        options->name = optarg;
        return true;
    case OPTION_JSON:
        options->command.json = true;
        return true;
    case OPTION_CHECK:
        options->check_config = true;
        return true;
    case OPTION_LOG:
        if (!log_level_from(optarg, &options->log_level)) {
            (void)complain("--log: the levels are error, warning, info and debug");
            return false;
        }
        return true;
    case OPTION_LOG_JSON:
    case OPTION_JSON_LOGS:
        options->log_json = true;
        return true;
    case OPTION_HELP:
        options->help = true;
        return true;
    case OPTION_WATCH:
        options->command.watch = true;
        return true;
    case OPTION_NOW:
        options->command.now = true;
        return true;
    case OPTION_AFTER_RUNNING: /* the default, which must not contradict --now */
        return true;
    case OPTION_AFTER_CHECKPOINT:
        options->command.save = true;
        return true;
    case OPTION_DEVICE:
        if (options->command.device != NULL) {
            (void)complain("--device names one device; call the command once for each");
            return false;
        }
        options->command.device = optarg;
        return true;
    case OPTION_FOR:
        return read_term("for", optarg, &options->command.for_ms);
    case OPTION_SINCE:
        return read_term("since", optarg, &options->command.since_ms);
    }
    return false;
}

static const struct option option_table[] = {
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"market", required_argument, NULL, OPTION_MARKET},
    {"dir", required_argument, NULL, OPTION_DIR},
    {"name", required_argument, NULL, OPTION_NAME},
    {"json", no_argument, NULL, OPTION_JSON},
    {"check-config", no_argument, NULL, OPTION_CHECK},
    {"log", required_argument, NULL, OPTION_LOG},
    {"log-json", no_argument, NULL, OPTION_LOG_JSON},
    {"json-logs", no_argument, NULL, OPTION_JSON_LOGS},
    {"watch", no_argument, NULL, OPTION_WATCH},
    {"now", no_argument, NULL, OPTION_NOW},
    {"after-running", no_argument, NULL, OPTION_AFTER_RUNNING},
    {"after-checkpoint", no_argument, NULL, OPTION_AFTER_CHECKPOINT},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"for", required_argument, NULL, OPTION_FOR},
    {"since", required_argument, NULL, OPTION_SINCE},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

/* Returns true when the command line is understood. */
static bool read_options(int argc, char **argv, struct options *options)
{
    *options = (struct options){.log_level = LOG_LEVEL_INFO};
    optind = 1;
    opterr = 0; /* the errors are told in our own form */
    for (int found; (found = getopt_long(argc, argv, ":h", option_table, NULL)) != -1;) {
        if (found == '?' || found == ':') {
            process_say_wrong_option("bourse-provider", found, argv[optind - 1], option_table);
            return false;
        }
        int number = found == 'h'                ? OPTION_HELP
                     : found == OPTION_JSON_LOGS ? OPTION_LOG_JSON
                                                 : found;
        if (!take_option(number, options)) {
            return false;
        }
        options->given |= UINT32_C(1) << number;
    }
    command_fail_in_json(options->command.json);
    options->operand = optind < argc ? argv[optind] : NULL;
    options->operands = argv + optind;
    options->operand_count = argc - optind;
    return true;
}

static int say(const char *text)
{
    char *copy = strdup(text);
    if (copy != NULL) {
        text_wrap(copy);
    }
    fputs(copy != NULL ? copy : text, stdout);
    free(copy);
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
    return command_fail(status, problem->text);
}

static int check_config(const struct options *options)
{
    struct problem problem = {""};
    if (!setup_check(&options->command.setup, stderr, &problem) ||
        !setup_check_trials(&options->command.setup, stderr, &problem)) {
        fprintf(stderr, "bourse-provider: %s\n", problem.text);
        return EXIT_USAGE;
    }
    fprintf(stderr, "the config is fine%s%s\n", problem.text[0] != '\0' ? "; " : "", problem.text);
    return EXIT_OK;
}

static void warn_of_figure(const char *name, const struct probe_figure *figure)
{
    char day[PROBE_DAY_SIZE];
    if (probe_doubtful(figure)) {
        probe_day(figure->at_s, day);
        log_warning(
            "%s is offered as measured on %s, %lld; now %lld was measured. If the machine is not "
            "busy, delete profile.json in the agent's folder and start again",
            name, day, (long long)figure->value, (long long)figure->latest);
    }
}

static int run(const struct options *options)
{
    if (options->check_config) {
        return check_config(options);
    }
    static struct setup setup;
    static struct offers offers;
    struct problem problem = {""};
    if (!setup_fits(&options->command.setup, &problem)) {
        return fail_run(EXIT_USAGE, &problem);
    }
    if (!setup_begin(&options->command.setup, &setup, &problem)) {
        return fail_run(EXIT_FAILED, &problem);
    }
    for (size_t i = 0; i < setup.isolation.warning_count; i++) {
        log_warning("%s", setup.isolation.warnings[i]);
    }
    if (setup.no_tensor[0] != '\0') {
        log_warning("no matrices are computed here: %s", setup.no_tensor);
    }
    kernels_warn(&setup.config, &setup.machine);
    plugins_warn(&setup.machine);
    wasm_say(&setup.machine.wasm, setup.config.names_wasm);
    onnx_say(&setup.machine.models, setup.config.names_onnx);
    model_devices_say(&setup.machine);
    warn_of_figure("gflops (in millions)", &setup.profile.mflops);
    warn_of_figure("bandwidth", &setup.profile.bandwidth_bytes);
    warn_of_figure("gemm_fp32", &setup.profile.gemm_mflops);
    int status = EXIT_OK;
    if (!policy_offers(&setup.config, &setup.machine, &setup.profile, &setup.isolation,
                       identity_key(setup.identity), &offers, &problem)) {
        status = fail_run(EXIT_REFUSED, &problem);
    } else {
        struct agent_setup agent = {
            .config = &setup.config,
            .market = &setup.market,
            .identity = setup.identity,
            .machine = &setup.machine,
            .isolation = &setup.isolation,
            .profile = &setup.profile,
            .offers = &offers,
            .options = &options->command.setup,
            .launcher = setup.launcher,
            .cgroups = setup.cgroups,
            .meter = setup.meter,
            .worker_path = setup.worker_path,
            .tensor_path = setup.tensor_path[0] != '\0' ? setup.tensor_path : NULL,
            .kernel_path = setup.kernel_path[0] != '\0' ? setup.kernel_path : NULL,
            .plugin_path = setup.plugin_path[0] != '\0' ? setup.plugin_path : NULL,
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
    static struct offers offers;
    static const struct key32 nobody;
    struct problem problem = {""};
    struct setup_options look = options->command.setup;
    look.is_look = true;
    if (!setup_config(&look, &setup.config, &problem)) {
        return fail(EXIT_USAGE, &problem);
    }
    if (!setup_begin(&look, &setup, &problem)) {
        return fail(EXIT_FAILED, &problem);
    }
    const struct key32 *account = setup.identity == NULL ? &nobody : identity_key(setup.identity);
    bool offered = policy_offers(&setup.config, &setup.machine, &setup.profile, &setup.isolation,
                                 account, &offers, &problem);
    int status = offered ? EXIT_OK : EXIT_REFUSED;
    if (!options->command.json) {
        report_text(stdout, &setup, offered ? &offers : NULL, problem.text);
    } else if (!report_json(stdout, &setup, offered ? &offers : NULL, problem.text)) {
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
    if (options->name != NULL && !config_name_fits(options->name, &problem)) {
        fprintf(stderr, "bourse-provider: --name: %s; nothing was redeemed\n", problem.text);
        return EXIT_USAGE;
    }
    const char *wanted = options->command.setup.folder;
    if (wanted == NULL && !setup_default_folder(folder, sizeof folder)) {
        return complain(
            "the path of the usual agent's folder is too long: name a shorter one with --dir");
    }
    if (wanted != NULL) {
        const char *prefix = wanted[0] == '/' ? "" : getcwd(here, sizeof here);
        (void)snprintf(folder, sizeof folder, "%s%s%s", prefix == NULL ? "" : prefix,
                       wanted[0] == '/' ? "" : "/", wanted); /* a cut path does not exist */
    }
    switch (join_market(options->operand, folder, options->name, command_say_silence, &problem)) {
    case JOIN_ALREADY:
        fprintf(stderr, "the key in %s is a provider of this market already; %s\n", folder,
                problem.text);
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

static int status(const struct options *options)
{
    return command_status(&options->command);
}

static int pause_agent(const struct options *options)
{
    const uint32_t ways =
        options->given & (UINT32_C(1) << OPTION_NOW | UINT32_C(1) << OPTION_AFTER_RUNNING |
                          UINT32_C(1) << OPTION_AFTER_CHECKPOINT);
    if ((ways & (ways - 1)) != 0) {
        return complain("--now cancels what runs, --after-checkpoint lets it save its state first, "
                        "--after-running lets it end: choose one");
    }
    return command_pause(&options->command);
}

static int resume(const struct options *options)
{
    return command_resume(&options->command);
}

static int drain(const struct options *options)
{
    return command_drain(&options->command);
}

static int why(const struct options *options)
{
    return command_why(&options->command);
}

static int earnings(const struct options *options)
{
    return command_earnings(&options->command);
}

static int version(const struct options *options)
{
    (void)options;
    return say("bourse-provider " BOURSE_VERSION "\n");
}

static int help(const struct options *options)
{
    (void)options;
    return say(help_all);
}

/* ---------------------------------------------------------------- the command line */

#define BIT(name) (UINT32_C(1) << OPTION_##name)
#define EVERYWHERE (BIT(HELP) | BIT(LOG) | BIT(LOG_JSON))
#define ASKING (BIT(MARKET) | BIT(DIR) | BIT(JSON))

static int completion(const struct options *options);

static const struct action {
    const char *name;
    int (*act)(const struct options *);
    const char *help;
    uint32_t options;  /* options of its own, beside EVERYWHERE */
    int operands;      /* largest count; join counts its own */
    const char *words; /* operands to offer to a shell */
} actions[] = {
    {"run", run, help_run, BIT(CONFIG) | BIT(MARKET) | BIT(DIR) | BIT(CHECK), 0, NULL},
    {"probe", probe, help_probe, BIT(CONFIG) | ASKING, 0, NULL},
    {"join", join, help_join, BIT(NAME) | BIT(DIR), INT_MAX, NULL},
    {"status", status, help_status, ASKING | BIT(WATCH), 0, NULL},
    {"pause", pause_agent, help_pause,
     ASKING | BIT(NOW) | BIT(AFTER_RUNNING) | BIT(AFTER_CHECKPOINT) | BIT(FOR) | BIT(DEVICE), 0,
     NULL},
    {"resume", resume, help_resume, ASKING | BIT(DEVICE), 0, NULL},
    {"drain", drain, help_drain, ASKING, 0, NULL},
    {"why", why, help_why, ASKING | BIT(CONFIG), 0, NULL},
    {"earnings", earnings, help_earnings, ASKING | BIT(CONFIG) | BIT(SINCE), 0, NULL},
    {"completion", completion, help_completion, 0, 1, "bash zsh fish"},
    {"version", version, help_version, 0, 0, NULL},
    {"help", help, help_all, 0, 0, NULL},
};
enum { ACTIONS = sizeof actions / sizeof actions[0] };

static const struct action *find_action(const char *name)
{
    for (size_t i = 0; i < ACTIONS; i++) {
        if (strcmp(actions[i].name, name) == 0) {
            return &actions[i];
        }
    }
    const char *names[ACTIONS];
    for (size_t i = 0; i < ACTIONS; i++) {
        names[i] = actions[i].name;
    }
    const char *nearest = text_nearest(name, names, ACTIONS);
    fprintf(stderr, "bourse-provider: no command '%.32s'; %s%s%s\n", name,
            nearest == NULL ? "" : "did you mean `bourse-provider ",
            nearest == NULL ? "`bourse-provider help` lists them" : nearest,
            nearest == NULL ? "" : "`?");
    return NULL;
}

static int completion(const struct options *options)
{
    struct completion_command commands[ACTIONS];
    for (size_t i = 0; i < ACTIONS; i++) {
        commands[i] = (struct completion_command){actions[i].name, actions[i].options | EVERYWHERE,
                                                  actions[i].words};
    }
    const struct completion_program program = {"bourse-provider", option_table, commands, ACTIONS,
                                               "run"};
    if (options->operand == NULL) {
        return complain("completion takes the name of a shell: bash, zsh or fish");
    }
    if (completion_for(stdout, options->operand, &program)) {
        return EXIT_OK;
    }
    (void)fprintf(stderr,
                  "bourse-provider: no completion for '%.32s'; there is one for bash, zsh and "
                  "fish\n",
                  options->operand);
    return EXIT_USAGE;
}

/* An option that a command does not use is refused, never ignored. */
static bool fits(const struct action *action, const struct options *options)
{
    for (const struct option *option = option_table; option->name != NULL; option++) {
        uint32_t bit = UINT32_C(1) << option->val;
        if ((options->given & bit) != 0 && ((action->options | EVERYWHERE) & bit) == 0) {
            fprintf(
                stderr,
                "bourse-provider: %s has no --%s; `bourse-provider %s --help` shows its options\n",
                action->name, option->name, action->name);
            return false;
        }
    }
    if (options->operand_count > action->operands) {
        fprintf(stderr,
                "bourse-provider: '%.64s' is one word too many for %s; `bourse-provider %s --help` "
                "shows what the command takes\n",
                options->operands[action->operands], action->name, action->name);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct problem problem = {""};
    struct options options;
    bool named = argc > 1 && argv[1][0] != '-';
    int skip = named ? 1 : 0;
    terminal_guard();
    if (!process_start(&problem)) {
        fprintf(stderr, "bourse-provider: %s\n", problem.text);
        return EXIT_FAILED;
    }
    if (!named && argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        return say(help_all);
    }
    if (!named && argc > 1 && strcmp(argv[1], "--version") == 0) {
        return version(NULL);
    }
    const struct action *action = find_action(named ? argv[1] : "run");
    if (action == NULL) {
        return EXIT_USAGE;
    }
    argv[skip] = argv[0];
    if (!read_options(argc - skip, argv + skip, &options)) {
        return EXIT_USAGE;
    }
    if (options.help) {
        return say(action->help);
    }
    log_setup(options.log_level, options.log_json);
    return fits(action, &options) ? action->act(&options) : EXIT_USAGE;
}
