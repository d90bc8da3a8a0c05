#include "provider/onnx/runtime/ort_api.h"

#include "base/text.h"
#include "provider/kernel/library.h"

#include <dlfcn.h>
#include <string.h>

/* The one struct that the library exports a way to. */
struct ort_base {
    const void *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
};

struct ort_entry {
    const struct ort_base *(*get_base)(void);
};

/* A place of the table. The interface has no object pointers among its functions. */
typedef void (*ort_place)(void);

static bool refuse(void *library, struct problem *ret_problem, const char *version,
                   const char *what)
{
    char shown[ORT_VERSION_SIZE];
    text_printable(version, strlen(version), shown, sizeof shown);
    problem_set(ret_problem, "ONNX Runtime %s %s; 1.%d or newer is needed", shown, what,
                ORT_VERSION_LEAST);
    (void)dlclose(library);
    return false;
}

/* A place of the table, and where the pointer goes in our struct. */
struct table_entry {
    size_t place, offset;
};
#define ORT_PLACE(place, result, name, arguments) {place, offsetof(struct ort_api, name)},
static const struct table_entry basic[] = {ORT_CALLS(ORT_PLACE)};
static const struct table_entry of_devices[] = {ORT_DEVICE_CALLS(ORT_PLACE)};
static const struct table_entry of_shares[] = {ORT_SHARE_CALLS(ORT_PLACE)};
#undef ORT_PLACE

/* Copies the pointers of the functions out of the table. Returns false when one is missing. */
static bool copy_table(const void *table, const struct table_entry *entries, size_t count,
                       struct ort_api *ret_api)
{
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        ort_place function;
        memcpy(&function, (const char *)table + entries[i].place * sizeof function,
               sizeof function);
        memcpy((char *)ret_api + entries[i].offset, &function, sizeof function);
        good = function != NULL;
    }
    return good;
}

/* Copies what newer versions of the library have. */
static bool copy_later(const struct ort_base *base, struct ort_api *ret_api)
{
    const void *devices = base->get_api(ORT_VERSION_DEVICES);
    const void *shares = base->get_api(ORT_VERSION_SHARES);
    return (devices == NULL ||
            copy_table(devices, of_devices, sizeof of_devices / sizeof of_devices[0], ret_api)) &&
           (shares == NULL ||
            copy_table(shares, of_shares, sizeof of_shares / sizeof of_shares[0], ret_api));
}

bool ort_api_load(const char *library, struct ort_api *ret_api, struct problem *ret_problem)
{
    static const struct library_function functions[] = {
        {"OrtGetApiBase", offsetof(struct ort_entry, get_base), false}};
    static const struct library_table loaded = {
        .absence = "ONNX Runtime's library does not load",
        .title = "the library",
        .verdict = "so it is no ONNX Runtime",
        .functions = functions,
        .count = 1,
    };
    struct ort_entry entry;
    void *handle = library_load(library, &loaded, &entry, ret_problem);
    if (handle == NULL) {
        return false;
    }
    const struct ort_base *base = entry.get_base();
    const char *version = base != NULL && base->get_version != NULL ? base->get_version() : NULL;
    version = version != NULL ? version : "(unknown)";
    const void *table =
        base != NULL && base->get_api != NULL ? base->get_api(ORT_VERSION_LEAST) : NULL;
    if (table == NULL) {
        return refuse(handle, ret_problem, version, "is too old");
    }
    struct ort_api api = {.library = handle};
    text_printable(version, strlen(version), api.version, sizeof api.version);
    if (!copy_table(table, basic, sizeof basic / sizeof basic[0], &api) ||
        !copy_later(base, &api)) {
        return refuse(handle, ret_problem, version, "lacks a function that every version has");
    }
    *ret_api = api;
    return true;
}

/* Returns the part of the library's message that says what is wrong. A failed check of the
 * library's begins with its place and its expression. */
static const char *reason_of(const char *message)
{
    static const char check[] = " was false. ";
    const char *found = message[0] == '/' ? strstr(message, check) : NULL;
    return found != NULL ? found + sizeof check - 1 : message;
}

bool ort_api_failed(const struct ort_api *api, struct ort_status *status,
                    struct problem *ret_problem)
{
    if (status == NULL) {
        return false;
    }
    const char *message = api->error_message(status);
    char line[sizeof ret_problem->text];
    message = message != NULL ? reason_of(message) : "";
    text_printable(message, strlen(message), line, sizeof line);
    problem_set(ret_problem, "%s", line[0] != '\0' ? line : "ONNX Runtime gives no reason");
    api->release_status(status);
    return true;
}
