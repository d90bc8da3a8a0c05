/* A library in the place of a PJRT library, for tests. Its devices compute on the processor what
 * mlir_model.h understands. They lay matrices out column by column, and copy and compute only when
 * somebody waits for the event, so that a caller that does not ask for rows, or does not wait, gets
 * wrong bytes.
 *
 * The variable FAKE_PJRT has words that make it fail:
 *
 *     fail:PJRT_Client_Compile:3     this function returns an error with this code
 *     event:PJRT_Buffer_ToHostBuffer:14  the event of this function brings one
 *     hang:PJRT_Client_Create        this function never returns
 *     lacks:PJRT_Client_Compile      the table does not have the function
 *     version:1.0, bytes:100         the table's version, and its size
 *     none                           there is no table
 *     print                          the client's start prints a line
 *     devices:4, platform:tpu        what the client says
 *     tight                          the devices do not say how much memory they have */
#include "provider/pjrt/pjrt_api.h"
#include "tests/programs/mlir_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES_MOST = 8, FIRST_ID = 40, LIMIT_BYTES = 1 << 30, WHY_SIZE = 256 };

const struct pjrt_api *GetPjrtApi(void);
/* Returns the number of objects that the library has given and that were not destroyed. */
int fake_pjrt_alive(void);
/* Returns how often a program was compiled. */
int fake_pjrt_compiled(void);
/* Returns the options of the client's start as text: "a=1 b=true". */
const char *fake_pjrt_options(void);

struct PJRT_Error {
    int code;
    char message[WHY_SIZE];
};

struct PJRT_DeviceDescription {
    int id;
};

struct PJRT_Device {
    struct PJRT_DeviceDescription description;
};

struct PJRT_Client {
    struct PJRT_Device devices[DEVICES_MOST];
    struct PJRT_Device *list[DEVICES_MOST];
    size_t count;
    char platform[32];
};

struct PJRT_LoadedExecutable {
    struct mlir_program program;
};

struct PJRT_Executable {
    size_t output_count;
};

struct PJRT_Buffer {
    struct mlir_tensor tensor; /* its data is column by column */
};

/* The event holds what is done when somebody waits for it. */
struct PJRT_Event {
    const char *function;
    const void *from; /* copied into the buffer, or NULL */
    void *to;         /* copied out of the buffer, or NULL */
    int is_by_rows;
    struct PJRT_Buffer *buffer;
    int code; /* of the run, which has happened */
    char message[WHY_SIZE];
};

static int alive, compiled;
static int64_t used_bytes;
static char options[256];

int fake_pjrt_alive(void)
{
    return alive;
}

int fake_pjrt_compiled(void)
{
    return compiled;
}

const char *fake_pjrt_options(void)
{
    return options;
}

/* ---------------------------------------------------------------- failing */

static void *make(size_t size)
{
    void *object = calloc(1, size);
    if (object == NULL) {
        abort();
    }
    alive++;
    return object;
}

static void end(void *object)
{
    if (object != NULL) {
        alive--;
        free(object);
    }
}

/* Copies what FAKE_PJRT has behind the word. Returns 0 when the variable has no such word. */
static int has_word(const char *word, char ret_rest[64])
{
    const char *words = getenv("FAKE_PJRT");
    const size_t length = strlen(word);
    for (const char *at = words; at != NULL && *at != '\0'; at += strspn(at, " ")) {
        const size_t next = strcspn(at, " ");
        if (strncmp(at, word, length) == 0 && (at[length] == '\0' || strchr(" :", at[length]))) {
            const size_t from = at[length] == ':' ? length + 1 : length;
            (void)snprintf(ret_rest, 64, "%.*s", (int)(next - from), at + from);
            return 1;
        }
        at += next;
    }
    return 0;
}

/* Returns the code behind "WORD:FUNCTION:", or 0. */
static int code_for(const char *word, const char *function)
{
    char whole[96];
    char rest[64];
    (void)snprintf(whole, sizeof whole, "%s:%s", word, function);
    return has_word(whole, rest) ? (rest[0] != '\0' ? atoi(rest) : PJRT_INTERNAL) : 0;
}

