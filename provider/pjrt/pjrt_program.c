#include "provider/pjrt/pjrt_program.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

size_t pjrt_program_item_bytes(int type)
{
    static const size_t bytes[] = {
        [PJRT_TYPE_PRED] = 1, [PJRT_TYPE_S8] = 1,  [PJRT_TYPE_S16] = 2,  [PJRT_TYPE_S32] = 4,
        [PJRT_TYPE_S64] = 8,  [PJRT_TYPE_U8] = 1,  [PJRT_TYPE_U16] = 2,  [PJRT_TYPE_U32] = 4,
        [PJRT_TYPE_U64] = 8,  [PJRT_TYPE_F16] = 2, [PJRT_TYPE_F32] = 4,  [PJRT_TYPE_F64] = 8,
        [PJRT_TYPE_BF16] = 2, [PJRT_TYPE_C64] = 8, [PJRT_TYPE_C128] = 16};
    return type >= 0 && (size_t)type < sizeof bytes / sizeof bytes[0] ? bytes[type] : 0;
}

/* ---------------------------------------------------------------- compiling */

/* Bytes of a message of Protocol Buffers, written in place. */
struct message {
    unsigned char bytes[64];
    size_t size;
};

static void add_number(struct message *message, unsigned field, uint64_t number)
{
    message->bytes[message->size++] = (unsigned char)(field << 3);
    for (; number >= 0x80; number >>= 7) {
        message->bytes[message->size++] = (unsigned char)(number | 0x80);
    }
    message->bytes[message->size++] = (unsigned char)number;
}

static void add_message(struct message *message, unsigned field, const struct message *part)
{
    message->bytes[message->size++] = (unsigned char)(field << 3 | 2);
    message->bytes[message->size++] = (unsigned char)part->size; /* all parts are short */
    memcpy(message->bytes + message->size, part->bytes, part->size);
    message->size += part->size;
}

/* Writes XLA's CompileOptionsProto for one run at a time on one device. The numbers of the fields
 * are those of XLA's compile_options.proto and xla_data.proto. */
static struct message options_for(int device_id)
{
    struct message devices = {.size = 0};
    struct message assignment = {.size = 0};
    struct message build = {.size = 0};
    struct message options = {.size = 0};
    add_number(&devices, 1, (uint64_t)(int64_t)device_id); /* replica_device_ids */
    add_number(&assignment, 1, 1);                         /* replica_count */
    add_number(&assignment, 2, 1);                         /* computation_count */
    add_message(&assignment, 3, &devices);                 /* computation_devices */
    add_number(&build, 1, UINT64_MAX);                     /* device_ordinal: -1, not set */
    add_number(&build, 4, 1);                              /* num_replicas */
    add_number(&build, 5, 1);                              /* num_partitions */
    add_message(&build, 9, &assignment);                   /* device_assignment */
    add_message(&options, 3, &build);                      /* executable_build_options */
    return options;
}

static bool count_outputs(const struct pjrt_client *client, struct pjrt_program *program,
                          struct pjrt_failure *failure)
{
    struct pjrt_failure ignored;
    struct pjrt_loaded_executable of = {PJRT_SIZE(pjrt_loaded_executable, executable),
                                        .loaded = program->loaded};
    if (!PJRT_CALL(client->api, PJRT_LoadedExecutable_GetExecutable, &of, failure)) {
        return false;
    }
    struct pjrt_executable_outputs outputs = {PJRT_SIZE(pjrt_executable_outputs, count),
                                              .executable = of.executable};
    struct pjrt_executable_destroy destroy = {PJRT_SIZE(pjrt_executable_destroy, executable),
                                              .executable = of.executable};
    const bool good = PJRT_CALL(client->api, PJRT_Executable_NumOutputs, &outputs, failure);
    const bool is_ended =
        PJRT_CALL(client->api, PJRT_Executable_Destroy, &destroy, good ? failure : &ignored);
    program->output_count = outputs.count;
    return good && is_ended;
}

