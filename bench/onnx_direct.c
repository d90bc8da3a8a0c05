/* bench/onnx_direct.c makes models for bench/onnx.sh, and runs them by ONNX Runtime without a
 * market.
 *
 *     onnx_direct make MODEL FOLDER IMAGES SEED     writes FOLDER/model.onnx of a known network, or
 *                                                   of the mean of each colour (tiny), weights.bin
 *                                                   drawn from the seed, and images.npy
 *     onnx_direct run LIBRARY FOLDER BATCH RUNS     opens the model with one thread and runs it on
 *                                                   the first BATCH images, RUNS times
 *
 * `run` prints one JSON value. `open_ms` is from loading the library to the open model, `ms` the
 * mean of the runs, and `whole_ms` everything. Images are in memory, and outputs are dropped. */
#include "base/cleanup.h"
#include "base/random.h"
#include "formats/npy.h"
#include "formats/onnx/onnx.h"
#include "provider/onnx/onnx_engines.h"
#include "runtime/clock.h"
#include "runtime/files.h"
#include "tests/support/onnx_models.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    PATH_SIZE = 512,
    RUNS_MOST = 10000,
    IMAGES_MOST = 4096,
    IMAGE_NUMBERS = 3 * 224 * 224,
    FILE_MOST = 512 << 20,
    FAN_LEAST = 1,
};

static int fail(const char *what)
{
    (void)fprintf(stderr, "onnx_direct: %s\n", what);
    return 1;
}

/* ---------------------------------------------------------------- make */

/* Returns a number from -1 to 1. */
static float draw(struct random *random)
{
    return (float)((double)(random_u64(random) >> 11) / (double)(UINT64_C(1) << 52) - 1);
}

/* Draws weights so that values neither grow nor vanish from layer to layer: variances are near one,
 * and products have the size of their inputs. */
static void fill(struct random *random, const struct onnx_tensor *tensor, float *numbers)
{
    const uint8_t *end = tensor->name.at + tensor->name.size;
    const bool is_variance = tensor->name.size >= 4 && memcmp(end - 4, ".var", 4) == 0;
    int64_t fan = FAN_LEAST;
    for (uint32_t i = 1; i < tensor->rank; i++) {
        fan *= tensor->dims[i];
    }
    const float size = sqrtf(3.0F / (float)fan);
    for (int64_t i = 0; i < tensor->elements; i++) {
        numbers[i] = is_variance ? 1 + draw(random) / 4 : size * draw(random);
    }
}

static bool write_weights(const char *path, const struct onnx_model *model, struct random *random)
{
    FILE *file = fopen(path, "we");
    bool good = file != NULL;
    for (uint32_t i = 0; good && i < model->initializer_count; i++) {
        const struct onnx_tensor *tensor = &model->initializers[i];
        if (!tensor->is_external) {
            continue;
        }
        float *numbers = malloc((size_t)tensor->bytes + 1);
        good = numbers != NULL && tensor->type == ONNX_FLOAT &&
               fseek(file, (long)tensor->offset, SEEK_SET) == 0;
        if (good) {
            fill(random, tensor, numbers);
            good = fwrite(numbers, 1, (size_t)tensor->bytes, file) == (size_t)tensor->bytes;
        }
        free(numbers);
    }
    return file != NULL && fclose(file) == 0 && good;
}

static bool write_images(const char *path, uint32_t images, struct random *random)
{
    static float image[IMAGE_NUMBERS];
    char head[128];
    FILE *file = fopen(path, "we");
    const int length = snprintf(head + 10, sizeof head - 10,
                                "{'descr': '<f4', 'fortran_order': False, 'shape': (%u, 3, 224, "
                                "224), }",
                                images);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10); /* 118 bytes of header follow */
    memset(head + 10 + length, ' ', sizeof head - 10 - (size_t)length);
    head[sizeof head - 1] = '\n';
    bool good = file != NULL && fwrite(head, sizeof head, 1, file) == 1;
    for (uint32_t i = 0; good && i < images; i++) {
        for (size_t k = 0; k < IMAGE_NUMBERS; k++) {
            image[k] = draw(random);
        }
        good = fwrite(image, sizeof image, 1, file) == 1;
    }
    return file != NULL && fclose(file) == 0 && good;
}

/* Writes a model that computes next to nothing, so that its subtasks show what a subtask costs. */
static struct onnx_bytes write_tiny(void)
{
    struct onnx_writer writer = {.opset = 13};
    onnx_write_input(&writer, "data", WRITER_FLOAT, "batch,3,224,224");
    onnx_write_node(&writer, "GlobalAveragePool", "data", "means");
    onnx_write_output(&writer, "means", WRITER_FLOAT, "batch,3,1,1");
    return onnx_write_end(&writer);
}

