/* A library in the place of ONNX Runtime's. It has one model, whatever the bytes: y = x + x, for x
 * of float32[2]. It counts what is alive, and fails where a test tells it to:
 *
 *     FAKE_ORT_FAILS=49      the function at this place of the table fails
 *     FAKE_ORT_CODE=9        with this code, not 1
 *     FAKE_ORT_SAYS=TEXT     and with this text, not "fake"
 *     FAKE_ORT_LACKS=49      the place has no function
 *     FAKE_ORT_IS=TEXT       old: it knows no version; mute: it has no version; bare: it has no
 *                            base; sequence: y is no tensor; string: x is of strings; wide: x has 9
 *                            dims; crowd: it has 300 inputs; any: x has any dims; liar: its sums
 *                            are wrong; optional: y is not there; new: a version that knows
 *                            plug-in libraries and shares; whole: likewise, and the provider
 *                            computes all nodes; alone: likewise, without devices of the plug-in
 *
 * The execution provider is "Fake", of the library itself and of any plug-in library. */
#include "provider/onnx/runtime/ort_api.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 420, SIDE = 2, WIDE = 9 };

struct ort_status {
    int code;
    char text[200];
};
struct ort_env {
    int severity;
};
struct ort_session {
    int threads;
};
struct ort_session_options {
    int threads;
};
struct ort_tensor_info {
    int type;
    size_t rank;
    int64_t dims[WIDE];
};
struct ort_type_info {
    int kind;
    struct ort_tensor_info tensor;
};
struct ort_value {
    const float *given; /* an input's bytes; NULL: an output */
    float sums[SIDE];
};
struct ort_memory_info {
    int allocator;
};
struct ort_allocator {
    int unused;
};
struct ort_hardware {
    int type;
};
struct ort_device {
    const char *provider;
    struct ort_hardware hardware;
};
struct ort_node {
    const char *type;
};
struct ort_part {
    const char *provider;
    const struct ort_node *const *nodes;
    size_t count;
};

#define PROTOTYPE(place, result, name, arguments) static result fake_##name arguments;
ORT_CALLS(PROTOTYPE)
ORT_DEVICE_CALLS(PROTOTYPE)
ORT_SHARE_CALLS(PROTOTYPE)
#undef PROTOTYPE

int fake_ort_alive(void);
int fake_ort_threads(void);
int fake_ort_options(void);
const void *OrtGetApiBase(void);

static int alive;
static int threads_asked;
static int options_asked;

/* Counts what is alive, without what belongs to the library. */
int fake_ort_alive(void)
{
    return alive;
}
int fake_ort_threads(void)
{
    return threads_asked;
}

/* Counts the options that the provider got last. */
int fake_ort_options(void)
{
    return options_asked;
}

