#include "consumer/command/plan/work_refusal.h"

#include "base/text.h"
#include "consumer/command/show.h"

#include <stdio.h>

int work_refuse(const struct work *work, enum bourse_status status, const char *prefix,
                const char *name, const char *text)
{
    struct bourse_error error = {.status = status};
    char whole[sizeof error.text];
    const char *path = work->path != NULL ? work->path : "";
    (void)snprintf(error.name, sizeof error.name, "%s%s", prefix, name);
    (void)snprintf(whole, sizeof whole, "%s%s%s", path, path[0] != '\0' ? ": " : "", text);
    bourse_printable(whole, error.text, sizeof error.text);
    return complain_with(work->invocation, &error);
}

int work_no_memory(const struct work *work)
{
    return complain(work->invocation, BOURSE_LOCAL, "there is not enough memory for the plan");
}

const char *work_said_at(const struct work *work, unsigned line, const char *option,
                         const char *key, char ret_text[WORK_SAID_SIZE])
{
    if (line == 0) {
        (void)snprintf(ret_text, WORK_SAID_SIZE, "--%s", option);
    } else {
        (void)snprintf(ret_text, WORK_SAID_SIZE, "%.120s:%u: %s", cell_plain(work->path), line,
                       key);
    }
    return ret_text;
}
