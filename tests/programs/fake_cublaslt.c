/* This library takes the place of cuBLASLt in tests. It computes on the memory of the fake CUDA
 * driver, which is the process's own, column by column, and rounds the factors as it was told.
 *
 * Before fake_cublaslt_fail("cublasLtMatmul", 14), every call works; later ones of that function
 * return the status. fake_cublaslt_fail(NULL, 0) makes none fail. fake_cublaslt_alive() counts the
 * objects that nobody has released, fake_cublaslt_products() the products. After
 * fake_cublaslt_version(N), the library is of that version. After fake_cublaslt_rounds(1), products
 * in float32 are rounded to TF32 all the same. After fake_cublaslt_lies(1), one element is wrong.
 *
 * A layout that no matrix of bourse has, another leading dimension and a workspace that is not what
 * was preferred are invalid values. */
#include "provider/kernel/cublaslt_api.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PROTOTYPE(result, name, arguments) result name arguments;
CUBLASLT_CALLS(PROTOTYPE)
void fake_cublaslt_fail(const char *function, int status);
int fake_cublaslt_alive(void);
int fake_cublaslt_products(void);
void fake_cublaslt_version(size_t number);
void fake_cublaslt_rounds(bool rounds);
void fake_cublaslt_lies(bool lies);

struct cublasLtContext {
    int none;
};
struct cublaslt_operation {
    int compute;
};
struct cublaslt_layout {
    uint64_t rows, columns;
};
struct cublaslt_preference {
    size_t workspace_bytes;
};

static const char *failing;
static int failure;
static int alive, products;
static size_t version = 130100;
static bool rounds_all, is_liar;
static size_t preferred_bytes;

void fake_cublaslt_fail(const char *function, int status)
{
    failing = function;
    failure = status;
}

int fake_cublaslt_alive(void)
{
    return alive;
}

int fake_cublaslt_products(void)
{
    return products;
}

void fake_cublaslt_version(size_t number)
{
    version = number;
}

void fake_cublaslt_rounds(bool rounds)
{
    rounds_all = rounds;
}

void fake_cublaslt_lies(bool lies)
{
    is_liar = lies;
}

#define CALL()                                                                                     \
    if (failing != NULL && strcmp(failing, __func__) == 0) {                                       \
        return failure;                                                                            \
    }

/* Makes an object. Its address goes to *ret_object. */
#define MAKE(ret_object)                                                                           \
    *(ret_object) = calloc(1, sizeof **(ret_object));                                              \
    if (*(ret_object) == NULL) {                                                                   \
        return CUBLASLT_ALLOC_FAILED;                                                              \
    }                                                                                              \
    alive++;

static cublaslt_result drop(void *object)
{
    alive--;
    free(object);
    return CUBLASLT_OK;
}

size_t cublasLtGetVersion(void)
{
    return version;
}

cublaslt_result cublasLtCreate(cublaslt_handle *ret_handle)
{
    CALL()
    MAKE(ret_handle)
    return CUBLASLT_OK;
}

cublaslt_result cublasLtDestroy(cublaslt_handle handle)
{
    return drop(handle);
}

cublaslt_result cublasLtMatmulDescCreate(cublaslt_operation *ret_operation,
                                         cublaslt_compute compute, cublaslt_element scale)
{
    CALL()
    if (scale != CUBLASLT_FLOAT) {
        return CUBLASLT_INVALID_VALUE;
    }
    MAKE(ret_operation)
    (*ret_operation)->compute = compute;
    return CUBLASLT_OK;
}

cublaslt_result cublasLtMatmulDescDestroy(cublaslt_operation operation)
{
    return drop(operation);
}

cublaslt_result cublasLtMatrixLayoutCreate(cublaslt_layout *ret_layout, cublaslt_element type,
                                           uint64_t rows, uint64_t columns, int64_t stride)
{
    CALL()
    if (type != CUBLASLT_FLOAT || rows == 0 || columns == 0 || (uint64_t)stride != rows) {
        return CUBLASLT_INVALID_VALUE;
    }
    MAKE(ret_layout)
    **ret_layout = (struct cublaslt_layout){rows, columns};
    return CUBLASLT_OK;
}

cublaslt_result cublasLtMatrixLayoutDestroy(cublaslt_layout layout)
{
    return drop(layout);
}

