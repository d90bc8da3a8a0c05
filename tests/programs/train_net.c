/* The program train-net makes a small network with data, and trains it here by hand, in float64,
 * for tests of `bourse train`:
 *
 *     train-net make ROWS                  writes net.onnx, x.npy and y.npy
 *     train-net check LOSSES WEIGHTS ROWS BATCHES STEPS METHOD
 *                                          trains as many steps on the same data, and compares the
 *                                          losses and the weights, which may be 1e-5 away
 *
 * The network is x -> Gemm -> Tanh -> Gemm, and its loss the cross entropy. METHOD is sgd with rate
 * 0.1 and momentum 0.9, or adamw with rate 0.01 and usual figures. The exit status is 0, or 1 with
 * a line that says what differs. */
#include "formats/npy.h"
#include "formats/onnx/onnx_words.h"
#include "runtime/files.h"
#include "tests/support/onnx_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 4, HIDDEN = 6, CLASSES = 3, ROWS_MOST = 4096, FILE_MOST = 1 << 20 };
enum { W1 = 0, B1 = INPUTS * HIDDEN, W2 = B1 + HIDDEN, B2 = W2 + HIDDEN * CLASSES };
enum { WEIGHTS = B2 + CLASSES };

struct data {
    int rows;
    float x[ROWS_MOST][INPUTS];
    int64_t y[ROWS_MOST];
    float weights[WEIGHTS];
};
static struct data data;

static float drawn(uint32_t *state)
{
    *state = *state * 1664525U + 1013904223U;
    return (float)(*state >> 8) / (float)(1 << 23) - 1;
}

/* The class of a row is the largest of three sums of it. */
static void draw(int rows)
{
    uint32_t state = 7;
    data.rows = rows;
    for (int i = 0; i < rows; i++) {
        float best = -9;
        for (int k = 0; k < INPUTS; k++) {
            data.x[i][k] = drawn(&state);
        }
        for (int c = 0; c < CLASSES; c++) {
            const float sum = data.x[i][c] + 0.5F * data.x[i][(c + 1) % INPUTS];
            data.y[i] = sum > best ? c : data.y[i];
            best = sum > best ? sum : best;
        }
    }
    for (int i = 0; i < WEIGHTS; i++) {
        data.weights[i] = 0.5F * drawn(&state);
    }
}

/* ---------------------------------------------------------------- files */

static bool save(const char *path, const void *bytes, size_t size)
{
    struct problem problem;
    if (!file_write(path, bytes, size, 0644, &problem)) {
        (void)printf("%s\n", problem.text);
        return false;
    }
    return true;
}

static bool save_array(const char *path, char kind, uint32_t item_bytes, uint32_t rank,
                       uint64_t columns, const void *values)
{
    static uint8_t bytes[FILE_MOST];
    const struct npy npy = {.kind = kind,
                            .item_bytes = item_bytes,
                            .dimension_count = rank,
                            .shape = {(uint64_t)data.rows, columns}};
    const size_t head = npy_write(&npy, bytes);
    const size_t size = (size_t)data.rows * columns * item_bytes;
    memcpy(bytes + head, values, size);
    return save(path, bytes, head + size);
}

static bool make(void)
{
    struct onnx_writer writer = {.opset = 13};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "rows,4");
    onnx_write_floats(&writer, "w1", "4,6", data.weights + W1);
    onnx_write_floats(&writer, "b1", "6", data.weights + B1);
    onnx_write_floats(&writer, "w2", "6,3", data.weights + W2);
    onnx_write_floats(&writer, "b2", "3", data.weights + B2);
    onnx_write_node(&writer, "Gemm", "x w1 b1", "h");
    onnx_write_node(&writer, "Tanh", "h", "t");
    onnx_write_node(&writer, "Gemm", "t w2 b2", "z");
    onnx_write_output(&writer, "z", WRITER_FLOAT, "rows,3");
    struct onnx_bytes model = onnx_write_end(&writer);
    const bool good = save("net.onnx", model.at, model.size) &&
                      save_array("x.npy", 'f', 4, 2, INPUTS, data.x) &&
                      save_array("y.npy", 'i', 8, 1, 1, data.y);
    onnx_bytes_fini(&model);
    return good;
}

/* ---------------------------------------------------------------- training by hand */

/* Adds a row's gradient, and returns its loss. */
static double add_row(int row, const double *w, double *g)
{
    double t[HIDDEN];
    double z[CLASSES];
    double above = 0;
    const float *x = data.x[row];
    for (int h = 0; h < HIDDEN; h++) {
        double sum = w[B1 + h];
        for (int k = 0; k < INPUTS; k++) {
            sum += (double)x[k] * w[W1 + k * HIDDEN + h];
        }
        t[h] = tanh(sum);
    }
    for (int c = 0; c < CLASSES; c++) {
        z[c] = w[B2 + c];
        for (int h = 0; h < HIDDEN; h++) {
            z[c] += t[h] * w[W2 + h * CLASSES + c];
        }
        above += exp(z[c]);
    }
    double back[HIDDEN] = {0};
    for (int c = 0; c < CLASSES; c++) {
        const double d = exp(z[c]) / above - (data.y[row] == c);
        g[B2 + c] += d;
        for (int h = 0; h < HIDDEN; h++) {
            g[W2 + h * CLASSES + c] += d * t[h];
            back[h] += d * w[W2 + h * CLASSES + c];
        }
    }
    for (int h = 0; h < HIDDEN; h++) {
        const double d = back[h] * (1 - t[h] * t[h]);
        g[B1 + h] += d;
        for (int k = 0; k < INPUTS; k++) {
            g[W1 + k * HIDDEN + h] += d * (double)x[k];
        }
    }
    return log(above) - z[data.y[row]];
}

