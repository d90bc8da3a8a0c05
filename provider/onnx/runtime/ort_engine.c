#include "provider/onnx/runtime/ort_engine.h"

#include "base/text.h"
#include "provider/onnx/runtime/ort_api.h"
#include "provider/onnx/runtime/ort_provider.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct runtime {
    struct ort_api api;
    struct ort_env *env;
    struct ort_memory_info *memory;
    struct ort_allocator *allocator; /* the library's own */
    bool has_provider;               /* an execution provider computes what it can */
    struct ort_provider provider;
};

struct ports {
    struct onnx_engine_port *items;
    const char **names; /* for a run */
    size_t count;
};

struct session {
    struct runtime *runtime;
    struct ort_session *ort;
    struct ports inputs, outputs;
    char share[ORT_SHARE_SIZE]; /* which nodes the processor computes beside a provider */
};

/* ---------------------------------------------------------------- faults */

static bool says_memory(const char *message)
{
    return strstr(message, "bad_alloc") != NULL || strstr(message, "allocate memory") != NULL ||
           strstr(message, "Failed to allocate") != NULL;
}

/* Frees the status, and says what it says in one line. Returns the engine's status for it; `other`
 * is that of any code without a meaning of its own. */
static enum onnx_engine_status fail(const struct runtime *runtime, struct ort_status *status,
                                    enum onnx_engine_status other, struct problem *ret_problem)
{
    const char *message = runtime->api.error_message(status);
    const int code = runtime->api.error_code(status);
    const bool is_short = message != NULL && says_memory(message);
    (void)ort_api_failed(&runtime->api, status, ret_problem);
    if (is_short) {
        return ONNX_ENGINE_MEMORY;
    }
    if (code == ORT_INVALID_ARGUMENT && other == ONNX_ENGINE_FAILED) {
        return ONNX_ENGINE_INPUT;
    }
    return code == ORT_NOT_IMPLEMENTED ? ONNX_ENGINE_UNSUPPORTED : other;
}

static enum onnx_engine_status no_memory(struct problem *ret_problem)
{
    problem_set(ret_problem, "there is not enough memory");
    return ONNX_ENGINE_MEMORY;
}

/* ---------------------------------------------------------------- inputs and outputs */

static void free_ports(struct ports *ports)
{
    for (size_t i = 0; ports->names != NULL && i < ports->count; i++) {
        free((char *)ports->items[i].name);
    }
    free(ports->items);
    free((void *)ports->names);
    *ports = (struct ports){.count = 0};
}

/* Copies a name that the library has allocated, and gives the library its own back. */
static enum onnx_engine_status take_name(struct runtime *runtime, char *name,
                                         struct onnx_engine_port *port, struct problem *ret_problem)
{
    if (name == NULL) {
        problem_set(ret_problem, "ONNX Runtime gives no name for an input or output");
        return ONNX_ENGINE_FAILED;
    }
    port->name = strdup(name);
    struct ort_status *status = runtime->api.allocator_free(runtime->allocator, name);
    if (status != NULL) {
        return fail(runtime, status, ONNX_ENGINE_FAILED, ret_problem);
    }
    return port->name != NULL ? ONNX_ENGINE_OK : no_memory(ret_problem);
}

/* Reads type and dims. A dim with a name is -1 here. The interface does not tell an output of any
 * shape from a scalar, so that such a port has no shape. */
static struct ort_status *read_tensor(const struct runtime *runtime,
                                      const struct ort_tensor_info *info,
                                      struct onnx_engine_port *port)
{
    int type = ONNX_UNDEFINED;
    size_t rank = 0;
    struct ort_status *status = runtime->api.element_type(info, &type);
    status = status == NULL ? runtime->api.rank(info, &rank) : status;
    port->type = type > ONNX_UNDEFINED && type < ONNX_TYPES ? (enum onnx_type)type : ONNX_UNDEFINED;
    port->has_shape = rank > 0 && rank <= ONNX_RANK_MOST;
    port->rank = port->has_shape ? (uint32_t)rank : 0;
    if (status == NULL && port->has_shape) {
        status = runtime->api.dims(info, port->dims, rank);
    }
    return status;
}

