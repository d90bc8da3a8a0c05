/* This file runs a private market of real processes. When root runs it, agents become nobody. */
#include "bench/endtoend/parts.h"

#include "base/checked.h"
#include "base/text.h"
#include "consumer/client/bourse.h"
#include "protocol/genesis.h"
#include "provider/privilege.h"
#include "runtime/clock.h"
#include "runtime/files.h"
#include "runtime/invitation.h"
#include "runtime/keyfile.h"
#include "runtime/market.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AGENT_USER "nobody"
enum { AGENT_FOLDER_SIZE = 96 };
#define START_NS (30 * NS_PER_S)
#define STOP_NS (20 * NS_PER_S)

static void pause_shortly(void)
{
    const struct timespec pause = {.tv_nsec = 5 * NS_PER_MS};
    (void)nanosleep(&pause, NULL); /* between two looks at an event that has no descriptor */
}

static bool failed(struct problem *problem, const char *what)
{
    problem_set(problem, "%s: %s", what, strerror(errno));
    return false;
}

static void agent_folder(const struct private_market *market, uint32_t number,
                         char ret_path[AGENT_FOLDER_SIZE])
{
    (void)snprintf(ret_path, AGENT_FOLDER_SIZE, "%s/agent-%u", market->folder, number);
}

/* ---------------------------------------------------------------- files */

static bool make_key(const char *path, char ret_hex[65], struct problem *problem)
{
    struct identity *identity = NULL;
    if (!keyfile_create(path, &identity, problem)) {
        return false;
    }
    text_hex(identity_key(identity)->bytes, 32, ret_hex);
    identity_destroy(&identity);
    return true;
}

static bool write_agent(const struct private_market *market, const struct market_wishes *wishes,
                        uint32_t number, struct problem *problem)
{
    char folder[AGENT_FOLDER_SIZE];
    char path[ENDTOEND_PATH_SIZE + 32];
    char text[512];
    agent_folder(market, number, folder);
    if (mkdir(folder, 0700) != 0) {
        return failed(problem, folder);
    }
    /* Memory is a limit that nothing reserves: many agents together may name more than exists. */
    (void)snprintf(text, sizeof text,
                   "market: ../" MARKET_FILE
                   "\nname: agent-%u\nslots: %u\nprice: \"0.10\"\nmemory: 64MiB\ndisk: 16MiB\n"
                   "programs: [\"true\"]\n%s",
                   number, wishes->slots, geteuid() == 0 ? "user: " AGENT_USER "\n" : "");
    (void)snprintf(path, sizeof path, "%s/" MARKET_PROVIDER_CONFIG, folder);
    return file_write(path, text, strlen(text), 0600, problem);
}

static void key_path(const struct private_market *market, uint32_t number,
                     char ret_path[ENDTOEND_PATH_SIZE])
{
    char folder[AGENT_FOLDER_SIZE];
    agent_folder(market, number, folder);
    (void)snprintf(ret_path, ENDTOEND_PATH_SIZE, "%s/" MARKET_PROVIDER_KEY, folder);
}

/* The genesis has accounts for as many agents as fit; the others join. */
static uint32_t founders(const struct market_wishes *wishes)
{
    return wishes->agents < GENESIS_ACCOUNTS_MAX ? wishes->agents : GENESIS_ACCOUNTS_MAX - 1;
}

static bool write_files(struct private_market *market, const struct market_wishes *wishes,
                        struct problem *problem)
{
    enum { LINE_BYTES = 192 };
    char hex[65];
    char path[ENDTOEND_PATH_SIZE];
    char text[LINE_BYTES * (GENESIS_ACCOUNTS_MAX + 2)];
    if (!make_key(market->key, hex, problem)) {
        return false;
    }
    int length = snprintf(text, sizeof text,
                          "genesis:\n  accounts:\n    - {key: \"%s\", name: owner, roles: "
                          "[consumer, operator], credits: 1000000}\n",
                          hex);
    bool good = true;
    for (uint32_t i = 0; good && i < wishes->agents; i++) {
        good = write_agent(market, wishes, i, problem);
    }
    for (uint32_t i = 0; good && i < founders(wishes); i++) {
        key_path(market, i, path);
        good = make_key(path, hex, problem);
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "    - {key: \"%s\", name: agent-%u, roles: [provider], credits: 0}\n",
                           hex, i);
    }
    (void)snprintf(path, sizeof path, "%s/" MARKET_BROKER_CONFIG, market->folder);
    return good && file_write(path, text, (size_t)length, 0600, problem);
}

