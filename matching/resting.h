/* matching/resting.h records which handles have an order. It has a bit for each handle, and a bit
 * for each word of 64 bits.
 *
 * A walk over all orders visits resting orders instead of every possible handle. An order that
 * rests or leaves costs two words. The caller sets the number of handles. */
#ifndef BOURSE_MATCHING_RESTING_H
#define BOURSE_MATCHING_RESTING_H

#include <stdbool.h>
#include <stdint.h>

#define RESTING_NONE UINT32_MAX

struct resting { /* all zeros: no handle */
    uint64_t *orders;
    uint64_t *words; /* a bit is set when the word of `orders` is not 0 */
    uint32_t capacity;
};

/* Makes room for handles below `capacity`, never for fewer than before. Returns false when memory
 * is short; nothing has changed then. */
bool resting_grow(struct resting *resting, uint32_t capacity);
void resting_fini(struct resting *resting);
/* Does the same as resting_next, in a later word than that of `from`. */
uint32_t resting_next_word(const struct resting *resting, uint32_t from);

/* Returns the lowest handle >= `from` that has an order, or RESTING_NONE. */
static inline uint32_t resting_next(const struct resting *resting, uint32_t from)
{
    if (from < resting->capacity) {
        const uint64_t here = resting->orders[from / 64] >> from % 64;
        if (here != 0) {
            return from + (uint32_t)__builtin_ctzll(here);
        }
    }
    return resting_next_word(resting, from);
}

static inline void resting_set(struct resting *resting, uint32_t handle)
{
    const uint32_t word = handle / 64;
    resting->orders[word] |= UINT64_C(1) << handle % 64;
    resting->words[word / 64] |= UINT64_C(1) << word % 64;
}

static inline void resting_clear(struct resting *resting, uint32_t handle)
{
    const uint32_t word = handle / 64;
    resting->orders[word] &= ~(UINT64_C(1) << handle % 64);
    if (resting->orders[word] == 0) {
        resting->words[word / 64] &= ~(UINT64_C(1) << word % 64);
    }
}

#endif
