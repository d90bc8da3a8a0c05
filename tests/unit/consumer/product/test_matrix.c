/* Matrices in files, blocks of them, and the check of a product. */
#include "consumer/product/matrix.h"
#include "consumer/product/product_check.h"

#include "base/random.h"
#include "runtime/process.h"

#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static struct problem problem;

static void set_up(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/bourse-matrix-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert(process_start(&problem));
}

static void tear_down(void)
{
    static const char *const names[] = {"a.npy",     "b.npy",    "c.npy",
                                        "short.npy", "half.npy", "link.npy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)unlink(names[i]);
    }
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else was left behind */
}

static struct random dice;

/* A matrix of numbers in -1 .. 1 as a file, and in memory. */
static float *make(const char *path, uint64_t rows, uint64_t columns)
{
    float *elements = malloc((size_t)(rows * columns) * sizeof *elements);
    ck_assert_ptr_nonnull(elements);
    for (uint64_t i = 0; i < rows * columns; i++) {
        elements[i] = (float)random_below(&dice, 1 << 20) / (1 << 19) - 1.0F;
    }
    struct matrix_draft *draft = matrix_draft_create(path, rows, columns, &problem);
    ck_assert_msg(draft != NULL, "%s", problem.text);
    const struct matrix_block all = {.rows = rows, .columns = columns};
    ck_assert(matrix_draft_write(draft, &all, elements, &problem));
    ck_assert(matrix_draft_keep(draft, &problem));
    matrix_draft_destroy(&draft);
    return elements;
}

static void put(const char *path, uint64_t rows, uint64_t columns, const float *elements)
{
    struct matrix_draft *draft = matrix_draft_create(path, rows, columns, &problem);
    const struct matrix_block all = {.rows = rows, .columns = columns};
    ck_assert_ptr_nonnull(draft);
    ck_assert(matrix_draft_write(draft, &all, elements, &problem) &&
              matrix_draft_keep(draft, &problem));
    matrix_draft_destroy(&draft);
}

START_TEST(rows_may_be_written_last_first)
{
    enum { ROWS = 2000, COLUMNS = 1024 };
    float *elements = make("a.npy", ROWS, COLUMNS);
    struct matrix matrix;
    struct matrix_draft *draft = matrix_draft_create("c.npy", ROWS, COLUMNS, &problem);
    ck_assert_ptr_nonnull(draft);
    for (uint64_t row = ROWS; row > 0; row -= 100) {
        const struct matrix_block block = {.row = row - 100, .rows = 100, .columns = COLUMNS};
        ck_assert(matrix_draft_write(draft, &block, elements + (row - 100) * COLUMNS, &problem));
    }
    ck_assert(matrix_draft_keep(draft, &problem));
    matrix_draft_destroy(&draft);
    ck_assert(matrix_open("c.npy", &matrix, &problem));
    const struct matrix_block all = {.rows = ROWS, .columns = COLUMNS};
    float *found = malloc(ROWS * COLUMNS * sizeof *found);
    ck_assert_ptr_nonnull(found);
    ck_assert(matrix_read(&matrix, &all, found, &problem));
    ck_assert_mem_eq(found, elements, ROWS * COLUMNS * sizeof *found);
    matrix_close(&matrix);
    free(found);
    free(elements);
}
END_TEST