static const char *word(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

static int is(const char *what)
{
    return strcmp(word("FAKE_ORT_IS", ""), what) == 0;
}

static void *made(size_t size)
{
    void *object = calloc(1, size);
    if (object == NULL) {
        abort();
    }
    alive++;
    return object;
}

static void gone(void *object)
{
    alive -= object != NULL;
    free(object);
}

static struct ort_status *fails(int place)
{
    if (atoi(word("FAKE_ORT_FAILS", "-1")) != place) {
        return NULL;
    }
    struct ort_status *status = made(sizeof *status);
    status->code = atoi(word("FAKE_ORT_CODE", "1"));
    strncpy(status->text, word("FAKE_ORT_SAYS", "fake"), sizeof status->text - 1);
    return status;
}
/* Ends the function with a status when it is to fail. */
#define FAIL_AT(place)                                                                             \
    do {                                                                                           \
        struct ort_status *status_of_it = fails(place);                                            \
        if (status_of_it != NULL) {                                                                \
            return status_of_it;                                                                   \
        }                                                                                          \
    } while (0)

static int fake_error_code(const struct ort_status *status)
{
    return status->code;
}
static const char *fake_error_message(const struct ort_status *status)
{
    return strcmp(status->text, "NULL") == 0 ? NULL : status->text;
}
static void fake_release_status(struct ort_status *status)
{
    gone(status);
}

static struct ort_status *fake_create_env(int severity, const char *id, struct ort_env **ret_env)
{
    FAIL_AT(3);
    *ret_env = made(sizeof **ret_env);
    (*ret_env)->severity = severity + (id == NULL);
    return NULL;
}
static struct ort_status *fake_disable_telemetry(const struct ort_env *env)
{
    (void)env;
    return fails(6);
}
static void fake_release_env(struct ort_env *env)
{
    gone(env);
}

static struct ort_status *fake_create_session_options(struct ort_session_options **ret_options)
{
    FAIL_AT(10);
    *ret_options = made(sizeof **ret_options);
    return NULL;
}
static struct ort_status *fake_set_log_severity(struct ort_session_options *options, int severity)
{
    (void)options;
    (void)severity;
    return fails(22);
}
static struct ort_status *fake_set_threads_within(struct ort_session_options *options, int count)
{
    FAIL_AT(24);
    options->threads = count;
    return NULL;
}
static struct ort_status *fake_set_threads_between(struct ort_session_options *options, int count)
{
    (void)options;
    (void)count;
    return fails(25);
}
static struct ort_status *fake_set_option(struct ort_session_options *options, const char *key,
                                          const char *value)
{
    (void)options;
    FAIL_AT(130);
    return key[0] != '\0' && value[0] != '\0' ? NULL : fails(atoi(word("FAKE_ORT_FAILS", "-1")));
}
static void fake_release_session_options(struct ort_session_options *options)
{
    gone(options);
}

static struct ort_status *fake_create_session(const struct ort_env *env, const void *bytes,
                                              size_t size,
                                              const struct ort_session_options *options,
                                              struct ort_session **ret_session)
{
    (void)env;
    (void)bytes;
    (void)size;
    FAIL_AT(8);
    *ret_session = made(sizeof **ret_session);
    (*ret_session)->threads = threads_asked = options->threads;
    return NULL;
}
static void fake_release_session(struct ort_session *session)
{
    gone(session);
}
static struct ort_status *fake_input_count(const struct ort_session *session, size_t *ret_count)
{
    (void)session;
    FAIL_AT(30);
    *ret_count = is("crowd") ? 300 : 1;
    return NULL;
}
static struct ort_status *fake_output_count(const struct ort_session *session, size_t *ret_count)
{
    (void)session;
    FAIL_AT(31);
    *ret_count = 1;
    return NULL;
}

static struct ort_type_info *type_of(int is_input)
{
    struct ort_type_info *info = made(sizeof *info);
    info->kind = !is_input && is("sequence") ? 2 : ORT_KIND_TENSOR;
    info->tensor.type = is_input && is("string") ? 8 : 1;
    info->tensor.rank = is_input && is("wide") ? WIDE : 1;
    info->tensor.dims[0] = is("any") ? -1 : SIDE;
    return info;
}
static struct ort_status *fake_input_type(const struct ort_session *session, size_t index,
                                          struct ort_type_info **ret_info)
{
    (void)session;
    (void)index;
    FAIL_AT(33);
    *ret_info = type_of(1);
    return NULL;
}
static struct ort_status *fake_output_type(const struct ort_session *session, size_t index,
                                           struct ort_type_info **ret_info)
{
    (void)session;
    (void)index;
    FAIL_AT(34);
    *ret_info = type_of(0);
    return NULL;
}
static void fake_release_type_info(struct ort_type_info *info)
{
    gone(info);
}
static struct ort_status *fake_kind(const struct ort_type_info *info, int *ret_kind)
{
    FAIL_AT(56);
    *ret_kind = info->kind;
    return NULL;
}
static struct ort_status *fake_as_tensor(const struct ort_type_info *info,
                                         const struct ort_tensor_info **ret_tensor)
{
    FAIL_AT(55);
    *ret_tensor = &info->tensor;
    return NULL;
}
static struct ort_status *fake_element_type(const struct ort_tensor_info *info, int *ret_type)
{
    FAIL_AT(60);
    *ret_type = info->type;
    return NULL;
}
static struct ort_status *fake_rank(const struct ort_tensor_info *info, size_t *ret_rank)
{
    FAIL_AT(61);
    *ret_rank = info->rank;
    return NULL;
}
static struct ort_status *fake_dims(const struct ort_tensor_info *info, int64_t *ret_dims,
                                    size_t count)
{
    FAIL_AT(62);
    memcpy(ret_dims, info->dims, count * sizeof *ret_dims);
    return NULL;
}

/* Names are the allocator's, which gets them back. */
static char *name_of(const char *name)
{
    char *copy = made(strlen(name) + 1);
    memcpy(copy, name, strlen(name) + 1);
    return copy;
}
static struct ort_status *fake_input_name(const struct ort_session *session, size_t index,
                                          struct ort_allocator *allocator, char **ret_name)
{
    (void)session;
    (void)index;
    (void)allocator;
    FAIL_AT(36);
    *ret_name = name_of("x");
    return NULL;
}
static struct ort_status *fake_output_name(const struct ort_session *session, size_t index,
                                           struct ort_allocator *allocator, char **ret_name)
{
    (void)session;
    (void)index;
    (void)allocator;
    FAIL_AT(37);
    *ret_name = name_of("y");
    return NULL;
}
static struct ort_status *fake_allocator_free(struct ort_allocator *allocator, void *bytes)
{
    (void)allocator;
    gone(bytes); /* in any case, so that a test of the failure has nothing left */
    return fails(76);
}
static struct ort_status *fake_default_allocator(struct ort_allocator **ret_allocator)
{
    static struct ort_allocator only;
    FAIL_AT(78);
    *ret_allocator = &only;
    return NULL;
}
static struct ort_status *fake_create_memory_info(int allocator, int type,
                                                  struct ort_memory_info **ret_info)
{
    FAIL_AT(69);
    *ret_info = made(sizeof **ret_info);
    (*ret_info)->allocator = allocator + type;
    return NULL;
}
static void fake_release_memory_info(struct ort_memory_info *info)
{
    gone(info);
}

static struct ort_status *fake_create_tensor(const struct ort_memory_info *info, void *bytes,
                                             size_t size, const int64_t *dims, size_t rank,
                                             int type, struct ort_value **ret_value)
{
    (void)info;
    (void)dims;
    (void)rank;
    (void)type;
    FAIL_AT(49);
    *ret_value = made(sizeof **ret_value);
    (*ret_value)->given = size == SIDE * sizeof(float) ? bytes : NULL;
    return NULL;
}
static void fake_release_value(struct ort_value *value)
{
    gone(value);
}
static struct ort_status *fake_run(struct ort_session *session, const struct ort_run_options *given,
                                   const char *const *names, const struct ort_value *const *inputs,
                                   size_t count, const char *const *wanted, size_t wanted_count,
                                   struct ort_value **outputs)
{
    (void)session;
    (void)given;
    FAIL_AT(9);
    if (count != 1 || wanted_count != 1 || strcmp(names[0], "x") != 0 ||
        strcmp(wanted[0], "y") != 0 || inputs[0]->given == NULL) {
        abort(); /* the caller has checked all of it */
    }
    outputs[0] = made(sizeof *outputs[0]);
    for (int i = 0; i < SIDE; i++) {
        outputs[0]->sums[i] = inputs[0]->given[i] + (is("liar") ? 1 : inputs[0]->given[i]);
    }
    return NULL;
}
static struct ort_status *fake_is_tensor(const struct ort_value *value, int *ret_is_tensor)
{
    (void)value;
    FAIL_AT(50);
    *ret_is_tensor = !is("optional");
    return NULL;
}
static struct ort_status *fake_tensor_bytes(struct ort_value *value, void **ret_bytes)
{
    FAIL_AT(51);
    *ret_bytes = value->sums;
    return NULL;
}
static struct ort_status *fake_tensor_info(const struct ort_value *value,
                                           struct ort_tensor_info **ret_info)
{
    (void)value;
    FAIL_AT(65);
    *ret_info = made(sizeof **ret_info);
    **ret_info = (struct ort_tensor_info){.type = 1, .rank = 1, .dims = {SIDE}};
    return NULL;
}
static void fake_release_tensor_info(struct ort_tensor_info *info)
{
    gone(info);
}

/* ---------------------------------------------------------------- providers */

static int is_new(void)
{
    return is("new") || is("whole") || is("alone");
}

static struct ort_status *fake_list_providers(char ***ret_names, int *ret_count)
{
    static char fake[] = "FakeExecutionProvider";
    static char cpu[] = "CPUExecutionProvider";
    static char *names[] = {fake, cpu};
    FAIL_AT(125);
    *ret_names = names;
    *ret_count = 2;
    alive++; /* until the list comes back */
    return NULL;
}
static struct ort_status *fake_free_providers(char **names, int count)
{
    (void)names;
    alive -= count == 2;
    return fails(126);
}
static struct ort_status *fake_append_provider(struct ort_session_options *options,
                                               const char *name, const char *const *keys,
                                               const char *const *values, size_t count)
{
    (void)options;
    FAIL_AT(216);
    options_asked = strcmp(name, "Fake") == 0 ? (int)count : -1;
    for (size_t i = 0; i < count; i++) {
        options_asked = keys[i][0] != values[i][0] ? options_asked : -1;
    }
    return NULL;
}
static struct ort_status *fake_register_library(struct ort_env *env, const char *name,
                                                const char *path)
{
    (void)env;
    FAIL_AT(301);
    return name[0] != '\0' && path[0] == '/' ? NULL : fails(301);
}
static struct ort_status *fake_list_devices(const struct ort_env *env,
                                            const struct ort_device *const **ret_devices,
                                            size_t *ret_count)
{
    static const struct ort_device cpu = {"CPUExecutionProvider", {ORT_HARDWARE_CPU}};
    static const struct ort_device npu = {"FakeExecutionProvider", {ORT_HARDWARE_NPU}};
    static const struct ort_device *const devices[] = {&cpu, &npu};
    (void)env;
    FAIL_AT(303);
    *ret_devices = devices;
    *ret_count = is("alone") ? 1 : 2;
    return NULL;
}
static struct ort_status *fake_append_devices(struct ort_session_options *options,
                                              struct ort_env *env,
                                              const struct ort_device *const *devices,
                                              size_t device_count, const char *const *keys,
                                              const char *const *values, size_t count)
{
    (void)env;
    FAIL_AT(304);
    return device_count == 1 ? fake_append_provider(options, "Fake", keys, values, count)
                             : fails((int)device_count + 1000 + (devices != NULL));
}
static int fake_hardware_type(const struct ort_hardware *hardware)
{
    return hardware->type;
}
static const char *fake_hardware_vendor(const struct ort_hardware *hardware)
{
    (void)hardware;
    return "Acme Corp";
}
static const char *fake_device_provider(const struct ort_device *device)
{
    return device->provider;
}
static const struct ort_hardware *fake_device_hardware(const struct ort_device *device)
{
    return &device->hardware;
}

static struct ort_status *fake_session_parts(const struct ort_session *session,
                                             const struct ort_part *const **ret_parts,
                                             size_t *ret_count)
{
    static const struct ort_node shape = {"Shape"};
    static const struct ort_node sort = {"Unique"};
    static const struct ort_node product = {"MatMul"};
    static const struct ort_node *const left[] = {&shape, &sort, &shape};
    static const struct ort_node *const taken[] = {&product};
    static const struct ort_part fake = {"FakeExecutionProvider", taken, 1};
    static const struct ort_part cpu = {"CPUExecutionProvider", left, 3};
    static const struct ort_part *const parts[] = {&fake, &cpu};
    (void)session;
    FAIL_AT(407);
    *ret_parts = parts;
    *ret_count = is("whole") ? 1 : 2;
    return NULL;
}
static struct ort_status *fake_part_provider(const struct ort_part *part, const char **ret_name)
{
    FAIL_AT(408);
    *ret_name = part->provider;
    return NULL;
}
static struct ort_status *fake_part_nodes(const struct ort_part *part,
                                          const struct ort_node *const **ret_nodes,
                                          size_t *ret_count)
{
    FAIL_AT(409);
    *ret_nodes = part->nodes;
    *ret_count = part->count;
    return NULL;
}
static struct ort_status *fake_node_operator(const struct ort_node *node, const char **ret_name)
{
    FAIL_AT(412);
    *ret_name = node->type;
    return NULL;
}

/* ---------------------------------------------------------------- the table */

typedef void (*place_function)(void);
static place_function table[PLACES];

static const void *get_api(uint32_t version)
{
#define FILL(place, result, name, arguments) table[place] = (place_function)fake_##name;
    ORT_CALLS(FILL)
    ORT_DEVICE_CALLS(FILL)
    ORT_SHARE_CALLS(FILL)
#undef FILL
    const int lacks = atoi(word("FAKE_ORT_LACKS", "-1"));
    if (lacks >= 0 && lacks < PLACES) {
        table[lacks] = NULL;
    }
    const uint32_t newest = is_new() ? ORT_VERSION_SHARES : ORT_VERSION_LEAST;
    return version <= newest && !is("old") ? table : NULL;
}

static const char *get_version(void)
{
    return is("mute") ? NULL : "1.99.0-fake";
}

const void *OrtGetApiBase(void)
{
    static const struct {
        const void *(*get_api)(uint32_t version);
        const char *(*get_version)(void);
    } base = {get_api, get_version};
    return is("bare") ? NULL : &base;
}
