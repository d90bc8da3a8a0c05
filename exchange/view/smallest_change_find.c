#include "exchange/view/smallest_change_find.h"

#include <stdlib.h>
#include <string.h>

#define WHOLE_PPM 1000000

/* ---------------------------------------------------------------- candidates */

struct candidate {
    uint32_t count;     /* number of changes */
    int64_t size_ppm;   /* sum of their sizes */
    struct offer offer; /* offer.from NULL: none yet; effort.hold_set turns over */
    uint8_t type;
    uint32_t slots;
    int64_t cap_micro, term_ns, budget_micro;
};

/* A predicate turns over: to another figure, or away. */
struct turned {
    bool held, has_figure;
    struct requirement_node after;
};

enum { DIVISORS_MOST = 1536 }; /* most divisors of a 32-bit number */
struct divisors {
    uint32_t count; /* 0: no number is given */
    uint32_t found[DIVISORS_MOST];
};

struct seeking { /* The state of one call. */
    const struct search *search;
    uint64_t fixed;           /* predicates that may not change */
    struct divisors divisors; /* divisors of at_most, unless it is 0 */
    struct candidate best;
    /* The changed requirement, and its turned predicates by bit of hold_set. */
    const struct requirement *changed;
    struct turned turned[EXCHANGE_CHANGES_MOST];
};

/* Returns the relative size of a change, in millionths. */
static int64_t difference_ppm(int64_t a, int64_t b)
{
    int128 x = a < 0 ? -(int128)a : a;
    int128 y = b < 0 ? -(int128)b : b;
    int128 apart = (int128)a - b;
    apart = apart < 0 ? -apart : apart;
    int128 larger = x > y ? x : y;
    int128 ppm = larger == 0 ? 0 : apart * WHOLE_PPM / larger;
    return ppm > WHOLE_PPM ? WHOLE_PPM : (int64_t)ppm;
}

static uint64_t fixed_predicates(const struct requirement *needs)
{
    static const char *const names[] = {"program", "executor", "referee", "simulated"};
    uint64_t fixed = 0;
    for (uint32_t i = 0; i < needs->count; i++) {
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            bool is = needs->nodes[i].op >= REQUIREMENT_EQ &&
                      strcmp(needs->nodes[i].attribute.name, names[k]) == 0;
            fixed |= (uint64_t)is << i;
        }
    }
    return fixed;
}

/* Finds the device's figure nearest to an ordering predicate: the largest for > and >=, the
 * smallest for < and <=. */
static bool nearest_figure(const struct exchange *exchange, const struct device *device,
                           const struct requirement_node *node, int64_t *ret_figure)
{
    size_t count;
    const struct attribute *attributes = book_cell_attributes(exchange->book, device->cell, &count);
    bool found = false;
    *ret_figure = 0;
    bool wants_more = node->op == REQUIREMENT_GT || node->op == REQUIREMENT_GE;
    if (node->attribute.is_text || node->op < REQUIREMENT_LT) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct attribute *has = &attributes[i];
        if (has->is_text || strcmp(has->name, node->attribute.name) != 0) {
            continue;
        }
        bool is_nearer = wants_more ? has->number > *ret_figure : has->number < *ret_figure;
        if (!found || is_nearer) {
            *ret_figure = has->number;
            found = true;
        }
    }
    return found;
}

/* Rounds the figure to three digits, as people write it, away from the old one. Whole MiB stay. */
static int64_t plain_figure(int64_t figure, bool down)
{
    int64_t scale = 1;
    int64_t more;
    if (figure < 1000 || figure % (1 << 20) == 0) {
        return figure;
    }
    while (figure / scale >= 1000) {
        scale *= 10;
    }
    int64_t rounded = figure / scale * scale;
    if (down || rounded == figure) {
        return rounded;
    }
    return checked_add(rounded, scale, &more) ? more : figure;
}

/* Returns the predicate with another figure, so that it turns over for a device with `figure`. */
static struct requirement_node loosened(const struct requirement_node *node, bool held,
                                        int64_t figure)
{
    struct requirement_node after = *node;
    bool wants_more = node->op == REQUIREMENT_GT || node->op == REQUIREMENT_GE;
    after.op = wants_more ? (held ? REQUIREMENT_GT : REQUIREMENT_GE)
                          : (held ? REQUIREMENT_LT : REQUIREMENT_LE);
    after.attribute.number = plain_figure(figure, wants_more != held);
    return after;
}

