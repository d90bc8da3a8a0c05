/* This file checks a job whose `executor` is `plugin`. Its `run` is the name of an operation and
 * the operation's arguments. Only the plug-in knows what the arguments mean. */
#include "formats/job_internal.h"
#include "formats/plugin/plugin_word.h"

#include "base/text.h"

#include <string.h>

#define FAULT(fault, key, index, ...)                                                              \
    ((fault)->field = (key), (fault)->item = (index), problem_set(&(fault)->what, __VA_ARGS__),    \
     false)

bool job_plugin_check(const struct job_file *job, struct job_fault *fault)
{
    const struct job_strings *run = &job->run;
    if (!job->is_plugin) {
        return true;
    }
    const char *field = job->image != NULL            ? "image"
                        : job->has_entrypoint         ? "entrypoint"
                        : job->directory != NULL      ? "directory"
                        : job->env_count > 0          ? "env"
                        : job->standard_input != NULL ? "stdin"
                                                      : NULL;
    if (field != NULL) {
        return FAULT(fault, field, 0, "a plug-in's operation takes only arguments and files");
    }
    if (!plugin_word_is_operation(run->items[0])) {
        char shown[80];
        text_printable(run->items[0], strlen(run->items[0]), shown, sizeof shown);
        return FAULT(fault, "run", 0,
                     "\"%s\" is no operation of a plug-in: 1 to %d of a-z, 0-9, dot, dash and _",
                     shown, PLUGIN_WORD_SIZE - 1);
    }
    return true;
}
