/* provider/command/market.c holds why and earnings, which print the market's answers. Each has a
 * connection of its own under the agent's key, so it needs no running agent. */
#include "base/array.h"
#include "base/text.h"
#include "consumer/client/bourse.h"
#include "formats/units.h"
#include "provider/command/command.h"
#include "provider/control.h"
#include "provider/privilege.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCAL_MS = 3000, MARKET_MS = 15000, VERSION = 1 };

/* ---------------------------------------------------------------- reaching the market */

static int fail_market(const struct bourse_error *error)
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
        problem_set(ret_problem,
                    "%s is of no market yet: `bourse-provider join INVITE` joins one; --dir names "
                    "another folder",
                    config.folder);
        return NULL;
    }
    struct bourse_options options = {.market = config.market,
                                     .key = key,
                                     .program = "bourse-provider " BOURSE_VERSION,
                                     .timeout_ms = timeout_ms};
    struct bourse *bourse = NULL;
    if (!bourse_open(&options, &bourse, &error)) {
        *ret_status = bourse_exit_status(error.status);
        problem_set(ret_problem, "%s", error.text);
        return NULL;
    }
    return bourse;
}

static struct bourse *open_market(const struct command *command, int *ret_status)
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
                                            .withdrawn_ms = why.standing.withdrawn_ms};
    }
    return good;
}

/* Takes the value over. */
static void print_json(json_t *value)
{
    (void)json_object_set_new(value, "version", json_integer(VERSION));
    (void)json_dumpf(value, stdout, JSON_COMPACT);
    (void)fputc('\n', stdout);
    json_decref(value);
}

static const char *money(int64_t micro, char ret_text[UNITS_TEXT_SIZE])
{
    units_money_text(micro, ret_text);
    return ret_text;
}

static const char *printable(const char *text)
{
    static char copy[BOURSE_TEXT_SIZE];
    bourse_printable(text, copy, sizeof copy);
    return copy;
}

/* ---------------------------------------------------------------- why: the agent's own side */

/* Returns the agent's status, or NULL when it does not run or belongs to another user. */
static json_t *ask_agent(const struct command *command)
{
    const struct control_request request = {.command = CONTROL_STATUS};
    struct problem problem;
    char folder[CONFIG_PATH_SIZE];
    json_t *answer = NULL;
    if (!setup_folder(&command->setup, folder, sizeof folder, &problem) ||
        control_ask(folder, &request, LOCAL_MS, &answer, &problem) != CONTROL_OK ||
        !json_is_true(json_object_get(answer, "ok"))) {
        json_decref(answer);
        return NULL;
    }
    return answer;
}

static const char *state_of(const json_t *agent)
{
    const char *state = json_string_value(json_object_get(agent, "state"));
    return agent == NULL ? "not running" : state == NULL ? "unknown" : state;
}

static bool has_cancelled(const json_t *agent)
{
    size_t index;
    const json_t *ask;
    json_array_foreach(json_object_get(agent, "asks"), index, ask)
    {
        if (json_is_true(json_object_get(ask, "cancelled"))) {
            return true;
        }
    }
    return false;
}

/* Prints each refused ask. Returns false when there is none. */
static bool print_refused_asks(const json_t *agent)
{
    bool is_refused = false;
    size_t i;
    const json_t *ask;
    json_array_foreach(json_object_get(agent, "asks"), i, ask)
    {
        const char *refusal = json_string_value(json_object_get(ask, "refusal"));
        if (refusal != NULL) {
            printf("%-10s an ask is refused, and tried again: %s\n", "", refusal);
            is_refused = true;
        }
    }
    return is_refused;
}

static json_t *refused_asks_json(const json_t *agent)
{
    json_t *list = json_array();
    size_t i;
    const json_t *ask;
    json_array_foreach(json_object_get(agent, "asks"), i, ask)
    {
        json_t *refusal = json_object_get(ask, "refusal");
        if (refusal != NULL) {
            (void)json_array_append_new(list, json_pack("{s:O, s:O}", "device",
                                                        json_object_get(ask, "device"), "refusal",
                                                        refusal));
        }
    }
    return list;
}

