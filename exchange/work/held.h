/* This internal header declares small questions about one held result, which the checks and the
 * answers about disputes share. Only files of exchange/ include this header. */
#ifndef BOURSE_EXCHANGE_HELD_H
#define BOURSE_EXCHANGE_HELD_H

#include "exchange/records.h"

/* Returns the index of the job's first check, which is also the number of its other subtasks. The
 * job has checks. */
uint32_t held_first_check(const struct job *job);
/* Returns the account of the referee that accuses the result; EXCHANGE_NO_ACCOUNT: nobody does. */
uint32_t held_accuser(const struct held *held);
/* Returns true when the owner of `referee` made or accused the result: nobody judges a result of
 * their own. `accuser` may be EXCHANGE_NO_ACCOUNT. */
bool held_is_party(const struct exchange *exchange, uint32_t maker, uint32_t accuser,
                   uint32_t referee);
/* Returns the seed of the check that the client of the job may compute. */
struct hash32 held_seed(const struct job *job, const struct held *held);

#endif
