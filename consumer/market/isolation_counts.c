#include "consumer/market/isolation_counts.h"

#include <string.h>

void isolation_counts_add(struct bourse_isolation *counts, const struct bourse_device *device)
{
    for (size_t i = 0; i < device->attribute_count; i++) {
        const struct bourse_attribute *attribute = &device->attributes[i];
        if (attribute->text == NULL && strcmp(attribute->name, "isolation") == 0 &&
            attribute->number >= 0 && attribute->number < BOURSE_ISOLATION_LEVELS) {
            counts->devices[attribute->number]++;
            return;
        }
    }
    counts->unstated++;
}
