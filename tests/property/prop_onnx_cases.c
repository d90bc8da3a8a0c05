/* The shapes of ONNX's own test cases, which Debian's package libonnx-testdata has: each case is a
 * model with inputs and the outputs that it makes of them. For every case that is read and inferred
 * fully, all outputs have the type and dims of the case's own tensors. None may be wrong. */
#include "base/cleanup.h"
#include "formats/onnx/onnx_infer.h"
#include "formats/onnx/onnx_rules.h"
#include "runtime/files.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CASES "/usr/share/libonnx-testdata/data"
enum {
    SKIPPED = 77,
    FILE_MOST = 64 << 20,
    TENSORS_MOST = 64,
    PATH_SIZE = 1024,
    UNKNOWN_MOST = 256,
    CASES_LEAST = 1000,   /* models that the package has, at least */
    INFERRED_LEAST = 810, /* of them; fewer means that rules were lost */
};

struct bytes {
    uint8_t *at;
    size_t size;
};

static void bytes_free(struct bytes *bytes)
{
    free(bytes->at);
}

/* Counts of the whole walk. */
static struct {
    unsigned models, read, inferred, right, wrong, old, by_status[ONNX_NO_MEMORY + 1];
    char unknown[UNKNOWN_MOST][ONNX_LABEL_SIZE];
    unsigned unknown_count;
} counts;

static struct bytes read_path(const char *path)
{
    struct bytes bytes = {NULL, 0};
    struct problem problem;
    if (!file_read(path, FILE_MOST, &bytes.at, &bytes.size, &problem)) {
        bytes = (struct bytes){NULL, 0};
    }
    return bytes;
}

static void note_unknown(const struct onnx_model *model)
{
    for (uint32_t i = 0; i < model->node_count; i++) {
        const struct onnx_node *node = &model->nodes[i];
        const bool is_own = node->domain.size == 0 || onnx_span_is(node->domain, "ai.onnx");
        char name[ONNX_LABEL_SIZE];
        unsigned k = 0;
        if (is_own && onnx_operator_is_known(node->operator)) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%.30s%s%.40s", onnx_label(node->domain).text,
                       is_own ? "" : ":", onnx_label(node->operator).text);
        while (k < counts.unknown_count && strcmp(counts.unknown[k], name) != 0) {
            k++;
        }
        if (k == counts.unknown_count && k < UNKNOWN_MOST) {
            memcpy(counts.unknown[counts.unknown_count++], name, sizeof name);
        }
    }
}

/* NumPy has no bfloat16, so the package's tensors of that type say uint16. The model says which. */
static enum onnx_type type_of(const struct onnx_tensor *tensor, const struct onnx_port *port)
{
    const bool is_short_float = port->type == ONNX_BFLOAT16 && tensor->type == ONNX_UINT16;
    return is_short_float ? ONNX_BFLOAT16 : tensor->type;
}

/* Reads input_N.pb or output_N.pb. Returns false where there is none, or it is no tensor. */
static bool read_tensor(const char *folder, const char *kind, unsigned number, struct bytes *bytes,
                        struct onnx_tensor *ret_tensor)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/test_data_set_0/%s_%u.pb", folder, kind, number);
    *bytes = read_path(path);
    return bytes->at != NULL && onnx_tensor_read((struct onnx_span){bytes->at, bytes->size},
                                                 ret_tensor, NULL) == ONNX_OK;
}

/* Compares the outputs of a model with those of the case. Returns false after a line. */
static bool outputs_are_right(const char *folder, const struct onnx_model *model,
                              const struct onnx_shapes *shapes)
{
    for (uint32_t i = 0; i < model->output_count; i++) {
        CLEANUP(bytes_free) struct bytes bytes = {NULL, 0};
        struct onnx_tensor tensor;
        const struct onnx_fact *fact = &shapes->facts[model->outputs[i].value];
        if (!read_tensor(folder, "output", i, &bytes, &tensor)) {
            (void)printf("%s: output %u is no tensor\n", folder, i);
            return false;
        }
        if (fact->type != type_of(&tensor, &model->outputs[i]) || fact->rank != tensor.rank ||
            memcmp(fact->dims, tensor.dims, tensor.rank * sizeof *tensor.dims) != 0) {
            (void)printf("%s: output %u is inferred as %s\n", folder, i,
                         onnx_shape_text(fact).text);
            return false;
        }
    }
    return true;
}

