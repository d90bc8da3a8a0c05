/* The program bourse-plugin stands between the agent and an owner's plug-in (docs/plugins.md),
 * inside the jail of a job.
 *
 * The program is the resident of provider/worker/resident.c, with the messages of
 * provider/tensor/ask.h. It starts the plug-in, which the jail has beside it, and gives it one
 * subtask after another. The words of an ASK are an operation and its arguments, or the one word
 * --look. What the plug-in says is read here, in the jail. */
#include "provider/plugin/session.h"
#include "provider/tensor/ask.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum operation_status run(struct session *session, const struct ask *ask,
                                 struct ask_result *ret_result, struct problem *problem)
{
    static const enum operation_status statuses[] = {[SESSION_DONE] = OPERATION_OK,
                                                     [SESSION_FAILED] = OPERATION_FAILED,
                                                     [SESSION_BROKEN] = OPERATION_DEVICE};
    struct plugin_result result = {.status = 0};
    const enum session_status status =
        session_run(session, ask->words[0], ask->words + 1, ask->count - 1, &result, problem);
    ret_result->exit_code = result.status != 0 ? result.status : 1;
    ret_result->companion = session->talk.pid;
    ret_result->companion_bytes = session_peak_bytes(session);
    if (status == SESSION_DONE && result.text[0] != '\0') {
        (void)printf("%s\n", result.text);
    }
    return statuses[status];
}

static enum operation_status carry_out(void *context, const struct ask *ask,
                                       struct ask_result *ret_result, struct problem *problem)
{
    struct session *session = context;
    for (size_t i = 0; i < ask->given_count; i++) {
        (void)close(ask->given[i].file); /* plug-ins read their inputs in the folder */
    }
    if (ask->count == 0 || ask->given_count > 0) {
        problem_set(problem, "an ASK without an operation");
        return OPERATION_FAILED;
    }
    if (strcmp(ask->words[0], PLUGIN_LOOK) == 0) {
        return session_look(session, stdout, problem) ? OPERATION_OK : OPERATION_DEVICE;
    }
    return run(session, ask, ret_result, problem);
}

int main(int count, char **words)
{
    static struct session session = {.program = PLUGIN_PROGRAM};
    (void)words;
    if (count > 1) {
        (void)fputs("usage: bourse-plugin is started by bourse-worker alone\n", stderr);
        return 2;
    }
    return ask_serve(carry_out, &session, NULL);
}
