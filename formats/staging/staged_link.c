#include "formats/staging/staged_link.h"

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool is_part(const char *part, size_t length, const char *what)
{
    return length == strlen(what) && memcmp(part, what, length) == 0;
}

/* Returns the number of folders between the top and the link. */
static size_t depth_of(const char *name)
{
    size_t depth = 0;
    for (const char *c = name; *c != '\0'; c++) {
        depth += *c == '/';
    }
    return depth;
}

const char *staged_link_problem(const char *name, const char *target)
{
    const size_t size = strlen(target);
    size_t depth = depth_of(name);
    bool has_name = false;
    if (size == 0 || size > STAGED_LINK_BYTES || !text_is_plain(target, size)) {
        return "has a target that is empty, too long or no plain text";
    }
    if (target[0] == '/') {
        return "has an absolute target";
    }
    for (const char *part = target; *part != '\0';) {
        const size_t length = strcspn(part, "/");
        if (is_part(part, length, "..")) {
            if (has_name) {
                return "has \"..\" behind a name in its target";
            }
            if (depth-- == 0) {
                return "leads out of the folder";
            }
        } else if (length > 0 && !is_part(part, length, ".")) {
            has_name = true;
        }
        part += length + (part[length] == '/');
    }
    return NULL;
}
