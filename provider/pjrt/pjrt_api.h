/* provider/pjrt/pjrt_api.h has the C interface of PJRT, by which XLA reaches devices such as TPUs,
 * as far as bourse-pjrt uses it.
 *
 * A PJRT library exports one function, GetPjrtApi, which returns a table of functions. Nothing of
 * bourse is built with the headers of XLA: the order and the types here are those of the binary
 * interface, written down by us from versions 0.33 and 0.113, which agree in all that is used here.
 *
 * Rules of the interface. Each function takes one struct, which begins with its size: the end of
 * the last member that the caller knows. A library refuses a struct that is smaller than its own,
 * and ignores what it does not know of a larger one. So the structs here are the newest known, and
 * members that are not used are zero. Later minor versions only append to the table and the
 * structs. Another major version is another interface.
 *
 * Names that begin with PJRT_ are the interface's own. */
#ifndef BOURSE_PROVIDER_PJRT_PJRT_API_H
#define BOURSE_PROVIDER_PJRT_PJRT_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PJRT_MAJOR = 0,
    PJRT_MINOR_LEAST = 57, /* of November 2024, which rearranged the end of the table */
};

/* Codes of errors. */
enum {
    PJRT_CANCELLED = 1,
    PJRT_UNKNOWN = 2,
    PJRT_INVALID_ARGUMENT = 3,
    PJRT_DEADLINE_EXCEEDED = 4,
    PJRT_ABORTED = 10,
    PJRT_UNIMPLEMENTED = 12,
    PJRT_INTERNAL = 13,
    PJRT_UNAVAILABLE = 14,
    PJRT_DATA_LOSS = 15,
    PJRT_CODES = 17,
};

/* Types of elements. */
enum pjrt_type {
    PJRT_TYPE_INVALID,
    PJRT_TYPE_PRED,
    PJRT_TYPE_S8,
    PJRT_TYPE_S16,
    PJRT_TYPE_S32,
    PJRT_TYPE_S64,
    PJRT_TYPE_U8,
    PJRT_TYPE_U16,
    PJRT_TYPE_U32,
    PJRT_TYPE_U64,
    PJRT_TYPE_F16,
    PJRT_TYPE_F32,
    PJRT_TYPE_F64,
    PJRT_TYPE_BF16,
    PJRT_TYPE_C64,
    PJRT_TYPE_C128,
};

/* Kinds of named values. */
enum { PJRT_VALUE_TEXT = 0, PJRT_VALUE_INT64 = 1, PJRT_VALUE_BOOL = 4 };

/* The caller leaves the bytes as they are until the event of the transfer. */
enum { PJRT_HOST_IMMUTABLE_UNTIL_TRANSFER = 1 };
/* The order of the elements is given by a list of dimensions, and tiles. */
enum { PJRT_LAYOUT_TILED = 0 };

struct PJRT_Error;
struct PJRT_Event;
struct PJRT_Client;
struct PJRT_Device;
struct PJRT_DeviceDescription;
struct PJRT_Memory;
struct PJRT_Executable;
struct PJRT_LoadedExecutable;
struct PJRT_Buffer;

/* Every struct begins so. */
#define PJRT_HEAD                                                                                  \
    size_t struct_size;                                                                            \
    void *extensions

/* Initialises the size of a struct whose last member is `last`. */
#define PJRT_SIZE(type, last)                                                                      \
    .struct_size = offsetof(struct type, last) + sizeof(((struct type *)NULL)->last)

/* ---------------------------------------------------------------- errors and events */

struct pjrt_error_destroy {
    PJRT_HEAD;
    struct PJRT_Error *error;
};

struct pjrt_error_message {
    PJRT_HEAD;
    const struct PJRT_Error *error;
    const char *message; /* out; lives as long as the error */
    size_t message_size; /* out */
};

struct pjrt_error_code {
    PJRT_HEAD;
    const struct PJRT_Error *error;
    int code; /* out */
};

struct pjrt_plugin_initialize {
    PJRT_HEAD;
};

struct pjrt_event {
    PJRT_HEAD;
    struct PJRT_Event *event;
};

/* ---------------------------------------------------------------- the client */

struct pjrt_value {
    PJRT_HEAD;
    const char *name;
    size_t name_size;
    int kind;
    union {
        const char *text;
        int64_t number;
        bool truth;
    } value;
    size_t value_size; /* bytes of a text, else 1 */
};

struct pjrt_client_create {
    PJRT_HEAD;
    const struct pjrt_value *options;
    size_t option_count;
    void *get, *get_argument; /* of a store of keys that several machines share: none here */
    void *put, *put_argument;
    struct PJRT_Client *client; /* out */
    void *try_get, *try_get_argument;
};

