#include "provider/tensor/cores.h"

static enum operation_status multiply(void *context, const struct gemm *gemm,
                                      const struct operation_places *places,
                                      struct problem *ret_problem)
{
    (void)context;
    (void)places;
    switch (gemm_run(gemm)) {
    case GEMM_OK:
        return OPERATION_OK;
    case GEMM_OUT_OF_MEMORY:
        problem_set(ret_problem, "no memory left to compute it; raise `limits: {memory: ...}`");
        return OPERATION_MEMORY;
    case GEMM_FAILED:
        break;
    }
    problem_set(ret_problem, "the library refused the product");
    return OPERATION_FAILED;
}

const struct operation_multiplier cores_multiplier = {.multiply = multiply};
