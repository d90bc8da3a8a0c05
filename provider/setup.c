#include "provider/setup.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "base/text.h"
#include "provider/device/energy_meter.h"
#include "provider/idle/idle_watch.h"
#include "provider/jail/jail.h"
#include "provider/privilege.h"
#include "provider/session/agent_session.h"
#include "provider/setup_internal.h"
#include "runtime/capability.h"
#include "runtime/clock.h"
#include "runtime/keyfile.h"
#include "runtime/log.h"
#include "runtime/private_folder.h"
#include "runtime/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_FOLDER "/var/lib/bourse-provider"
#define WORKER_PROGRAM "bourse-worker"
#define TENSOR_PROGRAM_NAME "bourse-tensor"
#define WASM_HOST_FILE "bourse-wasm.cjs"
#define WASM_RUNNER_FILE "bourse-wasm"

/* ---------------------------------------------------------------- folders */

bool setup_default_folder(char *ret_path, size_t capacity)
{
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    int written;
    if (geteuid() == 0) {
        written = snprintf(ret_path, capacity, "%s", SYSTEM_FOLDER);
    } else if (data != NULL && data[0] == '/') {
        written = snprintf(ret_path, capacity, "%s/bourse-provider", data);
    } else if (home != NULL && home[0] == '/') {
        written = snprintf(ret_path, capacity, "%s/.local/share/bourse-provider", home);
    } else {
        written = snprintf(ret_path, capacity, "%s", SYSTEM_FOLDER); /* a service user */
    }
    return written > 0 && (size_t)written < capacity;
}

static bool absolute(const char *path, char *ret_path, size_t capacity, struct problem *problem)
{
    char here[PATH_MAX] = "";
    if (path[0] == '\0') { /* else root would give the current folder to the agent's user */
        problem_set(problem, "a name given for a file or folder is empty: look at --dir, --config "
                             "and --market");
        return false;
    }
    if (path[0] != '/' && getcwd(here, sizeof here) == NULL) {
        problem_set(problem, "the current folder has no name: %s", strerror(errno));
        return false;
    }
    int written = path[0] == '/' ? snprintf(ret_path, capacity, "%s", path)
                                 : snprintf(ret_path, capacity, "%s/%s", here, path);
    if (written < 0 || (size_t)written >= capacity) {
        problem_set(problem, "the path %.64s... is too long", path);
        return false;
    }
    return true;
}

bool setup_folder(const struct setup_options *options, char *ret_path, size_t capacity,
                  struct problem *problem)
{
    char path[CONFIG_PATH_SIZE];
    int written = 0;
    if (options->folder != NULL) {
        written = snprintf(path, sizeof path, "%s", options->folder);
    } else if (options->market != NULL) {
        written = snprintf(path, sizeof path, "%s/%s", options->market, MARKET_PROVIDER);
    } else if (options->config_file != NULL) {
        const char *slash = strrchr(options->config_file, '/');
        int length = slash == NULL ? 1 : (int)(slash - options->config_file);
        written =
            snprintf(path, sizeof path, "%.*s", length, slash == NULL ? "." : options->config_file);
    } else if (!setup_default_folder(path, sizeof path)) {
        written = -1;
    }
    if (written < 0 || (size_t)written >= sizeof path) {
        problem_set(problem, "the name of the agent's folder is too long");
        return false;
    }
    return absolute(path, ret_path, capacity, problem);
}