/* `frozen` is the market's word on the account, which the agent may not have heard yet. */
static void print_agent(const json_t *agent, bool frozen)
{
    static const char *const words[][2] = {
        {"not running", "no agent runs here: start it with `bourse-provider run`"},
        {"paused", "the agent is paused: `bourse-provider resume` ends it"},
        {"disconnected", "the agent is not connected to the broker"},
        {"disk-full", "the disk of the agent's folder is full"},
        {"draining", "the agent drains, and then ends"},
        {"leaving", "the agent is ending"},
        {"asking", "the agent runs; not all of its asks stand"},
        {"cancelled", "the agent runs; an ask was cancelled by hand: `bourse-provider resume` "
                      "places it again"},
        {"frozen", "the agent runs; the operator froze its account, and no ask of it stands"},
        {"offering", "the agent runs, and its asks stand"},
    };
    const char *error =
        json_string_value(json_object_get(json_object_get(agent, "last_error"), "text"));
    const char *state = state_of(agent);
    if (strcmp(state, "offering") == 0 || strcmp(state, "asking") == 0) {
        state = frozen ? "frozen" : has_cancelled(agent) ? "cancelled" : state;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(state, words[i][0]) == 0) {
            printf("%-10s %s\n", "agent", words[i][1]);
        }
    }
    if (!print_refused_asks(agent) && error != NULL && strcmp(state_of(agent), "offering") != 0) {
        printf("%-10s last error: %s\n", "", error);
    }
}

/* ---------------------------------------------------------------- why: the rivals */

struct rivals { /* devices of others with the same instrument */
    const struct bourse_why *why;
    char account[BOURSE_HEX32_SIZE];
    uint32_t asks, cheaper, cheaper_slots; /* cheaper_slots: free now */
    int64_t best_micro;
    char best[BOURSE_NAME_SIZE];
};

static bool meet(void *context, const struct bourse_device *device)
{
    struct rivals *rivals = context;
    if (strcmp(device->account, rivals->account) == 0 || device->price_micro < 0) {
        return true;
    }
    rivals->asks++;
    if (device->price_micro < rivals->why->price_micro) {
        rivals->cheaper++;
        rivals->cheaper_slots += device->free;
    }
    if (rivals->best_micro < 0 || device->price_micro < rivals->best_micro) {
        rivals->best_micro = device->price_micro;
        (void)snprintf(rivals->best, sizeof rivals->best, "%s", device->provider);
    }
    return true;
}

static bool find_instrument(void *context, const struct bourse_device *device)
{
    struct bourse_device *found = context;
    bool is_it = strcmp(device->id, found->id) == 0 && strcmp(device->account, found->account) == 0;
    if (is_it) {
        memcpy(found->instrument, device->instrument, sizeof found->instrument);
    }
    return !is_it;
}

/* Finds devices of the same instrument. Returns false when the market does not answer. */
static bool find_rivals(struct bourse *bourse, const char *account, const struct bourse_why *why,
                        struct rivals *ret_rivals, struct bourse_error *error)
{
    static struct bourse_device own;
    char needs[BOURSE_NAME_SIZE + 32];
    *ret_rivals = (struct rivals){.why = why, .best_micro = -1};
    (void)snprintf(ret_rivals->account, sizeof ret_rivals->account, "%s", account);
    own = (struct bourse_device){.price_micro = -1};
    memcpy(own.id, why->device, sizeof own.id);
    (void)snprintf(own.account, sizeof own.account, "%s", account);
    if (!bourse_devices(bourse, find_instrument, &own, error)) {
        return false;
    }
    (void)snprintf(needs, sizeof needs, "instrument = %s", own.instrument);
    return own.instrument[0] == '\0' ||
           bourse_devices_fitting(bourse, needs, meet, ret_rivals, error);
}

