/* Matrix operations: how they are written, what they compute beside a slow oracle, what they
 * refuse, and what a check of files says. */
#include "formats/npy.h"
#include "formats/tensor_op.h"
#include "numeric/seeded_check.h"
#include "provider/tensor/cores.h"
#include "provider/tensor/gemm.h"
#include "provider/tensor/operation.h"
#include "tests/support/matrices.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SEED "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/* ---------------------------------------------------------------- arguments */

static bool read_op(const char *const *arguments, bool has_holes, struct tensor_op *op,
                    struct problem *problem)
{
    size_t count = 0;
    while (arguments[count] != NULL) {
        count++;
    }
    return tensor_op_read(arguments, count, has_holes, op, problem);
}

START_TEST(a_product_is_one_however_its_factors_are_written)
{
    static const struct {
        const char *alpha, *beta;
        bool is_product;
    } cases[] = {
        {"1", "0", true},      {"1.0", "0.00", true}, {"+1", "-0", true},   {"01.", ".0", true},
        {"1e0", "0e7", true},  {"10e-1", "0", true},  {"0.1E1", "0", true}, {"100e-2", "0", true},
        {".01e+2", "0", true}, {"1", "1", false},     {"2", "0", false},    {"-1", "0", false},
        {"11", "0", false},    {"10", "0", false},    {"1e1", "0", false},  {"1.01", "0", false},
        {"1", "1e-9", false},  {"0", "0", false},     {"0.1", "0", false},  {"1e-1", "0", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tensor_op op;
        struct problem problem = {""};
        const char *const gemm[] = {"gemm", "--alpha", cases[i].alpha, "--beta", cases[i].beta,
                                    "a",    "b",       "c0",           "c",      NULL};
        ck_assert_msg(read_op(gemm, false, &op, &problem), "%s: %s", cases[i].alpha, problem.text);
        ck_assert_msg(tensor_op_is_product(&op) == cases[i].is_product, "%s and %s", cases[i].alpha,
                      cases[i].beta);
    }
}
END_TEST

START_TEST(factors_are_rounded_only_where_the_job_says_so)
{
    static const struct {
        const char *words[11];
        enum tensor_compute compute;
        bool is_product;
    } cases[] = {
        {{"matmul", "a", "b", "c"}, TENSOR_FP32, true},
        {{"matmul", "--compute", "fp32", "a", "b", "c"}, TENSOR_FP32, true},
        {{"matmul", "--compute", "tf32", "a", "b", "c"}, TENSOR_TF32, false},
        {{"gemm", "--compute", "bf16", "--beta", "0", "a", "b", "c0", "c"}, TENSOR_BF16, false},
        {{"gemm", "--beta", "0", "--compute", "fp32", "a", "b", "c0", "c"}, TENSOR_FP32, true},
        {{"matmul", "--a.npy", "b", "c"}, TENSOR_FP32, true}, /* it is a file */
    };
    static const struct {
        const char *words[8], *said;
    } wrong[] = {
        {{"matmul", "--compute", "fp16", "a", "b", "c"},
         "--compute: \"fp16\" is none of fp32, tf32 and bf16"},
        {{"matmul", "--compute", "{value}", "a", "b", "c"}, "is none of fp32, tf32 and bf16"},
        {{"matmul", "--alpha", "2", "a", "b", "c"}, "5 operands; write [matmul, "},
        {{"freivalds", "--compute", "tf32", "a", "b", "c"}, "the seed \"b\""},
    };
    struct tensor_op op;
    struct problem problem = {""};
    for (size_t i = 0; i < COUNT(cases); i++) {
        ck_assert_msg(read_op(cases[i].words, false, &op, &problem), "%s", problem.text);
        ck_assert_int_eq(op.compute, cases[i].compute);
        ck_assert(tensor_op_is_product(&op) == cases[i].is_product);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        ck_assert(!read_op(wrong[i].words, true, &op, &problem));
        ck_assert_msg(strstr(problem.text, wrong[i].said) != NULL, "%s", problem.text);
    }
}
END_TEST

START_TEST(operations_are_read_as_they_are_written)
{
    struct tensor_op op;
    struct problem problem = {""};
    const char *const product[] = {"matmul", "a.npy", "in/b.npy", "c.npy", NULL};
    ck_assert_msg(read_op(product, false, &op, &problem), "%s", problem.text);
    ck_assert_int_eq(op.verb, TENSOR_MATMUL);
    ck_assert_str_eq(op.b, "in/b.npy");
    ck_assert_str_eq(op.result, "c.npy");
    ck_assert_ptr_null(op.c);

    const char *const gemm[] = {"gemm",  "--alpha", "-1.5e-3", "--beta", ".5",
                                "a.npy", "b.npy",   "c0.npy",  "c.npy",  NULL};
    ck_assert_msg(read_op(gemm, false, &op, &problem), "%s", problem.text);
    ck_assert_str_eq(op.alpha, "-1.5e-3");
    ck_assert_str_eq(op.beta, ".5");
    ck_assert_str_eq(op.c, "c0.npy");
    ck_assert(read_op((const char *const[]){"gemm", "a", "b", "c", "d", NULL}, false, &op, NULL));
    ck_assert_str_eq(op.alpha, "1");

    const char *const check[] = {"freivalds", "a", "b", "c", SEED, "20", NULL};
    ck_assert_msg(read_op(check, false, &op, &problem), "%s", problem.text);
    ck_assert_uint_eq(op.rounds, 20);
    ck_assert_uint_eq(op.seed[31], 0x1f);
    ck_assert_ptr_null(op.result);
    ck_assert(!op.is_drawn);
    const char *const drawn_check[] = {"freivalds", "a", "b", "c", TENSOR_DRAWN, "20", NULL};
    ck_assert_msg(read_op(drawn_check, false, &op, &problem), "%s", problem.text);
    ck_assert(op.is_drawn);
    ck_assert_str_eq(drawn_check[TENSOR_SEED_WORD], TENSOR_DRAWN);

    const char *const holes[] = {"matmul", "{in}", "b.npy", "{out}", NULL};
    ck_assert(read_op(holes, true, &op, &problem));
    const char *const filled[] = {"gemm",  "--beta", "{value}", "{in}",
                                  "b.npy", "c.npy",  "{out}",   NULL};
    ck_assert(read_op(filled, true, &op, &problem));
}
END_TEST

START_TEST(what_is_no_operation_is_refused_in_words)
{
    static const struct {
        const char *arguments[10];
        const char *says;
    } wrong[] = {
        {{NULL}, "no tensor operation \"\""},
        {{"matmull", "a", "b", "c"}, "no tensor operation \"matmull\"; there are matmul, gemm"},
        {{"measure"}, "no tensor operation"},
        {{"matmul", "a", "b"}, "2 operands; write [matmul, A.npy, B.npy, C.npy]"},
        {{"matmul", "a", "b", "c", "d"}, "4 operands"},
        {{"matmul", "/etc/passwd", "b", "c"}, "\"/etc/passwd\" is no file of the work folder"},
        {{"matmul", "a", "../b", "c"}, "is no file of the work folder"},
        {{"matmul", "a", "b", ""}, "is no file of the work folder"},
        {{"matmul", "a", "b", "a"}, "\"a\" is read and cannot be the result too"},
        {{"gemm", "a", "b", "c", "c"}, "cannot be the result too"},
        {{"gemm", "--gamma", "1", "a", "b", "c", "d"}, "gemm has no option \"--gamma\""},
        {{"gemm", "--alpha", "nan", "a", "b", "c", "d"}, "--alpha: \"nan\" is no decimal number"},
        {{"gemm", "--alpha", "0x1p3", "a", "b", "c", "d"}, "is no decimal number"},
        {{"gemm", "--beta", ".", "a", "b", "c", "d"}, "is no decimal number"},
        {{"gemm", "--beta", "1e", "a", "b", "c", "d"}, "is no decimal number"},
        {{"freivalds", "a", "b", "c", "0011", "20"},
         "the seed \"0011\" is not 64 hexadecimal digits, nor "
         "the word drawn"},
        {{"freivalds", "a", "b", "c", "Drawn", "20"}, "is not 64 hexadecimal"},
        {{"freivalds", "a", "b", "c", SEED, "0"}, "\"0\" rounds; 1 to 64"},
        {{"freivalds", "a", "b", "c", SEED, "65"}, "1 to 64"},
        {{"freivalds", "a", "b", "c", SEED, "00020"}, "1 to 64"},
        {{"freivalds", "a", "b", "c", SEED, "2x"}, "1 to 64"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct tensor_op op;
        struct problem problem = {""};
        ck_assert_msg(!read_op(wrong[i].arguments, false, &op, &problem), "%zu", i);
        ck_assert_msg(strstr(problem.text, wrong[i].says) != NULL, "%zu: %s", i, problem.text);
    }

    /* A word without a hole is final in a template, too. */
    struct tensor_op op;
    struct problem problem = {""};
    const char *const gemm[] = {"gemm", "--alpha", "nan", "{in}", "b", "c", "{out}", NULL};
    ck_assert(!read_op(gemm, true, &op, &problem));
    ck_assert_msg(strstr(problem.text, "--alpha: \"nan\" is no decimal number") != NULL, "%s",
                  problem.text);
}
END_TEST

/* ---------------------------------------------------------------- products */

/* Computes an entry by the definition, in double. */
static double entry(const struct gemm *gemm, uint64_t i, uint64_t j, double *ret_magnitude)
{
    double sum = 0;
    *ret_magnitude = 0;
    for (uint64_t k = 0; k < gemm->inner; k++) {
        double product =
            (double)gemm->a[i * gemm->inner + k] * (double)gemm->b[k * gemm->columns + j];
        sum += product;
        *ret_magnitude += fabs(product);
    }
    return sum;
}

START_TEST(products_are_those_of_the_definition)
{
    static const uint64_t shapes[][3] = {{1, 1, 1},   {2, 3, 4},     {17, 1, 9},    {1, 100, 1},
                                         {0, 3, 4},   {3, 0, 4},     {3, 4, 0},     {64, 64, 64},
                                         {33, 65, 7}, {5, 257, 129}, {128, 300, 70}};
    for (size_t s = 0; s < COUNT(shapes); s++) {
        uint64_t rows = shapes[s][0];
        uint64_t inner = shapes[s][1];
        uint64_t columns = shapes[s][2];
        float *a = drawn(rows * inner);
        float *b = drawn(inner * columns);
        float *c0 = drawn(rows * columns);
        float *c = drawn(rows * columns);
        struct gemm gemm = {rows, inner, columns, -0.75F, 0.5F, a, b, c, TENSOR_FP32};
        memcpy(c, c0, rows * columns * sizeof *c);
        multiply(&gemm, _i == 0);
        for (uint64_t i = 0; i < rows * columns; i++) {
            double magnitude;
            double right = -0.75 * entry(&gemm, i / columns, i % columns, &magnitude);
            double bound = (double)(inner + 4) * 0x1p-23 * (magnitude + 1);
            right += 0.5 * (double)c0[i];
            ck_assert_msg(fabs((double)c[i] - right) <= bound, "%zu: %.9g is not %.9g", s,
                          (double)c[i], right);
        }
        free(a);
        free(b);
        free(c0);
        free(c);
    }
}
END_TEST

START_TEST(nan_and_infinities_travel)
{
    enum { SIDE = 24 };
    float a[SIDE * SIDE] = {0};
    float b[SIDE * SIDE] = {0};
    float c[SIDE * SIDE];
    struct gemm gemm = {SIDE, SIDE, SIDE, 1, 0, a, b, c, TENSOR_FP32};
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++) {
        b[i] = 1;
        c[i] = NAN; /* with beta = 0 it is not read */
    }
    a[0 * SIDE + 3] = NAN;
    a[1 * SIDE + 4] = INFINITY;
    a[2 * SIDE + 5] = INFINITY;
    a[2 * SIDE + 6] = -INFINITY;
    a[3 * SIDE + 7] = 1;
    a[4 * SIDE + 8] = FLT_MAX;
    a[4 * SIDE + 9] = FLT_MAX;
    b[7 * SIDE + 1] = NAN; /* met by 1 in row 3, and by 0 in all others */
    b[4 * SIDE + 2] = 0;   /* met by infinity in row 1 */
    b[8 * SIDE + 5] = -1;  /* a sum that does not overflow */
    multiply(&gemm, _i == 0);
    ck_assert(isnan(c[0]) && isnan(c[SIDE - 1]));
    ck_assert(isinf(c[SIDE]) && c[SIDE] > 0 && isinf(c[2 * SIDE - 1]));
    ck_assert(isnan(c[SIDE + 2])); /* infinity times 0 */
    ck_assert(isnan(c[2 * SIDE]) && isnan(c[3 * SIDE - 1]));
    ck_assert(c[3 * SIDE] == 1 && isnan(c[3 * SIDE + 1]));
    ck_assert(isinf(c[4 * SIDE]) && c[4 * SIDE + 5] == 0);
    ck_assert(isnan(c[10 * SIDE + 1])); /* NaN times 0 */
    ck_assert(c[10 * SIDE] == 0);
}
END_TEST

START_TEST(one_of_two_engines_computes)
{
    if (gemm_onednn_version() == NULL) {
        ck_assert_str_eq(gemm_engine(), "plain C");
        (void)printf("skipped: oneDNN was not there at configure time; plain C is tested alone\n");
    } else {
        ck_assert_int_eq(strncmp(gemm_engine(), "oneDNN ", 7), 0);
    }
}
END_TEST

/* ---------------------------------------------------------------- files */

static char folder_path[] = "/tmp/bourse-tensor-XXXXXX";
static int folder = -1;

static void make_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder_path));
    folder = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(folder, 0);
}

