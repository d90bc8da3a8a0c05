/* provider/onnx/runtime/ort_api.h loads ONNX Runtime's library when the program runs, and has the
 * part of its C interface that bourse-onnx uses.
 *
 * The library exports one function, OrtGetApiBase. It gives a table of pointers to functions for
 * the version that a program asks for, or NULL where the library is older. Newer versions only
 * append to the table, so that a place in it never changes. Nothing of bourse is linked with ONNX
 * Runtime or built with its headers: the places and types are written down by us, and each is tried
 * with the library itself (tests/unit/provider/onnx/test_ort.c).
 *
 * A function that can fail returns a status, which is NULL when it succeeded. */
#ifndef BOURSE_PROVIDER_ONNX_RUNTIME_ORT_API_H
#define BOURSE_PROVIDER_ONNX_RUNTIME_ORT_API_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORT_VERSION_LEAST = 17,   /* of the interface: ONNX Runtime 1.17 and newer have it */
    ORT_VERSION_DEVICES = 22, /* from here on there are ORT_DEVICE_CALLS */
    ORT_VERSION_SHARES = 24,  /* from here on there are ORT_SHARE_CALLS */
    ORT_VERSION_SIZE = 32,    /* the library's own version as text */
};

/* The library's own objects. */
struct ort_status;
struct ort_env;
struct ort_session;
struct ort_session_options;
struct ort_run_options;
struct ort_value;
struct ort_memory_info;
struct ort_allocator;
struct ort_type_info;
struct ort_tensor_info;
struct ort_device;   /* what an execution provider computes on */
struct ort_hardware; /* the processor behind it */
struct ort_part;     /* nodes of a session that one execution provider computes */
struct ort_node;

/* Codes of a status. */
enum {
    ORT_FAIL = 1,
    ORT_INVALID_ARGUMENT = 2,
    ORT_NO_FILE = 3,
    ORT_NO_MODEL = 4,
    ORT_ENGINE_ERROR = 5,
    ORT_EXCEPTION = 6,
    ORT_INVALID_PROTOBUF = 7,
    ORT_NOT_IMPLEMENTED = 9,
    ORT_INVALID_GRAPH = 10,
};

enum {
    ORT_LOG_FATAL = 4,
    ORT_ARENA_ALLOCATOR = 1,
    ORT_MEMORY_DEFAULT = 0,
    ORT_KIND_TENSOR = 1,
    ORT_HARDWARE_CPU = 0,
    ORT_HARDWARE_GPU = 1,
    ORT_HARDWARE_NPU = 2,
};

/* CALL(PLACE, RESULT, NAME, ARGUMENTS) for each function that is used. The names are ours. */
#define ORT_CALLS(CALL)                                                                            \
    CALL(1, int, error_code, (const struct ort_status *))                                          \
    CALL(2, const char *, error_message, (const struct ort_status *))                              \
    CALL(3, struct ort_status *, create_env, (int severity, const char *id, struct ort_env **))    \
    CALL(6, struct ort_status *, disable_telemetry, (const struct ort_env *))                      \
    CALL(8, struct ort_status *, create_session,                                                   \
         (const struct ort_env *, const void *bytes, size_t size,                                  \
          const struct ort_session_options *, struct ort_session **))                              \
    CALL(9, struct ort_status *, run,                                                              \
         (struct ort_session *, const struct ort_run_options *, const char *const *input_names,    \
          const struct ort_value *const *inputs, size_t input_count,                               \
          const char *const *output_names, size_t output_count, struct ort_value **outputs))       \
    CALL(10, struct ort_status *, create_session_options, (struct ort_session_options **))         \
    CALL(22, struct ort_status *, set_log_severity, (struct ort_session_options *, int severity))  \
    CALL(24, struct ort_status *, set_threads_within, (struct ort_session_options *, int count))   \
    CALL(25, struct ort_status *, set_threads_between, (struct ort_session_options *, int count))  \
    CALL(30, struct ort_status *, input_count, (const struct ort_session *, size_t *))             \
    CALL(31, struct ort_status *, output_count, (const struct ort_session *, size_t *))            \
    CALL(33, struct ort_status *, input_type,                                                      \
         (const struct ort_session *, size_t index, struct ort_type_info **))                      \
    CALL(34, struct ort_status *, output_type,                                                     \
         (const struct ort_session *, size_t index, struct ort_type_info **))                      \
    CALL(36, struct ort_status *, input_name,                                                      \
         (const struct ort_session *, size_t index, struct ort_allocator *, char **))              \
    CALL(37, struct ort_status *, output_name,                                                     \
         (const struct ort_session *, size_t index, struct ort_allocator *, char **))              \
    CALL(49, struct ort_status *, create_tensor,                                                   \
         (const struct ort_memory_info *, void *bytes, size_t size, const int64_t *dims,           \
          size_t rank, int type, struct ort_value **))                                             \
    CALL(50, struct ort_status *, is_tensor, (const struct ort_value *, int *))                    \
    CALL(51, struct ort_status *, tensor_bytes, (struct ort_value *, void **))                     \
    CALL(55, struct ort_status *, as_tensor,                                                       \
         (const struct ort_type_info *, const struct ort_tensor_info **))                          \
    CALL(56, struct ort_status *, kind, (const struct ort_type_info *, int *))                     \
    CALL(60, struct ort_status *, element_type, (const struct ort_tensor_info *, int *))           \
    CALL(61, struct ort_status *, rank, (const struct ort_tensor_info *, size_t *))                \
    CALL(62, struct ort_status *, dims,                                                            \
         (const struct ort_tensor_info *, int64_t *dims, size_t count))                            \
    CALL(65, struct ort_status *, tensor_info,                                                     \
         (const struct ort_value *, struct ort_tensor_info **))                                    \
    CALL(69, struct ort_status *, create_memory_info,                                              \
         (int allocator, int type, struct ort_memory_info **))                                     \
    CALL(76, struct ort_status *, allocator_free, (struct ort_allocator *, void *))                \
    CALL(78, struct ort_status *, default_allocator, (struct ort_allocator **))                    \
    CALL(92, void, release_env, (struct ort_env *))                                                \
    CALL(93, void, release_status, (struct ort_status *))                                          \
    CALL(94, void, release_memory_info, (struct ort_memory_info *))                                \
    CALL(95, void, release_session, (struct ort_session *))                                        \
    CALL(96, void, release_value, (struct ort_value *))                                            \
    CALL(98, void, release_type_info, (struct ort_type_info *))                                    \
    CALL(99, void, release_tensor_info, (struct ort_tensor_info *))                                \
    CALL(100, void, release_session_options, (struct ort_session_options *))                       \
    CALL(125, struct ort_status *, list_providers, (char ***names, int *count))                    \
    CALL(126, struct ort_status *, free_providers, (char **names, int count))                      \
    CALL(130, struct ort_status *, set_option,                                                     \
         (struct ort_session_options *, const char *key, const char *value))                       \
    CALL(216, struct ort_status *, append_provider,                                                \
         (struct ort_session_options *, const char *name, const char *const *keys,                 \
          const char *const *values, size_t count))

