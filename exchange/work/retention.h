/* Ended jobs stay for a time, and the oldest one makes room for a new job. */
#ifndef BOURSE_EXCHANGE_WORK_RETENTION_H
#define BOURSE_EXCHANGE_WORK_RETENTION_H

#include "exchange/state/records.h"

void retention_add(struct exchange *exchange, struct job *job); /* the job has just ended */
struct job *retention_oldest(const struct exchange *exchange);  /* NULL: none */
/* Forgets the oldest ended job of the sender, and of all, where there is no room for a new job. The
 * call runs when nothing can be refused any more, since a refusal changes nothing. No account loses
 * ended jobs to another while there is room. */
void retention_make_room(struct exchange *exchange);

#endif
