/* runtime/entropy.h has the random numbers of the outside world. Pure rooms take them as
 * arguments. */
#ifndef BOURSE_RUNTIME_ENTROPY_H
#define BOURSE_RUNTIME_ENTROPY_H

#include "base/id.h"

#include <stddef.h>
#include <stdint.h>

/* Returns bytes of libsodium's generator; process_start has been called before. */
void entropy_bytes(void *ret_bytes, size_t length);
struct id128 entropy_id(void); /* random, never zero */
uint64_t entropy_u64(void);

#endif
