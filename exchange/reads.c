#include "exchange/effort.h"
#include "exchange/state.h"

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads of the state: pure, no trace. */

uint64_t exchange_index(const struct exchange *exchange)
{
    return exchange->index;
}

int64_t exchange_log_time_ns(const struct exchange *exchange)
{
    return exchange->now_ns;
}

struct id128 exchange_cluster(const struct exchange *exchange)
{
    return exchange->cluster;
}

uint32_t exchange_job_count(const struct exchange *exchange)
{
    return exchange->job_count;
}

uint32_t exchange_rules(const struct exchange *exchange)
{
    return exchange->rules;
}

struct exchange_limits exchange_limits_now(const struct exchange *exchange)
{
    return exchange->limits;
}

bool exchange_holds_limits(const struct exchange *exchange, const struct exchange_limits *limits)
{
    const struct exchange_limits *held = &exchange->limits;
    return exchange->rules == EXCHANGE_RULES && held->accounts == limits->accounts &&
           held->invitations == limits->invitations &&
           held->ids_per_account == limits->ids_per_account &&
           held->devices_per_provider == limits->devices_per_provider &&
           held->asks == limits->asks && held->jobs == limits->jobs &&
           held->jobs_per_account == limits->jobs_per_account && held->leases == limits->leases &&
           held->attempts == limits->attempts && held->subtasks == limits->subtasks &&
           held->subtasks_per_account == limits->subtasks_per_account &&
           held->cells_per_account == limits->cells_per_account &&
           held->classes_per_account == limits->classes_per_account;
}

uint64_t exchange_epochs(const struct exchange *exchange, struct hash32 *ret_commitment)
{
    *ret_commitment = exchange->commitment;
    return exchange->epochs;
}

bool exchange_halted(const struct exchange *exchange)
{
    return exchange->is_halted;
}

uint32_t exchange_account_count(const struct exchange *exchange)
{
    return exchange->member_count;
}

bool exchange_account(const struct exchange *exchange, uint32_t number,
                      struct exchange_account_row *ret_row)
{
    const struct member *member = member_by_number(exchange, number);
    if (member == NULL) {
        return false;
    }
    struct account_balance balance = accounts_balance(exchange->accounts, number);
    *ret_row = (struct exchange_account_row){
        .number = number,
        .key = member->key,
        .roles = member->roles,
        .frozen = member->is_frozen,
        .available_micro = balance.available_micro,
        .held_micro = balance.held_micro,
    };
    copy_name(ret_row->name, member->name);
    return true;
}

/* ---------------------------------------------------------------- jobs and leases */

/* What keeps a part from this device: of the reasons, numbered from far to near, the one it stops at. */
static uint8_t reason_at(const struct exchange *exchange, const struct part *part,
                         const struct device *device)
{
    const struct job *job = part->job;
    static_assert(XREASON_NO_DEVICE < XREASON_NO_ASK && XREASON_NO_ASK < XREASON_PRICE &&
                      XREASON_PRICE < XREASON_BUSY && XREASON_BUSY < XREASON_BUDGET &&
                      XREASON_BUDGET < XREASON_AVOIDED,
                  "from far to near");
    if (!device->is_advertised || device->key.provider == job->owner ||
        device->slots < part->width ||
        !book_class_accepts(exchange->book, part->class_id, device->cell) ||
        part_choice(part, device->key.provider) == 0) {
        return XREASON_NO_DEVICE;
    }
    struct book_ask resting;
    const struct book_ask *ask = &resting;
    if (device->ask == NULL || !book_ask(exchange->book, device->ask->handle, &resting) ||
        device->ask->slots < part->width || !device->ask->is_open ||
        !ask_is_for(device->ask, job->owner) ||
        (ask->max_term_ns != 0 && ask->max_term_ns < part->term_ns)) {
        return XREASON_NO_ASK;
    }
    if (ask->price_micro > part_limit_in(exchange, part, device->cell)) {
        return XREASON_PRICE;
    }
    if (ask->slots < part->width) {
        return XREASON_BUSY;
    }
    return job_avoids(exchange, job, device->key.provider) ? XREASON_AVOIDED : XREASON_BUDGET;
}

