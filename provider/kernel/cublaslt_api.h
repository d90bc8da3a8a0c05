/* provider/kernel/cublaslt_api.h loads NVIDIA's library of matrix products when the program runs.
 *
 * Nothing of bourse is linked with cuBLASLt or built with its headers. This file has the names,
 * numbers and types of its binary interface, written down by us. The test test_cublaslt_header.c
 * compares them with cublasLt.h where the toolkit is installed. */
#ifndef BOURSE_PROVIDER_KERNEL_CUBLASLT_API_H
#define BOURSE_PROVIDER_KERNEL_CUBLASLT_API_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Versions are MAJOR * 10000 + MINOR * 100 + PATCH. */
enum {
    CUBLASLT_OLDEST = 120000,
    CUBLASLT_TOO_NEW = 140000,
};

/* The test of the numbers gives the types of cublasLt.h instead. */
#ifndef CUBLASLT_API_TYPES
typedef int cublaslt_result;
typedef int cublaslt_compute;
typedef int cublaslt_element;
typedef int cublaslt_preference_fact;
typedef struct cublasLtContext *cublaslt_handle;
typedef struct cublaslt_operation *cublaslt_operation; /* cublasLtMatmulDesc_t */
typedef struct cublaslt_layout *cublaslt_layout;
typedef struct cublaslt_preference *cublaslt_preference;
typedef struct CUstream_st *cublaslt_stream;
typedef struct {
    uint64_t data[8];
} cublaslt_algorithm;
typedef struct {
    cublaslt_algorithm algo;
    size_t workspaceSize;
    cublaslt_result state;
    float wavesCount;
    int reserved[4];
} cublaslt_choice;
#endif

/* Results of the calls. */
enum {
    CUBLASLT_OK = 0,
    CUBLASLT_NOT_INITIALIZED = 1,
    CUBLASLT_ALLOC_FAILED = 3,
    CUBLASLT_INVALID_VALUE = 7,
    CUBLASLT_ARCH_MISMATCH = 8,
    CUBLASLT_MAPPING_ERROR = 11,
    CUBLASLT_EXECUTION_FAILED = 13,
    CUBLASLT_INTERNAL_ERROR = 14,
    CUBLASLT_NOT_SUPPORTED = 15,
};

/* Types of sums. The factors are float32 in memory in any case. */
enum {
    CUBLASLT_COMPUTE_FP32 = 68,
    CUBLASLT_COMPUTE_BF16 = 75, /* factors may be rounded to bfloat16 or TF32 */
    CUBLASLT_COMPUTE_TF32 = 77, /* factors may be rounded to TF32 */
};

enum {
    CUBLASLT_FLOAT = 0,                 /* a type of elements */
    CUBLASLT_PREFER_WORKSPACE_MOST = 1, /* a preference; its value is a size_t */
};

/* CALL(RESULT, NAME, ARGUMENTS) for each function. A layout is of a matrix that lies column by
 * column. */
#define CUBLASLT_CALLS(CALL)                                                                       \
    CALL(size_t, cublasLtGetVersion, (void))                                                       \
    CALL(cublaslt_result, cublasLtCreate, (cublaslt_handle * ret_handle))                          \
    CALL(cublaslt_result, cublasLtDestroy, (cublaslt_handle handle))                               \
    CALL(cublaslt_result, cublasLtMatmulDescCreate,                                                \
         (cublaslt_operation * ret_operation, cublaslt_compute compute, cublaslt_element scale))   \
    CALL(cublaslt_result, cublasLtMatmulDescDestroy, (cublaslt_operation operation))               \
    CALL(cublaslt_result, cublasLtMatrixLayoutCreate,                                              \
         (cublaslt_layout * ret_layout, cublaslt_element type, uint64_t rows, uint64_t columns,    \
          int64_t stride))                                                                         \
    CALL(cublaslt_result, cublasLtMatrixLayoutDestroy, (cublaslt_layout layout))                   \
    CALL(cublaslt_result, cublasLtMatmulPreferenceCreate, (cublaslt_preference * ret_preference))  \
    CALL(cublaslt_result, cublasLtMatmulPreferenceSetAttribute,                                    \
         (cublaslt_preference preference, cublaslt_preference_fact what, const void *value,        \
          size_t size))                                                                            \
    CALL(cublaslt_result, cublasLtMatmulPreferenceDestroy, (cublaslt_preference preference))       \
    CALL(cublaslt_result, cublasLtMatmulAlgoGetHeuristic,                                          \
         (cublaslt_handle handle, cublaslt_operation operation, cublaslt_layout a,                 \
          cublaslt_layout b, cublaslt_layout c, cublaslt_layout d, cublaslt_preference preference, \
          int wanted, cublaslt_choice *ret_choices, int *ret_count))                               \
    CALL(cublaslt_result, cublasLtMatmul,                                                          \
         (cublaslt_handle handle, cublaslt_operation operation, const void *alpha, const void *a,  \
          cublaslt_layout a_layout, const void *b, cublaslt_layout b_layout, const void *beta,     \
          const void *c, cublaslt_layout c_layout, void *d, cublaslt_layout d_layout,              \
          const cublaslt_algorithm *algorithm, void *workspace, size_t workspace_bytes,            \
          cublaslt_stream stream))

/* The members have the names of the functions, which are NVIDIA's. */
struct cublaslt_api {
    void *library;
#define CUBLASLT_MEMBER(result, name, arguments) result(*name) arguments;
    CUBLASLT_CALLS(CUBLASLT_MEMBER)
#undef CUBLASLT_MEMBER
};

/* Loads the library of this name, or path; NULL looks for the functions in the program itself.
 * Writes its name, as in "cuBLASLt 13.1.0". Returns false with the problem when the library is
 * missing, or of a version that is not known here; then nothing is loaded. */
enum { CUBLASLT_NAME_SIZE = 32 };
bool cublaslt_api_load(const char *library, struct cublaslt_api *ret_api,
                       char ret_name[CUBLASLT_NAME_SIZE], struct problem *ret_problem);

#endif
