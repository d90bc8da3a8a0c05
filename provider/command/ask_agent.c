/* provider/command/ask_agent.c holds status, pause, resume and drain. Each asks the running agent
 * one question, and prints the answer for people or programs. */
#include "provider/command/command.h"
#include "provider/command/gpu_lines.h"
#include "provider/command/shell_word.h"
#include "provider/command/usage_lines.h"
#include "provider/owner.h"

#include "formats/units.h"
#include "runtime/terminal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    ANSWER_MS = 15000, /* the agent waits for the broker at most OWNER_WAIT_NS */
    WATCH_EVERY_S = 1,
    WATCH_MARKET_EVERY = 30, /* the market is asked at every thirtieth look */
};

/* ---------------------------------------------------------------- asking */

/* Warns beside an answer that has been printed. */
static int warn(int status, const char *text)
{
    fprintf(stderr, "bourse-provider: %s\n", text);
    return status;
}

static int status_of(enum control_status status)
{
    switch (status) {
    case CONTROL_OK:
        return EXIT_OK;
    case CONTROL_NOBODY:
        return EXIT_NOBODY;
    case CONTROL_DENIED:
        return EXIT_REFUSED;
    case CONTROL_FAILED:
        return EXIT_FAILED;
    }
    return EXIT_FAILED;
}

/* Returns the agent's answer. On failure it prints the problem, sets *ret_status to the exit
 * status, and returns NULL. */
static json_t *ask(const struct command *command, const struct control_request *request,
                   int64_t timeout_ms, int *ret_status)
{
    char folder[CONFIG_PATH_SIZE];
    struct problem problem = {""};
    json_t *answer = NULL;
    if (!setup_folder(&command->setup, folder, sizeof folder, &problem)) {
        *ret_status = command_fail(EXIT_USAGE, problem.text);
        return NULL;
    }
    enum control_status status = control_ask(folder, request, timeout_ms, &answer, &problem);
    *ret_status = status_of(status);
    if (status == CONTROL_OK && json_is_false(json_object_get(answer, "ok"))) {
        const char *text = json_string_value(json_object_get(answer, "text"));
        problem_set(&problem, "%s", text == NULL ? "the agent refuses" : text);
        *ret_status = EXIT_REFUSED;
    }
    if (*ret_status == EXIT_OK) {
        return answer;
    }
    (void)command_fail(*ret_status, problem.text);
    json_decref(answer);
    return NULL;
}

/* Takes the answer over. */
static void print_json(json_t *answer)
{
    (void)json_object_del(answer, "ok"); /* the exit status says it */
    (void)json_dumpf(answer, stdout, JSON_COMPACT);
    (void)fputc('\n', stdout);
}

static int64_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value == NULL ? "" : value;
}

static bool is_true(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

/* ---------------------------------------------------------------- texts */

static const char *moment(int64_t ms, char ret_text[32])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm local;
    if (localtime_r(&seconds, &local) == NULL ||
        strftime(ret_text, 32, "%Y-%m-%d %H:%M:%S", &local) == 0) {
        (void)snprintf(ret_text, 32, "?");
    }
    return ret_text;
}

