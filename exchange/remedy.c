#include "exchange/effort.h"
#include "exchange/state.h"

#include <stdlib.h>
#include <string.h>

#define WHOLE_PPM 1000000
#define UNTOLD INT64_MAX /* of a budget */

/* ---------------------------------------------------------------- candidates */

struct candidate {
    uint32_t count;   /* of changes */
    int64_t size_ppm; /* their sum */
    int64_t price_micro;
    uint64_t sequence;
    const struct explained *seen; /* NULL: none yet. What would turn over is effort.hold_set */
    uint32_t slots;
    int64_t cap_micro, term_ns, budget_micro;
};

struct search { /* one call */
    const struct exchange *exchange;
    const struct exchange_need *need;
    const struct part *part; /* NULL: a need that is only asked about */
    int64_t left_micro;      /* of its budget; UNTOLD */
    uint64_t fixed;          /* predicates that stay as they are */
    struct candidate best;
};

/* How much of a figure changes. */
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

/* The figure next to what a predicate on an order asks: the largest for > and >=, the smallest for < and <=. */
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

/* The figure with three digits, as people write it, no nearer than it was. A whole number of MiB stays. */
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

/* The predicate with another figure, so that it turns over for a device of this one. */
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

static void add_change(struct candidate *candidate, int64_t size_ppm)
{
    candidate->count++;
    candidate->size_ppm += size_ppm;
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    if (b->seen == NULL || a->count != b->count) {
        return b->seen == NULL || a->count < b->count;
    }
    if (a->size_ppm != b->size_ppm) {
        return a->size_ppm < b->size_ppm;
    }
    return a->price_micro != b->price_micro ? a->price_micro < b->price_micro
                                            : a->sequence < b->sequence;
}

/* Whether a term of it is within what is left. */
static bool is_covered(const struct search *search, const struct candidate *candidate)
{
    return escrow_micro(candidate->price_micro, candidate->slots, candidate->term_ns) <=
           search->left_micro;
}

/* The most of the free slots that a subtask can have: what it may use at a time stays a multiple. Of those the most that
 * the budget covers, if it covers any. */
static void take_fewer_slots(const struct search *search, uint32_t free_slots,
                             struct candidate *candidate)
{
    uint32_t most = 0;
    for (uint32_t slots = free_slots; slots > 0; slots--) {
        candidate->slots = slots;
        if (search->need->at_most % slots != 0) {
            continue;
        }
        most = most == 0 ? slots : most;
        if (is_covered(search, candidate)) {
            return;
        }
    }
    candidate->slots = most;
}

/* Likewise of the ask's term. */
static void take_shorter_term(const struct search *search, int64_t max_term_ns,
                              struct candidate *candidate)
{
    candidate->term_ns = max_term_ns;
    int128 hourly = (int128)candidate->price_micro * candidate->slots;
    if (!is_covered(search, candidate) && hourly > 0) {
        int128 covered_ns = (int128)search->left_micro * NS_PER_HOUR / hourly;
        int64_t term_ns = (int64_t)covered_ns; /* less than what was not covered */
        term_ns -= term_ns % NS_PER_MS;
        if (term_ns > 0 && term_ns >= search->need->limit_ns) {
            candidate->term_ns = term_ns;
        }
    }
}

/* What a bid of that cap gives for a slot-hour in that cell. */
static int64_t limit_in(const struct search *search, int64_t cap_micro, uint32_t cell)
{
    return book_limit(search->exchange->book, search->need->rate, cap_micro, cell);
}

