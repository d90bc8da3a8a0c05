#include "matching/resting.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static size_t words_of(uint32_t bits)
{
    return ((size_t)bits + 63) / 64;
}

/* Returns false when memory is short. */
static bool words_grow(uint64_t **words, size_t before, size_t now)
{
    uint64_t *more = realloc(*words, now * sizeof *more);
    if (more == NULL) {
        return false;
    }
    memset(more + before, 0, (now - before) * sizeof *more);
    *words = more;
    return true;
}

bool resting_grow(struct resting *resting, uint32_t capacity)
{
    const size_t before = words_of(resting->capacity);
    const size_t now = words_of(capacity);
    if (capacity <= resting->capacity) {
        return true;
    }
    if (!words_grow(&resting->orders, before, now) ||
        !words_grow(&resting->words, words_of((uint32_t)before), words_of((uint32_t)now))) {
        return false;
    }
    resting->capacity = capacity;
    return true;
}

void resting_fini(struct resting *resting)
{
    free(resting->orders);
    free(resting->words);
    *resting = (struct resting){0};
}

/* Returns the lowest set bit, from bit `from` of the words on, or RESTING_NONE. */
static uint32_t next_bit(const uint64_t *words, size_t count, uint32_t from)
{
    size_t word = from / 64;
    if (word >= count) {
        return RESTING_NONE;
    }
    uint64_t bits = words[word] & UINT64_MAX << from % 64;
    while (bits == 0 && ++word < count) {
        bits = words[word];
    }
    return bits == 0 ? RESTING_NONE : (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
}

uint32_t resting_next_word(const struct resting *resting, uint32_t from)
{
    const size_t count = words_of(resting->capacity);
    const uint32_t first = from / 64;
    if (first >= count) {
        return RESTING_NONE;
    }
    const uint32_t word = next_bit(resting->words, words_of((uint32_t)count), first + 1);
    return word == RESTING_NONE ? RESTING_NONE
                                : word * 64 + (uint32_t)__builtin_ctzll(resting->orders[word]);
}
