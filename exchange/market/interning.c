/* Cells and classes are records here, with their arrival, their end and the number that one account
 * uses. */
#include "exchange/market/interning.h"

#include "exchange/lifecycle.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/effects.h"
#include "exchange/state/feed_upkeep.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/terms.h"
#include "exchange/state/tracking.h"

#include <assert.h>
#include <stdlib.h>

static void refuse(struct exchange *exchange, enum book_status status)
{
    switch (status) {
    case BOOK_FULL_CELLS:
        effect_reject(exchange, XREJECT_LIMIT, "cells", exchange->limits.cells,
                      exchange->limits.cells);
        return;
    case BOOK_FULL_CLASSES:
        effect_reject(exchange, XREJECT_LIMIT, "classes", exchange->limits.classes,
                      exchange->limits.classes);
        return;
    case BOOK_BAD_REQUIREMENT:
        effect_reject(exchange, XREJECT_REQUIREMENT, "needs", 0, 0);
        return;
    case BOOK_OUT_OF_MEMORY:
        exchange->is_out_of_memory = true;
        return;
    case BOOK_OK:
    case BOOK_FULL_ORDERS:
        break;
    }
    assert(false && "not a status of a cell or class");
}

/* Returns false when the record was there. */
static bool enter(struct exchange *exchange, struct kind *kind, uint32_t number,
                  enum record_type type)
{
    if (kind->tracked.type != 0) {
        return false;
    }
    *kind = (struct kind){.number = number};
    tracking_add(exchange, &kind->tracked, type);
    return true;
}

static void leave(struct exchange *exchange, struct kind *kind)
{
    tracking_remove(exchange, &kind->tracked);
    *kind = (struct kind){0};
}

/* A census marks which of `bound` kinds were met, and counts them. */
struct census {
    bool *is_met;
    uint32_t count;
};

static void meet(struct census *census, uint32_t number)
{
    census->count += !census->is_met[number];
    census->is_met[number] = true;
}

/* ---------------------------------------------------------------- terms of a cell */

struct exchange_terms interning_cell_terms(const struct exchange *exchange, uint32_t cell)
{
    return exchange->cells[cell].terms;
}

static void enter_cell(struct exchange *exchange, uint32_t cell)
{
    struct kind *kind = &exchange->cells[cell];
    if (enter(exchange, kind, cell, RECORD_CELL)) {
        kind->terms = terms_read(exchange, cell);
    }
}

/* ---------------------------------------------------------------- cells */

static void cells_give(struct exchange *exchange, const uint32_t *cells, size_t count)
{
    while (count-- > 0) {
        interning_give_cell(exchange, cells[count]);
    }
}

static bool is_among(const struct device *device, const struct exchange_advertise *advertise)
{
    for (size_t i = 0; i < advertise->count; i++) {
        if (id128_equal(&advertise->devices[i].device, &device->key.device)) {
            return true;
        }
    }
    return false;
}

/* Counts the cells that the provider will use, by the advertisement and by standing leases.
 * `provider` is NULL for a first advertisement. */
static uint32_t cells_after(struct exchange *exchange, const struct provider *provider,
                            const struct exchange_advertise *advertise, const uint32_t *cells)
{
    struct census census = {.is_met =
                                memory_allocate(exchange, (book_cell_bound(exchange->book) + 1) *
                                                              sizeof *census.is_met)};
    if (census.is_met == NULL) {
        return 0;
    }
    for (size_t i = 0; i < advertise->count; i++) {
        meet(&census, cells[i]);
    }
    for (const struct list_link *at = provider == NULL ? NULL : provider->devices.next;
         at != NULL && at != &provider->devices; at = at->next) {
        const struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        if (device->leased > 0 && !is_among(device, advertise)) {
            meet(&census, device->cell);
        }
    }
    free(census.is_met);
    return census.count;
}