bool setup_config(const struct setup_options *options, struct config *ret_config,
                  struct problem *ret_problem)
{
    char folder[CONFIG_PATH_SIZE];
    char file[CONFIG_PATH_SIZE];
    char market[CONFIG_PATH_SIZE];
    if (!setup_folder(options, folder, sizeof folder, ret_problem) ||
        (options->config_file != NULL &&
         !absolute(options->config_file, file, sizeof file, ret_problem)) ||
        (options->market != NULL &&
         !absolute(options->market, market, sizeof market, ret_problem))) {
        return false;
    }
    if (!config_read(folder, options->config_file == NULL ? NULL : file, ret_config, ret_problem)) {
        return false;
    }
    if (options->market != NULL) { /* the command line overrides the file */
        int written =
            snprintf(ret_config->market, sizeof ret_config->market, "%s/%s", market, MARKET_FILE);
        if (written < 0 || (size_t)written >= sizeof ret_config->market) {
            problem_set(ret_problem, "the name of the market's folder is too long");
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- root's part */

static bool give(const char *path, uid_t uid, gid_t gid, bool must, struct problem *problem)
{
    if (lchown(path, uid, gid) != 0 && (must || errno != ENOENT)) {
        problem_set(problem, "cannot give %s to the service user: %s", path, strerror(errno));
        return false;
    }
    return true;
}

/* Gives the agent's folder, and files that root may have put there, to the service user. */
static bool give_folder(const char *folder, uid_t uid, gid_t gid, struct problem *problem)
{
    static const char *const files[] = {MARKET_PROVIDER_CONFIG, MARKET_PROVIDER_KEY, MARKET_FILE};
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
        problem_set(problem, "cannot make %s: %s", folder, strerror(errno));
        return false;
    }
    if (!give(folder, uid, gid, true, problem)) {
        return false;
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[CONFIG_PATH_SIZE + 32];
        (void)snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        if (!give(path, uid, gid, false, problem)) {
            return false;
        }
    }
    return true;
}

/* A user who may write the config must not become another user through it. A config of another user
 * than root may name only its owner. A config that others may write may name nobody. */
static bool may_name(const struct config *config, uid_t uid, struct problem *problem)
{
    if (!config->names_user) {
        return true;
    }
    if (config->hands.is_open) {
        problem_set(problem,
                    "%s names the user \"%s\", and others may write the file: have root look at "
                    "it, then chmod go-w %s/%s",
                    MARKET_PROVIDER_CONFIG, config->user, config->folder, MARKET_PROVIDER_CONFIG);
        return false;
    }
    if (config->hands.owner == 0 || config->hands.owner == uid) {
        return true;
    }
    problem_set(problem,
                "%s names the user \"%s\", but belongs to another than that user or root: have "
                "root look at it, "
                "then chown root %s/%s",
                MARKET_PROVIDER_CONFIG, config->user, config->folder, MARKET_PROVIDER_CONFIG);
    return false;
}

static bool service_user(const struct config *config, uid_t *ret_uid, gid_t *ret_gid,
                         struct problem *problem)
{
    struct problem why = {""};
    if (privilege_user(config->user, ret_uid, ret_gid, &why)) {
        return may_name(config, *ret_uid, problem);
    }
    if (getpwnam(config->user) != NULL) { /* root */
        problem_set(problem, "user: %.400s", why.text);
        config_place(config, config->lines.user, problem);
        return false;
    }
    problem_set(
        problem,
        "started as root, the agent becomes the user \"%s\", who does not exist: %.200s. Make it: "
        "useradd --system --home-dir %s --shell /usr/sbin/nologin %s; or name another user "
        "under `user:` in %s",
        config->user, why.text, SYSTEM_FOLDER, config->user, MARKET_PROVIDER_CONFIG);
    config_place(config, config->lines.user, problem);
    return false;
}

/* Each agent folder has one name: a second start finds and reuses the first one's subtree. */
static void cgroup_name(const struct setup *setup, char ret_name[32])
{
    const char *folder = setup->config.folder;
    struct hash32 hash = sha256_of(folder, strlen(folder));
    char hex[9];
    text_hex(hash.bytes, 4, hex);
    (void)snprintf(ret_name, 32, "%s-%s", setup->is_look ? "probe" : "agent", hex);
}

/* Returns the path of a file of this process in the agent's folder. A look has files of its own. */
static void own_file(const struct setup *setup, const char *name, char *ret_path, size_t capacity)
{
    (void)snprintf(ret_path, capacity, "%s/%s%s", setup->config.folder,
                   setup->is_look ? "probe-" : "", name);
}

static void open_cgroups(struct setup *setup, uid_t uid, gid_t gid)
{
    char name[32];
    struct problem problem = {""};
    cgroup_name(setup, name);
    if (!cgroups_open(NULL, name, uid, gid, &setup->cgroups, &problem)) {
        (void)snprintf(setup->no_cgroups, sizeof setup->no_cgroups, "%s", problem.text);
    } else if (setup->config.idle.is_set && !setup->is_look) {
        (void)cgroups_give_way(setup->cgroups); /* the low priority of the jails stays */
    }
}

static bool find_helper(const char *program, char *ret_path, size_t capacity,
                        struct problem *problem)
{
    if (!process_helper(program, ret_path, capacity)) {
        problem_set(problem,
                    "%s is neither beside this program nor in ../libexec/bourse from there; "
                    "install %s in one of them",
                    program, program);
        return false;
    }
    return true;
}

static bool install_worker(struct setup *setup, uid_t owner, struct problem *problem)
{
    char source[PATH_MAX + 32];
    own_file(setup, "worker", setup->worker_path, sizeof setup->worker_path);
    return find_helper(WORKER_PROGRAM, source, sizeof source, problem) &&
           jail_install_worker(source, setup->worker_path, owner, problem);
}

/* Installs a program that computes in jails. Without the program its path is empty, and `why` has
 * the reason. */
static void install_resident(const struct setup *setup, uid_t owner, const char *program,
                             const char *name, char path[CONFIG_PATH_SIZE + 16], char why[512])
{
    char source[PATH_MAX + 32];
    struct problem problem = {""};
    own_file(setup, name, path, CONFIG_PATH_SIZE + 16);
    if (!find_helper(program, source, sizeof source, &problem) ||
        !jail_install_worker(source, path, owner, &problem)) {
        path[0] = '\0';
        (void)snprintf(why, 512, "%s", problem.text);
    }
}

/* An agent without one of these programs runs all other jobs. */
static void install_residents(struct setup *setup, uid_t owner)
{
    install_resident(setup, owner, TENSOR_PROGRAM_NAME, "tensor", setup->tensor_path,
                     setup->no_tensor);
    install_resident(setup, owner, "bourse-kernel", "kernel", setup->kernel_path, setup->no_kernel);
    install_resident(setup, owner, "bourse-plugin", "plugin", setup->plugin_path, setup->no_plugin);
    install_resident(setup, owner, WASM_HOST_FILE, "wasm", setup->wasm_path, setup->no_wasm);
    install_resident(setup, owner, WASM_RUNNER_FILE, "wasm-runner", setup->wasm_runner_path,
                     setup->no_wasm_runner);
    install_resident(setup, owner, "bourse-onnx", "onnx", setup->onnx_path, setup->no_onnx);
}

static bool prepare_as_root(struct setup *setup, struct problem *problem)
{
    uid_t uid;
    gid_t gid;
    if (!service_user(&setup->config, &uid, &gid, problem) ||
        !give_folder(setup->config.folder, uid, gid, problem)) {
        return false;
    }
    open_cgroups(setup, uid, gid);
    install_residents(setup, uid);
    return install_worker(setup, uid, problem) && privilege_drop(uid, gid, problem);
}

static bool prepare_as_user(struct setup *setup, struct problem *problem)
{
    if (!private_folder(setup->config.folder, true, problem)) {
        return false;
    }
    open_cgroups(setup, (uid_t)-1, (gid_t)-1);
    install_residents(setup, (uid_t)-1);
    return install_worker(setup, (uid_t)-1, problem) && capability_renounce(0, problem);
}

/* ---------------------------------------------------------------- the service user's part */

static bool reach_folder(const struct setup *setup, struct problem *problem)
{
    if (access(setup->config.folder, R_OK | W_OK | X_OK) != 0) {
        problem_set(problem,
                    "the user \"%s\" cannot reach %s: %s; every folder above it must be open "
                    "to him (chmod o+x), or choose a folder below /var/lib",
                    setup->config.user, setup->config.folder, strerror(errno));
        return false;
    }
    return private_folder(setup->config.folder, false, problem);
}

/* Returns true while `lock` is still the file of that name. A look removes its own lock file when
 * it ends. */
static bool is_named(int lock, const char *path)
{
    struct stat held;
    struct stat named;
    return fstat(lock, &held) == 0 && lstat(path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

static void tell_used(const struct setup *setup, struct problem *problem)
{
    problem_set(problem, "another agent runs in %s; `bourse-provider status` shows what it offers",
                setup->config.folder);
}

/* Checks the lock before waiting for the control groups, which a running agent holds as long as it
 * runs. */
static bool has_other_agent(const struct setup *setup, struct problem *problem)
{
    char path[CONFIG_PATH_SIZE + 16];
    own_file(setup, "LOCK", path, sizeof path);
    int lock = setup->is_look ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (lock < 0) {
        return false; /* lock_folder reports the reason */
    }
    bool is_locked = flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(lock);
    if (is_locked) {
        tell_used(setup, problem);
    }
    return is_locked;
}

static bool lock_folder(struct setup *setup, struct problem *problem)
{
    char path[CONFIG_PATH_SIZE + 16];
    own_file(setup, "LOCK", path, sizeof path);
    int lock;
    while ((lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) >= 0 &&
           flock(lock, LOCK_EX | LOCK_NB) == 0) {
        if (is_named(lock, path)) {
            setup->lock = lock;
            return true;
        }
        close(lock);
    }
    if (errno != EWOULDBLOCK) {
        problem_set(problem, "cannot lock %s: %s", path, strerror(errno));
    } else if (setup->is_look) {
        problem_set(problem, "another probe looks at %s; try again when it has ended",
                    setup->config.folder);
    } else {
        tell_used(setup, problem);
    }
    if (lock >= 0) {
        close(lock);
    }
    return false;
}

/* Returns true when the key's file exists, even if it cannot be read. Returns false with a problem
 * otherwise. */
static bool has_key(const struct config *config, struct problem *problem)
{
    char path[CONFIG_PATH_SIZE + 32];
    if (keyfile_has_credential(MARKET_PROVIDER_KEY)) {
        return true;
    }
    (void)snprintf(path, sizeof path, "%s/%s", config->folder, MARKET_PROVIDER_KEY);
    if (access(path, F_OK) == 0 || errno != ENOENT) {
        return true;
    }
    const bool has_folder = access(config->folder, F_OK) == 0;
    problem_set(problem, "%s%s%s; `bourse-provider join INVITATION --dir %s` makes %s",
                has_folder ? "no key in " : "", config->folder,
                has_folder ? "" : ": no such folder", config->folder, has_folder ? "one" : "it");
    return false;
}

static bool load_key(struct setup *setup, struct problem *problem)
{
    char path[CONFIG_PATH_SIZE + 32];
    struct problem missing;
    (void)snprintf(path, sizeof path, "%s/%s", setup->config.folder, MARKET_PROVIDER_KEY);
    if (setup->is_look && !has_key(&setup->config, &missing)) {
        return true;
    }
    if (keyfile_has_credential(MARKET_PROVIDER_KEY)) {
        if (access(path, F_OK) == 0) {
            problem_set(problem,
                        "%s is there, and the service has a credential of that name, too: remove "
                        "the one that is not this agent's",
                        path);
            return false;
        }
        return keyfile_load_credential(MARKET_PROVIDER_KEY, &setup->identity, problem);
    }
    return keyfile_load(path, &setup->identity, problem);
}

static bool load_market(struct setup *setup, struct problem *problem)
{
    if (access(setup->config.market, F_OK) != 0) {
        problem_set(
            problem,
            "no market in %s: %s; `bourse-provider join INVITATION` joins one, and `bourse up` "
            "starts one here",
            setup->config.market, strerror(errno));
        return false;
    }
    return market_read(setup->config.market, &setup->market, problem);
}

/* Joining puts the market's file into the agent's folder. The broker of a market on this machine
 * puts it into the market's folder, perhaps later than the config. Both are the agent's own
 * market. */
static bool is_own_market(const struct config *config)
{
    size_t length = strlen(config->folder);
    const char *rest = config->market + length;
    return strncmp(config->market, config->folder, length) == 0 &&
           (strcmp(rest, "/" MARKET_FILE) == 0 || strcmp(rest, "/../" MARKET_FILE) == 0);
}

/* Returns true when user `uid` may make folders in `folder`; groups are ignored. */
static bool may_make(const char *folder, const struct stat *status, uid_t uid)
{
    return uid == geteuid() ? access(folder, W_OK | X_OK) == 0
                            : status->st_uid == uid || (status->st_mode & 0022) != 0;
}

/* Returns true when the start can make the missing `path`. The start makes the agent's own folder
 * before. */
static bool can_be_made(const struct config *config, uid_t uid, const char *path,
                        struct problem *problem)
{
    char above[CONFIG_PATH_SIZE];
    struct stat status;
    (void)snprintf(above, sizeof above, "%s", path);
    assert(above[0] == '/'); /* setup_config makes it absolute */
    do {
        char *slash = strrchr(above, '/');
        slash[slash == above ? 1 : 0] = '\0';
    } while (strcmp(above, config->folder) != 0 && lstat(above, &status) != 0);
    if (strcmp(above, config->folder) == 0 || may_make(above, &status, uid)) {
        return true;
    }
    problem_set(problem, "%s is not there, and the agent's user makes no folder in %s", path,
                above);
    return false;
}

/* Returns true when the agent, as user `uid`, can keep outputs there. */
static bool spool_fits(const struct config *config, uid_t uid, struct problem *ret_problem)
{
    struct problem why = {""};
    struct stat status;
    bool is_missing = lstat(config->spool, &status) != 0 && errno == ENOENT;
    if (is_missing ? can_be_made(config, uid, config->spool, &why)
                   : private_folder_fits(config->spool, uid, &why)) {
        return true;
    }
    problem_set(
        ret_problem,
        "spool: %.400s; the spool is a folder of the agent's own: name one that is not there "
        "yet, where the agent may make it",
        why.text);
    return false;
}

bool setup_fits(const struct setup_options *options, struct problem *ret_problem)
{
    static struct setup setup; /* large */
    uid_t uid = geteuid();
    gid_t gid;
    return setup_config(options, &setup.config, ret_problem) &&
           (uid != 0 || service_user(&setup.config, &uid, &gid, ret_problem)) &&
           spool_fits(&setup.config, uid, ret_problem) &&
           discover_machine(NULL, &setup.machine, ret_problem) &&
           policy_check(&setup.config, &setup.machine, ret_problem);
}

bool setup_check(const struct setup_options *options, FILE *out, struct problem *ret_problem)
{
    static struct setup setup;
    struct problem warning;
    ret_problem->text[0] = '\0';
    if (options->folder != NULL && access(options->folder, F_OK) != 0) {
        problem_set(ret_problem, "--dir %s: %s; `bourse-provider join INVITATION --dir` makes it",
                    options->folder, strerror(errno));
        return false;
    }
    if (!setup_fits(options, ret_problem) || !setup_config(options, &setup.config, ret_problem) ||
        (setup.config.idle.is_set &&
         !idle_watch_check(&setup.config.idle, setup.config.idle_root, ret_problem))) {
        return false;
    }
    if (config_gpu_warning(&setup.config, &warning)) {
        (void)fprintf(out, "%s\n", warning.text);
    }
    return load_market(&setup, ret_problem) ||
           (is_own_market(&setup.config) && access(setup.config.market, F_OK) != 0);
}

static bool make_spool(const struct setup *setup, struct problem *problem)
{
    return private_folder(setup->config.spool, true, problem);
}

static bool start_as_user(struct setup *setup, struct problem *problem)
{
    if (!reach_folder(setup, problem) || !lock_folder(setup, problem) ||
        !load_key(setup, problem) ||
        (!setup->is_look && (!load_market(setup, problem) || !make_spool(setup, problem))) ||
        !launcher_start(&setup->launcher, problem)) {
        return false;
    }
    setup->signals = process_signals();
    if (setup->signals < 0) {
        problem_set(problem, "signals cannot be received: %s", strerror(errno));
        return false;
    }
    if (!setup_learn(setup, problem)) {
        return false;
    }
    if (setup->config.idle.is_set && !launcher_give_way(setup->launcher)) {
        log_warning("jails cannot have the lowest priority: %s", strerror(errno));
    }
    return true;
}

bool setup_begin(const struct setup_options *options, struct setup *ret_setup,
                 struct problem *ret_problem)
{
    memset(ret_setup, 0, sizeof *ret_setup);
    ret_setup->lock = -1;
    ret_setup->signals = -1;
    ret_setup->is_look = options->is_look;
    if (!setup_config(options, &ret_setup->config, ret_problem) ||
        (!options->is_look && !has_key(&ret_setup->config, ret_problem)) ||
        has_other_agent(ret_setup, ret_problem)) {
        return false; /* nothing is made in a folder that is no agent's */
    }
    ret_setup->meter = energy_meter_open(""); /* root may read what others may not */
    bool prepared = geteuid() == 0 ? prepare_as_root(ret_setup, ret_problem)
                                   : prepare_as_user(ret_setup, ret_problem);
    if (!prepared || !start_as_user(ret_setup, ret_problem)) {
        setup_end(ret_setup);
        return false;
    }
    return true;
}

void setup_end(struct setup *setup)
{
    launcher_stop(&setup->launcher);
    cgroups_close(&setup->cgroups);
    energy_meter_close(&setup->meter);
    identity_destroy(&setup->identity);
    if (setup->signals >= 0) {
        close(setup->signals);
        setup->signals = -1;
    }
    if (setup->lock >= 0) {
        if (setup->is_look) {
            char path[CONFIG_PATH_SIZE + 16];
            own_file(setup, "LOCK", path, sizeof path);
            const char *const files[] = {
                setup->worker_path, setup->tensor_path, setup->kernel_path,      setup->plugin_path,
                setup->wasm_path,   setup->onnx_path,   setup->wasm_runner_path, path};
            for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
                (void)unlink(files[i]); /* the lock is last: a new one begins a new look */
            }
        }
        close(setup->lock);
        setup->lock = -1;
    }
}
