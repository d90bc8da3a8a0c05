/* The structs, numbers and the table of provider/pjrt/pjrt_api.h are those of XLA's pjrt_c_api.h.
 * The build finds that header where XLA is unpacked; elsewhere the program is skipped. */
#include <stdio.h>

#ifdef BOURSE_PJRT_HEADER
#include <assert.h>
#include <xla/pjrt/c/pjrt_c_api.h>

#include "provider/pjrt/pjrt_api.h"

/* A struct of ours is as long as theirs, or longer, as that of a later version. */
#define SIZE(ours, theirs, last)                                                                   \
    static_assert(offsetof(struct ours, last) + sizeof(((struct ours *)NULL)->last) >=             \
                      theirs##_STRUCT_SIZE,                                                        \
                  #theirs);
#define AT(ours, our_member, theirs, member)                                                       \
    static_assert(offsetof(struct ours, our_member) == offsetof(theirs, member) &&                 \
                      sizeof(((struct ours *)NULL)->our_member) ==                                 \
                          sizeof(((theirs *)NULL)->member),                                        \
                  #theirs "." #member);
#define IS(ours, theirs) static_assert((int)(ours) == (int)(theirs), #theirs);

/* Every function of the table has its place. */
#define PLACE(name, arguments)                                                                     \
    static_assert(offsetof(struct pjrt_api, name) == offsetof(PJRT_Api, name), #name);
#define GAP(name) PLACE(name, )
PJRT_TABLE(PLACE, PLACE, PLACE, GAP)
AT(pjrt_api, version, PJRT_Api, pjrt_api_version)
AT(pjrt_version, major, PJRT_Api_Version, major_version)
AT(pjrt_version, minor, PJRT_Api_Version, minor_version)
IS(PJRT_MAJOR, PJRT_API_MAJOR)
static_assert(PJRT_MINOR_LEAST <= PJRT_API_MINOR, "a version that is spoken");

SIZE(pjrt_error_destroy, PJRT_Error_Destroy_Args, error)
AT(pjrt_error_destroy, error, PJRT_Error_Destroy_Args, error)
SIZE(pjrt_error_message, PJRT_Error_Message_Args, message_size)
AT(pjrt_error_message, error, PJRT_Error_Message_Args, error)
AT(pjrt_error_message, message, PJRT_Error_Message_Args, message)
AT(pjrt_error_message, message_size, PJRT_Error_Message_Args, message_size)
SIZE(pjrt_error_code, PJRT_Error_GetCode_Args, code)
AT(pjrt_error_code, code, PJRT_Error_GetCode_Args, code)
SIZE(pjrt_plugin_initialize, PJRT_Plugin_Initialize_Args, extensions)
SIZE(pjrt_event, PJRT_Event_Await_Args, event)
SIZE(pjrt_event, PJRT_Event_Destroy_Args, event)
AT(pjrt_event, event, PJRT_Event_Await_Args, event)

SIZE(pjrt_value, PJRT_NamedValue, value_size)
AT(pjrt_value, name, PJRT_NamedValue, name)
AT(pjrt_value, name_size, PJRT_NamedValue, name_size)
AT(pjrt_value, kind, PJRT_NamedValue, type)
AT(pjrt_value, value.text, PJRT_NamedValue, string_value)
AT(pjrt_value, value.number, PJRT_NamedValue, int64_value)
AT(pjrt_value, value.truth, PJRT_NamedValue, bool_value)
AT(pjrt_value, value_size, PJRT_NamedValue, value_size)
SIZE(pjrt_client_create, PJRT_Client_Create_Args, try_get_argument)
AT(pjrt_client_create, options, PJRT_Client_Create_Args, create_options)
AT(pjrt_client_create, option_count, PJRT_Client_Create_Args, num_options)
AT(pjrt_client_create, client, PJRT_Client_Create_Args, client)
AT(pjrt_client_create, try_get_argument, PJRT_Client_Create_Args, kv_try_get_user_arg)
SIZE(pjrt_client_destroy, PJRT_Client_Destroy_Args, client)
SIZE(pjrt_client_text, PJRT_Client_PlatformName_Args, size)
AT(pjrt_client_text, text, PJRT_Client_PlatformName_Args, platform_name)
AT(pjrt_client_text, size, PJRT_Client_PlatformName_Args, platform_name_size)
SIZE(pjrt_client_devices, PJRT_Client_AddressableDevices_Args, count)
AT(pjrt_client_devices, devices, PJRT_Client_AddressableDevices_Args, addressable_devices)
AT(pjrt_client_devices, count, PJRT_Client_AddressableDevices_Args, num_addressable_devices)
SIZE(pjrt_program_code, PJRT_Program, format_size)
AT(pjrt_program_code, code, PJRT_Program, code)
AT(pjrt_program_code, code_size, PJRT_Program, code_size)
AT(pjrt_program_code, format, PJRT_Program, format)
AT(pjrt_program_code, format_size, PJRT_Program, format_size)
SIZE(pjrt_client_compile, PJRT_Client_Compile_Args, executable)
AT(pjrt_client_compile, client, PJRT_Client_Compile_Args, client)
AT(pjrt_client_compile, program, PJRT_Client_Compile_Args, program)
AT(pjrt_client_compile, options, PJRT_Client_Compile_Args, compile_options)
AT(pjrt_client_compile, options_size, PJRT_Client_Compile_Args, compile_options_size)
AT(pjrt_client_compile, executable, PJRT_Client_Compile_Args, executable)
SIZE(pjrt_layout, PJRT_Buffer_MemoryLayout, kind)
AT(pjrt_layout, tiled, PJRT_Buffer_MemoryLayout, tiled)
AT(pjrt_layout, tiled.minor_to_major, PJRT_Buffer_MemoryLayout, tiled.minor_to_major)
AT(pjrt_layout, tiled.minor_to_major_count, PJRT_Buffer_MemoryLayout, tiled.minor_to_major_size)
AT(pjrt_layout, tiled.tile_count, PJRT_Buffer_MemoryLayout, tiled.num_tiles)
AT(pjrt_layout, kind, PJRT_Buffer_MemoryLayout, type)
SIZE(pjrt_from_host, PJRT_Client_BufferFromHostBuffer_Args, buffer)
AT(pjrt_from_host, data, PJRT_Client_BufferFromHostBuffer_Args, data)
AT(pjrt_from_host, type, PJRT_Client_BufferFromHostBuffer_Args, type)
AT(pjrt_from_host, shape, PJRT_Client_BufferFromHostBuffer_Args, dims)
AT(pjrt_from_host, dimension_count, PJRT_Client_BufferFromHostBuffer_Args, num_dims)
AT(pjrt_from_host, semantics, PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics)
AT(pjrt_from_host, device, PJRT_Client_BufferFromHostBuffer_Args, device)
AT(pjrt_from_host, device_layout, PJRT_Client_BufferFromHostBuffer_Args, device_layout)
AT(pjrt_from_host, done, PJRT_Client_BufferFromHostBuffer_Args, done_with_host_buffer)
AT(pjrt_from_host, buffer, PJRT_Client_BufferFromHostBuffer_Args, buffer)

SIZE(pjrt_description_id, PJRT_DeviceDescription_Id_Args, id)
AT(pjrt_description_id, id, PJRT_DeviceDescription_Id_Args, id)
SIZE(pjrt_description_kind, PJRT_DeviceDescription_Kind_Args, kind_size)
AT(pjrt_description_kind, kind, PJRT_DeviceDescription_Kind_Args, device_kind)
AT(pjrt_description_kind, kind_size, PJRT_DeviceDescription_Kind_Args, device_kind_size)
SIZE(pjrt_device_description, PJRT_Device_GetDescription_Args, description)
AT(pjrt_device_description, description, PJRT_Device_GetDescription_Args, device_description)
SIZE(pjrt_memory_stats, PJRT_Device_MemoryStats_Args, peak_allocated_bytes.is_set)
AT(pjrt_memory_stats, bytes_in_use, PJRT_Device_MemoryStats_Args, bytes_in_use)
AT(pjrt_memory_stats, bytes_limit.value, PJRT_Device_MemoryStats_Args, bytes_limit)
AT(pjrt_memory_stats, bytes_limit.is_set, PJRT_Device_MemoryStats_Args, bytes_limit_is_set)
AT(pjrt_memory_stats, peak_pool_bytes.is_set, PJRT_Device_MemoryStats_Args, peak_pool_bytes_is_set)

SIZE(pjrt_executable_destroy, PJRT_Executable_Destroy_Args, executable)
SIZE(pjrt_executable_outputs, PJRT_Executable_NumOutputs_Args, count)
AT(pjrt_executable_outputs, count, PJRT_Executable_NumOutputs_Args, num_outputs)
SIZE(pjrt_loaded_destroy, PJRT_LoadedExecutable_Destroy_Args, executable)
SIZE(pjrt_loaded_executable, PJRT_LoadedExecutable_GetExecutable_Args, executable)
AT(pjrt_loaded_executable, loaded, PJRT_LoadedExecutable_GetExecutable_Args, loaded_executable)
AT(pjrt_loaded_executable, executable, PJRT_LoadedExecutable_GetExecutable_Args, executable)
SIZE(pjrt_execute_options, PJRT_ExecuteOptions, output_callback_count)
AT(pjrt_execute_options, launch, PJRT_ExecuteOptions, launch_id)
AT(pjrt_execute_options, kept_inputs, PJRT_ExecuteOptions, non_donatable_input_indices)
AT(pjrt_execute_options, kept_input_count, PJRT_ExecuteOptions, num_non_donatable_input_indices)
AT(pjrt_execute_options, context, PJRT_ExecuteOptions, context)
SIZE(pjrt_execute, PJRT_LoadedExecutable_Execute_Args, device)
AT(pjrt_execute, executable, PJRT_LoadedExecutable_Execute_Args, executable)
AT(pjrt_execute, options, PJRT_LoadedExecutable_Execute_Args, options)
AT(pjrt_execute, inputs, PJRT_LoadedExecutable_Execute_Args, argument_lists)
AT(pjrt_execute, device_count, PJRT_LoadedExecutable_Execute_Args, num_devices)
AT(pjrt_execute, input_count, PJRT_LoadedExecutable_Execute_Args, num_args)
AT(pjrt_execute, outputs, PJRT_LoadedExecutable_Execute_Args, output_lists)
AT(pjrt_execute, done, PJRT_LoadedExecutable_Execute_Args, device_complete_events)
AT(pjrt_execute, device, PJRT_LoadedExecutable_Execute_Args, execute_device)
SIZE(pjrt_buffer_destroy, PJRT_Buffer_Destroy_Args, buffer)
SIZE(pjrt_buffer_type, PJRT_Buffer_ElementType_Args, type)
AT(pjrt_buffer_type, type, PJRT_Buffer_ElementType_Args, type)
SIZE(pjrt_buffer_shape, PJRT_Buffer_Dimensions_Args, dimension_count)
AT(pjrt_buffer_shape, shape, PJRT_Buffer_Dimensions_Args, dims)
AT(pjrt_buffer_shape, dimension_count, PJRT_Buffer_Dimensions_Args, num_dims)
SIZE(pjrt_to_host, PJRT_Buffer_ToHostBuffer_Args, done)
AT(pjrt_to_host, source, PJRT_Buffer_ToHostBuffer_Args, src)
AT(pjrt_to_host, layout, PJRT_Buffer_ToHostBuffer_Args, host_layout)
AT(pjrt_to_host, data, PJRT_Buffer_ToHostBuffer_Args, dst)
AT(pjrt_to_host, size, PJRT_Buffer_ToHostBuffer_Args, dst_size)
AT(pjrt_to_host, done, PJRT_Buffer_ToHostBuffer_Args, event)

IS(PJRT_CANCELLED, PJRT_Error_Code_CANCELLED)
IS(PJRT_UNKNOWN, PJRT_Error_Code_UNKNOWN)
IS(PJRT_INVALID_ARGUMENT, PJRT_Error_Code_INVALID_ARGUMENT)
IS(PJRT_DEADLINE_EXCEEDED, PJRT_Error_Code_DEADLINE_EXCEEDED)
IS(PJRT_ABORTED, PJRT_Error_Code_ABORTED)
IS(PJRT_UNIMPLEMENTED, PJRT_Error_Code_UNIMPLEMENTED)
IS(PJRT_INTERNAL, PJRT_Error_Code_INTERNAL)
IS(PJRT_UNAVAILABLE, PJRT_Error_Code_UNAVAILABLE)
IS(PJRT_DATA_LOSS, PJRT_Error_Code_DATA_LOSS)
IS(PJRT_CODES, PJRT_Error_Code_UNAUTHENTICATED + 1)
IS(PJRT_TYPE_PRED, PJRT_Buffer_Type_PRED)
IS(PJRT_TYPE_S8, PJRT_Buffer_Type_S8)
IS(PJRT_TYPE_S64, PJRT_Buffer_Type_S64)
IS(PJRT_TYPE_U8, PJRT_Buffer_Type_U8)
IS(PJRT_TYPE_U64, PJRT_Buffer_Type_U64)
IS(PJRT_TYPE_F16, PJRT_Buffer_Type_F16)
IS(PJRT_TYPE_F32, PJRT_Buffer_Type_F32)
IS(PJRT_TYPE_F64, PJRT_Buffer_Type_F64)
IS(PJRT_TYPE_BF16, PJRT_Buffer_Type_BF16)
IS(PJRT_TYPE_C64, PJRT_Buffer_Type_C64)
IS(PJRT_TYPE_C128, PJRT_Buffer_Type_C128)
IS(PJRT_VALUE_TEXT, PJRT_NamedValue_kString)
IS(PJRT_VALUE_INT64, PJRT_NamedValue_kInt64)
IS(PJRT_VALUE_BOOL, PJRT_NamedValue_kBool)
IS(PJRT_HOST_IMMUTABLE_UNTIL_TRANSFER, PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes)
IS(PJRT_LAYOUT_TILED, PJRT_Buffer_MemoryLayout_Type_Tiled)

int main(void)
{
    (void)printf("pjrt_c_api.h of version %d.%d agrees\n", PJRT_API_MAJOR, PJRT_API_MINOR);
    return 0;
}

#else

int main(void)
{
    (void)puts("skipped: no xla/pjrt/c/pjrt_c_api.h");
    return 77;
}

#endif
