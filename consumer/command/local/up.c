/* This file runs up and down, which start an embedded market with a device on offer and stop it
 * again. */
#include "consumer/client/client.h"
#include "consumer/command/local/child.h"
#include "consumer/command/local/household.h"
#include "consumer/command/show.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "formats/units.h"
#include "protocol/reject.h"
#include "runtime/clock.h"
#include "runtime/files.h"
#include "runtime/market.h"
#include "runtime/process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POLL_MS = 50, STOP_MS = 20000, PATH_SIZE = PATH_MAX, CALL_MS = 2000, STANDING_SIZE = 160 };

struct embedded {
    struct invocation *invocation;
    struct household household;
    struct household_made made;
    struct child broker, provider;
    int signals;
    bool detach;
    int64_t deadline_ns;
    off_t log_size;       /* size of the agent's log at the last look */
    bool is_refusal_told; /* the market's last refusal was shown */
    uint32_t slots;       /* slots that its agent offers */
    int64_t price_micro;  /* lowest price of its asks */
};

static void path_in(const struct embedded *embedded, const char *name, char ret_path[PATH_SIZE])
{
    /* household_open bounds the length. */
    (void)snprintf(ret_path, PATH_SIZE, "%s/%s", embedded->household.folder, name);
}

/* ---------------------------------------------------------------- waiting */

static bool asked_to_end(const struct embedded *embedded)
{
    struct signalfd_siginfo info;
    return read(embedded->signals, &info, sizeof info) == (ssize_t)sizeof info;
}

/* Waits a little for a signal or for the end of a process. Returns true when none came. */
static bool pause_ok(struct embedded *embedded, const char *what, int *ret_status)
{
    struct pollfd waits[] = {{.fd = embedded->signals, .events = POLLIN},
                             {.fd = embedded->broker.fd, .events = POLLIN},
                             {.fd = embedded->provider.fd, .events = POLLIN}};
    (void)poll(waits, 3, POLL_MS);
    for (int i = 1; i < 3; i++) {
        if (waits[i].fd >= 0 && waits[i].revents != 0) {
            char log[PATH_SIZE];
            char tail[CHILD_LOG_TAIL];
            path_in(embedded, i == 1 ? "broker.log" : "provider.log", log);
            child_log_tail(log, tail);
            *ret_status = complain(embedded->invocation, BOURSE_LOCAL,
                                   "the %s ended while starting: %s (the whole log: %s)",
                                   i == 1 ? "broker" : "provider agent", tail, log);
            return false;
        }
    }
    if (asked_to_end(embedded)) {
        *ret_status = complain(embedded->invocation, BOURSE_INTERRUPTED, "interrupted");
        return false;
    }
    if (clock_monotonic_ns() > embedded->deadline_ns) {
        char log[PATH_SIZE];
        char tail[CHILD_LOG_TAIL];
        path_in(embedded, embedded->provider.fd >= 0 ? "provider.log" : "broker.log", log);
        child_log_tail(log, tail);
        *ret_status = complain(embedded->invocation, BOURSE_TIMED_OUT,
                               "%s; %s ends with: %s; give --wait more time if that is well", what,
                               log, tail);
        return false;
    }
    return true;
}

static bool wait_market(struct embedded *embedded, int *ret_status)
{
    char path[PATH_SIZE];
    struct market market;
    struct problem problem;
    path_in(embedded, MARKET_FILE, path);
    /* The file may belong to a broker that is gone, or to a running one that keeps this broker out.
     * Only the process number tells. */
    while (access(path, F_OK) != 0 || !market_read(path, &market, &problem) ||
           market.pid != embedded->broker.pid) {
        if (!pause_ok(embedded, "the broker is not ready yet", ret_status)) {
            return false;
        }
    }
    return true;
}

/* The sum covers the standing asks, leased slots included. */
static bool add_offer(void *context, const struct bourse_device *device)
{
    struct embedded *embedded = context;
    if (strcmp(device->account, embedded->made.agent) == 0 &&
        strcmp(device->state, "present") == 0 && device->price_micro >= 0) {
        const bool is_first = embedded->slots == 0;
        embedded->slots += device->free + device->leased;
        if (is_first || device->price_micro < embedded->price_micro) {
            embedded->price_micro = device->price_micro;
        }
    }
    return true;
}

/* A killed agent's offer stands until that agent is missed, so the new one must listen, too. It
 * listens once it has given up the rights of root. */