/* A bound beyond any device's most would be refused, so a predicate under `not` is dropped then. */
static bool can_hold(const struct requirement_node *node)
{
    return node->op != REQUIREMENT_GT ||
           node->attribute.number < requirement_attribute_most(node->attribute.name);
}

static void copy_requirement(const struct requirement *from, struct requirement *ret_copy)
{
    ret_copy->count = from->count;
    memcpy(ret_copy->nodes, from->nodes, from->count * sizeof from->nodes[0]);
}

static void add_change(struct candidate *candidate, int64_t size_ppm)
{
    candidate->count++;
    candidate->size_ppm += size_ppm;
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    if (b->offer.from == NULL || a->count != b->count) {
        return b->offer.from == NULL || a->count < b->count;
    }
    if (a->size_ppm != b->size_ppm) {
        return a->size_ppm < b->size_ppm;
    }
    if (a->cap_micro != b->cap_micro) {
        return a->cap_micro < b->cap_micro; /* changes from 0 are all of the same size */
    }
    if (a->offer.price_micro != b->offer.price_micro) {
        return a->offer.price_micro < b->offer.price_micro;
    }
    return a->offer.is_taken != b->offer.is_taken ? b->offer.is_taken
                                                  : a->offer.sequence < b->offer.sequence;
}

static int64_t escrow_of(const struct candidate *candidate)
{
    return escrow_micro(candidate->offer.price_micro, candidate->slots, candidate->term_ns);
}

/* Returns true when the free budget covers a term. */
static bool is_covered(const struct search *search, const struct candidate *candidate)
{
    return escrow_of(candidate) <= job_free_micro(search->part->job);
}

/* Lists the divisors of a number, rising. */
static void find_divisors(uint32_t number, struct divisors *ret_divisors)
{
    uint32_t count = 0;
    uint32_t *found = ret_divisors->found;
    for (uint64_t i = 1; i * i <= number; i++) {
        if (number % i == 0) {
            found[count++] = (uint32_t)i;
        }
    }
    for (uint32_t below = count; below-- > 0;) {
        const uint32_t other = number / found[below];
        if (other != found[below]) {
            found[count++] = other;
        }
    }
    ret_divisors->count = count;
}

/* Returns the most of these slots, at least one, that divides at_most; at_most 0 allows any
 * number. */
static uint32_t in_multiples(const struct divisors *divisors, uint32_t slots)
{
    uint32_t from = 0;
    uint32_t to = divisors->count;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (divisors->found[middle] <= slots) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return divisors->count == 0 ? slots : divisors->found[from - 1];
}

/* Takes the most free slots for a subtask that divide at_most and, if possible, fit the budget. */
static void take_fewer_slots(const struct seeking *seeking, struct candidate *candidate)
{
    const struct offer *offer = &candidate->offer;
    const struct search *search = seeking->search;
    if (offer->slots == 0) {
        candidate->slots = 0;
        return;
    }
    candidate->slots = in_multiples(&seeking->divisors, offer->slots);
    const int128 slot_micro = (int128)offer->price_micro * candidate->term_ns;
    if (!is_covered(search, candidate) && slot_micro > 0) {
        const int128 free_micro = job_free_micro(search->part->job);
        const int128 covered = free_micro * NS_PER_HOUR / slot_micro; /* fewer slots */
        if (covered > 0) {
            candidate->slots = in_multiples(&seeking->divisors, (uint32_t)covered);
        }
    }
}

/* Returns the longest term that the budget covers. Returns 0 when the present term is covered, or
 * the covered one is too short for a subtask. */
static int64_t covered_term_ns(const struct search *search, const struct candidate *candidate)
{
    const int128 hourly = (int128)candidate->offer.price_micro * candidate->slots;
    if (is_covered(search, candidate) || hourly <= 0) {
        return 0;
    }
    const int128 covered_ns = (int128)job_free_micro(search->part->job) * NS_PER_HOUR / hourly;
    int64_t term_ns = (int64_t)covered_ns; /* less than the present term */
    term_ns -= term_ns % NS_PER_MS;
    return term_ns >= search->need->limit_ns ? term_ns : 0;
}

