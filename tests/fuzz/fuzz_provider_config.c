/* provider.yaml: a config, or a line that says what is wrong. */
#include "provider/config.h"
#include "provider/policy.h"

#include "base/text.h"

#include "tests/fuzz/as_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The config's devices are offered, or the reason against is said; the market takes every word of
 * the offer. */
static void offer(const struct config *config)
{
    static struct offers offers;
    static const struct key32 account;
    const struct machine machine = {.cores = 64,
                                    .memory_bytes = UINT64_C(1) << 40,
                                    .arch = "x86_64",
                                    .instrument = "cpu.x86_64"};
    const struct profile profile = {.gemm_mflops = {.value = 98000}};
    const struct isolation isolation = {.level = 1};
    struct problem problem = {.text = ""};
    if (!policy_offers(config, &machine, &profile, &isolation, &account, &offers, &problem)) {
        assert(problem.text[0] != '\0');
        return;
    }
    for (size_t i = 0; i < offers.count; i++) {
        const struct offer *one = &offers.items[i];
        for (size_t k = 0; k < one->device.attribute_count; k++) {
            assert(text_is_plain(one->attributes[k].text, strlen(one->attributes[k].text)));
        }
        for (size_t k = 0; k < one->ask.conditions.to_count; k++) {
            const char *name = one->ask.conditions.to[k];
            assert(text_is_plain(name, strlen(name)));
        }
        assert(one->ask.price_micro >= 0 && one->ask.slots >= 1);
    }
}

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
    offer(&config);
    return 0;
}
