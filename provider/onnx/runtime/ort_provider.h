/* provider/onnx/runtime/ort_provider.h reads which execution provider of ONNX Runtime computes in
 * this jail, and gives the provider to the library.
 *
 * The agent writes the owner's words into a file of the jail, a line for each:
 *
 *     provider WebGPU                  the name, as ONNX Runtime spells it
 *     library /opt/x/libprovider.so    the plug-in library that brings it, if one does
 *     option KEY=VALUE                 for the provider
 *     environment NAME=VALUE           for drivers; set before a library is loaded
 *
 * Nodes that the provider does not take are computed by the processor. */
#ifndef BOURSE_PROVIDER_ONNX_RUNTIME_ORT_PROVIDER_H
#define BOURSE_PROVIDER_ONNX_RUNTIME_ORT_PROVIDER_H

#include "base/problem.h"
#include "provider/onnx/runtime/ort_api.h"

#include <stdbool.h>
#include <stddef.h>

enum { ORT_SETTINGS_MOST = 16, ORT_SETTINGS_BYTES = 1024, ORT_DEVICES_MOST = 64 };

struct ort_provider {
    char text[ORT_SETTINGS_BYTES]; /* the fields point into it */
    const char *name;
    char slug[32];       /* the name in lower case, without "ExecutionProvider": "webgpu" */
    const char *library; /* NULL: ONNX Runtime's own library has the provider */
    const char *keys[ORT_SETTINGS_MOST], *values[ORT_SETTINGS_MOST];
    size_t option_count;
    const char *names[ORT_SETTINGS_MOST], *settings[ORT_SETTINGS_MOST]; /* of the environment */
    size_t environment_count;
    /* The device that ort_provider_begin found; NULL: the library of its own knows it by name. It
     * belongs to the library. */
    const struct ort_device *device;
};

/* Reads the file of this path. Returns false with the problem when the lines are wrong. */
bool ort_provider_read(const char *path, struct ort_provider *ret_provider,
                       struct problem *ret_problem);
/* Parses the bytes of such a file, likewise. */
bool ort_provider_parse(const char *text, size_t length, struct ort_provider *ret_provider,
                        struct problem *ret_problem);
/* Sets the environment. To be called before a library is loaded. */
void ort_provider_prepare(const struct ort_provider *provider);
/* Registers the plug-in library, if there is one, and finds the provider's first device. Returns
 * false with the problem. */
bool ort_provider_begin(const struct ort_api *api, struct ort_env *env,
                        struct ort_provider *provider, struct problem *ret_problem);
/* Adds the provider to the options of a session. */
struct ort_status *ort_provider_append(const struct ort_api *api, struct ort_env *env,
                                       const struct ort_provider *provider,
                                       struct ort_session_options *options);
/* Writes one line that says how many nodes of an open session the processor computes, and which
 * operators, or "" where an older library does not say. The session was opened with
 * session.record_ep_graph_assignment_info. */
enum { ORT_SHARE_SIZE = 240 };
struct ort_status *ort_provider_share(const struct ort_api *api,
                                      const struct ort_provider *provider,
                                      const struct ort_session *session,
                                      char ret_line[ORT_SHARE_SIZE]);
/* Writes `type` and `vendor` of the hardware of a plug-in library's device, as lines. */
void ort_provider_describe(const struct ort_api *api, const struct ort_provider *provider,
                           char *ret_lines, size_t capacity);
/* Writes the line `providers` with the names of the library's providers beside the processor's. */
struct ort_status *ort_provider_list(const struct ort_api *api, char *ret_line, size_t capacity);

#endif
