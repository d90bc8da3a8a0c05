/* formats/train/train_words.h reads what a job of training does from its words.
 *
 *     MODEL -y LABELS -i NAME=FILE... -n STEPS [-b ROWS] [-k PARTS] [-c EVERY] [-f FOLDER]
 *           [-l LOSS] [-a OPTIMIZER] [-r RATE] [-d DECAY] [-m MOMENTUM] [-1 BETA] [-2 BETA]
 *           [-x EPSILON]
 *
 *     -y LABELS     a .npy file with a label for each row
 *     -i NAME=FILE  the rows of an input of the model
 *     -n STEPS      how many batches change the weights
 *     -b ROWS       rows of a batch; all rows without it
 *     -k PARTS      subtasks that a batch is cut into; 1 without it
 *     -c EVERY      the weights come back after so many steps, and after the last one; 0: only then
 *     -f FOLDER     go on with the weights in this folder
 *     -l LOSS       cross-entropy or mse
 *     -a OPTIMIZER  adamw or sgd
 *     -r, -d        learning rate, and decay of the weights
 *     -m            momentum of sgd
 *     -1, -2, -x    beta1, beta2 and epsilon of adamw
 *
 * The words are those of the job as a whole, in its file and in its manifest. Its tasks are runs of
 * models (formats/onnx/onnx_words.h). Pure. */
#ifndef BOURSE_FORMATS_TRAIN_TRAIN_WORDS_H
#define BOURSE_FORMATS_TRAIN_TRAIN_WORDS_H

#include "base/problem.h"
#include "formats/onnx/onnx_words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TRAIN_STEPS_MOST = 32768,
    TRAIN_PARTS_MOST = 512,
    TRAIN_WORDS_MOST = 1 + 2 * (ONNX_WORDS_FILES + 14),
};

/* The files of a checkpoint. */
#define TRAIN_WEIGHTS_FILE "weights.npy"
#define TRAIN_STATE_FILE "state.npy"
#define TRAIN_LOSSES_FILE "losses.npy"

enum train_loss { TRAIN_CROSS_ENTROPY, TRAIN_MSE, TRAIN_LOSSES };
extern const char *const train_loss_names[TRAIN_LOSSES]; /* "cross-entropy", "mse" */

enum train_method { TRAIN_ADAMW, TRAIN_SGD, TRAIN_METHODS };
extern const char *const train_method_names[TRAIN_METHODS]; /* "adamw", "sgd" */

struct train_optimizer {
    enum train_method method;
    double rate;                  /* above 0 */
    double decay;                 /* of weights, 0 to 1 */
    double momentum;              /* sgd: 0 to below 1 */
    double beta1, beta2, epsilon; /* adamw: 0 to below 1, and above 0 */
};

struct train_words { /* points into the words */
    const char *model, *labels;
    const char *from;         /* NULL: the model's own weights */
    struct onnx_words arrays; /* its inputs alone */
    enum train_loss loss;
    struct train_optimizer optimizer;
    uint32_t steps, parts, every;
    int64_t batch; /* 0: all rows */
};

/* Returns true when the words are those of training, right or wrong. */
bool train_words_are(const char *const *words, size_t count);

/* Reads the words. Returns false with a problem that says what to do. */
bool train_words_read(const char *const *words, size_t count, struct train_words *ret_words,
                      struct problem *ret_problem);

#endif