bool pjrt_program_compile(const struct pjrt_client *client, const char *code, size_t size,
                          struct pjrt_program *ret_program, struct pjrt_failure *ret_failure)
{
    static const char format[] = "mlir";
    assert(code[size] == '\0');
    const struct message options = options_for(client->device_id);
    const struct pjrt_program_code program = {PJRT_SIZE(pjrt_program_code, format_size),
                                              .code = code, .code_size = size, .format = format,
                                              .format_size = sizeof format - 1};
    struct pjrt_client_compile arguments = {
        PJRT_SIZE(pjrt_client_compile, executable), .client = client->client, .program = &program,
        .options = (const char *)options.bytes, .options_size = options.size};
    if (!PJRT_CALL(client->api, PJRT_Client_Compile, &arguments, ret_failure)) {
        /* A compiler that stumbles over a program stumbles over it everywhere. */
        ret_failure->is_of_device = ret_failure->is_of_device &&
                                    ret_failure->code != PJRT_INTERNAL &&
                                    ret_failure->code != PJRT_UNKNOWN;
        return false;
    }
    struct pjrt_program made = {.loaded = arguments.executable};
    if (!count_outputs(client, &made, ret_failure)) {
        pjrt_program_destroy(client, &made);
        return false;
    }
    if (made.output_count > PJRT_ARRAYS_MAX) {
        pjrt_program_destroy(client, &made);
        return pjrt_api_refuse(ret_failure, "the program has %zu outputs; at most %d are taken",
                               made.output_count, PJRT_ARRAYS_MAX);
    }
    *ret_program = made;
    return true;
}

void pjrt_program_destroy(const struct pjrt_client *client, struct pjrt_program *program)
{
    if (program->loaded != NULL) {
        struct pjrt_failure ignored; /* the program is done with */
        struct pjrt_loaded_destroy arguments = {PJRT_SIZE(pjrt_loaded_destroy, executable),
                                                .executable = program->loaded};
        (void)PJRT_CALL(client->api, PJRT_LoadedExecutable_Destroy, &arguments, &ignored);
    }
    *program = (struct pjrt_program){.loaded = NULL};
}

/* ---------------------------------------------------------------- running */

void pjrt_program_free(const struct pjrt_client *client, struct pjrt_buffers *buffers)
{
    for (size_t i = 0; i < buffers->count; i++) {
        struct pjrt_failure ignored; /* the buffer is done with */
        struct pjrt_buffer_destroy arguments = {PJRT_SIZE(pjrt_buffer_destroy, buffer),
                                                .buffer = buffers->items[i]};
        (void)PJRT_CALL(client->api, PJRT_Buffer_Destroy, &arguments, &ignored);
    }
    buffers->count = 0;
}

bool pjrt_program_put(const struct pjrt_client *client, const struct pjrt_array *array,
                      struct pjrt_buffers *buffers, struct pjrt_failure *ret_failure)
{
    struct pjrt_from_host arguments = {PJRT_SIZE(pjrt_from_host, buffer),
                                       .client = client->client,
                                       .data = array->data,
                                       .type = array->type,
                                       .shape = array->shape,
                                       .dimension_count = array->dimension_count,
                                       .semantics = PJRT_HOST_IMMUTABLE_UNTIL_TRANSFER,
                                       .device = client->device};
    if (buffers->count == PJRT_ARRAYS_MAX) {
        return pjrt_api_refuse(ret_failure, "more than %d arrays", PJRT_ARRAYS_MAX);
    }
    if (!PJRT_CALL(client->api, PJRT_Client_BufferFromHostBuffer, &arguments, ret_failure)) {
        return false;
    }
    buffers->items[buffers->count++] = arguments.buffer;
    return pjrt_api_await(client->api, "PJRT_Client_BufferFromHostBuffer", arguments.done,
                          ret_failure);
}

