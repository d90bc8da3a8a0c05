#include "provider/jail/cgroup_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cgroup_text_has(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        bool begins = at == text || strchr(" ,\n", at[-1]) != NULL;
        bool ends = at[length] == '\0' || strchr(" ,\n", at[length]) != NULL;
        if (begins && ends) {
            return true;
        }
    }
    return false;
}

uint64_t cgroup_text_value(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, length) == 0 && line[length] == ' ') {
            return strtoull(line + length + 1, NULL, 10);
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return 0;
}

bool cgroup_text_path(const char *table, const char *controller, char *ret_path, size_t size)
{
    for (const char *line = table; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        const char *first = memchr(line, ':', length);
        const char *second =
            first != NULL ? memchr(first + 1, ':', length - (size_t)(first + 1 - line)) : NULL;
        if (second != NULL) {
            char list[128];
            int width = (int)(second - first - 1);
            (void)snprintf(list, sizeof list, "%.*s", width, first + 1);
            bool same = controller[0] == '\0' ? width == 0 : cgroup_text_has(list, controller);
            int rest = (int)(length - (size_t)(second + 1 - line));
            if (same) {
                bool top = rest == 1; /* "/" adds nothing to the mount point */
                int written = snprintf(ret_path, size, "%.*s", top ? 0 : rest, second + 1);
                return written >= 0 && (size_t)written < size;
            }
        }
        line += length + (line[length] == '\n');
    }
    return false;
}
