/* Cells and classes as records: who made them, and when they go. */
#include "exchange/state.h"

static uint32_t made_by(const struct kind *kinds, uint32_t bound, uint32_t account)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < bound; i++) {
        count += kinds[i].tracked.type != 0 && kinds[i].maker == account ? 1 : 0;
    }
    return count;
}

static void refuse(struct exchange *exchange, enum book_status status)
{
    switch (status) {
    case BOOK_FULL_CELLS:
        reject(exchange, XREJECT_LIMIT, "cells", exchange->limits.cells, exchange->limits.cells);
        return;
    case BOOK_FULL_CLASSES:
        reject(exchange, XREJECT_LIMIT, "classes", exchange->limits.classes,
               exchange->limits.classes);
        return;
    case BOOK_BAD_REQUIREMENT:
        reject(exchange, XREJECT_REQUIREMENT, "needs", 0, 0);
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

static void enter(struct exchange *exchange, struct kind *kind, uint32_t number, uint32_t maker,
                  enum record_type type)
{
    *kind = (struct kind){.number = number, .maker = maker};
    track(exchange, &kind->tracked, type);
}

static void leave(struct exchange *exchange, struct kind *kind)
{
    untrack(exchange, &kind->tracked);
    *kind = (struct kind){0};
}

bool cell_take(struct exchange *exchange, const struct attribute *attributes, size_t count,
               uint32_t *ret_cell)
{
    const uint32_t account = exchange->command->account;
    const uint32_t most = exchange->limits.cells_per_account;
    uint32_t cell;
    enum book_status status = book_cell(exchange->book, attributes, count, &cell);
    if (status != BOOK_OK) {
        refuse(exchange, status);
        return false;
    }
    if (exchange->cells[cell].tracked.type == 0) {
        uint32_t made = made_by(exchange->cells, book_cell_bound(exchange->book), account);
        if (made >= most) {
            book_cell_release(exchange->book, cell);
            reject(exchange, XREJECT_LIMIT, "cells_per_account", made, most);
            return false;
        }
        enter(exchange, &exchange->cells[cell], cell, account, RECORD_CELL);
    }
    *ret_cell = cell;
    return true;
}

bool class_take(struct exchange *exchange, const struct requirement *needs, uint32_t *ret_class)
{
    const uint32_t account = exchange->command->account;
    const uint32_t most = exchange->limits.classes_per_account;
    uint32_t class_id;
    enum book_status status = book_class(exchange->book, needs, &class_id);
    if (status != BOOK_OK) {
        refuse(exchange, status);
        return false;
    }
    if (exchange->classes[class_id].tracked.type == 0) {
        uint32_t made = made_by(exchange->classes, book_class_bound(exchange->book), account);
        if (made >= most) {
            book_class_release(exchange->book, class_id);
            reject(exchange, XREJECT_LIMIT, "classes_per_account", made, most);
            return false;
        }
        enter(exchange, &exchange->classes[class_id], class_id, account, RECORD_CLASS);
    }
    *ret_class = class_id;
    return true;
}

void cell_give(struct exchange *exchange, uint32_t cell)
{
    if (book_cell_references(exchange->book, cell) == 1) {
        leave(exchange, &exchange->cells[cell]);
    }
    book_cell_release(exchange->book, cell);
}

void class_give(struct exchange *exchange, uint32_t class_id)
{
    if (book_class_references(exchange->book, class_id) == 1) {
        leave(exchange, &exchange->classes[class_id]);
    }
    book_class_release(exchange->book, class_id);
}

/* ---------------------------------------------------------------- from a snapshot */

bool cell_restore(struct exchange *exchange, const struct kind *kind,
                  const struct attribute *attributes, size_t count)
{
    if (book_cell_at(exchange->book, kind->number, attributes, count) != BOOK_OK) {
        return false;
    }
    enter(exchange, &exchange->cells[kind->number], kind->number, kind->maker, RECORD_CELL);
    return true;
}

bool class_restore(struct exchange *exchange, const struct kind *kind,
                   const struct requirement *needs)
{
    if (book_class_at(exchange->book, kind->number, needs) != BOOK_OK) {
        return false;
    }
    enter(exchange, &exchange->classes[kind->number], kind->number, kind->maker, RECORD_CLASS);
    return true;
}

bool kinds_settle(struct exchange *exchange)
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