static void drop_folder(void)
{
    static const char *const names[] = {"a.npy", "b.npy", "c0.npy", "c.npy", "other.npy"};
    for (size_t i = 0; i < COUNT(names); i++) {
        (void)unlinkat(folder, names[i], 0);
    }
    ck_assert_int_eq(rmdir(folder_path), 0); /* nothing else was left */
    (void)close(folder);
}

static void put(const char *name, const void *bytes, size_t length)
{
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, bytes, length), (ssize_t)length);
    ck_assert_int_eq(close(file), 0);
}

static void put_matrix(const char *name, uint64_t rows, uint64_t columns, const float *values)
{
    size_t bytes = rows * columns * sizeof(float);
    uint8_t *file = malloc(NPY_MATRIX_BYTES + bytes);
    ck_assert_ptr_nonnull(file);
    npy_write_matrix(rows, columns, file);
    memcpy(file + NPY_MATRIX_BYTES, values, bytes);
    put(name, file, NPY_MATRIX_BYTES + bytes);
    free(file);
}

static void put_golden(const char *name, const char *golden)
{
    char path[256];
    uint8_t bytes[512];
    (void)snprintf(path, sizeof path, "%s/tests/golden/npy/%s", BOURSE_SOURCE_DIR, golden);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(file, bytes, sizeof bytes);
    ck_assert_int_gt(length, 0);
    (void)close(file);
    put(name, bytes, (size_t)length);
}

