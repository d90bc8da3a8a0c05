#include "tests/support/image_layers.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512 };

static void put_header(uint8_t *block, const struct layer_entry *entry, size_t size)
{
    unsigned sum = 0;
    memcpy(block, entry->name, strnlen(entry->name, 100));
    (void)snprintf((char *)block + 100, 8, "%07o", entry->mode != 0 ? entry->mode : 0644);
    (void)snprintf((char *)block + 124, 12, "%011zo", size);
    block[156] = (uint8_t)entry->type;
    if (entry->type != '0') {
        memcpy(block + 157, entry->link, strnlen(entry->link, 100));
    }
    memcpy(block + 257,
           "ustar\0"
           "00",
           8);
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < BLOCK; i++) {
        sum += block[i];
    }
    (void)snprintf((char *)block + 148, 8, "%06o", sum);
}

uint8_t *layer_make(const struct layer_entry *entries, size_t *ret_length)
{
    size_t length = 2 * (size_t)BLOCK;
    for (const struct layer_entry *entry = entries; entry->type != 0; entry++) {
        const size_t size = entry->type == '0' ? strlen(entry->link) : 0;
        length += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
    }
    uint8_t *bytes = calloc(1, length);
    ck_assert_ptr_nonnull(bytes);
    uint8_t *at = bytes;
    for (const struct layer_entry *entry = entries; entry->type != 0; entry++) {
        const size_t size = entry->type == '0' ? strlen(entry->link) : 0;
        put_header(at, entry, size);
        memcpy(at + BLOCK, entry->link, size);
        at += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
    }
    *ret_length = length;
    return bytes;
}