/* Takes the ask's shorter term, or less if the budget covers only less. */
static void take_shorter_term(const struct search *search, struct candidate *candidate)
{
    candidate->term_ns = candidate->offer.max_term_ns;
    const int64_t term_ns = covered_term_ns(search, candidate);
    candidate->term_ns = term_ns > 0 ? term_ns : candidate->term_ns;
}

/* A post-only bid meets nobody, and only a limit bid takes a lease. */
static void judge_type(const struct search *search, struct candidate *candidate)
{
    candidate->type = search->part->job->type;
    if (candidate->type == EXCHANGE_POST_ONLY ||
        (candidate->offer.is_taken && candidate->type != EXCHANGE_LIMIT)) {
        candidate->type = EXCHANGE_LIMIT;
        add_change(candidate, WHOLE_PPM);
    }
}

/* Returns the changed limit per slot-hour; without a cap, term, slots and budget decide it, too. */
static int64_t changed_limit(const struct search *search, const struct candidate *candidate)
{
    const int64_t budget_micro = search_budget(search->need, candidate->budget_micro);
    const bool has_cap =
        search->part->cap_micro >= 0 || candidate->cap_micro != search->need->cap_micro;
    if (candidate->term_ns == 0) {
        return candidate->cap_micro; /* the need has no term */
    }
    struct job job = *search->part->job;
    struct part changed = *search->part;
    if (job.part_count == 1) {
        job.parts = &changed;
    }
    changed.job = &job;
    changed.width = candidate->slots;
    changed.term_ns = candidate->term_ns;
    return part_limit(search->exchange, &changed, has_cap ? candidate->cap_micro : -1,
                      budget_micro);
}

/* A budget of 0 without a cap means a limit of 0, which a larger budget raises. INT64_MAX: no
 * budget does. */
static int64_t budget_at(const struct search *search, const struct candidate *candidate)
{
    struct candidate richer = *candidate;
    int64_t low_micro = candidate->budget_micro;
    int64_t high_micro = INT64_MAX;
    while (low_micro < high_micro) {
        richer.budget_micro = low_micro + (high_micro - low_micro) / 2;
        if (changed_limit(search, &richer) >= candidate->offer.price_micro) {
            high_micro = richer.budget_micro;
        } else {
            low_micro = richer.budget_micro + 1;
        }
    }
    return low_micro;
}

static bool is_limit_of_nothing(const struct search *search)
{
    return search->need->holds_nothing && search->need->rate == RATE_NONE &&
           search->need->term_ns > 0 && search->part->cap_micro < 0;
}

/* A new order needs a cap within the band, even if the standing bid's cap is outside. */
static void judge_band(const struct search *search, struct candidate *candidate)
{
    const struct exchange_need *need = search->need;
    if (need->rate == RATE_NONE && search->part->cap_micro >= 0) {
        candidate->cap_micro = price_bound(search->exchange, need->cap_micro);
    }
    if (candidate->cap_micro != need->cap_micro) {
        add_change(candidate, difference_ppm(need->cap_micro, candidate->cap_micro));
    }
}

/* Returns true when the market accepts the cost of the changed order. */
static bool is_within_notional(const struct search *search, const struct candidate *candidate)
{
    const struct exchange *exchange = search->exchange;
    const int64_t most_micro = exchange->notional_most_micro;
    const int64_t budget_micro = search_budget(search->need, candidate->budget_micro);
    if (most_micro == 0) {
        return true;
    }
    struct part changed = *search->part;
    changed.width = candidate->slots;
    changed.term_ns = candidate->term_ns;
    changed.bid_micro = changed_limit(search, candidate);
    return part_notional(exchange, &changed, budget_micro) <= most_micro;
}

/* A term must be covered by more money, or by a shorter term if the market refuses such an order.
 * Returns false when neither works. */
