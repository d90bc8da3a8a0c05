/* The program bourse-broker runs an exchange over one folder. It also checks its config, audits and
 * replays its journal, and makes and restores backups. */
#include "base/text.h"
#include "broker/arguments.h"
#include "broker/backup_text.h"
#include "broker/broker.h"
#include "broker/cluster.h"
#include "broker/gateway/accept_guard.h"
#include "broker/storage/backup.h"
#include "broker/storage/remains.h"
#include "broker/storage/replay.h"
#include "broker/usage.h"
#include "ledger/store/sqlite_code.h"
#include "runtime/completion.h"
#include "runtime/log.h"
#include "runtime/market.h"
#include "runtime/process.h"
#include "runtime/terminal.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The least number of open files suffices for the broker's own files, a few sessions, and some
 * connections that are refused. The systemd unit has the same number. The most is two connections
 * for each of SESSIONS_MAX clients, doubled. */
enum { OPEN_FILES_LEAST = 128, OPEN_FILES_MOST = 16384 };
enum exit_status { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_WRONG = 7 };

#define BIT(name) (UINT32_C(1) << OPTION_##name)
#define EVERYWHERE (BIT(HELP) | BIT(LOG) | BIT(LOG_JSON))

static int run(const struct arguments *arguments);
static int audit(const struct arguments *arguments);
static int acts(const struct arguments *arguments);
static int replay(const struct arguments *arguments);
static int backup(const struct arguments *arguments);
static int restore(const struct arguments *arguments);
static int cluster(const struct arguments *arguments);
static int end_log(const struct arguments *arguments);
static int completion(const struct arguments *arguments);
static int version(const struct arguments *arguments);
static int help(const struct arguments *arguments);

