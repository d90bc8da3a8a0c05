/* The types, numbers and functions of provider/wasm/wasmtime_api.h are those of wasmtime.h. The
 * build finds that header where wasmtime is unpacked; elsewhere the program is skipped. */
#include <stdio.h>

#ifdef BOURSE_WASMTIME_HEADER
#include <assert.h>
#include <wasmtime.h>

#define WASMTIME_API_TYPES
#define wasmtime_item wasmtime_extern
#if WASMTIME_VERSION_MAJOR >= 45
typedef const wasmtime_module_t wasmtime_compiled_t;
#else
typedef wasmtime_module_t wasmtime_compiled_t;
#endif
#include "provider/wasm/wasmtime_api.h"

#define IS(ours, theirs) static_assert((int)(ours) == (int)(theirs), #theirs);
IS(WASMTIME_FUNCTION, WASM_EXTERN_FUNC)
IS(WASMTIME_GLOBAL, WASM_EXTERN_GLOBAL)
IS(WASMTIME_TABLE, WASM_EXTERN_TABLE)
IS(WASMTIME_MEMORY, WASM_EXTERN_MEMORY)
IS(WASMTIME_STACK_OVERFLOW, WASMTIME_TRAP_CODE_STACK_OVERFLOW)
IS(WASMTIME_MEMORY_OUT_OF_BOUNDS, WASMTIME_TRAP_CODE_MEMORY_OUT_OF_BOUNDS)
IS(WASMTIME_HEAP_MISALIGNED, WASMTIME_TRAP_CODE_HEAP_MISALIGNED)
IS(WASMTIME_TABLE_OUT_OF_BOUNDS, WASMTIME_TRAP_CODE_TABLE_OUT_OF_BOUNDS)
IS(WASMTIME_INDIRECT_CALL_TO_NULL, WASMTIME_TRAP_CODE_INDIRECT_CALL_TO_NULL)
IS(WASMTIME_BAD_SIGNATURE, WASMTIME_TRAP_CODE_BAD_SIGNATURE)
IS(WASMTIME_INTEGER_OVERFLOW, WASMTIME_TRAP_CODE_INTEGER_OVERFLOW)
IS(WASMTIME_DIVISION_BY_ZERO, WASMTIME_TRAP_CODE_INTEGER_DIVISION_BY_ZERO)
IS(WASMTIME_BAD_CONVERSION, WASMTIME_TRAP_CODE_BAD_CONVERSION_TO_INTEGER)
IS(WASMTIME_UNREACHABLE, WASMTIME_TRAP_CODE_UNREACHABLE_CODE_REACHED)
static_assert(sizeof(wasmtime_extern_t) <= WASMTIME_ITEM_BYTES, "an item fits");
static_assert(offsetof(wasmtime_func_t, store_id) == 0 && sizeof(wasmtime_func_t) == 16, "ours");
static_assert(offsetof(wasm_byte_vec_t, data) == 8 && sizeof(wasm_byte_vec_t) == 16, "ours");
static_assert(offsetof(wasm_importtype_vec_t, data) == 8, "ours");
static_assert(offsetof(wasm_exporttype_vec_t, data) == 8, "ours");
static_assert(WASMTIME_VERSION_MAJOR >= WASMTIME_OLDEST, "a version that is known");
static_assert(WASMTIME_VERSION_MAJOR <= WASMTIME_NEWEST, "a version that is known");

/* Each function has the type that ours has, or this does not compile. */
#define TYPE(result, name, arguments)                                                              \
    static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) arguments), #name);
WASMTIME_CALLS(TYPE)
WASMTIME_OPTIONAL_CALLS(TYPE)
#if WASMTIME_VERSION_MAJOR >= 48
static_assert(__builtin_types_compatible_p(__typeof__(wasi_config_preopen_dir),
                                           wasmtime_preopen_by_flag),
              "wasi_config_preopen_dir");
#else
static_assert(__builtin_types_compatible_p(__typeof__(wasi_config_preopen_dir),
                                           wasmtime_preopen_by_masks),
              "wasi_config_preopen_dir");
#endif

int main(void)
{
    (void)printf("the compiler compared them with wasmtime.h of wasmtime %s\n", WASMTIME_VERSION);
    return 0;
}
#else
int main(void)
{
    (void)puts("skipped: no wasmtime.h; wasmtime's C interface is not installed");
    return 77;
}
#endif