START_TEST(a_block_is_the_part_of_the_file_that_it_names)
{
    float *elements = make("a.npy", 7, 11);
    struct matrix matrix;
    ck_assert_msg(matrix_open("a.npy", &matrix, &problem), "%s", problem.text);
    ck_assert_uint_eq(matrix.rows, 7);
    ck_assert_uint_eq(matrix.columns, 11);
    const struct matrix_block block = {.row = 2, .column = 3, .rows = 4, .columns = 5};
    uint8_t bytes[NPY_MATRIX_BYTES + 20 * sizeof(float)];
    ck_assert_uint_eq(matrix_blob_bytes(&block), sizeof bytes);
    ck_assert(
        matrix_read_blob(&matrix, &block, 0, (size_t)matrix_blob_bytes(&block), bytes, &problem));
    uint64_t begin = 0;
    ck_assert_msg(matrix_blob_begin(bytes, sizeof bytes, sizeof bytes, &block, &begin, &problem),
                  "%s", problem.text);
    ck_assert_uint_eq(begin, NPY_MATRIX_BYTES);
    for (uint64_t i = 0; i < 4; i++) {
        ck_assert_mem_eq(bytes + begin + i * 5 * sizeof(float), elements + (i + 2) * 11 + 3,
                         5 * sizeof(float));
    }
    /* Pieces of any size give the same, where the header ends and where rows do. */
    for (size_t piece = 1; piece <= sizeof bytes; piece += 6) {
        uint8_t again[sizeof bytes];
        for (size_t at = 0; at < sizeof bytes; at += piece) {
            size_t length = piece < sizeof bytes - at ? piece : sizeof bytes - at;
            ck_assert(matrix_read_blob(&matrix, &block, at, length, again + at, &problem));
        }
        ck_assert_mem_eq(again, bytes, sizeof bytes);
    }
    const struct matrix_block other = {.rows = 5, .columns = 4};
    ck_assert(!matrix_blob_begin(bytes, sizeof bytes, sizeof bytes, &other, &begin, &problem));
    ck_assert_msg(strstr(problem.text, "(4, 5)") != NULL, "%s", problem.text);
    ck_assert(
        !matrix_blob_begin(bytes, sizeof bytes - 1, sizeof bytes - 1, &block, &begin, &problem));
    ck_assert(!matrix_blob_begin(bytes, sizeof bytes, sizeof bytes - 1, &block, &begin, &problem));
    ck_assert(!matrix_blob_begin(bytes, sizeof bytes - 1, sizeof bytes, &block, &begin, &problem));
    ck_assert_msg(strstr(problem.text, "promised") != NULL, "%s", problem.text);
    matrix_close(&matrix);
    free(elements);
}
END_TEST

START_TEST(what_is_no_matrix_is_refused_with_its_name)
{
    struct matrix matrix;
    free(make("a.npy", 3, 3));
    ck_assert_int_eq(symlink("a.npy", "link.npy"), 0);
    ck_assert(!matrix_open("link.npy", &matrix, &problem));
    ck_assert(!matrix_open("none.npy", &matrix, &problem));
    ck_assert(!matrix_open("/tmp", &matrix, &problem));
    ck_assert_int_eq(truncate("a.npy", NPY_MATRIX_BYTES + 9 * sizeof(float) - 1), 0);
    ck_assert(!matrix_open("a.npy", &matrix, &problem));
    ck_assert_msg(strncmp(problem.text, "a.npy: ", 7) == 0, "%s", problem.text);
}
END_TEST

START_TEST(a_file_that_becomes_shorter_is_noticed)
{
    struct matrix matrix;
    float elements[9];
    free(make("a.npy", 3, 3));
    ck_assert(matrix_open("a.npy", &matrix, &problem));
    ck_assert_int_eq(truncate("a.npy", NPY_MATRIX_BYTES), 0);
    const struct matrix_block all = {.rows = 3, .columns = 3};
    ck_assert(!matrix_read(&matrix, &all, elements, &problem));
    ck_assert_msg(strstr(problem.text, "shorter") != NULL, "%s", problem.text);
    matrix_close(&matrix);
}
END_TEST

/* Blocks side by side and one below the other, in pieces that end anywhere. */
START_TEST(a_block_may_come_in_pieces_of_any_size)
{
    enum { ROWS = 5, COLUMNS = 7, BYTES = ROWS * COLUMNS * sizeof(float) };
    static const struct matrix_block blocks[] = {
        {.rows = 3, .columns = 4},
        {.column = 4, .rows = 3, .columns = 3},
        {.row = 3, .rows = 2, .columns = 7},
    };
    const struct matrix_block all = {.rows = ROWS, .columns = COLUMNS};
    float *elements = make("a.npy", ROWS, COLUMNS);
    struct matrix from;
    ck_assert(matrix_open("a.npy", &from, &problem));
    for (size_t piece = 1; piece <= BYTES; piece += 5) {
        struct matrix_draft *draft = matrix_draft_create("c.npy", ROWS, COLUMNS, &problem);
        ck_assert_ptr_nonnull(draft);
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
            float block[ROWS * COLUMNS];
            size_t size = (size_t)(blocks[i].rows * blocks[i].columns) * sizeof(float);
            ck_assert(matrix_read(&from, &blocks[i], block, &problem));
            for (size_t at = 0; at < size; at += piece) {
                size_t length = piece < size - at ? piece : size - at;
                ck_assert(matrix_draft_write_bytes(draft, &blocks[i], at,
                                                   (const uint8_t *)block + at, length, &problem));
            }
        }
        float found[ROWS * COLUMNS];
        ck_assert(matrix_read(matrix_draft_matrix(draft), &all, found, &problem));
        ck_assert_mem_eq(found, elements, BYTES);
        matrix_draft_destroy(&draft);
    }
    matrix_close(&from);
    free(elements);
}
END_TEST

