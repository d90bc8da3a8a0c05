/* The program bourse-plugin stands between the agent and an owner's plug-in (docs/plugins.md),
 * inside the jail of a job.
 *
 * The program is the resident of provider/worker/resident.c, with the messages of
 * provider/tensor/ask.h. It starts the plug-in, which the jail has beside it, and gives it one
 * subtask after another. The words of an ASK are an operation and its arguments, or the one word
 * --look, or those of a challenge (provider/tensor/challenge_answer.h). What the plug-in says is
 * read here, in the jail. SIGTERM cancels the operation that runs. */
#include "provider/plugin/plugin_product.h"
#include "provider/plugin/session.h"
#include "provider/tensor/ask.h"
#include "provider/tensor/challenge_answer.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
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

/* Says all of the device, after a product that was right where it multiplies. */
static enum operation_status look(struct session *session, struct problem *problem)
{
    const bool is_good = session_look(session, stdout, problem) &&
                         (!session->description.multiplies || plugin_product_try(session, problem));
    session_end(session);
    return is_good ? OPERATION_OK : OPERATION_DEVICE;
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
        return look(session, problem);
    }
    if (strcmp(ask->words[0], PLUGIN_CHALLENGE) == 0) {
        struct plugin_product product = {.session = session, .limit_ms = TALK_NO_LIMIT};
        const struct operation_multiplier multiplier = {.multiply = plugin_product_multiply,
                                                        .context = &product};
        const enum operation_status status =
            challenge_answer_run(ask->words, ask->count, &multiplier, problem);
        ret_result->companion = session->talk.pid;
        ret_result->companion_bytes = session_peak_bytes(session);
        return status;
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
    sigset_t cancels;
    (void)sigemptyset(&cancels);
    (void)sigaddset(&cancels, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &cancels, NULL);
    session.cancels = signalfd(-1, &cancels, SFD_CLOEXEC | SFD_NONBLOCK);
    return ask_serve(carry_out, &session, NULL);
}
