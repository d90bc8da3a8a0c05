/* The genesis: what is taken is valid, and written again gives the same bytes. */
#include "protocol/genesis.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct genesis genesis;
    static uint8_t again[GENESIS_BYTES_MAX];
    if (genesis_read(data, size, &genesis)) {
        assert(genesis_valid(&genesis));
        assert(genesis_write(&genesis, again, sizeof again) == size);
        assert(memcmp(again, data, size) == 0);
    }
    return 0;
}