static bool has_only_makers(const struct exchange *exchange, const struct part *part)
{
    for (const struct list_link *at = exchange->provider_list.next;
         part_is_checks(part) && at != &exchange->provider_list; at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        for (const struct list_link *link = provider->devices.next; link != &provider->devices;
             link = link->next) {
            const struct device *device = LIST_ELEMENT(link, struct device, of_provider);
            if (device->is_advertised && device->key.provider != part->job->owner &&
                device->slots >= part->width &&
                book_class_accepts(exchange->book, part->class_id, device->cell)) {
                return true;
            }
        }
    }
    return false;
}

/* Its class knows which cells fit: no predicate is looked at, however many devices there are. */
static uint8_t part_reason(const struct exchange *exchange, const struct part *part)
{
    uint8_t reason = XREASON_NO_DEVICE;
    for (const struct list_link *at = exchange->provider_list.next; at != &exchange->provider_list;
         at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        for (const struct list_link *link = provider->devices.next; link != &provider->devices;
             link = link->next) {
            uint8_t nearer =
                reason_at(exchange, part, LIST_ELEMENT(link, struct device, of_provider));
            reason = nearer > reason ? nearer : reason;
        }
    }
    /* With a device for it there would be a lease, but for whose results it is about. */
    return reason == XREASON_NO_DEVICE && has_only_makers(exchange, part) ? XREASON_REFEREE
                                                                          : reason;
}

/* Of the parts of an open job that wait for a lane, the one farthest from it: it explains the whole. */
static const struct part *tightest_part(const struct exchange *exchange, const struct job *job,
                                        uint8_t *ret_reason)
{
    const struct part *tightest = NULL;
    *ret_reason = XREASON_BUDGET; /* nothing waits: it never lasts */
    for (uint32_t i = 0; i < job->part_count; i++) {
        const struct part *part = &job->parts[i];
        uint8_t reason = part->waiting == 0 ? 0 : part_reason(exchange, part);
        if (part->waiting > 0 && (tightest == NULL || reason < *ret_reason)) {
            tightest = part;
            *ret_reason = reason;
        }
    }
    return tightest == NULL ? &job->parts[0] : tightest;
}

static uint8_t job_reason_now(const struct exchange *exchange, const struct job *job)
{
    if (job->phase != JOB_PHASE_OPEN || job->is_closing) {
        return job->reason;
    }
    if (job->running > 0 || job_lives_off_leases(job)) {
        return XREASON_RUNNING;
    }
    if (exchange->is_halted) {
        return XREASON_HALTED;
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        if (LIST_ELEMENT(at, struct lease, of_job)->state == LEASE_PROMISED) {
            return XREASON_PROMISED;
        }
    }
    uint8_t reason;
    (void)tightest_part(exchange, job, &reason);
    return reason == XREASON_BUDGET && job_waits_for_all(job) ? XREASON_NOT_WHOLE : reason;
}

/* A lane runs one attempt at a time; what else is in flight there waits for it. */
static uint32_t queued_in_lanes(const struct job *job)
{
    uint32_t queued = 0;
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        uint32_t busy = 0;
        if (lease->live == 0 || lease->state == LEASE_SUSPECT) { /* of that one nothing is known */
            continue;
        }
        for (uint32_t i = 0; i < lease->lane_count; i++) {
            busy += lease->lanes[i].in_flight > 0;
        }
        queued += lease->live > busy ? lease->live - busy : 0;
    }
    return queued < job->running ? queued : job->running;
}

static void fill_job_row(const struct exchange *exchange, const struct job *job,
                         struct exchange_job_row *row)
{
    *row = (struct exchange_job_row){
        .job = job->id,
        .owner = job->owner,
        .state = job->phase,
        .reason = job_reason_now(exchange, job),
        .subtasks = job->subtasks,
        .waiting = job->waiting,
        .running = job->running,
        .queued = queued_in_lanes(job),
        .checking = job->checking,
        .accepted = job->accepted,
        .failed = job->failed,
        .cancelled = job->cancelled,
        .budget_micro = job->hold.amount_micro,
        .charged_micro = job->hold.captured_micro,
        .reserved_micro = job->reserved_micro,
        .submitted_ns = job->submitted_ns,
        .ended_ns = job->ended_ns,
        .manifest = job->manifest,
    };
    copy_name(row->name, job->name);
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        row->lease_count++;
    }
}

