#include "provider/plugin/plugin_product.h"

#include "provider/tensor/gemm.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIAL_SIDE = 64 };

static bool write_file(const char *name, const void *bytes, size_t size, struct problem *problem)
{
    const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    size_t written = 0;
    ssize_t step = file < 0 ? -1 : 1;
    while (step > 0 && written < size) {
        step = write(file, (const char *)bytes + written, size - written);
        written += step > 0 ? (size_t)step : 0;
    }
    if (written < size) {
        problem_set(problem, "%s: %s", name, strerror(errno));
    }
    if (file >= 0) {
        (void)close(file);
    }
    return written == size;
}

/* Reads a file of exactly this size. The plug-in made it, so it may be anything. */
static bool read_file(const char *name, void *bytes, size_t size, struct problem *problem)
{
    struct stat status;
    const int file = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool fits = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                      (size_t)status.st_size == size;
    size_t length = 0;
    ssize_t step = 1;
    while (fits && step > 0 && length < size) {
        step = read(file, (char *)bytes + length, size - length);
        length += step > 0 ? (size_t)step : 0;
    }
    if (file >= 0) {
        (void)close(file);
    }
    if (length < size) {
        problem_set(problem,
                    "the plug-in says that it has multiplied, and %s is no file of %zu bytes", name,
                    size);
    }
    return length == size;
}

enum operation_status plugin_product_multiply(void *context, const struct gemm *gemm,
                                              const struct operation_places *places,
                                              struct problem *ret_problem)
{
    static const enum operation_status statuses[] = {[SESSION_DONE] = OPERATION_OK,
                                                     [SESSION_FAILED] = OPERATION_FAILED,
                                                     [SESSION_BROKEN] = OPERATION_DEVICE};
    const struct plugin_product *product = context;
    const size_t bytes = (size_t)gemm->rows * gemm->columns * sizeof *gemm->c;
    (void)places;
    assert(gemm->rows == gemm->inner);
    assert(gemm->rows == gemm->columns);
    enum operation_status status = OPERATION_DISK;
    if (write_file(PLUGIN_LEFT, gemm->a, bytes, ret_problem) &&
        write_file(PLUGIN_RIGHT, gemm->b, bytes, ret_problem)) {
        status = statuses[session_multiply(product->session, (uint32_t)gemm->rows,
                                           product->limit_ms, ret_problem)];
    }
    if (status == OPERATION_OK && !read_file(PLUGIN_PRODUCT, gemm->c, bytes, ret_problem)) {
        status = OPERATION_FAILED;
    }
    (void)unlink(PLUGIN_LEFT);
    (void)unlink(PLUGIN_RIGHT);
    (void)unlink(PLUGIN_PRODUCT); /* an answer without a file must not find this one */
    return status;
}

bool plugin_product_try(struct session *session, struct problem *ret_problem)
{
    static float a[TRIAL_SIDE * TRIAL_SIDE];
    static float b[TRIAL_SIDE * TRIAL_SIDE];
    static float said[TRIAL_SIDE * TRIAL_SIDE];
    static float right[TRIAL_SIDE * TRIAL_SIDE];
    struct plugin_product product = {.session = session, .limit_ms = TALK_MULTIPLY_MS};
    struct gemm gemm = {.rows = TRIAL_SIDE,
                        .inner = TRIAL_SIDE,
                        .columns = TRIAL_SIDE,
                        .alpha = 1,
                        .a = a,
                        .b = b,
                        .c = said};
    for (int i = 0; i < TRIAL_SIDE * TRIAL_SIDE; i++) { /* every sum is a small whole number */
        a[i] = (float)(i % 31 - 15);
        b[i] = (float)(i % 13 - 6);
    }
    if (plugin_product_multiply(&product, &gemm, NULL, ret_problem) != OPERATION_OK) {
        return false;
    }
    gemm.c = right;
    gemm_reference(&gemm);
    for (int i = 0; i < TRIAL_SIDE * TRIAL_SIDE; i++) {
        if (said[i] != right[i]) {
            problem_set(ret_problem,
                        "the plug-in's product is wrong: row %d, column %d is %g, and should be %g",
                        i / TRIAL_SIDE, i % TRIAL_SIDE, (double)said[i], (double)right[i]);
            return false;
        }
    }
    return true;
}
