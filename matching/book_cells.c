/* Cells and classes are interned here, and this file records which of them meet. Equal devices
 * share a cell, equal requirements a class. */
#include "matching/book_cells.h"

#include "matching/book_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- shelves */

bool book_shelves_init(struct shelves *shelves, uint32_t count, uint32_t others)
{
    size_t groups = bit_words(count);
    shelves->other_groups = bit_words(others);
    shelves->items = ladder_lines(count, sizeof *shelves->items, &shelves->memory);
    shelves->idle = calloc(count, sizeof *shelves->idle);
    shelves->used = calloc(groups, sizeof *shelves->used);
    shelves->filled = calloc(groups, sizeof *shelves->filled);
    shelves->valued = calloc(groups, sizeof *shelves->valued);
    shelves->best_keys = calloc(count, sizeof *shelves->best_keys);
    shelves->floors = calloc(groups, sizeof *shelves->floors);
    shelves->heads_mask = 1;
    while (shelves->heads_mask < count - 1) {
        shelves->heads_mask = 2 * shelves->heads_mask + 1;
    }
    const size_t heads = (size_t)shelves->heads_mask + 1;
    shelves->prints = calloc(count, sizeof *shelves->prints);
    shelves->nexts = calloc(count, sizeof *shelves->nexts);
    shelves->heads = malloc(heads * sizeof *shelves->heads);
    for (size_t i = 0; shelves->heads != NULL && i < heads; i++) {
        shelves->heads[i] = LADDER_NONE;
    }
    return shelves->items != NULL && shelves->idle != NULL && shelves->used != NULL &&
           shelves->filled != NULL && shelves->valued != NULL && shelves->best_keys != NULL &&
           shelves->floors != NULL && shelves->prints != NULL && shelves->nexts != NULL &&
           shelves->heads != NULL;
}

void book_shelves_fini(struct shelves *shelves)
{
    for (uint32_t i = 0; i < shelves->bound; i++) {
        free(shelves->items[i].meets);
    }
    free(shelves->memory);
    free(shelves->idle);
    free(shelves->used);
    free(shelves->filled);
    free(shelves->valued);
    free(shelves->best_keys);
    free(shelves->floors);
    free(shelves->prints);
    free(shelves->nexts);
    free(shelves->heads);
}

static uint32_t *chain_of(const struct shelves *shelves, uint64_t print)
{
    return &shelves->heads[print & shelves->heads_mask];
}

/* Returns the lowest free number, or the limit. */
static uint32_t lowest_free(struct shelves *shelves, uint32_t limit)
{
    const size_t groups = bit_words(limit);
    while (shelves->full < groups && shelves->used[shelves->full] == UINT64_MAX) {
        shelves->full++;
    }
    if (shelves->full == groups) {
        return limit;
    }
    const uint32_t number =
        shelves->full * GROUP + (uint32_t)__builtin_ctzll(~shelves->used[shelves->full]);
    return number < limit ? number : limit;
}

/* Opens an empty shelf that meets no other yet. Returns false when memory is short. */
static bool shelf_open(struct shelves *shelves, uint32_t number, enum rate rate, uint64_t print)
{
    uint64_t *meets = calloc(shelves->other_groups, sizeof *meets);
    if (meets == NULL) {
        return false;
    }
    shelves->items[number] = (struct shelf){
        .filled = LADDER_EMPTY, .references = 1, .only = LADDER_NONE, .rate = rate, .meets = meets};
    bit_set(shelves->used, number, true);
    shelves->valued_count += rate != RATE_NONE;
    shelves->idle[number] = (struct ladder)LADDER_EMPTY;
    shelves->bound = number < shelves->bound ? shelves->bound : number + 1;
    shelves->prints[number] = print;
    shelves->nexts[number] = *chain_of(shelves, print);
    *chain_of(shelves, print) = number;
    return true;
}