bool exchange_job(const struct exchange *exchange, const struct id128 *id,
                  struct exchange_job_row *ret_row)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job != NULL) {
        fill_job_row(exchange, job, ret_row);
    }
    return job != NULL;
}

size_t exchange_jobs(const struct exchange *exchange, uint32_t owner,
                     struct exchange_job_row *ret_rows, size_t limit)
{
    size_t count = 0;
    const struct member *member = member_by_number(exchange, owner);
    if (member == NULL) {
        return 0;
    }
    const struct list_link *head = &member->jobs;
    for (const struct list_link *at = head->previous; at != head && count < limit;
         at = at->previous) {
        fill_job_row(exchange, LIST_ELEMENT(at, struct job, of_owner), &ret_rows[count++]);
    }
    return count;
}

size_t exchange_subtasks(const struct exchange *exchange, const struct id128 *id,
                         uint8_t *ret_states, uint32_t *ret_tries, size_t limit)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job == NULL || job->phase != JOB_PHASE_OPEN || job->subtasks > limit) {
        return 0;
    }
    for (uint32_t i = 0; i < job->subtasks; i++) {
        const struct page *page = job->pages[i / PAGE_SUBTASKS];
        const struct subtask *subtask = page == NULL ? NULL : &page->subtasks[i % PAGE_SUBTASKS];
        bool is_given_up =
            job->is_closing && (subtask == NULL || subtask->state == SUBTASK_WAITING);
        ret_states[i] = is_given_up       ? SUBTASK_CANCELLED
                        : subtask == NULL ? SUBTASK_WAITING
                                          : subtask->state;
        ret_tries[i] = subtask == NULL ? 0 : subtask->attempts;
    }
    return job->subtasks;
}

size_t exchange_parts(const struct exchange *exchange, const struct id128 *id,
                      struct exchange_part_row *ret_rows, size_t limit)
{
    const struct job *job = table_find(&exchange->jobs, id);
    for (uint32_t i = 0; job != NULL && i < job->part_count && i < limit; i++) {
        const struct part *part = &job->parts[i];
        ret_rows[i] = (struct exchange_part_row){.first = part->first,
                                                 .subtasks = part->end - part->first,
                                                 .waiting = part->waiting,
                                                 .running = part->running,
                                                 .checking = part->checking,
                                                 .lanes = part->lanes};
    }
    return job == NULL ? 0 : job->part_count;
}

size_t exchange_leases(const struct exchange *exchange, const struct id128 *id,
                       struct exchange_lease_row *ret_rows, size_t limit)
{
    const struct job *job = table_find(&exchange->jobs, id);
    size_t count = 0;
    if (job == NULL) {
        return 0;
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases && count < limit;
         at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        struct exchange_lease_row *row = &ret_rows[count++];
        *row = (struct exchange_lease_row){
            .lease = lease->id,
            .job = job->id,
            .provider = lease->provider,
            .slots = lease->slots,
            .accepted = lease->accepted,
            .state = lease->state,
            .price_micro = lease->price_micro,
            .paid_ns = lease->paid_ns,
            .charged_micro = lease->charged_micro,
            .is_simulated = lease->is_simulated,
            .is_interruptible = lease->terms.is_interruptible,
            .is_taken = lease->is_noticed,
        };
        copy_name(row->device, lease->label);
    }
    return count;
}