/* All but the requirement. False: no change would do. */
static bool judge_terms(const struct search *search, const struct book_ask *ask,
                        struct candidate *candidate)
{
    const struct exchange_need *need = search->need;
    candidate->slots = need->slots;
    candidate->term_ns = need->term_ns;
    candidate->cap_micro = need->cap_micro;
    candidate->budget_micro = need->budget_micro;
    candidate->price_micro = ask->price_micro;
    candidate->sequence = ask->sequence;
    if (ask->max_term_ns != 0 && ask->max_term_ns < need->term_ns) {
        candidate->term_ns = ask->max_term_ns;
    }
    if (ask->slots < need->slots) {
        take_fewer_slots(search, ask->slots, candidate);
        add_change(candidate, difference_ppm(need->slots, candidate->slots));
    }
    if (candidate->term_ns != need->term_ns) {
        take_shorter_term(search, ask->max_term_ns, candidate);
        add_change(candidate, difference_ppm(need->term_ns, candidate->term_ns));
    }
    if (need->cap_micro >= 0 && ask->price_micro > limit_in(search, need->cap_micro, ask->cell)) {
        int64_t operations = need->rate == RATE_NONE
                                 ? RATE_UNIT
                                 : book_cell_rate(search->exchange->book, ask->cell, need->rate);
        if (operations == 0 ||
            !rate_value_for(ask->price_micro, operations, &candidate->cap_micro)) {
            return false; /* nothing that can be said is worth it */
        }
        add_change(candidate, difference_ppm(need->cap_micro, candidate->cap_micro));
    }
    if (!is_covered(search, candidate)) {
        int64_t escrow = escrow_micro(ask->price_micro, candidate->slots, candidate->term_ns);
        if (!checked_add(need->budget_micro, escrow - search->left_micro,
                         &candidate->budget_micro)) {
            return false;
        }
        add_change(candidate, difference_ppm(need->budget_micro, candidate->budget_micro));
    }
    return candidate->slots > 0 && candidate->term_ns >= need->limit_ns;
}

static bool judge_needs(const struct search *search, struct candidate *candidate)
{
    const struct explained *seen = candidate->seen;
    const struct requirement *needs = search->need->needs;
    if (seen->is_passed_over || seen->effort.hold > EXCHANGE_CHANGES_MOST ||
        (seen->effort.hold_set & search->fixed) != 0) {
        return false;
    }
    for (uint64_t left = seen->effort.hold_set; left != 0; left &= left - 1) {
        int64_t figure = 0;
        const struct requirement_node *node = &needs->nodes[__builtin_ctzll(left)];
        add_change(candidate, nearest_figure(search->exchange, seen->device, node, &figure)
                                  ? difference_ppm(node->attribute.number, figure)
                                  : WHOLE_PPM);
    }
    return true;
}

static void consider(struct search *search, const struct explained *seen)
{
    struct book_ask ask;
    const struct device *device = seen->device;
    if (device->ask == NULL || device->key.provider == search->need->account ||
        !ask_is_for(device->ask, search->need->account) ||
        !book_ask(search->exchange->book, device->ask->handle, &ask) || ask.slots == 0) {
        return;
    }
    const struct part *part = search->part;
    if (part != NULL &&
        ((device->ask->terms.is_interruptible && part->job->interruptions_left == 0) ||
         job_avoids(search->exchange, part->job, device->key.provider) ||
         (part->waiting > 0 && part_choice(part, device->key.provider) == 0))) {
        return;
    }
    struct candidate candidate = {.seen = seen};
    if (judge_terms(search, &ask, &candidate) &&
        (search->best.seen == NULL || candidate.count + seen->effort.hold <= search->best.count) &&
        judge_needs(search, &candidate) && candidate.count <= EXCHANGE_CHANGES_MOST &&
        is_better(&candidate, &search->best)) {
        search->best = candidate;
    }
}

/* ---------------------------------------------------------------- the requirement as it would be */

enum truth { TREE, ALWAYS, NEVER };

struct rewriting {
    struct requirement *out;
    uint32_t depth;
    enum truth truths[REQUIREMENT_NODES_MAX]; /* of the operands so far */
};

/* The last operands become one: those that are decided go, or decide it. */
static void join(struct rewriting *rewriting, const struct requirement_node *node,
                 uint32_t first_node)
{
    const enum truth neutral = node->op == REQUIREMENT_AND ? ALWAYS : NEVER;
    uint32_t trees = 0;
    bool is_decided = false;
    rewriting->depth -= node->arity;
    for (uint32_t k = 0; k < node->arity; k++) {
        enum truth truth = rewriting->truths[rewriting->depth + k];
        trees += truth == TREE;
        is_decided = is_decided || (truth != TREE && truth != neutral);
    }
    struct requirement *out = rewriting->out;
    if (is_decided) {
        out->count = first_node;
        rewriting->truths[rewriting->depth] = neutral == ALWAYS ? NEVER : ALWAYS;
    } else {
        if (trees > 1) {
            out->nodes[out->count] = *node;
            out->nodes[out->count++].arity = trees;
        }
        rewriting->truths[rewriting->depth] = trees == 0 ? neutral : TREE;
    }
    rewriting->depth++;
}

