/* market.yaml: what is taken is written and read again as an equal struct. */
#include "runtime/market.h"

#include "tests/fuzz/as_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct market market;
    struct market again;
    struct problem problem;
    if (!market_read(as_file("market.yaml", data, size), &market, &problem)) {
        assert(memchr(problem.text, 0, sizeof problem.text) != NULL);
        return 0;
    }
    if (!market_write(as_file_path_now, &market, &problem)) {
        return 0; /* an endpoint that no file of ours could hold */
    }
    assert(market_read(as_file_path_now, &again, &problem));
    assert(strcmp(market.control, again.control) == 0 && strcmp(market.blobs, again.blobs) == 0);
    assert(market.other_count == again.other_count);
    for (size_t i = 0; i < market.other_count; i++) {
        assert(strcmp(market.others[i].control, again.others[i].control) == 0);
        assert(strcmp(market.others[i].blobs, again.others[i].blobs) == 0);
    }
    assert(strcmp(market.origin, again.origin) == 0 && market.pid == again.pid);
    assert(key32_equal(&market.server, &again.server));
    assert(key32_equal(&market.log_key, &again.log_key));
    assert(id128_equal(&market.cluster, &again.cluster));
    return 0;
}
