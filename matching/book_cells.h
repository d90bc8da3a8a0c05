/* The book interns cells and classes, in which its orders rest. matching/book.h makes the book.
 *
 * A *cell* is one kind of device: an interned set of attributes. A *class* is one distinct
 * requirement, compiled once into the set of cells that satisfy it. A class may be *by value*. Its
 * bids then give no price, but the worth to them of a unit of work at one rate of the device
 * (base/rate.h). Cells without that rate do not satisfy the class.
 *
 * Cells and classes live as long as they have references: book_cell and book_class take a
 * reference. The release of the last one frees the number; the lowest free number is used next. The
 * book computes whether a class accepts a cell once, and keeps the answer. */
#ifndef BOURSE_MATCHING_BOOK_CELLS_H
#define BOURSE_MATCHING_BOOK_CELLS_H

#include "base/rate.h"
#include "base/requirement.h"
#include "matching/compiled_requirement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct book;

enum book_status {
    BOOK_OK,
    BOOK_FULL_ORDERS,
    BOOK_FULL_CELLS,
    BOOK_FULL_CLASSES,
    BOOK_BAD_REQUIREMENT,
    BOOK_OUT_OF_MEMORY
};

#define BOOK_NONE UINT32_MAX

/* Finds the cell with exactly these attributes (in any order), or makes it. The caller owns the
 * reference. Any status but BOOK_OK leaves the book unchanged. */
enum book_status book_cell(struct book *book, const struct attribute *attributes, size_t count,
                           uint32_t *ret_cell);
/* Finds or makes the class of exactly this requirement. Its bids are by value in `rate`, or by
 * price for RATE_NONE. The caller owns the reference. BOOK_BAD_REQUIREMENT: the tree is not well
 * formed. */
enum book_status book_class(struct book *book, const struct requirement *requirement,
                            enum rate rate, uint32_t *ret_class);
/* The two functions make a cell or class under a free number that the caller chooses, to rebuild a
 * book. They return BOOK_FULL_CELLS or BOOK_FULL_CLASSES in three cases: the number is in use, it
 * is above the limit, or an equal cell (class) exists. */
enum book_status book_cell_at(struct book *book, uint32_t cell, const struct attribute *attributes,
                              size_t count);
enum book_status book_class_at(struct book *book, uint32_t class_id,
                               const struct requirement *requirement, enum rate rate);
/* The two functions release a reference. The last one ends the cell or class, in which no order may
 * rest any more. */
void book_cell_release(struct book *book, uint32_t cell);
void book_class_release(struct book *book, uint32_t class_id);
/* The two functions add a reference to an existing cell or class. */
void book_cell_hold(struct book *book, uint32_t cell);
void book_class_hold(struct book *book, uint32_t class_id);
uint32_t book_cell_references(const struct book *book, uint32_t cell); /* 0: no such cell */
uint32_t book_class_references(const struct book *book, uint32_t class_id);
bool book_class_accepts(const struct book *book, uint32_t class_id, uint32_t cell);
/* Writes the cells that compete with `cell` for the same bids, which are by value in `rate`, or by
 * price for RATE_NONE. They are all cells of every such class that accepts `cell`; by price, `cell`
 * itself too. There is one bit each, in as many words of 64 as the book's limit of cells needs.
 * Returns false when there are none. */
bool book_cells_beside(const struct book *book, uint32_t cell, enum rate rate, uint64_t *ret_bits);
/* The two functions return a bound: all numbers in use are below it. */
uint32_t book_cell_bound(const struct book *book);
uint32_t book_class_bound(const struct book *book);
const struct attribute *book_cell_attributes(const struct book *book, uint32_t cell,
                                             size_t *ret_count);
/* book_cell_digests() returns the digest of each attribute. book_cell_simulated() returns the
 * answer of requirement_simulated. */
const struct attribute_digest *book_cell_digests(const struct book *book, uint32_t cell);
bool book_cell_simulated(const struct book *book, uint32_t cell);
/* Returns the requirement, borrowed. Its memory ends after its last node, so read it in place and
 * never copy the whole struct. */
const struct requirement *book_class_requirement(const struct book *book, uint32_t class_id);
enum rate book_class_rate(const struct book *book, uint32_t class_id); /* RATE_NONE: not by value */
/* Returns the cell's rate, or 0 when the cell lacks it. */
int64_t book_cell_rate(const struct book *book, uint32_t cell, enum rate rate);

#endif