static bool judge_budget(const struct search *search, struct candidate *candidate)
{
    const struct exchange_need *need = search->need;
    if (is_covered(search, candidate)) {
        return is_within_notional(search, candidate);
    }
    struct candidate richer = *candidate;
    const int64_t short_micro = escrow_of(candidate) - job_free_micro(search->part->job);
    int64_t covers_micro = 0;
    const bool can_cover = checked_add(need->budget_micro, short_micro, &covers_micro);
    richer.budget_micro =
        covers_micro > candidate->budget_micro ? covers_micro : candidate->budget_micro;
    if (can_cover && is_within_notional(search, &richer)) {
        add_change(&richer, difference_ppm(need->budget_micro, richer.budget_micro));
        *candidate = richer;
        return true;
    }
    const bool is_shorter = candidate->term_ns != need->term_ns; /* counted already */
    const int64_t term_ns = covered_term_ns(search, candidate);
    if (term_ns <= 0) {
        return false;
    }
    candidate->term_ns = term_ns;
    if (!is_shorter) {
        add_change(candidate, difference_ppm(need->term_ns, term_ns));
    }
    return is_within_notional(search, candidate);
}

/* Judges all but the requirement. Returns false when no change works. */
static bool judge_terms(const struct seeking *seeking, struct candidate *candidate)
{
    const struct search *search = seeking->search;
    const struct exchange_need *need = search->need;
    const struct offer *offer = &candidate->offer;
    const uint32_t cell = offer->from->device->cell;
    candidate->slots = need->slots;
    candidate->term_ns = need->term_ns;
    candidate->cap_micro = need->cap_micro;
    candidate->budget_micro = need->budget_micro;
    if (offer->price_micro > search->exchange->price_band_micro) {
        return false; /* a standing bid may pay more; a new order may not */
    }
    judge_type(search, candidate);
    judge_band(search, candidate);
    if (offer->max_term_ns != 0 && offer->max_term_ns < need->term_ns) {
        candidate->term_ns = offer->max_term_ns;
    }
    if (offer->slots < need->slots) {
        take_fewer_slots(seeking, candidate);
        add_change(candidate, difference_ppm(need->slots, candidate->slots));
    }
    if (candidate->term_ns != need->term_ns) {
        take_shorter_term(search, candidate);
        add_change(candidate, difference_ppm(need->term_ns, candidate->term_ns));
    }
    if (need->cap_micro >= 0 &&
        offer->price_micro > search_limit_in(search, changed_limit(search, candidate), cell)) {
        const bool is_other = candidate->cap_micro != need->cap_micro; /* counted already */
        if (is_limit_of_nothing(search)) {
            candidate->budget_micro = budget_at(search, candidate);
        } else if (!search_cap_for(search, offer->price_micro, cell, &candidate->cap_micro)) {
            return false; /* no cap that can be written is worth it */
        }
        if (!is_other && candidate->cap_micro != need->cap_micro) {
            add_change(candidate, difference_ppm(need->cap_micro, candidate->cap_micro));
        }
    }
    return candidate->slots > 0 && judge_budget(search, candidate) &&
           candidate->term_ns >= need->limit_ns &&
           (int128)candidate->term_ns * candidate->slots <= offer->day_ns;
}

/* Returns true when the requirement needs few enough changes, and none to fixed predicates. This
 * cheap test comes first. */
static bool is_in_reach(const struct seeking *seeking, const struct explained *seen)
{
    const uint32_t most =
        seeking->best.offer.from == NULL ? EXCHANGE_CHANGES_MOST : seeking->best.count;
    return !seen->is_passed_over && seen->effort.hold <= most &&
           (seen->effort.hold_set & seeking->fixed) == 0;
}

static void judge_needs(const struct seeking *seeking, struct candidate *candidate)
{
    const struct explained *seen = candidate->offer.from;
    const struct requirement *needs = seeking->search->need->needs;
    for (uint64_t left = seen->effort.hold_set; left != 0; left &= left - 1) {
        int64_t figure = 0;
        const struct requirement_node *node = &needs->nodes[__builtin_ctzll(left)];
        add_change(candidate, nearest_figure(seeking->search->exchange, seen->device, node, &figure)
                                  ? difference_ppm(node->attribute.number, figure)
                                  : WHOLE_PPM);
    }
}