/* Returns the first shelf that is met. */
static uint32_t first_met(const struct shelf *shelf)
{
    uint32_t group = 0;
    while (shelf->meets[group] == 0) {
        group++;
    }
    return group * GROUP + (uint32_t)__builtin_ctzll(shelf->meets[group]);
}

static void shelf_meet(const struct shelves *shelves, struct shelf *shelf,
                       const struct shelves *others, uint32_t other, bool is)
{
    if (bit_is(shelf->meets, other) == is) {
        return;
    }
    bit_set(shelf->meets, other, is);
    shelf->met += is ? 1 : -1U;
    uint32_t only = shelf->met == 1 ? first_met(shelf) : LADDER_NONE;
    bool is_by_price =
        shelf->rate == RATE_NONE && only != LADDER_NONE && others->items[only].rate == RATE_NONE;
    shelf->only = is_by_price ? only : LADDER_NONE;
    uint32_t first = other / GROUP % GROUP;
    uint64_t some = 0;
    for (size_t group = first; group < shelves->other_groups; group += GROUP) {
        some |= shelf->meets[group];
    }
    bit_set(&shelf->groups, first, some != 0);
}

/* Closes a shelf and frees its number. */
static void shelf_close(struct shelves *shelves, uint32_t number, struct shelves *others)
{
    struct shelf *shelf = &shelves->items[number];
    assert(ladder_is_empty(&shelf->filled) && ladder_is_empty(&shelves->idle[number]));
    for (size_t group = 0; shelf->met > 0; group++) {
        for (uint64_t left = shelf->meets[group]; left != 0; left &= left - 1) {
            struct shelf *other = &others->items[group * GROUP + (unsigned)__builtin_ctzll(left)];
            shelf_meet(others, other, shelves, number, false);
            shelf->met--;
        }
    }
    free(shelf->meets);
    shelves->valued_count -= shelf->rate != RATE_NONE;
    *shelf = (struct shelf){.filled = LADDER_EMPTY};
    bit_set(shelves->used, number, false);
    shelves->full = number / GROUP < shelves->full ? number / GROUP : shelves->full;
    uint32_t *link = chain_of(shelves, shelves->prints[number]);
    while (*link != number) {
        link = &shelves->nexts[*link];
    }
    *link = shelves->nexts[number];
}

/* Computes whether a class accepts a cell, and records the answer on both shelves. */
static void introduce(struct book *book, uint32_t class_id, uint32_t cell)
{
    struct shelves *asks = &book->shelves[ASKS];
    struct shelves *bids = &book->shelves[BIDS];
    if (asks->items[cell].references == 0 || bids->items[class_id].references == 0) {
        return;
    }
    const struct cell *asked = &book->cells[cell];
    uint32_t rate = bids->items[class_id].rate;
    bool meet = (rate == RATE_NONE || asked->rates[rate] > 0) &&
                requirement_satisfied(book->classes[class_id], asked->attributes, asked->count);
    shelf_meet(asks, &asks->items[cell], bids, class_id, meet);
    shelf_meet(bids, &bids->items[class_id], asks, cell, meet);
}

/* ---------------------------------------------------------------- cells and classes */

static int compare_attributes(const void *left, const void *right)
{
    const struct attribute *a = left;
    const struct attribute *b = right;
    int names = strcmp(a->name, b->name);
    if (names != 0) {
        return names;
    }
    if (a->is_text != b->is_text) {
        return a->is_text ? 1 : -1;
    }
    if (a->is_text) {
        return strcmp(a->text, b->text);
    }
    return (a->number > b->number) - (a->number < b->number);
}

