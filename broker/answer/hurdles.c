#include "broker/answer/hurdles.h"

#include "base/checked.h"
#include "base/text.h"
#include "broker/answer/reason.h"
#include "formats/units.h"
#include "protocol/reject.h"

#include <stdio.h>
#include <string.h>

void hurdle_limit_text(const struct exchange_explanation *row, int64_t limit_micro,
                       char ret_text[VALUE_TEXT_SIZE])
{
    if (row->rate == RATE_NONE) {
        units_money_text(limit_micro, ret_text);
    } else {
        value_text(&(struct value){limit_micro, row->rate}, ret_text);
    }
}

/* Writes how many slots are free for a job that waits until it gets all its slots at once. */
static void whole_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    char limit[UNITS_TEXT_SIZE];
    units_money_text(row->whole.limit_micro, limit);
    (void)snprintf(ret_text, capacity,
                   "the job asks for %u slot%s at once at up to %s%s, and %u %s free at that price",
                   row->whole.slots, text_plural(row->whole.slots), limit,
                   row->whole.is_of_budget ? ", which its budget covers" : "", row->whole.free,
                   row->whole.free == 1 ? "is" : "are");
}

/* Writes what would become of a planned bid. Returns false when the bid would wait. */
static bool foretold_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    char price[UNITS_TEXT_SIZE];
    units_money_text(row->refusal != 0 ? row->refused_at_micro : row->starts_at_micro, price);
    if (row->refusal == REJECT_SELF_MATCH) {
        (void)snprintf(
            ret_text, capacity,
            "the job would be refused with SELF_MATCH: its bid meets this account's own ask of "
            "%.40s at %s first; cancel that ask, or set needs that its device does not meet",
            row->refused_at, price);
    } else if (row->refusal == REJECT_WOULD_TRADE) {
        (void)snprintf(
            ret_text, capacity,
            "the job would be refused with WOULD_TRADE: it is post-only, and the ask of %.40s "
            "at %s is within its limit",
            row->refused_at, price);
    } else if (row->refusal == REJECT_BUDGET) {
        (void)snprintf(ret_text, capacity,
                       "the job would be refused with BUDGET: it is post-only, the ask of %.40s is "
                       "within its limit, and a term of one subtask there takes a budget of %s",
                       row->refused_at, price);
    } else if (row->refusal == REJECT_PRICE) {
        (void)snprintf(ret_text, capacity,
                       "the job would be refused with PRICE: its cap is outside of the market's "
                       "price band; the nearest within is %s",
                       price);
    } else if (row->refusal == REJECT_NOTIONAL) {
        (void)snprintf(
            ret_text, capacity,
            "the job would be refused with NOTIONAL: a term of its slots at its limit, "
            "and its budget, are above %s, the most that one order may be worth; ask for "
            "fewer slots at a time, a shorter term, a lower cap or a smaller budget",
            price);
    } else if (row->starts_at_micro >= 0) {
        (void)snprintf(ret_text, capacity, "the job would start now at %s%s", price,
                       row->starts_with_lease ? ", with a lease that it takes from its holder"
                                              : "");
    }
    return row->refusal != 0 || row->starts_at_micro >= 0;
}

/* Writes "all 5 on offer ask more, 2 of them more than the market's price band lets an order
 * pay". */
static size_t dearer_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    char most[UNITS_TEXT_SIZE];
    char some[64] = "";
    char all[32] = "the one";
    const bool is_one = row->asking == 1;
    if (!is_one) {
        (void)snprintf(all, sizeof all, "all %u", row->asking);
    }
    units_money_text(row->band_most_micro, most);
    if (row->beyond > 0 && row->beyond < row->asking) {
        (void)snprintf(some, sizeof some, ", %u of them more", row->beyond);
    }
    if (row->holds_nothing && row->beyond < row->asking) {
        const int used =
            snprintf(ret_text, capacity,
                     "%s on offer ask%s a price, and a budget of 0 takes only donated slots", all,
                     is_one ? "s" : "");
        return used < 0 ? 0 : (size_t)used;
    }
    const int length =
        snprintf(ret_text, capacity, "%s on offer ask%s more%s%s%s", all, is_one ? "s" : "", some,
                 row->beyond > 0 ? " than the market's price band lets an order pay, " : "",
                 row->beyond > 0 ? most : "");
    return length < 0 ? 0 : (size_t)length;
}