static enum onnx_engine_status read_type(struct runtime *runtime, struct ort_type_info *info,
                                         struct onnx_engine_port *port, struct problem *ret_problem)
{
    int kind = 0;
    const struct ort_tensor_info *tensor = NULL;
    struct ort_status *status = runtime->api.kind(info, &kind);
    if (status == NULL && kind == ORT_KIND_TENSOR) {
        status = runtime->api.as_tensor(info, &tensor);
        status = status == NULL && tensor != NULL ? read_tensor(runtime, tensor, port) : status;
    }
    runtime->api.release_type_info(info);
    if (status != NULL) {
        return fail(runtime, status, ONNX_ENGINE_FAILED, ret_problem);
    }
    if (onnx_type_bytes(port->type) <= 0) {
        problem_set(ret_problem, "\"%.100s\" of the model is no tensor of numbers", port->name);
        return ONNX_ENGINE_UNSUPPORTED;
    }
    return ONNX_ENGINE_OK;
}

static enum onnx_engine_status read_port(struct session *session, bool is_input, size_t index,
                                         struct onnx_engine_port *port, struct problem *ret_problem)
{
    struct runtime *runtime = session->runtime;
    const struct ort_api *api = &runtime->api;
    char *name = NULL;
    struct ort_type_info *info = NULL;
    struct ort_status *status = (is_input ? api->input_name : api->output_name)(
        session->ort, index, runtime->allocator, &name);
    if (status != NULL) {
        return fail(runtime, status, ONNX_ENGINE_FAILED, ret_problem);
    }
    const enum onnx_engine_status named = take_name(runtime, name, port, ret_problem);
    if (named != ONNX_ENGINE_OK) {
        return named;
    }
    status = (is_input ? api->input_type : api->output_type)(session->ort, index, &info);
    return status != NULL ? fail(runtime, status, ONNX_ENGINE_FAILED, ret_problem)
                          : read_type(runtime, info, port, ret_problem);
}

static enum onnx_engine_status read_ports(struct session *session, bool is_input,
                                          struct ports *ports, struct problem *ret_problem)
{
    const struct ort_api *api = &session->runtime->api;
    size_t count = 0;
    struct ort_status *status =
        (is_input ? api->input_count : api->output_count)(session->ort, &count);
    if (status != NULL) {
        return fail(session->runtime, status, ONNX_ENGINE_FAILED, ret_problem);
    }
    if (count > ONNX_ENGINE_PORTS_MOST) {
        problem_set(ret_problem, "the model has %zu %s; at most %d are known here", count,
                    is_input ? "inputs" : "outputs", ONNX_ENGINE_PORTS_MOST);
        return ONNX_ENGINE_UNSUPPORTED;
    }
    ports->items = calloc(count + 1, sizeof *ports->items);
    ports->names = calloc(count + 1, sizeof *ports->names);
    if (ports->items == NULL || ports->names == NULL) {
        return no_memory(ret_problem);
    }
    enum onnx_engine_status result = ONNX_ENGINE_OK;
    while (result == ONNX_ENGINE_OK && ports->count < count) {
        struct onnx_engine_port *port = &ports->items[ports->count];
        result = read_port(session, is_input, ports->count, port, ret_problem);
        ports->names[ports->count++] = port->name;
    }
    return result;
}

/* ---------------------------------------------------------------- sessions */

static void close_session(void **self)
{
    struct session *session = *self;
    if (session != NULL) {
        free_ports(&session->inputs);
        free_ports(&session->outputs);
        if (session->ort != NULL) {
            session->runtime->api.release_session(session->ort);
        }
        free(session);
        *self = NULL;
    }
}

/* Threads of a session end their waiting with each run: between two subtasks nobody may spend the
 * processor's time. */
