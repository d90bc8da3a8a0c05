#include "provider/onnx/onnx_trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE_SMALL = 256, SIDE_LARGE = 2048, RUNS = 4, PLACES = 1009, STRIDE = 7919 };
/* A device that is faster than this is measured with the large side, too. */
#define SHORT_S 0.01

/* The shape float32[side, side] of an input or output named NAME. The bytes after 0x80 are filled
 * in. */
#define PORT(FIELD, NAME)                                                                          \
    FIELD, 0x15, 0x0A, 1, NAME, 0x12, 0x10, 0x0A, 0x0E, 0x08, 0x01, 0x12, 0x0A, 0x0A, 0x03, 0x08,  \
        0x80, 0, 0x0A, 0x03, 0x08, 0x80, 0

/* onnx.proto, IR version 8, opset 13: m = MatMul(x, x), y = Sigmoid(m). */
static const uint8_t model_bytes[] = {
    0x08,
    0x08,
    0x3A,
    0x55, /* ir_version, graph */
    0x0A,
    0x11,
    0x0A,
    1,
    'x',
    0x0A,
    1,
    'x',
    0x12,
    1,
    'm',
    0x22,
    6, /* node */
    'M',
    'a',
    't',
    'M',
    'u',
    'l', /* its operator */
    0x0A,
    0x0F,
    0x0A,
    1,
    'm',
    0x12,
    1,
    'y',
    0x22,
    7, /* node */
    'S',
    'i',
    'g',
    'm',
    'o',
    'i',
    'd', /* its operator */
    0x12,
    1,
    'g', /* name of the graph */
    PORT(0x5A, 'x'),
    PORT(0x62, 'y'),
    0x42,
    0x02,
    0x10,
    0x0D, /* ports, opset */
};

static float value_at(size_t index)
{
    return (float)((int)(index % 7) - 3) / 32 + (float)((int)(index % 11) - 5) / 64;
}

/* One trial is of one size. */
struct trial {
    const struct onnx_engine *engine;
    size_t side;
    float *x;
    double fastest_s;
};

static double wanted_at(const struct trial *trial, size_t place)
{
    const size_t row = place / trial->side;
    const size_t column = place % trial->side;
    double sum = 0;
    for (size_t k = 0; k < trial->side; k++) {
        sum += (double)trial->x[row * trial->side + k] * (double)trial->x[k * trial->side + column];
    }
    return 1 / (1 + exp(-sum));
}

static bool is_right(const struct trial *trial, const struct onnx_array *output,
                     struct problem *ret_problem)
{
    const char *name = trial->engine->name;
    const size_t elements = trial->side * trial->side;
    if (output->type != ONNX_FLOAT || output->size != sizeof(float) * elements) {
        problem_set(ret_problem, "%s returns another array than float32[%zu, %zu]", name,
                    trial->side, trial->side);
        return false;
    }
    const float *values = output->bytes;
    for (size_t i = 0; i < PLACES; i++) {
        const size_t place = i * STRIDE % elements;
        const double wanted = wanted_at(trial, place);
        if (!(fabs((double)values[place] - wanted) <= ONNX_TRIAL_TOLERANCE)) {
            problem_set(ret_problem, "%s computes %.6f at place %zu, and %.6f is right", name,
                        (double)values[place], place, wanted);
            return false;
        }
    }
    return true;
}

static double now_s(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* this clock always is there */
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool run_all(struct trial *trial, void *session, struct problem *ret_problem)
{
    const struct onnx_engine *engine = trial->engine;
    const int64_t dims[2] = {(int64_t)trial->side, (int64_t)trial->side};
    struct onnx_array input;
    if (!onnx_array_describe(ONNX_FLOAT, 2, dims, &input, ret_problem)) {
        return false;
    }
    input.bytes = trial->x;
    for (int i = 0; i < RUNS; i++) {
        struct onnx_array output = {.type = ONNX_UNDEFINED};
        const double begun_s = now_s();
        if (engine->run(session, &input, &output, ret_problem) != ONNX_ENGINE_OK) {
            return false;
        }
        const double took_s = now_s() - begun_s;
        const bool good = is_right(trial, &output, ret_problem);
        onnx_array_release(&output);
        if (!good) {
            return false;
        }
        if (i > 0 && took_s < trial->fastest_s) { /* the first run compiles */
            trial->fastest_s = took_s;
        }
    }
    return true;
}

static bool run_trial(struct trial *trial, struct problem *ret_problem)
{
    uint8_t bytes[sizeof model_bytes];
    void *session = NULL;
    const struct onnx_engine_model model = {
        .bytes = bytes, .size = sizeof bytes, .threads = 1, .is_for_provider = true};
    const struct onnx_engine *engine = trial->engine;
    const size_t elements = trial->side * trial->side;
    trial->x = malloc(sizeof *trial->x * elements);
    if (trial->x == NULL) {
        problem_set(ret_problem, "there is not enough memory");
        return false;
    }
    for (size_t i = 0; i < elements; i++) {
        trial->x[i] = value_at(i);
    }
    memcpy(bytes, model_bytes, sizeof bytes);
    for (size_t i = 0; i + 1 < sizeof bytes; i++) {
        bytes[i + 1] = bytes[i] == 0x80 ? (uint8_t)(trial->side >> 7) : bytes[i + 1];
    }
    const bool good =
        engine->open(engine->context, &model, &session, ret_problem) == ONNX_ENGINE_OK &&
        run_all(trial, session, ret_problem);
    engine->close(&session);
    free(trial->x);
    return good;
}

bool onnx_trial_run(const struct onnx_engine *engine, int64_t *ret_mflops,
                    struct problem *ret_problem)
{
    struct trial trial = {.engine = engine, .side = SIDE_SMALL, .fastest_s = HUGE_VAL};
    bool good = run_trial(&trial, ret_problem);
    if (good && trial.fastest_s < SHORT_S) {
        trial = (struct trial){.engine = engine, .side = SIDE_LARGE, .fastest_s = HUGE_VAL};
        good = run_trial(&trial, ret_problem);
    }
    if (good) {
        const double side = (double)trial.side;
        const double mflops =
            2 * side * side * side / 1e6 / (trial.fastest_s > 1e-6 ? trial.fastest_s : 1e-6);
        *ret_mflops = mflops > 1 ? (int64_t)mflops : 1;
    }
    return good;
}