static struct PJRT_Error *error_of(int code, const char *message)
{
    struct PJRT_Error *error = make(sizeof *error);
    error->code = code;
    (void)snprintf(error->message, sizeof error->message, "%s", message);
    return error;
}

/* Begins each function: compares the size of its struct with that of version 0.113, and fails or
 * hangs when it is told to. */
static struct PJRT_Error *begin(const char *function, const void *arguments, size_t bytes)
{
    size_t size;
    memcpy(&size, arguments, sizeof size);
    while (code_for("hang", function) != 0) {
        (void)pause();
    }
    if (size < bytes) {
        return error_of(PJRT_INVALID_ARGUMENT, "the struct is too small");
    }
    const int code = code_for("fail", function);
    return code != 0 ? error_of(code, "the fake\nlibrary fails") : NULL;
}

#define BEGIN(bytes)                                                                               \
    do {                                                                                           \
        struct PJRT_Error *error = begin(__func__, arguments, (bytes));                            \
        if (error != NULL) {                                                                       \
            return error;                                                                          \
        }                                                                                          \
    } while (0)

#define FUNCTION(name, type) static struct PJRT_Error *name(struct type *arguments)

/* ---------------------------------------------------------------- errors and events */

static void PJRT_Error_Destroy(struct pjrt_error_destroy *arguments)
{
    end(arguments->error);
}

static void PJRT_Error_Message(struct pjrt_error_message *arguments)
{
    arguments->message = arguments->error->message;
    arguments->message_size = strlen(arguments->error->message);
}

FUNCTION(PJRT_Error_GetCode, pjrt_error_code)
{
    BEGIN(28);
    arguments->code = arguments->error->code;
    return NULL;
}

FUNCTION(PJRT_Plugin_Initialize, pjrt_plugin_initialize)
{
    BEGIN(16);
    return NULL;
}

FUNCTION(PJRT_Event_Destroy, pjrt_event)
{
    BEGIN(24);
    end(arguments->event);
    return NULL;
}

/* Copies between rows and columns; other arrays have one order alone. */
static void copy(const struct mlir_tensor *shape, const char *from, char *to, int is_to_rows)
{
    const size_t rows = shape->dimension_count == 2 ? (size_t)shape->shape[0] : 1;
    const size_t columns = shape->dimension_count == 2 ? (size_t)shape->shape[1] : 1;
    const size_t bytes = rows * columns == 0 ? 0 : shape->size / (rows * columns);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j++) {
            const size_t by_rows = (i * columns + j) * bytes;
            const size_t by_columns = (j * rows + i) * bytes;
            memcpy(to + (is_to_rows ? by_rows : by_columns),
                   from + (is_to_rows ? by_columns : by_rows), bytes);
        }
    }
}

FUNCTION(PJRT_Event_Await, pjrt_event)
{
    BEGIN(24);
    struct PJRT_Event *event = arguments->event;
    const int code = code_for("event", event->function);
    if (code != 0) {
        return error_of(code, "the fake event fails");
    }
    if (event->from != NULL) {
        copy(&event->buffer->tensor, event->from, event->buffer->tensor.data, 0);
    }
    if (event->to != NULL && event->is_by_rows) {
        copy(&event->buffer->tensor, event->buffer->tensor.data, event->to, 1);
    } else if (event->to != NULL) {
        memcpy(event->to, event->buffer->tensor.data, event->buffer->tensor.size);
    }
    return event->code != 0 ? error_of(event->code, event->message) : NULL;
}

/* ---------------------------------------------------------------- the client */

