#include "provider/pjrt/pjrt_api.h"

#include "base/text.h"
#include "provider/kernel/library.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static_assert(offsetof(struct pjrt_api, PJRT_Error_Destroy) == 40, "the head of the table");
static_assert(offsetof(struct pjrt_api, PJRT_Client_Compile) == 8 * 25, "the place in the table");
static_assert(offsetof(struct pjrt_api, PJRT_LoadedExecutable_Execute) == 8 * 60, "its place");
static_assert(offsetof(struct pjrt_api, PJRT_Buffer_ToHostBuffer) == 8 * 75, "its place");

bool pjrt_api_refuse(struct pjrt_failure *failure, const char *format, ...)
{
    va_list arguments;
    *failure = (struct pjrt_failure){.code = 0};
    va_start(arguments, format);
    (void)vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    return false;
}

const char *pjrt_api_code(int code)
{
    static const char *const names[PJRT_CODES] = {"OK",
                                                  "CANCELLED",
                                                  "UNKNOWN",
                                                  "INVALID_ARGUMENT",
                                                  "DEADLINE_EXCEEDED",
                                                  "NOT_FOUND",
                                                  "ALREADY_EXISTS",
                                                  "PERMISSION_DENIED",
                                                  "RESOURCE_EXHAUSTED",
                                                  "FAILED_PRECONDITION",
                                                  "ABORTED",
                                                  "OUT_OF_RANGE",
                                                  "UNIMPLEMENTED",
                                                  "INTERNAL",
                                                  "UNAVAILABLE",
                                                  "DATA_LOSS",
                                                  "UNAUTHENTICATED"};
    return code >= 0 && code < PJRT_CODES ? names[code] : "an unknown code";
}

/* ---------------------------------------------------------------- errors */

/* Returns true for a code that a program or its inputs do not bring about by themselves. */
static bool is_of_device(int code)
{
    switch (code) {
    case PJRT_CANCELLED:
    case PJRT_UNKNOWN:
    case PJRT_DEADLINE_EXCEEDED:
    case PJRT_ABORTED:
    case PJRT_INTERNAL:
    case PJRT_UNAVAILABLE:
    case PJRT_DATA_LOSS:
        return true;
    default:
        return false;
    }
}

static int code_of(const struct pjrt_api *api, const struct PJRT_Error *error)
{
    struct pjrt_error_code code = {PJRT_SIZE(pjrt_error_code, code), .error = error};
    struct PJRT_Error *second = api->PJRT_Error_GetCode(&code);
    if (second != NULL) {
        struct pjrt_error_destroy destroy = {PJRT_SIZE(pjrt_error_destroy, error), .error = second};
        api->PJRT_Error_Destroy(&destroy);
        return PJRT_UNKNOWN;
    }
    return code.code;
}

bool pjrt_api_check(const struct pjrt_api *api, const char *function, struct PJRT_Error *error,
                    struct pjrt_failure *ret_failure)
{
    if (error == NULL) {
        return true;
    }
    struct pjrt_error_message message = {PJRT_SIZE(pjrt_error_message, message_size),
                                         .error = error};
    struct pjrt_error_destroy destroy = {PJRT_SIZE(pjrt_error_destroy, error), .error = error};
    const int code = code_of(api, error);
    api->PJRT_Error_Message(&message);
    const size_t length = message.message == NULL ? 0 : message.message_size;
    (void)pjrt_api_refuse(ret_failure, "%s: %s (%d): %.*s", function, pjrt_api_code(code), code,
                          (int)(length < PJRT_TEXT_SIZE ? length : PJRT_TEXT_SIZE),
                          length > 0 ? message.message : "");
    ret_failure->code = code;
    ret_failure->is_of_device = is_of_device(code);
    api->PJRT_Error_Destroy(&destroy);
    return false;
}

bool pjrt_api_await(const struct pjrt_api *api, const char *function, struct PJRT_Event *event,
                    struct pjrt_failure *ret_failure)
{
    struct pjrt_event arguments = {PJRT_SIZE(pjrt_event, event), .event = event};
    struct pjrt_failure ignored;
    if (event == NULL) {
        return true;
    }
    const bool good = pjrt_api_check(api, function, api->PJRT_Event_Await(&arguments), ret_failure);
    /* An event that cannot be destroyed is lost memory, and the first failure says more. */
    const bool is_ended =
        PJRT_CALL(api, PJRT_Event_Destroy, &arguments, good ? ret_failure : &ignored);
    return good && is_ended;
}

/* ---------------------------------------------------------------- the library */

static bool check_version(const struct pjrt_api *api, struct pjrt_failure *failure)
{
    if (api == NULL) {
        return pjrt_api_refuse(failure, "GetPjrtApi of the library returns no table");
    }
    if (api->struct_size < offsetof(struct pjrt_api, PJRT_Error_Destroy)) {
        return pjrt_api_refuse(failure,
                               "the library's table of PJRT has %zu bytes, too few for a "
                               "version",
                               api->struct_size);
    }
    const struct pjrt_version *version = &api->version;
    if (version->major != PJRT_MAJOR || version->minor < PJRT_MINOR_LEAST) {
        return pjrt_api_refuse(failure,
                               "the library speaks version %d.%d of PJRT; this program speaks "
                               "%d.%d and later versions %d.x",
                               version->major, version->minor, PJRT_MAJOR, PJRT_MINOR_LEAST,
                               PJRT_MAJOR);
    }
    if (api->struct_size < sizeof(struct pjrt_api)) {
        return pjrt_api_refuse(failure,
                               "the library's table of PJRT has %zu bytes, and %zu are needed",
                               api->struct_size, sizeof(struct pjrt_api));
    }
    return true;
}

static bool check_functions(const struct pjrt_api *api, struct pjrt_failure *failure)
{
    const char *missing = NULL;
#define NEEDED(name, arguments) missing = missing == NULL && api->name == NULL ? #name : missing;
#define OPTIONAL(name, arguments)
#define UNUSED(name)
    PJRT_TABLE(NEEDED, OPTIONAL, NEEDED, UNUSED)
#undef NEEDED
#undef OPTIONAL
#undef UNUSED
    return missing == NULL || pjrt_api_refuse(failure, "the library has no function %s", missing);
}

void *pjrt_api_load(const char *library, const struct pjrt_api **ret_api,
                    struct pjrt_failure *ret_failure)
{
    struct {
        const struct pjrt_api *(*get)(void);
    } exported;
    static const struct library_function functions[] = {{"GetPjrtApi", 0, false}};
    static const struct library_table table = {.absence = "no PJRT library",
                                               .title = "the library",
                                               .verdict = "so it is no PJRT library",
                                               .functions = functions,
                                               .count = 1};
    struct problem problem = {""};
    void *handle = library_load(library, &table, &exported, &problem);
    if (handle == NULL) {
        (void)pjrt_api_refuse(ret_failure, "%s", problem.text);
        return NULL;
    }
    const struct pjrt_api *api = exported.get();
    if (!check_version(api, ret_failure) || !check_functions(api, ret_failure)) {
        (void)dlclose(handle);
        return NULL;
    }
    *ret_api = api;
    return handle;
}
