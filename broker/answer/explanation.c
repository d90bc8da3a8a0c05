#include "broker/answer/explanation.h"

#include "base/text.h"
#include "broker/answer/hurdles.h"
#include "broker/answer/reason.h"
#include "formats/requirement.h"
#include "formats/value.h"
#include "protocol/reject.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *explanation_figure(const char *predicate, int64_t value, char ret_text[UNITS_TEXT_SIZE])
{
    char name[ATTRIBUTE_NAME_SIZE];
    predicate += strncmp(predicate, "not ", 4) == 0 ? 4 : 0;
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(predicate, " "), predicate);
    requirement_figure(name, value, ret_text);
    return ret_text;
}

/* Rewrites "memory in (1073741824, ...)". Returns false when the text is no list of numbers. */
static bool list_figures(char *text, size_t capacity)
{
    char whole[160];
    char *at = strstr(text, " in (");
    if (at == NULL || (at[5] != '-' && (at[5] < '0' || at[5] > '9')) ||
        strlen(text) >= sizeof whole) {
        return false;
    }
    memcpy(whole, text, strlen(text) + 1);
    const char *from = whole + (at - text) + 5;
    size_t used = (size_t)(at - text) + 5;
    while (*from != '\0' && used < capacity) {
        char *end;
        char figure[UNITS_TEXT_SIZE];
        long long value = strtoll(from, &end, 10);
        const size_t rest = strcspn(end, "-0123456789");
        used += (size_t)snprintf(text + used, capacity - used, "%s%.*s",
                                 end == from ? "" : explanation_figure(whole, value, figure),
                                 (int)rest, end);
        from = end + rest;
    }
    return true;
}

void explanation_predicate(char *text, size_t capacity)
{
    char *number = strrchr(text, ' ');
    char *end = NULL;
    char figure[UNITS_TEXT_SIZE];
    if (list_figures(text, capacity)) {
        return;
    }
    long long value = number == NULL ? 0 : strtoll(number + 1, &end, 10);
    if (number != NULL && end != number + 1 && *end == '\0') {
        (void)snprintf(number + 1, capacity - (size_t)(number + 1 - text), "%s",
                       explanation_figure(text, value, figure));
    }
}

static uint32_t worst_predicate(const struct exchange_explanation *row)
{
    uint32_t worst = 0;
    for (uint32_t i = 1; i < row->predicate_count; i++) {
        worst = row->predicates[i].failing > row->predicates[worst].failing ? i : worst;
    }
    return worst;
}

/* Returns the predicate that most named devices fail on. Returns predicate_count when they
 * fail on none, or when any device fits. */
static uint32_t worst_of_named(const struct exchange_explanation *row)
{
    uint32_t worst = row->predicate_count;
    for (uint32_t i = 0; i < row->predicate_count; i++) {
        const uint32_t failing = row->predicates[i].named_failing;
        if (failing > (worst < row->predicate_count ? row->predicates[worst].named_failing : 0)) {
            worst = i;
        }
    }
    return row->fitting == 0 ? worst : row->predicate_count;
}

/* Returns true for an order that is filled at once or dropped, so it never waits. */
static bool is_gone_at_once(const struct exchange_explanation *row)
{
    return row->is_asked && row->refusal == 0 && row->starts_at_micro < 0 &&
           (row->type == EXCHANGE_IOC || row->type == EXCHANGE_FOK);
}

/* Writes "; 2 are simulated and not asked for". Adds how to ask when nothing else keeps these
 * devices from fitting and no other device fits. */
static void simulated_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    const bool would_do = row->fitting == 0 && row->simulated_fitting > 0;
    ret_text[0] = '\0';
    if (row->simulated > 0) {
        (void)snprintf(ret_text, capacity, "; %u %s simulated and not asked for%s", row->simulated,
                       row->simulated == 1 ? "is" : "are",
                       would_do ? ": add `simulated = true` (in a map `simulated: true`)" : "");
    }
}

/* Writes "0 of 43 devices fit; the one device that the needs name fails on executor = "tensor"".
 * Only devices of the kind, instrument and label in the needs are counted as failing. */
static int named_text(const struct exchange_explanation *row, uint32_t worst, char *ret_text,
                      size_t capacity)
{
    char named[64];
    const uint32_t failing = row->predicates[worst].named_failing;
    if (row->named == 1) {
        (void)snprintf(named, sizeof named, "the one device that the needs name fails");
    } else if (failing == row->named) {
        (void)snprintf(named, sizeof named, "the %u devices that the needs name fail", row->named);
    } else {
        (void)snprintf(named, sizeof named, "%u of the %u devices that the needs name fail",
                       failing, row->named);
    }
    return snprintf(ret_text, capacity, "0 of %u device%s fit%s; %s on %s", row->devices,
                    text_plural(row->devices), text_verb_ending(row->devices), named,
                    row->predicates[worst].text);
}

