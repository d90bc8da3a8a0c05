#include "consumer/train/train_model.h"

#include "consumer/job/input_list.h"
#include "consumer/model/model_check.h"
#include "consumer/model/model_cut.h"
#include "consumer/model/model_shapes.h"
#include "formats/limits.h"
#include "formats/npy.h"
#include "formats/onnx/onnx_build.h"
#include "formats/onnx/onnx_infer.h"
#include "formats/onnx/onnx_npy.h"
#include "runtime/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REFUSE(problem, ...) (problem_set((problem), __VA_ARGS__), false)

/* Numbers of fields in onnx.proto. */
enum { MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5 };
/* A derivative takes two products of the size of the operator's own. */
enum { WORK_THERE_AND_BACK = 3, LABELS_READ = 4096 };
/* The longest vector of a checkpoint is adamw's state: two values a weight, and the steps. */
#define STATE_BYTES_MOST ((2 * (uint64_t)GRADIENT_ELEMENTS_MOST + 1) * sizeof(float))

void train_model_close(struct train_model **self)
{
    struct train_model *model = *self;
    if (model != NULL) {
        gradient_fini(&model->gradient);
        onnx_shapes_destroy(&model->shapes);
        onnx_destroy(&model->model);
        model_file_close(&model->file);
        free(model->folder);
        free(model);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- arrays */

/* Opens a .npy file, and reads its header. Returns -1 with the problem, also when the file becomes
 * shorter meanwhile. */
static int open_npy(const char *path, struct npy *ret_npy, struct problem *problem)
{
    uint64_t size = 0;
    struct problem why = {""};
    uint8_t *head = malloc(NPY_PREFIX_BYTES);
    const int fd = head != NULL ? input_open(path, &size, problem) : -1;
    const ssize_t length = fd >= 0 ? pread(fd, head, NPY_PREFIX_BYTES, 0) : -1;
    const uint64_t wanted = size < NPY_PREFIX_BYTES ? size : NPY_PREFIX_BYTES;
    const bool good = length >= 0 && (uint64_t)length == wanted &&
                      npy_read(head, (size_t)length, size, ret_npy, &why);
    if (head == NULL) {
        problem_set(problem, "out of memory");
    }
    free(head);
    if (fd >= 0 && !good) {
        problem_set(problem, "%.200s: %.250s", path,
                    why.text[0] != '\0' ? why.text : "it cannot be read");
        (void)close(fd);
    }
    return good ? fd : -1;
}

static bool is_given(const struct train_words *words, struct onnx_span name)
{
    for (size_t i = 0; i < words->arrays.input_count; i++) {
        if (onnx_span_equals(words->arrays.inputs[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* Reads type and dims of an input's file, and compares them with the model. */
static bool read_array(const struct train_model *model, const char *folder,
                       const struct onnx_words_file *input, struct model_array *ret_array,
                       struct problem *problem)
{
    const struct onnx_interface *interface = model->file->interface;
    const size_t port = onnx_interface_find(interface->inputs, interface->input_count, input->name);
    char name[FORMAT_PATH_BYTES + 1];
    char path[MODEL_FILE_PATH_SIZE];
    if (port == interface->input_count) {
        return REFUSE(problem, "the model has no input \"%s\"", onnx_label(input->name).text);
    }
    if (input->file.size >= sizeof name) {
        return REFUSE(problem, "the name of an input's file is too long");
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)input->file.size, (const char *)input->file.at);
    if (!model_file_path(folder, name, path)) {
        return REFUSE(problem, "the path of an input's file is too long");
    }
    const struct input_file file = {.path = path, .name = path};
    if (!model_check_array(input, &file, ret_array, problem)) {
        return false;
    }
    if (ret_array->rank == 0 || ret_array->dims[0] == 0) {
        return REFUSE(problem, "%.200s has no rows", name);
    }
    return true;
}

static bool read_arrays(struct train_model *model, const char *folder,
                        const struct train_words *words, struct model_array *ret_arrays,
                        struct problem *problem)
{
    const struct onnx_interface *interface = model->file->interface;
    for (size_t i = 0; i < interface->input_count; i++) {
        if (!is_given(words, interface->inputs[i].name)) {
            return REFUSE(problem,
                          "the model's input \"%s\" is not given; give its file, as in x: x.npy "
                          "(inputs:, or --input x=x.npy)",
                          onnx_label(interface->inputs[i].name).text);
        }
    }
    for (size_t i = 0; i < words->arrays.input_count; i++) {
        const struct onnx_words_file *input = &words->arrays.inputs[i];
        if (!read_array(model, folder, input, &ret_arrays[i], problem)) {
            return false;
        }
        double bytes = (double)onnx_type_bytes(ret_arrays[i].type);
        for (uint32_t k = 0; k < ret_arrays[i].rank; k++) {
            bytes *= (double)ret_arrays[i].dims[k];
        }
        model->data_bytes += (uint64_t)bytes;
        model->rows = i == 0 ? ret_arrays[i].dims[0] : model->rows;
        if (ret_arrays[i].dims[0] != model->rows) {
            return REFUSE(problem, "input \"%s\" has %" PRId64 " rows, and \"%s\" has %" PRId64,
                          onnx_label(input->name).text, ret_arrays[i].dims[0],
                          onnx_label(words->arrays.inputs[0].name).text, model->rows);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- batches and shapes */

/* The rows of all parts are equal, or differ by one. */
static bool divide_rows(struct train_model *model, const struct train_words *words,
                        struct problem *problem)
{
    const int64_t batch =
        words->batch == 0 || words->batch > model->rows ? model->rows : words->batch;
    const int64_t batches = model->rows / batch;
    const int64_t parts = batches * words->parts;
    if (words->batch > model->rows) {
        return REFUSE(problem, "a batch has %" PRId64 " rows, and the data has %" PRId64,
                      words->batch, model->rows);
    }
    if (parts > model->rows) {
        return REFUSE(problem, "a batch of %" PRId64 " rows cannot have %" PRIu32 " parts", batch,
                      words->parts);
    }
    if (parts > ONNX_WORDS_PARTS) {
        return REFUSE(problem,
                      "the data has %" PRId64 " batches of %" PRIu32
                      " parts, and at most %d parts in all: take larger batches or fewer parts",
                      batches, words->parts, ONNX_WORDS_PARTS);
    }
    model->batches = (uint32_t)batches;
    return true;
}

static bool find_shapes(struct train_model *model, const struct train_words *words,
                        const struct model_array *arrays, struct problem *problem)
{
    const uint32_t parts = model->batches * words->parts;
    struct onnx_words cut = words->arrays;
    struct onnx_shapes *other = NULL;
    for (size_t i = 0; i < cut.input_count; i++) {
        cut.inputs[i].is_split = true;
    }
    const bool good =
        model_shapes_find(model->model, &cut, arrays, parts - 1, parts, &model->shapes, problem) &&
        model_shapes_find(model->model, &cut, arrays, 0, parts, &other, problem);
    onnx_shapes_destroy(&other);
    if (good) {
        model->batch_flop = WORK_THERE_AND_BACK * words->parts * MODEL_CUT_OPERATIONS *
                            model_cut_time_s(model->model, model->shapes);
    }
    return good;
}

/* ---------------------------------------------------------------- labels */

/* Labels of classes are places in the model's last dim. */
static bool check_classes(int fd, const struct npy *npy, int64_t classes, struct problem *problem)
{
    int64_t labels[LABELS_READ];
    for (uint64_t at = 0; at < npy->element_count; at += LABELS_READ) {
        const uint64_t left = npy->element_count - at;
        const size_t count = left < LABELS_READ ? (size_t)left : LABELS_READ;
        if (!file_read_at(fd, labels, count * sizeof *labels,
                          npy->data_offset + at * sizeof *labels)) {
            return REFUSE(problem, "the labels cannot be read");
        }
        for (size_t i = 0; i < count; i++) {
            if (labels[i] < 0 || labels[i] >= classes) {
                return REFUSE(problem,
                              "label %" PRIu64 " is %" PRId64
                              ", and the model has classes 0 to %" PRId64,
                              at + i, labels[i], classes - 1);
            }
        }
    }
    return true;
}

static bool check_header(const struct train_model *model, const struct npy *npy,
                         const struct gradient_labels *wanted, struct problem *problem)
{
    struct onnx_fact found;
    struct onnx_fact asked;
    enum onnx_type type = ONNX_UNDEFINED;
    int64_t dims[ONNX_RANK_MOST];
    int64_t all[ONNX_RANK_MOST];
    if (!onnx_npy_read(npy, &type, dims, problem)) {
        return false;
    }
    memcpy(all, wanted->dims, sizeof all);
    all[0] = model->rows;
    if (onnx_shapes_set(&found, type, npy->dimension_count, dims) != ONNX_OK ||
        onnx_shapes_set(&asked, wanted->type, wanted->rank, all) != ONNX_OK) {
        return REFUSE(problem, "the labels are too large");
    }
    const bool fits = type == wanted->type && npy->dimension_count == wanted->rank &&
                      memcmp(dims, all, wanted->rank * sizeof *all) == 0;
    return fits || REFUSE(problem, "the labels are %s, and the loss asks for %s",
                          onnx_shape_text(&found).text, onnx_shape_text(&asked).text);
}

static bool check_labels(struct train_model *model, const struct gradient_input *input,
                         const char *folder, const char *name, struct problem *problem)
{
    struct gradient_labels wanted;
    struct npy npy;
    char path[MODEL_FILE_PATH_SIZE];
    if (gradient_labels_of(input, &wanted, problem) != ONNX_OK) {
        return false;
    }
    if (!model_file_path(folder, name, path)) {
        return REFUSE(problem, "the path of the labels is too long");
    }
    const int fd = open_npy(path, &npy, problem);
    if (fd < 0) {
        return false;
    }
    model->data_bytes += npy.data_bytes;
    const bool good = check_header(model, &npy, &wanted, problem) &&
                      (wanted.classes == 0 || check_classes(fd, &npy, wanted.classes, problem));
    (void)close(fd);
    return good;
}

/* ---------------------------------------------------------------- opening */

static bool open_file(struct train_model *model, const char *folder, const char *name,
                      struct problem *problem)
{
    char path[MODEL_FILE_PATH_SIZE];
    struct problem why = {""};
    if (!model_file_path(folder, name, path)) {
        return REFUSE(problem, "the path of the model is too long");
    }
    const char *slash = strrchr(path, '/');
    model->folder = strndup(path, (size_t)(slash - path) + 1);
    model->file = model_file_open(path, problem);
    if (model->file == NULL || model->folder == NULL) {
        return false;
    }
    if (onnx_read(model->file->bytes, model->file->size, &model->model, &why) != ONNX_OK) {
        return REFUSE(problem, "%.200s cannot be trained: %.280s", name, why.text);
    }
    return true;
}

static bool open_model(struct train_model *model, const char *folder,
                       const struct train_words *words, struct problem *problem)
{
    struct model_array arrays[ONNX_WORDS_FILES];
    struct problem why = {""};
    if (!open_file(model, folder, words->model, problem) ||
        !read_arrays(model, folder, words, arrays, problem) ||
        !divide_rows(model, words, problem)) {
        return false;
    }
    const bool has_shapes = find_shapes(model, words, arrays, &why);
    const struct gradient_input input = {.bytes = {model->file->bytes, model->file->size},
                                         .model = model->model,
                                         .shapes = model->shapes,
                                         .loss = words->loss};
    if (!has_shapes || gradient_make(&input, &model->gradient, &why) != ONNX_OK) {
        return REFUSE(problem, "%.150s cannot be trained: %.330s", words->model, why.text);
    }
    return check_labels(model, &input, folder, words->labels, problem);
}

struct train_model *train_model_open(const char *folder, const struct train_words *words,
                                     struct problem *ret_problem)
{
    struct train_model *model = calloc(1, sizeof *model);
    if (model == NULL) {
        problem_set(ret_problem, "out of memory");
        return NULL;
    }
    if (!open_model(model, folder, words, ret_problem)) {
        train_model_close(&model);
    }
    return model;
}

struct train_model *train_model_open_alone(const char *folder, const char *name,
                                           struct problem *ret_problem)
{
    struct train_model *model = calloc(1, sizeof *model);
    struct problem why = {""};
    if (model == NULL) {
        problem_set(ret_problem, "out of memory");
        return NULL;
    }
    if (!open_file(model, folder, name, ret_problem)) {
        train_model_close(&model);
    } else if (gradient_list(model->model, &model->gradient, &why) != ONNX_OK) {
        problem_set(ret_problem, "%.200s: %.280s", name, why.text);
        train_model_close(&model);
    }
    return model;
}

/* ---------------------------------------------------------------- weights */

/* Reads weights that lie in a file beside the model. */
static bool read_outside(const struct train_model *model, const struct onnx_tensor *tensor,
                         float *ret_values, struct problem *problem)
{
    char name[ONNX_NAME_BYTES + 1];
    char path[MODEL_FILE_PATH_SIZE];
    uint64_t size = 0;
    (void)snprintf(name, sizeof name, "%.*s", (int)tensor->path.size,
                   (const char *)tensor->path.at);
    if (!model_file_path(model->folder, name, path)) {
        return REFUSE(problem, "the path of a file of weights is too long");
    }
    const int fd = input_open(path, &size, problem);
    if (fd < 0) {
        return false;
    }
    const bool good = file_read_at(fd, ret_values, (size_t)tensor->bytes, (uint64_t)tensor->offset);
    (void)close(fd);
    return good || REFUSE(problem, "%.200s is too short for the weights \"%s\"", name,
                          onnx_label(tensor->name).text);
}

float *train_model_weights(const struct train_model *model, struct problem *ret_problem)
{
    const struct gradient *gradient = &model->gradient;
    float *values = calloc((size_t)gradient->elements, sizeof *values);
    bool good = values != NULL;
    if (!good) {
        problem_set(ret_problem, "out of memory");
    }
    for (size_t i = 0; good && i < gradient->weight_count; i++) {
        const struct onnx_tensor *tensor =
            &model->model->initializers[gradient->weights[i].initializer];
        float *to = values + gradient->weights[i].first;
        good = tensor->is_external ? read_outside(model, tensor, to, ret_problem)
                                   : onnx_tensor_reals(tensor, (size_t)tensor->elements, to) ||
                                         REFUSE(ret_problem, "the weights \"%s\" cannot be read",
                                                onnx_label(tensor->name).text);
    }
    if (!good) {
        free(values);
        values = NULL;
    }
    return values;
}

/* Copies the graph, with other bytes for the trained weights. */
static void copy_graph(struct onnx_build *build, const struct train_model *model,
                       struct onnx_span graph, const float *weights)
{
    const struct gradient *gradient = &model->gradient;
    struct onnx_wire wire = onnx_wire_over(graph);
    struct onnx_field field;
    uint32_t initializer = 0;
    size_t next = 0;
    for (const uint8_t *at = wire.at; onnx_wire_next(&wire, &field); at = wire.at) {
        const bool is_weights = field.number == GRAPH_INITIALIZER;
        const uint32_t index = is_weights ? initializer++ : ONNX_NONE;
        if (is_weights && next < gradient->weight_count &&
            gradient->weights[next].initializer == index) {
            const struct onnx_tensor *tensor = &model->model->initializers[index];
            onnx_build_weights(build, tensor->name, tensor->rank, tensor->dims,
                               weights + gradient->weights[next].first);
            next++;
        } else {
            onnx_build_field(build, (struct onnx_span){at, (size_t)(wire.at - at)});
        }
    }
}

bool train_model_save(const struct train_model *model, const float *weights, const char *path,
                      unsigned mode, struct problem *ret_problem)
{
    struct onnx_build build = {.opset = model->model->opset};
    struct onnx_wire wire =
        onnx_wire_over((struct onnx_span){model->file->bytes, model->file->size});
    struct onnx_field field;
    uint8_t *bytes = NULL;
    size_t size = 0;
    for (const uint8_t *at = wire.at; onnx_wire_next(&wire, &field); at = wire.at) {
        if (field.number == MODEL_GRAPH) {
            copy_graph(&build, model, field.bytes, weights);
        } else {
            onnx_build_model_field(&build, (struct onnx_span){at, (size_t)(wire.at - at)});
        }
    }
    if (!onnx_build_end(&build, &bytes, &size)) {
        return REFUSE(ret_problem, "out of memory, or the model would be larger than 2^31 bytes");
    }
    const bool good = file_write(path, bytes, size, mode, ret_problem);
    free(bytes);
    return good;
}

float *train_model_vector(const char *folder, const char *checkpoint, const char *name,
                          int64_t elements, size_t *ret_count, struct problem *ret_problem)
{
    char inside[MODEL_FILE_PATH_SIZE];
    char path[MODEL_FILE_PATH_SIZE];
    struct npy npy;
    const int length = snprintf(inside, sizeof inside, "%s/%s", checkpoint, name);
    if (length < 0 || (size_t)length >= sizeof inside || !model_file_path(folder, inside, path)) {
        problem_set(ret_problem, "the path of the checkpoint is too long");
        return NULL;
    }
    const int fd = open_npy(path, &npy, ret_problem);
    if (fd < 0) {
        return NULL;
    }
    float *values = NULL;
    const bool fits = npy.kind == 'f' && npy.item_bytes == sizeof *values && !npy.is_big_endian &&
                      npy.dimension_count == 1 &&
                      (elements < 0 || npy.shape[0] == (uint64_t)elements);
    if (!fits) {
        problem_set(ret_problem,
                    "%.200s does not go with the model and the optimizer, which ask for float32"
                    "[%" PRId64 "]",
                    path, elements);
    } else if (npy.data_bytes > STATE_BYTES_MOST ||
               (values = malloc((size_t)npy.data_bytes + 1)) == NULL) {
        problem_set(ret_problem, "%.200s is too large for this machine", path);
    } else if (!file_read_at(fd, values, (size_t)npy.data_bytes, npy.data_offset)) {
        problem_set(ret_problem, "%.200s cannot be read", path);
        free(values);
        values = NULL;
    }
    (void)close(fd);
    *ret_count = values != NULL ? (size_t)npy.shape[0] : 0;
    return values;
}
