/* consumer/model/model_file.h opens the file of a model on this machine, and reads what the model
 * takes and leaves. */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_FILE_H
#define BOURSE_CONSUMER_MODEL_MODEL_FILE_H

#include "base/problem.h"
#include "formats/onnx/onnx_interface.h"

#include <stddef.h>
#include <stdint.h>

struct model_file {
    void *bytes; /* mapped */
    size_t size;
    struct onnx_interface *interface; /* points into the bytes */
};

/* Opens a model. The caller owns the result. A model that onnx_read knows by its version is read
 * whole, so that circles and missing names are found here; of another, only the interface. Returns
 * NULL with a problem that begins with the path. */
struct model_file *model_file_open(const char *path, struct problem *ret_problem);
void model_file_close(struct model_file **self);

/* Writes the path of a name in a job's folder. Returns false when it is too long. */
enum { MODEL_FILE_PATH_SIZE = 4096 };
bool model_file_path(const char *folder, const char *name, char ret_path[MODEL_FILE_PATH_SIZE]);

#endif
