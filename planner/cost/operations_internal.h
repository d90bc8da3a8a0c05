/* This header holds what the files of operations.h share, namely each kind's dimensions and
 * formula. */
#ifndef BOURSE_PLANNER_COST_OPERATIONS_INTERNAL_H
#define BOURSE_PLANNER_COST_OPERATIONS_INTERNAL_H

#include "planner/cost/operations.h"

enum { DIMENSIONS_MOST = 13 }; /* the last entry is the end */

struct dimension {
    const char *name; /* NULL: the list ends */
    size_t offset;    /* offset of an int64 in struct operation */
    bool is_option;   /* named after the shape; options come last */
    int64_t least, most, usual;
};

struct operation_facts {
    const char *name;
    enum operation_class class;
    uint32_t dtypes; /* one bit for each dtype; 0: the kind has no type */
    struct dimension dimensions[DIMENSIONS_MOST];
};

const struct operation_facts *operation_facts(enum operation_kind kind);

static inline int64_t dimension_value(const struct operation *operation,
                                      const struct dimension *dimension)
{
    return *(const int64_t *)((const char *)operation + dimension->offset);
}

static inline bool dimension_is_flag(const struct dimension *dimension)
{
    return dimension->least == 0 && dimension->most == 1;
}

/* Figures of an operation before they are known to fit. Sums and products saturate at WIDE_MOST
 * instead of wrapping. */
typedef uint128 wide;
#define WIDE_MOST ((wide)-1)

struct wide_size {
    wide flops, read, written, working, weights, link, storage;
    wide repeated; /* bytes that count twice in read + written, but occupy memory once */
    wide idle;     /* bytes that occupy memory and are not moved */
    wide extents[OPERATION_EXTENTS];
};

/* Computes the figures of an operation whose dimensions are in range and consistent. */
void operation_count(const struct operation *operation, struct wide_size *ret_size);

/* Returns the number of outputs of a convolution along a side of `length`. Returns 0 when the
 * kernel is larger than the padded side. */
int64_t operation_conv_outputs(const struct conv_shape *shape, int64_t length, int64_t kernel);

#endif
