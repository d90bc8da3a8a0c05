/* provider/onnx/onnx_serve.h runs models on the files of a folder, one subtask after another.
 *
 * A model stays open for the next subtask when the agent says that its file has the same bytes, and
 * that all other files which are no inputs of the run have, too. Then no file but those of the
 * run's inputs is looked at. So weights are read and the graph
 * is prepared once for a job on a slot. */
#ifndef BOURSE_PROVIDER_ONNX_ONNX_SERVE_H
#define BOURSE_PROVIDER_ONNX_ONNX_SERVE_H

#include "base/problem.h"
#include "provider/onnx/onnx_engine.h"
#include "provider/tensor/operation.h"

#include <stdint.h>

struct onnx_serve;

/* Makes a server without a model. The engine outlives the server. Returns NULL when memory is
 * short. */
struct onnx_serve *onnx_serve_create(const struct onnx_engine *engine, uint32_t threads);
void onnx_serve_destroy(struct onnx_serve **self);

struct onnx_serve_run {
    int folder; /* of all files; the current folder when it is AT_FDCWD */
    const char *const *words;
    size_t count;
    uint64_t memory_bytes;
    int live; /* gets the text of a language model as it comes; -1: nobody does */
    /* Files whose content is known, the model's among them; else the model is opened anew. */
    const struct operation_content *contents;
    size_t content_count;
    /* Files of inputs that are open already, instead of in the folder. They stay the caller's. */
    const struct operation_given *given;
    size_t given_count;
};

/* Runs a model once (formats/onnx/onnx_words.h), or goes on with a prompt by it
 * (formats/generate/generate_words.h). OK: every output that the words name is in the folder. Any
 * other status leaves none, and the problem is a line for the job's owner. */
enum operation_status onnx_serve_run(struct onnx_serve *serve, const struct onnx_serve_run *run,
                                     struct problem *ret_problem);

/* Returns how many models the server has opened so far. */
uint64_t onnx_serve_opened(const struct onnx_serve *serve);

/* Runs a model of our own, which adds an array to itself, and compares the result. Returns false
 * with the problem when the engine does not compute that. */
bool onnx_serve_try(const struct onnx_engine *engine, struct problem *ret_problem);

#endif