START_TEST(a_draft_has_its_name_only_when_it_is_kept)
{
    struct stat status;
    struct matrix matrix;
    const float elements[] = {1, 2, 3, 4, 5, 6};
    const struct matrix_block left = {.rows = 2, .columns = 1};
    const struct matrix_block right = {.column = 1, .rows = 2, .columns = 2};
    struct matrix_draft *draft = matrix_draft_create("c.npy", 2, 3, &problem);
    ck_assert(matrix_draft_write(draft, &left, elements, &problem));
    ck_assert_int_ne(stat("c.npy", &status), 0);
    matrix_draft_destroy(&draft);
    ck_assert_int_ne(stat("c.npy", &status), 0); /* tear_down sees that nothing else is there */

    draft = matrix_draft_create("c.npy", 2, 3, &problem);
    ck_assert(matrix_draft_write(draft, &left, elements, &problem));
    ck_assert(matrix_draft_write(draft, &right, elements + 2, &problem));
    ck_assert(matrix_draft_keep(draft, &problem));
    matrix_draft_destroy(&draft);
    ck_assert(matrix_open("c.npy", &matrix, &problem));
    float found[6];
    const struct matrix_block all = {.rows = 2, .columns = 3};
    ck_assert(matrix_read(&matrix, &all, found, &problem));
    const float expected[] = {1, 3, 4, 2, 5, 6};
    ck_assert_mem_eq(found, expected, sizeof expected);
    matrix_close(&matrix);
    ck_assert_ptr_null(matrix_draft_create("no/such/folder/c.npy", 2, 3, &problem));
    ck_assert_ptr_null(matrix_draft_create("/tmp", 2, 3, &problem));
    ck_assert_ptr_null(matrix_draft_create("c.npy", UINT64_C(1) << 40, UINT64_C(1) << 18,
                                           &problem)); /* 2^60 bytes */
}
END_TEST

/* ---------------------------------------------------------------- the check */

enum { M = 60, K = 70, N = 50, LONG = 3000, LONG_SIDE = 64 };
static float *a, *b, c[M * N];
static const struct product_check_grid grid = {3, 2}; /* tiles of 20 x 25 */

/* Multiplies as an honest float32 program does. */
static void multiply(void)
{
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++) {
                sum += a[i * K + k] * b[k * N + j];
            }
            c[i * N + j] = sum;
        }
    }
}

static struct product_check judged(void)
{
    struct matrix matrices[3];
    struct product_check verdict;
    put("a.npy", M, K, a);
    put("b.npy", K, N, b);
    put("c.npy", M, N, c);
    ck_assert(matrix_open("a.npy", &matrices[0], &problem));
    ck_assert(matrix_open("b.npy", &matrices[1], &problem));
    ck_assert(matrix_open("c.npy", &matrices[2], &problem));
    ck_assert_msg(
        product_check_run(&matrices[0], &matrices[1], &matrices[2], &grid, &verdict, &problem),
        "%s", problem.text);
    for (int i = 0; i < 3; i++) {
        matrix_close(&matrices[i]);
    }
    return verdict;
}

static void product_set_up(void)
{
    set_up();
    dice = random_seeded(20261122);
    a = make("a.npy", M, K);
    b = make("b.npy", K, N);
    multiply();
}

static void product_tear_down(void)
{
    free(a);
    free(b);
    tear_down();
}

START_TEST(an_honest_product_is_right)
{
    struct product_check verdict = judged();
    ck_assert(verdict.is_right);
    ck_assert_uint_eq(verdict.doubtful_rows, 0);
    ck_assert_uint_eq(verdict.unchecked_rows, 0);
    ck_assert_uint_eq(verdict.wrong_tiles, 0);
    ck_assert_uint_ge(verdict.rows_anew, 1);
    ck_assert_double_gt(verdict.max_rel_error, 0);
    ck_assert_double_lt(verdict.max_rel_error, 1e-5);
}
END_TEST