static void consider(struct seeking *seeking, const struct explained *seen)
{
    const struct search *search = seeking->search;
    struct candidate candidate = {.count = 0};
    if (!is_in_reach(seeking, seen) || !search_offer(search, seen, &candidate.offer) ||
        !search_may_take(search, &candidate.offer) || !judge_terms(seeking, &candidate) ||
        (seeking->best.offer.from != NULL &&
         candidate.count + seen->effort.hold > seeking->best.count)) {
        return;
    }
    judge_needs(seeking, &candidate);
    if (candidate.count <= EXCHANGE_CHANGES_MOST && is_better(&candidate, &seeking->best)) {
        seeking->best = candidate;
    }
}

/* ---------------------------------------------------------------- the requirement as it would be
 */

enum truth { TREE, ALWAYS, NEVER };

struct operand {         /* An operand belongs to the old requirement. */
    uint32_t first, out; /* its first node, and its tree's start in the new one */
    enum truth truth;
};

struct rewriting {
    struct requirement *out;
    struct exchange_smallest_change *smallest_change;
    uint32_t depth;
    struct operand operands[REQUIREMENT_NODES_MAX];
};

/* Drops all of these nodes, as one change. */
static void drop_all(struct rewriting *rewriting, uint32_t first, uint32_t last)
{
    struct exchange_smallest_change *smallest_change = rewriting->smallest_change;
    uint32_t kept = 0;
    bool is_said = false;
    for (uint32_t i = 0; i < smallest_change->count; i++) {
        struct exchange_bid_change *change = &smallest_change->changes[i];
        if (change->kind >= BID_CHANGE_LOOSEN && change->first >= first) {
            if (is_said) {
                continue;
            }
            is_said = true;
            *change = (struct exchange_bid_change){
                .kind = BID_CHANGE_DROP, .first = first, .nodes = last - first + 1};
        }
        smallest_change->changes[kept++] = *change;
    }
    smallest_change->count = kept;
}

/* Joins the last operands; decided operands go, or decide the whole. */
static void join(struct rewriting *rewriting, const struct requirement_node *node, uint32_t index)
{
    const enum truth neutral = node->op == REQUIREMENT_AND ? ALWAYS : NEVER;
    uint32_t trees = 0;
    bool is_decided = false;
    rewriting->depth -= node->arity;
    struct operand *operand = &rewriting->operands[rewriting->depth];
    for (uint32_t k = 0; k < node->arity; k++) {
        const enum truth truth = operand[k].truth;
        trees += truth == TREE;
        is_decided = is_decided || (truth != TREE && truth != neutral);
    }
    struct requirement *out = rewriting->out;
    if (is_decided || trees == 0) {
        out->count = operand->out;
        operand->truth = (neutral == ALWAYS) != is_decided ? ALWAYS : NEVER;
        if (is_decided) {
            drop_all(rewriting, operand->first, index);
        }
    } else {
        if (trees > 1) {
            out->nodes[out->count] = *node;
            out->nodes[out->count++].arity = trees;
        }
        operand->truth = TREE;
    }
    rewriting->depth++;
}

static void turn(struct rewriting *rewriting, const struct requirement_node *node, uint32_t index)
{
    struct operand *last = &rewriting->operands[rewriting->depth - 1];
    if (last->truth == TREE) {
        rewriting->out->nodes[rewriting->out->count++] = *node;
    } else {
        last->truth = last->truth == ALWAYS ? NEVER : ALWAYS;
        drop_all(rewriting, last->first, index);
    }
}

static void add(struct exchange_smallest_change *smallest_change,
                const struct exchange_bid_change *change)
{
    assert(smallest_change->count < EXCHANGE_CHANGES_MOST);
    smallest_change->changes[smallest_change->count++] = *change;
}

