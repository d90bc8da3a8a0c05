/* base/array.h lets an array grow by an element at a time, in amortised constant time.
 *
 *     struct item *items = array_with_room(list->items, list->count, &list->capacity, size);
 *     if (items == NULL) {
 *         return false;
 *     }
 *     list->items = items;
 *     items[list->count++] = item;
 */
#ifndef BOURSE_BASE_ARRAY_H
#define BOURSE_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { ARRAY_LEAST = 16 };

/* Returns the array of `count` elements of `size` bytes, with room for one more. The array may have
 * moved. Returns NULL when memory is short; then the old array and its capacity still stand. */
static inline void *array_with_room(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) {
        return items;
    }
    const size_t larger = *capacity == 0 ? ARRAY_LEAST : 2 * *capacity;
    void *moved = larger > SIZE_MAX / size ? NULL : realloc(items, larger * size);
    *capacity = moved != NULL ? larger : *capacity;
    return moved;
}

#endif
