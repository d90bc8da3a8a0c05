/* Interning keeps each distinct cell and class once, and counts the use of each account. */
#ifndef BOURSE_EXCHANGE_MARKET_INTERNING_H
#define BOURSE_EXCHANGE_MARKET_INTERNING_H

#include "exchange/state/records.h"

/* Returns the terms of leases of the cell's asks. */
struct exchange_terms interning_cell_terms(const struct exchange *exchange, uint32_t cell);
/* Takes a reference to the cell of each device, for the sender. The caps count the sender's own use
 * alone, after the advertisement. Returns false when refused; then nothing has changed. */
bool interning_take_cells(struct exchange *exchange, const struct exchange_advertise *advertise,
                          uint32_t *ret_cells);
/* Takes a reference to the device's cell with other terms. Returns false when refused; then nothing
 * has changed. */
bool interning_take_cell_with_terms(struct exchange *exchange, const struct device *device,
                                    const struct exchange_terms *terms, uint32_t *ret_cell);
/* Adds one part to the account's use of a class that it holds. Returns false when memory is
 * short. */
bool interning_add_class_use(struct exchange *exchange, uint32_t account, uint32_t class_id);
/* Takes a reference to the class, for the sender, whose cap counts. Returns false when refused;
 * then nothing has changed. */
bool interning_take_class(struct exchange *exchange, const struct requirement *needs,
                          enum rate rate, uint32_t *ret_class);
/* The part belongs to the account given. */
void interning_give_class(struct exchange *exchange, uint32_t account, uint32_t class_id);
void interning_give_cell(struct exchange *exchange, uint32_t cell);
/* The calls create a cell or class under the snapshot's number; records that refer to it hold it
 * (book_cell_hold). They return false when that cannot be. interning_settle drops the reference
 * that restoring took, and returns false when a cell or class has no other. */
bool interning_restore_cell(struct exchange *exchange, uint32_t cell,
                            const struct attribute *attributes, size_t count);
bool interning_restore_class(struct exchange *exchange, uint32_t class_id,
                             const struct requirement *needs, enum rate rate);
bool interning_settle(struct exchange *exchange);

#endif