/* Turns a predicate over: it gets another figure, or is decided and goes. */
static void turn_over(struct rewriting *rewriting, uint32_t index,
                      const struct requirement_node *node, const struct turned *turned)
{
    const struct exchange_bid_change change = {
        .kind = turned->has_figure ? BID_CHANGE_LOOSEN : BID_CHANGE_DROP,
        .is_negated = turned->held,
        .first = index,
        .nodes = 1,
        .before = *node,
        .after = turned->after,
    };
    add(rewriting->smallest_change, &change);
    if (turned->has_figure) {
        rewriting->out->nodes[rewriting->out->count++] = turned->after;
    }
    rewriting->operands[rewriting->depth++].truth = turned->has_figure ? TREE
                                                    : turned->held     ? NEVER
                                                                       : ALWAYS;
}

static void rewrite(struct seeking *seeking, struct exchange_smallest_change *smallest_change)
{
    const struct search *search = seeking->search;
    const struct requirement *needs = search->need->needs;
    const struct explained *seen = seeking->best.offer.from;
    struct rewriting rewriting = {.out = &smallest_change->needs,
                                  .smallest_change = smallest_change};
    uint32_t turned_count = 0;
    smallest_change->needs.count = 0;
    for (uint32_t i = 0; i < needs->count; i++) {
        const struct requirement_node *node = &needs->nodes[i];
        if (node->op == REQUIREMENT_NOT) {
            turn(&rewriting, node, i);
            continue;
        }
        if (node->op == REQUIREMENT_AND || node->op == REQUIREMENT_OR) {
            join(&rewriting, node, i);
            continue;
        }
        rewriting.operands[rewriting.depth] =
            (struct operand){.first = i, .out = smallest_change->needs.count, .truth = TREE};
        if ((seen->effort.hold_set >> i & 1) == 0) {
            smallest_change->needs.nodes[smallest_change->needs.count++] = *node;
            rewriting.depth++;
            continue;
        }
        int64_t figure = 0;
        struct turned *turned = &seeking->turned[turned_count++];
        turned->held = (seen->truth >> i & 1) != 0;
        turned->has_figure = nearest_figure(search->exchange, seen->device, node, &figure);
        turned->after = loosened(node, turned->held, figure);
        turned->has_figure = turned->has_figure && can_hold(&turned->after);
        turn_over(&rewriting, i, node, turned);
    }
    assert(rewriting.depth <= 1);
    seeking->changed = &smallest_change->needs;
}

/* ---------------------------------------------------------------- the smallest change */

static void add_figure(struct exchange_smallest_change *smallest_change,
                       enum exchange_bid_change_kind kind, int64_t from, int64_t to)
{
    if (from != to) {
        const struct exchange_bid_change change = {.kind = kind, .from = from, .to = to};
        add(smallest_change, &change);
    }
}

/* Returns true when the device satisfies the changed requirement. Only changed predicates can
 * differ, and most devices fail even if all of those hold. */
static bool satisfies(const void *context, const struct explained *seen)
{
    const struct seeking *seeking = context;
    const struct search *search = seeking->search;
    const struct explained *best = seeking->best.offer.from;
    size_t count;
    steps_add(search->exchange, steps_of_needs(search->need->needs));
    const struct attribute *attributes =
        book_cell_attributes(search->exchange->book, seen->device->cell, &count);
    const uint64_t changed = best->effort.hold_set;
    uint64_t truth = seen->truth & ~changed;
    const uint64_t at_best = truth | (changed & ~best->truth);
    if (effort_of(search->need->needs, at_best).hold > 0) {
        return false;
    }
    const struct turned *turned = seeking->turned;
    for (uint64_t left = changed; left != 0; left &= left - 1, turned++) {
        const bool holds = turned->has_figure
                               ? requirement_predicate_holds(&turned->after, attributes, count)
                               : !turned->held;
        truth |= holds ? left & (~left + 1) : 0;
    }
    return effort_of(search->need->needs, truth).hold == 0 &&
           !requirement_passes_over(seeking->changed, attributes, count) &&
           (search->need->rate == RATE_NONE || rate_of(search->need->rate, attributes, count) > 0);
}

/* Finds the best offer for the changed bid, which may beat its own candidate. Returns false when an
 * own ask comes first: the order would be refused. */