static void turn(struct rewriting *rewriting, const struct requirement_node *node)
{
    enum truth *last = &rewriting->truths[rewriting->depth - 1];
    if (*last == TREE) {
        rewriting->out->nodes[rewriting->out->count++] = *node;
    } else {
        *last = *last == ALWAYS ? NEVER : ALWAYS;
    }
}

/* A predicate that turns over: with another figure, or decided, so that it goes. */
static void turn_over(struct rewriting *rewriting, const struct requirement_node *node, bool held,
                      bool has_figure, int64_t figure)
{
    if (has_figure) {
        rewriting->out->nodes[rewriting->out->count++] = loosened(node, held, figure);
    }
    rewriting->truths[rewriting->depth++] = has_figure ? TREE : held ? NEVER : ALWAYS;
}

static void add(struct exchange_remedy *remedy, const struct exchange_remedy_change *change)
{
    assert(remedy->count < EXCHANGE_CHANGES_MOST);
    remedy->changes[remedy->count++] = *change;
}

static void rewrite(const struct search *search, const struct candidate *candidate,
                    struct exchange_remedy *remedy)
{
    const struct requirement *needs = search->need->needs;
    const struct explained *seen = candidate->seen;
    struct rewriting rewriting = {.out = &remedy->needs};
    uint32_t first_nodes[REQUIREMENT_NODES_MAX]; /* of out, where each operand begins */
    for (uint32_t i = 0; i < needs->count; i++) {
        const struct requirement_node *node = &needs->nodes[i];
        if (node->op == REQUIREMENT_NOT) {
            turn(&rewriting, node);
            continue;
        }
        if (node->op == REQUIREMENT_AND || node->op == REQUIREMENT_OR) {
            join(&rewriting, node, first_nodes[rewriting.depth - node->arity]);
            continue;
        }
        first_nodes[rewriting.depth] = remedy->needs.count;
        if ((seen->effort.hold_set >> i & 1) == 0) {
            remedy->needs.nodes[remedy->needs.count++] = *node;
            rewriting.truths[rewriting.depth++] = TREE;
            continue;
        }
        int64_t figure = 0;
        bool held = (seen->truth >> i & 1) != 0;
        bool has_figure = nearest_figure(search->exchange, seen->device, node, &figure);
        const struct exchange_remedy_change change = {
            .kind = has_figure ? REMEDY_LOOSEN : REMEDY_DROP,
            .is_negated = held,
            .before = *node,
            .after = loosened(node, held, figure),
        };
        add(remedy, &change);
        turn_over(&rewriting, node, held, has_figure, figure);
    }
    assert(rewriting.depth <= 1);
}

/* ---------------------------------------------------------------- the remedy */

static void add_figure(struct exchange_remedy *remedy, enum exchange_remedy_kind kind, int64_t from,
                       int64_t to)
{
    if (from != to) {
        const struct exchange_remedy_change change = {.kind = kind, .from = from, .to = to};
        add(remedy, &change);
    }
}

/* Whether the device satisfies the changed requirement: of what it satisfied, only the changed predicates differ. Most do not
 * even if those came out as they have to. */