#define RUN(answer, problem, ...)                                                                  \
    operation_run(&(struct operation_files){.folder = folder}, &cores_multiplier,                  \
                  (const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})), \
                  UINT64_C(1) << 30, (answer), (problem))

static void expect_matrix(const char *name, uint64_t rows, uint64_t columns, const float *values)
{
    uint8_t bytes[1024];
    struct npy npy;
    struct problem problem = {""};
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(file, bytes, sizeof bytes);
    ck_assert_int_gt(length, 0);
    (void)close(file);
    ck_assert_msg(npy_read(bytes, (size_t)length, (size_t)length, &npy, &problem), "%s",
                  problem.text);
    ck_assert(npy_is_matrix(&npy, &problem));
    ck_assert(npy.shape[0] == rows && npy.shape[1] == columns);
    ck_assert_mem_eq(bytes + npy.data_offset, values, npy.data_bytes);
}

START_TEST(an_operation_goes_from_files_to_a_file)
{
    static const float a[] = {1, 2, 3, 4, 5, 6};
    static const float b[] = {1, 0, 0, 1, 1, 1};
    static const float c0[] = {10, 20, 30, 40};
    static const float product[] = {4, 5, 10, 11};
    static const float sum[] = {-3, 0, -5, -2};
    static const float nothing[] = {0, 0, 0, 0};
    struct operation_answer answer;
    struct problem problem = {""};
    make_folder();
    put_matrix("a.npy", 2, 3, a);
    put_matrix("b.npy", 3, 2, b);
    put_matrix("c0.npy", 2, 2, c0);
    ck_assert_msg(RUN(&answer, &problem, "matmul", "a.npy", "b.npy", "c.npy") == OPERATION_OK, "%s",
                  problem.text);
    ck_assert_str_eq(answer.line, "");
    expect_matrix("c.npy", 2, 2, product);
    ck_assert_int_eq(unlinkat(folder, "c.npy", 0), 0);

    ck_assert_msg(RUN(&answer, &problem, "gemm", "--alpha", "-2", "--beta", "0.5", "a.npy", "b.npy",
                      "c0.npy", "c.npy") == OPERATION_OK,
                  "%s", problem.text);
    expect_matrix("c.npy", 2, 2, sum);
    ck_assert_int_eq(unlinkat(folder, "c.npy", 0), 0);

    /* Sums over nothing are 0. */
    put_matrix("a.npy", 2, 0, a);
    put_matrix("b.npy", 0, 2, b);
    ck_assert_int_eq(RUN(&answer, &problem, "matmul", "a.npy", "b.npy", "c.npy"), OPERATION_OK);
    expect_matrix("c.npy", 2, 2, nothing);
    drop_folder();
}
END_TEST

