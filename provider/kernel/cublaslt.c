#include "provider/kernel/cublaslt.h"

#include <string.h>

/* The objects of one product. Each may be NULL. */
struct parts {
    struct cublaslt *lt;
    cublaslt_operation operation;
    cublaslt_layout a, b, c; /* of the library's order: a is our B */
    cublaslt_preference preference;
    cublaslt_choice choice;
};

static const char *phrase_of(int result)
{
    switch (result) {
    case CUBLASLT_NOT_INITIALIZED:
        return "the library does not start";
    case CUBLASLT_ALLOC_FAILED:
        return "no memory is left";
    case CUBLASLT_INVALID_VALUE:
        return "the library takes no such value";
    case CUBLASLT_ARCH_MISMATCH:
        return "the library has no code for this device";
    case CUBLASLT_MAPPING_ERROR:
        return "the device's memory cannot be reached";
    case CUBLASLT_EXECUTION_FAILED:
        return "the device did not carry it out";
    case CUBLASLT_INTERNAL_ERROR:
        return "the library failed";
    case CUBLASLT_NOT_SUPPORTED:
        return "the library does not compute it";
    default:
        return "the library does not say why";
    }
}

/* Returns true for success. Else sets the problem. */
static bool is_good(const struct cublaslt *lt, int result, const char *what,
                    struct problem *ret_problem)
{
    if (result != CUBLASLT_OK) {
        problem_set(ret_problem, "%s: %s: %s (status %d)", lt->name, what, phrase_of(result),
                    result);
    }
    return result == CUBLASLT_OK;
}

bool cublaslt_open(const char *library, struct cublaslt *ret_lt, struct problem *ret_problem)
{
    *ret_lt = (struct cublaslt){.handle = NULL};
    return cublaslt_api_load(library, &ret_lt->api, ret_lt->name, ret_problem) &&
           is_good(ret_lt, ret_lt->api.cublasLtCreate(&ret_lt->handle), "it cannot be used",
                   ret_problem);
}

void cublaslt_close(struct cublaslt *lt)
{
    if (lt->handle != NULL) {
        (void)lt->api.cublasLtDestroy(lt->handle);
        lt->handle = NULL;
    }
}

/* ---------------------------------------------------------------- one product */

static cublaslt_compute compute_of(enum tensor_compute compute)
{
    switch (compute) {
    case TENSOR_FP32:
        return CUBLASLT_COMPUTE_FP32;
    case TENSOR_TF32:
        return CUBLASLT_COMPUTE_TF32;
    case TENSOR_BF16:
        return CUBLASLT_COMPUTE_BF16;
    }
    return CUBLASLT_COMPUTE_FP32;
}

/* Describes a matrix of ours, which lies row by row: to the library, its columns are our rows. */
static int describe(const struct parts *parts, uint64_t rows, uint64_t columns,
                    cublaslt_layout *ret_layout)
{
    return parts->lt->api.cublasLtMatrixLayoutCreate(ret_layout, CUBLASLT_FLOAT, columns, rows,
                                                     (int64_t)columns);
}

/* Makes the objects, and asks for the best algorithm that the workspace allows. */
static int prepare(struct parts *parts, const struct kernel_multiplication *product, int *ret_count)
{
    const struct cublaslt_api *api = &parts->lt->api;
    int result = api->cublasLtMatmulDescCreate(&parts->operation, compute_of(product->compute),
                                               CUBLASLT_FLOAT);
    result = result == CUBLASLT_OK ? describe(parts, product->inner, product->columns, &parts->a)
                                   : result;
    result =
        result == CUBLASLT_OK ? describe(parts, product->rows, product->inner, &parts->b) : result;
    result = result == CUBLASLT_OK ? describe(parts, product->rows, product->columns, &parts->c)
                                   : result;
    result =
        result == CUBLASLT_OK ? api->cublasLtMatmulPreferenceCreate(&parts->preference) : result;
    result = result == CUBLASLT_OK
                 ? api->cublasLtMatmulPreferenceSetAttribute(
                       parts->preference, CUBLASLT_PREFER_WORKSPACE_MOST,
                       &parts->lt->workspace_bytes, sizeof parts->lt->workspace_bytes)
                 : result;
    return result == CUBLASLT_OK
               ? api->cublasLtMatmulAlgoGetHeuristic(
                     parts->lt->handle, parts->operation, parts->a, parts->b, parts->c, parts->c,
                     parts->preference, 1, &parts->choice, ret_count)
               : result;
}

static void release(struct parts *parts)
{
    const struct cublaslt_api *api = &parts->lt->api;
    const cublaslt_layout layouts[] = {parts->a, parts->b, parts->c};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (layouts[i] != NULL) {
            (void)api->cublasLtMatrixLayoutDestroy(layouts[i]);
        }
    }
    if (parts->preference != NULL) {
        (void)api->cublasLtMatmulPreferenceDestroy(parts->preference);
    }
    if (parts->operation != NULL) {
        (void)api->cublasLtMatmulDescDestroy(parts->operation);
    }
}

/* C gives the address of a device's memory as a pointer. */
static void *place_of(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static int start(const struct parts *parts, const struct kernel_multiplication *product)
{
    const struct cublaslt *lt = parts->lt;
    void *c = place_of(product->c.address);
    return lt->api.cublasLtMatmul(
        lt->handle, parts->operation, &product->alpha, place_of(product->b.address), parts->a,
        place_of(product->a.address), parts->b, &product->beta, c, parts->c, c, parts->c,
        &parts->choice.algo, place_of(lt->workspace), lt->workspace_bytes, NULL);
}

enum cublaslt_outcome cublaslt_multiply(struct cublaslt *lt,
                                        const struct kernel_multiplication *product,
                                        struct problem *ret_problem)
{
    struct parts parts = {.lt = lt};
    int count = 0;
    int result = prepare(&parts, product, &count);
    enum cublaslt_outcome outcome = CUBLASLT_REFUSED;
    if (result == CUBLASLT_OK && count == 0) {
        result = CUBLASLT_NOT_SUPPORTED;
    }
    if (result == CUBLASLT_OK) {
        result = start(&parts, product);
        outcome = result == CUBLASLT_OK ? CUBLASLT_DONE
                  : result == CUBLASLT_NOT_SUPPORTED || result == CUBLASLT_ALLOC_FAILED ||
                          result == CUBLASLT_INVALID_VALUE
                      ? CUBLASLT_REFUSED
                      : CUBLASLT_FAILED;
    }
    (void)is_good(lt, result, "a product", ret_problem);
    release(&parts);
    return outcome;
}