struct pjrt_client_destroy {
    PJRT_HEAD;
    struct PJRT_Client *client;
};

struct pjrt_client_text {
    PJRT_HEAD;
    struct PJRT_Client *client;
    const char *text; /* out; lives as long as the client */
    size_t size;      /* out */
};

struct pjrt_client_devices {
    PJRT_HEAD;
    struct PJRT_Client *client;
    struct PJRT_Device *const *devices; /* out */
    size_t count;                       /* out */
};

struct pjrt_program_code {
    PJRT_HEAD;
    const char *code;
    size_t code_size;
    const char *format;
    size_t format_size;
};

struct pjrt_client_compile {
    PJRT_HEAD;
    struct PJRT_Client *client;
    const struct pjrt_program_code *program;
    const char *options; /* a message CompileOptionsProto of XLA */
    size_t options_size;
    struct PJRT_LoadedExecutable *executable; /* out */
};

struct pjrt_layout {
    PJRT_HEAD;
    struct {
        PJRT_HEAD;
        const int64_t *minor_to_major; /* the dimension whose index runs fastest is first */
        size_t minor_to_major_count;
        const int64_t *tile_dimensions;
        const size_t *tile_counts;
        size_t tile_count;
    } tiled; /* the larger part of a union */
    int kind;
};

struct pjrt_from_host {
    PJRT_HEAD;
    struct PJRT_Client *client;
    const void *data;
    int type;
    const int64_t *shape;
    size_t dimension_count;
    const int64_t *byte_strides;
    size_t byte_stride_count;
    int semantics;
    struct PJRT_Device *device;
    struct PJRT_Memory *memory;
    struct pjrt_layout *device_layout;
    struct PJRT_Event *done;    /* out: `data` may change again */
    struct PJRT_Buffer *buffer; /* out */
};

/* ---------------------------------------------------------------- devices */

struct pjrt_description_id {
    PJRT_HEAD;
    struct PJRT_DeviceDescription *description;
    int id; /* out */
};

struct pjrt_description_kind {
    PJRT_HEAD;
    struct PJRT_DeviceDescription *description;
    const char *kind; /* out; lives as long as the device */
    size_t kind_size; /* out */
};

struct pjrt_device_description {
    PJRT_HEAD;
    struct PJRT_Device *device;
    struct PJRT_DeviceDescription *description; /* out */
};

/* A figure of the device's memory. */
struct pjrt_figure {
    int64_t value;
    bool is_set;
};

struct pjrt_memory_stats {
    PJRT_HEAD;
    struct PJRT_Device *device;
    int64_t bytes_in_use; /* out, as are all that follow */
    struct pjrt_figure peak_bytes_in_use, allocations, largest_allocation, bytes_limit;
    struct pjrt_figure bytes_reserved, peak_bytes_reserved, bytes_reservable_limit;
    struct pjrt_figure largest_free_block, pool_bytes, peak_pool_bytes, peak_allocated_bytes;
};

/* ---------------------------------------------------------------- programs */

struct pjrt_executable_destroy {
    PJRT_HEAD;
    struct PJRT_Executable *executable;
};

struct pjrt_executable_outputs {
    PJRT_HEAD;
    struct PJRT_Executable *executable;
    size_t count; /* out */
};

struct pjrt_loaded_destroy {
    PJRT_HEAD;
    struct PJRT_LoadedExecutable *executable;
};

struct pjrt_loaded_executable {
    PJRT_HEAD;
    struct PJRT_LoadedExecutable *loaded;
    struct PJRT_Executable *executable; /* out; the caller destroys it */
};

struct pjrt_execute_options {
    PJRT_HEAD;
    void *send_callbacks, *receive_callbacks;
    size_t send_count, receive_count;
    int launch;
    const int64_t *kept_inputs; /* places of inputs that the program must not overwrite */
    size_t kept_input_count;
    void *context;
    const char *call_location;
    size_t task_count;
    int *tasks;
    int64_t *incarnations;
    void *slices;
    bool has_row_major_callbacks;
    void *output_callbacks;
    size_t output_callback_count;
};

struct pjrt_execute {
    PJRT_HEAD;
    struct PJRT_LoadedExecutable *executable;
    struct pjrt_execute_options *options;
    struct PJRT_Buffer *const *const *inputs; /* by device, then by place */
    size_t device_count;
    size_t input_count;
    struct PJRT_Buffer **const *outputs; /* likewise; the caller's lists are filled */
    struct PJRT_Event **done;            /* by device; filled unless the call fails */
    struct PJRT_Device *device;          /* NULL: the one that the program was compiled for */
};

