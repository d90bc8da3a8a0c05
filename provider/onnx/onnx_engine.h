/* provider/onnx/onnx_engine.h is the interface of what computes ONNX models. It has two ends.
 *
 *     provider/onnx/runtime/   ONNX Runtime, whose library is loaded when the program runs
 *     provider/onnx/own/       operators of our own
 *
 * An engine opens a model once, and runs it as often as its caller likes. A session belongs to one
 * thread, and its runs may use several. Engines read no files but those in the folder of the model,
 * and print nothing. Faults are answers: an engine never ends the process because of a model. */
#ifndef BOURSE_PROVIDER_ONNX_ONNX_ENGINE_H
#define BOURSE_PROVIDER_ONNX_ONNX_ENGINE_H

#include "base/problem.h"
#include "provider/onnx/onnx_array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ONNX_ENGINE_NAME_SIZE = 64, ONNX_ENGINE_PORTS_MOST = 256 };

enum onnx_engine_status {
    ONNX_ENGINE_OK,
    ONNX_ENGINE_MODEL,       /* the bytes are no model, or a model that is wrong in itself */
    ONNX_ENGINE_UNSUPPORTED, /* this engine lacks an operator, a form of one, or a type */
    ONNX_ENGINE_INPUT,       /* the values do not fit the model's inputs */
    ONNX_ENGINE_MEMORY,      /* memory is short, or the bound of the session is reached */
    ONNX_ENGINE_FAILED,      /* the run failed: shapes that do not go together, or the engine did */
    ONNX_ENGINE_STATUSES
};

/* The model to open. The bytes outlive the session, unless the engine copies them. */
struct onnx_engine_model {
    const uint8_t *bytes;
    size_t size;
    const char *folder; /* weights in other files lie below this folder; NULL: there are none */
    uint32_t threads;   /* that a run may use, the caller's own included; at least 1 */
    /* The most bytes that weights and values of a session may take; 0: no bound. An engine that
     * cannot count them relies on the limit of the process. */
    uint64_t memory_bytes;
    /* The model is refused when the processor would compute a node of it for the engine's execution
     * provider. */
    bool is_for_provider;
};

/* An input or an output, as the model declares it. */
struct onnx_engine_port {
    const char *name;
    enum onnx_type type; /* of numbers; `open` refuses models with other inputs or outputs */
    bool has_shape;      /* false: any rank and dims */
    uint32_t rank;
    int64_t dims[ONNX_RANK_MOST]; /* -1: any */
};

/* The list belongs to the session. */
struct onnx_engine_ports {
    const struct onnx_engine_port *items;
    size_t count;
};

struct onnx_engine {
    char name[ONNX_ENGINE_NAME_SIZE]; /* with its version: "onnxruntime-1.30.0", "bourse-1" */
    void *context;                    /* the engine's own; the first argument of `open` */
    bool copies_bytes;                /* the bytes of a model may go once it is open */

    /* Opens a model. The caller owns the session. Any status but OK gives none, and the problem
     * says why in one line for the job's owner, with the node and the operator where one is to
     * blame. */
    enum onnx_engine_status (*open)(void *context, const struct onnx_engine_model *model,
                                    void **ret_session, struct problem *ret_problem);

    /* Inputs that have a default among the weights are not listed; all that are listed are
     * needed. */
    struct onnx_engine_ports (*inputs)(const void *session);
    struct onnx_engine_ports (*outputs)(const void *session);

    /* Runs the model once. There is one array for each input and each output, in the order of the
     * lists. The engine only reads the inputs, which onnx_engine_fit has accepted. The caller owns
     * the outputs, which outlive later runs but not the session. Any status but OK gives no
     * outputs, and the problem says why; the session can run again. */
    enum onnx_engine_status (*run)(void *session, const struct onnx_array *inputs,
                                   struct onnx_array *ret_outputs, struct problem *ret_problem);

    /* Returns a line that says which nodes of the session the processor computes instead of the
     * engine's execution provider; "": nothing to say. The text is the session's. NULL: the engine
     * has no such providers. */
    const char *(*share)(const void *session);

    /* Writes lines of `KEY VALUE` about the engine, as the agent reads them: `providers` and their
     * names, or `type` and `vendor` of a provider's device. Returns false with the problem. NULL:
     * there is nothing to write. */
    bool (*describe)(const void *context, char *ret_lines, size_t capacity,
                     struct problem *ret_problem);

    /* Frees the session and clears the caller's pointer. NULL is no session. */
    void (*close)(void **session);
};

/* Returns true when an array fits what the port declares: its type, its rank and each dim that is a
 * number. Otherwise the problem names the port, and both types with their dims. */
bool onnx_engine_fit(const struct onnx_engine_port *port, const struct onnx_array *array,
                     struct problem *ret_problem);

/* Returns the index of the port with this name, or ports.count when there is none. */
size_t onnx_engine_find(struct onnx_engine_ports ports, const char *name);

#endif
