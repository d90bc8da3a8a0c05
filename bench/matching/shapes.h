/* bench/matching/shapes.h - books of unusual shapes, and what memory orders and books take. */
#ifndef BOURSE_BENCH_MATCHING_SHAPES_H
#define BOURSE_BENCH_MATCHING_SHAPES_H

#include <jansson.h>

/* A new object; docs/bench.md says what is in it. */
json_t *shapes_measure(void);

#endif