START_TEST(operands_that_do_not_fit_are_refused_and_nothing_is_made)
{
    static const float values[16] = {1};
    static const struct {
        const char *golden, *says;
    } wrong[] = {
        {"int64-4.npy", "other.npy: the elements are int64, and float32 is computed with"},
        {"fortran-2x3.npy", "other.npy: the file is in Fortran order"},
        {"big-endian.npy", "other.npy: the elements are float32, big-endian"},
        {"scalar.npy", "other.npy: the elements are float64"},
        {"float32-2x3.npy", "a.npy is 2 x 2 and other.npy 2 x 3"},
    };
    struct operation_answer answer;
    struct problem problem = {""};
    make_folder();
    put_matrix("a.npy", 2, 2, values);
    put_matrix("b.npy", 2, 4, values);
    for (size_t i = 0; i + 1 < COUNT(wrong); i++) {
        put_golden("other.npy", wrong[i].golden);
        ck_assert_int_eq(RUN(&answer, &problem, "matmul", "a.npy", "other.npy", "c.npy"),
                         OPERATION_FAILED);
        ck_assert_msg(strstr(problem.text, wrong[i].says) != NULL, "%s", problem.text);
    }
    put_golden("other.npy", "float32-2x3.npy");
    ck_assert_int_eq(RUN(&answer, &problem, "matmul", "other.npy", "a.npy", "c.npy"),
                     OPERATION_FAILED);
    ck_assert_ptr_nonnull(strstr(problem.text, "other.npy is 2 x 3 and a.npy 2 x 2; the first must "
                                               "have as many columns as the second has rows"));
    ck_assert_int_eq(RUN(&answer, &problem, "gemm", "a.npy", "b.npy", "a.npy", "c.npy"),
                     OPERATION_FAILED);
    ck_assert_ptr_nonnull(strstr(problem.text, "a.npy is 2 x 2, and the product of a.npy and b.npy "
                                               "is 2 x 4"));
    ck_assert_int_eq(RUN(&answer, &problem, "matmul", "a.npy", "none.npy", "c.npy"),
                     OPERATION_FAILED);
    ck_assert_ptr_nonnull(strstr(problem.text, "none.npy: no such file"));
    ck_assert_int_eq(RUN(&answer, &problem, "matmul", "a.npy", "b.npy"), OPERATION_FAILED);

    /* Neither side is large, and the product is beyond any file. */
    put_matrix("a.npy", UINT64_C(1) << 40, 0, values);
    put_matrix("b.npy", 0, UINT64_C(1) << 40, values);
    ck_assert_int_eq(RUN(&answer, &problem, "matmul", "a.npy", "b.npy", "c.npy"), OPERATION_FAILED);
    ck_assert_ptr_nonnull(strstr(problem.text, "larger than any file"));
    ck_assert_int_eq(faccessat(folder, "c.npy", F_OK, 0), -1);

    put_matrix("c.npy", 1, 1, values);
    put_matrix("a.npy", 2, 2, values);
    put_matrix("b.npy", 2, 4, values);
    ck_assert_int_eq(RUN(&answer, &problem, "matmul", "a.npy", "b.npy", "c.npy"), OPERATION_FAILED);
    ck_assert_ptr_nonnull(strstr(problem.text, "c.npy: the file is there already"));
    expect_matrix("c.npy", 1, 1, values);
    drop_folder();
}
END_TEST

