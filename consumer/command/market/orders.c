/* This file runs order list, place, replace and cancel, for the account's own orders. */
#include "consumer/command/show.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "formats/limits.h"
#include "formats/units.h"
#include "protocol/reject.h"

#include <stdlib.h>
#include <string.h>

#define NOTICE_MS INT64_C(30000)
#define MINIMUM_RUN_MS INT64_C(300000)

/* ---------------------------------------------------------------- those that stand */

static json_t *json_order(const struct bourse_order *order)
{
    json_t *value = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "order", order->id, "side",
                              order->is_bid ? "bid" : "ask", "type", order->type,
                              order->is_bid ? "job" : "label", order->name, "price_micro",
                              (json_int_t)order->price_micro, "slots", (json_int_t)order->slots,
                              "place", (json_int_t)order->place);
    if (order->is_bid) {
        (void)json_object_set_new(value, "job_id", json_string(order->job));
        json_add_rate(value, order->rate);
    } else {
        (void)json_object_set_new(value, "device", json_string(order->device));
        (void)json_object_set_new(value, "free", json_integer((json_int_t)order->free));
        (void)json_object_set_new(value, "good_till_ms",
                                  json_integer((json_int_t)order->good_till_ms));
        (void)json_object_set_new(value, "max_term_ms",
                                  json_integer((json_int_t)order->max_term_ms));
        (void)json_object_set_new(value, "to", json_string(order->to));
        (void)json_object_set_new(value, "hours", json_string(order->hours));
        (void)json_object_set_new(value, "interruptible", json_boolean(order->interruptible));
        (void)json_object_set_new(value, "daily_ms", json_integer((json_int_t)order->daily_ms));
        if (order->daily_ms > 0) {
            (void)json_object_set_new(value, "left_ms", json_integer((json_int_t)order->left_ms));
        }
    }
    if (order->interruptible) {
        (void)json_object_set_new(value, "notice_ms", json_integer((json_int_t)order->notice_ms));
        (void)json_object_set_new(value, "minimum_run_ms",
                                  json_integer((json_int_t)order->minimum_run_ms));
    }
    return value;
}

static bool add_order(void *context, const struct bourse_order *order)
{
    struct listing *listing = context;
    if (listing->list != NULL) {
        return json_array_append_new(listing->list, json_order(order)) == 0;
    }
    if (listing->quiet) {
        (void)puts(order->id);
        return true;
    }
    char conditions[CONDITIONS_TEXT];
    char daily[CONDITIONS_TEXT] = "";
    if (order->daily_ms > 0) {
        (void)snprintf(daily, sizeof daily, "%s a day", cell_duration(order->daily_ms));
        (void)snprintf(daily + strlen(daily), sizeof daily - strlen(daily), ", %s left",
                       cell_time_remaining(order->left_ms));
    }
    const bool is_after = order->to[0] != '\0' || order->hours[0] != '\0';
    (void)snprintf(conditions, sizeof conditions, "%s%s%s%s%s%s", order->to[0] != '\0' ? "to " : "",
                   order->to, order->to[0] != '\0' && order->hours[0] != '\0' ? "; " : "",
                   order->hours, is_after && daily[0] != '\0' ? "; " : "", daily);
    const char *cells[] = {cell_short_id(order->id),
                           order->is_bid ? "bid" : "ask",
                           order->type,
                           order->name,
                           cell_limit(order->price_micro, order->rate),
                           cell_count(order->slots),
                           order->is_bid ? "" : cell_count(order->free),
                           cell_count(order->place),
                           order->good_till_ms > 0 ? cell_time(order->good_till_ms) : "",
                           order->max_term_ms > 0 ? cell_duration(order->max_term_ms) : "",
                           conditions,
                           order->is_bid          ? ""
                           : order->interruptible ? "interruptible"
                                                  : "firm"};
    grid_add(&listing->table, cells);
    return true;
}