static const struct action {
    const char *name;
    int (*act)(const struct arguments *);
    uint32_t options;  /* options of the command, beside EVERYWHERE */
    int words;         /* words after its name; the folder of `run` is an option */
    const char *offer; /* completions of these words for a shell */
    const char *help;
} actions[] = {
    {"run", run, BIT(DIR) | BIT(CHECK) | BIT(ADOPT), 0, NULL, usage_run},
    {"audit", audit, BIT(JSON), 1, COMPLETION_FOLDERS, usage_audit},
    {"acts", acts, BIT(SINCE) | BIT(JSON), 1, COMPLETION_FOLDERS, usage_acts},
    {"replay", replay, BIT(VERIFY) | BIT(JSON), 1, COMPLETION_FOLDERS, usage_replay},
    {"backup", backup, BIT(WITHOUT_BLOBS) | BIT(WITH_KEYS) | BIT(UNCHECKED) | BIT(JSON), 2,
     COMPLETION_FOLDERS, usage_backup},
    {"restore", restore,
     BIT(HEAD) | BIT(CHECKPOINT) | BIT(WITHOUT_BLOBS) | BIT(SKIP_DAMAGED) | BIT(JSON), 2,
     COMPLETION_FOLDERS, usage_restore},
    {"cluster", cluster,
     BIT(JSON) | BIT(TO) | BIT(NODES) | BIT(OPERATOR) | BIT(ORIGIN) | BIT(DAYS) | BIT(NAME) |
         BIT(METRICS) | BIT(HEAD) | BIT(CHECKPOINT) | BIT(GIVE_UP),
     3, "status init join transfer leave recover", usage_cluster},
    {"new", end_log, BIT(DIR) | BIT(LOG_ENDS) | BIT(END_MARKET), 0, NULL, usage_new},
    {"completion", completion, 0, 1, "bash zsh fish", usage_completion},
    {"version", version, 0, 0, NULL, usage_version},
    {"help", help, 0, 0, NULL, usage_text},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

__attribute__((format(printf, 1, 2))) static int fail_usage(const char *format, ...)
{
    va_list arguments;
    (void)fputs("bourse-broker: ", stderr);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputs("; `bourse-broker --help` says more\n", stderr);
    return EXIT_USAGE;
}

static bool is_logging; /* the program serves a market, or --log-json asks for log lines */
static bool is_json;    /* the command prints one JSON value, a failure, too */

static const char *name_of(int status)
{
    return status == EXIT_USAGE ? "USAGE" : status == EXIT_WRONG ? "UNVERIFIED" : "LOCAL";
}

/* Prints a failure in the form of the other programs' failures. */
static void print_failure(const char *text, int status)
{
    char shown[sizeof(struct problem)];
    text_printable(text, strlen(text), shown, sizeof shown);
    (void)printf("{\"error\":{\"name\":\"%s\",\"text\":\"", name_of(status));
    for (const char *at = shown; *at != '\0'; at++) {
        (void)printf(*at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
    }
    (void)printf("\",\"exit\":%d},\"version\":1}\n", status);
}

/* Tells the problem and returns the status. When a read of a database failed, the problem may come
 * from unread bytes; then the failed read is told instead. A failed read is no wrong use. */
static int fail(const struct problem *problem, int status)
{
    struct problem unread;
    if (sqlite_reads_failed()) {
        sqlite_explain_unread(&unread);
        problem = &unread;
    }
    status = problem_is_unread(problem) ? EXIT_FAILED : status;
    if (is_json) {
        print_failure(problem->text, status);
    } else if (is_logging) {
        log_error("%s", problem->text);
    } else {
        (void)fprintf(stderr, "bourse-broker: %s\n", problem->text);
    }
    return status;
}

static const struct action *find_action(const char *word)
{
    const char *names[ACTIONS];
    for (size_t i = 0; i < ACTIONS; i++) {
        if (strcmp(word, actions[i].name) == 0) {
            return &actions[i];
        }
        names[i] = actions[i].name;
    }
    const char *near = text_nearest(word, names, ACTIONS);
    if (near != NULL) {
        (void)fprintf(stderr, "bourse-broker: no command '%s'; did you mean `bourse-broker %s`?\n",
                      word, near);
    } else {
        (void)fail_usage("no command '%s'; to serve a folder, write --dir DIR", word);
    }
    return NULL;
}

/* Refuses an option that the command would ignore. */
static bool fits(const struct action *action, const struct arguments *arguments)
{
    for (const struct option *option = arguments_options; option->name != NULL; option++) {
        uint32_t bit = UINT32_C(1) << option->val;
        if ((arguments->given & bit) != 0 && ((action->options | EVERYWHERE) & bit) == 0) {
            (void)fail_usage("%s has no --%s", action->name, option->name);
            return false;
        }
    }
    return true;
}

/* Parses the command line. Options may stand anywhere. The words are the command, then one folder
 * or two. Returns NULL after a message. */
static const struct action *parse(int argc, char **argv, struct arguments *ret)
{
    *ret = (struct arguments){.level = LOG_LEVEL_INFO};
    opterr = 0; /* the errors are told in our own form */
    for (int found; (found = getopt_long(argc, argv, ":h", arguments_options, NULL)) != -1;) {
        int number = found == 'h'                ? OPTION_HELP
                     : found == OPTION_JSON_LOGS ? OPTION_LOG_JSON
                                                 : found;
        if (found == '?' || found == ':') {
            process_say_wrong_option("bourse-broker", found, argv[optind - 1], arguments_options);
            return NULL;
        }
        if (!arguments_take(number, ret)) {
            return NULL;
        }
        ret->given |= UINT32_C(1) << number;
    }
    const bool is_named = optind < argc;
    const struct action *action = find_action(is_named ? argv[optind++] : "run");
    if (action == NULL) {
        return NULL;
    }
    if ((ret->given & BIT(HELP)) != 0) {
        ret->page = is_named ? action->help : usage_text;
        return find_action("help");
    }
    if ((ret->given & BIT(VERSION)) != 0) {
        return find_action("version");
    }
    if (!fits(action, ret)) {
        return NULL;
    }
    if (argc - optind > action->words) {
        (void)fail_usage("'%s' is one word too many for %s", argv[optind + action->words],
                         action->name);
        return NULL;
    }
    ret->command = action->name;
    if (optind < argc) {
        ret->folder = argv[optind];
        ret->second = argv[optind + 1]; /* NULL after the last */
        ret->third = ret->second != NULL ? argv[optind + 2] : NULL;
    }
    return action;
}

/* A misspelt folder must not become a market. A folder without a config runs on the defaults, but
 * there is no config to check. */
static bool check_folder(const struct arguments *arguments, struct problem *ret_problem)
{
    char path[PATH_MAX];
    int written = snprintf(path, sizeof path, "%s/%s", arguments->folder,
                           arguments->check_config ? MARKET_BROKER_CONFIG : "");
    if (written < 0 || (size_t)written >= sizeof path) {
        errno = ENAMETOOLONG;
    } else if (access(path, F_OK) == 0) {
        return true;
    }
    if (problem_is_of_disk(errno)) {
        problem_set_unseen(ret_problem, path, " cannot be looked at", errno);
        return false;
    }
    problem_set(ret_problem, "%s: %s; make the folder with %s in it, docs/operator.md shows how",
                path, strerror(errno), MARKET_BROKER_CONFIG);
    return false;
}

static int run(const struct arguments *arguments)
{
    struct problem problem = {.text = ""};
    struct broker_config config;
    if (!check_folder(arguments, &problem) ||
        !config_load(arguments->folder, !arguments->adopt, &config, &problem)) {
        return fail(&problem, EXIT_USAGE);
    }
    if (arguments->check_config) {
        (void)printf("%s/%s is fine\n", arguments->folder, MARKET_BROKER_CONFIG);
        return EXIT_OK;
    }
    if (!process_open_files(OPEN_FILES_LEAST, OPEN_FILES_MOST, &problem)) {
        return fail(&problem, EXIT_FAILED);
    }
    if (!accept_guard_prepare()) {
        problem_set(&problem, "/dev/null cannot be opened: %s", strerror(errno));
        return fail(&problem, EXIT_FAILED);
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

/* Returns the market's folder. `path` names the folder, or the file ledger.db in the folder. */
static const char *market_of(const char *path, char ret_folder[PATH_MAX])
{
    struct stat status;
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const size_t length = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
    if (strcmp(name, MARKET_DATABASE) != 0 || stat(path, &status) != 0 ||
        !S_ISREG(status.st_mode) || length >= PATH_MAX) {
        return path;
    }
    (void)snprintf(ret_folder, PATH_MAX, "%.*s", (int)length, slash == NULL ? "." : path);
    return ret_folder;
}

/* The auditor is a program of its own, so that it shares no code with the exchange. */
static bool find_audit(char ret_path[PATH_MAX])
{
    if (!process_folder(ret_path, PATH_MAX - sizeof "/bourse-audit")) {
        return false;
    }
    (void)strcat(ret_path, "/bourse-audit");
    return true;
}

static int run_audit(const struct arguments *arguments, bool is_acts)
{
    char path[PATH_MAX];
    if (!find_audit(path)) {
        return fail_usage("bourse-audit cannot be found: the folder of this program is unknown");
    }
    char folder[PATH_MAX];
    const char *words[8] = {"bourse-audit", market_of(arguments->folder, folder)};
    size_t count = 2;
    if (is_acts) {
        words[count++] = "--acts";
    }
    if (arguments->since != NULL) {
        words[count++] = "--since";
        words[count++] = arguments->since;
    }
    if (arguments->json) {
        words[count++] = "--json";
    }
    (void)execv(path, (char *const *)(uintptr_t)words);
    (void)fprintf(stderr, "bourse-broker: %s: %s\n", path, strerror(errno));
    return EXIT_FAILED;
}

static int audit(const struct arguments *arguments)
{
    return run_audit(arguments, false);
}

static int acts(const struct arguments *arguments)
{
    return run_audit(arguments, true);
}

static int replay(const struct arguments *arguments)
{
    struct problem problem = {.text = ""};
    if (!arguments->verify) {
        return fail_usage("replay needs --verify, which names the only kind of replay");
    }
    char folder[PATH_MAX];
    switch (replay_verify(market_of(arguments->folder, folder), arguments->json, &problem)) {
    case REPLAY_OK:
        return EXIT_OK;
    case REPLAY_WRONG:
        return fail(&problem, EXIT_WRONG);
    case REPLAY_OTHER_RULES:
    case REPLAY_FAILED:
        break;
    }
    return fail(&problem, EXIT_FAILED);
}

/* ---------------------------------------------------------------- backups */

static struct backup_told told_of(const struct arguments *arguments)
{
    return (struct backup_told){.command = arguments->command,
                                .folder = arguments->second,
                                .is_json = arguments->json,
                                .has_head = arguments->head != NULL};
}

static int backup(const struct arguments *arguments)
{
    struct problem problem = {.text = ""};
    struct backup_report report;
    char path[PATH_MAX];
    if (!find_audit(path)) {
        return fail_usage("bourse-audit cannot be found: the folder of this program is unknown");
    }
    const struct backup_options options = {.folder = arguments->folder,
                                           .target = arguments->second,
                                           .audit = path,
                                           .unchecked = arguments->unchecked,
                                           .without_blobs = arguments->without_blobs,
                                           .with_keys = arguments->with_keys};
    if (!backup_make(&options, &report, &problem)) {
        return fail(&problem, EXIT_FAILED);
    }
    const struct backup_told told = told_of(arguments);
    backup_text_print(&told, "backed up to", &report);
    if (report.blobs_damaged > 0) {
        log_error("%" PRIu64 " of %" PRIu64
                  " blobs, named above, are missing or damaged in %s, and so "
                  "in the backup. Put them back from an older backup, or restore with "
                  "--skip-damaged-blobs. Everything else was checked and is whole",
                  report.blobs_damaged, report.blobs, arguments->folder);
        return EXIT_WRONG;
    }
    return EXIT_OK;
}

static int restore(const struct arguments *arguments)
{
    struct problem problem = {.text = ""};
    struct backup_report report;
    char path[PATH_MAX];
    bool is_wrong = false;
    if (!find_audit(path)) {
        return fail_usage("bourse-audit cannot be found: the folder of this program is unknown");
    }
    const struct restore_options options = {.backup = arguments->folder,
                                            .folder = arguments->second,
                                            .head = arguments->head,
                                            .checkpoint = arguments->checkpoint,
                                            .without_blobs = arguments->without_blobs,
                                            .skip_damaged_blobs = arguments->skip_damaged,
                                            .audit = path};
    if (!backup_restore(&options, &report, &is_wrong, &problem)) {
        return fail(&problem, is_wrong ? EXIT_WRONG : EXIT_FAILED);
    }
    const struct backup_told told = told_of(arguments);
    backup_text_print(&told, "restored to", &report);
    backup_text_next(&told, &report);
    return EXIT_OK;
}

static int cluster(const struct arguments *arguments)
{
    struct problem problem = {.text = ""};
    char path[PATH_MAX];
    if (!find_audit(path)) {
        return fail_usage("bourse-audit cannot be found: the folder of this program is unknown");
    }
    const struct cluster_command command = {.verb = arguments->folder,
                                            .words = {arguments->second, arguments->third},
                                            .audit = path,
                                            .to = arguments->to,
                                            .nodes = arguments->nodes,
                                            .operator= arguments->operator,
                                            .origin = arguments->origin,
                                            .days = arguments->days,
                                            .name = arguments->name,
                                            .head = arguments->head,
                                            .checkpoint = arguments->checkpoint,
                                            .is_json = arguments->json,
                                            .is_metrics = arguments->metrics,
                                            .gives_up = arguments->gives_up};
    static const int statuses[] = {EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_WRONG};
    const int status = statuses[cluster_run(&command, &problem)];
    return status == EXIT_OK ? EXIT_OK : fail(&problem, status);
}

static int end_log(const struct arguments *arguments)
{
    struct problem problem = {.text = ""};
    char aside[PATH_MAX];
    if (!arguments->log_ends) {
        return fail_usage("new ends the log of a market for good: its accounts, balances and "
                          "receipts have no successor. Where a backup is left, restore it. Where "
                          "none is: bourse-broker new --i-know-the-log-ends --dir DIR");
    }
    if (!remains_set_aside(arguments->folder, arguments->end_market, aside, &problem)) {
        return fail(&problem, EXIT_FAILED);
    }
    (void)printf("the log in %s has ended: what is left of its market is in %s\n"
                 "bourse-broker run --dir %s begins another market, with a new log key and a new "
                 "origin; every member has to be invited anew\n",
                 arguments->folder, aside, arguments->folder);
    return EXIT_OK;
}

static int completion(const struct arguments *arguments)
{
    struct completion_command commands[ACTIONS];
    for (size_t i = 0; i < ACTIONS; i++) {
        commands[i] = (struct completion_command){actions[i].name, actions[i].options | EVERYWHERE,
                                                  actions[i].offer};
    }
    const struct completion_program program = {"bourse-broker", arguments_options, commands,
                                               ACTIONS, "run"};
    if (completion_for(stdout, arguments->folder, &program)) {
        return EXIT_OK;
    }
    (void)fprintf(stderr,
                  "bourse-broker: no completion for '%s'; there is one for bash, zsh and fish\n",
                  arguments->folder);
    return EXIT_USAGE;
}

static int version(const struct arguments *arguments)
{
    (void)arguments;
    (void)puts("bourse-broker " BOURSE_VERSION);
    return EXIT_OK;
}

static int help(const struct arguments *arguments)
{
    (void)fputs(arguments->page != NULL ? arguments->page : usage_text, stdout);
    return EXIT_OK;
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    struct problem problem;
    terminal_guard();
    const struct action *action = parse(argc, argv, &arguments);
    if (action == NULL) {
        return EXIT_USAGE;
    }
    if ((action->act == run || action->act == end_log) && arguments.folder == NULL) {
        return fail_usage("%s needs the market's folder: --dir DIR", action->name);
    }
    if (action->words == 2 && arguments.second == NULL) {
        return fail_usage("%s needs two folders: %s", action->name,
                          action->act == backup ? "DIR and TARGET" : "BACKUP and DIR");
    }
    if (action->words == 1 && arguments.folder == NULL) {
        return fail_usage("%s needs %s", action->name,
                          action->act == completion ? "the name of a shell: bash, zsh or fish"
                                                    : "the market's folder: DIR");
    }
    log_setup(arguments.level, arguments.log_json);
    is_logging = action->act == run || arguments.log_json;
    is_json = arguments.json;
    if (!process_start(&problem)) {
        return fail(&problem, EXIT_FAILED);
    }
    /* Counting SQLite's memory would lock at every allocation, and nothing reads the count. */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite_know_errors();
    return action->act(&arguments);
}