static bool join(const struct private_market *market, struct bourse *owner, uint32_t number,
                 struct bourse_error *error)
{
    enum { PROVIDER = 2, INVITATION_BYTES = 4096 };
    char folder[AGENT_FOLDER_SIZE];
    char key[ENDTOEND_PATH_SIZE];
    char file[ENDTOEND_PATH_SIZE];
    char name[32];
    char invitation[INVITATION_BYTES];
    struct bourse_account account;
    agent_folder(market, number, folder);
    key_path(market, number, key);
    (void)snprintf(file, sizeof file, "%s/" MARKET_FILE, folder);
    (void)snprintf(name, sizeof name, "agent-%u", number);
    return bourse_invite(owner, PROVIDER, 0, 3600 * 1000, name, invitation, sizeof invitation,
                         error) &&
           bourse_join(invitation, &(struct bourse_options){.market = file, .key = key}, name,
                       &account, error);
}

static bool join_others(const struct private_market *market, const struct market_wishes *wishes,
                        struct problem *problem)
{
    struct bourse *owner = NULL;
    struct bourse_error error = {.text = ""};
    struct bourse_options options = {.market = market->file, .key = market->key};
    uint32_t next = founders(wishes);
    bool good = next == wishes->agents || bourse_open(&options, &owner, &error);
    for (; good && next < wishes->agents; next++) {
        good = join(market, owner, next, &error);
    }
    bourse_close(&owner);
    if (!good) {
        problem_set(problem, "an agent cannot join: %s", error.text);
    }
    return good;
}

static bool make_folder(struct private_market *market, struct problem *problem)
{
    uid_t uid;
    gid_t gid;
    (void)snprintf(market->folder, sizeof market->folder, "/tmp/bourse-endtoend-XXXXXX");
    if (mkdtemp(market->folder) == NULL) {
        market->folder[0] = '\0';
        return failed(problem, "a folder below /tmp");
    }
    (void)snprintf(market->file, sizeof market->file, "%s/" MARKET_FILE, market->folder);
    (void)snprintf(market->key, sizeof market->key, "%s/" MARKET_OWNER_KEY, market->folder);
    if (geteuid() != 0) {
        return true;
    }
    /* `bourse up` does the same: the agents' group passes, and what is made inside belongs to the
     * group. */
    if (!privilege_user(AGENT_USER, &uid, &gid, problem)) {
        return false;
    }
    return (chown(market->folder, 0, gid) == 0 && chmod(market->folder, 02710) == 0) ||
           failed(problem, market->folder);
}

/* ---------------------------------------------------------------- processes */

static pid_t spawn(const struct market_wishes *wishes, const char *name, const char *const words[])
{
    char path[ENDTOEND_PATH_SIZE * 2];
    (void)snprintf(path, sizeof path, "%s/%s", wishes->programs, name);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        (void)dup2(null, STDOUT_FILENO);
        if (!wishes->keeps_logs) {
            (void)dup2(null, STDERR_FILENO);
        }
        execv(path, (char *const *)(uintptr_t)words);
        _exit(127);
    }
    return pid;
}

static bool ended(pid_t *pid, int *ret_status)
{
    if (*pid <= 0 || waitpid(*pid, ret_status, WNOHANG) != *pid) {
        return *pid <= 0;
    }
    *pid = 0;
    return true;
}

static bool start_broker(struct private_market *market, const struct market_wishes *wishes,
                         struct problem *problem)
{
    const char *words[] = {"bourse-broker", "run",     "--dir", market->folder,
                           "--log",         "warning", NULL};
    struct market seen;
    int64_t deadline_ns = clock_monotonic_ns() + START_NS;
    int status;
    market->broker = spawn(wishes, "bourse-broker", words);
    while (!market_read(market->file, &seen, problem) || seen.pid != market->broker) {
        if (ended(&market->broker, &status) || clock_monotonic_ns() > deadline_ns) {
            problem_set(problem, "the broker did not start");
            return false;
        }
        pause_shortly();
    }
    return true;
}