static int order_list(struct invocation *invocation)
{
    static const char *const titles[] = {"ORDER",     "SIDE",     "TYPE",       "JOB OR DEVICE",
                                         "PRICE",     "SLOTS",    "FREE",       "PLACE",
                                         "GOOD TILL", "MAX TERM", "CONDITIONS", "LEASES"};
    struct listing listing = {.list = invocation->json ? json_array() : NULL,
                              .quiet = invocation->quiet,
                              .table = grid_of(12, titles, "llllrrrrllll")};
    struct bourse_error error;
    int status;
    if (bourse_orders(invocation->bourse, add_order, &listing, &error)) {
        status = listing_show(invocation, &listing, "orders");
    } else {
        json_decref(listing.list);
        status = complain_with(invocation, &error);
    }
    grid_fini(&listing.table);
    return status;
}

struct order_search {
    const char *prefix;
    char job[BOURSE_ID_SIZE]; /* the id of the job that the word names */
    struct bourse_order found;
    size_t matches;
};

static bool match_order(void *context, const struct bourse_order *order)
{
    struct order_search *search = context;
    if (strncmp(order->id, search->prefix, strlen(search->prefix)) == 0) {
        search->found = *order;
        search->matches++;
    }
    return true;
}

/* Complains that no order has this id. When the id is that of a job, the message says that the job
 * has no standing bid. */
static int no_order(struct invocation *invocation, const char *prefix)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    char id[BOURSE_ID_SIZE];
    if (bourse_find_job(invocation->bourse, prefix, id, NULL) &&
        bourse_jobs(invocation->bourse, id, &jobs, NULL)) {
        const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
        return complain(invocation, BOURSE_NOT_FOUND, "job %.8s has no bid in the book: %s%s", id,
                        row->state == BOURSE_OPEN ? "it wants nothing more now" : "it is ",
                        row->state == BOURSE_OPEN ? "" : row->state_text);
    }
    struct bourse_error error = {.status = BOURSE_NOT_FOUND, .name = "NOT_FOUND"};
    char shown[BOURSE_ID_SIZE];
    bourse_printable(prefix, shown, sizeof shown);
    (void)snprintf(error.text, sizeof error.text,
                   "order: no order of this account begins with %s; `bourse order list` shows "
                   "those that stand",
                   shown);
    error.reject = REJECT_NOT_FOUND;
    return complain_with(invocation, &error);
}

/* Returns false and the exit status after a message. */
static bool find_order(struct invocation *invocation, struct order_search *search, int *ret_status)
{
    struct bourse_error error;
    bool is_read = bourse_orders(invocation->bourse, match_order, search, &error);
    if (is_read && search->matches == 0 && search->prefix[0] != '\0' &&
        bourse_find_job(invocation->bourse, search->prefix, search->job, NULL)) {
        search->prefix = search->job;
        is_read = bourse_orders(invocation->bourse, match_order, search, &error);
    }
    if (!is_read) {
        *ret_status = complain_with(invocation, &error);
    } else if (search->prefix[0] == '\0' || search->matches == 0) {
        *ret_status = no_order(invocation, search->prefix);
    } else if (search->matches > 1) {
        *ret_status = complain(invocation, BOURSE_USAGE,
                               "'%s' begins the ids of %zu orders; give more digits",
                               search->prefix, search->matches);
    }
    return *ret_status == BOURSE_OK;
}

/* Checks that the options suit an ask or a bid, and that one of them is given. An ask and a bid
 * have different options. */
static bool options_fit(struct invocation *invocation, bool is_bid, int *ret_status)
{
    static const char *const of_ask[] = {"price", "slots", NULL};
    static const char *const of_bid[] = {"cap", "value", "at-most", "budget", "deadline", NULL};
    bool says = false;
    for (const char *const *name = is_bid ? of_bid : of_ask; *name != NULL; name++) {
        says = says || option_given(invocation, *name);
    }
    for (const char *const *name = is_bid ? of_ask : of_bid; *name != NULL; name++) {
        if (option_given(invocation, *name)) {
            *ret_status =
                complain(invocation, BOURSE_USAGE, "order replace: %s is %s, which has no --%s",
                         invocation->words[1], is_bid ? "the bid of a job" : "an ask", *name);
            return false;
        }
    }
    if (!says) {
        *ret_status = complain(invocation, BOURSE_USAGE, "order replace: say what is to change: %s",
                               is_bid ? "--cap or --value, --at-most, --budget or --deadline"
                                      : "--price or --slots");
    }
    return says;
}