static const char *duration(int64_t ms, char ret_text[UNITS_TEXT_SIZE])
{
    int64_t most_ms = INT64_MAX / NS_PER_MS;
    units_duration_short((ms < 0 ? 0 : ms < most_ms ? ms : most_ms) * NS_PER_MS, ret_text);
    return ret_text;
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_until(int64_t until_ms)
{
    char when[32];
    if (until_ms == 0) {
        printf("until `bourse-provider resume`");
    } else {
        printf("until %s", moment(until_ms, when));
    }
}

/* ---------------------------------------------------------------- status */

static void print_in_use(const json_t *idle)
{
    char after[UNITS_TEXT_SIZE];
    char left[UNITS_TEXT_SIZE];
    const char *order = text(idle, "order");
    units_duration_text(number(idle, "after_ms") * NS_PER_MS, after);
    printf("paused: the machine is in use: %s; offers again after %s of idle, in %s at the "
           "earliest",
           text(idle, "reason"), after, duration(number(idle, "idle_in_ms"), left));
    if (strcmp(order, "hold") != 0) {
        printf("; work %s back to the market", strcmp(order, "save") == 0 ? "goes" : "went");
    }
}

static void print_idle(const json_t *idle)
{
    char after[UNITS_TEXT_SIZE];
    if (json_is_object(idle)) {
        units_duration_text(number(idle, "after_ms") * NS_PER_MS, after);
        printf("%-12s works after %s without a sign of use%s; watched: %s\n", "idle", after,
               is_true(idle, "resumed") ? ", and now by `resume` until the machine has been idle"
                                        : "",
               text(idle, "sees"));
    }
}

static void print_state(const json_t *answer)
{
    static const char *const words[][2] = {
        {"offering", "offering"},
        {"asking", "not all asks stand yet"},
        {"frozen", "the operator froze this account; offering again when that is undone"},
        {"disconnected", "offering again as soon as the broker is there; work goes on"},
        {"disk-full", "nothing is offered until there is room on the disk"},
        {"folder-missing", "nothing is offered until the folder in `last error` can be made again"},
        {"network-spent", "nothing is offered before the next month; the line `network` says why"},
        {"withheld",
         "no device may be offered now; the lines of `gpu`, `failing` and `paused` say why"},
        {"draining", "draining: ends when nothing runs and every result is accepted"},
        {"leaving", "ending"},
    };
    const char *state = text(answer, "state");
    printf("%-12s ", "state");
    if (strcmp(state, "paused") == 0 && json_is_object(json_object_get(answer, "paused"))) {
        printf("paused ");
        print_until(number(json_object_get(answer, "paused"), "until_ms"));
    } else if (strcmp(state, "paused") == 0) {
        printf("every device is paused");
    }
    if (strcmp(state, "in-use") == 0) {
        print_in_use(json_object_get(answer, "idle"));
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(state, words[i][0]) == 0) {
            printf("%s", words[i][1]);
        }
    }
    printf("\n");
    if (text(answer, "frozen_text")[0] != '\0') {
        printf("%-12s %s\n", "reason", text(answer, "frozen_text"));
    }
}

static const char *ask_note(const json_t *ask)
{
    return is_true(ask, "withheld")    ? ", withheld"
           : is_true(ask, "paused")    ? ", paused"
           : is_true(ask, "by_hand")   ? ", placed by hand"
           : is_true(ask, "cancelled") ? ", cancelled by hand: `resume` places it again"
           : is_true(ask, "standing")  ? ""
                                       : ", not standing";
}

/* Prints conditions such as " to alice, bob; mon-fri 22:00-07:00; 8h of slots a day
 * (UTC+01:00)". */
static void print_conditions(const json_t *ask)
{
    const json_t *to = json_object_get(ask, "to");
    const json_t *hours = json_object_get(ask, "hours");
    size_t i;
    const json_t *each;
    json_array_foreach(to, i, each)
    {
        printf("%s%s", i == 0 ? " to " : ", ", json_string_value(each));
    }
    json_array_foreach(hours, i, each)
    {
        printf("%s%s", i == 0 ? "; " : ", ", json_string_value(each));
    }
    if (number(ask, "daily_ms") > 0) {
        char daily[UNITS_TEXT_SIZE];
        units_duration_text(number(ask, "daily_ms") * NS_PER_MS, daily);
        printf("; %s of slots a day", daily);
    }
    if (json_array_size(hours) > 0 || number(ask, "daily_ms") > 0) {
        printf(" (UTC%s)", text(ask, "utc_offset"));
    }
}

static void print_asks(const json_t *asks)
{
    size_t i;
    const json_t *ask;
    json_array_foreach(asks, i, ask)
    {
        char money[UNITS_TEXT_SIZE];
        units_money_text(number(ask, "price_micro"), money);
        printf("%-12s %s%s%lld slot%s of %s at %s credits per slot-hour", i == 0 ? "asks" : "",
               json_array_size(asks) > 1 ? text(ask, "name") : "",
               json_array_size(asks) > 1 ? ": " : "", (long long)number(ask, "slots"),
               plural(number(ask, "slots")), text(ask, "instrument"), money);
        printf("%s", is_true(ask, "interruptible") ? ", interruptible" : "");
        print_conditions(ask);
        printf("%s\n", ask_note(ask));
        if (json_object_get(ask, "refusal") != NULL) {
            printf("%-12s refused, and tried again: %s\n", "", text(ask, "refusal"));
        }
    }
}