static void note_options(const struct pjrt_client_create *arguments)
{
    size_t used = 0;
    options[0] = '\0';
    for (size_t i = 0; i < arguments->option_count; i++) {
        const struct pjrt_value *value = &arguments->options[i];
        used += (size_t)snprintf(options + used, sizeof options - used, "%s%.*s=", i > 0 ? " " : "",
                                 (int)value->name_size, value->name);
        used += (size_t)(value->kind == PJRT_VALUE_INT64
                             ? snprintf(options + used, sizeof options - used, "#%lld",
                                        (long long)value->value.number)
                         : value->kind == PJRT_VALUE_BOOL
                             ? snprintf(options + used, sizeof options - used, "?%d",
                                        value->value.truth)
                             : snprintf(options + used, sizeof options - used, "%.*s",
                                        (int)value->value_size, value->value.text));
    }
}

FUNCTION(PJRT_Client_Create, pjrt_client_create)
{
    char rest[64];
    BEGIN(88);
    note_options(arguments);
    if (has_word("print", rest)) {
        (void)puts("the library has a word to say");
        (void)fflush(stdout);
    }
    struct PJRT_Client *client = make(sizeof *client);
    client->count = has_word("devices", rest) ? (size_t)atoi(rest) : 1;
    for (size_t i = 0; i < client->count; i++) {
        client->devices[i].description.id = FIRST_ID + (int)i;
        client->list[i] = &client->devices[i];
    }
    (void)snprintf(client->platform, sizeof client->platform, "%.31s",
                   has_word("platform", rest) ? rest : "cpu");
    arguments->client = client;
    return NULL;
}

FUNCTION(PJRT_Client_Destroy, pjrt_client_destroy)
{
    BEGIN(24);
    end(arguments->client);
    return NULL;
}

FUNCTION(PJRT_Client_PlatformName, pjrt_client_text)
{
    BEGIN(40);
    arguments->text = arguments->client->platform;
    arguments->size = strlen(arguments->text);
    return NULL;
}

FUNCTION(PJRT_Client_AddressableDevices, pjrt_client_devices)
{
    BEGIN(40);
    arguments->devices = arguments->client->list;
    arguments->count = arguments->client->count;
    return NULL;
}

FUNCTION(PJRT_Device_GetDescription, pjrt_device_description)
{
    BEGIN(32);
    arguments->description = &arguments->device->description;
    return NULL;
}

FUNCTION(PJRT_DeviceDescription_Id, pjrt_description_id)
{
    BEGIN(28);
    arguments->id = arguments->description->id;
    return NULL;
}

FUNCTION(PJRT_DeviceDescription_Kind, pjrt_description_kind)
{
    BEGIN(40);
    arguments->kind = "Fake v1 (lite)";
    arguments->kind_size = strlen(arguments->kind);
    return NULL;
}

FUNCTION(PJRT_Device_MemoryStats, pjrt_memory_stats)
{
    char rest[64];
    BEGIN(201);
    arguments->bytes_in_use = used_bytes;
    arguments->bytes_limit =
        (struct pjrt_figure){.value = LIMIT_BYTES, .is_set = !has_word("tight", rest)};
    return NULL;
}

/* ---------------------------------------------------------------- programs */

FUNCTION(PJRT_Client_Compile, pjrt_client_compile)
{
    char why[WHY_SIZE];
    uint64_t id = 0;
    BEGIN(56);
    const struct pjrt_program_code *code = arguments->program;
    if (code->struct_size < 48 || code->format_size != 4 || memcmp(code->format, "mlir", 4) != 0) {
        return error_of(PJRT_UNIMPLEMENTED, "the format is not mlir");
    }
    if (code->code[code->code_size] != '\0') { /* a parser of text may rely on it */
        return error_of(PJRT_INVALID_ARGUMENT, "no NUL follows the program");
    }
    if (!mlir_model_device(arguments->options, arguments->options_size, &id) || id < FIRST_ID ||
        id >= FIRST_ID + arguments->client->count) {
        return error_of(PJRT_INVALID_ARGUMENT, "the options are not those of one device");
    }
    struct PJRT_LoadedExecutable *loaded = make(sizeof *loaded);
    if (mlir_model_read(code->code, code->code_size, &loaded->program, why, sizeof why) !=
        MLIR_OK) {
        end(loaded);
        return error_of(PJRT_INVALID_ARGUMENT, why);
    }
    compiled++;
    arguments->executable = loaded;
    return NULL;
}

