#include "consumer/model/model_check.h"

#include "base/cleanup.h"
#include "consumer/job/input_list.h"
#include "consumer/model/model_file.h"
#include "formats/generate/generate_words.h"
#include "formats/npy.h"
#include "formats/onnx/onnx_npy.h"
#include "formats/onnx/onnx_words.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct checking {
    const struct bourse_job *job;
    const struct model_file *model;
    struct onnx_words words;
    int64_t rows; /* of the inputs that are split; -1: not known yet */
    struct problem *problem;
};

const struct input_file *model_check_find(const struct input_list *list, struct onnx_span name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (onnx_span_is(name, list->items[i].name)) {
            return &list->items[i];
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- names */

static bool check_inputs(const struct checking *checking)
{
    const struct onnx_interface *interface = checking->model->interface;
    const struct onnx_words *words = &checking->words;
    for (size_t i = 0; i < words->input_count; i++) {
        const struct onnx_span name = words->inputs[i].name;
        if (onnx_interface_find(interface->inputs, interface->input_count, name) ==
            interface->input_count) {
            problem_set(checking->problem, "the model has no input \"%s\"%s%s%s",
                        onnx_label(name).text, interface->input_count > 0 ? "; it has \"" : "",
                        interface->input_count > 0 ? onnx_label(interface->inputs[0].name).text
                                                   : "",
                        interface->input_count > 1   ? "\" and others"
                        : interface->input_count > 0 ? "\""
                                                     : "");
            return false;
        }
    }
    for (size_t i = 0; i < interface->input_count; i++) {
        bool is_given = false;
        for (size_t k = 0; k < words->input_count; k++) {
            is_given =
                is_given || onnx_span_equals(words->inputs[k].name, interface->inputs[i].name);
        }
        if (!is_given) {
            problem_set(checking->problem,
                        "the model's input \"%s\" is not given; give its file, as in x: a.npy "
                        "(inputs:, or --input x=a.npy)",
                        onnx_label(interface->inputs[i].name).text);
            return false;
        }
    }
    return true;
}

static bool check_outputs(const struct checking *checking)
{
    const struct onnx_interface *interface = checking->model->interface;
    const struct onnx_words *words = &checking->words;
    const int64_t none[ONNX_RANK_MOST] = {0};
    for (size_t i = 0; i < words->output_count; i++) {
        const struct onnx_span name = words->outputs[i].name;
        const size_t index = onnx_interface_find(interface->outputs, interface->output_count, name);
        if (index == interface->output_count) {
            problem_set(checking->problem, "the model has no output \"%s\"", onnx_label(name).text);
            return false;
        }
        const struct onnx_port *port = &interface->outputs[index];
        struct npy npy;
        if (port->type != ONNX_UNDEFINED && !onnx_npy_describe(port->type, 0, none, &npy)) {
            problem_set(checking->problem, "output \"%s\" is %s, which .npy files do not have",
                        onnx_label(name).text, onnx_type_name(port->type));
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- files */

static bool read_npy(int fd, uint64_t size, struct model_array *array, struct problem *problem)
{
    struct npy npy;
    uint8_t *head = malloc(NPY_PREFIX_BYTES);
    const ssize_t length = head == NULL ? -1 : pread(fd, head, NPY_PREFIX_BYTES, 0);
    const bool good = length >= 0 && npy_read(head, (size_t)length, size, &npy, problem) &&
                      onnx_npy_read(&npy, &array->type, array->dims, problem);
    array->rank = good ? npy.dimension_count : 0;
    if (length < 0) {
        problem_set(problem, "it cannot be read");
    }
    free(head);
    return good;
}

static bool read_raw(const struct onnx_words_file *input, uint64_t size, struct model_array *array,
                     struct problem *problem)
{
    uint64_t bytes = (uint64_t)onnx_type_bytes(input->type);
    for (uint32_t i = 0; i < input->rank; i++) {
        const uint64_t dim = (uint64_t)input->dims[i];
        bytes = dim > 0 && bytes > UINT64_MAX / dim ? UINT64_MAX : bytes * dim;
        array->dims[i] = input->dims[i];
    }
    array->type = input->type;
    array->rank = input->rank;
    if (bytes != size) {
        problem_set(problem, "it has %llu bytes, and its type and dims are %llu",
                    (unsigned long long)size, (unsigned long long)bytes);
    }
    return bytes == size;
}

bool model_check_array(const struct onnx_words_file *input, const struct input_file *file,
                       struct model_array *ret_array, struct problem *ret_problem)
{
    struct model_array array = {.type = ONNX_UNDEFINED};
    struct problem why = {""};
    uint64_t size = 0;
    const int fd = input_file_open(file, &size, ret_problem);
    if (fd < 0) {
        return false;
    }
    const bool good =
        input->is_raw ? read_raw(input, size, &array, &why) : read_npy(fd, size, &array, &why);
    (void)close(fd);
    if (!good) {
        problem_set(ret_problem, "%.150s: %.330s", input_shown(file->name).text, why.text);
        return false;
    }
    *ret_array = array;
    return true;
}

/* Compares one part of the rows with what the model takes. The first and the last part are the
 * smallest and the largest. */
static bool check_rows(struct checking *checking, const struct onnx_port *port,
                       const struct model_array *array, struct problem *problem)
{
    const uint32_t parts = checking->job->file->parts;
    if (array->rank == 0 || array->dims[0] < parts) {
        problem_set(problem, "it has fewer rows than there are parts, %u", parts);
        return false;
    }
    if (checking->rows >= 0 && checking->rows != array->dims[0]) {
        problem_set(problem, "it has %lld rows, and another input that is split has %lld",
                    (long long)array->dims[0], (long long)checking->rows);
        return false;
    }
    checking->rows = array->dims[0];
    for (uint32_t i = 0; i < 2; i++) {
        struct model_array part = *array;
        int64_t first = 0;
        onnx_words_rows(array->dims[0], i == 0 ? 0 : parts - 1, parts, &first, &part.dims[0]);
        if (!onnx_interface_fits(port, part.type, part.rank, part.dims, problem)) {
            return false;
        }
    }
    return true;
}

static bool check_file(struct checking *checking, const struct onnx_words_file *input,
                       const struct input_file *file)
{
    const struct onnx_interface *interface = checking->model->interface;
    const struct onnx_port *port = &interface->inputs[onnx_interface_find(
        interface->inputs, interface->input_count, input->name)];
    struct model_array array;
    struct problem why = {""};
    if (!model_check_array(input, file, &array, checking->problem)) {
        return false;
    }
    const bool good = input->is_split && checking->job->file->parts > 0
                          ? check_rows(checking, port, &array, &why)
                          : onnx_interface_fits(port, array.type, array.rank, array.dims, &why);
    if (!good) {
        problem_set(checking->problem, "%.150s: %.330s", input_shown(file->name).text, why.text);
    }
    return good;
}

/* The file of each subtask, of the job, or one that only a subtask knows. */
static bool check_input(struct checking *checking, const struct onnx_words_file *input)
{
    const struct bourse_job *job = checking->job;
    if (onnx_span_is(input->file, "{in}") && job->file->source == TEMPLATE_EACH) {
        bool good = true;
        for (size_t i = 0; good && i < job->own.count; i++) {
            good = check_file(checking, input, &job->own.items[i]);
        }
        return good;
    }
    if (memchr(input->file.at, '{', input->file.size) != NULL) {
        return true;
    }
    const struct input_file *file = model_check_find(&job->shared, input->file);
    if (file == NULL) {
        problem_set(checking->problem, "'%s' is none of the job's files: add it to them (files:)",
                    onnx_label(input->file).text);
    }
    return file != NULL && check_file(checking, input, file);
}

bool model_check_job(const struct bourse_job *job, struct problem *ret_problem)
{
    struct checking checking = {.job = job, .rows = -1, .problem = ret_problem};
    const struct job_strings *run = &job->file->run;
    CLEANUP(model_file_close) struct model_file *model = NULL;
    if (generate_words_are((const char *const *)run->items, run->count)) {
        return true; /* model_generate_settle compared the model with its prompts */
    }
    if (!onnx_words_read((const char *const *)run->items, run->count, true, &checking.words,
                         ret_problem)) {
        return false;
    }
    const struct onnx_span name = {(const uint8_t *)run->items[0], strlen(run->items[0])};
    const struct input_file *file = model_check_find(&job->shared, name);
    if (file == NULL) {
        return true; /* a placeholder, or a continued job, whose files are with the broker */
    }
    model = model_file_open(file->path, ret_problem);
    checking.model = model;
    bool good = model != NULL && check_inputs(&checking) && check_outputs(&checking);
    for (size_t i = 0; good && i < checking.words.input_count; i++) {
        good = check_input(&checking, &checking.words.inputs[i]);
    }
    return good;
}