static bool satisfies(const struct search *search, const struct exchange_remedy *remedy,
                      const struct explained *seen)
{
    size_t count;
    const struct attribute *attributes =
        book_cell_attributes(search->exchange->book, seen->device->cell, &count);
    uint64_t changed = search->best.seen->effort.hold_set;
    if (changed == 0) {
        return seen->effort.hold == 0 && !seen->is_passed_over;
    }
    uint64_t truth = seen->truth & ~changed;
    uint64_t at_best = truth | (changed & ~search->best.seen->truth);
    if (effort_of(search->need->needs, at_best).hold > 0) {
        return false;
    }
    uint32_t i = 0;
    for (uint64_t left = changed; left != 0; left &= left - 1) {
        while (remedy->changes[i].kind < REMEDY_LOOSEN) {
            i++;
        }
        const struct exchange_remedy_change *change = &remedy->changes[i++];
        bool holds = change->kind == REMEDY_DROP
                         ? !change->is_negated
                         : requirement_predicate_holds(&change->after, attributes, count);
        truth |= holds ? left & (~left + 1) : 0;
    }
    return effort_of(search->need->needs, truth).hold == 0 &&
           !requirement_passes_over(&remedy->needs, attributes, count) &&
           (remedy->rate == RATE_NONE || rate_of(remedy->rate, attributes, count) > 0);
}

/* Of the budget as it would be. By value, an ask that comes first may cost more than one behind it. */
static bool covers(const struct search *search, const struct exchange_remedy *remedy,
                   int64_t price_micro)
{
    int64_t more_micro = remedy->budget_micro - search->need->budget_micro;
    return search->left_micro == UNTOLD ||
           escrow_micro(price_micro, remedy->slots, remedy->term_ns) - more_micro <=
               search->left_micro;
}

static bool would_take(const struct search *search, const struct exchange_remedy *remedy,
                       const struct explained *seen, const struct book_ask *ask)
{
    return ask->slots >= remedy->slots &&
           (remedy->cap_micro < 0 ||
            ask->price_micro <= limit_in(search, remedy->cap_micro, ask->cell)) &&
           (ask->max_term_ns == 0 || ask->max_term_ns >= remedy->term_ns) &&
           satisfies(search, remedy, seen);
}

/* Of two that it could take, the one that it takes: by price, or price for its work, then time. */
static bool comes_first(const struct search *search, const struct book_ask *ask,
                        const struct book_ask *other)
{
    const struct book *book = search->exchange->book;
    const enum rate rate = search->need->rate;
    int64_t in_ask = rate == RATE_NONE ? 1 : book_cell_rate(book, ask->cell, rate);
    int64_t in_other = rate == RATE_NONE ? 1 : book_cell_rate(book, other->cell, rate);
    int128 here = rate_worth(ask->price_micro, in_other);
    int128 there = rate_worth(other->price_micro, in_ask);
    return here != there ? here < there : ask->sequence < other->sequence;
}

/* The best ask for the changed bid: it may be better than the one it was made for. False: one's own comes first, and the order
 * would be refused. */
static bool settle_price(const struct search *search, const struct explained *seen, size_t count,
                         struct exchange_remedy *remedy)
{
    bool is_own = false;
    struct book_ask best; /* of those that the budget covers */
    (void)book_ask(search->exchange->book, search->best.seen->device->ask->handle, &best);
    struct book_ask first = best; /* of all: whose own it is does not ask for the budget */
    for (size_t i = 0; i < count; i++) {
        const struct device *device = seen[i].device;
        struct book_ask ask;
        if (device->ask == NULL || !ask_is_for(device->ask, search->need->account) ||
            !book_ask(search->exchange->book, device->ask->handle, &ask) ||
            !would_take(search, remedy, &seen[i], &ask)) {
            continue;
        }
        if (comes_first(search, &ask, &first)) {
            first = ask;
            is_own = device->key.provider == search->need->account;
        }
        if (comes_first(search, &ask, &best) && covers(search, remedy, ask.price_micro) &&
            device->key.provider != search->need->account) {
            best = ask;
        }
    }
    remedy->price_micro = best.price_micro;
    return !is_own;
}