bool pjrt_program_execute(const struct pjrt_client *client, const struct pjrt_program *program,
                          const struct pjrt_buffers *inputs, struct pjrt_buffers *outputs,
                          struct pjrt_failure *ret_failure)
{
    struct pjrt_execute_options options = {PJRT_SIZE(pjrt_execute_options, output_callback_count)};
    struct PJRT_Buffer *const *const input_lists[] = {inputs->items};
    struct PJRT_Buffer **const output_lists[] = {outputs->items};
    struct PJRT_Event *done[] = {NULL};
    struct pjrt_execute arguments = {PJRT_SIZE(pjrt_execute, device),
                                     .executable = program->loaded,
                                     .options = &options,
                                     .inputs = input_lists,
                                     .device_count = 1,
                                     .input_count = inputs->count,
                                     .outputs = output_lists,
                                     .done = done};
    if (!PJRT_CALL(client->api, PJRT_LoadedExecutable_Execute, &arguments, ret_failure)) {
        return false;
    }
    outputs->count = program->output_count;
    if (!pjrt_api_await(client->api, "PJRT_LoadedExecutable_Execute", done[0], ret_failure)) {
        pjrt_program_free(client, outputs);
        return false;
    }
    return true;
}

/* Reads the type and the shape of the buffer, and counts its bytes. */
static bool look_at(const struct pjrt_client *client, struct PJRT_Buffer *buffer,
                    struct pjrt_array *array, struct pjrt_failure *failure)
{
    struct pjrt_buffer_type type = {PJRT_SIZE(pjrt_buffer_type, type), .buffer = buffer};
    struct pjrt_buffer_shape shape = {PJRT_SIZE(pjrt_buffer_shape, dimension_count),
                                      .buffer = buffer};
    if (!PJRT_CALL(client->api, PJRT_Buffer_ElementType, &type, failure) ||
        !PJRT_CALL(client->api, PJRT_Buffer_Dimensions, &shape, failure)) {
        return false;
    }
    array->type = type.type;
    array->dimension_count = shape.dimension_count;
    array->size = pjrt_program_item_bytes(type.type);
    if (array->size == 0) {
        return pjrt_api_refuse(failure,
                               "its elements are of PJRT's type %d, which is not known "
                               "here: convert them in the program",
                               type.type);
    }
    if (shape.dimension_count > PJRT_DIMENSIONS) {
        return pjrt_api_refuse(failure,
                               "it has %zu dimensions, and at most %d are written: reshape "
                               "it in the program",
                               shape.dimension_count, PJRT_DIMENSIONS);
    }
    for (size_t i = 0; i < shape.dimension_count; i++) {
        const int64_t extent = shape.shape[i];
        if (extent < 0 || __builtin_mul_overflow(array->size, (size_t)extent, &array->size)) {
            return pjrt_api_refuse(failure, "the library gives it an impossible shape");
        }
        array->shape[i] = extent;
    }
    return true;
}

bool pjrt_program_get(const struct pjrt_client *client, struct PJRT_Buffer *buffer,
                      struct pjrt_array *ret_array, struct pjrt_failure *ret_failure)
{
    struct pjrt_array array = {.data = NULL};
    int64_t order[PJRT_DIMENSIONS];
    if (!look_at(client, buffer, &array, ret_failure)) {
        return false;
    }
    for (size_t i = 0; i < array.dimension_count; i++) {
        order[i] = (int64_t)(array.dimension_count - 1 - i);
    }
    struct pjrt_layout rows = {PJRT_SIZE(pjrt_layout, kind),
                               .tiled = {.struct_size = sizeof rows.tiled,
                                         .minor_to_major = order,
                                         .minor_to_major_count = array.dimension_count},
                               .kind = PJRT_LAYOUT_TILED};
    array.data = malloc(array.size > 0 ? array.size : 1);
    if (array.data == NULL) {
        return pjrt_api_refuse(ret_failure, "no memory for an array of %zu bytes", array.size);
    }
    struct pjrt_to_host arguments = {PJRT_SIZE(pjrt_to_host, done), .source = buffer,
                                     .layout = &rows, .data = array.data, .size = array.size};
    if (!PJRT_CALL(client->api, PJRT_Buffer_ToHostBuffer, &arguments, ret_failure) ||
        !pjrt_api_await(client->api, "PJRT_Buffer_ToHostBuffer", arguments.done, ret_failure)) {
        free(array.data);
        return false;
    }
    *ret_array = array;
    return true;
}