static bool look_at_offer(struct embedded *embedded, struct bourse_error *error)
{
    embedded->slots = 0;
    return bourse_devices(embedded->invocation->bourse, add_offer, embedded, error) &&
           embedded->slots > 0 &&
           child_listens(&embedded->provider, embedded->household.folder,
                         MARKET_PROVIDER "/" MARKET_CONTROL_SOCKET);
}

static off_t agent_log_size(const struct embedded *embedded)
{
    char path[PATH_SIZE];
    struct stat log;
    path_in(embedded, "provider.log", path);
    return stat(path, &log) == 0 ? log.st_size : 0;
}

/* The market may be the reason that the agent offers nothing, most of all by its price band. Only
 * the market's owner can change this, so the user is told while both processes run and --wait
 * lasts. The agent tries again, and its log ends with the last refusal. Returns true when the owner
 * paused the agent before, or each of its devices: then nobody waits. */
static bool tell_why_not(struct embedded *embedded)
{
    char path[PATH_SIZE];
    char tail[CHILD_LOG_TAIL];
    const off_t size = agent_log_size(embedded);
    if (embedded->is_refusal_told || size == embedded->log_size) {
        return false;
    }
    embedded->log_size = size;
    path_in(embedded, "provider.log", path);
    child_log_tail(path, tail);
    if (strstr(tail, PAUSED_SAID) != NULL) {
        (void)fprintf(stderr,
                      "bourse: the agent is paused by its owner, so nothing is on offer; "
                      "`bourse-provider resume --market %s` ends that\n",
                      embedded->household.folder);
        return true;
    }
    const char *refusal = strstr(tail, REJECT_SAID);
    if (refusal != NULL) {
        embedded->is_refusal_told = true;
        (void)fprintf(stderr, "bourse: no device is on offer yet: %s\n", refusal);
    }
    return false;
}