bool interning_take_cells(struct exchange *exchange, const struct exchange_advertise *advertise,
                          uint32_t *ret_cells)
{
    for (size_t i = 0; i < advertise->count; i++) {
        const struct exchange_device *device = &advertise->devices[i];
        enum book_status status =
            book_cell(exchange->book, device->attributes, device->attribute_count, &ret_cells[i]);
        if (status != BOOK_OK) {
            refuse(exchange, status);
            cells_give(exchange, ret_cells, i);
            return false;
        }
        enter_cell(exchange, ret_cells[i]);
    }
    const uint32_t most = exchange->limits.cells_per_account;
    uint32_t used = cells_after(exchange, lookup_sender(exchange)->provider, advertise, ret_cells);
    if (used > most) {
        cells_give(exchange, ret_cells, advertise->count);
        effect_reject(exchange, XREJECT_LIMIT, "cells_per_account", used, most);
        return false;
    }
    return true;
}

/* Counts the cells that the provider uses when the device has cell `cell`. */
static uint32_t cells_with(struct exchange *exchange, const struct provider *provider,
                           const struct device *device, uint32_t cell)
{
    struct census census = {.is_met = memory_allocate(exchange, book_cell_bound(exchange->book) *
                                                                    sizeof *census.is_met)};
    if (census.is_met == NULL) {
        return 0;
    }
    for (const struct list_link *at = provider->devices.next; at != &provider->devices;
         at = at->next) {
        const struct device *each = LIST_ELEMENT(at, struct device, of_provider);
        meet(&census, each == device ? cell : each->cell);
    }
    free(census.is_met);
    return census.count;
}

bool interning_take_cell_with_terms(struct exchange *exchange, const struct device *device,
                                    const struct exchange_terms *terms, uint32_t *ret_cell)
{
    const struct exchange_terms now = interning_cell_terms(exchange, device->cell);
    if (now.is_interruptible == terms->is_interruptible &&
        (!now.is_interruptible ||
         (now.notice_ns == terms->notice_ns && now.minimum_run_ns == terms->minimum_run_ns))) {
        book_cell_hold(exchange->book, device->cell);
        *ret_cell = device->cell;
        return true;
    }
    struct attribute attributes[CELL_ATTRIBUTES_MAX];
    size_t before;
    const struct attribute *all = book_cell_attributes(exchange->book, device->cell, &before);
    size_t count = 0;
    for (size_t i = 0; i < before; i++) {
        if (!terms_is_attribute(&all[i])) {
            attributes[count++] = all[i];
        }
    }
    terms_attributes(terms, attributes + count);
    count += TERMS_ATTRIBUTES;
    uint32_t cell;
    enum book_status status = book_cell(exchange->book, attributes, count, &cell);
    if (status != BOOK_OK) {
        refuse(exchange, status);
        return false;
    }
    enter_cell(exchange, cell);
    const uint32_t most = exchange->limits.cells_per_account;
    uint32_t used = cells_with(exchange, lookup_sender(exchange)->provider, device, cell);
    if (used > most) {
        interning_give_cell(exchange, cell);
        effect_reject(exchange, XREJECT_LIMIT, "cells_per_account", used, most);
        return false;
    }
    *ret_cell = cell;
    return true;
}

/* ---------------------------------------------------------------- classes */

/* An account without open jobs keeps at most this many places. */
enum { USES_KEPT = 16 };

/* Returns the place of the class, or the free one for it, searching upwards from its number. The
 * account has places. */
static struct class_use *use_of(const struct member *member, uint32_t class_id)
{
    const uint32_t mask = member->use_capacity - 1;
    uint32_t at = class_id & mask;
    while (member->uses[at].parts != 0 && member->uses[at].class_id != class_id) {
        at = (at + 1) & mask;
    }
    return &member->uses[at];
}

static bool is_used(const struct member *member, uint32_t class_id)
{
    return member->use_capacity != 0 && use_of(member, class_id)->parts != 0;
}

/* Half of the places stay free. */
static bool uses_grow(struct exchange *exchange, struct member *member)
{
    const uint32_t old_capacity = member->use_capacity;
    struct class_use *old = member->uses;
    const uint32_t capacity = old_capacity == 0 ? 4 : 2 * old_capacity;
    struct class_use *uses = memory_allocate(exchange, capacity * sizeof *uses);
    if (uses == NULL) {
        return false;
    }
    member->uses = uses;
    member->use_capacity = capacity;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i].parts != 0) {
            *use_of(member, old[i].class_id) = old[i];
        }
    }
    free(old);
    return true;
}

