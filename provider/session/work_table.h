/* provider/session/work_table.h finds the works of a lease by index and attempt. The lease owns the
 * works; the table links them. */
#ifndef BOURSE_PROVIDER_SESSION_WORK_TABLE_H
#define BOURSE_PROVIDER_SESSION_WORK_TABLE_H

#include "provider/session/agent_session_internal.h"

/* Makes room for one more work, with one bucket for each on average. Returns false when memory is
 * short. */
bool work_table_make_room(struct lease *lease);
/* Puts a work into the table, which has room. */
void work_table_put(struct lease *lease, struct work *work);
/* Takes a work of the table out. */
void work_table_take(struct lease *lease, const struct work *work);
/* Returns NULL when the table has no such work. */
struct work *work_table_find(const struct lease *lease, uint32_t index, uint32_t attempt);
/* Returns the place of an index among `places`, which is a power of two. */
uint32_t work_table_place(uint32_t index, uint32_t places);

#endif
