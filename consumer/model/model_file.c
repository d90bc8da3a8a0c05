#include "consumer/model/model_file.h"

#include "consumer/job/input_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void model_file_close(struct model_file **self)
{
    struct model_file *model = *self;
    if (model != NULL) {
        if (model->bytes != NULL) {
            (void)munmap(model->bytes, model->size);
        }
        free(model->interface);
        free(model);
        *self = NULL;
    }
}

bool model_file_path(const char *folder, const char *name, char ret_path[MODEL_FILE_PATH_SIZE])
{
    const int length = name[0] == '/'
                           ? snprintf(ret_path, MODEL_FILE_PATH_SIZE, "%s", name)
                           : snprintf(ret_path, MODEL_FILE_PATH_SIZE, "%s/%s", folder, name);
    return length > 0 && length < MODEL_FILE_PATH_SIZE;
}

static bool map(struct model_file *model, const char *path, struct problem *problem)
{
    uint64_t size = 0;
    const int fd = input_open(path, &size, problem);
    if (fd < 0) {
        return false;
    }
    if (size == 0 || size > (uint64_t)ONNX_FILE_BYTES) {
        problem_set(problem, "%.300s has %llu bytes; a model has 1 to 2^31", path,
                    (unsigned long long)size);
    } else {
        void *bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED) {
            problem_set(problem, "%.300s cannot be mapped: %s", path, strerror(errno));
        } else {
            model->bytes = bytes;
            model->size = (size_t)size;
        }
    }
    (void)close(fd);
    return model->bytes != NULL;
}

/* Returns true for a fault that every engine would find, too. The others are limits of our own
 * reader. */
static bool is_fault_of_model(enum onnx_status status)
{
    switch (status) {
    case ONNX_MALFORMED:
    case ONNX_NAME:
    case ONNX_TWICE:
    case ONNX_UNMADE:
    case ONNX_CYCLE:
    case ONNX_ORDER:
    case ONNX_WEIGHTS:
    case ONNX_PATH:
        return true;
    default:
        return false;
    }
}

static bool read_model(struct model_file *model, struct problem *problem)
{
    struct onnx_model *graph = NULL;
    enum onnx_status status =
        onnx_interface_read(model->bytes, model->size, model->interface, problem);
    if (status != ONNX_OK) {
        return false;
    }
    status = onnx_read(model->bytes, model->size, &graph, problem);
    onnx_destroy(&graph);
    return !is_fault_of_model(status);
}

struct model_file *model_file_open(const char *path, struct problem *ret_problem)
{
    struct problem why = {""};
    struct model_file *model = calloc(1, sizeof *model);
    if (model == NULL || (model->interface = calloc(1, sizeof *model->interface)) == NULL) {
        problem_set(ret_problem, "out of memory");
        free(model);
        return NULL;
    }
    if (!map(model, path, ret_problem)) {
        model_file_close(&model);
        return NULL;
    }
    if (!read_model(model, &why)) {
        problem_set(ret_problem, "%.150s: %.330s", path, why.text);
        model_file_close(&model);
    }
    return model;
}