struct trained {
    double w[WEIGHTS], m[WEIGHTS], v[WEIGHTS];
};

/* Takes one step. Returns the mean loss of the batch, before the step. */
static double take_step(struct trained *trained, int64_t step, uint32_t batches, bool is_sgd)
{
    double g[WEIGHTS] = {0};
    double loss = 0;
    int64_t first = 0;
    int64_t count = 0;
    onnx_words_rows(data.rows, (uint32_t)(step % batches), batches, &first, &count);
    for (int64_t i = 0; i < count; i++) {
        loss += add_row((int)(first + i), trained->w, g);
    }
    for (int i = 0; i < WEIGHTS; i++) {
        const double slope = g[i] / (double)count;
        double *m = &trained->m[i];
        double *v = &trained->v[i];
        if (is_sgd) {
            *m = 0.9 * *m + slope;
            trained->w[i] -= 0.1 * *m;
            continue;
        }
        *m = 0.9 * *m + 0.1 * slope;
        *v = 0.999 * *v + 0.001 * slope * slope;
        const double along = *m / (1 - pow(0.9, (double)step + 1));
        const double width = sqrt(*v / (1 - pow(0.999, (double)step + 1)));
        trained->w[i] -= 0.01 * (0.01 * trained->w[i] + along / (width + 1e-8));
    }
    return loss / (double)count;
}

/* Reads float32[count]. */
static bool load(const char *path, uint64_t count, float *ret_values)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct npy npy;
    struct problem problem = {""};
    if (!file_read(path, FILE_MOST, &bytes, &size, &problem) ||
        !npy_read(bytes, size, size, &npy, &problem)) {
        (void)printf("%s: %s\n", path, problem.text);
        free(bytes);
        return false;
    }
    const bool fits =
        npy.kind == 'f' && npy.item_bytes == 4 && npy.dimension_count == 1 && npy.shape[0] == count;
    if (fits) {
        memcpy(ret_values, bytes + npy.data_offset, npy.data_bytes);
    } else {
        (void)printf("%s is not float32[%llu]\n", path, (unsigned long long)count);
    }
    free(bytes);
    return fits;
}

static bool is_close(const char *what, int64_t index, float found, double stated)
{
    const bool close = fabs((double)found - stated) <= 1e-5 * (fabs(stated) + 0.01);
    if (!close) {
        (void)printf("%s %lld is %.9g, not %.9g\n", what, (long long)index, (double)found, stated);
    }
    return close;
}

static bool check(char **words)
{
    static struct trained trained;
    static float losses[ROWS_MOST];
    float weights[WEIGHTS];
    const uint32_t batches = (uint32_t)strtoul(words[3], NULL, 10);
    const int64_t steps = strtoll(words[4], NULL, 10);
    if (!load(words[0], (uint64_t)steps, losses) || !load(words[1], WEIGHTS, weights)) {
        return false;
    }
    for (int i = 0; i < WEIGHTS; i++) {
        trained.w[i] = (double)data.weights[i];
    }
    bool good = true;
    for (int64_t step = 0; step < steps; step++) {
        const double loss = take_step(&trained, step, batches, strcmp(words[5], "sgd") == 0);
        good = is_close("loss", step, losses[step], loss) && good;
    }
    for (int i = 0; i < WEIGHTS; i++) {
        good = is_close("weight", i, weights[i], trained.w[i]) && good;
    }
    (void)printf("loss %.6f to %.6f\n", (double)losses[0], (double)losses[steps - 1]);
    if (steps > 1 && losses[steps - 1] >= losses[0]) {
        (void)printf("the loss does not fall\n");
        good = false;
    }
    return good;
}

int main(int argc, char **argv)
{
    const bool makes = argc == 3 && strcmp(argv[1], "make") == 0;
    const bool checks = argc == 8 && strcmp(argv[1], "check") == 0;
    const int rows = makes ? atoi(argv[2]) : checks ? atoi(argv[4]) : 0;
    if (rows < 1 || rows > ROWS_MOST) {
        (void)fprintf(stderr,
                      "usage: train-net make ROWS | check LOSSES WEIGHTS ROWS BATCHES STEPS "
                      "METHOD\n");
        return 2;
    }
    draw(rows);
    return (makes ? make() : check(argv + 2)) ? EXIT_SUCCESS : EXIT_FAILURE;
}
