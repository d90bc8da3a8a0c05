#include "formats/elf/ld_cache.h"

#include <string.h>

enum { HEADER_BYTES = 48, ENTRY_BYTES = 24 };
static const char MAGIC[] = "glibc-ld.so.cache1.1";

static uint32_t number(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* Returns NULL when the text does not end within the file. */
static const char *text_at(const uint8_t *bytes, size_t length, uint32_t offset)
{
    return offset < length && memchr(bytes + offset, '\0', length - offset) != NULL
               ? (const char *)bytes + offset
               : NULL;
}

const char *ld_cache_next(const uint8_t *bytes, size_t length, const char *name, size_t *index)
{
    if (length < HEADER_BYTES || memcmp(bytes, MAGIC, sizeof MAGIC - 1) != 0) {
        return NULL;
    }
    const size_t fit = (length - HEADER_BYTES) / ENTRY_BYTES;
    const size_t said = number(bytes + sizeof MAGIC - 1);
    const size_t count = said < fit ? said : fit;
    while (*index < count) {
        const uint8_t *entry = bytes + HEADER_BYTES + ENTRY_BYTES * (*index)++;
        const char *key = text_at(bytes, length, number(entry + 4));
        const char *path = text_at(bytes, length, number(entry + 8));
        static const uint8_t none[8];
        if (key != NULL && path != NULL && memcmp(entry + 16, none, sizeof none) == 0 &&
            strcmp(key, name) == 0) {
            return path;
        }
    }
    return NULL;
}
