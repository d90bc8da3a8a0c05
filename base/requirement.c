#include "base/requirement.h"

#include <stddef.h>
#include <string.h>

int64_t attribute_most(const char *name)
{
    static const int64_t week_ns = INT64_C(7) * 24 * 3600 * 1000 * 1000 * 1000;
    static const struct {
        const char *name;
        int64_t most;
    } bounds[] = {{"isolation", 3}, {"trust", 2}, {"notice", week_ns}, {"minimum_run", week_ns}};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        if (strcmp(bounds[i].name, name) == 0) {
            return bounds[i].most;
        }
    }
    return INT64_MAX;
}