enum { SLOTS_MOST = 10000000 }; /* most slots of an order, by the protocol */

/* Returns true when the job waits for a larger budget. */
static bool is_short(const struct bourse_explanation *why)
{
    bool is = false;
    for (uint32_t i = 0; i < why->change_count; i++) {
        is = is || strcmp(why->changes[i].field, "budget") == 0;
    }
    return is;
}

/* Tells the user, as `submit` does, when a bid may wait for ever. Such a bid is now below every
 * ask, or lacks the budget for a lease. */
static void say_what_it_waits_for(struct invocation *invocation, const struct bourse_order *bid)
{
    struct bourse_explanation why;
    struct bourse_error error;
    if (invocation->json || invocation->quiet ||
        !bourse_explain_part(invocation->bourse, bid->job, bid->part, &why, &error)) {
        return;
    }
    const bool is_dear = why.asking > 0 && why.affordable == 0;
    if (why.waiting > 0 && (is_dear || is_short(&why))) {
        char text[BOURSE_TEXT_SIZE];
        bourse_printable(why.text, text, sizeof text);
        (void)fprintf(
            stderr,
            "bourse: as the market is now, the job waits: %s\n        `bourse cancel %.8s` ends "
            "the job.\n",
            text, bid->job);
    }
}

/* Finds a job for a new deadline, also one whose bid wants nothing more. Returns false when other
 * terms are to change, or when the word names no open job. */
static bool find_running(struct invocation *invocation, struct order_search *search)
{
    static const char *const others[] = {"cap", "value", "at-most", "budget"};
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    bool is_alone = option_given(invocation, "deadline");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        is_alone = is_alone && !option_given(invocation, others[i]);
    }
    char id[BOURSE_ID_SIZE];
    if (!is_alone || search->prefix[0] == '\0' ||
        !bourse_find_job(invocation->bourse, search->prefix, id, NULL) ||
        !bourse_jobs(invocation->bourse, id, &jobs, NULL) ||
        bourse_jobs_row(jobs, 0)->state != BOURSE_OPEN) {
        return false;
    }
    search->matches = 1;
    search->found.is_bid = true;
    search->found.part = 0;
    (void)snprintf(search->found.id, sizeof search->found.id, "%s", id);
    (void)snprintf(search->found.job, sizeof search->found.job, "%s", id);
    return true;
}