bool exchange_provider_serves(const struct exchange *exchange, uint32_t provider,
                              const struct id128 *id)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job == NULL) {
        return false;
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        bool stands = (lease->state != LEASE_ENDED && lease->state != LEASE_PROMISED) ||
                      lease->ended_ns + SERVES_NS > exchange->now_ns;
        if (lease->provider == provider && stands) {
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- quote */

struct quoting {
    const struct exchange *exchange;
    const struct exchange_need *need;
    struct exchange_quote *quote;
    int64_t limit_micro;
    int64_t floor_micro; /* no lane counts for less */
    bool as_if_idle;     /* count what is leased too: the price of waiting for it */
    uint32_t lanes_left; /* that the job could use at once */
    uint32_t lanes_taken;
    uint64_t lanes_met;                            /* within the limit */
    int128 slot_price_sum;                         /* sum of price x lanes over the lanes taken */
    int128 escrow_sum;                             /* what a term of them holds */
    int64_t first_escrow_micro, last_escrow_micro; /* a term of the cheapest, of the dearest */
};

/* Of a need by value, unlike devices stand apart: each has a limit of its own. */
static void quote_level(struct quoting *quoting, const struct book_ask *ask, int64_t limit_micro,
                        uint32_t slots)
{
    struct exchange_quote *quote = quoting->quote;
    bool is_by_value = quoting->need->rate != RATE_NONE;
    uint32_t last = quote->level_count;
    if (last > 0 && quote->levels[last - 1].price_micro == ask->price_micro &&
        (!is_by_value || quote->levels[last - 1].cell == ask->cell)) {
        quote->levels[last - 1].slots += slots;
        quote->levels[last - 1].providers++;
    } else if (last < EXCHANGE_QUOTE_LEVELS) {
        quote->levels[last].price_micro = ask->price_micro;
        quote->levels[last].slots = slots;
        quote->levels[last].providers = 1;
        quote->level_count++;
        if (is_by_value) {
            quote->levels[last].limit_micro = limit_micro;
            quote->levels[last].cell = ask->cell;
            cell_instrument(quoting->exchange, ask->cell, quote->levels[last].instrument);
        }
    }
}

static void quote_lanes(struct quoting *quoting, int64_t price_micro, uint32_t lanes)
{
    const struct exchange_need *need = quoting->need;
    uint32_t taken = lanes < quoting->lanes_left ? lanes : quoting->lanes_left;
    if (taken == 0) {
        return;
    }
    price_micro = price_micro > quoting->floor_micro ? price_micro : quoting->floor_micro;
    int64_t escrow = escrow_micro(price_micro, need->slots, need->term_ns);
    quoting->first_escrow_micro = quoting->lanes_taken == 0 ? escrow : quoting->first_escrow_micro;
    quoting->last_escrow_micro = escrow;
    quoting->escrow_sum += (int128)escrow * taken;
    quoting->slot_price_sum += (int128)price_micro * taken;
    quoting->lanes_left -= taken;
    quoting->lanes_taken += taken;
}

static uint32_t slots_if_idle(const struct ask *ask)
{
    return ask->slots < ask->device->slots ? ask->slots : ask->device->slots;
}

/* Side by side on that ask, now or as if it were idle; 0: it is none for this need. */
static uint32_t lanes_of(const struct exchange *exchange, const struct exchange_need *need,
                         uint32_t handle, const struct book_ask *ask, bool as_if_idle)
{
    const struct ask *standing = exchange->orders_by_handle[handle];
    bool is_for_it = ask->owner != need->account && ask_is_for(standing, need->account) &&
                     (ask->max_term_ns == 0 || ask->max_term_ns >= need->term_ns);
    uint32_t slots = as_if_idle ? slots_if_idle(standing) : ask->slots;
    return is_for_it ? slots / need->slots : 0;
}

struct rivals { /* the two accounts that ask least */
    const struct exchange *exchange;
    const struct exchange_need *need;
    uint32_t first;
    int64_t second_micro;
};

static bool find_rivals(void *context, uint32_t handle, const struct book_ask *ask)
{
    struct rivals *rivals = context;
    if (lanes_of(rivals->exchange, rivals->need, handle, ask, true) == 0) {
        return true;
    }
    if (rivals->first == EXCHANGE_NO_ACCOUNT) {
        rivals->first = ask->owner;
    }
    rivals->second_micro = ask->owner != rivals->first ? ask->price_micro : -1;
    return rivals->second_micro < 0;
}

static bool quote_ask(void *context, uint32_t handle, const struct book_ask *ask)
{
    struct quoting *quoting = context;
    const struct exchange_need *need = quoting->need;
    int64_t limit_micro =
        book_limit(quoting->exchange->book, need->rate, quoting->limit_micro, ask->cell);
    bool is_within = ask->price_micro <= limit_micro;
    if (!is_within && need->rate == RATE_NONE) {
        return false;
    }
    uint32_t lanes = lanes_of(quoting->exchange, need, handle, ask, quoting->as_if_idle);
    if (lanes == 0) {
        return true;
    }
    quote_level(quoting, ask, limit_micro, lanes * need->slots);
    if (!is_within) {
        return true; /* what it would have to be worth is told, and nothing else */
    }
    struct exchange_quote *quote = quoting->quote;
    bool is_first = quoting->lanes_met == 0;
    quoting->lanes_met += lanes;
    quote->price_low_micro = is_first || ask->price_micro < quote->price_low_micro
                                 ? ask->price_micro
                                 : quote->price_low_micro;
    quote->price_high_micro = is_first || ask->price_micro > quote->price_high_micro
                                  ? ask->price_micro
                                  : quote->price_high_micro;
    quote->slots_now += quoting->as_if_idle ? 0 : lanes * need->slots;
    quote_lanes(quoting, ask->price_micro, lanes);
    return true;
}

static int64_t clamp_micro(int128 value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

/* busy_ns x price_sum / lanes, per hour, rounded up; INT64_MAX when it is more than anybody has. */
static int64_t cost_micro(int128 busy_ns, int128 price_sum, uint32_t lanes)
{
    int128 divisor = (int128)NS_PER_HOUR * lanes;
    int128 product;
    if (__builtin_mul_overflow(busy_ns, price_sum, &product) ||
        __builtin_add_overflow(product, divisor - 1, &product)) {
        return INT64_MAX;
    }
    return clamp_micro(product / divisor);
}

/* The work is spread over the cheapest lanes that fit, each taking an equal share of the subtasks. */
static void quote_cost(const struct quoting *quoting)
{
    const struct exchange_need *need = quoting->need;
    struct exchange_quote *quote = quoting->quote;
    int128 busy_ns = (int128)need->subtasks * need->expect_ns * need->slots;
    quote->expected_micro = cost_micro(busy_ns, quoting->slot_price_sum, quoting->lanes_taken);
    uint32_t rounds = (need->subtasks + quoting->lanes_taken - 1) / quoting->lanes_taken;
    quote->makespan_ns = clamp_micro((int128)rounds * need->expect_ns);
    quote->minimum_micro = quoting->first_escrow_micro;
    int64_t half = quote->expected_micro / 2 + (quote->expected_micro & 1);
    /* Every lane in use draws a term's escrow beside what has been charged: less would use fewer lanes. And one more,
     * at the dearest price in use: a lease whose provider is lost holds its own until the term is over. */
    quote->suggested_micro = clamp_micro((int128)quote->expected_micro + half +
                                         quoting->escrow_sum + quoting->last_escrow_micro);
    quote->suggested_micro = quote->suggested_micro > 0 ? quote->suggested_micro : 1;
}

void exchange_quote(const struct exchange *exchange, const struct exchange_need *need,
                    struct exchange_quote *ret_quote)
{
    memset(ret_quote, 0, sizeof *ret_quote);
    assert(need->slots > 0);
    uint32_t most = need->at_most == 0 ? UINT32_MAX : need->at_most / need->slots;
    struct quoting quoting = {
        .exchange = exchange,
        .need = need,
        .quote = ret_quote,
        .limit_micro = need->cap_micro >= 0 ? need->cap_micro : exchange->price_band_micro,
        .lanes_left = need->subtasks < most ? need->subtasks : most,
    };
    struct rivals rivals = {
        .exchange = exchange, .need = need, .first = EXCHANGE_NO_ACCOUNT, .second_micro = -1};
    bool is_askable = requirement_well_formed(need->needs);
    if (is_askable) {
        book_walk_asks(exchange->book, need->needs, need->rate, find_rivals, &rivals);
    }
    ret_quote->second_micro = rivals.second_micro;
    ret_quote->is_asked = rivals.first != EXCHANGE_NO_ACCOUNT;
    if (ret_quote->is_asked) {
        ret_quote->first = member_by_number(exchange, rivals.first)->key;
    }
    if (need->apart && need->rate == RATE_NONE && rivals.second_micro <= quoting.limit_micro) {
        quoting.floor_micro = rivals.second_micro;
    }
    if (is_askable) {
        book_walk_asks(exchange->book, need->needs, need->rate, quote_ask, &quoting);
    }
    if (is_askable && ret_quote->slots_now == 0) { /* it would wait, and then pay what they ask */
        quoting.as_if_idle = true;
        ret_quote->level_count = 0; /* what is free is among them */
        book_walk_asks(exchange->book, need->needs, need->rate, quote_ask, &quoting);
    }
    if (quoting.lanes_taken == 0 && need->cap_micro >= 0 &&
        need->rate == RATE_NONE) { /* all that is known of its price */
        quote_lanes(&quoting, need->cap_micro, 1);
    }
    if (quoting.lanes_taken > 0) {
        quote_cost(&quoting);
    }
}

/* ---------------------------------------------------------------- explain */

void predicate_text(const struct requirement_node *node, char *ret_text, size_t size)
{
    static const char *const signs[] = {
        [REQUIREMENT_EQ] = "=",  [REQUIREMENT_NE] = "!=", [REQUIREMENT_LT] = "<",
        [REQUIREMENT_LE] = "<=", [REQUIREMENT_GT] = ">",  [REQUIREMENT_GE] = ">=",
    };
    const struct attribute *value = &node->attribute;
    if (value->is_text) {
        (void)snprintf(ret_text, size, "%s %s \"%s\"", value->name, signs[node->op], value->text);
    } else {
        (void)snprintf(ret_text, size, "%s %s %lld", value->name, signs[node->op],
                       (long long)value->number);
    }
}

/* One call. */
struct explaining {
    const struct exchange *exchange;
    const struct exchange_need *need;
    const struct part *part; /* of a job that is there; NULL: a need that is asked about */
    struct effort_plan plan;
    struct explained *seen; /* NULL: memory is short, and there will be no remedy */
    size_t seen_count;
    struct exchange_explanation *why;
    uint32_t unrated; /* devices without the rate of a need by value */
};

/* Best value of a numeric attribute on offer, from the first of its name on: the largest for > and >=, the smallest for <
 * and <=. */
static void keep_best(const struct requirement_node *node, const struct attribute *attributes,
                      const struct attribute_digest *digests, size_t first, size_t count,
                      bool *has_best, int64_t *best)
{
    bool wants_more = node->op == REQUIREMENT_GT || node->op == REQUIREMENT_GE;
    for (size_t i = first;
         i < count && (i == first || (digests[i].name == digests[first].name &&
                                      strcmp(attributes[i].name, node->attribute.name) == 0));
         i++) {
        const int64_t have = (int64_t)digests[i].value;
        if (!digests[i].is_text && (!*has_best || (wants_more ? have > *best : have < *best))) {
            *has_best = true;
            *best = have;
        }
    }
}

static uint32_t explain_predicates(const struct explaining *explaining,
                                   const struct attribute *attributes,
                                   const struct attribute_digest *digests, size_t count,
                                   uint64_t *ret_truth)
{
    size_t first[REQUIREMENT_NODES_MAX];
    const struct requirement *needs = explaining->need->needs;
    struct exchange_explanation *why = explaining->why;
    uint32_t at = 0; /* every device meets the same predicates in the same order */
    *ret_truth = effort_truth(&explaining->plan, attributes, digests, count, first);
    for (uint32_t i = 0; i < needs->count; i++) {
        const struct requirement_node *node = &needs->nodes[i];
        if (node->op < REQUIREMENT_EQ) {
            continue;
        }
        if (at == why->predicate_count) {
            why->predicate_count++;
            predicate_text(node, why->predicates[at].text, sizeof why->predicates[at].text);
        }
        why->predicates[at].failing += (*ret_truth >> i & 1) == 0;
        if (!node->attribute.is_text && node->op != REQUIREMENT_EQ && node->op != REQUIREMENT_NE) {
            keep_best(node, attributes, digests, first[i], count, &why->predicates[at].has_best,
                      &why->predicates[at].best);
        }
        at++;
    }
    return at;
}

/* A subtask's slots are all on one device: one with fewer never fits, however idle it is. */
static bool is_wide_enough(const struct exchange_need *need, const struct device *device,
                           struct exchange_explanation *why, uint32_t at)
{
    bool fits = device->slots >= need->slots;
    if (need->slots > 1 && at < REQUIREMENT_NODES_MAX) {
        why->predicate_count = at + 1;
        (void)snprintf(why->predicates[at].text, sizeof why->predicates[at].text, "slots >= %u",
                       need->slots);
        why->predicates[at].failing += !fits;
        if (!why->predicates[at].has_best || device->slots > why->predicates[at].best) {
            why->predicates[at].has_best = true;
            why->predicates[at].best = device->slots;
        }
    }
    return fits;
}

/* What is offered to others, or at other hours, is not on offer now. */
static bool is_conditional(const struct exchange *exchange, const struct exchange_need *need,
                           const struct ask *ask, struct exchange_explanation *why)
{
    bool is_for_it = ask_is_for(ask, need->account);
    why->for_others += !is_for_it;
    if (is_for_it && !ask->is_open) {
        int64_t opens_ns = ask->turns_ns - exchange->now_ns;
        why->opens_ns = why->closed == 0 || opens_ns < why->opens_ns ? opens_ns : why->opens_ns;
        why->closed++;
    }
    return !is_for_it || !ask->is_open;
}

static void explain_device(struct explaining *explaining, const struct device *device)
{
    const struct exchange *exchange = explaining->exchange;
    const struct exchange_need *need = explaining->need;
    const struct part *part = explaining->part;
    struct exchange_explanation *why = explaining->why;
    size_t count;
    const struct attribute *attributes = book_cell_attributes(exchange->book, device->cell, &count);
    why->devices++;
    struct explained seen = {.device = device};
    uint32_t at =
        explain_predicates(explaining, attributes, book_cell_digests(exchange->book, device->cell),
                           count, &seen.truth);
    bool is_wide = is_wide_enough(need, device, why, at);
    bool is_simulated = book_cell_simulated(exchange->book, device->cell) &&
                        requirement_passes_over(need->needs, attributes, count);
    int64_t operations =
        need->rate == RATE_NONE ? 1 : book_cell_rate(exchange->book, device->cell, need->rate);
    seen.is_passed_over = is_simulated || operations == 0;
    seen.effort = effort_of(need->needs, seen.truth);
    if (explaining->seen != NULL) {
        explaining->seen[explaining->seen_count++] = seen;
    }
    why->simulated += is_simulated;
    explaining->unrated += operations == 0;
    if (!is_wide || seen.is_passed_over || seen.effort.hold > 0 ||
        device->key.provider == need->account) {
        return;
    }
    why->fitting++;
    struct book_ask resting;
    const struct book_ask *ask = &resting;
    if (device->ask == NULL || !book_ask(exchange->book, device->ask->handle, &resting) ||
        device->ask->slots < need->slots ||
        (ask->max_term_ns != 0 && ask->max_term_ns < need->term_ns) ||
        is_conditional(exchange, need, device->ask, why)) {
        return;
    }
    why->asking++;
    bool is_affordable =
        need->cap_micro < 0 ||
        ask->price_micro <= book_limit(exchange->book, need->rate, need->cap_micro, device->cell);
    const int64_t avoided_ns =
        part == NULL ? 0 : job_avoids_for_ns(exchange, part->job, device->key.provider);
    bool is_avoided = avoided_ns > 0;
    bool is_own = part != NULL && part->waiting > 0 && part_choice(part, device->key.provider) == 0;
    bool is_free = ask->slots >= need->slots && !is_avoided && !is_own;
    why->own += is_affordable && is_own;
    if (is_affordable && is_avoided) {
        why->avoided_ns =
            why->avoided == 0 || avoided_ns < why->avoided_ns ? avoided_ns : why->avoided_ns;
        why->avoided++;
    }
    why->affordable += is_affordable;
    why->donated += is_affordable && ask->price_micro == 0;
    why->free += is_affordable && is_free;
    int64_t fills_micro = ask->price_micro;
    bool has_limit =
        need->rate == RATE_NONE || rate_value_for(ask->price_micro, operations, &fills_micro);
    if (is_free && has_limit && (why->fills_at_micro < 0 || fills_micro < why->fills_at_micro)) {
        why->fills_at_micro = fills_micro;
    }
}

/* Predicates that a need has without saying so, where there is a device to fail them. */
static void explain_simulated(struct exchange_explanation *why)
{
    uint32_t at = why->predicate_count;
    if (why->simulated > 0 && at < REQUIREMENT_NODES_MAX) {
        why->predicate_count++;
        (void)snprintf(why->predicates[at].text, sizeof why->predicates[at].text,
                       "simulated = false");
        why->predicates[at].failing = why->simulated;
    }
}

static void explain_rate(struct exchange_explanation *why, uint32_t unrated)
{
    uint32_t at = why->predicate_count;
    if (unrated > 0 && at < REQUIREMENT_NODES_MAX) {
        why->predicate_count++;
        (void)snprintf(why->predicates[at].text, sizeof why->predicates[at].text, "%s > 0",
                       rate_name(why->rate));
        why->predicates[at].failing = unrated;
    }
}

static size_t count_devices(const struct exchange *exchange)
{
    size_t count = 0;
    for (struct list_link *at = exchange->provider_list.next; at != &exchange->provider_list;
         at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        for (struct list_link *link = provider->devices.next; link != &provider->devices;
             link = link->next) {
            count++;
        }
    }
    return count;
}

static void explain(const struct exchange *exchange, const struct exchange_need *need,
                    const struct part *part, struct exchange_explanation *ret_explanation)
{
    memset(ret_explanation, 0, sizeof *ret_explanation);
    ret_explanation->fills_at_micro = -1;
    ret_explanation->rate = need->rate;
    ret_explanation->is_halted = exchange->is_halted;
    if (!requirement_well_formed(need->needs)) {
        return;
    }
    struct explaining explaining = {
        .exchange = exchange,
        .need = need,
        .part = part,
        .plan = effort_plan(need->needs),
        .seen = calloc(count_devices(exchange) + 1, sizeof *explaining.seen),
        .why = ret_explanation,
    };
    for (struct list_link *at = exchange->provider_list.next; at != &exchange->provider_list;
         at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        for (struct list_link *link = provider->devices.next; link != &provider->devices;
             link = link->next) {
            const struct device *device = LIST_ELEMENT(link, struct device, of_provider);
            if (device->is_advertised) {
                explain_device(&explaining, device);
            }
        }
    }
    explain_simulated(ret_explanation);
    explain_rate(ret_explanation, explaining.unrated);
    if (part != NULL && (part->handle == BOOK_NONE || job_waits_for_all(part->job))) {
        ret_explanation->fills_at_micro = -1; /* what one more slot costs is not the question */
        free(explaining.seen);
        return;
    }
    if (ret_explanation->free == 0 && ret_explanation->affordable > 0) {
        queue_find(exchange, need, part, explaining.seen, explaining.seen_count, ret_explanation);
    }
    if (!exchange->is_halted && (part == NULL || part->waiting > 0)) {
        remedy_find(exchange, need, part, explaining.seen, explaining.seen_count,
                    &ret_explanation->remedy);
    }
    free(explaining.seen);
}

void exchange_explain(const struct exchange *exchange, const struct exchange_need *need,
                      struct exchange_explanation *ret_explanation)
{
    explain(exchange, need, NULL, ret_explanation);
}

static const struct part *part_to_explain(const struct exchange *exchange, const struct job *job,
                                          uint32_t number)
{
    uint8_t reason;
    if (number != EXCHANGE_ANY_PART) {
        return &job->parts[number];
    }
    return job->is_closing ? &job->parts[0] : tightest_part(exchange, job, &reason);
}

bool exchange_explain_job(const struct exchange *exchange, const struct id128 *id, uint32_t number,
                          struct exchange_explanation *ret_explanation)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job == NULL || (number != EXCHANGE_ANY_PART && number >= job->part_count)) {
        return false;
    }
    if (job->phase != JOB_PHASE_OPEN) { /* nothing would start it */
        *ret_explanation = (struct exchange_explanation){.has_ended = true, .fills_at_micro = -1};
        return true;
    }
    static const struct requirement anything; /* a job without a bid has none left */
    const struct part *part = part_to_explain(exchange, job, number);
    const struct exchange_need need = {
        .needs = part->class_id == NO_CLASS
                     ? &anything
                     : book_class_requirement(exchange->book, part->class_id),
        .account = job->owner,
        .subtasks = part->end - part->first,
        .slots = part->width,
        .at_most = part->at_most,
        .cap_micro = part->bid_micro,
        .rate = (enum rate)part->rate,
        .limit_ns = part->limit_ns,
        .term_ns = part->term_ns,
        .budget_micro = job->hold.amount_micro,
    };
    explain(exchange, &need, part, ret_explanation);
    ret_explanation->part = part->number;
    return true;
}