/* Writes how many asks are closed now, and when the first opens. Their providers may be makers. */
static void closed_makers_text(const struct exchange_explanation *row, char *ret_text,
                               size_t capacity)
{
    char wait[UNITS_TEXT_SIZE];
    if (row->closed > 0) {
        const bool is_one = row->closed == 1;
        units_duration_short(row->opens_ns, wait);
        (void)snprintf(ret_text, capacity, ": %u other%s closed and open%s in %s", row->closed,
                       is_one ? " is" : "s are", is_one ? "s" : ", the first", wait);
    }
}

/* Writes that the operator froze the providers of devices that fit. */
static void frozen_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    char reason[REASON_TEXT_SIZE];
    reason_text(row->frozen_why, reason);
    (void)snprintf(ret_text, capacity, "%s by the operator%s: wait until that ends",
                   row->fitting == 1 ? "its provider is frozen" : "their providers are frozen",
                   reason);
}

/* Writes that providers of devices that fit do not answer the broker. */
static void silent_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    char time[UNITS_TEXT_SIZE];
    char since[UNITS_TEXT_SIZE + 8] = "";
    if (row->silent_ns > 0) {
        units_duration_short(row->silent_ns, time);
        (void)snprintf(since, sizeof since, " for %s", time);
    }
    if (row->silent < row->fitting) {
        (void)snprintf(ret_text, capacity,
                       "none is offered now, and %u %s of silent providers; wait for a provider to "
                       "ask",
                       row->silent, row->silent == 1 ? "is" : "are");
    } else if (row->silent_name != NULL) {
        (void)snprintf(ret_text, capacity,
                       "%s provider \"%s\" has been silent%s; wait until that provider answers",
                       row->fitting == 1 ? "its" : "their", row->silent_name, since);
    } else {
        (void)snprintf(ret_text, capacity,
                       "their providers have been silent%s; wait until one of these answers",
                       since);
    }
}

/* Writes why no fitting device has an ask for the bid now. */
static void unoffered_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    char time[UNITS_TEXT_SIZE];
    if (row->frozen == row->fitting) {
        frozen_text(row, ret_text, capacity);
    } else if (row->closed > 0) {
        units_duration_short(row->opens_ns, time);
        (void)snprintf(ret_text, capacity, "%u %s %s in %s", row->closed,
                       row->closed == 1 ? "is" : "are",
                       row->withdrawn == row->closed
                           ? "closed, because results of the provider were refuted: the first opens"
                       : row->spent == row->closed ? "used up for today: the next day begins"
                                                   : "offered at other hours, which begin",
                       time);
    } else if (row->for_others > 0) {
        (void)snprintf(ret_text, capacity, "%u %s offered to other accounts only", row->for_others,
                       row->for_others == 1 ? "is" : "are");
    } else if (row->brief > 0) {
        const bool is_told = row->smallest_change.count > 0;
        units_duration_short(row->brief_term_ns, time);
        (void)snprintf(ret_text, capacity, "%s for a term of %s at most%s",
                       row->brief == 1 ? "the one on offer is let" : "all on offer are let", time,
                       is_told ? "" : ": ask for a `limit` and `term` no longer than that");
    } else if (row->silent > 0) {
        silent_text(row, ret_text, capacity);
    } else {
        (void)snprintf(ret_text, capacity, "none is offered now; wait for a provider to ask");
    }
}