cublaslt_result cublasLtMatmulPreferenceCreate(cublaslt_preference *ret_preference)
{
    CALL()
    MAKE(ret_preference)
    return CUBLASLT_OK;
}

cublaslt_result cublasLtMatmulPreferenceSetAttribute(cublaslt_preference preference,
                                                     cublaslt_preference_fact what,
                                                     const void *value, size_t size)
{
    CALL()
    if (what != CUBLASLT_PREFER_WORKSPACE_MOST || size != sizeof preference->workspace_bytes) {
        return CUBLASLT_INVALID_VALUE;
    }
    memcpy(&preference->workspace_bytes, value, size);
    preferred_bytes = preference->workspace_bytes;
    return CUBLASLT_OK;
}

cublaslt_result cublasLtMatmulPreferenceDestroy(cublaslt_preference preference)
{
    return drop(preference);
}

static bool fits(cublaslt_layout a, cublaslt_layout b, cublaslt_layout c)
{
    return a->columns == b->rows && c->rows == a->rows && c->columns == b->columns;
}

cublaslt_result cublasLtMatmulAlgoGetHeuristic(cublaslt_handle handle, cublaslt_operation operation,
                                               cublaslt_layout a, cublaslt_layout b,
                                               cublaslt_layout c, cublaslt_layout d,
                                               cublaslt_preference preference, int wanted,
                                               cublaslt_choice *ret_choices, int *ret_count)
{
    *ret_count = 0;
    if (failing != NULL && strcmp(failing, "none found") == 0) {
        return CUBLASLT_OK;
    }
    CALL()
    if (handle == NULL || !fits(a, b, c) || c != d || wanted != 1) {
        return CUBLASLT_INVALID_VALUE;
    }
    memset(ret_choices, 0, sizeof *ret_choices);
    ret_choices->algo.data[0] = (uint64_t)operation->compute;
    ret_choices->workspaceSize = preference->workspace_bytes;
    *ret_count = 1;
    return CUBLASLT_OK;
}

/* Rounds to nearest, ties to even, at so many bits behind the leading one. */
static float rounded(float value, int bits)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    const uint32_t unit = UINT32_C(1) << (23 - bits);
    word += unit / 2 - 1 + (word / unit & 1);
    word &= ~(unit - 1);
    memcpy(&value, &word, sizeof word);
    return value;
}

static float factor(float value, int compute)
{
    return compute == CUBLASLT_COMPUTE_BF16                 ? rounded(value, 7)
           : compute == CUBLASLT_COMPUTE_TF32 || rounds_all ? rounded(value, 10)
                                                            : value;
}

static float scalar(const void *value)
{
    float number;
    memcpy(&number, value, sizeof number);
    return number;
}

cublaslt_result cublasLtMatmul(cublaslt_handle handle, cublaslt_operation operation,
                               const void *alpha, const void *a, cublaslt_layout a_layout,
                               const void *b, cublaslt_layout b_layout, const void *beta,
                               const void *c, cublaslt_layout c_layout, void *d,
                               cublaslt_layout d_layout, const cublaslt_algorithm *algorithm,
                               void *workspace, size_t workspace_bytes, cublaslt_stream stream)
{
    CALL()
    if (handle == NULL || !fits(a_layout, b_layout, c_layout) || c_layout != d_layout || c != d ||
        algorithm->data[0] != (uint64_t)operation->compute || stream != NULL ||
        workspace_bytes != preferred_bytes || (workspace == NULL) != (workspace_bytes == 0)) {
        return CUBLASLT_INVALID_VALUE;
    }
    if (workspace != NULL) {
        memset(workspace, 0xff, workspace_bytes);
    }
    const uint64_t rows = a_layout->rows;
    const uint64_t inner = a_layout->columns;
    const float *left = a;
    const float *right = b;
    float *result = d;
    for (uint64_t column = 0; column < b_layout->columns; column++) {
        for (uint64_t row = 0; row < rows; row++) {
            float sum = 0;
            for (uint64_t i = 0; i < inner; i++) {
                sum += factor(left[i * rows + row], operation->compute) *
                       factor(right[column * inner + i], operation->compute);
            }
            float *place = &result[column * rows + row];
            const float before = scalar(beta) != 0 ? scalar(beta) * *place : 0;
            *place = scalar(alpha) * sum + before;
        }
    }
    result[0] += is_liar ? 1.0F : 0.0F;
    products++;
    return CUBLASLT_OK;
}
