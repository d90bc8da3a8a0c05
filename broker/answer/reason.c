#include "broker/answer/reason.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

void reason_text(const char *reason, char ret_text[REASON_TEXT_SIZE])
{
    char shown[REASON_TEXT_SIZE - 8];
    ret_text[0] = '\0';
    if (reason != NULL) {
        text_printable(reason, strlen(reason), shown, sizeof shown);
        (void)snprintf(ret_text, REASON_TEXT_SIZE, " (\"%s\")", shown);
    }
}
