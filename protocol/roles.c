#include "protocol/roles.h"

#include "base/text.h"
#include "protocol/message.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const char *const role_names[ROLE_COUNT] = {"consumer", "provider", "auditor", "replica",
                                            "risk",     "operator", "referee"};
static_assert(ROLE_CONSUMER == 1 && ROLE_REFEREE == 1 << (ROLE_COUNT - 1),
              "names in the order of the bits");

void roles_text(unsigned roles, char *ret_text, size_t capacity)
{
    size_t used = 0;
    (void)snprintf(ret_text, capacity, "none");
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        if ((roles & (1U << i)) != 0 && used < capacity) {
            int wrote = snprintf(ret_text + used, capacity - used, "%s%s", used == 0 ? "" : ", ",
                                 role_names[i]);
            used += wrote > 0 ? (size_t)wrote : 0;
        }
    }
}

const char *role_nearest(const char *name)
{
    return text_nearest(name, role_names, ROLE_COUNT);
}

unsigned role_named(const char *name)
{
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        if (strcmp(role_names[i], name) == 0) {
            return 1U << i;
        }
    }
    return 0;
}
