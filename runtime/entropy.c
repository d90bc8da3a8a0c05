#include "runtime/entropy.h"

#include <sodium.h>

void entropy_bytes(void *ret_bytes, size_t length)
{
    randombytes_buf(ret_bytes, length);
}

struct id128 entropy_id(void)
{
    struct id128 id;
    do {
        randombytes_buf(id.bytes, sizeof id.bytes);
    } while (id128_is_zero(&id));
    return id;
}

uint64_t entropy_u64(void)
{
    uint64_t value;
    randombytes_buf(&value, sizeof value);
    return value;
}