START_TEST(one_wrong_entry_is_found_and_its_tile_is_named)
{
    c[45 * N + 30] += 0.01F;
    struct product_check verdict = judged();
    ck_assert(!verdict.is_right);
    ck_assert_uint_eq(verdict.wrong_rows, 1);
    ck_assert_uint_eq(verdict.wrong_tiles, 1);
    ck_assert_uint_eq(verdict.tiles[0].row, 2);
    ck_assert_uint_eq(verdict.tiles[0].column, 1);
    ck_assert_uint_eq(verdict.tiles[0].at_row, 45);
    ck_assert_uint_eq(verdict.tiles[0].at_column, 30);
    ck_assert_double_eq_tol(verdict.tiles[0].expected, (double)c[45 * N + 30] - 0.01, 1e-4);
}
END_TEST

START_TEST(zeros_an_old_answer_and_half_precision_are_found)
{
    memset(c, 0, sizeof c);
    struct product_check verdict = judged();
    ck_assert_uint_eq(verdict.wrong_rows, M);
    ck_assert_uint_eq(verdict.wrong_tiles, 6);

    multiply();
    a[5 * K + 5] += 0.5F; /* the answer to another question */
    verdict = judged();
    ck_assert_uint_eq(verdict.wrong_rows, 1);
    ck_assert_uint_eq(verdict.tiles[0].at_row, 5);

    multiply();
    for (int i = 0; i < M * N; i++) { /* 11 bits, as a float16 has */
        uint32_t bits;
        memcpy(&bits, &c[i], sizeof bits);
        bits = (bits + 0x1000) & ~UINT32_C(0x1fff);
        memcpy(&c[i], &bits, sizeof bits);
    }
    ck_assert(!judged().is_right);
}
END_TEST

/* Each term is nearly taken back by another. */
static void cancel(void)
{
    for (int i = 0; i < M; i++) {
        for (int k = 0; k < K / 2; k++) {
            a[i * K + K / 2 + k] = -a[i * K + k];
        }
    }
    for (int k = 0; k < K / 2; k++) {
        for (int j = 0; j < N; j++) {
            b[(K / 2 + k) * N + j] = b[k * N + j] * (1 + 1e-6F);
        }
    }
    multiply();
}

/* Rows that cancel are further off than usual beside what is left of them, and still honest. */
START_TEST(cancellation_is_doubtful_and_not_wrong)
{
    cancel();
    struct product_check verdict = judged();
    ck_assert(verdict.is_right);
    ck_assert_uint_gt(verdict.doubtful_rows, 0);
}
END_TEST

/* Less than a whole row may be off by rounding, and more than an entry may: where all rows are
 * doubtful, the worst is looked at. */
START_TEST(a_lie_does_not_hide_among_doubtful_rows)
{
    cancel();
    double reach = 0;
    for (int k = 0; k < K; k++) {
        reach += fabs((double)a[33 * K + k] * (double)b[k * N + 20]);
    }
    c[33 * N + 20] += (float)(5 * K * 0x1p-24 * reach);
    for (int i = 0; i < 10; i++) {
        struct product_check verdict = judged();
        ck_assert(!verdict.is_right);
        ck_assert_uint_eq(verdict.tiles[0].at_row, 33);
        ck_assert_uint_eq(verdict.tiles[0].at_column, 20);
    }
}
END_TEST

START_TEST(nan_and_infinities_travel_and_are_looked_at)
{
    a[3 * K + 1] = NAN;
    a[7 * K + 2] = INFINITY;
    b[4 * N + 9] = -INFINITY;
    multiply();
    struct product_check verdict = judged();
    ck_assert(verdict.is_right);
    ck_assert_uint_eq(verdict.unchecked_rows, 0); /* both were computed anew */
    ck_assert_uint_eq(verdict.unchecked_columns, 1);

    c[3 * N + 4] = 0; /* should be NaN */
    verdict = judged();
    ck_assert(!verdict.is_right);
    ck_assert_uint_eq(verdict.tiles[0].at_row, 3);
    multiply();
    c[20 * N + 20] = NAN; /* should be a number */
    ck_assert(!judged().is_right);
    multiply();
    c[20 * N + 20] += 0.01F; /* beside a column that is left out */
    ck_assert(!judged().is_right);
}
END_TEST

