/* provider/device/model_engine.h says what computes ONNX models on this machine.
 *
 * The engine runs inside bourse-onnx, in the jail of a job's slot. The agent tries the engine in a
 * jail at a start (provider/executors/onnx.h). The agent never reads a model or loads the library
 * itself. */
#ifndef BOURSE_PROVIDER_DEVICE_MODEL_ENGINE_H
#define BOURSE_PROVIDER_DEVICE_MODEL_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_ENGINE_PATH_SIZE = 1100, MODEL_ENGINE_NAME_SIZE = 64 };

/* A slot with less memory runs no models: ONNX Runtime takes 60 MiB before it reads one. */
#define MODEL_ENGINE_MEMORY_BYTES (UINT64_C(128) << 20)

struct model_engine {
    char library[MODEL_ENGINE_PATH_SIZE]; /* ONNX Runtime's; "": none */
    char program[MODEL_ENGINE_PATH_SIZE]; /* the agent's copy of bourse-onnx */
    char name[MODEL_ENGINE_NAME_SIZE];    /* with its version, as in "onnxruntime-1.30.0" */
    char providers[256]; /* those of the library beside its processor's, with a blank between */
    bool is_known;       /* the engine was tried, or there is none to try */
    char unusable[512];  /* why no models run here; "": they do */
};

/* Returns true when models run here in jails of this memory. */
static inline bool model_engine_suffices(const struct model_engine *engine, uint64_t memory_bytes)
{
    return engine->is_known && engine->unusable[0] == '\0' &&
           memory_bytes >= MODEL_ENGINE_MEMORY_BYTES;
}

#endif