static void print_rivals(const struct rivals *rivals)
{
    char ours[UNITS_TEXT_SIZE];
    char best[UNITS_TEXT_SIZE];
    if (rivals->why->price_micro < 0) {
        return;
    }
    printf("%-10s %s per slot-hour; ", "price", money(rivals->why->price_micro, ours));
    if (rivals->asks == 0) {
        printf("nobody else asks for a device of this instrument\n");
    } else if (rivals->cheaper == 0) {
        printf("nobody is cheaper; the next asks %s\n", money(rivals->best_micro, best));
    } else {
        printf("%u of %u other%s %s cheaper, with %u slot%s free; the cheapest is %s at %s\n",
               rivals->cheaper, rivals->asks, text_plural(rivals->asks),
               rivals->cheaper == 1 ? "is" : "are", rivals->cheaper_slots,
               text_plural(rivals->cheaper_slots), printable(rivals->best),
               money(rivals->best_micro, best));
    }
}

/* ---------------------------------------------------------------- why: the output */

static void print_refusals(const struct bourse_why *why)
{
    for (uint32_t i = 0; i < why->refusal_count; i++) {
        const struct bourse_why_refusal *refusal = &why->refusals[i];
        char limit[UNITS_TEXT_SIZE];
        printf("%-10s %u bid%s at up to %s: %s", i == 0 ? "refusing" : "", refusal->bids,
               refusal->bids == 1 ? "" : "s", money(refusal->limit_micro, limit),
               printable(refusal->predicate));
        if (refusal->changes > 1) {
            printf(", and %u more", refusal->changes - 1);
        }
        printf("\n");
    }
}

static void print_why(const struct bourse_why *why, const struct rivals *rivals)
{
    if (why->device[0] != '\0') {
        printf("%-10s %s, %u slot%s, %u leased\n", "device",
               why->label[0] == '\0' ? why->device : printable(why->label), why->slots,
               text_plural(why->slots), why->leased);
    }
    printf("%-10s %s\n", "market", printable(why->text));
    if (why->standing.refuted > 0 && why->standing.withdrawn_ms == 0) {
        printf("%-10s %u result%s of this account w%s refuted; with the next its asks are closed "
               "for a time\n",
               "refuted", why->standing.refuted, text_plural(why->standing.refuted),
               why->standing.refuted == 1 ? "as" : "ere");
    }
    print_rivals(rivals);
    if (why->bids > 0) {
        printf("%-10s %u wait%s; %u fit this device, %u of those in its term, %u of those at its "
               "price%s\n",
               "bids", why->bids, why->bids == 1 ? "s" : "", why->fitting, why->lasting,
               why->paying, why->partial ? "; there are more" : "");
    }
    print_refusals(why);
    if (why->paid_micro >= 0) {
        char paid[UNITS_TEXT_SIZE];
        printf("%-10s half of what was let of this instrument in the last 24 h, by %u trade%s, was "
               "let at %s or less\n",
               "paid", why->paid_trades, text_plural(why->paid_trades),
               money(why->paid_micro, paid));
    }
}

static json_t *price_json(int64_t micro)
{
    return micro < 0 ? json_null() : json_integer(micro);
}

static json_t *why_json(const struct bourse_why *why, const struct rivals *rivals)
{
    json_t *refusals = json_array();
    for (uint32_t i = 0; i < why->refusal_count; i++) {
        const struct bourse_why_refusal *from = &why->refusals[i];
        (void)json_array_append_new(
            refusals,
            json_pack("{s:s, s:I, s:I, s:I, s:o}", "predicate", from->predicate, "changes",
                      (json_int_t)from->changes, "bids", (json_int_t)from->bids, "limit_micro",
                      (json_int_t)from->limit_micro, "have",
                      from->has_have ? json_integer(from->have) : json_null()));
    }
    json_t *others =
        json_pack("{s:I, s:I, s:I, s:o, s:s}", "asks", (json_int_t)rivals->asks, "cheaper",
                  (json_int_t)rivals->cheaper, "cheaper_slots", (json_int_t)rivals->cheaper_slots,
                  "best_micro", price_json(rivals->best_micro), "best", rivals->best);
    json_t *paid =
        why->paid_micro < 0
            ? json_null()
            : json_pack("{s:I, s:I, s:I}", "middle_micro", (json_int_t)why->paid_micro, "trades",
                        (json_int_t)why->paid_trades, "since_ms", (json_int_t)why->paid_since_ms);
    return json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, "
        "s:I, s:I, s:I, s:b, s:o, s:o, s:I, s:I}",
        "device", why->device, "label", why->label, "text", why->text, "slots",
        (json_int_t)why->slots, "leased", (json_int_t)why->leased, "free", (json_int_t)why->free,
        "price_micro", price_json(why->price_micro), "bids", (json_int_t)why->bids, "fitting",
        (json_int_t)why->fitting, "lasting", (json_int_t)why->lasting, "paying",
        (json_int_t)why->paying, "best_limit_micro", price_json(why->best_limit_micro),
        "fills_at_micro", price_json(why->fills_at_micro), "ahead",
        why->ahead < 0 ? json_null() : json_integer(why->ahead), "paid", paid, "daily_ms",
        (json_int_t)why->daily_ms, "used_ms", (json_int_t)why->used_ms, "promised_ms",
        (json_int_t)why->promised_ms, "partial", (int)why->partial, "refusals", refusals, "others",
        others, "refuted", (json_int_t)why->standing.refuted, "withdrawn_ms",
        (json_int_t)why->standing.withdrawn_ms);
}