static struct ort_status *set_options(const struct runtime *runtime,
                                      struct ort_session_options *options,
                                      const struct onnx_engine_model *model)
{
    const struct ort_api *api = &runtime->api;
    const bool is_told = runtime->has_provider && api->session_parts != NULL;
    const struct {
        const char *key, *value;
    } entries[] = {
        {"session.force_spinning_stop", "1"},
        {"session.use_deterministic_compute", "1"},
        {"session.model_external_initializers_file_folder_path", model->folder},
        {"session.record_ep_graph_assignment_info", is_told ? "1" : NULL},
        {"session.disable_cpu_ep_fallback", model->is_for_provider ? "1" : NULL},
    };
    struct ort_status *status = api->set_log_severity(options, ORT_LOG_FATAL);
    status = status == NULL ? api->set_threads_within(options, (int)model->threads) : status;
    status = status == NULL ? api->set_threads_between(options, 1) : status;
    for (size_t i = 0; status == NULL && i < sizeof entries / sizeof entries[0]; i++) {
        status = entries[i].value == NULL
                     ? NULL
                     : api->set_option(options, entries[i].key, entries[i].value);
    }
    if (status == NULL && runtime->has_provider) {
        status = ort_provider_append(api, runtime->env, &runtime->provider, options);
    }
    return status;
}

static struct ort_status *create(const struct runtime *runtime,
                                 const struct onnx_engine_model *model,
                                 struct ort_session **ret_session)
{
    const struct ort_api *api = &runtime->api;
    struct ort_session_options *options = NULL;
    struct ort_status *status = api->create_session_options(&options);
    if (status == NULL) {
        status = set_options(runtime, options, model);
    }
    if (status == NULL) {
        status = api->create_session(runtime->env, model->bytes, model->size, options, ret_session);
    }
    if (options != NULL) {
        api->release_session_options(options);
    }
    /* cppcheck-suppress returnDanglingLifetime ; a status is an object of the library's own */
    return status;
}

static enum onnx_engine_status open_session(void *context, const struct onnx_engine_model *model,
                                            void **ret_session, struct problem *ret_problem)
{
    struct runtime *runtime = context;
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return no_memory(ret_problem);
    }
    session->runtime = runtime;
    struct ort_status *status = create(runtime, model, &session->ort);
    enum onnx_engine_status result =
        status != NULL ? fail(runtime, status, ONNX_ENGINE_MODEL, ret_problem) : ONNX_ENGINE_OK;
    if (result == ONNX_ENGINE_OK) {
        result = read_ports(session, true, &session->inputs, ret_problem);
    }
    if (result == ONNX_ENGINE_OK) {
        result = read_ports(session, false, &session->outputs, ret_problem);
    }
    if (result == ONNX_ENGINE_OK && runtime->has_provider) {
        status =
            ort_provider_share(&runtime->api, &runtime->provider, session->ort, session->share);
        result = status != NULL ? fail(runtime, status, ONNX_ENGINE_FAILED, ret_problem) : result;
    }
    void *opened = session;
    if (result != ONNX_ENGINE_OK) {
        close_session(&opened);
        return result;
    }
    *ret_session = opened;
    return ONNX_ENGINE_OK;
}

static struct onnx_engine_ports list_inputs(const void *self)
{
    const struct session *session = self;
    return (struct onnx_engine_ports){session->inputs.items, session->inputs.count};
}

static struct onnx_engine_ports list_outputs(const void *self)
{
    const struct session *session = self;
    return (struct onnx_engine_ports){session->outputs.items, session->outputs.count};
}

static const char *share_of(const void *self)
{
    return ((const struct session *)self)->share;
}

/* ---------------------------------------------------------------- a run */

/* A value of the library, while an array of ours shows its bytes. */
struct made {
    const struct ort_api *api;
    struct ort_value *value;
};

static void release_made(void *owner)
{
    struct made *made = owner;
    made->api->release_value(made->value);
    free(made);
}

static void release_values(const struct ort_api *api, struct ort_value **values, size_t count)
{
    for (size_t i = 0; values != NULL && i < count; i++) {
        if (values[i] != NULL) {
            api->release_value(values[i]);
        }
    }
    free(values);
}

