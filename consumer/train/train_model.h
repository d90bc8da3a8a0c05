/* consumer/train/train_model.h opens a model that is to be trained, with the files of its rows and
 * labels, and makes its gradient (formats/train/gradient.h).
 *
 * The rows are cut into batches, and a batch into parts, by onnx_words_rows: all parts of an epoch
 * are consecutive rows of the files. So a part's number says which rows it has. */
#ifndef BOURSE_CONSUMER_TRAIN_TRAIN_MODEL_H
#define BOURSE_CONSUMER_TRAIN_TRAIN_MODEL_H

#include "base/problem.h"
#include "consumer/model/model_file.h"
#include "formats/train/gradient.h"

struct train_model {
    struct model_file *file;
    char *folder; /* of the model, with its files of weights */
    struct onnx_model *model;
    struct onnx_shapes *shapes; /* of the largest part */
    struct gradient gradient;
    int64_t rows;      /* of all data */
    uint32_t batches;  /* of an epoch */
    double batch_flop; /* of the way there and back for a batch */
    uint64_t data_bytes;
};

/* Opens the model and checks the files: types, dims, that there are as many labels as rows, and
 * that labels are classes. Paths are relative to `folder`. Returns NULL with the problem. */
struct train_model *train_model_open(const char *folder, const struct train_words *words,
                                     struct problem *ret_problem);
/* Opens the model alone, with its list of weights, to save it. Returns NULL with the problem. */
struct train_model *train_model_open_alone(const char *folder, const char *name,
                                           struct problem *ret_problem);
void train_model_close(struct train_model **self);

/* Reads the weights that the model has, one after the other. The caller frees them. Returns NULL
 * with the problem. */
float *train_model_weights(const struct train_model *model, struct problem *ret_problem);

/* Writes the model with other weights to a file of this mode. Returns false with the problem. */
bool train_model_save(const struct train_model *model, const float *weights, const char *path,
                      unsigned mode, struct problem *ret_problem);

/* Reads a .npy file of float32 with one dim, which a checkpoint has. The caller frees the values.
 * `elements` is how many there are to be; below 0: any number. Returns NULL with the problem. */
float *train_model_vector(const char *folder, const char *checkpoint, const char *name,
                          int64_t elements, size_t *ret_count, struct problem *ret_problem);

#endif
