/* provider.yaml: a config, or a line that says what is wrong. */
#include "provider/config.h"

#include "tests/fuzz/as_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct config config;
    struct problem problem = {.text = ""};
    const char *path = as_file("provider.yaml", data, size);
    if (!config_read(as_file_folder(), path, &config, &problem)) {
        assert(problem.text[0] != '\0');
        return 0;
    }
    assert(config.program_count <= CONFIG_PROGRAMS_MAX);
    assert(config.price_micro >= 0 && config.term_ms >= 0);
    assert(config.device_count <= CONFIG_DEVICES_MAX);
    for (size_t i = 0; i < config.device_count; i++) {
        const struct config_device *device = &config.devices[i];
        bool says_so = strncmp(device->name, "sim.", 4) == 0;
        assert(device->name[0] != '\0' && says_so == (device->simulates != NULL));
        assert(device->slots >= 1 && device->price_micro >= 0);
    }
    for (size_t i = 0; i < config.program_count; i++) {
        assert(config_program(&config, config.programs[i].name) != NULL);
    }
    return 0;
}
