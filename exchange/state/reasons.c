#include "exchange/state/reasons.h"

#include "exchange/state/memory.h"

#include <stdlib.h>
#include <string.h>

/* Returns the bytes that are kept: a character of UTF-8 stays whole. */
static size_t kept_bytes(const char *text)
{
    size_t length = strlen(text);
    if (length < EXCHANGE_REASON_SIZE) {
        return length;
    }
    length = EXCHANGE_REASON_SIZE - 1;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
        length--;
    }
    return length;
}

void reason_set(struct exchange *exchange, char **reason, const char *text)
{
    const size_t length = text == NULL ? 0 : kept_bytes(text);
    free(*reason);
    *reason = length == 0 ? NULL : memory_allocate(exchange, length + 1);
    if (*reason != NULL) {
        memcpy(*reason, text, length);
        (*reason)[length] = '\0';
    }
}