FUNCTION(PJRT_LoadedExecutable_Destroy, pjrt_loaded_destroy)
{
    BEGIN(24);
    end(arguments->executable);
    return NULL;
}

FUNCTION(PJRT_LoadedExecutable_GetExecutable, pjrt_loaded_executable)
{
    BEGIN(32);
    struct PJRT_Executable *executable = make(sizeof *executable);
    executable->output_count = arguments->loaded->program.output_count;
    arguments->executable = executable;
    return NULL;
}

FUNCTION(PJRT_Executable_NumOutputs, pjrt_executable_outputs)
{
    BEGIN(32);
    arguments->count = arguments->executable->output_count;
    return NULL;
}

FUNCTION(PJRT_Executable_Destroy, pjrt_executable_destroy)
{
    BEGIN(24);
    end(arguments->executable);
    return NULL;
}

/* ---------------------------------------------------------------- buffers and runs */

static struct PJRT_Buffer *make_buffer(const struct mlir_tensor *shape)
{
    struct PJRT_Buffer *buffer = make(sizeof *buffer);
    buffer->tensor = *shape;
    buffer->tensor.data = calloc(1, shape->size + 1);
    if (buffer->tensor.data == NULL) {
        abort();
    }
    used_bytes += (int64_t)shape->size;
    return buffer;
}

FUNCTION(PJRT_Client_BufferFromHostBuffer, pjrt_from_host)
{
    BEGIN(120);
    struct mlir_tensor shape = {.type = arguments->type,
                                .dimension_count = arguments->dimension_count,
                                .size = mlir_model_item_bytes(arguments->type)};
    if (arguments->semantics != PJRT_HOST_IMMUTABLE_UNTIL_TRANSFER ||
        arguments->byte_stride_count != 0 || arguments->device == NULL) {
        return error_of(PJRT_UNIMPLEMENTED, "the fake takes whole rows, until their event");
    }
    for (size_t i = 0; i < shape.dimension_count; i++) {
        shape.shape[i] = arguments->shape[i];
        shape.size *= (size_t)shape.shape[i];
    }
    struct PJRT_Event *event = make(sizeof *event);
    arguments->buffer = make_buffer(&shape);
    *event = (struct PJRT_Event){
        .function = __func__, .from = arguments->data, .buffer = arguments->buffer};
    arguments->done = event;
    return NULL;
}

FUNCTION(PJRT_Buffer_Destroy, pjrt_buffer_destroy)
{
    BEGIN(24);
    used_bytes -= (int64_t)arguments->buffer->tensor.size;
    free(arguments->buffer->tensor.data);
    end(arguments->buffer);
    return NULL;
}

FUNCTION(PJRT_Buffer_ElementType, pjrt_buffer_type)
{
    BEGIN(28);
    arguments->type = arguments->buffer->tensor.type;
    return NULL;
}

FUNCTION(PJRT_Buffer_Dimensions, pjrt_buffer_shape)
{
    BEGIN(40);
    arguments->shape = arguments->buffer->tensor.shape;
    arguments->dimension_count = arguments->buffer->tensor.dimension_count;
    return NULL;
}

static int is_by_rows(const struct pjrt_layout *layout, size_t dimension_count)
{
    int good = layout != NULL && layout->struct_size >= 76 && layout->kind == PJRT_LAYOUT_TILED &&
               layout->tiled.minor_to_major_count == dimension_count &&
               layout->tiled.tile_count == 0;
    for (size_t i = 0; good && i < dimension_count; i++) {
        good = layout->tiled.minor_to_major[i] == (int64_t)(dimension_count - 1 - i);
    }
    return good;
}

