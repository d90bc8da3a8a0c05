#include "provider/pjrt/pjrt_client.h"

#include "base/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- options */

bool pjrt_client_is_option(const char *text)
{
    const char *equals = strchr(text, '=');
    return equals != NULL && equals != text;
}

/* Reads a whole number. Returns false when the text is none. */
static bool read_number(const char *text, int64_t *ret_number)
{
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    *ret_number = number;
    return errno == 0 && end != text && *end == '\0';
}

/* A whole number, `true` and `false` are what they look like; all else is a text. */
static struct pjrt_value value_of(const char *option)
{
    const char *equals = strchr(option, '=');
    const char *text = equals + 1;
    struct pjrt_value value = {PJRT_SIZE(pjrt_value, value_size), .name = option,
                               .name_size = (size_t)(equals - option), .kind = PJRT_VALUE_INT64,
                               .value_size = 1};
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        value.kind = PJRT_VALUE_BOOL;
        value.value.truth = text[0] == 't';
    } else if (!read_number(text, &value.value.number)) {
        value.kind = PJRT_VALUE_TEXT;
        value.value.text = text;
        value.value_size = strlen(text);
    }
    return value;
}

/* ---------------------------------------------------------------- the start */

static bool create(const struct pjrt_options *options, struct pjrt_client *client,
                   struct pjrt_failure *failure)
{
    const struct pjrt_api *api = client->api;
    struct pjrt_value values[PJRT_CREATE_MAX];
    struct pjrt_plugin_initialize initialize = {PJRT_SIZE(pjrt_plugin_initialize, extensions)};
    struct pjrt_client_create arguments = {PJRT_SIZE(pjrt_client_create, try_get_argument),
                                           .options = values,
                                           .option_count = options->create_count};
    for (size_t i = 0; i < options->create_count; i++) {
        values[i] = value_of(options->create[i]);
    }
    if ((api->PJRT_Plugin_Initialize != NULL &&
         !PJRT_CALL(api, PJRT_Plugin_Initialize, &initialize, failure)) ||
        !PJRT_CALL(api, PJRT_Client_Create, &arguments, failure)) {
        return false;
    }
    client->client = arguments.client;
    return true;
}

static bool find_device(struct pjrt_client *client, size_t place, struct pjrt_failure *failure)
{
    struct pjrt_client_devices devices = {PJRT_SIZE(pjrt_client_devices, count),
                                          .client = client->client};
    if (!PJRT_CALL(client->api, PJRT_Client_AddressableDevices, &devices, failure)) {
        return false;
    }
    if (place >= devices.count) {
        return pjrt_api_refuse(failure, "the library has %zu device%s; there is no device %zu",
                               devices.count, devices.count == 1 ? "" : "s", place);
    }
    client->device_count = devices.count;
    client->device = devices.devices[place];
    return true;
}

static bool name_device(struct pjrt_client *client, struct pjrt_failure *failure)
{
    const struct pjrt_api *api = client->api;
    struct pjrt_client_text platform = {PJRT_SIZE(pjrt_client_text, size),
                                        .client = client->client};
    struct pjrt_device_description of = {PJRT_SIZE(pjrt_device_description, description),
                                         .device = client->device};
    struct pjrt_description_id id = {PJRT_SIZE(pjrt_description_id, id)};
    struct pjrt_description_kind kind = {PJRT_SIZE(pjrt_description_kind, kind_size)};
    if (!PJRT_CALL(api, PJRT_Client_PlatformName, &platform, failure) ||
        !PJRT_CALL(api, PJRT_Device_GetDescription, &of, failure)) {
        return false;
    }
    id.description = of.description;
    kind.description = of.description;
    if (!PJRT_CALL(api, PJRT_DeviceDescription_Id, &id, failure) ||
        !PJRT_CALL(api, PJRT_DeviceDescription_Kind, &kind, failure)) {
        return false;
    }
    client->device_id = id.id;
    text_printable(platform.text, platform.size, client->platform, sizeof client->platform);
    text_printable(kind.kind, kind.kind_size, client->kind, sizeof client->kind);
    return true;
}

bool pjrt_client_choose(struct pjrt_client *client, size_t place, struct pjrt_failure *ret_failure)
{
    return find_device(client, place, ret_failure) && name_device(client, ret_failure);
}

bool pjrt_client_open(const struct pjrt_options *options, struct pjrt_client *ret_client,
                      struct pjrt_failure *ret_failure)
{
    struct pjrt_client client = {.library = NULL};
    client.library = pjrt_api_load(options->library, &client.api, ret_failure);
    if (client.library == NULL) {
        return false;
    }
    if (!create(options, &client, ret_failure) ||
        !pjrt_client_choose(&client, options->device, ret_failure)) {
        pjrt_client_close(&client);
        return false;
    }
    *ret_client = client;
    return true;
}

void pjrt_client_close(struct pjrt_client *client)
{
    if (client->client != NULL) {
        struct pjrt_failure ignored; /* the process is about to end, or the failure is known */
        struct pjrt_client_destroy arguments = {PJRT_SIZE(pjrt_client_destroy, client),
                                                .client = client->client};
        (void)PJRT_CALL(client->api, PJRT_Client_Destroy, &arguments, &ignored);
        client->client = NULL;
    }
}

struct pjrt_memory pjrt_client_memory(const struct pjrt_client *client)
{
    struct pjrt_failure ignored; /* many libraries do not tell */
    struct pjrt_memory_stats stats = {PJRT_SIZE(pjrt_memory_stats, peak_allocated_bytes.is_set),
                                      .device = client->device};
    if (client->api->PJRT_Device_MemoryStats == NULL ||
        !PJRT_CALL(client->api, PJRT_Device_MemoryStats, &stats, &ignored)) {
        return (struct pjrt_memory){.limit_bytes = -1, .used_bytes = -1};
    }
    return (struct pjrt_memory){.limit_bytes =
                                    stats.bytes_limit.is_set ? stats.bytes_limit.value : -1,
                                .used_bytes = stats.bytes_in_use};
}