/* Writes "3 of 41 devices fit; 30 fail on memory >= 40.0 GiB (best 24.0 GiB)". */
static size_t fitting_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    char simulated[128];
    char best[UNITS_TEXT_SIZE] = "";
    uint32_t worst = worst_predicate(row);
    const char *verb = text_verb_ending(row->devices == 1 ? 1 : row->fitting);
    int length;
    simulated_text(row, simulated, sizeof simulated);
    if (row->predicate_count == 0 || row->predicates[worst].failing == 0) {
        length = snprintf(ret_text, capacity, "%u of %u device%s fit%s%s", row->fitting,
                          row->devices, text_plural(row->devices), verb, simulated);
    } else if (row->predicates[worst].is_name && worst_of_named(row) < row->predicate_count) {
        length = named_text(row, worst_of_named(row), ret_text, capacity);
    } else {
        if (row->predicates[worst].has_best) {
            (void)explanation_figure(row->predicates[worst].text, row->predicates[worst].best,
                                     best);
        }
        length = snprintf(
            ret_text, capacity, "%u of %u device%s fit%s; %u fail%s on %s%s%s%s%s", row->fitting,
            row->devices, text_plural(row->devices), verb, row->predicates[worst].failing,
            text_verb_ending(row->predicates[worst].failing), row->predicates[worst].text,
            best[0] != '\0' ? " (best " : "", best, best[0] != '\0' ? ")" : "", simulated);
    }
    return length < 0 ? 0 : (size_t)length < capacity ? (size_t)length : capacity - 1;
}

/* Describes a waiting bid that would be refused with the limit at which it could be filled. */
static void own_first_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    char price[UNITS_TEXT_SIZE];
    char limit[VALUE_TEXT_SIZE];
    ret_text[0] = '\0';
    if (row->past_own_micro >= 0) {
        units_money_text(row->own_device_micro, price);
        hurdle_limit_text(row, row->past_own_micro, limit);
        (void)snprintf(ret_text, capacity,
                       "a limit of %s would be refused with SELF_MATCH: this account's own ask of "
                       "%.40s at %s comes first; `bourse order cancel` that ask, then this limit "
                       "fills",
                       limit, row->own_device, price);
    }
}

/* Describes a job that asks for no further devices, or for none now. */
static void sated_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    char rest[160] = "";
    const uint32_t running = row->work.running - row->work.queued;
    const uint32_t blocked = row->work.blocked;
    const uint32_t checking = row->work.checking;
    size_t used = 0;
    if (row->work.queued > 0) {
        used += (size_t)snprintf(rest + used, sizeof rest - used, ", %u queued there",
                                 row->work.queued);
    }
    if (checking > 0) {
        used += (size_t)snprintf(rest + used, sizeof rest - used, ", %u %s checked", checking,
                                 checking == 1 ? "is" : "are");
    }
    if (blocked > 0) {
        (void)snprintf(rest + used, sizeof rest - used, ", %u wait%s for other subtasks", blocked,
                       blocked == 1 ? "s" : "");
    }
    const char *subtasks = running == 1 ? "subtask" : "subtasks";
    const char *of = row->work.is_all ? "" : " of this part";
    if (row->work.is_closing) {
        (void)snprintf(ret_text, capacity,
                       "the job is ending and buys nothing more; %u of its subtasks still run%s",
                       running, running == 1 ? "s" : "");
    } else if (row->work.waiting > 0 && row->work.has_order) {
        (void)snprintf(ret_text, capacity,
                       "%u %s%s run%s%s; the other %u wait%s for these: the job has all the slots "
                       "that it asked for at a time",
                       running, subtasks, of, running == 1 ? "s" : "", rest, row->work.waiting,
                       row->work.waiting == 1 ? "s" : "");
    } else if (row->work.waiting > 0) {
        (void)snprintf(ret_text, capacity,
                       "%u %s%s run%s%s; %u wait%s for these: the job gets no slots beyond those "
                       "that it got at once",
                       running, subtasks, of, running == 1 ? "s" : "", rest, row->work.waiting,
                       row->work.waiting == 1 ? "s" : "");
    } else if (running + checking + blocked > 0) {
        (void)snprintf(ret_text, capacity, "%u %s%s run%s%s; nothing waits for a device", running,
                       subtasks, of, running == 1 ? "s" : "", rest);
    } else {
        (void)snprintf(ret_text, capacity, "nothing%s is left to do", of);
    }
}