static struct ort_status *give_inputs(const struct session *session,
                                      const struct onnx_array *inputs, struct ort_value **values)
{
    static char nothing[ONNX_ARRAY_ALIGNMENT]; /* an array of no elements has no bytes */
    const struct runtime *runtime = session->runtime;
    struct ort_status *status = NULL;
    for (size_t i = 0; status == NULL && i < session->inputs.count; i++) {
        const struct onnx_array *input = &inputs[i];
        status = runtime->api.create_tensor(
            runtime->memory, input->bytes != NULL ? input->bytes : nothing, (size_t)input->size,
            input->dims, input->rank, (int)input->type, &values[i]);
    }
    return status;
}

static struct ort_status *read_value(const struct ort_api *api, struct ort_value *value,
                                     int *ret_type, size_t *ret_rank, int64_t *ret_dims,
                                     void **ret_bytes)
{
    struct ort_tensor_info *info = NULL;
    struct ort_status *status = api->tensor_info(value, &info);
    if (status != NULL) {
        /* cppcheck-suppress returnDanglingLifetime ; a status is an object of the library's own */
        return status;
    }
    status = api->element_type(info, ret_type);
    status = status == NULL ? api->rank(info, ret_rank) : status;
    if (status == NULL && *ret_rank > 0 && *ret_rank <= ONNX_RANK_MOST) {
        status = api->dims(info, ret_dims, *ret_rank);
    }
    api->release_tensor_info(info);
    return status == NULL ? api->tensor_bytes(value, ret_bytes) : status;
}

/* Shows one value of the library as an array, which owns the value from then on. */
static enum onnx_engine_status take_output(const struct session *session, const char *name,
                                           struct ort_value **value, struct onnx_array *ret_array,
                                           struct problem *ret_problem)
{
    const struct ort_api *api = &session->runtime->api;
    int is_tensor = 0;
    int type = 0;
    size_t rank = 0;
    int64_t dims[ONNX_RANK_MOST] = {0};
    void *bytes = NULL;
    struct problem why;
    struct ort_status *status = *value == NULL ? NULL : api->is_tensor(*value, &is_tensor);
    if (status == NULL && is_tensor != 0) {
        status = read_value(api, *value, &type, &rank, dims, &bytes);
    }
    if (status != NULL) {
        return fail(session->runtime, status, ONNX_ENGINE_FAILED, ret_problem);
    }
    if (is_tensor == 0 || type <= 0 || type >= ONNX_TYPES ||
        !onnx_array_describe((enum onnx_type)type, (uint32_t)rank, dims, ret_array, &why)) {
        problem_set(ret_problem, "output \"%.100s\" is no tensor of numbers with at most %d dims",
                    name, ONNX_RANK_MOST);
        return ONNX_ENGINE_UNSUPPORTED;
    }
    struct made *made = malloc(sizeof *made);
    if (made == NULL) {
        return no_memory(ret_problem);
    }
    *made = (struct made){.api = api, .value = *value};
    *value = NULL;
    ret_array->bytes = bytes;
    ret_array->owner = made;
    ret_array->release = release_made;
    return ONNX_ENGINE_OK;
}

static enum onnx_engine_status take_outputs(const struct session *session,
                                            struct ort_value **values,
                                            struct onnx_array *ret_outputs,
                                            struct problem *ret_problem)
{
    enum onnx_engine_status result = ONNX_ENGINE_OK;
    size_t taken = 0;
    for (; result == ONNX_ENGINE_OK && taken < session->outputs.count; taken++) {
        ret_outputs[taken] = (struct onnx_array){.type = ONNX_UNDEFINED};
        result = take_output(session, session->outputs.names[taken], &values[taken],
                             &ret_outputs[taken], ret_problem);
    }
    for (size_t i = 0; result != ONNX_ENGINE_OK && i < taken; i++) {
        onnx_array_release(&ret_outputs[i]);
    }
    return result;
}

