/* The numbers and types of provider/kernel/cublaslt_api.h are those of cublasLt.h. The build finds
 * that header where the CUDA toolkit is installed; elsewhere the program is skipped. */
#include <stdio.h>

#ifdef BOURSE_CUBLASLT_HEADER
#include <assert.h>
#include <cublasLt.h>

#define CUBLASLT_API_TYPES
typedef cublasStatus_t cublaslt_result;
typedef cublasComputeType_t cublaslt_compute;
typedef cudaDataType cublaslt_element;
typedef cublasLtMatmulPreferenceAttributes_t cublaslt_preference_fact;
typedef cublasLtHandle_t cublaslt_handle;
typedef cublasLtMatmulDesc_t cublaslt_operation;
typedef cublasLtMatrixLayout_t cublaslt_layout;
typedef cublasLtMatmulPreference_t cublaslt_preference;
typedef cudaStream_t cublaslt_stream;
typedef cublasLtMatmulAlgo_t cublaslt_algorithm;
typedef cublasLtMatmulHeuristicResult_t cublaslt_choice;
#include "provider/kernel/cublaslt_api.h"

/* The struct that ours is compared with has the members that ours has. */
struct ours {
    struct {
        uint64_t data[8];
    } algo;
    size_t workspaceSize;
    int state;
    float wavesCount;
    int reserved[4];
};
#define SAME(member)                                                                               \
    static_assert(offsetof(struct ours, member) ==                                                 \
                      offsetof(cublasLtMatmulHeuristicResult_t, member),                           \
                  #member);
SAME(algo)
SAME(workspaceSize)
SAME(state)
SAME(wavesCount)
SAME(reserved)
static_assert(sizeof(struct ours) == sizeof(cublasLtMatmulHeuristicResult_t), "a choice");
static_assert(sizeof(cublasStatus_t) == sizeof(int), "a result is an int");
static_assert(sizeof(cublasComputeType_t) == sizeof(int), "so is a type of sums");
static_assert(sizeof(cudaDataType) == sizeof(int), "and a type of elements");
static_assert(sizeof(cublasLtMatmulPreferenceAttributes_t) == sizeof(int), "and a preference");

#define IS(ours, theirs) static_assert((int)(ours) == (int)(theirs), #theirs);
IS(CUBLASLT_OK, CUBLAS_STATUS_SUCCESS)
IS(CUBLASLT_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED)
IS(CUBLASLT_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED)
IS(CUBLASLT_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE)
IS(CUBLASLT_ARCH_MISMATCH, CUBLAS_STATUS_ARCH_MISMATCH)
IS(CUBLASLT_MAPPING_ERROR, CUBLAS_STATUS_MAPPING_ERROR)
IS(CUBLASLT_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED)
IS(CUBLASLT_INTERNAL_ERROR, CUBLAS_STATUS_INTERNAL_ERROR)
IS(CUBLASLT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED)
IS(CUBLASLT_COMPUTE_FP32, CUBLAS_COMPUTE_32F)
IS(CUBLASLT_COMPUTE_BF16, CUBLAS_COMPUTE_32F_FAST_16BF)
IS(CUBLASLT_COMPUTE_TF32, CUBLAS_COMPUTE_32F_FAST_TF32)
IS(CUBLASLT_FLOAT, CUDA_R_32F)
IS(CUBLASLT_PREFER_WORKSPACE_MOST, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
static_assert(CUBLAS_VERSION >= CUBLASLT_OLDEST, "a version that is known");
static_assert(CUBLAS_VERSION < CUBLASLT_TOO_NEW, "a version that is known");

/* Each function has the type that ours has, or this does not compile. */
#define TYPE(result, name, arguments)                                                              \
    static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) arguments), #name);
CUBLASLT_CALLS(TYPE)

int main(void)
{
    (void)printf("the compiler compared them with cublasLt.h of cuBLAS %d\n", CUBLAS_VERSION);
    return 0;
}
#else
int main(void)
{
    (void)puts("skipped: no cublasLt.h; the CUDA toolkit is not installed");
    return 77;
}
#endif
