#include "planner/cost/catalogue.h"

#include <assert.h>
#include <string.h>

static const struct catalogue_device devices[] = {
#include "planner/devices.inc"
};
enum { DEVICES = sizeof devices / sizeof devices[0] };

size_t catalogue_count(void)
{
    return DEVICES;
}

const struct catalogue_device *catalogue_at(size_t index)
{
    assert(index < DEVICES);
    return &devices[index];
}

const struct catalogue_device *catalogue_find(const char *id)
{
    for (size_t i = 0; i < DEVICES; i++) {
        if (strcmp(devices[i].id, id) == 0) {
            return &devices[i];
        }
    }
    return NULL;
}

const struct catalogue_device *catalogue_by_instrument(const char *instrument)
{
    for (size_t i = 0; i < DEVICES; i++) {
        if (strcmp(devices[i].instrument, instrument) == 0) {
            return &devices[i];
        }
    }
    return NULL;
}
