/* bench/matching/shapes.h measures books of unusual shapes, and the memory of orders and books. */
#ifndef BOURSE_BENCH_MATCHING_SHAPES_H
#define BOURSE_BENCH_MATCHING_SHAPES_H

#include <jansson.h>

/* Returns a new object, which the caller owns; docs/bench.md says what is in it. */
json_t *shapes_measure(void);

#endif