/* Asks about one device after the other; the first answer says how many there are. */
static bool why_devices(struct bourse *bourse, const char *account, json_t *ret_devices,
                        struct bourse_why *ret_last, struct bourse_error *error)
{
    static struct bourse_why why; /* large */
    uint32_t number = 0;
    do {
        struct rivals rivals;
        if (!bourse_why(bourse, number, &why, error)) {
            /* The list became shorter meanwhile: the agent has just gone, or has another list. */
            return number > 0 && error->status == BOURSE_NOT_FOUND;
        }
        if (!find_rivals(bourse, account, &why, &rivals, error)) {
            return false;
        }
        if (ret_devices == NULL) {
            print_why(&why, &rivals);
        } else if (why.devices > 0) {
            (void)json_array_append_new(ret_devices, why_json(&why, &rivals));
        }
        *ret_last = why;
    } while (++number < why.devices);
    return true;
}

int command_why(const struct command *command)
{
    static struct bourse_why last; /* large */
    struct bourse_error error = {.status = BOURSE_OK};
    struct bourse_account account;
    int status;
    json_t *agent = ask_agent(command); /* before root becomes a user who may not ask */
    struct bourse *bourse = open_market(command, &status);
    if (bourse == NULL) {
        json_decref(agent);
        return status;
    }
    json_t *devices = command->json ? json_array() : NULL;
    bool good = bourse_whoami(bourse, &account, &error) && bourse_why(bourse, 0, &last, &error);
    if (!command->json) {
        print_agent(agent, good && last.frozen);
    }
    good = good && why_devices(bourse, account.key, devices, &last, &error);
    if (good && command->json) {
        print_json(json_pack("{s:s, s:o, s:s, s:b, s:b, s:s, s:O}", "agent", state_of(agent),
                             "refused_asks", refused_asks_json(agent), "provider", last.state,
                             "frozen", (int)last.frozen, "halted", (int)last.halted, "text",
                             last.text, "devices", devices));
    }
    bourse_close(&bourse);
    json_decref(devices);
    json_decref(agent);
    return good ? EXIT_OK : fail_market(&error);
}

/* ---------------------------------------------------------------- earnings */

struct sum {
    char name[BOURSE_ID_SIZE];    /* a day, a job, a device */
    char label[BOURSE_NAME_SIZE]; /* label of a device on the market; else "" */
    int64_t paid_micro, fee_micro;
    int64_t given_ns; /* slot-time donated */
    uint64_t results;
};
struct sums {
    struct sum *rows;
    size_t count, capacity;
    size_t last; /* row that was added to before */
};
struct earnings {
    int64_t from_ms; /* start, by the market's clock */
    struct sums days, jobs, devices;
    struct sum all;
    bool is_out_of_memory;
};

/* Returns the sum of that name, made if missing, or NULL when memory is short. The walks go by
 * time, so the last row or the next is tried first. */
