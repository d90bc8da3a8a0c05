#include "provider/command/shell_word.h"

#include "base/requirement.h"

#include <string.h>

const char *shell_word(const char *name)
{
    static char word[4 * ATTRIBUTE_TEXT_SIZE + 3];
    char *at = word;
    if (name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] ==
        '\0') {
        return name;
    }
    *at++ = '\'';
    for (; *name != '\0' && at < word + sizeof word - 6; name++) {
        if (*name == '\'') {
            memcpy(at, "'\\''", 4);
            at += 4;
        } else {
            *at++ = *name;
        }
    }
    *at++ = '\'';
    *at = '\0';
    return word;
}
