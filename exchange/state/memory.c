#include "exchange/state/memory.h"

#include <stdlib.h>

void *memory_allocate(struct exchange *exchange, size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL) {
        exchange->is_out_of_memory = true;
    }
    return memory;
}