static bool settle_price(const struct seeking *seeking,
                         struct exchange_smallest_change *smallest_change)
{
    const struct candidate *best = &seeking->best;
    const struct altered altered = {
        .slots = best->slots,
        .cap_micro = changed_limit(seeking->search, best),
        .term_ns = best->term_ns,
        .more_micro = best->budget_micro - seeking->search->need->budget_micro,
        .type = best->type,
        .turns = best->offer.from->effort.hold_set != 0,
        .satisfies = satisfies,
        .context = seeking,
    };
    const struct meeting meeting = search_meet(seeking->search, &altered);
    smallest_change->price_micro = meeting.price_micro;
    smallest_change->takes = meeting.from != NULL && meeting.from->lease != NULL;
    return !meeting.is_own && meeting.from != NULL;
}

void smallest_change_find(const struct search *search,
                          struct exchange_smallest_change *ret_smallest)
{
    const struct exchange_need *need = search->need;
    struct seeking seeking = {.search = search, .fixed = fixed_predicates(need->needs)};
    find_divisors(need->at_most, &seeking.divisors);
    ret_smallest->count = 0;
    steps_add(search->exchange, 12 * search->count);
    for (size_t i = 0; i < search->count; i++) {
        consider(&seeking, &search->seen[i]);
    }
    const struct candidate *best = &seeking.best;
    if (best->offer.from == NULL || best->count == 0) {
        return;
    }
    ret_smallest->slots = best->slots;
    ret_smallest->cap_micro = best->cap_micro;
    ret_smallest->rate = need->rate;
    ret_smallest->term_ns = best->term_ns;
    ret_smallest->budget_micro = best->budget_micro;
    ret_smallest->type = best->type;
    add_figure(ret_smallest, BID_CHANGE_ORDER, search->part->job->type, best->type);
    add_figure(ret_smallest, BID_CHANGE_CAP, need->cap_micro, best->cap_micro);
    add_figure(ret_smallest, BID_CHANGE_BUDGET, need->budget_micro, best->budget_micro);
    add_figure(ret_smallest, BID_CHANGE_TERM, need->term_ns, best->term_ns);
    add_figure(ret_smallest, BID_CHANGE_SLOTS, need->slots, best->slots);
    rewrite(&seeking, ret_smallest);
    assert(ret_smallest->count <= best->count); /* a list goes as one change */
    if (!settle_price(&seeking, ret_smallest)) {
        ret_smallest->count = 0;
    }
    copy_requirement(need->needs, &ret_smallest->was);
}

/* ---------------------------------------------------------------- of all at once */

/* Returns the least budget at which the part's limit reaches that price. */
static int64_t budget_for(const struct search *search, int64_t cap_micro, int64_t price_micro)
{
    const struct part *part = search->part;
    int64_t low_micro = part->job->hold.amount_micro;
    int64_t high_micro = INT64_MAX;
    while (low_micro < high_micro) {
        const int64_t middle_micro = low_micro + (high_micro - low_micro) / 2;
        if (part_limit(search->exchange, part, cap_micro, middle_micro) >= price_micro) {
            high_micro = middle_micro;
        } else {
            low_micro = middle_micro + 1;
        }
    }
    return low_micro;
}

/* Returns the longest shorter term for which cap and budget pay everything; 0: none is long enough
 * for a subtask. */
static int64_t payable_term_ns(const struct search *search, const struct whole *whole)
{
    const struct part *part = search->part;
    const int64_t budget_micro = part->job->hold.amount_micro;
    struct candidate changed = {.slots = part->width,
                                .cap_micro = part->cap_micro >= 0 ? part->cap_micro
                                                                  : search->need->cap_micro,
                                .budget_micro = budget_micro};
    int64_t low_ms = (search->need->limit_ns + NS_PER_MS - 1) / NS_PER_MS;
    int64_t high_ms = part->term_ns / NS_PER_MS - 1;
    if (part->job->type == EXCHANGE_FOK && whole->escrow_micro > budget_micro) {
        high_ms = (int64_t)((int128)part->term_ns * budget_micro / whole->escrow_micro / NS_PER_MS);
    }
    if (low_ms > high_ms) {
        return 0;
    }
    while (low_ms < high_ms) {
        const int64_t middle_ms = high_ms - (high_ms - low_ms) / 2;
        changed.term_ns = middle_ms * NS_PER_MS;
        if (changed_limit(search, &changed) >= whole->dearest_micro) {
            low_ms = middle_ms;
        } else {
            high_ms = middle_ms - 1;
        }
    }
    return low_ms * NS_PER_MS;
}