/* ---------------------------------------------------------------- buffers */

struct pjrt_buffer_destroy {
    PJRT_HEAD;
    struct PJRT_Buffer *buffer;
};

struct pjrt_buffer_type {
    PJRT_HEAD;
    struct PJRT_Buffer *buffer;
    int type; /* out */
};

struct pjrt_buffer_shape {
    PJRT_HEAD;
    struct PJRT_Buffer *buffer;
    const int64_t *shape;   /* out; lives as long as the buffer */
    size_t dimension_count; /* out */
};

struct pjrt_to_host {
    PJRT_HEAD;
    struct PJRT_Buffer *source;
    struct pjrt_layout *layout; /* NULL: as it lies on the device */
    void *data;
    size_t size;
    struct PJRT_Event *done; /* out */
};

/* ---------------------------------------------------------------- the table */

/* The functions in their order. CALL(NAME, STRUCT) is one that is used, MAY(NAME, STRUCT) one that
 * a library may lack, PASS(NAME, STRUCT) one without a result, GAP(NAME) one that is not used. The
 * table of a library goes on behind the last one. */
#define PJRT_TABLE(CALL, MAY, PASS, GAP)                                                           \
    PASS(PJRT_Error_Destroy, pjrt_error_destroy)                                                   \
    PASS(PJRT_Error_Message, pjrt_error_message)                                                   \
    CALL(PJRT_Error_GetCode, pjrt_error_code)                                                      \
    MAY(PJRT_Plugin_Initialize, pjrt_plugin_initialize)                                            \
    GAP(PJRT_Plugin_Attributes)                                                                    \
    CALL(PJRT_Event_Destroy, pjrt_event)                                                           \
    GAP(PJRT_Event_IsReady)                                                                        \
    GAP(PJRT_Event_Error)                                                                          \
    CALL(PJRT_Event_Await, pjrt_event)                                                             \
    GAP(PJRT_Event_OnReady)                                                                        \
    CALL(PJRT_Client_Create, pjrt_client_create)                                                   \
    CALL(PJRT_Client_Destroy, pjrt_client_destroy)                                                 \
    CALL(PJRT_Client_PlatformName, pjrt_client_text)                                               \
    GAP(PJRT_Client_ProcessIndex)                                                                  \
    GAP(PJRT_Client_PlatformVersion)                                                               \
    GAP(PJRT_Client_Devices)                                                                       \
    CALL(PJRT_Client_AddressableDevices, pjrt_client_devices)                                      \
    GAP(PJRT_Client_LookupDevice)                                                                  \
    GAP(PJRT_Client_LookupAddressableDevice)                                                       \
    GAP(PJRT_Client_AddressableMemories)                                                           \
    CALL(PJRT_Client_Compile, pjrt_client_compile)                                                 \
    GAP(PJRT_Client_DefaultDeviceAssignment)                                                       \
    CALL(PJRT_Client_BufferFromHostBuffer, pjrt_from_host)                                         \
    CALL(PJRT_DeviceDescription_Id, pjrt_description_id)                                           \
    GAP(PJRT_DeviceDescription_ProcessIndex)                                                       \
    GAP(PJRT_DeviceDescription_Attributes)                                                         \
    CALL(PJRT_DeviceDescription_Kind, pjrt_description_kind)                                       \
    GAP(PJRT_DeviceDescription_DebugString)                                                        \
    GAP(PJRT_DeviceDescription_ToString)                                                           \
    CALL(PJRT_Device_GetDescription, pjrt_device_description)                                      \
    GAP(PJRT_Device_IsAddressable)                                                                 \
    GAP(PJRT_Device_LocalHardwareId)                                                               \
    GAP(PJRT_Device_AddressableMemories)                                                           \
    GAP(PJRT_Device_DefaultMemory)                                                                 \
    MAY(PJRT_Device_MemoryStats, pjrt_memory_stats)                                                \
    GAP(PJRT_Memory_Id)                                                                            \
    GAP(PJRT_Memory_Kind)                                                                          \
    GAP(PJRT_Memory_DebugString)                                                                   \
    GAP(PJRT_Memory_ToString)                                                                      \
    GAP(PJRT_Memory_AddressableByDevices)                                                          \
    CALL(PJRT_Executable_Destroy, pjrt_executable_destroy)                                         \
    GAP(PJRT_Executable_Name)                                                                      \
    GAP(PJRT_Executable_NumReplicas)                                                               \
    GAP(PJRT_Executable_NumPartitions)                                                             \
    CALL(PJRT_Executable_NumOutputs, pjrt_executable_outputs)                                      \
    GAP(PJRT_Executable_SizeOfGeneratedCodeInBytes)                                                \
    GAP(PJRT_Executable_GetCostAnalysis)                                                           \
    GAP(PJRT_Executable_OutputMemoryKinds)                                                         \
    GAP(PJRT_Executable_OptimizedProgram)                                                          \
    GAP(PJRT_Executable_Serialize)                                                                 \
    CALL(PJRT_LoadedExecutable_Destroy, pjrt_loaded_destroy)                                       \
    CALL(PJRT_LoadedExecutable_GetExecutable, pjrt_loaded_executable)                              \
    GAP(PJRT_LoadedExecutable_AddressableDevices)                                                  \
    GAP(PJRT_LoadedExecutable_Delete)                                                              \
    GAP(PJRT_LoadedExecutable_IsDeleted)                                                           \
    CALL(PJRT_LoadedExecutable_Execute, pjrt_execute)                                              \
    GAP(PJRT_Executable_DeserializeAndLoad)                                                        \
    GAP(PJRT_LoadedExecutable_Fingerprint)                                                         \
    CALL(PJRT_Buffer_Destroy, pjrt_buffer_destroy)                                                 \
    CALL(PJRT_Buffer_ElementType, pjrt_buffer_type)                                                \
    CALL(PJRT_Buffer_Dimensions, pjrt_buffer_shape)                                                \
    GAP(PJRT_Buffer_UnpaddedDimensions)                                                            \
    GAP(PJRT_Buffer_DynamicDimensionIndices)                                                       \
    GAP(PJRT_Buffer_GetMemoryLayout)                                                               \
    GAP(PJRT_Buffer_OnDeviceSizeInBytes)                                                           \
    GAP(PJRT_Buffer_Device)                                                                        \
    GAP(PJRT_Buffer_Memory)                                                                        \
    GAP(PJRT_Buffer_Delete)                                                                        \
    GAP(PJRT_Buffer_IsDeleted)                                                                     \
    GAP(PJRT_Buffer_CopyToDevice)                                                                  \
    CALL(PJRT_Buffer_ToHostBuffer, pjrt_to_host)