static struct sum *sum_of(struct sums *sums, const char *name)
{
    for (size_t near = sums->last; near < sums->count && near <= sums->last + 1; near++) {
        if (strcmp(sums->rows[near].name, name) == 0) {
            sums->last = near;
            return &sums->rows[near];
        }
    }
    size_t at = 0;
    while (at < sums->count && strcmp(sums->rows[at].name, name) != 0) {
        at++;
    }
    if (at == sums->count) {
        struct sum *rows = array_with_room(sums->rows, sums->count, &sums->capacity, sizeof *rows);
        if (rows == NULL) {
            return NULL;
        }
        sums->rows = rows;
        sums->rows[sums->count] = (struct sum){.results = 0};
        (void)snprintf(sums->rows[sums->count].name, BOURSE_ID_SIZE, "%s", name);
        sums->count++;
    }
    sums->last = at;
    return &sums->rows[at];
}

static void day_of(int64_t ms, char ret_day[BOURSE_ID_SIZE])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm utc;
    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(ret_day, BOURSE_ID_SIZE, "%Y-%m-%d", &utc) == 0) {
        (void)snprintf(ret_day, BOURSE_ID_SIZE, "?");
    }
}

static bool add(struct earnings *earnings, const struct bourse_entry *entry, uint64_t results)
{
    char day[BOURSE_ID_SIZE];
    day_of(entry->time_ms, day);
    struct sum *of[] = {&earnings->all, sum_of(&earnings->days, day),
                        sum_of(&earnings->jobs, entry->job),
                        sum_of(&earnings->devices, entry->device)};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        if (of[i] == NULL) {
            earnings->is_out_of_memory = true;
            return false;
        }
        of[i]->paid_micro += entry->amount_micro;
        of[i]->fee_micro += entry->fee_micro;
        of[i]->given_ns += entry->given_ns;
        of[i]->results += results;
    }
    return true;
}

/* A provider earns the captures that came in; other entries are spending and grants. */
static bool take_entry(void *context, const struct bourse_entry *entry)
{
    struct earnings *earnings = context;
    if (entry->time_ms < earnings->from_ms) {
        return false;
    }
    return strcmp(entry->kind_text, "capture") != 0 || entry->amount_micro <= 0 ||
           add(earnings, entry, 0);
}

/* Counts accepted results even when their pay was rounded down to nothing, and donated time even
 * when the program failed. */
static bool take_result(void *context, const struct bourse_entry *entry)
{
    struct earnings *earnings = context;
    return entry->time_ms >= earnings->from_ms && add(earnings, entry, entry->failed ? 0 : 1);
}

struct naming {
    struct sums *devices;
    char account[BOURSE_HEX32_SIZE];
};

static bool name_device(void *context, const struct bourse_device *device)
{
    struct naming *naming = context;
    for (size_t i = 0; i < naming->devices->count; i++) {
        struct sum *sum = &naming->devices->rows[i];
        if (strcmp(sum->name, device->id) == 0 && strcmp(device->account, naming->account) == 0) {
            memcpy(sum->label, device->label, sizeof sum->label);
        }
    }
    return true;
}

/* Prints slot-hours only when some were given away. */
static void print_sums(const char *title, const struct sums *sums, bool with_given)
{
    printf("\n%-10s  %12s  %12s  %10s", title, "EARNED", "FEE", "RESULTS");
    printf(with_given ? "  %12s\n" : "\n", "GIVEN");
    for (size_t i = 0; i < sums->count; i++) {
        const struct sum *sum = &sums->rows[i];
        char paid[UNITS_TEXT_SIZE];
        char fee[UNITS_TEXT_SIZE];
        char given[UNITS_TEXT_SIZE];
        units_slot_hours(sum->given_ns, given);
        const char *name = sum->label[0] == '\0' ? sum->name : printable(sum->label);
        printf("%-10.*s  %12s  %12s  %10llu", sum->label[0] == '\0' ? 10 : 32, name,
               money(sum->paid_micro, paid), money(sum->fee_micro, fee),
               (unsigned long long)sum->results);
        printf(with_given ? "  %12s\n" : "\n", given);
    }
}

