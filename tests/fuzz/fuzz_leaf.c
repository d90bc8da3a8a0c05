/* The leaf of a result, as receipts hold it: what is taken is written again as the same bytes. */
#include "ledger/record.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ledger_record record;
    uint8_t again[RECORD_LEAF_MAX];
    if (!record_read_result(data, size, &record)) {
        return 0;
    }
    assert(record_is_logged(&record));
    assert(record_leaf(&record, again) == size);
    assert(memcmp(again, data, size) == 0);
    return 0;
}