static void print_paused_devices(const json_t *devices)
{
    size_t i;
    const json_t *device;
    json_array_foreach(devices, i, device)
    {
        const int64_t until_ms = number(device, "until_ms");
        char when[32];
        printf("%-12s the device %s, until ", i == 0 ? "paused" : "", text(device, "device"));
        if (until_ms == 0) {
            printf("`bourse-provider resume --device %s`\n", shell_word(text(device, "device")));
        } else {
            printf("%s\n", moment(until_ms, when));
        }
    }
}

/* Returns the name of the lease's device. A device without an ask is named by its id. */
static const char *name_of_device(const json_t *answer, const json_t *lease)
{
    size_t i;
    const json_t *ask;
    json_array_foreach(json_object_get(answer, "asks"), i, ask)
    {
        if (strcmp(text(ask, "device"), text(lease, "device")) == 0) {
            return text(ask, "name");
        }
    }
    return text(lease, "device");
}

static void print_leases(const json_t *answer)
{
    const json_t *leases = json_object_get(answer, "leases");
    int wide = (int)strlen("DEVICE");
    size_t i;
    const json_t *lease;
    json_array_foreach(leases, i, lease)
    {
        const int length = (int)strlen(name_of_device(answer, lease));
        wide = length > wide ? length : wide;
    }
    if (json_array_size(leases) > 0) {
        printf("\n%8s  %-8s  %-*s  %5s  %-10s  %7s  %6s  %4s  %s\n", "LEASE", "JOB", wide, "DEVICE",
               "SLOTS", "PRICE", "RUNNING", "QUEUED", "OWED", "TERM LEFT");
    }
    json_array_foreach(leases, i, lease)
    {
        char money[UNITS_TEXT_SIZE];
        char left[UNITS_TEXT_SIZE];
        units_money_text(number(lease, "price_micro"), money);
        printf("%8lld  %-8.8s  %-*s  %5lld  %-10s  %7lld  %6lld  %4lld  %s\n",
               (long long)number(lease, "lease"), text(lease, "job"), wide,
               name_of_device(answer, lease), (long long)number(lease, "slots"), money,
               (long long)number(lease, "running"), (long long)number(lease, "queued"),
               (long long)number(lease, "owed"), duration(number(lease, "term_left_ms"), left));
    }
    if (number(answer, "lease_count") > (int64_t)json_array_size(leases)) {
        printf("... and %lld more\n",
               (long long)number(answer, "lease_count") - (long long)json_array_size(leases));
    }
}

/* Prints the refuted results that close the account's asks soon, or close them now. */
static void print_refuted(const json_t *answer)
{
    const int64_t refuted = number(answer, "refuted");
    const int64_t until_ms = number(answer, "asks_closed_until_ms");
    if (refuted == 0 && until_ms == 0) {
        return;
    }
    printf("%-12s %lld result%s of this account; ", "refuted", (long long)refuted, plural(refuted));
    if (until_ms == 0) {
        printf("with the next its asks are closed for a time\n");
        return;
    }
    printf("its asks are closed ");
    print_until(until_ms);
    printf("\n");
}

static void print_status(const json_t *answer)
{
    const json_t *market = json_object_get(answer, "market");
    const json_t *results = json_object_get(answer, "results");
    const json_t *error = json_object_get(answer, "last_error");
    int64_t now_ms = number(answer, "now_ms");
    char span[UNITS_TEXT_SIZE];
    printf("%-12s %s, %s, process %lld, for %s\n", "agent", text(answer, "name"),
           text(answer, "program"), (long long)number(answer, "pid"),
           duration(now_ms - number(answer, "started_ms"), span));
    int64_t since_ms = number(market, "since_ms");
    printf("%-12s %s%s%s\n", "market", is_true(market, "connected") ? "connected" : "not connected",
           since_ms == 0 ? " yet" : " for ",
           since_ms == 0 ? "" : duration(now_ms - since_ms, span));
    if (text(market, "says")[0] != '\0') {
        printf("%-12s %s\n", "", text(market, "says"));
    }
    print_state(answer);
    print_idle(json_object_get(answer, "idle"));
    print_asks(json_object_get(answer, "asks"));
    print_paused_devices(json_object_get(answer, "paused_devices"));
    gpu_lines_print(json_object_get(answer, "gpus"));
    gpu_lines_print_failing(json_object_get(answer, "failing"), 12);
    printf("%-12s %lld lease%s, %lld running, %lld queued, %lld result%s not accepted yet, %lld "
           "jail%s\n",
           "work", (long long)number(answer, "lease_count"), plural(number(answer, "lease_count")),
           (long long)number(answer, "running"), (long long)number(answer, "queued"),
           (long long)number(answer, "owed"), plural(number(answer, "owed")),
           (long long)number(answer, "jails"), plural(number(answer, "jails")));
    printf("%-12s %lld accepted since it started, %lld refused\n", "results",
           (long long)number(results, "accepted"), (long long)number(results, "refused"));
    usage_lines_print(answer);
    if (number(answer, "given_ns") > 0) {
        units_slot_hours(number(answer, "given_ns"), span);
        printf("%-12s %s slot-hours, all in all\n", "donated", span);
    }
    print_refuted(answer);
    if (json_is_object(error)) {
        printf("%-12s %s ago: %s\n", "last error", duration(now_ms - number(error, "at_ms"), span),
               text(error, "text"));
    }
    print_leases(answer);
}