/* Writes the reason beside which no other counts. Returns false when there is none. */
static bool only_reason(const struct exchange_explanation *row, const char *departed,
                        char *ret_text, size_t capacity)
{
    if (row->has_ended) {
        (void)snprintf(
            ret_text, capacity,
            "the job has ended; `bourse ps` shows how, and `bourse resume` runs again what "
            "is missing");
    } else if (row->refusal == REJECT_FROZEN) {
        char reason[REASON_TEXT_SIZE];
        reason_text(row->refused_why, reason);
        (void)snprintf(ret_text, capacity,
                       "the operator froze this account%s: the market takes none of its jobs until "
                       "the operator ends the freeze",
                       reason);
    } else if (row->work.is_sated) {
        sated_text(row, ret_text, capacity);
    } else if (row->devices == 0 && departed[0] != '\0') {
        (void)snprintf(ret_text, capacity,
                       "no device is offered now; %s: wait for that, or start a provider%s",
                       departed,
                       row->quiet_agents == 0 ? ""
                                              : " (its owner ends a pause by `bourse-provider "
                                                "resume`)");
    } else if (row->devices == 0 && row->quiet_agents > 0) {
        const bool is_one = row->quiet_agents == 1;
        (void)snprintf(ret_text, capacity,
                       "no device is offered now: %s paused, or %s no device to offer; on that "
                       "machine, `bourse-provider status` says which, and `bourse-provider resume` "
                       "ends a pause",
                       is_one ? "the one agent that is connected is"
                              : "all agents that are connected are",
                       is_one ? "has" : "have");
    } else if (row->devices == 0) {
        (void)snprintf(ret_text, capacity, "no device is offered by anyone yet; start a provider");
    } else if (row->own + row->judges > 0 && row->own + row->judges == row->affordable &&
               row->fills_at_micro >= 0 && row->rate == RATE_NONE) {
        const bool is_check = row->own > 0;
        char price[UNITS_TEXT_SIZE];
        units_money_text(row->fills_at_micro, price);
        (void)snprintf(
            ret_text, capacity,
            "another %s asks %s per slot-hour, above the cap; the devices within the cap "
            "%s; `bourse cancel` the job, then `bourse resume --cap %s`",
            is_check ? "referee" : "maker", price,
            is_check ? "made the results that wait to be checked"
                     : "judged the results that wait to be made again",
            price);
    } else {
        return false;
    }
    return true;
}

/* Writes what stands before the devices: a halt, and subtasks that run. */
static size_t state_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    size_t used = 0;
    if (row->is_halted) {
        char reason[REASON_TEXT_SIZE];
        reason_text(row->halted_why, reason);
        used = (size_t)snprintf(ret_text, capacity, "the operator halted the market%s; ", reason);
    }
    if (row->work.is_all && row->work.running > 0) {
        const uint32_t running = row->work.running - row->work.queued;
        used += (size_t)snprintf(
            ret_text + used, capacity - used, "%u subtask%s run%s and %u wait%s; ", running,
            text_plural(running), running == 1 ? "s" : "", row->work.waiting + row->work.queued,
            row->work.waiting + row->work.queued == 1 ? "s" : "");
    }
    return used;
}

/* Writes what is to be said of devices of the job's own owner. */
static void own_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    own_first_text(row, ret_text, capacity);
    if (ret_text[0] == '\0' && row->own_devices > 0 && row->refusal == 0 &&
        row->starts_at_micro < 0) {
        (void)snprintf(ret_text, capacity,
                       "%u more device%s this account's own, and no order trades with its owner",
                       row->own_devices, row->own_devices == 1 ? " is" : "s are");
    }
}

/* Writes how many of several devices that fit are of providers that the operator froze. */
static void frozen_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    char reason[REASON_TEXT_SIZE];
    ret_text[0] = '\0';
    if (row->frozen > 0 && row->frozen < row->fitting && row->starts_at_micro < 0) {
        reason_text(row->frozen_why, reason);
        (void)snprintf(ret_text, capacity, "the operator froze the provider%s of %u of them%s",
                       text_plural(row->frozen), row->frozen, reason);
    }
}

/* Adds a part of the sentence, if the part says something. */
static size_t add_part(const char *part, char *text, size_t used, size_t capacity)
{
    if (part[0] == '\0' || used >= capacity) {
        return used;
    }
    const int length = snprintf(text + used, capacity - used, "; %s", part);
    return used + (length < 0 ? 0 : (size_t)length);
}

/* Writes what helps a bid that no device fits and no change fills. Machine code, of a program or an
 * image, runs on no other architecture. */
static void unfit_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    for (uint32_t i = 0; i < row->predicate_count; i++) {
        if (row->predicates[i].failing == row->devices - row->simulated &&
            strncmp(row->predicates[i].text, "arch ", 5) == 0) {
            (void)snprintf(ret_text, capacity,
                           "the job's image or program needs a provider with %s: wait for one, or "
                           "take an image or program for another architecture",
                           row->predicates[i].text);
            return;
        }
    }
    (void)snprintf(ret_text, capacity, "ask for less, or wait for other devices");
}

