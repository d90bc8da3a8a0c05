/* planner/cost/operations_internal.h - what the files of operations.h share: each kind's dimensions and
 * formula. */
#ifndef BOURSE_PLANNER_COST_OPERATIONS_INTERNAL_H
#define BOURSE_PLANNER_COST_OPERATIONS_INTERNAL_H

#include "planner/cost/operations.h"

enum { DIMENSIONS_MOST = 13 }; /* the last is the end */

struct dimension {
    const char *name; /* NULL: the list ends */
    size_t offset;    /* in struct operation: an int64 */
    bool is_option;   /* by name, after the shape; options come last */
    int64_t least, most, usual;
};

struct operation_facts {
    const char *name;
    enum operation_class class;
    uint32_t dtypes; /* a bit each; 0: it has none */
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

/* An operation's figures before they are known to fit: sums and products stick at WIDE_MOST instead
 * of wrapping. */
typedef uint128 wide;
#define WIDE_MOST ((wide)-1)

struct wide_size {
    wide flops, read, written, working, weights, link, storage;
    wide repeated; /* bytes that count twice in read + written, and are there once */
    wide idle;     /* bytes that are there and not moved */
    wide extents[OPERATION_EXTENTS];
};

/* Of an operation whose dimensions are in their ranges and go together. */
void operation_count(const struct operation *operation, struct wide_size *ret_size);

/* Rows or columns that a convolution has along a side of `length`; 0: the kernel is larger than
 * what it moves over. */
int64_t operation_conv_outputs(const struct conv_shape *shape, int64_t length, int64_t kernel);

#endif