static void print_earnings(const struct earnings *earnings, int64_t available_micro)
{
    const struct sum *all = &earnings->all;
    char text[UNITS_TEXT_SIZE];
    char span[BOURSE_ID_SIZE] = "";
    if (earnings->from_ms > 0) {
        day_of(earnings->from_ms, span);
    }
    printf("%-10s %s for %llu results%s%s\n", "earned", money(all->paid_micro, text),
           (unsigned long long)all->results, span[0] == '\0' ? "" : " since ", span);
    printf("%-10s %s, the market's part of what consumers paid beside that\n", "fees",
           money(all->fee_micro, text));
    if (all->given_ns > 0) {
        units_slot_hours(all->given_ns, text);
        printf("%-10s %s slot-hours for nothing\n", "given", text);
    }
    printf("%-10s %s\n", "balance", money(available_micro, text));
    if (earnings->days.count > 0) {
        print_sums("DAY (UTC)", &earnings->days, all->given_ns > 0);
        print_sums("JOB", &earnings->jobs, all->given_ns > 0);
        print_sums("DEVICE", &earnings->devices, all->given_ns > 0);
    }
}

static json_t *sums_json(const struct sums *sums, const char *name)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sums->count; i++) {
        const struct sum *sum = &sums->rows[i];
        json_t *row =
            json_pack("{s:s, s:I, s:I, s:I, s:I}", name, sum->name, "earned_micro",
                      (json_int_t)sum->paid_micro, "fee_micro", (json_int_t)sum->fee_micro,
                      "results", (json_int_t)sum->results, "given_ns", (json_int_t)sum->given_ns);
        if (sum->label[0] != '\0') {
            (void)json_object_set_new(row, "label", json_string(sum->label));
        }
        (void)json_array_append_new(list, row);
    }
    return list;
}

static bool name_devices(struct bourse *bourse, const struct bourse_account *account,
                         struct earnings *earnings, struct bourse_error *error)
{
    struct naming naming = {.devices = &earnings->devices};
    (void)snprintf(naming.account, sizeof naming.account, "%s", account->key);
    return earnings->devices.count == 0 || bourse_devices(bourse, name_device, &naming, error);
}

static bool collect(struct bourse *bourse, const struct command *command, struct earnings *earnings,
                    struct bourse_balance *balance, struct bourse_error *error)
{
    struct bourse_account account;
    if (!bourse_whoami(bourse, &account, error)) {
        return false;
    }
    earnings->from_ms = command->since_ms == 0 || command->since_ms > account.log_time_ms
                            ? 0
                            : account.log_time_ms - command->since_ms;
    return bourse_balance(bourse, balance, error) &&
           bourse_provided(bourse, take_result, earnings, error) &&
           bourse_statement(bourse, 0, take_entry, earnings, error) &&
           name_devices(bourse, &account, earnings, error);
}

int command_earnings(const struct command *command)
{
    struct earnings earnings = {.from_ms = 0};
    struct bourse_balance balance = {.available_micro = 0};
    struct bourse_error error = {.status = BOURSE_OK};
    int status;
    struct bourse *bourse = open_market(command, &status);
    if (bourse == NULL) {
        return status;
    }
    bool good = collect(bourse, command, &earnings, &balance, &error);
    bourse_close(&bourse);
    status = EXIT_OK;
    if (earnings.is_out_of_memory) {
        status = command_fail(EXIT_FAILED, "out of memory");
    } else if (!good) {
        status = fail_market(&error);
    } else if (command->json) {
        print_json(json_pack(
            "{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "since_ms",
            (json_int_t)earnings.from_ms, "earned_micro", (json_int_t)earnings.all.paid_micro,
            "fee_micro", (json_int_t)earnings.all.fee_micro, "results",
            (json_int_t)earnings.all.results, "given_ns", (json_int_t)earnings.all.given_ns,
            "balance_micro", (json_int_t)balance.available_micro, "days",
            sums_json(&earnings.days, "day"), "jobs", sums_json(&earnings.jobs, "job"), "devices",
            sums_json(&earnings.devices, "device")));
    } else {
        print_earnings(&earnings, balance.available_micro);
    }
    free(earnings.days.rows);
    free(earnings.jobs.rows);
    free(earnings.devices.rows);
    return status;
}