START_TEST(a_check_prints_its_verdict_and_knows_its_memory)
{
    static const float a[] = {1, 2, 3, 4};
    static const float wrong[] = {7, 10, 15, 23};
    struct operation_answer answer;
    struct problem problem = {""};
    make_folder();
    put_matrix("a.npy", 2, 2, a);
    ck_assert_int_eq(RUN(&answer, &problem, "matmul", "a.npy", "a.npy", "c.npy"), OPERATION_OK);
    ck_assert_int_eq(RUN(&answer, &problem, "freivalds", "a.npy", "a.npy", "c.npy", SEED, "20"),
                     OPERATION_OK);
    ck_assert_str_eq(answer.line,
                     "{\"verdict\":\"accept\",\"rounds\":20,\"false_accept\":9.53674e-07,"
                     "\"worst\":0,\"row\":0,\"why\":\"every row is within its bound\"}\n");
    put_matrix("other.npy", 2, 2, wrong);
    ck_assert_int_eq(RUN(&answer, &problem, "freivalds", "a.npy", "a.npy", "other.npy", SEED, "20"),
                     OPERATION_OK);
    ck_assert_ptr_nonnull(strstr(answer.line, "{\"verdict\":\"reject\","));
    ck_assert_ptr_nonnull(strstr(answer.line, "\"row\":1,"));
    ck_assert_int_eq(answer.verdict, VERDICT_REJECT);

    const char *const check[] = {"freivalds", "a.npy", "a.npy", "c.npy", SEED, "20"};
    ck_assert_int_eq(operation_run(&(struct operation_files){.folder = folder}, &cores_multiplier,
                                   check, COUNT(check), 100, &answer, &problem),
                     OPERATION_MEMORY);
    ck_assert_msg(strstr(problem.text, " of memory, and 100 B may be used") != NULL, "%s",
                  problem.text);
    drop_folder();
}
END_TEST

