#include "provider/executors/trial.h"

#include "base/text.h"

#include <string.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

/* Returns the last line of the text that is not empty, without its end, in the text. */
static char *cut_last_line(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n') {
        text[--length] = '\0';
    }
    char *newline = strrchr(text, '\n');
    return newline == NULL ? text : newline + 1;
}

void trial_last_line(const struct jail_reply *reply, char *ret_text, size_t capacity)
{
    char end[2048];
    const struct jail_output *output = &reply->standard_error;
    const uint64_t most = sizeof end - 1;
    const uint64_t from = output->size > most ? output->size - most : 0;
    const ssize_t length =
        output->fd < 0 ? 0 : pread(output->fd, end, (size_t)(output->size - from), (off_t)from);
    end[length > 0 ? length : 0] = '\0';
    const char *line = cut_last_line(end);
    if (strcmp(line, reply->detail) ==
        0) { /* a helper repeats its reason below the others' words */
        end[line > end ? line - end - 1 : 0] = '\0';
        line = cut_last_line(end);
    }
    text_printable(line, strlen(line), ret_text, capacity);
}

void trial_stop_init(struct trial_stop *stop)
{
    *stop = (struct trial_stop){.is_stopped = false};
    pthread_mutex_init(&stop->mutex, NULL);
}

void trial_stop_fini(struct trial_stop *stop)
{
    pthread_mutex_destroy(&stop->mutex);
}

void trial_stop_all(struct trial_stop *stop)
{
    pthread_mutex_lock(&stop->mutex);
    stop->is_stopped = true;
    if (stop->jail != NULL) {
        jail_cancel(stop->jail, OUTCOME_CANCELLED);
    }
    pthread_mutex_unlock(&stop->mutex);
}

/* Shows the jail of the trial that runs; NULL: none does. Returns false when no trial may run. */
static bool show(struct trial_stop *stop, struct jail *jail)
{
    if (stop == NULL) {
        return true;
    }
    pthread_mutex_lock(&stop->mutex);
    const bool may_run = !stop->is_stopped;
    stop->jail = may_run ? jail : NULL;
    pthread_mutex_unlock(&stop->mutex);
    return may_run;
}

static void set_problem(const struct jail_reply *reply, struct problem *ret_problem)
{
    char line[200];
    trial_last_line(reply, line, sizeof line);
    problem_set(ret_problem, "%.250s%s%s", reply->detail, line[0] != '\0' ? ": " : "", line);
}

ssize_t trial_ask(struct launcher *launcher, const struct jail_spec *spec, const char *helper,
                  const char *const *words, uint64_t wall_ns, char ret_said[TRIAL_SAID_BYTES],
                  struct trial_stop *stop, struct problem *ret_problem)
{
    static struct jail_reply reply; /* large; trials are one after another */
    struct jail_request request = {.tensor_threads = jail_has_resident(spec) ? 1 : 0,
                                   .argv = words,
                                   .stdin_fd = -1,
                                   .wall_ns = wall_ns};
    struct jail_spec bounded = *spec;
    struct jail *jail = NULL;
    bounded.limits = (struct jail_limits){.memory_bytes = TRIAL_MEMORY_BYTES,
                                          .disk_bytes = 64 * MIB,
                                          .processes = 64,
                                          .cpu_milli = 1000};
    if (!jail_open(launcher, &bounded, &jail, ret_problem)) {
        return -1;
    }
    if (!show(stop, jail)) {
        jail_close(&jail);
        problem_set(ret_problem, "the agent ends");
        return -1;
    }
    jail_run(jail, &request, &reply);
    (void)show(stop, NULL);
    ssize_t length = -1;
    if (reply.outcome == OUTCOME_OK && reply.standard_output.fd >= 0) {
        const struct jail_output *output = &reply.standard_output; /* its file is longer */
        const size_t size =
            output->size < TRIAL_SAID_BYTES ? (size_t)output->size : TRIAL_SAID_BYTES;
        length = pread(output->fd, ret_said, size, 0);
    }
    if (length < 0 && reply.detail[0] != '\0') {
        set_problem(&reply, ret_problem);
    } else if (length < 0) {
        problem_set(ret_problem, "%s says nothing", helper);
    }
    jail_reply_fini(&reply);
    jail_close(&jail);
    return length;
}