static int order_replace(struct invocation *invocation)
{
    struct bourse_replacement to = {.part = -1, .price_micro = -1, .slots = -1, .budget_micro = -1};
    struct order_search search = {.prefix = invocation->words[1]};
    int status = BOURSE_OK;
    char job[BOURSE_ID_SIZE];
    if (!option_money(invocation, "price", &to.price_micro) ||
        !option_money(invocation, "cap", &to.price_micro) ||
        !option_count(invocation, "slots", 1, SLOTS_MOST, &to.slots) ||
        !option_count(invocation, "at-most", 0, SLOTS_MOST, &to.slots) ||
        !option_money(invocation, "budget", &to.budget_micro) ||
        !option_end(invocation, "deadline", &to.deadline_in_ms, &to.deadline_ms)) {
        return BOURSE_USAGE;
    }
    if (to.deadline_in_ms > FORMAT_GOOD_TILL_MS) {
        return complain(invocation, BOURSE_USAGE, "order replace: --deadline is 366d at most");
    }
    to.value = option_text(invocation, "value", NULL);
    if (to.value != NULL && option_given(invocation, "cap")) {
        return complain(invocation, BOURSE_USAGE,
                        "order replace: give --cap or --value; a limit is one or the other");
    }
    if (!command_connect(invocation, &status)) {
        return status;
    }
    if (strcmp(search.prefix, "last") == 0) {
        if (!command_resolve_job(invocation, search.prefix, job, &status)) {
            return status;
        }
        search.prefix = job;
    }
    if ((!find_running(invocation, &search) && !find_order(invocation, &search, &status)) ||
        !options_fit(invocation, search.found.is_bid, &status)) {
        return status;
    }
    to.order = search.found.is_bid ? search.found.job : search.found.id;
    to.part = search.found.part > 0 ? (int64_t)search.found.part : -1; /* -1: all parts */
    struct bourse_error error;
    if (!bourse_replace(invocation->bourse, &to, &error)) {
        if (strcmp(error.name, "STATE") == 0 && strcmp(error.field, "slots") == 0) {
            (void)snprintf(error.text, sizeof error.text,
                           "slots: this all-or-none job waits for all its slots at once, and "
                           "their number is fixed; cancel the job, and submit it anew with another "
                           "at_most");
        }
        if (strcmp(error.name, "QUANTITY") == 0 && strcmp(error.field, "deadline_ms") == 0 &&
            error.value < error.limit) {
            (void)snprintf(error.text, sizeof error.text,
                           "--deadline: the moment has passed by the market's clock; give a later "
                           "one");
        }
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return json_print(json_pack("{s:s}", "replaced", search.found.id), BOURSE_OK);
    }
    (void)puts(search.found.id);
    if (search.found.is_bid) {
        (void)fflush(stdout);
        say_what_it_waits_for(invocation, &search.found);
    }
    return BOURSE_OK;
}

static int order_cancel(struct invocation *invocation)
{
    struct order_search search = {.prefix = invocation->words[1]};
    struct bourse_error error;
    int status = BOURSE_OK;
    if (!find_order(invocation, &search, &status)) {
        return status;
    }
    if (search.found.is_bid) {
        return complain(invocation, BOURSE_USAGE,
                        "%s is the bid of a job and ends with it: `bourse cancel %.8s`",
                        search.prefix, search.found.job);
    }
    if (!bourse_cancel_ask(invocation->bourse, search.found.id, &error)) {
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return json_print(json_pack("{s:s}", "cancelled", search.found.id), BOURSE_OK);
    }
    (void)puts(search.found.id);
    return BOURSE_OK;
}

/* ---------------------------------------------------------------- an ask by hand */

struct device_search { /* search among the account's own devices */
    const char *account;
    const char *wanted; /* first digits of an id, or a label */
    char id[BOURSE_ID_SIZE];
    uint32_t slots;
    size_t matches;
};

static bool match_device(void *context, const struct bourse_device *device)
{
    struct device_search *search = context;
    bool is_own = strcmp(device->account, search->account) == 0;
    bool is_meant = strncmp(device->id, search->wanted, strlen(search->wanted)) == 0 ||
                    strcmp(device->label, search->wanted) == 0;
    if (is_own && is_meant && search->wanted[0] != '\0') {
        (void)snprintf(search->id, sizeof search->id, "%s", device->id);
        search->slots = device->slots;
        search->matches++;
    }
    return true;
}

/* Returns false and the exit status after a message. */
static bool find_own_device(struct invocation *invocation, struct device_search *search,
                            int *ret_status)
{
    struct bourse_account account;
    struct bourse_error error;
    if (!bourse_whoami(invocation->bourse, &account, &error)) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    if ((account.roles & BOURSE_ROLE_PROVIDER) == 0) {
        *ret_status = complain(invocation, BOURSE_REFUSED,
                               "an ask offers a device, and this key is no provider's: give the "
                               "agent's own with --key. Who wants work done submits a job, which "
                               "places its bids");
        return false;
    }
    search->account = account.key;
    if (!bourse_devices(invocation->bourse, match_device, search, &error)) {
        *ret_status = complain_with(invocation, &error);
    } else if (search->matches == 0) {
        *ret_status = complain(invocation, BOURSE_NOT_FOUND,
                               "no device '%s' of this account is on offer: its agent must run, "
                               "and not be paused; `bourse devices` shows what is on offer",
                               search->wanted);
    } else if (search->matches > 1) {
        *ret_status =
            complain(invocation, BOURSE_USAGE, "'%s' means %zu devices; give more digits of the id",
                     search->wanted, search->matches);
    }
    search->account = NULL;
    return *ret_status == BOURSE_OK;
}