/* Returns true when the bid fills with such a term at its present cap and budget; gives the dearest
 * price. */
static bool fills_for(const struct search *search, int64_t term_ns, int64_t *ret_price_micro)
{
    struct job job = *search->part->job;
    struct part changed = *search->part;
    struct exchange_need need = *search->need;
    struct search asked = *search;
    struct whole whole;
    job.parts = &changed;
    changed.job = &job;
    changed.term_ns = need.term_ns = term_ns;
    changed.bid_micro =
        part_limit(search->exchange, &changed, changed.cap_micro, job.hold.amount_micro);
    need.cap_micro = changed.bid_micro;
    asked.part = &changed;
    asked.need = &need;
    const struct candidate candidate = {.slots = changed.width,
                                        .term_ns = term_ns,
                                        .cap_micro = need.cap_micro,
                                        .budget_micro = job.hold.amount_micro};
    const struct altered altered = search_unaltered(&asked);
    if (search_meet(&asked, &altered).is_own || !is_within_notional(&asked, &candidate) ||
        !search_whole(&asked, &whole)) {
        return false;
    }
    *ret_price_micro = whole.price_micro;
    return whole.fills;
}

/* The market may refuse an order with the budget that a full term needs. */
static void shorten_whole(const struct search *search, const struct whole *whole,
                          struct exchange_smallest_change *ret_smallest)
{
    const struct part *part = search->part;
    if (search->need->rate != RATE_NONE || part->job->part_count > 1) {
        return;
    }
    const int64_t term_ns = payable_term_ns(search, whole);
    if (term_ns > 0 && fills_for(search, term_ns, &ret_smallest->price_micro)) {
        ret_smallest->term_ns = term_ns;
        ret_smallest->cap_micro = part->cap_micro;
        ret_smallest->budget_micro = part->job->hold.amount_micro;
        add_figure(ret_smallest, BID_CHANGE_TERM, part->term_ns, term_ns);
    }
}

/* All slots exist at some price, but the limit is lower or the budget does not cover them. */
void smallest_change_find_whole(const struct search *search, const struct whole *whole,
                                struct exchange_smallest_change *ret_smallest)
{
    const struct part *part = search->part;
    const struct exchange_need *need = search->need;
    const int64_t budget_micro = part->job->hold.amount_micro;
    struct altered altered = search_unaltered(search);
    ret_smallest->count = 0;
    ret_smallest->takes = false;
    ret_smallest->price_micro = whole->dearest_micro;
    copy_requirement(need->needs, &ret_smallest->needs);
    copy_requirement(need->needs, &ret_smallest->was);
    ret_smallest->slots = part->width;
    ret_smallest->term_ns = part->term_ns;
    ret_smallest->rate = need->rate;
    ret_smallest->type = part->job->type;
    ret_smallest->cap_micro = part->cap_micro >= 0 && part->cap_micro < whole->limit_micro
                                  ? whole->limit_micro
                                  : part->cap_micro;
    ret_smallest->budget_micro = budget_for(search, ret_smallest->cap_micro, whole->limit_micro);
    if (part->job->type == EXCHANGE_FOK && ret_smallest->budget_micro < whole->escrow_micro) {
        ret_smallest->budget_micro = whole->escrow_micro;
    }
    altered.cap_micro = whole->limit_micro;
    const struct candidate changed = {
        .slots = part->width,
        .term_ns = part->term_ns,
        .cap_micro = whole->limit_micro,
        .budget_micro = ret_smallest->budget_micro,
    };
    if (search_meet(search, &altered).is_own) {
        return;
    }
    if (!is_within_notional(search, &changed)) {
        shorten_whole(search, whole, ret_smallest);
        return;
    }
    add_figure(ret_smallest, BID_CHANGE_CAP, part->cap_micro, ret_smallest->cap_micro);
    add_figure(ret_smallest, BID_CHANGE_BUDGET, budget_micro, ret_smallest->budget_micro);
}
