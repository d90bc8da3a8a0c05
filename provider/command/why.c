/* This file runs why, which tells why the market sends this machine no work. */
#include "base/text.h"
#include "consumer/client/bourse.h"
#include "formats/units.h"
#include "provider/command/command.h"
#include "provider/command/gpu_lines.h"
#include "provider/command/market.h"
#include "provider/control.h"
#include "provider/device/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCAL_MS = 3000 };

/* ---------------------------------------------------------------- the agent's own side */

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
        {"folder-missing", "a folder of the agent is gone and cannot be made again; "
                           "`bourse-provider status` says which"},
        {"network-spent", "the month's bytes of the network are used up"},
        {"in-use", "somebody uses the machine: `bourse-provider status` says who or what, and "
                   "`bourse-provider resume` offers in spite of it"},
        {"withheld", "no device may be offered now: `bourse-provider status` says why"},
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
    size_t i;
    const json_t *paused;
    json_array_foreach(json_object_get(agent, "paused_devices"), i, paused)
    {
        printf("%-10s the device %s is paused\n", "",
               json_string_value(json_object_get(paused, "device")));
    }
    gpu_lines_print_failing(json_object_get(agent, "failing"), 10);
    if (!print_refused_asks(agent) && error != NULL && strcmp(state_of(agent), "offering") != 0) {
        printf("%-10s last error: %s\n", "", error);
    }
}

/* ---------------------------------------------------------------- the rivals */

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
    printf("%-10s %s per slot-hour; ", "price", market_money(rivals->why->price_micro, ours));
    if (rivals->asks == 0) {
        printf("nobody else asks for a device of this instrument\n");
    } else if (rivals->cheaper == 0) {
        printf("nobody is cheaper; the next asks %s\n", market_money(rivals->best_micro, best));
    } else {
        printf("%u of %u other%s %s cheaper, with %u slot%s free; the cheapest is %s at %s\n",
               rivals->cheaper, rivals->asks, text_plural(rivals->asks),
               rivals->cheaper == 1 ? "is" : "are", rivals->cheaper_slots,
               text_plural(rivals->cheaper_slots), market_printable(rivals->best),
               market_money(rivals->best_micro, best));
    }
}

/* ---------------------------------------------------------------- the output */

static void print_refusals(const struct bourse_why *why)
{
    for (uint32_t i = 0; i < why->refusal_count; i++) {
        const struct bourse_why_refusal *refusal = &why->refusals[i];
        char limit[UNITS_TEXT_SIZE];
        printf("%-10s %u bid%s at up to %s: %s", i == 0 ? "refusing" : "", refusal->bids,
               refusal->bids == 1 ? "" : "s", market_money(refusal->limit_micro, limit),
               market_printable(refusal->predicate));
        if (refusal->changes > 1) {
            printf(", and %u more", refusal->changes - 1);
        }
        printf("\n");
    }
}

/* Prints what the broker found when it challenged the device's speed. */
static void print_challenge(const struct bourse_challenge *challenge)
{
    char day[PROBE_DAY_SIZE];
    if (challenge->at_ms == 0) {
        return;
    }
    probe_day(challenge->at_ms / 1000, day);
    printf("%-10s challenged on %s with a claim of %lld Mflop/s (gemm_fp32): %s", "speed", day,
           (long long)challenge->claimed_mflops, challenge->outcome);
    if (challenge->limit_mflops > 0) {
        printf("; no ask of a claim above %lld is taken", (long long)challenge->limit_mflops);
    }
    printf("\n");
}

static void print_why(const struct bourse_why *why, const struct rivals *rivals)
{
    if (why->device[0] != '\0') {
        printf("%-10s %s, %u slot%s, %u leased\n", "device",
               why->label[0] == '\0' ? why->device : market_printable(why->label), why->slots,
               text_plural(why->slots), why->leased);
    }
    printf("%-10s %s\n", "market", market_printable(why->text));
    if (why->standing.refuted > 0 && why->standing.withdrawn_ms == 0) {
        printf("%-10s %u result%s of this account w%s refuted; with the next its asks are closed "
               "for a time\n",
               "refuted", why->standing.refuted, text_plural(why->standing.refuted),
               why->standing.refuted == 1 ? "as" : "ere");
    }
    print_challenge(&why->challenge);
    print_rivals(rivals);
    if (why->bids > 0) {
        printf("%-10s %u wait%s; %u fit%s this device, %u of those in its term, %u of those at its "
               "price%s\n",
               "bids", why->bids, text_verb_ending(why->bids), why->fitting,
               text_verb_ending(why->fitting), why->lasting, why->paying,
               why->partial ? "; there are more" : "");
    }
    print_refusals(why);
    if (why->paid_micro >= 0) {
        char paid[UNITS_TEXT_SIZE];
        printf("%-10s half of what was let of this instrument in the last 24 h, by %u trade%s, was "
               "let at %s or less\n",
               "paid", why->paid_trades, text_plural(why->paid_trades),
               market_money(why->paid_micro, paid));
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
        "s:I, s:I, s:I, s:b, s:o, s:o, s:I, s:I, s:o}",
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
        (json_int_t)why->standing.withdrawn_ms, "challenge",
        json_pack("{s:s, s:I, s:I, s:I, s:I}", "outcome", why->challenge.outcome, "at_ms",
                  (json_int_t)why->challenge.at_ms, "claimed_mflops",
                  (json_int_t)why->challenge.claimed_mflops, "limit_mflops",
                  (json_int_t)why->challenge.limit_mflops, "closed_ms",
                  (json_int_t)why->challenge.closed_ms));
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
    struct bourse *bourse = market_open(command, &status);
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
        market_print_json(json_pack("{s:s, s:o, s:O?, s:s, s:b, s:b, s:s, s:O}", "agent",
                                    state_of(agent), "refused_asks", refused_asks_json(agent),
                                    "failing", json_object_get(agent, "failing"), "provider",
                                    last.state, "frozen", (int)last.frozen, "halted",
                                    (int)last.halted, "text", last.text, "devices", devices));
    }
    bourse_close(&bourse);
    json_decref(devices);
    json_decref(agent);
    return good ? EXIT_OK : market_fail(&error);
}