/* Rounds to the nearest with 11 bits. */
static float as_tf32(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    bits = (bits + 0x1000U) & 0xffffe000U;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* C from `from` to `to`, of factors that are rounded first or not. */
static void multiply_long(const float *left, const float *right, size_t from, size_t to,
                          bool is_rounded, float *product)
{
    for (size_t i = 0; i < LONG_SIDE; i++) {
        for (size_t j = from; j < to; j++) {
            double sum = 0;
            for (size_t k = 0; k < LONG; k++) {
                const float x = left[i * LONG + k];
                const float y = right[k * LONG_SIDE + j];
                sum += is_rounded ? (double)as_tf32(x) * (double)as_tf32(y) : (double)x * (double)y;
            }
            product[i * LONG_SIDE + j] = (float)sum;
        }
    }
}

START_TEST(a_tile_of_rounded_factors_is_found_where_sums_are_long)
{
    static float product[LONG_SIDE * LONG_SIDE];
    const struct product_check_grid halves = {1, 2};
    struct matrix matrices[3];
    struct product_check verdict;
    float *left = make("a.npy", LONG_SIDE, LONG);
    float *right = make("b.npy", LONG, LONG_SIDE);
    for (int is_rounded = 0; is_rounded < 2; is_rounded++) {
        multiply_long(left, right, 0, LONG_SIDE / 2, false, product);
        multiply_long(left, right, LONG_SIDE / 2, LONG_SIDE, is_rounded != 0, product);
        put("c.npy", LONG_SIDE, LONG_SIDE, product);
        ck_assert(matrix_open("a.npy", &matrices[0], &problem));
        ck_assert(matrix_open("b.npy", &matrices[1], &problem));
        ck_assert(matrix_open("c.npy", &matrices[2], &problem));
        ck_assert_msg(product_check_run(&matrices[0], &matrices[1], &matrices[2], &halves, &verdict,
                                        &problem),
                      "%s", problem.text);
        for (int i = 0; i < 3; i++) {
            matrix_close(&matrices[i]);
        }
        ck_assert_uint_eq(verdict.wrong_rows, 0); /* by its size the error could be honest */
        ck_assert_uint_eq(verdict.reduced_tiles, (unsigned)is_rounded);
        ck_assert(verdict.is_right == (is_rounded == 0));
    }
    ck_assert_uint_eq(verdict.wrong_tiles, 1);
    ck_assert_uint_eq(verdict.tiles[0].column, 1);
    ck_assert_uint_ge(verdict.tiles[0].at_column, LONG_SIDE / 2);
    free(left);
    free(right);
}
END_TEST

START_TEST(sums_beyond_the_range_of_float32_are_honest_infinities)
{
    for (int k = 0; k < K; k++) {
        a[11 * K + k] = 1e38F;
        b[k * N + 13] = 10.0F;
    }
    multiply();
    ck_assert(isinf(c[11 * N + 13]));
    ck_assert(judged().is_right);
    c[12 * N + 13] = INFINITY; /* nothing there is that large */
    ck_assert(!judged().is_right);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("matrix");
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, set_up, tear_down);
    tcase_add_test(files, a_block_is_the_part_of_the_file_that_it_names);
    tcase_add_test(files, rows_may_be_written_last_first);
    tcase_add_test(files, what_is_no_matrix_is_refused_with_its_name);
    tcase_add_test(files, a_file_that_becomes_shorter_is_noticed);
    tcase_add_test(files, a_block_may_come_in_pieces_of_any_size);
    tcase_add_test(files, a_draft_has_its_name_only_when_it_is_kept);
    suite_add_tcase(suite, files);
    TCase *products = tcase_create("products");
    tcase_add_checked_fixture(products, product_set_up, product_tear_down);
    tcase_add_test(products, an_honest_product_is_right);
    tcase_add_test(products, one_wrong_entry_is_found_and_its_tile_is_named);
    tcase_add_test(products, zeros_an_old_answer_and_half_precision_are_found);
    tcase_add_test(products, cancellation_is_doubtful_and_not_wrong);
    tcase_add_test(products, a_lie_does_not_hide_among_doubtful_rows);
    tcase_add_test(products, nan_and_infinities_travel_and_are_looked_at);
    tcase_add_test(products, sums_beyond_the_range_of_float32_are_honest_infinities);
    tcase_add_test(products, a_tile_of_rounded_factors_is_found_where_sums_are_long);
    suite_add_tcase(suite, products);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
