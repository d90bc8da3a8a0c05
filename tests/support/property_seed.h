/* property_seed gives a property test the seed of its random cases. */
#ifndef BOURSE_TESTS_SUPPORT_PROPERTY_SEED_H
#define BOURSE_TESTS_SUPPORT_PROPERTY_SEED_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns the number in BOURSE_SEED, or `usual` without one, and prints the seed. */
static inline uint64_t property_seed(uint64_t usual)
{
    const char *given = getenv("BOURSE_SEED");
    const uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : usual;
    printf("seed %" PRIu64 " (BOURSE_SEED)\n", seed);
    return seed;
}

#endif