START_TEST(what_is_given_is_read_and_counts_though_it_is_not_in_the_folder)
{
    static const float a[] = {1, 2, 3, 4};
    static const float square[] = {7, 10, 15, 22};
    struct operation_answer answer;
    struct problem problem = {""};
    make_folder();
    put_matrix("other.npy", 2, 2, a);
    int file = openat(folder, "other.npy", O_RDONLY | O_CLOEXEC);
    struct operation_given given[] = {{"a.npy", file}, {"e.npy", memfd_create("", 0)}};
    const struct operation_files files = {.folder = folder, .given = given, .given_count = 2};
    const char *const twice[] = {"matmul", "a.npy", "a.npy", "c.npy"};
    ck_assert_msg(operation_run(&files, &cores_multiplier, twice, COUNT(twice), 0, &answer,
                                &problem) == OPERATION_OK,
                  "%s", problem.text);
    ck_assert_int_eq(fcntl(file, F_GETFD), -1); /* closed */
    expect_matrix("c.npy", 2, 2, square);
    const char *const bad[][4] = {{"matmul", "a.npy", "e.npy", "d.npy"},
                                  {"matmul", "a.npy", "a.npy", "e.npy"},
                                  {"matmul", "a.npy", "none.npy", "d.npy"}};
    static const char *const says[] = {"e.npy: the file is empty", "the file is there already",
                                       "none.npy: no such file"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        given[0].file = openat(folder, "other.npy", O_RDONLY | O_CLOEXEC);
        given[1].file = memfd_create("", MFD_CLOEXEC);
        ck_assert_int_eq(
            operation_run(&files, &cores_multiplier, bad[i], COUNT(bad[i]), 0, &answer, &problem),
            OPERATION_FAILED);
        ck_assert_msg(strstr(problem.text, says[i]) != NULL, "%s", problem.text);
    }
    drop_folder();
}
END_TEST

