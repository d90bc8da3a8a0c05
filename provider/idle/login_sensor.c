#include "provider/idle/login_sensor.h"

#include "base/text.h"
#include "provider/idle/sensor_file.h"

#include <string.h>

enum { SESSION_MAX = 4096 };

/* Returns the value of `KEY=` at the start of a line and its length, or NULL. */
static const char *value_of(const char *text, const char *key, size_t *ret_length)
{
    const size_t length = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0) {
            *ret_length = strcspn(line + length, "\n");
            return line + length;
        }
    }
    return NULL;
}

static bool begins(const char *text, const char *key, const char *value)
{
    size_t length;
    const char *found = value_of(text, key, &length);
    return found != NULL && strncmp(found, value, strlen(value)) == 0;
}

bool login_sensor_look(const char *root, char *ret_user, size_t capacity)
{
    static const char folder[] = "/run/systemd/sessions";
    DIR *stream = sensor_file_list(root, folder);
    ret_user[0] = '\0';
    if (stream == NULL) {
        return false;
    }
    for (struct dirent *entry; ret_user[0] == '\0' && (entry = readdir(stream)) != NULL;) {
        char text[SESSION_MAX];
        size_t length = 0;
        if (strchr(entry->d_name, '.') != NULL ||
            !sensor_file_text(root, folder, entry->d_name, text, sizeof text) ||
            !begins(text, "ACTIVE=", "1") || !begins(text, "CLASS=", "user") ||
            value_of(text, "SEAT=", &length) == NULL || length == 0) {
            continue;
        }
        const char *user = value_of(text, "USER=", &length);
        text_printable(user != NULL && length > 0 ? user : "somebody",
                       user != NULL && length > 0 ? length : strlen("somebody"), ret_user,
                       capacity);
    }
    (void)closedir(stream);
    return true;
}