void remedy_find(const struct exchange *exchange, const struct exchange_need *need,
                 const struct part *part, const struct explained *seen, size_t count,
                 struct exchange_remedy *ret_remedy)
{
    struct search search = {
        .exchange = exchange,
        .need = need,
        .part = part,
        .left_micro = part != NULL              ? job_free_micro(part->job)
                      : need->budget_micro != 0 ? need->budget_micro
                                                : UNTOLD,
        .fixed = fixed_predicates(need->needs),
    };
    ret_remedy->count = 0;
    for (size_t i = 0; i < count; i++) {
        consider(&search, &seen[i]);
    }
    const struct candidate *best = &search.best;
    if (best->seen == NULL || best->count == 0) {
        return;
    }
    ret_remedy->needs.count = 0;
    ret_remedy->slots = best->slots;
    ret_remedy->cap_micro = best->cap_micro;
    ret_remedy->rate = need->rate;
    ret_remedy->term_ns = best->term_ns;
    ret_remedy->budget_micro = best->budget_micro;
    add_figure(ret_remedy, REMEDY_CAP, need->cap_micro, best->cap_micro);
    add_figure(ret_remedy, REMEDY_BUDGET, need->budget_micro, best->budget_micro);
    add_figure(ret_remedy, REMEDY_TERM, need->term_ns, best->term_ns);
    add_figure(ret_remedy, REMEDY_SLOTS, need->slots, best->slots);
    rewrite(&search, best, ret_remedy);
    assert(ret_remedy->count == best->count);
    if (!settle_price(&search, seen, count, ret_remedy)) {
        ret_remedy->count = 0;
    }
}

/* ---------------------------------------------------------------- the queue */

enum { QUEUE_STEPS = 1 << 13 }; /* of one call: two milliseconds where each is a new question */

struct queue {
    const struct exchange *exchange;
    const struct exchange_need *need;
    const struct part *part;
    uint32_t *ahead; /* bids by class */
    uint32_t *cells; /* of the devices that it could have */
    uint32_t cell_count, cell_room;
    uint32_t steps;
    bool is_partial;
    bool goes_by_rank; /* all that it could have is given away */
    int64_t rank;      /* then: of its account */
};

/* In the donation queue. */
static bool is_ahead_by_rank(const struct queue *queue, const struct book_bid *bid,
                             uint64_t sequence)
{
    const int64_t rank = donation_rank(queue->exchange, bid->owner);
    return rank < queue->rank || (rank == queue->rank && bid->sequence < sequence);
}

static void count_bids(struct queue *queue)
{
    const struct exchange *exchange = queue->exchange;
    const int64_t limit = queue->need->cap_micro < 0 ? INT64_MAX : queue->need->cap_micro;
    const uint64_t sequence = queue->part == NULL ? UINT64_MAX : queue->part->sequence;
    for (uint32_t handle = 0; handle < exchange->handle_capacity; handle++) {
        struct book_bid bid;
        if (exchange->orders_by_handle[handle] != NULL && book_bid(exchange->book, handle, &bid) &&
            bid.slots > 0 && !bid_waits_for_all(exchange, handle) &&
            (queue->goes_by_rank
                 ? is_ahead_by_rank(queue, &bid, sequence)
                 : book_class_rate(exchange->book, bid.class_id) == queue->need->rate &&
                       (bid.limit_micro > limit ||
                        (bid.limit_micro == limit && bid.sequence < sequence)))) {
            queue->ahead[bid.class_id]++;
        }
    }
}

static void add_cell(struct queue *queue, uint32_t cell)
{
    for (uint32_t i = queue->cell_count; i-- > 0 && i + 8 > queue->cell_count;) {
        if (queue->cells[i] == cell) {
            return; /* like devices often stand together; one too many does no harm */
        }
    }
    if (queue->cell_count < queue->cell_room) {
        queue->cells[queue->cell_count++] = cell;
    }
}

/* Those that fit and ask no more than it gives, if they were free. */
static void find_cells(struct queue *queue, const struct explained *seen, size_t count)
{
    const struct exchange_need *need = queue->need;
    for (size_t i = 0; i < count; i++) {
        const struct device *device = seen[i].device;
        struct book_ask ask;
        if (seen[i].effort.hold == 0 && !seen[i].is_passed_over &&
            device->key.provider != need->account && device->ask != NULL && device->ask->is_open &&
            !ask_is_spent(queue->exchange, device->ask) && ask_is_for(device->ask, need->account) &&
            book_ask(queue->exchange->book, device->ask->handle, &ask) &&
            (need->cap_micro < 0 || ask.price_micro <= book_limit(queue->exchange->book, need->rate,
                                                                  need->cap_micro, ask.cell)) &&
            (ask.max_term_ns == 0 || ask.max_term_ns >= need->term_ns) &&
            device->slots >= need->slots && device->ask->slots >= need->slots) {
            add_cell(queue, device->cell);
        }
    }
}

