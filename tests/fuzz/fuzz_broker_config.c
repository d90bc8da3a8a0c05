/* broker.yaml: a config, or a line that says what is wrong. */
#include "broker/config.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct broker_config config;
    struct problem problem = {.text = ""};
    if (!config_parse((const char *)data, size, "broker.yaml", true, &config, &problem)) {
        assert(problem.text[0] != '\0');
        return 0;
    }
    assert(memchr(config.listen, 0, sizeof config.listen) != NULL);
    assert(config.genesis.account_count <= GENESIS_ACCOUNTS_MAX);
    assert(config.workers >= 1 && config.heartbeat_ms >= 100);
    return 0;
}
