#include "formats/plugin/plugin_word.h"

#include <stddef.h>
#include <string.h>

static bool fits(const char *text, const char *more)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    const size_t length = strlen(text);
    bool fits = length > 0 && length < PLUGIN_WORD_SIZE && strchr(letters, text[0]) != NULL;
    for (size_t i = 1; fits && i < length; i++) {
        fits = strchr(letters, text[i]) != NULL || strchr(more, text[i]) != NULL;
    }
    return fits;
}

bool plugin_word_fits(const char *text)
{
    return fits(text, "-");
}

bool plugin_word_is_operation(const char *text)
{
    return fits(text, "._-");
}