struct pjrt_version {
    PJRT_HEAD;
    int major, minor;
};

struct pjrt_api {
    PJRT_HEAD;
    struct pjrt_version version;
#define PJRT_CALL(name, arguments) struct PJRT_Error *(*name)(struct arguments *);
#define PJRT_PASS(name, arguments) void (*name)(struct arguments *);
#define PJRT_GAP(name) void *name;
    PJRT_TABLE(PJRT_CALL, PJRT_CALL, PJRT_PASS, PJRT_GAP)
#undef PJRT_CALL
#undef PJRT_PASS
#undef PJRT_GAP
};

enum { PJRT_TEXT_SIZE = 4096 };

/* Says why something did not work. */
struct pjrt_failure {
    bool is_of_device; /* the device or its library failed, and no fault of the job is known */
    int code;          /* the library's; 0: a problem of our own */
    char text[PJRT_TEXT_SIZE];
};

/* Sets a failure that is no error of the library. Returns false. */
__attribute__((format(printf, 2, 3))) bool pjrt_api_refuse(struct pjrt_failure *failure,
                                                           const char *format, ...);

/* Loads the library of this path, or looks in the program itself when it is NULL, and checks that
 * its table is of a version that is known and has all that is used. Returns the handle for dlclose,
 * and the table in *ret_api, or NULL with the failure. */
void *pjrt_api_load(const char *library, const struct pjrt_api **ret_api,
                    struct pjrt_failure *ret_failure);

/* Returns true for no error. Otherwise it notes the name of the function, and the error's code and
 * message, and destroys the error. */
bool pjrt_api_check(const struct pjrt_api *api, const char *function, struct PJRT_Error *error,
                    struct pjrt_failure *ret_failure);

/* Calls a function of the table, and checks its error. */
#define PJRT_CALL(api, name, arguments, failure)                                                   \
    pjrt_api_check((api), #name, (api)->name(arguments), (failure))

/* Waits for the event, if it is not NULL, and destroys it. Returns false with the error that the
 * event brought. `function` is the name of the call that gave the event. */
bool pjrt_api_await(const struct pjrt_api *api, const char *function, struct PJRT_Event *event,
                    struct pjrt_failure *ret_failure);

/* Returns the name of a code, as in "INVALID_ARGUMENT"; never NULL. */
const char *pjrt_api_code(int code);

#endif
