/* provider/command/ask_agent.c holds status, pause, resume and drain. Each asks the running agent
 * one question, and prints the answer for people or programs. */
#include "provider/command/command.h"
#include "provider/owner.h"

#include "formats/units.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ANSWER_MS = 15000 }; /* the agent waits for the broker at most OWNER_WAIT_NS */

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

static void print_state(const json_t *answer)
{
    static const char *const words[][2] = {
        {"offering", "offering"},
        {"asking", "not all asks stand yet"},
        {"frozen", "the operator froze this account; offering again when that is undone"},
        {"disconnected", "offering again as soon as the broker is there; work goes on"},
        {"disk-full", "nothing is offered until there is room on the disk"},
        {"draining", "draining: ends when nothing runs and every result is accepted"},
        {"leaving", "ending"},
    };
    const char *state = text(answer, "state");
    printf("%-12s ", "state");
    if (strcmp(state, "paused") == 0) {
        printf("paused ");
        print_until(number(json_object_get(answer, "paused"), "until_ms"));
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(state, words[i][0]) == 0) {
            printf("%s", words[i][1]);
        }
    }
    printf("\n");
}

static const char *ask_note(const json_t *ask)
{
    return is_true(ask, "by_hand")     ? ", placed by hand"
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
        printf("%-12s %lld slot%s of %s at %s credits per slot-hour", i == 0 ? "asks" : "",
               (long long)number(ask, "slots"), plural(number(ask, "slots")),
               text(ask, "instrument"), money);
        printf("%s", is_true(ask, "interruptible") ? ", interruptible" : "");
        print_conditions(ask);
        printf("%s\n", ask_note(ask));
        if (json_object_get(ask, "refusal") != NULL) {
            printf("%-12s refused, and tried again: %s\n", "", text(ask, "refusal"));
        }
    }
}

static void print_leases(const json_t *answer)
{
    const json_t *leases = json_object_get(answer, "leases");
    size_t i;
    const json_t *lease;
    if (json_array_size(leases) > 0) {
        printf("\n%8s  %-8s  %5s  %-10s  %7s  %6s  %4s  %s\n", "LEASE", "JOB", "SLOTS", "PRICE",
               "RUNNING", "QUEUED", "OWED", "TERM LEFT");
    }
    json_array_foreach(leases, i, lease)
    {
        char money[UNITS_TEXT_SIZE];
        char left[UNITS_TEXT_SIZE];
        units_money_text(number(lease, "price_micro"), money);
        printf("%8lld  %-8.8s  %5lld  %-10s  %7lld  %6lld  %4lld  %s\n",
               (long long)number(lease, "lease"), text(lease, "job"),
               (long long)number(lease, "slots"), money, (long long)number(lease, "running"),
               (long long)number(lease, "queued"), (long long)number(lease, "owed"),
               duration(number(lease, "term_left_ms"), left));
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
    print_state(answer);
    print_asks(json_object_get(answer, "asks"));
    printf("%-12s %lld lease%s, %lld running, %lld queued, %lld result%s not accepted yet, %lld "
           "jail%s\n",
           "work", (long long)number(answer, "lease_count"), plural(number(answer, "lease_count")),
           (long long)number(answer, "running"), (long long)number(answer, "queued"),
           (long long)number(answer, "owed"), plural(number(answer, "owed")),
           (long long)number(answer, "jails"), plural(number(answer, "jails")));
    printf("%-12s %lld accepted since it started, %lld refused\n", "results",
           (long long)number(results, "accepted"), (long long)number(results, "refused"));
    if (number(answer, "given_ns") > 0) {
        units_slot_hours(number(answer, "given_ns"), span);
        printf("%-12s %s slot-hours for nothing, all in all\n", "given", span);
    }
    print_refuted(answer);
    if (json_is_object(error)) {
        printf("%-12s %s ago: %s\n", "last error", duration(now_ms - number(error, "at_ms"), span),
               text(error, "text"));
    }
    print_leases(answer);
}

int command_status(const struct command *command)
{
    const struct control_request request = {.command = CONTROL_STATUS};
    int status;
    struct command_known known;
    json_t *answer = ask(command, &request, ANSWER_MS, &status);
    if (is_true(json_object_get(answer, "market"), "connected") && command_known(command, &known)) {
        const int64_t now_ms = number(answer, "now_ms");
        (void)json_object_set_new(answer, "given_ns", json_integer(known.given_ns));
        (void)json_object_set_new(answer, "refuted", json_integer(known.refuted));
        (void)json_object_set_new(answer, "asks_closed_until_ms",
                                  known.withdrawn_ms > 0 ? json_integer(now_ms + known.withdrawn_ms)
                                                         : json_null());
    }
    if (answer != NULL && command->json) {
        print_json(answer);
    } else if (answer != NULL) {
        print_status(answer);
    }
    json_decref(answer);
    return status;
}

/* ---------------------------------------------------------------- pause and resume */

static void print_pause(const json_t *answer)
{
    int64_t running = number(answer, "running");
    printf("paused ");
    print_until(number(answer, "until_ms"));
    if (running > 0) {
        printf("; %lld subtask%s still run%s, status shows them", (long long)running,
               plural(running), running == 1 ? "s" : "");
    }
    printf("\n");
}

static int fail_frozen(void)
{
    return warn(EXIT_REFUSED, "the operator froze this account; no ask of it stands until that is "
                              "undone: ask the operator why");
}

int command_pause(const struct command *command)
{
    const struct control_request request = {
        .command = CONTROL_PAUSE, .now = command->now, .for_ms = command->for_ms};
    int status;
    json_t *answer = ask(command, &request, ANSWER_MS, &status);
    if (answer == NULL) {
        return status;
    }
    bool withdrawn = is_true(answer, "withdrawn");
    bool frozen = is_true(answer, "frozen");
    if (command->json) {
        print_json(answer);
    } else {
        print_pause(answer);
    }
    json_decref(answer);
    return frozen ? fail_frozen()
           : withdrawn
               ? EXIT_OK
               : warn(EXIT_UNREACHABLE,
                      "the broker has not confirmed that the asks are gone. The broker drops them "
                      "itself when it misses the agent, and the agent gives back what comes");
}

int command_resume(const struct command *command)
{
    const struct control_request request = {.command = CONTROL_RESUME};
    int status;
    json_t *answer = ask(command, &request, ANSWER_MS, &status);
    if (answer == NULL) {
        return status;
    }
    bool offering = strcmp(text(answer, "state"), "offering") == 0;
    bool connected = is_true(answer, "connected");
    bool frozen = is_true(answer, "frozen");
    if (command->json) {
        print_json(answer);
    } else if (offering) {
        printf("offering again\n");
    }
    json_decref(answer);
    return frozen     ? fail_frozen()
           : offering ? EXIT_OK
                      : warn(connected ? EXIT_REFUSED : EXIT_UNREACHABLE,
                             "resumed, but not all asks stand yet; `bourse-provider status` and "
                             "`bourse-provider why` say more");
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
