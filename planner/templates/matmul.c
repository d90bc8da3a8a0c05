#include "planner/templates/matmul.h"

#include "planner/templates/making.h"

/* Products are made in tiles of this many rows, so a share with fewer rows takes as long. */
enum { TILE_ROWS = 64 };
enum { M, N, K, SPARSE, DTYPE };

static const struct template_parameter parameters[] = {
    [M] = MAKING_GRAINS("m", "rows of A and C", 4096, OPERATION_DIMENSION_MOST, TILE_ROWS),
    [N] = MAKING_NUMBER("n", "columns of B and C", 4096, 1, OPERATION_DIMENSION_MOST),
    [K] = MAKING_NUMBER("k", "columns of A, rows of B", 4096, 1, OPERATION_DIMENSION_MOST),
    [SPARSE] = MAKING_CHOICE("sparse", "B is 2:4 sparse", 0, making_answers),
    [DTYPE] = MAKING_CHOICE("dtype", "type of the elements", DTYPE_FP32, making_types),
    MAKING_END,
};

static enum steps_status create(const int64_t *values, struct steps **ret_steps,
                                struct problem *ret_problem)
{
    struct making making;
    if (making_begin(&making, ret_problem)) {
        struct operation product =
            making_product((enum dtype)values[DTYPE], values[M], values[N], values[K]);
        product.shape.product.sparse = values[SPARSE];
        struct step *step = making_step(&making, "multiply");
        making_part(&making, step, &product, 1, 1, 0);
        making_own(&making, step, 0, 0);
        enum dtype dtype = (enum dtype)values[DTYPE];
        making_outside(&making, step,
                       making_bytes(making_times((uint128)values[M], values[K]), dtype),
                       making_bytes(making_times((uint128)values[M], values[N]), dtype));
    }
    return making_end(&making, ret_steps);
}

const struct template matmul_template = {
    .name = "matmul",
    .meaning = "a product of two matrices",
    .parameters = parameters,
    .make = create,
};
