#include "provider/command/market.h"

#include "consumer/client/bourse.h"
#include "formats/units.h"
#include "provider/command/command.h"
#include "provider/privilege.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOCAL_MS = 3000, MARKET_MS = 15000, VERSION = 1 };

int market_fail(const struct bourse_error *error)
{
    return command_fail(bourse_exit_status(error->status), error->text);
}

/* The key is for its owner alone, so root becomes the owner for good. */
static bool become_owner(const char *folder, struct problem *problem)
{
    struct stat facts;
    if (geteuid() != 0) {
        return true;
    }
    if (stat(folder, &facts) != 0) {
        problem_set(problem, "cannot look at %s: %s", folder, strerror(errno));
        return false;
    }
    return facts.st_uid == 0 || privilege_drop(facts.st_uid, facts.st_gid, problem);
}

static void say_silence(void *context, const char *endpoint, int left_ms)
{
    (void)context;
    command_say_silence(endpoint, left_ms);
}

/* Connects to the market. On failure returns NULL with *ret_status and the problem. */
static struct bourse *reach_market(const struct command *command, int timeout_ms, int *ret_status,
                                   struct problem *ret_problem)
{
    static struct config config; /* large */
    struct bourse_error error = {.status = BOURSE_OK};
    char key[CONFIG_PATH_SIZE + 32];
    *ret_status = EXIT_USAGE;
    if (!setup_config(&command->setup, &config, ret_problem) ||
        !become_owner(config.folder, ret_problem)) {
        return NULL;
    }
    (void)snprintf(key, sizeof key, "%s/%s", config.folder, MARKET_PROVIDER_KEY);
    if (access(key, F_OK) != 0 || access(config.market, F_OK) != 0) {
        problem_set(
            ret_problem,
            "%s is of no market yet: `bourse-provider join INVITATION` joins one; --dir names "
            "another folder",
            config.folder);
        return NULL;
    }
    struct bourse_options options = {.market = config.market,
                                     .key = key,
                                     .program = "bourse-provider " BOURSE_VERSION,
                                     .timeout_ms = timeout_ms,
                                     .on_silence = timeout_ms < MARKET_MS ? NULL : say_silence};
    struct bourse *bourse = NULL;
    if (!bourse_open(&options, &bourse, &error)) {
        *ret_status = bourse_exit_status(error.status);
        problem_set(ret_problem, "%s", error.text);
        return NULL;
    }
    return bourse;
}

struct bourse *market_open(const struct command *command, int *ret_status)
{
    struct problem problem = {""};
    struct bourse *bourse = reach_market(command, MARKET_MS, ret_status, &problem);
    if (bourse == NULL) {
        (void)command_fail(*ret_status, problem.text);
    }
    return bourse;
}

bool command_known(const struct command *command, struct command_known *ret_known)
{
    static struct bourse_why why; /* large */
    struct problem problem = {""};
    struct bourse_donated donated;
    struct bourse_error error;
    int status;
    struct bourse *bourse = reach_market(command, LOCAL_MS, &status, &problem);
    bool good = bourse != NULL && bourse_donated(bourse, &donated, &error) &&
                bourse_why(bourse, 0, &why, &error);
    bourse_close(&bourse);
    if (good) {
        *ret_known = (struct command_known){.given_ns = donated.given_ns,
                                            .refuted = why.standing.refuted,
                                            .withdrawn_ms = why.standing.withdrawn_ms,
                                            .is_frozen = why.frozen,
                                            .is_halted = why.halted,
                                            .has_device = why.devices > 0};
        (void)snprintf(ret_known->says, sizeof ret_known->says, "%s",
                       why.halted && !why.frozen ? why.text : "");
    }
    return good;
}

void market_print_json(json_t *value)
{
    (void)json_object_set_new(value, "version", json_integer(VERSION));
    (void)json_dumpf(value, stdout, JSON_COMPACT);
    (void)fputc('\n', stdout);
    json_decref(value);
}

const char *market_money(int64_t micro, char ret_text[UNITS_TEXT_SIZE])
{
    units_money_text(micro, ret_text);
    return ret_text;
}

const char *market_printable(const char *text)
{
    static char copy[BOURSE_TEXT_SIZE];
    bourse_printable(text, copy, sizeof copy);
    return copy;
}