/* What a bid is worth in a cell, to be compared there. */
static int128 worth_in(const struct book *book, enum rate rate, int64_t limit_micro, uint32_t cell)
{
    return rate == RATE_NONE ? rate_price(limit_micro)
                             : rate_worth(limit_micro, book_cell_rate(book, cell, rate));
}

/* Whether one that is limited otherwise comes before it in a cell that it could have. */
static bool is_ahead_somewhere(struct queue *queue, const struct book_bid *bid)
{
    const struct book *book = queue->exchange->book;
    const struct exchange_need *need = queue->need;
    const int64_t limit = need->cap_micro < 0 ? INT64_MAX : need->cap_micro;
    const uint64_t sequence = queue->part == NULL ? UINT64_MAX : queue->part->sequence;
    const enum rate rate = book_class_rate(book, bid->class_id);
    for (uint32_t i = 0; i < queue->cell_count; i++) {
        const uint32_t cell = queue->cells[i];
        if (++queue->steps > QUEUE_STEPS) {
            queue->is_partial = true;
            return false;
        }
        if (book_class_accepts(book, bid->class_id, cell)) {
            int128 here = worth_in(book, need->rate, limit, cell);
            int128 there = worth_in(book, rate, bid->limit_micro, cell);
            if (there > here || (there == here && bid->sequence < sequence)) {
                return true;
            }
        }
    }
    return false;
}

/* Bids of another kind of limit, whose order is another in each cell. */
static uint32_t count_unlike(struct queue *queue)
{
    const struct exchange *exchange = queue->exchange;
    uint32_t ahead = 0;
    for (uint32_t handle = 0; handle < exchange->handle_capacity && !queue->is_partial; handle++) {
        struct book_bid bid;
        if (exchange->orders_by_handle[handle] != NULL && book_bid(exchange->book, handle, &bid) &&
            bid.slots > 0 && book_class_rate(exchange->book, bid.class_id) != queue->need->rate) {
            ahead += is_ahead_somewhere(queue, &bid);
        }
    }
    return ahead;
}

static uint32_t count_ahead(struct queue *queue)
{
    const struct book *book = queue->exchange->book;
    uint32_t ahead = 0;
    for (uint32_t class_id = 0; class_id < book_class_bound(book); class_id++) {
        if (queue->ahead[class_id] == 0) {
            continue;
        }
        for (uint32_t i = 0; i < queue->cell_count; i++) {
            if (++queue->steps > QUEUE_STEPS) {
                queue->is_partial = true;
                return ahead;
            }
            if (book_class_accepts(book, class_id, queue->cells[i])) {
                ahead += queue->ahead[class_id];
                break;
            }
        }
    }
    return ahead;
}

void queue_find(const struct exchange *exchange, const struct exchange_need *need,
                const struct part *part, const struct explained *seen, size_t count,
                struct exchange_explanation *why)
{
    struct queue queue = {.exchange = exchange,
                          .need = need,
                          .part = part,
                          .cell_room = why->affordable,
                          .goes_by_rank = why->donated == why->affordable &&
                                          need->account < exchange->member_count};
    queue.rank = queue.goes_by_rank ? donation_rank(exchange, need->account) : 0;
    queue.ahead = calloc((size_t)book_class_bound(exchange->book) + 1, sizeof *queue.ahead);
    queue.cells = calloc((size_t)queue.cell_room + 1, sizeof *queue.cells);
    if (queue.ahead != NULL && queue.cells != NULL && count > 0) {
        count_bids(&queue);
        find_cells(&queue, seen, count);
        why->ahead = count_ahead(&queue);
        why->ahead += queue.goes_by_rank ? 0 : count_unlike(&queue);
        why->has_ahead = true;
        why->is_ahead_partial = queue.is_partial;
    }
    free(queue.ahead);
    free(queue.cells);
}