static enum onnx_engine_status run_session(void *self, const struct onnx_array *inputs,
                                           struct onnx_array *ret_outputs,
                                           struct problem *ret_problem)
{
    struct session *session = self;
    const struct ort_api *api = &session->runtime->api;
    struct ort_value **given = calloc(session->inputs.count + 1, sizeof *given);
    struct ort_value **made = calloc(session->outputs.count + 1, sizeof *made);
    enum onnx_engine_status result = ONNX_ENGINE_OK;
    if (given == NULL || made == NULL) {
        result = no_memory(ret_problem);
    } else {
        struct ort_status *status = give_inputs(session, inputs, given);
        if (status == NULL) {
            status = api->run(session->ort, NULL, session->inputs.names,
                              (const struct ort_value *const *)given, session->inputs.count,
                              session->outputs.names, session->outputs.count, made);
        }
        result = status != NULL ? fail(session->runtime, status, ONNX_ENGINE_FAILED, ret_problem)
                                : take_outputs(session, made, ret_outputs, ret_problem);
    }
    release_values(api, given, session->inputs.count);
    release_values(api, made, session->outputs.count);
    return result;
}

/* ---------------------------------------------------------------- the engine */

static struct ort_status *begin(struct runtime *runtime)
{
    const struct ort_api *api = &runtime->api;
    struct ort_status *status = api->create_env(ORT_LOG_FATAL, "bourse", &runtime->env);
    status = status == NULL ? api->disable_telemetry(runtime->env) : status;
    if (status == NULL) {
        status = api->create_memory_info(ORT_ARENA_ALLOCATOR, ORT_MEMORY_DEFAULT, &runtime->memory);
    }
    return status == NULL ? api->default_allocator(&runtime->allocator) : status;
}

/* Says what the library has, or what the provider's device is. */
static bool describe(const void *context, char *ret_lines, size_t capacity,
                     struct problem *ret_problem)
{
    const struct runtime *runtime = context;
    if (runtime->has_provider) {
        ort_provider_describe(&runtime->api, &runtime->provider, ret_lines, capacity);
        return true;
    }
    return !ort_api_failed(&runtime->api, ort_provider_list(&runtime->api, ret_lines, capacity),
                           ret_problem);
}

static void end(struct runtime *runtime)
{
    if (runtime->memory != NULL) {
        runtime->api.release_memory_info(runtime->memory);
    }
    if (runtime->env != NULL) {
        runtime->api.release_env(runtime->env);
    }
    free(runtime);
}

/* Loads the library and begins, with the provider of the settings. */
static bool start(struct runtime *runtime, const char *library, const char *settings,
                  struct problem *ret_problem)
{
    runtime->has_provider = settings != NULL;
    if (runtime->has_provider && !ort_provider_read(settings, &runtime->provider, ret_problem)) {
        return false;
    }
    /* Builds by the library's maker tell their maker about their use, and start a shell to name
     * the machine, unless this is set before they are loaded. */
    (void)setenv("ORT_DISABLE_TELEMETRY", "1", 1);
    if (runtime->has_provider) {
        ort_provider_prepare(&runtime->provider);
    }
    if (!ort_api_load(library, &runtime->api, ret_problem) ||
        ort_api_failed(&runtime->api, begin(runtime), ret_problem)) {
        return false;
    }
    return !runtime->has_provider ||
           ort_provider_begin(&runtime->api, runtime->env, &runtime->provider, ret_problem);
}

bool ort_engine_open(const char *library, const char *settings, struct onnx_engine *ret_engine,
                     struct problem *ret_problem)
{
    struct runtime *runtime = calloc(1, sizeof *runtime);
    if (runtime == NULL) {
        (void)no_memory(ret_problem);
        return false;
    }
    if (!start(runtime, library, settings, ret_problem)) {
        end(runtime);
        return false;
    }
    *ret_engine = (struct onnx_engine){.context = runtime,
                                       .copies_bytes = true,
                                       .open = open_session,
                                       .inputs = list_inputs,
                                       .outputs = list_outputs,
                                       .run = run_session,
                                       .share = share_of,
                                       .describe = describe,
                                       .close = close_session};
    const char *name = runtime->has_provider ? runtime->provider.slug : "";
    (void)snprintf(ret_engine->name, sizeof ret_engine->name, "onnxruntime-%s%s%s",
                   runtime->api.version, name[0] != '\0' ? "-" : "", name);
    return true;
}

void ort_engine_close(struct onnx_engine *engine)
{
    end(engine->context);
    *engine = (struct onnx_engine){.context = NULL};
}