FUNCTION(PJRT_Buffer_ToHostBuffer, pjrt_to_host)
{
    BEGIN(56);
    if (arguments->size < arguments->source->tensor.size) {
        return error_of(PJRT_INVALID_ARGUMENT, "the room is too small");
    }
    struct PJRT_Event *event = make(sizeof *event);
    *event = (struct PJRT_Event){
        .function = __func__,
        .to = arguments->data,
        .is_by_rows = is_by_rows(arguments->layout, arguments->source->tensor.dimension_count),
        .buffer = arguments->source};
    arguments->done = event;
    return NULL;
}

/* Computes the program on the buffers' numbers, row by row. */
static enum mlir_status compute(const struct pjrt_execute *arguments, struct mlir_tensor *outputs,
                                char *why)
{
    struct mlir_tensor inputs[MLIR_VALUES];
    const size_t count =
        arguments->input_count < MLIR_VALUES ? arguments->input_count : MLIR_VALUES;
    for (size_t i = 0; i < count; i++) {
        const struct mlir_tensor *tensor = &arguments->inputs[0][i]->tensor;
        inputs[i] = *tensor;
        inputs[i].data = malloc(tensor->size + 1);
        if (inputs[i].data == NULL) {
            abort();
        }
        copy(tensor, tensor->data, inputs[i].data, 1);
    }
    const enum mlir_status status = mlir_model_run(&arguments->executable->program, inputs,
                                                   arguments->input_count, outputs, why, WHY_SIZE);
    for (size_t i = 0; i < count; i++) {
        free(inputs[i].data);
    }
    return status;
}

FUNCTION(PJRT_LoadedExecutable_Execute, pjrt_execute)
{
    char why[WHY_SIZE];
    struct mlir_tensor outputs[MLIR_VALUES] = {{.type = 0}};
    const struct mlir_program *program = &arguments->executable->program;
    BEGIN(80);
    if (arguments->options == NULL || arguments->options->struct_size < 144 ||
        arguments->device_count != 1 || arguments->done == NULL) {
        return error_of(PJRT_INVALID_ARGUMENT, "the run is not one of one device");
    }
    const enum mlir_status status = compute(arguments, outputs, why);
    if (status == MLIR_WRONG) {
        return error_of(PJRT_INVALID_ARGUMENT, why);
    }
    for (size_t i = 0; i < program->output_count; i++) {
        const struct mlir_tensor *shape =
            status == MLIR_OK ? &outputs[i] : &program->values[program->outputs[i]];
        struct PJRT_Buffer *buffer = make_buffer(shape);
        if (status == MLIR_OK) {
            copy(shape, outputs[i].data, buffer->tensor.data, 0);
            free(outputs[i].data);
        }
        arguments->outputs[0][i] = buffer;
    }
    struct PJRT_Event *event = make(sizeof *event);
    *event = (struct PJRT_Event){.function = __func__,
                                 .code = status == MLIR_LOST ? PJRT_UNAVAILABLE : 0};
    (void)snprintf(event->message, sizeof event->message, "%s", status == MLIR_LOST ? why : "");
    arguments->done[0] = event;
    return NULL;
}

/* ---------------------------------------------------------------- the table */

/* The places of functions that bourse-pjrt does not use stay empty. */
const struct pjrt_api *GetPjrtApi(void)
{
    static struct pjrt_api api;
    char rest[64];
    api = (struct pjrt_api){.struct_size = sizeof api + 8 * 50,
                            .version = {.struct_size = sizeof api.version, .minor = 113}};
#define FILL(name, arguments)                                                                      \
    if (code_for("lacks", #name) == 0) {                                                           \
        api.name = name;                                                                           \
    }
#define LEAVE(name)
    PJRT_TABLE(FILL, FILL, FILL, LEAVE)
#undef FILL
#undef LEAVE
    if (has_word("version", rest)) {
        (void)sscanf(rest, "%d.%d", &api.version.major, &api.version.minor);
    }
    if (has_word("bytes", rest)) {
        api.struct_size = (size_t)atoi(rest);
    }
    return has_word("none", rest) ? NULL : &api;
}