static bool wait_offer(struct embedded *embedded, int *ret_status)
{
    char market[PATH_SIZE];
    char key[PATH_SIZE];
    struct bourse_error error;
    path_in(embedded, MARKET_FILE, market);
    path_in(embedded, MARKET_OWNER_KEY, key);
    const struct bourse_options options = {
        .market = market, .key = key, .program = "bourse " BOURSE_VERSION, .timeout_ms = CALL_MS};
    if (!bourse_open(&options, &embedded->invocation->bourse, &error)) {
        *ret_status = complain_with(embedded->invocation, &error);
        return false;
    }
    while (!look_at_offer(embedded, &error)) {
        if (error.status == BOURSE_REFUSED) {
            *ret_status = complain_with(embedded->invocation, &error);
            return false;
        }
        error.status = BOURSE_OK;
        if (tell_why_not(embedded)) {
            return true;
        }
        if (!pause_ok(embedded, "no device is on offer yet", ret_status)) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- starting */

static bool start_child(struct embedded *embedded, struct child *child, const char *name,
                        const char *program, const char *folder, int *ret_status)
{
    char log[PATH_SIZE];
    char log_name[32];
    char *arguments[] = {(char *)(uintptr_t)program, (char *)(uintptr_t) "--dir",
                         (char *)(uintptr_t)folder, NULL};
    struct problem problem = {.text = ""};
    (void)snprintf(log_name, sizeof log_name, "%s.log", name);
    path_in(embedded, log_name, log);
    if (!child_start(name, program, arguments, log, !embedded->detach, child, &problem)) {
        *ret_status = complain(embedded->invocation, BOURSE_LOCAL, "%s", problem.text);
        return false;
    }
    return true;
}

static bool start_both(struct embedded *embedded, int *ret_status)
{
    char agent[PATH_SIZE];
    path_in(embedded, MARKET_PROVIDER, agent);
    embedded->log_size = agent_log_size(embedded); /* older lines of the log do not count */
    return start_child(embedded, &embedded->broker, "broker", "bourse-broker",
                       embedded->household.folder, ret_status) &&
           wait_market(embedded, ret_status) &&
           start_child(embedded, &embedded->provider, "provider", "bourse-provider", agent,
                       ret_status) &&
           wait_offer(embedded, ret_status);
}

static bool list_children(struct embedded *embedded, int *ret_status)
{
    struct child list[CHILDREN_MAX];
    size_t count = 0;
    struct problem problem = {.text = ""};
    if (!embedded->detach) {
        list[count++] = child_self();
    }
    list[count++] = embedded->provider;
    list[count++] = embedded->broker;
    if (!child_list_write(embedded->household.folder, list, count, &problem)) {
        *ret_status = complain(embedded->invocation, BOURSE_LOCAL, "%s", problem.text);
        return false;
    }
    return true;
}

/* Tells how other commands find this market, when they would use another one. */
static void say_where(const struct embedded *embedded, const char *market)
{
    const struct setting_value *used = &embedded->invocation->settings.items[SETTING_MARKET];
    if (strcmp(market, used->value) == 0) {
        return;
    }
    const bool is_set = strcmp(used->origin, "default") != 0;
    (void)fprintf(stderr, "Other commands use %s; they use this market after: %s'%s'\n",
                  is_set ? used->value : "another market",
                  "export BOURSE_MARKET=", embedded->household.folder);
}

static void say_ready(const struct embedded *embedded)
{
    struct invocation *invocation = embedded->invocation;
    char market[PATH_SIZE];
    char broker[STANDING_SIZE];
    char provider[STANDING_SIZE];
    child_standing(&embedded->broker, broker, sizeof broker);
    child_standing(&embedded->provider, provider, sizeof provider);
    path_in(embedded, MARKET_FILE, market);
    if (invocation->json) {
        (void)json_print(json_pack("{s:s, s:s, s:i, s:s, s:i, s:s, s:i, s:I, s:b}", "folder",
                                   embedded->household.folder, "market", market, "broker_pid",
                                   (int)embedded->broker.pid, "broker_runs_as", broker,
                                   "provider_pid", (int)embedded->provider.pid, "provider_runs_as",
                                   provider, "slots", (int)embedded->slots, "price_micro",
                                   (json_int_t)embedded->price_micro, "detached",
                                   embedded->detach ? 1 : 0),
                         BOURSE_OK);
        (void)fflush(stdout);
        return;
    }
    (void)printf(
        "market    %s\nbroker    process %ld, %s\nprovider  process %ld, %s: %u slot%s at %s "
        "credits per slot-hour\n",
        embedded->household.folder, (long)embedded->broker.pid, broker,
        (long)embedded->provider.pid, provider, embedded->slots, text_plural(embedded->slots),
        cell_money(embedded->price_micro));
    (void)fflush(stdout);
    say_where(embedded, market);
    (void)fprintf(stderr, "Try: bourse run -- true\n%s\n",
                  embedded->detach ? "`bourse down` stops it." : "Ctrl-C stops it.");
}

/* ---------------------------------------------------------------- stopping */

static bool stop_both(struct embedded *embedded)
{
    command_disconnect(embedded->invocation);
    /* The provider stops first, so that it can hand back its leases. */
    bool gone = child_stop(&embedded->provider, STOP_MS);
    gone = child_stop(&embedded->broker, STOP_MS) && gone;
    char list[PATH_SIZE];
    path_in(embedded, CHILDREN_FILE, list);
    (void)unlink(list); /* may be absent */
    return gone;
}

/* Waits for Ctrl-C or for the end of a process. */
static int watch_over(struct embedded *embedded)
{
    command_disconnect(embedded->invocation);
    for (;;) {
        struct pollfd waits[] = {{.fd = embedded->signals, .events = POLLIN},
                                 {.fd = embedded->broker.fd, .events = POLLIN},
                                 {.fd = embedded->provider.fd, .events = POLLIN}};
        (void)poll(waits, 3, -1);
        if (asked_to_end(embedded)) {
            return BOURSE_OK;
        }
        for (int i = 1; i < 3; i++) {
            if (waits[i].revents != 0) {
                return complain(embedded->invocation, BOURSE_LOCAL,
                                "the %s has ended; see %s.log in %s",
                                i == 1 ? "broker" : "provider agent",
                                i == 1 ? "broker" : "provider", embedded->household.folder);
            }
        }
    }
}

/* ---------------------------------------------------------------- up */

static bool read_wishes(struct invocation *invocation, struct household_wishes *wishes,
                        int64_t *ret_wait_ms)
{
    *wishes = (struct household_wishes){.price_micro = MICRO_PER_CREDIT / 10,
                                        .credits_micro = 1000 * MICRO_PER_CREDIT,
                                        .programs = option_text(invocation, "programs", NULL)};
    *ret_wait_ms = 120000;
    if (!option_money(invocation, "price", &wishes->price_micro)) {
        return false;
    }
    if (wishes->price_micro > PRICE_BAND_MICRO) {
        (void)complain(
            invocation, BOURSE_USAGE,
            "--price %s: a market takes no price above its band, %s credits per slot-hour",
            option_text(invocation, "price", ""), cell_money(PRICE_BAND_MICRO));
        return false;
    }
    return option_money(invocation, "credits", &wishes->credits_micro) &&
           option_count(invocation, "slots", 1, 4096, &wishes->slots) &&
           option_duration_ms(invocation, "wait", ret_wait_ms);
}

static bool already_up(struct embedded *embedded, int *ret_status)
{
    struct child running[CHILDREN_MAX];
    size_t count = 0;
    struct problem problem = {.text = ""};
    if (!child_list_read(embedded->household.folder, running, &count, &problem)) {
        *ret_status = complain(embedded->invocation, BOURSE_LOCAL, "%s", problem.text);
        return true;
    }
    long pid = count > 0 ? (long)running[0].pid : 0;
    bool has_broker = false;
    bool has_provider = false;
    for (size_t i = 0; i < count; i++) {
        has_broker = has_broker || strcmp(running[i].name, "broker") == 0;
        has_provider = has_provider || strcmp(running[i].name, "provider") == 0;
        child_close(&running[i]);
    }
    if (count > 0 && !(has_broker && has_provider)) {
        *ret_status = complain(embedded->invocation, BOURSE_REFUSED,
                               "half of the market in %s runs: its %s ended, see %s.log there; "
                               "`bourse down` stops the rest, then `bourse up` starts both",
                               embedded->household.folder, has_broker ? "provider agent" : "broker",
                               has_broker ? "provider" : "broker");
    } else if (count > 0) {
        *ret_status = complain(embedded->invocation, BOURSE_REFUSED,
                               "a market runs in %s already (process %ld); `bourse down` stops it",
                               embedded->household.folder, pid);
    }
    return count > 0;
}

/* The agent itself checks the request before anything else runs, so that a wrong option leaves
 * nothing behind. */
static bool agent_agrees(struct embedded *embedded, int *ret_status)
{
    char agent[PATH_SIZE];
    char log[PATH_SIZE];
    char tail[CHILD_LOG_TAIL];
    char *arguments[] = {(char *)(uintptr_t) "bourse-provider",
                         (char *)(uintptr_t) "run",
                         (char *)(uintptr_t) "--check-config",
                         (char *)(uintptr_t) "--dir",
                         agent,
                         NULL};
    struct problem problem = {.text = ""};
    struct child child = {.fd = -1};
    path_in(embedded, MARKET_PROVIDER, agent);
    path_in(embedded, "check.log", log);
    if (!child_start("check", arguments[0], arguments, log, true, &child, &problem)) {
        *ret_status = complain(embedded->invocation, BOURSE_LOCAL, "%s", problem.text);
        return false;
    }
    int result = child_result(&child, STOP_MS);
    child_log_tail(log, tail);
    (void)unlink(log);
    if (result != 0) {
        *ret_status = complain(embedded->invocation, BOURSE_USAGE, "nothing is started: %s",
                               tail[0] != '\0' ? tail : "bourse-provider does not answer");
    }
    return result == 0;
}

static bool furnish(struct embedded *embedded, const struct household_wishes *wishes,
                    int *ret_status)
{
    struct invocation *invocation = embedded->invocation;
    struct household_made *made = &embedded->made;
    struct problem problem = {.text = ""};
    bool furnished = household_furnish(&embedded->household, wishes, made, &problem);
    if (!furnished) {
        *ret_status = complain(invocation, BOURSE_LOCAL, "%s", problem.text);
    } else if (made->agent_config) {
        furnished = agent_agrees(embedded, ret_status);
    }
    if (!furnished) {
        household_clear(&embedded->household, made);
        return false;
    }
    bool agent_wished = option_given(invocation, "price") || option_given(invocation, "slots") ||
                        option_given(invocation, "programs");
    if (!made->agent_config && agent_wished && !invocation->quiet) {
        (void)fprintf(
            stderr,
            "bourse: the market is there already: --price, --slots and --programs count for the "
            "first start only;\n        edit %s/provider/provider.yaml instead\n",
            embedded->household.folder);
    }
    if (!made->broker_config && option_given(invocation, "credits") && !invocation->quiet) {
        (void)fprintf(
            stderr,
            "bourse: the market is there already: --credits counts for the first start only; "
            "`bourse admin mint` makes more\n");
    }
    return true;
}

/* Returns the folder of the market in use when `bourse up` made it; the owner's key shows that. */
static bool used_folder(const struct invocation *invocation, char *ret_folder, size_t capacity)
{
    char key[SETTING_VALUE_SIZE + 32];
    const char *file = invocation->settings.items[SETTING_MARKET].value;
    const char *slash = strrchr(file, '/');
    int length = slash == NULL ? 0 : (int)(slash - file);
    (void)snprintf(key, sizeof key, "%.*s/" MARKET_OWNER_KEY, length, file);
    if (length == 0 || access(key, F_OK) != 0) {
        return false;
    }
    (void)snprintf(ret_folder, capacity, "%.*s", length, file); /* no longer than a setting */
    return true;
}

/* `up` takes its folder from --dir alone; `down` ends the market in use. */
static bool open_folder(struct invocation *invocation, bool create, struct household *ret_household,
                        int *ret_status)
{
    char folder[SETTING_VALUE_SIZE + 16];
    struct problem problem = {.text = ""};
    if (create || !used_folder(invocation, folder, sizeof folder)) {
        (void)snprintf(folder, sizeof folder, "%s/market", invocation->state_folder);
    }
    const char *chosen = option_text(invocation, "dir", folder);
    const char *user = create ? option_text(invocation, "user", "bourse") : "";
    if (!household_open(chosen, user, create, ret_household, &problem)) {
        *ret_status = complain(invocation, BOURSE_LOCAL, "%s", problem.text);
        return false;
    }
    return true;
}

int command_up(struct invocation *invocation)
{
    int status = 0;
    int64_t wait_ms = 0;
    struct household_wishes wishes;
    struct embedded embedded = {.invocation = invocation,
                                .broker = {.fd = -1},
                                .provider = {.fd = -1},
                                .detach = option_given(invocation, "detach")};
    if (!read_wishes(invocation, &wishes, &wait_ms)) {
        return BOURSE_USAGE;
    }
    if (!open_folder(invocation, true, &embedded.household, &status) ||
        already_up(&embedded, &status) || !furnish(&embedded, &wishes, &status)) {
        return status;
    }
    embedded.signals = process_signals();
    if (embedded.signals < 0) {
        return complain(invocation, BOURSE_LOCAL, "signals cannot be received: %s",
                        strerror(errno));
    }
    embedded.deadline_ns = clock_monotonic_ns() + wait_ms * NS_PER_MS;
    bool up = start_both(&embedded, &status) && list_children(&embedded, &status);
    if (up) {
        say_ready(&embedded);
    } else {
        /* The next start goes by its own options. The keys stay, because they are accounts of the
         * market by now. */
        embedded.made = (struct household_made){.agent_config = embedded.made.agent_config};
        household_clear(&embedded.household, &embedded.made);
    }
    if (up && embedded.detach) {
        return BOURSE_OK;
    }
    if (up) {
        status = watch_over(&embedded);
        if (!invocation->quiet && !invocation->json) {
            (void)fputs("stopping\n", stderr);
        }
    }
    if (!stop_both(&embedded)) {
        return complain(invocation, BOURSE_LOCAL, "a process of the market in %s does not end",
                        embedded.household.folder);
    }
    (void)close(embedded.signals); /* a signalfd has nothing to lose */
    return status;
}

/* ---------------------------------------------------------------- down */

int command_down(struct invocation *invocation)
{
    int status = 0;
    int64_t wait_ms = 30000;
    struct household household;
    struct child running[CHILDREN_MAX];
    size_t count = 0;
    struct problem problem = {.text = ""};
    if (!option_duration_ms(invocation, "wait", &wait_ms)) {
        return BOURSE_USAGE;
    }
    if (!open_folder(invocation, false, &household, &status)) {
        return status;
    }
    if (!child_list_read(household.folder, running, &count, &problem)) {
        return complain(invocation, BOURSE_LOCAL, "%s", problem.text);
    }
    if (count == 0) {
        return complain(invocation, BOURSE_NOT_FOUND, "no market of `bourse up` runs in %s",
                        household.folder);
    }
    bool gone = true;
    /* A foreground `up` stops the other two itself; they are gone then. */
    for (size_t i = 0; i < count; i++) {
        gone = child_stop(&running[i], (int)(wait_ms > INT_MAX ? INT_MAX : wait_ms)) && gone;
    }
    char list[PATH_SIZE];
    (void)snprintf(list, sizeof list, "%s/" CHILDREN_FILE, household.folder);
    (void)unlink(list); /* a foreground `up` may have done this */
    if (!gone) {
        return complain(invocation, BOURSE_TIMED_OUT,
                        "a process of the market in %s has not ended; --wait TIME waits longer",
                        household.folder);
    }
    if (invocation->json) {
        return json_print(json_pack("{s:s, s:b}", "folder", household.folder, "stopped", 1),
                          BOURSE_OK);
    }
    if (!invocation->quiet) {
        (void)fprintf(stderr, "the market in %s is stopped\n", household.folder);
    }
    return BOURSE_OK;
}
