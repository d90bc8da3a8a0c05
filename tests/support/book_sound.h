/* This file checks the invariants of an order book at rest. */
#ifndef BOURSE_TESTS_SUPPORT_BOOK_SOUND_H
#define BOURSE_TESTS_SUPPORT_BOOK_SOUND_H

#include "matching/book.h"

/* Checks every invariant of the book by a full walk. Each order is where its price,
 * sequence and slots belong, no level is empty, and the stored best of each cell and class is
 * right. */
bool book_is_sound(const struct book *book);

#endif