/* Writes why the bid gets no slot of the devices within its limit, which have none free. */
static void busy_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    char queue[64] = "";
    char all[32] = "the one";
    if (row->affordable > 1) {
        (void)snprintf(all, sizeof all, "all %u", row->affordable);
    }
    if (row->has_ahead && row->ahead > 0) {
        (void)snprintf(queue, sizeof queue, " and %s%u bid%s before it had theirs",
                       row->is_ahead_partial ? "at least " : "", row->ahead,
                       text_plural(row->ahead));
    }
    if (row->judges > 0 && row->judges == row->affordable) {
        const int used = snprintf(ret_text, capacity,
                                  "all within the limit judged the results that wait to be made "
                                  "again; another maker is needed");
        closed_makers_text(row, ret_text + used, capacity - (size_t)used);
    } else if (row->own > 0 && row->own == row->affordable) {
        (void)snprintf(ret_text, capacity,
                       "all within the limit made or rejected the results that wait to be checked; "
                       "another referee is needed");
    } else if (row->interruptible > 0 && row->interruptible == row->affordable) {
        (void)snprintf(
            ret_text, capacity,
            "%s interruptible only, and the job allows no further interruption: it waits "
            "for a firm lease",
            row->affordable == 1 ? "the one within the limit is" : "all within the limit are");
    } else if (row->late > 0 && row->late == row->affordable) {
        char takes[UNITS_TEXT_SIZE];
        char left[UNITS_TEXT_SIZE];
        units_duration_short(row->late_takes_ns, takes);
        units_duration_short(row->late_left_ns, left);
        (void)snprintf(ret_text, capacity,
                       "a subtask takes at least %s on %s within the limit, and the deadline is in "
                       "%s: what cannot end in time is not started; `bourse resume --deadline` "
                       "runs it when this job has ended",
                       takes, row->affordable == 1 ? "the one" : "those", left);
    } else if (row->avoided > 0) {
        (void)snprintf(ret_text, capacity,
                       "%u of a provider that failed this job will be tried again%s in %lld s",
                       row->avoided, row->avoided > 1 ? ", the first" : "",
                       (long long)((row->avoided_ns + NS_PER_S - 1) / NS_PER_S));
    } else {
        (void)snprintf(
            ret_text, capacity, "%s within the limit %s busy%s; %s when one is free%s%s", all,
            row->affordable == 1 ? "is" : "are",
            row->is_own_leases
                ? " with jobs of this account, and none of these takes a lease from another"
                : "",
            row->work.running > 0 ? "more subtasks run" : "the job starts", queue,
            row->donated > 0 ? "; donated devices go first to who used least lately" : "");
    }
}

/* Writes how many slots are free, and whether the budget is too small for them. */
static void free_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    char least[UNITS_TEXT_SIZE];
    const bool is_short = row->uncovered == row->free;
    units_money_text(row->cover_micro, least);
    (void)snprintf(ret_text, capacity, "%u %s free at this price%s%s", row->free,
                   row->free == 1 ? "is" : "are",
                   is_short ? ", but a term of one subtask takes more than the job's budget: " : "",
                   is_short ? least : "");
}

/* Appends the limit or the budget with which the bid takes a lease from its holder. */
static void add_taking(const char *what, const char *amount, char *text, size_t capacity)
{
    const size_t length = strlen(text);
    (void)snprintf(text + length, capacity - length,
                   ", or takes a lease from its holder with a %s of %s", what, amount);
}

void hurdle_text(const struct exchange_explanation *row, char *ret_text, size_t capacity)
{
    const bool has_change = row->smallest_change.count > 0;
    char price[VALUE_TEXT_SIZE] = "";
    ret_text[0] = '\0';
    if (row->fills_at_micro >= 0 && !has_change) {
        hurdle_limit_text(row, row->fills_at_micro, price);
    }
    if ((row->is_asked && foretold_text(row, ret_text, capacity)) || row->fitting == 0) {
        return;
    }
    if (row->asking == 0) {
        unoffered_text(row, ret_text, capacity);
    } else if (row->whole.slots > 0) {
        whole_text(row, ret_text, capacity);
    } else if (row->affordable == 0) {
        const size_t used = dearer_text(row, ret_text, capacity);
        if (price[0] != '\0' && used < capacity) {
            (void)snprintf(ret_text + used, capacity - used,
                           "; the bid would be filled now with a limit of %s", price);
        }
    } else if (row->free == 0) {
        busy_text(row, ret_text, capacity);
    } else {
        free_text(row, ret_text, capacity);
    }
    if (price[0] != '\0' && row->free == 0 && row->affordable > 0) {
        size_t length = strlen(ret_text);
        (void)snprintf(ret_text + length, capacity - length, ", or now with a limit of %s", price);
    }
    if (row->takes_at_micro >= 0 && !has_change) {
        hurdle_limit_text(row, row->takes_at_micro, price);
        add_taking("limit", price, ret_text, capacity);
    }
    if (row->takes_budget_micro >= 0 && !has_change) {
        units_money_text(row->takes_budget_micro, price);
        add_taking("budget", price, ret_text, capacity);
    }
}
