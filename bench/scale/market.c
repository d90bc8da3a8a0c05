/* This file founds the market of bench/scale.c, and lets agents join it. */
#include "bench/scale/parts.h"

#include "base/checked.h"
#include "base/text.h"
#include "protocol/identity.h"
#include "runtime/files.h"
#include "runtime/keyfile.h"
#include "runtime/market.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_NS (60 * NS_PER_S)
enum { JOINERS = 8 };

static bool make_folder(const char *path, struct problem *problem)
{
    if (mkdir(path, 0700) != 0) {
        problem_set(problem, "%s: %s", path, strerror(errno));
        return false;
    }
    return true;
}

void market_agent_key(const char *folder, uint32_t number, char ret_path[SCALE_PATH_SIZE * 2])
{
    (void)snprintf(ret_path, (size_t)SCALE_PATH_SIZE * 2, "%s/agents/%u/" MARKET_PROVIDER_KEY,
                   folder, number);
}

bool market_write_config(const struct scale_market *market, const char *folder, const char *lines,
                         struct problem *ret_problem)
{
    enum { CONFIG_BYTES = 8192 };
    char path[SCALE_PATH_SIZE * 2];
    char text[CONFIG_BYTES];
    (void)snprintf(path, sizeof path, "%s/" MARKET_BROKER_CONFIG, folder);
    const int length =
        snprintf(text, sizeof text,
                 "heartbeat: %s\n%s"
                 "genesis: {accounts: [{key: \"%s\", name: owner, roles: [consumer, operator], "
                 "credits: 1000000}]}\n",
                 market->heartbeat, lines == NULL ? "" : lines, market->owner);
    if (length < 0 || (size_t)length >= sizeof text) {
        problem_set(ret_problem, "the lines of %s are too many", path);
        return false;
    }
    return file_write(path, text, (size_t)length, 0600, ret_problem);
}

bool market_prepare(struct scale_market *market, struct problem *ret_problem)
{
    char agents[SCALE_PATH_SIZE * 2];
    char owner[SCALE_PATH_SIZE * 2];
    struct identity *identity = NULL;
    if (!program_folder("scale", market->folder, sizeof market->folder - 16, ret_problem)) {
        return false;
    }
    (void)snprintf(market->broker_folder, sizeof market->broker_folder, "%.100s/broker",
                   market->folder);
    (void)snprintf(agents, sizeof agents, "%s/agents", market->folder);
    (void)snprintf(owner, sizeof owner, "%s/owner", market->folder);
    (void)snprintf(market->file, sizeof market->file, "%s/" MARKET_FILE, market->broker_folder);
    (void)snprintf(market->key, sizeof market->key, "%s/owner/key", market->folder);
    if (!make_folder(market->broker_folder, ret_problem) || !make_folder(agents, ret_problem) ||
        !make_folder(owner, ret_problem) || !keyfile_create(market->key, &identity, ret_problem)) {
        return false;
    }
    text_hex(identity_key(identity)->bytes, 32, market->owner);
    identity_destroy(&identity);
    return market_write_config(market, market->broker_folder, market->lines, ret_problem);
}

bool market_start(struct scale_market *market, struct problem *ret_problem)
{
    return program_start_broker(market->programs, market->broker_folder, START_NS, &market->broker,
                                ret_problem);
}

static bool join(const struct scale_market *market, struct bourse *owner, uint32_t number,
                 struct bourse_error *error)
{
    enum { PROVIDER = 2, INVITATION_BYTES = 4096, VALID_MS = 3600 * 1000 };
    char folder[SCALE_PATH_SIZE * 2];
    char file[SCALE_PATH_SIZE * 3];
    char key[SCALE_PATH_SIZE * 2];
    char name[32];
    char invitation[INVITATION_BYTES];
    struct bourse_account account;
    (void)snprintf(folder, sizeof folder, "%s/agents/%u", market->folder, number);
    (void)snprintf(file, sizeof file, "%s/" MARKET_FILE, folder);
    market_agent_key(market->folder, number, key);
    (void)snprintf(name, sizeof name, "agent-%u", number);
    if (mkdir(folder, 0700) != 0) {
        (void)snprintf(error->text, sizeof error->text, "%s", strerror(errno));
        return false;
    }
    return bourse_invite(owner, PROVIDER, 0, VALID_MS, name, invitation, sizeof invitation,
                         error) &&
           bourse_join(invitation, &(struct bourse_options){.market = file, .key = key}, name,
                       &account, error);
}

/* Lets every JOINERS-th agent join. */
static bool join_share(const struct scale_market *market, uint32_t first, uint32_t end,
                       struct problem *problem)
{
    struct bourse *owner = NULL;
    struct bourse_error error = {.text = ""};
    const struct bourse_options options = {.market = market->file, .key = market->key};
    bool good = bourse_open(&options, &owner, &error);
    uint32_t number = first;
    for (; good && number < end; number += JOINERS) {
        good = join(market, owner, number, &error);
    }
    bourse_close(&owner);
    if (!good) {
        problem_set(problem, "agent %u cannot join: %.400s", number, error.text);
    }
    return good;
}

/* Several processes join agents at a time, because each waits for commits most of the time. */
bool market_join(struct scale_market *market, uint32_t agents, struct problem *ret_problem)
{
    pid_t pids[JOINERS] = {0};
    bool good = true;
    for (uint32_t i = 0; i < JOINERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct problem problem = {""};
            const bool joined = join_share(market, market->joined + i, agents, &problem);
            (void)fprintf(stderr, "%s%s", problem.text, joined ? "" : "\n");
            _exit(joined ? 0 : 1);
        }
    }
    for (uint32_t i = 0; i < JOINERS; i++) {
        int status = 1;
        good = pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] && status == 0 && good;
    }
    if (!good) {
        problem_set(ret_problem, "agents cannot join");
    }
    market->joined = agents;
    return good;
}
