/* broker.yaml: a config, or a line that says what is wrong. */
#include "broker/config.h"
#include "matching/book.h"

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
    assert(config.limits.asks + config.limits.jobs <= BOOK_ORDERS_MAX); /* the book asserts it */
    assert(config.limits.cells_per_account >= 1 && config.limits.subtasks >= 1);
    /* The start fills in what the file leaves out; then the config is a genesis, unless it says why
     * not. */
    uint8_t bytes[GENESIS_BYTES_MAX];
    (void)snprintf(config.genesis.origin, sizeof config.genesis.origin, "fuzz/origin");
    size_t length = genesis_write(&config.genesis, bytes, sizeof bytes);
    assert(length > 0 && genesis_read(bytes, length, &config.genesis));
    char text[512];
    const struct exchange_limits usual = exchange_limits_default();
    config_limits_text(&usual, &config.limits, text, sizeof text);
    return 0;
}