/* Adds what the market says of its own state, and of asks that stand here alone. */
static void add_said(const struct command_known *known, json_t *answer)
{
    json_t *market = json_object_get(answer, "market");
    const bool stands_here = strcmp(text(answer, "state"), "offering") == 0;
    const char *says = known->says;
    if (says[0] == '\0' && stands_here && !known->has_device) {
        says = "the market has no ask of this agent: another agent with the same key may have "
               "left; `bourse-provider pause` and then `resume` offer the devices anew";
    }
    (void)json_object_set_new(market, "frozen", json_boolean(known->is_frozen));
    (void)json_object_set_new(market, "halted", json_boolean(known->is_halted));
    (void)json_object_set_new(market, "says", json_string(says));
}

/* Adds what the market knows. With `is_new` the market is asked; else the last answer counts. */
static void add_known(const struct command *command, bool is_new, json_t *answer)
{
    static struct command_known known;
    static bool has_known;
    static int64_t closed_until_ms; /* 0: the asks are not closed */
    if (!is_true(json_object_get(answer, "market"), "connected")) {
        return;
    }
    if (is_new) {
        has_known = command_known(command, &known);
        closed_until_ms =
            has_known && known.withdrawn_ms > 0 ? number(answer, "now_ms") + known.withdrawn_ms : 0;
    }
    if (has_known) {
        add_said(&known, answer);
        (void)json_object_set_new(answer, "given_ns", json_integer(known.given_ns));
        (void)json_object_set_new(answer, "refuted", json_integer(known.refuted));
        (void)json_object_set_new(answer, "asks_closed_until_ms",
                                  closed_until_ms > 0 ? json_integer(closed_until_ms)
                                                      : json_null());
    }
}

int command_status(const struct command *command)
{
    const struct control_request request = {.command = CONTROL_STATUS};
    const struct timespec pause = {.tv_sec = WATCH_EVERY_S};
    for (unsigned look = 0;; look++) {
        int status;
        json_t *answer = ask(command, &request, ANSWER_MS, &status);
        if (answer == NULL) {
            return status;
        }
        add_known(command, look % WATCH_MARKET_EVERY == 0, answer);
        if (command->watch && !command->json && isatty(STDOUT_FILENO) == 1) {
            terminal_control(stdout, "\033[H\033[J"); /* the table of a second ago goes */
        }
        if (command->json) {
            print_json(answer);
        } else {
            print_status(answer);
        }
        json_decref(answer);
        if (!command->watch || fflush(stdout) != 0) {
            return status;
        }
        (void)nanosleep(&pause, NULL);
    }
}

/* ---------------------------------------------------------------- pause and resume */

static void print_pause(const json_t *answer, const char *device)
{
    int64_t running = number(answer, "running");
    const int64_t until_ms = number(answer, "until_ms");
    printf("paused ");
    if (device != NULL && until_ms == 0) {
        printf("until `bourse-provider resume --device %s`", shell_word(device));
    } else {
        print_until(until_ms);
    }
    if (running > 0) {
        printf("; %lld subtask%s still run%s, status shows them", (long long)running,
               plural(running), running == 1 ? "s" : "");
    }
    printf("\n");
}

static int fail_frozen(const json_t *answer)
{
    const char *said = text(answer, "frozen_text");
    fprintf(stderr,
            "bourse-provider: the operator froze this account; no ask of it stands until that is "
            "undone: %s\n",
            said[0] != '\0' ? said : "ask the operator why");
    return EXIT_REFUSED;
}

/* Puts the name of the device into the request. Returns false with the status when no device has
 * such a name. */