static uint64_t mix(uint64_t state, const char *text)
{
    for (; *text != '\0'; text++) {
        /* The hash is FNV-1a. It only narrows the search; equality decides. */
        state = (state ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    }
    return state * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t mix_number(uint64_t state, uint64_t number)
{
    return (state ^ number ^ number >> 32) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t mix_attribute(uint64_t state, const struct attribute *attribute)
{
    state = mix(state, attribute->name);
    return attribute->is_text ? mix(state, attribute->text)
                              : mix_number(state, (uint64_t)attribute->number);
}

/* Chains use the low bits, but the high bits are mixed best. */
static uint64_t folded(uint64_t state)
{
    return state ^ state >> 32;
}

static uint64_t fingerprint(const struct attribute *attributes, size_t count)
{
    uint64_t state = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) {
        state = mix_attribute(state, &attributes[i]);
    }
    return folded(state);
}

static bool is_predicate(const struct requirement_node *node)
{
    return node->op >= REQUIREMENT_EQ;
}

static uint64_t print_of(const struct requirement *requirement, enum rate rate)
{
    uint64_t state = mix_number(UINT64_C(0xcbf29ce484222325), rate);
    for (uint32_t i = 0; i < requirement->count; i++) {
        const struct requirement_node *node = &requirement->nodes[i];
        state = mix_number(state, node->op);
        state = is_predicate(node)            ? mix_attribute(state, &node->attribute)
                : node->op == REQUIREMENT_NOT ? state
                                              : mix_number(state, node->arity);
    }
    return folded(state);
}

static bool same_attributes(const struct cell *cell, const struct attribute *attributes,
                            size_t count)
{
    if (cell->count != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (compare_attributes(&cell->attributes[i], &attributes[i]) != 0) {
            return false;
        }
    }
    return true;
}

static uint32_t find_cell(const struct book *book, uint64_t print,
                          const struct attribute *attributes, size_t count)
{
    const struct shelves *asks = &book->shelves[ASKS];
    uint32_t at = *chain_of(asks, print);
    while (at != LADDER_NONE &&
           (asks->prints[at] != print || !same_attributes(&book->cells[at], attributes, count))) {
        at = asks->nexts[at];
    }
    return at == LADDER_NONE ? BOOK_NONE : at;
}

/* Returns a copy in canonical order, with room for the digests behind it. The caller frees the
 * copy. Returns NULL when memory is short. */
static struct attribute *sorted_copy(const struct attribute *attributes, size_t count)
{
    struct attribute *sorted = calloc(count + 1, sizeof *sorted + sizeof(struct attribute_digest));
    if (sorted != NULL && count > 0) {
        memcpy(sorted, attributes, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_attributes);
    }
    return sorted;
}

/* Takes the attributes over. Returns false when memory is short. */
static bool place_cell(struct book *book, uint32_t id, struct attribute *sorted, size_t count,
                       uint64_t print)
{
    if (!shelf_open(&book->shelves[ASKS], id, RATE_NONE, print)) {
        free(sorted);
        return false;
    }
    struct attribute_digest *digests = (void *)(sorted + count + 1);
    for (size_t i = 0; i < count; i++) {
        digests[i] = compiled_digest(&sorted[i]);
    }
    book->cells[id] = (struct cell){.count = count,
                                    .attributes = sorted,
                                    .digests = digests,
                                    .is_simulated = requirement_simulated(sorted, count)};
    for (unsigned rate = RATE_NONE + 1; rate < RATES; rate++) {
        book->cells[id].rates[rate] = rate_of((enum rate)rate, sorted, count);
    }
    for (uint32_t i = 0; i < book->shelves[BIDS].bound; i++) {
        introduce(book, i, id);
    }
    return true;
}

enum book_status book_cell(struct book *book, const struct attribute *attributes, size_t count,
                           uint32_t *ret_cell)
{
    struct attribute *sorted = sorted_copy(attributes, count);
    if (sorted == NULL) {
        return BOOK_OUT_OF_MEMORY;
    }
    uint64_t print = fingerprint(sorted, count);
    uint32_t id = find_cell(book, print, sorted, count);
    if (id != BOOK_NONE) {
        free(sorted);
        book_cell_hold(book, id);
        *ret_cell = id;
        return BOOK_OK;
    }
    id = lowest_free(&book->shelves[ASKS], book->limits.cells);
    if (id == book->limits.cells) {
        free(sorted);
        return BOOK_FULL_CELLS;
    }
    if (!place_cell(book, id, sorted, count, print)) {
        return BOOK_OUT_OF_MEMORY;
    }
    *ret_cell = id;
    return BOOK_OK;
}

enum book_status book_cell_at(struct book *book, uint32_t cell, const struct attribute *attributes,
                              size_t count)
{
    struct attribute *sorted = sorted_copy(attributes, count);
    if (sorted == NULL) {
        return BOOK_OUT_OF_MEMORY;
    }
    uint64_t print = fingerprint(sorted, count);
    if (cell >= book->limits.cells || book_cell_references(book, cell) > 0 ||
        find_cell(book, print, sorted, count) != BOOK_NONE) {
        free(sorted);
        return BOOK_FULL_CELLS;
    }
    return place_cell(book, cell, sorted, count, print) ? BOOK_OK : BOOK_OUT_OF_MEMORY;
}

void book_cell_hold(struct book *book, uint32_t cell)
{
    assert(book_cell_references(book, cell) > 0);
    book->shelves[ASKS].items[cell].references++;
}

void book_cell_release(struct book *book, uint32_t cell)
{
    assert(book_cell_references(book, cell) > 0);
    if (--book->shelves[ASKS].items[cell].references > 0) {
        return;
    }
    free(book->cells[cell].attributes);
    book->cells[cell] = (struct cell){0};
    shelf_close(&book->shelves[ASKS], cell, &book->shelves[BIDS]);
}

uint32_t book_cell_references(const struct book *book, uint32_t cell)
{
    return cell < book->shelves[ASKS].bound ? book->shelves[ASKS].items[cell].references : 0;
}

static bool same_requirement(const struct requirement *a, const struct requirement *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        const struct requirement_node *left = &a->nodes[i];
        const struct requirement_node *right = &b->nodes[i];
        if (left->op != right->op) {
            return false;
        }
        if (is_predicate(left) ? compare_attributes(&left->attribute, &right->attribute) != 0
                               : left->op != REQUIREMENT_NOT && left->arity != right->arity) {
            return false;
        }
    }
    return true;
}

static uint32_t find_class(const struct book *book, const struct requirement *requirement,
                           enum rate rate)
{
    const struct shelves *bids = &book->shelves[BIDS];
    const uint64_t print = print_of(requirement, rate);
    uint32_t at = *chain_of(bids, print);
    while (at != LADDER_NONE && (bids->prints[at] != print || bids->items[at].rate != rate ||
                                 !same_requirement(book->classes[at], requirement))) {
        at = bids->nexts[at];
    }
    return at == LADDER_NONE ? BOOK_NONE : at;
}

static enum book_status place_class(struct book *book, uint32_t id,
                                    const struct requirement *requirement, enum rate rate)
{
    /* The copy has the used nodes alone, because most requirements have few. */
    size_t size =
        offsetof(struct requirement, nodes) + requirement->count * sizeof requirement->nodes[0];
    struct requirement *copy = malloc(size);
    if (copy == NULL || !shelf_open(&book->shelves[BIDS], id, rate, print_of(requirement, rate))) {
        free(copy);
        return BOOK_OUT_OF_MEMORY;
    }
    memcpy(copy, requirement, size);
    book->classes[id] = copy;
    for (uint32_t i = 0; i < book->shelves[ASKS].bound; i++) {
        introduce(book, id, i);
    }
    return BOOK_OK;
}

enum book_status book_class(struct book *book, const struct requirement *requirement,
                            enum rate rate, uint32_t *ret_class)
{
    if (!requirement_well_formed(requirement)) {
        return BOOK_BAD_REQUIREMENT;
    }
    uint32_t id = find_class(book, requirement, rate);
    if (id != BOOK_NONE) {
        book_class_hold(book, id);
        *ret_class = id;
        return BOOK_OK;
    }
    id = lowest_free(&book->shelves[BIDS], book->limits.classes);
    if (id == book->limits.classes) {
        return BOOK_FULL_CLASSES;
    }
    enum book_status status = place_class(book, id, requirement, rate);
    if (status == BOOK_OK) {
        *ret_class = id;
    }
    return status;
}

enum book_status book_class_at(struct book *book, uint32_t class_id,
                               const struct requirement *requirement, enum rate rate)
{
    if (!requirement_well_formed(requirement)) {
        return BOOK_BAD_REQUIREMENT;
    }
    if (class_id >= book->limits.classes || book_class_references(book, class_id) > 0 ||
        find_class(book, requirement, rate) != BOOK_NONE) {
        return BOOK_FULL_CLASSES;
    }
    return place_class(book, class_id, requirement, rate);
}

void book_class_hold(struct book *book, uint32_t class_id)
{
    assert(book_class_references(book, class_id) > 0);
    book->shelves[BIDS].items[class_id].references++;
}

void book_class_release(struct book *book, uint32_t class_id)
{
    assert(book_class_references(book, class_id) > 0);
    if (--book->shelves[BIDS].items[class_id].references > 0) {
        return;
    }
    free(book->classes[class_id]);
    book->classes[class_id] = NULL;
    shelf_close(&book->shelves[BIDS], class_id, &book->shelves[ASKS]);
}

uint32_t book_class_references(const struct book *book, uint32_t class_id)
{
    return class_id < book->shelves[BIDS].bound ? book->shelves[BIDS].items[class_id].references
                                                : 0;
}

bool book_class_accepts(const struct book *book, uint32_t class_id, uint32_t cell)
{
    assert(book_class_references(book, class_id) > 0);
    assert(book_cell_references(book, cell) > 0);
    return bit_is(book->shelves[BIDS].items[class_id].meets, cell);
}

bool book_cells_beside(const struct book *book, uint32_t cell, enum rate rate, uint64_t *ret_bits)
{
    bool some = rate == RATE_NONE;
    const struct shelves *asks = &book->shelves[ASKS];
    const struct shelves *bids = &book->shelves[BIDS];
    assert(book_cell_references(book, cell) > 0);
    memset(ret_bits, 0, bids->other_groups * sizeof *ret_bits);
    bit_set(ret_bits, cell, some);
    for (size_t group = 0; group < asks->other_groups; group++) {
        for (uint64_t left = asks->items[cell].meets[group]; left != 0; left &= left - 1) {
            const size_t class_id = group * GROUP + (size_t)__builtin_ctzll(left);
            const struct shelf *shelf = &bids->items[class_id];
            if (shelf->rate != rate) {
                continue;
            }
            some = true;
            for (size_t word = 0; word < bids->other_groups; word++) {
                ret_bits[word] |= shelf->meets[word];
            }
        }
    }
    return some;
}

uint32_t book_cell_bound(const struct book *book)
{
    return book->shelves[ASKS].bound;
}

uint32_t book_class_bound(const struct book *book)
{
    return book->shelves[BIDS].bound;
}

const struct attribute *book_cell_attributes(const struct book *book, uint32_t cell,
                                             size_t *ret_count)
{
    assert(book_cell_references(book, cell) > 0);
    *ret_count = book->cells[cell].count;
    return book->cells[cell].attributes;
}

const struct attribute_digest *book_cell_digests(const struct book *book, uint32_t cell)
{
    assert(book_cell_references(book, cell) > 0);
    return book->cells[cell].digests;
}

bool book_cell_simulated(const struct book *book, uint32_t cell)
{
    assert(book_cell_references(book, cell) > 0);
    return book->cells[cell].is_simulated;
}

const struct requirement *book_class_requirement(const struct book *book, uint32_t class_id)
{
    assert(book_class_references(book, class_id) > 0);
    return book->classes[class_id];
}

enum rate book_class_rate(const struct book *book, uint32_t class_id)
{
    assert(book_class_references(book, class_id) > 0);
    return (enum rate)book->shelves[BIDS].items[class_id].rate;
}

int64_t book_cell_rate(const struct book *book, uint32_t cell, enum rate rate)
{
    assert(book_cell_references(book, cell) > 0);
    return book->cells[cell].rates[rate];
}
