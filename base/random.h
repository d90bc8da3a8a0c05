/* base/random.h defines a seeded generator for tests and the simulator. Keys, ids and secrets
 * never come from here: they come from runtime/ (libsodium). The algorithm is SplitMix64
 * (Steele, Lea, Flood, OOPSLA 2014). */
#ifndef BOURSE_BASE_RANDOM_H
#define BOURSE_BASE_RANDOM_H

#include <assert.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

static inline struct random random_seeded(uint64_t seed)
{
    return (struct random){.state = seed};
}

static inline uint64_t random_u64(struct random *self)
{
    uint64_t z = self->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Returns a number that is uniform in 0 .. bound - 1, to within 2^-32 for bounds below 2^32. */
static inline uint64_t random_below(struct random *self, uint64_t bound)
{
    assert(bound > 0);
    return random_u64(self) % bound;
}

#endif