static bool name_device(const struct command *command, struct control_request *request,
                        int *ret_status)
{
    if (command->device == NULL) {
        return true;
    }
    if (command->device[0] == '\0' || strlen(command->device) >= sizeof request->device) {
        *ret_status =
            command_fail(EXIT_USAGE, "--device takes a name of 1 to 63 bytes, as `status` "
                                     "shows it");
        return false;
    }
    memcpy(request->device, command->device, strlen(command->device));
    return true;
}

int command_pause(const struct command *command)
{
    struct control_request request = {.command = CONTROL_PAUSE,
                                      .now = command->now,
                                      .save = command->save,
                                      .for_ms = command->for_ms};
    int status;
    if (!name_device(command, &request, &status)) {
        return status;
    }
    json_t *answer = ask(command, &request, ANSWER_MS, &status);
    if (answer == NULL) {
        return status;
    }
    if (command->json) {
        print_json(answer);
    } else {
        print_pause(answer, command->device);
    }
    if (text(answer, "unkept")[0] != '\0') {
        fprintf(stderr, "bourse-provider: paused, but not over a restart of the agent: %s\n",
                text(answer, "unkept"));
    }
    status =
        is_true(answer, "frozen") ? fail_frozen(answer)
        : is_true(answer, "withdrawn")
            ? (text(answer, "unkept")[0] == '\0' ? EXIT_OK : EXIT_FAILED)
            : warn(EXIT_UNREACHABLE,
                   "the broker has not confirmed that the asks are gone. The broker drops "
                   "them itself when it misses the agent, and the agent gives back what comes");
    json_decref(answer);
    return status;
}

int command_resume(const struct command *command)
{
    struct control_request request = {.command = CONTROL_RESUME};
    int status;
    if (!name_device(command, &request, &status)) {
        return status;
    }
    json_t *answer = ask(command, &request, ANSWER_MS, &status);
    if (answer == NULL) {
        return status;
    }
    /* One device may be resumed while the whole agent offers nothing, as its owner wants. */
    const char *state = text(answer, "state");
    const bool is_held =
        strcmp(state, "withheld") == 0 || (command->device != NULL && is_true(answer, "withheld"));
    const bool waits = is_held || (command->device != NULL &&
                                   (strcmp(state, "paused") == 0 || strcmp(state, "in-use") == 0));
    const bool offering = waits || (command->device == NULL ? strcmp(state, "offering") == 0
                                                            : is_true(answer, "standing") &&
                                                                  is_true(answer, "connected"));
    if (command->json) {
        print_json(answer);
    } else if (waits) {
        printf("%s resumed; %s\n", command->device != NULL ? "the device is" : "the agent is",
               is_held ? "what it may offer is withheld for now (`status` says why)"
               : strcmp(state, "paused") == 0
                   ? "the agent is still paused, until `bourse-provider resume`"
                   : "somebody uses the machine, so nothing is offered yet (`status` says more)");
    } else if (offering) {
        printf("offering again\n");
    }
    status = is_true(answer, "frozen") ? fail_frozen(answer)
             : offering                ? EXIT_OK
                        : warn(is_true(answer, "connected") ? EXIT_REFUSED : EXIT_UNREACHABLE,
                               "resumed, but not all asks stand yet; `bourse-provider status` and "
                               "`bourse-provider why` say more");
    json_decref(answer);
    return status;
}

/* ---------------------------------------------------------------- drain */

int command_drain(const struct command *command)
{
    const struct control_request look = {.command = CONTROL_STATUS};
    const struct control_request request = {.command = CONTROL_DRAIN};
    int status;
    json_t *standing = ask(command, &look, ANSWER_MS, &status);
    if (standing == NULL) {
        return status; /* no agent is there to drain */
    }
    json_decref(standing);
    if (!command->json) {
        fprintf(stderr,
                "draining: no new work; waiting for what runs (Ctrl-C leaves it draining)\n");
    }
    json_t *answer = ask(command, &request, 0, &status);
    if (answer == NULL) {
        return status;
    }
    int64_t left = number(answer, "running") + number(answer, "owed");
    if (command->json) {
        print_json(answer);
    } else if (left == 0) {
        printf("drained: %lld result%s accepted since it started, the agent has ended\n",
               (long long)number(answer, "accepted"), plural(number(answer, "accepted")));
    }
    json_decref(answer);
    return left == 0 ? EXIT_OK
                     : warn(EXIT_FAILED, "the agent was ended before it was drained; its log says "
                                         "what became of the work");
}