static void try_model(const char *folder, const struct onnx_model *model)
{
    struct onnx_given given[TENSORS_MOST];
    struct bytes files[TENSORS_MOST];
    struct problem problem = {""};
    struct onnx_infer_input input = {.model = model, .given = given};
    struct onnx_shapes *shapes = NULL;
    uint32_t files_read = 0;
    for (; files_read < model->input_count && files_read < TENSORS_MOST; files_read++) {
        struct onnx_given *next = &given[input.given_count];
        next->input = files_read;
        if (read_tensor(folder, "input", files_read, &files[files_read], &next->tensor)) {
            next->tensor.type = type_of(&next->tensor, &model->inputs[files_read]);
            input.given_count++;
        }
    }
    const enum onnx_status status = onnx_infer(&input, &shapes, &problem);
    counts.by_status[status]++;
    if (status == ONNX_OK) {
        counts.inferred++;
        const bool is_right = outputs_are_right(folder, model, shapes);
        counts.right += is_right;
        counts.wrong += !is_right;
    } else if (status != ONNX_OPERATOR) {
        (void)printf("%s: %s: %s\n", folder, onnx_status_name(status), problem.text);
    }
    for (uint32_t i = 0; i < files_read; i++) {
        bytes_free(&files[i]);
    }
    onnx_shapes_destroy(&shapes);
}

static void try_case(const char *folder)
{
    char path[PATH_SIZE];
    struct onnx_model *model = NULL;
    struct problem problem = {""};
    (void)snprintf(path, sizeof path, "%s/model.onnx", folder);
    CLEANUP(bytes_free) struct bytes bytes = read_path(path);
    if (bytes.at == NULL) {
        return;
    }
    counts.models++;
    const enum onnx_status status = onnx_read(bytes.at, bytes.size, &model, &problem);
    if (status == ONNX_OK) {
        counts.read++;
        note_unknown(model);
        try_model(folder, model);
        onnx_destroy(&model);
        return;
    }
    counts.old += status == ONNX_VERSION;
    if (status != ONNX_VERSION) {
        (void)printf("%s: %s: %s\n", folder, onnx_status_name(status), problem.text);
    }
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

START_TEST(no_shape_of_the_cases_is_wrong)
{
    static const char *const groups[] = {"node", "pytorch-converted", "pytorch-operator", "simple"};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        try_group(groups[i]);
    }
    (void)printf(
        "cases %u, of an opset before %d or after %d %u, read %u, inferred fully %u, right "
        "%u, wrong %u\n",
        counts.models, ONNX_OPSET_LEAST, ONNX_OPSET_NEWEST, counts.old, counts.read,
        counts.inferred, counts.right, counts.wrong);
    for (int i = 1; i <= ONNX_NO_MEMORY; i++) {
        if (counts.by_status[i] > 0) {
            (void)printf("refused %s %u\n", onnx_status_name((enum onnx_status)i),
                         counts.by_status[i]);
        }
    }
    (void)printf("operators known %zu; unknown in the cases:", onnx_operator_count());
    for (unsigned i = 0; i < counts.unknown_count; i++) {
        (void)printf(" %s", counts.unknown[i]);
    }
    (void)printf("\n");
    ck_assert_uint_eq(counts.wrong, 0);
    ck_assert_uint_eq(counts.right, counts.inferred);
    ck_assert_uint_ge(counts.models, CASES_LEAST);
    ck_assert_uint_ge(counts.inferred, INFERRED_LEAST);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {TEST(no_shape_of_the_cases_is_wrong)};
    DIR *cases = opendir(CASES);
    if (cases == NULL) {
        (void)printf("skipped: %s is not there; Debian's package libonnx-testdata has it\n", CASES);
        return SKIPPED;
    }
    (void)closedir(cases);
    return suite_main("onnx_cases", NULL, NULL, tests, 1);
}
