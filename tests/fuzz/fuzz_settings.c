/* .bourse.yaml, which comes with a folder that somebody else made. */
#include "consumer/client/settings.h"

#include "tests/fuzz/as_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *no_environment(const char *name)
{
    (void)name;
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct settings settings;
    struct problem problem = {.text = ""};
    struct settings_sources sources = {.environment = no_environment,
                                       .project = as_file("settings.yaml", data, size),
                                       .state = "/nowhere/state",
                                       .config = "/nowhere/config"};
    if (!settings_load(&sources, &settings, &problem)) {
        assert(problem.text[0] != '\0');
        return 0;
    }
    for (int i = 0; i < SETTING_COUNT; i++) {
        assert(memchr(settings.items[i].value, 0, SETTING_VALUE_SIZE) != NULL);
    }
    return 0;
}