/* Reads the life of the ask and its longest lease. Returns false after a message. */
static bool read_times(struct invocation *invocation, struct bourse_ask *ask)
{
    if (!option_duration_ms(invocation, "for", &ask->good_for_ms) ||
        !option_duration_ms(invocation, "max-term", &ask->max_term_ms)) {
        return false;
    }
    bool is_for = ask->good_for_ms > BOURSE_ASK_TIME_MS_MOST;
    if (is_for || ask->max_term_ms > BOURSE_ASK_TIME_MS_MOST) {
        (void)complain(invocation, BOURSE_USAGE, "--%s: at most 366d; without --%s %s",
                       is_for ? "for" : "max-term", is_for ? "for" : "max-term",
                       is_for ? "the ask stands until it is cancelled"
                              : "leases may have any length");
        return false;
    }
    if (ask->max_term_ms != 0 && ask->max_term_ms < BOURSE_ASK_TERM_MS_LEAST) {
        (void)complain(invocation, BOURSE_USAGE,
                       "--max-term: at least 1m: jobs lease for that, or longer, unless their "
                       "`term` says less");
        return false;
    }
    return true;
}

/* Returns all values of an option that may be repeated. */
static size_t values_of(const struct invocation *invocation, const char *name,
                        const char *ret_values[GIVEN_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < invocation->given_count; i++) {
        if (strcmp(invocation->given[i].name, name) == 0) {
            ret_values[count++] = invocation->given[i].value;
        }
    }
    return count;
}

/* Reads whether higher bids may take leases of the ask, and on which terms. */
static bool read_terms(struct invocation *invocation, struct bourse_ask *ask)
{
    ask->interruptible = option_given(invocation, "interruptible");
    const bool has_times =
        option_given(invocation, "notice") || option_given(invocation, "minimum-run");
    if (has_times && !ask->interruptible) {
        (void)complain(invocation, BOURSE_USAGE,
                       "--notice and --minimum-run are of leases that may be taken: say "
                       "--interruptible, too");
        return false;
    }
    ask->notice_ms = ask->interruptible ? NOTICE_MS : 0;
    ask->minimum_run_ms = ask->interruptible ? MINIMUM_RUN_MS : 0;
    if (!option_duration_ms(invocation, "notice", &ask->notice_ms) ||
        !option_duration_ms(invocation, "minimum-run", &ask->minimum_run_ms)) {
        return false;
    }
    if (ask->notice_ms > BOURSE_ASK_NOTICE_MS_MOST ||
        ask->minimum_run_ms > BOURSE_ASK_RUN_MS_MOST) {
        (void)complain(invocation, BOURSE_USAGE,
                       "--notice: at most 1d, and --minimum-run: at most 7d");
        return false;
    }
    return true;
}

static bool read_type(struct invocation *invocation, struct bourse_ask *ask)
{
    static const struct {
        const char *word;
        enum bourse_ask_type type;
    } types[] = {
        {"limit", BOURSE_ASK_LIMIT}, {"ioc", BOURSE_ASK_IOC}, {"post-only", BOURSE_ASK_POST_ONLY}};
    const char *word = option_text(invocation, "order", "limit");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(word, types[i].word) == 0) {
            ask->type = types[i].type;
            return true;
        }
    }
    (void)complain(invocation, BOURSE_USAGE, "--order: an ask is limit, ioc or post-only, not '%s'",
                   word);
    return false;
}

