/* ONNX's own test cases, which Debian's package libonnx-testdata has, run by our own operators.
 * Each case is a model with inputs and the outputs that it makes of them. A case is refused with
 * its reason, or its outputs are those that the case states. None may be wrong. */
#include "base/cleanup.h"
#include "provider/onnx/own/own_call.h"
#include "provider/onnx/own/own_engine.h"
#include "provider/onnx/own/own_weights.h"
#include "runtime/files.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CASES "/usr/share/libonnx-testdata/data"
enum {
    SKIPPED = 77,
    FILE_MOST = 64 << 20,
    PORTS_MOST = 64,
    PATH_SIZE = 2048,
    THREADS = 2,
    CASES_LEAST = 1000, /* models that the package has, at least */
    RIGHT_LEAST = 800,  /* of them; fewer means that operators were lost */
};
#define MEMORY_BYTES (UINT64_C(1) << 30)
/* A real number may be so far from the stated one: relative, and in itself. */
#define RELATIVE 1e-3
#define ABSOLUTE 1e-5

struct bytes {
    uint8_t *at;
    size_t size;
};

static void bytes_free(struct bytes *bytes)
{
    free(bytes->at);
}

static struct bytes read_path(const char *path)
{
    struct bytes bytes = {NULL, 0};
    struct problem problem;
    if (!file_read(path, FILE_MOST, &bytes.at, &bytes.size, &problem)) {
        bytes = (struct bytes){NULL, 0};
    }
    return bytes;
}

/* Counts of the whole walk. */
static struct {
    unsigned models, opened, right, wrong, unreadable, by_status[ONNX_ENGINE_STATUSES];
} counts;

/* The inputs or the outputs of a case, with the bytes that they lie in. */
struct values {
    struct bytes files[PORTS_MOST];
    struct own_tensor tensors[PORTS_MOST];
    struct onnx_array arrays[PORTS_MOST];
    size_t count;
};
static struct own_memory memory = {.limit = INT64_MAX};

static void values_free(struct values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        own_tensor_drop(&values->tensors[i]);
        bytes_free(&values->files[i]);
    }
}

/* NumPy has no bfloat16, so the package's tensors of that type say uint16. The model says which. */
static enum onnx_type type_of(enum onnx_type said, enum onnx_type wanted)
{
    return said == ONNX_UINT16 && wanted == ONNX_BFLOAT16 ? ONNX_BFLOAT16 : said;
}

/* Reads input_N.pb or output_N.pb into the next value. */
static bool read_value(const char *folder, const char *kind, size_t number, enum onnx_type type,
                       struct values *values)
{
    char path[PATH_SIZE];
    struct onnx_tensor head;
    struct bytes *file = &values->files[values->count];
    struct own_tensor *tensor = &values->tensors[values->count];
    (void)snprintf(path, sizeof path, "%s/test_data_set_0/%s_%zu.pb", folder, kind, number);
    *file = read_path(path);
    *tensor = (struct own_tensor){.type = ONNX_UNDEFINED};
    values->count++;
    if (file->at == NULL ||
        onnx_tensor_read((struct onnx_span){file->at, file->size}, &head, NULL) != ONNX_OK) {
        return false;
    }
    head.type = type_of(head.type, type);
    if (own_weights_load(&head, NULL, &memory, tensor, NULL) != ONNX_OK) {
        return false;
    }
    struct onnx_array *array = &values->arrays[values->count - 1];
    if (!onnx_array_describe(tensor->type, tensor->rank, tensor->dims, array, NULL)) {
        return false;
    }
    array->bytes = (void *)(uintptr_t)tensor->at; /* the engine only reads it */
    return true;
}

static bool read_values(const char *folder, const char *kind, struct onnx_engine_ports ports,
                        struct values *values)
{
    bool is_read = ports.count <= PORTS_MOST;
    for (size_t i = 0; is_read && i < ports.count; i++) {
        is_read = read_value(folder, kind, i, ports.items[i].type, values);
    }
    return is_read;
}

/* The package cuts the bits off that a bfloat16 lacks, where we round to the nearest. */
static bool is_close(enum onnx_type type, double found, double stated)
{
    const double relative = type == ONNX_BFLOAT16 ? 1.0 / 128 : RELATIVE;
    return (isnan(found) && isnan(stated)) || found == stated ||
           fabs(found - stated) <= ABSOLUTE + relative * fabs(stated);
}

