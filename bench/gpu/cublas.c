#include "bench/gpu/cublas.h"

#include "base/random.h"
#include "provider/kernel/cuda_api.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 7 };

/* Numbers of the library's binary interface. */
enum {
    CUBLAS_OK = 0,
    CUBLAS_OP_N = 0,
    CUBLAS_R_32F = 0,
    CUBLAS_R_16BF = 14,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
    CUBLAS_GEMM_DEFAULT = -1,
};

struct cublas_api {
    int (*create)(void **ret_handle);
    int (*destroy)(void *handle);
    int (*gemm)(void *handle, int left_op, int right_op, int m, int n, int k, const void *alpha,
                const void *left, int left_type, int left_rows, const void *right, int right_type,
                int right_rows, const void *beta, void *product, int product_type, int product_rows,
                int compute, int algorithm);
};

/* The device with two matrices of each type and a product. */
struct bench {
    struct cuda_api cuda;
    struct cublas_api cublas;
    void *handle;
    size_t n;
    cuda_address full[2], half[2], product;
};

static bool find(void *library, const char *name, void *ret_function)
{
    void *place = dlsym(library, name);
    memcpy(ret_function, &place, sizeof place);
    return place != NULL;
}

static bool load(struct cublas_api *ret_api, const char **ret_name)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library != NULL && find(library, "cublasCreate_v2", (void *)&ret_api->create) &&
            find(library, "cublasDestroy_v2", (void *)&ret_api->destroy) &&
            find(library, "cublasGemmEx", (void *)&ret_api->gemm)) {
            *ret_name = names[i];
            return true;
        }
    }
    return false;
}

/* Opens the first device of the driver. */
static bool open_device(struct cuda_api *cuda)
{
    int count = 0;
    cuda_device device = 0;
    cuda_context context = NULL;
    return cuda->cuInit(0) == CUDA_OK && cuda->cuDeviceGetCount(&count) == CUDA_OK && count > 0 &&
           cuda->cuDeviceGet(&device, 0) == CUDA_OK &&
           cuda->cuDevicePrimaryCtxRetain(&context, device) == CUDA_OK &&
           cuda->cuCtxSetCurrent(context) == CUDA_OK;
}

/* Makes a matrix of small whole numbers, as float32 and as its upper halves, which are bfloat16. */
static bool fill(struct bench *bench, size_t which)
{
    const size_t count = bench->n * bench->n;
    struct random random = random_seeded(which + 1);
    float *floats = malloc(count * sizeof *floats);
    uint16_t *halves = malloc(count * sizeof *halves);
    for (size_t i = 0; floats != NULL && halves != NULL && i < count; i++) {
        uint32_t bits;
        floats[i] = (float)random_below(&random, 16) - 8.0F;
        memcpy(&bits, &floats[i], sizeof bits);
        halves[i] = (uint16_t)(bits >> 16);
    }
    const bool good =
        floats != NULL && halves != NULL &&
        bench->cuda.cuMemAlloc_v2(&bench->full[which], count * sizeof *floats) == CUDA_OK &&
        bench->cuda.cuMemAlloc_v2(&bench->half[which], count * sizeof *halves) == CUDA_OK &&
        bench->cuda.cuMemcpyHtoD_v2(bench->full[which], floats, count * sizeof *floats) ==
            CUDA_OK &&
        bench->cuda.cuMemcpyHtoD_v2(bench->half[which], halves, count * sizeof *halves) == CUDA_OK;
    free(floats);
    free(halves);
    return good;
}

static int by_size(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Multiplies once. The driver's addresses are pointers for cuBLAS. */
static bool multiply(const struct bench *bench, const cuda_address from[2], int type, int compute)
{
    const float one = 1;
    const float zero = 0;
    const int n = (int)bench->n;
    return bench->cublas.gemm(bench->handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one,
                              (const void *)(uintptr_t)from[0], type, n,
                              (const void *)(uintptr_t)from[1], type, n, &zero,
                              (void *)(uintptr_t)bench->product, CUBLAS_R_32F, n, compute,
                              CUBLAS_GEMM_DEFAULT) == CUBLAS_OK &&
           bench->cuda.cuCtxSynchronize() == CUDA_OK;
}

/* The first product chooses and loads the library's kernel, and is not counted. */
static bool measure(const struct bench *bench, const cuda_address from[2], int type, int compute,
                    double *ret_gflops)
{
    double took[RUNS];
    bool good = multiply(bench, from, type, compute);
    for (size_t i = 0; good && i < RUNS; i++) {
        const double began = seconds();
        good = multiply(bench, from, type, compute);
        took[i] = seconds() - began;
    }
    if (good) {
        const double n = (double)bench->n;
        qsort(took, RUNS, sizeof took[0], by_size);
        *ret_gflops = 2e-9 * n * n * n / took[RUNS / 2];
    }
    return good;
}

bool cublas_measure(size_t n, struct cublas_rates *ret_rates, struct problem *ret_problem)
{
    struct bench bench = {.n = n};
    *ret_rates = (struct cublas_rates){.is_found = false};
    if (!cuda_api_load(CUDA_LIBRARY, &bench.cuda, ret_problem)) {
        return false;
    }
    if (!load(&bench.cublas, &ret_rates->library)) {
        problem_set(ret_problem, "no libcublas of CUDA 11, 12 or 13");
        return false;
    }
    ret_rates->is_found = true;
    /* The device's memory goes with the process. */
    const bool good =
        open_device(&bench.cuda) && fill(&bench, 0) && fill(&bench, 1) &&
        bench.cuda.cuMemAlloc_v2(&bench.product, n * n * sizeof(float)) == CUDA_OK &&
        bench.cublas.create(&bench.handle) == CUBLAS_OK &&
        measure(&bench, bench.full, CUBLAS_R_32F, CUBLAS_COMPUTE_32F, &ret_rates->fp32) &&
        measure(&bench, bench.full, CUBLAS_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, &ret_rates->tf32) &&
        measure(&bench, bench.half, CUBLAS_R_16BF, CUBLAS_COMPUTE_32F, &ret_rates->bf16);
    if (bench.handle != NULL) {
        (void)bench.cublas.destroy(bench.handle);
    }
    if (!good) {
        problem_set(ret_problem, "cuBLAS or the device failed");
    }
    return good;
}