START_TEST(a_claim_that_is_no_matrix_of_the_shape_is_rejected_and_wrong_factors_blame_nobody)
{
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    static const char *const wrong[] = {"int64-4.npy", "fortran-2x3.npy", "big-endian.npy",
                                        "scalar.npy", "float32-2x3.npy"};
    struct operation_answer answer;
    struct problem problem = {""};
    make_folder();
    put_matrix("a.npy", 2, 2, values);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        put_golden("c.npy", wrong[i]);
        ck_assert_int_eq(RUN(&answer, &problem, "freivalds", "a.npy", "a.npy", "c.npy", SEED, "20"),
                         OPERATION_OK);
        ck_assert_int_eq(answer.verdict, VERDICT_REJECT);
        ck_assert_ptr_nonnull(strstr(answer.line, "it is no float32 matrix of this shape"));
    }
    put("c.npy", "", 0);
    ck_assert_int_eq(RUN(&answer, &problem, "freivalds", "a.npy", "a.npy", "c.npy", SEED, "20"),
                     OPERATION_OK);
    ck_assert_int_eq(answer.verdict, VERDICT_REJECT);
    put("c.npy", "no header at all", 16);
    ck_assert_int_eq(RUN(&answer, &problem, "freivalds", "a.npy", "a.npy", "c.npy", SEED, "20"),
                     OPERATION_OK);
    ck_assert_int_eq(answer.verdict, VERDICT_REJECT);

    put_matrix("c.npy", 2, 2, values);
    put_matrix("b.npy", 3, 2, values);
    ck_assert_int_eq(RUN(&answer, &problem, "freivalds", "a.npy", "b.npy", "c.npy", SEED, "20"),
                     OPERATION_FAILED);
    ck_assert_int_eq(answer.verdict, VERDICT_NONE);
    put_golden("b.npy", "int64-4.npy");
    ck_assert_int_eq(RUN(&answer, &problem, "freivalds", "a.npy", "b.npy", "c.npy", SEED, "20"),
                     OPERATION_FAILED);
    ck_assert_int_eq(RUN(&answer, &problem, "freivalds", "a.npy", "a.npy", "none.npy", SEED, "20"),
                     OPERATION_FAILED);
    ck_assert_int_eq(answer.verdict, VERDICT_NONE);
    ck_assert_int_eq(RUN(&answer, &problem, "freivalds", "a.npy", "a.npy", "c.npy", "drawn", "20"),
                     OPERATION_FAILED);
    ck_assert_ptr_nonnull(strstr(problem.text, "has not been drawn"));
    drop_folder();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensor");
    TCase *tcase = tcase_create("tensor");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, operations_are_read_as_they_are_written);
    tcase_add_test(tcase, a_product_is_one_however_its_factors_are_written);
    tcase_add_test(tcase, factors_are_rounded_only_where_the_job_says_so);
    tcase_add_test(tcase, what_is_no_operation_is_refused_in_words);
    tcase_add_loop_test(tcase, products_are_those_of_the_definition, 0, 2);
    tcase_add_loop_test(tcase, nan_and_infinities_travel, 0, 2);
    tcase_add_test(tcase, one_of_two_engines_computes);
    tcase_add_test(tcase, an_operation_goes_from_files_to_a_file);
    tcase_add_test(tcase, operands_that_do_not_fit_are_refused_and_nothing_is_made);
    tcase_add_test(tcase, a_check_prints_its_verdict_and_knows_its_memory);
    tcase_add_test(tcase, what_is_given_is_read_and_counts_though_it_is_not_in_the_folder);
    tcase_add_test(
        tcase, a_claim_that_is_no_matrix_of_the_shape_is_rejected_and_wrong_factors_blame_nobody);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