bool interning_add_class_use(struct exchange *exchange, uint32_t account, uint32_t class_id)
{
    struct member *member = lookup_member(exchange, account);
    if (2 * (member->classes + 1) > member->use_capacity && !uses_grow(exchange, member)) {
        return false;
    }
    struct class_use *use = use_of(member, class_id);
    member->classes += use->parts == 0;
    use->class_id = class_id;
    use->parts++;
    return true;
}

static void class_use_drop(struct exchange *exchange, uint32_t account, uint32_t class_id)
{
    struct member *member = lookup_member(exchange, account);
    const uint32_t mask = member->use_capacity - 1;
    struct class_use *hole = use_of(member, class_id);
    assert(hole->parts > 0);
    if (--hole->parts > 0) {
        return;
    }
    if (--member->classes == 0 && member->use_capacity > USES_KEPT) {
        free(member->uses);
        member->uses = NULL;
        member->use_capacity = 0;
        return;
    }
    /* Entries that would no longer be reached move back, as in table_remove. */
    uint32_t free_at = (uint32_t)(hole - member->uses);
    for (uint32_t at = (free_at + 1) & mask; member->uses[at].parts != 0; at = (at + 1) & mask) {
        if (((at - member->uses[at].class_id) & mask) >= ((at - free_at) & mask)) {
            member->uses[free_at] = member->uses[at];
            member->uses[at].parts = 0;
            free_at = at;
        }
    }
}

static void class_release(struct exchange *exchange, uint32_t class_id)
{
    if (book_class_references(exchange->book, class_id) == 1) {
        leave(exchange, &exchange->classes[class_id]);
        feed_class_gone(exchange, class_id);
        spot_class_gone(exchange, class_id);
    }
    book_class_release(exchange->book, class_id);
}

bool interning_take_class(struct exchange *exchange, const struct requirement *needs,
                          enum rate rate, uint32_t *ret_class)
{
    const struct member *member = lookup_sender(exchange);
    const uint32_t most = exchange->limits.classes_per_account;
    uint32_t class_id;
    enum book_status status = book_class(exchange->book, needs, rate, &class_id);
    if (status != BOOK_OK) {
        refuse(exchange, status);
        return false;
    }
    (void)enter(exchange, &exchange->classes[class_id], class_id, RECORD_CLASS);
    uint32_t used = member->classes + !is_used(member, class_id);
    if (used > most || !interning_add_class_use(exchange, member->number, class_id)) {
        class_release(exchange, class_id);
        effect_reject(exchange, XREJECT_LIMIT, "classes_per_account", used, most);
        return false;
    }
    *ret_class = class_id;
    return true;
}

void interning_give_class(struct exchange *exchange, uint32_t account, uint32_t class_id)
{
    class_use_drop(exchange, account, class_id);
    class_release(exchange, class_id);
}

void interning_give_cell(struct exchange *exchange, uint32_t cell)
{
    if (book_cell_references(exchange->book, cell) == 1) {
        leave(exchange, &exchange->cells[cell]);
        feed_cell_gone(exchange, cell);
    }
    book_cell_release(exchange->book, cell);
}

/* ---------------------------------------------------------------- from a snapshot */

bool interning_restore_cell(struct exchange *exchange, uint32_t cell,
                            const struct attribute *attributes, size_t count)
{
    if (book_cell_at(exchange->book, cell, attributes, count) != BOOK_OK) {
        return false;
    }
    enter_cell(exchange, cell);
    return true;
}

bool interning_restore_class(struct exchange *exchange, uint32_t class_id,
                             const struct requirement *needs, enum rate rate)
{
    if (book_class_at(exchange->book, class_id, needs, rate) != BOOK_OK) {
        return false;
    }
    (void)enter(exchange, &exchange->classes[class_id], class_id, RECORD_CLASS);
    return true;
}

bool interning_settle(struct exchange *exchange)
{
    struct book *book = exchange->book;
    for (uint32_t i = 0; i < book_cell_bound(book); i++) {
        if (book_cell_references(book, i) == 1) {
            return false;
        }
        if (book_cell_references(book, i) > 1) {
            book_cell_release(book, i);
        }
    }
    for (uint32_t i = 0; i < book_class_bound(book); i++) {
        if (book_class_references(book, i) == 1) {
            return false;
        }
        if (book_class_references(book, i) > 1) {
            book_class_release(book, i);
        }
    }
    return true;
}