static bool start_agent(struct private_market *market, const struct market_wishes *wishes,
                        uint32_t number, struct problem *problem)
{
    char folder[AGENT_FOLDER_SIZE];
    agent_folder(market, number, folder);
    const char *words[] = {"bourse-provider", "run", "--dir", folder, "--log", "warning", NULL};
    market->agents[number] =
        spawn(wishes, wishes->signs_each ? "signs-each-provider" : "bourse-provider", words);
    market->agent_count = number + 1;
    return market->agents[number] > 0 || failed(problem, "an agent");
}

static void profile_path(const struct private_market *market, uint32_t number,
                         char ret_path[ENDTOEND_PATH_SIZE + 32])
{
    char folder[AGENT_FOLDER_SIZE];
    agent_folder(market, number, folder);
    (void)snprintf(ret_path, ENDTOEND_PATH_SIZE + 32, "%s/profile.json", folder);
}

/* The machine is measured once, by the first agent; the others are given its figures. */
static bool share_profile(struct private_market *market, const struct market_wishes *wishes,
                          struct problem *problem)
{
    char path[ENDTOEND_PATH_SIZE + 32];
    uint8_t *bytes = NULL;
    size_t length = 0;
    int status;
    int64_t deadline_ns = clock_monotonic_ns() + START_NS;
    profile_path(market, 0, path);
    while (!file_read(path, 1 << 20, &bytes, &length, problem)) {
        if (ended(&market->agents[0], &status) || clock_monotonic_ns() > deadline_ns) {
            problem_set(problem, "the first agent did not start");
            return false;
        }
        pause_shortly();
    }
    bool good = true;
    uid_t uid = (uid_t)-1;
    gid_t gid = (gid_t)-1;
    if (geteuid() == 0) {
        good = privilege_user(AGENT_USER, &uid, &gid, problem);
    }
    for (uint32_t i = 1; good && i < wishes->agents; i++) {
        profile_path(market, i, path);
        good = file_write(path, bytes, length, 0600, problem) &&
               (chown(path, uid, gid) == 0 || failed(problem, path));
    }
    free(bytes);
    return good;
}

bool market_open(const struct market_wishes *wishes, struct private_market *market,
                 struct problem *ret_problem)
{
    *market = (struct private_market){.folder = ""};
    if (!make_folder(market, ret_problem) || !write_files(market, wishes, ret_problem) ||
        !start_broker(market, wishes, ret_problem) || !join_others(market, wishes, ret_problem) ||
        !start_agent(market, wishes, 0, ret_problem) ||
        !share_profile(market, wishes, ret_problem)) {
        return false;
    }
    for (uint32_t i = 1; i < wishes->agents; i++) {
        if (!start_agent(market, wishes, i, ret_problem)) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- the end */

/* Sends SIGTERM to all, and SIGKILL to whoever has not ended in time. */
static bool stop(pid_t *pids, uint32_t count)
{
    bool good = true;
    uint32_t left = 0;
    int64_t deadline_ns = clock_monotonic_ns() + STOP_NS;
    for (uint32_t i = 0; i < count; i++) {
        if (pids[i] > 0) {
            (void)kill(pids[i], SIGTERM);
            left++;
        }
    }
    while (left > 0) {
        left = 0;
        for (uint32_t i = 0; i < count; i++) {
            int status = 0;
            bool was_there = pids[i] > 0;
            if (was_there && !ended(&pids[i], &status)) {
                left++;
            }
            good = good && (!was_there || status == 0);
            if (pids[i] > 0 && clock_monotonic_ns() > deadline_ns) {
                (void)kill(pids[i], SIGKILL);
                good = false;
            }
        }
        pause_shortly();
    }
    return good;
}

bool market_stop(struct private_market *market)
{
    bool agents = stop(market->agents, market->agent_count);
    return stop(&market->broker, 1) && agents;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    (void)remove(path); /* a file that stays shows at its folder, which is not empty then */
    return 0;
}

void market_close(struct private_market *market)
{
    (void)market_stop(market);
    if (market->folder[0] != '\0') {
        (void)nftw(market->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        market->folder[0] = '\0';
    }
}