static bool is_right(const struct onnx_array *found, const struct own_tensor *stated)
{
    struct own_tensor tensor = {.type = found->type, .at = found->bytes};
    bool right = found->type == stated->type && found->rank == stated->rank &&
                 found->elements == stated->elements &&
                 memcmp(found->dims, stated->dims, found->rank * sizeof *found->dims) == 0;
    for (int64_t i = 0; right && i < stated->elements; i++) {
        right = own_is_integer(stated->type)
                    ? own_integer_at(&tensor, i) == own_integer_at(stated, i)
                    : is_close(stated->type, own_real_at(&tensor, i), own_real_at(stated, i));
        if (!right) {
            (void)printf("  element %lld is %.9g, not %.9g\n", (long long)i,
                         own_real_at(&tensor, i), own_real_at(stated, i));
        }
    }
    return right;
}

static void note_refusal(const char *folder, enum onnx_engine_status status,
                         const struct problem *problem)
{
    counts.by_status[status]++;
    if (status != ONNX_ENGINE_UNSUPPORTED || getenv("ONNX_RUN_SHOWS") != NULL) {
        (void)printf("%s: refused: %s\n", folder, problem->text);
    }
}

/* Runs an open model on the inputs of the case, twice, and compares its outputs. */
static void run_case(const char *folder, const struct onnx_engine *engine, void *session)
{
    CLEANUP(values_free) struct values inputs = {.count = 0};
    CLEANUP(values_free) struct values stated = {.count = 0};
    struct problem problem = {""};
    struct onnx_array found[PORTS_MOST];
    const struct onnx_engine_ports outputs = engine->outputs(session);
    if (!read_values(folder, "input", engine->inputs(session), &inputs) ||
        !read_values(folder, "output", outputs, &stated)) {
        counts.unreadable++;
        return;
    }
    bool right = true;
    for (unsigned round = 0; right && round < 2; round++) {
        const enum onnx_engine_status status = engine->run(session, inputs.arrays, found, &problem);
        if (status != ONNX_ENGINE_OK) {
            note_refusal(folder, status, &problem);
            return;
        }
        for (size_t i = 0; i < outputs.count; i++) {
            const bool is_same = is_right(&found[i], &stated.tensors[i]);
            if (!is_same) {
                (void)printf("%s: output %zu is wrong\n", folder, i);
            }
            right = right && is_same;
            onnx_array_release(&found[i]);
        }
    }
    counts.right += right;
    counts.wrong += !right;
}

static void try_case(const char *folder)
{
    char path[PATH_SIZE];
    struct problem problem = {""};
    struct onnx_engine engine;
    void *session = NULL;
    (void)snprintf(path, sizeof path, "%s/model.onnx", folder);
    CLEANUP(bytes_free) struct bytes bytes = read_path(path);
    if (bytes.at == NULL) {
        return;
    }
    counts.models++;
    own_engine_make(&engine);
    const struct onnx_engine_model model = {.bytes = bytes.at,
                                            .size = bytes.size,
                                            .folder = folder,
                                            .threads = THREADS,
                                            .memory_bytes = MEMORY_BYTES};
    const enum onnx_engine_status status = engine.open(engine.context, &model, &session, &problem);
    if (status != ONNX_ENGINE_OK) {
        note_refusal(folder, status, &problem);
        return;
    }
    counts.opened++;
    run_case(folder, &engine, session);
    engine.close(&session);
}

static void try_group(const char *group)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, CASES "/%s", group);
    struct dirent **names = NULL;
    const int count = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.') {
            char folder[PATH_SIZE];
            (void)snprintf(folder, sizeof folder, CASES "/%.64s/%.255s", group, names[i]->d_name);
            try_case(folder);
        }
        free(names[i]);
    }
    free(names);
}

START_TEST(no_output_of_the_cases_is_wrong)
{
    static const char *const groups[] = {"node", "pytorch-converted", "pytorch-operator", "simple"};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        try_group(groups[i]);
    }
    (void)printf("cases %u, opened %u, right %u, wrong %u\n", counts.models, counts.opened,
                 counts.right, counts.wrong);
    (void)printf(
        "refused: model %u, unsupported %u, input %u, memory %u, failed %u; no tensors %u\n",
        counts.by_status[ONNX_ENGINE_MODEL], counts.by_status[ONNX_ENGINE_UNSUPPORTED],
        counts.by_status[ONNX_ENGINE_INPUT], counts.by_status[ONNX_ENGINE_MEMORY],
        counts.by_status[ONNX_ENGINE_FAILED], counts.unreadable);
    ck_assert_uint_eq(counts.wrong, 0);
    ck_assert_uint_ge(counts.models, CASES_LEAST);
    ck_assert_uint_ge(counts.right, RIGHT_LEAST);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {TEST(no_output_of_the_cases_is_wrong)};
    DIR *cases = opendir(CASES);
    if (cases == NULL) {
        (void)printf("skipped: %s is not there; Debian's package libonnx-testdata has it\n", CASES);
        return SKIPPED;
    }
    (void)closedir(cases);
    return suite_main("onnx_run", NULL, NULL, tests, 1);
}