/* Version 1.22 and newer have these, which reach providers of plug-in libraries. */
#define ORT_DEVICE_CALLS(CALL)                                                                     \
    CALL(301, struct ort_status *, register_library,                                               \
         (struct ort_env *, const char *name, const char *path))                                   \
    CALL(303, struct ort_status *, list_devices,                                                   \
         (const struct ort_env *, const struct ort_device *const **devices, size_t *count))        \
    CALL(304, struct ort_status *, append_devices,                                                 \
         (struct ort_session_options *, struct ort_env *, const struct ort_device *const *devices, \
          size_t device_count, const char *const *keys, const char *const *values, size_t count))  \
    CALL(307, int, hardware_type, (const struct ort_hardware *))                                   \
    CALL(309, const char *, hardware_vendor, (const struct ort_hardware *))                        \
    CALL(312, const char *, device_provider, (const struct ort_device *))                          \
    CALL(316, const struct ort_hardware *, device_hardware, (const struct ort_device *))

/* Version 1.24 and newer have these, which tell what computes the nodes of a session. */
#define ORT_SHARE_CALLS(CALL)                                                                      \
    CALL(407, struct ort_status *, session_parts,                                                  \
         (const struct ort_session *, const struct ort_part *const **parts, size_t *count))        \
    CALL(408, struct ort_status *, part_provider, (const struct ort_part *, const char **name))    \
    CALL(409, struct ort_status *, part_nodes,                                                     \
         (const struct ort_part *, const struct ort_node *const **nodes, size_t *count))           \
    CALL(412, struct ort_status *, node_operator, (const struct ort_node *, const char **name))

struct ort_api {
    void *library;
    char version[ORT_VERSION_SIZE]; /* "1.30.0" */
#define ORT_MEMBER(place, result, name, arguments) result(*name) arguments;
    ORT_CALLS(ORT_MEMBER)
    /* NULL where the library is older. */
    ORT_DEVICE_CALLS(ORT_MEMBER)
    ORT_SHARE_CALLS(ORT_MEMBER)
#undef ORT_MEMBER
};

/* Loads the library of this path. Returns false with a line that says what is missing; then nothing
 * is loaded. A loaded library is never unloaded, because its threads would go on. */
bool ort_api_load(const char *library, struct ort_api *ret_api, struct problem *ret_problem);

/* Returns true when the status, which may be NULL, is a failure. Then the problem is what the
 * status says, in one line, and the status is freed. */
bool ort_api_failed(const struct ort_api *api, struct ort_status *status,
                    struct problem *ret_problem);

#endif
