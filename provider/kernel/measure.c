#include "provider/kernel/measure.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    ITEMS_PER_UNIT = 512, /* work-items for each compute unit */
    STEP = 32,            /* multiplications and additions of a work-item in each step */
    ITEM_BYTES = 16,      /* that a work-item copies */
    STEPS_FIRST = 256,    /* steps of the first round; later rounds have more */
    STEPS_MOST = 1 << 22, /* of one round */
    COPY_MOST = 64 << 20, /* bytes of the copied buffer */
    COPY_ROUNDS = 12,     /* the best round counts; other load slows the rest */
    ROUNDS_MOST = 40,     /* of the multiplications */
};
#define ROUND_NS INT64_C(25000000) /* a round is long enough to time */

static_assert(MEASURE_RATE_NS + MEASURE_COPY_NS +
                      TENSOR_COMPUTES * (MEASURE_PRODUCT_NS + MEASURE_HELD_NS) <
                  MEASURE_MOST_NS,
              "the phases of a device together leave time for what lies between them");

struct bench {
    struct engine *engine;
    const struct kernel_interface *interface;
    void *kernel;
    struct kernel_buffer buffers[2];
    size_t count; /* of the buffers */
    struct problem *problem;
};

int64_t measure_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct measure_phase measure_phase_begin(int64_t most_ns)
{
    return (struct measure_phase){.began_ns = measure_now_ns(), .most_ns = most_ns};
}

bool measure_phase_goes_on(const struct measure_phase *phase)
{
    return phase->expected_ns == 0 ||
           measure_now_ns() - phase->began_ns + phase->expected_ns <= phase->most_ns;
}

/* Makes a buffer, and sets the kernel's next parameter to it. */
static bool add_buffer(struct bench *bench, uint64_t size)
{
    struct kernel_buffer *buffer = &bench->buffers[bench->count];
    if (bench->interface->make(bench->engine, size, NULL, "a buffer to measure with", buffer,
                               bench->problem) != OPERATION_OK) {
        return false;
    }
    return bench->interface->set_buffer(bench->engine, bench->kernel, bench->count++, *buffer,
                                        "measuring", bench->problem) == OPERATION_OK;
}

/* Makes the kernel, and buffers of this size. */
static bool begin(struct bench *bench, const char *entry, size_t count, uint64_t size)
{
    static const char name[] = "the measuring program";
    const char *source = bench->interface->measure_source;
    void *program;
    if (engine_build(bench->engine, name, source, strlen(source), "", &program, bench->problem) !=
        OPERATION_OK) {
        return false;
    }
    if (bench->interface->find(bench->engine, program, name, entry, &bench->kernel,
                               bench->problem) != OPERATION_OK) {
        bench->kernel = NULL;
        return false;
    }
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        good = add_buffer(bench, size);
    }
    return good;
}

static void end(struct bench *bench)
{
    for (size_t i = 0; i < bench->count; i++) {
        bench->interface->drop_buffer(bench->engine, bench->buffers[i]);
    }
    if (bench->kernel != NULL) {
        bench->interface->drop_kernel(bench->engine, bench->kernel);
    }
}

static bool set(const struct bench *bench, size_t parameter, const void *value)
{
    return bench->interface->set(bench->engine, bench->kernel, parameter, value, sizeof(float),
                                 "measuring", bench->problem) == OPERATION_OK;
}

/* Runs the kernel once. Returns the time, or -1 with the problem. */
static int64_t run_once(const struct bench *bench, size_t items)
{
    const struct kernel_op op = {.dimensions = 1, .global = {items}};
    const int64_t before_ns = measure_now_ns();
    const bool good =
        bench->interface->run(bench->engine, bench->kernel, &op, bench->problem) == OPERATION_OK;
    const int64_t took_ns = measure_now_ns() - before_ns;
    return good ? took_ns : -1;
}

static bool measure_rate(struct bench *bench, int64_t *ret_mflops)
{
    const uint32_t units = bench->engine->device->compute_units;
    const size_t items = (size_t)(units > 0 ? units : 1) * ITEMS_PER_UNIT;
    const float a = 0.999F;
    const float b = 0.001F;
    int32_t steps = STEPS_FIRST;
    double best = 0;
    bool good = begin(bench, "bourse_rate", 1, items * sizeof(float)) && set(bench, 1, &a) &&
                set(bench, 2, &b) && set(bench, 3, &steps) &&
                run_once(bench, items) >= 0; /* the first run generates code */
    struct measure_phase phase = measure_phase_begin(MEASURE_RATE_NS);
    for (int round = 0; good && round < ROUNDS_MOST && measure_phase_goes_on(&phase); round++) {
        good = set(bench, 3, &steps);
        const int64_t took_ns = good ? run_once(bench, items) : -1;
        good = took_ns >= 0;
        const double operations = 2.0 * STEP * (double)steps * (double)items;
        const double rate = took_ns > 0 ? operations * 1e3 / (double)took_ns : 0;
        best = rate > best ? rate : best;
        phase.expected_ns = took_ns;
        if (took_ns < ROUND_NS && steps < STEPS_MOST) {
            steps *= 2;
            phase.expected_ns *= 2;
        }
    }
    end(bench);
    *ret_mflops = (int64_t)best;
    return good;
}

static bool measure_copy(struct bench *bench, uint64_t memory_bytes, int64_t *ret_bandwidth)
{
    uint64_t bytes = memory_bytes / 8 < COPY_MOST ? memory_bytes / 8 : COPY_MOST;
    const uint64_t most = bench->engine->device->buffer_bytes;
    bytes = most > 0 && most < bytes ? most : bytes;
    const size_t items = (size_t)bytes / ITEM_BYTES;
    double best = 0;
    if (items == 0) {
        problem_set(bench->problem, "no memory to measure with");
        return false;
    }
    bool good = begin(bench, "bourse_copy", 2, items * ITEM_BYTES) &&
                run_once(bench, items) >= 0; /* the first run generates code */
    struct measure_phase phase = measure_phase_begin(MEASURE_COPY_NS);
    for (int round = 0; good && round < COPY_ROUNDS && measure_phase_goes_on(&phase); round++) {
        const int64_t took_ns = run_once(bench, items);
        phase.expected_ns = took_ns;
        good = took_ns >= 0;
        const double rate = took_ns > 0 ? (double)(items * ITEM_BYTES) * 1e9 / (double)took_ns : 0;
        best = rate > best ? rate : best;
    }
    end(bench);
    *ret_bandwidth = (int64_t)best;
    return good;
}

bool measure_run(struct engine *engine, uint64_t memory_bytes, struct measure *ret_measure,
                 struct problem *ret_problem)
{
    struct bench rate = {
        .engine = engine, .interface = engine->device->interface, .problem = ret_problem};
    struct bench copy = {
        .engine = engine, .interface = engine->device->interface, .problem = ret_problem};
    return measure_rate(&rate, &ret_measure->mflops) &&
           measure_copy(&copy, memory_bytes, &ret_measure->bandwidth);
}