static int order_place(struct invocation *invocation)
{
    const char *to[GIVEN_MAX];
    const char *hours[GIVEN_MAX];
    struct bourse_ask ask = {.price_micro = -1,
                             .to = to,
                             .to_count = values_of(invocation, "to", to),
                             .hours = hours,
                             .hours_count = values_of(invocation, "hours", hours),
                             .utc_offset = option_text(invocation, "utc-offset", NULL)};
    int64_t slots = 0;
    if (!read_type(invocation, &ask) || !option_money(invocation, "price", &ask.price_micro) ||
        !option_count(invocation, "slots", 1, UINT32_MAX, &slots) ||
        !read_times(invocation, &ask) || !read_terms(invocation, &ask) ||
        !option_duration_ms(invocation, "daily", &ask.daily_ms)) {
        return BOURSE_USAGE;
    }
    if (ask.price_micro < 0) {
        return complain(invocation, BOURSE_USAGE,
                        "order place: --price says what a slot costs for an hour, as in 0.10");
    }
    if (ask.to_count == 1 && strcmp(to[0], "anyone") == 0) {
        ask.to_count = 0;
    }
    int status = BOURSE_OK;
    if (!command_connect(invocation, &status)) {
        return status;
    }
    struct device_search search = {.wanted = invocation->words[1]};
    if (!find_own_device(invocation, &search, &status)) {
        return status;
    }
    if (slots > search.slots) {
        return complain(invocation, BOURSE_USAGE, "--slots: the device has %u", search.slots);
    }
    ask.device = search.id;
    ask.slots = slots > 0 ? (uint32_t)slots : search.slots;
    char order[BOURSE_ID_SIZE];
    struct bourse_error error;
    if (!bourse_place_ask(invocation->bourse, &ask, order, &error)) {
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return json_print(json_pack("{s:s, s:s, s:I, s:I}", "order", order, "device", search.id,
                                    "slots", (json_int_t)ask.slots, "price_micro",
                                    (json_int_t)ask.price_micro),
                          BOURSE_OK);
    }
    (void)puts(order);
    return BOURSE_OK;
}

int command_order(struct invocation *invocation)
{
    static const char *const acts[] = {"list", "place", "cancel", "replace"};
    const char *word = invocation->words[0];
    bool is_list = strcmp(word, acts[0]) == 0;
    bool is_place = strcmp(word, acts[1]) == 0;
    bool is_replace = strcmp(word, acts[3]) == 0;
    if (!is_list && !is_place && !is_replace && strcmp(word, acts[2]) != 0) {
        const char *near = text_nearest(word, acts, 4);
        return complain(invocation, BOURSE_USAGE, "order has no '%s'%s%s%s", word,
                        near != NULL ? "; did you mean `"
                                     : "; it has list, place, replace and cancel",
                        near != NULL ? near : "", near != NULL ? "`?" : "");
    }
    if (invocation->word_count != (is_list ? 1 : 2)) {
        return complain(invocation, BOURSE_USAGE, "order %s takes %s; see `bourse help order`",
                        word,
                        is_list    ? "no further word"
                        : is_place ? "one DEVICE"
                                   : "one ORDER");
    }
    static const char *const only_place[] = {"for",         "max-term",   "order",         "to",
                                             "hours",       "utc-offset", "interruptible", "notice",
                                             "minimum-run", "daily"};
    static const char *const only_replace[] = {"cap", "at-most", "budget", "value", "deadline"};
    if (is_place || is_replace) {
        const char *const *others = is_place ? only_replace : only_place;
        for (size_t i = 0; i < (is_place ? 5 : 10); i++) {
            if (option_given(invocation, others[i])) {
                return complain(invocation, BOURSE_USAGE, "order %s has no --%s", word, others[i]);
            }
        }
        return is_place ? order_place(invocation) : order_replace(invocation);
    }
    for (size_t i = 0; i < invocation->command->options->count; i++) {
        const char *name = invocation->command->options->items[i].name;
        if (option_given(invocation, name)) {
            return complain(invocation, BOURSE_USAGE, "order %s has no --%s", word, name);
        }
    }
    int status = 0;
    if (!command_connect(invocation, &status)) {
        return status;
    }
    return is_list ? order_list(invocation) : order_cancel(invocation);
}