static int make(const char *name, const char *folder, uint32_t images, uint64_t seed)
{
    char path[PATH_SIZE];
    struct random random = random_seeded(seed);
    struct problem problem = {""};
    size_t index = 0;
    const bool is_tiny = strcmp(name, "tiny") == 0;
    while (index < ONNX_MODELS && strcmp(onnx_model_names[index], name) != 0) {
        index++;
    }
    if ((index == ONNX_MODELS && !is_tiny) || images == 0 || images > IMAGES_MOST) {
        return fail("models are resnet50, mobilenet and tiny");
    }
    struct onnx_bytes bytes = is_tiny ? write_tiny() : onnx_model_write(index);
    struct onnx_model *model = NULL;
    (void)snprintf(path, sizeof path, "%s/model.onnx", folder);
    bool good = onnx_read(bytes.at, bytes.size, &model, &problem) == ONNX_OK &&
                file_write(path, bytes.at, bytes.size, 0644, &problem);
    (void)snprintf(path, sizeof path, "%s/weights.bin", folder);
    good = good && write_weights(path, model, &random);
    (void)snprintf(path, sizeof path, "%s/images.npy", folder);
    good = good && write_images(path, images, &random);
    onnx_destroy(&model);
    onnx_bytes_fini(&bytes);
    return good ? 0 : fail(problem.text[0] != '\0' ? problem.text : "a file cannot be written");
}

/* ---------------------------------------------------------------- run */

static double ms_since(int64_t start_ns)
{
    return (double)(clock_monotonic_ns() - start_ns) / 1e6;
}

struct running {
    struct onnx_engine engine;
    void *session;
    struct onnx_array input;
};

static bool open_all(struct running *running, const char *library, const char *folder,
                     uint32_t batch, struct problem *problem)
{
    static const char *const files[] = {"model.onnx", "images.npy"};
    uint8_t *bytes[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    const int64_t dims[] = {batch, 3, 224, 224};
    char path[PATH_SIZE];
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        if (!file_read(path, FILE_MOST, &bytes[i], &sizes[i], problem)) {
            return false;
        }
    }
    const struct onnx_engine_model model = {
        .bytes = bytes[0], .size = sizes[0], .folder = folder, .threads = 1};
    if (!onnx_array_describe(ONNX_FLOAT, 4, dims, &running->input, problem) ||
        running->input.size + 128 > sizes[1] ||
        !onnx_engines_open(library, NULL, &running->engine, problem)) {
        return false;
    }
    running->input.bytes = bytes[1] + 128; /* lives as long as the process */
    return running->engine.open(running->engine.context, &model, &running->session, problem) ==
           ONNX_ENGINE_OK;
}

static int run(const char *library, const char *folder, uint32_t batch, uint32_t runs)
{
    static struct running running;
    struct problem problem = {""};
    struct rusage usage;
    const int64_t start_ns = clock_monotonic_ns();
    if (!open_all(&running, library, folder, batch, &problem)) {
        return fail(problem.text[0] != '\0' ? problem.text : "there are too few images");
    }
    const double open_ms = ms_since(start_ns);
    for (uint32_t i = 0; i < runs; i++) {
        struct onnx_array output = {.bytes = NULL};
        if (running.engine.run(running.session, &running.input, &output, &problem) !=
            ONNX_ENGINE_OK) {
            return fail(problem.text);
        }
        onnx_array_release(&output);
    }
    const double whole_ms = ms_since(start_ns);
    (void)getrusage(RUSAGE_SELF, &usage);
    (void)printf("{\"engine\":\"%s\",\"open_ms\":%.1f,\"ms\":%.3f,\"whole_ms\":%.1f,"
                 "\"rss_kib\":%ld}\n",
                 running.engine.name, open_ms, (whole_ms - open_ms) / runs, whole_ms,
                 usage.ru_maxrss);
    running.engine.close(&running.session);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "make") == 0) {
        return make(argv[2], argv[3], (uint32_t)strtoul(argv[4], NULL, 10),
                    strtoull(argv[5], NULL, 10));
    }
    const uint32_t runs = argc == 6 ? (uint32_t)strtoul(argv[5], NULL, 10) : 0;
    if (runs > 0 && runs <= RUNS_MOST && strcmp(argv[1], "run") == 0) {
        return run(argv[2], argv[3], (uint32_t)strtoul(argv[4], NULL, 10), runs);
    }
    (void)fail("make MODEL FOLDER IMAGES SEED, or run LIBRARY FOLDER BATCH RUNS");
    return 2;
}