/* Writes one line: how far the bid gets, and the smallest change that would fill the bid. */
static void explain_text(const struct exchange_explanation *row, const char *departed,
                         char *ret_text, size_t capacity)
{
    char part[LIMIT_TEXT_BYTES];
    if (only_reason(row, departed, ret_text, capacity)) {
        return;
    }
    size_t used = state_text(row, ret_text, capacity);
    used += fitting_text(row, ret_text + used, capacity - used);
    frozen_text(row, part, sizeof part);
    used = add_part(part, ret_text, used, capacity);
    hurdle_text(row, part, sizeof part);
    used = add_part(part, ret_text, used, capacity);
    if (row->free == 0 && row->starts_at_micro < 0 && row->refusal == 0) {
        used = add_part(departed, ret_text, used, capacity);
    }
    if (is_gone_at_once(row)) {
        used = add_part("the job would be cancelled at once", ret_text, used, capacity);
    }
    own_text(row, part, sizeof part);
    used = add_part(part, ret_text, used, capacity);
    smallest_change_text(&row->smallest_change, part, sizeof part);
    if (part[0] == '\0' && row->fitting == 0 && row->simulated_fitting == 0) {
        unfit_text(row, part, sizeof part);
    }
    (void)add_part(part, ret_text, used, capacity);
}

/* Adds the predicate `simulated = false`, which every requirement has unless it says otherwise. The
 * text counts the simulated devices apart, so the predicate is added after the text is made. */
static void add_simulated(struct exchange_explanation *row)
{
    const uint32_t at = row->predicate_count;
    if (row->simulated > 0 && at < REQUIREMENT_NODES_MAX) {
        row->predicate_count++;
        (void)snprintf(row->predicates[at].text, sizeof row->predicates[at].text,
                       "simulated = false");
        row->predicates[at].failing = row->simulated;
    }
}

void explanation_age(struct explanation *explanation, const struct exchange *exchange,
                     int64_t log_ns)
{
    const int64_t quiet_ns = log_ns - exchange_log_time_ns(exchange);
    if (explanation->row.silent_ns > 0 && quiet_ns > 0) {
        explanation->row.silent_ns += quiet_ns;
    }
}

bool explanation_to_wire(struct explanation *explanation)
{
    struct exchange_explanation *row = &explanation->row;
    assert(row->predicate_count <= REQUIREMENT_NODES_MAX);
    for (uint32_t i = 0; i < row->predicate_count; i++) {
        explanation_predicate(row->predicates[i].text, sizeof row->predicates[i].text);
    }
    explain_text(row, explanation->departed, explanation->text, sizeof explanation->text);
    add_simulated(row);
    Bourse__V1__Explanation *wire = &explanation->wire;
    bourse__v1__explanation__init(wire);
    wire->devices = row->devices;
    wire->fitting = row->fitting;
    wire->asking = row->asking;
    wire->affordable = row->affordable;
    wire->free = row->free;
    wire->text = explanation->text;
    wire->has_fills_at_micro = row->fills_at_micro >= 0;
    wire->fills_at_micro = row->fills_at_micro;
    for (uint32_t i = 0; i < row->predicate_count; i++) {
        Bourse__V1__ExplainPredicate *predicate = &explanation->predicates[i];
        bourse__v1__explain_predicate__init(predicate);
        predicate->text = explanation->row.predicates[i].text;
        predicate->failing = row->predicates[i].failing;
        predicate->has_best = row->predicates[i].has_best;
        predicate->best = row->predicates[i].best;
        explanation->pointers[i] = predicate;
    }
    wire->n_predicates = row->predicate_count;
    wire->predicates = explanation->pointers;
    wire->has_ahead = row->has_ahead;
    wire->ahead = row->ahead;
    wire->has_ahead_partial = row->is_ahead_partial;
    wire->ahead_partial = row->is_ahead_partial;
    wire->has_conditional = row->for_others + row->closed > 0;
    wire->conditional = row->for_others + row->closed;
    wire->has_rate = row->rate != RATE_NONE;
    wire->rate = row->rate;
    wire->has_takes_at_micro = row->takes_at_micro >= 0;
    wire->takes_at_micro = row->takes_at_micro;
    wire->has_refusal = row->refusal != 0;
    wire->refusal = row->refusal;
    wire->has_starts_at_micro = row->starts_at_micro >= 0;
    wire->starts_at_micro = row->starts_at_micro;
    wire->has_starts_with_lease = row->starts_with_lease;
    wire->starts_with_lease = row->starts_with_lease;
    wire->has_own_devices = row->own_devices > 0;
    wire->own_devices = row->own_devices;
    return smallest_change_to_wire(&row->smallest_change, &explanation->smallest_change, wire);
}

void explanation_free(struct explanation *explanation)
{
    smallest_change_wire_fini(&explanation->smallest_change);
    free(explanation);
}
